"""The store: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file

from softcount.core import store
from softcount.core.errors import StoreError
from tests.core.stored import ARRAYS, META, SIGNATURE, same, write


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return write(tmp_path / "model.softcount")


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

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        store.write(tmp_path / "m", "k", {}, {}, "")


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
