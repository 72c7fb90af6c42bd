"""Exact inputs: integers, fractions, decimals and expressions such as "2*ln(10)" as exact trees.

A decimal string means the decimal it shows, a float the binary number it is (and says so).
`popgd.ball` evaluates the trees at any precision.
"""

from __future__ import annotations

import ast
import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import _validate as check

__all__ = ["Exact", "exact"]

_FUNCTIONS = {"sqrt": "sqrt", "ln": "ln", "log": "ln", "exp": "exp"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_REMEDY = 'pass a number or an expression such as "sqrt(10)", "1/3", "2*ln(10)" or "0.1"'
_LONGEST = 2000  # characters: keeps the parser's recursion shallow
_FOLD_BITS = 20_000  # powers above this size stay symbolic


@dataclass(frozen=True, slots=True, repr=False)
class Exact:
    """A real number given exactly; build it with `exact`.

    Attributes
    ----------
    kind : str
        "number", "pi", one of "+ - * / **", or a function name.
    parts : tuple
        The Fraction of a "number", otherwise the operands.
    from_float : bool
        Whether a float (read as the binary number it is) went into it.
    text : str
        As written.
    """

    kind: str
    parts: tuple[Any, ...]
    from_float: bool = field(default=False, compare=False)
    text: str = field(default="", compare=False)

    @property
    def fraction(self) -> Fraction | None:
        """The value when it is known to be rational, else None."""
        return self.parts[0] if self.kind == "number" else None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"exact({self.text!r})"

    def __bool__(self) -> bool:
        raise TypeError("an exact number has no truth value; compare with popgd.ball.sign")

    def __float__(self) -> float:
        raise TypeError("float() would round silently; use popgd.ball.to_float(x)")

    def __neg__(self) -> Exact:
        return _combine("*", _number(Fraction(-1), text="-1"), self, text=f"-({self.text})")

    def __add__(self, other: Any) -> Exact:
        return _combine("+", self, exact(other))

    def __radd__(self, other: Any) -> Exact:
        return _combine("+", exact(other), self)

    def __sub__(self, other: Any) -> Exact:
        return _combine("-", self, exact(other))

    def __rsub__(self, other: Any) -> Exact:
        return _combine("-", exact(other), self)

    def __mul__(self, other: Any) -> Exact:
        return _combine("*", self, exact(other))

    def __rmul__(self, other: Any) -> Exact:
        return _combine("*", exact(other), self)

    def __truediv__(self, other: Any) -> Exact:
        return _combine("/", self, exact(other))

    def __rtruediv__(self, other: Any) -> Exact:
        return _combine("/", exact(other), self)

    def __pow__(self, other: Any) -> Exact:
        return _combine("**", self, exact(other))

    def __rpow__(self, other: Any) -> Exact:
        return _combine("**", exact(other), self)


def exact(value: Any, names: Mapping[str, Any] | None = None, *, name: str = "value") -> Exact:
    """Read a number exactly.

    Parameters
    ----------
    value : int, Fraction, Decimal, float, str or Exact
        A float is the binary number it is and sets `from_float`; a string may use
        + - * / ** ( ) sqrt ln log exp pi, integers, decimals and the given names.
    names : mapping of str to number, optional
        Values of names used in the string, themselves read by `exact`.
    name : str
        How error messages call the argument.

    Returns
    -------
    Exact

    Raises
    ------
    BadParameter
        When the value is not finite, not a number or not an expression.

    Notes
    -----
    Error: none; rational arithmetic is carried out exactly, the rest is kept as an expression.
    """
    if isinstance(value, Exact):
        return value
    if isinstance(value, str):
        return _Parser(name, value, names or {}).parse()
    if isinstance(value, bool) or type(value).__name__ == "bool":
        raise check.refuse(name, value, "a bool is not a number here", _REMEDY)
    if getattr(value, "shape", None) == ():
        value = value[()]
    if isinstance(value, numbers.Rational):
        return _number(Fraction(int(value.numerator), int(value.denominator)))
    if isinstance(value, (numbers.Real, Decimal)) or hasattr(value, "_mpf_"):
        return _from_real(name, value)
    raise check.refuse(name, value, "must be an exact real number", _REMEDY)


def _from_real(name: str, value: Any) -> Exact:
    if not math.isfinite(value):
        raise check.refuse(name, value, "must be finite", _REMEDY)
    if isinstance(value, Decimal):
        return _number(Fraction(value))
    if hasattr(value, "_mpf_"):
        sign, mantissa, exponent, _ = value._mpf_
        fraction = Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)
        return _number(fraction, from_float=True)
    return _number(Fraction(float(value)), from_float=True, text=repr(float(value)))


def _number(value: Fraction, from_float: bool = False, text: str = "") -> Exact:
    return Exact("number", (value,), from_float, text or str(value))


def _combine(kind: str, *parts: Exact, text: str = "", name: str = "expression") -> Exact:
    """The operation, carried out at once when the result is rational."""
    text = text or (f"({parts[0]}){kind}({parts[1]})" if len(parts) == 2 else f"{kind}({parts[0]})")
    flag = any(part.from_float for part in parts)
    value = _fold(kind, *(part.fraction for part in parts), text=text, name=name)
    if value is not None:
        return _number(value, flag, text)
    return Exact(kind, parts, flag, text)


def _fold(kind: str, *values: Fraction | None, text: str, name: str) -> Fraction | None:
    a = values[0]
    b = values[1] if len(values) == 2 else None
    if kind == "/" and b == 0:
        raise check.refuse(name, text, "divides by zero", "change the denominator")
    if kind in _FUNCTIONS.values():
        return None if a is None else _fold_function(kind, a, text, name)
    if a is None or b is None:
        return None
    if kind == "**":
        return _fold_power(a, b, text, name)
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[kind]()


def _fold_function(kind: str, a: Fraction, text: str, name: str) -> Fraction | None:
    if (kind == "sqrt" and a < 0) or (kind == "ln" and a <= 0):
        raise check.refuse(name, text, "is not a real number", "keep the argument positive")
    if kind == "sqrt":
        top, bottom = math.isqrt(a.numerator), math.isqrt(a.denominator)
        square = top * top == a.numerator and bottom * bottom == a.denominator
        return Fraction(top, bottom) if square else None
    if kind == "ln":
        return Fraction(0) if a == 1 else None
    return Fraction(1) if a == 0 else None


def _fold_power(a: Fraction, b: Fraction, text: str, name: str) -> Fraction | None:
    if (a == 0 and b < 0) or (a < 0 and b.denominator != 1):
        raise check.refuse(name, text, "is not a real number", "change base or exponent")
    if a in (0, 1) or b == 0:
        return Fraction(1) if b == 0 else a
    if b.denominator != 1:
        return None
    size = max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(b.numerator)
    return a**b.numerator if size <= _FOLD_BITS else None


class _Parser:
    """Expressions by Python's grammar, with nothing evaluated by Python."""

    def __init__(self, name: str, text: str, names: Mapping[str, Any]):
        self.name, self.text, self.names = name, text.strip(), names

    def refuse(self, rule: str, remedy: str = _REMEDY) -> Exception:
        return check.refuse(self.name, self.text, rule, remedy)

    def parse(self) -> Exact:
        if len(self.text) > _LONGEST:
            raise self.refuse(f"is longer than {_LONGEST} characters")
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.refuse("is not an expression") from None
        result = self.visit(tree)
        return Exact(result.kind, result.parts, result.from_float, self.text)

    def visit(self, node: ast.expr) -> Exact:
        text = ast.get_source_segment(self.text, node) or ""
        if isinstance(node, ast.Constant):
            return self.constant(text)
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.visit(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            kind = _OPERATORS[type(node.op)]
            sides = self.visit(node.left), self.visit(node.right)
            return _combine(kind, *sides, text=text, name=self.name)
        if isinstance(node, ast.Call):
            return self.call(node, text)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            raise self.refuse("uses ^", "write ** for powers")
        raise self.refuse(f"may not use {text!r}")

    def constant(self, text: str) -> Exact:
        match = re.fullmatch(r"[0-9_]*\.?[0-9_]*(?:[eE]([+-]?[0-9]+))?", text)
        if not match or abs(int(match[1] or 0)) > 10_000:
            raise self.refuse(f"may not use {text!r}")
        return _number(Fraction(text), text=text)

    def lookup(self, key: str) -> Exact:
        if key in self.names:
            return exact(self.names[key], name=key)
        if key == "pi":
            return Exact("pi", (), False, "pi")
        known = ", ".join(sorted({*self.names, *_FUNCTIONS, "pi"}))
        raise self.refuse(f"uses the unknown name {key!r}", f"known names are {known}")

    def call(self, node: ast.Call, text: str) -> Exact:
        known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        if not known or len(node.args) != 1 or node.keywords:
            raise self.refuse(
                f"may not use {text!r}", "functions are sqrt(x), ln(x), log(x), exp(x)"
            )
        assert isinstance(node.func, ast.Name)
        inner = self.visit(node.args[0])
        return _combine(_FUNCTIONS[node.func.id], inner, text=text, name=self.name)
