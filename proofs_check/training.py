"""The three phases from zero, at grid points (d, eps, eta1, C), in ball arithmetic."""

from __future__ import annotations

from functools import lru_cache

from popgd.ball import Ball, ball, bits, hull, less, precision, sign, to_float

from .attention import Attention, uniform_moments
from .grids import ETA2
from .point import Point

__all__ = [
    "at_equality",
    "first_output",
    "gap_per_step",
    "phase_2",
    "printed_steps",
    "theorem_attention",
]


def first_output(d: int, eta1: Ball) -> tuple[Ball, Ball]:
    """(beta_s, beta_j) after phase 1, from the uniform moments."""
    m = uniform_moments(d)
    return 2 * eta1 * (m.m20 + m.m11), 2 * eta1 * (m.m11 + m.m02) / (d - 1)


def gap_per_step(d: int, eta1: Ball) -> Ball:
    """gap/eta2 after phase 2: -(d/(d-1)) dL/dalpha_s at uniform attention."""
    m = uniform_moments(d)
    target, background = first_output(d, eta1)
    slope = (target - background) * ((target - 2) * m.m21 + (background - 2) * m.m12)
    return -slope * d / (d - 1)


def phase_2(point: Point) -> Attention:
    """Attention after phase 2 at a point with d, eps, eta1 and C."""
    key = tuple(str(point[name]) for name in ("d", "eps", "eta1", "C"))
    return _phase_2(key, bits())


@lru_cache(maxsize=4096)
def _phase_2(key: tuple[str, ...], bits: int) -> Attention:
    point = Point(**dict(zip(("d", "eps", "eta1", "C"), (int(key[0]), *key[1:]), strict=True)))
    eta2 = ball(point.expression(ETA2))
    return Attention(point.d, eta2 * gap_per_step(point.d, point.ball("eta1")))


def printed_steps(point: Point) -> int:
    """ceil(4 d ln(16 d/eps)), the T of Theorem 2.

    Raises
    ------
    ArithmeticError
        When the ceiling is undecided at the current precision.
    """
    return ceiling(4 * point.d * (16 * point.d / point.ball("eps")).log())


def ceiling(x: Ball) -> int:
    """The least integer >= x."""
    n = round(to_float(x))
    for candidate in (n - 1, n, n + 1):
        above, below = less(ball(candidate - 1), x), less(x, ball(candidate))
        if above is True and (below is True or sign(x - candidate) == 0):
            return candidate
    raise ArithmeticError(f"the ceiling of {x} is undecided at {bits()} bits")


def at_equality(d: int, eps: str) -> Attention:
    """The attention with E[gamma_s | y = 1] = 1 - eps/4 exactly; its gap is a narrow ball."""
    return _at_equality(d, eps, bits())


@lru_cache(maxsize=1024)
def _at_equality(d: int, eps: str, at: int) -> Attention:
    wanted = Point(eps=eps).ball("eps") / 4
    gap = (d / wanted).log().mid()
    for level in (64, at + 40):
        with precision(level):
            gap = _newton(d, wanted, gap)
    # 1 - mu1 decreases in the gap: a sign change encloses the root
    radius = ball(2) ** (12 - at)
    while True:
        low, high = gap - radius, gap + radius
        left, right = (sign(Attention(d, end).lost - wanted) for end in (low, high))
        if left == 1 and right == -1:
            return Attention(d, hull(low, high))
        radius *= 16
        if less(ball(1), radius):
            raise ArithmeticError(f"no gap with mu1 = 1 - {eps}/4 was enclosed at {at} bits")


def _newton(d: int, wanted: Ball, gap: Ball) -> Ball:
    """Midpoints only: whatever comes out is checked by signs afterwards."""
    for _ in range(200):
        here = Attention(d, gap)
        # ln(1 - mu1) is nearly linear in the gap, with slope -2 M11/(1 - mu1)
        move = (here.lost / wanted).log() * here.lost / (2 * here.m11)
        gap = (gap + move).mid()
        if less(abs(move), ball(2) ** (-(bits() // 2 - 12))):
            return gap
    raise ArithmeticError("Newton's method did not settle")


def theorem_attention(point: Point) -> Attention:
    """The attention of the proof's steps: at equality of its hypothesis, or after phase 2."""
    if point["attention"] == "mu1 = 1 - eps/4":
        return at_equality(point.d, str(point["eps"]))
    return phase_2(point.but(C=str(point["attention"]).removeprefix("C = ")))
