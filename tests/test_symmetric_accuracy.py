"""Exact accuracy at symmetric weights."""

import math
from fractions import Fraction

import numpy as np
import pytest
import symmetric_words as brute
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from popgd import symmetric
from popgd.errors import BadParameter
from popgd.symmetric import State

# betainc errs by 1e-14 or so; the enumeration drops 1e-14 of the words
CLOSE = 1e-12


@given(
    d=st.sampled_from([2, 3, 3, 3]),
    gap=st.floats(-4, 8),
    b=st.tuples(st.floats(-3, 4), st.floats(-3, 4)),
)
@settings(max_examples=40, deadline=None)
@example(d=3, gap=1.0, b=(0.5, 1.5))
@example(d=4, gap=1.0, b=(1.5, 1.5))
@example(d=4, gap=-1.0, b=(1.7, 0.9))
def test_against_every_word(d, gap, b):
    alpha, beta, _ = State(gap, 0.0, *b).weights(d)
    counts, _, _ = brute.words(d)
    # stay away from steps, which floats cannot place
    assume(np.min(np.abs(brute.attention(alpha, counts) @ beta - 1)) > 1e-9)
    assert abs(symmetric.accuracy(State(gap, 0.0, *b), d) - brute.accuracy(alpha, beta, d)) < CLOSE


def exact_at_gap_zero(beta_target, beta_background, d, longest=400):
    """Integers and fractions: sign of beta_s c + beta_j b - (c + b)."""
    r, rho = Fraction(d - 2, 2 * (d - 1)), Fraction(2, d)
    up, down = Fraction(beta_target) - 1, 1 - Fraction(beta_background)
    total = 0.5 if down >= 0 else 0.0
    mass = float((1 - r) / 2)
    for c in range(1, 50):
        pmf = mass * float(rho) ** (c + 1)
        for b in range(longest):
            if up * c > down * b:
                total += pmf
            pmf *= float(1 - rho) * (b + c + 1) / (b + 1)
        mass *= float(r)
    return total


def limit_weights(d, gap):
    """beta_s - 1 and 1 - beta_j of the minimum at a gap, to 40 digits."""
    from mpmath import mp, mpf

    from popgd import certified_symmetric
    from popgd.ball import ball, enclose, precision

    with precision(400), mp.workdps(60):
        m20, m11, m02, *_ = (
            mpf(enclose(x, 50).lower) for x in certified_symmetric.moments(ball(gap), d)
        )
        v = m02 - m11**2 / m20
        return 1 + 2 * m11 / m20 / (1 + 2 * v), 1 - 4 * v / (1 + 2 * v)


@pytest.mark.parametrize("d", [3, 50, 10**6, 10**12])
@pytest.mark.parametrize("gap", [-40.0, -16.07, -1.0, 0.0, 3.0, 30.0])
def test_the_shortfall_keeps_its_digits(d, gap):
    from popgd.symmetric_accuracy import shortfall
    from popgd.symmetric_descent import OutputDescent
    from popgd.symmetric_quadratic import quadratic

    q = quadratic(np.asarray(gap), np.asarray(float(d)))
    descent = OutputDescent(q, np.asarray(-1.5), np.asarray(0.25), 1.0)
    truth = float(limit_weights(d, gap)[1])
    assert abs(shortfall(descent, math.inf) - truth) < CLOSE * truth
    for steps in (0, 1, 2, 7, 10**6, 10**30):
        _, beta, _ = descent.weights(float(steps))
        assert abs(shortfall(descent, steps) - (1 - beta)) < 1e-15 * 8


def test_a_background_weight_close_to_one_costs_no_digits():
    # 1 - beta_j = 1.2e-12: as a difference of doubles it moved the accuracy by 8e-7
    from scipy.special import betainc

    d, rates = 10**6, (2324173.494606813, 21332357.27094678)
    run = symmetric.three_phase(d, *rates)
    ahead, behind = limit_weights(d, run.gap)
    kappa = float(ahead / behind) * math.exp(run.gap)
    r, c = (d - 2) / (2 * (d - 1)), np.arange(1, 60)
    truth = 0.5 + (betainc(c + 1, np.ceil(c * kappa), 2 / d) * 0.5 * (1 - r) * r ** (c - 1)).sum()
    assert abs(truth - 0.50502089255) < 1e-11
    assert abs(run.accuracies[2] - truth) < CLOSE
    from popgd import phase_diagram

    # the moments of a diagram come from a table
    pixel = phase_diagram(d, *rates, accuracy=True)
    assert abs(pixel.accuracy_3.item() - truth) < 1e-11


@pytest.mark.parametrize(
    "beta", [(2.0, 0.0), (1.5, 0.0), (1.75, 0.5), (3.0, -1.0), (1.0, 1.0), (2.0, 1.0)]
)
@pytest.mark.parametrize("d", [3, 4, 10])
def test_ties_are_decided_exactly(beta, d):
    # at gap 0 many words have f = 0 exactly, and sign(0) is -1
    found = symmetric.accuracy(State(0.0, 0.0, *beta), d)
    assert abs(found - exact_at_gap_zero(*beta, d)) < CLOSE


def test_a_tie_falls_either_way_with_the_last_bit():
    at = symmetric.accuracy(State(0.0, 0.0, 2.0, 0.0), 3)
    above = symmetric.accuracy(State(0.0, 0.0, math.nextafter(2, 3), 0.0), 3)
    below = symmetric.accuracy(State(0.0, 0.0, math.nextafter(2, 1), 0.0), 3)
    assert below == at < above - 0.05
    # the residual carries a tie that beta cannot hold
    tilted = symmetric.accuracy(State(0.0, 0.0, 2.0, 0.0, 1e-30), 3)
    assert tilted == above
    assert symmetric.accuracy(State(0.1, 0.1, 2.0, 0.0), 3) == at


@pytest.mark.parametrize("d", [2, 3, 50, 10**6, 10**12])
def test_limits(d):
    perfect = symmetric.accuracy(State(math.inf, 0.0, 2.0, 0.0), d)
    assert perfect == pytest.approx(1.0, abs=1e-14)
    assert symmetric.accuracy(State(0.0, 0.0, 0.0, 0.0), d) == 0.5
    assert symmetric.accuracy(State(5.0, 0.0, 2.0, 1.5), d) == pytest.approx(0.5, abs=1e-14)
    alone = 1 / (d * d - 2 * d + 2)
    lost = symmetric.accuracy(State(-math.inf, 0.0, 2.0, 0.0), d)
    assert lost == pytest.approx(0.5 + alone, abs=1e-14)
    assert symmetric.accuracy(State(-math.inf, 0.0, 2.0, 1.0), d) == pytest.approx(
        0.5 + alone, abs=1e-14
    )
    assert symmetric.accuracy(State(math.inf, 0.0, 1.0, 1.5), d) == 0.0
    assert symmetric.accuracy(State(800.0, 0.0, 2.0, 0.0), d) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("d", [10**6, 10**12])
def test_huge_alphabets_against_the_gamma_limit(d):
    # b 2/d tends to Gamma(c+1): P(b < c kappa) -> P(c + 1, 2 c kappa/d), error of order 1/d
    from scipy.special import gammainc

    gap = math.log(d)
    counts = np.arange(1, 60)
    weight = 0.5 * 0.5**counts
    limit = 0.5 + weight @ gammainc(counts + 1, 2 * counts)
    found = symmetric.accuracy(State(gap, 0.0, 2.0, 0.0), d)
    assert found == pytest.approx(limit, abs=20 / d + CLOSE)


@given(d=st.integers(2, 1000), gap=st.floats(-5, 40), extra=st.floats(0, 5))
def test_more_attention_to_the_target_never_hurts(d, gap, extra):
    low = symmetric.accuracy(State(gap, 0.0, 1.8, 0.1), d)
    high = symmetric.accuracy(State(gap + extra, 0.0, 1.8, 0.1), d)
    assert 0.5 <= low <= high + 1e-13 <= 1 + 2e-13


def test_arrays_equal_scalars():
    gap = np.linspace(-3, 12, 1500)
    states = State(gap[:, None], 0.0, [2.0, 0.5], [0.0, 1.5])
    table = symmetric.accuracy(states, 50)
    assert table.shape == (1500, 2)
    assert table[700, 1] == symmetric.accuracy(State(gap[700], 0.0, 0.5, 1.5), 50)
    assert symmetric.accuracy(State(1.0, 0.0, 2.0, 0.0), [3, 4]).shape == (2,)
    assert isinstance(symmetric.accuracy(State(1.0, 0.0, 2.0, 0.0), 3), float)


@pytest.mark.parametrize("d", [2, 3, 50, 1000])
def test_the_table_of_steps_gives_the_same(d):
    table = symmetric.AccuracyTable(d)
    gap = np.random.default_rng(3).uniform(-30, 30, 3000)
    gap[:4] = 0.0, math.inf, -math.inf, 1.0
    for beta in ((2.0, 0.0), (0.5, 1.5), (1.0, 1.2), (1.2, 1.0), (1.5, 1.5), (1.5, -0.25)):
        states = State(gap, 0.0, *beta)
        found = symmetric.accuracy(states, d, table=table)
        assert np.max(np.abs(found - symmetric.accuracy(states, d))) < CLOSE
    assert "steps=" in repr(table)


def test_bad_arguments_are_named():
    with pytest.raises(BadParameter, match="must be a State"):
        symmetric.accuracy(1.0, 3)
    with pytest.raises(BadParameter, match="shapes do not broadcast"):
        symmetric.accuracy(State([1, 2], 0, 0, 0), [3, 4, 5])
    with pytest.raises(BadParameter, match="or call accuracy without a table"):
        symmetric.AccuracyTable(10**6)
    with pytest.raises(BadParameter, match="was built for another d"):
        symmetric.accuracy(State.zero(), 4, table=symmetric.AccuracyTable(3))
