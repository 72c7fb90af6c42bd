"""The five moments: against independent references, closed forms, and their own bound."""

import itertools
import math

import numpy as np
import pytest
import symmetric_words as brute
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import symmetric
from popgd.errors import BadParameter
from popgd.symmetric_moments import STEP, discretisation

KEYS = ("m20", "m11", "m02", "m21", "m12")
# what the proven bound says at every gap and every d, rounding included
PROVED = 5e-14
# rounding seen in practice, an order of magnitude below the proof
SEEN = 5e-15
# enumeration in floats: 1e-14 of dropped words and a million added terms
ENUMERATED = 2e-13

gaps = st.floats(-60, 800) | st.sampled_from([0.0, math.inf, -math.inf, 1e6, -1e6])
sizes = st.integers(2, 60) | st.sampled_from([1000, 10**6, 10**9, 10**12])


def relative(found, truth):
    return abs(found / truth - 1)


@pytest.mark.parametrize("case", brute.REFERENCE["moments"], ids=lambda c: f"{c['d']}@{c['gap']}")
def test_reference_lies_inside_the_bound_and_close(case):
    found = symmetric.moments(case["gap"], case["d"])
    bound = symmetric.moments_error_bound(case["gap"], case["d"])
    for key, value in zip(KEYS, found):
        truth = float(case[key])
        if truth < 1e-300:
            continue
        # e^gap is conditioned like the gap itself; the gap is exact here
        assert relative(value, truth) <= bound
        assert relative(value, truth) <= SEEN


def test_references_by_two_routes_agree():
    laplace = {(c["gap"], c["d"]): c for c in brute.REFERENCE["moments"] if "route" not in c}
    direct = [c for c in brute.REFERENCE["moments"] if "route" in c]
    assert direct
    for case in direct:
        other = laplace[case["gap"], case["d"]]
        assert all(relative(float(case[k]), float(other[k])) < 4e-16 for k in KEYS)


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize("gap", [-3.0, 0.0, 1.5, 6.0])
def test_every_word_counted(gap, d):
    for value, truth in zip(symmetric.moments(gap, d), brute.moments(gap, d)):
        assert relative(value, truth) < ENUMERATED


def test_the_enumeration_counts_words():
    counts, weight, _ = brute.words(3)
    longest = 6
    listed = {}
    for m in range(1, longest + 1):
        for word in itertools.product(range(3), repeat=m):
            key = tuple(word.count(i) for i in range(3))
            listed[key] = listed.get(key, 0) + 0.5**m / 3**m
    short = counts.sum(axis=1) <= longest
    found = {tuple(map(int, c)): w for c, w in zip(counts[short], weight[short])}
    assert found.keys() == listed.keys()
    assert all(relative(found[k], listed[k]) < 1e-13 for k in listed)


@given(gap=gaps, d=sizes)
@example(gap=0.0, d=2)
@example(gap=700.0, d=10**12)
@example(gap=-math.inf, d=10**12)
def test_second_moments_add_up_to_the_positive_mass(gap, d):
    m = symmetric.moments(gap, d)
    assert abs(m.m20 + 2 * m.m11 + m.m02 - 0.5) < PROVED
    assert relative(m.m11, m.m21 + m.m12) < PROVED if m.m11 > 1e-300 else m.m11 >= 0


@given(gap=gaps, d=sizes)
@example(gap=0.0, d=2)
def test_scaled_moments_are_the_plain_ones_scaled(gap, d):
    plain, scaled = symmetric.moments(gap, d), symmetric.moments(gap, d, scaled=True)
    powers = (0, 1, 2, 1, 2) if gap >= 0 else (0, 1, 0, 2, 1)
    for value, unit, power in zip(plain, scaled, powers):
        assert math.isfinite(unit)
        assert unit >= 0
        if value > 1e-290:
            factor = math.exp(-abs(gap) / 2 * power) if power else 1.0
            assert relative(value, unit * factor**2) < 1e-15 * (4 + power)


@given(gap=gaps, d=sizes)
@settings(max_examples=50)
def test_the_bound_is_sharp(gap, d):
    assert symmetric.moments_error_bound(gap, d) < PROVED


@given(gap=st.floats(-30, 30), d=sizes.filter(lambda d: d > 2))
@settings(max_examples=50)
def test_derivatives_in_the_gap(gap, d):
    # d/dgap gamma_s = gamma_s (1 - gamma_s) gives M20' = 2 M21 and M02' = -2 M12
    h = 1e-3
    low, here, high = (symmetric.moments(gap + x, d) for x in (-h, 0, h))
    # central differences err by h^2/6 times a third derivative, at most a few times 8 M
    assert abs((high.m20 - low.m20) / (2 * h) - 2 * here.m21) < 3e-6 * here.m20
    assert abs((high.m02 - low.m02) / (2 * h) + 2 * here.m12) < 3e-6 * here.m02


@pytest.mark.parametrize("d", [2, 3, 4, 50, 1000, 10**6, 10**12, 10**15])
def test_closed_forms_at_gap_zero(d):
    closed, quadrature = symmetric.uniform_moments(d), symmetric.moments(0.0, d)
    # at small d the closed forms subtract numbers of like size: up to 30 roundings
    for a, b in zip(closed, quadrature):
        assert abs(a - b) <= 1e-14 * max(abs(b), 1e-2 if d == 2 else 0)


@pytest.mark.parametrize("d", [3, 50, 10**6])
@pytest.mark.parametrize("gap", [60.0, 700.0, 1e6, math.inf])
def test_large_gap_limits(d, gap):
    from scipy.special import spence

    r = (d - 2) / (2 * (d - 1))
    one, two = -(1 - r) * math.log1p(-r) / r, (1 - r) * spence(1 - r) / r
    m = symmetric.moments(gap, d, scaled=True)
    assert relative(m.m20, 0.5) < 1e-13
    assert relative(m.m11, (d - 2) * (1 + one) / 4) < 1e-13
    limit = (d * (d - 2) * (one + two) + (d - 2) ** 2 * (1 + 2 * one + two)) / 8
    assert relative(m.m02, limit) < 1e-13


@pytest.mark.parametrize("d", [2, 3, 50, 10**12])
def test_infinite_gaps(d):
    up, down = symmetric.moments(math.inf, d), symmetric.moments(-math.inf, d)
    assert relative(up.m20, 0.5) < SEEN
    assert up[1:] == (0, 0, 0, 0)
    alone = 1 / (d**2 - 2 * d + 2)
    assert relative(down.m20, alone) < SEEN
    assert abs(down.m02 - (0.5 - alone)) < SEEN
    assert (down.m11, down.m21, down.m12) == (0, 0, 0)


@pytest.mark.parametrize("gap", [-1e6, -700.0, 700.0, 1e6])
def test_scaled_moments_do_not_underflow(gap):
    assert min(symmetric.moments(gap, 50, scaled=True)) > 1e-6


def test_a_tiny_factor_times_a_large_moment_keeps_its_digits():
    # e^-720 is subnormal, m11 is 1e11: the product is a normal double
    truth = math.exp(-700) * symmetric.moments(720.0, 10**12, scaled=True).m11 * math.exp(-20)
    assert relative(symmetric.moments(720.0, 10**12).m11, truth) < SEEN


def test_broadcasting_equals_one_at_a_time():
    gap = np.array([[-40.0], [-1e-9], [0.0], [3.0], [math.inf]])
    d = np.array([2, 3, 50, 10**12])
    table = symmetric.moments(gap, d)
    assert all(m.shape == (5, 4) for m in table)
    for (i, g), (j, n) in itertools.product(enumerate(gap[:, 0]), enumerate(d)):
        for m, one in zip(table, symmetric.moments(g, n)):
            assert abs(m[i, j] - one) <= SEEN * one
    assert symmetric.moments(np.zeros((0, 3)), 5).m20.shape == (0, 3)
    assert isinstance(symmetric.moments(0, 5).m20, float)


def test_the_step_has_the_discretisation_error_claimed():
    assert discretisation(3) < 5e-15
    assert discretisation(2) < 4e-16
    # THEORY 3 lists these two steps
    assert relative(discretisation(3, 0.25), 5.7e-14) < 0.01
    assert relative(discretisation(2, 0.2), 3.3e-19) < 0.01
    assert STEP < 0.25


def test_negative_control_a_coarse_step_is_noticed(monkeypatch):
    from popgd import symmetric_moments

    monkeypatch.setattr(symmetric_moments, "STEP", 0.6)
    m = symmetric_moments.moments(math.inf, 3)
    assert abs(m.m20 - 0.5) > 1e-7


def test_negative_control_a_short_window_is_noticed(monkeypatch):
    from popgd import symmetric_moments

    monkeypatch.setattr(symmetric_moments, "LEAD", 8.0)
    m = symmetric_moments.moments(0.0, 50)
    assert (
        1e-12
        < abs(m.m20 + 2 * m.m11 + m.m02 - 0.5)
        < symmetric_moments.moments_error_bound(0.0, 50)
    )


@pytest.mark.parametrize(
    ("gap", "d", "words"),
    [
        (math.nan, 5, "gap = nan: holds NaN"),
        ("wide", 5, "gap = 'wide': must hold real numbers"),
        (1.0, 1, "d = 1.0: every entry must lie in [2,"),
        (1.0, 2.5, "d = 2.5: must be an integer"),
        (1.0, True, "d = True: a bool is not an integer here"),
        (1.0, 10**16, "pass alphabet sizes between 2 and 10^15"),
        ([1.0, 2.0], [3, 4, 5], "does not broadcast"),
    ],
)
def test_bad_arguments_are_named(gap, d, words):
    with pytest.raises(BadParameter) as caught:
        symmetric.moments(gap, d)
    assert words in str(caught.value)


@pytest.mark.parametrize("gap", [700.0, -700.0, 760.0, -1e4, math.inf, [700.0, -750.0]])
def test_callers_who_raise_on_every_float_event_are_served(gap):
    state = symmetric.State(gap, 0.0, 1.5, 0.1)
    calls = (
        lambda: symmetric.moments(gap, 50),
        lambda: symmetric.moments(gap, 50, scaled=True),
        lambda: symmetric.moments_error_bound(gap, 50),
        lambda: symmetric.minimize_output(gap, 50),
        lambda: symmetric.accuracy(state, 50),
        lambda: symmetric.risk(state, 50),
    )
    for call in calls:
        expected = call()
        with np.errstate(all="raise"):
            found = call()
        np.testing.assert_array_equal(found, expected)
