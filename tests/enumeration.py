"""A tiny objective by brute force: every word of a few lengths, one softmax a word."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np

from popgd.objective import Evaluation, OutputMinimum


class EveryWord:
    """Average over all words of length 1..longest over d symbols, lengths equally likely."""

    def __init__(self, d=3, targets=(0,), longest=3):
        self.task = SimpleNamespace(d=d, targets=tuple(targets))
        words = [w for m in range(1, longest + 1) for w in itertools.product(range(d), repeat=m)]
        self.counts = np.array([[w.count(i) for i in range(d)] for w in words], dtype=float)
        self.weight = np.array([1 / longest / d ** len(w) for w in words])
        self.positive = (self.counts[:, list(targets)] > 0).any(axis=1)
        self.calls = 0

    def _gamma(self, alpha):
        a = np.exp(alpha - alpha.max(axis=-1, keepdims=True))
        mass = a[..., None, :] * self.counts
        return mass / mass.sum(axis=-1, keepdims=True)

    def _error(self, gamma, beta, residual):
        targets = list(self.task.targets)
        if residual is None:
            residual = beta[..., targets] - 2.0
        shifted = beta - 2.0
        shifted[..., targets] = residual
        v = np.where(self.positive[:, None], shifted[..., None, :], beta[..., None, :])
        return v, (v * gamma).sum(axis=-1)

    def value(self, alpha, beta, residual=None):
        _, error = self._error(self._gamma(alpha), beta, residual)
        return (error**2 @ self.weight) / 2

    def value_and_gradient(self, alpha, beta, residual=None):
        self.calls += 1
        gamma = self._gamma(alpha)
        v, error = self._error(gamma, beta, residual)
        pull = (self.weight * error)[..., None] * gamma
        by_alpha = (pull * (v - error[..., None])).sum(axis=-2)
        return Evaluation((error**2 @ self.weight) / 2, by_alpha, pull.sum(axis=-2))

    def hessian_output(self, alpha):
        gamma = self._gamma(alpha)
        return (gamma * self.weight[:, None]).T @ gamma

    def minimize_output(self, alpha):
        gamma = self._gamma(alpha)
        root = np.sqrt(self.weight)
        goal = np.where(self.positive, 2.0, 0.0)
        beta = np.linalg.lstsq(root[:, None] * gamma, root * goal, rcond=None)[0]
        residual = beta[list(self.task.targets)] - 2
        return OutputMinimum(self.value(alpha, beta, residual), beta, residual)

    def accuracy(self, alpha, beta):
        f = self._gamma(alpha) @ beta - 1
        return float(((f > 0) == self.positive) @ self.weight)
