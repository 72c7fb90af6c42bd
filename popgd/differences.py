"""Subset differences: "every one of these groups occurs", without cancellation.

For t groups of symbols, a quantity f takes one value f(R) for every subset R of groups
allowed to occur. Averages over words in which *all* groups occur are the inclusion-exclusion
sum of (-1)^(t-|R|) f(R), which loses every digit when a group is rare. So f is stored by its
differences, Delta_R f with f(R) = sum over Q in R of Delta_Q f, and arithmetic is done on
those: sums add, and products follow Delta_T(f g) = sum over R | Q = T of Delta_R f Delta_Q g,
in which nothing is subtracted when all differences are non-negative (THEORY 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Differences", "Occupancy"]


class Differences:
    """A quantity by its subset differences; `parts[mask]` is an array, or None for zero.

    Parameters
    ----------
    parts : sequence of array or None
        2^t entries; bit i of the index says that group i is in the subset.

    Notes
    -----
    The arrays may be NumPy arrays, flint balls or anything else that adds and multiplies.
    Source: THEORY 2. Error: none, the rules are identities.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]):
        self.parts = tuple(parts)

    @classmethod
    def constant(cls, value: Any, groups: int) -> Differences:
        """The quantity that does not depend on which groups may occur."""
        return cls([value] + [None] * (2**groups - 1))

    @classmethod
    def affine(cls, base: Any, steps: Sequence[Any]) -> Differences:
        """base + the sum of steps[i] over the groups i that may occur."""
        parts: list[Any] = [base] + [None] * (2 ** len(steps) - 1)
        for i, step in enumerate(steps):
            parts[1 << i] = step
        return cls(parts)

    @classmethod
    def indicator(cls, value: Any, group: int, groups: int) -> Differences:
        """`value` if `group` may occur, else zero."""
        parts: list[Any] = [None] * 2**groups
        parts[1 << group] = value
        return cls(parts)

    @property
    def top(self) -> Any:
        """The part in which every group occurs."""
        return self.parts[-1]

    def top_with(self, group: int) -> Any:
        """The part in which every group occurs, when `group` is known to occur already."""
        return self.top_given(1 << group)

    def top_given(self, known: int) -> Any:
        """The same when all groups of the bitmask `known` are known to occur already."""
        every = len(self.parts) - 1
        total: Any = None
        for mask, part in enumerate(self.parts):
            if mask | known == every:
                total = _add(total, part)
        return total

    def __add__(self, other: Differences) -> Differences:
        return Differences([_add(a, b) for a, b in zip(self.parts, other.parts, strict=True)])

    def __mul__(self, other: Any) -> Differences:
        if not isinstance(other, Differences):
            return Differences([None if a is None else a * other for a in self.parts])
        out: list[Any] = [None] * len(self.parts)
        for r, a in enumerate(self.parts):
            if a is None:
                continue
            for q, b in enumerate(other.parts):
                if b is not None:
                    out[r | q] = _add(out[r | q], a * b)
        return Differences(out)

    def power(self, n: int) -> Differences:
        """The n-th power, n >= 1, by repeated squaring."""
        result: Differences | None = None
        square = self
        while n:
            if n & 1:
                result = square if result is None else result * square
            n >>= 1
            if n:
                square = square * square
        assert result is not None
        return result


def _add(a: Any, b: Any) -> Any:
    if a is None:
        return b
    return a if b is None else a + b


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The argument u of a generating function, with everything needed to use it stably.

    Attributes
    ----------
    base : array
        u when no group may occur: sum of pi_j z_j over the symbols outside all groups.
    steps : tuple of array
        Increase of u for each group: sum of pi_j z_j over the group.
    missing : tuple of array
        1 - u for each of the 2^t subsets, as a sum of non-negative terms.
    """

    base: Any
    steps: tuple[Any, ...]
    missing: tuple[Any, ...]

    @property
    def u(self) -> Differences:
        """u itself, as differences."""
        return Differences.affine(self.base, self.steps)
