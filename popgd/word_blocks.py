"""Blocks of words, positive ones first, laid out for the finite-sample kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from threading import local
from typing import Any, NamedTuple

import numpy as np

from .wordbatch import WordBatch

__all__ = ["Block", "blocks", "quiet"]

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


class Side(NamedTuple):
    """Words that share a reference symbol: those of one label, or all of a block.

    Attributes
    ----------
    words : slice
    labels : list of (slice, float)
        Words of one label each, and what residual weights v subtract from beta there: 2 for
        positive words, 0 for negative ones.
    absent : array of shape (d,)
        -inf for symbols that none of the words holds, and 0 for the others.
    counts : array of shape (d, m) or csr_array of shape (m, d), or None
        Counts of the words as float64; None when they have to be converted first.
    """

    words: slice
    labels: list[tuple[slice, float]]
    absent: np.ndarray
    counts: Any


class Block:
    """Counts of n words, transposed: shape (d, n).

    Attributes
    ----------
    counts : array of shape (d, n), or scipy.sparse.csr_array of shape (n, d)
        float64, or unsigned integers that `floats` converts.
    weights : array of shape (n,), or None
    positives : int
        The first so many words are positive, the others negative.
    apart : list of Side
        The labels in it, one or two. Sparse words are of one label, because cutting them takes
        a copy.
    together : list of Side
        All words, the same as `apart` when they are of one label.
    mixed : bool
        Whether both labels are in it.
    private : array of shape (d,)
        -inf for symbols that do not occur under all labels in it, and 0 for the others.
    """

    __slots__ = (
        "_absent", "apart", "counts", "mixed", "positives", "private", "size", "sparse",
        "together", "weights",
    )  # fmt: skip

    def __init__(self, counts: Any, weights: np.ndarray | None, positives: int):
        self.counts = counts
        self.weights = weights
        self.positives = positives
        self.sparse = not isinstance(counts, np.ndarray)
        self.size = counts.shape[0 if self.sparse else 1]
        held = [self._held(words) for words in self._labels()]
        self._absent = [np.where(symbols, 0.0, -np.inf) for symbols in held]
        self._part()

    def _labels(self) -> tuple[slice, slice]:
        """The positive and the negative words."""
        return slice(0, self.positives), slice(self.positives, self.size)

    def _held(self, words: slice) -> np.ndarray:
        """Which symbols occur in these words."""
        if self.sparse:
            d = self.counts.shape[1]
            return np.bincount(self.counts[words].indices, minlength=d) > 0
        return self.counts[:, words].any(axis=1)

    def _part(self) -> None:
        """Lay out the sides."""
        labels = zip(self._labels(), (2.0, 0.0), self._absent, strict=True)
        held = [
            (words, shift, absent) for words, shift, absent in labels if words.stop > words.start
        ]
        self.apart = [self._side([(words, shift)], absent) for words, shift, absent in held]
        absent = [absent for _, _, absent in held]
        self.private = np.minimum.reduce(absent)
        self.together, self.mixed = self.apart, len(held) == 2
        if self.mixed:
            both = [(words, shift) for words, shift, _ in held]
            self.together = [self._side(both, np.maximum.reduce(absent))]

    def _side(self, labels: list[tuple[slice, float]], absent: np.ndarray) -> Side:
        words = slice(labels[0][0].start, labels[-1][0].stop)
        counts = self.counts
        if not self.sparse:
            counts = counts[:, words] if counts.dtype == np.float64 else None
        return Side(words, labels, absent, counts)

    def _view(self, lo: int, hi: int) -> Block:
        """Words lo..hi - 1, without looking anew at which symbols occur."""
        part = copy(self)
        part.counts = self.counts[lo:hi] if self.sparse else self.counts[:, lo:hi]
        part.weights = None if self.weights is None else self.weights[lo:hi]
        part.size = part.counts.shape[0 if self.sparse else 1]
        part.positives = min(max(self.positives - lo, 0), part.size)
        part._part()
        return part

    def floats(self, sides: Sequence[Side]) -> list[Any]:
        """Each side's counts as float64; valid until the next call in the same thread."""
        if sides[0].counts is not None:
            return [side.counts for side in sides]
        space = getattr(_workspace, "array", None)
        if space is None or space.size < self.counts.size:
            space = _workspace.array = np.empty(max(self.counts.size, CONVERTED))
        out = space[: self.counts.size].reshape(self.counts.shape)
        np.copyto(out, self.counts)
        return [out[:, side.words] for side in sides]

    def parts(self, width: int) -> Iterator[Block]:
        """The block cut into views of at most `width` words."""
        if width >= self.size:
            yield self
            return
        for lo in range(0, self.size, width):
            yield self._view(lo, lo + width)

    @property
    def occurs(self) -> np.ndarray:
        """Symbols that occur, bool of shape (d,)."""
        return self.together[0].absent == 0

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


def blocks(batch: WordBatch, entries: int) -> list[Block]:
    """The words of a batch as blocks, positive words first.

    `entries` is the number of dense counts in all batches evaluated together, which decides
    whether they are kept as float64.
    """
    positive = batch.labels > 0
    labels = np.flatnonzero(positive), np.flatnonzero(~positive)
    if batch.is_sparse:
        width = max(1, batch.counts.nnz // len(batch))
        groups, kind, step = labels, np.dtype(np.float64), BLOCK // width
    else:
        small = entries <= FLOATS
        kind = np.dtype(np.float64) if small else batch.counts.dtype
        groups, step = (np.concatenate(labels),), (BLOCK if small else CONVERTED) // batch.d
    out = []
    for order in groups:
        for lo in range(0, order.size, max(1, step)):
            words = order[lo : lo + max(1, step)]
            counts = batch.counts[words]
            if batch.is_sparse:
                counts = counts.astype(kind)
            else:
                counts = np.ascontiguousarray(counts.T, dtype=kind)
            weights = None if batch.weights is None else batch.weights[words]
            out.append(Block(counts, weights, int(positive[words].sum())))
    return out
