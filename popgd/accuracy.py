"""Exact accuracy P(sign f = y) of a classifier, by sums over symbol counts.

f > 0 predicts +1, anything else -1. f > 0 says that the sum of (beta_G - 1) a_G n_G is positive,
an inequality between group counts. Accuracy is a step function of the weights: words whose f
cannot be told from 0 in double arithmetic widen the answer to an interval.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .count_law import UNIT
from .count_risk import prepare
from .count_sums import MAX_TERMS, Block, CountSum, unit_bounds
from .errors import NotAvailable
from .languages import Task
from .words import Geometric

__all__ = ["Accuracy", "accuracy"]

# probability of the words left out
TAIL = 2.0**-56
# what popgd.symmetric_accuracy states for its sums of incomplete beta functions, twice over
DISTRIBUTION_ERROR = 2e-13
# undecided words settled one by one in exact arithmetic, at most, a block
MOST_EXACT = 10_000


class Accuracy(NamedTuple):
    """P(sign f = y) and an interval that holds it.

    Attributes
    ----------
    value : float
        Best estimate, in [lower, upper]; exactly 1 (or 0) when no word was wrong (or right).
        Undecided words are counted as double arithmetic has them.
    lower, upper : float
        Proven bounds. They differ by the rounding error, unless f vanishes to rounding on
        words of positive probability.
    proved : bool
        False when the bounds trust SciPy's incomplete beta function (large d).
    """

    value: float
    lower: float
    upper: float
    proved: bool = True


def accuracy(
    task: Task, alpha: Any, beta: Any, residual: Any = None, *, max_terms: int = MAX_TERMS
) -> Accuracy:
    """Probability that the sign of the prediction is the label.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And with any length and symbol law.
    alpha, beta : array_like of shape (d,)
        Attention and output weights.
    residual : array_like of shape (number of targets,), optional
        beta - 2 on the targets; replaces beta there.
    max_terms : int
        Refuse when more terms would be needed.

    Returns
    -------
    Accuracy
        (value, lower, upper, proved), probabilities.

    Raises
    ------
    NotAvailable
        When more than `max_terms` terms are needed; `popgd.EmpiricalRisk` samples instead.
    BadParameter
        When an argument is malformed.

    Notes
    -----
    Words with f = 0 count as -1. With equal attention on the groups of a word the sign is
    settled in exact rationals; otherwise words with |f| below its rounding error are left in
    the interval. The balanced occurrence task with equal backgrounds goes on to any d through
    `popgd.symmetric`. Source: THEORY 4. Error: proved (interval), or estimated when it says so.

    Examples
    --------
    >>> from popgd.languages import Occurrence
    >>> accuracy(Occurrence(3), [5, 0, 0], [2, 0, 0]).value > 0.999
    True
    """
    max_terms = check.integer("max_terms", max_terms, 1)
    total = None
    try:
        total = prepare(task, alpha, beta, residual)
        cut = total.cut(unit_bounds, TAIL, max_terms)
    except NotAvailable as refusal:
        if total is not None and total.groups.count == 2 and _symmetric(task):
            return _by_distribution_functions(total)
        raise NotAvailable(
            f"No exact accuracy: {str(refusal).split(';')[0]};"
            " popgd.EmpiricalRisk(popgd.sample_words(task, n)) estimates it from samples."
        ) from None
    return _by_words(total, cut)


def _symmetric(task: Task) -> bool:
    """The balanced occurrence task, for which `popgd.symmetric` has the accuracy at any d."""
    law = task.words.length
    if not isinstance(law, Geometric) or task.words.symbols is not None:
        return False
    return len(task.targets) == 1 and law.exact_p == Fraction(1, task.d - 1)


def _by_distribution_functions(total: CountSum) -> Accuracy:
    from .symmetric_accuracy import accuracy as symmetric_accuracy
    from .symmetric_state import State

    groups, target = total.groups, total.task.targets[0]
    s = groups.member[target]
    j = groups.member[1 if target == 0 else 0]
    top, low = (float(groups.alpha[g][1]) for g in (s, j))
    order = groups.alpha[s][0] - groups.alpha[j][0]
    if order:
        top, low = math.copysign(math.inf, order), 0.0
    residual = float(groups.beta[s] - 2)
    state = State(top, low, residual + 2.0, float(groups.beta[j]), residual)
    value = symmetric_accuracy(state, total.task.d)
    error = DISTRIBUTION_ERROR
    return Accuracy(value, max(0.0, value - error), min(1.0, value + error), proved=False)


def _by_words(total: CountSum, cut: tuple[int, int]) -> Accuracy:
    # right, wrong, undecided with f > 0 in doubles right or wrong, rounding
    sums: list[list[float]] = [[], [], [], [], []]
    with np.errstate(under="ignore"):
        for block in total.walk(unit_bounds, cut, TAIL):
            probability = block.probability
            positive, open_ = _signs(block)
            correct = positive if block.pattern.label == 1 else ~positive
            for place, words in enumerate(
                (correct & ~open_, ~correct & ~open_, correct & open_, ~correct & open_)
            ):
                sums[place].append(float(probability[words].sum()))
            sums[4].append((block.error + 50) * UNIT * float(probability.sum()))
    right, wrong, perhaps, hardly, rounding = (math.fsum(x) for x in sums)
    outside = sum(float(m[0]) for m in total.left_out.values())
    error = (rounding + outside) * (1 + 1e-3) + UNIT
    unknown = perhaps + hardly
    lower = max(0.0, right - error, 1.0 - wrong - unknown - error)
    upper = min(1.0, right + unknown + error, 1.0 - wrong + error)
    value = (right + perhaps) / (right + wrong + unknown)
    return Accuracy(min(max(value, lower), upper), lower, upper)


def _signs(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Whether f > 0, and whether that is undecided; shape (rows, columns)."""
    pattern = block.pattern
    threshold = np.array([float(t) for t in pattern.threshold])
    pull = threshold * pattern.attention
    total = block.total(pull[-1], pull[:-1])
    size = block.total(abs(pull[-1]), np.abs(pull[:-1]))
    # a threshold beyond the strongest attention may have vanished only by underflow
    margin = (16 + 2 * len(pull)) * UNIT * size + 1e-300 * (1 + np.abs(threshold).max()) * (
        1 + block.bulk + block.counts.sum(axis=1)[:, None]
    )
    open_ = np.abs(total) <= margin
    positive = total > 0
    if len({pattern.threshold[g] for g in pattern.present}) == 1:
        # f is the same on every word, whatever the attention
        sign = pattern.threshold[pattern.present[0]] > 0
        return np.full(total.shape, sign), np.zeros(total.shape, dtype=bool)
    if pattern.level and 0 < np.count_nonzero(open_) <= MOST_EXACT:
        _settle(block, positive, open_)
    return positive, open_


def _settle(block: Block, positive: np.ndarray, open_: np.ndarray) -> None:
    """Decide the undecided words in rational arithmetic; attention is 0 or 1."""
    threshold = block.pattern.threshold
    for i, j in np.argwhere(open_):
        counts = [*block.counts[i], block.bulk[j]]
        heard = zip(threshold, block.pattern.attention, counts, strict=True)
        total = sum((t * int(a) * int(n) for t, a, n in heard), Fraction(0))
        positive[i, j] = total > 0
    open_[:] = False
