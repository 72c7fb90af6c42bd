"""Output minima for every target at once, for symbols in blocks: the inner problem of searches.

Fast floating-point kernels with exact gradients, absolute accuracy about 1e-11: searches walk on
these, verdicts are left to enclosures. Symbols of a block share their attention, and
by convexity and symmetry their optimal output; the target is split off its block. So the cost
depends on the number of blocks, not on d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from popgd.quadrature import right_cut, step_for

__all__ = ["Layout", "Minima", "attention_step", "widest_tiers"]

TOLERANCE = 1e-11
FLOOR = 1e-14
"""Relative ridge that keeps the normal equations of symbols never attended to solvable."""


@dataclass(frozen=True)
class Layout:
    """d symbols in blocks; one target a block, and atoms = blocks without the target, target.

    Parameters
    ----------
    sizes : tuple of int
        Number of symbols of each block, at least 1 each.
    """

    sizes: tuple[int, ...]

    @property
    def d(self) -> int:
        """Alphabet size."""
        return sum(self.sizes)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.sizes)

    def masses(self) -> np.ndarray:
        """Probability of each atom for each target, shape (blocks, blocks + 1)."""
        n = np.array(self.sizes, dtype=float)
        out = np.tile(np.append(n, 1.0), (len(n), 1))
        out[np.arange(len(n)), np.arange(len(n))] -= 1
        return out / self.d

    def atoms(self, x: np.ndarray) -> np.ndarray:
        """Block values as atom values for each target, shape (blocks, blocks + 1)."""
        x = np.asarray(x)
        return np.concatenate([np.tile(x, (len(x), 1)), x[:, None]], axis=1)

    def gather(self, slope: np.ndarray) -> np.ndarray:
        """Derivatives by atom, summed to derivatives by block, shape (targets, blocks)."""
        out = slope[:, :-1].copy()
        out[np.arange(len(out)), np.arange(len(out))] += slope[:, -1]
        return out


@lru_cache(maxsize=64)
def _numbers(d: int) -> tuple[float, float]:
    return 1 / (d - 1), (d - 2) / (d - 1)


def _phi(d: int, u: np.ndarray, missing: np.ndarray, order: int) -> list[np.ndarray]:
    """Phi', Phi'', ... of the geometric law, from 1 - u."""
    p, q = _numbers(d)
    inverse = 1 / (p + q * missing)
    out = [p * inverse * inverse]
    for n in range(2, order + 1):
        out.append(out[-1] * (n * q) * inverse)
    return out


class Minima:
    """min over beta of L_s for one target s a block, with gradients in the attention.

    Parameters
    ----------
    layout : Layout
    targets : slice, optional
        The blocks whose symbols are targets; all of them if omitted.
    """

    def __init__(self, layout: Layout, targets: slice = slice(None)):
        self.layout, self.d = layout, layout.d
        self.mass = layout.masses()[targets]
        self.h = step_for(TOLERANCE, 3)

    def __call__(
        self, tier: np.ndarray, offset: np.ndarray, gradient: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Minima (T,), their gradients in the atoms' offsets (T, A), and minimisers (T, A).

        `tier` and `offset` have shape (T, A), one row a target.
        """
        parts = list(self._parts(tier, offset))
        gram, right = self._normal(parts)
        scale = np.sqrt(np.diagonal(gram, axis1=1, axis2=2) + 1e-300)
        scale = np.where(scale > 1e-140, 1 / scale, 0.0)
        scaled = gram * scale[:, :, None] * scale[:, None, :]
        scaled += (FLOOR + (scale == 0.0)[:, :, None]) * np.eye(gram.shape[-1])
        beta = scale * np.linalg.solve(scaled, (scale * right)[..., None])[..., 0]
        value = 1.0 - (beta * right).sum(axis=1) / 2
        slope = self._slopes(parts, beta) if gradient else np.zeros_like(beta)
        return value, slope, beta

    def risk(
        self, tier: np.ndarray, offset: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Risk (T,) at given outputs by atom (T, A), and its slopes in offsets and outputs."""
        parts = list(self._parts(tier, offset))
        gram, right = self._normal(parts)
        pull = (gram @ beta[..., None])[..., 0]
        value = 1.0 + (beta * (pull / 2 - right)).sum(axis=1)
        return value, self._slopes(parts, beta), pull - right

    def _levels(self, tier: np.ndarray, offset: np.ndarray):
        """For each tier: who is active, who is below (z = 1), log weights and nodes."""
        for level in np.unique(tier):
            active, below = tier == level, tier < level
            on = active & (self.mass > 0)
            rows = on.any(axis=1)
            if not rows.any():
                continue
            high = np.where(on, offset, -np.inf).max(axis=1)
            high = np.where(rows, high, 0.0)
            low = np.where(on, offset, np.inf).min(axis=1)
            low = np.where(rows, low, 0.0)
            log = np.where(active, offset - high[:, None], -np.inf)
            start = np.log(TOLERANCE) - np.log(1.5 * self.d)
            end = np.log(right_cut(TOLERANCE, 3)) + (high - low).max()
            nodes = np.exp(np.arange(start, end + self.h, self.h))
            yield active, below, log, nodes

    def _parts(self, tier: np.ndarray, offset: np.ndarray):
        """For each tier: y and Y at the nodes, shape (T, K, A); Phi', ..., without target, too."""
        for active, below, log, nodes in self._levels(tier, offset):
            y, weight, u, missing, own = self._sums(active, below, log, nodes)
            phi = _phi(self.d, u, missing, 3)
            absent = _phi(self.d, u - own, missing + own, 2)
            yield y, weight, phi, absent

    def _sums(self, active, below, log, nodes):
        """y, Y, u and 1 - u at the nodes, shapes (T, K, A) and (T, K)."""
        a = np.exp(log)
        y = np.minimum(a[:, None, :] * nodes[:, None], 800.0)
        decay, mass = np.exp(-y), self.mass[:, None, :]
        decay = np.where(active[:, None, :], decay, below[:, None, :].astype(float))
        weight = mass * y * decay
        u = (mass * decay).sum(axis=2)
        missing = (mass * np.where(active[:, None, :], -np.expm1(-y), ~below[:, None, :])).sum(
            axis=2
        )
        own = self.mass[:, None, -1] * decay[:, :, -1]
        return y, weight, u, missing, own

    def _normal(self, parts):
        """E[gamma gamma^T] and 2 E_+[gamma]."""
        count = self.mass.shape[1]
        gram = np.zeros((len(self.mass), count, count))
        right = np.zeros(self.mass.shape)
        for y, weight, phi, (absent, _) in parts:
            gram += self.h * np.matmul((phi[1][..., None] * weight).transpose(0, 2, 1), weight)
            index = np.arange(count)
            gram[:, index, index] += self.h * (phi[0][..., None] * y * weight).sum(axis=1)
            # words that avoid the target altogether: its own weight is no part of them
            rise = (phi[0] - absent)[..., None] * weight
            rise[..., -1] = phi[0] * weight[..., -1]
            right += 2 * self.h * rise.sum(axis=1)
        return gram, right

    def slopes(self, tier: np.ndarray, offset: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """dL/dalpha at given outputs by atom, shape (T, A)."""
        return self._slopes(self._parts(tier, offset), beta)

    def _slopes(self, parts, beta: np.ndarray) -> np.ndarray:
        out = np.zeros(self.mass.shape)
        for y, weight, phi, (_, absent) in parts:
            v = beta[:, None, :]
            total, linear = weight.sum(axis=2), (v * weight).sum(axis=2)
            curve = v * y * weight
            apart = v * total[..., None] - linear[..., None]
            square = v * curve.sum(axis=2)[..., None] - (v * curve).sum(axis=2)[..., None]
            bent = (phi[2] * linear)[..., None] + phi[1][..., None] * v * y
            inner = (bent * apart + phi[1][..., None] * square) / 2
            # the label: -2 E_+[gamma_i (beta_i - beta . gamma)], E_+ = all - absent
            less_total = total - weight[..., -1]
            less_linear = linear - v[..., -1] * weight[..., -1]
            without = v * less_total[..., None] - less_linear[..., None]
            inner -= 2 * phi[1][..., None] * apart
            inner[..., :-1] += 2 * absent[..., None] * without[..., :-1]
            out += self.h * (weight * inner).sum(axis=1)
        return out


def widest_tiers(offset: np.ndarray, apart: float = 40.0) -> tuple[np.ndarray, np.ndarray]:
    """Tiers and offsets in them, rows apart: gaps beyond `apart` are infinite to 1e-17."""
    order = np.argsort(offset, axis=1, kind="stable")
    ordered = np.take_along_axis(offset, order, axis=1)
    jump = np.diff(ordered, axis=1, prepend=ordered[:, :1]) > apart
    start = jump.copy()
    start[:, 0] = True
    base = np.maximum.accumulate(np.where(start, ordered, -np.inf), axis=1)
    tier, x = np.empty(offset.shape, dtype=int), np.empty(offset.shape)
    np.put_along_axis(tier, order, np.cumsum(jump, axis=1), axis=1)
    np.put_along_axis(x, order, ordered - base, axis=1)
    return tier, x


def attention_step(minima: Minima, beta: np.ndarray) -> np.ndarray:
    """-dL_s/dalpha at alpha = 0 for one symbol of each atom, shape (T, A); beta by block."""
    layout = minima.layout
    zero = np.zeros(minima.mass.shape)
    slope = minima.slopes(zero.astype(int), zero, layout.atoms(beta))
    count = np.maximum(np.round(minima.mass * layout.d), 1)
    return -slope / count
