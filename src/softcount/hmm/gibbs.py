"""Collapsed Gibbs sampling: the state of every token is drawn, all parameters integrated out.

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
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform

NOTHING = -1
"""What follows a sentence's last state if ends have no probability."""


class HMMSamplerText(NamedTuple):
    """Sentences as flat arrays; token i may be in the states of set ``sets[i]``.

    The states of set s are ``choices[choices_from[s] : choices_from[s + 1]]``.
    """

    tokens: IntArray  # (tokens,): words
    indptr: IntArray  # (sentences + 1,)
    sets: IntArray  # (tokens,)
    choices_from: IntArray  # (sets + 1,)
    choices: IntArray
    order: int
    stop: bool


class HMMSamplerPrior(NamedTuple):
    """Dirichlet priors, with their totals.

    ``words`` is (1, 1) if it is the same number throughout.
    """

    following: FloatArray  # [t, u, v]
    words: FloatArray  # (V, K)
    word_totals: FloatArray  # (K,)


class HMMSamplerCounts(NamedTuple):
    """The states of all tokens, and what they add up to, in whole numbers."""

    states: IntArray  # (tokens,)
    following: IntArray  # [t, u, v]
    words: IntArray  # [w, k]


class HMMSamplerMasses(NamedTuple):
    """Counts with their priors, laid out for the loop over candidates k; one over the totals."""

    by_outcome: FloatArray  # [t, u, k]
    by_second: FloatArray  # [t, v, k] for context (t, k) and outcome v
    by_first: FloatArray  # [u, v, k] for context (k, u) and outcome v
    words: FloatArray  # [w, k]


@lean
def count_all(text: HMMSamplerText, counts: HMMSamplerCounts) -> None:
    """Count every event; all counts must be zero."""
    z, following, words = counts.states, counts.following, counts.words
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
def _find_neighbours(
    z: IntArray, i: int, first: int, end: int, K: int, order: int, stop: bool
) -> Any:
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
    alpha: FloatArray,
    following: IntArray,
    by_outcome: FloatArray,
    by_second: FloatArray,
    by_first: FloatArray,
) -> None:
    """Count outcome v of context (t, u) ``by`` times more, but not in the total."""
    following[t, u, v] += by
    mass = following[t, u, v] + alpha[t, u, v]
    by_outcome[t, u, v] = mass
    by_second[t, v, u] = mass
    by_first[u, v, t] = mass


@merged
def _count_total(
    t: int,
    u: int,
    by: int,
    alpha: FloatArray,
    following: IntArray,
    by_second: FloatArray,
    by_first: FloatArray,
) -> None:
    """Count an outcome of context (t, u) in the total."""
    v = following.shape[2] - 1
    following[t, u, v] += by
    per_total = 1.0 / (following[t, u, v] + alpha[t, u, v])
    by_second[t, v, u] = per_total
    by_first[u, v, t] = per_total


@merged
def _count_word(
    k: int,
    w: int,
    by: int,
    beta: FloatArray,
    beta_totals: FloatArray,
    words: IntArray,
    word_masses: FloatArray,
) -> None:
    """Count word w of state k ``by`` times more."""
    V = len(words) - 1
    words[w, k] += by
    words[V, k] += by
    rows, columns = beta.shape  # a constant prior has one entry, which is the last
    word_masses[w, k] = words[w, k] + beta[min(w, rows - 1), min(k, columns - 1)]
    word_masses[V, k] = 1.0 / (words[V, k] + beta_totals[k])


@merged
def _count_token(
    k: int,
    neighbours: Any,
    by: int,
    alpha: FloatArray,
    following: IntArray,
    by_outcome: FloatArray,
    by_second: FloatArray,
    by_first: FloatArray,
) -> None:
    """Count the events of a token in state k (by 1), or take them away (−1); its word apart.

    Something follows the states before it whatever k is: that row's total always has it.
    """
    p, a, b, c, t = neighbours
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
    neighbours: Any,
    choices: IntArray,
    begin: int,
    close: int,
    by_outcome: FloatArray,
    by_second: FloatArray,
    by_first: FloatArray,
    word_masses: FloatArray,
    out: FloatArray,
) -> None:
    """out_k ← p(z_i = k | z_−i, w) up to a factor, for each choice k.

    The events of token i must have been taken away.
    """
    p, a, b, c, t = neighbours
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
        _repair(a, neighbours, by_second, by_first, out)
    if c != NOTHING and p < K and p != a:
        _repair(p, neighbours, by_second, by_first, out)


@merged
def _follow(
    x: int, v: int, choices: IntArray, begin: int, close: int, masses: FloatArray, out: FloatArray
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
def _repair(
    k: int, neighbours: Any, by_second: FloatArray, by_first: FloatArray, out: FloatArray
) -> None:
    """Mend out_k where several events of one token fall upon the same entry or row."""
    p, a, b, c, t = neighbours
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
def _temper(choices: IntArray, begin: int, close: int, power: float, weights: FloatArray) -> None:
    """Raise the weights to a power; the largest becomes 1."""
    top = 0.0
    for j in range(begin, close):
        top = max(top, weights[choices[j]])
    for j in range(begin, close):
        k = choices[j]
        if weights[k] > 0.0:
            weights[k] = math.exp(power * math.log(weights[k] / top))


@merged
def _draw_state(
    old: int, choices: IntArray, begin: int, close: int, weights: FloatArray, number: float
) -> int:
    """A state drawn in proportion to its weight; the old one is looked at first.

    ``number`` is from 0 to 1.
    """
    total = 0.0
    for j in range(begin, close):
        total += weights[choices[j]]
    rest = number * total - weights[old]
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
    text: HMMSamplerText,
    prior: HMMSamplerPrior,
    counts: HMMSamplerCounts,
    masses: HMMSamplerMasses,
    i: int,
    sentence: int,
    out: FloatArray,
) -> None:
    """out_k ← p(z_i = k | z_−i, w) up to a factor, 0 where k is not allowed; counts stay."""
    tokens, indptr, sets, choices_from, choices, order, stop = text
    alpha, beta, beta_totals = prior
    z, following, words = counts
    by_outcome, by_second, by_first, word_masses = masses
    w, k = tokens[i], z[i]
    begin, close = choices_from[sets[i]], choices_from[sets[i] + 1]
    neighbours = _find_neighbours(
        z, i, indptr[sentence], indptr[sentence + 1], len(out), order, stop
    )
    _count_word(k, w, -1, beta, beta_totals, words, word_masses)
    _count_token(k, neighbours, -1, alpha, following, by_outcome, by_second, by_first)
    out[:] = 0.0
    _weigh(w, neighbours, choices, begin, close, by_outcome, by_second, by_first, word_masses, out)
    _count_word(k, w, 1, beta, beta_totals, words, word_masses)
    _count_token(k, neighbours, 1, alpha, following, by_outcome, by_second, by_first)


@lean
def sweep(
    text: HMMSamplerText,
    prior: HMMSamplerPrior,
    counts: HMMSamplerCounts,
    masses: HMMSamplerMasses,
    seed: Any,
    temper: float,
) -> None:
    """Draw the state of every token anew, in the order of the text.

    Tokens with a single choice stay put.
    """
    tokens, indptr, sets, choices_from, choices, order, stop = text
    alpha, beta, beta_totals = prior
    z, following, words = counts
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
            neighbours = _find_neighbours(z, i, first, end, K, order, stop)
            _count_word(k, w, -1, beta, beta_totals, words, word_masses)
            _count_token(k, neighbours, -1, alpha, following, by_outcome, by_second, by_first)
            _weigh(
                w,
                neighbours,
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
            z[i] = k = _draw_state(k, choices, begin, close, weights, uniform(stream, 0))
            _count_word(k, w, 1, beta, beta_totals, words, word_masses)
            _count_token(k, neighbours, 1, alpha, following, by_outcome, by_second, by_first)


@lean
def log_joint(prior: HMMSamplerPrior, counts: HMMSamplerCounts) -> float:
    """log p(w, z) = Σ_rows [Σ_v log α_v^(n_v) − log (Σα)^(n)], x^(n) a rising factorial."""
    alpha, beta, beta_totals = prior
    _, following, words = counts
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


# The Bayesian hidden Markov model: parameters integrated out, states sampled one at a time.


PRIORS = (1e-50, 1e12)
"""The smallest prior and the largest: the factors of one token still fit into a float."""


class CollapsedChain:
    """A state of the sampler: which hidden state each token is in.

    ``tokens, indptr``    the sentences as word numbers, one after the other, and their borders
    ``n_states``          K, how many hidden states there are
    ``n_words``           V, the size of the vocabulary
    ``order``             how many states before it a state depends on: 1 or 2
    ``stop``              whether the end of a sentence follows a state with some probability
    ``start_prior``       Dirichlet prior of the first states: one number, or (1, K)
    ``transition_prior``  of what follows a state, (K, K [+ 1]); of order 2, (K·K, K [+ 1])
    ``second_prior``      order 2 only: of what follows the first state, (K, K [+ 1])
    ``emission_prior``    of the words of a state, (K, V)
    ``states``            the state of every token, to begin with
    ``sets, allowed``     token i may be in the states k where ``allowed[sets[i], k]`` is true

    Priors are one number, or one for each entry. A start or emission prior of 0 says that the entry
    is impossible; transitions must all be possible, as a sampler that changes one state at a time
    might not find its way around those that are not.

    >>> chain = CollapsedChain([0, 1] * 10, [0, 4, 10, 20], 2, 2, states=[0, 0, 0, 1] * 5,
    ...                        start_prior=1.0, transition_prior=0.1, emission_prior=0.1)
    >>> for stream in range(20):
    ...     chain.sweep(stream)
    >>> len(set(chain.states[::2])), len(set(chain.states[1::2]))
    (1, 1)
    >>> chain.counts()["emissions"].sum(axis=1)
    array([10., 10.])
    """

    def __init__(
        self,
        tokens: ArrayLike,
        indptr: ArrayLike,
        n_states: int,
        n_words: int,
        order: int = 1,
        stop: bool = True,
        *,
        start_prior: ArrayLike,
        transition_prior: ArrayLike,
        emission_prior: ArrayLike,
        states: ArrayLike,
        second_prior: ArrayLike | None = None,
        sets: ArrayLike | None = None,
        allowed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        _check_size(n_states, n_words, order, second_prior)
        _check_weights(weights)
        words, borders = _check_sentences(tokens, indptr, n_words)
        which, free = _check_choices(sets, allowed, len(words), n_states)
        choices_from = np.append(0, np.cumsum(free.sum(axis=1)))
        choices = np.ascontiguousarray(np.nonzero(free)[1])
        self._text = HMMSamplerText(words, borders, which, choices_from, choices, order, bool(stop))
        given = {"start": start_prior, "transitions": transition_prior}
        if second_prior is not None:
            given["second"] = second_prior
        following = _arrange_priors(given, n_states, order, n_states + bool(stop))
        self._prior = _add_totals(following, emission_prior, n_states, n_words)
        self._counts = _make_zero_counts(self._prior, _check_states(states, which, free), n_words)
        _check_possible(self._text, self._prior, self._counts)
        count_all(self._text, self._counts)
        self._masses = _make_masses(self._prior, self._counts)

    @classmethod
    def from_families(
        cls,
        families: Mapping[str, Family],
        tokens: ArrayLike,
        indptr: ArrayLike,
        *,
        states: ArrayLike,
        sets: ArrayLike | None = None,
        allowed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> CollapsedChain:
        """The sampler of a model with these families: order, stop and priors are theirs."""
        priors = {name: _get_prior(name, family) for name, family in families.items()}
        n_states, n_words = priors["emissions"].shape
        return cls(
            tokens,
            indptr,
            n_states,
            n_words,
            order=2 if "second" in priors else 1,
            stop=priors["transitions"].shape[1] > n_states,
            start_prior=priors["start"],
            second_prior=priors.get("second"),
            transition_prior=priors["transitions"],
            emission_prior=priors["emissions"],
            states=states,
            sets=sets,
            allowed=allowed,
            weights=weights,
        )

    @property
    def states(self) -> Array:
        """The state of every token."""
        return self._counts.states

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Draw every token's state anew, given all others; ``temper`` is a power of p.

        What is drawn depends on the states and the stream alone.
        """
        sweep(self._text, self._prior, self._counts, self._masses, np.uint64(stream), float(temper))

    def conditional(self, position: int) -> Array:
        """log p(z_i = k | z_−i, w) for every k, up to a constant; −inf where k cannot be.

        ``position`` i is a token's place in ``tokens``.
        """
        sentence = int(np.searchsorted(self._text.indptr, position, side="right")) - 1
        out = np.empty(self._counts.words.shape[1])
        conditional(self._text, self._prior, self._counts, self._masses, position, sentence, out)
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(out)
        return logs

    def log_joint(self) -> float:
        """log p(w, z), the parameters integrated out."""
        return float(log_joint(self._prior, self._counts))

    def counts(self) -> dict[str, Array]:
        """What the words and states add up to, one table for each family."""
        order, outcomes = self._text.order, self._counts.words.shape[1] + self._text.stop
        found = {
            name: table.reshape(-1, table.shape[-1]).astype(np.float64)
            for name, table in _view_tables(self._counts.following, order, outcomes).items()
        }
        found["emissions"] = np.ascontiguousarray(self._counts.words[:-1].T, np.float64)
        return found


def _view_tables(following: Array, order: int, outcomes: int) -> dict[str, Array]:
    """Views of the families' tables in what follows each context: K stands for no state."""
    K = following.shape[1] - 1  # no state
    if order == 1:
        return {"start": following[0, K:, :K], "transitions": following[0, :K, :outcomes]}
    return {
        "start": following[K, K:, :K],
        "second": following[K, :K, :outcomes],
        "transitions": following[:K, :K, :outcomes],
    }


def _arrange_priors(given: dict[str, ArrayLike], n_states: int, order: int, outcomes: int) -> Array:
    """The priors of what follows each context, in one array."""
    contexts = (1 if order == 1 else n_states + 1, n_states + 1)
    following = np.zeros((*contexts, n_states + 2))
    for name, table in _view_tables(following, order, outcomes).items():
        shape = (table.size // table.shape[-1], table.shape[-1])
        argument = f"{name.removesuffix('s')}_prior"
        prior = _check_prior(argument, given[name], shape, zeros=name == "start")
        table[:] = prior.reshape(table.shape)
    return following


def _add_totals(
    following: FloatArray, emissions: ArrayLike, n_states: int, n_words: int
) -> HMMSamplerPrior:
    """The priors as the kernel wants them; ``following`` gets its totals."""
    following[..., -1] = _sum_rows(following)
    given = np.asarray(emissions, np.float64)
    table = _check_prior("emission_prior", given, (n_states, n_words), zeros=True)
    words = np.array(table.T if given.ndim else given.reshape(1, 1), order="C")
    return HMMSamplerPrior(following, words, _sum_rows(table))


def _sum_rows(table: FloatArray) -> Array:
    """Σα of each row; 1 where the row has no entry, so that it can be divided by."""
    totals = table.sum(axis=-1)
    return np.where(totals > 0.0, totals, 1.0)


def _make_zero_counts(prior: HMMSamplerPrior, states: IntArray, n_words: int) -> HMMSamplerCounts:
    words = np.zeros((n_words + 1, len(prior.word_totals)), np.int32)
    return HMMSamplerCounts(states, np.zeros(prior.following.shape, np.int64), words)


def _make_masses(prior: HMMSamplerPrior, counts: HMMSamplerCounts) -> HMMSamplerMasses:
    following = prior.following + counts.following
    following[..., -1] = 1.0 / following[..., -1]
    words = np.empty(counts.words.shape)
    words[:-1] = prior.words + counts.words[:-1]
    words[-1] = 1.0 / (prior.word_totals + counts.words[-1])
    return HMMSamplerMasses(
        by_outcome=following,
        by_second=np.ascontiguousarray(following.transpose(0, 2, 1)),
        by_first=np.ascontiguousarray(following.transpose(1, 2, 0)),
        words=words,
    )


def _check_prior(name: str, given: ArrayLike, shape: tuple[int, int], zeros: bool = False) -> Array:
    """A prior as a table, checked; zeros only where an entry may be impossible."""
    values = np.asarray(given, np.float64)
    if values.shape not in ((), shape):
        raise LearnerError(
            f"{name} has shape {values.shape}, but the table has shape {shape}",
            "give one number, or one for each entry",
        )
    least, most = PRIORS
    good = (values >= least) & (values <= most)
    if zeros and values.ndim:
        good |= values == 0.0
    elif np.any(values == 0.0):
        raise LearnerError(
            f"{name} has zeros: a sampler that changes one state at a time might not find its way "
            "around what is impossible",
            "use Gibbs(), which draws whole sentences",
        )
    if not good.all():
        raise LearnerError(
            f"{name} must be numbers from {least:g} to {most:g}",
            "it is a Dirichlet prior's concentration: 0.1 and 1 are usual",
        )
    return np.broadcast_to(values, shape)


def _get_prior(name: str, family: Family) -> Array:
    """The prior of a family's entries, 0 where they are impossible."""
    if not isinstance(family, Categorical):
        raise LearnerError(
            f"the {name} are no plain categorical table, whose parameters could be integrated out",
            "use Gibbs() or EM()",
        )
    if family.ties is not None or family.held_rows.any():
        raise LearnerError(
            f"the {name} have tied or frozen rows, which a collapsed sampler does not know",
            "use Gibbs(), or leave all rows free",
        )
    alpha = np.broadcast_to(family.alpha, family.n_entries)
    return family.supported(alpha).reshape(family.shape)


def _check_size(n_states: int, n_words: int, order: int, second_prior: ArrayLike | None) -> None:
    if n_states < 1 or n_words < 0:
        raise DataError(f"there cannot be {n_states} states of {n_words} words")
    if order not in (1, 2):
        raise LearnerError(f"order={order}: a state may depend on 1 or 2 states before it")
    if (second_prior is None) == (order == 2):
        raise LearnerError(
            f"order={order} {'needs a' if order == 2 else 'has no'} second_prior",
            "it is the prior of what follows the first state, for order=2 alone",
        )


def _check_weights(weights: ArrayLike | None) -> None:
    if weights is not None and np.any(np.asarray(weights) != 1.0):
        raise LearnerError(
            "a collapsed sampler takes every sentence once: there can be no weights",
            "use Gibbs(), or leave the weights out",
        )


def _check_sentences(tokens: ArrayLike, indptr: ArrayLike, n_words: int) -> tuple[Array, Array]:
    """The sentences, checked: a kernel believes whatever it is told."""
    words, borders = np.asarray(tokens, np.int32), np.asarray(indptr, np.int64)
    cut = borders.ndim == words.ndim == 1 and len(borders) and borders[0] == 0
    if not cut or (np.diff(borders) < 0).any() or borders[-1] != len(words):
        raise DataError(
            "indptr does not cut the tokens into sentences",
            "give sentence s the tokens from indptr[s] to indptr[s + 1]",
        )
    if ((words < 0) | (words >= n_words)).any():
        raise DataError(f"tokens must be word numbers below {n_words}")
    return np.ascontiguousarray(words), np.ascontiguousarray(borders)


def _check_choices(
    sets: ArrayLike | None, allowed: ArrayLike | None, n_tokens: int, n_states: int
) -> tuple[Array, Array]:
    """Which set each token has, and the states of each set, (sets, states)."""
    if (sets is None) != (allowed is None):
        raise DataError("sets and allowed belong together", "give both, or neither")
    if sets is None or allowed is None:
        return np.zeros(n_tokens, np.int32), np.ones((1, n_states), np.bool_)
    which, free = np.ascontiguousarray(sets, np.int32), np.asarray(allowed, np.bool_)
    if free.ndim != 2 or free.shape[1] != n_states:
        raise DataError(
            f"allowed has shape {free.shape}, but there are {n_states} states",
            "give one row for each set, with a truth value for each state",
        )
    if which.shape != (n_tokens,) or ((which < 0) | (which >= len(free))).any():
        raise DataError(
            f"sets must be {n_tokens} numbers of rows of allowed, which has {len(free)}",
            "give one for each token",
        )
    return which, free


def _check_states(states: ArrayLike, which: IntArray, free: BoolArray) -> Array:
    """A copy of the states, checked."""
    own = np.array(states, np.int64)
    if own.shape != which.shape:
        raise DataError(f"there are {len(which)} tokens, but states of shape {own.shape}")
    n_states = free.shape[1]
    wrong = (own < 0) | (own >= n_states)
    wrong |= ~free[which, np.where(wrong, 0, own)]
    _refuse(wrong, own, "is not allowed")
    return own


def _check_possible(text: HMMSamplerText, prior: HMMSamplerPrior, counts: HMMSamplerCounts) -> None:
    """No token may begin in a state where it has probability zero."""
    z, beta = counts.states, np.broadcast_to(prior.words, counts.words[:-1].shape)
    _refuse(beta[text.tokens, z] == 0.0, z, "cannot emit its word")
    firsts = text.indptr[:-1][np.diff(text.indptr) > 0]
    wrong = np.zeros(len(z), np.bool_)
    wrong[firsts] = prior.following[-1, -1, z[firsts]] == 0.0
    _refuse(wrong, z, "cannot start a sentence")


def _refuse(wrong: BoolArray, states: IntArray, why: str) -> None:
    places = np.flatnonzero(wrong)
    if len(places):
        raise DataError(
            f"token {places[0]} begins in state {states[places[0]]}, which {why}",
            "begin with states that are possible",
        )
