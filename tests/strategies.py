"""Hypothesis strategies: random tasks, word laws and weights."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from popgd import And, FixedLength, Geometric, Occurrence, Or, Poisson, UniformLength, Words

LAWS = ("geometric", "poisson", "fixed", "uniform")


@st.composite
def length_laws(draw, kind=None):
    kind = kind or draw(st.sampled_from(LAWS))
    if kind == "geometric":
        return Geometric(draw(st.floats(0.005, 1.0)))
    if kind == "poisson":
        return Poisson(draw(st.floats(0.05, 40.0)))
    if kind == "fixed":
        return FixedLength(draw(st.integers(1, 40)))
    return UniformLength(draw(st.integers(1, 12)))


@st.composite
def symbol_laws(draw, d):
    if draw(st.booleans()):
        return None
    parts = np.array(draw(st.lists(st.floats(0.02, 1.0), min_size=d, max_size=d)))
    return parts / parts.sum()


@st.composite
def tasks(draw, law=None, d=None, languages=("occurrence", "or", "and"), largest=60):
    d = d or draw(st.integers(2, largest))
    language = draw(st.sampled_from(languages))
    words = Words(draw(length_laws(law)), draw(symbol_laws(d)))
    if language == "occurrence":
        return Occurrence(d, draw(st.integers(0, d - 1)), words)
    count = draw(st.integers(1, min(3, d)))
    targets = draw(st.permutations(range(d)))[:count]
    return (Or if language == "or" else And)(d, targets, words)


@st.composite
def weights(draw, task, gap=None):
    """(alpha, beta): a gap on the targets, a few random or tied levels elsewhere."""
    d = task.d
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.0, 0.5, 5.0, 30.0]))
    gap = (
        draw(st.floats(-40, 40) | st.sampled_from([-40.0, 0.0, 1.0, 40.0])) if gap is None else gap
    )
    alpha = spread * rng.random(d)
    alpha[list(task.targets)] += gap
    scale = draw(st.sampled_from([0.0, 1e-3, 1.0, 50.0]))
    beta = scale * rng.normal(size=d)
    beta[list(task.targets)] += draw(st.sampled_from([0.0, 1.9, 2.0]))
    return alpha, beta
