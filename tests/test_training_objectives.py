"""Promises of training on objectives of other kinds: drawn words, stacks, streams, heads."""

import numpy as np
import pytest
from enumeration import EveryWord

from popgd.batches import MiniBatches, Online
from popgd.empirical import EmpiricalRisk
from popgd.errors import BadParameter
from popgd.flat import FlatObjective
from popgd.flow import gradient_flow
from popgd.languages import And, Occurrence, Or
from popgd.multihead import MultiHeadRisk
from popgd.objective import Evaluation
from popgd.population import PopulationRisk
from popgd.sampling import sample_words
from popgd.starts import random_start
from popgd.training import train

TASK = Occurrence(10)
PLAN = "O(1x) -> A(1x, lr=500) -> O(30x)"
# the same arithmetic in other shapes, so other orders of summation
TINY = 1e-12


def batches(many):
    return [sample_words(TASK, 300, k) for k in range(many)]


def test_a_stack_of_batches_is_so_many_runs_from_one_start():
    stack = batches(4)
    together = train(EmpiricalRisk(stack), PLAN, accuracy=True)
    assert together.risk.shape == together.accuracy.shape == (33, 4)
    for k, batch in enumerate(stack):
        alone = train(EmpiricalRisk(batch), PLAN)
        np.testing.assert_allclose(together.risk[:, k], alone.risk, rtol=1e-9)
    assert alone.path == "general"


def test_exact_and_drawn_words_run_the_same_plan():
    drawn = train(EmpiricalRisk(sample_words(TASK, 200_000, 0)), PLAN)
    exact = train(TASK, PLAN)
    np.testing.assert_allclose(drawn.risk[:2], exact.risk[:2], atol=0.01)
    assert drawn.attention_gap[2] > 0.9


def test_mini_batches_follow_the_seed_wherever_it_is_given():
    (batch,) = batches(1)
    options = {"monitor": TASK, "record_every": 10}
    by_train = train(MiniBatches(batch, 50), "joint(40x)", rng=3, **options)
    by_object = train(MiniBatches(batch, 50, rng=3), "joint(40x)", **options)
    np.testing.assert_array_equal(by_train.risk, by_object.risk)
    assert not np.array_equal(
        by_train.risk, train(MiniBatches(batch, 50), "joint(40x)", rng=4, **options).risk
    )
    watched = PopulationRisk(TASK).value(*by_train.final[:2], residual=by_train.final.residual)
    assert by_train.risk[-1] == pytest.approx(watched, rel=TINY)


def test_streams_of_fresh_words_are_so_many_runs():
    run = train(Online(TASK, 64, seeds=3, rng=0), "joint(20x)")
    alone = train(Online(TASK, 64, seeds=[1], rng=0), "joint(20x)")
    assert run.risk.shape == (21, 3)
    np.testing.assert_allclose(run.beta[-1, 1], alone.beta[-1, 0], rtol=1e-9)


def test_one_head_is_the_one_head_model():
    alpha, beta = random_start(3, rng=0)
    heads = train(MultiHeadRisk(Occurrence(3)), "O(2x) -> A(2x)", alpha[None], beta[None])
    plain = train(PopulationRisk(Occurrence(3)), "O(2x) -> A(2x)", alpha, beta)
    np.testing.assert_allclose(heads.risk, plain.risk, rtol=TINY)
    np.testing.assert_allclose(heads.alpha[:, 0], plain.alpha, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(heads.attention_gap[:, 0], plain.attention_gap, atol=TINY)


def test_several_heads_carry_the_residual_of_their_sum():
    alpha, beta = random_start(3, shape=2, rng=0)
    run = train(MultiHeadRisk(And(3, [0, 1])), "O(2x) -> A(1x, lr=10) -> O(inf)", alpha, beta)
    total = run.beta.sum(axis=-2)[..., [0, 1]]
    np.testing.assert_allclose(run.residual, total - 2, atol=TINY)
    assert run.attention_gap.shape == run.output_gap.shape == (len(run), 2)
    assert run.to_xarray(weights=True).alpha.dims == ("step", "head", "symbol")
    assert run.risk[-1] < run.risk[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: train(MultiHeadRisk(TASK), "O"), "must show the number of heads"),
        (lambda: train(MultiHeadRisk(TASK), "O", np.zeros(10)), "the last axis must be d = 10"),
        (lambda: train(EmpiricalRisk(batches(2)), "O", np.zeros((3, 10))), "do not broadcast"),
        (lambda: gradient_flow(EmpiricalRisk(batches(2)), 1.0), "one batch of words at a time"),
        (lambda: gradient_flow(MultiHeadRisk(TASK), 1.0), "with heads do not flow"),
        (lambda: FlatObjective(MultiHeadRisk(TASK)), "has heads"),
        (lambda: FlatObjective(EmpiricalRisk(batches(2))).fun(np.zeros(20)), "a stack of several"),
    ],
)
def test_malformed_calls(call, words):
    with pytest.raises(BadParameter, match=words):
        call()


def test_one_objective_serves_many_calls():
    objective = EveryWord(3)
    first, second = (train(objective, "joint(5x)").risk for _ in range(2))
    np.testing.assert_array_equal(first, second)


class Penalised(EmpiricalRisk):
    """A user's own objective, derived."""

    def value(self, alpha, beta, residual=None):
        return super().value(alpha, beta, residual) + (beta**2).sum(axis=-1) / 2

    def value_and_gradient(self, alpha, beta, residual=None):
        own = super().value_and_gradient(alpha, beta, residual)
        return Evaluation(own.value + (beta**2).sum(axis=-1) / 2, own.alpha, own.beta + beta)


class Counted:
    """A user's own objective, wrapped."""

    def __init__(self, inner):
        self.inner, self.calls = inner, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def value_and_gradient(self, alpha, beta, residual=None):
        self.calls += 1
        return self.inner.value_and_gradient(alpha, beta, residual)


def test_an_objective_of_the_users_own_is_asked_itself():
    words = sample_words(TASK, 50, rng=0)
    start = random_start(TASK.d, 0.3, rng=1)
    alone = train(Penalised(words), "joint(5x)", *start)
    together = train(Penalised(words), "joint(5x)", *(x[None] for x in start))
    np.testing.assert_allclose(alone.risk, together.risk[:, 0], rtol=1e-14)
    assert alone.risk[0] > EmpiricalRisk(words).value(*start) + 0.1
    counted = Counted(EmpiricalRisk(words))
    train(counted, "joint(5x) -> A(1x)", *start)
    assert counted.calls == 6


FEW = Or(4, [0, 1])


@pytest.mark.parametrize("monitor", [None, FEW], ids=["itself", "the population"])
@pytest.mark.parametrize("kind", ["exact", "drawn"])
def test_members_that_diverge_leave_the_others(kind, monitor):
    objective = PopulationRisk(FEW) if kind == "exact" else EmpiricalRisk(sample_words(FEW, 50, 0))
    start = random_start(4, 0.1, shape=(2,), rng=0)
    options = {"record_every": 50, "monitor": monitor, "accuracy": True}
    both = train(objective, "O(300x)", *start, learning_rate=np.array([0.5, 1e3]), **options)
    assert both.diverged.tolist() == [False, True]
    assert both.risk[-1, 1] == np.inf
    assert np.isfinite(both.beta).all()
    alone = train(objective, "O(300x)", *(x[0] for x in start), learning_rate=0.5, **options)
    np.testing.assert_allclose(both.risk[:, 0], alone.risk, rtol=1e-12)
    lost = train(objective, "O(300x)", *(x[1] for x in start), learning_rate=1e3, **options)
    assert lost.stop_reason == "diverged"


def test_diverged_has_the_shape_of_the_risk():
    stack = EmpiricalRisk([sample_words(TASK, 20, rng=k) for k in range(3)])
    for objective in (stack, Online(TASK, 20, seeds=3)):
        run = train(objective, "O(3x)", rng=0)
        assert run.diverged.shape == run.risk.shape[1:] == (3,)


class Cliff:
    """A risk that is not finite beyond a wall."""

    task = TASK

    def value_and_gradient(self, alpha, beta, residual=None):
        value = np.where(beta[..., 0] < -2, np.nan, beta[..., 0])
        slope = np.zeros(beta.shape)
        slope[..., 0] = 1
        return Evaluation(value, np.zeros(beta.shape), slope)

    def value(self, alpha, beta, residual=None):
        return self.value_and_gradient(alpha, beta, residual).value


def test_a_risk_that_is_no_number_is_a_run_that_diverged():
    run = train(Cliff(), "O(10x)", learning_rate=0.5)
    assert run.stop_reason == "diverged"
    assert run.risk[-1] == np.inf
    both = train(Cliff(), "O(10x)", learning_rate=np.array([0.1, 0.5]))
    assert both.diverged.tolist() == [False, True]
    assert both.step[-1] == 10


def test_beta_follows_a_residual_that_a_far_excursion_left_behind():
    words = EmpiricalRisk(sample_words(TASK, 50, rng=0))

    class Excursion:
        task = TASK

        def value_and_gradient(self, alpha, beta, residual=None):
            away = np.full(beta.shape, next(self.slopes))
            return Evaluation(1.0, np.zeros(beta.shape), away)

        def value(self, alpha, beta, residual=None):
            return 1.0

    # there, beta and its residual are rounded to different multiples of 6e-8
    there, far = Excursion(), 2.0**29 - 1
    there.slopes = iter([far, -far, 0.0, 0.0])
    run = train(there, "O(3x)", np.zeros(TASK.d), np.full(TASK.d, 1 / 7))
    assert abs(run.beta[-1, 0] - 2 - run.residual[-1, 0]) <= 1e-10
    assert words.value(run.alpha[-1], run.beta[-1], run.residual[-1]) >= 0
