"""What the cores of both kinds of grammars have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.families.base import Family
from softcount.models.grammar.cells import Derivations
from softcount.models.grammar.collapsed import CollapsedTrees, demand_collapsible
from softcount.models.grammar.dense import ROOT
from softcount.models.grammar.shards import Sentences, Shard
from softcount.models.possible import demand_possible
from softcount.models.sequences.shards import Sentences as Texts
from softcount.models.settings import start_tables
from softcount.types import Array, Counts, How, Params, Stats

IMPOSSIBLE = "cannot come about: no tree could have produced it"


class TreeCore:
    """Sentences, each with a hidden tree."""

    name: str
    families: dict[str, Family]
    threads_inside = True
    remedy = "look at its words and brackets"
    """What to do about a sentence that cannot be."""

    @abstractmethod
    def derivations(
        self, params: Params, shard: Shard, stream: int, threads: int = 1
    ) -> Derivations:
        """One tree of each sentence, drawn from their posterior, as a list of cells."""

    def stats(
        self, shard: Shard, counts: dict[str, Counts], logs: Array, attained: Array, how: How
    ) -> Stats:
        """What an E-step finds: log p of sentences, and of what filled in the trees."""
        text = shard.text
        counted = text.weights > 0.0
        sampled = how.fill == "sample"
        attained = logs if sampled else attained / how.temper
        demand_possible(text.numbers[counted], (logs + attained)[counted], IMPOSSIBLE, self.remedy)
        weights = text.weights[counted]
        return Stats(
            counts,
            float(weights @ logs[counted]),
            float(weights @ attained[counted]),
            float(weights.sum()),
            float(weights @ np.diff(text.indptr)[counted]),
        )

    # trees with the tables integrated out
    def blocks(self, shard: Shard, size: int) -> list[Shard]:
        """The sentences in their order, so many at a time."""
        whole, n = Sentences(Texts(shard.text), shard.limits, shard.trees), len(shard)
        return [whole.select(np.arange(i, min(i + size, n))) for i in range(0, n, size)]

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> CollapsedTrees:
        """The sampler with all tables integrated out, trees drawn at ``params`` to begin with."""
        (shard,) = shards
        demand_collapsible(self.families, shard.text.weights)
        first = self.derivations(params, shard, stream)
        demand_possible(shard.text.numbers, first.logs, IMPOSSIBLE, self.remedy)
        return CollapsedTrees(self, shard, params, first)

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every sentence that is not empty has a root."""
        text = shard.text
        return {ROOT: float(text.weights[np.diff(text.indptr) > 0].sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the families' shapes."""
        return start_tables(given, self.families)
