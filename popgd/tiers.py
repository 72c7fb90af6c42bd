"""Attention weights at infinity: alpha = tier * infinity + offset.

As some alpha_i grow without bound, attention goes to the highest tier present in the word and
is shared there according to the offsets. These limits are where infima over alpha are attained.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _validate as check

__all__ = ["Tiers"]


class Tiers:
    """Limits of attention weights, one (tier, offset) pair a symbol.

    Parameters
    ----------
    tier : array_like of int, shape (..., d)
        Order of growth; words attend only to symbols of the highest tier they contain.
    offset : array_like of float, shape (..., d), optional
        Attention weight within the tier (0 if omitted).

    Raises
    ------
    BadParameter
        When a tier is not an integer, an offset is not finite, or the shapes differ.

    Notes
    -----
    Source: THEORY 2 (z_j = 1 for lower tiers, z_j = 0 for higher ones). Error: none (a limit).

    Examples
    --------
    All attention on symbol 0 whenever it occurs, uniform otherwise:

    >>> Tiers([1, 0, 0]).tier.tolist()
    [1, 0, 0]
    """

    def __init__(self, tier: Any, offset: Any = None):
        array = np.asarray(tier)
        remedy = "pass an array of integers of shape (..., d)"
        if array.dtype.kind not in "iu":
            raise check.refuse("tier", tier, "tiers must be integers", remedy)
        if array.ndim < 1 or array.shape[-1] < 2:
            raise check.refuse("tier", tier, "needs a last axis of length d >= 2", remedy)
        self.tier = array.astype(np.int64)
        if offset is None:
            self.offset = np.zeros(array.shape)
        else:
            self.offset = check.weights("offset", offset, array.shape[-1]).copy()
            if self.offset.shape != array.shape:
                raise check.refuse(
                    "offset",
                    self.offset,
                    f"needs the shape {array.shape} of tier",
                    "pass equal shapes",
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """(..., d)."""
        return self.tier.shape

    def __repr__(self) -> str:
        return f"Tiers(tier={self.tier.tolist()}, offset={self.offset.tolist()})"
