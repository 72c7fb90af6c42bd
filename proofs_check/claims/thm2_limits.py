"""Theorem 2: how large C must be as eps -> 0, and as d -> infinity. THEORY 5."""

from __future__ import annotations

from collections.abc import Iterator

from popgd.ball import Ball, ball, hull

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, ProofFailed, Sharp, Sides
from ..point import Point
from ..symbolic import is_zero
from ..verdict import Kind, Mark
from .thm2 import HYPOTHESES, smallest_gap, unit

TITLE = "Three-phase training succeeds: the constant C in the limits"

_EPS = {"quick": ("1e-8",), "default": ("1e-8", "1e-10"), "full": ("1e-8", "1e-10", "1e-12")}
_DIMENSIONS = {"quick": (3, 50), "default": (3, 10, 50, 1000), "full": (3, 5, 10, 50, 1000, 10**5)}
_LARGE = {"quick": (10**5,), "default": (10**3, 10**5), "full": (10**3, 10**5, 10**7, 10**9)}


def floor_constant(d: int) -> Ball:
    """A(d) = lim e^(2 gap) min over beta of L. Source: THEORY 5 (large gap)."""
    r = ball(d - 2) / (2 * (d - 1))
    one = -(1 - r) * (1 - r).log() / r
    two = (1 - r) * r.polylog(2) / r
    m11 = ball(d - 2) * (1 + one) / 4
    m02 = (d * (d - 2) * (one + two) + (d - 2) * (d - 2) * (1 + 2 * one + two)) / 8
    return 2 * (m02 - 2 * m11 * m11)


def _floor(point: Point) -> Sides:
    """The distance of e^(2 gap) min over beta of L from A(d), relative."""
    attention = Attention(point.d, ball(point.expression(str(point["gap"]))))
    scaled = attention.minimum * (2 * attention.gap).exp()
    return Sides(abs(scaled / floor_constant(point.d) - 1), 4 * point.d * (-attention.gap).exp())


def _floor_proof() -> str:
    """The formula of `floor_constant` is the limit derived from the law of the counts."""
    import sympy as sp

    from popgd import closed_forms

    d = closed_forms.symbols().d
    r = (d - 2) / (2 * (d - 1))
    one, two = -(1 - r) * sp.log(1 - r) / r, (1 - r) * sp.polylog(2, r) / r
    m11 = (d - 2) * (1 + one) / 4
    m02 = (d * (d - 2) * (one + two) + (d - 2) ** 2 * (1 + 2 * one + two)) / 8
    rest = closed_forms.large_gap().minimum - 2 * (m02 - 2 * m11**2)
    names = {sp.log(1 - r): sp.Symbol("ell"), sp.polylog(2, r): sp.Symbol("Z")}
    is_zero(sp.cancel(rest.subs(names)), "A(d) and its derivation")
    return "limits of the moments times e^(b gap), from the laws of C and of B given C"


def _bought(point: Point) -> Sides:
    """The distance of gap/(C ln(d/eps)) from 2."""
    bought = unit(point) / (point.d / point.ball("eps")).log()
    return Sides(abs(bought - 2), 3 / ball(point.d).sqrt())


def _needed(point: Point) -> Ball:
    low, high = smallest_gap(point)
    return hull(low, high)


def _small_eps(point: Point) -> Sides:
    """The distance of the gap needed from (1/2) ln(A/eps)."""
    eps = point.ball("eps")
    limit = (floor_constant(point.d) / eps).log() / 2
    return Sides(abs(_needed(point) - limit), 10 * eps.sqrt())


def _limit_c(point: Point) -> Ball:
    """C -> ln(1/eps)/2 over the gap a unit of C buys, which is K ln(d/eps)."""
    return (point.d / point.ball("eps")).log() / unit(point) / 2


def _small_eps_grid(level: str) -> Iterator[Point]:
    return grids.product(d=_DIMENSIONS[level], eps=_EPS[level], eta1=("1", "sqrt(d)"))


def _per_dimension(level: str) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 3), eps=("1e-8",), eta1=grids.first_steps(level))


def _large_d(point: Point) -> Sides:
    """Change of (gap needed - ln d) from d to 10 d."""

    def excess(d: int) -> Ball:
        return _needed(point.but(d=d)) - ball(d).log()

    d = point.d
    return Sides(abs(excess(10 * d) - excess(d)), 100 * ball(d).log() / d)


def _bought_proof() -> str:
    """K = gap/(C ln(d/eps)) -> 2 with eta1 = c sqrt(d), from the closed forms."""
    import sympy as sp

    from popgd import closed_forms

    d, eta1, eta2 = closed_forms.symbols()
    z, root, c = sp.symbols("Z x c", positive=True)
    per_unit = closed_forms.phases().gap * d**2 / (eta1 * eta2)
    # the dilogarithm is bounded, and ln(d-1) = 2 ln x grows more slowly than any power of x
    per_unit = per_unit.replace(sp.polylog, lambda *_: z).subs(eta1, c * sp.sqrt(d))
    log = sp.Symbol("ell", positive=True)
    per_unit = per_unit.subs(sp.log(d - 1), log)
    leading = sp.limit(sp.together(per_unit.subs(d, root**2)), root, sp.oo)
    if leading != 2:
        raise ProofFailed(f"the gap a unit of C buys tends to {leading} ln(d/eps)")
    return "the closed form of the gap at eta1 = c sqrt(d), its limit taken symbolically"


CLAIMS = (
    Claim(
        id="thm2.limit.floor",
        title="e^(2 gap) min over beta of L -> A(d) as gap -> infinity (grid: within 4d e^-gap)",
        mark=Mark.OURS,
        kind=Kind.RATE,
        source="THEORY 5",
        sides=_floor,
        grid=lambda level: grids.product(
            d=grids.dimensions(level, 3), gap=("ln(d)+5", "2*ln(d)+10", "40")
        ),
        hypotheses=(Hypothesis("d >= 3"),),
        proof=_floor_proof,
    ),
    Claim(
        id="thm2.limit.unit",
        title="a unit of C buys a gap of 2 ln(d/eps) as d -> infinity (grid: within 3/sqrt(d))",
        mark=Mark.OURS,
        kind=Kind.RATE,
        source="THEORY 5",
        sides=_bought,
        grid=lambda level: grids.product(
            d=grids.dimensions(level, 3), eps=("0.1",), eta1=grids.first_steps(level)
        ),
        hypotheses=HYPOTHESES,
        proof=_bought_proof,
    ),
    Claim(
        id="thm2.limit.eps",
        title="gap needed = (1/2) ln(A(d)/eps) + O(sqrt(eps)): C -> limit as eps -> 0",
        mark=Mark.OURS,
        kind=Kind.RATE,
        source="THEORY 5",
        sides=_small_eps,
        grid=_small_eps_grid,
        hypotheses=HYPOTHESES,
        sharp=Sharp("lim C as eps -> 0", _limit_c, points=_per_dimension),
    ),
    Claim(
        id="thm2.limit.d",
        title="gap needed - ln d converges: C -> 1/2 as d -> infinity at fixed eps <= 0.3",
        mark=Mark.OURS,
        kind=Kind.RATE,
        source="THEORY 5",
        sides=_large_d,
        grid=lambda level: grids.product(
            d=_LARGE[level], eps=("0.1", "0.3", "1e-4")[: 1 if level == "quick" else 3], eta1=("1",)
        ),
        hypotheses=(*HYPOTHESES, Hypothesis("d >= 1000"), Hypothesis("eps <= 0.3")),
    ),
)
