"""Training on drawn words against training on the population: size and slope of the deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _validate as check
from .batches import seed_streams
from .count_table import count_table
from .crossvalidate import Agreement
from .descent import rates
from .empirical import EmpiricalRisk
from .languages import Task
from .linearised import Deviation, Point, deviations
from .plans import Plan
from .sampling import sample_words
from .tail_bounds import holm
from .training import train
from .trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

__all__ = ["TrainingValidation", "cross_validate_training"]

SCALARS = ("gap", "beta_target", "beta_background", "risk")
"""Deviations that are single numbers: nearly normal, so that their sizes can be tested."""

MEMORY = 2**27
"""Bytes of words trained on at a time."""

MOST_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class TrainingValidation:
    """Deviations of finite-sample training. J sample sizes, K records, S seeds.

    Attributes
    ----------
    n : int array of shape (J,)
    step : int array of shape (K,)
    predicted : dict of arrays of shape (K,)
        Linearised standard deviation for one word, by quantity (fields of `Deviation`): times
        1/sqrt(n) it is that for n words.
    observed : dict of arrays of shape (J, K)
        Root mean square deviation over the seeds.
    slopes : dict of (slope, half-width)
        Of ln observed against ln n at the last step; -1/2 is expected. nan where the deviation is
        zero throughout.
    p_values : dict
        Adjusted p-values of sizes (largest n, last step) and of slopes.
    verdict : Agreement
    seeds_needed : int or None
        When more seeds would decide.
    reason : str
        Why it is not "agree".
    seeds : int
    level, resolution : float
    population : Trajectory
    """

    n: np.ndarray
    step: np.ndarray
    predicted: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    slopes: dict[str, tuple[float, float]]
    p_values: dict[str, float]
    verdict: Agreement
    seeds_needed: int | None
    reason: str
    seeds: int
    level: float
    resolution: float
    population: Trajectory

    def ratio(self, quantity: str) -> np.ndarray:
        """observed sqrt(n) / predicted, shape (J, K); nan where nothing has moved."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.observed[quantity] * np.sqrt(self.n)[:, None]
            return np.where(self.predicted[quantity] > 0, scaled / self.predicted[quantity], np.nan)

    def to_xarray(self) -> xarray.Dataset:
        """Observed and predicted deviations over n and step."""
        import xarray

        data: dict[str, Any] = {}
        for name, seen in self.observed.items():
            data[name] = (("n", "step"), seen)
            predicted = self.predicted[name] / np.sqrt(self.n)[:, None]
            data[f"{name}_predicted"] = (("n", "step"), predicted)
        attrs = {"verdict": self.verdict.value, "seeds": self.seeds, "plan": self.population.plan}
        return xarray.Dataset(data, {"n": self.n, "step": self.step}, attrs)

    def __repr__(self) -> str:
        why = f"; {self.reason}" if self.reason else ""
        needed = "" if self.seeds_needed is None else f"; {self.seeds_needed} would decide"
        return (
            f"TrainingValidation({self.verdict.value}: {self.population.plan!r}, n = "
            f"{self.n.tolist()}, {self.seeds} seeds{why}{needed})"
        )


def cross_validate_training(
    task: Task,
    plan: Any,
    start: Any = None,
    *,
    n: Sequence[int] = (1000, 4000, 16_000),
    seeds: int = 60,
    learning_rate: Any = 1.0,
    record_every: Any = "log",
    rng: Any = None,
    level: float = 0.01,
    resolution: float = 0.5,
) -> TrainingValidation:
    """Gradient descent on n words against gradient descent on the population, all along a plan.

    Parameters
    ----------
    task : Task
        Balanced occurrence, d <= 2000.
    plan : str or Plan
        Phases with counted steps.
    start : State, optional
        Symmetric weights; zero by default.
    n : sequence of int
        Sample sizes, two or more.
    seeds : int
        Runs at each, each on words of its own, the same at every step.
    learning_rate, record_every
        As for `train`.
    rng : None, int or SeedSequence
        Root of the runs' streams: run k at the j-th size has stream k + j * seeds.
    level : float
        Probability of a false "disagree". Choose it before looking.
    resolution : float
        "agree" needs the size of every scalar deviation to be that predicted to within a factor 1 +
        resolution, and slopes to be -1/2 to within resolution/2, confidence included.

    Returns
    -------
    TrainingValidation

    Raises
    ------
    BadParameter
        When an argument breaks a rule, or a phase has no number of steps.

    Notes
    -----
    The prediction is exact to first order in 1/sqrt(n), with the covariance of the gradients of the
    same words at different steps (`popgd.linearised`). Sizes are judged by chi-square intervals
    at the largest n, where the first order is best, after the last step. Source: THEORY 4, 5, 7.
    Error: sampled, at the level declared.

    Examples
    --------
    >>> import popgd
    >>> found = popgd.cross_validate_training(
    ...     popgd.Occurrence(5), "O(3x)", n=[200, 800], seeds=40, rng=0)
    >>> bool(abs(found.ratio("beta")[-1, -1] - 1) < 0.5)
    True
    """
    plan, sizes = Plan.of(plan), _sizes(n)
    seeds = check.integer("seeds", seeds, 2)
    level = check.real("level", level, 0.0, 0.5)
    resolution = check.real("resolution", resolution, 0.0, 10.0)
    steps = _step_sizes(plan, learning_rate)
    table = count_table(task)
    population = train(task, plan, start, learning_rate=learning_rate, path="symmetric")
    if len(population) != len(steps) + 1:
        rule = f"ended with {population.stop_reason!r} at step {population.step[-1]}"
        raise check.refuse("plan", plan.to_string(), rule, "lower the learning rate")
    state = population.state
    pieces = (state.gap, state.beta_target, state.beta_background, state.residual)
    points = [Point(*(float(x) for x in row)) for row in zip(*pieces, strict=True)]
    rows = list(deviations(table, points, steps))
    streams = seed_streams(rng, range(seeds * len(sizes)))
    recorded: Any = None
    seen: list[dict[str, np.ndarray]] = []
    for j, size in enumerate(sizes):
        runs = _runs(task, plan, start, size, streams[j * seeds : (j + 1) * seeds],
                     learning_rate=learning_rate, record_every=record_every)  # fmt: skip
        recorded = runs[0].step
        seen.append(_sizes_of(runs, population, recorded))
    predicted = {
        name: np.array([getattr(rows[t], name) for t in recorded]) for name in Deviation._fields
    }
    observed = {name: np.stack([part[name] for part in seen]) for name in Deviation._fields}
    judged = _judge(np.array(sizes), predicted, observed, seeds, level, resolution)
    return TrainingValidation(
        np.array(sizes),
        recorded,
        predicted,
        observed,
        *judged,
        seeds,
        level,
        resolution,
        population,
    )


def _sizes(n: Any) -> list[int]:
    if isinstance(n, (str, bytes)) or not hasattr(n, "__len__"):
        raise check.refuse("n", n, "must be a sequence of sample sizes", "pass [1000, 4000]")
    sizes = [check.integer(f"n[{i}]", size, 1) for i, size in enumerate(n)]
    if len(set(sizes)) < 2:
        raise check.refuse("n", n, "needs two different sizes", "pass for example [1000, 4000]")
    return sizes


def _step_sizes(plan: Plan, learning_rate: Any) -> list[tuple[float, float]]:
    """(attention, output) step size of every step."""
    out: list[tuple[float, float]] = []
    for phase in plan:
        if phase.steps is None or phase.exact:
            remedy = "write for example O(100x)"
            raise check.refuse("plan", plan.to_string(), "needs counted steps", remedy)
        if len(out) + phase.steps > MOST_STEPS:
            remedy = f"use at most {MOST_STEPS} steps"
            raise check.refuse("plan", plan.to_string(), "has too many steps", remedy)
        given = learning_rate if phase.learning_rate is None else phase.learning_rate
        by_layer = rates(given)
        for t in range(int(phase.steps)):
            pair = [float(by_layer[x](t)) if x in phase.moves else 0.0 for x in "AO"]
            out.append((pair[0], pair[1]))
    return out


def _runs(
    task: Task, plan: Plan, start: Any, n: int, streams: Sequence[Any], **options: Any
) -> list[Trajectory]:
    """Training on n words each, as many runs at a time as memory allows."""
    many = max(1, MEMORY // (n * task.d))
    begin = () if start is None else start.weights(task.d, task.targets[0])
    out = []
    for lo in range(0, len(streams), many):
        words = [sample_words(task, n, stream) for stream in streams[lo : lo + many]]
        out.append(train(EmpiricalRisk(words), plan, *begin, **options))
    return out


def _sizes_of(
    runs: list[Trajectory], population: Trajectory, steps: np.ndarray
) -> dict[str, np.ndarray]:
    """Root mean square deviations over all runs at the recorded steps, by quantity."""
    s = population.targets[0]
    squares: dict[str, list[np.ndarray]] = {name: [] for name in Deviation._fields}
    whole = population.alpha[steps], population.beta[steps]
    for run in runs:
        off = [part - exact[:, None] for part, exact in zip((run.alpha, run.beta), whole)]
        rest = [np.delete(part, s, axis=-1).mean(axis=-1) for part in off]
        scalars = {
            "gap": off[0][..., s] - rest[0],
            "beta_target": off[1][..., s],
            "beta_background": rest[1],
            "risk": run.risk - population.risk[steps][:, None],
        }
        for name, part in scalars.items():
            squares[name].append(part**2)
        for name, part in zip(("alpha", "beta"), off):
            squares[name].append((part**2).sum(axis=-1))
    return {
        name: np.sqrt(np.concatenate(part, axis=1).mean(axis=1)) for name, part in squares.items()
    }


class _Judged(NamedTuple):
    slopes: dict[str, tuple[float, float]]
    p_values: dict[str, float]
    verdict: Agreement
    seeds_needed: int | None
    reason: str


def _judge(
    n: np.ndarray, predicted: Any, observed: Any, seeds: int, level: float, resolution: float
) -> _Judged:
    from scipy.special import chdtr, ndtr, ndtri

    names = [name for name in SCALARS if predicted[name][-1] > 0]
    z = float(ndtri(1 - level / (2 * max(len(names), 1)) / 2))
    x = np.log(n) - np.log(n).mean()
    # the logarithm of a root mean square of S normal numbers has variance 1/(2S)
    each = 1 / math.sqrt(2 * seeds)
    error = each / math.sqrt(x @ x)
    slopes, ratios, p = {}, {}, {}
    for name in Deviation._fields:
        if not (observed[name][:, -1] > 0).all():
            slopes[name] = (math.nan, math.nan)
            continue
        slopes[name] = (float(x @ np.log(observed[name][:, -1]) / (x @ x)), z * error)
        if name in names:
            at = int(np.argmax(n))
            ratio = observed[name][at, -1] * math.sqrt(n[at]) / predicted[name][-1]
            below = float(chdtr(seeds, seeds * ratio**2))
            ratios[name] = math.log(ratio)
            p[f"{name} size"] = 2 * min(below, 1 - below)
            p[f"{name} slope"] = 2 * float(ndtr(-abs(slopes[name][0] + 0.5) / error))
    adjusted = dict(zip(p, (float(v) for v in holm(np.array(list(p.values())))), strict=True))
    off = {name: adjusted[f"{name} slope"] <= level for name in ratios}
    for name, ratio in ratios.items():
        # a deviation that is on its way to the predicted size only needs larger n
        settling = off[name] and ratio * (slopes[name][0] + 0.5) < 0
        if adjusted[f"{name} size"] <= level and not settling:
            reason = f"the deviation of {name} is {math.exp(ratio):.3g} times the predicted one"
            return _Judged(slopes, adjusted, Agreement.DISAGREE, None, reason)
    if any(off.values()):
        reason = "the first order does not yet hold at the smaller n; raise n"
        return _Judged(slopes, adjusted, Agreement.UNDECIDED, None, reason)
    room = math.log1p(resolution)
    good = all(
        abs(ratio) + z * each <= room and abs(slopes[name][0] + 0.5) + z * error <= resolution / 2
        for name, ratio in ratios.items()
    )
    if good:
        return _Judged(slopes, adjusted, Agreement.AGREE, None, "")
    enough = max((2 * z / room) ** 2, (4 * z / resolution) ** 2 / (x @ x)) / 2
    needed = max(math.ceil(enough), seeds + 1)
    reason = f"{seeds} seeds cannot tell a factor {1 + resolution:g}"
    return _Judged(slopes, adjusted, Agreement.UNDECIDED, needed, reason)
