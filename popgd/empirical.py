"""The empirical risk: the average over drawn or given words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from . import _validate as check
from .languages import Task
from .noise import Noise
from .objective import Evaluation, OutputMinimum
from .tier_words import TierRows
from .tiers import Tiers
from .word_blocks import Block, blocks, quiet
from .word_counts import check_task
from .word_cube import cubes
from .word_kernel import attended, correction, total
from .word_threads import SMALLEST, shares, summed
from .wordbatch import WordBatch

__all__ = ["EmpiricalRisk"]

# Weight vectors evaluated at a time. Below the lesser number matrix products are slower than
# one matrix-vector product each; at the greater one they have reached full speed (measured).
FEW, MANY = 6, 64


class EmpiricalRisk:
    """Risk L = sum_n w_n (f_n - y_n)^2 / (2 total) over a batch of words, or over several.

    Parameters
    ----------
    batch : WordBatch or sequence of WordBatch
        The words. A sequence of K batches over one alphabet is a stack: weights then have
        shape (..., K, d) or (d,), results (..., K), entry k averaging over batch k.
    task : Task, optional
        Names the targets; None takes the batch's task. Without one, `residual` is refused and
        `minimize_output` has no targets to report.
    threads : int
        Threads that share the words of a batch in `value`, `value_and_gradient` and `accuracy`.
        They multiply best with BLAS at one thread each (OPENBLAS_NUM_THREADS=1).

    Raises
    ------
    BadParameter
        When `batch` is no WordBatch or sequence of them, or alphabets or tasks disagree.

    Notes
    -----
    alpha may hold -inf: a symbol without attention, or be a `Tiers` object for limits
    alpha -> +-infinity (gradients are then by the offsets). Weights may have leading batch axes,
    shape (..., d). `residual`, where accepted, is beta - 2 on the targets, shape (..., number of
    targets). Memory: a copy of the counts, transposed, as float64 up to 16 MB in all and in the
    batch's own type beyond. Cost: four passes over the counts for value and gradient.
    Source: Paper 2; THEORY 1, 6. Error: rounding only, estimated at 1e-15 to 1e-12 of the sum of
    absolute terms, also where every residual is 1e-100; for dL/dalpha the terms are those of
    r gamma_i (|v_i - v_k| + |v_i - r|), k the most attended symbol (see `popgd.word_kernel`).

    Examples
    --------
    >>> import numpy as np, popgd
    >>> batch = popgd.WordBatch.from_words([[0, 1], [1], [2, 2]], task=popgd.Occurrence(3))
    >>> popgd.EmpiricalRisk(batch).value(np.zeros(3), np.zeros(3))
    0.5
    """

    def __init__(self, batch: Any, task: Task | None = None, *, threads: int = 1):
        self.threads = check.integer("threads", threads, 1, 256)
        self.stacked = not isinstance(batch, WordBatch)
        self.batches: tuple[WordBatch, ...] = _stack(batch)
        self.batch = batch if not self.stacked else self.batches
        self.d = self.batches[0].d
        self.task: Any = _common_task(self.batches) if task is None else task
        check_task(self.task, self.d)
        self._targets = np.array([] if self.task is None else self.task.targets, dtype=np.intp)
        self._cubes = cubes(self.batches)

    def __repr__(self) -> str:
        shown = f"{len(self.batches)} batches" if self.stacked else repr(self.batch)
        return f"EmpiricalRisk({shown}, task={self.task!r})"

    @cached_property
    def _blocks(self) -> list[list[Block]]:
        entries = sum(len(b) * b.d for b in self.batches if not b.is_sparse)
        return [blocks(b, entries) for b in self.batches]

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Empirical risk, float or array over the batch axes."""
        return self._evaluate(alpha, beta, residual, gradient=False)[0]

    @quiet()
    def mse(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Mean squared error, twice the risk."""
        return 2 * self.value(alpha, beta, residual)

    def value_and_gradient(self, alpha: Any, beta: Any, residual: Any = None) -> Evaluation:
        """Risk, dL/dalpha and dL/dbeta; gradients have the batch shape plus (d,)."""
        return self._evaluate(alpha, beta, residual, gradient=True)

    def hessian_output(self, alpha: Any) -> Any:
        """E[gamma gamma^T] over the words as an operator, for one alpha of shape (d,)."""
        from .empirical_hessian import EmpiricalHessian

        alpha = self._attention(alpha)
        if len(alpha.shape) != 1 or self.stacked:
            remedy = f"pass shape ({self.d},) and a single batch, or loop"
            raise check.refuse("alpha", alpha.shape, "the Hessian takes one vector", remedy)
        return EmpiricalHessian(self._blocks[0], alpha, self.batches[0].total)

    @quiet()
    def minimize_output(self, alpha: Any) -> OutputMinimum:
        """Exact least squares over the output weights at fixed attention.

        Notes
        -----
        Where the words leave beta undetermined, the minimiser closest to 2 on the targets and
        0 elsewhere is returned, in units that make every column of gamma equally long; symbols
        that do not occur keep those values. Source: THEORY 1, 6. Error: rounding; the value
        is off by the square of what the solver leaves.
        """
        from .least_squares import minimum

        alpha = self._attention(alpha)
        lead = self._lead(alpha.shape[:-1])
        alpha = _spread(alpha, lead)
        rows = alpha.reshape(-1, self.d)
        beta = np.empty(rows.shape)
        residual = np.empty((len(rows), self._targets.size))
        for i in range(len(rows)):
            k = i % len(self.batches)
            found = minimum(self._blocks[k], rows[i], self.batches[k].total, self._targets)
            beta[i], residual[i] = found
        beta = beta.reshape(*lead, self.d)
        residual = residual.reshape(*lead, self._targets.size)
        known = residual if self._targets.size else None
        value = self._evaluate(alpha, beta, known, gradient=False)[0]
        return OutputMinimum(value, beta, residual)

    @quiet()
    def variance(self, alpha: Any, beta: Any, residual: Any = None) -> Noise:
        """Variance of a word's loss and covariance of its gradient over this batch.

        Notes
        -----
        Second moments about the batch's means, divided by the total weight: times n/(n-1) they
        estimate `PopulationRisk.variance` from n drawn words. One pair of vectors and a single
        batch. Source: THEORY 6, 7. Error: rounding.
        """
        from .empirical_noise import empirical_noise

        alpha, beta, delta, lead = self._check(alpha, beta, residual)
        if lead or self.stacked:
            remedy = f"pass shape ({self.d},) and a single batch, or loop"
            raise check.refuse("alpha, beta", lead, "the variance takes one pair", remedy)
        return empirical_noise(self._blocks[0], alpha, beta, delta, self.batches[0].total)

    @quiet()
    def accuracy(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Fraction of the words, by weight, with sign f = y; f = 0 counts as -1.

        Notes
        -----
        f has the sign of sum_i a_i C_i (beta_i - 1), computed as such, so ties at equal alpha and
        integer beta are decided exactly. `residual` is accepted and not needed.
        Source: THEORY 4 (sign rule). Error: words whose f is within rounding of 0 may fall
        on either side.
        """
        alpha, beta, _, lead = self._check(alpha, beta, residual)
        return self._over_batches(_correct, lead, alpha, beta - 1.0)[0]

    @quiet()
    def _evaluate(self, alpha: Any, beta: Any, residual: Any, gradient: bool) -> Evaluation:
        bare = residual is None and not self.stacked
        if bare and check.plain(alpha, self.d) and check.plain(beta, self.d):
            return self.unchecked(alpha, beta, None, gradient)
        alpha, beta, delta, lead = self._check(alpha, beta, residual)
        if self._cubes and not isinstance(alpha, TierRows):
            return self._by_cubes(lead, alpha, beta, delta)
        sums = partial(total, gradient=gradient)
        return Evaluation(*self._over_batches(sums, lead, alpha, beta, delta))

    def unchecked(self, alpha: Any, beta: Any, residual: Any, gradient: bool = True) -> Evaluation:
        """Value and gradient at finite float64 vectors of shape (d,), as training asks for them.

        For callers that have checked the weights and ignore floating-point errors.
        """
        if self.stacked:
            return self._evaluate(alpha, beta, residual, gradient)
        weights = alpha, *correction(beta, residual, self._targets)
        return Evaluation(*self._over_batches(partial(total, gradient=gradient), (), *weights))

    def _by_cubes(self, lead: tuple[int, ...], *weights: Any) -> Evaluation:
        """Value and gradient of a stack of small equal batches."""
        many = len(self.batches)
        rows: list[Any] = [None if w is None else w.reshape(-1, many, self.d) for w in weights]
        mass = np.array([b.total for b in self.batches])
        shape = (math.prod(lead) // many, many, self.d)
        value = np.empty(shape[:2])
        by_alpha, by_beta = np.empty(shape), np.empty(shape)
        for i in range(len(value)):
            for where, cube in self._cubes:
                here: list[Any] = [None if w is None else w[i, where] for w in rows]
                sums = cube.total(*here)
                value[i, where] = sums.value / mass[where]
                by_alpha[i, where] = sums.alpha / mass[where, None]
                by_beta[i, where] = sums.beta / mass[where, None]
        vector = (*lead, self.d)
        return Evaluation(value.reshape(lead), by_alpha.reshape(vector), by_beta.reshape(vector))

    def _over_batches(self, sums: Any, lead: tuple[int, ...], *weights: Any) -> list[Any]:
        """sums(blocks, *rows) / total for every batch and chunk of rows, put in shape."""
        many = len(self.batches)
        if lead == ():
            value, *slopes = self._summed(sums, 0, weights)
            mass = self.batches[0].total
            return [float(value / mass), *(x / mass for x in slopes)]
        rows: list[Any] = [None if w is None else w.reshape(-1, many, self.d) for w in weights]
        parts: list[list[np.ndarray]] = []
        step = 1 if len(rows[0]) < FEW else MANY
        for lo in range(0, len(rows[0]), step):
            here = lo if step == 1 else slice(lo, lo + step)
            for k in range(many):
                found = self._summed(sums, k, [None if w is None else w[here, k] for w in rows])
                mass = self.batches[k].total
                parts.append([(x[None] if step == 1 else x) / mass for x in found])
        return [self._shaped([part[i] for part in parts], lead) for i in range(len(parts[0]))]

    def _summed(self, sums: Any, k: int, chunk: Sequence[Any]) -> Any:
        if self._shares[k] is None:
            return sums(self._blocks[k], *chunk)
        return summed(sums, self._shares[k], *chunk)

    @cached_property
    def _shares(self) -> list[Any]:
        """The blocks of each batch by thread; None where one thread is enough."""
        small = [self.threads == 1 or len(b) * b.d < SMALLEST for b in self.batches]
        split = [
            [words] if one else shares(words, self.threads)
            for one, words in zip(small, self._blocks, strict=True)
        ]
        return [parts if len(parts) > 1 else None for parts in split]

    def _shaped(self, parts: list[np.ndarray], lead: tuple[int, ...]) -> Any:
        many, last = len(self.batches), parts[0].shape[1:]
        if len(parts) == 1:
            merged = parts[0]
        else:
            chunks = [np.stack(parts[i : i + many], 1) for i in range(0, len(parts), many)]
            merged = np.concatenate(chunks)
        return merged.reshape(*lead, *last)

    def _attention(self, alpha: Any) -> Any:
        if isinstance(alpha, TierRows):
            return alpha
        if isinstance(alpha, Tiers):
            if alpha.shape[-1] != self.d:
                rule, remedy = "the last axis must be d", f"use d = {self.d}"
                raise check.refuse("alpha", alpha.shape, rule, remedy)
            return TierRows.of(alpha)
        if check.plain(alpha, self.d):
            return alpha
        array = np.asarray(alpha)
        if array.dtype.kind != "f" or not array.size or array.min() != -np.inf:
            return check.weights("alpha", alpha, self.d)
        masked = np.isneginf(array)
        return np.where(
            masked, -np.inf, check.weights("alpha", np.where(masked, 0.0, array), self.d)
        )

    def _lead(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The batch axes of the result, which end with the stack."""
        if not self.stacked and not any(shapes):
            return ()
        own = [(len(self.batches),)] if self.stacked else []
        try:
            lead = np.broadcast_shapes(*shapes, *own)
        except ValueError:
            rule, remedy = "batch axes do not broadcast", "use broadcastable leading shapes"
            if self.stacked:
                remedy += f"; the last of them is the stack of {len(self.batches)} batches"
            raise check.refuse("alpha, beta", shapes, rule, remedy) from None
        if 0 in lead:
            rule = "a batch axis is empty"
            raise check.refuse("alpha, beta", lead, rule, "pass one vector or more")
        return lead

    def _check(self, alpha: Any, beta: Any, residual: Any) -> tuple[Any, Any, Any, tuple[int, ...]]:
        """alpha, and beta in two parts by `correction`, with batch axes `lead`."""
        alpha = self._attention(alpha)
        beta = check.weights("beta", beta, self.d)
        shapes = [alpha.shape[:-1], beta.shape[:-1]]
        if residual is not None:
            if self.task is None:
                rule = "belongs to targets, and the batch has no task"
                raise check.refuse("residual", residual, rule, "pass EmpiricalRisk(batch, task)")
            residual = check.weights("residual", residual, self._targets.size)
            shapes.append(residual.shape[:-1])
        lead = self._lead(*shapes)
        alpha, beta, residual = (_spread(x, lead) for x in (alpha, beta, residual))
        return alpha, *correction(beta, residual, self._targets), lead


def _spread(x: Any, lead: tuple[int, ...]) -> Any:
    if x is None or x.shape[:-1] == lead:
        return x
    shape = (*lead, x.shape[-1])
    return x.broadcast(shape) if isinstance(x, TierRows) else np.broadcast_to(x, shape)


def _correct(words: list[Block], alpha: Any, margin: np.ndarray) -> list[np.ndarray]:
    right = np.zeros(margin.shape[:-1])
    for seen in attended(words, alpha):
        above = seen.forward([a * margin[seen.row] for a in seen.a]) > 0
        positive = np.arange(seen.block.size) < seen.block.positives
        good = above == positive
        if seen.skip is not None:
            good &= ~seen.skip
        weights = seen.block.weights
        right[seen.row] += good.sum(axis=-1) if weights is None else good @ weights
    return [right]


def _stack(batch: Any) -> tuple[WordBatch, ...]:
    if isinstance(batch, WordBatch):
        return (batch,)
    good = isinstance(batch, Sequence) and len(batch) > 0
    if not good or not all(isinstance(b, WordBatch) for b in batch):
        remedy = "pass popgd.sample_words(task, n) or a list of such batches"
        raise check.refuse("batch", batch, "must be a WordBatch or a sequence of them", remedy)
    if len({b.d for b in batch}) > 1:
        rule = "the batches have different alphabets"
        raise check.refuse("batch", [b.d for b in batch], rule, "use one alphabet size d")
    return tuple(batch)


def _common_task(batches: tuple[WordBatch, ...]) -> Task | None:
    first = batches[0].task
    if any(b.task != first for b in batches):
        rule = "belong to different tasks"
        raise check.refuse("batch", [b.task for b in batches], rule, "pass task= to choose one")
    return first
