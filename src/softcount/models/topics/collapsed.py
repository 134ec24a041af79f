"""Latent Dirichlet allocation with its parameters integrated out, sampled one token at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from softcount.corpus.whole import whole_bags
from softcount.errors import DataError, LearnerError
from softcount.kernels import topic_gibbs as kernel
from softcount.kernels.lanes import WIDTH
from softcount.kernels.topic_table import (
    Known,
    Prior,
    Table,
    Tokens,
    begin,
    count,
    count_all,
    rising,
    shares,
)
from softcount.models.topics.evidence import Histogram, fitted, log_evidence
from softcount.types import Array, Stats

PRIORS = (1e-10, 1e10)
"""The smallest prior and the largest."""

LISTS_FROM = 256
"""From so many topics on, a list of each word's topics is faster than a row of all of them."""

MOST = 2**31 - 1
"""The largest number of tokens."""


class CollapsedTopics:
    """A state of the sampler: which topic each token is of.

    ``indptr, words, counts``  the documents in CSR form; counts are whole numbers
    ``n_words``  V, the size of the vocabulary
    ``alpha``    Dirichlet prior of the documents' topics, one number a topic
    ``beta``     Dirichlet prior of the topics' words, one number
    ``topics``   the topic of every token to begin with, document by document, a word with count 3
                 being three tokens; if None they are drawn, by ``seed``
    ``likely``   p(word | topic) (K, V) to draw the first topics with; if None all are as likely
    ``known``    sparse (documents, topics): which topics a document may have; all if it has none
    ``seeds``    sparse (K, V) of whole numbers: tokens that a topic has beforehand

    A token takes six bytes (eight from 2^16 topics on). The words' topics take 4 K bytes a word, or
    from `LISTS_FROM` topics on at most eight bytes a token, and some for each word.

    >>> two = CollapsedTopics([0, 2, 4], [0, 1, 1, 2], [5, 1, 1, 5], 3, alpha=np.full(2, 0.1),
    ...                       beta=0.1)
    >>> for stream in range(20):
    ...     two.sweep(stream)
    >>> sorted(two.counts()["topics"][:, [0, 2]].tolist())
    [[0.0, 5.0], [5.0, 0.0]]
    >>> two.document_counts().sum(axis=1)
    array([6., 6.])
    """

    def __init__(
        self,
        indptr: ArrayLike,
        words: ArrayLike,
        counts: ArrayLike,
        n_words: int,
        *,
        alpha: ArrayLike,
        beta: float,
        topics: ArrayLike | None = None,
        likely: Array | None = None,
        seed: int = 0,
        known: Any = None,
        seeds: Any = None,
    ) -> None:
        of_topics = _positive("alpha", np.atleast_1d(np.array(alpha, np.float64)))
        of_words = float(_positive("beta", np.array([beta], np.float64))[0])
        K = len(of_topics)
        self._prior = Prior(of_topics, of_words, n_words * of_words)
        self._n_words = n_words
        self._tokens = _tokens(*whole_bags(indptr, words, counts, n_words), K)
        self._known = _known(known, len(self._tokens.borders) - 1)
        if topics is None and likely is not None:
            begin(self._tokens, self._known, np.ascontiguousarray(likely.T), np.uint64(seed))
        else:
            self._tokens.topics[:] = _begun(topics, seed, len(self._tokens.words), K)
        self._seeds = sparse.coo_matrix((K, n_words) if seeds is None else seeds, dtype=np.int64)
        self._table = _table(self._tokens.words, self._seeds, n_words, K)
        count_all(self._tokens, self._table)

    @property
    def alpha(self) -> Array:
        """The prior of the documents' topics."""
        return self._prior.alpha.copy()

    @property
    def beta(self) -> float:
        """The prior of the topics' words."""
        return self._prior.beta

    @property
    def topics(self) -> Array:
        """The topic of every token, document by document."""
        return self._tokens.topics

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Draw every token's topic anew, given all others; ``temper`` is a power of p.

        Draws depend on ``stream`` and the state alone. A power other than 1 is slower.
        """
        seed = np.uint64(stream % 2**64)
        state = self._tokens, self._known, self._table, self._prior, seed
        if temper != 1.0:
            kernel.sweep_tempered(*state, float(temper))
        elif len(self._table.dense):
            kernel.sweep_dense(*state)
        else:
            kernel.sweep_lists(*state)

    def conditional(self, token: int) -> Array:
        """log p(z_i = k | all others) of a token, up to a constant."""
        d = np.searchsorted(self._tokens.borders, token, side="right") - 1
        here = slice(self._tokens.borders[d], self._tokens.borders[d + 1])
        w, now = int(self._tokens.words[token]), int(self.topics[token])
        of_document = np.bincount(self.topics[here], minlength=len(self._prior.alpha))
        of_document[now] -= 1
        logs = np.empty(len(self._prior.alpha))
        count(self._table, w, now, -1)
        kernel.conditional(self._table, self._prior, of_document.astype(np.float64), w, logs)
        count(self._table, w, now, 1)
        few = self._known.topics[self._known.borders[d] : self._known.borders[d + 1]]
        if len(few):
            logs[np.setdiff1d(np.arange(len(logs)), few)] = -np.inf
        return logs

    def counts(self) -> dict[str, Array]:
        """How often each topic has each word (K, V), seeds apart."""
        K, V = len(self._prior.alpha), self._n_words
        where = self.topics.astype(np.int64) * V + self._tokens.words
        return {"topics": np.bincount(where, minlength=K * V).reshape(K, V).astype(np.float64)}

    def means(self) -> dict[str, Array]:
        """E[φ | w, z]: p(word | topic) given the topics of all tokens, (K, V)."""
        mass = self.counts()["topics"] + self._prior.beta
        np.add.at(mass, (self._seeds.row, self._seeds.col), self._seeds.data)
        mass /= mass.sum(axis=1, keepdims=True)
        return {"topics": mass}

    def priors(self) -> dict[str, Array]:
        """What `optimise` makes of the priors."""
        return {"documents": self.alpha, "topics": np.array([self.beta])}

    def stats(self) -> Stats:
        """log p(w, z): what others report of such samplers, for it costs next to nothing."""
        documents, tokens = len(self._tokens.borders) - 1, len(self._tokens.words)
        joint = self.log_joint()
        return Stats({}, joint, joint, float(documents), float(tokens))

    def document_counts(self) -> Array:
        """How often each document has each topic (n, K)."""
        n, K = len(self._tokens.borders) - 1, len(self._prior.alpha)
        whose = np.repeat(np.arange(n), np.diff(self._tokens.borders))
        where = whose * K + self.topics
        return np.bincount(where, minlength=n * K).reshape(n, K).astype(np.float64)

    def log_joint(self) -> float:
        """log p(w, z | α, β), the parameters integrated out (Griffiths & Steyvers 2004, 2 and 3).

        Of the tokens in their order: there are no multinomial coefficients.
        """
        beta = np.array([self._prior.beta])
        of_words = log_evidence(beta, self._words_seen()) - log_evidence(beta, self._seeds_seen())
        free, bound = self._free(), self._bound()
        of_documents = log_evidence(self._prior.alpha, self._topics_seen(free))
        return of_words + of_documents + self._log_bound(bound)

    def optimise(self) -> None:
        """Fit α (one a topic) and β to the topics of all tokens: log p(w, z | α, β) cannot fall.

        That α has a number for every topic and β one for all words is what Wallach, Mimno &
        McCallum (2009) found to matter. Documents whose topics are known say nothing of α, and
        β stays as it is where there are seeds, which are a prior of another shape.
        """
        beta = self._prior.beta
        alpha = fitted(self._prior.alpha, self._topics_seen(self._free()))
        if not self._seeds.nnz:
            beta = float(fitted(np.array([beta]), self._words_seen())[0])
        self._prior = Prior(alpha, beta, self._n_words * beta)

    def _free(self) -> Array:
        """The documents that may have any topic."""
        return np.flatnonzero(np.diff(self._known.borders) == 0)

    def _bound(self) -> Array:
        """The documents of which something is known."""
        return np.flatnonzero(np.diff(self._known.borders) > 0)

    def _topics_seen(self, documents: Array) -> Histogram:
        topics, counts = shares(self._tokens, documents, len(self._prior.alpha))
        return Histogram.of(topics, counts, np.diff(self._tokens.borders)[documents])

    def _words_seen(self) -> Histogram:
        """Of words in topics, seeds among them."""
        of_words = self._table.dense.ravel() if len(self._table.dense) else self._table.counts
        return self._of_words(of_words[of_words > 0], self._table.totals)

    def _seeds_seen(self) -> Histogram:
        return self._of_words(self._seeds.data, np.asarray(self._seeds.sum(axis=1)).ravel())

    def _of_words(self, counts: Array, totals: Array) -> Histogram:
        return Histogram.of(np.zeros_like(counts), counts, totals, copies=self._n_words)

    def _log_bound(self, documents: Array) -> float:
        """log p(z) of documents that may have some of the topics only."""
        if not len(documents):
            return 0.0
        alpha, borders = self._prior.alpha, self._known.borders
        topics, counts = shares(self._tokens, documents, len(alpha))
        totals = np.add.reduceat(alpha[self._known.topics], borders[documents])
        lengths = np.diff(self._tokens.borders)[documents].astype(np.float64)
        of_topics: float = rising(alpha[topics], counts.astype(np.float64), np.ones(len(topics)))
        return of_topics - float(rising(totals, lengths, np.ones(len(totals))))


def _known(known: Any, n: int) -> Known:
    """Which topics documents may have, document by document."""
    if known is None:
        return Known(np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
    rows = sparse.csr_matrix(known)
    rows.sort_indices()
    return Known(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))


def _tokens(borders: Array, words: Array, counts: Array, n_topics: int) -> Tokens:
    """The documents as tokens, all of topic 0."""
    total = counts.sum()
    if total > MOST:
        raise DataError(
            f"{total:.0f} tokens are too many for a collapsed sampler, which keeps them all",
            "use a stepwise learner, or fewer documents",
        )
    before = np.append(0, np.cumsum(counts)).astype(np.int64)
    narrow = np.uint16 if n_topics <= 2**16 else np.uint32
    return Tokens(
        before[borders], np.repeat(words, counts.astype(np.int64)), np.zeros(int(total), narrow)
    )


def _begun(topics: ArrayLike | None, seed: int, n: int, n_topics: int) -> Array:
    """The tokens' first topics, checked or drawn."""
    if topics is None:
        return np.random.default_rng(seed).integers(0, n_topics, n)
    given = np.asarray(topics)
    if given.shape != (n,):
        raise DataError(
            f"there are {n} tokens, but topics of shape {given.shape}",
            "give one topic for every token: a word with count 3 is three tokens",
        )
    wrong = np.flatnonzero((given < 0) | (given >= n_topics) | (given != np.floor(given)))
    if len(wrong):
        raise DataError(
            f"token {wrong[0]} begins in topic {given[wrong[0]]}, but there are {n_topics}",
            f"give whole numbers from 0 to {n_topics - 1}",
        )
    return given


def _table(words: Array, seeds: Any, n_words: int, n_topics: int) -> Table:
    """Room for the counts of every word's topics, with the seeds in it."""
    totals = np.zeros(n_topics)
    dense, none = np.zeros((0, WIDTH), np.int32), np.zeros(0, np.int32)
    starts, sizes = np.zeros(n_words + 1, np.int64), np.zeros(n_words, np.int32)
    if n_topics < LISTS_FROM:
        dense = np.zeros((n_words, -(-n_topics // WIDTH) * WIDTH), np.int32)
        table = Table(dense, starts, sizes, none, none, totals)
    else:
        most = np.bincount(words, minlength=n_words) + np.bincount(seeds.col, minlength=n_words)
        starts[1:] = np.cumsum(-(-np.minimum(most, n_topics) // WIDTH) * WIDTH)
        topics, counts = np.zeros((2, starts[-1]), np.int32)
        table = Table(dense, starts, sizes, topics, counts, totals)
    for k, w, times in zip(seeds.row, seeds.col, seeds.data, strict=True):
        count(table, w, k, times)
    return table


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not len(values) or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration: 0.1 for topics and 0.01 for words are usual",
        )
    return np.ascontiguousarray(values)
