"""Corpora larger than memory: counts of words in a folder on disk, read a shard at a time.

A folder has the counts as flat files (``indptr.bin``, ``words.bin``, ``counts.bin``: the rows of a
CSR matrix), the words (``vocabulary.json``), the order of shuffled documents (``origin.bin``), and
``meta.json``, which says what there is. That is written last, and trusted by nobody.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import os
import shutil
import stat
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import accumulate, chain, count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core.bounds import within_range
from softcount.core.drafts import open_whole_folder
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import Array, IntArray
from softcount.text.bags import Bags, Compressed
from softcount.text.documents import as_it_is, describe_vectorizer, restore_vectorizer
from softcount.text.tokenise import spaces, words

INDPTR, WORDS, COUNTS = "indptr.bin", "words.bin", "counts.bin"
META, VOCABULARY, ORIGIN = "meta.json", "vocabulary.json", "origin.bin"
SMALL, WIDE = "<u2", "<f8"
"""How counts are written: as whole numbers of 16 bits, or if that will not do as floats."""
FORMAT, FORMAT_VERSION = "softcount archive", 1
WANTED = {"min_count", "max_share", "max_words", "stop_words"}
LARGEST_META = 1 << 26
"""No honest meta.json has more bytes."""
DAMAGED = "the archive is damaged or was not written by softcount: build it again"

AT_ONCE = 1 << 20
"""So many words of text are in memory at a time, or a few more: a document is never cut."""
SHARD_ENTRIES, SHARD_DOCUMENTS = 1 << 22, 1 << 16
"""A shard's limits: so many counts, so many documents."""
MOST_WORDS_AT_ONCE = 1 << 20
"""So many words, and those of one more piece of text, are kept in memory: some 500 MB at worst."""

OnProgress = Callable[[str, int], None]
"""Called with what is being done, and how many documents are done."""


@dataclass(frozen=True, eq=False)
class ArchivePart:
    """Some documents of an archive: their numbers in it, and their words once asked for.

    The bags live as long as this part does. `Archive.shards` makes a new part whenever it is asked,
    so that a loop over parts holds one at a time.
    """

    archive: Archive
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def bags(self) -> Bags:
        return self.archive.bags(self.numbers)


@dataclass(frozen=True, eq=False)
class ArchiveParts(Sequence[ArchivePart]):
    """All documents of an archive, in parts that are made when they are asked for.

    ``borders``  part i has places borders[i] ≤ p < borders[i + 1]
    ``turn``     which part comes when
    ``order``    the document at each place; None: documents are where their number says
    """

    archive: Archive
    borders: IntArray
    turn: IntArray
    order: IntArray | None = None

    def __len__(self) -> int:
        return len(self.turn)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = self.turn[index]
        first, last = int(self.borders[i]), int(self.borders[i + 1])
        numbers = np.arange(first, last) if self.order is None else self.order[first:last]
        return ArchivePart(self.archive, numbers)


@dataclass(frozen=True, eq=False)
class Archive:
    """Documents × words on disk, written once and read a shard at a time.

    It can be learned from like any corpus (`softcount.core.model.Corpus`). Nothing is kept open,
    and a copy in another process reads the same files.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "archive"
    >>> archive = Archive.build(["A dog, a cat", "", "the cat"], folder)
    >>> archive.n_documents, archive.n_words, archive.tokens
    (3, 4, 6.0)
    >>> [part.bags.lengths.tolist() for part in archive.shards()]
    [[4.0, 0.0, 2.0]]
    >>> Archive.open(folder).vocabulary.tolist()
    ['a', 'cat', 'dog', 'the']
    """

    path: Path
    facts: ArchiveFacts

    @classmethod
    def build(
        cls,
        documents: Iterable[Any] | Mapping[str, Iterable[Any]],
        path: str | os.PathLike[str],
        *,
        tokens: bool = False,
        min_count: int = 1,
        max_share: float = 1.0,
        max_words: int | None = None,
        stop_words: Iterable[str] = (),
        vocabulary: Sequence[str] | None = None,
        like: Archive | Sequence[str] | None = None,
        shuffle: int | None = None,
        on_progress: OnProgress = lambda doing, documents: None,
    ) -> Self:
        """Write an archive, whole or not at all, and open it. The documents are read once.

        ``documents``   texts, lists of words, or blocks of counts (sparse matrices with the same
                        columns); from a generator if they are many. A mapping from names to these
                        keeps the names, so that a document is called ``notes.txt:17``
        ``path``        the folder that the archive will be
        ``tokens``      words of a text stand between spaces; else they are found, in lower case
        ``min_count``   leave out words that fewer documents than this have
        ``max_share``   leave out words that more than this part of documents has
        ``max_words``   keep so many words at most, those that most documents have
        ``stop_words``  leave out these
        ``vocabulary``  the words of the columns, for blocks of counts
        ``like``        another archive, or its words: the columns will be the same, in the same
                        order, and all other words are left out. Texts are cut as its texts were
        ``shuffle``     a seed: documents are put in a random order, of which `origin` tells.
                        Mini-batches are then read in one go, not gathered from everywhere; needs
                        24 bytes of memory per document
        """
        if isinstance(stop_words, str):
            raise DataError(f"stop_words is one text: {brief(stop_words)}", "give a list of words")
        wanted = WordSelection(min_count, max_share, max_words, frozenset(stop_words))
        _check_names(vocabulary)
        known = _find_fixed_words(like, wanted)
        if shuffle is not None and shuffle < 0:
            raise DataError(f"shuffle={shuffle} is no seed", "give a whole number from 0 on")
        builder = _Builder(
            Sources(documents), tokens, vocabulary, known, wanted, shuffle, on_progress
        )
        with _new_folder(Path(path)) as folder:
            builder.write(folder)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The archive in a folder; raises `StoreError` for anything else.

        Sizes are checked here, numbers when they are read, checksums by `verify` alone: these need
        all of the files.
        """
        return cls(Path(path), read_facts(Path(path)))

    @property
    def n_documents(self) -> int:
        return self.facts.n_documents

    @property
    def n_words(self) -> int:
        return self.facts.n_words

    @property
    def tokens(self) -> float:
        """All counts added up."""
        return self.facts.tokens

    @cached_property
    def vocabulary(self) -> Array | None:
        """The words, in the order of the columns; None if they have no names."""
        if VOCABULARY not in self.facts.files:
            return None
        path = self.path / VOCABULARY
        try:
            raw = path.read_bytes()
            words = json.loads(raw)
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} is no list of words: {error}", DAMAGED) from error
        sound = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not sound or len(words) != self.n_words or len(set(words)) != len(words):
            raise StoreError(f"{path} is no list of {self.n_words} different words", DAMAGED)
        if hashlib.sha256(raw).hexdigest() != self.facts.files[VOCABULARY][1]:
            raise StoreError(f"{path} does not match its checksum", DAMAGED)
        return np.array(words, dtype=object)

    def vectorizer(self) -> Any:
        """What counts the words of new texts as those of the archive were; None without texts."""
        if self.facts.vectorizer is None:
            return None
        return restore_vectorizer(self.facts.vectorizer, self.vocabulary)

    @property
    def origin(self) -> IntArray:
        """The place of each document in what the archive was built from, counted from 0.

        ``out[archive.origin] = rows`` puts one row per document back in the order of the input.
        """
        n = self.n_documents
        if self.facts.shuffle is None:
            return np.arange(n)
        origin = np.array(map_file(self.path / ORIGIN, "<i8", n), np.int64)
        if not 0 <= origin.min() <= origin.max() < n or np.bincount(origin).max() > 1:
            raise StoreError(f"{self.path / ORIGIN} is no order of {n} documents", DAMAGED)
        return origin

    # a corpus
    def __len__(self) -> int:
        return self.n_documents

    def name(self, number: int) -> str:
        """What to call a document: FILE:LINE if it is known."""
        if not self.facts.sources:
            return f"document {self._place(number)}"
        place = self._place(number)
        names, counts = zip(*self.facts.sources, strict=True)
        ends = list(accumulate(counts))
        i = bisect_right(ends, place)
        return f"{names[i]}:{place - ends[i] + counts[i] + 1}"

    def _place(self, number: int) -> int:
        if self.facts.shuffle is None:
            return number
        place = int(map_file(self.path / ORIGIN, "<i8", self.n_documents)[number])
        if not 0 <= place < self.n_documents:
            raise StoreError(f"{self.path / ORIGIN} is no order of documents", DAMAGED)
        return place

    def shards(self, batch_size: int | None = None, seed: int = 0) -> ArchiveParts:
        """All documents: in the archive's own shards, or shuffled by the seed, so many per part.

        If the archive was shuffled when it was built, parts are runs of documents, and only their
        order is drawn.
        """
        if batch_size is None:
            borders = np.array(self.facts.shards)
            return ArchiveParts(self, borders, np.arange(len(borders) - 1))
        if batch_size < 1:
            raise DataError(f"batch_size={batch_size} leaves batches empty", "give 1 or more")
        n = self.n_documents
        borders = np.append(np.arange(0, n, batch_size), n)
        rng = np.random.default_rng(seed)
        if self.facts.shuffle is not None:
            return ArchiveParts(self, borders, rng.permutation(len(borders) - 1))
        return ArchiveParts(self, borders, np.arange(len(borders) - 1), rng.permutation(n))

    # counts
    def bags(self, numbers: IntArray) -> Bags:
        """Some documents, each at most once, in memory."""
        numbers = np.asarray(numbers, np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_documents:
            raise DataError(
                f"there is no document {brief(int(numbers.max()))}",
                f"the archive has {self.n_documents}, counted from 0",
            )
        rows = self.facts.rows(self.path)
        if len(numbers) and (np.diff(numbers) == 1).all():
            return Bags(rows.run(int(numbers[0]), int(numbers[-1]) + 1), self.n_words)
        return Bags(rows.take(numbers), self.n_words)

    def matrix(self, shard: int) -> Any:
        """The counts of a shard as scipy's CSR matrix."""
        return self.shards()[shard].bags.matrix

    def sample(self, n: int, seed: int = 0) -> Any:
        """Some documents as scipy's CSR matrix, drawn at random, in order; all if n is larger."""
        few = min(n, self.n_documents)
        drawn = np.random.default_rng(seed).choice(self.n_documents, few, replace=False)
        return self.bags(np.sort(drawn)).matrix

    def verify(self) -> None:
        """Read every file and compare checksums; raises `StoreError` if one does not match."""
        for name, (_, digest) in self.facts.files.items():
            path = self.path / name
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise StoreError(f"cannot read {path}: {error.strerror}", DAMAGED) from error
            if found != digest:
                raise StoreError(f"{path} does not match its checksum", DAMAGED)


# What an archive says of itself.


@dataclass(frozen=True)
class ArchiveFacts:
    """What an archive holds.

    ``tokens``      counts added up
    ``counts``      the dtype of counts.bin
    ``shards``      borders: shard s has documents shards[s] ≤ d < shards[s + 1]
    ``sources``     names of places, and how many documents came from each; empty: from one
    ``shuffle``     the seed by which documents were shuffled, or None
    ``vectorizer``  how texts were cut into words, as `describe_vectorizer` says it; or None
    ``wanted``      which words were kept, for people to read
    ``files``       size and SHA-256 of every other file
    """

    n_documents: int
    n_words: int
    n_entries: int
    tokens: float
    counts: str
    shards: list[int]
    sources: list[tuple[str, int]]
    shuffle: int | None
    vectorizer: dict[str, Any] | None
    wanted: dict[str, Any]
    files: dict[str, tuple[int, str]]

    def rows(self, folder: Path) -> RowFiles:
        return RowFiles(folder, self.n_documents, self.n_words, self.n_entries, self.counts)

    def write(self, folder: Path) -> None:
        facts = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        facts["sha256"] = _digest(facts)
        write_file(folder / META, json.dumps(facts, indent=1) + "\n")


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def read_facts(folder: Path) -> ArchiveFacts:
    """What an archive says of itself, if it can be true: its files are there, of the right sizes.

    Raises `StoreError` otherwise. The files' contents are checked when they are used.
    """
    path = folder / META
    if not folder.is_dir():
        raise StoreError(f"there is no archive {folder}", "build one: softcount corpus build")
    if not path.exists():
        raise StoreError(
            f"{folder} is no archive: it has no {META}",
            "name the files in the folder, or make an archive of them: softcount corpus build",
        )
    if _size_of(path) > LARGEST_META:
        raise StoreError(f"{path} is too large", DAMAGED)
    try:
        meta = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not JSON: {error}", DAMAGED) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise StoreError(f"{path} describes no softcount archive", DAMAGED)
    if meta.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{path} has format version {meta.get('format_version')!r}, "
            f"and this softcount reads {FORMAT_VERSION}",
            "install a softcount that reads it, or build the archive again",
        )
    if meta.pop("sha256", None) != _digest(meta):
        raise StoreError(f"{path} does not match its own checksum", DAMAGED)
    for name, is_sound in _SOUND.items():
        if name not in meta or not is_sound(meta[name]):
            raise StoreError(f"{path}: {name} is missing or is nothing that it can be", DAMAGED)
    meta["sources"] = [tuple(source) for source in meta["sources"]]
    meta["files"] = {name: tuple(stamp) for name, stamp in meta["files"].items()}
    facts = ArchiveFacts(**{field.name: meta[field.name] for field in fields(ArchiveFacts)})
    borders, n = facts.shards, facts.n_documents
    if borders[0] != 0 or borders[-1] != n or not all(a < b for a, b in pairwise(borders)):
        raise StoreError(f"{path}: the shards' borders are out of order", DAMAGED)
    if facts.sources and sum(n for _, n in facts.sources) != n:
        raise StoreError(f"{path}: the sources have other numbers of documents", DAMAGED)
    expected = {
        INDPTR: 8 * (n + 1),
        WORDS: 4 * facts.n_entries,
        COUNTS: np.dtype(facts.counts).itemsize * facts.n_entries,
    }
    if facts.shuffle is not None:
        expected[ORIGIN] = 8 * n
    if VOCABULARY in facts.files:
        expected[VOCABULARY] = facts.files[VOCABULARY][0]
    if {name: size for name, (size, _) in facts.files.items()} != expected:  # or other names
        raise StoreError(f"{path}: the files are not those of an archive", DAMAGED)
    for name, size in expected.items():
        if (found := _size_of(folder / name)) != size:
            raise StoreError(f"{folder / name} has {found} bytes, not {size}", DAMAGED)
    return facts


def _size_of(path: Path) -> int:
    """Bytes of a regular file; a pipe or a device could keep us waiting for ever."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is not a file", DAMAGED)
    return status.st_size


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 56


def _are_pairs(values: Iterable[Any], *kinds: type) -> bool:
    """Whether all are pairs of these types, numbers at least 0."""
    return all(
        isinstance(pair, list)
        and tuple(map(type, pair)) == kinds
        and all(_is_count(value) for value in pair if type(value) is int)
        for pair in values
    )


_SOUND: dict[str, Callable[[Any], bool]] = {
    "n_documents": lambda v: _is_count(v) and v > 0,
    "n_words": lambda v: _is_count(v) and v < 1 << 31,
    "n_entries": _is_count,
    "tokens": lambda v: type(v) is float and math.isfinite(v) and v >= 0.0,
    "counts": lambda v: v in (SMALL, WIDE),
    "shards": lambda v: isinstance(v, list) and len(v) > 1 and all(map(_is_count, v)),
    "sources": lambda v: isinstance(v, list) and _are_pairs(v, str, int),
    "shuffle": lambda v: v is None or _is_count(v),
    "vectorizer": lambda v: v is None or isinstance(v, dict),
    "wanted": lambda v: (
        isinstance(v, dict)
        and set(v) == WANTED
        and all(value is None or type(value) in (int, float) for value in v.values())
    ),
    "files": lambda v: isinstance(v, dict) and _are_pairs(v.values(), int, str),
}
"""What each fact can be."""


# Rows of counts in flat files.


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
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
        with disk_errors(path):
            self._file = path.open("xb")

    def append(self, numbers: Array | bytes) -> None:
        raw = numbers if isinstance(numbers, bytes) else numbers.tobytes()
        with disk_errors(self.path):
            self._file.write(raw)
        self._digest.update(raw)
        self.size += len(raw)

    def sync(self) -> tuple[int, str]:
        """All of it on the disk for good; gives its size and SHA-256."""
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self.size, self._digest.hexdigest()

    def close(self) -> None:
        with disk_errors(self.path):
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
        self.tokens, self.counts = 0.0, SMALL
        self._files = {name: GrowingFile(folder / name) for name in (INDPTR, WORDS, COUNTS)}
        self._files[INDPTR].append(np.zeros(1, "<i8"))

    def append(self, rows: Compressed) -> None:
        """Some more documents."""
        values = rows.value
        fits = values.max(initial=0.0) <= 0xFFFF and bool((values == np.floor(values)).all())
        if self.counts == SMALL and not fits:
            self._widen()
        self._files[INDPTR].append((rows.indptr[1:] + self.n_entries).astype("<i8"))
        self._files[WORDS].append(rows.columns.astype("<i4"))
        self._files[COUNTS].append(values.astype(self.counts))
        self.n_documents += len(rows.indptr) - 1
        self.n_entries += len(rows.columns)
        self.tokens += float(values.sum())

    def sync(self) -> dict[str, tuple[int, str]]:
        """All of it on the disk for good; gives the size and the SHA-256 of each file."""
        return {name: file.sync() for name, file in self._files.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def _widen(self) -> None:
        """The counts so far, written again as float64."""
        path = self._files[COUNTS].path
        narrow = path.with_suffix(".narrow")
        self._files[COUNTS].close()
        with disk_errors(path):
            path.rename(narrow)
        self.counts, self._files[COUNTS] = WIDE, GrowingFile(path)
        with narrow.open("rb") as file:
            while raw := file.read(AT_ONCE * np.dtype(SMALL).itemsize):
                self._files[COUNTS].append(np.frombuffer(raw, SMALL).astype(WIDE))
        narrow.unlink()


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

    @property
    def indptr(self) -> IntArray:
        return map_file(self.folder / INDPTR, "<i8", self.n_documents + 1)

    def run(self, first: int, last: int) -> Compressed:
        """Documents first ≤ d < last."""
        indptr = np.array(self.indptr[first : last + 1], np.int64)
        self._check_borders(indptr[:-1], indptr[1:])
        return self._read(indptr - indptr[0], slice(int(indptr[0]), int(indptr[-1])))

    def take(self, documents: IntArray) -> Compressed:
        """Any documents, each at most once, in any order."""
        indptr = self.indptr
        starts = np.array(indptr[documents], np.int64)
        ends = np.array(indptr[documents + 1], np.int64)
        self._check_borders(starts, ends)
        indptr = np.append(0, np.cumsum(ends - starts))
        entries = np.repeat(starts - indptr[:-1], ends - starts) + np.arange(indptr[-1])
        return self._read(indptr, entries)

    def _check_borders(self, starts: IntArray, ends: IntArray) -> None:
        sound = bool((starts >= 0).all() and (starts <= ends).all())
        if not sound or (ends > self.n_entries).any() or (ends - starts).sum() > self.n_entries:
            raise StoreError(f"{self.folder / INDPTR} has borders that are out of order", DAMAGED)

    def _read(self, indptr: IntArray, entries: IntArray | slice) -> Compressed:
        """Copies of these entries, if they are numbers of words and counts."""
        size = self.n_entries
        words = np.array(map_file(self.folder / WORDS, "<i4", size)[entries], np.int32)
        value = np.array(map_file(self.folder / COUNTS, self.counts, size)[entries], np.float64)
        if len(words) and not 0 <= words.min() <= words.max() < self.n_words:
            raise StoreError(
                f"{self.folder / WORDS} has words beyond the {self.n_words} there are", DAMAGED
            )
        if len(value) and not 0.0 < value.min() <= value.max() < np.inf:
            raise StoreError(f"{self.folder / COUNTS} has counts that are no counts", DAMAGED)
        return Compressed(indptr, words, value)


def map_file(path: Path, dtype: str, size: int) -> Array:
    """The numbers in a file, not read before they are used."""
    if size == 0:  # there is nothing to map
        return np.zeros(0, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, mode="r", shape=(size,)))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be mapped: {error}", DAMAGED) from error


def split_rows(
    indptr: IntArray, most_entries: int, most_documents: int
) -> Iterator[tuple[int, int]]:
    """Runs of documents, as long as both limits allow; one document at least.

    >>> list(split_rows(np.array([0, 3, 5, 5, 20, 21]), 6, 2))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most_entries, side="right")) - 1
        last = min(max(last, first + 1), first + most_documents, n)
        yield first, last
        first = last


# Which words a corpus has and which of them count, however many there are.


class FoundWord(NamedTuple):
    """A word, how many documents have it, and the numbers it went by."""

    word: str
    documents: int
    numbers: tuple[int, ...]


class WordTable:
    """Numbers for words, in the order in which they come, and how many documents have each.

    A table that grows too large is put on disk, sorted, and a new one begun with new numbers, so
    that a word may have several; `merge` brings them together. Memory stays bounded, counts exact.

    ``numbers``  word → number; a word that is not there gets the next one. New after `add`.
    """

    def __init__(self, folder: Path, most: int = MOST_WORDS_AT_ONCE) -> None:
        self._folder, self._most = folder, most
        self._runs: list[Path] = []
        self._begin(0)

    def _begin(self, first: int) -> None:
        self._first = first
        self.numbers: defaultdict[str, int] = defaultdict(count(first).__next__)
        self._documents = np.zeros(0, np.int64)

    @property
    def size(self) -> int:
        """How many numbers were given."""
        return self._first + len(self.numbers)

    def add(self, words: IntArray) -> None:
        """Numbers of words in some documents, each once for each document that has the word."""
        seen = np.bincount(words - self._first, minlength=len(self.numbers))
        seen[: len(self._documents)] += self._documents
        self._documents = seen
        if len(self.numbers) > self._most:
            path = self._folder / f"words-{len(self._runs)}.jsonl"
            with disk_errors(path), path.open("x", encoding="ascii") as file:
                file.writelines(json.dumps(one) + "\n" for one in self._sort())
            self._runs.append(path)
            self._begin(self.size)

    def _sort(self) -> list[tuple[str, int, int]]:
        each = zip(self.numbers.items(), self._documents.tolist(), strict=True)
        return sorted((word, documents, number) for (word, number), documents in each)

    def merge(self) -> Iterator[FoundWord]:
        """All words in alphabetical order."""
        runs: list[Iterable[tuple[str, int, int]]] = [self._sort(), *map(_read_run, self._runs)]
        for word, same in groupby(heapq.merge(*runs), key=itemgetter(0)):
            _, documents, numbers = zip(*same, strict=True)
            yield FoundWord(word, sum(documents), numbers)


def _read_run(path: Path) -> Iterator[tuple[str, int, int]]:
    with path.open(encoding="ascii") as file:
        for line in file:
            word, documents, number = json.loads(line)
            yield word, documents, number


@dataclass(frozen=True)
class WordSelection:
    """Which words count.

    ``min_count``   in so many documents at least
    ``max_share``   in no larger part of the documents
    ``max_words``   so many words at most: those that most documents have
    ``stop_words``  none of these
    """

    min_count: int = 1
    max_share: float = 1.0
    max_words: int | None = None
    stop_words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 0.0 <= self.max_share <= 1.0:
            raise DataError(
                f"min_count={self.min_count}, max_share={self.max_share} let no word pass",
                "min_count is 1 or more, max_share is from 0 to 1",
            )
        if self.max_words is not None and self.max_words < 1:
            raise DataError(f"max_words={self.max_words} leaves no word", "give 1 or more")

    def choose(self, found: Iterable[FoundWord], n_documents: int) -> Iterator[FoundWord]:
        """Those that count, in the order in which they come."""
        most = self.max_share * n_documents
        kept = (
            one
            for one in found
            if self.min_count <= one.documents <= most and one.word not in self.stop_words
        )
        if self.max_words is None:
            return kept
        best = heapq.nsmallest(
            self.max_words, enumerate(kept), key=lambda e: (-e[1].documents, e[0])
        )
        return iter([one for _, one in sorted(best, key=itemgetter(0))])


class FixedWords(NamedTuple):
    """The words of another corpus, which are the ones that count, in its order.

    ``words``     None: its columns have no names
    ``n_words``   how many these are
    ``analyzer``  how its texts were cut (`softcount.text.documents.ANALYZERS`); None: nobody knows
    """

    words: Sequence[str] | None
    n_words: int
    analyzer: str | None = None


def _find_fixed_words(
    like: Archive | Sequence[str] | None, wanted: WordSelection
) -> FixedWords | None:
    """The words that another corpus has."""
    if like is None:
        return None
    if wanted != WordSelection():
        raise DataError(
            "which words count is said twice: by the archive to be like, and by numbers or lists",
            "leave out min_count, max_share, max_words and stop_words",
        )
    if isinstance(like, Archive):
        words = None if like.vocabulary is None else like.vocabulary.tolist()
        return FixedWords(words, like.n_words, (like.facts.vectorizer or {}).get("analyzer"))
    if isinstance(like, str | os.PathLike):
        raise DataError(f"like is {brief(like)}, a name", "open it: like=Archive.open(…)")
    _check_names(like)
    if not len(like):
        raise DataError("like has no words", "give at least one")
    return FixedWords(list(like), len(like))


def _check_names(vocabulary: Sequence[str] | None) -> None:
    """Raise if names of columns are no different strings."""
    names = list(vocabulary or ())
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"the vocabulary has {brief(name)} among its words", "give strings")
    if len(set(names)) < len(names):
        raise DataError("the vocabulary has a word twice", "give different words")


# Building an archive: documents are read once, in order, with bounded memory.
#
# The documents' words get provisional numbers and go to disk as they come. Then it is known which
# words count, and all is written once more with final numbers, words in alphabetical order (or that
# of another corpus whose words they are to be), and the documents shuffled if that is wanted.


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """A folder that appears under its name when all is well, and else leaves nothing."""
    if os.path.lexists(target):
        raise StoreError(f"{target} is there already", "remove it, or choose another name")
    of_documents = None
    try:
        with open_whole_folder(target) as folder:
            try:
                yield folder
            except OSError as error:
                of_documents = error  # where documents come from may fail, too
                raise
    except OSError as error:
        if error is of_documents:
            raise
        with disk_errors(target):
            raise


class Sources:
    """Documents of several named places, or of one without a name, counted as they pass.

    >>> sources = Sources({"a.txt": ["x", "y"], "b.txt": ["z"]})
    >>> list(sources), sources.counts
    (['x', 'y', 'z'], [('a.txt', 2), ('b.txt', 1)])
    """

    def __init__(self, given: Mapping[str, Iterable[Any]] | Iterable[Any]) -> None:
        if isinstance(given, str | bytes):
            raise DataError(
                f"the data are one text: {brief(given)}",
                "give a list of texts, one for each document",
            )
        self._named = isinstance(given, Mapping)
        self._places: Mapping[str, Any] = given if isinstance(given, Mapping) else {"": given}
        self._counts = dict.fromkeys(self._places, 0)
        self._place = ""

    def __iter__(self) -> Iterator[Any]:
        for place, documents in self._places.items():
            self._place = place
            for one in [documents] if _is_matrix(documents) else documents:
                self._counts[place] += one.shape[0] if _is_matrix(one) else 1
                yield one

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many documents came from each place that has a name."""
        return list(self._counts.items()) if self._named else []

    @property
    def here(self) -> str:
        """The document that came last."""
        n = self._counts[self._place]
        return f"{self._place}:{n}" if self._named else f"document {n - 1}"


def _is_matrix(one: Any) -> bool:
    """Whether this is a block of counts, not a document."""
    return getattr(one, "ndim", 1) == 2


@dataclass(frozen=True)
class _Builder:
    """What makes an archive of documents; see `Archive.build`."""

    sources: Sources
    tokens: bool
    vocabulary: Sequence[str] | None
    known: FixedWords | None
    wanted: WordSelection
    shuffle: int | None
    on_progress: OnProgress

    def _count(
        self, scratch: Path
    ) -> tuple[RowFiles, Iterable[FoundWord] | None, dict[str, Any] | None]:
        """Once through the documents: their counts, with provisional numbers for words.

        Also what is known of these words, if they have names, and how texts were cut into them.
        """
        documents = iter(self.sources)
        for first in documents:
            documents = chain([first], documents)
            break
        else:
            raise DataError("there are no documents", "give at least one")
        vectorizer: dict[str, Any] | None = None
        found: Iterable[FoundWord] | None = None
        with RowWriter(scratch) as writer:
            if _is_matrix(first):
                n_words, within = 0, np.zeros(0, np.int64)
                for bags in self._read_blocks(documents):
                    n_words = bags.n_words
                    seen = np.bincount(bags.by_document.columns, minlength=n_words)
                    within = seen + within if len(within) else seen
                    writer.append(bags.by_document)
                    self.on_progress("reading", writer.n_documents)
                if self.vocabulary is not None:
                    each = enumerate(zip(self.vocabulary, within.tolist(), strict=True))
                    found = (FoundWord(word, n, (number,)) for number, (word, n) in each)
            elif self.vocabulary is not None:
                raise DataError("texts bring their own words", "leave out vocabulary")
            else:
                table, analyzer = WordTable(scratch), self._choose_analyzer(first)
                for rows in self._number_words(documents, analyzer, table):
                    writer.append(rows)
                    self.on_progress("reading", writer.n_documents)
                n_words, found = table.size, table.merge()
                vectorizer = describe_vectorizer(CountVectorizer(analyzer=analyzer))
        files = RowFiles(scratch, writer.n_documents, n_words, writer.n_entries, writer.counts)
        return files, found, vectorizer

    def _choose_analyzer(self, first: Any) -> Callable[[Any], Sequence[str]]:
        """What cuts documents like the first one into words: as those of `known` were cut."""
        known = self.known
        if known is not None and known.words is None:
            raise DataError(
                "the archive to be like has no names for its words, so texts cannot be counted by "
                "it",
                "give counts in the same columns, or an archive of texts",
            )
        analyzer: Callable[[Any], Sequence[str]]
        if isinstance(first, str):
            tokens = self.tokens or (known is not None and known.analyzer == "spaces")
            analyzer = spaces if tokens else words
        elif isinstance(first, list | tuple):
            analyzer = as_it_is
        else:
            hint = "give texts, lists of words, or sparse matrices of counts"
            if isinstance(first, bytes):
                hint = "decode it first, for example text.decode('utf-8')"
            raise DataError(f"the first document is {brief(first)}", hint)
        name = describe_vectorizer(CountVectorizer(analyzer=analyzer))["analyzer"]
        if known is not None and known.analyzer not in (None, name):
            raise DataError(
                "the words of the archive to be like were cut otherwise "
                f"({known.analyzer!r}, and these {name!r})",
                "give documents of the same kind, and leave out tokens",
            )
        return analyzer

    def _number_words(
        self, documents: Iterable[Any], analyzer: Callable[[Any], Sequence[str]], table: WordTable
    ) -> Iterator[Compressed]:
        """Words as numbers, some documents at a time: each once a document, with its count."""
        numbers, ends = array("i"), array("q", [0])

        def add_up() -> Compressed:
            size = (len(ends) - 1, table.size)
            rows = sparse.csr_matrix(
                (np.ones(len(numbers)), np.asarray(numbers), np.asarray(ends)), size
            )
            rows.sum_duplicates()
            table.add(rows.indices)
            return Compressed(rows.indptr, rows.indices, rows.data)

        is_text = analyzer is not as_it_is
        others = "texts" if is_text else "lists of words"
        for one in documents:
            if not isinstance(one, str if is_text else list | tuple):
                raise DataError(
                    f"{self.sources.here} is {brief(one)}, while others are {others}",
                    f"give {others} only; an empty document is an empty one of these",
                )
            if not is_text and not all(isinstance(word, str) for word in one):
                strange = brief(next(word for word in one if not isinstance(word, str)))
                raise DataError(
                    f"{self.sources.here} has {strange} among its words", "words are strings"
                )
            numbers.extend(map(table.numbers.__getitem__, analyzer(one)))
            ends.append(len(numbers))
            if max(len(numbers), len(ends)) >= AT_ONCE:
                yield add_up()
                numbers, ends = array("i"), array("q", [0])
        if len(ends) > 1:
            yield add_up()

    def _read_blocks(self, blocks: Iterable[Any]) -> Iterator[Bags]:
        """Blocks of counts, of as many words each."""
        known = self.known
        if known is not None and known.words is not None and self.vocabulary is None:
            raise DataError(
                "columns without names cannot be matched with the words they are to be like",
                "give the words of the columns: vocabulary=[…]",
            )
        if known is not None and known.words is None and self.vocabulary is not None:
            raise DataError(
                "the archive to be like has no names for its words, and these columns have",
                "leave out vocabulary, if the columns are the same",
            )
        if self.vocabulary is None and self.wanted != WordSelection():
            raise DataError(
                "columns without names cannot be left out: nobody could tell which ones are left",
                "give the words of the columns: vocabulary=[…]",
            )
        n_words = None if known is None else known.n_words  # of columns without names
        if self.vocabulary is not None:
            n_words = len(self.vocabulary)
        before = 0
        for block in blocks:
            if not _is_matrix(block):
                raise DataError(
                    f"after {before} documents comes {brief(block)}, while others are matrices",
                    "give blocks of counts only",
                )
            if n_words is not None and block.shape[1] != n_words:
                raise DataError(
                    f"after {before} documents comes a block of {block.shape[1]} words, "
                    f"while others have {n_words}",
                    "give the same columns in every block",
                )
            with within_range(f"the block after {before} documents"):
                rows = sparse.csr_matrix(block, dtype=np.float64)
            strange = np.flatnonzero(~(np.isfinite(rows.data) & (rows.data >= 0.0)))
            if len(strange):
                d = int(np.searchsorted(rows.indptr, strange[0], side="right")) - 1
                raise DataError(
                    f"document {before + d} has a count of {rows.data[strange[0]]:g}",
                    "counts of words are finite and cannot be negative",
                )
            n_words, before = rows.shape[1], before + rows.shape[0]
            yield Bags.of(rows)

    def write(self, folder: Path) -> None:
        """Count the documents; then words that count get their numbers, documents their order."""
        scratch = folder / "scratch"
        with disk_errors(scratch):
            scratch.mkdir()
        raw, found, vectorizer = self._count(scratch)
        n, n_words = raw.n_documents, raw.n_words
        new, files = None, {}
        if found is not None:
            new = np.full(n_words, -1, np.int32)  # −1: the word does not count
            words: list[str] = []
            if self.known is not None and self.known.words is not None:
                words = list(self.known.words)
                places = {word: place for place, word in enumerate(words)}
                for one in found:
                    new[list(one.numbers)] = places.get(one.word, -1)
            else:
                for one in self.wanted.choose(found, n):
                    new[list(one.numbers)] = len(words)
                    words.append(one.word)
            if not words:
                raise DataError(
                    "no words are left: every document is empty, or all its words were left out",
                    "look at the documents, at min_count, max_share and the stop words",
                )
            n_words = len(words)
            text = "[\n" + ",\n".join(map(json.dumps, words)) + "\n]\n"
            files[VOCABULARY] = write_file(folder / VOCABULARY, text)
        order = None if self.shuffle is None else np.random.default_rng(self.shuffle).permutation(n)
        if order is not None:
            files[ORIGIN] = write_file(folder / ORIGIN, order.astype("<i8"))
        with RowWriter(folder) as writer:
            for documents in _split_order(raw, order):
                rows = raw.take(documents)
                if new is not None:  # words in the order of their new numbers
                    columns = new[rows.columns]
                    kept = columns >= 0
                    indptr = np.append(0, np.cumsum(kept))[rows.indptr]
                    shape = (len(documents), n_words)
                    matrix = sparse.csr_matrix((rows.value[kept], columns[kept], indptr), shape)
                    matrix.sort_indices()
                    rows = Compressed(matrix.indptr, matrix.indices, matrix.data)
                writer.append(rows)
                self.on_progress("writing", writer.n_documents)
            files |= writer.sync()
        indptr = map_file(folder / INDPTR, "<i8", n + 1)
        ArchiveFacts(
            n_documents=n,
            n_words=n_words,
            n_entries=writer.n_entries,
            tokens=writer.tokens,
            counts=writer.counts,
            shards=[0, *(last for _, last in split_rows(indptr, SHARD_ENTRIES, SHARD_DOCUMENTS))],
            sources=self.sources.counts,
            shuffle=self.shuffle,
            vectorizer=vectorizer,
            wanted=asdict(self.wanted) | {"stop_words": len(self.wanted.stop_words)},
            files=files,
        ).write(folder)
        shutil.rmtree(scratch)


def _split_order(rows: RowFiles, order: IntArray | None) -> Iterator[IntArray]:
    """All documents, in this order or their own, as many at a time as memory is meant to hold."""
    for first in range(0, rows.n_documents, SHARD_DOCUMENTS):
        last = min(first + SHARD_DOCUMENTS, rows.n_documents)
        some = np.arange(first, last) if order is None else order[first:last]
        borders = np.append(0, np.cumsum(rows.indptr[some + 1] - rows.indptr[some]))
        for low, high in split_rows(borders, SHARD_ENTRIES, SHARD_DOCUMENTS):
            yield some[low:high]
