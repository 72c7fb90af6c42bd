"""Cross-validation: true statements pass, false ones are caught, the open ones are called so."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import hard_problems
from strategies import tasks, weights

from popgd import (
    Agreement,
    BadParameter,
    Geometric,
    NotAvailable,
    Occurrence,
    PopulationRisk,
    Tiers,
    Words,
    cross_validate,
    readings,
    sample_words,
    tail_bounds,
)

AGREE, DISAGREE, UNDECIDED = Agreement.AGREE, Agreement.DISAGREE, Agreement.UNDECIDED
HARD = hard_problems()


@pytest.mark.parametrize("name", HARD)
def test_routes_agree_on_hard_weights(name):
    found = cross_validate(Occurrence(50), *HARD[name], n=2000, rng=1)
    assert found.verdict is not DISAGREE
    assert {"integral", "enclosure", "sample"} <= set(found.routes)
    assert found.worst()[-1] <= 1


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_routes_agree_on_random_tasks(data):
    task = data.draw(tasks(largest=12))
    alpha, beta = data.draw(weights(task))
    found = cross_validate(task, alpha, beta, n=500, rng=0, routes=["enclosure"])
    assert found.verdict is not DISAGREE


@pytest.mark.parametrize("gap", [0.0, 5.0, 40.0, 300.0, 700.0, -700.0])
def test_symmetric_weights_read_all_four_routes(gap):
    alpha, beta = np.zeros(20), np.full(20, 1e-3)
    alpha[0], beta[0] = gap, 1.9
    found = cross_validate(Occurrence(20), alpha, beta, n=500, rng=0)
    assert found.routes == ("integral", "series", "symmetric", "enclosure", "sample")
    assert found.verdict is not DISAGREE


def test_residuals_reach_every_route():
    alpha, beta = np.zeros(5), np.zeros(5)
    alpha[0], beta[0] = 30.0, 2.0
    found = cross_validate(Occurrence(5), alpha, beta, [1e-14], n=200, rng=0)
    assert found.verdict is not DISAGREE
    without = cross_validate(Occurrence(5), alpha, beta, n=200, rng=0)
    assert found.readings[0].value[0] != without.readings[0].value[0]


def test_infinite_attention_is_compared_too():
    found = cross_validate(Occurrence(5), Tiers([1, 0, 0, 0, 0]), [1.5, 0, 0, 0, 0], rng=0)
    assert found.verdict is AGREE
    assert found.missing["symmetric"] == "attention is infinite"


@pytest.mark.parametrize("route", ["series", "symmetric", "enclosure"])
def test_a_route_that_is_off_is_caught(monkeypatch, route):
    true = readings._READERS[route]

    def off(*arguments):
        found = true(*arguments)
        found.value[0] *= 1 + 1e-11
        return found

    monkeypatch.setitem(readings._READERS, route, off)
    found = cross_validate(Occurrence(10), n=100, rng=0)
    assert found.verdict is DISAGREE
    assert found.verdicts[0] is DISAGREE
    assert route in found.worst()[1:3]


def test_a_flipped_gradient_component_is_caught(monkeypatch):
    true = readings._READERS["series"]

    def off(*arguments):
        found = true(*arguments)
        found.value[3] *= -1
        return found

    monkeypatch.setitem(readings._READERS, "series", off)
    beta = np.minimum(0.2 * np.arange(10), 0.4)
    found = cross_validate(Occurrence(10), np.zeros(10), beta, n=100, rng=0, routes=["series"])
    assert [q for q, v in zip(found.quantities, found.verdicts) if v is DISAGREE] == [
        "dL/dalpha[2]"
    ]


def test_words_of_another_law_are_caught():
    wrong = sample_words(Occurrence(10, 0, Words(Geometric(0.2))), 20_000, rng=0)
    found = cross_validate(Occurrence(10), 1.0 * (np.arange(10) == 0), batch=wrong)
    assert found.verdict is DISAGREE
    assert np.nanmin(found.p_values) < 1e-6


def test_false_alarms_keep_to_the_level():
    # rare words carry this risk: a normal interval would fail often
    task, alpha, beta = Occurrence(10), np.zeros(10), np.zeros(10)
    alpha[0], beta[0] = 8.0, 2.0
    found = [
        cross_validate(task, alpha, beta, n=300, rng=seed, routes=[], gradients=False, level=0.05)
        for seed in range(100)
    ]
    assert not any(f.verdict is DISAGREE for f in found)
    # the sample's own normal interval misses the truth far more often than 5 %
    truth = PopulationRisk(task).value(alpha, beta)
    misses = [
        abs(f.readings[-1].value[0] - truth) > 1.96 * f.empirical_standard_error[0] for f in found
    ]
    assert np.mean(misses) > 0.1


def test_intervals_are_sharp_where_the_mean_is_normal():
    found = cross_validate(Occurrence(10), n=10**5, rng=0, gradients=False)
    normal = 2.576 * found.standard_error[0]
    assert normal < found.readings[-1].error[0] < 1.4 * normal
    assert (
        found.readings[-1].error[0] < found.empirical_error[0] < 1.3 * found.readings[-1].error[0]
    )


def test_undecided_says_how_many_words_would_decide():
    arguments = Occurrence(10), 2.0 * (np.arange(10) == 0)
    few = cross_validate(*arguments, n=1000, rng=0)
    assert few.verdict is UNDECIDED
    assert 1000 < few.samples_needed < 10**6
    assert cross_validate(*arguments, n=few.samples_needed, rng=0).verdict is AGREE


def test_a_verdict_is_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        bool(cross_validate(Occurrence(3), n=0).verdict)


def test_exact_routes_alone():
    found = cross_validate(Occurrence(10), n=0)
    assert found.verdict is AGREE
    assert found.n == 0
    assert "sample" not in found.routes


def test_bonferroni_is_never_bolder_than_holm():
    alpha = 1.0 * (np.arange(10) == 0)
    pair = [
        cross_validate(Occurrence(10), alpha, n=200, rng=0, correction=name).p_values
        for name in ("holm", "bonferroni")
    ]
    assert np.nanmax(pair[0] - pair[1]) <= 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"level": 0.7}, "level = 0.7"),
        ({"resolution": 0}, "resolution = 0"),
        ({"n": -1}, "n = -1"),
        ({"correction": "none"}, "correction"),
        ({"routes": ["magic"]}, "routes"),
        ({"alpha": np.zeros((2, 3))}, "one pair"),
        ({"beta": [1, 2]}, "last axis"),
        ({"residual": [1, 2]}, "residual"),
        ({"batch": sample_words(Occurrence(3), 1, rng=0)}, "one word"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, words):
    with pytest.raises(BadParameter, match=words):
        cross_validate(Occurrence(3), **arguments)
    with pytest.raises(BadParameter, match="task"):
        cross_validate("occurrence")


def test_large_alphabets_say_where_the_exact_noise_ends():
    with pytest.raises(NotAvailable, match="n=0"):
        cross_validate(Occurrence(3000))
    assert cross_validate(Occurrence(3000), n=0).verdict is AGREE


@given(st.floats(1e-12, 1.0), st.floats(1e-3, 1e3), st.integers(1, 10**9), st.floats(1e-9, 0.5))
@example(1e-300, 1.0, 1, 0.01)
@settings(deadline=None)
def test_bennett_width_p_and_samples_invert_each_other(share, reach, n, level):
    variance = share * reach**2
    width = float(tail_bounds.bennett_width(variance, reach, n, level))
    assert tail_bounds.bennett_p(width, variance, reach, n) == pytest.approx(level, rel=1e-5)
    needed = float(tail_bounds.bennett_samples(width, variance, reach, level))
    assert math.floor(n * (1 - 1e-5)) <= needed <= math.ceil(n * (1 + 1e-5))


def test_bennett_holds_for_the_hardest_law():
    # one word in a thousand has value 1: exact binomial tails
    from scipy.special import bdtr

    p, n = 1e-3, 2000
    for level in (0.1, 0.01):
        t = float(tail_bounds.bennett_width(p * (1 - p), 1 - p, n, level))
        above = 1 - bdtr(math.ceil(n * (p + t)) - 1, n, p)
        assert above <= level / 2


def test_holm_against_its_definition():
    p = np.array([[0.01, np.nan], [0.04, 0.03]])
    assert tail_bounds.holm(p) == pytest.approx(
        np.array([[0.03, np.nan], [0.06, 0.06]]), nan_ok=True
    )
