"""All words of a small alphabet by their symbol counts: the definition itself, in floats."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import numpy as np

REFERENCE = json.loads(Path(__file__).with_name("reference").joinpath("symmetric.json").read_text())

# words longer than these have mass below 1e-16 (d = 3) and 1e-14 (d = 4)
LONGEST = {2: 1, 3: 54, 4: 80}


@functools.cache
def words(d):
    """Counts (N, d), probabilities (N,) and labels (N,) of a balanced geometric word."""
    longest = LONGEST[d]
    grid = np.indices((longest + 1,) * (d - 1)).reshape(d - 1, -1)
    grid = grid[:, grid.sum(axis=0) <= longest]
    rest = grid.sum(axis=0)
    counts, weights = [], []
    choose = np.array(
        [[float(math.comb(n, k)) for k in range(longest + 1)] for n in range(longest + 1)]
    )
    p, q = 1 / (d - 1), (d - 2) / (d - 1)
    for m in range(1, longest + 1):
        inner = grid[:, rest <= m]
        first = m - inner.sum(axis=0)
        weight, left = np.full(first.size, p * q ** (m - 1) / float(d**m)), np.full(first.size, m)
        for count in inner:
            weight *= choose[left, count]
            left = left - count
        counts.append(np.vstack([first, inner]).T)
        weights.append(weight)
    every = np.vstack(counts)
    return every.astype(float), np.concatenate(weights), np.where(every[:, 0] > 0, 1, -1)


def attention(alpha, counts):
    """Aggregated attention of every symbol, (N, d)."""
    a = np.exp(alpha - np.max(alpha)) * counts
    return a / a.sum(axis=1, keepdims=True)


def risk(alpha, beta, d):
    counts, weight, label = words(d)
    error = attention(alpha, counts) @ beta - 1 - label
    # pairwise sums: a BLAS product of two million terms loses three digits
    return 0.5 * (weight * error**2).sum()


def gradient(alpha, beta, d):
    """dL/dalpha and dL/dbeta, vectors of d entries."""
    counts, weight, label = words(d)
    gamma = attention(alpha, counts)
    output = gamma @ beta
    pull = (weight * (output - 1 - label))[:, None] * gamma
    turn = pull * (beta - output[:, None])
    return np.ascontiguousarray(turn.T).sum(axis=1), np.ascontiguousarray(pull.T).sum(axis=1)


def moments(gap, d):
    """The five moments over positive words."""
    counts, weight, label = words(d)
    alpha = np.zeros(d)
    alpha[0] = gap
    g = attention(alpha, counts)[label > 0, 0]
    rest = attention(alpha, counts)[label > 0, 1:].sum(axis=1)
    w = weight[label > 0]
    return [float((w * g**a * rest**b).sum()) for a, b in ((2, 0), (1, 1), (0, 2), (2, 1), (1, 2))]


def accuracy(alpha, beta, d):
    """P(sign f = y); thresholds must not fall within rounding of a word."""
    counts, weight, label = words(d)
    predicted = np.where(attention(alpha, counts) @ beta - 1 > 0, 1, -1)
    return float(weight[predicted == label].sum())
