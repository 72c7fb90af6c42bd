"""What every objective offers: the interface that training, sweeps and claims rely on."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

__all__ = ["LARGEST_BETA", "Evaluation", "Objective", "OutputMinimum"]


LARGEST_BETA = 1e150
"""Output weights beyond this have risks beyond float64."""


class Evaluation(NamedTuple):
    """Risk and both gradients at one point, or over leading batch axes.

    Attributes
    ----------
    value : float or array of shape (...)
        The risk L, dimensionless.
    alpha, beta : array of shape (..., d)
        dL/dalpha and dL/dbeta.
    """

    value: Any
    alpha: Any
    beta: Any


class OutputMinimum(NamedTuple):
    """The exact minimum of the risk over the output weights at fixed attention.

    Attributes
    ----------
    value : float or array of shape (...)
        min over beta of L(alpha, beta).
    beta : array of shape (..., d)
        A minimiser.
    residual : array of shape (..., number of targets)
        beta - 2 on the targets, to full relative accuracy where beta itself cannot hold it.
    """

    value: Any
    beta: Any
    residual: Any


@runtime_checkable
class Objective(Protocol):
    """A task together with a way to average over its words.

    Every method takes alpha and beta of shape (..., d) and an optional `residual` of shape
    (..., number of targets): beta - 2 on the targets, which replaces the rounded difference.
    """

    @property
    def task(self) -> Any: ...

    def value(self, alpha: Any, beta: Any, residual: Any = None) -> Any: ...

    def value_and_gradient(self, alpha: Any, beta: Any, residual: Any = None) -> Evaluation: ...

    def minimize_output(self, alpha: Any) -> OutputMinimum: ...

    def hessian_output(self, alpha: Any) -> Any: ...

    def accuracy(self, alpha: Any, beta: Any) -> Any: ...
