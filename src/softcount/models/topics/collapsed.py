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
        self._allowed, self._kinds = _kinds(self._known, K)
        choices = np.asarray(self._allowed.sum(axis=1)).ravel()
        self._choosing = np.flatnonzero(choices[self._kinds] > 1)
        if topics is None and (likely is not None or known is not None):
            even = np.ones((n_words, K)) if likely is None else np.ascontiguousarray(likely.T)
            begin(self._tokens, self._known, even, np.uint64(seed))
        else:
            self._tokens.topics[:] = _begun(topics, seed, len(self._tokens.words), K)
            _demand_allowed(self._tokens, self._known, K)
        none = sparse.coo_matrix((K, n_words), dtype=np.int64)
        self._seeds = none if seeds is None else _clean(seeds, np.int64).tocoo()
        beforehand = np.bincount(self._seeds.row, self._seeds.data, K)
        self._seeds_seen = self._of_words(self._seeds.data, beforehand)
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
        of_words = log_evidence(beta, self._words_seen()) - log_evidence(beta, self._seeds_seen)
        return of_words + log_evidence(self._prior.alpha, self._topics_seen())

    def optimise(self) -> None:
        """Fit α (one a topic) and β to the topics of all tokens: log p(w, z | α, β) cannot fall.

        That α has a number for every topic and β one for all words is what Wallach, Mimno &
        McCallum (2009) found to matter. Documents that may have one topic only say nothing of α,
        and β stays as it is where there are seeds, which are a prior of another shape.
        """
        beta = self._prior.beta
        alpha = fitted(self._prior.alpha, self._topics_seen())
        if not self._seeds.nnz:
            beta = float(fitted(np.array([beta]), self._words_seen())[0])
        self._prior = Prior(alpha, beta, self._n_words * beta)

    def _topics_seen(self) -> Histogram:
        """Of topics in documents that have a choice: log p(z) of the others is zero."""
        documents = self._choosing
        topics, counts = shares(self._tokens, documents, len(self._prior.alpha))
        lengths = np.diff(self._tokens.borders)[documents]
        return Histogram.of(topics, counts, lengths, self._allowed, self._kinds[documents])

    def _words_seen(self) -> Histogram:
        """Of words in topics, seeds among them."""
        of_words = self._table.dense.ravel() if len(self._table.dense) else self._table.counts
        return self._of_words(of_words[of_words > 0], self._table.totals)

    def _of_words(self, counts: Array, totals: Array) -> Histogram:
        return Histogram.of(np.zeros_like(counts), counts, totals, np.array([[self._n_words]]))


def _clean(given: Any, dtype: type) -> Any:
    """A sparse matrix whose entries are there once, and not zero."""
    rows = sparse.csr_matrix(given, dtype=dtype, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _known(known: Any, n: int) -> Known:
    """Which topics documents may have, document by document."""
    if known is None:
        return Known(np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
    rows = _clean(known, np.bool_)
    return Known(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))


def _kinds(known: Known, n_topics: int) -> tuple[Any, Array]:
    """The sets of topics that documents may have, (sets, topics), all of them first; and whose."""
    numbers: dict[bytes, int] = {}
    kinds = np.zeros(len(known.borders) - 1, np.int64)
    sets = [np.arange(n_topics)]
    for d in np.flatnonzero(np.diff(known.borders)):
        topics = known.topics[known.borders[d] : known.borders[d + 1]]
        kinds[d] = numbers.setdefault(topics.tobytes(), len(sets))
        if kinds[d] == len(sets):
            sets.append(topics)
    if len(sets) == 1:
        return np.ones((1, n_topics)), kinds
    borders = np.append(0, np.cumsum([len(topics) for topics in sets]))
    which = np.concatenate(sets)
    entries = sparse.csr_matrix((np.ones(len(which)), which, borders), (len(sets), n_topics))
    return entries, kinds


def _demand_allowed(tokens: Tokens, known: Known, n_topics: int) -> None:
    """Raise if a token begins in a topic that its document cannot have."""
    if not len(known.topics):
        return
    n = len(known.borders) - 1
    whose = np.repeat(np.arange(n), np.diff(tokens.borders))
    allowed = np.repeat(np.arange(n), np.diff(known.borders)) * n_topics + known.topics
    free = np.diff(known.borders)[whose] == 0
    wrong = np.flatnonzero(~free & ~np.isin(whose * n_topics + tokens.topics, allowed))
    if len(wrong):
        token = wrong[0]
        raise DataError(
            f"token {token} begins in topic {tokens.topics[token]}, which document {whose[token]} "
            "cannot have",
            "give topics that are among the known ones of each document",
        )


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
