"""What is kept of a run, and when: the part of training that does no mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .trajectory import PhaseRecord, Trajectory, Weights

__all__ = ["Recorder", "Schedule", "Snapshot"]

PER_DECADE = 20
"""Records a decade of steps when ``record_every="log"``."""


class Snapshot(NamedTuple):
    """A point of a run.

    Attributes
    ----------
    step : int
        Steps made.
    point : Weights
        Where it is; members that are lost keep their last finite weights.
    value : array of shape (...)
        Risk, inf for lost members.
    lost : bool array of shape (...)
        Members that left the finite numbers.
    gradient : Evaluation or None
        The gradient there, if it is known.
    """

    step: int
    point: Weights
    value: np.ndarray
    lost: np.ndarray
    gradient: Any = None


class Schedule:
    """Which steps are recorded; the ends of phases always are.

    Parameters
    ----------
    every : int, "log" or None
        Every so many steps, 20 a decade, or the ends of phases only.
    """

    def __init__(self, every: Any):
        if every is not None and not (isinstance(every, str) and every == "log"):
            remedy = "pass an integer >= 1, 'log' (20 records a decade) or None (ends of phases)"
            if isinstance(every, str):
                raise check.refuse("record_every", every, "is no spacing", remedy)
            every = check.integer("record_every", every, 1, remedy=remedy)
        self.every: Any = every

    def due(self, step: int) -> bool:
        """Whether this step is recorded."""
        return step == 0 or self.after(step - 1) == step

    def after(self, step: int) -> float:
        """The first recorded step after `step`; inf if there is none."""
        if self.every is None:
            return math.inf
        if self.every == "log":
            return _log_after(step)
        return (step // self.every + 1) * self.every

    def count(self, steps: float) -> float:
        """About how many records so many steps leave."""
        if self.every is None:
            return 0
        if self.every == "log":
            return PER_DECADE * math.log10(max(steps, 1)) + 1
        return steps / self.every


def _log_after(step: int) -> int:
    exponent = math.floor(PER_DECADE * math.log10(step)) if step > 0 else 0
    while True:
        # rounding may put a power a step early or late, so walk rather than trust it
        candidate = math.ceil(10 ** (exponent / PER_DECADE))
        if candidate > step:
            return candidate
        exponent += 1


@dataclass
class Recorder:
    """Collects records and builds the Trajectory.

    Attributes
    ----------
    gaps : callable
        Weights -> (attention gap, output gap).
    accuracy : callable or None
        Weights -> P(sign f = y).
    risk : callable or None
        Weights -> the risk to record in place of the descended one.
    keep_weights : bool
        Keep the weights of every record, or of the last only.
    """

    gaps: Callable[[Weights], tuple[Any, Any]]
    accuracy: Callable[[Weights], Any] | None = None
    risk: Callable[[Weights], Any] | None = None
    keep_weights: bool = True
    steps: list[int] = field(default_factory=list)
    phase_index: list[int] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=dict)
    weights: list[Weights] = field(default_factory=list)

    def has(self, step: int) -> bool:
        """Whether this step, the latest, is recorded."""
        return self.steps[-1:] == [step]

    def add(self, now: Snapshot, phase: int) -> np.ndarray:
        """Record `now`, once a step; return the recorded risk, inf for lost members."""
        if self.has(now.step):
            return self.rows["risk"][-1]
        with np.errstate(all="ignore"):
            row: dict[str, Any] = {}
            row["attention_gap"], row["output_gap"] = self.gaps(now.point)
            risk = now.value if self.risk is None else np.asarray(self.risk(now.point))
            if self.accuracy is not None:
                row["accuracy"] = self.accuracy(now.point)
        row["risk"] = np.where(now.lost, math.inf, risk)
        # all parts are known: from here on nothing can fail, so a record is whole or absent
        for name, part in row.items():
            self.rows.setdefault(name, []).append(np.asarray(part, dtype=float))
        self.weights.append(now.point)
        if not self.keep_weights:
            del self.weights[:-1]
        self.phase_index.append(phase)
        self.steps.append(now.step)
        return row["risk"]

    def trajectory(self, phases: list[PhaseRecord], lost: np.ndarray, **about: Any) -> Trajectory:
        """Everything recorded so far."""
        kept = min(len(part) for part in (self.steps, self.phase_index, *self.rows.values()))
        step = np.array(self.steps[:kept], dtype=np.int64)
        series = {name: np.stack(rows[:kept]) for name, rows in self.rows.items()}
        weights = self.weights[:kept]
        return Trajectory(
            step=step,
            phase_index=np.array(self.phase_index[:kept]),
            stored=Weights(*(np.stack(parts) for parts in zip(*weights, strict=True))),
            weight_step=step[-len(weights) :],
            diverged=np.array(lost),
            phases=tuple(phases),
            **series,
            **about,
        )
