"""Files in place of memory: spilled states, tables that are files, large model files."""

from __future__ import annotations

import errno
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

import softcount as sc
from softcount import samples
from softcount.align import data as align_data
from softcount.core import spill, store
from softcount.core.errors import StoreError
from softcount.core.spill import SpillFile, empty_table, large_tables_in_files, read_only
from softcount.core.types import EStep, Stats
from softcount.engines import Local
from softcount.text import build_corpus, open_corpus


@given(st.lists(st.tuples(st.integers(0, 6), st.lists(st.binary(max_size=40), max_size=3))))
@settings(max_examples=60, deadline=None)
def test_regions_hold_what_was_written_until_they_are_dropped(writes: Any) -> None:
    file, kept = SpillFile(), dict[int, Any]()
    most = 0
    for key, parts in writes:
        kept.pop(key, None)
        kept[key] = file.write(parts), parts
        most = max(most, len(kept))
        for region, expected in kept.values():
            assert [bytes(part) for part in region.read()] == expected
            assert [bytes(part) for part in region.map()] == expected
    assert file.size <= sum(sum(map(len, parts)) for _, parts in writes)


def test_space_is_used_again() -> None:
    file = SpillFile()
    for n in range(50):
        region = file.write([np.full(100, n)])
        assert (np.frombuffer(region.read()[0], np.int64) == n).all()
        del region
        gc.collect()
    assert file.size == 800


def test_tables_are_files_if_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "LARGE", 800)
    small, large = empty_table((10, 10)), empty_table((10, 11))
    assert not isinstance(small, np.memmap)
    assert isinstance(large, np.memmap)
    large[:] = 2.0
    table = read_only(large)
    assert table.sum() == 220.0
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1.0


class Lazy:
    """Shards made on access: no list, so that their states may go to a file."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: Any) -> Any:
        return range(5)[index]


def count(params: Any, shard: int, how: EStep, local: Any) -> Stats:
    """Each state is the one before, plus the number of the shard, and as an odd view of it."""
    before = np.zeros((4, 5000)) if local is None else local["table"]
    table = np.asfortranarray(before + shard)
    return Stats({"sum": table.sum(axis=0)}, local={"table": table, "n": shard})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("large", [0, 400_000, 1 << 30])
def test_states_of_shards_may_be_in_a_file(
    threads: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "LARGE", large)
    with Local(threads).open(Lazy()) as session:  # type: ignore[arg-type]
        for step in range(1, 4):
            session.expect(count, {}, EStep())
            if step == 2:
                snapshot = session.snapshot()
        spilled = sum(type(state).__name__ == "_Spilled" for state in session._local.values())
        assert spilled == {0: 5, 400_000: 3, 1 << 30: 0}[large]
        for expected, again in ((3.0, None), (2.0, snapshot), (3.0, session.states())):
            if again is not None:
                session.restore(again)
            states = session.states()
            assert list(states) == [0, 1, 2, 3, 4]
            for shard, state in states.items():
                assert state["n"] == shard
                assert (state["table"] == expected * shard).all()
                assert state["table"].flags.f_contiguous
        states = session.states()
        session.reset()
        assert session.states() == {}
        session.restore(states)  # what is looked at is not written over
        assert [state["table"].max() for state in session.states().values()] == [0, 3, 6, 9, 12]


def test_large_files_are_written_array_by_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays: dict[str, Any] = {
        "bytes": np.arange(7, dtype=np.uint8),
        "singles": np.linspace(0, 1, 5, dtype=np.float32),
        "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "none": np.zeros((0, 3)),
        "one": np.array(3),
        "short": np.arange(3, dtype=np.int16),
        "ü": np.arange(4)[::-2],
    }
    store.write(tmp_path / "small", "record", arrays, {"a": 1}, "s")
    monkeypatch.setattr(store, "LARGE", 0)
    store.write(tmp_path / "large", "record", arrays, {"a": 1}, "s")
    by_library = load_file(tmp_path / "large")
    small, large = store.read(tmp_path / "small"), store.read(tmp_path / "large")
    assert (small.meta, small.kind, small.signature) == (large.meta, large.kind, large.signature)
    assert by_library.keys() == small.arrays.keys() == large.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        for found in (by_library[name], small.arrays[name], large.arrays[name]):
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array)


def test_large_tables_of_models_are_files_if_the_data_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = samples.pairs()
    build_corpus(
        [f"{' '.join(s)} ||| {' '.join(t)}" for s, t in pairs], tmp_path / "pairs", "pairs"
    )
    corpus = open_corpus(tmp_path / "pairs")
    monkeypatch.setattr(spill, "LARGE", 0)
    monkeypatch.setattr(align_data, "CUT", 200)  # several shards
    mapped, original = [], spill._reserve

    def reserve(file: Any, size: int) -> None:
        mapped.append(size)
        original(file, size)

    monkeypatch.setattr(spill, "_reserve", reserve)
    make = lambda: sc.align.IBM1(max_iter=3)  # noqa: E731
    in_memory = make().fit(pairs)
    assert not mapped
    on_disk = make().fit(corpus)
    assert len(mapped) >= 6  # counts and parameters of each step
    tables = (model.raw_params_["translation"] for model in (in_memory, on_disk))
    np.testing.assert_array_equal(*tables)
    mapped.clear()
    make().fit(pairs)  # it was for that fit alone
    assert not mapped


def test_no_room_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(file: Any, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spill, "LARGE", 0)
    monkeypatch.setattr(spill, "_reserve", is_full)
    for make in (spill.zeros, empty_table):
        with large_tables_in_files(), pytest.raises(StoreError, match="No space left") as error:
            make((10,))
        assert "TMPDIR" in str(error.value.hint)
