"""Public enclosures for symmetric weights: moments, risk, gradient, minimum, three phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _validate as check
from . import certified_balls as balls
from .ball import Ball, adaptive, ball, enclose, relatively_narrow, sign
from .certified_inputs import (
    read_digits,
    read_dimension,
    read_gap,
    read_rate,
    read_steps,
    settled,
)
from .enclosure import Enclosure
from .errors import Diverged
from .expression import Exact, exact

__all__ = [
    "SymmetricGradient",
    "SymmetricMinimum",
    "SymmetricMoments",
    "ThreePhase",
    "moments",
    "symmetric_gradient",
    "symmetric_minimum",
    "symmetric_risk",
    "three_phase",
]


class SymmetricMoments(NamedTuple):
    """E_+[gamma_s^a (1 - gamma_s)^b], Enclosures; `popgd.symmetric.moments` in floats."""

    m20: Enclosure
    m11: Enclosure
    m02: Enclosure
    m21: Enclosure
    m12: Enclosure


class SymmetricGradient(NamedTuple):
    """dL with respect to the target's weights and to one background symbol's, Enclosures."""

    alpha_target: Enclosure
    alpha_background: Enclosure
    beta_target: Enclosure
    beta_background: Enclosure


class SymmetricMinimum(NamedTuple):
    """Minimum of the risk over (beta_s, beta_j) and where it is; residual is beta_s - 2."""

    value: Enclosure
    beta_target: Enclosure
    beta_background: Enclosure
    residual_target: Enclosure


class ThreePhase(NamedTuple):
    """Training from zero in three phases, Enclosures.

    Attributes
    ----------
    gap : Enclosure
        Attention gap alpha_s - alpha_j after phase 2.
    beta_target, beta_background : Enclosure
        Output weights after phase 1 (and 2).
    risks : tuple of 4 Enclosures
        Risk at the start and after each phase.
    final_target, final_background, final_residual : Enclosure
        Output weights after phase 3, and beta_s - 2.
    minimum : Enclosure
        Least risk over the output weights at this gap.
    """

    gap: Enclosure
    beta_target: Enclosure
    beta_background: Enclosure
    risks: tuple[Enclosure, Enclosure, Enclosure, Enclosure]
    final_target: Enclosure
    final_background: Enclosure
    final_residual: Enclosure
    minimum: Enclosure


def moments(gap: Any, d: int, digits: int = 15) -> SymmetricMoments:
    """The five symmetric moments E_+[gamma_s^a (1 - gamma_s)^b], proved.

    Parameters
    ----------
    gap : exact number, or +-inf
        alpha_s - alpha_j.
    d : int
        Alphabet size, 2 to 10^15; the word law is the balanced geometric one.
    digits : int
        Relative accuracy wanted. Numbers below 10^-100000 are enclosed by [0, 10^-100000].

    Raises
    ------
    BadParameter
        When an argument is out of range.

    Notes
    -----
    Source: THEORY 5. Error: proved. The cost depends neither on d nor on the gap.
    """
    d, gap, digits = read_dimension(d), read_gap(gap, d), read_digits(digits)
    found = adaptive(lambda: balls.symmetric_moments(_gap_ball(gap), d), digits)
    return SymmetricMoments(*(enclose(x, digits, from_float=_flag(gap)) for x in found))


def symmetric_risk(
    d: int,
    gap: Any,
    beta_target: Any,
    beta_background: Any,
    residual_target: Any = None,
    digits: int = 15,
) -> Enclosure:
    """The risk when all background symbols have equal weights, proved.

    Parameters
    ----------
    d, gap
        As in `moments`.
    beta_target, beta_background : exact numbers
        Output weights beta_s and beta_j.
    residual_target : exact number, optional
        beta_s - 2, replacing the difference.
    digits : int
        Relative accuracy wanted.

    Raises
    ------
    BadParameter
        When an argument is out of range.

    Notes
    -----
    Source: THEORY 5. Error: proved.
    """
    d, gap, digits = read_dimension(d), read_gap(gap, d), read_digits(digits)
    residual, background, flag = _outputs(d, gap, beta_target, beta_background, residual_target)

    def evaluate() -> Ball:
        m = balls.symmetric_moments(_gap_ball(gap), d)
        return balls.symmetric_risk(m, ball(residual), ball(background))

    return enclose(adaptive(evaluate, digits), digits, from_float=flag)


def symmetric_gradient(
    d: int,
    gap: Any,
    beta_target: Any,
    beta_background: Any,
    residual_target: Any = None,
    digits: int = 15,
) -> SymmetricGradient:
    """The four derivatives at symmetric weights, proved; arguments as in `symmetric_risk`.

    Notes
    -----
    A component that is zero is enclosed within 10^-(2 digits + 20).
    Source: THEORY 5. Error: proved.
    """
    d, gap, digits = read_dimension(d), read_gap(gap, d), read_digits(digits)
    residual, background, flag = _outputs(d, gap, beta_target, beta_background, residual_target)

    def evaluate() -> tuple[Ball, ...]:
        m = balls.symmetric_moments(_gap_ball(gap), d)
        terms = balls.symmetric_gradient(d, m, ball(residual), ball(background))
        size = balls.symmetric_gradient_scale(d, m, ball(residual), ball(background))
        return (*terms, *size)

    def accept(x: Sequence[Ball]) -> bool:
        return all(settled(a, b, digits) for a, b in zip(x[:4], x[4:], strict=True))

    found = adaptive(evaluate, digits, accept=accept)
    return SymmetricGradient(*(enclose(x, digits, from_float=flag) for x in found[:4]))


def symmetric_minimum(gap: Any, d: int, digits: int = 15) -> SymmetricMinimum:
    """The least risk over (beta_s, beta_j) at a gap, proved; arguments as in `moments`.

    Notes
    -----
    Source: THEORY 5. Error: proved.
    """
    d, gap, digits = read_dimension(d), read_gap(gap, d), read_digits(digits)
    found = adaptive(
        lambda: balls.symmetric_minimum(balls.symmetric_moments(_gap_ball(gap), d)), digits
    )
    return SymmetricMinimum(*(enclose(x, digits, from_float=_flag(gap)) for x in found))


def three_phase(
    d: int, eta1: Any, eta2: Any, eta3: Any = 1, steps: Any = math.inf, digits: int = 15
) -> ThreePhase:
    """Train from zero: one output step, one attention step, `steps` output steps, proved.

    Parameters
    ----------
    d : int
        Alphabet size, 2 to 10^15.
    eta1, eta2, eta3 : exact numbers
        Learning rates >= 0, e.g. "sqrt(d)"; eta2 may use eta1: "2*d**2/eta1*ln(d/eps)" needs
        eps as a number.
    steps : int or inf
        Output steps of phase 3.
    digits : int
        Relative accuracy wanted of every number.

    Returns
    -------
    ThreePhase

    Raises
    ------
    BadParameter
        When an argument is out of range.
    Diverged
        When eta3 > 2 / lambda_max (>= when steps = inf).

    Notes
    -----
    Source: Paper A.7; THEORY 5. Error: proved.
    """
    d, digits = read_dimension(d), read_digits(digits)
    first = read_rate("eta1", eta1, {"d": d})
    second = read_rate("eta2", eta2, {"d": d, "eta1": first})
    third = read_rate("eta3", eta3, {"d": d})
    count = read_steps(steps)
    if third.fraction == 0 and math.isinf(count):
        raise check.refuse("eta3", eta3, "never arrives in inf steps", "pass eta3 > 0")

    def evaluate() -> balls.BallPhases:
        return balls.three_phase(d, first, second, third, count)

    def accept(x: balls.BallPhases) -> bool:
        final = (x.final_target, x.final_background, x.final_residual, x.minimum)
        numbers = (*x.risks, x.gap, x.beta_background, *final)
        return _converges(x, third, count) and relatively_narrow(numbers, digits)

    x = adaptive(evaluate, digits, accept=accept)
    flag = first.from_float or second.from_float or third.from_float

    def show(y: Ball) -> Enclosure:
        return enclose(y, digits, from_float=flag)

    return ThreePhase(
        gap=show(x.gap),
        beta_target=show(x.beta_target),
        beta_background=show(x.beta_background),
        risks=(show(x.risks[0]), show(x.risks[1]), show(x.risks[2]), show(x.risks[3])),
        final_target=show(x.final_target),
        final_background=show(x.final_background),
        final_residual=show(x.final_residual),
        minimum=show(x.minimum),
    )


def _flag(gap: Exact | float) -> bool:
    return isinstance(gap, Exact) and gap.from_float


def _gap_ball(gap: Exact | float) -> Ball | float:
    return ball(gap) if isinstance(gap, Exact) else gap


def _outputs(
    d: int, gap: Exact | float, beta_target: Any, beta_background: Any, residual: Any
) -> tuple[Exact, Exact, bool]:
    """beta_s - 2 and beta_j exactly, and whether a float went in anywhere."""
    target = exact(beta_target, {"d": d}, name="beta_target")
    background = exact(beta_background, {"d": d}, name="beta_background")
    used = target - 2
    if residual is not None:
        used = exact(residual, {"d": d}, name="residual_target")
    return used, background, used.from_float or background.from_float or _flag(gap)


def _converges(x: balls.BallPhases, eta3: Exact, steps: int | float) -> bool:
    """Whether phase 3 is known to have a result; raises when it is known to diverge."""
    if steps == 0:
        return True
    # 2 - eta3 lambda_max, which decides also where lambda_max is close to 1/2
    margin = sign((2 - ball(eta3) / 2) + ball(eta3) * x.deficit)
    if margin == -1 or (margin == 0 and math.isinf(steps)):
        raise Diverged(
            f"eta3 = {eta3}: output training diverges above 2 / lambda_max ="
            f" {2 / float(x.largest_eigenvalue.mid()):.6g}; pass a smaller learning rate."
        )
    return margin is not None
