"""Proposition 3: training the output alone fails for some target. Paper 3, A.4 (box missing)."""

from __future__ import annotations

from collections.abc import Callable

from popgd.ball import Ball, ball

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, Sides
from ..point import Point
from ..symbolic import is_zero
from ..verdict import Kind, Mark

TITLE = "Output-only training fails"


def uniform_minimum(d: int):
    """(1/2)(1 - (d-2)/((d-1) ln(d-1))) as a ball."""
    return (1 - (d - 2) / ((d - 1) * ball(d - 1).log())) / 2


def or_uniform(
    value: Callable[[Point], Ball], stays: Callable[[Point], bool]
) -> Callable[[Point], Ball]:
    """The value at a point, by the closed form where attention stays uniform."""
    return lambda point: uniform_minimum(point.d) if stays(point) else value(point)


def against_uniform(
    value: Callable[[Point], Ball], stays: Callable[[Point], bool]
) -> Callable[[Point], Sides]:
    """The value at a point against that of uniform attention."""

    def sides(point: Point) -> Sides:
        if stays(point):
            return Sides(0, 0)  # the closed form itself, see prop3.uniform
        return Sides(value(point), uniform_minimum(point.d))

    return sides


def _uniform(point: Point) -> Sides:
    return Sides(Attention(point.d, ball(0)).minimum, uniform_minimum(point.d))


def _uniform_proof() -> str:
    import sympy as sp

    from popgd import closed_forms

    d = closed_forms.symbols().d
    formula = (1 - (d - 2) / ((d - 1) * sp.log(d - 1))) / 2
    is_zero(closed_forms.output_minimum() - formula, "derived minimum and formula")
    return "normal equations solved symbolically at uniform attention"


CLAIMS = (
    Claim(
        id="prop3.uniform",
        title="min over beta at uniform attention is (1/2)(1 - (d-2)/((d-1) ln(d-1)))",
        mark=Mark.OURS,
        kind=Kind.IDENTITY,
        source="THEORY 5",
        sides=_uniform,
        grid=lambda level: grids.product(d=grids.dimensions(level, 3)),
        hypotheses=(Hypothesis("d >= 3"),),
        proof=_uniform_proof,
    ),
)
