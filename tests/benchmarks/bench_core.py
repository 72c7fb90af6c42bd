"""Speed of the core as ratios measured side by side; prints one Markdown table.

Run with one BLAS thread: OPENBLAS_NUM_THREADS=1 python tests/benchmarks/bench_core.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from timing import exp_block, interleaved, load, table

from popgd import Occurrence, PopulationRisk, certified, symmetric
from popgd.symmetric import MomentTable

Row = tuple[str, float, str]


def general(d: int, batch: int | None, repeats: int, goal: str) -> Row:
    """value_and_gradient against exp of the same number of (node, symbol) pairs."""
    rng = np.random.default_rng(d)
    shape = (d,) if batch is None else (batch, d)
    alpha, beta = rng.normal(size=shape), rng.normal(size=shape)
    risk = PopulationRisk(Occurrence(d))
    first = (alpha, beta) if batch is None else (alpha[0], beta[0])
    nodes = sum(risk.route.nodes(risk._check(*first, None)[0]))
    times = interleaved(
        {"call": lambda: risk.value_and_gradient(alpha, beta), "exp": exp_block(nodes)}, repeats
    )
    unit = times["exp"] / (nodes * 256) * nodes * d * (batch or 1)
    what = f"value_and_gradient, d = {d:,}" + (f", batch of {batch}" if batch else "")
    return f"{what} ({nodes} nodes) / exp", times["call"] / unit, goal


def growth() -> list[Row]:
    """Time per symbol as d grows: flat means linear."""
    rows, base = [], 0.0
    for d in (10_000, 100_000, 1_000_000):
        rng = np.random.default_rng(0)
        alpha, beta = rng.normal(size=d), rng.normal(size=d)
        risk = PopulationRisk(Occurrence(d))
        nodes = sum(risk.route.nodes(risk._check(alpha, beta, None)[0]))
        seconds = interleaved({"call": lambda r=risk, a=alpha, b=beta: r.value(a, b)}, 1)["call"]
        per = seconds / nodes / d
        base = base or per
        rows.append((f"value per (node, symbol), d = {d:,} / d = 10,000", per / base, "about 1"))
    return rows


def five_quads(gap: float, d: int) -> list[float]:
    """The five moments by scipy.integrate.quad, one positive integrand each."""
    from scipy.integrate import quad

    p = 1 / (d - 1)
    q, pi, e = 1 - p, 1 / d, np.exp(-gap)

    def integrand(x: float, a: int, b: int) -> float:
        t = np.exp(x)
        y, w = t, t * e
        z, zw = np.exp(-y), np.exp(-w)
        rest = (d - 1) * pi
        low = p + q * (pi + rest * -np.expm1(-w))
        high = p + q * (pi * -np.expm1(-y) + rest * -np.expm1(-w))
        ys, yb = pi * y * z, rest * w * zw
        # Phi', Phi'', Phi''' with the target, as falling moments of the two counts
        f1, f2, f3 = p / high**2, 2 * p * q / high**3, 6 * p * q * q / high**4
        g2 = f2 - 2 * p * q / low**3
        g1 = f1 - p / low**2
        if (a, b) == (2, 0):
            return f2 * ys**2 + f1 * y * ys
        if (a, b) == (1, 1):
            return f2 * ys * yb
        if (a, b) == (0, 2):
            return g2 * yb**2 + g1 * w * yb
        if (a, b) == (2, 1):
            return (f3 * ys**2 + f2 * y * ys) * yb / 2
        return (f3 * yb**2 + f2 * w * yb) * ys / 2

    pairs = [(2, 0), (1, 1), (0, 2), (2, 1), (1, 2)]
    return [quad(integrand, -45, 6, args=ab, epsrel=1e-12, limit=200)[0] for ab in pairs]


def moments() -> list[Row]:
    """Symmetric moments at d = 50 against quad, per gap."""
    gaps = np.random.default_rng(0).uniform(-20, 40, 100_000)
    few = gaps[:20]
    tabled = MomentTable(50)
    times = interleaved(
        {
            "direct": lambda: symmetric.moments(gaps, 50),
            "build": lambda: MomentTable(50)(gaps),
            "warm": lambda: tabled(gaps),
            "quad": lambda: [five_quads(float(g), 50) for g in few],
        },
        3,
    )
    quad = times["quad"] / len(few) * len(gaps)
    return [
        ("five quad calls / direct moments, d = 50, 10^5 gaps", quad / times["direct"], ">= 300"),
        ("five quad calls / table with its build", quad / times["build"], ">= 500"),
        ("table of 10^5 gaps, warm, in ms", times["warm"] * 1e3, "<= 20"),
    ]


def enclosures() -> list[Row]:
    """Certified risk and gradient at d = 50, in ms."""
    rng = np.random.default_rng(1)
    alpha, beta = rng.normal(size=50), rng.normal(size=50)
    task = Occurrence(50)
    rows = []
    for digits, goal in ((15, 50), (30, 300), (50, 300)):
        times = interleaved(
            {
                "risk": lambda n=digits: certified.risk(task, alpha, beta, digits=n),
                "gradient": lambda n=digits: certified.gradient(task, alpha, beta, digits=n),
            },
            7,
        )
        rows.append((f"certified risk, {digits} digits, in ms", times["risk"] * 1e3, f"<= {goal}"))
        ratio = times["gradient"] / times["risk"]
        rows.append((f"certified gradient / risk, {digits} digits", ratio, "<= 3"))
    return rows


def main() -> None:
    before = load()
    rows = [
        general(50, None, 101, "<= 25"),
        general(50, 256, 7, "<= 12"),
        general(1000, None, 31, "<= 7"),
        general(100_000, None, 3, "<= 9"),
        *growth(),
        *moments(),
        *enclosures(),
    ]
    print(table("Core", rows))
    print(f"\nload before {before}, after {load()}; one BLAS thread; medians of interleaved runs")


if __name__ == "__main__":
    main()
