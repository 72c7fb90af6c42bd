"""What training leaves behind: risk, gaps and weights at the recorded steps."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._files import load_arrays, save_arrays
from .errors import BadFile, NotAvailable

if TYPE_CHECKING:
    import xarray

    from .symmetric_state import State

__all__ = ["PhaseRecord", "Trajectory", "Weights"]

KIND = "Trajectory"
LARGEST = 2**31
"""Bytes of dense weights beyond which a compact trajectory refuses to expand."""

SERIES = ("step", "phase_index", "risk", "attention_gap", "output_gap", "weight_step", "diverged")
OPTIONAL = ("time", "accuracy", "risk_error")


class Weights(NamedTuple):
    """A point of training.

    Attributes
    ----------
    alpha, beta : array of shape (..., d)
        Attention and output weights.
    residual : array of shape (..., number of targets)
        beta - 2 on the targets, carried beside beta because a double beta cannot hold it near
        the optimum (THEORY 5).
    """

    alpha: np.ndarray
    beta: np.ndarray
    residual: np.ndarray

    @property
    def heads(self) -> bool:
        """Whether alpha and beta have a head axis, shape (..., H, d)."""
        return self.alpha.ndim > self.residual.ndim


@dataclass(frozen=True)
class PhaseRecord:
    """One phase as it happened.

    Attributes
    ----------
    phase : str
        The phase in the plan language.
    start, stop : int
        Number of steps made before and after it. An exact minimum counts as one step.
    reason : str
        Why it ended: "completed", "converged", "max_steps", "minimum", "until", "diverged",
        "interrupted" or, in the trajectory of an exception, "error".
    """

    phase: str
    start: int
    stop: int
    reason: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trajectory:
    """Recorded training. K records, batch axes ``(...)`` of the starting point.

    Attributes
    ----------
    step : int array of shape (K,)
        Number of steps made; 0 is the start.
    phase_index : int array of shape (K,)
        The phase that led to the record; the start belongs to phase 0.
    risk, attention_gap, output_gap : array of shape (K, ...)
        Risk L, and the two gaps (`popgd.attention_gap`, `popgd.output_gap`), of every head where
        there are heads. Dimensionless.
    accuracy : array of shape (K, ...) or None
        P(sign f = y), when it was asked for.
    stored : Weights
        The weights as kept: dense, or on the symmetric path the values (target, background).
        Read them through `alpha`, `beta`, `residual`, `state` and `final`.
    weight_step : int array
        The steps that `stored` belongs to: all of `step`, or its last entry only.
    diverged : bool array of shape (...)
        Members whose weights or risk left the finite numbers; they keep their last finite weights.
    phases : tuple of PhaseRecord
        One for every phase that began.
    stop_reason : str
        The reason of the last phase; "completed", "converged", "max_steps" and "minimum" mean
        that the whole plan ran.
    path : str
        "general", or "symmetric" for the four-scalar reduction (THEORY 5).
    plan, task : str
        What ran.
    d : int
        Alphabet size.
    targets : tuple of int
        Target symbols.
    time : array of shape (K,) or None
        Flow time of `popgd.gradient_flow`; None for gradient descent.
    risk_error : array of shape (K, ...) or None
        Estimated (not proved) error of `risk` along a flow.
    """

    step: np.ndarray
    phase_index: np.ndarray
    risk: np.ndarray
    attention_gap: np.ndarray
    output_gap: np.ndarray
    stored: Weights
    weight_step: np.ndarray
    diverged: np.ndarray
    phases: tuple[PhaseRecord, ...]
    path: str
    plan: str
    task: str
    d: int
    targets: tuple[int, ...]
    accuracy: np.ndarray | None = None
    time: np.ndarray | None = None
    risk_error: np.ndarray | None = None

    @property
    def stop_reason(self) -> str:
        """Why training ended."""
        return self.phases[-1].reason

    @property
    def alpha(self) -> np.ndarray:
        """Attention weights, shape (K, ..., d) (one record only if no more were kept)."""
        return self._dense(self.stored.alpha)

    @property
    def beta(self) -> np.ndarray:
        """Output weights, shape (K, ..., d)."""
        return self._dense(self.stored.beta)

    @property
    def residual(self) -> np.ndarray:
        """beta - 2 on the targets, shape (K, ..., number of targets)."""
        return self.stored.residual

    @property
    def final(self) -> Weights:
        """The last weights: ``popgd.train(objective, plan, *trajectory.final)`` goes on."""
        last = (part[-1] for part in self.stored)
        alpha, beta, residual = last
        return Weights(self._dense(alpha), self._dense(beta), residual)

    @property
    def state(self) -> State:
        """The symmetric states, arrays of shape (K, ...), on the symmetric path.

        Raises
        ------
        NotAvailable
            On the general path.
        """
        if self.path != "symmetric":
            raise NotAvailable("state: this trajectory took the general path; read alpha and beta.")
        from .reduction import as_state

        return as_state(self.stored)

    def _dense(self, part: np.ndarray) -> np.ndarray:
        if self.path != "symmetric":
            return part
        size = part.size // 2 * self.d * 8
        if size > LARGEST:
            raise NotAvailable(
                f"dense weights: {part.shape[:-1]} records of d = {self.d} would take {size:.1e} "
                "bytes; read trajectory.state, which holds one number a group of symbols."
            )
        return expand(part, self.d, self.targets[0])

    def __len__(self) -> int:
        return len(self.step)

    def __repr__(self) -> str:
        batch = f", batch {self.risk.shape[1:]}" if self.risk.ndim > 1 else ""
        risk = f"{self.risk[-1]:.6g}" if self.risk.ndim == 1 else f"{np.median(self.risk[-1]):.6g}"
        median = "median " if self.risk.ndim > 1 else ""
        return (
            f"Trajectory({self.plan!r}, {len(self)} records to step {self.step[-1]}{batch}, "
            f"{median}risk {risk}, stop_reason={self.stop_reason!r}, path={self.path!r})"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to an npz file without pickles; `load` gives it back bit by bit.

        The file appears whole or not at all: a failed write leaves an older file as it was.

        Raises
        ------
        BadFile
            When it cannot be written.
        """
        arrays = {name: getattr(self, name) for name in SERIES}
        arrays |= {n: getattr(self, n) for n in OPTIONAL if getattr(self, n) is not None}
        arrays |= {f"stored_{name}": part for name, part in self.stored._asdict().items()}
        meta = {name: getattr(self, name) for name in ("path", "plan", "task", "d", "targets")}
        meta["phases"] = [asdict(phase) for phase in self.phases]
        save_arrays(path, arrays, {"kind": KIND, "version": 1, **meta})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what `save` wrote.

        Raises
        ------
        BadFile
            When the file is missing, damaged or holds something else.
        """
        arrays, meta = load_arrays(path, KIND)
        fields: dict[str, Any] = {n: a for n, a in arrays.items() if n in SERIES + OPTIONAL}
        try:
            stored = Weights(*(arrays[f"stored_{name}"] for name in Weights._fields))
            fields |= {name: meta[name] for name in ("path", "plan", "task", "d")}
            phases = tuple(PhaseRecord(**phase) for phase in meta["phases"])
            return cls(**fields, stored=stored, phases=phases, targets=tuple(meta["targets"]))
        except (KeyError, TypeError) as error:
            raise BadFile(
                f"path = {os.fsdecode(path)!r}: is a damaged trajectory; save it again."
            ) from error

    def to_xarray(self, weights: bool = False) -> xarray.Dataset:
        """The trajectory as an `xarray.Dataset` over ``step`` (or ``time``) and batch axes.

        Parameters
        ----------
        weights : bool
            Include alpha, beta and residual, over ``symbol`` and ``target``. They need one
            record of weights a step.
        """
        import xarray

        axis = "step" if self.time is None else "time"
        dims = (axis, *(f"batch_{i}" for i in range(self.risk.ndim - 1)))
        names = ["risk", "attention_gap", "output_gap", "accuracy", "risk_error"]
        head = ("head",) * self.stored.heads
        series = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        data = {n: ((*dims, "head")[: x.ndim], x) for n, x in series.items()}
        coords: dict[str, Any] = {axis: getattr(self, axis), "phase": (axis, self.phase_index)}
        if weights:
            data |= {"alpha": ((*dims, *head, "symbol"), self._all("alpha"))}
            data |= {"beta": ((*dims, *head, "symbol"), self._all("beta"))}
            data |= {"residual": ((*dims, "target"), self._all("residual"))}
            coords["target"] = list(self.targets)
        attrs = {"plan": self.plan, "task": self.task, "path": self.path}
        return xarray.Dataset(data, coords, attrs | {"stop_reason": self.stop_reason})

    def _all(self, name: str) -> np.ndarray:
        if len(self.weight_step) != len(self.step):
            raise NotAvailable(
                "weights: only the last were kept; train with keep_weights=True to have them all."
            )
        return getattr(self, name)


def expand(pair: np.ndarray, d: int, target: int) -> np.ndarray:
    """(..., 2) values (target, background) to (..., d) weights."""
    dense = np.repeat(pair[..., 1:], d, axis=-1)
    dense[..., target] = pair[..., 0]
    return dense
