"""The whole Hessian of the population risk, attention and output weights together.

For one word the loss is r^2/2 with r = v . gamma, and d gamma_i / d alpha_k = gamma_i (delta_ik -
gamma_k). Every second derivative is a moment of gamma_i gamma_k times powers of r, up to order 4:
integrals of the same kind as the gradient covariance (THEORY 7), so nothing is differenced.
"""

from __future__ import annotations

import numpy as np

from .cells import Frame, pieces
from .integral import Inputs, IntegralRoute
from .languages import Task
from .noise import CellMoments
from .quadrature import step_for

__all__ = ["curvature"]

ORDER = 4
"""Highest order of a moment: gamma_i gamma_k r rho."""


@np.errstate(under="ignore")
def curvature(
    task: Task, alpha: np.ndarray, beta: np.ndarray, residual: np.ndarray, rtol: float = 1e-12
) -> np.ndarray:
    """Second derivatives of the risk by (alpha, beta), shape (2d, 2d).

    Parameters
    ----------
    task : Task
    alpha, beta : array of shape (d,)
    residual : array of shape (number of targets,)
        beta - 2 on the targets.
    rtol : float
        As for `PopulationRisk`.

    Notes
    -----
    Memory and time grow like d^2 times the nodes. Source: THEORY 2, 7. Error: estimated, absolute:
    about 1e-14 of the sum of the absolute terms.
    """
    d = task.d
    route = IntegralRoute(task, rtol)
    inputs = Inputs(alpha[None], beta[None], residual[None])
    h = step_for(route.tolerance, ORDER)
    out = np.zeros((2 * d, 2 * d))
    for piece in pieces(inputs.alpha, route.cells):
        v = route.residual_weights(inputs, piece)[0]
        out += _cell(CellMoments(Frame(route.facts, piece), v, h, route.tolerance), d)
    out[d:, :d] = out[:d, d:].T
    return out


def _cell(cell: CellMoments, d: int) -> np.ndarray:
    """Its part of the Hessian; the block (beta, alpha) is left out."""
    w = cell.w
    ends = w[:, None] + w
    plain, rho, rho_rho = (cell.pairs(m, 0) for m in range(3))
    r, r_rho = (cell.pairs(m, 1) for m in range(2))
    out = np.zeros((2 * d, 2 * d))
    # the gammas of a word add up to 1, so row sums are moments of gamma_i alone
    alone, with_rho = r.sum(axis=1), r_rho.sum(axis=1)
    both = np.outer(w, w) * plain - ends * (rho + r) + rho_rho + 2 * r_rho
    out[:d, :d] = both + np.diag(w * alone - with_rho)
    out[:d, d:] = w[:, None] * plain - rho - r + np.diag(alone)
    out[d:, d:] = plain
    return out
