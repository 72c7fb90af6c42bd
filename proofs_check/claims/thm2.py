"""Theorem 2: three-phase training reaches risk <= eps. Paper 4, A.7 (statement reconstructed)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from popgd.ball import Ball, ball, hull, less, sign, to_float, upper

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..point import Point
from ..roots import crossing, first_integer
from ..training import at_equality, first_output, gap_per_step, phase_2, printed_steps
from ..verdict import Kind, Mark

NARROW, LOOKS = 2.0**-10, 12
"""Width between failing and proved safe gaps that is not worth more work; most steps towards it."""

TITLE = "Three-phase training succeeds"

HYPOTHESES = (
    Hypothesis("d >= 3"),
    Hypothesis("eps > 0"),
    Hypothesis("eps < 1"),
    Hypothesis("eta1 > 0"),
    Hypothesis("eta1 <= sqrt(d)"),
)
CONSTANT = Hypothesis("C >= 1")


def final_risk(attention: Attention, start: tuple[Ball, Ball], steps: int) -> Ball:
    """L after `steps` output steps of size 1 from (beta_s, beta_j)."""
    error = attention.error(start[0] - 2, start[1])
    return attention.minimum + attention.excess(attention.after(steps, error))


def _sides(point: Point) -> Sides:
    start = first_output(point.d, point.ball("eta1"))
    return Sides(final_risk(phase_2(point), start, printed_steps(point)), point.ball("eps"))


def unit(point: Point) -> Ball:
    """The gap after phase 2 at C = 1; the gap is proportional to C."""
    eta2 = ball(point.but(C=1).expression(grids.ETA2))
    return eta2 * gap_per_step(point.d, point.ball("eta1"))


def smallest_gap(point: Point) -> tuple[Ball, Ball]:
    """Bounds on the largest gap that fails: L > eps at the first, L < eps from the second on."""
    d, eps, steps = point.d, point.ball("eps"), printed_steps(point)
    start = first_output(d, point.ball("eta1"))

    def excess(gap: Ball) -> Ball:
        return (final_risk(Attention(d, gap), start, steps) / point.ball("eps")).log()

    low = high = ball(0)
    if sign(final_risk(Attention(d, high), start, steps) - eps) != -1:
        low, high = crossing(excess, to_float((d / eps).log()))
    move = high / 2**40
    while not _safe_from(Attention(d, high), start, steps, eps):
        move = (8 if less(move, ball(1) / 8) else 2) * move if sign(move) == 1 else ball(1) / 8
        high += move
        if less(ball(2000), high):
            raise ArithmeticError("no gap was proved to be safe")
    return low, _walked_down(low, high, lambda gap: sign(excess(gap)) == -1)


def _walked_down(low: Ball, high: Ball, safe: Callable[[Ball], bool]) -> Ball:
    """A gap above `low` from which to `high` all are proved safe, interval by interval."""
    width = (high - low) / 2
    for _ in range(LOOKS):
        if less(high - low, ball(NARROW)) or less(width, ball(NARROW)):
            break
        near = upper((high - width).max(low))
        if safe(hull(near, high)):
            high, width = near, 2 * width
        else:
            width = width / 2
    return high


def _safe_from(attention: Attention, start: tuple[Ball, Ball], steps: int, eps: Ball) -> bool:
    """Whether L < eps is proved for this gap and every larger one.

    As the gap grows M20 rises and M02 falls; min over beta of L, a function of V, falls too: by
    the envelope theorem its slope has the sign of M11 M21 - M12 M20, and under the weight
    gamma_s^2 the variables 1 - gamma_s and (1 - gamma_s)/gamma_s are ordered alike (Chebyshev).
    So each bound below is largest at this gap: the slow eigenvalue is at least det/trace, and
    beta*_s - 2 <= 2 M11/M20 <= (1 - 2 M20)/M20, beta*_j <= 4V.
    """
    d, m20, half = attention.d, attention.m20, ball(1) / 2
    slow = m20 / 2 / (m20 * (d - 1) + attention.m02 + half)
    target = 2 + (1 - 2 * m20) / m20
    background = start[1].max(4 * attention.variance)
    distance = target * target + (d - 1) * background * background
    left = distance / 2 * (-2 * steps * slow).exp()
    return less(attention.minimum + left, eps) is True and less(start[0], 2) is True


def _smallest_c(point: Point) -> tuple[Ball, Ball]:
    low, high = smallest_gap(point)
    return low / unit(point), high / unit(point)


def _smallest_t(point: Point) -> Ball:
    """The least T with L <= eps, over 4d ln(16d/eps); the risk decreases in T."""
    attention, eps = phase_2(point), point.ball("eps")
    start = first_output(point.d, point.ball("eta1"))
    printed = 4 * point.d * (16 * point.d / eps).log()
    steps = first_integer(
        lambda n: less(final_risk(attention, start, n), eps), printed_steps(point)
    )
    return steps / printed


def _no_constant(level: str) -> Iterator[Point]:
    """The grid without C: its smallest value is the question."""
    return grids.product(
        d=grids.dimensions(level, 3), eps=grids.epsilons(level), eta1=grids.first_steps(level)
    )


def _once(level: str) -> Iterator[Point]:
    return (point.but(C=1) for point in _no_constant(level))


def _twice(level: str) -> Iterator[Point]:
    return (point.but(C=2) for point in _no_constant(level))


def _reached(point: Point) -> Sides:
    return Sides(phase_2(point).lost, point.ball("eps") / 4)


def _reaching_c(point: Point) -> Ball:
    return at_equality(point.d, str(point["eps"])).gap / unit(point)


CLAIMS = (
    Claim(
        id="thm2",
        title="eta2 = C d^2/eta1 ln(d/eps), eta3 = 1, T = ceil(4d ln(16d/eps)): L <= eps (C = 1)",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.EXISTS_CONSTANT,
        source="Paper 4, A.7",
        sides=_sides,
        grid=grids.symmetric,
        hypotheses=(*HYPOTHESES, CONSTANT),
        sharp=Sharp("smallest C", _smallest_c, points=_once),
    ),
    Claim(
        id="thm2.steps",
        title="T = ceil(4d ln(16d/eps)) is enough at C = 1: smallest T over the printed T",
        mark=Mark.OURS,
        kind=Kind.EXISTS_CONSTANT,
        source="Paper A.7",
        sides=_sides,
        grid=_once,
        hypotheses=(*HYPOTHESES, CONSTANT),
        sharp=Sharp("smallest T / (4d ln(16d/eps))", _smallest_t),
    ),
    Claim(
        id="thm2.attention",
        title="after phase 2, E[gamma_s | y = 1] >= 1 - eps/4 (C = 2)",
        mark=Mark.RECONSTRUCTED,
        kind=Kind.EXISTS_CONSTANT,
        source="Paper A.7 (the step between phases 2 and 3)",
        sides=_reached,
        grid=grids.symmetric,
        hypotheses=(*HYPOTHESES, Hypothesis("C >= 2")),
        sharp=Sharp("smallest C", _reaching_c, points=_twice),
    ),
)
