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
so that c + rho may cancel, r is summed as v . gamma. Words of the two labels share k unless
attention sits on symbols of one label only; whatever is as long as the words is computed for both
at once in any case. Output weights are beta + delta, two numbers that are never added: delta is
what a residual knows beyond beta's last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .tier_words import TierRows, by_tier
from .word_blocks import Block, Side

__all__ = ["Attended", "Sums", "attended", "correction", "residuals", "total"]

# Words with S below this hold no symbol of large attention: they are evaluated as a block of
# their own, with their own k. That keeps R finite, and v_i - r to 13 digits. A |v_i| smaller than
# |c| by as much is tiny: c + rho could cost a residual more than three digits.
SMALL = 2.0**-10

# Labels whose largest attentions differ by more than this factor's logarithm have a reference
# each: most words of one would be below SMALL with the other's.
APART = np.log(8.0)

# Entries of a (B, n) array that keeps B > 1 products fast (measured).
WIDTH = 2**16


class Sums(NamedTuple):
    """Weighted sums over words of r^2 / 2, shape (...), and its gradients, shape (..., d)."""

    value: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class Attended(NamedTuple):
    """One block seen with the attention of one weight vector, or of B of them.

    Attributes
    ----------
    row : index
        Which of the weight vectors: all, or one of B.
    block : Block
    sides : list of Side
        The words by reference symbol; lists below have an entry for each side.
    floats : list of array of shape (d, m) or csr_array of shape (m, d)
        Counts of the m words.
    a : list of array of shape (..., d)
        exp(alpha - alpha_k), zero for symbols that do not occur.
    top : list of int or of int array of shape (B,)
        k, the symbol of largest attention.
    normaliser : array of shape (..., n)
        S, with 1 where `skip`.
    skip : bool array of shape (..., n), or None
        Words that come in a later block.
    """

    row: Any
    block: Block
    sides: list[Side]
    floats: list[Any]
    a: list[np.ndarray]
    top: list[Any]
    normaliser: np.ndarray
    skip: np.ndarray | None

    def forward(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Rows (..., d) of each side times the counts of its words: (..., n)."""
        return _forward(self.block, self.sides, self.floats, rows)

    def backward(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows (..., n) times the transposed counts of each side's words: arrays (..., d)."""
        if self.block.sparse:
            return [(self.floats[0].T @ rows.T).T]
        return [rows[..., side.words] @ counts.T for side, counts in zip(self.sides, self.floats)]

    def by_word(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """A row (d,) of each side as a column for each of its words: (d, n)."""
        sizes = [side.words.stop - side.words.start for side in self.sides]
        return np.repeat(np.stack(rows, axis=1), sizes, axis=1)

    def dense(self) -> list[np.ndarray]:
        """Counts of the words of each side as arrays (d, m)."""
        return [x.toarray().T if self.block.sparse else x for x in self.floats]

    def gamma(self) -> np.ndarray:
        """Attention that every word pays to each symbol, of one weight vector: (d, n)."""
        shares = [x * a[:, None] for x, a in zip(self.dense(), self.a, strict=True)]
        return np.concatenate(shares, axis=1) / self.normaliser

    def weights(self) -> np.ndarray:
        """Weights of the words, zero where skipped, of one weight vector: (n,)."""
        own = self.block.weights
        weights = np.ones(self.block.size) if own is None else own
        return weights if self.skip is None else weights * ~self.skip


def attended(blocks: Iterable[Block], alpha: Any) -> Iterator[Attended]:
    """Every word of `blocks` once for `alpha` (d,) or each row of (B, d), with S >= 2^-10.

    Tiers come one row at a time, words in groups that attend to the same tier.

    Raises
    ------
    BadParameter
        When all symbols of a word have alpha = -inf.
    """
    single = len(alpha.shape) == 1
    if isinstance(alpha, TierRows):
        for b in [...] if single else range(len(alpha)):
            for block, level in by_tier(blocks, alpha.tier[b], alpha.offset[b]):
                for seen in attended([block], level):
                    yield seen._replace(row=b)
        return
    if not single:
        # many weight vectors: narrow pieces, so that arrays of (B, n) stay in the cache
        width = max(WIDTH // len(alpha), 256)
        blocks = (part for block in blocks for part in block.parts(width))
    for whole in blocks:
        pending: list[tuple[Block, Any]] = [(whole, ...)]
        while pending:
            block, row = pending.pop()
            seen = _attend(block, alpha[row], row)
            if seen.skip is not None:
                if seen.skip.ndim == 1:
                    pending.append((block.take(seen.skip), row))
                else:
                    late = np.flatnonzero(seen.skip.any(axis=-1))
                    pending += [(block.take(seen.skip[b]), b) for b in late]
            yield seen


def _attend(block: Block, alpha: np.ndarray, row: Any) -> Attended:
    """The block with its attention, each side under its own reference."""
    sides = block.together
    relative = [_relative(alpha, sides[0])]
    if block.mixed and _apart(block, *relative[0]):
        sides = block.apart
        relative = [_relative(alpha, side) for side in sides]
    a, top = [np.exp(logits, out=logits) for logits, _ in relative], [k for _, k in relative]
    floats = block.floats(sides)
    normaliser = _forward(block, sides, floats, a)
    # S is at least the smallest a, which is a shorter array
    if (len(a) == 1 and _least(a[0]) >= SMALL) or _least(normaliser) >= SMALL:
        return Attended(row, block, sides, floats, a, top, normaliser, None)
    if np.isnan(a).any():
        raise check.refuse(
            "alpha", -np.inf, "all symbols of a word have alpha = -inf, so it has no attention",
            "keep one symbol of every word finite",
        )  # fmt: skip
    skip = normaliser < SMALL
    normaliser[skip] = 1.0
    return Attended(row, block, sides, floats, a, top, normaliser, skip)


def _relative(alpha: np.ndarray, side: Side) -> tuple[np.ndarray, Any]:
    """alpha - alpha_k on the symbols that occur, and k."""
    logits = alpha + side.absent
    k = logits.argmax(axis=-1)
    logits -= _pick(logits, k)
    return logits, k


def _apart(block: Block, logits: np.ndarray, k: Any) -> bool:
    """Whether both labels together pay far less attention to the symbols they share than to k."""
    if not np.count_nonzero(block.private[k]):
        return False
    near = np.maximum.reduce(logits + block.private, axis=-1)
    # NaN, where no symbol has any attention, is for the labels to refuse
    return not np.all(near >= -APART)


def _forward(
    block: Block, sides: Sequence[Side], floats: Sequence[Any], rows: Sequence[np.ndarray]
) -> np.ndarray:
    if block.sparse:
        return (floats[0] @ rows[0].T).T
    out = np.empty((*rows[0].shape[:-1], block.size))
    for side, counts, row in zip(sides, floats, rows):
        np.matmul(row, counts, out=out[..., side.words])
    return out


def _least(x: np.ndarray) -> Any:
    """The smallest entry, by the shortest way: NaN if there is one."""
    return np.minimum.reduce(x, axis=None)


def _pick(rows: np.ndarray, k: Any) -> Any:
    """Entry k of one vector, or of each row as a column."""
    return rows[k] if rows.ndim == 1 else rows[np.arange(len(rows)), k][:, None]


def correction(
    beta: np.ndarray, residual: Any, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Output weights (..., d) as two numbers beta + delta, of which 2 + residual is the sum.

    Without a residual delta is None. Where |beta| < 1 it is zero, as the residual then says less
    than beta does. Elsewhere beta becomes 2 + residual, rounded: from any other double nearby,
    even the next, a delta would not hold the digits of a residual far below 1e-16.

    Raises
    ------
    BadParameter
        When beta - 2 and the residual differ by more than rounding.
    """
    if residual is None:
        return beta, None
    held = beta.take(targets, axis=-1)
    # the common case of the check below, which is slower
    if not check.within(residual - (held - 2.0), check.SAME):
        check.same_weight("residual", held, residual)
    far = np.abs(held) >= 1
    near = np.where(far, 2.0 + residual, held)
    beta, delta = beta.copy(), np.zeros(beta.shape)
    # by columns, which is fast for a single vector
    beta.T[targets] = near.T
    delta.T[targets] = ((residual - (near - 2.0)) * far).T
    return beta, delta


def residuals(
    seen: Attended, beta: np.ndarray, delta: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """r (..., n), zero on skipped words, rho (..., n) and e (..., d) of each side.

    Output weights are beta + delta, of shape (..., d).
    """
    e, labels, weighted, cancels = [], [], [], False
    for side, a, k in zip(seen.sides, seen.a, seen.top):
        held = _pick(beta, k)
        off, known = beta - held, 0.0
        if delta is not None:
            known = _pick(delta, k)
            off += delta - known
        e.append(off)
        weighted.append(a * off)
        for words, shift in side.labels:
            v, own = beta - shift, held - shift + known
            if delta is not None:
                v += delta
            cancels = cancels or _tiny(v, own)
            labels.append((words, v, own))
    rho = seen.forward(weighted)
    rho /= seen.normaliser
    if cancels:
        r = _summed(seen, [v for _, v, _ in labels])
    else:
        r = np.empty(rho.shape)
        for words, _, own in labels:
            np.add(rho[..., words], own, out=r[..., words])
    if seen.skip is not None:
        r[seen.skip] = 0.0
    return r, rho, e


def _tiny(v: np.ndarray, c: Any) -> bool:
    """Whether some |v_i| (..., d) is far below |c|, a number or (..., 1)."""
    v = np.abs(v)
    if v.ndim == 1:
        return v[v.argmin()] < SMALL * abs(c)
    return bool((v < SMALL * np.abs(c)).any())


def _summed(seen: Attended, weights: Iterable[np.ndarray]) -> np.ndarray:
    """v . gamma, right to rounding of its largest term, with v of each label in turn."""
    r, each = np.empty(seen.normaliser.shape), iter(weights)
    for side, counts, a in zip(seen.sides, seen.floats, seen.a, strict=True):
        for words, _ in side.labels:
            v = next(each)
            if seen.block.sparse:
                r = (counts @ (a * v).T).T
            else:
                first = words.start - side.words.start
                part = counts[:, first : first + words.stop - words.start]
                np.matmul(a * v, part, out=r[..., words])
    r /= seen.normaliser
    return r


def total(
    blocks: Iterable[Block], alpha: Any, beta: np.ndarray, delta: np.ndarray | None, gradient: bool
) -> Sums:
    """Sums over all words at attention alpha and output weights beta + delta, (d,) or (B, d)."""
    value = np.zeros(beta.shape[:-1])
    by_alpha, by_beta = np.zeros(beta.shape), np.zeros(beta.shape)
    for seen in attended(blocks, alpha):
        row = seen.row
        r, rho, e = residuals(seen, beta[row], None if delta is None else delta[row])
        weights = seen.block.weights
        weighted = r if weights is None else r * weights
        value[row] += np.vecdot(r, weighted) / 2
        if not gradient:
            continue
        scaled = np.divide(weighted, seen.normaliser, out=r)
        u = seen.backward(scaled)
        scaled *= rho
        t = seen.backward(scaled)
        # views
        alpha_here, beta_here = by_alpha[row], by_beta[row]
        for a, off, ours, pull in zip(seen.a, e, u, t):
            beta_here += a * ours
            alpha_here += a * (off * ours - pull)
    # finite weights give no residual at all only where it is beyond the doubles
    value[value != value] = np.inf
    return Sums(value, by_alpha, by_beta)
