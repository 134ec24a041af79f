"""Compiled loops of topic models: the E-step of p(w | d) = Σ_k θ_dk φ_wk, and folding documents in.

Symbols: documents d, words w, topics k; x_dw counts, θ_dk (``theta``) and φ_wk (``phi``) with the K
numbers of a document or word contiguous, K zero-padded to a multiple of
`softcount.kernels.vectors.WIDTH`. The posterior of a topic, θ_dk φ_wk / s_dw with s =
Σ_k θ_dk φ_wk, is never stored: with the ratios r_dw = x_dw / s_dw

    n_dk = θ_dk Σ_w r_dw φ_wk      n_wk = φ_wk Σ_d r_dw θ_dk.

A single thread computes both sums in one pass; several threads first process the documents, then
the words, so that each row is written by one thread. The order of summation is the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softcount.core.types import FloatArray, IntArray
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.kernels.vectors import add_scaled_row, prefetch_row, row_dot

if TYPE_CHECKING:
    from softcount.text.bags import Compressed
    from softcount.topics.data import EntriesByWord

AHEAD = 8
"""Rows are prefetched this many words before they are needed."""

LEAST_FACTOR, LEAST_PRODUCT = 1e-100, 1e-200
"""Products of probabilities are converted to logarithms before they can underflow."""


class TopicSums(NamedTuple):
    """Output arrays of an E-step."""

    of_documents: FloatArray
    """n_dk, (documents, topics)."""
    of_words: FloatArray
    """n_wk, (words, topics); empty if not needed."""
    ratios: FloatArray
    """r_dw of every entry, in the order by document."""
    logs: FloatArray
    """log p(words of a document), (documents,)."""


@inline
def _expect_document(
    d: int,
    indptr: IntArray,
    words: IntArray,
    counts: FloatArray,
    theta: FloatArray,
    phi: FloatArray,
    ratios: FloatArray,
    out: FloatArray,
) -> float:
    """Compute n_dk (``out``) and the ratios of a document, and return log p(words).

    It takes arrays, which its callers unpack once, rather than tuples of them: numba counts a
    reference to each array that is taken out of a tuple, some 40 ns for every document, 4 to 7 % of
    the time if documents have a hundred words.
    """
    out[d] = 0.0
    log, product = 0.0, 1.0
    for i in range(indptr[d], indptr[d + 1]):
        if i + AHEAD < len(words):
            prefetch_row(phi, words[i + AHEAD])
        s = row_dot(theta, d, phi, words[i])
        ratios[i] = counts[i] / s if s > 0.0 else 0.0
        add_scaled_row(out, d, ratios[i], phi, words[i])
        if counts[i] == 1.0 and s > LEAST_FACTOR:
            product *= s
            if product < LEAST_PRODUCT:
                log += math.log(product)
                product = 1.0
        elif s > 0.0:
            log += counts[i] * math.log(s)
        else:
            log = -np.inf
    for k in range(out.shape[1]):
        out[d, k] *= theta[d, k]
    return log + math.log(product)


@njit
def expect_documents(
    first: int, last: int, entries: Compressed, theta: FloatArray, phi: FloatArray, sums: TopicSums
) -> None:
    """Compute n_dk, ratios and log p(words) of the documents first ≤ d < last."""
    indptr, words, counts = entries.indptr, entries.columns, entries.value
    out, ratios, logs = sums.of_documents, sums.ratios, sums.logs
    for d in range(first, last):
        logs[d] = _expect_document(d, indptr, words, counts, theta, phi, ratios, out)


@njit
def expect_words(
    first: int,
    last: int,
    entries: EntriesByWord,
    theta: FloatArray,
    phi: FloatArray,
    sums: TopicSums,
) -> None:
    """Compute n_wk of the words first ≤ w < last, from the ratios of `expect_documents`."""
    indptr, documents, places = entries.indptr, entries.documents, entries.places
    of_words, ratios = sums.of_words, sums.ratios
    for w in range(first, last):
        of_words[w] = 0.0
        for i in range(indptr[w], indptr[w + 1]):
            if i + AHEAD < len(documents):
                prefetch_row(theta, documents[i + AHEAD])
            add_scaled_row(of_words, w, ratios[places[i]], theta, documents[i])
        for k in range(of_words.shape[1]):
            of_words[w, k] *= phi[w, k]


@njit
def expect_both(entries: Compressed, theta: FloatArray, phi: FloatArray, sums: TopicSums) -> None:
    """Compute `expect_documents` and `expect_words` in a single pass over documents."""
    indptr, words, counts = entries.indptr, entries.columns, entries.value
    out, of_words, ratios, logs = sums.of_documents, sums.of_words, sums.ratios, sums.logs
    of_words[:] = 0.0
    for d in range(len(indptr) - 1):
        logs[d] = _expect_document(d, indptr, words, counts, theta, phi, ratios, out)
        for i in range(indptr[d], indptr[d + 1]):
            if i + AHEAD < len(words):
                prefetch_row(of_words, words[i + AHEAD])
            add_scaled_row(of_words, words[i], ratios[i], theta, d)
    for w in range(len(of_words)):
        for k in range(of_words.shape[1]):
            of_words[w, k] *= phi[w, k]


@njit
def assign_topics(
    entries: Compressed,
    numbers: IntArray,
    theta: FloatArray,
    phi: FloatArray,
    n_topics: int,
    temper: float,
    samples: int,
    stream: np.uint64,
    sums: TopicSums,
) -> None:
    """Assign each word to its best topic (samples = 0), or each occurrence to sampled topics.

    Samples are drawn from posteriors to the power ``temper``, ``samples`` of them for each
    occurrence, which is divided among them. ``sums.logs`` becomes Σ_w x_dw log max_k θ_dk φ_wk.
    ``numbers`` are the documents' numbers in the corpus, which seed their random streams.
    """
    indptr, words, counts = entries.indptr, entries.columns, entries.value
    of_documents, of_words, best = sums.of_documents, sums.of_words, sums.logs
    state, weights = np.empty(1, np.uint64), np.empty(n_topics)
    of_documents[:] = 0.0
    of_words[:] = 0.0
    for d in range(len(indptr) - 1):
        state[0] = item_stream(stream, numbers[d])
        best[d] = 0.0
        for i in range(indptr[d], indptr[d + 1]):
            w, x, chosen = words[i], counts[i], 0
            for k in range(n_topics):
                weights[k] = theta[d, k] * phi[w, k]
                if weights[k] > weights[chosen]:
                    chosen = k
            best[d] += x * math.log(weights[chosen]) if weights[chosen] > 0.0 else -np.inf
            if samples == 0:
                of_documents[d, chosen] += x
                of_words[w, chosen] += x
                continue
            total = 0.0
            for k in range(n_topics):
                weights[k] = weights[k] ** temper if temper != 1.0 else weights[k]
                total += weights[k]
            draws = max(1, math.ceil(x)) * samples
            for _ in range(draws):
                # inverse transform sampling: where the cumulative weight exceeds a uniform number
                chosen, rest = 0, total * uniform(state, 0)
                for k in range(n_topics):
                    if weights[k] > 0.0:
                        chosen = k
                        rest -= weights[k]
                        if rest < 0.0:
                            break
                of_documents[d, chosen] += x / draws
                of_words[w, chosen] += x / draws


# Folding in: the proportions of documents with fixed topics, one document after the other, each
# until it converges. The rows of φ of its words stay in the cache meanwhile, and a document that
# has converged costs nothing more.


SERIES_FROM = 10.0
"""From here on the asymptotic series of ψ is accurate to the last digits."""


class FoldingIn(NamedTuple):
    """Settings of folding in."""

    added: FloatArray
    """Pseudo-counts added to n_dk, (topics,)."""
    averages: bool
    """Whether rows are mean-field rows exp E[log θ] rather than modes."""
    lowest: float
    """If the largest logarithm of a mean-field row is below this, the row is lifted to it."""
    least: float
    """Smaller modes are set to 0, smaller mean-field entries to this."""
    temper: float
    """β, the power of posteriors."""
    max_iter: int
    """The largest number of iterations per document."""
    tol: float
    """A document has converged when no θ_dk changes by more than this."""


@inline
def digamma(x: float) -> float:
    """Compute ψ(x) for x > 0: the recurrence ψ(x) = ψ(x + 1) − 1/x, then the asymptotic series."""
    below = 0.0
    while x < SERIES_FROM:
        below -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    tail = 1 / 240 - y * (1 / 132 - y * (691 / 32760))
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * tail)))
    return below + math.log(x) - 0.5 / x - series


@njit
def fold_documents(
    first: int,
    last: int,
    entries: Compressed,
    phi: FloatArray,
    how: FoldingIn,
    theta: FloatArray,
    powers: FloatArray,
    mass: FloatArray,
) -> None:
    """Fold in the documents first ≤ d < last, starting from ``theta``, which is updated in place.

    Iterates n_dk = θ_dk^β Σ_w x_dw φ_wk^β / s_dw, where s_dw is the sum of θ_dk^β φ_wk^β over k,
    and then, for the topics with θ_dk > 0 initially, θ_dk ∝ n_dk + added_k, or for mean field
    θ_dk = exp(ψ(n_dk + added_k) − ψ(Σ)). ``phi`` is φ^β. At the end ``mass`` has n_dk + added_k,
    and ``powers`` θ^β of the step before.
    """
    indptr, words, counts = entries.indptr, entries.columns, entries.value
    for d in range(first, last):
        for _ in range(how.max_iter):
            for k in range(theta.shape[1]):
                powers[d, k] = theta[d, k] ** how.temper if how.temper != 1.0 else theta[d, k]
            mass[d] = 0.0
            for i in range(indptr[d], indptr[d + 1]):
                s = row_dot(powers, d, phi, words[i])
                if s > 0.0:
                    add_scaled_row(mass, d, counts[i] / s, phi, words[i])
            if _update_proportions(theta[d], powers[d], mass[d], how) <= how.tol:
                break


@inline
def _update_proportions(
    theta: FloatArray, powers: FloatArray, mass: FloatArray, how: FoldingIn
) -> float:
    """Update θ of a document from its counts, and return the largest change."""
    added, averages, least = how.added, how.averages, how.least
    total, most, change = 0.0, 0.0, 0.0
    for k in range(len(added)):
        mass[k] = mass[k] * powers[k] + added[k] if theta[k] > 0.0 else 0.0
        total += mass[k]
        most = max(most, mass[k])
    if total <= 0.0:
        mass[:] = theta  # an empty document without a prior keeps its proportions
        return 0.0
    whole = min(digamma(total), digamma(most) - how.lowest) if averages else 0.0
    for k in range(len(added)):
        new = mass[k] / total if not averages else 0.0
        if averages and mass[k] > 0.0:
            new = max(math.exp(digamma(mass[k]) - whole), least)
        elif new < least:
            new = 0.0
        change = max(change, abs(new - theta[k]))
        theta[k] = new
    return change
