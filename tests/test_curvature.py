"""The full Hessian of the population risk, against differences of gradients and by words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import direct, enumerate_words
from strategies import tasks

from popgd import And, Occurrence, Or, PopulationRisk, Words
from popgd.curvature import curvature
from popgd.words import UniformLength

DIFFERENCES = 1e-10
"""Error of five-point differences at step 3e-3: truncation h^4, and rounding of 1e-13 over h."""

STEP = 3e-3


def by_differences(gradient, x):
    """Rows dG/dx_i by the five-point rule."""
    off = STEP * np.eye(x.size)
    one = gradient(x + off) - gradient(x - off)
    two = gradient(x + 2 * off) - gradient(x - 2 * off)
    return (8 * one - two) / (12 * STEP)


def hessian(task, x):
    d = task.d
    return curvature(task, x[:d], x[d:], x[d:][list(task.targets)] - 2)


@settings(deadline=None, max_examples=15)
@given(tasks(largest=6), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 3.0]))
def test_the_hessian_is_the_derivative_of_the_exact_gradient(task, seed, spread):
    x = spread * np.random.default_rng(seed).normal(size=2 * task.d)
    risk = PopulationRisk(task)

    def gradient(rows):
        found = risk.value_and_gradient(rows[:, : task.d], rows[:, task.d :])
        return np.concatenate([found.alpha, found.beta], axis=1)

    room = DIFFERENCES * (1 + np.abs(x).max()) ** 2
    np.testing.assert_allclose(hessian(task, x), by_differences(gradient, x), rtol=0, atol=room)


@pytest.mark.parametrize(
    "task",
    [
        Occurrence(3, 1),
        Or(3, [0, 2], Words(UniformLength(5), [0.2, 0.3, 0.5])),
        And(3, [0, 1], Words(UniformLength(6))),
    ],
    ids=repr,
)
def test_the_hessian_is_that_of_the_words_one_by_one(task):
    words = enumerate_words(task, 70)
    x = np.random.default_rng(0).normal(size=6)

    def gradient(rows):
        found = [direct(task, words, row[:3], row[3:]) for row in rows]
        return np.array([np.concatenate([f.alpha, f.beta]) for f in found])

    np.testing.assert_allclose(
        hessian(task, x), by_differences(gradient, x), rtol=0, atol=DIFFERENCES
    )


@settings(deadline=None, max_examples=15)
@given(tasks(largest=8), st.integers(0, 2**32 - 1))
def test_symmetries_of_the_hessian(task, seed):
    d = task.d
    x = np.random.default_rng(seed).normal(size=2 * d)
    found = hessian(task, x)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-14)
    # a common shift of the attention changes nothing
    np.testing.assert_allclose(found[:, :d].sum(axis=1), 0, rtol=0, atol=1e-12)
    output = PopulationRisk(task).hessian_output(x[:d]).to_dense()
    np.testing.assert_allclose(found[d:, d:], output, rtol=0, atol=1e-13)


def test_the_residual_replaces_the_rounded_difference():
    """At beta = 2 e_s and a large gap the residual decides alone."""
    task = Occurrence(4)
    alpha, beta = np.array([36.0, 0, 0, 0]), np.array([2.0, 0, 0, 0])
    held = curvature(task, alpha, beta, np.array([-1e-20]))
    rounded = curvature(task, alpha, beta, np.zeros(1))
    # dL/dbeta_s moves with alpha_s like the residual
    assert held[0, 4] != rounded[0, 4]
    assert np.isfinite(held).all()
