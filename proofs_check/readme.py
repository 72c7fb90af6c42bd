"""`python -m proofs_check.readme`: the claim table of README.md, from a run on the default grid.

The run is kept as verdicts.json beside this file; README.md shows it between two markers. With
`--check` nothing is run on a grid: the table must be what that file gives, the file must list the
claims as they are registered, and every worst point and constant it records is evaluated again
and must come out the same. A claim that fails somewhere else is for `proofs-check` to notice.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from popgd._files import write_atomically
from popgd.ball import Enclosure
from popgd.errors import BadFile

from . import collect, output
from .findings import known
from .judge import CAP
from .replay import SHIPPED, read, replay
from .report import Report
from .report_markdown import cell
from .report_text import brief, counted, headed
from .verdict import Verdict

__all__ = ["BEGIN", "END", "inserted", "main", "stale", "table"]

BEGIN, END = "<!-- claims:begin -->", "<!-- claims:end -->"
_COLUMNS = ("claim", "statement", "mark", "verdict", "sharp constant on the grid")


def table(entries: list[dict[str, Any]]) -> str:
    """The section between the markers, from the claims of a JSON report."""
    counts = Counter(entry["verdict"].split(" (")[0].split(" 10^")[0] for entry in entries)
    parts = counted(sorted(counts.items()))
    failing = Counter(entry["mark"] for entry in entries if "finding" in entry)
    marks = ", ".join(f"{n} {mark}" for mark, n in sorted(failing.items()))
    head = f"{len(entries)} claims on the default grid: {parts}. What fails ({marks}):"
    lines = [head, ""]
    for entry in entries:
        if "finding" in entry:
            lines.append(f"- **{entry['id']}** ({entry['mark']}): {cell(entry['title'])}.")
            lines.append(f"  {cell(entry['finding'])}")
    lines += ["", f"| {' | '.join(_COLUMNS)} |", "|" + " --- |" * len(_COLUMNS)]
    return "\n".join([*lines, *_rows(entries)]) + "\n"


def _rows(entries: list[dict[str, Any]]) -> Iterator[str]:
    last = ""
    for entry in sorted(entries, key=_place):
        claim = collect.by_id()[entry["id"]]
        if claim.statement != last:
            last = claim.statement
            name, title = headed(last)
            yield f"| **{name}** | {f'**{cell(title)}**' if title else ''} | | | |"
        yield f"| {' | '.join((entry['id'], cell(entry['title']), *_cells(entry)))} |"


def _place(entry: dict[str, Any]) -> tuple[Any, ...]:
    from .report import rank

    return rank(collect.by_id()[entry["id"]])


def _cells(entry: dict[str, Any]) -> tuple[str, str, str]:
    verdict, sharp = entry["verdict"], entry["sharp"]
    shown = f"**{verdict}**" if verdict == "fails" else cell(verdict)
    value = "" if sharp is None else cell(f"{sharp['name']}: {brief(Enclosure(*sharp['value']))}")
    return entry["mark"], shown, value


def inserted(text: str, section: str) -> str:
    """The README's text with the section between its markers.

    Raises
    ------
    BadFile
        When the markers are missing or in the wrong order.
    """
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise BadFile(f"the README has no {BEGIN} ... {END}; put the two lines back")
    return f"{before}{BEGIN}\n{section}{END}{after}"


def stale(text: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    """What is out of date, one line or one diff each."""
    recorded = {entry["id"]: entry for entry in entries}
    for id, claim in collect.by_id().items():
        entry = recorded.get(id)
        now = [claim.title, claim.mark.value, claim.kind.value]
        if entry is None or [entry["title"], entry["mark"], entry["kind"]] != now:
            yield f"{id}: the claim changed since the recorded run, or is new"
    for id in known().keys() & collect.by_id().keys():
        entry, finding = recorded.get(id, {}), known()[id].consequence
        if (entry.get("verdict"), entry.get("finding")) != (Verdict.FAILS.value, finding):
            yield f"{id}: a known finding is recorded otherwise"
    for item in replay(entries):
        if not item.verdict:
            yield f"{item.id}: the recorded verdict does not stand at {item.point}"
        elif not item.agrees:
            yield f"{item.id}: {item.what} at {item.point} was {item.recorded}, is now {item.now}"
    wanted = inserted(text, table(entries))
    yield from difflib.unified_diff(
        text.splitlines(), wanted.splitlines(), "README.md", "generated", lineterm="", n=0
    )


def main(
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when out of date.")] = False,
    readme: Annotated[Path, typer.Option(help="The file with the markers.")] = Path("README.md"),
    report: Annotated[
        Path | None, typer.Option(help="A JSON report of the default grid, instead of a run.")
    ] = None,
) -> None:
    """Write the README's claim table, or check it."""
    try:
        text = readme.read_text(encoding="utf-8")
        inserted(text, "")
        if check:
            found = list(stale(text, read(SHIPPED)))
            print("\n".join([*found, "run python -m proofs_check.readme"]) if found else "fresh")
            raise typer.Exit(bool(found))
        if report is not None:
            read(report)
        data = report.read_bytes() if report is not None else _run()
        _write(SHIPPED, data)
        _write(readme, inserted(text, table(read(SHIPPED))).encode())
    except (OSError, BadFile) as error:
        raise typer.BadParameter(str(error)) from None


def _run() -> bytes:
    claims = collect.find()
    outcomes = []
    for outcome in collect.run(claims, "default"):
        outcomes.append(outcome)
        print(f"{len(outcomes)}/{len(claims)} {outcome.claim.id} {outcome.text}", file=sys.stderr)
    found = Report.of(outcomes, [claim.id for claim in claims], "default", CAP)
    return output.render(found, "json").encode()


def _write(path: Path, data: bytes) -> None:
    write_atomically(path, lambda file: file.write(data) and None)


if __name__ == "__main__":
    typer.run(main)
