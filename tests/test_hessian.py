"""The output Hessian as an operator, against enumeration and against itself."""

import numpy as np
import pytest
from oracles import enumerate_words

from popgd import (
    And,
    BadParameter,
    Geometric,
    NotAvailable,
    Occurrence,
    PopulationRisk,
    Tiers,
    Words,
)
from popgd.hessian import OutputHessian

ENTRY = 1e-12
"""Relative accuracy of an entry: quadrature plus rounding."""


def random_case(d, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    return PopulationRisk(Occurrence(d)), spread * rng.normal(size=d), rng


def test_entries_are_those_of_enumerated_words():
    task = And(3, [0, 2], Words(Geometric(0.6), [0.5, 0.3, 0.2]))
    words = enumerate_words(task, 60)
    alpha = np.array([0.3, -2.0, 1.0])
    mass = words.counts * np.exp(alpha)
    gamma = mass / mass.sum(axis=1, keepdims=True)
    truth = (words.probability[:, None] * gamma).T @ gamma
    assert PopulationRisk(task).hessian_output(alpha).to_dense() == pytest.approx(truth, rel=ENTRY)


@pytest.mark.parametrize("gap", [0.0, 40.0, 300.0])
def test_entries_sum_to_one_at_any_gap(gap):
    risk, alpha, _ = random_case(20, 0)
    alpha[0] += gap
    assert risk.hessian_output(alpha).to_dense().sum() == pytest.approx(1, abs=ENTRY)


def test_the_operator_is_its_matrix():
    risk, alpha, rng = random_case(40, 1)
    hessian = risk.hessian_output(alpha)
    dense = hessian.to_dense()
    x = rng.normal(size=(40, 3))
    assert hessian @ x == pytest.approx(dense @ x, abs=1e-13)
    assert dense @ hessian.solve(x) == pytest.approx(x, abs=1e-10)
    assert hessian.shape == (40, 40)
    assert hessian.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=1e-10)


def test_both_ways_to_solve_agree():
    risk, alpha, rng = random_case(60, 2)
    hessian = risk.hessian_output(alpha)
    b = rng.normal(size=60)
    assert hessian._woodbury(b) == pytest.approx(hessian.solve(b), rel=1e-9)


def test_more_symbols_than_nodes_take_the_low_rank_way():
    risk, alpha, rng = random_case(700, 3, spread=1.0)
    hessian = risk.hessian_output(alpha)
    assert hessian.nodes < 700
    b = rng.normal(size=700)
    assert hessian.to_dense() @ hessian.solve(b) == pytest.approx(b, abs=1e-9)


def test_stored_and_recomputed_factors_are_the_same(monkeypatch):
    risk, alpha, rng = random_case(300, 4)
    b = rng.normal(size=300)
    stored = risk.hessian_output(alpha)
    monkeypatch.setattr("popgd.hessian.STORE", 0)
    recomputed = risk.hessian_output(alpha)
    risk.value(alpha, b)
    assert np.array_equal(stored @ b, recomputed @ b)


def test_a_limit_is_the_limit_of_large_gaps():
    rng = np.random.default_rng(5)
    tiers = Tiers(rng.integers(0, 3, size=12), rng.normal(size=12))
    risk = PopulationRisk(Occurrence(12))
    far = risk.hessian_output(tiers.tier * 80.0 + tiers.offset).to_dense()
    limit = risk.hessian_output(tiers)
    assert limit.to_dense() == pytest.approx(far, abs=1e-14)
    b = rng.normal(size=12)
    assert limit.to_dense() @ limit.solve(b) == pytest.approx(b, abs=1e-10)


def test_misuse_is_refused():
    risk, alpha, _ = random_case(5, 6)
    with pytest.raises(BadParameter, match="the Hessian takes one vector"):
        risk.hessian_output(np.zeros((2, 5)))
    with pytest.raises(BadParameter, match=r"x = .*has shape"):
        risk.hessian_output(alpha) @ np.zeros(4)
    with pytest.raises(BadParameter, match=r"b = .*NaN"):
        risk.hessian_output(alpha).solve(np.full(5, np.nan))
    with pytest.raises(NotAvailable, match="dense Hessian"):
        OutputHessian([], 5000).to_dense()
