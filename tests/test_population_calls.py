"""The integral route refuses malformed calls in a sentence."""

import numpy as np
import pytest

from popgd import BadParameter, Occurrence, PopulationRisk, Tiers


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda r: r.value([0, np.nan, 0], [0, 0, 0]),
            "alpha[1] = nan: every weight must be finite",
        ),
        (lambda r: r.value([0, -np.inf, 0], [0, 0, 0]), "popgd.Tiers(tier, offset)"),
        (lambda r: r.value([0, 0, 0], [0, np.inf, 0]), "beta[1] = inf"),
        (lambda r: r.value([0, 0], [0, 0, 0]), "the last axis must be d = 3"),
        (lambda r: r.value(0.0, [0, 0, 0]), "has shape ()"),
        (lambda r: r.value(["a", "b", "c"], [0, 0, 0]), "must hold real numbers"),
        (lambda r: r.value([True, False, True], [0, 0, 0]), "must hold real numbers"),
        (lambda r: r.value([1j, 0, 0], [0, 0, 0]), "must hold real numbers"),
        (lambda r: r.value([[0, 0, 0], [0, 0]], [0, 0, 0]), "must be a rectangular array"),
        (lambda r: r.value(np.zeros((2, 3)), np.zeros((3, 3))), "batch axes do not broadcast"),
        (lambda r: r.value([0, 701, 0], [0, 0, 0]), "exceeds 700, beyond float64; take the limit"),
        (lambda r: r.value([0, 0, 0], [0, 0, 0], residual=[0, 0]), "residual"),
        (lambda r: r.value(Tiers([0, 1]), [0, 0, 0]), "last axis must be d"),
        (lambda r: r.error_bound([0, 0, 0], [0, np.nan, 0]), "beta[1] = nan"),
        (lambda r: r.value_and_gradient([0, 0, 0], None), "must hold real numbers"),
        (lambda r: r.minimize_output([0, np.inf, 0]), "alpha[1] = inf"),
        (lambda r: r.value([0, 0, 0], [0, 1e200, 0]), "give risks beyond float64; rescale beta"),
        (lambda r: r.mse([0, 0, 0, 0], [0, 0, 0]), "alpha"),
        (lambda r: r.split([0, 0, 0], [0, 0]), "beta"),
        (lambda r: PopulationRisk("occurrence"), "must be a task"),
        (lambda r: PopulationRisk(r.task, method="magic"), "choose one of 'integral', 'series'"),
        (lambda r: PopulationRisk(r.task, rtol=0), "must lie in [1e-13, 0.01]"),
        (lambda r: PopulationRisk(r.task, rtol=float("nan")), "is not a number"),
        (lambda r: Tiers([0.5, 1]), "tiers must be integers"),
        (lambda r: Tiers(3), "needs a last axis"),
        (lambda r: Tiers([0, 1], [0, np.nan]), "offset[1] = nan"),
        (lambda r: Tiers([0, 1], [[0, 0], [1, 1]]), "needs the shape (2,) of tier"),
    ],
)
def test_malformed_calls_are_refused_in_a_sentence(call, words):
    with pytest.raises(BadParameter) as caught:
        call(PopulationRisk(Occurrence(3)))
    assert words in str(caught.value)
