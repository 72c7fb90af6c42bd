"""Points that a search found, in words."""

from __future__ import annotations

import pytest

from proofs_check import wording
from proofs_check.point import Point


@pytest.mark.parametrize(
    ("sizes", "tier", "alpha", "words"),
    [
        ((1, 8), (0, 0), ("0", "0"), "uniform"),
        ((1, 8), (0, 0), ("1.5", "0"), "1 symbol 1.5 above 8 symbols"),
        ((1, 8), (0, 1), ("9", "0"), "8 symbols infinitely above 1 symbol"),
        ((1, 2, 6), (1, 0, 1), ("0", "5", "0"), "7 symbols infinitely above 2 symbols"),
        (
            (1, 1, 1, 1, 5),
            (4, 3, 2, 1, 0),
            ("0",) * 5,
            "4 symbols, each infinitely above the next, the last infinitely above 5 symbols",
        ),
    ],
)
def test_attention(sizes, tier, alpha, words):
    point = Point(d=sum(sizes), sizes=sizes, tier=tier, alpha=alpha)
    assert wording.attention(point) == words


def test_heads_name_the_blocks_they_attend_to():
    point = Point(d=9, H=2, sizes=(4, 5), alpha=("0",) * 4, tier=(0, 1, 1, 0))
    assert wording.heads(point) == (
        "block 1 (4 symbols), block 2 (5 symbols); head 1: block 2 infinitely above block 1; "
        "head 2: block 1 infinitely above block 2"
    )
    assert wording.heads(Point(d=9, H=1, sizes=(9,), alpha=("0",), tier=(0,))) == "uniform"


def test_outputs_and_steps():
    point = Point(d=9, sizes=(1, 8), beta=("-2", "1.00004"), eta="6250")
    assert wording.step(point) == "outputs 1 (8 symbols), -2 (1 symbol), eta = 6250"
    assert wording.step(point.but(beta=("3", "3"))) == "all outputs 3, eta = 6250"


def test_the_target_is_named_and_taken_out_of_its_block():
    argmin = Point(d=4, sizes=(3,), beta=("0", "1"), alpha=("0", "2"), tier=(0, 0))
    said = "outputs 1 (3 symbols), 0 (1 symbol); attention: 3 symbols 2 above the target"
    assert wording.target_and_outputs(argmin) == said
    every = Point(d=4, sizes=(1, 3), beta=("1", "0"), alpha=("0",) * 6, tier=(0, 0, 1, 2, 1, 0))
    assert wording.targets(every).endswith("for the least: 1 symbol infinitely above 2 symbols"
                                           " infinitely above the target")  # fmt: skip
