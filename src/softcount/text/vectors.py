"""Vectors on disk: points, or sequences of vectors, for corpora larger than memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from softcount.core.bounds import check_coordinates
from softcount.core.errors import DataError, brief
from softcount.core.types import FloatArray, IntArray
from softcount.text.disk import (
    Column,
    CorpusFolder,
    DiskArray,
    OnProgress,
    new_corpus,
    read_in_blocks,
)

KIND = "vectors"


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
        chosen = np.arange(len(self))[numbers]
        lengths = self.lengths[chosen]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(self.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return Vectors(self.rows[places], indptr)


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
    columns = {"rows": Column(code), "lengths": Column("<i8")}
    dimensions: int | None = None
    with new_corpus(path, KIND, columns, on_progress) as writer:
        for block, name in read_in_blocks(data, writer, "sequence"):
            parts, lengths = [], []
            for n, item in enumerate(block):
                try:
                    rows = np.asarray(item, dtype=float)
                except (TypeError, ValueError, OverflowError):
                    rows = np.zeros((0, 0, 0))
                rows = rows.reshape(1, -1) if rows.ndim == 1 and rows.size else rows
                if rows.size and (rows.ndim != 2 or not np.isfinite(rows).all()):
                    raise DataError(
                        f"{name(n)} is {brief(item)}",
                        "give vectors, or arrays (length, dimensions), of finite numbers",
                    )
                check_coordinates(rows, f"{name(n)} has")
                if rows.size and dimensions is None:
                    dimensions = rows.shape[1]
                    writer.columns = {**columns, "rows": Column(code, (dimensions,))}
                if rows.size and rows.shape[1] != dimensions:
                    raise DataError(
                        f"{name(n)} has {rows.shape[1]} dimensions, not {dimensions}",
                        "give vectors of the same dimension",
                    )
                parts.append(rows.reshape(-1))
                lengths.append(len(rows) if rows.size else 0)
            writer.append(len(block), rows=np.concatenate(parts), lengths=np.array(lengths))
        if dimensions is None and writer.n_items:
            raise DataError("there is not a single vector", "look at the data")
    return open_vectors(CorpusFolder.open(path))


def open_vectors(corpus: CorpusFolder) -> Vectors:
    """Open vectors on disk; the lengths of sequences are read, vectors when they are needed."""
    return Vectors(cast(FloatArray, corpus.column("rows")), corpus.offsets("lengths", "rows"))
