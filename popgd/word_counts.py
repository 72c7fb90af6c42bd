"""Checks and storage of word counts: what makes a WordBatch valid."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Task

__all__ = [
    "CSR_FILL",
    "CSR_SIZE",
    "alphabet",
    "check_counts",
    "check_labels",
    "check_symbols",
    "check_task",
    "check_weights",
    "narrow",
    "sparse_counts",
    "worth_csr",
]

# Below this fill CSR is the faster and the smaller store; both measured at d = 50 to 20,000,
# where the two cross between 0.05 and 0.1 (time) and at 0.2 (memory).
CSR_FILL = 1 / 16
# Small matrices stay dense: the gain would be less than the cost of importing scipy.sparse.
CSR_SIZE = 2**20
# Weights may add up to this: risks are divided by the sum at the end.
LARGEST_SUM = 1e150
# Places are numbered in 64 bits.
MOST_PLACES = 2**62
_CHUNK = 2**22


def worth_csr(nonzero: float, size: int) -> bool:
    """Whether `size` counts, `nonzero` of them positive, are better kept as CSR."""
    return size >= CSR_SIZE and nonzero < CSR_FILL * size


def sparse_counts(word: np.ndarray, symbols: np.ndarray, n: int, d: int) -> Any:
    """CSR counts from the word index and the symbol of every position, sorted by word."""
    from scipy.sparse import csr_array

    if n * d > MOST_PLACES:
        rule = f"{n} words over so many symbols are more than 2^62 places"
        raise check.refuse("d", d, rule, "take fewer words, or number the symbols that occur")

    keys = np.sort(word * d + symbols)
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    data = np.diff(np.append(first, keys.size))
    row, column = np.divmod(keys[first], d)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    kind = np.int32 if max(d, keys.size) < 2**31 else np.int64
    parts = (narrow(data), column.astype(kind), indptr.astype(kind))
    return csr_array(parts, shape=(n, d))


def narrow(counts: np.ndarray) -> np.ndarray:
    """The same counts in the smallest unsigned type that holds them."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))), copy=True)


def alphabet(d: Any, task: Task | None) -> int:
    if d is None:
        if task is None:
            raise check.refuse("d", d, "the alphabet size is unknown", "pass d or task=")
        check_task(task, None)
        return task.d
    d = check.integer("d", d, 2)
    check_task(task, d)
    return d


def check_task(task: Any, d: int | None) -> None:
    if task is None and d is not None:
        return
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass for example popgd.Occurrence(50)")
    if d is not None and task.d != d:
        rule = f"is a task over {task.d} symbols, the counts have d = {d}"
        raise check.refuse("task", task, rule, "use one alphabet size")


def check_symbols(rows: list[list[Any]], lengths: np.ndarray, d: int) -> np.ndarray:
    empty = np.flatnonzero(lengths == 0)
    if empty.size:
        rule = "a word needs at least one symbol"
        raise check.refuse(f"words[{empty[0]}]", [], rule, "drop empty words")
    symbols = list(itertools.chain.from_iterable(rows))
    plain = bool not in set(map(type, symbols))
    try:
        flat = np.array(symbols)
    except ValueError:
        flat = np.array(symbols, dtype=object)
    bad = np.zeros(flat.shape[:1], dtype=bool)
    if flat.ndim == 1 and flat.dtype.kind in "iu" and plain:
        bad = (flat < 0) | (flat >= d)
        if not bad.any():
            return flat.astype(np.int64)
    ends = np.cumsum(lengths)
    word = int(np.searchsorted(ends, np.flatnonzero(bad)[0], side="right")) if bad.any() else 0
    for i, row in enumerate(rows[word:], word):
        for t, value in enumerate(row):
            check.symbol(f"words[{i}][{t}]", value, d)
    return flat.astype(np.int64)


def check_counts(counts: Any) -> Any:
    remedy = "pass non-negative integers of shape (N, d), one row a word"
    if hasattr(counts, "tocsr"):
        return _check_sparse(counts, remedy)
    try:
        array = np.asarray(counts)
    except ValueError:
        raise check.refuse("counts", counts, "must be a rectangular array", remedy) from None
    if array.ndim != 2 or array.shape[1] < 2:
        raise check.refuse("counts", counts, f"has shape {array.shape}, needs d >= 2", remedy)
    if not array.shape[0]:
        raise check.refuse("counts", counts, "a batch needs at least one word", remedy)
    _check_entries(array, remedy)
    empty = np.flatnonzero(~array.any(axis=1))
    if empty.size:
        rule = "a word needs at least one symbol"
        raise check.refuse(f"counts[{empty[0]}]", array[empty[0]], rule, "drop empty words")
    array = narrow(array)
    if array.size >= CSR_SIZE and worth_csr(int(np.count_nonzero(array)), array.size):
        from scipy.sparse import csr_array

        return csr_array(array)
    return np.ascontiguousarray(array)


def _check_sparse(counts: Any, remedy: str) -> Any:
    from scipy.sparse import csr_array

    if counts.ndim != 2 or counts.shape[1] < 2:
        raise check.refuse("counts", counts.shape, "is the wrong shape, needs d >= 2", remedy)
    if not counts.shape[0]:
        raise check.refuse("counts", counts.shape, "a batch needs at least one word", remedy)
    # entries of one place are added up: not in a type that may overflow
    narrow_type = counts.dtype.kind in "iu" and counts.dtype.itemsize < 8
    matrix: Any = csr_array(counts.astype(np.int64) if narrow_type else counts, copy=True)
    _check_entries(matrix.data, remedy)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
    if empty.size:
        rule = "a word needs at least one symbol"
        raise check.refuse(f"counts[{empty[0]}]", [], rule, "drop empty words")
    size = matrix.shape[0] * matrix.shape[1]
    if not worth_csr(matrix.nnz, size):
        return narrow(matrix.toarray())
    return csr_array((narrow(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def _check_entries(values: np.ndarray, remedy: str) -> None:
    if values.dtype.kind not in "iuf":
        raise check.refuse("counts", values, "must hold integers", remedy)
    if values.dtype.kind == "u" and values.dtype.itemsize < 8:
        return
    # in slices, so that the temporaries stay small beside the counts
    flat = values.reshape(-1)
    for lo in range(0, flat.size, _CHUNK):
        part = flat[lo : lo + _CHUNK]
        bad = ~(part >= 0) | (part > 2**53)
        if values.dtype.kind == "f":
            bad |= part != np.floor(part)
        if bad.any():
            rule = "every count must be a non-negative integer, at most 2^53"
            raise check.refuse("counts entry", part[bad][0].item(), rule, remedy)


def check_labels(labels: Any, n: int) -> np.ndarray:
    array = np.asarray(labels)
    remedy = "pass +1 for words in the language and -1 for the others"
    if array.shape != (n,):
        rule = f"has shape {array.shape}, needs one label for each of the {n} words"
        raise check.refuse("labels", labels, rule, remedy)
    if array.dtype.kind not in "iuf" or not (abs(array.astype(float)) == 1).all():
        raise check.refuse("labels", labels, "every label must be +1 or -1", remedy)
    return array.astype(np.int8)


def check_weights(weights: Any, n: int) -> np.ndarray | None:
    if weights is None:
        return None
    remedy = "pass one finite non-negative weight a word, or None"
    array = check.real_array("weights", weights, 0.0, math.inf, closed="left", remedy=remedy)
    if array.shape != (n,):
        rule = f"has shape {array.shape}, needs one weight for each of the {n} words"
        raise check.refuse("weights", weights, rule, remedy)
    if not array.any():
        raise check.refuse("weights", weights, "at least one must be positive", remedy)
    if not array.max() <= LARGEST_SUM / n:
        rule = f"their sum may be beyond {LARGEST_SUM:g}, and weighted risks beyond float64"
        raise check.refuse("weights", float(array.max()), rule, "scale them: only ratios matter")
    return array
