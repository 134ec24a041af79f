"""All derivations of an item, one by one, for items that have few; and what is hidden in them.

A story says what came about, not which part of it is hidden. A derivation is named by its hidden
values: the outcomes of its events that were not observed and that not all derivations share. In a
story of two coins, these are the coins; in one of a tagger, the tags. Where all outcomes were
observed (words of a translation), the conditions say what is hidden.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.core.posteriors import check_posteriors
from softcount.core.types import EStep, FloatArray, Params, Stats
from softcount.stories.data import StoryCorpus
from softcount.stories.language import (
    Hypergraph,
    ItemShape,
    Symbol,
    TableEntry,
    ValueInspected,
    trace_story,
)

MOST = 200
"""Items with more derivations than this are not enumerated."""
HIDDEN_NOTHING = "observed"
"""The name of a derivation in which nothing is hidden."""


@dataclass(frozen=True, eq=False)
class DerivationList:
    """All derivations of one item.

    ``events``  the table entries of each derivation, in order
    ``labels``  the hidden values of each: a single value, or a tuple; several may have the same
    """

    events: tuple[tuple[TableEntry, ...], ...]
    labels: tuple[Hashable, ...]


def list_derivations(story: Any, item: Any, most: int = MOST) -> DerivationList | None:
    """List the derivations of an item; None if there are more than ``most``."""
    graph, values = _trace(story, item)
    found = _enumerate(graph, most)
    if found is None:
        return None

    def read(part: Any) -> Any:
        return values[part.slots] if type(part) is Symbol else part

    entries = [TableEntry(each.table, tuple(map(read, each.key))) for each in graph.entries]
    observed: set[Any] = set()
    if not any(type(part) is Symbol for each in graph.entries for part in each.key):
        observed = {*values, *(c for value in values if isinstance(value, str) for c in value)}

    def is_hidden(part: Any) -> bool:
        return type(part) is not Symbol and (not observed or part not in observed)

    shared = set.intersection(*map(set, found)) if found else set()
    own = [[e for e in events if e not in shared] for events in found]
    labels: list[tuple[Hashable, ...]] = [
        tuple(graph.entries[e].key[-1] for e in some if is_hidden(graph.entries[e].key[-1]))
        for some in own
    ]
    if len(set(labels)) < 2 and len(found) > 1:  # all outcomes are observed: their conditions
        labels = [tuple(p for e in some for p in entries[e].key[:-1]) for some in own]
    if len(found) == 1:
        outcomes = (graph.entries[e].key[-1] for e in found[0])
        labels = [tuple(filter(is_hidden, outcomes))]
    return DerivationList(
        tuple(tuple(entries[e] for e in events) for events in found),
        tuple(_shorten(label) for label in labels),
    )


def _shorten(label: tuple[Hashable, ...]) -> Hashable:
    """Return a single value without its tuple."""
    return label[0] if len(label) == 1 else label or HIDDEN_NOTHING


def _trace(story: Any, item: Any) -> tuple[Hypergraph, Sequence[Any]]:
    """Trace an item, with symbols for what was observed unless the story inspects it."""
    try:
        shape = ItemShape(item)
    except ValueInspected:
        return trace_story(story, item), ()
    try:
        return trace_story(story, item, symbolic=True), shape.values
    except ValueInspected:
        return trace_story(story, item), shape.values


def _enumerate(graph: Hypergraph, most: int) -> list[tuple[int, ...]] | None:
    """Return the events of every derivation, depth first; None if there are more than ``most``."""
    n, node_ends, ends = graph.n_events, graph.node_ends.tolist(), graph.alternative_ends.tolist()
    parts = graph.parts.tolist()
    done: list[tuple[int, ...]] = []
    # derivations in the making: the events so far, and the parts still to be derived, last first
    open_ones: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), (n,))]
    tries = 0
    while open_ones:
        events, waiting = open_ones.pop()
        while waiting and waiting[-1] < n:
            events, waiting = (*events, waiting[-1]), waiting[:-1]
        if not waiting:
            done.append(events)
            if len(done) > most:
                return None
            continue
        node = waiting[-1] - n
        tries += 1
        if tries > 100 * most:  # many beginnings that lead nowhere, or very long derivations
            return None
        for alternative in range(node_ends[node + 1] - 1, node_ends[node] - 1, -1):
            own = parts[ends[alternative] : ends[alternative + 1]]
            open_ones.append((events, (*waiting[:-1], *reversed(own))))
    return done


def posterior(logs: FloatArray, temper: float, hard: bool) -> FloatArray:
    """Return the posterior of derivations from their log-probabilities, (derivations,)."""
    top = logs.max(initial=-np.inf)
    if not np.isfinite(top):
        return np.full(len(logs), np.nan)
    if hard:
        best = np.zeros(len(logs))
        best[int(logs.argmax())] = 1.0
        return best
    weights = np.exp(temper * (logs - top))
    sums: FloatArray = weights / weights.sum()
    return sums


# Posteriors of many items, as tables


MOST_COLUMNS = 500
"""With more hidden values than this over all items, events are clearer."""


def list_all(
    story: Any, items: Sequence[Any], most_columns: int | None = None
) -> list[DerivationList] | None:
    """List the derivations of all items; None if there are too many to be laid out."""
    listed: list[DerivationList] = []
    labels: set[Hashable] = set()
    for item in items:
        one = list_derivations(story, item)
        if one is None:
            return None
        listed.append(one)
        labels |= set(one.labels)
        if most_columns is None and len(labels) > MOST_COLUMNS:
            return None
    return listed


def name_item(item: Any) -> str:
    """Return a short name of an item for tables."""
    text = str(item)
    if isinstance(item, list | tuple):
        inner = all(isinstance(part, str) for part in item)
        text = " ".join(item) if inner else " | ".join(map(name_item, item))
    return text if len(text) <= 40 else f"{text[:39]}…"


def find_columns(listed: Sequence[DerivationList]) -> list[Hashable]:
    """Return all hidden values, in order of first appearance."""
    return list(dict.fromkeys(label for one in listed for label in one.labels))


def _log_probabilities(core: Any, one: DerivationList, params: Params) -> FloatArray:
    """Return log p(item, derivation), (derivations,)."""
    logs = np.zeros(len(one.events))
    with np.errstate(divide="ignore"):
        for d, events in enumerate(one.events):
            for table, key in events:
                place = _place(core, table, key)
                logs[d] += -np.inf if place is None else np.log(params[table][place])
    return logs


def _place(core: Any, table: str, key: tuple[Any, ...]) -> int | None:
    """Return the place of an entry in its table; None if the model does not have it."""
    codes = [core.support.lexicon.find([part]) for part in key]
    entry = int(core.support.find(table, codes)[0])
    return None if entry >= core.support.size else entry - core.support.offsets[table]


def lay_out(
    core: Any, listed: Sequence[DerivationList], params: Params, how: EStep
) -> tuple[FloatArray, tuple[Hashable, ...]]:
    """Return the posteriors of hidden values, (items, values), and the names of the values."""
    columns = find_columns(listed)
    number = {label: c for c, label in enumerate(columns)}
    values = np.full((len(listed), len(columns)), np.nan)
    for row, one in zip(values, listed, strict=True):
        found = posterior(_log_probabilities(core, one, params), how.temper, how.fill == "hard")
        for label in one.labels:
            row[number[label]] = 0.0
        for label, p in zip(one.labels, found.tolist(), strict=True):
            row[number[label]] += p
    return values, tuple(columns)


def lay_out_events(
    core: Any, story: Any, items: Sequence[Any], params: Params, how: EStep
) -> tuple[FloatArray, tuple[Hashable, ...]]:
    """Return the expected counts of table entries in each item, and the entries."""
    rows: list[dict[TableEntry, float]] = []
    for item in items:
        corpus = StoryCorpus(story, [item], core.support)
        stats = core.expect(params, corpus.shards()[0], how)
        by_table = core.counts_by_key(stats)
        rows.append(
            {TableEntry(t, key): n for t, row in by_table.items() for key, n in row.items()}
        )
    columns = list(dict.fromkeys(entry for row in rows for entry in row))
    values = np.array([[row.get(entry, 0.0) for entry in columns] for row in rows])
    return values, tuple(columns)


def count_given(core: Any, listed: Sequence[DerivationList], params: Params, values: Any) -> Stats:
    """Return the expected counts of table entries under given posteriors of hidden values.

    Where several derivations have the same hidden value, it is shared by their probabilities.
    """
    columns = find_columns(listed)
    number = {label: c for c, label in enumerate(columns)}
    rows = check_posteriors(values, np.full((len(listed), len(columns)), np.nan))
    counts = {name: np.zeros(len(table)) for name, table in core.support.tables.items()}
    for row, one in zip(rows, listed, strict=True):
        own = np.nan_to_num(posterior(_log_probabilities(core, one, params), 1.0, False))
        total: dict[Hashable, float] = {}
        for label, p in zip(one.labels, own.tolist(), strict=True):
            total[label] = total.get(label, 0.0) + p
        for label, p, events in zip(one.labels, own.tolist(), one.events, strict=True):
            share = p / total[label] if total[label] > 0.0 else 1.0 / one.labels.count(label)
            weight = float(row[number[label]]) * share
            for table, key in events:
                place = _place(core, table, key)
                if place is not None and weight:
                    counts[table][place] += weight
    return Stats(counts, items=float(len(listed)))
