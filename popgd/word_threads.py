"""Blocks of words over threads: NumPy leaves the interpreter free while it multiplies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from .word_blocks import Block, quiet

__all__ = ["SMALLEST", "shares", "summed"]

SMALLEST = 2**17
"""Counts below which handing work over costs more than it saves (measured)."""

UNEVEN = 1.25
"""A block this much larger than a thread's share is cut."""


def shares(blocks: Sequence[Block], threads: int) -> list[list[Block]]:
    """The blocks as at most `threads` lists of about equally many words."""
    fair = math.ceil(sum(block.size for block in blocks) / threads)
    pieces: list[Block] = []
    for block in blocks:
        pieces += block.parts(fair) if block.size > UNEVEN * fair else [block]
    out: list[list[Block]] = [[] for _ in range(threads)]
    load = [0] * threads
    for piece in sorted(pieces, key=lambda p: -p.size):
        least = load.index(min(load))
        out[least].append(piece)
        load[least] += piece.size
    return [share for share in out if share]


def summed(
    work: Callable[..., Sequence[np.ndarray]], split: Sequence[Sequence[Block]], *arguments: Any
) -> list[np.ndarray]:
    """The sums of work(share, *arguments) over the shares, always added in the same order."""
    pool = _pool(len(split) - 1, os.getpid())
    others = [pool.submit(_quietly, work, share, *arguments) for share in split[1:]]
    total = [np.array(part) for part in _quietly(work, split[0], *arguments)]
    for future in others:
        for whole, part in zip(total, future.result(), strict=True):
            whole += part
    return total


def _quietly(work: Callable[..., Any], *arguments: Any) -> Any:
    # floating-point warnings are set thread by thread
    with quiet():
        return work(*arguments)


@lru_cache(maxsize=8)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool that lives on; a forked process makes its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="popgd-words")
