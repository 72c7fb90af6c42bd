"""Promises of trajectories: bit-identical files, and a failed write loses nothing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from enumeration import EveryWord

from popgd import _files
from popgd.errors import BadFile, BadParameter, NotAvailable
from popgd.flow import gradient_flow
from popgd.gaps import attention_gap, output_gap
from popgd.training import train
from popgd.trajectory import Trajectory, Weights

ARRAYS = ("step", "phase_index", "risk", "attention_gap", "output_gap", "weight_step", "diverged")


def run(**options):
    rng = np.random.default_rng(1)
    alpha, beta = rng.normal(size=(2, 5, 3))
    return train(EveryWord(3), "O(3x, lr=0.3) -> joint(7x)", alpha, beta, **options)


def same(a, b):
    arrays = [(getattr(a, n), getattr(b, n)) for n in (*ARRAYS, "accuracy", "time", "risk_error")]
    arrays += list(zip(a.stored, b.stored))
    identical = all(
        x is y is None or (x.dtype == y.dtype and x.tobytes() == y.tobytes() and x.shape == y.shape)
        for x, y in arrays
    )
    plain = ("phases", "stop_reason", "path", "plan", "task", "d", "targets")
    return identical and all(getattr(a, n) == getattr(b, n) for n in plain)


@pytest.mark.parametrize("options", [{}, {"keep_weights": False}, {"until": 0.1}])
def test_saved_and_loaded_are_bit_identical(tmp_path, options):
    before = run(**options)
    before.save(tmp_path / "run.npz")
    assert same(before, Trajectory.load(tmp_path / "run.npz"))


def test_accuracy_and_flow_time_survive_a_file(tmp_path):
    for before in (
        train(EveryWord(3), "O(2x)", accuracy=True),
        gradient_flow(EveryWord(3), [0.0, 0.5, 2.0]),
        train(EveryWord(3), "O(2000x)", learning_rate=50.0, record_every=None),
    ):
        before.save(tmp_path / "run")
        assert same(before, Trajectory.load(tmp_path / "run"))


def test_the_file_holds_no_pickle(tmp_path):
    run().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as file:
        assert json.loads(str(file["meta"]))["kind"] == "Trajectory"
        assert all(file[name].dtype != object for name in file.files)


def test_a_failed_write_keeps_the_old_file_and_leaves_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    old = run()
    old.save(path)

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.np, "savez", full)
    with pytest.raises(BadFile, match=r"No space left on device.*unchanged"):
        run(until=0.2).save(path)
    assert same(old, Trajectory.load(path))
    assert os.listdir(tmp_path) == ["run.npz"]


LIMITED = """
import resource, signal, sys
sys.path.insert(0, "tests")
from test_trajectory import run
from popgd.errors import BadFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    run(until=0.2).save(sys.argv[1])
except BadFile as error:
    print(error)
"""


def test_a_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "run.npz"
    old = run()
    old.save(path)
    command = [sys.executable, "-c", LIMITED, str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "could not be written" in told
    assert same(old, Trajectory.load(path))
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_new_file_keeps_the_mode_of_the_old_and_follows_links(tmp_path):
    run().save(tmp_path / "run.npz")
    os.chmod(tmp_path / "run.npz", 0o640)
    os.symlink("run.npz", tmp_path / "link")
    run().save(tmp_path / "link")
    assert os.path.islink(tmp_path / "link")
    assert os.stat(tmp_path / "run.npz").st_mode & 0o777 == 0o640


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(BadFile, match=r"No such file.*check the name"):
        Trajectory.load(tmp_path / "none.npz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(BadFile, match="no Trajectory file or is damaged"):
        Trajectory.load(tmp_path / "text")
    np.savez(tmp_path / "other.npz", x=np.zeros(2))
    with pytest.raises(BadFile, match="no Trajectory file or is damaged"):
        Trajectory.load(tmp_path / "other.npz")
    _files.save_arrays(tmp_path / "batch", {}, {"kind": "WordBatch"})
    with pytest.raises(BadFile, match="holds a WordBatch"):
        Trajectory.load(tmp_path / "batch")
    run().save(tmp_path / "cut.npz")
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadFile, match="damaged"):
        Trajectory.load(tmp_path / "cut.npz")
    with pytest.raises(BadFile, match="could not be written"):
        run().save(tmp_path / "no" / "such" / "place")


def test_to_xarray_names_everything():
    data = run().to_xarray(weights=True)
    assert data.risk.dims == ("step", "batch_0")
    assert data.alpha.dims == ("step", "batch_0", "symbol")
    assert data.sel(step=3).phase == 0
    assert data.sel(step=4).phase == 1
    assert data.attrs["plan"] == "O(3x, lr=0.3) -> J(7x)"
    assert gradient_flow(EveryWord(3), 1.0).to_xarray().risk.dims == ("time",)
    with pytest.raises(NotAvailable, match="keep_weights=True"):
        run(keep_weights=False).to_xarray(weights=True)


def test_final_weights_start_the_next_run():
    once = train(EveryWord(3), "O(2x) -> A(3x)")
    twice = train(EveryWord(3), "A(3x)", *train(EveryWord(3), "O(2x)").final)
    assert isinstance(once.final, Weights)
    for a, b in zip(once.final, twice.final):
        np.testing.assert_array_equal(a, b)


def test_the_general_path_has_no_symmetric_state():
    with pytest.raises(NotAvailable, match="general path"):
        _ = run().state


def test_gaps_of_one_target():
    alpha = np.log([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])
    np.testing.assert_allclose(attention_gap(alpha, 0), [0.2, -0.7], rtol=1e-15)
    assert output_gap([2.0, 0.0, -1.0], 0) == 1.0
    assert isinstance(attention_gap([900.0, 0.0, -900.0], 0), float)
    assert attention_gap([900.0, 0.0, -900.0], 0) == 1.0


def test_gaps_of_several_targets_take_the_weakest():
    assert output_gap([2.0, 1.0, 0.5, 0.0], [0, 1]) == 0.25
    assert np.isnan(output_gap([2.0, 1.0], [0, 1]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: attention_gap(3.0, 0), "last axis"),
        (lambda: attention_gap([0.0, np.nan], 0), "holds NaN; pass finite weights"),
        (lambda: output_gap([1.0, 2.0], 2), "numbered 0 to"),
        (lambda: output_gap([1.0, 2.0], []), "at least one symbol"),
    ],
)
def test_malformed_gap_calls(call, words):
    with pytest.raises(BadParameter, match=words):
        call()
