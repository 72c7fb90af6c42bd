"""What happens where a cell of a sweep runs: one call, a checked and plain result."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _validate as check
from ._blas import one_thread
from .errors import BadParameter

__all__ = ["Record", "check_executor", "check_names", "message", "run_cells", "takes_rng"]

Record = tuple[dict[str, Any], str]
"""The plain results of a cell and "", or nothing and the error."""

RESERVED = ("sweep.log",)  # what a store keeps beside the results
WIDEST = 1024  # bits
LONGEST_NAME = 200  # bytes; file systems allow 255

REMEDY = (
    "return a number, a string or a mapping of names to these (of an enclosure, its .lower and "
    ".upper)"
)


def check_executor(value: Any) -> None:
    """Refuse what is no `concurrent.futures.Executor` (None is allowed)."""
    if value is not None and not (hasattr(value, "submit") and hasattr(value, "map")):
        remedy = "pass a concurrent.futures executor, or client.get_executor() of a Dask client"
        raise check.refuse("executor", value, "is no executor", remedy)


def takes_rng(function: Callable[..., Any]) -> bool:
    """Whether the function has a parameter called rng."""
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def check_names(function: Callable[..., Any], names: Sequence[str]) -> None:
    """Refuse a grid whose names are not the function's parameters (where it says them)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    given = dict.fromkeys(names) | ({"rng": None} if takes_rng(function) else {})
    try:
        signature.bind(**given)
    except TypeError as error:
        remedy = f"give values for each parameter of the function, {signature}"
        raise check.refuse("grid", list(names), f"does not fit ({error})", remedy) from None


def run_cells(
    function: Callable[..., Any],
    cells: Sequence[tuple[tuple[int, ...], dict[str, Any]]],
    seed: int | None,
) -> list[Record]:
    """Records of cells, each given by its position in the grid and its arguments.

    With a seed every cell gets its own ``rng``, drawn from the seed and the cell's position
    alone: neither workers nor chunks change it.
    """
    with one_thread():
        return [_run(function, position, arguments, seed) for position, arguments in cells]


def _run(
    function: Callable[..., Any],
    position: tuple[int, ...],
    arguments: dict[str, Any],
    seed: int | None,
) -> Record:
    if seed is not None:
        stream = np.random.SeedSequence(seed, spawn_key=position)
        arguments = arguments | {"rng": np.random.default_rng(stream)}
    try:
        return _plain(function(**arguments)), ""
    except (Exception, SystemExit) as error:  # sys.exit() ends a cell, not the sweep
        return {}, f"{type(error).__name__}: {message(error)}"


def message(error: BaseException) -> str:
    """An exception's text, whatever its ``__str__`` does."""
    try:
        return str(error)
    except Exception:
        return "its message cannot be shown"


def _plain(result: Any) -> dict[str, Any]:
    if hasattr(result, "_asdict"):
        result = result._asdict()
    if not isinstance(result, Mapping):
        result = {"value": result}
    return {_name(name): _value(name, value) for name, value in result.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise BadParameter(f"result {name!r}: names must be non-empty strings; {REMEDY}.")
    # variables of a store are directories
    if name.startswith(".") or name in RESERVED or set(name) & set("/\\\0") or _long(name):
        rule = "is no name for a variable in a file"
        raise BadParameter(f"result {name!r}: {rule}; take letters, digits, spaces and _.")
    return str(name)


def _long(name: str) -> bool:
    try:
        return len(name.encode()) > LONGEST_NAME
    except UnicodeEncodeError:
        return True


def _value(name: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral):
        value = int(value)
        # beyond doubles anyway, and too long to be written down
        return value if value.bit_length() <= WIDEST else math.copysign(math.inf, value > 0 or -1)
    if isinstance(value, numbers.Real) and not hasattr(value, "numerator"):
        return float(value)
    raise BadParameter(f"{name} = {_shown(value)}: is no plain number or string; {REMEDY}.")


def _shown(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}"
    return text if len(text) <= 80 else text[:77] + "..."
