"""Sweeps on a real Dask cluster that loses workers and its scheduler."""

import json
from pathlib import Path

import numpy as np
import pytest
import sweep_functions as cells

from popgd import sweep_chunks
from popgd.sweeps import sweep

HERE = Path(__file__).parent
GRID = {"d": [3, 50], "eta1": np.array([0.5, 2.0]), "eta2": np.geomspace(1, 1e5, 4)}


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


@pytest.fixture
def client():
    """A cluster of its own for every test: one whose workers were killed may take no more work."""
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


def test_a_cell_that_always_kills_its_worker_is_lost_alone(client, tmp_path, monkeypatch):
    blamed = []
    killed = sweep_chunks._killed
    monkeypatch.setattr(sweep_chunks, "_killed", lambda e: blamed.append(e) or killed(e))
    options = dict(executor=client.get_executor(), store=tmp_path / "z", chunk=1)
    for _ in range(2):  # and again when it is all that is left in the store
        with pytest.warns(RuntimeWarning, match="1 of 8 cells failed.*WorkerLost: KilledWorker"):
            result = sweep(cells.kills, {"x": range(8)}, **options)
        assert (result.error.values != "").tolist() == [x == 3 for x in range(8)]
    # each round takes the scheduler's patience, several deaths of workers
    assert len(blamed) <= 3


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


def test_a_dask_cluster_without_workers_is_waited_for_aloud(monkeypatch):
    from threading import Timer

    from dask.distributed import Client

    monkeypatch.setattr(sweep_chunks, "PATIENCE", 0.5)
    with cluster(workers=0) as real, Client(real) as here:
        late = Timer(3.0, real.scale, [1])
        late.start()
        with pytest.warns(RuntimeWarning, match="no workers: waiting for one, 4 chunks to go"):
            result = sweep(cells.draw, {"n": range(4)}, executor=here.get_executor(), chunk=1)
        late.join()
    assert result.identical(sweep(cells.draw, {"n": range(4)}, chunk=1))


def test_a_dask_cluster_whose_workers_never_come_back_is_given_up(monkeypatch, tmp_path):
    from threading import Timer

    from dask.distributed import Client

    monkeypatch.setattr(sweep_chunks, "PATIENCE", 0.5)
    monkeypatch.setattr(sweep_chunks, "GRACE", 2.0)
    options = dict(store=tmp_path / "z", chunk=1)
    with cluster(workers=1) as real, Client(real) as here:
        away = Timer(2.0, real.scale, [0])
        away.start()
        with pytest.warns(RuntimeWarning) as heard:
            broken = sweep(cells.naps, {"x": range(40)}, executor=here.get_executor(), **options)
        away.join()
    told = [str(warning.message) for warning in heard]
    assert any("no workers: waiting for one" in text for text in told)
    assert any("WorkerLost: NoWorkers: none came back to the cluster in 2 s" in t for t in told)
    kept = (broken.error == "").values
    assert 0 < kept.sum() < 40
    whole = sweep(cells.naps, {"x": range(40)}, **options)
    assert (whole.value.values == np.arange(40)).all()
