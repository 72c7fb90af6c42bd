"""What the searches found, one row a dimension: `python -m proofs_check.search_table [LEVEL]`.

For every statement about all weights: starts tried, evaluations spent, the five best values,
where the best one was found, and its value as an enclosure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from popgd.ball import Ball, enclose, hull, precision

from . import block_points, hunts
from .claims import prop2_search, prop3_search, prop4_search, thm1_search
from .grids import LEVELS
from .point import Point

__all__ = ["Row", "main", "rows"]

Row = dict[str, Any]


def rows(level: str) -> Iterator[Row]:
    """One row a search, in the order of the statements."""
    for d in prop2_search.DIMENSIONS[level]:
        hunt = hunts.attention_only(d, level)
        yield _row("prop2", {"d": d}, hunt, hunts.output_point, block_points.attention_only)
    for d in prop3_search.DIMENSIONS[level]:
        hunt = hunts.output_only(d, level)
        yield _row("prop3", {"d": d}, hunt, hunts.attention_point, block_points.output_only)
    for d, h in prop4_search.CASES[level]:
        hunt, known = hunts.lazy_heads(d, h, level), {"d": d, "H": h}
        yield _row("prop4", known, hunt, hunts.attention_point, block_points.lazy_heads)
    for d in thm1_search.DIMENSIONS[level]:
        hunt = hunts.attention_first(d, level)
        yield _row("thm1", {"d": d}, hunt, hunts.step_point, block_points.attention_first)


def _row(
    id: str,
    known: dict[str, int],
    hunt: hunts.Hunt,
    parameters: Callable[[hunts.Hunt], dict[str, Any]],
    value: Callable[[Point], Ball | tuple[Ball, Ball]],
) -> Row:
    point = Point(**known, **parameters(hunt))
    with precision(96):
        found = value(point)
        enclosed = enclose(hull(*found) if isinstance(found, tuple) else found, 10)
    return {
        "id": id,
        "point": point,
        "value": enclosed,
        "starts": hunt.starts,
        "evaluations": hunt.evaluations,
        "five best": [value for value, _, _ in hunt.five()],
        "start": hunt.best.point.name,
    }


def main() -> None:
    """Print the rows of a level, `default` if none is named."""
    level = sys.argv[1] if len(sys.argv) > 1 else "default"
    if level not in LEVELS:
        raise SystemExit(f"level = {level!r}: choose one of {', '.join(LEVELS)}.")
    for row in rows(level):
        best = ", ".join(f"{x:.8f}" for x in row["five best"])
        print(f"{row['id']}  {row['point']}")
        print(f"    {row['value']}  from {row['start']}; {row['starts']} starts, "
              f"{row['evaluations']} evaluations; five best {best}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
