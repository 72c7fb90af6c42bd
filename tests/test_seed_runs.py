"""Many seeds in one call: the same runs in any company and on any number of workers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from popgd import (
    BadParameter,
    EmpiricalRisk,
    Occurrence,
    random_start,
    sample_words,
    seed_streams,
    train,
    train_seeds,
)

TASK = Occurrence(6, 2)
PLAN = "O(2x) -> A(3x, lr=5) -> O(inf)"


def test_results_do_not_depend_on_workers_or_company():
    whole = train_seeds(TASK, PLAN, 80, 5, rng=1)
    spread = train_seeds(TASK, PLAN, 80, 5, rng=1, workers=2)
    with ThreadPoolExecutor(3) as pool:
        threads = train_seeds(TASK, PLAN, 80, 5, rng=1, executor=pool)
    some = train_seeds(TASK, PLAN, 80, [3, 1], rng=1)
    for other in (spread, threads):
        assert (other.risk == whole.risk).all()
        assert (other.final.alpha == whole.final.alpha).all()
    assert (some.risk == whole.risk[:, [3, 1]]).all()
    assert whole.risk.shape == (4, 5)
    assert whole.final.beta.shape == (5, 6)


def test_a_seed_is_plain_training_on_its_stream():
    run = train_seeds(
        TASK, "J(4x, lr=2)", 50, [7], record_every=1, keep_weights=True, accuracy=True
    )
    (stream,) = seed_streams(0, [7])
    start = random_start(6, 0.1, rng=stream)
    alone = train(
        EmpiricalRisk(sample_words(TASK, 50, stream)), "J(4x, lr=2)", *start, accuracy=True
    )
    assert (run.risk[:, 0] == alone.risk).all()
    assert (run.beta[:, 0] == alone.beta).all()
    assert (run.accuracy[:, 0] == alone.accuracy).all()


def test_a_seed_that_diverges_leaves_the_others():
    run = train_seeds(TASK, "O(400x)", 30, 4, learning_rate={"O": 1e3, "A": 1.0})
    assert run.diverged.any()
    assert np.isinf(run.risk[-1][run.diverged]).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"plan": "O"}, "without count"),
        ({"n": 0}, "n = 0"),
        ({"workers": 0}, "workers = 0"),
        ({"rng": None}, "rng = None"),
        ({"learning_rate": lambda t: 1.0}, "learning_rate"),
        ({"seeds": 0}, "seeds = 0"),
        ({"task": 3}, "task"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(BadParameter, match=words):
        train_seeds(**({"task": TASK, "plan": "O(1x)", "n": 5, "seeds": 1} | arguments))


@pytest.mark.parametrize("seeds", [[6, 1], [1, 6]], ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["early", "at the last step"])
def test_a_seed_that_diverges_does_not_name_the_steps(seeds, last):
    # between the 2 / lambda_max of the two seeds' words
    options = {"n": 12, "seeds": seeds, "learning_rate": 2.6 / 0.506}
    steps = train_seeds(Occurrence(4), "O(5000x)", **options | {"seeds": [6]}).step[-1]
    steps = int(steps) if last else 5000
    run = train_seeds(Occurrence(4), f"O({steps}x)", **options)
    assert run.step.tolist() == [0, steps]
    assert run.stop_reason == "completed"
    assert run.diverged.tolist() == [seed == 6 for seed in seeds]
