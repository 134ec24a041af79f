"""Vectors on disk: points, or sequences of vectors, for corpora larger than memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from softcount.core.bounds import MAX_VALUE, check_coordinates
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import FloatArray, IntArray
from softcount.text.disk import (
    DAMAGED,
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    find_rows,
    new_corpus,
    number_items,
    read_in_blocks,
)
from softcount.text.lines import Name

KIND = "vectors"
SAME_DIMENSION = "give vectors of the same dimension"


@dataclass(frozen=True, eq=False)
class Vectors:
    """Sequences of vectors; single points are sequences of one.

    ``rows``    (vectors, dimensions), an array or a `DiskArray`
    ``indptr``  sequence n has the rows ``indptr[n]`` to ``indptr[n + 1]`` (exclusive)
    """

    rows: FloatArray
    indptr: IntArray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def lengths(self) -> IntArray:
        """The number of vectors in each sequence."""
        return np.diff(self.indptr)

    def name(self, n: int) -> str:
        """Return the name of a sequence for messages."""
        if isinstance(self.rows, DiskArray):
            return self.rows.corpus.name_item(n, "sequence")
        return f"sequence {n}"

    def select(self, numbers: Any) -> Vectors:
        """Select sequences, in this order; what is on disk is read."""
        rows, indptr = find_rows(self.indptr, number_items(numbers, len(self)))
        return Vectors(self.rows[rows], indptr)


def build_vectors(
    data: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float64",
    on_progress: OnProgress = lambda sequences: None,
) -> Vectors:
    """Write vectors to a folder, and open them.

    ``data``   an iterable of arrays: points (dimensions,), or sequences (length, dimensions); or a
               mapping from names to such
    ``path``   the folder to create
    ``dtype``  "float64", or "float32", which takes half the space

    >>> import tempfile
    >>> points = build_vectors(np.arange(6.0).reshape(3, 2), tempfile.mkdtemp() + "/corpus")
    >>> len(points), points.rows[1:].tolist()
    (3, [[2.0, 3.0], [4.0, 5.0]])
    """
    if dtype not in ("float64", "float32"):
        raise DataError(f"dtype={brief(dtype)} is unknown", "give float64 or float32")
    code = np.dtype(dtype).newbyteorder("<").str
    columns = {"rows": StoredColumn(code), "lengths": StoredColumn("<i8")}
    dimensions: int | None = None
    with new_corpus(path, KIND, columns, on_progress) as writer:
        for block, name in read_in_blocks(data, writer, "sequence"):
            rows, lengths = _join(block, name)
            if rows.size and dimensions is None:
                dimensions = rows.shape[1]
                writer.columns = {**columns, "rows": StoredColumn(code, (dimensions,))}
            if rows.size and rows.shape[1] != dimensions:
                n = int(np.flatnonzero(lengths)[0])
                raise DataError(
                    f"{name(n)} has {rows.shape[1]} dimensions, not {dimensions}", SAME_DIMENSION
                )
            with np.errstate(over="ignore"):
                stored = rows.astype(code)
            if not np.isfinite(stored).all():
                row = int(np.flatnonzero(~np.isfinite(stored).all(axis=1))[0])
                n = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
                raise DataError(f"{name(n)} is beyond the range of {dtype}", "use float64")
            writer.append(len(block), rows=stored, lengths=lengths)
        if dimensions is None and writer.n_items:
            raise DataError("there is not a single vector", "look at the data")
    return open_vectors(CorpusFolder.open(path))


def _join(block: list[Any], name: Name) -> tuple[FloatArray, IntArray]:
    """Return the rows of points or sequences (rows, dimensions), and the length of each."""
    try:
        whole = np.asarray(block, dtype=float)
    except (TypeError, ValueError, OverflowError):
        whole = np.zeros(0)
    if whole.ndim == 2 and whole.size and np.abs(whole).max() <= MAX_VALUE:  # points: fast
        return whole, np.ones(len(whole), np.int64)
    parts = [_read_rows(item, name(n)) for n, item in enumerate(block)]
    lengths = np.array([len(rows) for rows in parts], np.int64)
    filled = [n for n, rows in enumerate(parts) if len(rows)]
    for n in filled:
        if parts[n].shape[1] != parts[filled[0]].shape[1]:
            raise DataError(
                f"{name(n)} has {parts[n].shape[1]} dimensions, not {parts[filled[0]].shape[1]}",
                SAME_DIMENSION,
            )
    return np.concatenate([parts[n] for n in filled] or [np.zeros((0, 0))]), lengths


def _read_rows(item: Any, name: str) -> FloatArray:
    """Return a point or a sequence as rows (length, dimensions); (0, 0) if it is empty."""
    try:
        rows = np.asarray(item, dtype=float)
    except (TypeError, ValueError, OverflowError):
        rows = np.zeros(())
    rows = rows.reshape(1, -1) if rows.ndim == 1 and rows.size else rows
    if rows.ndim in (1, 2) and not rows.size:
        return np.zeros((0, 0))
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise DataError(
            f"{name} is {brief(item)}",
            "give vectors, or arrays (length, dimensions), of finite numbers",
        )
    check_coordinates(rows, f"{name} has")
    return rows


def open_vectors(corpus: CorpusFolder) -> Vectors:
    """Open vectors on disk; the lengths of sequences are read, vectors when they are needed."""
    rows = corpus.column("rows")
    if rows.ndim != 2 or rows.dtype.kind != "f":
        raise StoreError(f"the corpus in {corpus.folder} has no vectors", DAMAGED)
    return Vectors(cast(FloatArray, rows), corpus.offsets("lengths", "rows"))
