"""Proposition 2: attention-only training, over all weights by search (box missing)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from .. import hunts
from ..block_points import attention_only
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..sought import Sought
from ..verdict import Kind, Mark

TITLE = "Attention-only training fails: search over outputs and attention"

DIMENSIONS = {
    "quick": (3, 5, 50),
    "default": (3, 4, 5, 6, 8, 10, 12, 20, 50, 200, 1000),
    "full": (*range(3, 13), 20, 50, 200, 1000, 10**4, 10**6),
}


def _least_output(point: Point) -> bool:
    """beta~_s is the least of all."""
    beta = [Fraction(x) for x in point["beta"]]
    return beta[0] == min(beta)


def _structured(level: str) -> Iterator[Point]:
    """Outputs that say nothing, and one symbol that stands for long words."""
    for d in DIMENSIONS[level]:
        yield Point(d=d, sizes=(d - 1,), alpha=("0", "0"), tier=(0, 0), beta=("1", "1"))
        yield Point(
            d=d, sizes=(1, d - 2), alpha=("0", "0", "0"), tier=(0, 2, 1), beta=("0", "1", "1/2")
        )


def _search(level: str) -> Iterator[Point]:
    for d in DIMENSIONS[level]:
        yield Sought({"d": d}, lambda d=d: hunts.output_point(hunts.attention_only(d, level)))


CLAIMS = (
    Claim(
        id="prop2",
        title="for every beta~ and s = argmin beta~: inf over alpha of L_s >= c (here 1/3)",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.LOWER_BOUND,
        source="Paper 3, A.3; c = 1/3 by prop2.pairing",
        sides=lambda point: Sides(attention_only(point), Fraction(1, 3)),
        grid=_structured,
        hypotheses=(Hypothesis("d >= 3"), Hypothesis("s = argmin beta~", _least_output)),
        sharp=Sharp("smallest inf over alpha found", attention_only, largest=False, points=_search),
        search=_search,
    ),
)
