"""The paper's table of training plans on the occurrence language, on drawn words and exactly.

The text gives the alphabet, the numbers of words, the starts and the plans, but no step sizes;
those below are ours, chosen with the printed cells in view: agreement shows that step sizes exist
which reproduce the table, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from ._blas import one_thread
from ._workers import mapped
from .batches import seed_streams
from .empirical import EmpiricalRisk
from .languages import Occurrence
from .population import PopulationRisk
from .sampling import sample_words
from .starts import random_start
from .training import train

__all__ = ["PAPER", "Cell", "PaperTable", "Row", "paper_table"]

SCALE = 0.1
"""Standard deviation of the random starts (Paper B.1)."""

GROUP = 5
"""Seeds of one job: fixed, so that results do not depend on the number of workers."""

OUTPUT, ATTENTION, FIRST = 0.7, 20.0, 10.0
"""Single steps over d: of the output, of the attention after it, of the attention alone."""


class Printed(NamedTuple):
    """A row of the paper: train MSE and test accuracy; None where the table's text is lost.

    `bound` marks values printed as upper bounds; `deviation` is the printed standard deviation.
    """

    mse: float | None = None
    accuracy: float | None = None
    deviation: float | None = None
    bound: bool = False


PAPER = {
    "joint": Printed(1e-3, 1.00, 1e-6, bound=True),
    "A": Printed(1.64, 0.50, 0.08),
    "O": Printed(0.74, 0.86),
    "A(1x) -> O": Printed(0.72, 0.76),
    "O(1x) -> A(1x)": Printed(0.47, 1.00),
    "O(1x) -> A(1x) -> O": Printed(),
    "O(1x) -> A(1x) -> O, zero start": Printed(),
}
"""The occurrence columns of the paper's Tables 1 and 5."""

PAPER_D = 50
"""The alphabet size of these tables."""

ROUNDING = 0.005
"""Half a unit of the last printed digit."""


def plans(d: int) -> dict[str, str]:
    """The plans with our step sizes, by the name of their row.

    >>> plans(50)["O(1x) -> A(1x)"]
    'O(1x, lr=35) -> A(1x, lr=1000)'
    """
    output, attention = f"O(1x, lr={OUTPUT * d:g})", f"A(1x, lr={ATTENTION * d:g})"
    three = f"{output} -> {attention} -> O(400x, lr=2)"
    return {
        "joint": "J(300x)",
        "A": f"A(300x, lr={2 * d:g})",
        "O": f"O(100x, lr={d:g})",
        "A(1x) -> O": f"A(1x, lr={FIRST * d:g}) -> O(400x, lr=2)",
        "O(1x) -> A(1x)": f"{output} -> {attention}",
        "O(1x) -> A(1x) -> O": three,
        "O(1x) -> A(1x) -> O, zero start": three,
    }


def joint_rates(d: int) -> dict[str, float]:
    """Step sizes of joint training: beyond 4 the output diverges once attention saturates."""
    return {"O": 3.0, "A": 2.0 * d}


@dataclass(frozen=True)
class Cell:
    """One number over the seeds.

    Attributes
    ----------
    mean, deviation : float
        Over the seeds.
    exact, exact_deviation : float
        The same with the population risk in place of drawn words, from the same starts.
    printed : float or None
        The paper's number.
    agrees : bool or None
        Whether mean and printed number are within two of our deviations and rounding; None
        without a printed number.
    """

    mean: float
    deviation: float
    exact: float
    exact_deviation: float
    printed: float | None
    agrees: bool | None


@dataclass(frozen=True)
class Row:
    """A training plan.

    Attributes
    ----------
    name : str
        The row in the paper.
    plan : str
        With step sizes.
    mse : Cell
        Train MSE, twice the risk on the training words; `exact`: twice the population risk.
    accuracy : Cell
        On the test words; `exact`: of the weights trained on the population, on the same words.
    population_mse : float
        Mean exact MSE of the weights trained on words: how well they generalise.
    """

    name: str
    plan: str
    mse: Cell
    accuracy: Cell
    population_mse: float


@dataclass(frozen=True)
class PaperTable:
    """All rows, with what they were made from."""

    d: int
    train_words: int
    test_words: int
    seeds: int
    rng: int
    joint_rates: dict[str, float]
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


def paper_table(
    d: int = 50,
    seeds: int = 50,
    rng: int = 0,
    *,
    only: Sequence[str] = (),
    overrides: dict[str, str] | None = None,
    workers: int = 2,
    executor: Executor | None = None,
    progress: Any = None,
) -> PaperTable:
    """Train by every plan of the paper on 5 d^2 words, and on the population from equal starts.

    Parameters
    ----------
    d : int
        Alphabet size; 50 in the paper, whose numbers are left out at any other.
    seeds : int
        Runs, each with start, training words and d^2 test words of its own.
    rng : int
        Root of the runs' streams; run k is the same for any number of seeds.
    only : sequence of str
        Row names; all when empty. See `PAPER`.
    overrides : dict, optional
        Row name -> plan with other step sizes.
    workers : int
        Processes; 1 computes here. Results do not depend on it.
    executor : concurrent.futures.Executor, optional
        Instead of own processes.
    progress : callable, optional
        Called with (jobs done, jobs in all).

    Returns
    -------
    PaperTable

    Raises
    ------
    BadParameter
        When an argument breaks a rule.

    Notes
    -----
    Starts are N(0, 0.1^2) for both layers; zero in the last row. Source: Paper 5, B.1, Tables 1
    and 5. Error: sampled (over seeds); exact columns are `PopulationRisk`'s at each start.
    """
    d, seeds = check.integer("d", d, 2), check.integer("seeds", seeds, 2)
    rng, workers = check.integer("rng", rng, 0), check.integer("workers", workers, 1)
    chosen = plans(d) | (overrides or {})
    names = [check.choice("only", name, tuple(PAPER)) for name in only] or list(PAPER)
    chosen = {name: chosen[name] for name in PAPER if name in names}
    groups = [list(range(lo, min(lo + GROUP, seeds))) for lo in range(0, seeds, GROUP)]
    jobs = [(d, rng, group, chosen) for group in groups]
    done = []
    for found in mapped(_run, jobs, workers, executor):
        done.append(found)
        if progress is not None:
            progress(len(done), len(jobs))
    runs = {name: np.concatenate([part[name] for part in done], axis=1) for name in chosen}
    # the paper's numbers are those of its d
    printed = PAPER if d == PAPER_D else dict.fromkeys(PAPER, Printed())
    rows = tuple(_row(name, plan, runs[name], printed[name]) for name, plan in chosen.items())
    return PaperTable(d, 5 * d * d, d * d, seeds, rng, joint_rates(d), rows)


def _run(job: tuple[int, int, list[int], dict[str, str]]) -> dict[str, np.ndarray]:
    """One group of seeds: row name -> (5, seeds) numbers, see `_row`."""
    d, rng, group, chosen = job
    task = Occurrence(d)
    streams = seed_streams(rng, group)
    starts = [random_start(d, SCALE, rng=stream) for stream in streams]
    words = [EmpiricalRisk(sample_words(task, 5 * d * d, stream)) for stream in streams]
    tests = [EmpiricalRisk(sample_words(task, d * d, stream)) for stream in streams]
    with one_thread():
        return {
            name: _plan(task, name, plan, starts, words, tests) for name, plan in chosen.items()
        }


def _plan(
    task: Occurrence, name: str, plan: str, starts: Any, words: Any, tests: Any
) -> np.ndarray:
    if name.endswith("zero start"):
        starts = [(np.zeros(task.d), np.zeros(task.d))] * len(words)
    options = {"learning_rate": joint_rates(task.d), "record_every": None, "keep_weights": False}
    population = PopulationRisk(task)
    exact = train(population, plan, *(np.stack(x) for x in zip(*starts)), **options)
    out = np.empty((5, len(words)))
    for k, (start, batch, test) in enumerate(zip(starts, words, tests, strict=True)):
        run = train(batch, plan, *start, **options)
        alpha, beta, residual = run.final
        ideal = [part[k] for part in exact.final[:2]]
        out[:, k] = (
            2 * run.risk[-1], test.accuracy(alpha, beta), 2 * exact.risk[-1][k],
            test.accuracy(*ideal), population.mse(alpha, beta, residual),
        )  # fmt: skip
    return out


def _row(name: str, plan: str, runs: np.ndarray, printed: Printed) -> Row:
    mean, deviation = runs.mean(axis=1), runs.std(axis=1, ddof=1)

    def cell(i: int, value: float | None, bound: bool) -> Cell:
        agrees = None if value is None else _agrees(mean[i], deviation[i], value, bound)
        ours, exact = (mean[i], deviation[i]), (mean[i + 2], deviation[i + 2])
        return Cell(float(ours[0]), float(ours[1]), float(exact[0]), float(exact[1]), value, agrees)

    mse, accuracy = cell(0, printed.mse, printed.bound), cell(1, printed.accuracy, False)
    return Row(name, plan, mse, accuracy, float(mean[4]))


def _agrees(mean: float, deviation: float, printed: float, bound: bool) -> bool:
    if bound:
        return bool(mean <= printed)
    return bool(abs(mean - printed) <= 2 * deviation + ROUNDING)
