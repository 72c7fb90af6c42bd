"""Many seeds of one training plan, each with start and words of its own, over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from . import _validate as check
from ._blas import one_thread
from ._workers import mapped
from .batches import seed_streams
from .descent import rates
from .empirical import EmpiricalRisk
from .languages import Task
from .plans import Plan
from .sampling import sample_words
from .starts import random_start
from .training import train
from .trajectory import Trajectory, Weights
from .word_counts import check_task

__all__ = ["train_seeds"]

SERIES = ("risk", "attention_gap", "output_gap", "accuracy")


def train_seeds(
    task: Task,
    plan: Any,
    n: int,
    seeds: Any = 50,
    *,
    scale: float = 0.1,
    learning_rate: Any = 1.0,
    record_every: Any = None,
    accuracy: bool = False,
    keep_weights: bool = False,
    rng: Any = 0,
    workers: int = 1,
    executor: Executor | None = None,
) -> Trajectory:
    """Gradient descent on `n` drawn words for each of many seeds.

    Parameters
    ----------
    task : Task
    plan : str or Plan
        Phases with counted steps or exact minima.
    n : int
        Training words a seed.
    seeds : int or sequence of int
        How many, or their numbers: seed k is the same run in any company.
    scale : float
        Standard deviation of the random starts; 0 starts at zero.
    learning_rate : float or mapping of layers to floats
        For phases without their own.
    record_every, accuracy, keep_weights
        As for `train`; accuracies are those on the training words.
    rng : int or SeedSequence
        Root of the runs' streams.
    workers : int
        Processes; 1 computes here. Results do not depend on it, bit for bit.
    executor : concurrent.futures.Executor, optional
        Instead of own processes.

    Returns
    -------
    Trajectory
        With one batch axis, the seeds in the order given.

    Raises
    ------
    BadParameter
        When an argument breaks a rule, or a phase has no number of steps.

    Notes
    -----
    Stream k draws the start, then the words. BLAS runs at one thread in each process.
    Source: Paper 5. Error: sampled.

    Examples
    --------
    >>> import popgd
    >>> run = popgd.train_seeds(popgd.Occurrence(6), "O(10x)", n=200, seeds=4)
    >>> run.risk.shape
    (2, 4)
    """
    check_task(task, None)
    plan, n = Plan.of(plan), check.integer("n", n, 1)
    workers = check.integer("workers", workers, 1)
    if any(phase.steps is None for phase in plan):
        rule = "seeds would end a phase without count at different steps"
        raise check.refuse("plan", plan.to_string(), rule, "write for example O(100x)")
    sizes = rates(learning_rate)
    fixed = [getattr(size, "fixed", None) for size in sizes.values()]
    if any(size is None or np.ndim(size) for size in fixed):
        rule = "must be a number for every layer"
        raise check.refuse("learning_rate", learning_rate, rule, "use Phase(...) for schedules")
    numbers = _numbers(seeds)
    options = {
        "learning_rate": learning_rate, "record_every": record_every, "accuracy": accuracy,
        "keep_weights": keep_weights,
    }  # fmt: skip
    jobs = [(task, plan, n, scale, _root(rng), k, options) for k in numbers]
    return _joined(list(mapped(_one, jobs, workers, executor)))


def _numbers(seeds: Any) -> list[int]:
    if isinstance(seeds, np.ndarray) and seeds.ndim == 1:
        seeds = seeds.tolist()
    if isinstance(seeds, Sequence) and not isinstance(seeds, (str, bytes)) and len(seeds):
        return [check.integer(f"seeds[{i}]", k, 0) for i, k in enumerate(seeds)]
    return list(range(check.integer("seeds", seeds, 1)))


def _root(rng: Any) -> Any:
    if isinstance(rng, np.random.SeedSequence):
        return rng
    return check.integer("rng", rng, 0, remedy="pass an integer seed or a SeedSequence")


def _one(job: tuple[Task, Plan, int, float, Any, int, Mapping[str, Any]]) -> Trajectory:
    task, plan, n, scale, root, k, options = job
    (stream,) = seed_streams(root, [k])
    alpha, beta = random_start(task.d, scale, rng=stream)
    with one_thread():
        words = EmpiricalRisk(sample_words(task, n, stream))
        return train(words, plan, alpha, beta, **options)


def _joined(runs: list[Trajectory]) -> Trajectory:
    """One trajectory with a batch axis; a run that diverged early keeps its last record."""
    # of runs with as many records: a diverged one stopped short of the steps they have in common
    longest = max(runs, key=lambda run: (len(run), run.step[-1], not run.diverged))

    def stack(parts: list[np.ndarray], size: int) -> np.ndarray:
        padded = [np.concatenate([x, np.repeat(x[-1:], size - len(x), axis=0)]) for x in parts]
        return np.stack(padded, axis=1)

    parts: dict[str, Any] = {
        name: stack([getattr(run, name) for run in runs], len(longest))
        for name in SERIES
        if getattr(longest, name) is not None
    }
    kept = len(longest.weight_step)
    stored = zip(*(run.stored for run in runs), strict=True)
    return replace(
        longest,
        stored=Weights(*(stack(list(x), kept) for x in stored)),
        diverged=np.array([bool(run.diverged) for run in runs]),
        **parts,
    )
