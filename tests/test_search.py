"""The search finds what is hidden, at infinity too, counts its effort and repeats itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from popgd import Occurrence, PopulationRisk, Tiers
from popgd.ball import enclose, precision
from popgd.blocks import BlockRisk
from proofs_check import block_points, collect, hunts
from proofs_check.claim import Claim, Hypothesis, Sides
from proofs_check.judge import judge
from proofs_check.minima import Layout, Minima, attention_step, widest_tiers
from proofs_check.point import Point
from proofs_check.search import Candidate, search
from proofs_check.search_problems import (
    AttentionAt,
    AttentionFirst,
    AttentionOnly,
    EveryTarget,
    LazyHeads,
    OutputOnly,
)
from proofs_check.search_starts import attention, heads
from proofs_check.sought import Sought
from proofs_check.verdict import Kind, Mark, Verdict

KERNEL = 1e-10
"""The search kernels promise 1e-11 absolutely."""


class Hidden:
    """A smooth function of one logit and one plain variable, lowest (-1) at x = 3, y = -2."""

    logits = np.array([True, False])
    bounds = None

    def functions(self, tier, x):
        a, b = x - np.array([3.0, -2.0])
        dip = math.exp(-(a * a + b * b) / 4)
        wave = 0.05 * (1 - math.cos(3 * a))
        slope = np.array([dip * a / 2 + 0.15 * math.sin(3 * a), dip * b / 2])
        return np.array([wave - dip]), slope[None]


class AtInfinity:
    """Falls to 1 as logit 2 rises above the others and logit 0 falls below, never attained.

    A decoy, 1.1, sits at equal logits.
    """

    logits = np.ones(3, dtype=bool)
    bounds = None

    def functions(self, tier, x):
        def step(i, j):
            """1/(1 + e^(x_i - x_j)), its limit across tiers, and the slope in x_i."""
            if tier[i] != tier[j]:
                return (1.0, 0.0) if tier[i] < tier[j] else (0.0, 0.0)
            up = 1 / (1 + math.exp(-(x[j] - x[i])))
            return up, -up * (1 - up)

        (s, ds), (t, dt) = step(1, 2), step(0, 1)
        level = len(set(tier)) == 1
        spread = x - x.mean()
        decoy = 0.9 * math.exp(-2 * spread @ spread) if level else 0.0
        slope = np.array([-dt, dt - ds, ds]) + 4 * decoy * spread
        return np.array([3 - s - t - decoy]), slope[None]


class Corner:
    """The larger of two functions, lowest (2) where they cross at (1, 0)."""

    logits = np.zeros(2, dtype=bool)
    bounds = None

    def functions(self, tier, x):
        a, b = x
        values = np.array([2 + (a - 1) + b * b, 2 - 2 * (a - 1) + b * b])
        return values, np.array([[1.0, 2 * b], [-2.0, 2 * b]])


def test_a_hidden_minimum_is_found():
    rng = np.random.default_rng(0)
    starts = [Candidate.finite(f"random {k}", 3 * rng.normal(size=2)) for k in range(12)]
    log = search(Hidden(), starts, effort=80)
    assert log.best[0].value == pytest.approx(-1, abs=1e-9)
    assert log.best[0].point.x == pytest.approx([3, -2], abs=1e-4)
    assert log.starts == 12
    assert len(log.best) == 5
    assert [f.value for f in log.best] == sorted(f.value for f in log.best)


def test_a_minimum_at_infinity_is_reached_exactly():
    log = search(AtInfinity(), attention(3, random=3), effort=200)
    best = log.best[0]
    assert best.value == 1.0  # the limit itself, not 1 + 1e-9
    assert best.point.tier.tolist() == [0, 1, 2]


def test_without_limits_infinity_is_not_reached():
    """Negative control: the same search with tiers forbidden stays above."""
    problem = AtInfinity()
    problem.logits = np.zeros(3, dtype=bool)
    log = search(problem, [Candidate.finite("drift", [0.0, 2.0, 4.0])], effort=60)
    assert log.best[0].value > 1.0


def test_the_largest_of_several_functions():
    log = search(Corner(), [Candidate.finite("start", [-3.0, 2.0])], effort=100)
    assert log.best[0].value == pytest.approx(2, abs=1e-8)
    assert log.best[0].point.x == pytest.approx([1, 0], abs=1e-4)


def test_effort_is_counted_and_the_search_repeats_itself():
    logs = [search(AtInfinity(), attention(3, random=2), effort=30) for _ in range(2)]
    assert logs[0].to_json() == logs[1].to_json()
    assert logs[0].evaluations <= 30 * logs[0].starts
    assert not logs[0].cut


def test_a_time_budget_only_cuts_and_says_so():
    log = search(AtInfinity(), attention(3, random=2), effort=30, budget=0.0)
    assert log.cut
    assert log.starts == 1
    assert log.evaluations == 0


# Kernels of the search against the library


@pytest.mark.parametrize("sizes", [(1, 2), (2, 3), (1, 1, 4), (1, 1, 1)])
def test_output_minima_and_their_slopes(sizes):
    layout = Layout(sizes)
    rng = np.random.default_rng(1)
    x, tier = rng.normal(size=len(sizes)), rng.integers(0, 2, size=len(sizes))
    member = np.repeat(np.arange(len(sizes)), sizes)
    for orders in (0 * tier, tier):
        value, slope, _ = Minima(layout)(layout.atoms(orders), layout.atoms(x))
        slope = layout.gather(slope)
        for block in range(len(sizes)):
            risk = PopulationRisk(Occurrence(layout.d, int(np.argmax(member == block))))
            attention = Tiers(orders[member], x[member])
            least = risk.minimize_output(attention)
            assert value[block] == pytest.approx(least.value, abs=KERNEL)
            full = risk.value_and_gradient(attention, least.beta, least.residual).alpha
            assert slope[block] == pytest.approx(np.bincount(member, full), abs=KERNEL)


PROBLEMS = [
    (OutputOnly((1, 4)), np.array([0.7, -0.2])),
    (AttentionOnly((1, 3)), np.array([0.1, 1.0, -0.5, 0.2, 0.9, 0.3])),
    (AttentionAt((1, 3), 1, np.array([1.2, 0.4])), np.array([0.3, -0.2, 0.5])),
    (EveryTarget((1, 3)), np.array([1.2, 0.4, 0.1, 0.7, -0.3, 0.2, 0.5, -0.6])),
    (AttentionFirst((1, 5)), np.array([0.5, 2.0, 1.0])),
    (LazyHeads((1, 3), 2, rtol=1e-10), np.array([0.3, 0.0, -0.4, 0.8])),
]


@pytest.mark.parametrize(("problem", "x"), PROBLEMS, ids=lambda p: type(p).__name__)
def test_gradients_of_every_problem(problem, x):
    tier, step = np.zeros(len(x), dtype=int), 1e-4
    _, slopes = problem.functions(tier, x)
    for i, unit in enumerate(np.eye(len(x)) * step):
        rise = problem.functions(tier, x + unit)[0] - problem.functions(tier, x - unit)[0]
        assert slopes[:, i] == pytest.approx(rise / (2 * step), abs=2e-6)


def test_attention_step_is_one_gradient_step():
    layout = Layout((1, 3))
    beta = np.array([0.5, 2.0])
    found = attention_step(Minima(layout), beta)
    member = np.array([0, 1, 1, 1])
    for block, target in ((0, 0), (1, 1)):
        slope = PopulationRisk(Occurrence(4, target)).value_and_gradient(np.zeros(4), beta[member])
        assert found[block, -1] == pytest.approx(-slope.alpha[target], abs=KERNEL)
    assert found[0, 1] == pytest.approx(-slope_of(0, 1, beta[member]), abs=KERNEL)


def slope_of(target, symbol, beta):
    risk = PopulationRisk(Occurrence(len(beta), target))
    return risk.value_and_gradient(np.zeros(len(beta)), beta).alpha[symbol]


def test_wide_gaps_become_tiers():
    tier, x = widest_tiers(np.array([[0.0, 100.0, 101.0, -50.0], [1.0, 2.0, 3.0, 4.0]]))
    assert tier.tolist() == [[1, 2, 2, 0], [0, 0, 0, 0]]
    assert x.tolist() == [[0, 0, 1, 0], [0, 1, 2, 3]]


# What the hunts find


def uniform(d):
    return (1 - (d - 2) / ((d - 1) * math.log(d - 1))) / 2


def test_output_only_finds_the_symbol_at_infinity():
    low, high = hunts.output_only(50, "quick"), hunts.output_only(100, "quick")
    assert low.best.value == pytest.approx(uniform(50), abs=1e-9)
    assert high.best.value < uniform(100) - 5e-4
    assert high.best.point.tier.tolist() == [1, 0]
    exact = max(
        BlockRisk([99]).minimize_output(Tiers([1, 0])).value,
        BlockRisk([1, 98]).minimize_output(Tiers([0, 1, 0])).value,
    )
    assert high.best.value == pytest.approx(exact, abs=KERNEL)


@pytest.mark.parametrize("d", [9, 50])
def test_attention_first_approaches_its_closed_form(d):
    found = hunts.attention_first(d, "quick")
    assert found.best.value == pytest.approx(2 * d * (d - 2) / (3 * d - 4) ** 2, abs=1e-8)


def test_attention_only_stays_above_the_pairing_bound():
    for d, at_most in ((3, 0.5), (50, 0.44)):
        found = hunts.attention_only(d, "quick").best.value
        bound = 1 - 2 * (d * d - 2 * d + 2) ** 2 / (d * (d - 1) * (3 * d * d - 6 * d + 4))
        assert bound < found <= at_most + 1e-9


def test_the_hardest_target_is_no_easier_than_the_one_of_least_output():
    """max over s of inf over alpha is at least the infimum at s = argmin, and attained there."""
    for d in (5, 50):
        argmin = hunts.attention_only(d, "quick").best.value
        every = hunts.every_target(d, "quick").best.value
        assert every == pytest.approx(argmin, abs=1e-7)


def test_every_targets_value_is_that_of_the_library():
    sizes, beta = (1, 2, 2), np.array([0.6, 1.1, 0.9])
    x = np.concatenate([beta, np.linspace(-1, 1, 12)])
    tier = np.concatenate([np.zeros(3, dtype=int), [0, 1, 0, 1, 0, 0, 1, 2, 1, 1, 0, 0]])
    values, _ = EveryTarget(sizes).functions(tier, x)
    point = Point(d=5, sizes=sizes, beta=("0.6", "1.1", "0.9"), tier=tuple(tier[3:].tolist()),
                  alpha=tuple(str(Fraction(v)) for v in x[3:]))  # fmt: skip
    member = np.repeat(np.arange(3), sizes)
    with precision(96):
        enclosed = [enclose(v, 12).to_float() for v in block_points.every_target(point)]
    for block, target in ((0, 0), (1, 1), (2, 3)):
        own, order = x[3:].reshape(3, 4)[block], tier[3:].reshape(3, 4)[block]
        alpha, orders = own[member], order[member]
        alpha[target], orders[target] = own[-1], order[-1]
        risk = PopulationRisk(Occurrence(5, target)).value(Tiers(orders, alpha), beta[member])
        assert values[block] == pytest.approx(risk, abs=KERNEL)
        assert enclosed[block] == pytest.approx(risk, rel=1e-10)


def test_a_harder_target_than_the_argmin_would_be_reported():
    """Negative control: another target's attention is spoilt, and the claim fails."""
    point = Point(d=50, **hunts.target_point(hunts.every_target(50, "quick")))
    beta, n, tier = [Fraction(b) for b in point["beta"]], len(point["sizes"]), list(point["tier"])
    order = sorted(range(n), key=lambda i: beta[i])
    # for the symbol of the largest output: the second largest first, itself never
    spoilt = [1] * n + [0]
    spoilt[order[-2]] = 2
    tier[order[-1] * (n + 1) : (order[-1] + 1) * (n + 1)] = spoilt
    claim = collect.by_id()["prop2.targets"]
    assert judge(claim, point).verdict is Verdict.HOLDS
    assert judge(claim, point.but(tier=tuple(tier))).verdict is Verdict.FAILS


def test_more_heads_help():
    values = [hunts.lazy_heads(3, h, "quick").best.value for h in (1, 2)]
    assert values[1] < values[0] - 0.1


def test_points_found_are_short_decimals_and_enclosed():
    hunt = hunts.attention_only(5, "quick")
    point = Point(d=5, **hunts.output_point(hunt))
    assert all(len(text) <= 12 for text in (*point["alpha"], *point["beta"]))
    with precision(96):
        found = enclose(block_points.attention_only(point), 12)
    assert found.to_float() == pytest.approx(hunt.best.value, abs=1e-8)
    assert found.relative_width < 1e-12


def test_bounds_of_lazy_heads_are_narrow_and_contain_the_estimate():
    zero = ("0",) * 4
    point = Point(d=5, H=2, sizes=(1, 4), alpha=zero, tier=(1, 0, 0, 1))
    low, high = block_points.lazy_heads(point)
    problem = LazyHeads((1, 4), 2, rtol=1e-10)
    value = problem.functions(np.array([1, 0, 0, 1]), np.zeros(4))[0].max()
    assert enclose(high - low, 4).to_float() < 1e-5
    assert enclose(low, 12).to_float() - 1e-8 <= value <= enclose(high, 12).to_float() + 1e-8


def test_starts_have_names_and_cover_the_structures():
    names = [c.name for c in attention(4, random=2)]
    for name in ("uniform", "one-hot", "all equal but one", "two-valued", "geometric scales"):
        assert any(n.startswith(name) for n in names)
    assert sum("infinity" in n for n in names) >= 4
    assert len({n for n in names}) == len(names)
    assert all(c.x.shape == (6,) for c in heads(2, 3))


# Claims with a search


def test_a_point_is_searched_for_only_when_needed():
    calls = []
    point = Sought({"d": 7}, lambda: calls.append(1) or {"x": (1, 2)})
    assert "d" in point
    assert point.d == 7
    assert not calls
    assert point["x"] == (1, 2)
    assert dict(point) == {"d": 7, "x": (1, 2)}
    assert calls == [1]


def planted(bound, strict=False):
    return Claim(
        id="planted.search",
        title="planted",
        mark=Mark.OURS,
        kind=Kind.LOWER_BOUND,
        source="derivation",
        sides=lambda p: Sides(block_points.output_only(p), bound, strict=strict),
        grid=lambda level: [Point(d=50, sizes=(1, 49), alpha=("1", "0"), tier=(0, 0))],
        hypotheses=(Hypothesis("d >= 3"),),
        search=lambda level: [
            Sought({"d": 50}, lambda: hunts.attention_point(hunts.output_only(50, level)))
        ],
    )


def test_a_false_bound_is_falsified_by_the_search_and_a_true_one_is_not():
    # the minimum is 0.37414734...: the grid alone does not show that 0.3742 is too much
    good = collect.run_here(planted(Fraction("0.3741")), "quick")
    bad = collect.run_here(planted(Fraction("0.3742")), "quick")
    assert good.verdict is Verdict.NOT_FALSIFIED
    assert bad.verdict is Verdict.FAILS
    assert bad.counts["holds"] == 1


def test_results_do_not_depend_on_the_threads_of_blas():
    from threadpoolctl import threadpool_limits

    found = []
    for threads in (1, 2):
        hunts.output_only.cache_clear()
        with threadpool_limits(threads, user_api="blas"):
            found.append(collect.run_here(collect.by_id()["prop3"], "quick").rows)
    assert found[0] == found[1]


@pytest.mark.parametrize("id", ["prop2", "prop2.targets", "prop3", "prop4", "thm1", "thm1.uniform"])
def test_what_was_found_is_told_by_dimension(id):
    outcome = collect.run_here(collect.by_id()[id], "quick")
    if id == "thm1":  # its table is that of thm1.uniform, which goes below d = 9
        assert not outcome.rows
        return
    assert outcome.rows[0].point["d"] == 3
    for row in outcome.rows:
        assert row.starts > 0
        assert row.evaluations > 0
        assert 1 <= len(row.best) <= 5
        assert row.words
        for _, bound in row.closed:
            assert bound is None or bound.sign() == 1
    assert "searched: " in outcome.coverage.text


@pytest.mark.parametrize("id", ["prop2", "prop2.targets", "prop3", "prop4", "thm1"])
def test_claims_over_all_weights_are_not_falsified(id):
    outcome = collect.run_here(collect.by_id()[id], "quick")
    assert outcome.verdict is Verdict.NOT_FALSIFIED, outcome.traceback
    assert outcome.sharp is not None
    assert outcome.sharp.value.sign() == 1


@pytest.mark.parametrize("id", ["prop3.sharp", "thm1.uniform"])
def test_uniform_attention_is_not_always_the_best(id):
    from proofs_check.findings import known

    outcome = collect.run_here(collect.by_id()[id], "quick")
    assert outcome.verdict is Verdict.FAILS, outcome.traceback
    assert id in known()
