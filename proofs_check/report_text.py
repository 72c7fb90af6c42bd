"""What every format says about a claim: headings, margins, constants, the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache

from popgd.ball import Enclosure

from .outcome import Outcome
from .point import Point
from .report import FINDINGS, Report
from .verdict import Kind, Verdict

__all__ = [
    "attained", "brief", "constant", "counted", "found_head", "found_rows", "headed", "heading",
    "margin", "place", "share_failing", "summary", "tally",
]  # fmt: skip

LEAST = Fraction(1, 10**300)  # numbers below are not printed by way of floats
_STATEMENTS = {"prop": "Proposition", "thm": "Theorem", "cor": "Corollary"}


@cache
def heading(statement: str) -> str:
    """A statement's name and what it says: "Theorem 2: Three-phase training succeeds"."""
    if statement == FINDINGS:
        return "Known findings: what fails"
    name, title = headed(statement)
    return f"{name}: {title}" if title else name


@cache
def headed(statement: str) -> tuple[str, str]:
    """The two parts of a heading; the title is that of the statement's first claim file."""
    from .collect import modules

    kind = statement.rstrip("0123456789")
    number = statement[len(kind) :]
    name = f"{_STATEMENTS[kind]} {number}" if kind in _STATEMENTS else statement.capitalize()
    files = [m for m in modules() if any(c.statement == statement for c in m.CLAIMS)]
    exact = [m for m in files if m.__name__.rsplit(".", 1)[1] == statement] or files
    # several files of one subject, such as the model's, have no title in common
    return name, exact[0].TITLE if len(exact) == 1 else ""


def brief(x: Enclosure, digits: int = 6) -> str:
    """A short form: the common leading digits when narrow, else both bounds."""
    if x.relative_width <= 10.0**-digits:
        return _shown(x.midpoint, f".{digits}g")
    low, high = x.bounds
    return f"[{_shown(low, '.4g')}, {_shown(high, '.4g')}]"


def _shown(x: Fraction, form: str) -> str:
    """As a float prints, beyond the range of floats too."""
    if not x or LEAST <= abs(x) <= 1 / LEAST:
        return format(float(x), form)
    return format(Decimal(x.numerator) / Decimal(x.denominator), form)


def margin(outcome: Outcome) -> str:
    """The worst margin; of an identity, how far apart its sides are or can be."""
    worst = outcome.worst
    if worst is None or worst.margin is None:
        return ""
    low, high = worst.margin.bounds
    identity = worst.kind is Kind.IDENTITY
    if low == high == 0 and identity:
        return "equal"
    if identity and outcome.verdict is Verdict.FAILS:
        return f"difference {brief(worst.margin)}"
    if identity:
        return f"difference <= {_shown(max(abs(low), abs(high)), '.1e')}"
    return "margin 0 (attained)" if attained(worst.margin) else f"margin {brief(worst.margin)}"


def attained(x: Enclosure) -> bool:
    """Whether 0 lies inside."""
    return x.contains(0)


def constant(outcome: Outcome) -> str:
    """The sharp constant's name and value."""
    found = outcome.sharp
    return "" if found is None else f"{found.name} = {brief(found.value)}"


def found_head(outcome: Outcome) -> list[str]:
    """Columns of the table of what searches found at each dimension."""
    first = outcome.rows[0]
    return [
        *first.at, "found", *(name for name, _ in first.closed), "where", "starts, evaluations",
    ]  # fmt: skip


def found_rows(outcome: Outcome) -> list[list[str]]:
    """The rows of that table."""
    return [
        [
            *map(str, row.at.values()),
            brief(row.value),
            *("none" if x is None else brief(x) for _, x in row.closed),
            row.words,
            f"{row.starts}, {row.evaluations}",
        ]
        for row in outcome.rows
    ]


def place(point: Point | None) -> str:
    """Where, in words."""
    return f"at {point}" if point else ""


def share_failing(outcome: Outcome) -> str:
    """How many of the judged points fail."""
    judged = sum(outcome.counts[key] for key in ("holds", "holds_to", "fails", "undecided"))
    return f"{outcome.counts['fails']} of {judged} points"


def tally(report: Report) -> list[tuple[Verdict, int]]:
    """How many claims have each verdict, failures first."""
    counts = Counter(outcome.verdict for outcome in report.outcomes)
    return [(v, counts[v]) for v in reversed(Verdict) if counts[v]]


PLURAL = {"fails": "fail", "holds": "hold", "holds to": "hold to 10^-k"}


def counted(verdicts: Iterable[tuple[str, int]]) -> str:
    """How often each verdict was reached: "1 fails, 3 hold"."""
    return ", ".join(f"{n} {PLURAL.get(v, v) if n > 1 else v}" for v, n in verdicts)


def summary(report: Report) -> str:
    """One line, and what is missing from an incomplete run."""
    parts = counted((verdict.value, n) for verdict, n in tally(report))
    noun = "claim" if len(report.outcomes) == 1 else "claims"
    text = f"{len(report.outcomes)} {noun} on the {report.level} grid: {parts or 'none judged'}."
    if report.unfinished:
        why = (
            "Interrupted" if report.interrupted else f"The budget of {report.budget or 0:g} s ended"
        )
        text += f" {why} before {len(report.unfinished)} more: {', '.join(report.unfinished)}."
    return text
