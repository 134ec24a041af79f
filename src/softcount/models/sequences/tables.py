"""The families of hidden Markov models, with what is known of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.errors import DataError, LearnerError, shown
from softcount.families import Categorical
from softcount.models.sequences.core import MOVES, SECOND, START
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.knowledge import TagKnowledge
from softcount.types import Array, Params

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
