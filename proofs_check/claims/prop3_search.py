"""Proposition 3: output-only training, over all attention by search (box missing)."""

from __future__ import annotations

from collections.abc import Iterator

from .. import hunts, wording
from ..block_points import is_uniform, output_only
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..sharp_table import Table
from ..sought import Sought
from ..verdict import Kind, Mark
from .prop3 import against_uniform, or_uniform, uniform_minimum

TITLE = "Output-only training fails: search over attention"

DIMENSIONS = {
    "quick": (3, 50, 100),
    "default": (*range(3, 13), 20, 50, 80, 90, 92, 93, 100, 120, 200, 1000),
    "full": (*range(3, 13), 20, 50, 80, 90, 91, 92, 93, 94, 100, 120, 200, 1000, 3000, 10**4,
             10**5, 10**6),
}  # fmt: skip
LEAST = (Hypothesis("d >= 3"),)


def _structured(level: str) -> Iterator[Point]:
    """One symbol above all others, by a little and without bound."""
    for d in DIMENSIONS[level]:
        yield Point(d=d, sizes=(1, d - 1), alpha=("1", "0"), tier=(0, 0))
        yield Point(d=d, sizes=(1, d - 1), alpha=("0", "0"), tier=(1, 0))


def _search(level: str) -> Iterator[Point]:
    for d in DIMENSIONS[level]:
        yield Sought({"d": d}, lambda d=d: hunts.attention_point(hunts.output_only(d, level)))


def _positive(point: Point) -> Sides:
    return Sides(output_only(point), 0, strict=True)


SEARCHED = (
    "alpha over symbols in up to 5 blocks (each symbol its own for small d), structured and random "
    "starts, limits of alpha included; the minimum over beta is exact"
)

CLAIMS = (
    Claim(
        id="prop3",
        title="for every attention some s has min over beta of L_s >= c1 > 0",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 3, A.4",
        sides=_positive,
        grid=_structured,
        hypotheses=LEAST,
        sharp=Sharp(
            "smallest max over s of min over beta found",
            or_uniform(output_only, is_uniform),
            largest=False,
            points=_search,
            table=Table(
                {"uniform attention": lambda point: uniform_minimum(point.d)},
                wording.attention,
                lambda point, level: hunts.output_only(point.d, level),
            ),
        ),
        search=_search,
        searched=SEARCHED,
    ),
    Claim(
        id="prop3.sharp",
        title="open question: uniform attention minimises max over s of min over beta of L_s",
        mark=Mark.OURS,
        kind=Kind.LOWER_BOUND,
        source="THEORY 5",
        sides=against_uniform(output_only, is_uniform),
        grid=_structured,
        hypotheses=LEAST,
        search=_search,
        searched=SEARCHED,
    ),
)
