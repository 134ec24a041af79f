"""What a collapsed sampler of topics counts: tokens, their topics, and how often a word has which.

n_wk is kept in dense rows, or in lists of the topics that a word has; see
`softcount.kernels.topic_gibbs` for when and why.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import inline, njit
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array


class Tokens(NamedTuple):
    """Document d has the tokens from borders_d to borders_{d+1}: their words and topics."""

    borders: Array
    words: Array
    topics: Array


class Table(NamedTuple):
    """n_wk: ``dense`` rows, filled up with zeros to whole vectors; or, if there are none, lists.

    Word w's list begins at starts_w and has sizes_w topics with their counts; beyond these, up to
    starts_{w+1}, counts are zero. ``totals`` is n_k.
    """

    dense: Array
    starts: Array
    sizes: Array
    topics: Array
    counts: Array
    totals: Array


class Known(NamedTuple):
    """Document d may have the topics from borders_d to borders_{d+1}; if these are none, all."""

    borders: Array
    topics: Array


class Prior(NamedTuple):
    """α, one a topic; β; and Vβ."""

    alpha: Array
    beta: float
    beta_total: float


@inline
def place_of(table: Table, w: Any, k: Any) -> Any:
    """Where in word w's list topic k is, or the place after the last."""
    place = table.starts[w]
    end = place + table.sizes[w]
    while place < end and table.topics[place] != k:
        place += 1
    return place


@inline
def remove(table: Table, w: Any, place: Any) -> None:
    """A token less at a place of word w's list; the last topic takes the place of one used up."""
    table.counts[place] -= 1
    if table.counts[place] == 0:
        table.sizes[w] -= 1
        last = table.starts[w] + table.sizes[w]
        table.topics[place], table.counts[place] = table.topics[last], table.counts[last]
        table.counts[last] = 0


@inline
def add(table: Table, w: Any, place: Any, k: Any, times: int = 1) -> None:
    """A token more at a place of word w's list, which may be the one after the last."""
    if place == table.starts[w] + table.sizes[w]:
        table.sizes[w] += 1
        table.topics[place] = k
    table.counts[place] += times


@njit
def count(table: Table, w: int, k: int, times: int) -> None:
    """So many tokens of word w and topic k more, or one less (−1)."""
    table.totals[k] += times
    if len(table.dense):
        table.dense[w, k] += times
    elif times > 0:
        add(table, w, place_of(table, w, k), k, times)
    else:
        remove(table, w, place_of(table, w, k))


@njit
def count_all(tokens: Tokens, table: Table) -> None:
    """Count every token."""
    for i in range(len(tokens.words)):
        count(table, tokens.words[i], tokens.topics[i], 1)


@njit
def begin(tokens: Tokens, known: Known, phi: Array, seed: Any) -> None:
    """Draw every token's topic in proportion to φ_wk, among those that its document may have."""
    every, sums = np.arange(phi.shape[1]), np.empty(phi.shape[1])
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for d in range(len(tokens.borders) - 1):
        few = known.topics[known.borders[d] : known.borders[d + 1]]
        few = few if len(few) else every
        for i in range(tokens.borders[d], tokens.borders[d + 1]):
            total = 0.0
            for j in range(len(few)):
                total += phi[tokens.words[i], few[j]]
                sums[j] = total
            j, target = 0, uniform(stream, 0) * total
            if total == 0.0:  # a word that no topic has
                j = int(uniform(stream, 0) * len(few))
            while total > 0.0 and j < len(few) - 1 and sums[j] <= target:
                j += 1
            tokens.topics[i] = few[j]


@inline
def how_often(table: Table, w: Any, k: Any) -> Any:
    """n_wk."""
    if len(table.dense):
        return table.dense[w, k]
    place = place_of(table, w, k)
    return table.counts[place] if place < table.starts[w] + table.sizes[w] else 0


@njit
def shares(tokens: Tokens, documents: Array, n_topics: int) -> tuple[Array, Array]:
    """Every (k, n_dk) that is not zero, of these documents, one after the other."""
    n = len(tokens.words)
    topics, counts = np.empty(n, np.int32), np.empty(n, np.int32)
    of_document = np.zeros(n_topics, np.int32)
    filled = 0
    for d in documents:
        here = tokens.topics[tokens.borders[d] : tokens.borders[d + 1]]
        for k in here:
            of_document[k] += 1
        for k in here:
            if of_document[k] > 0:
                topics[filled], counts[filled] = k, of_document[k]
                of_document[k] = 0
                filled += 1
    return topics[:filled], counts[:filled]


@njit
def rising(x: Array, n: Array, times: Array) -> float:
    """Σ_j times_j · log (x_j (x_j + 1) … (x_j + n_j − 1))."""
    total = 0.0
    for j in range(len(x)):
        total += times[j] * log_rising(x[j], n[j])
    return total
