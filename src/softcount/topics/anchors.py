"""Initial topics from anchor words: words that occur (almost) only in one topic.

Pairs of different tokens of a document are distributed as Q = Φᵀ R Φ with R = E[θ θᵀ]. A document
with counts c of n tokens estimates Q without bias by (c cᵀ − diag c) / n(n − 1). Row i of Q,
divided by its sum p(i), is Σ_k p(k | i) q_k, where q_k is the distribution of words that co-occur
with topic k; the row of an anchor word is q_k itself, a corner of the simplex. So: find the
corners, write every row as a mixture of them, and invert p(k | i) by Bayes' rule (Arora, Ge,
Halpern, Mimno, Moitra, Sontag, Wu, Zhu 2013, "A practical algorithm for topic modeling with
provable guarantees").

As for mixtures (`softcount.mixture.starts`, which shares the second half of this module), rows are
projected on the principal directions of co-occurrence under χ² distances, documents are weighted by
their number of tokens, and the leverage of a document is capped, so that none forms a direction by
itself. The directions are found by subspace iteration from a random block (Halko, Martinsson, Tropp
2011), so that documents can be streamed and no V×V matrix is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core.errors import DataError
from softcount.core.types import FloatArray, IntArray
from softcount.kernels.threads import single_threaded
from softcount.text.bags import Bags

_DOCUMENTS = 4096  # documents per block
_WORDS = 1 << 16  # words per block of rows
_SPARE = 20  # oversampling: directions beyond twice the number of topics
_ITERATIONS = 4  # of subspace iteration
_UNCAPPED = 2  # iterations before leverages are capped: until then directions are rough
_RANK = 1e-8  # eigenvalues below this fraction of the largest are rounding error
_PAIRS = 1e-9  # a smaller fraction of pairs, relative to n², is rounding error

_COMMON = 0.01  # anchor words occur in at least this proportion of the documents
_FLAT = 1e-9  # corners end at this fraction of the largest squared distance
_ROUNDING = 1e-22  # the same relative to the points' squared lengths
_ROWS = 512  # words per block for mixture weights: few enough to stay in the cache
_STEPS = 50  # of projected gradient; EM makes more of them unnecessary
_STILL = 1e-4  # tolerance for changes of weights


class HasBags(Protocol):
    """A part of a corpus."""

    @property
    def bags(self) -> Bags:
        """The words of its documents."""


def anchor_topics(parts: Sequence[HasBags], n_topics: int, rng: np.random.Generator) -> FloatArray:
    """Estimate p(word | topic), (K, V), from co-occurrence in documents, as a start for EM.

    Every word of the corpus has a positive probability in all topics, others have zero. Documents
    of fewer than two tokens have no pairs and contribute to frequencies only. Topics without a
    corner are the mean of the corpus frequencies and those of a random document.

    The parts are read five times, six if topics are missing, one at a time, so they can be the
    shards of an archive. Memory: one part, and at most four blocks of V × (2K + 20) numbers,
    32 V (2K + 20) bytes. The division into parts changes the result by rounding error only, unless
    two words tie.

    >>> from softcount.topics.data import TopicDocuments
    >>> counts = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> parts = TopicDocuments(Bags.of(counts)).shards()
    >>> topics = anchor_topics(parts, 2, np.random.default_rng(0))
    >>> np.sort(topics.round(1), axis=0)
    array([[0.1, 0.1, 0.1, 0.1], [0.4, 0.4, 0.4, 0.4]])
    """
    if isinstance(parts, Iterator):
        raise DataError("the parts can be read only once", "give a list, or an archive's shards")
    with single_threaded():
        counts = _count_corpus(parts)
        overall: FloatArray = counts.words / counts.words.sum()
        if n_topics == 1:
            return overall[None]
        topics = _topics_of_corners(parts, counts, n_topics, rng)
        blend = 1.0 / np.sqrt(1.0 + counts.documents)  # makes probabilities positive
        topics *= 1 - blend
        topics += blend * overall
        missing = n_topics - len(topics)
        if missing:
            topics = np.vstack(
                [topics, (_draw_documents(parts, counts, missing, rng) + overall) / 2]
            )
        return topics


# Blocks of documents.


class _DocumentBlock(NamedTuple):
    """A block of documents that are not empty; n is the number of tokens of a document."""

    counts: csr_matrix
    """c / n, (documents, words)."""
    same: csr_matrix
    """The pairs of a token with itself, over n²: c, or c² where c < 1, so that no more is
    subtracted than there is; (documents, words)."""
    tokens: FloatArray
    """n, (documents,)."""
    per_pair: FloatArray
    """n over the proportion of pairs of different tokens; 0 if there are none; (documents,)."""


def _blocks(parts: Sequence[HasBags]) -> Iterator[_DocumentBlock]:
    for bags in (part.bags for part in parts):
        filled = np.flatnonzero(bags.lengths > 0.0)
        for first in range(0, len(filled), _DOCUMENTS):
            documents = filled[first : first + _DOCUMENTS]
            counts, tokens = bags.matrix[documents], bags.lengths[documents]
            places, n = (counts.indices, counts.indptr), np.repeat(tokens, np.diff(counts.indptr))
            frequencies = counts.data / n
            repeated = frequencies * np.minimum(counts.data, 1.0) / n
            same = csr_matrix((repeated, *places), counts.shape)
            different = 1.0 - same.sum(axis=1).A1
            per_pair = np.zeros_like(tokens)
            np.divide(tokens, different, out=per_pair, where=different > _PAIRS)
            counts = csr_matrix((frequencies, *places), counts.shape)
            yield _DocumentBlock(counts, same, tokens, per_pair)


class _CorpusCounts(NamedTuple):
    """Statistics of one pass over all documents."""

    words: FloatArray
    """The count of each word, (words,)."""
    within: FloatArray
    """The document frequency of each word, (words,)."""
    marginals: FloatArray
    """p(i), the probability of word i in a pair, (words,)."""
    documents: int
    """The number of documents that are not empty."""
    paired: int
    """The number of documents with pairs."""
    tokens: float
    """The number of tokens of documents with pairs."""


def _count_corpus(parts: Sequence[HasBags]) -> _CorpusCounts:
    words = within = marginals = np.zeros(0)
    documents, paired, tokens = 0, 0, 0.0
    for block in _blocks(parts):
        if not documents:
            words, within, marginals = np.zeros((3, block.counts.shape[1]))
        words += block.counts.T @ block.tokens
        within += np.bincount(block.counts.indices, minlength=len(words))
        marginals += _pair_marginals(block, block.per_pair)
        documents += len(block.tokens)
        paired += int(np.count_nonzero(block.per_pair))
        tokens += float(block.tokens[block.per_pair > 0.0].sum())
    if not documents:
        raise DataError("no document has a word", "give at least one document with words")
    marginals = marginals / max(marginals.sum(), 1e-300)
    return _CorpusCounts(words, within, marginals, documents, paired, tokens)


def _pair_marginals(block: _DocumentBlock, per_pair: FloatArray) -> FloatArray:
    """Compute Q 1 of these documents, not yet divided by their weights."""
    return np.maximum(block.counts.T @ per_pair - block.same.T @ per_pair, 0.0)  # type: ignore[no-any-return]


# Principal directions of co-occurrence.


def _topics_of_corners(
    parts: Sequence[HasBags], counts: _CorpusCounts, n_topics: int, rng: np.random.Generator
) -> FloatArray:
    """Compute φ_k(i) ∝ p(k | i) p(i), (corners, words), one topic for each corner."""
    scale = word_scale(counts.marginals, counts.within, counts.paired)
    marginals, rows = _embed_words(parts, counts, scale, n_topics, rng)
    if not rows.shape[1]:
        return np.zeros((0, len(marginals)))
    seen = np.flatnonzero(marginals > 0.0)
    usable = counts.within * ((marginals > 0.0) & (scale > 0.0))
    corners = find_corners(rows, common_words(usable, counts.paired, n_topics), n_topics)
    weights = mixture_weights(rows[seen], rows[corners])
    weights *= marginals[seen, None]
    topics = np.zeros((len(corners), len(marginals)))
    topics[:, seen] = (weights / weights.sum(axis=0)).T
    return topics


def _embed_words(
    parts: Sequence[HasBags],
    counts: _CorpusCounts,
    scale: FloatArray,
    n_topics: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return p, and the rows of D^−1 Q S in the principal directions U of S Q S.

    D = diag p, S = diag scale.
    """
    used = np.flatnonzero(scale)
    width = min(2 * n_topics + _SPARE, len(used))
    if not width:
        return counts.marginals, np.zeros((len(scale), 0))
    block = np.zeros((len(scale), width))
    block[used] = rng.normal(size=(len(used), width))
    values = np.zeros(0)
    for iteration in range(_ITERATIONS):
        block = np.linalg.qr(block)[0]
        block *= scale[:, None]
        strong = values[: n_topics if iteration >= _UNCAPPED else 0]
        marginals, product = _cooccurrence_times(block, parts, counts, strong, n_topics)
        inner = block.T @ product
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        values, product = values[::-1], product @ vectors[:, ::-1]
        if iteration < _ITERATIONS - 1:
            product *= scale[:, None]
            block = product
            del product  # blocks are the largest arrays of a fit to a wide vocabulary
    del block
    n_strong = int((values[:n_topics] > _RANK * max(values[0], 1e-12)).sum())
    rows = product[:, :n_strong].copy()  # a copy, so that the rest can be freed
    seen = (marginals > 0.0)[:, None]
    np.divide(rows, marginals[:, None], out=rows, where=seen)
    return marginals, rows


def _cooccurrence_times(
    block: FloatArray,
    parts: Sequence[HasBags],
    counts: _CorpusCounts,
    strong: FloatArray,
    n_topics: int,
) -> tuple[FloatArray, FloatArray]:
    """Compute Q 1 and Q X for a block X = S U, with capped leverages if eigenvalues are known.

    ``strong``  the eigenvalues of the first directions in U; empty: unknown
    """
    strong = strong[strong > _RANK * max(strong.max(initial=0.0), 1e-12)]
    white = np.zeros(block.shape[1])
    white[: len(strong)] = 1.0 / strong
    own = (block**2) @ white
    cap = max(counts.paired**-0.5, 3 * n_topics / counts.paired)
    product, marginals, diagonal = np.zeros_like(block), *np.zeros((2, len(block)))
    for documents in _blocks(parts):
        projected = documents.counts @ block
        leverage = projected**2 @ white - documents.same @ own
        leverage = documents.per_pair / counts.tokens * leverage
        per_pair = documents.per_pair * np.minimum(1.0, cap / np.maximum(leverage, cap))
        marginals += _pair_marginals(documents, per_pair)
        diagonal += documents.same.T @ per_pair
        projected *= per_pair[:, None]
        product += documents.counts.T @ projected
    for first in range(0, len(block), _WORDS):
        some = slice(first, first + _WORDS)
        product[some] -= diagonal[some, None] * block[some]
    total = marginals.sum()
    product /= total
    return marginals / total, product


def _draw_documents(
    parts: Sequence[HasBags], counts: _CorpusCounts, n: int, rng: np.random.Generator
) -> FloatArray:
    """Draw n non-empty documents, distinct if possible; return their word frequencies, (n, words).

    They stand in for topics without a corner.
    """
    numbers = rng.choice(counts.documents, n, replace=n > counts.documents)
    words = np.zeros((n, len(counts.words)))
    before = 0
    for block in _blocks(parts):
        here = np.flatnonzero((before <= numbers) & (numbers < before + len(block.tokens)))
        words[here] = block.counts[numbers[here] - before].toarray()
        before += len(block.tokens)
    return words


# Anchor words: the corners of the words' convex hull, and all words as mixtures of these corners.
# A word is a point: the distribution of the words that co-occur with it. Mixtures of documents use
# this initialisation, too.


def word_scale(
    marginals: FloatArray, within: FloatArray | IntArray, n_documents: int
) -> FloatArray:
    """Return p^−½ for words in at least √N / 5 documents; zero for others.

    This equalises the sampling noise of frequent and rare words. Very rare words are excluded: a
    word that a single document repeats would be a direction of its own, however small the weight of
    the document.

    ``marginals``  p, the probability of each word in a pair of tokens, (words,)
    ``within``     the document frequency of each word, (words,)
    """
    used = (marginals > 0) & (within >= np.sqrt(n_documents) / 5)
    if not used.any():
        used = marginals > 0
    scale: FloatArray = np.zeros_like(marginals)
    np.divide(1.0, np.sqrt(marginals), out=scale, where=used)
    return scale


def common_words(within: FloatArray | IntArray, n_documents: int, n_corners: int) -> IntArray:
    """Return the words in enough documents; if these are too few, those in the most documents.

    ``within``  the document frequency of each word; zero for words that must not be chosen
    """
    order = np.argsort(-within, kind="stable")
    enough = int((within >= max(2.0, _COMMON * n_documents)).sum())
    return order[: min(max(enough, n_corners), np.count_nonzero(within))]


def find_corners(rows: FloatArray, candidates: IntArray, n_corners: int) -> list[int]:
    """Find the words at the corners of the rows' simplex, at most ``n_corners``.

    There are fewer if the rows span fewer dimensions. Greedy: first the row farthest from the mean,
    then repeatedly the row farthest from the affine hull of those chosen; at the end each corner is
    chosen again, given all others.

    >>> triangle = np.array([[0.0, 0], [1, 0], [0, 1], [0.3, 0.3]])
    >>> sorted(find_corners(triangle, np.arange(4), 3))
    [0, 1, 2]
    """
    points = rows[candidates]
    spread = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    flat = max(_FLAT * spread.max(), _ROUNDING * (points**2).sum(axis=1).max(), 1e-300)
    chosen = [int(np.argmax(spread))]
    while len(chosen) < n_corners:
        distance = _from_hull(points, chosen)
        if distance.max() <= flat:
            break
        chosen.append(int(np.argmax(distance)))
    if len(chosen) > 1:
        for k in range(len(chosen)):
            chosen[k] = int(np.argmax(_from_hull(points, chosen[:k] + chosen[k + 1 :])))
    return [int(candidates[i]) for i in chosen]


def _from_hull(points: FloatArray, chosen: list[int]) -> FloatArray:
    """Compute the squared distance of every point from the affine hull of the chosen ones."""
    away = points - points[chosen[0]]
    basis, _ = np.linalg.qr(away[chosen[1:]].T)
    away -= (away @ basis) @ basis.T
    return (away**2).sum(axis=1)  # type: ignore[no-any-return]


def mixture_weights(rows: FloatArray, corners: FloatArray) -> FloatArray:
    """Compute weights p(k | i) ≥ 0, summing to one, with Σ_k p(k | i) corner_k closest to row i.

    Accelerated projected gradient (Beck, Teboulle 2009) on all rows of a block at once.

    >>> mixture_weights(np.array([[0.25, 0.75], [2.0, 0.0]]), np.eye(2)).round(3)
    array([[0.25, 0.75], [1.  , 0.  ]])
    """
    centre = corners.mean(axis=0)  # irrelevant to weights that sum to one; allows longer steps
    rows, corners = rows - centre, corners - centre
    gram = corners @ corners.T
    rate = 1.0 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    blocks = []
    for first in range(0, len(rows), _ROWS):
        target = rows[first : first + _ROWS] @ corners.T
        ahead = weights = np.full(target.shape, 1.0 / target.shape[1])
        momentum = 1.0
        for _ in range(_STEPS):
            new = _project_on_simplex(ahead - rate * (ahead @ gram - target))
            grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            moved = new - weights
            ahead = new + (momentum - 1) / grown * moved
            weights, momentum = new, grown
            if np.abs(moved).max() < _STILL:
                break
        blocks.append(weights)
    return np.vstack(blocks)


def _project_on_simplex(rows: FloatArray) -> FloatArray:
    """Project each row on the probability simplex (Held, Wolfe, Crowder 1974)."""
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    support = (falling > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), support][:, None], 0.0)  # type: ignore[no-any-return]
