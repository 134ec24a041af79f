"""The alignment model whose places form a chain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from softcount.align.core import AlignmentCore, Sizes, Tally
from softcount.align.data import Block, Shard
from softcount.align.families.jumps import JumpTable, Rows, bins
from softcount.align.kernels import chain
from softcount.align.kernels import chain as chain_paths
from softcount.align.kernels import links as link_columns
from softcount.align.kernels import positions as jump_sums
from softcount.errors import LearnerError
from softcount.families.large import LargeTable
from softcount.kernels.pool import FEW, in_turn, over_rows
from softcount.types import Array, How, Params

JUMPS = "jumps"
LANES, FEW_LANES = 32, 8
WASTE = 1.5
"""A group of pairs is broken up if going in lockstep would cost so much more than going alone."""
PIECES = 8
"""Groups are shared out among so many, whatever the threads: sums have one order."""


class Groups(NamedTuple):
    """Pairs of about one size: members of group g are those from ``begins[g]`` on."""

    begins: Array
    members: Array


def grouped(l: Array, m: Array) -> Groups:
    """Pairs that go in lockstep."""
    about = np.floor(np.log(l) / np.log(1.03)).astype(np.int64)
    order = np.lexsort((m, about))
    work = l[order].astype(float) ** 2 * m[order]
    begins = [0]
    for first in range(0, len(order), LANES):
        last = min(first + LANES, len(order))
        if _cost(l, m, order[first:last]) * LANES <= WASTE * work[first:last].sum():
            begins.append(last)
            continue
        for begin in range(first, last, FEW_LANES):
            end = min(begin + FEW_LANES, last)
            few = _cost(l, m, order[begin:end]) <= WASTE * work[begin:end].sum()
            begins.extend([end] if few else range(begin + 1, end + 1))
    return Groups(np.array(begins), order)


def _cost(l: Array, m: Array, some: Array) -> float:
    """What each lane of a group costs."""
    return float(l[some].max()) ** 2 * float(m[some].max())


class HMMCore(AlignmentCore):
    """p(a | l, m) = Π_j p(a_j | a_{j−1}, l): a chain of jumps (Vogel, Ney & Tillmann 1996)."""

    def __init__(
        self,
        name: str,
        table: LargeTable,
        null: bool,
        p_null: float,
        reach: int,
        sizes: Sizes,
        prior: float = 1.0,
    ) -> None:
        super().__init__(name, table, null, sizes)
        # plain numbers: for others, kernels would be compiled anew
        self.p_null, self.reach = float(p_null) if null else 0.0, int(reach)
        self.jumps = JumpTable(self.reach, self.sizes[0], prior)
        self.families[JUMPS] = self.jumps

    def tally(self, shard: Shard) -> Tally:
        tally = super().tally(shard)
        tally.counts[JUMPS] = self.jumps.zeros()
        return tally

    def chain(
        self, params: Params, lengths: Array, links: Array, temper: float = 1.0
    ) -> chain.Jumps:
        """What the kernels need to know of jumps in sentences of these lengths.

        It comes in numbers of the same kind as the links.
        """
        rows = Rows.of(lengths)
        longest = int(rows.lengths.max(initial=1))
        widths, starts = bins(self.reach, longest)
        weights = np.asarray(params[JUMPS])
        ahead, start = weights[widths], weights[starts]
        z = np.empty(len(rows))
        jump_sums.totals(*rows, ahead, longest, start, z)
        z = np.divide(1.0 - self.p_null, z, where=z > 0.0, out=np.zeros_like(z))
        begins = np.zeros(longest + 1, np.int64)
        begins[rows.lengths] = rows.begins[:-1]
        ahead, start, z = ahead**temper, np.append(start, 0.0) ** temper, z**temper
        ahead, start, z = (numbers.astype(links.dtype) for numbers in (ahead, start, z))
        p0 = links.dtype.type(self.p_null**temper)
        return chain.Jumps(ahead, ahead[::-1].copy(), start, longest, z, begins, p0)

    def infer(self, params: Params, block: Block, links: Array, how: How, tally: Tally) -> None:
        heights, _ = block.sizes
        cut = slice(*block.span)
        jumps = self.chain(params, heights, links)
        counts = None if how.score_only else Moves(jumps)
        if how.fill == "soft" and how.temper == 1.0:
            tally.logs[cut] = _soft(block, jumps, links, how.threads, counts)
            tally.attained[cut] = tally.logs[cut]
        else:
            tally.logs[cut] = _soft(block, jumps, links.copy(), how.threads)
            tally.attained[cut] = self._filled(params, block, links, how, counts)
        if counts is not None:
            tally.counts[JUMPS] += self._counted(counts, heights)
            if how.theory:
                self._add_uncounted(params, block, counts, how, tally)

    def _add_uncounted(
        self, params: Params, block: Block, moves: Moves, how: How, tally: Tally
    ) -> None:
        """The empty word has p₀, jumps 1 − p₀; and no row has lengths that the family has not."""
        jumped = float(moves.left.sum())
        rested = float(block.sizes[1].sum()) - jumped
        if self.p_null > 0.0:
            tally.add_fixed(rested * math.log(self.p_null) + jumped * math.log1p(-self.p_null))
        new = np.setdiff1d(block.sizes[0], self.jumps.rows.lengths)
        if len(new):
            against = params if how.against is None else how.against
            tally.expected -= self._normalised(params, new, moves)
            tally.ahead -= self._normalised(against, new, moves)

    def _normalised(self, params: Params, lengths: Array, moves: Moves) -> float:
        """Σ n log Z of the places left in sentences of these lengths."""
        family = JumpTable(self.reach, lengths)
        places = [np.arange(l + 1) + moves.jumps.rows[l] for l in family.rows.lengths.tolist()]
        left = moves.left[np.concatenate(places)]
        return float(xlogy(left, family.totals(np.asarray(params[JUMPS]))).sum())

    def _filled(
        self, params: Params, block: Block, links: Array, how: How, counts: Moves | None
    ) -> Array:
        """Tempered posteriors, best paths or drawn ones; gives the score."""
        heights, widths = block.sizes
        jumps = self.chain(params, heights, links, 1.0 if how.fill == "hard" else how.temper)
        samples = how.samples if how.fill == "sample" else 1
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths) * samples])
        paths = np.zeros(begins[-1], np.int32)
        if how.fill == "hard":
            scores = _best(block, jumps, links, how.threads, paths, begins)
        else:
            scores = np.zeros(len(heights))
            columns = (widths, block.offsets, links, scores)
            over_rows(link_columns.soften, block.offsets, how.threads, *columns)
            np.power(links, how.temper, out=links)  # of columns that sum to one: not as small
            soft = how.fill == "soft"
            own = links if soft else links.copy()
            scores += _soft(block, jumps, own, how.threads, counts if soft else None) / how.temper
        if how.fill == "soft":
            return scores
        if how.fill == "sample":
            text = (heights, widths, block.offsets, links, jumps)
            draws = (block.numbers, np.uint64(how.stream), samples, paths, begins)
            over_rows(chain_paths.draw, block.offsets, how.threads, *text, *draws)
        if counts is not None:
            sums = (counts.widths, counts.starts, counts.left)
            chain_paths.count_path_jumps(heights, widths, jumps, paths, begins, samples, *sums)
        return scores

    def best(self, params: Params, block: Block, links: Array, threads: int = 1) -> None:
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(block.sizes[1])])
        jumps = self.chain(params, block.sizes[0], links)
        _best(block, jumps, links, threads, np.zeros(begins[-1], np.int32), begins)

    def adopt(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        before, seen = old.jumps, counts[JUMPS]
        if old.reach != self.reach:
            raise LearnerError(
                f"max_jump was {old.reach} when the model was fitted, and is {self.reach} now",
                "set it back, or fit again",
            )
        own = self.jumps.zeros()
        own[: before.n_weights] = seen[: before.n_weights]
        lengths = before.rows.lengths
        for l, here, there in zip(
            lengths, self.jumps.rows.at(lengths), before.rows.at(lengths), strict=True
        ):
            at, begin = before.n_weights + here, before.n_weights + there
            own[at : at + l + 1] = seen[begin : begin + l + 1]
        return {JUMPS: np.array(params[JUMPS])}, {JUMPS: own}

    def _counted(self, moves: Moves, heights: Array) -> Array:
        """Jumps by the weights that they have, and by the rows of the family."""
        family, jumps = self.jumps, moves.jumps
        where = np.concatenate(bins(self.reach, jumps.middle))
        moved = np.concatenate([moves.widths, moves.starts])
        counts = np.bincount(where, moved, family.n_weights)
        left = np.zeros(len(family.rows))
        different = np.intersect1d(heights, family.rows.lengths)  # new text may have other lengths
        for l, begin in zip(different, family.rows.at(different), strict=True):
            at = jumps.rows[l]
            left[begin : begin + l + 1] = moves.left[at : at + l + 1]
        return np.concatenate([counts, left])


class Moves:
    """Expected jumps: by width, by first place, and by the place that was left."""

    def __init__(self, jumps: chain.Jumps) -> None:
        self.jumps = jumps
        self.widths = np.zeros(len(jumps.ahead))
        self.starts = np.zeros(len(jumps.start) - 1)
        self.left = np.zeros(len(jumps.z))

    def add(self, other: Moves) -> None:
        self.widths += other.widths
        self.starts += other.starts
        self.left += other.left


def _best(
    block: Block, jumps: chain.Jumps, links: Array, threads: int, paths: Array, begins: Array
) -> Array:
    """The links of the best paths get 1, all others 0; gives log p(f, â) of each pair."""
    groups, logs = grouped(*block.sizes), np.zeros(len(block.numbers))
    text = (*groups, *block.sides, block.offsets, jumps, links)
    over_rows(chain_paths.best, groups.begins, threads, *text, paths, begins, logs)
    return logs


def _soft(
    block: Block, jumps: chain.Jumps, links: Array, threads: int, moves: Moves | None = None
) -> Array:
    """Emissions become posteriors, in place; adds expected jumps, gives log p of each pair."""
    groups, logs = grouped(*block.sizes), np.zeros(len(block.numbers))
    n = len(groups.begins) - 1
    cuts = np.unique(np.linspace(0, n, PIECES + 1).astype(np.int64))
    own = [Moves(jumps) for _ in cuts[1:]]

    def work(piece: int) -> None:
        sums = own[piece]
        chain.chains(
            cuts[piece],
            cuts[piece + 1],
            *groups,
            *block.sides,
            block.offsets,
            jumps,
            links,
            logs,
            sums.widths,
            sums.starts,
            sums.left,
            moves is not None,
        )

    in_turn(work, len(own), 1 if len(links) < FEW else threads)
    if moves is not None:
        for sums in own:
            moves.add(sums)
    return logs
