"""Exact accuracy P(sign f = y) at symmetric weights, by negative binomial sums.

f > 0 is an inequality between the count c of the target and the count b of the rest,
(beta_s - 1) e^gap c > (1 - beta_j) b; given c, b is negative binomial (THEORY 4).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .symmetric_descent import OutputDescent, _combine, _power
from .symmetric_moments import dimensions
from .symmetric_quadratic import plain
from .symmetric_state import State, check_shapes, check_state

__all__ = ["AccuracyTable", "accuracy", "shortfall"]

# P(C_s > K) = r^K/2 < 2^-(K+1): 7e-18 dropped
COUNTS = 56
ROWS = 1024
TABLE_ROWS = 65536
# b exceeds this many alphabets with probability below e^-10000
FAR = 1e5
# the table: counts with P(C_s > 46) = 7e-15 left out, b up to 45 alphabets (mass e^-45 beyond)
TABLE_D = 5000
TABLE_COUNTS = 46
TABLE_REACH = 45
TABLE_DROP = 2e-16
# a threshold is decided in exact arithmetic when doubles cannot tell it from an integer
ULPS = 16.0


@np.errstate(under="ignore")
def accuracy(
    state: State, d: Any, table: AccuracyTable | None = None, *, behind: Any = None
) -> Any:
    """Probability that the sign of the prediction is the label, sign(0) being -1.

    Parameters
    ----------
    state : State
        Weights; fields may be arrays.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15; broadcasts with the state.
    table : AccuracyTable, optional
        All steps at this d, worth building from about 10^5 states.
    behind : float or array, optional
        1 - beta_j where beta_j cannot hold its digits, as from `shortfall`; None, or NaN in an
        array, means the difference.

    Returns
    -------
    float or array
        P(sign f = y) in [0, 1].

    Raises
    ------
    BadParameter
        When an argument is out of range or shapes do not broadcast.

    Notes
    -----
    The accuracy is a step function of the weights. Whether a word lies on a step is decided in
    exact arithmetic wherever doubles cannot decide, for exactly the weights given, so there is
    no interval to report. At large d the steps are fine: a relative error x of beta_s - 1 or of
    1 - beta_j, from weights that were rounded before, moves the accuracy by up to x/3.
    Source: THEORY 4. Error: estimated, 1e-13 absolute (betainc), and 7e-18 of dropped mass
    (proved).
    """
    check_state("state", state)
    sizes = dimensions(d)
    shape_source = np.add(state.gap, np.add(state.residual, state.beta_background))
    rounded = 1 - np.asarray(state.beta_background)
    behind = rounded if behind is None else np.where(np.isnan(behind), rounded, behind)
    check_shapes(state=shape_source, d=sizes, behind=behind)
    shape = np.broadcast_shapes(np.shape(shape_source), sizes.shape, np.shape(behind))
    fields = (
        state.alpha_target, state.alpha_background, state.residual, state.beta_background, behind,
        sizes,
    )  # fmt: skip
    columns = [np.broadcast_to(np.asarray(x, dtype=float), shape).ravel() for x in fields]
    threshold, rows = _threshold_sum, ROWS
    if table is not None:
        table.check(sizes)
        threshold, rows = table.threshold_sum, TABLE_ROWS
    out = np.empty(columns[0].size)
    for start in range(0, out.size, rows):
        out[start : start + rows] = _block(threshold, *(x[start : start + rows] for x in columns))
    return plain(out.reshape(shape))


@np.errstate(all="ignore")
def shortfall(descent: OutputDescent, steps: Any) -> Any:
    """1 - beta_j after `steps` output steps, without the cancellation near 1; NaN where diverged.

    Parameters
    ----------
    descent : OutputDescent
    steps : array_like
        Whole numbers >= 0, or inf.

    Notes
    -----
    As M20 + 2 M11 + M02 = 1/2, the minimum has 1/2 - V = M20 (1 + rho)^2 and
    1 - beta_j = (1 - 2V)/(1 + 2V). Source: THEORY 5. Error: estimated, 1e-14 of the largest of
    its terms (of itself at steps = inf).
    """
    q, best, (one, two) = descent.quadratic, descent.minimum, descent._parts
    v = q.variance
    end = np.where(v < 0.25, 1 - best.beta_background, 2 * q.m20 * (1 + q.rho) ** 2 / (1 + 2 * v))
    start, odd = 1 - descent.beta, np.asarray(np.asarray(steps) % 2 == 1, dtype=bool)
    steps = np.asarray(steps, dtype=float)
    (k1, _), (k2, _) = descent._rates
    _, _, x, y, _ = descent._spectrum
    f1, f2 = descent._log_factors
    left = (_power(odd & (k1 < 0), f1, steps), _power(odd & (k2 < 0), f2, steps))
    root = np.sqrt(q.d - 1)
    found = _combine(start, end, (-y * one / root, -x * two / root), left)
    return np.where(descent.diverged(steps), np.nan, np.where(steps == 0, start, found))


def _block(
    threshold: Any, top: Any, low: Any, v: Any, beta: Any, behind: Any, d: Any
) -> np.ndarray:
    """Accuracy of one block of states, all columns of one length."""
    ahead = 1 + v  # beta_s - 1, sign exact
    gap = top - low
    # outside the two cases that need a threshold the answer is the same for every count
    sure = np.where((behind <= 0) & (ahead > 0), 1.0, 0.0)
    right = 0.5 * sure
    below = (behind > 0) & (ahead > 0) | (behind == 0) & (ahead > 0) & np.isneginf(gap)
    beyond = (behind < 0) & (ahead < 0) | (behind < 0) & (ahead == 0) & ~np.isposinf(gap)
    rows = np.flatnonzero(below | beyond)
    if rows.size:
        columns = (x[rows] for x in (top, low, v, beta, behind, d))
        right[rows] = threshold(below[rows], *columns)
    return right + np.where(behind >= 0, 0.5, 0.0)


def _threshold_sum(
    below: Any, top: Any, low: Any, v: Any, beta: Any, behind: Any, d: Any
) -> np.ndarray:
    """E_+[1{b <= n_c}] where `below`, E_+[1{b > n_c}] elsewhere."""
    far = _slope(top, low, v, behind)[1] >= FAR * d
    if far.any():
        out = np.where(below, 0.5, 0.0)
        rows = np.flatnonzero(~far)
        if rows.size:
            out[rows] = _threshold_sum(*(x[rows] for x in (below, top, low, v, beta, behind, d)))
        return out
    from scipy.special import betainc, betaincc

    counts = np.arange(1.0, COUNTS + 1)
    last = _last(below, top, low, v, beta, behind, d, counts)
    chance = (2 / d)[:, None]
    if below.all():
        inside = betainc(counts + 1, last + 1, chance)
    else:
        upper = betaincc(counts + 1, last + 1, chance)
        inside = np.where(below[:, None], betainc(counts + 1, last + 1, chance), upper)
    r = ((d - 2) / (2 * (d - 1)))[:, None]
    return (inside * (0.5 * (1 - r) * r ** (counts - 1))).sum(axis=1)


def _last(
    below: Any, top: Any, low: Any, v: Any, beta: Any, behind: Any, d: Any, counts: Any
) -> np.ndarray:
    """n_c: the largest b with b < c kappa (where `below`) or b <= c kappa."""
    gap, kappa = _slope(top, low, v, behind)
    with np.errstate(all="ignore"):
        limit = np.minimum(kappa[:, None] * counts, FAR * d[:, None])
    # an open threshold at 0+ still admits b = 0
    last = np.where(below[:, None], np.maximum(np.ceil(limit) - 1, 0), np.floor(limit))
    slack = ULPS * (1 + np.abs(gap)) * 2.0**-53
    with np.errstate(invalid="ignore"):
        close = np.abs(limit - np.rint(limit)) <= slack[:, None] * limit
    close &= (limit > 0.25) & (limit < FAR * d[:, None])
    for row, column in np.argwhere(close):
        count = int(counts[column])
        last[row, column] = _exact_last(
            below[row], top[row], low[row], v[row], beta[row], behind[row], count
        )
    return last


def _slope(top: Any, low: Any, v: Any, behind: Any) -> tuple[np.ndarray, np.ndarray]:
    """gap and kappa = |beta_s - 1| e^gap / |1 - beta_j|: thresholds are b = c kappa."""
    with np.errstate(all="ignore"):
        gap = top - low
        half = np.exp(np.clip(gap, -1400, 1400) / 2)
        kappa = np.abs((1 + v) / behind) * half * half
        return gap, np.where(np.isneginf(gap) | (v == -1), 0.0, kappa)


def _exact_last(
    below: bool, top: float, low: float, v: float, beta: float, behind: float, count: int
) -> int:
    """n_c in exact arithmetic for the binary numbers given."""
    top, low, v, beta, behind = (float(x) for x in (top, low, v, beta, behind))
    # a difference of its own knows more than the weight; else the weight is what was given
    rest = 1 - Fraction(beta) if behind == 1 - beta else Fraction(behind)
    ratio = abs((1 + Fraction(v)) / rest) * count
    gap = Fraction(top) - Fraction(low)
    if gap == 0:
        return math.ceil(ratio) - 1 if below else math.floor(ratio)
    from mpmath import mp, mpf

    # e^gap is irrational, so the product is never an integer and some precision decides
    digits = 60
    while True:
        with mp.workdps(digits):
            grow = mp.exp(mpf(gap.numerator) / gap.denominator)
            value = mpf(ratio.numerator) / ratio.denominator * grow
            if abs(value - mp.nint(value)) > mpf(10) ** (10 - digits) * value:
                return int(mp.floor(value))
        digits *= 2


class AccuracyTable:
    """Every step of the accuracy at one d: words (c, b) sorted by b/c, with cumulative mass.

    Parameters
    ----------
    d : int
        Alphabet size, 2 <= d <= 5000 (the table holds about 1000 d entries).

    Raises
    ------
    BadParameter
        When d is out of range.

    Notes
    -----
    Source: THEORY 4. Error: estimated, 1e-12 absolute; words of mass 2e-14 in all are dropped.
    States within rounding of a step go to the exact path.
    """

    def __init__(self, d: int):
        remedy = f"pass 2 <= d <= {TABLE_D}, or call accuracy without a table"
        self.d = check.integer("d", d, 2, TABLE_D, remedy=remedy)
        rho, r = 2 / self.d, (self.d - 2) / (2 * (self.d - 1))
        b = np.arange(TABLE_REACH * self.d)
        pmf = rho * (1 - rho) ** b
        steps, masses = [], []
        for c in range(1, TABLE_COUNTS + 1):
            pmf = pmf * (rho * (b + c) / c)
            mass = pmf * (0.5 * (1 - r) * r ** (c - 1))
            kept = np.flatnonzero(mass > TABLE_DROP / b.size)
            steps.append(b[kept] / c)
            masses.append(mass[kept])
        step, mass = np.concatenate(steps), np.concatenate(masses)
        order = np.argsort(step)
        self._step = step[order]
        total = np.cumsum(mass[order], dtype=np.longdouble)
        self._below = np.concatenate([[0.0], total.astype(float)])

    def __repr__(self) -> str:
        return f"AccuracyTable(d={self.d}, steps={self._step.size})"

    def check(self, d: np.ndarray) -> None:
        """Refuse another d."""
        if np.any(d != self.d):
            raise check.refuse(
                "table", self, "was built for another d", "pass one d and the AccuracyTable of it"
            )

    def threshold_sum(
        self, below: Any, top: Any, low: Any, v: Any, beta: Any, behind: Any, d: Any
    ) -> np.ndarray:
        """The kernel `_threshold_sum` by look-up."""
        gap, kappa = _slope(top, low, v, behind)
        # at kappa = 0+ words with b = 0 are in: they are the steps at 0
        kappa = np.maximum(kappa, 1e-300)
        left = self._step.searchsorted(kappa)
        near = np.minimum(left, self._step.size - 1)
        slack = ULPS * (1 + np.abs(gap)) * 2.0**-53 * kappa
        with np.errstate(invalid="ignore"):
            close = (np.abs(self._step[near] - kappa) <= slack) | (
                np.abs(self._step[np.maximum(left, 1) - 1] - kappa) <= slack
            )
        close &= kappa < FAR * self.d
        # no step between: open and closed thresholds count the same words
        inside = self._below[left]
        out = np.where(below, inside, 0.5 - inside)
        rows = np.flatnonzero(close)
        if rows.size:
            out[rows] = _threshold_sum(*(x[rows] for x in (below, top, low, v, beta, behind, d)))
        return out
