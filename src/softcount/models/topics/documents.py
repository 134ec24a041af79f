"""What a topic model learns from: bags of words, and what is known of their topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softcount.corpus.bags import Bags
from softcount.corpus.cut import parts
from softcount.types import Array


@dataclass(frozen=True, eq=False)
class Shard:
    """Some documents: their numbers in the corpus, and their words.

    ``allowed``  (documents, topics), False where a document is known not to have a topic; or None
    """

    numbers: Array
    bags: Bags
    allowed: Array | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def places(self) -> Array:
        """Where each entry of the counts by word stands in the counts by document."""
        order = np.argsort(self.bags.by_document.columns, kind="stable")
        return order.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Documents:
    """A corpus of documents (`softcount.job.Corpus`)."""

    bags: Bags
    allowed: Array | None = None
    cut: int = 1 << 17

    def __len__(self) -> int:
        return len(self.bags)

    def name(self, number: int) -> str:
        return f"document {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        n = len(self)
        if batch_size is None and n <= self.cut:
            return [Shard(np.arange(n), self.bags, self.allowed)]
        return [self._part(part) for part in parts(n, self.cut, batch_size, seed)]

    def _part(self, numbers: Array) -> Shard:
        return Shard(
            numbers,
            self.bags.take(numbers),
            None if self.allowed is None else self.allowed[numbers],
        )
