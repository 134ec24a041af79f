"""Latent Dirichlet allocation with its parameters integrated out, sampled one token at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from softcount.corpus.whole import whole_bags
from softcount.errors import DataError, LearnerError
from softcount.kernels import topic_gibbs as kernel
from softcount.kernels.lanes import WIDTH
from softcount.models.topics.evidence import Histogram, fitted, log_evidence
from softcount.types import Array

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
                 being three tokens; if None they are drawn at random, by ``seed``

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
        seed: int = 0,
    ) -> None:
        of_topics = _positive("alpha", np.atleast_1d(np.array(alpha, np.float64)))
        of_words = float(_positive("beta", np.array([beta], np.float64))[0])
        self._prior = kernel.Prior(of_topics, of_words, n_words * of_words)
        self._n_words = n_words
        self._tokens = _tokens(*whole_bags(indptr, words, counts, n_words), len(of_topics))
        self._tokens.topics[:] = _begun(topics, seed, len(self._tokens.words), len(of_topics))
        self._table = _table(self._tokens.words, n_words, len(of_topics))
        kernel.count_all(self._tokens, self._table)

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
        if temper != 1.0:
            kernel.sweep_tempered(self._tokens, self._table, self._prior, seed, float(temper))
        elif len(self._table.dense):
            kernel.sweep_dense(self._tokens, self._table, self._prior, seed)
        else:
            kernel.sweep_lists(self._tokens, self._table, self._prior, seed)

    def conditional(self, token: int) -> Array:
        """log p(z_i = k | all others) of a token, up to a constant."""
        d = np.searchsorted(self._tokens.borders, token, side="right") - 1
        here = slice(self._tokens.borders[d], self._tokens.borders[d + 1])
        w, now = int(self._tokens.words[token]), int(self.topics[token])
        of_document = np.bincount(self.topics[here], minlength=len(self._prior.alpha))
        of_document[now] -= 1
        logs = np.empty(len(self._prior.alpha))
        kernel.count(self._table, w, now, -1)
        kernel.conditional(self._table, self._prior, of_document.astype(np.float64), w, logs)
        kernel.count(self._table, w, now, 1)
        return logs

    def counts(self) -> dict[str, Array]:
        """How often each topic has each word (K, V)."""
        K, V = len(self._prior.alpha), self._n_words
        where = self.topics.astype(np.int64) * V + self._tokens.words
        return {"topics": np.bincount(where, minlength=K * V).reshape(K, V).astype(np.float64)}

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
        of_documents, of_words = self._histograms()
        beta = np.array([self._prior.beta])
        return log_evidence(self._prior.alpha, of_documents) + log_evidence(beta, of_words)

    def optimise(self) -> None:
        """Fit α (one a topic) and β to the topics of all tokens: log p(w, z | α, β) cannot fall.

        That α has a number for every topic and β one for all words is what Wallach, Mimno &
        McCallum (2009) found to matter.
        """
        of_documents, of_words = self._histograms()
        alpha = fitted(self._prior.alpha, of_documents)
        beta = float(fitted(np.array([self._prior.beta]), of_words)[0])
        self._prior = kernel.Prior(alpha, beta, self._n_words * beta)

    def _histograms(self) -> tuple[Histogram, Histogram]:
        """Of topics in documents, and of words in topics."""
        lengths, totals = np.diff(self._tokens.borders), self._table.totals
        topics, counts = kernel.shares(self._tokens, len(totals))
        of_words = self._table.dense.ravel() if len(self._table.dense) else self._table.counts
        of_words = of_words[of_words > 0]
        return (
            Histogram.of(topics, counts, lengths),
            Histogram.of(np.zeros_like(of_words), of_words, totals, copies=self._n_words),
        )


def _tokens(borders: Array, words: Array, counts: Array, n_topics: int) -> kernel.Tokens:
    """The documents as tokens, all of topic 0."""
    total = counts.sum()
    if total > MOST:
        raise DataError(
            f"{total:.0f} tokens are too many for a collapsed sampler, which keeps them all",
            "use a stepwise learner, or fewer documents",
        )
    before = np.append(0, np.cumsum(counts)).astype(np.int64)
    narrow = np.uint16 if n_topics <= 2**16 else np.uint32
    return kernel.Tokens(
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


def _table(words: Array, n_words: int, n_topics: int) -> kernel.Table:
    """Room for the counts of every word's topics."""
    totals = np.zeros(n_topics)
    if n_topics < LISTS_FROM:
        dense = np.zeros((n_words, -(-n_topics // WIDTH) * WIDTH), np.int32)
        none = np.zeros(0, np.int32)
        lists = np.zeros(n_words + 1, np.int64), np.zeros(n_words, np.int32)
        return kernel.Table(dense, *lists, none, none, totals)
    most = np.minimum(np.bincount(words, minlength=n_words), n_topics)
    starts = np.append(0, np.cumsum(-(-most // WIDTH) * WIDTH))
    topics, counts = np.zeros((2, starts[-1]), np.int32)
    return kernel.Table(
        np.zeros((0, WIDTH), np.int32),
        starts,
        np.zeros(n_words, np.int32),
        topics,
        counts,
        totals,
    )


def _positive(name: str, values: Array) -> Array:
    least, most = PRIORS
    if values.ndim != 1 or not len(values) or not ((values >= least) & (values <= most)).all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration: 0.1 for topics and 0.01 for words are usual",
        )
    return np.ascontiguousarray(values)
