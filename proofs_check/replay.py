"""Re-evaluating the points a JSON report recorded, without grids and without searching."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from popgd.ball import Enclosure
from popgd.errors import BadFile

from .claim import Claim
from .collect import by_id, constant
from .judge import CAP, judge
from .point import Point
from .verdict import Verdict

__all__ = ["SHIPPED", "Replayed", "read", "replay"]

SHIPPED = Path(__file__).with_name("verdicts.json")
"""The report of a run on the default grid that comes with the package."""


_REMEDY = "write a report with `proofs-check --json --output report.json`"


@dataclass(frozen=True)
class Replayed:
    """One recorded number, evaluated again.

    Attributes
    ----------
    id : str
    what : str
        "margin", or the name of the sharp constant.
    point : Point
    recorded, now : Enclosure or None
    agrees : bool
        Whether both can be the same number; for a supremum over a grid, whether the value
        at its point stays within the recorded bounds.
    """

    id: str
    what: str
    point: Point
    recorded: Enclosure | None
    now: Enclosure | None
    verdict: bool = True
    """Whether the recorded verdict can stand with what is found there now."""

    @property
    def agrees(self) -> bool:
        if not self.verdict:
            return False
        if self.recorded is None or self.now is None:
            return self.recorded is self.now
        return self.recorded.overlaps(self.now)


def read(path: str | Path) -> list[dict[str, Any]]:
    """The claims of a JSON report.

    Raises
    ------
    BadFile
        When the file is missing or is no report.
    """
    try:
        claims = json.loads(Path(path).read_text(encoding="utf-8"))["claims"]
        ids = [entry["id"] for entry in claims if entry["worst"] is None or entry["worst"]["point"]]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadFile(f"{path}: cannot be read ({reason}); {_REMEDY}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadFile(f"{path}: is no JSON report of proofs-check; {_REMEDY}.") from error
    if not ids:
        raise BadFile(f"{path}: records no claim that can be evaluated; {_REMEDY}.")
    unknown = [id for id in ids if id not in by_id()]
    if unknown:
        raise BadFile(
            f"{path}: no claim is called {unknown[0]!r}, it is from another version; {_REMEDY}."
        )
    return claims


def replay(entries: list[dict[str, Any]], cap: int = CAP) -> Iterator[Replayed]:
    """Evaluate every recorded worst and sharp point again.

    Raises
    ------
    BadFile
        When what is recorded is no point of its claim.
    """
    for entry in entries:
        claim = by_id()[entry["id"]]
        try:
            if entry.get("worst"):
                yield _margin(claim, entry["worst"], entry["verdict"], cap)
            if entry.get("sharp") and claim.sharp is not None:
                yield _constant(claim, entry["sharp"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadFile(
                f"{claim.id}: what is recorded cannot be evaluated ({error}); {_REMEDY}."
            ) from error


def _margin(claim: Claim, recorded: dict[str, Any], verdict: str, cap: int) -> Replayed:
    point = Point(**recorded["point"])
    found = judge(claim, point, cap)
    margin = _enclosure(recorded["margin"])
    stands = found.verdict in _stands(claim, verdict)
    return Replayed(claim.id, "margin", point, margin, found.margin, stands)


def _stands(claim: Claim, recorded: str) -> set[Verdict]:
    """What the worst point may be judged under a recorded verdict."""
    good = {Verdict.HOLDS, Verdict.HOLDS_TO}
    for verdict, possible in (
        (Verdict.HOLDS_TO, {Verdict.HOLDS_TO}),
        (Verdict.HOLDS, {Verdict.HOLDS}),
        (Verdict.PROVED, good if claim.proof is not None else set()),
        (Verdict.NOT_FALSIFIED, good if claim.search is not None else set()),
    ):
        if recorded.startswith(verdict.value):
            return possible
    return {verdict for verdict in Verdict if recorded.startswith(verdict.value)}


def _constant(claim: Claim, recorded: dict[str, Any]) -> Replayed:
    assert claim.sharp is not None
    point = Point(**recorded["point"])
    value = constant(claim.sharp, point)
    return Replayed(claim.id, recorded["name"], point, _enclosure(recorded["value"]), value)


def _enclosure(pair: list[str] | None) -> Enclosure | None:
    return None if pair is None else Enclosure(pair[0], pair[1])
