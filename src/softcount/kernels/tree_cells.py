"""Trees as lists of the entries that they use: see `softcount.kernels.chart_trees` for trees.

Entries are numbered through all tables, one after the other: K + T roots, then K rows of (K + T)²
rules, then T rows of words.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array


@njit
def cells_of(
    symbols: Array,
    ends: Array,
    indptr: Array,
    rows: Array,
    possible: Array,
    n_nonterminals: int,
    n_symbols: int,
    n_words: int,
) -> tuple[Array, Array]:
    """The cells of one tree a sentence, the root's first, then in preorder; and their borders.

    Words from number ``n_words`` on are in no table, and have no cell. Sentences that are empty, or
    not possible, have none.
    """
    of_rules = n_symbols
    of_words = of_rules + n_nonterminals * n_symbols * n_symbols
    cells, borders = np.empty(2 * indptr[-1], np.int64), np.zeros(len(indptr), np.int64)
    used = 0
    for s in range(len(indptr) - 1):
        if possible[s] and indptr[s] < indptr[s + 1]:
            first, begin = 2 * indptr[s], 0
            cells[used] = symbols[first]
            used += 1
            for node in range(first, 2 * indptr[s + 1] - 1):
                symbol, end = symbols[node], ends[node]
                if end > begin + 1:
                    # behind the left child and all below it
                    right = symbols[node + 2 * (ends[node + 1] - begin)]
                    pair = symbols[node + 1] * n_symbols + right
                    cells[used] = of_rules + symbol * n_symbols * n_symbols + pair
                    used += 1
                    continue
                word = rows[indptr[s] + begin]
                if word < n_words:
                    cells[used] = of_words + (symbol - n_nonterminals) * n_words + word
                    used += 1
                begin = end
        borders[s + 1] = used
    return cells[:used], borders
