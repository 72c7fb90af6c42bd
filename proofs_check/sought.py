"""A point known in part: the rest is searched for when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .point import Point, _plain

__all__ = ["Sought"]


class Sought(Point):
    """Some parameters at once, the others from a search on first use.

    Work is shared out by dimension, so the process that does not judge this point never
    searches for it.

    Parameters
    ----------
    known : mapping
        Parameters given, among them d.
    search : callable
        The remaining parameters.
    """

    __slots__ = ("_found", "_known", "_search")

    def __init__(self, known: Mapping[str, Any], search: Callable[[], Mapping[str, Any]]):
        self._known = {name: _plain(value) for name, value in known.items()}
        self._search = search
        self._found: dict[str, Any] | None = None
        self._exact = {}

    @property
    def _values(self) -> dict[str, Any]:  # type: ignore[override]
        if self._found is None:
            more = {name: _plain(value) for name, value in self._search().items()}
            self._found = {**self._known, **more}
        return self._found

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        return self._values[name]

    @property
    def d(self) -> int:
        """The dimension."""
        return int(self["d"])
