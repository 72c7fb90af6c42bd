"""Jobs over worker processes, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

__all__ = ["mapped"]


def mapped(
    work: Callable[[Any], Any], jobs: Sequence[Any], workers: int, executor: Executor | None
) -> Iterator[Any]:
    """work(job) for every job: on `executor`, in own processes, or here for one worker."""
    if executor is not None:
        yield from executor.map(work, jobs)
    elif workers == 1 or len(jobs) == 1:
        yield from map(work, jobs)
    else:
        count = min(workers, len(jobs))
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, jobs)
