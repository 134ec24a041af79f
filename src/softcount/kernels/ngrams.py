"""A back-off n-gram model as an automaton: one state a context, one step a word.

N-grams are the nodes of a trie, numbered level by level and, within a level, by their first words
(their parent) and their last. So the children of a node are neighbours, sorted by their words.
Node 0 is the empty n-gram; the unigram of word w is node 1 + w.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.jit import njit
from softcount.types import Array


class Automaton(NamedTuple):
    """Node i is the n-gram w_1 … w_k.

    ``words``     w_k
    ``first``     children of i are the nodes from first_i to first_{i+1}
    ``suffix``    the node of w_2 … w_k
    ``state``     the longest suffix of w_1 … w_k that has children: all that matters later
    ``log_prob``  log p(w_k | w_1 … w_{k-1})
    ``back_off``  log of what is left, after w_1 … w_k, for words that were never seen there
    """

    words: Array
    first: Array
    suffix: Array
    state: Array
    log_prob: Array
    back_off: Array


@njit
def child(words: Array, first: Array, node: Any, word: Any) -> Any:
    """The node of n-gram ``node`` and one more word, or -1."""
    if node == 0:
        return 1 + word
    low, high = first[node], first[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < first[node + 1] and words[low] == word else -1


@njit
def advance(model: Automaton, state: Any, word: Any) -> tuple[Any, Any]:
    """log p(word | state), and the state after it."""
    backed_off = 0.0
    node = child(model.words, model.first, state, word)
    while node < 0:
        backed_off += model.back_off[state]
        state = model.suffix[state]
        node = child(model.words, model.first, state, word)
    return backed_off + model.log_prob[node], model.state[node]


@njit
def log_probs(model: Automaton, start: Any, words: Array, borders: Array) -> Array:
    """Σ log p of each sentence: its words (its end among them) from borders_i to borders_{i+1}."""
    totals = np.zeros(len(borders) - 1)
    for i in range(len(totals)):
        state = start
        for t in range(borders[i], borders[i + 1]):
            log_p, state = advance(model, state, words[t])
            totals[i] += log_p
    return totals


@njit
def after(model: Automaton, start: Any, words: Array) -> Any:
    """The state after some words."""
    state = start
    for word in words:
        state = advance(model, state, word)[1]
    return state
