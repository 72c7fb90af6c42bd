"""The searches behind the claims about all weights: efforts, layouts, and points to judge.

A hunt returns the best point found, rounded to short decimals so that it can be stored, read and
judged exactly. Results are kept for the life of the process: several claims share a hunt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from . import search_starts as starts
from .search import Candidate, Found, Log, Problem, search
from .search_problems import (
    AttentionAt,
    AttentionFirst,
    AttentionOnly,
    EveryTarget,
    LazyHeads,
    OutputOnly,
)

__all__ = [
    "Hunt",
    "attention_first",
    "attention_only",
    "attention_point",
    "every_target",
    "lazy_heads",
    "output_only",
    "output_point",
    "step_point",
    "target_point",
]

EFFORT = {"quick": 25, "default": 60, "full": 300}
RANDOM = {"quick": 0, "default": 1, "full": 4}
ALONE = {"quick": 2, "default": 5, "full": 10}
"""Up to this d, every symbol is also a block of its own."""

FEW = 3
"""Most blocks of a layout over which outputs and every target's attention are searched."""

DECIMALS = 6


@dataclass(frozen=True)
class Hunt:
    """What the searches over several layouts found.

    Attributes
    ----------
    sizes : tuple of int
        Layout of the best point.
    best : Found
    logs : tuple of (sizes, Log)
    """

    sizes: tuple[int, ...]
    best: Found
    logs: tuple[tuple[tuple[int, ...], Log], ...]

    @property
    def starts(self) -> int:
        """Starts tried."""
        return sum(log.starts for _, log in self.logs)

    @property
    def evaluations(self) -> int:
        """Evaluations spent."""
        return sum(log.evaluations for _, log in self.logs)

    def five(self) -> list[tuple[float, tuple[int, ...], Found]]:
        """The five best points over all layouts."""
        every = [(f.value, sizes, f) for sizes, log in self.logs for f in log.best]
        return sorted(every, key=lambda entry: entry[0])[:5]


def _hunt(layouts: Iterable[Sequence[int]], problem: Any, candidates: Any, effort: int) -> Hunt:
    logs = []
    for sizes in dict.fromkeys(tuple(s) for s in layouts):
        made: Problem = problem(sizes)
        logs.append((sizes, search(made, candidates(sizes), effort)))
    return _best(logs)


def _best(logs: list[tuple[tuple[int, ...], Log]]) -> Hunt:
    found = [(log.best[0].value, sizes, log.best[0]) for sizes, log in logs if log.best]
    # of equally good points, the one with the fewest blocks
    least = min(value for value, _, _ in found)
    near = [entry for entry in found if entry[0] <= least + 1e-9]
    _, sizes, best = min(near, key=lambda entry: len(entry[1]))
    return Hunt(sizes, best, tuple(logs))


def _valid(d: int, blocks: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    return [tuple(b) for b in blocks if min(b) > 0 and sum(b) == d]


def _partitions(d: int, level: str) -> list[tuple[int, ...]]:
    """Layouts of all d symbols, small blocks first."""
    out: list[Sequence[int]] = [(1, d - 1), (d // 2, d - d // 2)]
    if level != "quick":
        out += [(1, 1, d - 2), (1, d // 2, d - 1 - d // 2)]
    if level == "full":
        out += [
            (2, d - 2),
            (d // 4, d - d // 4),
            (d - 1, 1),
            (1, 2, d - 3),
            (1, d // 10, d - 1 - d // 10),
        ]
        out += [(d // 3, d // 3, d - 2 * (d // 3)), (1, 1, 1, d - 3), (1, 1, 1, 1, d - 4)]
    if d <= ALONE[level]:
        out.append((1,) * d)
    return _valid(d, out)


def decimals(x: Iterable[float]) -> tuple[str, ...]:
    """Short exact decimals."""
    out = []
    for value in x:
        text = f"{value:.{DECIMALS}f}".rstrip("0").rstrip(".")
        out.append("0" if text in ("-0", "") else text)
    return tuple(out)


def level_offsets(tier: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Offsets shifted so that the least of each tier is 0."""
    out = x.copy()
    for t in np.unique(tier):
        out[tier == t] -= out[tier == t].min()
    return out


@cache
def output_only(d: int, level: str) -> Hunt:
    """Proposition 3: attention that serves every target."""
    return _hunt(
        _partitions(d, level),
        OutputOnly,
        lambda sizes: starts.attention(len(sizes), random=RANDOM[level]),
        EFFORT[level],
    )


@cache
def attention_only(d: int, level: str) -> Hunt:
    """Proposition 2: outputs and attention, the target's output the least."""
    rest = d - 1
    layouts: list[Sequence[int]] = [(rest,), (1, rest - 1), (1, 1, rest - 2)]
    if level != "quick":
        layouts += [(1, 1, 2, rest - 4), (1,) * 7 + (rest - 7,)]
    if level == "full":
        layouts += [(1,) * 11 + (rest - 11,), (rest // 4, rest - rest // 4)]
    if d <= ALONE[level]:
        layouts.append((1,) * rest)
    found = _hunt(
        _valid(rest, layouts),
        AttentionOnly,
        lambda sizes: starts.attention_and_output(len(sizes), random=RANDOM[level]),
        2 * EFFORT[level],
    )
    # with many blocks the first search may end before it has converged
    again = search(AttentionOnly(found.sizes), [found.best.point], 2 * EFFORT[level])
    return _best([*found.logs, (found.sizes, again)])


@cache
def every_target(d: int, level: str) -> Hunt:
    """Proposition 2: outputs for which the hardest target is easiest, an attention for each.

    Starts from the outputs that `attention_only` finds, with attention searched for at them for
    each target; above `quick`, also from structured outputs over the layouts with few blocks.
    """
    first = attention_only(d, level)
    sizes: tuple[int, ...] = (1, *first.sizes)
    beta = _outputs(first)
    attentions = [_attention_for(sizes, block, beta, level) for block in range(len(sizes))]
    zero = np.zeros(len(sizes), dtype=int)
    start = Candidate(
        "worst outputs at s = argmin",
        np.concatenate([beta, *(log.best[0].point.x for log in attentions)]),
        np.concatenate([zero, *(log.best[0].point.tier for log in attentions)]),
    )
    logs: list[tuple[tuple[int, ...], Log]] = [
        (sizes, search(EveryTarget(sizes), [start], EFFORT[level]))
    ]
    logs[0][1].evaluations += sum(log.evaluations for log in attentions)
    for layout in _partitions(d, level) if level != "quick" else ():
        if len(layout) <= FEW:
            candidates = starts.outputs_and_attention(len(layout))
            logs.append((layout, search(EveryTarget(layout), candidates, EFFORT[level])))
    return _best(logs)


def _attention_for(sizes: tuple[int, ...], block: int, beta: np.ndarray, level: str) -> Log:
    return search(AttentionAt(sizes, block, beta), starts.attention_at(beta, block), EFFORT[level])


def _outputs(hunt: Hunt) -> np.ndarray:
    """Outputs of target and blocks, of a point of `attention_only`."""
    own, *more = hunt.best.point.x[len(hunt.sizes) + 1 :]
    return np.array([own, *(own + x for x in more)])


@cache
def attention_first(d: int, level: str) -> Hunt:
    """Theorem 1: outputs and step size before the attention step."""
    layouts = [
        s for s in _partitions(d, level) if len(s) < 3 or level == "full" or d <= ALONE[level]
    ]
    found = _hunt(
        layouts,
        AttentionFirst,
        lambda sizes: starts.output_and_step(len(sizes), random=RANDOM[level]),
        EFFORT[level],
    )
    return replace(found, best=_moderate(AttentionFirst(found.sizes), found.best))


def _moderate(problem: AttentionFirst, found: Found) -> Found:
    """The same with the smallest step, by halves, that does as well to ten digits."""
    x = found.point.x
    while x[-1] > -6:
        trial = np.append(x[:-1], x[-1] - math.log(2))
        if problem.functions(found.point.tier, trial)[0].max() > found.value * (1 + 1e-10):
            break
        x = trial
    return Found(found.value, replace(found.point, x=x))


@cache
def lazy_heads(d: int, heads: int, level: str) -> Hunt:
    """Proposition 4: attention of several heads, outputs in a ball.

    One head is searched like output-only training: all nested limits of up to four blocks.
    """
    if heads == 1:
        nested = [(1, d - 1)] if level == "quick" else [(1, 1, d - 2), (1, 1, 1, d - 3)]
        return _hunt(
            _valid(d, [*_partitions(d, level), *nested]),
            lambda sizes: LazyHeads(sizes, 1),
            lambda sizes: starts.nested(len(sizes)),
            {"quick": 3, "default": 6, "full": 60}[level],
        )
    layouts: list[Sequence[int]] = [(1, d - 1)]
    if level != "quick":
        layouts += [(d // 2, d - d // 2)] if heads < 3 else [(1, 1, d - 2)]
    if level == "full":
        layouts += [(1, 1, d - 2), (d // 3, d // 3, d - 2 * (d // 3))]
    return _hunt(
        _valid(d, layouts),
        lambda sizes: LazyHeads(sizes, heads),
        lambda sizes: starts.heads(
            heads, len(sizes), random=RANDOM[level] if level == "full" else 0
        ),
        {"quick": 3, "default": 7 - heads, "full": 60}[level],
    )


def attention_point(hunt: Hunt) -> dict[str, Any]:
    """The best attention as parameters of a point: sizes, alpha, tier."""
    point = hunt.best.point
    heads = len(point.x) // len(hunt.sizes)
    tier, x = point.tier.reshape(heads, -1), point.x.reshape(heads, -1)
    rows = [level_offsets(t, row) for t, row in zip(tier, x, strict=True)]
    flat = [value for row in rows for value in row]
    if heads == 1 and len(set(tier[0])) == 1 and max(flat) < 1e-2:
        # the search has come back to equal weights
        flat = [0.0] * len(flat)
    return {"sizes": hunt.sizes, "alpha": decimals(flat), "tier": tuple(tier.ravel().tolist())}


def output_point(hunt: Hunt) -> dict[str, Any]:
    """The best of `attention_only`: sizes, and alpha, tier, beta with the target's first."""
    point = hunt.best.point
    n = len(point.x) // 2
    beta = [0.0, *point.x[n + 1 :]]
    shift = round(float(point.x[n]), DECIMALS)
    tier = point.tier[:n]
    return {
        "sizes": hunt.sizes,
        "alpha": decimals(level_offsets(tier, point.x[:n])),
        "tier": tuple(tier.tolist()),
        "beta": decimals(round(float(b), DECIMALS) + shift for b in beta),
    }


def target_point(hunt: Hunt) -> dict[str, Any]:
    """The best of `every_target`: sizes, beta by block, and a row of alpha and tier a target."""
    x, g = hunt.best.point.x, len(hunt.sizes)
    beta = x[:g].copy()
    beta[beta < beta.min() + 1e-4] = beta.min()  # one least output, where the search means one
    tier = hunt.best.point.tier[g:].reshape(g, g + 1)
    alpha = np.array(
        [level_offsets(t, row) for t, row in zip(tier, x[g:].reshape(g, g + 1), strict=True)]
    )
    return {
        "sizes": hunt.sizes,
        "beta": decimals(beta),
        "alpha": decimals(alpha.ravel()),
        "tier": tuple(tier.ravel().tolist()),
    }


def step_point(hunt: Hunt) -> dict[str, Any]:
    """The best of `attention_first`: sizes, beta, eta."""
    x = hunt.best.point.x
    beta = x[:-1]
    if np.ptp(beta) < 1e-2:
        # the search has come back to equal outputs, which leave attention uniform
        beta = np.full(len(beta), beta.mean())
    return {"sizes": hunt.sizes, "beta": decimals(beta), "eta": decimals([math.exp(x[-1])])[0]}
