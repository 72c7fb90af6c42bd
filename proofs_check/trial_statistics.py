"""Success rates, medians and exponents with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Interval", "Line", "clopper_pearson", "fit", "median"]


class Interval(NamedTuple):
    """An estimate with the bounds of its confidence interval."""

    value: float
    low: float
    high: float


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """A success rate with its Clopper-Pearson interval, which never covers less than it says.

    Notes
    -----
    Source: Clopper and Pearson 1934, by quantiles of beta distributions. Error: sampled.
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0
    if successes < trials:
        high = float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return Interval(successes / trials, low, high)


def median(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """The median with an interval between two order statistics; values may be infinite.

    Notes
    -----
    The median lies between the k-th smallest and the k-th largest with probability
    1 - 2 P(Binomial(n, 1/2) < k), whatever the distribution. Error: sampled.
    """
    from scipy.special import bdtr

    ordered = np.sort(np.asarray(values, dtype=float))
    n = ordered.size
    k = 0
    while 2 * float(bdtr(k, n, 0.5)) <= 1 - confidence:
        k += 1
    if k == 0:
        return Interval(float(np.median(ordered)), 0.0, math.inf)
    middle = ordered[(n - 1) // 2], ordered[n // 2]
    return Interval(float(np.mean(middle)), float(ordered[k - 1]), float(ordered[n - k]))


class Line(NamedTuple):
    """ln y = intercept + exponent ln x.

    Attributes
    ----------
    exponent : Interval
    intercept : float
    scatter : float
        Mean square of the residuals in units of their errors: about 1 when a power law fits.
    """

    exponent: Interval
    intercept: float
    scatter: float


def fit(x: Sequence[float], y: Sequence[Interval], confidence: float = 0.95) -> Line | None:
    """A power law through estimates with intervals; None with fewer than three finite ones.

    Notes
    -----
    Least squares in logarithms, weighted by the intervals; the exponent's interval is widened by
    the scatter where a power law does not fit. Error: sampled.
    """
    from scipy.special import ndtri, stdtrit

    z = float(ndtri((1 + confidence) / 2))
    kept = [
        (math.log(at), math.log(e.value), max(math.log(e.high / e.low) / (2 * z), 1e-3))
        for at, e in zip(x, y, strict=True)
        if e.low > 0 and e.high < math.inf
    ]
    if len(kept) < 3:
        return None
    u, v, error = np.array(kept).T
    weight = error**-2
    centre = (weight @ u) / weight.sum()
    spread = weight @ (u - centre) ** 2
    slope = float(weight @ ((u - centre) * v) / spread)
    intercept = float((weight @ v) / weight.sum() - slope * centre)
    free = len(kept) - 2
    scatter = float((((v - intercept - slope * u) / error) ** 2).sum() / free)
    widened = float(stdtrit(free, (1 + confidence) / 2)) * math.sqrt(max(scatter, 1.0) / spread)
    return Line(Interval(slope, slope - widened, slope + widened), intercept, scatter)
