"""What a run found about one claim: counts, coverage, worst point, sharp constant."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from popgd.ball import Enclosure

from .claim import Claim
from .judge import Judgement
from .point import Point, shorten
from .sharp_table import Row, ordered
from .verdict import Verdict

__all__ = ["COUNTED", "Coverage", "Found", "Outcome", "merge"]

SHORT = 14  # characters of values listed one by one
_EXPRESSION = re.compile(r"[\w.+*/()-]*(\d|\()[\w.+*/()-]*|d")

COUNTED = (
    Verdict.PROVED,
    Verdict.HOLDS,
    Verdict.HOLDS_TO,
    Verdict.FAILS,
    Verdict.UNDECIDED,
    Verdict.OUTSIDE,
    Verdict.ERROR,
)
"""The verdicts a report counts, in the order it lists them."""


@dataclass(frozen=True)
class Found:
    """A sharp constant on a grid.

    Attributes
    ----------
    name : str
    value : Enclosure
        Of the supremum or infimum over the points.
    point : Point
        Where the bound nearest to it was found.
    """

    name: str
    value: Enclosure
    point: Point


@dataclass(frozen=True)
class Coverage:
    """The points judged, in words: a reader must not take a grid for a proof."""

    points: int
    outside: int = 0
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    proof: str = ""
    searched: str = ""

    @property
    def text(self) -> str:
        """One line."""
        parts = [f"all parameters: {self.proof}"] if self.proof else []
        inside = self.points - self.outside
        if self.points:
            axes = "; ".join(f"{name} in {{{_span(seen)}}}" for name, seen in self.values)
            outside = f", {self.outside} outside the hypotheses" if self.outside else ""
            noun = "point" if inside == 1 else "points"
            parts.append(f"{inside} {noun}{outside}" + (f": {axes}" if axes else ""))
        parts += [f"searched: {self.searched}"] if self.searched else []
        return " | ".join(parts) or "nothing was judged"

    @property
    def brief(self) -> str:
        """The same for a table: ends of ranges, no words of the proof."""
        parts = ["all parameters"] if self.proof else []
        inside = self.points - self.outside
        if inside:
            axes = "; ".join(f"{name}: {_ends(seen)}" for name, seen in self.values)
            noun = "point" if inside == 1 else "points"
            parts.append(f"{inside} {noun}" + (f", {axes}" if axes else ""))
        return " + ".join(parts) or "no point inside the hypotheses"


def _span(seen: Sequence[str]) -> str:
    if len(seen) <= 6:
        return ", ".join(seen)
    return f"{seen[0]}, {seen[1]}, ..., {seen[-1]}: {len(seen)} values"


def _ends(seen: Sequence[str]) -> str:
    short = [shorten(x) for x in seen]
    if len(", ".join(short)) <= SHORT:
        return ", ".join(short)
    if all(_EXPRESSION.fullmatch(x) for x in seen):
        return f"{len(seen)} values {short[0]}..{short[-1]}"
    return f"{len(seen)} cases"


@dataclass
class Outcome:
    """Everything a report says about one claim.

    `judged` is every point in grid order, `constants` the sharp constant at each of its points,
    `rows` what was found at each dimension by the searches for it.
    """

    claim: Claim
    verdict: Verdict
    counts: dict[str, int]
    coverage: Coverage
    worst: Judgement | None = None
    sharp: Found | None = None
    traceback: str = ""
    seconds: float = 0.0
    judged: list[Judgement] = field(default_factory=list)
    constants: list[tuple[Point, Enclosure]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The verdict as printed."""
        if self.verdict is Verdict.HOLDS_TO and self.worst is not None:
            return f"holds to 10^-{self.worst.decimals}"
        if self.verdict is Verdict.NOT_FALSIFIED:
            judged = sum(self.counts[v.key] for v in (Verdict.HOLDS, Verdict.HOLDS_TO))
            return f"not falsified ({judged} points)"
        return self.verdict.value


@dataclass
class Share:
    """The result of one share of a claim's points: plain and picklable.

    Attributes
    ----------
    judged : list of Judgement
    sharp : list of (Point, Enclosure)
    rows : list of Row
    proof : str or None
        What was proved; None when this share held no proof.
    undecided_proof : str
        Why a proof did not go through.
    traceback : str
    seconds : float
    """

    judged: list[Judgement] = field(default_factory=list)
    sharp: list[tuple[Point, Enclosure]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    proof: str | None = None
    undecided_proof: str = ""
    traceback: str = ""
    seconds: float = 0.0


def merge(claim: Claim, shares: Iterable[Share]) -> Outcome:
    """The outcome of a claim from the shares of its points."""
    shares = list(shares)
    judged = sorted((j for share in shares for j in share.judged), key=lambda j: j.index)
    proofs = [share.proof for share in shares if share.proof]
    counts = Counter(j.verdict for j in judged)
    counts[Verdict.PROVED] += len(proofs)
    counts[Verdict.UNDECIDED] += sum(bool(share.undecided_proof) for share in shares)
    constants = [pair for share in shares for pair in share.sharp]
    tracebacks = [share.traceback for share in shares if share.traceback]
    counts[Verdict.ERROR] += len(tracebacks)
    return Outcome(
        claim=claim,
        verdict=_overall(claim, counts),
        counts={v.key: counts[v] for v in COUNTED},
        coverage=_coverage(judged, proofs[0] if proofs else "", claim.searched),
        worst=_worst(judged),
        sharp=_sharp(claim, constants),
        traceback="\n".join(tracebacks),
        seconds=sum(share.seconds for share in shares),
        judged=judged,
        constants=constants,
        rows=ordered(row for share in shares for row in share.rows),
    )


def _overall(claim: Claim, counts: Counter[Verdict]) -> Verdict:
    """The worst verdict that occurred; a proof counts only if no point speaks against it."""
    for bad in (Verdict.ERROR, Verdict.FAILS, Verdict.UNDECIDED):
        if counts[bad]:
            return bad
    inside = counts[Verdict.HOLDS] + counts[Verdict.HOLDS_TO]
    # hypotheses that no point of the grid meets may be impossible: then a proof says nothing
    if counts[Verdict.PROVED] and (inside or not counts[Verdict.OUTSIDE]):
        return Verdict.PROVED
    if not inside:
        return Verdict.OUTSIDE
    if claim.search is not None:
        return Verdict.NOT_FALSIFIED
    return Verdict.HOLDS_TO if counts[Verdict.HOLDS_TO] else Verdict.HOLDS


def _coverage(judged: Sequence[Judgement], proof: str, searched: str) -> Coverage:
    values: dict[str, dict[str, None]] = {}
    for j in judged:
        if j.verdict is not Verdict.OUTSIDE:
            for name, value in j.point.items():
                if not isinstance(value, tuple):
                    values.setdefault(name, {})[str(value)] = None
    outside = sum(j.verdict is Verdict.OUTSIDE for j in judged)
    axes = tuple((name, tuple(sorted(seen, key=_natural))) for name, seen in values.items())
    return Coverage(len(judged), outside, axes, proof, searched)


def _natural(text: str) -> tuple[int, float]:
    """Numbers by size, then expressions and words in the order of the grid."""
    try:
        return (0, float(text))
    except ValueError:
        return (1, 0.0)


def _worst(judged: Sequence[Judgement]) -> Judgement | None:
    """The point with the smallest margin (identities: the largest difference).

    Points of the verdict that matters most come first: a failing one before an undecided one.
    """
    for verdicts in ((Verdict.FAILS,), (Verdict.UNDECIDED,), (Verdict.HOLDS_TO, Verdict.HOLDS)):
        some = [j for j in judged if j.verdict in verdicts]
        if some:
            return max(some, key=_badness)
    return None


def _badness(j: Judgement) -> Fraction | float:
    return math.inf if j.margin is None else j.badness


def _sharp(claim: Claim, found: list[tuple[Point, Enclosure]]) -> Found | None:
    """Supremum (or infimum) over points: between the best lower and the best upper bounds."""
    if claim.sharp is None or not found:
        return None
    pick = max if claim.sharp.largest else min
    low = pick(found, key=lambda pair: pair[1].bounds[0])
    high = pick(found, key=lambda pair: pair[1].bounds[1])
    value = Enclosure(low[1].lower, high[1].upper)
    return Found(claim.sharp.name, value, (low if claim.sharp.largest else high)[0])
