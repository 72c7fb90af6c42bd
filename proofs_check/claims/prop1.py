"""Proposition 1: beta = 2 e_s and a gap of ln(4d/eps^2) give risk <= eps. Paper 2, A.2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from popgd.ball import Ball, ball, less, sign
from popgd.certified_integral import risk

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, ProofFailed, Sharp, Sides
from ..general import rationals, separate
from ..point import Point
from ..roots import crossing
from ..symbolic import is_zero, positive
from ..verdict import Kind, Mark

TITLE = "A shallow transformer expresses the occurrence language"

GAP = "ln(4*d/eps**2)"
EPS = (Hypothesis("eps > 0"), Hypothesis("eps < 1"))
DIMENSION = (Hypothesis("d >= 2"),)
_GENERAL = {"quick": (3, 9), "default": (3, 5, 10, 50, 200), "full": (3, 5, 10, 50, 100, 200)}


def _risk(d: int, gap: Ball) -> Ball:
    """L at beta = 2 e_s: only positive words contribute, 2 E_+[(1 - gamma_s)^2]."""
    return 2 * Attention(d, gap).m02


def _symmetric(point: Point) -> Sides:
    return Sides(_risk(point.d, ball(point.expression(GAP))), point.ball("eps"))


def _smallest_gap(point: Point) -> tuple[Ball, Ball]:
    """The gap at which L = eps, over the printed one; L decreases in the gap."""
    eps, printed = point.ball("eps"), ball(point.expression(GAP))
    if sign(_risk(point.d, ball(0)) - eps) == -1:
        return ball(0), ball(0)  # uniform attention is enough
    low, high = crossing(lambda gap: (_risk(point.d, gap) / eps).log(), 10.0)
    return low / printed, high / printed


def _general(point: Point) -> Sides:
    """alpha_s at the gap above the largest of the others, which are rational in [-4, 0]."""
    d = point.d
    others = rationals(f"{point['weights']} alpha {d}", d - 1, -4, 0)
    alpha = [point.expression(GAP), 0, *others[1:]]
    return Sides(risk(separate(d, 0, alpha, [2] + [0] * (d - 1))), point.ball("eps"))


def _gamma(a: list[Fraction], counts: list[int]) -> Fraction:
    """gamma_s of a word, symbol s first."""
    return a[0] * counts[0] / sum(x * c for x, c in zip(a, counts, strict=True))


def _negatives(point: Point) -> Sides:
    """f on a word without s, with attention weights 1/1, 1/2, 1/3, ...: exactly -1."""
    d = min(point.d, 50)
    a, counts = [Fraction(1, i + 1) for i in range(d)], [0, *range(1, d)]
    return Sides(2 * _gamma(a, counts) - 1, -1)


def _negatives_proof() -> str:
    import sympy as sp

    gamma = sp.Symbol("gamma_s")
    f = 2 * gamma - 1
    is_zero(f.subs(gamma, 0) + 1, "f")
    is_zero((f.subs(gamma, 0) - (-1)) ** 2 / 2, "loss")
    return "gamma_s = 0 when s does not occur"


def _reduction(point: Point) -> Sides:
    """gamma_s before and after one background weight is raised, on a word with all symbols."""
    d = min(point.d, 50)
    a, counts = [Fraction(1, i + 1) for i in range(d)], list(range(1, d + 1))
    raised = [a[0], a[1] + Fraction(1, 7), *a[2:]]
    return Sides(_gamma(raised, counts), _gamma(a, counts), strict=True)


def _reduction_proof() -> str:
    import sympy as sp

    s, j = sp.symbols("alpha_s alpha_j", real=True)
    c_s, c_j, rest = sp.symbols("C_s C_j R", positive=True)
    total = c_s * sp.exp(s) + c_j * sp.exp(j) + rest
    gamma_s, gamma_j = c_s * sp.exp(s) / total, c_j * sp.exp(j) / total
    is_zero(sp.diff(gamma_s, j) + gamma_s * gamma_j, "d gamma_s/d alpha_j = -gamma_s gamma_j")
    g = sp.Symbol("g")
    is_zero(sp.diff((2 * g - 2) ** 2 / 2, g) + 4 * (1 - g), "loss decreases in gamma_s")
    return "gamma_s falls in each alpha_j and the loss falls in gamma_s: equal weights are worst"


def _tail(point: Point) -> Sides:
    """P(|w| > M) = q^floor(M) for the geometric law, beside the printed q^M, M = 2d/eps."""
    p, length = Fraction(1, point.d - 1), 2 * point.d / point.fraction("eps")
    q = ball(1 - p)
    real = ball(0) if p == 1 else (ball(length) * q.log()).exp()
    survival = q ** math.floor(length)
    bound = (-2 / point.ball("eps")).exp()
    if point["link"] == "P(|w| > M) = (1 - 1/(d-1))^M":
        return Sides(survival, real, kind=Kind.IDENTITY)
    left = real if point["link"] == "(1 - 1/(d-1))^M < e^(-2/eps)" else survival
    return Sides(left, bound, strict=True)


TAIL_LINKS = (
    "P(|w| > M) = (1 - 1/(d-1))^M",
    "(1 - 1/(d-1))^M < e^(-2/eps)",
    "P(|w| > M) < e^(-2/eps)",
)


def _long(point: Point) -> Sides:
    if point["link"] == "loss <= 2":
        return Sides(Fraction((-1 - 1) ** 2, 2), 2)  # f = -1, the worst f in [-1, 1]
    return Sides(2 * (-2 / point.ball("eps")).exp(), point.ball("eps") / 2, strict=True)


def _long_proof() -> str:
    import sympy as sp

    x, f = sp.symbols("x f")
    is_zero(sp.diff(x * sp.exp(-x), x) - (1 - x) * sp.exp(-x), "slope of x e^-x")
    if less(4 * ball(-2).exp(), 1) is not True:
        raise ProofFailed("4 e^-2 < 1")
    # (f-1)^2/2 - 2 = -(1+f)(3-f)/2 <= 0 on [-1, 1]
    is_zero((f - 1) ** 2 / 2 - 2 + (1 + f) * (3 - f) / 2, "loss at most 2")
    return "2x e^-x with x = 2/eps > 2 decreases from 4 e^-2 < 1; (f-1)^2/2 <= 2 on [-1, 1]"


def _attention(point: Point) -> Sides:
    """Shortest admissible attention: C_s = 1 (or all s) in the longest short word."""
    d, eps = point.d, point.fraction("eps")
    m = math.floor(2 * d / eps)
    c = 1 if point["C_s"] == "1" else m
    printed = Fraction(4 * d * c) / (4 * d * c + eps**2 * (m - c))
    if point["link"] == "first":
        a = 4 * d / eps**2
        return Sides(a * c / (a * c + (m - c)), printed)
    return Sides(printed, 2 / (2 + eps))


def _attention_proof() -> str:
    import sympy as sp

    d, c, m, eps = sp.symbols("d C m eps", positive=True)
    # cross-multiplied difference of the second link, as a sum of terms >= 0
    difference = 4 * d * c * (2 + eps) - 2 * (4 * d * c + eps**2 * (m - c))
    parts = 4 * d * eps * (c - 1) + 2 * eps**2 * c + 2 * eps * (2 * d - eps * m)
    is_zero(difference - parts, "second link")
    a = 4 * d / eps**2
    is_zero(a * c / (a * c + m - c) - 4 * d * c / (4 * d * c + eps**2 * (m - c)), "first link")
    return "for 1 <= C_s <= m <= 2d/eps the cross-multiplied difference is a sum of terms >= 0"


def _short(point: Point) -> Sides:
    eps = point.fraction("eps")
    return Sides(2 * eps**2 / (2 + eps) ** 2, eps / 2, strict=True)


def _short_proof() -> str:
    import sympy as sp

    eps = sp.Symbol("eps")
    rest = eps / 2 - 2 * eps**2 / (2 + eps) ** 2
    is_zero(rest - eps * (4 + eps**2) / (2 * (2 + eps) ** 2), "difference")
    positive((4 + eps**2) / (2 * (2 + eps) ** 2), "4 + eps^2 > 0", eps=0)
    return "the difference is eps (4 + eps^2)/(2 (2 + eps)^2)"


def _grid(level: str) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level), eps=grids.epsilons(level))


def _claim(id: str, title: str, kind: Kind, sides, grid, **rest) -> Claim:
    source = rest.pop("source", "Paper A.2")
    mark = rest.pop("mark", Mark.PRINTED)
    return Claim(f"prop1{id}", title, mark, kind, source, sides, grid, **rest)


CLAIMS = (
    _claim(
        "",
        "beta = 2 e_s and gap = ln(4d/eps^2), equal background: L <= eps",
        Kind.UPPER_BOUND,
        _symmetric,
        _grid,
        hypotheses=(*DIMENSION, *EPS),
        sharp=Sharp("smallest sufficient gap / printed gap", _smallest_gap),
        source="Paper 2",
    ),
    _claim(
        ".general",
        "beta = 2 e_s and unequal background weights with that gap: L <= eps",
        Kind.UPPER_BOUND,
        _general,
        lambda level: grids.product(
            d=_GENERAL[level], eps=grids.epsilons(level), weights=("a", "b")
        ),
        hypotheses=(*DIMENSION, *EPS),
        source="Paper 2",
    ),
    _claim(
        ".reduction",
        "among attentions with the gap, equal background weights are the worst",
        Kind.UPPER_BOUND,
        _reduction,
        lambda level: grids.product(d=grids.dimensions(level)),
        hypotheses=DIMENSION,
        proof=_reduction_proof,
        mark=Mark.OURS,
        source="THEORY 1 (derivative of gamma_s)",
    ),
    _claim(
        ".negatives",
        "f = -1 on negative words, loss 0",
        Kind.IDENTITY,
        _negatives,
        lambda level: grids.product(d=grids.dimensions(level)),
        hypotheses=DIMENSION,
        proof=_negatives_proof,
    ),
    _claim(
        ".tail",
        "P(|w| > M) = (1 - 1/(d-1))^M < e^(-2/eps) at M = 2d/eps",
        Kind.UPPER_BOUND,
        _tail,
        lambda level: grids.product(
            d=grids.dimensions(level), eps=grids.epsilons(level), link=TAIL_LINKS
        ),
        hypotheses=(*DIMENSION, *EPS),
    ),
    _claim(
        ".long",
        "loss <= 2, and 2 e^(-2/eps) < eps/2",
        Kind.UPPER_BOUND,
        _long,
        lambda level: grids.product(
            eps=grids.epsilons(level), link=("loss <= 2", "2 e^(-2/eps) < eps/2")
        ),
        hypotheses=EPS,
        proof=_long_proof,
    ),
    _claim(
        ".attention",
        "gamma_s >= 4d C_s/(4d C_s + eps^2 (m - C_s)) >= 2/(2 + eps) for |w| <= M, C_s >= 1",
        Kind.LOWER_BOUND,
        _attention,
        lambda level: grids.product(
            d=grids.dimensions(level),
            eps=grids.epsilons(level),
            C_s=("1", "m"),
            link=("first", "second"),
        ),
        hypotheses=(*DIMENSION, *EPS),
        proof=_attention_proof,
    ),
    _claim(
        ".short",
        "2 eps^2/(2 + eps)^2 < eps/2",
        Kind.UPPER_BOUND,
        _short,
        lambda level: grids.product(eps=grids.epsilons(level)),
        hypotheses=EPS,
        proof=_short_proof,
    ),
)
