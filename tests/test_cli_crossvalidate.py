"""The command line of cross-validation: tables, JSON, exit statuses, one-sentence refusals."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from popgd.cli import app

RUN = CliRunner()


def call(*arguments):
    return RUN.invoke(app, ["crossvalidate", *map(str, arguments)])


def test_routes_agree_and_say_so():
    result = call("-d", 10, "--gap", 1, "--beta-target", "1/3", "-n", "1e5")
    assert result.exit_code == 0, result.output
    for word in ("integral", "series", "symmetric", "enclosure", "sample", "agree at level 0.01"):
        assert word in result.output


def test_json_holds_the_matrix_of_pulls():
    result = call("-d", 5, "--random", 1, "-n", 500, "--json", "--no-gradients", "--seed", 3)
    assert result.exit_code == 3
    data = json.loads(result.output)
    assert data["verdict"] == "undecided"
    assert data["samples_needed"] > 500
    routes = len(data["routes"])
    assert np.shape(data["pulls"]) == (routes, routes)
    assert data["seed"] == 3


def test_training_is_compared_along_a_plan():
    result = call("-d", 5, "--plan", "O(5x)", "-n", 500, "-n", 2000, "--seeds", 60)
    assert result.exit_code in (0, 3), result.output
    assert "linearised prediction" in result.output
    result = call("-d", 5, "--plan", "O(5x)", "-n", 500, "-n", 2000, "--seeds", 5, "--json")
    assert result.exit_code == 3
    data = json.loads(result.output)
    assert data["seeds_needed"] > 5
    assert data["slopes"]["alpha"] is None
    assert np.shape(data["observed"]["beta"]) == (2, len(data["step"]))


def test_weights_come_from_files(tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, alpha=np.array([1.0, 0, 0.5]), beta=np.array([2.0, 0, 0.1]))
    result = call("-w", path, "-n", 0)
    assert result.exit_code == 0
    assert "sample" not in result.output


def test_plans_start_from_random_weights_in_any_language():
    plan = ("--plan", "J(2x)", "-n", 100, "-n", 200, "--seeds", 4, "--reference", 500)
    result = call("-d", 4, "-l", "or", "--random", 0.3, *plan)
    assert result.exit_code in (0, 3), result.output
    assert "sampled from 500 words" in result.output
    assert "seeds would decide" in result.output
    result = call("-d", 4, "-l", "and", "--target", 1, "--random", 0.3, *plan, "--json")
    data = json.loads(result.output)
    assert (data["prediction"], data["reference"]) == ("sampled", 500)
    assert len(data["predicted_error"]["beta"]) == len(data["step"])


def test_plans_start_from_files(tmp_path):
    path = tmp_path / "w.json"
    path.write_text('{"alpha": [0.5, 0, 0], "beta": [0.1, 0.2, 0.2]}')
    plan = ("--plan", "J(2x)", "-n", 100, "-n", 200, "--seeds", 4)
    result = call("-w", path, *plan)
    assert "which is exact" in result.output
    result = call("-w", path, *plan, "--prediction", "sampled", "--json")
    assert json.loads(result.output)["prediction"] == "sampled"
    result = call("-w", path, "-d", 5, *plan)
    assert result.exit_code == 2
    assert "alpha" in result.output


def test_the_note_explains_the_pulls():
    result = call("-d", 3, "-n", 0)
    assert "row less column" in result.output
    assert "standard error" not in result.output
    assert "against the sample, over its standard error" in call("-d", 3, "-n", 5000).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--level", 2), "level = 2"),
        (("-d", 1), "d = 1"),
        (("-d", "1e12"), "d = 1"),
        (("--plan", "O"), "counted steps"),
        (("--plan", "O(3x)", "--random", 1, "--gap", 3), "random"),
        (("--plan", "O(3x)", "-n", 100), "two different sizes"),
        (("--plan", "O(3x)", "--correction", "holm"), "changes nothing with --plan"),
        (("--plan", "O(3x)", "--no-gradients"), "leave out --no-gradients"),
        (("--plan", "O(3x)", "--prediction", "guess"), "prediction = 'guess'"),
        (("--plan", "O(3x)", "--reference", "few"), "few"),
        (("--plan", "O(3x)", "--reference", 5), "reference = 5"),
        (("--plan", "O(3x)", "-l", "or", "--prediction", "exact"), "balanced occurrence"),
        (("--plan", "O(3x)", "-l", "or", "-d", 300), "lower d"),
        (("--seeds", 9), "changes nothing without --plan"),
        (("--lr", 2), "leave out --lr or add --plan"),
        (("--lr-attention", 2), "lr-attention = '2'"),
        (("--prediction", "exact"), "add --plan"),
        (("--reference", 1000), "add --plan"),
        (("-n", 5, "-n", 6), "one number"),
        (("--random", 1, "--gap", 3), "random"),
        (("--random", -1), "random = -1"),
        (("-d", 3000), "n=0"),
        (("-n", "many"), "many"),
    ],
)
def test_refusals_are_one_sentence(arguments, words):
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
