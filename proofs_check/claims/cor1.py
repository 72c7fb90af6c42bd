"""Corollary 1: finite samples. Paper 4 (the box is printed); here its population limit."""

from __future__ import annotations

import math
from collections.abc import Iterator

from popgd.ball import Ball, less

from .. import grids
from ..claim import Claim, Sharp, Sides
from ..point import Point
from ..roots import first_integer
from ..training import first_output, phase_2
from ..verdict import Kind, Mark
from .thm2 import CONSTANT, HYPOTHESES, final_risk

TITLE = "Finite samples"


def _steps(point: Point) -> int:
    return math.ceil(72 / point.fraction("eps"))


def _risk(point: Point, steps: int) -> Ball:
    start = first_output(point.d, point.ball("eta1"))
    return final_risk(phase_2(point), start, steps)


def _population(point: Point) -> Sides:
    return Sides(_risk(point, _steps(point)), point.ball("eps"))


def _smallest(point: Point) -> Ball:
    """The least T with L <= eps, times eps."""
    eps = point.ball("eps")
    return eps * first_integer(lambda n: less(_risk(point, n), eps), 4)


def _once(level: str) -> Iterator[Point]:
    return (p for p in grids.symmetric(level) if p["C"] == 1)


CLAIMS = (
    Claim(
        id="cor1.population",
        title="N = infinity, T = ceil(72/eps) steps: L <= eps (C = 1)",
        mark=Mark.PRINTED,
        kind=Kind.EXISTS_CONSTANT,
        source="Paper 4 (Corollary 1)",
        sides=_population,
        grid=grids.symmetric,
        hypotheses=(*HYPOTHESES, CONSTANT),
        sharp=Sharp("smallest T eps (printed: 72)", _smallest, points=_once),
    ),
)
