"""Small proof engines: identities by SymPy, polynomial inequalities by their coefficients."""

from __future__ import annotations

from typing import Any

from .claim import ProofFailed

__all__ = ["is_zero", "never_negative", "positive"]


def is_zero(expression: Any, what: str) -> None:
    """Prove that a SymPy expression vanishes identically.

    Raises
    ------
    ProofFailed
        When simplification does not reach 0.
    """
    import sympy as sp

    rest = sp.simplify(expression)
    if rest != 0:
        raise ProofFailed(f"{what}: {rest} was left")


def positive(expression: Any, what: str, **start: Any) -> None:
    """Prove a rational function > 0 for all variables at or above their starts.

    With every variable written as start + t, t >= 0, numerator and denominator have only
    coefficients >= 0 and a constant term > 0 (after a common sign is taken out). Sufficient,
    not necessary.

    Raises
    ------
    ProofFailed
        When some coefficient has the wrong sign.
    """
    _signs(expression, what, start, strict=True)


def never_negative(expression: Any, what: str, **start: Any) -> None:
    """Prove a rational function >= 0, as `positive` does; the constant term may vanish.

    Raises
    ------
    ProofFailed
        When some coefficient has the wrong sign.
    """
    _signs(expression, what, start, strict=False)


def _signs(expression: Any, what: str, start: dict[str, Any], strict: bool) -> None:
    import sympy as sp

    by_name = {str(symbol): symbol for symbol in sp.sympify(expression).free_symbols}
    moved = {by_name[name]: sp.Symbol(f"t_{name}") + value for name, value in start.items()}
    unbounded = set(by_name) - set(start)
    if unbounded:
        raise ProofFailed(f"{what}: no range is given for {', '.join(sorted(unbounded))}")
    top, bottom = sp.fraction(sp.together(expression.subs(moved, simultaneous=True)))
    if not _one_sign(bottom, True):
        top, bottom = -top, -bottom
    if not (_one_sign(bottom, True) and _one_sign(top, strict)):
        raise ProofFailed(f"{what}: the coefficients of {sp.expand(top)} do not show the sign")


def _one_sign(polynomial: Any, strict: bool) -> bool:
    import sympy as sp

    polynomial = sp.expand(polynomial)
    symbols = sorted(polynomial.free_symbols, key=str)
    if not symbols:
        return bool(polynomial > 0 if strict else polynomial >= 0)
    if not polynomial.is_polynomial(*symbols):
        return False
    terms = sp.Poly(polynomial, *symbols)
    constant = terms.coeff_monomial(1)
    return all(c >= 0 for c in terms.coeffs()) and (not strict or constant > 0)
