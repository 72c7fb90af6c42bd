"""Length laws in ball arithmetic: derivatives of Phi as subset differences, and Phi^(n)(1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from .ball import Ball, ball, power
from .differences import Differences
from .errors import NotAvailable
from .words import FixedLength, Geometric, LengthLaw, Poisson, UniformLength, inverse_denominators

__all__ = ["BallLaw", "Pair", "affine", "ball_law", "top"]


class Pair:
    """Subset differences for one group, without the bookkeeping: value without, and the rise."""

    __slots__ = ("low", "rise")

    def __init__(self, low: Ball, rise: Ball):
        self.low, self.rise = low, rise

    def __add__(self, other: Pair) -> Pair:
        return Pair(self.low + other.low, self.rise + other.rise)

    def __mul__(self, other: Any) -> Pair:
        if not isinstance(other, Pair):
            return Pair(self.low * other, self.rise * other)
        low, rise = other.low, other.rise
        return Pair(self.low * low, self.rise * (low + rise) + self.low * rise)


Level = Any  # a Ball (no group), a Pair (one) or Differences (more): they add and multiply


def affine(base: Ball, steps: Sequence[Ball]) -> Level:
    """base + the steps of the groups present, in the cheapest form."""
    if not steps:
        return base
    return Pair(base, steps[0]) if len(steps) == 1 else Differences.affine(base, steps)


def top(x: Level, known: Iterable[int] = ()) -> Ball:
    """The part in which every group occurs, when those in `known` are known to occur."""
    known = set(known)
    if isinstance(x, Pair):
        return x.low + x.rise if known else x.rise
    if not isinstance(x, Differences):
        return x
    free = (len(x.parts) - 1) & ~sum(1 << g for g in known)
    return sum((y for r, y in enumerate(x.parts) if r & free == free and y is not None), ball(0))


def _power(x: Level, n: int) -> Level:
    """x^n for n >= 1."""
    if isinstance(x, Ball):
        return power(x, n)
    if isinstance(x, Differences):
        return x.power(n)
    out = x
    for bit in bin(n)[3:]:
        out = out * out
        out = out * x if bit == "1" else out
    return out


def _constant(like: Level, value: Ball) -> Level:
    """The same value whichever groups occur."""
    if isinstance(like, Pair):
        return Pair(value, ball(0))
    if isinstance(like, Differences):
        zero = like * ball(0)
        return zero + Differences.constant(value, (len(like.parts) - 1).bit_length())
    return value


class BallLaw:
    """A length law evaluated at the precision it was made in.

    Notes
    -----
    Source: THEORY 2. Error: proved (closed forms in balls).
    """

    def factorial_moment(self, n: int) -> Ball:
        """E[m (m-1) ... (m-n+1)] = Phi^(n)(1)."""
        raise NotImplementedError

    def derivatives(self, base: Ball, steps: Sequence[Ball], order: int) -> list[Level]:
        """Phi', ..., Phi^(order) at u = base + steps of the groups present."""
        raise NotImplementedError


class _Geometric(BallLaw):
    def __init__(self, p: Fraction):
        self.p, self.q = ball(p), ball(1 - p)

    def factorial_moment(self, n: int) -> Ball:
        return math.factorial(n) * self.q ** (n - 1) / self.p**n

    def derivatives(self, base: Ball, steps: Sequence[Ball], order: int) -> list[Level]:
        inverse = self._inverse(base, steps)
        out, power, factor = [], inverse, self.p
        for n in range(1, order + 1):
            power = power * inverse
            factor = factor if n == 1 else factor * (n * self.q)
            out.append(power * factor)
        return out

    def _inverse(self, base: Ball, steps: Sequence[Ball]) -> Level:
        """1 / (1 - q u); the differences are sums of positive terms."""
        denominator = 1 - self.q * base
        if not steps:
            return 1 / denominator
        drops = [self.q * x for x in steps]
        if len(steps) == 1:
            low = 1 / denominator
            return Pair(low, drops[0] * low / (denominator - drops[0]))
        denominators = [denominator]
        for drop in drops:
            denominators += [value - drop for value in denominators]
        return inverse_denominators(denominators, drops)


class _Poisson(BallLaw):
    def __init__(self, rate: Fraction):
        self.rate = ball(rate)
        self.scale = -(-self.rate).expm1()

    def factorial_moment(self, n: int) -> Ball:
        return self.rate**n / self.scale

    def derivatives(self, base: Ball, steps: Sequence[Ball], order: int) -> list[Level]:
        parts = [(self.rate * (base - 1)).exp() / self.scale]
        for step in steps:
            grow = (self.rate * step).expm1()
            parts += [part * grow for part in parts]
        level = _from_parts(parts)
        return [level * self.rate**n for n in range(1, order + 1)]


def _from_parts(parts: list[Ball]) -> Level:
    return {1: lambda: parts[0], 2: lambda: Pair(*parts)}.get(
        len(parts), lambda: Differences(parts)
    )()


class _Fixed(BallLaw):
    def __init__(self, length: int):
        self.length = length

    def factorial_moment(self, n: int) -> Ball:
        return ball(math.perm(self.length, n))

    def derivatives(self, base: Ball, steps: Sequence[Ball], order: int) -> list[Level]:
        u = affine(base, steps)
        out = []
        for n in range(1, order + 1):
            k, weight = self.length - n, ball(math.perm(self.length, n))
            out.append(_power(u, k) * weight if k > 0 else _constant(u, weight))
        return out


class _Uniform(BallLaw):
    """Lengths 1..longest: Phi(u + x) as a power series in x, by doubling the number of terms."""

    def __init__(self, longest: int):
        self.longest = longest

    def factorial_moment(self, n: int) -> Ball:
        return ball(Fraction(math.perm(self.longest + 1, n + 1), (n + 1) * self.longest))

    def derivatives(self, base: Ball, steps: Sequence[Ball], order: int) -> list[Level]:
        u = affine(base, steps)
        zero = _constant(u, ball(0))
        variable = ([u, _constant(u, ball(1))] + [zero] * order)[: order + 1]
        power, total = variable, variable  # u^n and u + ... + u^n, n = 1
        for bit in bin(self.longest)[3:]:
            total = _add(total, _multiply(power, total))
            power = _multiply(power, power)
            if bit == "1":
                power = _multiply(power, variable)
                total = _add(total, power)
        return [total[n] * (ball(math.factorial(n)) / self.longest) for n in range(1, order + 1)]


def _add(a: list[Level], b: list[Level]) -> list[Level]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _multiply(a: list[Level], b: list[Level]) -> list[Level]:
    """Product of power series, truncated to the same length."""
    out = []
    for n in range(len(a)):
        total = a[0] * b[n]
        for i in range(1, n + 1):
            total = total + a[i] * b[n - i]
        out.append(total)
    return out


def ball_law(law: LengthLaw) -> BallLaw:
    """The law in balls at the current precision.

    Raises
    ------
    NotAvailable
        When the law is none of the package's own.
    """
    if isinstance(law, Geometric):
        return _Geometric(law.exact_p)
    if isinstance(law, Poisson):
        return _Poisson(law.exact_rate)
    if isinstance(law, FixedLength):
        return _Fixed(law.length)
    if isinstance(law, UniformLength):
        return _Uniform(law.longest)
    raise NotAvailable(
        f"words.length = {law!r}: has no ball arithmetic; use Geometric, Poisson, FixedLength or"
        " UniformLength, or popgd.PopulationRisk with its error_bound."
    )
