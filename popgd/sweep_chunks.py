"""The chunks of a sweep over an executor: in the order they finish, lost ones tried again."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, as_completed
from typing import Any

from .errors import PopgdError
from .sweep_cells import Record, message, run_cells

__all__ = ["LOST", "computed"]

LOST = "WorkerLost"
ROUNDS = 3  # a chunk lost with its worker is tried again
PATIENCE = 10.0  # seconds before the first look at a Dask cluster's workers
LONGEST = 300.0  # seconds between two looks, at most
GRACE = 300.0  # seconds after which a cluster that had workers and has none is given up

Outcome = list[Record] | BaseException


def computed(
    executor: Executor | None,
    function: Any,
    todo: dict[int, list],
    seed: int | None,
    *,
    resumed: bool = False,
) -> Iterator[tuple[int, list[Record], bool]]:
    """Chunk number, records, and whether they are final, in the order they finish.

    `resumed`: other chunks were computed before.

    Raises
    ------
    PopgdError
        When no chunk could be computed, now or before.
    """
    if executor is None:
        for i, piece in todo.items():
            yield i, run_cells(function, piece, seed), True
        return
    gathered = _from_dask if _is_dask(executor) else _from_futures
    total, lost = len(todo), dict[int, BaseException]()
    for _ in range(ROUNDS):
        lost = {}
        for i, outcome in gathered(executor, function, todo, seed):
            if isinstance(outcome, BaseException):
                lost[i] = outcome
            else:
                yield i, outcome, True
        if not lost:
            return
        if len(lost) == 1 and _killed(*lost.values()):
            break
        if any(isinstance(error, NoWorkers) for error in lost.values()):
            break
        todo = {i: todo[i] for i in lost}
    if len(lost) == total and not resumed:
        first = next(iter(lost.values()))
        raise PopgdError(
            f"executor: no chunk could be computed, the first failed with {_first_line(first)}; "
            "a function for processes or a cluster must be importable there and picklable, and "
            "the workers alive."
        ) from first
    for i, error in lost.items():
        yield i, [({}, f"{LOST}: {_first_line(error)}")] * len(todo[i]), False


class NoWorkers(Exception):
    """A cluster lost its workers, and none came back."""


def _killed(error: BaseException) -> bool:
    """Whether Dask blames the chunk for the death of several workers, each of which takes
    seconds to come back; only when it blames one alone is the blame sure."""
    return type(error).__name__ == "KilledWorker"


def _from_futures(
    executor: Executor, function: Any, todo: dict[int, list], seed: int | None
) -> Iterator[tuple[int, Outcome]]:
    """Chunk number, and its records or what went wrong, in the order they finish."""
    futures: dict[Future, int] = {}
    try:
        for i, piece in todo.items():
            futures[_submit(executor, function, piece, seed)] = i
        for future in as_completed(futures):
            error = _failure(future)
            yield futures[future], future.result() if error is None else error
    finally:
        for future in futures:
            future.cancel()


def _failure(future: Future) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:  # an executor that is shut down cancels
        return error


def _submit(executor: Executor, function: Any, piece: list, seed: int | None) -> Future:
    try:
        return executor.submit(run_cells, function, piece, seed)
    except Exception as error:  # a broken pool refuses; the chunk is lost like the others
        future: Future = Future()
        future.set_exception(error)
        return future


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.startswith("distributed") and hasattr(executor, "_client")


def _from_dask(
    executor: Any, function: Any, todo: dict[int, list], seed: int | None
) -> Iterator[tuple[int, Outcome]]:
    """The same through the client's own futures.

    A `distributed` executor copies each into a `concurrent.futures.Future`, and when a worker
    dies between finishing and handing over, the copy gets a wrong error or never ends. The
    client's own futures ask for the lost result again.
    """
    futures: dict[Any, int] = {}
    refused: dict[int, Exception] = {}
    try:
        for i, piece in todo.items():
            try:
                # not pure: a chunk tried again is a new task, not the old one's error
                options = {"pure": False} | executor._kwargs
                futures[executor._client.submit(run_cells, function, piece, seed, **options)] = i
            except Exception as error:  # no pickle, or no cluster any more
                refused[i] = error
        yield from refused.items()
        for future, outcome in _arriving(executor._client, futures):
            yield futures[future], outcome
    finally:
        for future in futures:
            future.release()


def _arriving(client: Any, futures: Iterable[Any]) -> Iterator[tuple[Any, Outcome]]:
    """Dask futures and what became of them, in the order they finish.

    Says so when nobody is there to finish them. `NoWorkers` became of those that are left when
    there were workers and none came back.
    """
    from distributed import as_completed

    left, patience = dict.fromkeys(futures), PATIENCE
    had, since = bool(_workers(client)), math.inf
    while left:
        try:
            for future in as_completed(list(left), timeout=patience):
                del left[future]
                had, since = True, math.inf
                yield future, _result(future)
        except TimeoutError:
            if _workers(client):
                had, since = True, math.inf
                # seldom, as every look at thousands of futures costs
                patience = min(2 * patience, LONGEST)
            elif since == math.inf:
                since, patience = time.monotonic(), PATIENCE
                warnings.warn(
                    f"the cluster has no workers: waiting for one, {len(left)} chunks to go "
                    "(Ctrl-C keeps what is done in a store)",
                    RuntimeWarning,
                    stacklevel=2,
                )
            elif had and time.monotonic() - since > GRACE:
                gone = NoWorkers(f"none came back to the cluster in {GRACE:g} s")
                yield from ((future, gone) for future in left)
                return
            elif not had:
                patience = min(2 * patience, LONGEST)


def _workers(client: Any) -> Any:
    """What is known of each; nothing without a scheduler, which the futures will say."""
    try:
        return client.scheduler_info().get("workers", {})
    except (OSError, TimeoutError, CancelledError):
        return {}


def _result(future: Any) -> Outcome:
    try:
        return future.result()
    except (Exception, CancelledError) as error:
        return error


def _first_line(error: BaseException) -> str:
    lines = message(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
