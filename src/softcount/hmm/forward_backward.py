"""Forward–backward, Viterbi decoding and posterior sampling of paths on a shard.

With α_i(k) = p(x_1 … x_i, z_i = k) and β_i(k) = p(x_{i+1} … x_n, end | z_i = k) (Rabiner 1989), the
posterior of a token's state is γ_i(k) = α_i(k) β_i(k) / p(x), and that of a transition ξ_i(j, k) =
α_{i−1}(j) A(j, k) E_i(k) β_i(k) / p(x). The expected counts of a shard are sums of these.

Which compiled loops compute them depends on the order of the chain and on the number of states
allowed at tokens: see `softcount.hmm.kernels`. The results are the same up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from softcount.core.types import Array, FloatArray, IntArray
from softcount.hmm.data import SentenceShard, TokenKinds
from softcount.hmm.kernels import (
    ChainCounts,
    MarkovChain,
    TokenEmissions,
    few_states,
    lists,
    packs,
)
from softcount.kernels.threads import even_pieces, in_turn
from softcount.kernels.vectors import padded_width

DType = np.dtype[Any]
DOUBLE: DType = np.dtype(np.float64)
MANY, PIECES = 1 << 18, 4
"""From MANY tokens on, the work is split into PIECES, for any number of threads. Each has its own
counts, which are added in a fixed order, so results do not depend on the number of threads."""
SEGMENT = 1 << 22
"""Maximum number of entries in a matrix: longer sentences are split into segments."""


@dataclass(frozen=True, eq=False)
class Trellis:
    """All state paths through the sentences of a shard.

    ``offsets``  to be added to log p of each sentence, (sentences,): log scales that were taken out
                 of the emissions to avoid underflow
    ``dtype``    precision of matrices, where there are any: float64 or float32
    ``weights``  factors of p(token | state), (tokens, states); None: all are 1. With them, all is
                 counted per token
    """

    shard: SentenceShard
    chain: MarkovChain
    emissions: TokenEmissions
    offsets: FloatArray
    dtype: DType = DOUBLE
    threads: int = 1
    weights: FloatArray | None = None

    def expect(self, per_token: bool = False) -> ChainCounts:
        """Compute expected counts; posteriors are summed by emission row, or per token."""
        counts = self._run(self.dtype, per_token)
        counts.transitions[...] *= self.chain.transitions
        return counts

    def log_likelihoods(self) -> FloatArray:
        """Compute log p of each sentence, (sentences,), without offsets; −inf if impossible."""
        return self._run(self.dtype, per_token=False, counting=False).log_likelihoods

    def find_best_paths(self) -> tuple[IntArray, FloatArray]:
        """Return the best paths, (1, tokens), and log p(path, sentence) (Viterbi 1967)."""
        return self._find_paths(1, best=True)

    def draw_paths(self, stream: int, samples: int = 1) -> tuple[IntArray, FloatArray]:
        """Draw paths from the posterior, (samples, tokens); return log p of each sentence too."""
        return self._find_paths(samples, stream=stream)

    def count_paths(self, paths: IntArray, logs: FloatArray) -> ChainCounts:
        """Count the events of paths (samples, tokens), each weighted by 1 / samples."""
        chain, rows, shard = self.chain, self.emissions.rows, self.shard
        shape, n_states = chain.transitions.shape, len(chain.start)
        counts = _make_counts((len(self.emissions.table), n_states), rows, logs, shape)
        lists.count_paths(paths, shard.indptr, shard.weights, n_states, chain.order, counts)
        return counts

    def _run(self, dtype: DType, per_token: bool, counting: bool = True) -> ChainCounts:
        """Run forward–backward; transition counts still lack the factor A(j, k)."""
        shard, chain, k = self.shard, self.chain, len(self.chain.start)
        size, into = len(self.emissions.table), shard.rows
        per_token = per_token or self.weights is not None
        if per_token:
            size, into = shard.n_tokens, np.arange(shard.n_tokens)
        shape: tuple[int, ...] = (size, k)  # of posteriors
        rows: tuple[int, ...] = chain.transitions.shape
        loops: ModuleType
        text: tuple[Any, ...]
        if self._is_dense:
            loops = packs
            text, bounds = self._arrange_packs(dtype)
            into, wide = into[shard.packs.tokens], padded_width(k)
            shape, rows = (size, wide), (wide, wide)
        elif chain.order == 1:
            kinds = shard.kinds
            if per_token:  # each token is a kind of its own
                kinds = TokenKinds(into, shard.rows, shard.sets, shard.states)
            indptr, kind, state = kinds.cells
            likelihoods = self.emissions.table[kinds.rows[kind], state]
            if self.weights is not None:
                likelihoods = likelihoods * self.weights[kind, state]
            cells = few_states.TokenCells(kinds.of_tokens, indptr, state, likelihoods)
            loops = few_states
            text = (shard.indptr, chain, cells)
            shape, bounds = state.shape, _cut_evenly(np.diff(shard.indptr))
        else:
            loops = lists
            text, bounds = self._arrange_lists()
        logs = np.zeros(len(shard))
        pieces: dict[int, ChainCounts] = {}
        # where each token has posteriors of its own, no piece touches those of another
        shared = np.zeros(shape) if per_token or shard.observed.ndim > 1 else None

        def run_piece(n: int) -> None:
            pieces[n] = _make_counts(shape, into, logs, rows, shared)
            first, last = bounds[n : n + 2]
            loops.forward_backward(first, last, *text, shard.weights, pieces[n], counting)

        in_turn(run_piece, len(bounds) - 1, self.threads)
        total = pieces.pop(0)
        for n in range(1, len(bounds) - 1):  # in a fixed order, whichever finished first
            more = pieces.pop(n)
            for name in ("posteriors", "start", "transitions", "stop"):
                sums: FloatArray = getattr(total, name)
                if sums is not shared:
                    sums += getattr(more, name)
        # overflow in float32 shows in log p, or in the counts of first tokens: use float64 then
        if dtype.itemsize < 8 and not (np.isfinite(logs).all() and np.isfinite(total.start).all()):
            return self._run(DOUBLE, per_token, counting)
        if self._is_dense:
            return total._replace(  # without the padding
                posteriors=total.posteriors[:, :k],
                start=total.start[:k],
                transitions=total.transitions[:k, :k],
                stop=total.stop[:k],
            )
        if chain.order == 1:
            places = state * size + (kind if per_token else kinds.rows[kind])
            by_state: Array = np.bincount(places, total.posteriors, minlength=size * k)
            return total._replace(posteriors=by_state.reshape(k, size).T)
        return total

    def _find_paths(
        self, samples: int, *, best: bool = False, stream: int = 0
    ) -> tuple[IntArray, FloatArray]:
        """Return best or drawn paths, (samples, tokens), and their logs, (sentences,)."""
        shard = self.shard
        paths, logs = np.zeros((samples, shard.n_tokens), np.int32), np.zeros(len(shard))
        loops: ModuleType = packs if self._is_dense else lists
        text, bounds = self._arrange_packs(DOUBLE) if self._is_dense else self._arrange_lists()
        out = (best, shard.numbers, np.uint64(stream), logs, paths)
        in_turn(
            lambda n: loops.find_paths(*bounds[n : n + 2], *text, *out),
            len(bounds) - 1,
            self.threads,
        )
        return paths, logs

    # text and tables in the layout of the loops, and the bounds of pieces of work
    def _arrange_packs(self, dtype: DType) -> tuple[tuple[Any, ...], IntArray]:
        """Arrange sentences to run in lockstep: see `softcount.hmm.kernels.packs`."""
        shard, chain, k = self.shard, self.chain, len(self.chain.start)
        tables = (chain.start, chain.transitions, chain.transitions.T, chain.stop)
        padded = packs.PaddedChain(*(packs.pad(table, dtype) for table in tables))
        table, rows, packed = self.emissions.table, shard.rows, shard.packs
        if self.weights is not None:
            table, rows = self._weigh_tokens(), np.arange(shard.n_tokens)
        elif shard.sets.any():
            kinds = shard.kinds
            table, rows = table[kinds.rows], kinds.of_tokens
            table[:, :k] *= shard.states.allowed[kinds.sets]
        emissions = packs.RowEmissions(table.astype(dtype, copy=False), rows[packed.tokens])
        sizes = np.zeros(0, np.int64)
        if len(packed.begins):
            sizes = np.diff(packed.begins[np.append(packed.positions[:-1], -1)])
        return (packed, padded, emissions, max(SEGMENT // k, 1)), _cut_evenly(sizes)

    def _arrange_lists(self) -> tuple[tuple[Any, ...], IntArray]:
        """Arrange sentences with lists of states: see `softcount.hmm.kernels.lists`."""
        shard, chain, emissions = self.shard, lists.arrange_chain(self.chain), self.emissions
        if self.weights is not None:
            rows = np.arange(shard.n_tokens)
            emissions = TokenEmissions(self._weigh_tokens(), rows, shard.sets)
        text = (shard.indptr, chain, emissions, shard.states.lists)
        return text, _cut_evenly(np.diff(shard.indptr))

    def _weigh_tokens(self) -> FloatArray:
        """Return p(token | state) times the weights, (tokens, states), padded."""
        assert self.weights is not None
        shard, k = self.shard, len(self.chain.start)
        table = self.emissions.table[shard.rows]
        table[:, :k] *= self.weights
        if shard.sets.any():
            table[:, :k] *= shard.states.allowed[shard.sets]
        return table

    @property
    def _is_dense(self) -> bool:
        """Whether to multiply whole matrices."""
        return self.chain.order == 1 and not self.shard.is_sparse


def _make_counts(
    shape: tuple[int, ...],
    into: IntArray,
    logs: FloatArray,
    transitions: tuple[int, ...],
    posteriors: FloatArray | None = None,
) -> ChainCounts:
    """Make zero counts, for posteriors and transitions of these shapes."""
    n_rows, n_states = transitions
    sums = (np.zeros(n_states), np.zeros(transitions), np.zeros(n_rows))
    return ChainCounts(np.zeros(shape) if posteriors is None else posteriors, into, logs, *sums)


def _cut_evenly(sizes: IntArray) -> IntArray:
    """Return bounds of pieces of about equal size; a single piece if there are few tokens."""
    return even_pieces(sizes, PIECES if sizes.sum() >= MANY else 1)
