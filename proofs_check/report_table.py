"""The report as tables for the terminal, laid out for its width."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .outcome import Outcome
from .report import Report, finding
from .report_text import constant, heading, margin, place, share_failing, summary
from .verdict import Verdict

__all__ = ["WIDE", "print_report"]

WIDE = 120  # columns from which margins and constants have columns of their own

_STYLE = {
    Verdict.PROVED: "bold green",
    Verdict.HOLDS: "green",
    Verdict.HOLDS_TO: "green",
    Verdict.NOT_FALSIFIED: "cyan",
    Verdict.FAILS: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.OUTSIDE: "dim",
}


def print_report(report: Report, console: Console) -> None:
    """Print one table a statement, known findings first, each claim with its coverage."""
    wide = console.width >= WIDE
    for name, outcomes in report.groups():
        console.print(Text(heading(name), "bold underline"))
        table = _table(wide)
        for outcome in outcomes:
            table.add_row(*(_wide(outcome) if wide else _narrow(outcome)))
        console.print(table)
        console.print()
    _end(report, console)


def _table(wide: bool) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if wide else None,
        expand=True, pad_edge=False, show_header=wide, show_edge=False,
    )  # fmt: skip
    table.add_column("verdict", width=15, overflow="fold")
    if not wide:
        table.add_column("claim", ratio=1, overflow="fold")
        return table
    table.add_column("claim and coverage", ratio=5, overflow="fold")
    table.add_column("worst margin", ratio=3, overflow="fold")
    table.add_column("sharp constant", ratio=3, overflow="fold")
    return table


def _wide(outcome: Outcome) -> list[Text | Padding]:
    margins = _lines(_at(margin(outcome), outcome))
    found = outcome.sharp
    sharp = _lines((constant(outcome), ""), (place(found.point) if found else "", "dim"))
    return [_verdict(outcome), _claim(outcome, []), margins, sharp]


def _narrow(outcome: Outcome) -> list[Text | Padding]:
    rows = [_at(margin(outcome), outcome)]
    if outcome.sharp is not None:
        rows.append((f"{constant(outcome)} {place(outcome.sharp.point)}", ""))
    return [_verdict(outcome), _claim(outcome, rows)]


def _at(text: str, outcome: Outcome) -> tuple[str, str]:
    where = place(outcome.worst.point) if outcome.worst and text else ""
    return " ".join(part for part in (text, where) if part), ""


def _claim(outcome: Outcome, rows: list[tuple[str, str]]) -> Padding | Text:
    claim, known = outcome.claim, finding(outcome)
    lines = [(f"{claim.id}  ({claim.mark.value})", "bold"), (claim.title, ""), *rows]
    if known is not None:
        lines.append((known.consequence, "italic"))
    covered = f"{outcome.coverage.brief}; {outcome.seconds:.1f} s"
    text = _lines(*lines, (covered, "dim"))
    step = known is None and claim.id != claim.statement
    return Padding(text, (0, 0, 0, 2)) if step else text


def _verdict(outcome: Outcome) -> Text:
    text = Text(outcome.text, _STYLE[outcome.verdict])
    if outcome.verdict is Verdict.FAILS:
        text.append(f"\n{share_failing(outcome)}", "not bold")
    if outcome.worst is not None and outcome.worst.note:
        text.append(f"\n{outcome.worst.note}", "not bold dim")
    return text


def _lines(*lines: tuple[str, str]) -> Text:
    return Text("\n").join(Text(text, style) for text, style in lines if text)


def _end(report: Report, console: Console) -> None:
    for outcome in report.outcomes:
        if outcome.traceback:
            console.print(Text(f"{outcome.claim.id}: {outcome.traceback}", "magenta"))
    console.print(Text(summary(report), "bold yellow" if report.unfinished else "bold"))
