"""One block of a phase diagram: everything about its pixels, in a few array passes (kernels)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .diagram_proof import gap_error, prove
from .moment_table import MomentTable
from .symmetric_descent import OutputDescent
from .symmetric_phases import phase1
from .symmetric_quadratic import OutputQuadratic, quadratic

__all__ = ["REGIMES", "Tile", "compute", "first", "push", "table", "uniform"]

REGIMES = (
    "success",
    "phase_3_too_short",
    "attention_turned_away",
    "attention_too_weak",
    "diverged",
)
SUCCESS, TOO_SHORT, TURNED_AWAY, TOO_WEAK, DIVERGED = range(5)


class Tile(NamedTuple):
    """Arrays of shape (rows, columns), those over epsilon (rows, columns, epsilon)."""

    risk_2: Any
    risk_3: Any
    risk_3_bound: Any
    floor: Any
    gap: Any
    steps_to_epsilon: Any
    regime: Any
    proved: Any
    accuracy_2: Any
    accuracy_3: Any


@functools.lru_cache(maxsize=8)
def table(d: int) -> MomentTable:
    """The moment table of d, built once a process."""
    return MomentTable(d)


@functools.lru_cache(maxsize=8)
def uniform(d: int) -> OutputQuadratic:
    """The quadratic at gap 0, from direct moments."""
    return quadratic(np.zeros(()), np.asarray(float(d)))


class Start(NamedTuple):
    """After phase 1, as arrays: risk, target residual and weight, background weight."""

    risk: Any
    residual: Any
    beta_target: Any
    beta_background: Any


def first(d: int, eta1: np.ndarray) -> Start:
    """What phase 1 does from zero; it does not depend on eta2."""
    one = phase1(d, eta1)
    v, beta = np.asarray(one.residual), np.asarray(one.beta_background)
    with np.errstate(all="ignore"):
        return Start(uniform(d).risk(v, beta), v, np.asarray(one.beta_target), beta)


def push(d: int, one: Start) -> Any:
    """Gap that a unit of eta2 makes: gap = eta2 * push."""
    slope = uniform(d).attention_gradient(one.residual, one.beta_target, one.beta_background)
    return -slope - slope / (d - 1)


def compute(
    d: int,
    eta1: np.ndarray,
    eta2: np.ndarray,
    eta3: float,
    steps: float,
    epsilon: np.ndarray,
    accuracy: bool,
) -> Tile:
    """All pixels of flat `eta1` (rows) by flat `eta2` (columns)."""
    with np.errstate(all="ignore"):
        one = first(d, eta1[:, None])
        v, beta = one.residual, one.beta_background
        q = quadratic(eta2 * push(d, one), np.asarray(float(d)), table(d))
        descent = OutputDescent(q, v, beta, eta3)
        floor, a1, f1, a2, f2 = descent._terms
        p1, p2 = _power(f1, steps), _power(f2, steps)
        shift = gap_error(eta2, float(d), v, beta, one.beta_target, uniform(d).m)
        proof = prove(descent, steps, shift, (floor, a1, p1, f1, a2, p2, f2))
        lost = descent.diverged(steps)
        risk = np.where(lost, np.inf, floor + (a1 * p1 + a2 * p2))
        bound = np.where(lost, np.inf, proof.risk)
        needed = [descent.steps_to_reach(x) for x in epsilon]
        labels = [
            _label(x, risk, bound, floor, proof.floor, q.gap, shift, lost, proof.converges)
            for x in epsilon
        ]
        accurate = _accuracies(descent, steps, lost) if accuracy else (None, None)
        return Tile(
            q.risk(v, beta),
            risk,
            bound,
            floor,
            q.gap,
            np.stack(needed, axis=-1),
            np.stack([label for label, _ in labels], axis=-1),
            np.stack([sure for _, sure in labels], axis=-1),
            *accurate,
        )


def _power(log: Any, steps: float) -> Any:
    """|1 - x|^(2 steps) from ln |1 - x|; 0 * inf is 0, as a factor of one stays one."""
    if steps == 0:
        return np.ones(np.shape(log))
    return np.where(log == 0, 1.0, np.exp(2 * (steps * log)))


def _label(
    epsilon: float,
    risk: Any,
    risk_bound: Any,
    floor: Any,
    floor_bound: Any,
    gap: Any,
    shift: Any,
    lost: Any,
    converges: Any,
) -> tuple[Any, Any]:
    """Regime of every pixel, and whether the bounds prove it."""
    # V <= P(+) = 1/2, so the floor 2V/(1+2V) never exceeds 1/2
    trivial = epsilon >= 0.5
    reached, reachable, away = risk <= epsilon, (floor <= epsilon) | trivial, gap < 0
    label = np.where(away, np.int8(TURNED_AWAY), np.int8(TOO_WEAK))
    label[reachable] = TOO_SHORT
    label[reached] = SUCCESS
    label[lost] = DIVERGED
    risk_sure = np.abs(risk - epsilon) > risk_bound
    floor_sure = (np.abs(floor - epsilon) > floor_bound) | trivial
    gap_sure = (np.abs(gap) > shift) | (shift == 0)
    sure = risk_sure & (reached | (floor_sure & (reachable | gap_sure)))
    return label, converges & (lost | sure)


def _accuracies(descent: Any, steps: float, lost: Any) -> tuple[Any, Any]:
    from .diagram_accuracy import accuracies
    from .symmetric_accuracy import shortfall

    d, gap = int(descent.quadratic.d), descent.quadratic.gap
    before = accuracies(d, gap, descent.v, descent.beta)
    v, beta, _ = descent.weights(steps)
    rest = shortfall(descent, steps)
    behind = np.where(lost, 1.0, np.where(np.isnan(rest), 1 - beta, rest))
    after = accuracies(d, gap, np.where(lost, -2.0, v), np.where(lost, 0.0, beta), behind)
    return before, np.where(lost, np.nan, after)
