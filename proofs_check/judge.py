"""Judging a claim at a point: precision rises until an enclosure decides, or the cap is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from popgd.ball import (
    Ball,
    Enclosure,
    ball,
    enclose,
    less,
    lower,
    magnitude,
    precision,
    sign,
    upper,
)
from popgd.errors import PrecisionExhausted
from popgd.expression import Exact

from .claim import Claim, Hypothesis, Sides
from .point import Point
from .verdict import Kind, Verdict

__all__ = ["CAP", "START", "Judgement", "judge", "within"]

START = 64  # bits: decides most inequalities
IDENTITY_START = 128  # bits: enough for a radius of 10^-30 in most identities
CAP = 768  # bits: a default; more helps only a claim reported undecided
ENOUGH = 256  # bits after which a bound met to 10^-30 counts as attained
ATTAINED = Fraction(1, 10**30)  # radius at which 0 inside the margin counts as `holds to`
DIGITS = 12  # of reported margins


@dataclass(frozen=True)
class Judgement:
    """The verdict at one point.

    Attributes
    ----------
    point : Point
    verdict : Verdict
    margin : Enclosure or None
        Relative margin, positive when the claim holds; for an identity the relative
        difference of the two sides. None when outside or in error.
    note : str
        What is missing: the hypothesis violated, or the knob that would help.
    kind : Kind
        How the two sides were compared.
    index : int
        Place of the point in the claim's grid.
    """

    point: Point
    verdict: Verdict
    margin: Enclosure | None = None
    note: str = ""
    kind: Kind = Kind.UPPER_BOUND
    index: int = 0

    @property
    def badness(self) -> Fraction:
        """Orders the points of a claim: the largest is the worst."""
        assert self.margin is not None
        low, high = self.margin.bounds
        return max(abs(low), abs(high)) if self.kind is Kind.IDENTITY else -low

    @property
    def decimals(self) -> int:
        """The k of `holds to 10^-k`."""
        assert self.margin is not None
        size = max(abs(x) for x in self.margin.bounds)
        k = 0
        while size * 10 ** (k + 1) <= 1 and k < 9999:
            k += 1
        return k


def judge(claim: Claim, point: Point, cap: int = CAP) -> Judgement:
    """The verdict of a claim at a point.

    Parameters
    ----------
    claim : Claim
    point : Point
    cap : int
        Largest precision tried, in bits.

    Returns
    -------
    Judgement

    Notes
    -----
    Error: proved; every verdict is the sign of an enclosure, and `undecided` if it has none.
    """
    inside = within(claim.hypotheses, point, cap)
    if isinstance(inside, str):
        return Judgement(point, Verdict.OUTSIDE, note=inside)
    if inside is None:
        note = "a hypothesis is undecided; raise --precision"
        return Judgement(point, Verdict.UNDECIDED, note=note)
    bits = min(IDENTITY_START if claim.kind is Kind.IDENTITY else START, cap)
    while True:
        with precision(bits):
            found = _attempt(claim, point, bits, cap)
        if found is not None:
            return found
        bits = min(2 * bits, cap)


def within(hypotheses: Sequence[Hypothesis], point: Point, cap: int = CAP) -> bool | str | None:
    """True inside all hypotheses, the text of one that is violated, or None when undecided."""
    undecided = False
    for hypothesis in hypotheses:
        bits, answer = min(START, cap), None
        while answer is None:
            with precision(bits):
                answer = hypothesis(point)
            if bits >= cap:
                break
            bits = min(2 * bits, cap)
        if answer is False:
            return hypothesis.text
        undecided = undecided or answer is None
    return None if undecided else True


def _attempt(claim: Claim, point: Point, bits: int, cap: int) -> Judgement | None:
    """The verdict at the current precision; None asks for more."""
    try:
        sides = claim.sides(point)
        kind = sides.kind or claim.kind
        margin = _margin(sides, kind)
        verdict = _decide(margin, kind, sides.strict, bits, cap)
        if verdict is None:
            return None
        shown = enclose(margin, DIGITS)
    except PrecisionExhausted:
        if bits < cap:
            return None
        return Judgement(point, Verdict.UNDECIDED, note="no finite enclosure; raise --precision")
    note = "straddles 0; raise --precision" if verdict is Verdict.UNDECIDED else ""
    return Judgement(point, verdict, shown, note, kind)


def _decide(margin: Any, kind: Kind, strict: bool, bits: int, cap: int) -> Verdict | None:
    side, narrow = sign(margin), less(magnitude(margin), ball(ATTAINED)) is True
    if side is None:
        attained = narrow and (kind is Kind.IDENTITY or (not strict and bits >= min(ENOUGH, cap)))
        if attained:
            return Verdict.HOLDS_TO
        return Verdict.UNDECIDED if bits >= cap else None
    if kind is Kind.IDENTITY:
        return Verdict.HOLDS if side == 0 else Verdict.FAILS
    return Verdict.HOLDS if side > 0 or (side == 0 and not strict) else Verdict.FAILS


def _margin(sides: Sides, kind: Kind) -> Any:
    left: Any = _rational(sides.left)
    right: Any = _rational(sides.right)
    if left is None or right is None or kind is Kind.RATE:
        left, right = ball(sides.left), ball(sides.right)
    if kind is Kind.RATE:
        return _log_ratio(right, left)
    difference = left - right if kind in (Kind.LOWER_BOUND, Kind.IDENTITY) else right - left
    return difference / abs(right) if sign(right) in (1, -1) else difference


def _rational(value: Any) -> Fraction | None:
    """Rationals are compared exactly; everything else as balls."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    return value.fraction if isinstance(value, Exact) else None


def _log_ratio(right: Ball, left: Ball) -> Ball:
    if sign(left) == 0 and sign(right) in (0, 1):
        return ball(1)  # zero is below every rate
    if sign(right) == -1 or sign(left) == -1:
        return right - left
    return (right / left).log() if sign(lower(left)) == 1 else (right - left) / upper(right)
