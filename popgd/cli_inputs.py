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
from .errors import BadFile
from .languages import And, Occurrence, Or, Task
from .symmetric_state import State
from .words import Geometric, Words

__all__ = ["FileWeights", "number", "read_weights", "task", "text_number"]

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


def _floats(name: str, values: Sequence[Any]) -> np.ndarray:
    try:
        return np.array([float(x) for x in values])
    except (TypeError, ValueError):
        raise check.refuse(name, list(values), "must hold numbers", "check the file") from None


def text_number(name: str, value: str) -> Any:
    """An option's text as an exact number: 0.1 is one tenth, "sqrt(10)" and "1/3" work."""
    from .expression import exact

    if value.strip().lstrip("+-") in ("inf", "infinity"):
        return float(value)
    return exact(value, name=name)


def number(name: str, value: str) -> float:
    """An option's text as a double; expressions are rounded once."""
    try:
        result = float(value)
    except ValueError:
        from .ball import enclose

        result = enclose(text_number(name, value), 17).to_float()
    if math.isnan(result):
        raise check.refuse(name, value, "is not a number", "pass a number or an expression")
    return result


def task(language: str, d: int, targets: Sequence[int], p: str | None) -> Task:
    """The task that the options name."""
    kind = check.choice("language", language, LANGUAGES)
    words = None
    if p is not None:
        exact_p = getattr(text_number("p", p), "fraction", None)
        if exact_p is None:
            raise check.refuse("p", p, "must be rational", "pass for example 1/49 or 0.02")
        words = Words(Geometric(exact_p))
    if kind == "occurrence":
        if len(targets) > 1:
            remedy = "pass one, or --language or, or --language and"
            raise check.refuse("target", list(targets), "occurrence has one target", remedy)
        return Occurrence(d, targets[0] if targets else 0, words)
    return (Or if kind == "or" else And)(d, targets or (0, 1), words)


def state(gap: str, beta_target: str, beta_background: str) -> State:
    """Symmetric weights from three scalars; only the gap of attention matters."""
    return State(
        number("gap", gap),
        0.0,
        number("beta-target", beta_target),
        number("beta-background", beta_background),
    )


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
        return reader(path)
    except OSError as error:
        if isinstance(error, BadFile):
            raise
        why = error.strerror or error
        raise BadFile(
            f"weights = {str(path)!r}: could not be read ({why}); check the name."
        ) from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadFile(
            f"weights = {str(path)!r}: holds no weights ({error}); save arrays, columns or keys "
            "named alpha and beta."
        ) from error


def _npz(path: Path) -> FileWeights:
    with np.load(path, allow_pickle=False) as file:
        if "stored_alpha" in file.files:
            from .trajectory import Trajectory

            alpha, beta, residual = Trajectory.load(path).final
        else:
            alpha, beta = file["alpha"], file["beta"]
            residual = file["residual"] if "residual" in file.files else None
    return FileWeights(alpha, beta, residual)


def _csv(path: Path) -> FileWeights:
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    names = [cell.strip().lower() for cell in rows[0]]
    if "alpha" in names and "beta" in names:
        at, rows = (names.index("alpha"), names.index("beta")), rows[1:]
    elif len(names) == 2:
        at = (0, 1)
    else:
        raise ValueError("no columns alpha and beta")
    alpha, beta = ([row[i].strip() for row in rows] for i in at)
    return FileWeights(alpha, beta)


def _json(path: Path) -> FileWeights:
    # text, so that 0.1 stays the decimal that was written
    data = json.loads(path.read_text(), parse_float=str)
    return FileWeights(data["alpha"], data["beta"], data.get("residual"))
