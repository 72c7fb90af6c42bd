"""Where three-phase training succeeds: the (eta1, eta2) plane, a million exact pixels at once."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from . import __version__
from . import _validate as check
from .diagram_tiles import REGIMES, Tile, compute, first, table
from .sweep_cells import check_executor

if TYPE_CHECKING:
    import xarray

__all__ = ["REGIMES", "phase_diagram"]

PIXELS = 2**15  # of a tile: its arrays stay in the second-level cache
MOST_BYTES = 2**35
PLANE = ("d", "eta1", "eta2")
LONG_NAMES = {
    "risk_1": "population risk after phase 1 (one output step)",
    "risk_2": "population risk after phase 2 (one attention step)",
    "risk_3": "population risk after phase 3 (T output steps); inf where it diverges",
    "risk_3_bound": "proved bound on the error of risk_3; inf where there is none",
    "floor": "minimum of the risk over the output weights: the limit of phase 3",
    "gap": "attention gap alpha_s - alpha_j after phase 2, in logits",
    "steps_to_epsilon": "steps of phase 3 until the risk is at most epsilon; inf: never",
    "regime": "what happens, see flag_meanings",
    "proved": "whether error bounds prove the regime; false: undecided",
    "accuracy_2": "P(sign f = y) after phase 2",
    "accuracy_3": "P(sign f = y) after phase 3; NaN where it diverges",
    "d": "alphabet size",
    "eta1": "learning rate of phase 1 (output)",
    "eta2": "learning rate of phase 2 (attention)",
    "eta3": "learning rate of phase 3 (output)",
    "epsilon": "target risk",
    "steps": "steps of phase 3 (T)",
}


def phase_diagram(
    d: Any,
    eta1: Any,
    eta2: Any,
    *,
    steps: Any = math.inf,
    epsilon: Any = 0.01,
    eta3: float = 1.0,
    accuracy: bool = False,
    executor: Executor | None = None,
) -> xarray.Dataset:
    """Three-phase training from zero at every point of a grid of learning rates.

    Parameters
    ----------
    d : int or sequence of int
        Alphabet sizes, 2 <= d <= 10^15.
    eta1, eta2 : float or 1-D array_like
        Learning rates of phases 1 (one output step) and 2 (one attention step), >= 0, finite.
    steps : int or inf
        Steps T of phase 3 (output).
    epsilon : float or 1-D array_like
        Target risks, > 0.
    eta3 : float
        Learning rate of phase 3, >= 0.
    accuracy : bool
        Also compute P(sign f = y) after phases 2 and 3. Fast for d <= 2000; beyond that it
        costs about 30 us a pixel.
    executor : concurrent.futures.Executor, optional
        Where tiles are computed; None takes threads on the cores available.

    Returns
    -------
    xarray.Dataset
        Over ``d, eta1, eta2`` and ``epsilon`` (all four always there; ``squeeze()`` drops those
        of length one): ``risk_1, risk_2, risk_3, floor, gap, steps_to_epsilon``, the proved
        ``risk_3_bound``, and

        - ``regime``, an integer whose meanings are in ``flag_meanings``: 0 success (risk after
          T steps <= epsilon); 1 phase 3 too short (its limit is <= epsilon); 2 attention turned
          away from the target (gap < 0); 3 attention too weak; 4 diverged (eta3 > 2/lambda_max),
          which precedes the others;
        - ``proved``: whether the float values with their proved bounds decide the label. An
          undecided cell keeps the label of its float values.

        The attributes say which version and parameters made it.

    Raises
    ------
    BadParameter
        When an argument breaks a rule, or the result would take more than 32 GB.

    Notes
    -----
    The moments at one d come from a table in the gap, so a pixel is O(1) at any d and T.
    Where products of the rates overflow (beyond 1e150 or so) values are NaN and never proved.
    Source: Paper A.7; THEORY 5. Error: risk_3 proved (risk_3_bound, see
    `popgd.diagram_proof`); the others estimated, as in `popgd.symmetric.three_phase`; the
    accuracies 1e-11 where moments from the table (4e-12) decide.

    Examples
    --------
    >>> import numpy as np, popgd
    >>> rates = np.geomspace(0.1, 10, 3), np.geomspace(1e3, 1e5, 5)
    >>> plane = popgd.phase_diagram(50, *rates, steps=2000)
    >>> int((plane.regime == 0).sum()), bool(plane.proved.all())
    (9, True)
    """
    check_executor(executor)
    sizes = _sizes(d)
    axes = [_axis(name, x) for name, x in (("eta1", eta1), ("eta2", eta2))]
    targets = _axis("epsilon", epsilon)
    if not (targets > 0).all():
        raise check.refuse("epsilon", epsilon, "every target must be > 0", "pass a risk > 0")
    rate = check.real("eta3", eta3, 0.0, closed="left", remedy="pass a finite learning rate >= 0")
    count = _count(steps)
    _check_room(len(sizes) * axes[0].size * axes[1].size * (56 + 10 * targets.size))
    out = _allocate((len(sizes), axes[0].size, axes[1].size), targets.size, bool(accuracy))
    pool = executor if executor is not None else ThreadPoolExecutor(_cores())
    try:
        for i, size in enumerate(sizes):
            table(size)  # built here once, not by every thread at once
            _fill(pool, out, i, (size, *axes, rate, count, targets, bool(accuracy)))
    finally:
        if executor is None:
            pool.shutdown(wait=True, cancel_futures=True)
    risk_1 = np.stack([first(size, axes[0]).risk for size in sizes])
    return _dataset(risk_1, out, sizes, axes, targets, rate, count)


def _sizes(d: Any) -> list[int]:
    remedy = "pass alphabet sizes between 2 and 10^15"
    many = np.ravel(d).tolist() if isinstance(d, (list, tuple, range, np.ndarray)) else [d]
    if not many:
        raise check.refuse("d", d, "is empty", remedy)
    return [check.integer("d", x, 2, 10**15, remedy=remedy) for x in many]


def _axis(name: str, value: Any) -> np.ndarray:
    remedy = "pass finite numbers >= 0, for example numpy.geomspace(0.01, 100, 200)"
    axis = check.real_array(name, value, 0.0, math.inf, closed="left", remedy=remedy)
    if axis.ndim > 1 or axis.size == 0:
        raise check.refuse(name, value, "must be a number or a non-empty 1-D array", remedy)
    return axis.reshape(-1)


def _count(steps: Any) -> float:
    remedy = "pass a whole number of steps >= 0, or inf"
    count = check.real("steps", steps, 0.0, closed="both", remedy=remedy)
    if count != math.floor(count) if math.isfinite(count) else False:
        raise check.refuse("steps", steps, "must be a whole number", remedy)
    return count


def _check_room(size: int) -> None:
    if size > MOST_BYTES:
        raise check.refuse(
            "eta1, eta2",
            f"{size / 2**30:.0f} GB of results",
            "the diagram would take more than 32 GB",
            "pass fewer learning rates, or one d at a time",
        )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), 16)
    return min(os.cpu_count() or 1, 16)


def _allocate(plane: tuple[int, ...], targets: int, accuracy: bool) -> dict[str, np.ndarray]:
    names = ["risk_2", "risk_3", "risk_3_bound", "floor", "gap"]
    out: dict[str, np.ndarray] = {name: np.empty(plane) for name in names}
    out["steps_to_epsilon"] = np.empty((*plane, targets))
    out["regime"] = np.empty((*plane, targets), dtype=np.int8)
    out["proved"] = np.empty((*plane, targets), dtype=bool)
    if accuracy:
        out |= {name: np.empty(plane) for name in ("accuracy_2", "accuracy_3")}
    return out


def _fill(pool: Executor, out: dict[str, np.ndarray], i: int, arguments: tuple) -> None:
    size, eta1, eta2, *rest = arguments
    blocks = list(_blocks(eta1.size, eta2.size))
    tasks = [(size, eta1[rows], eta2[columns], *rest) for rows, columns in blocks]
    for (rows, columns), tile in zip(blocks, pool.map(_tile, tasks)):
        for name, array in out.items():
            array[i, rows, columns] = getattr(tile, name)


def _tile(arguments: tuple) -> Tile:
    return compute(*arguments)


def _blocks(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Tiles of at most PIXELS pixels, whole rows where they fit."""
    width = min(columns, PIXELS)
    height = max(1, PIXELS // width)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield slice(top, top + height), slice(left, left + width)


def _dataset(
    risk_1: np.ndarray,
    out: dict[str, np.ndarray],
    sizes: list[int],
    axes: list[np.ndarray],
    targets: np.ndarray,
    eta3: float,
    steps: float,
) -> xarray.Dataset:
    import xarray

    data: dict[str, Any] = {"risk_1": (PLANE[:2], risk_1)}
    for name, array in out.items():
        data[name] = (PLANE if array.ndim == 3 else (*PLANE, "epsilon"), array)
    coords = {"d": sizes, "eta1": axes[0], "eta2": axes[1], "epsilon": targets}
    parameters = {"eta3": eta3, "steps": steps, "start": "zero"}
    result = xarray.Dataset(data, coords | {"eta3": eta3, "steps": steps})
    for name in result.variables:
        result[name].attrs = {"long_name": LONG_NAMES[str(name)], "units": "1"}
    flags = {
        "flag_values": np.arange(len(REGIMES), dtype=np.int8),
        "flag_meanings": " ".join(REGIMES),
    }
    result["regime"].attrs |= flags
    result.attrs = {
        "title": "Three-phase training from zero: regimes over the learning rates",
        "source": f"popgd {__version__}, phase_diagram",
        "popgd_version": __version__,
        "numpy_version": np.__version__,
        "parameters": json.dumps(parameters),
        "moment_table_error": max(table(size).error for size in sizes),
        "Conventions": "CF-1.8",
    }
    return result
