"""Variance of the loss and covariance of the gradient over the words of a batch (THEORY 7)."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np

from .noise import Noise, affordable
from .word_blocks import Block
from .word_kernel import WIDTH, attended, residuals, total

__all__ = ["empirical_noise"]

LARGEST_BETA = 1e75
"""Output weights beyond this have fourth powers beyond float64."""


def empirical_noise(
    words: list[Block], alpha: Any, beta: np.ndarray, delta: np.ndarray | None, mass: float
) -> Noise:
    """Second moments about the means at output weights beta + delta, shape (d,).

    Notes
    -----
    Two passes: the means first, then products of deviations, so that small noise beside large
    means keeps its digits. Error: rounding.
    """
    d = beta.size
    affordable(beta, LARGEST_BETA)
    sums = total(words, alpha, beta, delta, gradient=True)
    loss = float(sums.value / mass)
    mean = np.concatenate([sums.alpha, sums.beta]) / mass
    variance, products = 0.0, np.zeros((2 * d, 2 * d))
    narrow = (part for block in words for part in block.parts(max(WIDTH // d, 64)))
    for seen in attended(narrow, alpha):
        r, rho, e = residuals(seen, beta, delta)
        by_beta = seen.gamma() * r
        slopes = np.concatenate([by_beta * (seen.by_word(e) - rho), by_beta]) - mean[:, None]
        weight = seen.weights()
        variance += float(weight @ (r**2 / 2 - loss) ** 2)
        root = slopes * np.sqrt(weight)
        products += root @ root.T
    products /= mass
    missing = 1.0 - _weight(words) / mass
    # weights that do not add up to the total stand for words left out, whose values are zero here
    products += missing * np.outer(mean, mean)
    return Noise(
        variance / mass + missing * loss**2, products[:d, :d], products[d:, d:], products[:d, d:]
    )


def _weight(words: list[Block]) -> float:
    """Sum of the weights, as `WordBatch.total` has it: the same to the last bit."""
    weights = [block.weights for block in words if block.weights is not None]
    if not weights:
        return float(sum(block.size for block in words))
    return math.fsum(chain.from_iterable(weights))
