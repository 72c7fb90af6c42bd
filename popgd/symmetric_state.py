"""Symmetric weights and what they are worth: risk, logarithm of the risk, gradient, minimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check
from .moment_table import MomentTable
from .symmetric_moments import dimensions
from .symmetric_quadratic import OutputQuadratic, SymmetricMinimum, plain, quadratic
from .words import LARGEST_D

__all__ = ["Gradient", "State", "gradient", "log_risk", "minimize_output", "risk"]


@dataclass(frozen=True, eq=False)
class State:
    """Weights with one value on the target and one on every other symbol.

    Parameters
    ----------
    alpha_target, alpha_background : array_like
        Attention weights alpha_s and alpha_j, logits; one of them may be +-inf.
    beta_target, beta_background : array_like
        Output weights beta_s and beta_j, finite.
    residual_target : array_like, optional
        beta_s - 2 where beta_s itself cannot hold it; None means the rounded difference.

    Attributes
    ----------
    gap : float or array
        alpha_s - alpha_j.
    residual : float or array
        `residual_target`, or beta_target - 2.

    Raises
    ------
    BadParameter
        When a weight is NaN, an output weight infinite, the gap undefined, the shapes do not
        broadcast, or beta_target and residual_target disagree.

    Notes
    -----
    Source: THEORY 5. Error: none.
    """

    alpha_target: Any
    alpha_background: Any
    beta_target: Any
    beta_background: Any
    residual_target: Any = None

    def __post_init__(self) -> None:
        for name in ("alpha_target", "alpha_background"):
            self._set(name, check.real_array(name, getattr(self, name)))
        finite = {
            "low": -np.inf,
            "high": np.inf,
            "closed": "neither",
            "remedy": "pass finite weights",
        }
        for name in ("beta_target", "beta_background"):
            self._set(name, check.real_array(name, getattr(self, name), **finite))
        if self.residual_target is not None:
            name = "residual_target"
            self._set(name, check.real_array(name, self.residual_target, **finite))
        self._consistent()

    def _set(self, name: str, value: np.ndarray) -> None:
        object.__setattr__(self, name, plain(value))

    def _consistent(self) -> None:
        try:
            np.broadcast_shapes(*(np.shape(x) for x in vars(self).values()))
        except ValueError:
            raise check.refuse(
                "State",
                [np.shape(x) for x in vars(self).values()],
                "shapes do not broadcast",
                "pass scalars or arrays of one shape",
            ) from None
        same = np.isinf(self.alpha_target) & (
            np.asarray(self.alpha_target) == np.asarray(self.alpha_background)
        )
        if np.any(same):
            raise check.refuse(
                "alpha_target",
                self.alpha_target,
                "the gap inf - inf is undefined",
                "let only one of the two attention weights be infinite",
            )
        if self.residual_target is not None:
            check.same_weight("residual_target", self.beta_target, self.residual_target)

    @classmethod
    def zero(cls) -> State:
        """The zero start."""
        return cls(0.0, 0.0, 0.0, 0.0)

    @classmethod
    def trusted(cls, *values: Any) -> State:
        """Without checks: for results, where a diverged entry holds NaN."""
        self = object.__new__(cls)
        names = (
            "alpha_target", "alpha_background", "beta_target", "beta_background", "residual_target"
        )  # fmt: skip
        for name, value in zip(names, values):
            object.__setattr__(self, name, None if value is None else plain(value))
        return self

    @property
    def gap(self) -> Any:
        """alpha_target - alpha_background."""
        with np.errstate(over="ignore", invalid="ignore"):
            return plain(np.subtract(self.alpha_target, self.alpha_background))

    @property
    def residual(self) -> Any:
        """beta_target - 2, from `residual_target` when there is one."""
        if self.residual_target is not None:
            return self.residual_target
        return plain(np.subtract(self.beta_target, 2.0))

    def weights(self, d: int, target: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The weights as vectors, for the routes that take any alpha and beta.

        Parameters
        ----------
        d : int
            Alphabet size, >= 2.
        target : int
            The target symbol.

        Returns
        -------
        alpha, beta : array of shape (..., d)
        residual : array of shape (..., 1)
        """
        remedy = "pass 2 <= d <= 10^7; popgd.symmetric itself needs no vectors"
        d = check.integer("d", d, 2, LARGEST_D, remedy=remedy)
        target = check.symbol("target", target, d)
        values = np.broadcast_arrays(
            self.alpha_target, self.alpha_background, self.beta_target, self.beta_background,
            self.residual,
        )  # fmt: skip
        alpha = np.repeat(np.asarray(values[1], dtype=float)[..., None], d, axis=-1)
        beta = np.repeat(np.asarray(values[3], dtype=float)[..., None], d, axis=-1)
        alpha[..., target], beta[..., target] = values[0], values[2]
        return alpha, beta, np.array(values[4], dtype=float)[..., None]


class Gradient(NamedTuple):
    """dL/dalpha and dL/dbeta; a background entry belongs to each single background symbol."""

    alpha_target: Any
    alpha_background: Any
    beta_target: Any
    beta_background: Any


def check_state(name: str, state: Any) -> State:
    """Return `state` if it is one."""
    if not isinstance(state, State):
        raise check.refuse(
            name,
            state,
            "must be a State",
            "pass State(alpha_target, alpha_background, beta_target, beta_background)",
        )
    return state


def check_table(table: Any, d: np.ndarray) -> None:
    """A moment table serves one d."""
    if table is None:
        return
    if not isinstance(table, MomentTable):
        raise check.refuse("table", table, "must be a MomentTable", "pass MomentTable(d) or None")
    if np.any(d != table.d):
        raise check.refuse(
            "table", table, "was built for another d", "pass one d and the MomentTable of that d"
        )


def check_shapes(**arguments: Any) -> None:
    """Everything must broadcast together."""
    shapes = {name: np.shape(value) for name, value in arguments.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise check.refuse(
            ", ".join(shapes),
            list(shapes.values()),
            "shapes do not broadcast",
            "pass scalars or arrays that broadcast together",
        ) from None


def _at(state: State, d: Any, table: Any) -> tuple[OutputQuadratic, Any, Any, Any]:
    check_state("state", state)
    sizes = dimensions(d)
    check_table(table, sizes)
    check_shapes(state=np.add(state.gap, np.add(state.residual, state.beta_background)), d=sizes)
    target = np.asarray(state.beta_target)
    q = quadratic(state.gap, sizes, table)
    return q, np.asarray(state.residual), target, np.asarray(state.beta_background)


def risk(state: State, d: Any, table: MomentTable | None = None) -> Any:
    """Population risk L at symmetric weights.

    Parameters
    ----------
    state : State
        Weights; fields may be arrays.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15; broadcasts with the state.
    table : MomentTable, optional
        Moments at this d, worth building from about 5000 gaps.

    Returns
    -------
    float or array
        L, dimensionless (the mean squared error is 2L).

    Raises
    ------
    BadParameter
        When an argument is out of range or shapes do not broadcast.

    Notes
    -----
    A sum of non-negative terms in residual coordinates. Source: THEORY 5.
    Error: estimated, a few 1e-14 relative (moments proved, then some ten operations).
    """
    with np.errstate(all="ignore"):
        q, v, _, beta = _at(state, d, table)
        return plain(q.risk(v, beta))


def log_risk(state: State, d: Any, table: MomentTable | None = None) -> Any:
    """Natural logarithm of the risk, also where the risk underflows.

    Parameters
    ----------
    state, d, table
        As for `risk`.

    Returns
    -------
    float or array
        ln L, also where L overflows; -inf where L = 0 exactly.

    Notes
    -----
    Source: THEORY 5. Error: estimated, 1e-13 absolute plus 4e-16 |gap|.
    """
    with np.errstate(all="ignore"):
        q, v, _, beta = _at(state, d, table)
        return plain(q.log_risk(v, beta))


def gradient(state: State, d: Any, table: MomentTable | None = None) -> Gradient:
    """Gradient of the risk at symmetric weights.

    Parameters
    ----------
    state, d, table
        As for `risk`.

    Returns
    -------
    Gradient
        alpha_target, alpha_background, beta_target, beta_background: floats or arrays; background
        entries are the derivative by each single background coordinate.

    Notes
    -----
    dL/dalpha sums to zero over the d symbols. Source: THEORY 5. Error: estimated, a few 1e-14
    relative to the sum of the absolute terms of each entry.
    """
    with np.errstate(all="ignore"):
        q, v, target, beta = _at(state, d, table)
        attention = q.attention_gradient(v, target, beta)
        slope, background = q.gradient(v, beta)
        return Gradient(
            plain(attention), plain(-attention / (q.d - 1)), plain(slope), plain(background)
        )


def minimize_output(gap: Any, d: Any, table: MomentTable | None = None) -> SymmetricMinimum:
    """Exact minimum of the risk over the output weights at a given attention gap.

    Parameters
    ----------
    gap : array_like
        alpha_s - alpha_j, logits, any real number or +-inf.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.
    table : MomentTable, optional
        As for `risk`.

    Returns
    -------
    SymmetricMinimum
        value, log_value, beta_target, beta_background, residual_target.

    Raises
    ------
    BadParameter
        When an argument is out of range or shapes do not broadcast.

    Notes
    -----
    The minimum is 2V/(1+2V). Source: THEORY 5. Error: estimated, a few 1e-14 relative;
    log_value 1e-13 absolute plus 4e-16 |gap|, also where value underflows (gap above 372).
    """
    gaps, sizes = check.real_array("gap", gap), dimensions(d)
    check_table(table, sizes)
    check_shapes(gap=gaps, d=sizes)
    with np.errstate(all="ignore"):
        found = quadratic(gaps, sizes, table).minimum()
        shape = np.broadcast_shapes(gaps.shape, sizes.shape)
        return SymmetricMinimum(*(plain(np.broadcast_to(x, shape)) for x in found))
