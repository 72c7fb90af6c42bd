"""Drawing words, as symbol counts, without a Python loop over words."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Task
from .word_counts import check_task, narrow, sparse_counts, worth_csr
from .wordbatch import WordBatch, labels_of

__all__ = ["sample_words"]

# Counts drawn at a time: the tally of a block stays in the second-level cache.
BLOCK = 2**16
# Symbols drawn at a time for CSR counts.
SPARSE_BLOCK = 2**20
# One multinomial count costs as much as this many single symbols (measured: 60-170 ns, 6 ns).
MULTINOMIAL_COST = 16
MOST_BYTES = 2**35


def sample_words(task: Task, n: int, rng: Any = None) -> WordBatch:
    """Draw `n` words of `task` with their labels.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And, with any length law and symbol law.
    n : int
        Number of words, >= 1.
    rng : None, int, SeedSequence or Generator
        Seed or generator; the same seed gives the same words under one NumPy version.

    Returns
    -------
    WordBatch
        Counts dense in the smallest unsigned type, or CSR where less than 1/16 of them are
        expected to be positive.

    Raises
    ------
    BadParameter
        When n < 1, the task is no Task, or the counts would take more than 32 GB.

    Notes
    -----
    Memory: n * d bytes for the counts while none exceeds 255 (5 bytes per positive count in
    CSR), 8 n for the lengths, and about 20 MB of work space. Symbols are drawn one by one and
    tallied in blocks; words longer than 16 d on average get multinomial counts instead, so the cost
    per word is O(min(length, d)). Source: Paper 2; THEORY 1, 6. Error: sampled.

    Examples
    --------
    >>> import popgd
    >>> batch = popgd.sample_words(popgd.Occurrence(50), 1000, rng=0)
    >>> batch.counts.shape
    (1000, 50)
    """
    check_task(task, None)
    n = check.integer("n", n, 1, MOST_BYTES, remedy="draw at least one word, at most 2^35")
    rng = check.generator("rng", rng)
    filled = n * task.d * _expected_fill(task)
    sparse = worth_csr(filled, n * task.d)
    if (5 * filled if sparse else n * task.d) > MOST_BYTES:
        rule = f"{n:.3g} words over d = {task.d:.3g} symbols take more than 32 GB"
        raise check.refuse("n", n, rule, "draw fewer words, or use popgd.PopulationRisk")
    lengths = task.words.length.sample(n, rng)
    draw = _Symbols(task, rng)
    counts = _sparse(draw, lengths) if sparse else _dense(draw, lengths)
    return WordBatch._trusted(counts, labels_of(task, counts), None, task)


def _expected_fill(task: Task) -> float:
    """The expected fraction of positive counts, the mean of 1 - Phi(1 - pi_j)."""
    law = task.words.length
    if task.words.symbols is None:
        return float(1 - law.pgf(1 - 1 / task.d))
    return float(np.mean(1 - law.pgf(1 - task.words.probabilities(task.d))))


class _Symbols:
    """Draws independent symbols from the task's symbol law."""

    def __init__(self, task: Task, rng: np.random.Generator):
        self.task, self.d, self.rng = task, task.d, rng
        self.uniform = task.words.symbols is None
        if not self.uniform:
            self.keep, self.alias = alias_table(task.words.probabilities(task.d))

    def symbols(self, n: int) -> np.ndarray:
        """n symbols, int64."""
        if self.uniform:
            return self.rng.integers(0, self.d, n)
        scaled = self.rng.random(n) * self.d
        column = scaled.astype(np.int64)
        scaled -= column
        return np.where(scaled < self.keep[column], column, self.alias[column])

    def multinomial(self, lengths: np.ndarray) -> np.ndarray:
        """Counts of long words, one binomial a symbol."""
        return self.rng.multinomial(lengths, self.task.words.probabilities(self.d))


def alias_table(pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias table: column i keeps i with probability keep[i], else gives alias[i].

    Notes
    -----
    Error: symbol probabilities right to about d 2^-53 (rounding of one uniform number).
    """
    scaled = (pi * pi.size).tolist()
    keep, alias = np.ones(pi.size), np.arange(pi.size)
    low = [i for i, x in enumerate(scaled) if x < 1]
    high = [i for i, x in enumerate(scaled) if x >= 1]
    while low and high:
        small, large = low.pop(), high[-1]
        keep[small], alias[small] = scaled[small], large
        scaled[large] -= 1 - scaled[small]
        if scaled[large] < 1:
            low.append(high.pop())
    return keep, alias


def _dense(draw: _Symbols, lengths: np.ndarray) -> np.ndarray:
    n, d = lengths.size, draw.d
    counts = np.empty((n, d), dtype=np.uint8)
    words = max(1, BLOCK // d)
    start = np.arange(words) * d
    for lo in range(0, n, words):
        part = lengths[lo : lo + words]
        block = _tally(draw, part, start[: part.size])
        kind = np.result_type(counts.dtype, np.min_scalar_type(int(block.max())))
        if kind != counts.dtype:
            # rare: a word that holds one symbol more than 255 times
            counts = counts.astype(kind)
        counts[lo : lo + words] = block
    return counts


def _tally(draw: _Symbols, lengths: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Counts of one block of words, int64."""
    d = draw.d
    total = int(lengths.sum())
    if total > MULTINOMIAL_COST * lengths.size * d:
        return draw.multinomial(lengths)
    keys = np.repeat(start, lengths)
    keys += draw.symbols(total)
    return np.bincount(keys, minlength=lengths.size * d).reshape(-1, d)


def _sparse(draw: _Symbols, lengths: np.ndarray) -> Any:
    from scipy.sparse import vstack

    ends = np.cumsum(lengths)
    cuts = np.searchsorted(ends, np.arange(0, ends[-1], SPARSE_BLOCK), side="left")
    cuts = np.unique(np.append(cuts, lengths.size))
    blocks = []
    for lo, hi in pairwise(cuts):
        part = lengths[lo:hi]
        word = np.repeat(np.arange(part.size), part)
        blocks.append(sparse_counts(word, draw.symbols(word.size), part.size, draw.d))
    counts = vstack(blocks, format="csr")
    counts.data = narrow(counts.data)
    return counts
