"""Promises of training: the loop is gradient descent, on any objective, and loses nothing."""

import math

import numpy as np
import pytest
from enumeration import EveryWord
from hypothesis import given, settings
from hypothesis import strategies as st

from popgd.errors import BadParameter, NotAvailable
from popgd.languages import Occurrence
from popgd.objective import Evaluation
from popgd.plans import Phase, Plan
from popgd.population import PopulationRisk
from popgd.starts import random_start
from popgd.symmetric import State
from popgd.training import train

# the same arithmetic in other shapes, so other orders of summation
TINY = 1e-13


def by_hand(objective, phases, alpha, beta, residual):
    """Gradient descent written out, as the definition says."""
    risks = [objective.value(alpha, beta, residual)]
    targets = list(objective.task.targets)
    for layer, steps, rate in phases:
        for _ in range(steps):
            _, by_alpha, by_beta = objective.value_and_gradient(alpha, beta, residual)
            if layer in "AJ":
                alpha = alpha - rate * by_alpha
            if layer in "OJ":
                move = rate * by_beta
                beta = beta - move
                residual = residual - move[..., targets]
            risks.append(objective.value(alpha, beta, residual))
    return np.array(risks), alpha, beta, residual


@pytest.mark.parametrize("targets", [(0,), (1, 3)])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_a_plan_is_the_hand_written_loop_bit_by_bit(targets, batch):
    objective = EveryWord(5, targets, longest=2)
    alpha, beta = random_start(5, shape=batch, rng=3)
    phases = [("O", 2, 0.5), ("A", 3, 7.0), ("J", 4, 0.25)]
    run = train(objective, [Phase(*p) for p in phases], alpha, beta)
    risks, *weights = by_hand(objective, phases, alpha, beta, beta[..., list(targets)] - 2)
    np.testing.assert_array_equal(run.risk, risks)
    for ours, theirs in zip(run.final, weights):
        np.testing.assert_array_equal(ours, theirs)
    assert [(p.start, p.stop, p.reason) for p in run.phases] == [
        (0, 2, "completed"), (2, 5, "completed"), (5, 9, "completed")
    ]  # fmt: skip
    assert run.phase_index.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_a_plan_on_the_exact_risk_is_the_hand_written_loop():
    objective = PopulationRisk(Occurrence(6, target=2))
    alpha, beta = random_start(6, rng=0)
    phases = [("O", 1, 2.0), ("A", 1, 40.0), ("O", 5, 1.0), ("J", 2, 0.5)]
    run = train(objective, [Phase(*p) for p in phases], alpha, beta)
    risks, a, b, _ = by_hand(objective, phases, alpha, beta, beta[[2]] - 2)
    assert run.path == "general"
    np.testing.assert_allclose(run.risk, risks, rtol=TINY)
    np.testing.assert_array_equal(run.final.alpha, a)
    np.testing.assert_array_equal(run.final.beta, b)


@given(st.integers(0, 12), st.integers(0, 12), st.sampled_from("OAJ"), st.integers(0, 99))
@settings(max_examples=25)
def test_t_steps_are_k_then_t_minus_k(k, rest, layer, seed):
    objective = EveryWord(3)
    alpha, beta = random_start(3, 1.0, rng=seed)
    once = train(objective, [Phase(layer, k + rest)], alpha, beta)
    first = train(objective, [Phase(layer, k)], alpha, beta)
    second = train(objective, [Phase(layer, rest)], *first.final)
    for ours, theirs in zip(once.final, second.final):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("record_every", [1, 3, 1000, "log", None])
@pytest.mark.parametrize("objective", [EveryWord(3), Occurrence(50)])
def test_until_stops_at_the_first_step_that_reaches_it(objective, record_every):
    rate = {"O": 1.0, "A": 30.0 if isinstance(objective, EveryWord) else 1e6}
    plan = "O(1x) -> A(1x) -> O(5000x) -> A"
    every = train(objective, "O(1x) -> A(1x) -> O(300x)", learning_rate=rate)
    limit = float(every.risk[40])
    run = train(objective, plan, until=limit, record_every=record_every, learning_rate=rate)
    assert run.stop_reason == "until"
    assert run.step[-1] == 40
    assert run.risk[-1] <= limit < every.risk[39]
    assert [p.reason for p in run.phases] == ["completed", "completed", "until"]


def test_until_may_hold_at_the_start():
    run = train(EveryWord(3), "O(5x)", until=100.0)
    assert (run.step.tolist(), run.stop_reason) == ([0], "until")


def test_until_in_a_batch_waits_for_every_member():
    rates = np.array([0.5, 1.0, 2.0])
    run = train(EveryWord(3), "O(500x)", learning_rate=rates, until=0.2)
    assert (run.risk[-1] <= 0.2).all()
    assert (run.risk[-2] > 0.2).any()


@pytest.mark.parametrize("objective", [EveryWord(3), Occurrence(5)])
def test_a_phase_without_count_ends_by_the_written_rule(objective):
    run = train(objective, "O -> A(1x)", tolerance=1e-6)
    (first, _) = run.phases
    risk = run.risk[: first.stop + 1]
    assert first.reason == "converged"
    change = np.abs(np.diff(risk))
    assert change[-1] <= 1e-6 * risk[0] < change[-2]
    capped = train(objective, "O", tolerance=0.0, max_steps=7)
    assert (capped.step[-1], capped.stop_reason) == (7, "max_steps")


def test_the_exact_minimum_is_below_any_descent():
    objective = EveryWord(4)
    alpha, beta = random_start(4, 1.0, rng=5)
    exact = train(objective, "O(inf)", alpha, beta)
    descent = train(objective, "O(3000x, lr=2)", alpha, beta, record_every=None)
    assert exact.stop_reason == "minimum"
    assert exact.step[-1] == 1
    assert exact.risk[-1] <= descent.risk[-1] + TINY
    np.testing.assert_allclose(exact.risk[-1], descent.risk[-1], rtol=1e-9)


@pytest.mark.parametrize("objective", [EveryWord(3), Occurrence(3)])
def test_divergence_stops_with_the_last_finite_weights(objective):
    run = train(objective, "O(10000x, lr=20) -> A(1x)", record_every=50)
    assert run.stop_reason == "diverged"
    assert len(run.phases) == 1
    assert run.diverged.all()
    assert np.isinf(run.risk[-1])
    assert np.isfinite(run.risk[:-1]).all()
    assert all(np.isfinite(part).all() for part in run.stored)


def test_one_diverging_member_leaves_the_others_alone():
    rates = np.array([0.5, 30.0, 1.0])
    together = train(EveryWord(3), "O(400x)", learning_rate=rates)
    assert together.diverged.tolist() == [False, True, False]
    assert together.stop_reason == "completed"
    for member in (0, 2):
        alone = train(EveryWord(3), "O(400x)", learning_rate=rates[member])
        np.testing.assert_allclose(together.risk[:, member], alone.risk, rtol=TINY)
    assert np.isinf(together.risk[-1, 1])
    assert np.isfinite(together.final.beta).all()


def test_learning_rates_of_every_kind():
    objective = EveryWord(3)
    alpha, beta = random_start(3, rng=1)
    plain = train(objective, "O(4x, lr=0.5) -> A(4x, lr=3)", alpha, beta)
    for rate in (
        {"O": 0.5, "A": 3.0},
        {"O": lambda t: 0.5, "A": 3},
        {"O": np.array(0.5), "A": np.float32(3)},
    ):
        run = train(objective, "O(4x) -> A(4x)", alpha, beta, learning_rate=rate)
        np.testing.assert_array_equal(run.risk, plain.risk)
    steps = []
    train(objective, "O(3x) -> A(2x)", learning_rate=lambda t: steps.append(t) or 0.1)
    assert steps == [0, 1, 2, 0, 1]


def test_a_grid_of_learning_rates_is_a_grid_of_runs():
    rates = {"O": np.array([[0.5], [1.0]]), "A": np.array([1e4, 1e5, 1e6])}
    grid = train(Occurrence(20), "O(1x) -> A(1x) -> O(50x)", learning_rate=rates)
    one = train(Occurrence(20), "O(1x, lr=0.5) -> A(1x, lr=1e6) -> O(50x, lr=0.5)")
    assert grid.risk.shape == (53, 2, 3)
    np.testing.assert_allclose(grid.risk[:, 0, 2], one.risk, rtol=TINY)


def test_records_fall_where_they_should():
    objective = EveryWord(3)
    fives = train(objective, "O(7x) -> A(6x)", record_every=5)
    assert fives.step.tolist() == [0, 5, 7, 10, 13]
    assert train(objective, "O(7x) -> A(6x)", record_every=None).step.tolist() == [0, 7, 13]
    log = train(objective, "O(1000x)", record_every="log").step
    assert log[0] == 0
    assert log[-1] == 1000
    assert log[:5].tolist() == [0, 1, 2, 3, 4]
    assert np.diff(log).max() < 120
    last = train(objective, "O(7x) -> A(6x)", record_every=5, keep_weights=False)
    np.testing.assert_array_equal(last.risk, fives.risk)
    assert last.alpha.shape == (1, 3)
    np.testing.assert_array_equal(last.final.beta, fives.final.beta)


class Noisy(EveryWord):
    """A stochastic objective: other words' weights at every call."""

    def __init__(self, rng=None):
        super().__init__(3)
        self.rng = rng

    def step_objective(self, rng):
        return Noisy(np.random.default_rng(rng))

    def value_and_gradient(self, alpha, beta, residual=None):
        value, a, b = super().value_and_gradient(alpha, beta, residual)
        return Evaluation(value, a, b + self.rng.normal(0, 0.1, b.shape))


def test_stochastic_objectives_draw_from_the_generator_given():
    one, two = (train(Noisy(), "joint(20x)", rng=7).risk for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, train(Noisy(), "joint(20x)", rng=8).risk)


def test_a_monitor_is_watched_in_place_of_the_descended_risk():
    small, large = EveryWord(3, longest=2), EveryWord(3, longest=4)
    run = train(small, "O(2x) -> A(1x) -> O(40x)", monitor=large, record_every=10, accuracy=True)
    for i in range(len(run)):
        seen = large.value(run.alpha[i], run.beta[i], run.residual[i])
        assert run.risk[i] == seen
        assert run.accuracy[i] == large.accuracy(run.alpha[i], run.beta[i])
    limit = float(run.risk[-2])
    stop = train(small, "O(2x) -> A(1x) -> O(80x)", monitor=large, record_every=10, until=limit)
    assert (stop.step[-1], stop.stop_reason) == (40, "until")


class Fails(EveryWord):
    def __init__(self, error, after):
        super().__init__(3)
        self.error, self.after = error, after

    def value_and_gradient(self, alpha, beta, residual=None):
        if self.calls == self.after:
            raise self.error
        return super().value_and_gradient(alpha, beta, residual)


def test_ctrl_c_returns_the_trajectory_so_far():
    with pytest.warns(UserWarning, match="interrupted: returning the trajectory to step 6"):
        run = train(Fails(KeyboardInterrupt(), 7), "O(5x) -> A(50x)", record_every=4)
    whole = train(EveryWord(3), "O(5x) -> A(1x)")
    assert run.stop_reason == "interrupted"
    assert run.step.tolist() == [0, 4, 5, 6]
    np.testing.assert_array_equal(run.final.alpha, whole.final.alpha)


def test_an_objective_that_fails_on_the_way_loses_nothing():
    with pytest.raises(NotAvailable) as error:
        train(Fails(NotAvailable("no answer here"), 7), "O(5x) -> A(50x)")
    partial = error.value.trajectory
    assert partial.step.tolist() == list(range(7))
    assert partial.stop_reason == "error"


def test_random_starts():
    alpha, beta = random_start(50, shape=(200,), rng=0)
    assert alpha.shape == beta.shape == (200, 50)
    assert alpha.std() == pytest.approx(0.1, rel=0.03)
    assert not np.array_equal(alpha, beta)
    np.testing.assert_array_equal(alpha, random_start(50, shape=200, rng=0)[0])
    assert random_start(3, 0.0)[0].tolist() == [0.0] * 3


TASK = Occurrence(3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train(3, "O"), "objective = 3: is no objective; pass for example"),
        (lambda: train(TASK, ""), "expected a layer"),
        (lambda: train(TASK, "O", [0.0, 1.0]), "the last axis must be d = 3"),
        (lambda: train(TASK, "O", [0.0, math.nan, 0.0]), r"alpha\[1\] = nan"),
        (lambda: train(TASK, "O", np.zeros((2, 3)), np.zeros((4, 3))), "do not broadcast"),
        (lambda: train(TASK, "O", np.zeros((0, 3))), "a batch axis is empty"),
        (lambda: train(TASK, "O", learning_rate=[]), "a batch axis is empty"),
        (lambda: train(TASK, "O", residual=[1.0, 2.0]), "the last axis must be d = 1"),
        (lambda: train(TASK, "O", State(0, 0, 0, 0), [0.0] * 3), "a State is a whole start"),
        (lambda: train(TASK, "O", State(math.inf, 0, 0, 0)), "need finite weights"),
        (lambda: train(EveryWord(3), "O", State(0, 0, 0, 0)), "no PopulationRisk"),
        (lambda: train(TASK, "O", learning_rate=0), "finite step sizes > 0"),
        (lambda: train(TASK, "O", learning_rate=-1.0), "finite step sizes > 0"),
        (lambda: train(TASK, "O", learning_rate=math.inf), "finite step sizes > 0"),
        (lambda: train(TASK, "O", learning_rate="big"), "must hold real numbers"),
        (lambda: train(TASK, "O", learning_rate={"X": 1}), "names no layers"),
        (lambda: train(TASK, "A", learning_rate={"O": 1}), "no step size for layer 'A'"),
        (lambda: train(TASK, "O(3x)", learning_rate=lambda t: -1), r"\(0\) = -1: must lie in"),
        (lambda: train(TASK, "O(3x)", learning_rate=lambda t: math.nan), "is not a number"),
        (lambda: train(TASK, "O", record_every=0), "integer >= 1, 'log'"),
        (lambda: train(TASK, "O", record_every="often"), "is no spacing"),
        (lambda: train(TASK, "O(1e12x)"), "would keep 1e.12 records"),
        (lambda: train(TASK, "O(1e30x)"), "more than 2.62 steps"),
        (lambda: train(TASK, "O", until=-1), "until = -1"),
        (lambda: train(TASK, "O", until=math.nan), "until = nan: is not a number"),
        (lambda: train(TASK, "O", tolerance=2), "tolerance = 2"),
        (lambda: train(TASK, "O", max_steps=0), "max_steps = 0"),
        (lambda: train(TASK, "O", path="fast"), "choose one of 'auto', 'general', 'symmetric'"),
        (lambda: train(TASK, "O", monitor=3), "monitor = 3: is no objective"),
        (lambda: train(TASK, "O", monitor=Occurrence(4)), "has d = 4"),
        (lambda: train(TASK, "O", rng=-1), "seed must be >= 0"),
        (lambda: random_start(1), "d = 1"),
        (lambda: random_start(3, -0.1), "scale = -0.1"),
        (lambda: random_start(3, shape=(2, 0)), "shape = 0"),
    ],
)
def test_malformed_calls(call, words):
    with pytest.raises(BadParameter, match=words):
        call()


def test_a_plan_object_is_as_good_as_its_text():
    plan = Plan([Phase("output", 2), Phase("attention", 1)])
    np.testing.assert_array_equal(
        train(EveryWord(3), plan).risk, train(EveryWord(3), "O(2x)->A(1x)").risk
    )
