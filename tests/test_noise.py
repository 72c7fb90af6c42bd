"""Exact noise against enumeration and against drawn words."""

import numpy as np
import pytest
from oracles import direct, enumerate_words
from problems import THREE_SYMBOLS

from popgd import (
    BadParameter,
    NotAvailable,
    Occurrence,
    PopulationRisk,
)

ABSOLUTE = 1e-12
"""Quadrature of moments of order 6, values of order 1."""


def covariance(words, a, b):
    p = words.probability
    return (p[:, None] * a).T @ b - np.outer(p @ a, p @ b)


@pytest.mark.parametrize("task", THREE_SYMBOLS, ids=lambda t: type(t).__name__)
def test_every_entry_is_that_of_enumerated_words(task):
    rng = np.random.default_rng(0)
    alpha, beta = 2 * rng.normal(size=3), rng.normal(size=3)
    words = enumerate_words(task, 50)
    truth = direct(task, words, alpha, beta)
    noise = PopulationRisk(task).variance(alpha, beta)
    p = words.probability
    assert noise.loss == pytest.approx(p @ truth.loss**2 - (p @ truth.loss) ** 2, abs=ABSOLUTE)
    a, b = truth.word_alpha, truth.word_beta
    assert noise.alpha == pytest.approx(covariance(words, a, a), abs=ABSOLUTE)
    assert noise.beta == pytest.approx(covariance(words, b, b), abs=ABSOLUTE)
    assert noise.cross == pytest.approx(covariance(words, a, b), abs=ABSOLUTE)


def test_the_mean_of_a_million_words_is_within_five_standard_errors():
    task = Occurrence(20, 3)
    rng = np.random.default_rng(7)
    alpha, beta = rng.normal(size=20), rng.normal(size=20)
    n, chunk = 10**6, 50_000
    loss = []
    for _ in range(n // chunk):
        m = task.words.length.sample(chunk, rng)
        counts = rng.multinomial(m, task.words.probabilities(20))
        mass = counts * np.exp(alpha)
        f = mass @ beta / mass.sum(axis=1) - 1
        loss.append((f - task.labels(counts)) ** 2 / 2)
    loss = np.concatenate(loss)
    risk = PopulationRisk(task)
    noise = risk.variance(alpha, beta)
    assert abs(loss.mean() - risk.value(alpha, beta)) < 5 * noise.standard_error(n)[0]
    fourth = np.mean((loss - loss.mean()) ** 4)
    assert abs(loss.var() - noise.loss) < 5 * np.sqrt((fourth - noise.loss**2) / n)


def test_tiny_noise_keeps_its_digits_at_a_large_gap():
    task = Occurrence(50)
    alpha, beta = np.zeros(50), np.zeros(50)
    beta[0] = 2
    risk = PopulationRisk(task)
    scaled = []
    for gap in (30.0, 40.0):
        alpha[0] = gap
        scaled.append(risk.variance(alpha, beta).loss * np.exp(4 * gap))
    assert scaled[0] == pytest.approx(scaled[1], rel=1e-9)


def test_equal_losses_have_no_variance():
    # beta = 1 gives f = 0, so every word has loss 1/2
    assert PopulationRisk(Occurrence(5)).variance(np.zeros(5), np.ones(5)).loss == pytest.approx(
        0, abs=1e-12
    )


def test_misuse_is_refused():
    with pytest.raises(BadParameter, match="one pair of vectors"):
        PopulationRisk(Occurrence(3)).variance(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(NotAvailable, match="EmpiricalRisk"):
        PopulationRisk(Occurrence(3000)).variance(np.zeros(3000), np.zeros(3000))
