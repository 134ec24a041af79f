"""Where learning a hidden Markov model begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from softcount.core.errors import DataError, StartError, brief
from softcount.core.parameters import shaped
from softcount.core.types import Array, BoolArray, EStep, FloatArray, IntArray
from softcount.families import Categorical, Gaussian, LogLinear
from softcount.hmm.core import SECOND, START, TRANSITIONS, HMMCore, TableConstraints
from softcount.hmm.data import SentenceCorpus, SentenceShard, TagConstraints
from softcount.hmm.emissions import EMISSIONS
from softcount.hmm.forward_backward import Trellis
from softcount.hmm.kernels import MarkovChain, TokenEmissions
from softcount.mixture.data import Points
from softcount.mixture.starts import cluster
from softcount.text.vocabulary import Vocabulary

MANY = 1e6
"""Counts of a row of a table that is taken for what it is."""
LOOSE, JITTER = 0.1, 0.1
"""So much of a row is left to what was not seen; and rows differ by so much at random."""


def count_supervision(
    core: HMMCore, corpus: SentenceCorpus, frequencies: IntArray, rng: np.random.Generator
) -> dict[str, Array]:
    """What tags and dictionaries say: counts of sentences of which something is known.

    All that is possible in them is taken to be equally likely. Words that are not among them begin
    by their ``frequencies``, alike in all states.
    """
    shard = corpus.everything
    of_sentence = np.repeat(np.arange(len(shard)), np.diff(shard.indptr))
    supervised = corpus.select(np.unique(of_sentence[shard.sets > 0]))
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, supervised, EStep()).counts
    tables = {}
    for name, given in counts.items():
        seen = np.asarray(given, dtype=float)
        seen = seen.reshape(core.n_states, -1) if name == EMISSIONS else seen
        usual = frequencies if name == EMISSIONS else np.ones(seen.shape[1])
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * (usual / usual.sum())
        tables[name] = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
    return _fit_families(core, tables)


def solve_moments(
    core: HMMCore, shard: SentenceShard, frequencies: IntArray, rng: np.random.Generator
) -> dict[str, Array]:
    """Tables from moments of three words in a row; what families rule out is left out."""
    from softcount.hmm.spectral import spectral_start

    found = spectral_start(
        shard.observed, shard.indptr, len(frequencies), core.n_states, rng, shard.weights
    )
    transitions, stop = found["transitions"], found["stop"]
    if core.stop:
        transitions = np.hstack([transitions * (1.0 - stop)[:, None], stop[:, None]])
    tables = {
        START: found["start"][None],
        TRANSITIONS: transitions,
        EMISSIONS: found["emissions"],
    }
    return _fit_families(core, tables)


def _fit_families(core: HMMCore, tables: dict[str, Array]) -> dict[str, Array]:
    """Rows in proportion to tables, as families allow them."""
    proper = {}
    for name, family in core.families.items():
        rows = tables[name] / tables[name].sum(axis=1, keepdims=True)
        if isinstance(family, LogLinear):
            proper[name] = family.mean(tables[name].reshape(-1), family.uniform())
        else:
            proper[name] = family.mean(MANY * rows, family.uniform())
    return proper


SUM_ERROR = 1e-6
"""A row that sums to more than one by so much was not meant to sum to one."""
Start = dict[str, Array] | Callable[[np.random.Generator], dict[str, Array]]


def read_tables(
    core: HMMCore, init: Mapping[str, Any], constraints: TableConstraints
) -> dict[str, Array]:
    """The tables that are given, as arrays of the families' shapes."""
    strange = [name for name in init if name not in core.families]
    if strange or not init:
        what = brief(strange[0]) if strange else "no table"
        raise StartError(f"the start has {what}", f"tables are {', '.join(core.families)}")
    tables = {name: _read_table(core, name, given) for name, given in init.items()}
    for name, table in tables.items():
        family = core.families[name]
        if isinstance(family, Categorical):
            possible = family.uniform() > 0.0
            for row in np.flatnonzero(constraints.find_frozen(name, len(table))).tolist():
                ruled_out = np.flatnonzero(~possible[row] & (table[row] != 0.0))
                if len(ruled_out):
                    raise StartError(
                        f"row {row} of {name!r} is frozen, and begins with "
                        f"{table[row, ruled_out[0]]:g} in column {ruled_out[0]}, which is zero for "
                        "good",
                        "begin with 0 there, or leave the entry out of zero, or the row out of "
                        "frozen",
                    )
                if table[row].sum() > 1.0 + SUM_ERROR:
                    raise StartError(
                        f"row {row} of {name!r} is frozen, and sums to {table[row].sum():g}",
                        "divide it by its sum",
                    )
    return tables


def complete(core: HMMCore, tables: dict[str, Array], usual: Any) -> Start:
    """Tables that are given, and the others as they usually begin."""
    if set(tables) == set(core.families):
        return tables
    return lambda rng: {**usual(rng), **tables}


def _read_table(core: HMMCore, name: str, given: Any) -> Array:
    """A table, after a look at its end column: that is what is most often forgotten."""
    shape = core.families[name].uniform().shape
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise StartError(
            f"the start of {name!r} is {brief(given)}", f"give an array of shape {shape}"
        ) from None
    columns = values.shape[-1:]
    if name in (TRANSITIONS, SECOND) and columns != shape[-1:]:
        which = f"the start of {name!r} has the shape {values.shape}, not {shape}"
        if core.stop and columns == (core.n_states,):
            raise StartError(which, "add a column for the end, or stop=False")
        if not core.stop and columns == (core.n_states + 1,):
            raise StartError(which, "leave out the column for the end, or stop=True")
    return shaped(name, values, shape)


def read_emissions(
    given: Mapping[Any, Any],
    possible: BoolArray,
    tags: TagConstraints,
    vocabulary: Vocabulary,
    lowercase: bool,
) -> FloatArray:
    """p(word | state), (states, words), from some of its entries.

    ``given``     state → {word: p}, or word → p for each state
    ``possible``  (states, words): False where an entry is zero for good

    What the words named leave of a state's 1 is shared evenly by those that are not, so a row that
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
                    f"the start of 'emissions' has the state {brief(outer)}: {error.message}",
                    f"states are {brief(tags.states)}",
                ) from None
        for word, p in inner.items() if by_state else [(outer, inner)]:
            text = word.lower() if lowercase and isinstance(word, str) else word
            if not isinstance(text, str) or text not in vocabulary.numbers:
                raise StartError(
                    f"the start of 'emissions' has the word {brief(word)}, which no sentence has",
                    "leave it out; give {state: {word: p}}, or {word: p of each state}",
                )
            p = [p] if by_state else p
            try:
                values = np.asarray(list(p) if isinstance(p, Iterable) else p, dtype=float)
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.shape != (n,) or not np.isfinite(values).all() or (values < 0.0).any():
                wanted = f"give {word!r} one for each of {n} states" if n > 1 else "give one"
                raise StartError(
                    f"the start of 'emissions' has {brief(p)} for {brief(word)}",
                    f"probabilities are numbers from 0; {wanted}",
                )
            w = vocabulary.numbers[text]
            table[rows, w] += values[0] if by_state else values
            named[rows, w] = True
    others = possible & ~named
    rest = np.maximum(1.0 - table.sum(axis=1), 0.0)  # shared evenly by the others
    table += others * (rest / np.maximum(others.sum(axis=1), 1))[:, None]
    nowhere = np.flatnonzero((table == 0.0).all(axis=0))
    if len(nowhere):
        raise StartError(
            f"the start of 'emissions' leaves nothing for {brief(vocabulary.words[nowhere[0]])}",
            "let the words of some state sum to less than 1: the rest is for the others",
        )
    return table


CENTRES = MEANS, COVARIANCES = "means", "covariances"


def cluster_vectors(
    core: HMMCore, shard: SentenceShard, rng: np.random.Generator
) -> dict[str, Array]:
    """Tables of states that are clusters of vectors, as far as these may have them."""
    labels = cluster(shard.observed, core.n_states, shard.token_weights, rng)
    allowed = shard.states.allowed[shard.sets]
    first = allowed.argmax(axis=1)
    return count_labels(
        core, shard, np.where(allowed[np.arange(len(labels)), labels], labels, first)
    )


def choose_likeliest(core: HMMCore, shard: SentenceShard, gaussians: FloatArray) -> IntArray:
    """The state of each vector that has it most likely, among those that it may have."""
    family, points = _get_family(core), Points(shard.observed)
    return _choose_best(shard, family.log_density(gaussians, points.x, points.outer(family.form)))


def read_centres(
    core: HMMCore, shard: SentenceShard, offset: FloatArray, means: Any, covariances: Any = None
) -> tuple[IntArray, FloatArray]:
    """The state of each vector whose centre is nearest; and Gaussians about these centres.

    Without covariances all are as wide as vectors are about the nearest centre.
    """
    family = _get_family(core)
    usual = family.uniform()
    centres = _read_numbers(MEANS, means, family.means(usual).shape) - offset
    away = shard.observed @ centres.T - 0.5 * (centres**2).sum(axis=1)
    labels = _choose_best(shard, away)
    if covariances is None:
        every = np.repeat(shard.token_weights[:, None], core.n_states, axis=1)
        whole = family.statistics(shard.observed - centres[labels], every)
        rng = np.random.default_rng(0)  # not drawn from
        return labels, family.move_means(family.maximise(whole, usual, rng), centres)
    wide = _read_numbers(COVARIANCES, covariances, family.covariances(usual).shape)
    try:
        return labels, family.make_params(centres, wide)
    except np.linalg.LinAlgError:
        raise StartError(
            f"the start of {COVARIANCES!r} has one that is not positive definite", "correct it"
        ) from None


def count_labels(core: HMMCore, shard: SentenceShard, labels: IntArray) -> dict[str, Array]:
    """Tables that fit vectors of these states."""
    k = core.n_states
    rows = k**core.order + (k if core.order == 2 else 0)
    chain = MarkovChain(np.zeros(k), np.zeros((rows, k)), np.zeros(rows), core.order)
    emissions = TokenEmissions(np.zeros((len(labels), k)), shard.rows, shard.sets)
    nothing = np.zeros(len(shard))
    trellis = Trellis(shard, chain, emissions, nothing)
    found = trellis.count_paths(labels[None].astype(np.int32), nothing)
    counts = core.arrange_counts(shard, found)
    families = dict(core.families)
    gaussians = families.pop(EMISSIONS)
    start = {n: f.mean(counts[n], f.uniform()) for n, f in families.items()}  # all is possible
    rng = np.random.default_rng(0)  # not drawn from
    return {**start, EMISSIONS: gaussians.maximise(counts[EMISSIONS], gaussians.uniform(), rng)}


def _get_family(core: HMMCore) -> Gaussian:
    family = core.emission.family
    assert isinstance(family, Gaussian)
    return family


def _choose_best(shard: SentenceShard, scores: FloatArray) -> IntArray:
    """The state of the highest score, among those that a vector may have."""
    possible = np.where(shard.states.allowed[shard.sets], scores, -np.inf)
    best: IntArray = possible.argmax(axis=1)
    return best


def _read_numbers(name: str, given: Any, shape: tuple[int, ...]) -> FloatArray:
    """Start values of a shape."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != shape or not np.isfinite(values).all():
        raise StartError(
            f"the start of {name!r} is {brief(given)}", f"give finite numbers of the shape {shape}"
        )
    return values
