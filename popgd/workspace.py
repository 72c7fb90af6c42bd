"""Scratch memory that kernels reuse, one set a thread.

Fresh arrays cost a page fault every 512 numbers, which can exceed the arithmetic done on them.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

__all__ = ["scratch"]

_local = threading.local()

LARGEST = 2**21
"""Buffers above this many numbers are not kept."""


def scratch(name: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Uninitialised float64 array of `shape`; the next call with the same name overwrites it."""
    size = math.prod(shape)
    if size > LARGEST:
        return np.empty(shape)
    pool = _local.__dict__.setdefault("pool", {})
    buffer = pool.get(name)
    if buffer is None or buffer.size < size:
        buffer = pool[name] = np.empty(size)
    return buffer[:size].reshape(shape)
