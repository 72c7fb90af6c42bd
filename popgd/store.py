"""A zarr directory that a sweep fills chunk by chunk and can resume from."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from .errors import BadFile, NotAvailable
from .sweep_cells import Record

if TYPE_CHECKING:
    import xarray

__all__ = ["Store"]

KIND = "popgd sweep"
# in a group of its own, where xarray does not look for variables
LOG = "sweep.log/finished_chunks"
DRAFT = "sweep.log/result.part"


class Store:
    """Finished chunks of one sweep, each a file that appears whole or not at all.

    Parameters
    ----------
    path : str or PathLike
        A directory; it is created, or continued when it holds the same sweep.
    identity : Mapping
        What the results depend on (JSON-able); a store with another one is refused.
    chunks : int
        Number of chunks.

    Raises
    ------
    BadFile
        When the place cannot be used; nothing that was there is changed.
    NotAvailable
        When zarr is not installed.

    Notes
    -----
    ``xarray.open_zarr(path)`` reads the result once the sweep has finished; until then the
    directory holds the log of chunks only.
    """

    def __init__(self, path: Any, identity: Mapping[str, Any], chunks: int):
        self.path = os.path.abspath(os.fspath(path))
        try:
            import zarr
        except ImportError:
            raise NotAvailable(
                "store: zarr is not installed; pip install 'popgd[cluster]', or sweep without."
            ) from None
        new = not os.path.lexists(self.path)
        with self._reported():
            if new or (os.path.isdir(self.path) and not os.listdir(self.path)):
                self._create(zarr, identity, chunks, new)
            self._open(zarr, identity)

    def _create(self, zarr: Any, identity: Mapping[str, Any], chunks: int, new: bool) -> None:
        draft = f"{self.path}.{secrets.token_hex(6)}.part"
        try:
            root = zarr.open_group(draft, mode="w-", zarr_format=2)
            log = root.create_array(LOG, shape=(chunks,), chunks=(1,), dtype=str, fill_value="")
            # on the log: the attributes of the root are those of the result
            log.attrs.update({"kind": KIND, "identity": dict(identity)})
            if not new:
                with suppress(FileNotFoundError):
                    os.rmdir(self.path)
            os.rename(draft, self.path)
        except OSError:
            if self.existing(self.path) is None:
                raise  # otherwise another process was faster: its store is opened
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _open(self, zarr: Any, identity: Mapping[str, Any]) -> None:
        shown = f"store = {self.path!r}"
        remedy = "choose a new path"
        if not os.path.isdir(self.path):
            raise BadFile(f"{shown}: is a file and was left alone; {remedy}.")
        try:
            root = zarr.open_group(self.path, mode="r+", zarr_format=2)
            self._log = root[LOG]
            found, kind = self._log.attrs.get("identity"), self._log.attrs.get("kind")
        except (FileNotFoundError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadFile(f"{shown}: holds no sweep and was left alone; {remedy}.") from error
        if kind != KIND or not isinstance(found, Mapping):
            raise BadFile(f"{shown}: holds no sweep and was left alone; {remedy}.")
        wanted = json.loads(json.dumps(dict(identity)))
        different = [key for key in wanted if found.get(key) != wanted[key]]
        if different:
            raise BadFile(
                f"{shown}: holds another sweep (it differs in {', '.join(different)}) and was "
                f"left alone; {remedy}, or repeat the arguments it was made with."
            )

    @staticmethod
    def existing(path: Any) -> dict[str, Any] | None:
        """The identity of the sweep at `path`, None when there is none."""
        try:
            with open(os.path.join(os.fspath(path), LOG, ".zattrs"), encoding="utf-8") as file:
                attrs = json.load(file)
        except (OSError, ValueError):
            return None
        if not isinstance(attrs, dict) or attrs.get("kind") != KIND:
            return None
        identity = attrs.get("identity")
        return identity if isinstance(identity, dict) else None

    def finished(self, sizes: Sequence[int]) -> dict[int, list[Record]]:
        """The chunks that are there, by number; a damaged one counts as missing.

        Parameters
        ----------
        sizes : sequence of int
            Cells of each chunk.
        """
        done = {}
        for i, size in enumerate(sizes):
            try:
                text = self._log[i : i + 1][0]
                records = [(cell[0], cell[1]) for cell in json.loads(text)] if text else []
                if len(records) == size and all(map(_sound, records)):
                    done[i] = records
            except Exception:  # whatever decoding a damaged file raises: compute it again
                continue
        return done

    def write(self, i: int, records: list[Record]) -> None:
        """Keep chunk `i`.

        Raises
        ------
        BadFile
            When it cannot be written; the finished chunks are still there.
        """
        with self._reported():
            self._log[i : i + 1] = json.dumps(records)

    def close(self, result: xarray.Dataset) -> None:
        """Put the labelled result beside the log, in place of an older or a half-written one.

        Raises
        ------
        BadFile
            When it cannot be written; the log, and an older result, are still there.
        """
        draft = os.path.join(self.path, DRAFT)
        with self._reported(), _alone(os.path.join(self.path, LOG, ".zattrs")):
            try:
                shutil.rmtree(draft, ignore_errors=True)
                result.to_zarr(draft, mode="w", zarr_format=2, consolidated=False)
                for name in sorted(os.listdir(draft)):
                    _replace(os.path.join(draft, name), os.path.join(self.path, name))
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if isinstance(error, BadFile):
                raise
            raise BadFile(
                f"store = {self.path!r}: could not be written ({error.strerror or error}); "
                "finished chunks are kept, make room or choose another place and run again."
            ) from error


def _sound(record: tuple[Any, Any]) -> bool:
    values, text = record
    plain = isinstance(values, dict) and isinstance(text, str)
    return plain and all(isinstance(x, (bool, int, float, str)) for x in values.values())


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """One process at a time; a killed one lets go. Without file locks (Windows): no waiting."""
    with open(path, "r+b") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _replace(source: str, target: str) -> None:
    """Move a file or a directory over what is there."""
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.rmtree(target)
    os.replace(source, target)
