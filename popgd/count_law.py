"""Probabilities of group counts, their tables and their proven tails, for every length law.

P(m, n) = P(m) m! / (n_1! ... n_g!) Pi_1^n_1 ... Pi_g^n_g is built from ratios of neighbours:
first the joint law of m and the number k of symbols outside the bulk group, then the split of
k among the rare groups. Numbers carry their own binary exponent, so nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import NotAvailable
from .words import FixedLength, Geometric, Poisson, UniformLength

__all__ = [
    "LONGEST",
    "UNIT",
    "length_span",
    "length_tail",
    "rare_rows",
    "rare_tail",
    "smallest",
    "splits",
    "table_error",
]

UNIT = 2.0**-53
# up to here the exponents of the tables are exact
LONGEST = 2**26
# Poisson tables restart from a 40-digit value this often: 3 roundings a step
RESTART = 16
# logarithms below are rounded; every bound that goes through exp is raised by this much
SLACK = 1e-6
_POWERS = 4


def length_span(law: Any) -> tuple[int, int | None]:
    """Shortest and longest length; None when there is no longest."""
    if isinstance(law, (FixedLength, UniformLength)):
        return law.lengths[0], law.lengths[-1]
    if isinstance(law, Geometric) and law.exact_p == 1:
        return 1, 1
    if isinstance(law, (Geometric, Poisson)):
        return 1, None
    raise NotAvailable(
        f"The series route knows no tail bound for the length law {law!r};"
        " use popgd.PopulationRisk(task, method='integral')."
    )


def length_tail(law: Any, longest: int) -> np.ndarray:
    """Upper bounds on E[m^j 1{m > longest}], j = 0..3, as an array of shape (4,).

    Parameters
    ----------
    law : LengthLaw
    longest : int

    Notes
    -----
    Beyond the cut the probabilities fall at least like rho^i, so with x = 1/(1 - rho) the moment
    is at most P(m = cut + 1) x times the sum of binom(j, i) cut^(j-i) i! x^i. Source: THEORY 4.
    Error: proved.
    """
    _, last = length_span(law)
    if last is not None:
        return np.full(_POWERS, 0.0 if longest >= last else math.inf)
    if isinstance(law, Geometric):
        rate = math.log1p(-law.p) if law.p < 0.5 else math.log(law.q)
        log_mass, mean = longest * rate, 1.0 / law.p
    else:
        ratio = law.rate / (longest + 2)
        if ratio >= 1:
            return np.full(_POWERS, math.inf)
        log_mass = _log_poisson(law.rate, longest + 1, law.rate) - math.log1p(-ratio)
        mean = 1.0 / (1.0 - ratio)
    if mean > 1e60:
        return np.full(_POWERS, math.inf)
    # the rounded rate of decay is amplified by the length
    log_mass += SLACK + 4 * UNIT * abs(log_mass)
    moments = [
        sum(
            math.comb(j, i) * float(longest) ** (j - i) * math.factorial(i) * mean**i
            for i in range(j + 1)
        )
        for j in range(_POWERS)
    ]
    return np.array(moments) * (math.exp(max(log_mass, -740.0)))


def _log_poisson(mean: float, k: int, rate: float) -> float:
    """Upper bound on log of P(Poisson(mean) = k) / (1 - exp(-rate))."""
    log = k * math.log(mean) - mean - math.lgamma(k + 1.0) - math.log(-math.expm1(-rate))
    return log + 1e-14 * (k * abs(math.log(mean)) + mean + math.lgamma(k + 1.0))


def rare_tail(law: Any, mass: Fraction, most: int) -> float:
    """Upper bound on P(more than `most` symbols lie in a set of probability `mass`).

    Parameters
    ----------
    law : LengthLaw
    mass : Fraction
        Probability that one symbol lies in the set.
    most : int

    Notes
    -----
    Geometric: exactly phi r^most, phi = mass / (p + q mass), r = q phi (memorylessness).
    Poisson: thinning. Bounded: a binomial of the greatest length. Source: THEORY 4.
    Error: proved.
    """
    if mass == 0:
        return 0.0
    if isinstance(law, Geometric):
        p = law.exact_p
        phi = mass / (p + (1 - p) * mass)
        if p == 1:
            return float(phi) * (1 + SLACK) if most == 0 else 0.0
        log = math.log(phi) + most * math.log(float((1 - p) * phi))
    elif isinstance(law, Poisson):
        mean = law.rate * float(mass)
        ratio = mean / (most + 2)
        if ratio >= 1:
            return 1.0
        log = _log_poisson(mean, most + 1, law.rate) - math.log1p(-ratio)
    else:
        return _binomial_tail(length_span(law)[1], mass, most)
    return min(1.0, math.exp(max(log + SLACK + 8 * UNIT * abs(log), -740.0)))


def _binomial_tail(n: Any, mass: Fraction, most: int) -> float:
    if most >= n:
        return 0.0
    if mass == 1:
        return 1.0
    ratio = (n - most - 1) * mass / ((most + 2) * (1 - mass))
    if ratio >= 1:
        return 1.0
    x, k = float(mass), most + 1
    factorials = math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)
    log = factorials + k * math.log(x) + (n - k) * math.log(float(1 - mass))
    log += SLACK + 1e-14 * math.lgamma(n + 1.0) - math.log(float(1 - ratio))
    return min(1.0, math.exp(max(log, -740.0)))


def smallest(bound: Callable[[int], float], target: float, low: int) -> int:
    """Smallest integer n >= low with bound(n) <= target, by doubling and bisection."""
    step, high = 1, low
    while bound(high) > target:
        low, high, step = high + 1, high + step, 2 * step
        if high > 2**40:
            break
    while low < high:
        middle = (low + high) // 2
        if bound(middle) > target:
            low = middle + 1
        else:
            high = middle
    return low


def rare_rows(
    law: Any, rare: Fraction, most: int, first: int, longest: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """P(m, k) for k = 0..most rare symbols: yields (k, smallest m, array over m up to `longest`).

    Notes
    -----
    P(m, k) / P(m, k-1) = (m - k + 1) (rare / (1 - rare)) / k. Source: THEORY 4.
    Error: see `table_error`.
    """
    m = np.arange(first, longest + 1, dtype=float)
    mantissa, exponent = _base(law, 1 - rare, first, longest)
    odds = float(rare / (1 - rare)) if rare else 0.0
    for k in range(most + 1):
        if k:
            mantissa, shift = np.frexp(mantissa * (m - (k - 1)) * (odds / k))
            exponent = exponent + shift
            if m[0] < k:
                m, mantissa, exponent = m[1:], mantissa[1:], exponent[1:]
        if m.size == 0:
            return
        yield k, int(m[0]), np.ldexp(mantissa, np.maximum(exponent, -2000))


def table_error(law: Any, k: int, groups: int) -> float:
    """Proven relative error of P(m, n) as tabulated, in units of 2^-53.

    Five roundings for each step in k, four for each row of each splitting table.
    """
    base = 12 + (3 * RESTART if isinstance(law, Poisson) else 0)
    return base + 5 * k + 4 * k * max(groups - 2, 0)


def _base(law: Any, bulk: Fraction, first: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """P(m) bulk^m as mantissas and binary exponents."""
    from mpmath import log, mp, mpf

    with mp.workdps(50):
        bulk_mp = mpf(bulk.numerator) / bulk.denominator
        if isinstance(law, Poisson):
            return _poisson_base(law, bulk_mp, first, longest)
        if isinstance(law, Geometric) and law.exact_p != 1:
            q = 1 - law.exact_p
            scale = mpf(law.exact_p.numerator) / law.exact_p.denominator
            q_mp = mpf(q.numerator) / q.denominator
            start, step = log(scale / q_mp, 2), log(q_mp * bulk_mp, 2)
        else:
            lengths = getattr(law, "lengths", range(1, 2))
            start, step = -log(mpf(len(lengths)), 2), log(bulk_mp, 2)
        return _powers_of_two(start, step, np.arange(first, longest + 1, dtype=float))


def _powers_of_two(start: Any, step: Any, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2^(start + step m); `step` is split so that m times its high part is exact."""
    high = _leading_bits(float(step), 26)
    low = float(step - high)
    whole = math.floor(start)
    product = m * high
    integer = np.floor(product)
    fraction = (product - integer) + (m * low + float(start - whole))
    mantissa, shift = np.frexp(np.exp2(fraction))
    return mantissa, shift + (integer + whole).astype(np.int64)


def _leading_bits(x: float, bits: int) -> float:
    mantissa, exponent = math.frexp(x)
    return math.ldexp(float(round(mantissa * 2**bits)), exponent - bits)


def _poisson_base(law: Poisson, bulk: Any, first: int, longest: int) -> tuple[Any, Any]:
    """rate^m bulk^m / (m! (e^rate - 1)), restarted from an exact value every RESTART lengths."""
    from mpmath import expm1, floor, log, loggamma, mpf

    rate = mpf(law.exact_rate.numerator) / law.exact_rate.denominator
    mean, two = rate * bulk, log(mpf(2))
    norm = log(expm1(rate))
    blocks = -(-(longest - first + 1) // RESTART)
    starts = first + RESTART * np.arange(blocks)
    logs = [(int(s) * log(mean) - loggamma(int(s) + 1) - norm) / two for s in starts]
    whole = np.array([int(floor(x)) for x in logs])
    factors = np.ones((blocks, RESTART))
    factors[:, 0] = [float(2 ** (x - int(w))) for x, w in zip(logs, whole, strict=True)]
    factors[:, 1:] = float(mean) / (starts[:, None] + np.arange(1, RESTART))
    with np.errstate(under="ignore"):
        mantissa, exponent = np.frexp(np.cumprod(factors, axis=1))
    size = longest - first + 1
    return mantissa.ravel()[:size], (exponent + whole[:, None]).ravel()[:size]


def splits(mass: tuple[Fraction, ...], most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For k = 0..most: the ways to split k among the rare groups, and their probabilities.

    Parameters
    ----------
    mass : tuple of Fraction
        Probabilities of the rare groups.
    most : int

    Yields
    ------
    counts : array of shape (ways, groups)
    probability : array of shape (ways,)
    """
    if not mass:
        for _ in range(most + 1):
            yield np.zeros((1, 0)), np.ones(1)
        return
    if len(mass) == 1:
        for k in range(most + 1):
            yield np.array([[float(k)]]), np.ones(1)
        return
    rest = list(splits(mass[1:], most))
    fraction = mass[0] / sum(mass)
    x, y = float(fraction), float(1 - fraction)
    row = np.ones(1)
    for k in range(most + 1):
        if k:
            # Pascal's rule: positive terms, so no digit is lost
            row = np.append(row, 0.0) * y + np.append(0.0, row) * x
        yield _join(row, rest[: k + 1])


def _join(
    row: np.ndarray, rest: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    k = len(row) - 1
    counts = [np.insert(rest[k - n][0], 0, float(n), axis=1) for n in range(k + 1)]
    return np.concatenate(counts), np.concatenate([row[n] * rest[k - n][1] for n in range(k + 1)])
