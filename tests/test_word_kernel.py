"""The finite-sample kernel: two labels in a block, output weights as two numbers."""

import numpy as np
import pytest

import popgd
from popgd import word_blocks, word_kernel
from popgd.word_kernel import correction

CLOSE = 1e-14
# Three digits of sixteen may go where labels share a reference.
SHARED = 1e-12
# Sums of terms of about 0.01 in another order.
ROUNDING = 1e-16


def risk_on(task, n=300, seed=0):
    return popgd.EmpiricalRisk(popgd.sample_words(task, n, rng=seed))


@pytest.mark.parametrize("gap", [-1.0, 0.0, 0.5, 1.5])
def test_residuals_tiny_on_both_labels_keep_their_digits(gap):
    task = popgd.Occurrence(4, 1, popgd.Words(popgd.FixedLength(1)))
    risk = risk_on(task)
    beta = np.array([3e-20, 2.0, -1e-20, 2e-20])
    residual = np.array([7e-20])
    # words are single symbols: no attention enters, and the residual is that of the symbol
    r = risk.batch.counts @ np.where(np.arange(4) == 1, residual, beta)
    found = risk.value_and_gradient(gap * (np.arange(4) == 1), beta, residual=residual)
    assert found.value == pytest.approx(np.mean(r**2) / 2, rel=CLOSE, abs=0)
    slope = (risk.batch.counts * r[:, None]).mean(axis=0)
    np.testing.assert_allclose(found.beta, slope, rtol=CLOSE, atol=0)


TASKS = [popgd.Occurrence(6, 2), popgd.And(5, [0, 3]), popgd.Or(7, [1, 2])]


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("gap", [-30.0, -3.0, 0.3, 6.0, 30.0])
@pytest.mark.parametrize("rows", [(), (1,), (3,), (20,)], ids=str)
def test_labels_together_and_apart_agree(task, gap, rows):
    rng = np.random.default_rng(5)
    alpha, beta = rng.normal(size=(2, *rows, task.d)) * 0.3
    alpha[..., task.targets[0]] += gap
    batch = popgd.sample_words(task, 300, rng=0)
    whole = popgd.EmpiricalRisk(batch).value_and_gradient(alpha, beta)
    parts = [0, 0, 0]
    for label in (1, -1):
        of = batch.labels == label
        some = popgd.WordBatch(batch.counts[of], batch.labels[of], task=task)
        found = popgd.EmpiricalRisk(some).value_and_gradient(alpha, beta)
        parts = [x + y * len(some) / len(batch) for x, y in zip(parts, found, strict=True)]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=CLOSE, atol=ROUNDING)


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("gap", [-3.0, 0.3, 3.0, 6.0])
@pytest.mark.parametrize("rows", [(), (7,)], ids=str)
def test_one_reference_or_two_make_no_difference(task, gap, rows, monkeypatch):
    rng = np.random.default_rng(5)
    alpha, beta = rng.normal(size=(2, *rows, task.d)) * 0.3
    alpha[..., task.targets[0]] += gap
    risk, parts = risk_on(task), []
    for apart in (-1.0, np.inf):
        monkeypatch.setattr(word_kernel, "APART", apart)
        parts.append(risk.value_and_gradient(alpha, beta))
    for one, other in zip(*parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=SHARED, atol=1e-15)


def test_labels_part_only_where_they_must():
    words = risk_on(popgd.Occurrence(6, 2))._blocks[0]
    for gap, sides in ((0.0, 1), (1.0, 1), (20.0, 2), (-20.0, 1)):
        seen, *_ = word_kernel.attended(words, gap * (np.arange(6) == 2))
        assert len(seen.sides) == sides


def test_a_cut_block_knows_its_labels_and_their_symbols():
    batch = popgd.sample_words(popgd.Occurrence(6, 2), 300, rng=0)
    (block,) = word_blocks.blocks(batch, batch.counts.size)
    pieces = list(block.parts(100))
    assert [len(piece.apart) for piece in (block, *pieces)] == [2, 1, 2, 1]
    assert sum(side.counts.shape[1] for piece in pieces for side in piece.apart) == 300
    for piece in pieces:
        for side in piece.together + piece.apart:
            for words, shift in side.labels:
                assert shift == (2.0 if piece.counts[2, words].all() else 0.0)
            assert not piece.counts[np.isinf(side.absent), side.words].any()
        held = [piece.counts[:, side.words].any(axis=1) for side in piece.apart]
        assert not np.isinf(piece.private[np.all(held, axis=0)]).any()


def test_a_correction_is_what_beta_cannot_hold():
    residual = np.array([1e-20, 4e-16])
    for off in (0.0, 1e-12):
        beta, delta = correction(np.array([0.5, 2.0, 2.0 + 4e-16]) + off, residual, [1, 2])
        assert delta[0] == 0
        assert ((beta - 2) + delta)[1:].tolist() == residual.tolist()


def test_a_small_beta_outweighs_the_rounding_of_its_residual():
    beta = np.array([1e-18, 3e-18])
    kept, delta = correction(beta, beta[:1] - 2, [0])
    assert kept.tolist() == beta.tolist()
    assert delta.tolist() == [0.0, 0.0]
    assert correction(beta, None, [0]) == (beta, None)


def test_a_residual_of_another_weight_is_refused():
    risk = risk_on(popgd.Occurrence(4, 1))
    with pytest.raises(popgd.BadParameter, match=r"residual = .*must be beta - 2"):
        risk.value(np.zeros(4), np.zeros(4), residual=[0.5])


def longdouble(batch, alpha, beta, residual, targets):
    """Risk, dL/dbeta and the sum of its absolute terms."""
    counts = batch.counts.toarray() if batch.is_sparse else batch.counts
    gamma = counts * np.exp(np.asarray(alpha, np.longdouble))
    gamma /= gamma.sum(axis=1, keepdims=True)
    positive = np.asarray(beta, np.longdouble) - 2
    positive[targets] = residual
    r = (gamma * np.where(batch.labels[:, None] > 0, positive, beta)).sum(axis=1)
    weights = np.ones(len(batch)) if batch.weights is None else batch.weights
    terms = weights[:, None] * r[:, None] * gamma / batch.total
    return (weights * r**2).sum() / 2 / batch.total, terms.sum(axis=0), abs(terms).sum(axis=0)


def wide():
    rng = np.random.default_rng(0)
    alpha, beta = np.zeros(1000), rng.normal(size=1000) * 1e-12
    alpha[7], beta[7] = 0.1, 1.0
    words = popgd.Words(popgd.FixedLength(8))
    batch = popgd.sample_words(popgd.Occurrence(1000, 0, words), 1000, rng=0)
    return batch, alpha, beta, beta[:1] - 2


LONE = popgd.Words(popgd.FixedLength(1))
TINY = {
    "positive words without the reference": (
        popgd.WordBatch.from_words([[0], [1], [2]], task=popgd.Or(3, [0, 1], LONE)),
        [0.0, 0.1, 0.0],
        [2.0, 0.5, 0.0],
        [1e-20, -1.5],
    ),
    "negative words without the reference": (
        popgd.WordBatch.from_words([[1], [2]], task=popgd.Occurrence(3)),
        [0.0, 0.0, 0.1],
        [2.0, 1e-12, 1.0],
        [0.0],
    ),
    "the reference in words of weight zero": (
        popgd.WordBatch.from_words([[0], [0, 1], [2]], task=popgd.Occurrence(3), weights=[1, 0, 0]),
        [0.0, 0.1, 0.0],
        [2.0, 0.5, 0.0],
        [1e-20],
    ),
    "a wide alphabet": wide(),
    "both residuals far below the spacing of doubles": (
        popgd.WordBatch.from_words([[0], [1], [2]], task=popgd.Or(3, [0, 1], LONE)),
        [0.1, 0.0, 0.0],
        [2.0, 2.0, 0.0],
        [1e-20, 1e-40],
    ),
}


@pytest.mark.parametrize("name", TINY)
def test_words_without_the_reference_keep_tiny_residuals(name):
    batch, alpha, beta, residual = TINY[name]
    value, slope, size = longdouble(batch, alpha, beta, residual, list(batch.task.targets))
    for risk in (popgd.EmpiricalRisk(batch), popgd.EmpiricalRisk([batch, batch])):
        found = risk.value_and_gradient(alpha, beta, residual=residual)
        assert np.ravel(found.value)[-1] == pytest.approx(float(value), rel=CLOSE, abs=0)
        off = abs(found.beta.reshape(-1, batch.d)[-1] - slope)
        assert (off <= CLOSE * size).all()
    rows = (np.tile(x, (7, 1)) for x in (alpha, beta, residual))
    found = popgd.EmpiricalRisk(batch).value_and_gradient(*rows)
    assert found.value == pytest.approx(float(value), rel=CLOSE, abs=0)
    assert (abs(found.beta - slope) <= CLOSE * size).all()


def test_attention_moves_by_the_difference_of_tiny_residuals():
    task = popgd.Or(3, [0, 1], popgd.Words(popgd.FixedLength(2)))
    risk = popgd.EmpiricalRisk(popgd.WordBatch.from_words([[0, 1], [0, 0], [2]], task=task))
    v = np.array([1e-20, 3e-20])
    found = risk.value_and_gradient(np.zeros(3), np.array([2.0, 2.0, 0.0]), residual=v)
    # of the word 01: r gamma_i (v_i - r), with r the mean of the two
    r = v.mean()
    np.testing.assert_allclose(found.alpha[:2], r * (v - r) / 2 / 3, rtol=1e-14)


def test_targets_may_converge_at_rates_of_their_own():
    task = popgd.Or(3, [0, 1], LONE)
    batch = popgd.WordBatch.from_words([[0]] * 3 + [[1], [2]], task=task)
    start = np.array([0.0, 0.1, 0.0]), np.zeros(3)
    run = popgd.train(popgd.EmpiricalRisk(batch), "O(400x)", *start, record_every=50)
    expected = -2 * np.array([0.4, 0.8]) ** run.step[:, None]
    np.testing.assert_allclose(run.residual, expected, rtol=1e-12)


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("off", [0.0, 4.5e-16, -1e-12, 5e-10])
def test_a_residual_counts_whatever_double_near_it_beta_is(off, many):
    task = popgd.Occurrence(3)
    batch = popgd.WordBatch.from_words([[0], [0, 0], [1], [2]], task=task)
    risk = popgd.EmpiricalRisk([batch] * many if many > 1 else batch)
    found = risk.value_and_gradient(np.zeros(3), [2 + off, 0, 0], residual=[1e-30])
    assert np.ravel(found.value)[-1] == pytest.approx(1e-60 / 4, rel=CLOSE, abs=0)
    assert found.beta.reshape(-1, 3)[-1, 0] == pytest.approx(1e-30 / 2, rel=CLOSE, abs=0)


def test_descent_follows_a_residual_below_the_spacing_of_doubles():
    batch = popgd.WordBatch.from_words([[0], [0, 0], [1], [2]], task=popgd.Occurrence(3))
    run = popgd.train(popgd.EmpiricalRisk(batch), "O(400x)", learning_rate=0.7, record_every=40)
    # dL/dbeta_0 is half the residual: each step leaves 0.65 of it
    expected = -2 * 0.65**run.step
    np.testing.assert_allclose(run.residual[:, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(run.risk, expected**2 / 4, rtol=1e-12)


def test_sums_beyond_the_doubles_are_infinite_in_a_stack_too():
    batch = popgd.sample_words(popgd.Occurrence(5), 50, rng=0)
    beta = np.array([1.7e308, -1.7e308, 1.7e308, -1.7e308, 1e308])
    assert popgd.EmpiricalRisk(batch).value(np.zeros(5), beta) == np.inf
    assert (popgd.EmpiricalRisk([batch, batch]).value(np.zeros(5), beta) == np.inf).all()
