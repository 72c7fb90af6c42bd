"""Promises of the exact accuracy: inside its interval, narrow, the sign rule, clear refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from test_series import problems
from word_sums import direct

from popgd.accuracy import accuracy
from popgd.errors import BadParameter, NotAvailable
from popgd.languages import And, Occurrence, Or
from popgd.tiers import Tiers
from popgd.words import FixedLength, Geometric, Words

# rounding of at most a few hundred units of 2^-53
NARROW = 1e-12


@settings(max_examples=25, deadline=None)
@given(problems())
@example((Occurrence(3, 0, Words(Geometric(0.9))), [0.0, 0.0, 0.0], [2.0, 0.0, 0.0], None))
@example((Or(2, [0, 1], Words(Geometric(0.9))), [0.0, 0.0], [1.0, 1.0], None))
@example((Occurrence(3, 0, Words(Geometric(0.9375))), [1.0, 1.0, 1.0], [0.0, 0.0, 2.0], None))
def test_truth_lies_in_the_interval(problem):
    task, alpha, beta, residual = problem
    truth = direct(task, alpha, beta, residual)
    got = accuracy(task, alpha, beta, residual)
    tail, right = Fraction(truth.tail), Fraction(truth.right)
    assert Fraction(got.lower) - tail <= right <= Fraction(got.upper) + tail
    assert 0 <= got.lower <= got.value <= got.upper <= 1


@pytest.mark.parametrize("d", [2, 3, 50, 1000])
def test_the_interval_is_narrow_away_from_ties(d):
    alpha, beta = np.zeros(d), np.full(d, 0.3)
    alpha[0], beta[0] = 1.7, 4.1
    got = accuracy(Occurrence(d), alpha, beta)
    assert got.upper - got.lower <= NARROW


def test_zero_output_weights_predict_minus_one():
    got = accuracy(Occurrence(50), np.zeros(50), np.zeros(50))
    assert got.lower <= 0.5 <= got.upper
    assert got.upper - got.lower <= NARROW


def test_f_equal_to_zero_counts_as_minus_one():
    # beta = 1 on all symbols: f = 0 on every word
    task = Occurrence(6)
    got = accuracy(task, np.arange(6.0) % 2, np.ones(6))
    assert got.lower <= 0.5 <= got.upper <= 0.5 + NARROW
    everything = Or(2, [0, 1], Words(Geometric(0.5)))
    assert accuracy(everything, [0, 3], [1, 1]).value == 0.0
    # ties at equal attention are settled exactly: two symbols, one of each
    pair = Occurrence(2, 0, Words(FixedLength(2)))
    assert accuracy(pair, [0, 0], [2, 0])[:3] == pytest.approx((0.5, 0.5, 0.5), abs=NARROW)
    assert accuracy(pair, [0, 0], [2 + 1e-15, 0])[:3] == pytest.approx((1, 1, 1), abs=NARROW)


def test_undecidable_ties_widen_the_interval():
    # f = 0 to rounding on words with one of each: a_0 (beta_0 - 1) = a_1 (1 - beta_1)
    pair = Occurrence(2, 0, Words(FixedLength(2)))
    got = accuracy(pair, [math.log(3.0), 0.0], [1 + 1 / 3, 0.0])
    assert got.lower == pytest.approx(0.5, abs=NARROW)
    assert got.upper == pytest.approx(1.0, abs=NARROW)
    assert got.lower <= got.value <= got.upper


def test_perfect_classifiers_have_accuracy_one():
    assert accuracy(Occurrence(20), [40.0] + [0.0] * 19, [2.0] + [0.0] * 19).value == 1.0
    assert accuracy(Occurrence(4), Tiers([1, 0, 0, 0]), [2, 0, 0, 0]).value == 1.0
    assert accuracy(Or(5, [1, 2]), Tiers([0, 1, 1, 0, 0]), [0, 2, 2, 0, 0]).value == 1.0


def test_or_and_drawn_words_agree():
    rng = np.random.default_rng(11)
    n = 200_000
    for task in (Occurrence(8, 2), Or(8, [0, 3]), And(4, [0, 1])):
        alpha, beta = np.zeros(task.d), np.full(task.d, 0.25)
        alpha[list(task.targets)], beta[list(task.targets)] = 1.0, 2.2
        lengths = task.words.length.sample(n, rng)
        counts = rng.multinomial(lengths, task.words.probabilities(task.d))
        a = np.exp(alpha) * counts
        f = (a * beta).sum(1) / a.sum(1) - 1
        sampled = (np.where(f > 0, 1, -1) == task.labels(counts)).mean()
        got = accuracy(task, alpha, beta)
        # five standard deviations
        assert abs(sampled - got.value) <= 5 * 0.5 / math.sqrt(n)


def test_unaffordable_accuracy_names_the_sampled_alternative():
    d = 60
    with pytest.raises(NotAvailable, match=r"60 different weight pairs.*EmpiricalRisk"):
        accuracy(Occurrence(d), np.arange(60.0), np.zeros(d))
    with pytest.raises(NotAvailable, match=r"more than max_terms = 1.0e\+01; popgd.EmpiricalRisk"):
        accuracy(And(3, [0, 1]), [0, 0, 0], [0, 1, 2], max_terms=10)


@pytest.mark.parametrize("gap", [-2.0, 0.0, 3.5])
def test_large_alphabets_go_through_distribution_functions(gap):
    for d in (40, 100_000):
        alpha, beta = np.zeros(d), np.full(d, 0.3)
        alpha[7], beta[7] = gap, 4.1
        task = Occurrence(d, 7)
        far = accuracy(task, alpha, beta, max_terms=1)
        assert not far.proved
        assert far.upper - far.lower <= NARROW
        if d == 40:
            near = accuracy(task, alpha, beta)
            assert near.proved
            assert near.lower <= far.upper
            assert far.lower <= near.upper
    limit = accuracy(task, Tiers((np.arange(d) == 7).astype(int)), beta, max_terms=1)
    assert limit.value == pytest.approx(1.0, abs=NARROW)


def test_malformed_calls():
    with pytest.raises(BadParameter, match="alpha"):
        accuracy(Occurrence(3), [0, 0], [0, 0, 0])
    with pytest.raises(BadParameter, match="max_terms"):
        accuracy(Occurrence(3), [0, 0, 0], [0, 0, 0], max_terms=0.5)
    with pytest.raises(BadParameter, match="task"):
        accuracy("Occurrence", [0, 0, 0], [0, 0, 0])
