"""Training on drawn words of any task from any start: the sampled prediction and its verdicts."""

import numpy as np
import pytest

import popgd.crossvalidate_training as module
import popgd.influence as influence
from popgd import (
    Agreement,
    And,
    BadParameter,
    FixedLength,
    Geometric,
    Occurrence,
    Or,
    Poisson,
    UniformLength,
    Words,
    cross_validate_training,
    random_start,
    sample_words,
)
from popgd.symmetric import State

SIGMAS = 4.5

PLAN = "O(3x) -> A(2x, lr=20) -> O(8x)"

TASKS = [
    Or(8, [1, 3]),
    And(6, [0, 2], Words(UniformLength(9), np.arange(1, 7) / 21)),
    Occurrence(8, 2, Words(Poisson(6.0))),
    Occurrence(8, 2),
]


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_deviations_shrink_as_predicted_from_random_starts(task):
    start = random_start(task.d, 0.3, rng=5)
    found = cross_validate_training(task, PLAN, start, n=(500, 6000), seeds=150, rng=3)
    assert found.prediction == "sampled"
    assert found.verdict is Agreement.AGREE, found
    for name in found.observed:
        slope, half = found.slopes[name]
        assert abs(slope + 0.5) < half
        assert 0.75 < found.ratio(name)[-1, -1] < 1.3


@pytest.mark.parametrize("plan", ["O(10x)", "O(1x) -> A(1x, lr=200) -> O(40x)", "J(20x, lr=2)"])
def test_the_sampled_prediction_agrees_with_the_table(plan):
    arguments = {"n": (10, 20), "seeds": 2, "rng": 1}
    exact = cross_validate_training(Occurrence(10, 3), plan, **arguments)
    sampled = cross_validate_training(Occurrence(10, 3), plan, prediction="sampled", **arguments)
    assert (exact.prediction, exact.reference) == ("exact", 0)
    assert (sampled.prediction, sampled.reference) == ("sampled", 30_000)
    for name, known in exact.predicted.items():
        assert (exact.predicted_error[name] == 0).all()
        error = sampled.predicted_error[name][1:]
        off = np.abs(sampled.predicted[name] - known)[1:]
        assert (off <= SIGMAS * error + 1e-12).all(), name
        assert (error <= 0.05 * known[1:]).all(), name
        # the runs are the same, and agree to rounding whichever path the population took
        assert sampled.observed[name] == pytest.approx(exact.observed[name], rel=1e-6, abs=1e-12)


def test_vectors_that_are_symmetric_take_the_table():
    arguments = {"n": (200, 400), "seeds": 3, "rng": 0}
    alpha, beta = np.zeros(5), np.zeros(5)
    alpha[2], beta[2] = 0.5, 0.25
    one = cross_validate_training(Occurrence(5, 2), "J(3x)", (alpha, beta), **arguments)
    two = cross_validate_training(Occurrence(5, 2), "J(3x)", State(0.5, 0, 0.25, 0), **arguments)
    assert one.prediction == two.prediction == "exact"
    assert one.observed["beta"].tolist() == two.observed["beta"].tolist()
    assert one.predicted["beta"].tolist() == two.predicted["beta"].tolist()


def test_a_state_gives_its_values_to_every_target():
    task = Or(6, [1, 4])
    arguments = {"n": (200, 400), "seeds": 3, "rng": 0, "reference": 200}
    one = cross_validate_training(task, "J(3x)", State(0.5, 0.1, 0.3, -0.2), **arguments)
    alpha, beta = np.full(6, 0.1), np.full(6, -0.2)
    alpha[[1, 4]], beta[[1, 4]] = 0.5, 0.3
    two = cross_validate_training(task, "J(3x)", (alpha, beta), **arguments)
    assert one.predicted["risk"].tolist() == two.predicted["risk"].tolist()
    assert one.observed["alpha"].tolist() == two.observed["alpha"].tolist()


def test_the_streams_decide_everything():
    task, start = Or(5, [0, 1]), random_start(5, rng=0)
    arguments = {"n": (100, 200), "seeds": 3, "rng": 7, "reference": 300}
    one, two = (cross_validate_training(task, "J(2x)", start, **arguments) for _ in range(2))
    assert one.predicted["beta"].tolist() == two.predicted["beta"].tolist()
    assert one.observed["beta"].tolist() == two.observed["beta"].tolist()


# planted errors: each must be found


def planted(task, plan, rng=3):
    start = random_start(task.d, 0.5, rng=5)
    return cross_validate_training(task, plan, start, n=(300, 1500), seeds=300, rng=rng)


TASK = Or(5, [1, 3], Words(Poisson(4.0)))


def test_nothing_planted_nothing_found():
    assert planted(TASK, PLAN).verdict is Agreement.AGREE


def test_a_step_size_20_percent_off_is_caught(monkeypatch):
    true = module._step_sizes

    def off(*arguments):
        return [(1.2 * attention, 1.2 * output) for attention, output in true(*arguments)]

    monkeypatch.setattr(module, "_step_sizes", off)
    found = planted(TASK, "O(2x)")
    assert found.verdict is Agreement.DISAGREE
    assert "times the predicted" in found.reason


@pytest.mark.parametrize("block", ["attention", "mixed", "output"])
def test_a_wrong_sign_in_the_hessian_is_caught(monkeypatch, block):
    true = influence.curvature

    def off(task, *at):
        d = task.d
        signs = {"attention": (-1, 1, 1), "mixed": (1, -1, 1), "output": (1, 1, -1)}[block]
        found = true(task, *at)
        found[:d, :d] *= signs[0]
        found[:d, d:] *= signs[1]
        found[d:, :d] *= signs[1]
        found[d:, d:] *= signs[2]
        return found

    monkeypatch.setattr(influence, "curvature", off)
    found = planted(TASK, "O(3x) -> A(8x, lr=20) -> O(10x)")
    assert found.verdict is Agreement.DISAGREE, found


WRONG = Or(5, [1, 3], Words(Geometric(0.5)))


def test_training_words_of_another_task_are_caught(monkeypatch):
    monkeypatch.setattr(module, "sample_words", lambda task, n, rng: sample_words(WRONG, n, rng))
    assert planted(TASK, PLAN).verdict is Agreement.DISAGREE


def test_reference_words_of_another_task_are_caught(monkeypatch):
    def draw(task, n, rng):
        return sample_words(WRONG if n == 30_000 else task, n, rng)

    monkeypatch.setattr(module, "sample_words", draw)
    assert planted(TASK, PLAN).verdict is Agreement.DISAGREE


def test_too_few_reference_words_say_so():
    start = random_start(5, 0.3, rng=5)
    found = cross_validate_training(
        TASK, "O(3x)", start, n=(200, 800), seeds=400, rng=0, reference=100, resolution=0.1
    )
    assert found.verdict is Agreement.UNDECIDED
    assert "raise reference" in found.reason
    assert found.reason.endswith("-fold")


def test_deviations_of_the_size_of_rounding_are_not_judged():
    """With words of one symbol attention cannot move; what moves it is rounding."""
    found = cross_validate_training(
        Occurrence(4, 0, Words(FixedLength(1))), "J(3x)", random_start(4, rng=0), n=(200, 800),
        seeds=40, rng=0,
    )  # fmt: skip
    assert found.verdict is not Agreement.DISAGREE
    assert np.isnan(found.slopes["gap"][0])
    assert np.isnan(found.ratio("gap")).all()
    assert "gap size" not in found.p_values
    assert found.ratio("beta")[-1, -1] == pytest.approx(1, abs=0.4)


def test_runs_that_leave_the_numbers_are_refused():
    start = random_start(5, rng=0)
    for lr in ("1000", "1e200"):
        with pytest.raises(BadParameter, match="lower the learning rate"):
            cross_validate_training(TASK, f"O(3000x, lr={lr})", start, n=(20, 40), seeds=2)


def test_words_on_which_training_diverges_are_refused(monkeypatch):
    steep = Occurrence(5, 1, Words(FixedLength(1)))
    monkeypatch.setattr(module, "sample_words", lambda task, n, rng: sample_words(steep, n, rng))
    task = Occurrence(5, 1, Words(FixedLength(40)))
    start = random_start(5, rng=0)
    # the largest curvature is 1/5 on these words, and nearly 1/5 on long ones
    with pytest.raises(BadParameter, match="diverges on 3 words; lower the learning rate or raise"):
        cross_validate_training(task, "O(1200x, lr=9)", start, n=(3, 40), seeds=2, rng=0)


@pytest.mark.parametrize("spread", [40.0, -40.0])
def test_large_gaps_are_no_obstacle(spread):
    alpha, beta = np.array([spread, 0, 0.1, 0]), np.array([1.9, 0, 0, 0.1])
    with np.errstate(all="raise"):
        found = cross_validate_training(
            Occurrence(4), "J(3x, lr=0.1)", (alpha, beta), n=(500, 2000), seeds=60, rng=0
        )
    assert found.verdict is not Agreement.DISAGREE
    assert found.ratio("beta")[-1, -1] == pytest.approx(1, abs=0.3)


def test_the_dataset_carries_the_kind_of_prediction():
    found = cross_validate_training(
        TASK, "O(2x)", n=(100, 200), seeds=3, rng=0, reference=500
    ).to_xarray()
    assert found.attrs["prediction"] == "sampled"
    assert found.attrs["reference"] == 500
    assert found["beta_predicted_error"].shape == found["beta"].shape
