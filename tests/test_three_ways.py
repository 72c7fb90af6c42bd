"""Integral, symbol-count sums and enclosures agree, each inside the other's bound.

The three routes share no formula: the first integrates a generating function in float64, the
second sums over symbol counts, the third works in ball arithmetic.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from strategies import LAWS, tasks, weights

from popgd import And, Geometric, Occurrence, PopulationRisk, UniformLength, Words, certified
from popgd.series import affordable, series_risk

EXAMPLES = 300
"""Drawn tasks for every length law."""

SHARP = 1e-11
"""Promised relative size of the integral route's bound."""

AFFORDABLE = 20_000
"""Terms the symbol-count route may take in one example, to bound the time of the suite."""

drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)


def exact(enclosure):
    return mpf(enclosure.lower), mpf(enclosure.upper)


def check(task, alpha, beta):
    risk = PopulationRisk(task)
    value, bound = risk.value(alpha, beta), risk.error_bound(alpha, beta)
    low, high = exact(certified.risk(task, alpha, beta, digits=17))
    # honesty: the enclosure lies inside value +- bound
    assert mpf(value) - mpf(bound) <= low
    assert high <= mpf(value) + mpf(bound)
    if affordable(task, alpha, beta, max_terms=AFFORDABLE):
        total, tail = series_risk(task, alpha, beta)[:2]
        assert abs(total - value) <= tail + bound
        assert mpf(total) - mpf(tail) <= high
        assert low <= mpf(total) + mpf(tail)
    return value, bound


@pytest.mark.parametrize("law", LAWS)
def test_each_route_inside_the_bound_of_the_others(law):
    @drawn
    @given(st.data())
    @example(data=None)
    def run(data):
        # pinned: one-symbol words never hold two targets
        task = And(2, [0, 1], Words(UniformLength(1))) if data is None else data.draw(tasks(law))
        check(task, *(np.ones((2, 2)) if data is None else data.draw(weights(task))))

    run()


@given(st.data(), st.floats(40, 650))
@settings(drawn, max_examples=60)
def test_the_same_at_gaps_up_to_the_end_of_the_doubles(data, gap):
    d = data.draw(st.integers(2, 20))
    task = Occurrence(d, data.draw(st.integers(0, d - 1)))
    alpha = np.zeros(d)
    alpha[task.target] = gap
    beta = data.draw(st.sampled_from([0.0, 0.5])) * np.ones(d)
    beta[task.target] = 1.5
    check(task, alpha, beta)


@pytest.mark.parametrize("law", LAWS)
def test_the_bound_is_narrow(law):
    @settings(drawn, max_examples=100)
    @given(st.data())
    @example(data=None)
    def run(data):
        if data is None:
            task, (alpha, beta) = Occurrence(2, 0, Words(Geometric(1.0))), np.zeros((2, 2))
        else:
            task = data.draw(tasks(law))
            alpha, beta = data.draw(weights(task))
        risk = PopulationRisk(task)
        value = risk.value(alpha, beta)
        # a risk that is zero up to rounding of f - y has no relative accuracy to promise
        floor = 1e-13 * np.abs(beta).max() ** 2 * (value < 1e-9) + 1e-300
        assert risk.error_bound(alpha, beta) <= SHARP * value + floor

    run()
