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
from .plots_style import HALO, INK, axes_of, figure, power, thousands

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
ROOM = 0.035  # a label needs a disc of this radius, as a part of the axes


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
        Write the regimes' names into the figure.

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
    _hatch_undecided(ax, x, y, ~slice_.proved.transpose("eta2", "eta1").values)
    if boundary is not None:
        _draw_boundary(ax, _match(boundary, slice_), theorem)
    if labels:
        _write_labels(ax, x, y, regime)
    ax.set_xlim(edges[0][0], edges[0][-1])
    ax.set_ylim(edges[1][0], edges[1][-1])
    ax.set_xlabel(r"$\eta_1$ (output step)")
    ax.set_ylabel(r"$\eta_2$ (attention step)")
    count = float(slice_.steps)
    steps = r"\infty" if math.isinf(count) else thousands(count)
    ax.set_title(
        rf"$d = {thousands(float(slice_.d))}$,  $\varepsilon = {power(float(slice_.epsilon))}$,  "
        rf"$T = {steps}$"
    )
    return ax


def _slice(diagram: Any, d: Any, epsilon: Any) -> Any:
    if not hasattr(diagram, "data_vars") or not {"regime", "proved"} <= set(diagram.data_vars):
        remedy = "pass a result of popgd.phase_diagram"
        raise check.refuse("diagram", type(diagram).__name__, "is no phase diagram", remedy)
    diagram = diagram.sel(eta1=diagram.eta1 > 0, eta2=diagram.eta2 > 0)
    if diagram.sizes["eta1"] < 2 or diagram.sizes["eta2"] < 2:
        remedy = "pass at least two positive rates on each axis"
        raise check.refuse("diagram", dict(diagram.sizes), "is too small to draw", remedy)
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
    for name in ("d", "epsilon"):
        values, value = np.atleast_1d(boundary[name].values), slice_[name].values[()]
        if value not in values:
            remedy = f"compute the boundaries for {name} = {value} too"
            raise check.refuse("boundary", f"{name} = {values}", "is for another diagram", remedy)
        if name in boundary.dims:
            boundary = boundary.sel({name: value})
    return boundary.sortby("eta1")


def _draw_boundary(ax: Axes, curve: Any, theorem: bool) -> None:
    from matplotlib.patheffects import Normal, Stroke

    halo = [Stroke(linewidth=3.6, foreground=HALO), Normal()]
    x, y = curve.eta1.values, np.where(curve.status == 0, curve.eta2.values, np.nan)
    proved = np.where(curve.bracketed.values, y, np.nan)
    name = r"smallest $\eta_2$"
    if np.isfinite(proved).any():
        ax.plot(x, proved, color=INK, lw=1.8, path_effects=halo, label=name + " (proved)")
    if not curve.bracketed.values[np.isfinite(y)].all():
        ax.plot(x, y, color=INK, lw=0.8, path_effects=halo, label=name)
    turn = float(curve.eta1_turn)
    if math.isfinite(turn):
        line = {"color": INK, "lw": 1.4, "ls": (0, (1, 1.2)), "path_effects": halo}
        ax.axvline(turn, label=r"attention turns away", **line)
    if theorem:
        line = {"color": INK, "lw": 1.4, "ls": (0, (5, 2)), "path_effects": halo}
        ax.plot(x, curve.theorem.values, label=r"theorem, $C = 1$", **line)
    ax.legend(loc="lower left", fontsize="small", framealpha=0.95, handlelength=2.6)


def _write_labels(ax: Axes, x: np.ndarray, y: np.ndarray, regime: np.ndarray) -> None:
    """Each name where its region is widest; none where it would not fit."""
    from scipy.ndimage import distance_transform_edt

    legend = ax.get_legend()
    free = np.ones(regime.shape, dtype=bool)
    if legend is not None:  # keep clear of the legend's corner
        free[: int(0.34 * y.size), : int(0.46 * x.size)] = False
    for value in np.unique(regime):
        inside = np.pad((regime == value) & free, 1)
        spacing = (1 / y.size, 1 / x.size)
        room = np.asarray(distance_transform_edt(inside, sampling=spacing))[1:-1, 1:-1]
        if room.max() < ROOM:
            continue
        # of equally roomy places the one in the middle
        best = np.argwhere(room >= 0.98 * room.max())
        row, column = best[np.argmin(np.abs(best - np.median(best, axis=0)).sum(axis=1))]
        narrow = (
            inside[row + 1].sum() < 0.24 * x.size and inside[:, column + 1].sum() > 0.3 * y.size
        )
        ax.text(
            float(x[column]),
            float(y[row]),
            LABELS[value],
            color=TEXTS[value],
            ha="center",
            va="center",
            rotation=90 if narrow else 0,
            fontweight="bold",
            fontsize="medium",
        )
