"""Sweeps with a store: killed, damaged, full disks, resumed bit for bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sweep_functions as cells
import xarray

from popgd.errors import BadFile, BadParameter
from popgd.sweeps import sweep

HERE = Path(__file__).parent
GRID = {"d": [3, 50], "eta1": np.array([0.5, 2.0]), "eta2": np.geomspace(1, 1e5, 4)}


def tree(path):
    return {p.relative_to(path): p.read_bytes() for p in Path(path).rglob("*") if p.is_file()}


def evaluations(directory):
    return [name.split(".")[0] for name in os.listdir(directory)]


SCRIPT = """
import sys, sweep_functions
from popgd.sweeps import sweep
grid = {"x": range(60), "directory": [sys.argv[2]]}
sweep(sweep_functions.slow, grid, store=sys.argv[1], chunk=3)
"""


def test_killed_sweep_resumes_bit_identical(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    store = tmp_path / "killed.zarr"
    command = [sys.executable, "-c", SCRIPT, str(store), str(marks)]
    child = subprocess.Popen(command, cwd=HERE)
    deadline = time.monotonic() + 60
    while len(os.listdir(marks)) < 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = len(os.listdir(marks))
    assert 20 <= before < 60
    grid = {"x": range(60), "directory": [str(marks)]}
    resumed = sweep(cells.slow, grid, store=store, chunk=3)
    # at most the chunk that was being computed is computed again
    assert len(os.listdir(marks)) - before <= 60 - before + 3
    repeated = {x for x in evaluations(marks) if evaluations(marks).count(x) > 1}
    assert len(repeated) <= 3
    whole = sweep(cells.slow, grid, store=tmp_path / "whole.zarr", chunk=3)
    assert resumed.identical(whole)
    assert resumed.value.values.tobytes() == whole.value.values.tobytes()
    leftovers = {name for name in tree(store) if name.name.endswith(".partial")}
    assert {k: v for k, v in tree(store).items() if k not in leftovers} == tree(
        tmp_path / "whole.zarr"
    )


def test_killed_while_the_result_was_written(tmp_path):
    whole = tmp_path / "whole.zarr"
    result = sweep(cells.draw, {"n": range(6)}, store=whole, chunk=2)
    reference = tree(whole)
    written = [
        name for name in reference if name.parts[0] != "sweep.log" and name.name != ".zgroup"
    ]
    rng = np.random.default_rng(0)
    for k in range(16):
        store = tmp_path / f"{k}.zarr"
        shutil.copytree(whole, store)
        # any part of the result may be missing, an array's names among them; half a draft is left
        for i in rng.choice(len(written), rng.integers(1, len(written)), replace=False):
            (store / written[i]).unlink()
        (store / "sweep.log" / "result.part" / "value").mkdir(parents=True)
        assert sweep(cells.draw, {"n": range(6)}, store=store, chunk=2).identical(result)
        assert tree(store) == reference


def test_a_finished_store_opens_with_xarray_and_is_not_computed_again(tmp_path):
    store = tmp_path / "done.zarr"
    result = sweep(cells.plane, GRID, store=store)
    with xarray.open_zarr(store, consolidated=False) as opened:
        assert opened.risk.values.tobytes() == result.risk.values.tobytes()
        assert opened.error.values.tolist() == result.error.values.tolist()
        assert opened.away.dtype == bool
    seen = []
    again = sweep(cells.plane, GRID, store=store, progress=lambda *x: seen.append(x))
    assert seen == [(16, 16)]
    assert again.identical(result)
    with pytest.raises(BadParameter, match="--resume"):
        sweep(cells.plane, GRID, store=store, resume=False)


def test_errors_are_stored_too(tmp_path):
    store = tmp_path / "errors.zarr"
    with pytest.warns(RuntimeWarning):
        first = sweep(cells.fails_at_three, {"x": range(5)}, store=store)
    with pytest.warns(RuntimeWarning):
        second = sweep(cells.fails_at_three, {"x": range(5)}, store=store)
    assert first.identical(second)


def test_a_damaged_chunk_is_computed_again(tmp_path):
    store = tmp_path / "damaged.zarr"
    result = sweep(cells.draw, {"n": range(9)}, store=store, chunk=3)
    piece = store / "sweep.log" / "finished_chunks" / "1"
    piece.write_bytes(piece.read_bytes()[:7])
    assert sweep(cells.draw, {"n": range(9)}, store=store, chunk=3).identical(result)


def test_another_sweeps_store_is_refused(tmp_path):
    store = tmp_path / "mine.zarr"
    sweep(cells.draw, {"n": range(9)}, store=store)
    before = tree(store)
    for changed, what in (
        ({"grid": {"n": range(8)}}, "grid"),
        ({"function": _other}, "function"),
        ({"seed": 3}, "seed"),
        ({"chunk": 4}, "chunk"),
    ):
        arguments = {"function": cells.draw, "grid": {"n": range(9)}} | changed
        with pytest.raises(BadFile, match=f"differs in {what}"):
            sweep(**arguments, store=store)
    assert tree(store) == before


def _other(n, rng):
    return n


def test_places_that_cannot_be_used(tmp_path):
    file = tmp_path / "file"
    file.write_text("precious")
    for place in (file / "below.zarr", file):
        with pytest.raises(BadFile, match=r"store = "):
            sweep(cells.draw, {"n": [1]}, store=place)
    assert file.read_text() == "precious"
    full = tmp_path / "full"
    full.mkdir()
    (full / "data.txt").write_text("precious")
    with pytest.raises(BadFile, match="holds no sweep and was left alone"):
        sweep(cells.draw, {"n": [1]}, store=full)
    assert tree(full) == {Path("data.txt"): b"precious"}
    assert not list(tmp_path.glob("*.part"))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert sweep(cells.draw, {"n": [1]}, store=empty).value.size == 1


FULL = """
import resource, sys
from popgd.sweeps import sweep
from popgd.errors import BadFile
def bulky(x):
    import hashlib
    return "".join(hashlib.sha512(f"{i}.{x}".encode()).hexdigest() for i in range(x))
bulky.__qualname__ = "bulky"
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    sweep(bulky, {"x": [1, 2, 400, 3]}, store=sys.argv[1], chunk=1)
except BadFile as error:
    print(error)
    sys.exit(7)
"""


def test_a_full_disk_is_one_sentence_and_keeps_finished_chunks(tmp_path):
    store = tmp_path / "full.zarr"

    def run(limit):
        command = [sys.executable, "-c", FULL, str(store), str(limit)]
        return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=60)

    failed = run(8192)
    assert failed.returncode == 7, failed.stderr
    assert "File too large" in failed.stdout
    assert "finished chunks are kept" in failed.stdout
    kept = {name: data for name, data in tree(store).items() if name.parts[0] == "sweep.log"}
    assert {Path("sweep.log/finished_chunks/0"), Path("sweep.log/finished_chunks/1")} <= set(kept)
    assert run(0).returncode == 0
    assert {name: tree(store)[name] for name in kept} == kept


BULKY = """
import resource, signal, sys
from popgd.diagram import phase_diagram
from popgd.netcdf import save_netcdf
from popgd.cli import app
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
folder = sys.argv[1]
for arguments in (["--netcdf", folder + "/old.nc"], ["--png", folder + "/old.png"]):
    try:
        app(["phase-diagram", "-d", "2", "--pixels", "40", *arguments])
    except SystemExit as end:
        print(end.code)
"""


def test_files_survive_a_full_disk(tmp_path):
    for name in ("old.nc", "old.png"):
        (tmp_path / name).write_text("precious")
    done = subprocess.run(
        [sys.executable, "-c", BULKY, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["2", "2"], done.stderr
    assert done.stderr.count("could not be written (File too large)") == 2, done.stderr
    assert {k.name: v for k, v in tree(tmp_path).items()} == dict.fromkeys(
        ("old.nc", "old.png"), b"precious"
    )


def test_a_lost_process_is_not_stored_as_a_result(tmp_path):
    store = tmp_path / "lost.zarr"
    grid = {"x": range(12), "directory": [str(tmp_path)]}
    with cells.processes(1) as executor, pytest.warns(RuntimeWarning, match="WorkerLost"):
        broken = sweep(cells.kill_once, grid, store=store, chunk=1, executor=executor)
    assert broken.value[0, 0] == 0
    assert str(broken.error.values[7, 0]).startswith("WorkerLost: BrokenProcessPool")
    with cells.processes(1) as executor:
        whole = sweep(cells.kill_once, grid, store=store, executor=executor)
    assert (whole.value.values[:, 0] == np.arange(12) ** 2).all()
    assert whole.value.dtype == np.int64


def test_the_store_is_json_and_floats_come_back_exactly(tmp_path):
    store = tmp_path / "exact.zarr"
    values = [0.1, 1e-300, 5e-324, -0.0, float("inf"), 1 / 3]
    result = sweep(_identity, {"x": values}, store=store)
    again = sweep(_identity, {"x": values}, store=store)
    assert result.y.values.tobytes() == np.array(values).tobytes() == again.y.values.tobytes()
    identity = json.loads((store / "sweep.log" / "finished_chunks" / ".zattrs").read_text())[
        "identity"
    ]
    assert identity["function"].endswith("_identity")


def _identity(x):
    return {"y": x}


START = """
import sys, time, sweep_functions
from popgd.sweeps import sweep
while time.time() < float(sys.argv[2]):
    pass
for i in range(5):
    sweep(sweep_functions.draw, {"n": range(20)}, store=f"{sys.argv[1]}/{i}.zarr", chunk=2)
"""


def test_processes_that_start_one_store_together(tmp_path):
    command = [sys.executable, "-c", START, str(tmp_path), str(time.time() + 4)]
    each = [subprocess.Popen(command, cwd=HERE, stderr=subprocess.PIPE) for _ in range(3)]
    for child in each:
        assert child.communicate(timeout=60)[1] == b""
        assert child.returncode == 0
    assert sorted(os.listdir(tmp_path)) == [f"{i}.zarr" for i in range(5)]
    whole = sweep(cells.draw, {"n": range(20)})
    with xarray.open_zarr(tmp_path / "4.zarr", consolidated=False) as opened:
        assert (opened.value.values == whole.value.values).all()


def test_a_faster_process_has_made_the_store(tmp_path, monkeypatch):
    store, rename = tmp_path / "mine.zarr", os.rename

    def late(draft, path):
        monkeypatch.setattr(os, "rename", rename)
        sweep(cells.draw, {"n": range(4)}, store=store)
        rename(draft, path)

    monkeypatch.setattr(os, "rename", late)
    result = sweep(cells.draw, {"n": range(4)}, store=store)
    assert result.identical(sweep(cells.draw, {"n": range(4)}))
    assert os.listdir(tmp_path) == ["mine.zarr"]


@pytest.mark.parametrize(
    ("function", "axis", "name"),
    [(lambda log: log, "log", "value"), (lambda d: {"log": d}, "d", "log")],
    ids=["axis", "result"],
)
def test_an_axis_or_a_result_may_be_called_log(tmp_path, function, axis, name):
    grid, store = {axis: [1, 2]}, tmp_path / "log.zarr"
    result = sweep(function, grid, store=store)
    assert sweep(function, grid, store=store).identical(result)
    with xarray.open_zarr(store, consolidated=False) as opened:
        assert opened[name].values.tolist() == [1, 2]


@pytest.mark.parametrize("identity", [None, [1], {"chunk": "x"}])
def test_a_store_without_a_sound_identity_is_refused(tmp_path, identity):
    store = tmp_path / "odd.zarr"
    sweep(cells.draw, {"n": range(9)}, store=store)
    place = store / "sweep.log" / "finished_chunks" / ".zattrs"
    attrs = json.loads(place.read_text())
    place.write_text(json.dumps(attrs | {"identity": identity}))
    with pytest.raises(BadFile, match=r"holds no sweep|holds another sweep"):
        sweep(cells.draw, {"n": range(9)}, store=store)


@pytest.mark.parametrize(
    "records", [[[{"value": 1.0}, ""]], [["a", 5]] * 3, [[{"value": []}, ""]] * 3]
)
def test_a_chunk_of_other_records_is_computed_again(tmp_path, records):
    import zarr

    store = tmp_path / "odd.zarr"
    result = sweep(cells.draw, {"n": range(9)}, store=store, chunk=3)
    zarr.open_group(store, mode="r+")["sweep.log/finished_chunks"][1:2] = json.dumps(records)
    assert sweep(cells.draw, {"n": range(9)}, store=store, chunk=3).identical(result)
