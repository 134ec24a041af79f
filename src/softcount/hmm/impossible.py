"""States of sentences that cannot come about: those that take the fewest impossible events.

Whoever asks for the states of a sentence is to get some, even if every way through it has a move
or a word of probability zero. Let each such event have the same tiny probability ε: as ε goes to 0,
all that counts is how many of them a way takes, and then the product of everything else on it. So a
number here is a pair (how many, log), which is compared by the first and then by the second, and
sums are of those with the smallest first. No ε has to be chosen, and nothing underflows.

States that are ruled out by tags or a dictionary are worse than any number of impossible events.

Such sentences are few, and each is gone through by itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softcount.hmm.kernels import lists as listed
from softcount.types import Array

RULED_OUT = 1 << 40
"""As many impossible events as no sentence has."""


class Amount(NamedTuple):
    """ε to the power of ``events``, times exp(``log``); the logs are finite."""

    events: Array
    log: Array

    def __matmul__(self, other: Amount) -> Amount:
        """The product."""
        return Amount(self.events + other.events, self.log + other.log)

    def at(self, where: Any) -> Amount:
        """Some of them."""
        return Amount(self.events[where], self.log[where])

    def shaped(self, *shape: int) -> Amount:
        return Amount(self.events.reshape(shape), self.log.reshape(shape))

    def logs_of_fewest(self, axis: int | None = None) -> Array:
        """The logs; −inf where others have fewer events."""
        fewest = self.events.min(axis=axis, keepdims=axis is not None)
        logs: Array = np.where(self.events == fewest, self.log, -np.inf)
        return logs

    def best(self, axis: int) -> tuple[Amount, Array]:
        """The largest along an axis, and where it is: the first among equals."""
        logs = self.logs_of_fewest(axis)
        return Amount(self.events.min(axis=axis), logs.max(axis=axis)), logs.argmax(axis=axis)

    def total(self, axis: int) -> Amount:
        """The sum along an axis."""
        logs = self.logs_of_fewest(axis)
        top = logs.max(axis=axis, keepdims=True)
        sums = np.log(np.exp(logs - top).sum(axis=axis)) + np.squeeze(top, axis)
        return Amount(self.events.min(axis=axis), sums)


def amount(logs: Array) -> Amount:
    """Probabilities, given their logarithms: −inf is an impossible event."""
    possible = np.isfinite(logs)
    return Amount((~possible).astype(np.int64), np.where(possible, logs, 0.0))


class Chain:
    """The moves of a hidden Markov model.

    A *context* is what the next state depends on: a state; of order 2, once there are two, a pair
    of states, with the numbers that the rows of moves have. Before that it is a single state.
    """

    def __init__(self, moves: listed.Moves) -> None:
        self.n_states, self.order = len(moves.start), moves.order
        with np.errstate(divide="ignore"):
            tables = [np.log(np.asarray(table, np.float64)) for table in moves[:3]]
        self.start, self.moves, self.stop = map(amount, tables)

    def rows(self, place: int) -> slice:
        """The rows of the contexts at a place of a sentence."""
        if self.order == 2 and place == 0:
            return slice(self.n_states**2, None)
        return slice(0, self.n_states**self.order)

    def spread(self, emitted: Amount, place: int) -> Amount:
        """p(token | state), for each context at a place."""
        if self.order == 1 or place == 0:
            return emitted
        return Amount(*(np.tile(part, self.n_states) for part in emitted))

    def following(self, place: int, ahead: Amount) -> Amount:
        """(contexts, states): moves from each context, times what is ahead of the next one."""
        moves, k = self.moves.at(self.rows(place)), self.n_states
        if self.order == 1:
            return moves @ ahead
        pairs = ahead.shaped(k, k)  # (this state, next state)
        if place:  # contexts are pairs, whose first state does not matter any more
            pairs = Amount(*(np.tile(part, (k, 1)) for part in pairs))
        return moves @ pairs

    def arriving(self, place: int, behind: Amount) -> Amount:
        """(ways, contexts): what is behind the contexts at a place, times moves to the next."""
        k = self.n_states
        moves = self.moves.at(self.rows(place))
        made = behind.shaped(-1, 1) @ moves
        if self.order == 1:
            return made
        return made.shaped(1, k * k) if place == 0 else made.shaped(k, k * k)

    def of_states(self, contexts: Amount) -> Array:
        """Shares of states, given the amounts of contexts."""
        logs = contexts.logs_of_fewest()
        shares = np.exp(logs - logs.max()).reshape(-1, self.n_states).sum(axis=0)
        return shares / shares.sum()  # type: ignore[no-any-return]

    def state(self, context: int) -> int:
        """The last state of a context."""
        return context % self.n_states


class Sentence:
    """A sentence: its moves, and p(token | state) of each of its tokens.

    ``logs``     (tokens, states)
    ``allowed``  (tokens, states): whether tags and dictionary let a token be in a state
    """

    def __init__(self, chain: Chain, logs: Array, allowed: Array) -> None:
        self.chain = chain
        events, values = amount(logs)
        tokens = Amount(events + np.where(allowed, 0, RULED_OUT), values)
        self.emitted = [chain.spread(tokens.at(i), i) for i in range(len(logs))]

    def __len__(self) -> int:
        return len(self.emitted)

    @cached_property
    def best(self) -> tuple[Array, int]:
        """The best states, and how many impossible events they take."""
        chain, back = self.chain, []
        now = chain.start @ self.emitted[0]
        for place in range(1, len(self)):
            now, where = chain.arriving(place - 1, now).best(axis=0)
            back.append(where)
            now = now @ self.emitted[place]
        last = len(self) - 1
        top, at = (now @ chain.stop.at(chain.rows(last))).best(axis=0)
        context = int(at)
        path = [context]
        for place in range(last, 0, -1):
            context = self._before(context, int(back[place - 1][context]), place)
            path.append(context)
        states = [chain.state(context) for context in reversed(path)]
        return np.array(states, np.int32), int(top.events)

    def _before(self, context: int, way: int, place: int) -> int:
        """The context before this one, given which of its ways was taken."""
        chain = self.chain
        if chain.order == 1:
            return way
        this = context // chain.n_states
        return this if place == 1 else way * chain.n_states + this

    def _ahead(self) -> list[Amount]:
        """What comes after each place, for each context there."""
        chain, last = self.chain, len(self) - 1
        found = [chain.stop.at(chain.rows(last))]
        for place in range(last - 1, -1, -1):
            after = self.emitted[place + 1] @ found[-1]
            found.append(chain.following(place, after).total(axis=1))
        return found[::-1]

    def shares(self) -> Array:
        """p(state | sentence) of each token, (tokens, states)."""
        chain, ahead = self.chain, self._ahead()
        now, found = chain.start @ self.emitted[0], []
        for place in range(len(self)):
            if place:
                now = chain.arriving(place - 1, now).total(axis=0) @ self.emitted[place]
            found.append(chain.of_states(now @ ahead[place]))
        return np.array(found)

    def drawn(self, rng: np.random.Generator) -> Array:
        """States, drawn from their posterior."""
        chain, ahead = self.chain, self._ahead()
        context = _one(chain.start @ self.emitted[0] @ ahead[0], rng)
        states = [context]
        for place in range(1, len(self)):
            after = self.emitted[place] @ ahead[place]
            state = _one(chain.following(place - 1, after).at(context), rng)
            states.append(state)
            context = state if chain.order == 1 else states[-2] * chain.n_states + state
        return np.array(states, np.int32)


def _one(amounts: Amount, rng: np.random.Generator) -> int:
    """One of some, by its share of them all."""
    logs = amounts.logs_of_fewest()
    shares = np.exp(logs - logs.max())
    return int(rng.choice(len(shares), p=shares / shares.sum()))
