"""Corpora larger than memory: word counts in a folder on disk, read one shard at a time.

The folder has the counts as flat files (``indptr.bin``, ``words.bin``, ``counts.bin``: the rows of
a CSR matrix), the words (``vocabulary.json``), the order of shuffled documents (``origin.bin``),
and ``meta.json``, which describes the archive. That file is written last, and nothing in it is
trusted without a check.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import os
import shutil
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from softcount.core.bounds import within_range
from softcount.core.drafts import open_whole_folder
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import Array, IntArray
from softcount.text.bags import Bags, Compressed, cut_documents, split_rows
from softcount.text.counter import WordCounter, as_it_is
from softcount.text.documents import describe_vectorizer, restore_vectorizer
from softcount.text.lines import size_of_file
from softcount.text.tokenise import spaces, words

INDPTR, WORDS, COUNTS = "indptr.bin", "words.bin", "counts.bin"
META, VOCABULARY, ORIGIN = "meta.json", "vocabulary.json", "origin.bin"
SMALL, WIDE = "<u2", "<f8"
"""Dtypes of stored counts: 16-bit integers, or floats if some count does not fit."""
FORMAT, FORMAT_VERSION = "softcount archive", 1
WANTED = {"min_count", "max_share", "max_words", "stop_words"}
LARGEST_META = 1 << 26
"""A larger meta.json, in bytes, is refused as damaged."""
DAMAGED = "the archive is damaged or was not written by softcount: build it again"

AT_ONCE = 1 << 20
"""Tokens of text in memory at a time, or slightly more: a document is never split."""
SHARD_ENTRIES, SHARD_DOCUMENTS = 1 << 22, 1 << 16
"""The largest number of entries (document, word), and of documents, in a shard."""
MOST_WORDS_AT_ONCE = 1 << 20
"""Distinct words kept in memory, plus those of one more chunk of text: at worst some 500 MB."""

OnProgress = Callable[[str, int], None]
"""Progress callback: called with the current stage and the number of documents processed."""


@dataclass(frozen=True, eq=False)
class ArchivePart:
    """A subset of the documents of an archive; their words are read on first use.

    The bags live as long as this part does. `Archive.shards` creates a new part on every access, so
    that a loop over parts keeps only one in memory.

    Pickles and records have no words, but say which documents of which archive these are. Whoever
    reads them must see the archive in the same folder; another archive in its place is an error.

    ``folder``   the folder of the archive, an absolute path
    ``digest``   the digest of the archive's metadata
    ``numbers``  the documents' numbers in the archive
    """

    folder: Path
    digest: str
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def archive(self) -> Archive:
        return _reopen(self.folder, self.digest)

    @cached_property
    def bags(self) -> Bags:
        return self.archive.bags(self.numbers)

    def __getstate__(self) -> tuple[Path, str, IntArray | tuple[int, int]]:
        numbers = self.numbers
        if len(numbers) and (np.diff(numbers) == 1).all():
            return self.folder, self.digest, (int(numbers[0]), int(numbers[-1]) + 1)
        return self.folder, self.digest, numbers

    def __setstate__(self, state: tuple[Path, str, IntArray | tuple[int, int]]) -> None:
        folder, digest, numbers = state
        if isinstance(numbers, tuple):
            numbers = np.arange(*numbers)
        vars(self).update(folder=folder, digest=digest, numbers=numbers)


@dataclass(frozen=True, eq=False)
class ArchiveParts(Sequence[ArchivePart]):
    """All documents of an archive, in parts that are created on access.

    ``borders``  part i has the places borders[i] ≤ p < borders[i + 1]
    ``turn``     the order in which the parts come
    ``order``    the document at each place; None: document p is at place p
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
        return self.archive.part(numbers)


@dataclass(frozen=True, eq=False)
class Archive(PickledWithoutCaches):
    """Counts of documents × words on disk, written once and read one shard at a time.

    Models learn from it as from any corpus (`softcount.core.model.Corpus`). No file is kept open,
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
        on_progress: OnProgress = lambda stage, documents: None,
    ) -> Self:
        """Write an archive, completely or not at all, and open it. The documents are read once.

        ``documents``    texts, lists of words, or blocks of counts (sparse matrices with the same
                         columns); a generator if there are many. A mapping from names to these
                         keeps the names, so that a document is called ``notes.txt:17``
        ``path``         the folder to create
        ``tokens``       split texts at white space; otherwise find words and lowercase them
        ``min_count``    drop words that occur in fewer documents than this
        ``max_share``    drop words that occur in more than this proportion of documents
        ``max_words``    keep at most this many words, those that occur in the most documents
        ``stop_words``   words to drop
        ``vocabulary``   the words of the columns, for blocks of counts
        ``like``         another archive, or its words: the columns will be the same, in the same
                         order, and all other words are dropped. Texts are tokenised as there
        ``shuffle``      a seed: documents are stored in random order, which `origin` records. A
                         mini-batch is then one contiguous read instead of many scattered ones;
                         needs 24 bytes of memory per document
        ``on_progress``  called with the current stage and the number of documents processed
        """
        if isinstance(stop_words, str):
            raise DataError(
                f"stop_words is a single text: {brief(stop_words)}", "give a list of words"
            )
        selection = WordSelection(min_count, max_share, max_words, frozenset(stop_words))
        _check_names(vocabulary)
        fixed = _find_fixed_words(like, selection)
        if shuffle is not None and shuffle < 0:
            raise DataError(f"shuffle={shuffle} is not a seed", "give a whole number of 0 or more")
        builder = _Builder(
            Sources(documents), tokens, vocabulary, fixed, selection, shuffle, on_progress
        )
        with _new_folder(Path(path)) as folder:
            builder.write(folder)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the archive in a folder; raise `StoreError` if there is none.

        File sizes are checked here and numbers when they are read; checksums only by `verify`,
        because they require reading all files.
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
        """The sum of all counts."""
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
            raise StoreError(f"{path} is not a list of words: {error}", DAMAGED) from error
        valid = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not valid or len(words) != self.n_words or len(set(words)) != len(words):
            raise StoreError(f"{path} is not a list of {self.n_words} distinct words", DAMAGED)
        if hashlib.sha256(raw).hexdigest() != self.facts.files[VOCABULARY][1]:
            raise StoreError(f"{path} does not match its checksum", DAMAGED)
        return np.array(words, dtype=object)

    def vectorizer(self) -> Any:
        """Return a vectorizer that counts new texts as those of the archive were counted.

        None if the archive was not built from texts.
        """
        if self.facts.vectorizer is None:
            return None
        return restore_vectorizer(self.facts.vectorizer, self.vocabulary)

    @property
    def origin(self) -> IntArray:
        """The position of each document in the input, counted from 0, (documents,).

        ``out[archive.origin] = rows`` puts rows, one per document, back in the order of the input.
        """
        n = self.n_documents
        if self.facts.shuffle is None:
            return np.arange(n)
        origin = np.array(map_file(self.path / ORIGIN, "<i8", n), np.int64)
        if not 0 <= origin.min() <= origin.max() < n or np.bincount(origin).max() > 1:
            raise StoreError(f"{self.path / ORIGIN} is not a permutation of {n} documents", DAMAGED)
        return origin

    # the Corpus protocol
    def __len__(self) -> int:
        return self.n_documents

    def name(self, number: int) -> str:
        """Return the name of a document: FILE:LINE if known."""
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
            raise StoreError(f"{self.path / ORIGIN} is not a permutation of the documents", DAMAGED)
        return place

    def shards(self, batch_size: int | None = None, seed: int = 0) -> ArchiveParts:
        """Return all documents in the archive's shards, or as shuffled mini-batches.

        If the archive was shuffled when it was built, mini-batches are runs of consecutive
        documents, and only the order of the mini-batches is random.
        """
        if batch_size is None:
            borders = np.array(self.facts.shards)
            return ArchiveParts(self, borders, np.arange(len(borders) - 1))
        if batch_size < 1:
            raise DataError(f"batch_size={batch_size} is not positive", "give 1 or more")
        n = self.n_documents
        borders = np.append(np.arange(0, n, batch_size), n)
        rng = np.random.default_rng(seed)
        if self.facts.shuffle is not None:
            return ArchiveParts(self, borders, rng.permutation(len(borders) - 1))
        return ArchiveParts(self, borders, np.arange(len(borders) - 1), rng.permutation(n))

    # counts
    def part(self, numbers: IntArray) -> ArchivePart:
        """Return some documents, whose words are read when they are needed."""
        part = ArchivePart(self.path.absolute(), self.facts.digest, numbers)
        vars(part)["archive"] = self  # known already: there is no need to open it again
        return part

    def bags(self, numbers: IntArray) -> Bags:
        """Read some documents, each at most once, into memory."""
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

    def cut(self) -> list[tuple[int, int]]:
        """Cut the documents as `Bags` of them are cut in memory; this depends on them alone.

        Where each document begins is read for this, 8 bytes for each.
        """
        n = self.n_documents
        indptr = read_numbers(self.path / INDPTR, "<i8", 0, n + 1)
        if indptr[0] != 0 or indptr[-1] != self.facts.n_entries or (np.diff(indptr) < 0).any():
            raise StoreError(f"{self.path / INDPTR} has offsets that are out of order", DAMAGED)
        return cut_documents(indptr, self.n_words)

    def select(self, numbers: Any) -> Any:
        """Read some documents as a scipy CSR matrix, each at most once."""
        return self.bags(np.arange(self.n_documents)[numbers]).matrix

    def matrix(self, shard: int) -> Any:
        """Return the counts of a shard as a scipy CSR matrix."""
        return self.shards()[shard].bags.matrix

    def sample(self, n: int, seed: int = 0) -> Any:
        """Return a random sample of n documents, in order, as a scipy CSR matrix.

        All documents if there are fewer than n.
        """
        size = min(n, self.n_documents)
        drawn = np.random.default_rng(seed).choice(self.n_documents, size, replace=False)
        return self.bags(np.sort(drawn)).matrix

    def verify(self) -> None:
        """Read every file and verify its checksum; raise `StoreError` if one does not match."""
        for name, (_, digest) in self.facts.files.items():
            path = self.path / name
            try:
                with path.open("rb") as file:
                    actual = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise StoreError(f"cannot read {path}: {error.strerror}", DAMAGED) from error
            if actual != digest:
                raise StoreError(f"{path} does not match its checksum", DAMAGED)


# Metadata of an archive.


@dataclass(frozen=True)
class ArchiveFacts:
    """The metadata of an archive, as stored in ``meta.json``.

    ``tokens``      the sum of all counts
    ``counts``      the dtype of counts.bin
    ``shards``      borders: shard s has documents shards[s] ≤ d < shards[s + 1]
    ``sources``     name and number of documents of each source; empty: one source without a name
    ``shuffle``     the seed by which documents were shuffled, or None
    ``vectorizer``  how texts were tokenised, as returned by `describe_vectorizer`; or None
    ``wanted``      the criteria by which words were kept, for information only
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

    @cached_property
    def digest(self) -> str:
        """A digest of the metadata, checksums of all files among them."""
        return _digest(self._contents())

    def _contents(self) -> dict[str, Any]:
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    def write(self, folder: Path) -> None:
        facts = self._contents() | {"sha256": self.digest}
        write_file(folder / META, json.dumps(facts, indent=1) + "\n")


@lru_cache(maxsize=64)
def _reopen(folder: Path, digest: str) -> Archive:
    """Open the archive that a part is from, once in a process."""
    archive = Archive.open(folder)
    if archive.facts.digest != digest:
        raise StoreError(
            f"the archive in {folder} is not the one that these documents are from",
            "put that archive back, or learn from this one from the start",
        )
    return archive


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def read_facts(folder: Path) -> ArchiveFacts:
    """Read the metadata of an archive and check that they are plausible.

    All files must exist and have the right sizes; raises `StoreError` otherwise. The files'
    contents are checked when they are used.
    """
    path = folder / META
    if not folder.is_dir():
        raise StoreError(f"there is no archive {folder}", "build one: softcount corpus build")
    if not path.exists():
        raise StoreError(
            f"{folder} is not an archive: it has no {META}",
            "name the files in the folder, or build an archive from them: softcount corpus build",
        )
    if size_of_file(path, DAMAGED) > LARGEST_META:
        raise StoreError(f"{path} is too large", DAMAGED)
    try:
        meta = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}", DAMAGED) from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not JSON: {error}", DAMAGED) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise StoreError(f"{path} does not describe a softcount archive", DAMAGED)
    if meta.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{path} has format version {meta.get('format_version')!r}, "
            f"but this softcount reads version {FORMAT_VERSION}",
            "install a softcount that reads it, or build the archive again",
        )
    if meta.pop("sha256", None) != _digest(meta):
        raise StoreError(f"{path} does not match its own checksum", DAMAGED)
    for name, is_valid in _VALIDATORS.items():
        if name not in meta or not is_valid(meta[name]):
            raise StoreError(f"{path}: {name} is missing or invalid", DAMAGED)
    meta["sources"] = [tuple(source) for source in meta["sources"]]
    meta["files"] = {name: tuple(stamp) for name, stamp in meta["files"].items()}
    facts = ArchiveFacts(**{field.name: meta[field.name] for field in fields(ArchiveFacts)})
    borders, n = facts.shards, facts.n_documents
    if borders[0] != 0 or borders[-1] != n or not all(a < b for a, b in pairwise(borders)):
        raise StoreError(f"{path}: the shards' borders are out of order", DAMAGED)
    if facts.sources and sum(n for _, n in facts.sources) != n:
        raise StoreError(f"{path}: the sources' documents do not sum to {n}", DAMAGED)
    expected = {
        INDPTR: 8 * (n + 1),
        WORDS: 4 * facts.n_entries,
        COUNTS: np.dtype(facts.counts).itemsize * facts.n_entries,
    }
    if facts.shuffle is not None:
        expected[ORIGIN] = 8 * n
    if VOCABULARY in facts.files:
        expected[VOCABULARY] = facts.files[VOCABULARY][0]
    if {name: size for name, (size, _) in facts.files.items()} != expected:
        raise StoreError(f"{path}: the files' names or sizes are not those of an archive", DAMAGED)
    for name, size in expected.items():
        if (actual := size_of_file(folder / name, DAMAGED)) != size:
            raise StoreError(f"{folder / name} has {actual} bytes, not {size}", DAMAGED)
    return facts


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 56


def _are_pairs(values: Iterable[Any], *kinds: type) -> bool:
    """Return whether all values are pairs of these types, with integers of 0 or more."""
    return all(
        isinstance(pair, list)
        and tuple(map(type, pair)) == kinds
        and all(_is_count(value) for value in pair if type(value) is int)
        for pair in values
    )


_VALIDATORS: dict[str, Callable[[Any], bool]] = {
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
"""For each fact, whether a value of ``meta.json`` is valid."""


# Rows of counts in flat files.


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk into a `StoreError` with a hint."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}",
            "choose a folder that exists, is writable and has free space",
        ) from error


class GrowingFile:
    """A new append-only file, with the SHA-256 of its contents."""

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
        """Flush everything to the disk; return the file's size and SHA-256."""
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self.size, self._digest.hexdigest()

    def close(self) -> None:
        with disk_errors(self.path):
            self._file.close()


def write_file(path: Path, content: Array | str) -> tuple[int, str]:
    """Write a new file and flush it to the disk; return its size and SHA-256.

    Texts must be ASCII.
    """
    file = GrowingFile(path)
    file.append(content.encode("ascii") if isinstance(content, str) else content)
    stamp = file.sync()
    file.close()
    return stamp


class RowWriter:
    """Writer that appends documents to flat files in a folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.n_documents = self.n_entries = 0
        self.tokens, self.counts = 0.0, SMALL
        self._files = {name: GrowingFile(folder / name) for name in (INDPTR, WORDS, COUNTS)}
        self._files[INDPTR].append(np.zeros(1, "<i8"))

    def append(self, rows: Compressed) -> None:
        """Append documents."""
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
        """Flush everything to the disk; return the size and SHA-256 of each file."""
        return {name: file.sync() for name, file in self._files.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def _widen(self) -> None:
        """Rewrite the counts so far as float64."""
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
    """Flat files of documents. No file is kept open: each is opened when it is read.

    Consecutive documents are one range of each file. For scattered ones whole files are mapped into
    memory, which takes address space, but no memory.

    What is read from disk is always checked: a word number beyond ``n_words`` would make kernels
    write out of bounds.
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
        """Read the documents first ≤ d < last."""
        indptr = read_numbers(self.folder / INDPTR, "<i8", first, last + 1).astype(np.int64)
        self._check_borders(indptr[:-1], indptr[1:])
        return self._read(indptr - indptr[0], slice(int(indptr[0]), int(indptr[-1])))

    def take(self, documents: IntArray) -> Compressed:
        """Read any documents, each at most once, in any order."""
        indptr = self.indptr
        starts = np.array(indptr[documents], np.int64)
        ends = np.array(indptr[documents + 1], np.int64)
        self._check_borders(starts, ends)
        indptr = np.append(0, np.cumsum(ends - starts))
        entries = np.repeat(starts - indptr[:-1], ends - starts) + np.arange(indptr[-1])
        return self._read(indptr, entries)

    def _check_borders(self, starts: IntArray, ends: IntArray) -> None:
        valid = bool((starts >= 0).all() and (starts <= ends).all())
        if not valid or (ends > self.n_entries).any() or (ends - starts).sum() > self.n_entries:
            raise StoreError(f"{self.folder / INDPTR} has offsets that are out of order", DAMAGED)

    def _read(self, indptr: IntArray, entries: IntArray | slice) -> Compressed:
        """Copy these entries after checking that word numbers and counts are valid."""
        stored = []
        for name, dtype in ((WORDS, "<i4"), (COUNTS, self.counts)):
            if isinstance(entries, slice):
                numbers = read_numbers(self.folder / name, dtype, entries.start, entries.stop)
            else:
                numbers = map_file(self.folder / name, dtype, self.n_entries)[entries]
            stored.append(numbers)
        words, value = np.asarray(stored[0], np.int32), np.asarray(stored[1], np.float64)
        if len(words) and not 0 <= words.min() <= words.max() < self.n_words:
            raise StoreError(
                f"{self.folder / WORDS} has word numbers outside 0 to {self.n_words - 1}", DAMAGED
            )
        if len(value) and not 0.0 < value.min() <= value.max() < np.inf:
            raise StoreError(
                f"{self.folder / COUNTS} has counts that are not positive and finite", DAMAGED
            )
        return Compressed(indptr, words, value)


def read_numbers(path: Path, dtype: str, first: int, last: int) -> Array:
    """Read the numbers first ≤ i < last of a file."""
    size = np.dtype(dtype).itemsize
    try:
        numbers = np.fromfile(path, dtype, last - first, offset=first * size)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}", DAMAGED) from error
    if len(numbers) != last - first:
        raise StoreError(f"{path} is shorter than it was", DAMAGED)
    return numbers


def map_file(path: Path, dtype: str, size: int) -> Array:
    """Map the numbers in a file into memory; they are read when they are used."""
    if size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, mode="r", shape=(size,)))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be mapped: {error}", DAMAGED) from error


# The words of a corpus and the selection of a vocabulary, with bounded memory.


class WordStatistics(NamedTuple):
    """A word, its document frequency, and the provisional numbers that it was given."""

    word: str
    documents: int
    numbers: tuple[int, ...]


class DocumentFrequencies:
    """Provisional numbers for words, in order of appearance, and their document frequencies.

    A table that grows too large is sorted and written to disk, and a new one is started with new
    numbers, so that a word may have several; `merge` brings them together (an external merge sort).
    Memory stays bounded, and the frequencies are exact.

    ``numbers``  word → number; a missing word gets the next number. `add` may replace this mapping
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
        """The number of numbers assigned so far."""
        return self._first + len(self.numbers)

    def add(self, words: IntArray) -> None:
        """Update the document frequencies.

        ``words``  numbers of the words of some documents, each once per document that has it
        """
        frequencies = np.bincount(words - self._first, minlength=len(self.numbers))
        frequencies[: len(self._documents)] += self._documents
        self._documents = frequencies
        if len(self.numbers) > self._most:
            path = self._folder / f"words-{len(self._runs)}.jsonl"
            with disk_errors(path), path.open("x", encoding="ascii") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in self._sort())
            self._runs.append(path)
            self._begin(self.size)

    def _sort(self) -> list[tuple[str, int, int]]:
        entries = zip(self.numbers.items(), self._documents.tolist(), strict=True)
        return sorted((word, documents, number) for (word, number), documents in entries)

    def merge(self) -> Iterator[WordStatistics]:
        """Iterate over all words in alphabetical order."""
        runs: list[Iterable[tuple[str, int, int]]] = [self._sort(), *map(_read_run, self._runs)]
        for word, entries in groupby(heapq.merge(*runs), key=itemgetter(0)):
            _, documents, numbers = zip(*entries, strict=True)
            yield WordStatistics(word, sum(documents), numbers)


def _read_run(path: Path) -> Iterator[tuple[str, int, int]]:
    with path.open(encoding="ascii") as file:
        for line in file:
            word, documents, number = json.loads(line)
            yield word, documents, number


@dataclass(frozen=True)
class WordSelection:
    """Criteria for the words of the vocabulary.

    ``min_count``   the smallest document frequency
    ``max_share``   the largest proportion of documents that may have the word
    ``max_words``   the largest number of words: those with the highest document frequency
    ``stop_words``  words to drop
    """

    min_count: int = 1
    max_share: float = 1.0
    max_words: int | None = None
    stop_words: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.min_count < 1 or not 0.0 <= self.max_share <= 1.0:
            raise DataError(
                f"min_count={self.min_count}, max_share={self.max_share} are out of range",
                "min_count must be 1 or more, max_share from 0 to 1",
            )
        if self.max_words is not None and self.max_words < 1:
            raise DataError(f"max_words={self.max_words} leaves no word", "give 1 or more")

    def choose(self, words: Iterable[WordStatistics], n_documents: int) -> Iterator[WordStatistics]:
        """Select the words that meet the criteria, in the given order."""
        most = self.max_share * n_documents
        kept = (
            entry
            for entry in words
            if self.min_count <= entry.documents <= most and entry.word not in self.stop_words
        )
        if self.max_words is None:
            return kept
        best = heapq.nsmallest(
            self.max_words, enumerate(kept), key=lambda e: (-e[1].documents, e[0])
        )
        return iter([entry for _, entry in sorted(best, key=itemgetter(0))])


class FixedWords(NamedTuple):
    """The vocabulary of another corpus, to be used as it is, in the same order.

    ``words``     the words; None: its columns have no names
    ``n_words``   the number of words
    ``analyzer``  how its texts were tokenised (`softcount.text.documents.ANALYZERS`); None: unknown
    """

    words: Sequence[str] | None
    n_words: int
    analyzer: str | None = None


def _find_fixed_words(
    like: Archive | Sequence[str] | None, selection: WordSelection
) -> FixedWords | None:
    """Return the vocabulary given by the argument ``like`` of `Archive.build`."""
    if like is None:
        return None
    if selection != WordSelection():
        raise DataError(
            "like determines the vocabulary, so that other criteria for words have no effect",
            "leave out min_count, max_share, max_words and stop_words",
        )
    if isinstance(like, Archive):
        words = None if like.vocabulary is None else like.vocabulary.tolist()
        return FixedWords(words, like.n_words, (like.facts.vectorizer or {}).get("analyzer"))
    if isinstance(like, str | os.PathLike):
        raise DataError(
            f"like is {brief(like)}, a path, not an archive", "open it: like=Archive.open(…)"
        )
    _check_names(like)
    if not len(like):
        raise DataError("like has no words", "give at least one")
    return FixedWords(list(like), len(like))


def _check_names(vocabulary: Sequence[str] | None) -> None:
    """Raise if the names of columns are not distinct strings."""
    names = list(vocabulary or ())
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"the vocabulary has {brief(name)} among its words", "give strings")
    if len(set(names)) < len(names):
        raise DataError("the vocabulary has a word twice", "give distinct words")


# Building an archive: documents are read once, in order, with bounded memory.
#
# In the first pass, words get provisional numbers and the rows are written to disk as they come.
# Then the vocabulary is known, and a second pass writes all rows again with final numbers, words in
# alphabetical order (or in the order of the fixed vocabulary), and documents shuffled if requested.


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Create a folder that appears under its name only on success; otherwise leave nothing."""
    if os.path.lexists(target):
        raise StoreError(f"{target} already exists", "remove it, or choose another name")
    of_documents = None
    try:
        with open_whole_folder(target) as folder:
            try:
                yield folder
            except OSError as error:
                of_documents = error  # reading the documents failed, not writing the folder
                raise
    except OSError as error:
        if error is of_documents:
            raise
        with disk_errors(target):
            raise


class Sources:
    """Iterate over documents of several named sources, or of one without a name, and count them.

    >>> sources = Sources({"a.txt": ["x", "y"], "b.txt": ["z"]})
    >>> list(sources), sources.counts
    (['x', 'y', 'z'], [('a.txt', 2), ('b.txt', 1)])
    """

    def __init__(self, documents: Mapping[str, Iterable[Any]] | Iterable[Any]) -> None:
        if isinstance(documents, str | bytes):
            raise DataError(
                f"the data are one text: {brief(documents)}",
                "give a list of texts, one for each document",
            )
        self._named = isinstance(documents, Mapping)
        self._sources: Mapping[str, Any] = (
            documents if isinstance(documents, Mapping) else {"": documents}
        )
        self._counts = dict.fromkeys(self._sources, 0)
        self._current = ""

    def __iter__(self) -> Iterator[Any]:
        for source, documents in self._sources.items():
            self._current = source
            for document in [documents] if _is_matrix(documents) else documents:
                self._counts[source] += document.shape[0] if _is_matrix(document) else 1
                yield document

    @property
    def counts(self) -> list[tuple[str, int]]:
        """The number of documents from each named source."""
        return list(self._counts.items()) if self._named else []

    @property
    def last_name(self) -> str:
        """The name of the document read last, for messages."""
        n = self._counts[self._current]
        return f"{self._current}:{n}" if self._named else f"document {n - 1}"


def _is_matrix(document: Any) -> bool:
    """Return whether this is a block of counts rather than a single document."""
    return getattr(document, "ndim", 1) == 2


@dataclass(frozen=True)
class _Builder:
    """Builder of archives; see `Archive.build` for the fields."""

    sources: Sources
    tokens: bool
    vocabulary: Sequence[str] | None
    fixed: FixedWords | None
    selection: WordSelection
    shuffle: int | None
    on_progress: OnProgress

    def _count(
        self, scratch: Path
    ) -> tuple[RowFiles, Iterable[WordStatistics] | None, dict[str, Any] | None]:
        """Make the first pass over the documents.

        Returns the counts, with provisional numbers for words; the statistics of the words, if they
        have names; and a description of how texts were tokenised, if they were.
        """
        documents = iter(self.sources)
        for first in documents:
            documents = chain([first], documents)
            break
        else:
            raise DataError("there are no documents", "give at least one")
        vectorizer: dict[str, Any] | None = None
        statistics: Iterable[WordStatistics] | None = None
        with RowWriter(scratch) as writer:
            if _is_matrix(first):
                n_words, frequencies = 0, np.zeros(0, np.int64)
                for bags in self._read_blocks(documents):
                    n_words = bags.n_words
                    in_block = np.bincount(bags.by_document.columns, minlength=n_words)
                    frequencies = in_block + frequencies if len(frequencies) else in_block
                    writer.append(bags.by_document)
                    self.on_progress("reading", writer.n_documents)
                if self.vocabulary is not None:
                    pairs = enumerate(zip(self.vocabulary, frequencies.tolist(), strict=True))
                    statistics = (WordStatistics(word, n, (i,)) for i, (word, n) in pairs)
            elif self.vocabulary is not None:
                raise DataError(
                    "vocabulary names the columns of counts, but the documents are texts",
                    "leave out vocabulary, or give the words as like=[…]",
                )
            else:
                table, analyzer = DocumentFrequencies(scratch), self._choose_analyzer(first)
                for rows in self._number_words(documents, analyzer, table):
                    writer.append(rows)
                    self.on_progress("reading", writer.n_documents)
                n_words, statistics = table.size, table.merge()
                vectorizer = describe_vectorizer(WordCounter(analyzer))
        files = RowFiles(scratch, writer.n_documents, n_words, writer.n_entries, writer.counts)
        return files, statistics, vectorizer

    def _choose_analyzer(self, first: Any) -> Callable[[Any], Sequence[str]]:
        """Return the tokeniser for documents like the first one: the same as that of ``fixed``."""
        fixed = self.fixed
        if fixed is not None and fixed.words is None:
            raise DataError(
                "the archive given as like has no names for its words, so texts cannot be counted",
                "give counts in the same columns, or an archive of texts",
            )
        analyzer: Callable[[Any], Sequence[str]]
        if isinstance(first, str):
            tokens = self.tokens or (fixed is not None and fixed.analyzer == "spaces")
            analyzer = spaces if tokens else words
        elif isinstance(first, list | tuple):
            analyzer = as_it_is
        else:
            hint = "give texts, lists of words, or sparse matrices of counts"
            if isinstance(first, bytes):
                hint = "decode it first, for example text.decode('utf-8')"
            raise DataError(f"the first document is {brief(first)}", hint)
        name = describe_vectorizer(WordCounter(analyzer))["analyzer"]
        if fixed is not None and fixed.analyzer not in (None, name):
            raise DataError(
                "the archive given as like was tokenised in another way "
                f"({fixed.analyzer!r}, but these documents {name!r})",
                "give documents of the same kind, and leave out tokens",
            )
        return analyzer

    def _number_words(
        self,
        documents: Iterable[Any],
        analyzer: Callable[[Any], Sequence[str]],
        table: DocumentFrequencies,
    ) -> Iterator[Compressed]:
        """Yield documents as counts of numbered words, many documents at a time."""
        numbers, ends = array("i"), array("q", [0])

        def sum_counts() -> Compressed:
            size = (len(ends) - 1, table.size)
            rows = sparse.csr_matrix(
                (np.ones(len(numbers)), np.asarray(numbers), np.asarray(ends)), size
            )
            rows.sum_duplicates()
            table.add(rows.indices)
            return Compressed(rows.indptr, rows.indices, rows.data)

        is_text = analyzer is not as_it_is
        expected = "texts" if is_text else "lists of words"
        empty = "an empty text" if is_text else "an empty list"
        for document in documents:
            if not isinstance(document, str if is_text else list | tuple):
                raise DataError(
                    f"{self.sources.last_name} is {brief(document)}, while others are {expected}",
                    f"give {expected} only; an empty document is {empty}",
                )
            if not is_text and not all(isinstance(word, str) for word in document):
                wrong = brief(next(word for word in document if not isinstance(word, str)))
                raise DataError(
                    f"{self.sources.last_name} has {wrong} among its words", "words are strings"
                )
            numbers.extend(map(table.numbers.__getitem__, analyzer(document)))
            ends.append(len(numbers))
            if max(len(numbers), len(ends)) >= AT_ONCE:
                yield sum_counts()
                numbers, ends = array("i"), array("q", [0])
        if len(ends) > 1:
            yield sum_counts()

    def _read_blocks(self, blocks: Iterable[Any]) -> Iterator[Bags]:
        """Yield blocks of counts, after checking that all have the same number of words."""
        fixed = self.fixed
        if fixed is not None and fixed.words is not None and self.vocabulary is None:
            raise DataError(
                "columns without names cannot be matched with the words given by like",
                "give the words of the columns: vocabulary=[…]",
            )
        if fixed is not None and fixed.words is None and self.vocabulary is not None:
            raise DataError(
                "the archive given as like has no names for its words, but these columns have",
                "leave out vocabulary, if the columns are the same",
            )
        if self.vocabulary is None and self.selection != WordSelection():
            raise DataError(
                "columns without names cannot be dropped: the rest could not be identified",
                "give the words of the columns: vocabulary=[…]",
            )
        n_words = None if fixed is None else fixed.n_words  # of columns without names
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
            wrong = np.flatnonzero(~(np.isfinite(rows.data) & (rows.data >= 0.0)))
            if len(wrong):
                d = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
                raise DataError(
                    f"document {before + d} has a count of {rows.data[wrong[0]]:g}",
                    "counts of words must be finite and not negative",
                )
            n_words, before = rows.shape[1], before + rows.shape[0]
            yield Bags.of(rows)

    def write(self, folder: Path) -> None:
        """Make both passes: count the words, then write rows with the final words and order."""
        scratch = folder / "scratch"
        with disk_errors(scratch):
            scratch.mkdir()
        raw, statistics, vectorizer = self._count(scratch)
        n, n_words = raw.n_documents, raw.n_words
        final, files = None, {}
        if statistics is not None:
            final = np.full(n_words, -1, np.int32)  # provisional → final number; −1: dropped
            words: list[str] = []
            if self.fixed is not None and self.fixed.words is not None:
                words = list(self.fixed.words)
                take_columns = {word: column for column, word in enumerate(words)}
                for entry in statistics:
                    final[list(entry.numbers)] = take_columns.get(entry.word, -1)
            else:
                for entry in self.selection.choose(statistics, n):
                    final[list(entry.numbers)] = len(words)
                    words.append(entry.word)
            if not words:
                raise DataError(
                    "no words are left: every document is empty, or all its words were dropped",
                    "check the documents, min_count, max_share and the stop words",
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
                if final is not None:  # renumber, drop and sort words
                    columns = final[rows.columns]
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
            wanted=asdict(self.selection) | {"stop_words": len(self.selection.stop_words)},
            files=files,
        ).write(folder)
        shutil.rmtree(scratch)


def _split_order(rows: RowFiles, order: IntArray | None) -> Iterator[IntArray]:
    """Yield all documents, in the given or their original order, at most a shard at a time."""
    for first in range(0, rows.n_documents, SHARD_DOCUMENTS):
        last = min(first + SHARD_DOCUMENTS, rows.n_documents)
        documents = np.arange(first, last) if order is None else order[first:last]
        borders = np.append(0, np.cumsum(rows.indptr[documents + 1] - rows.indptr[documents]))
        for low, high in split_rows(borders, SHARD_ENTRIES, SHARD_DOCUMENTS):
            yield documents[low:high]


# Archives as a kind of corpus (`softcount.text.corpora`).


def build_documents(
    data: Any,
    path: str | os.PathLike[str],
    *,
    on_progress: Callable[[int], object] = lambda documents: None,
    **options: Any,
) -> Archive:
    """Write an archive, and open it; for ``options`` see `Archive.build`."""

    def tell(stage: str, documents: int) -> None:
        if stage == "reading":
            on_progress(documents)

    return Archive.build(data, path, on_progress=tell, **options)
