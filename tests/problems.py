"""Tasks small enough to enumerate; hard weight vectors, where naive formulas lose every digit."""

from __future__ import annotations

import numpy as np

from popgd import (
    And,
    FixedLength,
    Geometric,
    Occurrence,
    Or,
    Poisson,
    UniformLength,
    Words,
)

PI = [0.5, 0.3, 0.2]
THREE_SYMBOLS = [
    Occurrence(3, 1, Words(Geometric(0.6))),
    Or(3, [0, 1], Words(Geometric(0.6), PI)),
    And(3, [0, 1], Words(Geometric(0.6))),
    And(3, [0, 1, 2], Words(FixedLength(5), PI)),
    Occurrence(3, 2, Words(Poisson(1.3), PI)),
    Or(3, [1, 2], Words(UniformLength(6))),
]
"""Every language and length law, small enough to enumerate words."""

D = 50


def hard_problems(d=D):
    """Name -> (alpha, beta) for the target 0 of Occurrence(d)."""
    rng = np.random.default_rng(1)
    zero, aim = np.zeros(d), np.zeros(d)
    aim[0] = 2.0
    near = np.full(d, 0.01)
    near[0] = 1.9
    random = rng.normal(size=d)

    def raised(symbols, by):
        alpha = zero.copy()
        alpha[symbols] = by
        return alpha

    hierarchy = raised(slice(1, d // 5), 40.0)
    hierarchy[0] = 80.0
    wrong = [min(3, d - 1), d - 1]
    return {
        "uniform": (zero, random),
        "gap 40, beta = 2 e_s": (raised(0, 40.0), aim),
        "gap 40, (1.9, .01)": (raised(0, 40.0), near),
        "gap 40, random beta": (raised(0, 40.0), random),
        "gap -40": (raised(0, -40.0), random),
        "gap -40, beta = 2 e_s": (raised(0, -40.0), aim),
        "two wrong symbols at +40": (raised(wrong, 40.0), random),
        "two wrong symbols at +40, beta = 2 e_s": (raised(wrong, 40.0), aim),
        "hierarchy 80/40/0": (hierarchy, random),
        "hierarchy 80/40/0, beta = 2 e_s": (hierarchy, aim),
        "alpha ~ 5 N(0,1)": (5 * rng.normal(size=d), random),
        "alpha over 0..700": (rng.permutation(np.linspace(0, 700, d)), random),
    }
