"""Curves: training over time, risk over the gap, constants over d, success over samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _validate as check
from .plots_style import (
    DASHES,
    LINES,
    axes_of,
    curve_style,
    legend_of,
    power,
    thousands,
    with_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["risk_against_gap", "sample_complexity", "sharp_constants", "trajectory"]

QUANTITIES = {
    "attention_gap": "attention gap",
    "output_gap": "output gap",
    "accuracy": "accuracy",
    "risk": "risk",
}
FARTHEST = 340.0  # gap at which a risk is e^-680
SHADES = ("#ffffff", "#e6e6e6")
LAYERS = {"O": "output", "A": "attention", "J": "joint"}


def trajectory(
    run: Any,
    quantities: Sequence[str] | str | None = None,
    ax: Axes | None = None,
    *,
    equal_phases: bool = True,
) -> Axes:
    """A training run over its steps, phases shaded.

    Parameters
    ----------
    run : Trajectory
        From `popgd.train`; of several runs at once, mean and standard deviation are drawn.
    quantities : sequence of str, optional
        Of "attention_gap", "output_gap", "accuracy", "risk". Default: the gaps, and the accuracy
        where recorded. The risk alone gets a logarithmic axis.
    ax : Axes, optional
        Where to draw; None makes a figure.
    equal_phases : bool
        Give every phase the same width (steps within it on a log(1 + step) scale), so that
        phases of one step can be seen; False draws steps as they are.

    Returns
    -------
    Axes
    """
    ax = axes_of(ax)
    if not hasattr(run, "phase_index"):
        remedy = "pass what popgd.train returned"
        raise check.refuse("run", type(run).__name__, "is no trajectory", remedy)
    chosen = _chosen(run, quantities)
    x = _positions(run) if equal_phases else run.step.astype(float)
    _shade(ax, run, equal_phases)
    for name, colour, dash in zip(chosen, LINES, DASHES):
        values = np.asarray(getattr(run, name))
        _band(ax, x, values, color=colour, ls=dash, label=QUANTITIES[name])
    if chosen == ["risk"]:
        ax.set_yscale("log")
        ax.set_ylabel("population risk" if run.path == "symmetric" else "risk")
    else:
        ax.legend(*legend_of(ax), loc="best", fontsize="small", framealpha=0.95)
        ax.set_ylabel("value (no units)")
    ax.set_xlabel("gradient step" + (", log scale within each phase" if equal_phases else ""))
    return ax


def _chosen(run: Any, quantities: Any) -> list[str]:
    if quantities is None:
        names = ["attention_gap", "output_gap"]
        return names + (["accuracy"] if run.accuracy is not None else [])
    names = list(quantities) if isinstance(quantities, (list, tuple)) else [quantities]
    if not names:
        remedy = "pass some of " + ", ".join(QUANTITIES)
        raise check.refuse("quantities", quantities, "names nothing to draw", remedy)
    for name in names:
        check.choice("quantities", name, tuple(QUANTITIES))
        if getattr(run, name) is None:
            remedy = "train with accuracy=True"
            raise check.refuse("quantities", name, "was not recorded", remedy)
    return names


def _positions(run: Any) -> np.ndarray:
    """Phase k fills [k, k + 1], on a logarithmic scale of its own steps."""
    x = np.zeros(len(run.step))
    for k, phase in enumerate(run.phases):
        length = max(phase.stop - phase.start, 1)
        inside = run.phase_index == k
        part = np.clip(run.step[inside] - phase.start, 0, length)
        x[inside] = k + np.log1p(part) / math.log1p(length)
    return x


def _shade(ax: Axes, run: Any, equal: bool) -> None:
    ends = [0.0, *(k + 1.0 if equal else float(p.stop) for k, p in enumerate(run.phases))]
    for k, phase in enumerate(run.phases):
        ax.axvspan(ends[k], ends[k + 1], color=SHADES[k % 2], zorder=0, lw=0)
        name = LAYERS.get(phase.phase[:1].upper()) or str(phase.phase)
        wide = ends[k + 1] - ends[k] >= 0.08 * ends[-1]
        if wide:
            ax.text(
                (ends[k] + ends[k + 1]) / 2,
                1.015,
                name,
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="bottom",
                fontsize="small",
            )
    if ends[0] < ends[-1]:
        ax.set_xlim(ends[0], ends[-1])
    if equal:
        steps = [run.phases[0].start, *(p.stop for p in run.phases)]
        ax.set_xticks(ends, [f"{s:,}" if s < 10**6 else f"{s:.0e}" for s in steps])


def _band(ax: Axes, x: np.ndarray, values: np.ndarray, **style: Any) -> None:
    if values.ndim > 1:
        flat = values.reshape(len(values), -1)
        mean, spread = flat.mean(axis=1), flat.std(axis=1)
        ax.fill_between(x, mean - spread, mean + spread, color=style["color"], alpha=0.2, lw=0)
        values = mean
    ax.plot(x, values, lw=1.8, marker="o" if len(x) < 8 else None, ms=4, **style)


def risk_against_gap(
    d: Any = (10, 1000, 10**6), gap: Any = None, ax: Axes | None = None, *, bound: bool = True
) -> Axes:
    """Risk of the ideal output weights 2 e_s, and its minimum over outputs, against the gap.

    Parameters
    ----------
    d : int or sequence of int
        Alphabet sizes.
    gap : array_like, optional
        Attention gaps in logits, finite, in any order; default from 0 to ln d + 15. One gap
        alone is drawn as markers.
    ax : Axes, optional
        Where to draw; None makes a figure.
    bound : bool
        Also Proposition 1's bound, L <= eps once the gap is ln(4 d/eps^2).

    Returns
    -------
    Axes

    Notes
    -----
    Source: Paper A.2 (Proposition 1); THEORY 5. Error: estimated.
    """
    from .symmetric import State, minimize_output, risk

    sizes = [check.integer("d", x, 3, 10**15) for x in np.ravel(np.asarray(d, dtype=object))]
    if not sizes:
        raise check.refuse("d", d, "is empty", "pass alphabet sizes between 3 and 10^15")
    gaps, ax = _gaps(gap, max(sizes)), axes_of(ax)
    # marks tell the sizes apart without colour, and show what is too short for a line
    few = gaps.size < 10
    for k, size in enumerate(sizes):
        colour, mark = (curve_style(k)[key] for key in ("color", "marker"))
        ideal = np.asarray(risk(State(gaps, 0.0, 2.0, 0.0, 0.0), size))
        marks = {"marker": mark, "ms": 5, "markevery": 1 if few else 1 / 9}
        name = rf"$d = {thousands(size)}$"
        ax.plot(gaps, ideal, color=colour, lw=1.8, label=name, **marks)
        best = minimize_output(gaps, size).value
        hollow = mark if few else None
        ax.plot(gaps, best, color=colour, lw=1.4, ls=DASHES[2], marker=hollow, ms=5, mfc="none")
        if bound:
            x = gaps[gaps > math.log(4 * size)]
            allowed = 2 * math.sqrt(size) * np.exp(-x / 2)
            ax.plot(x, allowed, color=colour, lw=1.2, ls=DASHES[1], marker="_" if few else None)
    _explain_dashes(ax, bound)
    ax.set_yscale("log")
    if gaps.size > 1:
        ax.set_xlim(gaps[0], gaps[-1])
    ax.set_xlabel(r"attention gap $\alpha_s - \alpha_j$ (logits)")
    ax.set_ylabel("population risk")
    ax.legend(*legend_of(ax), fontsize="small", framealpha=0.95, loc="lower left")
    return ax


def _gaps(gap: Any, d: int) -> np.ndarray:
    if gap is None:
        return np.linspace(0, math.log(d) + 15, 200)
    remedy = "pass finite gaps in logits, for example numpy.linspace(0, 30, 200)"
    gaps = check.real_array("gap", gap, -1e6, 1e6, remedy=remedy)
    if gaps.size == 0:
        raise check.refuse("gap", gap, "is empty", remedy)
    if gaps.min() > FARTHEST:
        rule = f"the risk is below the doubles beyond {FARTHEST:g}"
        raise check.refuse("gap", float(gaps.min()), rule, remedy)
    return np.unique(gaps)


def _explain_dashes(ax: Axes, bound: bool) -> None:
    """Legend entries in the colour of text, which is visible on any background."""
    ink = ax.xaxis.label.get_color()
    ax.plot([], [], color=ink, lw=1.8, label=r"output $2e_s$")
    ax.plot([], [], color=ink, lw=1.4, ls=DASHES[2], label="best output")
    if bound:
        ax.plot([], [], color=ink, lw=1.2, ls=DASHES[1], label="Proposition 1 allows")


def sharp_constants(curves: Any, ax: Axes | None = None) -> Axes:
    """Smallest constant C for which eta2 = C d^2/eta1 ln(d/eps) succeeds, over d.

    Parameters
    ----------
    curves : xarray.Dataset
        From `popgd.boundary_curves` for several d; of several eta1 the worst counts.
    ax : Axes, optional
        Where to draw; None makes a figure.

    Returns
    -------
    Axes
    """
    ax = axes_of(ax)
    if not hasattr(curves, "data_vars") or "constant" not in curves:
        remedy = "pass a result of popgd.boundary_curves"
        raise check.refuse("curves", type(curves).__name__, "holds no constants", remedy)
    worst = with_axes(curves, "d", "epsilon", "eta1").constant.max("eta1").sortby("d")
    for k, epsilon in enumerate(worst.epsilon.values):
        name = rf"$\varepsilon = {power(epsilon)}$"
        ax.plot(worst.d, worst.isel(epsilon=k), lw=1.6, ms=4.5, label=name, **curve_style(k))
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("alphabet size $d$")
    ax.set_ylabel(r"smallest $C$ that succeeds")
    ax.legend(*legend_of(ax), fontsize="small", framealpha=0.95)
    return ax


def sample_complexity(
    n: Any,
    successes: Any,
    trials: Any,
    ax: Axes | None = None,
    *,
    label: str | None = None,
    confidence: float = 0.95,
) -> Axes:
    """Success rate over the number of samples, with exact (Clopper-Pearson) intervals.

    Parameters
    ----------
    n : array_like of shape (K,)
        Numbers of samples, in any order.
    successes, trials : array_like of shape (K,)
        Counts; `trials` may be one number.
    ax : Axes, optional
        Where to draw; call again with the same axes to add a curve.
    label : str, optional
        Name of the curve in the legend.
    confidence : float
        Of each interval, in (0, 1).

    Returns
    -------
    Axes
    """
    ax = axes_of(ax)
    level = check.real("confidence", confidence, 0.0, 1.0)
    sizes, good, all_ = _counts(n, successes, trials)
    low, high = _clopper_pearson(good, all_, level)
    style = curve_style(len(ax.get_lines()))
    if sizes.size == 1:
        ax.vlines(sizes, low, high, alpha=0.5, lw=1.6, color=style["color"])
    else:
        ax.fill_between(sizes, low, high, alpha=0.18, lw=0, color=style["color"])
    ax.plot(sizes, good / all_, ms=4.5, lw=1.6, label=label, **style)
    ax.set_xscale("log")
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("number of samples $N$")
    ax.set_ylabel("success rate")
    if label:
        ax.legend(*legend_of(ax), fontsize="small", framealpha=0.95)
    return ax


def _counts(n: Any, successes: Any, trials: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of samples, ascending, with their successes and trials."""
    sizes = check.real_array("n", n, 0.0, 1e300, closed="right").ravel()
    good = check.real_array("successes", successes, 0.0, 1e15).ravel()
    all_ = check.real_array("trials", trials, 1.0, 1e15).ravel()
    if all_.size == 1:
        all_ = np.broadcast_to(all_, good.shape)
    fits = 0 < good.size == sizes.size == all_.size
    if not fits or (good > all_).any() or (good % 1 != 0).any():
        remedy = "pass one whole count for each n, at most the number of trials"
        raise check.refuse("successes", successes, "does not fit n and trials", remedy)
    order = np.argsort(sizes, kind="stable")
    return sizes[order], good[order], all_[order]


def _clopper_pearson(k: np.ndarray, n: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail), 1.0)
    return low, high
