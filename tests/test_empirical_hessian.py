"""The output Hessian of the empirical risk as an operator."""

from __future__ import annotations

import numpy as np
import pytest
from empirical_words import CLOSE

from popgd import (
    BadParameter,
    EmpiricalRisk,
    Occurrence,
    WordBatch,
    sample_words,
)


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
