"""What the words of `popgd sweep` mean: functions by name, axes of a grid."""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _validate as check

__all__ = ["load_function", "parse_axis"]

AXIS = "write NAME=1,2,3 or NAME=log:1e-3:1e3:13, NAME=lin:0:1:11, NAME=int:0:20"
LONGEST = 2_000_000


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
    """A name and its values; numbers where they read as numbers, text otherwise.

    Raises
    ------
    BadParameter
        When the text is no axis.
    """
    name, separator, values = text.partition("=")
    if not separator or not name.strip().isidentifier() or not values.strip():
        raise check.refuse("grid", text, "is no axis", AXIS)
    kind, _, rest = values.partition(":")
    if kind not in ("log", "lin", "int"):
        parts = [part.strip() for part in values.split(",")]
        if not all(parts):
            raise check.refuse("grid", text, "has an empty value", AXIS)
        return name.strip(), [_value(part) for part in parts]
    try:
        found = _spaced(kind, [float(part) for part in rest.split(":")])
    except OverflowError:
        raise check.refuse("grid", text, f"has more than {LONGEST:,} values", AXIS) from None
    except (TypeError, ValueError):
        raise check.refuse("grid", text, "is no axis", AXIS) from None
    if not found:
        raise check.refuse("grid", text, "has no values", AXIS)
    return name.strip(), found


def _spaced(kind: str, numbers: list[float]) -> list[Any]:
    """Values from low to high; int leaves out the last, as `range` does."""
    if kind == "int":
        whole = range(*(_integer(x) for x in numbers))
        if len(whole) > LONGEST:
            raise OverflowError
        return list(whole)
    low, high, count = numbers
    if not np.isfinite([low, high]).all():
        raise ValueError("not finite")
    if count > LONGEST:
        raise OverflowError
    make = np.geomspace if kind == "log" else np.linspace
    return make(low, high, _integer(count)).tolist()


def _integer(x: float) -> int:
    if x != math.floor(x):
        raise ValueError("not whole")
    return int(x)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
