"""Metrics of topics (coherence, diversity, document completion) and of rankings.

They measure whether the words of a topic belong together, whether topics differ, and whether they
predict text.

Topics are a matrix with a row for each topic and a column for each word, weights ≥ 0 on any scale
(`components_` of scikit-learn, probabilities), or a model that has such a matrix as ``topics_``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from softcount.core.errors import DataError, brief
from softcount.core.types import FloatArray, IntArray
from softcount.metrics.likelihood import Random, document_completion, perplexity
from softcount.text.bags import Bags
from softcount.topics.core import TINY, DocumentPrior, expect_topics, fold_in, pad_topics

BLOCK = 1024
"""Number of documents folded in together: few enough for their rows to stay in the cache."""


@dataclass(frozen=True)
class Coherence:
    """Coherence: how well the top words of each topic belong together, and the mean."""

    topics: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over topics."""
        return float(np.mean(self.topics))

    def __str__(self) -> str:
        low, high = min(self.topics), max(self.topics)
        return f"coherence {self.mean:.4f} ({len(self.topics)} topics, {low:.4f} to {high:.4f})"


@dataclass(frozen=True)
class Completion:
    """The result of document completion: how well topics predict one half from the other.

    ``perplexity``  of the predicted tokens, without impossible ones
    ``documents``   the number of documents with such tokens
    ``tokens``      the number of such tokens
    ``impossible``  the number of tokens to predict whose word is in no topic; they are excluded
                    from the other figures
    """

    perplexity: float
    documents: int
    tokens: int
    impossible: int

    def __str__(self) -> str:
        text = f"perplexity {self.perplexity:.2f} ({self.tokens} tokens, {self.documents} documents"
        apart = f"; impossible and not counted: {self.impossible}" if self.impossible else ""
        return f"{text}{apart})"


def npmi(topics: Any, reference: Any, top: int = 10) -> Coherence:
    """Normalised pointwise mutual information of top words (Bouma 2009; Lau et al. 2014).

        npmi_ij = log(p_ij / (p_i p_j)) / −log p_ij

    where p_i is the proportion of documents of ``reference`` that have word i, and p_ij of those
    that have both. The coherence of a topic is the mean over the pairs of its ``top`` words. A pair
    has −1 if the words never co-occur, 0 if they are independent, 1 if they always co-occur.

    ``reference``  counts, (documents, words), columns as in the topics

    >>> counts = [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 0, 5]]
    >>> print(npmi([[0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]], counts))
    coherence 0.7500 (2 topics, 0.5000 to 1.0000)
    """
    tables, n = _count_cooccurrences(topics, reference, top)
    means = []
    for _, together in tables:
        frequencies = together / n
        i, j = np.triu_indices(len(together), 1)
        single, both = np.diag(frequencies), frequencies[i, j]
        scores = np.where(both == 0.0, -1.0, 1.0)  # 1 remains if both are in every document
        inner = (both > 0.0) & (both < 1.0)
        # log(p_ij / p_i p_j) / −log p_ij, in a form that rounding cannot push beyond −1 … 1
        scores[inner] = np.log(single[i[inner]]) + np.log(single[j[inner]])
        scores[inner] = scores[inner] / np.log(both[inner]) - 1.0
        means.append(float(scores.mean()))
    return Coherence(tuple(means))


def umass(topics: Any, reference: Any, top: int = 10) -> Coherence:
    """UMass coherence (Mimno et al. 2011).

        Σ_{j=2}^{top} Σ_{i<j} log((D_ij + 1) / D_i), over a topic's words, most probable first

    D_i is the number of documents of ``reference`` that have word i, D_ij of those that have both.
    The reference is the training corpus, so that every word occurs in it. The score is a sum over
    pairs, as in the paper: compare it only for the same ``top``. It is usually negative; closer to
    0 is better.

    >>> counts = [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 0, 5]]
    >>> umass([[0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]], counts).topics  # log 3/2, log 2/2
    (0.405..., 0.0)
    """
    tables, _ = _count_cooccurrences(topics, reference, top)
    scores = []
    for k, (words, together) in enumerate(tables):
        frequencies = np.diag(together)
        if not frequencies.all():
            raise DataError(
                f"word {words[np.argmin(frequencies)]}, a top word of topic {k}, is in no document",
                "give the documents that the topics were learned from, or use npmi",
            )
        i, j = np.triu_indices(len(words), 1)
        scores.append(float(np.log((together[i, j] + 1) / frequencies[i]).sum()))
    return Coherence(tuple(scores))


def diversity(topics: Any, top: int = 25) -> float:
    """Topic diversity: the proportion of distinct words among all top words (Dieng et al. 2020).

    1 if no two topics share a top word, 1/K if all K topics have the same ones.

    >>> diversity([[5, 4, 0, 0], [4, 5, 0, 0], [0, 0, 1, 2]], top=2)
    0.666...
    """
    words = np.concatenate(_top_words(_weights(topics), top))
    return len(np.unique(words)) / len(words)


def completion(
    topics: Any,
    matrix: Any,
    smoothing: float = 0.1,
    share: float = 0.5,
    max_iter: int = 100,
    random_state: Random = 0,
) -> Completion:
    """Document completion: how well topics predict one half of unseen documents from the other.

    One protocol for all systems (after Wallach, Murray, Salakhutdinov & Mimno 2009):

    1. Rows of the topics are normalised: φ_kw. They are not smoothed.
    2. `document_completion` splits each document's tokens at random: one half is observed, the
       other (``share`` of the tokens, on average) is to be predicted.
    3. The proportions of a document are estimated from the observed half n_dw by EM with the topics
       held fixed, starting from equal proportions, with ``max_iter`` iterations of
       θ_dk ∝ smoothing + Σ_w n_dw θ_dk φ_kw / Σ_j θ_dj φ_jw,
       which converges to the mode under the prior Dir(1 + smoothing). Words that are in no topic
       are ignored; a document without observed words keeps equal proportions.
    4. The perplexity is exp(−Σ log Σ_k θ_dk φ_kw / tokens) over the tokens of the second half.
       Those whose word is in no topic (no φ_kw above 1e-100) are left out and counted in
       ``impossible``: two models are comparable only if both have none of them, or the same.

    ``matrix``  whole counts, (documents, words), columns as in the topics

    >>> topics = [[0.5, 0.5, 0, 0], [0, 0, 0.9, 0.1]]
    >>> print(completion(topics, [[50, 50, 0, 0], [0, 0, 90, 10]]))
    perplexity 1.69 (101 tokens, 2 documents)
    """
    if not isinstance(smoothing, Real) or not 0.0 < smoothing < np.inf:
        raise DataError(
            f"smoothing is {brief(smoothing)}", "give a number above 0; the protocol has 0.1"
        )
    if max_iter < 1:
        raise DataError(f"max_iter={max_iter}", "give 1 or more; the protocol has 100")
    weights = _weights(topics)
    phi = weights / weights.max(axis=1, keepdims=True)  # so that the sums cannot overflow
    phi /= phi.sum(axis=1, keepdims=True)
    phi[phi < TINY] = 0.0
    halves = document_completion(matrix, share, random_state)
    _check_width(halves[0], phi, "matrix")
    known = phi.any(axis=0)
    phi, impossible = phi[:, known], int(halves[1][:, ~known].sum())
    seen, unseen = (Bags.of(half[:, known]) for half in halves)
    tokens = int(unseen.lengths.sum())
    if not tokens:
        raise DataError(
            "there is no token to predict: the documents are empty, or all their words unknown",
            "give documents with words that occur in the topics, and more than a few tokens",
        )
    table, prior = pad_topics(phi.T), DocumentPrior(np.full(len(phi), 1.0 + smoothing))
    log_likelihood = 0.0
    for first in range(0, len(seen), BLOCK):
        block = np.arange(first, min(first + BLOCK, len(seen)))
        theta = pad_topics(fold_in(phi, seen.take(block), prior, max_iter, tol=0.0))
        sums = expect_topics(unseen.take(block).by_document, theta, table)
        log_likelihood += float(sums.logs.sum())
    documents = int((unseen.lengths > 0.0).sum())
    return Completion(perplexity(log_likelihood, tokens), documents, tokens, impossible)


def completion_perplexity(
    topics: Any,
    matrix: Any,
    smoothing: float = 0.1,
    share: float = 0.5,
    max_iter: int = 100,
    random_state: Random = 0,
) -> float:
    """The perplexity of `completion`, but infinite if there are impossible tokens.

    >>> round(completion_perplexity([[1, 1, 1, 1]], [[3, 2, 0, 1], [0, 0, 9, 2]]), 6)  # a fair die
    4.0
    """
    result = completion(topics, matrix, smoothing, share, max_iter, random_state)
    return np.inf if result.impossible else result.perplexity


def _count_cooccurrences(
    topics: Any, reference: Any, top: int
) -> tuple[list[tuple[IntArray, IntArray]], int]:
    """Return the top words of each topic with their D_ij, and the number of documents.

    D_ij is the number of documents that have both words, D_ii of those that have word i.
    """
    weights = _weights(topics)
    lists = _top_words(weights, top)
    for k, words in enumerate(lists):
        if len(words) < 2:
            raise DataError(
                f"topic {k} has {len(words)} top word, but coherence needs pairs",
                "ask for at least two top words, and leave out topics that have fewer",
            )
    counts = _read_matrix(reference, "reference", "give counts: a row for each document")
    _check_width(counts, weights, "reference")
    present = sparse.csc_matrix(counts != 0).astype(np.int64)
    blocks = ((words, present[:, words]) for words in lists)
    return [(words, (block.T @ block).toarray()) for words, block in blocks], present.shape[0]


def _top_words(weights: FloatArray, top: int) -> list[IntArray]:
    """Return the words with the largest weights of each topic, best first, without zero weights.

    Ties are broken by the order of the columns.
    """
    if top < 1:
        raise DataError(f"top={top}: must be at least 1", "10 and 25 are usual")
    order = np.argsort(-weights, axis=1, kind="stable")[:, :top]
    return [words[row[words] > 0.0] for words, row in zip(order, weights, strict=True)]


def _weights(topics: Any) -> FloatArray:
    """Return topics as a dense array of weights, after checking them."""
    matrix = getattr(topics, "topics_", topics)
    weights = _read_matrix(matrix, "topics", "give a row for each topic and a column for each word")
    dense: FloatArray = weights.toarray() if sparse.issparse(weights) else weights
    empty = np.flatnonzero(~dense.any(axis=1))
    if len(empty):
        raise DataError(
            f"topic {empty[0]} is zero for every word",
            "leave such topics out: topics[topics.sum(axis=1) > 0]",
        )
    return dense


def _read_matrix(data: Any, name: str, hint: str) -> Any:
    """Return a non-empty matrix of finite numbers ≥ 0, sparse if the data are sparse."""
    try:
        matrix = data.astype(np.float64) if sparse.issparse(data) else np.asarray(data, np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise DataError(f"{name} is not a matrix of numbers, or is empty: {brief(data)}", hint)
    values: Any = matrix.data if sparse.issparse(matrix) else matrix
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise DataError(
            f"a number in {name} is negative, infinite or NaN", "weights must be 0 or more"
        )
    return matrix


def _check_width(matrix: Any, topics: FloatArray, name: str) -> None:
    if matrix.shape[1] != topics.shape[1]:
        raise DataError(
            f"{name} has {matrix.shape[1]} columns, and the topics have {topics.shape[1]} words",
            "count with the vocabulary of the topics, in the same order",
        )


# Metrics of rankings.


def average_precision(ranking: Iterable[Hashable], relevant: Iterable[Hashable]) -> float:
    """Average precision: the mean over relevant documents of the precision at their ranks.

    Σ_{r : document r is relevant} (relevant documents among the first r) / r, divided by the number
    of relevant documents (Buckley & Voorhees 2000). Relevant documents that are not in the ranking
    contribute 0.

    ``ranking``   documents, best first, by number or name
    ``relevant``  the relevant documents

    >>> average_precision(["a", "b", "c", "d"], {"a", "c"})  # (1/1 + 2/3) / 2
    0.833...
    """
    ranked, targets = list(ranking), set(relevant)
    if not targets:
        raise DataError(
            "no document is relevant, so no ranking is better than another",
            "leave out queries without relevant documents",
        )
    if len(set(ranked)) < len(ranked):
        twice = next(x for i, x in enumerate(ranked) if x in ranked[:i])
        raise DataError(f"the ranking has {brief(twice)} twice", "rank every document once")
    ranks = 1 + np.flatnonzero([document in targets for document in ranked])
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(targets))


def mean_average_precision(
    rankings: Iterable[Iterable[Hashable]], relevant: Iterable[Iterable[Hashable]]
) -> float:
    """Mean average precision (MAP): the mean of `average_precision` over queries.

    ``rankings``, ``relevant``  the ranking and the relevant documents of each query

    >>> mean_average_precision([[0, 1, 2], [2, 1, 0]], [{0}, {1}])  # (1 + 1/2) / 2
    0.75
    """
    ranked, targets = list(rankings), list(relevant)
    if len(ranked) != len(targets) or not ranked:
        raise DataError(
            f"{len(ranked)} rankings for {len(targets)} sets of relevant documents",
            "give one of each for every query, and at least one query",
        )
    pairs = zip(ranked, targets, strict=True)
    return float(np.mean([average_precision(*query) for query in pairs]))
