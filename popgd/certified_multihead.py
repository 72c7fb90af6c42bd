"""Several heads with proof: risk, output gradient and norm-constrained minimum as enclosures.

Terms of one head are one-head risks. The term of a pair of heads is a double integral on a
lattice of nodes t1, t2; z = exp(-a t1) exp(-a' t2) factors, so sums over symbols are matrix
products of balls. The error of the rule is relative for every word by itself, with the bound
(1 + delta_1)^2 - 1 of THEORY 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from . import _validate as check
from . import certified_gradient, certified_integral
from .ball import (
    Ball,
    Exact,
    adaptive,
    ball,
    bits,
    enclose,
    exact,
    hull,
    lower,
    power,
    precision,
    rational_bounds,
    relatively_narrow,
    sign,
    upper,
)
from .certified_inputs import read_digits
from .certified_integral import extra_bits
from .certified_multihead_pairs import HeadSetting
from .certified_problem import Atom, LabelledCell, Problem, build, read_weights
from .certified_quadrature import target_bits
from .enclosure import Enclosure
from .languages import Task
from .tiers import Tiers

__all__ = ["HeadProblem", "build_heads", "constrained_minimum", "output_gradient", "risk"]


class HeadProblem(NamedTuple):
    """One one-head problem a head, over the same atoms, and what they share.

    Attributes
    ----------
    heads : list of Problem
        Residuals of head h on positive and on negative words; their sums over heads give f - y.
    beta : list of list of Exact
        Output weights by head and atom.
    """

    heads: list[Problem]
    beta: list[list[Exact]]

    @property
    def sizes(self) -> list[int]:
        """Number of symbols of each atom."""
        return [atom.size for atom in self.heads[0].atoms]


def build_heads(task: Task, alpha: Any, beta: Any) -> HeadProblem:
    """Exact weights of shape (H, d), alpha possibly `Tiers`; equal symbols are lumped.

    Raises
    ------
    BadParameter
        When the shapes differ or a number cannot be read.
    """
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass popgd.Occurrence, Or or And")
    remedy = f"pass H rows of {task.d} numbers"
    count = len(beta) if hasattr(beta, "__len__") else 0
    rows = alpha.offset if isinstance(alpha, Tiers) else alpha
    if count < 1 or not hasattr(rows, "__len__") or len(rows) != count:
        raise check.refuse("alpha, beta", (alpha, beta), "need one row a head", remedy)
    alphas = [read_weights(f"alpha[{h}]", row, task.d) for h, row in enumerate(rows)]
    tiers = alpha.tier.tolist() if isinstance(alpha, Tiers) else [[0] * task.d] * count
    betas = [read_weights(f"beta[{h}]", row, task.d) for h, row in enumerate(beta)]
    return _lump(task, alphas, tiers, betas)


def _lump(
    task: Task, alphas: list[list[Exact]], tiers: list[list[int]], betas: list[list[Exact]]
) -> HeadProblem:
    """Atoms of symbols that agree in every head."""
    heads, d = range(len(betas)), task.d
    keys: dict[Any, int] = {}
    label = [
        keys.setdefault(tuple((alphas[h][j], tiers[h][j], betas[h][j]) for h in heads), len(keys))
        for j in range(d)
    ]
    plain = build(task, label, None)  # an atom for each label, probability and role
    first = [plain.atom_of.index(a) for a in range(len(plain.atoms))]
    positive = _positive(betas, task.targets[0])
    problems = []
    for h in heads:
        atoms = tuple(
            Atom(atom.size, atom.mass, alphas[h][j], tiers[h][j], positive[h][j], betas[h][j])
            for atom, j in zip(plain.atoms, first, strict=True)
        )
        numbers = [*alphas[h], *betas[h]]
        problems.append(
            Problem(plain.law, atoms, plain.cells, plain.atom_of, plain.is_target,
                    any(x.from_float for x in numbers))
        )  # fmt: skip
    return HeadProblem(problems, [[betas[h][j] for j in first] for h in heads])


def _positive(betas: list[list[Exact]], target: int) -> list[list[Exact]]:
    """Residuals on positive words; the constant 2 is shared out as `MultiHeadRisk` does."""
    share = [row[target] for row in betas]
    share[-1] = exact(2) - sum((x for x in share[:-1]), exact(0))
    known: dict[tuple[int, Exact], Exact] = {}
    return [[known.setdefault((h, x), x - share[h]) for x in row] for h, row in enumerate(betas)]


def blocks(
    sizes: Sequence[int], alpha: Sequence[Sequence[Any]], beta: Sequence[Sequence[Any]],
    tiers: Sequence[Sequence[int]] | None = None,
) -> HeadProblem:  # fmt: skip
    """Occurrence of the first symbol, the others in blocks; weights of shape (H, 1 + blocks)."""
    from .words import Geometric

    counts = [1, *sizes]
    d, heads = sum(counts), range(len(alpha))
    betas = [[exact(x) for x in row] for row in beta]
    orders = [[0] * len(counts)] * len(alpha) if tiers is None else tiers
    positive = _positive(betas, 0)
    cells = (LabelledCell(1, ((0,),), frozenset()), LabelledCell(-1, (), frozenset({0})))
    is_target = (True, *[False] * len(sizes))
    law = Geometric(Fraction(1, d - 1))
    problems = []
    for h in heads:
        atoms = tuple(
            Atom(n, Fraction(n, d), exact(a), int(t), v, b)
            for n, a, t, v, b in zip(
                counts, alpha[h], orders[h], positive[h], betas[h], strict=True
            )
        )
        problems.append(Problem(law, atoms, cells, (), is_target, False))
    return HeadProblem(problems, betas)


def risk(task: Task, alpha: Any, beta: Any, digits: int = 12) -> Enclosure:
    """The population risk of several heads, proved.

    Parameters
    ----------
    task : Occurrence, Or or And
    alpha, beta : H sequences of d exact numbers
        alpha may be a `Tiers` of shape (H, d).
    digits : int
        Relative accuracy wanted. The cost grows with its square.

    Raises
    ------
    BadParameter
        When shapes do not fit or a number cannot be read.
    PrecisionExhausted
        When the digits are not reached.

    Notes
    -----
    Source: THEORY 2, 3. Error: proved.
    """
    problem = build_heads(task, alpha, beta)
    digits = read_digits(digits)
    value = adaptive(lambda: evaluate(problem, slope=False).value, digits)
    return enclose(value, digits, from_float=any(p.from_float for p in problem.heads))


class Evaluated(NamedTuple):
    """Risk, and its derivative in the output of a whole atom, by head and atom."""

    value: Ball
    slope: list[list[Ball]]


def evaluate(problem: HeadProblem, slope: bool = True) -> Evaluated:
    """Risk and output gradient at the current precision."""
    heads = problem.heads
    own = [certified_integral.risk(p) for p in heads]
    value = sum(own, ball(0))
    slopes = [_own_slope(p) if slope else [] for p in heads]
    sizes = {label: _sizes(problem, label) for label in (1, -1)}
    target = target_bits()
    with precision(bits() + extra_bits(heads[0])):
        for h in range(len(heads)):
            for k in range(h + 1, len(heads)):
                setting = HeadSetting(heads[h], heads[k], target)
                for sums in setting.parts():
                    scale = sizes[sums.label]
                    if not slope:
                        value += sums.moment(scale[h], scale[k])
                        continue
                    left = sums.left_slopes(scale[k])
                    value += sums.total(left)
                    _add(slopes[h], left)
                    _add(slopes[k], sums.right_slopes(scale[h]))
    return Evaluated(value, slopes)


def _own_slope(problem: Problem) -> list[Ball]:
    found = certified_gradient.gradient(problem).beta
    return [x * atom.size for x, atom in zip(found, problem.atoms, strict=True)]


def _sizes(problem: HeadProblem, label: int) -> list[Ball]:
    """sqrt(E[(v . gamma)^2]) of each head on the words of a label, from above."""
    out = []
    for p in problem.heads:
        cells = tuple(c for c in p.cells if c.label == label)
        out.append(upper((2 * certified_integral.risk(replace(p, cells=cells))).max(0).sqrt()))
    return out


def _add(total: list[Ball], more: dict[int, Ball]) -> None:
    for i, x in more.items():
        total[i] += x


def output_gradient(
    task: Task, alpha: Any, beta: Any, digits: int = 12
) -> tuple[tuple[Enclosure, ...], ...]:
    """dL/dbeta of every head and symbol, proved to 10^-digits absolutely.

    Raises
    ------
    BadParameter, PrecisionExhausted
        As in `risk`.

    Notes
    -----
    Source: THEORY 2, 3. Error: proved.
    """
    problem = build_heads(task, alpha, beta)
    digits = read_digits(digits)

    def accept(found: list[list[Ball]]) -> bool:
        return relatively_narrow([[1 + x for x in row] for row in found], digits)

    found = adaptive(lambda: evaluate(problem).slope, digits, accept=accept)
    atoms = problem.heads[0].atoms
    shown = [
        [enclose(x / atom.size, digits) for x, atom in zip(row, atoms, strict=True)]
        for row in found
    ]
    return tuple(tuple(row[i] for i in problem.heads[0].atom_of) for row in shown)


def constrained_minimum(problem: HeadProblem, radius: Any) -> Ball:
    """Encloses the least risk over outputs of Frobenius norm <= radius, near a good candidate.

    Parameters
    ----------
    problem : HeadProblem
        Its outputs B are the candidate, of norm at most the radius (else they are shrunk).
    radius : number or Ball

    Returns
    -------
    Ball
        Between L(B) - grad . B - radius ||grad||, a lower bound because the risk is convex in
        B, and L(B). Both meet at the minimiser.

    Notes
    -----
    Source: Paper A.5; convexity. Error: proved.
    """
    radius = ball(radius)
    problem = _feasible(problem, radius)
    value, slope = evaluate(problem)
    inner = square = ball(0)
    for row, b_row in zip(slope, problem.beta, strict=True):
        for x, b, n in zip(row, b_row, problem.sizes, strict=True):
            inner, square = inner + x * ball(b), square + x * x / n
    bound = value - inner - radius * upper(square).max(0).sqrt()
    return hull(lower(bound).max(0), upper(value))


def _feasible(problem: HeadProblem, radius: Ball) -> HeadProblem:
    """The outputs shrunk, if need be, until their norm is at most the radius for certain."""
    if sign(radius) != 1:
        raise check.refuse("radius", radius, "must be positive", "pass a radius > 0")
    norm = ball(0)
    for row in problem.beta:
        for b, n in zip(row, problem.sizes, strict=True):
            norm += n * power(b, 2)
    norm = upper(norm).sqrt()
    if sign(lower(radius) - norm) in (0, 1):
        return problem
    shrink = rational_bounds(radius / norm)[0]
    return _scaled(problem, shrink * (1 - Fraction(1, 2 ** (bits() - 12))))


def _scaled(problem: HeadProblem, shrink: Fraction) -> HeadProblem:
    betas = [[b * shrink for b in row] for row in problem.beta]
    target = problem.heads[0].is_target.index(True)
    positive = _positive(betas, target)
    heads = [
        Problem(
            p.law,
            tuple(
                Atom(a.size, a.mass, a.alpha, a.tier, v, b)
                for a, v, b in zip(p.atoms, positive[h], betas[h], strict=True)
            ),
            p.cells,
            p.atom_of,
            p.is_target,
            p.from_float,
        )
        for h, p in enumerate(problem.heads)
    ]
    return HeadProblem(heads, betas)
