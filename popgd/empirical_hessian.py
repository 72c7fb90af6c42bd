"""The output Hessian of the empirical risk: E[gamma gamma^T] over the words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from . import _validate as check
from .errors import NotAvailable
from .word_blocks import Block, quiet
from .word_kernel import Attended, attended

__all__ = ["EmpiricalHessian"]

# The dense matrix is formed up to this alphabet size (128 MB).
DENSE = 4096
# Pivots of the scaled Hessian below this leave the Cholesky route: half the digits are gone.
PIVOT = 1e-4


class EmpiricalHessian:
    """H = sum_n w_n gamma_n gamma_n^T / total as an operator.

    Attributes
    ----------
    shape : tuple
        (d, d).

    Notes
    -----
    Products cost two passes over the counts; `to_dense` and `solve` form the d x d matrix once.
    Entries are sums of non-negative terms, so each is right to rounding, relative to itself.
    Source: THEORY 2, 6. Error: none but rounding.
    """

    def __init__(self, words: list[Block], alpha: Any, total: float):
        # a copy: the caller's array may move on
        self._words, self._alpha, self._total = words, alpha.copy(), total
        self.shape = (alpha.size, alpha.size)

    def __repr__(self) -> str:
        return f"EmpiricalHessian(shape={self.shape}; use H @ x, H.solve(b), H.to_dense())"

    def _seen(self) -> Iterator[Attended]:
        return attended(self._words, self._alpha)

    @quiet()
    def __matmul__(self, x: Any) -> np.ndarray:
        """H x for x of shape (d,) or (d, k)."""
        x = np.asarray(x, dtype=float)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[0]:
            remedy = f"pass shape ({self.shape[0]},) or ({self.shape[0]}, k)"
            raise check.refuse("x", x, f"has shape {x.shape}", remedy)
        rows = np.atleast_2d(x.T)
        out = np.zeros(rows.shape)
        for seen in self._seen():
            inner = seen.forward([rows * a for a in seen.a])
            inner *= seen.weights() / seen.normaliser**2
            for a, sums in zip(seen.a, seen.backward(inner), strict=True):
                out += a * sums
        out /= self._total
        return out[0] if x.ndim == 1 else out.T

    @cached_property
    @quiet()
    def _dense(self) -> np.ndarray:
        if self.shape[0] > DENSE:
            raise NotAvailable(
                f"d = {self.shape[0]}: a dense Hessian needs d <= {DENSE}; use products H @ x."
            )
        out = np.zeros(self.shape)
        for seen in self._seen():
            root = np.sqrt(seen.weights()) / seen.normaliser
            for side, counts, a in zip(seen.sides, seen.dense(), seen.a, strict=True):
                scaled = counts * root[side.words]
                # of one array with itself it is a symmetric product: half the work
                out += np.outer(a, a) * (scaled @ scaled.T)
        return out / self._total

    @property
    def largest_eigenvalue(self) -> float:
        """lambda_max: gradient descent on beta diverges above 2 / lambda_max."""
        return float(np.linalg.eigvalsh(self._dense)[-1])

    def to_dense(self) -> np.ndarray:
        """H as an array of shape (d, d), a copy."""
        return self._dense.copy()

    @quiet()
    def solve(self, b: Any) -> np.ndarray:
        """x with H x = b for b of shape (d,) or (d, k); of least scaled norm if H is singular."""
        b = np.asarray(b, dtype=float)
        if b.ndim not in (1, 2) or b.shape[0] != self.shape[0]:
            remedy = f"pass shape ({self.shape[0]},) or ({self.shape[0]}, k)"
            raise check.refuse("b", b, f"has shape {b.shape}", remedy)
        if not np.isfinite(b).all():
            raise check.refuse("b", b, "must be finite", "replace NaN and infinities")
        rows = np.atleast_2d(b.T)
        out = scaled_solver(self._dense)(rows.T)
        return out[:, 0] if b.ndim == 1 else out


def scaled_solver(matrix: np.ndarray) -> Any:
    """A function b -> x with matrix x = b, for b of shape (d, k).

    Scaled to unit diagonal first: attention makes rows differ by many orders, and every
    coordinate shall keep its own relative accuracy, which triangular factors respect and
    eigenvectors do not. Those serve where the matrix is singular to working precision.
    """
    from scipy.linalg import cho_solve

    diagonal = np.diagonal(matrix)
    scale = np.where(diagonal > 0, diagonal, 1.0) ** -0.5
    unit = matrix * scale * scale[:, None]
    factor = well_conditioned_factor(unit)
    if factor is not None:
        return lambda b: cho_solve((factor, True), b * scale[:, None]) * scale[:, None]
    values, vectors = np.linalg.eigh(unit)
    keep = values > values[-1] * len(values) * np.finfo(float).eps
    vectors, values = vectors[:, keep], values[keep]

    def solve(b: np.ndarray) -> np.ndarray:
        scaled = b * scale[:, None]
        return vectors @ ((vectors.T @ scaled) / values[:, None]) * scale[:, None]

    return solve


def well_conditioned_factor(unit: np.ndarray) -> np.ndarray | None:
    """The Cholesky factor of a matrix of unit diagonal, or None when a pivot is too small."""
    try:
        factor = np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        return None
    return factor if np.diagonal(factor).min() > PIVOT else None
