"""The symmetric problem: four scalars describe training from symmetric starts (THEORY 5).

When every background symbol carries the same attention weight and the same output weight,
population gradient descent keeps it so, and only the gap alpha_s - alpha_j and the two output
weights matter. Everything here broadcasts, at a cost that does not grow with d, up to d = 10^15.
"""

from __future__ import annotations

from .moment_table import MomentTable
from .symmetric_accuracy import AccuracyTable, accuracy
from .symmetric_moments import Moments, moments, moments_error_bound, uniform_moments
from .symmetric_phases import ThreePhase, phase1, phase2, phase3, steps_to_reach, three_phase
from .symmetric_quadratic import SymmetricMinimum
from .symmetric_state import Gradient, State, gradient, log_risk, minimize_output, risk

__all__ = [
    "AccuracyTable",
    "Gradient",
    "MomentTable",
    "Moments",
    "State",
    "SymmetricMinimum",
    "ThreePhase",
    "accuracy",
    "gradient",
    "log_risk",
    "minimize_output",
    "moments",
    "moments_error_bound",
    "phase1",
    "phase2",
    "phase3",
    "risk",
    "steps_to_reach",
    "three_phase",
    "uniform_moments",
]
