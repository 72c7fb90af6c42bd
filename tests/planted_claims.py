"""Claims made for the tests of the checker, and registered ones, whole or altered."""

from __future__ import annotations

from dataclasses import replace

from proofs_check import collect
from proofs_check.claim import Claim, Sides
from proofs_check.point import Point
from proofs_check.verdict import Kind, Mark

FAST = "prop1.short"  # exact rationals and a short proof


def planted(kind=Kind.UPPER_BOUND, sides=None, points=None, **rest) -> Claim:
    """A claim made for a test."""
    return Claim(
        id=rest.pop("id", "planted"),
        title="a planted claim",
        mark=Mark.OURS,
        kind=kind,
        source="test",
        sides=sides or (lambda point: Sides(1, 2)),
        grid=lambda level: points if points is not None else [Point(d=3)],
        **rest,
    )


def registered(id: str) -> Claim:
    return collect.by_id()[id]


def altered(id: str, change, **rest) -> Claim:
    """A registered claim, without its proof, whose two sides are changed."""
    claim = registered(id)
    return replace(claim, sides=lambda p: change(claim.sides(p)), proof=None, sharp=None, **rest)
