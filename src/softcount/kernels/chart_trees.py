"""Best trees, and draws of trees, from charts: see `softcount.kernels.inside_outside`.

A tree of n words has 2 n − 1 nodes, here from the root down, the left child and all below it first;
of each its symbol and its end are known. Preterminals come after nonterminals.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.chart_steps import Grammar
from softcount.kernels.inside_outside import Text, inside
from softcount.kernels.jit import njit, part
from softcount.kernels.random import chosen, item_stream
from softcount.kernels.span_pairs import Charts, cell, factor_of, power_of
from softcount.types import Array


class Nodes(NamedTuple):
    """Nodes of trees (samples, 2 · tokens): those of a sentence begin at twice its first token."""

    symbols: Array
    ends: Array


class Rules(NamedTuple):
    """Chances of roots, and of all rules: see `softcount.kernels.chart_steps.Grammar`."""

    root: Array
    single: Array
    every: Array


class Desk(NamedTuple):
    """Where trees are worked on.

    ``stack``   symbols, first words and widths of nodes to come
    ``splits``  weights of the widths of a left child
    ``pairs``   weights of pairs of symbols
    """

    stack: Array
    splits: Array
    pairs: Array


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
    c, _ = inside(first, last, text, grammar, best, logs)
    own = text.order[first:last]
    rules, begins = Rules(grammar.root, grammar.single, grammar.rules), 2 * text.indptr[own]
    desk = _desk(c, rules)
    _traces(c, rules, best, own, numbers[own], begins, seed, logs, nodes, desk)


def _desk(c: Charts, rules: Rules) -> Desk:
    longest = int(c.lengths.max()) + 1
    n_weights = max(rules.every[0].size, len(rules.root), len(rules.single))
    return Desk(np.empty((longest + 1, 3), np.int64), np.empty(longest), np.empty(n_weights))


@njit
def _traces(
    c: Charts,
    rules: Rules,
    best: bool,
    own: Array,
    numbers: Array,
    begins: Array,
    seed: Any,
    logs: Array,
    nodes: Nodes,
    desk: Desk,
) -> None:
    """Trees of a chart's sentences, which are to begin at some places of the nodes."""
    stream = np.empty(1, np.uint64)
    for s in range(len(c.lengths)):
        logs[own[s]] += _root_log(s, c, rules, best)
        if logs[own[s]] == -np.inf:
            continue
        for n in range(len(nodes.symbols)):
            stream[0] = item_stream(item_stream(seed, numbers[s]), n)
            _trace(s, c, rules, best, stream, desk, n, begins[s], nodes)


@part
def _root_log(s: int, c: Charts, rules: Rules, best: bool) -> float:
    """log of the root's chance: that of the best one, or of all."""
    weights, beta = _at_root(s, c, rules)
    total = 0.0
    for k in range(len(weights)):
        chance = weights[k] * beta[k]
        total = max(total, chance) if best else total + chance
    power = power_of(c.lengths[s], 0, s, c)
    return math.log(total) - power * math.log(2.0) if total > 0.0 else -np.inf


@part
def _at_root(s: int, c: Charts, rules: Rules) -> tuple[Array, Array]:
    """Chances of being the root, and of what is below."""
    n = c.lengths[s]
    if n == 1:
        return rules.single, c.leaves[c.leaf_of[s]]
    return rules.root, c.spans[c.span_of[s] + cell(n, n, 0)]


@part
def _picked(weights: Array, best: bool, stream: Array) -> int:
    """The number of the largest weight; or one drawn in proportion to them."""
    if not best:
        return chosen(weights, stream)
    top = 0
    for k in range(1, len(weights)):
        if weights[k] > weights[top]:
            top = k
    return top


@part
def _trace(
    s: int,
    c: Charts,
    rules: Rules,
    best: bool,
    stream: Array,
    desk: Desk,
    sample: int,
    begin: int,
    nodes: Nodes,
) -> None:
    """A tree of a sentence."""
    n, stack = c.lengths[s], desk.stack
    weights, beta = _at_root(s, c, rules)
    for k in range(len(weights)):
        desk.pairs[k] = weights[k] * beta[k]
    root = _picked(desk.pairs[: len(weights)], best, stream)
    stack[0, 0], stack[0, 1], stack[0, 2] = root + (len(rules.every) if n == 1 else 0), 0, n
    depth, number = 1, begin
    while depth:
        depth -= 1
        symbol, i, w = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        nodes.symbols[sample, number], nodes.ends[sample, number] = symbol, i + w
        number += 1
        if w > 1:
            m, left, right = _way_on(symbol, w, i, s, c, rules.every, best, stream, desk)
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = right, i + m, w - m
            stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = left, i, m
            depth += 2


@part
def _way_on(
    symbol: int,
    w: int,
    i: int,
    s: int,
    c: Charts,
    rules: Array,
    best: bool,
    stream: Array,
    desk: Desk,
) -> tuple[int, int, int]:
    """How a node goes on, in the best way or in one drawn: the width of its left child, and the
    symbols of both."""
    for m in range(1, w):
        total = 0.0
        for k in range(_weigh(m, symbol, w, i, s, c, rules, desk.pairs)):
            total = max(total, desk.pairs[k]) if best else total + desk.pairs[k]
        desk.splits[m - 1] = total
    m = 1 + _picked(desk.splits[: w - 1], best, stream)
    n_pairs = _weigh(m, symbol, w, i, s, c, rules, desk.pairs)
    pair = _picked(desk.pairs[:n_pairs], best, stream)
    first, last = _symbols(m, rules), _symbols(w - m, rules)
    wide = last[1] - last[0]
    return m, first[0] + pair // wide, last[0] + pair % wide


@part
def _symbols(w: int, rules: Array) -> tuple[int, int]:
    """What spans of w words may be: the first symbol and the end."""
    return (len(rules), rules.shape[1]) if w == 1 else (0, len(rules))


@part
def _weigh(
    m: int, symbol: int, w: int, i: int, s: int, c: Charts, rules: Array, pairs: Array
) -> int:
    """Chances of pairs of symbols, the left child being m words wide; gives their number."""
    parts = power_of(m, i, s, c) + power_of(w - m, i + m, s, c)
    factor = factor_of(power_of(w, i, s, c), parts)
    left, right = _child(m, i, s, c), _child(w - m, i + m, s, c)
    first, last = _symbols(m, rules), _symbols(w - m, rules)
    n = 0
    for b in range(first[0], first[1]):
        chance = left[b - first[0]] * factor
        for k in range(last[0], last[1]):
            pairs[n] = rules[symbol, b, k] * chance * right[k - last[0]]
            n += 1
    return n


@part
def _child(w: int, i: int, s: int, c: Charts) -> Any:
    """Chances of what is below a leaf's symbols, or a longer span's."""
    if w == 1:
        return c.leaves[c.leaf_of[s] + i]
    return c.spans[c.span_of[s] + cell(c.lengths[s], w, i)]
