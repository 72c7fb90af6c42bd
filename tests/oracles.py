"""Truth by enumeration of count vectors in float64: a route of another kind, for d <= 4."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln


class Enumerated(NamedTuple):
    """Every count vector up to a word length, with its probability and label."""

    counts: np.ndarray
    probability: np.ndarray
    labels: np.ndarray
    tail: float


def enumerate_words(task, longest):
    """Count vectors of words of length 1..longest; `tail` is P(m > longest)."""
    counts = np.array(
        [c for c in product(range(longest + 1), repeat=task.d) if 0 < sum(c) <= longest]
    )
    m = counts.sum(axis=1)
    log = (
        gammaln(m + 1)
        - gammaln(counts + 1).sum(axis=1)
        + counts @ np.log(task.words.probabilities(task.d))
    )
    probability = task.words.length.pmf(m) * np.exp(log)
    return Enumerated(
        counts, probability, task.labels(counts), float(task.words.length.tail(longest))
    )


class Direct(NamedTuple):
    """Risk, gradients and per-word loss and gradients of the enumerated words."""

    value: float
    alpha: np.ndarray
    beta: np.ndarray
    loss: np.ndarray
    word_alpha: np.ndarray
    word_beta: np.ndarray


def direct(task, words, alpha, beta):
    """One softmax a count vector; valid for moderate weights (f - y is formed by subtraction)."""
    mass = words.counts * np.exp(alpha - np.max(alpha))
    gamma = mass / mass.sum(axis=1, keepdims=True)
    f = gamma @ beta - 1
    r = f - words.labels
    by_beta = r[:, None] * gamma
    by_alpha = by_beta * (beta - (f + 1)[:, None])
    p = words.probability
    return Direct(p @ r**2 / 2, p @ by_alpha, p @ by_beta, r**2 / 2, by_alpha, by_beta)
