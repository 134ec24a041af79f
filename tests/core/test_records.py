"""Records: what is packed comes back equal, and nothing else is made."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from softcount.core.errors import StoreError
from softcount.core.records import digest, pack, read_record, unpack, write_record
from softcount.core.types import SparseCounts, Stats
from softcount.core.verdict import Verdict
from softcount.learners import EM, StochasticVB

Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Mine:
    x: Any
    _cache: dict[Any, Any] = field(default_factory=dict)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        equal_nan = a.dtype.kind == "f"
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=equal_nan)
    if isinstance(a, float) and a != a:
        return isinstance(b, float) and b != b
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def again(value: Any, folder: Path, modules: tuple[str, ...] = ()) -> Any:
    write_record(folder / "a.record", value)
    return read_record(folder / "a.record", modules)


texts = st.text(st.characters(), max_size=5)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
floats = st.lists(st.floats(width=32), max_size=5).map(lambda x: np.array(x, np.float32))
masks = st.lists(st.booleans(), max_size=5).map(lambda x: np.array(x, bool))
arrays = floats | masks
values = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.tuples(inner, inner).map(lambda two: Pair(*two))
    ),
    max_leaves=12,
)


@given(values)
def test_what_is_packed_comes_back(value: Any) -> None:
    structure, arrays = pack(value)
    assert same(value, unpack(structure, arrays, [__name__]))


@pytest.mark.parametrize(
    "value",
    [
        [f"wört {n}" for n in range(50)],
        ["", "\ud800", "\0"] * 20,
        [[], ["a", ""], ["ü"]] * 20,
        list(range(100)),
        [0.5] * 40,
        [2**70] * 20,
        {(1, "a"): {3, 4}, frozenset("ab"): Path("x")},
        np.array(["a", None, 3], dtype=object),
        np.array(["ab", "c"]),
        np.float32(1.5),
        Verdict.STUCK,
        EM(max_iter=7),
        StochasticVB(batch_size=17),
    ],
)
def test_of_every_kind(value: Any, tmp_path: Path) -> None:
    assert same(value, again(value, tmp_path))


def test_sparse_matrices_and_counts(tmp_path: Path) -> None:
    for kind in ("csr", "csc", "coo"):
        matrix = sparse.random(5, 7, 0.4, random_state=1).asformat(kind)
        back = again(matrix, tmp_path)
        assert back.format == kind
        assert (back != matrix).nnz == 0
    stats = Stats({"t": SparseCounts(np.array([1, 4]), np.array([0.5, 2.0]), 9)}, -3.0, -3.0, 2.0)
    back = again(stats, tmp_path)
    assert np.array_equal(np.asarray(back.counts["t"]), np.asarray(stats.counts["t"]))
    assert back.log_likelihood == stats.log_likelihood


def test_classes_of_others_must_be_named(tmp_path: Path) -> None:
    mine = Mine(np.arange(3), {int: 1})
    with pytest.raises(StoreError, match="not a class of softcount"):
        again(mine, tmp_path)
    back = again(mine, tmp_path, (__name__,))
    assert isinstance(back, Mine)
    assert back._cache == {}


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    for value in (lambda: 1, object(), Mine, np.array([1j])):
        with pytest.raises(StoreError):
            again(value, tmp_path)


@pytest.mark.parametrize(
    "structure",
    [
        {"record": "softcount.core.store:write", "fields": {"path": "x"}},
        {"record": "softcount.core.drafts:os.system", "fields": {"command": "x"}},
        {"record": "os:system", "fields": {"command": "x"}},
        {"record": "softcount.core.estimator:Estimator", "fields": {}},
        {"enum": "softcount.core.types:Stats", "name": "x"},
        {"array": "missing"},
        {"strange": 1},
        {},
    ],
)
def test_hostile_structures(structure: Any) -> None:
    with pytest.raises(StoreError):
        unpack(structure, {})


def test_digests_tell_values_apart() -> None:
    assert digest(["a", "b"]) == digest(["a", "b"])
    different = [["a", "b"], ["ab"], ["b", "a"], [["a", "b"]], ("a", "b"), np.arange(2), [0, 1]]
    assert len({digest(value) for value in different}) == len(different)
