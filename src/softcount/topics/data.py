"""The corpus of topic models: documents in shards, and supervision.

Supervision comes in three forms: labels (the topics that a document may have), seed words
(pseudo-counts of words in a topic), and frozen topics (rows of p(word | topic) that stay fixed).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import BoolArray, FloatArray, IntArray
from softcount.text.archive import Archive, ArchivePart
from softcount.text.bags import Bags
from softcount.text.shards import split_items

HELD_OUT_SEED = 0
"""Seed for the choice of held-out words: the same documents are always split in the same way."""

UNKNOWN = -1
"""The label of a document whose topics are unknown."""

MOST_SEED_COUNTS = 2**30
"""The largest pseudo-count of a seed word: samplers add the corpus's counts to it in 32 bits."""


class EntriesByWord(NamedTuple):
    """The entries of a shard's counts by word, for the second half of a threaded E-step."""

    indptr: IntArray
    """Word w has the entries from indptr_w to indptr_{w+1}."""
    documents: IntArray
    """The document of each entry."""
    places: IntArray
    """The position of each entry in the order by document."""


@dataclass(frozen=True, eq=False)
class TopicShard(PickledWithoutCaches):
    """A shard of documents.

    ``numbers``    the documents' numbers in the corpus, (documents,)
    ``documents``  their words, or the part of an archive that they are; that is read on first use,
                   also by another process: the words themselves are not sent there
    ``allowed``    (documents, topics): False where a document is known not to have a topic; or None
    ``held_out``   held-out words of the same documents; or None
    """

    numbers: IntArray
    documents: Bags | ArchivePart
    allowed: BoolArray | None = None
    held_out: Bags | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def bags(self) -> Bags:
        """The words of the documents."""
        documents = self.documents
        return documents if isinstance(documents, Bags) else documents.bags

    @cached_property
    def by_word(self) -> EntriesByWord:
        """The entries of ``bags.own`` by word."""
        own = self.bags.own
        rows, shape = own.by_document, (len(self), own.n_words)
        places = np.arange(len(rows.columns))
        columns = sparse.csr_matrix((places, rows.columns, rows.indptr), shape=shape).tocsc()
        return EntriesByWord(
            columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data
        )

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if isinstance(self.documents, ArchivePart):  # which has the same numbers
            del state["numbers"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "numbers" not in state:
            state["numbers"] = state["documents"].numbers
        vars(self).update(state)


@dataclass(frozen=True, eq=False)
class TopicDocuments:
    """A corpus of documents, in memory or on disk.

    ``documents``  bags, or an archive, of which one shard at a time is in memory
    ``allowed``    the topics that documents may have, as returned by `read_labels`
    ``held_out``   the proportion of words held out; ignored for an archive
    """

    documents: Bags | Archive
    allowed: Any = None
    held_out: float = 0.0

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def tokens(self) -> float:
        """The sum of all counts."""
        if isinstance(self.documents, Archive):
            return self.documents.tokens
        return float(self.documents.lengths.sum())

    @cached_property
    def split(self) -> tuple[Bags, Bags | None]:
        """The training words and the held-out words (None without) of documents in memory."""
        assert isinstance(self.documents, Bags)
        if not self.held_out:
            return self.documents, None
        return hold_out(self.documents, self.held_out)

    def name(self, number: int) -> str:
        """Return the name of a document for messages."""
        if isinstance(self.documents, Archive):
            return self.documents.name(number)
        return f"document {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[TopicShard]:
        """Return the documents in shards, or in mini-batches shuffled by the seed."""
        if isinstance(self.documents, Archive):
            return _ArchivedShards(self.documents.shards(batch_size, seed), self.allowed)
        n, (bags, held_out) = len(self), self.split
        if batch_size is not None:
            return [
                TopicShard(
                    numbers,
                    bags.take(numbers),
                    select_allowed(self.allowed, numbers),
                    None if held_out is None else held_out.take(numbers),
                )
                for numbers in split_items(n, n, batch_size, seed)
            ]
        # held-out words are for the documents' shards as well, so that these stay the same
        if len(borders := self.documents.cut()) == 1:  # with what the bags have cached
            numbers = np.arange(n)
            return [TopicShard(numbers, bags, select_allowed(self.allowed, numbers), held_out)]
        return [
            TopicShard(
                np.arange(*run),
                bags.part(*run),
                select_allowed(self.allowed, np.arange(*run)),
                None if held_out is None else held_out.part(*run),
            )
            for run in borders
        ]


@dataclass(frozen=True, eq=False)
class _ArchivedShards(Sequence[TopicShard]):
    """Shards of an archive, read again on every access."""

    parts: Sequence[Any]
    allowed: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        part = self.parts[index]
        return TopicShard(part.numbers, part, select_allowed(self.allowed, part.numbers))


def count_words(corpus: TopicDocuments) -> FloatArray:
    """Return the count of each word, (words,), without held-out words, which must not be used."""
    return sum(shard.bags.word_counts for shard in corpus.shards())  # type: ignore[return-value]


def with_all_words(corpus: TopicDocuments) -> TopicDocuments:
    """Return the same documents without held-out words: all words are for learning."""
    return replace(corpus, held_out=0.0)


def hold_out(bags: Bags, share: float) -> tuple[Bags, Bags]:
    """Split documents into training words and held-out words.

    Every token is held out with probability ``share``. A document that would be left without any
    word keeps all its words, and a word that would be left in no document is not held out: no model
    could predict it.

    >>> seen, held_out = hold_out(Bags.of(np.full((50, 4), 10)), 0.1)
    >>> seen.lengths.sum() + held_out.lengths.sum(), bool(150 < held_out.lengths.sum() < 250)
    (np.float64(2000.0), True)
    """
    rows = bags.by_document
    documents = np.repeat(np.arange(len(bags)), np.diff(rows.indptr))
    fractional = np.flatnonzero(rows.value != np.floor(rows.value))
    if len(fractional):
        d, count = documents[fractional[0]], rows.value[fractional[0]]
        raise DataError(
            f"document {d} has {count:g} of word {rows.columns[fractional[0]]}: only whole words "
            "can be held out",
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
            "use EM(), or hold out a larger proportion",
        )
    seen, unseen = (
        Bags.of(sparse.csr_matrix((counts, rows.columns, rows.indptr), bags.matrix.shape))
        for counts in (rows.value - held_out, held_out)
    )
    return seen, unseen


def read_labels(labels: Any, n: int, n_topics: int) -> Any:
    """Convert labels to a sparse matrix of the topics that each document may have.

    Returns (documents, topics), where a row without any entry means that all topics are possible;
    None if nothing is known of any document.

    ``labels``  one entry for each document: a topic, a list of topics that the document may have,
                or -1 if unknown

    >>> read_labels([1, -1, [0, 2]], 3, 3).toarray().astype(int)
    array([[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    """
    if labels is None:
        return None
    if sparse.issparse(labels) or isinstance(labels, Mapping) or not isinstance(labels, Sized):
        raise DataError(f"the labels are {brief(labels)}", "give a list, one label per document")
    if len(labels) != n or not isinstance(labels, Iterable):
        raise DataError(
            f"there are {n} documents, but {len(labels)} labels", "give one label per document"
        )
    rows, columns = [], []
    for d, label in enumerate(labels):
        is_list = isinstance(label, Iterable) and not isinstance(label, str)
        try:
            values = list(label) if is_list else [label]
            topics = [int(value) for value in values]
        except (TypeError, ValueError, OverflowError):
            values, topics = [], []
        valid = topics == values and not any(isinstance(v, bool | np.bool_) for v in values)
        if valid and topics == [UNKNOWN]:
            continue
        # a repeated topic is most likely a row of an indicator matrix, zeros and ones
        valid = valid and 0 < len(topics) == len(set(topics))
        if not valid or not all(0 <= topic < n_topics for topic in topics):
            raise DataError(
                f"document {d} has the label {brief(label)}",
                f"give a topic from 0 to {n_topics - 1}, a list of them, or -1 if unknown",
            )
        rows += [d] * len(topics)
        columns += topics
    allowed = sparse.csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), (n, n_topics))
    allowed.sum_duplicates()
    return allowed if allowed.nnz else None


def select_allowed(allowed: Any, documents: IntArray) -> BoolArray | None:
    """Return (documents, topics), False where a document cannot have a topic.

    None if no document is restricted.

    ``allowed``  of all documents, as returned by `read_labels`
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
    """Convert seed words to pseudo-counts: sparse (topics, words), whole numbers.

    ``seed_words``   topic → words, or a list of lists of words (topic 0, 1, …); words that never
                     occur in the corpus are ignored
    ``strength``     the pseudo-count of a seed word is this times its count, and at least 1
    ``word_counts``  the count of each word in the corpus, (words,)
    ``columns``      the column of each word

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
    for key, words in pairs:
        try:
            topic = int(key)  # the keys are strings in settings from a file
        except (TypeError, ValueError):
            topic = None
        if topic is None or not (isinstance(key, str) or topic == key):
            raise DataError(f"seed_words: {brief(key)} is not a topic", "topics are whole numbers")
        if not 0 <= topic < n_topics:
            raise DataError(
                f"there are seed words for topic {topic}",
                f"topics are numbered from 0 to {n_topics - 1}",
            )
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise DataError(
                f"the seed words of topic {topic} are {brief(words)}", "give a list of words"
            )
        for word in words:
            if not isinstance(word, Hashable):
                hint = "give a list of words for each topic"
                raise DataError(f"the seed word {brief(word)} is not a word", hint)
            column = columns.get(word)
            if column is None or not word_counts[column]:
                continue
            count = strength * word_counts[column]
            if count > MOST_SEED_COUNTS:
                hint = "lower seed_strength"
                raise LearnerError(f"a seed word would get the pseudo-count {count:g}", hint)
            table[topic, column] = max(1, round(float(count)))
    if not table.nnz:
        raise DataError(
            "none of the seed words is in the corpus",
            "give words in the form that the vectorizer produces, which is usually lower case",
        )
    return table.tocsr()


def read_frozen_topics(frozen: Any, columns: Mapping[Any, int], n_topics: int) -> FloatArray:
    """Return the first topics, which stay fixed: p(word | topic), (frozen, words).

    ``frozen``   an array with a row for each topic; or a list of mappings from words to weights,
                 where words without a column are ignored
    ``columns``  the column of each word
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
        message = f"frozen_topics={brief(frozen)} are not topics: {error}"
        raise DataError(message, FROZEN_HINT) from error
    if table.ndim != 2 or table.shape[1] != len(columns):
        raise DataError(
            f"frozen topics have the shape {table.shape}, but there are {len(columns)} words",
            FROZEN_HINT,
        )
    if not (np.isfinite(table) & (table >= 0.0)).all() or not table.any(axis=1).all():
        raise DataError(
            "a frozen topic has no words, or a weight that is negative or not finite", FROZEN_HINT
        )
    if len(table) >= n_topics:
        raise DataError(
            f"{len(table)} of {n_topics} topics are frozen: there is nothing to learn",
            "set n_components to more; to fold documents in use transform",
        )
    return table / table.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]
