"""Influence of reference words: word by word, against the exact noise, and its own interval."""

import numpy as np
import pytest
from influence_by_words import influence_by_words
from strategies import LAWS

import popgd
import popgd.influence as module
from popgd import And, Occurrence, Or, PopulationRisk, WordBatch, Words, random_start, sample_words
from popgd.curvature import curvature
from popgd.influence import Influence, sampled_deviations
from popgd.linearised import Deviation
from popgd.trajectory import Weights

DIFFERENCES = 1e-6
"""Hessians of the reference by central differences."""

SIGMAS = 5.0

PLAN = "O(2x, lr=0.7) -> A(1x, lr=3) -> O(2x) -> J(3x, lr=0.5)"
STEPS = [(0, 0.7)] * 2 + [(3, 0)] + [(0, 1)] * 2 + [(0.5, 0.5)] * 3

TASKS = [
    Occurrence(3, 1),
    Or(3, [0, 2], Words(popgd.UniformLength(5), [0.2, 0.3, 0.5])),
    And(3, [1, 2], Words(popgd.Poisson(2.0))),
]


def trajectory(task, start):
    run = popgd.train(task, PLAN, *start, path="general")
    return [Weights(*row) for row in zip(*run.stored)]


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_every_word_has_the_influence_that_differences_give(task):
    start = random_start(task.d, 0.5, rng=1)
    known = influence_by_words(task, STEPS, np.concatenate(start), 40)
    order = np.argsort(known.words.labels < 0, kind="stable")
    words = WordBatch(known.words.counts[order], task=task)
    influence = Influence(task, words)
    path = trajectory(task, start)
    for at, step in zip(path, STEPS):
        influence.step(at, *step)
    found = np.concatenate([influence.alpha, influence.beta])
    scale = np.abs(known.influence).max()
    np.testing.assert_allclose(found, known.influence[:, order], rtol=0, atol=DIFFERENCES * scale)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_sampled_deviations_are_those_of_all_words_within_their_error(task):
    start = random_start(task.d, 0.5, rng=1)
    known = influence_by_words(task, STEPS, np.concatenate(start), 40).deviation
    words = sample_words(task, 40_000, rng=0)
    ((found, error),) = sampled_deviations(
        task, trajectory(task, start), STEPS, words, [len(STEPS)]
    )
    for name, value in known.items():
        assert abs(getattr(found, name) - value) <= SIGMAS * getattr(error, name), name
        assert getattr(error, name) < 0.03 * value


@pytest.mark.parametrize(
    "task",
    [
        Occurrence(5, 3),
        Or(6, [1, 4], Words(popgd.Poisson(5.0))),
        And(5, [0, 2], Words(popgd.UniformLength(9), np.arange(1, 6) / 15)),
    ],
    ids=repr,
)
def test_the_first_step_has_the_exact_covariance_of_the_gradient(task):
    d, eta = task.d, (0.8, 0.3)
    alpha, beta = random_start(d, 0.7, rng=4)
    exact = PopulationRisk(task).variance(alpha, beta)
    known = np.block([[exact.alpha, exact.cross], [exact.cross.T, exact.beta]])
    known *= np.outer(np.repeat(eta, d), np.repeat(eta, d))
    influence = Influence(task, sample_words(task, 100_000, rng=2))
    influence.step(Weights(alpha, beta, beta[list(task.targets)] - 2), *eta)
    h = np.concatenate([influence.alpha, influence.beta])
    n = h.shape[1]
    found = h @ h.T / n
    spread = np.sqrt(((h**2) @ (h**2).T / n - found**2) / n)
    assert (np.abs(found - known) <= SIGMAS * spread).all()
    # sharp: a variance 10 % off would show
    assert (np.diag(spread) < 0.02 * np.diag(known)).all()


@pytest.mark.parametrize("law", LAWS)
def test_errors_are_honest_and_sharp(law, monkeypatch):
    """Over many sets of reference words the error is as often exceeded as it should be."""
    # the Hessians are the same for every set
    known = {}

    def once(task, *at):
        key = tuple(x.tobytes() for x in at)
        if key not in known:
            known[key] = curvature(task, *at)
        return known[key]

    monkeypatch.setattr(module, "curvature", once)
    lengths = {
        "geometric": popgd.Geometric(0.2),
        "poisson": popgd.Poisson(4.0),
        "fixed": popgd.FixedLength(5),
        "uniform": popgd.UniformLength(8),
    }
    task = Or(4, [0, 1], Words(lengths[law]))
    path = trajectory(task, random_start(4, 0.5, rng=3))
    sets = [sample_words(task, 1000, rng=k) for k in range(100)]
    found = [next(sampled_deviations(task, path, STEPS, s, [len(STEPS)])) for s in sets]
    value, error = (np.array(part) for part in zip(*found))
    pulls = (value - value.mean(axis=0)) / error
    # 100 normal numbers: standard deviation 1 +- 0.07
    assert (pulls.std(axis=0) < 1.3).all()
    assert (pulls.std(axis=0) > 0.75).all()


def test_without_background_there_is_no_gap():
    task = Or(3, [0, 1, 2], Words(popgd.FixedLength(3)))
    path = trajectory(task, random_start(3, 0.5, rng=3))
    words = sample_words(task, 500, rng=0)
    rows = list(sampled_deviations(task, path, STEPS, words, range(len(path))))
    assert len(rows) == len(path)
    assert rows[-1][0].gap == rows[-1][0].beta_background == 0
    assert rows[-1][0].beta > 0


def test_nothing_has_moved_at_the_start():
    task = Occurrence(4)
    start = Weights(*random_start(4, rng=0), np.array([-2.0]))
    start = start._replace(residual=start.beta[:1] - 2)
    influence = Influence(task, sample_words(task, 5000, rng=0))
    found, error = influence.deviation(start)
    assert found[:5] == (0,) * 5
    assert isinstance(found, Deviation)
    exact = np.sqrt(PopulationRisk(task).variance(start.alpha, start.beta).loss)
    assert abs(found.risk - exact) <= SIGMAS * error.risk
