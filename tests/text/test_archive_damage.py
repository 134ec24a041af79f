"""Damaged and hostile archives are refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softcount.core.errors import StoreError
from softcount.text import archive as archives
from softcount.text.archive import Archive

FILES = ("meta.json", "vocabulary.json", "origin.bin", "indptr.bin", "words.bin", "counts.bin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Archive.build(["a b c", "", "b b", "c a"], tmp_path / "archive", shuffle=0)
    return tmp_path / "archive"


def use(folder: Path) -> None:
    """Everything that an archive can be asked for."""
    archive = Archive.open(folder)
    _ = archive.vocabulary, archive.vectorizer(), archive.origin
    for parts in (archive.shards(), archive.shards(3, 0)):
        for part in parts:
            _ = part.bags.by_word, [archive.name(d) for d in part.numbers]
    archive.bags(np.array([3, 0]))


def refused(folder: Path, match: str | None = None, how: Callable[[Path], None] = use) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        how(folder)
    assert caught.value.hint
    assert str(folder) in caught.value.message


def forge(folder: Path, **changes: Any) -> None:
    """What a forger would write: a checksum that is right, whatever else is wrong."""
    said = json.loads((folder / "meta.json").read_text()) | changes
    said.pop("sha256")
    (folder / "meta.json").write_text(json.dumps(said | {"sha256": archives._digest(said)}))


def test_an_intact_archive_is_not_refused(folder: Path) -> None:
    use(folder)
    Archive.open(folder).verify()
    forge(folder)
    use(folder)


@pytest.mark.parametrize("name", FILES)
def test_missing_empty_shorter_longer(folder: Path, name: str) -> None:
    raw = (folder / name).read_bytes()
    for other in (b"", raw[:-2], raw[: len(raw) // 2], raw + b"\0"):
        (folder / name).write_bytes(other)
        refused(folder, name)
    (folder / name).unlink()
    refused(folder, name)
    (folder / name).mkdir()
    refused(folder, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_does_not_keep_us_waiting(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, "is not a file")


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(FILES), place=st.integers(0, 10**6), value=st.integers(1, 255))
def test_any_changed_byte_is_found(folder: Path, name: str, place: int, value: int) -> None:
    def verified(folder: Path) -> None:
        Archive.open(folder).verify()

    raw = (folder / name).read_bytes()
    changed = bytearray(raw)
    changed[place % len(raw)] ^= value
    (folder / name).write_bytes(changed)
    try:
        if name != "meta.json" or not _says_the_same(raw, bytes(changed)):
            refused(folder, how=verified)
    finally:
        (folder / name).write_bytes(raw)


def _says_the_same(one: bytes, other: bytes) -> bool:
    """JSON has blanks that mean nothing."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def numbers(folder: Path, name: str, dtype: str, values: Any) -> None:
    old = (folder / name).read_bytes()
    new = np.array(values, dtype).tobytes()
    (folder / name).write_bytes(new + old[len(new) :])


@pytest.mark.parametrize("word", [-1, 3, 2**31 - 1, -(2**31)])
def test_words_that_do_not_exist(folder: Path, word: int) -> None:
    numbers(folder, "words.bin", "<i4", [word])
    refused(folder, r"words.bin has word numbers outside 0 to 2")


@pytest.mark.parametrize(
    "borders", [[1, 0], [0, 9, 3], [-1], [0, 2**62], [-(2**63), 2**63 - 1], [0, 8, 0, 8, 0]]
)
def test_borders_out_of_order(folder: Path, borders: list[int]) -> None:
    numbers(folder, "indptr.bin", "<i8", borders)
    refused(folder, "indptr.bin has offsets")


def test_borders_beyond_the_end(folder: Path) -> None:
    numbers(folder, "indptr.bin", "<i8", [100, 101, 102, 103, 104])
    refused(folder, "indptr.bin has offsets")


def test_documents_that_overlap(folder: Path) -> None:
    """A small file must not be able to ask for much memory."""
    archive = Archive.open(folder)
    numbers(folder, "indptr.bin", "<i8", [0, archive.facts.n_entries] * 2)
    assert len(archive.bags(np.array([0]))) == 1
    with pytest.raises(StoreError, match=r"indptr.bin has offsets"):
        archive.bags(np.array([0, 2]))


@pytest.mark.parametrize("order", [[0, 0, 1, 2], [0, 1, 2, 4], [-1, 0, 1, 2]])
def test_orders_that_are_none(folder: Path, order: list[int]) -> None:
    numbers(folder, "origin.bin", "<i8", order)
    refused(folder, "origin.bin is not a permutation")


def test_names_of_places_that_do_not_exist(folder: Path) -> None:
    archive = Archive.open(folder)
    numbers(folder, "origin.bin", "<i8", [-5])
    with pytest.raises(StoreError, match="not a permutation"):
        archive.name(0)


@pytest.mark.parametrize("count", [np.nan, np.inf, -1.0, 0.0])
def test_counts_that_are_none(tmp_path: Path, count: float) -> None:
    folder = tmp_path / "a"
    Archive.build(np.array([[0.5, 1.5]]), folder)
    numbers(folder, "counts.bin", "<f8", [count])
    refused(folder, "counts.bin has counts that are not positive")


def test_a_file_cut_short_after_opening(folder: Path) -> None:
    archive = Archive.open(folder)
    (folder / "words.bin").write_bytes(b"")
    with pytest.raises(StoreError, match=r"words.bin is shorter than it was"):
        _ = archive.shards()[0].bags
    with pytest.raises(StoreError, match=r"words.bin cannot be mapped"):
        archive.bags(np.array([2, 0]))


HOSTILE_META = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xfe\xff",
    "deep": b"[" * 100_000,
    "a number": b"7",
    "a list": b"[]",
    "nothing": b"{}",
    "another format": b'{"format": "zip"}',
    "a later version": b'{"format": "softcount archive", "format_version": 2}',
    "no checksum": b'{"format": "softcount archive", "format_version": 1}',
}


@pytest.mark.parametrize("raw", HOSTILE_META.values(), ids=HOSTILE_META)
def test_hostile_meta(folder: Path, raw: bytes) -> None:
    (folder / "meta.json").write_bytes(raw)
    refused(folder, "meta.json")


def test_meta_that_is_huge(folder: Path) -> None:
    os.truncate(folder / "meta.json", archives.LARGEST_META + 1)
    refused(folder, "is too large")


def test_a_changed_fact_without_a_new_checksum(folder: Path) -> None:
    raw = (folder / "meta.json").read_text()
    (folder / "meta.json").write_text(raw.replace('"shuffle": 0', '"shuffle": 1'))
    refused(folder, "does not match its own checksum")


STAMP = [1, "0" * 64]
FORGED: list[dict[str, Any]] = [
    {"n_documents": 0},
    {"n_documents": -4},
    {"n_documents": 5},
    {"n_documents": 4.0},
    {"n_documents": True},
    {"n_documents": 10**30},
    {"n_words": 2},
    {"n_words": 4},
    {"n_words": 2**31},
    {"n_words": "3"},
    {"n_entries": 2**55},
    {"n_entries": None},
    {"tokens": "many"},
    {"tokens": -1.0},
    {"counts": "<f8"},
    {"counts": "O"},
    {"counts": ["<u2"]},
    {"shards": []},
    {"shards": [0]},
    {"shards": [0, 5]},
    {"shards": [1, 4]},
    {"shards": [0, 3, 2, 4]},
    {"shards": [0, 2, 2, 4]},
    {"shards": {"0": 4}},
    {"sources": [["a", 3]]},
    {"sources": [["a"]]},
    {"sources": [[4, "a"]]},
    {"shuffle": None},
    {"shuffle": -1},
    {"vectorizer": "pickle"},
    {"wanted": []},
    {"wanted": {"sources": 1}},
    {"wanted": {"min_count": 1, "max_share": {}, "max_words": None, "stop_words": 0}},
    {"files": {}},
    {"files": {"../other": STAMP}},
    {"files": {"words.bin": STAMP}},
    {"files": {"words.bin": "x"}},
    {"files": 7},
]


@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_forged_facts(folder: Path, changes: dict[str, Any]) -> None:
    forge(folder, **changes)
    refused(folder)


def test_a_missing_fact(folder: Path) -> None:
    for name in ("tokens", "files", "vectorizer"):
        whole = (folder / "meta.json").read_text()
        said = json.loads(whole)
        del said["sha256"], said[name]
        (folder / "meta.json").write_text(json.dumps(said | {"sha256": archives._digest(said)}))
        refused(folder, f"{name} is missing")
        (folder / "meta.json").write_text(whole)


@pytest.mark.parametrize("described", [{}, {"custom": True}, {"analyzer": "os.system"}])
def test_a_forged_vectorizer(folder: Path, described: dict[str, Any]) -> None:
    forge(folder, vectorizer=described)
    with pytest.raises(StoreError):
        use(folder)


@pytest.mark.parametrize("text", ["[", "7", '["a", "b"]', '["a", "a", "b"]', "[1, 2, 3]", "{}"])
def test_forged_vocabularies(folder: Path, text: str) -> None:
    said = json.loads((folder / "meta.json").read_text())
    (folder / "vocabulary.json").write_text(text)
    forge(folder, files=said["files"] | {"vocabulary.json": [len(text), ""]})
    refused(folder, r"vocabulary.json is not a list")


def test_what_is_no_archive(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "there is no archive")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "there is no archive")
    refused(tmp_path, "meta.json")
