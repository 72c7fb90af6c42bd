"""What every claim file and every claim must look like."""

from __future__ import annotations

import ast
from types import ModuleType

from proofs_check import grids
from proofs_check.claim import Claim, Hypothesis
from proofs_check.point import Point
from proofs_check.verdict import Kind, Mark

LONGEST = 400  # lines
SOURCES = ("Paper", "THEORY", "derivation")


def check_file(module: ModuleType, source: str) -> None:
    """A docstring, a title, claims; balls by popgd.ball only, and no float decides."""
    assert module.__doc__
    assert module.__doc__.strip().endswith((".", ")"))
    assert isinstance(module.TITLE, str)
    assert module.TITLE
    assert isinstance(module.CLAIMS, tuple)
    assert module.CLAIMS
    assert all(isinstance(claim, Claim) for claim in module.CLAIMS)
    assert len(source.splitlines()) <= LONGEST
    names = {
        a.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import) for a in n.names
    }
    assert "flint" not in names, "balls come from popgd.ball"
    for word in ("float(", "math.isclose", "approx", "1e-9 "):
        assert word not in source.replace("to_float(", ""), f"{word}: no float decides"


def check_claim(claim: Claim) -> None:
    """An id, a source, hypotheses and a grid without repetitions at every level."""
    assert claim.id == claim.id.lower().replace(" ", "")
    assert claim.title
    assert isinstance(claim.mark, Mark)
    assert isinstance(claim.kind, Kind)
    assert claim.source.startswith(SOURCES)
    assert claim.hypotheses, "hypotheses are predicates, and every claim has some"
    assert all(isinstance(h, Hypothesis) for h in claim.hypotheses)
    for level in grids.LEVELS:
        points = list(claim.grid(level))
        assert points
        assert len(points) == len(set(points))
        assert all(isinstance(p, Point) for p in points)
