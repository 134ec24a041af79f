"""What topic models learn from: documents in shards, and supervision.

Supervision comes in three forms: labels (which topics a document may have), seed words (tokens that
a topic has beforehand), and frozen topics (rows of p(word | topic) that do not learn).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.text.shards import split_items

HELD_OUT_SEED = 0
"""Seed of the draw of held-out words: the same documents are always split in the same way."""

UNKNOWN = -1
"""The label of a document of which nothing is known."""

MOST_SEED_COUNTS = 2**30
"""The largest count of a seed word: samplers count in 32 bits, and the corpus comes on top."""


class EntriesByWord(NamedTuple):
    """The entries of a shard's counts word by word, for the second half of a threaded E-step."""

    indptr: IntArray
    """Word w has the entries from indptr_w to indptr_{w+1}."""
    documents: IntArray
    """The document of each entry."""
    places: IntArray
    """Where each entry is, document by document."""


@dataclass(frozen=True, eq=False)
class TopicShard:
    """Some documents and their words.

    ``numbers``   (documents,): their numbers in the corpus
    ``bags``      their words
    ``allowed``   (documents, topics): False where a document is known not to have a topic; or None
    ``held_out``  more words of the same documents, which are kept from learning; or None
    """

    numbers: IntArray
    bags: Bags
    allowed: BoolArray | None = None
    held_out: Bags | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def own_words(self) -> IntArray | None:
        """The words that these documents have, if that is less than half of all; else None."""
        words = np.unique(self.bags.by_document.columns)
        return words if 2 * len(words) < self.bags.n_words else None

    @cached_property
    def own_bags(self) -> Bags:
        """The bags with columns for `own_words` alone."""
        if self.own_words is None:
            return self.bags
        rows = self.bags.by_document
        columns = np.searchsorted(self.own_words, rows.columns).astype(np.int32)
        return Bags(rows._replace(columns=columns), len(self.own_words))

    @cached_property
    def by_word(self) -> EntriesByWord:
        """`own_bags` word by word."""
        rows = self.own_bags.by_document
        shape = (len(self), self.own_bags.n_words)
        places = np.arange(len(rows.columns))
        columns = sparse.csr_matrix((places, rows.columns, rows.indptr), shape=shape).tocsc()
        return EntriesByWord(
            columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data
        )


@dataclass(frozen=True, eq=False)
class TopicDocuments:
    """A corpus of documents, in memory or on disk.

    ``documents``  all their words: bags, or an archive, of which a shard at a time is in memory
    ``allowed``    which topics documents may have, as `read_labels` gives it
    ``cut``        how many documents a shard has, at most; an archive has shards of its own
    ``held_out``   the share of words that is kept from learning; none of an archive
    """

    documents: Bags | Archive
    allowed: Any = None
    cut: int = 1 << 17
    held_out: float = 0.0

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def tokens(self) -> float:
        """All counts added up."""
        if isinstance(self.documents, Archive):
            return self.documents.tokens
        return float(self.documents.lengths.sum())

    @cached_property
    def split(self) -> tuple[Bags, Bags | None]:
        """The words of documents in memory to learn from, and those held out."""
        assert isinstance(self.documents, Bags)
        if not self.held_out:
            return self.documents, None
        return hold_out(self.documents, self.held_out)

    def name(self, number: int) -> str:
        """What messages call a document."""
        if isinstance(self.documents, Archive):
            return self.documents.name(number)
        return f"document {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TopicShard]:
        """The documents in shards, or in mini-batches shuffled by the seed."""
        if isinstance(self.documents, Archive):
            return _ArchivedShards(self.documents.shards(batch_size, seed), self.allowed)
        n, (bags, held_out) = len(self), self.split
        if batch_size is None and n <= self.cut:  # all of them, and nothing is copied
            numbers = np.arange(n)
            return [TopicShard(numbers, bags, select_allowed(self.allowed, numbers), held_out)]
        return [
            TopicShard(
                numbers,
                bags.take(numbers),
                select_allowed(self.allowed, numbers),
                None if held_out is None else held_out.take(numbers),
            )
            for numbers in split_items(n, self.cut, batch_size, seed)
        ]


@dataclass(frozen=True, eq=False)
class _ArchivedShards(Sequence[TopicShard]):
    """Shards that are read anew whenever one is asked for."""

    parts: Sequence[Any]
    allowed: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        part = self.parts[index]
        return TopicShard(part.numbers, part.bags, select_allowed(self.allowed, part.numbers))


def count_words(corpus: TopicDocuments) -> FloatArray:
    """How often each word occurs; held-out words are not counted: starts must not know them."""
    return sum(shard.bags.word_counts for shard in corpus.shards())  # type: ignore[return-value]


def with_all_words(corpus: TopicDocuments) -> TopicDocuments:
    """The same documents, none of whose words are held out."""
    return replace(corpus, held_out=0.0)


def hold_out(bags: Bags, share: float) -> tuple[Bags, Bags]:
    """The documents twice: with the words to learn from, and with those held out.

    Every token is held out with the probability ``share``. A document that would be left without a
    word keeps all of its own, and a word that would be left in no document is never held out: no
    table could predict it.

    >>> seen, held_out = hold_out(Bags.of(np.full((50, 4), 10)), 0.1)
    >>> seen.lengths.sum() + held_out.lengths.sum(), bool(150 < held_out.lengths.sum() < 250)
    (np.float64(2000.0), True)
    """
    rows = bags.by_document
    documents = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
    broken = np.flatnonzero(rows.value != np.floor(rows.value))
    if len(broken):
        d, count = documents[broken[0]], rows.value[broken[0]]
        raise DataError(
            f"document {d} has {count:g} of word {rows.columns[broken[0]]}: only whole words can "
            "be held out",
            "use EM() for weighted or scaled documents",
        )
    rng = np.random.default_rng(HELD_OUT_SEED)
    held_out = rng.binomial(rows.value.astype(np.int64), share).astype(np.float64)
    for owner, n in ((rows.columns, bags.n_words), (documents, len(bags))):
        left = np.bincount(owner, rows.value - held_out, minlength=n)
        held_out[left[owner] == 0.0] = 0.0
    if not held_out.any():
        raise DataError(
            f"no word could be held out (held_out={share}): the documents are too few or too short",
            "use EM(), or hold out a larger share",
        )
    seen, unseen = (
        Bags.of(sparse.csr_matrix((counts, rows.columns, rows.indptr), bags.matrix.shape))
        for counts in (rows.value - held_out, held_out)
    )
    return seen, unseen


def read_labels(labels: Any, n: int, n_topics: int) -> Any:
    """Labels as a sparse matrix (documents, topics) of the topics that a document may have.

    ``labels``  one entry for each document: a topic, -1 if nothing is known, or several topics that
                the document may have. A row without any entry may have all.

    >>> read_labels([1, -1, [0, 2]], 3, 3).toarray().astype(int)
    array([[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    """
    if labels is None:
        return None
    if sparse.issparse(labels) or isinstance(labels, Mapping) or not isinstance(labels, Sized):
        raise DataError(f"the labels are {brief(labels)}", "give a list, one label a document")
    if len(labels) != n or not isinstance(labels, Iterable):
        raise DataError(
            f"there are {n} documents, but {len(labels)} labels", "give one label a document"
        )
    rows, columns = [], []
    for d, label in enumerate(labels):
        several = isinstance(label, Iterable) and not isinstance(label, str)
        try:
            given = list(label) if several else [label]
            topics = [int(topic) for topic in given]
        except (TypeError, ValueError, OverflowError):
            given, topics = [], []
        sound = topics == given and not any(isinstance(topic, bool | np.bool_) for topic in given)
        if sound and topics == [UNKNOWN]:
            continue
        # a topic twice: most likely a row of zeros and ones
        sound = sound and 0 < len(topics) == len(set(topics))
        if not sound or not all(0 <= topic < n_topics for topic in topics):
            raise DataError(
                f"document {d} has the label {brief(label)}",
                f"give topics from 0 to {n_topics - 1}, a list of them, or -1 if nothing is known",
            )
        rows += [d] * len(topics)
        columns += topics
    allowed = sparse.csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), (n, n_topics))
    allowed.sum_duplicates()
    return allowed if allowed.nnz else None


def select_allowed(allowed: Any, documents: IntArray) -> BoolArray | None:
    """(documents, topics): False where a document cannot have a topic; None if all can have all.

    ``allowed``  as `read_labels` gives it, of all documents
    """
    if allowed is None:
        return None
    rows = allowed[documents]
    dense: BoolArray = rows.toarray().astype(np.bool_)
    free = np.diff(rows.indptr) == 0
    if free.all():
        return None
    dense[free] = True
    return dense


FROZEN_HINT = "give an array with a row for each topic, or a list of mappings from words to weights"


def count_seed_words(
    seed_words: Any,
    strength: float,
    word_counts: FloatArray,
    columns: Mapping[Any, int],
    n_topics: int,
) -> Any:
    """Seed words as tokens that a topic has beforehand: sparse (topics, words), whole numbers.

    ``seed_words``  topic → words, or a list of such (topic 0, 1, …); words that never occur in
                    the corpus are passed over
    ``strength``    a seed word counts as often as ``strength`` times the word occurs, at least once
    ``word_counts`` how often each word occurs, (words,)
    ``columns``     the column of each word

    >>> columns = {"cup": 0, "goal": 1, "oil": 2}
    >>> count_seed_words({1: ["oil"]}, 0.5, np.array([4, 2, 6]), columns, 2).toarray()
    array([[0, 0, 0], [0, 0, 3]])
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(seed_words, Mapping):
        pairs = seed_words.items()
    elif isinstance(seed_words, Sequence) and not isinstance(seed_words, str):
        pairs = enumerate(seed_words)
    else:
        hint = "give a mapping from topics to lists of words"
        raise DataError(f"seed_words={brief(seed_words)}", hint)
    table = sparse.lil_matrix((n_topics, len(word_counts)), dtype=np.int64)
    for given, words in pairs:
        try:
            topic = int(given)  # files have the numbers as strings
        except (TypeError, ValueError):
            topic = None
        if topic is None or not (isinstance(given, str) or topic == given):
            raise DataError(f"seed_words: {brief(given)} is no topic", "topics are whole numbers")
        if not 0 <= topic < n_topics:
            raise DataError(
                f"there are seeds for topic {topic}", f"topics go from 0 to {n_topics - 1}"
            )
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise DataError(f"the seeds of topic {topic} are {brief(words)}", "give a list")
        for word in words:
            if not isinstance(word, Hashable):
                hint = "give a list of words for each topic"
                raise DataError(f"{brief(word)} is no seed word", hint)
            column = columns.get(word)
            if column is None or not word_counts[column]:
                continue
            count = strength * word_counts[column]
            if count > MOST_SEED_COUNTS:
                hint = "lower seed_strength"
                raise LearnerError(f"a seed word would count {count:g} times", hint)
            table[topic, column] = max(1, round(float(count)))
    if not table.nnz:
        raise DataError(
            "none of the seed words is in the corpus",
            "give words as the vectorizer makes them: in lower case, as a rule",
        )
    return table.tocsr()


def read_frozen_topics(frozen: Any, columns: Mapping[Any, int], n_topics: int) -> FloatArray:
    """The first topics, which do not learn: p(word | topic), (frozen, words).

    ``frozen``  an array with a row for each topic; or a list of mappings from words to weights, of
                which those that have no column are passed over
    """
    try:
        rows = list(frozen)
        for k, row in enumerate(rows):
            if isinstance(row, Mapping):
                rows[k] = np.zeros(len(columns))
                for word in row.keys() & columns.keys():
                    rows[k][columns[word]] = row[word]
        table = np.array(rows, np.float64)
    except (TypeError, ValueError) as error:
        message = f"frozen_topics={brief(frozen)} are no topics: {error}"
        raise DataError(message, FROZEN_HINT) from error
    if table.ndim != 2 or table.shape[1] != len(columns):
        raise DataError(
            f"frozen topics have the shape {table.shape}, but there are {len(columns)} words",
            FROZEN_HINT,
        )
    if not (np.isfinite(table) & (table >= 0.0)).all() or not table.any(axis=1).all():
        raise DataError("a frozen topic has no words, or a weight that is no weight", FROZEN_HINT)
    if len(table) >= n_topics:
        raise DataError(
            f"{len(table)} of {n_topics} topics are frozen: there is nothing to learn",
            "set n_components to more; to fold documents in use transform",
        )
    return table / table.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]
