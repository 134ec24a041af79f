"""A model file for the tests of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from softcount.core import store

ARRAYS = {
    "flip": np.array([[0.25, 0.75], [1.0, np.nan]]),
    "which": np.array([3, 1, 2], dtype=np.int32),
    "scalar": np.array(7.0, dtype=np.float32),
    "none": np.zeros((0, 4)),
    "odd bytes": np.arange(5, dtype=np.uint8),
}
META: dict[str, Any] = {"names": ["α", "b\ud800", ""], "deep": {"n": 3, "x": 0.1, "no": None}}
SIGNATURE = "story · EM · seed 0"


def write(path: Path) -> Path:
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
