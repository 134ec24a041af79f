"""Corpora larger than memory: counts of words in a folder on disk, read a shard at a time."""

from __future__ import annotations

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np

from softcount.corpus.bags import Bags
from softcount.corpus.building import OnProgress, build
from softcount.corpus.facts import ORIGIN, VOCABULARY, Facts, read_facts
from softcount.corpus.rows import DAMAGED, mapped
from softcount.corpus.sources import Sources
from softcount.corpus.texts import restored
from softcount.corpus.wordlist import Known, Wanted, stop_list
from softcount.errors import DataError, StoreError, shown
from softcount.types import Array


@dataclass(frozen=True, eq=False)
class Part:
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
class Parts(Sequence[Part]):
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
        return Part(self.archive, numbers)


@dataclass(frozen=True, eq=False)
class Archive:
    """Documents × words on disk, written once and read a shard at a time.

    It can be learned from like any corpus (`softcount.job.Corpus`). Nothing is kept open, and a
    copy in another process reads the same files.

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
    facts: Facts

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
                        24 bytes of memory a document
        """
        wanted = Wanted(min_count, max_share, max_words, stop_list(stop_words))
        _demand_names(vocabulary)
        known = _known(like, wanted)
        if shuffle is not None and shuffle < 0:
            raise DataError(f"shuffle={shuffle} is no seed", "give a whole number from 0 on")
        build(
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
        return restored(self.facts.vectorizer, self.vocabulary)

    @property
    def origin(self) -> Array:
        """The place of each document in what the archive was built from, counted from 0.

        ``out[archive.origin] = rows`` puts one row a document back in the order of the input.
        """
        n = self.n_documents
        if self.facts.shuffle is None:
            return np.arange(n)
        origin = np.array(mapped(self.path / ORIGIN, "<i8", n), np.int64)
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
        place = int(mapped(self.path / ORIGIN, "<i8", self.n_documents)[number])
        if not 0 <= place < self.n_documents:
            raise StoreError(f"{self.path / ORIGIN} is no order of documents", DAMAGED)
        return place

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Parts:
        """All documents: in the archive's own shards, or shuffled by the seed, so many a part.

        If the archive was shuffled when it was built, parts are runs of documents, and only their
        order is drawn.
        """
        if batch_size is None:
            borders = np.array(self.facts.shards)
            return Parts(self, borders, np.arange(len(borders) - 1))
        if batch_size < 1:
            raise DataError(f"batch_size={batch_size} leaves batches empty", "give 1 or more")
        n = self.n_documents
        borders = np.append(np.arange(0, n, batch_size), n)
        rng = np.random.default_rng(seed)
        if self.facts.shuffle is not None:
            return Parts(self, borders, rng.permutation(len(borders) - 1))
        return Parts(self, borders, np.arange(len(borders) - 1), rng.permutation(n))

    # counts
    def bags(self, numbers: Array) -> Bags:
        """Some documents, each at most once, in memory."""
        numbers = np.asarray(numbers, np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self.n_documents:
            raise DataError(
                f"there is no document {shown(int(numbers.max()))}",
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


def _known(like: Archive | Sequence[str] | None, wanted: Wanted) -> Known | None:
    """The words that another corpus has."""
    if like is None:
        return None
    if wanted != Wanted():
        raise DataError(
            "which words count is said twice: by the archive to be like, and by numbers or lists",
            "leave out min_count, max_share, max_words and stop_words",
        )
    if isinstance(like, Archive):
        words = None if like.vocabulary is None else like.vocabulary.tolist()
        return Known(words, like.n_words, (like.facts.vectorizer or {}).get("analyzer"))
    if isinstance(like, str | os.PathLike):
        raise DataError(f"like is {shown(like)}, a name", "open it: like=Archive.open(…)")
    _demand_names(like)
    if not len(like):
        raise DataError("like has no words", "give at least one")
    return Known(list(like), len(like))


def _demand_names(vocabulary: Sequence[str] | None) -> None:
    if vocabulary is None:
        return
    names = list(vocabulary)
    if not all(isinstance(name, str) for name in names):
        strange = next(name for name in names if not isinstance(name, str))
        raise DataError(f"the vocabulary has {shown(strange)} among its words", "give strings")
    if len(set(names)) < len(names):
        raise DataError("the vocabulary has a word twice", "give different words")
