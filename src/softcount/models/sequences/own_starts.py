"""Where to begin, as users say it: tables by name, words by their probability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from softcount.corpus.numbering import Vocabulary
from softcount.errors import DataError, StartError, shown
from softcount.families import Categorical
from softcount.models.sequences.core import MOVES, SECOND, HMMCore
from softcount.models.sequences.knowledge import TagKnowledge
from softcount.models.sequences.tables import Rows
from softcount.models.settings import shaped
from softcount.types import Array

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
