"""Documents for topic models: rows of topics, held-out words, known topics, shards.

The topics of documents: a family whose rows belong to the documents and live with their shard.

Row θ_d has the prior Dir(α). What a learner says of tables holds for these rows too:

    maximise    θ_dk ∝ n_dk + α_k − 1
    mean field  θ_dk = exp(ψ(α_k + n_dk) − ψ(Σ_j α_j + n_dj))
    draw        θ_d ~ Dir(α + n_d)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, xlogy

from softcount.corpus.archive import Archive
from softcount.corpus.bags import Bags
from softcount.corpus.cut import parts
from softcount.errors import DataError, LearnerError, shown
from softcount.families.gammas import SMALLEST, log_gammas
from softcount.kernels.pool import over_rows
from softcount.topics import kernels
from softcount.types import Array, Stats, Update

TINY = 1e-100
"""Probabilities below this are zero: the likelihood loses nothing, and tiny numbers are slow."""

TINY_SINGLE = 1e-15
"""The same for numbers of 32 bits: a product of two must not be tiny either."""

LOWEST = -20.0
"""Rows of posteriors whose largest log is below this are lifted to it: a small prior leaves next to
nothing of short documents. Posteriors of topics do not change by a factor that all have."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The documents' rows of a shard.

    ``theta``    as the E-step uses them
    ``counts``   what they were made from, where the objective needs it (mean field), else None
    ``allowed``  False where a document is known not to have a topic; None: all may have all
    ``lift``     how much too large log p(words) is, because rows were lifted to `LOWEST`
    ``lifts``    how much too large each row's logs are; None: none was lifted
    """

    theta: Array
    counts: Array | None = None
    allowed: Array | None = None
    lift: float = 0.0
    lifts: Array | None = None

    @property
    def unlifted(self) -> Array:
        """The rows as they are."""
        return self.theta if self.lifts is None else self.theta * np.exp(-self.lifts)


@dataclass(frozen=True, eq=False)
class RowPrior:
    """How documents' rows are made from counts: the learner's word, and the prior α."""

    alpha: Array
    word: Update = "maximise"

    def __post_init__(self) -> None:
        if not ((self.alpha > 0.0) & np.isfinite(self.alpha)).all():
            raise LearnerError(
                "the Dirichlet prior of documents must be positive and finite", "0.1 is usual"
            )
        if self.word == "maximise" and (self.alpha < 1.0).any():
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                "use VariationalBayes or a sampler, or a doc_prior of at least 1",
            )

    def begin(self, lengths: Array, allowed: Array | None) -> Rows:
        """Rows that prefer no topic among those allowed."""
        shape = (len(lengths), len(self.alpha))
        even = np.ones(shape) if allowed is None else allowed.astype(np.float64)
        even /= even.sum(axis=1, keepdims=True)
        if self.word == "maximise":
            return Rows(even, None, allowed)
        return self._mean_field(even * lengths[:, None], allowed)

    def given(self, theta: Array, lengths: Array, allowed: Array | None) -> Rows:
        """Rows that someone else made."""
        rows = _only(theta.astype(np.float64), allowed)
        peaks = rows.max(axis=1, keepdims=True)
        lifts = np.where(peaks > 0.0, LOWEST - np.log(np.maximum(peaks, 1e-320)), 0.0)
        lifts = np.maximum(lifts, 0.0)
        if not lifts.any():
            return Rows(rows, None, allowed)
        return Rows(rows * np.exp(lifts), None, allowed, float(lengths @ lifts[:, 0]), lifts)

    def proper(self, rows: Rows) -> Array:
        """Rows as p(topic | document): as they are, or under mean field their posterior mean."""
        mass = rows.unlifted
        if self.word == "mean_field" and rows.counts is not None:
            mass = _only(rows.counts + self.alpha, rows.allowed)
        shares: Array = mass / mass.sum(axis=1, keepdims=True)
        return shares

    def update(self, counts: Array, old: Rows, rng: np.random.Generator) -> Rows:
        """New rows from expected counts; those of empty documents prefer what the prior does."""
        if self.word == "mean_field":
            return self._mean_field(counts, old.allowed)
        if self.word == "draw":
            return Rows(self._drawn(counts + self.alpha, old.allowed, rng), None, old.allowed)
        mass = _only(counts + (self.alpha - 1.0), old.allowed)
        totals = mass.sum(axis=1, keepdims=True)
        theta = np.divide(mass, totals, out=np.array(old.theta), where=totals > 0.0)
        theta[theta < TINY] = 0.0
        return Rows(theta, None, old.allowed)

    def _drawn(self, shapes: Array, allowed: Array | None, rng: np.random.Generator) -> Array:
        """Rows of normalised Gammas; as logarithms where some are too small for a number."""
        drawn = rng.standard_gamma(shapes)
        some = np.flatnonzero((_only(drawn, allowed, 1.0) < SMALLEST).any(axis=1))
        mass = _only(drawn, allowed)
        if len(some):
            own = None if allowed is None else allowed[some]
            logs = _only(log_gammas(drawn[some], shapes[some], rng), own, -np.inf)
            mass[some] = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares = mass / mass.sum(axis=1, keepdims=True)
        return _only(np.maximum(shares, SMALLEST), allowed)

    def _mean_field(self, counts: Array, allowed: Array | None) -> Rows:
        mass = counts + self.alpha
        totals = _only(mass, allowed).sum(axis=1, keepdims=True)
        logs = digamma(mass) - digamma(totals)
        if allowed is not None:
            logs = np.where(allowed, logs, -np.inf)
        lift = np.maximum(LOWEST - logs.max(axis=1, keepdims=True), 0.0)
        theta = _only(np.maximum(np.exp(logs + lift), TINY), allowed)
        lifted = _only(counts, allowed).sum(axis=1) @ lift[:, 0]
        return Rows(theta, counts, allowed, float(lifted), lift if lift.any() else None)

    def objective(self, rows: Rows) -> float:
        """The rows' part of what the learner climbs: log p(θ), or −KL(q(θ) ‖ p(θ))."""
        if self.word == "mean_field":
            # rows that were given as such have no posterior to be priced
            return 0.0 if rows.counts is None else -float(self._divergence(rows).sum())
        if np.all(self.alpha == 1.0):
            return 0.0
        theta = rows.theta if rows.allowed is None else np.where(rows.allowed, rows.theta, 1.0)
        return float(xlogy(self.alpha - 1.0, np.maximum(theta, SMALLEST)).sum())

    def _divergence(self, rows: Rows) -> Array:
        """KL(Dir(α + n) ‖ Dir(α)) of each row, over the topics that it may have."""
        assert rows.counts is not None
        counts = _only(rows.counts, rows.allowed)
        alpha = _only(np.broadcast_to(self.alpha, counts.shape), rows.allowed)
        entries = gammaln(self.alpha) - gammaln(counts + self.alpha)
        entries += counts * digamma(counts + self.alpha)
        before, seen = alpha.sum(axis=1), counts.sum(axis=1)
        ends = gammaln(before + seen) - gammaln(before) - seen * digamma(before + seen)
        divergence: Array = _only(entries, rows.allowed).sum(axis=1) + ends
        return divergence


def _only(values: Array, allowed: Array | None, otherwise: float = 0.0) -> Array:
    """The values, ``otherwise`` where they are not allowed."""
    return values if allowed is None else np.where(allowed, values, otherwise)


# Words of documents that are kept from learning, and how well they are foreseen.


SEED = 0
"""Of the draw: the same documents are always parted alike, whatever else is random."""


def hold_out(bags: Bags, share: float) -> tuple[Bags, Bags]:
    """The documents twice: with the words to learn from, and with those held out.

    Every token is held out with the probability ``share``. A document that would be left without a
    word keeps all of its own, and a word that would be left in no document is never held out: no
    table could foresee it.

    >>> seen, held = hold_out(Bags.of(np.full((50, 4), 10)), 0.1)
    >>> seen.lengths.sum() + held.lengths.sum(), bool(150 < held.lengths.sum() < 250)
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
    drawn = np.random.default_rng(SEED).binomial(rows.value.astype(np.int64), share)
    held = drawn.astype(np.float64)
    for owner, n in ((rows.columns, bags.n_words), (documents, len(bags))):
        left = np.bincount(owner, rows.value - held, minlength=n)
        held[left[owner] == 0.0] = 0.0
    if not held.any():
        raise DataError(
            f"no word could be held out (held_out={share}): the documents are too few or too short",
            "use EM(), or hold out a larger share",
        )
    return _counted(bags, rows.value - held), _counted(bags, held)


def _counted(bags: Bags, values: Array) -> Bags:
    """The same documents with other counts, of which some may be zero."""
    matrix = bags.matrix.copy()
    matrix.data = values
    return Bags.of(matrix)


def foreseen(held: Bags, theta: Array, phi: Array, threads: int) -> Stats:
    """log p(held-out words | θ, φ), with tables as `softcount.topics.core.wide` makes them.

    Probabilities below TINY count as TINY: a learner without a prior may come to hold a word
    impossible in a document in which it then occurs.
    """
    rows = held.by_document
    ratios, unused, logs = np.empty(len(rows.value)), np.empty_like(theta), np.empty(len(held))
    parts = (*rows, theta, phi, ratios, unused, logs)
    over_rows(kernels.by_document, rows.indptr, threads, *parts)
    # ratio = count / probability, or 0 for probability 0
    chances = np.divide(rows.value, ratios, out=np.zeros_like(ratios), where=ratios > 0.0)
    log_likelihood = float(rows.value @ np.log(np.maximum(chances, TINY)))
    return Stats({}, log_likelihood, log_likelihood, float(len(held)), float(rows.value.sum()))


# What is known of documents' topics: labels, and which topics a document may have.


UNKNOWN = -1
"""The label of a document of which nothing is known."""


def known_topics(labels: Any, n: int, n_topics: int) -> Any:
    """Labels as a sparse matrix (documents, topics) of the topics that a document may have.

    ``labels``  one entry a document: a topic, -1 if nothing is known, or several topics that the
                document may have. A row without any entry may have all.

    >>> known_topics([1, -1, [0, 2]], 3, 3).toarray().astype(int)
    array([[0, 1, 0], [0, 0, 0], [1, 0, 1]])
    """
    if labels is None:
        return None
    if sparse.issparse(labels) or isinstance(labels, Mapping) or not isinstance(labels, Sized):
        raise DataError(f"the labels are {shown(labels)}", "give a list, one label a document")
    if len(labels) != n or not isinstance(labels, Iterable):
        raise DataError(
            f"there are {n} documents, but {len(labels)} labels", "give one label a document"
        )
    rows, columns = [], []
    for d, label in enumerate(labels):
        topics = _topics(label, d, n_topics)
        rows += [d] * len(topics)
        columns += topics
    known = sparse.csr_matrix((np.ones(len(rows), np.bool_), (rows, columns)), (n, n_topics))
    known.sum_duplicates()
    return known if known.nnz else None


def _topics(label: Any, d: int, n_topics: int) -> list[int]:
    """The topics that a label allows."""
    several = isinstance(label, Iterable) and not isinstance(label, str)
    try:
        given = list(label) if several else [label]
        found = [int(topic) for topic in given]
    except (TypeError, ValueError, OverflowError):
        given, found = [], []
    sound = found == given and not any(isinstance(topic, bool | np.bool_) for topic in given)
    if found == [UNKNOWN] and sound:
        return []
    # a topic twice: most likely a row of zeros and ones
    sound = sound and 0 < len(found) == len(set(found))
    if not sound or not all(0 <= topic < n_topics for topic in found):
        raise DataError(
            f"document {d} has the label {shown(label)}",
            f"give topics from 0 to {n_topics - 1}, a list of them, or -1 if nothing is known",
        )
    return found


def allowed_of(known: Any, documents: Array) -> Array | None:
    """(documents, topics): False where a document cannot have a topic; None if all can have all."""
    if known is None:
        return None
    rows = known[documents]
    allowed: Array = rows.toarray().astype(np.bool_)
    free = np.diff(rows.indptr) == 0
    if free.all():
        return None
    allowed[free] = True
    return allowed


# What a topic model learns from: bags of words, and what is known of their topics.


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
