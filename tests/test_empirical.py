"""The empirical risk: equal to a softmax word by word, at any weights; unbiased; refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from empirical_words import CLOSE, GRADED, batches, per_word
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import direct, enumerate_words
from strategies import tasks, weights

import popgd
from popgd import (
    BadParameter,
    EmpiricalRisk,
    FixedLength,
    Occurrence,
    Or,
    PopulationRisk,
    UniformLength,
    WordBatch,
    Words,
    sample_words,
)

SIGMAS = 5


@settings(deadline=None)
@given(st.data())
def test_equals_one_softmax_a_word(data):
    batch = data.draw(batches())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    alpha, beta = rng.normal(size=batch.d), rng.normal(size=batch.d)
    value, by_alpha, by_beta, size_alpha, size_beta = per_word(batch, alpha, beta)
    risk = EmpiricalRisk(batch)
    found = risk.value_and_gradient(alpha, beta)
    scale = max(value, 1.0)
    assert abs(found.value - value) <= CLOSE * scale
    assert (np.abs(found.alpha - by_alpha) <= CLOSE * np.maximum(size_alpha, 1)).all()
    assert (np.abs(found.beta - by_beta) <= CLOSE * np.maximum(size_beta, 1)).all()
    assert risk.value(alpha, beta) == found.value
    assert risk.mse(alpha, beta) == 2 * found.value


# three levels of attention with equal top values; one word a level
GRADED_CASE = (
    WordBatch([[1, 2, 1, 0], [0, 1, 1, 0], [0, 0, 3, 1], [0, 0, 0, 2]], [1, -1, -1, -1]),
    np.array([80.0, 41.0, 40.0, 0.0]),
    np.array([2.0, 0.5, 0.5, -1.0]),
)


@settings(deadline=None)
@given(st.data())
@example(None)
def test_every_component_keeps_its_digits_at_any_attention(data):
    if data is None:
        batch, alpha, beta = GRADED_CASE
    else:
        task = data.draw(tasks(largest=6))
        batch = data.draw(batches(task))
        alpha, beta = data.draw(weights(task))
        alpha = alpha * data.draw(st.sampled_from([1.0, 17.0]))
    value, by_alpha, by_beta, size_alpha, size_beta = per_word(batch, alpha, beta, digits=60)
    found = EmpiricalRisk(batch).value_and_gradient(alpha, beta)
    tiny = 1e-290
    assert (np.abs(found.alpha - by_alpha) <= GRADED * size_alpha + tiny).all()
    assert (np.abs(found.beta - by_beta) <= GRADED * size_beta + tiny).all()
    assert abs(found.value - value) <= GRADED * np.abs([beta, beta - 2]).max() ** 2 + tiny


def test_negative_control_the_unshifted_kernel_loses_the_attention_gradient():
    """At gap 40 the textbook form v_i E[r gamma_i] - E[r^2 gamma_i] has no digit left."""
    batch = sample_words(Occurrence(5), 200, rng=0)
    alpha, beta = np.array([40.0, 0, 0, 0, 0]), np.array([1.5, 0.1, 0.2, 0.3, 0.4])
    a = np.exp(alpha - 40)
    counts = batch.counts.astype(float)
    s, x = counts @ a, counts @ (a * beta)
    r = x / s - 1 - batch.labels
    textbook = a * (beta * (counts.T @ (r / s)) - counts.T @ (r / s * x / s)) / len(batch)
    _, by_alpha, _, size, _ = per_word(batch, alpha, beta, digits=60)
    ours = EmpiricalRisk(batch).value_and_gradient(alpha, beta).alpha
    assert abs(textbook[0] - by_alpha[0]) > 0.5 * abs(by_alpha[0])
    assert abs(ours[0] - by_alpha[0]) <= GRADED * size[0]


@pytest.mark.parametrize("gap", [-700.0, -90.0, -40.0, 40.0, 90.0, 700.0])
def test_extreme_gaps(gap):
    batch = sample_words(Occurrence(4, 1), 300, rng=5)
    alpha, beta = np.array([0, gap, 0.5, 0]), np.array([0.3, 1.2, -0.4, 0.3])
    value, by_alpha, by_beta, size_alpha, size_beta = per_word(batch, alpha, beta, digits=60)
    found = EmpiricalRisk(batch).value_and_gradient(alpha, beta)
    assert found.value == pytest.approx(value, rel=GRADED)
    assert (np.abs(found.alpha - by_alpha) <= GRADED * size_alpha).all()
    assert (np.abs(found.beta - by_beta) <= GRADED * size_beta).all()


def test_attention_beyond_the_range_of_floats():
    batch = WordBatch([[1, 1, 0], [0, 1, 1], [0, 0, 1]], [1, -1, -1])
    risk = EmpiricalRisk(batch)
    found = risk.value_and_gradient([1.7e308, 0, -1.7e308], [2.0, 1.0, 3.0])
    assert found.value == (0 + 1 + 9) / 6
    assert found.alpha.tolist() == [0, 0, 0]
    levels = EmpiricalRisk(WordBatch(np.eye(1100, dtype=int), np.ones(1100)))
    assert levels.value(-1e5 * np.arange(1100), np.zeros(1100)) == 2.0


@pytest.mark.parametrize("scale", [1e-20, 1e-100])
def test_residuals_keep_relative_accuracy_however_small(scale):
    batch = sample_words(Occurrence(6, 2), 200, rng=1)
    gap = -2 * np.log(scale)
    alpha = np.zeros(6)
    alpha[2] = gap
    beta = np.array([0.3, -0.2, 2.0, 0.1, 0.2, -0.1]) * scale
    beta[2] = 2.0
    residual = np.array([-0.7 * scale])
    value, by_alpha, by_beta, size_alpha, _ = per_word(batch, alpha, beta, residual, digits=60)
    found = EmpiricalRisk(batch).value_and_gradient(alpha, beta, residual=residual)
    assert value < scale**2
    assert found.value == pytest.approx(value, rel=CLOSE)
    np.testing.assert_allclose(found.beta, by_beta, rtol=1e-12, atol=0)
    assert (np.abs(found.alpha - by_alpha) <= GRADED * size_alpha).all()


@settings(deadline=None)
@given(tasks(largest=4), st.integers(0, 2**32))
def test_exhaustive_words_give_the_truncated_sum(task, seed):
    longest = 8
    if task.words.length.pmf(np.arange(1, longest + 1)).sum() == 0:
        return
    rng = np.random.default_rng(seed)
    alpha, beta = rng.normal(size=task.d), rng.normal(size=task.d)
    truth = direct(task, enumerate_words(task, longest), alpha, beta)
    found = EmpiricalRisk(WordBatch.exhaustive(task, longest)).value_and_gradient(alpha, beta)
    assert found.value == pytest.approx(truth.value, rel=CLOSE)
    np.testing.assert_allclose(found.alpha, truth.alpha, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(found.beta, truth.beta, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("law", [UniformLength(6), FixedLength(4)])
def test_all_words_of_a_bounded_law_are_the_population(law):
    task = Or(3, [0, 2], Words(law))
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, 3))
    exact = PopulationRisk(task).value_and_gradient(alpha, beta)
    found = EmpiricalRisk(WordBatch.exhaustive(task, 6)).value_and_gradient(alpha, beta)
    assert found.value == pytest.approx(exact.value, rel=1e-12)
    np.testing.assert_allclose(found.alpha, exact.alpha, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.beta, exact.beta, rtol=0, atol=1e-12)


UNBIASED = [
    Occurrence(50),
    Occurrence(3, 1),
    Or(20, [3, 7], Words(popgd.Poisson(9.0))),
    popgd.And(6, [0, 2], Words(popgd.UniformLength(9), np.arange(1, 7) / 21)),
]


@pytest.mark.parametrize("task", UNBIASED, ids=repr)
def test_a_million_words_agree_with_the_population(task):
    rng = np.random.default_rng(7)
    alpha, beta = rng.normal(size=(2, task.d))
    exact = PopulationRisk(task)
    truth, noise = exact.value_and_gradient(alpha, beta), exact.variance(alpha, beta)
    n = 1_000_000
    found = EmpiricalRisk(sample_words(task, n, rng=2026)).value_and_gradient(alpha, beta)
    loss, by_alpha, by_beta = noise.standard_error(n)
    assert abs(found.value - truth.value) <= SIGMAS * loss
    assert (np.abs(found.alpha - truth.alpha) <= SIGMAS * by_alpha).all()
    assert (np.abs(found.beta - truth.beta) <= SIGMAS * by_beta).all()


def test_a_symbol_without_attention_is_as_good_as_absent():
    batch = WordBatch([[1, 2, 3], [0, 1, 1]], [1, -1])
    risk = EmpiricalRisk(batch)
    masked = risk.value_and_gradient([0.0, 1.0, -np.inf], [1.0, 2.0, 3.0])
    other = WordBatch([[1, 2], [0, 1]], [1, -1])
    known = EmpiricalRisk(other).value_and_gradient([0.0, 1.0], [1.0, 2.0])
    assert masked.value == known.value
    assert masked.alpha.tolist() == [*known.alpha, 0]
    assert masked.beta.tolist() == [*known.beta, 0]
    with pytest.raises(BadParameter, match="all symbols of a word"):
        risk.value([0.0, -np.inf, -np.inf], [1.0, 2.0, 3.0])
    with pytest.raises(BadParameter, match="all symbols of a word"):
        EmpiricalRisk([other] * 3).value([-np.inf, -np.inf], [1.0, 2.0])


@settings(deadline=None)
@given(st.data())
def test_accuracy_is_the_fraction_of_right_signs(data):
    task = data.draw(tasks(largest=6))
    batch = sample_words(task, 50, rng=data.draw(st.integers(0, 2**40)))
    alpha, beta = data.draw(weights(task))
    right = 0
    for row, label in zip(batch.counts, batch.labels):
        a = row * np.exp(alpha - alpha[row > 0].max())
        f = (a @ (beta - 1)) / a.sum()
        # a word whose f is rounding may count either way
        right += 0.5 if abs(f) < 1e-12 else (f > 0) == (label > 0)
    assert EmpiricalRisk(batch).accuracy(alpha, beta) == pytest.approx(right / 50, abs=0.51)
    assert 0 <= EmpiricalRisk(batch).accuracy(alpha, beta) <= 1


def test_ties_count_as_negative():
    batch = WordBatch([[1, 1], [1, 2], [2, 1]], [-1, -1, 1])
    # f = 2 C_0 / m - 1: 0, -1/3, 1/3
    assert EmpiricalRisk(batch).accuracy([0.0, 0.0], [2.0, 0.0]) == 1.0
    assert EmpiricalRisk(WordBatch([[1, 1]], [1])).accuracy([0.0, 0.0], [2.0, 0.0]) == 0.0


# arguments


@pytest.mark.parametrize(
    ("alpha", "beta", "residual", "message"),
    [
        ([0.0, 0.0], [0.0] * 3, None, "last axis must be d"),
        ([0.0, np.nan, 0.0], [0.0] * 3, None, "finite"),
        ([0.0, np.inf, 0.0], [0.0] * 3, None, "finite"),
        ([0.0, -np.inf, np.inf], [0.0] * 3, None, "finite"),
        ([0.0] * 3, [0.0, np.inf, 0.0], None, "finite"),
        ([0.0] * 3, [True] * 3, None, "real numbers"),
        ([0.0] * 3, [0.0] * 3, [1.0, 2.0], "last axis must be d"),
        (np.zeros((2, 3)), np.zeros((4, 3)), None, "do not broadcast"),
        (np.zeros((0, 3)), np.zeros(3), None, "axis is empty"),
        ("zero", [0.0] * 3, None, "real numbers"),
    ],
)
def test_bad_weights_are_refused(alpha, beta, residual, message):
    risk = EmpiricalRisk(sample_words(Occurrence(3), 10, rng=0))
    for method in (risk.value, risk.value_and_gradient, risk.accuracy):
        with pytest.raises(BadParameter, match=message):
            method(alpha, beta, residual)


def test_bad_batches_are_refused():
    one, other = (sample_words(Occurrence(d), 5, rng=0) for d in (3, 4))
    for bad in ([], [one, 3], "batch", None, np.ones((2, 3))):
        with pytest.raises(BadParameter, match="WordBatch"):
            EmpiricalRisk(bad)
    with pytest.raises(BadParameter, match="alphabets"):
        EmpiricalRisk([one, other])
    with pytest.raises(BadParameter, match="different tasks"):
        EmpiricalRisk([one, sample_words(Occurrence(3, 1), 5, rng=0)])
    with pytest.raises(BadParameter, match="one alphabet size"):
        EmpiricalRisk(one, Occurrence(4))
    with pytest.raises(BadParameter, match="stack of 2"):
        EmpiricalRisk([one, one]).value(np.zeros((3, 3)), np.zeros(3))


def test_single_problems_give_floats_and_objects_travel():
    risk = EmpiricalRisk(sample_words(Occurrence(3), 10, rng=0))
    assert type(risk.value([0, 0, 0], [1, 1, 1])) is float
    assert type(risk.accuracy([0, 0, 0], [1, 1, 1])) is float
    assert isinstance(risk, popgd.objective.Objective)
    back = pickle.loads(pickle.dumps(risk))
    assert back.value([0, 0, 1], [1, 2, 1]) == risk.value([0, 0, 1], [1, 2, 1])


@settings(deadline=None)
@given(tasks(largest=8), st.integers(0, 2**30))
def test_gradient_descent_is_the_same_plan_on_either_objective(task, seed):
    run = popgd.train(
        EmpiricalRisk(sample_words(task, 30, rng=seed)), "O(3x) -> A(2x)", learning_rate=0.5
    )
    assert (np.diff(run.risk[:4]) <= 1e-15).all()
