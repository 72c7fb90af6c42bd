"""Speed of phase diagrams: seconds, memory, and the ratio to a per-point function on scipy's quad.

Run with one BLAS thread: OPENBLAS_NUM_THREADS=1 python tests/benchmarks/bench_phase_diagram.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from bench_core import five_quads
from timing import load, table

from popgd import phase_diagram
from popgd.diagram_tiles import table as moment_table

SIDE, SAMPLE, REPEATS, STEPS = 1000, 40, 5, 1000


def by_quad(d: int, eta1: float, eta2: float, steps: int) -> float:
    """Risk after three phases, from the five moments at gap 0 and at the gap."""
    m20, m11, m02, m21, m12 = five_quads(0.0, d)
    beta_s, beta_j = 2 * eta1 / d, eta1 * (d - 2) / (d * (d - 1))
    slope = (beta_s - beta_j) * ((beta_s - 2) * m21 + (beta_j - 2) * m12)
    m20, m11, m02, _, _ = five_quads(-eta2 * d / (d - 1) * slope, d)
    hessian = np.array([[m20, m11], [m11, m02 + 0.5]])
    linear = 2 * np.array([m20 + m11, m11 + m02])
    scale = np.array([1.0, 1 / (d - 1)])
    best = np.linalg.solve(hessian, linear)
    power = np.linalg.matrix_power(np.eye(2) - scale[:, None] * hessian, steps)
    v = best + power @ (np.array([beta_s, beta_j]) - best)
    residual = v - 2
    positive = np.array([[m20, m11], [m11, m02]])
    return float(residual @ positive @ residual / 2 + v[1] ** 2 / 4)


def rates(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.geomspace(1e-4, 10, SIDE) * d, np.geomspace(0.1, 1e6, SIDE) * d


def whole(d: int, accuracy: bool = False) -> tuple[float, float]:
    """Wall and CPU seconds of a million pixels, the moment table built anew."""
    from popgd.diagram_accuracy import _cdf

    moment_table.cache_clear()
    _cdf.cache_clear()
    start, cpu = time.perf_counter(), time.process_time()
    phase_diagram(d, *rates(d), steps=STEPS, accuracy=accuracy)
    return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    whole(50)
    rows = []
    for d in (50, 10**6):
        wall, cpu = np.median([whole(d) for _ in range(REPEATS)], axis=0)
        rows.append((f"10^6 pixels, d = {d:,}, wall s", wall, "<= 0.8 on 2 quiet cores"))
        rows.append((f"10^6 pixels, d = {d:,}, CPU s", cpu, "<= 1.6"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append(("peak memory of the process, MB", peak, "<= 300"))
    for d in (50, 1000):
        plain = np.median([whole(d) for _ in range(REPEATS)], axis=0)
        more = np.median([whole(d, True) for _ in range(REPEATS)], axis=0)
        rows.append((f"accuracies after phases 2, 3, d = {d}, CPU s", (more - plain)[1], "<= 1.0"))
    eta1, eta2 = rates(50)
    rng = np.random.default_rng(0)
    pairs = list(zip(rng.choice(eta1[eta1 < 50], SAMPLE), rng.choice(eta2[eta2 < 1e5], SAMPLE)))
    start = time.thread_time()
    slow = np.array([by_quad(50, a, b, STEPS) for a, b in pairs])
    quad = (time.thread_time() - start) / SAMPLE
    fast = np.array([phase_diagram(50, a, b, steps=STEPS).risk_3.item() for a, b in pairs])
    pixel = np.median([whole(50)[1] for _ in range(REPEATS)]) / SIDE**2
    rows.append(("a pixel by scipy quad / a pixel here (CPU)", quad / pixel, ">= 1000"))
    # the plain formula of the slow route loses its digits in tiny risks
    seen = fast > 1e-6
    gap = np.max(np.abs(slow / fast - 1)[seen])
    rows.append((f"largest relative difference, {seen.sum()} risks above 1e-6", gap, "<= 1e-6"))
    print(table("Phase diagrams", rows))
    print(f"\nload {load()}")


if __name__ == "__main__":
    main()
