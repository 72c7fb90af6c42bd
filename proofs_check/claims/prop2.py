"""Proposition 2: training the attention alone fails. Paper 3, A.3 (box missing)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import comb

from popgd.ball import Ball, ball, bits, hull, less
from popgd.certified_integral import risk

from .. import grids
from ..claim import Claim, Hypothesis, Sharp, Sides
from ..general import rationals, separate
from ..point import Point
from ..symbolic import is_zero, never_negative, positive
from ..verdict import Kind, Mark

TITLE = "Attention-only training fails"

_SMALL = {"quick": (2, 3, 5), "default": (2, 3, 4, 5, 10), "full": (2, 3, 4, 5, 10, 20, 50)}
_SEEDS = {"quick": ("a",), "default": ("a", "b"), "full": ("a", "b", "c", "d")}


def _case1(point: Point) -> Sides:
    """The risk at random alpha and beta >= 1, some of them exactly 1."""
    d, seed = point.d, point["weights"]
    beta = [max(x, Fraction(0)) + 1 for x in rationals(f"{seed} beta {d}", d)]
    return Sides(risk(separate(d, 0, rationals(f"{seed} alpha {d}", d), beta)), Fraction(1, 4))


def _case1_proof() -> str:
    import sympy as sp

    t = sp.Symbol("t")
    # beta~ >= 1 makes the weighted mean f + 1 = 1 + t with t >= 0
    never_negative((t + 1) ** 2 / 2 - sp.Rational(1, 2), "loss of a negative word - 1/2", t=0)
    return "negative words have f >= 0, so loss >= 1/2, and they have probability 1/2"


def bound(d: int) -> Fraction:
    """1 - 2 (d^2-2d+2)^2/(d (d-1) (3d^2-6d+4))."""
    return 1 - Fraction(2 * (d * d - 2 * d + 2) ** 2, d * (d - 1) * (3 * d * d - 6 * d + 4))


def weighted(d: int, share, ratio: Fraction) -> Ball:
    """Sum over m of P(y = -1, m) share(m), for 0 <= share <= 2, with its tail enclosed."""
    p = Fraction(1, d - 1)
    term, total, m = ball(p * (1 - Fraction(1, d))), ball(0), 1
    while True:
        total += term * share(m)
        term, m = term * ball(ratio), m + 1
        rest = 2 * term / ball(1 - ratio)
        if less(rest, ball(2) ** (-bits() + 8)):
            return total + hull(0, rest)


def _insertions(d: int, m: int) -> Fraction:
    """R_m: the mass of all insertions of s into a negative word of length m, over its mass."""
    x = Fraction(d - 2, d * (d - 1))
    return 1 / (1 - x) ** (m + 1) - 1


def _pairing(point: Point) -> Sides:
    d = point.d
    if point["link"] == ">= 1/3":
        return Sides(bound(d), Fraction(1, 3))
    x = ball(Fraction(d - 2, d * (d - 1)))

    def share(m: int) -> Ball:
        r = 1 / (1 - x) ** (m + 1) - 1
        return 2 * r / (1 + r)

    return Sides(weighted(d, share, Fraction(d - 2, d)), bound(d), kind=Kind.IDENTITY)


def _pairing_proof() -> str:
    import sympy as sp

    d = sp.Symbol("d")
    q = (d - 2) / (d - 1)
    keep = 1 - q / d  # 1/(1 + R_m) = keep^(m+1)
    first = 1 / (d - 1) * (1 - 1 / d) * keep**2
    printed = 1 - 2 * (d**2 - 2 * d + 2) ** 2 / (d * (d - 1) * (3 * d**2 - 6 * d + 4))
    is_zero(1 - 2 * first / (1 - q * (1 - 1 / d) * keep) - printed, "sum over m")
    never_negative(printed - sp.Rational(1, 3), "bound - 1/3", d=3)
    return "geometric series summed symbolically; bound - 1/3 has non-negative coefficients in d-3"


def _pairing_grid(level: str) -> Iterator[Point]:
    for d in grids.dimensions(level, 3):
        yield Point(d=d, link=">= 1/3")
        if d <= 100:
            yield Point(d=d, link="sum over m = closed form")


def _minimum(point: Point) -> Sides:
    """min over x of [x^2 + R (2-x)^2]/2 at R = R_m, against x a little to either side."""
    r = _insertions(point.d, int(point["m"]))
    x = 2 * r / (1 + r) + point.fraction("shift")
    return Sides((x * x + r * (2 - x) ** 2) / 2, 2 * r / (1 + r))


def _minimum_proof() -> str:
    import sympy as sp

    x, r = sp.symbols("x R", positive=True)
    value = (x**2 + r * (2 - x) ** 2) / 2
    is_zero(value - 2 * r / (1 + r) - (1 + r) / 2 * (x - 2 * r / (1 + r)) ** 2, "square")
    return "the difference is (1+R)/2 times a square"


def _mass(point: Point) -> Sides:
    """Sum over k >= 1 of C(m+k, k) x^k, enclosed, against (1-x)^-(m+1) - 1."""
    d, m = point.d, int(point["m"])
    x = Fraction(d - 2, d * (d - 1))
    total, k = ball(0), 0
    while True:
        k += 1
        term = ball(comb(m + k, k)) * ball(x) ** k
        total += term
        # later terms shrink at least by this ratio
        ratio = x * Fraction(m + k + 1, k + 1)
        if ratio < Fraction(1, 2) and less(term, ball(2) ** (-bits() + 8)):
            return Sides(total + hull(0, term), _insertions(d, m))


def _order(point: Point) -> Sides:
    """g(z') against g(z) for k more target symbols, beta_s the least weight."""
    d, seed = point.d, point["weights"]
    a = [abs(x) + Fraction(1, 3) for x in rationals(f"{seed} a {d}", d)]
    beta = sorted(rationals(f"{seed} beta {d}", d))
    counts = [0, *(i % 3 + 1 for i in range(d - 1))]

    def g(inserted: int) -> Fraction:
        shares = [x * c for x, c in zip(a, [inserted, *counts[1:]], strict=True)]
        mixed = sum((b * x for b, x in zip(beta, shares, strict=True)), Fraction(0))
        return mixed / sum(shares)

    values = [g(k) for k in (0, 1, 2, 5, 50)]
    return Sides(max(after - before for before, after in pairwise(values)), 0)


def _order_proof() -> str:
    import sympy as sp

    g, beta, a, total, more = sp.symbols("g beta_s a_s S t")
    inserted = (g * total + beta * a) / (total + a)
    # with g = beta_s + t, t >= 0: a weighted mean never lies below the least weight
    change = sp.simplify((g - inserted).subs(g, beta + more))
    is_zero(change - more * a / (total + a), "g(z) - g(z')")
    positive(a / (total + a), "share of the inserted symbol", a_s=1, S=1)
    return "g(z) - g(z') = (g(z) - beta_s) a_s/(S + a_s) >= 0"


def _single(point: Point) -> Ball:
    """The bound with one insertion only, R_m replaced by (m+1) q/d."""
    d = point.d
    x = ball(Fraction(d - 2, d * (d - 1)))
    return weighted(d, lambda m: 2 * (m + 1) * x / (1 + (m + 1) * x), Fraction(d - 2, d))


def _claim(id: str, title: str, mark: Mark, kind: Kind, sides, grid, **rest) -> Claim:
    least = rest.pop("least", 3)
    return Claim(
        f"prop2.{id}", title, mark, kind, "Paper A.3", sides, grid,
        hypotheses=(Hypothesis(f"d >= {least}"),), **rest,
    )  # fmt: skip


def _lengths(level: str, **more) -> Iterator[Point]:
    return grids.product(d=grids.dimensions(level, 3), m=(1, 2, 10, 50), **more)


CLAIMS = (
    _claim(
        "case1",
        "if min beta~ >= 1 the risk is >= 1/4 for every alpha",
        Mark.PRINTED,
        Kind.LOWER_BOUND,
        _case1,
        lambda level: grids.product(d=_SMALL[level], weights=_SEEDS[level]),
        proof=_case1_proof,
        least=2,
    ),
    _claim(
        "pairing",
        "L >= 1 - 2(d^2-2d+2)^2/(d(d-1)(3d^2-6d+4)) >= 1/3",
        Mark.OURS,
        Kind.LOWER_BOUND,
        _pairing,
        _pairing_grid,
        proof=_pairing_proof,
        sharp=Sharp("bound", lambda point: ball(bound(point.d)), largest=False),
    ),
    _claim(
        "pairing.order",
        "inserting s = argmin beta~ never raises g",
        Mark.OURS,
        Kind.UPPER_BOUND,
        _order,
        lambda level: grids.product(d=_SMALL[level][1:], weights=_SEEDS[level]),
        proof=_order_proof,
    ),
    _claim(
        "pairing.mass",
        "all insertions into z have mass R_m rho(z), R_m = (1 - q/d)^-(m+1) - 1",
        Mark.OURS,
        Kind.IDENTITY,
        _mass,
        _lengths,
    ),
    _claim(
        "pairing.minimum",
        "min over x of [x^2 + R (2-x)^2]/2 is 2R/(1+R)",
        Mark.OURS,
        Kind.LOWER_BOUND,
        _minimum,
        lambda level: _lengths(level, shift=("-1", "0", "1/100", "1")),
        proof=_minimum_proof,
    ),
    _claim(
        "pairing.single",
        "with one insertion only the bound is smaller",
        Mark.OURS,
        Kind.UPPER_BOUND,
        lambda point: Sides(_single(point), bound(point.d), strict=True),
        lambda level: grids.product(d=grids.dimensions(level, 3, 1000)),
        sharp=Sharp("one-insertion bound", _single, largest=False),
    ),
)
