"""Theorem 1: attention first, then output, fails: the steps of its proof. Paper 3, A.6."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb

from popgd.ball import Ball, ball, less

from .. import grids
from ..claim import Claim, Hypothesis, ProofFailed, Sharp, Sides
from ..general import rationals
from ..point import Point
from ..symbolic import is_zero, never_negative, positive
from ..verdict import Kind, Mark

TITLE = "Attention first fails"

LEAST, NINE, LONG = Hypothesis("d >= 3"), Hypothesis("d >= 9"), Hypothesis("m >= d")


def _ratio(point: Point) -> Sides:
    """m + 1 strings, each rho(z) q/d."""
    d, m = point.d, int(point.fraction("m"))
    return Sides(Fraction((m + 1) * (d - 2), d * (d - 1)), Fraction(1, 2))


def _ratio_proof() -> str:
    import sympy as sp

    d, u = sp.symbols("d u")
    ratio = (d + u + 1) * (d - 2) / (d * (d - 1))  # m = d + u
    positive(ratio - sp.Rational(1, 2), "rho(Z)/rho(z) - 1/2", d=3, u=0)
    return "m = d + u, u >= 0: the difference has non-negative coefficients in d - 3 and u"


def _appear(point: Point) -> Sides:
    d, m = point.d, int(point.fraction("m"))
    log = ball(1 - Fraction(1, d - 1)).log()
    exact, half, limit = 1 - (m * log).exp(), 1 - (d * log / 2).exp(), 1 - (-ball(1) / 2).exp()
    return {
        "first": Sides(exact, half),
        "second": Sides(half, limit),
        "third": Sides(limit, Fraction(1, 8)),
    }[point["link"]]


def _appear_proof() -> str:
    import sympy as sp

    x, d = sp.symbols("x d")
    # -ln(1-x) - x has derivative x/(1-x) >= 0 and vanishes at 0: ln(1-x) <= -x
    is_zero(sp.diff(-sp.log(1 - x) - x, x) - x / (1 - x), "slope")
    positive(d / (2 * (d - 1)) - sp.Rational(1, 2), "d/(2(d-1)) - 1/2", d=3)
    if less(ball(Fraction(1, 8)), 1 - (-ball(1) / 2).exp()) is not True:
        raise ProofFailed("1 - e^(-1/2) >= 1/8")
    return "m >= d >= d/2; ln(1-x) <= -x at x = 1/(d-1); 1 - e^(-1/2) = 0.39"


def _attention(point: Point) -> Sides:
    return Sides(1 / (Fraction(point.d, 2) + 1), Fraction(4, point.d), strict=True)


def _attention_proof() -> str:
    import sympy as sp

    d = sp.Symbol("d")
    positive(4 / d - 1 / (d / 2 + 1), "4/d - 1/(d/2+1)", d=3)
    return "4/d - 2/(d+2) = (2d + 8)/(d (d+2))"


def _good(point: Point) -> Sides:
    return Sides(good_probability(point), Fraction(1, 8))


def good_probability(point: Point) -> Ball:
    """P(gamma_s(z') < 4/d) for k background weights at h and the others equal, sum 0.

    gamma_s(z') < 4/d says sum a_i C_i > (d/4 - 1) a_s; the sum has N ~ Binomial(m, k/(d-1))
    terms e^h and m - N terms of the other weight, and is monotone in N.
    """
    d, m, k = point.d, int(point.fraction("m")), int(point.fraction("k"))
    height, own = point.ball("h"), point.ball("alpha_s")
    others = d - 1 - k
    rest = -(k * height + own) / others if others else ball(0)
    high, low, needed = height.exp(), rest.exp(), ball(Fraction(d, 4) - 1) * own.exp()
    return sum(
        (
            ball(Fraction(comb(m, n) * k**n * others ** (m - n), (d - 1) ** m))
            for n in range(m + 1)
            if _true(less(needed, n * high + (m - n) * low))
        ),
        ball(0),
    )


def _true(answer: bool | None) -> bool:
    if answer is None:
        raise ArithmeticError("an attention is undecided against 4/d")
    return answer


def _good_proof() -> str:
    import sympy as sp

    d, u, mean = sp.symbols("d u mu")
    # case max a_i >= d/2: that symbol alone exceeds d/4 - 1, and it appears (thm1.appear)
    positive(d / 2 - (d / 4 - 1), "d/2 - (d/4 - 1)", d=3)
    # case max a_i < d/2: mean mu >= 1, E[xi^2] <= (d/2) mu, S of m = d + u terms; Paley-Zygmund
    # P(S > E[S]/4) >= (9/16) E[S]^2/E[S^2] with E[S^2] <= m (d/2) mu + m^2 mu^2
    m = d + u
    share = sp.Rational(9, 16) * (m * mean) ** 2 / (m * d / 2 * mean + (m * mean) ** 2)
    positive(sp.cancel(share) - sp.Rational(1, 8), "Paley-Zygmund - 1/8", d=3, u=0, mu=1)
    positive(m * mean / 4 - (d / 4 - 1), "E[S]/4 - (d/4 - 1)", d=3, u=0, mu=1)
    return "case 1 by thm1.appear; case 2 by Paley-Zygmund with mean >= 1 (weights sum to 0)"


def _good_grid(level: str) -> Iterator[Point]:
    for d in grids.dimensions(level, 3, 50 if level == "quick" else 200):
        for m, k in product((d, 2 * d), sorted({1, max(1, d // 4), d - 2})):
            for h, own in product(("0", "1", "ln(d)", "3*ln(d)", "50"), ("0", "-1")):
                yield Point(d=d, m=m, k=k, h=h, alpha_s=own)


def _split(point: Point) -> Sides:
    """Random beta with beta_s <= d/4 on a word with gamma_s(z') < 4/d: one loss is >= 1/8."""
    d = point.d
    beta = rationals(f"{point['weights']} beta {d}", d, -3, 3)
    beta[0] = min(beta[0] + d, Fraction(d, 4))
    counts = [0, *(i % 3 + 1 for i in range(d - 1))]
    mass = sum(counts)
    own = min(Fraction(1, 2), Fraction(mass, d))  # a_s, background weights 1
    outside = sum(b * c for b, c in zip(beta, counts, strict=True)) / Fraction(mass)
    gamma = own / (own + mass)
    if not gamma < Fraction(4, d):
        raise ArithmeticError("the word is not in G_m")
    inserted = outside * (1 - gamma) + beta[0] * gamma - 2
    return Sides(max(outside**2 / 2, inserted**2 / 2), Fraction(1, 8))


def _split_proof() -> str:
    import sympy as sp

    g, up, down, small = sp.symbols("G t u v", nonnegative=True)
    # G >= 1/2: G^2/2 >= 1/8
    never_negative(((sp.Rational(1, 2) + up) ** 2 / 2 - sp.Rational(1, 8)), "loss of z", t=0)
    # otherwise f(z') - 1 = G (1-gamma) + beta_s gamma - 2 with G (1-gamma) <= 1/2 and
    # beta_s gamma < (d/4)(4/d) = 1, so f(z') - 1 = -1/2 - u - v and the loss is >= 1/8
    gap = -sp.Rational(1, 2) - down - small
    never_negative(gap**2 / 2 - sp.Rational(1, 8), "loss of z'", u=0, v=0)
    b, gamma = sp.symbols("beta_s gamma")
    s = sp.Symbol("S")
    inserted = (g * s + b * gamma * s / (1 - gamma)) / (s + gamma * s / (1 - gamma))
    is_zero(inserted - (g * (1 - gamma) + b * gamma), "G and beta_s mixed by gamma_s(z')")
    return "G >= 1/2 gives G^2/2 >= 1/8; else f(z') - 1 < 1/2 + 1 - 2"


def _pair(point: Point) -> Sides:
    """The worst split: one side of the pair at loss 1/8, the other at 0."""
    d, m = point.d, int(point.fraction("m"))
    ratio = Fraction((m + 1) * (d - 2), d * (d - 1))  # rho(Z)/rho(z)
    least = min(Fraction(1), ratio)
    if point["link"] == "first":
        return Sides(min(Fraction(1, 8), ratio / 8), least / 8)
    return Sides(least / 8, Fraction(1, 16))


def _disjoint(point: Point) -> Sides:
    """Distinct strings in the union of {z} and Z(z) against the sum of their sizes."""
    d, longest = point.d, int(point["m"])
    seen: set[tuple[int, ...]] = set()
    total = 0
    for m in range(1, longest + 1):
        for z in product(range(1, d), repeat=m):
            own = {z} | {(*z[:i], 0, *z[i:]) for i in range(m + 1)}
            seen |= own
            total += len(own)
    return Sides(len(seen), total)


def _mass(point: Point) -> Sides:
    """First term over 1 - ratio of the sum over m >= d, in balls for the powers."""
    d = point.d
    p, absent = Fraction(1, d - 1), 1 - Fraction(1, d)
    q = 1 - p
    first = ball(p * absent) * ball(q * absent) ** (d - 1)
    return Sides(first / ball(1 - q * absent), ball(1 - Fraction(2, d)) ** (d - 1) / 2)


def _mass_proof() -> str:
    import sympy as sp

    d = sp.Symbol("d", positive=True)
    q, absent = 1 - 1 / (d - 1), 1 - 1 / d
    is_zero(q * absent - (1 - 2 / d), "ratio of the series")
    is_zero((1 / (d - 1)) * absent / (1 - q * absent) - sp.Rational(1, 2), "sum from m = 1")
    return "geometric series with ratio 1 - 2/d from m = d on"


def _chain(point: Point) -> Sides:
    power = ball(1 - Fraction(2, point.d)) ** (point.d - 1)
    mass = power / 2
    return {
        "rho(G)/16 >= P/128": Sides(mass / 8 / 16, mass / 128, kind=Kind.IDENTITY),
        "P/128 = (1-2/d)^(d-1)/256": Sides(mass / 128, power / 256, kind=Kind.IDENTITY),
        "(1-2/d)^(d-1)/256 >= 1/6912": Sides(power / 256, Fraction(1, 6912)),
    }[point["link"]]


CHAIN = (
    "rho(G)/16 >= P/128",
    "P/128 = (1-2/d)^(d-1)/256",
    "(1-2/d)^(d-1)/256 >= 1/6912",
)


def _exp(point: Point) -> Sides:
    d = point.d
    return {
        "(d-1) ln(1-2/d) >= -2(d-1)/(d-2)": Sides(
            (d - 1) * ball(1 - Fraction(2, d)).log(), Fraction(-2 * (d - 1), d - 2)
        ),
        "-2(d-1)/(d-2) >= -16/7": Sides(Fraction(-2 * (d - 1), d - 2), Fraction(-16, 7)),
        "-16/7 > -3": Sides(Fraction(-16, 7), -3, strict=True),
        "e^-3 > 1/27": Sides(ball(-3).exp(), Fraction(1, 27), strict=True),
    }[point["link"]]


EXP = (
    "(d-1) ln(1-2/d) >= -2(d-1)/(d-2)",
    "-2(d-1)/(d-2) >= -16/7",
    "-16/7 > -3",
    "e^-3 > 1/27",
)


def _exp_proof() -> str:
    import sympy as sp

    x, d = sp.symbols("x d")
    # ln(1-x) + x/(1-x) vanishes at 0 and has slope x/(1-x)^2 >= 0
    is_zero(sp.diff(sp.log(1 - x) + x / (1 - x), x) - x / (1 - x) ** 2, "slope")
    is_zero((d - 1) * (2 / d) / (1 - 2 / d) - 2 * (d - 1) / (d - 2), "x = 2/d")
    never_negative(sp.Rational(16, 7) - 2 * (d - 1) / (d - 2), "16/7 - 2(d-1)/(d-2)", d=9)
    if less(ball(Fraction(1, 27)), ball(-3).exp()) is not True:
        raise ProofFailed("e^-3 > 1/27")
    return "ln(1-x) >= -x/(1-x); 2(d-1)/(d-2) <= 16/7 from d = 9 on; e^-3 > 1/27"


def _large(point: Point) -> Sides:
    """Words s, ss, ...: f = beta_s - 1, loss (beta_s - 2)^2/2 above (d/4 - 2)^2/2."""
    return Sides(large_bound(point.d), Fraction(1, 2080))


def large_bound(d: int) -> Fraction:
    """Their contribution at beta_s = d/4, for d >= 9."""
    return (Fraction(d, 4) - 2) ** 2 / 2 / (d * d - 2 * d + 2)


def _large_proof() -> str:
    import sympy as sp

    d = sp.Symbol("d")
    value = (d / 4 - 2) ** 2 / 2 / (d**2 - 2 * d + 2)
    never_negative(value - sp.Rational(1, 2080), "value - 1/2080", d=9)
    p, t = sp.symbols("p t")
    # P(only s) = sum p q^(m-1) d^-m = p/(d - q)
    is_zero((p / (d - (1 - p))).subs(p, 1 / (d - 1)) - 1 / (d**2 - 2 * d + 2), "P(only s)")
    never_negative(sp.expand((d / 4 - 2 + t) ** 2 - (d / 4 - 2) ** 2), "beta_s > d/4", d=9, t=0)
    return "attained at d = 9 as beta_s -> d/4; larger afterwards"


def _long_words(level: str, **more) -> Iterator[Point]:
    for d in grids.dimensions(level, 3):
        yield from grids.product(d=(d,), m=(d, d + 1, 2 * d), **more)


def _step(id: str, title: str, kind: Kind, sides, grid, hypotheses, **rest) -> Claim:
    mark = rest.pop("mark", Mark.PRINTED)
    return Claim(
        f"thm1.{id}", title, mark, kind, "Paper A.6", sides, grid, hypotheses=hypotheses, **rest
    )


def _dimensions(level: str, **more) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 3), **more)


def _from_nine(level: str, **more) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 9), **more)


CLAIMS = (
    _step("ratio", "rho(Z)/rho(z) >= 1/2 for m >= d >= 3", Kind.LOWER_BOUND, _ratio, _long_words,
          (LEAST, LONG), proof=_ratio_proof),
    _step("appear", "1-(1-1/(d-1))^m >= 1-(1-1/(d-1))^(d/2) >= 1-e^(-1/2) >= 1/8 for m >= d",
          Kind.LOWER_BOUND, _appear,
          lambda level: _long_words(level, link=("first", "second", "third")),
          (LEAST, LONG), proof=_appear_proof),
    _step("attention", "1/(d/2 + 1) < 4/d", Kind.UPPER_BOUND, _attention, _dimensions, (LEAST,),
          proof=_attention_proof),
    _step("good", "P(gamma_s(z') < 4/d | |z| = m, y = -1) >= 1/8 if sum alpha' = 0, alpha'_s <= 0",
          Kind.LOWER_BOUND, _good, _good_grid,
          (LEAST, LONG, Hypothesis("alpha_s <= 0")), mark=Mark.RECONSTRUCTED, proof=_good_proof,
          sharp=Sharp("smallest probability", good_probability, largest=False)),
    _step("split", "z in G_m, beta_s <= d/4: l(z) >= 1/8 or every l(z') >= 1/8", Kind.LOWER_BOUND,
          _split, lambda level: grids.product(d=grids.dimensions(level, 3, 200), weights="abc"),
          (LEAST,), proof=_split_proof),
    _step("pair", "rho(z) l(z) + sum rho(z') l(z') >= min{rho(z), rho(Z)}/8 >= rho(z)/16",
          Kind.LOWER_BOUND, _pair, lambda level: _long_words(level, link=("first", "second")),
          (LEAST, LONG)),
    _step("disjoint", "the sets {z} and Z(z) are disjoint over z", Kind.IDENTITY, _disjoint,
          lambda level: iter([Point(d=3, m=6), Point(d=4, m=4), Point(d=5, m=3)]), (LEAST,)),
    _step("mass", "P(y = -1, |w| >= d) = (1/2)(1-2/d)^(d-1)", Kind.IDENTITY, _mass, _dimensions,
          (LEAST,), proof=_mass_proof),
    _step("chain", "rho(G)/16 >= P(y=-1, |w| >= d)/128 = (1/256)(1-2/d)^(d-1) >= 1/6912",
          Kind.LOWER_BOUND, _chain, lambda level: _from_nine(level, link=CHAIN), (NINE,),
          sharp=Sharp("(1/256)(1-2/d)^(d-1)",
                      lambda p: ball(1 - Fraction(2, p.d)) ** (p.d - 1) / 256, largest=False)),
    _step("exp", "(d-1) ln(1-2/d) >= -2(d-1)/(d-2) >= -16/7 > -3, e^-3 > 1/27", Kind.LOWER_BOUND,
          _exp, lambda level: _from_nine(level, link=EXP), (NINE,), proof=_exp_proof),
    _step("large", "beta_s > d/4 gives L >= 1/2080", Kind.LOWER_BOUND, _large, _from_nine, (NINE,),
          proof=_large_proof,
          sharp=Sharp("bound", lambda point: ball(large_bound(point.d)), largest=False)),
)  # fmt: skip
