"""Ball arithmetic with its traps closed: the only file that imports flint.

A ball is a midpoint and a radius that provably contain a number. Precision is global to the
process in flint, undecided comparisons answer False and float() drops the radius; so precision is
set here under a lock, and every decision about a ball goes through the three-valued functions
below, never through its operators.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz

from . import _validate as check
from .enclosure import Enclosure, check_finite, outward
from .errors import NotAvailable, PrecisionExhausted
from .expression import Exact, exact

__all__ = [
    "Ball",
    "BallMatrix",
    "Enclosure",
    "Exact",
    "adaptive",
    "approximate",
    "ball",
    "balls",
    "bits",
    "certify",
    "compare",
    "enclose",
    "exact",
    "hull",
    "less",
    "log2",
    "lower",
    "magnitude",
    "matrix",
    "plus_minus",
    "power",
    "precision",
    "rational_bounds",
    "relatively_narrow",
    "sign",
    "to_float",
    "upper",
    "widen",
]

Ball = arb
BallMatrix = arb_mat
CAP = 8192  # bits: adaptive loops give up here
EXTREME = 4 * 10**5  # bits: numbers beyond 2^+-EXTREME are not written out in decimals
TINY = "1e-100000"  # a decimal above 2^-EXTREME
_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at `bits` bits inside the block; other threads wait, the old precision returns.

    Raises
    ------
    BadParameter
        When `bits` is not an integer in [2, 10^7].
    """
    bits = check.integer("bits", bits, 2, 10**7)
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def bits() -> int:
    """The current precision in bits."""
    return int(ctx.prec)


def ball(value: Any) -> Ball:
    """The number as a ball at the current precision.

    `value` is a ball (returned as it is), an Enclosure, or whatever `exact` reads.
    """
    if isinstance(value, arb):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return arb(value)
    if isinstance(value, Enclosure):
        return hull(*(_rational(x) for x in value.bounds))
    return _evaluate(exact(value))


def balls(values: Iterable[Any]) -> list[Ball]:
    """`ball` of each."""
    return [ball(value) for value in values]


def _rational(x: Fraction) -> Ball:
    return arb(fmpq(x.numerator, x.denominator))


def _evaluate(x: Exact) -> Ball:
    if x.kind == "number":
        return _rational(x.parts[0])
    if x.kind == "pi":
        return arb.pi()
    a = _evaluate(x.parts[0])
    if x.kind == "**":
        return _power(a, x.parts[1])
    if x.kind in ("sqrt", "ln", "exp"):
        return {"sqrt": arb.sqrt, "ln": arb.log, "exp": arb.exp}[x.kind](a)
    b = _evaluate(x.parts[1])
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
    }[x.kind]()


def _power(a: Ball, exponent: Exact) -> Ball:
    n = exponent.fraction
    if n is not None and n.denominator == 1:
        return power(a, n.numerator)
    return a ** _evaluate(exponent)


def power(x: Any, n: int) -> Ball:
    """x^n for an integer n of any size; x^0 = 1.

    Notes
    -----
    Flint answers not-a-number for a ball centred at exactly 0, and bounds one that contains 0
    by more than the range of x^n; here it is the range, of one sign for even n.
    Error: proved.
    """
    x, exponent = ball(x), fmpz(n)
    if n <= 0 or not x.is_finite() or not x.contains(0):
        return x**exponent
    low, high = x.lower(), x.upper()
    if n % 2:
        return hull(low**exponent, high**exponent)
    return hull(0, low.abs_upper().max(high.abs_upper()) ** exponent)


def matrix(rows: Sequence[Sequence[Ball]]) -> BallMatrix:
    """A matrix of balls from its rows, at least one."""
    return arb_mat(len(rows), len(rows[0]), [x for row in rows for x in row])


def plus_minus(radius: Any) -> Ball:
    """The ball [-radius, radius]; a ball's largest absolute value is used."""
    return arb(0, ball(radius).abs_upper())


def widen(x: Ball, radius: Any) -> Ball:
    """x with its radius enlarged."""
    return x + plus_minus(radius)


def hull(a: Any, b: Any) -> Ball:
    """The smallest ball that contains both."""
    return ball(a).union(ball(b))


def lower(x: Any) -> Ball:
    """An exact ball at or below every point of x."""
    return ball(x).lower()


def upper(x: Any) -> Ball:
    """An exact ball at or above every point of x."""
    return ball(x).upper()


def magnitude(x: Any) -> Ball:
    """An exact ball at or above |x|."""
    return ball(x).abs_upper()


def sign(x: Any) -> int | None:
    """The sign when it is proved.

    Returns
    -------
    +1, -1, 0 (exactly zero), or None when undecided at this precision.
    """
    if isinstance(x, Enclosure):
        return x.sign()
    if isinstance(x, Exact) and x.fraction is not None:
        return (x.fraction > 0) - (x.fraction < 0)
    x = ball(x)
    if not x.is_finite():
        return None
    # exact endpoints only: their comparisons are always decided
    if x.lower() > 0:
        return 1
    if x.upper() < 0:
        return -1
    return 0 if x.is_zero() else None


def compare(a: Any, b: Any) -> int | None:
    """+1 when a > b is proved, -1 when a < b is, 0 when both are the same exact number."""
    a, b = ball(a), ball(b)
    if a.is_exact() and b.is_exact() and a.is_finite() and b.is_finite():
        return int(a > b) - int(a < b)
    if not (a.is_finite() and b.is_finite()):
        return None
    if a.lower() > b.upper():
        return 1
    return -1 if a.upper() < b.lower() else None


def less(a: Any, b: Any) -> bool | None:
    """Whether a < b: True, False, or None when undecided (never use `not less(a, b)`)."""
    order = compare(a, b)
    if order is None:
        a, b = ball(a), ball(b)
        return False if a.is_finite() and b.is_finite() and a.lower() >= b.upper() else None
    return order < 0


def _endpoint(x: Ball) -> Fraction:
    mantissa, exponent = x.man_exp()
    m, e = int(mantissa), int(exponent)
    if e + m.bit_length() < -2 * EXTREME:  # a radius that small is rounded up
        return Fraction(bool(m), 1 << (2 * EXTREME))
    return Fraction(m << e) if e >= 0 else Fraction(m, 1 << -e)


@cache
def _tiny() -> Fraction:
    """Its denominator has so many digits that making it takes milliseconds."""
    return Fraction(TINY)


def _fractions(x: Ball) -> tuple[Fraction, Fraction]:
    check_finite(x.is_finite() and x.abs_upper() < arb(2) ** EXTREME)
    if x.abs_upper() < arb(2) ** -EXTREME:
        tiny, zero = _tiny(), Fraction(0)
        return (zero if x.lower() >= 0 else -tiny), (zero if x.upper() <= 0 else tiny)
    mid, rad = _endpoint(x.mid()), _endpoint(x.rad())
    return mid - rad, mid + rad


def rational_bounds(x: Any, digits: int = 60) -> tuple[Fraction, Fraction]:
    """Rational bounds on a ball, or on an exact number to about `digits` digits."""
    if isinstance(x, arb):
        return _fractions(x)
    number = exact(x)
    return _fractions(adaptive(lambda: _evaluate(number), digits))


def to_float(x: Any) -> float:
    """The double nearest to the midpoint; what is uncertain about x is forgotten."""
    if isinstance(x, arb):
        return float(x.mid())
    low, high = x.bounds if isinstance(x, Enclosure) else rational_bounds(x)
    return float((low + high) / 2)


def approximate(x: Ball) -> float:
    """The midpoint rounded to a double: for choosing grids, never for a decision."""
    value = float(x.mid())
    # [0 +/- inf] is what a tower of exponentials comes to
    if (math.isinf(value) and x.is_finite()) or (math.isfinite(value) and not x.is_finite()):
        raise NotAvailable(
            "alpha: an attention weight or gap beyond 1e308 has no grid; take the limit, gap = inf"
            " or popgd.Tiers."
        )
    return value


def log2(x: Ball) -> float:
    """About log2 |midpoint|, of any size, to choose a precision; -inf at 0 or not finite."""
    if not x.is_finite():
        return -math.inf
    mantissa, exponent = x.mid().man_exp()
    return float(exponent) + math.log2(abs(int(mantissa))) if mantissa else -math.inf


def enclose(x: Any, digits: int = 15, *, from_float: bool = False) -> Enclosure:
    """Outward decimal bounds of a ball.

    Parameters
    ----------
    x : Ball
        A finite ball; an exact number is evaluated at the current precision.
    digits : int
        Significant digits wanted; bounds carry two more so that rounding them outward does
        not cost a wanted digit.
    from_float : bool
        Recorded in the result.

    Raises
    ------
    PrecisionExhausted
        When the ball is infinite or not a number.
    """
    low, high = _fractions(ball(x))
    digits = check.integer("digits", digits, 1, 10**6)
    return Enclosure(
        outward(low, digits + 2, up=False), outward(high, digits + 2, up=True), bool(from_float)
    )


def relatively_narrow(x: Any, digits: int) -> bool:
    """Whether every ball in x (a ball, or nested sequences) is right to `digits` digits."""
    if isinstance(x, arb):
        if x.is_zero():
            return True
        return x.is_finite() and bool(x.rad() * arb(10) ** digits <= x.abs_lower())
    return all(relatively_narrow(part, digits) for part in x)


def adaptive(
    function: Callable[[], Any],
    digits: int = 15,
    *,
    cap: int = CAP,
    start: int | None = None,
    accept: Callable[[Any], bool] | None = None,
) -> Any:
    """Rerun `function` at rising precision until its balls are narrow.

    Parameters
    ----------
    function : callable without arguments
        Returns a ball or nested sequences of balls, at the precision it is called in.
    digits : int
        Relative accuracy wanted of every ball: radius <= 10^-digits of its least magnitude.
    cap : int
        Largest precision tried, in bits.
    start : int, optional
        First precision tried, in bits.
    accept : callable, optional
        Replaces the criterion: takes the result, says whether it is narrow enough.

    Returns
    -------
    What `function` returned at the first precision that sufficed.

    Raises
    ------
    PrecisionExhausted
        When the cap is reached first.

    Notes
    -----
    Error: proved, it is the radius of the balls.
    """
    digits = check.integer("digits", digits, 1, 10**6)
    enough = accept or (lambda result: relatively_narrow(result, digits))
    bits = start or int(digits * 3.33) + 30
    while True:
        with precision(min(bits, cap)):
            result = function()
            if enough(result):
                return result
        if bits >= cap:
            raise PrecisionExhausted(
                f"{digits} digits were not reached with {cap} bits; raise the precision cap, ask"
                " for fewer digits, or the number is exactly zero and has no relative accuracy"
            )
        bits = bits + bits // 2


def certify(function: Callable[[], Ball], digits: int = 15, **options: Any) -> Enclosure:
    """`adaptive`, then `enclose`: one number to the digits asked."""
    from_float = bool(options.pop("from_float", False))
    return enclose(adaptive(function, digits, **options), digits, from_float=from_float)
