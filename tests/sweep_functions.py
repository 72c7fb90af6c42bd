"""Functions that tests sweep; in a module of their own so that workers can import them."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

import popgd


def processes(workers=2):
    """A pool of fresh interpreters, with BLAS as users have it."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def plane(d, eta1, eta2):
    run = popgd.symmetric.three_phase(d, eta1, eta2, steps=1000)
    return {"risk": run.risks[2], "gap": run.gap, "away": run.gap < 0, "d_squared": d * d}


def draw(n, rng):
    return float(rng.normal(size=n).sum())


def random_start(seed, plan, rng):
    """The exact path from a random start."""
    alpha, beta = rng.normal(0, 0.1, (2, 6))
    run = popgd.train(popgd.PopulationRisk(popgd.Occurrence(6)), plan, alpha, beta)
    return {"risk": float(run.risk[-1]), "reason": run.stop_reason, "path": run.path}


def sgd(seed, rate, rng):
    """Mini-batch descent on drawn words."""
    batch = popgd.sample_words(popgd.Occurrence(5), 400, rng)
    steps = popgd.MiniBatches(batch, 32)
    run = popgd.train(steps, f"joint(20x, lr={rate})", rng=rng)
    return {"risk": float(run.risk[-1])}


def enclosed(d, gap):
    """A claim's margin: bounds as strings."""
    from popgd.ball import ball, enclose, precision
    from popgd.certified_symmetric import minimum, moments

    with precision(80):
        margin = enclose(ball(1) / d - minimum(moments(ball(gap), d)).value)
    return {"lower": margin.lower, "upper": margin.upper, "verdict": str(margin.sign())}


def fails_at_three(x):
    if x == 3:
        raise ValueError("three is too many")
    return {"x": x, "name": f"cell {x}", "half": x / 2}


def not_plain(x):
    return np.arange(3)


def slow(x, directory, rng):
    """Leaves a mark for every evaluation."""
    with open(os.path.join(directory, f"{x}.{os.getpid()}.{time.monotonic_ns()}"), "w"):
        pass
    time.sleep(0.02)
    return {"value": float(rng.normal()), "tiny": x * 1e-300 / 3, "label": f"cell {x}"}


def threads(x):
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own)
    from threadpoolctl import threadpool_info

    return max(part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas")


def settle():
    """A worker that dies before its nanny has seen it start is not replaced."""
    time.sleep(1.0)


def naps(x):
    time.sleep(0.2)
    return x


def kill_once(x, directory):
    """Kills its own worker the first time cell 7 is reached."""
    mark = os.path.join(directory, "killed")
    if x == 7 and not os.path.exists(mark):
        with open(mark, "w"):
            pass
        settle()
        os.kill(os.getpid(), 9)
    return x * x


def kills(x):
    """Cell 3 ends whatever process it runs in."""
    if x == 3:
        settle()
        os._exit(9)
    return x


def kill_last(x, directory):
    """Cell 0 ends its own worker once, after the others had time to finish."""
    mark = os.path.join(directory, "last")
    if x == 0 and not os.path.exists(mark):
        with open(mark, "w"):
            pass
        time.sleep(1)
        os.kill(os.getpid(), 9)
    return x


def claim(name, d, eps):
    """The verdict of one of the paper's statements at a point, its margin as strings."""
    from proofs_check.collect import by_id
    from proofs_check.judge import judge
    from proofs_check.point import Point

    more = {"thm2": {"eta1": "sqrt(d)", "C": 1}}
    found = judge(by_id()[name], Point(d=d, eps=eps, **more.get(name, {})))
    assert found.margin is not None
    return {"verdict": found.verdict.name, "lower": found.margin.lower, "upper": found.margin.upper}
