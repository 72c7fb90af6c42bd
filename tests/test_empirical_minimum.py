"""Least squares over the output weights on given words."""

from __future__ import annotations

import numpy as np
import pytest
from empirical_words import CLOSE, batches
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from popgd import (
    BadParameter,
    EmpiricalRisk,
    Occurrence,
    WordBatch,
    sample_words,
)


@settings(deadline=None)
@given(st.data())
def test_the_minimum_is_stationary_and_below_its_neighbours(data):
    batch = data.draw(batches())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    alpha = rng.normal(size=batch.d)
    risk = EmpiricalRisk(batch)
    best = risk.minimize_output(alpha)
    slope = risk.value_and_gradient(alpha, best.beta, residual=best.residual).beta
    scale = 1 + np.abs(best.beta).max()
    mass = 1.0 if batch.weights is None else batch.weights.sum() / batch.total
    assert np.abs(slope).max() <= CLOSE * scale * mass
    for _ in range(3):
        other = best.beta + rng.normal(size=batch.d) * 0.1
        assert risk.value(alpha, other) >= best.value - CLOSE * scale**2 * mass
    gamma = (batch.counts * np.exp(alpha)) / (batch.counts @ np.exp(alpha))[:, None]
    root = np.sqrt((np.ones(len(batch)) if batch.weights is None else batch.weights) / batch.total)
    known = np.linalg.lstsq(root[:, None] * gamma, root * (1 + batch.labels), rcond=None)[0]
    assert best.value == pytest.approx(risk.value(alpha, known), rel=1e-9, abs=CLOSE * scale**2)


@pytest.mark.parametrize("gap", [0.0, 20.0, 60.0, 200.0])
def test_the_minimum_keeps_its_digits_near_two(gap):
    """Against the normal equations in 250 digits."""
    batch = sample_words(Occurrence(4, 2), 60, rng=3)
    alpha = np.array([0.1, 0.0, gap, -0.2])
    best = EmpiricalRisk(batch).minimize_output(alpha)
    with mp.workdps(250):
        rows = []
        for row in batch.counts:
            a = [int(c) * mp.exp(mpf(x) - gap) for c, x in zip(row, alpha)]
            rows.append([x / sum(a) for x in a])
        gamma, goal = mp.matrix(rows), mp.matrix([1 + int(y) for y in batch.labels])
        beta = mp.lu_solve(gamma.T * gamma, gamma.T * goal)
        residual = gamma * beta - goal
        value = float(sum(x**2 for x in residual) / (2 * len(batch)))
        assert best.value == pytest.approx(value, rel=1e-12)
        assert best.residual[0] == pytest.approx(float(beta[2] - 2), rel=1e-10)
        for j in (0, 1, 3):
            assert best.beta[j] == pytest.approx(float(beta[j]), rel=1e-8)


def test_fewer_words_than_symbols_are_fitted_exactly():
    batch = sample_words(Occurrence(30), 12, rng=0)
    best = EmpiricalRisk(batch).minimize_output(np.zeros(30))
    assert best.value <= 1e-28
    absent = batch.counts.sum(axis=0) == 0
    assert (best.beta[absent] == 0).all()


def test_repeated_words_and_one_label_are_no_obstacle():
    same_words = WordBatch([[1, 1, 0]] * 5, [1, 1, 1, -1, -1], task=Occurrence(3))
    best = EmpiricalRisk(same_words).minimize_output(np.zeros(3))
    # every word has f = 1/5 at best
    assert best.value == pytest.approx(0.48, rel=CLOSE)
    negative = WordBatch([[0, 1, 0], [0, 0, 2]], [-1, -1], task=Occurrence(3))
    best = EmpiricalRisk(negative).minimize_output(np.zeros(3))
    assert best.value == 0.0
    assert best.beta.tolist() == [2.0, 0.0, 0.0]
    assert best.residual.tolist() == [0.0]


def test_nearly_equal_columns_do_not_square_the_condition_number():
    counts = np.array([[1000, 1001], [1000, 999], [7, 7]])
    risk = EmpiricalRisk(WordBatch(counts, [1, -1, 1]))
    best = risk.minimize_output(np.zeros(2))
    with mp.workdps(60):
        gamma = mp.matrix([[mpf(int(x)) / int(sum(row)) for x in row] for row in counts])
        goal = mp.matrix([2, 0, 2])
        beta = mp.lu_solve(gamma.T * gamma, gamma.T * goal)
        np.testing.assert_allclose(best.beta, [float(x) for x in beta], rtol=1e-9)


def test_without_a_task_there_is_no_residual():
    risk = EmpiricalRisk(WordBatch([[1, 0], [1, 2]], [1, -1]))
    assert risk.minimize_output([0.0, 0.0]).residual.shape == (0,)
    with pytest.raises(BadParameter, match="no task"):
        risk.value([0.0, 0.0], [0.0, 0.0], residual=[0.0])
    named = EmpiricalRisk(risk.batch, Occurrence(2))
    assert named.minimize_output([0.0, 0.0]).residual.shape == (1,)
