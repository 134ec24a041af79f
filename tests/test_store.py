"""The store: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from softcount import store
from softcount.errors import StoreError

ARRAYS = {
    "flip": np.array([[0.25, 0.75], [1.0, np.nan]]),
    "which": np.array([3, 1, 2], dtype=np.int32),
    "scalar": np.array(7.0, dtype=np.float32),
    "none": np.zeros((0, 4)),
    "odd bytes": np.arange(5, dtype=np.uint8),
}
META: dict[str, Any] = {"names": ["α", "b\ud800", ""], "deep": {"n": 3, "x": 0.1, "no": None}}
SIGNATURE = "story · EM · seed 0"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.softcount"
    store.write(path, "story", ARRAYS, META, SIGNATURE)
    return path


def same(stored: store.Stored) -> bool:
    return (
        stored.kind == "story"
        and stored.signature == SIGNATURE
        and stored.meta == META
        and stored.arrays.keys() == ARRAYS.keys()
        and all(
            stored.arrays[n].dtype == a.dtype
            and stored.arrays[n].shape == a.shape
            and stored.arrays[n].tobytes() == a.tobytes()
            for n, a in ARRAYS.items()
        )
    )


def test_what_goes_in_comes_out(saved: Path) -> None:
    assert same(store.read(saved))
    assert same(store.read(saved, kind="story"))


def test_arrays_are_free_of_the_file(saved: Path) -> None:
    stored = store.read(saved)
    with saved.open("r+b") as file:
        file.write(b"\xff" * saved.stat().st_size)
    assert same(stored)
    assert all(array.flags.writeable for array in stored.arrays.values())


def test_the_file_may_be_read_by_whoever_may_read_new_files(saved: Path) -> None:
    other = saved.with_name("other")
    other.touch()
    assert saved.stat().st_mode == other.stat().st_mode


def test_the_same_model_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "again"
    store.write(other, "story", dict(reversed(ARRAYS.items())), META, SIGNATURE)
    assert other.read_bytes() == saved.read_bytes()


def test_the_safetensors_library_reads_our_files(saved: Path) -> None:
    arrays = load_file(saved)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
    with safe_open(saved, framework="np") as file:
        assert json.loads(file.metadata()["softcount"])["meta"] == META


def test_layouts_are_normalised(tmp_path: Path) -> None:
    plain = np.arange(12.0).reshape(3, 4)
    turned = {"big": plain.astype(">f8"), "turned": plain.T, "strided": plain[:, ::2]}
    store.write(tmp_path / "m", "k", turned, {}, "")
    for name, array in store.read(tmp_path / "m").arrays.items():
        np.testing.assert_array_equal(array, turned[name])


@settings(max_examples=100, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda name: name != "__metadata__"),
        hnp.arrays(
            st.sampled_from([np.float64, np.float32, np.int64, np.uint16, np.int8]),
            hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
        ),
        max_size=4,
    ),
    words=st.lists(st.text()),
    signature=st.text(),
)
def test_any_numbers_and_words_survive(
    tmp_path_factory: pytest.TempPathFactory, arrays: Any, words: Any, signature: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "m"
    store.write(path, "k", arrays, {"words": words}, signature)
    stored = store.read(path)
    assert (stored.meta, stored.signature) == ({"words": words}, signature)
    assert stored.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert stored.arrays[name].shape == array.shape
        assert stored.arrays[name].tobytes() == array.tobytes()


# what is refused when writing


@pytest.mark.parametrize(
    "array",
    [
        np.array([{"a": 1}], dtype=object),
        np.array(["word"]),
        np.array([True]),
        np.array([1j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(2, dtype=[("a", "f8")]),
    ],
    ids=["object", "text", "bool", "complex", "date", "record"],
)
def test_only_numbers_are_stored(tmp_path: Path, array: Any) -> None:
    with pytest.raises(StoreError, match="cannot be stored") as caught:
        store.write(tmp_path / "m", "k", {"a": array}, {}, "")
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_the_reserved_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="__metadata__"):
        store.write(tmp_path / "m", "k", {"__metadata__": np.ones(1)}, {}, "")


def circular() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    return loop


@pytest.mark.parametrize("meta", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}, circular()])
def test_meta_must_be_json(tmp_path: Path, meta: Any) -> None:
    with pytest.raises(StoreError, match="JSON"):
        store.write(tmp_path / "m", "k", {}, meta, "")


def test_keys_of_meta_come_back_as_strings(tmp_path: Path) -> None:
    store.write(tmp_path / "m", "k", {}, {"x": {1: "a", "1": "b", None: 0.5}}, "")
    assert store.read(tmp_path / "m").meta == {"x": {"1": "b", "null": 0.5}}


def test_a_header_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        store.write(tmp_path / "m", "k", {}, {"long": "x" * 100_000_000}, "")
    assert list(tmp_path.iterdir()) == []


def test_a_name_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="surrogates not allowed"):
        store.write(tmp_path / "m", "k", {"\ud800": np.ones(1)}, {}, "")
    assert list(tmp_path.iterdir()) == []


# failures while writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_old_file_survives_a_failed_write(
    saved: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    before = saved.read_bytes()

    def fail(*_: Any) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        expected = StoreError if isinstance(failure, OSError) else KeyboardInterrupt
        with pytest.raises(expected):
            store.write(saved, "story", {"flip": np.zeros(1000)}, {}, "")
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_a_new_file_replaces_the_old(saved: Path) -> None:
    store.write(saved, "story", {"flip": np.zeros(2)}, {}, "newer")
    assert store.read(saved).signature == "newer"
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        store.write(tmp_path / "no" / "m", "k", {}, {}, "")


def test_a_target_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        store.write(tmp_path / "m", "k", {}, {}, "")
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may write")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="cannot write"):
            store.write(tmp_path / "m", "k", {}, {}, "")
    finally:
        tmp_path.chmod(0o700)


def test_a_failure_to_open_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        store.write(tmp_path / "m", "k", {}, {}, "")


# damaged and hostile files


def refused(path: Path, match: str | None = None) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        store.read(path)
    assert caught.value.hint
    assert str(path) in caught.value.message


def packed(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def metadata(arrays: Any = (), **other: Any) -> dict[str, str]:
    """What a forger would write: a checksum that is right, whatever else is wrong."""
    facts = {"format_version": 1, "kind": "story", "signature": "", "meta": {}} | other
    return {"softcount": json.dumps({"sha256": store._digest(facts, dict(arrays))} | facts)}


def holding(place: Any, data: bytes = b"") -> bytes:
    return packed({"__metadata__": metadata(), "a": place}, data)


def forged(array: Any, tag: str) -> bytes:
    """A file that would be whole and right if its array were one that we store."""
    place = entry(tag, array.shape, (0, array.nbytes))
    return packed({"__metadata__": metadata({"a": array}), "a": place}, array.tobytes())


def entry(dtype: Any = "F64", shape: Any = (1,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HOSTILE = {
    "empty": b"",
    "short": b"\x01\x02",
    "text": b"this is no model, only some words that happen to be in a file",
    "pickle": pickle.dumps({"weights": [1.0, 2.0]}),
    "enormous header": struct.pack("<Q", 2**63) + b"{}",
    "header of no length": struct.pack("<Q", 0),
    "header past the end": struct.pack("<Q", 100) + b"{}",
    "header not JSON": packed(b"{'a': 1}"),
    "header not UTF-8": packed(b"\xff\xfe{}"),
    "header a list": packed([]),
    "header without end": packed(b"[" * 100_000),
    "header with a number of 10^5 digits": packed(b'{"a":' + b"9" * 100_000 + b"}"),
    "no metadata": packed({}),
    "metadata a list": packed({"__metadata__": ["format"]}),
    "another format": packed({"__metadata__": {"format": "pt"}}),
    "another version": packed({"__metadata__": metadata(format_version=2)}),
    "metadata of numbers": packed({"__metadata__": {"softcount": 1}}),
    "metadata twice": packed(b'{"__metadata__":{},"__metadata__":{}}'),
    "facts no JSON": packed({"__metadata__": {"softcount": "nonsense"}}),
    "facts a list": packed({"__metadata__": {"softcount": "[]"}}),
    "facts a number": packed({"__metadata__": {"softcount": "1"}}),
    "facts without end": packed({"__metadata__": {"softcount": "[" * 100_000}}),
    "facts missing": packed({"__metadata__": {"softcount": '{"format_version": 1}'}}),
    "no kind": packed({"__metadata__": metadata(kind=None)}),
    "meta a list": packed({"__metadata__": metadata(meta=[])}),
    "wrong checksum": packed({"__metadata__": metadata(sha256="0" * 64)}),
    "no checksum": packed({"__metadata__": metadata(sha256=None)}),
    "booleans": forged(np.array([True]), "BOOL"),
    "complex numbers": forged(np.array([1j], dtype=np.complex64), "C64"),
    "dtype BF16": forged(np.ones(1, np.uint16), "BF16"),
    "dtype F8": forged(np.ones(1, np.uint8), "F8_E4M3"),
    "entry a number": holding(3),
    "entry without shape": holding({"dtype": "F64"}),
    "dtype unknown": holding(entry("O"), b"x" * 8),
    "dtype a list": holding(entry([]), b"x" * 8),
    "shape negative": holding(entry(shape=[-1, -1]), b"x" * 8),
    "shape of text": holding(entry(shape="1"), b"x" * 8),
    "shape of booleans": holding(entry(shape=[True]), b"x" * 8),
    "shape of floats": holding(entry(shape=[1.0]), b"x" * 8),
    "shape enormous": holding(entry(shape=[2**40, 2**40], offsets=(0, 2**83)), b"x"),
    "shape that wraps round": holding(entry(shape=[2**61 + 1]), b"x" * 8),
    "shape empty but enormous": holding(entry(shape=[0, 2**70], offsets=(0, 0))),
    "shape empty but too large for numpy": holding(entry(shape=[0, 2**62], offsets=(0, 0))),
    "shape of 1000 axes": holding(entry(shape=[1] * 1000), b"x" * 8),
    "offsets of three": holding(entry(offsets=(0, 8, 9)), b"x" * 8),
    "offsets backwards": holding(entry(offsets=(8, 0)), b"x" * 8),
    "a gap": holding(entry(offsets=(8, 16)), b"x" * 16),
    "an overlap": packed({"__metadata__": metadata(), "a": entry(), "b": entry()}, b"x" * 8),
    "an array twice": packed(
        json.dumps({"__metadata__": metadata(), "a": entry(), "b": entry(offsets=(8, 16))})
        .replace('"b"', '"a"')
        .encode(),
        b"x" * 16,
    ),
    "cut short": holding(entry(), b"x" * 7),
    "bytes left over": holding(entry(), b"x" * 9),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile"
    path.write_bytes(HOSTILE[name])
    refused(path)


def test_a_forger_who_makes_no_mistake_is_read(tmp_path: Path) -> None:
    """Else the hostile files above might be refused for no more than a wrong checksum."""
    path = tmp_path / "m"
    path.write_bytes(forged(np.ones((2, 3)), "F64"))
    np.testing.assert_array_equal(store.read(path).arrays["a"], np.ones((2, 3)))


@pytest.mark.parametrize(
    ("old", "new"), [(b"[2,3]", b"[3,2]"), (b"F64", b"I64"), (b'"tab"', b'"tub"')]
)
def test_the_checksum_covers_form_and_name(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "m"
    store.write(path, "k", {"tab": np.ones((2, 3))}, {}, "")
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    refused(path, "checksum")


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    save_file({"weights": np.ones(3)}, tmp_path / "m")
    refused(tmp_path / "m", "not a softcount model")


def test_a_large_sparse_file_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 2**40))
        file.truncate(2**40 + 8)
    refused(path, "not an intact model file")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs to know its own size")
def test_a_file_larger_than_memory_is_refused(tmp_path: Path) -> None:
    import resource

    size = 2**31
    path = tmp_path / "m"
    with path.open("wb") as file:
        header = {"__metadata__": metadata(), "a": entry("U8", (size,), (0, size))}
        file.truncate(file.write(packed(header)) + size)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    room_for_the_map_alone = pages * resource.getpagesize() + size + size // 2
    resource.setrlimit(resource.RLIMIT_AS, (room_for_the_map_alone, hard))
    try:
        refused(path, "memory")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_missing_folder_and_pipe(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "cannot read")
    refused(tmp_path, "not a file")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a file")


def test_the_wrong_kind_is_named(saved: Path) -> None:
    with pytest.raises(StoreError, match="'story', not 'hmm'"):
        store.read(saved, kind="hmm")


def written(tmp: Path, content: bytes) -> Path:
    path = tmp / "fuzzed"
    path.write_bytes(content)
    return path


fuzz = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzz
@given(data=st.data())
def test_flipped_bits_never_pass_unseen(saved: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = written(saved.parent, bytes(content))
    try:
        stored = store.read(path)
    except StoreError:
        return
    assert same(stored)


@fuzz
@given(data=st.data())
def test_cut_or_grown_files_are_refused(saved: Path, data: st.DataObject) -> None:
    content = saved.read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    tail = data.draw(st.binary(max_size=20))
    if content[:cut] + tail != content:
        refused(written(saved.parent, content[:cut] + tail))
    refused(written(saved.parent, content + b"\0" + tail))


@fuzz
@given(content=st.binary(max_size=400))
def test_random_bytes_are_refused(saved: Path, content: bytes) -> None:
    refused(written(saved.parent, content))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@fuzz
@given(name=st.sampled_from(["__metadata__", "a"]), value=json_values, tail=st.binary(max_size=16))
def test_random_headers_are_refused(saved: Path, name: str, value: Any, tail: bytes) -> None:
    header = {"__metadata__": metadata(), name: value}
    refused(written(saved.parent, packed(header, tail)))


# loading by kind


class Tiny:
    """Stands for a model class: remembers what it was restored from."""

    def __init__(self, stored: store.Stored, given: dict[str, Any]) -> None:
        self.stored, self.given = stored, given

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Tiny:
        return cls(stored, given)


def test_load_finds_the_class_by_kind(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(store.LOADERS, "story", f"{__name__}:Tiny")
    model = store.load(saved, story="coins")
    assert type(model).__name__ == "Tiny"
    assert same(model.stored)
    assert model.given == {"story": "coins"}


def test_load_names_an_unknown_kind(tmp_path: Path) -> None:
    store.write(tmp_path / "m", "os:system", {}, {}, "")
    with pytest.raises(StoreError, match="unknown kind 'os:system'"):
        store.load(tmp_path / "m")
