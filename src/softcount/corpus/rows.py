"""Counts of words, document by document, in flat files: written once, then mapped part by part.

``indptr.bin``  int64: the words of document d are entries indptr[d] to indptr[d + 1]
``words.bin``   int32
``counts.bin``  uint16; float64 if some count is not a whole number below 65,536

All little-endian, without headers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from softcount.corpus.bags import Compressed
from softcount.errors import StoreError
from softcount.types import Array

INDPTR, WORDS, COUNTS = "indptr.bin", "words.bin", "counts.bin"
SMALL, WIDE = "<u2", "<f8"
AT_ONCE = 1 << 20
"""So many numbers are copied at a time."""
DAMAGED = "the archive is damaged or was not written by softcount: build it again"


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Faults of the disk as errors that say what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}",
            "choose a folder that exists, may be written to and has room",
        ) from error


class GrowingFile:
    """A new file that only grows, and the SHA-256 of all that is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()
        with writing(path):
            self._file = path.open("xb")

    def append(self, numbers: Array | bytes) -> None:
        raw = numbers if isinstance(numbers, bytes) else numbers.tobytes()
        with writing(self.path):
            self._file.write(raw)
        self._digest.update(raw)
        self.size += len(raw)

    def sync(self) -> tuple[int, str]:
        """All of it on the disk for good; gives its size and SHA-256."""
        with writing(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self.size, self._digest.hexdigest()

    def close(self) -> None:
        with writing(self.path):
            self._file.close()


def write_file(path: Path, content: Array | str) -> tuple[int, str]:
    """A new file, all of it on the disk; gives its size and SHA-256. Texts must be ASCII."""
    file = GrowingFile(path)
    file.append(content.encode("ascii") if isinstance(content, str) else content)
    stamp = file.sync()
    file.close()
    return stamp


class RowWriter:
    """Documents written to flat files in a folder, one after the other; use ``with``."""

    def __init__(self, folder: Path) -> None:
        self.n_documents = self.n_entries = 0
        self.tokens = 0.0
        self.counts = SMALL
        self._indptr = GrowingFile(folder / INDPTR)
        self._words = GrowingFile(folder / WORDS)
        self._counts = GrowingFile(folder / COUNTS)
        self._indptr.append(np.zeros(1, "<i8"))

    def append(self, rows: Compressed) -> None:
        """Some more documents."""
        self._indptr.append((rows.indptr[1:] + self.n_entries).astype("<i8"))
        self._words.append(rows.columns.astype("<i4"))
        if self.counts == SMALL and not _are_small(rows.value):
            self._widen()
        self._counts.append(rows.value.astype(self.counts))
        self.n_documents += len(rows.indptr) - 1
        self.n_entries += len(rows.columns)
        self.tokens += float(rows.value.sum())

    def sync(self) -> dict[str, tuple[int, str]]:
        """All of it on the disk for good; gives the size and the SHA-256 of each file."""
        files = (self._indptr, self._words, self._counts)
        return {file.path.name: file.sync() for file in files}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        for file in (self._indptr, self._words, self._counts):
            file.close()

    def _widen(self) -> None:
        """The counts so far, written again as float64."""
        path = self._counts.path
        narrow = path.with_suffix(".narrow")
        self._counts.close()
        with writing(path):
            path.rename(narrow)
        self.counts, self._counts = WIDE, GrowingFile(path)
        with narrow.open("rb") as file:
            while raw := file.read(AT_ONCE * np.dtype(SMALL).itemsize):
                self._counts.append(np.frombuffer(raw, SMALL).astype(WIDE))
        narrow.unlink()


def _are_small(values: Array) -> bool:
    return not len(values) or bool(values.max() <= 0xFFFF and (values == np.floor(values)).all())


@dataclass(frozen=True)
class RowFiles:
    """Flat files of documents. Nothing is kept open: every part is mapped when it is asked for.

    What comes from the disk is never trusted: numbers of words beyond ``n_words`` would have
    kernels write to memory that is not theirs.
    """

    folder: Path
    n_documents: int
    n_words: int
    n_entries: int
    counts: str

    def sizes(self) -> dict[str, int]:
        """How many bytes each file must have."""
        return {
            INDPTR: 8 * (self.n_documents + 1),
            WORDS: 4 * self.n_entries,
            COUNTS: np.dtype(self.counts).itemsize * self.n_entries,
        }

    @property
    def indptr(self) -> Array:
        return mapped(self.folder / INDPTR, "<i8", self.n_documents + 1)

    def run(self, first: int, last: int) -> Compressed:
        """Documents first ≤ d < last."""
        indptr = np.array(self.indptr[first : last + 1], np.int64)
        self._demand_within(indptr[:-1], indptr[1:])
        entries = slice(int(indptr[0]), int(indptr[-1]))
        return self._checked(indptr - indptr[0], entries)

    def take(self, documents: Array) -> Compressed:
        """Any documents, each at most once, in any order."""
        indptr = self.indptr
        starts = np.array(indptr[documents], np.int64)
        ends = np.array(indptr[documents + 1], np.int64)
        self._demand_within(starts, ends)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])
        entries = np.repeat(starts - indptr[:-1], ends - starts) + np.arange(indptr[-1])
        return self._checked(indptr, entries)

    def _demand_within(self, starts: Array, ends: Array) -> None:
        sound = bool((starts >= 0).all() and (starts <= ends).all())
        if not sound or (ends > self.n_entries).any() or (ends - starts).sum() > self.n_entries:
            raise StoreError(f"{self.folder / INDPTR} has borders that are out of order", DAMAGED)

    def _checked(self, indptr: Array, entries: Array | slice) -> Compressed:
        """Copies of these entries, if they are numbers of words and counts."""
        size = self.n_entries
        words = np.array(mapped(self.folder / WORDS, "<i4", size)[entries], np.int32)
        value = np.array(mapped(self.folder / COUNTS, self.counts, size)[entries], np.float64)
        if len(words) and not 0 <= words.min() <= words.max() < self.n_words:
            raise StoreError(
                f"{self.folder / WORDS} has words beyond the {self.n_words} there are", DAMAGED
            )
        if len(value) and not 0.0 < value.min() <= value.max() < np.inf:
            raise StoreError(f"{self.folder / COUNTS} has counts that are no counts", DAMAGED)
        return Compressed(indptr, words, value)


def mapped(path: Path, dtype: str, size: int) -> Array:
    """The numbers in a file, not read before they are used."""
    if size == 0:  # there is nothing to map
        return np.zeros(0, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, mode="r", shape=(size,)))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be mapped: {error}", DAMAGED) from error


def cut(indptr: Array, most_entries: int, most_documents: int) -> Iterator[tuple[int, int]]:
    """Runs of documents, as long as both limits allow; one document at least.

    >>> list(cut(np.array([0, 3, 5, 5, 20, 21]), 6, 2))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most_entries, side="right")) - 1
        last = min(max(last, first + 1), first + most_documents, n)
        yield first, last
        first = last
