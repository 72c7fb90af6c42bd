"""Symbols in blocks of equal weights: exact risks whose cost does not depend on d.

Symbols with equal attention and output weights are one symbol of their total probability: gamma
summed over a block has the law it would have for such a symbol. So a problem with d symbols and
few distinct weights is a problem over few symbols, with the same length law.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Occurrence
from .population import PopulationRisk
from .tiers import Tiers
from .words import Geometric, LengthLaw, Words

__all__ = ["BlockRisk", "split_target"]

LARGEST = 10**15
"""Largest alphabet: probabilities of single symbols stay well inside the doubles."""


class BlockRisk(PopulationRisk):
    """Exact population risk of occurrence when symbols other than the target come in blocks.

    Parameters
    ----------
    sizes : sequence of int
        Number of symbols of each background block, each >= 1; d = 1 + sum(sizes).
    length : LengthLaw, optional
        Law of the word length; None means geometric with p = 1/(d-1).
    rtol : float
        Relative accuracy, as for `PopulationRisk`.

    Attributes
    ----------
    sizes : tuple of int
    symbols : int
        The alphabet size d. (The attribute `d` is the number of weights, 1 + blocks.)

    Raises
    ------
    BadParameter
        When there is no block, or a size is not a positive integer.

    Notes
    -----
    Weights have shape (..., 1 + blocks): the target's first, then one a block. Gradients are
    sums over the symbols of a block; divide by `multiplicity` for one symbol's. minimize_output
    is the minimum over all of R^d: by convexity and symmetry, equal attention has an optimal
    output with equal weights. Source: THEORY 2, 4. Error: as for `PopulationRisk`.

    Examples
    --------
    >>> import numpy as np
    >>> risk = BlockRisk([999])
    >>> round(risk.minimize_output(np.zeros(2)).value, 9)
    0.427679567
    """

    def __init__(self, sizes: Sequence[int], length: LengthLaw | None = None, rtol: float = 1e-12):
        self.sizes = _sizes("sizes", sizes)
        self.symbols = 1 + sum(self.sizes)
        if length is None:
            length = Geometric(Fraction(1, self.symbols - 1))
        masses = np.array([1, *self.sizes]) / self.symbols
        super().__init__(Occurrence(1 + len(self.sizes), words=Words(length, masses)), rtol=rtol)

    def __repr__(self) -> str:
        return f"BlockRisk({list(self.sizes)}, d={self.symbols}, rtol={self.rtol:g})"

    @property
    def multiplicity(self) -> np.ndarray:
        """Number of symbols that each weight stands for, shape (1 + blocks,)."""
        return np.array([1, *self.sizes])

    def expand(self, x: Any) -> Any:
        """Block weights (or Tiers) of shape (..., 1 + blocks) as weights of all d symbols."""
        if isinstance(x, Tiers):
            return Tiers(self.expand(x.tier), self.expand(x.offset))
        array = np.asarray(x)
        if array.ndim < 1 or array.shape[-1] != self.d:
            raise check.refuse("x", array.shape, f"last axis must be {self.d}", "one value a block")
        return np.repeat(array, self.multiplicity, axis=-1)


def split_target(sizes: Sequence[int], block: int) -> tuple[list[int], list[int]]:
    """Make one symbol of a block the target.

    Parameters
    ----------
    sizes : sequence of int
        Number of symbols of each block of a partition of the alphabet.
    block : int
        The block that holds the target.

    Returns
    -------
    background : list of int
        Sizes for `BlockRisk`; a block left empty is dropped.
    owner : list of int
        Block of each weight of that `BlockRisk`: values x by block become x[owner].

    Raises
    ------
    BadParameter
        When the sizes or the block are out of range.
    """
    counts = _sizes("sizes", sizes)
    block = check.integer("block", block, 0, len(counts) - 1, remedy="pass the index of a block")
    left = [(n - (b == block), b) for b, n in enumerate(counts)]
    kept = [(n, b) for n, b in left if n > 0]
    if not kept:
        raise check.refuse("sizes", list(counts), "needs d >= 2 symbols", "add a block")
    return [n for n, _ in kept], [block, *(b for _, b in kept)]


def _sizes(name: str, sizes: Any) -> tuple[int, ...]:
    remedy = "pass for example [1, 48]"
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__len__") or len(sizes) == 0:
        raise check.refuse(name, sizes, "must be a sequence of block sizes", remedy)
    return tuple(
        check.integer(f"{name}[{i}]", n, 1, LARGEST, remedy="each block holds at least one symbol")
        for i, n in enumerate(sizes)
    )
