"""What a topic model learns from: bags of words, and what is known of their topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.corpus.cut import parts
from softcount.models.topics.held_out import hold_out
from softcount.models.topics.labels import allowed_of
from softcount.types import Array


@dataclass(frozen=True, eq=False)
class Shard:
    """Some documents: their numbers in the corpus, and their words.

    ``allowed``  (documents, topics), False where a document is known not to have a topic; or None
    ``held``     more words of the same documents, which are kept from learning; or None
    """

    numbers: Array
    bags: Bags
    allowed: Array | None = None
    held: Bags | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def few(self) -> Array | None:
        """The words that these documents have, if that is less than half of all; else None."""
        words = np.unique(self.bags.by_document.columns)
        return words if 2 * len(words) < self.bags.n_words else None

    @cached_property
    def own(self) -> Bags:
        """The bags in columns for the `few` words alone."""
        if self.few is None:
            return self.bags
        rows = self.bags.by_document
        columns = np.searchsorted(self.few, rows.columns).astype(np.int32)
        return Bags(rows._replace(columns=columns), len(self.few))

    @cached_property
    def often(self) -> Array:
        """How often each word of `own` occurs."""
        return _tokens(self.own)

    @cached_property
    def by_word(self) -> tuple[Array, Array, Array]:
        """`own` word by word: borders, documents, and the place of each entry by document."""
        rows = self.own.by_document
        shape = (len(self), self.own.n_words)
        places = np.arange(len(rows.columns))
        turned = sparse.csr_matrix((places, rows.columns, rows.indptr), shape=shape).tocsc()
        return turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data


@dataclass(frozen=True, eq=False)
class Documents:
    """A corpus of documents in memory (`softcount.job.Corpus`).

    ``known``     which topics documents may have, as `known_topics` makes it
    ``held_out``  the share of words that is kept from learning; ``bags`` has all words
    """

    bags: Bags
    known: Any = None
    cut: int = 1 << 17
    held_out: float = 0.0

    def __len__(self) -> int:
        return len(self.bags)

    @property
    def tokens(self) -> float:
        """All counts added up."""
        return float(self.bags.lengths.sum())

    @cached_property
    def split(self) -> tuple[Bags, Bags | None]:
        """The documents' words to learn from, and those held out."""
        return hold_out(self.bags, self.held_out) if self.held_out else (self.bags, None)

    def name(self, number: int) -> str:
        return f"document {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        n = len(self)
        if batch_size is None and n <= self.cut:
            numbers, (bags, held) = np.arange(n), self.split
            return [Shard(numbers, bags, allowed_of(self.known, numbers), held)]
        return [self._part(part) for part in parts(n, self.cut, batch_size, seed)]

    def _part(self, numbers: Array) -> Shard:
        bags, held = self.split
        held = held.take(numbers) if held else None
        return Shard(numbers, bags.take(numbers), allowed_of(self.known, numbers), held)


@dataclass(frozen=True, eq=False)
class Archived:
    """A corpus of documents on disk, of which a shard at a time is in memory."""

    archive: Archive
    known: Any = None

    def __len__(self) -> int:
        return len(self.archive)

    @property
    def tokens(self) -> float:
        return self.archive.tokens

    def name(self, number: int) -> str:
        return self.archive.name(number)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        return _Read(self.archive.shards(batch_size, seed), self.known)


@dataclass(frozen=True, eq=False)
class _Read(Sequence[Shard]):
    """Shards that are read anew whenever one is asked for."""

    parts: Sequence[Any]
    known: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        part = self.parts[index]
        return Shard(part.numbers, part.bags, allowed_of(self.known, part.numbers))


Corpus = Documents | Archived


def word_counts(corpus: Corpus) -> Array:
    """How often each word occurs; words held out are not counted, for starts must not know them."""
    shards = corpus.shards()
    counts = (_tokens(shards[i].bags) for i in range(len(shards)))
    return sum(counts)  # type: ignore[return-value]


def _tokens(bags: Bags) -> Array:
    rows = bags.by_document
    return np.bincount(rows.columns, rows.value, minlength=bags.n_words)


def each_shard(corpus: Corpus) -> Iterator[Shard]:
    """All documents with all their words, a shard at a time."""
    shards = with_all_words(corpus).shards()
    return (shards[i] for i in range(len(shards)))


def with_all_words(corpus: Corpus) -> Corpus:
    """The same documents, none of whose words are held out."""
    return replace(corpus, held_out=0.0) if isinstance(corpus, Documents) else corpus
