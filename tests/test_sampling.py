"""Drawn words follow the law they are drawn from; seeds are fixed, so failures are bugs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import tasks

import popgd
from popgd import (
    And,
    BadParameter,
    FixedLength,
    Geometric,
    Occurrence,
    Or,
    Poisson,
    UniformLength,
    Words,
    sampling,
)
from popgd.sampling import alias_table, sample_words

# two-sided chance 6e-7 each; with fixed seeds the outcome is decided once
SIGMAS = 5
PI = np.array([0.5, 0.1, 0.2, 0.15, 0.05])
CASES = [
    Occurrence(50),
    Occurrence(2),
    Occurrence(5, 1, Words(Geometric(0.03), PI)),
    Or(5, [0, 2], Words(Poisson(3.0), PI)),
    And(5, [1, 4], Words(UniformLength(9))),
    Or(7, [6], Words(FixedLength(4))),
    And(3, [0, 1], Words(FixedLength(500))),  # multinomial counts
    Occurrence(5, 4, Words(FixedLength(300), PI)),  # multinomial, uneven symbols
    Occurrence(3000, 9, Words(Poisson(5.0))),  # CSR
]


@pytest.mark.parametrize("task", CASES, ids=repr)
def test_lengths_symbols_and_labels_have_their_law(task):
    n = 20_000
    batch = sample_words(task, n, rng=12)
    law, pi = task.words.length, task.words.probabilities(task.d)
    m = batch.lengths
    spread = np.sqrt(law.root_mean_square**2 - law.mean**2 + 1e-9)
    assert abs(m.mean() - law.mean) <= SIGMAS * spread / np.sqrt(n) + 1e-9
    assert (batch.labels == 1).mean() == pytest.approx(
        task.p_positive, abs=SIGMAS * np.sqrt(task.p_positive * task.p_negative / n) + 1e-12
    )
    # given the lengths, counts are multinomial: totals and squares of each symbol
    counts = np.asarray(batch.counts.sum(axis=0), float).ravel()
    # in at most 50 groups of symbols, so that every total is large and near normal
    totals = np.array([part.sum() for part in np.array_split(counts, min(task.d, 50))])
    chance = np.array([part.sum() for part in np.array_split(pi, min(task.d, 50))])
    error = np.sqrt(m.sum() * chance * (1 - chance))
    assert (np.abs(totals - m.sum() * chance) <= SIGMAS * error + 1e-9).all()
    if not batch.is_sparse:
        z = (batch.counts - m[:, None] * pi) / np.sqrt(m[:, None] * pi * (1 - pi))
        kurtosis = 3 + np.mean((1 - 6 * pi * (1 - pi)) / (pi * (1 - pi))) * np.mean(1 / m)
        assert abs((z**2).mean() - 1) <= SIGMAS * np.sqrt(kurtosis / n)


@settings(deadline=None)
@given(tasks(), st.integers(1, 50), st.integers(0, 2**40))
def test_every_batch_is_valid_and_labelled_by_the_task(task, n, seed):
    batch = sample_words(task, n, rng=seed)
    assert batch.counts.shape == (n, task.d)
    checked = popgd.WordBatch(batch.counts, task=task)
    assert (checked.labels == batch.labels).all()
    assert (checked.counts == batch.counts).all()
    assert batch.task is task


def test_same_seed_same_words():
    first, again = (sample_words(Occurrence(9), 1000, rng=3) for _ in range(2))
    assert (first.counts == again.counts).all()
    rng = np.random.default_rng(3)
    assert (sample_words(Occurrence(9), 1000, rng).counts == first.counts).all()
    assert (sample_words(Occurrence(9), 1000, rng).counts != first.counts).any()


def test_block_borders_lose_no_words(monkeypatch):
    monkeypatch.setattr(sampling, "BLOCK", 35)
    monkeypatch.setattr(sampling, "SPARSE_BLOCK", 13)
    assert (sample_words(Occurrence(5), 203, rng=0).counts.sum(axis=1) >= 1).all()
    task = Occurrence(20_000, 0, Words(UniformLength(40)))
    batch = sample_words(task, 203, rng=0)
    assert batch.is_sparse
    lengths = task.words.length.sample(203, np.random.default_rng(0))
    assert (batch.lengths == lengths).all()


def test_counts_beyond_255_widen_the_store():
    batch = sample_words(Occurrence(2, 0, Words(FixedLength(10**6))), 50, rng=0)
    assert batch.counts.dtype == np.uint32
    assert (batch.lengths == 10**6).all()
    late = sample_words(Occurrence(3, 0, Words(Geometric(1 / 300))), 30_000, rng=0)
    assert late.counts.dtype == np.uint16
    assert late.counts.max() > 255


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=30))
def test_alias_table_is_the_law(parts):
    pi = np.array(parts) / np.sum(parts)
    keep, alias = alias_table(pi)
    back = keep + np.bincount(alias, weights=1 - keep, minlength=pi.size)
    np.testing.assert_allclose(back / pi.size, pi, rtol=0, atol=1e-15 * pi.size)
    assert (keep >= 0).all()
    assert (keep <= 1 + 1e-12).all()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "10", None])
def test_bad_numbers_are_refused(n):
    with pytest.raises(BadParameter, match="n = "):
        sample_words(Occurrence(3), n)


def test_bad_tasks_seeds_and_sizes_are_refused():
    with pytest.raises(BadParameter, match="must be a task"):
        sample_words("occurrence", 10)
    with pytest.raises(BadParameter, match="rng"):
        sample_words(Occurrence(3), 10, rng="seed")
    with pytest.raises(BadParameter, match="32 GB"):
        sample_words(Occurrence(10**12), 10)


def test_a_huge_alphabet_of_short_words_works():
    task = Occurrence(10**8, 5, Words(FixedLength(3)))
    batch = sample_words(task, 1000, rng=0)
    assert batch.is_sparse
    assert (batch.lengths == 3).all()
    assert batch.nbytes < 10**5
