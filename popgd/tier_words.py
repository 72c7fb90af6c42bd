"""Attention at infinity on drawn words: each word attends to the highest tier it contains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .tiers import Tiers
from .word_blocks import Block

__all__ = ["TierRows", "by_tier"]


class TierRows:
    """Tiers and offsets that are cut, reshaped and broadcast like one array of weights."""

    def __init__(self, tier: np.ndarray, offset: np.ndarray):
        self.tier, self.offset = tier, offset

    @classmethod
    def of(cls, tiers: Tiers) -> TierRows:
        """The rows of a Tiers object."""
        return cls(tiers.tier, tiers.offset)

    def copy(self) -> TierRows:
        """As of an array."""
        return TierRows(self.tier.copy(), self.offset.copy())

    @property
    def shape(self) -> tuple[int, ...]:
        """(..., d)."""
        return self.tier.shape

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.tier.size

    def __len__(self) -> int:
        return len(self.tier)

    def __getitem__(self, index: Any) -> TierRows:
        return TierRows(self.tier[index], self.offset[index])

    def reshape(self, *shape: Any) -> TierRows:
        """As of an array."""
        return TierRows(self.tier.reshape(*shape), self.offset.reshape(*shape))

    def broadcast(self, shape: tuple[int, ...]) -> TierRows:
        """As np.broadcast_to."""
        return TierRows(np.broadcast_to(self.tier, shape), np.broadcast_to(self.offset, shape))


def by_tier(
    blocks: Iterable[Block], tier: np.ndarray, offset: np.ndarray
) -> Iterator[tuple[Block, np.ndarray]]:
    """Words grouped by the highest tier in them, each with its attention, -inf on other tiers."""
    for block in blocks:
        left = np.ones(block.size, dtype=bool)
        for level in np.unique(tier)[::-1]:
            here = left & block.holds(tier == level)
            if here.any():
                yield block.take(here), np.where(tier == level, offset, -np.inf)
                left &= ~here
