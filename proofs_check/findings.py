"""The shipped list of claims known to fail as printed, with what it means for the theorem."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from .outcome import Outcome
from .point import Point
from .verdict import Verdict

__all__ = ["Finding", "known", "surprises"]


@dataclass(frozen=True)
class Finding:
    """A claim that fails as printed.

    Attributes
    ----------
    id : str
        The claim.
    counterexample : Point
        A point at which its enclosure is negative.
    consequence : str
        One sentence: whether the theorem survives.
    """

    id: str
    counterexample: Point
    consequence: str


@cache
def known() -> dict[str, Finding]:
    """The findings file, by claim id."""
    text = resources.files("proofs_check").joinpath("findings.json").read_text(encoding="utf-8")
    return {
        entry["id"]: Finding(entry["id"], Point(**entry["counterexample"]), entry["consequence"])
        for entry in json.loads(text)
    }


def surprises(outcomes: Iterable[Outcome], findings: Any = None) -> list[str]:
    """What the findings file did not lead one to expect, one sentence each."""
    findings = known() if findings is None else findings
    out = []
    for outcome in outcomes:
        id = outcome.claim.id
        if outcome.verdict is Verdict.FAILS and id not in findings:
            out.append(f"{id} fails and is not among the known findings")
        judged = outcome.verdict not in (Verdict.ERROR, Verdict.FAILS, Verdict.UNDECIDED)
        if id in findings and judged:
            out.append(f"{id} is listed as failing but now {outcome.text}")
    return out
