"""What tells the arguments of sweeps apart in a store: names, and digests of code and values."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _validate as check

__all__ = ["described", "fingerprint", "shown"]

LONGEST = 60  # characters of a value that stands in a store as it is printed
REMEDY = (
    "pass functions, numbers, strings, arrays or picklable objects of these, or sweep without a "
    "store"
)


def described(function: Any) -> str:
    """A function's name, for people."""
    if isinstance(function, functools.partial):
        fixed = [_short(x) for x in function.args]
        fixed += [f"{k}={_short(x)}" for k, x in function.keywords.items()]
        return f"partial({', '.join([described(function.func), *fixed])})"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}:{name}"


def _short(value: Any) -> str:
    """A plain value as printed, the type of any other: their print may hold an address."""
    return _plain(value) or type(value).__qualname__


def _plain(value: Any) -> str:
    """The print of a short number or string, else ""."""
    if type(value) is int and value.bit_length() > 4 * LONGEST:
        return ""  # Python prints no integer of more than 4300 digits
    if type(value) not in (bool, int, float, str, type(None)):
        return ""
    text = repr(value)
    return text if len(text) <= LONGEST else ""


def shown(name: str, value: Any) -> str:
    """A value of a grid: as printed when that is short and exact, else type and digest.

    Raises
    ------
    BadParameter
        As `fingerprint`.
    """
    return _plain(value) or f"{type(value).__qualname__} {fingerprint(name, value)}"


def fingerprint(name: str, value: Any) -> str:
    """A digest of a value, the same in every process.

    Parameters
    ----------
    name : str
        How error messages call the value.
    value : object
        Of a function counts its code (no comments, no docstring, not the functions it calls by
        their global name), defaults and the variables it closes over; of other objects what
        pickle keeps.

    Returns
    -------
    str

    Raises
    ------
    BadParameter
        When the value holds something that pickle cannot take apart.
    """
    digest = _Digest()
    try:
        digest.add(value)
        call = type(value).__call__ if callable(value) else None
        if isinstance(call, types.FunctionType):
            digest.add(call)
    except Exception as error:  # whatever an object's own pickling raises
        rule = f"cannot be told apart from others in a store ({_first_line(error)})"
        raise check.refuse(name, value, rule, REMEDY) from error
    return digest.hash.hexdigest()[:32]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class _Digest:
    """Values written one after the other into a hash, each after its kind and length.

    Not pickle's bytes: these depend on which equal objects are one and the same.
    """

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.open: list[int] = []  # ids of the objects that are being written

    def write(self, kind: str, data: bytes = b"") -> None:
        self.hash.update(f"{kind} {len(data)}:".encode() + data)

    @contextmanager
    def inside(self, value: Any) -> Iterator[bool]:
        """Whether the value is new: an object that holds itself is written once."""
        if id(value) in self.open:
            self.write("again", str(self.open.index(id(value))).encode())
            yield False
            return
        self.open.append(id(value))
        yield True
        self.open.pop()

    def add(self, value: Any) -> None:
        kind = type(value)
        if value is None or kind in (bool, float, complex, type(...)):
            self.write(kind.__name__, repr(value).encode())
        elif kind is int:
            self.write("int", hex(value).encode())
        elif kind is str:
            self.write("str", value.encode("utf-8", "surrogatepass"))
        elif kind in (bytes, bytearray):
            self.write(kind.__name__, bytes(value))
        elif isinstance(value, (type, types.ModuleType)):
            name = getattr(value, "__qualname__", "")
            self.write(
                "name", f"{value.__dict__.get('__module__')}:{value.__name__}:{name}".encode()
            )
        elif kind in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            self.write(f"array {value.dtype.descr} {value.shape}", value.tobytes())
        else:
            with self.inside(value) as new:
                if new:
                    self.add_parts(value)

    def add_parts(self, value: Any) -> None:
        kind = type(value)
        if kind in (list, tuple):
            self.add_all(kind.__name__, value)
        elif kind in (set, frozenset):
            self.write(kind.__name__, "".join(sorted(fingerprint("", x) for x in value)).encode())
        elif kind is dict:
            self.add_all("dict", [part for item in value.items() for part in item])
        elif kind is types.CodeType:
            self.add_code(value)
        elif kind is types.FunctionType:
            self.add_function(value)
        elif kind is types.MethodType:
            self.add_all("method", [value.__func__, value.__self__])
        elif hasattr(value, "__wrapped__"):  # functools.lru_cache and its like
            self.add_all(kind.__qualname__, [value.__wrapped__])
        else:
            self.add_object(value)

    def add_all(self, kind: str, values: Any) -> None:
        self.write(kind, str(len(values)).encode())
        for value in values:
            self.add(value)

    def add_function(self, function: types.FunctionType) -> None:
        code, doc = function.__code__, function.__doc__
        consts = code.co_consts
        if doc is not None and consts and consts[0] == doc:
            code = code.replace(co_consts=(None, *consts[1:]))
        cells = [_content(cell) for cell in function.__closure__ or ()]
        name = f"{function.__module__}:{function.__qualname__}"
        parts = [name, code, function.__defaults__, function.__kwdefaults__, cells]
        self.add_all("function", parts)

    def add_code(self, code: types.CodeType) -> None:
        names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        self.add_all("code", [code.co_code, code.co_consts, *names, *counts])

    def add_object(self, value: Any) -> None:
        reduce = copyreg.dispatch_table.get(type(value))
        found: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        if isinstance(found, str):  # a global name
            self.add_all("global", [str(getattr(value, "__module__", "")), found])
            return
        reduced: list[Any] = [*found, None, None, None]
        make, arguments, state, items, pairs = reduced[:5]
        if type(state) is dict:
            state = {k: x for k, x in state.items() if not _cached(value, k)}
        parts = [make, arguments, state, list(items or ()), list(pairs or ())]
        self.add_all("object", parts)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ...


def _cached(value: Any, name: Any) -> bool:
    """Whether an attribute only remembers what was computed from the others: a cached property,
    or a private dictionary of this package's own objects."""
    if not isinstance(name, str):
        return False
    if isinstance(getattr(type(value), name, None), functools.cached_property):
        return True
    own = type(value).__module__.startswith(f"{__package__}.")
    return own and name.startswith("_") and type(getattr(value, name, None)) is dict
