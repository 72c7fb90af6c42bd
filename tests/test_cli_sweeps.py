"""`popgd phase-diagram` and `popgd sweep`, as a user types them."""

import json
import subprocess
import sys

import matplotlib as mpl
import pytest
import xarray
from typer.testing import CliRunner

import popgd
from popgd.cli import app
from popgd.errors import BadFile

mpl.use("agg")

SMALL = ["phase-diagram", "-d", "50", "--pixels", "30", "--steps", "100"]


def test_command_draws_and_saves(tmp_path):
    png, netcdf = tmp_path / "d.png", tmp_path / "d.nc"
    result = CliRunner().invoke(app, [*SMALL, "--png", str(png), "--netcdf", str(netcdf), "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["proved"] == 1
    assert answer["boundary points"] == answer["boundary points proved"] > 0
    assert png.read_bytes()[:4] == b"\x89PNG"
    with xarray.open_dataset(netcdf, engine="scipy") as plane:
        assert plane.regime.shape == (1, 30, 30, 1)
        shares = [float((plane.regime == k).mean()) for k in range(5)]
        assert shares[0] == answer["success"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--eta1", "5"], "is no range"),
        (["--eta1", "5:1"], "needs 0 < low < high"),
        (["--steps", "1.5"], "must be a whole number"),
        (["--epsilon", "0"], "must be > 0"),
        (["-d", "1"], "must be in"),
        (["--png", "picture.gif"], "is not an option"),
        (["--eta1", "1e-300:1e300", "--png", "p.png"], "cannot be drawn"),
        (["--eta1", "0..."], "is no range"),
        (["--steps", "-1"], "must lie in"),
        (["--eta3", "nan"], "is not a number"),
    ],
)
def test_bad_options_are_one_sentence(more, message):
    result = CliRunner().invoke(app, [*SMALL, *more])
    assert result.exit_code == 2
    assert message in result.output


def test_files_that_cannot_be_written_lose_nothing(tmp_path):
    plane = popgd.phase_diagram(10**12, [1.0], [1.0])
    file = tmp_path / "there"
    file.write_text("precious")
    with pytest.raises(BadFile, match="could not be written"):
        popgd.save_netcdf(plane, file / "below.nc")
    assert file.read_text() == "precious"
    popgd.save_netcdf(plane, tmp_path / "new.nc")
    with xarray.open_dataset(tmp_path / "new.nc", engine="scipy") as again:
        assert again.d.values.tolist() == [1e12]
        assert (
            again.risk_3.values.tobytes()
            == plane.risk_3.astype(">f8").astype(float).values.tobytes()
        )


def test_sweep_command(tmp_path):
    study = tmp_path / "study.py"
    study.write_text("def trial(d, x, rng):\n    return {'y': d * x, 'z': float(rng.normal())}\n")
    arguments = ["sweep", f"{study}:trial", "-g", "d=10,50", "-g", "x=log:1:100:3"]
    store = ["--store", str(tmp_path / "runs.zarr")]
    first = CliRunner().invoke(app, [*arguments, *store, "--json"])
    assert first.exit_code == 0, first.output
    answer = json.loads(first.stdout)
    assert answer["y"] == [[10.0, 100.0, 1000.0], [50.0, 500.0, 5000.0]]
    refused = CliRunner().invoke(app, [*arguments, *store])
    assert refused.exit_code == 2
    assert "--resume" in refused.output
    again = CliRunner().invoke(app, [*arguments, *store, "--resume", "--json"])
    assert json.loads(again.stdout) == answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing", "-g", "x=1"], "is no MODULE:FUNCTION"),
        (["math:nothing", "-g", "x=1"], "was not found"),
        (["math:pi", "-g", "x=1"], "is not callable"),
        (["math:sqrt", "-g", "x"], "is no axis"),
        (["math:sqrt", "-g", "x=1,,2"], "has an empty value"),
        (["math:sqrt", "-g", "x=int:0:1e30"], "more than 2,000,000"),
        (["math:sqrt", "-g", "x=int:0:0"], "has no values"),
        (["math:sqrt", "-g", "x=log:nan:1:3"], "is no axis"),
        (["math:sqrt", "-g", "x=lin:0:1:2.5"], "is no axis"),
        (["math:sqrt", "-g", "x=1", "-g", "x=2"], "has values already"),
        (["math:sqrt", "-g", "x=1", "--resume"], "needs a store"),
        (["fractions:Fraction", "-g", "numerator=int:0:2e6", "-g", "denominator=1,2"], "are more"),
        (["sweep_functions:plane", "-g", "d=1"], "does not fit"),
        (["math:sqrt", "-g", "x=log:1:2"], "is no axis"),
        (["math:sqrt", "-g", "x=1", "--scheduler", "nonsense://x"], "no answer"),
    ],
)
def test_bad_sweeps_are_one_sentence(arguments, message):
    result = CliRunner().invoke(app, ["sweep", *arguments])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_warnings_are_one_line_on_stderr(tmp_path):
    study = tmp_path / "loud.py"
    study.write_text(
        "import warnings\n"
        "def trial(x):\n"
        "    warnings.warn(f'x is {x}', RuntimeWarning)\n"
        "    assert x\n"
        "    return {'y': x}\n"
    )
    command = [sys.executable, "-m", "popgd", "sweep", f"{study}:trial", "-g", "x=0,1"]
    found = subprocess.run(command, capture_output=True, text=True)
    lines = found.stderr.splitlines()
    assert lines[:2] == ["warning: x is 0", "warning: x is 1"]
    assert lines[2].startswith("error: 1 of 2 cells failed")
    assert len(lines) == 3
