"""Two heads on one cell of words: moments across heads as double integrals (THEORY 2).

With z_j = exp(-a_j t1 - a'_j t2), a and a' the attention of the two heads, E[gamma_i gamma'_j]
is an integral over log t1 and log t2. Since z factors, every sum over symbols at all pairs of
nodes is one matrix product. These are kernels: arguments are trusted, and plain arrays may be
replaced by `Rounded` ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .cell_problem import faded
from .cells import Frame
from .differences import Differences, Occupancy
from .quadrature import Grid
from .rounding import Rounded

__all__ = ["HeadPair", "Side", "pairs"]

NODES = 2**17
"""Pairs of nodes handled at once."""

ENTRIES = 2**20
"""Pairs of nodes x symbols expanded at once."""


def _turn(x: Any) -> Any:
    return Rounded(x.value.T, x.error.T) if isinstance(x, Rounded) else x.T


@dataclass
class Side:
    """One head at its nodes; lists over classes of symbols, arrays of shape (K, symbols).

    The first class holds the symbols outside all groups, the others one group each.

    Attributes
    ----------
    y, decay, missing : list of arrays
        a t, e^(-a t) and 1 - e^(-a t).
    v : list of arrays of shape (symbols,)
        Residual weights of this head.
    """

    y: list[Any]
    decay: list[Any]
    missing: list[Any]
    v: list[Any]

    @classmethod
    def at(cls, frame: Frame, grid: Grid, v: np.ndarray, rounded: bool = False) -> Side:
        """The head of `frame` at the nodes of `grid`, with residual weights v of shape (d,)."""

        def wrap(x: Any, units: float) -> Any:
            return Rounded.relative(x, units) if rounded else x

        t = wrap(np.exp(grid.log_nodes()[0])[:, None], 8)
        classes = [frame.background, *(np.array(g) for g in frame.cell.groups)]
        y = [faded(t * wrap(frame.a[0, c], 12)) for c in classes]
        return cls(
            y,
            [np.exp(-x) for x in y],
            [-np.expm1(-x) for x in y],
            [wrap(v[c], 1) for c in classes],
        )

    def rows(self, part: slice) -> Side:
        """The same at some of the nodes."""
        y, decay, missing = ([x[part] for x in kind] for kind in (self.y, self.decay, self.missing))
        return Side(y, decay, missing, self.v)

    @property
    def count(self) -> int:
        """Number of nodes."""
        return self.y[0].shape[0]


@dataclass
class HeadPair:
    """Both heads on one cell: value and gradients of E[(v . gamma)(v' . gamma') 1_cell].

    Attributes
    ----------
    left, right : Side
    frame : Frame
        Gives the law, the cell and the symbol probabilities.
    rounded : bool
        Whether rounding errors are carried along.
    """

    left: Side
    right: Side
    frame: Frame
    rounded: bool = False

    def swapped(self) -> HeadPair:
        """The heads exchanged."""
        return HeadPair(self.right, self.left, self.frame, self.rounded)

    @cached_property
    def symbols(self) -> list[np.ndarray]:
        """Symbols of each class."""
        return [self.frame.background, *(np.array(g) for g in self.frame.cell.groups)]

    @cached_property
    def _pi(self) -> list[Any]:
        pi = [self.frame.facts.pi[s] for s in self.symbols]
        return [Rounded.relative(x, 4) for x in pi] if self.rounded else pi

    @property
    def _groups(self) -> range:
        return range(len(self.symbols) - 1)

    def _affine(self, left: list[Any], right: list[Any]) -> Differences:
        """Sum over symbols of left[k1] right[k2], as differences of shape (K1, K2)."""
        parts = [x @ _turn(y) for x, y in zip(left, right, strict=True)]
        return Differences.affine(parts[0], parts[1:])

    @cached_property
    def _light(self) -> list[Any]:
        """pi e^(-y) of the left head."""
        return [e * p for e, p in zip(self.left.decay, self._pi, strict=True)]

    @cached_property
    def _heavy(self) -> list[Any]:
        """pi y e^(-y) of the left head."""
        return [y * x for y, x in zip(self.left.y, self._light, strict=True)]

    @cached_property
    def _right_heavy(self) -> list[Any]:
        """y e^(-y) of the right head."""
        return [y * e for y, e in zip(self.right.y, self.right.decay, strict=True)]

    @cached_property
    def phi(self) -> list[Differences]:
        """Phi', Phi'', Phi''' at all pairs of nodes."""
        present = self._affine(self._light, self.right.decay)
        gone = [
            (x * p).sum(axis=-1)[:, None] + light @ _turn(m)
            for x, p, light, m in zip(
                self.left.missing, self._pi, self._light, self.right.missing, strict=True
            )
        ]
        pi, absent = self.frame.facts.pi, list(self.frame.cell.absent)
        mass = [self._constant(pi[s].sum()) for s in self.symbols]
        missing = []
        for mask in range(2 ** len(self._groups)):
            total = gone[0] + self._constant(pi[absent].sum())
            for g in self._groups:
                total = total + (gone[g + 1] if mask >> g & 1 else mass[g + 1])
            missing.append(total)
        steps = tuple(present.parts[1 << g] for g in self._groups)
        at = Occupancy(present.parts[0], steps, tuple(missing))
        phi = self.frame.facts.law.derivatives(at, 3)
        if self.rounded:
            phi = [Differences([x.inflate(24) for x in f.parts]) for f in phi]
        return phi

    def _constant(self, x: float) -> Any:
        return Rounded.relative(x, 4 + self.frame.facts.d) if self.rounded else x

    @cached_property
    def left_sum(self) -> Differences:
        """Sum of v_i Y_i over the left head."""
        return self._affine(_times(self._heavy, self.left.v), self.right.decay)

    @cached_property
    def right_sum(self) -> Differences:
        """Sum of v'_j Y'_j over the right head."""
        return self._affine(self._light, _times(self._right_heavy, self.right.v))

    def value(self) -> Any:
        """Sum over nodes of Phi'' A A' + Phi' B; times both steps it is the moment."""
        both = self._affine(
            _times(self._heavy, self.left.v), _times(self._right_heavy, self.right.v)
        )
        integrand = (self.phi[1] * self.left_sum * self.right_sum + self.phi[0] * both).top
        return integrand.sum(axis=-1).sum(axis=-1)

    def output_gradient(self) -> np.ndarray:
        """Node sums of E[(v' . gamma') gamma_i 1_cell] for the left head, shape (d,)."""
        out = np.zeros(self.frame.facts.d)
        flat = self.phi[1] * self.right_sum
        heavy, after = self._heavy, self._right_heavy
        for c, symbols in enumerate(self.symbols):
            known = 1 << (c - 1) if c else 0
            x = heavy[c].T
            out[symbols] = ((x @ flat.top_given(known)) * self.right.decay[c].T).sum(axis=-1)
            own = ((x @ self.phi[0].top_given(known)) * after[c].T).sum(axis=-1)
            out[symbols] += self.right.v[c] * own
        return out

    def attention_gradient(self) -> np.ndarray:
        """Node sums of E[(v' . gamma') gamma_i (v_i - v . gamma) 1_cell] for the left head.

        The integrand of a pair i, j of symbols carries the factor v_i - v_j, so that the
        contribution of i itself, by far the largest, never appears (THEORY 2).
        """
        out = np.zeros(self.frame.facts.d)
        bent = self.phi[2] * self.right_sum
        for c, symbols in enumerate(self.symbols):
            for b in range(len(self.symbols)):
                known = sum(1 << (g - 1) for g in {b, c} if g)
                table = self._triple(c, b, bent.top_given(known), self.phi[1].top_given(known))
                out[symbols] += _apart(self.left.v[c], self.left.v[b], table)
        return out

    def _triple(self, c: int, b: int, bent: np.ndarray, curve: np.ndarray) -> np.ndarray:
        """Sum over nodes of Y_i Y_j [Phi''' A' + Phi'' (v'_i y'_i + v'_j y'_j)]."""
        table = np.zeros((len(self.symbols[c]), len(self.symbols[b])))
        if not table.size:
            return table
        width = max(len(self.symbols[c]), len(self.symbols[b])) * self.right.count
        size = max(1, ENTRIES // max(width, 1))
        for start in range(0, self.left.count, size):
            rows = slice(start, start + size)
            x, y = self._spread(c, rows), self._spread(b, rows)
            table += x.T @ (bent[rows].reshape(-1, 1) * y)
            weight = curve[rows].reshape(-1, 1)
            count = len(x) // self.right.count
            after = [np.tile(self.right.v[k] * self.right.y[k], (count, 1)) for k in (c, b)]
            table += (x * after[0]).T @ (weight * y) + x.T @ (weight * y * after[1])
        return table

    def _spread(self, c: int, rows: slice) -> np.ndarray:
        """Y of one class at pairs of nodes, shape (pairs, symbols)."""
        heavy = self._heavy[c][rows]
        return (heavy[:, None, :] * self.right.decay[c]).reshape(-1, heavy.shape[-1])

    def gram(self) -> np.ndarray:
        """Node sums of E[gamma_i gamma'_j 1_cell], shape (d, d)."""
        d = self.frame.facts.d
        out, single = np.zeros((d, d)), np.zeros(d)
        for c, symbols in enumerate(self.symbols):
            for b, others in enumerate(self.symbols):
                known = sum(1 << (g - 1) for g in {b, c} if g)
                out[np.ix_(symbols, others)] = self._double(c, b, self.phi[1].top_given(known))
            known = 1 << (c - 1) if c else 0
            own = (self._heavy[c].T @ self.phi[0].top_given(known)) * self._right_heavy[c].T
            single[symbols] = own.sum(axis=-1)
        out[np.diag_indices(d)] += single
        return out

    def _double(self, c: int, b: int, weight: np.ndarray) -> np.ndarray:
        table = np.zeros((len(self.symbols[c]), len(self.symbols[b])))
        if not table.size:
            return table
        width = max(table.shape) * self.right.count
        size = max(1, ENTRIES // max(width, 1))
        for start in range(0, self.left.count, size):
            rows = slice(start, start + size)
            light = self._light[b][rows]
            y = (light[:, None, :] * self._right_heavy[b]).reshape(-1, light.shape[-1])
            table += self._spread(c, rows).T @ (weight[rows].reshape(-1, 1) * y)
        return table


def _times(arrays: list[Any], v: list[Any]) -> list[Any]:
    return [x * w for x, w in zip(arrays, v, strict=True)]


def _apart(v: np.ndarray, w: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Sum over j of (v_i - w_j) table_ij."""
    return ((v[:, None] - w) * table).sum(axis=1)


def pairs(pair: HeadPair) -> Iterator[HeadPair]:
    """The pair cut along the left head's nodes, so that each part fits in memory."""
    size = max(1, NODES // pair.right.count)
    for start in range(0, pair.left.count, size):
        left = pair.left.rows(slice(start, start + size))
        yield HeadPair(left, pair.right, pair.frame, pair.rounded)
