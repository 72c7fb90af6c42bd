"""What is searched for each statement about all weights: variables, functions and gradients.

All of them treat symbols in blocks, so that d costs nothing; blocks of one symbol each are the
general problem. Values come from the floating-point kernels: they guide the search only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popgd.blocks import BlockRisk, split_target
from popgd.multihead import MultiHeadRisk

from .minima import Layout, Minima, attention_step, widest_tiers

__all__ = [
    "AttentionAt",
    "AttentionFirst",
    "AttentionOnly",
    "EveryTarget",
    "LazyHeads",
    "OutputOnly",
]

LOGIT = 30.0
"""Finite attention weights stay within this of each other: beyond it limits take over."""


class OutputOnly:
    """max over s of min over beta of L_s(alpha, beta); variables: alpha by block."""

    def __init__(self, sizes: Sequence[int]):
        self.minima = Minima(Layout(tuple(sizes)))
        self.logits = np.ones(len(sizes), dtype=bool)
        self.bounds: Any = [(-LOGIT, LOGIT)] * len(sizes)

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One function a block: the target is one of its symbols."""
        layout = self.minima.layout
        value, slope, _ = self.minima(layout.atoms(tier), layout.atoms(x))
        return value, layout.gather(slope)


class AttentionOnly:
    """L_s(alpha, beta) for s = argmin beta, minimised over beta and alpha together.

    Variables: alpha of the target and of each background block, beta of the target, and what each
    block's beta has more, which is not negative.

    Parameters
    ----------
    sizes : sequence of int
        Background blocks.
    """

    def __init__(self, sizes: Sequence[int]):
        self.minima = Minima(Layout((1, *sizes)), slice(0, 1))
        n = 1 + len(sizes)
        self.logits = np.arange(2 * n) < n
        self.bounds: Any = [(-LOGIT, LOGIT)] * n + [(-20.0, 20.0)] + [(0.0, 40.0)] * (n - 1)

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The risk of the one target."""
        n = len(x) // 2
        beta = np.append(x[n], x[n] + x[n + 1 :])
        value, by_alpha, by_beta = self.minima.risk(
            _target_last(tier[:n]), _target_last(x[:n]), _target_last(beta)
        )
        alpha, out = _target_first(by_alpha), _target_first(by_beta)
        return value, np.concatenate([alpha, [out.sum()], out[1:]])[None]


class AttentionAt:
    """L_s(alpha, beta) for a target in one block, minimised over alpha at given outputs.

    Variables: alpha of each block and of the target.

    Parameters
    ----------
    sizes : sequence of int
        Blocks of all d symbols.
    block : int
        The block the target belongs to.
    beta : array of shape (blocks,)
    """

    def __init__(self, sizes: Sequence[int], block: int, beta: np.ndarray):
        self.minima = Minima(Layout(tuple(sizes)), slice(block, block + 1))
        self.beta = np.append(beta, beta[block])[None]
        self.logits = np.ones(len(sizes) + 1, dtype=bool)
        self.bounds: Any = [(-LOGIT, LOGIT)] * (len(sizes) + 1)

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The risk of the one target."""
        value, slope, _ = self.minima.risk(tier[None], x[None], self.beta)
        return value, slope


class EveryTarget:
    """max over s of L_s(alpha_s, beta), minimised over beta and an attention for each target.

    That is the minimum over beta of max over s of inf over alpha of L_s(alpha, beta). Variables:
    beta by block; then, for a target in each block, alpha of the blocks and of the target.
    """

    def __init__(self, sizes: Sequence[int]):
        self.minima = Minima(Layout(tuple(sizes)))
        self.blocks = g = len(sizes)
        self.logits = np.arange(g + g * (g + 1)) >= g
        self.bounds: Any = [(-20.0, 20.0)] * g + [(-LOGIT, LOGIT)] * (g * (g + 1))

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One function a block: the target is one of its symbols."""
        g, layout = self.blocks, self.minima.layout
        shape = (g, g + 1)
        value, by_alpha, by_beta = self.minima.risk(
            tier[g:].reshape(shape), x[g:].reshape(shape), layout.atoms(x[:g])
        )
        slope = np.zeros((g, g, g + 1))
        slope[np.arange(g), np.arange(g)] = by_alpha
        return value, np.hstack([layout.gather(by_beta), slope.reshape(g, -1)])


def _target_last(x: np.ndarray) -> np.ndarray:
    """(target, blocks) as the kernel's atoms: its empty block, blocks, target."""
    return np.concatenate([x, x[:1]])[None]


def _target_first(x: np.ndarray) -> np.ndarray:
    return np.append(x[0, -1], x[0, 1:-1])


class AttentionFirst:
    """max over s of min over beta of L_s(alpha'_s, beta), alpha'_s one step from alpha = 0.

    Variables: beta~ by block and ln eta. The step is quadratic in beta~, so central differences
    give its derivative exactly.
    """

    def __init__(self, sizes: Sequence[int]):
        self.minima = Minima(Layout(tuple(sizes)))
        g = len(sizes)
        self.logits = np.zeros(g + 1, dtype=bool)
        self.bounds: Any = [(-50.0, 50.0)] * g + [(np.log(1e-3), np.log(1e5))]

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One function a block."""
        beta, eta = x[:-1], float(np.exp(x[-1]))
        offset = eta * attention_step(self.minima, beta)
        value, slope, _ = self.minima(*widest_tiers(offset))
        out = np.empty((len(value), len(x)))
        for b, unit in enumerate(np.eye(len(beta))):
            rise = attention_step(self.minima, beta + unit) - attention_step(
                self.minima, beta - unit
            )
            out[:, b] = eta * (slope * rise).sum(axis=1) / 2
        out[:, -1] = (slope * offset).sum(axis=1)
        return value, out


class LazyHeads:
    """max over s of min over ||B||_F <= d^(1/4) of L_s at fixed heads; alpha (H, blocks), flat."""

    def __init__(self, sizes: Sequence[int], heads: int, rtol: float = 1e-6):
        self.heads, self.blocks = heads, len(sizes)
        self.radius = sum(sizes) ** 0.25
        self.logits = np.ones(heads * len(sizes), dtype=bool)
        self.bounds: Any = [(-LOGIT, LOGIT)] * (heads * len(sizes))
        self.parts = []
        for block in range(len(sizes)):
            background, owner = split_target(sizes, block)
            risk = BlockRisk(background)
            self.parts.append((MultiHeadRisk(risk.task, rtol), owner, risk.multiplicity))

    def outputs(self, tier: np.ndarray, x: np.ndarray, block: int) -> np.ndarray:
        """The constrained minimiser for a target in one block, shape (H, 1 + blocks of it)."""
        risk, owner, count = self.parts[block]
        alpha = self._attention(tier, x, owner)
        return risk.minimize_output(alpha, self.radius, count).beta

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One function a block."""
        values, slopes = [], []
        for risk, owner, count in self.parts:
            alpha = self._attention(tier, x, owner)
            found = risk.minimize_output(alpha, self.radius, count)
            at = risk.value_and_gradient(alpha, found.beta, found.residual)
            slope = np.zeros((self.heads, self.blocks))
            np.add.at(slope.T, owner, at.alpha.T)
            values.append(at.value)
            slopes.append(slope.ravel())
        return np.array(values), np.array(slopes)

    def _attention(self, tier: np.ndarray, x: np.ndarray, owner: list[int]):
        from popgd import Tiers

        shape = (self.heads, self.blocks)
        return Tiers(tier.reshape(shape)[:, owner], x.reshape(shape)[:, owner])
