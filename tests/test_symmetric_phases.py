"""Three-phase training in closed form against step-by-step descent and references."""

import math
from fractions import Fraction

import numpy as np
import pytest
import symmetric_words as brute
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import certified, symmetric
from popgd.errors import BadParameter, Diverged
from popgd.symmetric import State

CLOSE = 2e-13
# (1 - eta lambda)^(2T) is conditioned like 2 T lambda eta: allowed beside CLOSE
EXPONENT = 4e-15

sizes = st.integers(2, 60) | st.sampled_from([1000, 10**6, 10**12])
rates = st.floats(-6, 6).map(lambda x: 10**x)


def step(state, d, eta):
    """One descent step on the output weights, straight from the gradient."""
    slope = symmetric.gradient(state, d)
    v = state.residual - eta * slope.beta_target
    beta = state.beta_background - eta * slope.beta_background
    return State(state.alpha_target, state.alpha_background, 2 + v, beta, v)


@pytest.mark.parametrize(
    "case", brute.REFERENCE["trajectory"], ids=lambda c: f"d{c['d']}-{c['eta2']}"
)
def test_trajectories_against_700_digits(case):
    d, rates = case["d"], (case["eta1"], case["eta2"], case["eta3"])
    marks = [int(k) for k in case["after"]]
    result = symmetric.three_phase(d, *rates, steps=marks)
    gap = float(case["gap"])
    assert result.gap == pytest.approx(gap, rel=1e-13)
    for found, truth in zip(result.risks, case["risks"]):
        assert found == pytest.approx(float(truth), rel=CLOSE)
    for mark, found, log in zip(marks, result.risks[2], result.log_risks[2]):
        truth = float(case["after"][str(mark)])
        # the gap's last digit and the exponent are conditioning, not error
        allowed = CLOSE + EXPONENT * 2 * mark * rates[2] * result.lambda_max + 1e-15 * abs(gap)
        assert abs(found / truth - 1) < allowed
        assert abs(log - math.log(truth)) < allowed


def test_phase_one_from_zero_in_closed_form():
    for d in (2, 3, 50, 10**12):
        state = symmetric.phase1(d, 3.0)
        assert state.beta_target == pytest.approx(6 / d, rel=1e-15)
        assert state.beta_background == pytest.approx(3 * (d - 2) / (d * (d - 1)), rel=1e-15)
        general = symmetric.phase1(d, 3.0, State.zero())
        assert general.residual == pytest.approx(state.residual, rel=1e-14)
        assert general.beta_background == pytest.approx(state.beta_background, rel=1e-13)
    assert symmetric.phase1(50, 50.0).residual == 0


@pytest.mark.parametrize("d", [3, 50, 10**12])
def test_phase_two_from_zero_in_closed_form(d):
    m = symmetric.uniform_moments(d)
    for eta1 in (1e-6, 1.0, math.sqrt(d), 1.5 * d):
        gap = symmetric.three_phase(d, eta1, 7.0).gap
        inner = 2 * m.m11 - eta1 * (2 * m.m21 / d + (d - 2) * m.m12 / (d * (d - 1)))
        assert gap == pytest.approx(eta1 * 7.0 * d / (d - 1) ** 2 * inner, rel=1e-12)


def test_where_phase_two_turns_away():
    def gap(d, ratio):
        return symmetric.three_phase(d, ratio * d, 1.0).gap

    assert gap(3, 1.69) > 0 > gap(3, 1.70)
    assert gap(10**12, 1.999) > 0 > gap(10**12, 2.001)
    assert symmetric.three_phase(2, 1.0, 100.0).gap == 0
    # eta1 << d: gap d^2/(eta1 eta2) tends to 2
    assert symmetric.three_phase(10**12, 1.0, 1e24).gap == pytest.approx(2, rel=1e-10)


@given(d=sizes, eta1=rates, eta2=rates)
def test_the_gap_agrees_with_the_gradient(d, eta1, eta2):
    one = symmetric.phase1(d, eta1)
    slope = symmetric.gradient(one, d)
    two = symmetric.phase2(one, d, eta2)
    assert two.alpha_target == -eta2 * slope.alpha_target
    assert two.gap == pytest.approx(-eta2 * d / (d - 1) * slope.alpha_target, rel=1e-14)


@given(
    d=st.integers(2, 60),
    gap=st.floats(-5, 40),
    b=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    eta=st.floats(0, 3.9),
    steps=st.integers(0, 12),
)
@example(d=50, gap=10.0, b=(0.0, 0.0), eta=3.5, steps=7)
@settings(max_examples=60)
def test_t_steps_are_t_single_steps(d, gap, b, eta, steps):
    start = State(gap, 0.0, *b)
    slow = start
    for _ in range(steps):
        slow = step(slow, d, eta)
    fast = symmetric.phase3(start, d, eta, steps)
    assert fast.beta_target == pytest.approx(slow.beta_target, rel=1e-11, abs=1e-11)
    assert fast.beta_background == pytest.approx(slow.beta_background, rel=1e-11, abs=1e-11)


@given(d=sizes, gap=st.floats(-5, 300), eta=st.floats(1e-3, 3.9), k=st.integers(0, 50))
@example(d=10**12, gap=1.0, eta=1.0, k=0)
@settings(max_examples=60)
def test_t_steps_are_k_then_the_rest(d, gap, eta, k):
    start = State(gap, 0.0, 0.5, 0.25)
    whole = symmetric.phase3(start, d, eta, 50)
    parts = symmetric.phase3(symmetric.phase3(start, d, eta, k), d, eta, 50 - k)
    assert parts.residual == pytest.approx(whole.residual, rel=1e-11, abs=1e-14)
    assert symmetric.risk(parts, d) == pytest.approx(symmetric.risk(whole, d), rel=1e-10)


@given(d=sizes, eta1=rates, eta2=rates, steps=st.sampled_from([0, 1, 40, 10**6, 10**12, math.inf]))
@example(d=10**12, eta1=1.0, eta2=1e26, steps=10**12)
@example(d=2, eta1=1.0, eta2=1.0, steps=math.inf)
def test_the_risk_after_phase_three_is_the_risk_of_its_weights(d, eta1, eta2, steps):
    result = symmetric.three_phase(d, eta1, eta2, 1.0, steps)
    assert not result.diverged
    assert result.risks[2] >= result.floor
    if 1e-290 < result.risks[2] < 1e290:
        recomputed = symmetric.risk(result.states[2], d)
        # what the weights lose near an exact zero of the risk is below the risk of 1e-32 beta^2
        room = 1e-30 * (1 + result.states[2].beta_background ** 2) if d == 2 else 0
        assert abs(recomputed - result.risks[2]) <= 2e-12 * result.risks[2] + room
    for risk, log in zip(result.risks, result.log_risks):
        if risk > 1e-290:
            assert log == pytest.approx(math.log(risk), abs=1e-12)


def test_relative_precision_at_a_risk_of_1e_200():
    # floor about 1e-207; descent towards it passes 1e-200
    result = symmetric.three_phase(3, 1.0, 3e4, 1.0, [1000, math.inf])
    gap, best = result.gap, symmetric.minimize_output(result.gap, 3)
    assert gap > 200
    assert result.risks[2][1] == best.value < 1e-150
    assert symmetric.risk(result.states[2], 3)[1] == pytest.approx(best.value, rel=CLOSE)


def test_infinitely_many_steps_reach_the_minimiser():
    result = symmetric.three_phase(50, 1.0, 1e5)
    best = symmetric.minimize_output(result.gap, 50)
    assert result.states[2].residual == best.residual_target
    assert result.states[2].beta_background == best.beta_background
    assert result.risks[2] == result.floor == best.value
    still = symmetric.three_phase(50, 1.0, 1e5, 0.0)
    assert still.risks[2] == pytest.approx(still.risks[1], rel=1e-14)


def test_a_trillion_steps_in_a_trillion_symbols():
    d = 10**12
    result = symmetric.three_phase(d, 1.0, 60 * d**2, 1.0, [10**12, 10**14])
    assert result.risks[2][0] == pytest.approx(0.25 * result.states[2].beta_background[0] ** 2)
    assert result.risks[2][1] < 1e-40
    # the slow eigenvalue is 1/(2d) up to order 1/d^2 at a large gap
    left = result.states[1].beta_background * math.exp(-0.5)
    assert result.states[2].beta_background[0] == pytest.approx(left, rel=1e-9)


def test_divergence_is_reported():
    result = symmetric.three_phase(50, 1.0, 2e4, [1.0, 4.1, 4.1, 1e6], [10, 10, 0, math.inf])
    assert result.diverged.tolist() == [False, True, False, True]
    assert np.isinf(result.risks[2]).tolist() == [False, True, False, True]
    assert np.isnan(result.states[2].beta_target).tolist() == [False, True, False, True]
    assert np.isnan(result.accuracies[2]).tolist() == [False, True, False, True]
    assert np.isinf(result.log_risks[2]).tolist() == [False, True, False, True]
    one = symmetric.three_phase(50, 1.0, 2e4, 5.0, 3)
    assert one.diverged is True
    assert one.risks[2] == math.inf
    with pytest.raises(Diverged, match=r"needs eta3 < 2/lambda_max = 4\.0001"):
        symmetric.phase3(one.states[1], 50, 5.0, 3)
    with pytest.raises(Diverged, match="1 of 2 descents diverge"):
        symmetric.phase3(one.states[1], 50, [1.0, 5.0], 3)


def test_lambda_max_is_the_largest_eigenvalue_of_the_hessian():
    d, gap = 3, 1.3
    counts, weight, _ = brute.words(d)
    alpha = np.zeros(d)
    alpha[0] = gap
    gamma = brute.attention(alpha, counts)
    hessian = gamma.T @ (weight[:, None] * gamma)
    span = np.zeros((d, 2))
    span[0, 0], span[1:, 1] = 1, 1 / math.sqrt(d - 1)
    top = np.linalg.eigvalsh(span.T @ hessian @ span)[-1]
    found = symmetric.three_phase(d, 0.0, 0.0, start=State(gap, 0.0, 0.0, 0.0))
    assert found.lambda_max == pytest.approx(top, rel=1e-12)


@given(
    d=st.integers(3, 60) | st.just(10**6),
    eta1=st.floats(0.1, 3),
    strength=st.floats(0, 30),
    eta3=st.floats(0.01, 3.9),
    epsilon=st.floats(-12, 0).map(lambda x: 10**x),
)
@settings(max_examples=150)
def test_steps_to_reach_is_the_first_step_there(d, eta1, strength, eta3, epsilon):
    eta2 = strength * d**2 / eta1
    steps = symmetric.steps_to_reach(d, eta1, eta2, eta3, epsilon)
    result = symmetric.three_phase(d, eta1, eta2, eta3)
    if math.isinf(steps):
        assert result.floor >= epsilon or eta3 * result.lambda_max >= 2
        return
    assert steps == int(steps)

    def risk(t):
        return symmetric.three_phase(d, eta1, eta2, eta3, t).risks[2]

    if steps == 0:
        assert risk(0) <= epsilon
    else:
        # a solved exponential may be off by rounding in T only above 1e9 steps
        assert risk(steps) <= epsilon * (1 + 1e-14)
        assert risk(steps - 1) > epsilon * (1 - 1e-14)


def test_steps_to_reach_by_scanning():
    marks = np.arange(0, 3000)
    result = symmetric.three_phase(50, 1.0, 2e4, 1.0, marks)
    single = symmetric.three_phase(50, 1.0, 2e4)
    for epsilon in (0.97, 0.5, 1e-2, 1e-6, 1e-9, single.floor * (1 + 1e-6), single.floor * 0.99):
        there = np.flatnonzero(result.risks[2] <= epsilon)
        expected = float(marks[there[0]]) if there.size else math.inf
        assert single.steps_to_reach(epsilon) == expected
    # exactly the risk after 7 steps is reached after 7 steps
    assert single.steps_to_reach(result.risks[2][7]) == 7
    assert symmetric.steps_to_reach(50, 1.0, 2e4, 5.0, 1e-2) == math.inf
    assert symmetric.steps_to_reach(50, 1.0, 2e4, 0.0, 1e-2) == math.inf
    assert symmetric.steps_to_reach(50, 1.0, [2e4, 1e5], [[1.0], [2.0]], 1e-2).shape == (2, 2)


def test_broadcasting_over_everything():
    d = np.array([3, 50, 10**6])[:, None, None]
    eta1, eta2 = np.array([0.1, 1.0])[:, None], np.array([1.0, 1e3, 1e8, 1e13])
    result = symmetric.three_phase(d, eta1, eta2, 1.0, 500)
    assert result.risks[2].shape == result.gap.shape == (3, 2, 4)
    one = symmetric.three_phase(50, 1.0, 1e8, 1.0, 500)
    assert result.gap[1, 1, 2] == pytest.approx(one.gap, rel=1e-14)
    assert result.risks[2][1, 1, 2] == pytest.approx(one.risks[2], rel=1e-12, abs=1e-320)
    assert isinstance(one.gap, float)
    assert isinstance(one.risks[0], float)
    assert isinstance(one.accuracies[1], float)
    start = State(0.5, [0.0, 0.1], 0.3, [[0.2], [0.1]])
    assert symmetric.three_phase(5, 1.0, 1.0, start=start).risks[1].shape == (2, 2)


def test_the_table_gives_the_same_diagram():
    eta1, eta2 = np.logspace(-4, 3, 40)[:, None], np.logspace(0, 8, 50)
    table = symmetric.MomentTable(50)
    fast = symmetric.three_phase(50, eta1, eta2, 1.0, 10**4, table=table)
    slow = symmetric.three_phase(50, eta1, eta2, 1.0, 10**4)
    assert np.max(np.abs(fast.risks[2] - slow.risks[2]) / np.maximum(slow.risks[2], 1e-290)) < 1e-11


@pytest.mark.parametrize("d", [2, 3, 4, 50, 10**6, 10**12])
def test_twelve_decades_without_warnings_or_nan(d):
    eta1 = np.logspace(-6, 6, 13)[:, None] * math.sqrt(d)
    eta2 = np.logspace(-6, 6, 13) * d**2
    result = symmetric.three_phase(d, eta1, eta2, 1.0, 10**6)
    assert not np.isnan(result.gap).any()
    assert not np.isnan(result.risks[2]).any()
    assert not np.isnan(result.log_risks[2]).any()
    assert not np.isnan(result.steps_to_reach(1e-3)).any()
    assert not np.isnan(result.accuracies[2]).any()


def test_absurd_rates_overflow_to_infinity_not_to_nan():
    result = symmetric.three_phase(50, 1e300, 1e300, 1.0, [0, math.inf])
    assert result.gap == -math.inf
    assert result.risks[2].tolist() == [math.inf, result.floor]
    assert result.log_risks[0] == pytest.approx(2 * math.log(1e300) + math.log(1 / 2500), rel=0.01)
    assert not np.isnan(result.states[2].beta_target).any()


@pytest.mark.parametrize("gap", [20, 40, 100])
@pytest.mark.parametrize("eta", [2, "1.999", 4])
def test_a_step_that_all_but_removes_the_residual_keeps_its_digits(gap, eta):
    # references: one step along the certified gradient, 120 digits
    slope = certified.symmetric_gradient(50, gap, 0, 0, digits=120)
    rate = Fraction(float(eta))
    residual = -2 - rate * slope.beta_target.midpoint
    background = -rate * slope.beta_background.midpoint
    risk = certified.symmetric_risk(50, gap, 2 + residual, background, residual, digits=20)
    start = State(gap, 0.0, 0.0, 0.0)
    one = symmetric.phase3(start, 50, float(eta), 1)
    again = symmetric.phase1(50, float(eta), start)
    run = symmetric.three_phase(50, 0.0, 0.0, float(eta), 1, State(gap, 0.0, 0.0, 0.0))
    for found in (one, again):
        assert found.residual == pytest.approx(float(residual), rel=CLOSE)
        assert symmetric.risk(found, 50) == pytest.approx(float(risk.midpoint), rel=CLOSE)
    assert one.beta_background == pytest.approx(float(background), rel=CLOSE)
    assert run.risks[2] > 0
    direct = symmetric.phase3(run.states[1], 50, float(eta), 1)
    assert run.risks[2] == pytest.approx(symmetric.risk(direct, 50), rel=CLOSE)


def test_three_phases_at_rate_two_keep_the_residual():
    truth = certified.three_phase(50, 1, 10**5, 2, 1, 20)
    found = symmetric.three_phase(50, 1.0, 1e5, 2.0, 1)
    # the gap of 70 is right to its last digit, and e^-gap magnifies that
    allowed = CLOSE + 1e-15 * abs(found.gap)
    residual = float(truth.final_residual.midpoint)
    assert residual == pytest.approx(-4.605e-31, rel=1e-3)
    assert found.states[2].residual == pytest.approx(residual, rel=allowed)
    assert found.risks[2] == pytest.approx(float(truth.risks[3].midpoint), rel=2 * allowed)


@pytest.mark.parametrize("rate", [4.0])
def test_rate_four_converges_where_the_largest_eigenvalue_is_just_below_a_half(rate):
    # lambda_max = 1/2 - 2e^-40 or so: too close for a double, below all the same
    found = symmetric.phase3(State(40.0, 0.0, 0.0, 0.0), 50, rate)
    best = symmetric.minimize_output(40.0, 50)
    assert found.residual == best.residual_target


@pytest.mark.parametrize("steps", [10**16 + 1, 2**53 + 1, 10**16, 10**30 + 1])
def test_whole_numbers_beyond_two_to_the_53_keep_their_parity(steps):
    # eta lambda = 2 on every weight: the residual -1 changes sign at each step
    for count in (steps, [steps, math.inf, 3], np.array([steps, 1], dtype=object)):
        found = symmetric.three_phase(2, 1.0, 1.0, 4.0, count)
        residual = np.ravel(found.states[2].residual)[0]
        assert residual == (1 if steps % 2 else -1)
        assert np.ravel(np.asarray(found.steps, dtype=object))[0] == steps
    assert symmetric.phase3(State(0.0, 0.0, 1.0, 0.0), 2, 4.0, steps).residual == residual
    assert math.isfinite(found.log_risks[2][0])


@given(d=sizes, eta1=rates, eta2=rates, eta3=st.floats(0, 4))
@example(d=10**6, eta1=1.2268334561473553e-05, eta2=86774489.36, eta3=0.002)
def test_no_steps_change_nothing(d, eta1, eta2, eta3):
    result = symmetric.three_phase(d, eta1, eta2, eta3, 0)
    assert vars(result.states[2]) == vars(result.states[1])
    assert result.risks[2] == result.risks[1]


def test_tiny_weights_keep_their_relative_digits():
    d, rates = 10**6, (1.2268334561473553e-05, 86774489.36, 0.002)
    for steps in (1, 7, 1000):
        found = symmetric.three_phase(d, *rates, steps).states[2]
        truth = certified.three_phase(d, *rates, steps, 20)
        assert found.beta_target == pytest.approx(float(truth.final_target.midpoint), rel=1e-12)
        background = float(truth.final_background.midpoint)
        assert found.beta_background == pytest.approx(background, rel=1e-12)


def test_negative_control_a_wrong_phase_order_is_noticed():
    right = symmetric.three_phase(50, 1.0, 2e4).gap
    wrong = symmetric.phase2(State.zero(), 50, 2e4).gap
    assert right > 10
    assert wrong == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: symmetric.phase1(5, -1.0), "eta1 = -1.0: every entry must lie in [0, inf)"),
        (lambda: symmetric.phase1(5, math.inf), "pass a finite learning rate >= 0"),
        (lambda: symmetric.phase1(5, 1.0, start=3), "start = 3: must be a State"),
        (lambda: symmetric.phase2(None, 5, 1.0), "state = None: must be a State"),
        (
            lambda: symmetric.phase3(State.zero(), 5, 1.0, 1.5),
            "steps = 1.5: must be a whole number",
        ),
        (lambda: symmetric.phase3(State.zero(), 5, 1.0, -1), "pass whole numbers of steps >= 0"),
        (lambda: symmetric.three_phase(5, math.nan, 1.0), "eta1 = nan: holds NaN"),
        (lambda: symmetric.three_phase([3, 4], [1, 2, 3], 1.0), "shapes do not broadcast"),
        (lambda: symmetric.three_phase(5, 1, 1).steps_to_reach(0), "pass a risk > 0"),
        (lambda: symmetric.three_phase(5, 1, 1, table=symmetric.MomentTable(6)), "another d"),
    ],
)
def test_bad_arguments_are_named(call, words):
    with pytest.raises(BadParameter) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("d", [3, 50])
def test_infinitely_many_steps_converge_where_the_deficit_underflows(d):
    # 2 - eta3 lambda_max = 4 deficit is positive for every finite gap, 1e-16000 as it may be
    found = symmetric.three_phase(d, 1.0, 1e6 * d, 4.0, np.inf)
    assert found.gap > 1e4
    assert found.risks[-1] == 0.0
    # in finitely many steps the slowest component does not move
    assert symmetric.three_phase(d, 1.0, 1e6 * d, 4.0, 10**12).risks[-1] > 0.4
