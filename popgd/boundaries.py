"""Regime boundaries of the phase diagram as curves: solved, not read off pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _validate as check
from .diagram import _axis, _count, _sizes
from .diagram_tiles import first, push, table, uniform
from .symmetric_descent import OutputDescent
from .symmetric_quadratic import quadratic

if TYPE_CHECKING:
    import xarray

__all__ = ["boundary_curves", "curve_rates", "theorem_line", "turning_point"]

STATUS = ("solved", "not_needed", "impossible")
SOLVED, NOT_NEEDED, IMPOSSIBLE = range(3)
WIDTH = 1e-10
"""Relative half-width of the brackets that enclosures prove."""
# scan for the first success: spacing in the gap, and how far beyond the gap at which the floor
# is epsilon
PER_UNIT, BEYOND = 16, 8.0
# close to the last eta1 the risk falls to epsilon only through its e^-gap, which leaves the
# doubles after another 37 logits; there the risk is smooth and a coarser scan does
PER_UNIT_FAR, FAR = 4, 40.0
BESIDE = 1e-7  # where the two sides of the last eta1 are compared, relative
BITS = 64  # of the balls: about 1e-14 of a risk, and more where the gap is large
BISECTIONS = 60


def boundary_curves(
    d: Any,
    eta1: Any,
    epsilon: Any = 0.01,
    *,
    steps: Any = math.inf,
    eta3: float = 1.0,
    certify: bool = True,
) -> xarray.Dataset:
    """Smallest eta2 with which training reaches epsilon, as a curve over eta1.

    Parameters
    ----------
    d : int or sequence of int
        Alphabet sizes, 2 <= d <= 10^15.
    eta1 : float or 1-D array_like
        Learning rates of phase 1, >= 0.
    epsilon : float or 1-D array_like
        Target risks, > 0.
    steps, eta3 : int or inf, float
        Phase 3; with ``steps=inf`` the curve is where the attention suffices.
    certify : bool
        Prove with enclosures that the risk is above epsilon at eta2 (1 - 1e-10) and at most
        epsilon at eta2 (1 + 1e-10); costs about 10 ms a point.

    Returns
    -------
    xarray.Dataset
        Over ``d, epsilon, eta1``: ``eta2``, NaN where ``status`` (see its ``flag_meanings``) is
        "impossible" (for every eta2) and 0 where uniform attention already suffices ("not_needed");
        ``bracketed``: whether the bracket is proved; ``theorem``: d^2/eta1 ln(d/epsilon), the
        theorem's own line at C = 1; ``constant``: eta2 / theorem. Over ``d``: ``eta1_turn``,
        beyond which phase 2 turns attention away from the target, and ``turn_bracketed``. Over
        ``d, epsilon, end``: ``eta1_end``, the smallest and the largest eta1 with which `steps`
        steps suffice, where the curve rises without bound (NaN where it does not end so), and
        ``end_bracketed``: whether it is proved within 1e-10 for large eta2.

    Raises
    ------
    BadParameter
        When an argument breaks a rule.

    Notes
    -----
    "Smallest" means the first success on a scan of the gap in steps of 1/16 from 0, solved to
    rounding between its neighbours; a success region narrower than that, below the curve, would
    be missed, and so would one that needs gaps 40 beyond ln(d/epsilon) + ln T (within 1e-15 of
    an ``eta1_end``). What is proved is the crossing. Source: Paper A.7; THEORY 5. Error: proved
    (1e-10 relative) where ``bracketed``, else estimated.

    Examples
    --------
    >>> import popgd
    >>> curve = popgd.boundary_curves(50, [0.1, 1.0], 0.01)
    >>> [round(float(x), 3) for x in curve.constant.squeeze()]
    [0.334, 0.338]
    """
    sizes, rates, targets = _sizes(d), _axis("eta1", eta1), _axis("epsilon", epsilon)
    if not (targets > 0).all():
        raise check.refuse("epsilon", epsilon, "every target must be > 0", "pass a risk > 0")
    rate, count = check.real("eta3", eta3, 0.0, closed="left"), _count(steps)
    shape = (len(sizes), targets.size, rates.size)
    ends, ended = np.full((*shape[:2], 2), np.nan), np.zeros((*shape[:2], 2), dtype=bool)
    eta2, status = np.full(shape, np.nan), np.full(shape, IMPOSSIBLE, dtype=np.int8)
    bracketed = np.zeros(shape, dtype=bool)
    for i, size in enumerate(sizes):
        for j, target in enumerate(targets):
            eta2[i, j], status[i, j] = _solve(size, rates, target, rate, count)
            ends[i, j] = _borders(size, float(target), rate, count)
            if certify:
                ended[i, j] = [
                    _end_bracketed(size, float(x), rate, count, float(target)) for x in ends[i, j]
                ]
                for k in np.flatnonzero(status[i, j] == SOLVED):
                    point = (float(rates[k]), float(eta2[i, j, k]), rate, count)
                    bracketed[i, j, k] = _bracketed(size, *point, float(target))
    curves = (eta2, status, bracketed, ends, ended)
    return _dataset(sizes, targets, rates, curves, rate, count, certify)


def curve_rates(
    d: Any,
    low: float,
    high: float,
    count: int = 60,
    *,
    epsilon: float | None = None,
    steps: Any = math.inf,
    eta3: float = 1.0,
) -> np.ndarray:
    """eta1 from `low` to `high` for a smooth boundary: geometric, dense where the curve ends.

    Parameters
    ----------
    d : int
    low, high : float
        Smallest and largest rate, > 0.
    count : int
        Rates of the geometric part.
    epsilon, steps, eta3 : optional
        As in `boundary_curves`. With `epsilon` also dense around the rates between which `steps`
        steps suffice at full attention, where a curve at finite `steps` ends.

    Notes
    -----
    At the turning point the gap vanishes and the curve rises without bound. At gap inf the risk
    after T steps is F1 (eta1/d - 1)^2 + F2 beta_j^2/4 with F1 = (1 - eta3/2)^(2T) and
    F2 = (1 - eta3/(2(d-1)))^(2T), a quadratic in eta1. Source: THEORY 5. Error: none.
    """
    low = check.real("low", low, 0.0)
    high = check.real("high", high, low)
    count = check.integer("count", count, 2)
    size, turn = check.integer("d", d, 2, 10**15), turning_point(d)
    close = np.geomspace(1e-5, 0.5, max(count // 2, 2))
    parts = [np.geomspace(low, high, count), turn * (1 - close) if math.isfinite(turn) else []]
    if epsilon is not None:
        target, rate = check.real("epsilon", epsilon, 0.0), check.real("eta3", eta3, 0.0)
        ends = _ends(size, target, _count(steps), rate)
        parts += [end * (1 + np.concatenate([-close, close])) for end in ends]
    rates = np.concatenate(parts)
    return np.unique(rates[(rates >= low) & (rates <= high)])


def _ends(d: int, epsilon: float, steps: float, eta3: float) -> list[float]:
    """eta1 at which the risk at full attention is epsilon after `steps` steps."""
    if math.isinf(steps) or (eta3 > 4 and steps > 0):
        return []
    fast, slow = _kept(eta3 / 2, steps), _kept(eta3 / (2 * (d - 1)), steps)
    a = fast / d**2 + slow * ((d - 2) / (d * (d - 1.0))) ** 2 / 4
    half, c = fast / d, fast - epsilon
    spread = half * half - a * c
    if a == 0 or not math.isfinite(a) or spread < 0:
        return []
    top = half + math.sqrt(spread)
    if top == 0:
        return []
    # the product of the roots is c/a: no cancellation
    return [x for x in (c / top, top / a) if 0 < x < math.inf]


def _kept(x: float, steps: float) -> float:
    """(1 - x)^(2 steps) with the digits of a small x."""
    if steps == 0 or x == 1:
        return float(steps == 0)
    return math.exp(2 * steps * (math.log1p(-x) if x < 1 else math.log(x - 1)))


def _borders(d: int, epsilon: float, eta3: float, steps: float) -> np.ndarray:
    """Smallest and largest eta1 at which the curve goes to infinity; NaN where there is none."""
    found = np.full(2, np.nan)
    for end in _ends(d, epsilon, steps, eta3):
        beside = end * np.array([1 - BESIDE, 1 + BESIDE])
        status = _solve(d, beside, epsilon, eta3, steps)[1].tolist()
        for k, sides in enumerate(([IMPOSSIBLE, SOLVED], [SOLVED, IMPOSSIBLE])):
            if status == sides:
                found[k] = end
    return found


def _end_bracketed(d: int, end: float, eta3: float, steps: float, epsilon: float) -> bool:
    """Whether enclosures prove that the risk at full attention crosses epsilon within 1e-10."""
    from fractions import Fraction

    from .ball import ball, compare, precision

    if not math.isfinite(end):
        return False
    signs = []
    with precision(BITS + 2 * int(steps).bit_length()):
        fast = (1 - ball(eta3) / 2) ** (2 * int(steps))
        slow = (1 - ball(eta3) / (2 * (d - 1))) ** (2 * int(steps))
        for side in (-1, 1):
            rate = ball(Fraction(end) * (1 + side * Fraction(1, 10**10)))
            background = rate * (d - 2) / (ball(d) * (d - 1))
            risk = fast * (rate / d - 1) ** 2 + slow * background**2 / 4
            signs.append(compare(risk, ball(epsilon)))
    return signs in ([-1, 1], [1, -1])


def theorem_line(d: Any, eta1: Any, epsilon: Any, constant: float = 1.0) -> Any:
    """The theorem's own line eta2 = C d^2/eta1 ln(d/epsilon); arguments broadcast.

    Notes
    -----
    Source: Paper A.7 (Theorem 2). The text leaves C open. Error: none (a few rounding errors).
    """
    size = check.real_array("d", d, 2, 1e15)
    rate = check.real_array("eta1", eta1, 0.0, closed="right", remedy="pass learning rates > 0")
    target = check.real_array("epsilon", epsilon, 0.0, closed="right", remedy="pass a risk > 0")
    c = check.real("constant", constant, 0.0)
    line = c * size**2 / rate * np.log(size / target)
    return float(line) if line.ndim == 0 else line


def turning_point(d: Any) -> float:
    """eta1 beyond which phase 2 turns attention away from the target; inf at d = 2.

    Parameters
    ----------
    d : int
        Alphabet size, 2 <= d <= 10^15.

    Notes
    -----
    The gap is proportional to 2 M11 - eta1 (2 M21/d + (d-2) M12/(d(d-1))) at gap 0.
    Source: THEORY 5. Error: estimated, 1e-13 relative; `boundary_curves` brackets it by enclosures.
    """
    size = check.integer("d", d, 2, 10**15)
    if size == 2:
        return math.inf
    m = uniform(size).m
    return float(2 * m.m11 / (2 * m.m21 / size + (size - 2) / (size * (size - 1.0)) * m.m12))


def _solve(
    d: int, eta1: np.ndarray, epsilon: float, eta3: float, steps: float
) -> tuple[np.ndarray, np.ndarray]:
    """eta2 and status for every eta1 at one d and epsilon."""
    with np.errstate(all="ignore"):
        one = first(d, eta1)
        each = push(d, one)
        side = np.where(each < 0, -1.0, 1.0)
        gaps = _scan(d, epsilon, steps)

        def excess(gap: np.ndarray, rows: Any) -> np.ndarray:
            q = quadratic(gap, np.asarray(float(d)), table(d))
            v, beta = one.residual[rows], one.beta_background[rows]
            shape = (slice(None), None) if gap.ndim == 2 else slice(None)
            return np.asarray(OutputDescent(q, v[shape], beta[shape], eta3).risk(steps)) - epsilon

        everything = np.arange(eta1.size)
        reached = excess(side[:, None] * gaps, everything) <= 0
        found = reached.any(axis=1)
        hit = reached.argmax(axis=1)
        status = np.where(~found, IMPOSSIBLE, np.where(hit == 0, NOT_NEEDED, SOLVED))
        # without a push (eta1 = 0, d = 2) no eta2 moves the attention
        status[(each == 0) & (hit > 0)] = IMPOSSIBLE
        rows = np.flatnonzero(status == SOLVED)
        low, high = gaps[hit[rows] - 1], gaps[hit[rows]]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            below = excess(side[rows] * middle, rows) > 0
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        eta2 = np.where(status == NOT_NEEDED, 0.0, np.nan)
        eta2[rows] = high / np.abs(each[rows])
    return eta2, status.astype(np.int8)


def _scan(d: int, epsilon: float, steps: float) -> np.ndarray:
    """Gaps at which the first success is looked for."""
    # 2 V <= 2 (d/e^gap)^2: beyond this gap the floor lies far below epsilon
    reach = max(math.log(d) + 0.5 * math.log(2 / epsilon), 0.0) + BEYOND
    fine = np.arange(math.ceil(reach * PER_UNIT) + 1) / PER_UNIT
    # T steps still feel e^-gap where it is 1/T
    more = FAR + max(0.5 * math.log(2 / epsilon), 0.0)
    more += math.log1p(steps) if math.isfinite(steps) else 0.0
    far = np.arange(1, math.ceil(more * PER_UNIT_FAR) + 1) / PER_UNIT_FAR
    return np.concatenate([fine, fine[-1] + far])


def _bracketed(d: int, eta1: float, eta2: float, eta3: float, steps: float, epsilon: float) -> bool:
    """Whether enclosures prove that the risk crosses epsilon within 1e-10 of eta2."""
    from fractions import Fraction

    from .ball import ball, compare, precision, sign
    from .certified_symmetric import three_phase

    if not math.isfinite(eta2):
        return False
    count = steps if math.isinf(steps) else int(steps)
    bits = BITS + 2 * (int(count).bit_length() if isinstance(count, int) else 0)
    for side, wanted in ((-1, 1), (1, -1)):
        rate = Fraction(eta2) * (1 + side * Fraction(1, 10**10))
        with precision(bits):
            run = three_phase(d, ball(eta1), ball(rate), ball(eta3), count)
            # 2 - eta3 lambda_max, where lambda_max may be close to 1/2 and eta3 to 4
            margin = (2 - ball(eta3) / 2) + ball(eta3) * run.deficit
            if sign(margin) != 1 and count != 0:
                return False
            if compare(run.risks[3], ball(epsilon)) != wanted:
                return False
    return True


def _turn_bracketed(d: int, eta1: float) -> bool:
    """Whether enclosures prove that the gap changes sign within 1e-10 of eta1."""
    from fractions import Fraction

    from .ball import ball, precision, sign
    from .certified_symmetric import phase_two

    if not math.isfinite(eta1):
        return False
    with precision(BITS + 32):
        return all(
            sign(phase_two(d, ball(Fraction(eta1) * (1 + side * Fraction(1, 10**10))), ball(1)))
            == -side
            for side in (-1, 1)
        )


def _dataset(
    sizes: Sequence[int],
    targets: np.ndarray,
    rates: np.ndarray,
    curves: tuple[np.ndarray, ...],
    eta3: float,
    steps: float,
    certify: bool,
) -> xarray.Dataset:
    import xarray

    from . import __version__

    eta2, status, bracketed, ends, ended = curves
    dims, last = ("d", "epsilon", "eta1"), ("d", "epsilon", "end")
    turns = [turning_point(d) for d in sizes]
    proved = [certify and _turn_bracketed(d, x) for d, x in zip(sizes, turns)]
    size, target = np.asarray(sizes, dtype=float)[:, None, None], targets[:, None]
    with np.errstate(divide="ignore"):
        line = size**2 / rates * np.log(size / target)
    with np.errstate(invalid="ignore", divide="ignore"):
        constant = np.where(np.isinf(line), np.nan, eta2 / line)
    flags = {"flag_values": np.arange(3, dtype=np.int8), "flag_meanings": " ".join(STATUS)}
    data = {
        "eta2": (dims, eta2, {"long_name": "smallest eta2 that reaches epsilon", "units": "1"}),
        "status": (dims, status, {"long_name": "what eta2 means", **flags}),
        "bracketed": (dims, bracketed, {"long_name": "crossing proved within 1e-10"}),
        "theorem": (dims, line, {"long_name": "d^2/eta1 ln(d/epsilon)", "units": "1"}),
        "constant": (dims, constant, {"long_name": "eta2 / theorem", "units": "1"}),
        "eta1_turn": ("d", turns, {"long_name": "eta1 beyond which the gap is < 0", "units": "1"}),
        "turn_bracketed": ("d", proved, {"long_name": "sign change proved within 1e-10"}),
        "eta1_end": (last, ends, {"long_name": "eta1 at which the curve ends", "units": "1"}),
        "end_bracketed": (last, ended, {"long_name": "crossing proved within 1e-10"}),
    }
    coords = {"d": list(sizes), "epsilon": targets, "eta1": rates, "end": ["low", "high"]}
    coords |= {"eta3": eta3, "steps": steps}
    attrs = {"source": f"popgd {__version__}, boundary_curves", "popgd_version": __version__}
    return xarray.Dataset(data, coords, attrs | {"certified": int(certify), "bracket": WIDTH})
