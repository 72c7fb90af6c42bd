"""The trapezoidal rule on x = log t, its step, window and proven error bounds.

Every moment of the attention is an integral over t in (0, inf) of t^(k-1) e^(-t S) terms with
S > 0 (THEORY 2). In x = log t the trapezoidal rule has, for each word separately, a known
relative error, so the bound holds for their average whatever the weights (THEORY 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import BadParameter

__all__ = [
    "MAX_SPREAD",
    "Grid",
    "discretisation",
    "left_cut",
    "right_cut",
    "right_tail",
    "step_for",
]

MAX_SPREAD = 700.0
"""Largest spread of the finite attention weights in one call: beyond it exp leaves the doubles."""

GRAIN = 1 / 64
"""Steps are multiples of this, so that the nodes k h are exact binary numbers."""


@lru_cache(maxsize=256)
def discretisation(k: int, h: float) -> float:
    """Relative error bound of the infinite trapezoid sum for a moment of order k >= 1.

    Parameters
    ----------
    k : int
        Order of the moment, the power of 1/S.
    h : float
        Step in x = log t.

    Returns
    -------
    float
        delta_k(h) = 2 sum over n >= 1 of |Gamma(k + 2 pi i n / h)| / Gamma(k).

    Notes
    -----
    |Gamma(k+iy)|^2 = pi y / sinh(pi y) * prod over j = 1..k-1 of (j^2 + y^2).
    Source: THEORY 3 (Poisson summation). Error: proved; rounded up by 1e-12 relative, and the
    terms after n = 8 are below 1e-100 for h <= 1.
    """
    total = 0.0
    for n in range(1, 9):
        y = 2 * math.pi * n / h
        log_square = (
            math.log(2 * math.pi * y) - math.pi * y - math.log1p(-math.exp(-2 * math.pi * y))
        )
        log_square += sum(math.log(j * j + y * y) for j in range(1, k))
        total += 2 * math.exp(log_square / 2 - math.lgamma(k))
    return total * (1 + 1e-12)


@lru_cache(maxsize=64)
def step_for(tolerance: float, k: int = 3) -> float:
    """The largest step, a multiple of 1/64, with discretisation(k, h) <= tolerance."""
    h = 1.0
    while discretisation(k, h) > tolerance:
        h -= GRAIN
        if h < 2 * GRAIN:
            raise BadParameter(
                f"rtol: no step reaches a discretisation error of {tolerance:g}; "
                "ask popgd.certified for more digits."
            )
    return h


def right_tail(k: int, x: Any) -> Any:
    """Q(k, x) = e^(-x) sum over j < k of x^j / j!: share of a word's integral beyond t = x/S."""
    x = np.asarray(x, dtype=float)
    return np.exp(-x) * sum(x**j / math.factorial(j) for j in range(k))


@lru_cache(maxsize=64)
def right_cut(tolerance: float, k: int = 3) -> float:
    """The least S t1 with right_tail(k, S t1) <= tolerance."""
    low, high = 0.0, 800.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if right_tail(k, middle) > tolerance else (low, middle)
    return high


def left_cut(tolerance: float, k: int = 2) -> float:
    """The largest S t0 with (S t0)^k / k! <= tolerance: log of it."""
    return (math.log(tolerance) + math.lgamma(k + 1)) / k


@dataclass(frozen=True)
class Grid:
    """Nodes t = exp(h k) for a batch of problems; `first` differs from item to item.

    Attributes
    ----------
    h : float
        Step in log t.
    first : array of int, shape (B,)
        Index of each item's first node.
    count : int
        Number of nodes K.
    ceiling : array of shape (B,)
        Nodes beyond this log t are moved to it: their integrand is zero in any case.
    """

    h: float
    first: np.ndarray
    count: int
    ceiling: np.ndarray

    @classmethod
    def covering(cls, h: float, low: np.ndarray, high: np.ndarray, ceiling: np.ndarray) -> Grid:
        """The shortest grid with a node at or below `low` and one at or above `high`."""
        first = np.floor(low / h).astype(np.int64)
        last = np.ceil(high / h).astype(np.int64)
        return cls(h, first, int((last - first).max()) + 1, ceiling)

    def log_nodes(self) -> np.ndarray:
        """log t, shape (B, K): exact multiples of h."""
        nodes = self.h * (self.first[:, None] + np.arange(self.count))
        return np.minimum(nodes, self.ceiling[:, None])
