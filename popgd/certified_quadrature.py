"""The trapezoidal rule on x = log t in ball arithmetic, with its error bounds as balls.

The step is h = log(2) / m, so that t doubles every m nodes and exp(-a t) is mostly squaring.
Step and window are chosen in floating point; whatever was chosen, the bounds are proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from .ball import Ball, ball, bits, plus_minus

__all__ = ["GUARD", "SQUARINGS", "Nodes", "Window", "discretisation", "right_tail", "step"]

GUARD = 20  # bits of the precision asked that are kept for rounding
SQUARINGS = 32  # each loses a bit; then exp is taken afresh
VANISHED = 1 << 16  # exp(-y) beyond this y is enclosed by [0, exp(-VANISHED)]


def target_bits() -> int:
    """Bits of relative accuracy asked from the quadrature at the current precision."""
    return max(bits() - GUARD, 8)


def discretisation(k: int, m: int) -> Ball:
    """Upper bound of delta_k(h) at h = log(2) / m, for 1 <= k <= 4.

    Notes
    -----
    With g(y) = |Gamma(k+iy)| / Gamma(k) and y = 2 pi / h >= 9, log g is concave on [y, inf), so
    the terms g(ny) decrease at least as fast as g(y) r^(n-1), r = g(2y)/g(y).
    Source: THEORY 3. Error: proved.
    """
    y = 2 * Ball.pi() * m / ball(2).log()
    first, second = _gamma_modulus(k, y), _gamma_modulus(k, 2 * y)
    return 2 * first / (1 - second / first)


def _gamma_modulus(k: int, y: Ball) -> Ball:
    """|Gamma(k + iy)| / Gamma(k)."""
    square = Ball.pi() * y / (Ball.pi() * y).sinh()
    for j in range(1, k):
        square *= j * j + y * y
    return square.sqrt() / math.factorial(k - 1)


@lru_cache(maxsize=256)
def step(k: int, target: int) -> int:
    """The least m with delta_k(log(2) / m) <= 2^-target, about."""
    m = 1
    while True:
        y = 2 * math.pi * m / math.log(2)
        square = math.log(2 * math.pi * y) - math.pi * y
        square += sum(math.log(j * j + y * y) for j in range(1, k))
        if square / 2 - math.lgamma(k) + math.log(2) <= -target * math.log(2):
            return m
        m += 1


def right_tail(k: int, x: Ball) -> Ball:
    """Q(k, x) = e^-x sum over j < k of x^j / j!, valid as a bound for x >= k.

    Source: THEORY 3 (the integrand of one word falls beyond S t = k). Error: proved.
    """
    total, term = ball(1), ball(1)
    for j in range(1, k):
        term = term * x / j
        total += term
    return (-x).exp() * total


@lru_cache(maxsize=256)
def right_cut(k: int, target: int) -> float:
    """Log of the least S t with Q(k, S t) <= 2^-target, about."""
    wanted, x = target * math.log(2), float(k)
    for _ in range(60):
        x = wanted + math.log(sum(x**j / math.factorial(j) for j in range(k)))
    return math.log(max(x, k + 1.0))


@dataclass(frozen=True, slots=True)
class Window:
    """Nodes first..last kept, inclusive, of the lattice t = 2^(n / m)."""

    first: int
    last: int

    @classmethod
    def choose(cls, m: int, k: int, target: int, largest: float, least: float) -> Window:
        """From log(a_max * length scale) and the log of the smallest normaliser."""
        h = math.log(2) / m
        low = -target * math.log(2) / 2 - largest - 1
        high = right_cut(k, target) - least
        first = math.floor(low / h)
        return cls(first, max(math.ceil(high / h), first + 1))

    def __len__(self) -> int:
        return self.last - self.first + 1

    def union(self, other: Window) -> Window:
        """The shortest window containing both."""
        return Window(min(self.first, other.first), max(self.last, other.last))


def share(windows: list[Window]) -> list[Window]:
    """Widen windows to common ones where that adds little, so that exponentials are shared."""
    out = list(windows)
    for i in range(len(out)):
        for j in range(i):
            both = out[i].union(out[j])
            if len(both) <= 1.3 * max(len(out[i]), len(out[j])):
                out[i] = out[j] = both
    return out


class Nodes:
    """The lattice t_n = 2^(n / m) at the current precision."""

    def __init__(self, m: int):
        self.m = m
        self.h = ball(2).log() / m
        self._roots = [(self.h * r).exp() for r in range(m)]

    def times(self, window: Window) -> list[Ball]:
        """t at the nodes of the window."""
        return [self.t(n) for n in range(window.first, window.last + 1)]

    def t(self, n: int) -> Ball:
        """2^(n / m)."""
        doublings, r = divmod(n, self.m)
        return self._roots[r] * ball(2) ** doublings

    def column(self, a: Ball, log_a: float, window: Window, times: list[Ball]) -> list[Ball]:
        """exp(-a t) at the nodes of the window; log_a is about log a."""
        # beyond this node a t > VANISHED for certain: the slack covers the rounding of log_a
        slack = 1e-3 + 1e-12 * abs(log_a)
        cut = math.ceil((math.log(VANISHED) + slack - log_a) * self.m / math.log(2)) + 1
        count = min(max(cut - window.first, 0), len(window))
        minus, out = -a, []
        while len(out) < count:
            start = len(out)
            block = [(minus * t).exp() for t in times[start : min(start + self.m, count)]]
            out += block
            for _ in range(SQUARINGS):
                if len(out) >= count:
                    break
                block = [x * x for x in block]
                out += block
        del out[count:]
        return out + [_half_open(VANISHED)] * (len(window) - count)


def _half_open(x: int) -> Ball:
    """A ball around [0, exp(-x)]."""
    half = ball(-x).exp() / 2
    return half + plus_minus(half)
