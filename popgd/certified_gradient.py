"""Gradients of the risk as balls (THEORY 2), every component in its own relative accuracy.

With Y_i = pi_i a_i t z_i and c the residual of the symbol that dominates a node, the sums
A_i = sum over j != i of (v_i - v_j) Y_j are (v_i - c) U - sum (v_j - c) Y_j, in which the
dominating symbol's own term is exactly zero. Nodes with the same c form a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .ball import Ball, BallMatrix, Exact, ball, magnitude, matrix
from .certified_integral import (
    Part,
    Setting,
    at_extra_precision,
    integrate_second,
    risk,
    single_residual,
    total,
)
from .certified_laws import top
from .certified_problem import Problem

__all__ = ["BallGradient", "gradient"]

HYSTERESIS = 10 * np.log(2)  # a dominating symbol is kept while within 10 bits of the largest


class BallGradient(NamedTuple):
    """Risk and gradients per symbol of each atom, and the sizes of their absolute terms.

    Attributes
    ----------
    value : Ball
        The risk.
    alpha, beta : list of Ball
        One entry an atom: the derivative with respect to a single symbol of it.
    alpha_scale, beta_scale : list of Ball
        Upper bounds of the sums of absolute terms, what "relative" means near a zero.
    """

    value: Ball
    alpha: list[Ball]
    beta: list[Ball]
    alpha_scale: list[Ball]
    beta_scale: list[Ball]


def gradient(problem: Problem) -> BallGradient:
    """Risk, dL/dalpha and dL/dbeta at the current precision."""
    if problem.single_letters:
        return _single_letters(problem)
    return at_extra_precision(problem, 3, _gradient)


def _single_letters(problem: Problem) -> BallGradient:
    """Attention does not matter, and each output weight meets its own word only."""
    zero = [ball(0)] * len(problem.atoms)
    v = [single_residual(problem, i) for i in range(len(problem.atoms))]
    beta = [ball(x.mass) * y / x.size for x, y in zip(problem.atoms, v, strict=True)]
    return BallGradient(risk(problem), zero, beta, zero, [magnitude(x) for x in beta])


def _gradient(setting: Setting) -> BallGradient:
    sizes = [atom.size for atom in setting.problem.atoms]
    sums = [[ball(0)] * len(sizes) for _ in range(4)]
    value = ball(0)
    for part in setting.parts():
        if part.silent:
            continue
        work = _Pass(part)
        value += part.finish_second(work.second)
        for into, found in zip(sums, (*work.finish_alpha(), *work.finish_beta()), strict=True):
            for i, x in found.items():
                into[i] += x
    alpha, alpha_scale, beta, beta_scale = (
        [x / n for x, n in zip(row, sizes, strict=True)] for row in sums
    )
    return BallGradient(value / 2, alpha, beta, alpha_scale, beta_scale)


class _Pass:
    """The integrals of one part, block by block of nodes.

    Attributes
    ----------
    second : Ball
        Sum over nodes of the integrand of E[(v . gamma)^2].
    alpha, beta : dict of (Ball, Ball)
        For each atom the sums of the signed integrand and of the absolute one.
    """

    def __init__(self, part: Part):
        self.part, active, setting = part, part.active, part.setting
        self.v = {i: ball(part.v(i)) for i in active}
        self.mass = {i: setting.mass[i] for i in active}
        self.a = {i: setting.a[i] for i in active}
        self.pa = {i: self.mass[i] * self.a[i] for i in active}
        self.paa = {i: self.pa[i] * self.a[i] for i in active}
        self.second = ball(0)
        self.alpha = {i: (ball(0), ball(0)) for i in active}
        self.beta = dict(self.alpha)
        self.blocks = _dominating(part)
        for span, c in self.blocks:
            self._block(span, c)

    def _distances(self, c: Exact) -> dict[int, Ball]:
        """v_i - c, exactly zero where the two are the same number."""
        part, centre = self.part, ball(c)
        return {i: ball(0) if part.v(i) == c else self.v[i] - centre for i in part.active}

    def _block(self, span: slice, c: Exact) -> None:
        distance = self._distances(c)
        tables = self._tables(span, distance)
        self.second += integrate_second(tables.phi, tables.a, tables.b)
        for group, (members, z) in enumerate(
            zip(self.part.classes, self.part.z(span), strict=True), start=-1
        ):
            if z is None:
                continue
            known = (group,) if group >= 0 else ()
            beta = _against(z, _beta_weights(tables, known))
            alpha = _against(z, _alpha_weights(tables, known))
            for i, x, y in zip(members, beta, alpha, strict=True):
                self._add_beta(i, x)
                self._add_alpha(i, distance[i], y)

    def _tables(self, span: slice, distance: dict[int, Ball]) -> _Tables:
        part, v, pa, paa = self.part, self.v, self.pa, self.paa
        active = part.active
        t = part.t(span)
        tt = [x * x for x in t]
        once = (
            pa,
            {i: pa[i] * v[i] for i in active},
            {i: pa[i] * abs(v[i]) for i in active},
            {i: pa[i] * distance[i] for i in active},
            {i: pa[i] * abs(distance[i]) for i in active},
        )
        twice = (
            {i: paa[i] * v[i] for i in active},
            {i: paa[i] * abs(v[i]) for i in active},
            {i: paa[i] * v[i] * v[i] for i in active},
            {i: paa[i] * v[i] * distance[i] for i in active},
            {i: paa[i] * abs(v[i] * distance[i]) for i in active},
        )
        u, *rest = part.sums(span, self.mass, *once, *twice)
        linear = [part.levels(x, t) for x in rest[:5]]
        square = [part.levels(x, tt) for x in rest[5:]]
        return _Tables(t, tt, part.derivatives(u, 3), *linear, *square)

    def _add_beta(self, i: int, sums: Sequence[Ball]) -> None:
        signed, absolute, own = sums
        own = own * self.a[i]
        v, pa = self.v[i], self.pa[i]
        x, y = self.beta[i]
        self.beta[i] = (x + pa * (signed + v * own), y + pa * (absolute + abs(v) * own))

    def _add_alpha(self, i: int, distance: Ball, sums: Sequence[Ball]) -> None:
        p1, p2, p3, p4, q1, q2, q4 = sums
        va, pa, far = self.v[i] * self.a[i], self.pa[i], abs(distance)
        signed = distance * p1 - p2 + va * (distance * p3 - p4)
        absolute = far * q1 + q2 + abs(va) * (far * p3 + q4)
        x, y = self.alpha[i]
        self.alpha[i] = (x + pa * signed, y + pa * absolute)

    def finish_beta(self) -> tuple[dict[int, Ball], dict[int, Ball]]:
        """E[(v . gamma) gamma_i; cell] and its absolute size."""
        phi1, phi2 = (self.part.setting.law.factorial_moment(n) for n in (1, 2))
        tails = self.part.tails(2)
        w1 = total(self.pa[i] * abs(v) for i, v in self.v.items())
        half = tails.t0**2 / 2
        left = {
            i: self.pa[i] * half * (phi2 * w1 + phi1 * abs(v) * self.a[i])
            for i, v in self.v.items()
        }
        return self._finish(self.beta, tails, left)

    def finish_alpha(self) -> tuple[dict[int, Ball], dict[int, Ball]]:
        """E[(v . gamma) gamma_i (v_i - v . gamma); cell] and its absolute size.

        The left cut drops at most t0^3/6 E[X I Z], X = sum |v_j| a_j C_j, I = a_i C_i,
        Z = sum over j != i of (|v_i - c| + |v_j - c|) a_j C_j, by factorial moments.
        """
        phi1, phi2, phi3 = (self.part.setting.law.factorial_moment(n) for n in (1, 2, 3))
        del phi1
        distance = {i: abs(x) for i, x in self._distances(self.blocks[0][1]).items()}
        v, pa, paa = {i: abs(x) for i, x in self.v.items()}, self.pa, self.paa
        active = self.part.active
        w1, w2 = total(pa[i] * v[i] for i in active), total(paa[i] * v[i] for i in active)
        u1, d1 = total(pa.values()), total(pa[i] * distance[i] for i in active)
        d2 = total(paa[i] * v[i] * distance[i] for i in active)
        tails = self.part.tails(3)
        left = {}
        for i in active:
            z1, z2 = distance[i] * u1 + d1, distance[i] * w2 + d2
            third = phi3 * w1 * z1 + phi2 * (self.a[i] * v[i] * z1 + z2)
            left[i] = tails.t0**3 / 6 * pa[i] * third
        return self._finish(self.alpha, tails, left)

    def _finish(self, sums: dict[int, Any], tails: Any, left: dict[int, Ball]) -> Any:
        h = self.part.setting.nodes.h
        signed, scale = {}, {}
        for i, (x, y) in sums.items():
            dropped = magnitude(left[i])
            signed[i] = tails.apply(x * h, y * h, dropped)
            scale[i] = magnitude(y * h) + dropped
        return signed, scale


class _Tables(NamedTuple):
    """Node tables of one block, in the notation of THEORY 2; `far_` is relative to c."""

    t: list[Ball]
    tt: list[Ball]
    phi: list[list[Any]]
    u: list[Any]
    a: list[Any]
    abs_a: list[Any]
    far_a: list[Any]
    abs_far_a: list[Any]
    v: list[Any]
    abs_v: list[Any]
    b: list[Any]
    far_b: list[Any]
    abs_far_b: list[Any]


def _beta_weights(x: _Tables, known: Sequence[int]) -> list[list[Ball]]:
    """Columns whose sums against z_i are Phi'' A, Phi'' A_abs and Phi' t."""
    columns: list[list[Ball]] = [[], [], []]
    for k, (d1, d2, _) in enumerate(x.phi):
        columns[0].append(top(d2 * x.a[k], known) * x.t[k])
        columns[1].append(top(d2 * x.abs_a[k], known) * x.t[k])
        columns[2].append(top(d1, known) * x.tt[k])
    return columns


def _alpha_weights(x: _Tables, known: Sequence[int]) -> list[list[Ball]]:
    """Columns p1, p2, p3, p4 of the signed integrand and q1, q2, q4 of the absolute one."""
    columns: list[list[Ball]] = [[] for _ in range(7)]
    for k, (_, d2, d3) in enumerate(x.phi):
        signed, absolute = d3 * x.a[k], d3 * x.abs_a[k]
        once = (
            signed * x.u[k] + d2 * x.v[k],
            signed * x.far_a[k] + d2 * x.far_b[k],
            absolute * x.u[k] + d2 * x.abs_v[k],
            absolute * x.abs_far_a[k] + d2 * x.abs_far_b[k],
        )
        twice = (d2 * x.u[k], d2 * x.far_a[k], d2 * x.abs_far_a[k])
        t, tt = x.t[k] / 2, x.tt[k] / 2
        p1, p2, q1, q2 = (top(y, known) * t for y in once)
        p3, p4, q4 = (top(y, known) * tt for y in twice)
        for column, y in zip(columns, (p1, p2, p3, p4, q1, q2, q4), strict=True):
            column.append(y)
    return columns


def _against(z: BallMatrix, columns: list[list[Ball]]) -> list[list[Ball]]:
    """For each row of z its sums against the columns."""
    return (z * matrix(columns).transpose()).tolist()


def _dominating(part: Part) -> list[tuple[slice, Exact]]:
    """Blocks of nodes and the residual of a symbol that about dominates each."""
    active = part.active
    log_a = part.setting.log_a[active]
    log_mass = np.log([float(part.setting.problem.atoms[i].mass) for i in active])
    n = np.arange(part.window.first, part.window.last + 1)
    x = log_a[:, None] + n * (np.log(2) / part.setting.nodes.m)
    log_y = log_mass[:, None] + x - np.exp(np.minimum(x, 600))
    best, largest = log_y.argmax(axis=0), log_y.max(axis=0)
    blocks: list[tuple[slice, Exact]] = []
    chosen, start = int(best[0]), 0
    for k in range(1, len(n)):
        if log_y[chosen, k] >= largest[k] - HYSTERESIS:
            continue
        following = int(best[k])
        if part.v(active[following]) != part.v(active[chosen]):
            blocks.append((slice(start, k), part.v(active[chosen])))
            start = k
        chosen = following
    blocks.append((slice(start, len(n)), part.v(active[chosen])))
    return blocks
