"""The `proofs-check` command: exit codes, findings, JSON, replay, wrong calls, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest
from planted_claims import FAST, planted, registered
from typer.testing import CliRunner

from popgd import __version__
from popgd.ball import Enclosure
from proofs_check import collect, findings, report_json
from proofs_check.__main__ import app
from proofs_check.claim import Sides
from proofs_check.judge import judge
from proofs_check.outcome import COUNTED
from proofs_check.replay import read, replay
from proofs_check.report import Report, exit_code, versions
from proofs_check.verdict import Verdict

INTERRUPT = 3.0  # seconds after the workers have been started, before the end of a quick run


def _children(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def _wait_for_workers(pid: int) -> None:
    """Until a process has started two others and the tracker of what they share."""
    end = time.monotonic() + 60
    while len(_children(pid).read_text().split()) < 3 and time.monotonic() < end:
        time.sleep(0.1)


# Exit codes and findings


def _outcome(id: str, verdict: Verdict):
    sides = Sides(2, 1) if verdict is Verdict.FAILS else Sides(1, 2)
    return collect.run_here(planted(id=id, sides=lambda p: sides))


def test_exit_codes():
    good, bad = _outcome("planted", Verdict.HOLDS), _outcome("planted", Verdict.FAILS)
    known = _outcome("thm2.norm", Verdict.FAILS)
    vanished = _outcome("thm2.norm", Verdict.HOLDS)
    assert exit_code([good]) == 0
    assert exit_code([good, bad]) == 1
    assert exit_code([good, known]) == 0
    assert exit_code([good, known], strict=True) == 1
    assert exit_code([vanished]) == 1


def test_every_finding_is_a_claim_that_fails_at_its_counterexample():
    for finding in findings.known().values():
        found = judge(registered(finding.id), finding.counterexample)
        assert found.verdict is Verdict.FAILS, finding.id
        assert "surviv" in finding.consequence


def test_known_findings_come_first():
    outcomes = [_outcome("thm2.sum", Verdict.HOLDS), _outcome("thm2.norm", Verdict.FAILS)]
    report = Report.of(outcomes, ["thm2.sum", "thm2.norm"], "quick", 768)
    assert [heading for heading, _ in report.groups()] == ["known findings", "thm2"]


# JSON


def test_json_schema():
    outcomes = [collect.run_here(registered(id), "quick") for id in (FAST, "thm1.large")]
    outcomes.append(collect.run_here(planted(id="raises", sides=lambda p: 1 / 0)))
    order = [o.claim.id for o in outcomes]
    data = json.loads(report_json.render(Report.of(outcomes, order, "quick", 768)))
    assert list(data) == ["claims", "grid", "precision", "versions"]
    keys = ["id", "title", "mark", "kind", "verdict", "counts", "coverage", "worst", "sharp"]
    for entry in data["claims"]:
        assert list(entry)[: len(keys)] == keys
        assert list(entry["counts"]) == [verdict.key for verdict in COUNTED]
    by_id = {entry["id"]: entry for entry in data["claims"]}
    worst, sharp = by_id["thm1.large"]["worst"], by_id["thm1.large"]["sharp"]
    assert worst["point"] == {"d": 9}
    assert Enclosure(*worst["margin"]).contains(0)
    assert list(sharp) == ["name", "value", "point"]
    assert Enclosure(*sharp["value"]).contains(Fraction(1, 2080))
    assert by_id["raises"]["worst"] is None
    assert "ZeroDivisionError" in by_id["raises"]["traceback"]


# The command


def _invoke(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_command_json_is_deterministic_and_replays(tmp_path):
    arguments = (
        *("--json", "--quick", "--only", FAST),
        *("--only", "thm2.start", "--only", "thm1.large"),
    )
    first, second = _invoke(*arguments), _invoke(*arguments)
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    file = tmp_path / "report.json"
    file.write_text(first.stdout)
    result = _invoke("replay", str(file))
    assert result.exit_code == 0
    assert result.stdout.count("agrees") == 4
    data = json.loads(first.stdout)
    data["claims"][1]["worst"]["margin"] = ["7", "8"]
    file.write_text(json.dumps(data))
    assert _invoke("replay", str(file)).exit_code == 1
    assert [item.agrees for item in replay(read(file))].count(False) == 1


def test_command_shows_findings_and_strict_counts_them():
    result = _invoke("--quick", "--only", "thm2.start", "--strict")
    assert result.exit_code == 1
    assert "Known findings" in result.stdout
    assert "fails" in result.stdout


def test_command_undecided_exits_3():
    result = _invoke("--quick", "--only", "shift.alpha", "--precision", "64")
    assert result.exit_code == 3
    assert "raise --precision" in result.stdout.replace("\n", " ") or "undecided" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "nonsense"), "--only = 'nonsense': no claim or statement is called so"),
        (("--only", "thm2.nrm"), "nearest: thm2.norm"),
        (("--quick", "--full"), "choose one"),
        (("--json", "--html"), "--json and --html: choose one format"),
        (("--unknown",), "No such option"),
        (("nonsense",), "No such command"),
        (("--precision", "1"), "greater than or equal to 64"),
        (("--budget", "nan"), "--budget = nan: must be a positive number of seconds"),
        (("--budget", "0"), "--budget = 0.0: must be a positive number of seconds"),
        (("--output", "report"), "end it in .json, .md, .tex, .html"),
        (("--output", "no/such/directory/report.json"), "choose a file in a directory"),
        (("--only", FAST, "replay"), "--only: stands before `replay`"),
        (("replay", "no-such-file"), "no-such-file: cannot be read (no such file or directory)"),
        (("necessity", "nonsense"), "id = 'nonsense': no claim is called so"),
        (("necessity",), "Missing argument"),
        (("trials", "--trials", "0"), "greater than or equal to 2"),
        (("trials", "--eps", "2"), "--eps = 2.0: must lie in (0, 1)"),
        (("trials", "--budget", "-1"), "--budget = -1.0: must be a positive number"),
    ],
)
def test_a_wrong_call_is_answered_in_one_sentence(arguments, said):
    result = _invoke(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()[-1]) < 250
    assert result.stderr.count("rror: ") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON report"),
        ("not JSON", "is no JSON report"),
        ("[]", "is no JSON report"),
        ("{}", "is no JSON report"),
        ('{"claims": []}', "records no claim"),
        ('{"claims": [{"id": "prop1"}]}', "is no JSON report"),
        ('{"claims": [{"id": "other", "worst": null}]}', "no claim is called 'other'"),
        (
            '{"claims": [{"id": "prop1", "worst": {"point": {"d": 3}, "margin": ["0", "1"]}}]}',
            "prop1: what is recorded cannot be evaluated",
        ),
    ],
)
def test_replay_refuses_what_is_no_report(tmp_path, text, said):
    file = tmp_path / "x.json"
    file.write_text(text)
    result = _invoke("replay", str(file))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "proofs-check --json --output" in result.stderr


@pytest.mark.skipif(not _children(os.getpid()).exists(), reason="needs Linux's list of children")
def test_ctrl_c_in_a_real_run_prints_the_verdicts_so_far():
    command = [sys.executable, "-m", "proofs_check", "--quick", "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, start_new_session=True) as run:
        _wait_for_workers(run.pid)
        time.sleep(INTERRUPT)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: the workers get it too
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    data = json.loads(out)
    assert data["interrupted"] is True
    assert len(data["claims"]) + len(data["unfinished"]) == len(collect.by_id())
    assert err == b""


def test_ctrl_c_prints_the_verdicts_so_far(monkeypatch):
    real = collect.run

    def interrupted(*arguments):
        outcomes = real(*arguments)
        yield next(outcomes)
        os.kill(os.getpid(), signal.SIGINT)
        yield from outcomes

    monkeypatch.setattr(collect, "run", interrupted)
    result = _invoke("--json", "--quick", "--only", FAST, "--only", "thm2.start")
    assert result.exit_code == 130
    data = json.loads(result.stdout)
    assert data["interrupted"] is True
    assert 1 <= len(data["claims"]) <= 2


def test_a_worker_that_dies_is_an_error_and_the_rest_go_on():
    from concurrent.futures import Future

    broken, fine = Future(), Future()
    broken.set_exception(RuntimeError("worker died"))
    fine.set_result(collect.Share())
    assert "worker died" in collect._result(broken).traceback
    assert collect._result(fine).traceback == ""


def test_version_lists_what_verdicts_rest_on():
    told = _invoke("--version").stdout.splitlines()
    assert told[0] == f"popgd {__version__}"
    assert {line.split()[0] for line in told} == set(versions())
