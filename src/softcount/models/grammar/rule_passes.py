"""Passes over sentences by a grammar of rules: expected counts, likelihoods, derivations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.errors import LearnerError
from softcount.kernels.pool import even_pieces, in_turn
from softcount.kernels.rule_charts import Grammar, Tally, Text, Words
from softcount.kernels.rule_coarse import gone_through
from softcount.kernels.rule_outside import nodes
from softcount.kernels.rule_trees import traced
from softcount.models.grammar.binarised import Binarised
from softcount.models.grammar.coarse import coarse_of
from softcount.models.grammar.passes import batches
from softcount.types import Array

PIECES = 16
"""Work is shared out among so many, whatever the threads: each has counts of its own, which are
added up in one order."""
MOST_ROUNDS = 1e5
"""Chains of unary rules that are drawn may go round so often, on average: each round is a node."""


class Derived(NamedTuple):
    """Derivations as lists of numbers (see `softcount.kernels.rule_trees`): sample m of sentence s
    is ``codes[borders[s * samples + m]:borders[s * samples + m + 1]]``; ``logs`` of sentences, and
    what was ``left_out``, as in `Tally`."""

    codes: Array
    borders: Array
    logs: Array
    left_out: Array

    def of(self, number: int) -> Array:
        """One derivation; samples of a sentence follow each other."""
        own: Array = self.codes[self.borders[number] : self.borders[number + 1]]
        return own


def text(lengths: Array, begins: Array | None = None, sets: Array | None = None) -> Text:
    """Sentences of these lengths; without ``begins``, nothing is known of their spans."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    free = np.full(len(lengths), -1, np.int64)
    none = np.zeros(0, np.int64)
    return Text(indptr, free if begins is None else begins, none if sets is None else sets)


def expected(
    own: Binarised,
    grammar: Grammar,
    words: Words,
    some: Text,
    weights: Array,
    threads: int = 1,
    counting: bool = True,
    prune: float = 0.0,
) -> Tally:
    """log p of each sentence and, if wanted, what all are expected to use.

    ``prune``  what a coarse grammar thinks less probable is left out: see `coarse`
    """
    logs, bounds = np.zeros(len(some.indptr) - 1), _bounds(some.indptr)
    coarse = coarse_of(grammar, words, prune)
    found: dict[int, Tally] = {}

    def piece(number: int) -> None:
        found[number] = own.tally(logs, words)
        about = (some, grammar, words, weights, found[number], counting, coarse)
        for first, last in batches(bounds[number], bounds[number + 1]):
            gone_through(first, last, *about)

    in_turn(piece, len(bounds) - 1, threads)
    total = found[0]
    for number in range(1, len(bounds) - 1):  # in one order, whoever was done first
        for into, more in zip(total[1:], found.pop(number)[1:], strict=True):
            into += more
    return total


def derived(
    grammar: Grammar,
    words: Words,
    some: Text,
    numbers: Array,
    samples: int = 1,
    stream: int = 0,
    threads: int = 1,
    prune: float = 0.0,
) -> Derived:
    """Derivations drawn from their posterior; the best ones, if the grammar is one of these.

    ``numbers``  of sentences: draws depend on them and on the stream alone
    ``prune``    what a coarse grammar thinks less probable is left out: see `coarse`
    """
    if not grammar.best:
        _demand_short_chains(grammar)
    logs, bounds = np.zeros(len(some.indptr) - 1), _bounds(some.indptr)
    coarse, left_out = coarse_of(grammar, words, prune), np.zeros((len(bounds) - 1, 3))
    found: dict[int, tuple[Array, Array]] = {}

    def piece(number: int) -> None:
        about = (some, grammar, words, numbers, np.uint64(stream), logs, coarse, left_out[number])
        found[number] = traced(bounds[number], bounds[number + 1], samples, *about)

    in_turn(piece, len(bounds) - 1, threads)
    codes, borders = zip(*(found[number] for number in range(len(bounds) - 1)), strict=True)
    sizes = np.concatenate([np.diff(some_borders) for some_borders in borders])
    ends = np.cumsum(sizes)
    return Derived(np.concatenate(codes), np.concatenate([[0], ends]), logs, left_out.sum(axis=0))


def _demand_short_chains(grammar: Grammar) -> None:
    """Complain of chains that nobody could draw, though sums over them are fine."""
    rounds = grammar.chains.weights.max(initial=1.0)
    if rounds > MOST_ROUNDS:
        raise LearnerError(
            f"unary rules go round some {rounds:.3g} times: no tree can be drawn",
            "give less probability to unary rules that lead back, or take best trees",
        )


def counted(own: Binarised, words: Words, found: Derived, weights: Array) -> Tally:
    """What derivations add up to; those of one sentence share its weight."""
    tally, sizes = own.tally(found.logs, words), np.diff(found.borders)
    samples = len(sizes) // max(len(weights), 1)
    shares = np.repeat(weights / max(samples, 1), samples)
    own.counted(found.codes, np.repeat(shares, sizes), words, tally)
    first = found.codes[found.borders[:-1][sizes > 0]]
    np.add.at(tally.root, own.made(words)[first], shares[sizes > 0])
    return tally


def spans(
    own: Binarised, grammar: Grammar, words: Words, some: Text, s: int
) -> tuple[Array, Array, Array, Array]:
    """Where a sentence is expected to have which symbols, and how many: starts, ends, symbols,
    numbers."""
    cells, symbols, shares = nodes(s, some, grammar, words, own.tally(np.zeros(1), words))
    starts, ends = np.triu_indices(some.indptr[s + 1] - some.indptr[s])
    return starts[cells], ends[cells] + 1, symbols, shares


def _bounds(indptr: Array) -> Array:
    """Where pieces begin, and the end: a chart takes the cube of the words."""
    return even_pieces(np.diff(indptr).astype(np.float64) ** 3, PIECES)
