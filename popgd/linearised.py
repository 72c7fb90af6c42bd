"""How training on n words strays from training on the population, to first order in 1/sqrt(n).

With gradient noise xi_t = grad L_n - grad L at the population's weights theta_t, the deviation
obeys d_{t+1} = (I - eta_t H_t) d_t - eta_t xi_t. The words are the same at every step, so the
noise of different steps is correlated; but every xi_t is a mean over words, hence so is d_t: it is
the mean of the *influence* h_t(w) of single words, with h_{t+1} = (I - eta_t H_t) h_t - eta_t g_t.
Its covariance Cov(h_t(w))/n follows exactly from the law of the words, nothing fitted.

At symmetric weights both H and the law of h commute with permutations of the background, which
leaves two small problems: the deviations of (gap, beta_s, mean of beta_j), which depend on a word
through (C_s, m - C_s); and those of differences between background symbols, where the influence
on symbol j is a function of the same two counts times C_j.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .count_table import CountTable

__all__ = ["Deviation", "Point", "deviations"]


class Point(NamedTuple):
    """Symmetric weights on the way: gap, both output weights, and the target's residual."""

    gap: float
    target: float
    background: float
    residual: float


class Deviation(NamedTuple):
    """Standard deviations for one word; over sqrt(n) they are those of training on n words.

    Attributes
    ----------
    gap, beta_target, beta_background : float
        Of alpha_s minus the mean of the other alpha_j, of beta_s, of the mean of the others.
        With several targets, their mean takes the place of the target's.
    alpha, beta : float
        Root mean square of the length of the whole deviation, vectors in R^d.
    risk : float
        Of the risk on the words minus the population's, each at its own weights.
    """

    gap: float
    beta_target: float
    beta_background: float
    alpha: float
    beta: float
    risk: float

    @classmethod
    def squares(cls, alpha: np.ndarray, beta: np.ndarray, risk: Any, targets: Any) -> Any:
        """Squares of all of them for deviations alpha, beta of shape (..., d) and risk (...)."""
        of = np.zeros(alpha.shape[-1], dtype=bool)
        of[list(targets)] = True
        # where every symbol is a target there is no background, and no gap
        gap = background = np.zeros(alpha.shape[:-1])
        if not of.all():
            gap = alpha[..., of].mean(axis=-1) - alpha[..., ~of].mean(axis=-1)
            background = beta[..., ~of].mean(axis=-1)
        target = beta[..., of].mean(axis=-1)
        parts = (gap, target, background, alpha, beta, risk)
        squares = [np.asarray(part) ** 2 for part in parts]
        for i in (3, 4):
            squares[i] = squares[i].sum(axis=-1)
        return cls._make(squares)


class _Words:
    """What every word of the table does at one point."""

    def __init__(self, table: CountTable, at: Point):
        d, c, b = table.d, table.target, table.background
        up = np.exp(-abs(at.gap))
        heavy, light = (c, b * up) if at.gap >= 0 else (c * up, b)
        total = heavy + light
        self.share, self.rest = heavy / total, light / total
        self.difference = at.target - at.background
        v_target = np.where(table.positive, at.residual, at.target)
        v_background = np.where(table.positive, at.background - 2.0, at.background)
        self.r = v_target * self.share + v_background * self.rest
        self.q = self.share * self.rest
        # for one background symbol: E[gamma_j] and E[gamma_j^2] - E[gamma_j gamma_k]
        self.single = self.rest / (d - 1)
        self.square = np.where(b > 0, self.rest**2 / np.maximum(b, 1) / (d - 1), 0.0)

    def gradient(self, d: int) -> np.ndarray:
        """dl/dgap's step direction and dl/dbeta, shape (3, K)."""
        by_alpha = self.r * self.q * self.difference
        return np.stack([by_alpha * d / (d - 1), self.r * self.share, self.r * self.rest / (d - 1)])

    def per_count(self, b: np.ndarray) -> np.ndarray:
        """dl/dalpha_j and dl/dbeta_j over C_j, shape (2, K)."""
        over = np.where(b > 0, self.rest / np.maximum(b, 1), 0.0)
        return np.stack([-self.difference * self.share * self.r * over, self.r * over])

    def hessian(self, table: CountTable) -> np.ndarray:
        """Derivatives of `gradient`'s mean by (gap, beta_s, beta_j), shape (3, 3)."""
        dr = np.stack([self.difference * self.q, self.share, self.rest])
        by_alpha = self.q * self.difference * dr
        by_alpha[0] += self.r * self.difference * self.q * (self.rest - self.share)
        by_alpha[1] += self.r * self.q
        by_alpha[2] -= self.r * self.q
        target, background = self.share * dr, self.rest * dr
        target[0] += self.r * self.q
        background[0] -= self.r * self.q
        d = table.d
        return np.stack(
            [
                table.mean(by_alpha) * d / (d - 1),
                table.mean(target),
                table.mean(background) / (d - 1),
            ]
        )

    def hessian_of_differences(self, table: CountTable) -> np.ndarray:
        """The same for differences of background symbols, by (alpha_j, beta_j), shape (2, 2)."""
        pull = self.difference * self.share
        lone = self.single - self.square
        cross = -pull * self.square + self.r * lone
        own = pull**2 * self.square - self.r * pull * lone + self.r * pull * self.square
        a, c, b = (float(table.mean(x)) for x in (own, cross, self.square))
        return np.array([[a, c], [c, b]])


def deviations(
    table: CountTable, points: Iterable[Point], rates: Iterable[tuple[float, float]]
) -> Iterator[Deviation]:
    """The deviation at every point of a population trajectory, the start (zero) included.

    Parameters
    ----------
    table : CountTable
    points : iterable of Point
        The weights after 0, 1, 2, ... steps.
    rates : iterable of (float, float)
        Step sizes (attention, output) of each step; 0 where a layer rests.

    Notes
    -----
    Source: THEORY 4, 5, 7. Error: first order in 1/sqrt(n); sums to 1e-12 of their terms.
    """
    size = table.probability.size
    one, pair = np.zeros((3, size)), np.zeros((2, size))
    steps = iter(rates)
    for at in points:
        words = _Words(table, at)
        yield _spread(table, words, one, pair)
        step = next(steps, None)
        if step is None:
            return
        eta = np.array([step[0], step[1], step[1]])[:, None]
        noise = words.gradient(table.d)
        noise -= table.mean(noise)[:, None]
        one = one - eta * (words.hessian(table) @ one + noise)
        twist = words.hessian_of_differences(table)
        pair = pair - eta[:2] * (twist @ pair + words.per_count(table.background))


def _spread(table: CountTable, words: _Words, one: np.ndarray, pair: np.ndarray) -> Deviation:
    d = table.d
    shared = np.diag(table.covariance(one))
    # E[(C_j - C_k)^2]/2 = b/(d-1) given the background count b
    apart = table.mean(pair**2 * table.background) / (d - 1)
    alpha = shared[0] * (d - 1) / d + (d - 2) * apart[0]
    beta = shared[1] + (d - 1) * shared[2] + (d - 2) * apart[1]
    slope = table.mean(words.gradient(d))
    by_gap, by_target, by_background = slope[0] * (d - 1) / d, slope[1], slope[2] * (d - 1)
    loss = words.r**2 / 2 + by_gap * one[0] + by_target * one[1] + by_background * one[2]
    risk = table.covariance(loss[None])[0, 0]
    parts: Any = np.sqrt([*shared, alpha, beta, risk])
    return Deviation(*(float(x) for x in parts))
