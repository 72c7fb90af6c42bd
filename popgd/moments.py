"""Second moments of v . gamma over one cell of words, and their gradients (THEORY 2).

gamma is the aggregated attention and v the residual weights of the cell: beta - 2 on positive
words, beta on negative ones, so that f - y = v . gamma. The functions here are kernels: they
trust their callers and accept plain arrays or `Rounded` ones.

Shapes: B problems, K nodes, n background symbols. Symbols of the cell's groups (the targets) are
kept apart from the background, which makes every difference between the two explicit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .differences import Differences, Occupancy
from .rounding import Rounded
from .words import LengthLaw
from .workspace import scratch

__all__ = ["CellProblem", "Target", "cell_gradient", "cell_value"]

COLUMNS = 256
"""Symbols handled at a time, so that a block of nodes x symbols stays in cache."""

SMALL = 2**13
"""Blocks below this many entries come from the allocator's own cache: no page faults to save."""

KEEP = 2**19
"""Blocks are kept between passes while all of them have at most this many entries."""

FADED = 800.0
"""exp(-y), and its products with powers of y, are exactly zero in float64 from here on."""

EARLY, LATE = 0.5, 0.7
"""Below EARLY exp(-y) is taken as 1 + expm1(-y); above LATE expm1(-y) as exp(-y) - 1."""


@dataclass
class Target:
    """One symbol of one group at all nodes; arrays of shape (B, K), `v` of shape (B, 1).

    `occupancy` = pi e^(-y), `missing` = pi (1 - e^(-y)), `weight` = Y = pi y e^(-y).
    """

    symbol: int
    group: int
    v: Any
    y: Any
    occupancy: Any
    missing: Any
    weight: Any


def faded(y: Any) -> Any:
    """y, where rounding errors are tracked capped at a point from which e^(-y) is zero."""
    return y.capped(FADED) if isinstance(y, Rounded) else y


class Block(NamedTuple):
    """Background symbols `part` at all nodes: Y = pi y e^(-y) and y Y, shape (B, K, columns)."""

    part: slice
    weight: Any
    curve: Any


@dataclass
class CellProblem:
    """One cell of words for B weight vectors.

    Attributes
    ----------
    law : LengthLaw
    background : array of int, shape (n,)
        Symbols outside all groups that may occur.
    a, v : arrays of shape (B, n)
        Unnormalised attention exp(alpha) and residual weights of the background.
    pi : array of shape (n,)
        Symbol probabilities of the background.
    targets : list of Target
    group_mass : list
        Probability of each group of symbols.
    absent_mass : float
        Probability of the symbols that do not occur.
    t : array of shape (B, K)
        Nodes.
    """

    law: LengthLaw
    background: Any
    a: Any
    v: Any
    pi: Any
    targets: list[Target]
    group_mass: list[Any]
    absent_mass: Any
    t: Any
    _kept: list[Block] = field(default_factory=list, repr=False)

    @property
    def parts(self) -> Iterator[slice]:
        """Column slices over the background."""
        n = self.a.shape[-1]
        for start in range(0, n, COLUMNS):
            yield slice(start, min(start + COLUMNS, n))

    @property
    def keeps(self) -> bool:
        """Whether blocks stay in memory between passes."""
        return self.a.shape[-1] * self.t.shape[0] * self.t.shape[1] <= KEEP

    def memory(self, name: Any, part: slice) -> Any:
        """Scratch array of shape (B, K, columns); None where a new array is as good."""
        size = self.t.shape[0] * self.t.shape[1] * (part.stop - part.start)
        if size < SMALL or isinstance(self.t, Rounded):
            return None
        return scratch(name, (*self.t.shape, part.stop - part.start))

    def release(self) -> None:
        """Forget kept blocks: they live in scratch memory that the next problem overwrites."""
        self._kept.clear()

    def scale(self, part: slice) -> Any:
        """y = a t, shape (B, K, columns)."""
        return faded(
            np.multiply(self.a[:, None, part], self.t[..., None], out=self.memory("y", part))
        )

    def weigh(self, part: slice, y: Any, decay: Any, name: Any) -> Block:
        """The block of Y and y Y from y and e^(-y)."""
        weight = np.multiply(y, decay, out=self.memory(("weight", name), part))
        weight = np.multiply(weight, self.pi[part], out=self.memory(("weight", name), part))
        return Block(part, weight, np.multiply(y, weight, out=self.memory(("curve", name), part)))

    def blocks(self) -> Iterator[Block]:
        """The blocks again, from memory or recomputed."""
        if self._kept:
            yield from self._kept
            return
        for part in self.parts:
            y = self.scale(part)
            decay = np.negative(y, out=self.memory("decay", part))
            decay = np.exp(decay, out=self.memory("decay", part))
            yield self.weigh(part, y, decay, None)

    def first_pass(self) -> Iterator[tuple[Block, Any, Any]]:
        """Each block with e^(-y) and e^(-y) - 1."""
        for number, part in enumerate(self.parts):
            y = self.scale(part)
            decay, loss = self._decay(part, y)
            block = self.weigh(part, y, decay, number if self.keeps else None)
            if self.keeps:
                self._kept.append(block)
            yield block, decay, loss

    @cached_property
    def _switch(self) -> tuple[int, int]:
        """Numbers of leading nodes with every y <= EARLY, and with some y < LATE."""
        largest, least = self.a.max(axis=-1, keepdims=True), self.a.min(axis=-1, keepdims=True)
        early = int(np.searchsorted((self.t * largest).max(axis=0), EARLY))
        return early, max(early, int(np.searchsorted((self.t * least).min(axis=0), LATE)))

    def _decay(self, part: slice, y: Any) -> tuple[Any, Any]:
        """exp(-y) and expm1(-y), each correct, with one transcendental where one will do."""
        if isinstance(y, Rounded):
            return np.exp(-y), np.expm1(-y)
        early, late = self._switch
        loss = np.negative(y, out=self.memory("loss", part))
        decay = self.memory("decay", part)
        decay = np.empty_like(loss) if decay is None else decay
        np.exp(loss[:, early:], out=decay[:, early:])
        np.expm1(loss[:, :late], out=loss[:, :late])
        np.add(loss[:, :early], 1.0, out=decay[:, :early])
        np.subtract(decay[:, late:], 1.0, out=loss[:, late:])
        return decay, loss


@dataclass
class Sums:
    """Sums over the background at every node, shape (B, K).

    `occupancy` = sum pi e^(-y), `missing` = sum pi (1 - e^(-y)), and with Y = pi y e^(-y):
    `linear` = sum v Y, `square` = sum v^2 y Y, `weight` = sum Y, `slope` = sum v y Y; `centre` is
    v of the symbol with the largest Y (`peak`).
    """

    occupancy: Any
    missing: Any
    linear: Any
    square: Any
    weight: Any
    slope: Any
    centre: Any
    peak: Any


def background_sums(problem: CellProblem, gradient: bool) -> Sums:
    """First pass over the background."""
    zero = problem.t * 0.0
    plain = np.zeros(problem.t.shape)
    sums = Sums(zero, zero, zero, zero, zero, zero, plain, plain - 1.0)
    for block, decay, loss in problem.first_pass():
        pi, v = problem.pi[block.part], problem.v[:, block.part]
        sums.occupancy = sums.occupancy + decay @ pi
        sums.missing = sums.missing - loss @ pi
        sums.linear = sums.linear + _dot(block.weight, v)
        sums.square = sums.square + _dot(block.curve, v * v)
        if gradient:
            sums.weight = sums.weight + block.weight.sum(axis=-1)
            sums.slope = sums.slope + _dot(block.curve, v)
            _update_centre(sums, block.weight, v)
    return sums


def _dot(block: Any, v: Any) -> Any:
    """Sum over symbols: (B, K, n) with (B, n) gives (B, K)."""
    return (block @ v[..., None])[..., 0]


def _update_centre(sums: Sums, weight: Any, v: Any) -> None:
    """Keep v of the background symbol with the largest Y at each node."""
    if isinstance(weight, Rounded):
        weight, v = weight.value, v.value
    peak = weight.max(axis=-1)
    centre = v[np.arange(len(v))[:, None], weight.argmax(axis=-1)]
    better = peak > sums.peak
    sums.peak = np.where(better, peak, sums.peak)
    sums.centre = np.where(better, centre, sums.centre)


@dataclass
class NodeTerms:
    """Node quantities shared by value and gradient, as subset differences.

    `phi` holds Phi', Phi'' and, for gradients, Phi'''; `linear` is A, `square` is B, `flat` is
    Phi'' A.
    """

    sums: Sums
    phi: list[Differences]
    linear: Differences
    square: Differences
    flat: Differences

    @property
    def integrand(self) -> Any:
        """Phi'' A^2 + Phi' B over the cell: E[(v . gamma)^2] is its integral in log t."""
        return (self.flat * self.linear + self.phi[0] * self.square).top


def node_terms(problem: CellProblem, gradient: bool) -> NodeTerms:
    """A, B and the derivatives of Phi at every node."""
    sums = background_sums(problem, gradient)
    groups = len(problem.group_mass)
    linear, square = [[_group_sum(problem, g, f) for g in range(groups)] for f in (_first, _second)]
    phi = problem.law.derivatives(_occupancy(problem, sums), 3 if gradient else 2)
    if isinstance(sums.occupancy, Rounded):
        # the law's own constants (p, q, factorials) are rounded floats
        phi = [Differences([x.inflate(24) for x in f.parts]) for f in phi]
    total = Differences.affine(sums.linear, linear)
    square = Differences.affine(sums.square, square)
    return NodeTerms(sums, phi, total, square, phi[1] * total)


def _first(s: Target) -> Any:
    return s.v * s.weight


def _second(s: Target) -> Any:
    return s.v * s.v * s.y * s.weight


def _group_sum(problem: CellProblem, group: int, term: Any) -> Any:
    first, *rest = [term(s) for s in problem.targets if s.group == group]
    for x in rest:
        first = first + x
    return first


def _occupancy(problem: CellProblem, sums: Sums) -> Occupancy:
    """u and 1 - u for every subset of groups, each a sum of non-negative terms."""
    groups = range(len(problem.group_mass))
    steps = tuple(_group_sum(problem, g, lambda s: s.occupancy) for g in groups)
    gone = [_group_sum(problem, g, lambda s: s.missing) for g in groups]
    missing = []
    for mask in range(2 ** len(groups)):
        total = sums.missing + problem.absent_mass
        for g in groups:
            total = total + (gone[g] if mask >> g & 1 else problem.group_mass[g])
        missing.append(total)
    return Occupancy(sums.occupancy, steps, tuple(missing))


def cell_value(problem: CellProblem) -> Any:
    """Sum over nodes of the integrand of E[(v . gamma)^2 1_cell]; multiply by h. Shape (B,)."""
    return node_terms(problem, gradient=False).integrand.sum(axis=-1)


def cell_gradient(problem: CellProblem) -> tuple[Any, list[tuple[Any, Any, Any]]]:
    """Value and gradient sums over nodes; multiply by h.

    Returns
    -------
    value : array of shape (B,)
        Integral of E[(v . gamma)^2 1_cell] / h.
    parts : list of (symbols, alpha, beta)
        For blocks of symbols, sums for E[(v.gamma) gamma_i (v_i - v.gamma) 1_cell] and
        E[(v.gamma) gamma_i 1_cell], shapes (B, symbols).
    """
    terms = node_terms(problem, gradient=True)
    centred = centred_sums(problem, terms.sums.centre)
    curved = terms.phi[2] * terms.linear
    parts = _background_gradient(problem, terms, curved, centred)
    parts += [_target_gradient(problem, terms, curved, centred, s) for s in problem.targets]
    return terms.integrand.sum(axis=-1), parts


class Centred(NamedTuple):
    """Sums of (v_j - c) Y_j and (v_j - c) v_j y_j Y_j over the background, shape (B, K).

    The background part of A_i = sum (v_i - v_j) Y_j is then (v_i - c) sum Y_j - `linear`, which
    keeps every digit because c belongs to the largest Y of its node; B_i alike (THEORY 2).
    """

    linear: Any
    square: Any


def centred_sums(problem: CellProblem, centre: Any) -> Centred:
    """Second pass over the background."""
    linear = square = problem.t * 0.0
    for block in problem.blocks():
        v = problem.v[:, block.part]
        by_weight, by_curve = _offset(problem, block, v, centre)
        linear = linear + by_weight.sum(axis=-1)
        square = square + _dot(by_curve, v)
    return Centred(linear, square)


def _offset(problem: CellProblem, block: Block, v: Any, centre: Any) -> tuple[Any, Any]:
    """(v_i - c) Y_i and (v_i - c) y_i Y_i, shape (B, K, n)."""
    memory = [problem.memory(name, block.part) for name in ("y", "decay", "loss")]
    offset = np.subtract(v[:, None, :], centre[..., None], out=memory[0])
    by_weight = np.multiply(offset, block.weight, out=memory[1])
    return by_weight, np.multiply(offset, block.curve, out=memory[2])


def _background_gradient(
    problem: CellProblem, terms: NodeTerms, curved: Differences, centred: Centred
) -> list[tuple[Any, Any, Any]]:
    """Third pass: Y_i [(Phi''' A + Phi'' v_i y_i) A_i + Phi'' B_i] for alpha,
    Y_i [Phi'' A + Phi' v_i y_i] for beta.

    Written out in A_i = (v_i - c) W - X + sum over targets s of (v_i - v_s) Y_s, node factors are
    gathered first so that each symbol needs only products with Y_i and y_i Y_i.
    """
    phi1, phi2, _ = terms.phi
    sums = terms.sums
    keep = (curved * sums.weight + phi2 * sums.slope).top[:, None, :]
    keep_curve = (phi2.top * sums.weight)[:, None, :]
    on_weight = [terms.flat.top, -(curved * centred.linear + phi2 * centred.square).top]
    on_curve = [phi1.top, -(phi2.top * centred.linear)]
    for s in problem.targets:
        present = phi2.top_with(s.group)
        on_weight.append((curved.top_with(s.group) + present * (s.v * s.y)) * s.weight)
        on_curve.append(present * s.weight)
    on_weight, on_curve = np.stack(on_weight, axis=-2), np.stack(on_curve, axis=-2)
    parts = []
    for block in problem.blocks():
        v = problem.v[:, block.part]
        by_weight, by_curve = _offset(problem, block, v, sums.centre)
        weight, curve = on_weight @ block.weight, on_curve @ block.curve
        alpha = (keep @ by_weight)[:, 0] + weight[:, 1]
        alpha = alpha + v * ((keep_curve @ by_curve)[:, 0] + curve[:, 1])
        for number, s in enumerate(problem.targets, start=2):
            alpha = alpha + (v - s.v) * (weight[:, number] + v * curve[:, number])
        parts.append((problem.background[block.part], alpha * 0.5, weight[:, 0] + v * curve[:, 0]))
    return parts


def _target_gradient(
    problem: CellProblem, terms: NodeTerms, curved: Differences, centred: Centred, s: Target
) -> tuple[Any, Any, Any]:
    """The same integrands for a target: words in which its group is present already."""
    phi1, phi2, _ = terms.phi
    groups = len(problem.group_mass)
    offset = s.v - terms.sums.centre
    linear = Differences.constant(offset * terms.sums.weight - centred.linear, groups)
    square = Differences.constant(offset * terms.sums.slope - centred.square, groups)
    for r in problem.targets:
        if r is not s:
            apart = (s.v - r.v) * r.weight
            linear = linear + Differences.indicator(apart, r.group, groups)
            square = square + Differences.indicator(apart * (r.v * r.y), r.group, groups)
    vy = s.v * s.y
    factor = (curved + phi2 * vy) * linear + phi2 * square
    alpha = (s.weight * factor.top_with(s.group)).sum(axis=-1) * 0.5
    flat = terms.flat.top_with(s.group) + phi1.top_with(s.group) * vy
    beta = (s.weight * flat).sum(axis=-1)
    return np.array([s.symbol]), alpha[..., None], beta[..., None]
