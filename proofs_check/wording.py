"""Points that a search found, in words: who is attended to before whom, and the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

from .point import Point

__all__ = ["attention", "heads", "outputs", "step", "target_and_outputs", "targets"]

SHORT = 4  # levels of equal size, each infinitely above the next, that are not spelled out

Level = tuple[Fraction, Fraction, int, str]  # tier, alpha, symbols besides named ones, names


def attention(point: Point) -> str:
    """The attention weights of a point with one head."""
    return _order(point["sizes"], point["tier"], point["alpha"])


def heads(point: Point) -> str:
    """The attention weights of every head."""
    count, n = int(point["H"]), len(point["sizes"])
    rows = [slice(h * n, (h + 1) * n) for h in range(count)]
    if count == 1:
        return attention(point)
    names = [f"block {i + 1}" for i in range(n)]
    blocks = ", ".join(f"{name} ({_symbols(m)})" for name, m in zip(names, point["sizes"]))
    each = [_order(point["sizes"], point["tier"][r], point["alpha"][r], names=names) for r in rows]
    return f"{blocks}; " + "; ".join(f"head {h}: {text}" for h, text in enumerate(each, 1))


def outputs(sizes: Sequence[int], beta: Sequence[Any]) -> str:
    """Outputs, the largest first, with how many symbols have them."""
    found: dict[Fraction, int] = {}
    for n, b in zip(sizes, beta, strict=True):
        found[Fraction(b)] = found.get(Fraction(b), 0) + int(n)
    if len(found) == 1:
        return f"all outputs {_number(beta[0])}"
    shown = ", ".join(f"{_number(b)} ({_symbols(n)})" for b, n in sorted(found.items())[::-1])
    return f"outputs {shown}"


def target_and_outputs(point: Point) -> str:
    """A point of `block_points.attention_only`: the target's weights come first."""
    counts = (1, *point["sizes"])
    order = _order(counts, point["tier"], point["alpha"], target=0)
    return f"{outputs(counts, point['beta'])}; attention: {order}"


def targets(point: Point) -> str:
    """A point of `block_points.every_target`, with the attention for the least output."""
    sizes, beta = point["sizes"], [Fraction(b) for b in point["beta"]]
    block, n = beta.index(min(beta)), len(sizes)
    row = slice(block * (n + 1), (block + 1) * (n + 1))
    rest = [int(m) - (b == block) for b, m in enumerate(sizes)]
    order = _order((*rest, 1), point["tier"][row], point["alpha"][row], target=n)
    return f"{outputs(sizes, point['beta'])}; attention for the least: {order}"


def step(point: Point) -> str:
    """A point of `block_points.attention_first`."""
    return f"{outputs(point['sizes'], point['beta'])}, eta = {_number(point['eta'])}"


def _order(
    sizes: Sequence[int], tier: Sequence[int], alpha: Sequence[Any], target: int | None = None,
    names: Sequence[str] = (),
) -> str:  # fmt: skip
    """Blocks from the most attended to the least, with the gaps between them."""
    labels = list(names) or ["the target" if i == target else "" for i in range(len(sizes))]
    levels = _levels(sizes, tier, alpha, labels)
    if len(levels) == 1:
        return "uniform"
    out, i = "", 0
    while i < len(levels):
        run = _run(levels, i)
        last = levels[i + run - 1]
        if run >= SHORT:
            noun = "symbols" if last[2] == 1 else f"blocks of {_symbols(last[2])}"
            out += f"{run} {noun}, each infinitely above the next"
            joint = ", the last"
        else:
            run, last, joint = 1, levels[i], ""
            out += last[3] or _symbols(last[2])
        i += run
        if i < len(levels):
            out += f"{joint} {_gap(last, levels[i])} above "
    return out


def _levels(
    sizes: Sequence[int], tier: Sequence[int], alpha: Sequence[Any], labels: Sequence[str]
) -> list[Level]:
    rows = [
        (Fraction(t), Fraction(a), int(n), label)
        for n, t, a, label in zip(sizes, tier, alpha, labels, strict=True)
        if n > 0
    ]
    rows.sort(key=lambda row: row[:2], reverse=True)
    out = []
    for (t, a), same in groupby(rows, key=lambda row: row[:2]):
        members = list(same)
        others = sum(n for _, _, n, label in members if not label)
        named = [label for *_, label in members if label]
        shown = [*named, _symbols(others)] if named and others else named
        out.append((t, a, others, " and ".join(shown)))
    return out


def _run(levels: list[Level], start: int) -> int:
    """How many levels from here on are alike and infinitely apart."""
    end = start + 1
    while (
        end < len(levels)
        and levels[end][2:] == levels[start][2:] == (levels[start][2], "")
        and levels[end][0] != levels[end - 1][0]
    ):
        end += 1
    return end - start


def _gap(high: Level, low: Level) -> str:
    return "infinitely" if high[0] != low[0] else _number(high[1] - low[1])


def _symbols(n: int) -> str:
    return "1 symbol" if n == 1 else f"{n} symbols"


def _number(x: Any) -> str:
    return format(float(Fraction(x)), ".4g")
