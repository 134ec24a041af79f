"""The E-step of hidden Markov models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.errors import LearnerError
from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.kernels import listed, packs
from softcount.models.possible import demand_possible
from softcount.models.sequences import passes
from softcount.models.sequences.collapsed import CollapsedChain
from softcount.models.sequences.emissions import TABLE, Emitting, Words, uncounted
from softcount.models.sequences.shards import Sentences, Shard
from softcount.models.settings import start_tables
from softcount.types import NOTHING_UNCOUNTED, Array, Counts, How, Params, Stats, Uncounted

START, SECOND, MOVES = "start", "second", "transitions"
IMPOSSIBLE = "cannot come about: no sequence of states could have produced it"
REMEDY = "add smoothing, or look at the tags and the dictionary"

AT_ONCE = 1 << 16
"""Tokens whose posteriors are there at once, about: those of sentences that threads work on."""


class HMMCore:
    """p(x, z) = p(z_1) Π p(z_i | z_{i−1}) Π p(x_i | z_i) p(end | z_n) (order 1).

    Families: "start" (1, K), "transitions" (K, K + 1), the last outcome being the end, and
    "emissions". Of order 2, "transitions" has K² rows, one for each pair of states, and "second"
    says what follows the first state. Without ``stop`` there is no such outcome.
    """

    threads_inside = True

    def __init__(
        self,
        name: str,
        chain: Mapping[str, Family],
        emission: Emitting,
        n_states: int,
        order: int = 1,
        stop: bool = True,
        dtype: str = "float64",
    ) -> None:
        self.name, self.emission = name, emission
        self.n_states, self.order, self.stop = n_states, order, stop
        self.dtype = np.dtype(dtype)
        self.families: dict[str, Family] = {**chain, TABLE: emission.family}

    # tables as kernels want them
    def moves(self, params: Params, temper: float = 1.0) -> listed.Moves:
        """Start, moves and ends; of order 2 the rows of first states come last."""
        names = (MOVES,) if self.order == 1 else (MOVES, SECOND)
        rows = np.concatenate([np.asarray(params[name]) for name in names]) ** temper
        ends = rows[:, -1] if self.stop else np.ones(len(rows))
        start = np.asarray(params[START]).reshape(-1) ** temper
        table = np.ascontiguousarray(rows[:, : self.n_states])
        return listed.Moves(start, table, np.ascontiguousarray(ends), self.order)

    def emitted(self, params: Params, shard: Shard) -> tuple[listed.Emitted, Array]:
        """Likelihoods of tokens, and what is to be added to log p of each sentence."""
        table, logs = self.emission.likelihoods(np.asarray(params[TABLE]), shard)
        added = np.zeros(len(shard))
        if logs is not None:
            sums = np.concatenate([np.zeros(1), np.cumsum(logs)])
            added = sums[shard.indptr[1:]] - sums[shard.indptr[:-1]]
        return listed.Emitted(table, shard.rows, shard.sets), added

    def estimate(self, corpus: Sentences) -> Estimate:
        """Tables; likelihoods of words, or of each vector; posteriors of sentences in lanes."""
        shard, K = corpus.everything, self.n_states
        n, entries = shard.n_tokens, sum(map(n_entries, self.families.values()))
        vectors = shard.observed.ndim > 1
        rows = 3.0 * n * K if vectors else 0.0
        squares = 4.0 * n_entries(self.emission.family) / K * n if vectors else 0.0
        return needing(
            len(corpus),
            n,
            4.0 * n * K ** (self.order + 1) + K * squares + 8.0 * entries,
            data=held(corpus),
            tables=COPIES * NUMBER * entries,
            posteriors=NUMBER * (rows + 4.0 * n + min(n, AT_ONCE) * K),
        )

    # the E-step
    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; a sentence of probability zero is an error."""
        moves, (emitted, added) = self.moves(params, how.temper), self.emitted(params, shard)
        heated = emitted
        if how.temper != 1.0:
            heated = emitted._replace(table=emitted.table**how.temper)
        tally = self._filled(shard, moves, heated, how)
        logs = tally.logs
        if how.fill == "hard" or how.temper != 1.0:
            logs = passes.logs(shard, self.moves(params), emitted, self.dtype, how.threads)
        counted = shard.weights > 0.0
        demand_possible(shard.numbers[counted], (logs + tally.logs)[counted], IMPOSSIBLE, REMEDY)
        weights = shard.weights[counted]
        attained = logs if how.fill == "sample" else tally.logs / how.temper
        return Stats(
            {} if how.score_only else self.counts(shard, tally),
            float(weights @ (logs + added)[counted]),
            float(weights @ (attained + added)[counted]),
            float(weights.sum()),
            float(weights @ np.diff(shard.indptr)[counted]),
            uncounted=self._uncounted(params, shard, tally, how),
            magnitude=self.emission.magnitude(np.asarray(params[TABLE]), shard),
        )

    def _uncounted(self, params: Params, shard: Shard, tally: packs.Tally, how: How) -> Uncounted:
        """What new words add to E[log p]."""
        if not how.theory or how.score_only:
            return NOTHING_UNCOUNTED
        against = None if how.against is None else np.asarray(how.against[TABLE])
        shares = tally.shares[:, : self.n_states]
        return uncounted(self.emission, np.asarray(params[TABLE]), against, shard, shares)

    def _filled(
        self, shard: Shard, moves: listed.Moves, emitted: listed.Emitted, how: How
    ) -> packs.Tally:
        """What hidden states add up to, posteriors, best paths or drawn ones."""
        if how.fill == "soft" and not how.score_only:
            return passes.posteriors(shard, moves, emitted, self.dtype, how.threads)
        if how.fill == "hard":
            paths, logs = passes.best(shard, moves, emitted, how.threads)
        elif how.score_only:
            logs = passes.logs(shard, moves, emitted, self.dtype, how.threads)
            paths = np.zeros((0, shard.n_tokens), np.int32)
        else:
            drawn = (how.stream, how.samples, how.threads)
            paths, logs = passes.drawn(shard, moves, emitted, *drawn)
        return passes.counted(shard, moves, emitted, paths, logs)

    def counts(self, shard: Shard, tally: packs.Tally) -> dict[str, Counts]:
        """What a tally says, as the families want it."""
        rows = tally.moves
        if self.stop:
            rows = np.concatenate([rows, tally.stop[:, None]], axis=1)
        n_pairs = len(rows) - self.n_states if self.order == 2 else len(rows)
        found: dict[str, Counts] = {START: tally.start[None], MOVES: rows[:n_pairs]}
        if self.order == 2:
            found[SECOND] = rows[n_pairs:]
        found[TABLE] = self.emission.counts(shard, tally.shares)
        return found

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> CollapsedChain:
        """The sampler with all tables integrated out, states drawn at ``params`` to begin with."""
        if not isinstance(self.emission, Words) or not isinstance(
            self.emission.family, Categorical
        ):
            raise LearnerError(
                "there is no collapsed sampler for such emissions", "use Gibbs(), which takes all"
            )
        (shard,) = shards
        emitted, _ = self.emitted(params, shard)
        (states,), logs = passes.drawn(shard, self.moves(params), emitted, stream, 1, 1)
        demand_possible(shard.numbers, logs, IMPOSSIBLE, REMEDY)
        known = {"sets": shard.sets, "allowed": shard.states.allowed, "weights": shard.weights}
        return CollapsedChain.from_families(
            self.families, shard.observed, shard.indptr, states=states, **known
        )

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every sentence that is not empty has a start."""
        return {START: float(shard.weights[np.diff(shard.indptr) > 0].sum())}

    # parameters from outside
    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the families' shapes."""
        return start_tables(given, self.families)
