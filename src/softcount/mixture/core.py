"""The E-step of mixtures, and the emission distributions of their classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

from softcount.core.bounds import MAX_WHOLE
from softcount.core.errors import DataError, LearnerError, StartError
from softcount.core.estimate import COPIES, NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.model import Model, check_possible
from softcount.core.parameters import reshape_start
from softcount.core.tilting import EXPECTED
from softcount.core.types import (
    Array,
    ColumnCounts,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
    Update,
)
from softcount.families import Categorical, Gaussian, StickBreaking
from softcount.families.base import Family
from softcount.families.gaussian import BLOCK, FullCovariance
from softcount.kernels import posterior
from softcount.kernels.threads import over_rows
from softcount.kernels.vectors import empty_rows, padded_width
from softcount.learners.base import Learner
from softcount.mixture import kernels
from softcount.mixture.data import (
    ClassConstraints,
    ConstraintGroup,
    MixtureCorpus,
    MixtureShard,
    OnDisk,
    Points,
    n_in_memory,
    sum_parts,
)
from softcount.mixture.gibbs import CollapsedMixture, Restaurant
from softcount.mixture.lloyd import find_classes
from softcount.text.bags import Bags
from softcount.text.disk import ShardsOnAccess

IMPOSSIBLE = "has probability zero in every class"
REMEDY = "smooth the model (smoothing=0.1), or leave the item out"

FLOOR = 1e-300
"""Lower bound on probabilities when classes are compared: if an item is impossible in every class,
the class with the fewest impossible words wins, instead of none."""


class MixtureCore(Model):
    """p(x) = Σ_k π_k p(x | k): a family of class weights, and an emission.

    Items of a known class are restricted to that class, and each item counts by its weight: this is
    all that semi-supervised learning needs.
    """

    def __init__(
        self,
        name: str,
        weights: Family,
        emission: Emission,
        default_learner: Learner = Model.default_learner,
        averages: bool = False,
    ) -> None:
        self.name, self.emission, self.default_learner = name, emission, default_learner
        self.averages = averages
        self.threads_inside = emission.threads_inside
        self.families: dict[str, Family] = {"weights": weights, emission.table: emission.family}
        self.n_classes: int = weights.zeros().size

    # the E-step
    def joint(self, params: Params, x: Any, threads: int = 1, floor: float = 0.0) -> FloatArray:
        """Return log π_k + log p(x_d | k), (items, classes); no probability below ``floor``."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.maximum(params["weights"].reshape(-1), floor))
        table = params[self.emission.table]
        return self.emission.joint(table, x, log_weights, threads, floor)

    def expect(self, params: Params, shard: MixtureShard, how: EStep, local: Any = None) -> Stats:
        """Compute expected counts and the log-likelihood of a shard (the E-step).

        Raises an `ImpossibleItem` error if an item of non-zero weight has probability zero.
        """
        joint = untilted = self._joint_of_shard(params, shard, how)
        if how.tilt is not None:
            joint = untilted + how.tilt.log_weights(shard.numbers)
        log_likelihood = score = items = 0.0
        responsibilities: FloatArray | None = None
        for group in shard.known.by_group():
            numbers, weights = shard.numbers[group.rows], group.weights
            filled, logs, attained = fill(joint[group.rows], group, numbers, how)
            if how.tilt is not None and not how.score_only:
                logs = posterior.totals(untilted[group.rows], group.lower, group.upper)
            counted = weights > 0.0
            check_possible(numbers[counted], logs[counted], IMPOSSIBLE, REMEDY)
            log_likelihood += float(weights[counted] @ logs[counted])
            score += float(weights[counted] @ attained[counted])
            items += float(weights.sum())
            if np.any(weights != 1.0):
                filled *= weights[:, None]
            if isinstance(group.rows, slice):
                responsibilities = filled
                continue
            if responsibilities is None:
                responsibilities = np.zeros_like(joint)
            responsibilities[group.rows] += filled
        counts: dict[str, Counts] = {}
        if not how.score_only and responsibilities is not None:
            counts = self.counts(shard.x, responsibilities, how.threads)
        if how.tilt is not None and responsibilities is not None:
            counts[EXPECTED] = how.tilt.expect(shard.numbers, responsibilities)
        tokens = self.emission.tokens(shard.x, shard.known.weights)
        magnitude = self.emission.magnitude(params[self.emission.table], shard)
        return Stats(counts, log_likelihood, score, items, tokens, magnitude=magnitude)

    def _joint_of_shard(self, params: Params, shard: MixtureShard, how: EStep) -> FloatArray:
        """Return log p(class, item), (items, classes), computed once for all tilts."""
        if how.tilt is None or not len(shard):
            return self.joint(params, shard.x, how.threads)
        first = int(shard.numbers[0])
        return how.tilt.remember(first, lambda: self.joint(params, shard.x, how.threads))

    def counts(self, x: Any, responsibilities: FloatArray, threads: int = 1) -> dict[str, Counts]:
        """Return the sufficient statistics, given the responsibilities, (items, classes)."""
        return {
            "weights": np.ones((1, len(responsibilities))) @ responsibilities,
            self.emission.table: self.emission.counts(x, responsibilities, threads),
        }

    # step by step
    def lay_out(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> PosteriorRows:
        """Return the posteriors of classes: a row per item, a column per class.

        An item with soft labels has their mean over its groups of classes.
        """
        joint = self.joint(params, shard.x, how.threads)
        posteriors, total = np.zeros_like(joint), np.zeros((len(joint), 1))
        for group in shard.known.by_group():
            numbers = shard.numbers[group.rows]
            filled, logs, _ = fill(joint[group.rows], group, numbers, how)
            check_possible(numbers[group.weights > 0.0], logs[group.weights > 0.0], IMPOSSIBLE,
                           REMEDY)  # fmt: skip
            weights = np.where(group.weights > 0.0, group.weights, 1e-300)[:, None]
            posteriors[group.rows] += filled * weights
            total[group.rows] += weights
        return PosteriorRows(posteriors / np.where(total > 0.0, total, 1.0), shard.numbers)

    def count_posteriors(
        self, params: Params, shard: MixtureShard, posteriors: FloatArray, how: EStep
    ) -> Stats:
        """Return the expected counts of a shard under given posteriors, (items, classes)."""
        weights = shard.known.weights
        return Stats(self.counts(shard.x, posteriors * weights[:, None]), items=weights.sum())

    # predictions, which `softcount.core.estimator.Estimator._map` computes for each shard
    def joints(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return log p(class, item), (items, classes), with probabilities of at least `FLOOR`."""
        return self.joint(params, shard.x, how.threads, FLOOR)

    def classify(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> IntArray:
        """Return the most probable class of each item, (items,)."""
        classes: IntArray = self.joints(params, shard, how).argmax(axis=1)
        return classes

    def posteriors(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return p(class | item), (items, classes)."""
        return self._infer(self.joints(params, shard, how))[0]

    def log_likelihoods(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return log p(item), (items,); −inf for items of probability zero."""
        return self._infer(self.joint(params, shard.x, how.threads))[1]

    def distances(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return the distances of points to the means of classes, (items, classes)."""
        family, x = self.emission.family, shard.x
        assert isinstance(family, Gaussian)
        assert isinstance(x, Points)
        K, means = self.n_classes, family.means(params[self.emission.table])
        # with unit precisions and log-normalisers of zero: −½ squared distance
        halves = family.form.log_density(x.x, means, np.ones((K, 1)), np.zeros(K))
        distances: FloatArray = np.sqrt(np.maximum(-2.0 * halves, 0.0))  # rounding: −1e-16
        return distances

    def _infer(self, joint: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return posteriors and log-likelihoods of items."""
        responsibilities = np.empty_like(joint)
        free = ClassConstraints.nothing(len(joint), self.n_classes)
        logs = posterior.soft(joint, free.lower, free.upper, 1.0, responsibilities)
        return responsibilities, logs

    def totals(self, shard: MixtureShard) -> dict[str, float]:
        """Return the total of the class counts: every item has one class."""
        return {"weights": float(sum(r.weights.sum() for r in shard.known.by_group()))}

    def estimate(self, corpus: MixtureCorpus) -> Estimate:
        """Estimate memory and work for tables and posteriors; not for a k-means start, which the
        estimator adds itself."""
        n, K, x = len(corpus), self.n_classes, corpus.x
        work, parts = self.emission.needs(x)
        # posteriors of the shards in progress, and those of all items at the end
        in_progress = min(n, 3 * max(last - first for first, last in x.cut()))
        posteriors = NUMBER * K * (3.0 * in_progress + n)
        if isinstance(x, OnDisk):  # of those of all items labels alone
            posteriors, tokens = NUMBER * (3.0 * K * in_progress + n), float(x.tokens)
        else:
            tokens = self.emission.tokens(x, corpus.known.weights)
        needed = make_estimate(n, tokens, work + 4.0 * n * K, data=count_bytes(corpus))
        return needed.plus(posteriors=posteriors, **parts)

    # parameters given by users
    def params(self, given: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return initial parameters as arrays of the families' shapes."""
        strange = set(given) ^ set(self.families)
        if strange:
            raise StartError(
                f"initial parameters were given for the tables {sorted(given)}",
                f"give exactly the tables of this model: {sorted(self.families)}",
            )
        return {
            name: reshape_start(name, given[name], family.uniform().shape)
            for name, family in self.families.items()
        }

    def from_responsibilities(
        self, x: Any, responsibilities: FloatArray | Callable[[slice], FloatArray], rng: Generator
    ) -> dict[str, FloatArray]:
        """Return parameters fitted to items with these responsibilities (the M-step).

        The mode of the posterior; or its mean, for learners that average and for priors without a
        mode: the mean gives no event probability zero.

        ``responsibilities``  (items, classes), or a function that returns those of some items; it
                              is called for one shard after another
        """
        rows = responsibilities if callable(responsibilities) else responsibilities.__getitem__
        counts = sum_parts(x, lambda where, part: Stats(self.counts(part, rows(where)))).counts
        return {
            name: family.mean(counts[name], family.uniform())
            if self.averages or not getattr(family, "has_mode", True)
            else family.maximise(counts[name], family.uniform(), rng)
            for name, family in self.families.items()
        }


def fill(
    joint: FloatArray, group: ConstraintGroup, numbers: IntArray, how: EStep
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fill in the hidden classes of items: soft, hard or sampled, as ``how`` says.

    ``joint``    log p(class, item), (items, classes)
    ``numbers``  the items' numbers in the corpus, which determine their random streams

    Returns responsibilities (items, classes), log-likelihoods (items,), and each item's term of the
    objective, (items,): the log joint of the best class (hard), the free energy (soft), or the
    log-likelihood itself (sampled).
    """
    responsibilities = np.empty_like(joint)
    lower, upper = group.lower, group.upper
    if how.fill == "hard":
        best, logs = posterior.hard(joint, lower, upper, responsibilities)
        return responsibilities, logs, best
    tempered = posterior.soft(joint, lower, upper, how.temper, responsibilities)
    logs = tempered if how.temper == 1.0 else posterior.totals(joint, lower, upper)
    if how.fill == "soft":
        return responsibilities, logs, tempered / how.temper
    drawn = np.empty_like(joint)
    posterior.draw(responsibilities, numbers, np.uint64(how.stream), how.samples, drawn)
    return drawn, logs, logs


class WordCore(MixtureCore):
    """A mixture of multinomials over words, whose parameters can be integrated out."""

    def collapse(
        self, shards: Sequence[MixtureShard], params: Params, stream: int
    ) -> CollapsedMixture:
        """Return the collapsed sampler of all documents, with initial classes drawn from their
        posteriors."""
        if isinstance(shards, ShardsOnAccess):
            raise LearnerError(
                "a collapsed sampler needs all documents in memory at once, but these are on disk",
                "use EM(), VariationalBayes() or Gibbs(); or give the documents in memory",
            )
        known = [shard.known for shard in shards]
        if any(each.soft_labels is not None or np.any(each.weights != 1.0) for each in known):
            raise LearnerError(
                "a collapsed sampler counts every document once: it supports neither weights nor "
                "soft labels",
                "use Gibbs(), or leave the weights and soft labels out",
            )
        words, weights = self.families["words"], self.families["weights"]
        assert isinstance(words, Categorical)
        beta = words.alpha
        if not isinstance(beta, float):
            rows = beta.reshape(words.shape)
            if np.any(rows != rows[0]):
                raise LearnerError(
                    "a collapsed sampler needs the same word prior in all classes", "use Gibbs()"
                )
            beta = rows[0]
        alpha: Restaurant | Array
        if isinstance(weights, StickBreaking):
            alpha = Restaurant(weights.concentration, self.n_classes)
        else:
            assert isinstance(weights, Categorical)
            alpha = np.broadcast_to(weights.alpha, self.n_classes)
        how, drawn = EStep(fill="sample", stream=stream), []
        for shard in shards:
            (group,) = shard.known.by_group()
            joint = self.joint(params, shard.x, floor=1e-300)
            drawn.append(fill(joint, group, shard.numbers, how)[0].argmax(axis=1))
        matrices = [shard.x.matrix for shard in shards if isinstance(shard.x, Bags)]
        documents = Bags.of(sparse.vstack(matrices))
        return CollapsedMixture(
            *documents.by_document,
            documents.n_words,
            alpha=alpha,
            beta=beta,
            assignments=np.concatenate(drawn),
            allowed=(
                np.concatenate([each.lower for each in known]),
                np.concatenate([each.upper for each in known]),
            ),
        )


class KMeansCore(MixtureCore):
    """A mixture of Gaussians of equal weight and one known variance, made for hard assignments.

    Hard EM then is k-means, and does without the probabilities of classes that a point is not in:
    its log-likelihood is that of points and classes together, which is the objective.
    """

    def expect(self, params: Params, shard: MixtureShard, how: EStep, local: Any = None) -> Stats:
        constant = self._constant(params)
        if (
            how.fill != "hard"
            or constant is None
            or how.tilt is not None
            or not shard.is_free(self.n_classes)
        ):
            return super().expect(params, shard, how, local)
        family, weights = self.emission.family, shard.known.weights
        assert isinstance(family, Gaussian)
        assert isinstance(shard.x, Points)
        means = family.means(params[self.emission.table])
        n, first, second = shard.nearest.step(shard.x.x, means, weights)
        halves = np.sum(means * means, axis=1) / 2.0
        squared = float(second.sum() - 2.0 * (np.sum(first * means) - n @ halves))
        items = float(weights.sum())
        score = items * constant - family.known_precision * squared / 2.0
        counts = {
            "weights": np.array(n)[None],
            self.emission.table: np.column_stack([n, first, second]),
        }
        magnitude = self.emission.magnitude(params[self.emission.table], shard)
        if how.score_only:
            counts = {}
        return Stats(counts, score, score, items, items, magnitude=magnitude)

    def classify(
        self, params: Params, shard: MixtureShard, how: EStep, local: Any = None
    ) -> IntArray:
        if self._constant(params) is None:
            return super().classify(params, shard, how, local)
        family = self.emission.family
        assert isinstance(family, Gaussian)
        assert isinstance(shard.x, Points)
        return find_classes(shard.x.x, family.means(params[self.emission.table]))

    def _constant(self, params: Params) -> float | None:
        """log π_k + log N(m_k; m_k) if it is the same for all classes; else None."""
        with np.errstate(divide="ignore"):
            logs = np.log(params["weights"].reshape(-1)) + params[self.emission.table][:, -1]
        return float(logs[0]) if np.all(logs == logs[0]) and np.isfinite(logs[0]) else None


# Emissions of a class: words, the presence of words, or points

NEGLIGIBLE = 1e-12
"""Responsibilities below this are left out of the counts, where they would take most of the time.

The bound that EM maximises loses less than this per document and class, far less than by rounding.
"""


class Emission(ABC):
    """Class-conditional distribution p(x | k), of one kind for all classes."""

    threads_inside = True
    table = "words"
    """Name of the family's parameter table."""
    family: Family

    @abstractmethod
    def joint(
        self, params: Array, x: Any, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        """Return log π_k + log p(x_d | k), (items, classes); no probability below ``floor``."""

    @abstractmethod
    def counts(self, x: Any, responsibilities: FloatArray, threads: int) -> Counts:
        """Return the sufficient statistics, given the responsibilities r_dk, (items, classes)."""

    @abstractmethod
    def tokens(self, x: Any, weights: FloatArray) -> float:
        """Return the number of observations, for perplexity."""

    def magnitude(self, params: Array, shard: MixtureShard) -> float:
        """Return the magnitude of `softcount.core.types.Stats`: 0 if all terms are
        log-probabilities, which have the same sign."""
        return 0.0

    @abstractmethod
    def needs(self, x: Any) -> tuple[float, dict[str, float]]:
        """Return the operations per E-step, and bytes in addition to the data and to what
        `MixtureCore` needs."""

    @abstractmethod
    def generate(self, params: Array, classes: IntArray, rng: Generator, size: Any) -> Any:
        """Draw new observations, one for each entry of ``classes``, as rows of a matrix."""


def _log(values: FloatArray, floor: float) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, floor) if floor else values)


class WordProbabilities(Categorical):
    """The words of each class: there may be millions, and counts become parameters in place."""

    def consume(self, how: Update, counts: Counts, old: Array, rng: Generator) -> Array:
        given = counts.flags.carray if isinstance(counts, np.ndarray) else True
        if how == "maximise" and given:
            return self._maximise(counts, old, overwrite=True)
        return self.update(how, counts, old, rng)


class BagEmission(Emission):
    """Multinomial emission of words: log p(x | k) = Σ_w x_w log θ_kw.

    (The probability is that of the word sequence: there is no multinomial coefficient.)
    """

    def __init__(self, n_classes: int, n_words: int, prior: float | Array) -> None:
        self.family = WordProbabilities((n_classes, n_words), prior)

    def joint(
        self, params: Array, x: Bags, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        _check_words(x, params.shape[1])
        words = params if x.own_words is None else np.take(params, x.own_words, axis=1)
        logs = _by_word(words, rest=1.0)
        if floor:
            np.maximum(logs, floor, out=logs)
        with np.errstate(divide="ignore"):
            np.log(logs, out=logs)
        return _sums(x.own, logs, log_weights, threads)

    def counts(self, x: Bags, responsibilities: FloatArray, threads: int) -> Counts:
        counts = count_words(x.own, responsibilities, threads)
        if x.own_words is None:
            return np.ascontiguousarray(counts.T)
        return ColumnCounts(x.own_words, np.ascontiguousarray(counts), x.n_words)

    def tokens(self, x: Bags, weights: FloatArray) -> float:
        return float(weights @ x.lengths)

    def needs(self, x: Any) -> tuple[float, dict[str, float]]:
        return _estimate_needs(x, self.family, 1, COPIES)

    def generate(self, params: Array, classes: IntArray, rng: Generator, size: Any) -> Any:
        """Draw words one by one, class by class: efficient, as documents are short compared with
        the vocabulary."""
        rows, columns = [], []
        for k in np.unique(classes):
            documents = np.flatnonzero(classes == k)
            p = params[k] / params[k].sum()
            rows.append(np.repeat(documents, size[documents]))
            columns.append(rng.choice(len(p), size[documents].sum(), p=p))
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (len(classes), params.shape[1])
        return sparse.csr_matrix((np.ones(len(row), np.int64), (row, column)), shape=shape)


def _estimate_needs(
    x: Any, family: Family, per_word: int, copies: int
) -> tuple[float, dict[str, float]]:
    """Return operations and bytes of an emission with ``per_word`` numbers per class and word.

    The bytes of "steps" are for the transposed data: several threads count word by word. What is on
    disk is read, and checked, for this.
    """
    nnz, entries = x.n_entries, n_entries(family)
    n_classes = entries / per_word / max(x.n_words, 1)
    work = 4.0 * nnz * n_classes + 8.0 * entries
    steps = 12.0 * nnz
    if isinstance(x, OnDisk):
        steps = 40.0 * nnz * n_in_memory(x) / len(x)
    return work, {"tables": copies * NUMBER * entries, "steps": steps}


def _check_words(x: Bags, n_words: int) -> None:
    """Raise a `DataError` if the data have other words than the model: kernels do not check."""
    if x.n_words != n_words:
        raise DataError(
            f"the data have {x.n_words} words, the model {n_words}",
            "give counts with the columns of the training data",
        )


def _by_word(table: FloatArray, rest: float = 0.0) -> FloatArray:
    """Return a table (classes, words) by word, its rows padded with ``rest`` to whole vectors."""
    K, V = table.shape
    by_word = empty_rows(V, padded_width(K))
    kernels.transpose(table, rest, by_word)
    return by_word


def _sums(x: Bags, weights: FloatArray, offsets: FloatArray, threads: int) -> FloatArray:
    """Return offset_k + Σ_w x_dw L_wk, (documents, classes)."""
    out = np.empty((len(x), len(offsets)))
    over_rows(kernels.joint, x.by_document.indptr, threads, x.by_document, weights, offsets, out)
    return out


NEAR = 1 << 20
"""With many classes, tables with fewer entries than this stay near enough to the processor to be
added to at random places, document by document; larger ones are summed word by word."""


def count_words(x: Bags, responsibilities: FloatArray, threads: int) -> FloatArray:
    """Return the expected word counts Σ_d x_dw r_dk, (words, classes), in one order or the other
    of memory."""
    n, K = responsibilities.shape
    shape, again = (x.n_words, K), x.is_used_again()
    if K <= kernels.WIDE and (threads > 1 or again):
        rows, out = empty_rows(n, padded_width(K)), np.empty((K, x.n_words))
        kernels.pad_responsibilities(responsibilities, NEGLIGIBLE, rows)
        over_rows(kernels.sum_by_word, x.by_word.indptr, threads, x.by_word, rows, out)
        return out.T
    main = kernels.main_classes(responsibilities, NEGLIGIBLE)
    if threads == 1 and (shape[0] * shape[1] < NEAR or not again):
        out = np.zeros(shape)
        kernels.counts_by_document(x.by_document, main, out)
        return out
    out = np.empty(shape, order="F")
    over_rows(kernels.counts_by_word, x.by_word.indptr, threads, x.by_word, main, out)
    return out


class WordPresence(Categorical):
    """A Bernoulli for each class and word: rows (absent, present), class by class.

    Classes are alike if their Bernoullis are equal for every word.
    """

    TOLERANCE = 1e-9

    def __init__(self, n_classes: int, n_words: int, prior: float | Array) -> None:
        super().__init__((n_classes * n_words, 2), prior)
        self.n_classes = n_classes

    def __reduce__(self) -> tuple[Any, ...]:  # rows are many, and all the same
        return type(self), (self.n_classes, self.n_rows // self.n_classes, self.alpha)

    def expected_log(self, counts: Counts, params: Array) -> float:
        """Return ⟨counts, log θ⟩, with tiny counts of zero-probability events taken as zero.

        Such counts are artefacts: the count of absences is a difference, from which
        responsibilities too small to be counted as presences (`NEGLIGIBLE`) are not subtracted.
        """
        table, probabilities = (np.asarray(each).reshape(-1, 2) for each in (counts, params))
        least = self.TOLERANCE * (1.0 + table.sum(axis=1, keepdims=True))
        never = (probabilities == 0.0) & (table <= least)
        return super().expected_log(np.where(never, 0.0, table), probabilities)

    def alike(self, params: Array) -> bool | None:
        if self.n_classes < 2:
            return None
        classes = params.reshape(self.n_classes, -1)
        return bool(np.all(np.abs(classes - classes[0]) <= self.TOLERANCE))


class PresenceEmission(Emission):
    """Bernoulli emission: every word of the vocabulary is independently present or absent.

    log p(x | k) = Σ_w log p_kw^0 + Σ_{w ∈ x} (log p_kw^1 − log p_kw^0). The table has a row for
    each class and word: the probabilities that the word is absent and present.
    """

    def __init__(self, n_classes: int, n_words: int, prior: float | Array) -> None:
        if n_classes * n_words > MAX_WHOLE:
            raise LearnerError(
                f"{n_classes:,} classes of {n_words:,} words need a Bernoulli for every class and "
                f"word, more than the limit of {MAX_WHOLE:,}",
                "use fewer classes, or fewer words",
            )
        self.shape = (n_classes, n_words)
        self.family = WordPresence(n_classes, n_words, prior)

    def _probabilities(self, params: Array) -> tuple[FloatArray, FloatArray]:
        """Return p(absent) and p(present), each (classes, words)."""
        table = params.reshape(*self.shape, 2)
        return table[:, :, 0], table[:, :, 1]

    def joint(
        self, params: Array, x: Bags, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        absent, present = self._probabilities(params)
        _check_words(x, self.shape[1])
        # words that are never absent: log 0 = −inf would make the differences of logs NaN, so that
        # documents which lack such words are handled below
        certain = absent <= floor
        log_absent = np.log(np.where(certain, 1.0, absent))
        odds = _by_word(_log(present, floor) - log_absent)
        joint = _sums(x, odds, log_weights + log_absent.sum(axis=1), threads)
        if certain.any():
            indicator = _by_word(-certain.astype(np.float64))
            n_missing = _sums(x, indicator, certain.sum(axis=1).astype(np.float64), threads)
            incomplete = n_missing > 0.0
            joint[incomplete] += n_missing[incomplete] * _log(np.array(floor), floor)
        return joint

    def counts(self, x: Bags, responsibilities: FloatArray, threads: int) -> FloatArray:
        present = count_words(x, responsibilities, threads).T
        absent = np.maximum(responsibilities.sum(axis=0)[:, None] - present, 0.0)
        return np.stack([absent, present], axis=2).reshape(-1, 2)

    def tokens(self, x: Bags, weights: FloatArray) -> float:
        """Return the number of observations: each word of the vocabulary is one, present or not."""
        return float(weights.sum() * x.n_words)

    def needs(self, x: Any) -> tuple[float, dict[str, float]]:
        return _estimate_needs(x, self.family, 2, COPIES + 2)

    def generate(self, params: Array, classes: IntArray, rng: Generator, size: Any) -> Any:
        _, present = self._probabilities(params)
        drawn = rng.random((len(classes), self.shape[1])) < present[classes]
        return sparse.csr_matrix(drawn.astype(np.int64))


class PointEmission(Emission):
    """Gaussian emission of points: log p(x | k) = log N(x; μ_k, Σ_k)."""

    threads_inside = False
    table = "points"
    family: Gaussian

    def __init__(self, family: Gaussian) -> None:
        self.family = family

    def joint(
        self, params: Array, x: Points, log_weights: FloatArray, threads: int, floor: float
    ) -> FloatArray:
        logs = self.family.log_density(params, x.x, x.outer(self.family.form))
        logs += log_weights
        return logs

    def counts(self, x: Points, responsibilities: FloatArray, threads: int) -> FloatArray:
        return self.family.statistics(x.x, responsibilities, x.outer(self.family.form))

    def tokens(self, x: Points, weights: FloatArray) -> float:
        return float(weights.sum())

    def magnitude(self, params: Array, shard: MixtureShard) -> float:
        """Return Σ w xᵀ P x, P the precisions.

        Distances are computed from squares and products, not from differences, and for points far
        from the overall mean these terms are far larger than the distances themselves.
        """
        moments = shard.second_moments(self.family.form)
        if moments is None:  # full covariances: distances are computed from differences
            return 0.0
        return float(moments @ self.family.precisions(params).max(axis=0))

    def needs(self, x: Any) -> tuple[float, dict[str, float]]:
        n, D = len(x), x.n_dims
        K, cells = self.family.n_rows, self.family.form.n_cells
        full = isinstance(self.family.form, FullCovariance)
        work = 4.0 * n * K * max(cells, D) + 4.0 * K * D * cells
        n = n_in_memory(x)
        squares = NUMBER * (min(n, BLOCK) * K * D if full else 2 * n * cells)
        # the users' points are copied, and the copy is centred
        tables = COPIES * NUMBER * n_entries(self.family)
        return work, {"tables": tables, "steps": NUMBER * n * D + squares}

    def generate(self, params: Array, classes: IntArray, rng: Generator, size: Any) -> FloatArray:
        means, precisions = self.family.means(params), self.family.precisions(params)
        noise = rng.standard_normal((len(classes), self.family.n_dims))
        return means[classes] + self.family.form.whiten(noise, precisions[classes])
