"""A run as data: outcomes in reporting order, with the grid, precision and versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata

from .claim import Claim
from .findings import Finding, known, surprises
from .outcome import Outcome
from .verdict import Verdict

__all__ = ["FINDINGS", "Report", "exit_code", "finding", "rank", "versions"]

FINDINGS = "known findings"
_ORDER = ("model", "prop", "thm", "cor")


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
    unfinished : tuple of str
        Ids of claims without a verdict, when interrupted or out of budget.
    budget : float or None
        The cap on the run's time, in seconds, if there was one.
    """

    outcomes: tuple[Outcome, ...]
    level: str
    cap: int
    interrupted: bool = False
    unfinished: tuple[str, ...] = ()
    budget: float | None = None

    @classmethod
    def of(
        cls, outcomes: Iterable[Outcome], order: Sequence[str], level: str, cap: int,
        interrupted: bool = False, budget: float | None = None,
    ) -> Report:  # fmt: skip
        """Sort outcomes: known findings first, then by statement, in the given order of ids."""
        place = {id: i for i, id in enumerate(order)}
        ranked = sorted(
            outcomes, key=lambda o: (finding(o) is None, *rank(o.claim), place[o.claim.id])
        )
        done = {outcome.claim.id for outcome in ranked}
        unfinished = tuple(id for id in order if id not in done)
        return cls(tuple(ranked), level, cap, interrupted, unfinished, budget)

    def groups(self) -> list[tuple[str, list[Outcome]]]:
        """Outcomes by heading: known findings, then each statement."""
        out: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            heading = FINDINGS if finding(outcome) else outcome.claim.statement
            out.setdefault(heading, []).append(outcome)
        return list(out.items())


def finding(outcome: Outcome) -> Finding | None:
    """The shipped finding a failing claim belongs to."""
    return known().get(outcome.claim.id) if outcome.verdict is Verdict.FAILS else None


def rank(claim: Claim) -> tuple[int, str, bool]:
    """Orders claims as the paper does: its statements, each before its steps."""
    kind = claim.statement.rstrip("0123456789")
    place = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return place, claim.statement, claim.id != claim.statement


def exit_code(outcomes: Iterable[Outcome], strict: bool = False, complete: bool = True) -> int:
    """0 nothing unexpected; 1 an unexpected failure, error or vanished finding; 3 undecided.

    An incomplete run is undecided about what it did not reach.

    With `strict` every failing claim counts, known or not.
    """
    outcomes = list(outcomes)
    verdicts = {o.verdict for o in outcomes}
    if Verdict.ERROR in verdicts or surprises(outcomes) or (strict and Verdict.FAILS in verdicts):
        return 1
    return 3 if Verdict.UNDECIDED in verdicts or not complete else 0


def versions() -> dict[str, str]:
    """Versions of what the verdicts rest on."""
    import platform

    names = ("popgd", "python-flint", "sympy", "mpmath", "numpy", "scipy")
    return {"python": platform.python_version(), **{n: metadata.version(n) for n in names}}
