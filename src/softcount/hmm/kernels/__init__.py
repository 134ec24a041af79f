"""Compiled loops of `softcount.hmm`: forward–backward, best paths and draws of paths.

The same recursions stand here three times, because no one way of going through them is fast for all
chains:

`packs`       order 1, tokens in any state: many sentences side by side, so that a position is a
              product of matrices, in float64 or float32
`few_states`  order 1, tokens in a few states each (a dictionary of tags): one sentence at a time,
              over what is possible alone; expected counts and likelihoods
`lists`       order 2, and the paths of order 1 where tokens may be in few states: one sentence at
              a time, with whole rows of a table where a token may be in any state

The notation is Rabiner's (1989): K states, start probabilities π, transitions A, and E_i(k) = p(x_i
| z_i = k) of token i. To this come the probabilities of ending after a state, ``stop``.
"""

from __future__ import annotations

from typing import NamedTuple

from softcount.core.types import FloatArray, IntArray


class MarkovChain(NamedTuple):
    """How states follow each other; without a stop distribution, ``stop`` is one everywhere.

    Of order 2, row t K + u of the transitions tells what follows the states t and u, and the last K
    rows tell what follows a first state: K² + K rows. Of order 1 there are K rows.
    """

    start: FloatArray  # (K,)
    transitions: FloatArray  # (rows, K)
    stop: FloatArray  # (rows,)
    order: int


class TokenEmissions(NamedTuple):
    """p(token t | state) is ``table[rows[t]]``; its states are those of set ``sets[t]``."""

    table: FloatArray  # (rows, K or more: padded)
    rows: IntArray  # (tokens,)
    sets: IntArray  # (tokens,)


class StateLists(NamedTuple):
    """The states of set s are ``states[indptr[s]:indptr[s + 1]]``, in order.

    After all of them stands a state 0, as the list of one state where a chain has no state.
    """

    indptr: IntArray  # (sets + 1,)
    states: IntArray


class ChainCounts(NamedTuple):
    """Expected counts of some sentences, and log p of each.

    ``posteriors[into[t]]`` gets those of token t: rows are tokens, or rows of emissions. Loops
    leave ``transitions`` to be multiplied by the chain's own table: see
    `softcount.hmm.forward_backward.Trellis.expect`.
    """

    posteriors: FloatArray  # (rows, K)
    into: IntArray  # (tokens,)
    log_likelihoods: FloatArray  # (sentences,)
    start: FloatArray  # (K,)
    transitions: FloatArray  # as those of the chain
    stop: FloatArray  # as those of the chain
