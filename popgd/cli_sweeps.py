"""`popgd phase-diagram` and `popgd sweep`: options in, files and a short table out."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .cli_output import facts, one_sentence, show_json, versions

__all__ = ["register"]

CURVE = 60
FAILED = 1
FORMATS = ("png", "pdf", "svg")

Sizes = Annotated[
    str, typer.Option("--d", "-d", help="Alphabet size; 50, or for example 1e6.", metavar="INT")
]
Png = Annotated[
    Path | None, typer.Option("--png", help="Draw the diagram (png, pdf or svg).", metavar="FILE")
]
Netcdf = Annotated[
    Path | None, typer.Option("--netcdf", help="Save every number as netCDF.", metavar="FILE")
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("phase-diagram")(phase_diagram)
    app.command("sweep")(sweep)


@one_sentence
def phase_diagram(
    d: Sizes = "50",
    steps: Annotated[
        str, typer.Option("--steps", help="Steps T of phase 3, or inf.", metavar="INT")
    ] = "inf",
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Target risk.", metavar="NUMBER")
    ] = "0.01",
    eta1: Annotated[
        str | None,
        typer.Option("--eta1", help="Range LOW:HIGH; by default d/10^4 to 10 d.", metavar="RANGE"),
    ] = None,
    eta2: Annotated[
        str | None,
        typer.Option("--eta2", help="Range; by default d/10 to 10^6 d.", metavar="RANGE"),
    ] = None,
    eta3: Annotated[
        str, typer.Option("--eta3", help="Learning rate of phase 3.", metavar="NUMBER")
    ] = "1",
    pixels: Annotated[
        int, typer.Option("--pixels", help="Learning rates on each axis.", min=2, max=5_000)
    ] = 500,
    accuracy: Annotated[
        bool, typer.Option("--accuracy", help="Also accuracies, into the netCDF file.")
    ] = False,
    png: Png = None,
    netcdf: Netcdf = None,
    json: Json = False,
) -> None:
    """Where three-phase training succeeds over the learning rates.

    Example: popgd phase-diagram -d 50 --steps 100 --png diagram.png
    """
    import numpy as np

    from . import _validate as check
    from .boundaries import boundary_curves, curve_rates
    from .cli_inputs import number
    from .diagram import REGIMES
    from .diagram import phase_diagram as compute

    if png is not None:
        check.choice("png", _format(png), FORMATS)
    size = check.integer("d", number("d", d), 2, 10**15)
    rate, target, count = number("eta3", eta3), number("epsilon", epsilon), number("steps", steps)
    axes = [
        np.geomspace(*_range(name, text, low * size, high * size), pixels)
        for name, text, low, high in (("eta1", eta1, 1e-4, 10.0), ("eta2", eta2, 0.1, 1e6))
    ]
    plane = compute(size, *axes, steps=count, epsilon=target, eta3=rate, accuracy=accuracy)
    phase_3: dict[str, Any] = {"steps": count, "eta3": rate}
    rates = curve_rates(size, axes[0][0], axes[0][-1], CURVE, epsilon=target, **phase_3)
    curve = boundary_curves(size, rates, target, **phase_3)
    if netcdf is not None:
        from .netcdf import save_netcdf

        save_netcdf(plane, netcdf)
    if png is not None:
        _draw(plane, curve, png)
    label, share = plane.regime.values, float(plane.proved.mean())
    answer = {name: float((label == k).mean()) for k, name in enumerate(REGIMES)}
    solved = curve.status == 0
    answer |= {
        "proved": share,
        "eta1 where attention turns away": float(curve.eta1_turn[0]),
        "boundary points": int(solved.sum()),
        "boundary points proved": int(curve.bracketed.sum()),
    }
    if solved.any():
        answer["smallest C"] = float(curve.constant.where(solved).min())
    if json:
        show_json({"d": size, "steps": count, "epsilon": target, **answer, "versions": versions()})
        return
    note = "Shares of the plane; eta2 = C d^2/eta1 ln(d/epsilon) on the boundary of success."
    facts(f"Three phases, d = {size}, epsilon = {target:g}, T = {count:g}", answer, note)


def _range(name: str, text: str | None, low: float, high: float) -> tuple[float, float]:
    from . import _validate as check
    from .cli_inputs import number

    if text is None:
        return low, high
    parts = text.split(":")
    if len(parts) != 2:
        raise check.refuse(name, text, "is no range", "write for example 0.01:100")
    low, high = (number(name, part) for part in parts)
    if not 0 < low < high < math.inf:
        raise check.refuse(name, text, "needs 0 < low < high", "write for example 0.01:100")
    return low, high


def _draw(plane: Any, curve: Any, path: Path) -> None:
    """The picture, written whole or not at all."""
    from . import plots
    from ._files import write_atomically

    figure = plots.figure()
    plots.phase_diagram(plane, figure.subplots(), boundary=curve)
    write_atomically(path, lambda file: figure.savefig(file, format=_format(path)))


def _format(path: Path) -> str:
    return path.suffix[1:].lower() or "png"


@one_sentence
def sweep(
    function: Annotated[
        str,
        typer.Argument(metavar="MODULE:FUNCTION", help="What to call; file.py:function works too."),
    ],
    grid: Annotated[
        list[str],
        typer.Option(
            "--grid",
            "-g",
            help="NAME=1,1/3,sqrt(2) or NAME=log:LOW:HIGH:N, lin:LOW:HIGH:N, both with HIGH, or "
            "int:LOW:HIGH[:STEP], without HIGH. Other values are text.",
        ),
    ],
    store: Annotated[
        Path | None, typer.Option("--store", help="Keep finished chunks (zarr).", metavar="DIR")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the sweep in the store, if there is one.")
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", help="Dask scheduler.", metavar="tcp://HOST:PORT"),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", help="Processes; 1 computes here.", min=1)
    ] = 1,
    chunk: Annotated[
        int | None, typer.Option("--chunk", help="Cells a task.", metavar="INT")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the cells' generators.")] = 0,
    netcdf: Netcdf = None,
    json: Json = False,
) -> None:
    """Call a function for every cell of a grid, resumable, here or on a cluster.

    Example: popgd sweep study.py:trial -g d=10,50 -g seed=int:0:20 --store runs.zarr
    """
    from . import _validate as check
    from .sweep_names import load_function
    from .sweeps import sweep as compute

    if resume and store is None:
        raise check.refuse("resume", resume, "needs a store", "add --store DIR")
    chosen, axes = load_function(function), _grid(grid)
    with _executor(scheduler, workers, function) as executor, warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ of \d+ cells failed")  # said below
        warnings.showwarning = _warn
        result = compute(
            chosen, axes, executor=executor, store=store, resume=resume, chunk=chunk, seed=seed
        )
    if netcdf is not None:
        from .netcdf import save_netcdf

        save_netcdf(result, netcdf)
    cells = int(result.error.size)
    if json:
        data = {str(name): result[name].values.tolist() for name in result.variables}
        show_json({"cells": cells, "failed": result.attrs["failed"], **data})
    else:
        _summary(result, cells)
    if result.attrs["failed"]:
        first = next(text for text in result.error.values.ravel() if text)
        print(
            f"error: {result.attrs['failed']} of {cells} cells failed, the first with {first}",
            file=sys.stderr,
        )
        raise typer.Exit(FAILED)


def _warn(message: Any, *_: Any, **__: Any) -> None:
    print("warning:", " ".join(str(message).split()), file=sys.stderr)


def _grid(texts: list[str]) -> dict[str, list[Any]]:
    from . import _validate as check
    from .sweep_names import parse_axis

    axes: dict[str, list[Any]] = {}
    for text in texts:
        name, values = parse_axis(text)
        if name in axes:
            raise check.refuse("grid", text, f"{name} has values already", "give each name once")
        axes[name] = values
    return axes


def _summary(result: Any, cells: int) -> None:
    rows = {"cells": cells, "failed": result.attrs["failed"]}
    for name, values in result.data_vars.items():
        if name != "error" and values.dtype.kind in "if" and bool(values.notnull().any()):
            low, middle, high = (float(values.quantile(q)) for q in (0.0, 0.5, 1.0))
            rows[str(name)] = f"{low:.6g} .. {middle:.6g} .. {high:.6g}"
    facts("Sweep", rows, "Smallest, median and largest; --json or --netcdf give every cell.")


@contextmanager
def _executor(scheduler: str | None, workers: int, function: str) -> Iterator[Any]:
    """What computes the cells; a cluster gets the file that a function comes from."""
    from . import _validate as check
    from .errors import NotAvailable

    if scheduler is not None:
        try:
            from dask.distributed import Client
        except ImportError:
            raise NotAvailable(
                "scheduler: dask is not installed; pip install 'popgd[cluster]', or --workers."
            ) from None
        try:
            client = Client(scheduler, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            remedy = "start one with `dask scheduler` and pass its address"
            raise check.refuse("scheduler", scheduler, f"no answer ({error})", remedy) from error
        file = function.rpartition(":")[0]
        with client:
            if file.endswith(".py"):
                client.upload_file(file)
            yield client.get_executor()
    elif workers == 1:
        yield None
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
