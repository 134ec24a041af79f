"""Single derivations read off a circuit: the best, a drawn one, and new items drawn forward."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.core.errors import ImpossibleItem, StoryError, brief
from softcount.core.types import Array, EStep, Fill, Params
from softcount.stories import kernels
from softcount.stories.circuit import Circuit, compile_alone
from softcount.stories.core import StoryCore
from softcount.stories.inside_outside import NO_LEAVES, InsideOutside
from softcount.stories.language import (
    ItemShape,
    Story,
    TableEntry,
    ValueInspected,
    describe,
    is_symbol,
)
from softcount.stories.tables import TableSupport
from softcount.stories.tracing import Hypergraph, trace_story

_DEEPEST = 30  # indentation of a printed derivation


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """One way in which an item came about: what happened, and the smaller stories it is made of."""

    story: str
    happened: tuple[tuple[TableEntry, float], ...]
    parts: tuple[Derivation, ...]

    def walk(self) -> Iterator[tuple[int, Derivation]]:
        """This derivation and all inside it, top down, each with its depth."""
        waiting = [(0, self)]
        while waiting:
            depth, each = waiting.pop()
            yield depth, each
            waiting.extend((depth + 1, part) for part in reversed(each.parts))

    @property
    def events(self) -> list[TableEntry]:
        """All table entries that took part, in order."""
        return [entry for _, each in self.walk() for entry, _ in each.happened]

    @property
    def log_probability(self) -> float:
        """log P(item, this derivation)."""
        logs = (math.log(p) for _, each in self.walk() for _, p in each.happened)
        return math.fsum(logs)

    def __repr__(self) -> str:
        return f"<derivation of {self.story}: {len(self.events)} events>"

    def __str__(self) -> str:
        lines = []
        for depth, each in self.walk():
            happened = "  ".join(f"{entry!r} {p:.4g}" for entry, p in each.happened)
            lines.append(f"{'  ' * min(depth, _DEEPEST)}{each.story}  {happened}".rstrip())
        return "\n".join(lines)


def derive(
    core: StoryCore, story: Story, params: Params, item: Any, fill: Fill, seed: int = 0
) -> Derivation:
    """The best derivation of an item (``fill="hard"``) or a drawn one (``fill="sample"``)."""
    graph = trace_story(story, item)
    circuit = compile_alone(graph)
    theta = _probabilities(core, params, graph)
    if circuit is None:
        raise ImpossibleItem(
            f"no derivation explains {brief(item)}", "the story yields nothing that fits it"
        )
    work = InsideOutside(circuit.rows, theta[circuit.constants], fill)
    value, _ = work.inside(NO_LEAVES, theta)
    if value[0, 0] <= 0.0:
        unseen = next((e for e, p in zip(graph.entries, theta, strict=True) if p == 0.0), None)
        raise ImpossibleItem(
            f"{brief(item)} has probability zero under the learned tables"
            + (f"; for instance {unseen!r} is zero" if unseen else ""),
            "entries that never occurred in training have no probability: declare "
            "table(name, outcomes=…) and smooth",
        )
    return DerivationReader(graph, circuit, work, theta, seed).tree()


def _probabilities(core: StoryCore, params: Params, graph: Hypergraph) -> Array:
    """The probability of every event of a graph; 0 for what is in no table."""
    theta = np.zeros(graph.n_events)
    for number, (table, key) in enumerate(graph.entries):
        codes = [core.support.lexicon.find([part]) for part in key]
        entry = int(core.support.find(table, codes)[0])
        if entry < core.support.size:
            theta[number] = params[table][entry - core.support.offsets[table]]
    return theta


class DerivationReader:
    """Walks down a circuit and decides every sum that it meets, each use anew."""

    def __init__(
        self, graph: Hypergraph, circuit: Circuit, work: InsideOutside, theta: Array, seed: int
    ) -> None:
        self.graph, self.circuit, self.work, self.theta = graph, circuit, work, theta
        self.stream = np.zeros(1, np.uint64)
        kernels.seed_streams(np.uint64(seed), np.zeros(1, np.uint64), self.stream)

    def _choose(self, node: int) -> int:
        """The alternative (its number in the graph) by which a node comes about."""
        row, work = int(self.circuit.node_row[node]), self.work
        if work.fill == "hard":
            chosen = kernels.best_term(work.rows, row, work.weight, work.value, 0)
        else:
            chosen = kernels.draw_term(work.rows, row, work.weight, work.value, 0, self.stream)
        return int(self.circuit.alternatives[chosen])

    def tree(self) -> Derivation:
        """The whole derivation; with a stack of our own, for derivations may be deep."""
        order: list[tuple[int, tuple[tuple[TableEntry, float], ...], int]] = []
        waiting = [0]
        graph = self.graph
        while waiting:
            node = waiting.pop()
            a = self._choose(node)
            parts = graph.parts[graph.alternative_ends[a] : graph.alternative_ends[a + 1]]
            events = parts[parts < graph.n_events].tolist()
            children = (parts[parts >= graph.n_events] - graph.n_events).tolist()
            happened = tuple((graph.entries[e], float(self.theta[e])) for e in events)
            order.append((node, happened, len(children)))
            waiting.extend(reversed(children))
        finished: list[Derivation] = []
        for node, happened, n_parts in reversed(order):
            made = tuple(finished.pop() for _ in range(n_parts))
            finished.append(Derivation(describe(*graph.calls[node]), happened, made))
        return finished[0]


class ForwardSampler:
    """Draws items like those of the training data."""

    def __init__(self, core: StoryCore, story: Story, params: Params, items: Sequence[Any]) -> None:
        self.core, self.story, self.params, self.items = core, story, params, items
        self._plans: dict[Any, ForwardPlan] = {}

    def draw(self, rng: np.random.Generator) -> Any:
        """An item of the shape of a random training item."""
        item = self.items[int(rng.integers(len(self.items)))]
        try:
            shape = ItemShape(item)
            if shape.key not in self._plans:
                graph = trace_story(self.story, item, symbolic=True)
                self._plans[shape.key] = ForwardPlan(self.core, self.params, graph)
        except ValueInspected:
            raise StoryError(
                f"story {self.story.name!r} looks at the observed values, so it cannot be run "
                "forward",
                "use observed values only as table indices and as arguments of stories",
            ) from None
        values = self._plans[shape.key].values(shape.values, rng)
        return _refill(item, iter(values))


class ForwardPlan:
    """How values of one shape are drawn."""

    def __init__(self, core: StoryCore, params: Params, graph: Hypergraph) -> None:
        self.core, self.params, self.graph = core, params, graph
        self.drawn = [is_symbol(entry.key[-1]) for entry in graph.entries]
        read_start = {p.slots for entry in graph.entries for p in entry.key[:-1] if is_symbol(p)}
        if read_start & {entry.key[-1].slots for entry in self._outcomes(range(graph.n_events))}:
            raise StoryError(
                "this story cannot be run forward: a value is drawn from one table and is the "
                "condition of another",
                "generate works where every observed value is an outcome or a condition, not both",
            )
        circuit = compile_alone(graph)
        assert circuit is not None  # it was learned from
        self.circuit: Circuit = circuit

    def _outcomes(self, events: Iterable[int]) -> list[TableEntry]:
        """What events stand for, of those whose outcome is drawn."""
        return [self.graph.entries[event] for event in events if self.drawn[event]]

    def values(self, old: Sequence[Any], rng: np.random.Generator) -> list[Any]:
        """New values for the slots that are drawn; those that are only conditions stay."""
        values, filled = list(old), set()
        for entry in self._outcomes(self._draw_events(old, rng)):
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

    def _draw_events(self, old: Sequence[Any], rng: np.random.Generator) -> list[int]:
        """The events of a derivation that is drawn with all outcomes left open."""
        theta = np.array([self._open_weight(entry, old) for entry in self.graph.entries])
        constants = self.circuit.constants
        work = InsideOutside(self.circuit.rows, theta[constants], "sample")
        work.inside(NO_LEAVES, theta)
        how = EStep(fill="sample", stream=int(rng.integers(2**63)))
        only = np.ones((1, 1), bool)
        work.count(only, how, only.astype(np.int64), np.zeros_like(theta))
        times = work.collect(len(constants)).astype(int)
        return np.repeat(constants, times).tolist()

    def _row(self, entry: TableEntry, old: Sequence[Any]) -> tuple[TableSupport, slice]:
        table = self.core.support.tables[entry.table]
        prefix: Array = np.zeros(1, np.int64)
        for level, part in zip(table.levels, entry.key[:-1], strict=False):
            value = old[part.slots] if is_symbol(part) else part
            prefix = level.rank(prefix, table.lexicon.find([value]))
        row = int(prefix[0])
        return table, slice(table.indptr[row], table.indptr[row + 1]) if row >= 0 else slice(0)

    def _open_weight(self, entry: TableEntry, old: Sequence[Any]) -> float:
        """The weight of an event when its observed outcome is left open: its row's mass."""
        table, row = self._row(entry, old)
        if is_symbol(entry.key[-1]):
            return float(self.params[entry.table][row].sum())
        codes = [table.lexicon.find([old[p.slots] if is_symbol(p) else p]) for p in entry.key]
        found = int(table.find(codes)[0])
        return float(self.params[entry.table][found]) if found >= 0 else 0.0

    def _outcome(self, entry: TableEntry, old: Sequence[Any], rng: np.random.Generator) -> Any:
        table, row = self._row(entry, old)
        weights = np.asarray(self.params[entry.table][row])
        chosen = row.start + rng.choice(len(weights), p=weights / weights.sum())
        return table.lexicon.values[table.codes[chosen, -1]]


def _refill(item: Any, values: Any) -> Any:
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
