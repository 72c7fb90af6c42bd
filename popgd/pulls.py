"""Pulls between readings, p-values of a sample, and the verdicts that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .empirical import EmpiricalRisk
from .languages import Task
from .noise import Noise
from .readings import Reading, read_sample, rms, rounding
from .tail_bounds import bennett_p, holm
from .trajectory import Weights

__all__ = ["Agreement", "Sample", "p_values", "pulls", "verdicts"]

NOISE_ROUNDING = 1e-11
"""Estimated error of the exact variance relative to the second moment."""

SAMPLE_ROUNDING = 1e-12
"""Estimated rounding of sampled means relative to a word's size."""


class Agreement(Enum):
    """A verdict. It has no truth value: `if verdict:` would read `disagree` as true."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNDECIDED = "undecided"

    def __bool__(self) -> bool:
        raise TypeError("an Agreement has no truth value; compare it: x is Agreement.AGREE")


@dataclass(frozen=True)
class Sample:
    """Sampled means with everything needed to judge them; arrays of shape (Q,)."""

    n: int
    value: np.ndarray
    variance: np.ndarray
    own_variance: np.ndarray
    reach: np.ndarray
    scale: np.ndarray
    rounding: np.ndarray

    @classmethod
    def of(
        cls, risk: EmpiricalRisk, at: Weights, noise: Noise, exact: Reading, gradients: bool,
        level: float,
    ) -> Sample:  # fmt: skip
        value, own = read_sample(risk, at, gradients)
        size = len(exact.value)
        mean = exact.value[0]
        sizes = np.concatenate([[math.sqrt(max(noise.loss, 0.0) + mean**2)],
                                rms(noise, exact.value[1:]) if gradients else []])  # fmt: skip
        variance = np.maximum(_flat(noise)[:size], 0.0) + NOISE_ROUNDING * sizes**2
        scale = sizes.copy()
        scale[0] = mean
        reach = _reach(risk.task, at, task_d=risk.d)[:size]
        room = SAMPLE_ROUNDING * sizes
        if gradients:
            room[1:] = rounding(noise, exact.value[1:], at.beta, SAMPLE_ROUNDING)
        return cls(len(risk.batches[0]), value, variance, _flat(own)[:size], reach, scale, room)


def _flat(noise: Noise) -> np.ndarray:
    return np.concatenate([[noise.loss], np.diag(noise.alpha), np.diag(noise.beta)])


def _reach(task: Task, at: Weights, task_d: int) -> np.ndarray:
    """Largest |value - mean| of one word: residuals lie between the weights they average."""
    positive, negative = at.beta - 2.0, at.beta
    if at.residual is not None:
        positive = positive.copy()
        positive[list(task.targets)] = at.residual
    most = max(np.abs(positive).max(), np.abs(negative).max())
    spread = max(np.ptp(positive), np.ptp(negative))
    return np.concatenate(
        [[most**2 / 2], np.full(task_d, 2 * most * spread), np.full(task_d, 2 * most)]
    )


def pulls(readings: list[Reading], standard: np.ndarray) -> np.ndarray:
    values = np.stack([reading.value for reading in readings], axis=1)
    errors = np.stack([reading.error for reading in readings], axis=1)
    difference = values[:, :, None] - values[:, None, :]
    room = errors[:, :, None] + errors[:, None, :]
    if readings[-1].route == "sample":
        room[:, -1, :] = room[:, :, -1] = standard[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / room)


def p_values(
    exact: list[Reading], sample: Sample | None, correction: str, columns: int
) -> np.ndarray:
    out = np.full((len(exact[0].value), columns), np.nan)
    if sample is None:
        return out
    for j, reading in enumerate(exact):
        away = np.abs(sample.value - reading.value) - reading.error - sample.rounding
        away = np.maximum(away, 0.0)
        out[:, j] = bennett_p(away, sample.variance, sample.reach, sample.n)
    if correction == "holm":
        return holm(out)
    return np.minimum(1.0, out * len(exact) * len(out))


def verdicts(
    pulls: np.ndarray, p_values: np.ndarray, exact: list[Reading], sample: Sample | None,
    width: np.ndarray, level: float, resolution: float,
) -> tuple[Agreement, ...]:  # fmt: skip
    among = len(exact)
    apart = np.any(np.abs(pulls[:, :among, :among]) > 1, axis=(1, 2)).reshape(-1)
    if sample is None:
        return tuple(Agreement.DISAGREE if bad else Agreement.AGREE for bad in apart.tolist())
    with np.errstate(invalid="ignore"):
        apart |= (p_values[:, :among] <= level).any(axis=1)
    reference = exact[0]
    hidden = np.abs(sample.value - reference.value) + width + reference.error
    # what rounding alone may hide is no matter of more words
    fine = hidden <= resolution * np.abs(sample.scale) + 2 * (sample.rounding + reference.error)
    fine |= (sample.scale == 0) & (sample.value == reference.value)
    kinds = {True: Agreement.AGREE, False: Agreement.UNDECIDED}
    return tuple(
        Agreement.DISAGREE if bad else kinds[good]
        for bad, good in zip(apart.tolist(), fine.tolist(), strict=True)
    )
