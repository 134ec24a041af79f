"""The language of stories: tables, calls, symbols for observed values, and tracing.

Tracing a story means running it on an item and recording all its derivations as one hypergraph.
During tracing, ``table[...]`` and calls of stories return plain integers, so that what the story
yields can be stored quickly. Outside of tracing they return something readable:
``list(coins("HT"))`` shows what a story yields.

A story receives a copy of the item whose lists and tuples are compared by identity, so that
sharing equal calls never hashes a whole sentence. To find out whether a story works without
inspecting the observed values, each value is also replaced by a `Symbol`: it can be used in a
table's key and passed to another story, and raises `ValueInspected` on everything else. One trace
with symbols then serves all items of the same shape.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from softcount.core.errors import StoryError, brief
from softcount.core.types import IntArray
from softcount.kernels.threads import hold_across

if TYPE_CHECKING:
    from softcount.families.loglinear import Ascent

MAX_ALTERNATIVES = 50_000_000
_LOCK = threading.RLock()  # the current trace is a global of this module, `tracing`
hold_across(_LOCK)


class _Trust:
    """Whether symbols may be compared at the moment.

    ``given``   set while the package itself compares them, which is allowed
    ``abused``  set if user code has compared or inspected one since the trace began
    """

    __slots__ = ("abused", "given")  # read and set a million times a second

    def __init__(self) -> None:
        self.given = self.abused = False


trust = _Trust()


class ValueInspected(BaseException):
    """The story inspected an observed value. (Not an Exception: stories may catch those.)"""

    def __init__(self) -> None:
        trust.abused = True  # noticed even if the story catches this one


class ItemList(list[Any]):
    """A list inside a data item, compared by identity when passed as an argument."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class ItemTuple(tuple[Any, ...]):
    """A tuple inside a data item, compared by identity when passed as an argument."""

    def __hash__(self) -> int:
        return object.__hash__(self) if trust.given else tuple.__hash__(self)


class ItemDict(dict[Any, Any]):
    """A dict inside a data item, compared by identity when passed as an argument."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def _refuse_inspection(self: Any, *_: Any) -> NoReturn:
    raise ValueInspected


_INSPECTING_METHODS = (
    *("bool", "int", "index", "float", "complex", "str", "repr", "format", "bytes", "array"),
    *("lt", "le", "gt", "ge", "ne", "contains", "call", "enter", "round"),
    *("neg", "pos", "abs", "invert", "and", "rand", "or", "ror", "xor", "rxor"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow"),
)


class _Opaque:
    """A placeholder for observed data: any attempt to inspect it raises `ValueInspected`."""

    __slots__ = ("slots",)

    def __init__(self, slots: Any) -> None:
        self.slots = slots

    def __hash__(self) -> int:
        if not trust.given:
            raise ValueInspected
        return hash(self.slots)

    def __eq__(self, other: object) -> bool:
        if not trust.given:
            raise ValueInspected
        return type(other) is type(self) and self.slots == other.slots

    def __getattr__(self, name: str) -> NoReturn:
        raise ValueInspected

    @property  # type: ignore[misc]  # isinstance() asks for __class__ when the type itself does not fit
    def __class__(self) -> Any:
        raise ValueInspected


for _name in _INSPECTING_METHODS:
    setattr(_Opaque, f"__{_name}__", _refuse_inspection)


class Symbol(_Opaque):
    """A placeholder for one observed value; ``slots`` is its number among the item's values."""

    __slots__ = ()

    def __hash__(self) -> int:
        if not trust.given:
            raise ValueInspected
        return self.slots  # type: ignore[no-any-return]

    __eq__ = _Opaque.__eq__


for _name in ("len", "iter", "getitem"):
    setattr(Symbol, f"__{_name}__", _refuse_inspection)


class SymbolicText(_Opaque):
    """A string whose characters are symbols."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.slots)

    def __getitem__(self, index: int | slice) -> Any:
        picked = self.slots[index]
        return SymbolicText(picked) if type(picked) is tuple else picked

    def __iter__(self) -> Any:
        return iter(self.slots)

    def __bool__(self) -> bool:
        return len(self.slots) > 0


CONTAINERS = frozenset({ItemList, ItemTuple, ItemDict, SymbolicText})
COMPOUND = CONTAINERS | {tuple}


def is_hashable(part: Any) -> bool:
    """Return whether a part of a key would be hashable if it were compared by value."""
    if type(part) in (tuple, ItemTuple):
        return all(map(is_hashable, part))
    return type(part) not in (ItemList, ItemDict)


def holds_data(part: Any) -> bool:
    """Return whether a compound part of a key contains symbols, at any depth."""
    if type(part) in (tuple, ItemTuple):
        return any(type(inner) is Symbol or holds_data(inner) for inner in part)
    return type(part) in CONTAINERS


def without_identity(part: Any) -> Any:
    """Return a part of a key as plain tuples, which are compared by value."""
    return tuple(map(without_identity, part)) if type(part) in (tuple, ItemTuple) else part


def compare_by_identity(item: Any) -> Any:
    """Return a copy of the item whose containers are compared by identity."""
    if type(item) is list:
        return ItemList(map(compare_by_identity, item))
    if type(item) is tuple:
        return ItemTuple(map(compare_by_identity, item))
    if type(item) is dict:
        return ItemDict({key: compare_by_identity(value) for key, value in item.items()})
    if hasattr(item, "tolist"):  # numpy arrays and scalars
        return compare_by_identity(item.tolist())
    return item


class ItemShape:
    """An item's form without its values: ``key`` is equal for items of the same form."""

    def __init__(self, item: Any) -> None:
        self.values: list[Any] = []
        if type(item) is str:
            self.values.extend(item)
            self.key: Any = (str, len(item))
        else:
            self.key = self._form(item)

    def _form(self, item: Any) -> Any:
        kind = type(item)
        if kind in (str, int, float):
            self.values.append(item)
            return kind
        if kind in (list, tuple):
            inner = set(map(type, item))
            if len(inner) == 1 and inner <= {str, int, float}:
                self.values.extend(item)
                return (kind, inner.pop(), len(item))
            return (kind, *map(self._form, item))
        if item is None or kind is bool:
            return kind, item
        if hasattr(item, "tolist"):  # numpy arrays and scalars
            return self._form(item.tolist())
        raise ValueInspected  # a type that no symbol can stand in for


def make_stand_in(item: Any) -> Any:
    """Return the item with a symbol for every observed value, numbered in reading order."""
    numbers = count()

    def stand_in(part: Any) -> Any:
        kind = type(part)
        if kind is list:
            return ItemList(map(stand_in, part))
        if kind is tuple:
            return ItemTuple(map(stand_in, part))
        if hasattr(part, "tolist"):
            return stand_in(part.tolist())
        return part if part is None or kind is bool else Symbol(next(numbers))

    if type(item) is str:
        return SymbolicText(tuple(Symbol(next(numbers)) for _ in item))
    return stand_in(item)


# Tables and stories


Features = Callable[..., Iterable[Hashable] | Mapping[Hashable, float]]
"""A function from the parts of a key to feature names, or to a mapping from names to values."""

EVENT, CALL = 1 << 40, 1 << 60
"""First numbers of events and of calls; any smaller number was yielded by mistake."""


class TableEntry(NamedTuple):
    """One entry of a table; the last part of the key is the outcome, the others the condition."""

    table: str
    key: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.table}[{', '.join(map(str, self.key))}]"


class Tracing:
    """State of one trace: the entries and calls met so far, each once, in order of appearance.

    Numbers are never reused, so that a number that a story kept from an earlier trace is noticed.
    """

    n_events: ClassVar[int] = 0
    n_calls: ClassVar[int] = 0

    def __init__(self, symbolic: bool) -> None:
        self.symbolic = symbolic
        self.first_event, self.first_call = EVENT + Tracing.n_events, CALL + Tracing.n_calls
        self.entries: list[TableEntry] = []
        self.calls: list[tuple[Story, tuple[Any, ...]]] = []
        self.tables: dict[str, StoryTable] = {}
        self.memories: list[dict[Any, Any]] = []
        """The caches of the tables and stories that took part, to be cleared at the end."""


tracing: Tracing | None = None


class StoryTable:
    """A table of probabilities that stories refer to: ``table[condition…, outcome]``."""

    def __init__(
        self,
        name: str,
        outcomes: tuple[Hashable, ...] | None,
        features: Features | None,
        l2: float,
        ascent: Ascent,
    ) -> None:
        self.name, self.outcomes = name, outcomes
        self.features, self.l2, self.ascent = features, l2, ascent
        self._recorded: dict[Any, int] = {}

    def __repr__(self) -> str:
        return f"table({self.name!r})"

    @property
    def _declared(self) -> tuple[Any, ...]:
        return self.outcomes, self.features, self.l2, self.ascent

    def __getitem__(self, key: Any) -> int | TableEntry:
        trust.given = True
        try:
            event = self._recorded.get(key)
            return self._record(key) if event is None else event
        except TypeError:
            raise self._unhashable(key) from None
        finally:
            trust.given = False

    def _record(self, key: Any) -> int | TableEntry:
        parts = key if type(key) is tuple else (key,)
        if tracing is None:
            return TableEntry(self.name, parts)
        if not COMPOUND.isdisjoint(map(type, parts)):
            if tracing.symbolic and any(map(holds_data, parts)):
                raise ValueInspected
            if not all(map(is_hashable, parts)):
                raise self._unhashable(key)
            parts = tuple(map(without_identity, parts))
        if not self._recorded:
            tracing.memories.append(self._recorded)
            other = tracing.tables.setdefault(self.name, self)
            if self._declared != other._declared:  # equal declarations are one table
                raise StoryError(
                    f"two different tables are called {self.name!r}", "give each table its own name"
                )
        event = tracing.first_event + len(tracing.entries)
        # TableEntry(…), but faster
        tracing.entries.append(tuple.__new__(TableEntry, (self.name, parts)))
        self._recorded[key] = event
        return event

    def _unhashable(self, key: Any) -> StoryError:
        return StoryError(
            f"table {self.name!r} is indexed by a key that cannot be looked up: {brief(key)}",
            "the parts of a key must be hashable: words, numbers or tuples, not lists",
        )


class Story:
    """A generator function that yields every way its arguments could have come about.

    Users hold and call the function that `story` returns; its attribute ``.story`` is this object.
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
        self.n_arguments = 0
        """Number of required arguments."""
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
                raise StoryError(
                    f"story {self.name!r} takes {parameter}, which can only be given by name",
                    "calls are compared by position: make all arguments of a story positional",
                )
            is_starred = parameter.kind is parameter.VAR_POSITIONAL
            self.n_arguments += not is_starred and parameter.default is parameter.empty
        self.recorded: dict[tuple[Any, ...], int] = {}
        self.caller: Callable[..., Any] = function

    def __repr__(self) -> str:
        return f"<story {self.name}>"

    def record(self, args: tuple[Any, ...]) -> Any:
        """Record a call that is new in this trace (outside of tracing, return the generator)."""
        if tracing is None:
            return self.function(*args)
        if not self.recorded:
            tracing.memories.append(self.recorded)
        call = tracing.first_call + len(tracing.calls)
        tracing.calls.append((self, args))
        self.recorded[args] = call
        return call


def find_story(caller: Any) -> Story:
    """Return the `Story` behind the function that users call."""
    definition = caller if isinstance(caller, Story) else getattr(caller, "story", None)
    if not isinstance(definition, Story):
        raise StoryError(
            f"{caller!r} is not a story", "decorate the generator function with @story"
        )
    return definition


def describe(story: Story, args: tuple[Any, ...]) -> str:
    """Format a call as a reader would write it; the data item and its parts become '…'."""
    hidden = CONTAINERS | {Symbol}
    arguments = ("…" if type(arg) in hidden else brief(arg, most=40) for arg in args)
    return f"{story.name}({', '.join(arguments)})"


def table(
    name: str,
    outcomes: Iterable[Hashable] | None = None,
    *,
    features: Features | None = None,
    l2: float = 1.0,
    ascent: Ascent = "lbfgs",
) -> StoryTable:
    """Declare a table of probabilities, learned under this name.

    ``table[c1, …, cn, x]`` is P(x | c1, …, cn): the last index is the outcome. A row holds the
    outcomes that occur with its condition in the data, unless ``outcomes`` declares them; a
    smoothed row then also gives probability to outcomes that never occurred. With ``features`` (a
    function of the key's parts that returns feature names, or a mapping from names to values) the
    rows are log-linear: P(x | c) ∝ exp(w · features(c, x)), with the penalty ``l2 / 2 · ‖w‖²``.
    ``ascent`` says how far an M-step climbs: "lbfgs", ten steps of L-BFGS; "gradient", one step up
    the gradient (generalised EM as in textbooks); "converged", to the top.

    >>> flip = table("flip")
    >>> flip["A", "H"]
    flip[A, H]
    """
    declared = None if outcomes is None else tuple(dict.fromkeys(outcomes))
    return StoryTable(name, declared, features, l2, ascent)


def story(function: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    """Turn a generator function into a story: each ``yield`` is one way the data could come about.

    >>> which, flip = table("which"), table("flip")
    >>> @story
    ... def coins(tosses):
    ...     for z in "AB":
    ...         yield which[z], *(flip[z, x] for x in tosses)
    >>> list(coins("HT"))
    [(which[A], flip[A, H], flip[A, T]), (which[B], flip[B, H], flip[B, T])]
    """
    definition = Story(function)
    recorded = definition.recorded

    @wraps(function)
    def caller(*args: Any, **named: Any) -> Any:  # a closure: calling an object costs twice as much
        if named:  # convert to positional arguments, so that equal calls have equal keys
            args = definition.signature.bind(*args, **named).args
        trust.given = True
        try:
            return recorded[args]
        except KeyError:
            return definition.record(args)
        except TypeError:
            if tracing is None:
                return function(*args)
            raise StoryError(
                f"{describe(definition, args)}: an argument is not hashable, so the call cannot "
                "be compared with others",
                "pass words, numbers, tuples, or the data item and its parts themselves; instead "
                "of a fresh list such as words[1:] pass the whole list and a position",
            ) from None
        finally:
            trust.given = False

    caller.story = definition  # type: ignore[attr-defined]
    definition.caller = caller
    return caller


# Tracing


@dataclass(frozen=True)
class Hypergraph:
    """All derivations of an item, packed as a hypergraph: node → alternatives → parts.

    Node n has alternatives ``node_ends[n]:node_ends[n + 1]``, alternative a has parts
    ``alternative_ends[a]:alternative_ends[a + 1]``; part p is an event (``p < n_events``) or the
    node ``p - n_events``. Node 0 is the root. ``entries[e]`` is the table entry of event e (in a
    symbolic graph, parts of its key may be symbols), ``calls[n]`` the call that node n represents.
    """

    node_ends: IntArray
    alternative_ends: IntArray
    parts: IntArray
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
        """A fingerprint, equal for graphs that differ only in the keys of their events."""
        tables = repr([entry.table for entry in self.entries]).encode()
        arrays = (self.node_ends, self.alternative_ends, self.parts)
        return b"".join(a.tobytes() for a in arrays) + tables


def trace_story(story: Any, item: Any, symbolic: bool = False) -> Hypergraph:
    """Trace a story on an item (with symbols for its values if ``symbolic``)."""
    global tracing
    stand_in = make_stand_in(item) if symbolic else compare_by_identity(item)
    with _LOCK:
        if tracing is not None:
            raise StoryError(
                "a model is used inside a story while the story is being traced",
                "a story may only yield table entries and calls of stories",
            )
        tracing = state = Tracing(symbolic)
        trust.abused = False
        try:
            graph = _walk(find_story(story), stand_in, state)
            if trust.abused:
                raise ValueInspected  # the story caught the first one
            return graph
        finally:
            tracing = None
            Tracing.n_events += len(state.entries)
            Tracing.n_calls += len(state.calls)
            for memory in state.memories:
                memory.clear()


def _walk(story: Story, item: Any, state: Tracing) -> Hypergraph:
    """Record all derivations of an item, breadth first: a story may be deeper than Python's stack.

    A call is appended to ``state.calls`` when it is first yielded, and expanded in its turn.
    """
    if story.n_arguments == 1:
        story.caller(item)
    elif isinstance(item, list | tuple) and len(item) == story.n_arguments:
        story.caller(*item)
    else:
        raise StoryError(
            f"story {story.name!r} takes {story.n_arguments} arguments, but an item is "
            f"{type(item).__name__}",
            "make each item a tuple with one part per argument, or let the story take one argument",
        )
    node_counts: list[int] = []
    alternative_counts: list[int] = []
    parts: list[Any] = []
    calls, max_depth = state.calls, 100_000 + 20 * _size(item)
    depth, last = 0, 1  # calls with numbers below `last` are at most `depth` deep
    for node, (called, args) in enumerate(calls):  # the list grows during the loop
        if node == last:
            depth, last = depth + 1, len(calls)
            if depth > max_depth:
                raise _endless_story_error(calls[-1], f"{depth} calls deep")
        left = MAX_ALTERNATIVES - len(alternative_counts)
        alternatives = list(islice(called.function(*args), left + 1))
        if len(alternatives) > left:
            raise _endless_story_error(
                (called, args), f"more than {MAX_ALTERNATIVES:,} alternatives"
            )
        try:
            counts = list(map(len, alternatives))
        except TypeError:  # a single entry or call may be yielded without a tuple
            alternatives = [a if type(a) is tuple else (a,) for a in alternatives]
            counts = list(map(len, alternatives))
        node_counts.append(len(counts))
        alternative_counts.extend(counts)
        parts.extend(chain.from_iterable(alternatives))
    node_ends, alternative_ends = (np.cumsum([0, *n]) for n in (node_counts, alternative_counts))
    n_events = len(state.entries)
    try:
        numbers = np.fromiter(parts, np.int64, len(parts))
    except (TypeError, ValueError, OverflowError):
        raise _invalid_yield_error(state, parts, node_ends, alternative_ends) from None
    as_event, as_call = numbers - state.first_event, numbers - state.first_call
    is_event, is_call = (as_event >= 0) & (as_event < n_events), (as_call >= 0) & (numbers >= CALL)
    if not (is_event | is_call).all():
        raise _invalid_yield_error(state, parts, node_ends, alternative_ends)
    return Hypergraph(
        node_ends,
        alternative_ends,
        np.where(numbers >= CALL, as_call + n_events, as_event),
        tuple(state.entries),
        tuple(calls),
        dict(state.tables),
    )


def _endless_story_error(call: tuple[Story, tuple[Any, ...]], how: str) -> StoryError:
    return StoryError(
        f"story {call[0].name!r} does not end: {how}, at {describe(*call)}",
        "let the story stop at the end of the data, for instance `if i == len(words): …; "
        "return`, and pass positions rather than growing values",
    )


def _invalid_yield_error(
    state: Tracing, parts: Sequence[Any], node_ends: IntArray, alternative_ends: IntArray
) -> StoryError:
    """Make the error for a yielded value that is neither an event nor a call; it says where."""
    events = range(state.first_event, state.first_event + len(state.entries))
    calls = range(state.first_call, state.first_call + len(state.calls))
    known = (type(part) is int and (part in events or part in calls) for part in parts)
    place = next(number for number, is_known in enumerate(known) if not is_known)
    alternative = int(np.searchsorted(alternative_ends, place, side="right")) - 1
    node = int(np.searchsorted(node_ends, alternative, side="right")) - 1
    part, call = parts[place], describe(*state.calls[node])
    if type(part) is int and part >= EVENT:
        return StoryError(
            f"{call} yields a table entry or a call that was made for another item",
            "do not keep entries or calls from one item to the next (in functools.cache, or in a "
            "list outside the story)",
        )
    return StoryError(
        f"{call} yields {part!r}, which is neither a table entry nor a smaller story",
        "probabilities are learned: yield table[...] entries and calls of stories, and unpack "
        "inner tuples and generators with *: yield which[z], *(flip[z, x] for x in tosses)",
    )


def _size(item: Any) -> int:
    """Count the values in an item."""
    if type(item) in (ItemList, ItemTuple):
        return sum(map(_size, item))
    if type(item) is ItemDict:
        return sum(map(_size, item.values()))
    return len(item) if type(item) in (str, SymbolicText) else 1


def count_values(item: Any) -> int:
    """Count the observations in an item, for perplexity."""
    return len(item) if isinstance(item, str) else _size(compare_by_identity(item))


def share_symbols(graphs: Sequence[Hypergraph]) -> tuple[Hypergraph, list[list[Hashable]]]:
    """Merge graphs of the same form into one; key parts that differ become symbols.

    Also returns, for each symbol, the values it stands for, one per graph.
    """
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
