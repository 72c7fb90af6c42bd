"""WordBatch: a finite set of words, stored as symbol counts.

The model sees a word only through how often each symbol occurs (THEORY 1), so a batch is a
count matrix with labels. Dense counts use the smallest unsigned integer type that holds them;
CSR takes over when few entries are non-zero.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Task
from .word_counts import (
    alphabet,
    check_counts,
    check_labels,
    check_symbols,
    check_task,
    check_weights,
    sparse_counts,
    worth_csr,
)

__all__ = ["WordBatch"]

MOST_ROWS, MOST_COUNTS = 2**22, 2**26


class WordBatch:
    """N words as symbol counts, with labels and optional weights.

    Parameters
    ----------
    counts : array_like or scipy.sparse array of shape (N, d)
        counts[n, i] is the number of times symbol i occurs in word n; non-negative integers,
        at least one symbol in every word. Copied.
    labels : array_like of shape (N,), optional
        +1 or -1. None takes them from `task`.
    weights : array_like of shape (N,), optional
        Non-negative weight of each word in every average; None weighs all words alike.
    task : Task, optional
        The language and word distribution the words belong to: names the targets, which
        `residual` arguments and `minimize_output` refer to.
    total : float, optional
        What weighted sums are divided by. None means the sum of the weights, so that averages
        are means; 1.0 keeps probabilities as they are, also when they sum to less than 1.

    Attributes
    ----------
    counts : array or scipy.sparse.csr_array of shape (N, d), unsigned integers
    labels : int8 array of shape (N,)
    weights : float64 array of shape (N,), or None
    task, total
        As given; `total` is resolved to a float.

    Raises
    ------
    BadParameter
        No words, an empty word, counts that are negative, fractional or bool, labels other
        than +1 and -1, weights of the wrong length, negative or NaN, lengths that disagree.

    Notes
    -----
    Memory: N * d bytes dense while no count exceeds 255 (twice that up to 65,535), or about 5
    bytes per non-zero entry in CSR, which is chosen when N * d >= 2^20 and the measured
    fill is below 1/16. Source: THEORY 6. Error: none.
    """

    __slots__ = ("counts", "labels", "task", "total", "weights")

    counts: Any
    labels: np.ndarray
    weights: np.ndarray | None
    task: Task | None
    total: float

    def __init__(
        self,
        counts: Any,
        labels: Any = None,
        weights: Any = None,
        *,
        task: Task | None = None,
        total: float | None = None,
    ):
        matrix = check_counts(counts)
        check_task(task, matrix.shape[1])
        if labels is None:
            labels = labels_of(task, matrix)
        else:
            labels = check_labels(labels, matrix.shape[0])
        self._fill_in(matrix, labels, check_weights(weights, matrix.shape[0]), task, total)

    def _fill_in(
        self, counts: Any, labels: np.ndarray, weights: Any, task: Task | None, total: Any
    ) -> None:
        self.counts = counts
        self.labels = labels
        self.weights = weights
        self.task = task
        mass = float(counts.shape[0]) if weights is None else math.fsum(weights)
        self.total = mass if total is None else check.real("total", total, 0.0)

    @classmethod
    def _trusted(
        cls, counts: Any, labels: np.ndarray, weights: Any, task: Task | None, total: Any = None
    ) -> WordBatch:
        """Without checks or copies, for makers of valid batches."""
        batch = cls.__new__(cls)
        batch._fill_in(counts, labels, weights, task, total)
        return batch

    @classmethod
    def from_words(
        cls,
        words: Iterable[Iterable[int]],
        d: int | None = None,
        *,
        task: Task | None = None,
        labels: Any = None,
        weights: Any = None,
    ) -> WordBatch:
        """A batch from explicit words.

        Parameters
        ----------
        words : iterable of sequences of int
            Each word is a sequence of symbols in 0..d-1, for example [[0, 1, 1], [2]].
        d : int, optional
            Alphabet size; None takes it from `task`.
        task, labels, weights
            As for WordBatch; one of `task` and `labels` must be given.

        Raises
        ------
        BadParameter
            No words, an empty word, a symbol outside 0..d-1, or an argument WordBatch refuses.
        """
        if isinstance(d, Task):
            raise check.refuse("d", d, "is a task", "pass it as task=")
        d = alphabet(d, task)
        try:
            rows = [list(word) for word in words]
        except TypeError:
            remedy = "pass a sequence of words, each a sequence of symbols, such as [[0, 1], [2]]"
            raise check.refuse("words", words, "is no sequence of words", remedy) from None
        if not rows:
            raise check.refuse("words", rows, "a batch needs at least one word", "pass words")
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = check_symbols(rows, lengths, d)
        word = np.repeat(np.arange(len(rows)), lengths)
        if worth_csr(flat.size, len(rows) * d):
            return cls(sparse_counts(word, flat, len(rows), d), labels, weights, task=task)
        counts = np.bincount(word * d + flat, minlength=len(rows) * d).reshape(-1, d)
        return cls(counts, labels, weights, task=task)

    @classmethod
    def exhaustive(cls, task: Task, longest: int) -> WordBatch:
        """Every word of at most `longest` symbols, weighted by its probability.

        Words with equal counts are one row, so there are up to binom(d + longest, d) - 1. The
        weights are not rescaled (`total` is 1): averages are the exact sum truncated there.

        Parameters
        ----------
        task : Task
        longest : int
            Length of the longest words.

        Raises
        ------
        BadParameter
            When `longest` exceeds 170, when no word is that short, or when more than 2^22 rows
            or 2^26 counts would be needed.

        Notes
        -----
        Source: THEORY 4. Error: rounding of the probabilities, about 1e-15 relative.
        """
        check_task(task, None)
        longest = check.integer("longest", longest, 1, 170)
        rows = math.comb(task.d + longest, longest) - 1
        remedy = "lower longest, or sample words with popgd.sample_words"
        if rows > MOST_ROWS:
            raise check.refuse("longest", longest, f"needs {rows:.3g} rows, at most 2^22", remedy)
        if rows * task.d > MOST_COUNTS:
            rule = f"needs {rows} rows of {task.d} counts, at most 2^26 in all"
            raise check.refuse("longest", longest, rule, remedy)
        counts = _compositions(task.d, longest)
        weights = _word_probabilities(task, counts)
        possible = weights > 0
        if not possible.any():
            rule = "no word that short has positive probability"
            raise check.refuse("longest", longest, rule, "raise longest")
        return cls(counts[possible], None, weights[possible], task=task, total=1.0)

    def __len__(self) -> int:
        return self.counts.shape[0]

    @property
    def d(self) -> int:
        """Alphabet size."""
        return self.counts.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the counts are a CSR matrix."""
        return not isinstance(self.counts, np.ndarray)

    @property
    def lengths(self) -> np.ndarray:
        """Word lengths in symbols, int64 of shape (N,)."""
        if not self.is_sparse:
            return self.counts.sum(axis=1, dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(self.counts.data, dtype=np.int64)])
        return np.diff(ends[self.counts.indptr])

    @property
    def fill(self) -> float:
        """Fraction of non-zero counts."""
        nonzero = self.counts.nnz if self.is_sparse else np.count_nonzero(self.counts)
        return nonzero / (len(self) * self.d)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        parts = [self.labels, self.weights]
        if self.is_sparse:
            parts += [self.counts.data, self.counts.indices, self.counts.indptr]
        else:
            parts.append(self.counts)
        return sum(part.nbytes for part in parts if part is not None)

    def __getitem__(self, index: Any) -> WordBatch:
        """The words that an integer, slice, mask or array of integers selects.

        A batch of its own, over whose weights averages go: its `total` is their sum.
        """
        remedy = "use an integer, a slice, a mask or a vector of integers"
        if isinstance(index, (bool, np.bool_)) or np.ndim(index) > 1 or index is None:
            raise check.refuse("index", index, "selects no rows", remedy)
        rows = np.atleast_1d(np.arange(len(self))[index])
        if not rows.size:
            raise check.refuse("index", index, "selects no words", "select at least one word")
        if rows.ndim > 1:
            raise check.refuse("index", index, "has more than one axis", remedy)
        weights = None if self.weights is None else self.weights[rows]
        if weights is not None and not weights.any():
            rule = "selects words of weight zero only"
            raise check.refuse("index", index, rule, "select a word of positive weight")
        return WordBatch._trusted(self.counts[rows], self.labels[rows], weights, self.task)

    def save(self, path: str | Path) -> None:
        """Write an npz file, without pickles and all or nothing; see `load`."""
        from .batch_files import save_batch

        save_batch(self, path)

    @staticmethod
    def load(path: str | Path) -> WordBatch:
        """Read a batch written by `save`."""
        from .batch_files import load_batch

        return load_batch(path)

    def __repr__(self) -> str:
        kind = "CSR" if self.is_sparse else "dense"
        positive = int((self.labels > 0).sum())
        return (
            f"WordBatch({len(self)} words, d={self.d}, {positive} positive, "
            f"{kind} {self.counts.dtype}, {self.nbytes / 1e6:.3g} MB)"
        )


def labels_of(task: Task | None, counts: Any) -> np.ndarray:
    """The labels that `task` gives the words, int8."""
    if task is None:
        raise check.refuse("labels", None, "need a task to follow from", "pass labels or task=")
    if isinstance(counts, np.ndarray):
        return task.labels(counts).astype(np.int8)
    # selecting columns would take memory for all d of them
    word = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    held = [word[counts.indices == s] for s in task.targets]
    present = np.stack([np.bincount(rows, minlength=counts.shape[0]) for rows in held], axis=-1)
    return task.labels_by_targets(present).astype(np.int8)


def _compositions(d: int, longest: int) -> np.ndarray:
    """All count vectors with 1 <= sum <= longest, by stars and bars."""
    bars = itertools.chain.from_iterable(itertools.combinations(range(d + longest), d))
    places = np.fromiter(bars, dtype=np.int64).reshape(-1, d)
    counts = np.diff(places, axis=1, prepend=-1) - 1
    return counts[counts.any(axis=1)]


def _word_probabilities(task: Task, counts: np.ndarray) -> np.ndarray:
    """P(length) times the multinomial probability of the counts."""
    factorial = np.array([float(math.factorial(k)) for k in range(int(counts.sum(1).max()) + 1)])
    length = counts.sum(axis=1)
    ways = factorial[length] / np.prod(factorial[counts], axis=1)
    pi = task.words.probabilities(task.d)
    return task.words.length.pmf(length) * ways * np.prod(pi**counts, axis=1)
