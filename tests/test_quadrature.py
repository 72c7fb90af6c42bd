"""The trapezoidal rule: its proven errors hold and are nearly attained."""

import math

import numpy as np
import pytest
from mpmath import gammainc, mp, mpf

from popgd import BadParameter
from popgd.quadrature import GRAIN, discretisation, right_cut, right_tail, step_for


def trapezoid_error(k, h, offset):
    """Relative error of the rule for one word, at 30 digits, at this offset of the grid."""
    with mp.workdps(30):
        first, last = -int(80 / (k * h)), int(6 / h)
        nodes = (offset + mpf(h) * n for n in range(first, last))
        total = mp.fsum(mp.exp(k * x - mp.exp(x)) for x in nodes)
        return abs(h * total / mp.factorial(k - 1) - 1)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("h", [0.5, 1.0])
def test_discretisation_bound_holds_and_is_nearly_attained(k, h):
    worst = max(trapezoid_error(k, h, offset * h / 8) for offset in range(8))
    bound = discretisation(k, h)
    assert worst <= bound
    assert bound <= 1.1 * worst


@pytest.mark.parametrize("k", [2, 3])
def test_a_wider_step_breaks_the_bound_of_a_narrower_one(k):
    worst = max(trapezoid_error(k, 0.6, offset * 0.6 / 8) for offset in range(8))
    assert worst > discretisation(k, 0.5)


def test_published_values():
    assert discretisation(2, 0.25) == pytest.approx(4.5e-15, rel=0.02)
    assert discretisation(3, 0.25) == pytest.approx(5.7e-14, rel=0.02)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8, 1e-13])
def test_the_step_is_the_largest_multiple_that_will_do(tolerance):
    h = step_for(tolerance)
    assert (h / GRAIN).is_integer()
    assert discretisation(3, h) <= tolerance < discretisation(3, h + GRAIN)


def test_an_impossible_tolerance_is_refused():
    with pytest.raises(BadParameter, match="certified"):
        step_for(1e-290)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_right_tail_is_the_incomplete_gamma_function(k):
    for x in (0.1, 3.0, 40.0):
        truth = float(gammainc(k, x, mp.inf, regularized=True))
        assert right_tail(k, x) == pytest.approx(truth, rel=1e-12)
    assert right_tail(k, right_cut(1e-13, k)) <= 1e-13 < right_tail(k, right_cut(1e-13, k) - 0.01)


def test_everything_is_finite_at_the_edges():
    assert math.isfinite(discretisation(3, 2 * GRAIN))
    assert np.isfinite(right_tail(3, 1e4))
