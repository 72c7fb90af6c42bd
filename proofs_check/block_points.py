"""Points with symbols in blocks, evaluated as balls: what a search found, judged by proof.

Parameters of such a point: `sizes`, the number of symbols of each block; `alpha`, `tier` and
`beta`, one entry a block (for Proposition 2 the target's first). Where every target has its own
attention, `alpha` and `tier` are rows, one for a target in each block: the blocks, then the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np

from popgd import Geometric
from popgd import certified_multihead as heads
from popgd.ball import Ball, ball, bits, exact, lower, precision, rational_bounds, upper
from popgd.blocks import split_target
from popgd.certified_gradient import gradient
from popgd.certified_integral import risk
from popgd.certified_output import minimize_output
from popgd.certified_problem import Atom, LabelledCell, Problem

from .point import Point
from .search_problems import LazyHeads

__all__ = [
    "attention_first",
    "attention_only",
    "every_target",
    "is_uniform",
    "lazy_heads",
    "output_only",
]

HEAD_BITS = 44
"""Precision of double integrals: six digits, at a cost that a default run can bear."""


Value = TypeVar("Value")


def _kept(function: Callable[[Point], Value]) -> Callable[[Point], Value]:
    """Keep values by point and precision: claims and their constants share points."""

    @cache
    def at(point: Point, bits: int) -> Value:
        return function(point)

    @wraps(function)
    def now(point: Point) -> Value:
        return at(point, bits())

    return now


SHRINK = 1 - Fraction(1, 2**40)
"""Takes outputs that rounding left outside the ball back in, at no cost to the digits shown."""


def _occurrence(
    counts: Sequence[int], alpha: Sequence[Any], tier: Sequence[int], beta: Sequence[Any] | None
) -> Problem:
    """Occurrence of the first symbol (counts[0] = 1), the others in blocks."""
    d = sum(counts)
    out = [None] * len(counts) if beta is None else [exact(x) for x in beta]
    log: list[Any] = [a if isinstance(a, Ball) else exact(a) for a in alpha]
    atoms = tuple(
        Atom(n, Fraction(n, d), a, int(t),
             None if b is None else b - 2, b)
        for n, a, t, b in zip(counts, log, tier, out, strict=True)
    )  # fmt: skip
    cells = (LabelledCell(1, ((0,),), frozenset()), LabelledCell(-1, (), frozenset({0})))
    is_target = (True, *[False] * (len(counts) - 1))
    return Problem(Geometric(Fraction(1, d - 1)), atoms, cells, (), is_target, False)


def _blocks(point: Point) -> list[tuple[list[int], list[int]]]:
    """For a target in each block: counts with the target first, and whose weights they take."""
    sizes = [int(n) for n in point["sizes"]]
    split = [split_target(sizes, block) for block in range(len(sizes))]
    return [([1, *background], owner) for background, owner in split]


def _largest(values: Sequence[Ball]) -> Ball:
    out = values[0]
    for x in values[1:]:
        out = out.max(x)
    return out


def is_uniform(point: Point) -> bool:
    """Whether all symbols have the same attention."""
    return len(set(point["tier"])) == 1 and len({Fraction(x) for x in point["alpha"]}) == 1


@_kept
def output_only(point: Point) -> Ball:
    """max over s of min over beta of L_s at the point's attention."""
    alpha, tier = point["alpha"], point["tier"]
    return _largest(
        [
            minimize_output(
                _occurrence(counts, [alpha[b] for b in owner], [tier[b] for b in owner], None)
            ).value
            for counts, owner in _blocks(point)
        ]
    )


@_kept
def attention_only(point: Point) -> Ball:
    """L_s at the point; `sizes` are the background blocks, weights have the target's first."""
    counts = [1, *(int(n) for n in point["sizes"])]
    return risk(_occurrence(counts, point["alpha"], point["tier"], point["beta"]))


@_kept
def every_target(point: Point) -> list[Ball]:
    """L_s(alpha_s, beta) for a target s in each block, alpha_s its own attention."""
    beta, n = point["beta"], len(point["sizes"])
    values = []
    for block, (counts, owner) in enumerate(_blocks(point)):
        row = slice(block * (n + 1), (block + 1) * (n + 1))
        # the target's own weights stand last
        alpha, tier = ([point[key][row][i] for i in (n, *owner[1:])] for key in ("alpha", "tier"))
        values.append(risk(_occurrence(counts, alpha, tier, [beta[b] for b in owner])))
    return values


@_kept
def attention_first(point: Point) -> Ball:
    """max over s of the least risk after one attention step from alpha = 0 with outputs beta~."""
    beta, eta = point["beta"], ball(exact(point["eta"]))
    values = []
    for counts, owner in _blocks(point):
        zero = [0] * len(counts)
        start = _occurrence(counts, zero, zero, [beta[b] for b in owner])
        alpha = [-eta * x for x in gradient(start).alpha]
        values.append(minimize_output(_occurrence(counts, alpha, zero, None)).value)
    return _largest(values)


def lazy_heads(point: Point) -> tuple[Ball, Ball]:
    """Bounds on max over s of the least risk over ||B||_F <= d^(1/4)."""
    low, high = _lazy(point)
    return ball(low), ball(high)


@cache
def _lazy(point: Point) -> tuple[Fraction, Fraction]:
    count, blocks = int(point["H"]), len(point["sizes"])
    alpha = [point["alpha"][h * blocks : (h + 1) * blocks] for h in range(count)]
    tier = [point["tier"][h * blocks : (h + 1) * blocks] for h in range(count)]
    problem = LazyHeads([int(n) for n in point["sizes"]], count, rtol=1e-10)
    flat = np.array([[*map(_nearest, row)] for row in alpha]).ravel()
    orders = np.array(tier, dtype=int).ravel()
    estimates, _ = problem.functions(orders, flat)
    lows, highs = [Fraction(0)], []
    for block, (counts, owner) in enumerate(_blocks(point)):
        beta = problem.outputs(orders, flat, block)
        with precision(HEAD_BITS):
            made = heads.blocks(
                counts[1:],
                [[row[b] for b in owner] for row in alpha],
                _inside(beta, counts, point.d),
                [[row[b] for b in owner] for row in tier],
            )
            if block == int(np.argmax(estimates)):
                found = heads.constrained_minimum(made, f"{point.d}**(1/4)")
                lows.append(rational_bounds(lower(found))[0])
            else:  # no lower bound is needed where another target is harder
                found = heads.evaluate(made, slope=False).value
            highs.append(rational_bounds(upper(found))[1])
    return max(lows), max(highs)


def _inside(beta: np.ndarray, counts: Sequence[int], d: int) -> list[list[Fraction]]:
    """The outputs, shrunk until their Frobenius norm is at most d^(1/4) for certain."""
    exact_beta = [[Fraction(float(b)) for b in row] for row in beta]
    square = sum(n * b * b for row in exact_beta for n, b in zip(counts, row, strict=True))
    while square**2 > d:
        exact_beta = [[b * SHRINK for b in row] for row in exact_beta]
        square *= SHRINK**2
    return exact_beta


def _nearest(text: Any) -> float:
    return float(Fraction(text))
