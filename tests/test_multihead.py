"""Several heads against words enumerated one by one, one head, and proofs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import (
    And,
    BadParameter,
    Geometric,
    NotAvailable,
    Occurrence,
    Or,
    PopulationRisk,
    Tiers,
    Words,
)
from popgd import certified_multihead as certified
from popgd.ball import Enclosure, adaptive, ball, enclose, precision
from popgd.multihead import MultiHeadRisk
from popgd.multihead_minimum import secular

GRADIENT = 1e-11
"""Gradients: 1e-12 relative in each term; weights here are of order one."""

LENGTH = {2: 1, 3: 50, 4: 24}
"""Longest words enumerated; what is dropped is added to the tolerance."""


class Enumerated:
    """Averages over all words of up to LENGTH[d] symbols, by their counts."""

    def __init__(self, task, p=None):
        d, longest = task.d, LENGTH[task.d]
        p = float(task.words.length.p)
        rows = [
            c
            for m in range(1, longest + 1)
            for c in itertools.product(range(m + 1), repeat=d - 1)
            if sum(c) <= m
            for c in [(*c, m - sum(c))]
        ]
        self.counts = np.array(rows, dtype=float)
        length = self.counts.sum(axis=1)
        logs = np.array([math.lgamma(m + 1) for m in length]) - np.array(
            [sum(math.lgamma(x + 1) for x in row) for row in rows]
        )
        pi = task.words.probabilities(d)
        self.weight = np.exp(logs + self.counts @ np.log(pi)) * p * (1 - p) ** (length - 1)
        self.label = task.labels(self.counts)
        self.dropped = 1 - self.weight.sum()

    def __call__(self, alpha, beta):
        mass = np.exp(alpha)[:, None, :] * self.counts
        gamma = mass / mass.sum(axis=-1, keepdims=True)
        own = (beta[:, None, :] * gamma).sum(axis=-1)
        error = own.sum(axis=0) - 1 - self.label
        pull = self.weight * error
        by_beta = np.einsum("w,hwi->hi", pull, gamma)
        by_alpha = np.einsum("w,hwi,hwi->hi", pull, gamma, beta[:, None, :] - own[..., None])
        return (self.weight @ error**2) / 2, by_alpha, by_beta


TASKS = [
    Occurrence(2),
    Occurrence(3, 1),
    Or(3, [0, 2], Words(Geometric(0.5))),
    And(3, [0, 1], Words(Geometric(0.5))),
    Occurrence(4, 3, Words(Geometric(0.6), [0.1, 0.2, 0.3, 0.4])),
]
WORDS = {id(task): Enumerated(task) for task in TASKS}


def draw_heads(seed, heads, d, size=1.5):
    rng = np.random.default_rng(seed)
    return size * rng.normal(size=(heads, d)), rng.normal(size=(heads, d))


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_value_lies_within_its_bound(task, heads):
    words, risk = WORDS[id(task)], MultiHeadRisk(task)
    for seed in range(2):
        alpha, beta = draw_heads(seed, heads, task.d)
        truth, _, _ = words(alpha, beta)
        rounding = 1e-13 + abs(words.dropped) * (2 + np.abs(beta).max() * heads) ** 2
        bound = risk.error_bound(alpha, beta)
        assert abs(risk.value(alpha, beta) - truth) <= bound + rounding
        assert bound <= 1e-10  # sharp: weights are of order one


@pytest.mark.parametrize("task", TASKS, ids=repr)
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_gradients_are_those_of_the_words(task, heads):
    words, risk = WORDS[id(task)], MultiHeadRisk(task)
    alpha, beta = draw_heads(7, heads, task.d)
    truth, by_alpha, by_beta = words(alpha, beta)
    slack = GRADIENT + 40 * abs(words.dropped)
    found = risk.value_and_gradient(alpha, beta)
    assert found.value == pytest.approx(truth, abs=slack)
    assert np.abs(found.alpha - by_alpha).max() <= slack
    assert np.abs(found.beta - by_beta).max() <= slack
    # attention weights of a head are shift invariant
    assert np.abs(found.alpha.sum(axis=1)).max() <= GRADIENT


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 8), st.integers(0, 1000), st.floats(0, 8))
@example(2, 0, 0.0)
def test_one_head_is_population_risk(d, seed, size):
    alpha, beta = draw_heads(seed, 1, d, size)
    many, one = MultiHeadRisk(Occurrence(d)), PopulationRisk(Occurrence(d))
    assert many.value(alpha, beta) == one.value(alpha[0], beta[0])
    assert many.error_bound(alpha, beta) >= one.error_bound(alpha[0], beta[0])
    a, b = many.value_and_gradient(alpha, beta), one.value_and_gradient(alpha[0], beta[0])
    assert (a.alpha[0] == b.alpha).all()
    assert (a.beta[0] == b.beta).all()
    least = one.minimize_output(alpha[0])
    assert many.minimize_output(alpha).value == pytest.approx(least.value, rel=1e-8, abs=1e-25)


@pytest.mark.parametrize("gap", [0.0, 3.0, 36.0])
def test_identical_heads_are_one_head(gap):
    d = 20
    alpha, beta = np.zeros(d), np.zeros(d)
    alpha[0], beta[0] = gap, 2.0
    one, many = PopulationRisk(Occurrence(d)), MultiHeadRisk(Occurrence(d))
    split = np.array([[0.7], [0.3], [1.0]]) * beta / 2
    three = many.value(np.tile(alpha, (3, 1)), split)
    assert three == pytest.approx(one.value(alpha, beta), rel=1e-9)
    # a perfect fit is not spoiled by cancellation: at gap 36 the risk is 1e-29
    assert many.error_bound(np.tile(alpha, (3, 1)), split) <= 1e-9 * three
    # training from identical heads keeps them identical
    found = many.value_and_gradient(np.tile(alpha, (3, 1)), np.tile(beta / 3, (3, 1)))
    assert np.abs(found.alpha - found.alpha[0]).max() <= 1e-12 * np.abs(found.alpha).max() + 1e-40
    assert found.beta[1] == pytest.approx(found.beta[0], rel=1e-9, abs=1e-40)


def test_residual_holds_what_beta_cannot():
    d = 5
    alpha = np.zeros((2, d))
    alpha[:, 0] = 30.0
    risk = MultiHeadRisk(Occurrence(d))
    least = risk.minimize_output(alpha)
    one = PopulationRisk(Occurrence(d)).minimize_output(alpha[0])
    assert least.value == pytest.approx(one.value, rel=1e-9)
    assert least.residual[0] == pytest.approx(one.residual[0], rel=1e-6)
    assert risk.value(alpha, least.beta, least.residual) == pytest.approx(one.value, rel=1e-9)


@pytest.mark.parametrize(
    "orders", [[[1, 0, 0], [0, 0, 1]], [[2, 1, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 2]]]
)
def test_tiers_are_limits(orders):
    orders = np.array(orders)
    alpha, beta = draw_heads(3, 2, 3)
    risk = MultiHeadRisk(Occurrence(3))
    limit = risk.value_and_gradient(Tiers(orders, alpha), beta)
    near = risk.value_and_gradient(alpha + 45.0 * orders, beta)
    assert near.value == pytest.approx(limit.value, rel=1e-11)
    assert np.abs(near.beta - limit.beta).max() <= GRADIENT


def test_batches_and_shapes():
    risk = MultiHeadRisk(Occurrence(3))
    alpha, beta = draw_heads(1, 2, 3)
    batch = risk.value(np.stack([alpha, 2 * alpha]), beta)
    assert batch.shape == (2,)
    assert batch[1] == risk.value(2 * alpha, beta)
    assert isinstance(risk.value(alpha, beta), float)
    both = risk.value_and_gradient(np.stack([[alpha], [alpha]]), beta)
    assert both.alpha.shape == (2, 1, 2, 3)
    assert risk.minimize_output(np.stack([alpha, alpha])).beta.shape == (2, 2, 3)
    assert risk.value(np.zeros((0, 2, 3)), beta).shape == (0,)
    positive, negative = risk.split(alpha, beta)
    assert positive + negative == pytest.approx(risk.value(alpha, beta), rel=1e-15)
    assert risk.mse(alpha, beta) == 2 * risk.value(alpha, beta)


def test_hessian_is_that_of_the_words():
    words = WORDS[id(TASKS[1])]
    alpha, _ = draw_heads(5, 2, 3)
    mass = np.exp(alpha)[:, None, :] * words.counts
    gamma = mass / mass.sum(axis=-1, keepdims=True)
    truth = np.einsum("w,hwi,kwj->hikj", words.weight, gamma, gamma)
    assert np.abs(MultiHeadRisk(TASKS[1]).hessian_output(alpha) - truth).max() <= 1e-12


@pytest.mark.parametrize("radius", [1e-3, 0.5, 1.3, 100.0])
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_constrained_minimum_is_optimal(heads, radius):
    d = 6
    risk = MultiHeadRisk(Occurrence(d))
    alpha, _ = draw_heads(2, heads, d)
    found = risk.minimize_output(alpha, radius)
    norm = np.linalg.norm(found.beta)
    assert norm <= radius * (1 + 1e-12)
    slope = risk.value_and_gradient(alpha, found.beta, found.residual).beta
    # convexity: no B in the ball lies below this
    bound = found.value - (slope * found.beta).sum() - radius * np.linalg.norm(slope)
    assert bound == pytest.approx(found.value, abs=1e-9)
    assert np.abs(slope + found.multiplier * found.beta).max() <= 1e-9
    assert (found.multiplier > 0) == (norm > radius * (1 - 1e-6))


def test_multiplicity_is_the_norm_of_single_symbols():
    task = Occurrence(6)
    alpha = np.array([[1.0, 0, 0, 0, 2, 2], [0.0, 1, 1, 1, 0, 0]])
    full = MultiHeadRisk(task).minimize_output(alpha, 1.2)
    lumped = Occurrence(3, words=Words(task.words.length, [1 / 6, 3 / 6, 2 / 6]))
    found = MultiHeadRisk(lumped).minimize_output(alpha[:, [0, 1, 4]], 1.2, [1, 3, 2])
    assert found.value == pytest.approx(full.value, rel=1e-11)
    assert found.beta == pytest.approx(full.beta[:, [0, 1, 4]], abs=1e-10)


def test_the_secular_equation_near_its_ends():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    hessian = (basis * np.array([0.0, 1e-12, 1e-3, 1.0, 2.0])) @ basis.T
    right = hessian @ rng.normal(size=5)
    free = np.linalg.norm(np.linalg.lstsq(hessian, right, rcond=1e-10)[0])
    for radius in (1e-8, 0.3 * free, 0.999999 * free):
        x, multiplier = secular(hessian, right, radius)
        assert np.linalg.norm(x) == pytest.approx(radius, rel=1e-12)
        assert np.abs(hessian @ x + multiplier * x - right).max() <= 1e-9 * np.abs(right).max()


def test_extremes():
    risk = MultiHeadRisk(Occurrence(50))
    alpha, beta = np.zeros((2, 50)), np.zeros((2, 50))
    alpha[0, 0], alpha[1, 1], beta[0, 0] = 300.0, -300.0, 2.0
    value = risk.value(alpha, beta)
    assert 0 < value < 1e-200 or value == 0.0
    assert MultiHeadRisk(Occurrence(2)).minimize_output(np.zeros((3, 2))).value < 1e-25
    alpha[0, 0] = 800.0
    with pytest.raises(BadParameter, match="spread"):
        risk.value(alpha, beta)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: r.value(np.zeros(3), np.zeros(3)),
        lambda r: r.value(np.zeros((2, 3)), np.zeros((3, 3))),
        lambda r: r.value(np.zeros((2, 4)), np.zeros((2, 4))),
        lambda r: r.value(np.full((2, 3), np.nan), np.zeros((2, 3))),
        lambda r: r.value(np.zeros((0, 3)), np.zeros((0, 3))),
        lambda r: r.value("ab", np.zeros((2, 3))),
        lambda r: r.minimize_output(np.zeros((2, 3)), radius=0.0),
        lambda r: r.minimize_output(np.zeros((2, 3)), radius=-1),
        lambda r: r.minimize_output(np.zeros((2, 3)), radius=1.0, multiplicity=[1, 2]),
        lambda r: r.hessian_output(np.zeros((1, 2, 3))),
        lambda r: r.value(Tiers([1, 0, 0]), np.zeros((1, 3))),
        lambda r: MultiHeadRisk("task"),
        lambda r: MultiHeadRisk(r.task, rtol=1.0),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises(BadParameter):
        call(MultiHeadRisk(Occurrence(3)))


def test_accuracy_names_the_alternative():
    with pytest.raises(NotAvailable, match="PopulationRisk"):
        MultiHeadRisk(Occurrence(3)).accuracy(np.zeros((2, 3)), np.zeros((2, 3)))


# Certified


@pytest.mark.parametrize("heads", [1, 2])
def test_enclosure_contains_the_sum_over_words_and_is_narrow(heads):
    task = TASKS[1]
    alpha, beta = draw_heads(11, heads, 3)
    truth, _, _ = WORDS[id(task)](alpha, beta)
    found = certified.risk(task, alpha, beta, 7)
    low, high = (float(x) for x in found.bounds)
    assert low - 1e-12 <= truth <= high + 1e-12
    assert found.relative_width <= 1e-6
    assert found.from_float


def test_certified_gradient_and_languages():
    task = TASKS[3]
    alpha, beta = draw_heads(12, 2, 3)
    _, _, by_beta = WORDS[id(task)](alpha, beta)
    found = certified.output_gradient(task, alpha, beta, 4)
    middle = np.array([[x.to_float() for x in row] for row in found])
    assert np.abs(middle - by_beta).max() <= 1e-4


def test_certified_tiers_and_exact_inputs():
    orders = Tiers([[1, 0, 0], [0, 0, 1]])
    beta = [["1/3", "0", "sqrt(2)"], [1, "0.1", 0]]
    found = certified.risk(Occurrence(3), orders, beta, 6)
    numbers = [[1 / 3, 0, math.sqrt(2)], [1, 0.1, 0]]
    assert found.to_float() == pytest.approx(
        MultiHeadRisk(Occurrence(3)).value(orders, numbers), rel=1e-6
    )
    exact_inputs = certified.risk(Occurrence(2), [["1/3", 0], [0, 1]], [[2, 0], ["0.5", 0]], 4)
    assert not exact_inputs.from_float


def test_constrained_minimum_is_enclosed_and_a_poor_candidate_only_widens_it():
    task, radius = Occurrence(3), 1.2
    alpha, _ = draw_heads(4, 2, 3)
    best = MultiHeadRisk(task).minimize_output(alpha, radius)

    def bounds(beta) -> Enclosure:
        with precision(48):
            return enclose(
                certified.constrained_minimum(certified.build_heads(task, alpha, beta), radius), 12
            )

    found = bounds(best.beta)
    assert found.contains(best.value) or abs(found.to_float() - best.value) < 1e-9
    assert found.width < 1e-6
    poor = bounds(0.9 * best.beta)
    assert poor.contains(found.midpoint)
    assert poor.width > 100 * found.width
    # an infeasible candidate is shrunk, never believed
    assert bounds(3 * best.beta).contains(found.midpoint)


def test_certified_blocks_are_certified_symbols():
    alpha, beta = [["1", "0", "-1"], ["0", "2", "0"]], [["1", "0", "1/5"], ["1/2", "0", "1/7"]]
    lumped = certified.blocks([2, 1], alpha, beta)
    full = certified.build_heads(
        Occurrence(4), [[a, b, b, c] for a, b, c in alpha], [[a, b, b, c] for a, b, c in beta]
    )
    one, two = (
        adaptive(lambda p=p: certified.evaluate(p, slope=False).value, 6) for p in (lumped, full)
    )
    assert enclose(one - two, 6).contains(0)
    assert enclose(ball(one), 6).relative_width < 1e-5


@pytest.mark.parametrize(
    "call",
    [
        lambda: certified.risk("task", [[0, 0]], [[0, 0]]),
        lambda: certified.risk(Occurrence(2), [0, 0], [0, 0]),
        lambda: certified.risk(Occurrence(2), [[0, 0]], [[0, 0], [0, 0]]),
        lambda: certified.risk(Occurrence(2), [[0, "x"]], [[0, 0]]),
        lambda: certified.risk(Occurrence(2), [], []),
    ],
)
def test_certified_refuses_bad_arguments(call):
    with pytest.raises(BadParameter):
        call()
