"""The finite-sample kernel: risk and gradient sums over blocks of words, two passes each.

The residual of a word is r = v . gamma with v = beta - 2 on positive words and beta on negative
ones. With c = v_k for the symbol k of largest attention a_k = 1 and e_i = v_i - v_k, in which the
label cancels,

    S = sum_i a_i C_i,   rho = (sum_i a_i e_i C_i) / S,   r = c + rho,   R = w r / S,
    u_i = sum_n R C_i,   t_i = sum_n R rho C_i,
    dL/dbeta_i = a_i u_i,   dL/dalpha_i = a_i (e_i u_i - t_i),

which is THEORY 6 with beta shifted by beta_k: v_i - r = e_i - rho exactly, so no digit is lost
when attention sits on k (rho is then tiny) nor when every residual is. Rounding of dL/dalpha_i is
relative to the sum of w |r| gamma_i (|v_i - c| + |v_i - r|). Where some |v_i| is tiny beside |c|,
so that c + rho may cancel, r is summed as v . gamma. Words of the two labels go together unless
attention sits on symbols of one label only. Output weights are beta + delta, two numbers that are
never added: delta is what a residual knows beyond beta's last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .tier_words import TierRows, by_tier
from .word_blocks import Block, backward, forward, words

__all__ = ["Attended", "Sums", "attended", "correction", "residuals", "tiny", "total"]

# Words with S below this hold no symbol of large attention: they are evaluated as a block of
# their own, with their own k. That keeps R finite, and v_i - r to 13 digits. A |v_i| smaller than
# |c| by as much is tiny: c + rho could cost a residual more than three digits.
SMALL = 2.0**-10

# Labels whose largest attentions differ by more than this factor's logarithm are seen apart: each
# has its own k then, and most words of one would be below SMALL with the other's.
APART = np.log(8.0)

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
            if seen is None:
                pending += [(half, row) for half in block.by_label()]
                continue
            if seen.skip is not None:
                for b in np.flatnonzero(seen.skip.any(axis=-1)):
                    only = slice(row.start + int(b), row.start + int(b) + 1)
                    pending.append((block.take(seen.skip[b]), only))
            yield seen


def _attend(block: Block, alpha: np.ndarray, row: slice) -> Attended | None:
    """The block under its own references; None when its labels need a reference each."""
    masked = alpha if block.complete else np.where(block.anywhere, alpha, -np.inf)
    top = masked.argmax(axis=-1)
    peak = _pick(masked, top)
    if peak.min() == -np.inf:
        raise check.refuse(
            "alpha", -np.inf, "all symbols of a word have alpha = -inf, so it has no attention",
            "keep one symbol of every word finite",
        )  # fmt: skip
    if block.mixed and not block.shared[top].all() and _apart(block, alpha, peak):
        return None
    a = np.exp(masked - peak)
    floats = block.floats()
    normaliser = forward(floats, a)
    # S is at least the smallest a, which is the shorter array
    if (block.complete and a.min() >= SMALL) or normaliser.min() >= SMALL:
        return Attended(row, block, floats, a, top, normaliser, None)
    skip = normaliser < SMALL
    return Attended(row, block, floats, a, top, np.where(skip, 1.0, normaliser), skip)


def _apart(block: Block, alpha: np.ndarray, peak: np.ndarray) -> bool:
    """Whether the symbols that words of both labels hold draw far less attention than the peak."""
    near = np.where(block.shared, alpha, -np.inf).max(axis=-1, keepdims=True)
    return bool((peak - near > APART).any())


def _pick(rows: np.ndarray, column: np.ndarray) -> np.ndarray:
    """One entry of each row, shape (B, 1)."""
    if len(rows) == 1:
        # a view: this runs at every step of every training run
        k = int(column[0])
        return rows[:, k : k + 1]
    return rows[np.arange(len(rows)), column][:, None]


class Residuals(NamedTuple):
    """r (B, n), zero on skipped words; rho (B, n); e (B, d)."""

    r: np.ndarray
    rho: np.ndarray
    e: np.ndarray


def correction(beta: np.ndarray, residual: Any, targets: list[int]) -> np.ndarray | None:
    """delta of shape (..., d): residual - (beta - 2) on the targets; None without a residual.

    Zero where |beta| < 1, as the rounding of beta - 2 then says less than beta does.
    """
    if residual is None:
        return None
    delta, held = np.zeros(beta.shape), beta[..., targets]
    delta[..., targets] = np.where(np.abs(held) < 1, 0.0, residual - (held - 2.0))
    return delta


def residuals(seen: Attended, beta: np.ndarray, delta: np.ndarray | None) -> Residuals:
    """Residuals of output weights beta + delta, of shape (B, d)."""
    below = _pick(beta, seen.top)
    above, e = below - 2.0, beta - below
    if delta is not None:
        known = _pick(delta, seen.top)
        above = above + known
        e += delta - known
    rho = forward(seen.floats, seen.a * e)
    rho /= seen.normaliser
    m, n = seen.block.positives, seen.block.size
    if (m < n and tiny(beta, below).any()) or (m > 0 and tiny(beta - 2.0, above).any()):
        r = _summed(seen, beta, delta)
    else:
        r = np.empty(rho.shape)
        np.add(rho[:, :m], above, out=r[:, :m])
        np.add(rho[:, m:], below, out=r[:, m:])
    if seen.skip is not None:
        r[seen.skip] = 0.0
    return Residuals(r, rho, e)


def tiny(v: np.ndarray, c: np.ndarray) -> Any:
    """Rows of v (B, d) with some |v_i| far below |c|, c of shape (B, 1)."""
    return np.abs(v).min(axis=-1) < SMALL * np.abs(c[:, 0])


def _summed(seen: Attended, beta: np.ndarray, delta: np.ndarray | None) -> np.ndarray:
    """v . gamma, right to rounding of its largest term."""
    positive = beta - 2.0 if delta is None else (beta - 2.0) + delta
    m = seen.block.positives
    parts = ((positive, slice(0, m)), (beta, slice(m, None)))
    sums = [forward(words(seen.floats, part), seen.a * v) for v, part in parts]
    return np.concatenate(sums, axis=1) / seen.normaliser


def total(
    blocks: Iterable[Block], alpha: Any, beta: np.ndarray, delta: np.ndarray | None, gradient: bool
) -> Sums:
    """Sums over all words at attention weights alpha and output weights beta + delta, (B, d)."""
    value = np.zeros(len(beta))
    by_alpha, by_beta = np.zeros(beta.shape), np.zeros(beta.shape)
    for seen in attended(blocks, alpha):
        row = seen.row
        r, rho, e = residuals(seen, beta[row], None if delta is None else delta[row])
        weights = seen.block.weights
        weighted = r if weights is None else r * weights
        value[row] += np.vecdot(r, weighted) / 2
        if not gradient:
            continue
        scaled = weighted / seen.normaliser
        u = backward(seen.floats, scaled)
        scaled *= rho
        by_beta[row] += seen.a * u
        by_alpha[row] += seen.a * (e * u - backward(seen.floats, scaled))
    # finite weights give no residual at all only where it is beyond the doubles
    value[np.isnan(value)] = np.inf
    return Sums(value, by_alpha, by_beta)
