"""Laws of very long words: one label is almost certain, and nothing overflows."""

import numpy as np
import pytest
from mpmath import mpf

from popgd import (
    BadParameter,
    FixedLength,
    Geometric,
    Occurrence,
    Poisson,
    PopulationRisk,
    PrecisionExhausted,
    UniformLength,
    Words,
    certified,
)

ALPHA = np.array([1.0, 0.5, -1.0, 0.0, 2.0])
BETA = np.array([2.0, 0.1, 0.2, 0.0, -0.3])

LONG = [FixedLength(10**6), FixedLength(3182), UniformLength(10**4), Poisson(3549.0), Poisson(1e6)]

MINIMUM = 1e-12
"""Relative accuracy of the output minimum where it is returned."""


def risk(law):
    return PopulationRisk(Occurrence(5, 0, Words(law)))


@pytest.mark.parametrize("law", [*LONG, Geometric(1e-16), Geometric(1e-30)], ids=repr)
def test_truth_inside_a_narrow_bound(law):
    here = risk(law)
    value, bound = here.value(ALPHA, BETA), here.error_bound(ALPHA, BETA)
    assert bound <= 1e-11 * value
    if not isinstance(law, (UniformLength, FixedLength)):
        truth = certified.risk(here.task, ALPHA, BETA, digits=17)
        assert mpf(value) - mpf(bound) <= mpf(truth.lower)
        assert mpf(truth.upper) <= mpf(value) + mpf(bound)


@pytest.mark.parametrize("law", [*LONG, FixedLength(500)], ids=repr)
def test_gradients_still_sum_to_zero(law):
    got = risk(law).value_and_gradient(ALPHA, BETA)
    assert np.isfinite(got.beta).all()
    assert abs(got.alpha.sum()) <= 1e-13


@pytest.mark.parametrize(
    "law", [Geometric(1e-6), Geometric(1e-14), FixedLength(100), FixedLength(500)]
)
def test_the_output_minimum_keeps_its_digits(law):
    here = risk(law)
    truth = certified.minimize_output(here.task, ALPHA, digits=15).value
    assert here.minimize_output(ALPHA).value == pytest.approx(float(truth.lower), rel=MINIMUM)


def test_a_singular_hessian_is_said_to_be_one():
    with pytest.raises(PrecisionExhausted, match=r"certified\.minimize_output"):
        risk(Geometric(1e-20)).minimize_output(ALPHA)


@pytest.mark.parametrize("call", [lambda: Geometric(1e-300), lambda: Poisson(1e-310)])
def test_laws_beyond_the_doubles_are_refused(call):
    with pytest.raises(BadParameter):
        call()
