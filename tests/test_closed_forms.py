"""Closed forms against sums over words, which share no algebra with them."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import mpmath
import pytest
import sympy as sp

from popgd import closed_forms

DIGITS = 40
# both sides are computed with DIGITS digits; a few are lost in the last operations
AGREEMENT = mpmath.mpf(10) ** (6 - DIGITS)


@pytest.fixture(autouse=True)
def _enough_digits():
    with mpmath.workdps(DIGITS):
        yield


@cache
def _word_sums(d: int, gap: float | None) -> dict[str, mpmath.mpf]:
    """Sums over (C_s, m - C_s) on positive words; gap None: the limit of M_ab e^(b gap)."""
    with mpmath.workdps(DIGITS + 10):
        r, stop = mpmath.mpf(d - 2) / (2 * (d - 1)), mpmath.mpf(2) / d
        out = {name: mpmath.mpf(0) for name in ("m20", "m11", "m02", "m21", "m12")}
        weight = mpmath.exp(-gap) if gap is not None else None
        c = 1
        while (mass_c := (1 - r) * r ** (c - 1) / 2) > mpmath.mpf(10) ** (-DIGITS - 5):
            mass, b = mass_c * stop ** (c + 1), 0
            while b < 4 * c or mass > mpmath.mpf(10) ** (-DIGITS - 8):
                if weight is None:
                    g, rest = mpmath.mpf(1), mpmath.mpf(b) / c
                else:
                    g = c / (c + b * weight)
                    rest = b * weight / (c + b * weight)
                for name in out:
                    out[name] += mass * g ** int(name[1]) * rest ** int(name[2])
                b += 1
                mass *= (1 - stop) * mpmath.mpf(b + c) / b
            c += 1
        return out


def _at(expression: sp.Expr, d: int) -> mpmath.mpf:
    return mpmath.mpf(str(expression.subs(closed_forms.symbols().d, d).evalf(DIGITS)))


def _close(a: mpmath.mpf, b: mpmath.mpf) -> bool:
    return abs(a - b) <= AGREEMENT * abs(b)


@pytest.mark.parametrize("d", [3, 4, 6])
def test_uniform_moments_are_the_sums_over_words(d):
    exact = closed_forms.uniform_moments()
    for name, value in _word_sums(d, 0.0).items():
        assert _close(_at(getattr(exact, name), d), value), name


@pytest.mark.parametrize("d", [3, 4, 6])
def test_large_gap_limits_are_the_sums_over_words(d):
    limits = closed_forms.large_gap()
    for name, value in _word_sums(d, None).items():
        assert _close(_at(getattr(limits, name), d), value), name
    m = _word_sums(d, None)
    assert _close(_at(limits.minimum, d), 2 * (m["m02"] - 2 * m["m11"] ** 2))


def test_large_gap_is_approached_at_rate_exp_minus_gap():
    limits, sums = closed_forms.large_gap(), _word_sums(4, 25.0)
    for name, value in sums.items():
        scaled = value * mpmath.exp(25 * int(name[2]))
        limit = _at(getattr(limits, name), 4)
        # next order is a multiple of e^-25 = 1.4e-11 with constants below 100 at d = 4
        assert abs(scaled / limit - 1) < 100 * mpmath.exp(-25), name


def test_output_minimum_is_the_formula_for_every_d():
    d = closed_forms.symbols().d
    formula = (1 - (d - 2) / ((d - 1) * sp.log(d - 1))) / 2
    assert sp.simplify(closed_forms.output_minimum() - formula) == 0


@pytest.mark.parametrize(("d", "value"), [(3, 0.1393), (50, 0.3741)])
def test_output_minimum_values(d, value):
    assert round(float(_at(closed_forms.output_minimum(), d)), 4) == value


def test_a_wrong_formula_is_not_accepted():
    d = closed_forms.symbols().d
    wrong = (1 - (d - 2) / (d * sp.log(d - 1))) / 2
    assert sp.simplify(closed_forms.output_minimum() - wrong) != 0


@pytest.mark.parametrize("d", [3, 7, 50])
def test_output_minimizer_is_stationary_and_attains_the_minimum(d):
    beta_s, beta_j = (_at(x, d) for x in closed_forms.output_minimizer())
    m = {name: _at(x, d) for name, x in closed_forms.uniform_moments()._asdict().items()}
    v_s, v_j = beta_s - 2, beta_j - 2
    assert abs(v_s * m["m20"] + v_j * m["m11"]) < AGREEMENT
    assert abs(v_s * m["m11"] + v_j * m["m02"] + beta_j / 2) < AGREEMENT
    risk = (v_s**2 * m["m20"] + 2 * v_s * v_j * m["m11"] + v_j**2 * m["m02"]) / 2
    assert _close(risk + beta_j**2 / 4, _at(closed_forms.output_minimum(), d))


def test_phase_1_is_the_known_update():
    d, eta1, _ = closed_forms.symbols()
    update = closed_forms.phases()
    assert sp.simplify(update.beta_target - 2 * eta1 / d) == 0
    assert sp.simplify(update.beta_background - eta1 * (d - 2) / (d * (d - 1))) == 0
    assert sp.simplify(update.beta_target - update.beta_background - eta1 / (d - 1)) == 0


@pytest.mark.parametrize("d", [3, 10])
@pytest.mark.parametrize("ratio", ["1/1000", "1/2", "3"])
def test_phase_2_gap_against_sums_over_words(d, ratio):
    m = _word_sums(d, 0.0)
    names = closed_forms.symbols()
    eta1, eta2 = sp.Rational(ratio) * d, sp.Integer(7)
    gap = closed_forms.phases().gap.subs({names.eta1: eta1, names.eta2: eta2})
    x = mpmath.mpf(eta1.p) / eta1.q
    drive = (2 * x / d - 2) * m["m21"] + (x * (d - 2) / (d * (d - 1)) - 2) * m["m12"]
    assert _close(_at(gap, d), -7 * mpmath.mpf(d) / (d - 1) * x / (d - 1) * drive)


def test_largest_eta1_values_and_limit():
    root = closed_forms.largest_eta1()
    assert round(float(_at(root, 3)) / 3, 3) == 1.694
    assert float(_at(root, 10**9)) / 10**9 == pytest.approx(2, abs=1e-6)
    assert closed_forms.largest_eta1_ratio_limit() == 2


@pytest.mark.parametrize("d", [3, 50, 10**6])
def test_the_gap_changes_sign_at_largest_eta1(d):
    names, root = closed_forms.symbols(), _at(closed_forms.largest_eta1(), d)
    gap = closed_forms.phases().gap.subs({names.d: d, names.eta2: 1})
    below, above = (
        gap.subs(names.eta1, sp.Float(str(root * (1 + side)), DIGITS)).evalf(DIGITS)
        for side in (-mpmath.mpf("1e-20"), mpmath.mpf("1e-20"))
    )
    assert below > 0 > above


@pytest.mark.parametrize("d", [3, 50, 10**6])
@pytest.mark.parametrize("gap", [0.0, 60.0])
def test_agrees_with_the_symmetric_reduction(d, gap):
    symmetric = pytest.importorskip("popgd.symmetric")
    scaled = gap > 0
    forms = closed_forms.large_gap() if scaled else closed_forms.uniform_moments()
    values = symmetric.moments(gap, d, scaled=scaled)
    # next order at gap 60 is d^2 e^-60 < 1e-14; symmetric.moments promises 12 digits
    for name, value in zip(("m20", "m11", "m02", "m21", "m12"), values, strict=True):
        assert float(value) == pytest.approx(float(_at(getattr(forms, name), d)), rel=1e-11)


def test_importing_the_module_does_not_import_sympy():
    code = "import sys, popgd.closed_forms; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
