"""Word batches as npz files: no pickles, written whole or not at all."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from . import languages, words
from ._files import load_arrays, save_arrays
from .errors import BadFile, BadParameter
from .word_counts import narrow
from .wordbatch import WordBatch

__all__ = ["load_batch", "save_batch"]

KIND = "WordBatch"
_TASKS = {"Occurrence": languages.Occurrence, "Or": languages.Or, "And": languages.And}
_LAWS = {
    "Geometric": words.Geometric,
    "Poisson": words.Poisson,
    "FixedLength": words.FixedLength,
    "UniformLength": words.UniformLength,
}


def save_batch(batch: WordBatch, path: Any) -> None:
    """Write counts, labels, weights and task to `path`.

    Raises
    ------
    BadFile
        When the file cannot be written; what was there is unchanged.
    """
    arrays: dict[str, Any] = {"labels": batch.labels}
    if batch.weights is not None:
        arrays["weights"] = batch.weights
    if batch.is_sparse:
        arrays["data"] = batch.counts.data
        arrays["indices"] = batch.counts.indices
        arrays["indptr"] = batch.counts.indptr
    else:
        arrays["counts"] = batch.counts
    task = None if batch.task is None else describe_task(batch.task)
    meta = {"kind": KIND, "d": batch.d, "total": batch.total, "task": task}
    save_arrays(path, arrays, meta)


def load_batch(path: Any) -> WordBatch:
    """Read what `save_batch` wrote, checking it like any other input.

    Raises
    ------
    BadFile
        When the file is missing, damaged or no word batch.
    """
    arrays, meta = load_arrays(path, KIND)
    try:
        counts = arrays["counts"] if "counts" in arrays else _csr(arrays, int(meta["d"]))
        task = None if meta["task"] is None else restore_task(meta["task"])
        weights = arrays.get("weights")
        return WordBatch(counts, arrays["labels"], weights, task=task, total=meta["total"])
    except (BadParameter, KeyError, TypeError, ValueError) as error:
        message = f"path = {str(path)!r}: is a damaged word batch ({error}); save it again."
        raise BadFile(message) from error


def _csr(arrays: dict[str, np.ndarray], d: int) -> Any:
    from scipy.sparse import csr_array

    parts = (narrow(arrays["data"]), arrays["indices"], arrays["indptr"])
    matrix = csr_array(parts, shape=(arrays["indptr"].size - 1, d))
    matrix.check_format(full_check=True)
    return matrix


def describe_task(task: languages.Task) -> dict[str, Any]:
    """A task as plain data; numbers as exact fractions."""
    law = task.words.length
    (name, value), *_ = ((k, getattr(law, k)) for k in law.__dataclass_fields__)  # type: ignore[attr-defined]
    exact = getattr(law, f"exact_{name}", value)
    symbols = task.words.symbols
    return {
        "language": type(task).__name__,
        "d": task.d,
        "targets": list(task.targets),
        "law": type(law).__name__,
        "parameter": str(Fraction(exact)),
        "symbols": None if symbols is None else list(symbols),
    }


def restore_task(plain: dict[str, Any]) -> languages.Task:
    """The task that `describe_task` described."""
    law = _LAWS[plain["law"]](Fraction(plain["parameter"]))
    distribution = words.Words(law, plain["symbols"])
    language = _TASKS[plain["language"]]
    targets = plain["targets"]
    if language is languages.Occurrence:
        return language(plain["d"], targets[0], distribution)
    return language(plain["d"], targets, distribution)
