"""Promises of the command line: the library's numbers, short tables, errors in one sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import popgd
from popgd import symmetric
from popgd.cli import app
from popgd.population import PopulationRisk
from popgd.starts import random_start
from popgd.training import train
from popgd.trajectory import Trajectory


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def answer(*words):
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_risk_at_scalar_weights_is_the_symmetric_risk():
    data = answer("risk", "-d", "1e12", "--gap", 60, "--beta-target", 2, "--beta-background", 1e-9)
    state = symmetric.State(60.0, 0.0, 2.0, 1e-9)
    assert data["risk"] == symmetric.risk(state, 10**12)
    assert data["accuracy"] == symmetric.accuracy(state, 10**12)
    assert data["gradient_beta_target"] == symmetric.gradient(state, 10**12).beta_target


def test_risk_of_other_tasks_carries_a_proved_bound():
    data = answer("risk", "-d", 6, "--language", "and", "--gap", 3, "--beta-target", 1.5)
    exact = PopulationRisk(popgd.And(6, [0, 1]))
    alpha, beta = np.array([3.0, 3, 0, 0, 0, 0]), np.array([1.5, 1.5, 0, 0, 0, 0])
    assert data["risk"] == exact.value(alpha, beta)
    assert data["error_bound"] == exact.error_bound(alpha, beta) > 0
    assert len(data["gradient_alpha"]) == 6


def test_expressions_are_numbers():
    written = answer("risk", "--gap", "2*ln(10)", "--beta-target", 2)["risk"]
    computed = answer("risk", "--gap", 2 * np.log(10), "--beta-target", 2)["risk"]
    assert written == pytest.approx(computed, rel=1e-13)
    with_p = answer("risk", "-d", 4, "--p", "1/3", "--gap", "-1")
    assert with_p["risk"] == answer("risk", "-d", 4, "--gap", "-1")["risk"]


@pytest.mark.parametrize("digits", [15, 30])
def test_digits_are_proved_bounds_around_the_number(digits):
    options = ("risk", "-d", 50, "--gap", 12, "--beta-target", 2)
    bounds, value = answer(*options, "--digits", digits), answer(*options)
    for name, bound in bounds.items():
        if name in ("task", "versions"):
            continue
        low, high = float(bound["lower"]), float(bound["upper"])
        assert low <= high
        assert low == pytest.approx(value[name], rel=1e-11)
    assert len(bounds["risk"]["lower"].split("e")[0]) >= digits


def test_decimals_in_text_are_exact_and_binary_files_say_so(tmp_path):
    exact = call("risk", "-d", 3, "--gap", "0.1", "--digits", 20)
    assert "binary inputs" not in exact.stdout
    np.savez(tmp_path / "w.npz", alpha=[0.1, 0, 0], beta=[0.0, 0, 0])
    binary = call("risk", "-w", tmp_path / "w.npz", "--digits", 20)
    assert "binary inputs were read as the numbers they are" in binary.stdout


ALPHA, BETA = [0.5, -0.25, 0.1], [2.0, 0.5, 0.125]


def weight_files(folder):
    np.savez(folder / "a.npz", alpha=ALPHA, beta=BETA)
    (folder / "b.json").write_text(json.dumps({"alpha": ALPHA, "beta": BETA, "residual": [0.0]}))
    rows = "".join(f"{a},{b}\n" for a, b in zip(ALPHA, BETA))
    (folder / "c.csv").write_text("# weights\nalpha,beta\n" + rows)
    (folder / "d.CSV").write_text(rows)
    (folder / "e.csv").write_text("symbol,beta,alpha\n" + "".join(
        f"{i},{b},{a}\n" for i, (a, b) in enumerate(zip(ALPHA, BETA))
    ))  # fmt: skip
    return sorted(folder.iterdir())


def test_weights_from_every_kind_of_file(tmp_path):
    exact = PopulationRisk(popgd.Occurrence(3)).value(ALPHA, BETA)
    files = weight_files(tmp_path)
    assert len(files) == 5
    for file in files:
        assert answer("risk", "--weights", file)["risk"] == pytest.approx(exact, rel=1e-14)
        assert "digits" in call("risk", "--weights", file, "--digits", 15).stdout


def test_a_saved_trajectory_is_a_weights_file(tmp_path):
    run = answer("train", "O(1x) -> A(1x)", "-d", 5, "--lr", 3, "--save", tmp_path / "run.npz")
    saved = Trajectory.load(tmp_path / "run.npz")
    assert run["risk"] == saved.risk.tolist()
    assert answer("risk", "-w", tmp_path / "run.npz")["risk"] == pytest.approx(run["risk"][-1])
    more = answer("train", "O(2x)", "-w", tmp_path / "run.npz")
    assert more["risk"][0] == pytest.approx(run["risk"][-1], rel=1e-12)


def test_moments_are_the_librarys():
    data = answer("moments", "-d", 50, "--gap", 0, "--gap", -3, "--scaled")
    for row, gap in zip(data["moments"], (0.0, -3.0)):
        exact = symmetric.moments(gap, 50, scaled=True)
        assert [row[name] for name in exact._fields] == list(exact)
    proved = answer("moments", "--gap", 40, "--digits", 30)["moments"][0]
    plain = symmetric.moments(40.0, 50)
    assert float(proved["m02"]["lower"]) == pytest.approx(plain.m02, rel=1e-12)
    assert "0 is underflow" in call("moments", "--gap", 400).stdout


def test_training_is_the_librarys():
    plan = "O(1x) -> A(1x, lr=5e4) -> O(200x)"
    data = answer("train", plan, "--accuracy", "--record-every", 50)
    run = train(popgd.Occurrence(50), plan, record_every=50, accuracy=True)
    for name in ("step", "risk", "attention_gap", "output_gap", "accuracy"):
        assert data[name] == getattr(run, name).tolist()
    assert (data["path"], data["stop_reason"]) == ("symmetric", "completed")
    assert [phase["stop"] for phase in data["phases"]] == [1, 2, 202]


def test_random_starts_and_drawn_words_follow_the_seed():
    options = ("train", "joint(3x)", "-d", 6, "--random", 0.1, "--samples", 200)
    first, again, other = (answer(*options, "--seed", seed) for seed in (1, 1, 2))
    assert first["risk"] == again["risk"] != other["risk"]
    start = random_start(6, 0.1, rng=1)
    exact = answer("train", "joint(3x)", "-d", 6, "--random", 0.1, "--seed", 1)
    np.testing.assert_allclose(exact["risk"], train(popgd.Occurrence(6), "joint(3x)", *start).risk)
    assert "exact population risk at the end" in call(*options).stdout


def test_until_and_divergence_show_in_the_exit_code():
    assert (
        answer("train", "O(1x) -> A(1x, lr=1e6) -> O", "--until", "1/1000")["stop_reason"]
        == "until"
    )
    lost = call("train", "O(5000x, lr=20)", "-d", 3)
    assert lost.exit_code == 1
    assert "diverged: lower the learning rate" in lost.stdout


def test_tables_are_short_and_whole():
    risk = call("risk", "--gap", 12, "--beta-target", 2).stdout
    assert len(risk.splitlines()) <= 12
    assert f"{symmetric.risk(symmetric.State(12.0, 0.0, 2.0, 0.0), 50):.12g}" in risk
    run = call("train", "O(1x) -> A(1x, lr=5e4) -> O(200x)").stdout
    assert len(run.splitlines()) <= 12
    assert "symmetric path" in run
    long = call("risk", "--gap", 12, "--beta-target", 2, "--digits", 120).stdout
    assert "…" not in long
    assert max(len(line) for line in long.splitlines()) > 120


def test_json_has_no_infinities():
    text = call("risk", "--gap", "inf", "--beta-target", 2, "--json").stdout
    assert json.loads(text)["log_risk"] == "-inf"
    assert "Infinity" not in text


def test_version_lists_the_libraries():
    told = call("--version").stdout
    assert told.startswith(f"popgd {popgd.__version__}\n")
    assert "numpy " + np.__version__ in told
    assert all(name in told for name in ("python ", "scipy ", "sympy ", "mpmath ", "python-flint "))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["risk", "-d", "1"], "error: d = 1: must be in [2, "),
        (["risk", "-d", "3", "--target", "3"], "symbols are numbered 0 to d - 1 = 2"),
        (["risk", "--target", "0", "--target", "1"], "occurrence has one target"),
        (["risk", "--language", "xor"], "choose one of 'occurrence', 'or', 'and'"),
        (["risk", "--gap", "foo(3)"], "functions are sqrt(x)"),
        (["risk", "--gap", "nan"], "gap = 'nan': is not a number"),
        (["risk", "--p", "2"], "p must"),
        (["risk", "--p", "sqrt(2)"], "must be rational"),
        (["risk", "--beta-target", "inf"], "pass finite weights"),
        (["risk", "--digits", "0"], "digits = 0"),
        (["risk", "--weights", "none.npz"], "could not be read"),
        (["risk", "--weights", "none.txt"], "pass a .npz, .csv or .json file"),
        (["moments", "-d", "1"], "alphabet sizes"),
        (["moments", "--digits", "20", "--scaled"], "leave one of them out"),
        (["train", "O(1x) => A"], "found '=' at position 6"),
        (["train", "O", "--lr", "0"], "finite step sizes > 0"),
        (["train", "O", "--random", "0.1", "--gap", "1"], "pass one of them"),
        (["train", "O", "--record-every", "0"], "record_every = 0.0: must be >= 1"),
        (["train", "O", "--gap", "inf"], "gradient steps need finite weights"),
        (["train", "O(1x)", "--save", "/no/such/place/run.npz"], "could not be written"),
    ],
)
def test_bad_parameters_exit_2_with_one_sentence(words, sentence):
    result = call(*words)
    assert result.exit_code == 2
    assert sentence.replace("p must", "p = ") in result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert "Traceback" not in result.output


def test_usage_errors_exit_2():
    for words in (["risk", "-d", "x"], ["fly"], ["train"], ["risk", "--digits", "many"]):
        assert call(*words).exit_code == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "{}"),
        ("b.json", "not json"),
        ("c.csv", "x,y,z\n1,2,3\n"),
        ("d.csv", ""),
        ("e.csv", "alpha,beta\n1\n"),
        ("f.npz", "not npz"),
    ],
)
def test_files_without_weights_are_named(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    result = call("risk", "--weights", tmp_path / name)
    assert result.exit_code == 2
    assert name in result.output
    assert "weights" in result.output


def test_weights_that_are_no_numbers_or_of_two_lengths(tmp_path):
    (tmp_path / "a.json").write_text('{"alpha": ["x", 1], "beta": [0, 0]}')
    assert "must hold numbers" in call("risk", "--weights", tmp_path / "a.json").output
    (tmp_path / "b.json").write_text('{"alpha": [1, 2, 3], "beta": [0, 0]}')
    assert "the last axis must be d = 3" in call("risk", "--weights", tmp_path / "b.json").output


def test_help_is_fast_and_lazy():
    code = (
        "import sys, popgd.cli;"
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'scipy', 'flint', 'sympy')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
    module = [sys.executable, "-m", "popgd", "--help"]
    told = subprocess.run(module, capture_output=True, text=True, check=True)
    assert all(name in told.stdout for name in ("risk", "moments", "train", "--version"))
