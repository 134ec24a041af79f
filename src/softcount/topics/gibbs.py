"""Collapsed Gibbs sampling of the topic of every token, all parameters integrated out.

Documents d, words w, topics k; n_dk, n_wk, n_k the tokens of a topic in a document, of a word and
altogether, token i left out (Griffiths & Steyvers 2004):

    p(z_i = k | z_−i, w) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ) = a_k (n_wk + β)

a_k is stored for the current document; a token changes two of its entries. Counts are whole
numbers, so that additions and subtractions are exact. There are two representations of n_wk:

- *Dense*, for few topics: a row of K counts for each word, all products in one vector loop. To keep
  the processor's pipeline busy, the sums for a token are started on counts that still contain the
  token itself and do not yet contain the previous one. This is corrected, exactly, for the two
  topics concerned, when the drawn number is looked up.
- *Lists*, for many topics: only the topics in which a word occurs. p splits into a_k n_wk over that
  list and β a_k over all topics (Yao, Mimno & McCallum 2009), which is rarely sampled from.

The priors α and β can be fitted to the samples (Minka 2000; Wallach, Mimno & McCallum 2009).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import digamma

from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.types import Array, FloatArray, IntArray, Stats
from softcount.kernels.collapsed import draw_from_logs, log_rising
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import (
    WIDTH,
    cumulate_listed,
    cumulate_products,
    find_cumulated,
    prefetch_row,
)
from softcount.text.bags import check_whole_counts

Whole = int | np.integer[Any]
"""An integer, of Python or numpy."""


class TopicTokens(NamedTuple):
    """The tokens of all documents, concatenated."""

    borders: IntArray
    """Document d has the tokens from borders_d to borders_{d+1}; (documents + 1,)."""
    words: IntArray
    """The word of each token, (tokens,)."""
    topics: IntArray
    """The topic of each token, (tokens,): the state that is sampled."""


class WordTopicCounts(NamedTuple):
    """n_wk, in dense rows or in lists; and n_k.

    The list of word w begins at starts_w and has sizes_w topics with their counts; beyond these, up
    to starts_{w+1}, counts are zero.
    """

    dense: IntArray
    """(words, topics), zero-padded to a multiple of `WIDTH` topics; (0, …) if lists are used."""
    starts: IntArray
    """(words + 1,)."""
    sizes: IntArray
    """(words,)."""
    topics: IntArray
    """(entries of all lists,)."""
    counts: IntArray
    """(entries of all lists,)."""
    totals: FloatArray
    """n_k, (topics,)."""


class AllowedTopics(NamedTuple):
    """The topics that documents may have."""

    borders: IntArray
    """Document d may have the topics from borders_d to borders_{d+1}; if empty, all topics."""
    topics: IntArray
    """The topics, document by document."""


class TopicPriors(NamedTuple):
    """The Dirichlet priors of topic proportions and of topics."""

    alpha: FloatArray
    """α, (topics,)."""
    beta: float
    """β, the same for every word."""
    beta_total: float
    """Vβ."""


class TopicState(NamedTuple):
    """The state of a sweep: tokens and counts, which change, and constraints and priors."""

    tokens: TopicTokens
    table: WordTopicCounts
    allowed: AllowedTopics
    prior: TopicPriors


@inline
def find_topic(table: WordTopicCounts, w: Whole, k: Whole) -> int:
    """Return the position of topic k in the list of word w, or the position after its end."""
    place: int = table.starts[w]
    end = place + table.sizes[w]
    while place < end and table.topics[place] != k:
        place += 1
    return place


@inline
def remove_token(table: WordTopicCounts, w: Whole, place: Whole) -> None:
    """Remove a token at a position of word w's list; the last topic replaces one with count 0."""
    table.counts[place] -= 1
    if table.counts[place] == 0:
        table.sizes[w] -= 1
        last = table.starts[w] + table.sizes[w]
        table.topics[place], table.counts[place] = table.topics[last], table.counts[last]
        table.counts[last] = 0


@inline
def add_token(table: WordTopicCounts, w: Whole, place: Whole, k: Whole, times: int = 1) -> None:
    """Add tokens at a position of word w's list, which may be the one after its end."""
    if place == table.starts[w] + table.sizes[w]:
        table.sizes[w] += 1
        table.topics[place] = k
    table.counts[place] += times


@njit
def count_token(table: WordTopicCounts, w: Whole, k: Whole, times: int) -> None:
    """Add ``times`` tokens of word w to topic k, or remove one (−1)."""
    table.totals[k] += times
    if len(table.dense):
        table.dense[w, k] += times
    elif times > 0:
        add_token(table, w, find_topic(table, w, k), k, times)
    else:
        remove_token(table, w, find_topic(table, w, k))


@njit
def count_tokens(tokens: TopicTokens, table: WordTopicCounts) -> None:
    """Add every token to the counts."""
    for i in range(len(tokens.words)):
        count_token(table, tokens.words[i], tokens.topics[i], 1)


@njit
def draw_first_topics(
    tokens: TopicTokens, allowed: AllowedTopics, phi: FloatArray, seed: np.uint64
) -> None:
    """Draw the initial topic of every token in proportion to φ_wk, among the allowed topics."""
    every, sums = np.arange(phi.shape[1]), np.empty(phi.shape[1])
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        few = allowed.topics[allowed.borders[d] : allowed.borders[d + 1]]
        few = few if len(few) else every
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            total = 0.0
            for j in range(len(few)):
                total += phi[tokens.words[i], few[j]]
                sums[j] = total
            j, target = 0, uniform(stream, 0) * total
            if total == 0.0:  # a word that is in no topic
                j = int(uniform(stream, 0) * len(few))
            while total > 0.0 and j < len(few) - 1 and sums[j] <= target:
                j += 1
            tokens.topics[i] = few[j]


@inline
def count_of(table: WordTopicCounts, w: Whole, k: Whole) -> int:
    """Return n_wk."""
    if len(table.dense):
        return table.dense[w, k]  # type: ignore[no-any-return]
    place = find_topic(table, w, k)
    return table.counts[place] if place < table.starts[w] + table.sizes[w] else 0


@njit
def document_topic_counts(
    tokens: TopicTokens, documents: IntArray, n_topics: int
) -> tuple[IntArray, IntArray]:
    """Return all k and n_dk > 0 of these documents, concatenated."""
    n = len(tokens.words)
    topics, counts = np.empty(n, np.int32), np.empty(n, np.int32)
    of_document = np.zeros(n_topics, np.int32)
    filled = 0
    for d in documents:
        here = tokens.topics[tokens.borders[d] : tokens.borders[d + 1]]
        for k in here:
            of_document[k] += 1
        for k in here:
            if of_document[k] > 0:
                topics[filled], counts[filled] = k, of_document[k]
                of_document[k] = 0
                filled += 1
    return topics[:filled], counts[:filled]


@njit
def sum_log_rising(x: FloatArray, n: FloatArray, times: FloatArray) -> float:
    """Compute Σ_j times_j · log (x_j (x_j + 1) … (x_j + n_j − 1))."""
    total = 0.0
    for j in range(len(x)):
        total += times[j] * log_rising(x[j], n[j])
    return total


LOST = 1e-6
"""If subtracting a token leaves less than this fraction of a sum, the sum is computed again."""

_njit = partial(njit, error_model="numpy")  # divisors are positive: no checks for zero


class TopicWorkspace(NamedTuple):
    """Workspace for one document; `a` and `sums` are padded to a multiple of `WIDTH`."""

    counts: FloatArray
    """n_dk, (topics,)."""
    a: FloatArray
    """a_k = (n_dk + α_k) / (n_k + Vβ), (topics,)."""
    inverse: FloatArray
    """1 / (n_k + Vβ), (topics,)."""
    next_inverse: FloatArray
    """1 / (n_k + 1 + Vβ), (topics,)."""
    sums: FloatArray
    """Cumulative sums within each vector lane, (topics,)."""
    ends: FloatArray
    """0, and the cumulative sums over lanes, (lanes + 1,)."""
    zeros: IntArray
    """Counts of a word that is in no topic, (1, topics): with them, products reduce to a_k."""


@_njit
def sweep(state: TopicState, seed: np.uint64) -> None:
    """Resample the topic of every token, in order."""
    tokens, table, prior = state.tokens, state.table, state.prior
    K = len(table.totals)
    wide = -(-K // WIDTH) * WIDTH
    work = TopicWorkspace(
        np.zeros(K),
        np.zeros(wide),
        1.0 / (table.totals + prior.beta_total),
        1.0 / (table.totals + (prior.beta_total + 1.0)),
        np.empty(wide),
        np.zeros(WIDTH + 1),
        np.zeros((1, wide), np.int32),
    )
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        here = slice(tokens.borders[d], tokens.borders[d + 1])
        words, topics = tokens.words[here], tokens.topics[here]
        few = state.allowed.topics[state.allowed.borders[d] : state.allowed.borders[d + 1]]
        if len(words) == 0 or len(few) == 1:
            continue  # there is nothing to sample
        work.counts[:] = 0.0
        for k in topics:
            work.counts[k] += 1.0
        if len(few):
            _draw_restricted(words, topics, few, state, work, stream)
            continue
        for k in range(K):
            work.a[k] = (work.counts[k] + prior.alpha[k]) * work.inverse[k]
        if len(table.dense):
            _draw_dense(words, topics, state, work, stream)
        else:
            _draw_listed(words, topics, state, work, stream)


@_njit
def _draw_dense(
    words: IntArray, topics: IntArray, state: TopicState, work: TopicWorkspace, stream: IntArray
) -> None:
    """Resample all tokens of a document with dense counts.

    The topic ``new`` of the previous token is added to the counts one token late.
    """
    dense, totals, prior = state.table.dense, state.table.totals, state.prior
    K, rows = len(totals), dense.shape[1] // WIDTH
    beta, a, sums, ends = prior.beta, work.a, work.sums, work.ends
    new, before = np.uint64(0), np.uint64(0)
    for i in range(len(words)):
        old, w = np.uint64(topics[i]), np.uint64(words[i])
        if i + 2 < len(words):
            prefetch_row(dense, words[i + 2])
        whole = cumulate_products(sums, ends, dense, w, beta, a)
        edge = sums[old] + ends[old & np.uint64(WIDTH - 1)]  # the sum up to the old topic
        n, a_old = dense[w, old], a[old]
        dense[w, old] = n - 1
        _leave_topic(old, totals, prior, work)
        gap = a_old * (n + beta) - a[old] * ((n - 1) + beta)  # not negative: n ≤ n_k, β ≤ Vβ
        more = 0.0
        if i > 0:
            n, a_new = dense[w, new] + beta, a[new]
            dense[before, new] += 1
            _enter_topic(new, totals, prior, work)
            more = a[new] * (n + (before == w)) - a_new * n
        total = whole - gap
        if more < 0.0 or total < LOST * whole:
            total, more, gap = cumulate_products(sums, ends, dense, w, beta, a), 0.0, 0.0
        target = uniform(stream, 0) * (total + more)
        again = target >= total  # the last interval is what the previous token added to its topic
        target = target if target < edge - gap else target + gap
        place = min(find_cumulated(sums, ends, rows, target), K - 1)
        new = new if again else np.uint64(place)
        topics[i], before = new, w
    dense[before, new] += 1
    _enter_topic(new, totals, prior, work)


@inline
def _leave_topic(k: Whole, totals: FloatArray, prior: TopicPriors, work: TopicWorkspace) -> None:
    """Remove a token from topic k."""
    n, total = work.counts[k] - 1.0, totals[k] - 1.0
    work.counts[k], totals[k] = n, total
    inverse = 1.0 / (total + prior.beta_total)
    work.inverse[k] = inverse
    work.next_inverse[k] = 1.0 / (total + (prior.beta_total + 1.0))
    work.a[k] = (n + prior.alpha[k]) * inverse


@inline
def _enter_topic(k: Whole, totals: FloatArray, prior: TopicPriors, work: TopicWorkspace) -> None:
    """Add a token to topic k; its inverse is precomputed, because this is on the critical path."""
    n, total = work.counts[k] + 1.0, totals[k] + 1.0
    inverse = work.next_inverse[k]
    work.a[k] = (n + prior.alpha[k]) * inverse
    work.counts[k], totals[k] = n, total
    work.inverse[k] = inverse
    work.next_inverse[k] = 1.0 / (total + (prior.beta_total + 1.0))


@_njit
def _draw_listed(
    words: IntArray, topics: IntArray, state: TopicState, work: TopicWorkspace, stream: IntArray
) -> None:
    """Resample all tokens of a document with lists of topics."""
    table, prior = state.table, state.prior
    a, sums, ends = work.a, work.sums, work.ends
    K, rows = len(table.totals), len(a) // WIDTH
    base = cumulate_products(sums, ends, work.zeros, 0, 1.0, a)  # Σ_k a_k
    for i in range(len(words)):
        k, w = np.int64(topics[i]), words[i]
        base -= a[k]
        remove_token(table, w, find_topic(table, w, k))
        _leave_topic(k, table.totals, prior, work)
        base += a[k]
        start, size = table.starts[w], table.sizes[w]
        few = (size + WIDTH - 1) // WIDTH
        total = cumulate_listed(sums, ends, table.topics, table.counts, start, few, a)
        target = uniform(stream, 0) * (total + prior.beta * base)
        if target < total:
            place = start + min(find_cumulated(sums, ends, few, target), size - 1)
            k = np.int64(table.topics[place])
        else:
            base = cumulate_products(sums, ends, work.zeros, 0, 1.0, a)
            k = np.int64(min(find_cumulated(sums, ends, rows, uniform(stream, 0) * base), K - 1))
            place = find_topic(table, w, k)
        topics[i] = k
        base -= a[k]
        add_token(table, w, place, k)
        _enter_topic(k, table.totals, prior, work)
        base += a[k]


@_njit
def _draw_restricted(
    words: IntArray,
    topics: IntArray,
    few: IntArray,
    state: TopicState,
    work: TopicWorkspace,
    stream: IntArray,
) -> None:
    """Resample all tokens of a document that is restricted to a few topics."""
    table, prior = state.table, state.prior
    for i in range(len(words)):
        k, w = np.int64(topics[i]), words[i]
        work.counts[k] -= 1
        count_token(table, w, k, -1)
        total = 0.0
        for j in range(len(few)):
            k = few[j]
            total += (
                (work.counts[k] + prior.alpha[k])
                * (count_of(table, w, k) + prior.beta)
                / (table.totals[k] + prior.beta_total)
            )
            work.sums[j] = total
        target, j = uniform(stream, 0) * total, 0
        while j < len(few) - 1 and work.sums[j] <= target:
            j += 1
        topics[i] = few[j]
        work.counts[few[j]] += 1
        count_token(table, w, few[j], 1)
    for k in few:
        work.inverse[k] = 1.0 / (table.totals[k] + prior.beta_total)
        work.next_inverse[k] = 1.0 / (table.totals[k] + (prior.beta_total + 1.0))


@njit
def conditional_logs(
    table: WordTopicCounts, prior: TopicPriors, of_document: FloatArray, w: Whole, out: FloatArray
) -> None:
    """Set out_k = log p(z = k | all others) up to a constant, for a removed token of word w."""
    K = len(out)
    for k in range(K):
        out[k] = table.dense[w, k] if len(table.dense) else 0.0
    for place in range(table.starts[w], table.starts[w] + table.sizes[w]):
        out[table.topics[place]] = table.counts[place]
    for k in range(K):
        p = (of_document[k] + prior.alpha[k]) * (out[k] + prior.beta)
        out[k] = math.log(p / (table.totals[k] + prior.beta_total))


@njit
def sweep_tempered(state: TopicState, seed: np.uint64, temper: float) -> None:
    """Resample the topic of every token, in order, from a power of its conditional."""
    tokens, table, allowed = state.tokens, state.table, state.allowed
    K = len(table.totals)
    barred = np.empty(K, np.bool_)
    of_document, logs, room = np.zeros(K), np.empty(K), np.empty(K)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        of_document[:] = 0.0
        few = allowed.topics[allowed.borders[d] : allowed.borders[d + 1]]
        barred[:] = len(few) > 0
        barred[few] = False
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            of_document[tokens.topics[i]] += 1.0
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            k, w = int(tokens.topics[i]), tokens.words[i]
            of_document[k] -= 1.0
            count_token(table, w, k, -1)
            conditional_logs(table, state.prior, of_document, w, logs)
            logs[barred] = -np.inf
            k = draw_from_logs(logs, 0, K, temper, stream, room)
            tokens.topics[i] = k
            of_document[k] += 1.0
            count_token(table, w, k, 1)


# Fitting Dirichlet priors to counts.


SMALLEST_PRIOR = 1e-5
"""The lower bound of fitted priors: an empty topic can then recover."""

LARGEST_PRIOR = 1e10
"""The upper bound: if counts are no more uneven than by chance, the evidence always grows."""

MAX_ITER = 200
"""The largest number of fixed-point iterations."""

TOL = 1e-5
"""Iteration stops when no prior changes by more than this fraction of itself."""


class CountHistogram(NamedTuple):
    """A histogram of Dirichlet-multinomial rows of counts.

    ``which, counts, times``  there are ``times`` entries of prior ``which`` with this count (not 0)
    ``totals, kinds, total_times``  there are ``total_times`` rows of a kind with this sum (not 0)
    ``entries``  (kinds, priors): the number of entries of each prior in a row of each kind
    """

    which: IntArray
    counts: FloatArray
    times: FloatArray
    totals: IntArray
    kinds: IntArray
    total_times: FloatArray
    entries: Any

    @classmethod
    def of(
        cls, which: IntArray, counts: Array, totals: Array, entries: Any, kinds: IntArray | int = 0
    ) -> CountHistogram:
        """Make the histogram of non-zero entries, in any order, and the rows' sums and kinds."""
        rows = np.broadcast_to(kinds, totals.shape)[totals > 0]
        seen, times = _count_pairs(which, counts)
        ends, row_times = _count_pairs(rows, totals[totals > 0])
        return cls(seen[0], seen[1].astype(np.float64), times, ends[1], ends[0], row_times, entries)


def _count_pairs(first: Array, second: Array) -> tuple[IntArray, FloatArray]:
    """Return the distinct pairs of integers, (2, pairs), and their counts, (pairs,)."""
    span = int(second.max(initial=0)) + 1
    keys = first.astype(np.int64) * span + second.astype(np.int64)
    keys, times = np.unique(keys, return_counts=True)
    return np.array([keys // span, keys % span]), times.astype(np.float64)


def log_evidence(prior: FloatArray, seen: CountHistogram) -> float:
    """Compute the log marginal likelihood of rows under a Dirichlet prior.

        Σ over rows of log Γ(A) / Γ(A + N) + Σ_j log Γ(a_j + n_j) / Γ(a_j),  A = Σ_j a_j

    Example: two different words under a uniform prior have probability 1/2 · 1/3.

    >>> row = CountHistogram.of(np.array([0, 1]), np.array([1, 1]), np.array([2]), np.ones((1, 2)))
    >>> round(float(np.exp(-log_evidence(np.ones(2), row))), 9)
    6.0
    """
    total = (seen.entries @ prior)[seen.kinds]
    entries: float = sum_log_rising(prior[seen.which], seen.counts, seen.times)
    rows: float = sum_log_rising(total, seen.totals.astype(np.float64), seen.total_times)
    return entries - rows


def fit_prior(prior: FloatArray, seen: CountHistogram) -> FloatArray:
    """Maximise the evidence over the prior by fixed-point iterations (Minka 2000):

        a_j ← a_j · Σ_rows [ψ(n_j + a_j) − ψ(a_j)] / Σ_rows [ψ(N + A) − ψ(A)]

    The evidence never decreases. The denominator is over the rows with an entry of prior j; a prior
    without such rows does not change.

    >>> rows = CountHistogram.of(
    ...     np.array([0, 1, 0, 0]), np.array([9, 1, 8, 5]), np.array([10, 8, 5]), np.ones((1, 2))
    ... )
    >>> before = np.ones(2)
    >>> bool(log_evidence(fit_prior(before, rows), rows) > log_evidence(before, rows))
    True
    """
    least, n_kinds = np.minimum(prior, SMALLEST_PRIOR), seen.entries.shape[0]
    for _ in range(MAX_ITER):
        total = (seen.entries @ prior)[seen.kinds]
        of_rows = seen.total_times * (digamma(seen.totals + total) - digamma(total))
        below = seen.entries.T @ np.bincount(seen.kinds, of_rows, n_kinds)
        own = prior[seen.which]
        gains = seen.times * (digamma(seen.counts + own) - digamma(own))
        above = np.bincount(seen.which, gains, len(prior))
        factors = np.divide(above, below, out=np.ones(len(prior)), where=below > 0.0)
        old, prior = prior, np.clip(prior * factors, least, LARGEST_PRIOR)
        if (np.abs(prior - old) <= TOL * old).all():
            break
    return prior


PRIOR_RANGE = (1e-10, 1e10)
"""The smallest and the largest prior."""

LISTS_FROM = 256
"""From this number of topics on, a list of each word's topics is faster than a dense row."""

MOST_TOKENS = 2**31 - 1
"""The largest number of tokens."""

AGAIN = "restore a sampler of the same documents and settings"
"""Hint for states of other samplers."""


class CollapsedTopics:
    """The collapsed Gibbs sampler: the topics of all tokens, and their counts.

    ``indptr, words, counts``  the documents in CSR form; counts are whole numbers
    ``n_words``  V, the size of the vocabulary
    ``alpha``    Dirichlet prior of topic proportions, (topics,)
    ``beta``     Dirichlet prior of the topics' words, one number
    ``topics``   the initial topic of every token, document by document, where a word with count 3
                 is three tokens (not checked); None: drawn, seeded by ``seed``
    ``phi``      p(word | topic), (K, V), for drawing the initial topics; None: uniform
    ``allowed``  sparse (documents, topics): the topics that a document may have; an empty row
                 allows all
    ``seed_counts``  sparse (K, V) of whole numbers: pseudo-counts of seed words

    Memory: six bytes per token (eight with more than 2^16 topics), and 4 K bytes for each word;
    from `LISTS_FROM` topics on, at most eight bytes per token instead, and a few for each word.

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
        phi: FloatArray | None = None,
        seed: int = 0,
        allowed: Any = None,
        seed_counts: Any = None,
    ) -> None:
        K, self._n_words = np.size(alpha), n_words
        prior = self._make_prior(np.atleast_1d(np.array(alpha, np.float64)), float(beta))
        borders, columns, values = check_whole_counts(indptr, words, counts, n_words)
        n, total = len(borders) - 1, values.sum()
        if total > MOST_TOKENS:
            raise DataError(
                f"{total:.0f} tokens are too many for a collapsed sampler, which keeps them all",
                "use a stepwise learner, or fewer documents",
            )
        tokens = TopicTokens(
            np.append(0, np.cumsum(values)).astype(np.int64)[borders],
            np.repeat(columns, values.astype(np.int64)),
            np.zeros(int(total), np.uint16 if K <= 2**16 else np.uint32),
        )
        rows = _without_zeros(sparse.csr_matrix((n, K)) if allowed is None else allowed, np.bool_)
        may_have = AllowedTopics(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))
        self._allowed_sets, self._set_of = _distinct_sets(may_have, K)
        choices = np.asarray(self._allowed_sets.sum(axis=1)).ravel()
        self._choosing = np.flatnonzero(choices[self._set_of] > 1)
        if topics is not None:
            tokens.topics[:] = topics
        elif phi is None and allowed is None:
            tokens.topics[:] = np.random.default_rng(seed).integers(0, K, len(tokens.words))
        else:
            even = np.ones((n_words, K)) if phi is None else np.ascontiguousarray(phi.T)
            draw_first_topics(tokens, may_have, even, np.uint64(seed))
        none = sparse.csr_matrix((K, n_words))
        seeds = _without_zeros(none if seed_counts is None else seed_counts, np.int64)
        self._seeds = seeds.tocoo()
        beforehand = np.bincount(self._seeds.row, self._seeds.data, K)
        self._seed_histogram = self._histogram_of_words(self._seeds.data, beforehand)
        table = _make_counts(tokens.words, self._seeds, n_words, K)
        self._count_all(tokens, table)
        self._state = TopicState(tokens, table, may_have, prior)

    def _make_prior(self, alpha: FloatArray, beta: float) -> TopicPriors:
        least, most = PRIOR_RANGE
        for name, values in (("alpha", alpha), ("beta", np.array([beta]))):
            inside = values.ndim == 1 and ((values >= least) & (values <= most)).all()
            if not inside or not len(values):
                raise LearnerError(
                    f"{name} must be numbers from {least:g} to {most:g}",
                    "it is a Dirichlet prior's concentration: 0.1 for topics and 0.01 for words "
                    "are usual",
                )
        return TopicPriors(alpha, beta, self._n_words * beta)

    @property
    def alpha(self) -> FloatArray:
        """The prior of the documents' topics."""
        return self._state.prior.alpha.copy()

    @property
    def beta(self) -> float:
        """The prior of the topics' words."""
        return self._state.prior.beta

    @property
    def topics(self) -> IntArray:
        """The topic of every token, document by document, (tokens,)."""
        return self._state.tokens.topics

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Resample the topic of every token given all others; ``temper`` is a power of p.

        The result depends only on ``stream`` and the state. A power other than 1 is slower.
        """
        seed = np.uint64(stream % 2**64)
        if temper != 1.0:
            sweep_tempered(self._state, seed, float(temper))
        else:
            sweep(self._state, seed)

    def state(self) -> dict[str, Array]:
        """Return copies of all that a sweep or `optimise` changes.

        Dense counts and totals follow from the topics of the tokens. Lists do not: sums, and so
        draws, depend on the order of the topics in a list.
        """
        prior = self._state.prior
        priors = {"alpha": prior.alpha, "beta": np.array([prior.beta])}
        changing = {"topics": self.topics, **self._lists(), **priors}
        return {name: np.array(array) for name, array in changing.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `state` returned; the same bits follow."""
        tokens, table, _, prior = self._state
        for name, array in {"topics": tokens.topics, "alpha": prior.alpha, **self._lists()}.items():
            if name not in state or state[name].shape != array.shape:
                raise StoreError("this is the state of a sampler of other documents", AGAIN)
        if state["topics"].max(initial=0) >= len(prior.alpha):
            raise StoreError("this is the state of a sampler with more topics", AGAIN)
        tokens.topics[:] = state["topics"]
        if len(table.dense):
            table.dense[:], table.totals[:] = 0, 0.0
            self._count_all(tokens, table)
        else:
            for name, array in self._lists().items():
                array[:] = state[name]
            table.totals[:] = np.bincount(tokens.topics, minlength=len(prior.alpha))
            np.add.at(table.totals, self._seeds.row, self._seeds.data)
        prior = self._make_prior(np.array(state["alpha"]), float(state["beta"][0]))
        self._state = self._state._replace(prior=prior)

    def _lists(self) -> dict[str, IntArray]:
        """Return the lists of topics of each word; {} if counts are dense."""
        table = self._state.table
        if len(table.dense):
            return {}
        return {
            "list_sizes": table.sizes,
            "list_topics": table.topics,
            "list_counts": table.counts,
        }

    def _count_all(self, tokens: TopicTokens, table: WordTopicCounts) -> None:
        """Add all seeds and tokens to counts of zero."""
        seeds = self._seeds
        for k, w, times in zip(seeds.row, seeds.col, seeds.data, strict=True):
            count_token(table, w, k, times)
        count_tokens(tokens, table)

    def conditional(self, token: int) -> FloatArray:
        """Return log p(z_i = k | all others) of a token, up to a constant, (topics,)."""
        tokens, table, allowed, prior = self._state
        d = np.searchsorted(tokens.borders, token, side="right") - 1
        w, now, K = tokens.words[token], int(tokens.topics[token]), len(prior.alpha)
        here = tokens.topics[tokens.borders[d] : tokens.borders[d + 1]]
        of_document = np.bincount(here, minlength=K).astype(np.float64)
        of_document[now] -= 1.0
        logs = np.empty(K)
        count_token(table, w, now, -1)
        conditional_logs(table, prior, of_document, w, logs)
        count_token(table, w, now, 1)
        few = allowed.topics[allowed.borders[d] : allowed.borders[d + 1]]
        if len(few):
            logs[np.setdiff1d(np.arange(K), few)] = -np.inf
        return logs

    def counts(self) -> dict[str, FloatArray]:
        """Return the counts of words in topics, (K, V), without the seeds' pseudo-counts."""
        K, V = len(self._state.prior.alpha), self._n_words
        where = self.topics.astype(np.int64) * V + self._state.tokens.words
        return {"topics": np.bincount(where, minlength=K * V).reshape(K, V).astype(np.float64)}

    def means(self) -> dict[str, FloatArray]:
        """Return E[φ | w, z], p(word | topic) given the topics of all tokens, (K, V)."""
        mass = self.counts()["topics"] + self._state.prior.beta
        np.add.at(mass, (self._seeds.row, self._seeds.col), self._seeds.data)
        mass /= mass.sum(axis=1, keepdims=True)
        return {"topics": mass}

    def priors(self) -> dict[str, FloatArray]:
        """Return the current priors, which `optimise` updates."""
        return {"documents": self.alpha, "topics": np.array([self.beta])}

    def stats(self) -> Stats:
        """Return statistics with log p(w, z), which is cheap and what other samplers report."""
        tokens, joint = self._state.tokens, self.log_joint()
        return Stats({}, joint, joint, float(len(tokens.borders) - 1), float(len(tokens.words)))

    def document_counts(self) -> FloatArray:
        """Return the counts of topics in documents, (n, K)."""
        borders, K = self._state.tokens.borders, len(self._state.prior.alpha)
        n = len(borders) - 1
        where = np.repeat(np.arange(n), np.diff(borders)) * K + self.topics
        return np.bincount(where, minlength=n * K).reshape(n, K).astype(np.float64)

    def log_joint(self) -> float:
        """Compute log p(w, z | α, β), collapsed over θ, φ (Griffiths & Steyvers 2004, eq. 2, 3).

        This is for the tokens in their order, without multinomial coefficients.
        """
        beta = np.array([self.beta])
        of_words = log_evidence(beta, self._word_histogram())
        of_words -= log_evidence(beta, self._seed_histogram)
        return of_words + log_evidence(self._state.prior.alpha, self._topic_histogram())

    def optimise(self) -> None:
        """Fit α and β to the topics of all tokens: log p(w, z | α, β) cannot decrease.

        An asymmetric α and a symmetric β are what Wallach, Mimno & McCallum (2009) recommend.
        Documents with a single allowed topic carry no information about α, and β does not change if
        there are seeds, with which the prior of words is not symmetric.
        """
        beta = self._state.prior.beta
        alpha = fit_prior(self._state.prior.alpha, self._topic_histogram())
        if not self._seeds.nnz:
            beta = float(fit_prior(np.array([beta]), self._word_histogram())[0])
        self._state = self._state._replace(prior=TopicPriors(alpha, beta, self._n_words * beta))

    def _topic_histogram(self) -> CountHistogram:
        """Histogram of topics in documents with several allowed topics; p(z) of others is 1."""
        tokens, documents = self._state.tokens, self._choosing
        topics, counts = document_topic_counts(tokens, documents, len(self._state.prior.alpha))
        lengths, sets = np.diff(tokens.borders)[documents], self._set_of[documents]
        return CountHistogram.of(topics, counts, lengths, self._allowed_sets, sets)

    def _word_histogram(self) -> CountHistogram:
        """Histogram of words in topics, including the pseudo-counts of seeds."""
        table = self._state.table
        of_words = table.dense.ravel() if len(table.dense) else table.counts
        return self._histogram_of_words(of_words[of_words > 0], table.totals)

    def _histogram_of_words(self, counts: Array, totals: Array) -> CountHistogram:
        return CountHistogram.of(np.zeros_like(counts), counts, totals, np.array([[self._n_words]]))


def _without_zeros(matrix: Any, dtype: type) -> Any:
    """Return a sparse copy without duplicate entries and stored zeros."""
    rows = sparse.csr_matrix(matrix, dtype=dtype, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _distinct_sets(allowed: AllowedTopics, n_topics: int) -> tuple[Any, IntArray]:
    """Return the distinct sets of allowed topics, (sets, topics), and each document's set.

    Set 0 has all topics.
    """
    numbers: dict[bytes, int] = {}
    kinds = np.zeros(len(allowed.borders) - 1, np.int64)
    sets: list[IntArray] = [np.arange(n_topics)]
    for d in np.flatnonzero(np.diff(allowed.borders)):
        topics = allowed.topics[allowed.borders[d] : allowed.borders[d + 1]]
        kinds[d] = numbers.setdefault(topics.tobytes(), len(sets))
        if kinds[d] == len(sets):
            sets.append(topics)
    if len(sets) == 1:
        return np.ones((1, n_topics)), kinds
    borders = np.append(0, np.cumsum([len(topics) for topics in sets]))
    which = np.concatenate(sets)
    entries = sparse.csr_matrix((np.ones(len(which)), which, borders), (len(sets), n_topics))
    return entries, kinds


def _make_counts(words: IntArray, seeds: Any, n_words: int, n_topics: int) -> WordTopicCounts:
    """Allocate the counts of topics for each word, with room for all tokens and seeds."""
    totals = np.zeros(n_topics)
    dense, none = np.zeros((0, WIDTH), np.int32), np.zeros(0, np.int32)
    starts, sizes = np.zeros(n_words + 1, np.int64), np.zeros(n_words, np.int32)
    if n_topics < LISTS_FROM:
        dense = np.zeros((n_words, -(-n_topics // WIDTH) * WIDTH), np.int32)
        return WordTopicCounts(dense, starts, sizes, none, none, totals)
    most = np.bincount(words, minlength=n_words) + np.bincount(seeds.col, minlength=n_words)
    starts[1:] = np.cumsum(-(-np.minimum(most, n_topics) // WIDTH) * WIDTH)
    topics, counts = np.zeros((2, starts[-1]), np.int32)
    return WordTopicCounts(dense, starts, sizes, topics, counts, totals)
