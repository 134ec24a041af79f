"""The files of an archive: rows of counts, what it says of itself, and which words it keeps."""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import Array
from softcount.text.bags import Compressed

INDPTR, WORDS, COUNTS = "indptr.bin", "words.bin", "counts.bin"
SMALL, WIDE = "<u2", "<f8"
AT_ONCE = 1 << 20
"""So many numbers are copied at a time."""
DAMAGED = "the archive is damaged or was not written by softcount: build it again"


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
        with disk_errors(path):
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
        return map_file(self.folder / INDPTR, "<i8", self.n_documents + 1)

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


def split_rows(indptr: Array, most_entries: int, most_documents: int) -> Iterator[tuple[int, int]]:
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


# What an archive says of itself: ``meta.json``, written last and trusted by nobody.


META, VOCABULARY, ORIGIN = "meta.json", "vocabulary.json", "origin.bin"
FORMAT, FORMAT_VERSION = "softcount archive", 1
WANTED = {"min_count", "max_share", "max_words", "stop_words"}
LARGEST_META = 1 << 26
"""No honest meta.json has more bytes."""


@dataclass(frozen=True)
class ArchiveFacts:
    """What an archive holds.

    ``tokens``      counts added up
    ``counts``      the dtype of counts.bin
    ``shards``      borders: shard s has documents shards[s] ≤ d < shards[s + 1]
    ``sources``     names of places, and how many documents came from each; empty: from one
    ``shuffle``     the seed by which documents were shuffled, or None
    ``vectorizer``  how texts were cut into words (`softcount.text.documents.described`), or None
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
    try:
        if size_of(path) > LARGEST_META:
            raise StoreError(f"{path} is too large", DAMAGED)
        said = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    except StoreError:  # is a ValueError too
        raise
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not JSON: {error}", DAMAGED) from error
    facts = _checked(path, said)
    for name, size in _sizes(facts, folder).items():
        if size_of(folder / name) != size:
            raise StoreError(
                f"{folder / name} has {size_of(folder / name)} bytes, not {size}", DAMAGED
            )
    return facts


def size_of(path: Path) -> int:
    """Bytes of a regular file; a pipe or a device could keep us waiting for ever."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is not a file", DAMAGED)
    return status.st_size


def _checked(path: Path, said: Any) -> ArchiveFacts:
    """Facts of the right types, if they do not contradict each other."""
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise StoreError(f"{path} describes no softcount archive", DAMAGED)
    if said.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{path} has format version {said.get('format_version')!r}, "
            f"and this softcount reads {FORMAT_VERSION}",
            "install a softcount that reads it, or build the archive again",
        )
    if said.pop("sha256", None) != _digest(said):
        raise StoreError(f"{path} does not match its own checksum", DAMAGED)
    for name, is_sound in _SOUND.items():
        if name not in said or not is_sound(said[name]):
            raise StoreError(f"{path}: {name} is missing or is nothing that it can be", DAMAGED)
    values = {field.name: said[field.name] for field in fields(ArchiveFacts)}
    values["sources"] = [(name, n) for name, n in values["sources"]]
    values["files"] = {name: (size, digest) for name, (size, digest) in values["files"].items()}
    facts = ArchiveFacts(**values)
    _demand_agreement(path, facts)
    return facts


def _demand_agreement(path: Path, facts: ArchiveFacts) -> None:
    borders = facts.shards
    rising = all(a < b for a, b in pairwise(borders))
    if not rising or borders[0] != 0 or borders[-1] != facts.n_documents:
        raise StoreError(f"{path}: the shards' borders are out of order", DAMAGED)
    if facts.sources and sum(n for _, n in facts.sources) != facts.n_documents:
        raise StoreError(f"{path}: the sources have other numbers of documents", DAMAGED)


def _sizes(facts: ArchiveFacts, folder: Path) -> dict[str, int]:
    """The bytes that every file must have; names that are none of ours are refused."""
    expected = facts.rows(folder).sizes()
    if facts.shuffle is not None:
        expected[ORIGIN] = 8 * facts.n_documents
    if VOCABULARY in facts.files:
        expected[VOCABULARY] = facts.files[VOCABULARY][0]
    if {name: size for name, (size, _) in facts.files.items()} != expected:
        raise StoreError(f"{folder / META}: the files are not those of an archive", DAMAGED)
    return expected


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 56


def _is_figure(value: Any) -> bool:
    return value is None or type(value) in (int, float)


def _is_list_of(value: Any, is_sound: Any) -> bool:
    return isinstance(value, list) and all(map(is_sound, value))


def _is_source(value: Any) -> bool:
    return _is_pair(value) and isinstance(value[0], str) and _is_number(value[1])


def _is_stamp(value: Any) -> bool:
    return _is_pair(value) and _is_number(value[0]) and isinstance(value[1], str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2


_SOUND: dict[str, Callable[[Any], bool]] = {
    "n_documents": lambda v: _is_number(v) and v > 0,
    "n_words": lambda v: _is_number(v) and v < 1 << 31,
    "n_entries": _is_number,
    "tokens": lambda v: type(v) is float and math.isfinite(v) and v >= 0.0,
    "counts": lambda v: v in (SMALL, WIDE),
    "shards": lambda v: _is_list_of(v, _is_number) and len(v) > 1,
    "sources": lambda v: _is_list_of(v, _is_source),
    "shuffle": lambda v: v is None or _is_number(v),
    "vectorizer": lambda v: v is None or isinstance(v, dict),
    "wanted": lambda v: (
        isinstance(v, dict) and set(v) == WANTED and all(map(_is_figure, v.values()))
    ),
    "files": lambda v: isinstance(v, dict) and all(map(_is_stamp, v.values())),
}


# Which words a corpus has and which of them count, however many there are.


MOST_AT_ONCE = 1 << 20
"""So many words, and those of one more piece of text, are kept in memory: some 500 MB at worst."""


class FoundWord(NamedTuple):
    """A word, how many documents have it, and the numbers it went by."""

    word: str
    documents: int
    numbers: tuple[int, ...]


class WordTable:
    """Numbers for words, in the order in which they come, and how many documents have each.

    A table that grows too large is put on disk, sorted, and a new one begun with new numbers, so
    that a word may have several; `merged` brings them together. Memory stays bounded, counts exact.

    ``numbers``  word → number; a word that is not there gets the next one. New after `add`.
    """

    def __init__(self, folder: Path, most: int = MOST_AT_ONCE) -> None:
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

    def add(self, words: Array) -> None:
        """Numbers of words in some documents, each once for each document that has the word."""
        seen = np.bincount(words - self._first, minlength=len(self.numbers))
        seen[: len(self._documents)] += self._documents
        self._documents = seen
        if len(self.numbers) > self._most:
            self._put_away()

    def _put_away(self) -> None:
        path = self._folder / f"words-{len(self._runs)}.jsonl"
        with disk_errors(path), path.open("x", encoding="ascii") as file:
            for one in self._sorted():
                file.write(json.dumps(one) + "\n")
        self._runs.append(path)
        self._begin(self.size)

    def _sorted(self) -> list[tuple[str, int, int]]:
        each = zip(self.numbers.items(), self._documents.tolist(), strict=True)
        return sorted((word, documents, number) for (word, number), documents in each)

    def merged(self) -> Iterator[FoundWord]:
        """All words in alphabetical order."""
        runs: list[Iterable[tuple[str, int, int]]] = [self._sorted(), *map(_read, self._runs)]
        for word, same in groupby(heapq.merge(*runs), key=itemgetter(0)):
            _, documents, numbers = zip(*same, strict=True)
            yield FoundWord(word, sum(documents), numbers)


def _read(run: Path) -> Iterator[tuple[str, int, int]]:
    with run.open(encoding="ascii") as file:
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


@dataclass(frozen=True)
class FixedWords:
    """The words of another corpus, which are the ones that count, in its order.

    ``words``     None: its columns have no names
    ``n_words``   how many these are
    ``analyzer``  how its texts were cut (`softcount.text.documents.ANALYZERS`); None: nobody knows
    """

    words: Sequence[str] | None
    n_words: int
    analyzer: str | None = None

    def renumber(self, found: Iterable[FoundWord], size: int) -> Array:
        """The place of each number's word among these words; −1: it is none of them.

        >>> found = [FoundWord("a", 2, (0, 3)), FoundWord("x", 1, (2,))]
        >>> FixedWords(["b", "a"], 2).renumber(found, 4)
        array([ 1, -1, -1,  1], dtype=int32)
        """
        places = {word: place for place, word in enumerate(self.words or ())}
        new = np.full(size, -1, np.int32)
        for one in found:
            new[list(one.numbers)] = places.get(one.word, -1)
        return new


def check_stop_words(words: Iterable[str]) -> frozenset[str]:
    """Words to leave out.

    >>> sorted(check_stop_words(["the", "of"]))
    ['of', 'the']
    """
    if isinstance(words, str):
        raise DataError(f"stop_words is one text: {brief(words)}", "give a list of words")
    return frozenset(words)


def renumber_words(chosen: Iterable[FoundWord], size: int) -> tuple[list[str], Array]:
    """The words that were chosen, and the new number of each old one; −1: it does not count.

    >>> renumber_words([FoundWord("a", 2, (0, 3)), FoundWord("b", 1, (2,))], 4)
    (['a', 'b'], array([ 0, -1,  1,  0], dtype=int32))
    """
    words: list[str] = []
    new = np.full(size, -1, np.int32)
    for one in chosen:
        for number in one.numbers:
            new[number] = len(words)
        words.append(one.word)
    if not words:
        raise DataError(
            "no words are left: every document is empty, or all its words were left out",
            "look at the documents, at min_count, max_share and the stop words",
        )
    return words, new
