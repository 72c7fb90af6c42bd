"""A point of a grid: named parameters as exact expressions, evaluated on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from popgd.ball import Ball, ball, exact
from popgd.expression import Exact

__all__ = ["Point", "shorten"]

# names of parameters, not of functions: asking for those would start a search
_NAME = re.compile(r"(?<![\w.])(?!(?:sqrt|ln|log|exp|pi)\b)[A-Za-z_]\w*")


class Point(Mapping[str, Any]):
    """Named parameters, in order; an expression may use the names before it.

    Parameters
    ----------
    **values : int, str, Fraction or sequence of these
        Exact numbers ("0.1", "sqrt(d)/2"), or plain words (a link's name). A Fraction is kept
        as its text, so that points can be written to JSON and read back unchanged.

    Notes
    -----
    Error: none; nothing is rounded here.
    """

    __slots__ = ("_exact", "_values")

    def __init__(self, **values: Any):
        self._values = {name: _plain(value) for name, value in values.items()}
        self._exact: dict[str, Exact] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self._values == other._values

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._values,)

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    def __str__(self) -> str:
        return ", ".join(f"{k} = {shorten(v)}" for k, v in self._values.items())

    @property
    def d(self) -> int:
        """The dimension."""
        return int(self._values["d"])

    def exact(self, name: str) -> Exact:
        """The named parameter as an exact number."""
        if name not in self._exact:
            value = self[name]
            if isinstance(value, str):
                self._exact[name] = _read(value, self.needed(value, name), name)
            else:
                self._exact[name] = exact(value, name=name)
        return self._exact[name]

    def expression(self, text: str) -> Exact:
        """An expression in this point's parameters as an exact number."""
        return _read(text, self.needed(text), "expression")

    def needed(self, text: str, *without: str) -> tuple[tuple[str, Any], ...]:
        """The parameters an expression depends on, each after those it uses itself."""
        found: dict[str, Any] = {}
        for name in _NAME.findall(text):
            if name not in found and name not in without and name in self:
                value = self[name]
                if isinstance(value, str):
                    found.update(self.needed(value, name, *without))
                found[name] = value
        return tuple(found.items())

    def fraction(self, name: str) -> Fraction:
        """The named parameter as a rational number; only for parameters that are."""
        value = self.exact(name).fraction
        if value is None:
            raise ValueError(f"{name} = {self._values[name]} is not rational")
        return value

    def ball(self, name: str) -> Ball:
        """The named parameter as a ball at the current precision."""
        return ball(self.exact(name))

    def but(self, **values: Any) -> Point:
        """This point with some parameters replaced or added."""
        return Point(**{**self._values, **values})

    def without(self, *names: str) -> Point:
        """This point with some parameters removed."""
        return Point(**{k: v for k, v in self._values.items() if k not in names})

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON report."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self._values.items()}


@lru_cache(maxsize=1 << 14)
def _read(text: str, needed: tuple[tuple[str, Any], ...], name: str) -> Exact:
    """An expression with the values of its names; plain words are no names."""
    names: dict[str, Exact] = {}
    for key, value in needed:
        try:
            names[key] = exact(value, names, name=key)
        except (ValueError, TypeError):
            continue
    return exact(text, names, name=name)


def _rebuild(values: dict[str, Any]) -> Point:
    return Point(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(x) for x in value)
    return value


def shorten(value: Any) -> str:
    """A value for people: long lists by their start, large powers of ten as such."""
    if isinstance(value, tuple):
        shown = [shorten(x) for x in value]
        if len(value) > 4:
            shown[3:] = [f"... {len(value)} values"]
        return f"({', '.join(shown)})"
    return re.sub(r"^10{4,}$", lambda match: f"10^{len(match.group()) - 1}", str(value))
