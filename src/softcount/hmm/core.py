"""The hidden Markov model as the learning loop uses it: parameter families and E-step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.estimate import COPIES, NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.model import Model, check_possible
from softcount.core.tilting import EXPECTED
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    BoolArray,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
)
from softcount.families import Categorical
from softcount.families.base import Family, start_tables
from softcount.hmm.data import SHARD_TOKENS, SentenceCorpus, SentenceShard, TagConstraints
from softcount.hmm.emissions import EMISSIONS, StateEmission, WordEmission, expect_uncounted
from softcount.hmm.forward_backward import Trellis
from softcount.hmm.gibbs import CollapsedChain, read_priors
from softcount.hmm.kernels import ChainCounts, MarkovChain, TokenEmissions

START, SECOND, TRANSITIONS = "start", "second", "transitions"
IMPOSSIBLE = "has probability zero: no sequence of states could have produced it"
REMEDY = "add smoothing, or look at the tags and the dictionary"
AT_ONCE = 1 << 16
"""Approximate number of tokens whose posteriors are in memory at the same time."""


class HMMCore(Model):
    """A hidden Markov model: p(x, z) = p(z_1) Π p(z_i | z_{i−1}) Π p(x_i | z_i) p(end | z_n).

    Families: "start" (1, K), "transitions" (K, K + 1), whose last outcome is the end, and
    "emissions". At order 2, "transitions" has K² rows, one for each pair of states, and "second"
    (K, K + 1) has the transitions from the first state. With ``stop=False`` the end is not an
    outcome.
    """

    threads_inside = True
    lays_out_draws = True

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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what it is made of: the family of emissions belongs to the emission."""
        chain = {name: family for name, family in self.families.items() if name != EMISSIONS}
        made_of = (chain, self.emission, self.n_states, self.order, self.stop, self.dtype)
        return type(self), (self.name, *made_of)

    # tables in the layout of the compiled loops
    def make_chain(self, params: Params, temper: float = 1.0) -> MarkovChain:
        """Return start, transition and end probabilities, each to the power of ``temper``."""
        names = (TRANSITIONS,) if self.order == 1 else (TRANSITIONS, SECOND)
        rows = np.concatenate([np.asarray(params[name]) for name in names]) ** temper
        stop = rows[:, -1] if self.stop else np.ones(len(rows))
        start = np.asarray(params[START]).reshape(-1) ** temper
        transitions = np.ascontiguousarray(rows[:, : self.n_states])
        return MarkovChain(start, transitions, np.ascontiguousarray(stop), self.order)

    def make_trellis(self, params: Params, shard: SentenceShard, threads: int = 1) -> Trellis:
        """Make the trellis: all state paths through a shard's sentences, with probabilities."""
        table, logs = self.emission.likelihoods(np.asarray(params[EMISSIONS]), shard)
        offsets = np.zeros(len(shard))
        if logs is not None:
            sums = np.concatenate([np.zeros(1), np.cumsum(logs)])
            offsets = sums[shard.indptr[1:]] - sums[shard.indptr[:-1]]
        emissions = TokenEmissions(table, shard.rows, shard.sets)
        return Trellis(shard, self.make_chain(params), emissions, offsets, self.dtype, threads)

    # predictions, which `softcount.core.estimator.Estimator._map` computes for each shard: states,
    # and log p of each sentence, (sentences,), which is −inf if it is impossible
    def best_paths(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the most probable state sequences, (tokens,)."""
        (path,), logs = self.make_trellis(params, shard, how.threads).find_best_paths()
        return path, logs

    def best_states(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the most probable state of each token, (tokens,)."""
        posteriors, logs = self.posteriors(params, shard, how)
        return posteriors.argmax(axis=1), logs

    def posteriors(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the posterior of each token's state, (tokens, states)."""
        counts = self.make_trellis(params, shard, how.threads).expect(per_token=True)
        return counts.posteriors, counts.log_likelihoods

    def draw_paths(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Draw state sequences from the posterior, (samples, tokens)."""
        return self.make_trellis(params, shard, how.threads).draw_paths(how.stream, how.samples)

    def log_likelihoods(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Return log p of each sentence."""
        trellis = self.make_trellis(params, shard, how.threads)
        return trellis.log_likelihoods() + trellis.offsets

    # step by step
    def lay_out(
        self, params: Params, shard: SentenceShard, how: EStep, local: Any = None
    ) -> PosteriorRows:
        """Return γ_i(k), the posterior of each token's state; or the best path, or one drawn."""
        trellis = self.make_trellis(params, shard, how.threads)
        if how.temper != 1.0:
            emissions = trellis.emissions._replace(table=trellis.emissions.table**how.temper)
            chain = self.make_chain(params, how.temper)
            trellis = replace(trellis, chain=chain, emissions=emissions)
        if how.fill != "soft":
            (path,), logs = (
                trellis.find_best_paths() if how.fill == "hard" else trellis.draw_paths(how.stream)
            )
            gamma = np.zeros((shard.n_tokens, self.n_states))
            gamma[np.arange(len(path)), path] = 1.0
        else:
            counts = trellis.expect(per_token=True)
            gamma, logs = counts.posteriors.astype(float), counts.log_likelihoods
        check_possible(shard.numbers, logs, IMPOSSIBLE, REMEDY)
        lengths = np.diff(shard.indptr)
        begins = np.repeat(shard.indptr[:-1], lengths)
        keys = {"position": np.arange(shard.n_tokens) - begins}
        if shard.observed.ndim == 1:
            keys["word"] = shard.observed.astype(np.int64)
        return PosteriorRows(gamma[:, : self.n_states], np.repeat(shard.numbers, lengths), keys)

    # interface of the learning loop
    def estimate(self, corpus: SentenceCorpus) -> Estimate:
        """Estimate the memory of all arrays, and the floating-point operations of an E-step."""
        shard, K = corpus.everything, self.n_states
        n, entries = shard.n_tokens, sum(map(n_entries, self.families.values()))
        vectors = shard.observed.ndim > 1
        rows = 3.0 * min(n, SHARD_TOKENS) * K if vectors else 0.0
        squares = 4.0 * n_entries(self.emission.family) / K * n if vectors else 0.0
        return make_estimate(
            len(corpus),
            n,
            4.0 * n * K ** (self.order + 1) + K * squares + 8.0 * entries,
            data=count_bytes(corpus),
            tables=COPIES * NUMBER * entries,
            posteriors=NUMBER * (rows + 4.0 * n + min(n, AT_ONCE) * K),
        )

    def expect(self, params: Params, shard: SentenceShard, how: EStep, local: Any = None) -> Stats:
        """Run the E-step on a shard; a sentence of probability zero is an error."""
        trellis = heated = self.make_trellis(params, shard, how.threads)
        if how.temper != 1.0:
            table = trellis.emissions.table**how.temper
            emissions = trellis.emissions._replace(table=table)
            chain = self.make_chain(params, how.temper)
            heated = replace(trellis, chain=chain, emissions=emissions)
        if how.tilt is not None:
            return self._expect_tilted(params, shard, how, trellis)
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
        check_possible(shard.numbers[counted], (logs + attained)[counted], IMPOSSIBLE, REMEDY)
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

    def _expect_tilted(
        self, params: Params, shard: SentenceShard, how: EStep, trellis: Trellis
    ) -> Stats:
        """Run the soft E-step with weights on the states of tokens."""
        assert how.tilt is not None
        allowed = shard.states.allowed[shard.sets] if shard.sets.any() else True
        weights, peaks = how.tilt.weights(shard.numbers, allowed)
        counts = replace(trellis, weights=weights).expect()
        scores, logs = counts.log_likelihoods, counts.log_likelihoods
        if not how.score_only:
            logs = trellis.log_likelihoods()
        counted = shard.weights > 0.0
        check_possible(shard.numbers[counted], (logs + scores)[counted], IMPOSSIBLE, REMEDY)
        of_tokens, own = counts.posteriors, shard.weights[counted]
        found: dict[str, Counts] = {EXPECTED: how.tilt.expect(shard.numbers, of_tokens)}
        if not how.score_only:
            n, n_rows = len(of_tokens), len(trellis.emissions.table)
            in_rows = csr_matrix((np.ones(n), shard.rows, np.arange(n + 1)), (n, n_rows))
            posteriors = np.asarray(in_rows.T @ of_tokens)
            found |= self.arrange_counts(shard, counts._replace(posteriors=posteriors))
        return Stats(
            found,
            float(own @ (logs + trellis.offsets)[counted]),
            float(own @ (scores + trellis.offsets)[counted]) + float(shard.token_weights @ peaks),
            float(shard.weights.sum()),
            float(own @ np.diff(shard.indptr)[counted]),
            magnitude=self.emission.magnitude(np.asarray(params[EMISSIONS]), shard),
        )

    def arrange_counts(self, shard: SentenceShard, counts: ChainCounts) -> dict[str, Counts]:
        """Arrange expected counts by family, in the families' shapes."""
        rows = counts.transitions
        if self.stop:
            rows = np.concatenate([rows, counts.stop[:, None]], axis=1)
        n_pairs = len(rows) - self.n_states if self.order == 2 else len(rows)
        arranged: dict[str, Counts] = {START: counts.start[None], TRANSITIONS: rows[:n_pairs]}
        if self.order == 2:
            arranged[SECOND] = rows[n_pairs:]
        arranged[EMISSIONS] = self.emission.counts(shard, counts.posteriors)
        return arranged

    def collapse(
        self, shards: Sequence[SentenceShard], params: Params, stream: int
    ) -> CollapsedChain:
        """Make the collapsed sampler, starting from states drawn given ``params``."""
        plain = isinstance(self.emission, WordEmission)
        if not plain or not isinstance(self.emission.family, Categorical):
            raise LearnerError(
                "collapsed sampling needs emissions='table'", "use Gibbs(), which takes any"
            )
        shard = SentenceShard.concatenate(shards)
        if np.any(shard.weights != 1.0):
            raise LearnerError(
                "collapsed sampling does not support sample_weight: every sentence counts once",
                "use Gibbs(), or omit the weights",
            )
        priors = read_priors(self.families)
        (states,), logs = self.make_trellis(params, shard).draw_paths(stream)
        check_possible(shard.numbers, logs, IMPOSSIBLE, REMEDY)
        allowed = shard.states.allowed
        return CollapsedChain(priors, shard.observed, shard.indptr, states, shard.sets, allowed)

    def totals(self, shard: SentenceShard) -> dict[str, float]:
        """Return known totals of counts: every non-empty sentence has one start."""
        return {START: float(shard.weights[np.diff(shard.indptr) > 0].sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Return initial parameters as arrays of the families' shapes."""
        return start_tables(given, self.families)


TABLES = (START, SECOND, TRANSITIONS, EMISSIONS)
ROWS = "give names of states (pairs of names at order 2), row indices, or one boolean per row"
MOST_TRANSITIONS = 1 << 28
"""Maximum number of entries in a table of transitions: 2 GB."""
LONG = 200
"""Number of positions of a sentence that `compute_occupancy` sums over."""


@dataclass(frozen=True)
class TableConstraints:
    """Constraints on tables: structural zeros, frozen rows, tied rows.

    ``zero``    table → mask of the entries fixed at zero
    ``frozen``  table → rows kept at their initial values, or True: all
    ``tied``    table → a group number for each row: rows of one group share their parameters
    ``tags``    the names of states
    """

    zero: Mapping[str, Any]
    frozen: Mapping[str, Any]
    tied: Mapping[str, Any]
    tags: TagConstraints

    @classmethod
    def read(cls, zero: Any, frozen: Any, tied: Any, tags: TagConstraints) -> TableConstraints:
        """Read the user's settings; ``frozen`` may also be a name or names of tables."""
        if isinstance(frozen, str):
            frozen = [frozen]
        if isinstance(frozen, Collection) and not isinstance(frozen, Mapping):
            frozen = dict.fromkeys(frozen, True)
        for title, setting in (("zero", zero), ("frozen", frozen), ("tied", tied)):
            if setting is not None and not isinstance(setting, Mapping):
                raise LearnerError(
                    f"{title}={brief(setting)} is not a mapping",
                    "give a mapping from tables to rows",
                )
            unknown = set(setting or ()) - set(TABLES)
            if unknown:
                raise LearnerError(
                    f"{title} names an unknown table {brief(sorted(unknown)[0])}",
                    f"tables are {', '.join(TABLES)}",
                )
        return cls(zero or {}, frozen or {}, tied or {}, tags)

    def check_unconstrained(self, name: str, what: str) -> None:
        """Raise if there are constraints on a table that does not support any."""
        if name in {*self.zero, *self.frozen, *self.tied}:
            raise LearnerError(
                f"{what} cannot be constrained", f"omit {name} from zero, frozen and tied"
            )

    def make_family(self, name: str, shape: tuple[int, int], prior: float) -> Categorical:
        """Make the family of a table, with its constraints."""
        zero = self.zero.get(name)
        mask = None if zero is None else ~_read_mask(f"zero[{name!r}]", zero, shape)
        held = self.find_frozen(name, shape[0]) if name in self.frozen else None
        return Categorical(shape, prior, mask, held, self.tied.get(name))

    def find_frozen(self, name: str, n_rows: int) -> BoolArray:
        """Return the mask of the frozen rows of a table, (rows,)."""
        setting, title = self.frozen.get(name, False), f"frozen[{name!r}]"
        if isinstance(setting, bool):
            return np.full(n_rows, setting)
        if not isinstance(setting, Iterable):
            raise LearnerError(f"{title}={brief(setting)} does not name rows", ROWS)
        entries = [setting] if isinstance(setting, str) else list(setting)
        if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
            return _read_mask(title, entries, (n_rows,))
        rows = [self._find_row(title, entry, n_rows) for entry in entries]
        if len(set(rows)) < len(rows):  # most likely a mask of ones and zeros, not indices
            raise LearnerError(f"{title}={brief(setting)} has a row twice", ROWS)
        return np.isin(np.arange(n_rows), rows)

    def _find_row(self, title: str, given: Any, n_rows: int) -> int:
        """Return the index of a row, given its index or its state (at order 2, pair of states)."""
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


def _read_mask(title: str, given: Any, shape: tuple[int, ...]) -> BoolArray:
    """Read a boolean array of a given shape."""
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0)  # ragged
    if values.shape != shape or values.dtype.kind not in "bui":
        raise LearnerError(
            f"{title} is not a boolean array of shape {shape}", f"give booleans of shape {shape}"
        )
    return values.astype(np.bool_)


def check_n_states(n_states: int, order: int) -> None:
    """Raise if the table of transitions would be too large for memory."""
    if n_states ** (order + 1) > MOST_TRANSITIONS:
        most = int((MOST_TRANSITIONS + 0.5) ** (1.0 / (order + 1)))
        raise LearnerError(
            f"{n_states:,} states at order {order} have too many transitions",
            f"use at most {most:,} states",
        )


def make_chain_families(
    constraints: TableConstraints, n_states: int, order: int, stop: bool, prior: float
) -> dict[str, Categorical]:
    """Make the families of starts and transitions."""
    check_n_states(n_states, order)
    fixed = {*constraints.zero, *constraints.frozen, *constraints.tied}
    if order == 1 and SECOND in fixed:
        raise LearnerError(f"there is no table {SECOND!r} at order 1", "omit it, or set order=2")
    outcomes = n_states + stop
    families = {START: constraints.make_family(START, (1, n_states), prior)}
    if order == 2:
        families[SECOND] = constraints.make_family(SECOND, (n_states, outcomes), prior)
    rows = n_states**order
    families[TRANSITIONS] = constraints.make_family(TRANSITIONS, (rows, outcomes), prior)
    return families


def compute_occupancy(params: Params, n_states: int, order: int) -> FloatArray:
    """Compute the expected proportion of each state among generated tokens, (states,)."""
    start = np.asarray(params[START]).reshape(-1)
    rows = np.asarray(params[TRANSITIONS])[:, :n_states]
    transitions = rows.reshape(*[n_states] * order, n_states)
    expected = start.copy()
    here = start if order == 1 else start[:, None] * np.asarray(params[SECOND])[:, :n_states]
    for _ in range(LONG):
        if order == 1:
            here = here @ transitions
            expected += here
        else:
            expected += here.sum(axis=0)
            here = np.einsum("tu,tuv->uv", here, transitions)
    proportions: FloatArray = expected / expected.sum()
    return proportions
