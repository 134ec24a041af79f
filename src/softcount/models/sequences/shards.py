"""Sentences as the E-steps of hidden Markov models see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softcount.bounds import MAX_WEIGHT, MIN_WEIGHT, without_dust
from softcount.corpus.cut import parts
from softcount.errors import DataError
from softcount.kernels.listed import Lists
from softcount.kernels.packing import Packs, packed
from softcount.types import Array

LANES, ROWS = 128, 1 << 13
"""A pack has so many sentences, and so many tokens unless one has more."""
SPARSE = 4.0
"""Lists of states are gone through if they have so many times fewer moves than whole matrices."""


@dataclass(frozen=True, eq=False)
class StateSets:
    """Sets of states that tokens may be in; set 0 has all of them.

    ``allowed``  (sets, states): whether a state is in a set
    """

    allowed: Array

    @classmethod
    def all_of(cls, n_states: int) -> StateSets:
        """No set but that of all states."""
        return cls(np.ones((1, n_states), np.bool_))

    @property
    def n_states(self) -> int:
        return int(self.allowed.shape[1])

    @cached_property
    def sizes(self) -> Array:
        """How many states each set has."""
        sizes: Array = self.allowed.sum(axis=1)
        return sizes

    @cached_property
    def lists(self) -> Lists:
        """The states of each set."""
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        return Lists(indptr, np.nonzero(self.allowed)[1])


class Cells(NamedTuple):
    """The states of each kind: see `softcount.kernels.few_states`.

    ``indptr``           kind g has the cells ``indptr[g]`` to ``indptr[g + 1]``
    ``kinds``, ``rows``, ``states``  those of each cell
    """

    indptr: Array
    kinds: Array
    rows: Array
    states: Array


@dataclass(frozen=True, eq=False)
class Kinds:
    """Tokens of one kind have the same row of emissions, and may be in the same states.

    ``of``              the kind of each token
    ``rows``, ``sets``  the row and the set of each kind
    """

    of: Array
    rows: Array
    sets: Array
    states: StateSets

    @classmethod
    def told_apart(cls, rows: Array, sets: Array, states: StateSets) -> Kinds:
        n_sets = len(states.allowed)
        pairs, of = np.unique(rows * n_sets + sets, return_inverse=True)
        return cls(of, pairs // n_sets, pairs % n_sets, states)

    @cached_property
    def cells(self) -> Cells:
        """A cell for each state that tokens of a kind may be in."""
        lists, sizes = self.states.lists, self.states.sizes[self.sets]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        kinds = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(kinds)) - indptr[kinds]
        states = lists.states[lists.indptr[self.sets[kinds]] + within]
        return Cells(indptr, kinds, self.rows[kinds], states)


@dataclass(frozen=True, eq=False)
class Shard:
    """Some sentences, and what is known of their states.

    ``numbers``   the sentences' numbers in the corpus
    ``observed``  numbers of words (tokens,), or vectors (tokens, dimensions)
    ``indptr``    sentence n has the tokens ``indptr[n]`` to ``indptr[n + 1]``
    ``sets``      which set of states each token may be in
    ``weights``   how often each sentence counts
    ``new_words`` words that are new to the model; their numbers come after those that are not
    """

    numbers: Array
    observed: Array
    indptr: Array
    sets: Array
    states: StateSets
    weights: Array
    new_words: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def n_tokens(self) -> int:
        return int(self.indptr[-1])

    @cached_property
    def rows(self) -> Array:
        """Each token's row of emissions: its word's, or its own."""
        if self.observed.ndim > 1:
            return np.arange(self.n_tokens)
        words: Array = self.observed.astype(np.int64)
        return words

    @cached_property
    def kinds(self) -> Kinds:
        """What kinds of tokens there are."""
        return Kinds.told_apart(self.rows, self.sets, self.states)

    @cached_property
    def packs(self) -> Packs:
        """The sentences, packed."""
        return packed(self.indptr, LANES, ROWS)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether tokens may be in few states."""
        sizes = self.states.sizes[self.sets].astype(float)
        moves = float(sizes[:-1] @ sizes[1:]) + float(sizes.sum())
        return SPARSE * moves < self.n_tokens * self.states.n_states**2

    @cached_property
    def token_weights(self) -> Array:
        """The weight of each token's sentence."""
        return np.repeat(self.weights, np.diff(self.indptr))

    @cached_property
    def squares(self) -> Array:
        """Σ w x² of vectors, one a dimension."""
        found: Array = self.token_weights @ self.observed**2
        return found


@dataclass(frozen=True, eq=False)
class Sentences:
    """The corpus of a hidden Markov model: one shard of all sentences, or mini-batches.

    ``name_of``  what messages call a sentence
    """

    everything: Shard
    name_of: Any = None

    def __len__(self) -> int:
        return len(self.everything)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        if batch_size is None:
            return [self.everything]
        return [self.select(some) for some in parts(len(self), len(self), batch_size, seed)]

    def select(self, numbers: Array) -> Shard:
        """Some of the sentences."""
        whole = self.everything
        lengths = np.diff(whole.indptr)[numbers]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        tokens = np.arange(indptr[-1]) + np.repeat(whole.indptr[numbers] - indptr[:-1], lengths)
        return Shard(
            whole.numbers[numbers],
            whole.observed[tokens],
            indptr,
            whole.sets[tokens],
            whole.states,
            whole.weights[numbers],
            whole.new_words,
        )

    def name(self, number: int) -> str:
        return f"sentence {number}" if self.name_of is None else str(self.name_of(number))


def sentence_weights(
    given: Any, n: int, most: float = MAX_WEIGHT, least: float = MIN_WEIGHT
) -> Array:
    """How often each of n sentences counts; None: once."""
    if given is None:
        return np.ones(n)
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        weights = np.full(n, np.nan)
    hint = f"give {n} numbers, none of them negative"
    if weights.shape != (n,):
        raise DataError(f"sample_weight has the shape {weights.shape}", hint)
    return without_dust(weights, "sample_weight", hint, most, least)
