"""Objectives for stochastic gradient descent: mini-batches of given words, or fresh words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from . import _validate as check
from .empirical import EmpiricalRisk
from .errors import NotAvailable
from .languages import Task
from .objective import Evaluation, OutputMinimum
from .sampling import sample_words
from .word_counts import check_task
from .wordbatch import WordBatch

__all__ = ["MiniBatches", "Online", "seed_streams"]

# Words drawn ahead by each run of online training, so that drawing costs little a step.
AHEAD = 2**12


def seed_streams(rng: Any, seeds: Any) -> list[np.random.Generator]:
    """Independent generators, one a run, that do not depend on each other's number.

    Parameters
    ----------
    rng : None, int, SeedSequence or Generator
        The root. A Generator is advanced by one draw.
    seeds : int or sequence of int
        How many runs, or their numbers: run k gets the same stream in ``range(50)``, in
        ``range(25, 50)`` and on its own, so work may be split over processes at will.

    Returns
    -------
    list of numpy.random.Generator

    Notes
    -----
    Stream k is the k-th child that ``SeedSequence.spawn`` gives the root.
    """
    root = _root(rng)
    key = root.spawn_key
    return [
        np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*key, k)))
        for k in _runs(seeds)
    ]


class _Drawn:
    """Common part: streams of runs, and the objective of the next step."""

    task: Any
    d: int

    def __init__(self, size: Any, seeds: Any, rng: Any):
        self.size = check.integer("size", size, 1)
        self.seeds = None if seeds is None else _runs(seeds)
        if rng is not None:
            check.generator("rng", rng)
        # a generator is asked once, so that every run from this object sees the same words
        self.rng = rng if rng is None else _root(rng)
        self._start(self.rng)

    def _start(self, rng: Any) -> None:
        streams = seed_streams(rng, [0] if self.seeds is None else self.seeds)
        self._steps = self._stream(streams)

    def _stream(self, streams: list[np.random.Generator]) -> Iterator[EmpiricalRisk]:
        raise NotImplementedError

    def _joined(self, words: list[WordBatch]) -> EmpiricalRisk:
        return EmpiricalRisk(words[0] if self.seeds is None else words, self.task)

    def step_objective(self, rng: Any = None) -> Any:
        """The same objective at its first step, as `popgd.train` asks for it.

        The words follow from the `rng` given when this object was made; when none was, from
        the argument.
        """
        fresh = copy(self)
        if self.rng is None:
            fresh._start(rng)
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_steps"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # a generator in progress does not travel: a copy starts at the first step
        vars(self).update(state)
        self._start(self.rng)

    def draw(self) -> EmpiricalRisk:
        """The empirical risk of the next step's words."""
        return next(self._steps)

    def value_and_gradient(self, alpha: Any, beta: Any, residual: Any = None) -> Evaluation:
        """Risk and gradients on the next step's words; each call moves on."""
        return self.draw().value_and_gradient(alpha, beta, residual)


class MiniBatches(_Drawn):
    """Mini-batches of a fixed batch: each gradient is taken on the next `size` words.

    Parameters
    ----------
    batch : WordBatch or sequence of WordBatch
        The words; a sequence holds one batch for each of several runs.
    size : int
        Words a step; at most the batch size unless `replace`.
    replace : bool
        False goes through a fresh shuffle of the batch every epoch; the N mod `size` words
        left at the end of an epoch sit it out. True draws every word anew.
    seeds : int or sequence of int, optional
        Several runs at once, with weights of shape (..., K, d): their number or their
        numbers, see `seed_streams`. None is one run, unless `batch` is a sequence.
    rng : None, int, SeedSequence or Generator
        Root of the runs' streams; None leaves it to `train`.
    task : Task, optional
        As for EmpiricalRisk.

    Raises
    ------
    BadParameter
        When a size is larger than its batch, or `seeds` and batches differ in number.

    Notes
    -----
    `value`, `accuracy`, `minimize_output` and `hessian_output` are those of all words, which
    the attribute `full` averages over: ``train(sgd, plan, monitor=sgd.full)`` records the risk
    over all words instead of that of each step's. The mean of the gradients over an epoch is
    the full gradient when `size` divides N. The words that run k sees depend on the root and on
    k only. Source: THEORY 6, 7. Error: sampled.

    Examples
    --------
    >>> import popgd
    >>> batch = popgd.sample_words(popgd.Occurrence(10), 1000, rng=0)
    >>> sgd = popgd.MiniBatches(batch, 50, rng=1)
    >>> popgd.train(sgd, "joint(40x)", learning_rate=1.0).stop_reason
    'completed'
    """

    def __init__(
        self, batch: Any, size: int, *, replace: bool = False, seeds: Any = None, rng: Any = None,
        task: Task | None = None,
    ):  # fmt: skip
        self.full = EmpiricalRisk(batch, task)
        self.task, self.d = self.full.task, self.full.d
        self.replace = bool(replace)
        least = min(len(b) for b in self.full.batches)
        if not self.replace:
            remedy = "pass fewer words a step, or replace=True"
            size = check.integer("size", size, 1, least, remedy=remedy)
        if self.full.stacked:
            many = len(self.full.batches)
            seeds = _runs(many if seeds is None else seeds)
            if len(seeds) != many:
                rule = f"names {len(seeds)} runs for {many} batches"
                raise check.refuse("seeds", seeds, rule, "pass one number a batch, or None")
        super().__init__(size, seeds, rng)

    def __repr__(self) -> str:
        return f"MiniBatches({self.full.batch!r}, size={self.size}, replace={self.replace})"

    def _stream(self, streams: list[np.random.Generator]) -> Iterator[EmpiricalRisk]:
        many = len(streams)
        batches = self.full.batches if self.full.stacked else self.full.batches * many
        rows = [self._rows(len(b), g) for b, g in zip(batches, streams, strict=True)]
        while True:
            yield self._joined([_part(b, next(r)) for b, r in zip(batches, rows, strict=True)])

    def _rows(self, n: int, stream: np.random.Generator) -> Iterator[np.ndarray]:
        while True:
            if self.replace:
                yield stream.integers(0, n, self.size)
                continue
            order = stream.permutation(n)
            for lo in range(0, n - self.size + 1, self.size):
                yield order[lo : lo + self.size]

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Risk over all words."""
        return self.full.value(alpha, beta, residual)

    def accuracy(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Accuracy over all words."""
        return self.full.accuracy(alpha, beta, residual)

    def minimize_output(self, alpha: Any) -> OutputMinimum:
        """The minimum over the output weights, over all words."""
        return self.full.minimize_output(alpha)

    def hessian_output(self, alpha: Any) -> Any:
        """The output Hessian over all words."""
        return self.full.hessian_output(alpha)


class Online(_Drawn):
    """Fresh words at every step, never seen again.

    Parameters
    ----------
    task : Task
        What to draw from.
    size : int
        Words a step.
    seeds, rng
        As for MiniBatches.

    Notes
    -----
    `value` too is taken on fresh words. Exact counterparts are those of PopulationRisk: pass
    ``monitor=popgd.PopulationRisk(task)`` to `train`. Memory: about 4096 words ahead for every
    run. Source: THEORY 6, 7. Error: sampled.

    Examples
    --------
    >>> import popgd
    >>> online = popgd.Online(popgd.Occurrence(10), 64, seeds=3, rng=0)
    >>> popgd.train(online, "O(5x)", beta=[[0.0] * 10] * 3, learning_rate=1.0).step[-1]
    np.int64(5)
    """

    def __init__(self, task: Task, size: int, *, seeds: Any = None, rng: Any = None):
        check_task(task, None)
        self.task, self.d = task, task.d
        super().__init__(size, seeds, rng)

    def __repr__(self) -> str:
        return f"Online({self.task!r}, size={self.size})"

    def _stream(self, streams: list[np.random.Generator]) -> Iterator[EmpiricalRisk]:
        ahead = max(1, AHEAD // self.size) * self.size
        while True:
            drawn = [sample_words(self.task, ahead, stream) for stream in streams]
            for lo in range(0, ahead, self.size):
                rows = np.arange(lo, lo + self.size)
                yield self._joined([_part(batch, rows) for batch in drawn])

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Risk on the next step's words; each call moves on."""
        return self.draw().value(alpha, beta, residual)

    def accuracy(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Accuracy on the next step's words; each call moves on."""
        return self.draw().accuracy(alpha, beta, residual)

    def minimize_output(self, alpha: Any) -> OutputMinimum:
        """Not available: there are no words to fit."""
        raise self._no("minimize_output")

    def hessian_output(self, alpha: Any) -> Any:
        """Not available: there are no words to average over."""
        raise self._no("hessian_output")

    def _no(self, name: str) -> NotAvailable:
        return NotAvailable(
            f"Online.{name}: fresh words have no minimum of their own; use "
            "popgd.PopulationRisk(task), or EmpiricalRisk of a drawn batch."
        )


def _part(batch: WordBatch, rows: np.ndarray) -> WordBatch:
    """Some words of a batch, weighted so that averages over random rows are unbiased."""
    weights = None if batch.weights is None else batch.weights[rows]
    total = batch.total * rows.size / len(batch)
    return WordBatch._trusted(batch.counts[rows], batch.labels[rows], weights, batch.task, total)


def _runs(seeds: Any) -> list[int]:
    if isinstance(seeds, Iterable) and not isinstance(seeds, (str, bytes)):
        numbers = [check.integer(f"seeds[{i}]", k, 0) for i, k in enumerate(seeds)]
        if not numbers:
            raise check.refuse("seeds", seeds, "must name at least one run", "pass range(50)")
        return numbers
    return list(range(check.integer("seeds", seeds, 1)))


def _root(rng: Any) -> np.random.SeedSequence:
    if isinstance(rng, np.random.SeedSequence):
        return rng
    generator = check.generator("rng", rng)
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(generator.integers(0, 2**32, 4).tolist())
    return np.random.SeedSequence(None if rng is None else int(rng))
