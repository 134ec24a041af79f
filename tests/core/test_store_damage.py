"""The store: damaged and hostile files are refused, one and all."""

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
from safetensors.numpy import save_file

from softcount.core import store
from softcount.core.errors import StoreError
from tests.core.stored import same, write


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return write(tmp_path / "model.softcount")


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
