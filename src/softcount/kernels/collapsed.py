"""Collapsed Gibbs sampling of the class of every document, all parameters integrated out.

Documents d, words w, classes k; c_dw and N_d a document's word counts and length; n_k, n_kw, n_k·
the documents, word counts and tokens of a class, document d left out; x^(n) = x (x+1) … (x+n−1):

    p(z_d = k | z_−d, x) ∝ weight_k · Π_w (n_kw + β_w)^(c_dw) / (n_k· + Σβ)^(N_d)

(Yin & Wang 2014). weight_k is n_k + α_k in a mixture of K classes. In a Chinese restaurant process
with concentration a it is n_k where a class is in use; the new class's a is shared out equally
among the free places. So z has the prior p(partition) (K − m)! / K!, m classes in use: of all ways
to seat m classes at K places, each is as likely.

A word's K counts lie side by side, and factors are multiplied, not their logarithms added: the loop
over k is vector instructions, with one logarithm for every ``span`` factors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

SPAN_BITS = 1000.0
"""A product of factors may grow or shrink by so many powers of two."""

MANY = 32.0
"""Rising factorials of more factors are computed by their logarithm, which then costs less."""

_FEW = 8.0
_LARGE = 32.0  # from here on three terms of Stirling's series are exact to rounding


class Bags(NamedTuple):
    """Documents: counts in CSR form, lengths, and the classes lower_d ≤ k < upper_d allowed."""

    indptr: Array
    words: Array
    counts: Array
    lengths: Array
    lower: Array
    upper: Array


class Prior(NamedTuple):
    """Of the classes ``alpha``, or in a restaurant a ``concentration`` (else 0); of words ``beta``.

    ``span`` factors n_kw + β_w + j can be multiplied before they leave the range of floats.
    """

    alpha: Array
    concentration: float
    beta: Array
    beta_total: float
    span: int


class Seats(NamedTuple):
    """Who sits where: the class of each document, and what that adds up to.

    All are whole numbers, so that adding and taking away leaves no rounding behind.
    """

    classes: Array
    sizes: Array
    totals: Array
    words: Array  # (V, K)


@njit
def log_rising(x: float, n: float) -> float:
    """log x^(n) = log Γ(x + n) − log Γ(x), for whole n, without cancellation."""
    if n <= _FEW:
        product = 1.0
        for j in range(int(n)):
            product *= x + j
        return math.log(product)
    if x < _LARGE:
        return math.lgamma(x + n) - math.lgamma(x)
    y = x + n
    return (x - 0.5) * math.log1p(n / x) + n * (math.log(y) - 1.0) + (_stirling(y) - _stirling(x))


@inline
def _stirling(x: float) -> float:
    """What Stirling's formula lacks of log Γ(x)."""
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x


@njit
def move(bags: Bags, seats: Seats, d: int, k: int, sign: float) -> None:
    """Add document d to class k (sign 1), or take it away (−1)."""
    seats.sizes[k] += sign
    seats.totals[k] += sign * bags.lengths[d]
    for i in range(bags.indptr[d], bags.indptr[d + 1]):
        seats.words[bags.words[i], k] += sign * bags.counts[i]


@njit
def seat_all(bags: Bags, seats: Seats) -> None:
    """Count every document in its class."""
    for d in range(len(seats.classes)):
        move(bags, seats, d, seats.classes[d], 1.0)


@njit
def log_weights(prior: Prior, sizes: Array, out: Array) -> bool:
    """out_k ← log weight_k; whether a restaurant has no place left for a new class."""
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
def conditional(bags: Bags, prior: Prior, seats: Seats, d: int, room: Array, out: Array) -> bool:
    """out_k ← log p(z_d = k | z_−d, x) up to a constant, where k is allowed.

    Document d must have been taken away. ``room`` is to work in. Answers whether a
    restaurant is full.
    """
    allowed = slice(bags.lower[d], bags.upper[d])
    full = log_weights(prior, seats.sizes, out)
    logs, totals, product = out[allowed], seats.totals[allowed], room[allowed]
    K = len(logs)
    for k in range(K):
        logs[k] -= log_rising(totals[k] + prior.beta_total, bags.lengths[d])
        product[k] = 1.0
    factors = 0
    for i in range(bags.indptr[d], bags.indptr[d + 1]):
        w, c = bags.words[i], bags.counts[i]
        row, beta = seats.words[w, allowed], prior.beta[w]
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
def _take_logs(product: Array, logs: Array) -> None:
    for k in range(len(logs)):
        logs[k] += math.log(product[k])
        product[k] = 1.0


@njit
def drawn(logs: Array, lower: int, upper: int, temper: float, stream: Array, room: Array) -> int:
    """A class drawn with probability ∝ exp(temper · logs_k), lower ≤ k < upper."""
    top = -np.inf
    for k in range(lower, upper):
        top = max(top, logs[k])
    total = 0.0
    for k in range(lower, upper):
        room[k] = math.exp(temper * (logs[k] - top))
        total += room[k]
    rest = uniform(stream, 0) * total
    last = lower
    for k in range(lower, upper):
        if room[k] > 0.0:
            last = k
            rest -= room[k]
            if rest < 0.0:
                break
    return last


@njit
def shuffled(n: int, stream: Array) -> Array:
    """The numbers below n in random order (Fisher & Yates)."""
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = int(uniform(stream, 0) * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


@njit
def sweep(bags: Bags, prior: Prior, seats: Seats, seed: Any, temper: float) -> int:
    """Draw the class of every document anew, in random order.

    Answers how many documents found a restaurant full. Documents with a single class stay put.
    """
    K = len(seats.sizes)
    product, logs = np.empty(K), np.empty(K)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    refused = 0
    for d in shuffled(len(seats.classes), stream):
        lower, upper = bags.lower[d], bags.upper[d]
        if upper - lower == 1:
            continue
        move(bags, seats, d, seats.classes[d], -1.0)
        refused += conditional(bags, prior, seats, d, product, logs)
        seats.classes[d] = drawn(logs, lower, upper, temper, stream, product)
        move(bags, seats, d, seats.classes[d], 1.0)
    return refused


@njit
def log_words(prior: Prior, seats: Seats) -> float:
    """log p(x | z) = Σ_k [Σ_w log β_w^(n_kw) − log (Σβ)^(n_k·)]."""
    total = 0.0
    V, K = seats.words.shape
    for w in range(V):
        for k in range(K):
            if seats.words[w, k] > 0.0:
                total += log_rising(prior.beta[w], seats.words[w, k])
    for k in range(K):
        total -= log_rising(prior.beta_total, seats.totals[k])
    return total
