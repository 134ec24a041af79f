"""Annotators who may be silent, copy, guess, or mean one of a set of labels: in plain Python.

Every hidden value of every item is gone through, one by one: its true label, and for every vote
whether it was copied, whether the annotator cared, and which label of a set was meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

SILENT = "(silent)"


class World(NamedTuple):
    """Tables as nested dictionaries: a table that is None says that there is no such event."""

    labels: Sequence[str]
    weights: Mapping[str, float]
    tying: str
    tables: Mapping[str, Any]
    """confusion[a][k][l]; right[a]; care[a], guess[a][l]; silent[a][k]; copies[a]; words[k][w]"""
    groups: Sequence[Sequence[str]] = ()
    asks_all: bool = False


Event = tuple[Any, ...]


def ways_to_say(world: World, a: str, k: str, label: str) -> Iterator[tuple[float, list[Event]]]:
    """All ways in which an annotator says one label, uncopied: probability and events."""
    t, K = world.tables, len(world.labels)
    speaks: list[tuple[float, list[Event]]] = [(1.0, [])]
    if "silent" in t:
        speaks = [(1.0 - t["silent"][a][k], [("speaks", a, k)])]
    for p, events in speaks:
        if world.tying == "none":
            yield p * t["confusion"][a][k][label], [*events, ("confusion", a, k, label)]
        elif world.tying == "one-coin" and label == k:
            yield p * t["right"][a], [*events, ("right", a)]
        elif world.tying == "one-coin":
            yield p * (1.0 - t["right"][a]) / (K - 1), [*events, ("wrong", a)]
        else:
            if label == k:
                yield p * t["care"][a], [*events, ("care", a)]
            yield (
                p * (1.0 - t["care"][a]) * t["guess"][a][label],
                [*events, ("careless", a), ("guess", a, label)],
            )


def ways_of_a_vote(
    world: World, a: str, k: str, said: Any, before: Any
) -> list[tuple[float, list[Event]]]:
    """All ways in which a vote comes about; ``before``: what the one before in the group said."""
    own: list[tuple[float, list[Event]]] = []
    if said == SILENT:
        own.append((world.tables["silent"][a][k], [("silent", a, k)]))
    else:
        for label in sorted(said) if isinstance(said, frozenset) else [said]:
            own.extend(ways_to_say(world, a, k, label))
    if before is None:
        return own
    c = world.tables["copies"][a]
    ways = [(p * (1.0 - c), [*events, ("own", a)]) for p, events in own]
    if said == before:
        ways.append((c, [("copied", a)]))
    return ways


def all_ways(
    world: World,
    said: Mapping[str, Any],
    annotators: Sequence[str],
    words: Sequence[str] = (),
    known: str | None = None,
) -> Iterator[tuple[float, str, list[Event]]]:
    """All hidden values of an item: joint probability, true label, events."""
    for k in world.labels:
        if known is not None and k != known:
            continue
        p, events = world.weights[k], [("label", k)]
        for word in words:
            p *= world.tables["words"][k][word]
            events.append(("word", k, word))
        votes = []
        for a in annotators:
            vote = said.get(a, SILENT if world.asks_all else None)
            if vote is None:
                continue
            before = None
            for group in world.groups:
                if a in group:
                    for other in group[: group.index(a)]:
                        other_said = said.get(other, SILENT if world.asks_all else None)
                        before = other_said if other_said is not None else before
            votes.append(ways_of_a_vote(world, a, k, vote, before))
        for ways in product(*votes):
            q, more = p, list(events)
            for r, its in ways:
                q *= r
                more += its
            yield q, k, more


def enumerated(
    world: World,
    items: Sequence[Mapping[str, Any]],
    annotators: Sequence[str],
    texts: Sequence[Sequence[str]] | None = None,
    known: Sequence[str | None] | None = None,
) -> tuple[list[float], list[dict[str, float]], dict[Event, float], list[float]]:
    """For each item its probability and the posteriors of its labels; the expected counts of all
    events; the probability of each item's best hidden values."""
    totals, posteriors, best = [], [], []
    counts: dict[Event, float] = defaultdict(float)
    for number, said in enumerate(items):
        words = texts[number] if texts is not None else ()
        ways = list(all_ways(world, said, annotators, words, known[number] if known else None))
        total = sum(p for p, _, _ in ways)
        shares = dict.fromkeys(world.labels, 0.0)
        for p, k, events in ways:
            shares[k] += p / total
            for event in events:
                counts[event] += p / total
        totals.append(total)
        posteriors.append(shares)
        best.append(max(p for p, _, _ in ways))
    return totals, posteriors, dict(counts), best
