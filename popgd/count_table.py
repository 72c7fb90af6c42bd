"""The words of a balanced occurrence task by (target count, background count), with their law.

Symmetric weights see nothing else of a word, so expectations of anything a symmetric model does
on one word, and of products over several points of training, are sums over this table.
"""

from __future__ import annotations

import math

import numpy as np

from . import _validate as check
from .languages import Task
from .reduction import balanced

__all__ = ["CountTable", "count_table"]

LEFT_OUT = 1e-17
"""Probability of a pair below which it is left out."""

LARGEST = 2000
"""Largest d; the table grows like d."""


class CountTable:
    """Words by counts.

    Attributes
    ----------
    d : int
    target, background : array of shape (K,)
        C_s and m - C_s.
    probability : array of shape (K,)
        They add up to 1, less the pairs left out.
    positive : bool array of shape (K,)
        The label.
    """

    def __init__(self, d: int, target: np.ndarray, background: np.ndarray, probability: np.ndarray):
        self.d = d
        self.target, self.background, self.probability = target, background, probability
        self.positive = target > 0

    def mean(self, x: np.ndarray) -> np.ndarray:
        """E[x] over the words, for x of shape (..., K)."""
        return x @ self.probability

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """Cov(x) of shape (k, k) for x of shape (k, K), about the means."""
        centred = x - self.mean(x)[:, None]
        return (centred * self.probability) @ centred.T


def count_table(task: Task) -> CountTable:
    """The table of a balanced occurrence task.

    Raises
    ------
    BadParameter
        For another task, or d > 2000.

    Notes
    -----
    P(C_s = c) = (1-r) r^(c-1)/2 for c >= 1 with r = (d-2)/(2(d-1)); given c the others are
    NB(c + 1, 2/d); negative words of length m have probability p ((d-1) q/d)^m / q.
    Source: THEORY 4. Error: pairs left out have probability below 1e-13 in all; rounding 1e-13.
    """
    if not balanced(task) or task.d > LARGEST:
        raise check.refuse(
            "task", task, f"needs balanced occurrence with d <= {LARGEST}", "use another task"
        )
    from scipy.special import gammaln, xlog1py

    d = task.d
    r, stop = (d - 2) / (2 * (d - 1)), 2 / d
    most = 1 if d == 2 else math.ceil(math.log(LEFT_OUT) / math.log(r)) + 1
    pieces = []
    for c in range(most + 1):
        # the sum of c + 1 geometric variables beyond this is below 1e-17
        wide = int((c + 41 + 9 * math.sqrt(c + 1)) / stop) + 2
        b = np.arange(wide, dtype=float)
        if c == 0:
            # P(m | negative) = (2/d)(1 - 2/d)^(m-1)
            b = b[1:]
            p = 0.5 * stop * (1 - stop) ** (b - 1)
        else:
            ways = np.exp(gammaln(b + c + 1) - gammaln(b + 1) - gammaln(c + 1) + xlog1py(b, -stop))
            p = 0.5 * (1 - r) * r ** (c - 1) * stop ** (c + 1) * ways
        pieces.append(np.stack([np.full(b.size, float(c)), b, p])[:, p > LEFT_OUT])
    return CountTable(d, *np.concatenate(pieces, axis=1))
