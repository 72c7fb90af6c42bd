"""Make symmetric.json: values for popgd.symmetric by routes that share no formula with it.

Moments: given the target's count c, the other count is negative binomial; the integral over
log t is done by composite Gauss-Legendre in mpmath, the sum over c term by term. Minimum and
trajectories: direct sums over (c, b), then textbook normal equations and step-by-step gradient
descent at 700 digits, where cancellation does no harm.

Run: python tests/reference/make_symmetric.py   (about five minutes)
"""

from __future__ import annotations

import json
from pathlib import Path

from mpmath import ceil, exp, expm1, gamma, log, mp, mpf, nstr
from mpmath.calculus.quadrature import GaussLegendre

KEYS = ("m20", "m11", "m02", "m21", "m12")
POWERS = ((2, 0), (1, 1), (0, 2), (2, 1), (1, 2))
COUNTS = 100  # P(C_s > 100) < 1e-30
DIGITS = 25


def legendre() -> list:
    """Nodes and weights on [0, 1], enough points for 1e-30 on unit intervals."""
    rule = GaussLegendre(mp).calc_nodes(4, mp.prec)
    return [((1 + x) / 2, w / 2) for x, w in rule]


def sums_over_counts(zs, z, e, t, r, rho):
    """Sums over c of P(c) z_s^c times c^2 E[z^b], c E[bz^b] t, E[b^2 z^b] t^2, c^2 ..., c ...

    b is negative binomial with c + 1 successes of probability rho, and e = 1 - z.
    """
    bottom = rho + (1 - rho) * e
    ratio, lift = rho / bottom, (1 - rho) * z * t / bottom
    weight, step = (1 - r) / 2 * zs * ratio**2, r * zs * ratio
    totals = [mpf(0)] * 5
    for c in range(1, COUNTS + 1):
        one = (c + 1) * lift * weight
        two = one * ((c + 2) * lift + t)
        totals[0] += c * c * weight
        totals[1] += c * one
        totals[2] += two
        totals[3] += c * c * one
        totals[4] += c * two
        weight *= step
    return totals


def laplace_moments(gap, d):
    """Plain moments; a, b powers carried as scaled by e^-|gap| outside the integral."""
    small = exp(-abs(gap))
    scale_s, scale_b = (1, small) if gap >= 0 else (small, 1)
    r, rho = mpf(d - 2) / (2 * (d - 1)), mpf(2) / d
    first = -int(log(d)) - 34
    totals = [mpf(0)] * 5
    rule = legendre()
    # words of s alone reach further right at a negative gap
    for start in range(first, 5 + max(0, int(ceil(-gap)))):
        for node, weight in rule:
            t = exp(start + node)
            ys, yb = scale_s * t, scale_b * t
            z, e = exp(-yb), -expm1(-yb)
            # t^b stands in for y_b^b: the rest is put back outside
            parts = sums_over_counts(exp(-ys), z, e, t, r, rho)
            for i, (a, _) in enumerate(POWERS):
                totals[i] += weight * t**a * parts[i]
    out = []
    for (a, b), total in zip(POWERS, totals):
        out.append(total / gamma(a + b) * mpf(scale_s) ** a * mpf(scale_b) ** b)
    return out


def pairs(d):
    """(c, b, probability) for the words that contain s, cut where the mass is below 1e-30."""
    r, rho = mpf(d - 2) / (2 * (d - 1)), mpf(2) / d
    mass = (1 - r) / 2
    for c in range(1, COUNTS + 1):
        pmf, b = mass * rho ** (c + 1), 0
        while b < 20 or pmf > mpf(10) ** -32:
            yield c, b, pmf
            b += 1
            pmf *= (1 - rho) * (b + c) / b
        mass *= r


def direct_moments(gap, d):
    g = exp(-mpf(gap))
    totals = [mpf(0)] * 5
    for c, b, weight in pairs(d):
        s = c / (c + g * b)
        rest = g * b / (c + g * b)
        for i, (m, n) in enumerate(POWERS):
            totals[i] += weight * s**m * rest**n
    return totals


def minimum(gap, d):
    """Normal equations with the raw loss; no completed squares, no residual coordinates."""
    m20, m11, m02, _, _ = direct_moments(gap, d)
    h = (m20, m11, m02 + mpf(1) / 2)
    right = (2 * (m20 + m11), 2 * (m11 + m02))
    det = h[0] * h[2] - h[1] ** 2
    beta_s = (h[2] * right[0] - h[1] * right[1]) / det
    beta_j = (h[0] * right[1] - h[1] * right[0]) / det
    constant = 2 * (m20 + 2 * m11 + m02)
    value = constant - (beta_s * right[0] + beta_j * right[1]) / 2
    return {"value": value, "beta_background": beta_j, "residual_target": beta_s - 2}


def trajectory(d, eta1, eta2, eta3, marks):
    """Step-by-step gradient descent from zero."""

    def slope(m, bs, bj):
        ds = (bs - 2) * m[0] + (bj - 2) * m[1]
        dj = ((bs - 2) * m[1] + (bj - 2) * m[2] + bj / 2) / (d - 1)
        return ds, dj

    def loss(m, bs, bj):
        vs, vj = bs - 2, bj - 2
        return (vs**2 * m[0] + 2 * vs * vj * m[1] + vj**2 * m[2]) / 2 + bj**2 / 4

    m = direct_moments(0, d)
    ds, dj = slope(m, mpf(0), mpf(0))
    bs, bj = -eta1 * ds, -eta1 * dj
    risks = [loss(m, bs, bj)]
    push = (bs - bj) * ((bs - 2) * m[3] + (bj - 2) * m[4])
    gap = -mpf(eta2) * d / (d - 1) * push
    m = direct_moments(gap, d)
    risks.append(loss(m, bs, bj))
    found = {}
    for step in range(max(marks) + 1):
        if step in marks:
            found[str(step)] = nstr(loss(m, bs, bj), DIGITS)
        ds, dj = slope(m, bs, bj)
        bs, bj = bs - eta3 * ds, bj - eta3 * dj
    return {
        "gap": nstr(gap, DIGITS), "risks": [nstr(x, DIGITS) for x in risks], "after": found
    }  # fmt: skip


def main() -> None:
    out: dict = {"moments": [], "minimum": [], "trajectory": []}
    mp.dps = 45
    cases = [(g, d) for d in (3, 4, 50, 10**6, 10**12) for g in (-40, -3, 0, 2.5, 40)]
    cases += [(g, 50) for g in (7, 100, 300, 700)] + [(20, 10**6), (-300, 50), (29, 10**12)]
    for gap, d in cases:
        values = laplace_moments(mpf(gap), d)
        out["moments"].append(
            {"gap": gap, "d": d, **{k: nstr(v, DIGITS) for k, v in zip(KEYS, values)}}
        )
        print("moments", gap, d, flush=True)
    for gap in (-3, 0, 2.5):
        values = direct_moments(gap, 3)
        entry = {k: nstr(v, DIGITS) for k, v in zip(KEYS, values)}
        out["moments"].append({"gap": gap, "d": 3, "route": "direct", **entry})
    mp.dps = 700
    for gap, d in [(0, 3), (5, 3), (40, 3), (100, 3), (300, 3), (0, 6), (100, 6), (-7, 6)]:
        found = minimum(gap, d)
        out["minimum"].append(
            {"gap": gap, "d": d, **{k: nstr(v, DIGITS) for k, v in found.items()}}
        )
        print("minimum", gap, d, flush=True)
    runs = [
        (3, 1, 5, 1, (0, 1, 2, 50, 400)),
        (3, 1, 1000, 1, (0, 1, 50, 400, 3000)),
        (4, 0.5, 64, 3.5, (0, 1, 2, 7, 100)),
        (6, 1, 3000, 1, (0, 1, 3000)),
        (6, 11.75, 10, 1, (0, 10)),
    ]
    for d, eta1, eta2, eta3, marks in runs:
        found = trajectory(d, mpf(eta1), mpf(eta2), mpf(eta3), marks)
        out["trajectory"].append({"d": d, "eta1": eta1, "eta2": eta2, "eta3": eta3, **found})
        print("trajectory", d, flush=True)
    path = Path(__file__).with_name("symmetric.json")
    path.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
