"""The alignment model whose positions form a chain: p(a | l, m) = Π_j p(a_j | a_{j−1}, l).

Vogel, Ney & Tillmann (1996), *HMM-based word alignment in statistical translation*. A jump from
position h to position k has the probability w(k − h) / Z(h), Z the sum over all positions of the
sentence; a target word comes from the empty word with probability p₀, and the chain goes on from
where it was (Och & Ney 2003).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from softcount.align.core import AlignmentCore, AlignmentCounts, Sizes
from softcount.align.data import BitextShard, LinkBlock, cumulate
from softcount.align.families import JumpRows, JumpTable, jump_bins
from softcount.align.kernels import chain
from softcount.align.kernels.links import normalise_columns
from softcount.align.kernels.positions import sum_jumps
from softcount.core.errors import LearnerError
from softcount.core.types import Array, EStep, FloatArray, IntArray, Params
from softcount.families.large import LargeTable
from softcount.kernels.threads import FEW, in_turn, over_rows

JUMPS = "jumps"
"""The name of the weights of jumps."""

LANES, FEW_LANES = 32, 8
"""So many pairs go through a kernel in lockstep, one in each lane."""
WASTE = 1.5
"""A group of pairs is broken up if going in lockstep would cost so much more than going alone."""
PIECES = 8
"""Groups are shared out among so many pieces, whatever the threads: sums have one order."""


class LockstepGroups(NamedTuple):
    """Pairs of about one size, which go through a kernel together.

    ``begins``   (groups + 1,) group g has ``members[begins[g]:begins[g + 1]]``
    ``members``  (pairs,) numbers of pairs within the block
    """

    begins: IntArray
    members: IntArray


def group_pairs(l: IntArray, m: IntArray) -> LockstepGroups:
    """Pairs of these lengths in groups of about one size."""
    about = np.floor(np.log(l) / np.log(1.03)).astype(np.int64)
    order = np.lexsort((m, about))
    work = l[order].astype(float) ** 2 * m[order]

    def lane_cost(some: IntArray) -> float:
        return float(l[some].max()) ** 2 * float(m[some].max())

    begins = [0]
    for first in range(0, len(order), LANES):
        last = min(first + LANES, len(order))
        if lane_cost(order[first:last]) * LANES <= WASTE * work[first:last].sum():
            begins.append(last)
            continue
        for begin in range(first, last, FEW_LANES):
            end = min(begin + FEW_LANES, last)
            few = lane_cost(order[begin:end]) <= WASTE * work[begin:end].sum()
            begins.extend([end] if few else range(begin + 1, end + 1))
    return LockstepGroups(np.array(begins), order)


class JumpCounts:
    """Expected jumps of some pairs.

    ``widths``  (2 · longest + 1,) by width, from −longest on
    ``starts``  (longest + 1,) by the first position
    ``left``    by sentence length and the position that was left, laid out as ``weights.rows`` says
    """

    def __init__(self, weights: chain.JumpWeights) -> None:
        self.weights = weights
        self.widths = np.zeros(len(weights.ahead))
        self.starts = np.zeros(len(weights.start) - 1)
        self.left = np.zeros(len(weights.z))

    def add(self, other: JumpCounts) -> None:
        """Add those of other pairs."""
        self.widths += other.widths
        self.starts += other.starts
        self.left += other.left


class HMMAlignmentCore(AlignmentCore):
    """p(a | l, m) = Π_j p(a_j | a_{j−1}, l): a chain of jumps (Vogel, Ney & Tillmann 1996).

    ``p_null``  p₀, the probability that a target word comes from the empty word
    ``reach``   wider jumps are all as likely as one of this width
    ``prior``   Dirichlet prior of the weights of jumps
    """

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

    def zero_counts(self, shard: BitextShard) -> AlignmentCounts:
        found = super().zero_counts(shard)
        found.counts[JUMPS] = self.jumps.zeros()
        return found

    def jump_weights(
        self, params: Params, lengths: IntArray, links: FloatArray, temper: float = 1.0
    ) -> chain.JumpWeights:
        """What the kernels need to know of jumps in sentences of these lengths.

        The numbers are of the same kind as the links.
        """
        rows = JumpRows.of(lengths)
        longest = int(rows.lengths.max(initial=1))
        widths, starts = jump_bins(self.reach, longest)
        weights = np.asarray(params[JUMPS])
        ahead, start = weights[widths], weights[starts]
        z: FloatArray = np.empty(len(rows))
        sum_jumps(*rows, ahead, longest, start, z)
        z = np.divide(1.0 - self.p_null, z, where=z > 0.0, out=np.zeros_like(z))
        begins = np.zeros(longest + 1, np.int64)
        begins[rows.lengths] = rows.begins[:-1]
        ahead, start, z = ahead**temper, np.append(start, 0.0) ** temper, z**temper
        ahead, start, z = (numbers.astype(links.dtype) for numbers in (ahead, start, z))
        p0 = links.dtype.type(self.p_null**temper)
        return chain.JumpWeights(ahead, ahead[::-1].copy(), start, longest, z, begins, p0)

    def infer(
        self,
        params: Params,
        block: LinkBlock,
        links: FloatArray,
        how: EStep,
        counts: AlignmentCounts,
    ) -> None:
        weights = self.jump_weights(params, block.sizes[0], links)
        jumps = None if how.score_only else JumpCounts(weights)
        if how.fill == "soft" and how.temper == 1.0:
            logs = _forward_backward(block, weights, links, how.threads, jumps)
            counts.logs[block.span] = counts.scores[block.span] = logs
        else:
            counts.logs[block.span] = _forward_backward(block, weights, links.copy(), how.threads)
            counts.scores[block.span] = self._fill_in(params, block, links, how, jumps)
        if jumps is not None:
            counts.counts[JUMPS] += self._family_counts(jumps, block.sizes[0])
            if how.theory:
                self._add_uncounted(params, block, jumps, how, counts)

    def _fill_in(
        self,
        params: Params,
        block: LinkBlock,
        links: FloatArray,
        how: EStep,
        jumps: JumpCounts | None,
    ) -> FloatArray:
        """Tempered posteriors, best paths or sampled ones; gives the score of each pair."""
        l, m = block.sizes
        weights = self.jump_weights(params, l, links, 1.0 if how.fill == "hard" else how.temper)
        samples = how.samples if how.fill == "sample" else 1
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(m) * samples])
        paths = np.zeros(begins[-1], np.int32)
        if how.fill == "hard":
            scores = _viterbi(block, weights, links, how.threads, paths, begins)
        else:
            scores = np.zeros(len(l))
            columns = (m, block.offsets, links, scores)
            over_rows(normalise_columns, block.offsets, how.threads, *columns)
            np.power(links, how.temper, out=links)  # of columns that sum to one: not as small
            soft = how.fill == "soft"
            own = links if soft else links.copy()
            logs = _forward_backward(block, weights, own, how.threads, jumps if soft else None)
            scores += logs / how.temper
        if how.fill == "soft":
            return scores
        if how.fill == "sample":
            draws = (block.numbers, np.uint64(how.stream), samples, paths, begins)
            pairs = (l, m, block.offsets, links, weights)
            over_rows(chain.sample_paths, block.offsets, how.threads, *pairs, *draws)
        if jumps is not None:
            sums = (jumps.widths, jumps.starts, jumps.left)
            chain.count_path_jumps(l, m, weights, paths, begins, samples, *sums)
        return scores

    def decode(self, params: Params, block: LinkBlock, links: FloatArray, threads: int = 1) -> None:
        begins = cumulate(block.sizes[1])
        weights = self.jump_weights(params, block.sizes[0], links)
        _viterbi(block, weights, links, threads, np.zeros(begins[-1], np.int32), begins)

    def _family_counts(self, jumps: JumpCounts, lengths: IntArray) -> FloatArray:
        """Jumps by the weights that they have, and by the rows of the family."""
        family, weights = self.jumps, jumps.weights
        where = np.concatenate(jump_bins(self.reach, weights.middle))
        each = np.concatenate([jumps.widths, jumps.starts])
        counts = np.bincount(where, each, family.n_weights)
        left = np.zeros(len(family.rows))
        # new text may have lengths that the family does not have
        both = np.intersect1d(lengths, family.rows.lengths)
        for l, begin in zip(both, family.rows.at(both), strict=True):
            at = weights.rows[l]
            left[begin : begin + l + 1] = jumps.left[at : at + l + 1]
        return np.concatenate([counts, left])

    def _add_uncounted(
        self,
        params: Params,
        block: LinkBlock,
        jumps: JumpCounts,
        how: EStep,
        counts: AlignmentCounts,
    ) -> None:
        """The empty word has p₀, jumps 1 − p₀; and lengths that are new to the family."""
        jumped = float(jumps.left.sum())
        stayed = float(block.sizes[1].sum()) - jumped
        if self.p_null > 0.0:
            counts.add_fixed(stayed * math.log(self.p_null) + jumped * math.log1p(-self.p_null))
        new = np.setdiff1d(block.sizes[0], self.jumps.rows.lengths)
        if len(new):
            against = params if how.against is None else how.against
            counts.expected -= self._log_normalisers(params, new, jumps)
            counts.ahead -= self._log_normalisers(against, new, jumps)

    def _log_normalisers(self, params: Params, lengths: IntArray, jumps: JumpCounts) -> float:
        """Σ n log Z of the positions left in sentences of these lengths."""
        family = JumpTable(self.reach, lengths)
        rows = [np.arange(l + 1) + jumps.weights.rows[l] for l in family.rows.lengths.tolist()]
        left = jumps.left[np.concatenate(rows)]
        return float(xlogy(left, family.totals(np.asarray(params[JUMPS]))).sum())

    def carry_over(
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


def _viterbi(
    block: LinkBlock,
    weights: chain.JumpWeights,
    links: FloatArray,
    threads: int,
    paths: IntArray,
    begins: IntArray,
) -> FloatArray:
    """The links of the best paths get 1, all others 0; gives log p(f, â) of each pair."""
    groups, logs = group_pairs(*block.sizes), np.zeros(len(block.numbers))
    pairs = (*groups, *block.sides, block.offsets, weights, links)
    over_rows(chain.viterbi, groups.begins, threads, *pairs, paths, begins, logs)
    return logs


def _forward_backward(
    block: LinkBlock,
    weights: chain.JumpWeights,
    links: FloatArray,
    threads: int,
    jumps: JumpCounts | None = None,
) -> FloatArray:
    """Emissions become posteriors, in place; adds expected jumps, gives log p of each pair."""
    groups, logs = group_pairs(*block.sizes), np.zeros(len(block.numbers))
    cuts = np.unique(np.linspace(0, len(groups.begins) - 1, PIECES + 1).astype(np.int64))
    own = [JumpCounts(weights) for _ in cuts[1:]]

    def work(piece: int) -> None:
        sums = own[piece]
        chain.forward_backward(
            cuts[piece],
            cuts[piece + 1],
            *groups,
            *block.sides,
            block.offsets,
            weights,
            links,
            logs,
            sums.widths,
            sums.starts,
            sums.left,
            jumps is not None,
        )

    in_turn(work, len(own), 1 if len(links) < FEW else threads)
    if jumps is not None:
        for sums in own:
            jumps.add(sums)
    return logs
