"""Promises of the plan language: it reads back what it writes, and errors name the place."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popgd.errors import BadParameter
from popgd.plans import Phase, Plan

RATES = st.none() | st.floats(1e-300, 1e300)
COUNTS = st.none() | st.integers(0, 10**18)
PHASES = st.builds(Phase, st.sampled_from(["O", "A", "J"]), COUNTS, RATES)
PLANS = st.lists(PHASES | st.just(Phase("O", math.inf)), min_size=1, max_size=6).map(Plan)


@given(PLANS)
def test_a_plan_reads_back_what_it_writes(plan):
    assert Plan.parse(plan.to_string()) == plan
    assert Plan.parse(plan.to_string().replace("->", "→")) == plan


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        ("O(1x) -> A(1x) -> O(200x)", [Phase("O", 1), Phase("A", 1), Phase("O", 200)]),
        ("A -> O", [Phase("A"), Phase("O")]),
        ("joint", [Phase("J")]),
        (" J ( 1000 x ) ", [Phase("J", 1000)]),
        ("output(3)->ATTENTION(2)", [Phase("O", 3), Phase("A", 2)]),
        ("O(inf)", [Phase("O", math.inf)]),
        ("O(1e6x)", [Phase("O", 10**6)]),
        ("O(lr=.5)", [Phase("O", None, 0.5)]),
        ("O(99999999999999999x)", [Phase("O", 99999999999999999)]),
        (
            "O(1x, lr=2.5) → A(1x, lr=5e4) → O(200x, learning_rate=1)",
            [Phase("O", 1, 2.5), Phase("A", 1, 5e4), Phase("O", 200, 1.0)],
        ),
    ],
)
def test_the_plan_language(text, phases):
    assert list(Plan.parse(text)) == phases


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("", "the end at position 0", "write O (output), A (attention) or J (joint)"),
        ("B(1x)", "'B' at position 0", "write O (output)"),
        ("O(1x) -> ", "the end at position 9", "write O (output)"),
        ("O(1x) => A", "'=' at position 6", 'write for example "O(1x) -> A(1x)'),
        ("O(1x) A(1x)", "'A' at position 6", "->"),
        ("O(1x", "the end at position 4", "write for example O(10x, lr=0.5)"),
        ("A(1.5x)", "'1' at position 2", "write for example A(10x)"),
        ("A(-3x)", "'-' at position 2", "A alone for steps until convergence"),
        ("O(1x, lr=0)", "'0' at position 9", "lr=2.5"),
        ("O(1x, lr=nan)", "'n' at position 9", "lr=2.5"),
        ("O(1x, 2x)", "'2' at position 6", "O(10x, lr=0.5)"),
        ("O(lr=1, 5x)", "'5' at position 8", "O(10x, lr=0.5)"),
        ("A(inf)", "'A' at position 0", "O(inf)"),
        ("O(inf, lr=1)", "'O' at position 0", "O(inf)"),
    ],
)
def test_errors_name_the_place_and_the_way_out(text, place, remedy):
    with pytest.raises(BadParameter) as error:
        Plan.parse(text)
    assert place in str(error.value)
    assert remedy in str(error.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Phase("X", 1), "is no layer; choose 'O'"),
        (lambda: Phase("O", -1), "pass an integer >= 0"),
        (lambda: Phase("O", True), "a bool is not an integer"),
        (lambda: Phase("O", math.nan), "must be an integer"),
        (lambda: Phase("A", math.inf), "only an output phase has an exact minimum"),
        (lambda: Phase("O", 1, -1.0), "step size > 0"),
        (lambda: Phase("O", 1, math.inf), "step size > 0"),
        (lambda: Phase("O", math.inf, 1.0), "takes no steps"),
        (lambda: Plan([]), "non-empty sequence of Phase"),
        (lambda: Plan("O"), "use Plan.parse"),
        (lambda: Plan.of(3), "must be text, a Plan or phases"),
        (lambda: Plan.of([1, 2]), "must be text, a Plan or phases"),
        (lambda: Plan.parse(3), "must be text or a Plan"),
        (lambda: Plan.parse("O") * 0, "times = 0"),
    ],
)
def test_malformed_phases_and_plans(call, words):
    with pytest.raises(BadParameter) as error:
        call()
    assert words in str(error.value)


def test_plans_concatenate_and_repeat():
    plan = 3 * Plan.parse("O(1x) -> A(1x)") + "O"
    assert plan.to_string() == " -> ".join(["O(1x) -> A(1x)"] * 3 + ["O"])
    assert (plan + Phase("J", 2))[-1].layer == "J"


def test_a_schedule_is_shown_by_its_name():
    def cosine(step):
        return 1.0

    assert Phase("O", 5, cosine).to_string() == "O(5x, lr=cosine)"
