"""Labelled results as netCDF files that every netCDF reader opens, with no further library."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ._files import write_atomically

if TYPE_CHECKING:
    import xarray

__all__ = ["save_netcdf"]

INT32 = 2**31


def save_netcdf(dataset: xarray.Dataset, path: Any) -> None:
    """Write a Dataset as netCDF 3 (64-bit offsets), exactly at `path`, whole or not at all.

    Parameters
    ----------
    dataset : xarray.Dataset
        Result of `phase_diagram`, `boundary_curves` or `sweep`.
    path : str or PathLike
        The file; an older one is replaced only by a complete new one.

    Raises
    ------
    BadFile
        When it cannot be written; what was there is unchanged.

    Notes
    -----
    netCDF 3 has no 64-bit integers: integers beyond 2^31 become doubles, exact to 2^53.
    """
    wide = {
        name: variable.astype(float)
        for name, variable in dataset.variables.items()
        if variable.dtype.kind in "iu" and _exceeds(variable.values)
    }
    data = dataset.assign_coords({k: v for k, v in wide.items() if k in dataset.coords})
    data = data.assign({k: v for k, v in wide.items() if k not in dataset.coords})
    content = bytes(data.to_netcdf(engine="scipy", format="NETCDF3_64BIT"))

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_atomically(path, write)


def _exceeds(values: np.ndarray) -> bool:
    return values.size > 0 and bool((np.abs(values.astype(float)) >= INT32).any())
