"""Languages decided by which symbols occur: Occurrence, Or, And.

A label is written as a disjoint union of *cells*: words in which every group of symbols is
represented and none of the absent symbols occurs. Averages over a cell are subset differences
of one generating function (THEORY 2), so no average is ever formed as 1 minus another.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .words import Geometric, LengthLaw, Words

__all__ = ["And", "Cell", "Occurrence", "Or", "Task", "balanced_p"]

LARGEST_D = 10**15
SIZES = "the alphabet needs d >= 2 symbols, at most 10^15"


@dataclass(frozen=True)
class Cell:
    """Words with at least one symbol of every group and no absent symbol.

    Attributes
    ----------
    groups : tuple of tuple of int
        Each group must be represented.
    absent : tuple of int
        Symbols that do not occur.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    absent: tuple[int, ...] = ()

    def signed_terms(self) -> list[tuple[int, frozenset[int]]]:
        """The cell as a signed sum of 1{no symbol of T occurs}: pairs (sign, T)."""
        terms = []
        for k in range(len(self.groups) + 1):
            for dropped in itertools.combinations(self.groups, k):
                absent = frozenset(self.absent).union(*dropped)
                terms.append(((-1) ** k, absent))
        return terms


class Task(ABC):
    """A language over {0, ..., d-1} together with a word distribution."""

    d: int
    targets: tuple[int, ...]
    words: Words

    @property
    @abstractmethod
    def positive(self) -> tuple[Cell, ...]:
        """Disjoint cells whose union is the language."""

    @property
    @abstractmethod
    def negative(self) -> tuple[Cell, ...]:
        """Disjoint cells whose union is the complement."""

    @property
    def p_positive(self) -> float:
        """P(y = +1)."""
        return sum(self._mass(cell) for cell in self.positive)

    @property
    def p_negative(self) -> float:
        """P(y = -1), not formed as 1 - P(y = +1)."""
        return sum(self._mass(cell) for cell in self.negative)

    def _mass(self, cell: Cell) -> float:
        return cell_mass(cell, self.words.length, self.words, self.d)

    def labels(self, counts: Any) -> np.ndarray:
        """Labels +1 or -1 of words given by their symbol counts, shape (..., d) -> (...)."""
        return self.labels_by_targets(np.asarray(counts)[..., list(self.targets)])

    def labels_by_targets(self, counts: Any) -> np.ndarray:
        """The same from the counts of the targets alone, in their order, (..., T) -> (...)."""
        return np.where(self._decide(np.asarray(counts) > 0), 1, -1)

    @abstractmethod
    def _decide(self, present: np.ndarray) -> Any: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, targets={self.targets}, words={self.words})"


def cell_mass(cell: Cell, law: LengthLaw, words: Words, d: int) -> float:
    """P(the word lies in the cell), by exact rationals where the law has them."""
    uniform = words.symbols is None
    pi = None if uniform else words.exact_probabilities(d)

    def weight(symbols: Any) -> Fraction:
        if pi is None:
            return Fraction(len(symbols), d)
        return sum((pi[j] for j in symbols), Fraction(0))

    if isinstance(law, Geometric):
        p = law.exact_p

        def phi(u: Fraction) -> Fraction:
            return p * u / (p + (1 - p) * (1 - u))

        return float(sum(sign * phi(1 - weight(absent)) for sign, absent in cell.signed_terms()))
    from mpmath import mp, mpf

    with mp.workdps(60):

        def phi_real(u: Fraction) -> Any:
            x = mpf(u.numerator) / u.denominator
            return _phi_mp(law, x)

        total = sum(sign * phi_real(1 - weight(absent)) for sign, absent in cell.signed_terms())
        return float(total)


def _phi_mp(law: Any, u: Any) -> Any:
    from mpmath import expm1, fsum, mpf

    if hasattr(law, "exact_rate"):
        rate = mpf(law.exact_rate.numerator) / law.exact_rate.denominator
        return expm1(rate * u) / expm1(rate)
    return fsum(u**k for k in law.lengths) / len(law.lengths)


def _finish(task: Any, words: Words | None) -> Words:
    if words is None:
        p = balanced_p(task)
        return Words(Geometric(p))
    if not isinstance(words, Words):
        raise check.refuse(
            "words", words, "must be a Words object", "pass popgd.Words(popgd.Geometric(p)) or None"
        )
    if words.symbols is not None and len(words.symbols) != task.d:
        raise check.refuse(
            "words.symbols",
            len(words.symbols),
            f"needs one probability for each of the d = {task.d} symbols",
            "pass d probabilities or None",
        )
    return words


class _Targeted(Task):
    def __init__(self, d: int, targets: Any, words: Words | None = None):
        self.d = check.integer("d", d, 2, LARGEST_D, remedy=SIZES)
        self.targets = check.symbols("targets", targets, self.d)
        if len(self.targets) > 8:
            raise check.refuse("targets", targets, "at most 8 targets", "pass 8 symbols or fewer")
        self.words = _finish(self, words)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.d, self.targets, self.words))


class Or(_Targeted):
    """At least one of `targets` occurs.

    Parameters
    ----------
    d : int
        Alphabet size, >= 2.
    targets : sequence of int
        Distinct symbols in 0..d-1, at most 8.
    words : Words, optional
        Word distribution; None means uniform symbols and the geometric law with
        P(y = +1) = 1/2.

    Raises
    ------
    BadParameter
        When an argument is out of range, or no balanced geometric law exists.
    """

    @property
    def positive(self) -> tuple[Cell, ...]:
        return (Cell(groups=(self.targets,)),)

    @property
    def negative(self) -> tuple[Cell, ...]:
        return (Cell(absent=self.targets),) if len(self.targets) < self.d else ()

    def _decide(self, present: np.ndarray) -> Any:
        return present.any(axis=-1)


class Occurrence(Or):
    """The occurrence language: the symbol `target` occurs in the word.

    Parameters
    ----------
    d : int
        Alphabet size, >= 2.
    target : int
        Symbol in 0..d-1.
    words : Words, optional
        Word distribution; None means uniform symbols and the geometric law with p = 1/(d-1),
        for which P(y = +1) = 1/2 exactly.

    Raises
    ------
    BadParameter
        When d < 2 or the target is not a symbol.

    Notes
    -----
    Source: Paper 2.
    """

    def __init__(self, d: int, target: int = 0, words: Words | None = None):
        d = check.integer("d", d, 2, LARGEST_D, remedy=SIZES)
        super().__init__(d, [check.symbol("target", target, d)], words)

    @property
    def target(self) -> int:
        """The target symbol s."""
        return self.targets[0]

    def __repr__(self) -> str:
        return f"Occurrence(d={self.d}, target={self.target}, words={self.words})"


class And(_Targeted):
    """All of `targets` occur.

    Parameters
    ----------
    d, targets, words
        As for `Or`.
    """

    @property
    def positive(self) -> tuple[Cell, ...]:
        return (Cell(groups=tuple((s,) for s in self.targets)),)

    @property
    def negative(self) -> tuple[Cell, ...]:
        # split by the first target that is missing: disjoint, no signs
        return tuple(
            Cell(groups=tuple((s,) for s in self.targets[:i]), absent=(missing,))
            for i, missing in enumerate(self.targets)
        )

    def _decide(self, present: np.ndarray) -> Any:
        return present.all(axis=-1)


def balanced_p(task: Task) -> Fraction | float:
    """The geometric stopping probability p for which P(y = +1) = 1/2.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And; its own length law is ignored, its symbol law is used.

    Returns
    -------
    Fraction or float
        Exact for Occurrence and Or: p = pi_T / (1 - pi_T), which is 1/(d-1) for one target.
        For And the root of a polynomial, correctly rounded to within 1 ulp.

    Raises
    ------
    BadParameter
        When no p in (0, 1] balances the task.

    Notes
    -----
    Source: Paper 2 (d, one target); THEORY 1. Error: none for Fractions.
    """
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass for example popgd.Occurrence(50)")
    words = getattr(task, "words", None)
    if words is None or words.symbols is None:
        pi_targets = [Fraction(1, task.d)] * len(task.targets)
    else:
        pi = words.exact_probabilities(task.d)
        pi_targets = [pi[s] for s in task.targets]
    remedy = "pass words=popgd.Words(popgd.Geometric(p)) with a p of your choice"
    if not isinstance(task, And) or len(task.targets) == 1:
        mass = sum(pi_targets, Fraction(0))
        if 2 * mass > 1:
            raise check.refuse(
                "targets", task.targets, "occur too often: no p balances the labels", remedy
            )
        return mass / (1 - mass)
    return _balanced_and(pi_targets)


def _balanced_and(pi: list[Fraction]) -> float:
    """Bisection on P(all targets occur) - 1/2, decreasing in p, in exact rationals."""

    def excess(p: Fraction) -> Fraction:
        total = Fraction(-1, 2)
        for k in range(len(pi) + 1):
            for dropped in itertools.combinations(pi, k):
                u = 1 - sum(dropped, Fraction(0))
                total += (-1) ** k * p * u / (p + (1 - p) * (1 - u)) if u else 0
        return total

    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2 if low == 0 or high / low < 4 else math.sqrt(low * high)
        if not low < middle < high:
            return high
        if excess(Fraction(middle)) > 0:
            low = middle
        else:
            high = middle
