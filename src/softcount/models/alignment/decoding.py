"""From posteriors of links to the links themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from softcount.corpus.bitext import Bitext
from softcount.corpus.links import FlatLinks
from softcount.errors import DataError, shown
from softcount.kernels import links as kernels
from softcount.kernels.pool import usable_cpus
from softcount.models.alignment.shards import Block
from softcount.types import Array

HALF = 0.5


@dataclass(frozen=True, eq=False)
class Found:
    """Links of some pairs, by the pairs' numbers; ``values`` are their probabilities."""

    numbers: Array
    links: FlatLinks
    values: Array

    @property
    def bare(self) -> Found:
        """Without probabilities."""
        return replace(self, values=np.zeros(0, self.values.dtype))

    def valued(self, block: Block, posteriors: Array) -> Found:
        """With probabilities from posteriors of the block's links."""
        pair, widths = self.links.pair, block.sizes[1]
        at = block.offsets[pair] + self.links.source * widths[pair] + self.links.target
        return replace(self, values=posteriors[at])


def above(block: Block, links: Array, level: float) -> Found:
    """The links of a block whose value is above a level, in the order of (i, j)."""
    parts = (block.sizes[0], block.offsets, links, level)
    often = kernels.count_above(*parts)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(often)])
    n = int(indptr[-1])
    sources, targets = np.empty(n, np.int32), np.empty(n, np.int32)
    values = np.empty(n, links.dtype)
    kernels.take_above(*parts, sources, targets, values)
    return Found(block.numbers, FlatLinks(indptr, sources, targets), values)


def joined(found: Iterable[Found], n_pairs: int) -> tuple[FlatLinks, Array]:
    """All links, in the order of pairs; pairs that are not there have none."""
    each = list(found)
    often = np.zeros(n_pairs, np.int64)
    for one in each:
        often[one.numbers] = np.diff(one.links.indptr)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(often)])
    none = np.zeros(0, np.int32)
    sources = np.concatenate([none, *(one.links.source for one in each)])
    targets = np.concatenate([none, *(one.links.target for one in each)])
    values = np.concatenate([np.zeros(0), *(one.values for one in each)])
    return FlatLinks(indptr, sources, targets), values


def checked_level(threshold: float) -> float:
    """A threshold, if it is one."""
    if not isinstance(threshold, Real) or not 0.0 <= threshold < 1.0:
        raise DataError(
            f"threshold={shown(threshold)} is no threshold", "give a probability below 1"
        )
    return threshold


class Aligning:
    """What aligners offer once they have learned (a mixin)."""

    engine: Any

    @property
    def threads(self) -> int:
        """How many threads aligning may use: the engine's, if it says."""
        threads = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    @abstractmethod
    def shards(self, pairs: Any) -> tuple[Bitext, Iterator[Any]]:
        """The pairs (None: those learned from), and shards of them."""

    @abstractmethod
    def beliefs(self, shard: Any) -> Iterator[tuple[Block, Array]]:
        """Posteriors of a shard's links, block by block."""

    @abstractmethod
    def score_samples(self, pairs: Any = None) -> Array:
        """The log-likelihood of each pair."""

    def score(self, pairs: Any, y: Any = None) -> float:
        """The mean log-likelihood of a pair, as `score_samples` has it."""
        return float(self.score_samples(pairs).mean())

    def chosen(
        self, pairs: Any, choose: Callable[[Any], Iterator[Found]]
    ) -> tuple[FlatLinks, Array]:
        """The links that are chosen in each shard, put together."""
        text, shards = self.shards(pairs)
        return joined((found for shard in shards for found in choose(shard)), len(text))

    def posteriors(self, pairs: Any = None) -> list[Array]:
        """p(link i–j | pair) of each pair, an (l, m) matrix; what it lacks is the empty word's."""
        text, shards = self.shards(pairs)
        sizes = zip(text.source.lengths.tolist(), text.target.lengths.tolist(), strict=True)
        found = [np.zeros(size) for size in sizes]
        for shard in shards:
            for block, links in self.beliefs(shard):
                matrices = block.matrices(links)
                for number, matrix in zip(block.numbers.tolist(), matrices, strict=True):
                    found[number] = matrix[:-1].astype(float)
        return found
