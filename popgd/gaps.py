"""The paper's two measures of progress: attention gap and output gap."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from . import _validate as check

__all__ = ["attention_gap", "output_gap"]


def attention_gap(alpha: Any, targets: Any) -> Any:
    """softmax(alpha)_s - max over i != s of softmax(alpha)_i; several targets: the least of them.

    Parameters
    ----------
    alpha : array_like of shape (..., d)
        Attention weights.
    targets : int, sequence of int, or Task
        Target symbols; the maximum runs over the symbols that are none.

    Returns
    -------
    float or array of shape (...)
        In [-1, 1]; NaN when every symbol is a target.

    Notes
    -----
    Source: Paper 1 (Figure 1). Error: rounding, a few ulp of 1.
    """
    alpha = _vectors("alpha", alpha)
    return attention_gap_of(alpha, _targets(targets, alpha.shape[-1]))


def output_gap(beta: Any, targets: Any) -> Any:
    """(beta_s - max over i != s of beta_i) / 2; several targets: the least of them.

    Parameters
    ----------
    beta : array_like of shape (..., d)
        Output weights.
    targets : int, sequence of int, or Task
        Target symbols; the maximum runs over the symbols that are none.

    Returns
    -------
    float or array of shape (...)
        1 at the optimum 2 e_s; NaN when every symbol is a target.

    Notes
    -----
    Source: Paper 1 (Figure 1). Error: rounding, 1 ulp of the larger weight.
    """
    beta = _vectors("beta", beta)
    return output_gap_of(beta, _targets(targets, beta.shape[-1]))


def attention_gap_of(alpha: np.ndarray, targets: Any) -> Any:
    """`attention_gap` of checked arguments."""
    share = np.exp(alpha - alpha.max(axis=-1, keepdims=True))
    share /= share.sum(axis=-1, keepdims=True)
    return _gap(share, targets)


def output_gap_of(beta: np.ndarray, targets: Any) -> Any:
    """`output_gap` of checked arguments."""
    return _gap(beta / 2, targets)


def _vectors(name: str, value: Any) -> np.ndarray:
    remedy = "pass finite weights of shape (..., d)"
    array = check.real_array(name, value, closed="neither", remedy=remedy)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise check.refuse(name, value, "needs a last axis of symbols", remedy)
    return array


def _targets(value: Any, d: int) -> tuple[int, ...]:
    value = getattr(value, "targets", value)
    return check.symbols("targets", (value,) if isinstance(value, numbers.Integral) else value, d)


def _gap(values: np.ndarray, targets: Any) -> Any:
    wanted = np.zeros(values.shape[-1], dtype=bool)
    wanted[list(targets)] = True
    if wanted.all():
        gap = np.full(values.shape[:-1], math.nan)
    else:
        gap = values[..., wanted].min(axis=-1) - values[..., ~wanted].max(axis=-1)
    return gap if np.ndim(gap) else float(gap)
