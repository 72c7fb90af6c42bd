"""Words one by one in place of the kernel, and random batches of them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from mpmath import mp, mpf
from strategies import tasks

from popgd import WordBatch, sample_words

# the promise: rounding only, relative to the sum of absolute terms
CLOSE = 1e-13
# sums of at most a few hundred terms, in which attention may be lost 1000-fold before a word
# is evaluated on its own
GRADED = 1e-11


def per_word(batch, alpha, beta, residual=None, digits=None):
    """Risk and gradients from one softmax a word, and the sums of absolute terms.

    The terms of dL/dalpha_i are r gamma_i (v_i - r) with v_i - r split at the reference symbol k:
    |v_i - v_k| counts too.

    With `digits`, in mpmath: the oracle for weights at which float64 subtraction fails.
    """
    real = float if digits is None else mpf
    exp = np.exp if digits is None else mp.exp
    counts = batch.counts if isinstance(batch.counts, np.ndarray) else batch.counts.toarray()
    mass = np.ones(len(batch)) if batch.weights is None else batch.weights
    d = batch.d
    out = [real(0), [real(0)] * d, [real(0)] * d, [real(0)] * d, [real(0)] * d]
    with mp.workdps(digits or 15):
        for row, label, w in zip(counts, batch.labels, mass):
            v = [real(x) for x in beta]
            if label > 0:
                v = [x - 2 for x in v]
                if residual is not None:
                    for s, x in zip(batch.task.targets, residual):
                        v[s] = real(x)
            finite = [i for i in range(d) if row[i] > 0]
            shift = max(alpha[i] for i in finite)
            a = {i: int(row[i]) * exp(real(alpha[i]) - real(shift)) for i in finite}
            total = sum(a.values())
            r = sum(v[i] * a[i] for i in finite) / total
            size = sum(abs(v[i]) * a[i] for i in finite) / total
            scale = real(w) / real(batch.total)
            # the reference symbol of the kernel is at most this far above the word's own
            near = [k for k in range(d) if alpha[k] <= shift + np.log(1024.0 * row.sum())]
            out[0] += scale * r * r / 2
            for i in finite:
                gamma = a[i] / total
                # v_i - r, as a sum of differences
                pull = sum((v[i] - v[j]) * a[j] for j in finite if j != i) / total
                pulls = sum(abs(v[i] - v[j]) * a[j] for j in finite if j != i) / total
                out[1][i] += scale * r * gamma * pull
                out[2][i] += scale * r * gamma
                out[3][i] += scale * size * gamma * (pulls + max(abs(v[i] - v[k]) for k in near))
                out[4][i] += scale * size * gamma
    return [np.array(x, dtype=float) for x in out]


@st.composite
def batches(draw, task=None):
    task = task or draw(tasks(largest=12))
    batch = sample_words(task, draw(st.integers(1, 30)), rng=draw(st.integers(0, 2**40)))
    if draw(st.booleans()):
        mass = np.array(
            draw(st.lists(st.floats(0.0, 3.0), min_size=len(batch), max_size=len(batch)))
        )
        mass[0] += 0.5
        labels = np.array(
            draw(st.lists(st.sampled_from([-1, 1]), min_size=len(batch), max_size=len(batch)))
        )
        batch = WordBatch(
            batch.counts, labels, mass, task=task, total=draw(st.sampled_from([None, 2.5]))
        )
    return batch
