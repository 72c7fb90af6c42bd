"""Theorem 2, phase 3: every visible step of the proof, delta = eps/4. Paper A.7.

The proof assumes mu1 = E[gamma_s | y = 1] >= 1 - delta; the steps are judged at equality and at
the attention that phase 2 reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from popgd.ball import Ball, ball, sign

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, Sides
from ..point import Point
from ..symbolic import is_zero
from ..training import first_output, printed_steps, theorem_attention
from ..verdict import Kind, Mark
from .thm2 import HYPOTHESES

TITLE = "Three-phase training succeeds: steps of phase 3"

EQUALITY = "mu1 = 1 - eps/4"


def _concentrated(point: Point) -> bool | None:
    """mu1 >= 1 - eps/4; true by construction at equality."""
    if point["attention"] == EQUALITY:
        return True
    attention = theorem_attention(point)
    side = sign(point.ball("eps") / 4 - attention.lost)
    return None if side is None else side >= 0


CONCENTRATED = Hypothesis("mu1 >= 1 - eps/4", _concentrated)
BASIC = tuple(h for h in HYPOTHESES if not h.text.startswith("eta1"))


def _attentions(level: str) -> tuple[str, ...]:
    return (EQUALITY, *(f"C = {c}" for c in grids.CONSTANTS[level]))


def _grid(level: str, **more) -> Iterator[Point]:
    """d, eps, the attention (phase 2 with eta1 = sqrt(d)) and, where asked, a link."""
    return grids.product(
        d=grids.dimensions(level, 3),
        eps=grids.epsilons(level),
        eta1=("sqrt(d)",),
        attention=_attentions(level),
        **more,
    )


def _every_eta1(level: str, **more) -> Iterator[Point]:
    return grids.product(
        d=grids.dimensions(level, 3),
        eps=grids.epsilons(level),
        eta1=grids.first_steps(level),
        attention=_attentions(level),
        **more,
    )


def _moments(point: Point) -> Sides:
    """Both links as variances, which keeps them sharp however close mu1 is to 1."""
    attention = theorem_attention(point)
    if point["link"] == "mu1^2 <= mu2":
        # mu2 - mu1^2 is the variance of 1 - gamma_s
        return Sides(attention.lost * attention.lost, 2 * attention.m02)
    # 1 - mu2 = E[(1 - gamma_s)(1 + gamma_s) | y = 1]
    return Sides(0, 2 * (2 * attention.m11 + attention.m02))


def _start(point: Point) -> Sides:
    beta_s = point.expression("2*eta1/d")
    beta_j = point.expression("eta1*(d-2)/(d*(d-1))")
    low, high = {
        "0 < beta'_s": (0, beta_s),
        "beta'_s < 1": (beta_s, 1),
        "0 < beta'_j": (0, beta_j),
        "beta'_j < 1/2": (beta_j, Fraction(1, 2)),
    }[point["link"]]
    return Sides(low, high, strict=True)


START_LINKS = ("0 < beta'_s", "beta'_s < 1", "0 < beta'_j", "beta'_j < 1/2")


def _square(attention: Attention) -> Ball:
    """||beta*||^2."""
    residual, background = attention.optimum
    return (2 + residual) * (2 + residual) + (attention.d - 1) * background * background


def _norm(point: Point) -> Sides:
    return Sides(_square(theorem_attention(point)), 16)


def _distance(point: Point) -> Sides:
    attention, d = theorem_attention(point), point.d
    beta_s, beta_j = first_output(d, point.ball("eta1"))
    x, y = attention.error(beta_s - 2, beta_j)
    distance, star = x * x + y * y, _square(attention)
    both = star + beta_s * beta_s + (d - 1) * beta_j * beta_j
    return {
        "||beta'-beta*||^2 <= ||beta*||^2 + ||beta'||^2": Sides(distance, both),
        "||beta*||^2 + ||beta'||^2 <= 16 + (d-1)": Sides(both, 16 + d - 1),
        "16 + (d-1) <= 16d": Sides(16 + d - 1, 16 * d),
        "||beta'-beta*||^2 <= 16d": Sides(distance, 16 * d),
    }[point["link"]]


DISTANCE_LINKS = (
    "||beta'-beta*||^2 <= ||beta*||^2 + ||beta'||^2",
    "||beta*||^2 + ||beta'||^2 <= 16 + (d-1)",
    "16 + (d-1) <= 16d",
    "||beta'-beta*||^2 <= 16d",
)


def _spectrum(point: Point) -> Sides:
    largest, smallest = theorem_attention(point).eigenvalues
    if point["link"] == "smallest >= 1/(8d)":
        return Sides(Fraction(1, 8 * point.d), smallest)
    return Sides(largest, 1)


def _floor(point: Point) -> Sides:
    return Sides(theorem_attention(point).minimum, point.ball("eps") / 2)


def _rate(point: Point) -> Sides:
    d, steps = point.d, _steps(point)
    attention = theorem_attention(point)
    beta_s, beta_j = first_output(d, point.ball("eta1"))
    x, y = error = attention.after(steps, attention.error(beta_s - 2, beta_j))
    half = (x * x + y * y) / 2
    contraction = 8 * d * (1 - ball(1) / (8 * d)) ** (2 * steps)
    exponential = 8 * d * (-ball(steps) / (4 * d)).exp()
    return {
        "L(beta(T)) - L(beta*) <= ||beta(T)-beta*||^2/2": Sides(attention.excess(error), half),
        "||beta(T)-beta*||^2/2 <= 8d (1-1/(8d))^(2T)": Sides(half, contraction),
        "8d (1-1/(8d))^(2T) <= 8d e^(-T/(4d))": Sides(contraction, exponential),
    }[point["link"]]


RATE_LINKS = (
    "L(beta(T)) - L(beta*) <= ||beta(T)-beta*||^2/2",
    "||beta(T)-beta*||^2/2 <= 8d (1-1/(8d))^(2T)",
    "8d (1-1/(8d))^(2T) <= 8d e^(-T/(4d))",
)


def _steps(point: Point) -> int:
    return {"1": 1, "d": point.d, "printed": printed_steps(point)}[point["T"]]


def _last(point: Point) -> Sides:
    steps = printed_steps(point)
    return Sides(8 * point.d * (-ball(steps) / (4 * point.d)).exp(), point.ball("eps") / 2)


def _last_proof() -> str:
    import sympy as sp

    d, eps, more = sp.symbols("d eps t", positive=True)
    time = 4 * d * sp.log(16 * d / eps) + more
    ratio = 8 * d * sp.exp(-time / (4 * d)) / (eps / 2)
    is_zero(ratio - sp.exp(-more / (4 * d)), "8d e^(-T/(4d)) / (eps/2)")
    return "with T = 4d ln(16d/eps) + t the ratio of the sides is e^(-t/(4d))"


def _sum(point: Point) -> Sides:
    eps = point.fraction("eps")
    return Sides(2 * (eps / 4) + eps / 2, eps)


def _sum_proof() -> str:
    import sympy as sp

    eps = sp.Symbol("eps")
    is_zero(2 * (eps / 4) + eps / 2 - eps, "2 delta + eps/2 - eps")
    return "equality at delta = eps/4"


def _step(id: str, title: str, sides, grid, **rest) -> Claim:
    mark = rest.pop("mark", Mark.PRINTED)
    kind = rest.pop("kind", Kind.UPPER_BOUND)
    hypotheses = rest.pop("hypotheses", (*HYPOTHESES, CONCENTRATED))
    return Claim(
        f"thm2.{id}", title, mark, kind, "Paper A.7", sides, grid, hypotheses=hypotheses, **rest
    )


def _eps_grid(level: str) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 3), eps=grids.epsilons(level))


CLAIMS = (
    _step(
        "moments",
        "mu1^2 <= mu2 <= 1",
        _moments,
        lambda level: _grid(level, link=("mu1^2 <= mu2", "mu2 <= 1")),
    ),
    _step(
        "start",
        "beta'_s in (0, 1), beta'_j in (0, 1/2)",
        _start,
        lambda level: grids.product(
            d=grids.dimensions(level, 3), eta1=grids.first_steps(level), link=START_LINKS
        ),
        hypotheses=tuple(h for h in HYPOTHESES if not h.text.startswith("eps")),
    ),
    _step("norm", "||beta*||^2 <= 16", _norm, _grid),
    _step(
        "distance",
        "||beta'-beta*||^2 <= ||beta*||^2 + ||beta'||^2 <= 16 + (d-1) <= 16d",
        _distance,
        lambda level: _every_eta1(level, link=DISTANCE_LINKS),
    ),
    _step(
        "spectrum",
        "the Hessian on span{e_s, 1_-s} has eigenvalues in [1/(8d), 1]",
        _spectrum,
        lambda level: _grid(level, link=("smallest >= 1/(8d)", "largest <= 1")),
        mark=Mark.RECONSTRUCTED,
    ),
    _step("floor", "L(alpha', beta*) <= 2 delta", _floor, _grid, mark=Mark.RECONSTRUCTED),
    _step(
        "rate",
        "L(beta(T)) - L(beta*) <= ||beta(T)-beta*||^2/2 <= 8d (1-1/(8d))^(2T) <= 8d e^(-T/(4d))",
        _rate,
        lambda level: _grid(level, T=("1", "d", "printed"), link=RATE_LINKS),
        kind=Kind.RATE,
    ),
    _step(
        "rate.end",
        "8d e^(-T/(4d)) <= eps/2 for T >= 4d ln(16d/eps)",
        _last,
        _eps_grid,
        hypotheses=BASIC,
        proof=_last_proof,
    ),
    _step(
        "sum",
        "2 delta + eps/2 <= eps",
        _sum,
        lambda level: grids.product(eps=grids.epsilons(level)),
        hypotheses=(Hypothesis("eps > 0"), Hypothesis("eps < 1")),
        proof=_sum_proof,
    ),
)
