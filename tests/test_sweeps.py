"""Sweeps: the same labelled numbers on any executor, after any interruption."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sweep_functions as cells
import xarray

import popgd
from popgd.ball import enclose
from popgd.errors import BadParameter, PopgdError
from popgd.sweep_names import parse_axis
from popgd.sweeps import sweep

HERE = Path(__file__).parent
GRID = {"d": [3, 50], "eta1": np.array([0.5, 2.0]), "eta2": np.geomspace(1, 1e5, 4)}


@pytest.fixture(scope="module")
def pool():
    with cells.processes() as executor:
        yield executor


def test_results_are_labelled_and_typed():
    result = sweep(cells.plane, GRID)
    assert result.risk.dims == ("d", "eta1", "eta2")
    point = result.sel(d=50, eta1=2.0).isel(eta2=3)
    direct = cells.plane(50, 2.0, float(GRID["eta2"][3]))
    assert float(point.risk) == direct["risk"]
    assert bool(point.away) is direct["away"]
    assert result.d_squared.dtype == np.int64
    assert result.away.dtype == bool
    assert (result.error == "").all()
    assert result.attrs["popgd_version"] == popgd.__version__
    assert result.attrs["failed"] == 0


def test_threads_processes_and_serial_agree_bit_for_bit(pool):
    grid = {"n": [1, 10, 100], "k": [0, 1]}
    serial = sweep(partial(_draw, scale=2.0), grid)
    with ThreadPoolExecutor(3) as threads:
        assert sweep(partial(_draw, scale=2.0), grid, executor=threads, chunk=1).identical(serial)
    plain = sweep(cells.draw, {"n": range(12)})
    for chunk in (1, 5):
        assert sweep(cells.draw, {"n": range(12)}, executor=pool, chunk=chunk).identical(plain)


def _draw(n, k, rng, scale):
    return float(rng.normal(size=n).sum() * scale + k)


def test_every_cell_has_its_own_stream_and_the_seed_decides():
    first = sweep(cells.draw, {"n": [5] * 40})
    assert np.unique(first.value).size == 40
    assert (sweep(cells.draw, {"n": [5] * 40}, seed=1).value != first.value).all()
    fresh = sweep(cells.draw, {"n": [5]}, seed=None)
    again = sweep(cells.draw, {"n": [5]}, seed=int(fresh.attrs["seed"]))
    assert float(fresh.value[0]) == float(again.value[0])
    stream = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(2,)))
    assert float(first.value[2]) == cells.draw(5, stream)


def test_random_starts_sgd_and_claims(pool):
    plan = "O(1x) -> A(1x, lr=50) -> O(20x)"
    starts = sweep(cells.random_start, {"seed": range(4), "plan": [plan]}, executor=pool)
    assert (starts.error == "").all()
    assert np.unique(starts.risk).size == 4
    assert (starts.risk < 0.5).all()
    sgd = sweep(cells.sgd, {"seed": range(3), "rate": [0.1]}, executor=pool)
    assert (sgd.error == "").all()
    assert np.unique(sgd.risk).size == 3
    margins = sweep(cells.enclosed, {"d": [3, 50], "gap": [0, 20]}, executor=pool)
    assert margins.verdict.sel(d=50, gap=20) == "1"
    assert margins.verdict.sel(d=50, gap=0) == "-1"
    assert float(margins.lower[0, 0]) <= float(margins.upper[0, 0])


def test_claims_are_swept(pool):
    grid = {"name": ["prop1", "thm2"], "d": [3, 50], "eps": ["0.1", "1e-6"]}
    spread = sweep(cells.claim, grid, executor=pool, chunk=1)
    assert sweep(cells.claim, grid).identical(spread)
    assert (spread.error == "").all()
    assert (spread.verdict == "HOLDS").all()
    assert (spread.lower.astype(float) > 0).all()


def test_a_failing_cell_is_recorded_and_loses_nothing(pool):
    for executor in (None, pool):
        with pytest.warns(RuntimeWarning, match="1 of 5 cells failed.*three is too many"):
            result = sweep(cells.fails_at_three, {"x": range(5)}, executor=executor, chunk=5)
        assert result.error.values.tolist() == ["", "", "", "ValueError: three is too many", ""]
        assert np.isnan(result.half[3])
        assert result.half[4] == 2.0
        assert result.name.values.tolist() == ["cell 0", "cell 1", "cell 2", "", "cell 4"]
        # a result that bears an axis' name is renamed, not lost
        assert result.x_result[2] == 2


def test_a_grid_that_does_not_fit_the_function_is_refused():
    for grid, what in (({"x": [1]}, "missing a required argument"), ({"x": [1], "y": [1]}, "miss")):
        with pytest.raises(BadParameter, match=rf"does not fit \({what}"):
            sweep(cells.slow, grid)
    with pytest.raises(BadParameter, match="unexpected keyword argument 'y'"):
        sweep(cells.draw, {"n": [1], "y": [1]})
    with pytest.raises(BadParameter, match=r"2,000,001 cells.*split the grid"):
        sweep(cells.fails_at_three, {"x": range(2_000_001)})


def test_only_plain_results(pool):
    with pytest.warns(RuntimeWarning, match="no plain number or string"):
        result = sweep(cells.not_plain, {"x": [1]}, executor=pool)
    assert "ndarray" in str(result.error.values[0])
    with pytest.warns(RuntimeWarning, match=r"its \.lower and \.upper"):
        sweep(lambda x: enclose(x), {"x": [1]})


def test_what_cannot_be_pickled_is_one_sentence(pool):
    with pytest.raises(PopgdError, match="importable there and picklable"):
        sweep(lambda x: x, {"x": [1, 2]}, executor=pool)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "grid = {}: must be a mapping"),
        ({"x": 3}, "must be a sequence"),
        ({"x": "abc"}, "must be a sequence"),
        ({"x": []}, "must be 1-D and not empty"),
        ({"x": np.ones((2, 2))}, "must be 1-D and not empty"),
        ({"not a name": [1]}, "is no argument name"),
        ({"error": [1]}, "is no argument name"),
        ({"x": np.array(3)}, "must be 1-D and not empty"),
        ({"x": {1, 2}}, "is a set, which has no order"),
    ],
)
def test_bad_grids_are_named(grid, message):
    with pytest.raises(BadParameter, match=message):
        sweep(cells.draw, grid)


def test_bad_arguments_are_named():
    for arguments, message in (
        ({"executor": 7}, "executor = 7: is no executor"),
        ({"store": 5}, "store = 5: is no path"),
        ({"store": "a\0b"}, "is no path"),
        ({"store": ""}, "is no path"),
        ({"chunk": 0}, "chunk = 0"),
        ({"seed": -1}, "seed = -1"),
    ):
        with pytest.raises(BadParameter, match=message):
            sweep(cells.draw, {"n": [1]}, **arguments)
    with pytest.raises(BadParameter, match="function = 3: is not callable"):
        sweep(3, {"n": [1]})


def test_blas_has_one_thread_in_workers(pool):
    assert (sweep(cells.threads, {"x": range(4)}, executor=pool, chunk=1).value == 1).all()
    with ThreadPoolExecutor(4) as executor:
        assert (sweep(cells.threads, {"x": range(8)}, executor=executor, chunk=1).value == 1).all()


def test_blas_has_one_thread_in_a_worker_that_has_just_started(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with cells.processes(1) as fresh:
        assert (sweep(cells.threads, {"x": range(2)}, executor=fresh).value == 1).all()


def test_progress_counts_finished_cells():
    seen = []
    sweep(cells.draw, {"n": range(10)}, chunk=4, progress=lambda *x: seen.append(x))
    assert seen == [(0, 10), (4, 10), (8, 10), (10, 10)]


def _leaves(x):
    if x == 3:
        sys.exit("enough")
    return x


class _Mute(Exception):
    def __str__(self):
        raise RuntimeError


def _mute(x):
    if x == 3:
        raise _Mute
    return x


@pytest.mark.parametrize(
    ("function", "error"),
    [(_leaves, "SystemExit: enough"), (_mute, "_Mute: its message cannot be shown")],
)
def test_a_cell_that_exits_or_cannot_say_why_loses_nothing(function, error):
    with pytest.warns(RuntimeWarning, match="1 of 5 cells failed"):
        result = sweep(function, {"x": range(5)})
    assert result.error.values.tolist() == ["", "", "", error, ""]


def test_an_interrupt_stops():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(interrupted, {"x": [1]})


@pytest.mark.parametrize("name", ["", ".", "..", ".zattrs", "a/b", "a\0", "sweep.log", "n" * 201])
def test_results_that_no_file_can_name_are_that_cells_error(name):
    with pytest.warns(RuntimeWarning, match="result '.*name"):
        result = sweep(lambda x: {name if x else "good": 1.0}, {"x": [0, 1]})
    assert result.good.values[0] == 1.0


def test_renamed_results_do_not_collide():
    result = sweep(lambda x: {"x": 1, "x_result": 2, "error": 3}, {"x": [0]})
    assert (int(result.x_result[0]), int(result.x_result_result[0])) == (2, 1)
    assert int(result.error_result[0]) == 3


def test_labelled_arrays_as_axes_give_numbers():
    result = sweep(lambda a: type(a).__name__, {"a": xarray.DataArray([1.0, 2.0])})
    assert result.value.values.tolist() == ["float", "float"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1/3,sqrt(2),-2*ln(10)", [1 / 3, math.sqrt(2), -2 * math.log(10)]),
        ("10**6,2,0.5", [10**6, 2, 0.5]),
        ("log:1/3:sqrt(9):3", [1 / 3, 1.0, 3.0]),
        ("lin:0:pi:2", [0.0, math.pi]),
        ("int:0:2**2", [0, 1, 2, 3]),
        ("adam,pi,sqrt,x/y,+", ["adam", "pi", "sqrt", "x/y", "+"]),
        ("2024-01-01,2024-10-11,1.2.3", ["2024-01-01", "2024-10-11", "1.2.3"]),
    ],
)
def test_words_of_an_axis(text, values):
    name, found = parse_axis(f"a={text}")
    assert name == "a"
    assert [type(x) for x in found] == [type(x) for x in values]
    if isinstance(values[0], str):
        assert found == values
    else:
        assert found == pytest.approx(values, rel=1e-15)  # one rounding, or numpy's spacing


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("b", "it has no ="),
        ("1a=3", "'1a' is no argument name"),
        ("a=1,,2", "it has an empty value"),
        ("a=lin:0:1", "lin: takes LOW:HIGH:N"),
        ("a=log:0:1:3", "of one sign, not 0"),
        ("a=int:0:x", "'x' is not a number"),
        ("a=int:0:2.5", "2.5 is not a whole number"),
        ("a=int:0:5:0", "the step is 0"),
        ("a=lin:0:inf:3", "inf is not finite"),
        ("a=exp(1000)", r"exp\(1000\) is no double"),
        ("a=1/0", "divides by zero"),
        ("a=int:0:1e300", "more than 2,000,000 values"),
        ("a=int:3:0", "has no values"),
    ],
)
def test_what_is_no_axis_says_why(text, reason):
    with pytest.raises(BadParameter, match=reason):
        parse_axis(text)
