"""Files of arrays: written whole or not at all, read without pickles."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

import numpy as np

from . import _validate as check
from .errors import BadFile

__all__ = ["load_arrays", "read_npz", "save_arrays", "write_atomically"]

META = "meta"


def _name(path: Any) -> str:
    try:
        name = os.fsdecode(path)
    except TypeError:
        remedy = "pass a string or a pathlib.Path"
        raise check.refuse("path", path, "must be a file name", remedy) from None
    if "\0" in name:
        raise BadFile(f"path = {name!r}: holds a NUL byte; no file can have this name.")
    return name


def write_atomically(path: Any, write: Callable[[IO[bytes]], object]) -> None:
    """Call `write` on a temporary file beside `path`, then put it in place of `path`.

    Raises
    ------
    BadFile
        When anything goes wrong; what was at `path` is still there.
    """
    final = os.path.realpath(_name(path))
    if os.path.exists(final) and not os.path.isfile(final):
        # replacing a device or a pipe would take it from everyone
        raise BadFile(f"path = {os.fspath(path)!r}: is no regular file; choose a file name.")
    draft = f"{final}.{uuid.uuid4().hex[:12]}.part"
    try:
        # not tempfile: its files ignore the user's umask
        with open(draft, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(final):
            shutil.copymode(final, draft)
        os.replace(draft, final)
    except OSError as error:
        raise BadFile(
            f"path = {os.fspath(path)!r}: could not be written ({error.strerror or error}); what "
            "was there is unchanged, choose a writable place with free space."
        ) from error
    finally:
        with suppress(OSError):
            os.unlink(draft)


def save_arrays(path: Any, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON-able description as an npz file, exactly at `path`."""
    text = np.array(json.dumps(meta))
    write_atomically(path, lambda file: np.savez(file, **{META: text}, **arrays))


def read_npz(path: Any) -> dict[str, np.ndarray]:
    """All arrays of an npz file; a damaged one raises whatever NumPy raises."""
    # opened here: numpy leaves the file open when it is no zip archive
    with open(path, "rb") as file:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise ValueError("one array, not an archive of named arrays")
        with found:
            return {name: found[name] for name in found.files}


def load_arrays(path: Any, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `save_arrays` wrote with ``meta["kind"] == kind``.

    Raises
    ------
    BadFile
        When the file is missing, damaged, holds pickles or is of another kind.
    """
    shown = f"path = {_name(path)!r}"
    try:
        arrays = read_npz(path)
        meta = json.loads(str(arrays.pop(META)))
        found = meta["kind"]
    except OSError as error:
        raise BadFile(
            f"{shown}: could not be read ({error.strerror or error}); check the name."
        ) from error
    except Exception as error:
        raise BadFile(
            f"{shown}: is no {kind} file or is damaged; pass a file that a {kind} saved."
        ) from error
    if found != kind:
        raise BadFile(f"{shown}: holds a {found}; pass a file that a {kind} saved.")
    return arrays, meta
