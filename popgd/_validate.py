"""Argument checks, one message shape: parameter, value received, rule, what to do.

Only public functions call these; kernels trust their callers.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import BadParameter

__all__ = [
    "choice",
    "finite",
    "generator",
    "integer",
    "plain",
    "probability",
    "real",
    "real_array",
    "refuse",
    "same_weight",
    "symbol",
    "symbols",
    "weights",
    "within",
]

BEYOND = "is beyond the range of float64, 1.8e308"
# room for rounding along long runs, not for a slip
SAME = 1e-9
_LIMIT = "replace NaN; write a limit alpha -> +-infinity as popgd.Tiers(tier, offset)"


def refuse(name: str, value: Any, rule: str, remedy: str) -> BadParameter:
    """Build the error; callers raise it so that the traceback points at them."""
    return BadParameter(f"{name} = {_shown(value)}: {rule}; {remedy}.")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"array of shape {value.shape} and dtype {value.dtype}"
    try:
        shown = repr(value)
    except ValueError:
        # Python does not print integers of more than 4300 digits
        return f"a huge {type(value).__name__}"
    if "\n" in shown:
        # arrays print on several lines, a message takes one
        shown = " ".join(shown.split())
    return shown if len(shown) <= 80 else shown[:77] + "..."


def integer(
    name: str, value: Any, minimum: int, maximum: int | None = None, *, remedy: str | None = None
) -> int:
    """Return `value` as int; booleans and non-integral floats are refused."""
    span = f">= {minimum}" if maximum is None else f"in [{minimum}, {maximum}]"
    remedy = remedy or f"pass an integer {span}"
    if isinstance(value, (bool, np.bool_)):
        raise refuse(name, value, "a bool is not an integer here", remedy)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        # 1e12 is how people write a large dimension
        if abs(value) == math.inf or value % 1 != 0:
            raise refuse(name, value, "must be an integer", remedy)
    elif not isinstance(value, numbers.Integral):
        raise refuse(name, value, "must be an integer", remedy)
    result = int(value)  # pyright: ignore[reportArgumentType]
    if result < minimum or (maximum is not None and result > maximum):
        raise refuse(name, value, f"must be {span}", remedy)
    return result


def _inside(value: Any, low: float, high: float, closed: str) -> bool:
    above = value >= low if closed in ("left", "both") else value > low
    below = value <= high if closed in ("right", "both") else value < high
    return bool(above and below)


def _span(low: float, high: float, closed: str) -> str:
    left = "[" if closed in ("left", "both") else "("
    right = "]" if closed in ("right", "both") else ")"
    return f"{left}{low:g}, {high:g}{right}"


def real(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    closed: str = "neither",
    remedy: str | None = None,
) -> float:
    """Return `value` as float inside the interval; NaN, bool and non-numbers are refused."""
    span = _span(low, high, closed)
    remedy = remedy or f"pass a real number in {span}"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise refuse(name, value, "must be a real number", remedy)
    try:
        number = float(value)
    except OverflowError:
        raise refuse(name, value, BEYOND, remedy) from None
    if math.isnan(number):
        raise refuse(name, value, "is not a number", remedy)
    if not _inside(value, low, high, closed):
        raise refuse(name, value, f"must lie in {span}", remedy)
    if not _inside(number, low, high, closed):
        raise refuse(name, value, f"rounds to {number!r}, must lie in {span}", remedy)
    return number


def real_array(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    closed: str = "both",
    remedy: str | None = None,
) -> np.ndarray:
    """Return `value` as a float64 array of any shape with every entry in the interval."""
    span = _span(low, high, closed)
    remedy = remedy or f"pass real numbers in {span}"
    array = np.array(_floats(name, value, remedy))
    if np.isnan(array).any():
        raise refuse(name, value, "holds NaN", remedy)
    above = array >= low if closed in ("left", "both") else array > low
    below = array <= high if closed in ("right", "both") else array < high
    if not (above & below).all():
        bad = array[~(above & below)].flat[0]
        raise refuse(name, float(bad), f"every entry must lie in {span}", remedy)
    return array


def _floats(name: str, value: Any, remedy: str) -> np.ndarray:
    """A float64 array of real numbers; Python integers and fractions of any size are read too."""
    if _masked(value):
        raise refuse(name, value, "has masked entries", f"fill them in; {remedy}")
    try:
        array = np.asarray(value)
    except ValueError:
        raise refuse(name, value, "must be a rectangular array of real numbers", remedy) from None
    numeric = array.dtype.kind in "iuf"
    if array.dtype == object and array.size:
        numeric = all(isinstance(x, numbers.Real) and not isinstance(x, bool) for x in array.flat)
    if not numeric:
        raise refuse(name, value, "must hold real numbers", remedy)
    try:
        return array.astype(np.float64, copy=False)
    except OverflowError:
        raise refuse(name, value, BEYOND, remedy) from None


def _masked(value: Any) -> bool:
    # numpy.asarray would silently use the numbers below the mask
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x) for x in parts)


def probability(name: str, value: Any) -> float:
    """Return `value` as float in (0, 1]."""
    return real(
        name, value, 0.0, 1.0, closed="right", remedy="pass a probability p with 0 < p <= 1"
    )


def weights(name: str, value: Any, d: int, *, heads: bool = False) -> np.ndarray:
    """Return a finite float64 array of shape (..., d), or (..., H, d) with `heads`."""
    if not heads and plain(value, d):
        return value
    shape = f"(..., H, {d})" if heads else f"(..., {d})"
    remedy = f"pass finite real numbers of shape {shape}"
    array = _floats(name, value, remedy)
    if array.ndim < (2 if heads else 1) or array.shape[-1] != d:
        rule = f"the last axis must be d = {d}" + (", after one for the heads" if heads else "")
        raise refuse(name, value, f"has shape {array.shape}, {rule}", remedy)
    array = np.ascontiguousarray(array)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise refuse(
            f"{name}[{', '.join(map(str, where))}]",
            float(array[where]),
            "every weight must be finite",
            _LIMIT if name == "alpha" else remedy,
        )
    return array


def plain(value: Any, d: int) -> bool:
    """Whether `value` is one finite vector that needs no conversion; False decides nothing."""
    if type(value) is not np.ndarray or value.dtype != np.float64 or value.shape != (d,):
        return False
    return value.flags.c_contiguous and np.count_nonzero(np.isfinite(value)) == d


def finite(value: np.ndarray) -> bool:
    """Whether a whole array is finite, by the fastest test; False decides nothing.

    Squares overflow: for callers that ignore floating-point errors, as for `within`.
    """
    flat = value.ravel()
    return math.isfinite(flat.dot(flat))


def within(value: np.ndarray, bound: float) -> bool:
    """Whether every |entry| is at most `bound`, by the fastest test; False decides nothing."""
    flat = value.ravel()
    return bool(flat.dot(flat) <= bound * bound)


def same_weight(name: str, beta: Any, residual: Any) -> None:
    """Refuse a residual that is not beta - 2: two descriptions of one weight must agree."""
    with np.errstate(all="ignore"):
        off = np.asarray(beta) - 2 - residual
        agree = within(off, SAME) or (np.abs(off) <= SAME * (1 + np.abs(beta))).all()
    if not agree:
        rule = f"must be {name.replace('residual', 'beta')} - 2"
        raise refuse(name, residual, rule, "leave it out, or pass both for the same weight")


def symbol(name: str, value: Any, d: int) -> int:
    """Return a symbol index in 0..d-1."""
    return integer(name, value, 0, d - 1, remedy=f"symbols are numbered 0 to d - 1 = {d - 1}")


def symbols(name: str, value: Any, d: int) -> tuple[int, ...]:
    """Return distinct symbol indices, sorted; at least one."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise refuse(name, value, "must be a sequence of symbols", "pass for example [0, 1]")
    result = sorted(symbol(f"{name}[{i}]", s, d) for i, s in enumerate(value))
    if not result:
        raise refuse(name, value, "must name at least one symbol", "pass for example [0, 1]")
    if len(set(result)) != len(result):
        raise refuse(name, value, "names a symbol twice", "pass distinct symbols")
    return tuple(result)


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Return `value` if it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        raise refuse(
            name, value, "is not an option", f"choose one of {', '.join(map(repr, options))}"
        )
    return value


def generator(name: str, value: Any) -> np.random.Generator:
    """NumPy's `rng=` convention: None, an int seed, a SeedSequence or a Generator."""
    if isinstance(value, (bool, np.bool_)) or not (
        value is None
        or isinstance(value, (numbers.Integral, np.random.Generator, np.random.SeedSequence))
    ):
        raise refuse(
            name,
            value,
            "is no random generator",
            "pass None, an integer seed or numpy.random.default_rng(seed)",
        )
    if isinstance(value, numbers.Integral) and value < 0:
        raise refuse(name, value, "a seed must be >= 0", "pass a non-negative integer seed")
    return np.random.default_rng(value)  # pyright: ignore[reportArgumentType]
