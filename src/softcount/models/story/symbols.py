"""Stand-ins for data items.

An item reaches a story as a copy whose lists and tuples are compared by identity, so that sharing
equal calls never costs a hash of a whole sentence. When we hope that a story does not look at the
observed values, each value is replaced by a `Symbol` as well: it can be used in a table's key and
passed to another story, and raises `Looked` on everything else. One trace with symbols then serves
all items of the same shape.
"""

from __future__ import annotations

from typing import Any, NoReturn


class _Trust:
    """Whether it is the package itself that compares symbols just now (see `language`), and
    whether anybody else did since the trace began.
    """

    __slots__ = ("abused", "given")  # read and set a million times a second

    def __init__(self) -> None:
        self.given = self.abused = False


trust = _Trust()


class Looked(BaseException):
    """The story looked at an observed value. (Not an Exception: stories may catch those.)"""

    def __init__(self) -> None:
        trust.abused = True  # should the story catch even this


class ItemList(list[Any]):
    """A list of the data item, compared by identity when it is an argument."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class ItemTuple(tuple[Any, ...]):
    """A tuple of the data item, compared by identity when it is an argument."""

    def __hash__(self) -> int:
        return object.__hash__(self) if trust.given else tuple.__hash__(self)


class ItemDict(dict[Any, Any]):
    """A dict of the data item, compared by identity when it is an argument."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def _look(self: Any, *_: Any) -> NoReturn:
    raise Looked


_LOOKS = (
    *("bool", "int", "index", "float", "complex", "str", "repr", "format", "bytes", "array"),
    *("lt", "le", "gt", "ge", "ne", "contains", "call", "enter", "round"),
    *("neg", "pos", "abs", "invert", "and", "rand", "or", "ror", "xor", "rxor"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"),
    *("floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow"),
)


class _Opaque:
    """Something that cannot be looked at."""

    __slots__ = ("slots",)

    def __init__(self, slots: Any) -> None:
        self.slots = slots

    def __hash__(self) -> int:
        if not trust.given:
            raise Looked
        return hash(self.slots)

    def __eq__(self, other: object) -> bool:
        if not trust.given:
            raise Looked
        return type(other) is type(self) and self.slots == other.slots

    def __getattr__(self, name: str) -> NoReturn:
        raise Looked

    @property  # type: ignore[misc]  # isinstance() asks for __class__ when the type itself does not fit
    def __class__(self) -> Any:
        raise Looked


for _name in _LOOKS:
    setattr(_Opaque, f"__{_name}__", _look)


class Symbol(_Opaque):
    """An observed value; ``slots`` is its number among the item's values."""

    __slots__ = ()

    def __hash__(self) -> int:
        if not trust.given:
            raise Looked
        return self.slots  # type: ignore[no-any-return]

    __eq__ = _Opaque.__eq__


for _name in ("len", "iter", "getitem"):
    setattr(Symbol, f"__{_name}__", _look)


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


def is_item(value: Any) -> bool:
    """Whether a value is the stand-in of a data item or of a part of it."""
    return type(value) in CONTAINERS


def is_symbol(value: Any) -> bool:
    return type(value) is Symbol


def is_hashable(part: Any) -> bool:
    """Whether a part of a key could be hashed were it not compared by identity."""
    if type(part) in (tuple, ItemTuple):
        return all(map(is_hashable, part))
    return type(part) not in (ItemList, ItemDict)


def holds_data(part: Any) -> bool:
    """Whether a compound part of a key holds symbols, or is made of symbols."""
    if type(part) in (tuple, ItemTuple):
        return any(is_symbol(inner) or holds_data(inner) for inner in part)
    return is_item(part)


def plain(part: Any) -> Any:
    """A part of a key without its identity."""
    return tuple(map(plain, part)) if type(part) in (tuple, ItemTuple) else part


def by_identity(item: Any) -> Any:
    """The item with its containers compared by identity."""
    if type(item) is list:
        return ItemList(map(by_identity, item))
    if type(item) is tuple:
        return ItemTuple(map(by_identity, item))
    if type(item) is dict:
        return ItemDict({key: by_identity(value) for key, value in item.items()})
    if hasattr(item, "tolist"):  # numpy arrays and scalars
        return by_identity(item.tolist())
    return item


class Shape:
    """An item's form without its values: `key` is equal for items of one form."""

    def __init__(self, item: Any) -> None:
        self.values: list[Any] = []
        self.key = self._text(item) if type(item) is str else self._form(item)

    def _text(self, item: str) -> Any:
        self.values.extend(item)
        return (str, len(item))

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
        raise Looked  # nothing we could stand in for


def symbolic(item: Any) -> Any:
    """The item with a symbol for every observed value, numbered in reading order."""
    count = iter(range(1 << 62))

    def stand_in(part: Any) -> Any:
        kind = type(part)
        if kind is list:
            return ItemList(map(stand_in, part))
        if kind is tuple:
            return ItemTuple(map(stand_in, part))
        if hasattr(part, "tolist"):
            return stand_in(part.tolist())
        return part if part is None or kind is bool else Symbol(next(count))

    if type(item) is str:
        return SymbolicText(tuple(Symbol(next(count)) for _ in item))
    return stand_in(item)
