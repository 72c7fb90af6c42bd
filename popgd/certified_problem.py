"""From a task and exact weights to atoms: symbols with equal weights and roles, lumped.

Symbols of one atom behave like a single symbol of their total probability, so a large
alphabet with few distinct weights is a small problem (THEORY 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import _validate as check
from .ball import Exact, exact
from .languages import Cell, Task
from .tiers import Tiers
from .words import FixedLength, Geometric, LengthLaw, UniformLength

__all__ = ["Atom", "LabelledCell", "Problem", "build", "read_weights"]


@dataclass(frozen=True, slots=True)
class Atom:
    """Symbols with equal weights, probability and role.

    Attributes
    ----------
    size : int
        Number of symbols.
    mass : Fraction
        Their total probability.
    alpha : Exact
        Attention weight, within its tier.
    tier : int
        Order of growth (0 unless attention weights are limits).
    positive, negative : Exact or None
        Residual v on positive and on negative words; None where the output is free.
    """

    size: int
    mass: Fraction
    alpha: Exact
    tier: int
    positive: Exact | None
    negative: Exact | None


@dataclass(frozen=True, slots=True)
class LabelledCell:
    """A cell of the task in terms of atoms: indices that must, and that must not, occur."""

    label: int
    groups: tuple[tuple[int, ...], ...]
    absent: frozenset[int]


@dataclass(frozen=True)
class Problem:
    """Everything the integrals need, exactly.

    Attributes
    ----------
    law : LengthLaw
    atoms : tuple of Atom
    cells : tuple of LabelledCell
    atom_of : tuple of int
        Atom of every symbol (empty when the atoms were given directly).
    is_target : tuple of bool
        Whether each atom consists of targets.
    from_float : bool
        Whether a float went in.
    """

    law: LengthLaw
    atoms: tuple[Atom, ...]
    cells: tuple[LabelledCell, ...]
    atom_of: tuple[int, ...]
    is_target: tuple[bool, ...]
    from_float: bool

    @property
    def single_letters(self) -> bool:
        """Whether every word has one symbol, so that attention does not matter."""
        law = self.law
        return (
            (isinstance(law, Geometric) and law.exact_p == 1)
            or (isinstance(law, FixedLength) and law.length == 1)
            or (isinstance(law, UniformLength) and law.longest == 1)
        )

    def single_label(self, i: int) -> int:
        """The label of the word made of one symbol of atom i."""
        accepted = any(
            cell.label == 1 and i not in cell.absent and all(i in g for g in cell.groups)
            for cell in self.cells
        )
        return 1 if accepted else -1


def read_weights(name: str, value: Any, d: int, *, length: int | None = None) -> list[Exact]:
    """One exact number a symbol; strings may use the name d."""
    count = d if length is None else length
    remedy = f"pass {count} numbers (int, Fraction, float or an expression such as '1/3')"
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        raise check.refuse(name, value, "must be a sequence of numbers", remedy)
    if getattr(value, "ndim", 1) != 1 or len(value) != count:
        size = getattr(value, "shape", len(value))
        raise check.refuse(name, size, "is its size, one vector is needed", remedy)
    known: dict[tuple[type, Any], Exact] = {}
    out = []
    for i, x in enumerate(value):
        key = (type(x), x) if isinstance(x, (int, float, str, Fraction)) else (type(x), id(x))
        if key not in known:
            known[key] = exact(x, {"d": d}, name=f"{name}[{i}]")
        out.append(known[key])
    return out


def _read_alpha(alpha: Any, tiers: Any, d: int) -> tuple[list[Exact], list[int]]:
    if isinstance(alpha, Tiers):
        if tiers is not None:
            raise check.refuse("tiers", tiers, "alpha has tiers already", "pass one of them")
        return read_weights("alpha", alpha.offset, d), [int(x) for x in alpha.tier]
    values = read_weights("alpha", alpha, d)
    if tiers is None:
        return values, [0] * d
    remedy = f"pass {d} integers"
    if isinstance(tiers, (str, bytes)) or not hasattr(tiers, "__len__") or len(tiers) != d:
        raise check.refuse("tiers", tiers, "needs one tier a symbol", remedy)
    return values, [check.integer(f"tiers[{i}]", x, -(2**31), 2**31) for i, x in enumerate(tiers)]


def build(
    task: Task,
    alpha: Any,
    beta: Any = None,
    residual: Any = None,
    tiers: Any = None,
    *,
    lump: bool = True,
) -> Problem:
    """Validate the weights and lump equal symbols; beta None leaves the output free."""
    if not isinstance(task, Task):
        remedy = "pass popgd.Occurrence, Or or And"
        raise check.refuse("task", task, "must be a task", remedy)
    d = task.d
    alphas, orders = _read_alpha(alpha, tiers, d)
    positive, negative = _residuals(task, beta, residual)
    roles = _roles(task)
    masses = task.words.exact_probabilities(d)
    members: dict[tuple[Any, ...], list[int]] = {}
    for j in range(d):
        own = roles.get(j)
        key = (alphas[j], orders[j], positive[j], negative[j], masses[j], own, 0 if lump else j)
        members.setdefault(key, []).append(j)
    atom_of = [0] * d
    atoms, targets = [], []
    for index, (key, symbols) in enumerate(members.items()):
        for j in symbols:
            atom_of[j] = index
        atoms.append(Atom(len(symbols), key[4] * len(symbols), key[0], key[1], key[2], key[3]))
        targets.append(symbols[0] in task.targets)
    values = [*alphas, *(v for v in [*positive, *negative] if v is not None)]
    return Problem(
        law=task.words.length,
        atoms=tuple(atoms),
        cells=_cells(task, atom_of),
        atom_of=tuple(atom_of),
        is_target=tuple(targets),
        from_float=any(x.from_float for x in values),
    )


def _residuals(
    task: Task, beta: Any, residual: Any
) -> tuple[Sequence[Exact | None], Sequence[Exact | None]]:
    if beta is None:
        return [None] * task.d, [None] * task.d
    negative = read_weights("beta", beta, task.d)
    shifted: dict[Exact, Exact] = {}
    positive = [shifted.setdefault(v, v - 2) for v in negative]
    if residual is not None:
        given = read_weights("residual", residual, task.d, length=len(task.targets))
        for s, value in zip(task.targets, given, strict=True):
            positive[s] = value
    return positive, negative


def _roles(task: Task) -> dict[int, tuple[Any, ...]]:
    """Which groups and absent sets each named symbol belongs to, over all cells."""
    roles: dict[int, list[Any]] = {}
    for c, cell in enumerate((*task.positive, *task.negative)):
        for g, group in enumerate(cell.groups):
            for j in group:
                roles.setdefault(j, []).append((c, g))
        for j in cell.absent:
            roles.setdefault(j, []).append((c, "absent"))
    return {j: tuple(role) for j, role in roles.items()}


def _cells(task: Task, atom_of: list[int]) -> tuple[LabelledCell, ...]:
    def convert(label: int, cell: Cell) -> LabelledCell:
        groups = tuple(tuple(sorted({atom_of[j] for j in group})) for group in cell.groups)
        return LabelledCell(label, groups, frozenset(atom_of[j] for j in cell.absent))

    return (
        *(convert(1, cell) for cell in task.positive),
        *(convert(-1, cell) for cell in task.negative),
    )
