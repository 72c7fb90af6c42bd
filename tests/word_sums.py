"""Risk, gradients and accuracy by direct sums over all words, to 40 digits; no grouping."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

from mpmath import exp, expm1, factorial, mp, mpf

from popgd.words import Geometric, Poisson

DIGITS = 40


class Direct(NamedTuple):
    """Truth up to words longer than `longest`; `tail` is P(m > longest)."""

    risk: Any
    positive: Any
    alpha: list[Any]
    beta: list[Any]
    right: Any
    tail: Any


def rational(x: Any) -> Any:
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def length_probability(law: Any, m: int) -> Any:
    """P(m) at the working precision."""
    if isinstance(law, Geometric):
        p = rational(law.exact_p)
        return p * (1 - p) ** (m - 1) if m > 1 else p
    if isinstance(law, Poisson):
        rate = rational(law.exact_rate)
        return rate**m / factorial(m) / expm1(rate)
    return mpf(1) / len(law.lengths) if m in law.lengths else mpf(0)


def count_vectors(m: int, d: int):
    """All ways to write m as an ordered sum of d counts."""
    for bars in itertools.combinations(range(m + d - 1), d - 1):
        ends = (-1, *bars, m + d - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def is_positive(task: Any, counts: tuple[int, ...]) -> bool:
    present = [counts[s] > 0 for s in task.targets]
    return all(present) if type(task).__name__ == "And" else any(present)


def direct(task: Any, alpha: Any, beta: Any, residual: Any = None, longest: int = 25) -> Direct:
    """Sum over every count vector of every length up to `longest`."""
    with mp.workdps(DIGITS):
        d, pi = task.d, [rational(x) for x in task.words.exact_probabilities(task.d)]
        a = [exp(rational(x)) for x in alpha]
        negative_v = [rational(b) for b in beta]
        positive_v = [b - 2 for b in negative_v]
        if residual is not None:
            for s, r in zip(task.targets, residual, strict=True):
                positive_v[s] = rational(r)
        losses, right, mass = [mpf(0), mpf(0)], mpf(0), mpf(0)
        by_alpha, by_beta = [mpf(0)] * d, [mpf(0)] * d
        for m in range(1, longest + 1):
            length = length_probability(task.words.length, m)
            if length == 0:
                continue
            mass += length
            for counts in count_vectors(m, d):
                weight = length * math.factorial(m)
                for p, c in zip(pi, counts, strict=True):
                    weight *= p**c / math.factorial(c)
                label = is_positive(task, counts)
                v = positive_v if label else negative_v
                total = sum(x * c for x, c in zip(a, counts, strict=True))
                gamma = [x * c / total for x, c in zip(a, counts, strict=True)]
                error = sum(x * g for x, g in zip(v, gamma, strict=True))
                losses[label] += weight * error**2 / 2
                # f = y + error
                right += weight * (((1 if label else -1) + error > 0) == label)
                for i in range(d):
                    by_beta[i] += weight * error * gamma[i]
                    by_alpha[i] += weight * error * gamma[i] * (v[i] - error)
        return Direct(sum(losses), losses[True], by_alpha, by_beta, right, 1 - mass)
