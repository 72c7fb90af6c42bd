"""Running error analysis: the exact result lies inside the carried bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from popgd.rounding import UNIT, Rounded

OPERATIONS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "subtract": (lambda a, b: a - b, lambda a, b: a - b),
    "multiply": (lambda a, b: a * b, lambda a, b: a * b),
    "divide": (lambda a, b: a / b, lambda a, b: a / b),
    "exp": (lambda a, b: np.exp(-a), lambda a, b: mp.exp(-a)),
    "expm1": (lambda a, b: np.expm1(-a), lambda a, b: mp.expm1(-a)),
    "log": (lambda a, b: np.log(a), lambda a, b: mp.log(a)),
    "log1p": (lambda a, b: np.log1p(a), lambda a, b: mp.log1p(a)),
}

positive = st.floats(1e-12, 500.0)


@pytest.mark.parametrize("name", OPERATIONS)
@given(a=positive, b=positive, units=st.floats(0, 1000), side=st.sampled_from([-1, 1]))
def test_truth_inside_the_bound(name, a, b, units, side):
    fast, exact = OPERATIONS[name]
    x, y = Rounded(a, units * UNIT * a), Rounded(b, units * UNIT * b)
    got = fast(x, y)
    with mp.workdps(60):
        shift = 1 + side * mpf(units) * mpf(UNIT)
        truth = exact(mpf(a) * shift, mpf(b) * (2 - shift))
        assert abs(truth - mpf(float(got.value))) <= mpf(float(got.error)) * (1 + mpf(10) ** -9)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=300))
def test_sums_and_products_of_matrices_are_covered(entries):
    x = Rounded(np.array(entries))
    exact = sum(map(mpf, entries), mpf(0))
    total = x.sum()
    assert abs(exact - mpf(float(total.value))) <= mpf(float(total.error))
    product = Rounded(np.array(entries)[None, :]) @ np.array(entries)[:, None]
    exact = sum((mpf(v) ** 2 for v in entries), mpf(0))
    assert abs(exact - mpf(float(product.value[0, 0]))) <= mpf(float(product.error[0, 0]))


def test_bounds_are_narrow():
    x = Rounded.relative(0.7, 1)
    assert (np.exp(-x) * x + x).error <= 40 * UNIT
    assert Rounded(np.ones(100)).sum().error <= 101 * UNIT * 100


def test_an_underflow_is_not_lost():
    tiny = np.exp(-Rounded(np.array([800.0])))
    assert tiny.value == 0
    assert tiny.error > 0


def test_powers_of_zero_are_zero():
    power = np.exp(np.log(Rounded(np.array([0.0]))) * 3)
    assert power.value == 0
    assert np.isfinite(power.error).all()


def test_unknown_functions_are_refused():
    with pytest.raises(TypeError):
        np.sin(Rounded(1.0))
