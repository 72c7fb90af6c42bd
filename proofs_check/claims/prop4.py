"""Proposition 4: lazy multi-head training fails. Paper 3, A.5 (box missing)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from popgd.ball import Ball, ball, bits, less
from popgd.certified_output import hessian

from .. import grids
from ..attention import Attention
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..general import rationals, separate
from ..point import Point
from ..symbolic import is_zero, never_negative
from ..training import ceiling
from ..verdict import Kind, Mark
from .prop2 import weighted
from .prop3 import uniform_minimum

TITLE = "Lazy multi-head training fails"

_SMALL = {"quick": (2, 3, 5), "default": (2, 3, 4, 5, 10), "full": (2, 3, 4, 5, 10, 20)}
_CROSS = 400  # up to here the sum over m is also taken term by term
_EXTRA = (400, 10**4)


def _mass(point: Point) -> Sides:
    """min over s of the sum over heads of E[gamma_s^2], at random heads."""
    d, heads = point.d, int(point["H"])
    squares = [_squares(d, f"{point['weights']} {h}", bits()) for h in range(heads)]
    least = None
    for s in range(d):
        total = sum((square[s] for square in squares), ball(0))
        least = total if least is None else least.min(total)
    return Sides(least, Fraction(heads, d))


@cache
def _squares(d: int, seed: str, bits: int) -> list[Ball]:
    """E[gamma_s^2] for each s: it is zero on the words without s, so any target will do."""
    matrix = hessian(separate(d, 0, rationals(seed, d, -4, 4), [0] * d))
    return [matrix[s][s] for s in range(d)]


def _mass_proof() -> str:
    import sympy as sp

    g = sp.Symbol("gamma", positive=True)
    # gamma^2 <= gamma on [0, 1], and the gamma_s of a head add up to 1
    never_negative(sp.expand((g - g**2).subs(g, 1 / (1 + g))), "gamma - gamma^2", gamma=0)
    return "sum over s and heads of E[gamma_s^2] <= H, so some s has at most H/d"


def total_mass(d: int) -> Ball:
    """W = sum over m of P(y = -1, m) min(1, R_m), by geometric series.

    R_m < 1 exactly for (1-x)^(m+1) > 1/2, x = q/d.
    """
    x = Fraction(d - 2, d * (d - 1))
    cut = _cut(d)  # the first m with R_m >= 1
    p, base = ball(Fraction(1, d - 1)), ball(Fraction(d - 2, d))
    first = p * ball(1 - Fraction(1, d))  # P(y = -1, m = 1)
    keep = ball(1 - x)
    growth = base / keep  # ratio of P(y = -1, m) (1-x)^-(m+1)
    n = cut - 1
    head = first / (keep * keep) * (1 - growth**n) / (1 - growth)
    head -= first * (1 - base**n) / (1 - base)
    return head + first * base**n / (1 - base)


def _cut(d: int) -> int:
    """The least m >= 1 with R_m >= 1, in exact comparisons of logarithms."""
    x = ball(Fraction(d - 2, d * (d - 1)))
    return max(ceiling(ball(2).log() / -((1 - x).log()) - 1), 1)


def _total(point: Point) -> Sides:
    d = point.d
    if point["link"] == "series":
        x = ball(Fraction(d - 2, d * (d - 1)))
        cut = _cut(d)

        def share(m: int) -> Ball:
            return ball(1) if m >= cut else 1 / (1 - x) ** (m + 1) - 1

        term_by_term = weighted(d, share, Fraction(d - 2, d))
        return Sides(term_by_term, total_mass(d), kind=Kind.IDENTITY)
    return Sides(total_mass(d), Fraction(1, 4), strict=True)


def _total_grid(level: str) -> Iterator[Point]:
    for d in grids.dimensions(level, 3, extra=_EXTRA):
        yield Point(d=d, link="W > 1/4")
        if d <= _CROSS:
            yield Point(d=d, link="series")


def bound(point: Point) -> Ball:
    """(sqrt(W) - sqrt(H/(2 sqrt(d))))^2, valid when the difference is positive."""
    spread = (ball(point["H"]) / (2 * ball(point.d).sqrt())).sqrt()
    difference = total_mass(point.d).sqrt() - spread
    return difference * difference


def _pairing(point: Point) -> Sides:
    """The exact minimum at uniform attention in every head, against the bound."""
    return Sides(uniform_minimum(point.d), bound(point))


def says_something(point: Point) -> bool | None:
    return less(ball(point["H"]), 2 * total_mass(point.d) * ball(point.d).sqrt())


def _change(point: Point) -> Sides:
    """D^2 against 2 ||B||^2 sum over heads of gamma_s(z')^2, for k insertions into a word."""
    d, heads, k = point.d, int(point["H"]), int(point["k"])
    counts = [0, *(i % 3 + 1 for i in range(d - 1))]
    change = norm = attention = Fraction(0)
    for h in range(heads):
        a = [abs(x) + Fraction(1, 3) for x in rationals(f"a {h} {d}", d)]
        beta = rationals(f"beta {h} {d}", d)
        before = [x * c for x, c in zip(a, counts, strict=True)]
        after = [k * a[0], *before[1:]]
        change += sum(
            b * (y / sum(after) - x / sum(before))
            for b, x, y in zip(beta, before, after, strict=True)
        )
        norm += sum(b * b for b in beta)
        attention += (after[0] / sum(after)) ** 2
    return Sides(change**2, 2 * norm * attention)


def _change_proof() -> str:
    import sympy as sp

    own, rest, other = sp.symbols("x S y", positive=True)
    gamma = own / (own + rest)  # gamma_s(z'), the background mass of z being S
    is_zero(other / (own + rest) - other / rest - gamma * (0 - other / rest), "background")
    is_zero(gamma - 0 - gamma * (1 - 0), "target")
    length, x, change = sp.symbols("n x D", positive=True)
    # |e_s - gamma(z)|^2 = 1 + n with n = |gamma(z)|^2 in [0, 1]
    never_negative((2 - (1 + length)).subs(length, 1 / (1 + x)), "2 - |e_s - gamma(z)|^2", x=0)
    # the minimum over g(z) of [g^2 + (2 - D - g)^2]/2 is (2 - D)^2/4
    value = (x**2 + (2 - change - x) ** 2) / 2
    is_zero(value - (2 - change) ** 2 / 4 - (x - (2 - change) / 2) ** 2, "square")
    return "gamma(z') - gamma(z) = gamma_s(z') (e_s - gamma(z)), then Cauchy-Schwarz"


def _frozen(point: Point) -> Sides:
    """||B||_F^2 of the two plans' limits, in rationals."""
    heads, d = int(point["H"]), point.d
    if point["plan"] == "one head trained":
        weights = [[2] + [0] * (d - 1), *([0] * d for _ in range(heads - 1))]
        wanted = Fraction(4)
    else:
        weights = [[Fraction(2, heads)] + [0] * (d - 1) for _ in range(heads)]
        wanted = Fraction(4, heads)
    return Sides(sum(Fraction(x) ** 2 for row in weights for x in row), wanted)


def _identical(point: Point) -> Sides:
    """H identical heads, each with 1/H of the single head's output, are that single head."""
    heads, d = int(point["H"]), point.d
    a = [abs(x) + Fraction(1, 3) for x in rationals(f"a {d}", d)]
    beta, counts = rationals(f"beta {d}", d), [i % 3 + 1 for i in range(d)]
    total = sum(x * c for x, c in zip(a, counts, strict=True))
    gamma = [x * c / total for x, c in zip(a, counts, strict=True)]
    single = sum(b * g for b, g in zip(beta, gamma, strict=True)) - 1
    many = sum(b / heads * g for _ in range(heads) for b, g in zip(beta, gamma, strict=True)) - 1
    return Sides(many, single)


def _converges(point: Point) -> Sides:
    """The optimum at a gap approaches 2 e_s: ||beta* - 2 e_s||^2 against its leading size."""
    attention = Attention(point.d, point.ball("gap"))
    residual, background = attention.optimum
    distance = residual * residual + (point.d - 1) * background * background
    return Sides(distance, 9 * ball(point.d) ** 3 * (-2 * attention.gap).exp())


def _claim(id: str, title: str, mark: Mark, kind: Kind, sides, grid, **rest) -> Claim:
    hypotheses = rest.pop("hypotheses", (Hypothesis("d >= 3"),))
    source = rest.pop("source", "Paper A.5")
    return Claim(id, title, mark, kind, source, sides, grid, hypotheses=hypotheses, **rest)


CLAIMS = (
    _claim(
        "lemma.mass",
        "some s has sum over heads of E[gamma_s^2] <= H/d",
        Mark.PRINTED,
        Kind.UPPER_BOUND,
        _mass,
        lambda level: grids.product(d=_SMALL[level], H=(1, 2, 3), weights=("a", "b")),
        hypotheses=(Hypothesis("d >= 2"), Hypothesis("H >= 1")),
        proof=_mass_proof,
        group="prop4",
    ),
    _claim(
        "prop4.pairing",
        "L >= (sqrt(W) - sqrt(H/(2 sqrt(d))))^2 for H < 2 W sqrt(d); here at uniform attention",
        Mark.OURS,
        Kind.LOWER_BOUND,
        _pairing,
        lambda level: grids.product(d=grids.dimensions(level, 3, extra=_EXTRA), H=(1, 2, 3, 10)),
        hypotheses=(Hypothesis("d >= 3"), Hypothesis("H < 2 W sqrt(d)", says_something)),
        sharp=Sharp("largest lower bound", bound),
    ),
    _claim(
        "prop4.pairing.change",
        "|D| <= sqrt(2) ||B||_F (sum over heads of gamma_s(z')^2)^(1/2)",
        Mark.OURS,
        Kind.UPPER_BOUND,
        _change,
        lambda level: grids.product(d=_SMALL[level][1:], H=(1, 2, 3), k=(1, 2, 10)),
        proof=_change_proof,
    ),
    _claim(
        "prop4.pairing.mass",
        "W = sum over m of P(y = -1, m) min(1, R_m) exceeds 1/4 (-> 1/4)",
        Mark.OURS,
        Kind.LOWER_BOUND,
        _total,
        _total_grid,
        sharp=Sharp(
            "W",
            lambda point: total_mass(point.d),
            largest=False,
            points=lambda level: grids.product(d=grids.dimensions(level, 3, extra=_EXTRA)),
        ),
    ),
    _claim(
        "prop4.frozen",
        "||B||_F = 2 with one head trained, 2/sqrt(H) with H identical heads",
        Mark.PRINTED,
        Kind.IDENTITY,
        _frozen,
        lambda level: grids.product(
            d=_SMALL[level], H=(1, 2, 3, 10), plan=("one head trained", "identical heads")
        ),
        hypotheses=(Hypothesis("d >= 2"), Hypothesis("H >= 1")),
        source="Paper 3",
    ),
    _claim(
        "prop4.frozen.identical",
        "H identical heads with outputs beta/H compute the single-head function",
        Mark.PRINTED,
        Kind.IDENTITY,
        _identical,
        lambda level: grids.product(d=_SMALL[level], H=(1, 2, 3, 10)),
        hypotheses=(Hypothesis("d >= 2"), Hypothesis("H >= 1")),
        source="Paper 3",
    ),
    _claim(
        "prop4.frozen.limit",
        "the optimal output tends to 2 e_s: ||beta* - 2 e_s|| <= 3 d^(3/2) e^-gap",
        Mark.OURS,
        Kind.RATE,
        _converges,
        lambda level: grids.product(d=grids.dimensions(level, 3), gap=("ln(d)", "2*ln(d)", "100")),
        source="THEORY 5",
    ),
)
