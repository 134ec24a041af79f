"""Sentences as the E-steps of grammars see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

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
    """What spans may be: each has a set of symbols, set 0 being all of them.

    ``sets``     those of all spans, one sentence after the other; None: set 0 everywhere.
                 Dense grammars: of spans of two words or more, the short ones first, and of
                 nonterminals. Grammars of rules: of all spans, those that begin first first
    ``allowed``  (sets, symbols): whether a symbol is in a set
    ``sizes``    how many spans of each sentence have a set; None: all of two words or more
    """

    sets: Array | None
    allowed: Array
    sizes: Array | None = None

    @classmethod
    def none(cls, n_symbols: int) -> Limits:
        """Any span may be anything."""
        return cls(None, np.ones((1, n_symbols), np.bool_))


@dataclass(frozen=True, eq=False)
class Shard:
    """Some sentences, their words, and what is known of their spans.

    ``trees``  how often the tree of each sentence has each entry of the tables, if there are trees
               that are known (sentences, entries); rows of others are empty
    """

    text: Text
    limits: Limits
    trees: csr_matrix | None = None

    def __len__(self) -> int:
        return len(self.text)

    @cached_property
    def first_spans(self) -> Array:
        """Where the sets of each sentence begin; empty if there are none."""
        if self.limits.sets is None:
            return np.zeros(0, np.int64)
        sizes = self.limits.sizes
        if sizes is None:
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
    trees: csr_matrix | None = None

    @cached_property
    def everything(self) -> Shard:
        """All sentences."""
        return Shard(self.texts.everything, self.limits, self.trees)

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
            sizes = None if limits.sizes is None else limits.sizes[numbers]
            sets = np.concatenate([np.zeros(0, np.int64), *chosen])
            limits = replace(limits, sets=sets, sizes=sizes)
        return Shard(text, limits, None if self.trees is None else self.trees[numbers])

    @property
    def tells_labels(self) -> bool:
        """Whether something is known of symbols, not of brackets alone."""
        sizes = self.limits.allowed[1:].sum(axis=1)
        return bool((sizes > 0).any() or self.texts.everything.sets.any())

    def name(self, number: int) -> str:
        return self.texts.name(number)
