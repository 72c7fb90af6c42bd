"""What trials of Corollary 1 answer: which constant works, and how many words half of them need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from .trial_statistics import Interval, clopper_pearson, median
from .trials import Setting, Trials

__all__ = ["Constant", "Half", "half_point", "required_rate", "smallest_constant"]

FINENESS = 8
"""Constants tried: powers of 2^(1/8)."""

LOWEST, HIGHEST = -5 * FINENESS, 5 * FINENESS

MOST_WORDS = 8
"""Largest N1 tried, in units of d ln d."""

WORD_STEP = 1.02
"""Resolution of N1."""


def required_rate(d: int, c: float) -> float:
    """1 - 3 d^(-c); at most 0 where the corollary says nothing."""
    return 1 - 3 * d**-c


@dataclass(frozen=True)
class Constant:
    """The smallest constant that works at one setting.

    Attributes
    ----------
    d, eps, c, required
        The setting and 1 - 3 d^(-c).
    value : float
        Smallest constant tried whose success rate reaches it; 0 where nothing is required, inf if
        none did.
    fails, works : float
        Largest constant whose rate is below it with confidence, smallest above it with
        confidence: the answer lies between. 0 and inf where there is none.
    rates : dict
        Constant -> success rate with Clopper-Pearson interval.
    trials, rng : int
    """

    d: int
    eps: float
    c: float
    required: float
    value: float
    fails: float
    works: float
    trials: int
    rng: int
    rates: dict[float, Interval] = field(default_factory=dict)


def smallest_constant(
    setting: Setting, c: float = 1.0, trials: int = 200, rng: int = 0, confidence: float = 0.95
) -> Constant:
    """Bisect for the smallest C, one in all three places, with success rate 1 - 3 d^(-c).

    Notes
    -----
    Constants are powers of 2^(1/8); rates are taken to grow with C, which `rates` shows. Error:
    sampled, with Clopper-Pearson intervals.
    """
    required = required_rate(setting.d, c)
    rates: dict[float, Interval] = {}
    run = Trials(setting, trials, rng)

    def rate(k: int) -> Interval:
        constant = _constant(k)
        if constant not in rates:
            rates[constant] = clopper_pearson(run.successes(constant), trials, confidence)
        return rates[constant]

    def least(reaches: str) -> int:
        """The least k for which the rate (or a bound of it) reaches what is required."""
        low, high = LOWEST - 1, HIGHEST + 1
        while high - low > 1:
            middle = (low + high) // 2
            if getattr(rate(middle), reaches) >= required:
                high = middle
            else:
                low = middle
        return high

    if required <= 0:
        return Constant(setting.d, setting.eps, c, required, 0.0, 0.0, 0.0, trials, rng)
    value, works, fails = least("value"), least("low"), least("high") - 1
    return Constant(
        setting.d, setting.eps, c, required, _constant(value), _constant(fails), _constant(works),
        trials, rng, dict(sorted(rates.items())),
    )  # fmt: skip


def _constant(k: int) -> float:
    if k > HIGHEST:
        return math.inf
    return 0.0 if k < LOWEST else 2 ** (k / FINENESS)


@dataclass(frozen=True)
class Half:
    """How many words phases 1 and 2 need for half of the trials to succeed.

    Attributes
    ----------
    d, eps
        The setting.
    constant : float
        C in eta2; N3 is infinite.
    words : Interval
        Median over the trials of the least N1 with risk <= eps, with its interval; infinite where
        more than half the trials failed at the largest N1.
    trials, rng : int
    """

    d: int
    eps: float
    constant: float
    words: Interval
    trials: int
    rng: int


def half_point(
    setting: Setting, constant: float = 2.0, trials: int = 200, rng: int = 0,
    confidence: float = 0.95,
) -> Half:  # fmt: skip
    """The N1 at which half of the trials succeed; phase 3 on the population.

    Notes
    -----
    Each trial is bisected on its own words, more of them each time, to 2 %. Error: sampled, with
    the interval of the median.
    """
    run, eta2 = Trials(setting, trials, rng), setting.second_step(constant)
    top = math.ceil(math.log(MOST_WORDS * setting.first(1.0)) / math.log(WORD_STEP))
    low, high = np.zeros(trials, dtype=int), np.full(trials, top)
    open_ = np.arange(trials)
    good = run.risks(_words(high), None, eta2) <= setting.eps
    out = np.full(trials, math.inf)
    open_ = open_[good]
    while open_.size:
        middle = (low[open_] + high[open_]) // 2
        fine = run.risks(_words(middle), None, eta2, open_.tolist()) <= setting.eps
        high[open_[fine]], low[open_[~fine]] = middle[fine], middle[~fine]
        open_ = open_[high[open_] - low[open_] > 1]
    out[good] = _words(high[good])
    return Half(setting.d, setting.eps, constant, median(out.tolist(), confidence), trials, rng)


def _words(k: np.ndarray) -> np.ndarray:
    return np.ceil(WORD_STEP**k - 1e-9).astype(int)
