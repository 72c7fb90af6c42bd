"""The exact minimum of the empirical risk over the output weights.

With beta = 2 on the targets plus delta, the residual of a word is gamma . delta - h, where h
is 2 (1 - sum of gamma over the targets) on positive words and -2 (that sum) on negative ones:
formed from the other symbols, never as a difference. So delta, and with it the residual
coordinate beta - 2, keeps its digits however close the optimum is to 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .empirical_hessian import EmpiricalHessian, well_conditioned_factor
from .tier_words import TierRows
from .word_blocks import Block
from .word_kernel import attended, correction, total

__all__ = ["minimum"]

# Refinements: each removes the solver's rounding once more; the second is usually idle.
REFINEMENTS = 4

Solver = Callable[[np.ndarray], np.ndarray]


def minimum(
    words: list[Block], alpha: Any, mass: float, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A minimiser beta (d,) and its residual beta - 2 on the targets.

    Newton steps on a quadratic: the first solves it, the others repair rounding, because the
    gradient is computed from the words each time. Kept only while they lower the risk.
    """
    occurs = np.any([block.occurs for block in words], axis=0)
    if not isinstance(alpha, TierRows):
        occurs &= np.isfinite(alpha)
    delta, solver = _first(words, alpha, mass, targets, occurs)
    value, slope = _look(words, alpha, mass, targets, delta)
    for _ in range(REFINEMENTS):
        trial = delta.copy()
        trial[occurs] -= solver(slope[occurs])
        better, next_slope = _look(words, alpha, mass, targets, trial)
        if not better < value:
            break
        delta, value, slope = trial, better, next_slope
    beta = delta.copy()
    beta[targets] += 2.0
    return beta, delta[targets]


def _look(
    words: list[Block], alpha: Any, mass: float, targets: np.ndarray, delta: np.ndarray
) -> tuple[float, np.ndarray]:
    """Risk and its gradient at beta = 2 on the targets + delta."""
    beta = delta.copy()
    beta[targets] += 2.0
    sums = total(words, alpha, *correction(beta, delta[targets], targets), gradient=True)
    return float(sums.value / mass), sums.beta / mass


def _first(
    words: list[Block], alpha: Any, mass: float, targets: np.ndarray, occurs: np.ndarray
) -> tuple[np.ndarray, Solver]:
    """A first solution and a solver for Newton steps, on the symbols that occur."""
    delta = np.zeros(alpha.size)
    hessian = EmpiricalHessian(words, alpha, mass).to_dense()[np.ix_(occurs, occurs)]
    diagonal = np.diagonal(hessian)
    usable = diagonal > 0
    scale = np.where(usable, diagonal, 1.0) ** -0.5
    factor = well_conditioned_factor(hessian * scale * scale[:, None]) if usable.all() else None
    if factor is None:
        return _by_orthogonal_factors(words, alpha, targets, occurs, mass)
    from scipy.linalg import cho_solve

    def solver(slope: np.ndarray) -> np.ndarray:
        return cho_solve((factor, True), slope * scale) * scale

    _, slope = _look(words, alpha, mass, targets, delta)
    delta[occurs] -= solver(slope[occurs])
    return delta, solver


def _by_orthogonal_factors(
    words: list[Block], alpha: Any, targets: np.ndarray, occurs: np.ndarray, mass: float
) -> tuple[np.ndarray, Solver]:
    """Without squaring the condition number: QR block by block, then an SVD of the factor.

    Directions that gamma does not determine (to rounding) are left where they are.
    """
    width = int(occurs.sum())
    upper = np.zeros((0, width + 1))
    for rows in _rows(words, alpha, targets, occurs):
        upper = np.linalg.qr(np.vstack([upper, rows]), mode="r")
    upper /= np.sqrt(mass)
    gamma, goal = upper[:, :width], upper[:, width]
    norms = np.linalg.norm(gamma, axis=0)
    scale = 1 / np.where(norms > 0, norms, 1.0)
    left, values, right = np.linalg.svd(gamma * scale, full_matrices=False)
    size = sum(block.size for block in words)
    keep = values > values[0] * max(size, width) * np.finfo(float).eps
    left, values, right = left[:, keep], values[keep], right[keep]
    delta = np.zeros(alpha.size)
    delta[occurs] = scale * (right.T @ ((left.T @ goal) / values))

    def solver(slope: np.ndarray) -> np.ndarray:
        return scale * (right.T @ ((right @ (slope * scale)) / values**2))

    return delta, solver


def _rows(words: list[Block], alpha: Any, targets: np.ndarray, occurs: np.ndarray) -> Iterator[Any]:
    """Rows sqrt(w) [gamma, h] of the least-squares problem, block by block."""
    others = np.ones(alpha.size, dtype=bool)
    others[targets] = False
    for seen in attended(words, alpha):
        gamma = seen.gamma()
        m = seen.block.positives
        goal = np.concatenate(
            [2 * gamma[others, :m].sum(axis=0), -2 * gamma[targets, m:].sum(axis=0)]
        )
        yield (np.vstack([gamma[occurs], goal]) * np.sqrt(seen.weights())).T
