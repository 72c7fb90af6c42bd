"""Reports: every format escapes what it is given, fits its page, and says what the run found."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from report_helpers import FAST, Balanced, planted, reported
from rich.console import Console
from typer.testing import CliRunner

from popgd.ball import Enclosure, ball
from proofs_check import (
    collect,
    output,
    report_html,
    report_json,
    report_latex,
    report_markdown,
    report_table,
)
from proofs_check.__main__ import app
from proofs_check.claim import Sharp, Sides
from proofs_check.outcome import Coverage
from proofs_check.point import Point
from proofs_check.report import FINDINGS, Report, exit_code
from proofs_check.report_plot import SERIES, constants, slack
from proofs_check.report_text import brief, headed, heading, margin, summary
from proofs_check.verdict import Kind


@pytest.fixture(scope="module")
def report() -> Report:
    found = [collect.run_here(collect.by_id()[id], "quick") for id in FAST]
    raising = collect.run_here(planted(id="raises", sides=lambda p: 1 / 0))
    nasty = collect.run_here(planted())
    return reported(*found, raising, nasty)


def test_coverage_in_brief_names_ends_and_not_every_value():
    values = (
        ("d", ("3", "4", "9", "1000000")),
        ("eta1", ("1e-6", "sqrt(d)/2", "sqrt(d)")),
        ("link", ("a first part <= b", "b <= c")),
        ("C", ("1", "2", "100")),
    )
    coverage = Coverage(24, 4, values, "by algebra")
    assert coverage.brief == (
        "all parameters + 20 points, d: 3, 4, 9, 10^6; eta1: 3 values 1e-6..sqrt(d); "
        "link: 2 cases; C: 1, 2, 100"
    )
    assert Coverage(3, 3).brief == "no point inside the hypotheses"


def test_headings_are_the_papers_names():
    assert headed("thm2") == ("Theorem 2", "Three-phase training succeeds")
    assert heading("prop1").startswith("Proposition 1: ")
    assert heading("model") == "Model"
    assert headed("cor1")[0] == "Corollary 1"


def test_a_margin_says_what_kind_of_number_it_is():
    equal = collect.run_here(planted(kind=Kind.IDENTITY, sides=lambda p: Sides(1, 1)))
    assert margin(equal) == "equal"
    assert margin(collect.run_here(planted(sides=lambda p: Sides(1, 1)))) == "margin 0 (attained)"
    assert margin(collect.run_here(planted())) == "margin 0.5"
    radius = planted(kind=Kind.IDENTITY, sides=lambda p: Sides(ball(2).sqrt() ** 2, 2))
    assert margin(collect.run_here(radius)).startswith("difference <= ")
    wrong = planted(kind=Kind.IDENTITY, sides=lambda p: Sides(3, 2))
    assert margin(collect.run_here(wrong)) == "difference 0.5"


# Tables in the terminal


@pytest.mark.parametrize("width", [80, 120, 160])
def test_the_table_fits_its_terminal(report, width):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    report_table.print_report(report, console)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for id in FAST:
        assert id in text
    assert text.index("Known findings") < text.index("thm1.large")
    assert "ZeroDivisionError" in text


def test_steps_are_indented_below_their_statement():
    main, step = collect.by_id()["thm1"], collect.by_id()["thm1.large"]
    report = reported(*(collect.run_here(planted(id=c.id, title=c.title)) for c in (step, main)))
    assert [o.claim.id for o in report.outcomes] == ["thm1", "thm1.large"]
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    report_table.print_report(report, console)
    lines = console.export_text().splitlines()
    at = {id: next(s.index(id) for s in lines if f"{id}  (" in s) for id in ("thm1", "thm1.large")}
    assert at["thm1.large"] == at["thm1"] + 2


def test_statements_come_in_the_papers_order():
    ids = ("cor1", "thm2", "thm1", "prop2", "balance")
    claims = (planted(id=id, group=collect.by_id()[id].group) for id in ids)
    report = reported(*map(collect.run_here, claims))
    assert [name for name, _ in report.groups()] == ["model", "prop2", "thm1", "thm2", "cor1"]


# Markdown, LaTeX, HTML


def test_markdown_tables_keep_their_columns(report):
    text = report_markdown.render(report)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > len(FAST)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert text.index("Known findings") < text.index("Proposition 1")
    assert "Theorem 2 survives" in text
    assert "ZeroDivisionError" in text


def test_latex_is_balanced_and_needs_only_two_packages(report):
    text = report_latex.render(report)
    bare = re.sub(r"\\[\\{}$&%#_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert all(ord(c) < 128 for c in text)
    for line in text.splitlines():
        if line.endswith(r"\tabularnewline"):
            assert len(re.findall(r"(?<!\\)&", line)) == 3
    commands = set(re.findall(r"\\([A-Za-z]+)", text))
    assert not commands & {"arraybackslash", "textcolor", "url", "href", "text"}


def test_html_is_one_well_formed_file_without_outside_resources(report):
    text = report_html.render(report)
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert parser.addresses
    assert all(address.startswith("#") for address in parser.addresses)
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert "@import" not in text
    assert "url(" not in text
    assert len(parser.ids) == len(set(parser.ids))
    assert {a[1:] for a in parser.addresses} <= set(parser.ids)
    for id in FAST:
        assert f'<article id="{id}"' in text
    assert text.index("Known findings") < text.index('<article id="thm1.large"')


def test_every_series_has_a_colour_and_a_shape_of_its_own():
    colours, shapes = zip(*SERIES, strict=True)
    assert len(set(colours)) == len(set(shapes)) == len(SERIES)
    for colour in colours:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        light = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
                 for x in (red, green, blue)]  # fmt: skip
        luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
        # WCAG asks graphics for a contrast of 3 against their ground, here white
        assert 1.05 / (luminance + 0.05) >= 3


# Plots


def _drawn(svg: str) -> list[tuple[float, float]]:
    found = re.findall(r'<use href="#m\d" x="(-?[\d.]+)" y="(-?[\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in found]


def test_a_slack_plot_shows_both_signs_around_zero():
    margins = {3: "1e-30", 5: "0", 9: "-1e-3", 100: "0.4"}
    claim = planted(
        sides=lambda p: Sides(1 - ball(margins[p.d]), 1),
        grid=lambda level: [Point(d=d) for d in margins],
    )
    plot = slack(collect.run_here(claim))
    assert plot is not None
    assert plot.along == "d"
    places = _drawn(plot.svg)
    assert len(places) == 4
    heights = [y for _, y in sorted(places)]
    tiny, zero, negative, large = heights
    assert large < tiny < zero < negative  # downwards in SVG
    assert all(0 <= x <= 400 and 0 <= y <= 230 for x, y in places)


def test_colours_follow_eps_and_the_worst_point_is_ringed():
    points = [Point(d=d, eps=eps) for d in (3, 5) for eps in ("0.5", "0.1")]
    claim = planted(
        sides=lambda p: Sides(0, p.ball("eps") / p.d),
        kind=Kind.RATE,
        grid=lambda level: points,
        sharp=Sharp("eps d", lambda p: p.ball("eps") * p.d),
    )
    outcome = collect.run_here(planted(
        sides=lambda p: Sides(1, 1 + p.ball("eps") / p.d), grid=lambda level: points,
        sharp=claim.sharp,
    ))  # fmt: skip
    for plot in (slack(outcome), constants(outcome)):
        assert plot is not None
        assert (plot.by, plot.series) == ("eps", ("0.5", "0.1"))
        assert plot.svg.count('class="ring"') == 1
        assert len(_drawn(plot.svg)) == 4


@pytest.mark.parametrize(
    ("sides", "points"),
    [
        (lambda p: Sides(1, 1), [Point(d=3), Point(d=4)]),  # equal everywhere: nothing to show
        (lambda p: Sides(1, 2), [Point(d=3)]),  # one point
        (lambda p: 1 / 0, [Point(d=3), Point(d=4)]),
    ],
)
def test_no_plot_where_there_is_nothing_to_plot(sides, points):
    assert slack(collect.run_here(planted(sides=sides, grid=lambda level: points))) is None


def test_extreme_margins_and_words_for_parameters_can_be_plotted():
    sides = {"a": (10**400, 1), "b": (1, 10**400), "c": (10**400 + 1, 10**400)}
    claim = planted(
        kind=Kind.LOWER_BOUND,
        sides=lambda p: Sides(*sides[p["link"]]),
        grid=lambda level: [Point(link=x) for x in sides],
    )
    outcome = collect.run_here(claim)
    plot = slack(outcome)
    assert plot is not None
    assert margin(outcome) == "margin -1"
    assert brief(Enclosure("1e400", "1e400")) == "1.00000e+400"
    assert brief(Enclosure("-1e-400", "1e-400")) == "[-1e-400, 1e-400]"
    assert plot.along == ""
    assert len(_drawn(plot.svg)) == 3


# Where reports go


@pytest.fixture
def in_process(monkeypatch):
    """No workers: starting them takes longer than the claim."""
    monkeypatch.setattr(
        collect, "run", lambda claims, level, *rest: (collect.run_here(c, level) for c in claims)
    )


def _invoke(*arguments: str):
    return CliRunner().invoke(app, [*arguments, "--quick", "--only", "prop1.short"])


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("suffix", list(output.FORMATS.values()))
def test_a_file_is_written_while_stdout_keeps_the_table(tmp_path, suffix):
    file = tmp_path / f"report{suffix}"
    result = _invoke("--output", str(file))
    assert result.exit_code == 0
    assert "claim and coverage" in result.stdout
    assert "prop1" in file.read_text()
    assert [p.name for p in tmp_path.iterdir()] == [file.name]


@pytest.mark.usefixtures("in_process")
def test_a_format_alone_goes_to_stdout():
    assert _invoke("--latex").stdout.startswith("% needs")
    assert json.loads(_invoke("--json").stdout)["grid"] == "quick"


@pytest.mark.parametrize(
    ("flags", "name", "message"),
    [
        (["json", "html"], None, "choose one"),
        ([], "report.pdf", "end it in"),
        ([], "report", "end it in"),
    ],
)
def test_formats_that_cannot_be_told(flags, name, message):
    with pytest.raises(ValueError, match=message):
        output.choose(flags, Path(name) if name else None)


def test_an_unwritable_place_is_refused_before_the_work(tmp_path):
    for bad in (tmp_path, tmp_path / "no" / "report.md"):
        start = time.monotonic()
        assert CliRunner().invoke(app, ["--html", "--output", str(bad)]).exit_code == 2
        assert time.monotonic() - start < 5  # the default grid takes minutes


def test_a_spent_budget_marks_the_report_and_is_no_success():
    claim = planted(id="a")
    incomplete = reported(collect.run_here(claim), order=["a", "b"], budget=2.0)
    assert incomplete.unfinished == ("b",)
    data = json.loads(output.render(incomplete, "json"))
    assert data["unfinished"] == ["b"]
    assert data["budget"] == 2.0
    assert "budget of 2 s" in summary(incomplete)
    assert exit_code(incomplete.outcomes, complete=False) == 3
    complete = reported(collect.run_here(claim), budget=2.0)
    assert "budget" not in json.loads(output.render(complete, "json"))


def test_a_run_stops_at_its_budget():
    start = time.monotonic()
    found = list(collect.run(collect.find(["thm2"]), "full", budget=0.2))
    assert time.monotonic() - start < 20  # hours without it
    assert len(found) < len(collect.find(["thm2"]))


def test_no_progress_where_stderr_is_no_terminal():
    assert CliRunner().invoke(app, ["--quick", "--only", "prop1.short"]).stderr == ""


def test_findings_stand_first_in_every_format(report):
    assert report.groups()[0][0] == FINDINGS
    for name in ("markdown", "latex", "html"):
        text = output.render(report, name)
        first, second = text.index("Known findings"), text.index("Proposition 1")
        assert first < second


def test_what_searches_found_is_a_table_in_the_reports():
    outcome = collect.run_here(collect.by_id()["prop3"], "quick")
    report = reported(outcome)
    found = report_json.as_dict(report)["claims"][0]["found"]
    assert [entry["d"] for entry in found] == [3, 50, 100]
    for entry, row in zip(found, outcome.rows, strict=True):
        assert entry["value"] == [row.value.lower, row.value.upper]
        assert list(entry["closed forms"]) == ["uniform attention"]
        assert len(entry["five best"]) <= 5
    markdown, html = report_markdown.render(report), report_html.render(report)
    for text in (markdown, html):
        assert text.count("1 symbol infinitely above 99 symbols") == 1
        assert "by dimension" in text
        assert "0.391367" in text
    assert "found" not in report_json.as_dict(reported(collect.run_here(planted())))["claims"][0]
