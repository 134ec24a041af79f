"""The words a story is written in: tables, stories, and what they stand for while being traced.

While a story is traced, ``table[...]`` and calls of stories give plain integers, so that what it
yields can be stored at the speed of C. Outside of tracing they give something readable:
``list(coins("HT"))`` shows what a story says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, ClassVar, NamedTuple

from softcount.errors import StoryError, shown
from softcount.models.story import symbols
from softcount.models.story.symbols import trust

Features = Callable[..., Iterable[Hashable] | Mapping[Hashable, float]]
"""From the parts of a key to the names of its features, or to their values by name."""

EVENT, CALL = 1 << 40, 1 << 60
"""Where the numbers of events and calls begin; a number below was yielded by mistake."""


class Entry(NamedTuple):
    """One entry of a table: the last part of the key is the outcome, those before the condition."""

    table: str
    key: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.table}[{', '.join(map(str, self.key))}]"


class Tracing:
    """What one trace has met so far: entries and calls, each once, in order of appearance.

    Numbers are never given twice, so that what a story kept from an earlier trace is noticed.
    """

    n_events: ClassVar[int] = 0
    n_calls: ClassVar[int] = 0

    def __init__(self, symbolic: bool) -> None:
        self.symbolic = symbolic
        self.first_event, self.first_call = EVENT + Tracing.n_events, CALL + Tracing.n_calls
        self.entries: list[Entry] = []
        self.calls: list[tuple[Story, tuple[Any, ...]]] = []
        self.tables: dict[str, Table] = {}
        self.memories: list[dict[Any, Any]] = []

    def forget(self) -> None:
        """Empty the memories of the tables and stories that took part."""
        Tracing.n_events += len(self.entries)
        Tracing.n_calls += len(self.calls)
        for memory in self.memories:
            memory.clear()


tracing: Tracing | None = None


class Table:
    """A table of probabilities that stories refer to: ``table[condition…, outcome]``."""

    def __init__(
        self, name: str, outcomes: tuple[Hashable, ...] | None, features: Features | None, l2: float
    ) -> None:
        self.name, self.outcomes = name, outcomes
        self.features, self.l2 = features, l2
        self._met: dict[Any, int] = {}

    def __repr__(self) -> str:
        return f"table({self.name!r})"

    def __getitem__(self, key: Any) -> int | Entry:
        trust.given = True
        try:
            event = self._met.get(key)
            return self._meet(key) if event is None else event
        except TypeError:
            raise self._unhashable(key) from None
        finally:
            trust.given = False

    def _meet(self, key: Any) -> int | Entry:
        parts = key if type(key) is tuple else (key,)
        if tracing is None:
            return Entry(self.name, parts)
        if not symbols.COMPOUND.isdisjoint(map(type, parts)):
            if tracing.symbolic and any(map(symbols.holds_data, parts)):
                raise symbols.Looked
            if not all(map(symbols.is_hashable, parts)):
                raise self._unhashable(key)
            parts = tuple(map(symbols.plain, parts))
        if not self._met:
            tracing.memories.append(self._met)
            self._enter(tracing.tables)
        event = tracing.first_event + len(tracing.entries)
        tracing.entries.append(tuple.__new__(Entry, (self.name, parts)))  # Entry(…), but faster
        self._met[key] = event
        return event

    def _enter(self, tables: dict[str, Table]) -> None:
        """Two objects may be one table, if they say the same of it."""
        other = tables.setdefault(self.name, self)
        ours, theirs = (self.outcomes, self.features), (other.outcomes, other.features)
        if ours != theirs or self.l2 != other.l2:
            raise StoryError(
                f"two different tables are called {self.name!r}", "give each table its own name"
            )

    def _unhashable(self, key: Any) -> StoryError:
        return StoryError(
            f"table {self.name!r} is asked for an entry that cannot be looked up: {shown(key)}",
            "the parts of a key must be hashable: words, numbers or tuples, not lists",
        )


class Story:
    """A generator function that yields every way its arguments could have come about.

    What users hold and call is the function that `story` makes; it knows its Story as ``.story``.
    """

    def __init__(self, function: Callable[..., Iterator[Any]]) -> None:
        if not inspect.isgeneratorfunction(function):
            raise StoryError(
                f"{function!r} is not a story: it does not yield",
                "a story is a generator function that yields one alternative at a time",
            )
        self.function = function
        self.name = function.__name__
        self.signature = inspect.signature(function)
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
                raise StoryError(
                    f"story {self.name!r} takes {parameter}, which can only be given by name",
                    "calls are compared by position: let all arguments of a story have one",
                )
        self.met: dict[tuple[Any, ...], int] = {}
        self.told: Callable[..., Any] = function

    def __repr__(self) -> str:
        return f"<story {self.name}>"

    @property
    def n_arguments(self) -> int:
        """How many arguments must be given."""
        needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = self.signature.parameters.values()
        return sum(p.kind in needed and p.default is p.empty for p in parameters)

    def positional(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, so that equal calls look equal."""
        return self.signature.bind(*args, **named).args

    def meet(self, args: tuple[Any, ...]) -> Any:
        """A call that was not met before in this trace (or, outside of tracing, the generator)."""
        if tracing is None:
            return self.function(*args)
        if not self.met:
            tracing.memories.append(self.met)
        call = tracing.first_call + len(tracing.calls)
        tracing.calls.append((self, args))
        self.met[args] = call
        return call

    def meet_unhashable(self, args: tuple[Any, ...]) -> Any:
        if tracing is None:
            return self.function(*args)
        raise StoryError(
            f"{describe(self, args)}: an argument cannot be compared with those of other calls",
            "pass words, numbers, tuples, or the data item and its parts themselves; instead "
            "of a fresh list such as words[1:] pass the whole list and a position",
        )


def story_of(told: Any) -> Story:
    """The story behind what a user calls."""
    found = told if isinstance(told, Story) else getattr(told, "story", None)
    if not isinstance(found, Story):
        raise StoryError(f"{told!r} is not a story", "decorate the generator function with @story")
    return found


def describe(story: Story, args: tuple[Any, ...]) -> str:
    """A call as a reader would write it; the data item and its parts become '…'."""
    hidden = (symbols.is_item(arg) or symbols.is_symbol(arg) for arg in args)
    arguments = (
        "…" if hide else shown(arg, most=40) for hide, arg in zip(hidden, args, strict=True)
    )
    return f"{story.name}({', '.join(arguments)})"


def table(
    name: str,
    outcomes: Iterable[Hashable] | None = None,
    *,
    features: Features | None = None,
    l2: float = 1.0,
) -> Table:
    """A table of probabilities, learned under this name.

    ``table[c1, …, cn, x]`` is P(x | c1, …, cn): the last index is the outcome. A row holds the
    outcomes that occur with its condition in the data; ``outcomes`` declares them instead, so that
    a smoothed row also keeps room for what never occurred. With ``features`` (a function of the
    key's parts that names features, or gives them as a mapping to values) the rows are log-linear:
    P(x | c) ∝ exp(w · features(c, x)), with the penalty ``l2 / 2 · ‖w‖²``.

    >>> flip = table("flip")
    >>> flip["A", "H"]
    flip[A, H]
    """
    return Table(name, None if outcomes is None else tuple(dict.fromkeys(outcomes)), features, l2)


def story(function: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    """Make a generator function a story: each ``yield`` is one way the data could come about.

    >>> which, flip = table("which"), table("flip")
    >>> @story
    ... def coins(tosses):
    ...     for z in "AB":
    ...         yield which[z], *(flip[z, x] for x in tosses)
    >>> list(coins("HT"))
    [(which[A], flip[A, H], flip[A, T]), (which[B], flip[B, H], flip[B, T])]
    """
    record = Story(function)
    met = record.met

    @wraps(function)
    def told(*args: Any, **named: Any) -> Any:  # a closure: calling an object costs twice as much
        if named:
            args = record.positional(args, named)
        trust.given = True
        try:
            return met[args]
        except KeyError:
            return record.meet(args)
        except TypeError:
            return record.meet_unhashable(args)
        finally:
            trust.given = False

    told.story = record  # type: ignore[attr-defined]
    record.told = told
    return told
