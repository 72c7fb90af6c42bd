"""Training on drawn words against the population: the linearised law, and verdicts."""

import numpy as np
import pytest
from influence_by_words import influence_by_words

from popgd import Agreement, BadParameter, Occurrence, Or, cross_validate_training, train
from popgd.count_table import count_table
from popgd.linearised import Point, deviations
from popgd.symmetric import State, risk

REFERENCE_RTOL = 1e-6
"""Hessians by central differences."""

TABLE_RTOL = 1e-12
"""Probabilities left out, and their rounding."""


@pytest.mark.parametrize("d", [2, 3, 4, 10, 50, 300])
def test_the_table_is_the_law_of_the_counts(d):
    table = count_table(Occurrence(d, 1))
    assert table.probability.sum() == pytest.approx(1, rel=TABLE_RTOL)
    assert table.probability[table.positive].sum() == pytest.approx(0.5, rel=TABLE_RTOL)
    gamma = np.e * table.target / (np.e * table.target + table.background)
    label = np.where(table.positive, 1, -1)
    loss = (0.7 * gamma + 0.2 * (1 - gamma) - 1 - label) ** 2 / 2
    assert table.mean(loss) == pytest.approx(risk(State(1, 0, 0.7, 0.2), d), rel=TABLE_RTOL)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_linearised_law_is_that_of_every_word(d):
    task = Occurrence(d, 1)
    plan = "O(2x, lr=0.7) -> A(1x, lr=3) -> O(2x) -> J(3x, lr=0.5)"
    steps = [(0, 0.7)] * 2 + [(3, 0)] + [(0, 1)] * 2 + [(0.5, 0.5)] * 3
    state = train(task, plan, State(0.3, 0.0, 0.5, -0.2)).state
    rows = zip(state.gap, state.beta_target, state.beta_background, state.residual)
    points = [Point(*(float(x) for x in row)) for row in rows]
    found = list(deviations(count_table(task), points, steps))[-1]
    start = np.zeros(2 * d)
    start[1], start[d:], start[d + 1] = 0.3, -0.2, 0.5
    for name, value in influence_by_words(task, steps, start).deviation.items():
        assert getattr(found, name) == pytest.approx(value, rel=REFERENCE_RTOL, abs=1e-12), name


def test_training_on_words_strays_as_predicted():
    plan = "O(1x) -> A(1x, lr=200) -> O(40x)"
    found = cross_validate_training(
        Occurrence(10, 3), plan, n=(1000, 4000, 16_000), seeds=60, rng=1
    )
    assert found.verdict is Agreement.AGREE, found
    for name in found.observed:
        slope, half = found.slopes[name]
        assert abs(slope + 0.5) < half
        assert 0.7 < found.ratio(name)[-1, -1] < 1.4
    data = found.to_xarray()
    assert data.sizes == {"n": 3, "step": len(found.step)}
    assert data["beta_predicted"].shape == data["beta"].shape


def test_a_wrong_prediction_is_caught(monkeypatch):
    import popgd.crossvalidate_training as module

    true = module.deviations

    def off(*arguments):
        return (type(row)(*(1.6 * x for x in row)) for row in true(*arguments))

    monkeypatch.setattr(module, "deviations", off)
    found = cross_validate_training(Occurrence(5), "O(5x)", n=(500, 2000), seeds=60, rng=0)
    assert found.verdict is Agreement.DISAGREE
    assert "times the predicted" in found.reason


def test_other_words_than_the_task_draws_are_caught(monkeypatch):
    import popgd.crossvalidate_training as module
    from popgd import Geometric, Words, sample_words

    wrong = Occurrence(5, 0, Words(Geometric(0.3)))
    monkeypatch.setattr(module, "sample_words", lambda task, n, rng: sample_words(wrong, n, rng))
    found = cross_validate_training(Occurrence(5), "O(5x)", n=(1000, 4000), seeds=30, rng=0)
    assert found.verdict is Agreement.DISAGREE


def test_small_samples_beyond_the_first_order_are_undecided():
    found = cross_validate_training(
        Occurrence(10), "J(30x, lr=5)", n=(1000, 4000, 16_000), seeds=60, rng=0
    )
    assert found.verdict is Agreement.UNDECIDED
    assert "raise n" in found.reason


def test_too_few_seeds_say_how_many():
    found = cross_validate_training(Occurrence(4), "O(3x)", n=(500, 2000), seeds=8, rng=0)
    assert found.verdict is Agreement.UNDECIDED
    assert found.seeds_needed > 8


def test_runs_do_not_depend_on_how_many_train_at_a_time(monkeypatch):
    import popgd.crossvalidate_training as module

    arguments = {"n": (200, 400), "seeds": 6, "rng": 0}
    whole = cross_validate_training(Occurrence(4), "O(3x)", **arguments)
    monkeypatch.setattr(module, "MEMORY", 2 * 400 * 4)
    parts = cross_validate_training(Occurrence(4), "O(3x)", **arguments)
    assert parts.observed["beta"] == pytest.approx(whole.observed["beta"], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"plan": "O"}, "counted steps"),
        ({"plan": "O(inf)"}, "counted steps"),
        ({"plan": "O(1e9x)"}, "too many steps"),
        ({"plan": "O(2000x, lr=1000)"}, "lower the learning rate"),
        ({"n": [100]}, "two different sizes"),
        ({"n": 100}, "sequence"),
        ({"seeds": 1}, "seeds = 1"),
        ({"task": Or(300, [0, 1])}, "lower d"),
        ({"task": Occurrence(5000)}, "balanced occurrence"),
        ({"task": "occurrence"}, "must be a task"),
        ({"task": Or(5, [0, 1]), "prediction": "exact"}, "balanced occurrence"),
        ({"prediction": "exact", "start": ([0, 1, 2, 3], [0] * 4)}, "symmetric start"),
        ({"prediction": "guess"}, "not an option"),
        ({"start": ([0.0] * 4, [0.0] * 3)}, "beta = "),
        ({"start": [0.0] * 4}, "pair of vectors"),
        ({"start": ([[0.0] * 4] * 2, [0.0] * 4)}, "one point"),
        ({"start": State(np.zeros(2), 0, 0, 0)}, "one point"),
        ({"start": ([0.0] * 4, [0.0] * 4, [1.0])}, "residual"),
        ({"start": ([0.0] * 4, [np.nan] * 4)}, "finite"),
        ({"reference": 10}, "reference = 10"),
        ({"task": Or(5, [0, 1]), "plan": "O(20000x)"}, "at most 10000 steps"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, words):
    with pytest.raises(BadParameter, match=words):
        cross_validate_training(**({"task": Occurrence(4), "plan": "O(2x)"} | arguments))
