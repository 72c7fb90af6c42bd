"""Ball arithmetic behind its door: exact inputs, enclosures, three-valued decisions."""

from __future__ import annotations

import pickle
import re
import threading
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from popgd import ball as b
from popgd.ball import Ball, Enclosure, exact
from popgd.errors import BadParameter, PrecisionExhausted

RATIONALS = st.fractions(min_value=-(10**30), max_value=10**30)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-8", Fraction(1, 10**8)),
        ("-(2 + 3*4)/7", Fraction(-2)),
        ("2**-3", Fraction(1, 8)),
        ("sqrt(9/4)", Fraction(3, 2)),
        ("ln(1) + exp(0)", Fraction(1)),
        ("d**2 - d", Fraction(10**24 - 10**12)),
        (".5", Fraction(1, 2)),
    ],
)
def test_rational_expressions_are_exact(text, value):
    assert exact(text, {"d": 10**12}).fraction == value


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("sqrt(10)", lambda: mpmath.sqrt(10)),
        ("2*ln(10)", lambda: 2 * mpmath.log(10)),
        ("exp(1/3) - pi", lambda: mpmath.exp(mpmath.mpf(1) / 3) - mpmath.pi),
        ("2**0.5", lambda: mpmath.sqrt(2)),
        ("10**(1/4)", lambda: mpmath.root(10, 4)),
        ("-log(2)", lambda: -mpmath.log(2)),
    ],
)
@pytest.mark.parametrize("digits", [15, 60])
def test_irrational_expressions_agree_with_mpmath(text, function, digits):
    found = b.certify(lambda: b.ball(exact(text)), digits)
    with mpmath.workdps(digits + 30):
        assert found.contains(exact(function()))
    assert found.relative_width < 10.0 ** -(digits - 1)


def test_a_float_is_the_binary_number_it_is_and_says_so():
    assert exact(0.1).fraction == Fraction(0.1) != exact("0.1").fraction
    assert exact(0.1).from_float
    assert exact(np.float32(0.1)).fraction == Fraction(float(np.float32(0.1)))
    assert not exact("0.1").from_float
    assert not exact(Decimal("0.1")).from_float
    assert (exact(0.5) * exact("sqrt(2)")).from_float


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        ("__import__('os')", "may not use"),
        ("1/0", "divides by zero"),
        ("sqrt(-1)", "not a real number"),
        ("ln(0)", "not a real number"),
        ("2^3", "write ** for powers"),
        ("y + 1", "unknown name 'y'"),
        ("1e99999999", "may not use"),
        ("(1).real", "may not use"),
        ("[1]", "may not use"),
        ("1 if 1 else 2", "may not use"),
        ("", "is not an expression"),
        ("((", "is not an expression"),
        ("1+" * 2000 + "1", "longer than"),
        ("sqrt(1, 2)", "functions are"),
        (True, "bool"),
        (np.bool_(False), "bool"),
        (float("nan"), "must be finite"),
        (float("inf"), "must be finite"),
        (None, "must be an exact real number"),
        (1j, "must be an exact real number"),
        ([1], "must be an exact real number"),
    ],
)
def test_malformed_numbers_are_refused(bad, part):
    with pytest.raises(BadParameter, match=re.escape(part)):
        exact(bad)


def test_exact_numbers_pickle_hash_and_refuse_silent_rounding():
    x = exact("sqrt(10)")
    assert pickle.loads(pickle.dumps(x)) == x
    assert len({x, exact("sqrt(10)"), exact("sqrt(11)")}) == 2
    for action in (bool, float):
        with pytest.raises(TypeError):
            action(x)


def test_sign_and_order_are_three_valued():
    wide = Ball(0, 1)
    assert b.sign(wide) is None
    assert b.sign(Ball(0)) == 0
    assert b.sign(Ball(2, 1)) == 1
    assert b.sign(Ball(-2, 1)) == -1
    assert b.sign(Ball(1, 1)) is None
    assert b.sign(Ball.nan()) is None
    assert b.compare(Ball(1, 0.5), Ball(1, 0.5)) is None
    assert b.compare(1, 1) == 0
    assert b.less(Ball(1, 0.25), Ball(2, 0.25)) is True
    assert b.less(Ball(2, 0.25), Ball(1, 0.25)) is False
    assert b.less(Ball(1, 1), Ball(2, 1)) is None


def test_precision_is_restored_after_errors_and_guarded_between_threads():
    before = b.bits()
    with pytest.raises(RuntimeError), b.precision(300):
        raise RuntimeError
    assert b.bits() == before
    seen = []

    def other():
        with b.precision(500):
            seen.append(b.bits())

    with b.precision(100):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.2)
        assert b.bits() == 100
        assert seen == []  # the other thread waits
    thread.join()
    assert seen == [500]
    with pytest.raises(BadParameter, match="bits"), b.precision(1):
        pass


@given(middle=RATIONALS, radius=RATIONALS.map(abs), digits=st.integers(1, 40))
@example(middle=Fraction(1, 3), radius=Fraction(0), digits=1)
@example(middle=Fraction(0), radius=Fraction(0), digits=5)
@example(middle=Fraction(-999999), radius=Fraction(1, 10**9), digits=3)
def test_enclosures_contain_the_ball_they_print(middle, radius, digits):
    with b.precision(80):
        x = b.widen(b.ball(middle), b.ball(radius))
        low, high = b.rational_bounds(x)
        shown = b.enclose(x, digits)
    assert low <= middle - radius <= middle + radius <= high
    assert shown.contains(Enclosure(shown.lower, shown.upper))
    assert shown.bounds[0] <= low <= high <= shown.bounds[1]


@given(value=RATIONALS, digits=st.integers(2, 40))
def test_enclosures_of_numbers_are_sharp(value, digits):
    shown = b.certify(lambda: b.ball(value), digits)
    assert shown.contains(value)
    assert shown.relative_width <= 10.0 ** (1 - digits)


@given(value=RATIONALS, digits=st.integers(1, 30))
def test_printed_uncertainty_covers_the_printed_number(value, digits):
    shown = b.certify(lambda: b.ball(value), digits)
    parts = str(shown).split(" ± ")
    if len(parts) == 2:
        centre, error = Fraction(parts[0]), Fraction(parts[1])
        assert centre - error <= shown.bounds[0] <= shown.bounds[1] <= centre + error
    else:
        assert Fraction(parts[0]) == value


def test_enclosures_travel_and_refuse_to_pose_as_numbers():
    x = Enclosure("0.374", "0.375")
    assert pickle.loads(pickle.dumps(x)) == x
    assert len({x, Enclosure("0.374", "0.375")}) == 1
    actions = (bool, float, lambda y: y < 1, lambda y: y >= 1, lambda y: y == 0.3745)
    for action in actions:
        with pytest.raises(TypeError):
            action(x)
    assert x.compare(1) == -1
    assert x.compare("0.3745") is None
    assert x.sign() == 1
    assert x.contains("0.375")
    assert not x.contains(0.376)
    assert Enclosure("1", "2").contains("sqrt(2)")
    assert x.to_float() == 0.3745
    assert Enclosure("0", "0").sign() == 0
    assert Enclosure("-1", "1").sign() is None
    assert x.overlaps(Enclosure("0.3749", "1"))


@pytest.mark.parametrize(("low", "high"), [("2", "1"), ("x", "1"), ("nan", "1"), (1, 2)])
def test_malformed_enclosures_are_refused(low, high):
    with pytest.raises(BadParameter):
        Enclosure(low, high)


def test_the_adaptive_loop_raises_precision_until_narrow():
    tiny = exact("1e-60")
    found = b.certify(lambda: (1 + b.ball(tiny)) - 1, 20)
    assert found.contains("1e-60")
    assert found.relative_width < 1e-19


def test_the_adaptive_loop_gives_up_in_words():
    root = exact("sqrt(2)")
    with pytest.raises(PrecisionExhausted, match="exactly zero"):
        b.adaptive(lambda: b.ball(root) ** 2 - 2, 15, cap=400)
    with pytest.raises(PrecisionExhausted, match="no finite enclosure"):
        b.enclose(Ball.nan())


def test_extreme_magnitudes_are_enclosed_without_writing_them_out():
    shown = b.enclose((-(b.ball(10) ** 30)).exp())
    assert shown.bounds[0] <= 0 < shown.bounds[1] <= Fraction(1, 10**99_000)
    with pytest.raises(PrecisionExhausted, match="too large"):
        b.enclose((b.ball(10) ** 30).exp())


def test_an_enclosure_becomes_a_ball_that_contains_it():
    x = Enclosure("0.1", "0.3")
    low, high = b.rational_bounds(b.ball(x))
    assert low <= Fraction(1, 10)
    assert high >= Fraction(3, 10)


@given(
    st.fractions(min_value=-3, max_value=3),
    st.fractions(min_value=0, max_value=2),
    st.fractions(min_value=-1, max_value=1),
    st.integers(0, 7),
)
@example(Fraction(0), Fraction(1, 10**10), Fraction(1, 2), 2)  # not-a-number in flint
@example(Fraction(959293, 5103169441), Fraction(0), Fraction(0), 4)
def test_a_power_contains_the_powers_of_what_the_ball_contains(middle, radius, place, n):
    x = b.widen(b.ball(middle), radius)
    # as rationals: a ball around the power would have a radius of its own
    low, high = b.rational_bounds(b.power(x, n))
    assert low <= (middle + place * radius) ** n <= high


def test_a_power_of_a_ball_around_zero_is_no_wider_than_its_range():
    x = b.widen(b.ball(Fraction(1, 4)), Fraction(3, 4))  # [-1/2, 1]
    slack = Fraction(1, 10**8)  # radii have 30 bits
    for n, low in ((1, Fraction(-1, 2)), (2, 0), (3, Fraction(-1, 8)), (10**6, 0)):
        least, most = b.rational_bounds(b.power(x, n))
        assert low - slack * n <= least <= low
        assert 1 <= most <= 1 + slack * n


def test_powers_of_zero_and_negative_powers():
    assert b.sign(b.power(0, 5)) == 0
    assert b.compare(b.power(0, 0), 1) == 0
    assert b.power(4, -1).contains(b.ball(Fraction(1, 4)))
    assert b.sign(b.power(b.plus_minus(1), -1)) is None
    assert b.power(b.plus_minus(Fraction(1, 2)), 10**18).is_finite()
    assert exact("(sqrt(2)*sqrt(2) - 2)**2").kind != "number"
    assert b.ball("(sqrt(2)*sqrt(2) - 2)**2").is_finite()
