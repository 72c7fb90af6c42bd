"""One pair of heads on one cell of words, in balls: the double integral and its proved errors."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from .ball import Ball, BallMatrix, approximate, ball, less, magnitude, matrix, widen
from .certified_laws import affine, ball_law, top
from .certified_problem import LabelledCell, Problem
from .certified_quadrature import Nodes, Window, discretisation, right_cut, right_tail, step
from .errors import NotAvailable

__all__ = ["HeadSetting", "PairSums"]

LARGEST = 2 * 10**6
"""Pairs of nodes in one cell: beyond it, minutes and gigabytes."""


class HeadSetting:
    """Two heads as balls at the current precision.

    Attributes
    ----------
    nodes : Nodes
        The lattice, the same for both heads.
    a : tuple of list of Ball
        exp(alpha) by head and atom.
    """

    def __init__(self, left: Problem, right: Problem, target: int):
        self.problems, self.target = (left, right), target
        self.law = ball_law(left.law)
        self.nodes = Nodes(step(1, target))
        alpha = [[ball(atom.alpha) for atom in p.atoms] for p in self.problems]
        self.a = [[x.exp() for x in row] for row in alpha]
        self.log_a = [[approximate(x) for x in row] for row in alpha]
        self.mass = [ball(atom.mass) for atom in left.atoms]

    def parts(self) -> list[PairSums]:
        """Every cell, by the highest tier present in each head."""
        left, right = ([atom.tier for atom in p.atoms] for p in self.problems)
        every = [
            PairSums(self, cell, (s, t))
            for cell in self.problems[0].cells
            for s in sorted(set(left))
            for t in sorted(set(right))
        ]
        return [part for part in every if not part.empty]


class PairSums:
    """Moments of (v . gamma) and (v' . gamma') over one cell and one tier of each head."""

    def __init__(self, setting: HeadSetting, cell: LabelledCell, levels: tuple[int, int]):
        self.setting, self.cell = setting, cell
        tiers = [[atom.tier for atom in p.atoms] for p in setting.problems]
        count = range(len(tiers[0]))
        self.alive = [
            i
            for i in count
            if i not in cell.absent and all(t[i] <= x for t, x in zip(tiers, levels, strict=True))
        ]
        living = set(self.alive)
        self.active = [{i for i in living if t[i] == x} for t, x in zip(tiers, levels, strict=True)]
        groups = [[i for i in group if i in living] for group in cell.groups]
        self.empty = not all(self.active) or not all(groups)
        grouped = {i for group in groups for i in group}
        self.classes = [[i for i in self.alive if i not in grouped], *groups]

    @property
    def label(self) -> int:
        """+1 or -1."""
        return self.cell.label

    def v(self, side: int) -> dict[int, Ball]:
        """Residuals of one head."""
        atoms = self.setting.problems[side].atoms
        found = {i: atoms[i].positive if self.label == 1 else atoms[i].negative for i in self.alive}
        return {i: ball(x) for i, x in found.items() if x is not None}

    @cached_property
    def least(self) -> list[Ball]:
        """Lower bounds of S for each head."""
        out = []
        for side, active in enumerate(self.active):
            a = self.setting.a[side]
            low = _least([a[i] for i in active])
            if len(self.classes) > 1:
                present = [
                    _least([a[i] if i in active else ball(0) for i in group])
                    for group in self.classes[1:]
                ]
                low = low.max(sum(present, ball(0)))
            out.append(low)
        return out

    @cached_property
    def windows(self) -> list[Window]:
        """Nodes kept, by head."""
        setting, out = self.setting, []
        h = math.log(2) / setting.nodes.m
        scale = approximate(
            (setting.law.factorial_moment(1) + setting.law.factorial_moment(2)).log()
        )
        for side, active in enumerate(self.active):
            largest = max(setting.log_a[side][i] for i in active) + scale
            low = -setting.target * math.log(2) - largest - 2
            high = right_cut(1, setting.target) - approximate(self.least[side].log())
            first = math.floor(low / h)
            out.append(Window(first, max(math.ceil(high / h), first + 1)))
        if len(out[0]) * len(out[1]) > LARGEST:
            raise NotAvailable(
                f"{len(out[0]) * len(out[1]):.1e} pairs of nodes, at most {LARGEST:.0e} are"
                " computed; take the limit with popgd.Tiers, or use popgd.MultiHeadRisk"
            )
        return out

    @cached_property
    def times(self) -> list[list[Ball]]:
        """Nodes t of each head."""
        return [self.setting.nodes.times(w) for w in self.windows]

    @cached_property
    def columns(self) -> list[dict[int, list[Ball]]]:
        """exp(-a t) at the nodes, by head and atom; 1 for atoms of lower tiers."""
        out = []
        for side, active in enumerate(self.active):
            window, t = self.windows[side], self.times[side]
            a, log_a = self.setting.a[side], self.setting.log_a[side]
            nodes = self.setting.nodes
            ones = [ball(1)] * len(window)
            out.append(
                {
                    i: nodes.column(a[i], log_a[i], window, t) if i in active else ones
                    for i in self.alive
                }
            )
        return out

    def _product(self, members: list[int], weights: dict[int, Ball]) -> list[list[Ball]] | None:
        """Sum over members of weight z at all pairs of nodes; None when there are none."""
        members = [i for i in members if i in weights]
        if not members:
            return None
        left = matrix([[x * weights[i] for x in self.columns[0][i]] for i in members])
        right = matrix([self.columns[1][i] for i in members])
        return (left.transpose() * right).tolist()

    def _levels(self, weights: dict[int, Ball]) -> list[list[list[Ball]] | None]:
        return [self._product(members, weights) for members in self.classes]

    def _level(self, tables: list[Any], i: int, j: int, factor: Ball) -> Any:
        parts = [ball(0) if t is None else t[i][j] * factor for t in tables]
        return affine(parts[0], parts[1:])

    @cached_property
    def _phi(self) -> list[list[Any]]:
        """Phi' and Phi'' at all pairs of nodes."""
        tables = self._levels({i: self.setting.mass[i] for i in self.alive})
        out = []
        for i in range(len(self.windows[0])):
            row = []
            for j in range(len(self.windows[1])):
                u = [ball(0) if t is None else t[i][j] for t in tables]
                row.append(self.setting.law.derivatives(u[0], u[1:], 2))
            out.append(row)
        return out

    def _weights(self, side: int) -> dict[int, Ball]:
        """pi a v of the active atoms of one head."""
        v, a, mass = self.v(side), self.setting.a[side], self.setting.mass
        return {i: mass[i] * a[i] * v[i] for i in self.active[side]}

    @cached_property
    def _relative(self) -> Ball:
        """Error of both rules relative to E|.|, windows' right ends included."""
        delta = discretisation(1, self.setting.nodes.m)
        tails = []
        for t, least in zip(self.times, self.least, strict=True):
            end = least * t[-1]
            tails.append(right_tail(1, end) if less(1, end) else Ball.nan())
        return magnitude((1 + delta) ** 2 - 1 + tails[0] + (1 + delta) * tails[1])

    def _left(self, side: int, size: Ball) -> Ball:
        """E[(sum |v| a C) Z] t0 for 0 <= Z <= size: what the left end of one window drops."""
        weights = self._weights(side)
        total = sum((magnitude(x) for x in weights.values()), ball(0))
        return magnitude(total * self.setting.law.factorial_moment(1) * self.times[side][0] * size)

    def moment(self, left_size: Ball, right_size: Ball) -> Ball:
        """E[(v . gamma)(v' . gamma'); cell]; the sizes bound the heads' root mean squares."""
        a_left, a_right = self._levels(self._weights(0)), self._levels(self._weights(1))
        both = self.active[0] & self.active[1]
        v, a = (self.v(0), self.v(1)), self.setting.a
        mass = self.setting.mass
        b = self._levels({i: mass[i] * a[0][i] * a[1][i] * v[0][i] * v[1][i] for i in both})
        out = ball(0)
        for i, t in enumerate(self.times[0]):
            for j, s in enumerate(self.times[1]):
                phi1, phi2 = self._phi[i][j]
                x, y = self._level(a_left, i, j, t), self._level(a_right, i, j, s)
                z = self._level(b, i, j, t * s)
                out += top(x * y * phi2 + z * phi1)
        out = out * self.setting.nodes.h**2
        largest = [_largest(x.values()) for x in v]
        cut = self._left(0, largest[1]) + 2 * self._left(1, largest[0])
        return widen(out, magnitude(self._relative * left_size * right_size + cut))

    def total(self, left_slopes: dict[int, Ball]) -> Ball:
        """The moment once the left slopes are known: absolutely, not relatively, narrow."""
        v = self.v(0)
        return sum((v[i] * x for i, x in left_slopes.items()), ball(0))

    def left_slopes(self, right_size: Ball) -> dict[int, Ball]:
        """E[(v' . gamma') Gamma_a; cell] for the atoms of the left head."""
        return self._slopes(0, right_size)

    def right_slopes(self, left_size: Ball) -> dict[int, Ball]:
        """E[(v . gamma) Gamma'_a; cell] for the atoms of the right head."""
        return self._slopes(1, left_size)

    def _slopes(self, side: int, size: Ball) -> dict[int, Ball]:
        other = 1 - side
        sums = self._levels(self._weights(other))
        a, mass, v = self.setting.a, self.setting.mass, self.v(other)
        h2 = self.setting.nodes.h**2
        out = {}
        for c, members in enumerate(self.classes):
            known = {c - 1} if c else set()
            members = [i for i in members if i in self.active[side]]
            if not members:
                continue
            flat, once = self._node_weights(sums, other, known)
            bent = self._contract(members, flat)
            own = self._contract(members, once)
            for i, x, y in zip(members, bent, own, strict=True):
                extra = y * a[other][i] * v[i] if i in self.active[other] else ball(0)
                computed = (x + extra) * mass[i] * a[side][i] * h2
                first = self.setting.law.factorial_moment(1)
                near = mass[i] * a[side][i] * first * self.times[side][0] * _largest(v.values())
                cut = magnitude(near) + 2 * self._left(other, ball(1))
                out[i] = widen(computed, magnitude(self._relative * size + cut))
        return out

    def _node_weights(
        self, sums: list[Any], other: int, known: set[int]
    ) -> tuple[BallMatrix, BallMatrix]:
        """t (Phi'' A') and t Phi' t' at all pairs of nodes, t the head's own node."""
        flat, once = [], []
        for i, t in enumerate(self.times[0]):
            flat_row, once_row = [], []
            for j, s in enumerate(self.times[1]):
                phi1, phi2 = self._phi[i][j]
                far = self._level(sums, i, j, t * s)
                flat_row.append(top(far * phi2, known))
                once_row.append(top(phi1, known) * (t * s))
            flat.append(flat_row)
            once.append(once_row)
        return matrix(flat), matrix(once)

    def _contract(self, members: list[int], table: BallMatrix) -> list[Ball]:
        """Sum over both nodes of z_i(t1, t2) table, for each member."""
        left = matrix([self.columns[0][i] for i in members])
        rows = (left * table).tolist()
        return [
            sum((x * y for x, y in zip(row, self.columns[1][i], strict=True)), ball(0))
            for row, i in zip(rows, members, strict=True)
        ]


def _least(values: list[Ball]) -> Ball:
    out = values[0]
    for x in values[1:]:
        out = out.min(x)
    return out


def _largest(values: Any) -> Ball:
    out = ball(0)
    for x in values:
        out = out.max(magnitude(x))
    return out
