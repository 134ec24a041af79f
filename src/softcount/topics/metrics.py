"""Scores of topics (coherence, diversity, document completion) and of rankings.

How good topics are: do their words belong together, do they differ, do they predict text?

Topics are a matrix with a row for each topic and a column for each word, weights ≥ 0 of any scale
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
"""Documents folded in together: few enough that their rows stay at hand."""


@dataclass(frozen=True)
class Coherence:
    """How well the top words of topics belong together: of each topic, and their mean."""

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
    """How well topics predict one half of documents from the other (document completion).

    ``perplexity``  of the tokens predicted, those apart that are impossible
    ``documents``   how many documents have such tokens
    ``tokens``      how many these are
    ``impossible``  tokens to be predicted whose word no topic has; they are in no other figure
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

    With p_i the share of documents of ``reference`` that have word i, and p_ij of those that have
    both: npmi_ij = log(p_ij / (p_i p_j)) / −log p_ij, the mean over the pairs of a topic's ``top``
    words. It is −1 for words that never meet, 0 for independent ones, and 1 for words that are only
    ever together.

    ``reference``  counts of words in documents, columns as in the topics

    >>> counts = [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 0, 5]]
    >>> print(npmi([[0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]], counts))
    coherence 0.7500 (2 topics, 0.5000 to 1.0000)
    """
    tables, n = _count_cooccurrences(topics, reference, top)
    means = []
    for _, together in tables:
        frequencies = together / n
        i, j = np.triu_indices(len(together), 1)
        own, both = np.diag(frequencies), frequencies[i, j]
        figures = np.where(both == 0.0, -1.0, 1.0)  # 1 stays where both are in every document
        some = (both > 0.0) & (both < 1.0)
        # log(p_ij / p_i p_j) / −log p_ij, in a form that rounding cannot push beyond −1 … 1
        figures[some] = np.log(own[i[some]]) + np.log(own[j[some]])
        figures[some] = figures[some] / np.log(both[some]) - 1.0
        means.append(float(figures.mean()))
    return Coherence(tuple(means))


def umass(topics: Any, reference: Any, top: int = 10) -> Coherence:
    """Σ_{j=2}^{top} Σ_{i<j} log((D_ij + 1) / D_i) over a topic's words, best first.

    D_i is the number of documents of ``reference`` that have word i, D_ij of those that have both
    (Mimno et al. 2011). The reference is what the topics were learned from, so it has every word.
    The figure is a sum over pairs, as in the paper: compare it only for the same ``top``. It is
    negative as a rule, and the nearer to 0 the better.

    >>> counts = [[2, 1, 0, 0], [1, 3, 0, 0], [0, 0, 1, 1], [0, 0, 0, 5]]
    >>> umass([[0.6, 0.4, 0, 0], [0, 0, 0.2, 0.8]], counts).topics  # log 3/2, log 2/2
    (0.405..., 0.0)
    """
    tables, _ = _count_cooccurrences(topics, reference, top)
    figures = []
    for k, (words, together) in enumerate(tables):
        frequencies = np.diag(together)
        if not frequencies.all():
            raise DataError(
                f"word {words[np.argmin(frequencies)]}, a top word of topic {k}, is in no document",
                "take the documents that the topics were learned from, or ask npmi",
            )
        i, j = np.triu_indices(len(words), 1)
        figures.append(float(np.log((together[i, j] + 1) / frequencies[i]).sum()))
    return Coherence(tuple(figures))


def diversity(topics: Any, top: int = 25) -> float:
    """The share of different words among the top words of all topics (Dieng et al. 2020).

    1 if no two topics share one of them, 1/K if all K topics have the same.

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

    1. Rows of the topics are divided by their sums: φ_kw. Nothing is added to them.
    2. `document_completion` deals out each document's tokens: a half to look at, a half to predict
       (``share`` of the tokens, on average).
    3. The topics of a document are found from the first half n_dw, by EM from equal proportions
       with the topics held fixed, ``max_iter`` times
       θ_dk ∝ smoothing + Σ_w n_dw θ_dk φ_kw / Σ_j θ_dj φ_jw,
       which climbs to the mode under the prior Dir(1 + smoothing). Words that no topic has are
       passed over; a document of which nothing can be seen keeps equal proportions.
    4. The figure is exp(−Σ log Σ_k θ_dk φ_kw / tokens) over the tokens of the second half. Those
       whose word no topic has (in none above 1e-100) are left out and counted in ``impossible``:
       two models can be compared only if both have none of them, or the same.

    ``matrix`` holds whole counts of words in documents, columns as in the topics.

    >>> topics = [[0.5, 0.5, 0, 0], [0, 0, 0.9, 0.1]]
    >>> print(completion(topics, [[50, 50, 0, 0], [0, 0, 90, 10]]))
    perplexity 1.69 (101 tokens, 2 documents)
    """
    if not isinstance(smoothing, Real) or not 0.0 < smoothing < np.inf:
        raise DataError(
            f"smoothing is {brief(smoothing)}", "one number above 0; the protocol has 0.1"
        )
    if max_iter < 1:
        raise DataError(f"max_iter={max_iter}", "at least one; the protocol has 100")
    weights = _weights(topics)
    phi = weights / weights.max(axis=1, keepdims=True)  # so that no sum can overflow
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
            "give documents with words that the topics have, and at least a handful of tokens",
        )
    table, prior = pad_topics(phi.T), DocumentPrior(np.full(len(phi), 1.0 + smoothing))
    log_likelihood = 0.0
    for first in range(0, len(seen), BLOCK):
        block = np.arange(first, min(first + BLOCK, len(seen)))
        theta = pad_topics(fold_in(phi, seen.take(block), prior, max_iter, tol=0.0))
        found = expect_topics(unseen.take(block).by_document, theta, table)
        log_likelihood += float(found.logs.sum())
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
    """The figure of `completion`, but infinite if there are tokens whose word no topic has.

    >>> round(completion_perplexity([[1, 1, 1, 1]], [[3, 2, 0, 1], [0, 0, 9, 2]]), 6)  # a fair die
    4.0
    """
    found = completion(topics, matrix, smoothing, share, max_iter, random_state)
    return np.inf if found.impossible else found.perplexity


def _count_cooccurrences(
    topics: Any, reference: Any, top: int
) -> tuple[list[tuple[IntArray, IntArray]], int]:
    """The top words of each topic, and D_ij of these; and how many documents there are.

    D_ij: how many documents have both words; on the diagonal, one.
    """
    weights = _weights(topics)
    lists = _top_words(weights, top)
    for k, words in enumerate(lists):
        if len(words) < 2:
            raise DataError(
                f"topic {k} has {len(words)} top word, and coherence is about pairs",
                "ask for two top words at least, and leave out topics that have fewer",
            )
    counts = _table(reference, "reference", "give counts: a row for each document")
    _check_width(counts, weights, "reference")
    present = sparse.csc_matrix(counts != 0).astype(np.int64)
    blocks = ((words, present[:, words]) for words in lists)
    return [(words, (block.T @ block).toarray()) for words, block in blocks], present.shape[0]


def _top_words(weights: FloatArray, top: int) -> list[IntArray]:
    """The heaviest words of each topic, best first, of equals the first; none of weight zero."""
    if top < 1:
        raise DataError(f"the top {top} words are none", "ask for ten, or for 25")
    order = np.argsort(-weights, axis=1, kind="stable")[:, :top]
    return [words[row[words] > 0.0] for words, row in zip(order, weights, strict=True)]


def _weights(topics: Any) -> FloatArray:
    """Topics as an array of weights, checked."""
    given = getattr(topics, "topics_", topics)
    weights = _table(given, "topics", "give a row for each topic and a column for each word")
    dense: FloatArray = weights.toarray() if sparse.issparse(weights) else weights
    dead = np.flatnonzero(~dense.any(axis=1))
    if len(dead):
        raise DataError(
            f"topic {dead[0]} is zero for every word",
            "leave such topics out: topics[topics.sum(axis=1) > 0]",
        )
    return dense


def _table(given: Any, what: str, hint: str) -> Any:
    """A matrix of finite numbers ≥ 0 that is not empty, sparse or dense as it was given."""
    try:
        table = (
            given.astype(np.float64) if sparse.issparse(given) else np.asarray(given, np.float64)
        )
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or 0 in table.shape:
        raise DataError(f"{what} is no matrix with numbers in it: {brief(given)}", hint)
    values: Any = table.data if sparse.issparse(table) else table
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise DataError(
            f"a number in {what} is negative, infinite or NaN", "weights are at least 0"
        )
    return table


def _check_width(matrix: Any, topics: FloatArray, what: str) -> None:
    if matrix.shape[1] != topics.shape[1]:
        raise DataError(
            f"{what} has {matrix.shape[1]} columns, and the topics have {topics.shape[1]} words",
            "make the counts with the vocabulary of the topics, in the same order",
        )


# How well a ranking puts relevant documents first.


def average_precision(ranking: Iterable[Hashable], relevant: Iterable[Hashable]) -> float:
    """The mean, over the relevant documents, of the precision at the rank of each.

    Σ_{r : document r is relevant} (relevant documents among the first r) / r, divided by the number
    of relevant documents (Buckley & Voorhees 2000). Those that the ranking leaves out count 0.

    ``ranking``   documents, best first, by number or name
    ``relevant``  those that should come first

    >>> average_precision(["a", "b", "c", "d"], {"a", "c"})  # (1/1 + 2/3) / 2
    0.833...
    """
    ranked, wanted = list(ranking), set(relevant)
    if not wanted:
        raise DataError(
            "no document is relevant, so no ranking is better than another",
            "leave out queries without relevant documents",
        )
    if len(set(ranked)) < len(ranked):
        twice = next(x for i, x in enumerate(ranked) if x in ranked[:i])
        raise DataError(f"the ranking has {brief(twice)} twice", "rank every document once")
    ranks = 1 + np.flatnonzero([document in wanted for document in ranked])
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(wanted))


def mean_average_precision(
    rankings: Iterable[Iterable[Hashable]], relevant: Iterable[Iterable[Hashable]]
) -> float:
    """The mean of `average_precision` over queries: a ranking and the relevant documents of each.

    >>> mean_average_precision([[0, 1, 2], [2, 1, 0]], [{0}, {1}])  # (1 + 1/2) / 2
    0.75
    """
    ranked, wanted = list(rankings), list(relevant)
    if len(ranked) != len(wanted) or not ranked:
        raise DataError(
            f"{len(ranked)} rankings for {len(wanted)} sets of relevant documents",
            "give one of each for every query, and at least one query",
        )
    return float(np.mean([average_precision(*query) for query in zip(ranked, wanted, strict=True)]))
