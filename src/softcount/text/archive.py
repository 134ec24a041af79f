"""Corpora larger than memory: counts of words in a folder on disk, read a shard at a time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core.bounds import within_range
from softcount.core.drafts import open_whole_folder
from softcount.core.errors import DataError, StoreError, brief
from softcount.core.types import Array
from softcount.text.archive_format import (
    DAMAGED,
    INDPTR,
    ORIGIN,
    VOCABULARY,
    ArchiveFacts,
    FixedWords,
    FoundWord,
    RowFiles,
    RowWriter,
    WordSelection,
    WordTable,
    check_stop_words,
    disk_errors,
    map_file,
    read_facts,
    renumber_words,
    split_rows,
    write_file,
)
from softcount.text.bags import Bags, Compressed
from softcount.text.documents import as_it_is, describe_vectorizer, restore_vectorizer
from softcount.text.tokenise import spaces, words


@dataclass(frozen=True, eq=False)
class ArchivePart:
    """Some documents of an archive: their numbers in it, and their words once asked for.

    The bags live as long as this part does. `Archive.shards` makes a new part whenever it is asked,
    so that a loop over parts holds one at a time.
    """

    archive: Archive
    numbers: Array

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
    borders: Array
    turn: Array
    order: Array | None = None

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
        wanted = WordSelection(min_count, max_share, max_words, check_stop_words(stop_words))
        _demand_names(vocabulary)
        known = _fixed_words(like, wanted)
        if shuffle is not None and shuffle < 0:
            raise DataError(f"shuffle={shuffle} is no seed", "give a whole number from 0 on")
        _build(
            Sources(documents),
            Path(path),
            wanted,
            tokens=tokens,
            vocabulary=vocabulary,
            known=known,
            shuffle=shuffle,
            on_progress=on_progress,
        )
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
    def origin(self) -> Array:
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
    def bags(self, numbers: Array) -> Bags:
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


def _fixed_words(like: Archive | Sequence[str] | None, wanted: WordSelection) -> FixedWords | None:
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
    _demand_names(like)
    if not len(like):
        raise DataError("like has no words", "give at least one")
    return FixedWords(list(like), len(like))


def _demand_names(vocabulary: Sequence[str] | None) -> None:
    if vocabulary is None:
        return
    names = list(vocabulary)
    if not all(isinstance(name, str) for name in names):
        strange = next(name for name in names if not isinstance(name, str))
        raise DataError(f"the vocabulary has {brief(strange)} among its words", "give strings")
    if len(set(names)) < len(names):
        raise DataError("the vocabulary has a word twice", "give different words")


# An archive is made: documents are read once, in order, with bounded memory.
#
# The documents' words get provisional numbers and go to disk as they come. Then it is known which
# words count, and all is written once more with final numbers, words in alphabetical order (or that
# of another corpus whose words they are to be), and the documents shuffled if that is wanted.


AT_ONCE = 1 << 20
"""So many words of text are in memory at a time, or a few more: a document is never cut."""
SHARD_ENTRIES, SHARD_DOCUMENTS = 1 << 22, 1 << 16
"""A shard's limits: so many counts, so many documents."""

OnProgress = Callable[[str, int], None]
"""Is told what is being done and how many documents are done."""


@dataclass(frozen=True)
class _RawDocuments:
    """Documents on disk with provisional numbers for words, and what is known of those words."""

    rows: RowFiles
    found: Iterable[FoundWord] | None
    vectorizer: dict[str, Any] | None


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


def _build(
    sources: Sources,
    target: Path,
    wanted: WordSelection,
    *,
    tokens: bool,
    vocabulary: Sequence[str] | None,
    known: FixedWords | None,
    shuffle: int | None,
    on_progress: OnProgress,
) -> None:
    """Write an archive of these documents."""
    with _new_folder(target) as folder:
        scratch = folder / "scratch"
        with disk_errors(scratch):
            scratch.mkdir()
        first, documents = _peek(iter(sources))
        if _is_matrix(first):
            _demand_matching_columns(vocabulary, known)
            raw = _read_blocks(documents, vocabulary, known, wanted, scratch, on_progress)
        elif vocabulary is not None:
            raise DataError("texts bring their own words", "leave out vocabulary")
        else:
            into_words = _choose_tokeniser_of(first, tokens, known)
            raw = _read_texts(first, documents, sources, into_words, scratch, on_progress)
        _finish(raw, folder, wanted, known, sources, shuffle, on_progress)
        shutil.rmtree(scratch)


# the same words as another corpus
def _choose_tokeniser_of(
    first: Any, tokens: bool, known: FixedWords | None
) -> Callable[[Any], list[str]]:
    """What cuts documents into words: as those of the other corpus were cut, if there is one."""
    if known is None:
        return _choose_tokeniser(first, tokens)
    if known.words is None:
        raise DataError(
            "the archive to be like has no names for its words, so texts cannot be counted by it",
            "give counts in the same columns, or an archive of texts",
        )
    into_words = _choose_tokeniser(first, tokens or known.analyzer == "spaces")
    analyzer = describe_vectorizer(CountVectorizer(analyzer=into_words))["analyzer"]
    if known.analyzer not in (None, analyzer):
        raise DataError(
            f"the words of the archive to be like were cut otherwise ({known.analyzer!r}, and "
            f"these {analyzer!r})",
            "give documents of the same kind, and leave out tokens",
        )
    return into_words


def _demand_matching_columns(vocabulary: Sequence[str] | None, known: FixedWords | None) -> None:
    if known is None or (vocabulary is None) == (known.words is None):
        return
    if vocabulary is None:
        raise DataError(
            "columns without names cannot be matched with the words they are to be like",
            "give the words of the columns: vocabulary=[…]",
        )
    raise DataError(
        "the archive to be like has no names for its words, and these columns have",
        "leave out vocabulary, if the columns are the same",
    )


# once through the documents
def _read_texts(
    first: Any,
    documents: Iterator[Any],
    sources: Sources,
    into_words: Callable[[Any], list[str]],
    scratch: Path,
    on_progress: OnProgress,
) -> _RawDocuments:
    table = WordTable(scratch)

    def cut_up() -> Iterator[list[str]]:
        for one in documents:
            _demand_like(one, first, sources)
            yield into_words(one)

    with RowWriter(scratch) as writer:
        for part in _number_documents(cut_up(), table):
            writer.append(part)
            on_progress("reading", writer.n_documents)
    rows = RowFiles(scratch, writer.n_documents, table.size, writer.n_entries, writer.counts)
    return _RawDocuments(
        rows, table.merged(), describe_vectorizer(CountVectorizer(analyzer=into_words))
    )


def _number_documents(documents: Iterator[list[str]], table: WordTable) -> Iterator[Compressed]:
    """Words as numbers, some documents at a time."""
    numbers, ends = array("i"), array("q", [0])
    for document in documents:
        numbers.extend(map(table.numbers.__getitem__, document))
        ends.append(len(numbers))
        if max(len(numbers), len(ends)) >= AT_ONCE:
            yield _add_up(numbers, ends, table)
            numbers, ends = array("i"), array("q", [0])
    if len(ends) > 1:
        yield _add_up(numbers, ends, table)


def _add_up(numbers: Sequence[int], ends: Sequence[int], table: WordTable) -> Compressed:
    """Each word of a document once, with its count."""
    rows = sparse.csr_matrix(
        (np.ones(len(numbers)), np.asarray(numbers), np.asarray(ends)),
        shape=(len(ends) - 1, table.size),
    )
    rows.sum_duplicates()
    table.add(rows.indices)
    return Compressed(rows.indptr, rows.indices, rows.data)


def _read_blocks(
    blocks: Iterator[Any],
    vocabulary: Sequence[str] | None,
    known: FixedWords | None,
    wanted: WordSelection,
    scratch: Path,
    on_progress: OnProgress,
) -> _RawDocuments:
    if vocabulary is None and wanted != WordSelection():
        raise DataError(
            "columns without names cannot be left out: nobody could tell which ones are left",
            "give the words of the columns: vocabulary=[…]",
        )
    n_words = None if known is None else known.n_words  # of columns without names
    if vocabulary is not None:
        n_words = len(vocabulary)
    documents = np.zeros(0, np.int64)
    with RowWriter(scratch) as writer:
        for block in blocks:
            bags = _block_bags(block, writer.n_documents, n_words)
            n_words = bags.n_words
            seen = np.bincount(bags.by_document.columns, minlength=n_words)
            documents = seen + documents if len(documents) else seen
            writer.append(bags.by_document)
            on_progress("reading", writer.n_documents)
    rows = RowFiles(scratch, writer.n_documents, n_words or 0, writer.n_entries, writer.counts)
    return _RawDocuments(
        rows, None if vocabulary is None else _columns(vocabulary, documents), None
    )


def _columns(vocabulary: Sequence[str], documents: Array) -> Iterator[FoundWord]:
    for number, (word, n) in enumerate(zip(vocabulary, documents.tolist(), strict=True)):
        yield FoundWord(word, n, (number,))


# once through the numbers
def _finish(
    raw: _RawDocuments,
    folder: Path,
    wanted: WordSelection,
    known: FixedWords | None,
    sources: Sources,
    shuffle: int | None,
    on_progress: OnProgress,
) -> None:
    n, n_words = raw.rows.n_documents, raw.rows.n_words
    new, files = None, {}
    if raw.found is not None:
        words: Sequence[str]
        if known is not None and known.words is not None:
            words, new = known.words, known.renumber(raw.found, n_words)
        else:
            words, new = renumber_words(wanted.choose(raw.found, n), n_words)
        n_words = len(words)
        files[VOCABULARY] = write_file(folder / VOCABULARY, _words_as_json(words))
    order = None if shuffle is None else np.random.default_rng(shuffle).permutation(n)
    if order is not None:
        files[ORIGIN] = write_file(folder / ORIGIN, order.astype("<i8"))
    with RowWriter(folder) as writer:
        for documents in _split_order(raw.rows, order):
            writer.append(_renumber_rows(raw.rows.take(documents), new, n_words))
            on_progress("writing", writer.n_documents)
        files |= writer.sync()
    indptr = map_file(folder / INDPTR, "<i8", n + 1)
    kept = asdict(wanted) | {"stop_words": len(wanted.stop_words)}
    ArchiveFacts(
        n_documents=n,
        n_words=n_words,
        n_entries=writer.n_entries,
        tokens=writer.tokens,
        counts=writer.counts,
        shards=[0, *(last for _, last in split_rows(indptr, SHARD_ENTRIES, SHARD_DOCUMENTS))],
        sources=sources.counts,
        shuffle=shuffle,
        vectorizer=raw.vectorizer,
        wanted=kept,
        files=files,
    ).write(folder)


def _words_as_json(words: Iterable[str]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, words)) + "\n]\n"


def _split_order(rows: RowFiles, order: Array | None) -> Iterator[Array]:
    """All documents, in this order or their own, as many at a time as memory is meant to hold."""
    for first in range(0, rows.n_documents, SHARD_DOCUMENTS):
        last = min(first + SHARD_DOCUMENTS, rows.n_documents)
        some = np.arange(first, last) if order is None else order[first:last]
        indptr = rows.indptr
        ends = np.cumsum(indptr[some + 1] - indptr[some])
        borders = np.concatenate([np.zeros(1, np.int64), ends])
        for low, high in split_rows(borders, SHARD_ENTRIES, SHARD_DOCUMENTS):
            yield some[low:high]


def _renumber_rows(rows: Compressed, new: Array | None, n_words: int) -> Compressed:
    """Words with their new numbers, in their order; those without one are left out."""
    if new is None:
        return rows
    words = new[rows.columns]
    kept = words >= 0
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    matrix = sparse.csr_matrix(
        (rows.value[kept], words[kept], ends[rows.indptr]), shape=(len(rows.indptr) - 1, n_words)
    )
    matrix.sort_indices()
    return Compressed(matrix.indptr, matrix.indices, matrix.data)


# Documents as they come, from one place or several, and what they are made of.


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
        places = given if isinstance(given, Mapping) else {"": given}
        self._places = {name: _blocks(documents) for name, documents in places.items()}
        self._counts = dict.fromkeys(self._places, 0)
        self._place = ""

    def __iter__(self) -> Iterator[Any]:
        for place, documents in self._places.items():
            self._place = place
            for one in documents:
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


def _blocks(given: Iterable[Any]) -> Iterable[Any]:
    return [given] if _is_matrix(given) else given


def _is_matrix(one: Any) -> bool:
    """Whether this is a block of counts, not a document."""
    return getattr(one, "ndim", 1) == 2


def _peek(documents: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first document, and all of them."""
    for first in documents:
        return first, chain([first], documents)
    raise DataError("there are no documents", "give at least one")


def _choose_tokeniser(first: Any, tokens: bool) -> Callable[[Any], list[str]]:
    """What cuts documents like the first one into words."""
    if isinstance(first, str):
        return spaces if tokens else words
    if isinstance(first, list | tuple):
        return as_it_is  # type: ignore[return-value]
    hint = "give texts, lists of words, or sparse matrices of counts"
    if isinstance(first, bytes):
        hint = "decode it first, for example text.decode('utf-8')"
    raise DataError(f"the first document is {brief(first)}", hint)


def _demand_like(one: Any, first: Any, sources: Sources) -> None:
    """Complain of a document that is not of the same kind as the first one."""
    is_text = isinstance(first, str)
    if not isinstance(one, str if is_text else list | tuple):
        others = "texts" if is_text else "lists of words"
        raise DataError(
            f"{sources.here} is {brief(one)}, while others are {others}",
            f"give {others} only; an empty document is an empty one of these",
        )
    if not is_text and not all(isinstance(word, str) for word in one):
        strange = next(word for word in one if not isinstance(word, str))
        raise DataError(f"{sources.here} has {brief(strange)} among its words", "words are strings")


def _block_bags(block: Any, before: int, n_words: int | None) -> Bags:
    """A block of counts, of as many words as the others; ``before`` documents came before it."""
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
    return Bags.of(rows)
