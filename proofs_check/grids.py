"""Grids of (d, eps, eta1, C): exact expressions at three levels of detail.

eta1 = "sqrt(d)" means sqrt(d) itself; the double nearest to it exceeds sqrt(d) for half of
the dimensions, and would leave the hypothesis eta1 <= sqrt(d). eta2 is always
C d^2/eta1 ln(d/eps).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .point import Point

__all__ = [
    "CONSTANTS",
    "EPSILONS",
    "ETA1",
    "ETA2",
    "LEVELS",
    "dimensions",
    "epsilons",
    "first_steps",
    "product",
    "symmetric",
]

LEVELS = ("quick", "default", "full")

_DIMENSIONS = {
    "quick": (2, 3, 4, 9, 50, 10**6),
    "default": (2, 3, 4, 5, 9, 10, 50, 100, 200, 1000, 10**5, 10**6),
    "full": (*range(2, 21), 30, 50, 70, 100, 150, 200, 500, 1000, 10**4, 10**5, 10**6, 10**9),
}
EPSILONS = {
    "quick": ("0.999", "0.1", "1e-8"),
    "default": ("0.999", "0.5", "0.1", "1e-2", "1e-4", "1e-8"),
    "full": ("0.999", "0.9", "0.7", "0.5", "0.3", "0.1", "0.03", "1e-2", "1e-3", "1e-4", "1e-6",
             "1e-8", "1e-12"),
}  # fmt: skip
ETA1 = {
    "quick": ("1e-6", "sqrt(d)"),
    "default": ("1e-6", "1e-3", "1", "sqrt(d)/2", "sqrt(d)"),
    "full": ("1e-6", "1e-3", "1e-1", "1", "sqrt(d)/4", "sqrt(d)/2", "3*sqrt(d)/4", "sqrt(d)"),
}
CONSTANTS = {"quick": (1, 100), "default": (1, 2, 100), "full": (1, 2, 5, 10, 100, 1000)}
ETA2 = "C*d**2/eta1*ln(d/eps)"


def dimensions(
    level: str, least: int = 2, most: int | None = None, extra: Sequence[int] = ()
) -> tuple[int, ...]:
    """The dimensions of a level inside [least, most], with some more."""
    chosen = {*_DIMENSIONS[level], *extra}
    return tuple(sorted(d for d in chosen if d >= least and (most is None or d <= most)))


def epsilons(level: str) -> tuple[str, ...]:
    """The tolerances of a level."""
    return EPSILONS[level]


def first_steps(level: str) -> tuple[str, ...]:
    """The learning rates eta1 of a level."""
    return ETA1[level]


def product(**axes: Sequence[Any]) -> Iterator[Point]:
    """All combinations of the values, the first axis slowest."""
    for values in itertools.product(*axes.values()):
        yield Point(**dict(zip(axes, values, strict=True)))


def symmetric(level: str, least: int = 3) -> Iterator[Point]:
    """The whole grid of the three-phase theorem: d, eps, eta1, C."""
    return product(
        d=dimensions(level, least),
        eps=epsilons(level),
        eta1=first_steps(level),
        C=CONSTANTS[level],
    )
