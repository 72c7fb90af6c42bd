"""Exact accuracy of very many symmetric states at one d, through a table of counts (kernels).

The same sums as `popgd.symmetric.accuracy`, whose every term is P(b <= n | c) at an integer n:
for moderate d all of them fit in a table, and a pixel costs 56 look-ups instead of 56 incomplete
beta functions.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .symmetric_accuracy import COUNTS, accuracy
from .symmetric_state import State

__all__ = ["LARGEST", "accuracies"]

LARGEST = 2000
"""Largest d with a table; beyond it every pixel is summed on its own (about 30 us each)."""
# sum over c of P(C_s = c) P(b > 40 d | c) < e^-40
FAR = 40
ULPS = 16.0


@functools.lru_cache(maxsize=2)
def _cdf(d: int) -> np.ndarray:
    """P(b <= n | c) for c = 1..56 and n = 0..40 d, where b | c is negative binomial(c + 1, 2/d).

    P(N_c <= n) = P(N_{c-1} <= n) - D_c(n), D_c(n) = C(n+c, c) p^c (1-p)^(n+1): the (n+1)-th
    failure comes after exactly c successes. Error: 3e-14 absolute (the D_c are positive and sum
    to less than 1).
    """
    p = 2 / d
    n = np.arange(FAR * d + 1.0)
    log = np.log1p(-p) * (n + 1) if d > 2 else np.full(n.size, -np.inf)
    term, below = np.exp(log), -np.expm1(log)
    rows = np.empty((COUNTS, n.size))
    for c in range(1, COUNTS + 1):
        term = term * (p * (n + c) / c)
        below = below - term
        rows[c - 1] = below
    return np.maximum(rows, 0.0)


def accuracies(
    d: int, gap: np.ndarray, v: np.ndarray, beta: np.ndarray, behind: Any = None
) -> np.ndarray:
    """P(sign f = y) at target residual v, background weight beta and gap, which broadcast.

    `behind` is 1 - beta where beta has lost its digits.
    """
    behind = 1 - beta if behind is None else behind
    if d > LARGEST:
        return np.asarray(accuracy(State(gap, 0.0, 2 + v, beta, v), d, behind=behind))
    gap, v, beta, behind = np.broadcast_arrays(gap, v, beta, behind)
    ahead = 1 + v
    # one label is always right where no threshold decides
    out = np.full(gap.shape, 0.5)
    # boundaries and ties go to exact arithmetic
    hard = (behind == 0) | ((ahead == 0) & (behind < 0))
    mixed = np.flatnonzero(((behind > 0) == (ahead > 0)) & ~hard)
    columns = tuple(np.ravel(x)[mixed] for x in (gap, v, behind))
    inside, ties = _look_up(d, *columns)
    flat = out.reshape(-1)
    flat[mixed] = np.where(columns[2] > 0, 0.5 + inside, 0.5 - inside)
    slow = np.concatenate([mixed[ties], np.flatnonzero(hard)])
    if slow.size:
        gap, v, beta, behind = (np.ravel(x)[slow] for x in (gap, v, beta, behind))
        flat[slow] = accuracy(State(gap, 0.0, 2 + v, beta, v), d, behind=behind)
    return flat.reshape(out.shape)


def _look_up(d: int, gap: Any, v: Any, behind: Any) -> tuple[np.ndarray, np.ndarray]:
    """E_+[1{b <= c kappa}], and where some c kappa comes too close to an integer to tell."""
    rows = _cdf(d)
    last = rows.shape[1] - 1
    half = np.exp(np.clip(gap, -1400, 1400) / 2)
    kappa = np.minimum(np.abs((1 + v) / behind) * half * half, last + 0.5)
    slack = ULPS * (1 + np.abs(gap)) * 2.0**-53 * kappa
    r = (d - 2) / (2 * (d - 1))
    total, close = np.zeros(kappa.size), np.zeros(kappa.size, dtype=bool)
    some = np.flatnonzero((kappa > 0.5 / COUNTS) & (kappa < last))
    x, tolerance = kappa[some], slack[some]
    part, near = np.zeros(some.size), np.zeros(some.size, dtype=bool)
    for c in range(1, COUNTS + 1):
        limit = c * x
        whole = np.floor(limit)
        limit -= whole
        limit -= 0.5
        np.abs(limit, out=limit)
        near |= limit >= 0.5 - c * tolerance
        index = np.minimum(whole, last).astype(np.intp)
        part += rows[c - 1].take(index) * (0.5 * (1 - r) * r ** (c - 1))
    weights = 0.5 * (1 - r) * r ** np.arange(COUNTS)
    total[kappa >= last] = 0.5
    total[kappa <= 0.5 / COUNTS] = weights @ rows[:, 0]
    total[some], close[some] = part, near
    return total, np.flatnonzero(close)
