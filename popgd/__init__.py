"""Exact population risk, gradients and training dynamics of a shallow attention model.

Start with `PopulationRisk(Occurrence(d=50))`; `popgd.symmetric` is the four-scalar reduction,
`popgd.certified` gives enclosures, `train` runs a plan on any objective. THEORY.md, shipped with
the package, derives every formula that docstrings cite.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Names load their modules on first use, so that `import popgd` costs little more than numpy.
_HOMES = {
    "Agreement": "crossvalidate",
    "And": "languages",
    "BadFile": "errors",
    "BadParameter": "errors",
    "CrossValidation": "crossvalidate",
    "Diverged": "errors",
    "EmpiricalRisk": "empirical",
    "Enclosure": "enclosure",
    "FixedLength": "words",
    "FlatObjective": "flat",
    "Geometric": "words",
    "MiniBatches": "batches",
    "MultiHeadRisk": "multihead",
    "NotAvailable": "errors",
    "Occurrence": "languages",
    "Online": "batches",
    "Or": "languages",
    "Phase": "plans",
    "Plan": "plans",
    "Poisson": "words",
    "PopgdError": "errors",
    "PopulationRisk": "population",
    "PrecisionExhausted": "errors",
    "Tiers": "tiers",
    "TrainingValidation": "crossvalidate_training",
    "Trajectory": "trajectory",
    "UniformLength": "words",
    "WordBatch": "wordbatch",
    "Words": "words",
    "attention_gap": "gaps",
    "balanced_p": "languages",
    "boundary_curves": "boundaries",
    "cross_validate": "crossvalidate",
    "cross_validate_training": "crossvalidate_training",
    "curve_rates": "boundaries",
    "gradient_flow": "flow",
    "output_gap": "gaps",
    "paper_table": "plan_table",
    "phase_diagram": "diagram",
    "random_start": "starts",
    "sample_words": "sampling",
    "save_netcdf": "netcdf",
    "seed_streams": "batches",
    "sweep": "sweeps",
    "theorem_line": "boundaries",
    "train": "training",
    "train_seeds": "seed_runs",
    "turning_point": "boundaries",
}
_MODULES = ("certified", "closed_forms", "plots", "symmetric")

__all__ = sorted([*_HOMES, *_MODULES, "__version__"])  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
