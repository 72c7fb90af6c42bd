"""Proposition 2: attention-only training, over all weights by search (box missing)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from popgd.ball import Ball, ball

from .. import hunts, wording
from ..block_points import attention_only, every_target
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..sharp_table import Table
from ..sought import Sought
from ..verdict import Kind, Mark
from .prop2 import bound

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


def _equal(level: str) -> Iterator[Point]:
    """Outputs 1 everywhere: f = 0, and no attention changes that."""
    for d in DIMENSIONS[level]:
        yield Point(d=d, sizes=(d,), beta=("1",), alpha=("0", "0"), tier=(0, 0))


def _targets(level: str) -> Iterator[Point]:
    for d in DIMENSIONS[level]:
        yield Sought({"d": d}, lambda d=d: hunts.target_point(hunts.every_target(d, level)))


def _greatest(values: list[Ball]) -> Ball:
    out = values[0]
    for x in values[1:]:
        out = out.max(x)
    return out


def _hardest(point: Point) -> Sides:
    """The targets whose output is not the least, against those whose output is."""
    beta = [Fraction(x) for x in point["beta"]]
    pairs = list(zip(beta, every_target(point), strict=True))
    others = [value for b, value in pairs if b > min(beta)]
    if not others:
        return Sides(0, 0)  # equal outputs: every target is an argmin
    return Sides(_greatest(others), _greatest([value for b, value in pairs if b == min(beta)]))


def _table(words, hunt) -> Table:
    closed = {"bound by pairing": lambda point: ball(bound(point.d))}
    return Table(closed, words, lambda point, level: hunt(point.d, level))


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
        sharp=Sharp(
            "smallest inf over alpha found",
            attention_only,
            largest=False,
            points=_search,
            table=_table(wording.target_and_outputs, hunts.attention_only),
        ),
        search=_search,
        searched="beta~ and alpha together at s = argmin beta~, symbols in up to 8 blocks, "
        "limits of alpha included",
    ),
    Claim(
        id="prop2.targets",
        title="at the worst beta~ found no target is harder than s = argmin beta~: every other "
        "has an alpha with L_s no larger, so that max over s of inf over alpha is attained there",
        mark=Mark.OURS,
        kind=Kind.UPPER_BOUND,
        source="derivation: L_s at an attention found for each s bounds each infimum",
        sides=_hardest,
        grid=_equal,
        hypotheses=(Hypothesis("d >= 3"),),
        sharp=Sharp(
            "smallest max over s of inf over alpha found",
            lambda point: _greatest(every_target(point)),
            largest=False,
            points=_targets,
            table=_table(wording.targets, hunts.every_target),
        ),
        search=_targets,
        searched="alpha for every target s at the worst beta~ of prop2, then beta~ and all those "
        "alpha together from there, and over up to 3 blocks from structured starts",
    ),
)
