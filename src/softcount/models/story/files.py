"""A story's learned tables as arrays and plain facts, for `softcount.store`, and back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from softcount.errors import StoreError
from softcount.models.story.core import StoryCore
from softcount.models.story.language import Story, table
from softcount.models.story.support import Level, Lexicon, Support, TableSupport
from softcount.store import Stored
from softcount.types import Array, Params


def packed(core: StoryCore, params: Params) -> tuple[dict[str, Array], dict[str, Any]]:
    """The tables' keys and probabilities."""
    arrays: dict[str, Array] = {}
    facts: list[dict[str, Any]] = []
    for number, (name, entries) in enumerate(core.support.tables.items()):
        arrays[f"{number}.probability"] = np.asarray(params[name])[: len(entries)]
        for depth, level in enumerate(entries.levels):
            arrays[f"{number}.level.{depth}"] = level.keys
        facts.append({"name": name, "arity": entries.arity, "radix": entries.levels[0].radix})
    values = [_to_json(value) for value in core.support.lexicon.values]
    return arrays, {"name": core.name, "tables": facts, "values": values}


def unpacked(stored: Stored, story: Story) -> tuple[StoryCore, Params]:
    """A core and its parameters; every number is checked before it is used as a place."""
    try:
        lexicon = Lexicon(_from_json(value) for value in stored.meta["values"])
        tables: dict[str, TableSupport] = {}
        params: dict[str, Array] = {}
        for number, facts in enumerate(stored.meta["tables"]):
            name = str(facts["name"])
            tables[name] = _table(stored.arrays, number, facts, lexicon)
            params[name] = _probabilities(stored.arrays[f"{number}.probability"], tables[name])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, StoreError):
            raise
        raise _damaged(str(error)) from error
    core = StoryCore(story.name, Support(tables, lexicon), {name: table(name) for name in tables})
    return core, params


def _table(
    arrays: Mapping[str, Array], number: int, facts: Mapping[str, Any], lexicon: Lexicon
) -> TableSupport:
    radix, arity = int(facts["radix"]), int(facts["arity"])
    if not 1 <= arity <= 64 or not 1 <= radix <= max(len(lexicon), 1):
        raise _damaged("a table's form is out of range")
    levels: list[Level] = []
    n_prefixes = 1
    for depth in range(arity):
        keys = arrays[f"{number}.level.{depth}"]
        good = keys.dtype == np.int64 and keys.ndim == 1 and len(keys) > 0
        if not good or keys[0] < 0 or keys[-1] >= n_prefixes * radix or (np.diff(keys) <= 0).any():
            raise _damaged("a table's keys are out of order")
        levels.append(Level(keys, radix, n_prefixes))
        n_prefixes = len(keys)
    return TableSupport(str(facts["name"]), tuple(levels), lexicon)


def _probabilities(array: Array, entries: TableSupport) -> Array:
    if array.dtype != np.float64 or array.shape != (len(entries),):
        raise _damaged("a table has not one number an entry")
    if not np.isfinite(array).all() or (array < 0).any():
        raise _damaged("a table has numbers that are not probabilities")
    return array


def _to_json(value: Hashable) -> Any:
    if isinstance(value, tuple):
        return [_to_json(part) for part in value]
    if value is None or type(value) in (str, int, float, bool):
        return value
    raise StoreError(
        f"a table's key has the part {value!r}, which cannot be written to a file",
        "use words, numbers and tuples of them as parts of keys",
    )


def _from_json(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(map(_from_json, value))
    if value is None or type(value) in (str, int, float, bool):
        return value  # type: ignore[no-any-return]
    raise _damaged("a value is of an unknown kind")


def _damaged(what: str) -> StoreError:
    return StoreError(f"this is not a file of story tables: {what}", "save the model again")
