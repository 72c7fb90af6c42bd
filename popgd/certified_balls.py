"""The certified quantities as balls at the current precision, for building margins.

Call these inside `popgd.ball.adaptive` or `popgd.ball.precision`; each loses about
`GUARD` bits of the precision in force, cancellation in the caller's own formula comes on top.
"""

from __future__ import annotations

from .certified_gradient import BallGradient, gradient
from .certified_integral import risk
from .certified_output import BallMinimum, hessian, minimize_output
from .certified_problem import Problem, build
from .certified_quadrature import GUARD
from .certified_symmetric import (
    BallPhases,
    Moments,
    SymmetricMinimum,
    phase_one,
    phase_two,
    three_phase,
)
from .certified_symmetric import eigenvalues as symmetric_eigenvalues
from .certified_symmetric import gradient as symmetric_gradient
from .certified_symmetric import gradient_scale as symmetric_gradient_scale
from .certified_symmetric import minimum as symmetric_minimum
from .certified_symmetric import moments as symmetric_moments
from .certified_symmetric import propagate as symmetric_propagate
from .certified_symmetric import risk as symmetric_risk

__all__ = [
    "GUARD",
    "BallGradient",
    "BallMinimum",
    "BallPhases",
    "Moments",
    "Problem",
    "SymmetricMinimum",
    "build",
    "gradient",
    "hessian",
    "minimize_output",
    "phase_one",
    "phase_two",
    "risk",
    "symmetric_eigenvalues",
    "symmetric_gradient",
    "symmetric_gradient_scale",
    "symmetric_minimum",
    "symmetric_moments",
    "symmetric_propagate",
    "symmetric_risk",
    "three_phase",
]
