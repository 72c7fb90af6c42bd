"""Which sweeps a store takes for the same: names, code, bound values, axes and their order."""

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray

import popgd
from popgd.errors import BadFile, BadParameter
from popgd.sweeps import sweep


def test_the_grids_names_in_another_order_are_refused(tmp_path):
    store = tmp_path / "order.zarr"
    sweep(_tens, {"d": [1, 2], "k": [3, 4, 5]}, store=store)
    with pytest.raises(BadFile, match="differs in order of the grid"):
        sweep(_tens, {"k": [3, 4, 5], "d": [1, 2]}, store=store)
    with xarray.open_zarr(store, consolidated=False) as opened:
        assert opened.value.sel(d=2, k=3) == 23


def _tens(d, k):
    return 10 * d + k


class _Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return float(np.sum(self.factor) * x)

    def times(self, x):
        return self(x)


def _total(x, array):
    return float(x * np.sum(array))


def _closed(factor):
    return lambda x: factor * x


LONG = np.arange(2000.0)  # numpy prints the ends only
OTHER = np.where(LONG == 1000, 1e9, LONG)


@pytest.mark.parametrize(
    ("make", "one", "two"),
    [
        (lambda v: _Scaled(v), 1, 10),
        (lambda v: _Scaled(v).times, 1, 10),
        (lambda v: partial(_total, array=v), LONG, OTHER),
        (lambda v: partial(_total, array=[v]), LONG, OTHER),
        (_closed, 1, 10),
        (lambda v: (lambda x: x) if v == 1 else (lambda x: x**2), 1, 10),
    ],
    ids=["object", "method", "array", "arrays", "closure", "lambda"],
)
def test_functions_of_one_name_are_told_apart(tmp_path, make, one, two):
    store = tmp_path / "one.zarr"
    first = sweep(make(one), {"x": [2, 3]}, store=store)
    again = make(one.copy() if isinstance(one, np.ndarray) else one)
    assert sweep(again, {"x": [2, 3]}, store=store).identical(first)
    with pytest.raises(BadFile, match="differs in code"):
        sweep(make(two), {"x": [2, 3]}, store=store)


def test_axes_of_arrays_are_told_apart(tmp_path):
    store = tmp_path / "axes.zarr"
    first = sweep(np.sum, {"a": [LONG, LONG]}, store=store)
    assert sweep(np.sum, {"a": [LONG.copy(), LONG]}, store=store).identical(first)
    with pytest.raises(BadFile, match="differs in grid"):
        sweep(np.sum, {"a": [LONG, OTHER]}, store=store)


def test_comments_and_docstrings_do_not_count(tmp_path):
    grid, store = {"x": [1, 2]}, tmp_path / "same.zarr"

    def version(text) -> Any:
        names: dict[str, Any] = {"__name__": "study"}
        exec(text, names)
        return names["trial"]

    sweep(version('def trial(x):\n    "One."\n    return x + 1\n'), grid, store=store)
    edited = version('def trial(x):\n\n    "Two."\n    return x + 1  # edited\n')
    sweep(edited, grid, store=store)
    with pytest.raises(BadFile, match="differs in code"):
        sweep(version('def trial(x):\n    "One."\n    return x + 2\n'), grid, store=store)


def test_what_cannot_be_identified_is_refused_with_a_store_only(tmp_path):
    lock = threading.Lock()
    for arguments in ((lambda x: lock.locked(), {"x": [1.0]}), (lambda x: 1, {"x": [lock]})):
        assert sweep(*arguments).error.size == 1
        with pytest.raises(BadParameter, match="cannot be told apart from others in a store"):
            sweep(*arguments, store=tmp_path / "never.zarr")
    assert not list(tmp_path.iterdir())


def _risk_at(x, risk):
    return risk.value([0.0] * 3, [x] * 3)


@pytest.mark.parametrize("method", ["integral", "series"])
def test_an_objective_that_was_used_is_the_same(tmp_path, method):
    def fixed():
        return partial(_risk_at, risk=popgd.PopulationRisk(popgd.Occurrence(3), method=method))

    grid, store, bound = {"x": [0.5, 1.0]}, tmp_path / "risk.zarr", fixed()
    first = sweep(bound, grid, store=store)
    assert (first.error == "").all()
    assert sweep(bound, grid, store=store).identical(first)
    assert sweep(fixed(), grid, store=store).identical(first)
