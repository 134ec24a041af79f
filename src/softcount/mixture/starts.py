"""Where learning a mixture begins: k-means, moments, anchor words.

A start is a function (core, items, rng) → parameters; they stand at the end of this module. Before
them come two estimates of a document mixture that need no start themselves, and k-means.

Both estimates begin with word co-occurrence inside documents. A document of class z has words drawn
from θ_z, each for itself. Two different tokens of a document then follow M₂ = Σ_k π_k θ_k θ_kᵀ,
which a document's counts c estimate without bias by (c cᵀ − diag c) / n(n − 1): the pairs of
*different* tokens (Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014, "Tensor decompositions for learning
latent variable models"). Nothing V×V is ever built unless V is small.

How much each document weighs is ours to choose, as any weights that do not look at the words leave
the θ unbiased. We weigh by tokens: one pair from a two-word note is far noisier than the average of
thousands from an essay. A long or odd document must then not make up a direction on its own, so its
leverage, its share of one whitened direction, is capped (see `whiten`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.optimize import nnls
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from scipy.special import softmax

from softcount.core.errors import DataError, LearnerError
from softcount.core.estimate import NUMBER
from softcount.core.fit import fit
from softcount.core.types import Array, BoolArray, FloatArray, IntArray, Params
from softcount.families import Categorical, Gaussian
from softcount.kernels.threads import single_threaded
from softcount.learners.base import Learner
from softcount.learners.named import EM, HardEM
from softcount.mixture.core import MixtureCore, PointEmission
from softcount.mixture.data import ClassConstraints, Items, Points
from softcount.text.bags import Bags
from softcount.topics.anchors import common_words, find_corners, mixture_weights, word_scale

_SMALL = 300  # up to this many words a dense decomposition is the quickest
_ROUNDS = 6  # of capping leverage; more change nothing on real text
_RANK = 1e-8  # directions weaker than this part of the strongest are rounding error
_NOTHING = 1e-12  # where the strongest is about 1


def _estimate(
    counts: csr_matrix,
    n_components: int,
    rng: Generator,
    weights: FloatArray | None,
    solve: Callable[[Whitening], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """π and θ by a method of moments: ``solve`` gives them from whitened co-occurrence.

    What it gives is right up to O(N^−½), with entries clipped at zero. A blend of N^−½ with the
    overall frequencies opens those again; averaging the documents by their posteriors (one EM step,
    whose fixed point in the limit is the truth) takes up what pairs and triples leave unused. One
    pseudo-word a class keeps every word of the data possible.
    """
    counts = csr_matrix(counts, dtype=np.float64, copy=True)
    counts.sum_duplicates()
    weights = np.ones(counts.shape[0]) if weights is None else weights
    used = (weights > 0) & (counts.sum(axis=1).A1 > 0)
    if not used.any():
        raise DataError("no document has a word in it", "give at least one document with words")
    counts.eliminate_zeros()
    counts, weights = counts[used], weights[used] / weights[used].mean()
    total = counts.T @ weights
    overall = total / total.sum()
    if n_components == 1:
        return np.ones(1), overall[None]
    with single_threaded():
        mix, words = solve(whiten(counts, n_components, rng, weights))
        blend = 1.0 / np.sqrt(1.0 + counts.shape[0])
        words = (1 - blend) * words + blend * overall
        mix = (1 - blend) * mix + blend / len(mix)
        log_joint = counts @ np.log(np.where(words > 0, words, 1.0)).T + np.log(mix)
        posterior = softmax(log_joint, axis=1) * weights[:, None]
        size = posterior.sum(axis=0)
        alive = size >= min(0.5, size.max())  # half a document, unless there is not that much
        mix = size[alive] / size[alive].sum()
        words = (counts.T @ posterior[:, alive]).T + overall
        words /= words.sum(axis=1, keepdims=True)
        missing = n_components - len(mix)
        if missing:  # classes that the moments do not show: half way from all words to a document
            some = counts[rng.choice(counts.shape[0], missing)].toarray()
            some /= some.sum(axis=1, keepdims=True)
            mix = np.append(mix * (len(mix) / n_components), np.full(missing, 1 / n_components))
            words = np.vstack([words, (some + overall) / 2])
        return mix, words


def like(counts: csr_matrix, data: FloatArray) -> csr_matrix:
    """A matrix with the places of ``counts`` and the values ``data``."""
    return csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class WordPairs:
    """M₂ = Σ_d ω_d (c cᵀ − diag s) / pairs_d, kept as its parts.

    ``same``     s, the pairs of a token with itself: c, or c² where c < 1, so that s never takes
                 away more than there is
    ``tokens``   how many a document has, and ``n_pairs`` of different ones
    ``share``    ω, how much each document weighs; sums to one, zero where there is no pair
    """

    counts: csr_matrix  # (documents, words)
    same: csr_matrix
    tokens: FloatArray  # (documents,)
    n_pairs: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, counts: csr_matrix, weights: FloatArray) -> WordPairs:
        same = like(counts, np.minimum(counts.data, counts.data**2))
        tokens = counts.sum(axis=1).A1
        n_pairs = tokens**2 - same.sum(axis=1).A1
        share = np.where(n_pairs > 1e-9 * tokens**2, weights * tokens, 0.0)
        if not share.any():
            raise DataError(
                "no document has two words, so there is no co-occurrence to learn from",
                "spectral estimates need longer documents; start from k-means or at random",
            )
        return cls(counts, same, tokens, n_pairs, share / share.sum())

    @property
    def per_pair(self) -> FloatArray:
        """ω_d / pairs_d."""
        factor = np.zeros_like(self.n_pairs)
        return np.divide(self.share, self.n_pairs, out=factor, where=self.share > 0)

    def first(self) -> FloatArray:
        """p = M₂ 1, how often a word is one of a pair; sums to one."""
        factor = self.per_pair
        first = self.counts.T @ (factor * self.tokens) - self.same.T @ factor
        return np.maximum(first, 0.0)  # type: ignore[no-any-return]

    def operator(self, scale: FloatArray) -> LinearOperator:
        """x ↦ S M₂ S x with S = diag ``scale``, on the words whose scale is not zero."""
        used = np.flatnonzero(scale)
        factor, scale = self.per_pair, scale[used]
        diagonal = (scale**2 * (self.same.T @ factor)[used])[:, None]
        counts = self.counts[:, used]
        scaled = like(counts, counts.data * scale[counts.indices])

        def apply(x: FloatArray) -> FloatArray:
            x = x.reshape(len(used), -1)
            y: FloatArray = scaled.T @ (factor[:, None] * (scaled @ x)) - diagonal * x
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
    first: FloatArray  # (words,)
    scale: FloatArray
    values: FloatArray  # (directions,)
    vectors: FloatArray  # (words, directions)

    def whitener(self) -> FloatArray:
        """W, V×r, with Wᵀ M₂ W = 1."""
        return self.scale[:, None] * self.vectors / np.sqrt(self.values)

    def unscaled(self) -> FloatArray:
        """S^−1 U, V×r: where columns of M₂ lie, up to their combination."""
        used = self.scale > 0
        inverse: FloatArray = np.divide(used, self.scale, out=0.0 * self.scale, where=used)
        return self.vectors * inverse[:, None]

    def leverage(self) -> FloatArray:
        """h_d = ω_d tr(Wᵀ P_d W), P_d the document's own M₂: its share of the r directions.

        About 1 for a document that makes up a direction on its own; 1/m for one of m equal
        documents that do. Sums to r.
        """
        map_ = self.whitener()
        white = self.pairs.counts @ map_
        own = np.einsum("dk,dk->d", white, white)
        own -= self.pairs.same @ np.einsum("vk,vk->v", map_, map_)
        return self.pairs.per_pair * own  # type: ignore[no-any-return]


def whiten(counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray) -> Whitening:
    """The K main directions of the second moment, none of them made up by a few documents.

    Where the model is right, K/N is the usual leverage, and the cap max(1/√N, 3K/N) is out of
    reach; on real text it holds down quoted, repetitive and very long posts, which would else take
    most of the directions for themselves. Rare words are left out (`word_scale`).
    """
    pairs = WordPairs.of(counts, weights)
    first = pairs.first()
    within = np.bincount(counts.indices, minlength=len(first))
    scale = word_scale(first, within, counts.shape[0])
    n = int((pairs.share > 0).sum())
    cap = weights * max(n**-0.5, 3 * n_components / n)
    for _ in range(_ROUNDS):
        leverage = _find_directions(pairs, scale, n_components, rng, tolerance=1e-2).leverage()
        if (leverage <= cap).all():
            break
        share = pairs.share * np.minimum(1.0, cap / np.maximum(leverage, cap))
        pairs = replace(pairs, share=share / share.sum())
    return _find_directions(pairs, scale, n_components, rng, tolerance=1e-9)


def _find_directions(
    pairs: WordPairs, scale: FloatArray, n_components: int, rng: Generator, tolerance: float
) -> Whitening:
    """The directions of the largest eigenvalues, at most ``n_components`` of them."""
    failure = LearnerError(
        "the directions of word co-occurrence could not be found",
        "use fewer classes, leave out rare words, or start from k-means",
    )
    operator = pairs.operator(scale)
    size = operator.shape[0]
    if size <= max(_SMALL, 3 * n_components):
        dense = operator @ np.eye(size)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
    else:
        try:
            values, vectors = eigsh(
                operator, n_components, which="LA", v0=rng.random(size), tol=tolerance
            )
        except ArpackNoConvergence as error:  # some may have converged
            values, vectors = error.eigenvalues, error.eigenvectors
        except ArpackError as error:
            raise failure from error
    order = np.argsort(-values, kind="stable")[:n_components]
    if len(order):
        order = order[values[order] > _RANK * max(values[order[0]], _NOTHING)]
    if not len(order):
        raise failure
    all_words = np.zeros((len(scale), len(order)))
    all_words[scale > 0] = vectors[:, order]
    return Whitening(pairs, pairs.first(), scale, values[order], all_words)


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
    counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    Consistent where every document has one class and at least three words, and the θ_k are
    linearly independent. Classes that the moments do not show are filled in near the overall
    frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate_from_moments(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    if n_components > _LARGEST:
        raise LearnerError(
            f"the tensor of {n_components} classes is too large",
            f'use at most {_LARGEST} classes, or anchor words: init="anchor"',
        )

    def solve(white: Whitening) -> tuple[FloatArray, FloatArray]:
        axes = power_method(*whitened_triples(white), rng)
        # θ_k ∝ S^−1 U Λ^½ v_k, its sign such that most of it is positive, the rest clipped
        words = (axes * np.sqrt(white.values)) @ white.unscaled().T
        words *= np.where(words.sum(axis=1) < 0, -1.0, 1.0)[:, None]
        words = np.maximum(words, 0.0)
        total = words.sum(axis=1, keepdims=True)
        words = np.where(total > 0, words / np.where(total > 0, total, 1.0), white.first)
        # for π we do not trust the eigenvalues (π = 1/λ² squares their noise): Σ_k π_k θ_k must
        # give the first moment, which is non-negative least squares in the whitened directions
        seen = (words * white.scale) @ white.vectors
        mix, _ = nnls(seen.T, (white.first * white.scale) @ white.vectors, maxiter=100 * len(axes))
        return mix / max(mix.sum(), 1e-300), words

    return _estimate(counts, n_components, rng, weights, solve)


def whitened_triples(white: Whitening) -> tuple[FloatArray, FloatArray]:
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


def _cubes(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Σ_n a_n ⊗ b_n ⊗ c_n."""
    r = a.shape[1]
    total = np.zeros((r, r * r))
    step = max(1, _BLOCK // (r * r))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        total += a[rows].T @ (b[rows, :, None] * c[rows, None, :]).reshape(-1, r * r)
    return total.reshape(r, r, r)


def power_method(tensor: FloatArray, documents: FloatArray, rng: Generator) -> FloatArray:
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


def _applied(tensor: FloatArray, vectors: FloatArray) -> FloatArray:
    """T(·, v, v) for each row v."""
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    return squares @ tensor.reshape(len(tensor), -1).T


def _values(tensor: FloatArray, vectors: FloatArray) -> FloatArray:
    """T(v, v, v) for each row v."""
    return np.einsum("nk,nk->n", _applied(tensor, vectors), vectors)  # type: ignore[no-any-return]


def _unit(rows: FloatArray) -> FloatArray:
    lengths: FloatArray = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-150)  # shorter ones have no direction: squares vanish


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
    counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Class weights π (K) and word probabilities θ (K, V) of a mixture, without a start.

    As good as the anchor words are; documents need two words. Classes for which there is no corner
    are filled in near the overall frequencies; words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate_from_anchors(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """

    def solve(white: Whitening) -> tuple[FloatArray, FloatArray]:
        rows, seen, c = neighbours(white), _usable(white), white.pairs.counts
        documents = np.bincount(c.indices, minlength=c.shape[1]) * seen
        candidates = common_words(documents, c.shape[0], n_components)
        corners = find_corners(rows, candidates, n_components)
        # θ_k(i) ∝ p(k | i) p(i)
        joint = np.zeros((len(corners), len(rows)))
        joint[:, seen] = (mixture_weights(rows[seen], rows[corners]) * white.first[seen, None]).T
        mix = joint.sum(axis=1)
        return mix / mix.sum(), joint / mix[:, None]

    return _estimate(counts, n_components, rng, weights, solve)


def neighbours(white: Whitening) -> FloatArray:
    """The rows of D^−1 M₂ S, D = diag p, in the main directions: what occurs beside a word; V×r."""
    rows: FloatArray = white.unscaled() * white.values
    return np.divide(rows, white.first[:, None], out=rows, where=_usable(white)[:, None])


def _usable(white: Whitening) -> BoolArray:
    return (white.first > 0) & (white.scale > 0)


# k-means as the special case it is: hard EM of Gaussians of one known variance, equally common.


def spherical_core(
    name: str, n_classes: int, n_dims: int, variance: float = 1.0, learner: Learner | None = None
) -> MixtureCore:
    """Equally common classes of one known variance; ``learner``: the default one, None: EM."""
    weights = Categorical((1, n_classes), frozen=np.array([True]))
    family = Gaussian(n_classes, n_dims, "identity", known=variance)
    return MixtureCore(name, weights, PointEmission(family), learner or EM())


def spread_out(x: FloatArray, n_classes: int, weights: FloatArray, rng: Generator) -> FloatArray:
    """Centres by k-means++ (Arthur & Vassilvitskii 2007): points far from each other.

    Where there are fewer different points than classes, some centres are the same.
    """
    from sklearn.cluster import kmeans_plusplus

    few = min(n_classes, len(x))
    seed = int(rng.integers(2**31))
    with single_threaded(), np.errstate(all="ignore"):
        centres, _ = kmeans_plusplus(x, few, sample_weight=weights, random_state=seed)
    return np.vstack([centres, x[rng.integers(len(x), size=n_classes - few)]])


def about(core: MixtureCore, items: Items, centres: FloatArray) -> dict[str, Array]:
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


def cluster(x: FloatArray, n_classes: int, weights: FloatArray, rng: Generator) -> IntArray:
    """The class of each point by k-means, from one k-means++ start."""
    core = spherical_core("k-means", n_classes, x.shape[1], learner=HardEM())
    known = ClassConstraints.nothing(len(x), n_classes, weights)
    items = Items(Points(x), known, core.emission.cut)
    start = about(core, items, spread_out(x, n_classes, weights, rng))
    labels: IntArray = core.joint(fit(core, items, init=start).params, items.x).argmax(axis=1)
    return labels


# Starts of any mixture: functions (core, items, rng) → parameters.

Start = Callable[[MixtureCore, Items, Generator], Params]


def at_random(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """Items dealt out to classes at random, each mostly to one: classes near the mean of all."""
    n, K = len(items), core.n_classes
    responsibilities = rng.dirichlet(np.full(K, 1.0), size=n) if n else np.zeros((0, K))
    return core.from_responsibilities(items.x, responsibilities * items.known.weights[:, None], rng)


def uniform(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """Every class the same: EM cannot move from here, and says so."""
    return {name: family.uniform() for name, family in core.families.items()}


def by_kmeans(core: MixtureCore, items: Items, points: FloatArray, rng: Generator) -> Params:
    """k-means of the items as these points, then each class as its items say."""
    labels = cluster(points, core.n_classes, items.known.weights, rng)
    responsibilities = np.zeros((len(items), core.n_classes))
    responsibilities[np.arange(len(items)), labels] = items.known.weights
    return core.from_responsibilities(items.x, responsibilities, rng)


# Starts of mixtures of documents.

SVD_DIMENSIONS = 100
SVD_WORDS = 1 << 17
"""Words that an SVD looks at: 300 MB, of which there would be 2.7 GB for a million words."""


def kmeans_of_words(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """k-means of documents as points: tf-idf, reduced by a truncated SVD, made one length.

    An SVD needs some hundred numbers for each word. Where there are too many words, those of a
    single document go, which make it like no other, and of the rest those that the fewest have.
    """
    matrix = _counts_of(items)
    if matrix.shape[1] > SVD_WORDS:
        spread = np.bincount(matrix.indices, minlength=matrix.shape[1])
        common = np.argsort(-spread, kind="stable")[:SVD_WORDS]
        matrix = matrix[:, np.sort(common[spread[common] > 1])]
    seed = int(rng.integers(2**31))
    if matrix.nnz == 0 or min(matrix.shape) < 2:
        return at_random(core, items, rng)  # there is no space to speak of
    from softcount.text.semantic_space import SemanticSpace  # scikit-learn comes with it

    points = SemanticSpace.of(matrix, SVD_DIMENSIONS, seed).points(matrix)
    return by_kmeans(core, items, points, rng)


def bytes_of_kmeans(n_items: int, n_words: int) -> float:
    """What `kmeans_of_words` needs: tables of the SVD, and points."""
    dimensions = min(SVD_DIMENSIONS, n_items, n_words)
    words = min(n_words, SVD_WORDS)
    return NUMBER * dimensions * (3.0 * words + 2.0 * n_items)


def by_estimate(
    estimate: Callable[..., tuple[FloatArray, FloatArray]],
    core: MixtureCore,
    items: Items,
    rng: Generator,
) -> Params:
    """What `estimate_from_moments` or `estimate_from_anchors` gives."""
    mix, words = estimate(_counts_of(items), core.n_classes, rng, items.known.weights)
    return {"weights": mix[None], core.emission.table: words}


def _counts_of(items: Items) -> csr_matrix:
    assert isinstance(items.x, Bags)
    return items.x.matrix


# Starts of mixtures of points.


def kmeans_of_points(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """k-means, then each class as its points say."""
    return by_kmeans(core, items, _points_of(items), rng)


def spread_points(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """k-means++ (Arthur & Vassilvitskii 2007): centres far from each other, all else common."""
    weights = items.known.weights
    return about(core, items, spread_out(_points_of(items), core.n_classes, weights, rng))


def random_points(core: MixtureCore, items: Items, rng: Generator) -> Params:
    """Centres at items drawn at random, all else common."""
    weights = items.known.weights
    enough = np.count_nonzero(weights) >= core.n_classes
    chosen = rng.choice(len(items), core.n_classes, replace=not enough, p=weights / weights.sum())
    return about(core, items, _points_of(items)[chosen])


def _points_of(items: Items) -> FloatArray:
    assert isinstance(items.x, Points)
    return items.x.x
