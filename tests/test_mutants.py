"""Planted errors are noticed: each mutant of the package fails the test named for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import MUTANTS

import popgd

PACKAGE = Path(popgd.__file__).parent
TESTS = Path(__file__).parent
AREAS = ("words", "moments", "cells", "quadrature", "integral", "series", "symmetric")
AREAS += ("certified", "training", "plans")
ELSEWHERE = 97
"""Exit status when the copy under test is not the one that was imported."""

RUN = f"""
import importlib, sys
import pytest
copy, module, tests, *names = sys.argv[1:]
if not importlib.import_module(module).__file__.startswith(copy):
    sys.exit({ELSEWHERE})
names = [tests + "/" + name for name in names]
options = ["-qq", "-x", "-p", "no:cacheprovider", "--import-mode=importlib"]
sys.exit(pytest.main([*options, "-o", "addopts=", "--tb=line", "--rootdir", tests, *names]))
"""


def copy_package(to: Path) -> Path:
    """A copy with its byte code, which stays valid because times are kept."""
    return Path(shutil.copytree(PACKAGE, to / "popgd"))


def run(root: Path, module: str, *names: str) -> subprocess.CompletedProcess[str]:
    """The named tests in a new process that imports the package from `root`."""
    path = os.pathsep.join([str(root), str(TESTS)])
    # examples drawn by Hypothesis are the same every time; plug-ins are slow to load
    environment = {**os.environ, "PYTHONPATH": path, "CI": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-c", RUN, str(root), f"popgd.{module}", str(TESTS), *names]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_fails_its_test(mutant, tmp_path):
    source = copy_package(tmp_path) / mutant.file
    text = source.read_text()
    assert text.count(mutant.old) == 1
    source.write_text(text.replace(mutant.old, mutant.new))
    result = run(tmp_path, source.stem, mutant.test)
    # a test ran and failed: not an error of import, collection or usage
    assert result.returncode == 1, result.stdout + result.stderr
    assert "FAILED" in result.stdout, result.stdout + result.stderr


def test_control_the_unchanged_copy_passes(tmp_path):
    copy_package(tmp_path)
    result = run(tmp_path, "words", *sorted({m.test for m in MUTANTS}))
    assert result.returncode == 0, result.stdout + result.stderr


def test_control_the_installed_package_is_told_from_a_copy(tmp_path):
    assert run(tmp_path, "words", MUTANTS[0].test).returncode == ELSEWHERE


def test_the_mutants_are_many_and_spread_out():
    assert len(MUTANTS) >= 14
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
    places = {m.file + " " + m.name for m in MUTANTS}
    for area in AREAS:
        assert any(area in place for place in places), area
