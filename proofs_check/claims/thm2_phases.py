"""Theorem 2, phases 1 and 2: the symmetry lemma and the closed forms. Paper 4, A.7."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from popgd.ball import Ball, ball, bits
from popgd.certified_gradient import BallGradient, gradient

from .. import grids
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..general import rationals, separate, symmetric
from ..point import Point
from ..symbolic import is_zero
from ..verdict import Kind, Mark

TITLE = "Three-phase training succeeds: phases 1 and 2"

_SMALL = {"quick": (3, 5), "default": (3, 5, 10, 50), "full": (3, 5, 10, 50, 100)}
_ETA1 = {
    "quick": ("1e-6", "d"),
    "default": ("1e-6", "1", "sqrt(d)", "d/2", "d"),
    "full": ("1e-6", "1e-3", "1", "sqrt(d)", "d/4", "d/2", "d"),
}


@cache
def _apart(d: int, bits: int) -> BallGradient:
    """The general gradient at a symmetric point, symbols not lumped together."""
    alpha, beta = ["1"] + ["-1/3"] * (d - 1), ["1/2"] + ["1/7"] * (d - 1)
    return gradient(separate(d, 0, alpha, beta))


def _symmetry(point: Point) -> Sides:
    if point["link"] == "f and y under a transposition":
        return _relabelled(point)
    parts = getattr(_apart(point.d, bits()), point["link"].split()[1])
    return Sides(parts[-1], parts[1])


def _relabelled(point: Point) -> Sides:
    """f of a word with two background symbols swapped, in weights and word alike."""
    d = point.d
    a = [abs(x) + Fraction(1, 3) for x in rationals(f"a {d}", d)]
    beta = rationals(f"beta {d}", d)
    counts = [i % 4 for i in range(1, d + 1)]
    order = [0, d - 1, *range(2, d - 1), 1]

    def f(a: list[Fraction], beta: list[Fraction], counts: list[int]) -> Fraction:
        shares = [x * c for x, c in zip(a, counts, strict=True)]
        mixed = sum((b * x for b, x in zip(beta, shares, strict=True)), Fraction(0))
        return mixed / sum(shares) - 1

    swapped = ([values[i] for i in order] for values in (a, beta, counts))
    return Sides(f(*swapped), f(a, beta, counts))  # type: ignore[arg-type]


@cache
def _at_zero(d: int, bits: int) -> BallGradient:
    return gradient(symmetric(d, (0, 0), (0, 0)))


BETA = ("2*eta1/d", "eta1*(d-2)/(d*(d-1))")


def _phase_1(point: Point) -> Sides:
    slope = _at_zero(point.d, bits()).beta
    eta1 = point.ball("eta1")
    target, background = (-eta1 * slope[i] for i in (0, 1))
    return {
        "beta_s": Sides(target, point.expression(BETA[0])),
        "beta_j": Sides(background, point.expression(BETA[1])),
        "beta_s - beta_j": Sides(target - background, point.expression("eta1/(d-1)")),
    }[point["link"]]


def _phase_1_proof() -> str:
    from popgd import closed_forms

    d, eta1, _ = closed_forms.symbols()
    update = closed_forms.phases()
    is_zero(update.beta_target - 2 * eta1 / d, "beta_s")
    is_zero(update.beta_background - eta1 * (d - 2) / (d * (d - 1)), "beta_j")
    return "uniform moments derived symbolically"


def closed_gap(d: int, eta1: Ball) -> Ball:
    """gap/(eta1 eta2) after phase 2 through E[1/m] and E[1/m^2]. Source: THEORY 5."""
    q = ball(d - 2) / (d - 1)
    inverse = ball(d - 1).log() / (d - 2)
    inverse_square = q.polylog(2) / (d - 2)
    first = ball(1) / d
    second = first * first + (1 - first) * first * inverse
    third = first * first * first * (1 - 3 * inverse + 2 * inverse_square)
    third += 3 * first * first * (inverse - inverse_square) + first * inverse_square
    m11, m21, m12 = first - second, second - third, first - 2 * second + third
    drive = 2 * m11 - eta1 * (2 * m21 / d + (d - 2) * m12 / (d * (d - 1)))
    return drive * d / ((d - 1) * (d - 1))


def _phase_2(point: Point) -> Sides:
    """The general gradient at (0, beta') against the closed form, at eta2 = 1."""
    beta = (point.expression(BETA[0]), point.expression(BETA[1]))
    slope = gradient(symmetric(point.d, (0, 0), beta)).alpha
    return Sides(slope[1] - slope[0], point.ball("eta1") * closed_gap(point.d, point.ball("eta1")))


def _towards(point: Point) -> Sides:
    return Sides(closed_gap(point.d, point.ball("eta1")), 0, strict=True)


def _largest(point: Point) -> Ball:
    """The root of the gap in eta1, over d: the gap is linear in eta1 up to the factor eta1."""
    at_zero, at_d = closed_gap(point.d, ball(0)), closed_gap(point.d, ball(point.d))
    return at_zero / (at_zero - at_d)


def _grid(level: str, **more) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 3), eta1=_ETA1[level], **more)


STEP = (Hypothesis("d >= 3"), Hypothesis("eta1 > 0"))

CLAIMS = (
    Claim(
        id="lemma.symmetry",
        title="equal background weights stay equal under a population step",
        mark=Mark.PRINTED,
        kind=Kind.IDENTITY,
        source="Paper A.7",
        sides=_symmetry,
        grid=lambda level: grids.product(
            d=_SMALL[level],
            link=("gradient alpha", "gradient beta", "f and y under a transposition"),
        ),
        hypotheses=(Hypothesis("d >= 3"),),
        group="thm2",
    ),
    Claim(
        id="thm2.phase1",
        title="after phase 1: beta_s = 2 eta1/d, beta_j = eta1 (d-2)/(d(d-1))",
        mark=Mark.OURS,
        kind=Kind.IDENTITY,
        source="THEORY 5",
        sides=_phase_1,
        grid=lambda level: _grid(level, link=("beta_s", "beta_j", "beta_s - beta_j")),
        hypotheses=STEP,
        proof=_phase_1_proof,
    ),
    Claim(
        id="thm2.phase2",
        title="gap after phase 2, closed form in E[1/m] and E[1/m^2]",
        mark=Mark.OURS,
        kind=Kind.IDENTITY,
        source="THEORY 5",
        sides=_phase_2,
        grid=_grid,
        hypotheses=STEP,
    ),
    Claim(
        id="thm2.phase2.sign",
        title="phase 2 moves attention towards the target for 0 < eta1 <= d",
        mark=Mark.OURS,
        kind=Kind.LOWER_BOUND,
        source="THEORY 5",
        sides=_towards,
        grid=_grid,
        hypotheses=(*STEP, Hypothesis("eta1 <= d")),
        sharp=Sharp("least over d of the largest eta1/d with gap > 0", _largest, largest=False),
    ),
)
