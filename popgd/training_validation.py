"""What came of comparing training on drawn words with training on the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .pulls import Agreement
from .trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

__all__ = ["TrainingValidation"]


@dataclass(frozen=True, eq=False)
class TrainingValidation:
    """Deviations of finite-sample training. J sample sizes, K records, S seeds.

    Attributes
    ----------
    n : int array of shape (J,)
    step : int array of shape (K,)
    prediction : str
        "exact", by summing over the law of the words, or "sampled", by averaging over reference
        words.
    predicted : dict of arrays of shape (K,)
        Linearised standard deviation for one word, by quantity (fields of `Deviation`): times
        1/sqrt(n) it is that for n words.
    predicted_error : dict of arrays of shape (K,)
        Standard error of `predicted`; zero where the prediction is exact.
    reference : int
        Number of reference words of a sampled prediction, else 0.
    rounding : dict of float
        What rounding alone can do to a deviation; one predicted to be below it is not judged.
    observed : dict of arrays of shape (J, K)
        Root mean square deviation over the seeds.
    slopes : dict of (slope, half-width)
        Of ln observed against ln n at the last step; -1/2 is expected. nan where the deviation is
        zero throughout.
    p_values : dict
        Adjusted p-values of sizes (largest n, last step) and of slopes.
    verdict : Agreement
    seeds_needed : int or None
        When more seeds would decide.
    reason : str
        Why it is not "agree".
    seeds : int
    level, resolution : float
    population : Trajectory
        Gradient descent on the population, every step of it.
    """

    n: np.ndarray
    step: np.ndarray
    predicted: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    slopes: dict[str, tuple[float, float]]
    p_values: dict[str, float]
    verdict: Agreement
    seeds_needed: int | None
    reason: str
    seeds: int
    level: float
    resolution: float
    population: Trajectory
    prediction: str
    predicted_error: dict[str, np.ndarray]
    reference: int
    rounding: dict[str, float]

    def ratio(self, quantity: str) -> np.ndarray:
        """observed sqrt(n) / predicted, shape (J, K); nan where nothing moves beyond rounding."""
        predicted = self.predicted[quantity] / np.sqrt(self.n)[:, None]
        moved = predicted > self.rounding[quantity]
        out = np.full(predicted.shape, np.nan)
        return np.divide(self.observed[quantity], predicted, out=out, where=moved)

    def to_xarray(self) -> xarray.Dataset:
        """Observed and predicted deviations over n and step."""
        import xarray

        data: dict[str, Any] = {}
        for name, seen in self.observed.items():
            data[name] = (("n", "step"), seen)
            predicted = self.predicted[name] / np.sqrt(self.n)[:, None]
            data[f"{name}_predicted"] = (("n", "step"), predicted)
            error = self.predicted_error[name] / np.sqrt(self.n)[:, None]
            data[f"{name}_predicted_error"] = (("n", "step"), error)
        attrs = {"verdict": self.verdict.value, "seeds": self.seeds, "plan": self.population.plan}
        attrs |= {"prediction": self.prediction, "reference": self.reference}
        return xarray.Dataset(data, {"n": self.n, "step": self.step}, attrs)

    def __repr__(self) -> str:
        why = f"; {self.reason}" if self.reason else ""
        needed = "" if self.seeds_needed is None else f"; {self.seeds_needed} seeds would decide"
        return (
            f"TrainingValidation({self.verdict.value}: {self.population.plan!r}, n = "
            f"{self.n.tolist()}, {self.seeds} seeds, {self.prediction} prediction{why}{needed})"
        )
