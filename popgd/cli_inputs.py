"""What command-line options mean: tasks, weights from scalars or files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _validate as check
from ._files import read_npz
from .errors import BadFile, BadParameter, PrecisionExhausted
from .languages import And, Occurrence, Or, Task
from .symmetric_state import State
from .words import Geometric, Words

__all__ = [
    "SCALARS",
    "FileWeights",
    "number",
    "one_start",
    "output_file",
    "rates",
    "read_weights",
    "task",
    "text_number",
    "zero",
]

SCALARS = ("gap", "beta-target", "beta-background")
"""Options that give symmetric weights, in the order of their texts."""

LANGUAGES = ("occurrence", "or", "and")
FORMATS = ".npz, .csv or .json"


@dataclass(frozen=True)
class FileWeights:
    """Weights as a file has them.

    Attributes
    ----------
    alpha, beta : sequence
        Numbers as text where the file is text, so that 0.1 can mean one tenth.
    residual : sequence or None
        beta - 2 on the targets.
    """

    alpha: Any
    beta: Any
    residual: Any = None

    def floats(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The weights as doubles."""
        residual = None if self.residual is None else _floats("residual", self.residual)
        return _floats("alpha", self.alpha), _floats("beta", self.beta), residual


def _floats(name: str, values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return check.real_array(name, values)
    each = [
        number(f"{name}[{i}]", x) if isinstance(x, str) else check.real(f"{name}[{i}]", x)
        for i, x in enumerate(values)
    ]
    return np.array(each)


def _infinite(value: str) -> bool:
    return value.strip().lstrip("+-").lower() in ("inf", "infinity")


def text_number(name: str, value: str) -> Any:
    """An option's text as an exact number: 0.1 is one tenth, "sqrt(10)" and "1/3" work."""
    from .expression import exact

    return float(value) if _infinite(value) else exact(value, name=name)


def number(name: str, value: str) -> float:
    """An option's text as a double; expressions are rounded once."""
    try:
        result = float(value)
    except ValueError:
        result = _rounded(name, value)
    if math.isnan(result):
        raise check.refuse(name, value, "is not a number", "pass a number or an expression")
    if math.isinf(result) and not _infinite(value):
        raise _too_large(name, value)
    return result


def _rounded(name: str, value: str) -> float:
    from .ball import enclose

    exact = text_number(name, value)
    try:
        return enclose(exact, 17).to_float()
    except (OverflowError, PrecisionExhausted):
        raise _too_large(name, value) from None


def _too_large(name: str, value: str) -> BadParameter:
    remedy = "pass a smaller number, or inf where a limit is meant"
    return check.refuse(name, value, f"is too large, {check.BEYOND}", remedy)


def zero(scalars: Sequence[str]) -> bool:
    """Whether the texts of `SCALARS` are all the number 0."""
    return all(number(name, text) == 0 for name, text in zip(SCALARS, scalars, strict=True))


def rates(lr: str, lr_attention: str | None) -> dict[str, float]:
    """Step sizes by layer."""
    output = number("lr", lr)
    attention = output if lr_attention is None else number("lr-attention", lr_attention)
    return {"O": output, "A": attention}


def one_start(given: FileWeights | None, scalars: Sequence[str]) -> None:
    """Refuse scalars beside a file: neither could be followed without ignoring the other."""
    if given is None:
        return
    for name, text in zip(SCALARS, scalars, strict=True):
        if text.strip() != "0":
            remedy = f"leave out --{name} or --weights"
            raise check.refuse(name, text, "does not go with weights from a file", remedy)


def output_file(name: str, path: Path) -> Path:
    """A file to be written, refused before the work when it cannot be one."""
    if path.is_dir():
        raise check.refuse(name, str(path), "names no file", "pass for example run.npz")
    return path


def task(language: str, d: int, targets: Sequence[int], p: str | None) -> Task:
    """The task that the options name."""
    kind = check.choice("language", language, LANGUAGES)
    words = None
    if p is not None:
        exact_p = getattr(text_number("p", p), "fraction", None)
        if exact_p is None:
            raise check.refuse("p", p, "must be rational", "pass for example 1/49 or 0.02")
        if not 0 < exact_p <= 1 or float(exact_p) == 0:
            remedy = "pass a probability p with 0 < p <= 1"
            raise check.refuse("p", p, "must lie in (0, 1]", remedy)
        words = Words(Geometric(exact_p))
    if kind == "occurrence":
        if len(targets) > 1:
            remedy = "pass one, or --language or, or --language and"
            raise check.refuse("target", list(targets), "occurrence has one target", remedy)
        return Occurrence(d, targets[0] if targets else 0, words)
    return (Or if kind == "or" else And)(d, targets or (0, 1), words)


def state(gap: str, beta_target: str, beta_background: str) -> State:
    """Symmetric weights from three scalars; only the gap of attention matters."""
    texts = (gap, beta_target, beta_background)
    attention, *output = (number(name, text) for name, text in zip(SCALARS, texts))
    return State(attention, 0.0, *output)


def read_weights(path: Path) -> FileWeights:
    """Weights from a file: npz (alpha, beta, or a saved trajectory), csv or json.

    Raises
    ------
    BadFile
        When the file is missing, of another kind, or holds no weights.
    """
    readers = {".npz": _npz, ".csv": _csv, ".json": _json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise BadFile(f"weights = {str(path)!r}: is of no known kind; pass a {FORMATS} file.")
    try:
        given = reader(path)
        for name in ("alpha", "beta", "residual"):
            _vector(name, getattr(given, name))
        return given
    except BadFile:
        raise
    except OSError as error:
        why = f"could not be read ({error.strerror or error}); check the name"
    except _Unfit as error:
        why = f"{error}; save vectors, columns or keys of weights named alpha and beta"
    except Exception:
        # numpy, zipfile and zlib raise many kinds for damaged archives
        kind = path.suffix[1:].lower()
        why = f"holds no weights: is no {kind} file or a damaged one; save it again"
    raise BadFile(f"weights = {str(path)!r}: {why}.")


class _Unfit(ValueError):
    """A file of the right kind without weights in it."""


def _vector(name: str, values: Any) -> None:
    if values is None and name == "residual":
        return
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iuf":
            raise _Unfit(f"{name} of dtype {values.dtype} must hold real numbers")
        if values.ndim != 1:
            raise _Unfit(f"{name} has shape {values.shape}, one vector is needed")
    elif not isinstance(values, list):
        raise _Unfit(f"{name} must be a list of numbers")
    for i, x in enumerate(values if isinstance(values, list) else ()):
        if isinstance(x, bool) or not isinstance(x, (int, float, str)):
            raise _Unfit(f"{name}[{i}] = {json.dumps(x)[:40]} must be a number")
    if len(values) == 0:
        raise _Unfit(f"{name} is empty")


def _npz(path: Path) -> FileWeights:
    arrays = read_npz(path)
    if "stored_alpha" in arrays:
        from .trajectory import Trajectory

        return FileWeights(*Trajectory.load(path).final)
    if not {"alpha", "beta"} <= arrays.keys():
        held = ", ".join(sorted(arrays)) or "nothing"
        raise _Unfit(f"holds no weights but {held}"[:100])
    return FileWeights(arrays["alpha"], arrays["beta"], arrays.get("residual"))


def _csv(path: Path) -> FileWeights:
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    if not rows:
        raise _Unfit("holds no weights but is empty")
    names = [cell.strip().lower() for cell in rows[0]]
    if "alpha" in names and "beta" in names:
        at, rows = (names.index("alpha"), names.index("beta")), rows[1:]
    elif len(names) == 2:
        at = (0, 1)
    else:
        raise _Unfit("holds no weights: has no columns alpha and beta")
    for i, row in enumerate(rows, 1):
        if len(row) <= max(at):
            raise _Unfit(f"holds no weights in row {i}: it has {len(row)} of the columns")
    alpha, beta = ([row[i].strip() for row in rows] for i in at)
    return FileWeights(alpha, beta)


def _json(path: Path) -> FileWeights:
    # text, so that 0.1 stays the decimal that was written
    data = json.loads(path.read_text(), parse_float=str)
    if not isinstance(data, dict) or not {"alpha", "beta"} <= data.keys():
        raise _Unfit("holds no weights: is no object with keys alpha and beta")
    return FileWeights(data["alpha"], data["beta"], data.get("residual"))
