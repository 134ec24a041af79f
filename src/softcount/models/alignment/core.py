"""The E-steps of alignment models, and what they share: a table of translations."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from softcount.errors import StartError
from softcount.estimate import NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.families.large import LargeTable, LateCounts
from softcount.families.stems import StemTable
from softcount.families.tension import different
from softcount.kernels import link_columns, model1
from softcount.kernels.pool import over_rows
from softcount.models.alignment.shards import BLOCK, UNSEEN, Block, Pairs, Room, Shard
from softcount.models.possible import demand_possible
from softcount.models.settings import shaped
from softcount.types import NOTHING_UNCOUNTED, Array, Counts, How, Params, Stats, Uncounted

IMPOSSIBLE = "has a target word that no source word can have become"
REMEDY = "add smoothing, let the empty word in (null=True), or look at the dictionary and the links"
TABLE = "translation"


@dataclass(eq=False)
class Tally:
    """What an E-step adds up: log p and score of every pair, and counts by name.

    ``expected``, ``ahead``  what log p(f, a) has beside the counts: see `Uncounted`
    """

    logs: Array
    attained: Array
    counts: dict[str, Array] = field(default_factory=dict)
    expected: float = 0.0
    ahead: float = 0.0

    def add_fixed(self, logs: float) -> None:
        """Add the expected log of probabilities that no parameter changes."""
        self.expected += logs
        self.ahead += logs


Sizes = tuple[Array, Array]
"""Source and target lengths."""


class AlignmentCore:
    """p(f | e) = Σ_a Π_j t(f_j | e_{a_j}) p(a | l, m): models differ in p(a | l, m) alone.

    The table "translation" is t, its last row that of the empty word.

    ``null``   whether target words may come from the empty word
    ``sizes``  source and target lengths of the pairs learned from, each different pair once
    """

    threads_inside = True
    few_steps = True
    usual_dials: Mapping[str, Any] = MappingProxyType({"max_iter": 5})
    """More steps raise the likelihood, and lower the quality of alignments."""
    entropy_of = (TABLE,)

    def __init__(self, name: str, table: LargeTable, null: bool, sizes: Sizes) -> None:
        self.name, self.table, self.null = name, table, null
        self.sizes = different(*sizes)
        self.climbs = not isinstance(table, StemTable)
        self.families: dict[str, Family] = {TABLE: table}

    @abstractmethod
    def infer(self, params: Params, block: Block, links: Array, how: How, tally: Tally) -> None:
        """t(f | e) of a block's links becomes posteriors, in place; the rest goes to the tally."""

    @abstractmethod
    def best(self, params: Params, block: Block, links: Array, threads: int = 1) -> None:
        """t(f | e) of a block's links becomes 1 for those of the best alignment, 0 for others."""

    work_each = 8.0
    """Operations an E-step does for each link that is possible."""

    def estimate(self, corpus: Pairs) -> Estimate:
        """The table and its counts, an entry for each pair of words that occur together; links of a
        block of pairs."""
        l, m = corpus.everything.sizes
        links = float(np.sum((l + 1.0) * m))
        entries = sum(map(n_entries, self.families.values()))
        return needing(
            len(corpus),
            float(np.sum(m)),
            self.work_each * links + 8.0 * entries,
            data=held(corpus),
            tables=4.0 * NUMBER * entries,
            links=2.0 * NUMBER * min(links, BLOCK),
        )

    def tally(self, shard: Shard) -> Tally:
        """Where an E-step begins."""
        return Tally(np.zeros(len(shard)), np.zeros(len(shard)))

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard."""
        reading = Reading(self, params, shard, how)
        for block in shard.blocks():
            reading.count(block, reading.posteriors(block))
        return reading.stats()

    def tallied(self, shard: Shard, tally: Tally, counts: Any, how: How) -> Stats:
        """What was found, if every pair is possible."""
        demand_possible(shard.numbers, tally.logs, IMPOSSIBLE, REMEDY)
        tokens = float(len(shard.target.tokens))
        logs, attained = float(tally.logs.sum()), float(tally.attained.sum())
        found: dict[str, Counts] = {}
        if not how.score_only:
            found = {TABLE: shard.whole(counts, self.table.n_entries), **tally.counts}
            if how.theory and shard.entries is not None:
                tally.add_fixed(shard.n_unseen(counts) * math.log(UNSEEN))
        beside = Uncounted(tally.expected, tally.ahead) if how.theory else NOTHING_UNCOUNTED
        return Stats(found, logs, attained, float(len(shard)), tokens, uncounted=beside)

    def logs(self, params: Params, shard: Shard, threads: int = 1) -> Array:
        """log p(f | e) of every pair."""
        reading = Reading(self, params, shard, How(threads=threads, score_only=True))
        for block in shard.blocks():
            reading.posteriors(block)
        return reading.tally.logs

    def adopt(
        self, old: AlignmentCore, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Parameters and counts of an old core that had fewer lengths, but for the translations."""
        return {}, {}

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every target word has one source."""
        return {TABLE: float(len(shard.target.tokens))}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the tables' shapes."""
        if set(given) != set(self.families):
            raise StartError(
                f"start values are given for {sorted(given)}", f"give {sorted(self.families)}"
            )
        shapes = {name: family.param_shape for name, family in self.families.items()}
        return {name: shaped(name, given[name], shape) for name, shape in shapes.items()}


class Reading:
    """One E-step of a core over a shard, a block at a time."""

    def __init__(self, core: AlignmentCore, params: Params, shard: Shard, how: How) -> None:
        self.core, self.params, self.shard, self.how = core, params, shard, how
        self.tally = core.tally(shard)
        self._table = shard.own(params[TABLE], how.theory)
        self._room = Room(self._table.dtype)
        self._counts = np.zeros(0 if how.score_only else len(shard.lexicon))

    def posteriors(self, block: Block) -> Array:
        """What the core makes of a block's links: it stays until the next block is asked for."""
        links = block.gather(self._table, self._room, self.how.threads)
        self.core.infer(self.params, block, links, self.how, self.tally)
        return links

    def count(self, block: Block, links: Array) -> None:
        """Add a block's links to the counts of translations, if they are wanted."""
        if not self.how.score_only:
            block.scatter(links, self._counts, self.how.threads)

    def stats(self) -> Stats:
        """What was found, if every pair is possible."""
        return self.core.tallied(self.shard, self.tally, self._counts, self.how)


def fill_columns(block: Block, links: Array, how: How) -> tuple[Array, Array]:
    """Joint probabilities of links become posteriors, best links or draws, in place.

    Gives log p and the score of each pair.
    """
    pairs = (block.sizes[1], block.offsets)
    logs = np.zeros(len(block.numbers))
    if how.fill == "soft" and how.temper == 1.0:
        over_rows(link_columns.soften, block.offsets, how.threads, *pairs, links, logs)
        return logs, logs
    attained = np.zeros(len(logs))
    if how.fill == "hard":
        over_rows(link_columns.soften, block.offsets, how.threads, *pairs, links.copy(), logs)
        over_rows(link_columns.harden, block.offsets, how.threads, *pairs, links, attained)
        return logs, attained
    # powers of posteriors are proportional to those of joint probabilities, and not as small
    over_rows(link_columns.soften, block.offsets, how.threads, *pairs, links, logs)
    np.power(links, how.temper, out=links)
    over_rows(link_columns.soften, block.offsets, how.threads, *pairs, links, attained)
    if how.fill == "sample":
        draws = (block.numbers, np.uint64(how.stream), how.samples)
        over_rows(link_columns.draw, block.offsets, how.threads, *pairs, links, *draws)
    return logs, logs + attained / how.temper


def best_columns(block: Block, links: Array, threads: int) -> None:
    """Joint probabilities of links become 1 for each word's best place, 0 for others."""
    parts = (block.sizes[1], block.offsets, links, np.zeros(len(block.numbers)))
    over_rows(link_columns.harden, block.offsets, threads, *parts)


class Model1Core(AlignmentCore):
    """Every place is as likely as any other (Brown et al. 1993)."""

    def best(self, params: Params, block: Block, links: Array, threads: int = 1) -> None:
        best_columns(block, links, threads)

    def infer(self, params: Params, block: Block, links: Array, how: How, tally: Tally) -> None:
        logs, attained = fill_columns(block, links, how)
        even = self._even(*block.sizes)
        tally.logs[slice(*block.span)] = logs + even
        tally.attained[slice(*block.span)] = attained + even
        tally.add_fixed(float(even.sum()))

    def estimate(self, corpus: Pairs) -> Estimate:
        """Counts are worked out row by row: links are never written down."""
        found = super().estimate(corpus)
        parts = {**found.parts, "tables": found.parts["tables"] * 3 // 4, "links": 0}
        return needing(found.items, found.tokens, found.work, **parts)

    def _even(self, l: Array, m: Array) -> Array:
        """log p(a | l, m) = −m log(l + 1)."""
        even: Array = -m * np.log(l + self.null)
        return even

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        plain = how.fill == "soft" and how.temper == 1.0 and shard.known is None
        if not plain:
            return super().expect(params, shard, how, local)
        table, tally = shard.own(params[TABLE], how.theory), self.tally(shard)
        text = (*shard.places[:2], shard.target.tokens, shard.target.indptr)
        tables = (shard.lexicon.indptr, shard.lexicon.targets, table)
        n_words, borders = shard.lexicon.n_targets, shard.target.indptr
        shares = np.empty(len(shard.target.tokens), table.dtype)
        parts = (*tables, *text, n_words, shares)
        over_rows(model1.denominators, borders, how.threads, *parts)
        over_rows(model1.invert, borders, how.threads, borders, shares, tally.logs)
        even = self._even(*shard.sizes)
        tally.logs += even
        tally.attained = tally.logs
        tally.add_fixed(float(even.sum()))
        if how.score_only:
            return self.tallied(shard, tally, None, how)

        def counts(first: int, last: int) -> Array:
            origin = shard.lexicon.indptr[first]
            out = np.empty(shard.lexicon.indptr[last] - origin, table.dtype)
            rows = shard.places.indptr[first : last + 1]
            spans = (first, *tables, *text, n_words, shares, out)
            over_rows(model1.counts, rows, how.threads, *spans)
            return out

        late = LateCounts(counts, len(shard.lexicon.indptr) - 1)
        found = late if shard.entries is None else np.asarray(late)
        return self.tallied(shard, tally, found, how)
