"""Phase diagrams: pixels are three-phase training, labels are proved, boundaries are solved."""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from popgd import certified_symmetric, symmetric
from popgd.ball import ball, compare, lower, precision, sign, to_float, upper
from popgd.boundaries import boundary_curves, theorem_line, turning_point
from popgd.diagram import REGIMES, phase_diagram
from popgd.diagram_proof import MOMENT_BOUND
from popgd.diagram_tiles import table
from popgd.errors import BadParameter

CLOSE = 1e-11
# (1 - eta lambda)^(2T) is conditioned like 2 T eta lambda
EXPONENT = 1e-13
SIZES = (3, 4, 50, 10**6, 10**12)
LENGTHS = (math.inf, 0, 1, 1000, 10**12)
SUCCESS, TOO_SHORT, TURNED_AWAY, TOO_WEAK, DIVERGED = range(5)


def rates(d, n=61):
    """Twelve decades of each learning rate around where something happens."""
    return np.geomspace(1e-6, 1e6, n) * math.sqrt(d), np.geomspace(1e-6, 1e6, n) * d**1.5


def enclosed(d, eta1, eta2, eta3, steps, bits=120):
    count = steps if math.isinf(steps) else int(steps)
    with precision(bits + 2 * (0 if math.isinf(steps) else int(count).bit_length())):
        return certified_symmetric.three_phase(d, ball(eta1), ball(eta2), ball(eta3), count)


@pytest.fixture(scope="module", params=SIZES, ids=lambda d: f"d{d}")
def plane(request):
    return phase_diagram(request.param, *rates(request.param), steps=1000, epsilon=[0.5, 0.01])


def test_two_hundred_pixels_are_three_phase_training(plane):
    rng = np.random.default_rng(1)
    d = int(plane.d[0])
    i, j = rng.integers(0, 61, (2, 200))
    eta1, eta2 = plane.eta1.values[i], plane.eta2.values[j]
    direct = symmetric.three_phase(d, eta1, eta2, 1.0, 1000)
    allowed = CLOSE + EXPONENT * 2 * 1000 * direct.lambda_max
    for name, truth in (
        ("risk_2", direct.risks[1]),
        ("risk_3", direct.risks[2]),
        ("floor", direct.floor),
    ):
        found = plane[name].values[0, i, j]
        assert (np.abs(found - truth) <= allowed * truth + 1e-300).all(), name
    np.testing.assert_allclose(plane.gap.values[0, i, j], direct.gap, rtol=1e-14)
    np.testing.assert_allclose(plane.risk_1.values[0, i], direct.risks[0], rtol=1e-14)
    steps = direct.steps_to_reach(0.01)
    found = plane.steps_to_epsilon.values[0, i, j, 1]
    assert (np.isinf(steps) == np.isinf(found)).all()
    finite = np.isfinite(steps)
    # a count is a rounded real number: rounding may turn on the last digit of the risk
    assert (np.abs(found[finite] - steps[finite]) <= 1 + 1e-10 * steps[finite]).all()


def test_pixels_lie_in_enclosures_within_their_proved_bounds(plane):
    rng = np.random.default_rng(2)
    d = int(plane.d[0])
    for i, j in rng.integers(0, 61, (25, 2)):
        run = enclosed(d, float(plane.eta1[i]), float(plane.eta2[j]), 1.0, 1000)
        risk, bound = float(plane.risk_3[0, i, j]), float(plane.risk_3_bound[0, i, j])
        with precision(120):
            # the whole enclosure lies within the bound of the float
            assert compare(upper(run.risks[3]), ball(risk) + ball(bound)) != 1
            assert compare(lower(run.risks[3]), ball(risk) - ball(bound)) != -1
        gap = to_float(run.gap)
        assert float(plane.gap[0, i, j]) == pytest.approx(gap, rel=1e-12)
        assert risk == pytest.approx(to_float(run.risks[3]), rel=CLOSE, abs=1e-290)


def test_the_proved_bounds_are_sharp_enough_to_decide(plane):
    decided = plane.proved.mean(("eta1", "eta2"))
    assert (decided >= 0.99).all()
    inside = (plane.risk_3 > 1e-250) & (np.abs(plane.gap) < 100)
    relative = (plane.risk_3_bound / plane.risk_3).values[inside.values]
    assert np.median(relative) < 1e-8


@pytest.mark.parametrize("d", [2, *SIZES])
@pytest.mark.parametrize("eta3", [0.0, 0.5, 2.0, 3.0, 4.0, 4.1])
@pytest.mark.parametrize("steps", [1, 10**12])
def test_other_rates_of_phase_3_are_decided_too(d, eta3, steps):
    # eta3 lambda is 1 or 2 up to rounding over wide areas
    plane = phase_diagram(d, *rates(d), steps=steps, epsilon=[0.3, 1e-8], eta3=eta3)
    assert (plane.proved.mean(("eta1", "eta2")) >= 0.99).all()


def test_labels_follow_their_definition(plane):
    for k, epsilon in enumerate(plane.epsilon.values):
        risk, floor, gap = plane.risk_3.values, plane.floor.values, plane.gap.values
        label = plane.regime.values[..., k]
        assert ((label == SUCCESS) == (risk <= epsilon)).all()
        assert ((label == TOO_SHORT) == ((risk > epsilon) & (floor <= epsilon))).all()
        lost = (risk > epsilon) & (floor > epsilon)
        assert ((label == TURNED_AWAY) == (lost & (gap < 0))).all()
        assert ((label == TOO_WEAK) == (lost & (gap >= 0))).all()
        steps = plane.steps_to_epsilon.values[..., k]
        sure = plane.proved.values[..., k]
        assert ((steps <= 1000) == (label == SUCCESS))[sure].all()
        assert (np.isinf(steps) == (label >= TURNED_AWAY))[sure].all()


@given(
    d=st.sampled_from(SIZES),
    eta1=st.floats(-6, 6),
    eta2=st.floats(-6, 6),
    eta3=st.sampled_from([0.0, 0.3, 1.0, 1.999, 2.0, 3.0, 3.9, 4.0, 4.0 + 1e-9, 4.1]),
    steps=st.sampled_from(LENGTHS),
    epsilon=st.sampled_from([0.6, 0.3, 1e-2, 1e-9]),
)
@example(d=3, eta1=0.2, eta2=6.0, eta3=4.0, steps=1000, epsilon=0.01)
@example(d=50, eta1=-1.0, eta2=2.0, eta3=2.0, steps=1, epsilon=1e-2)
@example(d=3, eta1=0.0, eta2=2.0, eta3=3.0, steps=1000, epsilon=1e-9)
@example(d=50, eta1=0.0, eta2=1.5, eta3=4.0 + 1e-9, steps=1000, epsilon=0.3)
@settings(max_examples=60, deadline=None)
def test_a_proved_label_is_the_label_of_the_enclosure(d, eta1, eta2, eta3, steps, epsilon):
    rate1, rate2 = 10**eta1 * math.sqrt(d), 10**eta2 * d**1.5
    pixel = phase_diagram(d, rate1, rate2, steps=steps, epsilon=epsilon, eta3=eta3).squeeze()
    if not bool(pixel.proved):
        return
    run = enclosed(d, rate1, rate2, eta3, steps)
    with precision(200):
        # 2 - eta3 lambda_max through 1/2 - lambda_max: both may be tiny
        margin = sign((2 - ball(eta3) / 2) + ball(eta3) * run.deficit)
        if margin == -1 and steps > 0:
            assert int(pixel.regime) == DIVERGED
            return
        if eta3 == 0 and math.isinf(steps):
            return  # no limit to compare with
        reached = compare(run.risks[3], epsilon)
        reachable = compare(run.minimum, epsilon)
        away = compare(run.gap, 0)
    truth = TURNED_AWAY if away == -1 else TOO_WEAK
    truth = TOO_SHORT if reachable == -1 else truth
    truth = SUCCESS if reached == -1 else truth
    assert int(pixel.regime) == truth


@given(d=st.sampled_from((2, *SIZES)), gap=st.floats(-70, 70))
@example(d=3, gap=-0.0625)
@example(d=50, gap=0.0)
@settings(max_examples=60, deadline=None)
def test_the_table_keeps_its_proved_bound(d, gap):
    found = table(d)(gap, scaled=True)
    with precision(160):
        truth = certified_symmetric.moments(ball(gap), d)
        grow = ball(abs(gap)).exp()
        powers = (0, 1, 2, 1, 2) if gap >= 0 else (0, 1, 0, 2, 1)
        for value, exact, power in zip(found, truth, powers):
            exact = exact * grow**power
            assert compare(abs(ball(value) - exact), MOMENT_BOUND * abs(exact)) != 1


def test_undecided_on_the_boundary_itself():
    curve = boundary_curves(50, 1.0, 0.01, steps=1000, certify=False)
    eta2 = float(curve.eta2.squeeze())
    pixels = phase_diagram(50, 1.0, eta2 * np.array([0.999, 1.0, 1.001]), steps=1000).squeeze()
    assert pixels.proved.values.tolist() == [True, False, True]
    assert pixels.regime.values[[0, 2]].tolist() == [TOO_WEAK, SUCCESS]


def test_divergence_precedes_everything():
    plane = phase_diagram(50, [1.0], [1e2, 3e4], steps=1000, eta3=4.1).squeeze()
    # lambda_max grows from below 2/4.1 to 1/2 as attention concentrates
    assert plane.regime.values[1] == DIVERGED
    assert np.isinf(plane.risk_3.values[1])
    assert plane.proved.all()
    assert phase_diagram(50, 1.0, 3e4, steps=0, eta3=4.1).regime.squeeze() != DIVERGED


@pytest.mark.parametrize("d", [2, *SIZES])
def test_extremes_have_numbers(d):
    wide = [0.0, 5e-324, 1e-150, 1.0, 1e150, 1e308]
    for steps in LENGTHS:
        plane = phase_diagram(d, wide, wide, steps=steps, epsilon=[1e-300, 1e300])
        for name in ("risk_2", "risk_3", "floor", "gap", "steps_to_epsilon"):
            missing = plane[name].isnull()
            # only a product that overflows has no number
            huge = (plane.eta1 >= 1e150) & (plane.eta1 * 0 + plane.eta2 * 0 == 0)
            assert not (missing & ~huge).any(), name
        assert not plane.proved.where(plane.risk_3.isnull(), False).any()


def test_several_alphabets_targets_and_executors_agree():
    eta1, eta2 = np.geomspace(0.01, 100, 7), np.geomspace(1, 1e6, 9)
    whole = phase_diagram([3, 50], eta1, eta2, steps=100, epsilon=[0.3, 0.01])
    assert whole.regime.dims == ("d", "eta1", "eta2", "epsilon")
    part = phase_diagram(50, eta1, eta2, steps=100, epsilon=0.01)
    assert part.regime.dims == ("d", "eta1", "eta2", "epsilon")
    chosen = whole.sel(d=[50], epsilon=[0.01])
    for name in part.data_vars:
        np.testing.assert_array_equal(part[name], chosen[name])
    with ThreadPoolExecutor(2) as pool:
        again = phase_diagram([3, 50], eta1, eta2, steps=100, epsilon=[0.3, 0.01], executor=pool)
    assert again.identical(whole)


def test_attributes_say_what_and_how():
    plane = phase_diagram(50, [1.0], [1.0])
    assert plane.attrs["popgd_version"]
    assert '"eta3": 1.0' in plane.attrs["parameters"]
    assert plane.regime.attrs["flag_meanings"].split() == list(REGIMES)
    assert all("long_name" in v.attrs and "units" in v.attrs for v in plane.variables.values())


@pytest.mark.parametrize("d", [2, 3, 4, 50, 1000, 10**6])
def test_accuracy_is_that_of_the_states(d):
    eta1, eta2 = np.geomspace(1e-3, 10, 8) * d, np.geomspace(1e-4, 1e2, 9) * d
    plane = phase_diagram(d, eta1, eta2, steps=40, accuracy=True).squeeze()
    direct = symmetric.three_phase(d, eta1[:, None], eta2, 1.0, 40)
    _, second, third = direct.accuracies
    # near a threshold rounding of the weights decides; none of these pixels is
    np.testing.assert_allclose(plane.accuracy_2, second, atol=2e-13)
    np.testing.assert_allclose(plane.accuracy_3, third, atol=2e-13)


def test_accuracy_after_two_phases_can_be_one_half_and_one():
    plane = phase_diagram(50, [1.0, 49.0], [1e2, 1e5], accuracy=True).squeeze()
    assert plane.accuracy_2.values[0, 1] == pytest.approx(0.5, abs=1e-9)
    assert plane.accuracy_2.values[1, 1] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(d=1), "d = 1: must be in"),
        (dict(d=[]), "d = \\[\\]: is empty"),
        (dict(d=2.5), "must be an integer"),
        (dict(eta1=-1.0), "eta1.*every entry must lie"),
        (dict(eta2=[math.nan]), "eta2.*holds NaN"),
        (dict(eta2=[]), "eta2.*non-empty 1-D"),
        (dict(eta2=np.ones((2, 2))), "must be a number or a non-empty 1-D"),
        (dict(epsilon=0.0), "every target must be > 0"),
        (dict(steps=1.5), "steps = 1.5: must be a whole number"),
        (dict(steps=-1), "steps = -1: must lie in"),
        (dict(eta3=math.inf), "eta3 = inf"),
        (dict(executor=3), "executor = 3: is no executor"),
        (dict(eta1=np.ones(10**5), eta2=np.ones(10**5)), "more than 32 GB"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(BadParameter, match=message):
        phase_diagram(**({"d": 50, "eta1": 1.0, "eta2": 1.0} | arguments))


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("steps", [math.inf, 1000])
def test_boundaries_are_bracketed_by_enclosures(d, steps):
    eta1 = np.geomspace(1e-6, 1.6, 9) * d
    curve = boundary_curves(d, eta1, [0.3, 1e-2, 1e-6], steps=steps)
    solved = curve.status == 0
    assert solved.any()
    assert curve.bracketed.where(solved, True).all()
    assert bool(curve.turn_bracketed[0])
    assert curve.eta2.where(curve.status == 2, drop=True).isnull().all()


def test_boundaries_where_the_largest_eigenvalue_is_a_half_up_to_1e_50():
    curve = boundary_curves([3, 50], 0.01, 1e-100, eta3=4.0)
    assert (curve.status == 0).all()
    assert curve.bracketed.all()


def test_nothing_below_the_boundary_succeeds():
    d, steps = 50, 1000
    curve = boundary_curves(d, [0.1, 1.0, 30.0], 0.01, steps=steps, certify=False)
    for eta1, eta2 in zip(curve.eta1.values, curve.eta2.values.ravel()):
        below = phase_diagram(d, eta1, np.geomspace(1e-4, 1 - 1e-9, 400) * eta2, steps=steps)
        assert (below.regime != SUCCESS).all()


@pytest.mark.parametrize("steps", [4, 10, 100])
def test_success_close_to_the_last_rate_is_not_called_impossible(steps):
    # the gap that suffices grows like ln(1/distance) and once left the scan
    end = float(boundary_curves(50, 1.0, 0.01, steps=steps, certify=False).eta1_end[0, 0, 1])
    inside = boundary_curves(50, end * (1 - np.array([1e-5, 1e-10])), 0.01, steps=steps)
    assert (inside.status == 0).all()
    assert bool(inside.bracketed[0, 0, 0])
    for eta1, eta2 in zip(inside.eta1.values, inside.eta2.values.ravel()):
        assert int(phase_diagram(50, eta1, 2 * eta2, steps=steps).regime.item()) == SUCCESS
    beyond = boundary_curves(50, end * (1 + 1e-9), 0.01, steps=steps)
    assert int(beyond.status.item()) == 2
    assert beyond.end_bracketed.values.ravel().tolist() == [False, True]


def test_a_proved_success_is_on_the_curve():
    eta1 = 9.144199192624882
    pixel = phase_diagram(50, eta1, 2650.0, steps=4)
    assert int(pixel.regime.item()) == SUCCESS
    assert bool(pixel.proved.item())
    curve = boundary_curves(50, eta1, 0.01, steps=4)
    assert int(curve.status.item()) == 0
    assert curve.eta2.item() <= 2650


def test_both_ends_of_the_rates_that_suffice():
    def ends(d, epsilon, steps):
        curve = boundary_curves(d, 1.0, epsilon, steps=steps)
        return curve.eta1_end.values.ravel(), curve.end_bracketed.values.ravel().tolist()

    # without phase 3 small rates leave the target's weight near zero
    found, proved = ends(50, 0.6, 0)
    assert math.isfinite(found[0])
    assert proved[0]
    # at d = 10^12 and T = 10^12 the slow factor is e^-1, whose digits 1 - 1/(2(d-1)) has lost
    found, proved = ends(10**12, 0.1, 10**12)
    assert proved == [False, True]
    # what is left of both directions underflows
    assert np.isnan(ends(3, 0.1, 10**9)[0]).all()
    assert np.isnan(ends(3, 1e-9, 1270)[0]).all()
    # any rate suffices in the limit
    assert np.isnan(ends(50, 0.01, math.inf)[0]).all()


def test_a_bracket_off_by_little_is_not_proved():
    from popgd.boundaries import _bracketed, _turn_bracketed

    eta2 = float(boundary_curves(50, 1.0, 0.01, certify=False).eta2.squeeze())
    assert _bracketed(50, 1.0, eta2, 1.0, math.inf, 0.01)
    for wrong in (1 - 3e-10, 1 + 3e-10):
        assert not _bracketed(50, 1.0, eta2 * wrong, 1.0, math.inf, 0.01)
        assert not _turn_bracketed(50, turning_point(50) * wrong)


def test_turning_points():
    assert turning_point(3) / 3 == pytest.approx(1.694, abs=5e-4)
    assert turning_point(10**12) / 10**12 == pytest.approx(2, abs=1e-9)
    assert turning_point(2) == math.inf
    for d in (3, 50, 10**6):
        for side in (1 - 1e-9, 1 + 1e-9):
            gap = symmetric.three_phase(d, side * turning_point(d), 1.0).gap
            assert (gap > 0) == (side < 1)


def test_the_theorems_line():
    assert theorem_line(50, 2.0, 0.01) == pytest.approx(1250 * math.log(5000), rel=1e-15)
    assert theorem_line(50, [1.0, 2.0], 0.01, 3.0).shape == (2,)
    with pytest.raises(BadParameter, match="eta1"):
        theorem_line(50, 0.0, 0.01)


def test_a_boundary_needs_no_eta2_where_uniform_attention_suffices():
    curve = boundary_curves(3, 1.0, [0.5, 0.01], certify=False)
    assert curve.status.values.ravel().tolist() == [1, 0]
    assert float(curve.eta2[0, 0, 0]) == 0
    assert float(Fraction(float(curve.eta2[0, 1, 0]))) > 0
    beyond = boundary_curves(50, 100.0, 0.01, certify=False)
    assert int(beyond.status.squeeze()) == 2
    assert math.isnan(beyond.eta2.squeeze())
