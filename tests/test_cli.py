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
from popgd.errors import BadFile
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
        (["train", "O(1x)", "--save", ""], "save = '.': names no file"),
        (["train", "O(1x)", "--samples", "10", "--seed", "-1"], "seed = -1: must be >= 0"),
        (["train", "O(1x)", "--samples", "1e12"], "n = 1000000000000: must be in [1, "),
        (["crossvalidate", "--random", "1", "--seed", "-1"], "seed = -1: must be >= 0"),
        (["risk", "--gap", "10**400"], "gap = '10**400': is too large"),
        (["risk", "--gap", "1e400"], "gap = '1e400': is too large"),
        (["risk", "--gap", "9**9**9**9"], "gap = '9**9**9**9': is too large"),
        (["risk", "--gap", "exp(exp(exp(9)))"], "gap = 'exp(exp(exp(9)))': is too large"),
        (["risk", "--beta-target", "-10**400"], "beta-target = '-10**400': is too large"),
        (["moments", "--gap", "10**400"], "gap = '10**400': is too large"),
        (["train", "O(1x)", "--gap", "10**400"], "gap = '10**400': is too large"),
        (["train", "O(1x)", "--lr", "10**400"], "lr = '10**400': is too large"),
        (["train", "O(1x)", "--lr-attention", "10**400"], "lr-attention = '10**400': is too"),
        (["risk", "--p", "0"], "p = '0': must lie in (0, 1]"),
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


UNFIT = {
    "a.json": ("{}", "is no object with keys alpha and beta"),
    "b.json": ("not json", "is no json file or a damaged one"),
    "c.json": ("null", "is no object with keys alpha and beta"),
    "d.json": ('{"alpha": [true, 1], "beta": [0, 0]}', "alpha[0] = true must be a number"),
    "e.json": ('{"alpha": 3, "beta": [0, 0]}', "alpha must be a list of numbers"),
    "f.json": ('{"alpha": [[1, 2]], "beta": [0, 0]}', "alpha[0] = [1, 2] must be a number"),
    "g.json": ('{"alpha": [], "beta": []}', "alpha is empty"),
    "c.csv": ("x,y,z\n1,2,3\n", "has no columns alpha and beta"),
    "d.csv": ("", "is empty"),
    "e.csv": ("alpha,beta\n1\n", "row 1: it has 1 of the columns"),
    "f.csv": ("alpha,beta\n", "alpha is empty"),
    "f.npz": ("not npz", "is no npz file or a damaged one"),
    "g.npz": ("PK\x03\x04garbage", "is no npz file or a damaged one"),
    "h.npz": ("", "is no npz file or a damaged one"),
    "i.json": ('{"alpha": ["x", 1], "beta": [0, 0]}', "alpha[0] = 'x': uses the unknown name"),
    "j.json": ('{"alpha": [1, 2, 3], "beta": [0, 0]}', "the last axis must be d = 3"),
}


def refused(*words):
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    return result.output


@pytest.mark.parametrize("name", UNFIT)
def test_files_without_weights_are_refused_in_one_sentence(tmp_path, name):
    content, sentence = UNFIT[name]
    (tmp_path / name).write_text(content)
    told = refused("risk", "--weights", tmp_path / name)
    assert sentence in told
    assert name in told or "alpha" in told or "beta" in told


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"alpha": [1j, 0], "beta": [0.0, 0]}, "alpha of dtype complex128 must hold real numbers"),
        ({"alpha": ["1", "0"], "beta": [0.0, 0]}, "must hold real numbers"),
        ({"alpha": [0.0, 0], "beta": [True, False]}, "beta of dtype bool must hold real numbers"),
        ({"alpha": 1.0, "beta": 2.0}, "alpha has shape (), one vector is needed"),
        ({"other": 1.0}, "holds no weights but other"),
    ],
)
def test_arrays_that_are_no_real_vectors_are_refused(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    assert sentence in refused("risk", "--weights", tmp_path / "a.npz")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04garbage", b"\x93NUMPY"])
def test_a_damaged_archive_is_closed_again(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    code = (
        "import sys; from popgd.cli_inputs import read_weights; from pathlib import Path\n"
        "try: read_weights(Path(sys.argv[1]))\nexcept OSError: pass\n"
        "from popgd import Trajectory\n"
        "try: Trajectory.load(sys.argv[1])\nexcept OSError: pass"
    )
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", code]
    told = subprocess.run([*command, str(tmp_path / "a.npz")], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "unclosed" not in told.stderr


def test_a_name_with_a_nul_byte_is_no_file():
    run = train(popgd.Occurrence(3), "O(1x)")
    for call_it in (run.save, Trajectory.load):
        with pytest.raises(BadFile, match="holds a NUL byte"):
            call_it("a\0b")


def test_a_trajectory_without_its_weights_is_damaged(tmp_path):
    train(popgd.Occurrence(3), "O(1x)").save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        kept = {name: file[name] for name in file.files if name != "stored_beta"}
    np.savez(tmp_path / "b.npz", **kept)
    with pytest.raises(BadFile, match="is a damaged trajectory; save it again"):
        Trajectory.load(tmp_path / "b.npz")
    assert "is a damaged trajectory" in refused("risk", "-w", tmp_path / "b.npz")


def test_a_file_and_scalars_do_not_go_together(tmp_path):
    np.savez(tmp_path / "a.npz", alpha=ALPHA, beta=BETA)
    file = ("--weights", tmp_path / "a.npz")
    for command in (["risk"], ["train", "O(1x)"], ["crossvalidate"]):
        for option in ("--gap", "--beta-target", "--beta-background"):
            told = refused(*command, *file, option, "2")
            assert f"{option[2:]} = '2': does not go with weights from a file" in told
    assert "is one point, a file another" in refused("crossvalidate", *file, "--random", "1")


def test_text_in_files_may_be_expressions(tmp_path):
    (tmp_path / "a.json").write_text('{"alpha": ["ln(2)", 0, "-1/3"], "beta": ["1/3", 0.5, 2]}')
    exact = PopulationRisk(popgd.Occurrence(3)).value([np.log(2), 0, -1 / 3], [1 / 3, 0.5, 2])
    assert answer("risk", "-w", tmp_path / "a.json")["risk"] == pytest.approx(exact, rel=1e-13)
    proved = answer("risk", "-w", tmp_path / "a.json", "--digits", 20)["risk"]
    assert float(proved["lower"]) == pytest.approx(exact, rel=1e-12)


def test_a_risk_that_underflows_is_said_to():
    told = call("risk", "--gap", 100, "--beta-target", 2).stdout
    assert "relative error" in told
    tiny = call("risk", "--gap", "1e4", "--beta-target", 2).stdout
    assert "the risk underflows, see log_risk" in tiny
    assert "relative error" not in tiny
    # at the limit itself the risk is exactly 0
    assert "underflows" not in call("risk", "--gap", "inf", "--beta-target", 2).stdout


def test_samples_may_be_written_1e3():
    assert answer("train", "O(1x)", "-d", 3, "--samples", "1e3")["samples"] == 1000


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
