"""Initial parameters of mixtures: k-means, moments, anchor words.

A start is a function (core, items, rng) → parameters; the starts are at the end of this module.
Before them come two estimators of a document mixture that need no initial values themselves, and
k-means.

Both estimators use word co-occurrence within documents. The words of a document of class z are
drawn independently from θ_z. So two different tokens of a document have the joint distribution
M₂ = Σ_k π_k θ_k θ_kᵀ, which a document's counts c estimate without bias by
(c cᵀ − diag c) / n(n − 1): the pairs of *different* tokens (Anandkumar, Ge, Hsu, Kakade, Telgarsky
2014, "Tensor decompositions for learning latent variable models"). No V×V matrix is built unless V
is small.

The weights of documents are a free choice, as any weights that do not depend on the words leave the
estimates of θ unbiased. Documents are weighted by their number of tokens: one pair from a two-word
note is far noisier than the average of thousands from an essay. But a long or unusual document must
not determine a direction on its own, so its leverage, its share of one whitened direction, is
capped (see `whiten`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix
from scipy.special import softmax

from softcount.core.errors import DataError, LearnerError
from softcount.core.estimate import NUMBER
from softcount.core.fit import fit
from softcount.core.types import Array, BoolArray, FloatArray, IntArray, Params
from softcount.families import Categorical, Gaussian
from softcount.kernels.threads import single_threaded
from softcount.learners.named import EM, HardEM
from softcount.mixture.core import KMeansCore, MixtureCore, PointEmission
from softcount.mixture.data import ClassConstraints, MixtureCorpus, OnDisk, Points
from softcount.mixture.lloyd import find_classes
from softcount.text.bags import Bags
from softcount.topics.anchors import common_words, find_corners, mixture_weights, word_scale

if TYPE_CHECKING:  # its import takes longer than many fits, and only some starts need it
    from scipy.sparse.linalg import LinearOperator

_SMALL = 300  # up to this many words a dense eigendecomposition is the fastest
_ROUNDS = 6  # of capping leverage; more change nothing on real text
_RANK = 1e-8  # eigenvalues below this fraction of the largest are rounding error
_NOTHING = 1e-12  # the largest eigenvalue, normally about 1, is taken to be at least this


def _estimate_by_moments(
    counts: csr_matrix,
    n_components: int,
    rng: Generator,
    weights: FloatArray | None,
    solve: Callable[[Whitening], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """Estimate π (K) and θ (K, V) by a method of moments.

    ``solve``  returns π and θ from whitened co-occurrence

    Its result is accurate up to O(N^−½), with entries clipped at zero. Interpolation with the
    overall frequencies, with weight N^−½, makes these entries positive again; one EM step (whose
    fixed point in the limit is the truth) uses the information that pairs and triples leave unused.
    One pseudo-word per class, with the overall frequencies, keeps every word of the data possible.
    """
    counts = csr_matrix(counts, dtype=np.float64, copy=True)
    counts.sum_duplicates()
    weights = np.ones(counts.shape[0]) if weights is None else weights
    used = (weights > 0) & (counts.sum(axis=1).A1 > 0)
    if not used.any():
        raise DataError("no document has any words", "give at least one document with words")
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
        alive = size >= min(0.5, size.max())  # half a document, unless no class has that much
        mix = size[alive] / size[alive].sum()
        words = (counts.T @ posterior[:, alive]).T + overall
        words /= words.sum(axis=1, keepdims=True)
        missing = n_components - len(mix)
        if missing:
            # classes that the moments do not reveal: half-way between the overall frequencies and
            # those of a random document
            documents = counts[rng.choice(counts.shape[0], missing)].toarray()
            documents /= documents.sum(axis=1, keepdims=True)
            mix = np.append(mix * (len(mix) / n_components), np.full(missing, 1 / n_components))
            words = np.vstack([words, (documents + overall) / 2])
        return mix, words


def with_values(counts: csr_matrix, data: FloatArray) -> csr_matrix:
    """Return a matrix with the sparsity pattern of ``counts`` and the values ``data``."""
    return csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class WordPairs:
    """The second moment M₂ = Σ_d ω_d (c cᵀ − diag s) / pairs_d, in factored form.

    ``same``     s, the pairs of a token with itself: c, or c² where c < 1, so that s never
                 subtracts more than there is
    ``tokens``   number of tokens of each document
    ``n_pairs``  number of pairs of different tokens of each document
    ``share``    ω, the weight of each document; sums to one, zero for documents without a pair
    """

    counts: csr_matrix  # (documents, words)
    same: csr_matrix
    tokens: FloatArray  # (documents,)
    n_pairs: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, counts: csr_matrix, weights: FloatArray) -> WordPairs:
        same = with_values(counts, np.minimum(counts.data, counts.data**2))
        tokens = counts.sum(axis=1).A1
        n_pairs = tokens**2 - same.sum(axis=1).A1
        share = np.where(n_pairs > 1e-9 * tokens**2, weights * tokens, 0.0)
        if not share.any():
            raise DataError(
                "no document has two words, so there is no co-occurrence to learn from",
                'spectral estimates need longer documents; use init="kmeans" or init="random"',
            )
        return cls(counts, same, tokens, n_pairs, share / share.sum())

    @property
    def per_pair(self) -> FloatArray:
        """ω_d / pairs_d."""
        factor = np.zeros_like(self.n_pairs)
        return np.divide(self.share, self.n_pairs, out=factor, where=self.share > 0)

    def first(self) -> FloatArray:
        """Return p = M₂ 1, the frequency of each word among the pairs, (words,); sums to one."""
        factor = self.per_pair
        first = self.counts.T @ (factor * self.tokens) - self.same.T @ factor
        return np.maximum(first, 0.0)  # type: ignore[no-any-return]

    def operator(self, scale: FloatArray) -> LinearOperator:
        """Return the operator x ↦ S M₂ S x, S = diag ``scale``, on the words of non-zero scale."""
        from scipy.sparse.linalg import LinearOperator

        used = np.flatnonzero(scale)
        factor, scale = self.per_pair, scale[used]
        diagonal = (scale**2 * (self.same.T @ factor)[used])[:, None]
        counts = self.counts[:, used]
        scaled = with_values(counts, counts.data * scale[counts.indices])

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
    """The leading eigenvalues and eigenvectors (as columns) of S M₂ S.

    ``first``  p = M₂ 1
    ``scale``  S = diag p^−½, from before any document was capped: it equalises the sampling noise
               of frequent and rare words. Zero for words in too few documents.
    """

    pairs: WordPairs
    first: FloatArray  # (words,)
    scale: FloatArray
    values: FloatArray  # (directions,)
    vectors: FloatArray  # (words, directions)

    def whitener(self) -> FloatArray:
        """Return W, V×r, with Wᵀ M₂ W = I."""
        return self.scale[:, None] * self.vectors / np.sqrt(self.values)

    def unscaled(self) -> FloatArray:
        """Return S^−1 U, V×r, whose columns span the column space of M₂."""
        used = self.scale > 0
        inverse: FloatArray = np.divide(used, self.scale, out=0.0 * self.scale, where=used)
        return self.vectors * inverse[:, None]

    def leverage(self) -> FloatArray:
        """Return h_d = ω_d tr(Wᵀ P_d W), P_d the document's own M₂: its share of the r directions.

        About 1 for a document that determines a direction on its own; 1/m for each of m equal
        documents that do so together. Sums to r.
        """
        whitener = self.whitener()
        white = self.pairs.counts @ whitener
        traces = np.einsum("dk,dk->d", white, white)
        traces -= self.pairs.same @ np.einsum("vk,vk->v", whitener, whitener)
        return self.pairs.per_pair * traces  # type: ignore[no-any-return]


def whiten(counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray) -> Whitening:
    """Return the K leading directions of the second moment, robust to outlying documents.

    Where the model holds, leverages are about K/N, and the cap max(1/√N, 3K/N) is not reached; on
    real text it limits quoted, repetitive and very long posts, which would otherwise determine most
    of the directions. Rare words are left out (`word_scale`).
    """
    pairs = WordPairs.of(counts, weights)
    first = pairs.first()
    document_frequency = np.bincount(counts.indices, minlength=len(first))
    scale = word_scale(first, document_frequency, counts.shape[0])
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
    """Return the eigenvectors of the largest eigenvalues, at most ``n_components`` of them."""
    failure = LearnerError(
        "the main directions of word co-occurrence could not be computed",
        'use fewer classes, leave out rare words, or use init="kmeans"',
    )
    operator = pairs.operator(scale)
    size = operator.shape[0]
    if size <= max(_SMALL, 3 * n_components):
        dense = operator @ np.eye(size)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
    else:
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

        try:
            values, vectors = eigsh(
                operator, n_components, which="LA", v0=rng.random(size), tol=tolerance
            )
        except ArpackNoConvergence as error:  # use the eigenvectors that have converged, if any
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
# Three different tokens of a document have the joint distribution M₃ = Σ_k π_k θ_k ⊗ θ_k ⊗ θ_k.
# With W from the second moment (Wᵀ M₂ W = I) the vectors v_k = √π_k Wᵀ θ_k are orthonormal, and
# M₃(W, W, W) = Σ_k π_k^−½ v_k ⊗ v_k ⊗ v_k: an r×r×r tensor whose robust eigenvectors the power
# method finds without local optima (Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014).

_LARGEST = 256  # largest K for the K×K×K tensor
_BLOCK = 2_000_000  # numbers held at once while the tensor is summed
_STARTS = 30  # whitened documents to start from; plus a third as many random vectors
_POWER_STEPS = 15


def estimate_from_moments(
    counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Estimate class weights π (K) and word probabilities θ (K, V) by the tensor method of moments.

    Consistent if every document has one class and at least three words, and the θ_k are linearly
    independent. Classes that the moments do not reveal are filled in near the overall frequencies;
    words that never occur get probability zero.

    >>> documents = csr_matrix([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 2, 3], [0, 0, 3, 2]])
    >>> mix, words = estimate_from_moments(documents, 2, np.random.default_rng(0))
    >>> mix.round(2), np.sort(words.round(1), axis=0)
    (array([0.5, 0.5]), array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]]))
    """
    if n_components > _LARGEST:
        raise LearnerError(
            f"the moment tensor of {n_components} classes is too large",
            f'use at most {_LARGEST} classes, or anchor words: init="anchor"',
        )

    def solve(white: Whitening) -> tuple[FloatArray, FloatArray]:
        axes = power_method(*whitened_triples(white), rng)
        # θ_k ∝ S^−1 U Λ^½ v_k, with the sign that makes its sum positive, negative entries clipped
        words = (axes * np.sqrt(white.values)) @ white.unscaled().T
        words *= np.where(words.sum(axis=1) < 0, -1.0, 1.0)[:, None]
        words = np.maximum(words, 0.0)
        total = words.sum(axis=1, keepdims=True)
        words = np.where(total > 0, words / np.where(total > 0, total, 1.0), white.first)
        # π is not taken from the eigenvalues (π = 1/λ² would square their noise), but solves
        # Σ_k π_k θ_k = first moment by non-negative least squares in the whitened directions
        projected = (words * white.scale) @ white.vectors
        target = (white.first * white.scale) @ white.vectors
        from scipy.optimize import nnls

        mix, _ = nnls(projected.T, target, maxiter=100 * len(axes))
        return mix / max(mix.sum(), 1e-300), words

    return _estimate_by_moments(counts, n_components, rng, weights, solve)


def whitened_triples(white: Whitening) -> tuple[FloatArray, FloatArray]:
    """Return M₃(W, W, W) and the whitened counts Wᵀc of the documents with at least three words.

    Triples of different tokens are c ⊗ c ⊗ c minus those that use a token twice,
    Σ_i s_i e_i⊗e_i⊗c in its three orders; as this subtracts those that use a token three times too
    often, Σ_i t_i e_i⊗e_i⊗e_i is added back. For whole counts s = c and t = 2c; otherwise c(c − 1)
    and c(c − 1)(c − 2) are clipped at zero.
    """
    pairs, whitener = white.pairs, white.whitener()
    c, s = pairs.counts.data, pairs.same.data
    thrice = with_values(pairs.counts, (c**2 - s) * np.maximum(c - 2, 0) - c**3 + 3 * s * c)
    tokens = pairs.tokens
    same = pairs.same.sum(axis=1).A1
    triples = tokens**3 - 3 * tokens * same + thrice.sum(axis=1).A1
    usable = (triples > 1e-6 * tokens**3) & (pairs.share > 0)
    if not usable.any():
        raise DataError(
            "no document has three words, so there is no third moment",
            'anchor words need only two (init="anchor"); or use init="kmeans" or init="random"',
        )
    factor = np.where(usable, pairs.share, 0.0) / pairs.share[usable].sum()
    factor = np.divide(factor, triples, out=np.zeros_like(factor), where=usable)
    documents = pairs.counts @ whitener
    tensor = _sum_outer_products(documents * factor[:, None], documents, documents)
    twice = _sum_outer_products(pairs.same.T @ (factor[:, None] * documents), whitener, whitener)
    tensor -= twice + twice.transpose(1, 0, 2) + twice.transpose(1, 2, 0)
    tensor += _sum_outer_products((thrice.T @ factor)[:, None] * whitener, whitener, whitener)
    return tensor, documents[usable]


def _sum_outer_products(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Return Σ_n a_n ⊗ b_n ⊗ c_n, (r, r, r), for rows a_n, b_n, c_n of length r."""
    r = a.shape[1]
    total = np.zeros((r, r * r))
    step = max(1, _BLOCK // (r * r))
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        total += a[rows].T @ (b[rows, :, None] * c[rows, None, :]).reshape(-1, r * r)
    return total.reshape(r, r, r)


def power_method(tensor: FloatArray, documents: FloatArray, rng: Generator) -> FloatArray:
    """Return the eigenvectors v_k of a symmetric tensor Σ_k λ_k v_k ⊗ v_k ⊗ v_k, λ_k > 0, as rows.

    They are orthonormal up to noise. The power iteration v ← T(·, v, v) / ‖·‖ runs from many
    starts; half a dozen usually suffice, as whitened documents already point towards their class.
    The start with the largest T(v, v, v) is iterated further and then deflated from the tensor;
    this is repeated r times.

    ``tensor``     (r, r, r)
    ``documents``  whitened counts of documents, some of which serve as starts, (documents, r)
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
            starts = _normalise(_contract(rest, starts))
        best = starts[[np.argmax(_evaluate(rest, starts))]]
        for _ in range(_POWER_STEPS):
            best = _normalise(_contract(rest, best))
        rest -= _evaluate(rest, best)[0] * _sum_outer_products(best, best, best)
        axes = np.vstack([axes, best])
    return axes


def _contract(tensor: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return T(·, v, v) for each row v."""
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    return squares @ tensor.reshape(len(tensor), -1).T


def _evaluate(tensor: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return T(v, v, v) for each row v."""
    return np.einsum("nk,nk->n", _contract(tensor, vectors), vectors)  # type: ignore[no-any-return]


def _normalise(rows: FloatArray) -> FloatArray:
    lengths: FloatArray = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-150)  # for shorter rows, squares underflow


# A document mixture from anchor words: words that (nearly) only one class uses.
#
# The words that co-occur with word i have the distribution Σ_k p(k | i) θ_k: every row of the row-
# normalised co-occurrence matrix lies in the simplex spanned by the θ_k, and the row of an anchor
# word is a vertex of it. So: find the vertices, write every row as a mixture of them, and invert
# p(k | i) with Bayes' rule (Arora, Ge, Halpern, Mimno, Moitra, Sontag, Wu, Zhu 2013, "A practical
# algorithm for topic modeling with provable guarantees").
#
# Where they use random projections of the rows, we project on the main directions of co-occurrence:
# otherwise the noise of rare words looks like vertices. Distances are χ², so that no column counts
# more only because its word is frequent.


def estimate_from_anchors(
    counts: csr_matrix, n_components: int, rng: Generator, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Estimate class weights π (K) and word probabilities θ (K, V) of a mixture by anchor words.

    The estimate is as good as the anchor words are; documents need two words. Classes without a
    vertex are filled in near the overall frequencies; words that never occur get probability zero.

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

    return _estimate_by_moments(counts, n_components, rng, weights, solve)


def neighbours(white: Whitening) -> FloatArray:
    """Return the co-occurrence profile of each word: the rows of D^−1 M₂ S, D = diag p, in the main
    directions, V×r."""
    rows: FloatArray = white.unscaled() * white.values
    return np.divide(rows, white.first[:, None], out=rows, where=_usable(white)[:, None])


def _usable(white: Whitening) -> BoolArray:
    """Return whether each word occurs in pairs and is not too rare, (words,)."""
    return (white.first > 0) & (white.scale > 0)


# k-means as a special case: hard EM for Gaussians of equal weight and one known variance.


def spherical_core(n_classes: int, n_dims: int, variance: float) -> MixtureCore:
    """Return the core of soft k-means: Gaussians of equal weight and one known variance."""
    weights = Categorical((1, n_classes), frozen=np.array([True]))
    emission = PointEmission(Gaussian(n_classes, n_dims, "identity", known=variance))
    return MixtureCore("soft k-means", weights, emission, EM())


def kmeans_core(n_classes: int, n_dims: int) -> KMeansCore:
    """Return the core of k-means: the same with variance 1, for hard EM."""
    weights = Categorical((1, n_classes), frozen=np.array([True]))
    emission = PointEmission(Gaussian(n_classes, n_dims, "identity"))
    return KMeansCore("k-means", weights, emission, HardEM())


def kmeans_plus_plus(
    x: FloatArray, n_classes: int, weights: FloatArray, rng: Generator
) -> FloatArray:
    """Choose centres by k-means++ (Arthur & Vassilvitskii 2007): points far from each other.

    Each centre is drawn in proportion to the squared distance from the nearest one so far; of a few
    draws the one that leaves the smallest sum of distances is taken. (As scikit-learn does, to the
    bit; importing that takes longer than this.) If there are fewer different points than classes,
    some centres are equal.
    """
    random, n_centres = np.random.RandomState(int(rng.integers(2**31))), min(n_classes, len(x))
    n_draws = 2 + int(np.log(n_centres))
    squares = np.einsum("ij,ij->i", x, x)

    def distances_from(some: IntArray) -> FloatArray:
        """Return the squared distances of all points from some, (some, points)."""
        distances = -2.0 * (x[some] @ x.T)
        distances += squares[some, None]
        distances += squares
        return np.maximum(distances, 0.0)

    with single_threaded(), np.errstate(all="ignore"):
        chosen = [random.choice(len(x), p=weights / weights.sum())]
        nearest = distances_from(np.array(chosen))[0]
        for _ in range(1, n_centres):
            heights = random.uniform(size=n_draws) * (nearest @ weights)
            drawn = np.searchsorted(np.cumsum(weights * nearest), heights)
            drawn = np.minimum(drawn, len(x) - 1)
            left = np.minimum(nearest, distances_from(drawn))
            best = int(np.argmin(left @ weights))
            chosen.append(drawn[best])
            nearest = left[best]
    return np.vstack([x[chosen], x[rng.integers(len(x), size=n_classes - n_centres)]])


def params_around(core: MixtureCore, items: MixtureCorpus, centres: FloatArray) -> dict[str, Array]:
    """Return parameters of equally weighted Gaussians with the given means.

    Their covariance is the known one, or else that of all data.
    """
    family = core.emission.family
    assert isinstance(family, Gaussian)
    points = family.uniform()
    if not family.known:
        weights = items.known.weights
        rng = np.random.default_rng(0)  # not used: all classes are the same so far
        points = core.from_responsibilities(
            items.x, lambda some: np.repeat(weights[some, None], core.n_classes, axis=1), rng
        )[core.emission.table]
    return {
        "weights": core.families["weights"].uniform(),
        core.emission.table: family.move_means(points, centres),
    }


def cluster(x: FloatArray, n_classes: int, weights: FloatArray, rng: Generator) -> IntArray:
    """Return the class of each point by k-means, from one k-means++ start, (items,)."""
    core = kmeans_core(n_classes, x.shape[1])
    known = ClassConstraints.nothing(len(x), n_classes, weights)
    items = MixtureCorpus(Points(x), known)
    start = params_around(core, items, kmeans_plus_plus(x, n_classes, weights, rng))
    means = core.emission.family.means(fit(core, items, init=start).params[core.emission.table])  # type: ignore[attr-defined]
    return find_classes(x, means)


# Initialisations of any mixture: functions (core, items, rng) → parameters.
#
# Those that need all items at once (k-means, moments, anchors) take a sample of items on disk; the
# others go through all of them, shard by shard.

Start = Callable[[MixtureCore, MixtureCorpus, Generator], Params]

SAMPLE = 1 << 22
"""The largest number of entries (document, word), of coordinates, and of responsibilities, in a
sample of items on disk for a start: some 50 MB each …"""
SAMPLED_PER_CLASS = 16
"""… but there are this many items for each class."""


def sample_size(x: OnDisk, n_classes: int) -> int:
    """Return the number of items in a sample of items on disk."""
    size = max(int(SAMPLE / max(x.width, n_classes)), SAMPLED_PER_CLASS * n_classes)
    return min(len(x), size)


def sample(items: MixtureCorpus, n_classes: int) -> MixtureCorpus:
    """Return items in memory for a start: all, or of those on disk a sample of bounded size.

    The sample is random, the same for every seed of a fit, and in order. A few items are all read.
    """
    x = items.x
    if not isinstance(x, OnDisk):
        return items
    size = sample_size(x, n_classes)
    if size == len(x):
        part = items.part(0, size)
    else:
        drawn = np.random.default_rng(0).choice(len(x), size, replace=False, shuffle=False)
        part = items.take(np.sort(drawn))
    return MixtureCorpus(part.x, part.known)


def at_random(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Draw random responsibilities from a uniform Dirichlet: classes are near the overall mean."""
    K, weights = core.n_classes, items.known.weights

    def draw(some: slice) -> FloatArray:
        n = some.stop - some.start
        drawn = rng.dirichlet(np.full(K, 1.0), size=n) if n else np.zeros((0, K))
        return drawn * weights[some, None]

    return core.from_responsibilities(items.x, draw, rng)


def random_memberships(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Put every item into one class at random, and fit the classes to their items (Forgy 1965).

    The first items fill the classes, one each, so that none is empty.
    """
    n, K, weights = len(items), core.n_classes, items.known.weights
    classes = np.concatenate([np.arange(min(n, K)), rng.integers(K, size=max(n - K, 0))])
    rng.shuffle(classes)

    def put(some: slice) -> FloatArray:
        rows: FloatArray = np.eye(K)[classes[some]] * weights[some, None]
        return rows

    return core.from_responsibilities(items.x, put, rng)


def uniform(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Make all classes equal: a fixed point of EM, which the verdict reports."""
    return {name: family.uniform() for name, family in core.families.items()}


def by_kmeans(
    core: MixtureCore, items: MixtureCorpus, points: FloatArray, rng: Generator
) -> Params:
    """Cluster the items, represented by ``points``, with k-means; fit each class to its items."""
    weights = items.known.weights
    labels = cluster(points, core.n_classes, weights, rng)

    def assign(some: slice) -> FloatArray:
        rows = np.zeros((some.stop - some.start, core.n_classes))
        rows[np.arange(len(rows)), labels[some]] = weights[some]
        return rows

    return core.from_responsibilities(items.x, assign, rng)


# Initialisations of mixtures of documents.

SVD_DIMENSIONS = 100
SVD_WORDS = 1 << 17
"""Maximum number of words for the SVD: needs 300 MB, where a million words would need 2.7 GB."""


def kmeans_of_words(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Cluster documents with k-means on tf-idf vectors, reduced by a truncated SVD and normalised.

    The SVD needs a few hundred numbers for each word. If there are too many words, those that occur
    in a single document are dropped, as they relate it to no other, and then the rarest of the
    rest. Documents on disk are represented by a sample of them.
    """
    items = sample(items, core.n_classes)
    matrix = _get_counts(items)
    if matrix.shape[1] > SVD_WORDS:
        document_frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
        common = np.argsort(-document_frequency, kind="stable")[:SVD_WORDS]
        matrix = matrix[:, np.sort(common[document_frequency[common] > 1])]
    seed = int(rng.integers(2**31))
    if matrix.nnz == 0 or min(matrix.shape) < 2:
        return at_random(core, items, rng)  # there is no space to cluster in
    from softcount.text.semantic_space import SemanticSpace

    points = SemanticSpace.of(matrix, SVD_DIMENSIONS, seed).points(matrix)
    return by_kmeans(core, items, points, rng)


def bytes_of_kmeans(n_items: int, n_words: int) -> float:
    """Return the memory that `kmeans_of_words` needs: tables of the SVD, and points."""
    dimensions = min(SVD_DIMENSIONS, n_items, n_words)
    words = min(n_words, SVD_WORDS)
    return NUMBER * dimensions * (3.0 * words + 2.0 * n_items)


def by_estimate(
    estimate: Callable[..., tuple[FloatArray, FloatArray]],
    core: MixtureCore,
    items: MixtureCorpus,
    rng: Generator,
) -> Params:
    """Initialise by `estimate_from_moments` or `estimate_from_anchors`, passed as ``estimate``."""
    items = sample(items, core.n_classes)
    mix, words = estimate(_get_counts(items), core.n_classes, rng, items.known.weights)
    return {"weights": mix[None], core.emission.table: words}


def _get_counts(items: MixtureCorpus) -> csr_matrix:
    assert isinstance(items.x, Bags)
    return items.x.matrix


# Initialisations of mixtures of points.


def kmeans_of_points(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Cluster the points, or a sample of those on disk, with k-means; fit each class to its
    points."""
    items = sample(items, core.n_classes)
    return by_kmeans(core, items, _get_points(items), rng)


def kmeans_plus_plus_points(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Take means by k-means++ (Arthur & Vassilvitskii 2007), covariances from all data.

    Means are from a sample of points on disk.
    """
    some = sample(items, core.n_classes)
    means = kmeans_plus_plus(_get_points(some), core.n_classes, some.known.weights, rng)
    return params_around(core, items, means)


def random_points(core: MixtureCore, items: MixtureCorpus, rng: Generator) -> Params:
    """Take randomly drawn items as means, covariances from all data."""
    weights = items.known.weights
    enough = np.count_nonzero(weights) >= core.n_classes
    chosen = rng.choice(len(items), core.n_classes, replace=not enough, p=weights / weights.sum())
    return params_around(core, items, _get_points(MixtureCorpus(items.x.take(chosen), items.known)))


def _get_points(items: MixtureCorpus) -> FloatArray:
    assert isinstance(items.x, Points)
    return items.x.x
