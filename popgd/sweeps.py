"""Sweeps: a function over a grid, on any executor, resumable, labelled results."""

from __future__ import annotations

import itertools
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from . import __version__
from . import _validate as check
from .sweep_cells import Record, check_executor, check_names, takes_rng
from .sweep_chunks import LOST, computed
from .sweep_identity import described, fingerprint, shown

if TYPE_CHECKING:
    import xarray

__all__ = ["sweep"]

CHUNKS = 256  # at most so many by default: enough to balance load, few enough to store
MOST_CELLS = 2_000_000  # about 1 GB of arguments and results in Python's own types
ERROR = "error"


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Any],
    *,
    executor: Executor | None = None,
    store: Any = None,
    resume: bool = True,
    seed: int | None = 0,
    chunk: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> xarray.Dataset:
    """Call ``function(**cell)`` for every cell of a grid and label the results.

    Parameters
    ----------
    function : callable
        Takes the grid's names as keyword arguments; returns a number, a string or a mapping of
        names to these. If it has a parameter ``rng`` that the grid does not set, it gets a
        `numpy.random.Generator` of its own for each cell. For processes and clusters it must
        be picklable.
    grid : Mapping
        Names to 1-D sequences of numbers, strings or other values; cells are all combinations.
    executor : concurrent.futures.Executor, optional
        Threads, processes, or a Dask cluster by ``client.get_executor()``; None: one after the
        other, here. A cluster that has no workers yet is waited for, with a warning; one that
        lost its workers for five minutes is given up, its cells failed and to be resumed.
    store : str or PathLike, optional
        A zarr directory. Finished chunks are written as they come; a sweep that was killed
        resumes from them and ends bit-identical. Needs the extra ``cluster``.
    resume : bool
        False refuses a store that exists.
    seed : int or None
        Entropy of the cells' generators, combined with each cell's position in the grid, so
        results do not depend on workers or chunks. None draws a new one (in ``attrs``).
    chunk : int, optional
        Cells a task, and a chunk of the store. Default: at most 256 chunks.
    progress : bool or callable, optional
        None shows a bar on stderr when that is a terminal; a callable gets (done, total) cells.

    Returns
    -------
    xarray.Dataset
        A variable for every name returned (``value`` for plain results), over the grid's
        names, and ``error``: "" or what the cell raised (a result that bears a name of the grid is
        called ``name_result``). Failed cells are NaN (or ""); a
        failing cell loses no other. Integers stay integers when no cell failed.

    Raises
    ------
    BadParameter
        When an argument breaks a rule.
    BadFile
        When the store is unusable or the disk is full; finished chunks are kept.
    PopgdError
        When no chunk could be computed at all, e.g. because the function cannot be pickled.

    Warns
    -----
    RuntimeWarning
        When cells failed.

    Notes
    -----
    Errors that the function raises are results and are stored; cells lost with their worker are
    not stored, so that resuming computes them again. A store belongs to one grid, in its order,
    seed, chunk, version and function; of the function count its name, its code without comments
    and docstring, its defaults, the variables it closes over and the values bound to it, but not
    what it calls by global names: after changing that, or the Python version, take a new store.
    BLAS runs at one thread while cells run. A process pool breaks as a whole when one of its
    workers dies: give the same store to a new pool. Error: that of the function.

    Examples
    --------
    >>> import popgd
    >>> def floor(d, gap):
    ...     return popgd.symmetric.minimize_output(gap, d).value
    >>> result = popgd.sweep(floor, {"d": [10, 50], "gap": [0.0, 5.0, 10.0]})
    >>> result.value.dims, round(float(result.value.sel(d=50, gap=5.0)), 6)
    (('d', 'gap'), 0.016151)
    """
    if not callable(function):
        raise check.refuse("function", function, "is not callable", "pass a function")
    check_executor(executor)
    axes = _axes(grid)
    check_names(function, list(axes))
    size = math.prod(len(x) for x in axes.values())
    if size > MOST_CELLS:
        remedy = "split the grid, or vectorise the function over one of its names"
        raise check.refuse("grid", f"{size:,} cells", f"are more than {MOST_CELLS:,}", remedy)
    drawn = takes_rng(function) and "rng" not in axes
    identity = {"function": described(function)}
    if store is not None:
        identity |= _identity(function, axes)
    kept, identity = _prepare(store, resume, identity, seed if drawn else None, chunk, size, drawn)
    pieces = _pieces(axes, identity["chunk"])
    done = {} if kept is None else kept.finished([len(piece) for piece in pieces])
    todo = {i: piece for i, piece in enumerate(pieces) if i not in done}
    with _reporter(progress, size) as report:
        report(sum(len(records) for records in done.values()))
        run = computed(executor, function, todo, identity["seed"], resumed=bool(done))
        for i, records, final in run:
            if final and kept is not None:
                kept.write(i, records)
            done[i] = records
            report(len(records))
    records = [record for i in range(len(pieces)) for record in done[i]]
    result = _dataset(axes, records, identity)
    if kept is not None and not any(text.startswith(LOST) for _, text in records):
        kept.close(result)
    _warn(records)
    return result


def _axes(grid: Any) -> dict[str, list[Any]]:
    remedy = 'pass for example {"d": [10, 50], "eta1": numpy.geomspace(0.1, 10, 5)}'
    if not isinstance(grid, Mapping) or not grid:
        raise check.refuse("grid", grid, "must be a mapping of names to sequences", remedy)
    axes: dict[str, list[Any]] = {}
    for name, values in grid.items():
        if not isinstance(name, str) or not name.isidentifier() or name == ERROR:
            raise check.refuse("grid", name, "is no argument name", remedy)
        if hasattr(values, "dims") and hasattr(values, "values"):
            values = values.values  # of an xarray.DataArray, which iterates over arrays
        if isinstance(values, (set, frozenset)):
            rule = "is a set, which has no order"
            raise check.refuse(f"grid[{name!r}]", values, rule, "pass sorted(...) of it")
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise check.refuse(f"grid[{name!r}]", values, "must be a sequence", remedy)
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise check.refuse(f"grid[{name!r}]", values, "must be 1-D and not empty", remedy)
        # plain Python numbers: they pickle, print and count alike everywhere
        axes[name] = values.tolist() if isinstance(values, np.ndarray) else list(values)
        axes[name] = [x.item() if isinstance(x, np.generic) else x for x in axes[name]]
        if not axes[name]:
            raise check.refuse(f"grid[{name!r}]", values, "must be 1-D and not empty", remedy)
    return axes


def _identity(function: Any, axes: dict[str, list[Any]]) -> dict[str, Any]:
    """What tells this function and grid apart from others in a store."""
    return {
        "code": fingerprint("function", function),
        "grid": {k: [shown(f"grid[{k!r}]", x) for x in v] for k, v in axes.items()},
        "order of the grid": list(axes),  # records are kept by position
    }


def _prepare(
    store: Any, resume: bool, identity: dict, seed: int | None, chunk: Any, size: int, drawn: bool
) -> tuple[Any, dict[str, Any]]:
    """The store, if any, and everything that the results depend on."""
    if chunk is not None:
        chunk = check.integer("chunk", chunk, 1)
    if drawn and seed is not None:
        seed = check.integer("seed", seed, 0)
    found = None
    if store is not None:
        from .store import Store

        if not isinstance(store, (str, os.PathLike)):
            raise check.refuse("store", store, "is no path", 'pass for example "runs.zarr"')
        if not os.fspath(store) or "\0" in os.fsdecode(store):
            raise check.refuse("store", store, "is no path", 'pass for example "runs.zarr"')
        found = Store.existing(store)
        if found is not None and not resume:
            remedy = "resume it (resume=True, --resume), or choose a new path"
            raise check.refuse("store", str(store), "holds a sweep already", remedy)
    if found is not None:
        chunk = _whole(found.get("chunk"), 1) if chunk is None else chunk
        seed = _whole(found.get("seed"), 0) if drawn and seed is None else seed
    if drawn and seed is None:
        seed = int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    chunk = math.ceil(size / CHUNKS) if chunk is None else chunk
    whole = identity | {"seed": seed, "chunk": chunk, "popgd_version": __version__}
    if store is None:
        return None, whole
    return Store(store, whole, math.ceil(size / chunk)), whole


def _whole(value: Any, minimum: int) -> int | None:
    """What a store holds, when it makes sense."""
    return value if type(value) is int and value >= minimum else None


def _pieces(axes: dict[str, list[Any]], chunk: int) -> list[list[tuple[tuple[int, ...], dict]]]:
    positions = itertools.product(*(range(len(x)) for x in axes.values()))
    cells = ((where, {name: axes[name][i] for name, i in zip(axes, where)}) for where in positions)
    return [list(piece) for piece in _batched(cells, chunk)]


def _batched(items: Iterator[Any], size: int) -> Iterator[tuple[Any, ...]]:
    while piece := tuple(itertools.islice(items, size)):
        yield piece


@contextmanager
def _reporter(progress: Any, total: int) -> Iterator[Callable[[int], None]]:
    """A function that counts finished cells."""
    if callable(progress):
        done = 0

        def count(cells: int) -> None:
            nonlocal done
            done += cells
            progress(done, total)

        yield count
        return
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        yield lambda cells: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("cells", total=total)
        yield lambda cells: bar.advance(task, cells)


def _dataset(axes: dict[str, list], records: list[Record], identity: dict) -> xarray.Dataset:
    import xarray

    dims, shape = tuple(axes), tuple(len(x) for x in axes.values())
    names = list(dict.fromkeys(name for values, _ in records for name in values))
    labels = _labels(names, {*axes, ERROR})
    data: dict[str, Any] = {}
    for name in names:
        column = _column([values.get(name) for values, _ in records]).reshape(shape)
        data[labels[name]] = (dims, column)
    data[ERROR] = (dims, np.array([text for _, text in records]).reshape(shape))
    coords = {name: _coordinate(values) for name, values in axes.items()}
    attrs = {
        "source": f"popgd {__version__}, sweep",
        "popgd_version": __version__,
        "function": identity["function"],
        "seed": "" if identity["seed"] is None else str(identity["seed"]),
        "failed": sum(bool(text) for _, text in records),
    }
    return xarray.Dataset(data, coords, attrs)


def _labels(names: list[str], taken: set[str]) -> dict[str, str]:
    """Results whose name is taken are renamed, not lost."""
    used, labels = {*names, *taken}, {}
    for name in names:
        label = name
        while label in used and name in taken:
            label += "_result"
        used.add(label)
        labels[name] = label
    return labels


def _column(values: list[Any]) -> np.ndarray:
    """One dtype for all cells: text if any is text; NaN or "" where a cell has nothing."""
    present = [x for x in values if x is not None]
    if any(isinstance(x, str) for x in present):
        return np.array(["" if x is None else str(x) for x in values])
    whole = len(present) == len(values)
    if whole and all(isinstance(x, bool) for x in present):
        return np.array(values, dtype=bool)
    if whole and all(isinstance(x, int) and abs(x) < 2**63 for x in present):
        return np.array(values, dtype=np.int64)
    return np.array([math.nan if x is None else _float(x) for x in values])


def _float(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _coordinate(values: list[Any]) -> np.ndarray:
    if all(isinstance(x, (bool, int, float)) for x in values):
        return _column(values)
    return np.array([str(x) for x in values])


def _warn(records: list[Record]) -> None:
    errors = [text for _, text in records if text]
    if errors:
        warnings.warn(
            f"{len(errors)} of {len(records)} cells failed, see the variable 'error'; the first: "
            f"{errors[0]}",
            RuntimeWarning,
            stacklevel=3,
        )
