"""`proofs-check trials`: Corollary 1 on drawn words."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer

from popgd.errors import BadParameter, NotAvailable

from .usage import refused, refused_value, seconds

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(trials)


def trials(
    trials: Annotated[int, typer.Option("--trials", min=2, help="At each setting.")] = 200,
    d: Annotated[list[int] | None, typer.Option("--d", "-d", min=3, help="Repeatable.")] = None,
    eps: Annotated[
        list[float] | None,
        typer.Option("--eps", help="Repeatable; N1 for half is looked for at 0.1, or the first."),
    ] = None,
    c: Annotated[float, typer.Option("--c", min=0.0, help="Of 1 - 3 d^(-c).")] = 1.0,
    budget: Annotated[float | None, typer.Option("--budget", help="Seconds.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Root of all words.")] = 0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
) -> None:
    """Success rates on drawn words: the smallest C that works, and N1 for half of the trials."""
    from .trial_run import DIMENSIONS, RISKS, run_trials

    risks = eps or list(RISKS)
    for x in risks:
        if not 0 < x < 1:
            raise refused_value("--eps", x, "must lie in (0, 1)", "pass a risk such as 0.1")
    seconds("--budget", budget)
    try:
        run = run_trials(
            trials, d or DIMENSIONS, risks, c=c, rng=seed, budget=budget, workers=workers,
            progress=_progress(),
        )  # fmt: skip
    except (BadParameter, NotAvailable) as error:
        raise refused(error) from None
    if as_json:
        print(json.dumps(_finite(run.as_dict()), indent=2))
    else:
        _show(run)


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None
    return lambda done, total: print(f"{done}/{total} settings", file=sys.stderr)


def _finite(value: Any) -> Any:
    """JSON has no infinity: it becomes null."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(run: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(title=f"Smallest C, {run.trials} trials from seed {run.rng}")
    for name in ("d", "eps", f"1 - 3 d^-{run.c:g}", "smallest C", "between", "rate there"):
        table.add_column(name, justify="right")
    for x in run.constants:
        if x.required <= 0:
            table.add_row(str(x.d), f"{x.eps:g}", f"{x.required:.3g}", "vacuous", "", "")
            continue
        rate = x.rates.get(x.value)
        shown = "" if rate is None else f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
        between = f"{x.fails:.3g} to {x.works:.3g}"
        row = (str(x.d), f"{x.eps:g}", f"{x.required:.3f}", f"{x.value:.3g}", between, shown)
        table.add_row(*row)
    console.print(table)
    half = Table(title="N1 at which half of the trials succeed (N3 infinite, C = 2 in eta2)")
    for name in ("d", "eps", "N1", "interval", "N1/d", "N1/(d ln d)"):
        half.add_column(name, justify="right")
    for x in run.halves:
        n = x.words
        over = (n.value / x.d, n.value / (x.d * math.log(x.d)))
        half.add_row(str(x.d), f"{x.eps:g}", f"{n.value:g}", f"{n.low:g} to {n.high:g}",
                     *(f"{y:.3g}" for y in over))  # fmt: skip
    console.print(half)
    _conclude(run, console)


def _conclude(run: Any, console: Any) -> None:
    found = run.summary()
    percent = f"{100 * run.confidence:g} %"
    if found.constant is None:
        console.print("No setting that asks for anything was tried: no C to report.")
    else:
        console.print(
            f"One C for all settings tried: {found.constant:.3g} by the rates, "
            f"{found.constant_works:.3g} with {percent} confidence at each."
        )
    if found.half is not None:
        e, r = found.half.exponent, found.half_over_d_log_d.exponent
        console.print(
            f"N1 at 1/2 grows like d^{e.value:.3f} ({percent}: {e.low:.3f} to {e.high:.3f}; "
            f"scatter {found.half.scatter:.2g}); over d ln d like d^{r.value:.3f} "
            f"({r.low:.3f} to {r.high:.3f})."
        )
    if run.missing:
        console.print(f"Left out by the budget: {'; '.join(run.missing)}.")
