"""The checker: verdicts by enclosures only, planted falsehoods rejected, reports and exit codes."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from popgd.ball import Enclosure, ball, precision
from proofs_check import collect, findings, report_json
from proofs_check.__main__ import app
from proofs_check.claim import Claim, Hypothesis, ProofFailed, Sharp, Sides
from proofs_check.judge import judge, within
from proofs_check.necessity import necessity
from proofs_check.outcome import COUNTED
from proofs_check.point import Point
from proofs_check.replay import read, replay
from proofs_check.report import Report, exit_code
from proofs_check.symbolic import never_negative, positive
from proofs_check.verdict import Kind, Mark, Verdict

FAST = "prop1.short"  # exact rationals and a short proof


def planted(kind=Kind.UPPER_BOUND, sides=None, points=None, **rest) -> Claim:
    """A claim made for a test."""
    return Claim(
        id=rest.pop("id", "planted"),
        title="a planted claim",
        mark=Mark.OURS,
        kind=kind,
        source="test",
        sides=sides or (lambda point: Sides(1, 2)),
        grid=lambda level: points if points is not None else [Point(d=3)],
        **rest,
    )


def registered(id: str) -> Claim:
    return collect.by_id()[id]


def altered(id: str, change, **rest) -> Claim:
    """A registered claim, without its proof, whose two sides are changed."""
    claim = registered(id)
    return replace(claim, sides=lambda p: change(claim.sides(p)), proof=None, sharp=None, **rest)


# Verdict


def test_a_verdict_has_no_truth_value():
    for verdict in Verdict:
        with pytest.raises(TypeError, match="no truth value"):
            bool(verdict)


# Points


def test_points_are_exact_and_survive_json():
    point = Point(d=10, eta1="sqrt(d)/2", eps=Fraction(1, 3), beta=("1/7", "2"))
    again = Point(**json.loads(json.dumps(point.to_json())))
    assert again == point
    assert hash(again) == hash(point)
    assert point.exact("eps").fraction == Fraction(1, 3)
    assert (point.ball("eta1") * 2) ** 2 - ball("9.9999999") > 0


def test_hypotheses_know_that_sqrt_d_is_at_most_sqrt_d():
    at_most = Hypothesis("eta1 <= sqrt(d)")
    assert all(at_most(Point(d=d, eta1="sqrt(d)")) is True for d in range(2, 200))
    with precision(96):  # the double nearest to sqrt(10) exceeds it
        assert at_most(Point(d=10, eta1="3.1622776601683795")) is False
    assert Hypothesis("eta1 < sqrt(d)")(Point(d=10, eta1="sqrt(d)")) is False


# One point


@pytest.mark.parametrize(
    ("kind", "left", "right", "strict", "verdict"),
    [
        (Kind.UPPER_BOUND, 1, 2, False, Verdict.HOLDS),
        (Kind.UPPER_BOUND, 2, 1, False, Verdict.FAILS),
        (Kind.UPPER_BOUND, 2, 2, False, Verdict.HOLDS),
        (Kind.UPPER_BOUND, 2, 2, True, Verdict.FAILS),
        (Kind.LOWER_BOUND, 1, 2, False, Verdict.FAILS),
        (Kind.LOWER_BOUND, 2, 1, False, Verdict.HOLDS),
        (Kind.IDENTITY, Fraction(1, 3), Fraction(2, 6), False, Verdict.HOLDS),
        (Kind.IDENTITY, Fraction(1, 3), Fraction(2, 7), False, Verdict.FAILS),
        (Kind.RATE, 1, 2, False, Verdict.HOLDS),
        (Kind.RATE, 2, 1, False, Verdict.FAILS),
        (Kind.RATE, 0, 1, False, Verdict.HOLDS),
        (Kind.EXISTS_CONSTANT, 2, 1, False, Verdict.FAILS),
    ],
)
def test_the_kind_chooses_the_comparison(kind, left, right, strict, verdict):
    claim = planted(kind, lambda point: Sides(left, right, strict=strict))
    assert judge(claim, Point(d=3)).verdict is verdict


def test_an_identity_of_irrationals_holds_to_its_radius_and_is_not_proved():
    claim = planted(Kind.IDENTITY, lambda p: Sides(ball(2).sqrt() ** 2, 2))
    outcome = collect.run_here(claim)
    assert outcome.verdict is Verdict.HOLDS_TO
    assert outcome.text.startswith("holds to 10^-")
    assert int(outcome.text.rsplit("-", 1)[1]) >= 30


def test_precision_rises_until_a_tiny_difference_is_seen():
    tiny = ball(10) ** -150
    claim = planted(
        Kind.IDENTITY, lambda p: Sides(ball(2).sqrt() * (1 + ball(10) ** -25), ball(2).sqrt())
    )
    assert judge(claim, Point(d=3)).verdict is Verdict.FAILS
    strict = planted(
        sides=lambda p: Sides(ball(2).sqrt() * (1 - tiny), ball(2).sqrt(), strict=True)
    )
    assert judge(strict, Point(d=3)).verdict is Verdict.HOLDS


def test_a_strict_bound_that_cannot_be_told_from_equality_is_undecided():
    claim = planted(sides=lambda p: Sides(ball(2).sqrt() ** 2, 2, strict=True))
    found = judge(claim, Point(d=3))
    assert found.verdict is Verdict.UNDECIDED
    assert "precision" in found.note
    assert exit_code([collect.run_here(claim)]) == 3


def test_an_attained_bound_holds_to_its_radius():
    claim = planted(sides=lambda p: Sides(ball(2).sqrt() ** 2, 2))
    assert judge(claim, Point(d=3)).verdict is Verdict.HOLDS_TO


def test_points_outside_the_hypotheses_are_never_passed():
    claim = planted(points=[Point(d=3), Point(d=2)], hypotheses=(Hypothesis("d >= 3"),))
    outcome = collect.run_here(claim)
    assert outcome.counts["outside"] == 1
    assert outcome.counts["holds"] == 1


def test_an_impossible_hypothesis_yields_outside_and_not_holds():
    claim = planted(hypotheses=(Hypothesis("d < 0"),))
    assert collect.run_here(claim).verdict is Verdict.OUTSIDE
    sides_not_reached = planted(sides=lambda p: 1 / 0, hypotheses=(Hypothesis("d < 0"),))
    assert collect.run_here(sides_not_reached).verdict is Verdict.OUTSIDE


def test_an_undecided_hypothesis_is_not_passed_either():
    claim = planted(hypotheses=(Hypothesis("d >= sqrt(3)*sqrt(3)"),))
    assert within(claim.hypotheses, Point(d=3)) is None
    assert collect.run_here(claim).verdict is Verdict.UNDECIDED


def test_a_search_is_reported_as_not_falsified():
    claim = planted(search=lambda level: [Point(d=4), Point(d=5)])
    assert collect.run_here(claim).text == "not falsified (3 points)"


def test_a_claim_that_raises_is_an_error_with_its_traceback():
    outcome = collect.run_here(planted(sides=lambda p: 1 / 0))
    assert outcome.verdict is Verdict.ERROR
    assert "ZeroDivisionError" in outcome.traceback
    assert exit_code([outcome]) == 1


def test_proofs_count_only_when_no_point_contradicts_them():
    assert collect.run_here(planted(proof=lambda: "algebra")).verdict is Verdict.PROVED
    false = planted(sides=lambda p: Sides(2, 1), proof=lambda: "a wrong proof")
    assert collect.run_here(false).verdict is Verdict.FAILS

    def stuck() -> str:
        raise ProofFailed("a term was left")

    assert collect.run_here(planted(proof=stuck)).verdict is Verdict.UNDECIDED


def test_the_sharp_constant_encloses_the_supremum():
    points = [Point(d=d) for d in (2, 5, 3)]
    claim = planted(points=points, sharp=Sharp("root", lambda p: ball(p.d).sqrt()))
    found = collect.run_here(claim).sharp
    assert found is not None
    assert found.point == Point(d=5)
    assert found.value.contains("sqrt(5)")
    assert found.value.relative_width < 1e-9


def test_polynomial_proofs_reject_what_is_false():
    import sympy as sp

    d = sp.Symbol("d")
    positive(d - 2, "d - 2", d=3)
    never_negative(d - 3, "d - 3", d=3)
    for expression in (d - 3, d - 4, 1 / (3 - d)):
        with pytest.raises(ProofFailed):
            positive(expression, "false", d=3)
    with pytest.raises(ProofFailed, match="no range"):
        positive(d, "d")


# Planted falsehoods, one of each sort for each kind


def _times(factor):
    return lambda s: replace(s, right=_scaled(s.right, Fraction(factor)))


def _scaled(x, factor):
    return x * factor if isinstance(x, (int, Fraction)) else ball(x) * ball(factor)


LAST = Point(d=10**6, eps="0.1", eta1="sqrt(d)", attention="C = 2", T="printed")
EXPONENTIAL = LAST.but(link="8d (1-1/(8d))^(2T) <= 8d e^(-T/(4d))")


@pytest.mark.parametrize(
    ("id", "factor", "point"),
    [
        ("prop3.uniform", "1.01", Point(d=50)),
        ("thm2.rate.end", "0.99", Point(d=10**6, eps="0.1")),
        ("thm1.large", "1.01", Point(d=9)),
        ("prop2.pairing", "1.01", Point(d=10**6, link=">= 1/3")),
        ("thm2.rate", "0.99", EXPONENTIAL.but(T="1")),
    ],
)
def test_a_constant_off_by_one_percent_fails(id, factor, point):
    assert judge(registered(id), point).verdict in (Verdict.HOLDS, Verdict.HOLDS_TO)
    assert judge(altered(id, _times(factor)), point).verdict is Verdict.FAILS


def test_the_sharp_constant_of_an_existence_claim_less_one_percent_fails():
    claim = replace(registered("thm2.attention"), hypotheses=())
    point = Point(d=3, eps="0.1", eta1="sqrt(d)", C=2)
    sharp = collect.constant(claim.sharp, point)  # type: ignore[arg-type]
    low, high = (str(x * f) for x, f in zip(sharp.bounds, (Fraction("0.99"), Fraction("1.01"))))
    assert judge(claim, point.but(C=low)).verdict is Verdict.FAILS
    assert judge(claim, point.but(C=high)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("id", "point"),
    [
        ("prop3.uniform", Point(d=50)),
        ("prop1.short", Point(eps="0.5")),
        ("thm1.ratio", Point(d=5, m=5)),
        ("thm2", Point(d=5, eps="0.1", eta1="1", C=1)),
        ("thm2.rate", EXPONENTIAL),
    ],
)
def test_a_flipped_sign_fails(id, point):
    flip = altered(id, lambda s: replace(s, left=s.right, right=s.left))
    if registered(id).kind is Kind.IDENTITY:
        flip = altered(id, lambda s: replace(s, right=-ball(s.right)))
    assert judge(flip, point).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("id", "point", "hypothesis"),
    [
        ("thm2.accuracy.half", Point(d=5, eps="0.5", eta1="0.75*d", C=100), "eta1 outside (d/2"),
        ("thm2.distance", Point(d=3, eps="0.1", eta1="100*d", attention="mu1 = 1 - eps/4",
                                link="||beta'-beta*||^2 <= 16d"), "eta1 <= sqrt(d)"),
        ("thm1.large", Point(d=8), "d >= 9"),
        ("thm2", Point(d=3, eps="0.1", eta1="1", C="0.1"), "C >= 1"),
        ("thm2.rate", EXPONENTIAL.but(d=3, eta1="100*d", attention="mu1 = 1 - eps/4", T="1",
                                      link="||beta(T)-beta*||^2/2 <= 8d (1-1/(8d))^(2T)"),
         "eta1 <= sqrt(d)"),
    ],
)  # fmt: skip
def test_a_dropped_hypothesis_fails(id, point, hypothesis):
    claim = registered(id)
    outside = judge(claim, point)
    assert outside.verdict is Verdict.OUTSIDE
    assert outside.note.startswith(hypothesis)
    kept = tuple(h for h in claim.hypotheses if not h.text.startswith(hypothesis))
    assert len(kept) == len(claim.hypotheses) - 1
    assert judge(replace(claim, hypotheses=kept), point).verdict is Verdict.FAILS


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
    "arguments",
    [
        ("--only", "nothing"),
        ("--quick", "--full"),
        ("--unknown",),
        ("replay", "no-such-file"),
        ("necessity", "nothing"),
        ("--precision", "1"),
    ],
)
def test_command_usage_errors_exit_2(arguments):
    assert _invoke(*arguments).exit_code == 2


def test_replay_refuses_what_is_no_report(tmp_path):
    file = tmp_path / "x.json"
    for text in ("", "[]", '{"claims": [{"id": "from another version"}]}'):
        file.write_text(text)
        assert _invoke("replay", str(file)).exit_code == 2


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


# Necessity


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
    result = _invoke("necessity", "prop1.short")
    assert result.exit_code == 0
    assert "without eps < 1: no violation found at" in result.stdout
