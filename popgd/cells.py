"""From a task and weight vectors to cell problems: scaling, windows and truncation bounds.

Attention weights are shifted by the middle of their range, so exp never leaves the doubles for
spreads up to 700. Each cell gets its own window in log t: words of the cell have
S >= the least attention weight its groups force to be present (THEORY 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Cell, Task, cell_mass
from .moments import CellProblem, Target
from .quadrature import MAX_SPREAD, Grid, left_cut, right_cut, right_tail
from .rounding import UNIT, Rounded
from .tiers import Tiers

__all__ = ["Piece", "attention_rows", "build", "every_word", "pieces", "truncation"]

FADED = math.log(800.0)
"""log of a y at which exp(-y) is exactly zero in float64."""


@dataclass(frozen=True)
class Piece:
    """A cell of words at a set of batch rows, with the attention weights that matter there.

    `alpha` has shape (B, d): -inf marks symbols of lower tiers, which are ignored whenever the
    cell's own tier is present. `sign` is +1 on positive words, -1 on negative, 0 for all words.
    """

    rows: Any
    alpha: np.ndarray
    cell: Cell
    sign: int

    def at(self, part: slice) -> Piece:
        """The same piece for some of its rows."""
        return Piece(self.rows, self.alpha[part], self.cell, self.sign)

    def alphabet(self, d: int) -> np.ndarray:
        """Symbols that can occur in the cell."""
        return _without(d, self.cell.absent)

    def background(self, d: int) -> np.ndarray:
        """The same without the cell's groups."""
        return _without(d, self.cell.absent + sum(self.cell.groups, ()))


def _without(d: int, symbols: tuple[int, ...]) -> np.ndarray:
    keep = np.ones(d, dtype=bool)
    keep[list(symbols)] = False
    return np.flatnonzero(keep)


def every_word() -> list[tuple[Cell, int]]:
    """The cell of all words, whatever their label."""
    return [(Cell(), 0)]


def labelled(task: Task) -> list[tuple[Cell, int]]:
    """The cells of positive words, then of negative words."""
    return [(c, 1) for c in task.positive] + [(c, -1) for c in task.negative]


def attention_rows(alpha: np.ndarray | Tiers, d: int) -> np.ndarray | Tiers:
    """Weights as rows: shape (B, d)."""
    if isinstance(alpha, Tiers):
        return Tiers(alpha.tier.reshape(-1, d), alpha.offset.reshape(-1, d))
    return alpha.reshape(-1, d)


def pieces(
    task: Task, alpha: np.ndarray | Tiers, cells: list[tuple[Cell, int]] | None = None
) -> Iterator[Piece]:
    """All pieces whose contributions add up to the average over words (THEORY 2)."""
    cells = labelled(task) if cells is None else cells
    if not isinstance(alpha, Tiers):
        for cell, sign in cells:
            yield Piece(slice(None), alpha, cell, sign)
        return
    patterns, which = np.unique(alpha.tier, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == number)
        for tier in np.unique(pattern):
            higher = tuple(np.flatnonzero(pattern > tier).tolist())
            level = np.where(pattern == tier, alpha.offset[rows], -np.inf)
            for cell, sign in cells:
                inner = _restrict(cell, higher)
                if inner is not None and np.isfinite(level[0, _without(task.d, inner.absent)]).any():
                    yield Piece(rows, level, inner, sign)


def _restrict(cell: Cell, higher: tuple[int, ...]) -> Cell | None:
    """The words of the cell with no symbol of a higher tier; None if there are none."""
    groups = tuple(tuple(s for s in g if s not in higher) for g in cell.groups)
    if not all(groups) and cell.groups:
        return None
    return Cell(groups, tuple(sorted(set(cell.absent) | set(higher))))


@dataclass(frozen=True)
class Scaled:
    """Attention relative to the middle of its range: a = exp(alpha - shift), shape (B, d)."""

    log: np.ndarray
    a: np.ndarray

    @classmethod
    def of(cls, alpha: np.ndarray) -> Scaled:
        finite = np.isfinite(alpha)
        top = alpha.max(axis=-1, keepdims=True)
        bottom = np.where(finite, alpha, np.inf).min(axis=-1, keepdims=True)
        spread = float((top - bottom).max())
        if spread > MAX_SPREAD:
            raise check.refuse(
                "alpha",
                spread,
                f"this spread of attention weights exceeds {MAX_SPREAD:g}, beyond float64",
                "take the limit alpha -> +-infinity with popgd.Tiers(tier, offset)",
            )
        shift = bottom + (top - bottom) / 2
        log = alpha - shift
        # what the subtraction lost, so that exp sees the exact difference
        back = log + shift
        with np.errstate(invalid="ignore"):
            lost = (alpha - back) + (shift - (back - log))
        return cls(log, np.exp(log) * (1 + np.where(finite, lost, 0.0)))


def window(
    piece: Piece, scaled: Scaled, task: Task, h: float, tolerance: float, margin: float
) -> Grid:
    """Nodes for a piece; `margin` moves the left end by that much in log t."""
    law = task.words.length
    log = scaled.log[:, piece.alphabet(task.d)]
    top = log.max(axis=-1)
    bottom = np.where(np.isfinite(log), log, np.inf).min(axis=-1)
    floor = bottom
    for group in piece.cell.groups:
        present = scaled.log[:, list(group)].min(axis=-1)
        floor = np.maximum(floor, present)
    mass = max(cell_mass(piece.cell, law, task.words, task.d), 1e-290)
    low = left_cut(tolerance * mass) - math.log(law.root_mean_square) - top - margin
    high = math.log(right_cut(tolerance)) - floor
    return Grid.covering(h, low, np.maximum(high, low), FADED - bottom)


def build(
    piece: Piece, scaled: Scaled, v: np.ndarray, task: Task, grid: Grid, rounded: bool = False
) -> CellProblem:
    """The cell problem of a piece; `rounded` carries rounding errors along."""
    log_t = grid.log_nodes()[..., None]
    pi, a, t = task.words.probabilities(task.d), scaled.a, np.exp(log_t)
    wrap: Any = lambda x, ulps: x  # noqa: E731
    if rounded:
        wrap = Rounded.relative
    background = piece.background(task.d)
    t = wrap(t, 8)
    targets = []
    for g, group in enumerate(piece.cell.groups):
        for s in group:
            y = wrap(a[:, s, None], 12) * t[..., 0]
            weight = wrap(pi[s], 4)
            occupancy = weight * np.exp(-y)
            targets.append(
                Target(
                    s, g, wrap(v[:, s, None], 1), y, occupancy, weight * -np.expm1(-y), y * occupancy
                )
            )
    return CellProblem(
        law=task.words.length,
        background=background,
        a=wrap(a[:, None, background], 12),
        v=wrap(v[:, None, background], 1),
        pi=wrap(pi[background], 4),
        targets=targets,
        group_mass=[wrap(math.fsum(pi[list(g)]), 4) for g in piece.cell.groups],
        absent_mass=wrap(math.fsum(pi[list(piece.cell.absent)]), 4),
        t=t,
    )


@dataclass(frozen=True)
class Truncation:
    """Bounds on what a window leaves out; arrays of shape (B,).

    `left` bounds the dropped part of E[(|v| . gamma)^2] absolutely; `right` is the dropped share
    of any word's second moment.
    """

    left: np.ndarray
    right: np.ndarray


def truncation(piece: Piece, scaled: Scaled, v: np.ndarray, task: Task, grid: Grid) -> Truncation:
    """Proven truncation bounds of THEORY 3 for second moments."""
    law = task.words.length
    alphabet = piece.alphabet(task.d)
    nodes = grid.log_nodes()
    log = scaled.log[:, alphabet]
    first = np.exp(log + nodes[:, :1])
    w = np.abs(v[:, alphabet]) * first
    pi = task.words.probabilities(task.d)[alphabet]
    one, two = w @ pi, (w * w) @ pi
    left = (law.factorial_moment(2) * one * one + law.factorial_moment(1) * two) / 2
    floor = np.where(np.isfinite(log), log, np.inf).min(axis=-1)
    for group in piece.cell.groups:
        floor = np.maximum(floor, scaled.log[:, list(group)].min(axis=-1))
    right = right_tail(2, np.exp(floor + nodes[:, -1]) * (1 - 8 * UNIT))
    slack = 1 + 1e-9 + 2 * len(alphabet) * UNIT
    return Truncation(left * slack, right * slack)
