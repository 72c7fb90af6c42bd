"""Inline SVG scatter plots of margins and constants over a grid, without any library.

The margin axis is logarithmic on both sides of 0: how loose a bound is spans decades, and so does
a violation. Colour and shape both tell series apart.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from popgd.ball import to_float

from .judge import Judgement
from .outcome import Outcome
from .point import Point, shorten
from .verdict import Kind, Verdict

__all__ = ["SERIES", "Plot", "constants", "slack", "symbols"]

WIDTH, HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 40
# Okabe and Ito's colours, which every common kind of colour vision tells apart, the light ones
# darkened for white paper; each with a shape of its own
SERIES = (
    ("#0072b2", "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z"),
    ("#d55e00", "M-3.5 -3.5H3.5V3.5H-3.5Z"),
    ("#007a5a", "M0 -4.6L4.4 3.4H-4.4Z"),
    ("#aa4499", "M0 -5L5 0L0 5L-5 0Z"),
    ("#333333", "M-4 -1.3H-1.3V-4H1.3V-1.3H4V1.3H1.3V4H-1.3V1.3H-4Z"),
    ("#a36b00", "M0 4.6L4.4 -3.4H-4.4Z"),
    ("#3a8fc4", "M-5 -2H5V2H-5Z"),
)
_COLOURED = ("eps", "link", "eta1", "attention", "C", "H", "weights", "T", "eta", "m", "k")
_BELOW = (Kind.UPPER_BOUND, Kind.EXISTS_CONSTANT)
_ALONG = ("d", "eps", "m", "H", "k", "C_s", "eta1", "gap", "shift")
APART = 14  # units between labels one above the other
_DODGE = 3.0  # units between series at one x


@dataclass(frozen=True)
class Plot:
    """A drawn plot.

    Attributes
    ----------
    svg : str
    along, by : str
        The parameters on the axis and in the colours; "" when there is none.
    series : tuple of str
        Labels of the colours, in the order of `SERIES`.
    caption : str
    """

    svg: str
    along: str
    by: str
    series: tuple[str, ...]
    caption: str


def symbols() -> str:
    """The markers all plots of a page share."""
    shapes = "".join(
        f'<symbol id="m{i}" overflow="visible"><path d="{path}" fill="{colour}"/></symbol>'
        for i, (colour, path) in enumerate(SERIES)
    )
    return f'<svg style="position:absolute;width:0;height:0" aria-hidden="true">{shapes}</svg>'


def slack(outcome: Outcome) -> Plot | None:
    """The margin at every judged point; of identities, how far apart the sides can be."""
    judged = [j for j in outcome.judged if j.margin is not None]
    every = all(j.kind is Kind.IDENTITY for j in judged)
    sizes = [_slack(j, every) for j in judged]
    caption = "difference of the sides, at most" if every else "relative margin"
    if all(j.kind in _BELOW and size > Fraction(1, 2) for j, size in zip(judged, sizes)):
        # every margin is close to 1: the ratio shows how loose the bound is
        sizes = [1 - j.margin.bounds[0] for j in judged if j.margin is not None]
        caption = "left side / right side, at most"
    if len(judged) < 2 or not any(sizes):
        return None
    marked = next((i for i, j in enumerate(judged) if j is outcome.worst), None)
    scale = _Decades.over(sizes)
    return _draw([j.point for j in judged], sizes, scale, caption, marked)


def constants(outcome: Outcome) -> Plot | None:
    """The sharp constant at every point where it was found."""
    if outcome.sharp is None or len(outcome.constants) < 2:
        return None
    points = [point for point, _ in outcome.constants]
    try:
        values = [float(value.midpoint) for _, value in outcome.constants]
    except OverflowError:  # no plot of numbers beyond 1e308
        return None
    marked = next((i for i, p in enumerate(points) if p == outcome.sharp.point), None)
    return _draw(points, values, _Linear.over(values), outcome.sharp.name, marked)


def _slack(j: Judgement, radius: bool) -> Fraction:
    """The margin; of an identity that holds its radius, if asked for, else 0."""
    assert j.margin is not None
    low, high = j.margin.bounds
    if j.kind is Kind.IDENTITY and (radius or j.verdict is Verdict.FAILS):
        return max(abs(low), abs(high)) * (-1 if j.verdict is Verdict.FAILS else 1)
    if j.kind is Kind.IDENTITY:
        return Fraction(0)
    return Fraction(0) if low <= 0 <= high else (low + high) / 2


def _log10(x: Fraction) -> float:
    return math.log10(abs(x.numerator)) - math.log10(x.denominator)


@dataclass(frozen=True)
class _Decades:
    """Logarithmic in both directions from 0; `floor` is the decade nearest to it."""

    floor: int
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[Fraction]) -> _Decades:
        logs = [_log10(x) for x in values if x]
        scale = cls(math.floor(min(logs)), 0.0, 0.0)
        places = [scale.place(x) for x in values]
        return cls(scale.floor, min(*places, 1.0) - 0.3, max(*places, 1.0) + 0.3)

    def place(self, x: Fraction) -> float:
        size = _log10(x) - self.floor + 1 if x else 0.0
        return -size if x < 0 else size

    def ticks(self) -> list[tuple[float, str]]:
        span = self.high - self.low
        every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**6) if span / n <= 6)
        out = [(0.0, "0")] if self.low < 0 else []
        for k in range(0, int(span) + 1, every):
            decade = _power(self.floor + k)
            out += [(1.0 + k, decade)] if 1 + k <= self.high else []
            out += [(-1.0 - k, f"−{decade}")] if -1 - k >= self.low else []
        return out


@dataclass(frozen=True)
class _Linear:
    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> _Linear:
        low, high = min(values), max(values)
        pad = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        return cls(low - pad, high + pad)

    def place(self, x: float) -> float:
        return x

    def ticks(self) -> list[tuple[float, str]]:
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        step *= next(f for f in (0.2, 0.5, 1, 2) if (self.high - self.low) / (f * step) <= 6)
        first = math.ceil(self.low / step)
        return [(k * step, f"{k * step:.6g}") for k in range(first, int(self.high / step) + 1)]


def _draw(
    points: Sequence[Point], values: Sequence[Any], scale: Any, caption: str, marked: int | None
) -> Plot:
    along = next((name for name in _ALONG if _numbers(points, name)), "")
    by = next((n for n in _COLOURED if n != along and 1 < len(_labels(points, n)) <= 7), "")
    labels = _labels(points, by)
    xs = [_x(point, along, i) for i, point in enumerate(points)]
    axis = _Axis.over(xs, along)
    parts = [_frame(scale, axis, along)]
    parts += _markers(points, values, xs, scale, axis, labels, by, marked)
    title = html.escape(f"{caption} against {along or 'the points in order'}")
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f"{''.join(parts)}</svg>"
    )
    return Plot(svg, along, by, tuple(labels), caption)


def _labels(points: Sequence[Point], name: str) -> list[str]:
    if not name or not all(name in p for p in points):
        return []
    return list(dict.fromkeys(shorten(p[name]) for p in points))


def _numbers(points: Sequence[Point], name: str) -> bool:
    """Whether the parameter is a number that varies."""
    try:
        return all(name in p for p in points) and len({_number(p, name) for p in points}) > 1
    except (ValueError, TypeError):
        return False


@lru_cache(maxsize=1 << 14)
def _value(text: Any, needed: tuple[tuple[str, Any], ...]) -> float:
    return to_float(Point(**dict(needed), x=text).exact("x"))


def _number(point: Point, name: str) -> float:
    value = point[name]
    return _value(value, point.needed(value, name) if isinstance(value, str) else ())


def _x(point: Point, along: str, i: int) -> float:
    return _number(point, along) if along else i + 1.0


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis: logarithmic when its values span much and are positive."""

    low: float
    high: float
    log: bool
    seen: tuple[float, ...]

    @classmethod
    def over(cls, xs: Sequence[float], along: str) -> _Axis:
        seen = tuple(sorted(set(xs)))
        log = bool(along) and seen[0] > 0 and seen[-1] > 20 * seen[0]
        low, high = (math.log10(x) if log else x for x in (seen[0], seen[-1]))
        pad = 0.06 * (high - low) or 1.0
        return cls(low - pad, high + pad, log, seen)

    def place(self, x: float) -> float:
        share = ((math.log10(x) if self.log else x) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[tuple[float, str]]:
        """Grid values, as many as have room."""
        out: list[tuple[float, str]] = []
        for x in self.seen:
            if not out or self.place(x) - self.place(out[-1][0]) >= 46:
                out.append((x, _tick(x)))
        return out


def _tick(x: float) -> str:
    decade = round(math.log10(x)) if x > 0 else 0
    if x > 0 and abs(decade) >= 3 and math.isclose(x, 10.0**decade):
        return _power(decade)
    return f"{x:.4g}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(k: int) -> str:
    return {0: "1", 1: "10"}.get(k, "10" + str(k).translate(_RAISED))


def _y(scale: Any, place: float) -> float:
    share = (place - scale.low) / (scale.high - scale.low)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _frame(scale: Any, axis: _Axis, along: str) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = [f'<path d="M{LEFT} {TOP}V{bottom}H{right}" class="axis"/>']
    taken: list[float] = []
    for place, label in scale.ticks():
        y = _y(scale, place)
        line = "zero" if label == "0" else "grid"
        out.append(f'<path d="M{LEFT} {y:.1f}H{right}" class="{line}"/>')
        if any(abs(y - other) < APART for other in taken):
            continue
        taken.append(y)
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for x, label in axis.ticks():
        at = axis.place(x)
        out.append(f'<path d="M{at:.1f} {bottom}v4" class="axis"/>')
        out.append(f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>')
    middle = (LEFT + right) / 2
    name = html.escape(along or "point")
    out.append(f'<text x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">{name}</text>')
    return "".join(out)


def _markers(
    points: Sequence[Point], values: Sequence[Any], xs: Sequence[float], scale: Any, axis: _Axis,
    labels: Sequence[str], by: str, marked: int | None,
) -> list[str]:  # fmt: skip
    """One marker a point; points that would coincide are drawn once."""
    drawn: dict[str, None] = {}
    ring = ""
    for i, (point, value, x) in enumerate(zip(points, values, xs, strict=True)):
        series = labels.index(shorten(point[by])) if by else 0
        at = axis.place(x) + _DODGE * (series - (max(len(labels), 1) - 1) / 2)
        y = _y(scale, scale.place(value))
        drawn[f'<use href="#m{series}" x="{at:.0f}" y="{y:.0f}"/>'] = None
        if i == marked:
            ring = f'<circle cx="{at:.0f}" cy="{y:.0f}" r="8" class="ring"/>'
    return [*drawn, ring]
