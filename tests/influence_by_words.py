"""The influence of every enumerated word on all 2d weights, Hessians by differences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oracles import Enumerated, direct, enumerate_words


class ByWords(NamedTuple):
    """Words, their influence (2d, words) and the standard deviations that follow."""

    words: Enumerated
    influence: np.ndarray
    deviation: dict[str, float]


def influence_by_words(task, steps, start, longest=45):
    words = enumerate_words(task, longest)
    d, p = task.d, words.probability

    def look(x):
        return direct(task, words, x[:d], x[d:])

    x, h = start.copy(), np.zeros((2 * d, p.size))
    for attention, output in steps:
        eta = np.repeat([attention, output], d)
        here = look(x)
        word = np.concatenate([here.word_alpha, here.word_beta], axis=1).T
        mean = np.concatenate([here.alpha, here.beta])
        hessian = np.empty((2 * d, 2 * d))
        for i in range(2 * d):
            off = np.zeros(2 * d)
            off[i] = 1e-5
            up, down = look(x + off), look(x - off)
            change = np.concatenate([up.alpha - down.alpha, up.beta - down.beta])
            hessian[:, i] = change / 2e-5
        h = h - eta[:, None] * (hessian @ h + word - mean[:, None])
        x = x - eta * mean
    here = look(x)
    loss = here.loss + np.concatenate([here.alpha, here.beta]) @ h

    def sd(rows):
        rows = np.atleast_2d(rows)
        return np.sqrt((((rows - (rows @ p)[:, None]) ** 2) @ p).sum())

    s = list(task.targets)
    rest = np.delete(np.arange(d), s)
    deviation = {
        "gap": sd(h[s].mean(axis=0) - h[rest].mean(axis=0)),
        "beta_target": sd(h[d:][s].mean(axis=0)),
        "beta_background": sd(h[d + rest].mean(axis=0)),
        "alpha": sd(h[:d]),
        "beta": sd(h[d:]),
        "risk": sd(loss),
    }
    return ByWords(words, h, deviation)
