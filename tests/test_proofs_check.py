"""The checker: verdicts by enclosures only, one claim at a time."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from planted_claims import planted

from popgd.ball import ball, precision
from proofs_check import collect
from proofs_check.claim import Hypothesis, ProofFailed, Sharp, Sides
from proofs_check.judge import judge, within
from proofs_check.point import Point
from proofs_check.report import exit_code
from proofs_check.symbolic import never_negative, positive
from proofs_check.verdict import Kind, Verdict

# Verdict


def test_a_verdict_has_no_truth_value():
    for verdict in Verdict:
        with pytest.raises(TypeError, match="no truth value"):
            bool(verdict)


# Points


def test_points_are_exact_and_survive_json():
    point = Point(d=10, eta1="sqrt(d)/2", eps=Fraction(1, 3), beta=("1/7", "2"))
    again = Point(**json.loads(json.dumps(point.to_json())))
    assert again == point
    assert hash(again) == hash(point)
    assert point.exact("eps").fraction == Fraction(1, 3)
    assert (point.ball("eta1") * 2) ** 2 - ball("9.9999999") > 0


def test_hypotheses_know_that_sqrt_d_is_at_most_sqrt_d():
    at_most = Hypothesis("eta1 <= sqrt(d)")
    assert all(at_most(Point(d=d, eta1="sqrt(d)")) is True for d in range(2, 200))
    with precision(96):  # the double nearest to sqrt(10) exceeds it
        assert at_most(Point(d=10, eta1="3.1622776601683795")) is False
    assert Hypothesis("eta1 < sqrt(d)")(Point(d=10, eta1="sqrt(d)")) is False


# One point


@pytest.mark.parametrize(
    ("kind", "left", "right", "strict", "verdict"),
    [
        (Kind.UPPER_BOUND, 1, 2, False, Verdict.HOLDS),
        (Kind.UPPER_BOUND, 2, 1, False, Verdict.FAILS),
        (Kind.UPPER_BOUND, 2, 2, False, Verdict.HOLDS),
        (Kind.UPPER_BOUND, 2, 2, True, Verdict.FAILS),
        (Kind.LOWER_BOUND, 1, 2, False, Verdict.FAILS),
        (Kind.LOWER_BOUND, 2, 1, False, Verdict.HOLDS),
        (Kind.IDENTITY, Fraction(1, 3), Fraction(2, 6), False, Verdict.HOLDS),
        (Kind.IDENTITY, Fraction(1, 3), Fraction(2, 7), False, Verdict.FAILS),
        (Kind.RATE, 1, 2, False, Verdict.HOLDS),
        (Kind.RATE, 2, 1, False, Verdict.FAILS),
        (Kind.RATE, 0, 1, False, Verdict.HOLDS),
        (Kind.EXISTS_CONSTANT, 2, 1, False, Verdict.FAILS),
    ],
)
def test_the_kind_chooses_the_comparison(kind, left, right, strict, verdict):
    claim = planted(kind, lambda point: Sides(left, right, strict=strict))
    assert judge(claim, Point(d=3)).verdict is verdict


def test_an_identity_of_irrationals_holds_to_its_radius_and_is_not_proved():
    claim = planted(Kind.IDENTITY, lambda p: Sides(ball(2).sqrt() ** 2, 2))
    outcome = collect.run_here(claim)
    assert outcome.verdict is Verdict.HOLDS_TO
    assert outcome.text.startswith("holds to 10^-")
    assert int(outcome.text.rsplit("-", 1)[1]) >= 30


def test_precision_rises_until_a_tiny_difference_is_seen():
    tiny = ball(10) ** -150
    claim = planted(
        Kind.IDENTITY, lambda p: Sides(ball(2).sqrt() * (1 + ball(10) ** -25), ball(2).sqrt())
    )
    assert judge(claim, Point(d=3)).verdict is Verdict.FAILS
    strict = planted(
        sides=lambda p: Sides(ball(2).sqrt() * (1 - tiny), ball(2).sqrt(), strict=True)
    )
    assert judge(strict, Point(d=3)).verdict is Verdict.HOLDS


def test_a_strict_bound_that_cannot_be_told_from_equality_is_undecided():
    claim = planted(sides=lambda p: Sides(ball(2).sqrt() ** 2, 2, strict=True))
    found = judge(claim, Point(d=3))
    assert found.verdict is Verdict.UNDECIDED
    assert "precision" in found.note
    assert exit_code([collect.run_here(claim)]) == 3


def test_an_attained_bound_holds_to_its_radius():
    claim = planted(sides=lambda p: Sides(ball(2).sqrt() ** 2, 2))
    assert judge(claim, Point(d=3)).verdict is Verdict.HOLDS_TO


def test_points_outside_the_hypotheses_are_never_passed():
    claim = planted(points=[Point(d=3), Point(d=2)], hypotheses=(Hypothesis("d >= 3"),))
    outcome = collect.run_here(claim)
    assert outcome.counts["outside"] == 1
    assert outcome.counts["holds"] == 1


def test_an_impossible_hypothesis_yields_outside_and_not_holds():
    claim = planted(hypotheses=(Hypothesis("d < 0"),))
    assert collect.run_here(claim).verdict is Verdict.OUTSIDE
    sides_not_reached = planted(sides=lambda p: 1 / 0, hypotheses=(Hypothesis("d < 0"),))
    assert collect.run_here(sides_not_reached).verdict is Verdict.OUTSIDE


def test_an_undecided_hypothesis_is_not_passed_either():
    claim = planted(hypotheses=(Hypothesis("d >= sqrt(3)*sqrt(3)"),))
    assert within(claim.hypotheses, Point(d=3)) is None
    assert collect.run_here(claim).verdict is Verdict.UNDECIDED


def test_a_search_is_reported_as_not_falsified():
    claim = planted(search=lambda level: [Point(d=4), Point(d=5)])
    assert collect.run_here(claim).text == "not falsified (3 points)"


def test_a_claim_that_raises_is_an_error_with_its_traceback():
    outcome = collect.run_here(planted(sides=lambda p: 1 / 0))
    assert outcome.verdict is Verdict.ERROR
    assert "ZeroDivisionError" in outcome.traceback
    assert exit_code([outcome]) == 1


def test_proofs_count_only_when_no_point_contradicts_them():
    assert collect.run_here(planted(proof=lambda: "algebra")).verdict is Verdict.PROVED
    false = planted(sides=lambda p: Sides(2, 1), proof=lambda: "a wrong proof")
    assert collect.run_here(false).verdict is Verdict.FAILS

    def stuck() -> str:
        raise ProofFailed("a term was left")

    assert collect.run_here(planted(proof=stuck)).verdict is Verdict.UNDECIDED


def test_the_sharp_constant_encloses_the_supremum():
    points = [Point(d=d) for d in (2, 5, 3)]
    claim = planted(points=points, sharp=Sharp("root", lambda p: ball(p.d).sqrt()))
    found = collect.run_here(claim).sharp
    assert found is not None
    assert found.point == Point(d=5)
    assert found.value.contains("sqrt(5)")
    assert found.value.relative_width < 1e-9


def test_polynomial_proofs_reject_what_is_false():
    import sympy as sp

    d = sp.Symbol("d")
    positive(d - 2, "d - 2", d=3)
    never_negative(d - 3, "d - 3", d=3)
    for expression in (d - 3, d - 4, 1 / (3 - d)):
        with pytest.raises(ProofFailed):
            positive(expression, "false", d=3)
    with pytest.raises(ProofFailed, match="no range"):
        positive(d, "d")
