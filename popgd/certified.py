"""Risk, gradients, output minimum and the three-phase result as enclosures, to any digits.

Every number returned is a proved interval: discretisation, truncation and rounding are inside.
Inputs are exact: int, Fraction, "0.1", "sqrt(10)", "d/3"; a float means the binary number it is,
and the result then says `from_float=True`. `popgd.certified.balls` has the same quantities as
balls, to build other formulas from.
"""

from __future__ import annotations

from typing import Any

from . import _validate as check
from . import certified_balls as balls
from .ball import Ball, adaptive, ball, enclose, magnitude, relatively_narrow
from .certified_fourscalar import (
    SymmetricGradient,
    SymmetricMinimum,
    SymmetricMoments,
    ThreePhase,
    moments,
    symmetric_gradient,
    symmetric_minimum,
    symmetric_risk,
    three_phase,
)
from .certified_inputs import read_digits, settled
from .certified_problem import Problem, build
from .enclosure import Enclosure
from .languages import Task
from .objective import Evaluation, OutputMinimum

__all__ = [
    "SymmetricGradient",
    "SymmetricMinimum",
    "SymmetricMoments",
    "ThreePhase",
    "balls",
    "gradient",
    "hessian_output",
    "minimize_output",
    "moments",
    "risk",
    "symmetric_gradient",
    "symmetric_minimum",
    "symmetric_risk",
    "three_phase",
]


def risk(
    task: Task,
    alpha: Any,
    beta: Any,
    digits: int = 15,
    *,
    residual: Any = None,
    tiers: Any = None,
) -> Enclosure:
    """The population risk L(alpha, beta), proved.

    Parameters
    ----------
    task : Occurrence, Or or And
    alpha, beta : sequences of d exact numbers
        int, Fraction, float, decimal string or expression, which may use the name d. alpha may be
        a `popgd.Tiers`.
    digits : int
        Relative accuracy wanted, 1 to 1000 digits.
    residual : sequence, optional
        beta - 2 on the targets, used on positive words in place of the difference.
    tiers : sequence of int, optional
        Orders of growth of alpha, as in `popgd.Tiers` but with exact offsets `alpha`.

    Returns
    -------
    Enclosure
        Dimensionless.

    Raises
    ------
    BadParameter
        When sizes do not fit or a number cannot be read.
    NotAvailable
        When more than some 10^7 exponentials would be needed.
    PrecisionExhausted
        When the digits are not reached.

    Notes
    -----
    Source: THEORY 2, 3. Error: proved.
    """
    problem = build(task, alpha, beta, residual, tiers)
    digits = read_digits(digits)
    return _show(problem, adaptive(lambda: balls.risk(problem), digits), digits)


def gradient(
    task: Task,
    alpha: Any,
    beta: Any,
    digits: int = 15,
    *,
    residual: Any = None,
    tiers: Any = None,
) -> Evaluation:
    """Risk and both gradients, every component proved to `digits` digits of itself.

    Parameters
    ----------
    task, alpha, beta, digits, residual, tiers
        As in `risk`.

    Returns
    -------
    Evaluation
        value: Enclosure; alpha, beta: tuples of d Enclosures. A component that is zero, or a
        difference of terms 10^(2 digits + 20) times larger, is enclosed absolutely instead.

    Raises
    ------
    BadParameter, NotAvailable, PrecisionExhausted
        As in `risk`.

    Notes
    -----
    Source: THEORY 2, 3. Error: proved.
    """
    problem = build(task, alpha, beta, residual, tiers)
    digits = read_digits(digits)

    def accept(g: balls.BallGradient) -> bool:
        return relatively_narrow(g.value, digits) and all(
            settled(x, scale, digits)
            for x, scale in (
                *zip(g.alpha, g.alpha_scale, strict=True),
                *zip(g.beta, g.beta_scale, strict=True),
            )
        )

    found = adaptive(lambda: balls.gradient(problem), digits, accept=accept)
    alphas, betas = (_per_symbol(problem, x, digits) for x in (found.alpha, found.beta))
    return Evaluation(_show(problem, found.value, digits), alphas, betas)


def minimize_output(
    task: Task, alpha: Any, digits: int = 15, *, tiers: Any = None
) -> OutputMinimum:
    """The exact minimum of the risk over the output weights at fixed attention, proved.

    Parameters
    ----------
    task, alpha, digits, tiers
        As in `risk`.

    Returns
    -------
    OutputMinimum
        value: Enclosure; beta: tuple of d Enclosures, the minimiser; residual: tuple, beta - 2 on
        the targets to full relative accuracy.

    Raises
    ------
    BadParameter, NotAvailable, PrecisionExhausted
        As in `risk`.

    Notes
    -----
    Least squares solved in balls over symbols with equal weights and roles; the Hessian is
    positive definite because one-symbol words have positive probability whatever the lengths.
    Source: THEORY 2, 5. Error: proved.
    """
    problem = build(task, alpha, None, None, tiers)
    digits = read_digits(digits)

    def accept(m: balls.BallMinimum) -> bool:
        largest = sum((magnitude(x) for x in m.shifted), ball(0))
        return settled(m.value, m.scale, digits) and all(
            settled(x, largest, digits) for x in m.shifted
        )

    # elimination loses some bits: start where a second round is rarely needed
    start = int(3.33 * digits) + 45 + task.d.bit_length()
    found = adaptive(lambda: balls.minimize_output(problem), digits, accept=accept, start=start)
    beta, shifted = (_per_symbol(problem, x, digits) for x in (found.beta, found.shifted))
    residual = tuple(shifted[s] for s in task.targets)
    return OutputMinimum(_show(problem, found.value, digits), beta, residual)


def hessian_output(
    task: Task, alpha: Any, digits: int = 15, *, tiers: Any = None
) -> tuple[tuple[Enclosure, ...], ...]:
    """E[gamma_i gamma_j], the Hessian of the risk in beta, as d rows of d Enclosures.

    Raises
    ------
    BadParameter
        As in `risk`, or when d > 200.

    Notes
    -----
    Source: THEORY 2. Error: proved.
    """
    problem = build(task, alpha, None, None, tiers, lump=False)
    check.integer("task.d", task.d, 2, 200, remedy="use popgd.PopulationRisk.hessian_output")
    digits = read_digits(digits)
    rows = adaptive(lambda: balls.hessian(problem), digits)
    return tuple(tuple(_show(problem, x, digits) for x in row) for row in rows)


def _show(problem: Problem, x: Ball, digits: int) -> Enclosure:
    return enclose(x, digits, from_float=problem.from_float)


def _per_symbol(problem: Problem, x: list[Ball], digits: int) -> tuple[Enclosure, ...]:
    shown = [_show(problem, y, digits) for y in x]
    return tuple(shown[i] for i in problem.atom_of)
