"""Proposition 4: fixed heads and bounded outputs, over all attention by search (box missing)."""

from __future__ import annotations

from collections.abc import Iterator

from popgd.ball import Ball

from .. import hunts, wording
from ..block_points import lazy_heads
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..sharp_table import Table
from ..sought import Sought
from ..verdict import Kind, Mark
from .prop3 import uniform_minimum
from .prop4 import bound, says_something

TITLE = "Lazy multi-head training fails: search over heads"

CASES = {
    "quick": ((3, 1), (9, 1), (9, 2)),
    "default": tuple((d, h) for d in (3, 9, 50) for h in (1, 2, 3) if h * h <= d),
    "full": tuple((d, h) for d in (3, 4, 5, 9, 12, 20, 50) for h in (1, 2, 3) if h * h <= d),
}
"""(d, H) with H <= c sqrt(d), c = 1. It is needed: d heads that each put a symbol of their own
above all others reach L = 0 at B = 2 e_s in head s, of norm 2 <= d^(1/4) from d = 16 on.
"""


def _structured(level: str) -> Iterator[Point]:
    """One uniform head."""
    for d in dict.fromkeys(d for d, _ in CASES[level]):
        yield Point(d=d, H=1, sizes=(1, d - 1), alpha=("0", "0"), tier=(0, 0))


def _search(level: str) -> Iterator[Point]:
    for d, h in CASES[level]:
        yield Sought(
            {"d": d, "H": h},
            lambda d=d, h=h: hunts.attention_point(hunts.lazy_heads(d, h, level)),
        )


def _sides(point: Point) -> Sides:
    return Sides(lazy_heads(point)[0], 0, strict=True)


def _by_pairing(point: Point) -> Ball | None:
    return bound(point) if says_something(point) else None


TABLE = Table(
    {
        "bound by pairing": _by_pairing,
        "uniform heads, no bound on B": lambda point: uniform_minimum(point.d),
    },
    wording.heads,
    lambda point, level: hunts.lazy_heads(point.d, int(point["H"]), level),
)

CLAIMS = (
    Claim(
        id="prop4",
        title="H <= sqrt(d) fixed heads: some s has min over ||B||_F <= d^(1/4) of L_s >= c2 > 0",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 3, A.5",
        sides=_sides,
        grid=_structured,
        hypotheses=(Hypothesis("d >= 3"), Hypothesis("H >= 1"), Hypothesis("H <= sqrt(d)")),
        sharp=Sharp("smallest value found", lazy_heads, largest=False, points=_search, table=TABLE),
        search=_search,
        searched="alpha of every head over symbols in up to 4 blocks, structured starts, limits "
        "of alpha included; the minimum over B is exact",
    ),
)
