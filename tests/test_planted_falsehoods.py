"""Planted falsehoods, one of each sort for each kind of claim: the checker must say `fails`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from planted_claims import altered, registered

from popgd.ball import ball
from proofs_check import collect
from proofs_check.claim import Hypothesis
from proofs_check.judge import judge
from proofs_check.point import Point
from proofs_check.verdict import Kind, Verdict


def _times(factor):
    return lambda s: replace(s, right=_scaled(s.right, Fraction(factor)))


def _scaled(x, factor):
    return x * factor if isinstance(x, (int, Fraction)) else ball(x) * ball(factor)


LAST = Point(d=10**6, eps="0.1", eta1="sqrt(d)", attention="C = 2", T="printed")
EXPONENTIAL = LAST.but(link="8d (1-1/(8d))^(2T) <= 8d e^(-T/(4d))")


@pytest.mark.parametrize(
    ("id", "factor", "point"),
    [
        ("prop3.uniform", "1.01", Point(d=50)),
        ("thm2.rate.end", "0.99", Point(d=10**6, eps="0.1")),
        ("thm1.large", "1.01", Point(d=9)),
        ("prop2.pairing", "1.01", Point(d=10**6, link=">= 1/3")),
        ("thm2.rate", "0.99", EXPONENTIAL.but(T="1")),
    ],
)
def test_a_constant_off_by_one_percent_fails(id, factor, point):
    assert judge(registered(id), point).verdict in (Verdict.HOLDS, Verdict.HOLDS_TO)
    assert judge(altered(id, _times(factor)), point).verdict is Verdict.FAILS


def test_the_sharp_constant_of_an_existence_claim_less_one_percent_fails():
    claim = replace(registered("thm2.attention"), hypotheses=())
    point = Point(d=3, eps="0.1", eta1="sqrt(d)", C=2)
    sharp = collect.constant(claim.sharp, point)  # type: ignore[arg-type]
    low, high = (str(x * f) for x, f in zip(sharp.bounds, (Fraction("0.99"), Fraction("1.01"))))
    assert judge(claim, point.but(C=low)).verdict is Verdict.FAILS
    assert judge(claim, point.but(C=high)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("id", "point"),
    [
        ("prop3.uniform", Point(d=50)),
        ("prop1.short", Point(eps="0.5")),
        ("thm1.ratio", Point(d=5, m=5)),
        ("thm2", Point(d=5, eps="0.1", eta1="1", C=1)),
        ("thm2.rate", EXPONENTIAL),
    ],
)
def test_a_flipped_sign_fails(id, point):
    flip = altered(id, lambda s: replace(s, left=s.right, right=s.left))
    if registered(id).kind is Kind.IDENTITY:
        flip = altered(id, lambda s: replace(s, right=-ball(s.right)))
    assert judge(flip, point).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("id", "point", "hypothesis"),
    [
        ("thm2.accuracy.half", Point(d=5, eps="0.5", eta1="0.75*d", C=100), "eta1 outside (d/2"),
        ("thm2.distance", Point(d=3, eps="0.1", eta1="100*d", attention="mu1 = 1 - eps/4",
                                link="||beta'-beta*||^2 <= 16d"), "eta1 <= sqrt(d)"),
        ("thm1.large", Point(d=8), "d >= 9"),
        ("thm2", Point(d=3, eps="0.1", eta1="1", C="0.1"), "C >= 1"),
        ("thm2.rate", EXPONENTIAL.but(d=3, eta1="100*d", attention="mu1 = 1 - eps/4", T="1",
                                      link="||beta(T)-beta*||^2/2 <= 8d (1-1/(8d))^(2T)"),
         "eta1 <= sqrt(d)"),
    ],
)  # fmt: skip
def test_a_dropped_hypothesis_fails(id, point, hypothesis):
    claim = registered(id)
    outside = judge(claim, point)
    assert outside.verdict is Verdict.OUTSIDE
    assert outside.note.startswith(hypothesis)
    kept = tuple(h for h in claim.hypotheses if not h.text.startswith(hypothesis))
    assert len(kept) == len(claim.hypotheses) - 1
    assert judge(replace(claim, hypotheses=kept), point).verdict is Verdict.FAILS


def test_a_proof_under_hypotheses_that_no_point_meets_is_outside():
    claim = replace(
        next(c for c in collect.by_id().values() if c.proof is not None and c.hypotheses),
        hypotheses=(Hypothesis("d < 0"),),
        sharp=None,
    )
    assert collect.run_here(claim, "quick").verdict is Verdict.OUTSIDE


def test_heads_as_many_as_symbols_are_outside_proposition_4():
    claim = collect.by_id()["prop4"]
    point = Point(d=16, H=16, sizes=(1, 15), alpha=("0",) * 32, tier=(0,) * 32)
    assert judge(claim, point).verdict is Verdict.OUTSIDE
