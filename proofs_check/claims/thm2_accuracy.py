"""Accuracy P(sign f = y) after phase 2 from zero, exactly. Paper 4, Figure 2; THEORY 4."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from popgd.ball import Ball, ball, compare, hull, less

from .. import grids
from ..claim import Claim, Hypothesis, Sides
from ..point import Point
from ..training import ceiling, phase_2
from ..verdict import Kind, Mark

TITLE = "Accuracy after phase 2"

HALF = Fraction(1, 2)
NEGLIGIBLE = Fraction(1, 10**15)  # tails below are enclosed, not computed: far below every eps
_ETA1 = ("sqrt(d)", "d/4", "d/2", "0.51*d", "0.75*d", "d", "0.99*d*(d-1)/(d-2)")
_BEYOND = ("d*(d-1)/(d-2)", "1.6*d")


def accuracy(point: Point) -> Any:
    """P(sign f = y) after phase 2; f > 0 predicts +1, anything else -1.

    With beta_s = 2 eta1/d and beta_j = eta1 (d-2)/(d(d-1)) after phase 1, a word with counts
    (C, B) has f > 0 if (beta_s - 1) C e^gap > (1 - beta_j) B.
    """
    target = point.expression("2*eta1/d - 1")
    background = point.expression("1 - eta1*(d-2)/(d*(d-1))")
    up, down = compare(ball(target), 0), compare(ball(background), 0)
    if up is None or down is None:
        raise ArithmeticError("the sign of an output weight minus 1 is undecided")
    if up <= 0 and down >= 0:
        return HALF  # never f > 0: negative words right, positive words wrong
    if up > 0 and down <= 0:
        # f > 0 on every positive word; negative words have f = beta_j - 1 >= 0
        return HALF if down < 0 else 1
    if up <= 0:
        raise ArithmeticError("beta_s <= 1 < beta_j cannot happen after phase 1")
    ratio = ball(target) / ball(background) * phase_2(point).gap.exp()
    return 1 - _missed(point.d, ratio)


def _missed(d: int, ratio: Ball) -> Ball:
    """P(y = 1, B >= ratio C): a sum over C of negative binomial tails."""
    r = ball(d - 2) / (2 * (d - 1))
    total, weight, c = ball(0), (1 - r) / 2, 1
    while less(weight, NEGLIGIBLE) is not True:
        total += weight * _tail(d, c, ratio * c)
        weight, c = weight * r, c + 1
    return total + hull(0, weight / (1 - r))


def _tail(d: int, c: int, least: Ball) -> Ball:
    """P(B >= least), B ~ NB(c + 1, 2/d): an incomplete beta function, or [0, a tiny bound]."""
    x = ball(Fraction(d - 2, d))
    # B is a sum of c + 1 geometric counts: one of them reaches least/(c + 1)
    bound = (c + 1) * (x.log() * least / (c + 1)).exp()
    if less(bound, NEGLIGIBLE):
        return hull(0, bound)
    first = ceiling(least)
    return ball(1) if first <= 0 else x.beta_lower(ball(first), ball(c + 1), regularized=True)


def _reaches(point: Point) -> Sides:
    return Sides(accuracy(point), 1 - point.fraction("eps"))


def _never(point: Point) -> Sides:
    return Sides(accuracy(point), HALF)


def _window(level: str) -> Iterator[Point]:
    dimensions = grids.dimensions(level, 3, 1000)
    return grids.product(d=dimensions, eps=("0.5", "1e-4"), eta1=_ETA1, C=(1, 100))


def _outside(level: str) -> Iterator[Point]:
    dimensions = grids.dimensions(level, 3, 1000)
    return grids.product(d=dimensions, eps=("0.5",), eta1=(*_ETA1, *_BEYOND), C=(1, 100))


def _figure(level: str) -> Iterator[Point]:
    return grids.product(
        d=grids.dimensions(level, 3, 1000),
        eps=("0.5", "1e-4"),
        eta1=grids.first_steps(level),
        C=(1, 100),
    )


def _no_window(point: Point) -> bool | None:
    """eta1 outside (d/2, d(d-1)/(d-2)]."""
    low = compare(ball(point.expression("eta1 - d/2")), 0)
    high = compare(ball(point.expression("eta1 - d*(d-1)/(d-2)")), 0)
    return None if low is None or high is None else low <= 0 or high > 0


CLAIMS = (
    Claim(
        id="thm2.accuracy",
        title="for 0.51 d <= eta1 < d(d-1)/(d-2), eta1 <= d: accuracy >= 1 - eps at C >= 1",
        mark=Mark.OURS,
        kind=Kind.LOWER_BOUND,
        source="THEORY 4",
        sides=_reaches,
        grid=_window,
        hypotheses=(
            Hypothesis("d >= 3"),
            Hypothesis("eps > 0"),
            # beta_s - 1 vanishes at d/2, so the gap that is needed grows without bound there
            Hypothesis("eta1 >= 0.51*d"),
            Hypothesis("eta1 < d*(d-1)/(d-2)"),
            Hypothesis("eta1 <= d"),
            Hypothesis("C >= 1"),
        ),
    ),
    Claim(
        id="thm2.accuracy.half",
        title="for eta1 <= d/2 or eta1 > d(d-1)/(d-2) accuracy is exactly 1/2, whatever eta2",
        mark=Mark.OURS,
        kind=Kind.IDENTITY,
        source="THEORY 4",
        sides=_never,
        grid=_outside,
        hypotheses=(
            Hypothesis("d >= 3"),
            Hypothesis("eta1 outside (d/2, d(d-1)/(d-2)]", _no_window),
        ),
    ),
    Claim(
        id="thm2.accuracy.figure",
        title="accuracy reaches 1 (>= 1 - eps) by the end of phase 2, under eta1 <= sqrt(d)",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 4 (Figure 2), with the hypotheses of Theorem 2",
        sides=_reaches,
        grid=_figure,
        hypotheses=(
            Hypothesis("d >= 3"),
            Hypothesis("eps > 0"),
            Hypothesis("eta1 > 0"),
            Hypothesis("eta1 <= sqrt(d)"),
            Hypothesis("C >= 1"),
        ),
    ),
)
