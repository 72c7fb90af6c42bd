"""What the words of `popgd sweep` mean: functions by name, axes of a grid."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _validate as check

__all__ = ["load_function", "parse_axis"]

AXIS = "write NAME=1,2,3 or NAME=log:1e-3:1e3:13, NAME=lin:0:1:11, NAME=int:0:20"


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
    folder = os.getcwd()
    if module.endswith(".py"):
        path = os.path.abspath(module)
        folder, module = os.path.dirname(path), os.path.basename(path)[:-3]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
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
        return name.strip(), [_value(part.strip()) for part in values.split(",")]
    try:
        numbers = [float(part) for part in rest.split(":")]
        if kind == "int":
            return name.strip(), list(range(*(int(x) for x in numbers)))
        low, high, count = numbers
        make = np.geomspace if kind == "log" else np.linspace
        return name.strip(), make(low, high, int(count)).tolist()
    except (TypeError, ValueError):
        raise check.refuse("grid", text, "is no axis", AXIS) from None


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
