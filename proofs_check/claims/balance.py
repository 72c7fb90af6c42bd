"""Labels are balanced: P(y = -1) = 1/2 for p = 1/(d-1), any d >= 2. Paper 2."""

from __future__ import annotations

from fractions import Fraction

from .. import grids
from ..claim import Claim, Hypothesis, Sides
from ..point import Point
from ..symbolic import is_zero
from ..verdict import Kind, Mark

TITLE = "The data distribution is balanced"


def _sides(point: Point) -> Sides:
    """First term over 1 - ratio of sum over m of p (1-p)^(m-1) (1 - 1/d)^m, in rationals."""
    p, absent = Fraction(1, point.d - 1), 1 - Fraction(1, point.d)
    return Sides(p * absent / (1 - (1 - p) * absent), Fraction(1, 2))


def _proof() -> str:
    import sympy as sp

    d = sp.Symbol("d", positive=True)
    p, absent = 1 / (d - 1), 1 - 1 / d
    ratio = (1 - p) * absent
    is_zero(ratio - (1 - 2 / d), "the ratio of the series")  # in [0, 1) for d >= 2
    is_zero(p * absent / (1 - ratio) - sp.Rational(1, 2), "its sum")
    return "geometric series with ratio 1 - 2/d, summed symbolically"


CLAIMS = (
    Claim(
        id="balance",
        title="P(y = -1) = 1/2 for p = 1/(d-1)",
        mark=Mark.PRINTED,
        kind=Kind.IDENTITY,
        source="Paper 2",
        sides=_sides,
        grid=lambda level: grids.product(d=grids.dimensions(level)),
        hypotheses=(Hypothesis("d >= 2"),),
        proof=_proof,
        group="model",
    ),
)
