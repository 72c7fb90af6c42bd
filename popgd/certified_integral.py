"""Second moments of v . gamma over one cell, as balls.

The integrals of THEORY 2 by the trapezoidal rule of THEORY 3; the error of the rule, of the
window and of rounding all end up in the radius.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from .ball import (
    Ball,
    BallMatrix,
    Exact,
    approximate,
    ball,
    bits,
    less,
    magnitude,
    matrix,
    precision,
    widen,
)
from .certified_laws import Pair, affine, ball_law, top
from .certified_problem import LabelledCell, Problem
from .certified_quadrature import (
    SQUARINGS,
    Nodes,
    Window,
    discretisation,
    right_tail,
    share,
    step,
    target_bits,
)
from .errors import NotAvailable

__all__ = [
    "LARGEST",
    "Part",
    "Setting",
    "Tails",
    "at_extra_precision",
    "integrate_second",
    "risk",
    "total",
]

T = TypeVar("T")

LARGEST = 2 * 10**7  # exponentials in one evaluation: some 20 s and 2 GB


def extra_bits(problem: Problem) -> int:
    """Precision that makes up for squarings, for 1 - u near 0 and for sums over nodes."""
    law = ball_law(problem.law)
    return SQUARINGS + 24 + max(0, int(np.log2(approximate(law.factorial_moment(1)))))


class Setting:
    """The problem's numbers as balls at the current precision, shared by its cells.

    Attributes
    ----------
    order : int
        Largest order k of the moments that will be taken (it decides step and window).
    target : int
        Relative accuracy asked from the quadrature, in bits.
    """

    def __init__(self, problem: Problem, order: int, target: int):
        self.problem, self.order, self.target = problem, order, target
        self.law = ball_law(problem.law)
        self.nodes = Nodes(step(order, target))
        alpha = [ball(atom.alpha) for atom in problem.atoms]
        self.a = [x.exp() for x in alpha]
        self.log_a = np.array([approximate(x) for x in alpha])
        self.mass = [ball(atom.mass) for atom in problem.atoms]
        self._columns: dict[tuple[int, Window], list[Ball]] = {}
        self._matrices: dict[tuple[Any, ...], BallMatrix] = {}
        self._times: dict[Window, list[Ball]] = {}

    def length_scale(self) -> float:
        """Log of the root mean square length."""
        first, second = self.law.factorial_moment(1), self.law.factorial_moment(2)
        return float(np.log(approximate(first + second)) / 2)

    def parts(self) -> list[Part]:
        """Every cell by highest tier present; together they are all words, each once."""
        tiers = sorted({atom.tier for atom in self.problem.atoms})
        every = [Part(self, cell, tier) for cell in self.problem.cells for tier in tiers]
        kept = [part for part in every if not part.empty]
        for part, window in zip(kept, share([part.window for part in kept]), strict=True):
            part.window = window
        return kept

    def times(self, window: Window) -> list[Ball]:
        """t at the nodes of a window."""
        if window not in self._times:
            self._times[window] = self.nodes.times(window)
        return self._times[window]

    def column(self, i: int, window: Window) -> list[Ball]:
        """exp(-a t) of atom i at the nodes of a window."""
        key = (i, window)
        if key not in self._columns:
            t = self.times(window)
            self._columns[key] = self.nodes.column(self.a[i], self.log_a[i], window, t)
        return self._columns[key]

    def columns(self, members: list[int], window: Window, span: slice) -> BallMatrix:
        """exp(-a t), shape (atoms, nodes of the window in the span)."""
        key = (tuple(members), window, span.start, span.stop)
        if key not in self._matrices:
            self._matrices[key] = matrix([self.column(i, window)[span] for i in members])
        return self._matrices[key]


@dataclass(frozen=True)
class Tails:
    """Errors of the rule for moments of order k: relative to E|.|, and of the left cut."""

    relative: Ball
    t0: Ball

    def apply(self, computed: Ball, absolute: Ball, left: Ball) -> Ball:
        """Widen by relative * E|.| + left, with E|.| <= (absolute + left) / (1 - relative)."""
        bound = (magnitude(absolute) + left) / (1 - self.relative)
        return widen(computed, self.relative * bound + left)


class Part:
    """One cell restricted to words whose highest tier present is `tier`.

    Attributes
    ----------
    active : list of int
        Atoms with attention: of this tier and allowed in the cell.
    member : dict
        Group number of an atom, for those in a group.
    """

    def __init__(self, setting: Setting, cell: LabelledCell, tier: int):
        atoms = setting.problem.atoms
        self.setting, self.cell = setting, cell
        alive = [i for i, x in enumerate(atoms) if x.tier <= tier and i not in cell.absent]
        self.active = [i for i in alive if atoms[i].tier == tier]
        self.lower = [i for i in alive if atoms[i].tier < tier]
        living = set(alive)
        self.groups = [[i for i in group if i in living] for group in cell.groups]
        self.member = {i: g for g, group in enumerate(self.groups) for i in group}
        if not self.empty:
            self.window = self._own_window()

    @property
    def empty(self) -> bool:
        """Whether no word belongs here."""
        return not self.active or not all(self.groups)

    @property
    def label(self) -> int:
        return self.cell.label

    def v(self, i: int) -> Exact:
        """Residual of atom i on the words of this cell."""
        atom = self.setting.problem.atoms[i]
        value = atom.positive if self.label == 1 else atom.negative
        assert value is not None
        return value

    @property
    def silent(self) -> bool:
        """Whether v . gamma is zero on every word."""
        return all(self.v(i).fraction == 0 for i in self.active)

    @cached_property
    def classes(self) -> list[list[int]]:
        """Active atoms by membership: free ones first, then those of each group."""
        out: list[list[int]] = [[] for _ in range(len(self.groups) + 1)]
        for i in self.active:
            out[self.member.get(i, -1) + 1].append(i)
        return out

    @cached_property
    def least(self) -> Ball:
        """A lower bound of the normaliser S on the words here."""
        a = self.setting.a
        out = _minimum([a[i] for i in self.active])
        if self.groups:
            active, zero = set(self.active), ball(0)
            smallest = [_minimum([a[i] if i in active else zero for i in g]) for g in self.groups]
            out = out.max(sum(smallest, ball(0)))
        return out

    def _own_window(self) -> Window:
        setting = self.setting
        scale = float(setting.log_a[self.active].max()) + setting.length_scale()
        least = approximate(self.least.log())
        window = Window.choose(setting.nodes.m, setting.order, setting.target, scale, least)
        _affordable(len(window) * len(self.active))
        return window

    @property
    def whole(self) -> slice:
        """All nodes of the window."""
        return slice(0, len(self.window))

    def t(self, span: slice) -> list[Ball]:
        """Nodes."""
        return self.setting.times(self.window)[span]

    def z(self, span: slice) -> list[BallMatrix | None]:
        """exp(-a t), one matrix (atoms, nodes) a membership class."""
        columns, window = self.setting.columns, self.window
        return [columns(x, window, span) if x else None for x in self.classes]

    def sums(self, span: slice, *coefficients: dict[int, Ball]) -> list[list[list[Ball]]]:
        """Sum of c_i z_i for each set of coefficients c: by membership class, then by node."""
        count = span.stop - span.start
        zero = [ball(0)] * count
        tables = []
        for members, z in zip(self.classes, self.z(span), strict=True):
            if z is None:
                tables.append([zero] * len(coefficients))
            else:
                rows = matrix([[c[i] for i in members] for c in coefficients])
                flat = (rows * z).entries()
                tables.append([flat[c * count : (c + 1) * count] for c in range(len(coefficients))])
        return [[table[c] for table in tables] for c in range(len(coefficients))]

    def levels(self, tables: list[list[Ball]], factors: Sequence[Ball]) -> list[Any]:
        """The sums of one set of coefficients times a factor a node, ready to multiply."""
        if len(tables) == 1:
            return [x * f for x, f in zip(tables[0], factors, strict=True)]
        if len(tables) == 2:
            return [Pair(x * f, y * f) for x, y, f in zip(*tables, factors, strict=True)]
        scaled = [[x * f for x, f in zip(table, factors, strict=True)] for table in tables]
        return [affine(node[0], node[1:]) for node in zip(*scaled, strict=True)]

    def derivatives(self, tables: list[list[Ball]], order: int) -> list[list[Any]]:
        """Phi', ..., Phi^(order) at every node, from the active part of u."""
        mass, law = self.setting.mass, self.setting.law
        constant = [ball(0)] * len(tables)
        for i in self.lower:
            constant[self.member.get(i, -1) + 1] += mass[i]
        if self.lower:
            tables = [[x + c for x in table] for table, c in zip(tables, constant, strict=True)]
        return [law.derivatives(u[0], u[1:], order) for u in zip(*tables, strict=True)]

    def tails(self, k: int) -> Tails:
        """Error bounds for moments of order k; not finite unless S t1 >= k is certain."""
        t = self.t(self.whole)
        end = self.least * t[-1]
        delta = discretisation(k, self.setting.nodes.m)
        right = right_tail(k, end) if less(k, end) else Ball.nan()
        relative = magnitude(delta + right)
        return Tails(relative if less(relative, 1) else Ball.nan(), t[0])

    def linear(self) -> tuple[dict[int, Ball], dict[int, Ball]]:
        """pi a v and pi a^2 v^2 of the active atoms, the coefficients of A / t and B / t^2."""
        mass, a = self.setting.mass, self.setting.a
        v = {i: ball(self.v(i)) for i in self.active}
        first = {i: mass[i] * a[i] * v[i] for i in self.active}
        return first, {i: first[i] * a[i] * v[i] for i in self.active}

    def second_moment(self) -> Ball:
        """E[(v . gamma)^2; cell]."""
        if self.silent:
            return ball(0)
        first, second = self.linear()
        span, mass = self.whole, self.setting.mass
        u, a_sums, b_sums = self.sums(span, {i: mass[i] for i in self.active}, first, second)
        t = self.t(span)
        big_a, big_b = self.levels(a_sums, t), self.levels(b_sums, [x * x for x in t])
        return self.finish_second(integrate_second(self.derivatives(u, 2), big_a, big_b))

    def finish_second(self, integrand: Ball) -> Ball:
        """E[(v . gamma)^2; cell] from the sum of its integrand over the nodes."""
        first, second = self.linear()
        w1, w2 = total(abs(x) for x in first.values()), total(second.values())
        phi1, phi2 = (self.setting.law.factorial_moment(n) for n in (1, 2))
        tails = self.tails(2)
        left = magnitude((phi2 * w1 * w1 + phi1 * w2) * tails.t0**2 / 2)
        computed = integrand * self.setting.nodes.h
        return tails.apply(computed, computed, left)


def integrate_second(phi: list[list[Any]], big_a: list[Any], big_b: list[Any]) -> Ball:
    """Sum over nodes of Phi'' A^2 + Phi' B."""
    return total(top(x * x * d[1] + y * d[0]) for d, x, y in zip(phi, big_a, big_b, strict=True))


def _minimum(values: list[Ball]) -> Ball:
    out = values[0]
    for x in values[1:]:
        out = out.min(x)
    return out


def total(values: Iterable[Ball]) -> Ball:
    return sum(values, ball(0))


def _affordable(count: int) -> None:
    if count > LARGEST:
        raise NotAvailable(
            f"{count:.1e} exponentials are needed, at most {LARGEST:.0e} are computed; lump"
            " symbols by giving them equal weights, or use popgd.PopulationRisk"
        )


def at_extra_precision(problem: Problem, order: int, function: Callable[[Setting], T]) -> T:
    """Run `function` on the problem with bits to spare, for the accuracy of the present ones."""
    target = target_bits()
    _affordable(len(problem.atoms) * target)  # a node a bit is fewer than are needed
    with precision(bits() + extra_bits(problem)):
        return function(Setting(problem, order, target))


def single_residual(problem: Problem, i: int) -> Ball:
    """f - y on the word made of one symbol of atom i."""
    atom = problem.atoms[i]
    value = atom.positive if problem.single_label(i) == 1 else atom.negative
    assert value is not None
    return ball(value)


def risk(problem: Problem) -> Ball:
    """The risk L at the current precision, relative error about 2^(GUARD - bits)."""

    if problem.single_letters:
        v = (single_residual(problem, i) for i in range(len(problem.atoms)))
        return total(ball(x.mass) * y * y for x, y in zip(problem.atoms, v, strict=True)) / 2

    def evaluate(setting: Setting) -> Ball:
        return total(part.second_moment() for part in setting.parts()) / 2

    return at_extra_precision(problem, 2, evaluate)
