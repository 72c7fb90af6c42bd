"""Symmetric attention in ball arithmetic: output minimum and output training at one gap.

Everything at the current precision. Squares are products: a flint power of a ball that contains
zero is not a number.
"""

from __future__ import annotations

from functools import cache, cached_property

from popgd.ball import Ball, ball, bits, power
from popgd.certified_symmetric import Moments, moments

__all__ = ["Attention", "uniform_moments"]


@cache
def _uniform(d: int, bits: int) -> Moments:
    return moments(ball(0), d)


def uniform_moments(d: int) -> Moments:
    """The five moments at gap 0, from the integrals (no closed form is used)."""
    return _uniform(d, bits())


class Attention:
    """Attention weights with a gap between the target and an equal background.

    Parameters
    ----------
    d : int
        Dimension >= 2.
    gap : Ball
        Logit difference alpha_s - alpha_j.

    Notes
    -----
    Source: THEORY 5, at P(y = -1) = 1/2. Error: proved.
    """

    def __init__(self, d: int, gap: Ball):
        self.d = d
        self.gap = gap

    @cached_property
    def moments(self) -> Moments:
        """M20, M11, M02, M21, M12."""
        return moments(self.gap, self.d)

    @property
    def m20(self) -> Ball:
        return self.moments.m20

    @property
    def m11(self) -> Ball:
        return self.moments.m11

    @property
    def m02(self) -> Ball:
        return self.moments.m02

    @property
    def lost(self) -> Ball:
        """1 - mu1 = E[1 - gamma_s | y = 1], to full relative accuracy."""
        return 2 * (self.m11 + self.m02)

    @property
    def mu1(self) -> Ball:
        """E[gamma_s | y = 1]."""
        return 1 - self.lost

    @property
    def mu2(self) -> Ball:
        """E[gamma_s^2 | y = 1]."""
        return 2 * self.m20

    @cached_property
    def variance(self) -> Ball:
        """V = M02 - M11^2/M20."""
        return self.m02 - self.m11 * self.m11 / self.m20

    @property
    def minimum(self) -> Ball:
        """min over beta of the risk."""
        return 2 * self.variance / (1 + 2 * self.variance)

    @cached_property
    def optimum(self) -> tuple[Ball, Ball]:
        """(beta*_s - 2, beta*_j)."""
        v = 1 + 2 * self.variance
        return 2 * self.m11 / self.m20 / v, 4 * self.variance / v

    @cached_property
    def hessian(self) -> tuple[Ball, Ball, Ball]:
        """Entries (ss, su, uu) on the orthonormal basis e_s, u = 1_-s/sqrt(d-1)."""
        n = ball(self.d - 1)
        return self.m20, self.m11 / n.sqrt(), (self.m02 + ball(1) / 2) / n

    @cached_property
    def eigenvalues(self) -> tuple[Ball, Ball]:
        """(largest, smallest) eigenvalue of the Hessian there."""
        a, b, c = self.hessian
        root = ((a - c) * (a - c) + 4 * b * b).sqrt()
        largest = (a + c + root) / 2
        return largest, (a * c - b * b) / largest

    def error(self, residual: Ball, background: Ball) -> tuple[Ball, Ball]:
        """beta - beta* on the orthonormal basis."""
        star = self.optimum
        return residual - star[0], (background - star[1]) * ball(self.d - 1).sqrt()

    def after(self, steps: int, error: tuple[Ball, Ball]) -> tuple[Ball, Ball]:
        """The error after gradient steps of size 1: (1 - H)^steps applied to it."""
        a, b, c = self.hessian
        large, small = self.eigenvalues
        fast, slow = power(1 - large, steps), power(1 - small, steps)
        slope = (fast - slow) / (large - small)
        x, y = error
        hx, hy = (a - small) * x + b * y, b * x + (c - small) * y
        return slow * x + slope * hx, slow * y + slope * hy

    def excess(self, error: tuple[Ball, Ball]) -> Ball:
        """L(beta) - L(beta*) for a given beta - beta*."""
        a, b, c = self.hessian
        x, y = error
        return (a * x * x + 2 * b * x * y + c * y * y) / 2
