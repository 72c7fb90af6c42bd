"""Word batches: what is kept, what is refused, and files."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumerate_words
from scipy.sparse import csr_array, random_array
from strategies import tasks

import popgd
from popgd import BadFile, BadParameter, Occurrence, WordBatch

# probabilities are products of a few dozen rounded factors
PROBABILITY = 1e-13


def words_of(d, longest):
    return [w for m in range(1, longest + 1) for w in itertools.product(range(d), repeat=m)]


def test_from_words_counts_symbols():
    batch = WordBatch.from_words([[0, 1, 1], (2,), iter([1, 0])], task=Occurrence(3, 2))
    assert batch.counts.tolist() == [[1, 2, 0], [0, 0, 1], [1, 1, 0]]
    assert batch.labels.tolist() == [-1, 1, -1]
    assert batch.lengths.tolist() == [3, 1, 2]
    assert len(batch) == 3
    assert batch.d == 3
    assert batch.fill == 5 / 9


def test_own_labels_need_no_task():
    batch = WordBatch.from_words([[0], [1, 1]], 2, labels=[1, -1], weights=[1, 3])
    assert batch.task is None
    assert batch.total == 4


def test_the_batch_is_a_copy():
    counts = np.ones((3, 2), dtype=np.uint8)
    labels = np.array([1, 1, -1], dtype=np.int8)
    weights = np.ones(3)
    batch = WordBatch(counts, labels, weights)
    counts[:] = 7
    labels[:] = 1
    weights[:] = 9
    assert batch.counts.max() == 1
    assert batch.labels.tolist() == [1, 1, -1]
    assert batch.weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize("largest", [1, 255, 256, 65_535, 65_536, 2**40])
def test_counts_take_the_smallest_type(largest):
    batch = WordBatch([[largest, 0], [0, 1]], [1, -1])
    assert batch.counts.dtype == np.min_scalar_type(largest)
    assert batch.counts[0, 0] == largest
    assert batch.lengths[0] == largest


GOOD = [[1, 0], [0, 2]]
REFUSED = [
    (dict(counts=[]), "needs d >= 2"),
    (dict(counts=np.zeros((0, 3))), "at least one word"),
    (dict(counts=csr_array((0, 3), dtype=int)), "at least one word"),
    (dict(counts=[1, 2]), "needs d >= 2"),
    (dict(counts=[[1, 0], [0, 0]]), "counts[1]"),
    (dict(counts=csr_array([[1, 0], [0, 0]])), "counts[1]"),
    (dict(counts=[[1, -1], [0, 1]]), "non-negative integer"),
    (dict(counts=csr_array([[1, -1], [0, 1]])), "non-negative integer"),
    (dict(counts=[[1.5, 1], [0, 1]]), "non-negative integer"),
    (dict(counts=[[math.nan, 1], [0, 1]]), "non-negative integer"),
    (dict(counts=[[math.inf, 1], [0, 1]]), "non-negative integer"),
    (dict(counts=[[True, False], [False, True]]), "must hold integers"),
    (dict(counts=[["a", "b"]]), "must hold integers"),
    (dict(counts=[[1, 2], [3]]), "rectangular"),
    (dict(labels=[1]), "one label for each of the 2 words"),
    (dict(labels=[1, 0]), "+1 or -1"),
    (dict(labels=[1, 2]), "+1 or -1"),
    (dict(labels=[True, False]), "+1 or -1"),
    (dict(labels=[1, math.nan]), "+1 or -1"),
    (dict(labels=None), "need a task"),
    (dict(weights=[1.0]), "one weight for each of the 2 words"),
    (dict(weights=[1.0, -1.0]), "every entry must lie in"),
    (dict(weights=[1.0, math.nan]), "NaN"),
    (dict(weights=[1.0, math.inf]), "every entry must lie in"),
    (dict(weights=[0.0, 0.0]), "at least one must be positive"),
    (dict(weights=[True, True]), "real numbers"),
    (dict(task=Occurrence(3)), "one alphabet size"),
    (dict(task="occurrence"), "must be a task"),
    (dict(total=0.0), "total"),
    (dict(total=math.nan), "total"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_bad_batches_are_refused(change, message):
    arguments = dict(counts=GOOD, labels=[1, -1]) | change
    with pytest.raises(BadParameter, match=message.replace("[", r"\[").replace("+", r"\+")):
        WordBatch(**arguments)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "at least one word"),
        ([[0], []], r"words\[1\]"),
        ([[0], [1, 3]], r"words\[1\]\[1\] = 3"),
        ([[0], [1, 10**30]], r"words\[1\]\[1\]"),
        ([[0, -1]], r"words\[0\]\[1\] = -1"),
        ([[0, 0.5]], r"words\[0\]\[1\] = 0.5"),
        ([[True]], r"words\[0\]\[0\] = True"),
        (["ab"], r"words\[0\]\[0\] = 'a'"),
        ([0, 1], "no sequence of words"),
        (3, "no sequence of words"),
    ],
)
def test_bad_words_are_refused(words, message):
    with pytest.raises(BadParameter, match=message):
        WordBatch.from_words(words, task=Occurrence(3))


def test_alphabet_must_be_known_and_agree():
    with pytest.raises(BadParameter, match="alphabet size is unknown"):
        WordBatch.from_words([[0]], labels=[1])
    with pytest.raises(BadParameter, match="one alphabet size"):
        WordBatch.from_words([[0]], 4, task=Occurrence(3))


@settings(deadline=None)
@given(tasks(largest=4))
def test_exhaustive_is_every_count_vector_with_its_probability(task):
    known = enumerate_words(task, 5)
    possible = known.probability > 0
    if not possible.any():
        with pytest.raises(BadParameter, match="raise longest"):
            WordBatch.exhaustive(task, 5)
        return
    batch = WordBatch.exhaustive(task, 5)
    counts, weights = known.counts[possible], known.probability[possible]
    order, other = np.lexsort(batch.counts.T), np.lexsort(counts.T)
    assert (batch.counts[order] == counts[other]).all()
    assert (batch.labels[order] == known.labels[possible][other]).all()
    np.testing.assert_allclose(batch.weights[order], weights[other], rtol=PROBABILITY)
    assert batch.total == 1.0


def test_exhaustive_holds_every_word_once():
    batch = WordBatch.exhaustive(Occurrence(3), 6)
    assert len(batch) == math.comb(9, 6) - 1
    assert batch.weights.sum() == pytest.approx(1 - 2.0**-6, rel=1e-15)


def test_exhaustive_refuses_what_does_not_fit():
    with pytest.raises(BadParameter, match="rows"):
        WordBatch.exhaustive(Occurrence(50), 20)
    with pytest.raises(BadParameter, match="longest"):
        WordBatch.exhaustive(Occurrence(2), 171)


def test_few_large_counts_become_csr_and_many_do_not():
    rng = np.random.default_rng(0)
    sparse = random_array((4000, 1000), density=0.01, rng=rng, format="csr")
    sparse.data = np.ceil(sparse.data * 300)
    sparse = sparse + csr_array((np.ones(4000), (range(4000), [0] * 4000)), shape=(4000, 1000))
    batch = WordBatch(sparse, np.ones(4000))
    assert batch.is_sparse
    assert batch.nbytes < 0.15 * 4000 * 1000
    dense = WordBatch(sparse.toarray(), np.ones(4000))
    assert dense.is_sparse
    assert (dense.counts != batch.counts).nnz == 0
    assert (batch.lengths == sparse.sum(axis=1)).all()
    assert not WordBatch(np.ones((4000, 1000)), np.ones(4000)).is_sparse
    assert not WordBatch(csr_array(np.ones((3, 2))), np.ones(3)).is_sparse


def test_sparse_words_are_counted_without_a_dense_matrix():
    task = Occurrence(10**6, 3, popgd.Words(popgd.FixedLength(2)))
    batch = WordBatch.from_words([[3, 3], [5, 999_999]], task=task)
    assert batch.is_sparse
    assert batch.labels.tolist() == [1, -1]
    assert batch.counts[0, 3] == 2
    assert batch.lengths.tolist() == [2, 2]


def test_subsets():
    batch = popgd.sample_words(Occurrence(5), 100, rng=0)
    weighted = WordBatch(batch.counts, batch.labels, np.arange(1, 101), task=batch.task)
    part = weighted[10:20]
    assert part.counts.tolist() == batch.counts[10:20].tolist()
    assert part.weights.tolist() == list(range(11, 21))
    assert part.total == sum(range(11, 21))
    assert len(weighted[weighted.labels > 0]) == (batch.labels > 0).sum()
    assert len(weighted[3]) == 1
    with pytest.raises(BadParameter, match="selects no words"):
        weighted[[]]


@settings(deadline=None)
@given(tasks(), st.booleans(), st.integers(0, 2**32))
def test_files_give_back_the_batch(tmp_path_factory, task, weighted, seed):
    path = tmp_path_factory.mktemp("batch") / "words.npz"
    batch = popgd.sample_words(task, 20, rng=seed)
    if weighted:
        weights = np.random.default_rng(seed).random(20) + 0.1
        batch = WordBatch(batch.counts, batch.labels, weights, task=task, total=3.0)
    batch.save(path)
    back = WordBatch.load(path)
    assert (back.counts == batch.counts).all()
    assert (back.labels == batch.labels).all()
    assert (back.weights is None) == (not weighted)
    assert back.total == batch.total
    assert back.task == task
    assert back.task.words.length == task.words.length


def test_files_keep_the_exact_law_and_csr(tmp_path):
    task = Occurrence(2000, 7, popgd.Words(popgd.FixedLength(3)))
    batch = popgd.sample_words(task, 1000, rng=0)
    assert batch.is_sparse
    batch.save(tmp_path / "w.npz")
    back = WordBatch.load(tmp_path / "w.npz")
    assert (back.counts != batch.counts).nnz == 0
    popgd.sample_words(Occurrence(50), 3, rng=0).save(tmp_path / "w.npz")
    law = WordBatch.load(tmp_path / "w.npz").task.words.length
    assert law.exact_p == Occurrence(50).words.length.exact_p


def test_damaged_files_are_refused(tmp_path):
    with pytest.raises(BadFile, match="could not be read"):
        WordBatch.load(tmp_path / "nothing.npz")
    path = tmp_path / "w.npz"
    popgd.sample_words(Occurrence(5), 10, rng=0).save(path)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(BadFile, match="damaged"):
        WordBatch.load(path)
    np.savez(path, counts=np.array([object()]))
    with pytest.raises(BadFile):
        WordBatch.load(path)


def test_files_that_break_a_rule_are_refused(tmp_path):
    from popgd._files import load_arrays, save_arrays

    path = tmp_path / "w.npz"
    popgd.sample_words(Occurrence(5), 10, rng=0).save(path)
    arrays, meta = load_arrays(path, "WordBatch")
    for change in ({"labels": np.zeros(10)}, {"counts": np.zeros((10, 5), int)}):
        save_arrays(path, arrays | change, meta)
        with pytest.raises(BadFile, match="damaged word batch"):
            WordBatch.load(path)


def test_nothing_is_lost_when_a_file_cannot_be_written(tmp_path):
    batch = popgd.sample_words(Occurrence(5), 10, rng=0)
    with pytest.raises(BadFile):
        batch.save(tmp_path / "missing" / "w.npz")
