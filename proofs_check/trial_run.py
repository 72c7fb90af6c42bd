"""All trials of Corollary 1: settings over two processes, within a budget of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from popgd._blas import one_thread

from .trial_searches import Constant, Half, half_point, smallest_constant
from .trial_statistics import Interval, Line, fit
from .trials import Setting

__all__ = ["DIMENSIONS", "RISKS", "Summary", "TrialRun", "run_trials"]

DIMENSIONS = (3, 5, 10, 20, 50, 100, 200)
RISKS = (0.5, 0.1, 0.01)
HALF_RISK = 0.1
"""Risk at which the number of words for half of the trials is looked for, if it is among those."""


@dataclass(frozen=True)
class Summary:
    """The two questions answered.

    Attributes
    ----------
    constant : float or None
        The smallest constant that works at every setting tried: the largest of theirs. None when
        no setting that asks for anything was tried.
    constant_works : float or None
        One that works at every setting with confidence; inf when trials are too few to show it.
    half : Line or None
        N1 for half of the trials as a power of d.
    half_over_d_log_d : Line or None
        The same of N1/(d ln d): exponent 0 if d ln d is what it takes.
    """

    constant: float | None
    constant_works: float | None
    half: Line | None
    half_over_d_log_d: Line | None


@dataclass(frozen=True)
class TrialRun:
    """Everything a run found.

    Attributes
    ----------
    constants : tuple of Constant
    halves : tuple of Half
    missing : tuple of str
        Settings that the budget left out.
    seconds : float
    """

    constants: tuple[Constant, ...]
    halves: tuple[Half, ...]
    missing: tuple[str, ...]
    seconds: float
    trials: int
    rng: int
    c: float
    confidence: float

    def summary(self) -> Summary:
        """Over all settings done."""
        bound = [c for c in self.constants if c.required > 0]
        sizes, words = [h.d for h in self.halves], [h.words for h in self.halves]
        scaled = [
            Interval(*(x / (d * np.log(d)) for x in w)) for d, w in zip(sizes, words, strict=True)
        ]
        return Summary(
            max((c.value for c in bound), default=None),
            max((c.works for c in bound), default=None),
            fit(sizes, words, self.confidence),
            fit(sizes, scaled, self.confidence),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = asdict(self)
        found = self.summary()
        data["summary"] = {
            name: part._asdict() if isinstance(part, Line) else part
            for name, part in vars(found).items()
        }
        for entry in data["constants"]:
            entry["rates"] = [{"C": k, "rate": v} for k, v in entry["rates"].items()]
        return data


def run_trials(
    trials: int = 200,
    dimensions: Sequence[int] = DIMENSIONS,
    risks: Sequence[float] = RISKS,
    *,
    c: float = 1.0,
    rng: int = 0,
    budget: float | None = None,
    confidence: float = 0.95,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> TrialRun:
    """Smallest constants at all settings, and the words half of the trials need.

    Parameters
    ----------
    trials : int
        At each setting.
    dimensions, risks : sequences
        d and eps; eta1 is 1. The words for half of the trials are looked for at eps = 0.1, or at
        the first of `risks` without it.
    c : float
        Exponent of the probability 1 - 3 d^(-c).
    rng : int
        Root of all words: trial k at d always has the same.
    budget : float, optional
        Seconds after which no further setting is waited for.
    confidence : float
        Of every interval.
    workers : int
        Processes; results do not depend on it.
    progress : callable, optional
        Called with (settings done, in all).
    """
    start = time.monotonic()
    half_risk = HALF_RISK if HALF_RISK in risks else risks[0]
    jobs = [("half", d, half_risk) for d in dimensions]
    jobs += [("constant", d, eps) for d in dimensions for eps in risks]
    jobs.sort(key=lambda job: job[1])
    found: dict[tuple[str, int, float], Any] = {}
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        waiting = {pool.submit(_job, job, trials, c, rng, confidence): job for job in jobs}
        while waiting:
            left = None if budget is None else budget - (time.monotonic() - start)
            done, _ = wait(waiting, None if left is None else max(left, 0.0), FIRST_COMPLETED)
            if not done:
                break
            _collect(done, waiting, found)
            if progress is not None:
                progress(len(found), len(jobs))
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
    missing = tuple(f"{kind}, d = {d}, eps = {eps:g}" for kind, d, eps in jobs
                    if (kind, d, eps) not in found)  # fmt: skip
    halves, constants = (
        tuple(found[job] for job in jobs if job[0] == kind and job in found)
        for kind in ("half", "constant")
    )
    seconds = time.monotonic() - start
    return TrialRun(constants, halves, missing, seconds, trials, rng, c, confidence)


def _collect(done: set[Future[Any]], waiting: dict[Any, Any], found: dict[Any, Any]) -> None:
    for future in done:
        found[waiting.pop(future)] = future.result()


def _job(
    job: tuple[str, int, float], trials: int, c: float, rng: int, confidence: float
) -> Constant | Half:
    kind, d, eps = job
    setting = Setting(d, eps)
    with one_thread():
        if kind == "half":
            return half_point(setting, trials=trials, rng=rng, confidence=confidence)
        return smallest_constant(setting, c, trials, rng, confidence)
