"""What trees count: see `softcount.kernels.chart_trees` for how they are written down."""

from __future__ import annotations

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def count_trees(
    symbols: Array,
    ends: Array,
    indptr: Array,
    weights: Array,
    possible: Array,
    rows: Array,
    root: Array,
    rules: Array,
    words: Array,
) -> None:
    """Add roots (K + T,), rules (K, K + T, K + T) and words (rows, T) of trees (samples, nodes).

    Each tree counts by its share of the sentence's weight; sentences that are not possible do not.
    """
    n_nonterminals = len(rules)
    for s in range(len(indptr) - 1):
        if indptr[s] == indptr[s + 1] or not possible[s]:
            continue
        share = weights[s] / len(symbols)
        first, last = 2 * indptr[s], 2 * indptr[s + 1] - 1
        for n in range(len(symbols)):
            root[symbols[n, first]] += share
            begin = 0
            for node in range(first, last):
                symbol, end = symbols[n, node], ends[n, node]
                if end == begin + 1:
                    words[rows[indptr[s] + begin], symbol - n_nonterminals] += share
                    begin = end
                    continue
                # behind the left child and all below it
                right = node + 2 * (ends[n, node + 1] - begin)
                rules[symbol, symbols[n, node + 1], symbols[n, right]] += share
