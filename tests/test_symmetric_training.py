"""Promises of the four-scalar path: the same trajectory, at any d, found by itself."""

from fractions import Fraction

import numpy as np
import pytest
from enumeration import EveryWord
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import certified
from popgd.errors import BadParameter, NotAvailable
from popgd.languages import Occurrence, Or
from popgd.plans import Phase
from popgd.population import PopulationRisk
from popgd.symmetric import State, three_phase
from popgd.training import train
from popgd.words import FixedLength, Geometric, Words

# closed-form T steps against T single steps, or two exact routes: rounding of either, no method
ROUNDING = 1e-11
TINY = 1e-13


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.sampled_from([2, 3, 50, 10**12]),
    st.floats(-3, 60),
    st.floats(0.01, 2.0),
)
@settings(max_examples=60)
@example(1, 0, 2, 0.0, 2.0)
@example(10**9, 10**9, 10**12, 60.0, 1.0)
def test_closed_form_steps_are_k_then_t_minus_k(k, rest, d, gap, rate):
    start = State(gap, 0.0, 0.3, 0.1)
    options = {"learning_rate": rate, "record_every": None}
    once = train(Occurrence(d), [Phase("O", k + rest)], start, **options)
    first = train(Occurrence(d), [Phase("O", k)], start, **options)
    last = State(*(np.asarray(x)[-1] for x in vars(first.state).values()))
    second = train(Occurrence(d), [Phase("O", rest)], last, **options)
    np.testing.assert_allclose(once.risk[-1], second.risk[-1], rtol=ROUNDING)


@pytest.mark.parametrize("rate", [0.3, 1.9, 3.5])
def test_closed_form_steps_are_single_steps(rate):
    start = State(4.0, 0.0, 0.3, 0.1)
    leaps = train(Occurrence(7), "O(300x)", start, learning_rate=rate, record_every=50)
    steps = train(Occurrence(7), "O(300x)", start, learning_rate=rate)
    np.testing.assert_array_equal(leaps.step, range(0, 301, 50))
    np.testing.assert_allclose(leaps.risk, steps.risk[::50], rtol=ROUNDING)
    np.testing.assert_allclose(leaps.beta, steps.beta[::50], rtol=ROUNDING)


@given(
    st.integers(2, 12),
    st.integers(0, 11),
    st.floats(-2, 2),
    st.floats(-2, 2),
    st.sampled_from(["O(3x) -> A(2x, lr=30) -> O(5x)", "joint(6x)", "A(2x) -> O(inf)"]),
)
@settings(max_examples=40, deadline=None)
def test_the_symmetric_path_is_the_general_path(d, target, a, b, plan):
    task = Occurrence(d, target % d)
    alpha, beta = np.full(d, a), np.full(d, b)
    alpha[target % d], beta[target % d] = b / 2, a / 2
    fast = train(task, plan, alpha, beta)
    slow = train(PopulationRisk(task), plan, alpha, beta, path="general")
    assert (fast.path, slow.path) == ("symmetric", "general")
    for name in ("risk", "attention_gap", "output_gap", "alpha", "beta", "residual"):
        np.testing.assert_allclose(
            getattr(fast, name), getattr(slow, name), rtol=1e-10, atol=1e-11, err_msg=name
        )


def test_the_symmetric_path_is_the_three_phase_closed_form():
    d, eta1, eta2, steps = 50, 30.0, 1e5, 200
    plan = f"O(1x, lr={eta1}) -> A(1x, lr={eta2}) -> O({steps}x)"
    run = train(Occurrence(d), plan, accuracy=True, record_every=50)
    closed = three_phase(d, eta1, eta2, 1.0, steps=steps)
    ends = np.searchsorted(run.step, [phase.stop for phase in run.phases])
    np.testing.assert_allclose(run.risk[ends], closed.risks, rtol=ROUNDING)
    np.testing.assert_allclose(run.accuracy[ends], closed.accuracies, rtol=ROUNDING)
    assert run.accuracy[1] < 0.9 < 0.999 < run.accuracy[2]


def test_accuracies_of_both_paths_agree():
    options = {"learning_rate": {"O": np.array([1.0, 2.5]), "A": 100.0}, "accuracy": True}
    fast, slow = (
        train(Occurrence(3), "O(1x) -> A(1x) -> O(2x)", path=path, **options)
        for path in ("symmetric", "general")
    )
    assert fast.accuracy.shape == (5, 2)
    np.testing.assert_allclose(fast.accuracy, slow.accuracy, atol=1e-12)


def test_which_starts_take_the_symmetric_path():
    task = Occurrence(4, 1)
    lopsided = [0.0, 0.0, 0.1, 0.0]
    own_p = Occurrence(4, words=Words(Geometric(0.25)))
    assert train(task, "O(1x)").path == "symmetric"
    assert train(Occurrence(4, words=Words(Geometric(1 / 3))), "O(1x)").path == "symmetric"
    assert train(Occurrence(4, words=Words(Geometric(Fraction(1, 3)))), "O(1x)").path == "symmetric"
    assert train(task, "O(1x)", [1.0, 2.0, 1.0, 1.0]).path == "symmetric"
    for objective, alpha in (
        (task, lopsided),
        (own_p, None),
        (Occurrence(4, words=Words(FixedLength(3))), None),
        (Occurrence(4, words=Words(Geometric(1 / 3), [0.1, 0.2, 0.3, 0.4])), None),
        (Or(4, [1]), None),
        (EveryWord(4), None),
    ):
        assert train(objective, "O(1x)", alpha).path == "general"
        with pytest.raises(BadParameter, match="does not apply"):
            train(objective, "O(1x)", alpha, path="symmetric")


def test_an_alphabet_of_a_million_million():
    run = train(Occurrence(10**12), "O(1x) -> A(1x, lr=1e26) -> O(1e12x)", record_every="log")
    assert run.state.gap[-1] == pytest.approx(200, rel=1e-9)
    assert 0 < run.risk[-1] < 1e-24
    with pytest.raises(NotAvailable, match="read trajectory"):
        _ = run.alpha


def test_risks_far_below_rounding_keep_their_digits():
    run = train(Occurrence(50), "O(inf)", State(100.0, 0.0, 0.0, 0.0))
    again = train(PopulationRisk(Occurrence(50)), "O(0x)", *run.final, path="general")
    assert 0 < run.risk[-1] < 1e-80
    np.testing.assert_allclose(again.risk[0], run.risk[-1], rtol=1e-10)


@pytest.mark.parametrize("plan", ["O(1x, lr=2)", "joint(1x, lr=2)"])
def test_a_step_that_all_but_removes_the_residual_keeps_its_digits(plan):
    # reference: one step along the certified gradient, 60 digits
    alpha = np.r_[40.0, np.zeros(49)]
    run = train(PopulationRisk(Occurrence(50)), plan, alpha=alpha, beta=np.zeros(50))
    slope = certified.symmetric_gradient(50, 40, 0, 0, digits=60)
    residual = -2 - 2 * slope.beta_target.midpoint
    assert run.path == "symmetric"
    assert run.residual[-1, 0] == pytest.approx(float(residual), rel=TINY)
    background = -2 * slope.beta_background.midpoint
    risk = certified.symmetric_risk(50, 40, 2 + residual, background, residual)
    assert run.risk[-1] == pytest.approx(float(risk.midpoint), rel=TINY * 10)


def test_joint_training_moves_the_output_before_the_attention():
    run = train(Occurrence(50), "joint(1000x)", learning_rate={"O": 1.0, "A": 2.0})
    attention = run.step[np.argmax(run.attention_gap > 0.5)]
    output = run.step[np.argmax(run.output_gap > 0.5)]
    assert 0 < output < attention
    assert run.risk[-1] < 0.02
