"""Figures: the data are drawn, nothing global changes, names stay inside the axes."""

import math
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import popgd
from popgd import plots
from popgd.errors import BadParameter

mpl.use("agg")


@pytest.fixture(scope="module")
def plane():
    d = 50
    eta1, eta2 = np.geomspace(1e-4, 10, 60) * d, np.geomspace(0.1, 1e6, 60) * d
    return popgd.phase_diagram(d, eta1, eta2, steps=100, epsilon=[0.01, 0.4])


@pytest.fixture(scope="module")
def curve():
    return popgd.boundary_curves(50, popgd.curve_rates(50, 0.005, 500, 20), 0.01, steps=100)


@pytest.fixture(scope="module")
def run():
    risk = popgd.PopulationRisk(popgd.Occurrence(50))
    return popgd.train(risk, "O(1x) -> A(1x, lr=5e4) -> O(200x)", accuracy=True)


@pytest.fixture
def ax():
    return Figure(figsize=(6.4, 4.6), dpi=60, layout="constrained").subplots()


@pytest.fixture(autouse=True)
def nothing_global_changes():
    from matplotlib import pyplot

    before = dict(mpl.rcParams)
    figures = pyplot.get_fignums()
    yield
    assert dict(mpl.rcParams) == before
    assert pyplot.get_fignums() == figures


def words_in(ax):
    return {text.get_text().replace("\n", " ") for text in ax.texts}


def inside(ax):
    """Everything written lies within the figure, and names within the axes' width."""
    for _ in range(2):  # the first drawing settles the layout
        ax.figure.canvas.draw()
    figure, extent = ax.figure.bbox, ax.get_tightbbox()
    assert figure.x0 <= extent.x0
    assert extent.x1 <= figure.x1 + 1
    assert figure.y0 <= extent.y0
    assert extent.y1 <= figure.y1 + 1
    for text in ax.texts:
        assert ax.bbox.x0 <= text.get_window_extent().x0, text
        assert text.get_window_extent().x1 <= ax.bbox.x1, text


def test_phase_diagram_names_the_regimes_that_are_there(plane, curve, ax):
    assert plots.phase_diagram(plane, ax, boundary=curve) is ax
    assert words_in(ax) == {
        "success",
        "phase 3 too short",
        "attention turned away",
        "attention too weak",
    }
    inside(ax)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {
        r"smallest $\eta_2$ (proved)",
        "attention turns away (proved)",
        "theorem, $C = 1$",
        r"the same beyond $\eta_1 = \sqrt{d}$",
    }


def test_the_border_of_success_is_drawn_to_the_top(plane, ax):
    rates = popgd.curve_rates(50, 0.005, 500, 20, epsilon=0.01, steps=100)
    curve = popgd.boundary_curves(50, rates, 0.01, steps=100)
    plots.phase_diagram(plane, ax, boundary=curve)
    end = float(curve.eta1_end[0, 0, 1])
    (upright,) = [x for x in ax.get_lines() if list(x.get_xdata()) == [end, end]]
    low, high = upright.get_ydata()
    assert high > plane.eta2.max()
    # no gap: it starts where the curve stops
    assert low == curve.eta2.squeeze().where(curve.eta1 < end).dropna("eta1").values[-1]


def test_an_unproved_boundary_is_thin_and_called_so(plane, ax):
    rates = popgd.curve_rates(50, 0.005, 500, 20)
    curve = popgd.boundary_curves(50, rates, 0.01, steps=100, certify=False)
    plots.phase_diagram(plane, ax, boundary=curve, theorem=False)
    names = {text.get_text() for text in ax.get_legend().get_texts()}
    assert names == {r"smallest $\eta_2$", "attention turns away"}
    assert ax.get_lines()[0].get_linewidth() < 1


def many_regimes(steps, epsilon, eta3=1.0):
    eta1, eta2 = np.geomspace(1e-4, 10, 150) * 50, np.geomspace(0.1, 1e6, 150) * 50
    made = {"epsilon": epsilon, "steps": steps, "eta3": eta3}
    rates = popgd.curve_rates(50, eta1[0], eta1[-1], 30, **made)
    return (
        popgd.phase_diagram(50, eta1, eta2, **made),
        popgd.boundary_curves(50, rates, **made, certify=False),
    )


@pytest.mark.parametrize(
    "case", [(100, 0.01), (1, 0.3), (0, 0.6), (1000, 0.01, 4.1), (math.inf, 1e-8)], ids=str
)
def test_names_overlap_neither_each_other_nor_lines_nor_the_legend(case, ax):
    plane, curve = many_regimes(*case)
    plots.phase_diagram(plane, ax, boundary=curve)
    for _ in range(2):
        ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    for line in ax.get_lines():
        if line.get_label() != "attention turns away":
            points = line.get_transform().transform(line.get_xydata())
            points = points[np.isfinite(points).all(axis=1)]
            steps = np.linspace(0, len(points) - 1, 2000)
            dense = [np.interp(steps, np.arange(len(points)), points[:, k]) for k in (0, 1)]
            for box in boxes:
                assert not box.count_contains(np.column_stack(dense)), line.get_label()
    boxes.append(ax.get_legend().get_window_extent())
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
    # every regime is named in the figure or in the legend
    named = words_in(ax) | {text.get_text() for text in ax.get_legend().get_texts()}
    there = {plots.LABELS[k].replace("\n", " ") for k in np.unique(plane.regime)}
    assert there <= named
    inside(ax)


def test_the_title_has_what_was_chosen(ax):
    plane, _ = many_regimes(1000, 0.01, 4.1)
    plots.phase_diagram(plane, ax)
    assert r"$\eta_3 = 4.1$" in ax.get_title()


def test_rates_beyond_what_can_be_drawn_are_refused(ax):
    plane = popgd.phase_diagram(50, [1e-300, 1.0], [1.0, 2.0])
    with pytest.raises(BadParameter, match=r"eta1 = '1e-300 to 1': rates outside"):
        plots.phase_diagram(plane, ax)


def test_colours_differ_in_greyscale():
    from matplotlib.colors import to_rgb

    light = [float(np.dot([0.2126, 0.7152, 0.0722], to_rgb(c))) for c in plots.COLOURS]
    assert (np.diff(light) < -0.1).all()


def test_undecided_cells_are_hatched(plane, ax):
    from matplotlib.contour import QuadContourSet

    doubtful = plane.copy(deep=True)
    doubtful.proved[0, 10:20, 10:20] = False
    plots.phase_diagram(doubtful, ax)
    hatched = [child for child in ax.get_children() if isinstance(child, QuadContourSet)]
    assert len(hatched) == 1
    assert hatched[0].hatches == ["xxxx"]
    other = Figure().subplots()
    plots.phase_diagram(plane, other)
    assert not any(isinstance(child, QuadContourSet) for child in other.get_children())


def test_a_slice_is_chosen_by_value(plane, ax):
    plots.phase_diagram(plane, ax, epsilon=0.4)
    assert "0.4" in ax.get_title()
    with pytest.raises(BadParameter, match=r"epsilon = 0\.2: is not in the diagram"):
        plots.phase_diagram(plane, ax, epsilon=0.2)
    curve = popgd.boundary_curves(51, 1.0, 0.01, certify=False)
    with pytest.raises(BadParameter, match="is for another diagram"):
        plots.phase_diagram(plane, ax, boundary=curve)
    for other in ({"steps": 4}, {"steps": 100, "eta3": 2.0}):
        curve = popgd.boundary_curves(50, 1.0, 0.01, **other, certify=False)
        with pytest.raises(BadParameter, match=r"(steps|eta3) = \[.*is for another diagram"):
            plots.phase_diagram(plane, ax, boundary=curve)
    with pytest.raises(BadParameter, match="boundary = 3: is no boundary"):
        plots.phase_diagram(plane, ax, boundary=3)
    with pytest.raises(BadParameter, match="is no phase diagram"):
        plots.phase_diagram(3, ax)
    with pytest.raises(BadParameter, match="too small to draw"):
        plots.phase_diagram(popgd.phase_diagram(50, [0.0, 1.0], [1.0, 2.0]), ax)
    with pytest.raises(BadParameter, match="must be matplotlib Axes"):
        plots.phase_diagram(plane, "axes")


def test_trajectory_draws_what_was_recorded(run, ax):
    plots.trajectory(run, ax=ax)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert set(lines) == {"attention gap", "output gap", "accuracy"}
    np.testing.assert_array_equal(lines["accuracy"].get_ydata(), run.accuracy)
    assert words_in(ax) == {"output", "attention"}
    assert np.diff(lines["accuracy"].get_xdata()).min() > 0
    inside(ax)


def test_risk_alone_is_logarithmic(run, ax):
    plots.trajectory(run, "risk", ax)
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), run.risk)
    with pytest.raises(BadParameter, match="is not an option"):
        plots.trajectory(run, "speed", ax)
    with pytest.raises(BadParameter, match="is no trajectory"):
        plots.trajectory({}, ax=ax)


def test_batches_are_drawn_as_mean_and_deviation(ax):
    alpha, beta = popgd.random_start(6, 0.1, 5, rng=0)
    run = popgd.train(popgd.PopulationRisk(popgd.Occurrence(6)), "joint(20x)", alpha, beta)
    plots.trajectory(run, ax=ax, equal_phases=False)
    line = ax.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), run.attention_gap.mean(axis=1))
    np.testing.assert_array_equal(line.get_xdata(), run.step)
    with pytest.raises(BadParameter, match="was not recorded"):
        plots.trajectory(run, "accuracy", ax)


def test_risk_against_gap_stays_below_the_bound(ax):
    plots.risk_against_gap([10, 10**6], ax=ax)
    lines = ax.get_lines()
    for ideal, best, bound in (lines[:3], lines[3:6]):
        assert (best.get_ydata() <= ideal.get_ydata() * (1 + 1e-12)).all()
        x = bound.get_xdata()
        assert (np.interp(x, ideal.get_xdata(), ideal.get_ydata()) <= bound.get_ydata()).all()
    inside(ax)


def test_sharp_constants_take_the_worst_eta1(ax):
    curves = popgd.boundary_curves([10, 50], [0.1, 1.0], [0.1, 1e-8], certify=False)
    plots.sharp_constants(curves, ax)
    worst = curves.constant.max("eta1").sel(epsilon=1e-8)
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), worst)
    assert ax.get_lines()[1].get_label() == r"$\varepsilon = 10^{-8}$"


def test_sample_complexity_has_exact_intervals(ax):
    plots.sample_complexity([10, 100, 1000], [0, 7, 10], 10, ax, label="d = 10")
    rate = ax.get_lines()[0].get_ydata()
    np.testing.assert_allclose(rate, [0, 0.7, 1])
    low, high = plots_interval(7, 10)
    # the defining property: each tail of the binomial law has probability 2.5 %
    tail = sum(math.comb(10, k) * low**k * (1 - low) ** (10 - k) for k in range(7, 11))
    assert tail == pytest.approx(0.025, rel=1e-9)
    tail = sum(math.comb(10, k) * high**k * (1 - high) ** (10 - k) for k in range(8))
    assert tail == pytest.approx(0.025, rel=1e-9)
    with pytest.raises(BadParameter, match="does not fit"):
        plots.sample_complexity([10], [11], 10, ax)


def plots_interval(k, n):
    from popgd.plots_curves import _clopper_pearson

    low, high = _clopper_pearson(np.array([k]), np.array([n]), 0.95)
    return float(low[0]), float(high[0])


def names_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("gap", [[3.0], 3.0, [5, 1, 3, 0, 12.0], np.arange(6.0).reshape(2, 3)])
def test_few_gaps_are_markers_in_order(gap, ax):
    plots.risk_against_gap(50, gap, ax)
    ax.figure.canvas.draw()
    first, best = ax.get_lines()[:2]
    np.testing.assert_array_equal(first.get_xdata(), np.sort(np.ravel(gap)))
    for line in (first, best):
        assert line.get_marker() not in ("None", None)


def test_one_count_has_a_marker_and_an_interval(ax):
    plots.sample_complexity(10, 3, 10, ax)
    assert ax.get_lines()[0].get_marker() == "o"
    ((x, low), (_, high)) = ax.collections[0].get_segments()[0]
    assert (x, low, high) == (10, *plots_interval(3, 10))


def test_squeezed_results_are_drawn(plane, ax):
    curve = popgd.boundary_curves(50, 1.0, 0.01, steps=100, certify=False).squeeze()
    plots.sharp_constants(curve, ax)
    assert ax.get_lines()[0].get_ydata() == [curve.constant.item()]
    other = Figure().subplots()
    plots.phase_diagram(plane.sel(epsilon=0.01).squeeze(), other, boundary=curve)
    assert other.get_lines()[0].get_marker() == "o"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda run, ax: plots.risk_against_gap(50, [], ax), r"gap = \[\]: is empty"),
        (lambda run, ax: plots.risk_against_gap(50, math.inf, ax), "gap = inf"),
        (lambda run, ax: plots.risk_against_gap(50, 1e5, ax), "below the doubles"),
        (lambda run, ax: plots.risk_against_gap([], ax=ax), r"d = \[\]: is empty"),
        (lambda run, ax: plots.trajectory(run, [], ax), "names nothing to draw"),
        (lambda run, ax: plots.trajectory(run, 3, ax), "quantities = 3: is not an option"),
        (lambda run, ax: plots.sample_complexity([1, 2], [1], 10, ax), "does not fit"),
        (lambda run, ax: plots.sample_complexity([1, 2], [1, 1], [1, 2, 3], ax), "does not fit"),
        (lambda run, ax: plots.sample_complexity([], [], 10, ax), "does not fit"),
        (lambda run, ax: plots.sample_complexity([1], [0.5], 10, ax), "whole count"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message, run, ax):
    with pytest.raises(BadParameter, match=message):
        draw(run, ax)


def test_drawing_twice_names_everything_once(plane, curve, run, ax):
    for draw in (
        lambda ax: plots.phase_diagram(plane, ax, boundary=curve),
        lambda ax: plots.trajectory(run, ax=ax),
        lambda ax: plots.risk_against_gap(ax=ax),
    ):
        ax = Figure().subplots()
        draw(ax)
        once = names_of(ax)
        draw(ax)
        assert names_of(ax) == once


def test_styles_do_not_repeat():
    from popgd.plots_style import curve_style

    assert len({str(curve_style(k)) for k in range(200)}) == 200


def test_samples_in_the_legend_are_visible_on_dark_backgrounds(plane, curve):
    from matplotlib import style
    from matplotlib.colors import to_rgb

    with style.context("dark_background"):
        ax, other = Figure().subplots(1, 2)
        plots.risk_against_gap(10, ax=ax)
        plots.phase_diagram(plane, other, boundary=curve)
    for legend in (ax.get_legend(), other.get_legend()):
        ground = np.array(to_rgb(legend.get_frame().get_facecolor()))
        for part in (*legend.get_lines(), *legend.get_texts()):
            assert np.abs(np.array(to_rgb(part.get_color())) - ground).max() > 0.5


def test_without_axes_a_figure_is_made():
    script = (
        "import matplotlib; matplotlib.use('agg'); from popgd import plots; "
        "from matplotlib import pyplot; plots.risk_against_gap(10); print(pyplot.get_fignums())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[1]", done.stderr


def test_importing_plots_does_not_import_matplotlib():
    script = (
        "import sys, popgd.plots, popgd.diagram, popgd.sweeps; "
        "print('matplotlib' in sys.modules, 'xarray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr
