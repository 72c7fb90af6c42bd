"""The finite-sample kernel: risk and gradient sums over blocks of words, two passes each.

For one label the residual is r = v . gamma with v = beta - 2 on positive words and beta on
negative ones. With the reference c = v at the symbol k of largest attention a_k = 1 and
e = v - c,

    S = sum_i a_i C_i,   rho = (sum_i a_i e_i C_i) / S,   r = c + rho,   R = w r / S,
    u_i = sum_n R C_i,   t_i = sum_n R rho C_i,
    dL/dbeta_i = a_i u_i,   dL/dalpha_i = a_i (e_i u_i - t_i),

which is THEORY 6 with beta shifted by c: v_i - r = e_i - rho exactly, so no digit is lost when
attention sits on k (rho is then tiny) nor when every residual is. Rounding of dL/dalpha_i is
relative to the sum of w |r| gamma_i (|v_i - c| + |v_i - r|).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .tier_words import TierRows, by_tier
from .word_blocks import Block, backward, forward

__all__ = ["Attended", "Sums", "attended", "total"]

# Words with S below this hold no symbol of large attention: they are evaluated as a block of
# their own, with their own k. That keeps R finite, and v_i - r to 13 digits.
SMALL = 2.0**-10


# Entries of a (B, n) array that keeps B > 1 products fast (measured).
WIDTH = 2**16


class Sums(NamedTuple):
    """Weighted sums over words of r^2 / 2 and its gradients, for B weight vectors."""

    value: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class Attended(NamedTuple):
    """One block seen with the attention of B weight vectors.

    Attributes
    ----------
    row : slice
        Which of the weight vectors.
    block : Block
    floats : array of shape (d, n) or csr_array
        Counts.
    a : array of shape (B, d)
        exp(alpha - alpha_k), zero for symbols that do not occur.
    top : int array of shape (B,)
        k, the symbol of largest attention.
    normaliser : array of shape (B, n)
        S, with 1 where `skip`.
    skip : bool array of shape (B, n), or None
        Words that come in a later block.
    """

    row: slice
    block: Block
    floats: Any
    a: np.ndarray
    top: np.ndarray
    normaliser: np.ndarray
    skip: np.ndarray | None


def attended(blocks: Iterable[Block], alpha: Any) -> Iterator[Attended]:
    """Every word of `blocks` once for each row of `alpha` (B, d), with S >= 2^-10.

    Rows of tiers come one at a time, words in groups that attend to the same tier.

    Raises
    ------
    BadParameter
        When all symbols of a word have alpha = -inf.
    """
    if isinstance(alpha, TierRows):
        for b in range(len(alpha)):
            for block, level in by_tier(blocks, alpha.tier[b], alpha.offset[b]):
                for seen in attended([block], level[None]):
                    yield seen._replace(row=slice(b, b + 1))
        return
    # many weight vectors: narrow pieces, so that arrays of (B, n) stay in the cache
    width = max(WIDTH // len(alpha), 256) if len(alpha) > 1 else 2**62
    for piece in (part for block in blocks for part in block.parts(width)):
        pending = [(piece, slice(0, len(alpha)))]
        while pending:
            block, row = pending.pop()
            seen = _attend(block, alpha[row], row)
            if seen.skip is not None:
                for b in np.flatnonzero(seen.skip.any(axis=-1)):
                    only = slice(row.start + int(b), row.start + int(b) + 1)
                    pending.append((block.take(seen.skip[b]), only))
            yield seen


def _attend(block: Block, alpha: np.ndarray, row: slice) -> Attended:
    masked = alpha if block.complete else np.where(block.occurs, alpha, -np.inf)
    top = masked.argmax(axis=-1)
    peak = _pick(masked, top)
    if peak.min() == -np.inf:
        raise check.refuse(
            "alpha", -np.inf, "all symbols of a word have alpha = -inf, so it has no attention",
            "keep one symbol of every word finite",
        )  # fmt: skip
    a = np.exp(masked - peak)
    floats = block.floats()
    normaliser = forward(floats, a)
    if normaliser.min() >= SMALL:
        return Attended(row, block, floats, a, top, normaliser, None)
    skip = normaliser < SMALL
    return Attended(row, block, floats, a, top, np.where(skip, 1.0, normaliser), skip)


def _pick(rows: np.ndarray, column: np.ndarray) -> np.ndarray:
    """One entry of each row, shape (B, 1)."""
    if len(rows) == 1:
        # a view: this runs at every step of every training run
        k = int(column[0])
        return rows[:, k : k + 1]
    return rows[np.arange(len(rows)), column][:, None]


def residuals(seen: Attended, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r (B, n), rho (B, n) and e (B, d); r is zero on skipped words."""
    c = _pick(v, seen.top)
    e = v - c
    rho = forward(seen.floats, seen.a * e)
    rho /= seen.normaliser
    r = rho + c
    if seen.skip is not None:
        r[seen.skip] = 0.0
    return r, rho, e


def total(
    blocks: Iterable[Block], alpha: Any, positive: np.ndarray, negative: np.ndarray,
    gradient: bool,
) -> Sums:  # fmt: skip
    """Sums over all words, with v = `positive` or `negative` by label; all of shape (B, d)."""
    value = np.zeros(len(positive))
    by_alpha, by_beta = np.zeros(positive.shape), np.zeros(positive.shape)
    for seen in attended(blocks, alpha):
        v = (positive if seen.block.positive else negative)[seen.row]
        r, rho, e = residuals(seen, v)
        weights = seen.block.weights
        weighted = r if weights is None else r * weights
        value[seen.row] += np.vecdot(r, weighted) / 2
        if not gradient:
            continue
        scaled = weighted / seen.normaliser
        u = backward(seen.floats, scaled)
        scaled *= rho
        by_beta[seen.row] += seen.a * u
        by_alpha[seen.row] += seen.a * (e * u - backward(seen.floats, scaled))
    return Sums(value, by_alpha, by_beta)
