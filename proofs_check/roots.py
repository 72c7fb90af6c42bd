"""Where a decreasing function crosses zero, bracketed by proved signs."""

from __future__ import annotations

from collections.abc import Callable

from popgd.ball import Ball, ball, bits, precision, sign, to_float

__all__ = ["crossing", "first_integer"]

ROUGH = 64  # bits while looking; the ends of the bracket are judged at full precision


def crossing(
    function: Callable[[Ball], Ball], start: float, width: float = 1e-13
) -> tuple[Ball, Ball]:
    """A bracket [low, high] with function(low) > 0 > function(high), both proved.

    Parameters
    ----------
    function : callable
        Positive at 0, negative for large arguments, close to linear between.
    start : float
        A guess, > 0.
    width : float
        Relative width of the bracket.

    Raises
    ------
    ArithmeticError
        When no proved bracket is found.

    Notes
    -----
    The crossing is located in rough arithmetic; only the signs at the two ends matter.
    """
    with precision(min(ROUGH, bits())):
        root = _locate(function, start)
    while width < 0.5:
        low, high = ball(root) * (1 - ball(width)), ball(root) * (1 + ball(width))
        if sign(function(low)) == 1 and sign(function(high)) == -1:
            return low, high
        width *= 8
    raise ArithmeticError(f"no sign change was proved near {root}")


def _locate(function: Callable[[Ball], Ball], start: float) -> float:
    """Illinois false position on midpoints."""

    def value(x: float) -> float:
        return to_float(function(ball(x)))

    low, high = 0.0, start
    f_low, f_high = value(low), value(high)
    while f_high > 0:
        low, f_low, high = high, f_high, 2 * high
        f_high = value(high)
    side = 0
    for _ in range(100):
        x = (low * f_high - high * f_low) / (f_high - f_low)
        fx = value(x)
        if abs(high - low) <= 1e-15 * high or fx == 0 or abs(fx) < 1e-15:
            return x
        if fx > 0:
            low, f_low, f_high = x, fx, f_high / 2 if side == 1 else f_high
            side = 1
        else:
            high, f_high, f_low = x, fx, f_low / 2 if side == -1 else f_low
            side = -1
    return (low + high) / 2


def first_integer(enough: Callable[[int], bool | None], guess: int) -> int:
    """The least n >= 0 with enough(n), for a property that stays true once true.

    Raises
    ------
    ArithmeticError
        When some answer needed is undecided.
    """
    low, high = -1, max(guess, 1)
    while not _decided(enough(high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _decided(enough(middle)) else (middle, high)
    return high


def _decided(answer: bool | None) -> bool:
    if answer is None:
        raise ArithmeticError("undecided at this precision")
    return answer
