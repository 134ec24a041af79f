"""Tracing: run a story on an item and write down, as flat arrays, all that it says."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.errors import StoryError
from softcount.models.story import language, symbols
from softcount.models.story.language import CALL, EVENT, Entry, Story, Table, Tracing, describe
from softcount.types import Array

MAX_ALTERNATIVES = 50_000_000
_LOCK = threading.RLock()  # the words of a story find their trace in a module's variable


@dataclass(frozen=True)
class Trail:
    """All derivations of an item: node → alternatives → parts.

    Node n has alternatives ``node_ends[n]:node_ends[n + 1]``, alternative a has parts
    ``alternative_ends[a]:alternative_ends[a + 1]``; part p is an event (``p < n_events``) or the
    node ``p - n_events``. Node 0 is the root. ``entries[e]`` is what event e stands for (in a
    symbolic trail parts of its key may be symbols), ``calls[n]`` the call that node n is.
    """

    node_ends: Array
    alternative_ends: Array
    parts: Array
    entries: tuple[Entry, ...]
    calls: tuple[tuple[Story, tuple[Any, ...]], ...]
    tables: Mapping[str, Table]

    @property
    def n_events(self) -> int:
        return len(self.entries)

    @property
    def n_nodes(self) -> int:
        return len(self.node_ends) - 1

    @property
    def n_alternatives(self) -> int:
        return len(self.alternative_ends) - 1

    @property
    def form(self) -> bytes:
        """Equal for trails that differ in the keys of their events only."""
        tables = repr([entry.table for entry in self.entries]).encode()
        arrays = (self.node_ends, self.alternative_ends, self.parts)
        return b"".join(a.tobytes() for a in arrays) + tables


def arguments(story: Story, item: Any) -> tuple[Any, ...]:
    """What to call the root story with: the item, or its parts if the story takes several."""
    wanted = story.n_arguments
    if wanted == 1:
        return (item,)
    if isinstance(item, list | tuple) and len(item) == wanted:
        return tuple(item)
    raise StoryError(
        f"story {story.name!r} takes {wanted} arguments, but an item is {type(item).__name__}",
        "give items that are tuples of that many parts, or let the story take one argument",
    )


def trace_story(story: Story, item: Any, symbolic: bool = False) -> Trail:
    """Trace a story on an item (with symbols for its values if ``symbolic``).

    Breadth first with a queue of our own, so that the depth of a story is not Python's.
    """
    stand_in = symbols.symbolic(item) if symbolic else symbols.by_identity(item)
    with _LOCK:
        language.tracing = state = Tracing(symbolic)
        try:
            return _Walk(story, stand_in, state).trail()
        finally:
            language.tracing = None
            state.forget()


class _Walk:
    """One trace under way."""

    def __init__(self, story: Story, item: Any, state: Tracing) -> None:
        self.state = state
        self.node_ends = array("q", [0])
        self.alternative_ends = array("q", [0])
        self.parts = array("q")
        self.max_depth = 10_000 + 20 * _size(item)
        story(*arguments(story, item))

    def trail(self) -> Trail:
        calls, depth, first = self.state.calls, 0, 0
        while first < len(calls):
            last = len(calls)
            for n in range(first, last):
                self._expand(*calls[n])
            first, depth = last, depth + 1
            if depth > self.max_depth:
                raise self._endless(calls[-1], f"{depth} calls deep")
        return self._finished()

    def _expand(self, story: Story, args: tuple[Any, ...]) -> None:
        """Write down all alternatives of one call."""
        parts, ends, extend = self.parts, self.alternative_ends, self.parts.extend
        try:
            for alternative in story.function(*args):
                if type(alternative) is tuple:
                    extend(alternative)
                else:
                    parts.append(alternative)
                ends.append(len(parts))
        except TypeError as error:
            raise self._odd_yield(story, args, error) from error
        if len(ends) > MAX_ALTERNATIVES:
            raise self._endless((story, args), f"more than {MAX_ALTERNATIVES:,} alternatives")
        self.node_ends.append(len(ends) - 1)

    def _finished(self) -> Trail:
        parts = np.frombuffer(self.parts, dtype=np.int64) if self.parts else np.empty(0, np.int64)
        if len(parts) and parts.min() < EVENT:
            stray = int(np.argmax(parts < EVENT))
            where = int(np.searchsorted(self.alternative_ends, stray, side="right")) - 1
            node = int(np.searchsorted(self.node_ends, where, side="right")) - 1
            call = describe(*self.state.calls[node])
            raise StoryError(
                f"{call} yields the number {parts[stray]}, which is neither a table entry nor a "
                "smaller story",
                "probabilities are learned: yield table[...] entries, not numbers",
            )
        is_call, n_events = parts >= CALL, len(self.state.entries)
        return Trail(
            np.array(self.node_ends, np.int64),
            np.array(self.alternative_ends, np.int64),
            np.where(is_call, parts - CALL + n_events, parts - EVENT),
            tuple(self.state.entries),
            tuple(self.state.calls),
            dict(self.state.tables),
        )

    def _odd_yield(self, story: Story, args: tuple[Any, ...], error: TypeError) -> Exception:
        if "integer" not in str(error):
            return error  # a fault in the story itself, not in what it yields
        return StoryError(
            f"{describe(story, args)} yields something that is neither a table entry nor a "
            f"smaller story ({error})",
            "yield table[...] entries and calls of stories; unpack inner tuples and generators "
            "with *: yield which[z], *(flip[z, x] for x in tosses)",
        )

    def _endless(self, call: tuple[Story, tuple[Any, ...]], how: str) -> StoryError:
        return StoryError(
            f"story {call[0].name!r} goes on without end: {how}, at {describe(*call)}",
            "let the story stop at the end of the data, for instance `if i == len(words): …; "
            "return`, and pass positions rather than growing values",
        )


def _size(item: Any) -> int:
    """How many values an item holds."""
    if type(item) in (symbols.ItemList, symbols.ItemTuple):
        return sum(map(_size, item))
    if type(item) is symbols.ItemDict:
        return sum(map(_size, item.values()))
    return len(item) if type(item) in (str, symbols.SymbolicText) else 1


def n_values(item: Any) -> int:
    """How many observations an item holds, for perplexity."""
    return _size(symbols.by_identity(item)) if not isinstance(item, str) else len(item)
