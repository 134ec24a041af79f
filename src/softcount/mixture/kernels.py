"""Bags of words against a table of word weights, one column a class.

Symbols: documents d, words w, classes k; x_dw the count of w in d (``counts``, by document or by
word), L_wk the weight of a word in a class (``weights``: log θ_kw), r_dk a document's share of a
class. A word's K numbers lie side by side, so that the loops over k are vector instructions.

Ranges ``first … last`` let several threads work side by side: each row of the result has one owner,
and its sum is taken in the same order whoever owns it.
"""

from __future__ import annotations

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.types import Array


@njit
def joint(
    first: int, last: int, indptr: Array, words: Array, counts: Array, weights: Array, out: Array
) -> None:
    """out_dk += Σ_w x_dw L_wk for the documents from first to last; 0 · −inf never arises."""
    K = weights.shape[1]
    for d in range(first, last):
        row = out[d]
        for i in range(indptr[d], indptr[d + 1]):
            x, weight = counts[i], weights[words[i]]
            for k in range(K):
                row[k] += x * weight[k]


FEW = 2
"""A document with at most one class in so many is better off with a list of them."""


@njit
def main_classes(shares: Array, least: float) -> tuple[Array, Array]:
    """The classes with r_dk > least · max_k r_dk, document by document: row borders and classes.

    A document that belongs to many classes gets an empty list.
    """
    n, K = shares.shape
    indptr, classes = np.zeros(n + 1, np.int64), np.empty(n * (K // FEW), np.int32)
    for d in range(n):
        i, largest = indptr[d], shares[d].max()
        for k in range(K):
            if shares[d, k] > least * largest:
                if i == indptr[d] + K // FEW:
                    i = indptr[d]
                    break
                classes[i] = k
                i += 1
        indptr[d + 1] = i
    return indptr, classes


@inline
def _add(x: float, share: Array, classes: Array, first: int, last: int, row: Array) -> None:
    """row_k += x r_k for the classes listed, or for all of them if none is."""
    if first == last:
        for k in range(len(row)):
            row[k] += x * share[k]
    for j in range(first, last):
        row[classes[j]] += x * share[classes[j]]


@njit
def counts_by_document(
    indptr: Array,
    words: Array,
    counts: Array,
    shares: Array,
    borders: Array,
    classes: Array,
    out: Array,
) -> None:
    """out_wk += Σ_d x_dw r_dk, document by document: what is said of one stays at hand.

    ``shares`` is r, and ``borders, classes`` list the few classes that matter to a document.
    """
    for d in range(len(indptr) - 1):
        for i in range(indptr[d], indptr[d + 1]):
            _add(counts[i], shares[d], classes, borders[d], borders[d + 1], out[words[i]])


@njit
def counts_by_word(
    first: int,
    last: int,
    indptr: Array,
    documents: Array,
    counts: Array,
    shares: Array,
    borders: Array,
    classes: Array,
    out: Array,
) -> None:
    """The same sums in the same order, word by word, from first to last: threads share no row.

    ``indptr, documents, counts`` are x by word.
    """
    for w in range(first, last):
        for i in range(indptr[w], indptr[w + 1]):
            d = documents[i]
            _add(counts[i], shares[d], classes, borders[d], borders[d + 1], out[w])
