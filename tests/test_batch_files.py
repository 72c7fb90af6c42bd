"""Damaged files of word batches: one clear sentence, whatever is wrong with them."""

import json

import numpy as np
import pytest

from popgd import BadFile, BadParameter, FixedLength, Occurrence, WordBatch, Words, sample_words
from popgd._files import load_arrays, save_arrays


@pytest.fixture
def path(tmp_path):
    return tmp_path / "words.npz"


@pytest.fixture
def dense(path):
    sample_words(Occurrence(5), 10, rng=0).save(path)
    return load_arrays(path, "WordBatch")


@pytest.fixture
def sparse(path):
    batch = sample_words(Occurrence(2000, 7, Words(FixedLength(3))), 1000, rng=0)
    assert batch.is_sparse
    batch.save(path)
    return load_arrays(path, "WordBatch")


def refused(path, *words):
    with pytest.raises(BadFile) as found:
        WordBatch.load(path)
    text = str(found.value)
    for word in (f"path = {str(path)!r}: ", *words):
        assert word in text, text
    # one sentence: what was found, and one remedy
    assert text.count("; ") == 1, text
    assert text.endswith(".")
    assert "\n" not in text


def test_a_missing_path(path):
    refused(path, "No such file", "check the name")


def test_a_directory(tmp_path):
    refused(tmp_path, "Is a directory", "check the name")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is an empty file"),
        (b"alpha,beta\n1,2\n", "is no npz archive"),
        (b"\x00" * 500, "is no npz archive"),
        (b"PK\x03\x04 and so on", "is cut off or damaged"),
    ],
)
def test_other_content(path, content, words):
    path.write_bytes(content)
    refused(path, words, "pass a file that WordBatch.save wrote")


def test_a_truncated_file(path, dense):
    whole = path.read_bytes()
    for part in (2, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:part])
        refused(path, "is cut off or damaged")


def test_any_flipped_byte_is_noticed_or_harmless(path, dense):
    whole = path.read_bytes()
    known = WordBatch.load(path)
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            batch = WordBatch.load(path)
        except BadFile:
            continue
        assert (batch.counts == known.counts).all()
        assert (batch.labels == known.labels).all()


def test_arrays_of_another_origin(path, dense):
    arrays, meta = dense
    np.savez(path, **arrays)
    refused(path, "archive of ['labels', 'counts']", "without the description of a batch")
    with open(path, "wb") as file:
        np.save(file, arrays["counts"])
    refused(path, "one bare array")
    objects = np.array([[1, 2]], dtype=object)
    np.savez(path, meta=np.array(json.dumps(meta)), counts=objects, labels=arrays["labels"])
    refused(path, "holds Python objects, which are never loaded")
    save_arrays(path, arrays, meta | {"kind": "Trajectory"})
    refused(path, "holds a Trajectory")


@pytest.mark.parametrize("name", ["labels", "counts"])
def test_missing_arrays(path, dense, name):
    arrays, meta = dense
    del arrays[name]
    save_arrays(path, arrays, meta)
    refused(path, "damaged word batch", f"has no '{name}'", "save the batch again")


@pytest.mark.parametrize("name", ["labels", "data", "indices", "indptr"])
def test_missing_sparse_arrays(path, sparse, name):
    arrays, meta = sparse
    del arrays[name]
    save_arrays(path, arrays, meta)
    refused(path, "damaged word batch", f"has no '{name}'")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.zeros(10)}, "every label must be +1 or -1"),
        ({"labels": np.ones(9)}, "one label for each of the 10 words"),
        ({"labels": np.array(["a"] * 10)}, "labels"),
        ({"counts": np.zeros((10, 5), int)}, "counts[0]"),
        ({"counts": np.ones((10, 4), int)}, "must have d = 5 columns"),
        ({"counts": np.ones(10, int)}, "must have d = 5 columns"),
        ({"counts": np.full((10, 5), 0.5)}, "non-negative integer"),
        ({"weights": np.full(10, np.nan)}, "NaN"),
        ({"weights": np.ones(3)}, "one weight for each"),
    ],
)
def test_arrays_that_break_a_rule(path, dense, change, words):
    arrays, meta = dense
    save_arrays(path, arrays | change, meta)
    refused(path, "damaged word batch", words)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("data", lambda x: x * 1.5, "non-negative integers"),
        ("data", lambda x: -x.astype(int), "non-negative integers"),
        ("data", lambda x: x[:-1], "do not describe a sparse matrix"),
        ("indices", lambda x: x + 5000, "do not describe a sparse matrix"),
        ("indices", lambda x: -x - 1, "do not describe a sparse matrix"),
        ("indptr", lambda x: x[::-1].copy(), "do not describe a sparse matrix"),
        ("indptr", lambda x: np.zeros((3, 3)), "do not describe a sparse matrix"),
        ("indptr", lambda x: x[:0], "do not describe a sparse matrix"),
    ],
)
def test_sparse_arrays_that_break_a_rule(path, sparse, name, change, words):
    arrays, meta = sparse
    save_arrays(path, arrays | {name: change(arrays[name])}, meta)
    refused(path, "damaged word batch", words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d": 7}, "must have d = 7 columns"),
        ({"d": -1}, "d = -1"),
        ({"d": "many"}, "d = 'many'"),
        ({"total": -1}, "total = -1"),
        ({"total": "all"}, "total = 'all'"),
        ({"task": {"language": "occurrence"}}, "describes no task"),
        ({"task": 3}, "describes no task"),
    ],
)
def test_descriptions_that_break_a_rule(path, dense, change, words):
    arrays, meta = dense
    save_arrays(path, arrays, meta | change)
    refused(path, "damaged word batch", words)


def test_half_a_description(path, dense):
    arrays, _ = dense
    save_arrays(path, arrays, {"kind": "WordBatch"})
    refused(path, "says nothing of 'd'")


@pytest.mark.parametrize("name", [None, 3, 1.5, []])
def test_no_path_at_all(name):
    with pytest.raises(BadParameter, match="must be a file name"):
        WordBatch.load(name)
    with pytest.raises(BadFile, match="NUL byte"):
        WordBatch.load("a\0b")
