"""The report as Markdown: one table a statement, known findings first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .notation import as_html
from .outcome import Outcome
from .report import Report, finding
from .report_text import (
    constant,
    found_head,
    found_rows,
    heading,
    margin,
    place,
    share_failing,
    summary,
)
from .verdict import Verdict

__all__ = ["cell", "render"]

_HEAD = "| claim | statement | mark | verdict | worst margin | sharp constant | coverage |"


def render(report: Report) -> str:
    """The report as Markdown text."""
    parts = ["# Claims judged", cell(summary(report))]
    for name, outcomes in report.groups():
        parts += [f"## {cell(heading(name))}", _table(_HEAD, map(_row, outcomes))]
        parts += [_consequence(outcome) for outcome in outcomes if finding(outcome)]
        parts += [_found(outcome) for outcome in outcomes if outcome.rows]
    tracebacks = [o for o in report.outcomes if o.traceback]
    parts += [f"    {o.claim.id}\n" + _indented(o.traceback) for o in tracebacks]
    return "\n\n".join(parts) + "\n"


def _table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, "|" + " --- |" * (head.count("|") - 1), *rows])


def _found(outcome: Outcome) -> str:
    """What the searches found at each dimension."""
    assert outcome.sharp is not None
    title = f"**{outcome.claim.id}**, {cell(outcome.sharp.name)}, by dimension:"
    return f"{title}\n\n" + _table(_line(found_head(outcome)), map(_line, found_rows(outcome)))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def _row(outcome: Outcome) -> str:
    claim = outcome.claim
    name = f"**{claim.id}**" if claim.id == claim.statement else f"&emsp;{claim.id}"
    verdict = outcome.text
    if outcome.verdict is Verdict.FAILS:
        verdict = f"**fails** at {share_failing(outcome)}"
    sharp = outcome.sharp
    cells = [
        name,
        cell(claim.title),
        claim.mark.value,
        verdict,
        _joined(margin(outcome), place(outcome.worst.point) if outcome.worst else ""),
        _joined(constant(outcome), place(sharp.point) if sharp else ""),
        cell(outcome.coverage.text),
    ]
    return f"| {' | '.join(cells)} |"


def _joined(value: str, where: str) -> str:
    return cell(f"{value} {where}".strip()) if value else ""


def _consequence(outcome: Outcome) -> str:
    known = finding(outcome)
    return f"**{outcome.claim.id}**: {cell(known.consequence)}" if known else ""


def cell(text: str) -> str:
    """A statement for a table cell: set as mathematics, no character of Markdown left."""
    return re.sub(r"([\\`*_\[\]~|$#])", r"\\\1", as_html(text).replace("&#x27;", "'"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
