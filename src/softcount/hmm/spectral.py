"""A hidden Markov model from the moments of three words in a row, as a start for EM.

The words before, at and after a token are three views of its state z, independent given z:
P(a, b, c) = Σ_z ω_z A_z(a) O_z(b) B_z(c), with O the emissions and A, B the neighbours' words
(Anandkumar, Hsu, Kakade 2012, "A method of moments for mixture models and hidden Markov models").
The pairs P₁₂, P₂₃, P₁₃ turn the outer views into the middle one:
E[P₂₃ P₁₃⁺ x₁ | z] = O_z = E[P₂₁ P₃₁⁺ x₃ | z]. So Σ_z ω_z O_z O_zᵀ is P₂₃ P₁₃⁺ P₁₂, the third moment
becomes symmetric too, and the tensor power method finds the O_z without a start (Anandkumar, Ge,
Hsu, Kakade, Telgarsky 2014, "Tensor decompositions for learning latent variable models").

The edge of a sentence is a word too, number V, that a state of its own emits (number K): so every
token is the middle of a triple, and first states and ends come out with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, permutations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError, svds

from softcount.core.errors import DataError, LearnerError
from softcount.core.types import FloatArray, IntArray
from softcount.kernels.threads import single_threaded
from softcount.mixture.starts import power_method

_LARGEST = 256  # K of the K×K×K tensor
_SMALL = 300  # up to this many words a dense decomposition is the quickest
_RANK = 1e-9  # directions weaker than this part of the strongest are rounding error
_BLOCK = 2_000_000  # numbers held at once while moments are summed
_AT_HAND = 100_000  # numbers in a table that is read again at once
_STARTS = 500  # the most frequent words: the power method begins at what they say
_ROUNDS = 3  # of averaging: each costs about an EM step, which does the same job better in the end


@dataclass(frozen=True, eq=False)
class Triples:
    """Three words in a row: numbers (3, n), and how often each triple was seen.

    ``n_words`` is V; the number V stands for the edge of a sentence.

    >>> Triples.from_sentences(np.array([4, 5, 6, 7]), np.array([0, 3, 3, 4]), 8).words.T.tolist()
    [[8, 4, 5], [4, 5, 6], [5, 6, 8], [8, 7, 8]]
    """

    words: IntArray
    weights: FloatArray
    n_words: int

    @classmethod
    def from_sentences(
        cls, tokens: IntArray, indptr: IntArray, n_words: int, weights: FloatArray | None = None
    ) -> Triples:
        """One triple for each token of the sentences ``tokens[indptr[n]:indptr[n + 1]]``."""
        words = np.full((3, len(tokens)), n_words, np.int64)
        words[1] = tokens
        words[0, 1:], words[2, :-1] = tokens[:-1], tokens[1:]
        some = np.flatnonzero(np.diff(indptr))
        words[0, indptr[some]] = words[2, indptr[some + 1] - 1] = n_words
        if weights is None:
            return cls(words, np.ones(len(tokens)), n_words)
        weights = np.asarray(weights, np.float64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError("sentence weights must be finite numbers ≥ 0", "look for NaN and inf")
        each = np.repeat(weights, np.diff(indptr))
        return cls(words[:, each > 0], each[each > 0], n_words)

    def by_middle(self) -> Triples:
        """The same triples, sorted by their middle words."""
        order = np.argsort(self.words[1], kind="stable")
        return replace(self, words=self.words[:, order], weights=self.weights[order])

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def pairs(self, row: int, column: int) -> csr_matrix:
        """How often two of the three views have which words, as probabilities; (V + 1)²."""
        size = (self.n_words + 1, self.n_words + 1)
        where = (self.words[row], self.words[column])
        return csr_matrix((self.weights / self.total, where), shape=size)

    def first(self, view: int) -> FloatArray:
        """How often a view has which word, as probabilities; V + 1."""
        return np.bincount(self.words[view], self.weights, self.n_words + 1) / self.total


@dataclass(frozen=True, eq=False)
class NeighbourTables:
    """A stretch of a hidden Markov model, as triples show it.

    ``before``     (K + 1, K)  p(y, z): state z, and state y before it; row K is the edge
    ``after``      (K, K + 1)  p(z, y): state z, and state y after it; column K is the edge
    ``emissions``  (K, V)
    """

    before: FloatArray
    after: FloatArray
    emissions: FloatArray

    @property
    def mix(self) -> FloatArray:
        """ω, how often each state is in the middle."""
        return self.after.sum(axis=1)  # type: ignore[no-any-return]

    def parameters(self) -> dict[str, FloatArray]:
        """What `spectral_start` gives."""
        return {
            "start": _normalise(self.before[-1:])[0],
            "transitions": _normalise(self.after[:, :-1]),
            "stop": _normalise(self.after)[:, -1],
            "emissions": self.emissions,
        }


def spectral_start(
    tokens: IntArray,
    indptr: IntArray,
    n_words: int,
    n_states: int,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Parameters of a hidden Markov model, from which EM goes on; all positive.

    ``tokens``, ``indptr``  numbers of words; sentence n is ``tokens[indptr[n]:indptr[n + 1]]``
    ``weights``             how much each sentence counts; None: 1

    Gives "start" (K), "transitions" (K, K), "stop" (K), the share of a state's tokens that end
    their sentence, and "emissions" (K, V). Moments are rough where text is short and words are
    rare. So states that they do not show begin near the overall frequencies, and a few rounds of
    averaging over posteriors follow, for which the truth is a fixed point (`average_posteriors`).

    >>> text = np.tile([0, 2, 1, 3, 0, 3, 1, 2], 50)  # 0 or 1, then 2 or 3, and so on
    >>> found = spectral_start(text, np.arange(0, 401, 8), 4, 2, np.random.default_rng(0))
    >>> np.sort(found["emissions"], axis=0).round(1)
    array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]])
    """
    triples = Triples.from_sentences(
        np.asarray(tokens), np.asarray(indptr), n_words, weights
    ).by_middle()
    with single_threaded():
        tables = _add_missing_states(solve_moments(triples, n_states, rng), triples, n_states, rng)
        for _ in range(_ROUNDS):
            tables = average_posteriors(triples, _smooth(tables, triples))
        return _smooth(tables, triples).parameters()


def solve_moments(triples: Triples, n_states: int, rng: np.random.Generator) -> NeighbourTables:
    """The model whose triples these are; fewer states if triples do not show as many.

    Exact, up to the order of the states, where the triples come as often as they should (many
    times: noise is expected of a finite count) and the three pair matrices have rank K.
    """
    _check(triples, n_states)
    views = _make_views(triples, n_states, rng)
    white = _whiten(views, triples)
    frequent = np.argsort(-triples.first(1)[:-1], kind="stable")[:_STARTS]
    axes = power_method(_third_moment(triples, white), white.back[frequent], rng)
    rows = axes @ white.back[:-1].T
    rows *= np.where(rows.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    emissions = _normalise(np.maximum(rows, 0.0))
    return NeighbourTables(*_solve_neighbours(triples, views.maps[1], emissions), emissions)


def _check(triples: Triples, n_states: int) -> None:
    if not 1 <= n_states <= _LARGEST:
        raise LearnerError(
            f"moments cannot give a start for {n_states} states",
            f"ask for 1 to {_LARGEST} states, or start at random",
        )
    if not triples.words.shape[1]:
        raise LearnerError(
            "there are no words to take moments of", "give sentences with words, or start at random"
        )


@dataclass(frozen=True, eq=False)
class _MomentViews:
    """Maps (V + 1, K) of the three views' words into K numbers that mean the same in all three.

    ``second``  Σ_z ω_z o_z o_zᵀ, with o_z what O_z becomes under the middle map
    ``back``    (V + 1, K) brings such numbers back to words
    """

    maps: tuple[FloatArray, FloatArray, FloatArray]
    second: FloatArray
    back: FloatArray


def _make_views(triples: Triples, n_states: int, rng: np.random.Generator) -> _MomentViews:
    scales = [_weigh_words(triples, view) for view in range(3)]
    p12 = _scale_entries(triples.pairs(0, 1), scales[0], scales[1])
    p13 = _scale_entries(triples.pairs(0, 2), scales[0], scales[2])
    p23 = _scale_entries(triples.pairs(1, 2), scales[1], scales[2])
    # neighbours show the outer views' directions far better than words two apart, P₁₃, do
    left = _find_directions(p12, n_states, rng)
    right = _find_directions(p23.T.tocsr(), n_states, rng)
    seen_left, seen_right = p12.T @ left, p23 @ right
    middle = np.linalg.svd(np.hstack([seen_left, seen_right]), full_matrices=False)[0]
    middle = middle[:, :n_states]
    before, after = scales[0][:, None] * left, scales[2][:, None] * right
    inverse = _invert(left.T @ (p13 @ right), _measure_noise(triples, before, after))
    from_left = middle.T @ seen_right @ inverse  # P₂₃ P₁₃⁺
    from_right = middle.T @ seen_left @ inverse.T
    second = from_left @ (middle.T @ seen_left).T
    used = scales[1] > 0
    back = middle * np.divide(1.0, scales[1], out=0.0 * scales[1], where=used)[:, None]
    maps = (before @ from_left.T, scales[1][:, None] * middle, after @ from_right.T)
    return _MomentViews(maps, (second + second.T) / 2, back)


def _weigh_words(triples: Triples, view: int) -> FloatArray:
    """(p + n^−½)^−½: like p^−½, under which the noise of all words is alike, but rare words count
    less. Else a word beside which there was another once or twice is a direction of its own."""
    first = triples.first(view)
    return np.where(first > 0, 1 / np.sqrt(first + triples.total**-0.5), 0.0)


def _scale_entries(matrix: csr_matrix, rows: FloatArray, columns: FloatArray) -> csr_matrix:
    data = matrix.data * np.repeat(rows, np.diff(matrix.indptr)) * columns[matrix.indices]
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _find_directions(matrix: csr_matrix, n: int, rng: np.random.Generator) -> FloatArray:
    """The left singular vectors of the n largest singular values, as columns."""
    if matrix.shape[0] <= max(_SMALL, 3 * n):
        left, values, _ = np.linalg.svd(matrix.toarray())
    else:
        try:
            left, values, _ = svds(matrix, n, v0=rng.random(matrix.shape[0]), tol=1e-6)
        except ArpackError as error:
            raise _too_few_directions(n) from error
    order = np.argsort(-values, kind="stable")[:n]
    if len(order) < n or values[order[-1]] <= _RANK * values[order[0]]:
        raise _too_few_directions(n)
    return left[:, order]


def _too_few_directions(n: int) -> LearnerError:
    return LearnerError(
        f"which words are neighbours does not show {n} different states",
        "use fewer states or more text, or start at random",
    )


def _measure_noise(triples: Triples, before: FloatArray, after: FloatArray) -> float:
    """About the size that chance gives K×K numbers which are means of n products."""
    spread = np.sqrt((triples.first(0) @ before**2).mean() * (triples.first(2) @ after**2).mean())
    return float(spread * np.sqrt(before.shape[1] / triples.total))


def _invert(matrix: FloatArray, noise: float) -> FloatArray:
    """σ / (σ² + noise²) in place of 1 / σ: what is no more than noise must not blow up."""
    left, values, right = np.linalg.svd(matrix)
    return (right.T * (values / (values**2 + noise**2))) @ left.T  # type: ignore[no-any-return]


def _whiten(views: _MomentViews, triples: Triples) -> _MomentViews:
    """Views in which the second moment is 1: r numbers each, for the r directions that it has."""
    values, vectors = np.linalg.eigh(views.second)
    kept = values > max(_RANK, triples.total**-0.5) * values[-1]
    if not kept.any():
        raise _too_few_directions(len(values))
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    before, middle, after = (map_ @ (vectors / root) for map_ in views.maps)
    return _MomentViews((before, middle, after), np.eye(len(root)), views.back @ (vectors * root))


def _third_moment(triples: Triples, white: _MomentViews) -> FloatArray:
    """E[x₁ ⊗ x₂ ⊗ x₃] of the mapped words, made symmetric.

    All triples with the same middle word make one product, n·r² in all, and only their V sums meet
    the middle map: n·r³ would be too much.
    """
    before, middle, after = white.maps
    r = before.shape[1]
    triples = triples.by_middle()
    first, at, last = triples.words
    left = triples.weights / triples.total
    cuts = np.flatnonzero(np.diff(at, prepend=-1, append=-1))
    tensor = np.zeros((r, r * r))
    step = max(1, _BLOCK // (r * r))
    for low in range(0, len(cuts) - 1, step):
        bounds = cuts[low : low + step + 1]
        sums = np.empty((len(bounds) - 1, r, r))
        for n, (i, j) in enumerate(pairwise(bounds)):
            np.matmul((before[first[i:j]] * left[i:j, None]).T, after[last[i:j]], out=sums[n])
        tensor += middle[at[bounds[:-1]]].T @ sums.reshape(-1, r * r)
    # the middle view is the first axis, but all orders are the same in the end
    cube = tensor.reshape(r, r, r)
    return np.mean([cube.transpose(axes) for axes in permutations(range(3))], axis=0)  # type: ignore[no-any-return]


def _solve_neighbours(
    triples: Triples, map_: FloatArray, emissions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The joint p of a state and the one before it, and after it, by least squares on pairs.

    P₁₂ = Eᵀ p(y, z) O, where E is O and the edge that emits itself.
    """
    inverse = np.linalg.pinv(emissions @ map_[:-1])  # of O as the map sees it
    solve = map_[:-1] @ inverse
    with_edge = np.zeros((len(map_), solve.shape[1] + 1))
    with_edge[:-1, :-1], with_edge[-1, -1] = solve, 1.0
    before = with_edge.T @ (triples.pairs(0, 1)[:, :-1] @ solve)
    after = solve.T @ (triples.pairs(1, 2)[:-1] @ with_edge)
    before, after = np.maximum(before, 0.0), np.maximum(after, 0.0)
    return before / max(before.sum(), 1e-300), after / max(after.sum(), 1e-300)


def _add_missing_states(
    tables: NeighbourTables, triples: Triples, n_states: int, rng: np.random.Generator
) -> NeighbourTables:
    """Enough states: those that moments do not show are near the overall frequencies."""
    missing = n_states - len(tables.emissions)
    if not missing:
        return tables
    some = triples.first(1)[:-1] * rng.gamma(1.0, size=(missing, triples.n_words))
    emissions = np.vstack([tables.emissions, _normalise(some)])
    return NeighbourTables(
        _widen(tables.before.T, missing).T, _widen(tables.after, missing), emissions
    )


def _widen(joint: FloatArray, missing: int) -> FloatArray:
    """p(z, y) with more states, each as likely as the mean state, beside all others alike."""
    K = len(joint) + missing
    edge = joint[:, -1].sum()
    wide = np.full((K, K + 1), (1 - edge) / K**2)
    wide[:, -1] = edge / K
    wide[: len(joint), : len(joint)] = joint[:, :-1] * (len(joint) / K) ** 2
    wide[: len(joint), -1] = joint[:, -1] * len(joint) / K
    return wide / wide.sum()  # type: ignore[no-any-return]


def _smooth(tables: NeighbourTables, triples: Triples) -> NeighbourTables:
    """A blend of n^−½ with what holds for all states: zeros by clipping or chance open again.

    Words that were never seen have, all together, half an occurrence.
    """
    blend = 1.0 / np.sqrt(1.0 + triples.total)
    overall = triples.first(1)[:-1] * triples.total + 0.5 / triples.n_words
    emissions = (1 - blend) * tables.emissions + blend * overall / overall.sum()
    return NeighbourTables(
        _blend_in(tables.before, blend), _blend_in(tables.after, blend), emissions
    )


def _blend_in(joint: FloatArray, blend: float) -> FloatArray:
    """p(y, z) with a part in which y and z know nothing of each other, or are anything at all."""
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return (1 - blend) * joint + blend * (apart + 1 / joint.size) / 2


def average_posteriors(triples: Triples, tables: NeighbourTables) -> NeighbourTables:
    """The tables that posteriors p(y, z, y' | a, b, c) of all triples have on average.

    An EM step of the three-view mixture in which the neighbours' emissions are held at those of
    the middle; the truth is a fixed point of it.
    """
    K, V = tables.emissions.shape
    mix = tables.mix
    emit = np.zeros((V + 1, K + 1))  # of the state y beside the middle one
    emit[:-1, :-1], emit[-1, -1] = tables.emissions.T, 1.0
    left, right = emit @ tables.before, emit @ (tables.after / mix[:, None]).T
    before, after, words = np.zeros((K + 1, K)), np.zeros((K, K + 1)), np.zeros((V, K))
    step = max(1, _AT_HAND // K)
    for low in range(0, triples.words.shape[1], step):
        a, b, c = triples.words[:, low : low + step]
        middle, from_left, from_right = emit[b, :-1], left[a], right[c]
        posterior = middle * from_left * from_right
        share = triples.weights[low : low + step] / posterior.sum(axis=1)
        middle *= share[:, None]
        before += emit[a].T @ (middle * from_right)
        after += (middle * from_left).T @ emit[c]
        lowest = b.min()  # if the triples are sorted, few words meet at a time
        places = csr_matrix((share, b - lowest, np.arange(len(b) + 1)))
        words[lowest : b.max() + 1] += places.T @ posterior
    before *= tables.before
    after *= tables.after / mix[:, None]
    total = triples.total
    return NeighbourTables(before / total, after / total, _normalise(words.T))


def _normalise(rows: FloatArray) -> FloatArray:
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
