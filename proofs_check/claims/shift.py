"""Invariances of the model: softmax shift, gradients that sum to zero, counts. Paper 2."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from popgd.ball import Ball, ball
from popgd.certified_gradient import gradient
from popgd.certified_integral import risk

from .. import grids
from ..claim import Claim, Hypothesis, Sides
from ..general import rationals, separate
from ..point import Point
from ..symbolic import is_zero
from ..verdict import Kind, Mark

TITLE = "Invariances of the model"

_DIMENSIONS = {"quick": (2, 3, 5), "default": (2, 3, 4, 5, 10), "full": (2, 3, 4, 5, 10, 20, 50)}
_MOST_TARGETS = {"quick": 3, "default": 5, "full": 10}
_SEEDS = {"quick": ("a",), "default": ("a", "b"), "full": ("a", "b", "c", "d")}


def _weights(point: Point) -> tuple[list[Fraction], list[Fraction]]:
    d, seed = point.d, point["weights"]
    return rationals(f"{seed} alpha {d}", d), rationals(f"{seed} beta {d}", d)


def _grid(level: str, **more) -> Iterator[Point]:
    return grids.product(d=_DIMENSIONS[level], weights=_SEEDS[level], **more)


def _targets(level: str) -> Iterator[Point]:
    """As many gradients as symbols at each point: small dimensions."""
    return (point for point in _grid(level) if point.d <= _MOST_TARGETS[level])


def _sum(values) -> Ball:
    return sum(values, ball(0))


def _softmax(point: Point) -> Sides:
    alpha, beta = _weights(point)
    shifted = [a + point.fraction("shift") for a in alpha]
    return Sides(risk(separate(point.d, 0, shifted, beta)), risk(separate(point.d, 0, alpha, beta)))


def _softmax_proof() -> str:
    import sympy as sp

    a_i, c_i, a_k, c_k, shift = sp.symbols("a_i C_i a_k C_k c", positive=True)
    gamma = a_i * c_i / (a_i * c_i + a_k * c_k)
    moved = gamma.subs({a_i: a_i * sp.exp(shift), a_k: a_k * sp.exp(shift)}, simultaneous=True)
    is_zero(gamma - moved, "gamma_i after a shift")
    return "e^c cancels in gamma_i = a_i C_i / sum a_k C_k"


def _alpha_sum(point: Point) -> Sides:
    alpha, beta = _weights(point)
    return Sides(_sum(gradient(separate(point.d, 0, alpha, beta)).alpha), 0)


def _target_sum(point: Point) -> Sides:
    alpha, beta = _weights(point)
    d = point.d
    return Sides(_sum(gradient(separate(d, s, alpha, beta)).alpha[s] for s in range(d)), 0)


def _counts(point: Point) -> Sides:
    """f read letter by letter, in two orders."""
    d = point.d
    a = [abs(x) + Fraction(1, 3) for x in rationals(f"{point['weights']} a {d}", d)]
    beta = rationals(f"{point['weights']} beta {d}", d)
    word = [i % d for i in range(d * (d + 1) // 2)]
    return Sides(_read(word, a, beta), _read(sorted(word, reverse=True), a, beta))


def _read(word: list[int], a: list[Fraction], beta: list[Fraction]) -> Fraction:
    total = sum((a[i] for i in word), Fraction(0))
    return sum((a[i] / total * beta[i] for i in word), Fraction(0)) - 1


def _claim(id: str, title: str, sides, grid=_grid, **rest) -> Claim:
    return Claim(
        f"shift.{id}", title, Mark.OURS, Kind.IDENTITY, "THEORY 2", sides, grid,
        hypotheses=(Hypothesis("d >= 2"),), group="model", **rest,
    )  # fmt: skip


CLAIMS = (
    _claim(
        "softmax",
        "adding a constant to alpha changes nothing",
        _softmax,
        lambda level: _grid(level, shift=("7/3", "-100")),
        proof=_softmax_proof,
    ),
    _claim("alpha", "sum over i of dL/dalpha_i = 0", _alpha_sum),
    _claim("targets", "sum over targets s of dL_s/dalpha_s = 0", _target_sum, _targets),
    _claim("counts", "f depends on the counts only", _counts),
)
