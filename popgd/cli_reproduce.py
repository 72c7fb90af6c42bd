"""`popgd reproduce`: the paper's table of training plans beside our own."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from .cli_output import one_sentence, show_json, table, versions

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(reproduce)


@one_sentence
def reproduce(
    d: Annotated[int, typer.Option("--d", "-d", help="Alphabet size.", metavar="INT")] = 50,
    seeds: Annotated[int, typer.Option("--seeds", help="Runs a plan.", metavar="INT")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Root of their streams.", metavar="INT")] = 0,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A row; repeatable.", metavar="NAME")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Processes.", metavar="INT")] = 2,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """The paper's training plans on the occurrence language.

    Train MSE and test accuracy over the seeds, the paper's numbers, and the exact population value
    of the same plans from the same starts. Step sizes are ours: the paper does not print them.

    Example: popgd reproduce --seeds 10
    """
    from .plan_table import paper_table

    found = paper_table(d, seeds, seed, only=only or (), workers=workers, progress=_progress())
    if json:
        show_json(asdict(found) | {"versions": versions()})
        return
    columns = [
        "plan",
        "train MSE",
        "paper",
        "exact",
        "test acc.",
        "paper",
        "exact",
        "MSE of words'",
    ]
    rows = []
    for row in found.rows:
        cells = [text for cell in (row.mse, row.accuracy) for text in _cells(cell)]
        rows.append([row.name, *cells, f"{row.population_mse:.3g}"])
    note = "\n".join(
        [
            "mean (standard deviation) over the seeds; exact: trained on the population, same",
            "starts; MSE of words': exact MSE of the weights trained on words;",
            *_about_paper(found.d),
            "Step sizes:",
            *(f"  {row.plan}" for row in found.rows[:-1]),
            "  joint: "
            + ", ".join(f"{layer} at lr={x:g}" for layer, x in found.joint_rates.items()),
        ]
    )
    title = (
        f"Occurrence, d = {found.d}: {found.train_words} training and {found.test_words} test "
        f"words, {found.seeds} seeds from {found.rng}"
    )
    table(title, columns, rows, note)


def _about_paper(d: int) -> list[str]:
    from .plan_table import PAPER_D

    if d != PAPER_D:
        return [f"the paper's numbers are for d = {PAPER_D}."]
    return ["= within two deviations and rounding of the paper's number, ! not."]


def _cells(cell: Any) -> list[str]:
    printed = ""
    if cell.printed is not None:
        printed = f"{cell.printed:g} {'=' if cell.agrees else '!'}"
    return [f"{cell.mean:.3g} ({cell.deviation:.2g})", printed,
            f"{cell.exact:.3g} ({cell.exact_deviation:.2g})"]  # fmt: skip


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None
    return lambda done, total: print(f"{done}/{total} groups of seeds", file=sys.stderr)
