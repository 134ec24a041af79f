"""Forward–backward, best paths and draws of paths over the sentences of a shard.

With α_i(k) = p(x_1 … x_i, z_i = k) and β_i(k) = p(x_{i+1} … x_n, end | z_i = k) (Rabiner 1989), the
posterior of a token's state is γ_i(k) = α_i(k) β_i(k) / p(x), and that of a transition ξ_i(j, k) =
α_{i−1}(j) A(j, k) E_i(k) β_i(k) / p(x). What is expected of a shard are sums of these.

Which compiled loops compute them depends on the order of the chain and on how many states tokens
may be in: see `softcount.hmm.kernels`. The answers are the same up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.core.types import Array, FloatArray, IntArray
from softcount.hmm.data import SentenceShard, TokenKinds
from softcount.hmm.kernels import few_states, lists, packs
from softcount.hmm.kernels.records import ChainCounts, MarkovChain, TokenEmissions
from softcount.kernels.threads import even_pieces, in_turn

DType = np.dtype[Any]
DOUBLE: DType = np.dtype(np.float64)
MANY, PIECES = 1 << 18, 4
"""From so many tokens on, work is shared out among so many, whatever the threads: each has counts
of its own, which are added up in one order."""
SEGMENT = 1 << 22
"""A matrix has at most so many numbers: longer sentences are worked through in segments."""


@dataclass(frozen=True, eq=False)
class Trellis:
    """All paths of states through the sentences of a shard.

    ``offsets``  what is to be added to log p of each sentence: logs that were taken out of the
                 emissions, lest these underflow, (sentences,)
    ``dtype``    that of matrices, where there are any: float64 or float32
    """

    shard: SentenceShard
    chain: MarkovChain
    emissions: TokenEmissions
    offsets: FloatArray
    dtype: DType = DOUBLE
    threads: int = 1

    def expect(self, per_token: bool = False) -> ChainCounts:
        """Expected counts; posteriors by rows of emissions, added up, or those of each token."""
        counts = self._run(self.dtype, per_token)
        counts.transitions[...] *= self.chain.transitions
        return counts

    def log_likelihoods(self) -> FloatArray:
        """log p of each sentence, (sentences,), without offsets; −inf if it is impossible."""
        return self._run(self.dtype, per_token=False, counting=False).log_likelihoods

    def find_best_paths(self) -> tuple[IntArray, FloatArray]:
        """The best path of each sentence, (1, tokens), and log p(path, sentence) (Viterbi 1967)."""
        return self._find_paths(1, best=True)

    def draw_paths(self, stream: int, samples: int = 1) -> tuple[IntArray, FloatArray]:
        """Paths drawn from their posterior, (samples, tokens), and log p of each sentence."""
        return self._find_paths(samples, stream=stream)

    def count_paths(self, paths: IntArray, logs: FloatArray) -> ChainCounts:
        """What paths (samples, tokens) add up to, each by its share of the samples."""
        chain, rows, shard = self.chain, self.emissions.rows, self.shard
        shape, n_states = chain.transitions.shape, len(chain.start)
        counts = _make_counts((len(self.emissions.table), n_states), rows, logs, shape)
        lists.count_paths(paths, shard.indptr, shard.weights, n_states, chain.order, counts)
        return counts

    def _run(self, dtype: DType, per_token: bool, counting: bool = True) -> ChainCounts:
        """Counts, their transitions still to be multiplied by the chain's own."""
        if self._is_dense:
            plan = _plan_packs(self, dtype, per_token)
        elif self.chain.order == 1:
            plan = _plan_few_states(self, per_token)
        else:
            plan = _plan_lists(self, per_token)
        logs, bounds = np.zeros(len(self.shard)), plan.bounds
        pieces: dict[int, ChainCounts] = {}

        def run_piece(n: int) -> None:
            pieces[n] = _make_counts(plan.posteriors, plan.into, logs, plan.transitions)
            plan.run(bounds[n], bounds[n + 1], pieces[n], counting)

        in_turn(run_piece, len(bounds) - 1, self.threads)
        total = pieces.pop(0)
        for n in range(1, len(bounds) - 1):  # in one order, whichever was done first
            more = pieces.pop(n)
            for name in ("posteriors", "start", "transitions", "stop"):
                into: FloatArray = getattr(total, name)
                into += getattr(more, name)
        # a number too large for so few bits spoils log p, or the counts of first tokens
        if dtype.itemsize < 8 and not (np.isfinite(logs).all() and np.isfinite(total.start).all()):
            return self._run(DOUBLE, per_token, counting)
        return plan.finish(total)

    def _find_paths(
        self, samples: int, *, best: bool = False, stream: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """Paths (samples, tokens), and the logs of what they end at, (sentences,)."""
        shard, indptr, chain = self.shard, self.shard.indptr, self.chain
        paths, logs = np.zeros((samples, shard.n_tokens), np.int32), np.zeros(len(shard))
        run: Callable[..., None]
        text: tuple[object, ...]
        out = (best, shard.numbers, np.uint64(stream), logs, paths)
        if self._is_dense:
            padded, rows, most = _pad_tables(self, DOUBLE)
            text = (shard.packs, padded, rows, most, *out)
            run, bounds = packs.find_paths, _cut_packs(shard.packs)
        else:
            text = (indptr, chain, self.emissions, shard.states.lists, *out)
            run, bounds = lists.find_paths, _cut_evenly(np.diff(indptr))
        in_turn(lambda n: run(bounds[n], bounds[n + 1], *text), len(bounds) - 1, self.threads)
        return paths, logs

    @property
    def _is_dense(self) -> bool:
        """Whether whole matrices are multiplied."""
        return self.chain.order == 1 and not self.shard.is_sparse


def _make_counts(
    shape: tuple[int, ...], into: IntArray, logs: FloatArray, transitions: tuple[int, ...]
) -> ChainCounts:
    """Zeros for posteriors of this shape, and for transitions of that one."""
    n_rows, n_states = transitions
    sums = (np.zeros(n_states), np.zeros(transitions), np.zeros(n_rows))
    return ChainCounts(np.zeros(shape), into, logs, *sums)


def _cut_evenly(sizes: IntArray) -> IntArray:
    """Where pieces of about equal size begin, and the end; few tokens are one piece."""
    return even_pieces(sizes, PIECES if sizes.sum() >= MANY else 1)


def _cut_packs(packed: packs.Packs) -> IntArray:
    """Where pieces of about as many tokens begin among packs, and the end."""
    if not len(packed.begins):
        return _cut_evenly(np.zeros(0, np.int64))
    return _cut_evenly(np.diff(packed.begins[np.append(packed.positions[:-1], -1)]))


# Which loops work through a shard: each plan has the text and the tables as its loops want them.


class _Plan(NamedTuple):
    """How expected counts are computed.

    ``bounds``       those of the pieces that the work is cut into, each with counts of its own
    ``posteriors``   the shape of posteriors as they are counted
    ``into``         where those of each token are counted
    ``transitions``  the shape of transitions as they are counted
    ``run``          forward and, if ``counting``, backward, from one bound to another
    ``finish``       makes what was counted (rows, states), and as the chain's tables
    """

    bounds: IntArray  # (pieces + 1,)
    posteriors: tuple[int, ...]
    into: IntArray  # (tokens,)
    transitions: tuple[int, ...]
    run: Callable[[int, int, ChainCounts, bool], None]
    finish: Callable[[ChainCounts], ChainCounts]


def _pad_tables(
    trellis: Trellis, dtype: DType
) -> tuple[packs.PaddedChain, packs.RowEmissions, int]:
    """Tables as packs want them, and the most rows of a segment."""
    shard, chain, k = trellis.shard, trellis.chain, len(trellis.chain.start)
    padded = packs.PaddedChain(
        packs.pad(chain.start, dtype),
        packs.pad(chain.transitions, dtype),
        packs.pad(chain.transitions.T, dtype),
        packs.pad(chain.stop, dtype),
    )
    table, rows = trellis.emissions.table, shard.rows
    if shard.sets.any():
        kinds = shard.kinds
        table, rows = table[kinds.rows], kinds.of_tokens
        table[:, :k] *= shard.states.allowed[kinds.sets]
    emissions = packs.RowEmissions(table.astype(dtype, copy=False), rows[shard.packs.tokens])
    return padded, emissions, max(SEGMENT // k, 1)


def _plan_packs(trellis: Trellis, dtype: DType, per_token: bool) -> _Plan:
    """Sentences in lockstep: see `softcount.hmm.kernels.packs`."""
    shard, packed, k = trellis.shard, trellis.shard.packs, len(trellis.chain.start)
    chain, emissions, most = _pad_tables(trellis, dtype)
    wide = chain.transitions.shape[1]

    def run(first: int, last: int, counts: ChainCounts, counting: bool) -> None:
        tables = (packed, chain, emissions, shard.weights, most)
        packs.forward_backward(first, last, *tables, counts, counting)

    def finish(counts: ChainCounts) -> ChainCounts:
        return counts._replace(  # without the padding
            posteriors=counts.posteriors[:, :k],
            start=counts.start[:k],
            transitions=counts.transitions[:k, :k],
            stop=counts.stop[:k],
        )

    size = shard.n_tokens if per_token else len(trellis.emissions.table)
    into = packed.tokens if per_token else shard.rows[packed.tokens]
    return _Plan(_cut_packs(packed), (size, wide), into, (wide, wide), run, finish)


def _plan_few_states(trellis: Trellis, per_token: bool) -> _Plan:
    """Order 1 by lists of states: see `softcount.hmm.kernels.few_states`."""
    shard, chain = trellis.shard, trellis.chain
    size, kinds = len(trellis.emissions.table), shard.kinds
    if per_token:  # each is a kind of its own
        size = shard.n_tokens
        kinds = TokenKinds(np.arange(size), shard.rows, shard.sets, shard.states)
    cells = kinds.cells
    likelihoods = trellis.emissions.table[cells.rows, cells.states]
    text = few_states.TokenCells(kinds.of_tokens, cells.indptr, cells.states, likelihoods)

    def run(first: int, last: int, counts: ChainCounts, counting: bool) -> None:
        tables = (shard.indptr, chain, text, shard.weights)
        few_states.forward_backward(first, last, *tables, counts, counting)

    def finish(counts: ChainCounts) -> ChainCounts:
        k, targets = len(chain.start), cells.kinds if per_token else cells.rows
        places = cells.states * size + targets  # from cells to (rows, states)
        sums: Array = np.bincount(places, counts.posteriors, minlength=size * k)
        return counts._replace(posteriors=sums.reshape(k, size).T)

    bounds, shape = _cut_evenly(np.diff(shard.indptr)), chain.transitions.shape
    return _Plan(bounds, (len(cells.states),), kinds.of_tokens, shape, run, finish)


def _plan_lists(trellis: Trellis, per_token: bool) -> _Plan:
    """Order 2: see `softcount.hmm.kernels.lists`."""
    shard, chain, emissions = trellis.shard, trellis.chain, trellis.emissions

    def run(first: int, last: int, counts: ChainCounts, counting: bool) -> None:
        tables = (shard.indptr, chain, emissions, shard.states.lists, shard.weights)
        lists.forward_backward(first, last, *tables, counts, counting)

    shape = (shard.n_tokens if per_token else len(emissions.table), len(chain.start))
    into = np.arange(shard.n_tokens) if per_token else shard.rows
    bounds = _cut_evenly(np.diff(shard.indptr))
    return _Plan(bounds, shape, into, chain.transitions.shape, run, lambda counts: counts)
