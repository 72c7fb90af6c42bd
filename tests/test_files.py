"""Files are written whole or not at all, and only over files."""

import os

import pytest

from popgd._files import write_atomically
from popgd.errors import BadFile
from proofs_check.output import writable


def test_a_pipe_or_device_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises(BadFile, match="is no regular file; choose a file name"):
        write_atomically(pipe, lambda file: file.write(b"x"))
    with pytest.raises(ValueError, match="cannot be written"):
        writable(pipe)
    assert pipe.is_fifo()


def test_a_failed_write_keeps_what_was_there(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fails(file):
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(BadFile, match="No space left"):
        write_atomically(path, fails)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kept"]
