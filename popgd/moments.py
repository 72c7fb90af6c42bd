"""Second moments of v . gamma over one cell of words, and their gradients (THEORY 2).

gamma is the aggregated attention and v the residual weights of the cell: beta - 2 on positive
words, beta on negative ones, so that f - y = v . gamma. The functions here are kernels: they
trust their callers and accept plain arrays or `Rounded` ones.

Shapes: B problems, K nodes, n background symbols. Symbols of the cell's groups (the targets) are
kept apart from the background, which makes every difference between the two explicit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .cell_problem import Block, CellProblem, Target
from .differences import Differences, Occupancy
from .rounding import Rounded

__all__ = ["cell_gradient", "cell_value", "node_terms"]


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
