"""One cell of words at all nodes: the arrays that the moment kernels sum over.

Symbols of the cell's groups (the targets) are kept apart from the background. Blocks of background
symbols are made once and kept while they fit, or recomputed in each pass (THEORY 2).

Shapes: B problems, K nodes, n background symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .rounding import Rounded
from .words import LengthLaw
from .workspace import scratch

__all__ = ["FADED", "Block", "CellProblem", "Target", "faded"]

COLUMNS = 256
"""Symbols handled at a time, so that a block of nodes x symbols stays in cache."""

SMALL = 2**13
"""Blocks below this many entries come from the allocator's own cache: no page faults to save."""

KEEP = 2**19
"""Blocks are kept between passes while all of them have at most this many entries."""

FADED = 800.0
"""exp(-y), and its products with powers of y, are exactly zero in float64 from here on."""

EARLY, LATE = 0.5, 0.7
"""Below EARLY exp(-y) is taken as 1 + expm1(-y); above LATE expm1(-y) as exp(-y) - 1."""


@dataclass
class Target:
    """One symbol of one group at all nodes; arrays of shape (B, K), `v` of shape (B, 1).

    `occupancy` = pi e^(-y), `missing` = pi (1 - e^(-y)), `weight` = Y = pi y e^(-y).
    """

    symbol: int
    group: int
    v: Any
    y: Any
    occupancy: Any
    missing: Any
    weight: Any


def faded(y: Any) -> Any:
    """y, where rounding errors are tracked capped at a point from which e^(-y) is zero."""
    return y.capped(FADED) if isinstance(y, Rounded) else y


class Block(NamedTuple):
    """Background symbols `part` at all nodes: Y = pi y e^(-y) and y Y, shape (B, K, columns)."""

    part: slice
    weight: Any
    curve: Any


@dataclass
class CellProblem:
    """One cell of words for B weight vectors.

    Attributes
    ----------
    law : LengthLaw
    background : array of int, shape (n,)
        Symbols outside all groups that may occur.
    a, v : arrays of shape (B, n)
        Unnormalised attention exp(alpha) and residual weights of the background.
    pi : array of shape (n,)
        Symbol probabilities of the background.
    targets : list of Target
    group_mass : list
        Probability of each group of symbols.
    absent_mass : float
        Probability of the symbols that do not occur.
    t : array of shape (B, K)
        Nodes.
    """

    law: LengthLaw
    background: Any
    a: Any
    v: Any
    pi: Any
    targets: list[Target]
    group_mass: list[Any]
    absent_mass: Any
    t: Any
    _kept: list[Block] = field(default_factory=list, repr=False)

    @property
    def parts(self) -> Iterator[slice]:
        """Column slices over the background."""
        n = self.a.shape[-1]
        for start in range(0, n, COLUMNS):
            yield slice(start, min(start + COLUMNS, n))

    @property
    def keeps(self) -> bool:
        """Whether blocks stay in memory between passes."""
        return self.a.shape[-1] * self.t.shape[0] * self.t.shape[1] <= KEEP

    def memory(self, name: Any, part: slice) -> Any:
        """Scratch array of shape (B, K, columns); None where a new array is as good."""
        size = self.t.shape[0] * self.t.shape[1] * (part.stop - part.start)
        if size < SMALL or isinstance(self.t, Rounded):
            return None
        return scratch(name, (*self.t.shape, part.stop - part.start))

    def release(self) -> None:
        """Forget kept blocks: they live in scratch memory that the next problem overwrites."""
        self._kept.clear()

    def scale(self, part: slice) -> Any:
        """y = a t, shape (B, K, columns)."""
        return faded(
            np.multiply(self.a[:, None, part], self.t[..., None], out=self.memory("y", part))
        )

    def weigh(self, part: slice, y: Any, decay: Any, name: Any) -> Block:
        """The block of Y and y Y from y and e^(-y)."""
        weight = np.multiply(y, decay, out=self.memory(("weight", name), part))
        weight = np.multiply(weight, self.pi[part], out=self.memory(("weight", name), part))
        return Block(part, weight, np.multiply(y, weight, out=self.memory(("curve", name), part)))

    def blocks(self) -> Iterator[Block]:
        """The blocks again, from memory or recomputed."""
        if self._kept:
            yield from self._kept
            return
        for part in self.parts:
            y = self.scale(part)
            decay = np.negative(y, out=self.memory("decay", part))
            decay = np.exp(decay, out=self.memory("decay", part))
            yield self.weigh(part, y, decay, None)

    def first_pass(self) -> Iterator[tuple[Block, Any, Any]]:
        """Each block with e^(-y) and e^(-y) - 1."""
        for number, part in enumerate(self.parts):
            y = self.scale(part)
            decay, loss = self._decay(part, y)
            block = self.weigh(part, y, decay, number if self.keeps else None)
            if self.keeps:
                self._kept.append(block)
            yield block, decay, loss

    @cached_property
    def _switch(self) -> tuple[int, int]:
        """Numbers of leading nodes with every y <= EARLY, and with some y < LATE."""
        largest, least = self.a.max(axis=-1, keepdims=True), self.a.min(axis=-1, keepdims=True)
        early = int(np.searchsorted((self.t * largest).max(axis=0), EARLY))
        return early, max(early, int(np.searchsorted((self.t * least).min(axis=0), LATE)))

    def _decay(self, part: slice, y: Any) -> tuple[Any, Any]:
        """exp(-y) and expm1(-y), each correct, with one transcendental where one will do."""
        if isinstance(y, Rounded):
            return np.exp(-y), np.expm1(-y)
        early, late = self._switch
        loss = np.negative(y, out=self.memory("loss", part))
        decay = self.memory("decay", part)
        decay = np.empty_like(loss) if decay is None else decay
        np.exp(loss[:, early:], out=decay[:, early:])
        np.expm1(loss[:, :late], out=loss[:, :late])
        np.add(loss[:, :early], 1.0, out=decay[:, :early])
        np.subtract(decay[:, late:], 1.0, out=loss[:, late:])
        return decay, loss
