"""Reading the scalar arguments of the certified functions, and when a ball is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import _validate as check
from .ball import Ball, ball, magnitude, relatively_narrow, sign
from .expression import Exact, exact

__all__ = ["read_digits", "read_dimension", "read_gap", "read_rate", "read_steps", "settled"]

LARGEST_D = 10**15
LARGEST_STEPS = 10**18


def read_digits(value: Any) -> int:
    """Digits wanted, 1 to 1000."""
    return check.integer("digits", value, 1, 1000)


def read_dimension(value: Any) -> int:
    """d, 2 to 10^15."""
    return check.integer("d", value, 2, LARGEST_D)


def read_gap(value: Any, d: int) -> Exact | float:
    """A gap, exactly, or one of the limits +-inf."""
    if isinstance(value, str) and value.strip() in ("inf", "+inf", "-inf"):
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        return float(value)
    return exact(value, {"d": d}, name="gap")


def read_rate(name: str, value: Any, names: Mapping[str, Any]) -> Exact:
    """A learning rate, exactly; a negative one is refused."""
    rate = exact(value, names, name=name)
    if sign(rate) == -1:
        raise check.refuse(name, value, "a learning rate must be >= 0", "pass a number >= 0")
    return rate


def read_steps(value: Any) -> int | float:
    """A number of steps, or inf."""
    if (isinstance(value, str) and value.strip() in ("inf", "+inf")) or (
        isinstance(value, float) and value == math.inf
    ):
        return math.inf
    remedy = f"pass an integer in [0, {LARGEST_STEPS:.0e}] or inf"
    return check.integer("steps", value, 0, LARGEST_STEPS, remedy=remedy)


def settled(x: Ball, scale: Ball, digits: int) -> bool:
    """Relatively narrow, or so much smaller than its terms that it may well be zero."""
    if relatively_narrow(x, digits):
        return True
    if not x.is_finite():
        return False
    negligible = scale * ball(10) ** -(2 * digits + 20)
    return sign(negligible - magnitude(x)) == 1
