"""Three-phase training of symmetric weights in closed form: output, attention, output."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from . import _validate as check
from .errors import Diverged
from .moment_table import MomentTable
from .symmetric_accuracy import accuracy, shortfall
from .symmetric_descent import OutputDescent
from .symmetric_moments import dimensions
from .symmetric_quadratic import OutputQuadratic, plain, quadratic
from .symmetric_state import State, check_shapes, check_state, check_table
from .symmetric_steps import StepCount, read_steps

__all__ = ["ThreePhase", "phase1", "phase2", "phase3", "steps_to_reach", "three_phase"]


def phase1(d: Any, eta1: Any, start: State | None = None) -> State:
    """One gradient step on the output weights.

    Parameters
    ----------
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.
    eta1 : array_like
        Learning rate, >= 0 and finite.
    start : State, optional
        Any symmetric weights; None is the zero start.

    Returns
    -------
    State
        The same attention, new output weights with their residual.

    Raises
    ------
    BadParameter
        When an argument is out of range or shapes do not broadcast.

    Notes
    -----
    From zero: beta_s = 2 eta1/d, beta_j = eta1 (d-2)/(d(d-1)). Source: Paper A.7; THEORY 5.
    Error: estimated, a few rounding errors (zero start) or 1e-14 of the step.
    """
    sizes, eta = dimensions(d), _rate("eta1", eta1)
    check_shapes(d=sizes, eta1=eta, start=_shape_of(start))
    with np.errstate(all="ignore"):
        return _phase1(sizes, eta, start, None)


def phase2(state: State, d: Any, eta2: Any) -> State:
    """One gradient step on the attention weights.

    Parameters
    ----------
    state : State
        Weights before the step.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.
    eta2 : array_like
        Learning rate, >= 0 and finite.

    Returns
    -------
    State
        New attention, the same output weights.

    Notes
    -----
    The gap grows by -eta2 (d/(d-1)) dL/dalpha_s. Source: Paper A.7; THEORY 5.
    Error: estimated, 1e-14 of the sum of the absolute terms.
    """
    check_state("state", state)
    sizes, eta = dimensions(d), _rate("eta2", eta2)
    check_shapes(state=_shape_of(state), d=sizes, eta2=eta)
    with np.errstate(all="ignore"):
        return _phase2(state, eta, quadratic(state.gap, sizes))


def phase3(state: State, d: Any, eta3: Any = 1.0, steps: Any = math.inf) -> State:
    """`steps` gradient steps on the output weights, in closed form.

    Parameters
    ----------
    state : State
        Weights before the phase.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.
    eta3 : array_like
        Learning rate, >= 0 and finite.
    steps : array_like
        Non-negative integers, or inf for the limit.

    Returns
    -------
    State
        The same attention, new output weights with their residual.

    Raises
    ------
    Diverged
        When eta3 exceeds 2/lambda_max anywhere (`three_phase` flags such entries instead).

    Notes
    -----
    Source: THEORY 5. Error: estimated, 1e-14 plus the conditioning 1e-15 * 2 T lambda.
    """
    check_state("state", state)
    sizes, eta, count = dimensions(d), _rate("eta3", eta3), read_steps(steps)
    check_shapes(state=_shape_of(state), d=sizes, eta3=eta, steps=count.value)
    with np.errstate(all="ignore"):
        descent = _descent(state, quadratic(state.gap, sizes), eta)
        lost = descent.diverged(count.value)
        if np.any(lost):
            raise Diverged(_divergence(descent, lost))
        return _after(state, descent, count)


def _divergence(descent: OutputDescent, lost: Any) -> str:
    limit = 2 / float(np.max(np.where(lost, descent.lambda_max, 0.0)))
    count = (
        f"{int(np.sum(lost))} of {np.size(lost)} descents diverge" if np.ndim(lost) else "diverges"
    )
    return f"eta3: {count}; gradient descent needs eta3 < 2/lambda_max = {limit:.6g} here."


@dataclass(frozen=True, eq=False)
class ThreePhase:
    """What three-phase training did; arrays broadcast over every argument.

    Attributes
    ----------
    d : int or array
    steps : float or array
        Steps of phase 3; integers where a float would not hold them.
    states : tuple of three State
        After phases 1, 2 and 3; NaN output weights after phase 3 where `diverged`.
    risks : tuple of three floats or arrays
        Population risk after each phase; inf where `diverged`.
    gap : float or array
        alpha_s - alpha_j after phase 2 (phase 3 keeps it).
    lambda_max : float or array
        Largest eigenvalue of the phase-3 Hessian: phase 3 converges for eta3 < 2/lambda_max.
    diverged : bool or array of bool
        eta3 lambda_max > 2 with any step taken, or = 2 with infinitely many.
    floor : float or array
        Minimum of the risk over the output weights at this attention: the limit of phase 3.
    """

    d: Any
    steps: Any
    states: tuple[State, State, State]
    risks: tuple[Any, Any, Any]
    gap: Any
    lambda_max: Any
    diverged: Any
    floor: Any
    _first: OutputQuadratic = field(repr=False)
    _descent: OutputDescent = field(repr=False)

    @cached_property
    def log_risks(self) -> tuple[Any, Any, Any]:
        """Natural logarithms of the risks, finite where a risk underflows (computed on demand)."""
        with np.errstate(all="ignore"):
            first, second = self.states[:2]
            return (
                plain(self._first.log_risk(first.residual, np.asarray(first.beta_background))),
                plain(
                    self._descent.quadratic.log_risk(
                        second.residual, np.asarray(second.beta_background)
                    )
                ),
                plain(self._descent.log_risk(np.asarray(self.steps, dtype=float))),
            )

    @cached_property
    def accuracies(self) -> tuple[Any, Any, Any]:
        """P(sign f = y) after each phase (computed on demand); NaN where `diverged`."""
        first, second, third = self.states
        lost = np.asarray(self.diverged)
        whole = State.trusted(
            third.alpha_target,
            third.alpha_background,
            np.where(lost, 0.0, third.beta_target),
            np.where(lost, 0.0, third.beta_background),
            np.where(lost, -2.0, third.residual),
        )
        rest = shortfall(self._descent, self.steps)
        last = np.where(lost, np.nan, accuracy(whole, self.d, behind=rest))
        return accuracy(first, self.d), accuracy(second, self.d), plain(last)

    def steps_to_reach(self, epsilon: Any) -> Any:
        """Smallest number of phase-3 steps with risk <= epsilon; inf if there is none.

        Parameters
        ----------
        epsilon : array_like
            Target risk, > 0; broadcasts with the result.

        Returns
        -------
        float or array
            An integral float, or inf. A diverging phase 3 counts only if it starts at the target.

        Notes
        -----
        Solved from the two exponentials. Source: THEORY 5. Error: estimated; at an exact tie or
        beyond 1e9 steps the count may be off in its last digits.
        """
        target = check.real_array("epsilon", epsilon, 0.0, closed="right", remedy="pass a risk > 0")
        check_shapes(epsilon=target, result=self.risks[2])
        with np.errstate(all="ignore"):
            return plain(self._descent.steps_to_reach(target))


def three_phase(
    d: Any,
    eta1: Any,
    eta2: Any,
    eta3: Any = 1.0,
    steps: Any = math.inf,
    start: State | None = None,
    table: MomentTable | None = None,
) -> ThreePhase:
    """One output step, one attention step, then `steps` output steps.

    Parameters
    ----------
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.
    eta1, eta2, eta3 : array_like
        Learning rates of the phases, >= 0 and finite.
    steps : array_like
        Steps of phase 3: non-negative integers, or inf for the limit.
    start : State, optional
        Any symmetric weights; None is the zero start.
    table : MomentTable, optional
        Moments at this d, for very many points.

    Returns
    -------
    ThreePhase
        Floats when every argument is a scalar, arrays otherwise.

    Raises
    ------
    BadParameter
        When an argument is out of range or shapes do not broadcast.

    Notes
    -----
    A diverging phase 3 is flagged in `diverged`, never raised: its risk is inf and its output
    weights NaN. Source: Paper A.7; THEORY 5. Error: estimated, a few 1e-14 relative at the computed
    gap plus the conditioning 1e-15 * 2 T lambda; a gap error of 1e-16 relative moves a risk
    near its floor by 2e-16 |gap|.

    Examples
    --------
    >>> from popgd import symmetric
    >>> result = symmetric.three_phase(50, eta1=1.0, eta2=2e4)
    >>> result.gap > 0 and result.risks[2] < result.risks[0]
    True
    """
    sizes, count = dimensions(d), read_steps(steps)
    rates = [_rate(name, x) for name, x in (("eta1", eta1), ("eta2", eta2), ("eta3", eta3))]
    if start is not None:
        check_state("start", start)
    check_table(table, sizes)
    check_shapes(
        d=sizes,
        eta1=rates[0],
        eta2=rates[1],
        eta3=rates[2],
        steps=count.value,
        start=_shape_of(start),
    )
    with np.errstate(all="ignore"):
        return _three_phase(sizes, rates, count, start, table)


def _three_phase(
    d: Any, rates: list, count: StepCount, start: State | None, table: Any
) -> ThreePhase:
    first = quadratic(np.asarray(start.gap if start else 0.0), d, table)
    one = _phase1(d, rates[0], start, first)
    two = _phase2(one, rates[1], first)
    descent = _descent(two, quadratic(two.gap, d, table), rates[2])
    three = _after(two, descent, count)
    risks = (
        first.risk(np.asarray(one.residual), np.asarray(one.beta_background)),
        descent.quadratic.risk(np.asarray(two.residual), np.asarray(two.beta_background)),
        descent.risk(count.value),
    )
    return ThreePhase(
        d=plain(d.astype(np.int64)),
        steps=count.shown,
        states=(one, two, three),
        risks=tuple(plain(x) for x in risks),  # type: ignore[arg-type]
        gap=two.gap,
        lambda_max=plain(descent.lambda_max),
        diverged=plain(descent.diverged(count.value)),
        floor=plain(descent.minimum.value),
        _first=first,
        _descent=descent,
    )


def steps_to_reach(
    d: Any,
    eta1: Any,
    eta2: Any,
    eta3: Any = 1.0,
    epsilon: Any = 0.01,
    start: State | None = None,
    table: MomentTable | None = None,
) -> Any:
    """Smallest number of phase-3 steps after which the risk is at most epsilon.

    Parameters
    ----------
    d, eta1, eta2, eta3, start, table
        As for `three_phase`.
    epsilon : array_like
        Target risk, > 0.

    Returns
    -------
    float or array
        An integral float; inf where the floor lies above epsilon or phase 3 diverges.

    Notes
    -----
    Source: THEORY 5. Error: as for `ThreePhase.steps_to_reach`.
    """
    return three_phase(d, eta1, eta2, eta3, 0, start, table).steps_to_reach(epsilon)


def _rate(name: str, value: Any) -> np.ndarray:
    return check.real_array(
        name, value, 0.0, math.inf, closed="left", remedy="pass a finite learning rate >= 0"
    )


def _shape_of(state: State | None) -> Any:
    if state is None:
        return 0.0
    check_state("start", state)
    return np.add(state.gap, np.add(state.residual, state.beta_background))


def _phase1(d: Any, eta: Any, start: State | None, q: OutputQuadratic | None) -> State:
    if start is None:
        zero = np.zeros(())
        # the step from zero, exact up to rounding also where beta_s comes close to 2
        return State.trusted(
            zero, zero, 2 * eta / d, eta * ((d - 2) / (d * (d - 1))), 2 * (eta - d) / d
        )
    q = quadratic(np.asarray(start.gap), d) if q is None else q
    residual, beta = np.asarray(start.residual), np.asarray(start.beta_background)
    _, background = q.gradient(residual, beta)
    v = q.residual_step(residual, beta, eta)
    return State.trusted(
        start.alpha_target, start.alpha_background, 2 + v, beta - eta * background, v
    )


def _phase2(state: State, eta: Any, q: OutputQuadratic) -> State:
    push = eta * q.attention_gradient(
        np.asarray(state.residual), np.asarray(state.beta_target), np.asarray(state.beta_background)
    )
    return State.trusted(
        state.alpha_target - push,
        state.alpha_background + push / (q.d - 1),
        state.beta_target,
        state.beta_background,
        state.residual,
    )


def _descent(state: State, q: OutputQuadratic, eta: Any) -> OutputDescent:
    return OutputDescent(q, np.asarray(state.residual), np.asarray(state.beta_background), eta)


def _after(state: State, descent: OutputDescent, count: StepCount) -> State:
    v, beta, moved = descent.weights(count.value, count.odd)
    start = np.asarray(state.beta_target)
    # a weight near zero holds digits that its distance to 2 does not
    near = np.abs(start) + np.abs(moved) < 1
    target = np.where(count.value == 0, start, np.where(near, start + moved, 2 + v))
    return State.trusted(state.alpha_target, state.alpha_background, target, beta, v)
