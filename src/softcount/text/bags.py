"""Documents as bags of words: sparse counts by document and by word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from softcount.core.bounds import MAX_COUNT, MIN_WEIGHT
from softcount.core.errors import DataError
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import FloatArray, IntArray

LEAST_ENTRIES, MOST_ENTRIES = 1 << 22, 1 << 24
"""Bounds of the number of entries (document, word) in a full shard: 50 to 200 MB."""

ENTRIES_PER_WORD = 256
"""Between these bounds, a full shard has this many entries for each word of the vocabulary. A shard
also reads and counts each word of a table once, which takes as long as two to seven entries: with
this many entries per word that is 1 to 3 % of the time."""

MOST_DOCUMENTS = 1 << 17
"""The largest number of documents in a shard, each of which has posteriors beside its entries."""


class Compressed(NamedTuple):
    """Compressed sparse rows: row r has ``columns[indptr[r]:indptr[r + 1]]``."""

    indptr: IntArray
    columns: IntArray
    value: FloatArray


@dataclass(frozen=True, eq=False)
class Bags(PickledWithoutCaches):
    """Sparse counts, documents × words.

    >>> bags = Bags.of(sparse.csr_matrix([[2, 0, 1], [0, 0, 0]]))
    >>> len(bags), bags.n_words, bags.lengths
    (2, 3, array([3., 0.]))
    """

    by_document: Compressed
    n_words: int

    @classmethod
    def of(cls, matrix: Any) -> Self:
        """Make bags from a sparse matrix or an array of counts ≥ 0, which may be fractions.

        Counts too small to have an effect are set to 0: see `softcount.core.bounds`.
        """
        rows = sparse.csr_matrix(matrix, dtype=np.float64, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        least, most = rows.data.min(initial=MAX_COUNT), rows.data.max(initial=0.0)
        if least < 0:
            raise DataError(
                f"Negative values in data: document {_owner(rows, np.argmin(rows.data))} has a "
                f"count of {least:g}",
                "counts of words cannot be negative; for vectors of any sign use GaussianMixture",
            )
        if most > MAX_COUNT:
            raise DataError(
                f"document {_owner(rows, np.argmax(rows.data))} has a count of {most:g}, "
                f"which is beyond {MAX_COUNT:g}",
                "check for a mistake, or divide all counts by the same number",
            )
        if least < MIN_WEIGHT:
            rows.data[rows.data < MIN_WEIGHT] = 0.0
            rows.eliminate_zeros()
        return cls._of_rows(rows)

    @classmethod
    def _of_rows(cls, rows: Any) -> Self:
        indptr, index = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
        return cls(Compressed(indptr, index, rows.data), rows.shape[1])

    @cached_property
    def matrix(self) -> Any:
        """The counts as a scipy CSR matrix."""
        rows = self.by_document
        shape = (len(self), self.n_words)
        return sparse.csr_matrix((rows.value, rows.columns, rows.indptr), shape=shape)

    @cached_property
    def by_word(self) -> Compressed:
        """The same counts by word: row w has the documents with word w."""
        columns = self.matrix.tocsc()
        return Compressed(
            columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data
        )

    def is_used_again(self) -> bool:
        """Return whether this was asked before: bags that are used once, such as those of a shard
        on disk, are not worth transposing."""
        before = "_used" in vars(self)
        return self._used and before

    @cached_property
    def _used(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.by_document.indptr) - 1

    @property
    def n_entries(self) -> int:
        """The number of entries (document, word)."""
        return len(self.by_document.columns)

    @cached_property
    def lengths(self) -> FloatArray:
        """The number of words in each document, (documents,)."""
        rows = self.by_document
        owners = np.repeat(np.arange(len(self)), np.diff(rows.indptr))
        return np.bincount(owners, rows.value, len(self)).astype(np.float64, copy=False)

    @cached_property
    def word_counts(self) -> FloatArray:
        """The total count of each word, (words,)."""
        rows = self.by_document
        return np.bincount(rows.columns, rows.value, self.n_words).astype(np.float64, copy=False)

    @cached_property
    def own_words(self) -> IntArray | None:
        """The words that occur in these documents; None if that is half of the vocabulary or more.

        With few of the words, an E-step works on their columns only.
        """
        columns = self.by_document.columns
        if len(columns) < self.n_words:
            words = np.unique(columns)
        else:  # without sorting all entries
            occurs = np.zeros(self.n_words, np.bool_)
            occurs[columns] = True
            words = np.flatnonzero(occurs)
        return words if 2 * len(words) < self.n_words else None

    @property
    def own(self) -> Bags:
        """These bags with columns for `own_words` only; the bags themselves if these are None."""
        return self if self.own_words is None else self._narrowed

    @cached_property
    def _narrowed(self) -> Bags:
        assert self.own_words is not None
        columns = np.searchsorted(self.own_words, self.by_document.columns).astype(np.int32)
        return Bags(self.by_document._replace(columns=columns), len(self.own_words))

    def take(self, documents: IntArray) -> Self:
        """Return the given documents."""
        return self._of_rows(self.matrix[documents])

    def part(self, first: int, last: int) -> Self:
        """Return the documents first ≤ d < last, as views of the same arrays."""
        rows = self.by_document
        indptr = rows.indptr[first : last + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        own_rows = Compressed(indptr - indptr[0], rows.columns[entries], rows.value[entries])
        return type(self)(own_rows, self.n_words)

    def cut(self) -> list[tuple[int, int]]:
        """Cut the documents, in order, into shards: the first of each, and the one after its last.

        The cut depends on the documents alone.

        >>> Bags.of(np.ones((3, 2))).cut()
        [(0, 3)]
        """
        return cut_documents(self.by_document.indptr, self.n_words)

    def present(self) -> Self:
        """Return the same bags with every count set to 1 (presence of words)."""
        rows = self.by_document
        return type(self)(rows._replace(value=np.ones_like(rows.value)), self.n_words)

    def scaled(self, length: float) -> Self:
        """Return bags scaled so that every document has this length; empty ones stay empty."""
        rows = self.by_document
        factor = length / np.where(self.lengths > 0.0, self.lengths, 1.0)
        values = rows.value * np.repeat(factor, np.diff(rows.indptr))
        return type(self)(rows._replace(value=values), self.n_words)


def cut_documents(indptr: IntArray, n_words: int) -> list[tuple[int, int]]:
    """Cut documents into shards (see `Bags.cut`).

    ``indptr``  document d has the entries ``indptr[d]`` to ``indptr[d + 1]`` (exclusive)
    """
    most = min(max(ENTRIES_PER_WORD * n_words, LEAST_ENTRIES), MOST_ENTRIES)
    return list(split_rows(indptr, most, MOST_DOCUMENTS)) or [(0, 0)]


def split_rows(
    indptr: IntArray, most_entries: int, most_documents: int
) -> Iterator[tuple[int, int]]:
    """Split documents into runs as long as both limits allow, of at least one document.

    >>> list(split_rows(np.array([0, 3, 5, 5, 20, 21]), 6, 2))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most_entries, side="right")) - 1
        last = min(max(last, first + 1), first + most_documents, n)
        yield first, last
        first = last


def _owner(rows: Any, entry: Any) -> int:
    """Return the document that an entry of a CSR matrix belongs to."""
    return int(np.searchsorted(rows.indptr, entry, side="right")) - 1


LARGEST_COUNT = 2.0**40
"""The largest count of a word in a document, so that sums stay exact."""


def check_whole_counts(
    indptr: ArrayLike, words: ArrayLike, counts: ArrayLike, n_words: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return documents in CSR form, after checking what kernels rely on but do not check."""
    borders = np.ascontiguousarray(indptr, np.int64)
    columns = np.ascontiguousarray(words, np.int32)
    values = np.ascontiguousarray(counts, np.float64)
    if borders[0] != 0 or (np.diff(borders) < 0).any() or len(columns) != borders[-1]:
        raise DataError(
            "indptr does not cut the words into documents", "pass the parts of a CSR matrix"
        )
    if columns.shape != values.shape or ((columns < 0) | (columns >= n_words)).any():
        raise DataError(
            f"there must be one count for every word, and word numbers below {n_words}",
            "pass the parts of a CSR matrix",
        )
    wrong = np.flatnonzero((values != np.floor(values)) | (values < 0) | (values > LARGEST_COUNT))
    if len(wrong):
        d = np.searchsorted(borders, wrong[0], side="right") - 1
        raise DataError(
            f"document {d} has {values[wrong[0]]:g} of word {columns[wrong[0]]}: a collapsed "
            "sampler needs whole numbers, none negative and none beyond 2^40",
            "use Gibbs() or EM() for weighted or scaled documents",
        )
    return borders, columns, values
