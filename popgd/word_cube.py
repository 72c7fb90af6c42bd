"""Many small batches of equal size at once: the kernel on a (K, n, d) array of counts.

The same formulas as `popgd.word_kernel`, with both labels in one product of four rows a batch, so
that K batches cost a handful of NumPy calls instead of K times as many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .word_blocks import Block
from .word_kernel import SMALL, Sums, total
from .wordbatch import WordBatch

__all__ = ["Cube", "cubes"]

# Above this batch size one batch after the other is faster (measured at d = 10, 50, 200).
WORDS, COUNTS = 512, 2**15
# Entries of one cube, so that it stays in the cache, and of all (128 MB as float64).
PIECE, ALL = 2**19, 2**24
# What v subtracts from beta on positive and on negative words.
LABELS = np.array([[2.0], [0.0]])


class Cube:
    """K batches of n words.

    Parameters
    ----------
    counts : array of shape (K, n, d)
    positive : bool array of shape (K, n)
    weights : array of shape (K, n), or None
    """

    def __init__(self, counts: np.ndarray, positive: np.ndarray, weights: np.ndarray | None):
        self.counts = counts.astype(np.float64)
        self.positive = positive
        self.weights = weights
        labels = np.stack([positive, ~positive], axis=1)
        self.labels = labels.astype(np.float64)
        # (K, 2, d): which symbols occur under each label
        self.occurs = self.labels @ self.counts > 0

    def total(self, alpha: np.ndarray, beta: np.ndarray, delta: np.ndarray | None) -> Sums:
        """Sums over the words of each batch, for one weight vector a batch, all (K, d)."""
        correction = np.zeros(beta.shape) if delta is None else delta
        masked = np.where(self.occurs, alpha[:, None], -np.inf)
        top = masked.argmax(axis=-1)
        peak = np.take_along_axis(masked, top[..., None], axis=-1)
        a = np.exp(masked - np.where(np.isfinite(peak), peak, 0.0))
        held, known = (
            np.take_along_axis(x[:, None], top[..., None], axis=-1) for x in (beta, correction)
        )
        e = (beta[:, None] - held) + (correction[:, None] - known)
        c = (held - LABELS) + known
        products = np.concatenate([a, a * e], axis=1) @ self.counts.swapaxes(1, 2)
        normaliser = np.where(self.positive, products[:, 0], products[:, 1])
        small = ~(normaliser >= SMALL).all(axis=-1)
        for label, v in enumerate((beta - 2.0, beta)):
            # c + rho could cancel
            small |= np.abs(v).min(axis=-1) < SMALL * np.abs(c[:, label, 0])
        normaliser[small] = 1.0
        rho = np.where(self.positive, products[:, 2], products[:, 3]) / normaliser
        r = rho + np.where(self.positive, c[:, 0], c[:, 1])
        weighted = r if self.weights is None else r * self.weights
        scaled = (weighted / normaliser)[:, None] * self.labels
        back = np.concatenate([scaled, scaled * rho[:, None]], axis=1) @ self.counts
        u, t = back[:, :2], back[:, 2:]
        value = np.vecdot(r, weighted) / 2
        value[np.isnan(value)] = np.inf  # as in `total`
        sums = Sums(value, (a * (e * u - t)).sum(axis=1), (a * u).sum(axis=1))
        for k in np.flatnonzero(small):
            exact = total([self._block(int(k))], alpha[k], beta[k], correction[k], gradient=True)
            for whole, part in zip(sums, exact, strict=True):
                whole[k] = part
        return sums

    def _block(self, k: int) -> Block:
        """Batch k as a block, for small S and tiny residuals."""
        order = np.argsort(~self.positive[k], kind="stable")
        weights = None if self.weights is None else self.weights[k][order]
        counts = np.ascontiguousarray(self.counts[k][order].T)
        return Block(counts, weights, int(self.positive[k].sum()))


def cubes(batches: Sequence[WordBatch]) -> list[tuple[slice, Cube]]:
    """A stack of small equal batches as cubes; nothing when one by one is the better way."""
    n, d, many = len(batches[0]), batches[0].d, len(batches)
    equal = all(len(b) == n and not b.is_sparse for b in batches)
    if many == 1 or not equal or n > WORDS or n * d > COUNTS or many * n * d > ALL:
        return []
    step = max(1, PIECE // (n * d))
    out = []
    for lo in range(0, many, step):
        where = slice(lo, min(lo + step, many))
        group = batches[where]
        weights = None
        if any(b.weights is not None for b in group):
            weights = np.stack([np.ones(n) if b.weights is None else b.weights for b in group])
        counts = np.stack([b.counts for b in group])
        positive = np.stack([b.labels > 0 for b in group])
        out.append((where, Cube(counts, positive, weights)))
    return out
