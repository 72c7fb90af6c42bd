"""Where a report goes: one format to stdout, or to a file while stdout keeps the table."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rich.console import Console

from popgd._files import write_atomically

from . import report_table
from .report import Report

__all__ = ["FORMATS", "PIPED", "choose", "deliver", "render", "writable"]

FORMATS = {"json": ".json", "markdown": ".md", "latex": ".tex", "html": ".html"}
"""Formats and the suffixes they are recognised by."""

PIPED = 160  # columns: a pipe has no width of its own


def choose(flags: Sequence[str], output: Path | None) -> str:
    """The format asked for, "" for the table alone.

    Raises
    ------
    ValueError
        When several are asked for, or the file's name does not say which.
    """
    if len(flags) > 1:
        raise ValueError(f"{' and '.join(f'--{name}' for name in flags)}: choose one format.")
    if flags or output is None:
        return flags[0] if flags else ""
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    if output.suffix.lower() not in by_suffix:
        raise ValueError(
            f"--output = {str(output)!r}: the name does not say which format; end it in "
            f"{', '.join(by_suffix)}, or add one of {', '.join(f'--{name}' for name in FORMATS)}."
        )
    return by_suffix[output.suffix.lower()]


def writable(output: Path) -> None:
    """Refuse before the work what could not be written after it.

    Raises
    ------
    ValueError
        When the place is a directory, is missing or is closed to us.
    """
    place = output.resolve().parent
    if (
        (output.exists() and not output.is_file())
        or not place.is_dir()
        or not os.access(place, os.W_OK)
    ):
        raise ValueError(
            f"--output = {str(output)!r}: cannot be written; choose a file in a directory that "
            "exists and can be written to."
        )


def render(report: Report, name: str) -> str:
    """The report in a format of `FORMATS`."""
    module = import_module(f".report_{name}", __package__)
    function: Callable[[Report], str] = module.render
    return function(report).rstrip("\n") + "\n"


def deliver(report: Report, name: str, output: Path | None) -> None:
    """Write the file if there is one; print the table, or the format when there is no file.

    Raises
    ------
    BadFile
        When the file cannot be written; what was there is unchanged. The table is printed first.
    """
    if name and output is None:
        sys.stdout.write(render(report, name))
        return
    report_table.print_report(report, _stdout())
    if output is not None:
        text = render(report, name).encode()
        write_atomically(output, lambda file: file.write(text) and None)


def _stdout() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=PIPED)
