"""Reading numbers of steps: integers beyond 2^53 keep their parity and read back exactly."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .symmetric_quadratic import plain

__all__ = ["StepCount", "read_steps"]

# from here on a double need not hold a whole number
EXACT = 2.0**53


class StepCount(NamedTuple):
    """Steps as floats, their parity, and the numbers themselves where a float is not exact."""

    value: np.ndarray
    odd: np.ndarray
    shown: Any


def read_steps(value: Any) -> StepCount:
    """Non-negative whole numbers or inf; integers of any size keep their parity."""
    remedy = "pass whole numbers of steps >= 0, or inf"
    steps = check.real_array("steps", value, 0.0, remedy=remedy)
    if (steps != np.floor(steps)).any():
        bad = steps[steps != np.floor(steps)].flat[0]
        raise check.refuse("steps", float(bad), "must be a whole number", remedy)
    finite = np.where(np.isinf(steps), 0.0, steps)
    if not (finite >= EXACT).any():
        return StepCount(steps, np.mod(finite, 2) == 1, plain(steps))
    # a list that holds inf would be rounded to floats as a whole
    given = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    if given.dtype.kind == "f":
        return StepCount(steps, np.mod(finite, 2) == 1, plain(steps))
    exact = [x if np.isinf(y) else int(x) for x, y in zip(given.flat, steps.flat)]
    odd = np.array([y != math.inf and x % 2 == 1 for x, y in zip(exact, steps.flat)])
    shown = np.empty(steps.shape, dtype=object)
    shown[...] = np.array(exact, dtype=object).reshape(steps.shape)
    return StepCount(steps, odd.reshape(steps.shape), plain(shown))
