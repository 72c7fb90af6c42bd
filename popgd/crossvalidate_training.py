"""Training on drawn words against training on the population: size and slope of the deviation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .batches import seed_streams
from .count_table import LARGEST, count_table
from .descent import rates
from .deviation_verdict import judge
from .empirical import EmpiricalRisk
from .errors import PopgdError
from .influence import sampled_deviations
from .languages import Task
from .linearised import Deviation, Point, deviations
from .plans import Plan
from .reduction import balanced, eligible
from .sampling import sample_words
from .symmetric_state import State
from .training import train
from .training_validation import TrainingValidation
from .trajectory import Trajectory, Weights

__all__ = ["TrainingValidation", "cross_validate_training"]

MEMORY = 2**27
"""Bytes of words trained on at a time."""

MOST_STEPS = 100_000
MOST_SAMPLED_STEPS = 10_000

LARGEST_SAMPLED = 200
"""Largest d of a sampled prediction: a step costs the full Hessian, (2d)^2 numbers."""

MOST_REFERENCE = 2**20

ROUNDING = 1e-12
"""Rounding of a run relative to its weights and its risk, with room for thousands of steps."""


def cross_validate_training(
    task: Task,
    plan: Any,
    start: Any = None,
    *,
    n: Sequence[int] = (1000, 4000, 16_000),
    seeds: int = 150,
    learning_rate: Any = 1.0,
    record_every: Any = "log",
    rng: Any = None,
    level: float = 0.01,
    resolution: float = 0.5,
    prediction: str = "auto",
    reference: int = 30_000,
) -> TrainingValidation:
    """Gradient descent on n words against gradient descent on the population, all along a plan.

    Parameters
    ----------
    task : Task
        Any, up to d = 200; balanced occurrence from a symmetric start up to d = 2000.
    plan : str or Plan
        Phases with counted steps.
    start : (alpha, beta), (alpha, beta, residual) or State, optional
        One pair of vectors of shape (d,), for example ``popgd.random_start(d, rng=0)``; zero by
        default. A State gives its first values to every target.
    n : sequence of int
        Sample sizes, two or more.
    seeds : int
        Runs at each, each on words of its own, the same at every step.
    learning_rate, record_every
        As for `train`.
    rng : None, int or SeedSequence
        Root of the runs' streams: run k at the j-th size has stream k + j * seeds. Reference
        words have the stream after the last run's.
    level : float
        Probability of a false "disagree". Choose it before looking.
    resolution : float
        "agree" needs the size of every scalar deviation to be that predicted to within a factor 1 +
        resolution, and slopes to be -1/2 to within resolution/2, confidence included.
    prediction : {"auto", "exact", "sampled"}
        "exact" sums over the law of the words, for balanced occurrence from a symmetric start
        only; "sampled" averages over reference words, and the verdict allows for its error.
        "auto" is exact where that applies.
    reference : int
        Reference words of a sampled prediction; memory is about 80 d bytes for each.

    Returns
    -------
    TrainingValidation

    Raises
    ------
    BadParameter
        When an argument breaks a rule, or a phase has no number of steps.

    Notes
    -----
    The prediction is that of first order in 1/sqrt(n), with the covariance of the gradients of the
    same words at different steps (`popgd.linearised`, `popgd.influence`). Sizes are judged by
    chi-square or F intervals at the largest n, where the first order is best, after the last step.
    A sampled prediction takes O(d^2 (nodes + reference)) time a step once attention has moved:
    about 0.2 s at d = 50 and 1 s at d = 200. Source: THEORY 2, 4, 5, 7.
    Error: sampled, at the level declared.

    Examples
    --------
    >>> import popgd
    >>> found = popgd.cross_validate_training(
    ...     popgd.Occurrence(5), "O(3x)", n=[200, 800], seeds=40, rng=0)
    >>> bool(abs(found.ratio("beta")[-1, -1] - 1) < 0.5)
    True
    >>> start = popgd.random_start(6, rng=0)
    >>> found = popgd.cross_validate_training(
    ...     popgd.Or(6, [0, 1]), "O(3x)", start, n=[200, 800], seeds=40, rng=0)
    >>> found.prediction
    'sampled'
    """
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass for example popgd.Occurrence(50)")
    plan, sizes = Plan.of(plan), _sizes(n)
    seeds = check.integer("seeds", seeds, 2)
    level = check.real("level", level, 0.0, 0.5)
    resolution = check.real("resolution", resolution, 0.0, 10.0)
    reference = check.integer("reference", reference, 100, MOST_REFERENCE)
    begin = _start(task, start)
    kind = _kind(task, begin, check.choice("prediction", prediction, ("auto", "exact", "sampled")))
    steps = _step_sizes(plan, learning_rate, MOST_STEPS if kind == "exact" else MOST_SAMPLED_STEPS)
    population = _population(task, plan, begin, len(steps), kind, learning_rate)
    *streams, last = seed_streams(rng, range(seeds * len(sizes) + 1))
    options = {"learning_rate": learning_rate, "record_every": record_every}
    recorded: Any = None
    seen: list[dict[str, np.ndarray]] = []
    for j, size in enumerate(sizes):
        own = streams[j * seeds : (j + 1) * seeds]
        runs = _runs(task, plan, begin, size, own, **options)
        recorded = runs[0].step
        seen.append(_sizes_of(runs, population, recorded))
    if kind == "exact":
        found = _exact(task, population, steps, recorded)
    else:
        found = _sampled(task, population, steps, recorded, sample_words(task, reference, last))
    observed = {name: np.stack([part[name] for part in seen]) for name in Deviation._fields}
    rounding = _rounding(population)
    judged = judge(np.array(sizes), *found, observed, rounding, seeds, level, resolution)
    return TrainingValidation(
        n=np.array(sizes), step=recorded, predicted=found.predicted, observed=observed,
        **judged._asdict(), seeds=seeds, level=level, resolution=resolution,
        population=population, prediction=kind, predicted_error=found.errors,
        reference=reference if kind == "sampled" else 0, rounding=rounding,
    )  # fmt: skip


def _sizes(n: Any) -> list[int]:
    if isinstance(n, (str, bytes)) or not hasattr(n, "__len__"):
        raise check.refuse("n", n, "must be a sequence of sample sizes", "pass [1000, 4000]")
    sizes = [check.integer(f"n[{i}]", size, 1) for i, size in enumerate(n)]
    if len(set(sizes)) < 2:
        raise check.refuse("n", n, "needs two different sizes", "pass for example [1000, 4000]")
    return sizes


def _start(task: Task, start: Any) -> Weights:
    """One point as vectors, from a State, vectors or nothing."""
    d, targets = task.d, list(task.targets)
    if start is None:
        start = np.zeros(d), np.zeros(d)
    elif isinstance(start, State):
        start = _spread(start, d, targets)
    remedy = f"pass (alpha, beta) of shape ({d},) each, or a popgd.symmetric.State"
    if not isinstance(start, (tuple, list, np.ndarray)) or len(start) not in (2, 3):
        raise check.refuse("start", start, "must be a pair of vectors", remedy)
    widths = {"alpha": d, "beta": d, "residual": len(targets)}
    parts = [check.weights(*pair, widths[pair[0]]) for pair in zip(widths, start)]
    if any(part.ndim > 1 for part in parts):
        raise check.refuse("start", start, "must be one point", remedy)
    if len(parts) == 2:
        parts.append(parts[1][targets] - 2.0)
    check.same_weight("residual", parts[1][targets], parts[2])
    return Weights(*parts)


def _spread(state: State, d: int, targets: list[int]) -> tuple[np.ndarray, ...]:
    """A State as vectors, with its target values on every target."""
    alpha, beta, residual = state.weights(d, targets[0])
    if alpha.ndim > 1:
        raise check.refuse("start", state, "must be one point", "pass a State of scalars")
    alpha[targets], beta[targets] = alpha[targets[0]], beta[targets[0]]
    return alpha, beta, np.repeat(residual, len(targets))


def _kind(task: Task, begin: Weights, prediction: str) -> str:
    """Which prediction is to be made: "exact" or "sampled"."""
    table = balanced(task) and task.d <= LARGEST and eligible(task, None, *begin)
    if prediction == "exact" and not table:
        rule = f"needs balanced occurrence with d <= {LARGEST} and a symmetric start"
        raise check.refuse("prediction", prediction, rule, "use 'auto' or 'sampled'")
    if table and prediction != "sampled":
        return "exact"
    if task.d > LARGEST_SAMPLED:
        rule = (
            f"its prediction needs a Hessian of (2d)^2 numbers at every step, d <= "
            f"{LARGEST_SAMPLED}"
        )
        remedy = f"lower d, or take balanced occurrence, d <= {LARGEST}, from a symmetric start"
        raise check.refuse("task", task, rule, remedy)
    return "sampled"


def _step_sizes(plan: Plan, learning_rate: Any, most: int) -> list[tuple[float, float]]:
    """(attention, output) step size of every step."""
    out: list[tuple[float, float]] = []
    for phase in plan:
        if phase.steps is None or phase.exact:
            remedy = "write for example O(100x)"
            raise check.refuse("plan", plan.to_string(), "needs counted steps", remedy)
        if len(out) + phase.steps > most:
            remedy = f"use at most {most} steps"
            raise check.refuse("plan", plan.to_string(), "has too many steps", remedy)
        given = learning_rate if phase.learning_rate is None else phase.learning_rate
        by_layer = rates(given)
        for t in range(int(phase.steps)):
            pair = [float(by_layer[x](t)) if x in phase.moves else 0.0 for x in "AO"]
            out.append((pair[0], pair[1]))
    return out


def _population(
    task: Task, plan: Plan, begin: Weights, steps: int, kind: str, learning_rate: Any
) -> Trajectory:
    path = "symmetric" if kind == "exact" else "general"
    try:
        run = train(task, plan, *begin, learning_rate=learning_rate, path=path)
    except PopgdError as error:
        # weights beyond what the risk takes are where a diverging run ends
        run = getattr(error, "trajectory", None)
        if run is None or not len(run):
            raise
    if len(run) != steps + 1:
        rule = f"ended with {run.stop_reason!r} at step {run.step[-1]}"
        raise check.refuse("plan", plan.to_string(), rule, "lower the learning rate")
    return run


def _rounding(population: Trajectory) -> dict[str, float]:
    """What rounding alone can do to the final deviations."""
    alpha, beta = (ROUNDING * (1 + np.abs(part).max()) for part in population.stored[:2])
    sizes = dict.fromkeys(("gap", "alpha"), float(alpha))
    sizes |= dict.fromkeys(("beta_target", "beta_background", "beta"), float(beta))
    return sizes | {"risk": float(ROUNDING * population.risk[-1])}


class _Predicted(NamedTuple):
    """Deviations for one word at the recorded steps, with standard errors; arrays (K,)."""

    predicted: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]


def _exact(task: Task, population: Trajectory, steps: Any, recorded: np.ndarray) -> _Predicted:
    state = population.state
    pieces = (state.gap, state.beta_target, state.beta_background, state.residual)
    points = [Point(*(float(x) for x in row)) for row in zip(*pieces, strict=True)]
    rows = list(deviations(count_table(task), points, steps))
    predicted = _columns([rows[t] for t in recorded])
    return _Predicted(predicted, {name: np.zeros(len(x)) for name, x in predicted.items()})


def _sampled(
    task: Task, population: Trajectory, steps: Any, recorded: np.ndarray, words: Any
) -> _Predicted:
    path = [Weights(*row) for row in zip(*population.stored, strict=True)]
    rows = list(sampled_deviations(task, path, steps, words, recorded.tolist()))
    return _Predicted(*(_columns(part) for part in zip(*rows, strict=True)))


def _columns(rows: Sequence[Deviation]) -> dict[str, np.ndarray]:
    return {name: np.array([getattr(row, name) for row in rows]) for name in Deviation._fields}


def _runs(
    task: Task, plan: Plan, begin: Weights, n: int, streams: Sequence[Any], **options: Any
) -> list[Trajectory]:
    """Training on n words each, as many runs at a time as memory allows."""
    many = max(1, MEMORY // (n * task.d))
    out = []
    for lo in range(0, len(streams), many):
        words = [sample_words(task, n, stream) for stream in streams[lo : lo + many]]
        run = train(EmpiricalRisk(words), plan, *begin, **options)
        if run.diverged.any():
            remedy = "lower the learning rate or raise n"
            raise check.refuse("plan", plan.to_string(), f"diverges on {n} words", remedy)
        out.append(run)
    return out


def _sizes_of(
    runs: list[Trajectory], population: Trajectory, steps: np.ndarray
) -> dict[str, np.ndarray]:
    """Root mean square deviations over all runs at the recorded steps, by quantity."""
    whole = population.alpha[steps], population.beta[steps]
    squares = []
    for run in runs:
        alpha, beta = (
            part - exact[:, None] for part, exact in zip((run.alpha, run.beta), whole, strict=True)
        )
        risk = run.risk - population.risk[steps][:, None]
        squares.append(Deviation.squares(alpha, beta, risk, population.targets))
    return {
        name: np.sqrt(np.concatenate([getattr(x, name) for x in squares], axis=1).mean(axis=1))
        for name in Deviation._fields
    }
