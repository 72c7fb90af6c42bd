"""Every route to the same numbers, side by side, with a verdict at a declared level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _validate as check
from .empirical import EmpiricalRisk
from .errors import NotAvailable
from .languages import Task
from .noise import LARGEST
from .population import PopulationRisk
from .pulls import Agreement, Sample
from .pulls import p_values as p_values_of
from .pulls import pulls as pulls_of
from .pulls import verdicts as verdicts_of
from .readings import ROUTES, Reading, read
from .sampling import sample_words
from .tail_bounds import bennett_samples, bennett_width, empirical_width
from .tiers import Tiers
from .trajectory import Weights

__all__ = ["Agreement", "CrossValidation", "cross_validate"]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What the routes said, and whether they agree. Q quantities, R routes.

    Attributes
    ----------
    quantities : tuple of str
        "risk", then "dL/dalpha[i]" and "dL/dbeta[i]".
    readings : tuple of Reading
        The routes that had an answer; a sample comes last.
    missing : dict
        Route -> why it had none.
    pulls : array of shape (Q, R, R)
        pulls[q, i, j]: route i minus route j, over the sum of their errors for two exact routes,
        and over the exact standard error where one is the sample. Exact routes agree when it is
        at most 1.
    p_values : array of shape (Q, R)
        Of the sample against each exact route, adjusted for being many; NaN elsewhere.
    verdict : Agreement
    verdicts : tuple of Agreement
        One a quantity.
    samples_needed : int or None
        When undecided: words that would decide.
    n : int
        Words drawn, 0 for none.
    standard_error, empirical_standard_error : array of shape (Q,)
        Of the sampled mean: from the exact variance, and from the sample's own.
    empirical_error : array of shape (Q,)
        Half-width from the sample's own variance; that from the exact variance is the sample
        reading's `error`. Both hold jointly over the quantities with probability 1 - level.
    level, resolution : float
    correction : str
    task, seed : str
    """

    quantities: tuple[str, ...]
    readings: tuple[Reading, ...]
    missing: dict[str, str]
    pulls: np.ndarray
    p_values: np.ndarray
    verdict: Agreement
    verdicts: tuple[Agreement, ...]
    samples_needed: int | None
    n: int
    standard_error: np.ndarray
    empirical_standard_error: np.ndarray
    empirical_error: np.ndarray
    level: float
    resolution: float
    correction: str
    task: str
    seed: str = field(default="")

    @property
    def routes(self) -> tuple[str, ...]:
        """Names of the readings."""
        return tuple(reading.route for reading in self.readings)

    def worst(self) -> tuple[str, str, str, float]:
        """(quantity, route, route, pull) of the largest pull between two exact routes."""
        exact = [i for i, name in enumerate(self.routes) if name != "sample"]
        pulls = np.abs(self.pulls[:, exact][:, :, exact])
        q, i, j = np.unravel_index(np.nanargmax(pulls), pulls.shape)
        left, right = self.routes[exact[i]], self.routes[exact[j]]
        return self.quantities[q], left, right, float(pulls[q, i, j])

    def __repr__(self) -> str:
        needed = (
            "" if self.samples_needed is None else f", {self.samples_needed} words would decide"
        )
        return f"CrossValidation({self.verdict.value}: {', '.join(self.routes)}{needed})"


def cross_validate(
    task: Task,
    alpha: Any = None,
    beta: Any = None,
    residual: Any = None,
    *,
    n: int = 100_000,
    rng: Any = None,
    batch: Any = None,
    level: float = 0.01,
    resolution: float = 0.05,
    correction: str = "holm",
    gradients: bool = True,
    routes: Sequence[str] = ROUTES,
    digits: int = 18,
) -> CrossValidation:
    """Risk and gradients by every route that applies, and by sampling; do they agree?

    Parameters
    ----------
    task : Task
    alpha, beta : array_like of shape (d,), optional
        Weights, zero by default; alpha may be `Tiers`.
    residual : array_like of shape (number of targets,), optional
        beta - 2 on the targets.
    n : int
        Words to draw; 0 compares the exact routes only.
    rng : None, int or Generator
        For the words.
    batch : WordBatch, optional
        Given words instead of drawn ones; they should be independent draws of `task`.
    level : float
        Probability of a false "disagree" or of an interval missing the truth, over everything
        reported. Choose it before looking.
    resolution : float
        A difference worth finding: relative to the risk, and for a gradient component relative to
        a word's root-mean-square. The verdict is "agree" only if nothing as large can hide.
    correction : {"holm", "bonferroni"}
        How p-values are adjusted for being many.
    gradients : bool
        Compare both gradients too, component by component (up to d = 2000).
    routes : sequence of str
        Exact routes to try: "integral", "series", "symmetric", "enclosure". The integral always
        takes part.
    digits : int
        Digits of enclosures.

    Returns
    -------
    CrossValidation

    Raises
    ------
    BadParameter
        When an argument breaks a rule.
    NotAvailable
        When d exceeds 2000 and words are drawn: the exact noise ends there.

    Notes
    -----
    Exact routes must differ by no more than the sum of their errors. A sample's p-values and
    intervals come from Bennett's inequality with the exact variance, so they hold at every n,
    also where the risk comes from rare words; the pulls are plain multiples of the exact standard
    error. Source: THEORY 2-7. Error: sampled, at the level declared; each route's own otherwise.

    Examples
    --------
    >>> import popgd
    >>> found = popgd.cross_validate(popgd.Occurrence(5), [1, 0, 0, 0, 0], n=20_000, rng=0)
    >>> found.verdict
    <Agreement.AGREE: 'agree'>
    """
    options = _options(task, n, level, resolution, correction, routes, digits, batch)
    at = _weights(task, alpha, beta, residual)
    exact = PopulationRisk(task)
    sampled = batch is not None or options.n > 0
    if sampled and task.d > LARGEST:
        raise NotAvailable(
            f"d = {task.d}: judging a sample needs the exact noise, which ends at d = {LARGEST}; "
            "pass n=0 to compare the exact routes."
        )
    noise = exact.variance(*at) if sampled or (gradients and task.d <= LARGEST) else None
    wanted = noise if gradients else None
    readings, missing = [], {}
    for route in options.routes:
        found = read(route, task, at, wanted, options.digits)
        if isinstance(found, Reading):
            readings.append(found)
        else:
            missing[route] = found
    sample = None
    if sampled:
        assert noise is not None
        words = sample_words(task, options.n, rng) if batch is None else batch
        sample = Sample.of(EmpiricalRisk(words, task), at, noise, readings[0], gradients, level)
    return _compare(task, readings, missing, sample, options, f"{rng!r}" if batch is None else "")


@dataclass(frozen=True)
class _Options:
    n: int
    level: float
    resolution: float
    correction: str
    routes: tuple[str, ...]
    digits: int


def _options(
    task: Any, n: Any, level: Any, resolution: Any, correction: Any, routes: Any, digits: Any,
    batch: Any,
) -> _Options:  # fmt: skip
    if not isinstance(task, Task):
        raise check.refuse("task", task, "must be a task", "pass for example popgd.Occurrence(50)")
    names = (routes,) if isinstance(routes, str) else tuple(routes)
    chosen = {check.choice("routes", name, ROUTES) for name in names} | {"integral"}
    if batch is not None and len(batch) < 2:
        raise check.refuse("batch", batch, "holds one word", "pass at least two words")
    if batch is not None and batch.weights is not None:
        rule = "has weights, and intervals are those of independent draws"
        raise check.refuse("batch", batch, rule, "pass drawn words without weights")
    return _Options(
        check.integer("n", n, 0),
        check.real("level", level, 0.0, 0.5),
        check.real("resolution", resolution, 0.0, 1.0, closed="right"),
        check.choice("correction", correction, ("holm", "bonferroni")),
        tuple(route for route in ROUTES if route in chosen),
        check.integer("digits", digits, 1, 100),
    )


def _weights(task: Task, alpha: Any, beta: Any, residual: Any) -> Weights:
    one = f"pass shape ({task.d},)"
    if not isinstance(alpha, Tiers):
        alpha = check.weights("alpha", np.zeros(task.d) if alpha is None else alpha, task.d)
    beta = check.weights("beta", np.zeros(task.d) if beta is None else beta, task.d)
    for name, part in (("alpha", alpha), ("beta", beta)):
        if part.shape != (task.d,):
            raise check.refuse(name, part.shape, "one pair of vectors at a time", one)
    if residual is not None:
        count = len(task.targets)
        residual = check.weights("residual", residual, count)
        if residual.shape != (count,):
            rule = "one pair of vectors at a time"
            raise check.refuse("residual", residual.shape, rule, f"pass shape ({count},)")
    return Weights(alpha, beta, residual)  # pyright: ignore[reportArgumentType]


def _compare(
    task: Task, readings: list[Reading], missing: dict[str, str], sample: Sample | None,
    options: _Options, seed: str,
) -> CrossValidation:  # fmt: skip
    size = len(readings[0].value)
    exact = list(readings)
    nothing = np.full(size, np.nan)
    standard, own, width, own_width = nothing, nothing, nothing, nothing
    if sample is not None:
        each = options.level / size
        width = bennett_width(sample.variance, sample.reach, sample.n, each) + sample.rounding
        own_width = empirical_width(sample.own_variance, sample.reach, sample.n, each)
        standard = np.sqrt(sample.variance / sample.n)
        own = np.sqrt(sample.own_variance / sample.n)
        proved = np.zeros(size, dtype=bool)
        readings = [*exact, Reading("sample", sample.value, width, proved)]
    pulls = pulls_of(readings, standard)
    p_values = p_values_of(exact, sample, options.correction, len(readings))
    verdicts = verdicts_of(pulls, p_values, exact, sample, width, options.level, options.resolution)
    undecided = [q for q, verdict in enumerate(verdicts) if verdict is Agreement.UNDECIDED]
    needed = None
    if undecided and sample is not None:
        allowed = options.resolution * np.abs(sample.scale) / 2
        n = bennett_samples(allowed, sample.variance, sample.reach, options.level / size)
        most = float(n[undecided].max())
        needed = int(most) if math.isfinite(most) else None
    overall = Agreement.AGREE if not undecided else Agreement.UNDECIDED
    if Agreement.DISAGREE in verdicts:
        overall = Agreement.DISAGREE
    return CrossValidation(
        quantities=_names(task.d)[:size], readings=tuple(readings), missing=missing, pulls=pulls,
        p_values=p_values, verdict=overall, verdicts=verdicts, samples_needed=needed,
        n=0 if sample is None else sample.n, standard_error=standard,
        empirical_standard_error=own, empirical_error=own_width, level=options.level,
        resolution=options.resolution, correction=options.correction, task=repr(task), seed=seed,
    )  # fmt: skip


def _names(d: int) -> tuple[str, ...]:
    slopes = [f"dL/d{layer}[{i}]" for layer in ("alpha", "beta") for i in range(d)]
    return ("risk", *slopes)
