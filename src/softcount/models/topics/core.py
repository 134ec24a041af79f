"""The E-step of a topic model: every word of a document has a hidden topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.corpus.bags import Bags
from softcount.errors import StartError
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels import topics as kernels
from softcount.kernels.lanes import WIDTH
from softcount.kernels.pool import over_rows
from softcount.models.possible import demand_possible
from softcount.models.settings import shaped
from softcount.models.topics.documents import Shard
from softcount.models.topics.rows import TINY, RowPrior, Rows
from softcount.types import Array, How, Params, Stats

WIDE = 48
"""From so many topics on, a pass by documents and one by words are faster than both in one."""
IMPOSSIBLE = "has a word of probability zero in every topic"
REMEDY = "smooth the topics, or leave the word out"


class TopicCore:
    """p(w | d) = Σ_k θ_dk φ_kw (Hofmann 1999); with Dirichlet priors Blei, Ng & Jordan 2003.

    The table "topics" is φ; the documents' rows θ are local: they stay with their shard.

    ``inner``  how often a shard's rows are updated before its words are counted
    """

    threads_inside = True

    def __init__(self, name: str, topics: Categorical, rows: RowPrior, inner: int = 1) -> None:
        self.name, self.rows, self.inner = name, rows, inner
        self.families: dict[str, Family] = {"topics": topics}
        self.n_topics: int = topics.shape[0]

    def expect(self, params: Params, shard: Shard, how: How, local: Rows | None = None) -> Stats:
        """Counts and log-likelihood of a shard, and its documents' new rows."""
        rows = local or self.rows.begin(shard.bags.lengths, shard.allowed)
        phi = wide(np.asarray(params["topics"]).T)
        rng = np.random.default_rng((how.stream, *shard.numbers[:1].tolist()))
        if not how.score_only:
            for _ in range(self.inner - 1):
                found = self._look(phi, rows, shard, how, words=False)
                rows = self.rows.update(found.of_documents, rows, rng)
        found = self._look(phi, rows, shard, how, words=not how.score_only)
        demand_possible(shard.numbers, found.logs, IMPOSSIBLE, REMEDY)
        log_likelihood = float(found.logs.sum())
        score = float(found.attained.sum()) + self.rows.objective(rows)
        n, tokens = float(len(shard)), float(shard.bags.lengths.sum())
        if how.score_only:
            return Stats({}, log_likelihood, score, n, tokens)
        counts = {"topics": np.ascontiguousarray(found.of_words.T)}
        moved = self.rows.update(found.of_documents, rows, rng)
        return Stats(counts, log_likelihood, score, n, tokens, local=moved)

    def _look(self, phi: Array, rows: Rows, shard: Shard, how: How, words: bool) -> Found:
        """What the rows θ and the topics φ make of the documents' words."""
        theta = wide(rows.theta)
        if how.fill == "soft" and how.temper != 1.0:
            logs = self._soft(phi, theta, shard, how, False).logs
            found = self._soft(phi**how.temper, theta**how.temper, shard, how, words)
            return replace(found, logs=logs, attained=found.logs / how.temper)
        found = self._soft(phi, theta, shard, how, words and how.fill == "soft")
        if how.fill == "soft" or how.score_only:
            return found
        return self._assigned(phi, theta, shard, how, found)

    def _soft(self, phi: Array, theta: Array, shard: Shard, how: How, words: bool) -> Found:
        n, K = len(shard), self.n_topics
        bags, logs = shard.bags, np.zeros(len(shard))
        ratios, of_documents = np.empty(len(bags.by_document.value)), np.empty_like(theta)
        of_words = np.empty_like(phi) if words else phi[:0]
        if words and how.threads == 1 and K < WIDE:
            kernels.both(*bags.by_document, theta, phi, ratios, of_documents, of_words, logs)
        else:
            parts = (*bags.by_document, theta, phi, ratios, of_documents, logs)
            over_rows(kernels.by_document, bags.by_document.indptr, how.threads, *parts)
        if words and not (how.threads == 1 and K < WIDE):
            by_word = bags.by_word
            sums = (*by_word[:2], shard.places, theta, phi, ratios, of_words)
            over_rows(kernels.by_word, by_word.indptr, how.threads, *sums)
        return Found(of_documents[:n, :K], of_words[:, :K], logs, logs)

    def _assigned(self, phi: Array, theta: Array, shard: Shard, how: How, soft: Found) -> Found:
        """Words given to one topic each, or to drawn ones."""
        of_documents, of_words = np.empty_like(theta), np.empty_like(phi)
        best = np.empty(len(shard))
        samples = 0 if how.fill == "hard" else how.samples
        kernels.assign(
            *shard.bags.by_document,
            theta,
            phi,
            self.n_topics,
            how.temper,
            samples,
            np.uint64(how.stream),
            shard.numbers,
            of_documents,
            of_words,
            best,
        )
        attained = best if how.fill == "hard" else soft.logs
        K = self.n_topics
        return Found(of_documents[:, :K], of_words[:, :K], soft.logs, attained)

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every word has one topic."""
        return {"topics": float(shard.bags.lengths.sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as an array of the table's shape."""
        if set(given) != {"topics"}:
            raise StartError(f"start values are given for {sorted(given)}", 'give {"topics": …}')
        return {"topics": shaped("topics", given["topics"], self.families["topics"].zeros().shape)}


@dataclass(frozen=True, eq=False)
class Found:
    """Expected counts of topics in documents and in words, log p(document), what was attained."""

    of_documents: Array
    of_words: Array
    logs: Array
    attained: Array


def wide(table: Array) -> Array:
    """A copy whose rows are filled up with zeros to whole vectors, without tiny numbers."""
    n, K = table.shape
    filled = np.zeros((n, -(-K // WIDTH) * WIDTH))
    filled[:, :K] = table
    filled[filled < TINY] = 0.0
    return filled


def look(bags: Bags, theta: Array, phi: Array) -> tuple[Array, Array]:
    """Expected counts of topics in documents, and log p(document); tables as `wide` makes them."""
    of_documents, logs = np.empty_like(theta), np.empty(len(bags))
    ratios = np.empty(len(bags.by_document.value))
    kernels.by_document(0, len(bags), *bags.by_document, theta, phi, ratios, of_documents, logs)
    return of_documents, logs


def fold_in(
    topics: Array, bags: Bags, prior: RowPrior, most: int = 100, tol: float = 1e-4
) -> Array:
    """p(topic | document), learned for these documents alone: the topics stay as they are.

    Words that no topic has are passed over. Ends when no share changes by more than ``tol``.
    """
    rule = replace(prior, word="mean_field" if prior.word != "maximise" else "maximise")
    phi, K = wide(topics.T), len(topics)
    rows = rule.begin(bags.lengths, None)
    rng = np.random.default_rng(0)  # not drawn from
    for _ in range(most):
        of_documents, _ = look(bags, wide(rows.theta), phi)
        moved = rule.update(of_documents[:, :K], rows, rng)
        change = float(np.abs(moved.theta - rows.theta).max(initial=0.0))
        rows = moved
        if change <= tol:
            break
    shares: Array = rows.theta / rows.theta.sum(axis=1, keepdims=True)
    return shares
