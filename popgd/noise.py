"""Exact noise: variance of the single-word loss and covariance of its gradient (THEORY 7).

For one word the loss is r^2/2 with r = f - y = v . gamma, dr/dbeta_i gives r gamma_i and the
attention gives r gamma_i (v_i - r). All their second moments are moments of order 4 to 6 of gamma,
so they are integrals of the same kind as the risk, with more derivatives of Phi.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from .cells import Frame, pieces
from .differences import Differences, Occupancy
from .errors import NotAvailable
from .integral import Inputs, IntegralRoute
from .languages import Task
from .quadrature import step_for

__all__ = ["CellMoments", "Noise", "affordable", "noise"]

LARGEST = 2000
"""Largest d for which the d x d covariance is built."""

FADED = 760.0
"""y from which e^-y is zero in doubles."""

LARGEST_BETA = 1e50
"""Output weights beyond this have sixth-order moments beyond float64."""

ORDER = 6
"""Highest order of a moment: gamma_i gamma_k r^2 rho^2."""


class Noise(NamedTuple):
    """Exact second moments of the single-word loss and gradient about their means.

    Attributes
    ----------
    loss : float
        Variance of the loss of one word; the mean over N words has variance loss / N.
    alpha, beta : array of shape (d, d)
        Covariance of the gradients in alpha and in beta.
    cross : array of shape (d, d)
        Covariance of the alpha gradient (rows) with the beta gradient (columns).
    """

    loss: float
    alpha: np.ndarray
    beta: np.ndarray
    cross: np.ndarray

    def standard_error(self, n: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Standard deviations of loss, alpha and beta gradients averaged over n words."""
        alpha, beta = (np.sqrt(np.maximum(np.diag(x), 0) / n) for x in (self.alpha, self.beta))
        return math.sqrt(max(self.loss, 0) / n), alpha, beta


def affordable(beta: np.ndarray, largest: float = LARGEST_BETA) -> None:
    """Refuse output weights whose noise is beyond float64."""
    if np.abs(beta).max() > largest:
        raise NotAvailable(
            f"beta: output weights beyond {largest:g} have noise beyond float64; rescale beta."
        )


@np.errstate(under="ignore")
def noise(task: Task, inputs: Inputs, rtol: float) -> Noise:
    """Exact noise at one pair of weight vectors.

    Notes
    -----
    Source: THEORY 7. Error: estimated, absolute: about 1e-14 of the raw second moments and of the
    squared means. Attention covariances of a symbol that draws little attention (gap below -15,
    say) are sums of cancelling terms and keep fewer relative digits.
    """
    d = task.d
    if d > LARGEST:
        raise NotAvailable(
            f"d = {d}: the gradient covariance needs d <= {LARGEST}; "
            "sample it with popgd.EmpiricalRisk."
        )
    affordable(inputs.beta)
    route = IntegralRoute(task, rtol)
    mean, by_alpha, by_beta = (x[0] for x in route.value_and_gradient(inputs))
    h = step_for(route.tolerance, ORDER)
    loss, alpha, beta, cross = 0.0, *np.zeros((3, d, d))
    for piece in pieces(inputs.alpha, route.cells):
        v = route.residual_weights(inputs, piece)[0]
        cell = CellMoments(Frame(route.facts, piece), v, h, route.tolerance)
        loss += cell.fourth() / 4
        zero, one, two = (cell.pairs(m) for m in range(3))
        w = cell.w
        beta += zero
        cross += w[:, None] * zero - one
        alpha += np.outer(w, w) * zero - w[:, None] * one - one * w + two
    return Noise(
        float(loss - mean * mean),
        alpha - np.outer(by_alpha, by_alpha),
        beta - np.outer(by_beta, by_beta),
        cross - np.outer(by_alpha, by_beta),
    )


class CellMoments:
    """Moments of gamma_i gamma_k r^power rho^m over one cell, r = v . gamma, rho = w . gamma.

    w = v - c with c the residual weight of the symbol that draws most attention, so that
    v_i - r = w_i - rho keeps its digits when attention is concentrated.
    """

    def __init__(self, frame: Frame, v: np.ndarray, h: float, tolerance: float):
        self.d, self.h = frame.facts.d, h
        # remembered by this cell alone, so that they go when it goes
        self._block, self._moment = cache(self._block_sum), cache(self._moment_sum)
        self.symbols = frame.alphabet
        a = frame.a[0, self.symbols]
        self.w = v - v[self.symbols[a.argmax()]]
        self._v, self._w = v[self.symbols], self.w[self.symbols]
        grid = frame.grid(h, tolerance, orders=(2, ORDER))
        pi = frame.facts.pi[self.symbols]
        self._groups = [np.isin(self.symbols, g) for g in frame.cell.groups]
        with np.errstate(under="ignore"):
            # beyond the cap e^-y is 0; without it powers of y would overflow
            self._y = np.minimum(np.exp(grid.log_nodes()).reshape(-1, 1) * a, FADED)
            occupancy = pi * np.exp(-self._y)
            self._weight = self._y * occupancy
            at = self._occupancy(occupancy, pi * -np.expm1(-self._y), pi, frame)
            self._phi = frame.facts.law.derivatives(at, ORDER)

    def _occupancy(self, occupancy: Any, missing: Any, pi: Any, frame: Frame) -> Occupancy:
        steps = tuple(occupancy[:, g].sum(axis=1) for g in self._groups)
        rest = ~np.any([np.zeros(len(pi), bool), *self._groups], axis=0)
        absent = math.fsum(frame.facts.pi[list(frame.cell.absent)])
        base = missing[:, rest].sum(axis=1) + absent
        gone = []
        for mask in range(2 ** len(self._groups)):
            total = base
            for number, g in enumerate(self._groups):
                total = total + (missing[:, g].sum(axis=1) if mask >> number & 1 else pi[g].sum())
            gone.append(total)
        return Occupancy(occupancy[:, rest].sum(axis=1), steps, tuple(gone))

    def _power(self, a: int, b: int) -> np.ndarray:
        """Y v^a w^b y^(a+b), shape (K, symbols)."""
        return self._weight * (self._v**a * self._w**b) * self._y ** (a + b)

    def _block_sum(self, a: int, b: int) -> Differences:
        """Sum over symbols of v^a w^b y^(a+b-1) Y: one block of insertions."""
        terms = self._weight * (self._v**a * self._w**b) * self._y ** (a + b - 1)
        rest = ~np.any([np.zeros(terms.shape[1], bool), *self._groups], axis=0)
        steps = [terms[:, g].sum(axis=1) for g in self._groups]
        return Differences.affine(terms[:, rest].sum(axis=1), steps)

    def _moment_sum(self, a: int, b: int, n: int) -> Differences:
        """t^(a+b) d^n/du^n E[(v.aC)^a (w.aC)^b z^C]: sum over set partitions into blocks."""
        if a == b == 0:
            return self._phi[n - 1]
        first = (1, 0) if a else (0, 1)
        total: Differences | None = None
        rest_a, rest_b = a - first[0], b - first[1]
        for i, j in product(range(rest_a + 1), range(rest_b + 1)):
            count = math.comb(rest_a, i) * math.comb(rest_b, j)
            term = self._block(first[0] + i, first[1] + j) * float(count)
            term = term * self._moment(rest_a - i, rest_b - j, n + 1)
            total = term if total is None else total + term
        assert total is not None
        return total

    def fourth(self) -> float:
        """E[(v . gamma)^4 1_cell]."""
        return float(self._moment(4, 0, 0).top.sum()) * self.h / math.factorial(3)

    def pairs(self, m: int, power: int = 2) -> np.ndarray:
        """E[gamma_i gamma_k r^power rho^m 1_cell], shape (d, d)."""
        size = len(self.symbols)
        out, single = np.zeros((size, size)), np.zeros(size)
        choices = list(product(range(power + 1), range(m + 1)))
        for p, q in product(choices, choices):
            a, b = power - p[0] - q[0], m - p[1] - q[1]
            if a < 0 or b < 0:
                continue
            count = _multinomial(p[0], q[0], a) * _multinomial(p[1], q[1], b)
            moment = self._moment(a, b, 2)
            left, right = self._power(*p), self._power(*q)
            for (i, known_i), (k, known_k) in product(self._roles(), self._roles()):
                factor = count * moment.top_given(known_i | known_k)
                out[np.ix_(i, k)] += left[:, i].T @ (factor[:, None] * right[:, k])
        for p in choices:
            count = math.comb(power, p[0]) * math.comb(m, p[1])
            moment = self._moment(power - p[0], m - p[1], 1)
            for i, known in self._roles():
                factor = count * moment.top_given(known)
                single[i] += factor @ (self._power(*p)[:, i] * self._y[:, i])
        out[np.diag_indices(size)] += single
        full = np.zeros((self.d, self.d))
        full[np.ix_(self.symbols, self.symbols)] = out * (self.h / math.factorial(1 + power + m))
        return full

    def _roles(self) -> list[tuple[np.ndarray, int]]:
        """Column numbers by group, with the bitmask of groups their presence implies."""
        rest = ~np.any([np.zeros(len(self.symbols), bool), *self._groups], axis=0)
        roles = [(np.flatnonzero(rest), 0)]
        roles += [(np.flatnonzero(g), 1 << n) for n, g in enumerate(self._groups)]
        return [(columns, known) for columns, known in roles if len(columns)]


def _multinomial(*parts: int) -> int:
    out, total = 1, 0
    for n in parts:
        total += n
        out *= math.comb(total, n)
    return out
