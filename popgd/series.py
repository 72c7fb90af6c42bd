"""Risk and gradients by symbol-count sums with proven tails: the independent second route.

Symbols with equal weights are counted together, and the law of (word length, group counts) is
summed term by term up to a proven cut. Nothing here uses a generating function or an integral,
so agreement with `popgd.PopulationRisk(method="integral")` is evidence for both (THEORY 4).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .count_risk import CountRisk, SeriesValue, evaluate, prepare
from .count_sums import MAX_TERMS, unit_bounds
from .errors import NotAvailable
from .languages import Task
from .tiers import Tiers

__all__ = [
    "SeriesEvaluation",
    "SeriesRoute",
    "SeriesValue",
    "affordable",
    "series_gradient",
    "series_risk",
    "terms_needed",
]


class SeriesEvaluation(NamedTuple):
    """Risk and gradients, each with a proven bound on its error.

    Attributes
    ----------
    value, bound : float
    alpha, alpha_bound, beta, beta_bound : array of shape (d,)
        dL/dalpha and dL/dbeta with componentwise bounds.
    positive, negative : SeriesValue
        The parts of the risk from words in the language and from the others.
    terms : int
        Number of terms summed.
    """

    value: float
    bound: float
    alpha: np.ndarray
    alpha_bound: np.ndarray
    beta: np.ndarray
    beta_bound: np.ndarray
    positive: SeriesValue
    negative: SeriesValue
    terms: int


def series_risk(
    task: Task,
    alpha: Any,
    beta: Any,
    residual: Any = None,
    *,
    rtol: float = 1e-12,
    max_terms: int = MAX_TERMS,
) -> SeriesValue:
    """The population risk by summation over symbol counts, with a proven error bound.

    Parameters
    ----------
    task : Task
        Occurrence, Or or And with any length and symbol law.
    alpha, beta : array_like of shape (d,)
        Attention and output weights.
    residual : array_like of shape (number of targets,), optional
        beta - 2 on the targets; replaces the rounded difference on positive words.
    rtol : float
        Words left out may change the value by this much relative to it.
    max_terms : int
        Refuse when more terms would be needed.

    Returns
    -------
    SeriesValue
        (value, bound), dimensionless.

    Raises
    ------
    NotAvailable
        When more than `max_terms` terms are needed; the message says how many.
    BadParameter
        When an argument is malformed.

    Notes
    -----
    Source: THEORY 4. Error: proved. The bound adds the words left out (their probability, or a
    moment of their length, times an upper bound on the loss there) and the rounding of each
    term: 5 units a ratio step, 24 + 2g units for the residual, numpy's pairwise sum, with
    exp and exp2 taken to be within 4 units of 2^-53.

    Examples
    --------
    >>> from popgd.languages import Occurrence
    >>> value, bound = series_risk(Occurrence(3), [0, 0, 0], [0, 0, 0])
    >>> abs(value - 1.0) <= bound  # f = -1 on every word, half of them positive
    True
    """
    total = prepare(task, alpha, beta, residual)
    rtol, max_terms = _options(rtol, max_terms)
    return evaluate(total, rtol, max_terms, gradients=False).loss(1, -1)


def _options(rtol: Any, max_terms: Any) -> tuple[float, int]:
    rtol = check.real("rtol", rtol, 1e-15, 1.0, closed="left", remedy="pass a number in [1e-15, 1)")
    return rtol, check.integer("max_terms", max_terms, 1)


def series_gradient(
    task: Task,
    alpha: Any,
    beta: Any,
    residual: Any = None,
    *,
    rtol: float = 1e-12,
    max_terms: int = MAX_TERMS,
) -> SeriesEvaluation:
    """Risk, its two parts and both gradients, each with a proven error bound.

    Parameters
    ----------
    task, alpha, beta, residual, rtol, max_terms
        As for `series_risk`; `rtol` steers the tail of the value, gradients report theirs.

    Returns
    -------
    SeriesEvaluation

    Raises
    ------
    NotAvailable, BadParameter
        As for `series_risk`.

    Notes
    -----
    v_G - (f - y) is formed as the sum over H of (v_G - v_H) gamma_H, each difference rounded
    once. Source: THEORY 2 (third line, before the integral), 4. Error: proved.
    """
    total = prepare(task, alpha, beta, residual)
    rtol, max_terms = _options(rtol, max_terms)
    result = evaluate(total, rtol, max_terms, gradients=True)
    return SeriesEvaluation(
        *result.loss(1, -1),
        *result.attention(),
        *result.output(),
        result.loss(1),
        result.loss(-1),
        total.terms,
    )


def terms_needed(task: Task, alpha: Any, beta: Any, residual: Any = None) -> float:
    """Estimated number of terms of the series, all but 1e-14 of the probability kept.

    Parameters
    ----------
    task, alpha, beta, residual
        As for `series_risk`.

    Returns
    -------
    float
        About the number of terms that are not negligible; infinity when
        there are too many different weight pairs. A risk that is tiny because it averages
        rare words takes up to twice as many.
    """
    try:
        total = prepare(task, alpha, beta, residual)
    except NotAvailable:
        return math.inf
    return total.terms_of(*total.cut(unit_bounds, 1e-14))


def affordable(
    task: Task, alpha: Any, beta: Any, residual: Any = None, *, max_terms: int = MAX_TERMS
) -> bool:
    """Whether `series_risk` would take at most `max_terms` terms.

    Parameters
    ----------
    task, alpha, beta, residual, max_terms
        As for `series_risk`.
    """
    return terms_needed(task, alpha, beta, residual) <= max_terms


class SeriesRoute:
    """Risk, gradients and error bound for rows of weights, one sum a row.

    Parameters
    ----------
    task : Task
    rtol, max_terms
        As for `series_risk`.

    Notes
    -----
    The interface of `popgd.integral.IntegralRoute`: `inputs` has alpha (B, d) or Tiers, beta
    (B, d) and residual (B, number of targets) or None. Source: THEORY 4. Error: proved.
    """

    def __init__(self, task: Task, rtol: float = 1e-12, max_terms: int = MAX_TERMS):
        self.task = task
        self.rtol, self.max_terms = _options(rtol, max_terms)

    def split(self, inputs: Any) -> np.ndarray:
        """Risk on positive and on negative words, shape (2, B)."""
        results = self._each(inputs, gradients=False)
        return np.array([[r.loss(label).value for r in results] for label in (1, -1)])

    def value_and_gradient(self, inputs: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Risk (B,), dL/dalpha (B, d) and dL/dbeta (B, d)."""
        results = self._each(inputs, gradients=True)
        shape = inputs.beta.shape
        return (
            np.array([r.loss(1, -1).value for r in results]),
            np.array([r.attention()[0] for r in results]).reshape(shape),
            np.array([r.output()[0] for r in results]).reshape(shape),
        )

    def error_bound(self, inputs: Any) -> np.ndarray:
        """Proven bound on |value - truth|, tail and rounding, shape (B,)."""
        return np.array([r.loss(1, -1).bound for r in self._each(inputs, gradients=False)])

    def _each(self, inputs: Any, gradients: bool) -> list[CountRisk]:
        out = []
        for i, beta in enumerate(inputs.beta):
            alpha = inputs.alpha
            row = Tiers(alpha.tier[i], alpha.offset[i]) if isinstance(alpha, Tiers) else alpha[i]
            residual = None if inputs.residual is None else inputs.residual[i]
            total = prepare(self.task, row, beta, residual)
            out.append(evaluate(total, self.rtol, self.max_terms, gradients))
        return out
