"""Second moments of v . gamma over one cell of words, and their gradients (THEORY 2).

gamma is the aggregated attention and v the residual weights of the cell: beta - 2 on positive
words, beta on negative ones, so that f - y = v . gamma. The functions here are kernels: they
trust their callers and accept plain arrays or `Rounded` ones.

Shapes: B problems, K nodes, n symbols. Symbols of the cell's groups (the targets) are kept
apart from the n others, which makes every difference between the two explicit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .differences import Differences, Occupancy
from .rounding import Rounded
from .words import LengthLaw

__all__ = ["CellProblem", "Sums", "Target", "cell_gradient", "cell_value"]

COLUMNS = 256
"""Symbols handled at a time, so that a block of nodes x symbols stays in cache."""

KEEP = 2**19
"""Blocks of all symbols are kept between passes up to this many entries, else recomputed."""


@dataclass
class Target:
    """One symbol of one group at all nodes; arrays of shape (B, K), `v` of shape (B, 1)."""

    symbol: int
    group: int
    v: Any
    y: Any
    occupancy: Any
    missing: Any
    weight: Any


@dataclass
class CellProblem:
    """One cell of words for B weight vectors.

    Attributes
    ----------
    law : LengthLaw
    background : array of int, shape (n,)
        Symbols outside all groups that may occur.
    a, v : arrays of shape (B, 1, n)
        Unnormalised attention exp(alpha) and residual weights of the background.
    pi : array of shape (n,)
        Symbol probabilities of the background.
    targets : list of Target
    group_mass : list
        Probability of each group of symbols.
    absent_mass : float
        Probability of the symbols that do not occur.
    t : array of shape (B, K, 1)
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
    _kept: dict[int, tuple[Any, Any]] = field(default_factory=dict, repr=False)

    def blocks(self) -> Iterator[slice]:
        """Column slices over the background."""
        n = self.a.shape[-1]
        for start in range(0, n, COLUMNS):
            yield slice(start, min(start + COLUMNS, n))

    def weigh(self, part: slice) -> tuple[Any, Any]:
        """y = a t and Y = pi y e^(-y) for a block of background symbols."""
        if part.start in self._kept:
            return self._kept[part.start]
        y = self.a[..., part] * self.t
        return y, self.pi[part] * y * np.exp(-y)

    def first_pass(self, part: slice) -> tuple[Any, Any, Any]:
        """As `weigh`, with pi e^(-y) too; keeps the block when all of them fit."""
        y = self.a[..., part] * self.t
        occupancy = self.pi[part] * np.exp(-y)
        weight = y * occupancy
        if self.a.shape[-1] * self.t.shape[0] * self.t.shape[1] <= KEEP:
            self._kept[part.start] = y, weight
        return y, weight, occupancy


@dataclass
class Sums:
    """Sums over the background at every node, shape (B, K).

    `occupancy` = sum pi e^(-y), `missing` = sum pi (1 - e^(-y)), and with Y = pi y e^(-y):
    `linear` = sum v Y, `square` = sum v^2 y Y, `weight` = sum Y, `slope` = sum v y Y; `centre` is
    v of the symbol with the largest Y.
    """

    occupancy: Any
    missing: Any
    linear: Any
    square: Any
    weight: Any
    slope: Any
    centre: Any = None
    peak: Any = None


def background_sums(problem: CellProblem, gradient: bool) -> Sums:
    """First pass over the background."""
    zero = problem.t[..., 0] * 0.0
    sums = Sums(zero, zero, zero, zero, zero, zero)
    if gradient:
        sums.centre = np.zeros(zero.shape)
        sums.peak = np.full(zero.shape, -1.0)
    for part in problem.blocks():
        y, weight, occupancy = problem.first_pass(part)
        v = problem.v[..., part]
        sums.occupancy = sums.occupancy + occupancy.sum(axis=-1)
        sums.missing = sums.missing + (problem.pi[part] * -np.expm1(-y)).sum(axis=-1)
        linear = v * weight
        slope = linear * y
        sums.linear = sums.linear + linear.sum(axis=-1)
        sums.square = sums.square + (v * slope).sum(axis=-1)
        if gradient:
            sums.weight = sums.weight + weight.sum(axis=-1)
            sums.slope = sums.slope + slope.sum(axis=-1)
            _update_centre(sums, weight, v)
    return sums


def _update_centre(sums: Sums, weight: Any, v: Any) -> None:
    """Keep v of the background symbol with the largest Y at each node."""
    if isinstance(weight, Rounded):
        weight, v = weight.value, v.value
    index = weight.argmax(axis=-1)
    peak = np.take_along_axis(weight, index[..., None], axis=-1)[..., 0]
    centre = np.take_along_axis(v[:, 0, :], index, axis=-1)
    better = peak > sums.peak
    sums.peak = np.where(better, peak, sums.peak)
    sums.centre = np.where(better, centre, sums.centre)


@dataclass
class NodeTerms:
    """Node quantities shared by value and gradient, as subset differences."""

    sums: Sums
    phi: list[Differences]
    linear: Differences
    square: Differences

    @property
    def integrand(self) -> Any:
        """Phi'' A^2 + Phi' B over the cell: E[(v . gamma)^2] is its integral in log t."""
        return (self.phi[1] * (self.linear * self.linear) + self.phi[0] * self.square).top


def node_terms(problem: CellProblem, gradient: bool) -> NodeTerms:
    """A, B and the derivatives of Phi at every node."""
    sums = background_sums(problem, gradient)
    groups = len(problem.group_mass)
    steps: list[Any] = [None] * groups
    gone: list[Any] = [None] * groups
    linear, square = list(steps), list(steps)
    for s in problem.targets:
        g = s.group
        steps[g] = _plus(steps[g], s.occupancy)
        gone[g] = _plus(gone[g], s.missing)
        linear[g] = _plus(linear[g], s.v * s.weight)
        square[g] = _plus(square[g], s.v * s.v * s.y * s.weight)
    missing = []
    for mask in range(2**groups):
        total = sums.missing + problem.absent_mass
        for g in range(groups):
            total = total + (gone[g] if mask >> g & 1 else problem.group_mass[g])
        missing.append(total)
    at = Occupancy(sums.occupancy, tuple(steps), tuple(missing))
    phi = problem.law.derivatives(at, 3 if gradient else 2)
    if isinstance(sums.occupancy, Rounded):
        # constants of the law (p, q, factorials) are rounded floats
        phi = [Differences([x.inflate(24) for x in f.parts]) for f in phi]
    return NodeTerms(
        sums, phi, Differences.affine(sums.linear, linear), Differences.affine(sums.square, square)
    )


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def cell_value(problem: CellProblem) -> Any:
    """Sum over nodes of the integrand of E[(v . gamma)^2 1_cell]; multiply by h. Shape (B,)."""
    return node_terms(problem, gradient=False).integrand.sum(axis=-1)


@dataclass
class Centred:
    """Background sums of differences from a centre c or from a target's v, shape (B, K)."""

    linear: Any
    square: Any


def centred_sums(problem: CellProblem, centre: Any) -> tuple[Centred, list[Centred]]:
    """Second pass: sums of (v_j - c) Y_j and (v_j - c) v_j y_j Y_j; for each target s, of
    (v_s - v_j) Y_j and (v_s - v_j) v_j y_j Y_j."""
    zero = problem.t[..., 0] * 0.0
    own, others = Centred(zero, zero), [Centred(zero, zero) for _ in problem.targets]
    for part in problem.blocks():
        y, weight = problem.weigh(part)
        v = problem.v[..., part]
        slope = v * y * weight
        offset = v - centre[..., None]
        own.linear = own.linear + (offset * weight).sum(axis=-1)
        own.square = own.square + (offset * slope).sum(axis=-1)
        for s, sums in zip(problem.targets, others, strict=True):
            apart = s.v[..., None] - v
            sums.linear = sums.linear + (apart * weight).sum(axis=-1)
            sums.square = sums.square + (apart * slope).sum(axis=-1)
    return own, others


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
    centred, apart = centred_sums(problem, terms.sums.centre)
    parts = _background_gradient(problem, terms, centred)
    parts += _target_gradient(problem, terms, apart)
    return terms.integrand.sum(axis=-1), parts


def _background_gradient(
    problem: CellProblem, terms: NodeTerms, centred: Centred
) -> list[tuple[Any, Any, Any]]:
    """Third pass. With D_i = v_i - c the attention integrand of THEORY 2 is Y_i times

    (Phi''' A + Phi'' v_i y_i) A_i + Phi'' B_i,   A_i = D_i sum Y_j - sum (v_j - c) Y_j + targets,

    which keeps every digit because c dominates the sums at its node.
    """
    phi1, phi2, phi3 = terms.phi
    sums = terms.sums
    curved = phi3 * terms.linear
    keep = (curved * sums.weight + phi2 * sums.slope).top
    drop = (curved * centred.linear + phi2 * centred.square).top
    keep_y = phi2.top * sums.weight
    drop_y = phi2.top * centred.linear
    pulls = []
    for s in problem.targets:
        with_s, step = phi2.top_with(s.group), s.v * s.y * s.weight
        pulls.append(
            (s.v, curved.top_with(s.group) * s.weight + with_s * step, with_s * s.weight)
        )
    flat = (phi2 * terms.linear).top
    parts = []
    for part in problem.blocks():
        y, weight = problem.weigh(part)
        v = problem.v[..., part]
        offset = v - sums.centre[..., None]
        level = offset * keep[..., None] - drop[..., None]
        slope = offset * keep_y[..., None] - drop_y[..., None]
        for v_s, pull, pull_y in pulls:
            away = v - v_s[..., None]
            level = level + away * pull[..., None]
            slope = slope + away * pull_y[..., None]
        vy = v * y
        alpha = (weight * (level + vy * slope)).sum(axis=-2) * 0.5
        beta = (weight * (flat[..., None] + vy * phi1.top[..., None])).sum(axis=-2)
        parts.append((problem.background[part], alpha, beta))
    return parts


def _target_gradient(
    problem: CellProblem, terms: NodeTerms, apart: list[Centred]
) -> list[tuple[Any, Any, Any]]:
    phi1, phi2, phi3 = terms.phi
    groups = len(problem.group_mass)
    curved = phi3 * terms.linear
    parts = []
    for s, sums in zip(problem.targets, apart, strict=True):
        linear = Differences.constant(sums.linear, groups)
        square = Differences.constant(sums.square, groups)
        for r in problem.targets:
            if r is not s:
                gap = (s.v - r.v) * r.weight
                linear = linear + Differences.indicator(gap, r.group, groups)
                square = square + Differences.indicator(gap * r.v * r.y, r.group, groups)
        factor = (curved + phi2 * (s.v * s.y)) * linear + phi2 * square
        alpha = (s.weight * factor.top_with(s.group)).sum(axis=-1) * 0.5
        flat = (phi2 * terms.linear).top_with(s.group) + phi1.top_with(s.group) * s.v * s.y
        beta = (s.weight * flat).sum(axis=-1)
        parts.append((np.array([s.symbol]), alpha[..., None], beta[..., None]))
    return parts
