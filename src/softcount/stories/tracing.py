"""Tracing: run a story on an item, and write down all its derivations as one hypergraph."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from softcount.core.errors import StoryError
from softcount.core.types import Array
from softcount.kernels.threads import hold_across
from softcount.stories import language
from softcount.stories.language import (
    CALL,
    EVENT,
    Story,
    StoryTable,
    Symbol,
    TableEntry,
    Tracing,
    describe,
    find_story,
)

MAX_ALTERNATIVES = 50_000_000
_LOCK = threading.RLock()  # the words of a story find their trace in a module's variable
hold_across(_LOCK)


@dataclass(frozen=True)
class Hypergraph:
    """All derivations of an item, packed as a hypergraph: node → alternatives → parts.

    Node n has alternatives ``node_ends[n]:node_ends[n + 1]``, alternative a has parts
    ``alternative_ends[a]:alternative_ends[a + 1]``; part p is an event (``p < n_events``) or the
    node ``p - n_events``. Node 0 is the root. ``entries[e]`` is what event e stands for (in a
    symbolic graph parts of its key may be symbols), ``calls[n]`` the call that node n is.
    """

    node_ends: Array
    alternative_ends: Array
    parts: Array
    entries: tuple[TableEntry, ...]
    calls: tuple[tuple[Story, tuple[Any, ...]], ...]
    tables: Mapping[str, StoryTable]

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
        """Equal for graphs that differ in the keys of their events only."""
        tables = repr([entry.table for entry in self.entries]).encode()
        arrays = (self.node_ends, self.alternative_ends, self.parts)
        return b"".join(a.tobytes() for a in arrays) + tables


def root_arguments(story: Story, item: Any) -> tuple[Any, ...]:
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


def trace_story(story: Any, item: Any, symbolic: bool = False) -> Hypergraph:
    """Trace a story on an item (with symbols for its values if ``symbolic``).

    Breadth first with a queue of our own, so that the depth of a story is not Python's.
    """
    stand_in = language.make_stand_in(item) if symbolic else language.compare_by_identity(item)
    with _LOCK:
        if language.tracing is not None:
            raise StoryError(
                "a model is used inside a story that is just being traced",
                "let a story yield table entries and calls of stories, nothing else",
            )
        language.tracing = state = Tracing(symbolic)
        language.trust.abused = False
        try:
            graph = TraceWalk(find_story(story), stand_in, state).graph()
            if language.trust.abused:
                raise language.ValueInspected  # the story caught it
            return graph
        finally:
            language.tracing = None
            state.forget()


class TraceWalk:
    """One trace under way."""

    def __init__(self, story: Story, item: Any, state: Tracing) -> None:
        self.state = state
        self.node_counts: list[int] = []
        self.alternative_counts: list[int] = []
        self.parts: list[Any] = []
        self.max_depth = 100_000 + 20 * _size(item)
        story.caller(*root_arguments(story, item))

    def graph(self) -> Hypergraph:
        calls, depth, first = self.state.calls, 0, 0
        while first < len(calls):
            last = len(calls)
            for n in range(first, last):
                self._expand(*calls[n])
            first, depth = last, depth + 1
            if depth > self.max_depth:
                raise self._endless(calls[-1], f"{depth} calls deep")
        return self._finish()

    def _expand(self, story: Story, args: tuple[Any, ...]) -> None:
        """Write down all alternatives of one call."""
        left = MAX_ALTERNATIVES - len(self.alternative_counts)
        alternatives = list(islice(story.function(*args), left + 1))
        if len(alternatives) > left:
            raise self._endless((story, args), f"more than {MAX_ALTERNATIVES:,} alternatives")
        try:
            counts = list(map(len, alternatives))
        except TypeError:  # single things need no tuple around them
            alternatives = [a if type(a) is tuple else (a,) for a in alternatives]
            counts = list(map(len, alternatives))
        self.node_counts.append(len(counts))
        self.alternative_counts.extend(counts)
        self.parts.extend(chain.from_iterable(alternatives))

    def _finish(self) -> Hypergraph:
        node_ends = np.cumsum([0, *self.node_counts])
        alternative_ends = np.cumsum([0, *self.alternative_counts])
        try:
            parts = np.fromiter(self.parts, np.int64, len(self.parts))
        except (TypeError, ValueError, OverflowError):
            raise self._odd_yield(node_ends, alternative_ends) from None
        first_event, first_call = self.state.first_event, self.state.first_call
        n_events = len(self.state.entries)
        events, calls = parts - first_event, parts - first_call
        known = ((events >= 0) & (events < n_events)) | ((calls >= 0) & (parts >= CALL))
        if not known.all():
            raise self._odd_yield(node_ends, alternative_ends)
        return Hypergraph(
            node_ends,
            alternative_ends,
            np.where(parts >= CALL, calls + n_events, events),
            tuple(self.state.entries),
            tuple(self.state.calls),
            dict(self.state.tables),
        )

    def _odd_yield(self, node_ends: Array, alternative_ends: Array) -> StoryError:
        """Something was yielded that is neither an event nor a call: say where."""
        state = self.state
        events = range(state.first_event, state.first_event + len(state.entries))
        calls = range(state.first_call, state.first_call + len(state.calls))
        known = (type(part) is int and (part in events or part in calls) for part in self.parts)
        place = next(number for number, is_known in enumerate(known) if not is_known)
        alternative = int(np.searchsorted(alternative_ends, place, side="right")) - 1
        node = int(np.searchsorted(node_ends, alternative, side="right")) - 1
        part, call = self.parts[place], describe(*state.calls[node])
        if type(part) is int and part >= EVENT:
            return StoryError(
                f"{call} yields a table entry or a call that was made for another item",
                "do not keep them from one call to the next (functools.cache, a list outside)",
            )
        return StoryError(
            f"{call} yields {part!r}, which is neither a table entry nor a smaller story",
            "probabilities are learned: yield table[...] entries and calls of stories, and unpack "
            "inner tuples and generators with *: yield which[z], *(flip[z, x] for x in tosses)",
        )

    def _endless(self, call: tuple[Story, tuple[Any, ...]], how: str) -> StoryError:
        return StoryError(
            f"story {call[0].name!r} goes on without end: {how}, at {describe(*call)}",
            "let the story stop at the end of the data, for instance `if i == len(words): …; "
            "return`, and pass positions rather than growing values",
        )


def _size(item: Any) -> int:
    """How many values an item holds."""
    if type(item) in (language.ItemList, language.ItemTuple):
        return sum(map(_size, item))
    if type(item) is language.ItemDict:
        return sum(map(_size, item.values()))
    return len(item) if type(item) in (str, language.SymbolicText) else 1


def count_values(item: Any) -> int:
    """How many observations an item holds, for perplexity."""
    return _size(language.compare_by_identity(item)) if not isinstance(item, str) else len(item)


def share_symbols(graphs: Sequence[Hypergraph]) -> tuple[Hypergraph, list[list[Hashable]]]:
    """One graph for all, and what each of its symbols stands for in each of them."""
    columns: list[list[Hashable]] = []
    entries = []
    for alike in zip(*(graph.entries for graph in graphs), strict=True):
        parts: list[Hashable] = []
        for values in zip(*(entry.key for entry in alike), strict=True):
            first = values[0]
            if all(value is first or value == first for value in values):
                parts.append(first)
            else:
                parts.append(Symbol(len(columns)))
                columns.append(list(values))
        entries.append(TableEntry(alike[0].table, tuple(parts)))
    return replace(graphs[0], entries=tuple(entries)), columns
