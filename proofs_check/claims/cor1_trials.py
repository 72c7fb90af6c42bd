"""Corollary 1 with drawn words: success rates of trials. Paper 4 (the box is printed)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from popgd.ball import ball, hull, to_float

from .. import grids
from ..claim import Claim, Hypothesis, Sides
from ..point import Point
from ..trial_statistics import Interval, clopper_pearson
from ..trials import Setting, Trials
from ..verdict import Kind, Mark
from .thm2 import CONSTANT, HYPOTHESES

TITLE = "Finite samples"

CONFIDENCE = 0.999
"""Of each point's interval."""

GRIDS = {
    "quick": ((3, 10), ("0.1",), 100),
    "default": ((3, 5, 10, 20, 50), ("0.5", "0.1", "0.01"), 200),
    "full": ((3, 5, 10, 20, 50, 100, 200), ("0.5", "0.1", "0.01"), 1000),
}
"""Dimensions, risks and trials of a level; `proofs-check trials` goes further."""

ROOT = 0
"""Seed of the words."""


def _grid(level: str) -> Iterator[Point]:
    dimensions, risks, trials = GRIDS[level]
    return grids.product(d=dimensions, eps=risks, eta1=("1",), C=(4,), c=(1,), trials=(trials,))


def _sides(point: Point) -> Sides:
    d = point.d
    rate = _rate(d, str(point["eps"]), str(point["eta1"]), int(point["C"]), int(point["trials"]))
    low, high = (ball(Fraction(x)) for x in (rate.low, rate.high))
    return Sides(hull(low, high), 1 - 3 * Fraction(d) ** -int(point["c"]))


@lru_cache(maxsize=256)
def _rate(d: int, eps: str, eta1: str, constant: int, trials: int) -> Interval:
    run = Trials(Setting(d, to_float(Fraction(eps)), to_float(Fraction(eta1))), trials, ROOT)
    return clopper_pearson(run.successes(constant), trials, CONFIDENCE)


CLAIMS = (
    Claim(
        id="cor1",
        title="N1 = C d ln d, N3 = C ln d/eps, T = ceil(72/eps): P(L <= eps) >= 1 - 3 d^(-c); "
        "sampled: the rate is a 99.9 % Clopper-Pearson interval, each L exact (C = 4, c = 1)",
        mark=Mark.PRINTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 4 (Corollary 1)",
        sides=_sides,
        grid=_grid,
        # at d = 3, c = 1 the corollary says only that a probability is at least 0
        hypotheses=(*HYPOTHESES, CONSTANT, Hypothesis("3/d**c < 1")),
        # a sample proves nothing: the verdict is "not falsified" at best
        search=lambda level: (),
    ),
)
