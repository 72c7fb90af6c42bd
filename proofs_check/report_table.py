"""The report as a table for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from popgd.ball import Enclosure

from .outcome import Outcome
from .report import Report, finding
from .verdict import Kind, Verdict

__all__ = ["print_report"]

_STYLE = {
    Verdict.PROVED: "bold green",
    Verdict.HOLDS: "green",
    Verdict.HOLDS_TO: "green",
    Verdict.NOT_FALSIFIED: "cyan",
    Verdict.FAILS: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.UNDECIDED: "yellow",
    Verdict.OUTSIDE: "dim",
}
_COLUMNS = ("claim", "mark", "verdict", "worst margin", "where", "sharp constant", "CPU s")


def print_report(report: Report, console: Console) -> None:
    """Print one table a statement, known findings first, each claim with its coverage."""
    for heading, outcomes in report.groups():
        table = Table(title=heading, title_justify="left", expand=True, show_lines=True)
        for name in _COLUMNS:
            table.add_column(name, justify="right" if name == "CPU s" else "left", overflow="fold")
        for outcome in outcomes:
            table.add_row(*_row(outcome))
        console.print(table)
    console.print(_summary(report))


def _row(outcome: Outcome) -> list[Text | str]:
    claim, worst = outcome.claim, outcome.worst
    title = Text.assemble((claim.id, "bold"), "\n", claim.title)
    title.append(f"\n{outcome.coverage.text}", "dim")
    known = finding(outcome)
    if known is not None:
        title.append(f"\n{known.consequence}", "yellow")
    verdict = Text(outcome.text, _STYLE[outcome.verdict])
    if outcome.verdict is Verdict.FAILS:
        judged = sum(outcome.counts[key] for key in ("holds", "holds_to", "fails", "undecided"))
        verdict.append(f"\n{outcome.counts['fails']} of {judged}")
    if worst is not None and worst.note:
        verdict.append(f"\n{worst.note}", "dim")
    return [
        title,
        claim.mark.value,
        verdict,
        _margin(outcome),
        str(worst.point) if worst else "",
        _sharp(outcome),
        f"{outcome.seconds:.1f}",
    ]


def _margin(outcome: Outcome) -> str:
    worst = outcome.worst
    if worst is None or worst.margin is None:
        return ""
    if outcome.verdict is Verdict.HOLDS_TO or outcome.claim.kind is Kind.IDENTITY:
        low, high = worst.margin.bounds
        return f"|difference| <= {float(max(abs(low), abs(high))):.1e}"
    return brief(worst.margin)


def _sharp(outcome: Outcome) -> str:
    found = outcome.sharp
    return "" if found is None else f"{found.name} = {brief(found.value)}\nat {found.point}"


def brief(x: Enclosure, digits: int = 6) -> str:
    """A short form: the common leading digits when narrow, else both bounds."""
    if x.relative_width <= 10.0**-digits:
        return f"{x.to_float():.{digits}g}"
    low, high = x.bounds
    return f"[{float(low):.4g}, {float(high):.4g}]"


def _summary(report: Report) -> Text:
    counts: dict[str, int] = {}
    for outcome in report.outcomes:
        counts[outcome.verdict.value] = counts.get(outcome.verdict.value, 0) + 1
    parts = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    text = Text(f"{len(report.outcomes)} claims on the {report.level} grid: {parts}.")
    for outcome in report.outcomes:
        if outcome.traceback:
            text.append(f"\n{outcome.claim.id}: {outcome.traceback}", "magenta")
    if report.interrupted:
        text.append("\nInterrupted: the claims above are those judged so far.", "bold yellow")
    return text
