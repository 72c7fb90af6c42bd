"""Risk, gradients and accuracy by direct sums over all words, to 45 digits and more; no grouping.

Decimal arithmetic of the standard library: correctly rounded, and fast enough for 10^4 words.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from popgd.languages import And
from popgd.words import Geometric, Poisson

DIGITS = 45


class Direct(NamedTuple):
    """Truth up to words longer than `longest`; `tail` is P(m > longest) and what is rounded."""

    risk: Decimal
    positive: Decimal
    alpha: list[Decimal]
    beta: list[Decimal]
    right: Decimal
    tail: Decimal


def rational(x: Any) -> Decimal:
    """`x` to the working precision; a float is the binary number it is."""
    x = Fraction(x)
    return Decimal(x.numerator) / x.denominator


def length_probability(law: Any, m: int) -> Decimal:
    """P(m) to the working precision."""
    if isinstance(law, Geometric):
        p = rational(law.exact_p)
        return p * (1 - p) ** (m - 1) if m > 1 else p
    if isinstance(law, Poisson):
        rate = rational(law.exact_rate)
        return rate**m / math.factorial(m) / (rate.exp() - 1)
    return Decimal(m in law.lengths) / len(law.lengths)


def count_vectors(m: int, d: int):
    """All ways to write m as an ordered sum of d counts."""
    for bars in itertools.combinations(range(m + d - 1), d - 1):
        ends = (-1, *bars, m + d - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def is_positive(task: Any, counts: tuple[int, ...]) -> bool:
    present = [counts[s] > 0 for s in task.targets]
    return all(present) if isinstance(task, And) else any(present)


def direct(task: Any, alpha: Any, beta: Any, residual: Any = None, longest: int = 18) -> Direct:
    """Sum over every count vector of every length up to `longest`."""
    # v - error cancels down to ratios of attention, e^-spread
    spread = max(alpha) - min(alpha)
    with localcontext(prec=DIGITS + int(spread)):
        symbols = range(task.d)
        pi = [rational(x) for x in task.words.exact_probabilities(task.d)]
        share = [
            [p**c / math.factorial(c) if c else Decimal(1) for c in range(longest + 1)] for p in pi
        ]
        # relative to the strongest: equal attention is exactly 1, so ties are exact
        a = [rational(Fraction(x) - Fraction(max(alpha))).exp() for x in alpha]
        v = {False: [rational(b) for b in beta], True: [rational(b) - 2 for b in beta]}
        if residual is not None:
            for s, r in zip(task.targets, residual, strict=True):
                v[True][s] = rational(r)
        zero = Decimal(0)
        losses, right, mass = [zero, zero], zero, zero
        by_alpha, by_beta = [zero] * task.d, [zero] * task.d
        for m in range(1, longest + 1):
            length = length_probability(task.words.length, m)
            mass += length
            for counts in count_vectors(m, task.d) if length else ():
                weight = length * math.factorial(m)
                for i in symbols:
                    weight *= share[i][counts[i]]
                label = is_positive(task, counts)
                pull = [a[i] * counts[i] for i in symbols]
                total = sum(pull)
                error = sum(v[label][i] * pull[i] for i in symbols) / total
                losses[label] += weight * error * error / 2
                # f = y + error
                right += weight * (((1 if label else -1) + error > 0) == label)
                for i in symbols:
                    if counts[i]:
                        output = weight * error * pull[i] / total
                        by_beta[i] += output
                        by_alpha[i] += output * (v[label][i] - error)
        # a few thousand roundings of numbers below 100
        rounded = Decimal(10) ** (6 - DIGITS - int(spread))
        tail = abs(1 - mass) + rounded
        return Direct(sum(losses), losses[True], by_alpha, by_beta, right, tail)
