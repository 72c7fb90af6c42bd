"""Risk, gradients and second moments summed over enumerated words at 50 digits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
from mpmath import mpf

from popgd import Geometric, Poisson
from popgd import ball as b
from popgd.ball import Enclosure, exact

DPS = 50  # enumeration works at 50 digits; its own rounding is below 1e-45


ROUNDING = mpf(10) ** -45


@cache
def counts(d: int, longest: int) -> np.ndarray:
    """Every count vector with 1..longest symbols."""
    return np.array([x for x in product(range(longest + 1), repeat=d) if 0 < sum(x) <= longest])


def fraction_mpf(x: Fraction) -> mpf:
    return mpf(x.numerator) / x.denominator


def pmf(law, m: int) -> mpf:
    if isinstance(law, Geometric):
        p = law.exact_p
        return fraction_mpf(p * (1 - p) ** (m - 1))
    if isinstance(law, Poisson):
        rate = fraction_mpf(law.exact_rate)
        return rate**m / mpmath.factorial(m) / mpmath.expm1(rate)
    return mpf(m in law.lengths) / len(law.lengths)


def enumerated(task, alpha, beta, longest, tier=None):
    """(value, dL/dalpha, dL/dbeta, second moments) summed over words up to `longest`.

    Also the mass left out. A route of its own: softmax over each count vector.
    """
    d = task.d
    tier = [0] * d if tier is None else list(tier)
    words = counts(d, longest)
    labels = task.labels(words)
    pi = [fraction_mpf(x) for x in task.words.exact_probabilities(d)]
    length = [mpf(0)] + [pmf(task.words.length, m) for m in range(1, longest + 1)]
    a = [mpmath.exp(x) for x in alpha]
    value, by_alpha, by_beta = mpf(0), [mpf(0)] * d, [mpf(0)] * d
    gram = [[mpf(0)] * d for _ in range(d)]
    covered = mpf(0)
    for word, label in zip(words.tolist(), labels.tolist(), strict=True):
        m = sum(word)
        probability = length[m] * math.factorial(m)
        for n, p in zip(word, pi, strict=True):
            probability *= p**n / math.factorial(n)
        covered += probability
        highest = max(t for n, t in zip(word, tier, strict=True) if n)
        mass = [x * n if t == highest else mpf(0) for x, n, t in zip(a, word, tier, strict=True)]
        total = mpmath.fsum(mass)
        gamma = [x / total for x in mass]
        output = mpmath.fsum(x * g for x, g in zip(beta, gamma, strict=True))
        r = output - 1 - label
        value += probability * r * r / 2
        for i in range(d):
            by_beta[i] += probability * r * gamma[i]
            by_alpha[i] += probability * r * gamma[i] * (beta[i] - output)
            for j in range(d):
                gram[i][j] += probability * gamma[i] * gamma[j]
    return value, by_alpha, by_beta, gram, max(1 - covered, mpf(0))


def inside(found: Enclosure, truth: mpf, slack: mpf) -> bool:
    """Whether the interval truth +- slack meets the enclosure."""
    low, high = exact(truth - slack).fraction, exact(truth + slack).fraction
    return found.bounds[0] <= high and low <= found.bounds[1]


def exact_mpf(text):
    low, high = b.rational_bounds(exact(text))
    return fraction_mpf((low + high) / 2)
