"""The Hessian of the risk in the output weights, E[gamma gamma^T], as an operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from . import _validate as check
from .cell_problem import CellProblem
from .cells import Facts, Frame, attention_rows, pieces
from .errors import NotAvailable
from .languages import Cell, Task
from .moments import node_terms
from .quadrature import step_for

__all__ = ["OutputHessian"]

DENSE = 3000
"""Largest d for which `to_dense` builds a matrix."""

STORE = 2**21
"""Factors with at most this many numbers are stored, larger ones recomputed when used."""


class OutputHessian:
    """H = E[gamma gamma^T] = sum over nodes of Phi'' Y Y^T + diag(Phi' y Y), for one alpha.

    Products and solves cost O(d x nodes) time (solves also nodes^3 / 3) and no d x d memory.

    Attributes
    ----------
    d : int
        Dimension.
    diagonal : array of shape (d,)
        The diagonal part, E[sum over insertions of single symbols].
    nodes : int
        Number of low-rank terms.

    Notes
    -----
    H does not depend on the labels. Every entry is a sum of positive terms, so entries keep
    their relative accuracy at any attention. Source: THEORY 2. Error: proved per entry
    (discretisation and truncation relative to rtol); solves are backward stable.
    """

    @np.errstate(under="ignore")
    def __repr__(self) -> str:
        return f"OutputHessian(shape={self.shape}; use H @ x, H.solve(b), H.to_dense())"

    def __init__(self, problems: list[tuple[float, CellProblem]], d: int):
        self.d = d
        self._problems = problems
        self._weights = []
        self.diagonal = np.zeros(d)
        for h, problem in problems:
            terms = node_terms(problem, gradient=False)
            self._weights.append(h * terms.phi[1].top[0])
            once = h * terms.phi[0].top
            for block in problem.blocks():
                self.diagonal[problem.background[block.part]] += (once[:, None, :] @ block.curve)[
                    0, 0
                ]
            problem.release()
        self.nodes = sum(len(w) for w in self._weights)
        self._stored: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        if self.nodes * d <= STORE:
            self._stored = list(self._computed())

    @classmethod
    @np.errstate(under="ignore")
    def at(cls, task: Task, alpha: Any, rtol: float) -> OutputHessian:
        """The Hessian at one attention vector (or Tiers) of shape (d,)."""
        facts = Facts(task)
        tolerance = 0.1 * rtol
        h = step_for(tolerance)
        problems = []
        for piece in pieces(attention_rows(alpha, task.d), [(Cell(), 0)]):
            frame = Frame(facts, piece)
            grid = frame.grid(h, tolerance)
            problems.append((h, frame.problem(np.zeros((1, task.d)), grid)))
        return cls(problems, task.d)

    @property
    def shape(self) -> tuple[int, int]:
        """(d, d)."""
        return self.d, self.d

    def factors(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Blocks (symbols, node numbers, sqrt(Phi'') Y) of the low-rank factor U, H = U U^T + D."""
        return iter(self._stored) if self._stored else self._computed()

    def _computed(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        start = 0
        for weights, (_, problem) in zip(self._weights, self._problems, strict=True):
            numbers = np.arange(start, start + len(weights))
            root = np.sqrt(weights)[:, None]
            for block in problem.blocks():
                yield problem.background[block.part], numbers, root * block.weight[0]
            start += len(weights)

    @np.errstate(under="ignore")
    def __matmul__(self, x: Any) -> np.ndarray:
        x = self._vector("x", x)
        inner = np.zeros((self.nodes, *x.shape[1:]))
        for symbols, numbers, u in self.factors():
            inner[numbers] += u @ x[symbols]
        out = (self.diagonal * x.T).T
        for symbols, numbers, u in self.factors():
            out[symbols] += u.T @ inner[numbers]
        return out

    @np.errstate(under="ignore")
    def solve(self, b: Any) -> np.ndarray:
        """x with H x = b, for b of shape (d,) or (d, columns)."""
        b = self._vector("b", b)
        if self.d <= self.nodes:
            from scipy.linalg import cho_solve

            factor, scale = self._dense_factor
            return (scale * cho_solve(factor, (scale * b.T).T).T).T
        return self._woodbury(b)

    @np.errstate(under="ignore")
    def to_dense(self) -> np.ndarray:
        """The matrix, shape (d, d); refused above d = 3000."""
        if self.d > DENSE:
            raise NotAvailable(
                f"d = {self.d}: a dense Hessian needs d <= {DENSE}; use `@` and `solve`."
            )
        out = np.diag(self.diagonal)
        rows = np.zeros((self.nodes, self.d))
        for symbols, numbers, u in self.factors():
            rows[np.ix_(numbers, symbols)] = u
        return out + rows.T @ rows

    @property
    def largest_eigenvalue(self) -> float:
        """lambda_max by the power method, relative 1e-10.

        Gradient descent on beta diverges at learning rates above 2/lambda_max.
        """
        x = np.sqrt(self.diagonal)
        value = 0.0
        for _ in range(10_000):
            x = x / np.linalg.norm(x)
            y = self @ x
            new = float(x @ y)
            if abs(new - value) <= 1e-12 * new:
                break
            value, x = new, y
        return new

    @cached_property
    def _dense_factor(self) -> tuple[Any, np.ndarray]:
        """Cholesky of H scaled to unit diagonal: each row keeps its own relative accuracy."""
        from scipy.linalg import cho_factor

        matrix = self.to_dense()
        scale = 1 / np.sqrt(np.diag(matrix))
        return cho_factor(scale[:, None] * matrix * scale, lower=True), scale

    @cached_property
    def _capacitance(self) -> Any:
        """Cholesky of I + U^T D^-1 U, whose eigenvalues are at least 1."""
        from scipy.linalg import cho_factor

        matrix = np.eye(self.nodes)
        for symbols, u in self._all_nodes():
            scaled = u / np.sqrt(self.diagonal[symbols])
            matrix += scaled @ scaled.T
        return cho_factor(matrix, lower=True)

    def _all_nodes(self) -> Iterator[tuple[Any, np.ndarray]]:
        """(symbols, U^T) with every node in each block; several tiers are gathered first."""
        if len(self._problems) == 1:
            yield from ((symbols, u) for symbols, _, u in self.factors())
            return
        rows = np.zeros((self.nodes, self.d))
        for symbols, numbers, u in self.factors():
            rows[np.ix_(numbers, symbols)] = u
        yield slice(None), rows

    def _woodbury(self, b: np.ndarray) -> np.ndarray:
        from scipy.linalg import cho_solve

        scaled = (b.T / self.diagonal).T
        inner = np.zeros((self.nodes, *b.shape[1:]))
        for symbols, numbers, u in self.factors():
            inner[numbers] += u @ scaled[symbols]
        inner = cho_solve(self._capacitance, inner)
        back = np.zeros_like(b)
        for symbols, numbers, u in self.factors():
            back[symbols] += u.T @ inner[numbers]
        return scaled - (back.T / self.diagonal).T

    def _vector(self, name: str, x: Any) -> np.ndarray:
        x = check.real_array(name, x)
        if x.ndim not in (1, 2) or x.shape[0] != self.d:
            remedy = f"pass shape ({self.d},) or ({self.d}, columns)"
            raise check.refuse(name, x, f"has shape {x.shape}", remedy)
        return x
