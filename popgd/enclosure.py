"""Proved bounds on a real number, as decimal strings: they pickle, hash and print."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import _validate as check
from .errors import PrecisionExhausted
from .expression import Exact, exact

__all__ = ["Enclosure", "outward"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Enclosure:
    """A closed interval that provably contains the number in question.

    Parameters
    ----------
    lower, upper : str
        Decimal bounds, rounded outward.
    from_float : bool
        Whether an input was a float, read as the binary number it is.

    Raises
    ------
    BadParameter
        When a bound is no decimal number or lower > upper.

    Notes
    -----
    Not a number: there is no truth value, no float(), no `<`. Ask `compare`, `contains` or
    `to_float`. Error: proved.
    """

    lower: str
    upper: str
    from_float: bool = False

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise check.refuse(name, text, "must be a decimal string", 'pass for example "0.1"')
            try:
                Fraction(text)
            except (ValueError, ZeroDivisionError):
                rule, remedy = "must be a decimal string", 'pass for example "0.1"'
                raise check.refuse(name, text, rule, remedy) from None
        if self._low > self._high:
            raise check.refuse("lower", self.lower, f"exceeds upper = {self.upper}", "swap them")

    @property
    def _low(self) -> Fraction:
        return Fraction(self.lower)

    @property
    def _high(self) -> Fraction:
        return Fraction(self.upper)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """Both bounds as exact rationals."""
        return self._low, self._high

    @property
    def width(self) -> float:
        """upper - lower, rounded up."""
        return _round_up(self._high - self._low)

    @property
    def midpoint(self) -> Fraction:
        """The centre, exactly."""
        return (self._low + self._high) / 2

    @property
    def relative_width(self) -> float:
        """width / smallest absolute value inside, inf when 0 is inside."""
        if self._low <= 0 <= self._high:
            return 0.0 if self._low == self._high else math.inf
        return _round_up((self._high - self._low) / min(abs(self._low), abs(self._high)))

    def to_float(self) -> float:
        """The double nearest to the midpoint (the width is then forgotten)."""
        return float(self.midpoint)

    def sign(self) -> int | None:
        """+1, -1 or 0 when proved, None when 0 lies inside a proper interval."""
        return self.compare(0)

    def compare(self, other: Any) -> int | None:
        """+1 above `other`, -1 below, 0 when both are one and the same point, None undecided.

        `other` may be any number `popgd.ball.exact` reads, or an Enclosure.
        """
        low, high = _bounds(other)
        if self._low > high:
            return 1
        if self._high < low:
            return -1
        return 0 if self._low == self._high == low == high else None

    def contains(self, other: Any) -> bool:
        """Whether the number (or the whole Enclosure) lies inside."""
        low, high = _bounds(other)
        return self._low <= low and high <= self._high

    def overlaps(self, other: Any) -> bool:
        """Whether the two could be the same number."""
        low, high = _bounds(other)
        return self._low <= high and low <= self._high

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Enclosure):
            return (self.lower, self.upper) == (other.lower, other.upper)
        if isinstance(other, (numbers.Number, Decimal)):
            raise TypeError("an Enclosure is not a number; use .compare(x) or .contains(x)")
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __bool__(self) -> bool:
        raise TypeError("an Enclosure has no truth value; use .sign(), which may be None")

    def __float__(self) -> float:
        raise TypeError("float() would drop the uncertainty; use .to_float() or .bounds")

    def __lt__(self, other: Any) -> bool:
        raise TypeError("order of enclosures may be undecided; use .compare(x): +1, -1, 0 or None")

    __le__ = __gt__ = __ge__ = __lt__

    def __str__(self) -> str:
        if self._low == self._high:
            return self.lower
        middle, radius = self.midpoint, (self._high - self._low) / 2
        if abs(middle) <= radius:
            return f"0 ± {outward(max(abs(self._low), abs(self._high)), 2, up=True)}"
        shown = _nearest(middle, _exponent(abs(middle)) - _exponent(radius) + 1)
        # the uncertainty printed covers the rounding of the number printed
        return f"{shown} ± {outward(radius + abs(Fraction(shown) - middle), 2, up=True)}"

    def __repr__(self) -> str:
        flag = ", from_float=True" if self.from_float else ""
        return f"Enclosure('{self.lower}', '{self.upper}'{flag})"


def _bounds(value: Any) -> tuple[Fraction, Fraction]:
    if isinstance(value, Enclosure):
        return value.bounds
    number = value if isinstance(value, Exact) else exact(value)
    if number.fraction is not None:
        return number.fraction, number.fraction
    from .ball import rational_bounds

    return rational_bounds(number)


def _round_up(x: Fraction) -> float:
    try:
        y = float(x)
    except OverflowError:
        return math.inf
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def _exponent(x: Fraction) -> int:
    """floor(log10(x)) for x > 0."""
    guess = math.floor((x.numerator.bit_length() - x.denominator.bit_length()) * math.log10(2))
    while _ten(guess) > x:
        guess -= 1
    while _ten(guess + 1) <= x:
        guess += 1
    return guess


def _ten(n: int) -> Fraction:
    return Fraction(10**n) if n >= 0 else Fraction(1, 10**-n)


def outward(x: Fraction, digits: int, *, up: bool) -> str:
    """Decimal string of `digits` significant digits, at or above x (`up`), else at or below."""
    if x == 0:
        return "0"
    place = _exponent(abs(x)) - digits + 1
    scaled = x / _ten(place)
    return _render(math.ceil(scaled) if up else math.floor(scaled), place)


def _nearest(x: Fraction, digits: int) -> str:
    place = _exponent(abs(x)) - max(digits, 1) + 1
    return _render(round(x / _ten(place)), place)


def _render(mantissa: int, place: int) -> str:
    """mantissa * 10^place: plain when short, else d.ddde-NN."""
    if mantissa == 0:
        return "0"
    sign, text = ("-" if mantissa < 0 else ""), str(abs(mantissa))
    point = len(text) + place  # digits before the decimal point
    if -4 < point <= max(len(text), 1) + 1 and place <= 2:
        if place >= 0:
            return sign + text + "0" * place
        text = text.rjust(1 - place, "0")
        return f"{sign}{text[:place]}.{text[place:]}"
    mantissa_text = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{sign}{mantissa_text}e{point - 1:+03d}"


def check_finite(finite: bool) -> None:
    """Raise when a ball never became finite."""
    if not finite:
        raise PrecisionExhausted(
            "no finite enclosure at this precision, or a number too large to write out;"
            " raise the precision cap or take less extreme inputs"
        )
