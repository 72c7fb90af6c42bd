"""Running rounding-error analysis: arrays that carry a proven bound on their own error.

A kernel written for NumPy arrays runs unchanged on `Rounded` arrays and returns, beside each
value, a bound on |computed - exact|. That is how `error_bound` includes rounding without a
second copy of any formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

__all__ = ["LIBRARY", "UNIT", "Rounded"]

UNIT = 2.0**-53
"""Unit roundoff of float64."""

LIBRARY = 4 * UNIT
"""Relative error allowed to exp, expm1, log, log1p: twice the 1 ulp that libraries promise."""

TINY = 5e-324
"""Absolute error of a result that underflows."""


class Rounded(NDArrayOperatorsMixin):
    """Array `value` with |value - exact| <= `error` elementwise.

    Parameters
    ----------
    value, error : array_like
        Broadcast together; `error` is absolute and non-negative.

    Notes
    -----
    First-order terms and products of errors are both kept. The bounds themselves are rounded to
    nearest; users multiply the final bound by `1 + 1e-6`, far above that effect.
    Source: standard model fl(a op b) = (a op b)(1 + e), |e| <= UNIT. Error: proved.
    """

    def __init__(self, value: Any, error: Any = 0.0):
        self.value = np.asarray(value, dtype=float)
        self.error = np.broadcast_to(np.asarray(error, dtype=float), self.value.shape)

    @classmethod
    def relative(cls, value: Any, ulps: float = 1.0) -> Rounded:
        """A value correct to `ulps` unit roundoffs."""
        value = np.asarray(value, dtype=float)
        return cls(value, ulps * UNIT * np.abs(value) + TINY)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def bound(self) -> np.ndarray:
        """Upper bound on |exact|."""
        return np.abs(self.value) + self.error

    def __getitem__(self, key: Any) -> Rounded:
        return Rounded(self.value[key], self.error[key])

    def inflate(self, ulps: float) -> Rounded:
        """The same value with `ulps` more unit roundoffs of relative error."""
        return Rounded(self.value, self.error + ulps * UNIT * self.bound)

    def capped(self, limit: float) -> Rounded:
        """min(value, limit), exact where the limit is taken: for functions constant beyond it."""
        over = self.value > limit
        return Rounded(np.where(over, limit, self.value), np.where(over, 0.0, self.error))

    def sum(self, axis: int = -1) -> Rounded:
        """Sum along an axis; any summation order is covered."""
        n = self.value.shape[axis]
        total = self.value.sum(axis=axis)
        spread = np.abs(self.value).sum(axis=axis)
        return Rounded(total, self.error.sum(axis=axis) * (1 + n * UNIT) + n * UNIT * spread)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        rule = _RULES.get(ufunc)
        if method != "__call__" or rule is None:
            return NotImplemented
        # `out` is a memory hint of the fast path: results are new arrays here
        with np.errstate(all="ignore"):
            return rule(*[x if isinstance(x, Rounded) else Rounded(x) for x in inputs])

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.where:
            condition, a, b = args
            a, b = (x if isinstance(x, Rounded) else Rounded(x) for x in (a, b))
            return Rounded(
                np.where(condition, a.value, b.value), np.where(condition, a.error, b.error)
            )
        if func is np.stack:
            items = [x if isinstance(x, Rounded) else Rounded(x) for x in args[0]]
            axis = kwargs.get("axis", 0)
            return Rounded(
                np.stack([x.value for x in items], axis), np.stack([x.error for x in items], axis)
            )
        if func is np.ones_like:
            return Rounded(np.ones_like(args[0].value))
        return NotImplemented


def _add(a: Rounded, b: Rounded) -> Rounded:
    value = a.value + b.value
    return Rounded(value, a.error + b.error + UNIT * np.abs(value))


def _subtract(a: Rounded, b: Rounded) -> Rounded:
    value = a.value - b.value
    return Rounded(value, a.error + b.error + UNIT * np.abs(value))


def _multiply(a: Rounded, b: Rounded) -> Rounded:
    value = a.value * b.value
    carried = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    own = UNIT * np.abs(value) + TINY
    # log 0 = -inf times an exact number is exact
    return Rounded(value, np.where(np.isinf(value), 0.0, carried + own))


def _divide(a: Rounded, b: Rounded) -> Rounded:
    value = a.value / b.value
    least = np.abs(b.value) - b.error
    carried = (a.error + np.abs(value) * (1 + UNIT) * b.error) / np.where(least > 0, least, 0.0)
    return Rounded(value, carried + UNIT * np.abs(value) + TINY)


def _matmul(a: Rounded, b: Rounded) -> Rounded:
    """Any summation order is covered."""
    n = a.shape[-1]
    carried = np.abs(a.value) @ b.error + a.error @ b.bound
    own = (n + 1) * UNIT * (np.abs(a.value) @ np.abs(b.value))
    return Rounded(a.value @ b.value, (carried + own) * (1 + 2 * n * UNIT) + n * TINY)


def _negative(a: Rounded) -> Rounded:
    return Rounded(-a.value, a.error)


def _exp_spread(a: Rounded, value: np.ndarray) -> np.ndarray:
    """Bound on |exp(exact) - exp(a.value)|, also where exp(a.value) underflows."""
    return np.where(value > 0, value * np.expm1(a.error), np.exp(a.value + a.error))


def _exp(a: Rounded) -> Rounded:
    value = np.exp(a.value)
    return Rounded(value, _exp_spread(a, value) + 2 * LIBRARY * value + TINY)


def _expm1(a: Rounded) -> Rounded:
    value = np.expm1(a.value)
    spread = _exp_spread(a, np.exp(a.value)) * (1 + 2 * LIBRARY)
    return Rounded(value, spread + 2 * LIBRARY * np.abs(value) + TINY)


def _log(a: Rounded) -> Rounded:
    """A value that may be zero within its error counts as zero: its powers underflow."""
    known = a.value > a.error
    value = np.where(known, np.log(a.value), -np.inf)
    slope = np.where(known, -np.log1p(-a.error / a.value), 0.0)
    return Rounded(value, slope + np.where(known, 2 * LIBRARY * np.abs(value), 0.0))


def _log1p(a: Rounded) -> Rounded:
    """As for log: 1 + value that may be zero counts as zero."""
    known = 1 + a.value > a.error
    value = np.where(known, np.log1p(a.value), -np.inf)
    slope = np.where(known, -np.log1p(-a.error / (1 + a.value)), 0.0)
    own = np.where(known, 2 * LIBRARY * np.abs(value), 0.0)
    return Rounded(value, slope * (1 + 2 * LIBRARY) + own)


_RULES = {
    np.add: _add,
    np.subtract: _subtract,
    np.multiply: _multiply,
    np.divide: _divide,
    np.matmul: _matmul,
    np.negative: _negative,
    np.exp: _exp,
    np.expm1: _expm1,
    np.log: _log,
    np.log1p: _log1p,
    np.less: lambda a, b: a.value < b.value,
    np.greater: lambda a, b: a.value > b.value,
    np.absolute: lambda a: Rounded(np.abs(a.value), a.error),
}
