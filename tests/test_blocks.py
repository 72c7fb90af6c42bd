"""Symbols in blocks: the same numbers as symbol by symbol, at any d."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popgd import BadParameter, Occurrence, Poisson, PopulationRisk, Tiers, Words
from popgd.blocks import BlockRisk, split_target

RELATIVE = 5e-12
"""Both routes promise 1e-12 relative; their errors may add up."""

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def weights(n):
    return st.lists(st.floats(-4, 4), min_size=n, max_size=n).map(np.array)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_value_and_gradient_agree_with_single_symbols(data):
    risk = BlockRisk(data.draw(sizes))
    alpha, beta = data.draw(weights(risk.d)), data.draw(weights(risk.d))
    plain = PopulationRisk(Occurrence(risk.symbols))
    one = plain.value_and_gradient(risk.expand(alpha), risk.expand(beta))
    lumped = risk.value_and_gradient(alpha, beta)
    assert lumped.value == pytest.approx(one.value, rel=RELATIVE)
    starts = np.append(0, np.cumsum(risk.multiplicity)[:-1])
    for found, single in ((lumped.alpha, one.alpha), (lumped.beta, one.beta)):
        scale = 1 + np.abs(single).sum()
        assert np.abs(found - np.add.reduceat(single, starts)).max() <= RELATIVE * scale


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_output_minimum_is_the_minimum_over_all_outputs(data):
    risk = BlockRisk(data.draw(sizes))
    alpha = data.draw(weights(risk.d))
    tiers = Tiers(
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=risk.d, max_size=risk.d))), alpha
    )
    plain = PopulationRisk(Occurrence(risk.symbols))
    for attention in (alpha, tiers):
        full = plain.minimize_output(risk.expand(attention))
        lumped = risk.minimize_output(attention)
        assert lumped.value == pytest.approx(full.value, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("d", [3, 50, 10**6, 10**12])
def test_uniform_attention_at_any_d(d):
    found = BlockRisk([d - 1]).minimize_output(np.zeros(2)).value
    assert found == pytest.approx((1 - (d - 2) / ((d - 1) * math.log(d - 1))) / 2, rel=1e-10)


def test_blocks_may_be_cut_differently():
    one, two = BlockRisk([999]), BlockRisk([400, 599])
    alpha, beta = np.array([2.0, -1.0]), np.array([1.5, 0.2])
    split = two.value(alpha[[0, 1, 1]], beta[[0, 1, 1]])
    assert split == pytest.approx(one.value(alpha, beta), rel=RELATIVE)


def test_other_length_laws():
    risk, d = BlockRisk([2, 3], length=Poisson(4.0)), 6
    plain = PopulationRisk(Occurrence(d, words=Words(Poisson(4.0))))
    alpha, beta = np.array([1.0, 0.0, -1.0]), np.array([2.0, 0.5, 0.0])
    expected = plain.value(risk.expand(alpha), risk.expand(beta))
    assert risk.value(alpha, beta) == pytest.approx(expected, rel=RELATIVE)


def test_error_bound_is_honest_and_sharp():
    risk = BlockRisk([10**6])
    alpha, beta = np.array([40.0, 0.0]), np.array([2.0, 0.0])
    value, bound = risk.value(alpha, beta), risk.error_bound(alpha, beta)
    assert 0 < value < 1e-20
    assert bound < 1e-10 * value


def test_splitting_off_a_target():
    assert split_target([1, 4], 0) == ([4], [0, 1])
    assert split_target([1, 4], 1) == ([1, 3], [1, 0, 1])
    assert split_target([2], 0) == ([1], [0, 0])


def test_binary_alphabet():
    # one-letter words: any attention, perfect outputs
    assert BlockRisk([1]).minimize_output(np.array([3.0, -1.0])).value < 1e-25


@pytest.mark.parametrize("bad", [[], [0], [1.5], "12", None, [True], [-1, 3]])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(BadParameter):
        BlockRisk(bad)


def test_bad_splits_and_vectors_are_refused():
    with pytest.raises(BadParameter, match="block"):
        split_target([1, 2], 2)
    with pytest.raises(BadParameter, match="sizes"):
        split_target([1], 0)
    with pytest.raises(BadParameter, match="axis"):
        BlockRisk([2]).expand(np.zeros(3))
