"""Do deviations have the predicted size, and do they shrink like 1/sqrt(n)?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .linearised import Deviation
from .pulls import Agreement
from .tail_bounds import holm

__all__ = ["SCALARS", "DeviationVerdict", "judge"]

SCALARS = ("gap", "beta_target", "beta_background", "risk")
"""Deviations that are single numbers: nearly normal, so that their sizes can be tested."""


class DeviationVerdict(NamedTuple):
    """The verdict, and what it rests on.

    Attributes
    ----------
    slopes : dict of (slope, half-width)
    p_values : dict
        Adjusted, of sizes and of slopes.
    verdict : Agreement
    seeds_needed : int or None
        When more seeds would decide.
    reason : str
        Why it is not "agree".
    """

    slopes: dict[str, tuple[float, float]]
    p_values: dict[str, float]
    verdict: Agreement
    seeds_needed: int | None
    reason: str


class _Size(NamedTuple):
    """ln of a deviation over the predicted one, with its standard error.

    `predicted_error` is the prediction's share of it.
    """

    ratio: float
    error: float
    predicted_error: float
    p: float

    @classmethod
    def of(cls, seen: float, predicted: float, error: float, seeds: int) -> _Size:
        """From root mean squares over `seeds` runs, and over words with a standard error."""
        from scipy.special import chdtr, fdtr

        ratio, relative = seen / predicted, error / predicted
        if relative:
            # a root mean square of k normal numbers has relative variance 1/(2k)
            below = float(fdtr(seeds, 1 / (2 * relative**2), ratio**2))
        else:
            below = float(chdtr(seeds, seeds * ratio**2))
        spread = math.hypot(1 / math.sqrt(2 * seeds), relative)
        return cls(math.log(ratio), spread, relative, 2 * min(below, 1 - below))


def judge(
    n: np.ndarray,
    predicted: dict[str, np.ndarray],
    errors: dict[str, np.ndarray],
    observed: dict[str, np.ndarray],
    rounding: dict[str, float],
    seeds: int,
    level: float,
    resolution: float,
) -> DeviationVerdict:
    """The verdict at a level, from predictions (K,) with errors and observations (J, K).

    Deviations predicted to be below `rounding` at any n have nothing to say.

    Notes
    -----
    Sizes are judged at the last record and the largest n: chi-square intervals where the
    prediction is exact, F intervals where it is a sampled root mean square. Slopes are fitted over
    the J values of n. Error: sampled.
    """
    evidence = _Evidence(n, seeds)
    for name in Deviation._fields:
        if predicted[name][-1] > rounding[name] * math.sqrt(n.max()):
            evidence.add(name, predicted[name][-1], errors[name][-1], observed[name][:, -1])
    z = _quantile(level, max(len(evidence.sizes), 1))
    slopes = {name: (slope, z * evidence.error) for name, slope in evidence.slopes.items()}
    adjusted = evidence.p_values()
    verdict, reason, needed = evidence.decide(adjusted, z, level, resolution)
    return DeviationVerdict(slopes, adjusted, verdict, needed, reason)


def _quantile(level: float, scalars: int) -> float:
    """Of a normal number, for two intervals (size and slope) of each scalar."""
    from scipy.special import ndtri

    return float(ndtri(1 - level / (4 * scalars)))


class _Evidence:
    """Slopes of all deviations and sizes of the scalar ones."""

    def __init__(self, n: np.ndarray, seeds: int):
        self.seeds, self.largest = seeds, int(np.argmax(n))
        self.root = math.sqrt(n[self.largest])
        self.x = np.log(n) - np.log(n).mean()
        # the logarithm of a root mean square of S normal numbers has variance 1/(2S)
        self.error = 1 / math.sqrt(2 * seeds * (self.x @ self.x))
        self.slopes = dict.fromkeys(Deviation._fields, math.nan)
        self.sizes: dict[str, _Size] = {}

    def add(self, name: str, predicted: float, error: float, seen: np.ndarray) -> None:
        """Take in one deviation, seen at every n; where nothing moves there is no slope."""
        if not (seen > 0).all():
            return
        self.slopes[name] = float(self.x @ np.log(seen) / (self.x @ self.x))
        if name in SCALARS:
            at_most = float(seen[self.largest] * self.root)
            self.sizes[name] = _Size.of(at_most, float(predicted), float(error), self.seeds)

    def p_values(self) -> dict[str, float]:
        """Adjusted p-values of sizes and slopes."""
        from scipy.special import ndtr

        p: dict[str, float] = {}
        for name, size in self.sizes.items():
            p[f"{name} size"] = size.p
            p[f"{name} slope"] = 2 * float(ndtr(-abs(self.slopes[name] + 0.5) / self.error))
        return dict(zip(p, map(float, holm(np.array(list(p.values())))), strict=True))

    def decide(
        self, p: dict[str, float], z: float, level: float, resolution: float
    ) -> tuple[Agreement, str, int | None]:
        """(verdict, reason, seeds that would decide)."""
        if not self.sizes:
            return Agreement.UNDECIDED, "nothing moves by more than rounding", None
        off = {name: p[f"{name} slope"] <= level for name in self.sizes}
        for name, size in self.sizes.items():
            # a deviation that is on its way to the predicted size only needs larger n
            settling = off[name] and size.ratio * (self.slopes[name] + 0.5) < 0
            if p[f"{name} size"] <= level and not settling:
                times = f"{math.exp(size.ratio):.3g} times the predicted one"
                return Agreement.DISAGREE, f"the deviation of {name} is {times}", None
        if any(off.values()):
            reason = "the first order does not yet hold at the smaller n; raise n"
            return Agreement.UNDECIDED, reason, None
        room = math.log1p(resolution)
        if all(
            abs(size.ratio) + z * size.error <= room
            and abs(self.slopes[name] + 0.5) + z * self.error <= resolution / 2
            for name, size in self.sizes.items()
        ):
            return Agreement.AGREE, "", None
        return self._more(z, room, resolution)

    def _more(self, z: float, room: float, resolution: float) -> tuple[Agreement, str, int | None]:
        """What would decide: more seeds, or a better prediction first."""
        worst = max((size.predicted_error for size in self.sizes.values()), default=0.0)
        spare = (room / (2 * z)) ** 2 - worst**2
        if spare <= 0:
            # half of what may be spared is left to the runs
            times = math.ceil(2 * (2 * z * worst / room) ** 2)
            known = f"the prediction is known to {100 * worst:.2g} % only"
            reason = f"{known}; raise reference {times}-fold"
            return Agreement.UNDECIDED, reason, None
        enough = max(1 / spare, (4 * z / resolution) ** 2 / (self.x @ self.x)) / 2
        reason = f"{self.seeds} seeds cannot tell a factor {1 + resolution:g}"
        return Agreement.UNDECIDED, reason, max(math.ceil(enough), self.seeds + 1)
