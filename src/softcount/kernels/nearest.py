"""The rows that are nearest to a row: the exact best k by inner products, block by block.

What is nearest is the largest x · y + offset(y), with an offset of −‖y‖²/2 for distances and of 0
for cosines. The k best of every row are kept as a heap whose first is the worst of them; among
equals the row with the smaller number is better, so that no order of the work shows in the result.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array

NOTHING = -1e300
"""Below every score there is."""


@njit
def push(scores: Array, rows: Array, n: int, score: float, row: int) -> int:
    """Offer a row to a heap that has n of as many as it can hold; gives how many it has then."""
    k = len(scores)
    if n < k:  # up from the end
        at = n
        while at > 0:
            above = (at - 1) // 2
            if scores[above] < score or (scores[above] == score and rows[above] > row):
                break
            scores[at], rows[at] = scores[above], rows[above]
            at = above
        scores[at], rows[at] = score, row
        return n + 1
    if score < scores[0] or (score == scores[0] and row > rows[0]):
        return n
    at = 0
    while 2 * at + 1 < k:  # down from the top, where the worst was
        below = 2 * at + 1
        other = below + 1
        if other < k and (
            scores[other] < scores[below]
            or (scores[other] == scores[below] and rows[other] > rows[below])
        ):
            below = other
        if scores[below] > score or (scores[below] == score and rows[below] < row):
            break
        scores[at], rows[at] = scores[below], rows[below]
        at = below
    scores[at], rows[at] = score, row
    return n


@njit
def search_sparse(
    first: int,
    last: int,
    indptr: Array,
    middle: Array,
    terms: Array,
    values: Array,
    norms: Array,
    base_indptr: Array,
    base_middle: Array,
    base_terms: Array,
    base_values: Array,
    base_norms: Array,
    offsets: Array,
    borders: Array,
    lists: Array,
    postings: Array,
    weights: Array,
    n_frequent: int,
    alone: bool,
    best: Array,
    found: Array,
    filled: Array,
) -> None:
    """The nearest rows of the base for rows first ≤ q < last, both with rising terms.

    Terms are in the order of how many rows have them. Those of a row from ``middle`` on are
    frequent: they are the costly ones, and say little. Of these only the norms are looked at,

        x · y ≤ Σ over rare terms + ‖frequent part of x‖ ‖frequent part of y‖,

    and whatever cannot be among the best k is left there; for the few others the sum goes on. Sums
    run over terms in the same order either way, and so have the same bits.

    ``lists``     of each block of the base, where the postings of each rare term begin
    ``postings``  numbers of rows within the block, and ``weights`` what they have of the term.
                  These and ``lists`` are unsigned: of signed numbers numba asks each time whether
                  they count from the end
    ``alone``     rows are those of the base, and none is its own neighbour
    """
    n_rare = lists.shape[1] - 1
    size = 0
    for block in range(len(borders) - 1):
        size = max(size, borders[block + 1] - borders[block])
    sums = np.zeros(size)
    frequent = np.zeros(n_frequent)
    k = best.shape[1]
    for block in range(len(borders) - 1):
        begin = borders[block]
        n_rows = borders[block + 1] - begin
        starts = lists[block]
        its_norms = base_norms[begin : begin + n_rows]
        its_offsets = offsets[begin : begin + n_rows]
        for q in range(first, last):
            for entry in range(indptr[q], middle[q]):
                value, term = values[entry], terms[entry]
                for place in range(starts[term], starts[term + 1]):
                    sums[postings[place]] += value * weights[place]
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = values[entry]
            scores, rows, n = best[q], found[q], filled[q]
            bar = scores[0] if n == k else NOTHING
            norm = norms[q]
            for i in range(n_rows):
                total = sums[i]
                sums[i] = 0.0
                if total + norm * its_norms[i] + its_offsets[i] < bar:
                    continue
                row = begin + i
                for entry in range(base_middle[row], base_indptr[row + 1]):
                    total += frequent[base_terms[entry] - n_rare] * base_values[entry]
                if total > 0.0 and not (alone and row == q):
                    n = push(scores, rows, n, total + its_offsets[i], row)
                    bar = scores[0] if n == k else NOTHING
            filled[q] = n
            for entry in range(middle[q], indptr[q + 1]):
                frequent[terms[entry] - n_rare] = 0.0


@njit
def search_dense(
    products: Array,
    offsets: Array,
    begin: int,
    least: float,
    own: Array,
    best: Array,
    found: Array,
    filled: Array,
) -> None:
    """Offer a block of the base, which begins at row ``begin``, to the heaps of some rows.

    ``products``  (rows, block): inner products; only those above ``least`` count
    ``own``       the row of the base that each row is; −1: none
    """
    k = best.shape[1]
    for q in range(len(products)):
        scores, rows, n = best[q], found[q], filled[q]
        bar = scores[0] if n == k else NOTHING
        for i in range(products.shape[1]):
            product = products[q, i]
            score = product + offsets[begin + i]
            if score >= bar and product > least and begin + i != own[q]:
                n = push(scores, rows, n, score, begin + i)
                bar = scores[0] if n == k else NOTHING
        filled[q] = n
