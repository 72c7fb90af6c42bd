"""How training on n words strays from training on the population, for any task and any start.

The deviation of the weights is, to first order in 1/sqrt(n), the mean over the n words of their
*influence* h_t(w), with h_{t+1} = (I - eta_t H_t) h_t - eta_t g_t(w): H_t is the Hessian of the
population risk at its own weights theta_t, and g_t(w) the gradient of one word less its mean. Both
are exact here, and what has no closed form is the law of h_t over the words, so its second
moments are averaged over reference words: a *sampled* prediction, with a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .curvature import curvature
from .languages import Task
from .linearised import Deviation
from .population import PopulationRisk
from .trajectory import Weights
from .wordbatch import WordBatch

__all__ = ["Influence", "sampled_deviations"]


class Influence:
    """The influence of reference words on all 2d weights.

    Parameters
    ----------
    task : Task
    words : WordBatch
        Independent draws of `task`, M of them.

    Attributes
    ----------
    alpha, beta : array of shape (d, M)
        h_t(w); zero at the start.

    Notes
    -----
    Memory: about ten arrays of d M numbers. Source: THEORY 2, 7. Error: first order in 1/sqrt(n);
    Hessians and means to 1e-13.
    """

    def __init__(self, task: Task, words: WordBatch):
        self.task, self.risk = task, PopulationRisk(task)
        self.alpha, self.beta = np.zeros((2, task.d, len(words)))
        self._words = _Words(words, list(task.targets))
        self._attended = False
        self._output: tuple[np.ndarray, np.ndarray] | None = None

    def step(self, at: Weights, attention: float, output: float) -> None:
        """One step of gradient descent from the population's weights `at`."""
        noise = self._words.gradients(at)
        mean = self.risk.value_and_gradient(*at)
        by_alpha = noise.alpha - mean.alpha[:, None]
        by_beta = noise.beta - mean.beta[:, None]
        self._attended |= attention != 0
        if self._attended:
            d = self.task.d
            hessian = curvature(self.task, *at)
            by_alpha += hessian[:d, :d] @ self.alpha + hessian[:d, d:] @ self.beta
            by_beta += hessian[d:, :d] @ self.alpha + hessian[d:, d:] @ self.beta
            self.alpha -= attention * by_alpha
        else:
            by_beta += self._output_hessian(at.alpha) @ self.beta
        self.beta -= output * by_beta

    def _output_hessian(self, alpha: np.ndarray) -> np.ndarray:
        """E[gamma gamma^T], kept for as long as the attention rests."""
        if self._output is None or not np.array_equal(self._output[0], alpha):
            self._output = alpha, self.risk.hessian_output(alpha).to_dense()
        return self._output[1]

    def deviation(self, at: Weights) -> tuple[Deviation, Deviation]:
        """Standard deviations for one word at the population's weights `at`, and their errors.

        Notes
        -----
        The influence has mean zero, so its second moment about zero is its variance. Error: the
        second entry, one standard error from the spread over the reference words.
        """
        mean = self.risk.value_and_gradient(*at)
        loss = self._words.gradients(at).loss - mean.value
        loss += mean.alpha @ self.alpha + mean.beta @ self.beta
        squares = Deviation.squares(self.alpha.T, self.beta.T, loss, self.task.targets)
        found = [_root(x) for x in squares]
        return Deviation(*(x for x, _ in found)), Deviation(*(error for _, error in found))


def _root(squares: np.ndarray) -> tuple[float, float]:
    """Root of the mean, and its standard error."""
    root = math.sqrt(squares.mean())
    spread = squares.std() / math.sqrt(squares.size)
    return root, float(spread / (2 * root)) if root else 0.0


def sampled_deviations(
    task: Task,
    path: Sequence[Weights],
    rates: Iterable[tuple[float, float]],
    words: WordBatch,
    wanted: Iterable[int],
) -> Iterator[tuple[Deviation, Deviation]]:
    """Deviations and their standard errors at the wanted steps of a population trajectory.

    Parameters
    ----------
    task : Task
    path : sequence of Weights
        The population's weights after 0, 1, 2, ... steps.
    rates : iterable of (float, float)
        Step sizes (attention, output) of each step; 0 where a layer rests.
    words : WordBatch
        Reference words.
    wanted : iterable of int
        Numbers of steps.

    Notes
    -----
    Source: THEORY 2, 7. Error: sampled (the second of each pair), and first order in 1/sqrt(n).
    """
    influence, steps, wanted = Influence(task, words), iter(rates), set(wanted)
    for t, at in enumerate(path):
        if t in wanted:
            yield influence.deviation(at)
        step = next(steps, None)
        if step is not None:
            influence.step(at, *step)


class _Seen(NamedTuple):
    """Loss (M,) and gradients (d, M) of every reference word."""

    loss: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class _Words:
    """Reference words, one softmax each: no code in common with the training kernel."""

    def __init__(self, words: WordBatch, targets: list[int]):
        # positive words first, so that each label has one vector of residual weights
        order = np.argsort(words.labels < 0, kind="stable")
        counts = words.counts if isinstance(words.counts, np.ndarray) else words.counts.toarray()
        self.counts = np.ascontiguousarray(counts[order].T, dtype=float)
        self.absent = self.counts == 0
        self.positives = int((words.labels > 0).sum())
        self.targets = targets
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._seen: tuple[Weights, _Seen] | None = None

    def _shares(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """gamma of shape (d, M), and the symbol that draws most attention in each word."""
        if self._last is None or not np.array_equal(self._last[0], alpha):
            logits = np.where(self.absent, -np.inf, alpha[:, None])
            top = logits.argmax(axis=0)
            with np.errstate(under="ignore"):
                gamma = self.counts * np.exp(logits - alpha[top])
                gamma /= gamma.sum(axis=0)
            self._last = alpha, gamma, top
        return self._last[1], self._last[2]

    def gradients(self, at: Weights) -> _Seen:
        """Loss and gradients at `at`; kept, since a step and a reading take place there."""
        if self._seen is None or self._seen[0] is not at:
            self._seen = at, self._gradients(at)
        return self._seen[1]

    @np.errstate(under="ignore")
    def _gradients(self, at: Weights) -> _Seen:
        gamma, top = self._shares(at.alpha)
        r, pull = np.empty(top.size), np.empty(gamma.shape)
        for part, shift in (
            (slice(self.positives), 0.0),
            (slice(self.positives, None), 2.0),
        ):
            v = at.beta - 2.0 + shift
            v[self.targets] = at.residual + shift
            # relative to the symbol that draws most: v_i - r keeps its digits where r nears v_i
            w = v[:, None] - v[top[part]]
            rho = (gamma[:, part] * w).sum(axis=0)
            r[part] = v[top[part]] + rho
            pull[:, part] = w - rho
        by_beta = gamma * r
        return _Seen(r**2 / 2, by_beta * pull, by_beta)
