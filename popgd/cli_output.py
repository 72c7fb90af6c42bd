"""How the command line speaks: one short table, or JSON; numbers as they are."""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from .errors import PopgdError

__all__ = ["facts", "one_sentence", "plain", "show_json", "show_versions", "table", "versions"]

LIBRARIES = ("numpy", "scipy", "sympy", "mpmath", "python-flint")
BAD_USE = 2
WIDE = 100_000


def one_sentence(command: Callable[..., Any]) -> Callable[..., Any]:
    """Show the package's own errors as a sentence, exit code 2, no traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except PopgdError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(BAD_USE) from None

    return wrapped


def versions() -> dict[str, str]:
    """Versions of the package, Python and the libraries that numbers come from."""
    import platform
    from importlib.metadata import version

    from . import __version__

    found = {"popgd": __version__, "python": platform.python_version()}
    return found | {name: version(name) for name in LIBRARIES}


def show_versions(wanted: bool) -> None:
    """What `--version` does."""
    if wanted:
        for name, version in versions().items():
            typer.echo(f"{name} {version}")
        raise typer.Exit


def plain(value: Any) -> Any:
    """A value for JSON, which has no infinities: those become text."""
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if hasattr(value, "lower") and hasattr(value, "upper") and hasattr(value, "midpoint"):
        return {"lower": value.lower, "upper": value.upper}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def show_json(data: Mapping[str, Any]) -> None:
    """JSON on stdout."""
    print(json.dumps(plain(data), allow_nan=False))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.12g}"
    if hasattr(value, "lower") and hasattr(value, "upper") and not isinstance(value, str):
        return f"{value.lower}\n{value.upper}"
    return str(value)


def facts(title: str, rows: Mapping[str, Any], note: str) -> None:
    """Names and values, one a line."""
    table(title, ("", ""), list(rows.items()), note)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
) -> None:
    """A small table; values in 12 digits, aligned right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head = any(columns)
    out = Table(box=SIMPLE_HEAD if head else None, show_header=head, padding=(0, 2, 0, 0))
    for i, name in enumerate(columns):
        out.add_column(
            name, justify="right" if i and head else "left", style="" if i else "cyan", no_wrap=True
        )
    for row in rows:
        out.add_row(*(Text(_text(value)) for value in row))
    # cut digits are worse than lines that the terminal wraps
    console = Console(width=WIDE, highlight=False)
    console.print(Text(title, style="bold"))
    console.print(out)
    if note:
        console.print(Text(note, style="dim"))
