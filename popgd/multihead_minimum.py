"""Least squares over the outputs of all heads, inside a ball: the trust-region problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .multihead_route import HeadInputs, HeadRoute, head_inputs

__all__ = ["minimum", "secular"]

RANK = 1e-14
"""Eigenvalues of the scaled Hessian below this share of the largest count as zero."""


def minimum(
    route: HeadRoute, alpha: Any, radius: float | None, multiplicity: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Least risk, minimiser (H, d), its residual on the targets, and the multiplier.

    Notes
    -----
    With B = (2/H) on the targets plus x, the slope at x = 0 is minus a sum of positive terms, so
    that x, and with it the residual, keeps its digits near a perfect fit.
    """
    heads, d = alpha.shape
    targets = list(route.facts.task.targets)
    base = np.zeros((heads, d))
    base[:, targets] = 2.0 / heads
    positive, negative = route.gram(alpha, heads)
    hessian = positive + negative
    right = positive @ (2.0 / heads - base).ravel() - negative @ base.ravel()
    root = np.sqrt(np.tile(np.ones(d) if multiplicity is None else multiplicity, heads))

    def inputs(x: np.ndarray) -> HeadInputs:
        residual = x.reshape(heads, d)[:, targets].sum(axis=0)
        return head_inputs(alpha, base + x.reshape(heads, d), residual, targets)

    x, multiplier = _free(hessian, right), 0.0
    if radius is None or np.linalg.norm(root * (base.ravel() + x)) <= radius:
        # a second step with the exact slope removes the solver's rounding
        x -= _free(hessian, route.gradient(inputs(x), attention=False)[2].ravel())
    else:
        scaled = hessian / root[:, None] / root
        full = (right + hessian @ base.ravel()) / root
        b, multiplier = secular(scaled, full, radius)
        x = b / root - base.ravel()
    found = inputs(x)
    beta = found.negative
    residual = x.reshape(heads, d)[:, targets].sum(axis=0)
    return float(route.split(found).sum()), beta, residual, multiplier


def _free(hessian: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A solution of hessian x = right, of least norm after scaling to unit diagonal."""
    scale = 1 / np.sqrt(np.diag(hessian))
    values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
    keep = values > RANK * len(values) * values[-1]
    inner = (vectors.T @ (scale * right))[keep] / values[keep]
    return scale * (vectors[:, keep] @ inner)


def secular(hessian: np.ndarray, right: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """The minimiser of x.Hx/2 - right.x over ||x|| = radius, and its multiplier > 0.

    Parameters
    ----------
    hessian : array of shape (n, n)
        Positive semidefinite.
    right : array of shape (n,)
    radius : float
        At most the norm of the free minimiser.

    Notes
    -----
    ||(H + lambda)^-1 right|| falls in lambda; Newton's method on its reciprocal, which is
    nearly linear, inside a bracket. Error: estimated, rounding of the eigensystem.
    """
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    parts = vectors.T @ right
    low, high = 0.0, float(np.linalg.norm(right)) / radius
    multiplier = high / 2
    for _ in range(200):
        shifted = values + multiplier
        x = parts / shifted
        norm = float(np.linalg.norm(x))
        low, high = (multiplier, high) if norm > radius else (low, multiplier)
        slope = -float((x * x / shifted).sum()) / norm
        step = norm * (norm - radius) / (radius * slope)
        before, multiplier = multiplier, multiplier - step
        if not low < multiplier < high:
            multiplier = (low + high) / 2
        if abs(multiplier - before) <= 1e-16 * multiplier or not math.isfinite(multiplier):
            break
    x = vectors @ (parts / (values + multiplier))
    return x * (radius / float(np.linalg.norm(x))), multiplier
