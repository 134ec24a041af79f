"""Concrete trails of one form, brought under one trail with symbols where their keys differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from softcount.models.story.language import Entry
from softcount.models.story.symbols import Symbol
from softcount.models.story.trail import Trail


def with_symbols(trails: Sequence[Trail]) -> tuple[Trail, list[list[Hashable]]]:
    """One trail for all, and what each of its symbols stands for in each of them."""
    columns: list[list[Hashable]] = []
    entries = []
    for alike in zip(*(trail.entries for trail in trails), strict=True):
        parts: list[Hashable] = []
        for values in zip(*(entry.key for entry in alike), strict=True):
            first = values[0]
            if all(value is first or value == first for value in values):
                parts.append(first)
            else:
                parts.append(Symbol(len(columns)))
                columns.append(list(values))
        entries.append(Entry(alike[0].table, tuple(parts)))
    return replace(trails[0], entries=tuple(entries)), columns
