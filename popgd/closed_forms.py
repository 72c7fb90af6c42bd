"""SymPy closed forms at uniform attention, the phases they give, and the large-gap limits.

Everything is derived here from the binomial law of the target's count; no final formula is
typed in. SymPy is imported inside the functions: `import popgd` must not pay for it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

__all__ = [
    "LargeGap",
    "Moments",
    "Symbols",
    "Updates",
    "large_gap",
    "largest_eta1",
    "largest_eta1_ratio_limit",
    "output_minimizer",
    "output_minimum",
    "phases",
    "symbols",
    "uniform_moments",
]


class Symbols(NamedTuple):
    """The positive SymPy symbols used by every expression of this module."""

    d: Any
    eta1: Any
    eta2: Any


class Moments(NamedTuple):
    """M_ab = E[1{y = +1} gamma_s^a (1 - gamma_s)^b] as SymPy expressions in d."""

    m20: Any
    m11: Any
    m02: Any
    m21: Any
    m12: Any


class Updates(NamedTuple):
    """Weights after phase 1 and the gap after phase 2, from a zero start."""

    beta_target: Any
    beta_background: Any
    gap: Any


class LargeGap(NamedTuple):
    """Limits, as gap -> infinity, of the moments times e^(b gap), and of the output minimum.

    Attributes
    ----------
    m20, m11, m02, m21, m12 : SymPy expressions in d
        lim M_ab e^(b gap).
    minimum : SymPy expression in d
        lim e^(2 gap) min over beta of L.
    """

    m20: Any
    m11: Any
    m02: Any
    m21: Any
    m12: Any
    minimum: Any


@cache
def symbols() -> Symbols:
    """The symbols d, eta1, eta2, all positive (d is an integer in use, but needs no such flag).

    Returns
    -------
    Symbols
    """
    import sympy as sp

    return Symbols(*sp.symbols("d eta1 eta2", positive=True))


def _inverse_length(k: int) -> Any:
    """E[m^-k] for m ~ Geometric(1/(d-1)): (p/q) Li_k(q), for k = 0, 1, 2."""
    import sympy as sp

    d = symbols().d
    if k == 0:
        return sp.Integer(1)
    if k == 1:  # Li_1(q) = -ln(1 - q) = ln(d - 1)
        return sp.log(d - 1) / (d - 2)
    return sp.polylog(k, (d - 2) / (d - 1)) / (d - 2)


@cache
def _attention_power(k: int) -> Any:
    """E[(C_s/m)^k]: binomial moments from the generating function, then averaged over m."""
    import sympy as sp

    d, m, z = symbols().d, sp.Symbol("m", positive=True), sp.Symbol("z")
    term = (1 - 1 / d + z / d) ** m
    for _ in range(k):  # z d/dz applied k times gives E[C^k]
        term = z * sp.diff(term, z)
    given_length = sp.expand(term.subs(z, 1) / m**k)
    parts = sp.collect(given_length, 1 / m, evaluate=False)
    return sum(
        sp.factor(coefficient) * _inverse_length(int(-sp.log(power).diff(m) * m))
        for power, coefficient in parts.items()
    )


@cache
def uniform_moments() -> Moments:
    """The five moments at uniform attention (gap 0).

    Returns
    -------
    Moments
        Expressions in d, through E[1/m] = ln(d-1)/(d-2) and E[1/m^2] = Li2(q)/(d-2),
        q = (d-2)/(d-1). At d = 2, where both read 0/0, take limits: both averages are 1.

    Notes
    -----
    gamma_s = C_s/m with C_s ~ Binomial(m, 1/d) and P(y = +1) = 1/2. Source: THEORY 5.
    Error: none (closed forms).
    """
    import sympy as sp

    first, second, third = (_attention_power(k) for k in (1, 2, 3))
    return Moments(
        m20=second,
        m11=first - second,
        m02=sp.Rational(1, 2) - 2 * first + second,
        m21=second - third,
        m12=first - 2 * second + third,
    )


@cache
def phases() -> Updates:
    """One output step and one attention step from zero, symbolic in d, eta1 and eta2.

    Returns
    -------
    Updates
        `beta_target` and `beta_background` after phase 1; `gap`, the logit difference
        alpha_s - alpha_j after phase 2.

    Notes
    -----
    The gradients are those of the four-scalar reduction evaluated at uniform attention.
    Source: Paper 4; THEORY 5. Error: none (closed forms).
    """
    d, _, eta2 = symbols()
    target, background = _phase1()
    # alpha_s moves by -eta2 dL/dalpha_s, each background logit by +eta2 dL/dalpha_s/(d-1)
    slope = (target - background) * _driving_term()
    return Updates(target, background, -eta2 * d / (d - 1) * slope)


@cache
def _phase1() -> tuple[Any, Any]:
    """Output weights after one step: at beta = 0 the residual is -2 on positive words."""
    import sympy as sp

    d, eta1, _ = symbols()
    m = uniform_moments()
    target = sp.factor(2 * eta1 * (m.m20 + m.m11))
    background = sp.factor(2 * eta1 * (m.m11 + m.m02) / (d - 1))
    return target, background


@cache
def _driving_term() -> Any:
    """v_s M21 + v_j M12 after phase 1, linear in eta1; its sign is against the gap's."""
    m = uniform_moments()
    target, background = _phase1()
    return (target - 2) * m.m21 + (background - 2) * m.m12


@cache
def _minimum_in_moments() -> tuple[Any, Any, tuple[Any, Any, Any], tuple[Any, Any]]:
    """Solve the 2x2 normal equations with symbolic moments: (minimum, weights, ...)."""
    import sympy as sp

    m20, m11, m02 = sp.symbols("M20 M11 M02", positive=True)
    b_s, b_j = sp.symbols("beta_s beta_j", real=True)
    negative = sp.Rational(1, 2)
    v_s, v_j = b_s - 2, b_j - 2
    risk = v_s**2 * m20 / 2 + v_s * v_j * m11 + v_j**2 * m02 / 2 + b_j**2 * negative / 2
    solution = sp.solve([sp.diff(risk, b_s), sp.diff(risk, b_j)], [b_s, b_j], dict=True)[0]
    value = sp.factor(risk.subs(solution))
    return value, risk, (m20, m11, m02), (solution[b_s], solution[b_j])


def _at_uniform(expression: Any) -> Any:
    import sympy as sp

    m = uniform_moments()
    names = _minimum_in_moments()[2]
    filled = expression.subs(dict(zip(names, (m.m20, m.m11, m.m02), strict=True)))
    # rational in d and the logarithm, which is one more variable to the algebra
    log, name = sp.log(symbols().d - 1), sp.Symbol("ell")
    return sp.factor(sp.cancel(filled.subs(log, name))).subs(name, log)


@cache
def output_minimum() -> Any:
    """min over beta of L at uniform attention, as a SymPy expression in d.

    Returns
    -------
    expression
        Derived from the normal equations; equal to (1/2)(1 - (d-2)/((d-1) ln(d-1))).

    Notes
    -----
    Risk is quadratic in (beta_s, beta_j); by convexity and symmetry the minimum over R^d is
    attained at equal background weights. Source: THEORY 5. Error: none (closed form).
    """
    return _at_uniform(_minimum_in_moments()[0])


@cache
def output_minimizer() -> tuple[Any, Any]:
    """The minimising (beta_s, beta_j) at uniform attention, expressions in d.

    Returns
    -------
    tuple of expressions
    """
    beta_s, beta_j = _minimum_in_moments()[3]
    return _at_uniform(beta_s), _at_uniform(beta_j)


@cache
def largest_eta1() -> Any:
    """The largest eta1 for which phase 2 still moves attention towards the target.

    Returns
    -------
    expression in d
        The positive root of gap(eta1)/eta1 = 0, which is linear in eta1: for smaller eta1 the
        gap after phase 2 is positive, for larger it is negative, whatever eta2. About 1.694 d
        at d = 3, least at d = 4 (1.672 d), 2 d as d grows.

    Notes
    -----
    Source: THEORY 5. Error: none (closed form). Undefined at d = 2, where the gap is 0 always.
    """
    import sympy as sp

    d, eta1, _ = symbols()
    driving = _driving_term()
    # linear in eta1, so its root is -(value at 0)/slope
    root = -driving.subs(eta1, 0) / sp.diff(driving, eta1)
    logs = {sp.log(d - 1): sp.Symbol("ell"), sp.polylog(2, (d - 2) / (d - 1)): sp.Symbol("Z")}
    compact = sp.factor(sp.cancel(root.subs(logs)))
    return compact.subs({name: value for value, name in logs.items()})


@cache
def largest_eta1_ratio_limit() -> Any:
    """The limit of `largest_eta1`/d as d -> infinity, derived.

    Returns
    -------
    SymPy integer

    Notes
    -----
    The dilogarithm is replaced by a free constant Z: it lies between 1 and pi^2/6 and the
    limit turns out not to contain it. Source: THEORY 5. Error: none.
    """
    import sympy as sp

    d = symbols().d
    z, log = sp.symbols("Z ell", positive=True)
    expression = (largest_eta1() / d).replace(sp.polylog, lambda *_: z)
    # ln(d-1) = ell grows more slowly than any power of d: put d = e^ell + 1
    expression = expression.subs(sp.log(d - 1), log).subs(d, sp.exp(log) + 1)
    return sp.limit(sp.together(expression), log, sp.oo)


@cache
def large_gap() -> LargeGap:
    """Leading behaviour of the moments and of the output minimum as gap -> infinity.

    Returns
    -------
    LargeGap
        Expressions in d (d >= 3; at d = 2 the background limits are 0).

    Notes
    -----
    1 - gamma_s = e^-gap B/C (1 + O(e^-gap)) with C = C_s and B = m - C_s. Given y = +1,
    C is geometric with ratio r = (d-2)/(2(d-1)) and, given C = c, B is negative binomial with
    mean (c+1)(d-2)/2 and variance (c+1) d (d-2)/4. Source: THEORY 4, 5. Error: none (limits).
    """
    import sympy as sp

    d = symbols().d
    r = (d - 2) / (2 * (d - 1))
    inverse = -(1 - r) * sp.log(1 - r) / r  # E[1/C | y = +1]
    inverse_square = (1 - r) * sp.polylog(2, r) / r  # E[1/C^2 | y = +1]
    mean, variance = (d - 2) / 2, d * (d - 2) / 4
    ratio = mean * (1 + inverse)  # E[B/C | y = +1]
    square = variance * (inverse + inverse_square) + mean**2 * (1 + 2 * inverse + inverse_square)
    half = sp.Rational(1, 2)
    m11, m02 = half * ratio, half * square
    # min L = 2V/(1+2V) -> 2V with V = M02 - M11^2/M20 and M20 -> 1/2
    return LargeGap(half, m11, m02, m11, m02, 2 * (m02 - 2 * m11**2))
