"""The package as installed: light import, public names, layers, cited sections."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import popgd

HEAVY = (
    "scipy.stats",
    "scipy.optimize",
    "scipy.integrate",
    "pandas",
    "xarray",
    "sympy",
    "matplotlib",
)

PACKAGE = Path(popgd.__file__).parent


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_leaves_heavy_libraries_alone():
    loaded = run("import popgd, sys; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_a_first_risk_leaves_heavy_libraries_alone():
    first = "popgd.PopulationRisk(popgd.Occurrence(5)).value([0]*5, [1]*5)"
    loaded = run(f"import popgd, sys; {first}; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("name", popgd.__all__)
def test_every_public_name_is_there_and_documented(name):
    thing = getattr(popgd, name)
    assert name in dir(popgd)
    if name != "__version__":
        assert thing.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        popgd.nothing  # noqa: B018


def test_every_cited_section_exists():
    theory = (PACKAGE / "THEORY.md").read_text()
    sections = set(re.findall(r"^## (\d+)\.", theory, re.M))
    for path in PACKAGE.rglob("*.py"):
        for cited in re.findall(r"THEORY\s+(\d+(?:,\s*\d+)*)", path.read_text()):
            assert set(re.split(r",\s*", cited)) <= sections, path.name


def test_only_one_file_imports_flint_and_plots_alone_import_matplotlib():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if path.name != "ball.py":
            assert not re.search(r"^\s*(import flint|from flint)", text, re.M), path.name
        if not path.name.startswith("plots"):
            assert not re.search(r"^\s*(import matplotlib|from matplotlib)", text, re.M), path.name


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.name)
def test_files_stay_short(path):
    assert len(path.read_text().splitlines()) <= 400
