"""The certified bounds are needed (negative controls), and malformed calls are refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from certified_words import fraction_mpf
from mpmath import mpf

from popgd import Geometric, Occurrence, Words
from popgd import ball as b
from popgd import certified as c
from popgd import certified_quadrature as quadrature
from popgd.ball import Enclosure
from popgd.errors import BadParameter, NotAvailable


def reference():
    task = Occurrence(5)
    weights = [1, 0, "1/2", -1, 2], [1, 0, "0.3", 0, -1]
    return task, weights, c.risk(task, *weights, 40)


def test_negative_control_a_coarse_step_is_caught(monkeypatch):
    """With the step's bound kept at that of a finer step, the truth falls outside."""
    task, weights, truth = reference()
    assert c.risk(task, *weights).overlaps(truth)
    honest = quadrature.discretisation
    monkeypatch.setattr("popgd.certified_integral.step", lambda k, target: 1)
    monkeypatch.setattr("popgd.certified_integral.discretisation", lambda k, m: honest(k, 8))
    assert not c.risk(task, *weights).overlaps(truth)


def test_an_honest_coarse_step_is_wide_and_right(monkeypatch):
    """The step's bound is nearly attained: 10 times less would lie."""
    task, weights, truth = reference()
    problem = c.balls.build(task, *weights)
    monkeypatch.setattr("popgd.certified_integral.step", lambda k, target: 1)
    with b.precision(90):
        found = b.enclose(c.balls.risk(problem), 20)
    assert found.contains(truth)
    off = abs(found.midpoint - truth.midpoint)
    assert off > Fraction(found.width) / 2 / 30


def short_words():
    """Words of nearly always one symbol, S = 1: the bounds of both cuts are nearly attained."""
    task = Occurrence(3, 0, Words(Geometric(Fraction(999, 1000))))
    weights = [0, 0, 0], [1, 2, 1]
    return c.balls.build(task, *weights), c.risk(task, *weights, 40)


def cut_window(monkeypatch, at_start: int, at_end: int):
    """Drop that many doublings of t from the ends of every window."""
    choose = quadrature.Window.choose

    def shorter(m, *rest):
        whole = choose(m, *rest)
        return quadrature.Window(whole.first + at_start * m, whole.last - at_end * m)

    monkeypatch.setattr(quadrature.Window, "choose", staticmethod(shorter))


def at_90_bits(problem) -> Enclosure:
    with b.precision(90):
        return b.enclose(c.balls.risk(problem), 20)


def test_negative_control_a_tail_bound_shrunk_tenfold_is_caught(monkeypatch):
    problem, truth = short_words()
    cut_window(monkeypatch, 0, 3)
    assert at_90_bits(problem).contains(truth)
    tail = quadrature.right_tail
    monkeypatch.setattr("popgd.certified_integral.right_tail", lambda k, x: tail(k, x) / 10)
    assert not at_90_bits(problem).contains(truth)


def test_negative_control_a_left_cut_shrunk_tenfold_is_caught(monkeypatch):
    problem, truth = short_words()
    cut_window(monkeypatch, 28, 0)
    assert at_90_bits(problem).contains(truth)
    apply = c.balls.risk.__globals__["Tails"].apply
    monkeypatch.setattr(
        "popgd.certified_integral.Tails.apply",
        lambda self, computed, absolute, left: apply(self, computed, absolute, left / 10),
    )
    assert not at_90_bits(problem).contains(truth)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 4, 12])
def test_the_discretisation_bound_is_the_gamma_series(k, m):
    with mpmath.workdps(80):
        h = mpmath.log(2) / m
        terms = (abs(mpmath.gamma(mpmath.mpc(k, 2 * mpmath.pi * n / h))) for n in range(1, 6))
        truth = 2 * mpmath.fsum(terms) / mpmath.gamma(k)
        with b.precision(120):
            bound = fraction_mpf(b.rational_bounds(quadrature.discretisation(k, m))[1])
        assert truth <= bound <= truth * (1 + mpf(10) ** -6)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: c.risk(3, [0], [0]), "task = 3: must be a task"),
        (lambda: c.risk(Occurrence(3), [0, 0], [0, 0, 0]), "pass 3 numbers"),
        (lambda: c.risk(Occurrence(3), 0, [0, 0, 0]), "must be a sequence"),
        (lambda: c.risk(Occurrence(3), "000", [0, 0, 0]), "must be a sequence"),
        (lambda: c.risk(Occurrence(3), np.zeros((2, 3)), [0, 0, 0]), "one vector is needed"),
        (lambda: c.risk(Occurrence(3), [0, "x", 0], [0, 0, 0]), "alpha[1] = 'x'"),
        (lambda: c.risk(Occurrence(3), [0, math.inf, 0], [0, 0, 0]), "alpha[1] = inf"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, math.nan, 0]), "beta[1] = nan"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, 0, 0], 0), "digits = 0"),
        (lambda: c.risk(Occurrence(3), [0, 0, 0], [0, 0, 0], 1001), "digits = 1001"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, residual=[1, 2]), "pass 1 numbers"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, tiers=[1]), "one tier a symbol"),
        (lambda: c.risk(Occurrence(3), [0] * 3, [0] * 3, tiers=[1, 0.5, 0]), "tiers[1] = 0.5"),
        (lambda: c.gradient(Occurrence(3), [0] * 3, [0, True, 0]), "beta[1] = True"),
        (lambda: c.minimize_output(Occurrence(3), [0, None, 0]), "alpha[1] = None"),
        (lambda: c.hessian_output(Occurrence(300), [0] * 300), "task.d = 300"),
        (lambda: c.moments(0, 1), "d = 1"),
        (lambda: c.moments(math.nan, 5), "gap = nan"),
        (lambda: c.moments(0, 10**16), "d = 10000000000000000"),
        (lambda: c.symmetric_risk(5, 0, "z", 0), "beta_target = 'z'"),
        (lambda: c.three_phase(5, -1, 1), "eta1 = -1: a learning rate must be >= 0"),
        (lambda: c.three_phase(5, 1, "eps"), "unknown name 'eps'"),
        (lambda: c.three_phase(5, 1, 1, 0), "eta3 = 0"),
        (lambda: c.three_phase(5, 1, 1, 1, -1), "steps = -1"),
        (lambda: c.three_phase(5, 1, 1, 1, 1.5), "steps = 1.5"),
    ],
)
def test_malformed_calls_say_what_to_do(call, part):
    with pytest.raises(BadParameter, match=re.escape(part)):
        call()


def test_too_large_problems_are_refused_in_words(monkeypatch):
    monkeypatch.setattr("popgd.certified_integral.LARGEST", 10_000)
    with pytest.raises(NotAvailable, match=r"use popgd\.PopulationRisk"):
        c.risk(Occurrence(1000), np.arange(1000) / 100, [1] + [0] * 999)
    # equal weights are one atom, whatever d
    assert c.risk(Occurrence(1000), [1] + [0] * 999, [2] + [0] * 999).sign() == 1
