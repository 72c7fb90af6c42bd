"""Many weight vectors, stacks of batches, blocks and CSR: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from empirical_words import CLOSE

import popgd
from popgd import (
    EmpiricalRisk,
    Occurrence,
    WordBatch,
    Words,
    sample_words,
)


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
