"""Risk, log-risk, gradient and output minimum at symmetric weights."""

import math

import numpy as np
import pytest
import symmetric_words as brute
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import symmetric
from popgd.errors import BadParameter
from popgd.symmetric import State

# risks: moments to 5e-14 at worst, V loses a factor of 3.3, then ten operations
CLOSE = 2e-13
# log-risks: the same, and rounding of a number of size |gap|
LOG_CLOSE = 1e-12
ENUMERATED = 1e-12

gaps = st.floats(-40, 700)
sizes = st.integers(2, 60) | st.sampled_from([1000, 10**6, 10**12])
betas = st.floats(-5, 5)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize(
    "values", [(1.5, -0.5, 1.9, 0.01), (0, 0, 0, 0), (-1, 2, 3, -1), (9, 0, 2, 0)]
)
def test_risk_and_gradient_over_every_word(d, values):
    state = State(*values)
    alpha, beta, _ = state.weights(d)
    assert symmetric.risk(state, d) == pytest.approx(brute.risk(alpha, beta, d), rel=ENUMERATED)
    by_alpha, by_beta = brute.gradient(alpha, beta, d)
    found = symmetric.gradient(state, d)
    size = max(abs(by_alpha).max(), abs(by_beta).max(), 1e-3)
    assert abs(by_alpha[0] - found.alpha_target) < ENUMERATED * size
    assert abs(by_alpha[1:] - found.alpha_background).max() < ENUMERATED * size
    assert abs(by_beta[0] - found.beta_target) < ENUMERATED * size
    assert abs(by_beta[1:] - found.beta_background).max() < ENUMERATED * size


@pytest.mark.parametrize("case", brute.REFERENCE["minimum"], ids=lambda c: f"{c['d']}@{c['gap']}")
def test_output_minimum_against_normal_equations(case):
    found = symmetric.minimize_output(case["gap"], case["d"])
    for key in ("value", "beta_background", "residual_target"):
        assert abs(getattr(found, key) / float(case[key]) - 1) < CLOSE
    assert abs(found.log_value - math.log(float(case["value"]))) < LOG_CLOSE


@given(gap=gaps, d=sizes.filter(lambda d: d > 2))
@example(gap=100.0, d=50)
@example(gap=300.0, d=50)
@example(gap=700.0, d=10**12)
@example(gap=-40.0, d=3)
def test_the_risk_at_the_minimiser_is_the_minimum(gap, d):
    best = symmetric.minimize_output(gap, d)
    state = State(gap, 0.0, best.beta_target, best.beta_background, best.residual_target)
    assert math.isfinite(best.log_value)
    if best.value > 1e-290:
        assert abs(symmetric.risk(state, d) / best.value - 1) < CLOSE
        assert abs(best.log_value - math.log(best.value)) < LOG_CLOSE
    if best.residual_target > 1e-300:
        assert abs(symmetric.log_risk(state, d) - best.log_value) < LOG_CLOSE


@given(gap=gaps, d=sizes, steps=st.tuples(betas, betas))
def test_nothing_lies_below_the_minimum(gap, d, steps):
    best = symmetric.minimize_output(gap, d)
    v = best.residual_target + steps[0]
    state = State(gap, 0.0, 2 + v, best.beta_background + steps[1], v)
    assert symmetric.risk(state, d) >= best.value * (1 - CLOSE)


@pytest.mark.parametrize("gap", [373.0, 700.0, 1e6])
def test_log_value_beyond_underflow_follows_the_asymptote(gap):
    near = symmetric.minimize_output(60.0, 50)
    found = symmetric.minimize_output(gap, 50)
    assert abs(found.log_value - (near.log_value - 2 * (gap - 60))) < LOG_CLOSE * max(1, gap / 700)
    assert found.value < 1e-300


def test_log_risk_when_the_risk_underflows():
    # beta = 2 e_s: the loss is 2 E[(1 - gamma_s)^2], and gamma scales by e^-gap
    near = symmetric.log_risk(State(60.0, 0.0, 2.0, 0.0), 50)
    far = symmetric.log_risk(State(800.0, 0.0, 2.0, 0.0), 50)
    assert abs(far - (near - 2 * 740)) < LOG_CLOSE
    tiny = symmetric.log_risk(State(math.inf, 0.0, 2.0, 1e-200), 50)
    assert abs(tiny - (2 * math.log(1e-200) - math.log(4))) < LOG_CLOSE
    assert symmetric.log_risk(State(math.inf, 0.0, 2.0, 0.0), 50) == -math.inf


def test_the_residual_carries_what_beta_cannot_hold():
    best = symmetric.minimize_output(40.0, 50)
    rounded = State(40.0, 0.0, best.beta_target, best.beta_background)
    carried = State(40.0, 0.0, best.beta_target, best.beta_background, best.residual_target)
    assert abs(symmetric.risk(carried, 50) / best.value - 1) < CLOSE
    assert abs(symmetric.risk(rounded, 50) / best.value - 1) > 1e-2


@given(gap=st.floats(-20, 40), shift=st.floats(-50, 50), b=st.tuples(betas, betas), d=sizes)
def test_only_the_gap_matters(gap, shift, b, d):
    one, two = State(gap + shift, shift, *b), State(gap + shift - shift, 0.0, *b)
    assert one.gap == pytest.approx(two.gap, abs=1e-13)
    assert symmetric.risk(one, d) == pytest.approx(symmetric.risk(two, d), rel=1e-11, abs=1e-300)


@given(gap=st.floats(-10, 20), b=st.tuples(betas, betas), d=st.integers(3, 10**6))
@settings(max_examples=50)
def test_gradient_is_the_slope_of_the_risk(gap, b, d):
    h = 1e-4
    state = State(gap, 0.0, *b)
    slope = symmetric.gradient(state, d)
    scale = 1e-6 * (1 + symmetric.risk(state, d)) * 50
    rise = [
        symmetric.risk(State(gap + x, 0.0, b[0] + y, b[1] + z), d)
        - symmetric.risk(State(gap - x, 0.0, b[0] - y, b[1] - z), d)
        for x, y, z in ((h, 0, 0), (0, h, 0), (0, 0, h))
    ]
    assert rise[0] / (2 * h) == pytest.approx(slope.alpha_target, abs=scale)
    assert rise[1] / (2 * h) == pytest.approx(slope.beta_target, abs=scale)
    assert rise[2] / (2 * h) == pytest.approx(slope.beta_background * (d - 1), abs=scale)
    assert slope.alpha_target + (d - 1) * slope.alpha_background == pytest.approx(0, abs=1e-12)


def test_output_only_training_at_d_50():
    floor = symmetric.minimize_output(0.0, 50)
    assert round(2 * floor.value, 3) == 0.748
    # derived: (1/2)(1 - (d-2)/((d-1) ln(d-1)))
    assert abs(floor.value - 0.5 * (1 - 48 / (49 * math.log(49)))) < 1e-14


def test_two_symbols_are_separable():
    best = symmetric.minimize_output(0.0, 2)
    assert best.value == 0
    assert best.log_value == -math.inf
    assert (best.beta_target, best.beta_background) == (2, 0)


def test_arrays_and_scalars():
    states = State([[0.0], [40.0]], 0.0, 2.0, [0.0, 0.1, 0.2])
    for function in (symmetric.risk, symmetric.log_risk):
        table = function(states, 50)
        assert table.shape == (2, 3)
        assert table[1, 2] == function(State(40.0, 0.0, 2.0, 0.2), 50)
        assert isinstance(function(State(1, 0, 2, 0), 50), float)
    assert symmetric.risk(states, [[3], [50]]).shape == (2, 3)
    assert symmetric.minimize_output(np.zeros((2, 1)), [3, 4, 5]).value.shape == (2, 3)
    assert symmetric.risk(State([], 0.0, 0.0, 0.0), 3).shape == (0,)
    alpha, beta, residual = states.weights(4, target=2)
    assert alpha.shape == beta.shape == (2, 3, 4)
    assert residual.shape == (2, 3, 1)
    assert (beta[..., 2] == 2).all()


def test_the_table_gives_the_same_risk():
    table = symmetric.MomentTable(50)
    state = State(np.linspace(-50, 50, 400), 0.0, 1.9, 0.05)
    direct = symmetric.risk(state, 50)
    assert np.max(np.abs(symmetric.risk(state, 50, table=table) / direct - 1)) < CLOSE


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: State(math.inf, math.inf, 0, 0), "the gap inf - inf is undefined"),
        (lambda: State(0, 0, math.inf, 0), "every entry must lie in (-inf, inf); pass finite"),
        (lambda: State(0, math.nan, 0, 0), "alpha_background = nan: holds NaN"),
        (lambda: State(0, 0, 1.0, 0, 0.5), "residual_target = 0.5: must be beta_target - 2"),
        (lambda: State([1, 2], [1, 2, 3], 0, 0), "shapes do not broadcast"),
        (lambda: symmetric.risk((0, 0, 0, 0), 5), "must be a State; pass State(alpha_target"),
        (lambda: symmetric.risk(State([1, 2], 0, 0, 0), [3, 4, 5]), "shapes do not broadcast"),
        (lambda: symmetric.gradient(State.zero(), 1), "every entry must lie in [2,"),
        (lambda: symmetric.minimize_output("a", 3), "gap = 'a': must hold real numbers"),
        (lambda: symmetric.minimize_output([1, 2], [3, 4, 5]), "shapes do not broadcast"),
        (lambda: State.zero().weights(3, target=3), "symbols are numbered 0 to d - 1 = 2"),
    ],
)
def test_bad_arguments_are_named(call, words):
    with pytest.raises(BadParameter) as caught:
        call()
    assert words in str(caught.value)
