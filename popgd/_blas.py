"""BLAS at one thread where cells run: many-threaded BLAS on busy cores stalls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_thread"]

_LOCK = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold NumPy's and SciPy's BLAS at one thread; blocks may overlap in several threads."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _limit
    with _LOCK:
        if _inside == 0:
            # a BLAS that is loaded later would come with all its threads: SciPy has its own
            import scipy.linalg  # noqa: F401
            from threadpoolctl import threadpool_limits

            _limit = threadpool_limits(1, user_api="blas")
        _inside += 1


def _leave() -> None:
    global _inside, _limit
    with _LOCK:
        _inside -= 1
        if _inside == 0 and _limit is not None:
            _limit.restore_original_limits()
            _limit = None
