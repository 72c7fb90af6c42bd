"""What all figures share: axes, colours, numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _validate as check

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DASHES",
    "HALO",
    "INK",
    "LINES",
    "axes_of",
    "curve_style",
    "figure",
    "legend_of",
    "power",
    "thousands",
    "with_axes",
]

INK = "#222222"
HALO = "#ffffff"
# Okabe and Ito's palette, ordered by lightness so that neighbours differ in greyscale
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
# lengths without a common factor: 210 curves before a style repeats
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
)
MARKERS = "os^Dv<>"


def curve_style(k: int) -> dict[str, Any]:
    """Colour, dash and marker of the k-th curve of a figure."""
    return {
        "color": LINES[k % len(LINES)],
        "ls": DASHES[k % len(DASHES)],
        "marker": MARKERS[k % len(MARKERS)],
    }


def legend_of(ax: Axes) -> tuple[list[Any], list[str]]:
    """Handles and names for a legend, one of each name and look however often it was drawn."""
    kept: dict[tuple[str, str], tuple[Any, str]] = {}
    for handle, name in zip(*ax.get_legend_handles_labels()):
        look = str(getattr(handle, "get_color", str)())
        kept.setdefault((name, look), (handle, name))
    return [handle for handle, _ in kept.values()], [name for _, name in kept.values()]


def with_axes(data: Any, *names: str) -> Any:
    """A dataset whose axes of length one are there again after `squeeze()`."""
    for name in names:
        if name in data.coords and name not in data.dims:
            data = data.expand_dims(name)
    return data


def axes_of(ax: Any) -> Axes:
    """`ax`, or the axes of a new figure."""
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=(6.4, 4.6), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise check.refuse("ax", ax, "must be matplotlib Axes", "pass for example plt.gca()")
    return ax


def figure(width: float = 6.4, height: float = 4.6) -> Figure:
    """A figure outside pyplot, for files: inches, 150 dots an inch."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def thousands(x: float) -> str:
    """A whole number in TeX: 12,500 with a thin space, 10^6 as a power."""
    if x >= 1e5:
        power = math.floor(math.log10(x) + 1e-12)
        factor = f"{x / 10**power:.3g}"
        return rf"10^{{{power}}}" if factor == "1" else rf"{factor}\cdot 10^{{{power}}}"
    return f"{x:,.0f}".replace(",", r"\,") if x >= 1e4 else f"{x:.0f}"


def power(x: float) -> str:
    """A small number in TeX: 0.01 as it is, 1e-8 as a power of ten."""
    if 1e-3 <= x < 1e4 or x <= 0:
        return f"{x:g}"
    exponent = math.floor(math.log10(x) + 1e-12)
    factor = f"{x / 10.0**exponent:.3g}"
    return rf"10^{{{exponent}}}" if factor == "1" else rf"{factor}\cdot 10^{{{exponent}}}"
