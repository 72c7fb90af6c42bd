"""The four-scalar symmetric reduction in balls: moments, risk, minimum, three phases.

Occurrence with the balanced geometric law p = 1/(d-1); everything is a function of d and the
gap alpha_s - alpha_j (THEORY 5). Words made of the target alone have gamma_s = 1 and are split
off exactly; in the rest S >= a_s + a_j, so the cost does not grow with the gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from .ball import Ball, approximate, ball, bits, log2, magnitude, power, precision, sign, widen
from .certified_quadrature import (
    SQUARINGS,
    Nodes,
    Window,
    discretisation,
    right_tail,
    step,
    target_bits,
)

__all__ = [
    "BallPhases",
    "Moments",
    "SymmetricMinimum",
    "eigenvalues",
    "gradient",
    "gradient_scale",
    "minimum",
    "moments",
    "phase_one",
    "phase_two",
    "propagate",
    "risk",
    "three_phase",
]

_HALF = ball(Fraction(1, 2))  # exact in binary at any precision


class Moments(NamedTuple):
    """E_+[gamma_s^a (1 - gamma_s)^b] for (a, b) = 20, 11, 02, 21, 12."""

    m20: Ball
    m11: Ball
    m02: Ball
    m21: Ball
    m12: Ball


class SymmetricMinimum(NamedTuple):
    """Minimum over (beta_s, beta_j): value, minimiser, and beta_s - 2."""

    value: Ball
    beta_target: Ball
    beta_background: Ball
    residual_target: Ball


class BallPhases(NamedTuple):
    """The run O - A - O from zero; see `popgd.certified.three_phase`."""

    beta_target: Ball
    beta_background: Ball
    gap: Ball
    risks: tuple[Ball, Ball, Ball, Ball]
    final_target: Ball
    final_background: Ball
    final_residual: Ball
    minimum: Ball
    largest_eigenvalue: Ball
    smallest_eigenvalue: Ball
    deficit: Ball  # 1/2 - largest_eigenvalue, relatively as accurate as the moments


def moments(gap: Ball | float, d: int) -> Moments:
    """The five moments at the current precision; gap may be +-inf.

    Source: THEORY 5. Error: proved, about 2^(GUARD - bits) relative.
    """
    zero = ball(0)
    pure = ball(Fraction(1, d * d - 2 * d + 2))
    if isinstance(gap, float) and math.isinf(gap):
        if gap > 0:
            return Moments(ball(Fraction(1, 2)), zero, zero, zero, zero)
        return Moments(pure, zero, ball(Fraction(1, 2)) - pure, zero, zero)
    if d == 2:  # one-symbol words
        return Moments(ball(Fraction(1, 2)), zero, zero, zero, zero)
    target, gap = target_bits(), ball(gap)
    with precision(bits() + SQUARINGS + 24 + d.bit_length()):
        mixed = _mixed(gap, d, target)
        return mixed._replace(m20=mixed.m20 + ball(Fraction(1, d * d - 2 * d + 2)))


def _mixed(gap: Ball, d: int, target: int) -> Moments:
    """The moments over words with the target and a background symbol."""
    # a common factor is free: the larger of the two is 1
    log_s, log_n = min(approximate(gap), 0.0), min(-approximate(gap), 0.0)
    a_s, a_n = (ball(1), (-gap).exp()) if log_s == 0 else (gap.exp(), ball(1))
    nodes = Nodes(step(3, target))
    window = Window.choose(nodes.m, 3, target, math.log(d) + 0.5, 0.0)
    t = nodes.times(window)
    z_s = nodes.column(a_s, log_s, window, t)
    z_n = nodes.column(a_n, log_n, window, t)
    sums = [ball(0)] * 5
    for terms in _integrands(d, a_s, a_n, t, z_s, z_n):
        sums = [x + y for x, y in zip(sums, terms, strict=True)]
    return _close(d, a_s, a_n, [x * nodes.h for x in sums], nodes.m, t)


def _integrands(
    d: int, a_s: Ball, a_n: Ball, t: list[Ball], z_s: list[Ball], z_n: list[Ball]
) -> Iterator[tuple[Ball, ...]]:
    """Integrands of m20 (mixed words), m11, m02, m21, m12 at each node; all are positive."""
    p, q = ball(Fraction(1, d - 1)), ball(Fraction(d - 2, d - 1))
    pi_s, pi_n = ball(Fraction(1, d)), ball(Fraction(d - 1, d))
    twice, six = 2 * p * q, 6 * p * q * q
    for x, zs, zn in zip(t, z_s, z_n, strict=True):
        us, un, ys, yn = pi_s * zs, pi_n * zn, a_s * x, a_n * x
        big_s, big_n = us * ys, un * yn
        both = 1 / (1 - q * (us + un))
        only_s, only_n = 1 / (1 - q * us), 1 / (1 - q * un)
        # 1/D - 1/D_-: how much the symbol that must occur adds
        add_n, add_s = q * un * both * only_s, q * us * both * only_n
        square = both * both
        d2, d3 = twice * both * square, six * square * square / 2
        m20 = p * add_n * (both + only_s) * ys * big_s
        m20 += twice * add_n * (square + both * only_s + only_s * only_s) * big_s * big_s
        m02 = p * add_s * (both + only_n) * yn * big_n
        m02 += twice * add_s * (square + both * only_n + only_n * only_n) * big_n * big_n
        cross = big_s * big_n
        half = d2 / 2
        yield (
            m20,
            d2 * cross,
            m02,
            cross * (d3 * big_s + half * ys),
            cross * (d3 * big_n + half * yn),
        )


def _close(d: int, a_s: Ball, a_n: Ball, sums: list[Ball], m: int, t: list[Ball]) -> Moments:
    """Add step, window and left-cut errors; every integrand is non-negative."""
    p, q = ball(Fraction(1, d - 1)), ball(Fraction(d - 2, d - 1))
    phi1, phi2, phi3 = 1 / p, 2 * q / p**2, 6 * q * q / p**3
    ws, wn = a_s / d, a_n * (d - 1) / d
    w2s, w2n = ws * a_s, wn * a_n
    square, cube = t[0] ** 2 / 2, t[0] ** 3 / 6
    left = (
        square * (phi2 * ws * ws + phi1 * w2s),
        square * phi2 * ws * wn,
        square * (phi2 * wn * wn + phi1 * w2n),
        cube * (phi3 * ws * ws * wn + phi2 * w2s * wn),
        cube * (phi3 * ws * wn * wn + phi2 * ws * w2n),
    )
    end = t[-1] * (a_s + a_n)
    if sign(end - 3) != 1:
        return Moments(*[Ball.nan()] * 5)
    out = []
    for x, dropped, k in zip(sums, left, (2, 2, 2, 3, 3), strict=True):
        relative = magnitude(discretisation(k, m) + right_tail(k, end))
        relative = relative if sign(1 - relative) == 1 else Ball.nan()
        cut = magnitude(dropped)
        out.append(widen(x, relative * (magnitude(x) + cut) / (1 - relative) + cut))
    return Moments(*out)


def risk(m: Moments, residual: Ball, beta_background: Ball) -> Ball:
    """L from the moments; `residual` is beta_s - 2. Source: THEORY 5."""
    v = beta_background - 2
    positive = power(residual, 2) * m.m20 + 2 * residual * v * m.m11 + power(v, 2) * m.m02
    return positive / 2 + power(beta_background, 2) / 4


def gradient(
    d: int, m: Moments, residual: Ball, beta_background: Ball
) -> tuple[Ball, Ball, Ball, Ball]:
    """dL/dalpha_s, dL/dalpha_j, dL/dbeta_s, dL/dbeta_j; single background symbols."""
    v = beta_background - 2
    beta_s = residual * m.m20 + v * m.m11
    beta_j = (residual * m.m11 + v * m.m02 + beta_background / 2) / (d - 1)
    alpha_s = (residual - v) * (residual * m.m21 + v * m.m12)
    return alpha_s, -alpha_s / (d - 1), beta_s, beta_j


def gradient_scale(
    d: int, m: Moments, residual: Ball, beta_background: Ball
) -> tuple[Ball, Ball, Ball, Ball]:
    """Upper bounds of the sums of absolute terms in `gradient`."""
    r, v = magnitude(residual), magnitude(beta_background - 2)
    beta_j = (r * m.m11 + v * m.m02 + magnitude(beta_background) / 2) / (d - 1)
    alpha_s = (r + v) * (r * m.m21 + v * m.m12)
    return alpha_s, alpha_s / (d - 1), r * m.m20 + v * m.m11, beta_j


def minimum(m: Moments) -> SymmetricMinimum:
    """min over (beta_s, beta_j) in closed form. Source: THEORY 5."""
    v = m.m02 - m.m11**2 / m.m20
    scale = 1 + 2 * v
    residual = 2 * (m.m11 / m.m20) / scale
    return SymmetricMinimum(2 * v / scale, 2 + residual, 4 * v / scale, residual)


def phase_one(d: int, eta1: Ball) -> tuple[Ball, Ball]:
    """(beta_s, beta_j) after one output step from zero."""
    return 2 * eta1 / d, eta1 * (d - 2) / (d * (d - 1))


def phase_two(d: int, eta1: Ball, eta2: Ball, uniform: Moments | None = None) -> Ball:
    """The gap after one attention step; `uniform` are the moments at gap 0."""
    m = moments(ball(0), d) if uniform is None else uniform
    inner = 2 * m.m21 / d + (d - 2) * m.m12 / (d * (d - 1))
    return eta1 * eta2 * d / ball(d - 1) ** 2 * (2 * m.m11 - eta1 * inner)


def three_phase(d: int, eta1: Any, eta2: Any, eta3: Any, steps: int | float) -> BallPhases:
    """One output step, one attention step, `steps` (or inf) output steps, from zero.

    Rates are exact numbers or balls; exact ones are evaluated as finely as the gap needs.
    """
    with precision(53):
        size = log2(magnitude(phase_two(d, ball(eta1), ball(eta2))))
    # exp(gap) is relatively as accurate as the gap is absolutely
    with precision(bits() + int(max(size, 0)) + 4):
        uniform = moments(ball(0), d)
        gap = phase_two(d, ball(eta1), ball(eta2), uniform)
    beta_s, beta_j = phase_one(d, ball(eta1))
    eta3 = ball(eta3)
    m = moments(gap, d)
    best = minimum(m)
    error_s, error_j = beta_s - best.beta_target, beta_j - best.beta_background
    largest, smallest = eigenvalues(d, m)
    end_s, end_j = propagate(d, m, eta3, steps, error_s, error_j)
    quadratic = m.m20 * power(end_s, 2) + 2 * m.m11 * end_s * end_j
    quadratic += (m.m02 + _HALF) * power(end_j, 2)
    trained = risk(m, beta_s - 2, beta_j)
    still = steps == 0
    return BallPhases(
        beta_target=beta_s,
        beta_background=beta_j,
        gap=gap,
        risks=(
            ball(1),
            risk(uniform, beta_s - 2, beta_j),
            trained,
            trained if still else best.value + quadratic / 2,
        ),
        final_target=beta_s if still else best.beta_target + end_s,
        final_background=beta_j if still else best.beta_background + end_j,
        final_residual=beta_s - 2 if still else best.residual_target + end_s,
        minimum=best.value,
        largest_eigenvalue=largest,
        smallest_eigenvalue=smallest,
        deficit=deficit(d, m),
    )


def eigenvalues(d: int, m: Moments) -> tuple[Ball, Ball]:
    """Of the Hessian in (beta_s, sqrt(d-1) beta_j): larger, and smaller as det / larger."""
    a, c = m.m20, (m.m02 + _HALF) / (d - 1)
    off = power(m.m11, 2) / (d - 1)
    if sign(off) == 0:
        return a.max(c), a.min(c)
    largest = (a + c + (power(a - c, 2) + 4 * off).sqrt()) / 2
    return largest, (a * c - off) / largest


def deficit(d: int, m: Moments) -> Ball:
    """1/2 - the larger eigenvalue: 1/2 - M20 = 2 M11 + M02, from which the rest is a shift."""
    a, c = m.m20, (m.m02 + _HALF) / (d - 1)
    if sign(a - c) != 1:
        return _HALF - eigenvalues(d, m)[0]
    small = 2 * m.m11 + m.m02
    off = power(m.m11, 2) / (d - 1)
    return small if sign(off) == 0 else small - _shift(a, c, off)


def _shift(a: Ball, c: Ball, off: Ball) -> Ball:
    """How far each eigenvalue lies from its own diagonal entry."""
    return 2 * off / ((power(a - c, 2) + 4 * off).sqrt() + abs(a - c))


def propagate(
    d: int, m: Moments, eta: Ball, steps: int | float, error_s: Ball, error_j: Ball
) -> tuple[Ball, Ball]:
    """(1 - eta K)^steps on the distance from the minimiser; steps may be inf.

    K = [[a, h], [h/(d-1), c]] acts on (beta_s, beta_j). Its power is p(K), the line through
    the powers at both eigenvalues; written around each diagonal entry's own eigenvalue, from
    which it is `shift` away, nothing large cancels.
    """
    if isinstance(steps, float):
        return ball(0), ball(0)
    a, h, c = m.m20, m.m11, (m.m02 + _HALF) / (d - 1)
    if sign(h) == 0:
        return power(1 - eta * a, steps) * error_s, power(1 - eta * c, steps) * error_j
    large, small = eigenvalues(d, m)
    # 1 - eta large: half the rate is exact, and the deficit holds what `large` near 1/2 cannot
    fast = power((1 - eta / 2) + eta * deficit(d, m), steps)
    slow = power(1 - eta * small, steps)
    slope = (fast - slow) / (large - small)
    off = power(h, 2) / (d - 1)
    shift = _shift(a, c, off)
    target_first = sign(a - c) != -1
    own_s, own_j = (fast, slow) if target_first else (slow, fast)
    shift = -shift if target_first else shift
    return (
        own_s * error_s + slope * (shift * error_s + h * error_j),
        own_j * error_j + slope * (h * error_s / (d - 1) - shift * error_j),
    )
