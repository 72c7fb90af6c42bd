"""The JSON report: bounds as decimal strings rounded outward, no times, so that runs compare."""

from __future__ import annotations

import json
from typing import Any

from popgd.ball import Enclosure

from .outcome import Outcome
from .report import Report, finding, versions
from .sharp_table import Row

__all__ = ["as_dict", "render"]


def render(report: Report) -> str:
    """The report as JSON text."""
    return json.dumps(as_dict(report), indent=2, ensure_ascii=False)


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    out: dict[str, Any] = {
        "claims": [_claim(outcome) for outcome in report.outcomes],
        "grid": report.level,
        "precision": report.cap,
        "versions": versions(),
    }
    if report.interrupted:
        out["interrupted"] = True
    if report.unfinished:
        out["unfinished"] = list(report.unfinished)
    if report.budget is not None and report.unfinished:
        out["budget"] = report.budget
    return out


def _claim(outcome: Outcome) -> dict[str, Any]:
    claim, known = outcome.claim, finding(outcome)
    entry: dict[str, Any] = {
        "id": claim.id,
        "title": claim.title,
        "mark": claim.mark.value,
        "kind": claim.kind.value,
        "verdict": outcome.text,
        "counts": outcome.counts,
        "coverage": outcome.coverage.text,
        "worst": _worst(outcome),
        "sharp": _sharp(outcome),
    }
    if outcome.rows:
        entry["found"] = [_found(row) for row in outcome.rows]
    if known is not None:
        entry["finding"] = known.consequence
    if outcome.traceback:
        entry["traceback"] = outcome.traceback
    return entry


def _worst(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.worst is None:
        return None
    margin = outcome.worst.margin
    pair = None if margin is None else _pair(margin)
    return {"point": outcome.worst.point.to_json(), "margin": pair}


def _sharp(outcome: Outcome) -> dict[str, Any] | None:
    found = outcome.sharp
    if found is None:
        return None
    return {"name": found.name, "value": _pair(found.value), "point": found.point.to_json()}


def _found(row: Row) -> dict[str, Any]:
    closed = {name: None if x is None else _pair(x) for name, x in row.closed}
    return {
        **row.at,
        "value": _pair(row.value),
        "closed forms": closed,
        "minimiser": row.words,
        "point": row.point.to_json(),
        "starts": row.starts,
        "evaluations": row.evaluations,
        "five best": list(row.best),
    }


def _pair(x: Enclosure) -> list[str]:
    return [x.lower, x.upper]
