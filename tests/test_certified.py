"""Certified risk, gradient and output minimum against word enumeration and each other."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from certified_words import DPS, ROUNDING, enumerated, inside
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from popgd import And, FixedLength, Geometric, Occurrence, Or, Poisson, UniformLength, Words
from popgd import certified as c
from popgd.ball import Enclosure
from popgd.tiers import Tiers

TASKS = {
    "occurrence, d=2": (Occurrence(2), 1),
    "occurrence, d=2, long": (Occurrence(2, 1, Words(Geometric(Fraction(9, 10)), [0.3, 0.7])), 40),
    "occurrence, d=3": (Occurrence(3, 2, Words(Geometric(Fraction(19, 20)))), 24),
    "occurrence, fixed": (Occurrence(3, 1, Words(FixedLength(6), [0.2, 0.3, 0.5])), 6),
    "occurrence, uniform": (Occurrence(3, 0, Words(UniformLength(7))), 7),
    "occurrence, poisson": (Occurrence(3, 0, Words(Poisson(0.5))), 20),
    "or, uniform": (Or(4, [0, 2], Words(UniformLength(5), [0.1, 0.2, 0.3, 0.4])), 5),
    "or, poisson": (Or(3, [1, 2], Words(Poisson(0.25))), 17),
    "and, fixed": (And(3, [0, 2], Words(FixedLength(7))), 7),
    "and, uniform": (And(4, [0, 1, 3], Words(UniformLength(4), [0.1, 0.2, 0.3, 0.4])), 4),
    "and, geometric": (And(3, [0, 1], Words(Geometric(Fraction(19, 20)))), 24),
    "and, poisson": (And(2, [0, 1], Words(Poisson(1))), 40),
    "or of all": (Or(2, [0, 1], Words(UniformLength(4))), 4),
}


ALPHA = ["1/3", -1.5, "ln(3)", 2]


BETA = ["1.9", "1/7", -0.5, "sqrt(2)"]


def exact_lists(d):
    with mpmath.workdps(DPS + 20):
        alpha = [mpf(1) / 3, mpf(-1.5), mpmath.log(3), mpf(2)]
        beta = [mpf(19) / 10, mpf(1) / 7, mpf(-0.5), mpmath.sqrt(2)]
    return alpha[:d], beta[:d]


@pytest.mark.parametrize("name", TASKS)
def test_risk_and_gradient_agree_with_word_enumeration(name):
    task, longest = TASKS[name]
    d = task.d
    found = c.gradient(task, ALPHA[:d], BETA[:d], 20)
    rows = c.hessian_output(task, ALPHA[:d], 20)
    with mpmath.workdps(DPS):
        value, alpha, beta, gram, left = enumerated(task, *exact_lists(d), longest)
        slack = 32 * left + ROUNDING  # |r| <= 4 and |beta_i - output| <= 4 on every word
        assert inside(found.value, value, slack)
        assert inside(c.risk(task, ALPHA[:d], BETA[:d], 20), value, slack)
        for x, y in zip((*found.alpha, *found.beta), (*alpha, *beta), strict=True):
            assert inside(x, y, slack)
        for i, j in product(range(d), repeat=2):
            assert inside(rows[i][j], gram[i][j], left + ROUNDING)


@pytest.mark.parametrize("name", TASKS)
def test_risk_and_gradient_are_sharp(name):
    task, _ = TASKS[name]
    found = c.gradient(task, ALPHA[: task.d], BETA[: task.d], 20)
    sharp = 1e-19
    assert found.value.relative_width < sharp
    for x in (*found.alpha, *found.beta):
        assert x.relative_width < sharp or x.width < 1e-55  # a zero component


@pytest.mark.parametrize(
    ("task", "tier", "longest"),
    [
        (Occurrence(3, 0, Words(FixedLength(5))), [1, 0, 0], 5),
        (Occurrence(3, 0, Words(UniformLength(6))), [0, 2, 1], 6),
        (Or(4, [0, 1], Words(FixedLength(5))), [0, 3, 3, -1], 5),
        (And(3, [0, 2], Words(UniformLength(6))), [1, 0, 0], 6),
        (And(3, [0, 2], Words(Poisson(0.25))), [5, 5, 6], 17),
    ],
)
def test_tiers_agree_with_word_enumeration(task, tier, longest):
    d = task.d
    found = c.gradient(task, ALPHA[:d], BETA[:d], 20, tiers=tier)
    with mpmath.workdps(DPS):
        value, alpha, beta, _, left = enumerated(task, *exact_lists(d), longest, tier)
        slack = 32 * left + ROUNDING
        assert inside(found.value, value, slack)
        for x, y in zip((*found.alpha, *found.beta), (*alpha, *beta), strict=True):
            assert inside(x, y, slack)


def test_tiers_are_the_limit_of_large_gaps():
    task = Or(5, [0, 1])
    offset, beta = [0.5, -1.0, 0.25, 0.0, 2.0], [1.5, 0.1, 0.2, 0.3, -0.4]
    limit = c.risk(task, Tiers([0, 1, 0, 2, 0], offset), beta)
    far = c.risk(task, [0.5, 199.0, 0.25, 400.0, 2.0], beta)
    # attention off by e^-195 and m at most a few thousand in effect
    assert abs(far.midpoint - limit.midpoint) < far.width + limit.width + 1e-60
    assert c.risk(task, offset, beta, tiers=[0, 1, 0, 2, 0]) == limit


@pytest.mark.parametrize("name", TASKS)
def test_output_minimum_is_a_minimum_of_the_certified_risk(name):
    task, _ = TASKS[name]
    found = c.minimize_output(task, ALPHA[: task.d], 20)
    beta = [x.midpoint for x in found.beta]
    # the midpoint is within 1e-18 of the minimiser, where the risk is flat to second order
    assert (
        c.risk(task, ALPHA[: task.d], beta, 20, residual=None).bounds[0]
        <= found.value.bounds[1] + Fraction(1, 10**30)
        if found.value.bounds[1]
        else True
    )
    for i in range(task.d):
        for move in (Fraction(1, 100), Fraction(-1, 100)):
            moved = [x + (move if j == i else 0) for j, x in enumerate(beta)]
            assert c.risk(task, ALPHA[: task.d], moved).compare(found.value) == 1


def test_output_minimum_is_attained_where_it_says():
    task = And(4, [0, 2])
    alpha = ["1/3", -2, "1.5", "0.7"]
    found = c.minimize_output(task, alpha, 30)
    beta = [x.midpoint for x in found.beta]
    excess = c.risk(task, alpha, beta, 40).bounds[1] - found.value.bounds[0]
    # quadratic in an error of 1e-30, so the widths of the two enclosures are all there is
    assert 0 <= excess < Fraction(1, 10**28)


@pytest.mark.parametrize("gap", [100, 300])
def test_output_minimum_keeps_its_digits_at_large_gaps(gap):
    found = c.minimize_output(Occurrence(50), [gap] + [0] * 49)
    reduced = c.symmetric_minimum(gap, 50)
    assert found.value.overlaps(reduced.value)
    assert found.value.relative_width < 1e-14
    assert found.residual[0].overlaps(reduced.residual_target)
    assert found.beta[7].overlaps(reduced.beta_background)
    # value at the minimiser given by residual and beta
    moved = c.symmetric_risk(50, gap, 2, found.beta[1].midpoint, found.residual[0].midpoint)
    assert abs(moved.midpoint / found.value.midpoint - 1) < 1e-12


def test_perfect_languages_have_minimum_exactly_zero():
    assert c.minimize_output(Occurrence(2), [0, 5]).value == Enclosure("0", "0")
    task = Occurrence(5, 1)
    assert c.minimize_output(task, Tiers([0, 1, 0, 0, 0])).value.sign() == 0
    single = Words(FixedLength(1), [0.2, 0.3, 0.5])
    assert c.minimize_output(And(3, [0, 1], single), [0, 1, 2]).value.sign() == 0
    assert c.risk(Or(3, [0, 1], single), [0, 1, 2], [2, 2, 0]).sign() == 0


def test_gap_40_keeps_every_digit():
    alpha, beta = [40] + [0] * 49, [2] + [0] * 49
    found = c.gradient(Occurrence(50), alpha, beta)
    assert found.value.compare("4.5e-32") == 1
    assert found.value.compare("4.53e-32") == -1
    assert max(x.relative_width for x in (found.value, *found.alpha, *found.beta)) < 1e-14
    assert found.value.overlaps(c.symmetric_risk(50, 40, 2, 0))


HARD = {
    "gap 40": ([40] + [0] * 19, ["1.9"] + ["0.01"] * 19),
    "gap -40": ([-40] + [0] * 19, ["1.9"] + ["0.01"] * 19),
    "two wrong": ([0, 40, 40] + [0] * 17, ["1.9"] + ["0.01"] * 19),
    "hierarchical": ([40, 80] + [0] * 18, ["1.9", "0.3"] + ["0.01"] * 18),
    "spread 700": (np.linspace(0, 700, 8), np.cos(np.arange(8.0))),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_weights_keep_every_component(name):
    alpha, beta = HARD[name]
    task = Occurrence(len(alpha))
    found = c.gradient(task, alpha, beta)
    finer = c.gradient(task, alpha, beta, 18)
    for x, y in zip((*found.alpha, *found.beta), (*finer.alpha, *finer.beta), strict=True):
        assert x.relative_width < 1e-14
        assert x.overlaps(y)
    total = sum(x.midpoint for x in finer.alpha)
    largest = max(abs(x.midpoint) for x in finer.alpha)
    assert abs(total) < 1e-16 * largest


@given(seed=st.integers(0, 10**6), shift=st.integers(-50, 50))
@settings(max_examples=4, deadline=None)
def test_shift_and_symmetry_identities(seed, shift):
    rng = np.random.default_rng(seed)
    alpha = [Fraction(int(x), 8) for x in rng.integers(-40, 40, 4)]
    beta = [Fraction(int(x), 8) for x in rng.integers(-20, 20, 4)]
    parts = [c.gradient(Occurrence(4, s), alpha, beta, 20) for s in range(4)]
    for part in parts:
        assert abs(sum(x.midpoint for x in part.alpha)) < Fraction(1, 10**17)
    total = sum(parts[s].alpha[s].midpoint for s in range(4))
    assert abs(total) < Fraction(1, 10**17)
    moved = c.risk(Occurrence(4, 1), [x + shift for x in alpha], beta, 20)
    assert moved.overlaps(parts[1].value)


def test_permuting_symbols_permutes_gradients():
    alpha, beta = [0.5, -1, 2, 0.25], [1.5, 0.5, -0.25, 0.1]
    order = [2, 0, 3, 1]
    here = c.gradient(Occurrence(4, 2), alpha, beta)
    there = c.gradient(Occurrence(4, 0), [alpha[i] for i in order], [beta[i] for i in order])
    for k, i in enumerate(order):
        assert there.alpha[k].overlaps(here.alpha[i])
        assert there.beta[k].overlaps(here.beta[i])


def test_equal_weights_are_lumped_without_changing_the_answer():
    alpha, beta = [2, 1, 1, 1, 0], [1.5, 0.25, 0.25, 0.25, -1]
    nearly = [2, 1, 1 + Fraction(1, 10**40), 1 - Fraction(1, 10**40), 0]
    lumped, separate = (c.gradient(Occurrence(5), x, beta) for x in (alpha, nearly))
    for x, y in zip((*lumped.alpha, *lumped.beta), (*separate.alpha, *separate.beta), strict=True):
        assert abs(x.midpoint - y.midpoint) < 1e-15 * abs(x.midpoint)


def test_enclosures_to_more_digits_lie_inside_those_to_fewer():
    task = Occurrence(7, 2)
    alpha, beta = ["1/3", 2, -1, 0, "0.1", 1, 1], ["0.1", "1/7", 2, 0, 0, 1, -1]
    found = [c.risk(task, alpha, beta, digits) for digits in (8, 15, 30, 50, 80)]
    for coarse, fine in pairwise(found):
        assert coarse.contains(fine)
        assert fine.relative_width < coarse.relative_width * 1e-5


def test_a_float_input_is_another_number_and_is_reported():
    task = Occurrence(3)
    decimal = c.risk(task, ["0.1", 0, 0], [1, 0, 0], 25)
    binary = c.risk(task, [0.1, 0, 0], [1, 0, 0], 25)
    assert decimal.compare(binary) in (1, -1)
    assert binary.from_float
    assert not decimal.from_float
    assert binary.overlaps(c.risk(task, [Fraction(0.1), 0, 0], [1, 0, 0], 25))


@example(d=60, seed=1)
@given(d=st.integers(2, 60), seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_random_weights_are_sharp_at_every_dimension(d, seed):
    rng = np.random.default_rng(seed)
    task = Occurrence(d, seed % d)
    alpha, beta = 5 * rng.normal(size=d), rng.normal(size=d)
    found = c.gradient(task, alpha, beta)
    for x in (found.value, *found.alpha, *found.beta):
        assert x.relative_width < 1e-14 or x.width < 1e-45
