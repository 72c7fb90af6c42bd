"""A claim: what is stated, under which hypotheses, and the two sides to compare."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from popgd.ball import ball, bits, compare, to_float

from .point import Point
from .sharp_table import Table
from .verdict import Kind, Mark

__all__ = ["Claim", "Hypothesis", "ProofFailed", "Sharp", "Sides"]

_RELATION = re.compile(r"\s*(<=|>=|<|>)\s*")
_DECIDES: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class ProofFailed(Exception):
    """A symbolic proof did not go through; the claim is then undecided, not false."""


@dataclass(frozen=True)
class Hypothesis:
    """A condition on points.

    Attributes
    ----------
    text : str
        Read as a condition when there is no predicate: one relation between two expressions
        in the point's parameters, such as "eta1 <= sqrt(d)".
    predicate : callable, optional
        Point -> True, False, or None when undecided at the current precision.
    """

    text: str
    predicate: Callable[[Point], bool | None] | None = None

    def __call__(self, point: Point) -> bool | None:
        """Three-valued truth at a point, at the current precision."""
        if self.predicate is not None:
            return self.predicate(point)
        return _relation(self.text, point.needed(self.text), bits())

    def violation(self, point: Point) -> float:
        """How far a violating point is from the condition, relative; 1 when it has no scale."""
        if self.predicate is not None:
            return 1.0
        left, _, right = _RELATION.split(self.text)
        a, b = (to_float(point.expression(side)) for side in (left, right))
        return abs(a - b) / abs(b) if b else abs(a)


@lru_cache(maxsize=1 << 14)
def _relation(text: str, values: tuple[tuple[str, Any], ...], bits: int) -> bool | None:
    """The truth of a relation at some values, at the current precision of `bits` bits."""
    left, relation, right = _RELATION.split(text)
    point = Point(**dict(values))
    a, b = point.expression(left), point.expression(right)
    # equal trees are equal numbers, which balls of irrational numbers cannot show
    order = 0 if (a.kind, a.parts) == (b.kind, b.parts) else compare(ball(a), ball(b))
    return None if order is None else _DECIDES[relation](order, 0)


@dataclass(frozen=True)
class Sides:
    """The two numbers a claim compares at a point.

    Attributes
    ----------
    left, right : Ball, int, Fraction or exact expression
    kind : Kind, optional
        Overrides the claim's kind, for the one equality in a chain of inequalities.
    strict : bool
        Whether equality violates an inequality.
    """

    left: Any
    right: Any
    kind: Kind | None = None
    strict: bool = False


@dataclass(frozen=True)
class Sharp:
    """The best constant a claim could be stated with.

    Attributes
    ----------
    name : str
        What the constant is.
    at : callable
        Point -> ball (or pair of balls: proved lower and upper bound) at the current precision.
    largest : bool
        Whether the constant over a grid is the supremum (else the infimum).
    points : callable, optional
        Level -> points; the claim's own grid when absent.
    table : Table, optional
        For a constant that was searched for: what reports say at each of its points.
    """

    name: str
    at: Callable[[Point], Any]
    largest: bool = True
    points: Callable[[str], Iterable[Point]] | None = None
    table: Table | None = None


@dataclass(frozen=True)
class Claim:
    """One statement, or one visible step of its proof.

    Attributes
    ----------
    id : str
        Such as "thm2.norm"; the part before the first dot is the statement it belongs to.
    title : str
        The statement in one line.
    mark : Mark
        Printed, reconstructed or ours.
    kind : Kind
        Chooses the comparison.
    source : str
        Where it stands: "Paper A.7", or a derivation.
    sides : callable
        Point -> Sides at the current precision.
    grid : callable
        Level ("quick", "default" or "full") -> points.
    hypotheses : sequence of Hypothesis
    proof : callable, optional
        Proves the claim for all parameters and returns what was proved in words; raises
        ProofFailed otherwise.
    sharp : Sharp, optional
    search : callable, optional
        Level -> further points, found by looking for a violation. A claim with a search is
        reported as `not falsified`, whatever its grid says.
    searched : str
        What the search went through, for the coverage.
    probes : callable, optional
        Level -> points outside the hypotheses, to see which are needed.
    group : str, optional
        The statement it is reported under, when the id does not say so.
    """

    id: str
    title: str
    mark: Mark
    kind: Kind
    source: str
    sides: Callable[[Point], Sides]
    grid: Callable[[str], Iterable[Point]]
    hypotheses: Sequence[Hypothesis] = ()
    proof: Callable[[], str] | None = None
    sharp: Sharp | None = None
    search: Callable[[str], Iterable[Point]] | None = None
    searched: str = ""
    probes: Callable[[str], Iterable[Point]] | None = None
    group: str = field(default="")

    @property
    def statement(self) -> str:
        """The statement it belongs to."""
        return self.group or self.id.split(".")[0]

    def points(self, level: str) -> list[Point]:
        """The points of its grid, then those its search finds."""
        found = list(self.grid(level))
        return found + list(self.search(level)) if self.search else found
