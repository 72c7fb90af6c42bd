"""The exact population risk of the model with several heads (Paper 2, Proposition 4)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .errors import NotAvailable
from .languages import Task
from .multihead_minimum import minimum
from .multihead_route import HeadInputs, HeadRoute, head_inputs
from .objective import Evaluation
from .tiers import Tiers

__all__ = ["HeadMinimum", "MultiHeadRisk"]


class HeadMinimum(NamedTuple):
    """The minimum over the output weights of all heads at fixed attention.

    Attributes
    ----------
    value : float or array of shape (...)
        The least risk.
    beta : array of shape (..., H, d)
        A minimiser.
    residual : array of shape (..., number of targets)
        Sum over heads of beta minus 2, on the targets.
    multiplier : float or array of shape (...)
        Lagrange multiplier of the norm constraint; 0 where it does not bind.
    """

    value: Any
    beta: Any
    residual: Any
    multiplier: Any


class MultiHeadRisk:
    """Exact population risk of f = sum over heads of beta^h . gamma^h - 1.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And, with its word distribution.
    rtol : float
        Relative accuracy in [1e-13, 1e-2], before cancellation between heads.

    Raises
    ------
    BadParameter
        For a task that is no Task, or rtol outside its range.

    Notes
    -----
    alpha and beta have shape (..., H, d) for any number H >= 1 of heads; alpha may be `Tiers`.
    `residual`, where accepted, has shape (..., number of targets) and is the sum over heads of
    beta on the targets, minus 2. With one head it agrees with `PopulationRisk`.
    Cost: O(d x nodes^2) a pair of heads for the value, O(d^2 x nodes^2) for dL/dalpha.
    Source: THEORY 2, 3. Error: proved for the value (`error_bound`, rounding included); gradients
    share the discretisation bounds, their truncation and rounding are estimated.

    Examples
    --------
    >>> import numpy as np, popgd
    >>> from popgd.multihead import MultiHeadRisk
    >>> risk = MultiHeadRisk(popgd.Occurrence(3))
    >>> round(risk.value(np.zeros((2, 3)), np.zeros((2, 3))), 12)
    1.0
    """

    def __init__(self, task: Task, rtol: float = 1e-12):
        if not isinstance(task, Task):
            raise check.refuse(
                "task", task, "must be a task", "pass for example popgd.Occurrence(50)"
            )
        self.task = task
        self.rtol = check.real("rtol", rtol, 1e-13, 1e-2, closed="both")
        self.route = HeadRoute(task, self.rtol)

    def __repr__(self) -> str:
        return f"MultiHeadRisk({self.task!r}, rtol={self.rtol:g})"

    @property
    def d(self) -> int:
        """Alphabet size."""
        return self.task.d

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Population risk, float or array over the batch axes."""
        problems, shape = self._check(alpha, beta, residual)
        return _shaped([self.route.split(x).sum() for x in problems], shape)

    def mse(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Mean squared error E[(f - y)^2], twice the risk."""
        return 2 * self.value(alpha, beta, residual)

    def split(self, alpha: Any, beta: Any, residual: Any = None) -> tuple[Any, Any]:
        """The parts of the risk on positive and on negative words."""
        problems, shape = self._check(alpha, beta, residual)
        parts = np.array([self.route.split(x) for x in problems]).reshape(-1, 2)
        return _shaped(parts[:, 0], shape), _shaped(parts[:, 1], shape)

    def value_and_gradient(self, alpha: Any, beta: Any, residual: Any = None) -> Evaluation:
        """Risk, dL/dalpha and dL/dbeta; gradients have the batch shape plus (H, d).

        Notes
        -----
        With Tiers, dL/dalpha is the derivative in the offsets.
        """
        problems, shape = self._check(alpha, beta, residual)
        found = [self.route.gradient(x) for x in problems]
        vector = (*shape, *problems[0].positive.shape) if problems else (*shape, 0, self.d)
        value, by_alpha, by_beta = zip(*found, strict=True) if found else ((), (), ())
        return Evaluation(
            _shaped(value, shape),
            np.array(by_alpha).reshape(vector),
            np.array(by_beta).reshape(vector),
        )

    def error_bound(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Proven bound on |value - truth|: discretisation, truncation and rounding."""
        problems, shape = self._check(alpha, beta, residual)
        return _shaped([self.route.error_bound(x) for x in problems], shape)

    def hessian_output(self, alpha: Any) -> np.ndarray:
        """E[gamma gamma^T] over all heads, shape (H, d, H, d), for alpha of shape (H, d).

        Notes
        -----
        Source: THEORY 2. Error: estimated, about rtol relative in every entry.
        """
        alpha = self._one(alpha)
        heads = alpha.shape[-2]
        return sum(self.route.gram(alpha, heads)).reshape(heads, self.d, heads, self.d)  # type: ignore

    def minimize_output(
        self, alpha: Any, radius: float | None = None, multiplicity: Any = None
    ) -> HeadMinimum:
        """The exact minimum over the output weights B of shape (H, d) at fixed attention.

        Parameters
        ----------
        alpha : array or Tiers of shape (..., H, d)
        radius : float, optional
            Largest Frobenius norm of B; none if omitted.
        multiplicity : array of shape (d,), optional
            Number of symbols that each entry stands for: the norm is sqrt(sum n_i B_hi^2).

        Returns
        -------
        HeadMinimum

        Raises
        ------
        BadParameter
            When the radius is not positive.

        Notes
        -----
        The risk is quadratic in B, so with a constraint this is a trust-region problem: the
        secular equation ||B(lambda)|| = radius is solved on the eigenvectors of the Hessian.
        Source: Paper A.5; THEORY 2. Error: estimated; the value is evaluated at the minimiser.
        """
        if radius is not None:
            radius = check.real("radius", radius, 0.0, math.inf)
        if multiplicity is not None:
            multiplicity = check.weights("multiplicity", multiplicity, self.d)
        alpha = self._attention(alpha)
        lead, last = alpha.shape[:-2], alpha.shape[-2:]
        flat = _map(alpha, lambda x: x.reshape(-1, *last))
        count = math.prod(lead)
        found = [
            minimum(self.route, _map(flat, lambda x, i=i: x[i]), radius, multiplicity)
            for i in range(count)
        ]
        value, beta, residual, multiplier = zip(*found, strict=True) if found else ((),) * 4
        return HeadMinimum(
            _shaped(value, lead),
            np.array(beta).reshape(*lead, *last),
            np.array(residual).reshape(*lead, len(self.task.targets)),
            _shaped(multiplier, lead),
        )

    def accuracy(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Not available: the sign of f is no comparison of counts once heads differ."""
        raise NotAvailable(
            "accuracy: exact accuracy exists for one head only; use popgd.PopulationRisk, or sample"
            " words and average."
        )

    def _one(self, alpha: Any) -> Any:
        alpha = self._attention(alpha)
        if len(alpha.shape) != 2:
            remedy = f"pass shape (H, {self.d}), or loop over the batch"
            raise check.refuse("alpha", alpha.shape, "takes one matrix", remedy)
        return alpha

    def _attention(self, alpha: Any) -> Any:
        if not isinstance(alpha, Tiers):
            alpha = check.weights("alpha", alpha, self.d, heads=True)
        elif len(alpha.shape) < 2 or alpha.shape[-1] != self.d:
            remedy = f"use shape (..., H, {self.d})"
            raise check.refuse("alpha", alpha.shape, "needs axes for heads and symbols", remedy)
        if alpha.shape[-2] < 1:
            raise check.refuse("alpha", alpha.shape, "has no head", "pass at least one head")
        return alpha

    def _check(
        self, alpha: Any, beta: Any, residual: Any
    ) -> tuple[list[HeadInputs], tuple[int, ...]]:
        alpha = self._attention(alpha)
        beta = check.weights("beta", beta, self.d, heads=True)
        count = len(self.task.targets)
        lead = [alpha.shape[:-2], beta.shape[:-2]]
        if residual is not None:
            residual = check.weights("residual", residual, count)
            lead.append(residual.shape[:-1])
        try:
            shape = np.broadcast_shapes(*lead)
            last = np.broadcast_shapes(alpha.shape[-2:], beta.shape[-2:])
        except ValueError:
            remedy = "use equal or broadcastable leading shapes and the same number of heads"
            shapes = [alpha.shape, beta.shape, *lead[2:]]
            raise check.refuse("alpha, beta", shapes, "axes do not broadcast", remedy) from None
        alpha = _map(alpha, lambda x: np.broadcast_to(x, (*shape, *last)).reshape(-1, *last))
        beta = np.broadcast_to(beta, (*shape, *last)).reshape(-1, *last)
        if residual is not None:
            residual = np.broadcast_to(residual, (*shape, count)).reshape(-1, count)
        targets = list(self.task.targets)
        return [
            head_inputs(
                _map(alpha, lambda x, i=i: x[i]),
                beta[i],
                None if residual is None else residual[i],
                targets,
            )
            for i in range(len(beta))
        ], shape


def _map(alpha: Any, function: Any) -> Any:
    """Apply to the array, or to both arrays of Tiers."""
    if isinstance(alpha, Tiers):
        return Tiers(function(alpha.tier), function(alpha.offset))
    return function(alpha)


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """A float for scalar problems, else an array over the batch axes."""
    x = np.asarray(x, dtype=float)
    return float(x.reshape(())) if shape == () else x.reshape(shape)
