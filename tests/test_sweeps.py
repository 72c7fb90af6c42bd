"""Sweeps: the same labelled numbers on any executor, after any interruption."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import sweep_functions as cells
import xarray

import popgd
from popgd.ball import enclose
from popgd.errors import BadFile, BadParameter, PopgdError
from popgd.sweeps import sweep

HERE = Path(__file__).parent
GRID = {"d": [3, 50], "eta1": np.array([0.5, 2.0]), "eta2": np.geomspace(1, 1e5, 4)}


def processes(workers=2):
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


@pytest.fixture(scope="module")
def pool():
    with processes() as executor:
        yield executor


def cluster(workers=2):
    """A real cluster of processes, quiet."""
    import dask
    from dask.distributed import LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 5})
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any free port: 8787 may be taken
        silence_logs=50,
    )


def test_results_are_labelled_and_typed():
    result = sweep(cells.plane, GRID)
    assert result.risk.dims == ("d", "eta1", "eta2")
    point = result.sel(d=50, eta1=2.0).isel(eta2=3)
    direct = cells.plane(50, 2.0, float(GRID["eta2"][3]))
    assert float(point.risk) == direct["risk"]
    assert bool(point.away) is direct["away"]
    assert result.d_squared.dtype == np.int64
    assert result.away.dtype == bool
    assert (result.error == "").all()
    assert result.attrs["popgd_version"] == popgd.__version__
    assert result.attrs["failed"] == 0


def test_threads_processes_and_serial_agree_bit_for_bit(pool):
    grid = {"n": [1, 10, 100], "k": [0, 1]}
    serial = sweep(partial(_draw, scale=2.0), grid)
    with ThreadPoolExecutor(3) as threads:
        assert sweep(partial(_draw, scale=2.0), grid, executor=threads, chunk=1).identical(serial)
    plain = sweep(cells.draw, {"n": range(12)})
    for chunk in (1, 5):
        assert sweep(cells.draw, {"n": range(12)}, executor=pool, chunk=chunk).identical(plain)


def _draw(n, k, rng, scale):
    return float(rng.normal(size=n).sum() * scale + k)


def test_every_cell_has_its_own_stream_and_the_seed_decides():
    first = sweep(cells.draw, {"n": [5] * 40})
    assert np.unique(first.value).size == 40
    assert (sweep(cells.draw, {"n": [5] * 40}, seed=1).value != first.value).all()
    fresh = sweep(cells.draw, {"n": [5]}, seed=None)
    again = sweep(cells.draw, {"n": [5]}, seed=int(fresh.attrs["seed"]))
    assert float(fresh.value[0]) == float(again.value[0])
    stream = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(2,)))
    assert float(first.value[2]) == cells.draw(5, stream)


def test_random_starts_sgd_and_claims(pool):
    plan = "O(1x) -> A(1x, lr=50) -> O(20x)"
    starts = sweep(cells.random_start, {"seed": range(4), "plan": [plan]}, executor=pool)
    assert (starts.error == "").all()
    assert np.unique(starts.risk).size == 4
    assert (starts.risk < 0.5).all()
    sgd = sweep(cells.sgd, {"seed": range(3), "rate": [0.1]}, executor=pool)
    assert (sgd.error == "").all()
    assert np.unique(sgd.risk).size == 3
    margins = sweep(cells.enclosed, {"d": [3, 50], "gap": [0, 20]}, executor=pool)
    assert margins.verdict.sel(d=50, gap=20) == "1"
    assert margins.verdict.sel(d=50, gap=0) == "-1"
    assert float(margins.lower[0, 0]) <= float(margins.upper[0, 0])


def test_claims_are_swept(pool):
    grid = {"name": ["prop1", "thm2"], "d": [3, 50], "eps": ["0.1", "1e-6"]}
    spread = sweep(cells.claim, grid, executor=pool, chunk=1)
    assert sweep(cells.claim, grid).identical(spread)
    assert (spread.error == "").all()
    assert (spread.verdict == "HOLDS").all()
    assert (spread.lower.astype(float) > 0).all()


def test_a_failing_cell_is_recorded_and_loses_nothing(pool):
    for executor in (None, pool):
        with pytest.warns(RuntimeWarning, match="1 of 5 cells failed.*three is too many"):
            result = sweep(cells.fails_at_three, {"x": range(5)}, executor=executor, chunk=5)
        assert result.error.values.tolist() == ["", "", "", "ValueError: three is too many", ""]
        assert np.isnan(result.half[3])
        assert result.half[4] == 2.0
        assert result.name.values.tolist() == ["cell 0", "cell 1", "cell 2", "", "cell 4"]
        # a result that bears an axis' name is renamed, not lost
        assert result.x_result[2] == 2


def test_a_grid_that_does_not_fit_the_function_is_refused():
    for grid, what in (({"x": [1]}, "missing a required argument"), ({"x": [1], "y": [1]}, "miss")):
        with pytest.raises(BadParameter, match=rf"does not fit \({what}"):
            sweep(cells.slow, grid)
    with pytest.raises(BadParameter, match="unexpected keyword argument 'y'"):
        sweep(cells.draw, {"n": [1], "y": [1]})
    with pytest.raises(BadParameter, match=r"2,000,001 cells.*split the grid"):
        sweep(cells.fails_at_three, {"x": range(2_000_001)})


def test_only_plain_results(pool):
    with pytest.warns(RuntimeWarning, match="no plain number or string"):
        result = sweep(cells.not_plain, {"x": [1]}, executor=pool)
    assert "ndarray" in str(result.error.values[0])
    with pytest.warns(RuntimeWarning, match=r"its \.lower and \.upper"):
        sweep(lambda x: enclose(x), {"x": [1]})


def test_what_cannot_be_pickled_is_one_sentence(pool):
    with pytest.raises(PopgdError, match="importable there and picklable"):
        sweep(lambda x: x, {"x": [1, 2]}, executor=pool)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "grid = {}: must be a mapping"),
        ({"x": 3}, "must be a sequence"),
        ({"x": "abc"}, "must be a sequence"),
        ({"x": []}, "must be 1-D and not empty"),
        ({"x": np.ones((2, 2))}, "must be 1-D and not empty"),
        ({"not a name": [1]}, "is no argument name"),
        ({"error": [1]}, "is no argument name"),
    ],
)
def test_bad_grids_are_named(grid, message):
    with pytest.raises(BadParameter, match=message):
        sweep(cells.draw, grid)


def test_bad_arguments_are_named():
    for arguments, message in (
        ({"executor": 7}, "executor = 7: is no executor"),
        ({"store": 5}, "store = 5: is no path"),
        ({"chunk": 0}, "chunk = 0"),
        ({"seed": -1}, "seed = -1"),
    ):
        with pytest.raises(BadParameter, match=message):
            sweep(cells.draw, {"n": [1]}, **arguments)
    with pytest.raises(BadParameter, match="function = 3: is not callable"):
        sweep(3, {"n": [1]})


def test_blas_has_one_thread_in_workers(pool):
    assert (sweep(cells.threads, {"x": range(4)}, executor=pool, chunk=1).value == 1).all()
    with ThreadPoolExecutor(4) as executor:
        assert (sweep(cells.threads, {"x": range(8)}, executor=executor, chunk=1).value == 1).all()


def test_blas_has_one_thread_in_a_worker_that_has_just_started(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with processes(1) as fresh:
        assert (sweep(cells.threads, {"x": range(2)}, executor=fresh).value == 1).all()


def test_progress_counts_finished_cells():
    seen = []
    sweep(cells.draw, {"n": range(10)}, chunk=4, progress=lambda *x: seen.append(x))
    assert seen == [(0, 10), (4, 10), (8, 10), (10, 10)]


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
    written = [name for name in reference if name.parts[0] != "log" and name.name != ".zgroup"]
    rng = np.random.default_rng(0)
    for k in range(16):
        store = tmp_path / f"{k}.zarr"
        shutil.copytree(whole, store)
        # any part of the result may be missing, an array's names among them; half a draft is left
        for i in rng.choice(len(written), rng.integers(1, len(written)), replace=False):
            (store / written[i]).unlink()
        (store / "log" / "result.part" / "value").mkdir(parents=True)
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
    piece = store / "log" / "finished_chunks" / "1"
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
    kept = {name: data for name, data in tree(store).items() if name.parts[0] == "log"}
    assert {Path("log/finished_chunks/0"), Path("log/finished_chunks/1")} <= set(kept)
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
    with processes(1) as executor, pytest.warns(RuntimeWarning, match="WorkerLost"):
        broken = sweep(cells.kill_once, grid, store=store, chunk=1, executor=executor)
    assert broken.value[0, 0] == 0
    assert str(broken.error.values[7, 0]).startswith("WorkerLost: BrokenProcessPool")
    with processes(1) as executor:
        whole = sweep(cells.kill_once, grid, store=store, executor=executor)
    assert (whole.value.values[:, 0] == np.arange(12) ** 2).all()
    assert whole.value.dtype == np.int64


@pytest.fixture(scope="module")
def client():
    from dask.distributed import Client

    with cluster() as real, Client(real) as found:
        yield found


def test_a_dask_cluster_agrees_with_serial(client, tmp_path):
    executor, grid = client.get_executor(), {"n": range(10)}
    serial = sweep(cells.draw, grid)
    assert sweep(cells.draw, grid, executor=executor, store=tmp_path / "d.zarr").identical(serial)
    assert (sweep(cells.threads, {"x": range(4)}, executor=executor, chunk=1).value == 1).all()


@pytest.mark.parametrize("xs", [range(16), [7]], ids=["among others", "alone"])
def test_a_dask_cluster_that_loses_a_worker(client, tmp_path, xs):
    result = sweep(
        cells.kill_once,
        {"x": xs, "directory": [str(tmp_path)]},
        executor=client.get_executor(),
        chunk=1,
    )
    assert (tmp_path / "killed").exists()
    assert (result.value.values[:, 0] == np.array(xs) ** 2).all()
    assert (result.error == "").all()


def test_the_command_takes_a_scheduler_and_resumes(client, tmp_path):
    from typer.testing import CliRunner

    from popgd.cli import app

    # in a place that the workers do not know
    study = tmp_path / "study_for_a_cluster.py"
    study.write_text("def trial(d, rng):\n    return {'y': d * d, 'z': float(rng.normal())}\n")
    arguments = ["sweep", f"{study}:trial", "-g", "d=int:0:8", "--json"]
    serial = CliRunner().invoke(app, arguments)
    away = [*arguments, "--scheduler", client.scheduler.address, "--store", str(tmp_path / "z")]
    remote = CliRunner().invoke(app, away)
    assert remote.exit_code == 0, remote.output
    assert json.loads(remote.stdout) == json.loads(serial.stdout)
    assert CliRunner().invoke(app, [*away, "--resume"]).stdout == remote.stdout
    other = CliRunner().invoke(app, [*away, "--resume", "-g", "rng=1"])
    assert other.exit_code == 2
    assert "holds another sweep" in other.output


def test_dask_results_that_die_with_their_worker_are_computed_again(client, tmp_path):
    # all but one chunk finish at once and their results go down with the worker that holds them
    grid = {"x": range(8), "directory": [str(tmp_path)]}
    result = sweep(cells.kill_last, grid, executor=client.get_executor(), chunk=1)
    assert (result.value.values[:, 0] == np.arange(8)).all()


def test_a_dask_scheduler_that_goes_away_ends_the_sweep(tmp_path):
    import dask
    from dask.distributed import Client

    store, grid = tmp_path / "gone.zarr", {"x": range(80), "directory": [str(tmp_path)]}

    def close(done, total):
        if done == 20:
            real.loop.add_callback(real.scheduler.close)

    options = dict(store=store, chunk=1, progress=close)
    # how long a client looks for its scheduler, 30 s by default
    patience = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    lost = pytest.warns(RuntimeWarning, match="WorkerLost")
    with patience, cluster() as real, Client(real) as here, lost:
        broken = sweep(cells.slow, grid, executor=here.get_executor(), **options)
    kept = (broken.error == "").values
    assert 20 <= kept.sum() < 80
    whole = sweep(cells.slow, grid, store=store, chunk=1)
    assert (whole.error == "").all()
    assert whole.value.values[kept].tobytes() == broken.value.values[kept].tobytes()


def test_the_store_is_json_and_floats_come_back_exactly(tmp_path):
    store = tmp_path / "exact.zarr"
    values = [0.1, 1e-300, 5e-324, -0.0, float("inf"), 1 / 3]
    result = sweep(_identity, {"x": values}, store=store)
    again = sweep(_identity, {"x": values}, store=store)
    assert result.y.values.tobytes() == np.array(values).tobytes() == again.y.values.tobytes()
    identity = json.loads((store / "log" / "finished_chunks" / ".zattrs").read_text())["identity"]
    assert identity["function"].endswith("_identity")


def _identity(x):
    return {"y": x}
