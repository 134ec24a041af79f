"""The E-step of hidden Markov models, their families, and what a state emits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix, kron
from scipy.sparse import identity as unit
from scipy.special import xlogy

from softcount.corpus.looks import endings, marks
from softcount.errors import DataError, LearnerError, shown
from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families import Categorical, LogLinear
from softcount.families.base import Family
from softcount.families.rows import log_softmax
from softcount.hmm import forward_backward as passes
from softcount.hmm.data import Sentences, Shard, TagKnowledge
from softcount.hmm.gibbs import CollapsedChain
from softcount.hmm.kernels import lists as listed
from softcount.hmm.kernels import packs
from softcount.hmm.kernels.packs import width
from softcount.models.possible import demand_possible
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


# What states emit: words, by a table or by features of words.


TABLE = "emissions"
UNSEEN = 1e-9
"""p(word | state) of words that were never seen, if the model says nothing else of them."""


class Emitting(Protocol):
    """p(token | state)."""

    @property
    def family(self) -> Family:
        """The distributions."""

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        """Rows of p(token | state), padded, and logs to be added (None: zero)."""

    def logs(self, params: Array, shard: Shard) -> Array:
        """log p(token | state), (tokens, states); −inf only for what is truly impossible."""

    def counts(self, shard: Shard, shares: Array) -> Array:
        """Sufficient statistics of the sums of posteriors of each row."""

    def magnitude(self, params: Array, shard: Shard) -> float:
        """As of `softcount.types.Stats`."""


class Words:
    """A word is a number; row w of the likelihoods is p(w | state), new words come last.

    ``unseen``  p(unseen word | state); None: alike in all states
    """

    def __init__(self, family: Categorical | LogLinear, shape: tuple[int, int]) -> None:
        self.family, self.shape = family, shape
        self.unseen: Array | None = None

    def table(self, params: Array) -> Array:
        """p(word | state), (states, words)."""
        if isinstance(self.family, LogLinear):
            return self.family.table(params).reshape(self.shape)
        return params

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        n_states, n_words = self.shape
        rows = np.zeros((n_words + len(shard.new_words), width(n_states)))
        rows[:n_words, :n_states] = self.table(params).T
        rows[n_words:, :n_states] = UNSEEN if self.unseen is None else self.unseen
        return rows, None

    def logs(self, params: Array, shard: Shard) -> Array:
        rows, _ = self.likelihoods(params, shard)
        with np.errstate(divide="ignore"):
            logs: Array = np.log(rows[shard.rows, : self.shape[0]])
        return logs

    def counts(self, shard: Shard, shares: Array) -> Array:
        by_state = np.ascontiguousarray(shares[: self.shape[1]].T)
        return by_state.reshape(-1) if isinstance(self.family, LogLinear) else by_state

    def magnitude(self, params: Array, shard: Shard) -> float:
        """All terms are logarithms of chances, of one sign."""
        return 0.0


def uncounted(
    emission: Emitting, params: Array, against: Array | None, shard: Shard, shares: Array
) -> Uncounted:
    """What words that are not in the table add to E[log p]: the family does not count them.

    ``shares``  the sums of posteriors of each row of the likelihoods
    """
    new = len(shard.new_words)
    if not new:
        return NOTHING_UNCOUNTED

    def expected(table: Array) -> float:
        rows, _ = emission.likelihoods(table, shard)
        return float(xlogy(shares[-new:], rows[-new:, : shares.shape[1]]).sum())

    here = expected(params)
    return Uncounted(here, here if against is None else expected(against))


def unseen_words(table: Array, share: Array, often: Array) -> Array | None:
    """p(unseen word | state): words seen once speak for those never seen; None if there are none.

    p(unseen | k) = n₁/n p(k | seen once) / p(k): the share of words seen once is what unseen ones
    may expect (Good 1953), dealt out to states as these words are.

    ``table``  p(word | state), (states, words)
    ``share``  of each state among tokens
    ``often``  how often each word was seen
    """
    once = np.flatnonzero(often == 1)
    if not len(once):
        return None
    joint = table[:, once] * share[:, None]
    joint /= np.maximum(joint.sum(axis=0), 1e-300)
    of_state = (joint.sum(axis=1) + 1.0 / len(share)) / (len(once) + 1.0)
    n = float(often.sum())
    unseen: Array = np.minimum(len(once) / n * of_state / np.maximum(share, 1.0 / n), 1.0)
    return unseen


# Features of words: what a word looks like says something of its state, seen or not.


def features_of(word: str) -> Iterator[str]:
    """What a word looks like.

    >>> sorted(features_of("Re-elected2"))
    ['-', '-2', '-d2', '-ed2', '0', 'A']
    """
    yield from (f"-{ending}" for ending in endings(word))
    yield from marks(word)


class WordFeatures:
    """The features of a vocabulary: what words look like, and each word that came twice itself.

    A word that came once has no feature of its own: what it looks like must explain it, as it must
    explain words that never came.
    """

    def __init__(self, words: Sequence[str], often: Array) -> None:
        named = [list(features_of(word)) for word in words]
        names = sorted({name for some in named for name in some})
        self._numbers = {name: number for number, name in enumerate(names)}
        again = np.flatnonzero(often > 1)
        self.n_features = len(names) + len(again)
        own = {int(w): len(names) + n for n, w in enumerate(again)}
        columns = [
            [self._numbers[name] for name in some] + ([own[w]] if w in own else [])
            for w, some in enumerate(named)
        ]
        self.of_words = self._matrix(columns)

    def of_new(self, words: Sequence[str]) -> csr_matrix:
        """The features of words that are not in the vocabulary, as far as it has them."""
        numbers = self._numbers
        named = [[numbers[name] for name in features_of(w) if name in numbers] for w in words]
        return self._matrix(named)

    def _matrix(self, columns: Sequence[Sequence[int]]) -> csr_matrix:
        indptr = np.concatenate([[0], np.cumsum([len(some) for some in columns], dtype=np.int64)])
        indices = np.array([column for some in columns for column in some], dtype=np.int64)
        shape = (len(columns), self.n_features)
        return csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


class FeatureWords(Words):
    """p(w | k) ∝ exp(v_k · f(w)): every state has a weight for each feature.

    Berg-Kirkpatrick et al. (2010). A word that never came has the same form, by its features.
    """

    def __init__(self, features: WordFeatures, n_states: int, n_words: int, l2: float) -> None:
        self.features = features
        every = kron(unit(n_states, format="csr"), features.of_words, format="csr")
        borders = np.arange(n_states + 1) * n_words
        super().__init__(LogLinear(borders, every, l2), (n_states, n_words))

    def likelihoods(self, params: Array, shard: Shard) -> tuple[Array, Array | None]:
        n_states, n_words = self.shape
        rows, logs = super().likelihoods(params, shard)
        if shard.new_words:
            rows[n_words:, :n_states] = self._new(params, shard.new_words)
        return rows, logs

    def _new(self, params: Array, words: Sequence[str]) -> Array:
        """p(word | state) of new words, (words, states)."""
        family = self.family
        assert isinstance(family, LogLinear)
        weights = family.weights(params).reshape(self.shape[0], -1)
        scores = (self.features.of_words @ weights.T).T.reshape(-1)
        norms = (scores - log_softmax(scores, family.indptr)).reshape(self.shape)[:, 0]
        chances: Array = np.exp(self.features.of_new(words) @ weights.T - norms)
        return np.minimum(chances, 1.0)


# The families of hidden Markov models, with what is known of their rows.


NAMES = (START, SECOND, MOVES, TABLE)
ROWS = "give names of states (of order 2, pairs of them), numbers of rows, or a truth value a row"
LONG = 200
"""Sentences are not looked at beyond so many tokens."""


@dataclass(frozen=True)
class Rows:
    """Which entries are zero for good, which rows stay as they are, which are one.

    ``zero``    table → where its entries are zero
    ``frozen``  names of tables that stay as they begin; or table → which rows
    ``tied``    table → a number for each row: rows of the same number are one
    ``known``   the names of states
    """

    zero: Mapping[str, Any]
    frozen: Mapping[str, Any]
    tied: Mapping[str, Any]
    known: TagKnowledge

    @classmethod
    def given(cls, zero: Any, frozen: Any, tied: Any, known: TagKnowledge) -> Rows:
        if isinstance(frozen, str):
            frozen = [frozen]
        if isinstance(frozen, Collection) and not isinstance(frozen, Mapping):
            frozen = dict.fromkeys(frozen, True)
        for title, some in (("zero", zero), ("frozen", frozen), ("tied", tied)):
            if some is not None and not isinstance(some, Mapping):
                raise LearnerError(f"{title}={shown(some)}", "give a mapping from tables to rows")
            strange = set(some or ()) - set(NAMES)
            if strange:
                raise LearnerError(
                    f"{title} speaks of a table {shown(sorted(strange)[0])}",
                    f"tables are {', '.join(NAMES)}",
                )
        return cls(zero or {}, frozen or {}, tied or {}, known)

    def demand_nothing_of(self, name: str, what: str) -> None:
        """Complain if something is said of a table that learns in another way."""
        if name in {*self.zero, *self.frozen, *self.tied}:
            raise LearnerError(f"{what} cannot be fixed", f"leave out {name}")

    def table(self, name: str, shape: tuple[int, int], prior: float) -> Categorical:
        """A family."""
        zero = self.zero.get(name)
        mask = None if zero is None else ~_truths(f"zero[{name!r}]", zero, shape)
        held = self.held(name, shape[0]) if name in self.frozen else None
        return Categorical(shape, prior, mask, held, self.tied.get(name))

    def held(self, name: str, n_rows: int) -> Array:
        """Whether each row of a table stays as it begins."""
        given, title = self.frozen.get(name, False), f"frozen[{name!r}]"
        if isinstance(given, bool):
            return np.full(n_rows, given)
        if not isinstance(given, Iterable):
            raise LearnerError(f"{title}={shown(given)}", ROWS)
        each = [given] if isinstance(given, str) else list(given)
        if each and all(isinstance(one, bool | np.bool_) for one in each):
            return _truths(title, each, (n_rows,))
        rows = [self._row(title, one, n_rows) for one in each]
        if len(set(rows)) < len(rows):  # ones and noughts, most likely
            raise LearnerError(f"{title}={shown(given)} has a row twice", ROWS)
        return np.isin(np.arange(n_rows), rows)

    def _row(self, title: str, given: Any, n_rows: int) -> int:
        """The number of a row, by its number, or by the state (of order 2, the two) before it."""
        k = self.known.n_states
        if isinstance(given, int | np.integer) and 0 <= given < n_rows:
            return int(given)
        if isinstance(given, str) and n_rows == k:
            return self._state(title, given)
        pair = isinstance(given, tuple | list) and len(given) == 2
        if pair and n_rows == k * k:
            first, second = (self._state(title, state) for state in given)
            return first * k + second
        raise LearnerError(f"{title} has {shown(given)}: there is no such row", ROWS)

    def _state(self, title: str, given: Any) -> int:
        try:
            return self.known.state(given)
        except DataError as error:
            raise LearnerError(f"{title} has {shown(given)}: {error.message}", ROWS) from None


def _truths(title: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Truth values of a shape, if they are."""
    try:
        values = np.asarray(given)
    except ValueError:
        values = np.empty(0)  # ragged
    if values.shape != shape or values.dtype.kind not in "bui":
        raise LearnerError(f"{title} has not the shape {shape}", "give truth values")
    return values.astype(np.bool_)


def chain_families(
    rows: Rows, n_states: int, order: int, stop: bool, prior: float
) -> dict[str, Categorical]:
    """Start and moves."""
    if order == 1 and SECOND in {*rows.zero, *rows.frozen, *rows.tied}:
        raise LearnerError(f"there is no table {SECOND!r} of order 1", "leave it out, or order=2")
    outcomes = n_states + stop
    families = {START: rows.table(START, (1, n_states), prior)}
    if order == 2:
        families[SECOND] = rows.table(SECOND, (n_states, outcomes), prior)
    families[MOVES] = rows.table(MOVES, (n_states**order, outcomes), prior)
    return families


def visits(params: Params, n_states: int, order: int) -> Array:
    """The share of each state among tokens, in sentences as the tables make them."""
    start = np.asarray(params[START]).reshape(-1)
    moves = np.asarray(params[MOVES])[:, :n_states].reshape(*[n_states] * order, n_states)
    share = start.copy()
    here = start if order == 1 else start[:, None] * np.asarray(params[SECOND])[:, :n_states]
    for _ in range(LONG):
        if order == 1:
            here = here @ moves
            share += here
        else:
            share += here.sum(axis=0)
            here = np.einsum("tu,tuv->uv", here, moves)
    total: Array = share / share.sum()
    return total


def says_something(given: Any) -> bool:
    """Whether rows are named at all, by a setting that may be of any form."""
    if isinstance(given, Mapping):
        return any(says_something(rows) for rows in given.values())
    if given is None or not isinstance(given, Iterable):
        return given is not None
    rows = list(given)
    if all(isinstance(row, bool | np.bool_) for row in rows):
        return any(rows)
    return bool(rows)
