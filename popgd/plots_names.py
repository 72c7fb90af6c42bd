"""Where the names of regimes fit into a phase diagram, clear of lines and legend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Canvas", "corner", "crossed", "write_names"]

FINEST = 300  # cells on each axis are enough to place a text
POINTS = 10.0  # font size
WIDE, HIGH = 0.68, 1.35  # of a letter and a line, in units of the font size
SMALL = 8.4  # of the legend
CORNERS = ("lower left", "upper right", "lower right", "upper left")


class Canvas:
    """A diagram thinned to what placing needs.

    Parameters
    ----------
    x, y : array
        Centres of cells, ascending.
    regime : int array of shape (len(y), len(x))
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, regime: np.ndarray):
        rows, columns = (-(-size // FINEST) for size in regime.shape)
        self.x, self.y, self.regime = x[::columns], y[::rows], regime[::rows, ::columns]
        self._steps = rows, columns
        self.free = np.ones(self.regime.shape, dtype=bool)

    def avoid(self, cells: np.ndarray) -> None:
        """Take cells of the diagram as it was before thinning."""
        rows, columns = self._steps
        self.free &= ~cells[::rows, ::columns]


def crossed(canvas: Canvas, x: np.ndarray, y: np.ndarray) -> None:
    """Take the cells that a line goes through; NaN interrupts it."""
    log_x, log_y = np.log(canvas.x), np.log(canvas.y)
    height = np.interp(log_x, np.log(x), np.log(y), left=np.nan, right=np.nan)
    for column, (low, high) in enumerate(zip(height, np.append(height[1:], height[-1]))):
        if np.isnan(low):
            continue
        ends = np.interp([low, low if np.isnan(high) else high], log_y, np.arange(log_y.size))
        inside = log_y[0] <= low <= log_y[-1]
        rows = slice(int(min(ends)), int(max(ends)) + 2)
        canvas.free[rows, column : column + 2] &= not inside


def corner(ax: Axes, canvas: Canvas, entries: list[str], names: Mapping[int, str]) -> str:
    """The corner where a legend with these entries hides least; its place is taken.

    It gets room for the regimes whose names fit nowhere.
    """
    present = [int(value) for value in np.unique(canvas.regime)]
    entries = entries + [names[k] for k in present if _spot(ax, canvas, k, names[k]) is None]
    if not entries:
        return CORNERS[0]
    longest = max(len(re.sub(r"\\[a-z]+|[${}_]+", "", text)) for text in entries)
    width, height = SMALL * (6 + 0.6 * longest), SMALL * (1.5 + 1.4 * len(entries))
    parts = zip((height, width), _size(ax)[::-1], canvas.regime.shape)
    rows, columns = (min(n, round(length / of * n)) for length, of, n in parts)
    vertical = {"lower": slice(None, rows), "upper": slice(-rows, None)}
    horizontal = {"left": slice(None, columns), "right": slice(-columns, None)}

    def place(name: str) -> tuple[slice, slice]:
        up, side = name.split()
        return vertical[up], horizontal[side]

    def cost(name: str) -> float:
        covered = canvas.regime[place(name)]
        lines = float((~canvas.free[place(name)]).mean())
        return 10 * lines + len(np.unique(covered))

    best = min(CORNERS, key=cost)
    canvas.free[place(best)] = False
    return best


def write_names(
    ax: Axes, canvas: Canvas, names: Mapping[int, str], colours: Mapping[int, str]
) -> list[int]:
    """Each name in the middle of its region where it fits; returns the regimes without one."""
    missing = []
    for value in np.unique(canvas.regime):
        spot = _spot(ax, canvas, value, names[value])
        if spot is None:
            missing.append(int(value))
            continue
        row, column, turned = spot
        ax.text(
            float(canvas.x[column]),
            float(canvas.y[row]),
            names[value],
            color=colours[value],
            ha="center",
            va="center",
            rotation=90 if turned else 0,
            fontweight="bold",
            fontsize=POINTS,
        )
    return missing


def _spot(ax: Axes, canvas: Canvas, value: int, name: str) -> tuple[int, int, bool] | None:
    """Row, column and whether to turn: where the whole text lies inside, most in the middle."""
    from scipy.ndimage import distance_transform_edt, minimum_filter

    inside = (canvas.regime == value) & canvas.free
    lines = name.split("\n")
    width = POINTS * WIDE * max(len(line) for line in lines)
    height = POINTS * HIGH * len(lines)
    across, up = _size(ax)
    for turned, (w, h) in ((False, (width, height)), (True, (height, width))):
        box = [max(1, round(part * n)) for part, n in zip((h / up, w / across), inside.shape)]
        if any(side > n for side, n in zip(box, inside.shape)):
            continue
        fits: Any = minimum_filter(inside, size=box, mode="constant", cval=False)
        if fits.any():
            room = np.asarray(distance_transform_edt(np.pad(fits, 1)))[1:-1, 1:-1]
            best = np.argwhere(room >= 0.98 * room.max())
            row, column = best[np.argmin(np.abs(best - np.median(best, axis=0)).sum(axis=1))]
            return int(row), int(column), turned
    return None


def _size(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, before any layout: rather too small."""
    dots = ax.figure.dpi / 72
    return ax.bbox.width / dots, ax.bbox.height / dots
