"""Where learning a mixture begins: k-means, moments, anchor words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import softmax

from softcount.core.errors import DataError, LearnerError
from softcount.core.estimate import NUMBER
from softcount.core.fit import fit
from softcount.core.types import Array, Params
from softcount.families import Categorical, Gaussian
from softcount.kernels.threads import single_threaded
from softcount.learners.base import Learner
from softcount.learners.named import EM, HardEM
from softcount.mixture.core import MixtureCore, PointEmission
from softcount.mixture.data import ClassConstraints, Items, Points
from softcount.text.bags import Bags
from softcount.topics.anchors import common_words, find_corners, mixture_weights, word_scale


def frequencies(counts: csr_matrix, weights: Array) -> Array:
    """How often each word occurs, as probabilities."""
    total = counts.T @ weights
    return total / total.sum()  # type: ignore[no-any-return]


def settle(
    counts: csr_matrix,
    weights: Array,
    mix: Array,
    words: Array,
    n_components: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """π and θ after one posterior average, filled up to ``n_components`` classes.

    ``mix`` and ``words`` come from moments: right up to O(N^−½), with entries clipped at zero.
    A blend of N^−½ with the overall frequencies opens those again; averaging the documents by
    their posteriors (one EM step, whose fixed point in the limit is the truth) takes up what
    pairs and triples leave unused. One pseudo-word a class keeps every word of the data possible.
    """
    overall = frequencies(counts, weights)
    blend = 1.0 / np.sqrt(1.0 + counts.shape[0])
    words = (1 - blend) * words + blend * overall
    mix = (1 - blend) * mix + blend / len(mix)
    log_joint = counts @ np.log(np.where(words > 0, words, 1.0)).T + np.log(mix)
    posterior = softmax(log_joint, axis=1) * weights[:, None]
    size = posterior.sum(axis=0)
    alive = size >= min(0.5, size.max())  # half a document, unless there is not that much
    words = (counts.T @ posterior[:, alive]).T + overall
    words /= words.sum(axis=1, keepdims=True)
    return _filled(counts, size[alive] / size[alive].sum(), words, overall, n_components, rng)


def _filled(
    counts: csr_matrix,
    mix: Array,
    words: Array,
    overall: Array,
    n_components: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Classes that the moments do not show: overall frequencies, half way to some document."""
    missing = n_components - len(mix)
    if not missing:
        return mix, words
    some = counts[rng.choice(counts.shape[0], missing)].toarray()
    some /= some.sum(axis=1, keepdims=True)
    mix = np.append(mix * (len(mix) / n_components), np.full(missing, 1 / n_components))
    return mix, np.vstack([words, (some + overall) / 2])


# Word co-occurrence inside documents: the second moment of a mixture, and its main directions.
#
# A document of class z has words drawn from θ_z, each for itself. Two different tokens of a
# document then follow M₂ = Σ_k π_k θ_k θ_kᵀ, which a document's counts c estimate without bias by
# (c cᵀ − diag c) / n(n − 1): the pairs of *different* tokens (Anandkumar, Ge, Hsu, Kakade,
# Telgarsky 2014, "Tensor decompositions for learning latent variable models"). Nothing V×V is ever
# built unless V is small.
#
# How much each document weighs is ours to choose, as any weights that do not look at the words
# leave the θ unbiased. We weigh by tokens: one pair from a two-word note is far noisier than the
# average of thousands from an essay. A long or odd document must then not make up a direction on
# its own, so its leverage, its share of one whitened direction, is capped (see `whiten`).


_SMALL = 300  # up to this many words a dense decomposition is the quickest
_ROUNDS = 6  # of capping leverage; more change nothing on real text
_RANK = 1e-8  # directions weaker than this part of the strongest are rounding error
_NOTHING = 1e-12  # where the strongest is about 1


def checked(
    counts: csr_matrix, n_components: int, weights: Array | None
) -> tuple[csr_matrix, Array]:
    """Counts with one entry a word and no empty documents, and the documents' weights (mean 1)."""
    matrix = csr_matrix(counts, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if n_components < 1:
        raise LearnerError(
            f"a mixture of {n_components} classes cannot be estimated", "n_components ≥ 1"
        )
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise DataError(
            "word counts must be finite and not negative", "look for NaN, inf or centred columns"
        )
    weight = np.ones(matrix.shape[0]) if weights is None else np.asarray(weights, np.float64)
    if weight.shape != (matrix.shape[0],) or not np.isfinite(weight).all() or (weight < 0).any():
        raise DataError(
            f"document weights must be {matrix.shape[0]} finite numbers ≥ 0", "one for each row"
        )
    used = (weight > 0) & (matrix.sum(axis=1).A1 > 0)
    if not used.any():
        raise DataError("no document has a word in it", "give at least one document with words")
    matrix.eliminate_zeros()
    return matrix[used], weight[used] / weight[used].mean()


def like(counts: csr_matrix, data: Array) -> csr_matrix:
    """A matrix with the places of ``counts`` and the values ``data``."""
    return csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class WordPairs:
    """M₂ = Σ_d ω_d (c cᵀ − diag s) / pairs_d, kept as its parts.

    ``same``   s, the pairs of a token with itself: c, or c² where c < 1, so that s never takes
               away more than there is
    ``share``  ω, how much each document weighs; sums to one, zero where there is no pair
    """

    counts: csr_matrix
    same: csr_matrix
    share: Array

    @classmethod
    def of(cls, counts: csr_matrix, weights: Array) -> WordPairs:
        same = like(counts, np.minimum(counts.data, counts.data**2))
        tokens = counts.sum(axis=1).A1
        pairs = tokens**2 - same.sum(axis=1).A1
        share = np.where(pairs > 1e-9 * tokens**2, weights * tokens, 0.0)
        if not share.any():
            raise DataError(
                "no document has two words, so there is no co-occurrence to learn from",
                "spectral estimates need longer documents; start from k-means or at random",
            )
        return cls(counts, same, share / share.sum())

    @property
    def tokens(self) -> Array:
        return self.counts.sum(axis=1).A1  # type: ignore[no-any-return]

    @property
    def per_pair(self) -> Array:
        """ω_d / pairs_d."""
        pairs = self.tokens**2 - self.same.sum(axis=1).A1
        factor: Array = np.zeros_like(pairs)
        np.divide(self.share, pairs, out=factor, where=self.share > 0)
        return factor

    def first(self) -> Array:
        """p = M₂ 1, how often a word is one of a pair; sums to one."""
        factor = self.per_pair
        first = self.counts.T @ (factor * self.tokens) - self.same.T @ factor
        return np.maximum(first, 0.0)  # type: ignore[no-any-return]

    def operator(self, scale: Array) -> LinearOperator:
        """x ↦ S M₂ S x with S = diag ``scale``, on the words whose scale is not zero."""
        used = np.flatnonzero(scale)
        factor, scale = self.per_pair, scale[used]
        diagonal = (scale**2 * (self.same.T @ factor)[used])[:, None]
        counts = self.counts[:, used]
        scaled = like(counts, counts.data * scale[counts.indices])

        def apply(x: Array) -> Array:
            x = x.reshape(len(used), -1)
            y: Array = scaled.T @ (factor[:, None] * (scaled @ x)) - diagonal * x
            return y

        return LinearOperator(
            (len(used), len(used)),
            matvec=lambda x: apply(x).ravel(),
            matmat=apply,
            dtype=np.float64,
        )


@dataclass(frozen=True)
class Whitening:
    """The main directions of S M₂ S: values, and vectors as columns.

    ``first``  p = M₂ 1
    ``scale``  S = diag p^−½ as it was before any document was capped: the sampling noise of
               frequent and rare words becomes alike. Zero for words in too few documents.
    """

    pairs: WordPairs
    first: Array
    scale: Array
    values: Array
    vectors: Array

    def whitener(self) -> Array:
        """W, V×r, with Wᵀ M₂ W = 1."""
        return self.scale[:, None] * self.vectors / np.sqrt(self.values)

    def unscaled(self) -> Array:
        """S^−1 U, V×r: where columns of M₂ lie, up to their combination."""
        used = self.scale > 0
        return self.vectors * np.divide(used, self.scale, out=0.0 * self.scale, where=used)[:, None]

    def leverage(self) -> Array:
        """h_d = ω_d tr(Wᵀ P_d W), P_d the document's own M₂: its share of the r directions.

        About 1 for a document that makes up a direction on its own; 1/m for one of m equal
        documents that do. Sums to r.
        """
        map_ = self.whitener()
        white = self.pairs.counts @ map_
        own = np.einsum("dk,dk->d", white, white)
        own -= self.pairs.same @ np.einsum("vk,vk->v", map_, map_)
        return self.pairs.per_pair * own  # type: ignore[no-any-return]


def whiten(
    counts: csr_matrix, n_components: int, rng: np.random.Generator, weights: Array
) -> Whitening:
    """The K main directions of the second moment, none of them made up by a few documents.

    Where the model is right, K/N is the usual leverage, and the cap max(1/√N, 3K/N) is out of
    reach; on real text it holds down quoted, repetitive and very long posts, which would else take
    most of the directions for themselves. Rare words are left out (`word_scale`).
    """
    pairs = WordPairs.of(counts, weights)
    scale = _scale(pairs)
    n = int((pairs.share > 0).sum())
    cap = weights * max(n**-0.5, 3 * n_components / n)
    for _ in range(_ROUNDS):
        leverage = _directions(pairs, scale, n_components, rng, tolerance=1e-2).leverage()
        if (leverage <= cap).all():
            break
        share = pairs.share * np.minimum(1.0, cap / np.maximum(leverage, cap))
        pairs = replace(pairs, share=share / share.sum())
    return _directions(pairs, scale, n_components, rng, tolerance=1e-9)


def _scale(pairs: WordPairs) -> Array:
    first = pairs.first()
    within = np.bincount(pairs.counts.indices, minlength=len(first))
    return word_scale(first, within, pairs.counts.shape[0])


def _directions(
    pairs: WordPairs, scale: Array, n_components: int, rng: np.random.Generator, tolerance: float
) -> Whitening:
    values, vectors = _largest(pairs.operator(scale), n_components, rng, tolerance)
    order = np.argsort(-values, kind="stable")[:n_components]
    order = order[values[order] > _RANK * max(values[order[0]], _NOTHING)]
    if not len(order):
        raise _no_directions()
    all_words = np.zeros((len(scale), len(order)))
    all_words[scale > 0] = vectors[:, order]
    return Whitening(pairs, pairs.first(), scale, values[order], all_words)


def _largest(
    operator: LinearOperator, k: int, rng: np.random.Generator, tolerance: float
) -> tuple[Array, Array]:
    size = operator.shape[0]
    if size <= max(_SMALL, 3 * k):
        dense = operator @ np.eye(size)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
        return values, vectors
    try:
        found: tuple[Array, Array] = eigsh(
            operator, k, which="LA", v0=rng.random(size), tol=tolerance
        )
    except ArpackNoConvergence as error:
        found = error.eigenvalues, error.eigenvectors
        if not len(found[0]):
            raise _no_directions() from error
    except ArpackError as error:
        raise _no_directions() from error
    return found


def _no_directions() -> LearnerError:
    return LearnerError(
        "the directions of word co-occurrence could not be found",
        "use fewer classes, leave out rare words, or start from k-means",
    )


# A document mixture from its first three moments: whitening and the tensor power method.
#
# Three different tokens of a document follow M₃ = Σ_k π_k θ_k ⊗ θ_k ⊗ θ_k. With W from the second
# moment (Wᵀ M₂ W = 1) the vectors v_k = √π_k Wᵀ θ_k are orthonormal, and M₃(W, W, W) = Σ_k π_k^−½
# v_k ⊗ v_k ⊗ v_k: an r×r×r tensor whose robust eigenvectors the power method finds without local
# optima (Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014).


_LARGEST = 256  # K of the K×K×K tensor
_BLOCK = 2_000_000  # numbers held at once while it is summed
_STARTS = 30  # whitened documents; and a third as many random vectors
_POWER_STEPS = 15


def estimate_from_moments(
    counts: csr_matrix, n_components: int, rng: np.random.Generator, weights: Array | None = None
) -> tuple[Array, Array]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    Consistent where every document has one class and at least three words, and the θ_k are
    linearly independent. Classes that the moments do not show are filled in near the overall
    frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate_from_moments(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    counts, weights = checked(counts, n_components, weights)
    if n_components == 1:
        return np.ones(1), frequencies(counts, weights)[None]
    if n_components > _LARGEST:
        raise LearnerError(
            f"the tensor of {n_components} classes is too large",
            f'use at most {_LARGEST} classes, or anchor words: init="anchor"',
        )
    with single_threaded():
        white = whiten(counts, n_components, rng, weights)
        mix, words = _unwhitened(white, power_method(*whitened_triples(white), rng))
        return settle(counts, weights, mix, words, n_components, rng)


def whitened_triples(white: Whitening) -> tuple[Array, Array]:
    """M₃(W, W, W) and the whitened counts Wᵀc of the documents of three words or more.

    Triples of different tokens: c ⊗ c ⊗ c without those that use a token twice, Σ_i s_i e_i⊗e_i⊗c
    in three orders, which takes away too many that use it three times: Σ_i t_i e_i⊗e_i⊗e_i back.
    For whole numbers s = c, t = 2c; else c(c − 1) and c(c − 1)(c − 2) are clipped at zero.
    """
    pairs, map_ = white.pairs, white.whitener()
    c, s = pairs.counts.data, pairs.same.data
    thrice = like(pairs.counts, (c**2 - s) * np.maximum(c - 2, 0) - c**3 + 3 * s * c)
    tokens = pairs.tokens
    same = pairs.same.sum(axis=1).A1
    triples = tokens**3 - 3 * tokens * same + thrice.sum(axis=1).A1
    usable = (triples > 1e-6 * tokens**3) & (pairs.share > 0)
    if not usable.any():
        raise DataError(
            "no document has three words, so there is no third moment",
            'anchor words need only two (init="anchor"); or start from k-means or at random',
        )
    factor = np.where(usable, pairs.share, 0.0) / pairs.share[usable].sum()
    factor = np.divide(factor, triples, out=np.zeros_like(factor), where=usable)
    documents = pairs.counts @ map_
    tensor = _cubes(documents * factor[:, None], documents, documents)
    twice = _cubes(pairs.same.T @ (factor[:, None] * documents), map_, map_)
    tensor -= twice + twice.transpose(1, 0, 2) + twice.transpose(1, 2, 0)
    tensor += _cubes((thrice.T @ factor)[:, None] * map_, map_, map_)
    return tensor, documents[usable]


def _cubes(a: Array, b: Array, c: Array) -> Array:
    """Σ_n a_n ⊗ b_n ⊗ c_n."""
    r = a.shape[1]
    total = np.zeros((r, r * r))
    step = max(1, _BLOCK // (r * r))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        total += a[rows].T @ (b[rows, :, None] * c[rows, None, :]).reshape(-1, r * r)
    return total.reshape(r, r, r)


def power_method(tensor: Array, documents: Array, rng: np.random.Generator) -> Array:
    """Orthonormal-up-to-noise rows v_k of a symmetric tensor Σ_k λ_k v_k ⊗ v_k ⊗ v_k, λ_k > 0.

    v ← T(·, v, v) / ‖·‖ from many starts, half a dozen of which suffice as a rule: whitened
    documents point to their own class already. The start with the largest T(v, v, v) is followed to
    the end and taken out of the tensor, r times.
    """
    rest = tensor.copy()
    axes = np.zeros((0, len(tensor)))
    for _ in range(len(tensor)):
        starts = np.vstack(
            [
                documents[rng.choice(len(documents), _STARTS)],
                rng.normal(size=(_STARTS // 3, len(tensor))),
            ]
        )
        starts -= (starts @ np.linalg.pinv(axes)) @ axes
        for _ in range(_POWER_STEPS):
            starts = _unit(_applied(rest, starts))
        best = starts[[np.argmax(_values(rest, starts))]]
        for _ in range(_POWER_STEPS):
            best = _unit(_applied(rest, best))
        rest -= _values(rest, best)[0] * _cubes(best, best, best)
        axes = np.vstack([axes, best])
    return axes


def _applied(tensor: Array, vectors: Array) -> Array:
    """T(·, v, v) for each row v."""
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    applied: Array = squares @ tensor.reshape(len(tensor), -1).T
    return applied


def _values(tensor: Array, vectors: Array) -> Array:
    """T(v, v, v) for each row v."""
    values: Array = np.einsum("nk,nk->n", _applied(tensor, vectors), vectors)
    return values


def _unit(rows: Array) -> Array:
    lengths: Array = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-150)  # shorter ones have no direction: squares vanish


def _unwhitened(white: Whitening, axes: Array) -> tuple[Array, Array]:
    """π and θ from the tensor's axes.

    θ_k ∝ S^−1 U Λ^½ v_k, its sign such that most of it is positive, the rest clipped. For π we do
    not trust the eigenvalues (π = 1/λ² squares their noise): Σ_k π_k θ_k must give the first
    moment, which is non-negative least squares in the whitened directions.
    """
    words = (axes * np.sqrt(white.values)) @ white.unscaled().T
    words *= np.where(words.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    words = np.maximum(words, 0.0)
    total = words.sum(axis=1, keepdims=True)
    words = np.where(total > 0, words / np.where(total > 0, total, 1.0), white.first)
    seen = (words * white.scale) @ white.vectors
    mix, _ = nnls(seen.T, (white.first * white.scale) @ white.vectors, maxiter=100 * len(axes))
    return mix / max(mix.sum(), 1e-300), words


# A document mixture from anchor words: words that (nearly) only one class uses.
#
# The words that occur beside word i follow Σ_k p(k | i) θ_k: every row of the row-normalised co-
# occurrence lies in the simplex that the θ_k span, and the row of an anchor word is a corner of it.
# So: find the corners, write every row as a mixture of them, and turn p(k | i) round with Bayes'
# rule (Arora, Ge, Halpern, Mimno, Moitra, Sontag, Wu, Zhu 2013, "A practical algorithm for topic
# modeling with provable guarantees").
#
# Where they project the rows at random, we project on the main directions of co-occurrence: the
# noise of rare words else looks like corners. Distances are χ², so that no column counts only
# because its word is frequent.


def estimate_from_anchors(
    counts: csr_matrix, n_components: int, rng: np.random.Generator, weights: Array | None = None
) -> tuple[Array, Array]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    As good as the anchor words are; documents need two words. Classes for which there is no corner
    are filled in near the overall frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate_from_anchors(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    counts, weights = checked(counts, n_components, weights)
    if n_components == 1:
        return np.ones(1), frequencies(counts, weights)[None]
    with single_threaded():
        mix, words = _by_corners(whiten(counts, n_components, rng, weights), n_components)
        return settle(counts, weights, mix, words, n_components, rng)


def _by_corners(white: Whitening, n_components: int) -> tuple[Array, Array]:
    """π and θ by Bayes' rule: θ_k(i) ∝ p(k | i) p(i)."""
    rows = neighbours(white)
    seen = np.flatnonzero(_usable(white))
    corners = find_corners(rows, _candidates(white, n_components), n_components)
    joint = np.zeros((len(corners), len(rows)))
    joint[:, seen] = (mixture_weights(rows[seen], rows[corners]) * white.first[seen, None]).T
    mix = joint.sum(axis=1)
    return mix / mix.sum(), joint / mix[:, None]


def neighbours(white: Whitening) -> Array:
    """The rows of D^−1 M₂ S, D = diag p, in the main directions: what occurs beside a word; V×r."""
    usable = _usable(white)[:, None]
    rows: Array = white.unscaled() * white.values
    np.divide(rows, white.first[:, None], out=rows, where=usable)
    return rows


def _usable(white: Whitening) -> Array:
    return (white.first > 0) & (white.scale > 0)


def _candidates(white: Whitening, n_components: int) -> Array:
    counts = white.pairs.counts
    documents = np.bincount(counts.indices, minlength=counts.shape[1]) * _usable(white)
    return common_words(documents, counts.shape[0], n_components)


# k-means as the special case it is: hard EM of Gaussians of one known variance, equally common.


def spherical_core(
    name: str, n_classes: int, n_dims: int, variance: float = 1.0, learner: Learner | None = None
) -> MixtureCore:
    """Equally common classes of one known variance; ``learner``: the default one, None: EM."""
    weights = Categorical((1, n_classes), frozen=np.array([True]))
    family = Gaussian(n_classes, n_dims, "identity", known=variance)
    return MixtureCore(name, weights, PointEmission(family), learner or EM())


def spread_out(x: Array, n_classes: int, weights: Array, rng: np.random.Generator) -> Array:
    """Centres by k-means++ (Arthur & Vassilvitskii 2007): points far from each other.

    Where there are fewer different points than classes, some centres are the same.
    """
    from sklearn.cluster import kmeans_plusplus

    few = min(n_classes, len(x))
    seed = int(rng.integers(2**31))
    with single_threaded(), np.errstate(all="ignore"):
        centres, _ = kmeans_plusplus(x, few, sample_weight=weights, random_state=seed)
    return np.vstack([centres, x[rng.integers(len(x), size=n_classes - few)]])


def about(core: MixtureCore, items: Items, centres: Array) -> dict[str, Array]:
    """Classes about some centres, of the spread that is known, or that all data have together."""
    family = core.emission.family
    assert isinstance(family, Gaussian)
    points = family.uniform()
    if not family.known:
        everything = np.repeat(items.known.weights[:, None], core.n_classes, axis=1)
        rng = np.random.default_rng(0)  # not drawn from: all classes are the same so far
        points = core.from_responsibilities(items.x, everything, rng)[core.emission.table]
    return {
        "weights": core.families["weights"].uniform(),
        core.emission.table: family.move_means(points, centres),
    }


def cluster(x: Array, n_classes: int, weights: Array, rng: np.random.Generator) -> Array:
    """The class of each point by k-means, from one k-means++ start."""
    core = spherical_core("k-means", n_classes, x.shape[1], learner=HardEM())
    items = Items(
        Points(x), ClassConstraints.nothing(len(x), n_classes, weights), core.emission.cut
    )
    start = about(core, items, spread_out(x, n_classes, weights, rng))
    found = fit(core, items, init=start).params
    labels: Array = core.joint(found, items.x).argmax(axis=1)
    return labels


# Where to begin: functions (core, items, rng) → parameters.


SVD_DIMENSIONS = 100
SVD_WORDS = 1 << 17
"""Words that an SVD looks at: 300 MB, of which there would be 2.7 GB for a million words."""


def at_random(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Items dealt out to classes at random, each mostly to one: classes near the mean of all."""
    n, K = len(items), core.n_classes
    responsibilities = rng.dirichlet(np.full(K, 1.0), size=n) if n else np.zeros((0, K))
    return core.from_responsibilities(items.x, responsibilities * items.known.weights[:, None], rng)


def uniform(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Every class the same: EM cannot move from here, and says so."""
    return {name: family.uniform() for name, family in core.families.items()}


def by_labels(core: MixtureCore, items: Items, labels: Array, rng: np.random.Generator) -> Params:
    """Parameters that fit items of these classes."""
    responsibilities = np.zeros((len(items), core.n_classes))
    responsibilities[np.arange(len(items)), labels] = items.known.weights
    return core.from_responsibilities(items.x, responsibilities, rng)


def kmeans_of_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means of documents as points: tf-idf, reduced by a truncated SVD, made one length."""
    matrix = _telling(_matrix(items))
    seed = int(rng.integers(2**31))
    if matrix.nnz == 0 or min(matrix.shape) < 2:
        return at_random(core, items, rng)  # there is no space to speak of
    from softcount.text.semantic_space import SemanticSpace  # scikit-learn comes with it

    points = SemanticSpace.of(matrix, SVD_DIMENSIONS, seed).points(matrix)
    labels = cluster(points, core.n_classes, items.known.weights, rng)
    return by_labels(core, items, labels, rng)


def _telling(matrix: Any) -> Any:
    """The columns of words that tell documents apart, where there are too many of them.

    An SVD needs some hundred numbers for each word. A word of a single document makes it like no
    other, and of the rest those go that the fewest documents have.
    """
    if matrix.shape[1] <= SVD_WORDS:
        return matrix
    spread = np.bincount(matrix.indices, minlength=matrix.shape[1])
    common = np.argsort(-spread, kind="stable")[:SVD_WORDS]
    return matrix[:, np.sort(common[spread[common] > 1])]


def bytes_of_kmeans(n_items: int, n_words: int) -> float:
    """What `kmeans_of_words` needs: tables of the SVD, and points."""
    dimensions = min(SVD_DIMENSIONS, n_items, n_words)
    words = min(n_words, SVD_WORDS)
    return NUMBER * dimensions * (3.0 * words + 2.0 * n_items)


def spectral_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """From moments of word co-occurrence by the tensor power method."""
    return _of_words(core, estimate_from_moments(*_seen(core, items, rng)))


def anchor_words(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """From words that occur in one class only."""
    return _of_words(core, estimate_from_anchors(*_seen(core, items, rng)))


def _matrix(items: Items) -> Any:
    bags = items.x
    assert isinstance(bags, Bags)
    return bags.matrix


def _points(items: Items) -> Array:
    points = items.x
    assert isinstance(points, Points)
    return points.x


def _seen(
    core: MixtureCore, items: Items, rng: np.random.Generator
) -> tuple[Any, int, np.random.Generator, Array]:
    """What moments are taken of."""
    return _matrix(items), core.n_classes, rng, items.known.weights


def _of_words(core: MixtureCore, estimate: tuple[Array, Array]) -> Params:
    weights, words = estimate
    return {"weights": weights[None], core.emission.table: words}


def kmeans_of_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means, then each class as its points say."""
    labels = cluster(_points(items), core.n_classes, items.known.weights, rng)
    return by_labels(core, items, labels, rng)


def spread_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """k-means++ (Arthur & Vassilvitskii 2007): centres far from each other, all else common."""
    return about(core, items, spread_out(_points(items), core.n_classes, items.known.weights, rng))


def random_points(core: MixtureCore, items: Items, rng: np.random.Generator) -> Params:
    """Centres at items drawn at random, all else common."""
    weights = items.known.weights
    enough = np.count_nonzero(weights) >= core.n_classes
    chosen = rng.choice(len(items), core.n_classes, replace=not enough, p=weights / weights.sum())
    return about(core, items, _points(items)[chosen])
