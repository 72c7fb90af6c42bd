"""Finding the claims and judging them, in shares by dimension over two processes."""

from __future__ import annotations

import importlib
import pkgutil
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from multiprocessing import get_context, resource_tracker
from types import ModuleType
from typing import Any

from popgd._blas import one_thread
from popgd.ball import Enclosure, enclose, precision
from popgd.errors import PrecisionExhausted

from . import claims as package
from .claim import Claim, ProofFailed, Sharp
from .judge import CAP, START, judge, within
from .outcome import Outcome, Share, merge
from .point import Point

__all__ = ["SHARES", "by_id", "find", "modules", "run", "run_here"]

SHARES = 2  # fixed: results must not depend on the number of processes
SHARP_DIGITS = 12
SHARP_WIDTH = 1e-9  # relative width of a reported constant at one point

Progress = Callable[[str, int, int], None]
"""Called with (claim id, tasks done, tasks in all)."""


@cache
def modules() -> tuple[ModuleType, ...]:
    """The claim files, in alphabetical order."""
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}") for name in names)


@cache
def by_id() -> dict[str, Claim]:
    """Every claim by its id, in the order of the files.

    Raises
    ------
    ValueError
        When two claims share an id.
    """
    claims: dict[str, Claim] = {}
    for module in modules():
        for claim in module.CLAIMS:
            if claim.id in claims:
                raise ValueError(f"two claims are called {claim.id}")
            claims[claim.id] = claim
    return claims


def find(only: Iterable[str] = ()) -> list[Claim]:
    """All claims, or those whose id is given or starts with a given statement's name.

    Raises
    ------
    KeyError
        When an id matches nothing.
    """
    claims = list(by_id().values())
    only = list(only)
    for name in only:
        if not any(_matches(claim, name) for claim in claims):
            raise KeyError(name)
    return [c for c in claims if not only or any(_matches(c, name) for name in only)]


def _matches(claim: Claim, name: str) -> bool:
    return claim.id == name or claim.statement == name or claim.id.startswith(name + ".")


def run(
    claims: Sequence[Claim], level: str, cap: int = CAP, progress: Progress | None = None,
    budget: float | None = None,
) -> Iterator[Outcome]:  # fmt: skip
    """Judge registered claims in worker processes, yielding outcomes as they are complete.

    Parameters
    ----------
    claims : sequence of Claim
        As returned by `find`: workers look them up by id.
    level : str
        "quick", "default" or "full".
    cap : int
        Largest precision, in bits.
    progress : callable, optional
    budget : float, optional
        Seconds after which no more outcomes are waited for; claims that are not complete by
        then are not reported.

    Notes
    -----
    Each dimension always goes to the same worker, so that what was computed for one claim is
    at hand for the next. Workers return decimal strings, never balls.
    """
    end = None if budget is None else time.monotonic() + budget
    workers = [
        ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_quiet)
        for _ in range(SHARES)
    ]
    tasks: dict[Future[Share], tuple[Claim, int]] = {}
    try:
        with _interrupts_held():
            for claim in claims:
                for k, worker in enumerate(workers):
                    tasks[worker.submit(_work, claim.id, level, k, cap)] = claim, k
        yield from _gather(tasks, progress, end)
    finally:
        for worker in workers:
            for process in list((worker._processes or {}).values()):
                process.terminate()
            worker.shutdown(wait=False, cancel_futures=True)


def _gather(
    tasks: dict[Future[Share], tuple[Claim, int]], progress: Progress | None, end: float | None
) -> Iterator[Outcome]:
    waiting, total = set(tasks), len(tasks)
    shares: dict[str, dict[int, Share]] = {}
    while waiting:
        left = None if end is None else max(end - time.monotonic(), 0.0)
        done, waiting = wait(waiting, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            return  # the budget is spent
        for future in done:
            claim, k = tasks[future]
            found = shares.setdefault(claim.id, {})
            found[k] = _result(future)
            if progress:
                progress(claim.id, total - len(waiting), total)
            if len(found) == SHARES:
                # by share, not by who was first: reports must not depend on timing
                yield merge(claim, [found[k] for k in range(SHARES)])


def _result(future: Future[Share]) -> Share:
    try:
        return future.result()
    except Exception:  # the worker died: its claims are errors, the others go on
        return Share(traceback=traceback.format_exc())


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while workers start: they inherit that, and die of it until they import."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # started later, it would let them through again
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _quiet() -> None:
    """Workers leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(id: str, level: str, share: int, cap: int) -> Share:
    return judge_share(by_id()[id], level, share, SHARES, cap)


def run_here(claim: Claim, level: str = "default", cap: int = CAP) -> Outcome:
    """Judge one claim, registered or not, in this process."""
    return merge(claim, [judge_share(claim, level, 0, 1, cap)])


def judge_share(claim: Claim, level: str, share: int, shares: int, cap: int) -> Share:
    """Judge one share of a claim's points; what it raises becomes a traceback."""
    result, start = Share(), time.process_time()
    # searches walk on doubles, and the number of BLAS threads changes their last digits
    with one_thread() if claim.search is not None else nullcontext():
        _judge_share(claim, level, share, shares, cap, result)
    result.seconds = time.process_time() - start
    return result


def _judge_share(
    claim: Claim, level: str, share: int, shares: int, cap: int, result: Share
) -> None:
    try:
        # the first share has the smallest dimensions, the last the proofs
        if share == shares - 1 and claim.proof is not None:
            _prove(claim, result)
        for index, point in _mine(claim.points(level), share, shares):
            result.judged.append(replace(judge(claim, point, cap), index=index))
        if claim.sharp is not None:
            _find_constants(claim, claim.sharp, level, share, shares, result)
    except Exception:
        result.traceback = traceback.format_exc()


def _prove(claim: Claim, result: Share) -> None:
    assert claim.proof is not None
    try:
        result.proof = claim.proof()
    except ProofFailed as reason:
        result.undecided_proof = str(reason) or "the proof did not go through"


def _mine(points: Sequence[Point], share: int, shares: int) -> Iterator[tuple[int, Point]]:
    """The points of this share: dimensions in turn, points without one in turn."""
    dimensions = {d: i for i, d in enumerate(sorted({p["d"] for p in points if "d" in p}))}
    for i, point in enumerate(points):
        key = dimensions[point["d"]] if "d" in point else i
        if key % shares == share:
            yield i, point


def _find_constants(
    claim: Claim, sharp: Sharp, level: str, share: int, shares: int, result: Share
) -> None:
    points = list(sharp.points(level)) if sharp.points else claim.points(level)
    for _, point in _mine(points, share, shares):
        if within(claim.hypotheses, point) is True:
            value = constant(sharp, point)
            result.sharp.append((point, value))
            if sharp.table is not None:
                result.rows.append(sharp.table.row(point, value, level))


def constant(sharp: Sharp, point: Point, cap: int = CAP) -> Enclosure:
    """The best constant at one point, as an enclosure.

    Raises
    ------
    PrecisionExhausted
        When the precision cap does not make it narrow.
    """
    bits = START  # where most points were judged: what was kept for them is at hand
    while True:
        with precision(bits):
            value, found = None, None
            try:
                value = sharp.at(point)
                found = _bounds(value)
            except ArithmeticError:  # something in it was undecided
                if bits >= cap:
                    raise
        if found is not None and _narrow(found, value):
            return found
        if bits >= cap:
            raise PrecisionExhausted(f"{sharp.name} is not narrow at {point}; raise --precision")
        bits = min(2 * bits, cap)


def _narrow(found: Enclosure, value: Any) -> bool:
    """A pair of proved bounds is as narrow as its proofs; a ball must be narrow."""
    return isinstance(value, tuple) or found.sign() == 0 or found.relative_width <= SHARP_WIDTH


def _bounds(value: Any) -> Enclosure:
    low, high = value if isinstance(value, tuple) else (value, value)
    return Enclosure(enclose(low, SHARP_DIGITS).lower, enclose(high, SHARP_DIGITS).upper)
