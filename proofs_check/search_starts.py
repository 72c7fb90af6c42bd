"""Where searches start: structured weights, limits at infinity, and random weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from .search import Candidate

__all__ = [
    "attention",
    "attention_and_output",
    "attention_at",
    "heads",
    "nested",
    "output_and_step",
    "outputs_and_attention",
]


NESTED = 4
"""Most blocks whose orders are all tried."""


def _shapes(n: int) -> dict[str, np.ndarray]:
    """Named profiles over n blocks, as small integers; uniform and repeated ones left out."""
    index = np.arange(n)
    shapes = {
        "one-hot": index == 0,
        "all equal but one": index != n - 1,
        "two-valued": index < (n + 1) // 2,
        "geometric scales": n - 1 - index,
    }
    kept: dict[tuple[int, ...], str] = {}
    for name, shape in shapes.items():
        kept.setdefault(tuple(int(x) for x in shape), name)
    return {name: np.array(shape) for shape, name in kept.items() if len(set(shape)) > 1}


def attention(n: int, seed: int = 0, random: int = 1, size: float = 2.0) -> Iterator[Candidate]:
    """Starts for n attention weights, one a block: finite, infinite and random ones.

    Parameters
    ----------
    n : int
    seed : int
        Of the random starts.
    random : int
        Number of random starts.
    size : float
        Scale of the finite starts.
    """
    yield Candidate.finite("uniform", 0.01 * np.cos(np.arange(n)))
    for name, shape in _shapes(n).items():
        yield Candidate.finite(name, size * shape)
        yield Candidate(f"{name}, at infinity", np.zeros(n), shape)
    rng = np.random.default_rng(seed)
    for k in range(random):
        yield Candidate.finite(f"random {k}", rng.normal(size=n) * size)


def nested(n: int) -> Iterator[Candidate]:
    """Uniform attention, and up to four blocks in every order of nested limits."""
    yield Candidate.finite("uniform", np.zeros(n))
    if n <= NESTED:
        for order in permutations(range(n)):
            yield Candidate("nested limits", np.zeros(n), np.array(order))


def attention_and_output(blocks: int, seed: int = 0, random: int = 1) -> Iterator[Candidate]:
    """Starts for `AttentionOnly`: attention of target and blocks, then outputs.

    The outputs fall with the block number, from 1.5 to the target's 0.
    """
    falling = np.append(0.0, np.linspace(1.5, 0.0, blocks) if blocks > 1 else [1.0])
    nested = np.append(0, np.arange(blocks, 0, -1))
    lowest, zero = np.minimum(nested, 1), np.zeros(blocks + 1)
    for name, tier, offset in (
        ("nested limits", nested, zero),
        ("target ignored", lowest, 1.5 * np.maximum(nested - 1, 0)),
        ("geometric scales", 0 * nested, 1.5 * nested),
    ):
        both = np.concatenate([offset, falling])
        yield Candidate(name, both, np.concatenate([tier, 0 * nested]))
    rng = np.random.default_rng(seed)
    for k in range(random):
        both = np.concatenate([2 * rng.normal(size=blocks + 1), [0.0], rng.uniform(0, 2, blocks)])
        yield Candidate.finite(f"random {k}", both)


def attention_at(beta: np.ndarray, block: int) -> Iterator[Candidate]:
    """Starts for `AttentionAt`: blocks by their outputs, and the target below, among or above."""
    n = len(beta)
    rank = np.argsort(np.argsort(beta, kind="stable"), kind="stable")
    zero = np.zeros(n + 1)
    yield Candidate("target lowest", zero, np.append(rank + 1, 0))
    yield Candidate("target highest", zero, np.append(n - 1 - rank, n))
    yield Candidate("target in its place", zero, np.append(2 * rank, 2 * rank[block] + 1))
    yield Candidate("target apart", np.append(-beta, 0.0), np.append(np.zeros(n, dtype=int), 1))
    yield Candidate.finite("by outputs", np.append(0.5 * rank, 0.0))


def outputs_and_attention(blocks: int) -> Iterator[Candidate]:
    """Starts for `EveryTarget`: outputs that fall with the block number, or rise."""
    for name, beta in (
        ("falling outputs", np.linspace(1.5, 0.2, blocks)),
        ("rising outputs", np.linspace(0.5, 1.2, blocks)),
    ):
        for kind in range(2):
            own = [list(attention_at(beta, block))[4 * kind] for block in range(blocks)]
            tiers = [np.zeros(blocks, dtype=int), *(c.tier for c in own)]
            x = np.concatenate([beta, *(c.x for c in own)])
            yield Candidate(f"{name}, {own[0].name}", x, np.concatenate(tiers))


def output_and_step(n: int, seed: int = 0, random: int = 1) -> Iterator[Candidate]:
    """Starts for `AttentionFirst`: outputs by block, then the log of the step size."""
    yield Candidate.finite("zero", np.append(0.01 * np.cos(np.arange(n)), 0.0))
    for name, shape in _shapes(n).items():
        for low, high in ((0.0, 1.0), (4.0, 0.0), (0.0, -2.0)):
            for step in (3.0, 8.0):
                beta = low + (high - low) * shape
                label = f"{name}, {low:g} to {high:g}, eta = e^{step:g}"
                yield Candidate.finite(label, np.append(beta, step))
    rng = np.random.default_rng(seed)
    for k in range(random):
        start = np.append(3 * rng.normal(size=n), rng.uniform(0, 8))
        yield Candidate.finite(f"random {k}", start)


def heads(count: int, blocks: int, seed: int = 0, random: int = 0) -> Iterator[Candidate]:
    """Starts for `LazyHeads`: every head uniform, heads that share the blocks out, random ones."""
    shape = (count, blocks)
    yield Candidate.finite("uniform", np.zeros(count * blocks))
    own = np.arange(blocks) == np.arange(count)[:, None] % blocks
    yield Candidate("a block each, at infinity", np.zeros(own.size), own.astype(int).ravel())
    turned = (np.arange(blocks) - np.arange(count)[:, None]) % blocks
    yield Candidate("nested limits in turn", np.zeros(own.size), turned.ravel())
    one = np.zeros(shape, dtype=int)
    one[1:, 0] = 1
    if count > 1:
        yield Candidate("one head uniform, others on a block", np.zeros(own.size), one.ravel())
    rng = np.random.default_rng(seed)
    for k in range(random):
        yield Candidate.finite(f"random {k}", 2 * rng.normal(size=count * blocks))
