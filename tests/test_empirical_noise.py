"""Empirical noise, and attention at infinity, against exhaustive words and the exact routes."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import (
    And,
    BadParameter,
    EmpiricalRisk,
    Geometric,
    NotAvailable,
    Occurrence,
    PopulationRisk,
    Tiers,
    WordBatch,
    Words,
    sample_words,
)

TAIL = 1e-12
"""Words longer than the exhaustive batch, and rounding, for values of order 1."""

TASK = Occurrence(3, 1)
EVERY_WORD = WordBatch.exhaustive(TASK, 60)


@given(st.integers(0, 2**32 - 1))
@example(257039405)  # a variance of 31
@settings(max_examples=20, deadline=None)
def test_noise_over_every_word_is_the_exact_noise(seed):
    alpha, beta = np.random.default_rng(seed).normal(size=(2, 3))
    found = EmpiricalRisk(EVERY_WORD).variance(alpha, beta)
    for x, exact in zip(found, PopulationRisk(TASK).variance(alpha, beta), strict=True):
        assert x == pytest.approx(exact, abs=TAIL * max(1.0, np.abs(exact).max()))


@given(st.lists(st.integers(-2, 2), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_limits_of_attention_over_every_word_are_the_exact_ones(tier, seed):
    offset, beta = np.random.default_rng(seed).normal(size=(2, 3))
    alpha, words, exact = Tiers(tier, offset), EmpiricalRisk(EVERY_WORD), PopulationRisk(TASK)
    for x, y in zip(
        words.value_and_gradient(alpha, beta), exact.value_and_gradient(alpha, beta), strict=True
    ):
        assert x == pytest.approx(y, abs=TAIL)
    assert words.minimize_output(alpha).value == pytest.approx(
        exact.minimize_output(alpha).value, abs=TAIL
    )
    hessian = words.hessian_output(alpha).to_dense()
    assert hessian == pytest.approx(exact.hessian_output(alpha).to_dense(), abs=TAIL)


def test_limits_are_reached_from_finite_attention():
    task = And(6, [0, 2], Words(Geometric(0.2)))
    batch = sample_words(task, 500, rng=0)
    beta = np.random.default_rng(1).normal(size=6)
    tier, offset = np.array([2, 0, 1, 0, 1, 0]), np.linspace(-1, 1, 6)
    limit = EmpiricalRisk(batch).value(Tiers(tier, offset), beta)
    assert EmpiricalRisk(batch).value(100.0 * tier + offset, beta) == pytest.approx(
        limit, rel=1e-12
    )
    accuracy = EmpiricalRisk(batch).accuracy(Tiers(tier, offset), beta)
    assert accuracy == EmpiricalRisk(batch).accuracy(100.0 * tier + offset, beta)


def test_limits_take_stacks_and_batch_axes():
    batches = [sample_words(TASK, 30, rng=i) for i in range(3)]
    alpha, beta = Tiers([[1, 0, 0], [0, 1, 2]]), np.ones(3)
    one = [EmpiricalRisk(b).value(alpha, beta) for b in batches]
    assert one[0].shape == (2,)
    stacked = EmpiricalRisk(batches).value(Tiers([1, 0, 0]), beta)
    assert stacked == pytest.approx([x[0] for x in one], rel=1e-14)


def test_sparse_words_have_the_same_limits_and_noise():
    dense = sample_words(TASK, 40, rng=0)
    from scipy.sparse import csr_array

    sparse = WordBatch(csr_array(dense.counts), task=TASK)
    beta = np.array([0.3, 1.0, -1.0])
    for alpha in (Tiers([0, 1, 0]), np.array([0.2, 1.0, -0.5])):
        a, b = EmpiricalRisk(dense), EmpiricalRisk(sparse)
        assert a.value(alpha, beta) == pytest.approx(b.value(alpha, beta), rel=1e-14)
        for x, y in zip(a.variance(alpha, beta), b.variance(alpha, beta), strict=True):
            assert x == pytest.approx(y, rel=1e-12, abs=1e-16)


def test_noise_keeps_its_digits_where_the_mean_is_large():
    # all residuals are 1e6 up to 1e-3: one pass of squares would lose the variance
    batch = WordBatch.from_words([[0], [1], [2], [1, 2]], task=Occurrence(3))
    beta = np.array([1e6 + 2, 1e6, 1e6 + 1e-3])
    losses = np.array([1e12, 1e12, (1e6 + 1e-3) ** 2, (1e6 + 5e-4) ** 2]) / 2
    found = EmpiricalRisk(batch).variance(np.zeros(3), beta).loss
    assert found == pytest.approx(losses.var(), rel=1e-6)


def test_noise_takes_one_pair_of_vectors():
    risk = EmpiricalRisk(sample_words(TASK, 5, rng=0))
    with pytest.raises(BadParameter, match="one pair"):
        risk.variance(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(BadParameter, match="last axis must be d"):
        risk.value(Tiers([0, 1]), np.zeros(3))


@pytest.mark.parametrize("seed", range(20))
def test_equal_words_of_any_weights_have_no_noise(seed):
    weights = np.random.default_rng(seed).random(7)
    words = WordBatch(np.tile([[2, 1, 1]], (7, 1)), np.ones(7), weights, task=Occurrence(3))
    found = EmpiricalRisk(words).variance(np.zeros(3), np.array([1.0, 5.0, 7.0]))
    assert all((np.abs(x) <= 1e-28).all() for x in found)
    assert found.standard_error(10)[0] <= 1e-14


def test_noise_beyond_the_doubles_is_refused():
    risk = EmpiricalRisk(sample_words(TASK, 20, rng=0))
    with pytest.raises(NotAvailable, match="noise beyond float64"):
        risk.variance(np.zeros(3), np.full(3, 1e80))


def test_standard_errors_of_a_total_below_the_weights_are_numbers():
    some = sample_words(Occurrence(5), 60, rng=0)
    weights = np.random.default_rng(0).random(60)
    risk = EmpiricalRisk(WordBatch(some.counts, some.labels, weights, task=some.task, total=0.1))
    errors = risk.variance(np.zeros(5), np.full(5, 3.0)).standard_error(4)
    assert all(np.isfinite(x).all() for x in errors)


@pytest.mark.parametrize("size", [1e60, 1e70])
def test_noise_within_the_doubles_is_given(size):
    found = EmpiricalRisk(sample_words(TASK, 20, rng=0)).variance(np.zeros(3), size * np.arange(3))
    unit = EmpiricalRisk(sample_words(TASK, 20, rng=0)).variance(np.zeros(3), 1e9 * np.arange(3))
    assert found.loss / size**4 == pytest.approx(unit.loss / 1e36, rel=1e-6)
    assert np.isfinite(found.beta).all()


def test_rows_of_tiers_are_the_single_ones():
    rng = np.random.default_rng(3)
    tier, offset, beta = rng.integers(-1, 2, (7, 3)), *rng.normal(size=(2, 7, 3))
    risk = EmpiricalRisk(sample_words(TASK, 40, rng=0))
    rows = risk.value_and_gradient(Tiers(tier, offset), beta)
    for i in range(7):
        one = risk.value_and_gradient(Tiers(tier[i], offset[i]), beta[i])
        for x, y in zip(rows, one, strict=True):
            np.testing.assert_allclose(x[i], y, rtol=1e-14)
