"""Columns on disk are read as the arrays that they stand for; damaged and hostile ones are not."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import multiprocessing
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from softcount.core import records
from softcount.core.drafts import open_whole_folder
from softcount.core.errors import DataError, StoreError
from softcount.text import disk
from softcount.text.corpora import build_corpus, in_parts, open_corpus
from softcount.text.disk import CorpusFolder, DiskArray, StoredColumn, new_corpus
from softcount.text.sequences import sequences

quick = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXT = ["the dog barks", "", "a dog and the cat", "the end", "", "cat"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sentences in several files."""
    monkeypatch.setattr(disk, "SHARD_BYTES", 1)
    monkeypatch.setattr(disk, "BLOCK", 2)
    build_corpus({"a.txt": TEXT[:4], "b.txt": TEXT[4:]}, tmp_path / "corpus", "sentences")
    assert len(list((tmp_path / "corpus").glob("shard-*"))) == 3
    return tmp_path / "corpus"


def write(folder: Path, values: np.ndarray[Any, Any], pieces: list[int]) -> DiskArray:
    """A column, in a file for each piece: of that many rows."""
    shutil.rmtree(folder, ignore_errors=True)
    column = StoredColumn(
        values.dtype.newbyteorder("<").str.replace("<u1", "|u1"), values.shape[1:]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "SHARD_BYTES", 0)
        with new_corpus(folder, "numbers", {"x": column}) as writer:
            for end, n in zip(np.cumsum(pieces), pieces, strict=True):
                writer.append(1, x=values[end - n : end])
    return CorpusFolder.open(folder).column("x")


@st.composite
def columns(draw: Any) -> tuple[np.ndarray[Any, Any], list[int]]:
    pieces = draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    dtype = draw(st.sampled_from(["u1", "u2", "i4", "i8", "f4", "f8"]))
    n = sum(pieces)
    values = np.arange(1, n * math.prod(shape) + 1).reshape(n, *shape).astype(dtype)
    return values, pieces


@quick
@given(columns(), st.data())
def test_read_as_an_array(
    tmp_path: Path, column: tuple[np.ndarray[Any, Any], list[int]], data: Any
) -> None:
    values, pieces = column
    x, n = write(tmp_path / "x", values, pieces), len(values)
    assert (x.shape, x.dtype, len(x), x.ndim) == (values.shape, values.dtype, n, values.ndim)
    assert x.nbytes == values.nbytes
    ends = st.none() | st.integers(-n - 2, n + 2)
    where = slice(
        data.draw(ends), data.draw(ends), data.draw(st.sampled_from([None, 1, 2, -1, -3]))
    )
    numbers = data.draw(st.lists(st.integers(-n, n - 1), max_size=9)) if n else []
    truth = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    for rows in (where, numbers, np.array(numbers, np.int32), np.array(truth, bool), slice(None)):
        found, wanted = x[rows], values[[] if isinstance(rows, list) and not rows else rows]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    for row in numbers:
        np.testing.assert_array_equal(x[row], values[row])
        np.testing.assert_array_equal(x[np.int64(row)], values[row])
    np.testing.assert_array_equal(np.asarray(x), values)
    assert np.asarray(x, np.float64).dtype == np.float64
    assert [len(part) for part in x.parts()] == pieces
    np.testing.assert_array_equal(np.array(list(x)).reshape(values.shape), values)


def test_what_selects_no_rows(tmp_path: Path) -> None:
    x = write(tmp_path / "x", np.arange(6.0).reshape(3, 2), [2, 1])
    for row in (3, -4, 99):
        with pytest.raises(IndexError):
            x[row]
    wrong: list[Any] = [
        *([0, 3], [-4], [1.0], [True], [True] * 4, [[0, 1]]),
        *((0, 1), (slice(None), 0), None, ..., "rows", np.array(["a"]), np.zeros((1, 2), int)),
    ]
    for rows in wrong:
        with pytest.raises(IndexError):
            x[rows]


def test_renumbered(tmp_path: Path) -> None:
    values = np.array([2, 0, 1, 1, 2], np.int32)
    x = write(tmp_path / "x", values, [2, 3])
    once, twice = np.array([7, -1, 5], np.int64), np.arange(8)[::-1].astype(np.int16)
    np.testing.assert_array_equal(x.renumbered(once)[:], once[values])
    both = x.renumbered(np.array([7, 6, 5])).renumbered(twice)
    np.testing.assert_array_equal(both[[4, 0, 1]], twice[np.array([7, 6, 5])[values[[4, 0, 1]]]])
    assert both.dtype == both[:0].dtype == np.int16
    assert np.concatenate(list(both.parts())).tolist() == both[:].tolist()


@quick
@given(st.lists(st.integers(-6, 5), max_size=8))
def test_sentences_selected(folder: Path, numbers: list[int]) -> None:
    text, plain = open_corpus(folder), sequences(TEXT)
    assert text.words == plain.words
    assert len(text) == len(plain)
    some, same = text.select(numbers), plain.select(numbers)
    assert some.tokens.tolist() == same.tokens.tolist()
    assert some.indptr.tolist() == same.indptr.tolist()
    names = ["a.txt:1", "a.txt:2", "a.txt:3", "a.txt:4", "b.txt:1", "b.txt:2"]
    assert [text.name(n) for n in range(6)] == names
    assert [text.select(numbers).name(n) for n in range(len(numbers))] == [
        f"sentence {n % 6}" for n in numbers
    ]
    assert [text.sentence(n) for n in range(6)] == [line.split() for line in TEXT]


def test_in_parts(folder: Path) -> None:
    text = open_corpus(folder)
    parts = list(in_parts(text, 4))
    assert [len(part) for part in parts] == [4, 2]
    assert [part.sentence(n) for part in parts for n in range(len(part))] == [
        line.split() for line in TEXT
    ]
    for size in (0, -1):
        with pytest.raises(DataError, match="size"):
            next(in_parts(text, size))


def test_another_vocabulary(folder: Path) -> None:
    text, like = open_corpus(folder), ["cat", "bird", "dog"]
    new, plain = sequences(text, like=like, lowercase=True), sequences(TEXT, like=like)
    assert isinstance(new.tokens, DiskArray)
    assert new.words == plain.words
    assert new.tokens[:].tolist() == plain.tokens.tolist()


# vectors
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sequences_of_vectors(tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SHARD_BYTES", 64)
    monkeypatch.setattr(disk, "BLOCK", 3)
    items: list[Any] = [[], [], [], np.zeros((0, 2)), [1.5, 2.0], [[3, 4], [5, 6]], (), [7, 8]]
    made = build_corpus(items, tmp_path / "x", "vectors", dtype=dtype)
    assert made.lengths.tolist() == [0, 0, 0, 0, 1, 2, 0, 1]
    assert made.rows[:].tolist() == [[1.5, 2], [3, 4], [5, 6], [7, 8]]
    assert made.rows[:].dtype == dtype
    again = made.select([5, -4])
    assert again.rows.tolist() == [[3, 4], [5, 6], [1.5, 2]]
    assert (made.name(3), len(made.select(slice(4, 99)))) == ("sequence 3", 4)


def test_points_are_those_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SHARD_BYTES", 1000)
    monkeypatch.setattr(disk, "BLOCK", 16)
    x = np.random.default_rng(0).normal(size=(100, 3))
    made = build_corpus({"a": x[:40], "b": x[40:]}, tmp_path / "x", "vectors")
    assert (made.rows[:] == x).all()
    assert (made.lengths == 1).all()
    assert made.name(40) == "b:1"


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (["abc", [1.0]], "sequence 0 is 'abc'"),
        ([[1.0], None], "sequence 1 is None"),
        ([[1.0], 7.0], "sequence 1 is 7.0"),
        ([[1.0], [math.nan]], "sequence 1 is"),
        ([[1.0], [1e60]], "sequence 1 has a value"),
        ([[1.0], [[[1.0]]]], "sequence 1 is"),
        ([[1.0], np.zeros((1, 0, 2))], "sequence 1 is"),
        ([[1.0], [1.0, 2.0]], "sequence 1 has 2 dimensions, not 1"),
        ([[1.0]] * 5 + [[[1.0, 2.0]]], "sequence 5 has 2 dimensions, not 1"),
        ([[], []], "not a single vector"),
        ([], "there are no vectors"),
        ("text", "the data are"),
        (7, "the data are"),
    ],
)
def test_bad_vectors(
    tmp_path: Path, items: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "BLOCK", 3)
    with pytest.raises(DataError, match=said) as caught:
        build_corpus(items, tmp_path / "x", "vectors")
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_beyond_float32(tmp_path: Path) -> None:
    items = [np.zeros((2, 1)), [[1.0], [1e40]]]
    with pytest.raises(DataError, match="sequence 1 is beyond"):
        build_corpus(items, tmp_path / "x", "vectors", dtype="float32")


# building
def test_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no sentences"):
        build_corpus(iter([]), tmp_path / "x", "sentences")
    with pytest.raises(DataError, match="kind='nouns' is unknown"):
        build_corpus(TEXT, tmp_path / "x", "nouns")
    with pytest.raises(DataError, match="is not a name"):
        build_corpus({7: TEXT}, tmp_path / "x", "sentences")
    with pytest.raises(DataError, match=r"x\.txt:2 is 7"):
        build_corpus({"": TEXT, "x.txt": ["a", 7]}, tmp_path / "x", "sentences")
    assert list(tmp_path.iterdir()) == []


def test_empty_sentences_alone(tmp_path: Path) -> None:
    text = build_corpus(["", ""], tmp_path / "x", "sentences")
    assert (text.words, text.lengths.tolist(), text.tokens[:].tolist()) == ([], [0, 0], [])


def test_parts_without_names_between_named_ones(tmp_path: Path) -> None:
    data = {"": ["a", "b"], Path("x.txt"): ["c", "d"], "y.txt": ["e"]}
    text = build_corpus(data, tmp_path / "x", "sentences")
    wanted = ["sentence 0", "sentence 1", "x.txt:1", "x.txt:2", "y.txt:1"]
    assert [text.name(n) for n in range(5)] == wanted


def test_what_is_there_stays(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreError, match="already exists"):
        build_corpus(TEXT, folder, "sentences")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_same_items_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    build_corpus({"a.txt": TEXT[:4], "b.txt": TEXT[4:]}, tmp_path / "again", "sentences")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError, MemoryError])
def test_an_interrupted_build_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def items() -> Iterator[str]:
        yield from ["a b"] * 5000
        raise error("now")

    with pytest.raises(error, match="now"):
        build_corpus(items(), tmp_path / "x", "sentences")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full disk")
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def full(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "x" in mode and path.name.startswith("shard-00002"):
            return real(Path("/dev/full"), "wb", buffering=0)
        return real(path, mode, *more, **named)

    monkeypatch.setattr(disk, "SHARD_BYTES", 24)
    monkeypatch.setattr(disk, "BLOCK_SIZE", 10)
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        build_corpus(TEXT * 9, tmp_path / "x", "sentences")
    assert "free space" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_long_item_is_a_block_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "BLOCK_SIZE", 100)
    seen: list[int] = []
    lines = ["a"] * 99 + ["b " * 60, "c"]
    build_corpus(lines, tmp_path / "x", "sentences", on_progress=seen.append)
    assert seen == [100, 101]


# copies
def check_reads(made: Any) -> None:
    assert made.tokens[:].tolist() == sequences(TEXT).tokens.tolist()


def test_pickles_records_and_copies(folder: Path) -> None:
    text = open_corpus(folder)
    raw = pickle.dumps(text)
    assert len(raw) < 4000
    for again in (pickle.loads(raw), copy.deepcopy(text), copy.copy(text)):
        check_reads(again)
        assert isinstance(again.tokens, DiskArray)
    structure, arrays = records.pack(text)
    check_reads(records.unpack(structure, arrays))
    assert records.digest(text) == records.digest(open_corpus(folder))


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes(folder: Path, way: str) -> None:
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {way} here")
    text = open_corpus(folder)
    check_reads(text)
    with multiprocessing.get_context(way).Pool(1) as pool:
        pool.apply(check_reads, (text,))


def test_another_corpus_in_the_same_folder(folder: Path, tmp_path: Path) -> None:
    text = open_corpus(folder)
    raw = pickle.dumps(text)
    check_reads(text)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="there is no corpus"):
        check_reads(text)
    other = [line.replace("dog", "fox") for line in TEXT]  # of the same sizes
    build_corpus(other, folder, "sentences")
    for each in (text, pickle.loads(raw)):
        with pytest.raises(StoreError, match="not the one that these data are from"):
            check_reads(each)
    assert open_corpus(folder).words[1] == "fox"
    assert pickle.loads(pickle.dumps(open_corpus(folder))).tokens[:3].tolist() == [0, 1, 2]
    shutil.rmtree(folder)
    (tmp_path / "elsewhere").rename(folder)
    check_reads(text)
    check_reads(pickle.loads(raw))


def test_a_copy_of_the_folder_elsewhere(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    check_reads(open_corpus(tmp_path / "copy"))
    assert (
        open_corpus(tmp_path / "copy").tokens.corpus.digest
        == open_corpus(folder).tokens.corpus.digest
    )


def test_a_relative_name_is_kept_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    text = open_corpus("corpus")
    monkeypatch.chdir("/")
    check_reads(text)


# damage
def use(folder: Path) -> None:
    """Everything that a corpus can be asked for."""
    text = open_corpus(folder)
    _ = text.tokens[:], [text.sentence(n) for n in range(len(text))], list(in_parts(text, 2))


def refused(folder: Path, match: str | None = None, how: Callable[[Path], None] = use) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        how(folder)
    assert caught.value.hint
    assert str(folder) in caught.value.message


def forge(folder: Path, **changes: Any) -> None:
    """What a forger would write: a checksum that is right, whatever else is wrong."""
    path = folder / "meta.json"
    said = json.loads(path.read_text()) | changes
    said.pop("sha256")
    digest = sha256(json.dumps(said, sort_keys=True).encode("ascii")).hexdigest()
    path.write_text(json.dumps(said | {"sha256": digest}))


def forge_shard(folder: Path, number: int, **arrays: Any) -> None:
    """Other numbers in a file, with its size and checksum in the metadata."""
    path = folder / f"shard-{number:05d}.safetensors"
    save_file(load_file(path) | arrays, path)
    said = json.loads((folder / "meta.json").read_text())
    said["shards"][number] = [path.stat().st_size, sha256(path.read_bytes()).hexdigest()]
    forge(folder, shards=said["shards"])


def facts_of(folder: Path) -> Any:
    return json.loads((folder / "meta.json").read_text())


def test_an_intact_corpus_is_not_refused(folder: Path) -> None:
    use(folder)
    CorpusFolder.open(folder).verify()
    forge(folder)
    use(folder)
    forge_shard(folder, 0)
    use(folder)
    CorpusFolder.open(folder).verify()


FILES = ("meta.json", "words.json", "shard-00000.safetensors", "shard-00002.safetensors")


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


@quick
@given(name=st.sampled_from(FILES), place=st.integers(0, 10**6), value=st.integers(1, 255))
def test_any_changed_byte_is_found(folder: Path, name: str, place: int, value: int) -> None:
    raw = (folder / name).read_bytes()
    changed = bytearray(raw)
    changed[place % len(raw)] ^= value
    (folder / name).write_bytes(changed)
    try:
        if name != "meta.json" or not _says_the_same(raw, bytes(changed)):
            refused(folder, how=lambda folder: CorpusFolder.open(folder).verify())
    finally:
        (folder / name).write_bytes(raw)


def _says_the_same(one: bytes, other: bytes) -> bool:
    """JSON has blanks that mean nothing."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


@pytest.mark.parametrize("place", range(0, 200, 7))
def test_a_damaged_header_is_no_crash(folder: Path, place: int) -> None:
    path = folder / "shard-00000.safetensors"
    raw = bytearray(path.read_bytes())
    if place < len(raw):
        raw[place] ^= 0x55
    path.write_bytes(raw)
    with contextlib.suppress(StoreError):
        use(folder)  # numbers within range can only be found by verify


HOSTILE_META = {
    "not JSON": b"{",
    "not UTF-8": b"\xff\xfe\xff",
    "deep": b"[" * 100_000,
    "a number": b"7",
    "a list": b"[]",
    "nothing": b"{}",
    "another format": b'{"format": "zip"}',
    "a later version": b'{"format": "softcount corpus", "format_version": 2}',
    "no checksum": b'{"format": "softcount corpus", "format_version": 1}',
}


@pytest.mark.parametrize("raw", HOSTILE_META.values(), ids=HOSTILE_META)
def test_hostile_meta(folder: Path, raw: bytes) -> None:
    (folder / "meta.json").write_bytes(raw)
    refused(folder, "meta.json")


def test_meta_that_is_huge(folder: Path) -> None:
    os.truncate(folder / "meta.json", disk.LARGEST_META + 1)
    refused(folder, "is too large")


def test_a_changed_fact_without_a_new_checksum(folder: Path) -> None:
    raw = (folder / "meta.json").read_text()
    assert '"n_items": 6' in raw
    (folder / "meta.json").write_text(raw.replace('"n_items": 6', '"n_items": 5'))
    refused(folder, "does not match its own checksum")


STAMP = [1, "0" * 64]
TOKENS = {"dtype": "<i4", "shape": [], "rows": [3, 5, 2, 1]}
FORGED: list[dict[str, Any]] = [
    *({"n_items": n} for n in (0, -4, 5, 7, 6.0, True, 10**30, None, "6")),
    *({"kind": kind} for kind in ("pears", "vectors", None, 7, ["sentences"], "../other", "")),
    *({"sources": s} for s in ([["a"]], [[6, "a"]], [["a", -1]], [["a", 1.5]], 7, ["ab"], [7])),
    *({"about": about} for about in (None, [], "x")),
    *({"shards": s} for s in ([], [STAMP], [STAMP] * 4, {"0": STAMP}, [["x", 1]] * 4, 7, [[]])),
    *({"names": n} for n in ({}, {"../other": STAMP}, {"words": STAMP}, {"words": "x"}, 7, [])),
    {"names": {"/etc/passwd": STAMP}},
    {"names": {"": STAMP}},
    *({"columns": c} for c in ({}, [], 7, {"tokens": TOKENS}, {"tokens": 7}, {"tokens": {}})),
]


@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_forged_facts(folder: Path, changes: dict[str, Any]) -> None:
    forge(folder, **changes)
    refused(folder)


@pytest.mark.parametrize("column", ["tokens", "lengths"])
@pytest.mark.parametrize(
    "change",
    [
        *({"dtype": dtype} for dtype in ("<f8", "<f4", "O", "|V8", "<i8", "|u1", None, ["<i4"], 7)),
        *({"shape": shape} for shape in ([1], [2], [0], [2**54], [-1], [2.0], "x", None, 7)),
        *({"rows": rows} for rows in ([], [11], [9, 9, 9, 9], [2**55, 0, 0, 0], [-1, 9, 2, 1], 7)),
    ],
    ids=str,
)
def test_forged_columns(folder: Path, column: str, change: dict[str, Any]) -> None:
    said = facts_of(folder)["columns"]
    forge(folder, columns=said | {column: said[column] | change})
    refused(folder)


@pytest.mark.parametrize("token", [-1, 7, 2**31 - 1, -(2**31)])
def test_words_that_do_not_exist(folder: Path, token: int) -> None:
    forge_shard(folder, 0, tokens=np.array([0, token, 1], np.int32))
    refused(folder, "tokens out of range")


@pytest.mark.parametrize("lengths", [[-1, 4], [2, 0], [4, 0], [2**31 - 1, 3], [0, 3, 0]])
def test_lengths_that_do_not_fit(folder: Path, lengths: list[int]) -> None:
    before = load_file(folder / "shard-00000.safetensors")
    assert before["lengths"].tolist() == [3, 0]
    forge_shard(folder, 0, lengths=np.array(lengths, np.int32))
    refused(folder)


def test_lengths_that_overflow(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    half = 2**62
    columns = {"tokens": StoredColumn("<i4"), "lengths": StoredColumn("<i8")}
    with new_corpus(folder, "sentences", columns) as writer:
        lengths = np.array([half, half, half, half, 2])
        writer.append(5, tokens=np.zeros(2, np.int32), lengths=lengths)
        writer.write_names("words", ["a"])
    refused(folder, "lengths out of range")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_vectors_that_are_none(tmp_path: Path, value: float) -> None:
    build_corpus(np.zeros((4, 2)), tmp_path / "x", "vectors")
    forge_shard(tmp_path / "x", 0, rows=np.array([[0.0, 1], [2, 3], [value, 0], [0, 0]]))
    made = open_corpus(tmp_path / "x")
    with pytest.raises(StoreError, match="rows out of range"):
        made.select([2])


@pytest.mark.parametrize(
    "other",
    [np.zeros(4), np.zeros((4, 3)), np.zeros((3, 2)), np.zeros((4, 2), np.float32)],
    ids=lambda other: f"{other.dtype}{other.shape}",
)
def test_arrays_of_another_form(tmp_path: Path, other: Any) -> None:
    build_corpus(np.zeros((4, 2)), tmp_path / "x", "vectors")
    forge_shard(tmp_path / "x", 0, rows=other, more=np.zeros(99))
    with pytest.raises(StoreError, match="not intact"):
        open_corpus(tmp_path / "x").select(slice(None))


def test_a_column_that_is_missing(folder: Path) -> None:
    path = folder / "shard-00000.safetensors"
    arrays = load_file(path)
    arrays["others"] = arrays.pop("tokens")
    save_file(arrays, path)
    said = facts_of(folder)
    said["shards"][0] = [path.stat().st_size, ""]
    forge(folder, shards=said["shards"])
    refused(folder, "not intact")


@pytest.mark.parametrize("text", ["[", "7", '["a", "a"]', "[1, 2]", "{}", '"words"', "[" * 9999])
def test_forged_names(folder: Path, text: str) -> None:
    (folder / "words.json").write_text(text)
    forge(folder, names={"words": [len(text), sha256(text.encode()).hexdigest()]})
    refused(folder, r"words.json is not a list")


def test_fewer_names(folder: Path) -> None:
    text = '["a", "b"]'
    (folder / "words.json").write_text(text)
    forge(folder, names={"words": [len(text), sha256(text.encode()).hexdigest()]})
    refused(folder, "tokens out of range")


def test_a_file_cut_short_after_opening(folder: Path) -> None:
    text = open_corpus(folder)
    os.truncate(folder / "shard-00000.safetensors", 20)
    with pytest.raises(StoreError, match=r"shard-00000.safetensors is not intact"):
        text.tokens[:1]
    (folder / "shard-00000.safetensors").unlink()
    with pytest.raises(StoreError, match="cannot read"):
        text.tokens[:1]


def test_a_link_to_a_folder_is_one(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    use(tmp_path / "link")


def test_what_is_no_corpus(tmp_path: Path) -> None:
    refused(tmp_path / "none", "there is no corpus")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "there is no corpus")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty")
    with open_whole_folder(tmp_path / "other") as folder:
        (folder / "meta.json").write_text('{"format": "softcount archive"}')
    assert disk.is_corpus(tmp_path / "other")
    assert not disk.is_corpus(tmp_path / "file")
    for name in ("a\0b", "x" * 5000):
        assert not disk.is_corpus(name)
