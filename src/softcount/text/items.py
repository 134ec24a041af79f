"""Items of any form on disk, for corpora larger than memory: what stories and models of your own
learn from.

An item is made of strings, numbers, truth values, None, lists, tuples and mappings, and is written
as a line of JSON. What JSON does not have is marked: a tuple is ``{"tuple": […]}``, a mapping
``{"dict": [[key, value], …]}``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from softcount.core.errors import DataError, StoreError, brief
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import IntArray
from softcount.text.disk import (
    BLOCK,
    DAMAGED,
    CorpusFolder,
    DiskArray,
    OnProgress,
    StoredColumn,
    new_corpus,
    read_in_blocks,
)

KIND = "items"

FORMS = "give strings, numbers, None, and lists, tuples and mappings of these"


@dataclass(frozen=True, eq=False, repr=False)
class Items(PickledWithoutCaches, Sequence[Any]):
    """Items on disk, each of which is read when it is accessed; slices are lists.

    In memory are where items begin, 8 bytes each, and what was read last.
    """

    corpus: CorpusFolder

    @cached_property
    def _text(self) -> DiskArray:
        return self.corpus.column("text")

    @cached_property
    def _indptr(self) -> IntArray:
        """Item n has the bytes ``indptr[n]:indptr[n + 1]``, (items + 1,)."""
        return self.corpus.offsets("lengths", "text")

    def __len__(self) -> int:
        return self.corpus.facts.n_items

    def __repr__(self) -> str:
        return f"<Items: {len(self):,} in {self.corpus.folder}>"

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.select(index)
        return self.select([range(len(self))[index]])[0]

    def __iter__(self) -> Iterator[Any]:
        """Yield all items; some thousand are read at a time."""
        for first in range(0, len(self), BLOCK):
            yield from self[first : first + BLOCK]

    def select(self, numbers: Any) -> list[Any]:
        """Read items, in this order.

        ``numbers``  a slice, or an array of item numbers or of truth values
        """
        if isinstance(numbers, slice) and numbers.step in (None, 1):
            first, last, _ = numbers.indices(len(self))
            if first >= last:
                return []
            return self._parse(self._text[self._indptr[first] : self._indptr[last]], last - first)
        chosen = np.arange(len(self))[numbers]
        lengths = self._indptr[chosen + 1] - self._indptr[chosen]
        begins = np.cumsum(lengths) - lengths
        places = np.repeat(self._indptr[chosen] - begins, lengths) + np.arange(lengths.sum())
        return self._parse(self._text[places], len(chosen))

    def _parse(self, text: Any, n: int) -> list[Any]:
        """Parse ``n`` items, lines of JSON, all at once: that takes a fifth of the time."""
        content = text.tobytes()
        try:
            if content.count(b"\n") != n or content[-1:] not in (b"", b"\n"):
                raise ValueError("items do not end where they should")
            lines = content[:-1].replace(b"\n", b",").decode("ascii")
            items = json.loads(f"[{lines}]", object_hook=_unmark)
            if len(items) != n:
                raise ValueError("a line does not hold one item")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(
                f"the items in {self.corpus.folder} cannot be read: {error}", DAMAGED
            ) from error
        return items  # type: ignore[no-any-return]

    def name(self, number: int) -> str:
        """Return the name of an item for messages: FILE:LINE if known."""
        return self.corpus.name_item(number)


def build_items(
    data: Any,
    path: str | os.PathLike[str],
    *,
    on_progress: OnProgress = lambda items: None,
) -> Items:
    """Write items to a folder, for corpora larger than memory, and open them.

    Some thousand items are in memory at a time. Arrays and numbers of numpy become lists and
    numbers of Python.

    ``data``  an iterable of items, or a mapping from names (of files, say) to such
    ``path``  the folder to create

    >>> import tempfile
    >>> some = build_items(["HTH", ("A", ["H", None]), {"a": 1}], tempfile.mkdtemp() + "/corpus")
    >>> len(some), some[0], some[1:], some.select([2, 0])
    (3, 'HTH', [('A', ['H', None]), {'a': 1}], [{'a': 1}, 'HTH'])
    """
    columns = {"text": StoredColumn("|u1"), "lengths": StoredColumn("<i8")}
    with new_corpus(path, KIND, columns, on_progress) as writer:
        for block, name in read_in_blocks(data, writer, "item"):
            lines = []
            for n, item in enumerate(block):
                try:
                    lines.append(json.dumps(_mark(item), separators=(",", ":")) + "\n")
                except (TypeError, ValueError, RecursionError) as error:
                    raise DataError(
                        f"{name(n)} cannot be written: {error}: {brief(item)}", FORMS
                    ) from error
            text = np.frombuffer("".join(lines).encode("ascii"), np.uint8)
            writer.append(len(block), text=text, lengths=np.array(list(map(len, lines))))
    return open_items(CorpusFolder.open(path))


def open_items(corpus: CorpusFolder) -> Items:
    """Open items on disk; their lengths are read, and items when they are needed."""
    items = Items(corpus)
    _ = items._indptr  # checked now, not in the middle of a fit
    return items


def _mark(value: Any) -> Any:
    """Return a value as JSON values, with marks for tuples and mappings."""
    kind = type(value)
    if value is None or kind in (str, int, float, bool):
        return value
    if kind is list:
        return list(map(_mark, value))
    if kind is tuple:
        return {"tuple": list(map(_mark, value))}
    if kind is dict:
        return {"dict": [[_mark(key), _mark(each)] for key, each in value.items()]}
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return _mark(value.tolist())
    raise TypeError(f"it holds a value of type {kind.__name__}")


def _unmark(marked: dict[str, Any]) -> Any:
    """Return the tuple or the mapping that `_mark` made this of."""
    ((kind, content),) = marked.items()
    if kind == "tuple":
        return tuple(content)
    if kind == "dict":
        return dict(content)
    raise ValueError(f"{brief(kind)} is no kind of value")
