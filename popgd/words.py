"""Word distributions: a length law and a symbol law.

A length law is its generating function Phi(u) = E[u^m], the derivatives of Phi and their
subset differences (THEORY 2), and a sampler. Nothing else about lengths enters the risk.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from . import _validate as check
from .differences import Differences, Occupancy
from .errors import NotAvailable

__all__ = ["FixedLength", "Geometric", "LengthLaw", "Poisson", "UniformLength", "Words"]

LARGEST_D = 10**7
"""Largest alphabet held as vectors: some 80 MB each."""


LONGEST_P = 1e-30
"""Least stopping probability: moments of longer words leave the doubles."""


class LengthLaw(ABC):
    """Law of the word length m >= 1."""

    @abstractmethod
    def pgf(self, u: Any) -> Any:
        """Phi(u) = E[u^m] for u in [0, 1]."""

    @abstractmethod
    def derivatives(self, at: Occupancy, order: int) -> list[Differences]:
        """Phi', Phi'', ... up to `order`, as subset differences at `at` (THEORY 2)."""

    @abstractmethod
    def factorial_moment(self, n: int) -> float:
        """E[m (m-1) ... (m-n+1)], the n-th derivative of Phi at 1."""

    @abstractmethod
    def pmf(self, m: Any) -> Any:
        """P(m = k) for an array of integers k."""

    @abstractmethod
    def tail(self, m: Any) -> Any:
        """P(length > m), each without forming 1 minus a sum."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n lengths, int64."""

    @property
    def mean(self) -> float:
        """E[m], in symbols."""
        return self.factorial_moment(1)

    @property
    def root_mean_square(self) -> float:
        """sqrt(E[m^2]), in symbols."""
        return math.sqrt(self.factorial_moment(2) + self.factorial_moment(1))


@dataclass(frozen=True)
class Geometric(LengthLaw):
    """P(m = k) = p (1-p)^(k-1) for k >= 1.

    Parameters
    ----------
    p : float or Fraction
        Stopping probability in [1e-30, 1]. The balanced law of the paper has p = 1/(d-1).

    Raises
    ------
    BadParameter
        When p is not a number in [1e-30, 1].

    Notes
    -----
    Phi(u) = p u / (1 - q u), q = 1 - p; with D = 1 - q u = p + q (1-u) the n-th derivative is
    n! p q^(n-1) / D^(n+1). Source: Paper 2; THEORY 2. Error: none (closed form).
    """

    p: Any
    exact_p: Fraction = field(init=False, repr=False, compare=False)
    q: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        p = check.probability("p", self.p)
        if p < LONGEST_P:
            remedy = f"pass p >= {LONGEST_P:g}, or a limit of the law that you can name"
            rule = "gives words of more than 1e30 symbols on average"
            raise check.refuse("p", self.p, rule, remedy)
        object.__setattr__(self, "exact_p", Fraction(self.p))
        object.__setattr__(self, "p", float(self.p))
        # rounded once, from the exact difference
        object.__setattr__(self, "q", float(1 - self.exact_p))

    def pgf(self, u: Any) -> Any:
        return self.p * u / (self.p + self.q * (1 - u))

    def derivatives(self, at: Occupancy, order: int) -> list[Differences]:
        p, q = self.p, self.q
        inverse = inverse_denominators([p + q * w for w in at.missing], [q * x for x in at.steps])
        step = inverse * q
        out = [inverse * (inverse * p)]
        for n in range(2, order + 1):
            out.append(out[-1] * (step * n))
        return out

    def factorial_moment(self, n: int) -> float:
        p = self.exact_p
        return float(math.factorial(n) * (1 - p) ** (n - 1) / p**n)

    def pmf(self, m: Any) -> Any:
        m = np.asarray(m)
        return np.where(m >= 1, self.p * self._survive(np.maximum(m, 1) - 1), 0.0)

    def tail(self, m: Any) -> Any:
        return self._survive(np.maximum(np.asarray(m), 0))

    def _survive(self, k: Any) -> Any:
        if self.q == 0:
            return np.where(np.asarray(k) == 0, 1.0, 0.0)
        return np.exp(k * np.log1p(-self.p))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.geometric(self.p, size=n)


def inverse_denominators(values: list[Any], steps: list[Any]) -> Differences:
    """Differences of 1/D, where D on subset R is `values[R]` and group i lowers D by `steps[i]`.

    From Delta_T(D / D) = 0: Delta_T(1/D) = (1/D_T) * sum over i in T of steps[i] Delta_{T-i}(1/D),
    a sum of positive terms. Source: THEORY 2.
    """
    parts: list[Any] = [1 / values[0]]
    for mask in range(1, len(values)):
        total: Any = None
        for i, step in enumerate(steps):
            if mask >> i & 1:
                term = step * parts[mask ^ (1 << i)]
                total = term if total is None else total + term
        parts.append(total / values[mask])
    return Differences(parts)


@dataclass(frozen=True)
class Poisson(LengthLaw):
    """Poisson(rate) conditioned on m >= 1.

    Parameters
    ----------
    rate : float
        Rate in [1e-200, 1e6]; the mean length is rate / (1 - exp(-rate)).

    Notes
    -----
    The n-th derivative of Phi is rate^n exp(-rate (1-u)) / (1 - exp(-rate)), and its subset
    differences are products of expm1. Source: THEORY 2. Error: none (closed form).
    """

    rate: Any
    exact_rate: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.real("rate", self.rate, 1e-200, 1e6, closed="both")
        object.__setattr__(self, "exact_rate", Fraction(self.rate))
        object.__setattr__(self, "rate", float(self.rate))

    @property
    def _scale(self) -> float:
        return -math.expm1(-self.rate)

    def pgf(self, u: Any) -> Any:
        return np.exp(-self.rate * (1 - u)) * -np.expm1(-self.rate * u) / self._scale

    def derivatives(self, at: Occupancy, order: int) -> list[Differences]:
        rate = self.rate
        # exp(-rate (1-u)) with every group, times 1 - exp(-rate x) for each: nothing can overflow
        loss = [-np.expm1(x * -rate) for x in at.steps]
        parts: list[Any] = []
        for mask, missing in enumerate(at.missing):
            part = np.exp(missing * -rate) * (1 / self._scale)
            for i, factor in enumerate(loss):
                part = part * factor if mask >> i & 1 else part
            parts.append(part)
        base = Differences(parts)
        return [base * rate**n for n in range(1, order + 1)]

    def factorial_moment(self, n: int) -> float:
        return self.rate**n / self._scale

    def pmf(self, m: Any) -> Any:
        from scipy.special import gammaln

        m = np.asarray(m)
        safe = np.maximum(m, 1)
        log = safe * math.log(self.rate) - self.rate - gammaln(safe + 1.0)
        return np.where(m >= 1, np.exp(log) / self._scale, 0.0)

    def tail(self, m: Any) -> Any:
        from scipy.special import gammainc

        m = np.asarray(m)
        beyond = gammainc(np.maximum(m, 0) + 1.0, self.rate) / self._scale
        return np.where(m >= 1, beyond, 1.0)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        # first arrival of a Poisson process, given that there is one, then the rest
        first = -np.log1p(-rng.random(n) * self._scale)
        return 1 + rng.poisson(np.maximum(self.rate - first, 0.0))


@dataclass(frozen=True)
class _Bounded(LengthLaw):
    """A law on finitely many lengths with equal probabilities."""

    @property
    @abstractmethod
    def lengths(self) -> range:
        """The lengths that can occur."""

    def pgf(self, u: Any) -> Any:
        k = np.asarray(self.lengths, dtype=float)
        return np.mean(np.asarray(u)[..., None] ** k, axis=-1)

    def derivatives(self, at: Occupancy, order: int) -> list[Differences]:
        if len(at.steps) <= 1:
            return [self._closed(at, n) for n in range(1, order + 1)]
        return [self._horner(at.u, n) for n in range(1, order + 1)]

    def _closed(self, at: Occupancy, n: int) -> Differences:
        """Powers through logarithms: relative accuracy at any length, at most one group."""
        base, step = None, None
        log_base = _log_occupancy(at.base, at.missing[0])
        for k in self.lengths:
            if k < n:
                continue
            weight = math.perm(k, n) / len(self.lengths)
            low = np.exp(log_base * (k - n)) if k > n else np.ones_like(at.base)
            base = low * weight if base is None else base + low * weight
            if at.steps:
                diff = _power_difference(at, k - n) * weight
                step = diff if step is None else step + diff
        zero = at.base * 0.0
        parts = [zero if base is None else base]
        if at.steps:
            parts.append(zero if step is None else step)
        return Differences(parts)

    def _horner(self, u: Differences, n: int) -> Differences:
        groups = (len(u.parts) - 1).bit_length()
        zero = u.parts[0] * 0.0
        total = Differences([zero] * 2**groups)
        for k in range(max(self.lengths), 0, -1):
            weight = math.perm(k, n) / len(self.lengths) if k in self.lengths else 0
            if k < n:
                break
            total = total * u + Differences.constant(zero + float(weight), groups)
        return total

    def factorial_moment(self, n: int) -> float:
        return float(Fraction(sum(math.perm(k, n) for k in self.lengths), len(self.lengths)))

    def pmf(self, m: Any) -> Any:
        m = np.asarray(m)
        inside = (m >= self.lengths[0]) & (m <= self.lengths[-1])
        return np.where(inside, 1.0 / len(self.lengths), 0.0)

    def tail(self, m: Any) -> Any:
        first, last = self.lengths[0], self.lengths[-1]
        beyond = last - np.clip(np.asarray(m), first - 1, last)
        return beyond / len(self.lengths)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(self.lengths[0], self.lengths[-1] + 1, size=n)


def _log_occupancy(u: Any, missing: Any) -> Any:
    """log u from whichever of u and 1 - u is the smaller."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(missing < 0.5, np.log1p(-missing), np.log(u))


def _power_difference(at: Occupancy, k: int) -> Any:
    """(u + x)^k - u^k for one group as (u + x)^k (1 - (u / (u + x))^k), each digit kept."""
    if k == 0:
        return at.base * 0.0
    u = at.base + at.steps[0]
    high = np.exp(_log_occupancy(u, at.missing[1]) * k)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(u > 0, at.steps[0] / u, 0.0)
        return high * -np.expm1(np.log1p(-share) * k)


@dataclass(frozen=True)
class FixedLength(_Bounded):
    """Every word has `length` symbols, 1 <= length <= 10^6.

    Notes
    -----
    Phi(u) = u^length. Source: THEORY 2. Error: none (closed form).
    """

    length: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", check.integer("length", self.length, 1, 10**6))

    @property
    def lengths(self) -> range:
        return range(self.length, self.length + 1)


@dataclass(frozen=True)
class UniformLength(_Bounded):
    """Lengths 1, ..., `longest` with equal probabilities, 1 <= longest <= 10^4.

    Notes
    -----
    Phi(u) = (u + ... + u^longest) / longest, summed term by term: all terms are positive.
    Source: THEORY 2. Error: none (finite sum).
    """

    longest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest", check.integer("longest", self.longest, 1, 10**4))

    @property
    def lengths(self) -> range:
        return range(1, self.longest + 1)


@dataclass(frozen=True)
class Words:
    """A distribution over words: the length law, then independent symbols.

    Parameters
    ----------
    length : LengthLaw
        Geometric, FixedLength, UniformLength or Poisson.
    symbols : array_like of shape (d,), optional
        Symbol probabilities, positive, sum 1 within 1e-9 (then normalised). None means uniform.

    Raises
    ------
    BadParameter
        When a probability is not positive or they do not sum to 1.
    """

    length: LengthLaw
    symbols: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.length, LengthLaw):
            raise check.refuse(
                "length",
                self.length,
                "must be a length law",
                "pass for example popgd.Geometric(0.1)",
            )
        if self.symbols is not None:
            remedy = "pass one positive probability a symbol, or None for uniform"
            pi = check.real_array("symbols", self.symbols, 0.0, 1.0, closed="right", remedy=remedy)
            if pi.ndim != 1 or pi.size < 2:
                raise check.refuse(
                    "symbols", self.symbols, "must be a vector of d >= 2 entries", remedy
                )
            if abs(pi.sum() - 1) > 1e-9:
                raise check.refuse(
                    "symbols", float(pi.sum()), "probabilities must sum to 1", remedy
                )
            object.__setattr__(self, "symbols", tuple(pi.tolist()))

    def probabilities(self, d: int) -> np.ndarray:
        """Symbol probabilities, shape (d,); `NotAvailable` when d exceeds 10^7."""
        if d > LARGEST_D:
            raise NotAvailable(
                f"d = {d}: more than {LARGEST_D} symbols are not held as vectors; use"
                " popgd.symmetric, whose cost does not grow with d."
            )
        if self.symbols is None:
            return np.full(d, 1.0 / d)
        pi = np.asarray(self.symbols)
        return pi / math.fsum(pi)

    def exact_probabilities(self, d: int) -> tuple[Fraction, ...]:
        """The same as exact rationals (floats read as the binary numbers they are)."""
        if self.symbols is None:
            return (Fraction(1, d),) * d
        exact = [Fraction(x) for x in self.symbols]
        total = sum(exact)
        return tuple(x / total for x in exact)
