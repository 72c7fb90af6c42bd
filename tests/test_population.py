"""The integral route: exact where naive formulas fail, and inside its own bound."""

import subprocess
import sys

import numpy as np
import pytest
from mpmath import mpf
from oracles import direct, enumerate_words
from problems import THREE_SYMBOLS, hard_problems

from popgd import (
    And,
    Geometric,
    NotAvailable,
    Occurrence,
    Or,
    Poisson,
    PopulationRisk,
    Tiers,
    Words,
    certified,
    symmetric,
)
from popgd.quadrature import Grid

VALUE = 1e-12
"""Promised relative accuracy of values."""

COMPONENT = 1e-11
"""Promised relative accuracy of every gradient component."""

SHARP = 1e-11
"""Promised relative size of the error bound."""

TASKS = [
    *THREE_SYMBOLS,
    Occurrence(2, 0),
    Or(2, [0, 1], Words(Geometric(0.5))),
    And(2, [0, 1]),
]


def middle(enclosure):
    return (mpf(enclosure.lower) + mpf(enclosure.upper)) / 2


def relative(value, enclosure):
    truth = middle(enclosure)
    return float(abs(mpf(value) - truth) / abs(truth)) if truth else abs(value)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_value_and_gradients_are_those_of_enumerated_words(task):
    rng = np.random.default_rng(0)
    alpha, beta = 2 * rng.normal(size=task.d), rng.normal(size=task.d)
    truth = direct(task, enumerate_words(task, 50 if task.d == 3 else 90), alpha, beta)
    got = PopulationRisk(task).value_and_gradient(alpha, beta)
    assert got.value == pytest.approx(truth.value, rel=VALUE)
    assert got.alpha == pytest.approx(truth.alpha, rel=COMPONENT, abs=1e-13)
    assert got.beta == pytest.approx(truth.beta, rel=COMPONENT, abs=1e-13)


@pytest.mark.parametrize("d", [2, 3, 20, 50])
@pytest.mark.parametrize("name", hard_problems())
def test_every_digit_of_value_and_gradient_in_hard_cases(name, d):
    alpha, beta = hard_problems(d)[name]
    task = Occurrence(d)
    got = PopulationRisk(task).value_and_gradient(alpha, beta)
    assert relative(got.value, certified.risk(task, alpha, beta, digits=20)) <= VALUE
    truth = certified.gradient(task, alpha, beta, digits=20)
    scale = np.abs(got.alpha).max() + np.abs(got.beta).max()
    for mine, proved in ((got.alpha, truth.alpha), (got.beta, truth.beta)):
        for x, enclosure in zip(mine, proved, strict=True):
            # a component that is exactly zero (d = 2) has no relative accuracy
            assert relative(x, enclosure) <= COMPONENT or abs(x) <= 1e-15 * scale * (d == 2)


@pytest.mark.parametrize("name", hard_problems())
def test_truth_inside_the_bound_in_hard_cases(name):
    alpha, beta = hard_problems()[name]
    task = Occurrence(50)
    risk = PopulationRisk(task)
    truth = middle(certified.risk(task, alpha, beta, digits=30))
    assert abs(mpf(risk.value(alpha, beta)) - truth) <= risk.error_bound(alpha, beta)


@pytest.mark.parametrize("name", hard_problems())
def test_the_bound_is_narrow_in_hard_cases(name):
    alpha, beta = hard_problems()[name]
    risk = PopulationRisk(Occurrence(50))
    assert risk.error_bound(alpha, beta) <= SHARP * risk.value(alpha, beta)


def test_the_risk_at_gap_40():
    alpha, beta = hard_problems()["gap 40, beta = 2 e_s"]
    assert PopulationRisk(Occurrence(50)).value(alpha, beta) == pytest.approx(
        4.51234007911897e-32, rel=1e-12
    )


@pytest.mark.parametrize("gap", [-40.0, 0.0, 5.0, 100.0, 300.0])
@pytest.mark.parametrize("d", [3, 50])
def test_the_output_minimum_is_the_certified_one(gap, d):
    task = Occurrence(d)
    alpha = np.zeros(d)
    alpha[0] = gap
    minimum = PopulationRisk(task).minimize_output(alpha)
    assert relative(minimum.value, certified.symmetric_minimum(gap, d, digits=20).value) <= VALUE
    four = symmetric.minimize_output(gap, d)
    assert minimum.residual[0] == pytest.approx(float(four.residual_target), rel=1e-10, abs=1e-13)


def test_the_output_minimum_is_below_its_neighbours():
    task = And(6, [0, 2], Words(Poisson(4.0)))
    rng = np.random.default_rng(3)
    alpha = rng.normal(size=6)
    risk = PopulationRisk(task)
    minimum = risk.minimize_output(alpha)
    gradient = risk.value_and_gradient(alpha, minimum.beta, minimum.residual).beta
    assert np.abs(gradient).max() < 1e-14
    for _ in range(5):
        step = 1e-3 * rng.normal(size=6)
        assert risk.value(alpha, minimum.beta + step) > minimum.value


def test_output_only_training_at_d_50_reaches_mse_0_748():
    minimum = PopulationRisk(Occurrence(50)).minimize_output(np.zeros(50))
    assert 2 * minimum.value == pytest.approx(0.748, abs=5e-4)


def test_d_2_is_learned_exactly():
    minimum = PopulationRisk(Occurrence(2)).minimize_output(np.zeros(2))
    assert minimum.value == 0
    assert minimum.beta == pytest.approx([2.0, 0.0])


@pytest.mark.parametrize("gap", [-40.0, -1.0, 0.0, 3.0, 40.0, 300.0, 700.0])
def test_equal_backgrounds_are_the_symmetric_reduction(gap):
    d, target = 30, 7
    alpha, beta = np.zeros(d), np.full(d, 0.25)
    alpha[target], beta[target] = gap, 1.5
    got = PopulationRisk(Occurrence(d, target)).value_and_gradient(alpha, beta)
    state = symmetric.State(gap, 0.0, 1.5, 0.25)
    assert got.value == pytest.approx(float(symmetric.risk(state, d)), rel=VALUE)
    four = symmetric.gradient(state, d)
    expected = [float(x) for x in four]
    mine = [got.alpha[target], got.alpha[0], got.beta[target], got.beta[0]]
    assert mine == pytest.approx(expected, rel=COMPONENT)


def test_permuting_symbols_permutes_gradients():
    rng = np.random.default_rng(4)
    alpha, beta = 5 * rng.normal(size=12), rng.normal(size=12)
    order = rng.permutation(12)
    here = PopulationRisk(Occurrence(12, int(order[3]))).value_and_gradient(alpha, beta)
    there = PopulationRisk(Occurrence(12, 3)).value_and_gradient(alpha[order], beta[order])
    assert there.value == pytest.approx(here.value, rel=1e-13)
    assert there.alpha == pytest.approx(here.alpha[order], rel=1e-12, abs=1e-17)
    assert there.beta == pytest.approx(here.beta[order], rel=1e-12, abs=1e-17)


@pytest.mark.parametrize("shift", [1.0, -650.0, 1e8])
def test_a_common_shift_of_alpha_changes_nothing(shift):
    rng = np.random.default_rng(5)
    alpha, beta = np.round(4 * rng.normal(size=9) * 8) / 8, rng.normal(size=9)
    risk = PopulationRisk(Occurrence(9))
    assert risk.value(alpha + shift, beta) == pytest.approx(risk.value(alpha, beta), rel=1e-12)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_attention_gradients_sum_to_zero(task):
    rng = np.random.default_rng(6)
    got = PopulationRisk(task).value_and_gradient(rng.normal(size=task.d), rng.normal(size=task.d))
    assert abs(got.alpha.sum()) <= 1e-13


def test_the_sum_over_targets_of_their_own_attention_gradient_is_zero():
    rng = np.random.default_rng(7)
    alpha, beta = rng.normal(size=8), rng.normal(size=8)
    own = [
        PopulationRisk(Occurrence(8, s)).value_and_gradient(alpha, beta).alpha[s] for s in range(8)
    ]
    assert abs(sum(own)) <= 1e-13 * np.abs(own).sum()


def test_batches_are_loops():
    rng = np.random.default_rng(8)
    alpha, beta = 10 * rng.normal(size=(4, 1, 15)), rng.normal(size=(3, 15))
    risk = PopulationRisk(Or(15, [2, 3]))
    batch = risk.value_and_gradient(alpha, beta)
    bound = risk.error_bound(alpha, beta)
    assert batch.value.shape == bound.shape == (4, 3)
    assert batch.alpha.shape == (4, 3, 15)
    for i in range(4):
        for j in range(3):
            one = risk.value_and_gradient(alpha[i, 0], beta[j])
            assert isinstance(one.value, float)
            assert batch.value[i, j] == pytest.approx(one.value, rel=1e-12)
            assert batch.alpha[i, j] == pytest.approx(one.alpha, rel=1e-11)
            assert batch.beta[i, j] == pytest.approx(one.beta, rel=1e-11)


def test_accuracy_loops_over_batches_and_hears_the_residual():
    risk = PopulationRisk(Or(4, [0, 2]))
    rng = np.random.default_rng(9)
    alpha, beta = rng.normal(size=(2, 1, 4)), rng.normal(size=(3, 4))
    beta[:, [0, 2]] += 1.5
    batch = risk.accuracy(alpha, beta)
    assert batch.value.shape == batch.proved.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert tuple(x[i, j] for x in batch) == risk.accuracy(alpha[i, 0], beta[j])
    # words half of which are the target sit at f = 0: only the residual decides their sign
    zero = Occurrence(4, 0)
    heard = PopulationRisk(zero).accuracy(np.zeros(4), [2.0, 0, 0, 0], [[1e-17], [-1e-17]])
    assert heard.value[0] > heard.value[1] + 0.01
    tiers = PopulationRisk(zero).accuracy(Tiers([[1, 0, 0, 0], [0, 0, 0, 0]]), [2.0, 0, 0, 0])
    assert tiers.value[0] == 1.0 > tiers.value[1]
    assert risk.accuracy(np.zeros((0, 4)), beta[0]).value.shape == (0,)


def test_an_alphabet_beyond_vectors_is_refused_in_a_sentence():
    with pytest.raises(NotAvailable, match=r"d = 10{12}: .* not held as vectors; use popgd.symm"):
        PopulationRisk(Occurrence(10**12))


def test_an_empty_batch_is_empty():
    risk = PopulationRisk(Occurrence(3))
    assert risk.value(np.zeros((0, 3)), np.zeros(3)).shape == (0,)
    assert risk.value_and_gradient(np.zeros((0, 3)), np.zeros(3)).beta.shape == (0, 3)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_tiers_are_the_limit_of_large_gaps(task):
    rng = np.random.default_rng(9)
    risk = PopulationRisk(task)
    for _ in range(4):
        tiers = Tiers(rng.integers(-1, 2, size=task.d), rng.normal(size=task.d))
        beta = rng.normal(size=task.d)
        far = risk.value_and_gradient(tiers.tier * 60.0 + tiers.offset, beta)
        limit = risk.value_and_gradient(tiers, beta)
        assert limit.value == pytest.approx(far.value, rel=1e-12)
        assert limit.alpha == pytest.approx(far.alpha, abs=1e-13)
        assert limit.beta == pytest.approx(far.beta, abs=1e-13)
        assert risk.error_bound(tiers, beta) <= SHARP * limit.value


def test_full_attention_on_the_target_is_perfect():
    risk = PopulationRisk(Occurrence(7))
    minimum = risk.minimize_output(Tiers([1, 0, 0, 0, 0, 0, 0]))
    assert minimum.value <= 1e-25
    assert minimum.beta == pytest.approx([2, 0, 0, 0, 0, 0, 0], abs=1e-12)


def test_a_residual_replaces_the_rounded_difference():
    alpha = np.zeros(50)
    alpha[0] = 60.0
    beta = np.zeros(50)
    beta[0] = 2.0
    risk = PopulationRisk(Occurrence(50))
    plain = risk.value(alpha, beta)
    moved = risk.value(alpha, beta, residual=[1e-25])
    state = symmetric.State(60.0, 0.0, 2.0, 0.0, residual_target=1e-25)
    assert moved == pytest.approx(float(symmetric.risk(state, 50)), rel=1e-12)
    assert moved != plain


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_the_residual_that_beta_holds_changes_nothing(task):
    rng = np.random.default_rng(10)
    alpha, beta = rng.normal(size=task.d), rng.normal(size=task.d)
    risk = PopulationRisk(task)
    plain = risk.value_and_gradient(alpha, beta)
    given = risk.value_and_gradient(alpha, beta, residual=beta[list(task.targets)] - 2)
    assert given.value == pytest.approx(plain.value, rel=1e-14)
    assert given.alpha == pytest.approx(plain.alpha, rel=1e-12, abs=1e-15)
    assert given.beta == pytest.approx(plain.beta, rel=1e-12, abs=1e-15)


def test_mse_and_split_add_up():
    alpha, beta = hard_problems()["gap -40"]
    risk = PopulationRisk(Occurrence(50))
    parts = risk.split(alpha, beta)
    assert parts.positive + parts.negative == risk.value(alpha, beta)
    assert risk.mse(alpha, beta) == 2 * risk.value(alpha, beta)


@pytest.mark.parametrize("name", hard_problems())
@pytest.mark.parametrize("d", [3, 50])
def test_windows_stay_within_their_node_budget(name, d):
    alpha, beta = hard_problems(d)[name]
    risk = PopulationRisk(Occurrence(d))
    inputs, _ = risk._check(alpha, beta, None)
    nodes = risk.route.nodes(inputs)
    assert len(nodes) <= 2
    assert max(nodes) <= (20 + np.log(d) + np.ptp(alpha)) / 0.25


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9, 1e-13])
def test_the_tolerance_is_kept_and_cheaper_when_loose(rtol):
    alpha, beta = hard_problems()["alpha ~ 5 N(0,1)"]
    task = Occurrence(50)
    truth = middle(certified.risk(task, alpha, beta, digits=20))
    risk = PopulationRisk(task, rtol=rtol)
    assert abs(risk.value(alpha, beta) / float(truth) - 1) <= rtol
    assert risk.error_bound(alpha, beta) <= max(rtol, SHARP) * float(truth)


@pytest.mark.parametrize(
    ("rtol", "h", "start", "end"),
    [(1e-12, 0.5, 0, 0), (1e-3, 1 / 8, 10, 0), (1e-3, 1 / 8, 0, 6)],
    ids=["step", "start", "end"],
)
def test_each_part_of_the_bound_is_needed(monkeypatch, rtol, h, start, end):
    # nearly every word has one symbol, S = 1: there each bound is nearly attained
    task = Occurrence(3, 0, Words(Geometric(0.999)))
    alpha, beta = np.zeros(3), np.array([1.0, 2.0, 1.0])
    truth = PopulationRisk(task).value(alpha, beta)
    covering = Grid.covering

    def shorter(h, low, high, ceiling):
        grid = covering(h, low, high, ceiling)
        return Grid(h, grid.first + start, grid.count - start - end, ceiling)

    monkeypatch.setattr(Grid, "covering", staticmethod(shorter))
    risk = PopulationRisk(task, rtol=rtol)
    risk.route.h = h
    error = abs(risk.value(alpha, beta) - truth)
    bound = risk.error_bound(alpha, beta)
    assert bound / 2 < error <= bound


def test_huge_alphabets_agree_with_the_symmetric_reduction():
    d = 10**5
    alpha, beta = np.zeros(d), np.full(d, 0.1)
    alpha[5], beta[5] = 12.0, 1.7
    got = PopulationRisk(Occurrence(d, 5)).value(alpha, beta)
    assert got == pytest.approx(
        float(symmetric.risk(symmetric.State(12.0, 0.0, 1.7, 0.1), d)), rel=1e-12
    )


MEMORY = """
import resource, numpy as np
from popgd import Occurrence, PopulationRisk
rng = np.random.default_rng(0)
risk = PopulationRisk(Occurrence(10**6))
risk.value_and_gradient(rng.normal(size=10**6), rng.normal(size=10**6))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def test_a_million_symbols_fit_in_a_gigabyte():
    run = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 1.0


@pytest.mark.parametrize("gap", [-700.0, 0.0, 40.0, 700.0])
def test_callers_who_raise_on_every_float_event_are_served(gap):
    risk = PopulationRisk(Occurrence(50))
    alpha, beta = np.zeros(50), np.full(50, 1e-300)
    alpha[0] = gap
    with np.errstate(all="raise"):
        risk.value_and_gradient(alpha, beta)
        risk.error_bound(alpha, beta)
        risk.variance(alpha, beta)
        risk.hessian_output(alpha).solve(risk.hessian_output(alpha) @ beta)
        if gap < 700:
            risk.minimize_output(alpha)
