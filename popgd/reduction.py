"""Symmetric starts as a two-coordinate objective: (target, background) in place of d symbols.

Population gradient descent keeps equal background weights equal, so the four-scalar reduction
(THEORY 5) is an objective like any other and the training loop cannot tell the difference.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Occurrence
from .words import Geometric

__all__ = ["Reduced", "eligible"]


def eligible(
    objective: Any, monitor: Any, alpha: Any, beta: Any, residual: Any, insist: bool = False
) -> bool:
    """Whether the four-scalar path gives the same trajectory; with `insist`, refuse if not."""
    obstacle = _obstacle(objective, monitor, alpha, beta, residual)
    if obstacle is not None and (insist or _is_state(alpha)):
        raise check.refuse(
            "path", "symmetric", f"does not apply: {obstacle}", "leave path='auto' and pass arrays"
        )
    return obstacle is None


def _obstacle(objective: Any, monitor: Any, alpha: Any, beta: Any, residual: Any) -> str | None:
    module = sys.modules.get("popgd.population")
    if module is None or type(objective) is not module.PopulationRisk:
        return "the objective is no PopulationRisk"
    task = objective.task
    if type(task) is not Occurrence:
        return "the task is no Occurrence"
    law = task.words.length
    if task.words.symbols is not None:
        return "symbols have their own probabilities"
    if not isinstance(law, Geometric) or law.p != float(Fraction(1, task.d - 1)):
        return "word lengths are not geometric with p = 1/(d-1)"
    if monitor is not None:
        return "a monitor is asked for"
    if _is_state(alpha):
        return None if beta is None and residual is None else "a State is a whole start"
    for name, part in (("alpha", alpha), ("beta", beta)):
        if part is not None and not _flat(check.weights(name, part, task.d), task.target):
            return f"{name} is not equal over the background"
    return None


def _is_state(alpha: Any) -> bool:
    module = sys.modules.get("popgd.symmetric")
    return module is not None and isinstance(alpha, module.State)


def _flat(weights: np.ndarray, target: int) -> bool:
    background = np.delete(weights, target, axis=-1)
    return bool((background == background[..., :1]).all())


class Reduced:
    """The exact risk of symmetric weights, alpha and beta of shape (..., 2): target, background.

    Gradients are those of the target's and of any single background coordinate, so a gradient
    step here is a gradient step there.
    """

    def __init__(self, d: int):
        self.d = d
