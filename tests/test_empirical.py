"""The empirical risk: equal to a softmax word by word, at any weights; unbiased; least squares."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
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
)  # fmt: skip

# the promise: rounding only, relative to the sum of absolute terms
CLOSE = 1e-13
# sums of at most a few hundred terms, in which attention may be lost 1000-fold before a word
# is evaluated on its own
GRADED = 1e-11
SIGMAS = 5


def per_word(batch, alpha, beta, residual=None, digits=None):
    """Risk and gradients from one softmax a word, and the sums of absolute terms.

    The terms of dL/dalpha_i are r gamma_i (v_i - r) with v_i - r split at the reference symbol k:
    |v_i - v_k| counts too.

    With `digits`, in mpmath: the oracle for weights at which float64 subtraction fails.
    """
    real = float if digits is None else mpf
    exp = np.exp if digits is None else mp.exp
    counts = batch.counts if isinstance(batch.counts, np.ndarray) else batch.counts.toarray()
    mass = np.ones(len(batch)) if batch.weights is None else batch.weights
    d = batch.d
    out = [real(0), [real(0)] * d, [real(0)] * d, [real(0)] * d, [real(0)] * d]
    with mp.workdps(digits or 15):
        for row, label, w in zip(counts, batch.labels, mass):
            v = [real(x) for x in beta]
            if label > 0:
                v = [x - 2 for x in v]
                if residual is not None:
                    for s, x in zip(batch.task.targets, residual):
                        v[s] = real(x)
            finite = [i for i in range(d) if row[i] > 0]
            shift = max(alpha[i] for i in finite)
            a = {i: int(row[i]) * exp(real(alpha[i]) - real(shift)) for i in finite}
            total = sum(a.values())
            r = sum(v[i] * a[i] for i in finite) / total
            size = sum(abs(v[i]) * a[i] for i in finite) / total
            scale = real(w) / real(batch.total)
            # the reference symbol of the kernel is at most this far above the word's own
            near = [k for k in range(d) if alpha[k] <= shift + np.log(1024.0 * row.sum())]
            out[0] += scale * r * r / 2
            for i in finite:
                gamma = a[i] / total
                # v_i - r, as a sum of differences
                pull = sum((v[i] - v[j]) * a[j] for j in finite if j != i) / total
                pulls = sum(abs(v[i] - v[j]) * a[j] for j in finite if j != i) / total
                out[1][i] += scale * r * gamma * pull
                out[2][i] += scale * r * gamma
                out[3][i] += scale * size * gamma * (pulls + max(abs(v[i] - v[k]) for k in near))
                out[4][i] += scale * size * gamma
    return [np.array(x, dtype=float) for x in out]


@st.composite
def batches(draw, task=None):
    task = task or draw(tasks(largest=12))
    batch = sample_words(task, draw(st.integers(1, 30)), rng=draw(st.integers(0, 2**40)))
    if draw(st.booleans()):
        mass = np.array(
            draw(st.lists(st.floats(0.0, 3.0), min_size=len(batch), max_size=len(batch)))
        )
        mass[0] += 0.5
        labels = np.array(
            draw(st.lists(st.sampled_from([-1, 1]), min_size=len(batch), max_size=len(batch)))
        )
        batch = WordBatch(
            batch.counts, labels, mass, task=task, total=draw(st.sampled_from([None, 2.5]))
        )
    return batch


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
    assert abs(found.value - value) <= GRADED * np.abs(beta - 2).max() ** 2 + tiny


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


def test_weights_are_multiplicities():
    batch = sample_words(Occurrence(4), 50, rng=0)
    copies = np.random.default_rng(0).integers(0, 4, 50)
    many = WordBatch(np.repeat(batch.counts, copies, axis=0), np.repeat(batch.labels, copies))
    few = WordBatch(batch.counts, batch.labels, copies)
    rng = np.random.default_rng(1)
    at = rng.normal(size=(2, 4))
    for one, other in zip(
        EmpiricalRisk(many).value_and_gradient(*at), EmpiricalRisk(few).value_and_gradient(*at)
    ):
        np.testing.assert_allclose(one, other, rtol=CLOSE, atol=CLOSE)
    assert EmpiricalRisk(many).accuracy(*at) == pytest.approx(EmpiricalRisk(few).accuracy(*at))


def same(found, parts, n):
    for name, whole in found._asdict().items():
        assert whole.shape[0] == n
        one = np.stack([getattr(part, name) for part in parts])
        np.testing.assert_allclose(whole, one, rtol=CLOSE, atol=CLOSE, err_msg=name)


@pytest.mark.parametrize("rows", [2, 7, 70])
def test_many_weight_vectors_at_once(rows):
    batch = sample_words(Occurrence(9), 5000, rng=0)
    rng = np.random.default_rng(rows)
    alpha, beta = rng.normal(size=(2, rows, 9)) * 3
    alpha[0, 0] = 60.0
    alpha[1, 1] = -60.0
    risk = EmpiricalRisk(batch)
    same(
        risk.value_and_gradient(alpha, beta), list(map(risk.value_and_gradient, alpha, beta)), rows
    )
    np.testing.assert_allclose(
        risk.value(alpha, beta), list(map(risk.value, alpha, beta)), rtol=CLOSE
    )
    assert (risk.accuracy(alpha, beta) == list(map(risk.accuracy, alpha, beta))).all()
    grid = risk.value(alpha[:, None], beta)
    assert grid.shape == (rows, rows)
    assert grid[0, 1] == pytest.approx(risk.value(alpha[0], beta[1]), rel=CLOSE)


@pytest.mark.parametrize("n", [40, 700])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_stack_is_its_batches_one_by_one(n, weighted):
    task = Occurrence(6, 3)
    rng = np.random.default_rng(n)
    batches = [sample_words(task, n, rng=k) for k in range(8)]
    if weighted:
        batches = [WordBatch(b.counts, b.labels, rng.random(n), task=task) for b in batches]
    risk = EmpiricalRisk(batches)
    alpha, beta = rng.normal(size=(2, 8, 6))
    alpha[2, 3], alpha[4, 0], alpha[5, 5] = 50.0, 50.0, -300.0
    residual = beta[:, [3]] - 2
    singles = [EmpiricalRisk(b) for b in batches]
    parts = [one.value_and_gradient(*at) for one, *at in zip(singles, alpha, beta, residual)]
    same(risk.value_and_gradient(alpha, beta, residual), parts, 8)
    again = risk.value_and_gradient(np.stack([alpha] * 2), beta, residual)
    assert again.value.shape == (2, 8)
    np.testing.assert_allclose(again.value[1], [p.value for p in parts], rtol=CLOSE)
    assert risk.value(alpha[0], beta[0]).shape == (8,)
    accuracies = [one.accuracy(a, b) for one, a, b in zip(singles, alpha, beta)]
    np.testing.assert_allclose(risk.accuracy(alpha, beta), accuracies, rtol=CLOSE)
    minima = [one.minimize_output(a) for one, a in zip(singles, alpha)]
    np.testing.assert_allclose(
        risk.minimize_output(alpha).value, [m.value for m in minima], rtol=1e-9
    )


def test_stacks_may_differ_in_size():
    task = Occurrence(5)
    batches = [sample_words(task, n, rng=n) for n in (3, 50, 7)]
    value = EmpiricalRisk(batches).value(np.zeros(5), np.ones(5))
    assert value.tolist() == [EmpiricalRisk(b).value(np.zeros(5), np.ones(5)) for b in batches]


def test_large_batches_convert_block_by_block():
    batch = sample_words(Occurrence(50), 60_000, rng=0)
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, 50))
    whole = EmpiricalRisk(batch).value_and_gradient(alpha, beta)
    halves = [EmpiricalRisk(batch[i::2]).value_and_gradient(alpha, beta) for i in (0, 1)]
    for name in whole._fields:
        mean = np.mean([getattr(h, name) for h in halves], axis=0)
        np.testing.assert_allclose(getattr(whole, name), mean, rtol=1e-12, atol=1e-14)


def test_csr_and_dense_agree():
    task = Occurrence(1500, 5, Words(popgd.Poisson(6.0)))
    sparse = sample_words(task, 800, rng=0)
    assert sparse.is_sparse
    dense = WordBatch._trusted(sparse.counts.toarray(), sparse.labels, None, task)
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, 1500)) * 4
    two, one = EmpiricalRisk(dense), EmpiricalRisk(sparse)
    for a, b in ((alpha, beta), (np.stack([alpha] * 7), np.stack([beta] * 7))):
        for x, y in zip(one.value_and_gradient(a, b), two.value_and_gradient(a, b)):
            np.testing.assert_allclose(x, y, rtol=CLOSE, atol=CLOSE)
    assert one.accuracy(alpha, beta) == two.accuracy(alpha, beta)
    h, g = one.hessian_output(alpha), two.hessian_output(alpha)
    np.testing.assert_allclose(h.to_dense(), g.to_dense(), rtol=CLOSE, atol=0)
    np.testing.assert_allclose(h @ beta, g @ beta, rtol=1e-12, atol=CLOSE)


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


# least squares


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


# the Hessian


def test_hessian_is_the_second_derivative():
    batch = sample_words(Occurrence(7), 400, rng=0)
    rng = np.random.default_rng(0)
    alpha = rng.normal(size=7)
    risk = EmpiricalRisk(batch)
    h = risk.hessian_output(alpha)
    base = risk.value_and_gradient(alpha, np.zeros(7)).beta
    columns = [risk.value_and_gradient(alpha, e).beta - base for e in np.eye(7)]
    np.testing.assert_allclose(h.to_dense(), columns, rtol=0, atol=CLOSE)
    x = rng.normal(size=(7, 3))
    np.testing.assert_allclose(h @ x, h.to_dense() @ x, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(h @ x[:, 0], (h @ x)[:, 0], rtol=0, atol=CLOSE)
    np.testing.assert_allclose(h @ h.solve(x), x, rtol=0, atol=1e-10)
    assert h.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(h.to_dense())[-1], rel=1e-8)
    assert h.shape == (7, 7)


def test_hessian_of_a_singular_problem_solves_in_its_range():
    h = EmpiricalRisk(WordBatch([[1, 1, 0], [2, 2, 0]], [1, -1])).hessian_output(np.zeros(3))
    b = h @ np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(h @ h.solve(b), b, rtol=0, atol=CLOSE)


def test_hessian_refuses_what_it_cannot_take():
    risk = EmpiricalRisk(sample_words(Occurrence(3), 10, rng=0))
    with pytest.raises(BadParameter, match="one vector"):
        risk.hessian_output(np.zeros((2, 3)))
    with pytest.raises(BadParameter, match="has shape"):
        risk.hessian_output(np.zeros(3)) @ np.zeros(4)
    with pytest.raises(BadParameter, match="has shape"):
        risk.hessian_output(np.zeros(3)).solve(np.zeros(4))


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
