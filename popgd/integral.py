"""The integral route: sums of cell moments over batches of weights, with their error bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .cells import Facts, Frame, Piece, labelled, pieces
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
    """Checked weights as rows: alpha (B, d) or Tiers, beta (B, d), residual (B, targets)."""

    alpha: Any
    beta: np.ndarray
    residual: np.ndarray | None


class _Chunk(NamedTuple):
    """Rows of one piece that are handled together: the frame and weights v of shape (B, d)."""

    frame: Frame
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
        self.facts = Facts(task)
        self.cells = labelled(task)
        self.targets = list(task.targets)
        self.rtol = rtol
        self.tolerance = SHARE * rtol
        self.h = step_for(self.tolerance)

    @np.errstate(under="ignore")
    def split(self, inputs: Inputs) -> np.ndarray:
        """Risk on positive and on negative words, shape (2, B)."""
        totals = np.zeros((2, len(inputs.beta)))
        for chunk in self._chunks(inputs):
            _, value, _ = self._settle(chunk, gradient=False)
            totals[0 if chunk.frame.sign > 0 else 1, chunk.frame.rows] += value / 2
        return totals

    @np.errstate(under="ignore")
    def value_and_gradient(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Risk (B,), dL/dalpha (B, d), dL/dbeta (B, d)."""
        total = np.zeros(len(inputs.beta))
        alpha, beta = np.zeros((2, len(inputs.beta), self.facts.d))
        for chunk in self._chunks(inputs):
            _, value, parts = self._settle(chunk, gradient=True)
            total[chunk.frame.rows] += value / 2
            for symbols, part_alpha, part_beta in parts:
                where = chunk.frame.rows[:, None], symbols
                alpha[where] += part_alpha
                beta[where] += part_beta
        return total, alpha, beta

    @np.errstate(under="ignore")
    def error_bound(self, inputs: Inputs) -> np.ndarray:
        """Proven bound on |value - truth|, shape (B,)."""
        bound = np.zeros(len(inputs.beta))
        for chunk in self._chunks(inputs):
            bound[chunk.frame.rows] += self._bound(chunk) / 2
        # the bound itself is computed in floating point
        return bound * (1 + 1e-6)

    @np.errstate(under="ignore")
    def nodes(self, inputs: Inputs) -> list[int]:
        """Number of nodes of each chunk, in order."""
        return [self._settle(chunk, gradient=False)[0].count for chunk in self._chunks(inputs)]

    def _chunks(self, inputs: Inputs) -> Iterator[_Chunk]:
        """Pieces with residual weights v (f - y = v . gamma), in chunks that fit the cache."""
        for piece in pieces(inputs.alpha, self.cells):
            v = self.residual_weights(inputs, piece)
            frame = Frame(self.facts, piece)
            if len(v) == 1:
                yield _Chunk(frame, v)
                continue
            start = 0
            while start < len(v):
                nodes = self._grid(frame.at(slice(start, start + 1))).count
                part = slice(start, start + max(1, ENTRIES // (nodes * self.facts.d)))
                yield _Chunk(frame.at(part), v[part])
                start = part.stop

    def residual_weights(self, inputs: Inputs, piece: Piece) -> np.ndarray:
        """v with f - y = v . gamma on the words of this piece, shape (rows, d)."""
        v = inputs.beta[piece.rows] - (2.0 if piece.sign > 0 else 0.0)
        if inputs.residual is not None:
            given = inputs.residual[piece.rows]
            v[:, self.targets] = given if piece.sign > 0 else 2.0 + given
        return v

    def _grid(self, frame: Frame, margin: float = 0.0) -> Grid:
        return frame.grid(self.h, self.tolerance, margin)

    def _settle(self, chunk: _Chunk, gradient: bool) -> tuple[Grid, np.ndarray, list[Any]]:
        """Integrate, moving the left end out until what it drops is below the tolerance."""
        margin = 0.0
        for _ in range(ATTEMPTS):
            grid = self._grid(chunk.frame, margin)
            value, parts = self._integrate(chunk, grid, gradient)
            left = chunk.frame.left_out(chunk.v, grid)
            allowed = np.maximum(self.rtol * value, 1e-307)
            if (left <= allowed).all():
                return grid, value, parts
            margin += 0.5 * math.log((left / allowed).max()) + self.h
        raise PrecisionExhausted(
            "alpha, beta: the risk is too small beside its terms for float64; "
            "use popgd.certified.risk."
        )

    def _integrate(self, chunk: _Chunk, grid: Grid, gradient: bool) -> tuple[np.ndarray, list[Any]]:
        problem = chunk.frame.problem(chunk.v, grid)
        if not gradient:
            return grid.h * cell_value(problem), []
        value, parts = cell_gradient(problem)
        return grid.h * value, [(s, grid.h * a, grid.h * b) for s, a, b in parts]

    def _bound(self, chunk: _Chunk) -> np.ndarray:
        """Bound on the error of one cell's E[(v . gamma)^2]."""
        grid, _, _ = self._settle(chunk, gradient=False)
        cut = chunk.frame.truncation(chunk.v, grid)

        def moment(v: np.ndarray) -> Any:
            return cell_value(chunk.frame.problem(v, grid, rounded=True)) * grid.h

        signed = moment(chunk.v)
        mixed = (chunk.v < 0).any() and (chunk.v > 0).any()
        absolute = moment(np.abs(chunk.v)) if mixed else signed
        delta = discretisation(2, grid.h)
        total = (absolute.bound + cut.left) / (1 - delta - cut.right)
        return signed.error + (delta + cut.right) * total + cut.left
