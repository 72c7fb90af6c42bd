"""What the words of `popgd sweep` mean: functions by name, axes of a grid."""

from __future__ import annotations

import ast
import importlib
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _validate as check
from .errors import BadParameter

__all__ = ["load_function", "parse_axis"]

AXIS = "write NAME=1,2,3 or NAME=log:1e-3:1e3:13, NAME=lin:0:1:11, NAME=int:0:20"
LONGEST = 2_000_000
EXPRESSION = re.compile(
    r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|sqrt|ln|log|exp|pi|[-+*/^() ])+"
)
DATE = re.compile("[0-9]+(-[0-9]+)+")  # 2024-10-11; or a range, 10-20


def load_function(name: str) -> Callable[..., Any]:
    """The function called "module:function", or "file.py:function" by its path.

    The module becomes importable in worker processes started from here too.

    Raises
    ------
    BadParameter
        When there is no such module or function.
    """
    remedy = "write for example study.py:trial or package.module:function"
    module, separator, attribute = name.rpartition(":")
    if not separator or not module or not attribute:
        raise check.refuse("function", name, "is no MODULE:FUNCTION", remedy)
    folder, path = os.getcwd(), None
    if module.endswith(".py"):
        path = os.path.abspath(module)
        folder, module = os.path.dirname(path), os.path.basename(path)[:-3]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise check.refuse("function", name, f"was not found ({error})", remedy) from error
    except Exception as error:  # whatever the user's file raises
        reason = f"could not be loaded ({type(error).__name__}: {error})"
        raise check.refuse("function", name, reason, "mend the file") from error
    if path is not None and os.path.abspath(getattr(found, "__file__", None) or "") != path:
        rule = f"another module is called {module!r}"
        raise check.refuse("function", name, rule, "rename the file")
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise check.refuse("function", name, f"was not found ({error})", remedy) from error
    if not callable(found):
        raise check.refuse("function", name, "is not callable", remedy)
    return found


def parse_axis(text: str) -> tuple[str, list[Any]]:
    """A name and its values; numbers where they read as numbers or expressions, text otherwise.

    Expressions such as 1/3, sqrt(2) or 10**6 are rounded once, to the nearest double.

    Raises
    ------
    BadParameter
        When the text is no axis.
    """
    name, separator, values = (part.strip() for part in text.partition("="))
    if not separator:
        raise _no_axis(text, "it has no =")
    if not name.isidentifier():
        raise _no_axis(text, f"{name!r} is no argument name")
    kind, _, rest = values.partition(":")
    try:
        found = _spaced(kind, rest) if kind in ("log", "lin", "int") else _listed(values)
    except OverflowError as error:
        raise check.refuse("grid", text, str(error), AXIS) from None
    except BadParameter:
        raise
    except ValueError as error:
        raise _no_axis(text, str(error)) from None
    if not found:
        raise check.refuse("grid", text, "has no values", AXIS)
    return name, found


def _no_axis(text: str, reason: str) -> BadParameter:
    return check.refuse("grid", text, f"is no axis ({reason})", AXIS)


def _listed(values: str) -> list[Any]:
    parts = [part.strip() for part in values.split(",")]
    if not all(parts):
        raise ValueError("it has an empty value")
    return [_value(part) for part in parts]


def _spaced(kind: str, text: str) -> list[Any]:
    """Values from low to high; int leaves out the last, as `range` does."""
    numbers = [_number(part.strip()) for part in text.split(":")]
    if kind == "int":
        if len(numbers) > 3:
            raise ValueError("int: takes LOW:HIGH or LOW:HIGH:STEP")
        whole = [_integer(x) for x in numbers]
        if whole[2:] == [0]:
            raise ValueError("the step is 0")
        return list(_bounded(range(*whole)))
    if len(numbers) != 3:
        raise ValueError(f"{kind}: takes LOW:HIGH:N")
    low, high, count = numbers
    if kind == "log" and not (min(low, high) > 0 or max(low, high) < 0):
        raise ValueError("log: takes LOW and HIGH of one sign, not 0")
    size = len(_bounded(range(_integer(count))))
    make = np.geomspace if kind == "log" else np.linspace
    return make(float(low), float(high), size).tolist()


def _bounded(whole: range) -> range:
    # len() of a longer one may not fit
    if whole[LONGEST:]:
        raise OverflowError(f"has more than {LONGEST:,} values")
    return whole


def _integer(x: float) -> int:
    if x != math.floor(x):
        raise ValueError(f"{x!r} is not a whole number")
    return int(x)


def _number(text: str) -> float:
    value = math.pi if text == "pi" else _value(text)
    if isinstance(value, str):
        raise ValueError(f"{text!r} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{text} is not finite")
    return value


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return _evaluated(text) if _is_expression(text) else text


def _is_expression(text: str) -> bool:
    """Whether a text can only mean arithmetic: words (pi too), dates and versions are text."""
    if not EXPRESSION.fullmatch(text) or not re.search("[0-9]|pi", text) or text.isidentifier():
        return False
    if DATE.fullmatch(text):
        return False
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _evaluated(text: str) -> float:
    from .ball import to_float
    from .expression import exact

    number = exact(text, name="grid")
    if number.fraction is not None and number.fraction.denominator == 1:
        return int(number.fraction)
    try:
        return to_float(number)
    except (ArithmeticError, BadParameter):
        raise ValueError(f"{text} is no double") from None
