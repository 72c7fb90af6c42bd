"""Gradient descent on the output weights at fixed attention: any number of steps at once.

In (beta_s, sqrt(d-1) beta_j) the Hessian is a symmetric 2x2 matrix, so T steps multiply its two
eigencomponents by (1 - eta lambda)^T (THEORY 5). Kernels: arguments are unchecked arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .symmetric_quadratic import CLOSE, SMALL, OutputQuadratic, SymmetricMinimum

__all__ = ["OutputDescent"]

# a continuous step count this close to an integer (relative) is settled by evaluating the risk
NEAR = 1e-9
NEWTON_LIMIT = 60
# a rate this large is instantaneous; finite so that products with zero weights stay zero
INSTANT = 1e300
# a rate below the doubles: nothing in any finite number of steps, everything in infinitely many
SLOWEST = -5e-324


@dataclass(frozen=True, eq=False)
class OutputDescent:
    """Descent from target residual `v` and background weight `beta` at learning rate `eta`.

    Notes
    -----
    The risk after T steps is floor + a1 f1^(2T) + a2 f2^(2T), all terms non-negative.
    Source: THEORY 5. Error: estimated; the exponent is conditioned like 2 T lambda.
    """

    quadratic: OutputQuadratic
    v: Any
    beta: Any
    eta: Any

    @cached_property
    def minimum(self) -> SymmetricMinimum:
        """Floor and minimiser."""
        return self.quadratic.minimum()

    @cached_property
    def _spectrum(self) -> tuple[Any, Any, Any, Any, Any]:
        """lambda_1 >= lambda_2, the first unit eigenvector, 1/2 - lambda_1.

        The second eigenvector is (-y, x).
        """
        q = self.quadratic
        n = q.d - 1
        a, v = np.where(q.deficit < CLOSE, 0.5 - q.deficit, q.m20), q.variance
        m11 = q.rho * a
        cross, c = 2 * m11 / np.sqrt(n), (v + q.rho * m11 + 0.5) / n
        difference = a - c
        spread = np.sqrt(difference * difference + cross * cross)
        largest = (a + c + spread) / 2
        smallest = np.minimum(a * (v + 0.5) / n / largest, largest)
        long = np.abs(difference) + spread
        x = np.where(difference >= 0, long, cross)
        y = np.where(difference >= 0, cross, long)
        norm = np.sqrt(x * x + y * y)
        flat = norm == 0
        norm = np.where(flat, 1.0, norm)
        shift = cross * cross / (2 * np.where(flat, 1.0, long))
        deficit = np.where(difference >= 0, q.deficit - shift, 0.5 - largest)
        return largest, smallest, np.where(flat, 1.0, x / norm), y / norm, deficit

    @property
    def lambda_max(self) -> Any:
        """Largest eigenvalue of the output Hessian."""
        return self._spectrum[0]

    @property
    def margin(self) -> Any:
        """2 - eta lambda_max: descent diverges where it is negative."""
        return self._rates[0][1]

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        """Components of the start's distance to the minimiser."""
        _, _, x, y, _ = self._spectrum
        target = self.v - self.minimum.residual_target
        background = np.sqrt(self.quadratic.d - 1) * (self.beta - self.minimum.beta_background)
        return x * target + y * background, x * background - y * target

    @cached_property
    def _rates(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """1 - eta lambda and 2 - eta lambda for both eigenvalues."""
        largest, smallest, _, _, deficit = self._spectrum
        # half the rate is exact, and lambda near 1/2 enters through its small deficit
        half, rest, x = self.eta / 2, self.eta * deficit, self.eta * largest
        near = deficit < CLOSE
        one = np.where(near, (1 - half) + rest, 1 - x), np.where(near, (2 - half) + rest, 2 - x)
        return one, (1 - self.eta * smallest, 2 - self.eta * smallest)

    @cached_property
    def _log_factors(self) -> tuple[Any, Any]:
        """ln |1 - eta lambda| for both eigenvalues."""
        one, two = self._rates
        largest, smallest = self._spectrum[:2]
        first = _log_factor(self.eta * largest, *one)
        second = _log_factor(self.eta * smallest, *two)
        return np.where(self._faint & (first == 0), SLOWEST, first), second

    @cached_property
    def _faint(self) -> Any:
        """Where 1/2 - lambda_max is below the doubles, but not zero: d > 2 and a finite gap."""
        q = self.quadratic
        return (self._spectrum[4] == 0) & np.isfinite(q.gap) & (q.d > 2)

    def diverged(self, steps: Any) -> Any:
        """Where there is no number: eta lambda > 2 and any step, or = 2 and infinitely many."""
        still = (self.margin == 0) & ~self._faint
        return ((self.margin < 0) & (steps > 0)) | (still & np.isinf(steps))

    @cached_property
    def _terms(self) -> tuple[Any, Any, Any, Any, Any]:
        """Floor, then amplitude and logarithm of the factor of each exponential."""
        largest, smallest = self._spectrum[:2]
        (one, two), (f1, f2) = self._parts, self._log_factors
        return (
            self.minimum.value,
            0.5 * largest * one * one,
            f1,
            0.5 * smallest * two * two,
            f2,
        )

    def risk(self, steps: Any) -> Any:
        """L after `steps` steps; inf where the descent diverges."""
        moved = np.where(self.diverged(steps), np.inf, _risk(steps, *self._terms))
        return np.where(steps == 0, self.quadratic.risk(self.v, self.beta), moved)

    def log_risk(self, steps: Any) -> Any:
        """ln L after `steps` steps, through logarithms where L is tiny."""
        risk = self.risk(steps)
        log = np.log(risk)
        lost = (risk < SMALL) | (np.isinf(risk) & ~self.diverged(steps))
        if not np.any(lost):
            return log
        (f1, f2), (a1, a2) = self._log_factors, self._log_amplitudes
        excess = np.logaddexp(a1 + 2 * _times(steps, f1), a2 + 2 * _times(steps, f2))
        return np.where(lost, np.logaddexp(self.minimum.log_value, excess), log)

    @cached_property
    def _log_amplitudes(self) -> tuple[Any, Any]:
        largest, smallest = self._spectrum[:2]
        one, two = self._parts
        return (
            np.log(largest / 2) + 2 * np.log(np.abs(one)),
            np.log(smallest / 2) + 2 * np.log(np.abs(two)),
        )

    def weights(self, steps: Any, odd: Any = None) -> tuple[Any, Any, Any]:
        """Target residual, background weight, and how far the target's weight has moved.

        NaN where diverged. `odd` is the parity of `steps` where a double cannot hold it.
        """
        _, _, x, y, _ = self._spectrum
        (one, two), (f1, f2), best = self._parts, self._log_factors, self.minimum
        if odd is None:
            odd = np.mod(np.where(np.isinf(steps), 0.0, steps), 2) == 1
        (k1, _), (k2, _) = self._rates
        left = (_power(odd & (k1 < 0), f1, steps), _power(odd & (k2 < 0), f2, steps))
        root = np.sqrt(self.quadratic.d - 1)
        target = _combine(self.v, best.residual_target, (x * one, -y * two), left)
        shares = (y * one / root, x * two / root)
        background = _combine(self.beta, best.beta_background, shares, left)
        moved = left[0][1] * (x * one) - left[1][1] * (y * two)
        still, lost = steps == 0, self.diverged(steps)
        found = (np.where(still, self.v, target), np.where(still, self.beta, background), moved)
        return tuple(np.where(lost, np.nan, z) for z in found)  # type: ignore[return-value]

    def steps_to_reach(self, epsilon: Any) -> Any:
        """Smallest integer T with risk(T) <= epsilon, as float; inf if there is none.

        A start already there needs 0 steps; a diverging descent is never credited with more.
        """
        start = _risk(0.0, *self._terms)
        floor, b1, f1, b2, f2 = self._terms
        # a component that does not decay belongs to the floor
        room = epsilon - floor - np.where(f1 == 0, b1, 0.0) - np.where(f2 == 0, b2, 0.0)
        never = (room <= 0) | (self.margin < 0)
        steps = np.where(start <= epsilon, 0.0, np.where(never, np.inf, 1.0))
        todo = np.flatnonzero(steps == 1)
        if todo.size:
            a1, a2 = self._log_amplitudes
            level = (np.where(f1 == 0, -np.inf, a1), f1, np.where(f2 == 0, -np.inf, a2), f2, room)

            def take(x: Any) -> Any:
                return np.broadcast_to(x, steps.shape).ravel()[todo]

            crossing = _crossing(*(take(x) for x in level))
            found = _settle(crossing, take(epsilon), *(take(x) for x in self._terms))
            steps.reshape(-1)[todo] = found
        return steps


def _log_factor(x: Any, left: Any, margin: Any) -> Any:
    """ln |1 - x| from x, 1 - x or 2 - x, whichever holds its digits."""
    middle = (x > 0.5) & (x < 1.5)
    return np.where(middle, np.log(np.abs(left)), np.log1p(np.where(x < 1, -x, -margin)))


def _times(steps: Any, log: Any) -> Any:
    """steps * log with 0 * inf = 0: no steps change nothing, and nor does a factor of one."""
    product = steps * log
    return np.where((steps == 0) | (log == 0), 0.0, product)


def _power(odd: Any, log: Any, steps: Any) -> tuple[Any, Any]:
    """F = (1 - x)^steps, negative where `odd`, and F - 1."""
    exponent = _times(steps, log)
    moved = np.expm1(exponent)
    size = np.exp(exponent)
    return np.where(odd, -size, size), np.where(odd, -size - 1, moved)


def _combine(start: Any, end: Any, shares: Any, left: Any) -> Any:
    """end + F1 P1 + F2 P2 where start = end + P1 + P2, by the route with the least cancellation.

    Near the end the end is the base, near the start the start; between the two, when one
    component is gone and the other has hardly moved, the start without the first component.
    """
    (p1, p2), ((f1, m1), (f2, m2)) = shares, left
    routes = (
        (np.abs(end), end, f1 * p1, f2 * p2),
        (np.abs(start), start, m1 * p1, m2 * p2),
        (np.abs(start) + np.abs(p1), start - p1, f1 * p1, m2 * p2),
    )
    best = size = None
    for base_size, base, one, two in routes:
        largest = base_size + np.abs(one) + np.abs(two)
        value = base + (one + two)
        best = value if best is None else np.where(largest < size, value, best)
        size = largest if size is None else np.minimum(size, largest)
    return best


def _risk(steps: Any, floor: Any, a1: Any, f1: Any, a2: Any, f2: Any) -> Any:
    """The floor and two decaying exponentials."""
    return floor + (_decayed(a1, steps, f1) + _decayed(a2, steps, f2))


def _decayed(amplitude: Any, steps: Any, log: Any) -> Any:
    """amplitude e^(2 steps log); what has decayed to nothing is nothing, even from infinity."""
    share = np.exp(2 * _times(steps, log))
    return np.where(share == 0, 0.0, amplitude * share)


def _crossing(a1: Any, f1: Any, a2: Any, f2: Any, room: Any) -> Any:
    """The real t >= 1 at which e^(a1 + 2 f1 t) + e^(a2 + 2 f2 t) falls to `room` (1 if lower).

    The logarithm is convex and decreasing, so Newton's method from a lower bound never overshoots.
    """
    k1, k2 = np.minimum(-2 * f1, INSTANT), np.minimum(-2 * f2, INSTANT)
    b1, b2 = a1 - np.log(room), a2 - np.log(room)
    alone1, alone2 = b1 / np.where(k1 == 0, 1.0, k1), b2 / np.where(k2 == 0, 1.0, k2)
    t = np.maximum(np.maximum(alone1, alone2), 1.0)
    active = np.arange(t.size)
    for _ in range(NEWTON_LIMIT):
        now = t[active]
        one, two = b1[active] - k1[active] * now, b2[active] - k2[active] * now
        excess = np.logaddexp(one, two)
        slope = k1[active] * np.exp(one - excess) + k2[active] * np.exp(two - excess)
        step = np.where(excess > 0, excess / slope, 0.0)
        t[active] += step
        active = active[step > 1e-15 * now]
        if active.size == 0:
            break
    return t


def _settle(t: Any, epsilon: Any, *terms: Any) -> Any:
    """Round up; where t is within rounding of an integer, let the risk itself decide."""
    steps = np.ceil(t)
    whole = np.rint(t)
    close = np.flatnonzero((np.abs(t - whole) <= NEAR * t) & (whole >= 1))
    if close.size:
        n = whole[close]
        reached = _risk(n, *(x[close] for x in terms)) <= epsilon[close]
        steps[close] = np.where(reached, n, n + 1)
    return steps
