"""Problems for the general gradients in ball arithmetic, and weights to try them on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from popgd import Geometric, Occurrence
from popgd.ball import exact
from popgd.certified_problem import Atom, LabelledCell, Problem, build

__all__ = ["rationals", "separate", "symmetric"]


def symmetric(d: int, alpha: tuple[Any, Any], beta: tuple[Any, Any]) -> Problem:
    """Occurrence with the target's weights first and equal background weights second."""
    atoms = tuple(
        Atom(n, Fraction(n, d), exact(a), 0, exact(b) - 2, exact(b))
        for n, a, b in zip((1, d - 1), alpha, beta, strict=True)
    )
    cells = (LabelledCell(1, ((0,),), frozenset()), LabelledCell(-1, (), frozenset({0})))
    return Problem(Geometric(Fraction(1, d - 1)), atoms, cells, (), (True, False), False)


def separate(d: int, target: int, alpha: Sequence[Any], beta: Sequence[Any]) -> Problem:
    """Occurrence with every symbol treated on its own, even where weights are equal."""
    apart = build(Occurrence(d, target), list(range(d)), list(range(d)))
    atoms = tuple(
        replace(apart.atoms[apart.atom_of[j]], alpha=exact(a), positive=exact(b) - 2,
                negative=exact(b))
        for j, (a, b) in enumerate(zip(alpha, beta, strict=True))
    )  # fmt: skip
    if apart.atom_of != tuple(range(d)):
        raise AssertionError("symbols with different weights are atoms of their own, in order")
    return replace(apart, atoms=atoms)


def rationals(seed: str, n: int, low: int = -2, high: int = 2) -> list[Fraction]:
    """n multiples of 1/16 in [low, high], the same ones for the same seed."""
    random = Random(seed)
    return [Fraction(random.randint(16 * low, 16 * high), 16) for _ in range(n)]
