"""Risk and gradients of several heads: one-head integrals, and double integrals for each pair.

E[(sum over h of v^h . gamma^h)^2] has one term a head, which the one-head route integrates, and
two a pair of heads, which `HeadPair` integrates over its own window (THEORY 2, 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .cells import Frame, Piece, pieces
from .integral import SHARE, IntegralRoute
from .languages import Task
from .multihead_pairs import HeadPair, Side, pairs
from .quadrature import Grid, discretisation, left_cut, right_cut, right_tail, step_for
from .rounding import UNIT
from .tiers import Tiers

__all__ = ["HeadInputs", "HeadRoute", "head_inputs"]

SAFE = 1e-300
"""Moments below this are taken as this when windows are chosen."""


class HeadInputs(NamedTuple):
    """One problem: alpha (H, d) or Tiers, and residual weights (H, d) by label.

    f - y is the sum over heads of v^h . gamma^h with v = `positive` or `negative`; `slack` bounds
    the rounding error of these weights, shape (H, d).
    """

    alpha: Any
    positive: np.ndarray
    negative: np.ndarray
    slack: np.ndarray


def head_inputs(alpha: Any, beta: np.ndarray, residual: Any, targets: list[int]) -> HeadInputs:
    """Residual weights: the constant 2 is shared out so that it leaves nothing on a target.

    Since attention sums to one in each head, f - y on positive words is the sum over heads of
    (beta^h - c_h) . gamma^h for any c_h with sum 2. With c_h = beta^h on the first target for
    all heads but the last, that target keeps its residual alone, in the last head.
    """
    if residual is None:
        residual = np.array([math.fsum([*beta[:, s], -2.0]) for s in targets])
    share = beta[:, targets[0]].copy()
    share[-1] = math.fsum([2.0, *(-share[:-1])])
    positive = beta - share[:, None]
    positive[-1, targets] = residual - positive[:-1, targets].sum(axis=0)
    slack = 4 * len(beta) * UNIT * (np.abs(positive) + np.abs(share)[:, None])
    slack[:, targets[0]] = 0.0
    slack[-1, targets[0]] = UNIT * abs(residual[0])
    if len(beta) == 1:
        # beta - 2, rounded once, is what the one-head route accounts for
        slack[:] = 0.0
    return HeadInputs(alpha, positive, beta, slack)


def head(alpha: Any, h: int) -> Any:
    """Attention of one head with a leading axis of length 1."""
    if isinstance(alpha, Tiers):
        return Tiers(alpha.tier[h : h + 1], alpha.offset[h : h + 1])
    return alpha[h : h + 1]


class _Diagonal(IntegralRoute):
    """One-head moments with the residual weights given."""

    def residual_weights(self, inputs: Any, piece: Piece) -> np.ndarray:
        return (inputs.positive if piece.sign > 0 else inputs.negative)[piece.rows].copy()


class _Rows(NamedTuple):
    """Rows for `_Diagonal`; `beta` only tells how many there are."""

    alpha: Any
    beta: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


@dataclass(frozen=True)
class _Cut:
    """Window of a pair and what it loses: relative to E|.|, and absolutely."""

    left: Grid
    right: Grid
    relative: float
    absolute: float

    @property
    def area(self) -> float:
        """Product of the steps."""
        return self.left.h * self.right.h


class HeadRoute:
    """Moments of several heads to relative accuracy rtol (rounding apart)."""

    def __init__(self, task: Task, rtol: float):
        self.diagonal = _Diagonal(task, rtol)
        self.facts, self.cells = self.diagonal.facts, self.diagonal.cells
        self.tolerance = SHARE * rtol
        self.h = step_for(self.tolerance, 2)

    def split(self, inputs: HeadInputs) -> np.ndarray:
        """Risk on positive and on negative words, shape (2,)."""
        total = self._own(inputs)
        scale = total.copy()
        for h, k in _couples(inputs):
            for pair, area, sign in self._pairs(inputs, h, k, scale):
                total[0 if sign > 0 else 1] += area * float(pair.value())
        return total

    def gradient(self, inputs: HeadInputs, attention: bool = True) -> tuple[float, Any, Any]:
        """Risk, dL/dalpha and dL/dbeta, shapes (H, d)."""
        rows = self._rows(inputs)
        value, alpha, beta = self.diagonal.value_and_gradient(rows)
        total, scale = float(value.sum()), self._own(inputs)
        for h, k in _couples(inputs):
            for pair, area, _ in self._pairs(inputs, h, k, scale, gradient=True):
                total += area * float(pair.value())
                for i, one in ((h, pair), (k, pair.swapped())):
                    beta[i] += area * one.output_gradient()
                    if attention:
                        alpha[i] += area * one.attention_gradient()
        return total, alpha, beta

    def gram(self, alpha: Any, heads: int) -> tuple[np.ndarray, np.ndarray]:
        """E[gamma gamma^T] over positive and over negative words, shape (H d, H d) each."""
        d = self.facts.d
        out = np.zeros((2, heads, d, heads, d))
        ones = np.ones((heads, d))
        inputs = HeadInputs(alpha, ones, ones, ones)
        for h in range(heads):
            for k in range(h, heads):
                scale = np.ones(2)
                for pair, area, sign in self._pairs(inputs, h, k, scale, gradient=True):
                    block = area * pair.gram()
                    where = 0 if sign > 0 else 1
                    out[where, h, :, k] += block
                    if h != k:
                        out[where, k, :, h] += block.T
        positive, negative = out.reshape(2, heads * d, heads * d)
        return positive, negative

    def error_bound(self, inputs: HeadInputs) -> float:
        """Proven bound on |value - truth|, rounding included."""
        bound = float(self.diagonal.error_bound(self._rows(inputs)).sum())
        scale = self._own(inputs)
        for h, k in _couples(inputs):
            for cut, p, q, sign in self._cuts(inputs, h, k, scale, gradient=False):
                bound += self._pair_bound(inputs, h, k, cut, p, q, sign)
        return (bound + self._input_bound(inputs)) * (1 + 1e-6)

    def _pair_bound(
        self, inputs: HeadInputs, h: int, k: int, cut: _Cut, p: Frame, q: Frame, sign: int
    ) -> float:
        v = inputs.positive if sign > 0 else inputs.negative

        def moment(function: Callable[[np.ndarray], np.ndarray]) -> Any:
            left = Side.at(p, cut.left, function(v[h]), rounded=True)
            right = Side.at(q, cut.right, function(v[k]), rounded=True)
            value = error = 0.0
            with np.errstate(under="ignore"):
                for part in pairs(HeadPair(left, right, p, rounded=True)):
                    x = part.value()
                    value, error = value + float(x.value), error + float(x.error)
            return abs(value) * cut.area, error * cut.area

        _, rounding = moment(lambda x: x)
        size, spread = moment(np.abs)
        total = (size + spread + cut.absolute) / (1 - cut.relative)
        return rounding + cut.relative * total + cut.absolute

    def _input_bound(self, inputs: HeadInputs) -> float:
        """Effect of the rounding of the residual weights, by Cauchy-Schwarz."""
        sizes = []
        for v in (None, inputs.slack):
            positive = np.abs(inputs.positive) if v is None else v
            negative = np.abs(inputs.negative) if v is None else np.zeros_like(v)
            own = self._own(HeadInputs(inputs.alpha, positive, negative, inputs.slack))
            sizes.append(math.sqrt(2 * own.sum() * len(positive)))
        return (sizes[0] + sizes[1]) * sizes[1] * (1 + 1e-3)

    def _own(self, inputs: HeadInputs) -> np.ndarray:
        """Sum over heads of E[(v^h . gamma^h)^2]/2 by label: the scale of the risk."""
        return self.diagonal.split(self._rows(inputs)).sum(axis=1)  # type: ignore[arg-type]

    def _rows(self, inputs: HeadInputs) -> Any:
        return _Rows(inputs.alpha, inputs.negative, inputs.positive, inputs.negative)

    def _pairs(
        self, inputs: HeadInputs, h: int, k: int, scale: np.ndarray, gradient: bool = False
    ) -> Iterator[tuple[HeadPair, float, int]]:
        for cut, p, q, sign in self._cuts(inputs, h, k, scale, gradient):
            v = inputs.positive if sign > 0 else inputs.negative
            with np.errstate(under="ignore"):
                left, right = Side.at(p, cut.left, v[h]), Side.at(q, cut.right, v[k])
                for part in pairs(HeadPair(left, right, p)):
                    yield part, cut.area, sign

    def _cuts(
        self, inputs: HeadInputs, h: int, k: int, scale: np.ndarray, gradient: bool
    ) -> Iterator[tuple[_Cut, Frame, Frame, int]]:
        """Windows and frames of every cell in which both heads attend to something."""
        for first in pieces(head(inputs.alpha, h), self.cells):
            for second in pieces(head(inputs.alpha, k), [(first.cell, first.sign)]):
                p = Frame(self.facts, replace(first, cell=second.cell))
                q = Frame(self.facts, second)
                if not (np.isfinite(p.top[0]) and np.isfinite(q.top[0])):
                    continue
                v = inputs.positive if first.sign > 0 else inputs.negative
                size = 2 * scale[0 if first.sign > 0 else 1]
                if size > 0 or gradient:
                    yield self._cut(p, q, v[h], v[k], size, gradient), p, q, first.sign

    def _cut(
        self, p: Frame, q: Frame, v: np.ndarray, w: np.ndarray, size: float, gradient: bool
    ) -> _Cut:
        """The window in which what is lost is small beside `size`, and bounds on what is."""
        slopes = _slopes(self.facts, p, q, v, w), _slopes(self.facts, q, p, w, v)
        grids = []
        for frame, slope in zip((p, q), slopes, strict=True):
            low = math.inf
            if slope > 0 and size > 0:
                low = math.log(self.tolerance) + math.log(max(size, SAFE)) - math.log(slope)
            if gradient or not math.isfinite(low):
                low = min(low, left_cut(self.tolerance / 4, 1) - math.log(self.facts.length_scale))
            low = np.array([low - frame.top[0]])
            high = math.log(right_cut(self.tolerance, 2)) - frame.floor
            ceiling = math.log(800.0) - frame.bottom
            grids.append(Grid.covering(self.h, low, np.maximum(high, low), ceiling))
        lost = [
            slope * math.exp(float(grid.log_nodes()[0, 0]) + frame.top[0])
            for slope, grid, frame in zip(slopes, grids, (p, q), strict=True)
        ]
        delta = discretisation(1, self.h)
        tail = [
            float(
                right_tail(1, math.exp(frame.floor[0] + grid.log_nodes()[0, -1]) * (1 - 16 * UNIT))
            )
            for frame, grid in zip((p, q), grids, strict=True)
        ]
        relative = (1 + delta) ** 2 - 1 + tail[0] + (1 + delta) * tail[1]
        absolute = (lost[0] + (1 + delta) * lost[1]) * (1 + 1e-6)
        return _Cut(grids[0], grids[1], relative * (1 + 1e-6), absolute)


def _couples(inputs: HeadInputs) -> list[tuple[int, int]]:
    heads = range(len(inputs.positive))
    return [(h, k) for h in heads for k in heads if h < k]


def _slopes(facts: Any, p: Frame, q: Frame, v: np.ndarray, w: np.ndarray) -> float:
    """K with: dropping t < t0 for the head of p loses at most K e^top t0 in the pair's moment.

    Of one word the left cut takes a share S t0 of the head's factor, which leaves
    t0 E[(|v| . aC)(|w| . gamma')]; |w| . gamma' is at most max |w|, and at most
    (|w| . a'C) / S'_min. Source: THEORY 3, with k = 1.
    """
    seen = p.alphabet
    pi = facts.pi[seen]
    x = np.abs(v[seen]) * np.exp(p.log[0, seen] - p.top[0])
    plain = float(np.abs(w[seen]).max()) * facts.first * float(x @ pi)
    y = np.abs(w[seen]) * np.exp(np.minimum(q.log[0, seen] - q.floor[0], 700.0))
    with np.errstate(over="ignore", invalid="ignore"):
        close = facts.second * float(x @ pi) * float(y @ pi) + facts.first * float((x * y) @ pi)
    return min(plain, close) if math.isfinite(close) else plain
