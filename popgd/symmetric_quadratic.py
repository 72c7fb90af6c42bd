"""The symmetric risk at fixed attention: a quadratic in two output weights (kernels).

Completing the square in the target's residual makes the risk a sum of non-negative terms,
L = [M20 w^2 + V v_j^2]/2 + beta_j^2/4 with w = v_s + rho v_j, rho = M11/M20 and
V = M02 - M11^2/M20, so it keeps its relative precision down to the floor (THEORY 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .symmetric_moments import Moments, scaled_moments

__all__ = ["OutputQuadratic", "SymmetricMinimum", "plain", "quadratic"]

# below this a risk has lost digits to underflow and its logarithm is summed from logarithms
SMALL = 1e-280
# where 1/2 - lambda is below this, 1 - eta lambda is formed from it
CLOSE = 0.125


class SymmetricMinimum(NamedTuple):
    """The minimum over the output weights at fixed attention.

    Attributes
    ----------
    value, log_value : float or array
        min over beta of L, and its natural logarithm, which is finite where `value` underflows.
    beta_target, beta_background : float or array
        The minimiser.
    residual_target : float or array
        beta_target - 2, to full relative precision.
    """

    value: Any
    log_value: Any
    beta_target: Any
    beta_background: Any
    residual_target: Any


@dataclass(frozen=True, eq=False)
class OutputQuadratic:
    """The quadratic at one gap and d (arrays broadcast).

    Attributes
    ----------
    d, gap, decay : array
        decay is e^-|gap|/2, so that products with it do not underflow early.
    m : Moments
        Scaled moments.
    rho_scaled, variance_scaled : array
        rho e^|gap| and V e^(2 gap) (V itself for gap < 0).
    """

    d: np.ndarray
    gap: np.ndarray
    decay: np.ndarray
    m: Moments
    rho_scaled: np.ndarray
    variance_scaled: np.ndarray

    @property
    def m20(self) -> np.ndarray:
        """M20, never scaled: it does not vanish."""
        return self.m.m20

    @property
    def rho(self) -> np.ndarray:
        """M11 / M20."""
        return self.rho_scaled * self.decay * self.decay

    @property
    def deficit(self) -> np.ndarray:
        """1/2 - M20 = 2 M11 + M02 (P(+) = 1/2), whose digits M20 near 1/2 cannot hold."""
        fall = np.where(self.gap < 0, 1.0, self.decay)
        return 2 * self.m.m11 * self.decay * self.decay + self.m.m02 * fall * fall * fall * fall

    @property
    def variance(self) -> np.ndarray:
        """V = M02 - M11^2/M20."""
        fall = np.where(self.gap < 0, 1.0, self.decay)
        return self.variance_scaled * fall * fall * fall * fall

    @property
    def log_variance(self) -> np.ndarray:
        """ln V, finite where V underflows."""
        return np.log(self.variance_scaled) - 2 * np.maximum(self.gap, 0.0)

    def risk(self, v: Any, beta: Any) -> Any:
        """L at target residual v and background weight beta."""
        u = beta - 2
        w = v + u * self.rho
        return 0.5 * (self.m20 * w * w + self.variance * u * u) + 0.25 * beta * beta

    def log_risk(self, v: Any, beta: Any) -> Any:
        """ln L, through logarithms of the three terms where L leaves the range of doubles."""
        risk = self.risk(v, beta)
        log = np.log(risk)
        lost = (risk < SMALL) | np.isinf(risk)
        if not np.any(lost):
            return log
        u = beta - 2
        near = np.log(self.m20 / 2) + 2 * self._log_shift(v, u)
        far = self.log_variance - np.log(2) + 2 * np.log(np.abs(u))
        rest = 2 * np.log(np.abs(beta)) - np.log(4)
        return np.where(lost, np.logaddexp(np.logaddexp(near, far), rest), log)

    def _log_shift(self, v: Any, u: Any) -> Any:
        """ln |v + u rho| where rho may underflow."""
        one, two = np.log(np.abs(v)), np.log(np.abs(u * self.rho_scaled)) - np.abs(self.gap)
        top, low = np.maximum(one, two), np.minimum(one, two)
        ratio = np.exp(np.where(np.isneginf(low), -np.inf, low - top))
        return top + np.log1p(np.sign(v) * np.sign(u) * ratio)

    def gradient(self, v: Any, beta: Any) -> tuple[Any, Any]:
        """dL/dbeta_s and dL/dbeta_j of each single background coordinate."""
        u = beta - 2
        slope = self.m20 * (v + u * self.rho)
        return slope, (self.rho * slope + self.variance * u + beta / 2) / (self.d - 1)

    def residual_step(self, v: Any, beta: Any, eta: Any) -> Any:
        """Target residual after one output step of size eta, also where eta M20 is close to 1."""
        pull = (beta - 2) * self.rho * self.m20
        small = v * ((1 - eta / 2) + eta * self.deficit) - eta * pull
        return np.where(self.deficit < CLOSE, small, v - eta * self.gradient(v, beta)[0])

    def attention_gradient(self, v: Any, beta_target: Any, beta: Any) -> Any:
        """dL/dalpha_s."""
        once, twice = self.decay**2, self.decay**4
        far = self.gap < 0
        m21 = self.m.m21 * np.where(far, twice, once)
        m12 = self.m.m12 * np.where(far, once, twice)
        return (beta_target - beta) * (v * m21 + (beta - 2) * m12)

    def minimum(self) -> SymmetricMinimum:
        """The floor and the minimiser in closed form."""
        v = self.variance
        bottom = 1 + 2 * v
        residual = 2 * self.rho / bottom
        log_value = self.log_variance + np.log(2) - np.log1p(2 * v)
        return SymmetricMinimum(2 * v / bottom, log_value, 2 + residual, 4 * v / bottom, residual)


def quadratic(gap: np.ndarray, d: np.ndarray, table: Any = None) -> OutputQuadratic:
    """The quadratic at `gap` and `d`, moments from `table` when given."""
    gap, d = np.asarray(gap, dtype=float), np.asarray(d, dtype=float)
    if table is None:
        gaps, sizes = np.broadcast_arrays(gap, d)
        flat = scaled_moments(gaps.ravel(), sizes.ravel())
        shape = gaps.shape
    else:
        flat, shape = table.evaluate(gap.ravel(), True), gap.shape
    m = Moments(*(x.reshape(shape) for x in flat))
    decay = np.exp(-np.abs(gap) / 2)
    rho = m.m11 / m.m20
    loss = np.where(gap < 0, decay**4, 1.0) * m.m11 * rho
    return OutputQuadratic(d, gap, decay, m, rho, m.m02 - loss)


def plain(x: Any) -> Any:
    """A Python scalar for a zero-dimensional array, the array itself otherwise."""
    return np.asarray(x).item() if np.ndim(x) == 0 else x
