"""Training by plans: `train(objective, plan)` on any objective, exact or sampled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _validate as check
from .descent import Descent, Rules, rates
from .gaps import attention_gap_of, output_gap_of
from .plans import Plan
from .population import PopulationRisk
from .recording import Recorder, Schedule
from .reduction import Reduced, eligible
from .starts import broadcast, exact, has_heads, start_of, task_of
from .trajectory import Trajectory, Weights

__all__ = ["train"]

MOST_RECORDS = 10**7
MOST_BYTES = 2**32


def train(
    objective: Any,
    plan: Any,
    alpha: Any = None,
    beta: Any = None,
    residual: Any = None,
    *,
    learning_rate: Any = 1.0,
    record_every: Any = 1,
    until: float | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 100_000,
    accuracy: bool = False,
    monitor: Any = None,
    keep_weights: bool = True,
    path: str = "auto",
    rng: Any = None,
) -> Trajectory:
    """Gradient descent on `objective` by a training plan.

    Parameters
    ----------
    objective : Objective or Task
        `PopulationRisk`, `EmpiricalRisk`, mini-batches of one, or anything with the same
        methods. A task stands for its `PopulationRisk`, without d-sized arrays where it can.
    plan : str, Plan, Phase or sequence of Phase
        For example ``"O(1x) -> A(1x, lr=5e4) -> O(200x)"`` or ``"joint"``; see `Plan`.
    alpha, beta : array_like of shape (..., d), optional
        The start; None is zero. Leading axes are separate runs, trained at once. `alpha` may
        be a `popgd.symmetric.State`, which is then the whole start, at any d. For
        `MultiHeadRisk` the shape is (..., H, d), and the gaps are those of every head.
    residual : array_like of shape (..., number of targets), optional
        beta - 2 on the targets at the start; None takes it from beta. It is carried along
        (``residual -= rate * dL/dbeta``), so risks far below 1e-16 keep their digits.
    learning_rate : float, array, callable or mapping
        Step size of phases without one of their own: a number > 0, an array over the batch
        axes, a function of the step's number within its phase (0, 1, ...), or a mapping of
        layers to these, ``{"O": 1.0, "A": 50.0}``.
    record_every : int, "log" or None
        Record every so many steps, 20 times a decade, or only where phases end. The start and
        the ends of phases are always recorded.
    until : float, optional
        Stop as soon as the risk is at most this (every member's, in a batch).
    tolerance, max_steps : float, int
        A phase without count ends by convergence: at the first step that changes no member's
        risk by more than `tolerance` times its risk when the phase began; or after `max_steps`.
        Where the exact minimum over beta is meant, write ``O(inf)``.
    accuracy : bool
        Record P(sign f = y) too, where the objective has it. It may cost more than the steps.
    monitor : Objective or Task, optional
        Record the risk and accuracy of this objective instead: descend on drawn words, watch
        the population. `until` is then looked at where records fall.
    keep_weights : bool
        Keep the weights of every record; False keeps the last only.
    path : {"auto", "general", "symmetric"}
        "auto" takes the four-scalar path (THEORY 5), whose cost does not depend on d, when the
        objective is the exact risk of an occurrence task with uniform symbols and balanced
        lengths and the start is equal over the background. `Trajectory.path` says which ran.
    rng : None, int or Generator
        Handed to the objective's ``step_objective(rng)``, if it draws words at every step;
        deterministic objectives ignore it.

    Returns
    -------
    Trajectory
        Also when training stopped early: see its ``stop_reason``. A Ctrl-C ends training with
        a warning and gives the trajectory so far.

    Raises
    ------
    BadParameter
        When an argument breaks a rule.
    PopgdError
        What the objective raises on the way; the error's attribute ``trajectory`` then holds
        everything recorded so far.

    Notes
    -----
    Runs that leave the finite numbers, as risks do where output weights exceed 1e150, stop with
    "diverged", their last finite weights and risk inf; in a batch the others go on. An output
    phase on the symmetric path is one eigendecomposition, from record to record: 10^12 steps
    cost as much as one.
    Source: Paper 4; THEORY 5. Error: that of the objective and rounding (estimated).

    Examples
    --------
    >>> import popgd
    >>> risk = popgd.PopulationRisk(popgd.Occurrence(50))
    >>> run = popgd.train(risk, "O(1x) -> A(1x, lr=5e4) -> O(200x)", record_every=10)
    >>> run.path, run.stop_reason, run.step[-1]
    ('symmetric', 'completed', np.int64(202))
    """
    plan = Plan.of(plan)
    task = task_of("objective", objective)
    descended = _bound(objective, rng)
    step_sizes = rates(learning_rate)
    rules = Rules(
        Schedule(record_every),
        None if until is None else check.real("until", until, 0.0, closed="left"),
        check.real("tolerance", tolerance, 0.0, 1.0, closed="left"),
        check.integer("max_steps", max_steps, 1),
    )
    route = check.choice("path", path, ("auto", "general", "symmetric"))
    symmetric = eligible(descended, monitor, alpha, beta, residual, insist=route == "symmetric")
    if symmetric and route != "general":
        model: Any = Reduced(task.d)
        start = model.start(alpha, beta, residual, task.target)
        targets, taken, gaps = (0,), "symmetric", model.gaps
        recorder = Recorder(gaps, model.accuracy if accuracy else None)
    else:
        model, targets, taken = exact(descended), task.targets, "general"
        start = start_of(task, alpha, beta, residual, has_heads(model))
        recorder = _recorder(task, model, monitor, accuracy)
    recorder.keep_weights = bool(keep_weights)
    start = _spread(start, step_sizes, learning_rate)
    _afford(plan, rules, start, recorder.keep_weights)
    descent = Descent(model, np.array(targets, dtype=np.intp), step_sizes, rules, recorder, start)
    about = {"path": taken, "plan": plan.to_string(), "task": repr(task)}
    about |= {"d": task.d, "targets": tuple(task.targets)}
    return _finish(descent, plan, about)


def _bound(objective: Any, rng: Any) -> Any:
    """The objective bound to a generator, if it draws words at every step."""
    check.generator("rng", rng)
    bind = getattr(objective, "step_objective", None)
    # as given, not as a Generator: a seed may mean more than one stream
    return objective if bind is None else bind(rng)


def _spread(start: Weights, step_sizes: Mapping[str, Any], given: Any) -> Weights:
    """A batch of learning rates is a batch of runs."""
    fixed = [getattr(size, "fixed", np.float64(0)) for size in step_sizes.values()]
    return broadcast(start, *(np.shape(size) for size in fixed), heads=start.heads)


def _recorder(task: Any, objective: Any, monitor: Any, accuracy: bool) -> Recorder:
    targets = list(task.targets)
    watched = objective if monitor is None else exact(monitor)
    other = task_of("monitor", watched)
    if other.d != task.d:
        raise check.refuse("monitor", monitor, f"has d = {other.d}", f"pass one with d = {task.d}")

    def gaps(at: Weights) -> tuple[Any, Any]:
        return attention_gap_of(at.alpha, targets), output_gap_of(at.beta, targets)

    def watch(at: Weights) -> Any:
        same = tuple(other.targets) == tuple(targets)
        return watched.value(at.alpha, at.beta, residual=at.residual if same else None)

    def accurate(at: Weights) -> Any:
        if type(watched) is not PopulationRisk:
            return watched.accuracy(at.alpha, at.beta)
        # the exact sums take one point at a time, and give an interval of which we keep the centre
        shape = at.alpha.shape[:-1]
        each = [watched.accuracy(at.alpha[i], at.beta[i]) for i in np.ndindex(*shape)]
        return np.array([getattr(one, "value", one) for one in each]).reshape(shape)

    return Recorder(gaps, accurate if accuracy else None, None if monitor is None else watch)


def _afford(plan: Plan, rules: Rules, start: Weights, keep: bool) -> None:
    """Refuse what cannot be kept before it is computed."""
    counted = [p.steps for p in plan if p.steps is not None and not p.exact]
    if sum(counted) > 2**62:
        raise check.refuse("plan", plan.to_string(), "has more than 2^62 steps", "use O(inf)")
    records = 1 + len(plan) + sum(rules.schedule.count(steps) for steps in counted)
    size = records * 8 * sum(part.size for part in start) if keep else 0
    if records > MOST_RECORDS or size > MOST_BYTES:
        raise check.refuse(
            "record_every", rules.schedule.every,
            f"would keep {records:.2g} records ({size / 2**30:.2g} GB of weights)",
            "record less often, or 'log', or set keep_weights=False",
        )  # fmt: skip


def _finish(descent: Descent, plan: Plan, about: dict[str, Any]) -> Trajectory:
    """Run, and lose nothing whatever happens."""
    try:
        descent.run(plan)
    except Exception as error:
        if descent.phases:
            partial = descent.recorder.trajectory(descent.phases, descent.now.lost, **about)
            error.trajectory = partial  # type: ignore[attr-defined]
        raise
    run = descent.recorder.trajectory(descent.phases, descent.now.lost, **about)
    if run.stop_reason == "interrupted":
        step = math.inf if not len(run) else int(run.step[-1])
        warnings.warn(f"interrupted: returning the trajectory to step {step}", stacklevel=3)
    return run
