"""Certified quantities against word enumeration, closed forms and each other."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from popgd import And, FixedLength, Geometric, Occurrence, Or, Poisson, UniformLength, Words
from popgd import ball as b
from popgd import certified as c
from popgd import certified_quadrature as quadrature
from popgd.ball import Enclosure, exact
from popgd.errors import BadParameter, Diverged, NotAvailable
from popgd.tiers import Tiers

DPS = 50  # enumeration works at 50 digits; its own rounding is below 1e-45
ROUNDING = mpf(10) ** -45


@cache
def counts(d: int, longest: int) -> np.ndarray:
    """Every count vector with 1..longest symbols."""
    return np.array([x for x in product(range(longest + 1), repeat=d) if 0 < sum(x) <= longest])


def fraction_mpf(x: Fraction) -> mpf:
    return mpf(x.numerator) / x.denominator


def pmf(law, m: int) -> mpf:
    if isinstance(law, Geometric):
        p = law.exact_p
        return fraction_mpf(p * (1 - p) ** (m - 1))
    if isinstance(law, Poisson):
        rate = fraction_mpf(law.exact_rate)
        return rate**m / mpmath.factorial(m) / mpmath.expm1(rate)
    return mpf(m in law.lengths) / len(law.lengths)


def enumerated(task, alpha, beta, longest, tier=None):
    """(value, dL/dalpha, dL/dbeta, second moments) summed over words up to `longest`.

    Also the mass left out. A route of its own: softmax over each count vector.
    """
    d = task.d
    tier = [0] * d if tier is None else list(tier)
    words = counts(d, longest)
    labels = task.labels(words)
    pi = [fraction_mpf(x) for x in task.words.exact_probabilities(d)]
    length = [mpf(0)] + [pmf(task.words.length, m) for m in range(1, longest + 1)]
    a = [mpmath.exp(x) for x in alpha]
    value, by_alpha, by_beta = mpf(0), [mpf(0)] * d, [mpf(0)] * d
    gram = [[mpf(0)] * d for _ in range(d)]
    covered = mpf(0)
    for word, label in zip(words.tolist(), labels.tolist(), strict=True):
        m = sum(word)
        probability = length[m] * math.factorial(m)
        for n, p in zip(word, pi, strict=True):
            probability *= p**n / math.factorial(n)
        covered += probability
        highest = max(t for n, t in zip(word, tier, strict=True) if n)
        mass = [x * n if t == highest else mpf(0) for x, n, t in zip(a, word, tier, strict=True)]
        total = mpmath.fsum(mass)
        gamma = [x / total for x in mass]
        output = mpmath.fsum(x * g for x, g in zip(beta, gamma, strict=True))
        r = output - 1 - label
        value += probability * r * r / 2
        for i in range(d):
            by_beta[i] += probability * r * gamma[i]
            by_alpha[i] += probability * r * gamma[i] * (beta[i] - output)
            for j in range(d):
                gram[i][j] += probability * gamma[i] * gamma[j]
    return value, by_alpha, by_beta, gram, max(1 - covered, mpf(0))


def inside(found: Enclosure, truth: mpf, slack: mpf) -> bool:
    """Whether the interval truth +- slack meets the enclosure."""
    low, high = exact(truth - slack).fraction, exact(truth + slack).fraction
    return found.bounds[0] <= high and low <= found.bounds[1]


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


@pytest.mark.parametrize("d", [3, 4, 50, 10**6, 10**12])
def test_moments_at_gap_zero_have_their_closed_forms(d):
    # gamma_s = C_s / m: E[C_s^2] given m is m/d + m(m-1)/d^2, all words with C_s = 0 add nothing
    found = c.moments(0, d, 25)
    with mpmath.workdps(60):
        inverse = mpmath.log(d - 1) / (d - 2)
        square = mpf(1) / d**2 + inverse * (mpf(1) / d - mpf(1) / d**2)
        assert found.m20.contains(exact(square))
        assert found.m11.contains(exact(mpf(1) / d - square))
        assert found.m02.contains(exact(mpf(1) / 2 - 2 * mpf(1) / d + square))


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("gap", ["-3", "0", "ln(7)", "12"])
def test_moments_agree_with_direct_sums(d, gap):
    """Sum over C_s and the number of other symbols, the law of both written out."""
    found = c.moments(gap, d, 15)
    longest = {2: 1, 3: 90, 5: 200}[d]
    with mpmath.workdps(40):
        ratio = mpmath.exp(-exact_mpf(gap))
        p, target = mpf(1) / (d - 1), mpf(1) / d
        sums = [mpf(0)] * 5
        length = p
        for m in range(1, longest + 1):
            weight = length * (1 - target) ** m
            odds = target / (1 - target)
            for s in range(1, m + 1):
                weight = weight * odds * (m - s + 1) / s
                if weight < mpf(10) ** -30:
                    continue
                g = s / (s + (m - s) * ratio)
                terms = (g * g, g * (1 - g), (1 - g) ** 2, g * g * (1 - g), g * (1 - g) ** 2)
                sums = [x + weight * t for x, t in zip(sums, terms, strict=True)]
            length *= 1 - p
        left = (1 - p) ** longest + longest**2 * mpf(10) ** -30
        for x, y in zip(found, sums, strict=True):
            assert inside(x, y, left)


def exact_mpf(text):
    low, high = b.rational_bounds(exact(text))
    return fraction_mpf((low + high) / 2)


@pytest.mark.parametrize("gap", [700, -700, 5000, -5000, 10**9])
@pytest.mark.parametrize("d", [3, 50, 10**12])
def test_moments_at_extreme_gaps_are_sharp_or_say_how_small(gap, d):
    for x in c.moments(gap, d):
        assert x.relative_width < 1e-14 or x.bounds[1] <= Fraction(1, 10**99_000)


def test_moments_at_infinite_gaps():
    assert c.moments(math.inf, 50).m20 == c.moments("inf", 50).m20
    far, limit = c.moments(-3000, 50), c.moments(-math.inf, 50)
    assert far.m20.overlaps(limit.m20)
    assert far.m02.overlaps(limit.m02)
    assert limit.m20.contains(Fraction(1, 50**2 - 2 * 50 + 2))


def test_symmetric_functions_agree_with_the_general_ones():
    d, gap = 20, "2.5"
    alpha = [gap] + [0] * (d - 1)
    beta = ["1.2"] + ["-0.3"] * (d - 1)
    general = c.gradient(Occurrence(d), alpha, beta)
    found = c.symmetric_gradient(d, gap, "1.2", "-0.3")
    assert general.value.overlaps(c.symmetric_risk(d, gap, "1.2", "-0.3"))
    assert general.alpha[0].overlaps(found.alpha_target)
    assert general.alpha[5].overlaps(found.alpha_background)
    assert general.beta[0].overlaps(found.beta_target)
    assert general.beta[5].overlaps(found.beta_background)
    assert c.minimize_output(Occurrence(d), alpha).value.overlaps(c.symmetric_minimum(gap, d).value)


@pytest.mark.parametrize("d", [3, 4, 50, 10**5])
def test_uniform_minimum_has_its_closed_form(d):
    found = c.symmetric_minimum(0, d, 30)
    with mpmath.workdps(60):
        truth = (1 - (d - 2) / ((d - 1) * mpmath.log(d - 1))) / 2
    assert found.value.contains(exact(truth))


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


def test_a_residual_replaces_the_rounded_difference():
    exact_way = c.symmetric_risk(50, 40, "2 + 1e-16", "1e-32")
    rounded = c.symmetric_risk(50, 40, 2.0, "1e-32", residual_target="1e-16")
    assert exact_way.overlaps(rounded)
    assert rounded.compare(c.symmetric_risk(50, 40, 2, "1e-32")) == -1
    task, alpha = Occurrence(50), [40] + [0] * 49
    general = c.risk(task, alpha, [2] + ["1e-32"] * 49, residual=["1e-16"])
    assert general.overlaps(rounded)


PHASES = [(3, "1", 40, 1, 3), (10, "sqrt(d)", "d**2/eta1", "1/2", 3), (4, 3, 2, 3, 5)]


@pytest.mark.parametrize(("d", "eta1", "eta2", "eta3", "steps"), PHASES)
def test_three_phases_agree_with_steps_along_the_general_gradient(d, eta1, eta2, eta3, steps):
    found = c.three_phase(d, eta1, eta2, eta3, steps, 20)
    names = {"d": d, "eta1": exact(eta1, {"d": d})}
    rates = [exact(x, names) for x in (eta1, eta2, eta3)]
    task, digits = Occurrence(d), 40
    alpha, beta = [Fraction(0)] * d, [Fraction(0)] * d
    numbers = [sum(b.rational_bounds(x)) / 2 for x in rates]
    risks = [c.risk(task, alpha, beta, digits)]
    plan = ["beta"] + ["alpha"] + ["beta"] * steps
    for k, layer in enumerate(plan):
        step = c.gradient(task, alpha, beta, digits)
        rate = numbers[min(k, 2)]
        if layer == "beta":
            beta = [x - rate * g.midpoint for x, g in zip(beta, step.beta, strict=True)]
        else:
            alpha = [x - rate * g.midpoint for x, g in zip(alpha, step.alpha, strict=True)]
        if k in (0, 1, len(plan) - 1):
            risks.append(c.risk(task, alpha, beta, digits))
    # the rounding of each of at most 8 steps is 1e-40 and grows at most 5-fold a step
    for x, y in zip(found.risks, risks, strict=True):
        assert abs(x.midpoint - y.midpoint) < x.width + Fraction(1, 10**30)
    assert abs(found.gap.midpoint - (alpha[0] - alpha[1])) < found.gap.width + Fraction(1, 10**30)
    assert abs(found.final_target.midpoint - beta[0]) < found.final_target.width * 2


def test_three_phase_limits():
    many = c.three_phase(50, "sqrt(d)", "10000", 1, 10**12)
    forever = c.three_phase(50, "sqrt(d)", "10000", 1, math.inf)
    assert many.risks[3].overlaps(forever.risks[3])
    assert forever.risks[3].overlaps(forever.minimum)
    none = c.three_phase(50, 50, "100", 1, 0)
    assert none.risks[3] == none.risks[2]
    assert none.final_residual.sign() == 0
    idle = c.three_phase(3, 0, 1, 1, 5)
    assert idle.gap.sign() == 0
    single = c.three_phase(2, 1, 1)
    assert single.minimum.sign() == 0
    assert single.gap.sign() == 0


def test_three_phase_at_ten_to_the_twelve_symbols_and_steps():
    found = c.three_phase(10**12, "sqrt(d)", "2*d**2/eta1*ln(d/0.01)", 1, 10**12)
    assert max(x.relative_width for x in (*found.risks[1:], found.gap)) < 1e-14
    assert found.risks[3].compare("1e-13") == -1


def test_a_huge_attention_step_is_handled():
    found = c.three_phase(3, 1, 10**30, 1, 50)
    assert found.gap.compare(10**28) == 1
    assert found.risks[3].relative_width < 1e-14


def test_divergence_is_refused_in_words():
    with pytest.raises(Diverged, match="eta3 = 5: output training diverges above 2 / lambda_max"):
        c.three_phase(50, 1, 10**4, 5, 7)
    with pytest.raises(Diverged):
        c.three_phase(2, 1, 1, 4)  # exactly at the edge: oscillates for ever
    assert c.three_phase(2, 1, 1, 4, 7).risks[3].contains("1/4")


def test_balls_build_margins_inside_the_adaptive_loop():
    d, gap = 50, exact("ln(50)")

    def margin():
        m = c.balls.symmetric_moments(b.ball(gap), d)
        return m.m20 + m.m11 * 2 + m.m02 - b.ball(Fraction(1, 2)) + b.ball(exact("1e-40"))

    found = b.certify(margin, 10)
    # m20 + 2 m11 + m02 = P(+) = 1/2, so the margin is what was added
    assert found.contains("1e-40")
    assert found.relative_width < 1e-9


def reference():
    task = Occurrence(5)
    weights = [1, 0, "1/2", -1, 2], [1, 0, "0.3", 0, -1]
    return task, weights, c.risk(task, *weights, 40)


def test_negative_control_a_coarse_step_is_caught(monkeypatch):
    """With the step's bound kept at that of a finer step, the truth falls outside."""
    task, weights, truth = reference()
    assert c.risk(task, *weights).overlaps(truth)
    honest = quadrature.discretisation
    monkeypatch.setattr("popgd.certified_integral.step", lambda k, target: 1)
    monkeypatch.setattr("popgd.certified_integral.discretisation", lambda k, m: honest(k, 8))
    assert not c.risk(task, *weights).overlaps(truth)


def test_an_honest_coarse_step_is_wide_and_right(monkeypatch):
    """The step's bound is nearly attained: 10 times less would lie."""
    task, weights, truth = reference()
    problem = c.balls.build(task, *weights)
    monkeypatch.setattr("popgd.certified_integral.step", lambda k, target: 1)
    with b.precision(90):
        found = b.enclose(c.balls.risk(problem), 20)
    assert found.contains(truth)
    off = abs(found.midpoint - truth.midpoint)
    assert off > Fraction(found.width) / 2 / 30


def short_words():
    """Words of nearly always one symbol, S = 1: the bounds of both cuts are nearly attained."""
    task = Occurrence(3, 0, Words(Geometric(Fraction(999, 1000))))
    weights = [0, 0, 0], [1, 2, 1]
    return c.balls.build(task, *weights), c.risk(task, *weights, 40)


def cut_window(monkeypatch, at_start: int, at_end: int):
    """Drop that many doublings of t from the ends of every window."""
    choose = quadrature.Window.choose

    def shorter(m, *rest):
        whole = choose(m, *rest)
        return quadrature.Window(whole.first + at_start * m, whole.last - at_end * m)

    monkeypatch.setattr(quadrature.Window, "choose", staticmethod(shorter))


def at_90_bits(problem) -> Enclosure:
    with b.precision(90):
        return b.enclose(c.balls.risk(problem), 20)


def test_negative_control_a_tail_bound_shrunk_tenfold_is_caught(monkeypatch):
    problem, truth = short_words()
    cut_window(monkeypatch, 0, 3)
    assert at_90_bits(problem).contains(truth)
    tail = quadrature.right_tail
    monkeypatch.setattr("popgd.certified_integral.right_tail", lambda k, x: tail(k, x) / 10)
    assert not at_90_bits(problem).contains(truth)


def test_negative_control_a_left_cut_shrunk_tenfold_is_caught(monkeypatch):
    problem, truth = short_words()
    cut_window(monkeypatch, 28, 0)
    assert at_90_bits(problem).contains(truth)
    apply = c.balls.risk.__globals__["Tails"].apply
    monkeypatch.setattr(
        "popgd.certified_integral.Tails.apply",
        lambda self, computed, absolute, left: apply(self, computed, absolute, left / 10),
    )
    assert not at_90_bits(problem).contains(truth)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 4, 12])
def test_the_discretisation_bound_is_the_gamma_series(k, m):
    with mpmath.workdps(80):
        h = mpmath.log(2) / m
        terms = (abs(mpmath.gamma(mpmath.mpc(k, 2 * mpmath.pi * n / h))) for n in range(1, 6))
        truth = 2 * mpmath.fsum(terms) / mpmath.gamma(k)
        with b.precision(120):
            bound = fraction_mpf(b.rational_bounds(quadrature.discretisation(k, m))[1])
        assert truth <= bound <= truth * (1 + mpf(10) ** -6)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: c.risk(3, [0], [0]), "task = 3: must be a task"),
        (lambda: c.risk(Occurrence(3), [0, 0], [0, 0, 0]), "pass 3 numbers"),
        (lambda: c.risk(Occurrence(3), 0, [0, 0, 0]), "must be a sequence"),
        (lambda: c.risk(Occurrence(3), "000", [0, 0, 0]), "must be a sequence"),
        (lambda: c.risk(Occurrence(3), np.zeros((2, 3)), [0, 0, 0]), "one vector is needed"),
        (lambda: c.risk(Occurrence(3), [0, "x", 0], [0, 0, 0]), "alpha[1] = 'x'"),
        (lambda: c.risk(Occurrence(3), [0, math.inf, 0], [0, 0, 0]), "alpha[1] = inf"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, math.nan, 0]), "beta[1] = nan"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, 0, 0], 0), "digits = 0"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, 0, 0], 1001), "digits = 1001"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, residual=[1, 2]), "pass 1 numbers"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, tiers=[1]), "one tier a symbol"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, tiers=[1, 0.5, 0]), "tiers[1] = 0.5"),
        (lambda: c.gradient(Occurrence(3), [0] * 3, [0, True, 0]), "beta[1] = True"),
        (lambda: c.minimize_output(Occurrence(3), [0, None, 0]), "alpha[1] = None"),
        (lambda: c.hessian_output(Occurrence(300), [0] * 300), "task.d = 300"),
        (lambda: c.moments(0, 1), "d = 1"),
        (lambda: c.moments(math.nan, 5), "gap = nan"),
        (lambda: c.moments(0, 10**16), "d = 10000000000000000"),
        (lambda: c.symmetric_risk(5, 0, "z", 0), "beta_target = 'z'"),
        (lambda: c.three_phase(5, -1, 1), "eta1 = -1: a learning rate must be >= 0"),
        (lambda: c.three_phase(5, 1, "eps"), "unknown name 'eps'"),
        (lambda: c.three_phase(5, 1, 1, 0), "eta3 = 0"),
        (lambda: c.three_phase(5, 1, 1, 1, -1), "steps = -1"),
        (lambda: c.three_phase(5, 1, 1, 1, 1.5), "steps = 1.5"),
    ],
)
def test_malformed_calls_say_what_to_do(call, part):
    with pytest.raises(BadParameter, match=re.escape(part)):
        call()


def test_too_large_problems_are_refused_in_words(monkeypatch):
    monkeypatch.setattr("popgd.certified_integral.LARGEST", 10_000)
    with pytest.raises(NotAvailable, match=r"use popgd\.PopulationRisk"):
        c.risk(Occurrence(1000), np.arange(1000) / 100, [1] + [0] * 999)
    # equal weights are one atom, whatever d
    assert c.risk(Occurrence(1000), [1] + [0] * 999, [2] + [0] * 999).sign() == 1


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
