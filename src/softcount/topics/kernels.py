"""Compiled loops of topic models: the E-step, and folding documents in.

One EM pass over a topic model: p(w | d) = Σ_k θ_dk φ_wk.

Symbols: documents d, words w, topics k; x_dw counts, θ_dk (``theta``) and φ_wk (``phi``) with a
document's or word's K numbers side by side, K filled up with zeros to a multiple of
`softcount.kernels.lanes.WIDTH`. The posterior of a topic, θ_dk φ_wk / s_dw with s = Σ_k θ_dk φ_wk,
is never stored: with the ratios r_dw = x_dw / s_dw

    n_dk = θ_dk Σ_w r_dw φ_wk      n_wk = φ_wk Σ_d r_dw θ_dk.

One thread does both sums in one go; several first take the documents, then the words, so that each
row has one owner. The order of every sum is the same.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.lanes import add_scaled, dot, fetch
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

AHEAD = 8
"""Rows are asked for so many words before they are needed."""

LEAST_FACTOR, LEAST_PRODUCT = 1e-100, 1e-200
"""Products of probabilities are turned into logarithms before they can underflow."""


@inline
def _look(
    d: int,
    indptr: Array,
    words: Array,
    counts: Array,
    theta: Array,
    phi: Array,
    ratios: Array,
    out: Array,
) -> float:
    """out_d = n_d and the document's ratios; gives Σ_w x_dw log s_dw."""
    out[d] = 0.0
    log, product = 0.0, 1.0
    for i in range(indptr[d], indptr[d + 1]):
        if i + AHEAD < len(words):
            fetch(phi, words[i + AHEAD])
        s = dot(theta, d, phi, words[i])
        ratios[i] = counts[i] / s if s > 0.0 else 0.0
        add_scaled(out, d, ratios[i], phi, words[i])
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
def by_document(
    first: int,
    last: int,
    indptr: Array,
    words: Array,
    counts: Array,
    theta: Array,
    phi: Array,
    ratios: Array,
    of_documents: Array,
    logs: Array,
) -> None:
    """n_dk, ratios and log p(document) for the documents from first to last."""
    for d in range(first, last):
        logs[d] = _look(d, indptr, words, counts, theta, phi, ratios, of_documents)


@njit
def by_word(
    first: int,
    last: int,
    indptr: Array,
    documents: Array,
    places: Array,
    theta: Array,
    phi: Array,
    ratios: Array,
    of_words: Array,
) -> None:
    """n_wk for the words from first to last; ``places`` says where a ratio is by document."""
    for w in range(first, last):
        of_words[w] = 0.0
        for i in range(indptr[w], indptr[w + 1]):
            if i + AHEAD < len(documents):
                fetch(theta, documents[i + AHEAD])
            add_scaled(of_words, w, ratios[places[i]], theta, documents[i])
        for k in range(of_words.shape[1]):
            of_words[w, k] *= phi[w, k]


@njit
def both(
    indptr: Array,
    words: Array,
    counts: Array,
    theta: Array,
    phi: Array,
    ratios: Array,
    of_documents: Array,
    of_words: Array,
    logs: Array,
) -> None:
    """The same as `by_document` and `by_word`, one document after the other."""
    of_words[:] = 0.0
    for d in range(len(indptr) - 1):
        logs[d] = _look(d, indptr, words, counts, theta, phi, ratios, of_documents)
        for i in range(indptr[d], indptr[d + 1]):
            if i + AHEAD < len(words):
                fetch(of_words, words[i + AHEAD])
            add_scaled(of_words, words[i], ratios[i], theta, d)
    for w in range(len(of_words)):
        for k in range(of_words.shape[1]):
            of_words[w, k] *= phi[w, k]


@inline
def drawn(shares: Array, rest: float) -> int:
    """The entry at which the sum of shares passes ``rest``."""
    chosen = 0
    for k in range(len(shares)):
        if shares[k] > 0.0:
            chosen = k
            rest -= shares[k]
            if rest < 0.0:
                break
    return chosen


@inline
def _joint(d: int, theta: Array, w: int, phi: Array, shares: Array) -> int:
    """shares_k = θ_dk φ_wk; gives the topic with the largest."""
    chosen = 0
    for k in range(len(shares)):
        shares[k] = theta[d, k] * phi[w, k]
        if shares[k] > shares[chosen]:
            chosen = k
    return chosen


@inline
def _tempered(shares: Array, temper: float) -> float:
    """The shares to a power; gives their sum."""
    total = 0.0
    for k in range(len(shares)):
        shares[k] = shares[k] ** temper if temper != 1.0 else shares[k]
        total += shares[k]
    return total


@njit
def assign(
    indptr: Array,
    words: Array,
    counts: Array,
    theta: Array,
    phi: Array,
    n_topics: int,
    temper: float,
    samples: int,
    stream: Any,
    numbers: Array,
    of_documents: Array,
    of_words: Array,
    best: Array,
) -> None:
    """Each word to its best topic (samples = 0), or every occurrence to drawn ones.

    Draws are from posteriors to the power ``temper``, ``samples`` an occurrence, and count so much
    less each. ``best`` is Σ_w x_dw log max_k θ_dk φ_wk.
    """
    state, shares = np.empty(1, np.uint64), np.empty(n_topics)
    of_documents[:] = 0.0
    of_words[:] = 0.0
    for d in range(len(indptr) - 1):
        state[0] = item_stream(stream, numbers[d])
        best[d] = 0.0
        for i in range(indptr[d], indptr[d + 1]):
            w, x = words[i], counts[i]
            chosen = _joint(d, theta, w, phi, shares)
            best[d] += x * math.log(shares[chosen]) if shares[chosen] > 0.0 else -np.inf
            if samples == 0:
                of_documents[d, chosen] += x
                of_words[w, chosen] += x
                continue
            total = _tempered(shares, temper)
            draws = max(1, math.ceil(x)) * samples
            for _ in range(draws):
                k = drawn(shares, total * uniform(state, 0))
                of_documents[d, k] += x / draws
                of_words[w, k] += x / draws


# Finding the topics of documents while the topics' words stay as they are.
#
# One document after the other, each until its shares stand still: its words' rows of φ remain at
# hand all the while, and a document that is done costs nothing more.


SERIES_FROM = 10.0
"""From here on the asymptotic series of ψ is exact to the last digits."""


@inline
def digamma(x: float) -> float:
    """ψ(x) for x > 0: the recurrence ψ(x) = ψ(x + 1) − 1/x, then the asymptotic series."""
    below = 0.0
    while x < SERIES_FROM:
        below -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    tail = 1 / 240 - y * (1 / 132 - y * (691 / 32760))
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * tail)))
    return below + math.log(x) - 0.5 / x - series


@njit
def fold(
    first: int,
    last: int,
    indptr: Array,
    words: Array,
    counts: Array,
    phi: Array,
    added: Array,
    averages: bool,
    lowest: float,
    temper: float,
    least: float,
    most: int,
    tol: float,
    theta: Array,
    powers: Array,
    mass: Array,
) -> None:
    """θ_d of the documents from first to last, which begin as ``theta`` has them.

    Repeats n_dk = θ_dk^β Σ_w x_dw φ_wk^β / s_dw, s being the sum of these products, and then, for
    the topics that θ_d began with, θ_dk ∝ n_dk + added_k (nothing below ``least``), or if the rows
    are posteriors (``averages``) θ_dk = exp(ψ(n_dk + added_k) − ψ(Σ)), all lifted until the log of
    the largest is ``lowest`` if it is below, and then at least ``least``: ``most`` times, or until
    no θ_dk moves by more than ``tol``. ``phi`` is φ^β, β being ``temper``. In the end ``mass`` has
    n_dk + added_k, and ``powers`` θ^β of the step before.
    """
    for d in range(first, last):
        for _ in range(most):
            for k in range(theta.shape[1]):
                powers[d, k] = theta[d, k] ** temper if temper != 1.0 else theta[d, k]
            mass[d] = 0.0
            for i in range(indptr[d], indptr[d + 1]):
                s = dot(powers, d, phi, words[i])
                if s > 0.0:
                    add_scaled(mass, d, counts[i] / s, phi, words[i])
            if _moved(theta[d], powers[d], mass[d], added, averages, lowest, least) <= tol:
                break


@inline
def _moved(
    theta: Array,
    powers: Array,
    mass: Array,
    added: Array,
    averages: bool,
    lowest: float,
    least: float,
) -> float:
    """Put θ where its counts say, and tell by how much the farthest moved."""
    total, most, change = 0.0, 0.0, 0.0
    for k in range(len(added)):
        mass[k] = mass[k] * powers[k] + added[k] if theta[k] > 0.0 else 0.0
        total += mass[k]
        most = max(most, mass[k])
    if total <= 0.0:
        mass[:] = theta  # nothing is known of an empty document, and no prior is there
        return 0.0
    whole = min(digamma(total), digamma(most) - lowest) if averages else 0.0
    for k in range(len(added)):
        new = mass[k] / total if not averages else 0.0
        if averages and mass[k] > 0.0:
            new = max(math.exp(digamma(mass[k]) - whole), least)
        elif new < least:
            new = 0.0
        change = max(change, abs(new - theta[k]))
        theta[k] = new
    return change
