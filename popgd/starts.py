"""Where training starts: checked weights, zero or random."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _validate as check
from .languages import Task
from .multihead import MultiHeadRisk
from .population import PopulationRisk
from .trajectory import Weights
from .words import LARGEST_D

__all__ = ["broadcast", "exact", "has_heads", "random_start", "start_of", "task_of"]


def random_start(
    d: int, scale: float = 0.1, shape: Any = (), rng: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Random weights, alpha and beta ~ N(0, scale^2) independent: the paper's random start.

    Parameters
    ----------
    d : int
        Alphabet size.
    scale : float
        Standard deviation, >= 0; 0.1 in the paper.
    shape : int or tuple of int
        Batch axes.
    rng : None, int or Generator
        Seed or generator.

    Returns
    -------
    alpha, beta : array of shape (*shape, d)

    Notes
    -----
    Source: Paper B.1 (Table 2). Error: sampled.
    """
    d = check.integer("d", d, 2, LARGEST_D)
    scale = check.real("scale", scale, 0.0, closed="left")
    axes = shape if isinstance(shape, (tuple, list)) else (shape,)
    axes = tuple(check.integer("shape", n, 1) for n in axes)
    draw = check.generator("rng", rng).normal(0.0, scale, size=(2, *axes, d))
    return draw[0], draw[1]


def task_of(name: str, objective: Any) -> Any:
    """The task of an objective; a task stands for its exact population risk."""
    if isinstance(objective, Task):
        return objective
    task = getattr(objective, "task", None)
    if not hasattr(objective, "value_and_gradient") or not hasattr(task, "targets"):
        raise check.refuse(
            name, objective, "is no objective",
            "pass for example popgd.PopulationRisk(popgd.Occurrence(50))",
        )  # fmt: skip
    return task


def exact(objective: Any) -> Any:
    """The objective, or the exact population risk of a task."""
    return PopulationRisk(objective) if isinstance(objective, Task) else objective


def has_heads(objective: Any) -> bool:
    """Whether weights of this objective have a head axis, shape (..., H, d)."""
    return isinstance(objective, MultiHeadRisk)


def start_of(task: Any, alpha: Any, beta: Any, residual: Any, heads: bool = False) -> Weights:
    """The start as arrays with equal batch axes; zero where nothing is given."""
    if heads and alpha is None and beta is None:
        raise check.refuse(
            "alpha", alpha, "must show the number of heads", f"pass zeros of shape (H, {task.d})"
        )
    given = (("alpha", alpha), ("beta", beta))
    a, b = (None if x is None else check.weights(n, x, task.d, heads=heads) for n, x in given)
    a = np.zeros(task.d if b is None else b.shape) if a is None else a
    b = np.zeros(a.shape) if b is None else b
    targets = list(task.targets)
    if residual is None:
        r = (b.sum(axis=-2) if heads else b)[..., targets] - 2.0
    else:
        r = check.weights("residual", residual, len(targets))
    return broadcast(Weights(a, b, r), heads=heads)


def broadcast(point: Weights, *more: tuple[int, ...], heads: bool = False) -> Weights:
    """The parts with equal batch axes, which also span the shapes in `more`."""
    inner = (2, 2, 1) if heads else (1, 1, 1)
    shapes = [part.shape[:-own] for part, own in zip(point, inner, strict=True)]
    try:
        batch = np.broadcast_shapes(*shapes, *more)
        full = [
            np.broadcast_to(part, (*batch, *part.shape[-own:]))
            for part, own in zip(point, inner, strict=True)
        ]
    except ValueError:
        raise check.refuse(
            "alpha, beta, residual, learning_rate", [*shapes, *more],
            "batch axes do not broadcast", "use equal or broadcastable leading shapes",
        ) from None  # fmt: skip
    if 0 in batch:
        raise check.refuse(
            "alpha, beta, residual, learning_rate", [*shapes, *more],
            "a batch axis is empty", "pass at least one run",
        )  # fmt: skip
    return Weights(*full)
