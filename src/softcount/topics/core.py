"""Topic models as learners see them: topic proportions of documents, and the E-step.

p(w | d) = Σ_k θ_dk φ_kw (Hofmann 1999): every word of a document has a hidden topic. The topics φ
are an ordinary table of the model; the topic proportions θ are local: each shard keeps the rows of
its documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, xlogy

from softcount.core.errors import DataError, LearnerError, StartError
from softcount.core.estimate import COPIES, NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.model import Model, check_possible
from softcount.core.parameters import reshape_start
from softcount.core.spill import LARGE
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    BoolArray,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
    Uncounted,
    Update,
)
from softcount.families.base import Family
from softcount.families.categorical import SMALLEST, log_gammas
from softcount.families.columns import ColumnCounts, Columns, take_columns
from softcount.kernels.threads import over_rows
from softcount.kernels.vectors import empty_rows, padded_width
from softcount.learners.named import EM
from softcount.text.archive import Archive
from softcount.text.bags import Bags, Compressed
from softcount.topics import kernels
from softcount.topics.data import TopicDocuments, TopicShard
from softcount.topics.gibbs import CollapsedTopics

TINY = 1e-100
"""Smaller probabilities are set to 0: the likelihood does not change, and denormals are slow."""

TINY_SINGLE = 1e-15
"""The same for float32: the product of two probabilities must not be denormal either."""

LOWEST = -20.0
"""Mean-field rows whose largest logarithm is below this are scaled up to it ("lifted").

With a small prior, the rows of short documents are close to 0. A factor that all topics share does
not change the posteriors of topics, and the likelihood is corrected for it.
"""

INNER = 5
"""Number of updates of a mini-batch's rows, the last of them with the counting of its words."""

WIDE = 48
"""With more topics, separate passes by document and by word are faster than a combined one."""

RARE = {"float64": 1e-50, "float32": 1e-6}
"""Words with smaller probabilities in all topics are scaled up; see `TopicCore._phi`."""

BLOCK = 1 << 16
"""Number of entries (document, word) whose probabilities are computed together."""

IMPOSSIBLE = "has a word of probability zero in every topic"
REMEDY = "smooth the topics, or leave the word out"
DOCUMENTS = "documents"
"""The name of the local rows θ among the parameters."""


@dataclass(frozen=True, eq=False)
class TopicProportions:
    """θ, the topic proportions of a shard's documents.

    ``theta``    (documents, topics), as used in the E-step
    ``counts``   (documents, topics), the expected counts behind θ if the objective needs them (mean
                 field), else None
    ``allowed``  (documents, topics), False where a document is known not to have a topic; None: no
                 restrictions
    ``lift``     the excess of log p(words) because rows were lifted to `LOWEST`
    ``lifts``    (documents, 1), the excess of each row's logarithms; None: no row was lifted
    """

    theta: FloatArray
    counts: FloatArray | None = None
    allowed: BoolArray | None = None
    lift: float = 0.0
    lifts: FloatArray | None = None

    @property
    def unlifted(self) -> FloatArray:
        """The rows before lifting."""
        return self.theta if self.lifts is None else self.theta * np.exp(-self.lifts)


@dataclass(frozen=True, eq=False)
class DocumentPrior:
    """The prior Dir(α) of topic proportions, with the learner's update of θ from counts.

    A family whose rows are local to shards. Learners update these rows in the same way as tables:

        maximise    θ_dk ∝ n_dk + α_k − 1
        mean field  θ_dk = exp(ψ(α_k + n_dk) − ψ(Σ_j α_j + n_dj))   (Blei, Ng & Jordan 2003, eq. 6)
        draw        θ_d ~ Dir(α + n_d)

    ``alpha``   α, (topics,)
    ``update``  one of these three
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
        """Return initial rows, uniform over the allowed topics.

        ``lengths``  the number of words of each document, (documents,)
        """
        shape = (len(lengths), len(self.alpha))
        uniform = np.ones(shape) if allowed is None else allowed.astype(np.float64)
        uniform /= uniform.sum(axis=1, keepdims=True)
        if self.update == "maximise":
            return TopicProportions(uniform, None, allowed)
        return self._mean_field(uniform * lengths[:, None], allowed)

    def normalise(self, rows: TopicProportions) -> FloatArray:
        """Return rows as p(topic | document); under mean field, their posterior mean."""
        mass = rows.unlifted
        if self.update == "mean_field" and rows.counts is not None:
            mass = _mask(rows.counts + self.alpha, rows.allowed)
        proportions: FloatArray = mass / mass.sum(axis=1, keepdims=True)
        return proportions

    def estimate(
        self, counts: FloatArray, old: TopicProportions, rng: np.random.Generator
    ) -> TopicProportions:
        """Return new rows from expected counts; those of empty documents follow the prior."""
        if self.update == "mean_field":
            return self._mean_field(counts, old.allowed)
        allowed = old.allowed
        if self.update == "draw":  # normalised Gamma variates; in logarithms where they underflow
            shapes = counts + self.alpha
            drawn = rng.standard_gamma(shapes)
            mass = _mask(drawn, allowed)
            tiny = np.flatnonzero((_mask(drawn, allowed, 1.0) < SMALLEST).any(axis=1))
            if len(tiny):
                tiny_allowed = None if allowed is None else allowed[tiny]
                logs = _mask(log_gammas(drawn[tiny], shapes[tiny], rng), tiny_allowed, -np.inf)
                mass[tiny] = np.exp(logs - logs.max(axis=1, keepdims=True))
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
        excess = _mask(counts, allowed).sum(axis=1) @ lift[:, 0]
        return TopicProportions(theta, counts, allowed, float(excess), lift if lift.any() else None)

    def objective(self, rows: TopicProportions) -> float:
        """Compute the rows' term of the objective: log p(θ), or −KL(q(θ) ‖ p(θ)) for mean field.

        The divergence of a row is KL(Dir(α + n) ‖ Dir(α)) over its allowed topics.
        """
        if self.update != "mean_field":
            if np.all(self.alpha == 1.0):
                return 0.0
            theta = _mask(rows.theta, rows.allowed, 1.0)
            return float(xlogy(self.alpha - 1.0, np.maximum(theta, SMALLEST)).sum())
        if rows.counts is None:  # rows given as parameters have no posterior q(θ)
            return 0.0
        counts = _mask(rows.counts, rows.allowed)
        alpha = _mask(np.broadcast_to(self.alpha, counts.shape), rows.allowed)
        entries = gammaln(self.alpha) - gammaln(counts + self.alpha)
        entries += counts * digamma(counts + self.alpha)
        prior, n = alpha.sum(axis=1), counts.sum(axis=1)
        normalisers = gammaln(prior + n) - gammaln(prior) - n * digamma(prior + n)
        return -float((_mask(entries, rows.allowed).sum(axis=1) + normalisers).sum())


def _mask(values: FloatArray, allowed: BoolArray | None, otherwise: float = 0.0) -> FloatArray:
    """Replace values that are not allowed by ``otherwise``."""
    return values if allowed is None else np.where(allowed, values, otherwise)


class TopicCore(Model):
    """p(w | d) = Σ_k θ_dk φ_kw: PLSA (Hofmann 1999); LDA with priors (Blei, Ng & Jordan 2003).

    The table "topics" is φ; the documents' rows θ are local to their shards. Initially they are
    those of the table "documents" among the parameters, if there is one, else uniform.

    ``inner``  the number of updates of a mini-batch's rows; words are counted in the last one
    ``dtype``  the precision of the E-step; sums over documents always have 64 bits
    """

    threads_inside = True
    default_learner = EM(tol=5e-5)
    """With a smaller tolerance, the prediction of held-out words hardly improved."""
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
        """Compute the counts and log-likelihood of a shard, and its documents' new rows."""
        prior = self._prior_for(how)
        phi, lift = self._phi(params["topics"], shard)
        rng = np.random.default_rng((how.stream, *shard.numbers[:1].tolist()))
        rows = local or self._first_rows(params, shard, prior)
        if how.mini_batch and not how.score_only:
            rows = self._settle_rows(phi, rows, shard, how, rng)
        sums, attained = self._fill_in(phi, rows, shard, how, words=not how.score_only)
        check_possible(shard.numbers, sums.logs, IMPOSSIBLE, REMEDY)
        lift += rows.lift
        log_likelihood = float(sums.logs.sum()) - lift
        of_rows = prior.objective(rows)
        score = float(attained.sum()) - lift + of_rows
        n, tokens = float(len(shard)), float(shard.bags.lengths.sum())
        if how.score_only:
            return Stats({}, log_likelihood, score, n, tokens)
        # counts of the shard's words: of few of all words, their columns only
        of_words = sums.of_words.astype(np.float64, copy=False)
        counts: Counts
        own_words = shard.bags.own_words
        if own_words is None:
            counts = np.ascontiguousarray(of_words.T)
        else:
            counts = ColumnCounts(own_words, of_words, self.topics.shape[1])
        new_rows = prior.estimate(sums.of_documents, rows, rng)
        uncounted = NOTHING_UNCOUNTED
        if how.theory:
            compared = (
                new_rows if how.against is None else self._first_rows(how.against, shard, prior)
            )
            now, then = (  # Σ n_dk log θ_dk
                float(xlogy(sums.of_documents.astype(np.float64), state.theta).sum()) - state.lift
                for state in (rows, compared)
            )
            uncounted = Uncounted(now, then, of_rows)
        return Stats({"topics": counts}, log_likelihood, score, n, tokens, new_rows, uncounted)

    def _settle_rows(
        self,
        phi: FloatArray,
        rows: TopicProportions,
        shard: TopicShard,
        how: EStep,
        rng: np.random.Generator,
    ) -> TopicProportions:
        """Update the rows of a mini-batch several times before its words are counted."""
        prior = self._prior_for(how)
        for _ in range(self.inner - 1):
            sums, _ = self._fill_in(phi, rows, shard, how, words=False)
            rows = prior.estimate(sums.of_documents, rows, rng)
        return rows

    def _first_rows(
        self, params: Params, shard: TopicShard, prior: DocumentPrior
    ) -> TopicProportions:
        """Return the initial rows of documents: those among the parameters, or uniform ones."""
        table = params.get(DOCUMENTS)
        if table is None:
            return prior.begin(shard.bags.lengths, shard.allowed)
        if shard.numbers.max(initial=-1) >= len(table):
            raise DataError(
                f"there are topics of {len(table)} documents, and no row for document "
                f"{shard.numbers.max()}",
                "give the documents that the rows belong to",
            )
        rows = _mask(np.asarray(table)[shard.numbers].astype(np.float64), shard.allowed)
        peaks = rows.max(axis=1, keepdims=True)  # rows close to zero are lifted
        lifts = np.where(peaks > 0.0, LOWEST - np.log(np.maximum(peaks, 1e-320)), 0.0)
        lifts = np.maximum(lifts, 0.0)
        if not lifts.any():
            return TopicProportions(rows, None, shard.allowed)
        lift = float(shard.bags.lengths @ lifts[:, 0])
        return TopicProportions(rows * np.exp(lifts), None, shard.allowed, lift, lifts)

    def rows_used(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """Return the rows of a shard's documents as used in its E-step (see `Model`).

        Under mean field these are exp E[log θ].
        """
        rows = self._rows(params, shard, how, local).unlifted
        return Stats({"rows": rows, "numbers": shard.numbers}, items=float(len(shard)))

    def rows_reported(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """Return the rows of a shard's documents as p(topic | document); for mean field, E[θ]."""
        rows = self._prior_for(how).normalise(self._rows(params, shard, how, local))
        return Stats({"rows": rows, "numbers": shard.numbers}, items=float(len(shard)))

    def _rows(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None
    ) -> TopicProportions:
        """Return the rows with which an E-step computes expected counts."""
        rows = local or self._first_rows(params, shard, self._prior_for(how))
        if not how.mini_batch:
            return rows
        phi, _ = self._phi(params["topics"], shard)
        return self._settle_rows(phi, rows, shard, how, np.random.default_rng(0))

    # step by step
    def lay_out(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> PosteriorRows:
        """Return p(topic | document, word) (Hofmann 1999): a row per document and word in it.

        A word that occurs several times in a document has one row, whose weight is its count.
        """
        joint, documents, entries = self._joint_of_words(params, shard, how, local)
        keys = {"word": entries.columns.astype(np.int64)}
        if how.fill == "hard":
            rows = np.zeros_like(joint)
            rows[np.arange(len(joint)), joint.argmax(axis=1)] = 1.0
        else:
            rows = joint**how.temper
            rows /= rows.sum(axis=1, keepdims=True)
        return PosteriorRows(rows, shard.numbers[documents], keys, entries.value.astype(float))

    def _joint_of_words(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None
    ) -> tuple[FloatArray, IntArray, Compressed]:
        """Return θ_dk φ_kw up to a factor of each row, (entries, topics), with their documents."""
        entries = shard.bags.by_document
        documents = np.repeat(np.arange(len(shard)), np.diff(entries.indptr))
        theta = self._rows(params, shard, how, local).theta
        phi = np.asarray(params["topics"]).T[entries.columns].astype(np.float64)
        phi /= np.maximum(phi.max(axis=1, keepdims=True, initial=0.0), 1e-300)
        joint = theta[documents] * phi
        impossible = np.where(joint.any(axis=1), 0.0, -np.inf)
        check_possible(shard.numbers[documents], impossible, IMPOSSIBLE, REMEDY)
        return joint, documents, entries

    def count_posteriors(
        self, params: Params, shard: TopicShard, posteriors: FloatArray, how: EStep
    ) -> Stats:
        """Return Σ x_dw p(topic | document, word), by word and by document, with its new row."""
        entries, prior = shard.bags.by_document, self._prior_for(how)
        documents = np.repeat(np.arange(len(shard)), np.diff(entries.indptr))
        weighted = posteriors * entries.value[:, None]
        of_words = np.zeros((self.topics.shape[1], self.n_topics))
        of_documents = np.zeros((len(shard), self.n_topics))
        np.add.at(of_words, entries.columns, weighted)
        np.add.at(of_documents, documents, weighted)
        rows = self._first_rows(params, shard, prior)
        new_rows = prior.estimate(of_documents, rows, np.random.default_rng(how.stream))
        counts = {"topics": np.ascontiguousarray(of_words.T)}
        return Stats(counts, items=float(len(shard)), local=new_rows)

    def estimate(self, corpus: TopicDocuments) -> Estimate:
        """Estimate the memory and work of learning.

        Memory is for tables and rows, and for transposed copies; of an archive one shard at a time
        is in memory.
        """
        n, K, entries = len(corpus), self.n_topics, n_entries(self.topics)
        data = count_bytes(corpus) if isinstance(corpus.documents, Bags) else 0
        nnz = data / 20.0 if data else corpus.tokens
        share, rows = 1.0, 4.0 * NUMBER * n * K
        if isinstance(corpus.documents, Archive):  # a shard, and rows that are not in a file yet
            share = max(np.diff(corpus.documents.facts.shards)) / n
            rows = min(rows, 4.0 * LARGE + rows * share)
        return make_estimate(
            n,
            corpus.tokens,
            6.0 * nnz * K + 8.0 * entries,
            data=data,
            tables=(COPIES + 1) * NUMBER * entries,
            rows=rows,
            steps=20.0 * nnz * share,
        )

    def held_out_log_likelihood(
        self, params: Params, shard: TopicShard, how: EStep, local: TopicProportions | None = None
    ) -> Stats:
        """Compute log p(held-out words | θ, φ) with the current rows θ of the documents.

        Probabilities below TINY count as TINY: a learner without a prior may give probability 0 to
        a held-out word.
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
        """Return the prior with the update of this E-step, which may differ in short runs."""
        if "maximise" in (how.update, self.document_prior.update):
            return self.document_prior  # α is meant either for modes or for means, not for both
        return replace(self.document_prior, update=how.update or self.document_prior.update)

    def _phi(self, table: Any, shard: TopicShard) -> tuple[FloatArray, float]:
        """Return p(word | topic) of the shard's words, (words, topics), and the excess of logs.

        A word that is rare in every topic is scaled up until its largest probability is 1, because
        tiny probabilities are set to 0. A factor that all topics share does not change posteriors;
        log p(words) is too large by the excess.
        """
        own_words = shard.bags.own_words
        words = np.asarray(table).T if own_words is None else take_columns(table, own_words)
        peaks = words.max(axis=1)
        rare = np.flatnonzero((peaks < RARE[self.dtype]) & (peaks > 0.0))
        if not len(rare):
            return pad_topics(words, self.dtype), 0.0
        lifted = np.array(words)
        lifted[rare] /= peaks[rare, None]
        return pad_topics(lifted, self.dtype), -float(
            np.log(peaks[rare]) @ shard.bags.own.word_counts[rare]
        )

    def _fill_in(
        self, phi: FloatArray, rows: TopicProportions, shard: TopicShard, how: EStep, words: bool
    ) -> tuple[kernels.TopicSums, FloatArray]:
        """Assign the words of documents to topics, given θ and φ: softly, hard, or by sampling.

        Returns the sums, and the documents' terms of the objective, (documents,): for soft EM,
        log p(words of a document).
        """
        theta, K, temper = pad_topics(rows.theta, self.dtype), self.n_topics, how.temper
        entries, words_of = shard.bags.own.by_document, shard if words else None
        plain = how.fill == "soft" and temper == 1.0
        sums = expect_topics(entries, theta, phi, words_of if plain else None, how.threads)
        logs = attained = sums.logs
        if how.fill == "soft" and not plain:
            sums = expect_topics(entries, theta**temper, phi**temper, words_of, how.threads)
            attained = sums.logs / temper
        elif how.fill != "soft" and not how.score_only:
            # each word is assigned to its best topic, or to sampled ones
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
        """Return the sampler for all documents, with initial topics drawn by p(word | topic)."""
        if self.topics.held is not None:
            raise LearnerError("a collapsed sampler cannot hold topics frozen", "use Gibbs()")
        shards = list(shards)
        allowed = None
        if any(shard.allowed is not None for shard in shards):
            empty = np.zeros((1, self.n_topics), np.bool_)  # an empty row: all topics are allowed
            rows = [
                np.repeat(empty, len(shard), axis=0)
                if shard.allowed is None
                else shard.allowed & ~shard.allowed.all(axis=1, keepdims=True)
                for shard in shards
            ]
            allowed = sparse.vstack(list(map(sparse.csr_matrix, rows)))
        bags = Bags.of(sparse.vstack([shard.bags.matrix for shard in shards]))
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
        """Fold in: compute p(topic | document) of a shard with fixed topics, as "rows"; pure."""
        rows = fold_in(
            np.asarray(params["topics"]),
            shard.bags,
            self.document_prior,
            allowed=shard.allowed,
            threads=how.threads,
            temper=how.temper,
        )
        arrays = {"rows": rows, "numbers": shard.numbers, "lengths": shard.bags.lengths}
        return Stats(arrays, items=float(len(shard)))

    def score_documents(
        self, params: Params, shard: TopicShard, how: EStep, local: Any = None
    ) -> dict[str, Any]:
        """Return log p(words of a document | its folded-in topics), "logs", and "numbers"."""
        theta = np.asarray(self.fold(params, shard, how).counts["rows"])
        phi = np.ascontiguousarray(np.asarray(params["topics"]).T)
        rows, n = shard.bags.by_document, len(shard)
        owners = np.repeat(np.arange(n), np.diff(rows.indptr))
        p = np.empty(len(owners))  # p(w | d) of every entry
        for first in range(0, len(owners), BLOCK):
            block = slice(first, first + BLOCK)
            p[block] = np.einsum("ik,ik->i", theta[owners[block]], phi[rows.columns[block]])
        with np.errstate(divide="ignore"):
            logs = np.bincount(owners, rows.value * np.log(p), minlength=n)
        return {"logs": logs, "numbers": shard.numbers}

    def totals(self, shard: TopicShard) -> dict[str, float]:
        """Return the sum of the counts of each table: every word has one topic."""
        return {"topics": float(shard.bags.lengths.sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return initial parameters as arrays of the right shapes, with documents if given."""
        if set(given) - {DOCUMENTS} != {"topics"}:
            raise StartError(f"start values are given for {sorted(given)}", 'give {"topics": …}')
        params = {"topics": reshape_start("topics", given["topics"], self.topics.zeros().shape)}
        if DOCUMENTS in given:
            rows = np.asarray(given[DOCUMENTS], dtype=float)
            params[DOCUMENTS] = reshape_start(DOCUMENTS, rows, (len(rows), self.n_topics))
        return params


def pad_topics(table: FloatArray, dtype: str = "float64") -> FloatArray:
    """Return a copy with rows zero-padded to whole vectors, and tiny numbers set to 0."""
    n, K = table.shape
    padded = empty_rows(n, padded_width(K), dtype)
    padded[:, :K], padded[:, K:] = table, 0.0
    tiny = TINY if dtype == "float64" else TINY_SINGLE
    if table.min(initial=1.0) < tiny:
        padded[padded < tiny] = 0.0
    return padded


def expect_topics(
    entries: Compressed,
    theta: FloatArray,
    phi: FloatArray,
    words_of: TopicShard | None = None,
    threads: int = 1,
) -> kernels.TopicSums:
    """Compute the soft E-step; θ and φ are padded by `pad_topics`.

    ``entries``   counts by document
    ``theta``     (documents, padded topics)
    ``phi``       (words, padded topics)
    ``words_of``  the shard that the entries belong to if n_wk is needed, else None
    """
    sums = kernels.TopicSums(
        empty_rows(len(theta), theta.shape[1], theta.dtype),
        phi[:0] if words_of is None else empty_rows(len(phi), phi.shape[1], phi.dtype),
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
    """Compute p(topic | document) with fixed topics (Hofmann 1999), (documents, topics).

    The mode; for variational Bayes the posterior mean; for samplers the mode as if the prior were
    1 + α, θ_dk ∝ n_dk + α_k. Words that are in no topic are ignored.

    ``topics``    p(word | topic), (topics, words)
    ``prior``     the prior of topic proportions
    ``max_iter``  the largest number of iterations per document
    ``tol``       a document has converged when no proportion changes by more than this
    ``allowed``   (documents, topics), False where a document cannot have a topic; None: no
                  restrictions
    ``temper``    the power of posteriors, as in learning
    """
    rule = DocumentPrior(prior.alpha + 1.0) if prior.update == "draw" else prior
    K, averages = len(topics), rule.update == "mean_field"
    theta = pad_topics(rule.begin(bags.lengths, allowed).theta)
    mass, powers, pseudo = np.zeros_like(theta), theta.copy(), np.zeros(theta.shape[1])
    pseudo[:K] = rule.alpha - (not averages)
    phi = pad_topics(topics.T) ** temper if temper != 1.0 else pad_topics(topics.T)
    how = kernels.FoldingIn(pseudo, averages, LOWEST, TINY, float(temper), max_iter, float(tol))
    entries = bags.by_document
    tables = (phi, how, theta, powers, mass)
    over_rows(kernels.fold_documents, entries.indptr, threads, entries, *tables)
    rows = (mass if averages else theta)[:, :K]
    proportions: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return proportions
