"""Word batches as npz files: no pickles, written whole or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from . import languages, words
from ._files import META, load_arrays, save_arrays
from .errors import BadFile, BadParameter
from .word_counts import narrow
from .wordbatch import WordBatch

__all__ = ["load_batch", "save_batch"]

KIND = "WordBatch"
_CSR = ("data", "indices", "indptr")
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
        arrays |= {name: getattr(batch.counts, name) for name in _CSR}
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
        When the file is missing, damaged or no word batch; the message says what was found.
    """
    try:
        arrays, meta = load_arrays(path, KIND)
    except BadFile as error:
        found = _look(path)
        if found is None:
            raise
        message = f"path = {_name(path)!r}: {found}; pass a file that WordBatch.save wrote."
        raise BadFile(message) from error
    try:
        return _restore(arrays, meta)
    except BadParameter as error:
        # the remedy of a call is none for a file
        rule = str(error).rsplit("; ", 1)[0]
    except (TypeError, ValueError, OverflowError):
        rule = "its arrays make no batch"
    message = f"path = {_name(path)!r}: holds a damaged word batch, {rule}; save the batch again."
    raise BadFile(message)


def _name(path: Any) -> str:
    return os.fsdecode(path)


def _look(path: Any) -> str | None:
    """What a file that cannot be read as arrays is; None where that is known already."""
    try:
        with open(path, "rb") as file:
            head = file.read(6)
    except (OSError, ValueError):
        return None
    if not head:
        return "is an empty file"
    if head == b"\x93NUMPY":
        return "holds one bare array"
    if not head.startswith(b"PK"):
        return "is no npz archive"
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            if META not in names:
                return f"is an archive of {names} without the description of a batch"
            if any(_has_objects(archive, f"{name}.npy") for name in names):
                return "holds Python objects, which are never loaded"
            json.loads(str(np.load(archive.open(f"{META}.npy")))).get("kind")
        return None
    except Exception:
        # whatever zipfile, zlib, json and numpy make of random bytes
        return "is cut off or damaged"


def _has_objects(archive: zipfile.ZipFile, name: str) -> bool:
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        return read(file)[2].hasobject


def _restore(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> WordBatch:
    for name in ("d", "total", "task"):
        if name not in meta:
            raise _flaw("meta", meta, f"says nothing of {name!r}")
    d = check.integer("d", meta["d"], 1)
    needed = {"labels"} | ({"counts"} if "counts" in arrays or not set(_CSR) & set(arrays)
                           else set(_CSR))  # fmt: skip
    missing = sorted(needed - set(arrays))
    if missing:
        raise _flaw("arrays", sorted(arrays), f"has no {' and no '.join(map(repr, missing))}")
    counts = arrays["counts"] if "counts" in arrays else _csr(arrays, d)
    if np.shape(counts)[1:] != (d,):
        raise _flaw("counts", np.shape(counts), f"must have d = {d} columns")
    try:
        task = None if meta["task"] is None else restore_task(meta["task"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise _flaw("task", meta["task"], "describes no task") from None
    return WordBatch(
        counts, arrays["labels"], arrays.get("weights"), task=task, total=meta["total"]
    )


def _flaw(name: str, value: Any, rule: str) -> BadParameter:
    return check.refuse(name, value, rule, "")


def _csr(arrays: dict[str, np.ndarray], d: int) -> Any:
    from scipy.sparse import csr_array

    data, indices, indptr = (arrays[name] for name in _CSR)
    whole = data.dtype.kind in "iu" and (data.size == 0 or data.min() >= 0)
    if not whole:
        raise _flaw("data", data, "must hold non-negative integers")
    try:
        matrix = csr_array((narrow(data), indices, indptr), shape=(indptr.size - 1, d))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError):
        raise _flaw("indices, indptr", indptr, "do not describe a sparse matrix") from None
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
