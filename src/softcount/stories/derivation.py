"""Single derivations, read off a circuit: the best one, or one that is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.errors import ImpossibleItem, shown
from softcount.stories import kernels as derivations
from softcount.stories.circuit import Circuit, compile_alone
from softcount.stories.core import StoryCore
from softcount.stories.engine import NO_LEAVES, Pass
from softcount.stories.language import Entry, Story, describe
from softcount.stories.tracing import Trail, trace_story
from softcount.types import Array, Fill, Params

_DEEPEST = 30  # indentation of a printed derivation


@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """One way in which an item came about: what happened, and the smaller stories it is made of."""

    story: str
    happened: tuple[tuple[Entry, float], ...]
    parts: tuple[Derivation, ...]

    def walk(self) -> Iterator[tuple[int, Derivation]]:
        """This derivation and all inside it, top down, each with its depth."""
        waiting = [(0, self)]
        while waiting:
            depth, each = waiting.pop()
            yield depth, each
            waiting.extend((depth + 1, part) for part in reversed(each.parts))

    @property
    def events(self) -> list[Entry]:
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
    trail = trace_story(story, item)
    circuit = compile_alone(trail)
    theta = _probabilities(core, params, trail)
    if circuit is None:
        raise ImpossibleItem(
            f"no derivation explains {shown(item)}", "the story yields nothing that fits it"
        )
    work = Pass(circuit.rows, theta[circuit.constants], fill)
    value, _ = work.inside(NO_LEAVES, theta)
    if value[0, 0] <= 0.0:
        unseen = next((e for e, p in zip(trail.entries, theta, strict=True) if p == 0.0), None)
        raise ImpossibleItem(
            f"{shown(item)} has probability zero under the learned tables"
            + (f"; for instance {unseen!r} is zero" if unseen else ""),
            "entries that never occurred in training have no probability: declare "
            "table(name, outcomes=…) and smooth",
        )
    return _Reading(trail, circuit, work, theta, seed).tree()


def _probabilities(core: StoryCore, params: Params, trail: Trail) -> Array:
    """The probability of every event of a trail; 0 for what is in no table."""
    theta = np.zeros(trail.n_events)
    for number, (table, key) in enumerate(trail.entries):
        codes = [core.support.lexicon.find([part]) for part in key]
        entry = int(core.support.find(table, codes)[0])
        if entry < core.support.size:
            theta[number] = params[table][entry - core.support.offsets[table]]
    return theta


class _Reading:
    """Walks down a circuit and decides every sum that it meets, each use anew."""

    def __init__(self, trail: Trail, circuit: Circuit, work: Pass, theta: Array, seed: int) -> None:
        self.trail, self.circuit, self.work, self.theta = trail, circuit, work, theta
        self.stream = np.zeros(1, np.uint64)
        derivations.streams(np.uint64(seed), np.zeros(1, np.uint64), self.stream)

    def _choose(self, node: int) -> int:
        """The alternative (its number in the trail) by which a node comes about."""
        row, work = int(self.circuit.node_row[node]), self.work
        if work.fill == "hard":
            chosen = derivations.best_term(work.rows, row, work.weight, work.value, 0)
        else:
            chosen = derivations.drawn_term(work.rows, row, work.weight, work.value, 0, self.stream)
        return int(self.circuit.alternatives[chosen])

    def tree(self) -> Derivation:
        """The whole derivation; with a stack of our own, for derivations may be deep."""
        order: list[tuple[int, tuple[tuple[Entry, float], ...], int]] = []
        waiting = [0]
        trail = self.trail
        while waiting:
            node = waiting.pop()
            a = self._choose(node)
            parts = trail.parts[trail.alternative_ends[a] : trail.alternative_ends[a + 1]]
            events = parts[parts < trail.n_events].tolist()
            children = (parts[parts >= trail.n_events] - trail.n_events).tolist()
            happened = tuple((trail.entries[e], float(self.theta[e])) for e in events)
            order.append((node, happened, len(children)))
            waiting.extend(reversed(children))
        finished: list[Derivation] = []
        for node, happened, n_parts in reversed(order):
            made = tuple(finished.pop() for _ in range(n_parts))
            finished.append(Derivation(describe(*trail.calls[node]), happened, made))
        return finished[0]
