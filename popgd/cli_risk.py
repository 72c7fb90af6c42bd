"""What `popgd risk` and `popgd moments` report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _validate as check
from .cli_inputs import SCALARS, FileWeights, number, text_number
from .gaps import attention_gap, output_gap
from .languages import Task
from .reduction import balanced
from .symmetric_state import State

__all__ = ["dense", "enclosed", "general", "moments", "moments_note", "scalar"]

DENSE = 10**7
"""Largest d whose weights are written out."""


def scalar(task: Task, state: State) -> tuple[dict[str, Any], str]:
    """Risk at symmetric weights."""
    if not balanced(task):
        if task.d > DENSE:
            remedy = "use the balanced occurrence task, or a smaller d"
            raise check.refuse("d", task.d, "is too large for this task", remedy)
        return general(task, *dense(task, state))
    from . import symmetric

    d = task.d
    slope = symmetric.gradient(state, d)
    best = symmetric.minimize_output(state.gap, d)
    answer = {
        "risk": symmetric.risk(state, d),
        "log_risk": symmetric.log_risk(state, d),
        "mse": 2 * symmetric.risk(state, d),
        "accuracy": symmetric.accuracy(state, d),
        "minimum_over_beta": best.value,
        "gradient_alpha_target": slope.alpha_target,
        "gradient_beta_target": slope.beta_target,
        "gradient_beta_background": slope.beta_background,
    }
    if answer["risk"] == 0 and answer["log_risk"] > -np.inf:
        return answer, "symmetric weights; the risk underflows, see log_risk"
    return answer, "symmetric weights; relative error of the risk about 1e-13 (estimated)"


def general(
    task: Task, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray | None
) -> tuple[dict[str, Any], str]:
    """Risk at any weights; arrays go to JSON only."""
    from .population import PopulationRisk

    risk = PopulationRisk(task)
    value, by_alpha, by_beta = risk.value_and_gradient(alpha, beta, residual)
    answer = {
        "risk": value,
        "error_bound": risk.error_bound(alpha, beta, residual),
        "mse": 2 * value,
        "attention_gap": attention_gap(alpha, task),
        "output_gap": output_gap(beta, task),
        "norm_gradient_alpha": float(np.linalg.norm(by_alpha)),
        "norm_gradient_beta": float(np.linalg.norm(by_beta)),
        "gradient_alpha": by_alpha,
        "gradient_beta": by_beta,
    }
    return answer, "error_bound is proved, rounding included"


def dense(task: Task, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The scalars on every target and every other symbol."""
    targets = list(task.targets)
    alpha, beta = np.zeros(task.d), np.full(task.d, float(state.beta_background))
    alpha[targets], beta[targets] = float(state.gap), float(state.beta_target)
    return alpha, beta, np.full(len(targets), float(state.residual))


def enclosed(
    task: Task, scalars: Sequence[str], given: FileWeights | None, digits: int
) -> tuple[dict[str, Any], str]:
    """Proved bounds on the risk; text weights are read as the decimals they are."""
    from . import certified

    if given is None and balanced(task):
        exact = [text_number(name, text) for name, text in zip(SCALARS, scalars, strict=True)]
        answer = _symmetric(task.d, exact, digits)
    else:
        residual = None if given is None else given.residual
        residual = None if residual is None else [_exact(x) for x in residual]
        alpha, beta = _exact_vectors(task, scalars, given)
        answer = {"risk": certified.risk(task, alpha, beta, digits, residual=residual)}
    note = f"proved: each number lies between its two bounds, {digits} digits"
    if answer["risk"].from_float:
        note += "; binary inputs were read as the numbers they are"
    return answer, note


def _symmetric(d: int, exact: Sequence[Any], digits: int) -> dict[str, Any]:
    from . import certified

    slope = certified.symmetric_gradient(d, *exact, digits=digits)
    return {
        "risk": certified.symmetric_risk(d, *exact, digits=digits),
        "minimum_over_beta": certified.symmetric_minimum(exact[0], d, digits).value,
        "gradient_alpha_target": slope.alpha_target,
        "gradient_beta_target": slope.beta_target,
        "gradient_beta_background": slope.beta_background,
    }


def _exact_vectors(
    task: Task, scalars: Sequence[str], given: FileWeights | None
) -> tuple[list[Any], list[Any]]:
    if given is not None:
        return [_exact(x) for x in given.alpha], [_exact(x) for x in given.beta]
    gap, target, background = (text_number(name, text) for name, text in zip(SCALARS, scalars))
    zero = text_number("gap", "0")
    chosen = set(task.targets)
    alpha = [gap if i in chosen else zero for i in range(task.d)]
    return alpha, [target if i in chosen else background for i in range(task.d)]


def _exact(x: Any) -> Any:
    return text_number("weights", x) if isinstance(x, str) else x


def moments(d: int, gap: str, scaled: bool, digits: int | None) -> dict[str, Any]:
    """One row of the table of moments."""
    if digits is None:
        from . import symmetric

        found: Any = symmetric.moments(number("gap", gap), d, scaled)
    else:
        if scaled:
            raise check.refuse("scaled", True, "does not go with --digits", "leave one of them out")
        from . import certified

        found = certified.moments(text_number("gap", gap), d, digits=digits)
    return {"gap": gap, **{name: getattr(found, name) for name in found._fields}}


def moments_note(
    d: int, gaps: Sequence[str], rows: Sequence[dict[str, Any]], digits: int | None
) -> str:
    """How far to trust a table of moments."""
    if digits is not None:
        return f"proved: each moment lies between its two bounds, {digits} digits"
    from .symmetric import moments_error_bound

    worst = max(float(moments_error_bound(number("gap", gap), d)) for gap in gaps)
    note = f"relative error proved below {worst:.1e}"
    lost = d > 2 and any(value == 0 for row in rows for value in row.values())
    return note + "; 0 is underflow, --scaled shows the number" if lost else note
