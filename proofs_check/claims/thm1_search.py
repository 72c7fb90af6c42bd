"""Theorem 1: attention first, over all outputs and step sizes by search (box missing)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from popgd.ball import ball

from .. import hunts, wording
from ..block_points import attention_first
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..sharp_table import Table
from ..sought import Sought
from ..verdict import Kind, Mark
from .prop3 import against_uniform, or_uniform, uniform_minimum

TITLE = "Attention first fails: search over outputs and step sizes"

DIMENSIONS = {
    "quick": (3, 9, 50),
    "default": (*range(3, 13), 20, 50),
    "full": (*range(3, 13), 20, 50, 100, 200, 1000),
}


def _structured(level: str) -> Iterator[Point]:
    """Equal outputs, for which attention stays uniform, and one output apart from the rest."""
    for d in DIMENSIONS[level]:
        yield Point(d=d, sizes=(1, d - 1), beta=("1", "1"), eta="1")
        for eta in ("1e-3", "10"):
            yield Point(d=d, sizes=(1, d - 1), beta=("2", "0"), eta=eta)


def _search(level: str) -> Iterator[Point]:
    for d in DIMENSIONS[level]:
        yield Sought({"d": d}, lambda d=d: hunts.step_point(hunts.attention_first(d, level)))


def _stays(point: Point) -> bool:
    """Equal outputs leave attention uniform."""
    return len({Fraction(x) for x in point["beta"]}) == 1


SEARCHED = (
    "beta~ over symbols in up to 5 blocks (each symbol its own for small d) and eta in "
    "[1e-3, 1e5] together, structured and random starts; the minimum over beta is exact"
)
VALUE = or_uniform(attention_first, _stays)
TABLE = Table(
    {
        "uniform attention": lambda point: uniform_minimum(point.d),
        "c3 = 1/6912": lambda point: ball(Fraction(1, 6912)) if point.d >= 9 else None,
    },
    wording.step,
    lambda point, level: hunts.attention_first(point.d, level),
)

CLAIMS = (
    Claim(
        id="thm1",
        title="for some s, min over beta of L_s(alpha', beta) >= 1/6912 for all beta~, eta",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 3, A.6",
        sides=lambda point: Sides(attention_first(point), Fraction(1, 6912)),
        grid=_structured,
        hypotheses=(Hypothesis("d >= 9"), Hypothesis("eta > 0")),
        sharp=Sharp("smallest value found", VALUE, largest=False, points=_search),
        search=_search,
        searched=SEARCHED,
    ),
    Claim(
        id="thm1.uniform",
        title="open question: the attention step never does better than uniform attention",
        mark=Mark.OURS,
        kind=Kind.LOWER_BOUND,
        source="THEORY 5",
        sides=against_uniform(attention_first, _stays),
        grid=_structured,
        hypotheses=(Hypothesis("d >= 3"), Hypothesis("eta > 0")),
        sharp=Sharp("smallest value found", VALUE, largest=False, points=_search, table=TABLE),
        search=_search,
        searched=SEARCHED,
    ),
)
