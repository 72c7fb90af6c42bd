"""Malformed calls: one sentence that names parameter, value received, rule and remedy."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

import popgd
from popgd import (
    And,
    FixedLength,
    Geometric,
    Occurrence,
    Or,
    Phase,
    Plan,
    Poisson,
    Words,
    certified,
    symmetric,
)
from popgd.errors import BadParameter, NotAvailable, PopgdError
from popgd.multihead import MultiHeadRisk
from popgd.series import series_risk

NAN, INF = math.nan, math.inf
HUGE = 10**400
TASK = Occurrence(3)
ZERO = [0.0, 0.0, 0.0]
MASKED = np.ma.array(ZERO, mask=[0, 1, 0])
FULL, HEADS = popgd.PopulationRisk(TASK), MultiHeadRisk(TASK)
LONGEST = 400
"""Characters of a message that is one sentence and not a dump."""


def risk(alpha=ZERO, beta=ZERO, residual=None, **options):
    return popgd.PopulationRisk(TASK, **options).value(alpha, beta, residual)


def phases(*args, **options):
    return symmetric.three_phase(50, *args, **options)


# function, what is broken, call, message with "..." for the rest of a piece
CASES = [
    # probabilities and lengths
    ("Geometric", "range", lambda: Geometric(0),
     "p = 0: must lie in (0, 1]; pass a probability p with 0 < p <= 1"),
    ("Geometric", "range", lambda: Geometric(1.5),
     "p = 1.5: must lie in (0, 1]; pass a probability p with 0 < p <= 1"),
    ("Geometric", "NaN", lambda: Geometric(NAN),
     "p = nan: is not a number; pass a probability p with 0 < p <= 1"),
    ("Geometric", "bool", lambda: Geometric(True),
     "p = True: must be a real number; pass a probability p with 0 < p <= 1"),
    ("Geometric", "text", lambda: Geometric("0.5"),
     "p = '0.5': must be a real number; pass a probability p with 0 < p <= 1"),
    ("Geometric", "complex", lambda: Geometric(1j),
     "p = 1j: must be a real number; pass a probability p with 0 < p <= 1"),
    ("Geometric", "huge", lambda: Geometric(HUGE),
     "p = 1000...: is beyond the range of float64...; pass a probability p with 0 < p <= 1"),
    ("Geometric", "huge", lambda: Geometric(Fraction(1, HUGE)),
     "p = Fraction(1, 1000...: rounds to 0.0...; pass a probability p with 0 < p <= 1"),
    ("Poisson", "infinity", lambda: Poisson(INF),
     "rate = inf: must lie in [1e-200, 1e+06]; pass a real number in"),
    ("FixedLength", "fraction", lambda: FixedLength(2.5),
     "length = 2.5: must be an integer; ...in [1, 1000000]"),
    ("FixedLength", "huge", lambda: FixedLength(10**5000),
     "length = a huge int: must be in [1, 1000000]; pass an integer"),
    ("Words", "shape", lambda: Words(Geometric(0.5), [[0.5], [0.2, 0.3]]),
     "symbols = [[0.5], [0.2, 0.3]]: must be a rectangular array ...; ...one positive probability"),
    ("Words", "empty", lambda: Words(Geometric(0.5), []),
     "symbols = []: must be a vector of d >= 2 entries; ...or None for uniform"),
    ("Words", "range", lambda: Words(Geometric(0.5), [0.5, 0.6]),
     "symbols = 1.1: ...must sum to 1; ...or None for uniform"),
    # tasks
    ("Occurrence", "range", lambda: Occurrence(1),
     "d = 1: must be in [2, ...; the alphabet needs d >= 2 symbols"),
    ("Occurrence", "bool", lambda: Occurrence(True),
     "d = True: a bool is not an integer here; ...d >= 2"),
    ("Occurrence", "huge", lambda: Occurrence(HUGE),
     "d = 1000...: must be in [2, 1000000000000000]; ...at most 10^15"),
    ("Occurrence", "range", lambda: Occurrence(3, 3),
     "target = 3: must be in [0, 2]; ...numbered 0 to d - 1 = 2"),
    ("Occurrence", "type", lambda: Occurrence(3, words=Geometric(0.5)),
     "words = Geometric(p=0.5): must be a Words object; pass popgd.Words"),
    ("Or", "empty", lambda: Or(3, []),
     "targets = []: must name at least one symbol; ...[0, 1]"),
    ("Or", "text", lambda: Or(3, "01"),
     "targets = '01': must be a sequence of symbols; ...[0, 1]"),
    ("And", "repeated", lambda: And(3, [0, 0]),
     "targets = [0, 0]: names a symbol twice; pass distinct symbols"),
    ("balanced_p", "type", lambda: popgd.balanced_p(3),
     "task = 3: must be a task; ...popgd.Occurrence(50)"),
    ("Tiers", "fraction", lambda: popgd.Tiers([0.5, 1]),
     "tier = [0.5, 1]: tiers must be integers; ...of shape (..., d)"),
    # risks
    ("PopulationRisk", "type", lambda: popgd.PopulationRisk(50),
     "task = 50: must be a task; ...popgd.Occurrence(50)"),
    ("PopulationRisk", "unknown", lambda: risk(method="exact"),
     "method = 'exact': is not an option; ...'integral', 'series'"),
    ("PopulationRisk", "range", lambda: risk(rtol=1.0),
     "rtol = 1.0: must lie in [1e-13, 0.01]; pass a real number"),
    ("PopulationRisk.value", "NaN", lambda: risk([0, NAN, 0]),
     "alpha[1] = nan: every weight must be finite; ...popgd.Tiers(tier, offset)"),
    ("PopulationRisk.value", "infinity", lambda: risk([-INF, 0, 0]),
     "alpha[0] = -inf: every weight must be finite; ...popgd.Tiers(tier, offset)"),
    ("PopulationRisk.value", "infinity", lambda: risk(beta=[0, 0, INF]),
     "beta[2] = inf: every weight must be finite; pass finite real numbers of shape (..., 3)"),
    ("PopulationRisk.value", "masked", lambda: risk(MASKED),
     "alpha = masked_array(...: has masked entries; fill them in; pass finite real numbers"),
    ("PopulationRisk.value", "masked", lambda: risk([MASKED, MASKED]),
     "alpha = [masked_array(...: has masked entries; fill them in; pass finite real numbers"),
    ("symmetric.moments", "masked", lambda: symmetric.moments(MASKED, 5),
     "gap = masked_array(...: has masked entries; fill them in; pass real numbers"),
    ("PopulationRisk.value", "shape", lambda: risk([0, 0]),
     "alpha = [0, 0]: ...the last axis must be d = 3; pass finite real numbers of shape (..., 3)"),
    ("PopulationRisk.value", "shape", lambda: risk([[0, 0, 0], [0]]),
     "alpha = [[0, 0, 0], [0]]: must be a rectangular array ...; pass finite ..."),
    ("PopulationRisk.value", "empty", lambda: risk([]),
     "alpha = []: has shape (0,)...; pass finite real numbers of shape (..., 3)"),
    ("PopulationRisk.value", "complex", lambda: risk([1j, 0, 0]),
     "alpha = [1j, 0, 0]: must hold real numbers; pass finite real numbers of shape"),
    ("PopulationRisk.value", "bool", lambda: risk([True, False, True]),
     "alpha = [True, False, True]: must hold real numbers; pass finite real numbers of shape"),
    ("PopulationRisk.value", "text", lambda: risk("abc"),
     "alpha = 'abc': must hold real numbers; pass finite real numbers of shape"),
    ("PopulationRisk.value", "huge", lambda: risk([0, 0, HUGE]),
     "alpha = [0, 0, 1000...: is beyond the range of float64...; pass finite real numbers"),
    ("PopulationRisk.value", "range", lambda: risk([0, 701, 0]),
     "alpha = 701.0: ...exceeds 700...; ...popgd.Tiers(tier, offset)"),
    ("PopulationRisk.value", "shape", lambda: risk(residual=[0, 0]),
     "residual = [0, 0]: ...the last axis must be d = 1; ...of shape (..., 1)"),
    ("PopulationRisk.value", "contradiction", lambda: risk(beta=[2, 0, 0], residual=[5.0]),
     "residual = array([[5.]]): must be beta - 2; leave it out, or pass both for the same weight"),
    ("PopulationRisk.value", "contradiction", lambda: risk(beta=[2, 0, 0], residual=[[0], [1e-6]]),
     "residual = array([[...: must be beta - 2; leave it out, or pass both for the same"),
    ("PopulationRisk.variance", "shape", lambda: FULL.variance(np.zeros((2, 3)), ZERO),
     "alpha, beta = (2,): must be one pair of vectors; pass shape (3,)"),
    ("MultiHeadRisk.value", "shape", lambda: HEADS.value(ZERO, ZERO),
     "alpha = [0.0, 0.0, 0.0]: ...after one for the heads; ...(..., H, 3)"),
    ("MultiHeadRisk.value", "shape", lambda: HEADS.value(np.zeros((2, 3)), np.zeros((3, 3))),
     "alpha, beta = [(2, 3), (3, 3)]: axes do not broadcast; ...the same number of heads"),
    ("series_risk", "range", lambda: series_risk(TASK, ZERO, ZERO, rtol=0),
     "rtol = 0: must lie in [1e-15, 1); pass a number in"),
    ("series_risk", "range", lambda: series_risk(TASK, ZERO, [1e200, 0, 0]),
     "beta = array([1.e+200...: a squared weight would overflow; keep |beta| <= 1e+150"),
    # the symmetric reduction
    ("symmetric.moments", "NaN", lambda: symmetric.moments(NAN, 5),
     "gap = nan: holds NaN; pass real numbers"),
    ("symmetric.moments", "range", lambda: symmetric.moments(0, 1),
     "d = 1.0: every entry must lie in [2, 1e+15]; ...between 2 and 10^15"),
    ("symmetric.moments", "fraction", lambda: symmetric.moments(0, 2.5),
     "d = 2.5: must be an integer; ...between 2 and 10^15"),
    ("symmetric.moments", "huge", lambda: symmetric.moments(-HUGE, 5),
     "gap = -1000...: is beyond the range of float64...; pass real numbers"),
    ("symmetric.moments", "shape", lambda: symmetric.moments([0, 1], [2, 3, 4]),
     "d = [2, 3, 4]: ...does not broadcast with gap ...; pass shapes that broadcast"),
    ("symmetric.State", "infinity", lambda: symmetric.State(INF, INF, 0, 0),
     "alpha_target = inf: the gap inf - inf is undefined; let only one of the two"),
    ("symmetric.State", "range", lambda: symmetric.State(0, 0, 2, 0, residual_target=1),
     "residual_target = 1.0: must be beta_target - 2; leave it out"),
    ("symmetric.State.weights", "huge", lambda: symmetric.State.zero().weights(10**12),
     "d = 1000000000000: must be in [2, 10000000]; ...popgd.symmetric itself needs no vectors"),
    ("symmetric.risk", "type", lambda: symmetric.risk((0, 0, 0, 0), 50),
     "state = (0, 0, 0, 0): must be a State; pass State("),
    ("symmetric.three_phase", "negative", lambda: phases(-1, 1),
     "eta1 = -1.0: ...must lie in [0, inf); pass a finite learning rate >= 0"),
    ("symmetric.three_phase", "NaN", lambda: phases(1, NAN),
     "eta2 = nan: holds NaN; pass a finite learning rate >= 0"),
    ("symmetric.three_phase", "infinity", lambda: phases(1, 1, INF),
     "eta3 = inf: ...must lie in [0, inf); pass a finite learning rate >= 0"),
    ("symmetric.three_phase", "negative", lambda: phases(1, 1, 1, -3),
     "steps = -3.0: ...must lie in [0, inf]; ...whole numbers of steps >= 0, or inf"),
    ("symmetric.three_phase", "fraction", lambda: phases(1, 1, 1, 2.5),
     "steps = 2.5: must be a whole number; ...whole numbers of steps >= 0, or inf"),
    ("symmetric.steps_to_reach", "range", lambda: symmetric.steps_to_reach(50, 1, 1, epsilon=0),
     "epsilon = 0.0: ...must lie in (0, inf]; pass a risk > 0"),
    # enclosures
    ("certified.risk", "range", lambda: certified.risk(TASK, ZERO, ZERO, digits=0),
     "digits = 0: must be in [1, 1000]; pass an integer"),
    ("certified.risk", "text", lambda: certified.risk(TASK, ["x", 0, 0], ZERO),
     "alpha[0] = 'x': uses the unknown name 'x'; known names are d, exp"),
    ("certified.risk", "text", lambda: certified.risk(TASK, ["1/0", 0, 0], ZERO),
     "alpha[0] = '1/0': divides by zero; change the denominator"),
    ("certified.risk", "shape", lambda: certified.risk(TASK, [0, 0], ZERO),
     "alpha = 2: ...one vector is needed; pass 3 numbers"),
    ("certified.moments", "NaN", lambda: certified.moments(NAN, 5),
     "gap = nan: must be finite; ...an expression such as"),
    ("certified.three_phase", "negative", lambda: certified.three_phase(50, "-1/2", 1),
     "eta1 = '-1/2': a learning rate must be >= 0; pass a number >= 0"),
    # sampling and training
    ("sample_words", "range", lambda: popgd.sample_words(TASK, 0),
     "n = 0: must be in [1, ...; draw at least one word"),
    ("sample_words", "huge", lambda: popgd.sample_words(TASK, HUGE),
     "n = 1000...: must be in [1, ...; ...at most 2^35"),
    ("sample_words", "negative", lambda: popgd.sample_words(TASK, 3, rng=-1),
     "rng = -1: a seed must be >= 0; pass a non-negative integer seed"),
    ("WordBatch.from_words", "empty", lambda: popgd.WordBatch.from_words([[]], d=3),
     "words[0] = []: a word needs at least one symbol; drop empty words"),
    ("EmpiricalRisk", "text", lambda: popgd.EmpiricalRisk("x"),
     "batch = 'x': must be a WordBatch ...; ...popgd.sample_words(task, n)"),
    ("Plan.parse", "unknown", lambda: Plan.parse("X(1x)"),
     "plan = 'X(1x)': expected a layer, found 'X' at position 0; write O (output), A (attention)"),
    ("Plan.parse", "negative", lambda: Plan.parse("O(-1x)"),
     "plan = 'O(-1x)': ...found '-' at position 2; write for example O(10x)"),
    ("Plan.parse", "huge", lambda: Plan.parse("O(1e400x)"),
     "plan = 'O(1e400x)': expected a whole number of steps ...; write for example O(10x)"),
    ("Phase", "negative", lambda: Phase("O", -1),
     "steps = -1: must be >= 0; ...math.inf for the exact output minimum"),
    ("Phase", "bool", lambda: Phase("O", True),
     "steps = True: a bool is not an integer here; pass an integer >= 0"),
    ("Phase", "unknown", lambda: Phase("hidden"),
     "layer = 'hidden': is no layer; choose 'O' (output)"),
    ("train", "negative", lambda: popgd.train(TASK, "O(1x)", learning_rate={"O": -1.0}),
     "learning_rate['O'] = -1.0: ...must lie in (0, inf); pass finite step sizes > 0"),
    ("train", "huge", lambda: popgd.train(TASK, Phase("O", HUGE)),
     "plan = 'O(1000...: has more than 2^62 steps; use O(inf)"),
    ("train", "unknown", lambda: popgd.train(TASK, "O(1x)", path="fast"),
     "path = 'fast': is not an option; ...'auto', 'general', 'symmetric'"),
    ("gradient_flow", "negative", lambda: popgd.gradient_flow(TASK, -1),
     "times = -1.0: ...must lie in [0, inf); pass an end time > 0"),
    ("gradient_flow", "unknown", lambda: popgd.gradient_flow(TASK, 1, method="Euler"),
     "method = 'Euler': is not an option; ...'LSODA'"),
    ("FlatObjective", "shape", lambda: popgd.FlatObjective(TASK).fun(np.zeros(5)),
     "x = array([0., 0., 0., 0., 0.]): ...the last axis must be d = 6; ...of shape (..., 6)"),
    ("attention_gap", "shape", lambda: popgd.attention_gap(3.0, 0),
     "alpha = 3.0: needs a last axis of symbols; ...of shape (..., d)"),
    ("attention_gap", "range", lambda: popgd.attention_gap(ZERO, 5),
     "targets[0] = 5: must be in [0, 2]; ...numbered 0 to"),
    ("random_start", "negative", lambda: popgd.random_start(3, -1),
     "scale = -1: must lie in [0, inf); pass a real number"),
    ("Trajectory.load", "type", lambda: popgd.Trajectory.load(3),
     "path = 3: must be a file name; pass a string or a pathlib.Path"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "breaks", "call", "expected"), CASES)
def test_the_message_names_parameter_value_rule_and_remedy(function, breaks, call, expected):
    # the expectation itself has the four parts
    assert re.fullmatch(r"[\w., \[\]']+ = .+: .+; .+", expected)
    with pytest.raises(BadParameter) as caught:
        call()
    message = str(caught.value)
    assert re.match(".*".join(map(re.escape, expected.split("..."))), message), message
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) <= LONGEST


def test_many_functions_and_many_rules_are_covered():
    functions, broken = ({row[i] for row in CASES} for i in (0, 1))
    assert len(CASES) >= 40
    assert len(functions) >= 12
    assert len(broken) >= 8


UNAVAILABLE = {
    "vectors of 10^12 weights": (
        lambda: popgd.PopulationRisk(Occurrence(10**12)),
        r"d = 10{12}: more than 10{7} symbols are not held as vectors; use popgd.symmetric, ",
    ),
    "several heads over 10^12 symbols": (
        lambda: MultiHeadRisk(Occurrence(10**12)),
        r"d = 10{12}: more than 10{7} symbols are not held as vectors; use popgd.symmetric, ",
    ),
    "a certified gap beyond the doubles": (
        lambda: certified.moments(HUGE, 5),
        r"alpha: an attention weight or gap beyond 1e308 has no grid; take the limit, gap = inf",
    ),
    "a certified gap that no ball encloses": (
        lambda: certified.moments("exp(exp(exp(9)))", 5),
        r"alpha: an attention weight or gap beyond 1e308 has no grid; take the limit, gap = inf",
    ),
}


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_what_is_out_of_reach_is_refused_with_another_route(name):
    call, pattern = UNAVAILABLE[name]
    with pytest.raises(NotAvailable, match=pattern):
        call()


@pytest.mark.parametrize(
    "value", [HUGE, -HUGE, 10**5000, Fraction(HUGE, 3)], ids=["+", "-", "++", "/"]
)
@pytest.mark.parametrize(
    "call",
    [
        Geometric, Poisson, FixedLength, Occurrence, popgd.random_start, Phase,
        lambda x: Phase("O", 1, x),
        lambda x: risk([x, 0, 0]),
        lambda x: risk(rtol=x),
        lambda x: symmetric.moments([0, x], 5),
        lambda x: symmetric.moments(0, x),
        lambda x: symmetric.State(0, 0, x, 0),
        lambda x: phases(x, 1),
        lambda x: phases(1, 1, 1, x),
        lambda x: popgd.train(TASK, "O(1x)", until=x),
        lambda x: popgd.train(TASK, "O(1x)", learning_rate=x),
        lambda x: popgd.gradient_flow(TASK, x),
        lambda x: popgd.attention_gap([x, 0], 0),
        lambda x: certified.risk(TASK, ZERO, ZERO, digits=x),
        lambda x: certified.three_phase(x, 1, 1),
    ],
)  # fmt: skip
def test_numbers_of_any_size_are_refused_on_purpose(call, value):
    with pytest.raises(PopgdError):
        call(value)


def test_a_residual_finer_than_beta_is_kept():
    fine = risk(beta=[2, 0, 0], residual=[1e-30])
    assert risk(beta=np.nextafter([2.0, 0, 0], 3), residual=[0.0]) == risk(beta=[2, 0, 0])
    assert math.isfinite(fine)


def test_a_run_that_goes_far_out_and_comes_back_agrees_with_itself():
    plan = "O(12x, lr=25) -> O(3000x, lr=1)"
    run = popgd.train(TASK, plan, path="general")
    assert np.abs(run.alpha).max() == 0
    assert run.risk.max() > 1e12
    assert run.final.beta[0] - 2.0 == pytest.approx(run.final.residual[0], abs=1e-9)
    assert FULL.value(*run.final) == pytest.approx(FULL.minimize_output(ZERO).value, rel=1e-6)


def test_masked_arrays_without_a_masked_entry_are_arrays():
    assert risk(np.ma.array(ZERO), np.ma.array(ZERO)) == risk(ZERO, ZERO)


def test_exact_integers_and_fractions_are_weights():
    half = Fraction(1, 2)
    assert risk([half, 0, 0], [10**20, 0, half]) == risk([0.5, 0, 0], [1e20, 0, 0.5])
