"""Inside–outside, best trees and draws over sentences, for both kinds of grammars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from softcount import interrupt
from softcount.errors import LearnerError, shown
from softcount.grammar.binarised import Binarised
from softcount.grammar.data import Shard
from softcount.grammar.kernels import dense as chart_trees
from softcount.grammar.kernels import dense as inside_outside
from softcount.grammar.kernels.dense import Beside, Grammar, Pairs, Tally, Text, padded_rows
from softcount.grammar.kernels.rules import (
    Chains,
    Coarse,
    Joins,
    RuleCounts,
    RuleTables,
    RuleText,
    Words,
    gone_through,
    nodes,
    traced,
)
from softcount.grammar.rules import borders
from softcount.hmm.kernels.packs import padded, width
from softcount.kernels.pool import even_pieces, in_turn
from softcount.kernels.table_products import panels, pitch
from softcount.types import Array, Params

ROOT, RULES, WORDS = "root", "rules", "words"


class Shape:
    """K nonterminals and T preterminals: which symbols make up each kind of pairs."""

    def __init__(self, n_nonterminals: int, n_preterminals: int) -> None:
        self.k, self.t = n_nonterminals, n_preterminals
        high, low = slice(0, self.k), slice(self.k, self.k + self.t)
        self.kinds = ((low, low), (low, high), (high, low), (high, high))

    @property
    def n_symbols(self) -> int:
        return self.k + self.t

    def grammar(self, params: Params, dtype: Any, temper: float = 1.0) -> Grammar:
        """Rules by what is on their right side; tables may be raised to a power."""
        root = np.asarray(params[ROOT])[0] ** temper
        every = (np.asarray(params[RULES]) ** temper).reshape(self.k, *[self.n_symbols] * 2)
        ends = (padded(root[: self.k], dtype), padded(root[self.k :], dtype))
        leaves, first, last, spans = (every[:, b, c] for b, c in self.kinds)
        beside = (_beside(first.transpose(1, 2, 0), dtype), _beside(last.T, dtype))
        pairs = (_pairs(leaves, dtype), _pairs(spans, dtype))
        return Grammar(*ends, pairs[0], *beside, pairs[1], every.astype(dtype))

    def tally(self, logs: Array, n_rows: int, into: Array) -> Tally:
        """Zeros."""
        (k, high), (t, low) = ((padded_rows(n), width(n)) for n in (self.k, self.t))
        ends = (np.zeros(high), np.zeros(low), np.zeros((n_rows, low)))
        beside = (t, pitch(k, high))
        sizes = ((k, pitch(t, low)), beside, beside, (k, pitch(k, high)))
        return Tally(logs, *ends, into, *(np.zeros(size) for size in sizes))

    def counts(self, tally: Tally, params: Params) -> tuple[Array, Array, Array]:
        """Expected roots (1, K + T), rules (K, (K + T)²), and words (rows, T)."""
        root = np.concatenate([tally.root[: self.k], tally.single[: self.t]])[None]
        rules = np.zeros((self.k, self.n_symbols, self.n_symbols))
        high, low = width(self.k), width(self.t)
        parts = (
            _tables(tally.leaves, low),
            _tables(tally.leaf_first, high).transpose(2, 0, 1),
            _tables(tally.leaf_last, high).T,
            _tables(tally.spans, high),
        )
        for (b, c), some in zip(self.kinds, parts, strict=True):
            rules[:, b, c] = some[: self.k, : b.stop - b.start, : c.stop - c.start]
        return root, rules.reshape(self.k, -1) * np.asarray(params[RULES]), tally.words[:, : self.t]


def _tables(found: Array, wide: int) -> Array:
    """What was counted, (rows, tables); what is behind a table is nothing."""
    n = found.shape[1] // wide * wide
    return found[:, :n].reshape(len(found), -1, wide)


def _pairs(rules: Array, dtype: Any) -> Pairs:
    """Rules (K, left, right)."""
    k, left, right = rules.shape
    full = np.zeros((width(k), padded_rows(left), width(right)), dtype)
    full[:k, :left, :right] = rules
    up = full[:, :left].reshape(len(full), -1).T
    return Pairs(panels(up), panels(full[:k].reshape(k, -1)))


def _beside(rules: Array, dtype: Any) -> Beside:
    """Rules (leaf, span, K)."""
    t, k, _ = rules.shape
    full = np.zeros((width(t), padded_rows(k), width(k)), dtype)
    full[:t, :k, :k] = rules
    flat = full.reshape(len(full), -1)
    return Beside(panels(flat[:t]), panels(flat.T))


# Passes over sentences with a dense grammar: expected counts, likelihoods, best trees, draws.


TOGETHER = 16
"""So many sentences are gone through together."""
PIECES = 4
"""Work is shared out among so many, whatever the threads: each has counts of its own, which are
added up in one order."""


class Pass(NamedTuple):
    """What a pass needs: tables (``table``: p(word | preterminal), padded) and settings."""

    shape: Shape
    params: Params
    table: Array
    dtype: Any
    temper: float = 1.0
    threads: int = 1


def posteriors(shard: Shard, this: Pass, counting: bool = True) -> Tally:
    """Expected counts, and log p of each sentence."""
    text, grammar = text_of(shard, this), this.shape.grammar(this.params, this.dtype, this.temper)
    logs = np.zeros(len(shard))
    bounds = bounds_of(shard)
    own: dict[int, Tally] = {}

    def piece(number: int) -> None:
        own[number] = this.shape.tally(logs, len(this.table) if counting else 0, shard.text.rows)
        for first, last in batches(bounds[number], bounds[number + 1]):
            inside_outside.both_ways(first, last, text, grammar, own[number], counting)

    in_turn(piece, len(bounds) - 1, this.threads)
    total = own.pop(0)
    for number in range(1, len(bounds) - 1):  # in one order, whoever was done first
        for into, more in zip(total, own.pop(number), strict=True):
            if into is not logs and into is not total.into:
                into += more
    sound = all(np.isfinite(some).all() for some in total)
    if np.dtype(this.dtype).itemsize < 8 and not sound:  # too small, or large, for so few bits
        return posteriors(shard, this._replace(dtype=np.float64), counting)
    return total


def trace_trees(
    shard: Shard, this: Pass, best: bool, stream: int = 0, samples: int = 1
) -> tuple[chart_trees.Nodes, Array]:
    """The best trees and log p of each with its sentence; or draws, and log p of the sentences."""
    text = text_of(shard, this._replace(dtype=np.float64))
    grammar = this.shape.grammar(this.params, np.float64, this.temper)
    logs, size = np.zeros(len(shard)), (samples, 2 * shard.text.n_tokens)
    nodes = chart_trees.Nodes(np.zeros(size, np.int32), np.zeros(size, np.int32))
    bounds = bounds_of(shard)
    how = (this.shape.k, best, shard.text.numbers, np.uint64(stream), logs, nodes)

    def piece(number: int) -> None:
        for first, last in batches(bounds[number], bounds[number + 1]):
            chart_trees.traced(first, last, text, grammar, *how)

    in_turn(piece, len(bounds) - 1, this.threads)
    return nodes, logs


def text_of(shard: Shard, this: Pass) -> Text:
    """Sentences as kernels want them; words may be limited to some preterminals."""
    words, limits = shard.text, shard.limits
    table, rows = this.table**this.temper if this.temper != 1.0 else this.table, words.rows
    if words.sets.any():
        kinds = words.kinds
        table, rows = table[kinds.rows], kinds.of
        table[:, : this.shape.t] *= words.states.allowed[kinds.sets]
    known = np.zeros(0, np.int64) if limits.sets is None else limits.sets
    return Text(
        shard.order,
        words.indptr,
        rows,
        table.astype(this.dtype, copy=False),
        words.weights,
        shard.first_spans,
        known,
        padded(limits.allowed, this.dtype),
    )


def bounds_of(shard: Shard) -> Array:
    """Where pieces begin among the ordered sentences, and the end: a chart takes the cube of the
    words."""
    return even_pieces(np.diff(shard.text.indptr)[shard.order].astype(float) ** 3, PIECES)


def batches(first: int, last: int, together: int = TOGETHER) -> Iterator[tuple[int, int]]:
    """Of some sentences, those that are gone through together; ends if nobody waits any more."""
    for n in range(first, last, together):
        interrupt.check()
        yield n, min(n + together, last)


# Coarse grammars: classes of symbols in place of symbols.
#
# A class a stands for its symbols A with p(A | a), their shares of how often the grammar uses them:
#
#     p(a → x r) = Σ_{A in a} p(A | a) Σ_{X in x, R in r} p(A → X R)
#
# and likewise for chains of unary rules and for words. What only single words are made of (tags) is
# a class each; all symbols that may have several words are one class, and so are the rests of
# rules, such as ⟨Y Z⟩: finer classes say little more and cost far more than they save.
#
# Classes whose chances are the largest of their symbols', so that p(class | sentence) were a bound,
# are of no use: with each of six ways to make classes, the bound on p(sentence) was in the mean
# e^48 to e^94 times too large (60 sentences of 25 to 40 words, WSJ sample). So what is left out
# here is improbable by an estimate, and `pruning.lost` measures what that costs.


ROUNDS = 50
"""How deep trees are, for the sake of how often symbols are used in them."""
RARE = 1e-9
"""Symbols that are further down are used so often."""


def coarse_of(grammar: RuleTables, words: Words, prune: float) -> Coarse:
    """The coarse grammar by which what is less probable than ``prune`` is left out; 0: nothing."""
    if not 0.0 <= prune < 1.0:
        raise LearnerError(
            f"prune is {shown(prune)}", "give a probability: 0 (nothing is left out), or 1e-4"
        )
    if prune == 0.0:
        return Coarse(0.0, np.zeros(0, np.int32), np.zeros(0), grammar, words)
    return projected(grammar, words, _classes(grammar), prune)


def projected(grammar: RuleTables, words: Words, classes: Array, prune: float) -> Coarse:
    """The grammar of classes: those of symbols that users know come first, and those of rests, such
    as ⟨Y Z⟩, last."""
    often = _used(grammar)
    priors = often / np.bincount(classes, often)[classes]
    coarse = RuleTables(
        np.bincount(classes[: len(grammar.root)], grammar.root),
        int(classes[: grammar.n_left].max()) + 1,
        _joins(grammar.joins, classes, priors),
        _chains(grammar.chains, classes[: len(grammar.root)], priors),
        False,
    )
    return Coarse(prune, classes, priors, coarse, _words(words, classes, priors))


def _classes(grammar: RuleTables) -> Array:
    joins, chains, n_known = grammar.joins, grammar.chains, len(grammar.root)
    found = np.arange(len(joins.wide))
    found[n_known : grammar.n_left] = n_known + 1
    found[grammar.n_left :] = n_known + 2
    is_wide = np.zeros(len(joins.wide), np.bool_)
    is_wide[joins.parent] = True
    bottoms = _numbers(chains.begins) % n_known
    is_wide[chains.tops[is_wide[bottoms]]] = True
    found[:n_known][is_wide[:n_known]] = n_known
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


def _used(grammar: RuleTables) -> Array:
    """How often a tree is expected to use each symbol, down to some depth."""
    joins, chains, n = grammar.joins, grammar.chains, len(grammar.joins.wide)
    rights, tops = _numbers(joins.indptr), _numbers(chains.indptr)
    first = np.concatenate([grammar.root, np.zeros(n - len(grammar.root))])
    found = first
    for _ in range(ROUNDS):
        shares, below = found[joins.parent] * joins.chance, found[tops] * chains.chance
        found = first + np.bincount(chains.child, below, n)
        found += np.bincount(joins.left, shares, n) + np.bincount(rights, shares, n)
    return found + RARE


def _joins(joins: Joins, classes: Array, priors: Array) -> Joins:
    n, rights = int(classes.max()) + 1, _numbers(joins.indptr)
    may_be_wide = np.zeros(n, np.bool_)
    may_be_wide[classes[joins.left[np.arange(len(rights)) < joins.wide[rights]]]] = True
    alone = ~may_be_wide[classes[joins.left]]
    parts = (classes[rights], alone, classes[joins.left], classes[joins.parent])
    keys, chance = _summed(parts, (n, 2, n, n), priors[joins.parent] * joins.chance)
    right, alone, left, parent = keys
    indptr = borders(right, n)
    wide = indptr[:-1] + np.bincount(right[alone == 0], minlength=n)
    return Joins(indptr, wide, left.astype(np.int32), parent.astype(np.int32), chance)


def _chains(chains: Chains, classes: Array, priors: Array) -> Chains:
    """What chains add up to; single rules are not needed, as nobody wants to know their counts."""
    n_known, n = len(classes), int(classes.max()) + 1
    n_sets, bottoms = (len(chains.begins) - 1) // n_known, _numbers(chains.begins)
    parts = (bottoms // n_known, classes[bottoms % n_known], classes[chains.tops])
    keys, weights = _summed(parts, (n_sets, n, n), priors[chains.tops] * chains.weights)
    begins = borders(keys[0] * n + keys[1], n_sets * n)
    indptr, child = np.zeros(n + 1, chains.indptr.dtype), np.zeros(0, chains.child.dtype)
    return Chains(indptr, child, np.zeros(0), begins, keys[2].astype(chains.tops.dtype), weights)


def _words(words: Words, classes: Array, priors: Array) -> Words:
    n_rows = len(words.indptr) - 1
    parts = (_numbers(words.indptr), classes[words.symbols])
    values = priors[words.symbols] * words.chances
    (rows, symbols), chances = _summed(parts, (n_rows, int(classes.max()) + 1), values)
    return Words(words.rows, borders(rows, n_rows), symbols.astype(np.int32), chances)


def _summed(
    parts: tuple[Array, ...], shape: tuple[int, ...], values: Array
) -> tuple[tuple[Array, ...], Array]:
    """Sums of the values that have the same numbers, in the order of these."""
    wide = tuple(part.astype(np.int64) for part in parts)
    keys, at = np.unique(np.ravel_multi_index(wide, shape), return_inverse=True)
    return np.unravel_index(keys, shape), np.bincount(at, values, len(keys))


def _numbers(indptr: Array) -> Array:
    """The row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


# Passes over sentences by a grammar of rules: expected counts, likelihoods, derivations.


RULE_PIECES = 16
"""Work is shared out among so many, whatever the threads: each has counts of its own, which are
added up in one order."""
MOST_ROUNDS = 1e5
"""Chains of unary rules that are drawn may go round so often, on average: each round is a node."""


class Derived(NamedTuple):
    """Derivations as lists of numbers (see `grammar.kernels.rules`): sample m of sentence s
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


def rule_text(lengths: Array, begins: Array | None = None, sets: Array | None = None) -> RuleText:
    """Sentences of these lengths; without ``begins``, nothing is known of their spans."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    free = np.full(len(lengths), -1, np.int64)
    none = np.zeros(0, np.int64)
    return RuleText(indptr, free if begins is None else begins, none if sets is None else sets)


def expected(
    own: Binarised,
    grammar: RuleTables,
    words: Words,
    some: RuleText,
    weights: Array,
    threads: int = 1,
    counting: bool = True,
    prune: float = 0.0,
) -> RuleCounts:
    """log p of each sentence and, if wanted, what all are expected to use.

    ``prune``  what a coarse grammar thinks less probable is left out: see `coarse`
    """
    logs, bounds = np.zeros(len(some.indptr) - 1), _bounds(some.indptr)
    coarse = coarse_of(grammar, words, prune)
    found: dict[int, RuleCounts] = {}

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
    grammar: RuleTables,
    words: Words,
    some: RuleText,
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


def _demand_short_chains(grammar: RuleTables) -> None:
    """Complain of chains that nobody could draw, though sums over them are fine."""
    rounds = grammar.chains.weights.max(initial=1.0)
    if rounds > MOST_ROUNDS:
        raise LearnerError(
            f"unary rules go round some {rounds:.3g} times: no tree can be drawn",
            "give less probability to unary rules that lead back, or take best trees",
        )


def counted(own: Binarised, words: Words, found: Derived, weights: Array) -> RuleCounts:
    """What derivations add up to; those of one sentence share its weight."""
    tally, sizes = own.tally(found.logs, words), np.diff(found.borders)
    samples = len(sizes) // max(len(weights), 1)
    shares = np.repeat(weights / max(samples, 1), samples)
    own.counted(found.codes, np.repeat(shares, sizes), words, tally)
    first = found.codes[found.borders[:-1][sizes > 0]]
    np.add.at(tally.root, own.made(words)[first], shares[sizes > 0])
    return tally


def spans(
    own: Binarised, grammar: RuleTables, words: Words, some: RuleText, s: int
) -> tuple[Array, Array, Array, Array]:
    """Where a sentence is expected to have which symbols, and how many: starts, ends, symbols,
    numbers."""
    cells, symbols, shares = nodes(s, some, grammar, words, own.tally(np.zeros(1), words))
    starts, ends = np.triu_indices(some.indptr[s + 1] - some.indptr[s])
    return starts[cells], ends[cells] + 1, symbols, shares


def _bounds(indptr: Array) -> Array:
    """Where pieces begin, and the end: a chart takes the cube of the words."""
    return even_pieces(np.diff(indptr).astype(np.float64) ** 3, RULE_PIECES)
