"""The exact population risk: value, gradients and minimum over the output weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .cells import attention_rows
from .errors import PrecisionExhausted
from .integral import Inputs, IntegralRoute
from .languages import Task
from .objective import LARGEST_BETA, Evaluation, OutputMinimum
from .tiers import Tiers

__all__ = ["PopulationRisk", "Split"]

NEWTON_STEPS = 6
"""Newton steps tried for the output minimum; two suffice unless the Hessian is near singular."""

SETTLED = 1e-15
"""A step that lowers the risk by less than this share is the last."""


class Split(NamedTuple):
    """The risk by label: value = positive + negative."""

    positive: Any
    negative: Any


class PopulationRisk:
    """Exact population risk L = E[(f - y)^2] / 2 of the one-head model.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And, with its word distribution.
    method : {"integral", "series"}
        Integral route (any weights, any d up to about 10^6) or certified symbol-count sums.
    rtol : float
        Relative accuracy in [1e-13, 1e-2]; 1e-12 by default.

    Raises
    ------
    BadParameter
        For a task that is no Task, an unknown method, or rtol outside its range.
    NotAvailable
        When d exceeds 10^7; `popgd.symmetric` goes on to 10^15.

    Notes
    -----
    f = beta . gamma - 1 with gamma the aggregated attention of the word (Paper 2). Weights may
    have leading batch axes, shape (..., d). `residual`, where accepted, is beta - 2 on the
    targets with shape (..., number of targets): near the optimum beta itself cannot hold it.
    alpha may be a `Tiers` object for limits alpha -> +-infinity.
    Source: THEORY 2, 3, 4. Error: proved for the value (`error_bound`, rounding included);
    gradients share the discretisation and truncation bounds, their rounding is estimated.

    Examples
    --------
    >>> import numpy as np, popgd
    >>> risk = popgd.PopulationRisk(popgd.Occurrence(3))
    >>> round(risk.value(np.zeros(3), np.zeros(3)), 12)
    1.0
    """

    def __init__(self, task: Task, method: str = "integral", rtol: float = 1e-12):
        if not isinstance(task, Task):
            raise check.refuse(
                "task", task, "must be a task", "pass for example popgd.Occurrence(50)"
            )
        self.task = task
        self.method = check.choice("method", method, ("integral", "series"))
        self.rtol = check.real("rtol", rtol, 1e-13, 1e-2, closed="both")
        self.route: Any = IntegralRoute(task, self.rtol)
        if self.method == "series":
            from .series import SeriesRoute

            self.route = SeriesRoute(task, self.rtol)

    def __repr__(self) -> str:
        return f"PopulationRisk({self.task!r}, method={self.method!r}, rtol={self.rtol:g})"

    @property
    def d(self) -> int:
        """Alphabet size."""
        return self.task.d

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Population risk, float or array over the batch axes."""
        positive, negative = self.split(alpha, beta, residual)
        return positive + negative

    def mse(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Mean squared error E[(f - y)^2], twice the risk."""
        return 2 * self.value(alpha, beta, residual)

    def split(self, alpha: Any, beta: Any, residual: Any = None) -> Split:
        """The parts of the risk on positive and on negative words."""
        inputs, shape = self._check(alpha, beta, residual)
        positive, negative = self.route.split(inputs)
        return Split(_shaped(positive, shape), _shaped(negative, shape))

    def value_and_gradient(self, alpha: Any, beta: Any, residual: Any = None) -> Evaluation:
        """Risk, dL/dalpha and dL/dbeta; gradients have the batch shape plus (d,).

        Notes
        -----
        With Tiers, dL/dalpha is the derivative in the offsets.
        """
        inputs, shape = self._check(alpha, beta, residual)
        value, by_alpha, by_beta = self.route.value_and_gradient(inputs)
        vector = (*shape, self.d)
        return Evaluation(_shaped(value, shape), by_alpha.reshape(vector), by_beta.reshape(vector))

    def error_bound(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Proven bound on |value - truth|: discretisation, truncation and rounding."""
        inputs, shape = self._check(alpha, beta, residual)
        return _shaped(self.route.error_bound(inputs), shape)

    def hessian_output(self, alpha: Any) -> Any:
        """E[gamma gamma^T] as an operator, for one attention vector of shape (d,)."""
        from .hessian import OutputHessian

        alpha = self._attention(alpha)
        if len(alpha.shape) != 1:
            remedy = f"pass shape ({self.d},), or loop over the batch"
            raise check.refuse("alpha", alpha.shape, "the Hessian takes one vector", remedy)
        return OutputHessian.at(self.task, alpha, self.rtol)

    @np.errstate(under="ignore")
    def minimize_output(self, alpha: Any) -> OutputMinimum:
        """The exact minimum over the output weights at fixed attention.

        Notes
        -----
        In residual coordinates the risk is quadratic: from beta = 2 on the targets, Newton steps
        with the exact Hessian and gradient until a step lowers the risk by less than 1e-15 of it,
        which takes two unless the Hessian is nearly singular (then PrecisionExhausted). The value
        is evaluated at the result, so it is off by the square of what is left.
        Source: THEORY 1, 2, 5. Error: estimated, 1e-12 relative.
        """
        alpha = self._attention(alpha)
        lead = alpha.shape[:-1]
        rows = attention_rows(alpha, self.d)
        targets = list(self.task.targets)
        beta = np.zeros((rows.shape[0], self.d))
        beta[:, targets] = 2.0
        residual = np.zeros((len(beta), len(targets)))
        for i in range(len(beta)):
            self._newton(_row(rows, i), beta[i], residual[i])
        value = self.value(rows, beta, residual)
        return OutputMinimum(
            _shaped(value, lead),
            beta.reshape(*lead, self.d),
            residual.reshape(*lead, len(targets)),
        )

    def _newton(self, alpha: Any, beta: np.ndarray, residual: np.ndarray) -> None:
        """Newton steps in place, until one lowers the risk by less than rounding shows."""
        targets = list(self.task.targets)
        try:
            hessian = self.hessian_output(alpha)
            for _ in range(NEWTON_STEPS):
                value, _, gradient = self.value_and_gradient(alpha, beta, residual)
                step = hessian.solve(gradient)
                residual -= step[targets]
                beta -= step
                beta[targets] = 2.0 + residual
                if gradient @ step <= SETTLED * value:
                    return
        except np.linalg.LinAlgError:
            pass
        raise PrecisionExhausted(
            "alpha: the Hessian in beta is too close to singular for float64 "
            "(one label is almost certain); use popgd.certified.minimize_output."
        )

    def variance(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Exact variance of the single-word loss and covariance of its gradient (THEORY 7)."""
        from .noise import noise

        inputs, shape = self._check(alpha, beta, residual)
        if shape:
            raise check.refuse(
                "alpha, beta", shape, "must be one pair of vectors", f"pass shape ({self.d},)"
            )
        return noise(self.task, inputs, self.rtol)

    def accuracy(self, alpha: Any, beta: Any, residual: Any = None) -> Any:
        """Exact P(sign f = y) in a proven interval, where symbol-count sums give it.

        Returns
        -------
        popgd.accuracy.Accuracy
            (value, lower, upper, proved): scalars for one pair of vectors, else arrays over the
            batch axes, summed one after another.

        Raises
        ------
        NotAvailable
            When the sums need too many terms; `popgd.EmpiricalRisk` samples instead.

        Notes
        -----
        Source: THEORY 4. Error: proved, or estimated where `proved` is False.
        """
        from .accuracy import Accuracy, accuracy

        inputs, shape = self._check(alpha, beta, residual)
        residuals = [None] * len(inputs.beta) if inputs.residual is None else inputs.residual
        each = [
            accuracy(self.task, _row(inputs.alpha, i), row, v)
            for i, (row, v) in enumerate(zip(inputs.beta, residuals, strict=True))
        ]
        if shape == ():
            return each[0]
        fields: Any = (np.array([x[k] for x in each]) for k in range(len(Accuracy._fields)))
        return Accuracy(*(x.reshape(shape) for x in fields))

    def _attention(self, alpha: Any) -> Any:
        if not isinstance(alpha, Tiers):
            return check.weights("alpha", alpha, self.d)
        if alpha.shape[-1] != self.d:
            raise check.refuse("alpha", alpha.shape, "last axis must be d", f"use d = {self.d}")
        return alpha

    def _check(self, alpha: Any, beta: Any, residual: Any) -> tuple[Inputs, tuple[int, ...]]:
        alpha = self._attention(alpha)
        beta = check.weights("beta", beta, self.d)
        largest = np.abs(beta).max(initial=0.0)
        if largest > LARGEST_BETA:
            rule = f"output weights beyond {LARGEST_BETA:g} give risks beyond float64"
            raise check.refuse("beta", float(largest), rule, "rescale beta, or use popgd.certified")
        count = len(self.task.targets)
        lead = [alpha.shape[:-1], beta.shape[:-1]]
        if residual is not None:
            residual = check.weights("residual", residual, count)
            lead.append(residual.shape[:-1])
        try:
            shape = np.broadcast_shapes(*lead)
        except ValueError:
            remedy = "use equal or broadcastable leading shapes"
            raise check.refuse("alpha, beta", lead, "batch axes do not broadcast", remedy) from None

        def rows(x: np.ndarray, last: int) -> np.ndarray:
            return np.broadcast_to(x, (*shape, last)).reshape(-1, last)

        if isinstance(alpha, Tiers):
            alpha = Tiers(rows(alpha.tier, self.d), rows(alpha.offset, self.d))
        else:
            alpha = rows(alpha, self.d)
        beta = rows(beta, self.d)
        if residual is not None:
            residual = rows(residual, count)
            check.same_weight("residual", beta[:, list(self.task.targets)], residual)
        return Inputs(alpha, beta, residual), shape


def _row(rows: Any, i: int) -> Any:
    return Tiers(rows.tier[i], rows.offset[i]) if isinstance(rows, Tiers) else rows[i]


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """A float for scalar problems, else an array over the batch axes."""
    x = np.asarray(x)
    return float(x.reshape(())) if shape == () else x.reshape(shape)
