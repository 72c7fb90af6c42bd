"""Words over threads: the same numbers, whatever the number of threads, and no lost words."""

import numpy as np
import pytest

from popgd import BadParameter, EmpiricalRisk, Occurrence, Tiers, WordBatch, sample_words
from popgd.word_blocks import blocks
from popgd.word_threads import SMALLEST, shares

ROUNDING = 1e-13
"""Sums in another order."""

TASK = Occurrence(20, 3)
BATCH = sample_words(TASK, SMALLEST // 20 + 500, rng=0)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_change_rounding_only(threads):
    alpha, beta = np.random.default_rng(1).normal(size=(2, 20))
    one, many = EmpiricalRisk(BATCH), EmpiricalRisk(BATCH, threads=threads)
    assert many._shares[0] is not None
    for x, y in zip(
        one.value_and_gradient(alpha, beta), many.value_and_gradient(alpha, beta), strict=True
    ):
        assert x == pytest.approx(y, rel=ROUNDING, abs=ROUNDING)
    assert one.accuracy(alpha, beta) == many.accuracy(alpha, beta)
    again = EmpiricalRisk(BATCH, threads=threads).value(alpha, beta)
    assert again == many.value(alpha, beta)


def test_rows_tiers_weights_and_sparse_words_go_over_threads_too():
    rng = np.random.default_rng(2)
    weighted = WordBatch(BATCH.counts, weights=rng.random(len(BATCH)), task=TASK)
    from scipy.sparse import csr_array

    sparse = WordBatch(csr_array(BATCH.counts), task=TASK)
    beta = rng.normal(size=(9, 20))
    for batch, alpha in ((weighted, 100 * beta), (sparse, beta), (weighted, Tiers([1] + [0] * 19))):
        one, two = EmpiricalRisk(batch), EmpiricalRisk(batch, threads=2)
        assert one.value(alpha, beta) == pytest.approx(two.value(alpha, beta), rel=ROUNDING)


def test_every_word_is_in_one_share():
    words = blocks(BATCH, BATCH.counts.size)
    for threads in (1, 2, 5, 40):
        split = shares(words, threads)
        sizes = [sum(block.size for block in share) for share in split]
        assert sum(sizes) == len(BATCH)
        assert len(split) <= threads
        assert max(sizes) <= 2 * len(BATCH) / threads


def test_no_warning_leaks_from_a_thread(recwarn):
    risk = EmpiricalRisk(BATCH, threads=2)
    risk.value_and_gradient(700 * (np.arange(20) == 0.0), np.full(20, 1e200))
    assert not recwarn.list


def test_threads_are_a_number():
    with pytest.raises(BadParameter, match="threads = 0"):
        EmpiricalRisk(BATCH, threads=0)


def test_one_wide_word_needs_no_second_thread():
    counts = np.zeros((1, SMALLEST + 1), dtype=np.uint8)
    counts[0, :3] = 1
    risk = EmpiricalRisk(WordBatch(counts, task=Occurrence(SMALLEST + 1)), threads=2)
    assert risk.value(*np.zeros((2, SMALLEST + 1))) == 2.0
