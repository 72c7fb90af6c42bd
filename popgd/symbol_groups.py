"""Symbols that the model cannot tell apart, and the words made of given groups of them.

Symbols with equal weights and the same role in the label form a group. Risk, gradients and
accuracy depend on group counts only; a symbol's share of its group's gradient is pi_i / Pi.
Within one *pattern* (exactly which groups occur) the label is constant and attention can be
measured in units of the strongest group present, so that nothing overflows.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .languages import Or, Task
from .tiers import Tiers

__all__ = ["Groups", "Pattern", "group_symbols", "patterns"]


@dataclass(frozen=True)
class Groups:
    """Groups of symbols, the most frequent one last ("the bulk").

    Attributes
    ----------
    member : array of shape (d,)
        Group of each symbol.
    mass : tuple of Fraction
        Pi_G, the probability that one symbol of a word lies in the group; exact.
    alpha : tuple of (int, Fraction)
        Tier and exact attention weight of each group.
    beta : tuple of Fraction
        Exact output weight of each group; on targets residual + 2.
    rounded : array of shape (g,)
        The double beta of each group, used on negative words.
    share : array of shape (d,)
        pi_i / Pi_G, the symbol's share of its group.
    first : array of shape (g,)
        One symbol of each group.
    """

    member: np.ndarray
    mass: tuple[Fraction, ...]
    alpha: tuple[tuple[int, Fraction], ...]
    beta: tuple[Fraction, ...]
    rounded: np.ndarray
    share: np.ndarray
    first: np.ndarray

    @property
    def count(self) -> int:
        """Number of groups g."""
        return len(self.mass)


def group_symbols(task: Task, alpha: Any, beta: np.ndarray, residual: np.ndarray | None) -> Groups:
    """Group the symbols of one weight vector by equal (alpha, beta, residual, role).

    Parameters
    ----------
    task : Task
        Targets of an `Or` share a role; every other target has a role of its own.
    alpha : array or Tiers of shape (d,)
    beta : array of shape (d,)
    residual : array of shape (number of targets,), optional

    Returns
    -------
    Groups

    Notes
    -----
    Source: THEORY 4. Error: none (exact rationals).
    """
    targets = list(task.targets)
    role, offset = np.zeros(task.d), np.zeros(task.d)
    role[targets] = 1.0 if isinstance(task, Or) else 1.0 + np.arange(len(targets))
    if residual is not None:
        offset[targets] = residual
    tier = np.zeros(task.d)
    if isinstance(alpha, Tiers):
        alpha, tier = alpha.offset, alpha.tier.astype(float)
    first, member = _distinct([tier, alpha, beta, role, offset])
    mass = _group_mass(task, member, len(first))
    order = sorted(range(len(first)), key=lambda g: mass[g])
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    first, member = first[order], place[member]
    exact_beta = [Fraction(float(beta[i])) for i in first]
    if residual is not None:
        exact_beta = [
            Fraction(float(offset[i])) + 2 if role[i] else b
            for i, b in zip(first, exact_beta, strict=True)
        ]
    ordered = tuple(mass[g] for g in order)
    pi = task.words.probabilities(task.d)
    return Groups(
        member,
        ordered,
        tuple((int(tier[i]), Fraction(float(alpha[i]))) for i in first),
        tuple(exact_beta),
        beta[first],
        pi / np.array([float(x) for x in ordered])[member],
        first,
    )


def _distinct(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """First index of each distinct row and the class of each row; faster than unique rows."""
    member = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, code = np.unique(column, return_inverse=True)
        member = np.unique(member * len(values) + code, return_inverse=True)[1]
    _, first = np.unique(member, return_index=True)
    return first, member


def _group_mass(task: Task, member: np.ndarray, count: int) -> list[Fraction]:
    if task.words.symbols is None:
        return [Fraction(int(n), task.d) for n in np.bincount(member, minlength=count)]
    mass = [Fraction(0)] * count
    for g, pi in zip(member, task.words.exact_probabilities(task.d), strict=True):
        mass[g] += pi
    return mass


@dataclass(frozen=True)
class Pattern:
    """The words in which exactly the groups `present` occur.

    Attributes
    ----------
    present : tuple of int
        Groups that occur.
    label : int
        +1 or -1.
    attention : array of shape (g,)
        exp(alpha_G - alpha_R), R the strongest group present; 0 for absent groups.
    strongest : int
        R.
    weight : array of shape (g,)
        v_G: beta_G - 2 on positive words, beta_G on negative ones (THEORY 1).
    difference : array of shape (g, g)
        v_G - v_H, each rounded once.
    threshold : tuple of Fraction
        beta_G - 1 exactly: f > 0 when the sum of (beta_G - 1) a_G n_G is.
    level : bool
        All groups present that are attended to have the same attention weight.
    mass : float
        Upper bound on the probability that one symbol lies in a group present.
    """

    present: tuple[int, ...]
    label: int
    attention: np.ndarray
    strongest: int
    weight: np.ndarray
    difference: np.ndarray
    threshold: tuple[Fraction, ...]
    level: bool
    mass: float

    @property
    def mask(self) -> int:
        """Bit G says that group G occurs."""
        return sum(1 << g for g in self.present)

    @cached_property
    def largest(self) -> float:
        """Largest |v_G| over the groups present."""
        return max(abs(float(self.weight[g])) for g in self.present)

    @cached_property
    def residual_bounds(self) -> list[np.ndarray]:
        """Polynomials in the length m, each an upper bound on |f - y| in this pattern."""
        others = [abs(self.weight[g]) * self.attention[g] for g in self._weaker]
        slope = max(others, default=0.0)
        # n_R >= 1 gives gamma_G <= a_G n_G for every other group
        return [_poly(self.largest), _poly(abs(self.weight[self.strongest]), slope)]

    @cached_property
    def loss_bounds(self) -> list[np.ndarray]:
        """The same for (f - y)^2 / 2."""
        return [_times(r, r) * 0.5 for r in self.residual_bounds]

    @property
    def _weaker(self) -> list[int]:
        return [g for g in self.present if g != self.strongest]

    def output_bounds(self, group: int) -> list[np.ndarray]:
        """The same for |f - y| gamma_G."""
        attention = [_poly(1.0)]
        if group != self.strongest:
            attention.append(_poly(0.0, float(self.attention[group])))
        return [_times(r, a) for r, a in itertools.product(self.residual_bounds, attention)]

    def attention_bounds(self, group: int) -> list[np.ndarray]:
        """The same for |f - y| gamma_G |v_G - (f - y)|."""
        gaps = np.abs(self.difference[group])
        spread = [_poly(max(float(gaps[h]) for h in self.present))]
        if group == self.strongest:
            slope = max((float(gaps[h] * self.attention[h]) for h in self._weaker), default=0.0)
            spread.append(_poly(0.0, slope))
        pairs = itertools.product(self.output_bounds(group), spread)
        return [_times(r, s) for r, s in pairs]


def _poly(constant: float, slope: float = 0.0) -> np.ndarray:
    return np.array([constant, slope, 0.0, 0.0])


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of two polynomials whose total degree is at most 3."""
    return np.convolve(a, b)[:4]


def patterns(task: Task, groups: Groups) -> dict[int, Pattern]:
    """All non-empty sets of groups, by bit mask.

    Parameters
    ----------
    task : Task
    groups : Groups

    Returns
    -------
    dict of int to Pattern

    Notes
    -----
    Attention ratios come from exact differences of alpha, so a spread of 700 costs no digits.
    Source: THEORY 1, 4. Error: each number is rounded once, exp within 4 half-ulps.
    """
    out = {}
    for mask in range(1, 1 << groups.count):
        present = tuple(g for g in range(groups.count) if mask >> g & 1)
        out[mask] = _pattern(task, groups, present)
    return out


def _pattern(task: Task, groups: Groups, present: tuple[int, ...]) -> Pattern:
    occurs = np.isin(groups.member, present)
    label = int(task.labels(occurs))
    strongest = max(present, key=lambda g: groups.alpha[g])
    attending = sorted((groups.alpha[g] for g in present), reverse=True)
    exact = groups.beta if label == 1 else tuple(Fraction(float(b)) for b in groups.rounded)
    shift = 2 if label == 1 else 0
    return Pattern(
        present,
        label,
        np.array(
            [
                _ratio(groups.alpha[g], groups.alpha[strongest]) if g in present else 0.0
                for g in range(groups.count)
            ]
        ),
        strongest,
        np.array([float(b - shift) for b in exact]),
        np.array([[float(b - c) for c in exact] for b in exact]),
        tuple(b - 1 for b in exact),
        len({a for a in attending if a[0] == attending[0][0]}) == 1,
        min(1.0, float(sum(groups.mass[g] for g in present)) * (1 + 2**-50)),
    )


def _ratio(weight: tuple[int, Fraction], strongest: tuple[int, Fraction]) -> float:
    """exp(weight - strongest), 0 in a lower tier."""
    if weight[0] < strongest[0]:
        return 0.0
    exact = weight[1] - strongest[1]
    high = float(exact)
    if high < -760.0:
        return 0.0
    return math.exp(high) * (1.0 + float(exact - Fraction(high)))
