"""The five moments of attention that the symmetric problem needs, as functions of (gap, d).

Scaled moments differ from plain ones by powers of e^-|gap| that would underflow; everything
else in the symmetric reduction is built on the scaled ones (THEORY 5).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _validate as check

__all__ = ["Moments", "moments", "moments_error_bound", "scaled_moments", "uniform_moments"]

# |Gamma(3 + 2 pi i/h)|/Gamma(3) summed as in THEORY 3: 3.7e-15 at this step, 5.7e-14 at 1/4
STEP = 15 / 64
# e^(x) = 46 is the last node wanted: Q(3, 46) = 1.2e-17
LAST = math.log(46.0)
# e^(-20.5 k) at k = 2 is 1.6e-18, times a ratio of moments that grows slowly with d
LEAD = 20.5
ROWS = 128
MAX_D = 10**15


class Moments(NamedTuple):
    """M_ab = E[gamma_s^a (1 - gamma_s)^b 1{s occurs}], dimensionless, plain or scaled."""

    m20: Any
    m11: Any
    m02: Any
    m21: Any
    m12: Any


@np.errstate(under="ignore")
def moments(gap: Any, d: Any, scaled: bool = False) -> Moments:
    """Moments of the target's attention over positive words, at equal background weights.

    Parameters
    ----------
    gap : array_like
        alpha_s - alpha_j, in logits, any real number or +-inf.
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15; broadcasts against `gap`.
    scaled : bool
        Return the scaled moments, which never underflow: M_ab e^(b gap) for gap >= 0 and
        M_ab e^(a |gap|) for gap < 0, except m20 at gap < 0, which is M20 itself because it
        tends to the mass 1/(d^2 - 2d + 2) of the words made of s alone.

    Returns
    -------
    Moments
        m20, m11, m02, m21, m12: floats, or arrays of the broadcast shape.

    Raises
    ------
    BadParameter
        When gap is not real or d is not an integer in range.

    Notes
    -----
    Trapezoidal rule in log t on integrands that are sums of positive terms; M11 = M21 + M12.
    Source: THEORY 5, with the differences of THEORY 2 and the quadrature of THEORY 3.
    Error: proved relative bound, see `moments_error_bound` (below 4e-14; 2e-15 observed).
    """
    gap_, d_, shape = _arguments(gap, d)
    result = scaled_moments(gap_, d_)
    if not scaled:
        result = unscale(result, gap_)
    return _shaped(result, shape)


def _arguments(gap: Any, d: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Both as flat float arrays of the broadcast shape."""
    gaps = check.real_array("gap", gap)
    sizes = dimensions(d)
    try:
        gaps, sizes = np.broadcast_arrays(gaps, sizes)
    except ValueError:
        raise check.refuse(
            "d",
            d,
            f"shape {sizes.shape} does not broadcast with gap of shape {gaps.shape}",
            "pass shapes that broadcast",
        ) from None
    return gaps.ravel(), sizes.ravel(), gaps.shape


def dimensions(d: Any) -> np.ndarray:
    """Alphabet sizes as a float array; each an integer in [2, 10^15]."""
    if isinstance(d, (bool, np.bool_)):
        raise check.refuse("d", d, "a bool is not an integer here", "pass an integer d >= 2")
    remedy = "pass alphabet sizes between 2 and 10^15"
    sizes = check.real_array("d", d, 2, MAX_D, remedy=remedy)
    if (sizes != np.floor(sizes)).any():
        bad = sizes[sizes != np.floor(sizes)].flat[0]
        raise check.refuse("d", float(bad), "must be an integer", remedy)
    return sizes


def _shaped(result: Moments, shape: tuple[int, ...]) -> Moments:
    if shape == ():
        return Moments(*(float(m[0]) for m in result))
    return Moments(*(m.reshape(shape) for m in result))


def unscale(m: Moments, gap: np.ndarray) -> Moments:
    """Plain moments from scaled ones; each factor e^(-|gap|/2) is a normal double in use."""
    half = np.exp(-np.abs(gap) / 2)
    with np.errstate(under="ignore"):
        far = gap < 0
        m11 = m.m11 * half * half
        m02 = np.where(far, m.m02, m.m02 * half * half * half * half)
        once = np.where(far, m.m12, m.m21) * half * half
        twice = np.where(far, m.m21, m.m12) * half * half * half * half
    return Moments(m.m20, m11, m02, np.where(far, twice, once), np.where(far, once, twice))


def scaled_moments(gap: np.ndarray, d: np.ndarray) -> Moments:
    """Scaled moments of flat float arrays of one length (kernel, unchecked)."""
    out = np.empty((5, gap.size))
    first = _first_node(gap, d)
    order = np.lexsort((first, gap < 0))
    split = int(np.count_nonzero(gap >= 0))
    for low, high, kernel in ((0, split, _towards), (split, gap.size, _away)):
        for start in range(low, high, ROWS):
            rows = order[start : min(start + ROWS, high)]
            y = _nodes(first[rows].min())
            out[:, rows] = kernel(np.exp(-np.abs(gap[rows]))[:, None], d[rows][:, None], y)
    return Moments(*out)


def _first_node(gap: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Where the window starts: a word has about d symbols, each background one weighs e^-gap."""
    return -LEAD - np.log1p((d - 1) * np.exp(-np.maximum(gap, 0.0)))


def _nodes(first: float) -> np.ndarray:
    return np.exp(STEP * np.arange(math.floor(first / STEP), math.ceil(LAST / STEP) + 1))


def _split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """e^-y and 1 - e^-y, both to full relative accuracy where they weigh anything."""
    return np.exp(-y), -np.expm1(-y)


def _second(x: np.ndarray, r: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(1/E^2 - 1/F^2) and (1/E^3 - 1/F^3) over (F - E), times x: r = 1/E, s = 1/F."""
    rs = x * r * s
    total = r + s
    return rs * total, rs * (total * total - r * s)


def _towards(g: np.ndarray, d: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """gap >= 0, in units y_s = y, y_j = g y: E = (d-1)(1 - q u), F the same without s."""
    c, n = (d - 2) / d, d - 1
    z_s, e_s = _split(y)
    e_j = -np.expm1(-(g * y))
    z_j = 1 - e_j
    r = 1 / (1 + c * e_s + (c * n) * e_j)
    s = 1 / (1 + c + (c * n) * e_j)
    w2 = STEP * y * y * z_s
    w3 = w2 * y
    cubic = r * r * r
    mixed = z_j * cubic
    base, both = (n * n * c / d)[:, 0], mixed @ w3
    c, n = c[:, 0], n[:, 0]
    m20 = n / d[:, 0] * ((r * r) @ w2 + 2 * c * (cubic @ (w2 * z_s)))
    m21 = base * (both + 3 * c * ((mixed * r) @ (w3 * z_s)))
    m12 = base * (both + 3 * n * c * ((mixed * r * z_j) @ w3))
    low, high = _second(z_j, r, s)
    m02 = base * (low @ w2 + 2 * n * c * ((high * z_j) @ w2))
    return m20, m21 + g[:, 0] * m12, m02, m21, m12


def _away(g: np.ndarray, d: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """gap < 0, in units y_j = y, y_s = g y; words made of s alone are split off."""
    c, n = (d - 2) / d, d - 1
    z_j, e_j = _split(y)
    e_s = -np.expm1(-(g * y))
    z_s = 1 - e_s
    r = 1 / (1 + (c * n) * e_j + c * e_s)
    s = 1 / (1 + (c * n) * e_j + c)
    t = 1 / (1 + c * n + c * e_s)
    w2 = STEP * y * y * z_j
    w3 = w2 * y
    mixed = z_s * r * r * r
    base, both = (n * n * c / d)[:, 0], mixed @ w3
    c, n, g = c[:, 0], n[:, 0], g[:, 0]
    m21 = base * (both + 3 * c * ((mixed * r * z_s) @ w3))
    m12 = base * (both + 3 * n * c * ((mixed * r) @ (w3 * z_j)))
    low, high = _second(z_s, r, s)
    m02 = base * (low @ w2 + 2 * n * c * (high @ (w2 * z_j)))
    low, high = _second(z_s, r, t)
    rest = base * (low @ w2 + 2 * c * ((high * z_s) @ w2))
    alone = 1 / (1 + n * n)
    with np.errstate(under="ignore"):
        return alone + g * rest * g, m12 + g * m21, m02, m21, m12


def uniform_moments(d: Any) -> Moments:
    """The moments at gap 0 in closed form, through E[1/m] and E[1/m^2].

    Parameters
    ----------
    d : array_like of int
        Alphabet size, 2 <= d <= 10^15.

    Returns
    -------
    Moments
        Floats, or arrays of the shape of d.

    Notes
    -----
    E[1/m] = ln(d-1)/(d-2) and E[1/m^2] = p Li2(q)/q; given m the count of s is binomial.
    Source: THEORY 5. Error: none (closed form; a few rounding errors).
    """
    from scipy.special import spence

    sizes = dimensions(d)
    pi, rest = 1 / sizes, (sizes - 1) / sizes
    single = sizes == 2
    n = np.where(single, 2.0, sizes - 1)
    inverse = np.where(single, 1.0, np.log(n) / (n - 1))
    square = np.where(single, 1.0, spence(1 / n) / (n - 1))
    m21 = pi * rest * (pi + inverse * (1 - 3 * pi) - square * (1 - 2 * pi))
    m12 = pi * rest * (rest - inverse * (2 - 3 * pi) + square * (1 - 2 * pi))
    m20 = pi * (rest * inverse + pi)
    m02 = rest * (rest + pi * inverse) - 0.5
    result = Moments(m20, pi * rest * (1 - inverse), m02, m21, m12)
    return Moments(*(float(m) for m in result)) if sizes.ndim == 0 else result


@np.errstate(under="ignore")
def moments_error_bound(gap: Any, d: Any) -> Any:
    """Relative error that no moment from `moments` exceeds, rounding included.

    Parameters
    ----------
    gap, d : array_like
        As for `moments`.

    Returns
    -------
    float or array
        The largest of the five relative bounds.

    Notes
    -----
    The sum of: the discretisation bound delta_3(h); the dropped left end, at most
    t0^k/k! E[C_s^a C_j^b] over the moment; the dropped right end Q(3, t1); and rounding,
    (nodes + 100) u, a first-order count that takes exp and expm1 to 2 units in the last place.
    Source: THEORY 3. Error: this is the proved bound.
    """
    gap_, d_, shape = _arguments(gap, d)
    m = scaled_moments(gap_, d_)
    first = STEP * np.floor(_first_node(gap_, d_) / STEP)
    t1 = math.exp(STEP * math.ceil(LAST / STEP))
    nodes = (math.ceil(LAST / STEP) + 1) - first / STEP
    right = math.exp(-t1) * (1 + t1 + t1 * t1 / 2)
    rounding = (nodes + 100) * 2.0**-53
    bound = discretisation(3) + right + rounding + _left(m, gap_, d_, np.exp(first))
    return float(bound[0]) if shape == () else bound.reshape(shape)


def discretisation(order: int, step: float = STEP) -> float:
    """delta_k(h) = 2 sum over n of |Gamma(k + 2 pi i n/h)|/Gamma(k), for k = 1, 2, 3."""
    total = 0.0
    for n in range(1, 6):
        y = 2 * math.pi * n / step
        # pi y / sinh(pi y), the square of |Gamma(1 + iy)|, written so as not to overflow
        square = 2 * math.pi * y * math.exp(-math.pi * y) / -math.expm1(-2 * math.pi * y)
        for k in range(1, order):
            square *= k * k + y * y
        total += 2 * math.sqrt(square) / math.gamma(order)
    return total


def _left(m: Moments, gap: np.ndarray, d: np.ndarray, t0: np.ndarray) -> np.ndarray:
    """Largest ratio of dropped left part to moment; counts in closed form (THEORY 4)."""
    r = (d - 2) / (2 * (d - 1))
    one = 1 / (2 * (1 - r))
    two = (1 + r) / (2 * (1 - r) ** 2)
    three = (1 + 4 * r + r * r) / (2 * (1 - r) ** 3)
    mean = (d - 2) / 2
    tops = (
        two,
        mean * (two + one),
        mean * d / 2 * (one + 0.5) + mean**2 * (two + 2 * one + 0.5),
        mean * (three + two),
        mean * d / 2 * (two + one) + mean**2 * (three + 2 * two + one),
    )
    worst = np.zeros(gap.size)
    for value, top, order in zip(m, tops, (2, 2, 2, 3, 3)):
        safe = np.where(value > 0, value, 1.0)
        with np.errstate(under="ignore"):
            worst = np.maximum(worst, top * t0**order / math.factorial(order) / safe)
    return worst
