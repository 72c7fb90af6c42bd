"""Corollary 1 tried out: three-phase training on drawn words, each result's exact population risk.

Phases 1 and 2 take one gradient step each on the same N1 words, phase 3 takes T = ceil(72/eps)
steps of size 1 on N3 fresh words. On a fixed batch phase 3 is linear, so its T steps are one
eigendecomposition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from popgd.batches import seed_streams
from popgd.empirical import EmpiricalRisk
from popgd.languages import Occurrence
from popgd.population import PopulationRisk
from popgd.sampling import sample_words
from popgd.tiers import Tiers
from popgd.wordbatch import WordBatch

__all__ = ["Setting", "Trials", "phase_3"]

WIDEST, FAR = 690.0, 80.0
"""Attention spread further than the first is cut into tiers where it steps by the second, which
changes risks by e^-80 of themselves."""

HELD = 2**28
"""Bytes of words kept; beyond, they are drawn again."""

CHUNK = 256
"""Words drawn at first; every further draw doubles them, whatever is asked for."""


@dataclass(frozen=True)
class Setting:
    """What Corollary 1 is tried at.

    Attributes
    ----------
    d : int
        Alphabet size, >= 3.
    eps : float
        Risk to reach, in (0, 1).
    eta1 : float
        First step size, in (0, sqrt(d)].
    """

    d: int
    eps: float
    eta1: float = 1.0

    def first(self, constant: float) -> int:
        """N1 = ceil(C d ln d)."""
        return math.ceil(constant * self.d * math.log(self.d))

    def third(self, constant: float) -> int:
        """N3 = ceil(C ln d / eps)."""
        return math.ceil(constant * math.log(self.d) / self.eps)

    def second_step(self, constant: float) -> float:
        """eta2 = C d^2/eta1 ln(d/eps)."""
        return constant * self.d**2 / self.eta1 * math.log(self.d / self.eps)

    @property
    def steps(self) -> int:
        """T = ceil(72/eps); a rounding error in 72/eps is no further step."""
        return math.ceil(72 / self.eps * (1 - 1e-12))


def phase_3(
    objective: Any, alpha: Any, beta: np.ndarray, targets: list[int], steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """beta and its residual on the targets after `steps` output steps of size 1.

    Notes
    -----
    beta(T) = beta(0) - Q ((1 - (1 - lam)^T)/lam) Q^T g with g the gradient at beta(0); all
    eigenvalues lie in [0, 1], as gamma sums to 1. Error: rounding.
    """
    slope = objective.value_and_gradient(alpha, beta).beta
    values, vectors = np.linalg.eigh(objective.hessian_output(alpha).to_dense())
    values = np.clip(values, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = -np.expm1(steps * np.log1p(-values)) / values
    sums = np.where(values * steps < 1e-9, float(steps), sums)
    move = vectors @ (sums * (vectors.T @ slope))
    return beta - move, (beta[targets] - 2.0) - move[targets]


class Trials:
    """K trials at one setting; trial k always sees the same words, in the same order.

    Parameters
    ----------
    setting : Setting
    trials : int
    rng : int
        Root of the streams; trial k has two streams of its own.

    Notes
    -----
    More words means more of the same stream, so success changes with the number of words and not
    with the draw. Error: sampled; each risk is exact to 1e-12.
    """

    def __init__(self, setting: Setting, trials: int, rng: int = 0):
        self.setting, self.count = setting, trials
        self.task = Occurrence(setting.d)
        self.population = PopulationRisk(self.task)
        self._root = np.random.SeedSequence([rng, setting.d])
        self._words: dict[tuple[int, int], WordBatch] = {}
        self._held = 0

    def words(self, trial: int, part: int, n: int) -> WordBatch:
        """The first n words of a stream (part 0: phases 1 and 2, part 1: phase 3)."""
        have = self._words.get((trial, part))
        if have is None or len(have) < n:
            have = self._draw(trial, part, n)
            if self._held + have.nbytes <= HELD:
                self._words[trial, part] = have
                self._held += have.nbytes
        return have[:n]

    def _draw(self, trial: int, part: int, n: int) -> WordBatch:
        (stream,) = seed_streams(self._root, [2 * trial + part])
        have = sample_words(self.task, CHUNK, stream)
        while len(have) < n:
            have = _joined(have, sample_words(self.task, len(have), stream))
        return have

    def attention(self, trial: int, n: int, eta2: float) -> tuple[np.ndarray, np.ndarray]:
        """alpha and beta after phases 1 and 2 on the first n words."""
        zero = np.zeros(self.setting.d)
        risk = EmpiricalRisk(self.words(trial, 0, n))
        beta = -self.setting.eta1 * risk.value_and_gradient(zero, zero).beta
        return -eta2 * risk.value_and_gradient(zero, beta).alpha, beta

    def risks(self, first: Any, third: int | None, eta2: float, some: Any = None) -> np.ndarray:
        """Exact population risks after all three phases, one a trial.

        Parameters
        ----------
        first : int or sequence of int
            N1, of all trials or of each.
        third : int or None
            N3; None takes phase 3 on the population (N3 = infinity).
        eta2 : float
        some : sequence of int, optional
            Which trials; all by default.
        """
        chosen = range(self.count) if some is None else some
        sizes = np.broadcast_to(first, len(chosen))
        found = [self._train(k, int(n), third, eta2) for k, n in zip(chosen, sizes, strict=True)]
        alphas, betas, residuals = (list(part) for part in zip(*found, strict=True))
        alpha: Any = np.stack(alphas)
        if np.ptp(alpha, axis=-1).max() > WIDEST:
            tiers = [_tiers(row) for row in alphas]
            alpha = Tiers(*(np.stack([getattr(t, x) for t in tiers]) for x in ("tier", "offset")))
        return self.population.value(alpha, np.stack(betas), np.stack(residuals))

    def _train(
        self, trial: int, first: int, third: int | None, eta2: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        alpha, beta = self.attention(trial, first, eta2)
        objective: Any = self.population
        if third is not None:
            objective = EmpiricalRisk(self.words(trial, 1, third))
        wide: Any = _tiers(alpha) if np.ptp(alpha) > WIDEST else alpha
        beta, residual = phase_3(objective, wide, beta, [0], self.setting.steps)
        return alpha, beta, residual

    def successes(self, constant: float) -> int:
        """How many trials reach risk <= eps with C in all three places."""
        s = self.setting
        risks = self.risks(s.first(constant), s.third(constant), s.second_step(constant))
        return int((risks <= s.eps).sum())


def _tiers(alpha: np.ndarray) -> Tiers:
    """Attention in tiers: a step of more than 80 between neighbours is as good as infinite."""
    order = np.argsort(alpha)
    tier = np.empty(alpha.size, dtype=int)
    tier[order] = np.cumsum(np.diff(alpha[order], prepend=alpha[order[0]]) > FAR)
    return Tiers(tier, alpha - np.array([alpha[tier == t].max() for t in tier]))


def _joined(a: WordBatch, b: WordBatch) -> WordBatch:
    return WordBatch(np.concatenate([a.counts, b.counts]), task=a.task)
