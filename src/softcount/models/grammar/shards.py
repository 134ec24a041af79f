"""Sentences as the E-steps of grammars see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from softcount.corpus.cut import parts
from softcount.models.sequences.shards import Sentences as Texts
from softcount.models.sequences.shards import Shard as Text
from softcount.types import Array


def n_spans(lengths: Array) -> Array:
    """How many spans of two words or more sentences have."""
    spans: Array = lengths * (lengths - 1) // 2
    return spans


@dataclass(frozen=True, eq=False)
class Limits:
    """What spans may be: each has a set of nonterminals, set 0 being all of them.

    ``sets``     those of all spans of two words or more, one sentence after the other, the short
                 spans first; None: set 0 everywhere
    ``allowed``  (sets, nonterminals): whether a symbol is in a set
    """

    sets: Array | None
    allowed: Array

    @classmethod
    def none(cls, n_nonterminals: int) -> Limits:
        """Any span may be anything."""
        return cls(None, np.ones((1, n_nonterminals), np.bool_))


@dataclass(frozen=True, eq=False)
class Shard:
    """Some sentences, their words, and what is known of their spans."""

    text: Text
    limits: Limits

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def first_spans(self) -> Array:
        """Where the sets of each sentence begin; empty if there are none."""
        if self.limits.sets is None:
            return np.zeros(0, np.int64)
        sizes = n_spans(np.diff(self.text.indptr))
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    @cached_property
    def order(self) -> Array:
        """Sentences with words, the longest first."""
        lengths = np.diff(self.text.indptr)
        return np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]


@dataclass(frozen=True, eq=False)
class Sentences:
    """The corpus of a grammar: one shard of all sentences, or mini-batches."""

    texts: Texts
    limits: Limits

    @cached_property
    def everything(self) -> Shard:
        """All sentences."""
        return Shard(self.texts.everything, self.limits)

    def __len__(self) -> int:
        return len(self.texts)

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        if batch_size is None:
            return [self.everything]
        return [self.select(some) for some in parts(len(self), len(self), batch_size, seed)]

    def select(self, numbers: Array) -> Shard:
        """Some of the sentences."""
        text, limits = self.texts.select(numbers), self.limits
        if limits.sets is not None:
            first = self.everything.first_spans
            chosen: list[Any] = [limits.sets[first[n] : first[n + 1]] for n in numbers.tolist()]
            limits = replace(limits, sets=np.concatenate([np.zeros(0, np.int64), *chosen]))
        return Shard(text, limits)

    def name(self, number: int) -> str:
        return self.texts.name(number)
