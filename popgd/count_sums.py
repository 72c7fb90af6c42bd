"""The walk over all group counts that matter, with everything left out bounded.

A `Cut` fixes the longest word and the most rare symbols kept; `walk` yields blocks of words of
one pattern and adds up, for each pattern, upper bounds on E[m^j; word left out], j = 0..3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .count_law import (
    LONGEST,
    length_span,
    length_tail,
    rare_rows,
    rare_tail,
    smallest,
    splits,
    table_error,
)
from .errors import NotAvailable
from .languages import Task
from .symbol_groups import Groups, Pattern, group_symbols, patterns

__all__ = ["MAX_TERMS", "Block", "CountSum", "bounded", "unit_bounds"]

# about ten seconds
MAX_TERMS = 2 * 10**8
# elements evaluated at a time: a few arrays of this size stay in cache
BLOCK = 1 << 16
# patterns are enumerated, so their number is limited before the number of terms is
MOST_GROUPS = 8


@dataclass(frozen=True)
class Block:
    """Words of one pattern: `rows` choices of rare counts times `columns` lengths.

    Attributes
    ----------
    pattern : Pattern
    counts : array of shape (rows, g - 1)
        Counts of the rare groups.
    bulk : array of shape (columns,)
        Count of the bulk group, m - k.
    rows, columns : array
        The probability of a word class is rows[i] * columns[j].
    error : float
        Relative error of that product, in units of 2^-53.
    """

    pattern: Pattern
    counts: np.ndarray
    bulk: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    error: float

    @property
    def probability(self) -> np.ndarray:
        """Shape (rows, columns)."""
        return self.rows[:, None] * self.columns

    def total(self, bulk: np.ndarray | float, rare: np.ndarray) -> np.ndarray:
        """Sum over groups of coefficient times count, shape (rows, columns)."""
        return (self.counts @ rare)[:, None] + bulk * self.bulk


def bounded(polynomials: list[np.ndarray], moments: np.ndarray) -> float:
    """Least of the upper bounds that the polynomials give for the words left out."""
    with np.errstate(invalid="ignore"):
        values = [float(np.sum(np.where(p > 0, p * moments, 0.0))) for p in polynomials]
    return min(values) * (1 + 1e-6)


def unit_bounds(pattern: Pattern) -> list[np.ndarray]:
    """The bound 1 on the indicator of a word: what is left out is then its probability."""
    return [np.array([1.0, 0.0, 0.0, 0.0])]


@dataclass
class CountSum:
    """The sum over group counts for one weight vector.

    Parameters
    ----------
    task : Task
    groups : Groups
    patterns : dict of int to Pattern

    Notes
    -----
    Source: THEORY 4. Error: what is left out is bounded in `left_out`.
    """

    task: Task
    groups: Groups
    patterns: dict[int, Pattern]
    left_out: dict[int, np.ndarray] = field(default_factory=dict)
    terms: int = 0

    @classmethod
    def of(cls, task: Task, alpha: Any, beta: Any, residual: Any = None) -> CountSum:
        """Group the symbols and list the patterns; refuses when there are too many groups."""
        groups = group_symbols(task, alpha, beta, residual)
        if groups.count > MOST_GROUPS:
            raise NotAvailable(
                f"The series needs one sum for each of {groups.count} different weight pairs and"
                f" handles {MOST_GROUPS}; use popgd.PopulationRisk(task, method='integral')."
            )
        length_span(task.words.length)
        return cls(task, groups, patterns(task, groups))

    @property
    def rare(self) -> Any:
        """Probability that one symbol lies outside the bulk group."""
        return sum(self.groups.mass[:-1])

    def cut(self, bounds: Bounds, target: float, max_terms: float = math.inf) -> tuple[int, int]:
        """Longest word and most rare symbols so that what lies beyond adds at most `target`."""
        first, last = length_span(self.task.words.length)
        longest = smallest(lambda m: self._beyond(bounds, m), target / 2, first)
        if last is not None:
            longest = min(longest, last)
        most = smallest(lambda k: self._above(bounds, longest, k), target / 2, 0)
        terms = self.terms_of(longest, most)
        if terms > max_terms or longest > LONGEST:
            raise NotAvailable(
                f"The series needs about {terms:.1e} terms, more than max_terms = {max_terms:.1e};"
                " use popgd.PopulationRisk(task, method='integral') or raise max_terms."
            )
        return longest, most

    def terms_of(self, longest: int, most: int) -> float:
        """About how many terms are summed: words both long and rich in rare symbols are skipped.

        Without a longest word the region is cut off where m / longest + k / most exceeds 1, one
        part in g of the rectangle.
        """
        ways = self.groups.count - 1
        first, last = length_span(self.task.words.length)
        rectangle = float(longest - first + 1) * math.comb(most + ways, ways)
        return rectangle / self.groups.count if last is None else rectangle

    def _beyond(self, bounds: Bounds, longest: int) -> float:
        total = 0.0
        moments = length_tail(self.task.words.length, longest)
        for mask, pattern in self.patterns.items():
            total += bounded(bounds(pattern), self._thin(pattern, moments, longest))
            if mask and math.isinf(total):
                break
        return total

    @staticmethod
    def _thin(pattern: Pattern, moments: np.ndarray, longest: int) -> np.ndarray:
        """A word of a pattern with more than `longest` symbols has them all in its groups."""
        thin = pattern.mass ** (longest + 1.0)
        # no bound yet on the longer words: infinity, not 0 times infinity
        return moments * thin if np.isfinite(moments).all() else moments

    def _above(self, bounds: Bounds, longest: int, most: int) -> float:
        moments = self._crowded(longest, most)
        return sum(bounded(bounds(p), moments) for p in self.patterns.values() if self._mixed(p))

    def _crowded(self, longest: int, most: int) -> np.ndarray:
        """Bounds on E[m^j; m <= longest, more than `most` rare symbols]."""
        if most >= longest or not self.rare:
            return np.zeros(4)
        mass = rare_tail(self.task.words.length, self.rare, most)
        return mass * float(longest) ** np.arange(4)

    def _mixed(self, pattern: Pattern) -> bool:
        return pattern.present != (self.groups.count - 1,)

    def walk(self, bounds: Bounds, cut: tuple[int, int], target: float) -> Iterator[Block]:
        """Blocks of words up to the cut; skips words that add at most `target` in all."""
        longest, most = cut
        law, first = self.task.words.length, length_span(self.task.words.length)[0]
        tail, crowd = length_tail(law, longest), self._crowded(longest, most)
        self.left_out = {
            mask: self._thin(p, tail, longest) + (crowd if self._mixed(p) else 0.0)
            for mask, p in self.patterns.items()
        }
        self.terms = 0
        # a share of the target for each term, row of the splitting table and pattern
        skip = target / (4.0 * (longest + 1) * (most + 1) * len(self.patterns))
        rows = rare_rows(law, self.rare, most, first, longest)
        for (k, start, row), ways in zip(rows, splits(self.groups.mass[:-1], most), strict=False):
            m = np.arange(start, start + row.size, dtype=float)
            error = table_error(law, k, self.groups.count)
            for layer in _layers(_Layer(0, k, m, row, *ways, error)):
                yield from self._blocks(bounds(self.patterns[layer.mask]), layer, skip)

    def _blocks(self, polynomials: list[np.ndarray], layer: _Layer, skip: float) -> Iterator[Block]:
        """The words of a layer that count, in tiles; the others go to `left_out`."""
        if any(not p.any() for p in polynomials):
            if not self.patterns[layer.mask].largest:
                return
            # the loss underflows, its gradients may not: keep every word
            skip = -1.0
        m, row, odds = layer.m, layer.row, layer.odds
        size = row * np.min([_at(p, m) for p in polynomials], axis=0)
        keep = np.flatnonzero(size > skip)
        low, high = (int(keep[0]), int(keep[-1]) + 1) if keep.size else (0, 0)
        used = odds * float(size[low:high].sum()) > skip
        self._skip(layer.mask, float(odds.sum()), m[:low], row[:low])
        self._skip(layer.mask, float(odds.sum()), m[high:], row[high:])
        self._skip(layer.mask, float(odds[~used].sum()), m[low:high], row[low:high])
        counts, odds, bulk, row = (
            layer.counts[used],
            odds[used],
            (m - layer.k)[low:high],
            row[low:high],
        )
        for i, j in _tiles(len(odds), len(row)):
            self.terms += (i.stop - i.start) * (j.stop - j.start)
            yield Block(self.patterns[layer.mask], counts[i], bulk[j], odds[i], row[j], layer.error)

    def _skip(self, mask: int, odds: float, m: np.ndarray, row: np.ndarray) -> None:
        """Account for words that are skipped."""
        if odds and m.size:
            moments = [float(np.dot(row, m**j)) for j in range(4)]
            self.left_out[mask] = self.left_out[mask] + odds * np.array(moments) * (1 + 1e-6)


class _Layer(NamedTuple):
    """Words with k rare symbols: lengths m of probability `row`, splits `counts` of `odds`."""

    mask: int
    k: int
    m: np.ndarray
    row: np.ndarray
    counts: np.ndarray
    odds: np.ndarray
    error: float


def _layers(layer: _Layer) -> Iterator[_Layer]:
    """The layer divided by which groups occur."""
    rare = layer.counts.shape[1]
    present = (layer.counts > 0) @ (1 << np.arange(rare))
    for mask in np.unique(present):
        chosen = present == mask
        part = layer._replace(mask=int(mask), counts=layer.counts[chosen], odds=layer.odds[chosen])
        without = part.m == part.k
        if mask and without.any():
            yield part._replace(m=part.m[without], row=part.row[without])
        if not without.all():
            yield part._replace(
                mask=int(mask) | 1 << rare, m=part.m[~without], row=part.row[~without]
            )


Bounds = Callable[[Pattern], list[np.ndarray]]


def _at(polynomial: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Value at each length; most polynomials are constants."""
    degree = max(np.flatnonzero(polynomial), default=0)
    value = np.full(m.shape, polynomial[degree])
    for coefficient in polynomial[:degree][::-1]:
        value = value * m + coefficient
    return value


def _tiles(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    wide = min(columns, BLOCK)
    tall = max(1, BLOCK // max(wide, 1))
    for i in range(0, rows, tall):
        for j in range(0, columns, max(wide, 1)):
            yield slice(i, min(i + tall, rows)), slice(j, min(j + wide, columns))
