"""The E-step of a topic model: every word of a document has a hidden topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from softcount.corpus.bags import Bags
from softcount.errors import DataError, LearnerError, StartError
from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.families.columns import ColumnCounts, Columns, LazyColumns, columns_of
from softcount.kernels.lanes import WIDTH
from softcount.kernels.pool import over_rows
from softcount.models.possible import demand_possible
from softcount.models.settings import shaped
from softcount.topics import kernels
from softcount.topics.data import (
    LOWEST,
    TINY,
    TINY_SINGLE,
    Corpus,
    Documents,
    RowPrior,
    Rows,
    Shard,
    foreseen,
)
from softcount.topics.gibbs import CollapsedTopics
from softcount.topics.kernels import fold
from softcount.types import NOTHING_UNCOUNTED, Array, How, Params, Stats, Uncounted

INNER = 5
"""How often a mini-batch's documents are looked at before its words are counted."""

WIDE = 48
"""From so many topics on, a pass by documents and one by words are faster than both in one."""
RARE = {"float64": 1e-50, "float32": 1e-6}
"""Words that are less probable in every topic are lifted."""

IMPOSSIBLE = "has a word of probability zero in every topic"
REMEDY = "smooth the topics, or leave the word out"
TOPICS, DOCUMENTS = "topics", "documents"


class TopicCore:
    """p(w | d) = Σ_k θ_dk φ_kw (Hofmann 1999); with Dirichlet priors Blei, Ng & Jordan 2003.

    The table "topics" is φ; the documents' rows θ are local: they stay with their shard. Where a
    shard has none yet, they begin as "documents" among the parameters, if there is such a table,
    and else without preferring any topic.

    ``inner``  how often a mini-batch's rows are updated before its words are counted
    ``dtype``  the numbers that the E-step works with; sums over documents are always of 64 bits
    """

    threads_inside = True
    usual_dials: ClassVar[Mapping[str, float]] = {"tol": 5e-5}
    """What EM ends by: from there on held-out words are foreseen no better."""
    local_name = DOCUMENTS

    def __init__(
        self,
        name: str,
        topics: Columns,
        rows: RowPrior,
        inner: int = INNER,
        dtype: str = "float64",
    ) -> None:
        self.name, self.rows, self.inner, self.dtype = name, rows, inner, dtype
        self.topics = topics
        self.families: dict[str, Family] = {"topics": topics}
        self.n_topics: int = topics.shape[0]

    def expect(self, params: Params, shard: Shard, how: How, local: Rows | None = None) -> Stats:
        """Counts and log-likelihood of a shard, and its documents' new rows."""
        prior = self._row_prior(how)
        rows = local or self._begun(params, shard, prior)
        phi, lift = self._phi(params["topics"], shard)
        rng = np.random.default_rng((how.stream, *shard.numbers[:1].tolist()))
        if how.mini_batch and not how.score_only:
            rows = self._made_the_most(phi, rows, shard, how, rng)
        found = self._look(phi, rows, shard, how, words=not how.score_only)
        demand_possible(shard.numbers, found.logs, IMPOSSIBLE, REMEDY)
        lift += rows.lift
        log_likelihood = float(found.logs.sum()) - lift
        of_rows = prior.objective(rows)
        score = float(found.attained.sum()) - lift + of_rows
        n, tokens = float(len(shard)), float(shard.bags.lengths.sum())
        if how.score_only:
            return Stats({}, log_likelihood, score, n, tokens)
        counts = {"topics": self._counted(params["topics"], shard, found.of_words)}
        moved = prior.update(found.of_documents, rows, rng)
        beside = NOTHING_UNCOUNTED
        if how.theory:
            ahead = moved if how.against is None else self._begun(how.against, shard, prior)
            beside = Uncounted(
                _expected_log(found.of_documents, rows),
                _expected_log(found.of_documents, ahead),
                of_rows,
            )
        return Stats(counts, log_likelihood, score, n, tokens, moved, beside)

    def _made_the_most(
        self, phi: Array, rows: Rows, shard: Shard, how: How, rng: np.random.Generator
    ) -> Rows:
        """Rows of a mini-batch, which are moved several times before its words are counted."""
        prior = self._row_prior(how)
        for _ in range(self.inner - 1):
            found = self._look(phi, rows, shard, how, words=False)
            rows = prior.update(found.of_documents, rows, rng)
        return rows

    def _begun(self, params: Params, shard: Shard, prior: RowPrior) -> Rows:
        """The rows of documents that were not looked at yet."""
        given = params.get(DOCUMENTS)
        if given is None:
            return prior.begin(shard.bags.lengths, shard.allowed)
        if shard.numbers.max(initial=-1) >= len(given):
            raise DataError(
                f"there are topics of {len(given)} documents, and no row for document "
                f"{shard.numbers.max()}",
                "give the documents that the rows belong to",
            )
        return prior.given(np.asarray(given)[shard.numbers], shard.bags.lengths, shard.allowed)

    def rows_used(self, params: Params, shard: Shard, how: How, local: Rows | None = None) -> Stats:
        """The rows of a shard's documents as its E-step takes them (`softcount.job.HasLocal`).

        Under mean field these are exp E[log θ].
        """
        return _of_documents(shard, self._rows(params, shard, how, local).unlifted)

    def rows_reported(
        self, params: Params, shard: Shard, how: How, local: Rows | None = None
    ) -> Stats:
        """The rows of a shard's documents as p(topic | document): under mean field, E[θ]."""
        rows = self._rows(params, shard, how, local)
        return _of_documents(shard, self._row_prior(how).proper(rows))

    def _rows(self, params: Params, shard: Shard, how: How, local: Rows | None) -> Rows:
        """What an E-step counts with."""
        rows = local or self._begun(params, shard, self._row_prior(how))
        if not how.mini_batch:
            return rows
        phi, _ = self._phi(params[TOPICS], shard)
        return self._made_the_most(phi, rows, shard, how, np.random.default_rng(0))

    def estimate(self, corpus: Corpus) -> Estimate:
        """Tables, rows of documents, and both turned; of an archive a shard is read at a time."""
        n, K, entries = len(corpus), self.n_topics, n_entries(self.topics)
        data = held(corpus) if isinstance(corpus, Documents) else 0
        nnz = data / 20.0 if data else corpus.tokens
        return needing(
            n,
            corpus.tokens,
            6.0 * nnz * K + 8.0 * entries,
            data=data,
            tables=(COPIES + 1) * NUMBER * entries,
            rows=4.0 * NUMBER * n * K,
            steps=20.0 * nnz,
        )

    def foresee(self, params: Params, shard: Shard, how: How, local: Rows | None = None) -> Stats:
        """Log-likelihood of the shard's held-out words, with its documents' rows as they are."""
        if shard.held is None:
            raise LearnerError(
                "no words of these documents are held out",
                "only documents in memory can be parted: use EM() for an archive",
            )
        rows = local or self.rows.begin(shard.bags.lengths, shard.allowed)
        phi = wide(np.asarray(params["topics"]).T)
        return foreseen(shard.held, wide(rows.theta), phi, how.threads)

    def _row_prior(self, how: How) -> RowPrior:
        """How rows are made, as the learner has it: scouts may be of another kind than it."""
        if "maximise" in (how.update, self.rows.word):
            return self.rows  # its prior has a mode, or has none
        return replace(self.rows, word=how.update or self.rows.word)

    def _wide(self, table: Array) -> Array:
        return wide(table, self.dtype)

    def _phi(self, table: Any, shard: Shard) -> tuple[Array, float]:
        """p(word | topic) of the shard's words, word by word, and by how much logs are too large.

        A word that is rare in every topic is lifted until it is certain in one, lest it be lost
        with what is tiny: factors that all topics have do not matter to posteriors.
        """
        words = np.asarray(table).T if shard.few is None else columns_of(table, shard.few)
        peaks = words.max(axis=1)
        rare = np.flatnonzero((peaks < RARE[self.dtype]) & (peaks > 0.0))
        if not len(rare):
            return self._wide(words), 0.0
        lifted = np.array(words)
        lifted[rare] /= peaks[rare, None]
        return self._wide(lifted), -float(np.log(peaks[rare]) @ shard.often[rare])

    def _counted(self, table: Any, shard: Shard, of_words: Array) -> Any:
        """Counts of the shard's words, in the form that goes with the table."""
        counts = of_words.astype(np.float64, copy=False)
        if shard.few is None:
            return np.ascontiguousarray(counts.T)
        if isinstance(table, LazyColumns):
            return ColumnCounts(shard.few, counts)
        every = self.topics.zeros()
        every[:, shard.few] = counts.T
        return every

    def _look(self, phi: Array, rows: Rows, shard: Shard, how: How, words: bool) -> Found:
        """What the rows θ and the topics φ make of the documents' words."""
        theta = self._wide(rows.theta)
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
        bags, logs = shard.own, np.zeros(len(shard))
        ratios = np.empty(len(bags.by_document.value), theta.dtype)
        of_documents = np.empty_like(theta)
        of_words = np.empty_like(phi) if words else phi[:0]
        if words and how.threads == 1 and K < WIDE:
            kernels.both(*bags.by_document, theta, phi, ratios, of_documents, of_words, logs)
        else:
            parts = (*bags.by_document, theta, phi, ratios, of_documents, logs)
            over_rows(kernels.by_document, bags.by_document.indptr, how.threads, *parts)
        if words and not (how.threads == 1 and K < WIDE):
            sums = (*shard.by_word, theta, phi, ratios, of_words)
            over_rows(kernels.by_word, shard.by_word[0], how.threads, *sums)
        return Found(of_documents[:n, :K], of_words[:, :K], logs, logs)

    def _assigned(self, phi: Array, theta: Array, shard: Shard, how: How, soft: Found) -> Found:
        """Words given to one topic each, or to drawn ones."""
        of_documents, of_words = np.empty_like(theta), np.empty_like(phi)
        best = np.empty(len(shard))
        samples = 0 if how.fill == "hard" else how.samples
        kernels.assign(
            *shard.own.by_document,
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

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> CollapsedTopics:
        """The sampler for all documents; words begin in topics as likely as they have them."""
        if self.topics.held is not None:
            raise LearnerError("a collapsed sampler cannot hold topics frozen", "use Gibbs()")
        every = [shards[i] for i in range(len(shards))]
        bags = Bags.of(sparse.vstack([shard.bags.matrix for shard in every]))
        prior = np.broadcast_to(self.topics.alpha, self.n_topics * bags.n_words)
        beta = float(prior.min())
        seeds = sparse.csr_matrix((prior - beta).reshape(self.n_topics, bags.n_words))
        return CollapsedTopics(
            *bags.by_document,
            bags.n_words,
            alpha=self.rows.alpha,
            beta=beta,
            likely=np.asarray(params["topics"]),
            seed=stream,
            known=_known(every, self.n_topics),
            seeds=np.rint(seeds),
        )

    def fold(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """A shard's p(topic | document) with the topics held fixed, as "rows"; pure."""
        rows = fold_in(
            np.asarray(params["topics"]),
            shard.bags,
            self.rows,
            allowed=shard.allowed,
            threads=how.threads,
            temper=how.temper,
        )
        found = {"rows": rows, "numbers": shard.numbers, "lengths": shard.bags.lengths}
        return Stats(found, items=float(len(shard)))

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every word has one topic."""
        return {"topics": float(shard.bags.lengths.sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as an array of the table's shape; with rows of documents, if they came."""
        if set(given) - {DOCUMENTS} != {TOPICS}:
            raise StartError(f"start values are given for {sorted(given)}", 'give {"topics": …}')
        params = {TOPICS: shaped(TOPICS, given[TOPICS], self.topics.zeros().shape)}
        if DOCUMENTS in given:
            rows = np.asarray(given[DOCUMENTS], dtype=float)
            params[DOCUMENTS] = shaped(DOCUMENTS, rows, (len(rows), self.n_topics))
        return params


def _of_documents(shard: Shard, rows: Array) -> Stats:
    table = np.ascontiguousarray(rows, dtype=np.float64)
    return Stats({"rows": table, "numbers": shard.numbers}, items=float(len(shard)))


def _expected_log(of_documents: Array, rows: Rows) -> float:
    """Σ n_dk log θ_dk."""
    return float(xlogy(of_documents.astype(np.float64), rows.theta).sum()) - rows.lift


def _known(shards: Sequence[Shard], n_topics: int) -> Any:
    """Which topics documents may have, where something is known of any."""
    if all(shard.allowed is None for shard in shards):
        return None
    rows = [
        sparse.csr_matrix((len(shard), n_topics))
        if shard.allowed is None
        else sparse.csr_matrix(shard.allowed * ~shard.allowed.all(axis=1, keepdims=True))
        for shard in shards
    ]
    return sparse.vstack(rows)


@dataclass(frozen=True, eq=False)
class Found:
    """Expected counts of topics in documents and in words, log p(document), what was attained."""

    of_documents: Array
    of_words: Array
    logs: Array
    attained: Array


def wide(table: Array, dtype: str = "float64") -> Array:
    """A copy whose rows are filled up with zeros to whole vectors, without tiny numbers."""
    n, K = table.shape
    filled = np.zeros((n, -(-K // WIDTH) * WIDTH), dtype)
    filled[:, :K] = table
    tiny = TINY if dtype == "float64" else TINY_SINGLE
    if table.min(initial=1.0) < tiny:
        filled[filled < tiny] = 0.0
    return filled


def look(bags: Bags, theta: Array, phi: Array) -> tuple[Array, Array]:
    """Expected counts of topics in documents, and log p(document); tables as `wide` makes them."""
    of_documents, logs = np.empty_like(theta), np.empty(len(bags))
    ratios = np.empty(len(bags.by_document.value))
    kernels.by_document(0, len(bags), *bags.by_document, theta, phi, ratios, of_documents, logs)
    return of_documents, logs


def fold_in(
    topics: Array,
    bags: Bags,
    prior: RowPrior,
    most: int = 100,
    tol: float = 1e-4,
    allowed: Array | None = None,
    threads: int = 1,
    temper: float = 1.0,
) -> Array:
    """p(topic | document), learned for these documents alone: the topics stay as they are.

    The mode; for variational Bayes the mean of the posterior; for samplers the mode as if the prior
    were 1 + α, θ_dk ∝ n_dk + α_k. Words that no topic has are passed over. A document is done when
    none of its shares changes by more than ``tol``. ``temper`` is a power of the posteriors, as in
    learning.
    """
    rule = RowPrior(prior.alpha + 1.0) if prior.word == "draw" else prior
    K, averages = len(topics), rule.word == "mean_field"
    theta = wide(rule.begin(bags.lengths, allowed).theta)
    mass, powers, added = np.zeros_like(theta), theta.copy(), np.zeros(theta.shape[1])
    added[:K] = rule.alpha - (not averages)
    phi = wide(topics.T) ** temper if temper != 1.0 else wide(topics.T)
    how = (phi, added, averages, LOWEST, temper, TINY, most, float(tol), theta, powers, mass)
    over_rows(fold, bags.by_document.indptr, threads, *bags.by_document, *how)
    found = (mass if averages else theta)[:, :K]
    shares: Array = found / found.sum(axis=1, keepdims=True)
    return shares
