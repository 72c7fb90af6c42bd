"""A run as data: outcomes in reporting order, with the grid, precision and versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata

from .findings import Finding, known, surprises
from .outcome import Outcome
from .verdict import Verdict

__all__ = ["Report", "exit_code", "versions"]


@dataclass(frozen=True)
class Report:
    """Everything a format needs.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Known findings first, then by statement.
    level : str
    cap : int
        Largest precision allowed, in bits.
    interrupted : bool
    """

    outcomes: tuple[Outcome, ...]
    level: str
    cap: int
    interrupted: bool = False

    @classmethod
    def of(
        cls, outcomes: Iterable[Outcome], order: Sequence[str], level: str, cap: int,
        interrupted: bool = False,
    ) -> Report:  # fmt: skip
        """Sort outcomes: known findings first, then in the given order of ids."""
        place = {id: i for i, id in enumerate(order)}
        ranked = sorted(outcomes, key=lambda o: (finding(o) is None, place[o.claim.id]))
        return cls(tuple(ranked), level, cap, interrupted)

    def groups(self) -> list[tuple[str, list[Outcome]]]:
        """Outcomes by heading: known findings, then each statement."""
        out: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            heading = "known findings" if finding(outcome) else outcome.claim.statement
            out.setdefault(heading, []).append(outcome)
        return list(out.items())


def finding(outcome: Outcome) -> Finding | None:
    """The shipped finding a failing claim belongs to."""
    return known().get(outcome.claim.id) if outcome.verdict is Verdict.FAILS else None


def exit_code(outcomes: Iterable[Outcome], strict: bool = False) -> int:
    """0 nothing unexpected; 1 an unexpected failure, error or vanished finding; 3 undecided.

    With `strict` every failing claim counts, known or not.
    """
    outcomes = list(outcomes)
    verdicts = {o.verdict for o in outcomes}
    if Verdict.ERROR in verdicts or surprises(outcomes) or (strict and Verdict.FAILS in verdicts):
        return 1
    return 3 if Verdict.UNDECIDED in verdicts else 0


def versions() -> dict[str, str]:
    """Versions of what the verdicts rest on."""
    import platform

    names = ("popgd", "python-flint", "sympy", "mpmath", "numpy", "scipy")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}
