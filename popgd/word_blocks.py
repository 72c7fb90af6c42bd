"""Blocks of equally labelled words, laid out for the finite-sample kernel."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from threading import local
from typing import Any

import numpy as np

from .wordbatch import WordBatch

__all__ = ["Block", "blocks"]

# Counts converted at a time: 4 MB as float64, so that four passes run from the cache.
BLOCK = 2**19
# Batches up to 16 MB keep their counts as float64; larger ones convert block by block, which
# costs less than reading eight times as much memory.
FLOATS = 2**21

_workspace = local()


class Block:
    """Counts of n words of one label, transposed: shape (d, n).

    Attributes
    ----------
    counts : array of shape (d, n), or scipy.sparse.csr_array of shape (n, d)
        float64, or unsigned integers that `floats` converts.
    weights : array of shape (n,), or None
    positive : bool
        The label.
    occurs : bool array of shape (d,)
        Symbols that occur in some word of the block.
    complete : bool
        Whether all symbols occur.
    """

    __slots__ = ("complete", "counts", "occurs", "positive", "size", "sparse", "weights")

    def __init__(self, counts: Any, weights: np.ndarray | None, positive: bool):
        self.counts = counts
        self.weights = weights
        self.positive = positive
        self.sparse = not isinstance(counts, np.ndarray)
        self.size = counts.shape[0 if self.sparse else 1]
        if self.sparse:
            self.occurs = np.bincount(counts.indices, minlength=counts.shape[1]) > 0
        else:
            self.occurs = counts.any(axis=1)
        self.complete = bool(self.occurs.all())

    def floats(self) -> Any:
        """The counts as float64; valid until the next call in the same thread."""
        if self.sparse or self.counts.dtype == np.float64:
            return self.counts
        space = getattr(_workspace, "array", None)
        if space is None or space.size < self.counts.size:
            space = _workspace.array = np.empty(max(self.counts.size, BLOCK))
        out = space[: self.counts.size].reshape(self.counts.shape)
        np.copyto(out, self.counts)
        return out

    def parts(self, width: int) -> Iterator[Block]:
        """The block cut into views of at most `width` words."""
        if width >= self.size:
            yield self
            return
        for lo in range(0, self.size, width):
            words = slice(lo, lo + width)
            part = copy(self)
            part.counts = self.counts[words] if self.sparse else self.counts[:, words]
            part.weights = None if self.weights is None else self.weights[words]
            part.size = part.counts.shape[0 if self.sparse else 1]
            yield part

    def holds(self, symbols: np.ndarray) -> np.ndarray:
        """Which words hold one of the symbols that a mask selects, bool of shape (n,)."""
        if self.sparse:
            return np.asarray(self.counts @ symbols.astype(float)) > 0
        return self.counts[symbols].any(axis=0)

    def take(self, words: np.ndarray) -> Block:
        """The words that a mask selects, as a block of its own."""
        counts = self.counts[words] if self.sparse else self.counts[:, words].astype(np.float64)
        weights = None if self.weights is None else self.weights[words]
        return Block(counts, weights, self.positive)


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
    step = max(1, BLOCK // width)
    floats = batch.is_sparse or entries <= FLOATS
    out = []
    for positive, words in _runs(batch, step):
        counts = batch.counts[words]
        if batch.is_sparse:
            counts = counts.astype(np.float64)
        else:
            kind = np.dtype(np.float64) if floats else counts.dtype
            counts = np.ascontiguousarray(counts.T, dtype=kind)
        weights = None if batch.weights is None else batch.weights[words]
        out.append(Block(counts, weights, positive))
    return out


def _runs(batch: WordBatch, step: int) -> Iterator[tuple[bool, np.ndarray]]:
    for positive in (True, False):
        words = np.flatnonzero((batch.labels > 0) == positive)
        for lo in range(0, words.size, step):
            yield positive, words[lo : lo + step]
