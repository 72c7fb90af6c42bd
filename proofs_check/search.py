"""Adversarial search: the worst point of a claim about all weights, limits at infinity included.

A problem is the maximum of one or more smooth functions of attention weights and plain
variables, with exact gradients. Each start is improved locally (L-BFGS for one function, SLSQP on
the epigraph for several); attention weights that drift apart are then sent to infinity, as tiers,
and the limit is evaluated exactly and improved in turn. Effort is counted in evaluations, so that
the same search finds the same points; a time budget only cuts it short, and says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

__all__ = ["Candidate", "Found", "Log", "Problem", "search"]

APART = 3.0
"""Attention weights with a larger gap between neighbours may be sent to infinity."""

GAIN = 1e-10
"""A limit must not be worse than this, relatively, to replace the finite point."""

KEPT = 5
"""Best points in the log."""

ROUNDS = 4
"""Times a point may be split into further tiers."""


@dataclass(frozen=True)
class Candidate:
    """A point of the search.

    Attributes
    ----------
    name : str
        The start it belongs to.
    x : array of shape (n,)
        All variables; attention weights are offsets within their tier.
    tier : array of int, shape (n,)
        Tiers of the attention weights, 0 for plain variables.
    """

    name: str
    x: np.ndarray
    tier: np.ndarray

    @classmethod
    def finite(cls, name: str, x: Any) -> Candidate:
        """A point without limits."""
        x = np.asarray(x, dtype=float)
        return cls(name, x, np.zeros(x.shape, dtype=int))


class Problem(Protocol):
    """What is searched: minimise the largest of `functions`.

    Attributes
    ----------
    logits : array of bool, shape (n,)
        Which variables are attention weights, which may go to infinity.
    bounds : list of (low, high) or None
        Bounds of each variable; None within a pair for none.
    """

    logits: np.ndarray
    bounds: Any

    def functions(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values, shape (m,), and gradients, shape (m, n)."""
        ...


@dataclass(frozen=True)
class Found:
    """A local minimum: its value and where it is."""

    value: float
    point: Candidate


@dataclass
class Log:
    """What a search did.

    Attributes
    ----------
    starts, evaluations : int
    best : list of Found
        The five best local minima, the best first.
    cut : bool
        Whether the time budget ended the search before its effort was spent.
    """

    starts: int = 0
    evaluations: int = 0
    best: list[Found] = field(default_factory=list)
    cut: bool = False

    def add(self, found: Found) -> None:
        """Keep it if it is among the five best."""
        self.best = sorted([*self.best, found], key=lambda f: f.value)[:KEPT]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        best = [
            {
                "value": f.value,
                "start": f.point.name,
                "x": f.point.x.tolist(),
                "tier": f.point.tier.tolist(),
            }
            for f in self.best
        ]
        return {
            "starts": self.starts,
            "evaluations": self.evaluations,
            "cut": self.cut,
            "best": best,
        }


class _Spent(Exception):
    """The evaluations of one start are used up."""


class _Counter:
    """Evaluates within a limit and remembers the best point seen."""

    def __init__(self, problem: Problem, limit: int, deadline: float):
        self.problem, self.limit, self.deadline = problem, limit, deadline
        self.used = 0
        self.cut = False
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def reset(self) -> None:
        self.best = math.inf
        self.at: np.ndarray | None = None

    def __call__(self, tier: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        key = tier.tobytes() + x.tobytes()
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        if self.used >= self.limit:
            raise _Spent
        if time.perf_counter() > self.deadline:
            self.cut = True
            raise _Spent
        self.used += 1
        values, slopes = self.problem.functions(tier, x)
        top = float(np.max(values))
        if not math.isfinite(top):
            raise _Spent
        if top < self.best:
            self.best, self.at = top, x.copy()
        self._last = key, (values, slopes)
        return values, slopes


def search(
    problem: Problem,
    starts: Iterable[Candidate],
    effort: int = 200,
    budget: float | None = None,
) -> Log:
    """Improve every start and keep the best.

    Parameters
    ----------
    problem : Problem
    starts : iterable of Candidate
    effort : int
        Evaluations allowed to each start.
    budget : float, optional
        Seconds; a cap that marks the log when it is hit.

    Returns
    -------
    Log

    Notes
    -----
    Error: none is claimed; a search only ever gives an upper bound on a minimum.
    """
    log = Log()
    deadline = math.inf if budget is None else time.perf_counter() + budget
    for start in starts:
        counter = _Counter(problem, effort, deadline)
        found = _improve(problem, counter, start)
        log.starts += 1
        log.evaluations += counter.used
        if found is not None:
            log.add(found)
        if counter.cut:
            log.cut = True
            break
    return log


def _improve(problem: Problem, counter: _Counter, start: Candidate) -> Found | None:
    """Local minimum, then limits for as long as they do not lose."""
    found = _local(problem, counter, start)
    for _ in range(ROUNDS):
        if found is None:
            return None
        further = [_local(problem, counter, limit) for limit in _limits(problem, found.point)]
        better = [f for f in further if f and f.value <= found.value * (1 + GAIN)]
        if not better:
            return found
        found = min(better, key=lambda f: f.value)
    return found


def _limits(problem: Problem, point: Candidate) -> list[Candidate]:
    """The point with one wide gap made infinite, for each tier's widest gap; then all at once."""
    cuts = []
    for level in np.unique(point.tier[problem.logits]):
        members = np.flatnonzero(problem.logits & (point.tier == level))
        order = members[np.argsort(point.x[members], kind="stable")]
        gaps = np.diff(point.x[order])
        cuts += [(gap, order[i + 1 :], level) for i, gap in enumerate(gaps) if gap > APART]
    cuts.sort(key=lambda cut: -cut[0])
    out = [_split(problem, point, cuts[:1])] if cuts else []
    return out + ([_split(problem, point, cuts)] if len(cuts) > 1 else [])


def _split(
    problem: Problem, point: Candidate, cuts: list[tuple[float, np.ndarray, int]]
) -> Candidate:
    level = 2 * len(point.x) * point.tier.astype(int)
    for _, above, _ in cuts:
        level[above] += 1
    logits = problem.logits
    tier = np.zeros(len(level), dtype=int)
    tier[logits] = np.unique(level[logits], return_inverse=True)[1]
    x = point.x.copy()
    for t in np.unique(tier[logits]):
        own = logits & (tier == t)
        x[own] -= x[own].mean()
    return Candidate(point.name, x, tier)


def _local(problem: Problem, counter: _Counter, start: Candidate) -> Found | None:
    """Improve the finite variables of one point; the best point seen counts."""
    counter.reset()
    try:
        values, _ = counter(start.tier, start.x)
        (_smooth if len(values) == 1 else _minimax)(problem, counter, start)
    except _Spent:
        pass
    if counter.at is None:
        return None
    return Found(counter.best, Candidate(start.name, counter.at, start.tier))


def _smooth(problem: Problem, counter: _Counter, start: Candidate) -> None:
    from scipy.optimize import minimize

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = counter(start.tier, x)
        return float(values[0]), slopes[0]

    options = {"maxiter": counter.limit, "ftol": 1e-13, "gtol": 1e-9}
    minimize(function, start.x, jac=True, method="L-BFGS-B", bounds=problem.bounds, options=options)


def _minimax(problem: Problem, counter: _Counter, start: Candidate) -> None:
    """SLSQP on: minimise r subject to every function <= r."""
    from scipy.optimize import minimize

    n = len(start.x)
    values, _ = counter(start.tier, start.x)
    steepest = np.append(np.zeros(n), 1.0)

    def room(z: np.ndarray) -> np.ndarray:
        return z[n] - counter(start.tier, z[:n])[0]

    def slope(z: np.ndarray) -> np.ndarray:
        slopes = counter(start.tier, z[:n])[1]
        return np.hstack([-slopes, np.ones((len(slopes), 1))])

    bounds = [*(problem.bounds or [(None, None)] * n), (None, None)]
    with np.errstate(all="ignore"):
        minimize(
            lambda z: z[n],
            np.append(start.x, values.max()),
            jac=lambda z: steepest,
            method="SLSQP",
            bounds=bounds,
            constraints={"type": "ineq", "fun": room, "jac": slope},
            options={"maxiter": counter.limit, "ftol": 1e-12},
        )
