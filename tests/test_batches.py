"""Stochastic objectives: unbiased steps, streams that depend on the run's number only."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

import popgd
from popgd import (
    BadParameter,
    EmpiricalRisk,
    MiniBatches,
    NotAvailable,
    Occurrence,
    Online,
    PopulationRisk,
    WordBatch,
    sample_words,
    seed_streams,
    train,
)  # fmt: skip

# sums of a few thousand terms, in another order
CLOSE = 1e-13
SIGMAS = 5
TASK = Occurrence(6, 2)


def points(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=(2, *shape, 6))


def weighted(n, seed=0):
    batch = sample_words(TASK, n, rng=seed)
    mass = np.random.default_rng(seed).random(n) + 0.1
    return WordBatch(batch.counts, batch.labels, mass, task=TASK, total=7.0)


@pytest.mark.parametrize(
    "batch", [sample_words(TASK, 60, rng=0), weighted(60)], ids=["mean", "weighted"]
)
def test_an_epoch_is_the_full_gradient(batch):
    alpha, beta = points()
    sgd = MiniBatches(batch, 12, rng=0)
    for _ in range(3):
        steps = [sgd.value_and_gradient(alpha, beta) for _ in range(5)]
        whole = sgd.full.value_and_gradient(alpha, beta)
        for name in whole._fields:
            mean = np.mean([getattr(step, name) for step in steps], axis=0)
            np.testing.assert_allclose(mean, getattr(whole, name), rtol=CLOSE, atol=CLOSE)


def test_an_epoch_uses_every_word_once_and_is_reshuffled():
    batch = WordBatch(np.arange(1, 23).reshape(11, 2), np.ones(11))
    sgd = MiniBatches(batch, 3, rng=0)
    epochs = []
    for _ in range(4):
        words = [w for _ in range(3) for w in sgd.draw().batch.counts[:, 0].tolist()]
        assert len(set(words)) == 9
        epochs.append(tuple(words))
    assert len(set(epochs)) == 4


def test_replacement_repeats_words_and_is_unbiased():
    batch = weighted(15)
    alpha, beta = points()
    sgd = MiniBatches(batch, 40, replace=True, rng=0)
    n = 3000
    values = np.array([sgd.value_and_gradient(alpha, beta).value for _ in range(n)])
    assert abs(values.mean() - sgd.value(alpha, beta)) <= SIGMAS * values.std() / np.sqrt(n)


def test_online_steps_are_unbiased():
    alpha, beta = points()
    online = Online(TASK, 50, rng=3)
    n = 2000
    steps = [online.value_and_gradient(alpha, beta) for _ in range(n)]
    exact = PopulationRisk(TASK)
    truth, noise = exact.value_and_gradient(alpha, beta), exact.variance(alpha, beta)
    loss, by_alpha, by_beta = noise.standard_error(50 * n)
    assert abs(np.mean([s.value for s in steps]) - truth.value) <= SIGMAS * loss
    assert (
        np.abs(np.mean([s.alpha for s in steps], axis=0) - truth.alpha) <= SIGMAS * by_alpha
    ).all()
    assert (np.abs(np.mean([s.beta for s in steps], axis=0) - truth.beta) <= SIGMAS * by_beta).all()


def test_online_words_are_fresh_across_refills():
    online = Online(TASK, 1500, rng=0)
    drawn = [online.draw().batch.counts for _ in range(5)]
    assert all((a != b).any() for i, a in enumerate(drawn) for b in drawn[:i])


MAKERS = {
    "one batch": lambda seeds, rng: MiniBatches(
        sample_words(TASK, 100, rng=1), 7, seeds=seeds, rng=rng
    ),
    "own batches": lambda seeds, rng: MiniBatches(
        [sample_words(TASK, 100, rng=k) for k in seeds], 7, seeds=seeds, rng=rng
    ),
    "replaced": lambda seeds, rng: MiniBatches(
        sample_words(TASK, 5, rng=1), 7, seeds=seeds, rng=rng, replace=True
    ),
    "large": lambda seeds, rng: MiniBatches(
        sample_words(TASK, 1500, rng=1), 600, seeds=seeds, rng=rng
    ),
    "online": lambda seeds, rng: Online(TASK, 1000, seeds=seeds, rng=rng),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("root", [5, np.random.SeedSequence(5)], ids=["int", "sequence"])
def test_a_run_does_not_depend_on_the_others(make, root):
    alpha, beta = points(6)
    together = make(range(6), root)
    apart = [make([0, 1], root), make([2], root), make([3, 4, 5], root)]
    split = [slice(0, 2), slice(2, 3), slice(3, 6)]
    for _ in range(20):
        whole = together.value_and_gradient(alpha, beta)
        parts = [one.value_and_gradient(alpha[s], beta[s]) for one, s in zip(apart, split)]
        for name in whole._fields:
            joined = np.concatenate([getattr(part, name) for part in parts])
            np.testing.assert_allclose(getattr(whole, name), joined, rtol=CLOSE, atol=CLOSE)
    assert len(set(whole.value)) == 6


def test_streams_are_the_spawned_children():
    known = [np.random.default_rng(s).random() for s in np.random.SeedSequence(9).spawn(4)]
    assert [g.random() for g in seed_streams(9, 4)] == known
    assert [g.random() for g in seed_streams(9, [3, 1])] == [known[3], known[1]]
    rng = np.random.default_rng(0)
    first, second = seed_streams(rng, 2), seed_streams(rng, 2)
    assert first[0].random() != second[0].random()
    assert seed_streams(None, 1)[0].random() != seed_streams(None, 1)[0].random()


def test_training_repeats_and_splits():
    sgd = MiniBatches(sample_words(TASK, 500, rng=0), 20, seeds=4, rng=1)
    alpha, beta = points(4) * 0.1
    first, again = (train(sgd, "joint(30x)", alpha, beta, learning_rate=0.5) for _ in range(2))
    assert (first.risk == again.risk).all()
    half = MiniBatches(sgd.full.batch, 20, seeds=[2, 3], rng=1)
    other = train(half, "joint(30x)", alpha[2:], beta[2:], learning_rate=0.5)
    np.testing.assert_allclose(other.beta[-1], first.beta[-1][2:], rtol=1e-10)
    watched = train(sgd, "joint(30x)", alpha, beta, learning_rate=0.5, monitor=sgd.full)
    at = first.alpha[-1], first.beta[-1]
    np.testing.assert_allclose(watched.risk[-1], sgd.full.value(*at), rtol=1e-12)


def test_train_seeds_what_has_no_seed():
    online = Online(TASK, 20)
    one, two, other = (train(online, "O(9x)", learning_rate=1.0, rng=r).beta[-1] for r in (1, 1, 2))
    assert (one == two).all()
    assert (one != other).any()


def test_small_steps_follow_the_population():
    task = Occurrence(4)
    sgd = Online(task, 200, seeds=3, rng=0)
    exact = PopulationRisk(task)
    start = np.zeros((3, 4))
    run = train(
        sgd, "joint(200x)", start, start, learning_rate=0.3, monitor=exact, record_every=None
    )
    known = train(exact, "joint(200x)", learning_rate=0.3, record_every=None)
    assert np.abs(run.risk[-1] - known.risk[-1]).max() <= 0.02
    assert (run.risk[-1] != known.risk[-1]).all()


def test_step_size_sweeps_share_the_words_of_a_run():
    online = Online(TASK, 10, seeds=2, rng=0)
    alpha, beta = points(5, 2)
    step = online.value_and_gradient(alpha, beta)
    assert step.value.shape == (5, 2)
    same = Online(TASK, 10, seeds=2, rng=0).value_and_gradient(alpha[3], beta[3])
    np.testing.assert_allclose(step.beta[3], same.beta, rtol=CLOSE, atol=CLOSE)


def test_whole_batch_methods():
    sgd = MiniBatches(sample_words(TASK, 50, rng=0), 5, rng=0)
    full = EmpiricalRisk(sgd.full.batch)
    alpha, beta = points()
    assert sgd.value(alpha, beta) == full.value(alpha, beta) == sgd.value(alpha, beta)
    assert sgd.accuracy(alpha, beta) == full.accuracy(alpha, beta)
    assert sgd.minimize_output(alpha).value == full.minimize_output(alpha).value
    assert (sgd.hessian_output(alpha).to_dense() == full.hessian_output(alpha).to_dense()).all()
    assert isinstance(sgd, popgd.objective.Objective)
    assert isinstance(Online(TASK, 5), popgd.objective.Objective)
    assert 0 <= Online(TASK, 5).accuracy(alpha, beta) <= 1
    for method in ("minimize_output", "hessian_output"):
        with pytest.raises(NotAvailable, match="PopulationRisk"):
            getattr(Online(TASK, 5), method)(alpha)


def test_sparse_words_have_mini_batches():
    task = Occurrence(3000, 0, popgd.Words(popgd.FixedLength(4)))
    batch = sample_words(task, 500, rng=0)
    assert isinstance(batch.counts, csr_array)
    step = MiniBatches(batch, 50, seeds=2, rng=0).value_and_gradient(np.zeros(3000), np.ones(3000))
    assert step.beta.shape == (2, 3000)


def test_copies_start_at_the_first_step():
    online = Online(TASK, 10, rng=4)
    first = online.value_and_gradient(*points()).value
    assert online.value_and_gradient(*points()).value != first
    assert pickle.loads(pickle.dumps(online)).value_and_gradient(*points()).value == first
    assert online.step_objective(99).value_and_gradient(*points()).value == first


@pytest.mark.parametrize("size", [0, -1, 2.5, True, 51, "all"])
def test_bad_sizes_are_refused(size):
    batch = sample_words(TASK, 50, rng=0)
    with pytest.raises(BadParameter, match="size"):
        MiniBatches(batch, size)


@pytest.mark.parametrize("seeds", [0, -1, [], [1, -2], [0.5], True, "12"])
def test_bad_seeds_are_refused(seeds):
    with pytest.raises(BadParameter, match="seeds"):
        Online(TASK, 5, seeds=seeds)


def test_other_bad_arguments_are_refused():
    batch = sample_words(TASK, 50, rng=0)
    with pytest.raises(BadParameter, match="3 runs for 2 batches"):
        MiniBatches([batch, batch], 5, seeds=3)
    with pytest.raises(BadParameter, match="rng"):
        MiniBatches(batch, 5, rng="seed")
    with pytest.raises(BadParameter, match="rng"):
        MiniBatches(batch, 5, rng=-1)
    with pytest.raises(BadParameter, match="must be a task"):
        Online("occurrence", 5)
    with pytest.raises(BadParameter, match="WordBatch"):
        MiniBatches(np.ones((3, 2)), 2)
    with pytest.raises(BadParameter, match="do not broadcast"):
        MiniBatches(batch, 5, seeds=3).value_and_gradient(np.zeros((2, 6)), np.zeros(6))
