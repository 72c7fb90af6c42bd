"""Side-by-side timing: interleaved medians of thread CPU time, so that a ratio means something."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np


def interleaved(
    calls: dict[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, float]:
    """Median seconds of each call, measured in turns within one run.

    The default clock counts this thread's CPU time, which waiting for a busy core does not
    enlarge; pass time.perf_counter for calls that use several threads.
    """
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            spent[name].append(clock() - start)
    return {name: float(np.median(times)) for name, times in spent.items()}


def exp_block(nodes: int, columns: int = 256) -> Callable[[], object]:
    """np.exp into a resident block of nodes x columns numbers: the unit of cost."""
    y = np.random.default_rng(0).random((nodes, columns))
    out = np.empty_like(y)
    return lambda: np.exp(y, out=out)


def load() -> str:
    """Load averages, to judge a run by."""
    return " ".join(f"{x:.2f}" for x in os.getloadavg())


def table(title: str, rows: list[tuple[str, float, str]]) -> str:
    """A Markdown table of (what, ratio, goal)."""
    lines = [f"### {title}", "", "| what | ratio | goal |", "| --- | ---: | ---: |"]
    lines += [f"| {what} | {ratio:.3g} | {goal} |" for what, ratio, goal in rows]
    return "\n".join(lines)
