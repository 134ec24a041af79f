"""The Bayesian hidden Markov model: parameters integrated out, states sampled one at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from softcount.errors import DataError, LearnerError
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels import sequence_gibbs as kernel
from softcount.kernels.sequence_gibbs import Chain, Masses, Prior, Text
from softcount.types import Array

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

    Priors are one number, or one an entry. A start or emission prior of 0 says that the entry is
    impossible; transitions must all be possible, as a sampler that changes one state at a time
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
        words, borders = _sentences(tokens, indptr, n_words)
        which, free = _choices(sets, allowed, len(words), n_states)
        choices_from = np.append(0, np.cumsum(free.sum(axis=1)))
        choices = np.ascontiguousarray(np.nonzero(free)[1])
        self._text = Text(words, borders, which, choices_from, choices, order, bool(stop))
        given = {"start": start_prior, "transitions": transition_prior}
        if second_prior is not None:
            given["second"] = second_prior
        following = _following(given, n_states, order, n_states + bool(stop))
        self._prior = _with_totals(following, emission_prior, n_states, n_words)
        self._chain = _nothing_counted(self._prior, _states(states, which, free), n_words)
        _check_possible(self._text, self._prior, self._chain)
        kernel.count_all(self._text, self._chain)
        self._masses = _masses(self._prior, self._chain)

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
        priors = {name: _prior_of(name, family) for name, family in families.items()}
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
        return self._chain.states

    def sweep(self, stream: int, temper: float = 1.0) -> None:
        """Draw every token's state anew, given all others; ``temper`` is a power of p.

        What is drawn depends on the states and the stream alone.
        """
        kernel.sweep(
            self._text, self._prior, self._chain, self._masses, np.uint64(stream), float(temper)
        )

    def conditional(self, position: int) -> Array:
        """log p(z_i = k | z_−i, w) for every k, up to a constant; −inf where k cannot be.

        ``position`` i is a token's place in ``tokens``.
        """
        sentence = int(np.searchsorted(self._text.indptr, position, side="right")) - 1
        out = np.empty(self._chain.words.shape[1])
        kernel.conditional(
            self._text, self._prior, self._chain, self._masses, position, sentence, out
        )
        with np.errstate(divide="ignore"):
            logs: Array = np.log(out)
        return logs

    def log_joint(self) -> float:
        """log p(w, z), the parameters integrated out."""
        return float(kernel.log_joint(self._prior, self._chain))

    def counts(self) -> dict[str, Array]:
        """What the words and states add up to, one table a family."""
        order, outcomes = self._text.order, self._chain.words.shape[1] + self._text.stop
        found = {
            name: table.reshape(-1, table.shape[-1]).astype(np.float64)
            for name, table in _tables(self._chain.following, order, outcomes).items()
        }
        found["emissions"] = np.ascontiguousarray(self._chain.words[:-1].T, np.float64)
        return found


def _tables(following: Array, order: int, outcomes: int) -> dict[str, Array]:
    """Views of the families' tables in what follows each context: K stands for no state."""
    K = following.shape[1] - 1  # no state
    if order == 1:
        return {"start": following[0, K:, :K], "transitions": following[0, :K, :outcomes]}
    return {
        "start": following[K, K:, :K],
        "second": following[K, :K, :outcomes],
        "transitions": following[:K, :K, :outcomes],
    }


def _following(given: dict[str, ArrayLike], n_states: int, order: int, outcomes: int) -> Array:
    """The priors of what follows each context, in one array."""
    contexts = (1 if order == 1 else n_states + 1, n_states + 1)
    following = np.zeros((*contexts, n_states + 2))
    for name, table in _tables(following, order, outcomes).items():
        shape = (table.size // table.shape[-1], table.shape[-1])
        argument = f"{name.removesuffix('s')}_prior"
        prior = _prior(argument, given[name], shape, zeros=name == "start")
        table[:] = prior.reshape(table.shape)
    return following


def _with_totals(following: Array, emissions: ArrayLike, n_states: int, n_words: int) -> Prior:
    """The priors as the kernel wants them; ``following`` gets its totals."""
    following[..., -1] = _row_totals(following)
    given = np.asarray(emissions, np.float64)
    table = _prior("emission_prior", given, (n_states, n_words), zeros=True)
    words = np.array(table.T if given.ndim else given.reshape(1, 1), order="C")
    return Prior(following, words, _row_totals(table))


def _row_totals(table: Array) -> Array:
    """Σα of each row; 1 where the row has no entry, so that it can be divided by."""
    totals = table.sum(axis=-1)
    return np.where(totals > 0.0, totals, 1.0)


def _nothing_counted(prior: Prior, states: Array, n_words: int) -> Chain:
    words = np.zeros((n_words + 1, len(prior.word_totals)), np.int32)
    return Chain(states, np.zeros(prior.following.shape, np.int64), words)


def _masses(prior: Prior, chain: Chain) -> Masses:
    following = prior.following + chain.following
    following[..., -1] = 1.0 / following[..., -1]
    words = np.empty(chain.words.shape)
    words[:-1] = prior.words + chain.words[:-1]
    words[-1] = 1.0 / (prior.word_totals + chain.words[-1])
    return Masses(
        by_outcome=following,
        by_second=np.ascontiguousarray(following.transpose(0, 2, 1)),
        by_first=np.ascontiguousarray(following.transpose(1, 2, 0)),
        words=words,
    )


def _prior(name: str, given: ArrayLike, shape: tuple[int, int], zeros: bool = False) -> Array:
    """A prior as a table, checked; zeros only where an entry may be impossible."""
    values = np.asarray(given, np.float64)
    if values.shape not in ((), shape):
        raise LearnerError(
            f"{name} has shape {values.shape}, but the table has shape {shape}",
            "give one number, or one an entry",
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


def _prior_of(name: str, family: Family) -> Array:
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


def _sentences(tokens: ArrayLike, indptr: ArrayLike, n_words: int) -> tuple[Array, Array]:
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


def _choices(
    sets: ArrayLike | None, allowed: ArrayLike | None, n_tokens: int, n_states: int
) -> tuple[Array, Array]:
    """Which set each token has, and the states of each set (one row of truth values a set)."""
    if (sets is None) != (allowed is None):
        raise DataError("sets and allowed belong together", "give both, or neither")
    if sets is None or allowed is None:
        return np.zeros(n_tokens, np.int32), np.ones((1, n_states), np.bool_)
    which, free = np.ascontiguousarray(sets, np.int32), np.asarray(allowed, np.bool_)
    if free.ndim != 2 or free.shape[1] != n_states:
        raise DataError(
            f"allowed has shape {free.shape}, but there are {n_states} states",
            "give one row a set, with one truth value a state",
        )
    if which.shape != (n_tokens,) or ((which < 0) | (which >= len(free))).any():
        raise DataError(
            f"sets must be {n_tokens} numbers of rows of allowed, which has {len(free)}",
            "give one a token",
        )
    return which, free


def _states(states: ArrayLike, which: Array, free: Array) -> Array:
    """A copy of the states, checked."""
    own = np.array(states, np.int64)
    if own.shape != which.shape:
        raise DataError(f"there are {len(which)} tokens, but states of shape {own.shape}")
    n_states = free.shape[1]
    wrong = (own < 0) | (own >= n_states)
    wrong |= ~free[which, np.where(wrong, 0, own)]
    _refuse(wrong, own, "is not allowed")
    return own


def _check_possible(text: Text, prior: Prior, chain: Chain) -> None:
    """No token may begin in a state where it has probability zero."""
    z, beta = chain.states, np.broadcast_to(prior.words, chain.words[:-1].shape)
    _refuse(beta[text.tokens, z] == 0.0, z, "cannot emit its word")
    firsts = text.indptr[:-1][np.diff(text.indptr) > 0]
    wrong = np.zeros(len(z), np.bool_)
    wrong[firsts] = prior.following[-1, -1, z[firsts]] == 0.0
    _refuse(wrong, z, "cannot start a sentence")


def _refuse(wrong: Array, states: Array, why: str) -> None:
    places = np.flatnonzero(wrong)
    if len(places):
        raise DataError(
            f"token {places[0]} begins in state {states[places[0]]}, which {why}",
            "begin with states that are possible",
        )
