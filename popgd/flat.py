"""An objective as a function of one flat vector, for scipy.optimize and its like."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _validate as check
from .starts import exact, has_heads, start_of, task_of
from .trajectory import Weights

__all__ = ["FlatObjective"]

LAYERS = ("joint", "A", "O")


class FlatObjective:
    """The risk and its gradient over a flat vector x of the weights that move.

    Parameters
    ----------
    objective : Objective or Task
        Anything with `value_and_gradient` and a task.
    layers : {"joint", "A", "O"}
        What x holds: alpha then beta (2 d entries), alpha only, or beta only.
    alpha, beta : array_like of shape (d,), optional
        The weights that x does not hold; zero by default. Also the point `x0`.

    Attributes
    ----------
    x0 : array
        The flat vector of the given alpha and beta.

    Raises
    ------
    BadParameter
        When something has the wrong shape or is no objective.

    Notes
    -----
    For a target, x holds beta - 2 in place of beta: near the optimum 2 e_s a double beta cannot
    tell risks of 1e-30 apart, its residual can. Gradients are the same. One evaluation serves
    `fun` and `jac` at the same x. Source: THEORY 5. Error: that of the objective.

    Examples
    --------
    >>> import popgd, scipy.optimize
    >>> flat = popgd.FlatObjective(popgd.PopulationRisk(popgd.Occurrence(3)), layers="O")
    >>> best = scipy.optimize.minimize(flat, flat.x0, jac=True, method="BFGS")
    >>> round(best.fun, 6)
    0.139326
    """

    def __init__(self, objective: Any, layers: str = "joint", alpha: Any = None, beta: Any = None):
        task = task_of("objective", objective)
        if has_heads(objective):
            raise check.refuse("objective", objective, "has heads", "flatten its arrays yourself")
        start = start_of(task, alpha, beta, None)
        if start.alpha.ndim != 1:
            raise check.refuse(
                "alpha, beta", start.alpha.shape, "a flat vector is one point", "pass shape (d,)"
            )
        self.objective = exact(objective)
        self.layers = check.choice("layers", layers, LAYERS)
        self.d: int = task.d
        self._targets = list(task.targets)
        self._fixed = start
        self._last: tuple[np.ndarray, float, np.ndarray] | None = None
        self.x0 = self.pack(start.alpha, start.beta, start.residual)

    @property
    def size(self) -> int:
        """Entries of x."""
        return 2 * self.d if self.layers == "joint" else self.d

    def pack(self, alpha: Any, beta: Any, residual: Any = None) -> np.ndarray:
        """Weights to the flat vector."""
        beta = np.array(check.weights("beta", beta, self.d))
        if residual is None:
            residual = beta[..., self._targets] - 2.0
        beta[..., self._targets] = residual
        alpha = check.weights("alpha", alpha, self.d)
        parts = {"joint": (alpha, beta), "A": (alpha,), "O": (beta,)}[self.layers]
        return np.concatenate(parts)

    def unpack(self, x: Any) -> Weights:
        """The flat vector to (alpha, beta, residual), the fixed layer filled in."""
        x = check.weights("x", x, self.size)
        if x.ndim != 1:
            raise check.refuse("x", x, "must be one vector", f"pass shape ({self.size},)")
        alpha = x[: self.d] if self.layers != "O" else self._fixed.alpha
        if self.layers == "A":
            return Weights(alpha, self._fixed.beta, self._fixed.residual)
        beta = x[-self.d :].copy()
        residual = beta[self._targets]
        beta[self._targets] += 2.0
        return Weights(alpha, beta, residual)

    def __call__(self, x: Any) -> tuple[float, np.ndarray]:
        """(risk, gradient) at x: pass the object itself with ``jac=True``."""
        x = np.array(x, dtype=float)
        if self._last is None or not np.array_equal(self._last[0], x):
            alpha, beta, residual = self.unpack(x)
            value, by_alpha, by_beta = self.objective.value_and_gradient(
                alpha, beta, residual=residual
            )
            if np.ndim(value):
                raise check.refuse(
                    "objective", self.objective, "is a stack of several", "pass one batch of words"
                )
            parts = {"joint": (by_alpha, by_beta), "A": (by_alpha,), "O": (by_beta,)}[self.layers]
            self._last = (x, float(value), np.concatenate(parts))
        return self._last[1], self._last[2].copy()

    def fun(self, x: Any) -> float:
        """Risk at x."""
        return self(x)[0]

    def jac(self, x: Any) -> np.ndarray:
        """Gradient at x."""
        return self(x)[1]
