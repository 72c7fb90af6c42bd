"""Proven bounds on the float risk of a phase diagram, pixel by pixel, in vectorised form.

A first-order running error analysis with room to spare: it starts from what is proved about the
moments and ends in |computed risk - true risk| <= bound. It is only meant to decide on which
side of epsilon a risk lies, so every constant is rounded up generously. Kernels, unchecked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .symmetric_descent import OutputDescent
from .symmetric_quadratic import CLOSE

__all__ = ["MOMENT_BOUND", "Proof", "gap_error", "prove"]

UNIT = 2.0**-53
MOMENT_BOUND = 4e-12
"""Relative error that no scaled moment from a `MomentTable` exceeds.

A scaled moment F(g) is analytic for |Im g| < pi, grows by at most e^(3 |dg|) along the real axis
and by at most sqrt(8) up to |Im g| = pi/2, since |1 + r e^(it)| >= (1 + r)/sqrt(2) there. On a
piece 1/8 wide the Bernstein ellipse with imaginary half-axis pi/2 has rho = 50.2 and real
half-axis 1.58, so F <= 385 min F on it and interpolation at 9 Chebyshev points errs by at most
4 * 385 rho^-8/(rho - 1) = 7.7e-13. The data carry 4e-14 (`moments_error_bound`), amplified by the
Lebesgue constant 2.4 and e^(3/8); rounding in the fit and in Horner's rule is below 1e-12.
"""
UNIFORM_BOUND = 5e-14
"""The same for the direct moments at gap 0 (`moments_error_bound`)."""
TINY = 1e-300
# beyond this gap only scaled moments matter, and they are at their limits
FLAT = 750.0


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved about one block of pixels.

    Attributes
    ----------
    risk, floor : array
        Bounds on the absolute error of the risk after T steps and of its floor; inf: none.
    converges : array of bool
        Whether eta3 lambda_max lies on the computed side of 2 for certain.
    """

    risk: Any
    floor: Any
    converges: Any


def gap_error(eta2: Any, d: float, v: Any, beta: Any, beta_target: Any, m: Any) -> Any:
    """Bound on |computed gap - gap| after phase 2 from a start of zero attention.

    The step is eta2 d/(d-1) (beta_s - beta_j) (v m21 + (beta_j - 2) m12) at gap 0; each factor
    and both moments are right to UNIFORM_BOUND, the sum relative to its absolute terms.
    """
    terms = np.abs(v) * m.m21 + np.abs(beta - 2) * m.m12
    scale = d / (d - 1) * (np.abs(beta_target) + np.abs(beta)) * terms
    return eta2 * scale * (UNIFORM_BOUND + 30 * UNIT)


def prove(descent: OutputDescent, steps: float, shift: Any, terms: tuple[Any, ...]) -> Proof:
    """Bounds for the risk after `steps` steps, given the bound `shift` on the gap's error.

    `terms` are floor, then amplitude, power and log-factor of the two exponentials.
    """
    q = descent.quadratic
    moment = MOMENT_BOUND + 20 * UNIT + _moved(q.gap, shift)
    curve = moment * _variance_condition(q)
    curve = np.where(curve < 0.25, curve, np.inf)
    rate = 3 * moment + curve + 30 * UNIT
    floor = 1.2 * terms[0] * curve + 4 * UNIT * terms[0] + TINY
    steep = _steep_error(descent, moment, rate)
    total = floor
    for part, off, largest, (left, _), shift, (size, power, log) in zip(
        descent._parts,
        _component_errors(descent, rate, _angle_error(descent, moment)),
        descent._spectrum[:2],
        descent._rates,
        # both eigenvalues are the same at d = 2
        (steep, steep if q.d == 2 else descent.eta * descent._spectrum[1] * rate),
        (terms[1:4], terms[4:7]),
    ):
        # without a rate every power is 1
        still = descent.eta == 0 or steps == 0 or np.isinf(steps)
        slack = 0.0 if still else _power_error(np.abs(left), log, steps, shift, power)
        more = (2 * np.abs(part) + off) * off * (power + slack) * (1 + rate)
        total = total + largest / 2 * more + size * (slack + rate * (power + slack))
    total = total + 10 * UNIT * (terms[0] + terms[1] * terms[2] + terms[4] * terms[5])
    return Proof(
        np.where(np.isnan(total), np.inf, total), floor, _side_known(descent, steep, steps)
    )


def _steep_error(descent: OutputDescent, moment: Any, rate: Any) -> Any:
    """Bound on the error of eta lambda_1 as it enters 1 - eta lambda_1 and 2 - eta lambda_1.

    Where lambda_1 is near 1/2 it enters through its deficit 1/2 - lambda_1 = (1/2 - M20) - shift,
    shift <= (1/2 - M20)/2; the first is right to `moment`, the shift to 40 times that
    ((a + c)/(a - c) <= 12 where the deficit is below 1/8).
    """
    q, eta = descent.quadratic, descent.eta
    x, deficit = eta * descent.lambda_max, descent._spectrum[4]
    rest = eta * q.deficit
    rounding = 4 * UNIT * (np.abs(np.where(x < 1.5, 1.0, 2.0) - eta / 2) + rest)
    fine = 50 * moment * rest + rounding + TINY * eta
    return np.where((deficit < CLOSE) & (x > 0.5), fine, x * rate)


def _side_known(descent: OutputDescent, steep: Any, steps: float) -> Any:
    """Where it is proved whether eta lambda_1 exceeds 2.

    lambda_1 < 1/2 for d >= 3: a square of a convex combination is at most the combination of
    the squares, so the quadratic form at (x, y) is at most x^2 E_+[gamma_s] +
    y^2 (1 - E_+[gamma_s])/(d - 1), and 0 < E_+[gamma_s] < 1/2. At d = 2 it is 1/2 exactly.
    A margin that underflows to 0 counts as divergence at infinitely many steps only.
    """
    known = np.abs(descent.margin) > 2 * steep
    if descent.eta <= 4:
        known = known | ((descent.margin > 0) if np.isinf(steps) else (descent.margin >= 0))
    return known | (descent.quadratic.d == 2)


def _moved(gap: Any, shift: Any) -> Any:
    """Relative change of a moment when the gap moves by `shift`: |d ln M_ab/dg| <= 2."""
    near = np.where(shift < 0.25, 2.6 * shift, np.inf)
    return np.where(np.abs(gap) > FLAT + shift, 0.0, near)


def _variance_condition(q: Any) -> Any:
    """Relative change of V = M02 - M11^2/M20 for a unit relative change of the moments."""
    loss = np.where(q.gap < 0, q.decay**4, 1.0) * q.m.m11 * q.rho_scaled
    known = q.m.m02 + 4 * loss
    # V = 0 with every moment 0 is exact: d = 2, where no word mixes symbols
    ratio = known / np.where(known > 0, q.variance_scaled, 1.0)
    return np.where(ratio >= 0, ratio, np.inf)


def _component_errors(descent: OutputDescent, rate: Any, turn: Any) -> tuple[Any, Any]:
    """Errors of the eigencomponents of start minus minimiser, in (beta_s, sqrt(d-1) beta_j)."""
    root, best = np.sqrt(descent.quadratic.d - 1), descent.minimum
    _, _, x, y, _ = descent._spectrum
    x, y, (one, two) = np.abs(x), np.abs(y), (np.abs(part) for part in descent._parts)
    size, other = np.abs(descent.v), root * np.abs(descent.beta)
    least, last = best.residual_target, root * best.beta_background
    target = 6 * UNIT * size + 1.2 * rate * least + 6 * UNIT * least
    background = 6 * UNIT * other + 1.2 * rate * last + 6 * UNIT * last
    # a turn of the axes mixes the two components
    mixed, across = (two + turn * one) * turn, (one + turn * two) * turn
    return x * target + y * background + mixed, y * target + x * background + across


def _angle_error(descent: OutputDescent, moment: Any) -> Any:
    """How far the eigenvectors may turn.

    tan 2 theta = 2b/(a - c) with a, b, c right to `moment`, so theta moves by at most
    moment * 2b (a + c)/((a - c)^2 + 4 b^2) to first order; twice that while the change of
    the spread is below a fifth.
    """
    q = descent.quadratic
    n = q.d - 1
    m11 = q.rho * q.m20
    cross = 2 * m11 / np.sqrt(n)
    one, other = q.m20, (q.variance + q.rho * m11 + 0.5) / n
    apart = (one - other) * (one - other) + cross * cross
    change = moment * (one + other) / np.sqrt(np.where(apart > 0, apart, 1.0))
    turn = 2 * moment * cross * (one + other) / np.where(apart > 0, apart, 1.0)
    turn = np.where((change < 0.1) & (apart > 0), turn, 2.0)
    # a diagonal Hessian keeps its axes
    return np.where(cross == 0, 0.0, turn)


def _power_error(left: Any, log: Any, steps: float, shift: Any, power: Any) -> Any:
    """Bound on the error of left^(2 steps), left = |1 - x| and x right to `shift`."""
    part = shift / left
    exponent = 2 * steps * np.abs(log)
    z = np.where(part < 0.25, 4 * steps * part, np.inf) + 8 * UNIT * (exponent + 1)
    bound = 2 * z * power
    rest = np.flatnonzero(~(z < 0.5))
    if rest.size:
        # neither power exceeds that of the largest |1 - x| possible
        base, off = (np.broadcast_to(a, z.shape).reshape(-1)[rest] for a in (left, shift))
        most = np.exp(2 * steps * np.minimum(np.log(base * (1 + 8 * UNIT) + 2 * off), 0.0))
        gone = (exponent - z).reshape(-1)[rest] > 800
        bound.reshape(-1)[rest] = np.where(gone, TINY, most + TINY)
    return bound
