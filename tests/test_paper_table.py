"""The paper's table: agreement rule, independence of workers, rows that can be checked exactly."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

from popgd import BadParameter, paper_table, symmetric
from popgd.cli import app
from popgd.plan_table import PAPER, plans

FAST = ["O", "O(1x) -> A(1x)"]


@pytest.fixture(scope="module")
def found():
    return paper_table(seeds=6, only=FAST, workers=1)


def test_fast_rows_agree_with_the_paper(found):
    for row in found.rows:
        assert row.mse.agrees, row
        assert row.accuracy.agrees, row


def test_output_only_is_the_closed_form_up_to_the_random_start(found):
    # the uniform minimum at d = 50; random attention moves it by its own deviation
    closed = 2 * symmetric.minimize_output(0.0, 50).value
    row = found["O"]
    assert abs(row.mse.exact - closed) < 3 * row.mse.exact_deviation + 1e-3
    # drawn words are fitted: the training MSE lies below, the exact MSE above the exact minimum
    assert row.mse.mean < row.mse.exact < row.population_mse


def test_results_do_not_depend_on_the_workers(found):
    with ThreadPoolExecutor(2) as pool:
        again = paper_table(seeds=6, only=FAST, executor=pool)
    assert again == found
    fewer = paper_table(seeds=5, only=FAST[1:], workers=1)
    assert fewer.rows[0].mse != found["O(1x) -> A(1x)"].mse


def test_the_zero_start_takes_the_closed_form_path():
    row = paper_table(d=6, seeds=2, only=["O(1x) -> A(1x) -> O, zero start"], workers=1).rows[0]
    run = symmetric.three_phase(6, 0.7 * 6, 20.0 * 6, 2.0, 400)
    assert row.mse.exact == pytest.approx(2 * run.risks[-1], rel=1e-9)
    assert row.mse.exact_deviation == pytest.approx(0, abs=1e-12)


def test_other_step_sizes_can_be_tried():
    tried = {"O": "O(1x, lr=1e-9)"}
    row = paper_table(seeds=2, only=["O"], overrides=tried, workers=1)["O"]
    assert row.mse.mean == pytest.approx(2, abs=0.3)
    assert row.mse.agrees is False


def test_every_row_has_a_plan():
    assert set(plans(50)) == set(PAPER)


def test_command(tmp_path):
    arguments = ["reproduce", "-d", "6", "--seeds", "2", "--workers", "1", "--only", "O", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    row = json.loads(result.output)["rows"][0]
    assert row["name"] == "O"
    assert np.isfinite(row["mse"]["mean"])
    shown = CliRunner().invoke(app, arguments[:-1])
    assert "Step sizes" in shown.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"seeds": 1}, "seeds = 1"), ({"only": ["B"]}, "only"), ({"d": 1}, "d = 1")],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(BadParameter, match=words):
        paper_table(**arguments)
