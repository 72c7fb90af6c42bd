"""Figures of results: every function takes `ax=`, returns it and sets no global state.

Colours are told apart by colour-blind readers and, by their lightness, in greyscale; lines also
differ by dash or marker.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _validate as check
from .plots_curves import (
    risk_against_gap,
    sample_complexity,
    sharp_constants,
    trajectory,
)
from .plots_names import Canvas, corner, crossed, write_names
from .plots_style import HALO, INK, axes_of, figure, legend_of, power, thousands, with_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "figure",
    "phase_diagram",
    "risk_against_gap",
    "sample_complexity",
    "sharp_constants",
    "trajectory",
]

# light to dark, so that the order survives greyscale
COLOURS = ("#f9ecb4", "#8fc9e8", "#d9803f", "#41608c", "#1c1c1c")
TEXTS = (INK, INK, INK, "white", "white")
LABELS = (
    "success",
    "phase 3\ntoo short",
    "attention\nturned away",
    "attention\ntoo weak",
    "phase 3\ndiverges",
)
FAR = 1e200  # Matplotlib's ticks overflow not much further out


def phase_diagram(
    diagram: Any,
    ax: Axes | None = None,
    *,
    d: int | None = None,
    epsilon: float | None = None,
    boundary: Any = None,
    theorem: bool = True,
    labels: bool = True,
) -> Axes:
    """Regimes over (eta1, eta2), with their solved boundaries.

    Parameters
    ----------
    diagram : xarray.Dataset
        From `popgd.phase_diagram`, with positive learning rates.
    ax : Axes, optional
        Where to draw; None makes a figure.
    d, epsilon : optional
        Which slice, when the diagram has several; the first by default.
    boundary : xarray.Dataset, optional
        From `popgd.boundary_curves` for the same d and epsilon: draws the smallest eta2 and the
        eta1 beyond which attention turns away. Stretches that enclosures have not proved are thin.
    theorem : bool
        With `boundary`: also the theorem's line at C = 1.
    labels : bool
        Write the regimes' names into the figure, into the legend where they find no room.

    Returns
    -------
    Axes

    Raises
    ------
    BadParameter
        When `diagram` is no phase diagram or has too few positive rates.
    """
    ax = axes_of(ax)
    slice_ = _slice(diagram, d, epsilon)
    x, y = slice_.eta1.values, slice_.eta2.values
    regime = slice_.regime.transpose("eta2", "eta1").values
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(len(COLOURS) + 1) - 0.5, len(COLOURS))
    ax.set_xscale("log")
    ax.set_yscale("log")
    edges = _edges(x), _edges(y)
    ax.pcolormesh(*edges, regime, cmap=ListedColormap(COLOURS), norm=norm, rasterized=True)
    undecided = ~slice_.proved.transpose("eta2", "eta1").values
    _hatch_undecided(ax, x, y, undecided)
    canvas = Canvas(x, y, regime)
    if boundary is not None:
        _draw_boundary(ax, _match(boundary, slice_), theorem, canvas)
    canvas.avoid(undecided)
    names, colours = dict(enumerate(LABELS)), dict(enumerate(TEXTS))
    entries = [*legend_of(ax)[1], *(["undecided"] if undecided.any() else [])]
    place = corner(ax, canvas, entries, names)
    missing = write_names(ax, canvas, names, colours) if labels else []
    _add_legend(ax, place, missing, bool(undecided.any()))
    ax.set_xlim(edges[0][0], edges[0][-1])
    ax.set_ylim(edges[1][0], edges[1][-1])
    ax.set_xlabel(r"$\eta_1$, learning rate of phase 1 (output)")
    ax.set_ylabel(r"$\eta_2$, learning rate of phase 2 (attention)")
    ax.set_title(_title(slice_))
    return ax


def _title(slice_: Any) -> str:
    count, rate = float(slice_.steps), float(slice_.eta3)
    steps = r"\infty" if math.isinf(count) else thousands(count)
    parts = [
        rf"$d = {thousands(float(slice_.d))}$",
        rf"$\varepsilon = {power(float(slice_.epsilon))}$",
        rf"$T = {steps}$",
        *([rf"$\eta_3 = {power(rate)}$"] if rate != 1 else []),
    ]
    return ",  ".join(parts)


def _slice(diagram: Any, d: Any, epsilon: Any) -> Any:
    if not hasattr(diagram, "data_vars") or not {"regime", "proved"} <= set(diagram.data_vars):
        remedy = "pass a result of popgd.phase_diagram"
        raise check.refuse("diagram", type(diagram).__name__, "is no phase diagram", remedy)
    diagram = with_axes(diagram, "eta1", "eta2")
    diagram = diagram.sel(eta1=diagram.eta1 > 0, eta2=diagram.eta2 > 0)
    if diagram.sizes["eta1"] < 2 or diagram.sizes["eta2"] < 2:
        remedy = "pass at least two positive rates on each axis"
        raise check.refuse("diagram", dict(diagram.sizes), "is too small to draw", remedy)
    for name in ("eta1", "eta2"):
        low, high = float(diagram[name].min()), float(diagram[name].max())
        if not 1 / FAR <= low <= high <= FAR:
            rule = f"rates outside {1 / FAR:g} to {FAR:g} cannot be drawn"
            raise check.refuse(name, f"{low:g} to {high:g}", rule, "select a part of the diagram")
    for name, value in (("d", d), ("epsilon", epsilon)):
        values = np.atleast_1d(diagram[name].values)
        value = values[0] if value is None else value
        if value not in values:
            raise check.refuse(name, value, "is not in the diagram", f"choose among {values}")
        if name in diagram.dims:
            diagram = diagram.sel({name: value})
    return diagram.sortby(["eta1", "eta2"])


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of cells around their centres, half way on the logarithmic axis."""
    log = np.log(centres)
    middle = (log[1:] + log[:-1]) / 2
    ends = (2 * log[0] - middle[0], 2 * log[-1] - middle[-1])
    return np.exp(np.concatenate([[ends[0]], middle, [ends[1]]]))


def _hatch_undecided(ax: Axes, x: np.ndarray, y: np.ndarray, undecided: np.ndarray) -> None:
    if undecided.any():
        import matplotlib as mpl

        with mpl.rc_context({"hatch.color": INK, "hatch.linewidth": 0.6}):
            ax.contourf(x, y, undecided, levels=[0.5, 1.5], hatches=["xxxx"], colors="none")


def _match(boundary: Any, slice_: Any) -> Any:
    if not hasattr(boundary, "data_vars") or not {"status", "eta1_turn"} <= set(boundary.data_vars):
        remedy = "pass a result of popgd.boundary_curves"
        raise check.refuse("boundary", boundary, "is no boundary", remedy)
    for name in ("d", "epsilon", "steps", "eta3"):
        values, value = np.atleast_1d(boundary[name].values), slice_[name].values[()]
        if value not in values:
            remedy = f"compute the boundaries for {name} = {value} too"
            raise check.refuse("boundary", f"{name} = {values}", "is for another diagram", remedy)
        if name in boundary.dims:
            boundary = boundary.sel({name: value})
    boundary = with_axes(boundary, "eta1")
    if not (boundary.eta1 > 0).any():
        raise check.refuse("boundary", "no eta1 > 0", "cannot be drawn", "pass rates > 0")
    return boundary.sel(eta1=boundary.eta1 > 0).sortby("eta1")


def _draw_boundary(ax: Axes, curve: Any, theorem: bool, canvas: Canvas) -> None:
    from matplotlib.patheffects import Normal, Stroke

    def style(width: float, dash: Any) -> dict[str, Any]:
        halo = [Stroke(linewidth=width + 1.6, foreground=HALO), Normal()]
        return {"color": INK, "lw": width, "ls": dash, "path_effects": halo}

    def draw(y: np.ndarray, label: str, width: float = 1.8, dash: Any = "-") -> None:
        if np.isfinite(y).any():
            alone = "o" if np.isfinite(y).sum() == 1 else None
            ax.plot(x, y, label=label, marker=alone, ms=5, **style(width, dash))
            crossed(canvas, x, y)

    x, y = curve.eta1.values, np.where(curve.status == 0, curve.eta2.values, np.nan)
    proved = curve.bracketed.values
    draw(np.where(proved, y, np.nan), r"smallest $\eta_2$ (proved)")
    if not proved[np.isfinite(y)].all():
        draw(y, r"smallest $\eta_2$", 0.8)
    _draw_ends(ax, curve, x, y, style, float(canvas.y[-1]))
    turn = curve.eta1_turn.values.item()
    if math.isfinite(turn):
        known = " (proved)" if curve.turn_bracketed.values.item() else ""
        ax.axvline(turn, label="attention turns away" + known, **style(1.4, (0, (1, 1.2))))
    if theorem:
        own = x <= math.sqrt(float(curve.d))
        first = np.argmax(~own) if not own.all() else x.size
        # the extension starts where the theorem's own range ends
        beyond = np.arange(x.size) >= max(first - 1, 0)
        draw(np.where(own, curve.theorem, np.nan), r"theorem, $C = 1$", 1.4, (0, (5, 2)))
        extended = (
            r"the same beyond $\eta_1 = \sqrt{d}$" if own.any() else r"theorem's line, $C = 1$"
        )
        draw(np.where(beyond, curve.theorem, np.nan), extended, 0.7, (0, (5, 2)))


def _draw_ends(ax: Axes, curve: Any, x: np.ndarray, y: np.ndarray, style: Any, top: float) -> None:
    """Carry the curve on where it rises without bound: success ends at one eta1."""
    solved = np.flatnonzero(np.isfinite(y))
    if "eta1_end" not in curve or solved.size == 0:
        return
    for end, known in zip(curve.eta1_end.values.ravel(), curve.end_bracketed.values.ravel()):
        if x[0] <= end <= x[-1]:
            start = y[solved[np.argmin(np.abs(np.log(x[solved] / end)))]]
            above = [start, max(start, 10 * top)]
            ax.plot([end, end], above, **style(1.8 if known else 0.8, "-"))


def _add_legend(ax: Axes, place: Any, missing: list[int], undecided: bool) -> None:
    """Lines, the regimes whose names found no room, and the hatching."""
    from matplotlib.patches import Patch

    handles, names = legend_of(ax)
    for value in missing:
        handles.append(Patch(facecolor=COLOURS[value], edgecolor=INK, lw=0.6))
        names.append(LABELS[value].replace("\n", " "))
    if undecided:
        # as narrow as the hatching in the figure
        handles.append(Patch(facecolor="none", edgecolor=INK, lw=0.6, hatch="xxxx"))
        names.append("undecided")
    if handles:
        # the diagram has colours of its own on any background, and so has its legend
        look = {"facecolor": HALO, "labelcolor": INK, "framealpha": 0.95, "handlelength": 2.6}
        ax.legend(handles, names, loc=place, fontsize="small", **look)
