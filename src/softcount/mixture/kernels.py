"""Kernels of document mixtures: products of word counts with tables (words, classes).

Symbols: documents d, words w, classes k; x_dw the count of w in d (by document or by word), L_wk
the weight of a word in a class (``weights``: log θ_kw), o_k that of the class itself, r_dk the
responsibility of a class for a document. The K numbers of a word are contiguous in memory, so that
loops over k vectorise; where rows are padded to whole vectors, their sums stay in registers.

Ranges ``first … last`` are for parallel threads: each row of the result is computed by a single
thread, and its sum is taken in the same order whichever thread that is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.collapsed import draw_from_logs, log_rising, shuffle_range
from softcount.kernels.jit import inline, lean, njit
from softcount.kernels.random import item_stream
from softcount.kernels.vectors import add_listed_rows, prefetch
from softcount.text.bags import Compressed


class MainClasses(NamedTuple):
    """Responsibilities r_dk, and the classes with non-negligible ones for each document.

    Those of document d are ``classes[indptr[d]:indptr[d + 1]]``, and their responsibilities are
    ``shares`` at the same places; an empty list means all classes.
    """

    responsibilities: FloatArray  # (documents, classes)
    indptr: IntArray
    classes: IntArray
    shares: FloatArray


@lean
def joint(
    first: int,
    last: int,
    x: Compressed,
    weights: FloatArray,
    offsets: FloatArray,
    out: FloatArray,
) -> None:
    """out_dk ← o_k + Σ_w x_dw L_wk for the documents from first to last; 0 · −inf never arises.

    ``weights``  L, its rows padded to whole vectors by `transpose`
    """
    indptr, words, counts = x.indptr, x.columns, x.value
    sums, K = np.zeros((1, weights.shape[1])), len(offsets)
    for d in range(first, last):
        for k in range(K):
            sums[0, k] = offsets[k]
        add_listed_rows(sums, 0, weights, words, counts, indptr[d], indptr[d + 1])
        for k in range(K):
            out[d, k] = sums[0, k]


AHEAD = 16
"""Rows are prefetched this many words or documents before they are needed."""

FEW = 2
"""Listing a document's classes pays if they are at most one in this many of all classes."""


@lean
def main_classes(responsibilities: FloatArray, least: float) -> MainClasses:
    """List the classes with r_dk > least · max_k r_dk for each document.

    A document with many such classes gets an empty list.
    """
    n, K = responsibilities.shape
    indptr, classes = np.zeros(n + 1, np.int64), np.empty(n * (K // FEW), np.int32)
    shares = np.empty(len(classes))
    for d in range(n):
        i, largest = indptr[d], responsibilities[d, 0]
        for k in range(1, K):
            largest = max(largest, responsibilities[d, k])
        for k in range(K):
            if responsibilities[d, k] > least * largest:
                if i == indptr[d] + K // FEW:
                    i = indptr[d]
                    break
                classes[i], shares[i] = k, responsibilities[d, k]
                i += 1
        indptr[d + 1] = i
    return MainClasses(responsibilities, indptr, classes, shares)


@lean
def counts_by_document(x: Compressed, main: MainClasses, out: FloatArray) -> None:
    """out_wk += Σ_d x_dw r_dk, document by document: nothing has to be transposed."""
    indptr, words, counts = x.indptr, x.columns, x.value
    r, borders, classes, shares = main
    n, K, flat = len(words), out.shape[1], out.reshape(-1)
    for d in range(len(indptr) - 1):
        first, last = borders[d], borders[d + 1]
        begin, width = (classes[first], 1) if first + 1 == last else (0, K)
        for i in range(indptr[d], indptr[d + 1]):
            if i + AHEAD < n:
                prefetch(flat, words[i + AHEAD] * K + begin, width)
            w, count = words[i], counts[i]
            if first + 1 == last:  # most documents: without a loop
                out[w, classes[first]] += count * shares[first]
            elif first == last:
                for k in range(K):
                    out[w, k] += count * r[d, k]
            else:
                for j in range(first, last):
                    out[w, classes[j]] += count * shares[j]


BLOCK = 32
"""Words whose counts are summed before they are written."""


@lean
def counts_by_word(
    first: int, last: int, x: Compressed, main: MainClasses, out: FloatArray
) -> None:
    """The same sums in the same order, word by word, from first to last: no two threads write to
    the same row, and the row stays in the cache.

    ``x`` is transposed, with a row for each word.
    """
    indptr, documents, counts = x.indptr, x.columns, x.value
    r, borders, classes, shares = main
    K = out.shape[1]
    sums, flat = np.empty((BLOCK, K)), r.reshape(-1)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        sums[:] = 0.0
        for w in range(begin, end):
            row = w - begin
            for i in range(indptr[w], indptr[w + 1]):
                if i + AHEAD < len(documents):
                    ahead = documents[i + AHEAD]
                    if borders[ahead] == borders[ahead + 1]:
                        prefetch(flat, ahead * K, K)
                d, count = documents[i], counts[i]
                low, high = borders[d], borders[d + 1]
                if low + 1 == high:  # most documents: without a loop
                    sums[row, classes[low]] += count * shares[low]
                elif low == high:
                    for k in range(K):
                        sums[row, k] += count * r[d, k]
                else:
                    for j in range(low, high):
                        sums[row, classes[j]] += count * shares[j]
        for k in range(K):
            for w in range(begin, end):
                out[w, k] = sums[w - begin, k]


WIDE = 128
"""With more classes than this it takes longer to go through all responsibilities of a document than
through a list of those that matter."""


@lean
def pad_responsibilities(responsibilities: FloatArray, least: float, out: FloatArray) -> None:
    """Copy to padded rows, with 0 in place of what `main_classes` leaves out."""
    n, K = responsibilities.shape
    for d in range(n):
        largest, n_main = responsibilities[d, 0], 0
        for k in range(1, K):
            largest = max(largest, responsibilities[d, k])
        for k in range(K):
            n_main += responsibilities[d, k] > least * largest
        bound = least * largest if n_main <= K // FEW else -1.0
        for k in range(K):
            out[d, k] = responsibilities[d, k] if responsibilities[d, k] > bound else 0.0
        for k in range(K, out.shape[1]):
            out[d, k] = 0.0


@lean
def sum_by_word(
    first: int, last: int, x: Compressed, responsibilities: FloatArray, out: FloatArray
) -> None:
    """out_kw ← Σ_d x_dw r_dk, the same sums in the same order as those of `counts_by_word`.

    ``x``                 transposed, with a row for each word
    ``responsibilities``  padded: the sums of a word stay in registers
    """
    indptr, documents, counts = x.indptr, x.columns, x.value
    sums = np.empty((BLOCK, responsibilities.shape[1]))
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        sums[:] = 0.0
        for w in range(begin, end):
            add_listed_rows(
                sums, w - begin, responsibilities, documents, counts, indptr[w], indptr[w + 1]
            )
        for k in range(len(out)):
            for w in range(begin, end):
                out[k, w] = sums[w - begin, k]


@lean
def transpose(table: FloatArray, rest: float, out: FloatArray) -> None:
    """out_wk ← table_kw, in blocks that stay in the cache; padding becomes ``rest``."""
    K, V = table.shape
    for begin in range(0, V, BLOCK):
        end = min(begin + BLOCK, V)
        for k in range(K):
            for w in range(begin, end):
                out[w, k] = table[k, w]
        for w in range(begin, end):
            for k in range(K, out.shape[1]):
                out[w, k] = rest


# Collapsed Gibbs sampling of the class of every document, all parameters integrated out.
#
# Documents d, words w, classes k; c_dw and N_d a document's word counts and length; n_k, n_kw, n_k·
# the documents, word counts and tokens of a class, excluding document d; rising factorials
# x^(n) = x (x+1) … (x+n−1):
#
#     p(z_d = k | z_−d, x) ∝ weight_k · Π_w (n_kw + β_w)^(c_dw) / (n_k· + Σβ)^(N_d)
#
# (Yin & Wang 2014). weight_k is n_k + α_k in a mixture of K classes. In a Chinese restaurant
# process with concentration a it is n_k for a class in use; the weight a of a new class is divided
# equally among the free places. So z has the prior p(partition) (K − m)! / K!, with m classes in
# use: all ways to seat m classes at K places are equally probable.
#
# The K counts of a word are contiguous, and factors are multiplied instead of adding their
# logarithms: the loop over k vectorises, with one logarithm for every ``span`` factors.


SPAN_BITS = 1000.0
"""A product of factors may grow or shrink by this many powers of two."""

MANY = 32.0
"""Rising factorials of more factors than this are computed by `log_rising`: it is then faster."""


class BagArrays(NamedTuple):
    """Documents: counts in CSR form, lengths, and the allowed classes lower_d ≤ k < upper_d."""

    indptr: IntArray
    words: IntArray
    counts: FloatArray
    lengths: FloatArray
    lower: IntArray
    upper: IntArray


class CollapsedPrior(NamedTuple):
    """Priors of class weights and of words.

    ``alpha``          Dirichlet prior of the class weights
    ``concentration``  of a Chinese restaurant process, which then replaces ``alpha``; else 0
    ``beta``           Dirichlet prior of words
    ``span``           number of factors n_kw + β_w + j that can be multiplied without overflow
    """

    alpha: FloatArray  # (K,)
    concentration: float
    beta: FloatArray  # (V,)
    beta_total: float
    span: int


class Assignments(NamedTuple):
    """The class of each document, and the resulting counts.

    Counts are whole numbers, so that adding and subtracting causes no rounding errors.
    """

    classes: IntArray  # (documents,)
    sizes: FloatArray  # n_k, documents of each class
    totals: FloatArray  # n_k·, their tokens
    words: FloatArray  # n_kw, (V, K)


@njit
def move(bags: BagArrays, state: Assignments, d: int, k: int, sign: float) -> None:
    """Add document d to class k (sign 1), or remove it (−1)."""
    state.sizes[k] += sign
    state.totals[k] += sign * bags.lengths[d]
    for i in range(bags.indptr[d], bags.indptr[d + 1]):
        state.words[bags.words[i], k] += sign * bags.counts[i]


@njit
def count_all(bags: BagArrays, state: Assignments) -> None:
    """Add every document to the counts of its class."""
    for d in range(len(state.classes)):
        move(bags, state, d, state.classes[d], 1.0)


@njit
def log_weights(prior: CollapsedPrior, sizes: FloatArray, out: FloatArray) -> bool:
    """out_k ← log weight_k; return whether a restaurant has no place left for a new class."""
    K = len(sizes)
    if prior.concentration == 0.0:
        for k in range(K):
            out[k] = math.log(sizes[k] + prior.alpha[k])
        return False
    free = 0
    for k in range(K):
        free += sizes[k] == 0.0
    share = math.log(prior.concentration / max(free, 1))
    for k in range(K):
        out[k] = math.log(sizes[k]) if sizes[k] > 0.0 else share
    return free == 0


@njit
def conditional(
    bags: BagArrays,
    prior: CollapsedPrior,
    state: Assignments,
    d: int,
    workspace: FloatArray,
    out: FloatArray,
) -> bool:
    """out_k ← log p(z_d = k | z_−d, x) up to a constant, where k is allowed.

    Document d must have been removed from the counts. ``workspace`` is (K,). Returns whether a
    restaurant is full.
    """
    allowed = slice(bags.lower[d], bags.upper[d])
    full = log_weights(prior, state.sizes, out)
    logs, totals, product = out[allowed], state.totals[allowed], workspace[allowed]
    K = len(logs)
    for k in range(K):
        logs[k] -= log_rising(totals[k] + prior.beta_total, bags.lengths[d])
        product[k] = 1.0
    factors = 0
    for i in range(bags.indptr[d], bags.indptr[d + 1]):
        w, c = bags.words[i], bags.counts[i]
        row, beta = state.words[w, allowed], prior.beta[w]
        if c > MANY:
            for k in range(K):
                logs[k] += log_rising(row[k] + beta, c)
            continue
        for j in range(int(c)):
            for k in range(K):
                product[k] *= row[k] + (beta + j)
            factors += 1
            if factors == prior.span:
                factors = 0
                _take_logs(product, logs)
    _take_logs(product, logs)
    return full


@inline
def _take_logs(product: FloatArray, logs: FloatArray) -> None:
    for k in range(len(logs)):
        logs[k] += math.log(product[k])
        product[k] = 1.0


@njit
def sweep(
    bags: BagArrays, prior: CollapsedPrior, state: Assignments, seed: Any, temper: float
) -> int:
    """Resample the class of every document, in random order.

    Returns the number of documents that met a full restaurant. Documents with a single allowed
    class keep it.
    """
    K = len(state.sizes)
    product, logs = np.empty(K), np.empty(K)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    refused = 0
    for d in shuffle_range(len(state.classes), stream):
        lower, upper = bags.lower[d], bags.upper[d]
        if upper - lower == 1:
            continue
        move(bags, state, d, state.classes[d], -1.0)
        refused += conditional(bags, prior, state, d, product, logs)
        state.classes[d] = draw_from_logs(logs, lower, upper, temper, stream, product)
        move(bags, state, d, state.classes[d], 1.0)
    return refused


@njit
def log_words(prior: CollapsedPrior, state: Assignments) -> float:
    """Return log p(x | z) = Σ_k [Σ_w log β_w^(n_kw) − log (Σβ)^(n_k·)]."""
    total = 0.0
    V, K = state.words.shape
    for w in range(V):
        for k in range(K):
            if state.words[w, k] > 0.0:
                total += log_rising(prior.beta[w], state.words[w, k])
    for k in range(K):
        total -= log_rising(prior.beta_total, state.totals[k])
    return total
