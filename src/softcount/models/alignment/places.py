"""Models in which a source place depends on the target place and the lengths: d(i | j, l, m)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.families.large import LargeTable
from softcount.families.sparse import SparseCategorical
from softcount.families.tension import Shapes, Tension
from softcount.kernels import diagonal, link_columns
from softcount.kernels.pool import over_rows
from softcount.models.alignment.core import (
    AlignmentCore,
    Sizes,
    Tally,
    best_columns,
    fill_columns,
)
from softcount.models.alignment.shards import Block, Shard
from softcount.types import Array, How, Params

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
