"""Collapsed Gibbs sampling of the state of every token, all parameters integrated out.

A state z_i is drawn given all other states z_−i (Goldwater & Griffiths 2007). It takes part in
the event that it follows the states before it, that it emits its word, and that the next states
(or the end) follow it. With n the counts of all other events, α the Dirichlet priors, and one
event counted after the other, p(z_i = k | z_−i, w) is in proportion to

    n(pa, k) + α        n(k, w) + β     n(ak, b) + I + α     n(kb, c) + I + α
                     ·  ----------- ·  ------------------ ·  ------------------
                        n(k, ·) + Σβ   n(ak, ·) + I + Σα     n(kb, ·) + I + Σα

for states p, a before and b, c after. Each I counts the events further left that fall upon the same
entry or row, which happens for k = a and k = p only: these are repaired after the loop over k.

A context (t, u) is a pair of states, and "before the sentence" is one more state, K, so that the
starts are rows like all others. A chain of order 1 has t = 0 throughout, and no last factor. Of the
outcomes v of a context K is the end of the sentence, and K + 1 the total of all. So is word V the
total of all words of a state.

Masses n + α are kept in three layouts, and with them one over each total, so that whatever the loop
over k reads lies side by side. They are written anew from whole counts at each change: no rounding
is left behind. Functions take arrays, not tuples of them: within the loop over tokens, fields that
are looked up are references that are counted, which takes several times as long as the sampling.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform
from softcount.types import Array

NOTHING = -1
"""What follows a sentence's last state if ends have no probability."""


class Text(NamedTuple):
    """Sentences as flat arrays; token i may be in the states of set ``sets[i]``.

    The states of set s are ``choices[choices_from[s] : choices_from[s + 1]]``.
    """

    tokens: Array
    indptr: Array
    sets: Array
    choices_from: Array
    choices: Array
    order: int
    stop: bool


class Prior(NamedTuple):
    """Dirichlet priors, with their totals.

    ``words`` is (1, 1) if it is the same number throughout.
    """

    following: Array  # [t, u, v]
    words: Array  # (V, K)
    word_totals: Array  # (K,)


class Chain(NamedTuple):
    """The states of all tokens, and what they add up to, in whole numbers."""

    states: Array
    following: Array  # [t, u, v]
    words: Array  # [w, k]


class Masses(NamedTuple):
    """Counts with their priors, laid out for the loop over candidates k; one over the totals."""

    by_outcome: Array  # [t, u, k]
    by_second: Array  # [t, v, k] for context (t, k) and outcome v
    by_first: Array  # [u, v, k] for context (k, u) and outcome v
    words: Array  # [w, k]


@lean
def count_all(text: Text, chain: Chain) -> None:
    """Count every event; all counts must be zero."""
    z, following, words = chain.states, chain.following, chain.words
    V, K = len(words) - 1, words.shape[1]
    for s in range(len(text.indptr) - 1):
        first, end = text.indptr[s], text.indptr[s + 1]
        t, u = (K if text.order == 2 else 0), K
        for i in range(first, end):
            following[t, u, z[i]] += 1
            following[t, u, K + 1] += 1
            t, u = (u if text.order == 2 else 0), z[i]
            words[text.tokens[i], u] += 1
            words[V, u] += 1
        if text.stop and first < end:
            following[t, u, K] += 1
            following[t, u, K + 1] += 1


@merged
def _around(z: Array, i: int, first: int, end: int, K: int, order: int, stop: bool) -> Any:
    """The states p, a before token i and b, c after it, and t = a, in a chain of order 2.

    In one of order 1 p = t = 0. The sentence has the tokens from ``first`` to ``end``.
    """
    last = K if stop else NOTHING
    a = z[i - 1] if i > first else K
    b = z[i + 1] if i + 1 < end else last
    if order == 1:
        return 0, a, b, NOTHING, 0
    p = z[i - 2] if i - 1 > first else K
    c = NOTHING
    if i + 1 < end:
        c = z[i + 2] if i + 2 < end else last
    return p, a, b, c, a


@merged
def _count(
    t: int,
    u: int,
    v: int,
    by: int,
    alpha: Array,
    following: Array,
    by_outcome: Array,
    by_second: Array,
    by_first: Array,
) -> None:
    """Count outcome v of context (t, u) ``by`` times more, but not in the total."""
    following[t, u, v] += by
    mass = following[t, u, v] + alpha[t, u, v]
    by_outcome[t, u, v] = mass
    by_second[t, v, u] = mass
    by_first[u, v, t] = mass


@merged
def _count_total(
    t: int, u: int, by: int, alpha: Array, following: Array, by_second: Array, by_first: Array
) -> None:
    """Count an outcome of context (t, u) in the total."""
    v = following.shape[2] - 1
    following[t, u, v] += by
    per_total = 1.0 / (following[t, u, v] + alpha[t, u, v])
    by_second[t, v, u] = per_total
    by_first[u, v, t] = per_total


@merged
def _count_word(
    k: int, w: int, by: int, beta: Array, beta_totals: Array, words: Array, word_masses: Array
) -> None:
    """Count word w of state k ``by`` times more."""
    V = len(words) - 1
    words[w, k] += by
    words[V, k] += by
    rows, columns = beta.shape  # a constant prior has one entry, which is the last
    word_masses[w, k] = words[w, k] + beta[min(w, rows - 1), min(k, columns - 1)]
    word_masses[V, k] = 1.0 / (words[V, k] + beta_totals[k])


@merged
def _move(
    k: int,
    around: Any,
    by: int,
    alpha: Array,
    following: Array,
    by_outcome: Array,
    by_second: Array,
    by_first: Array,
) -> None:
    """Count the events of a token in state k (by 1), or take them away (−1); its word apart.

    Something follows the states before it whatever k is: that row's total always has it.
    """
    p, a, b, c, t = around
    _count(p, a, k, by, alpha, following, by_outcome, by_second, by_first)
    if b != NOTHING:
        _count(t, k, b, by, alpha, following, by_outcome, by_second, by_first)
        _count_total(t, k, by, alpha, following, by_second, by_first)
    if c != NOTHING:
        _count(k, b, c, by, alpha, following, by_outcome, by_second, by_first)
        _count_total(k, b, by, alpha, following, by_second, by_first)


@merged
def _weigh(
    w: int,
    around: Any,
    choices: Array,
    begin: int,
    close: int,
    by_outcome: Array,
    by_second: Array,
    by_first: Array,
    word_masses: Array,
    out: Array,
) -> None:
    """out_k ← p(z_i = k | z_−i, w) up to a factor, for each choice k.

    The events of token i must have been taken away.
    """
    p, a, b, c, t = around
    V, K = len(word_masses) - 1, len(out)
    full = close - begin == K
    if full:
        for k in range(K):
            out[k] = by_outcome[p, a, k] * word_masses[w, k] * word_masses[V, k]
    else:
        for j in range(begin, close):
            k = choices[j]
            out[k] = by_outcome[p, a, k] * word_masses[w, k] * word_masses[V, k]
    if b != NOTHING:
        _follow(t, b, choices, begin, close, by_second, out)
    if c != NOTHING:
        _follow(b, c, choices, begin, close, by_first, out)
    if a < K:
        _repair(a, around, by_second, by_first, out)
    if c != NOTHING and p < K and p != a:
        _repair(p, around, by_second, by_first, out)


@merged
def _follow(
    x: int, v: int, choices: Array, begin: int, close: int, masses: Array, out: Array
) -> None:
    """Multiply by the probability that v follows the context of x and k."""
    K = len(out)
    if close - begin == K:
        for k in range(K):
            out[k] *= masses[x, v, k] * masses[x, K + 1, k]
    else:
        for j in range(begin, close):
            k = choices[j]
            out[k] *= masses[x, v, k] * masses[x, K + 1, k]


@merged
def _repair(k: int, around: Any, by_second: Array, by_first: Array, out: Array) -> None:
    """Mend out_k where several events of one token fall upon the same entry or row."""
    p, a, b, c, t = around
    if t == p and k == a and b == k:  # (p, a) → k and (t, k) → b
        out[k] *= 1.0 + 1.0 / by_second[t, b, k]
    if c == NOTHING:
        return
    again = 0.0
    if k == p and b == a and c == k:  # (p, a) → k and (k, b) → c
        again += 1.0
    if k == a and b == k:  # (a, k) → b and (k, b) → c
        again += 1.0 if c == b else 0.0
        out[k] *= 1.0 / (1.0 + by_first[b, len(out) + 1, k])
    out[k] *= 1.0 + again / by_first[b, c, k]


@merged
def _temper(choices: Array, begin: int, close: int, power: float, weights: Array) -> None:
    """Raise the weights to a power; the largest becomes 1."""
    top = 0.0
    for j in range(begin, close):
        top = max(top, weights[choices[j]])
    for j in range(begin, close):
        k = choices[j]
        if weights[k] > 0.0:
            weights[k] = math.exp(power * math.log(weights[k] / top))


@merged
def _drawn(old: int, choices: Array, begin: int, close: int, weights: Array, chance: float) -> int:
    """A state drawn in proportion to its weight; the old one is looked at first.

    ``chance`` is from 0 to 1.
    """
    total = 0.0
    for j in range(begin, close):
        total += weights[choices[j]]
    rest = chance * total - weights[old]
    new = old
    if rest >= 0.0:
        for j in range(begin, close):
            k = choices[j]
            if k != old and weights[k] > 0.0:
                new = k
                rest -= weights[k]
                if rest < 0.0:
                    break
    return new


@lean
def conditional(
    text: Text, prior: Prior, chain: Chain, masses: Masses, i: int, sentence: int, out: Array
) -> None:
    """out_k ← p(z_i = k | z_−i, w) up to a factor, 0 where k is not allowed; counts stay."""
    tokens, indptr, sets, choices_from, choices, order, stop = text
    alpha, beta, beta_totals = prior
    z, following, words = chain
    by_outcome, by_second, by_first, word_masses = masses
    w, k = tokens[i], z[i]
    begin, close = choices_from[sets[i]], choices_from[sets[i] + 1]
    around = _around(z, i, indptr[sentence], indptr[sentence + 1], len(out), order, stop)
    _count_word(k, w, -1, beta, beta_totals, words, word_masses)
    _move(k, around, -1, alpha, following, by_outcome, by_second, by_first)
    out[:] = 0.0
    _weigh(w, around, choices, begin, close, by_outcome, by_second, by_first, word_masses, out)
    _count_word(k, w, 1, beta, beta_totals, words, word_masses)
    _move(k, around, 1, alpha, following, by_outcome, by_second, by_first)


@lean
def sweep(text: Text, prior: Prior, chain: Chain, masses: Masses, seed: Any, temper: float) -> None:
    """Draw the state of every token anew, in the order of the text.

    Tokens with a single choice stay put.
    """
    tokens, indptr, sets, choices_from, choices, order, stop = text
    alpha, beta, beta_totals = prior
    z, following, words = chain
    by_outcome, by_second, by_first, word_masses = masses
    K = words.shape[1]
    weights = np.empty(K)
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for s in range(len(indptr) - 1):
        first, end = indptr[s], indptr[s + 1]
        for i in range(first, end):
            begin, close = choices_from[sets[i]], choices_from[sets[i] + 1]
            if close - begin == 1:
                continue
            w, k = tokens[i], z[i]
            around = _around(z, i, first, end, K, order, stop)
            _count_word(k, w, -1, beta, beta_totals, words, word_masses)
            _move(k, around, -1, alpha, following, by_outcome, by_second, by_first)
            _weigh(
                w,
                around,
                choices,
                begin,
                close,
                by_outcome,
                by_second,
                by_first,
                word_masses,
                weights,
            )
            if temper != 1.0:
                _temper(choices, begin, close, temper, weights)
            z[i] = k = _drawn(k, choices, begin, close, weights, uniform(stream, 0))
            _count_word(k, w, 1, beta, beta_totals, words, word_masses)
            _move(k, around, 1, alpha, following, by_outcome, by_second, by_first)


@lean
def log_joint(prior: Prior, chain: Chain) -> float:
    """log p(w, z) = Σ_rows [Σ_v log α_v^(n_v) − log (Σα)^(n)], x^(n) a rising factorial."""
    alpha, beta, beta_totals = prior
    _, following, words = chain
    V, K = len(words) - 1, words.shape[1]
    total = 0.0
    for t in range(following.shape[0]):
        for u in range(K + 1):
            for v in range(K + 2):
                sign = -1.0 if v == K + 1 else 1.0
                if following[t, u, v] > 0:
                    total += sign * log_rising(alpha[t, u, v], float(following[t, u, v]))
    rows, columns = beta.shape
    for w in range(V):
        for k in range(K):
            if words[w, k] > 0:
                of_word = beta[min(w, rows - 1), min(k, columns - 1)]
                total += log_rising(of_word, float(words[w, k]))
    for k in range(K):
        total -= log_rising(beta_totals[k], float(words[V, k]))
    return total
