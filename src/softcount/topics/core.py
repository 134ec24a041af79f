"""Topic models as the loop sees them: the documents' topics, and the E-step.

p(w | d) = Σ_k θ_dk φ_kw (Hofmann 1999): every word of a document has a hidden topic. The topics φ
are an ordinary table of the model; the documents' topics θ are rows that stay with their shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, xlogy

from softcount.core.errors import DataError, LearnerError, StartError
from softcount.core.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.core.model import Model, demand_possible
from softcount.core.parameters import shaped
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    BoolArray,
    EStep,
    FloatArray,
    Params,
    Stats,
    Uncounted,
    Update,
)
from softcount.families.base import Family
from softcount.families.categorical import SMALLEST, log_gammas
from softcount.families.columns import ColumnCounts, Columns, LazyColumns, columns_of
from softcount.kernels.threads import over_rows
from softcount.kernels.vectors import WIDTH
from softcount.learners.named import EM
from softcount.text.bags import Bags, Compressed
from softcount.topics import kernels
from softcount.topics.data import TopicDocuments, TopicShard
from softcount.topics.gibbs import CollapsedTopics

TINY = 1e-100
"""Probabilities below this are zero: the likelihood loses nothing, and tiny numbers are slow."""

TINY_SINGLE = 1e-15
"""The same for numbers of 32 bits: a product of two must not be tiny either."""

LOWEST = -20.0
"""Rows of posteriors whose largest log is below this are lifted to it: a small prior leaves next to
nothing of short documents. Posteriors of topics do not change by a factor that all have."""

INNER = 5
"""How often a mini-batch's documents are looked at before its words are counted."""

WIDE = 48
"""With more topics, a pass by documents and one by words are faster than both in one."""

RARE = {"float64": 1e-50, "float32": 1e-6}
"""Words that are less probable in every topic are lifted."""

IMPOSSIBLE = "has a word of probability zero in every topic"
REMEDY = "smooth the topics, or leave the word out"
DOCUMENTS = "documents"
"""The name of the documents' rows, which stay with their shard, among parameters."""


@dataclass(frozen=True, eq=False)
class TopicProportions:
    """θ, the topics of a shard's documents.

    ``theta``    (documents, topics): as the E-step uses them
    ``counts``   (documents, topics): what they were made from, where the objective needs it (mean
                 field), else None
    ``allowed``  (documents, topics): False where a document is known not to have a topic; None: all
                 may have all
    ``lift``     how much too large log p(words) is, because rows were lifted to `LOWEST`
    ``lifts``    (documents, 1): how much too large each row's logs are; None: none was lifted
    """

    theta: FloatArray
    counts: FloatArray | None = None
    allowed: BoolArray | None = None
    lift: float = 0.0
    lifts: FloatArray | None = None

    @property
    def unlifted(self) -> FloatArray:
        """The rows as they are."""
        return self.theta if self.lifts is None else self.theta * np.exp(-self.lifts)


@dataclass(frozen=True, eq=False)
class DocumentPrior:
    """How the topics of documents are made from counts: the prior Dir(α), and the learner's update.

    A family whose rows belong to the documents and live with their shard. What a learner does to
    tables it does to these rows, too:

        maximise    θ_dk ∝ n_dk + α_k − 1
        mean field  θ_dk = exp(ψ(α_k + n_dk) − ψ(Σ_j α_j + n_dj))   (Blei, Ng & Jordan 2003, eq. 6)
        draw        θ_d ~ Dir(α + n_d)

    ``alpha``   α, (topics,)
    ``update``  which of these
    """

    alpha: FloatArray
    update: Update = "maximise"

    def __post_init__(self) -> None:
        if not ((self.alpha > 0.0) & np.isfinite(self.alpha)).all():
            raise LearnerError(
                "the Dirichlet prior of documents must be positive and finite", "0.1 is usual"
            )
        if self.update == "maximise" and (self.alpha < 1.0).any():
            raise LearnerError(
                "a Dirichlet prior below 1 has no mode, so there is nothing to maximise",
                "use VariationalBayes or a sampler, or a prior of at least 1",
            )

    def begin(self, lengths: FloatArray, allowed: BoolArray | None) -> TopicProportions:
        """Rows that prefer no topic among those allowed; ``lengths``: words in each document."""
        shape = (len(lengths), len(self.alpha))
        even = np.ones(shape) if allowed is None else allowed.astype(np.float64)
        even /= even.sum(axis=1, keepdims=True)
        if self.update == "maximise":
            return TopicProportions(even, None, allowed)
        return self._mean_field(even * lengths[:, None], allowed)

    def normalise(self, rows: TopicProportions) -> FloatArray:
        """Rows as p(topic | document): as they are, or under mean field their posterior mean."""
        mass = rows.unlifted
        if self.update == "mean_field" and rows.counts is not None:
            mass = _mask(rows.counts + self.alpha, rows.allowed)
        proportions: FloatArray = mass / mass.sum(axis=1, keepdims=True)
        return proportions

    def estimate(
        self, counts: FloatArray, old: TopicProportions, rng: np.random.Generator
    ) -> TopicProportions:
        """New rows from expected counts; those of empty documents prefer what the prior does."""
        if self.update == "mean_field":
            return self._mean_field(counts, old.allowed)
        allowed = old.allowed
        if self.update == "draw":  # normalised Gammas; as logarithms where some are too small
            shapes = counts + self.alpha
            drawn = rng.standard_gamma(shapes)
            mass = _mask(drawn, allowed)
            some = np.flatnonzero((_mask(drawn, allowed, 1.0) < SMALLEST).any(axis=1))
            if len(some):
                own = None if allowed is None else allowed[some]
                logs = _mask(log_gammas(drawn[some], shapes[some], rng), own, -np.inf)
                mass[some] = np.exp(logs - logs.max(axis=1, keepdims=True))
            theta = np.maximum(mass / mass.sum(axis=1, keepdims=True), SMALLEST)
            return TopicProportions(_mask(theta, allowed), None, allowed)
        mass = _mask(counts + (self.alpha - 1.0), allowed)
        totals = mass.sum(axis=1, keepdims=True)
        theta = np.divide(mass, totals, out=np.array(old.theta), where=totals > 0.0)
        theta[theta < TINY] = 0.0
        return TopicProportions(theta, None, allowed)

    def _mean_field(self, counts: FloatArray, allowed: BoolArray | None) -> TopicProportions:
        mass = counts + self.alpha
        totals = _mask(mass, allowed).sum(axis=1, keepdims=True)
        logs = digamma(mass) - digamma(totals)
        logs = _mask(logs, allowed, -np.inf)
        lift = np.maximum(LOWEST - logs.max(axis=1, keepdims=True), 0.0)
        theta = _mask(np.maximum(np.exp(logs + lift), TINY), allowed)
        lifted = _mask(counts, allowed).sum(axis=1) @ lift[:, 0]
        return TopicProportions(theta, counts, allowed, float(lifted), lift if lift.any() else None)

    def objective(self, rows: TopicProportions) -> float:
        """The rows' part of what the learner climbs: log p(θ), or −KL(q(θ) ‖ p(θ)).

        Of each row that is KL(Dir(α + n) ‖ Dir(α)), over the topics that it may have.
        """
        if self.update != "mean_field":
            if np.all(self.alpha == 1.0):
                return 0.0
            theta = _mask(rows.theta, rows.allowed, 1.0)
            return float(xlogy(self.alpha - 1.0, np.maximum(theta, SMALLEST)).sum())
        if rows.counts is None:  # rows that were given as such have no posterior to be priced
            return 0.0
        counts = _mask(rows.counts, rows.allowed)
        alpha = _mask(np.broadcast_to(self.alpha, counts.shape), rows.allowed)
        entries = gammaln(self.alpha) - gammaln(counts + self.alpha)
        entries += counts * digamma(counts + self.alpha)
        before, seen = alpha.sum(axis=1), counts.sum(axis=1)
        ends = gammaln(before + seen) - gammaln(before) - seen * digamma(before + seen)
        return -float((_mask(entries, rows.allowed).sum(axis=1) + ends).sum())


def _mask(values: FloatArray, allowed: BoolArray | None, otherwise: float = 0.0) -> FloatArray:
    """The values, ``otherwise`` where they are not allowed."""
    return values if allowed is None else np.where(allowed, values, otherwise)


class TopicCore(Model):
    """p(w | d) = Σ_k θ_dk φ_kw (Hofmann 1999); with Dirichlet priors Blei, Ng & Jordan 2003.

    The table "topics" is φ; the documents' rows θ are local: they stay with their shard. Where a
    shard has none yet, they begin as "documents" among the parameters, if there is such a table,
    and else without preferring any topic.

    ``inner``  how often a mini-batch's rows are updated before its words are counted
    ``dtype``  the numbers that the E-step works with; sums over documents are always of 64 bits
    """

    threads_inside = True
    default_learner = EM(tol=5e-5)
    """From there on held-out words are predicted no better."""
    local_name = DOCUMENTS
    holds_out = True

    def __init__(
        self,
        name: str,
        topics: Columns,
        document_prior: DocumentPrior,
        inner: int = INNER,
        dtype: str = "float64",
    ) -> None:
        self.name, self.inner, self.dtype = name, inner, dtype
        self.document_prior = document_prior
        self.topics = topics
        self.families: dict[str, Family] = {"topics": topics}
        self.n_topics: int = topics.shape[0]

    def expect(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """Counts and log-likelihood of a shard, and its documents' new rows."""
        prior = self._prior_for(how)
        phi, lift = self._phi(params["topics"], shard)
        rng = np.random.default_rng((how.stream, *shard.numbers[:1].tolist()))
        rows = local or self._first_rows(params, shard, prior)
        if how.mini_batch and not how.score_only:
            rows = self._settle_rows(phi, rows, shard, how, rng)
        found, attained = self._fill_in(phi, rows, shard, how, words=not how.score_only)
        demand_possible(shard.numbers, found.logs, IMPOSSIBLE, REMEDY)
        lift += rows.lift
        log_likelihood = float(found.logs.sum()) - lift
        of_rows = prior.objective(rows)
        score = float(attained.sum()) - lift + of_rows
        n, tokens = float(len(shard)), float(shard.bags.lengths.sum())
        if how.score_only:
            return Stats({}, log_likelihood, score, n, tokens)
        # counts of the shard's words, in the form that goes with the table
        of_words = found.of_words.astype(np.float64, copy=False)
        counts: Any
        if shard.own_words is None:
            counts = np.ascontiguousarray(of_words.T)
        elif isinstance(params["topics"], LazyColumns):
            counts = ColumnCounts(shard.own_words, of_words)
        else:
            counts = self.topics.zeros()
            counts[:, shard.own_words] = of_words.T
        moved = prior.estimate(found.of_documents, rows, rng)
        beside = NOTHING_UNCOUNTED
        if how.theory:
            ahead = moved if how.against is None else self._first_rows(how.against, shard, prior)
            now, then = (  # Σ n_dk log θ_dk
                float(xlogy(found.of_documents.astype(np.float64), one.theta).sum()) - one.lift
                for one in (rows, ahead)
            )
            beside = Uncounted(now, then, of_rows)
        return Stats({"topics": counts}, log_likelihood, score, n, tokens, moved, beside)

    def _settle_rows(
        self,
        phi: FloatArray,
        rows: TopicProportions,
        shard: TopicShard,
        how: EStep,
        rng: np.random.Generator,
    ) -> TopicProportions:
        """Rows of a mini-batch, which are moved several times before its words are counted."""
        prior = self._prior_for(how)
        for _ in range(self.inner - 1):
            found, _ = self._fill_in(phi, rows, shard, how, words=False)
            rows = prior.estimate(found.of_documents, rows, rng)
        return rows

    def _first_rows(
        self, params: Params, shard: TopicShard, prior: DocumentPrior
    ) -> TopicProportions:
        """The rows that documents begin with: those given, or rows that prefer no topic."""
        given = params.get(DOCUMENTS)
        if given is None:
            return prior.begin(shard.bags.lengths, shard.allowed)
        if shard.numbers.max(initial=-1) >= len(given):
            raise DataError(
                f"there are topics of {len(given)} documents, and no row for document "
                f"{shard.numbers.max()}",
                "give the documents that the rows belong to",
            )
        rows = _mask(np.asarray(given)[shard.numbers].astype(np.float64), shard.allowed)
        peaks = rows.max(axis=1, keepdims=True)  # those that are all but zero are lifted
        lifts = np.where(peaks > 0.0, LOWEST - np.log(np.maximum(peaks, 1e-320)), 0.0)
        lifts = np.maximum(lifts, 0.0)
        if not lifts.any():
            return TopicProportions(rows, None, shard.allowed)
        lift = float(shard.bags.lengths @ lifts[:, 0])
        return TopicProportions(rows * np.exp(lifts), None, shard.allowed, lift, lifts)

    def rows_used(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """The rows of a shard's documents as its E-step takes them (see `Model`).

        Under mean field these are exp E[log θ].
        """
        rows = self._rows(params, shard, how, local).unlifted
        return Stats({"rows": rows, "numbers": shard.numbers}, items=float(len(shard)))

    def rows_reported(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """The rows of a shard's documents as p(topic | document): under mean field, E[θ]."""
        rows = self._prior_for(how).normalise(self._rows(params, shard, how, local))
        return Stats({"rows": rows, "numbers": shard.numbers}, items=float(len(shard)))

    def _rows(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None
    ) -> TopicProportions:
        """What an E-step counts with."""
        rows = local or self._first_rows(params, shard, self._prior_for(how))
        if not how.mini_batch:
            return rows
        phi, _ = self._phi(params["topics"], shard)
        return self._settle_rows(phi, rows, shard, how, np.random.default_rng(0))

    def estimate(self, corpus: TopicDocuments) -> Estimate:
        """Tables, rows of documents, and both turned; of an archive a shard is read at a time."""
        n, K, entries = len(corpus), self.n_topics, n_entries(self.topics)
        data = held(corpus) if isinstance(corpus.documents, Bags) else 0
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

    def held_out_log_likelihood(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """log p(held-out words | θ, φ), with the documents' rows θ as they are.

        Probabilities below TINY count as TINY: a learner without a prior may come to hold a word
        impossible in a document in which it then occurs.
        """
        if shard.held_out is None:
            raise LearnerError(
                "no words of these documents are held out",
                "only documents in memory can be split: use EM() for an archive",
            )
        rows = local or self.document_prior.begin(shard.bags.lengths, shard.allowed)
        phi = pad_topics(np.asarray(params["topics"]).T)
        theta, entries = pad_topics(rows.theta), shard.held_out.by_document
        ratios = expect_topics(entries, theta, phi, threads=how.threads).ratios
        p = np.zeros_like(ratios)  # ratio = count / probability, or 0 for probability 0
        np.divide(entries.value, ratios, out=p, where=ratios > 0.0)
        log_likelihood = float(entries.value @ np.log(np.maximum(p, TINY)))
        tokens = float(entries.value.sum())
        return Stats({}, log_likelihood, log_likelihood, float(len(shard)), tokens)

    def _prior_for(self, how: EStep) -> DocumentPrior:
        """How rows are made, as the learner has it: short runs may be of another kind than it."""
        if "maximise" in (how.update, self.document_prior.update):
            return self.document_prior  # its prior has a mode, or has none
        return replace(self.document_prior, update=how.update or self.document_prior.update)

    def _phi(self, table: Any, shard: TopicShard) -> tuple[FloatArray, float]:
        """p(word | topic) of the shard's words, word by word, and by how much logs are too large.

        A word that is rare in every topic is lifted until it is certain in one, lest it be lost
        with what is tiny: factors that all topics have do not matter to posteriors.
        """
        words = (
            np.asarray(table).T if shard.own_words is None else columns_of(table, shard.own_words)
        )
        peaks = words.max(axis=1)
        rare = np.flatnonzero((peaks < RARE[self.dtype]) & (peaks > 0.0))
        if not len(rare):
            return pad_topics(words, self.dtype), 0.0
        lifted = np.array(words)
        lifted[rare] /= peaks[rare, None]
        return pad_topics(lifted, self.dtype), -float(
            np.log(peaks[rare]) @ shard.own_bags.word_counts[rare]
        )

    def _fill_in(
        self, phi: FloatArray, rows: TopicProportions, shard: TopicShard, how: EStep, words: bool
    ) -> tuple[kernels.TopicSums, FloatArray]:
        """What the rows θ and the topics φ make of the documents' words.

        Also what the learner climbs, (documents,): log p(words of a document) for soft EM.
        """
        theta, K, temper = pad_topics(rows.theta, self.dtype), self.n_topics, how.temper
        entries, words_of = shard.own_bags.by_document, shard if words else None
        plain = how.fill == "soft" and temper == 1.0
        sums = expect_topics(entries, theta, phi, words_of if plain else None, how.threads)
        logs = attained = sums.logs
        if how.fill == "soft" and not plain:
            sums = expect_topics(entries, theta**temper, phi**temper, words_of, how.threads)
            attained = sums.logs / temper
        elif how.fill != "soft" and not how.score_only:
            # words are given to one topic each, or to drawn ones
            sums = sums._replace(of_words=np.empty_like(phi), logs=np.empty(len(shard)))
            samples, stream = 0 if how.fill == "hard" else how.samples, np.uint64(how.stream)
            kernels.assign_topics(
                entries, shard.numbers, theta, phi, K, temper, samples, stream, sums
            )
            attained = sums.logs if how.fill == "hard" else logs
        of_documents, of_words = sums.of_documents[:, :K], sums.of_words[:, :K]
        return sums._replace(of_documents=of_documents, of_words=of_words, logs=logs), attained

    def collapse(
        self, shards: Sequence[TopicShard], params: Params, stream: int
    ) -> CollapsedTopics:
        """The sampler for all documents; words begin in topics as likely as they have them."""
        if self.topics.held is not None:
            raise LearnerError("a collapsed sampler cannot hold topics frozen", "use Gibbs()")
        every = list(shards)
        allowed = None
        if any(shard.allowed is not None for shard in every):
            none = np.zeros((1, self.n_topics), np.bool_)  # a row without any: all are allowed
            rows = [
                np.repeat(none, len(shard), axis=0)
                if shard.allowed is None
                else shard.allowed & ~shard.allowed.all(axis=1, keepdims=True)
                for shard in every
            ]
            allowed = sparse.vstack(list(map(sparse.csr_matrix, rows)))
        bags = Bags.of(sparse.vstack([shard.bags.matrix for shard in every]))
        prior = np.broadcast_to(self.topics.alpha, self.n_topics * bags.n_words)
        beta = float(prior.min())
        seeds = sparse.csr_matrix((prior - beta).reshape(self.n_topics, bags.n_words))
        return CollapsedTopics(
            *bags.by_document,
            bags.n_words,
            alpha=self.document_prior.alpha,
            beta=beta,
            phi=np.asarray(params["topics"]),
            seed=stream,
            allowed=allowed,
            seed_counts=np.rint(seeds),
        )

    def fold(self, params: Params, shard: TopicShard, how: EStep, local: Any = None) -> Stats:
        """A shard's p(topic | document) with the topics held fixed, as "rows"; pure."""
        rows = fold_in(
            np.asarray(params["topics"]),
            shard.bags,
            self.document_prior,
            allowed=shard.allowed,
            threads=how.threads,
            temper=how.temper,
        )
        found = {"rows": rows, "numbers": shard.numbers, "lengths": shard.bags.lengths}
        return Stats(found, items=float(len(shard)))

    def totals(self, shard: TopicShard) -> dict[str, float]:
        """Every word has one topic."""
        return {"topics": float(shard.bags.lengths.sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Start values as an array of the table's shape; with rows of documents, if they came."""
        if set(given) - {DOCUMENTS} != {"topics"}:
            raise StartError(f"start values are given for {sorted(given)}", 'give {"topics": …}')
        params = {"topics": shaped("topics", given["topics"], self.topics.zeros().shape)}
        if DOCUMENTS in given:
            rows = np.asarray(given[DOCUMENTS], dtype=float)
            params[DOCUMENTS] = shaped(DOCUMENTS, rows, (len(rows), self.n_topics))
        return params


def pad_topics(table: FloatArray, dtype: str = "float64") -> FloatArray:
    """A copy whose rows are filled up with zeros to whole vectors, without tiny numbers."""
    n, K = table.shape
    filled = np.zeros((n, -(-K // WIDTH) * WIDTH), dtype)
    filled[:, :K] = table
    tiny = TINY if dtype == "float64" else TINY_SINGLE
    if table.min(initial=1.0) < tiny:
        filled[filled < tiny] = 0.0
    return filled


def expect_topics(
    entries: Compressed,
    theta: FloatArray,
    phi: FloatArray,
    words_of: TopicShard | None = None,
    threads: int = 1,
) -> kernels.TopicSums:
    """The soft E-step with tables as `pad_topics` makes them.

    ``words_of``  the shard whose entries these are, if n_wk is wanted
    """
    sums = kernels.TopicSums(
        np.empty_like(theta),
        phi[:0] if words_of is None else np.empty_like(phi),
        np.empty(len(entries.value), theta.dtype),
        np.zeros(len(theta)),
    )
    if words_of is not None and threads == 1 and theta.shape[1] <= WIDE:
        kernels.expect_both(entries, theta, phi, sums)
        return sums
    over_rows(kernels.expect_documents, entries.indptr, threads, entries, theta, phi, sums)
    if words_of is not None:
        by_word = words_of.by_word
        over_rows(kernels.expect_words, by_word.indptr, threads, by_word, theta, phi, sums)
    return sums


def fold_in(
    topics: FloatArray,
    bags: Bags,
    prior: DocumentPrior,
    max_iter: int = 100,
    tol: float = 1e-4,
    allowed: BoolArray | None = None,
    threads: int = 1,
    temper: float = 1.0,
) -> FloatArray:
    """p(topic | document) with the topics held fixed (Hofmann 1999), (documents, topics).

    The mode; for variational Bayes the mean of the posterior; for samplers the mode as if the prior
    were 1 + α, θ_dk ∝ n_dk + α_k. Words that no topic has are passed over.

    ``topics``    p(word | topic), (topics, words)
    ``prior``     of the documents' topics
    ``max_iter``  how many iterations a document gets at most
    ``tol``       a document is done when none of its proportions changes by more than this
    ``allowed``   (documents, topics), False where a document cannot have a topic; None: all can
    ``temper``    a power of the posteriors, as in learning
    """
    rule = DocumentPrior(prior.alpha + 1.0) if prior.update == "draw" else prior
    K, averages = len(topics), rule.update == "mean_field"
    theta = pad_topics(rule.begin(bags.lengths, allowed).theta)
    mass, powers, added = np.zeros_like(theta), theta.copy(), np.zeros(theta.shape[1])
    added[:K] = rule.alpha - (not averages)
    phi = pad_topics(topics.T) ** temper if temper != 1.0 else pad_topics(topics.T)
    how = kernels.FoldingIn(added, averages, LOWEST, TINY, float(temper), max_iter, float(tol))
    entries = bags.by_document
    tables = (phi, how, theta, powers, mass)
    over_rows(kernels.fold_documents, entries.indptr, threads, entries, *tables)
    found = (mass if averages else theta)[:, :K]
    proportions: FloatArray = found / found.sum(axis=1, keepdims=True)
    return proportions
