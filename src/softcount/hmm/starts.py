"""Initial parameters of hidden Markov models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core.errors import DataError, LearnerError, StartError, brief
from softcount.core.parameters import reshape_start
from softcount.core.types import Array, BoolArray, EStep, FloatArray, IntArray
from softcount.engines.blocks import tree_sum
from softcount.families import Categorical, Gaussian, LogLinear
from softcount.hmm.core import SECOND, START, TRANSITIONS, HMMCore, TableConstraints
from softcount.hmm.data import SHARD_TOKENS, SentenceCorpus, SentenceShard, TagConstraints
from softcount.hmm.emissions import EMISSIONS
from softcount.kernels.threads import single_threaded
from softcount.mixture.starts import cluster, power_method
from softcount.text.shards import cut_by_work
from softcount.text.vocabulary import Vocabulary

MANY = 1e6
"""Total pseudo-count of each row when a table is turned into parameters."""
LOOSE, JITTER = 0.1, 0.1
"""Fraction of a row reserved for unseen outcomes; relative size of the random noise."""
SUM_ERROR = 1e-6
"""Tolerance by which a frozen row may sum to more than one."""
CENTRES = MEANS, COVARIANCES = "means", "covariances"
Start = dict[str, Array] | Callable[[np.random.Generator], dict[str, Array]]

# constants of spectral starts
_LARGEST = 256  # maximum K of the K×K×K tensor
_SMALL = 300  # up to this many words, a dense decomposition is fastest
_RANK = 1e-9  # singular values below this fraction of the largest are rounding error
_BLOCK = 2_000_000  # numbers in memory at once while moments are summed
_AT_HAND = 100_000  # numbers in a table that is soon read again, so should stay in the cache
_STARTS = 500  # number of frequent words whose vectors start the power method
_ROUNDS = 3  # of averaging: each costs about as much as an EM step, which does more in the end


def count_supervision(
    core: HMMCore, corpus: SentenceCorpus, frequencies: IntArray, rng: np.random.Generator
) -> dict[str, Array]:
    """Initialise from supervision: expected counts of sentences with tags or dictionary words.

    All their possible paths are taken to be equally likely. Words of other sentences start in
    proportion to their ``frequencies``, equally in all states.
    """
    supervised = _find_supervised(corpus)
    even = {name: family.uniform() for name, family in core.families.items()}
    cuts = cut_by_work(corpus.lengths[supervised], SHARD_TOKENS)
    parts = (corpus.select(supervised[first:last]) for first, last in cuts)
    counts = tree_sum(core.expect(even, part, EStep()) for part in parts).counts
    tables = {}
    for name, expected in counts.items():
        seen = np.asarray(expected, dtype=float)
        seen = seen.reshape(core.n_states, -1) if name == EMISSIONS else seen
        usual = frequencies if name == EMISSIONS else np.ones(seen.shape[1])
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * (usual / usual.sum())
        tables[name] = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
    return _fit_families(core, tables)


def _find_supervised(corpus: SentenceCorpus) -> IntArray:
    """Return the sentences that have a token to which not all states are allowed."""
    indptr, sets = corpus.indptr, corpus.everything.sets
    found = []
    for first, last in corpus.borders():
        tokens = indptr[first] + np.flatnonzero(sets[indptr[first] : indptr[last]])
        found.append(np.unique(np.searchsorted(indptr, tokens, side="right") - 1))
    return np.concatenate(found)


def start_from_moments(
    core: HMMCore, shard: SentenceShard, frequencies: IntArray, rng: np.random.Generator
) -> dict[str, Array]:
    """Initialise from the moments of word triples: see `spectral_start`."""
    solution = spectral_start(
        shard.observed, shard.indptr, len(frequencies), core.n_states, rng, shard.weights
    )
    transitions, stop = solution["transitions"], solution["stop"]
    if core.stop:
        transitions = np.hstack([transitions * (1.0 - stop)[:, None], stop[:, None]])
    tables = {
        START: solution["start"][None],
        TRANSITIONS: transitions,
        EMISSIONS: solution["emissions"],
    }
    return _fit_families(core, tables)


def _fit_families(core: HMMCore, tables: dict[str, Array]) -> dict[str, Array]:
    """Make parameters in proportion to tables, within the families' constraints."""
    proper = {}
    for name, family in core.families.items():
        rows = tables[name] / tables[name].sum(axis=1, keepdims=True)
        if isinstance(family, LogLinear):
            proper[name] = family.mean(tables[name].reshape(-1), family.uniform())
        else:
            proper[name] = family.mean(MANY * rows, family.uniform())
    return proper


def read_tables(
    core: HMMCore, init: Mapping[str, Any], constraints: TableConstraints
) -> dict[str, Array]:
    """Read initial tables, as arrays of the families' shapes."""
    unknown = [name for name in init if name not in core.families]
    if unknown or not init:
        what = f"an unknown table {brief(unknown[0])}" if unknown else "no table"
        raise StartError(f"init has {what}", f"tables are {', '.join(core.families)}")
    tables: dict[str, Array] = {}
    for name, given in init.items():
        family = core.families[name]
        shape = family.uniform().shape
        try:
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise StartError(
                f"init[{name!r}] is {brief(given)}", f"give an array of shape {shape}"
            ) from None
        columns = values.shape[-1:]
        if name in (TRANSITIONS, SECOND) and columns != shape[-1:]:  # is it the end's column?
            which = f"init[{name!r}] has the shape {values.shape}, not {shape}"
            if core.stop and columns == (core.n_states,):
                raise StartError(which, "add a column for the end, or set stop=False")
            if not core.stop and columns == (core.n_states + 1,):
                raise StartError(which, "omit the column for the end, or set stop=True")
        table = tables[name] = reshape_start(name, values, shape)
        if isinstance(family, Categorical):
            possible = family.uniform() > 0.0
            for row in np.flatnonzero(constraints.find_frozen(name, len(table))).tolist():
                ruled_out = np.flatnonzero(~possible[row] & (table[row] != 0.0))
                if len(ruled_out):
                    raise StartError(
                        f"row {row} of {name!r} is frozen, and starts with "
                        f"{table[row, ruled_out[0]]:g} in column {ruled_out[0]}, which is fixed at "
                        "zero",
                        "start with 0 there, or remove the entry from zero, or the row from frozen",
                    )
                if table[row].sum() > 1.0 + SUM_ERROR:
                    raise StartError(
                        f"row {row} of {name!r} is frozen, and sums to {table[row].sum():g}",
                        "divide it by its sum",
                    )
    return tables


def complete(core: HMMCore, tables: dict[str, Array], usual: Any) -> Start:
    """Complete given tables with those of the default initialisation."""
    if set(tables) == set(core.families):
        return tables
    return lambda rng: {**usual(rng), **tables}


def read_emissions(
    given: Mapping[Any, Any],
    possible: BoolArray,
    tags: TagConstraints,
    vocabulary: Vocabulary,
    lowercase: bool,
) -> FloatArray:
    """Read p(word | state), (states, words), from some of its entries.

    ``given``     state → {word: p}, or word → [p for each state]
    ``possible``  (states, words): False where an entry is fixed at zero

    The remaining probability mass of a state is shared evenly by the words not named, so a row that
    sums to 1 leaves them nothing.
    """
    table = np.zeros(possible.shape)
    named = np.zeros(possible.shape, np.bool_)
    by_state = all(isinstance(inner, Mapping) for inner in given.values())
    n = 1 if by_state else len(table)
    rows: int | slice = slice(None)
    for outer, inner in given.items():
        if by_state:
            try:
                rows = tags.state(outer)
            except DataError as error:
                raise StartError(
                    f"init['emissions'] has the state {brief(outer)}: {error.message}",
                    f"states are {brief(tags.states)}",
                ) from None
        for word, p in inner.items() if by_state else [(outer, inner)]:
            text = word.lower() if lowercase and isinstance(word, str) else word
            if not isinstance(text, str) or text not in vocabulary.numbers:
                raise StartError(
                    f"init['emissions'] has the word {brief(word)}, which is in no sentence",
                    "omit it; give {state: {word: p}}, or {word: [p for each state]}",
                )
            p = [p] if by_state else p
            try:
                values = np.asarray(list(p) if isinstance(p, Iterable) else p, dtype=float)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape != (n,) or not np.isfinite(values).all() or (values < 0.0).any():
                wanted = f"give {word!r} one for each of {n} states" if n > 1 else "give one"
                raise StartError(
                    f"init['emissions'] has {brief(p)} for {brief(word)}",
                    f"probabilities are numbers ≥ 0; {wanted}",
                )
            w = vocabulary.numbers[text]
            table[rows, w] += values[0] if by_state else values
            named[rows, w] = True
    others = possible & ~named
    rest = np.maximum(1.0 - table.sum(axis=1), 0.0)  # mass shared evenly by the other words
    table += others * (rest / np.maximum(others.sum(axis=1), 1))[:, None]
    nowhere = np.flatnonzero((table == 0.0).all(axis=0))
    if len(nowhere):
        raise StartError(
            f"init['emissions'] leaves no mass for {brief(vocabulary.words[nowhere[0]])}",
            "let the words of some state sum to less than 1: the rest goes to the other words",
        )
    return table


def cluster_vectors(
    core: HMMCore, shard: SentenceShard, rng: np.random.Generator
) -> dict[str, Array]:
    """Initialise from k-means clusters of the vectors, within their allowed states."""
    labels = cluster(shard.observed, core.n_states, shard.token_weights, rng)
    allowed = shard.states.allowed[shard.sets]
    first = allowed.argmax(axis=1)
    return count_labels(
        core, shard, np.where(allowed[np.arange(len(labels)), labels], labels, first)
    )


def choose_states(shard: SentenceShard, scores: FloatArray) -> IntArray:
    """Return the state with the highest score of each vector, among its allowed states."""
    possible = np.where(shard.states.allowed[shard.sets], scores, -np.inf)
    best: IntArray = possible.argmax(axis=1)
    return best


def read_centres(
    core: HMMCore, shard: SentenceShard, offset: FloatArray, means: Any, covariances: Any = None
) -> tuple[IntArray, FloatArray]:
    """Read means and covariances; return the nearest state of each vector, and the Gaussians.

    Without covariances, all states get the pooled covariance of the vectors about their nearest
    means.
    """
    family = cast(Gaussian, core.emission.family)
    usual = family.uniform()
    centres = _read_numbers(MEANS, means, family.means(usual).shape) - offset
    nearness = shard.observed @ centres.T - 0.5 * (centres**2).sum(axis=1)
    labels = choose_states(shard, nearness)
    if covariances is None:
        weights = np.repeat(shard.token_weights[:, None], core.n_states, axis=1)
        pooled = family.statistics(shard.observed - centres[labels], weights)
        rng = np.random.default_rng(0)  # required by the interface, but nothing is drawn
        return labels, family.move_means(family.maximise(pooled, usual, rng), centres)
    values = _read_numbers(COVARIANCES, covariances, family.covariances(usual).shape)
    try:
        return labels, family.make_params(centres, values)
    except np.linalg.LinAlgError:
        raise StartError(
            f"init[{COVARIANCES!r}] has a matrix that is not positive definite", "correct it"
        ) from None


def count_labels(core: HMMCore, shard: SentenceShard, labels: IntArray) -> dict[str, Array]:
    """Estimate maximum-likelihood tables, given the state of each vector."""
    even = {name: family.uniform() for name, family in core.families.items()}
    paths = labels[None].astype(np.int32)
    events = core.make_trellis(even, shard).count_paths(paths, np.zeros(len(shard)))
    counts = core.arrange_counts(shard, events)
    families = dict(core.families)
    gaussians = families.pop(EMISSIONS)
    # the posterior mean, not the mode, so that no transition starts at zero
    start = {n: f.mean(counts[n], f.uniform()) for n, f in families.items()}
    rng = np.random.default_rng(0)  # required by the interface, but nothing is drawn
    return {**start, EMISSIONS: gaussians.maximise(counts[EMISSIONS], gaussians.uniform(), rng)}


def _read_numbers(name: str, given: Any, shape: tuple[int, ...]) -> FloatArray:
    """Read finite numbers of a given shape."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != shape or not np.isfinite(values).all():
        raise StartError(
            f"init[{name!r}] is {brief(given)}", f"give finite numbers of shape {shape}"
        )
    return values


@dataclass(frozen=True, eq=False)
class Triples:
    """Word trigrams: word indices (3, n), and the weight of each trigram.

    ``n_words`` is V; index V stands for the edge of a sentence.

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
        """Make one triple for each token of the sentences ``tokens[indptr[n]:indptr[n + 1]]``."""
        words = np.full((3, len(tokens)), n_words, np.int64)
        words[1] = tokens
        words[0, 1:], words[2, :-1] = tokens[:-1], tokens[1:]
        non_empty = np.flatnonzero(np.diff(indptr))
        words[0, indptr[non_empty]] = words[2, indptr[non_empty + 1] - 1] = n_words
        if weights is None:
            return cls(words, np.ones(len(tokens)), n_words)
        weights = np.asarray(weights, np.float64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError("sentence weights must be finite numbers ≥ 0", "look for NaN and inf")
        each = np.repeat(weights, np.diff(indptr))
        return cls(words[:, each > 0], each[each > 0], n_words)

    def by_middle(self) -> Triples:
        """Return the same triples, sorted by middle word."""
        order = np.argsort(self.words[1], kind="stable")
        return replace(self, words=self.words[:, order], weights=self.weights[order])

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def pairs(self, row: int, column: int) -> csr_matrix:
        """Return the joint distribution of two of the three views, (V + 1, V + 1)."""
        size = (self.n_words + 1, self.n_words + 1)
        where = (self.words[row], self.words[column])
        return csr_matrix((self.weights / self.total, where), shape=size)

    def first(self, view: int) -> FloatArray:
        """Return the marginal distribution of a view, (V + 1,)."""
        return np.bincount(self.words[view], self.weights, self.n_words + 1) / self.total


@dataclass(frozen=True, eq=False)
class NeighbourTables:
    """The tables of a hidden Markov model that generate its word triples.

    ``before``     (K + 1, K)  p(y, z): state z, and state y before it; row K is the edge
    ``after``      (K, K + 1)  p(z, y): state z, and state y after it; column K is the edge
    ``emissions``  (K, V)
    """

    before: FloatArray
    after: FloatArray
    emissions: FloatArray

    @property
    def mix(self) -> FloatArray:
        """ω, the marginal distribution of the middle state, (K,)."""
        return self.after.sum(axis=1)  # type: ignore[no-any-return]

    def parameters(self) -> dict[str, FloatArray]:
        """Return the parameters that `spectral_start` returns."""
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
    """Estimate the parameters of a hidden Markov model from word trigrams; all are positive.

    The words before, at and after a token are three views of its state z, independent given z:
    P(a, b, c) = Σ_z ω_z A_z(a) O_z(b) B_z(c), with O the emissions and A, B the neighbours' words
    (Anandkumar, Hsu, Kakade 2012, "A method of moments for mixture models and hidden Markov
    models"). The pairs P₁₂, P₂₃, P₁₃ turn the outer views into the middle one:
    E[P₂₃ P₁₃⁺ x₁ | z] = O_z = E[P₂₁ P₃₁⁺ x₃ | z]. So Σ_z ω_z O_z O_zᵀ is P₂₃ P₁₃⁺ P₁₂, the third
    moment becomes symmetric too, and the tensor power method finds the O_z without initial values
    (Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014, "Tensor decompositions for learning latent
    variable models"). The edge of a sentence is treated as a word, number V, emitted by a state of
    its own (number K): so every token is the middle of a triple, and start and end probabilities
    are estimated along with the rest.

    ``tokens``, ``indptr``  word indices; sentence n is ``tokens[indptr[n]:indptr[n + 1]]``
    ``weights``             weight of each sentence; None: 1

    Returns "start" (K,), "transitions" (K, K), "stop" (K,), the proportion of a state's tokens that
    end their sentence, and "emissions" (K, V). Moments are noisy if the text is short or words are
    rare. So states that cannot be identified start near the overall frequencies, and a few rounds
    of posterior averaging follow, of which the true model is a fixed point (`average_posteriors`).

    >>> text = np.tile([0, 2, 1, 3, 0, 3, 1, 2], 50)  # 0 or 1, then 2 or 3, and so on
    >>> found = spectral_start(text, np.arange(0, 401, 8), 4, 2, np.random.default_rng(0))
    >>> np.sort(found["emissions"], axis=0).round(1)
    array([[0. , 0. , 0. , 0. ], [0.5, 0.5, 0.5, 0.5]])
    """
    triples = Triples.from_sentences(
        np.asarray(tokens), np.asarray(indptr), n_words, weights
    ).by_middle()
    with single_threaded():
        tables = solve_moments(triples, n_states, rng)
        if missing := n_states - len(tables.emissions):  # near the overall frequencies
            noisy = triples.first(1)[:-1] * rng.gamma(1.0, size=(missing, n_words))
            tables = NeighbourTables(
                _widen(tables.before.T, missing).T,
                _widen(tables.after, missing),
                np.vstack([tables.emissions, _normalise(noisy)]),
            )
        for _ in range(_ROUNDS):
            tables = average_posteriors(triples, _smooth(tables, triples))
        return _smooth(tables, triples).parameters()


def solve_moments(triples: Triples, n_states: int, rng: np.random.Generator) -> NeighbourTables:
    """Find the model with these triple frequencies; fewer states if not all can be identified.

    Exact, up to the order of the states, if the frequencies are those expected under the model (a
    finite sample adds noise) and the three pair matrices have rank K.
    """
    if not 1 <= n_states <= _LARGEST:
        raise LearnerError(
            f"a spectral start is not available for {n_states} states",
            f"use 1 to {_LARGEST} states, or init='random'",
        )
    if not triples.words.shape[1]:
        raise LearnerError(
            "a spectral start needs words", "give sentences with words, or use init='random'"
        )
    maps, second, back = _map_views(triples, n_states, rng)
    # whiten: maps under which the second moment is the identity, of its rank r
    values, vectors = np.linalg.eigh(second)
    kept = values > max(_RANK, triples.total**-0.5) * values[-1]
    if not kept.any():
        raise _too_few_directions(n_states)
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    white = [map_ @ (vectors / root) for map_ in maps]
    back = back @ (vectors * root)
    frequent = np.argsort(-triples.first(1)[:-1], kind="stable")[:_STARTS]
    axes = power_method(_third_moment(triples, *white), back[frequent], rng)
    rows = axes @ back[:-1].T
    rows *= np.where(rows.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    emissions = _normalise(np.maximum(rows, 0.0))
    # joint p of a state and the one before it, or after it, by least squares on pairs: P₁₂ =
    # Eᵀ p(y, z) O, where E is O extended by the edge, which emits itself
    inverse = np.linalg.pinv(emissions @ maps[1][:-1])  # of O under the middle map
    solve = maps[1][:-1] @ inverse
    with_edge = np.zeros((len(maps[1]), solve.shape[1] + 1))
    with_edge[:-1, :-1], with_edge[-1, -1] = solve, 1.0
    before = np.maximum(with_edge.T @ (triples.pairs(0, 1)[:, :-1] @ solve), 0.0)
    after = np.maximum(solve.T @ (triples.pairs(1, 2)[:-1] @ with_edge), 0.0)
    before, after = before / max(before.sum(), 1e-300), after / max(after.sum(), 1e-300)
    return NeighbourTables(before, after, emissions)


def _map_views(
    triples: Triples, n_states: int, rng: np.random.Generator
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], FloatArray, FloatArray]:
    """Compute maps (V + 1, K) of the three views' words into one common K-dimensional space.

    Also returns the second moment, Σ_z ω_z o_z o_zᵀ, with o_z the image of O_z under the middle
    map; and a map (V + 1, K) from this space back to words.
    """
    scales = []
    for view in range(3):
        # (p + n^−½)^−½: like p^−½, which gives all words equal noise, but with less weight on rare
        # words. Otherwise a single co-occurrence of rare words would be a direction of its own
        first = triples.first(view)
        scales.append(np.where(first > 0, 1 / np.sqrt(first + triples.total**-0.5), 0.0))
    p12 = _scale_entries(triples.pairs(0, 1), scales[0], scales[1])
    p13 = _scale_entries(triples.pairs(0, 2), scales[0], scales[2])
    p23 = _scale_entries(triples.pairs(1, 2), scales[1], scales[2])
    # adjacent words identify the outer views' directions far better than words two apart (P₁₃)
    left = _find_directions(p12, n_states, rng)
    right = _find_directions(p23.T.tocsr(), n_states, rng)
    seen_left, seen_right = p12.T @ left, p23 @ right
    middle = np.linalg.svd(np.hstack([seen_left, seen_right]), full_matrices=False)[0]
    middle = middle[:, :n_states]
    before, after = scales[0][:, None] * left, scales[2][:, None] * right
    # the inverse of P₁₃ in the outer views' directions, with σ / (σ² + noise²) in place of 1 / σ:
    # singular values within the noise of K × K means of n products must not blow up
    spread = np.sqrt((triples.first(0) @ before**2).mean() * (triples.first(2) @ after**2).mean())
    noise = float(spread * np.sqrt(n_states / triples.total))
    u, values, v = np.linalg.svd(left.T @ (p13 @ right))
    inverse = (v.T * (values / (values**2 + noise**2))) @ u.T
    from_left = middle.T @ seen_right @ inverse  # P₂₃ P₁₃⁺
    from_right = middle.T @ seen_left @ inverse.T
    second = from_left @ (middle.T @ seen_left).T
    used = scales[1] > 0
    back = middle * np.divide(1.0, scales[1], out=0.0 * scales[1], where=used)[:, None]
    maps = (before @ from_left.T, scales[1][:, None] * middle, after @ from_right.T)
    return maps, (second + second.T) / 2, back


def _scale_entries(matrix: csr_matrix, rows: FloatArray, columns: FloatArray) -> csr_matrix:
    data = matrix.data * np.repeat(rows, np.diff(matrix.indptr)) * columns[matrix.indices]
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _find_directions(matrix: csr_matrix, n: int, rng: np.random.Generator) -> FloatArray:
    """Return the left singular vectors of the n largest singular values, as columns."""
    if matrix.shape[0] <= max(_SMALL, 3 * n):
        left, values, _ = np.linalg.svd(matrix.toarray())
    else:
        from scipy.sparse.linalg import ArpackError, svds

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
        f"word co-occurrences cannot identify {n} different states",
        "use fewer states or more text, or init='random'",
    )


def _third_moment(
    triples: Triples, before: FloatArray, middle: FloatArray, after: FloatArray
) -> FloatArray:
    """Compute E[x₁ ⊗ x₂ ⊗ x₃] of the mapped words, symmetrised.

    Triples are first summed by middle word, n·r² operations in all, and only the V sums are
    multiplied by the middle map: n·r³ would be too slow.
    """
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
    # the middle view is the first axis, but symmetrising makes the order irrelevant
    cube = tensor.reshape(r, r, r)
    return np.mean([cube.transpose(axes) for axes in permutations(range(3))], axis=0)  # type: ignore[no-any-return]


def _widen(joint: FloatArray, missing: int) -> FloatArray:
    """Add states to p(z, y), each as probable as the average state, with uniform neighbours."""
    K = len(joint) + missing
    edge = joint[:, -1].sum()
    wide = np.full((K, K + 1), (1 - edge) / K**2)
    wide[:, -1] = edge / K
    wide[: len(joint), : len(joint)] = joint[:, :-1] * (len(joint) / K) ** 2
    wide[: len(joint), -1] = joint[:, -1] * len(joint) / K
    return wide / wide.sum()  # type: ignore[no-any-return]


def _smooth(tables: NeighbourTables, triples: Triples) -> NeighbourTables:
    """Mix in the overall distribution with weight n^−½, so that no entry stays at zero.

    Zeros may be due to clipping or chance. Words that were never seen get half an occurrence in
    all.
    """
    blend = 1.0 / np.sqrt(1.0 + triples.total)
    overall = triples.first(1)[:-1] * triples.total + 0.5 / triples.n_words
    emissions = (1 - blend) * tables.emissions + blend * overall / overall.sum()
    return NeighbourTables(
        _blend_in(tables.before, blend), _blend_in(tables.after, blend), emissions
    )


def _blend_in(joint: FloatArray, blend: float) -> FloatArray:
    """Mix p(y, z) with the product of its marginals and the uniform distribution."""
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return (1 - blend) * joint + blend * (independent + 1 / joint.size) / 2


def average_posteriors(triples: Triples, tables: NeighbourTables) -> NeighbourTables:
    """Average the posteriors p(y, z, y' | a, b, c) over all triples into new tables.

    This is an EM step of the three-view mixture in which the neighbours' emissions are held at
    those of the middle; the true model is a fixed point.
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
        scale = triples.weights[low : low + step] / posterior.sum(axis=1)
        middle *= scale[:, None]
        before += emit[a].T @ (middle * from_right)
        after += (middle * from_left).T @ emit[c]
        lowest = b.min()  # if the triples are sorted, a block has few middle words
        places = csr_matrix((scale, b - lowest, np.arange(len(b) + 1)))
        words[lowest : b.max() + 1] += places.T @ posterior
    before *= tables.before
    after *= tables.after / mix[:, None]
    total = triples.total
    return NeighbourTables(before / total, after / total, _normalise(words.T))


def _normalise(rows: FloatArray) -> FloatArray:
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), 1.0 / rows.shape[1])
