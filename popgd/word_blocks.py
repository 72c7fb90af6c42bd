"""Blocks of words, positive ones first, laid out for the finite-sample kernel."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from threading import local
from typing import Any

import numpy as np

from .wordbatch import WordBatch

__all__ = ["Block", "backward", "blocks", "forward", "quiet", "words"]

# Counts in a block that is converted at each use, 4 MB as float64, and in one that is not: four
# passes run from the cache, in products large enough for a many-threaded BLAS (measured).
CONVERTED, BLOCK = 2**19, 2**20
# Batches up to 16 MB keep their counts as float64; larger ones convert block by block, which
# costs less than reading eight times as much memory.
FLOATS = 2**21

_workspace = local()


def quiet() -> np.errstate:
    """Overflow shows in what comes out; underflow is exact enough as zero."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


class Block:
    """Counts of n words, transposed: shape (d, n).

    Attributes
    ----------
    counts : array of shape (d, n), or scipy.sparse.csr_array of shape (n, d)
        float64, or unsigned integers that `floats` converts.
    weights : array of shape (n,), or None
    positives : int
        The first so many words are positive, the others negative.
    occurs : bool array of shape (2, d)
        Symbols that occur in some positive word, in some negative word.
    anywhere : bool array of shape (d,)
        Symbols that occur at all.
    shared : bool array of shape (d,)
        Symbols that occur under both labels.
    complete : bool
        Whether all symbols occur.
    """

    __slots__ = (
        "_halves", "anywhere", "complete", "counts", "occurs", "positives", "shared", "size",
        "sparse", "weights",
    )  # fmt: skip

    def __init__(self, counts: Any, weights: np.ndarray | None, positives: int):
        self.counts = counts
        self.weights = weights
        self.positives = positives
        self.sparse = not isinstance(counts, np.ndarray)
        self.size = counts.shape[0 if self.sparse else 1]
        halves = slice(0, positives), slice(positives, None)
        self._see(np.array([self._symbols(half) for half in halves]))

    def _see(self, occurs: np.ndarray) -> None:
        self._halves: list[Block] | None = None
        self.occurs = occurs
        self.anywhere: Any = occurs.any(axis=0)
        self.shared: Any = occurs.all(axis=0)
        self.complete = bool(self.anywhere.all())

    def _symbols(self, words: slice) -> np.ndarray:
        """Which symbols occur in these words."""
        if self.sparse:
            d = self.counts.shape[1]
            return np.bincount(self.counts[words].indices, minlength=d) > 0
        return self.counts[:, words].any(axis=1)

    @property
    def mixed(self) -> bool:
        """Whether words of both labels are in it."""
        return 0 < self.positives < self.size

    def by_label(self) -> list[Block]:
        """The positive and the negative words, as views."""
        if self._halves is None:
            halves = [self._view(0, self.positives), self._view(self.positives, self.size)]
            for half, here in zip(halves, np.eye(2, dtype=bool), strict=True):
                half._see(self.occurs & here[:, None])
            # kept when whole: another thread may ask meanwhile
            self._halves = halves
        return self._halves

    def _view(self, lo: int, hi: int) -> Block:
        """Words lo..hi - 1, without looking anew at which symbols occur."""
        part = copy(self)
        part._halves = None
        part.counts = self.counts[lo:hi] if self.sparse else self.counts[:, lo:hi]
        part.weights = None if self.weights is None else self.weights[lo:hi]
        part.size = part.counts.shape[0 if self.sparse else 1]
        part.positives = min(max(self.positives - lo, 0), part.size)
        return part

    def floats(self) -> Any:
        """The counts as float64; valid until the next call in the same thread."""
        if self.sparse or self.counts.dtype == np.float64:
            return self.counts
        space = getattr(_workspace, "array", None)
        if space is None or space.size < self.counts.size:
            space = _workspace.array = np.empty(max(self.counts.size, CONVERTED))
        out = space[: self.counts.size].reshape(self.counts.shape)
        np.copyto(out, self.counts)
        return out

    def parts(self, width: int) -> Iterator[Block]:
        """The block cut into views of at most `width` words."""
        if width >= self.size:
            yield self
            return
        for lo in range(0, self.size, width):
            yield self._view(lo, lo + width)

    def holds(self, symbols: np.ndarray) -> np.ndarray:
        """Which words hold one of the symbols that a mask selects, bool of shape (n,)."""
        if self.sparse:
            return np.asarray(self.counts @ symbols.astype(float)) > 0
        return self.counts[symbols].any(axis=0)

    def take(self, words: np.ndarray) -> Block:
        """The words that a mask selects, as a block of its own."""
        counts = self.counts[words] if self.sparse else self.counts[:, words].astype(np.float64)
        weights = None if self.weights is None else self.weights[words]
        return Block(counts, weights, int(words[: self.positives].sum()))


def words(floats: Any, part: slice) -> Any:
    """The counts of some of the words."""
    return floats[:, part] if isinstance(floats, np.ndarray) else floats[part]


def forward(floats: Any, rows: np.ndarray) -> np.ndarray:
    """rows (B, d) times counts: (B, n)."""
    if isinstance(floats, np.ndarray):
        return rows @ floats
    return (floats @ rows.T).T


def backward(floats: Any, rows: np.ndarray) -> np.ndarray:
    """rows (B, n) times transposed counts: (B, d)."""
    if isinstance(floats, np.ndarray):
        return rows @ floats.T
    return (floats.T @ rows.T).T


def blocks(batch: WordBatch, entries: int) -> list[Block]:
    """The words of a batch as blocks, positive words first.

    `entries` is the number of dense counts in all batches evaluated together, which decides
    whether they are kept as float64.
    """
    width = batch.d if not batch.is_sparse else max(1, batch.counts.nnz // len(batch))
    floats = batch.is_sparse or entries <= FLOATS
    step = max(1, (BLOCK if floats else CONVERTED) // width)
    positive = batch.labels > 0
    order = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
    out = []
    for lo in range(0, order.size, step):
        words = order[lo : lo + step]
        counts = batch.counts[words]
        if batch.is_sparse:
            counts = counts.astype(np.float64)
        else:
            kind = np.dtype(np.float64) if floats else counts.dtype
            counts = np.ascontiguousarray(counts.T, dtype=kind)
        weights = None if batch.weights is None else batch.weights[words]
        out.append(Block(counts, weights, int(positive[words].sum())))
    return out
