"""Best trees, draws of trees, and what trees count: see `softcount.kernels.inside_outside`.

A tree of n words has 2 n − 1 nodes, here from the root down, the left child and all below it first;
of each its symbol and its end are known. Preterminals come after nonterminals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.chart_steps import Grammar, Pairs, Room
from softcount.kernels.inside_outside import Text, inside
from softcount.kernels.jit import lean, njit
from softcount.kernels.random import chosen, item_stream, uniform
from softcount.kernels.span_pairs import (
    LEAF_FIRST,
    LEAF_LAST,
    LEAVES,
    SPANS,
    Charts,
    cell,
    gather,
)
from softcount.types import Array


class Nodes(NamedTuple):
    """Nodes of trees (samples, 2 · tokens): those of a sentence begin at twice its first token."""

    symbols: Array
    ends: Array


class Choice(NamedTuple):
    """A way to go on from a node: the width of the left child, and the symbols of both."""

    width: int
    left: int
    right: int


@njit
def traced(
    first: int,
    last: int,
    text: Text,
    grammar: Grammar,
    n_nonterminals: int,
    best: bool,
    numbers: Array,
    seed: Any,
    logs: Array,
    nodes: Nodes,
) -> None:
    """Trees of sentences ``order[first]`` to ``order[last − 1]``, none of them empty.

    The best one, ``logs`` being log p(tree, sentence); or drawn in proportion to their chances,
    ``logs`` being log p(sentence). A draw depends on the seed, the sentence's number and the
    sample's alone.
    """
    c, rooms, _ = inside(first, last, text, grammar, best, logs)
    stream = np.empty(1, np.uint64)
    stack = np.empty((c.lengths.max() + 1, 3), np.int64)
    for s in range(len(c.lengths)):
        sentence = text.order[first + s]
        begin = 2 * text.indptr[sentence]
        logs[sentence] += _root_log(s, c, grammar, best)
        if logs[sentence] == -np.inf:
            continue
        for n in range(len(nodes.symbols)):
            stream[0] = item_stream(item_stream(seed, numbers[sentence]), n)
            own = Nodes(nodes.symbols[n, begin:], nodes.ends[n, begin:])
            _trace(s, c, grammar, n_nonterminals, best, rooms, stream, stack, own)


@njit
def _root_log(s: int, c: Charts, grammar: Grammar, best: bool) -> float:
    """log of the root's chance: that of the best one, or of all."""
    n = c.lengths[s]
    weights, beta = _at_root(s, c, grammar)
    total = 0.0
    for k in range(len(weights)):
        chance = weights[k] * beta[k]
        total = max(total, chance) if best else total + chance
    return math.log(total) - c.powers[s, n] * math.log(2.0) if total > 0.0 else -np.inf


@njit
def _at_root(s: int, c: Charts, grammar: Grammar) -> tuple[Array, Array]:
    """Chances of being the root, and of what is below."""
    n = c.lengths[s]
    if n == 1:
        return grammar.single, c.leaves[c.leaf_of[s]]
    return grammar.root, c.spans[c.span_of[s] + cell(n, n, 0)]


@njit
def _trace(
    s: int,
    c: Charts,
    grammar: Grammar,
    n_nonterminals: int,
    best: bool,
    rooms: tuple[Room, Room, Room, Room],
    stream: Array,
    stack: Array,
    nodes: Nodes,
) -> None:
    """A tree of a sentence; ``stack`` has the symbols, first words and widths of nodes to come."""
    n = c.lengths[s]
    weights, beta = _at_root(s, c, grammar)
    chances = weights * beta
    root = int(np.argmax(chances)) if best else chosen(chances, stream)
    stack[0, 0], stack[0, 1], stack[0, 2] = root + (n_nonterminals if n == 1 else 0), 0, n
    depth, number = 1, 0
    while depth:
        depth -= 1
        symbol, i, w = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        nodes.symbols[number], nodes.ends[number] = symbol, i + w
        number += 1
        if w == 1:
            continue
        to = _way_on(symbol, w, i, s, c, grammar, best, rooms, stream)
        left = to.left + (n_nonterminals if to.width == 1 else 0)
        right = to.right + (n_nonterminals if w - to.width == 1 else 0)
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = right, i + to.width, w - to.width
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = left, i, to.width
        depth += 2


@njit
def _way_on(
    symbol: int,
    w: int,
    i: int,
    s: int,
    c: Charts,
    grammar: Grammar,
    best: bool,
    rooms: tuple[Room, Room, Room, Room],
    stream: Array,
) -> Choice:
    """How a node goes on: the best way, or one drawn.

    Ways are gone through twice if one is drawn: to add up their chances, and up to the drawn one.
    """
    goal = -1.0 if best else 0.0
    found, reached = Choice(0, 0, 0), 0.0
    for turn in range(1 if best else 2):
        if turn:
            goal, reached = uniform(stream, 0) * reached, 0.0
        if w == 2:
            found, reached = _ways(
                LEAVES, symbol, w, i, s, c, grammar.leaves, rooms[0], goal, turn, found, reached
            )
            continue
        found, reached = _ways(
            LEAF_FIRST, symbol, w, i, s, c, grammar.leaf_first, rooms[1], goal, turn, found, reached
        )
        found, reached = _ways(
            LEAF_LAST, symbol, w, i, s, c, grammar.leaf_last, rooms[2], goal, turn, found, reached
        )
        if w > 3:
            found, reached = _ways(
                SPANS, symbol, w, i, s, c, grammar.spans, rooms[3], goal, turn, found, reached
            )
    return found


@lean
def _ways(
    kind: int,
    symbol: int,
    w: int,
    i: int,
    s: int,
    c: Charts,
    pairs: Pairs,
    at: Room,
    goal: float,
    turn: int,
    found: Choice,
    reached: float,
) -> tuple[Choice, float]:
    """Go through pairs of one kind; gives the choice so far and the sum, or the best, so far.

    A negative goal asks for the best; else, in turn 1, for the way at which sums pass the goal.
    """
    where = (c.lengths, c.leaf_of, c.span_of, c.leaves, c.spans, c.powers)
    n = gather(kind, w, i, s, *where, at.left, at.right, at.factors)
    width = w - 1 if kind == LEAF_LAST else 1
    for m in range(n):
        if kind == SPANS:
            width = m + 2
        for b in range(pairs.down.shape[1] // pairs.wide):
            if at.left[m, b] <= 0.0:
                continue
            for k in range(pairs.wide):
                rule = pairs.down[symbol, b * pairs.wide + k]
                chance = rule * at.left[m, b] * at.right[m, k]
                if chance <= 0.0:
                    continue
                if goal < 0.0:
                    if chance > reached:
                        found, reached = Choice(width, b, k), chance
                elif turn == 0:
                    reached += chance
                elif reached <= goal:
                    found, reached = Choice(width, b, k), reached + chance
    return found, reached
