"""Running a story forward: make new items of the shapes that the training data had.

A story that does not look at observed values says, for each shape of item, which tables its values
are drawn from. Given a shape, the sum over derivations with every observation left open is a
circuit like any other; we draw a derivation from it, and then the values from the rows that it
names. Values that only appear as conditions (the source words of an alignment) are kept from a
training item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from softcount.errors import StoryError
from softcount.models.story.circuit import Circuit, compile_alone
from softcount.models.story.core import StoryCore
from softcount.models.story.engine import NO_LEAVES, Pass
from softcount.models.story.language import Entry, Story
from softcount.models.story.support import TableSupport
from softcount.models.story.symbols import Looked, Shape, is_symbol
from softcount.models.story.trail import Trail, trace_story
from softcount.types import Array, How, Params


class Forward:
    """Draws items like those of the training data."""

    def __init__(self, core: StoryCore, story: Story, params: Params, items: Sequence[Any]) -> None:
        self.core, self.story, self.params, self.items = core, story, params, items
        self._plans: dict[Any, _Plan] = {}

    def draw(self, rng: np.random.Generator) -> Any:
        """An item of the shape of a random training item."""
        item = self.items[int(rng.integers(len(self.items)))]
        try:
            shape = Shape(item)
            if shape.key not in self._plans:
                trail = trace_story(self.story, item, symbolic=True)
                self._plans[shape.key] = _Plan(self.core, self.params, trail)
        except Looked:
            raise StoryError(
                f"story {self.story.name!r} looks at the observed values, so it cannot be run "
                "forward",
                "use observed values only as table indices and as arguments of stories",
            ) from None
        values = self._plans[shape.key].values(shape.values, rng)
        return _refilled(item, iter(values))


class _Plan:
    """How values of one shape are drawn."""

    def __init__(self, core: StoryCore, params: Params, trail: Trail) -> None:
        self.core, self.params, self.trail = core, params, trail
        self.drawn = [is_symbol(entry.key[-1]) for entry in trail.entries]
        given = {p.slots for entry in trail.entries for p in entry.key[:-1] if is_symbol(p)}
        if given & {entry.key[-1].slots for entry in self._outcomes(range(trail.n_events))}:
            raise StoryError(
                "this story cannot be run forward: a value is drawn from one table and is the "
                "condition of another",
                "generate works where every observed value is an outcome or a condition, not both",
            )
        circuit = compile_alone(trail)
        assert circuit is not None  # it was learned from
        self.circuit: Circuit = circuit

    def _outcomes(self, events: Iterable[int]) -> list[Entry]:
        """What events stand for, of those whose outcome is drawn."""
        return [self.trail.entries[event] for event in events if self.drawn[event]]

    def values(self, old: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """New values for the slots that are drawn; those that are only conditions stay."""
        values, filled = list(old), set()
        for entry in self._outcomes(self._happened(old, rng)):
            slot = entry.key[-1].slots
            if slot in filled:
                raise StoryError(
                    "this story cannot be run forward: a derivation explains one observed value "
                    "twice",
                    "each observed value must be the outcome of one table entry",
                )
            filled.add(slot)
            values[slot] = self._outcome(entry, old, rng)
        return values

    def _happened(self, old: Sequence[Any], rng: np.random.Generator) -> list[int]:
        """The events of a derivation that is drawn with all outcomes left open."""
        theta = np.array([self._open(entry, old) for entry in self.trail.entries])
        constants = self.circuit.constants
        work = Pass(self.circuit.rows, theta[constants], "sample")
        work.inside(NO_LEAVES, theta)
        how = How(fill="sample", stream=int(rng.integers(2**63)))
        only = np.ones((1, 1), bool)
        work.count(only, how, only.astype(np.int64), np.zeros_like(theta))
        times = work.collect(len(constants)).astype(int)
        return np.repeat(constants, times).tolist()

    def _row(self, entry: Entry, old: Sequence[Any]) -> tuple[TableSupport, slice]:
        table = self.core.support.tables[entry.table]
        prefix: Array = np.zeros(1, np.int64)
        for level, part in zip(table.levels, entry.key[:-1], strict=False):
            value = old[part.slots] if is_symbol(part) else part
            prefix = level.rank(prefix, table.lexicon.find([value]))
        row = int(prefix[0])
        return table, slice(table.indptr[row], table.indptr[row + 1]) if row >= 0 else slice(0)

    def _open(self, entry: Entry, old: Sequence[Any]) -> float:
        """The weight of an event when its observed outcome is left open: its row's mass."""
        table, row = self._row(entry, old)
        if is_symbol(entry.key[-1]):
            return float(self.params[entry.table][row].sum())
        codes = [table.lexicon.find([old[p.slots] if is_symbol(p) else p]) for p in entry.key]
        found = int(table.find(codes)[0])
        return float(self.params[entry.table][found]) if found >= 0 else 0.0

    def _outcome(self, entry: Entry, old: Sequence[Any], rng: np.random.Generator) -> Any:
        table, row = self._row(entry, old)
        weights = np.asarray(self.params[entry.table][row])
        chosen = row.start + rng.choice(len(weights), p=weights / weights.sum())
        return table.lexicon.values[table.codes[chosen, -1]]


def _refilled(item: Any, values: Any) -> Any:
    """The item with new values in its places."""
    if type(item) is str:
        drawn = [next(values) for _ in item]
        return "".join(map(str, drawn))

    def fill(part: Any) -> Any:
        if type(part) in (list, tuple):
            return type(part)(map(fill, part))
        if hasattr(part, "tolist"):
            return fill(part.tolist())
        return part if part is None or type(part) is bool else next(values)

    return fill(item)
