"""The README's claim table and its template for new claims."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from claim_files import check_claim, check_file
from report_helpers import FAST, reported

from popgd.ball import Enclosure
from proofs_check import collect, output, readme
from proofs_check.claim import Hypothesis
from proofs_check.judge import judge
from proofs_check.point import Point
from proofs_check.replay import SHIPPED, read, replay
from proofs_check.verdict import Verdict

ROOT = Path(__file__).parents[1]


def _entries():
    outcomes = [collect.run_here(collect.by_id()[id], "quick") for id in FAST]
    return json.loads(output.render(reported(*outcomes), "json"))["claims"]


def test_the_readme_section_lists_findings_and_every_claim():
    section = readme.table(_entries())
    assert section.startswith("4 claims on the default grid: 1 fails, 3 proved. What fails (")
    assert "Theorem 2 survives" in section
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    for id in FAST:
        assert any(row.startswith(f"| {id} |") for row in rows)


def test_what_is_stale_is_said(monkeypatch):
    entries = _entries()
    registered = {id: collect.by_id()[id] for id in FAST}
    monkeypatch.setattr(collect, "by_id", lambda: registered)
    text = readme.inserted(f"# T\n{readme.BEGIN}\nold\n{readme.END}\nrest\n", readme.table(entries))
    assert list(readme.stale(text, entries)) == []
    misspelt = text.replace("prop1.short", "prop1.shirt")
    assert any(line.startswith("+| prop1.short") for line in readme.stale(misspelt, entries))
    assert any("thm2.sum" in line for line in readme.stale(text, entries[:-1]))
    entries[0]["title"] += "!"
    assert any("changed" in line for line in readme.stale(text, entries))


@pytest.mark.parametrize(
    ("id", "verdict"), [("thm1.large", "holds to 10^-33"), ("thm2.norm", "holds")]
)
def test_a_verdict_that_does_not_stand_is_stale(monkeypatch, id, verdict):
    entries = [e for e in json.loads(SHIPPED.read_text())["claims"] if e["id"] == id]
    registered = {id: collect.by_id()[id]}
    monkeypatch.setattr(collect, "by_id", lambda: registered)
    text = readme.inserted(f"{readme.BEGIN}{readme.END}", readme.table(entries))
    assert list(readme.stale(text, entries)) == []
    entries[0]["verdict"] = verdict
    entries[0].pop("finding", None)
    assert any(
        "does not stand" in line or "recorded otherwise" in line
        for line in readme.stale(text, entries)
    )


def test_a_number_that_no_longer_comes_out_is_stale(monkeypatch):
    entries = _entries()
    registered = {id: collect.by_id()[id] for id in FAST}
    monkeypatch.setattr(collect, "by_id", lambda: registered)
    entry = next(e for e in entries if e["id"] == "thm1.large")
    entry["sharp"]["value"] = ["1", "2"]
    text = readme.inserted(f"{readme.BEGIN}{readme.END}", readme.table(entries))
    assert any("thm1.large: bound" in line for line in readme.stale(text, entries))


def test_the_committed_readme_has_its_markers_and_a_template_that_obeys_the_skeleton():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.inserted(text, "")
    section = text.split("## Adding a claim")[1].split("\n## ")[0]
    source = section.split("```python\n")[1].split("```")[0]
    module = _load("template_claim", source)
    check_file(module, source)
    for claim in module.CLAIMS:
        check_claim(claim)
        assert claim.id not in collect.by_id()
        outcome = collect.run_here(claim, "quick")
        assert outcome.verdict is Verdict.HOLDS, outcome.traceback
        assert outcome.sharp is not None
        assert Enclosure("0.9999", "1").contains(outcome.sharp.value)
        assert judge(claim, Point(d=2, eps="0.5")).verdict is Verdict.OUTSIDE
    assert all(isinstance(h, Hypothesis) for h in module.CLAIMS[0].hypotheses)


def _load(name: str, source: str):
    """The module the source would be among the claim files."""
    full = f"proofs_check.claims.{name}"
    spec = importlib.util.spec_from_loader(full, loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)
    finally:
        del sys.modules[full]
    return module


def test_the_shipped_report_is_of_the_default_grid_and_can_be_replayed():
    shipped = json.loads(SHIPPED.read_text(encoding="utf-8"))
    assert shipped["grid"] == "default"
    assert "unfinished" not in shipped
    entries = [entry for entry in read(SHIPPED) if entry["id"] in FAST]
    assert len(entries) == len(FAST)
    assert all(item.agrees for item in replay(entries))
