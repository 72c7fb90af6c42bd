"""Certified symmetric moments, minimum and three-phase runs."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from certified_words import exact_mpf, inside
from mpmath import mpf

from popgd import Occurrence
from popgd import ball as b
from popgd import certified as c
from popgd import certified_quadrature as quadrature
from popgd.ball import ball, exact
from popgd.certified_symmetric import moments
from popgd.errors import Diverged


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


@pytest.mark.parametrize("gap", [700, -700, 5000, -5000, 10**9])
@pytest.mark.parametrize("d", [3, 50, 10**12])
def test_moments_at_extreme_gaps_are_sharp_or_say_how_small(gap, d):
    for x in c.moments(gap, d):
        assert x.relative_width < 1e-14 or x.bounds[1] <= Fraction(1, 10**99_000)


@pytest.mark.parametrize(("at_start", "at_end"), [(32, 0), (0, 3)], ids=["start", "end"])
@pytest.mark.parametrize("gap", [-3, 0, 3])
def test_a_short_window_widens_the_moments_by_what_it_drops(monkeypatch, gap, at_start, at_end):
    with b.precision(200):
        truth = moments(ball(gap), 3)
    choose = quadrature.Window.choose

    def shorter(m, *rest):
        whole = choose(m, *rest)
        return quadrature.Window(whole.first + at_start * m, whole.last - at_end * m)

    monkeypatch.setattr(quadrature.Window, "choose", staticmethod(shorter))
    with b.precision(90):
        found = moments(ball(gap), 3)
    for x, y in zip(found, truth, strict=True):
        error = abs(x.mid() - y.mid())
        assert error <= x.rad() <= 20 * error


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


RATE_TWO = [(50, 1, 10**6, 2, 1), (50, 1, 10**7, 2, 1), (50, 1, 10**7, 2, 5), (50, 1, 10**7, 4, 9)]


@pytest.mark.parametrize("run", RATE_TWO)
def test_a_rate_of_one_over_the_largest_eigenvalue_needs_no_digits_of_the_gap(run, monkeypatch):
    # 1 - eta3 lambda_max ~ e^-gap, below 10^-3000 here, from numbers of 15 digits
    monkeypatch.setattr(b, "CAP", 300)
    monkeypatch.setitem(b.adaptive.__kwdefaults__, "cap", 300)
    found = c.three_phase(*run)
    d, _, _, eta3, steps = run
    m = c.moments(found.gap.midpoint, d, 30)
    assert found.risks[3].relative_width < 1e-14
    assert found.final_residual.relative_width < 1e-14
    if steps == 1:
        # one step: r + eta3 (r (2 M11 + M02) - u M11) at r (1 - eta3/2) = 0
        r, u = found.beta_target.midpoint - 2, found.beta_background.midpoint - 2
        m11, m02 = m.m11.midpoint, m.m02.midpoint
        truth = eta3 * (r * (2 * m11 + m02) - u * m11)
        # the gap is known to 15 digits, which e^-gap magnifies by the gap
        assert abs(found.final_residual.midpoint / truth - 1) < Fraction(1, 10**10)


def test_a_residual_beyond_every_exponent_is_bounded_at_once():
    found = c.three_phase(3, "2.77e-4", "1.83e22", 2, 1)
    assert found.final_residual.bounds[1] <= Fraction(1, 10**99_000)
    assert found.risks[3].relative_width < 1e-14
    assert c.three_phase(2, 1, 1, 2, 1).final_residual.sign() == 0


def test_one_step_at_rate_two_agrees_with_the_gradient_at_high_precision():
    # by the plain residual - eta gradient, with digits enough to afford its cancellation
    found = c.three_phase(50, 1, 10**4, 2, 1, 20)
    gap = c.three_phase(50, 1, 10**4, 2, 1, 80).gap.midpoint
    beta = c.three_phase(50, 1, 10**4, 2, 0, 80)
    target, background = beta.beta_target.midpoint, beta.beta_background.midpoint
    slope = c.symmetric_gradient(50, gap, target, background, digits=60)
    truth = target - 2 - 2 * slope.beta_target.midpoint
    assert abs(found.final_residual.midpoint / truth - 1) < Fraction(1, 10**18)


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
