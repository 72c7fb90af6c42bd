"""The integral route: sums of cell moments over batches of weights, with their error bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .cells import Piece, Scaled, build, pieces, truncation, window
from .errors import PrecisionExhausted
from .languages import Task
from .moments import cell_gradient, cell_value
from .quadrature import Grid, discretisation, step_for

__all__ = ["Inputs", "IntegralRoute"]

ENTRIES = 2**16
"""Problems x nodes x symbols handled at once, so that a chunk of the batch stays in cache."""

SHARE = 0.1
"""Part of rtol allowed to each of discretisation, left and right truncation."""

ATTEMPTS = 6
"""Windows tried before giving up; each extends the left end by what the last one lacked."""


class Inputs(NamedTuple):
    """Checked weights as rows: alpha (B, d) or Tiers, beta (B, d), residual (B, targets) or None."""

    alpha: Any
    beta: np.ndarray
    residual: np.ndarray | None


class _Chunk(NamedTuple):
    """Rows of one piece that are handled together."""

    rows: np.ndarray
    piece: Piece
    scaled: Scaled
    v: np.ndarray


class IntegralRoute:
    """Risk, gradients and error bound by the trapezoidal rule (THEORY 2, 3).

    Parameters
    ----------
    task : Task
    rtol : float
        Relative accuracy of each cell's second moment, rounding apart.
    """

    def __init__(self, task: Task, rtol: float):
        self.task = task
        self.rtol = rtol
        self.tolerance = SHARE * rtol
        self.h = step_for(self.tolerance)

    def split(self, inputs: Inputs) -> np.ndarray:
        """Risk on positive and on negative words, shape (2, B)."""
        totals = np.zeros((2, len(inputs.beta)))
        for chunk in self._chunks(inputs):
            _, value, _ = self._settle(chunk, gradient=False)
            totals[0 if chunk.piece.sign > 0 else 1, chunk.rows] += value / 2
        return totals

    def value_and_gradient(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Risk (B,), dL/dalpha (B, d), dL/dbeta (B, d)."""
        total = np.zeros(len(inputs.beta))
        alpha, beta = np.zeros((2, len(inputs.beta), self.task.d))
        for chunk in self._chunks(inputs):
            _, value, parts = self._settle(chunk, gradient=True)
            total[chunk.rows] += value / 2
            for symbols, part_alpha, part_beta in parts:
                where = np.ix_(chunk.rows, symbols)
                alpha[where] += part_alpha
                beta[where] += part_beta
        return total, alpha, beta

    def error_bound(self, inputs: Inputs) -> np.ndarray:
        """Proven bound on |value - truth|, shape (B,)."""
        bound = np.zeros(len(inputs.beta))
        for chunk in self._chunks(inputs):
            bound[chunk.rows] += self._bound(chunk) / 2
        # the bound itself is computed in floating point
        return bound * (1 + 1e-6)

    def nodes(self, inputs: Inputs) -> list[int]:
        """Nodes used by each piece (for the first chunk of rows), in the order of the cells."""
        return [self._settle(chunk, gradient=False)[0].count for chunk in self._chunks(inputs)]

    def _pieces(self, inputs: Inputs) -> Iterator[tuple[Piece, np.ndarray]]:
        """Each piece with its residual weights v: f - y = v . gamma on its words."""
        targets = list(self.task.targets)
        for piece in pieces(self.task, inputs.alpha):
            v = inputs.beta[piece.rows] - (2.0 if piece.sign > 0 else 0.0)
            if inputs.residual is not None:
                given = inputs.residual[piece.rows]
                v[:, targets] = given if piece.sign > 0 else 2.0 + given
            yield piece, v

    def _chunks(self, inputs: Inputs) -> Iterator[_Chunk]:
        for piece, v in self._pieces(inputs):
            rows = np.arange(len(v)) if isinstance(piece.rows, slice) else piece.rows
            start = 0
            while start < len(rows):
                first = piece.at(slice(start, start + 1))
                nodes = self._window(first, Scaled.of(first.alpha), 0.0).count
                stop = start + max(1, ENTRIES // (nodes * self.task.d))
                part = piece.at(slice(start, stop))
                yield _Chunk(rows[start:stop], part, Scaled.of(part.alpha), v[start:stop])
                start = stop

    def _window(self, piece: Piece, scaled: Scaled, margin: float) -> Grid:
        return window(piece, scaled, self.task, self.h, self.tolerance, margin)

    def _settle(self, chunk: _Chunk, gradient: bool) -> tuple[Grid, np.ndarray, list[Any]]:
        """Integrate, moving the left end out until what it drops is below the tolerance."""
        margin = 0.0
        for _ in range(ATTEMPTS):
            grid = self._window(chunk.piece, chunk.scaled, margin)
            value, parts = self._integrate(chunk, grid, gradient)
            left = truncation(chunk.piece, chunk.scaled, chunk.v, self.task, grid).left
            allowed = self.rtol * value
            short = left > np.maximum(allowed, 1e-307)
            if not short.any():
                return grid, value, parts
            margin += 0.5 * math.log((left[short] / np.maximum(allowed[short], 1e-307)).max()) + self.h
        raise PrecisionExhausted(
            "alpha, beta: the risk is too small beside its terms for float64; "
            "use popgd.certified.risk."
        )

    def _integrate(self, chunk: _Chunk, grid: Grid, gradient: bool) -> tuple[np.ndarray, list[Any]]:
        problem = build(chunk.piece, chunk.scaled, chunk.v, self.task, grid)
        with np.errstate(under="ignore"):
            if not gradient:
                return grid.h * cell_value(problem), []
            value, parts = cell_gradient(problem)
        return grid.h * value, [(s, grid.h * a, grid.h * b) for s, a, b in parts]

    def _bound(self, chunk: _Chunk) -> np.ndarray:
        """Bound on the error of one cell's E[(v . gamma)^2]."""
        grid, _, _ = self._settle(chunk, gradient=False)
        cut = truncation(chunk.piece, chunk.scaled, chunk.v, self.task, grid)

        def moment(v: np.ndarray) -> Any:
            problem = build(chunk.piece, chunk.scaled, v, self.task, grid, rounded=True)
            with np.errstate(under="ignore"):
                return cell_value(problem) * grid.h

        signed = moment(chunk.v)
        mixed = (chunk.v < 0).any() and (chunk.v > 0).any()
        absolute = moment(np.abs(chunk.v)) if mixed else signed
        delta = discretisation(2, grid.h)
        total = (absolute.bound + cut.left) / (1 - delta - cut.right)
        return signed.error + (delta + cut.right) * total + cut.left
