"""Which hypotheses are needed: drop one at a time and look just outside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .claim import Claim, Hypothesis
from .judge import CAP, Judgement, judge, within
from .point import Point
from .verdict import Verdict

__all__ = ["Dropped", "necessity"]

_AROUND = {
    "d": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20),
    "m": (1, 2, 3, 4, 5),
    "eps": ("-1", "-1e-3", "0", "1", "1.01", "1.5", "2", "4", "100"),
    "eta1": ("-1", "-1e-3", "0", "1.01*sqrt(d)", "d/2", "d", "1.5*d", "1.9*d", "2.1*d", "4*d"),
    "eta": ("-100", "-1", "-1e-3", "0"),
    "alpha_s": ("1e-2", "1", "3", "10"),
    "H": (0,),
    "C": ("0.01", "0.1", "0.2", "0.3", "0.5", "0.9"),
}
"""Values tried for a parameter, beside those of the grid."""


@dataclass(frozen=True)
class Dropped:
    """What happens without one hypothesis.

    Attributes
    ----------
    hypothesis : Hypothesis
    tried : int
        Points that violate this hypothesis and no other.
    smallest : Judgement or None
        The failing point that violates it least; None when none of them fails.
    undecided : int
        Points among them where no verdict was reached.
    """

    hypothesis: Hypothesis
    tried: int
    smallest: Judgement | None
    undecided: int


def necessity(claim: Claim, level: str = "quick", cap: int = CAP) -> Iterator[Dropped]:
    """Drop each hypothesis in turn and judge the claim where only that one is violated."""
    probes = list(claim.probes(level) if claim.probes else widen(claim.points(level)))
    for hypothesis in claim.hypotheses:
        others = [h for h in claim.hypotheses if h is not hypothesis]
        bare = replace(claim, hypotheses=())
        outside = [
            p
            for p in probes
            if _inside([hypothesis], p, cap) is False and _inside(others, p, cap) is True
        ]
        found = [_judge(bare, p, cap) for p in outside]
        failing = [j for j in found if j.verdict is Verdict.FAILS]
        smallest = min(failing, key=lambda j: hypothesis.violation(j.point), default=None)
        unclear = sum(j.verdict in (Verdict.UNDECIDED, Verdict.ERROR) for j in found)
        yield Dropped(hypothesis, len(outside), smallest, unclear)


def _inside(hypotheses: list[Hypothesis], point: Point, cap: int) -> bool | None:
    """Whether the point satisfies them; None also when they make no sense there."""
    try:
        found = within(hypotheses, point, cap)
    except Exception:
        return None
    return False if isinstance(found, str) else found


def _judge(claim: Claim, point: Point, cap: int) -> Judgement:
    """Outside its hypotheses a claim may raise anything: that is no counterexample."""
    try:
        return judge(claim, point, cap)
    except Exception as error:
        return Judgement(point, Verdict.ERROR, note=str(error))


def widen(points: Iterable[Point]) -> list[Point]:
    """The points with one parameter at a time moved to each of the values around its range."""
    seen: dict[Point, None] = {}
    for point in points:
        if point.get("d", 0) <= 1000:
            seen[point] = None
            for name in point:
                for value in _AROUND.get(name, ()):
                    seen[point.but(**{name: value})] = None
    return list(seen)
