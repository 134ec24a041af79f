"""Collapsed Gibbs sampling of the state of every token, all parameters integrated out.

A state z_i is drawn given all other states z_−i (Goldwater & Griffiths 2007). It is involved in
several events: it follows the states before it, it emits its word, and the next states (or the end)
follow it. With n the counts of all other events, α and β the Dirichlet priors, and the events
counted one after the other, p(z_i = k | z_−i, w) is proportional to

    n(pa, k) + α        n(k, w) + β     n(ak, b) + I + α     n(kb, c) + I + α
                     ·  ----------- ·  ------------------ ·  ------------------
                        n(k, ·) + Σβ   n(ak, ·) + I + Σα     n(kb, ·) + I + Σα

for states p, a before and b, c after. Each I counts the events of earlier factors that affect the
same entry or row, which happens only for k = a and k = p: these are corrected after the loop over
k.

A context (t, u) is a pair of states, and "before the sentence" is one more state, K, so that starts
are rows like any other. A chain of order 1 has t = 0 throughout, and no last factor. Among the
outcomes v of a context, K is the end of the sentence, and K + 1 the total of all. Likewise, word V
is the total of all words of a state.

Masses n + α are kept in three layouts, along with the reciprocal of each total, so that the loop
over k reads contiguous memory. They are recomputed from integer counts at each change, so rounding
errors do not accumulate. Functions take arrays, not tuples of them: within the loop over tokens,
looking up a field increments a reference count, which takes several times as long as the sampling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from softcount.core.errors import LearnerError
from softcount.core.types import Array, BoolArray, FloatArray, IntArray
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels.collapsed import log_rising
from softcount.kernels.jit import lean, merged
from softcount.kernels.random import item_stream, uniform

NOTHING = -1
"""Stands for the successor of a sentence's last state if ends are not modelled."""


class HMMSamplerText(NamedTuple):
    """Sentences as flat arrays; token i is restricted to the states of set ``sets[i]``.

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
    """Dirichlet priors, with their totals."""

    following: FloatArray  # [t, u, v]
    words: FloatArray  # [w, k]


class HMMSamplerCounts(NamedTuple):
    """The states of all tokens, and the integer counts of their events."""

    states: IntArray  # (tokens,)
    following: IntArray  # [t, u, v]
    words: IntArray  # [w, k]


class HMMSamplerMasses(NamedTuple):
    """Counts plus priors, in the layouts of the loop over candidates k; totals as reciprocals."""

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
    """Add ``by`` to the count of outcome v of context (t, u); the total is a v of its own."""
    following[t, u, v] += by
    mass = following[t, u, v] + alpha[t, u, v]
    if v == following.shape[2] - 1:
        mass = 1.0 / mass
    by_outcome[t, u, v] = mass
    by_second[t, v, u] = mass
    by_first[u, v, t] = mass


@merged
def _count_token(
    k: int,
    w: int,
    neighbours: tuple[int, int, int, int, int],
    by: int,
    alpha: FloatArray,
    beta: FloatArray,
    following: IntArray,
    words: IntArray,
    by_outcome: FloatArray,
    by_second: FloatArray,
    by_first: FloatArray,
    word_masses: FloatArray,
) -> None:
    """Add (by = 1) or remove (by = −1) the events of a token in state k.

    The total of the row of the states before it is left alone: some state follows whatever k is.
    """
    p, a, b, c, t = neighbours
    V, total = len(words) - 1, following.shape[2] - 1
    words[w, k] += by
    words[V, k] += by
    word_masses[w, k] = words[w, k] + beta[w, k]
    word_masses[V, k] = 1.0 / (words[V, k] + beta[V, k])
    _count(p, a, k, by, alpha, following, by_outcome, by_second, by_first)
    if b != NOTHING:
        _count(t, k, b, by, alpha, following, by_outcome, by_second, by_first)
        _count(t, k, total, by, alpha, following, by_outcome, by_second, by_first)
    if c != NOTHING:
        _count(k, b, c, by, alpha, following, by_outcome, by_second, by_first)
        _count(k, b, total, by, alpha, following, by_outcome, by_second, by_first)


@merged
def _repair(
    k: int,
    neighbours: tuple[int, int, int, int, int],
    by_second: FloatArray,
    by_first: FloatArray,
    weights: FloatArray,
) -> None:
    """Correct the weight of k where several events of one token affect the same entry or row."""
    p, a, b, c, t = neighbours
    if t == p and k == a and b == k:  # (p, a) → k and (t, k) → b
        weights[k] *= 1.0 + 1.0 / by_second[t, b, k]
    if c == NOTHING:
        return
    again = 0.0
    if k == p and b == a and c == k:  # (p, a) → k and (k, b) → c
        again += 1.0
    if k == a and b == k:  # (a, k) → b and (k, b) → c
        again += 1.0 if c == b else 0.0
        weights[k] *= 1.0 / (1.0 + by_first[b, len(weights) + 1, k])
    weights[k] *= 1.0 + again / by_first[b, c, k]


@lean
def sweep(
    text: HMMSamplerText,
    prior: HMMSamplerPrior,
    counts: HMMSamplerCounts,
    masses: HMMSamplerMasses,
    seed: Any,
    temper: float,
    weights: FloatArray,
    only: int,
) -> None:
    """Resample the state of every token, in the order of the text.

    Tokens with a single allowed state are skipped. ``temper`` is an exponent applied to the
    probabilities. If ``only`` is the index of a token, no state is drawn, and ``weights`` receives
    p(z_i = k | z_−i, w) of this token up to a factor, for each allowed state k.
    """
    tokens, indptr, sets, choices_from, choices, order, stop = text
    alpha, beta = prior
    z, following, words = counts
    by_outcome, by_second, by_first, word_masses = masses
    V, K = len(words) - 1, words.shape[1]
    last = K if stop else NOTHING
    stream = np.empty(1, np.uint64)
    stream[0] = item_stream(seed, 0)
    for s in range(len(indptr) - 1):
        first, end = indptr[s], indptr[s + 1]
        for i in range(first, end):
            begin, close = choices_from[sets[i]], choices_from[sets[i] + 1]
            if i != only if only >= 0 else close - begin == 1:
                continue
            # the states p, a before the token and b, c after it; at order 1, p = t = 0 and no c
            w, old = tokens[i], z[i]
            p, a, b, c, t = 0, K, last, NOTHING, 0
            if i > first:
                a = z[i - 1]
            if i + 1 < end:
                b = z[i + 1]
            if order == 2:
                p, t = z[i - 2] if i - 1 > first else K, a
                if i + 1 < end:
                    c = z[i + 2] if i + 2 < end else last
            neighbours = (p, a, b, c, t)
            _count_token(
                old, w, neighbours, -1, alpha, beta, following, words, by_outcome, by_second,
                by_first, word_masses,
            )  # fmt: skip
            if close - begin == K:
                for k in range(K):
                    weights[k] = by_outcome[p, a, k] * word_masses[w, k] * word_masses[V, k]
                if b != NOTHING:
                    for k in range(K):
                        weights[k] *= by_second[t, b, k] * by_second[t, K + 1, k]
                if c != NOTHING:
                    for k in range(K):
                        weights[k] *= by_first[b, c, k] * by_first[b, K + 1, k]
            else:
                for j in range(begin, close):
                    k = choices[j]
                    weights[k] = by_outcome[p, a, k] * word_masses[w, k] * word_masses[V, k]
                    if b != NOTHING:
                        weights[k] *= by_second[t, b, k] * by_second[t, K + 1, k]
                    if c != NOTHING:
                        weights[k] *= by_first[b, c, k] * by_first[b, K + 1, k]
            if a < K:
                _repair(a, neighbours, by_second, by_first, weights)
            if c != NOTHING and p < K and p != a:
                _repair(p, neighbours, by_second, by_first, weights)
            if temper != 1.0:
                top = 0.0
                for j in range(begin, close):
                    top = max(top, weights[choices[j]])
                for j in range(begin, close):
                    k = choices[j]
                    if weights[k] > 0.0:
                        weights[k] = math.exp(temper * math.log(weights[k] / top))
            total = 0.0
            for j in range(begin, close):
                total += weights[choices[j]]
            new, rest = old, uniform(stream, 0) * total - weights[old]  # the old one comes first
            if rest >= 0.0 and only < 0:
                for j in range(begin, close):
                    k = choices[j]
                    if k != old and weights[k] > 0.0:
                        new = k
                        rest -= weights[k]
                        if rest < 0.0:
                            break
            z[i] = new
            _count_token(
                new, w, neighbours, 1, alpha, beta, following, words, by_outcome, by_second,
                by_first, word_masses,
            )  # fmt: skip


@lean
def log_joint(prior: HMMSamplerPrior, counts: HMMSamplerCounts) -> float:
    """Compute log p(w, z) = Σ_rows [Σ_v log α_v^(n_v) − log (Σα)^(n)], x^(n) rising factorial."""
    alpha, beta = prior
    _, following, words = counts
    V, K = len(words) - 1, words.shape[1]
    total = 0.0
    for t in range(following.shape[0]):
        for u in range(K + 1):
            for v in range(K + 2):
                sign = -1.0 if v == K + 1 else 1.0
                if following[t, u, v] > 0:
                    total += sign * log_rising(alpha[t, u, v], float(following[t, u, v]))
    for w in range(V + 1):
        for k in range(K):
            sign = -1.0 if w == V else 1.0
            if words[w, k] > 0:
                total += sign * log_rising(beta[w, k], float(words[w, k]))
    return total


PRIORS = (1e-50, 1e12)
"""Smallest and largest prior for which the factors of one token do not under- or overflow."""


class CollapsedChain:
    """The state of the collapsed sampler: the hidden state of each token, with counts.

    ``priors``          Dirichlet priors of each table, from `read_priors`: "start" (1, K);
                        "transitions" (K, K [+ 1]) or, at order 2, (K·K, K [+ 1]), and "second" (K,
                        K [+ 1]); "emissions" (K, V). 0 where a start or a word is impossible
    ``tokens, indptr``  the sentences as concatenated word indices, and their index pointer
    ``states``          the initial state of every token
    ``sets, allowed``   token i may be in the states k where ``allowed[sets[i], k]`` is true

    >>> priors = {"start": np.ones((1, 2)), "transitions": np.full((2, 3), 0.1)}
    >>> priors["emissions"] = np.full((2, 2), 0.1)
    >>> text, states = np.array([0, 1] * 10), np.array([0, 0, 0, 1] * 5)
    >>> sets, allowed = np.zeros(20, np.int32), np.ones((1, 2), np.bool_)
    >>> chain = CollapsedChain(priors, text, np.array([0, 4, 10, 20]), states, sets, allowed)
    >>> for stream in range(20):
    ...     chain.sweep(stream)
    >>> len(set(chain.states[::2])), len(set(chain.states[1::2]))
    (1, 1)
    >>> chain.counts()["emissions"].sum(axis=1)
    array([10., 10.])
    """

    def __init__(
        self,
        priors: Mapping[str, FloatArray],
        tokens: IntArray,
        indptr: IntArray,
        states: IntArray,
        sets: IntArray,
        allowed: BoolArray,
    ) -> None:
        (K, V), order = priors["emissions"].shape, 2 if "second" in priors else 1
        stop = priors["transitions"].shape[1] > K
        begins = np.append(0, np.cumsum(allowed.sum(axis=1)))
        choices = np.ascontiguousarray(np.nonzero(allowed)[1])
        text = (np.asarray(tokens, np.int32), indptr, np.asarray(sets, np.int32), begins, choices)
        self._text = HMMSamplerText(*text, order, stop)
        alpha = np.zeros((1 if order == 1 else K + 1, K + 1, K + 2))
        for name, table in _view_tables(alpha, order, K + stop).items():
            table[:] = priors[name].reshape(table.shape)
        alpha[..., -1] = _sum_rows(alpha)
        beta = np.vstack([priors["emissions"].T, _sum_rows(priors["emissions"])])
        self._prior = HMMSamplerPrior(alpha, beta)
        self._counts = HMMSamplerCounts(
            np.array(states, np.int64),
            np.zeros(alpha.shape, np.int64),
            np.zeros((V + 1, K), np.int32),
        )
        self._recount()

    def _recount(self) -> None:
        """Make counts and masses from the states."""
        alpha, beta = self._prior
        self._counts.following[...], self._counts.words[...] = 0, 0
        count_all(self._text, self._counts)
        following: FloatArray = alpha + self._counts.following
        words: FloatArray = beta + self._counts.words
        following[..., -1], words[-1] = 1.0 / following[..., -1], 1.0 / words[-1]
        self._masses = HMMSamplerMasses(
            by_outcome=following,
            by_second=np.ascontiguousarray(following.transpose(0, 2, 1)),
            by_first=np.ascontiguousarray(following.transpose(1, 2, 0)),
            words=words,
        )

    def state(self) -> dict[str, Array]:
        """Return copies of all that a sweep changes; counts are made anew from the states."""
        return {"states": self.states.copy()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `state` returned; the same bits follow."""
        self._counts.states[...] = state["states"]
        self._recount()

    @property
    def states(self) -> IntArray:
        """The state of every token."""
        return self._counts.states

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Resample every token's state given all others; ``temper`` is an exponent of p.

        The result depends only on the current states and the stream.
        """
        tables = (self._text, self._prior, self._counts, self._masses)
        weights = np.empty(self._counts.words.shape[1])
        sweep(*tables, np.uint64(stream), float(temper), weights, -1)

    def conditional(self, position: int) -> FloatArray:
        """Compute log p(z_i = k | z_−i, w) for every k, up to a constant; −inf if not allowed.

        ``position`` i is the index of a token in ``tokens``.
        """
        tables = (self._text, self._prior, self._counts, self._masses)
        weights = np.zeros(self._counts.words.shape[1])
        sweep(*tables, np.uint64(0), 1.0, weights, position)
        token_set = self._text.sets[position]
        allowed = self._text.choices[slice(*self._text.choices_from[token_set : token_set + 2])]
        logs: FloatArray = np.full(len(weights), -np.inf)
        with np.errstate(divide="ignore"):
            logs[allowed] = np.log(weights[allowed])
        return logs

    def log_joint(self) -> float:
        """Compute log p(w, z), the parameters integrated out."""
        return float(log_joint(self._prior, self._counts))

    def counts(self) -> dict[str, FloatArray]:
        """Return the counts of all events, one table for each family."""
        outcomes = self._counts.words.shape[1] + self._text.stop
        tables = _view_tables(self._counts.following, self._text.order, outcomes)
        counts: dict[str, FloatArray] = {
            name: table.reshape(-1, table.shape[-1]).astype(np.float64)
            for name, table in tables.items()
        }
        counts["emissions"] = np.ascontiguousarray(self._counts.words[:-1].T, np.float64)
        return counts


def _view_tables(following: Array, order: int, outcomes: int) -> dict[str, Array]:
    """Return views of the families' tables in ``following``: K stands for "no state yet"."""
    K = following.shape[1] - 1
    if order == 1:
        return {"start": following[0, K:, :K], "transitions": following[0, :K, :outcomes]}
    return {
        "start": following[K, K:, :K],
        "second": following[K, :K, :outcomes],
        "transitions": following[:K, :K, :outcomes],
    }


def _sum_rows(table: FloatArray) -> FloatArray:
    """Compute Σα of each row; 1 if all entries are 0, so that one can divide by it."""
    totals = table.sum(axis=-1)
    return np.where(totals > 0.0, totals, 1.0)


def read_priors(families: Mapping[str, Family]) -> dict[str, FloatArray]:
    """Return the Dirichlet prior of each table's entries, 0 where they are impossible.

    Starts and words may be impossible; transitions must all be possible, since otherwise a sampler
    that changes one state at a time might not be ergodic.
    """
    priors, (least, most) = {}, PRIORS
    for name, family in families.items():
        if not isinstance(family, Categorical):
            raise LearnerError(
                f"the {name} are not a plain categorical table, so cannot be integrated out",
                "use Gibbs() or EM()",
            )
        if family.ties is not None or family.held_rows.any():
            raise LearnerError(
                f"the {name} have tied or frozen rows, which collapsed sampling does not support",
                "use Gibbs(), or leave all rows free",
            )
        alpha = np.broadcast_to(family.alpha, family.n_entries)
        values = priors[name] = family.supported(alpha).reshape(family.shape)
        what = f"{name.removesuffix('s')}_prior"
        if name not in ("start", "emissions") and np.any(values == 0.0):
            raise LearnerError(
                f"{what} has zeros: a sampler that changes one state at a time might get stuck "
                "between impossible transitions",
                "use Gibbs(), which draws whole sentences",
            )
        if not ((values == 0.0) | ((values >= least) & (values <= most))).all():
            raise LearnerError(
                f"{what} must be numbers from {least:g} to {most:g}",
                "it is the concentration of a Dirichlet prior: 0.1 and 1 are usual",
            )
    return priors
