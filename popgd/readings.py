"""What each route says about the risk and its gradients, with the error it admits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import certified
from .empirical import EmpiricalRisk
from .enclosure import Enclosure
from .errors import NotAvailable, PrecisionExhausted
from .languages import Task
from .noise import Noise
from .population import PopulationRisk
from .reduction import balanced
from .series import SeriesEvaluation, affordable, series_gradient
from .symmetric_state import State, gradient, risk
from .tiers import Tiers
from .trajectory import Weights

__all__ = ["ROUTES", "Reading", "read"]

ROUTES = ("integral", "series", "symmetric", "enclosure")
"""The exact routes, in the order of a report."""

SERIES_TERMS = 3_000_000
"""Most terms of a series; some 3 s."""

ENCLOSURE_D = 200
"""Largest alphabet of enclosures of unequal weights; some 2 s."""

UNDERFLOW = 1e-290
"""Numbers this small may have lost digits, or all, to underflow."""

EPSILON = float(np.finfo(float).eps)

SYMMETRIC_RTOL = 2e-13
"""Stated (estimated) relative error of the symmetric risk and its gradient's terms."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One route's numbers: the risk, then dL/dalpha, then dL/dbeta (when asked for).

    Attributes
    ----------
    route : str
        "integral", "series", "symmetric", "enclosure" or "sample".
    value, error : array of shape (Q,)
        The numbers and bounds on their errors; of a sample, half-widths of its intervals.
    proved : bool array of shape (Q,)
        Whether the bound is proved; the others are estimates.
    """

    route: str
    value: np.ndarray
    error: np.ndarray
    proved: np.ndarray


def read(route: str, task: Task, at: Weights, noise: Noise | None, digits: int) -> Reading | str:
    """A route's reading, or the reason why it has none.

    Parameters
    ----------
    route : str
        One of ROUTES.
    task : Task
    at : Weights
        alpha may be Tiers; residual may be None.
    noise : Noise or None
        Gives the scale of rounding in gradients; None reads the risk alone.
    digits : int
        Digits of enclosures.
    """
    try:
        return _READERS[route](task, at, noise, digits)
    except (NotAvailable, PrecisionExhausted) as reason:
        return str(reason)


def rms(noise: Noise, means: np.ndarray) -> np.ndarray:
    """Root mean square of a single word's gradient components, shape (2d,)."""
    variance = np.concatenate([np.diag(noise.alpha), np.diag(noise.beta)])
    # squares below the range of doubles are no reason to call the components exact
    return np.sqrt(np.maximum(variance, 0.0) + means**2) + np.abs(means) + UNDERFLOW


def rounding(noise: Noise, means: np.ndarray, beta: np.ndarray, rtol: float) -> np.ndarray:
    """Estimated error of gradients: relative to a word's, and to terms that cancel in a word."""
    sizes = rms(noise, means)
    d = beta.size
    cancelling = (4 + 2 * np.abs(beta).max()) * sizes[d:]
    return rtol * sizes + np.concatenate([8 * EPSILON * cancelling, np.zeros(d)])


def _integral(task: Task, at: Weights, noise: Noise | None, digits: int) -> Reading:
    exact = PopulationRisk(task)
    bound = exact.error_bound(*at)
    if noise is None:
        return _reading("integral", exact.value(*at), bound, True)
    value, by_alpha, by_beta = exact.value_and_gradient(*at)
    slopes = np.concatenate([by_alpha, by_beta])
    error = rounding(noise, slopes, at.beta, 10 * exact.rtol)
    return _reading("integral", value, bound, True, slopes, error, False)


def _series(task: Task, at: Weights, noise: Noise | None, digits: int) -> Reading | str:
    if not affordable(task, *at, max_terms=SERIES_TERMS):
        return f"the series would take more than {SERIES_TERMS:.0e} terms"
    found: SeriesEvaluation = series_gradient(task, *at, max_terms=2 * SERIES_TERMS)
    if noise is None:
        return _reading("series", found.value, found.bound, True)
    slopes = np.concatenate([found.alpha, found.beta])
    bounds = np.concatenate([found.alpha_bound, found.beta_bound])
    return _reading("series", found.value, found.bound, True, slopes, bounds, True)


def _symmetric(task: Task, at: Weights, noise: Noise | None, digits: int) -> Reading | str:
    if not balanced(task):
        return "the task is not occurrence with uniform symbols and balanced lengths"
    state = _state(task, at)
    if isinstance(state, str):
        return state
    value = risk(state, task.d)
    if noise is None:
        return _reading("symmetric", value, SYMMETRIC_RTOL * value, False)
    slope = gradient(state, task.d)
    slopes = np.repeat([slope.alpha_background, slope.beta_background], task.d)
    slopes[task.targets[0]], slopes[task.d + task.targets[0]] = (
        slope.alpha_target,
        slope.beta_target,
    )
    error = rounding(noise, slopes, at.beta, SYMMETRIC_RTOL)
    return _reading("symmetric", value, SYMMETRIC_RTOL * value, False, slopes, error, False)


def _state(task: Any, at: Weights) -> State | str:
    if isinstance(at.alpha, Tiers):
        return "attention is infinite"
    background = np.delete(np.stack([at.alpha, at.beta]), task.target, axis=1)
    if (background != background[:, :1]).any():
        return "the weights are not equal over the background"
    residual = None if at.residual is None else float(at.residual[0])
    s = task.target
    target = float(at.beta[s]) if residual is None else 2.0 + residual
    low, beta = (float(x) for x in background[:, 0])
    return State(float(at.alpha[s]), low, target, beta, residual)


def _enclosure(task: Task, at: Weights, noise: Noise | None, digits: int) -> Reading | str:
    alpha = at.alpha if isinstance(at.alpha, Tiers) else at.alpha.tolist()
    residual = None if at.residual is None else at.residual.tolist()
    if task.d > ENCLOSURE_D:
        return f"d = {task.d}: proved bounds are attempted up to d = {ENCLOSURE_D}"
    if noise is None:
        found = certified.risk(task, alpha, at.beta.tolist(), digits, residual=residual)
        return _reading("enclosure", *_middle(found), True)
    g = certified.gradient(task, alpha, at.beta.tolist(), digits, residual=residual)
    pairs = np.array([_middle(x) for x in (*g.alpha, *g.beta)])
    return _reading("enclosure", *_middle(g.value), True, pairs[:, 0], pairs[:, 1], True)


def _middle(x: Enclosure) -> tuple[float, float]:
    """The double in the middle, and how far the truth may be from it."""
    middle = x.to_float()
    return middle, x.width / 2 + float(np.spacing(abs(middle)))


def _reading(
    route: str, value: Any, error: Any, proved: bool,
    slopes: Any = (), bounds: Any = (), slopes_proved: bool = True,
) -> Reading:  # fmt: skip
    values, errors = np.append(value, slopes), np.append(error, bounds)
    flags = np.append(proved, np.full(len(slopes), slopes_proved))
    return Reading(route, values, errors, flags.astype(bool))


_READERS = {
    "integral": _integral, "series": _series, "symmetric": _symmetric, "enclosure": _enclosure
}  # fmt: skip


def read_sample(risk: EmpiricalRisk, at: Weights, gradients: bool) -> tuple[np.ndarray, Noise]:
    """The sampled numbers and the sample's own noise, with n - 1 in the denominator."""
    n = len(risk.batches[0])
    value, by_alpha, by_beta = risk.value_and_gradient(*at)
    noise = risk.variance(*at)
    scale = n / max(n - 1, 1)
    noise = Noise(noise.loss * scale, noise.alpha * scale, noise.beta * scale, noise.cross * scale)
    return np.concatenate([[value], by_alpha, by_beta]) if gradients else np.array([value]), noise
