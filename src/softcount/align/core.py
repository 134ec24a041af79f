"""The E-steps of alignment models, and where words of a target sentence come from."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.align.data import BLOCK, UNSEEN, Block, Pairs, Room, Shard
from softcount.align.families.stems import StemTable
from softcount.align.families.tension import Shapes, Tension, different
from softcount.align.kernels import links as link_columns
from softcount.align.kernels import links as model1
from softcount.align.kernels import positions as diagonal
from softcount.errors import StartError
from softcount.estimate import NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.families.large import LargeTable, LateCounts
from softcount.families.sparse import SparseCategorical
from softcount.kernels.pool import over_rows
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


# Models in which a source place depends on the target place and the lengths: d(i | j, l, m).


PLACES = "places"


class PlacesCore(AlignmentCore):
    """p(f, a | e) = Π_j t(f_j | e_{a_j}) d(a_j | j, l, m); the empty word's place comes last."""

    shapes: Shapes

    @abstractmethod
    def cells(self, params: Params, shapes: Shapes) -> Array:
        """d of these shapes, which may be new, (l + 1, m) each."""

    @abstractmethod
    def counted(self, cells: Array) -> Array:
        """Counts of the cells of this model's shapes, as its family wants them."""

    def tally(self, shard: Shard) -> Tally:
        tally = super().tally(shard)
        tally.counts[PLACES] = np.zeros(0)
        return tally

    def best(self, params: Params, block: Block, links: Array, threads: int = 1) -> None:
        self._weigh(params, block, links, threads)
        best_columns(block, links, threads)

    def _weigh(
        self, params: Params, block: Block, links: Array, threads: int
    ) -> tuple[Shapes, Array]:
        """t becomes t · d; gives the block's shapes, and which of them each pair has."""
        shapes = Shapes.of(*block.sizes)
        number = shapes.numbers(*block.sizes)
        cells = self.cells(params, shapes).astype(links.dtype, copy=False)
        parts = (block.offsets, shapes.begins[number], cells, links)
        over_rows(link_columns.weigh, block.offsets, threads, *parts)
        return shapes, number

    def infer(self, params: Params, block: Block, links: Array, how: How, tally: Tally) -> None:
        shapes, number = self._weigh(params, block, links, how.threads)
        at = shapes.begins[number]
        cut = slice(*block.span)
        tally.logs[cut], tally.attained[cut] = fill_columns(block, links, how)
        if not how.score_only:
            order = np.argsort(number, kind="stable")
            groups = np.searchsorted(number[order], np.arange(len(shapes.heights) + 1))
            sums = np.zeros(shapes.n_cells)
            parts = (groups, order, block.offsets, at, links, sums)
            over_rows(link_columns.add_places, shapes.begins, how.threads, *parts)
            self._add(tally, shapes, sums)
            if how.theory:
                against = params if how.against is None else how.against
                tally.expected += self._uncounted(params, shapes, sums)
                tally.ahead += self._uncounted(against, shapes, sums)

    def _uncounted(self, params: Params, shapes: Shapes, sums: Array) -> float:
        """Σ c log d of what the family does not count: shapes it has not, and what is fixed."""
        new = self.shapes.numbers(shapes.heights, shapes.widths) < 0
        lost = np.repeat(new, np.diff(shapes.begins))
        found = self.fixed(shapes, np.where(lost, 0.0, sums))
        if new.any():
            found += float(xlogy(sums[lost], self.cells(params, shapes)[lost]).sum())
        return found

    def fixed(self, shapes: Shapes, sums: Array) -> float:
        """Σ c log of the factors of d that nothing changes, of shapes that the family has."""
        return 0.0

    def _recast(self, old: PlacesCore, cells: Array) -> Array:
        """Cells of an old core's shapes as cells of these; new ones are 0."""
        own = np.zeros(self.shapes.n_cells)
        where = self.shapes.numbers(old.shapes.heights, old.shapes.widths)
        for number, begin, end in zip(
            where, old.shapes.begins, old.shapes.begins[1:], strict=False
        ):
            at = self.shapes.begins[number]
            own[at : at + end - begin] = cells[begin:end]
        return own

    def _add(self, tally: Tally, shapes: Shapes, sums: Array) -> None:
        """Add the cells of some shapes to those of the model's, as far as it has them."""
        own = np.zeros(self.shapes.n_cells)
        where = self.shapes.numbers(shapes.heights, shapes.widths)
        for number, begin, end in zip(where, shapes.begins, shapes.begins[1:], strict=False):
            if number >= 0:
                at = self.shapes.begins[number]
                own[at : at + end - begin] = sums[begin:end]
        counts = self.counted(own)
        before = tally.counts[PLACES]
        tally.counts[PLACES] = counts if not len(before) else before + counts


class Model2Core(PlacesCore):
    """d(i | j, l, m) is a table (Brown et al. 1993); lengths never seen have d = 1 / (l + 1)."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, prior: float = 1.0
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes = shapes = Shapes.of(*self.sizes)
        rows = np.repeat(shapes.heights + 1, shapes.widths)
        mask = None if null else self._without_null
        self.places = SparseCategorical(np.concatenate([[0], np.cumsum(rows)]), prior, mask)
        self.families[PLACES] = self.places

    @cached_property
    def _order(self) -> Array:
        """Cells lie by source place, the family's rows by target place: where each cell is."""
        parts = [
            begin + np.arange((l + 1) * m).reshape(m, l + 1).T.reshape(-1)
            for l, m, begin in zip(*self.shapes[:2], self.shapes.begins, strict=False)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    @property
    def _without_null(self) -> Array:
        last = np.cumsum(np.repeat(self.shapes.heights + 1, self.shapes.widths)) - 1
        mask = np.ones(self.shapes.n_cells, bool)
        mask[last] = False
        return mask

    def cells(self, params: Params, shapes: Shapes) -> Array:
        own = np.asarray(params[PLACES])[self._order]
        sizes = np.diff(shapes.begins)
        found = np.repeat(1.0 / np.maximum(shapes.heights + self.null, 1), sizes)
        for n, number in enumerate(self.shapes.numbers(shapes.heights, shapes.widths).tolist()):
            if number >= 0:
                begin = self.shapes.begins[number]
                found[shapes.begins[n] : shapes.begins[n + 1]] = own[begin : begin + sizes[n]]
        return found

    def counted(self, cells: Array) -> Array:
        counts = np.empty_like(cells)
        counts[self._order] = cells
        return counts

    def adopt(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        learned = self.counted(self._recast(old, np.asarray(params[PLACES])[old._order]))
        known = self.counted(self._recast(old, np.ones(old.shapes.n_cells))) > 0.0
        start = np.where(known, learned, self.places.uniform())
        seen = self.counted(self._recast(old, counts[PLACES][old._order]))
        return {PLACES: start}, {PLACES: seen}


class DiagonalCore(PlacesCore):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the empty word has p₀ (Dyer et al. 2013)."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, p_null: float
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes, self.p_null = Shapes.of(*self.sizes), float(p_null) if null else 0.0
        self.families[PLACES] = Tension(self.shapes)

    def cells(self, params: Params, shapes: Shapes) -> Array:
        found = np.zeros(shapes.n_cells)
        diagonal.fill(*shapes, float(params[PLACES][0]), self.p_null, found)
        return found

    def counted(self, cells: Array) -> Array:
        return cells

    def fixed(self, shapes: Shapes, sums: Array) -> float:
        """The empty word has p₀, all others 1 − p₀ together."""
        sizes = np.diff(shapes.begins)
        place = np.arange(shapes.n_cells) - np.repeat(shapes.begins[:-1], sizes)
        empty = place >= np.repeat(shapes.heights * shapes.widths, sizes)
        words, none = float(sums[~empty].sum()), float(sums[empty].sum())
        return float(xlogy(none, self.p_null) + xlogy(words, 1.0 - self.p_null))

    def adopt(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        return {PLACES: np.array(params[PLACES])}, {PLACES: self._recast(old, counts[PLACES])}
