"""Promises of the series route: honest and sharp bounds, any task and law, clear refusals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import log, mp, mpf
from word_sums import direct

from popgd import count_law, count_sums
from popgd.errors import BadParameter, NotAvailable
from popgd.languages import And, Occurrence, Or
from popgd.series import (
    SeriesRoute,
    affordable,
    series_gradient,
    series_risk,
    terms_needed,
)
from popgd.tiers import Tiers
from popgd.words import FixedLength, Geometric, Poisson, UniformLength, Words

# the bound promised at rtol = 1e-12, tail and rounding together
SHARP = 1e-12
# gradients against the sum of their absolute terms; here none of the terms cancel much
SHARP_GRADIENT = 1e-10


def dyadic(most):
    """Multiples of 2^-20: random digits, but no tiny numbers that the oracle would round away."""
    return st.integers(-most * 2**20, most * 2**20).map(lambda n: n * 2.0**-20)


@st.composite
def problems(draw):
    """A task whose words beyond length 18 weigh less than 1e-18, with weights."""
    d = draw(st.integers(2, 4))
    kind = draw(st.sampled_from([Occurrence, Or, And]))
    law = draw(
        st.one_of(
            st.builds(Geometric, st.floats(0.9, 1.0)),
            st.builds(Poisson, st.floats(1e-3, 0.5)),
            st.builds(FixedLength, st.integers(1, 9)),
            st.builds(UniformLength, st.integers(1, 9)),
        )
    )
    symbols = None
    if draw(st.booleans()):
        raw = np.array(draw(st.lists(st.integers(1, 50), min_size=d, max_size=d)), dtype=float)
        symbols = raw / raw.sum()
    words = Words(law, symbols)
    targets = draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=d, unique=True))
    task = Occurrence(d, targets[0], words) if kind is Occurrence else kind(d, targets, words)
    levels = st.sampled_from([0.0, 1.0, -3.5, 40.0, 700.0]) | dyadic(30)
    alpha = draw(st.lists(levels, min_size=d, max_size=d))
    outputs = st.sampled_from([0.0, 2.0, 1.0]) | dyadic(5)
    beta = draw(st.lists(outputs, min_size=d, max_size=d))
    residual = None
    if draw(st.booleans()):
        small = st.sampled_from([0.0, 1e-20]) | dyadic(1)
        residual = draw(st.lists(small, min_size=len(task.targets), max_size=len(task.targets)))
    return task, alpha, beta, residual


@settings(max_examples=25, deadline=None)
@given(problems())
@example((Occurrence(2), [0.0, 0.0], [1.0, 0.5], None))
@example((Occurrence(3, 0, Words(Geometric(0.9))), [40.0, 0.0, 0.0], [2.0, 0.0, 0.0], None))
@example((And(3, [0, 1], Words(Poisson(0.5))), [700.0, 0.0, 0.0], [2.0, 0.0, 1.0], [1e-20, 0.0]))
@example((Occurrence(2), [0.0, -3.5], [0.0, 2.0**-20], None))
@example((Occurrence(2, 0, Words(FixedLength(2))), [700.0, 0.0], [0.0, 1.0], [0.0]))
def test_truth_lies_within_every_bound(problem):
    task, alpha, beta, residual = problem
    truth = direct(task, alpha, beta, residual)
    got = series_gradient(task, alpha, beta, residual)
    # the oracle stops at length 18; nothing it leaves out exceeds this
    missing = truth.tail * 200
    pairs = [(got.value, truth.risk, got.bound)]
    pairs += [(got.positive.value, truth.positive, got.positive.bound)]
    pairs += zip(got.alpha, truth.alpha, got.alpha_bound, strict=True)
    pairs += zip(got.beta, truth.beta, got.beta_bound, strict=True)
    for value, exact, bound in pairs:
        assert abs(Fraction(float(value)) - Fraction(exact)) <= Fraction(float(bound)) + Fraction(
            missing
        )


@settings(max_examples=40, deadline=None)
@given(problems())
def test_the_bound_is_narrow(problem):
    task, alpha, beta, residual = problem
    value, bound = series_risk(task, alpha, beta, residual)
    # terms of v . gamma that cancel in every word cost digits: their size is the yardstick
    gross = series_risk(task, alpha, np.abs(beta) + 2.0).value
    assert bound <= SHARP * value + 1e-13 * math.sqrt(value * gross) + 1e-26 * gross


@pytest.mark.parametrize("gap", [40.0, 100.0, 300.0])
@pytest.mark.parametrize("d", [2, 3, 20])
def test_tiny_risks_are_sharp_in_every_component(d, gap):
    alpha, beta = np.zeros(d), np.full(d, 0.01)
    alpha[0], beta[0] = gap, 1.9
    got = series_gradient(Occurrence(d), alpha, beta)
    assert got.bound <= SHARP * got.value
    assert (got.alpha_bound <= SHARP_GRADIENT * np.abs(got.alpha) + 1e-300).all()
    assert (got.beta_bound <= SHARP_GRADIENT * np.abs(got.beta)).all()
    beta[:] = 0.0
    beta[0] = 2.0
    got = series_gradient(Occurrence(d), alpha, beta)
    assert got.bound <= SHARP * got.value or d == 2
    assert got.negative.value == 0.0
    assert (got.alpha_bound <= SHARP_GRADIENT * np.abs(got.alpha) + 1e-300).all()


def exact_words(task, beta, lengths):
    """Risk at uniform attention in rationals, over literal words."""
    total = Fraction(0)
    pi = task.words.exact_probabilities(task.d)
    for m in lengths:
        for word in itertools.product(range(task.d), repeat=m):
            weight = Fraction(1, len(lengths))
            for i in word:
                weight *= pi[i]
            hit = [s in word for s in task.targets]
            label = 1 if (all(hit) if isinstance(task, And) else any(hit)) else -1
            f = sum(Fraction(beta[i]) for i in word) / m - 1
            total += weight * (f - label) ** 2 / 2
    return total


@pytest.mark.parametrize("kind", [Or, And])
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("law", [FixedLength(5), UniformLength(5)])
@pytest.mark.parametrize("symbols", [False, True])
def test_literal_words_in_rationals(kind, d, law, symbols):
    pi = np.arange(1, d + 1) / math.comb(d + 1, 2) if symbols else None
    task = kind(d, [0, 1], Words(law, pi))
    beta = [1.5, -0.25, 0.5, 3.0][:d]
    value, bound = series_risk(task, [0.0] * d, beta)
    assert abs(Fraction(value) - exact_words(task, beta, law.lengths)) <= Fraction(bound)


@pytest.mark.parametrize("d", [3, 10, 50, 300])
def test_uniform_attention_matches_its_closed_form(d):
    # min over beta at gap 0, and E[1/m] = ln(d-1)/(d-2): theory of uniform attention
    with mp.workdps(40):
        mean = log(mpf(d - 1)) / (d - 2)
        floor = (1 - (d - 2) / ((d - 1) * log(mpf(d - 1)))) / 2
        # gamma_s = C_s / m: E[gamma_s] = 1/d, E[gamma_s^2] = (1 - 1/d) E[1/m] / d + 1/d^2
        second = (1 - mpf(1) / d) * mean / d + mpf(1) / d**2
        truth = (4 * second - 8 * mpf(1) / d + 4 * mpf(1) / 2) / 2
    beta = np.zeros(d)
    beta[0] = 2.0
    value, bound = series_risk(Occurrence(d), np.zeros(d), beta)
    assert abs(mpf(value) - truth) <= bound
    # the optimum: v_s = beta_s - 2 and beta_j from the normal equations, solved by one Newton step
    from popgd.symmetric_moments import moments

    m20, m11, m02 = (float(x) for x in moments(0.0, d)[:3])
    v = m02 - m11**2 / m20
    beta[:] = 4 * v / (1 + 2 * v)
    beta[0] = 2 + 2 * (m11 / m20) / (1 + 2 * v)
    value, bound = series_risk(Occurrence(d), np.zeros(d), beta)
    # an optimum found in doubles is off by the square of its own error
    assert abs(value - float(floor)) <= bound + 1e-14


def test_equal_output_weights_have_a_closed_form():
    # beta = 2 - x on all symbols: f - y = -x on positives, 2 - x on negatives, at any attention
    d, x = 7, 0.375
    got = series_gradient(Occurrence(d), np.arange(d) * 3.0 % 2, np.full(d, 2 - x))
    assert abs(got.positive.value - x**2 / 4) <= got.positive.bound
    assert abs(got.negative.value - (2 - x) ** 2 / 4) <= got.negative.bound
    assert np.abs(got.alpha).max() == 0.0


@pytest.fixture
def coarse():
    """A problem in which the words left out are most of the error."""
    task = Occurrence(3, 0, Words(Geometric(0.5)))
    weights = [0.0, 0.0, 0.0], [5.0, 5.0, 5.0]
    truth = 3.0**2 / 2 * task.p_positive + 5.0**2 / 2 * task.p_negative
    return task, weights, truth


def honest(coarse, rtol=1e-3):
    task, weights, truth = coarse
    value, bound = series_risk(task, *weights, rtol=rtol)
    return abs(value - truth) <= bound


def test_coarse_sums_are_honest(coarse):
    assert all(honest(coarse, rtol) for rtol in (0.1, 1e-3, 1e-6, 1e-9))


def test_control_a_tail_bound_shrunk_tenfold_is_caught(coarse, monkeypatch):
    monkeypatch.setattr(count_sums, "bounded", lambda p, m: 0.1 * count_bounded(p, m))
    from popgd import count_risk

    monkeypatch.setattr(count_risk, "bounded", lambda p, m: 0.1 * count_bounded(p, m))
    assert not all(honest(coarse, rtol) for rtol in (0.1, 1e-3, 1e-6))


count_bounded = count_sums.bounded


def test_control_a_dropped_row_is_caught(coarse, monkeypatch):
    rows = count_law.rare_rows

    def without_last(*arguments):
        yield from list(rows(*arguments))[:-1]

    monkeypatch.setattr(count_sums, "rare_rows", without_last)
    assert not all(honest(coarse, rtol) for rtol in (0.1, 1e-3, 1e-6))


@pytest.mark.parametrize(
    "law", [Geometric(0.03), Poisson(40.0), Poisson(1e-6), FixedLength(60), UniformLength(90)]
)
def test_tail_bounds_hold_and_are_sharp(law):
    # P(m > n) and P(more than k of them rare), summed from the probability function
    m = np.arange(1, 2000)
    pmf = law.pmf(m)
    for cut in (1, 10, 50, 120):
        truth = [float((pmf * m**j)[m > cut].sum()) for j in range(4)]
        bound = count_law.length_tail(law, cut)
        assert (bound >= np.array(truth) * (1 - 1e-12)).all()
    rare = Fraction(1, 7)
    first, last = count_law.length_span(law)
    rows = count_law.rare_rows(law, rare, 90, first, last or 1500)
    mass = {k: float(row.sum()) for k, _, row in rows}
    for most in (5, 12, 20):
        truth = sum(v for k, v in mass.items() if k > most)
        bound = count_law.rare_tail(law, rare, most)
        assert truth * (1 - 1e-12) <= bound
        # the bound for lengths up to 90 is that of length 90
        assert bound <= max(40 * truth, 1e-300) or bound == 1.0


@pytest.mark.parametrize(
    "law",
    [
        Geometric(1e-3),
        Geometric(1),
        Poisson(3.0),
        Poisson(5e3),
        Poisson(1e-200),
        FixedLength(10**4),
        UniformLength(3000),
    ],
)
def test_count_probabilities_sum_to_one(law):
    first, last = count_law.length_span(law)
    longest = last or count_law.smallest(lambda n: count_law.length_tail(law, n)[0], 1e-17, 1)
    rare = Fraction(1, 3000)
    total = 0.0
    for _, _, row in count_law.rare_rows(law, rare, 60, first, longest):
        total += float(row.sum())
    # each entry carries at most table_error units
    assert abs(total - 1) <= (count_law.table_error(law, 60, 2) + 50) * 2.0**-53 + 1e-15


def test_extreme_binomials_do_not_underflow():
    # P(m) bulk^m is about 2^-10000 here
    rows = count_law.rare_rows(FixedLength(10**4), Fraction(1, 2), 5100, 10**4, 10**4)
    middle = {k: float(row[0]) for k, _, row in rows}
    with mp.workdps(40):
        truth = mpf(math.comb(10**4, 5000)) / mpf(2) ** 10000
    assert (
        abs(middle[5000] / truth - 1)
        <= count_law.table_error(FixedLength(10**4), 5000, 2) * 2.0**-53
    )


def test_many_dimensions_agree_with_the_integral_route():
    from popgd.population import PopulationRisk

    rng = np.random.default_rng(5)
    for d, task in ((50, Occurrence(50, 3)), (90, Or(90, [1, 2])), (12, And(12, [0, 5]))):
        alpha, beta = np.full(d, 0.3), np.full(d, 0.05)
        alpha[list(task.targets)], beta[list(task.targets)] = 2.5, 1.75
        if d != 12:
            alpha[-1], beta[-1] = rng.normal(size=2)
        got = series_gradient(task, alpha, beta)
        other = PopulationRisk(task)
        reference = other.value_and_gradient(alpha, beta)
        assert abs(got.value - reference.value) <= got.bound + other.error_bound(alpha, beta)
        np.testing.assert_allclose(got.alpha, reference.alpha, rtol=1e-10, atol=1e-16)
        np.testing.assert_allclose(got.beta, reference.beta, rtol=1e-10, atol=1e-16)


def test_tiers_are_the_limit_of_large_gaps():
    task = Or(4, [0, 1])
    beta = [1.5, -0.25, 0.5, 3.0]
    limit = series_gradient(task, Tiers([1, 1, 0, 0], [0.0, 0.5, 0.25, 0.0]), beta)
    near = series_gradient(task, [60.0, 60.5, 0.25, 0.0], beta)
    # what is left of the lower tier is e^-60 times the length of a word
    assert abs(limit.value - near.value) <= limit.bound + near.bound + 1e-23
    np.testing.assert_allclose(limit.alpha, near.alpha, atol=1e-13)


def test_permuting_symbols_permutes_gradients_and_shifts_change_nothing():
    alpha, beta = np.array([0.5, -1.0, 0.5, 0.0]), np.array([1.0, 0.25, 1.0, 2.0])
    base = series_gradient(Occurrence(4, 1), alpha, beta)
    order = np.array([2, 0, 3, 1])
    moved = series_gradient(Occurrence(4, 3), alpha[order], beta[order])
    assert abs(base.value - moved.value) <= base.bound + moved.bound
    np.testing.assert_allclose(moved.alpha, base.alpha[order], rtol=1e-11)
    shifted = series_gradient(Occurrence(4, 1), alpha + 512.0, beta)
    assert shifted.value == base.value
    assert (shifted.alpha == base.alpha).all()
    assert abs(base.alpha.sum()) <= base.alpha_bound.sum()


def test_route_takes_rows_of_weights():
    task = Occurrence(3)
    alpha, beta = np.array([[1.0, 0, 0], [0, 0, 2.0]]), np.array([[2.0, 0, 0], [1.0, 0.5, 0]])
    route = SeriesRoute(task)
    inputs = SimpleNamespace(alpha=alpha, beta=beta, residual=np.array([[1e-3], [-1.0]]))
    value, by_alpha, by_beta = route.value_and_gradient(inputs)
    assert value.shape == (2,)
    assert by_alpha.shape == by_beta.shape == (2, 3)
    np.testing.assert_allclose(route.split(inputs).sum(axis=0), value, rtol=1e-12)
    assert (route.error_bound(inputs) <= SHARP * value).all()
    for i in range(2):
        got = series_gradient(task, alpha[i], beta[i], inputs.residual[i])
        assert got.value == value[i]
        assert (got.alpha == by_alpha[i]).all()


def test_unaffordable_sums_are_refused_in_one_sentence():
    d = 1000
    task, zero = Occurrence(d), np.zeros(d)
    assert affordable(task, zero, zero)
    assert not affordable(task, zero, zero, max_terms=10**5)
    with pytest.raises(NotAvailable, match=r"about .*e\+.. terms, more than max_terms.*integral"):
        series_risk(task, zero, zero, max_terms=10**4)
    with pytest.raises(NotAvailable, match=r"one sum for each of 50 different weight pairs"):
        series_risk(Occurrence(50), np.arange(50.0), np.zeros(50))
    assert terms_needed(Occurrence(50), np.arange(50.0), np.zeros(50)) == math.inf
    assert 1e4 < terms_needed(Occurrence(50), np.zeros(50), np.zeros(50)) < 1e6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: series_risk(3, [0, 0], [0, 0]), "task = 3: must be a task"),
        (lambda: series_risk(Occurrence(3), [0, 0], [0, 0, 0]), r"alpha = \[0, 0\]: has shape"),
        (lambda: series_risk(Occurrence(3), np.zeros((2, 3)), [0, 0, 0]), "must be one vector"),
        (lambda: series_risk(Occurrence(3), [0, 0, math.nan], [0, 0, 0]), r"alpha\[2\] = nan"),
        (lambda: series_risk(Occurrence(3), [0, 0, 0], [1e200, 0, 0]), "square.* overflow"),
        (lambda: series_risk(Occurrence(3), [0, 0, 0], [0, 0, 0], [0, 0]), "residual"),
        (lambda: series_risk(Occurrence(3), [0, 0, 0], [0, 0, 0], rtol=0), "rtol"),
        (lambda: series_risk(Occurrence(3), [0, 0, 0], [0, 0, 0], max_terms=0), "max_terms"),
        (lambda: series_risk(Occurrence(3), Tiers([[1, 0, 0]]), [0, 0, 0]), "one vector"),
    ],
)
def test_malformed_calls_say_what_to_do(call, message):
    with pytest.raises(BadParameter, match=message):
        call()


def test_extremes_give_numbers_or_refusals():
    for d in (2, 3):
        for gap in (-700.0, 700.0, 1e4, -1e300):
            alpha = np.zeros(d)
            alpha[0] = gap
            got = series_gradient(Occurrence(d), alpha, np.full(d, 1e140))
            assert np.isfinite(got.value)
            assert got.bound <= SHARP * got.value
            assert np.isfinite(got.alpha).all()
    assert series_risk(Occurrence(2), [0, 0], [2, 0]).value == 0.0
    for law in (Geometric(1e-30), Geometric(1e-12), Poisson(1e6)):
        with pytest.raises(NotAvailable, match="integral"):
            series_risk(Occurrence(3, 0, Words(law)), [0, 0, 0], [0, 0, 1])
