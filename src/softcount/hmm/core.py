"""The hidden Markov model as the learning loop sees it: families of distributions and E-step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.core.model import Model, demand_possible
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    BoolArray,
    Counts,
    EStep,
    FloatArray,
    Params,
    Stats,
)
from softcount.families import Categorical
from softcount.families.base import Family, start_tables
from softcount.hmm.data import SentenceCorpus, SentenceShard, TagConstraints
from softcount.hmm.emissions import EMISSIONS, StateEmission, WordEmission, expect_uncounted
from softcount.hmm.forward_backward import Trellis
from softcount.hmm.gibbs import CollapsedChain, read_priors
from softcount.hmm.kernels import ChainCounts, MarkovChain, TokenEmissions

START, SECOND, TRANSITIONS = "start", "second", "transitions"
IMPOSSIBLE = "cannot come about: no sequence of states could have produced it"
REMEDY = "add smoothing, or look at the tags and the dictionary"
AT_ONCE = 1 << 16
"""About how many tokens have their posteriors in memory at the same time."""


class HMMCore(Model):
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
        emission: StateEmission,
        n_states: int,
        order: int = 1,
        stop: bool = True,
        dtype: str = "float64",
    ) -> None:
        self.name, self.emission = name, emission
        self.n_states, self.order, self.stop = n_states, order, stop
        self.dtype = np.dtype(dtype)
        self.families: dict[str, Family] = {**chain, EMISSIONS: emission.family}

    # tables as compiled loops want them
    def make_chain(self, params: Params, temper: float = 1.0) -> MarkovChain:
        """Start, transitions and ends, each to the power of ``temper``."""
        names = (TRANSITIONS,) if self.order == 1 else (TRANSITIONS, SECOND)
        rows = np.concatenate([np.asarray(params[name]) for name in names]) ** temper
        stop = rows[:, -1] if self.stop else np.ones(len(rows))
        start = np.asarray(params[START]).reshape(-1) ** temper
        transitions = np.ascontiguousarray(rows[:, : self.n_states])
        return MarkovChain(start, transitions, np.ascontiguousarray(stop), self.order)

    def make_trellis(self, params: Params, shard: SentenceShard, threads: int = 1) -> Trellis:
        """All paths of states through the sentences of a shard, with their probabilities."""
        table, logs = self.emission.likelihoods(np.asarray(params[EMISSIONS]), shard)
        offsets = np.zeros(len(shard))
        if logs is not None:
            sums = np.concatenate([np.zeros(1), np.cumsum(logs)])
            offsets = sums[shard.indptr[1:]] - sums[shard.indptr[:-1]]
        emissions = TokenEmissions(table, shard.rows, shard.sets)
        return Trellis(shard, self.make_chain(params), emissions, offsets, self.dtype, threads)

    # what the loop asks
    def estimate(self, corpus: SentenceCorpus) -> Estimate:
        """Memory of tables, likelihoods and posteriors; floating-point operations of an E-step."""
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

    def expect(self, params: Params, shard: SentenceShard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; a sentence of probability zero is an error."""
        trellis = heated = self.make_trellis(params, shard, how.threads)
        if how.temper != 1.0:
            table = trellis.emissions.table**how.temper
            emissions = trellis.emissions._replace(table=table)
            chain = self.make_chain(params, how.temper)
            heated = replace(trellis, chain=chain, emissions=emissions)
        if how.score_only and how.fill != "hard":
            logs = attained = heated.log_likelihoods()
        else:
            if how.fill == "soft":
                counts = heated.expect()
            elif how.fill == "hard":
                counts = heated.count_paths(*heated.find_best_paths())
            else:
                counts = heated.count_paths(*heated.draw_paths(how.stream, how.samples))
            logs = attained = counts.log_likelihoods
        if how.fill == "hard" or how.temper != 1.0:
            logs = trellis.log_likelihoods()
        counted = shard.weights > 0.0
        demand_possible(shard.numbers[counted], (logs + attained)[counted], IMPOSSIBLE, REMEDY)
        weights, offsets = shard.weights[counted], trellis.offsets
        attained = logs if how.fill == "sample" else attained / how.temper
        uncounted = NOTHING_UNCOUNTED
        if how.theory and not how.score_only:
            against = None if how.against is None else np.asarray(how.against[EMISSIONS])
            posteriors, here = counts.posteriors[:, : self.n_states], np.asarray(params[EMISSIONS])
            uncounted = expect_uncounted(self.emission, here, against, shard, posteriors)
        return Stats(
            {} if how.score_only else self.arrange_counts(shard, counts),
            float(weights @ (logs + offsets)[counted]),
            float(weights @ (attained + offsets)[counted]),
            float(weights.sum()),
            float(weights @ np.diff(shard.indptr)[counted]),
            uncounted=uncounted,
            magnitude=self.emission.magnitude(np.asarray(params[EMISSIONS]), shard),
        )

    def arrange_counts(self, shard: SentenceShard, counts: ChainCounts) -> dict[str, Counts]:
        """Expected counts by family, in the shapes that the families take."""
        rows = counts.transitions
        if self.stop:
            rows = np.concatenate([rows, counts.stop[:, None]], axis=1)
        n_pairs = len(rows) - self.n_states if self.order == 2 else len(rows)
        found: dict[str, Counts] = {START: counts.start[None], TRANSITIONS: rows[:n_pairs]}
        if self.order == 2:
            found[SECOND] = rows[n_pairs:]
        found[EMISSIONS] = self.emission.counts(shard, counts.posteriors)
        return found

    def collapse(
        self, shards: Sequence[SentenceShard], params: Params, stream: int
    ) -> CollapsedChain:
        """The collapsed sampler, which starts from states drawn given ``params``."""
        plain = isinstance(self.emission, WordEmission)
        if not plain or not isinstance(self.emission.family, Categorical):
            raise LearnerError(
                "there is no collapsed sampler for such emissions", "use Gibbs(), which takes all"
            )
        (shard,) = shards
        if np.any(shard.weights != 1.0):
            raise LearnerError(
                "a collapsed sampler takes every sentence once: there can be no weights",
                "use Gibbs(), or leave the weights out",
            )
        priors = read_priors(self.families)
        (states,), logs = self.make_trellis(params, shard).draw_paths(stream)
        demand_possible(shard.numbers, logs, IMPOSSIBLE, REMEDY)
        allowed = shard.states.allowed
        return CollapsedChain(priors, shard.observed, shard.indptr, states, shard.sets, allowed)

    def totals(self, shard: SentenceShard) -> dict[str, float]:
        """Every sentence that is not empty has a start."""
        return {START: float(shard.weights[np.diff(shard.indptr) > 0].sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the families' shapes."""
        return start_tables(given, self.families)


TABLES = (START, SECOND, TRANSITIONS, EMISSIONS)
ROWS = "give names of states (of order 2, pairs of them), numbers of rows, or a truth value a row"
MOST_TRANSITIONS = 1 << 28
"""Maximum number of entries in a table of transitions: 2 GB."""
LONG = 200
"""`compute_occupancy` stops after so many tokens of a sentence."""


@dataclass(frozen=True)
class TableConstraints:
    """Constraints on tables: structural zeros, frozen rows, tied rows.

    ``zero``    table → where its entries are zero
    ``frozen``  table → which rows stay as they begin, or True: all
    ``tied``    table → a number for each row: rows of the same number are one
    ``tags``    the names of states
    """

    zero: Mapping[str, Any]
    frozen: Mapping[str, Any]
    tied: Mapping[str, Any]
    tags: TagConstraints

    @classmethod
    def read(cls, zero: Any, frozen: Any, tied: Any, tags: TagConstraints) -> TableConstraints:
        """Read the settings as users give them; ``frozen`` may also be names of tables."""
        if isinstance(frozen, str):
            frozen = [frozen]
        if isinstance(frozen, Collection) and not isinstance(frozen, Mapping):
            frozen = dict.fromkeys(frozen, True)
        for title, some in (("zero", zero), ("frozen", frozen), ("tied", tied)):
            if some is not None and not isinstance(some, Mapping):
                raise LearnerError(f"{title}={brief(some)}", "give a mapping from tables to rows")
            strange = set(some or ()) - set(TABLES)
            if strange:
                raise LearnerError(
                    f"{title} speaks of a table {brief(sorted(strange)[0])}",
                    f"tables are {', '.join(TABLES)}",
                )
        return cls(zero or {}, frozen or {}, tied or {}, tags)

    def check_unconstrained(self, name: str, what: str) -> None:
        """Raise if there are constraints on a table that cannot have any."""
        if name in {*self.zero, *self.frozen, *self.tied}:
            raise LearnerError(f"{what} cannot be fixed", f"leave out {name}")

    def make_family(self, name: str, shape: tuple[int, int], prior: float) -> Categorical:
        """Make the family of a table, with its constraints."""
        zero = self.zero.get(name)
        mask = None if zero is None else ~_read_truths(f"zero[{name!r}]", zero, shape)
        held = self.find_frozen(name, shape[0]) if name in self.frozen else None
        return Categorical(shape, prior, mask, held, self.tied.get(name))

    def find_frozen(self, name: str, n_rows: int) -> BoolArray:
        """Which rows of a table are frozen, (rows,)."""
        given, title = self.frozen.get(name, False), f"frozen[{name!r}]"
        if isinstance(given, bool):
            return np.full(n_rows, given)
        if not isinstance(given, Iterable):
            raise LearnerError(f"{title}={brief(given)}", ROWS)
        each = [given] if isinstance(given, str) else list(given)
        if each and all(isinstance(one, bool | np.bool_) for one in each):
            return _read_truths(title, each, (n_rows,))
        rows = [self._find_row(title, one, n_rows) for one in each]
        if len(set(rows)) < len(rows):  # ones and noughts, most likely
            raise LearnerError(f"{title}={brief(given)} has a row twice", ROWS)
        return np.isin(np.arange(n_rows), rows)

    def _find_row(self, title: str, given: Any, n_rows: int) -> int:
        """The number of a row, by its number, or by the state (of order 2, the two) before it."""
        k, row, names = self.tags.n_states, 0, []
        if isinstance(given, int | np.integer) and 0 <= given < n_rows:
            return int(given)
        if isinstance(given, str) and n_rows == k:
            names = [given]
        elif isinstance(given, tuple | list) and len(given) == 2 and n_rows == k * k:
            names = list(given)
        if not names:
            raise LearnerError(f"{title} has {brief(given)}: there is no such row", ROWS)
        for name in names:
            try:
                row = k * row + self.tags.state(name)
            except DataError as error:
                raise LearnerError(f"{title} has {brief(name)}: {error.message}", ROWS) from None
        return row


def _read_truths(title: str, given: Any, shape: tuple[int, ...]) -> BoolArray:
    """Read an array of truth values of a given shape."""
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0)  # ragged
    if values.shape != shape or values.dtype.kind not in "bui":
        raise LearnerError(f"{title} has not the shape {shape}", "give truth values")
    return values.astype(np.bool_)


def check_n_states(n_states: int, order: int) -> None:
    """Raise if the table of transitions would be too large for memory."""
    if n_states ** (order + 1) > MOST_TRANSITIONS:
        most = int((MOST_TRANSITIONS + 0.5) ** (1.0 / (order + 1)))
        raise LearnerError(
            f"{n_states:,} states of order {order} have too many transitions",
            f"use {most:,} states at most",
        )


def make_chain_families(
    constraints: TableConstraints, n_states: int, order: int, stop: bool, prior: float
) -> dict[str, Categorical]:
    """Make the families of starts and transitions."""
    check_n_states(n_states, order)
    fixed = {*constraints.zero, *constraints.frozen, *constraints.tied}
    if order == 1 and SECOND in fixed:
        raise LearnerError(f"there is no table {SECOND!r} of order 1", "leave it out, or order=2")
    outcomes = n_states + stop
    families = {START: constraints.make_family(START, (1, n_states), prior)}
    if order == 2:
        families[SECOND] = constraints.make_family(SECOND, (n_states, outcomes), prior)
    rows = n_states**order
    families[TRANSITIONS] = constraints.make_family(TRANSITIONS, (rows, outcomes), prior)
    return families


def compute_occupancy(params: Params, n_states: int, order: int) -> FloatArray:
    """Expected share of each state among the tokens of generated sentences, (states,)."""
    start = np.asarray(params[START]).reshape(-1)
    rows = np.asarray(params[TRANSITIONS])[:, :n_states]
    transitions = rows.reshape(*[n_states] * order, n_states)
    share = start.copy()
    here = start if order == 1 else start[:, None] * np.asarray(params[SECOND])[:, :n_states]
    for _ in range(LONG):
        if order == 1:
            here = here @ transitions
            share += here
        else:
            share += here.sum(axis=0)
            here = np.einsum("tu,tuv->uv", here, transitions)
    total: FloatArray = share / share.sum()
    return total
