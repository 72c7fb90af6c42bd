"""The loss and its gradients summed over symbol counts, with rounding and tail errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .count_law import UNIT
from .count_sums import Block, CountSum, bounded, unit_bounds
from .errors import PrecisionExhausted
from .languages import Task
from .symbol_groups import Pattern
from .tiers import Tiers

__all__ = ["CountRisk", "LossSums", "SeriesValue", "Tally", "evaluate", "prepare"]

# squares of larger weights could overflow
LARGEST_WEIGHT = 1e150
# below this a double cannot hold the relative accuracy asked for
SMALLEST = 1e-300
# share of the wanted error given to the words left out
TAIL_SHARE = 1 / 16
ROUNDS = 4
# probability left out by the first pass, which only finds the size of the risk
COARSE = 1e-3


class SeriesValue(NamedTuple):
    """A risk and a proven bound on its error.

    Attributes
    ----------
    value : float
        The risk, dimensionless.
    bound : float
        |value - truth| <= bound.
    """

    value: float
    bound: float


@dataclass
class Tally:
    """Sums of signed terms, of absolute terms and of rounding errors, a list entry a block."""

    value: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)

    def add(self, value: float, error: float) -> None:
        self.value.append(value)
        self.error.append(error)

    def result(self, tail: float, floor: float) -> tuple[float, float]:
        """The sum and its error bound."""
        value = math.fsum(self.value)
        return value, (math.fsum(self.error) * (1 + 1e-3) + tail + floor + UNIT * abs(value))


class LossSums:
    """Accumulates the loss of both classes and, if wanted, the gradients by group."""

    def __init__(self, groups: int, gradients: bool):
        self.groups, self.gradients = groups, gradients
        self.loss = {1: Tally(), -1: Tally()}
        self.output = [Tally() for _ in range(groups)]
        self.attention = [Tally() for _ in range(groups)]
        self.size = 0.0

    def add(self, block: Block) -> None:
        """Add a block of words of one pattern. Roundings are counted in units of 2^-53."""
        pattern, g = block.pattern, self.groups
        pull = pattern.weight * pattern.attention
        inverse = 1.0 / block.total(pattern.attention[-1], pattern.attention[:-1])
        residual = block.total(pull[-1], pull[:-1]) * inverse
        size = block.total(abs(pull[-1]), np.abs(pull[:-1])) * inverse
        probability = block.probability
        loss = 0.5 * float(np.sum(probability * residual**2))
        gross_loss = 0.5 * float(np.sum(probability * size**2))
        # numerator and denominator: products, ratios of attention, sums over the groups
        unit = (24 + 2 * g) * UNIT
        rounding = (block.error + 50) * UNIT * loss
        rounding += 2 * unit * math.sqrt(loss) * math.sqrt(gross_loss) + unit**2 * gross_loss
        self.loss[pattern.label].add(loss, rounding)
        if self.gradients:
            self._gradients(block, probability * inverse, residual, size, inverse)

    def _gradients(
        self,
        block: Block,
        weight: np.ndarray,
        residual: np.ndarray,
        size: np.ndarray,
        inverse: np.ndarray,
    ) -> None:
        """E[r gamma_G], and E[r gamma_G times the sum over H of (v_G - v_H) gamma_H]."""
        unit = (block.error + 90 + 6 * self.groups) * UNIT
        signed = _moments(weight * residual, inverse, block.bulk)
        absolute = _moments(weight * size, inverse, block.bulk)
        pattern, last = block.pattern, self.groups - 1
        for group in pattern.present:
            scale = float(pattern.attention[group])
            gaps = pattern.difference[group] * pattern.attention
            if group == last:
                factor, output, attention = 1.0, 3, (2, None)
            else:
                factor, output, attention = block.counts[:, group], 0, (1, 2)
            self.output[group].add(
                scale * float(np.sum(factor * signed[output])),
                scale * unit * float(np.sum(factor * absolute[output])),
            )
            rare, bulk = attention
            total = signed[rare] * (block.counts @ gaps[:-1])
            most = absolute[rare] * (block.counts @ np.abs(gaps[:-1]))
            if bulk is not None:
                total = total + signed[bulk] * gaps[-1]
                most = most + absolute[bulk] * abs(gaps[-1])
            self.attention[group].add(
                scale * float(np.sum(factor * total)), scale * unit * float(np.sum(factor * most))
            )


def _moments(term: np.ndarray, inverse: np.ndarray, bulk: np.ndarray) -> tuple[np.ndarray, ...]:
    """Row sums of w/S, w/S^2, w b/S^2 and w b/S, where `term` holds w/S."""
    square = term * inverse
    return (
        term.sum(axis=1),
        square.sum(axis=1),
        (square * bulk).sum(axis=1),
        (term * bulk).sum(axis=1),
    )


def _loss_bounds(pattern: Pattern) -> list[np.ndarray]:
    return pattern.loss_bounds


def prepare(task: Any, alpha: Any, beta: Any, residual: Any = None) -> CountSum:
    """Check one weight vector and group its symbols; alpha may be a `Tiers` of shape (d,)."""
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass for example popgd.Occurrence(50)")
    if not isinstance(alpha, Tiers):
        alpha = _vector("alpha", alpha, task.d)
    elif alpha.shape != (task.d,):
        raise check.refuse("alpha", alpha.shape, "must be one vector", f"use shape ({task.d},)")
    beta = _vector("beta", beta, task.d)
    if residual is not None:
        residual = _vector("residual", residual, len(task.targets))
    for name, array in (("beta", beta), ("residual", residual)):
        if array is not None and np.abs(array).max() > LARGEST_WEIGHT:
            remedy = f"keep |{name}| <= {LARGEST_WEIGHT:g}"
            raise check.refuse(name, array, "a squared weight would overflow", remedy)
    return CountSum.of(task, alpha, beta, residual)


def _vector(name: str, value: Any, d: int) -> np.ndarray:
    array = check.weights(name, value, d)
    if array.ndim != 1:
        raise check.refuse(name, array.shape, "must be one vector", f"pass shape ({d},)")
    return array


@dataclass(frozen=True)
class CountRisk:
    """The sums of one weight vector, and what they leave out.

    Attributes
    ----------
    total : CountSum
    sums : LossSums
    floor : float
        Bound on what underflow lost.
    """

    total: CountSum
    sums: LossSums
    floor: float

    @property
    def rough(self) -> float:
        """The sum of the losses, a lower bound on the risk up to rounding."""
        return math.fsum(self.sums.loss[1].value + self.sums.loss[-1].value)

    def tail(self, labels: tuple[int, ...] = (1, -1)) -> float:
        """Bound on the loss of the words left out."""
        return sum(
            bounded(p.loss_bounds, self.total.left_out[mask])
            for mask, p in self.total.patterns.items()
            if p.label in labels
        )

    def loss(self, *labels: int) -> SeriesValue:
        """The risk from words with these labels."""
        both = Tally()
        for label in labels:
            both.value += self.sums.loss[label].value
            both.error += self.sums.loss[label].error
        return SeriesValue(*both.result(self.tail(labels), self.floor))

    def output(self) -> tuple[np.ndarray, np.ndarray]:
        """dL/dbeta and bounds on its errors, shape (d,) each."""
        return self._spread(self.sums.output, Pattern.output_bounds)

    def attention(self) -> tuple[np.ndarray, np.ndarray]:
        """dL/dalpha and bounds on its errors, shape (d,) each."""
        return self._spread(self.sums.attention, Pattern.attention_bounds)

    def _spread(
        self, tallies: list[Tally], bounds: Callable[[Pattern, int], list[np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """From groups to symbols: each symbol has the share pi_i / Pi_G."""
        values, errors = [], []
        for group, tally in enumerate(tallies):
            tail = sum(
                bounded(bounds(p, group), self.total.left_out[mask])
                for mask, p in self.total.patterns.items()
                if group in p.present
            )
            value, error = tally.result(tail, self.floor)
            values.append(value)
            errors.append(error + 8 * UNIT * abs(value))
        member, share = self.total.groups.member, self.total.groups.share
        return np.array(values)[member] * share, np.array(errors)[member] * share * (1 + 1e-9)


def evaluate(total: CountSum, rtol: float, max_terms: int, gradients: bool) -> CountRisk:
    """Sum, coarsely first, until the words left out are small against the value."""
    result = _pass(total, 0.0, total.cut(unit_bounds, COARSE, max_terms), False)
    for _ in range(ROUNDS):
        target = rtol * TAIL_SHARE * max(result.rough, SMALLEST)
        result = _pass(total, target, total.cut(_loss_bounds, target, max_terms), gradients)
        if result.tail() <= rtol * max(result.rough, SMALLEST):
            return result
    raise PrecisionExhausted(
        f"The words left out still weigh {result.tail():.1e} against a risk of"
        f" {result.rough:.1e}; use popgd.PopulationRisk(task, method='integral')."
    )


def _pass(total: CountSum, target: float, cut: tuple[int, int], gradients: bool) -> CountRisk:
    sums = LossSums(total.groups.count, gradients)
    # underflow is not an error here: `floor` bounds what it can lose
    with np.errstate(under="ignore"):
        for block in total.walk(_loss_bounds, cut, target):
            sums.add(block)
    largest = max(p.largest for p in total.patterns.values())
    size = (total.terms + cut[0]) * total.groups.count
    return CountRisk(total, sums, 1e-322 * size * (1 + largest) ** 2)
