"""Second moments of the attention and the exact minimum over the output weights, as balls.

With x = residual on targets and x = beta elsewhere, the risk at fixed attention is
E_+[(x . gamma - 2 gamma_N)^2]/2 + E_-[(x . gamma + 2 gamma_T)^2]/2, gamma_T and gamma_N the
attention on targets and on the others, so that nothing cancels near a perfect fit.
"""

from __future__ import annotations

from typing import NamedTuple

from .ball import Ball, BallMatrix, ball, hull, magnitude, matrix, sign, upper
from .certified_integral import Part, Setting, at_extra_precision, total
from .certified_laws import top
from .certified_problem import Problem

__all__ = ["BallMinimum", "hessian", "minimize_output"]

Grid = list[list[Ball]]


class BallMinimum(NamedTuple):
    """Minimum over the output weights; one entry an atom.

    Attributes
    ----------
    value : Ball
        The minimum, never below zero.
    beta, shifted : list of Ball
        The minimiser, and the minimiser minus 2 on targets.
    scale : Ball
        Size of the terms `value` is the difference of.
    """

    value: Ball
    beta: list[Ball]
    shifted: list[Ball]
    scale: Ball


def hessian(problem: Problem) -> Grid:
    """E[gamma_a gamma_b] of atoms a, b (gamma summed over an atom's symbols)."""

    def evaluate(setting: Setting) -> Grid:
        positive, negative = _grams(setting)
        return _plus(positive, negative)

    return at_extra_precision(problem, 2, evaluate)


def minimize_output(problem: Problem) -> BallMinimum:
    """The minimum over beta at fixed attention, at the current precision."""
    if problem.single_letters:
        return _perfect(problem)
    return at_extra_precision(problem, 2, _minimize)


def _minimize(setting: Setting) -> BallMinimum:
    problem = setting.problem
    target = problem.is_target
    atoms = range(len(target))
    positive, negative = _grams(setting)
    others = [b for b in atoms if not target[b]]
    targets = [b for b in atoms if target[b]]
    # the gradient at x = 0 is -right
    right = [
        2 * total(positive[a][b] for b in others) - 2 * total(negative[a][b] for b in targets)
        for a in atoms
    ]
    constant = 2 * total(positive[a][b] for a in others for b in others)
    constant += 2 * total(negative[a][b] for a in targets for b in targets)
    # componentwise accuracy: the preconditioned solver has normwise errors only
    column = matrix([[x] for x in right])
    x = matrix(_plus(positive, negative)).solve(column, algorithm="lu").entries()
    value = constant - total(r * y for r, y in zip(right, x, strict=True)) / 2
    beta = [y + 2 if is_target else y for y, is_target in zip(x, target, strict=True)]
    return BallMinimum(_nonnegative(value), beta, x, magnitude(constant))


def _nonnegative(x: Ball) -> Ball:
    return hull(0, upper(x)) if sign(x) is None and x.is_finite() else x


def _perfect(problem: Problem) -> BallMinimum:
    """One-symbol words are told apart perfectly: beta_i - 1 is the label of the word i."""
    beta = [ball(1 + problem.single_label(i)) for i in range(len(problem.atoms))]
    shifted = [b - 2 if t else b for b, t in zip(beta, problem.is_target, strict=True)]
    return BallMinimum(ball(0), beta, shifted, ball(0))


def _plus(a: Grid, b: Grid) -> Grid:
    return [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]


def _grams(setting: Setting) -> tuple[Grid, Grid]:
    """E[gamma_a gamma_b] over positive and over negative words."""
    n = len(setting.problem.atoms)
    out = {label: [[ball(0)] * n for _ in range(n)] for label in (1, -1)}
    for part in setting.parts():
        grid = out[part.label]
        for (a, b), x in _gram(part).items():
            grid[a][b] += x
            if a != b:
                grid[b][a] += x
    return out[1], out[-1]


def _gram(part: Part) -> dict[tuple[int, int], Ball]:
    """E[gamma_a gamma_b; cell] for pairs of active atoms, each pair once."""
    setting, span = part.setting, part.whole
    phi = part.derivatives(part.sums(span, {i: setting.mass[i] for i in part.active})[0], 2)
    squares = [t * t for t in part.t(span)]
    w = {i: setting.mass[i] * setting.a[i] for i in part.active}
    out: dict[tuple[int, int], Ball] = {}
    columns = part.z(span)
    for m, left in enumerate(part.classes):
        for n, right in enumerate(part.classes[: m + 1]):
            other = columns[n]
            if not left or other is None:
                continue
            known = {x - 1 for x in (m, n) if x}
            weights = [top(d[1], known) * s for d, s in zip(phi, squares, strict=True)]
            table = (_scaled(part, left, weights) * other.transpose()).tolist()
            out |= {
                (i, j): x * w[i] * w[j]
                for i, row in zip(left, table, strict=True)
                for j, x in zip(right, row, strict=True)
                if m != n or j <= i
            }
        own = columns[m]
        if own is not None:
            known = {m - 1} if m else set()
            weights = [top(d[0], known) * s for d, s in zip(phi, squares, strict=True)]
            sums = (own * matrix([weights]).transpose()).entries()
            for i, x in zip(left, sums, strict=True):
                out[i, i] += x * w[i] * setting.a[i]
    return _finish(part, out)


def _scaled(part: Part, members: list[int], weights: list[Ball]) -> BallMatrix:
    """z_i times a weight a node, one row an atom."""
    columns = [part.setting.column(i, part.window) for i in members]
    return matrix([[z * w for z, w in zip(c, weights, strict=True)] for c in columns])


def _finish(part: Part, sums: dict[tuple[int, int], Ball]) -> dict[tuple[int, int], Ball]:
    setting, tails = part.setting, part.tails(2)
    phi1, phi2 = (setting.law.factorial_moment(n) for n in (1, 2))
    half, h = tails.t0**2 / 2, setting.nodes.h
    w = {i: setting.mass[i] * setting.a[i] for i in part.active}
    out = {}
    for (i, j), x in sums.items():
        left = phi2 * w[i] * w[j] + (phi1 * w[i] * setting.a[i] if i == j else 0)
        out[i, j] = tails.apply(x * h, x * h, magnitude(left * half))
    return out
