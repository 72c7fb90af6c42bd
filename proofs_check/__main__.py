"""`proofs-check`: judge the paper's claims. The report goes to stdout, progress to stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from popgd.cli_output import show_versions
from popgd.errors import BadFile

from . import cli_trials, collect
from . import output as place
from .collect import Progress as Callback
from .judge import CAP
from .outcome import Outcome
from .report import Report, exit_code
from .usage import alone, refused, refused_claim, seconds

__all__ = ["app", "main"]

INTERRUPTED = 130  # what shells report for Ctrl-C

app = typer.Typer(
    add_completion=False,
    help=__doc__,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Only = Annotated[
    list[str] | None, typer.Option(help="A claim, or a statement with its steps; repeatable.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="Write the format to this file, whole or not at all; stdout keeps the table."
    ),
]
Precision = Annotated[int, typer.Option(min=64, max=100_000, help="Largest precision, in bits.")]


@app.callback(invoke_without_command=True)
def check(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of the table.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown tables.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="A longtable to include.")] = False,
    html: Annotated[bool, typer.Option("--html", help="One file with slack plots.")] = False,
    output: Output = None,
    only: Only = None,
    quick: Annotated[bool, typer.Option("--quick", help="A coarse grid.")] = False,
    full: Annotated[bool, typer.Option("--full", help="A fine grid.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Known findings exit 1 too.")] = False,
    precision: Precision = CAP,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which to stop and say so.")
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_versions, is_eager=True, help="Show versions."),
    ] = False,
) -> None:
    """Judge the claims on a grid. Exit 0: as expected; 1: not; 2: usage; 3: undecided."""
    if context.invoked_subcommand is not None:
        return alone(context)
    seconds("--budget", budget)
    if quick and full:
        raise refused("--quick and --full: are two grids; choose one.")
    level = "quick" if quick else "full" if full else "default"
    flags = {"json": json, "markdown": markdown, "latex": latex, "html": html}
    try:
        form = place.choose([name for name, asked in flags.items() if asked], output)
        if output is not None:
            place.writable(output)
    except ValueError as error:
        raise refused(error) from None
    try:
        claims = collect.find(only or ())
    except KeyError as error:
        raise refused_claim("--only", error.args[0]) from None
    order = [claim.id for claim in claims]
    outcomes, interrupted = _run(claims, level, precision, budget)
    report = Report.of(outcomes, order, level, precision, interrupted, budget)
    try:
        place.deliver(report, form, output)
    except BadFile as error:
        raise refused(error) from None
    complete = not report.unfinished
    raise typer.Exit(INTERRUPTED if interrupted else exit_code(outcomes, strict, complete))


def _run(
    claims: list[collect.Claim], level: str, cap: int, budget: float | None
) -> tuple[list[Outcome], bool]:
    outcomes: list[Outcome] = []
    try:
        with _progress() as callback:
            for outcome in collect.run(claims, level, cap, callback, budget):
                outcomes.append(outcome)  # noqa: PERF402 - kept when interrupted midway
    except KeyboardInterrupt:
        return outcomes, True
    return outcomes, False


@contextmanager
def _progress() -> Iterator[Callback | None]:
    """A bar on stderr; nothing when stderr is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda id, done, total: bar.update(task, description=id, completed=done, total=total)


@app.command()
def replay(
    file: Annotated[str, typer.Argument(help="A JSON report; the shipped one if not given.")] = "",
    precision: Precision = CAP,
) -> None:
    """Evaluate every worst and sharp point recorded in a JSON report again."""
    from . import replay as module

    differing = 0
    try:
        for item in module.replay(module.read(file or module.SHIPPED), precision):
            differing += not item.agrees
            state = "agrees" if item.agrees else "DIFFERS"
            print(f"{state}  {item.id}  {item.what} at {item.point}: {item.recorded} | {item.now}")
    except BadFile as error:
        raise refused(error) from None
    raise typer.Exit(1 if differing else 0)


@app.command()
def necessity(id: str, precision: Precision = CAP) -> None:
    """Drop one hypothesis of a claim at a time and report the smallest violation found."""
    from .necessity import necessity as drop

    claim = collect.by_id().get(id)
    if claim is None:
        raise refused_claim("id", id, statements=False)
    if not claim.hypotheses:
        print(f"{id} has no hypotheses.")
    for dropped in drop(claim, cap=precision):
        print(f"without {dropped.hypothesis.text}: {_sentence(dropped)}")


def _sentence(dropped: object) -> str:
    from .necessity import Dropped

    assert isinstance(dropped, Dropped)
    unclear = f", {dropped.undecided} of them undecided" if dropped.undecided else ""
    if dropped.smallest is None:
        return f"no violation found at {dropped.tried} points outside it{unclear}"
    return f"fails at {dropped.smallest.point}, margin {dropped.smallest.margin}{unclear}"


cli_trials.register(app)


def main() -> None:
    """Entry point of the `proofs-check` command."""
    app()


if __name__ == "__main__":
    main()
