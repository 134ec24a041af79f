"""Where learning a hidden Markov model begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError, StartError, shown
from softcount.families import Categorical, Gaussian, LogLinear
from softcount.hmm.core import MOVES, SECOND, START, TABLE, HMMCore, Rows
from softcount.hmm.data import Sentences, Shard, TagKnowledge
from softcount.hmm.kernels.lists import count_paths
from softcount.hmm.kernels.packs import Tally
from softcount.mixture.data import Points
from softcount.mixture.starts import cluster
from softcount.models.settings import shaped
from softcount.types import Array, How

MANY = 1e6
"""Counts of a row of a table that is taken for what it is."""
LOOSE, JITTER = 0.1, 0.1
"""So much of a row is left to what was not seen; and rows differ by so much at random."""


def informed(
    core: HMMCore, corpus: Sentences, often: Array, rng: np.random.Generator
) -> dict[str, Array]:
    """What tags and dictionaries say: counts of sentences of which something is known.

    All that is possible in them is taken to be equally likely. Words that are not among them begin
    by their frequency (``often``), alike in all states.
    """
    shard = corpus.everything
    of_sentence = np.repeat(np.arange(len(shard)), np.diff(shard.indptr))
    told = corpus.select(np.unique(of_sentence[shard.sets > 0]))
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, told, How()).counts
    tables = {}
    for name, given in counts.items():
        seen = np.asarray(given, dtype=float)
        seen = seen.reshape(core.n_states, -1) if name == TABLE else seen
        usual = often if name == TABLE else np.ones(seen.shape[1])
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * (usual / usual.sum())
        tables[name] = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
    return _proper(core, tables)


def spectral(
    core: HMMCore, shard: Shard, often: Array, rng: np.random.Generator
) -> dict[str, Array]:
    """Tables from moments; what families rule out is left out."""
    from softcount.hmm.spectral import spectral_start

    size = (len(often), core.n_states)
    found = spectral_start(shard.observed, shard.indptr, *size, rng, shard.weights)
    moves = found["transitions"]
    if core.stop:
        moves = np.hstack([moves * (1.0 - found["stop"])[:, None], found["stop"][:, None]])
    return _proper(core, {START: found["start"][None], MOVES: moves, TABLE: found["emissions"]})


def _proper(core: HMMCore, tables: dict[str, Array]) -> dict[str, Array]:
    """Rows in proportion to tables, as families allow them."""
    proper = {}
    for name, family in core.families.items():
        rows = tables[name] / tables[name].sum(axis=1, keepdims=True)
        if isinstance(family, LogLinear):
            proper[name] = family.mean(tables[name].reshape(-1), family.uniform())
        else:
            proper[name] = family.mean(MANY * rows, family.uniform())
    return proper


# Where to begin, as users say it: tables by name, words by their probability.


SUM_ERROR = 1e-6
"""A row that sums to more than one by so much was not meant to sum to one."""
CHANCES = "probabilities are numbers from 0"
Start = dict[str, Array] | Callable[[np.random.Generator], dict[str, Array]]


def own_tables(core: HMMCore, init: Mapping[str, Any], rows: Rows) -> dict[str, Array]:
    """The tables that are given, as arrays of the families' shapes."""
    strange = [name for name in init if name not in core.families]
    if strange or not init:
        what = shown(strange[0]) if strange else "no table"
        raise StartError(f"the start has {what}", f"tables are {', '.join(core.families)}")
    tables = {name: _table(core, name, given) for name, given in init.items()}
    for name, table in tables.items():
        family = core.families[name]
        if isinstance(family, Categorical):
            _demand_fixed(name, table, family.uniform() > 0.0, rows.held(name, len(table)))
    return tables


def completed(core: HMMCore, tables: dict[str, Array], usual: Any) -> Start:
    """Tables that are given, and the others as they usually begin."""
    if set(tables) == set(core.families):
        return tables
    return lambda rng: {**usual(rng), **tables}


def _table(core: HMMCore, name: str, given: Any) -> Array:
    """A table, after a look at its end column: that is what is most often forgotten."""
    shape = core.families[name].uniform().shape
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise StartError(
            f"the start of {name!r} is {shown(given)}", f"give an array of shape {shape}"
        ) from None
    columns = values.shape[-1:]
    if name in (MOVES, SECOND) and columns != shape[-1:]:
        which = f"the start of {name!r} has the shape {values.shape}, not {shape}"
        if core.stop and columns == (core.n_states,):
            raise StartError(which, "add a column for the end, or stop=False")
        if not core.stop and columns == (core.n_states + 1,):
            raise StartError(which, "leave out the column for the end, or stop=True")
    return shaped(name, values, shape)


def _demand_fixed(name: str, table: Array, possible: Array, held: Array) -> None:
    """Complain of rows that would stay what no distribution is."""
    for row in np.flatnonzero(held).tolist():
        ruled_out = np.flatnonzero(~possible[row] & (table[row] != 0.0))
        if len(ruled_out):
            raise StartError(
                f"row {row} of {name!r} is frozen, and begins with {table[row, ruled_out[0]]:g} in "
                f"column {ruled_out[0]}, which is zero for good",
                "begin with 0 there, or leave the entry out of zero, or the row out of frozen",
            )
        if table[row].sum() > 1.0 + SUM_ERROR:
            raise StartError(
                f"row {row} of {name!r} is frozen, and sums to {table[row].sum():g}",
                "divide it by its sum",
            )


def emissions_by_words(
    given: Mapping[Any, Any],
    possible: Array,
    known: TagKnowledge,
    vocabulary: Vocabulary,
    lowercase: bool,
) -> Array:
    """p(word | state), (states, words), from some of its entries.

    ``given``     state → {word: p}, or word → p for each state
    ``possible``  (states, words): False where an entry is zero for good

    What the words named leave of a state's 1 is shared evenly by those that are not, so a row that
    sums to 1 leaves them nothing.
    """
    table = np.zeros(possible.shape)
    named = np.zeros(possible.shape, np.bool_)
    inside = all(isinstance(inner, Mapping) for inner in given.values())
    for outer, inner in given.items():
        if inside:
            k = _state(outer, known)
            for word, chance in inner.items():
                w = _word(word, vocabulary, lowercase)
                table[k, w] += _chances(word, [chance], 1)[0]
                named[k, w] = True
        else:
            w = _word(outer, vocabulary, lowercase)
            table[:, w] += _chances(outer, inner, len(table))
            named[:, w] = True
    made = _shared_out(table, possible & ~named)
    nowhere = np.flatnonzero((made == 0.0).all(axis=0))
    if len(nowhere):
        raise StartError(
            f"the start of 'emissions' leaves nothing for {shown(vocabulary.words[nowhere[0]])}",
            "let the words of some state sum to less than 1: the rest is for the others",
        )
    return made


def _word(given: Any, vocabulary: Vocabulary, lowercase: bool) -> int:
    text = given.lower() if lowercase and isinstance(given, str) else given
    if not isinstance(text, str) or text not in vocabulary.numbers:
        raise StartError(
            f"the start of 'emissions' has the word {shown(given)}, which no sentence has",
            "leave it out; give {state: {word: p}}, or {word: p of each state}",
        )
    return int(vocabulary.numbers[text])


def _shared_out(table: Array, others: Array) -> Array:
    """What rows leave, evenly among other entries."""
    rest = np.maximum(1.0 - table.sum(axis=1), 0.0)
    share = rest / np.maximum(others.sum(axis=1), 1)
    made: Array = table + others * share[:, None]
    return made


def _state(given: Any, known: TagKnowledge) -> int:
    try:
        return known.state(given)
    except DataError as error:
        raise StartError(
            f"the start of 'emissions' has the state {shown(given)}: {error.message}",
            f"states are {shown(known.states)}",
        ) from None


def _chances(word: Any, given: Any, n: int) -> Array:
    """p(word | state) of each state."""
    try:
        values = np.asarray(list(given) if isinstance(given, Iterable) else given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n,) or not np.isfinite(values).all() or (values < 0.0).any():
        wanted = f"give {word!r} one for each of {n} states" if n > 1 else "give one"
        raise StartError(
            f"the start of 'emissions' has {shown(given)} for {shown(word)}",
            f"{CHANCES}; {wanted}",
        )
    return values


# Where hidden Markov models of vectors begin: each vector is given a state, and all is counted.


MEANS, SPREADS = "means", "covariances"


def clustered(core: HMMCore, shard: Shard, rng: np.random.Generator) -> dict[str, Array]:
    """Tables of states that are clusters of vectors, as far as these may have them."""
    labels = cluster(shard.observed, core.n_states, shard.token_weights, rng)
    allowed = shard.states.allowed[shard.sets]
    first = allowed.argmax(axis=1)
    return counted(core, shard, np.where(allowed[np.arange(len(labels)), labels], labels, first))


def likeliest(core: HMMCore, shard: Shard, gaussians: Array) -> Array:
    """The state of each vector that has it most likely, among those that it may have."""
    family, points = _family(core), Points(shard.observed)
    return _best(shard, family.log_density(gaussians, points.x, points.outer(family.form)))


def about(
    core: HMMCore, shard: Shard, offset: Array, means: Any, covariances: Any = None
) -> tuple[Array, Array]:
    """The state of each vector whose centre is nearest; and Gaussians about these centres.

    Without covariances all are as wide as vectors are about the nearest centre.
    """
    family = _family(core)
    usual = family.uniform()
    centres = _numbers(MEANS, means, family.means(usual).shape) - offset
    away = shard.observed @ centres.T - 0.5 * (centres**2).sum(axis=1)
    labels = _best(shard, away)
    if covariances is None:
        every = np.repeat(shard.token_weights[:, None], core.n_states, axis=1)
        whole = family.statistics(shard.observed - centres[labels], every)
        rng = np.random.default_rng(0)  # not drawn from
        return labels, family.moved(family.maximise(whole, usual, rng), centres)
    wide = _numbers(SPREADS, covariances, family.covariances(usual).shape)
    try:
        return labels, family.made(centres, wide)
    except np.linalg.LinAlgError:
        raise StartError(
            f"the start of {SPREADS!r} has one that is not positive definite", "correct it"
        ) from None


def counted(core: HMMCore, shard: Shard, labels: Array) -> dict[str, Array]:
    """Tables that fit vectors of these states."""
    k = core.n_states
    rows = k**core.order + (k if core.order == 2 else 0)
    into = np.arange(len(labels))
    sums = (np.zeros(k), np.zeros((rows, k)), np.zeros(rows))
    tally = Tally(np.zeros((len(labels), k)), into, np.zeros(len(shard)), *sums)
    count_paths(labels[None].astype(np.int32), shard.indptr, shard.weights, k, core.order, tally)
    counts = core.counts(shard, tally)
    families = dict(core.families)
    emissions = families.pop(TABLE)
    start = {n: f.mean(counts[n], f.uniform()) for n, f in families.items()}  # all is possible
    rng = np.random.default_rng(0)  # not drawn from
    return {**start, TABLE: emissions.maximise(counts[TABLE], emissions.uniform(), rng)}


def _family(core: HMMCore) -> Gaussian:
    family = core.emission.family
    assert isinstance(family, Gaussian)
    return family


def _best(shard: Shard, scores: Array) -> Array:
    """The state of the highest score, among those that a vector may have."""
    possible = np.where(shard.states.allowed[shard.sets], scores, -np.inf)
    best: Array = possible.argmax(axis=1)
    return best


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Start values of a shape."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != shape or not np.isfinite(values).all():
        raise StartError(
            f"the start of {name!r} is {shown(given)}", f"give finite numbers of the shape {shape}"
        )
    return values
