"""The claim files: every one obeys the skeleton, and says what the paper's formulas give."""

from __future__ import annotations

import inspect
from fractions import Fraction
from pathlib import Path

import pytest
from claim_files import check_claim, check_file

from popgd.ball import ball, precision, sign, to_float
from proofs_check import collect
from proofs_check.attention import Attention, uniform_moments
from proofs_check.claim import Claim
from proofs_check.claims import prop2, prop4, thm1, thm2, thm2_accuracy
from proofs_check.judge import judge
from proofs_check.point import Point
from proofs_check.training import at_equality, ceiling, first_output, printed_steps
from proofs_check.verdict import Verdict

FILES = collect.modules()
CLAIMS = list(collect.by_id().values())

# exact rationals or a few evaluations each: the whole quick grid in seconds
CHEAP = [
    "balance",
    "shift.counts",
    "prop1.reduction",
    "prop1.negatives",
    "prop1.tail",
    "prop1.long",
    "prop1.attention",
    "prop1.short",
    "prop2.pairing",
    "prop2.pairing.order",
    "prop2.pairing.mass",
    "prop2.pairing.minimum",
    "prop4.pairing",
    "prop4.pairing.change",
    "prop4.frozen",
    "thm1",
    "thm2.start",
    "thm2.sum",
    "thm2.phase2.sign",
]


@pytest.mark.parametrize("module", FILES, ids=lambda m: m.__name__.rsplit(".", 1)[1])
def test_a_claim_file_obeys_the_skeleton(module):
    check_file(module, Path(inspect.getsourcefile(module)).read_text())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_a_claim_is_complete(claim: Claim):
    check_claim(claim)


def test_quick_is_contained_in_the_effort_of_default():
    for claim in CLAIMS:
        assert len(list(claim.grid("quick"))) <= len(list(claim.grid("default"))), claim.id


@pytest.mark.parametrize("id", CHEAP)
def test_cheap_claims_have_the_expected_verdicts(id):
    from proofs_check.findings import known

    for claim in collect.find([id]):
        outcome = collect.run_here(claim, "quick")
        if claim.id in known():
            assert outcome.verdict is Verdict.FAILS
        else:
            good = (Verdict.PROVED, Verdict.HOLDS, Verdict.HOLDS_TO, Verdict.NOT_FALSIFIED)
            assert outcome.verdict in good, outcome.traceback or outcome.text


@pytest.mark.parametrize(
    ("id", "point"),
    [
        ("prop1", Point(d=50, eps="0.1")),
        ("prop3.uniform", Point(d=3)),
        ("prop3.uniform", Point(d=10**6)),
        ("lemma.symmetry", Point(d=5, link="gradient alpha")),
        ("thm2.phase1", Point(d=50, eta1="sqrt(d)", link="beta_j")),
        ("thm2.phase2", Point(d=50, eta1="sqrt(d)")),
        ("thm2", Point(d=3, eps="0.1", eta1="sqrt(d)", C=1)),
        ("thm2", Point(d=10**6, eps="1e-8", eta1="1e-6", C=100)),
        ("cor1.population", Point(d=10**6, eps="0.999", eta1="1", C=1)),
        ("thm2.floor", Point(d=3, eps="0.999", eta1="1", attention="mu1 = 1 - eps/4")),
    ],
)
def test_single_points_hold(id, point):
    found = judge(collect.by_id()[id], point)
    assert found.verdict in (Verdict.HOLDS, Verdict.HOLDS_TO), found


# References of another kind


def _enumerate(d: int, gap: float, longest: int) -> tuple[float, float]:
    """(E_+[gamma^2], E_+[(1-gamma)^2]) over words of length <= longest, by binomial counts."""
    from math import comb, exp

    second = rest = 0.0
    for m in range(1, longest + 1):
        p_m = (d - 2) ** (m - 1) / (d - 1) ** m
        for c in range(1, m + 1):
            weight = p_m * comb(m, c) * (d - 1) ** (m - c) / d**m
            gamma = c / (c + (m - c) * exp(-gap))
            second += weight * gamma**2
            rest += weight * (1 - gamma) ** 2
    return second, rest


@pytest.mark.parametrize(("d", "gap"), [(3, 0), (3, 2), (4, 1)])
def test_attention_moments_are_sums_over_words(d, gap):
    second, rest = _enumerate(d, gap, 120)
    with precision(96):
        attention = Attention(d, ball(gap))
        # the words left out have probability q^120 < 1e-20; doubles limit the comparison
        assert to_float(attention.m20) == pytest.approx(second, rel=1e-13)
        assert to_float(attention.m02) == pytest.approx(rest, rel=1e-13)


def test_one_third_of_the_moments_agree_with_total_probability():
    with precision(128):
        m = uniform_moments(50)
        total = m.m20 + 2 * m.m11 + m.m02
        assert total.contains(ball(1) / 2)


def test_training_of_the_output_is_the_recursion():
    with precision(128):
        attention = Attention(5, ball(2))
        error = attention.error(ball(-1), ball("1/3"))
        a, b, c = attention.hessian
        x, y = error
        for _ in range(7):
            x, y = x - (a * x + b * y), y - (b * x + c * y)
        after = attention.after(7, error)
        assert after[0].overlaps(x)
        assert after[1].overlaps(y)


def test_equality_encloses_the_hypothesis():
    with precision(128):
        attention = at_equality(10, "0.1")
        assert attention.lost.contains(ball("0.025"))
        assert to_float(attention.gap.rad()) < 1e-30


def test_the_smallest_gap_fails_below_and_is_safe_above():
    point = Point(d=5, eps="0.1", eta1="1", C=1)
    with precision(128):
        low, high = thm2.smallest_gap(point)
        start, steps = first_output(5, ball(1)), printed_steps(point)
        eps = point.ball("eps")
        assert sign(thm2.final_risk(Attention(5, low), start, steps) - eps) == 1
        for more in ("0", "1/1000", "1", "10", "1000"):
            risk = thm2.final_risk(Attention(5, high + ball(more)), start, steps)
            assert sign(risk - eps) == -1
        # the price of covering every larger gap is about eps/(64 d)
        assert to_float(high - low) < 0.1 / 64


def test_a_gap_is_not_called_safe_when_it_fails():
    point = Point(d=5, eps="0.1", eta1="1", C=1)
    with precision(128):
        low, _ = thm2.smallest_gap(point)
        start, steps = first_output(5, ball(1)), printed_steps(point)
        assert not thm2._safe_from(Attention(5, low), start, steps, point.ball("eps"))


def test_ceiling_decides_or_raises():
    with precision(64):
        assert ceiling(ball("7/2")) == 4
        assert ceiling(ball(4)) == 4
        with pytest.raises(ArithmeticError, match="undecided"):
            ceiling(ball(2).sqrt() * ball(2).sqrt())


@pytest.mark.parametrize("d", [3, 4, 10])
def test_accuracy_is_the_sum_over_words(d):
    from math import comb, exp

    point = Point(d=d, eps="0.5", eta1="0.75*d", C="1/2")
    with precision(96):
        value = to_float(thm2_accuracy.accuracy(point))
        gap = to_float(thm2_accuracy.phase_2(point).gap)
    beta_s, beta_j = 1.5, 0.75 * (d - 2) / (d - 1)
    right = 0.5  # every negative word: beta_j < 1
    for m in range(1, 60 * d):
        p_m = (d - 2) ** (m - 1) / (d - 1) ** m
        for c in range(1, m + 1):
            if (beta_s - 1) * c * exp(gap) > (1 - beta_j) * (m - c):
                right += p_m * (comb(m, c) * (d - 1) ** (m - c) / d**m)
    # double sums of some 10^5 terms
    assert value == pytest.approx(right, abs=1e-12)


def test_closed_forms_of_the_bounds():
    assert prop2.bound(3) == 1 - Fraction(50, 78)
    assert thm1.large_bound(9) == Fraction(1, 2080)
    with precision(96):
        assert 0.25 < to_float(prop4.total_mass(10**6)) < 0.2500006
