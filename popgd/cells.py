"""From a task and weight vectors to cell problems: scaling, windows and truncation bounds.

Attention weights are shifted by the middle of their range, so exp never leaves the doubles for
spreads up to 700. Each cell gets its own window in log t: words of the cell have
S >= the least attention weight that its groups force to be present (THEORY 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _validate as check
from .cell_problem import FADED, CellProblem, Target, faded
from .languages import Cell, Task, cell_mass
from .quadrature import MAX_SPREAD, Grid, left_cut, right_cut, right_tail
from .rounding import UNIT, Rounded
from .tiers import Tiers

__all__ = ["Facts", "Frame", "Piece", "Truncation", "attention_rows", "labelled", "pieces"]


class Facts:
    """What the kernels need to know of a task, computed once.

    Attributes
    ----------
    pi : array of shape (d,)
        Symbol probabilities.
    first, second : float
        E[m] and E[m (m-1)] for the word length m.
    length_scale : float
        sqrt(E[m^2]).
    """

    def __init__(self, task: Task):
        self.task = task
        self.d = task.d
        self.law = task.words.length
        self.pi = task.words.probabilities(task.d)
        self.first = self.law.factorial_moment(1)
        self.second = self.law.factorial_moment(2)
        self.length_scale = math.sqrt(self.first + self.second)
        self._mass: dict[Cell, float] = {}
        self._layout: dict[Cell, tuple[np.ndarray, np.ndarray]] = {}

    def mass(self, cell: Cell) -> float:
        """P(the word lies in the cell)."""
        if cell not in self._mass:
            self._mass[cell] = cell_mass(cell, self.law, self.task.words, self.d)
        return self._mass[cell]

    def layout(self, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """Symbols that can occur in the cell, and those of them outside its groups."""
        if cell not in self._layout:
            grouped = sum(cell.groups, cell.absent)
            self._layout[cell] = _without(self.d, cell.absent), _without(self.d, grouped)
        return self._layout[cell]


@dataclass(frozen=True)
class Scaled:
    """Attention relative to the middle of its range, shape (B, d): `a` = exp(alpha - shift).

    `log` is -inf, and a zero, for symbols of lower tiers; `finite` says that there are none.
    """

    log: np.ndarray
    a: np.ndarray
    finite: bool

    @classmethod
    def of(cls, alpha: np.ndarray) -> Scaled:
        """Scale rows of attention weights; `a` is exp of the exact difference, rounded once."""
        finite = bool(np.isfinite(alpha).all())
        bottom, top = _least(alpha, finite)[:, None], alpha.max(axis=-1, keepdims=True)
        spread = float((top - bottom).max(initial=0.0))
        if spread > MAX_SPREAD:
            raise check.refuse(
                "alpha",
                spread,
                f"this spread of attention weights exceeds {MAX_SPREAD:g}, beyond float64",
                "take the limit alpha -> +-infinity with popgd.Tiers(tier, offset)",
            )
        shift = bottom + (top - bottom) / 2
        log = alpha - shift
        back = log + shift
        with np.errstate(invalid="ignore"):
            lost = (alpha - back) + (shift - (back - log))
        return cls(log, np.exp(log) * (1 + (lost if finite else np.nan_to_num(lost))), finite)


def _least(log: np.ndarray, finite: bool) -> np.ndarray:
    """The least finite weight of each row."""
    return (log if finite else np.where(np.isfinite(log), log, np.inf)).min(axis=-1)


@dataclass(frozen=True)
class Piece:
    """A cell of words at a set of batch rows, with the attention that matters there.

    Symbols of lower tiers have no attention: they are ignored whenever the cell's own tier is
    present. `sign` is +1 on positive words, -1 on negative, 0 for all words.
    """

    rows: np.ndarray
    scaled: Scaled
    cell: Cell
    sign: int


def labelled(task: Task) -> list[tuple[Cell, int]]:
    """The cells of positive words, then of negative words."""
    return [(c, 1) for c in task.positive] + [(c, -1) for c in task.negative]


def attention_rows(alpha: np.ndarray | Tiers, d: int) -> np.ndarray | Tiers:
    """Weights as rows: shape (B, d)."""
    if isinstance(alpha, Tiers):
        return Tiers(alpha.tier.reshape(-1, d), alpha.offset.reshape(-1, d))
    return alpha.reshape(-1, d)


def pieces(alpha: np.ndarray | Tiers, cells: list[tuple[Cell, int]]) -> Iterator[Piece]:
    """All pieces whose contributions add up to the average over the cells (THEORY 2)."""
    if not isinstance(alpha, Tiers):
        rows, scaled = np.arange(len(alpha)), Scaled.of(alpha)
        for cell, sign in cells:
            yield Piece(rows, scaled, cell, sign)
        return
    patterns, which = np.unique(alpha.tier, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == number)
        for tier in np.unique(pattern):
            higher = set(np.flatnonzero(pattern > tier).tolist())
            level = Scaled.of(np.where(pattern == tier, alpha.offset[rows], -np.inf))
            for cell, sign in cells:
                inner = _restrict(cell, higher)
                if inner is not None and not set(np.flatnonzero(pattern == tier)) <= set(
                    inner.absent
                ):
                    yield Piece(rows, level, inner, sign)


def _restrict(cell: Cell, higher: set[int]) -> Cell | None:
    """The words of the cell with no symbol of a higher tier; None if there are none."""
    groups = tuple(tuple(s for s in g if s not in higher) for g in cell.groups)
    if not all(groups):
        return None
    return Cell(groups, tuple(sorted(higher.union(cell.absent))))


def _without(d: int, symbols: tuple[int, ...]) -> np.ndarray:
    keep = np.ones(d, dtype=bool)
    keep[list(symbols)] = False
    return np.flatnonzero(keep)


@dataclass(frozen=True)
class Truncation:
    """Bounds on what a window leaves out; arrays of shape (B,).

    `left` bounds the dropped part of E[(|v| . gamma)^2] absolutely; `right` is the dropped share
    of any word's second moment.
    """

    left: np.ndarray
    right: np.ndarray


class Frame:
    """A piece with its scaled attention: gives windows, truncation bounds and cell problems.

    Attributes
    ----------
    rows : array of int, shape (B,)
        Batch rows.
    log, a : arrays of shape (B, d)
        Attention weights relative to the middle of their range, and their exp.
    top, bottom, floor : arrays of shape (B,)
        Largest and least attention weight in the cell's alphabet, and log of the least S.
    """

    def __init__(self, facts: Facts, piece: Piece):
        self.facts, self.cell, self.sign, self.rows = facts, piece.cell, piece.sign, piece.rows
        self.alphabet, self.background = facts.layout(piece.cell)
        self.log, self.a = piece.scaled.log, piece.scaled.a
        self.seen = self.log[:, self.alphabet] if self.cell.absent else self.log
        self.top = self.seen.max(axis=-1)
        self.bottom = self.floor = _least(self.seen, piece.scaled.finite)
        for group in self.cell.groups:
            self.floor = np.maximum(self.floor, self.log[:, list(group)].min(axis=-1))

    def at(self, part: slice) -> Frame:
        """The same frame for some of its rows."""
        other = object.__new__(Frame)
        other.__dict__.update(self.__dict__)
        for name in ("rows", "log", "a", "seen", "top", "bottom", "floor"):
            setattr(other, name, getattr(self, name)[part])
        return other

    def grid(
        self, h: float, tolerance: float, margin: float = 0.0, orders: tuple[int, int] = (2, 3)
    ) -> Grid:
        """The window: what it drops is about `tolerance`; `margin` moves its left end in log t.

        `orders` are the moment orders whose left and right tails are cut at the tolerance.
        """
        mass = max(self.facts.mass(self.cell), 1e-290)
        low = left_cut(tolerance * mass, orders[0]) - math.log(self.facts.length_scale) - self.top
        high = math.log(right_cut(tolerance, orders[1])) - self.floor
        return Grid.covering(h, low - margin, np.maximum(high, low), math.log(FADED) - self.bottom)

    def left_out(self, v: np.ndarray, grid: Grid) -> np.ndarray:
        """Bound on the part of E[(|v| . gamma)^2] before the first node, v of shape (B, d)."""
        v, pi = (
            (v[:, self.alphabet], self.facts.pi[self.alphabet])
            if self.cell.absent
            else (v, self.facts.pi)
        )
        w = np.abs(v) * np.exp(self.seen + grid.log_nodes()[:, :1])
        one, two = w @ pi, (w * w) @ pi
        left = (self.facts.second * one * one + self.facts.first * two) / 2
        return left * (1 + 1e-9 + 4 * len(self.alphabet) * UNIT)

    def truncation(self, v: np.ndarray, grid: Grid) -> Truncation:
        """Proven truncation bounds for second moments with weights v, shape (B, d) (THEORY 3)."""
        right = right_tail(2, np.exp(self.floor + grid.log_nodes()[:, -1]) * (1 - 16 * UNIT))
        return Truncation(self.left_out(v, grid), right * (1 + 1e-9))

    def problem(self, v: np.ndarray, grid: Grid, rounded: bool = False) -> CellProblem:
        """The cell problem for weights v, shape (B, d); `rounded` carries rounding errors along."""

        def wrap(x: Any, units: float) -> Any:
            return Rounded.relative(x, units) if rounded else x

        pi = self.facts.pi
        t = wrap(np.exp(grid.log_nodes()), 8)
        targets = []
        for g, group in enumerate(self.cell.groups):
            for s in group:
                y, mass = faded(wrap(self.a[:, s, None], 12) * t), wrap(pi[s], 4)
                occupancy, missing = mass * np.exp(-y), mass * -np.expm1(-y)
                v_s = wrap(v[:, s, None], 1)
                targets.append(Target(s, g, v_s, y, occupancy, missing, y * occupancy))
        return CellProblem(
            law=self.facts.law,
            background=self.background,
            a=wrap(self.a[:, self.background], 12),
            v=wrap(v[:, self.background], 1),
            pi=wrap(pi[self.background], 4),
            targets=targets,
            group_mass=[wrap(math.fsum(pi[list(g)]), 4) for g in self.cell.groups],
            absent_mass=wrap(math.fsum(pi[list(self.cell.absent)]), 4),
            t=t,
        )
