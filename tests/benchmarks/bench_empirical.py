"""Speed and memory of the finite-sample kernel, side by side with PyTorch on the CPU.

    python tests/benchmarks/bench_empirical.py [part ...] [--json FILE]

Parts: kernel, seeds, sampling, linear, wide; all by default. PyTorch 2.13.0 is optional: without it
its columns are missing. Contenders take turns in bursts of calls, as a training run calls them, so
that other work on the machine hits all alike; a ratio is the median over rounds of the fastest
calls' ratio. Each runs at one thread and at all of them. The load average is printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

import numpy as np
from threadpoolctl import ThreadpoolController

import popgd

torch = None
# the worker processes of `seeds` import this file too, and have no use for it
if multiprocessing.parent_process() is None:
    with suppress(ImportError):
        import torch

N, D, STEPS = 12_500, 50, 1000
CORES = len(os.sched_getaffinity(0))
THREADS = sorted({1, CORES})
OPENBLAS = ThreadpoolController().select(internal_api="openblas")
GOALS = {
    "padded": (">=", 300), "elementwise": (">=", 6), "product": (">=", 2.5), "passes": ("<=", 2.5),
    "seeds": ("<=", 25), "sampling s": ("<=", 1.5), "sampling GB": ("<=", 1.0),
    "wide GB": ("<=", 1.0),
}  # fmt: skip


BURST = 15


def bursts(contenders, repeats, prepare=lambda name: None):
    """Seconds of each contender in each round: the fastest call of a burst, NaN without a turn.

    The machine's speed drifts within seconds, so contenders are compared within a round.
    """
    rounds = {name: np.full(repeats, np.nan) for name in contenders}
    slow = set()
    for i in range(repeats):
        for name, run in contenders.items():
            # slow contenders get fewer turns
            if name in slow and i >= 5:
                continue
            prepare(name)
            spent = []
            for _ in range(1 if name in slow else BURST):
                start = time.perf_counter()
                run()
                spent.append(time.perf_counter() - start)
            rounds[name][i] = min(spent)
            if min(spent) > 0.05:
                slow.add(name)
    return rounds


def fastest(contenders, repeats, prepare=lambda name: None):
    """Seconds, the minimum over all rounds."""
    return {name: np.nanmin(x) for name, x in bursts(contenders, repeats, prepare).items()}


def counted(k):
    return f"{k} thread{'s' if k > 1 else ''}"


def threads(name):
    """Give the contender as many threads as its name says; without one, BLAS has them all."""
    count = next((k for k in range(1, CORES + 1) if f"{k} thread" in name), CORES)
    OPENBLAS.limit(limits=count)
    if torch:
        torch.set_num_threads(count)


def judge(name, value):
    sign, goal = GOALS[name]
    met = value >= goal if sign == ">=" else value <= goal
    return f"goal {sign} {goal}: {'met' if met else 'MISSED'}"


def torch_peers(batch):
    """value and gradients by autograd, three ways; and a function that makes a step of one."""
    counts = torch.tensor(batch.counts.astype(float))
    y = torch.tensor(batch.labels.astype(float))
    longest = int(batch.lengths.max())
    tokens = np.zeros((len(batch), longest), dtype=np.int64)
    mask = np.arange(longest) < batch.lengths[:, None]
    word, symbol = np.nonzero(batch.counts)
    repeats = batch.counts[word, symbol]
    tokens[mask] = np.repeat(symbol, repeats)
    tokens, mask = torch.tensor(tokens), torch.tensor(mask)

    def product(alpha, beta):
        a = torch.exp(alpha - alpha.max())
        return counts @ (a * beta) / (counts @ a)

    def elementwise(alpha, beta):
        mass = counts * torch.exp(alpha - alpha.max())
        gamma = mass / mass.sum(dim=1, keepdim=True)
        return (gamma * beta).sum(dim=1)

    def padded(alpha, beta):
        logits = alpha[tokens].masked_fill(~mask, -torch.inf)
        return (torch.softmax(logits, dim=1) * beta[tokens]).sum(dim=1)

    def step(model, alpha, beta):
        def run():
            a = torch.tensor(alpha, requires_grad=True)
            b = torch.tensor(beta, requires_grad=True)
            loss = ((model(a, b) - 1 - y) ** 2).mean() / 2
            loss.backward()
            return float(loss.detach()), a.grad.numpy(), b.grad.numpy()

        return run

    return {"product": product, "elementwise": elementwise, "padded": padded}, step


def kernel(report):
    """value_and_gradient at N = 12,500, d = 50, float64, one weight vector."""
    batch = popgd.sample_words(popgd.Occurrence(D), N, rng=0)
    risk = popgd.EmpiricalRisk(batch)
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=(2, D)) * 0.1
    counts = batch.counts.astype(float)
    w, r = rng.random(D), rng.random(N)
    ours = lambda: risk.value_and_gradient(alpha, beta)  # noqa: E731
    peers = {"passes": lambda: (counts @ w, r @ counts)}
    if torch:
        models, step = torch_peers(batch)
        peers |= {name: step(model, alpha, beta) for name, model in models.items()}
        for name in models:
            for x, z in zip(peers[name](), ours()):
                np.testing.assert_allclose(x, z, rtol=0, atol=1e-12)
    report["kernel"] = {}
    for name, peer in peers.items():
        report[name] = ratio = _duel(name, peer, ours, report["kernel"])
        if name == "passes":
            report[name] = ratio = 1 / ratio
            print(f"  popgd / two passes      {ratio:8.2f}   {judge(name, ratio)}")
        else:
            print(f"  PyTorch {name:12s} / popgd {ratio:6.2f}   {judge(name, ratio)}")


def _duel(name, peer, ours, times):
    """The peer's time over ours, each at its best number of threads: the median over rounds.

    Every peer has rounds of its own: what one leaves behind in caches and memory is not the
    next one's matter.
    """
    contenders = {}
    for k in THREADS:
        contenders |= {f"{name}, {counted(k)}": peer, f"popgd, {counted(k)}": ours}
    rounds = bursts(contenders, 60, threads)
    for who, seconds in rounds.items():
        print(f"  {who:24s} {np.nanmin(seconds) * 1e3:9.3f} ms")
        times[who] = min(times.get(who, np.inf), np.nanmin(seconds))
    best = {
        who: np.fmin.reduce([rounds[f"{who}, {counted(k)}"] for k in THREADS])
        for who in (name, "popgd")
    }
    return np.nanmedian(best[name] / best["popgd"])


def _seeds(workers):
    begin, busy = time.perf_counter(), time.process_time()
    run = popgd.train_seeds(popgd.Occurrence(D), f"joint({STEPS}x)", N, 50, workers=workers)
    return time.perf_counter() - begin, time.process_time() - busy, run.risk[-1]


def seeds(report):
    """50 seeds with 12,500 words each, 1000 joint steps: popgd.train_seeds."""
    OPENBLAS.limit(limits=1)
    wall, busy, risks = _seeds(1)
    print(f"  workers=1            {wall:7.1f} s, of which on the processor {busy:.1f} s")
    report["seeds, one worker"], report["seeds, processor"] = wall, busy
    both, _, again = _seeds(2)
    same = np.array_equal(again, risks)
    print(f"  workers=2, in all    {both:7.1f} s   {judge('seeds', both)}; same bits: {same}")
    report["seeds"] = both
    if torch:
        models, step = torch_peers(popgd.sample_words(popgd.Occurrence(D), N, rng=0))
        rng = np.random.default_rng(0)
        for name, model in models.items():
            run = step(model, *rng.normal(size=(2, D)))
            runs = {counted(k): run for k in THREADS}
            seconds = min(fastest(runs, 10, threads).values()) * 50 * STEPS
            report[f"seeds, PyTorch {name}"] = seconds
            print(
                f"  PyTorch {name:12s}   {seconds:7.0f} s, extrapolated from one seed's best step"
            )


def _alone(code):
    """Seconds and peak memory (GB) of `code` in a process of its own."""
    script = (
        "import time, resource, numpy as np, popgd\n"
        "start = time.perf_counter()\n" + code + "\nprint(time.perf_counter() - start, "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, memory = map(float, out.stdout.split()[-2:])
    return seconds, memory


def sampling(report):
    """10^6 words at d = 50: 49 million symbols."""
    code = "popgd.sample_words(popgd.Occurrence(50), 10**6, rng=0)"
    runs = [_alone(code) for _ in range(3)]
    seconds, memory = min(r[0] for r in runs), max(r[1] for r in runs)
    print(f"  {seconds:.2f} s ({judge('sampling s', seconds)}), {memory:.2f} GB "
          f"({judge('sampling GB', memory)})")  # fmt: skip
    report["sampling s"], report["sampling GB"] = seconds, memory


def linear(report):
    """Cost per step against the size of the count matrix, over a factor of 100."""
    rng = np.random.default_rng(0)
    sizes, times = [], []
    # a busy machine stalls a many-threaded BLAS
    OPENBLAS.limit(limits=1)
    for n in (12_500, 40_000, 125_000, 400_000, 1_250_000):
        risk = popgd.EmpiricalRisk(popgd.sample_words(popgd.Occurrence(D), n, rng=0))
        at = rng.normal(size=(2, D)) * 0.1
        best = fastest({"": partial(risk.value_and_gradient, *at)}, 30)[""]
        sizes.append(n * D)
        times.append(best)
        print(f"  {n:9,d} x {D}: {best * 1e3:9.2f} ms, {best / (n * D) * 1e9:.2f} ns a count")
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"  exponent of the cost in the size: {slope:.3f}")
    report["exponent"] = slope


def wide(report):
    """d = 1000 with 20,000 words: sampling, one gradient, the exact minimum."""
    code = (
        "b = popgd.sample_words(popgd.Occurrence(1000), 20000, rng=0)\n"
        "r = popgd.EmpiricalRisk(b)\nx = np.zeros(1000)\nr.value_and_gradient(x, x)\n"
        "r.minimize_output(x)"
    )
    seconds, memory = _alone(code)
    print(f"  {seconds:.1f} s, {memory:.2f} GB ({judge('wide GB', memory)})")
    report["wide s"], report["wide GB"] = seconds, memory


PARTS = {f.__name__: f for f in (kernel, seeds, sampling, linear, wide)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--json", help="write the numbers here")
    arguments = parser.parse_args()
    report = {"cores": os.cpu_count(), "machine": platform.processor() or platform.machine()}
    report["torch"] = torch.__version__ if torch else None
    print(f"{report['cores']} cores, numpy {np.__version__}, torch {report['torch']}")
    for name in arguments.parts:
        print(f"{name}: {PARTS[name].__doc__} (load {os.getloadavg()[0]:.1f})")
        PARTS[name](report)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
