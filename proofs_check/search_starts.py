"""Where searches start: structured attention weights, partitions of the symbols, random ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .search import Candidate

__all__ = ["attention", "partitions"]


def attention(n: int, seed: int, random: int = 2, size: float = 2.0) -> Iterator[Candidate]:
    """Starts for n attention weights: finite ones, limits, and `random` random ones.

    Parameters
    ----------
    n : int
        Number of weights (one a block).
    seed : int
        Of the random starts.
    random : int
        Number of random starts.
    size : float
        Scale of the finite starts.
    """
    index = np.arange(n)
    yield Candidate.finite("uniform", 0.01 * np.cos(index))
    if n < 2:
        return
    first, half = (index == 0).astype(int), (index < (n + 1) // 2).astype(int)
    shapes = {
        "one-hot": first,
        "all equal but one": 1 - (index == n - 1),
        "two-valued": half,
        "geometric scales": n - 1 - index,
    }
    seen: set[tuple[int, ...]] = set()
    for name, shape in shapes.items():
        if tuple(shape) in seen:
            continue
        seen.add(tuple(shape))
        yield Candidate.finite(name, size * shape)
        yield Candidate(f"{name}, at infinity", np.zeros(n), np.asarray(shape, dtype=int))
    rng = np.random.default_rng(seed)
    for k in range(random):
        yield Candidate.finite(f"random {k}", rng.normal(size=n) * size)


def partitions(d: int, level: str) -> list[tuple[int, ...]]:
    """Ways to group d symbols into blocks: all alone for small d, else a few block sizes.

    Small blocks come first, so that the first weights of a start belong to few symbols.
    """
    out: list[tuple[int, ...]] = []
    if d <= {"quick": 5, "default": 8, "full": 12}[level]:
        out.append((1,) * d)
    two = {
        "quick": (1,),
        "default": (1, 2, d // 2),
        "full": (1, 2, 3, d // 10, d // 4, d // 2, d - 1),
    }[level]
    out += [(k, d - k) for k in dict.fromkeys(two) if 0 < k < d]
    three = {
        "quick": (),
        "default": ((1, 1), (1, 2), (1, d // 10), (1, d // 2)),
        "full": ((1, 1), (1, 2), (1, 3), (2, 2), (1, d // 10), (1, d // 4), (1, d // 2), (1, d - 2),
                 (d // 3, d // 3)),
    }[level]  # fmt: skip
    out += [(*k, d - sum(k)) for k in dict.fromkeys(three) if min(k) > 0 and sum(k) < d]
    if level == "full" and d > 5:
        out += [(1, 1, 1, d - 3), (1, 1, d // 2 - 1, d - 1 - d // 2)]
    return list(dict.fromkeys(out))
