"""What once broke the finite-sample path: aliases, raw errors, leaking warnings, lost facts."""

import warnings

import numpy as np
import pytest
from scipy.sparse import coo_array

import popgd
from popgd import (
    BadParameter,
    EmpiricalRisk,
    FixedLength,
    Occurrence,
    WordBatch,
    Words,
    sample_words,
)

FIVE = Words(FixedLength(5))
BATCH = sample_words(Occurrence(5), 60, rng=0)
HUGE = np.array([1.7e308, -1.7e308, 0.0, 0.0, 0.0])


def weighted():
    return WordBatch(BATCH.counts, BATCH.labels, 1.0 * (np.arange(60) == 3), task=BATCH.task)


def test_a_hessian_outlives_changes_of_the_attention_it_was_asked_at():
    alpha = np.zeros(5)
    hessian = EmpiricalRisk(BATCH).hessian_output(alpha)
    before = hessian @ np.ones(5)
    alpha[0] = 5.0
    assert (hessian @ np.ones(5) == before).all()
    np.testing.assert_allclose(hessian.to_dense() @ np.ones(5), before, rtol=1e-14)


def test_tiers_outlive_changes_of_the_offsets_given():
    offset = np.zeros(3)
    tiers = popgd.Tiers([1, 0, 0], offset)
    offset[0] = 1.0
    assert tiers.offset.tolist() == [0.0, 0.0, 0.0]


CALLS = {
    "dense Hessian": lambda r, a: r.hessian_output(a).to_dense(),
    "Hessian product": lambda r, a: r.hessian_output(a) @ np.ones(5),
    "output minimum": lambda r, a: r.minimize_output(a),
    "variance": lambda r, a: r.variance(a, np.zeros(5)),
    "gradient": lambda r, a: r.value_and_gradient(a, np.zeros(5)),
    "accuracy": lambda r, a: r.accuracy(a, np.zeros(5)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("alpha", [HUGE, 745.0 * (np.arange(5) == 0)], ids=["huge", "745"])
def test_no_warning_leaks_and_callers_may_raise_on_them(name, alpha):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        CALLS[name](EmpiricalRisk(BATCH), alpha)


def test_huge_output_weights_overflow_to_infinity_quietly():
    assert EmpiricalRisk(BATCH).value(np.zeros(5), HUGE) == np.inf
    # a risk that the doubles hold, and twice that
    near = WordBatch(BATCH.counts, BATCH.labels, task=BATCH.task, total=len(BATCH) / 150)
    risk, at = EmpiricalRisk(near), (np.zeros((2, 5)), np.full((2, 5), 1.4e153))
    assert np.isfinite(risk.value(*at)).all()
    assert np.isinf(risk.mse(*at)).all()


def test_the_last_target_of_a_wide_alphabet_costs_no_more_than_the_first():
    import tracemalloc

    tracemalloc.start()
    batch = sample_words(Occurrence(10**5, 10**5 - 1, FIVE), 20_000, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert batch.is_sparse
    # the dense columns up to the target would be 2 GB
    assert peak < 1e8
    assert len(sample_words(Occurrence(10**12, 10**12 - 1, FIVE), 100, rng=0)) == 100


REFUSED = {
    "words over too many places": (
        lambda: sample_words(Occurrence(10**15, 5, FIVE), 20_000, rng=0),
        BadParameter,
        r"d = 1000000000000000: 20000 words over so many symbols are more than 2\^62 places",
    ),
    "exhausting 20000 symbols": (
        lambda: WordBatch.exhaustive(Occurrence(20_000), 1),
        BadParameter,
        r"longest = 1: needs 20000 rows of 20000 counts, at most 2\^26 in all",
    ),
    "a word in a word": (
        lambda: WordBatch.from_words([[0, [1]]], d=3, labels=[1]),
        BadParameter,
        r"words\[0\]\[1\] = \[1\]: must be an integer",
    ),
    "True among symbols": (
        lambda: WordBatch.from_words([[0, True]], d=3, labels=[1]),
        BadParameter,
        r"words\[0\]\[1\] = True: a bool is not an integer",
    ),
    "weights whose sum overflows": (
        lambda: WordBatch.from_words([[0], [1]], d=3, labels=[1, 1], weights=[1.7e308] * 2),
        BadParameter,
        r"weights = 1.7e\+308: their sum may be beyond 1e\+150",
    ),
    "solving for infinities": (
        lambda: EmpiricalRisk(BATCH).hessian_output(np.zeros(5)).solve(np.full(5, np.inf)),
        BadParameter,
        "b = array.*: must be finite",
    ),
    "counts beyond the integers": (
        lambda: WordBatch(np.array([[2**64 - 1, 1]], dtype=np.uint64), [1]),
        BadParameter,
        r"at most 2\^53",
    ),
    "an axis too many": (lambda: BATCH[None], BadParameter, "index = None"),
    "rows of rows": (lambda: BATCH[np.array([[1, 2]])], BadParameter, "selects no rows"),
    "a bool for a row": (lambda: BATCH[True], BadParameter, "index = True"),
    "words of weight zero": (lambda: weighted()[:2], BadParameter, "weight zero only"),
    "weighted words as independent draws": (
        lambda: popgd.cross_validate(Occurrence(5), batch=weighted()),
        BadParameter,
        "has weights",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    call, kind, pattern = REFUSED[name]
    with pytest.raises(kind, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_row_by_any_integer():
    for index in (3, np.int64(3), np.array(3)):
        assert (BATCH[index].counts == BATCH.counts[3]).all()


def test_unsigned_labels_and_duplicate_entries_are_read():
    assert WordBatch.from_words([[0]], d=3, labels=np.array([1], np.uint8)).labels.tolist() == [1]
    twice = coo_array((np.array([200, 100, 1], np.uint8), ([0, 0, 0], [1, 1, 0])), shape=(1, 3))
    assert WordBatch(twice, [1]).counts.tolist() == [[1, 300, 0]]


@pytest.mark.parametrize("make", [popgd.Online, popgd.MiniBatches])
def test_a_generator_gives_an_objective_that_repeats_itself(make):
    first = Occurrence(5) if make is popgd.Online else BATCH
    objective = make(first, 16, rng=np.random.default_rng(3))
    runs = [popgd.train(objective, "O(5x)").risk for _ in range(2)]
    assert (runs[0] == runs[1]).all()


def test_seeds_may_be_an_array():
    one = popgd.train_seeds(Occurrence(4), "O(2x)", 50, np.arange(2))
    other = popgd.train_seeds(Occurrence(4), "O(2x)", 50, [0, 1])
    assert (one.risk == other.risk).all()


def test_the_paper_is_quoted_at_its_own_alphabet_only():
    from popgd.plan_table import paper_table

    table = paper_table(6, seeds=2, only=["O(1x) -> A(1x)"], workers=1)
    assert table.rows[0].mse.printed is None
    assert table.rows[0].mse.agrees is None
