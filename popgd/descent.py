"""The gradient-descent loop: one plan, one objective, any number of starts at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _validate as check
from .objective import LARGEST_BETA, Evaluation
from .plans import Phase, Plan
from .recording import Recorder, Schedule, Snapshot
from .starts import broadcast
from .trajectory import PhaseRecord, Weights

__all__ = ["Descent", "Rules", "rates"]

STOPS = ("until", "diverged", "interrupted", "error")
"""Reasons that end the plan, not only the phase."""


DRIFT = 1e-10
"""Distance of beta - 2 from the residual carried beside it, beyond which beta follows."""


@dataclass(frozen=True)
class Rules:
    """When to stop and what to record.

    Attributes
    ----------
    schedule : Schedule
        Which steps are recorded.
    until : float or None
        Stop when every member's risk is at most this.
    tolerance : float
        A phase without count has converged when a step changes no member's risk by more than
        ``tolerance`` times its risk when the phase began.
    max_steps : int
        A phase without count ends after so many steps at the latest.
    """

    schedule: Schedule
    until: float | None
    tolerance: float
    max_steps: int


Rates = Mapping[str, Callable[[int], Any]]


def rates(default: Any) -> dict[str, Callable[[int], Any]]:
    """Step-size functions by layer from `train`'s `learning_rate`."""
    if not isinstance(default, Mapping):
        default = {"A": default, "O": default}
    unknown = set(default) - {"A", "O"}
    if unknown or not default:
        raise check.refuse(
            "learning_rate", sorted(map(str, default)), "names no layers",
            "pass a mapping such as {'O': 1.0, 'A': 50.0}",
        )  # fmt: skip
    return {layer: schedule(f"learning_rate['{layer}']", rate) for layer, rate in default.items()}


def schedule(name: str, rate: Any) -> Callable[[int], Any]:
    """A step-size function from a number, an array over batch axes, or a function."""
    if callable(rate):
        # zero: a schedule may rest
        remedy = "return finite step sizes >= 0"
        return lambda t: check.real(f"{name}({t})", rate(t), 0.0, closed="left", remedy=remedy)
    remedy = "pass finite step sizes > 0 or a function of the step"
    fixed = check.real_array(name, rate, 0.0, math.inf, closed="neither", remedy=remedy)
    # a constant can be told from a schedule by its attribute
    constant = lambda t: fixed  # noqa: E731
    constant.fixed = fixed  # type: ignore[attr-defined]
    return constant


@dataclass
class Descent:
    """Runs a plan; `now` is always a consistent point, whatever interrupts it.

    Attributes
    ----------
    objective : Objective
        Its task names the targets.
    targets : int array
        Coordinates of beta whose residual is carried.
    rates : mapping
        Step-size functions of the layers for phases without their own.
    """

    objective: Any
    targets: np.ndarray
    rates: Rates
    rules: Rules
    recorder: Recorder
    start: Weights
    phases: list[PhaseRecord] = field(default_factory=list)
    now: Snapshot = field(init=False)

    # overflow is how divergence shows, and it is looked for after every step
    @np.errstate(all="ignore")
    def run(self, plan: Plan) -> None:
        """Run every phase, or as many as the rules allow."""
        self._begin()
        for number, phase in enumerate(plan):
            begin = self.now.step
            try:
                reason = self._stop(number) or self._phase(phase, number, len(plan))
            except KeyboardInterrupt:
                reason = "interrupted"
            except Exception:
                self._close(phase, number, begin, "error")
                raise
            self._close(phase, number, begin, reason)
            if reason in STOPS:
                return

    def _begin(self) -> None:
        nobody = np.zeros(self.start.residual.shape[:-1], dtype=bool)
        self.now = Snapshot(0, self.start, nobody, nobody)
        self.now = self._look(0, self.start)
        batch = self.now.value.shape
        if batch != nobody.shape:
            # a stack of batches of words: one start serves them all
            start = broadcast(self.start, batch, heads=self.start.heads)
            lost = np.broadcast_to(self.now.lost, batch)
            self.now = Snapshot(0, start, self.now.value, lost, self.now.gradient)

    def _close(self, phase: Phase, number: int, begin: int, reason: str) -> None:
        self._record(number)
        record = PhaseRecord(phase.to_string(), begin, self.now.step, reason)
        self.phases.append(record)

    def _phase(self, phase: Phase, number: int, total: int) -> str:
        if phase.exact:
            return self._minimize(number, last=number == total - 1)
        step_sizes = self._step_sizes(phase)
        leap = self._leap(phase, step_sizes)
        if leap is not None:
            return self._leaps(number, leap, int(phase.steps or 0))
        return self._steps(phase, number, step_sizes, last=number == total - 1)

    def _step_sizes(self, phase: Phase) -> Rates:
        if phase.learning_rate is not None:
            own = schedule("learning_rate", phase.learning_rate)
            return {layer: own for layer in phase.moves}
        missing = [layer for layer in phase.moves if layer not in self.rates]
        if missing:
            raise check.refuse(
                "learning_rate", sorted(self.rates), f"has no step size for layer '{missing[0]}'",
                "pass one for every layer that the plan trains",
            )  # fmt: skip
        return {layer: self.rates[layer] for layer in phase.moves}

    def _steps(self, phase: Phase, number: int, sizes: Rates, last: bool) -> str:
        counted = phase.steps is not None
        limit = int(phase.steps) if phase.steps is not None else self.rules.max_steps
        scale = self.now.value
        # the value alone may be that of other words than the steps': then it is not comparable
        same = not hasattr(self.objective, "step_objective")
        for t in range(limit):
            before = self.now.value
            final = same and last and counted and t == limit - 1
            self._advance({layer: size(t) for layer, size in sizes.items()}, gradient=not final)
            stop = self._stop(number)
            if stop:
                return stop
            if not counted and self._settled(before, scale):
                return "converged"
        return "completed" if counted else "max_steps"

    def _minimize(self, number: int, last: bool) -> str:
        alpha = self.now.point.alpha
        best = self.objective.minimize_output(alpha)
        point = Weights(
            alpha,
            np.broadcast_to(np.asarray(best.beta, dtype=float), alpha.shape),
            np.broadcast_to(np.asarray(best.residual, float), self.now.point.residual.shape),
        )
        self.now = self._look(self.now.step + 1, point, gradient=not last)
        return self._stop(number) or "minimum"

    def _leap(self, phase: Phase, sizes: Rates) -> Callable[[int], Weights] | None:
        """Steps -> weights in closed form, for an output phase that records only now and then."""
        closed = getattr(self.objective, "output_descent", None)
        rate = getattr(sizes.get("O"), "fixed", None)
        if closed is None or phase.layer != "O" or phase.steps is None or rate is None:
            return None
        if 2 * self.rules.schedule.count(phase.steps) >= phase.steps - 1:
            return None
        return closed(*self.now.point, rate)

    def _leaps(self, number: int, leap: Callable[[int], Weights], steps: int) -> str:
        """An output phase in closed form, from record to record."""
        begin, t = self.now.step, 0

        def look(t: int) -> Snapshot:
            return self._look(begin + t, leap(t), gradient=False)

        while t < steps:
            low, t = t, int(min(self.rules.schedule.after(begin + t) - begin, steps))
            there = look(t)
            # the risk falls along the phase, so the step that reaches `until` can be bisected
            while self._reached(there, there.value) and t - low > 1:
                middle = (low + t) // 2
                nearer = look(middle)
                if self._reached(nearer, nearer.value):
                    t, there = middle, nearer
                else:
                    low = middle
            self.now = there
            stop = self._stop(number)
            if stop:
                return stop
        # the next phase needs the gradient, which leaps do not compute
        self.now = self._look(self.now.step, self.now.point)
        return "completed"

    def _advance(self, sizes: Mapping[str, Any], gradient: bool) -> None:
        """One gradient step."""
        (alpha, beta, residual), slope = self.now.point, self.now.gradient
        heads = self.now.point.heads
        inner = 2 if heads else 1
        # in two coordinates the residual has a form that does not cancel
        own = getattr(self.objective, "residual_step", None)
        if "A" in sizes:
            alpha = alpha - _over(sizes["A"], inner) * slope.alpha
        if "O" in sizes:
            move = _over(sizes["O"], inner) * slope.beta
            if own is not None:
                residual = own(*self.now.point, sizes["O"])
            else:
                total = move.sum(axis=-2) if heads else move
                residual = residual - total.take(self.targets, axis=-1)
            beta = beta - move
            if not heads:
                _together(beta, residual, self.targets)
        self.now = self._look(self.now.step + 1, Weights(alpha, beta, residual), gradient)

    def _look(self, step: int, point: Weights, gradient: bool = True) -> Snapshot:
        """Evaluate `point`; members that leave the finite numbers go back to where they were."""
        lost = self.now.lost
        sound = check.finite(point.alpha) and check.finite(point.residual)
        if np.count_nonzero(lost) or not (sound and check.within(point.beta, LARGEST_BETA)):
            inner = (2, 2, 1) if point.heads else (1, 1, 1)
            good = np.isfinite(point.alpha), np.abs(point.beta) <= LARGEST_BETA
            for part, own in zip((*good, np.isfinite(point.residual)), inner, strict=True):
                lost = lost | ~part.all(axis=tuple(range(-own, 0)))
            parts = zip(point, self.now.point, inner, strict=True)
            point = Weights(*(np.where(_over(lost, own), old, new) for new, old, own in parts))
        slope = self._evaluate(point, gradient)
        value = np.asarray(slope.value, dtype=float)
        if np.count_nonzero(lost) or not check.finite(value):
            lost = lost | ~np.isfinite(value)
            value = np.where(lost, math.inf, value)
        return Snapshot(step, point, value, lost, slope if gradient else None)

    def _evaluate(self, point: Weights, gradient: bool) -> Evaluation:
        alpha, beta, residual = point
        # of the very class: one derived from it, or a wrapper, may have another value
        quick = vars(type(self.objective)).get("unchecked")
        if quick is not None and beta.ndim == 1:
            return quick(self.objective, alpha, beta, residual, gradient)
        if gradient:
            return self.objective.value_and_gradient(alpha, beta, residual=residual)
        value = self.objective.value(alpha, beta, residual=residual)
        return Evaluation(value, None, None)

    def _stop(self, number: int) -> str | None:
        """Record the point if it is due; say whether the rules end the run here."""
        now = self.now
        risk = now.value
        if self.rules.schedule.due(now.step) or self.recorder.has(now.step):
            risk = self._record(number)
        elif self.recorder.risk is not None:
            # the monitored risk costs an evaluation, so it is looked at where it is recorded
            risk = np.full(np.shape(risk), math.inf)
        if now.lost.all():
            return "diverged"
        return "until" if self._reached(now, risk) else None

    def _record(self, number: int) -> np.ndarray:
        return self.recorder.add(self.now, number)

    def _reached(self, there: Snapshot, risk: np.ndarray) -> bool:
        if self.rules.until is None or there.lost.all():
            return False
        return bool(((risk <= self.rules.until) | there.lost).all())

    def _settled(self, before: np.ndarray, scale: np.ndarray) -> bool:
        now = self.now.value
        with np.errstate(invalid="ignore"):
            still = np.abs(now - before) <= self.rules.tolerance * scale
        return bool((still | self.now.lost).all())


def _over(x: Any, inner: int) -> Any:
    """Batch-shaped numbers against arrays with `inner` more axes."""
    x = np.asarray(x)
    return x if x.ndim == 0 else x[(..., *(None,) * inner)]


def _together(beta: np.ndarray, residual: np.ndarray, targets: np.ndarray) -> None:
    """Keep the two sums from drifting apart where a run goes far out and comes back."""
    held, wanted = beta.take(targets, axis=-1), 2.0 + residual
    apart = held - wanted
    if not check.within(apart, DRIFT):
        beta[..., targets] = np.where(np.abs(apart) > DRIFT, wanted, held)
