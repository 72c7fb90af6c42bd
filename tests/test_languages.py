"""Languages as cells: labels, masses, balance."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from oracles import enumerate_words
from strategies import tasks

from popgd import And, BadParameter, Geometric, Occurrence, Or, Words, balanced_p

MASS = 1e-9
"""Enumeration in float64 to a tail below this."""


def in_cell(cell, counts):
    present = [all(any(counts[s] for s in g) for g in cell.groups)]
    return all(present) and not any(counts[s] for s in cell.absent)


@given(tasks(largest=4))
def test_cells_partition_the_words_by_label(task):
    for counts in list(product(range(2), repeat=task.d))[1:]:
        label = task.labels(np.array(counts))
        positive = sum(in_cell(c, counts) for c in task.positive)
        negative = sum(in_cell(c, counts) for c in task.negative)
        assert (positive, negative) == ((1, 0) if label > 0 else (0, 1))


@given(tasks(largest=4))
def test_signed_terms_are_the_cells(task):
    for cell in (*task.positive, *task.negative):
        for counts in product(range(2), repeat=task.d):
            signed = sum(
                sign for sign, absent in cell.signed_terms() if not any(counts[s] for s in absent)
            )
            assert signed == in_cell(cell, counts)


@given(tasks(largest=60))
def test_label_probabilities_add_to_one(task):
    assert task.p_positive + task.p_negative == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("d", [2, 3, 4, 50, 10**6, 10**12])
def test_the_default_law_balances_occurrence_exactly(d):
    task = Occurrence(d)
    assert task.words.length.exact_p == Fraction(1, d - 1)
    assert task.p_positive == task.p_negative == 0.5


@pytest.mark.parametrize(
    "task", [Or(50, [1, 2]), And(50, [1, 2]), And(3, [0, 1, 2]), And(200, [5, 7, 9])]
)
def test_the_default_law_balances_other_languages(task):
    assert task.p_positive == pytest.approx(0.5, abs=1e-15)


def test_balance_uses_the_symbol_law():
    task = Occurrence(3, 2, Words(Geometric(0.5), [0.5, 0.3, 0.2]))
    p = balanced_p(task)
    balanced = Occurrence(3, 2, Words(Geometric(p), [0.5, 0.3, 0.2]))
    assert balanced.p_positive == pytest.approx(0.5, abs=1e-15)


def test_masses_are_those_of_enumerated_words():
    for task in (Or(3, [0, 2], Words(Geometric(0.6))), And(3, [0, 1], Words(Geometric(0.6)))):
        words = enumerate_words(task, 30)
        assert words.tail < MASS
        positive = words.probability[words.labels > 0].sum()
        assert task.p_positive == pytest.approx(positive, abs=MASS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Occurrence(1), "the alphabet needs d >= 2 symbols"),
        (lambda: Occurrence(True), "a bool is not an integer here"),
        (lambda: Occurrence(3, 3), "target = 3: must be in [0, 2]"),
        (lambda: Occurrence(3, -1), "symbols are numbered 0 to d - 1 = 2"),
        (lambda: Or(5, []), "must name at least one symbol"),
        (lambda: Or(5, [1, 1]), "names a symbol twice"),
        (lambda: Or(5, 1), "must be a sequence of symbols"),
        (lambda: Or(5, [0, 9]), "targets[1] = 9"),
        (lambda: Or(3, [0, 1]), "no p balances the labels"),
        (lambda: And(20, range(9)), "at most 8 targets"),
        (lambda: Occurrence(4, 0, words=0.3), "must be a Words object"),
        (lambda: Occurrence(4, 0, Words(Geometric(0.5), [0.5, 0.5])), "one probability for each"),
    ],
)
def test_malformed_tasks_are_refused_in_a_sentence(call, words):
    with pytest.raises(BadParameter) as caught:
        call()
    assert words in str(caught.value)
