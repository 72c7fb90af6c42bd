"""Corollary 1 on drawn words: the trial itself by plain steps, its statistics, its claim."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from typer.testing import CliRunner

from popgd import EmpiricalRisk, Occurrence, PopulationRisk, Tiers, sample_words
from proofs_check import collect
from proofs_check.__main__ import app
from proofs_check.claims import cor1_trials
from proofs_check.judge import judge
from proofs_check.trial_run import run_trials
from proofs_check.trial_searches import half_point, required_rate, smallest_constant
from proofs_check.trial_statistics import Interval, clopper_pearson, fit, median
from proofs_check.trials import Setting, Trials, phase_3
from proofs_check.verdict import Verdict

PLAIN_STEPS = 1e-10
"""Hundreds of gradient steps in doubles against one eigendecomposition."""


@pytest.mark.parametrize("n", [3, 40, 400])
def test_phase_3_is_plain_gradient_descent(n):
    # n = 3: most symbols do not occur, so the Hessian is singular
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, 8))
    risk = EmpiricalRisk(sample_words(Occurrence(8), n, rng))
    found, residual = phase_3(risk, alpha, beta, [0], 200)
    for _ in range(200):
        beta = beta - risk.value_and_gradient(alpha, beta).beta
    assert found == pytest.approx(beta, abs=PLAIN_STEPS)
    assert residual == pytest.approx(beta[[0]] - 2, abs=PLAIN_STEPS)


def test_a_trial_is_the_three_phases_written_out():
    setting = Setting(5, 0.5, eta1=0.7)
    run = Trials(setting, 3, rng=4)
    eta2 = setting.second_step(1.5)
    found = run.risks(30, 20, eta2)
    zero = np.zeros(5)
    for k in range(3):
        first, third = EmpiricalRisk(run.words(k, 0, 30)), EmpiricalRisk(run.words(k, 1, 20))
        beta = -0.7 * first.value_and_gradient(zero, zero).beta
        alpha = -eta2 * first.value_and_gradient(zero, beta).alpha
        for _ in range(144):
            beta = beta - third.value_and_gradient(alpha, beta).beta
        truth = PopulationRisk(run.task).value(alpha, beta)
        assert found[k] == pytest.approx(truth, rel=1e-9)


def test_sizes_are_those_printed():
    setting = Setting(10, 0.01)
    assert setting.first(4) == np.ceil(40 * np.log(10))
    assert setting.third(4) == np.ceil(400 * np.log(10))
    assert setting.second_step(2) == pytest.approx(200 * np.log(1000))
    assert setting.steps == 7200
    assert Setting(10, 0.1).steps == 720


def test_words_do_not_depend_on_what_was_asked_before(monkeypatch):
    import proofs_check.trials as module

    a, b = Trials(Setting(6, 0.1), 2), Trials(Setting(6, 0.1), 2)
    a.words(1, 0, 10)
    few = a.words(1, 0, 700)
    monkeypatch.setattr(module, "HELD", 0)
    many = b.words(1, 0, 3000)
    assert (few.counts == many.counts[:700]).all()
    assert (a.words(0, 0, 50).counts != a.words(1, 0, 50).counts).any()
    assert (a.words(0, 0, 50).counts != a.words(0, 1, 50).counts).any()


def test_attention_wider_than_doubles_becomes_tiers():
    run = Trials(Setting(4, 0.1), 4)
    risks = run.risks(20, 20, 1e5)
    for k in range(4):
        alpha, beta = run.attention(k, 20, 1e5)
        order = np.argsort(np.argsort(alpha))
        limit = Tiers(order)
        third = EmpiricalRisk(run.words(k, 1, 20))
        after, residual = phase_3(third, limit, beta, [0], 720)
        truth = run.population.value(limit, after, residual)
        if np.diff(np.sort(alpha)).min() > 80:
            assert risks[k] == pytest.approx(truth, rel=1e-9)
    assert np.isfinite(risks).all()


def test_more_words_succeed_more_often():
    run = Trials(Setting(10, 0.1), 40)
    assert run.successes(0.2) < run.successes(1.0) <= run.successes(4.0) == 40


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(deadline=None)
def test_clopper_pearson_against_scipy(pair):
    k, n = pair
    found = clopper_pearson(k, n, 0.99)
    truth = binomtest(k, n).proportion_ci(0.99, method="exact")
    assert (found.low, found.high) == pytest.approx((truth.low, truth.high), abs=1e-10)
    assert found.value == k / n


def test_the_median_interval_covers():
    rng = np.random.default_rng(0)
    covered = [
        i.low <= 1 <= i.high for i in (median(rng.lognormal(size=35), 0.9) for _ in range(600))
    ]
    covered_2 = [i.low <= np.log(2) <= i.high
                 for i in (median(rng.exponential(size=36), 0.9) for _ in range(600))]  # fmt: skip
    assert 0.88 <= np.mean(covered) <= 0.97
    assert 0.88 <= np.mean(covered_2) <= 0.97
    assert median([1.0, np.inf], 0.95).high == np.inf


def test_an_exponent_is_recovered_with_its_interval():
    x = np.array([5.0, 10, 20, 50, 100])
    noise = np.random.default_rng(0).normal(size=(300, 5)) * 0.1
    inside = []
    for row in noise:
        y = 3 * x**0.7 * np.exp(row)
        line = fit(x, [Interval(v, v * np.exp(-0.196), v * np.exp(0.196)) for v in y])
        inside.append(line.exponent.low <= 0.7 <= line.exponent.high)
    assert 0.93 <= np.mean(inside) <= 1
    assert fit([1.0, 2.0], [Interval(1, 0.5, 2), Interval(1, 0.5, 2)]) is None
    line = fit([1.0, 2, 4, 8], [Interval(v, 0.9 * v, v / 0.9) for v in (1, 2, 4, np.inf)])
    assert line.exponent.value == pytest.approx(1)


def test_the_smallest_constant_is_bracketed():
    found = smallest_constant(Setting(10, 0.1), trials=60, rng=1)
    assert found.required == required_rate(10, 1) == pytest.approx(0.7)
    assert found.fails < found.value <= found.works
    assert found.rates[found.value].value >= 0.7
    assert found.rates[found.works].low >= 0.7
    assert found.rates[found.fails].high < 0.7
    assert smallest_constant(Setting(10, 0.1), trials=60, rng=1) == found
    assert smallest_constant(Setting(3, 0.1), trials=5).value == 0


def test_half_of_the_trials_succeed_at_the_half_point():
    setting = Setting(10, 0.1)
    found = half_point(setting, trials=80, rng=2)
    run = Trials(setting, 80, rng=2)
    eta2 = setting.second_step(found.constant)
    low, high = (
        (run.risks(max(int(n), 1), None, eta2) <= 0.1).mean()
        for n in (found.words.low / 1.5, found.words.high * 1.5)
    )
    assert low < 0.5 < high


def test_results_do_not_depend_on_the_workers():
    arguments = {"trials": 8, "dimensions": (3, 4, 5), "risks": (0.5,), "rng": 3}
    one, two = (run_trials(**arguments, workers=n) for n in (1, 2))
    assert (one.constants, one.halves) == (two.constants, two.halves)
    assert one.missing == ()
    json.dumps(one.as_dict(), default=str)


def test_a_budget_leaves_settings_out_and_says_which():
    found = run_trials(4, (3, 5), (0.5,), budget=0.0)
    assert len(found.missing) == 4
    assert found.summary().half is None
    # nothing was tried, so there is no constant to report
    assert found.summary().constant is None
    assert all(name.endswith("eps = 0.5") for name in found.missing)


def test_the_claim_is_not_falsified_and_too_few_words_fail_it():
    (claim,) = cor1_trials.CLAIMS
    outcome = collect.run_here(claim, "quick")
    assert outcome.verdict is Verdict.NOT_FALSIFIED
    assert outcome.counts["outside"] == 1
    point = next(p for p in claim.grid("quick") if p.d == 10)
    inside = judge(claim, point)
    assert inside.verdict is Verdict.HOLDS
    starved = {"d": 50, "eps": "0.1", "eta1": "1", "C": 1, "c": 8, "trials": 50}
    assert judge(claim, type(point)(**starved)).verdict is Verdict.UNDECIDED


def test_rates_below_what_is_claimed_fail(monkeypatch):
    (claim,) = cor1_trials.CLAIMS
    monkeypatch.setattr(cor1_trials, "_rate", lambda *a: clopper_pearson(50, 100, 0.999))
    point = next(p for p in claim.grid("quick") if p.d == 10)
    verdict = judge(claim, point).verdict
    # 0.5 +- 0.16 against 0.7
    assert verdict is Verdict.FAILS


def test_command():
    arguments = ["trials", "--trials", "6", "-d", "4", "--eps", "0.5", "--workers", "1"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Smallest C, 6 trials from seed 0" in result.output
    result = CliRunner().invoke(app, [*arguments, "--json"])
    data = json.loads(result.output)
    assert data["rng"] == 0
    assert len(data["constants"]) == len(data["halves"]) == 1
    assert CliRunner().invoke(app, ["trials", "--eps", "2"]).exit_code == 2
