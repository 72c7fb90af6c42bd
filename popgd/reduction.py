"""Symmetric starts as a two-coordinate objective: (target, background) in place of d symbols.

Population gradient descent keeps equal background weights equal, so the four-scalar reduction
(THEORY 5) is an objective like any other and the training loop cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Occurrence, Task
from .moment_table import MomentTable
from .objective import Evaluation, OutputMinimum
from .population import PopulationRisk
from .starts import broadcast
from .symmetric_descent import OutputDescent
from .symmetric_quadratic import OutputQuadratic, quadratic
from .symmetric_state import State
from .trajectory import Weights
from .words import Geometric

__all__ = ["Reduced", "balanced", "eligible"]

TABLE_PAYS = 5000
"""Gaps at a time from which a table of moments is faster than the integrals."""


def eligible(
    objective: Any, monitor: Any, alpha: Any, beta: Any, residual: Any, insist: bool = False
) -> bool:
    """Whether the four-scalar path gives the same trajectory; with `insist`, refuse if not."""
    obstacle = _obstacle(objective, monitor, alpha, beta, residual)
    if obstacle is not None and (insist or isinstance(alpha, State)):
        raise check.refuse(
            "path", "symmetric", f"does not apply: {obstacle}", "leave path='auto' and pass arrays"
        )
    return obstacle is None


def _obstacle(objective: Any, monitor: Any, alpha: Any, beta: Any, residual: Any) -> str | None:
    if not isinstance(objective, Task) and type(objective) is not PopulationRisk:
        return "the objective is no PopulationRisk"
    task = objective if isinstance(objective, Task) else objective.task
    if not balanced(task):
        return "the task is not occurrence with uniform symbols and geometric lengths, p = 1/(d-1)"
    if monitor is not None:
        return "a monitor is asked for"
    if isinstance(alpha, State):
        return None if beta is None and residual is None else "a State is a whole start"
    for name, part in (("alpha", alpha), ("beta", beta)):
        if part is not None and not _flat(check.weights(name, part, task.d), task.targets[0]):
            return f"{name} is not equal over the background"
    return None


def balanced(task: Task) -> bool:
    """Whether the four-scalar reduction speaks of this task (THEORY 5)."""
    law = task.words.length
    return (
        type(task) is Occurrence
        and task.words.symbols is None
        and isinstance(law, Geometric)
        and law.p == float(Fraction(1, task.d - 1))
    )


def _flat(weights: np.ndarray, target: int) -> bool:
    background = np.delete(weights, target, axis=-1)
    return bool((background == background[..., :1]).all())


class Reduced:
    """The exact risk of symmetric weights, alpha and beta of shape (..., 2): target, background.

    Gradients are those of the target's and of any single background coordinate, so a gradient
    step here is a gradient step there. The quadratic at the last gap is kept: along an output
    phase it does not change. Source: THEORY 5.
    """

    def __init__(self, d: int):
        self.d = d
        self._gap: np.ndarray | None = None
        self._quadratic: Any = None
        self._table: MomentTable | None = None

    def at(self, alpha: np.ndarray) -> OutputQuadratic:
        """The risk as a quadratic in the output weights."""
        gap = alpha[..., 0] - alpha[..., 1]
        if self._gap is None or not np.array_equal(gap, self._gap):
            if self._table is None and gap.size >= TABLE_PAYS:
                self._table = MomentTable(self.d)
            table = self._table if gap.size >= TABLE_PAYS else None
            self._quadratic = quadratic(gap, np.asarray(float(self.d)), table)
            self._gap = gap
        return self._quadratic

    def value(self, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray) -> Any:
        """Risk."""
        return self.at(alpha).risk(residual[..., 0], beta[..., 1])

    def value_and_gradient(
        self, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray
    ) -> Evaluation:
        """Risk and the gradients by (target, background)."""
        q, v, background = self.at(alpha), residual[..., 0], beta[..., 1]
        attention = q.attention_gradient(v, beta[..., 0], background)
        by_alpha = np.stack([attention, -attention / (self.d - 1)], axis=-1)
        by_beta = np.stack(q.gradient(v, background), axis=-1)
        return Evaluation(q.risk(v, background), by_alpha, by_beta)

    def minimize_output(self, alpha: np.ndarray) -> OutputMinimum:
        """Exact minimum over beta."""
        with np.errstate(all="ignore"):
            # at d = 2 the floor is 0 and its logarithm -inf
            found = self.at(alpha).minimum()
        beta = np.stack([found.beta_target, found.beta_background], axis=-1)
        return OutputMinimum(found.value, beta, np.asarray(found.residual_target)[..., None])

    def residual_step(
        self, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray, rate: Any
    ) -> np.ndarray:
        """The residual after one output step, also where the step nearly cancels it."""
        return self.at(alpha).residual_step(residual[..., 0], beta[..., 1], rate)[..., None]

    def output_descent(
        self, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray, rate: Any
    ) -> Callable[[int], Weights] | None:
        """Steps -> weights after so many output steps in closed form; None where they diverge."""
        q = self.at(alpha)
        descent = OutputDescent(q, residual[..., 0], beta[..., 1], rate)
        if np.any(descent.margin < 0):
            return None

        def after(steps: int) -> Weights:
            target, background, _ = descent.weights(float(steps), bool(steps % 2))
            pair = np.stack(np.broadcast_arrays(2 + target, background), axis=-1)
            return Weights(alpha, pair, np.asarray(target)[..., None])

        return after

    def gaps(self, point: Weights) -> tuple[Any, Any]:
        """Attention and output gap."""
        gap = point.alpha[..., 0] - point.alpha[..., 1]
        share = np.exp(-np.abs(gap))
        towards = -np.expm1(-np.abs(gap)) / (1 + (self.d - 1) * share)
        away = np.expm1(-np.abs(gap)) / (share + (self.d - 1))
        return np.where(gap < 0, away, towards), (point.beta[..., 0] - point.beta[..., 1]) / 2

    def accuracy(self, point: Weights) -> Any:
        """P(sign f = y)."""
        from .symmetric import accuracy

        return accuracy(as_state(point), self.d)

    def start(self, alpha: Any, beta: Any, residual: Any, target: int) -> Weights:
        """The start in two coordinates, from a State, dense weights or nothing."""
        if isinstance(alpha, State):
            return _from_state(alpha)
        background = 0 if target else 1
        pairs = [
            np.zeros(2) if part is None else np.asarray(part, float)[..., [target, background]]
            for part in (alpha, beta)
        ]
        if residual is None:
            rest = pairs[1][..., :1] - 2.0
        else:
            rest = check.weights("residual", residual, 1)
        return broadcast(Weights(pairs[0], pairs[1], rest))


def as_state(point: Weights) -> State:
    """(..., 2) weights as a State."""
    alpha, beta, residual = point
    return State.trusted(alpha[..., 0], alpha[..., 1], beta[..., 0], beta[..., 1], residual[..., 0])


def _from_state(state: State) -> Weights:
    values = (state.alpha_target, state.alpha_background, state.beta_target, state.beta_background)
    if not np.isfinite(state.gap).all():
        remedy = "start from finite attention; popgd.symmetric.risk takes infinite gaps"
        raise check.refuse("alpha", state, "gradient steps need finite weights", remedy)
    parts = np.broadcast_arrays(*values, state.residual)
    a, b, c, e, r = (np.asarray(part, dtype=float) for part in parts)
    return Weights(np.stack([a, b], axis=-1), np.stack([c, e], axis=-1), r[..., None])
