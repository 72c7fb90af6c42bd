"""What `popgd train` runs and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _validate as check
from .cli_inputs import FileWeights, number, state, zero
from .cli_output import table
from .languages import Task
from .reduction import balanced
from .starts import random_start
from .symmetric_state import State
from .training import train
from .trajectory import Trajectory

__all__ = ["as_data", "random", "run", "show", "spacing", "start"]


def start(task: Task, given: FileWeights | None, scalars: Sequence[str]) -> tuple[Any, ...]:
    """Where training starts: a file, scalars, or zero."""
    if given is not None:
        return given.floats()
    if zero(scalars):
        return ()
    symmetric = state(*scalars)
    if balanced(task):
        return (symmetric,)
    from .cli_risk import dense

    return dense(task, symmetric)


def random(task: Task, scale: float, seed: int, other: tuple[Any, ...]) -> tuple[Any, ...]:
    """A random start."""
    if other:
        raise check.refuse("random", scale, "is one start, weights are another", "pass one of them")
    return random_start(task.d, scale, rng=seed)


def spacing(text: str) -> Any:
    """`record_every` from its option."""
    if text == "none":
        return None
    return text if text == "log" else number("record-every", text)


def run(
    task: Task,
    plan: str,
    begin: tuple[Any, ...],
    rates: dict[str, float],
    samples: int | None,
    seed: int,
    **rules: Any,
) -> Trajectory:
    """Train on the exact risk, or on drawn words."""
    objective: Any = task
    if samples is not None:
        from .empirical import EmpiricalRisk
        from .sampling import sample_words

        # another stream than the start's, which takes the seed itself
        words = np.random.default_rng([seed, 1])
        objective = EmpiricalRisk(sample_words(task, samples, words))
        if begin and isinstance(begin[0], State):
            begin = begin[0].weights(task.d, task.targets[0])
    return train(objective, plan, *begin, learning_rate=rates, **rules)


def show(task: Task, run: Trajectory, samples: int | None) -> None:
    """Start and ends of phases, one a row."""
    columns = ["phase", "step", "ended", "risk", "attention gap", "output gap"]
    if run.accuracy is not None:
        columns.append("accuracy")
    rows = [["start", 0, "", *_numbers(run, 0)]]
    for phase in run.phases:
        at = int(np.searchsorted(run.step, phase.stop))
        rows.append([phase.phase, phase.stop, phase.reason, *_numbers(run, at)])
    source = "exact population risk" if samples is None else f"risk on {samples} drawn words"
    note = f"{source}, {run.path} path"
    if samples is not None and not run.diverged.any():
        from .population import PopulationRisk

        note += f"; exact population risk at the end {PopulationRisk(task).value(*run.final):.6g}"
    if run.stop_reason == "diverged":
        note += "; diverged: lower the learning rate"
    table(f"{type(task).__name__}, d = {task.d}: {run.plan}", columns, rows, note)


def _numbers(run: Trajectory, i: int) -> list[str]:
    series = [run.risk, run.attention_gap, run.output_gap, run.accuracy]
    return [f"{part[i]:.6g}" for part in series if part is not None]


def as_data(run: Trajectory, samples: int | None, seed: int) -> dict[str, Any]:
    """Everything recorded but the weights."""
    names = ("plan", "task", "path", "stop_reason", "step", "phase_index")
    series = ("risk", "attention_gap", "output_gap", "accuracy")
    data = {name: getattr(run, name) for name in names + series}
    data["phases"] = [vars(phase) for phase in run.phases]
    return data | {"samples": samples, "seed": None if samples is None else seed}
