"""Hidden Markov models by going through all paths, one after the other, in plain Python.

A path through a sentence is a list of *events*, each an entry (row, column) of a table; p(path,
sentence) is the product of these entries. All else is sums over paths, or the largest of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Event = tuple[str, int, int]
Path = tuple[int, ...]


@dataclass(frozen=True)
class Sentence:
    """Words, the states that each may have, and how often the sentence counts."""

    words: Sequence[int]
    allowed: Sequence[Sequence[int]]
    weight: float = 1.0


@dataclass(frozen=True)
class Chain:
    """A model: its tables, of order 1 or 2, with a stop distribution or without."""

    tables: Mapping[str, Any]
    n_states: int
    order: int
    stop: bool

    def events(self, words: Sequence[int], path: Path) -> Iterator[Event]:
        """What must come about for this path and these words."""
        here: tuple[str, int] = ("start", 0)
        for i, (word, state) in enumerate(zip(words, path, strict=True)):
            yield (*here, state)
            yield "emissions", state, word
            if self.order == 1:
                here = ("transitions", state)
            elif i == 0:
                here = ("second", state)
            else:
                here = ("transitions", path[i - 1] * self.n_states + state)
        if self.stop and len(path):
            yield (*here, self.n_states)

    def paths(self, sentence: Sentence) -> Iterator[tuple[Path, float]]:
        """All paths that are allowed, and p(path, sentence)."""
        for path in itertools.product(*sentence.allowed):
            chances = (self.tables[t][r][c] for t, r, c in self.events(sentence.words, path))
            yield path, math.prod(map(float, chances))

    def log_p(self, sentence: Sentence) -> float:
        return log(math.fsum(p for _, p in self.paths(sentence)))

    def log_tempered(self, sentence: Sentence, temper: float) -> float:
        """log Σ p(path, sentence)^temper / temper."""
        return log(math.fsum(p**temper for _, p in self.paths(sentence) if p > 0)) / temper

    def best(self, sentence: Sentence) -> tuple[Path, float]:
        """The best path, and log of its p."""
        path, p = max(self.paths(sentence), key=lambda one: one[1])
        return path, log(p)

    def shares(self, sentence: Sentence, temper: float = 1.0) -> list[tuple[Path, float]]:
        """p(path | sentence), which may be tempered."""
        heated = [(path, p**temper) for path, p in self.paths(sentence) if p > 0]
        total = math.fsum(p for _, p in heated)
        return [(path, p / total) for path, p in heated]

    def posteriors(self, sentence: Sentence) -> Any:
        """p(state | sentence) of each word."""
        found = np.zeros((len(sentence.words), self.n_states))
        for path, share in self.shares(sentence):
            for i, state in enumerate(path):
                found[i, state] += share
        return found

    def no_counts(self) -> dict[str, Any]:
        return {name: np.zeros(np.shape(table)) for name, table in self.tables.items()}

    def add(self, counts: Any, sentence: Sentence, path: Path, share: float) -> None:
        for table, row, column in self.events(sentence.words, path):
            counts[table][row, column] += share * sentence.weight

    def expected(self, sentences: Sequence[Sentence], temper: float = 1.0) -> dict[str, Any]:
        """Expected counts of all entries of all tables."""
        counts = self.no_counts()
        for sentence in sentences:
            for path, share in self.shares(sentence, temper):
                self.add(counts, sentence, path, share)
        return counts


def log(p: float) -> float:
    return math.log(p) if p > 0.0 else -math.inf


def random_tables(
    rng: Any, n_states: int, n_words: int, order: int, stop: bool, sharp: float = 1.0
) -> dict[str, Any]:
    """Tables drawn from Dirichlet distributions, the sharper the smaller ``sharp`` is."""
    shapes = {
        "start": (1, n_states),
        "transitions": (n_states**order, n_states + stop),
        "emissions": (n_states, n_words),
    }
    if order == 2:
        shapes["second"] = (n_states, n_states + stop)
    return {
        name: rng.dirichlet(np.full(columns, sharp), size=rows)
        for name, (rows, columns) in shapes.items()
    }
