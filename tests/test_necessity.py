"""Necessity: one hypothesis dropped at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planted_claims import registered
from typer.testing import CliRunner

from proofs_check.__main__ import app
from proofs_check.necessity import necessity
from proofs_check.verdict import Verdict


def test_necessity_finds_the_smallest_violation():
    found = {d.hypothesis.text: d for d in necessity(registered("thm1.exp"))}
    smallest = found["d >= 9"].smallest
    assert smallest is not None
    assert smallest.point["d"] == 8
    assert smallest.verdict is Verdict.FAILS


def test_necessity_looks_on_the_other_side_of_zero_too():
    found = {d.hypothesis.text: d for d in necessity(registered("thm2.start"))}
    smallest = found["eta1 > 0"].smallest
    assert smallest is not None
    assert smallest.point["eta1"] == "0"


@pytest.mark.parametrize("id", ["thm2.accuracy", "prop1.reduction", "thm2.norm"])
def test_what_a_claim_raises_outside_its_hypotheses_is_no_counterexample(id):
    claim = registered(id)
    few = [p for p in claim.points("quick") if p["d"] <= 4][:3]
    found = list(necessity(replace(claim, grid=lambda level: few)))
    assert [d.hypothesis for d in found] == list(claim.hypotheses)


def test_necessity_says_when_nothing_was_found():
    result = CliRunner().invoke(app, ["necessity", "prop1.short"])
    assert result.exit_code == 0
    assert "without eps < 1: no violation found at" in result.stdout
