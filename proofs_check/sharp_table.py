"""What a search found at each dimension: value, closed forms beside it, minimiser, effort."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from popgd.ball import Enclosure, enclose, precision

from .point import Point

if TYPE_CHECKING:
    from .hunts import Hunt

__all__ = ["Row", "Table", "ordered"]

BITS, DIGITS = 96, 12


@dataclass(frozen=True)
class Row:
    """One search.

    Attributes
    ----------
    point : Point
        The minimiser.
    value : Enclosure
        The value there.
    closed : tuple of (str, Enclosure or None)
        Closed forms by name; None where they say nothing.
    words : str
        The minimiser in words.
    starts, evaluations : int
        Effort spent.
    best : tuple of str
        The five best local minima, floating-point values.
    """

    point: Point
    value: Enclosure
    closed: tuple[tuple[str, Enclosure | None], ...]
    words: str
    starts: int
    evaluations: int
    best: tuple[str, ...]

    @property
    def at(self) -> dict[str, int]:
        """The dimension, and the number of heads where there are several."""
        return {key: int(self.point[key]) for key in ("d", "H") if key in self.point}


@dataclass(frozen=True)
class Table:
    """How the rows of a searched constant are made.

    Attributes
    ----------
    closed : dict of name to callable
        Point -> ball at the current precision, or None.
    words : callable
        Point -> the minimiser in words.
    hunt : callable
        (point, level) -> the searches that found it.
    """

    closed: dict[str, Callable[[Point], Any]]
    words: Callable[[Point], str]
    hunt: Callable[[Point, str], Hunt]

    def row(self, point: Point, value: Enclosure, level: str) -> Row:
        """The row of a point at which the constant has this value."""
        hunt = self.hunt(point, level)
        with precision(BITS):
            closed = tuple((name, _enclosed(at(point))) for name, at in self.closed.items())
        best = tuple(f"{x:.7f}" for x, _, _ in hunt.five())
        words = self.words(point)
        return Row(Point(**point), value, closed, words, hunt.starts, hunt.evaluations, best)


def _enclosed(value: Any) -> Enclosure | None:
    return None if value is None else enclose(value, DIGITS)


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows by number of heads, then by dimension."""
    return sorted(rows, key=lambda row: (row.at.get("H", 1), row.at["d"]))
