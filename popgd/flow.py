"""Gradient flow, the limit of small steps: d(weights)/dt = - gradient of the risk."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _validate as check
from .errors import PrecisionExhausted
from .gaps import attention_gap_of, output_gap_of
from .plans import Phase
from .reduction import Reduced, eligible
from .starts import exact, has_heads, start_of, task_of
from .trajectory import PhaseRecord, Trajectory, Weights

__all__ = ["gradient_flow"]

METHODS = ("LSODA", "BDF", "Radau", "RK45", "DOP853")
POINTS = 201
TIGHTER = 1e-2
"""The second solve's tolerance over the first's: their difference estimates the error."""
SMALLEST = 1e-14


def gradient_flow(
    objective: Any,
    times: Any,
    alpha: Any = None,
    beta: Any = None,
    residual: Any = None,
    *,
    layers: str = "joint",
    rtol: float = 1e-8,
    atol: float = 1e-12,
    method: str = "LSODA",
    path: str = "auto",
) -> Trajectory:
    """Gradient flow of `objective`, at given times.

    Parameters
    ----------
    objective : Objective or Task
        A deterministic objective: `PopulationRisk`, `EmpiricalRisk` or the like.
    times : float or array_like of shape (K,)
        The end time, for 201 equal intervals from 0, or increasing times >= 0, which are
        recorded. Time is in units of (learning rate x steps).
    alpha, beta, residual : array_like, optional
        The start, as for `popgd.train`; batch axes are solved one after another.
    layers : {"joint", "A", "O"}
        What moves.
    rtol, atol : float
        Local relative and absolute tolerance of the solver, in the weights (beta by its residual
        on the targets).
    method : str
        A method of `scipy.integrate.solve_ivp`. "LSODA" is the default for this reason: rates
        run from 1/(8 d) to 1, so the flow is stiff at large d or late times, but early and at
        small d it is not, and a Jacobian of 2 d columns is dear. LSODA starts with Adams steps,
        turns to BDF when stiffness shows, and reuses its Jacobian; BDF and Radau pay for it
        from the start.
    path : {"auto", "general", "symmetric"}
        As for `popgd.train`: symmetric starts are four equations at any d.

    Returns
    -------
    Trajectory
        With `time`, and `risk_error`: the estimated error of the risk.

    Raises
    ------
    BadParameter
        When an argument breaks a rule.
    PrecisionExhausted
        When the solver gives up or the gradient is not finite; the message holds the time.

    Notes
    -----
    Solved twice, at `rtol` and `atol` and at a hundredth of them; the second is returned and the
    difference of the risks is `risk_error`. Source: Paper 4, small step limit; THEORY 5.
    Error: estimated.

    Examples
    --------
    >>> import popgd
    >>> run = popgd.gradient_flow(popgd.PopulationRisk(popgd.Occurrence(3)), 100.0, layers="O")
    >>> round(float(run.risk[-1]), 6)
    0.139326
    """
    task = task_of("objective", objective)
    grid = _times(times)
    check.choice("layers", layers, ("joint", "A", "O"))
    options = {
        "rtol": check.real("rtol", rtol, SMALLEST / TIGHTER, 1e-2, closed="both"),
        "atol": check.real("atol", atol, 0.0, 1.0),
        "method": check.choice("method", method, METHODS),
    }
    fine = {**options, "rtol": options["rtol"] * TIGHTER, "atol": options["atol"] * TIGHTER}
    route = check.choice("path", path, ("auto", "general", "symmetric"))
    symmetric = eligible(objective, None, alpha, beta, residual, insist=route == "symmetric")
    if symmetric and route != "general":
        model: Any = Reduced(task.d)
        start = model.start(alpha, beta, residual, task.target)
        field, gaps, taken = _Field(model, [0], layers), model.gaps, "symmetric"
    else:
        objective = exact(objective)
        start = start_of(task, alpha, beta, residual)
        _refuse_stacks(objective, start)
        field, gaps, taken = _Field(objective, list(task.targets), layers), None, "general"
    points = _all_members(field, start, grid, fine)
    risk = field.risk(points)
    error = np.abs(risk - field.risk(_all_members(field, start, grid, options)))
    apart = (gaps or field.gaps)(points)
    return _trajectory(task, taken, layers, grid, points, (risk, error, *apart))


def _trajectory(
    task: Any, path: str, layers: str, grid: np.ndarray, points: Weights, series: tuple[Any, ...]
) -> Trajectory:
    name = "flow " + Phase("J" if layers == "joint" else layers).to_string()
    risk, error, attention, output = (np.asarray(part, dtype=float) for part in series)
    records = np.arange(len(grid))
    return Trajectory(
        step=records,
        time=grid,
        phase_index=np.zeros_like(records),
        risk=risk,
        risk_error=error,
        attention_gap=attention,
        output_gap=output,
        stored=points,
        weight_step=records,
        diverged=np.zeros(risk.shape[1:], dtype=bool),
        phases=(PhaseRecord(name, 0, len(grid) - 1, "completed"),),
        path=path,
        plan=name,
        task=repr(task),
        d=task.d,
        targets=tuple(task.targets),
    )


def _refuse_stacks(objective: Any, start: Weights) -> None:
    if has_heads(objective):
        raise check.refuse(
            "objective", objective, "weights with heads do not flow here", "use train, small steps"
        )
    one = Weights(*(part[(0,) * (part.ndim - 1)] for part in start))
    with np.errstate(all="ignore"):
        value = objective.value(one.alpha, one.beta, residual=one.residual)
    if np.ndim(value):
        raise check.refuse(
            "objective", objective, "is a stack of several", "pass one batch of words at a time"
        )


def _times(times: Any) -> np.ndarray:
    remedy = "pass an end time > 0 or increasing times >= 0"
    grid = check.real_array("times", times, 0.0, math.inf, closed="left", remedy=remedy)
    if grid.ndim == 0:
        if grid == 0:
            raise check.refuse("times", times, "the end time must be > 0", remedy)
        return np.linspace(0.0, float(grid), POINTS)
    if grid.ndim > 1 or grid.size == 0 or (np.diff(grid) <= 0).any():
        raise check.refuse("times", times, "must be increasing", remedy)
    return grid


class _Field:
    """The right-hand side over a flat vector: alpha, then beta with residuals on the targets."""

    def __init__(self, model: Any, targets: list[int], layers: str):
        self.model = model
        self.targets = targets
        self.layers = layers

    def flatten(self, point: Weights) -> np.ndarray:
        beta = np.array(point.beta)
        beta[..., self.targets] = point.residual
        parts = {"joint": (point.alpha, beta), "A": (point.alpha,), "O": (beta,)}[self.layers]
        return np.concatenate(parts, axis=-1)

    def point(self, x: np.ndarray, start: Weights) -> Weights:
        n = start.alpha.shape[-1]
        alpha = np.broadcast_to(start.alpha, (*x.shape[:-1], n))
        if self.layers != "O":
            alpha = x[..., :n]
        if self.layers == "A":
            lead = x.shape[:-1]
            return Weights(alpha, *(np.broadcast_to(p, (*lead, p.shape[-1])) for p in start[1:]))
        beta = np.array(x[..., -n:])
        residual = beta[..., self.targets]
        beta[..., self.targets] += 2.0
        return Weights(alpha, beta, residual)

    def slope(self, start: Weights) -> Callable[[float, np.ndarray], np.ndarray]:
        """-gradient as solve_ivp wants it."""

        def minus_gradient(t: float, x: np.ndarray) -> np.ndarray:
            alpha, beta, residual = self.point(x, start)
            with np.errstate(all="ignore"):
                _, by_alpha, by_beta = self.model.value_and_gradient(alpha, beta, residual=residual)
            if not (np.isfinite(by_alpha).all() and np.isfinite(by_beta).all()):
                raise PrecisionExhausted(
                    f"flow: the gradient is not finite at t = {t:g}; end before that time."
                )
            parts = {"joint": (by_alpha, by_beta), "A": (by_alpha,), "O": (by_beta,)}[self.layers]
            return -np.concatenate(parts)

        return minus_gradient

    def gaps(self, points: Weights) -> tuple[Any, Any]:
        at = self.targets
        return attention_gap_of(points.alpha, at), output_gap_of(points.beta, at)

    def risk(self, points: Weights) -> np.ndarray:
        return np.stack([np.asarray(self._one_risk(Weights(*p))) for p in zip(*points)])

    def _one_risk(self, point: Weights) -> Any:
        with np.errstate(all="ignore"):
            return self.model.value(point.alpha, point.beta, residual=point.residual)


def _all_members(field: _Field, start: Weights, grid: np.ndarray, options: Any) -> Weights:
    """Each batch member is its own problem, with its own step sizes."""
    batch = start.alpha.shape[:-1]
    solved = []
    for index in np.ndindex(*batch):
        one = Weights(*(part[index] for part in start))
        solved.append(field.point(_solve(field, one, grid, options), one))
    if not batch:
        return solved[0]
    stacked = (np.stack(parts, axis=1) for parts in zip(*solved, strict=True))
    return Weights(*(part.reshape(len(grid), *batch, -1) for part in stacked))


def _solve(field: _Field, start: Weights, grid: np.ndarray, options: Any) -> np.ndarray:
    """States at the grid's times, shape (K, size)."""
    from scipy.integrate import solve_ivp

    x0 = field.flatten(start)
    if grid[-1] == 0:
        return x0[None]
    span = (0.0, float(grid[-1]))
    answer = solve_ivp(field.slope(start), span, x0, t_eval=grid, **options)
    if not answer.success:
        reached = float(answer.t[-1]) if len(answer.t) else 0.0
        raise PrecisionExhausted(
            f"flow: {options['method']} stopped after t = {reached:g} ({answer.message.strip()}); "
            "raise rtol or choose another method."
        )
    return answer.y.T
