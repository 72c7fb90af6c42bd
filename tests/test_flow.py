"""Promises of gradient flow and the flat-vector adapter."""

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from enumeration import EveryWord

from popgd.errors import BadParameter, PrecisionExhausted
from popgd.flat import FlatObjective
from popgd.flow import gradient_flow
from popgd.languages import Occurrence
from popgd.population import PopulationRisk
from popgd.starts import random_start
from popgd.symmetric import State
from popgd.symmetric import minimize_output as symmetric_minimum
from popgd.training import train

# the default rtol 1e-8 is a local tolerance; the returned solve runs at a hundredth of it
FLOW = 1e-8


@pytest.mark.parametrize("method", ["LSODA", "BDF", "DOP853"])
def test_output_flow_is_the_matrix_exponential(method):
    objective = EveryWord(4, longest=2)
    alpha, beta = random_start(4, 1.0, rng=2)
    times = [0.0, 0.3, 5.0, 80.0]
    run = gradient_flow(objective, times, alpha, beta, layers="O", method=method)
    hessian, best = objective.hessian_output(alpha), objective.minimize_output(alpha)
    for i, t in enumerate(times):
        exact = best.beta + scipy.linalg.expm(-hessian * t) @ (beta - best.beta)
        np.testing.assert_allclose(run.beta[i], exact, atol=FLOW)
    np.testing.assert_array_equal(run.alpha, np.broadcast_to(alpha, (4, 4)))


def test_the_estimated_error_covers_the_true_one():
    objective = EveryWord(4)
    alpha, beta = random_start(4, 1.0, rng=2)
    times = np.linspace(0, 30, 16)
    run = gradient_flow(objective, times, alpha, beta, layers="O", rtol=1e-6)
    hessian, best = objective.hessian_output(alpha), objective.minimize_output(alpha)
    exact = [best.beta + scipy.linalg.expm(-hessian * t) @ (beta - best.beta) for t in times]
    truth = np.array([objective.value(alpha, b) for b in exact])
    assert (np.abs(run.risk - truth) <= run.risk_error + 1e-14).all()
    assert run.risk_error.max() < 1e-5


def test_small_steps_approach_the_flow_at_first_order():
    objective = EveryWord(3)
    alpha, beta = random_start(3, 1.0, rng=0)
    exact = gradient_flow(objective, [4.0], alpha, beta).risk[-1]
    errors = [
        abs(train(objective, f"joint({4 * n}x, lr={1 / n})", alpha, beta).risk[-1] - exact)
        for n in (50, 100, 200)
    ]
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 2, rtol=0.05)


def test_the_risk_falls_along_a_flow_and_alpha_keeps_its_sum():
    run = gradient_flow(EveryWord(5, longest=4), 40.0, *random_start(5, 0.1, rng=1))
    assert len(run) == 201
    assert (np.diff(run.risk) <= 1e-12).all()
    np.testing.assert_allclose(run.alpha.sum(axis=-1), run.alpha[0].sum(), atol=FLOW)


def test_the_symmetric_flow_is_the_general_flow():
    times = [0.0, 1.0, 10.0]
    fast = gradient_flow(Occurrence(6, 2), times)
    slow = gradient_flow(Occurrence(6, 2), times, path="general")
    assert (fast.path, slow.path) == ("symmetric", "general")
    np.testing.assert_allclose(fast.risk, slow.risk, rtol=1e-7)
    np.testing.assert_allclose(fast.alpha, slow.alpha, atol=1e-6)


def test_a_stiff_flow_reaches_the_exact_minimum():
    d = 10**6
    run = gradient_flow(Occurrence(d), [0.0, 1.0, 1e4, 1e9], State(20.0, 0.0, 0.0, 0.0), layers="O")
    best = symmetric_minimum(20.0, d)
    np.testing.assert_allclose(run.risk[-1], best.value, rtol=1e-9)


def test_tiny_risks_keep_their_digits_along_a_flow():
    run = gradient_flow(
        Occurrence(3), [0.0, 400.0], State(60.0, 0.0, 1.0, 0.0), layers="O", atol=1e-30
    )
    np.testing.assert_allclose(run.risk[-1], symmetric_minimum(60.0, 3).value, rtol=1e-4)


def test_batches_are_solved_one_by_one():
    alpha, beta = random_start(3, shape=(2, 2), rng=4)
    run = gradient_flow(EveryWord(3), [0.0, 2.0], alpha, beta)
    alone = gradient_flow(EveryWord(3), [0.0, 2.0], alpha[1, 0], beta[1, 0])
    assert run.risk.shape == (2, 2, 2)
    np.testing.assert_allclose(run.risk[:, 1, 0], alone.risk, rtol=1e-14)
    np.testing.assert_array_equal(run.beta[:, 1, 0], alone.beta)


def test_attention_flow_leaves_the_output_alone():
    alpha, beta = random_start(3, 1.0, rng=4)
    run = gradient_flow(EveryWord(3), [1.0, 2.0], alpha, beta, layers="A")
    np.testing.assert_array_equal(run.beta, [beta, beta])
    assert run.time.tolist() == [1.0, 2.0]
    assert run.risk[1] < run.risk[0]


class Broken(EveryWord):
    def value_and_gradient(self, alpha, beta, residual=None):
        value, a, b = super().value_and_gradient(alpha, beta, residual)
        return value, a * math.nan, b * math.nan


def test_a_flow_that_leaves_the_finite_numbers_says_when():
    with pytest.raises(PrecisionExhausted, match="not finite at t = 0; end before"):
        gradient_flow(Broken(3), [0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gradient_flow(3, 1.0), "is no objective"),
        (lambda: gradient_flow(EveryWord(3), 0.0), "end time must be > 0"),
        (lambda: gradient_flow(EveryWord(3), -1.0), "every entry must lie in"),
        (lambda: gradient_flow(EveryWord(3), math.nan), "holds NaN"),
        (lambda: gradient_flow(EveryWord(3), []), "must be increasing"),
        (lambda: gradient_flow(EveryWord(3), [0.0, 2.0, 1.0]), "must be increasing"),
        (lambda: gradient_flow(EveryWord(3), 1.0, layers="B"), "choose one of 'joint', 'A', 'O'"),
        (lambda: gradient_flow(EveryWord(3), 1.0, method="Euler"), "choose one of 'LSODA'"),
        (lambda: gradient_flow(EveryWord(3), 1.0, rtol=1e-16), "rtol = 1e-16"),
        (lambda: gradient_flow(EveryWord(3), 1.0, atol=0.0), "atol = 0.0"),
        (lambda: gradient_flow(EveryWord(3), 1.0, path="symmetric"), "does not apply"),
        (lambda: gradient_flow(EveryWord(3), 1.0, [0.0]), "the last axis must be d = 3"),
        (lambda: FlatObjective(3), "is no objective"),
        (lambda: FlatObjective(EveryWord(3), "B"), "choose one of"),
        (lambda: FlatObjective(EveryWord(3), alpha=np.zeros((2, 3))), "one point"),
        (lambda: FlatObjective(EveryWord(3))(np.zeros(5)), "the last axis must be d = 6"),
        (lambda: FlatObjective(EveryWord(3)).unpack(np.zeros((2, 6))), "must be one vector"),
    ],
)
def test_malformed_calls(call, words):
    with pytest.raises(BadParameter, match=words):
        call()


@pytest.mark.parametrize("layers", ["joint", "A", "O"])
def test_flat_gradients_are_the_slopes_of_the_flat_risk(layers):
    flat = FlatObjective(EveryWord(3), layers, *random_start(3, 1.0, rng=1))
    approximate = scipy.optimize.approx_fprime(flat.x0, flat.fun, 1e-6)
    np.testing.assert_allclose(flat.jac(flat.x0), approximate, atol=1e-5)
    assert flat.size == len(flat.x0) == (6 if layers == "joint" else 3)


@pytest.mark.parametrize("layers", ["joint", "A", "O"])
def test_packing_comes_back(layers):
    alpha, beta = random_start(3, 1.0, rng=1)
    flat = FlatObjective(EveryWord(3, (1,)), layers, alpha, beta)
    a, b, residual = flat.unpack(flat.x0)
    np.testing.assert_allclose(a, alpha, rtol=1e-15)
    np.testing.assert_allclose(b, beta, rtol=1e-15)
    np.testing.assert_allclose(residual, beta[[1]] - 2, rtol=1e-15)


def test_scipy_minimizes_the_exact_risk():
    objective = PopulationRisk(Occurrence(4))
    flat = FlatObjective(objective, "O", alpha=[1.0, 0.0, 0.3, -0.2])
    best = scipy.optimize.minimize(flat, flat.x0, jac=True, method="BFGS", options={"gtol": 1e-9})
    exact = objective.minimize_output([1.0, 0.0, 0.3, -0.2])
    assert best.fun == pytest.approx(exact.value, rel=1e-9)
    separate = scipy.optimize.minimize(flat.fun, flat.x0, jac=flat.jac, method="BFGS", tol=1e-9)
    assert separate.fun == best.fun


def test_fun_and_jac_at_one_point_cost_one_evaluation():
    objective = EveryWord(3)
    flat = FlatObjective(objective)
    flat.fun(flat.x0), flat.jac(flat.x0), flat(flat.x0)
    assert objective.calls == 1
    flat.jac(flat.x0)[:] = 0.0
    assert np.abs(flat.jac(flat.x0)).max() > 0


def test_a_flat_point_near_the_optimum_is_not_rounded():
    objective = PopulationRisk(Occurrence(3))
    flat = FlatObjective(objective, "O", alpha=[60.0, 0.0, 0.0])
    best = objective.minimize_output([60.0, 0.0, 0.0])
    x = flat.pack([60.0, 0.0, 0.0], best.beta, best.residual)
    assert flat.fun(x) == pytest.approx(best.value, rel=1e-12)


def test_solvers_are_imported_when_used():
    code = (
        "import sys, popgd.training, popgd.flow, popgd.flat;"
        "print([m for m in ('scipy.integrate', 'scipy.optimize', 'xarray') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
