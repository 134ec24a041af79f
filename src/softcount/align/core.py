"""The alignment models: their families, and their E-steps.

    p(f | e) = Σ_a p(a | l, m) Π_j t(f_j | e_{a_j})

for a source sentence e of l words, a target sentence f of m words, and an alignment a that says for
each target position j which source position a_j its word comes from (Brown, Della Pietra, Della
Pietra & Mercer 1993, *The mathematics of statistical machine translation*). Models differ in
p(a | l, m) alone: it is uniform (IBM Model 1), a table d(i | j, l, m) (IBM Model 2), near the
diagonal (Dyer, Chahuneau & Smith 2013), or a chain of jumps (Vogel, Ney & Tillmann 1996).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from softcount.align import kernels
from softcount.align.data import (
    BLOCK,
    UNSEEN,
    BidirectionalCorpus,
    BidirectionalShard,
    BitextCorpus,
    BitextShard,
    LinkBlock,
    cumulate,
)
from softcount.align.families import DiagonalTension, JumpTable, StemTable
from softcount.align.kernels import (
    JumpCounts,
    JumpWeights,
    PairGroups,
    PairSizes,
    SentenceShapes,
)
from softcount.core.errors import LearnerError
from softcount.core.estimate import NUMBER, Estimate, held, n_entries, needing
from softcount.core.model import Model, demand_possible
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    Stats,
    Uncounted,
)
from softcount.families.base import Family
from softcount.families.categorical import SparseCategorical
from softcount.families.large import LargeTable
from softcount.kernels.threads import FEW, in_turn, over_rows
from softcount.learners.named import EM

IMPOSSIBLE = "has a target word that no source word can have become"
REMEDY = "add smoothing, let the empty word in (null=True), or look at the dictionary and the links"

TABLE = "translation"
"""The name of t(f | e), one number for each entry of the lexicon."""
PLACES = "places"
"""The name of what tells positions apart: d(i | j, l, m), or [λ]."""
JUMPS = "jumps"
"""The name of the weights of jumps."""

Sizes = tuple[IntArray, IntArray]
"""Source lengths and target lengths."""


class AlignmentCore(Model):
    """What all alignment models share: the table t(f | e) and the journey through the links.

    The last row of the table is that of the empty word.

    ``name``      what signatures call the model
    ``table``     the family of t(f | e)
    ``null``      whether target words may come from the empty word
    ``sizes``     source and target lengths of the pairs to learn from
    ``max_iter``  the steps of a warm-up; None: as many as are usual
    """

    threads_inside = True
    few_steps = True
    default_learner = EM(max_iter=5)
    """More steps raise the likelihood, and lower the quality of alignments."""
    entropy_of = (TABLE,)
    operations_per_link = 8.0
    """Operations that an E-step does for each possible link."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, max_iter: int | None = None
    ) -> None:
        if max_iter is not None:  # of a warm-up: all its steps, however little they change
            self.default_learner = EM(max_iter=max_iter, tol=0.0)
        self.name, self.table, self.null = name, table, null
        self.sizes: Sizes = SentenceShapes.of(*sizes)[:2]
        self.monotone = not isinstance(table, StemTable)
        self.families: dict[str, Family] = {TABLE: table}

    @abstractmethod
    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        """t(f | e) of a block's links becomes posteriors, in place; the rest goes to ``step``."""

    @abstractmethod
    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        """t(f | e) of a block's links becomes 1 for those of the best alignment, 0 for others."""

    def estimate(self, corpus: BitextCorpus) -> Estimate:
        """The table and its counts, an entry for each pair of words that occur together, and the
        links of a block of pairs."""
        l, m = corpus.everything.sizes
        links = float(np.sum((l + 1.0) * m))
        entries = sum(map(n_entries, self.families.values()))
        return needing(
            len(corpus),
            float(np.sum(m)),
            self.operations_per_link * links + 8.0 * entries,
            data=held(corpus),
            tables=4.0 * NUMBER * entries,
            links=2.0 * NUMBER * min(links, BLOCK),
        )

    def expect(self, params: Params, shard: BitextShard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard."""
        step = ShardEStep(self, params, shard, how)
        for block in shard.blocks():
            step.count(block, step.posteriors(block))
        return step.stats()

    def log_likelihoods(self, params: Params, shard: BitextShard, threads: int = 1) -> FloatArray:
        """log p(f | e) of every pair."""
        step = ShardEStep(self, params, shard, EStep(threads=threads, score_only=True))
        for block in shard.blocks():
            step.posteriors(block)
        return step.logs

    def carry_over(
        self, old: AlignmentCore, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Parameters and counts of an old core that had fewer lengths, but for the translations."""
        return {}, {}

    def totals(self, shard: BitextShard) -> dict[str, float]:
        """Every target word has one source."""
        return {TABLE: float(len(shard.target.tokens))}


class ShardEStep:
    """One E-step of a core over a shard, one block of links at a time.

    ``table``         (entries,) t(f | e) of the shard's entries
    ``table_counts``  (entries,) their expected counts; None: they are not wanted
    ``counts``        expected counts of the other families
    ``logs``          (pairs,) log p(f | e) of each pair
    ``scores``        (pairs,) what the E-step attained for each pair: see `Stats.score`
    ``expected``      what log p(f, a) has beside the counts: see `Uncounted`
    ``ahead``         the same at the parameters of `EStep.against`
    """

    def __init__(self, core: AlignmentCore, params: Params, shard: BitextShard, how: EStep) -> None:
        self.core, self.params, self.shard, self.how = core, params, shard, how
        self.table = shard.take_entries(params[TABLE], how.theory)
        self.logs, self.scores = np.zeros(len(shard)), np.zeros(len(shard))
        self.expected = self.ahead = 0.0
        self.table_counts: FloatArray | None = None
        self.counts: dict[str, Array] = {}
        if not how.score_only:
            self.table_counts = np.zeros(len(shard.lexicon))
            others = (item for item in core.families.items() if item[0] != TABLE)
            self.counts = {name: family.zeros() for name, family in others}
        self._memory = np.empty(0, self.table.dtype)

    def posteriors(self, block: LinkBlock, best: bool = False) -> FloatArray:
        """What the core makes of a block's links: it stays until the next block is asked for.

        ``best``  1 for the links of the best alignments, 0 for others
        """
        size = int(block.offsets[-1])
        if len(self._memory) < size:  # fresh memory for each block is slow
            self._memory = np.empty(size, self.table.dtype)
        links = self._memory[:size]
        links[:] = 0.0
        block.gather(self.table, links, self.how.threads)
        make = self.core.decode if best else self.core.infer
        make(self, block, links)
        return links

    def count(self, block: LinkBlock, links: FloatArray) -> None:
        """Add a block's links to the counts of translations, if they are wanted."""
        if self.table_counts is not None:
            block.scatter(links, self.table_counts, self.how.threads)

    def add_fixed(self, logs: float) -> None:
        """Add the expected log of probabilities that no parameter changes."""
        self.expected += logs
        self.ahead += logs

    def stats(self) -> Stats:
        """What was found, if every pair is possible."""
        shard, table, theory = self.shard, self.table_counts, self.how.theory
        demand_possible(shard.numbers, self.logs, IMPOSSIBLE, REMEDY)
        counts: dict[str, Counts] = {}
        if table is not None:
            counts = {TABLE: shard.model_counts(table, self.core.table.n_entries), **self.counts}
            if theory and shard.entries is not None:
                # entries that the model's lexicon does not have
                unseen = float(table[shard.entries < 0].sum())
                self.add_fixed(unseen * math.log(UNSEEN))
        return Stats(
            counts,
            log_likelihood=float(self.logs.sum()),
            score=float(self.scores.sum()),
            items=float(len(shard)),
            tokens=float(len(shard.target.tokens)),
            uncounted=Uncounted(self.expected, self.ahead) if theory else NOTHING_UNCOUNTED,
        )


# Every target word chooses its source word for itself: columns of links are distributions


def fill_in_columns(
    block: LinkBlock, links: FloatArray, how: EStep
) -> tuple[FloatArray, FloatArray]:
    """Joint probabilities of links become posteriors, best links or draws, in place.

    Gives log p and the score of each pair.
    """
    columns = (block.sizes[1], block.offsets)
    logs = np.zeros(len(block.numbers))
    if how.fill == "soft" and how.temper == 1.0:
        over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, links, logs)
        return logs, logs
    scores = np.zeros(len(logs))
    if how.fill == "hard":
        copy = links.copy()
        over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, copy, logs)
        over_rows(kernels.choose_best, block.offsets, how.threads, *columns, links, scores)
        return logs, scores
    # powers of posteriors are proportional to those of joint probabilities, and not as small
    over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, links, logs)
    np.power(links, how.temper, out=links)
    over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, links, scores)
    if how.fill == "sample":
        draws = (block.numbers, np.uint64(how.stream), how.samples)
        over_rows(kernels.draw_columns, block.offsets, how.threads, *columns, links, *draws)
    return logs, logs + scores / how.temper


def decode_columns(block: LinkBlock, links: FloatArray, threads: int) -> None:
    """Joint probabilities of links become 1 for each word's best position, 0 for others."""
    scores = np.zeros(len(block.numbers))
    columns = (block.sizes[1], block.offsets, links, scores)
    over_rows(kernels.choose_best, block.offsets, threads, *columns)


class IBM1Core(AlignmentCore):
    """Every position is as likely as any other: p(a | l, m) = (l + 1)^−m (Brown et al. 1993)."""

    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        decode_columns(block, links, step.how.threads)

    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        logs, scores = fill_in_columns(block, links, step.how)
        uniform = self._log_uniform(*block.sizes)
        step.logs[block.span] = logs + uniform
        step.scores[block.span] = scores + uniform
        step.add_fixed(float(uniform.sum()))

    def _log_uniform(self, l: IntArray, m: IntArray) -> FloatArray:
        """log p(a | l, m) = −m log(l + 1)."""
        uniform: FloatArray = -m * np.log(l + float(self.null))
        return uniform

    def expect(self, params: Params, shard: BitextShard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; soft ones without writing down a link.

        c(f | e) = t(f | e) Σ 1 / Σ_{e'} t(f | e'), the first sum over all occurrences of e and of f
        beside it: see `softcount.align.kernels`.
        """
        if not (how.fill == "soft" and how.temper == 1.0 and shard.constraints is None):
            return super().expect(params, shard, how, local)
        step = ShardEStep(self, params, shard, how)
        table, arrays, borders = step.table, shard.arrays, shard.target.indptr
        # Σ_e t(f_j | e) of every target token, then 1 / Σ_e t(f_j | e)
        sums = np.empty(len(shard.target.tokens), table.dtype)
        over_rows(kernels.denominators, borders, how.threads, table, arrays, sums)
        over_rows(kernels.invert, borders, how.threads, borders, sums, step.logs)
        uniform = self._log_uniform(*shard.sizes)
        step.logs += uniform
        step.scores = step.logs
        step.add_fixed(float(uniform.sum()))
        if not how.score_only:
            step.table_counts = np.empty(len(shard.lexicon), table.dtype)
            given = (table, arrays, sums, step.table_counts)
            over_rows(kernels.expected_counts, arrays.occurs, how.threads, *given)
        return step.stats()


# Positions depend on the target position and on the lengths: d(i | j, l, m)


class PositionCore(AlignmentCore):
    """p(f, a | e) = Π_j t(f_j | e_{a_j}) d(a_j | j, l, m); the empty word's position is the last.

    A shape is a pair of lengths (l, m), a cell is one position (i, j) of a shape.
    """

    shapes: SentenceShapes

    @abstractmethod
    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        """d of these shapes, which may be new: (l + 1, m) numbers for each."""

    @abstractmethod
    def family_counts(self, cells: FloatArray) -> FloatArray:
        """Counts of the cells of this model's shapes, in the order that its family wants."""

    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        self._multiply(step, block, links)
        decode_columns(block, links, step.how.threads)

    def _multiply(
        self, step: ShardEStep, block: LinkBlock, links: FloatArray
    ) -> tuple[SentenceShapes, IntArray]:
        """t becomes t · d; gives the block's shapes, and which of them each pair has."""
        shapes = SentenceShapes.of(*block.sizes)
        number = shapes.numbers(*block.sizes)
        cells = self.cells(step.params, shapes).astype(links.dtype, copy=False)
        positions = (block.offsets, shapes.begins[number], cells, links)
        over_rows(kernels.multiply_positions, block.offsets, step.how.threads, *positions)
        return shapes, number

    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        params, how = step.params, step.how
        shapes, number = self._multiply(step, block, links)
        step.logs[block.span], step.scores[block.span] = fill_in_columns(block, links, how)
        if how.score_only:
            return
        order = np.argsort(number, kind="stable")
        groups = np.searchsorted(number[order], np.arange(len(shapes.heights) + 1))
        sums = np.zeros(shapes.n_cells)
        pairs = (groups, order, block.offsets, shapes.begins[number], links, sums)
        over_rows(kernels.add_positions, shapes.begins, how.threads, *pairs)
        step.counts[PLACES] += self.family_counts(self.shapes.take(shapes, sums))
        if how.theory:
            against = params if how.against is None else how.against
            step.expected += self._uncounted(params, shapes, sums)
            step.ahead += self._uncounted(against, shapes, sums)

    def _uncounted(self, params: Params, shapes: SentenceShapes, sums: FloatArray) -> float:
        """Σ c log d of what the family does not count: shapes that are new, and what is fixed."""
        new = self.shapes.numbers(shapes.heights, shapes.widths) < 0
        lost = np.repeat(new, np.diff(shapes.begins))
        found = self.fixed_log(shapes, np.where(lost, 0.0, sums))
        if new.any():
            found += float(xlogy(sums[lost], self.cells(params, shapes)[lost]).sum())
        return found

    def fixed_log(self, shapes: SentenceShapes, sums: FloatArray) -> float:
        """Σ c log of the factors of d that nothing changes, of shapes that the family has."""
        return 0.0


class IBM2Core(PositionCore):
    """d(i | j, l, m) is a table (Brown et al. 1993); lengths never seen have d = 1 / (l + 1)."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, prior: float = 1.0
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes = shapes = SentenceShapes.of(*self.sizes)
        indptr = cumulate(np.repeat(shapes.heights + 1, shapes.widths))
        mask = None
        if not null:
            mask = np.ones(shapes.n_cells, bool)
            mask[indptr[1:] - 1] = False  # the empty word's is the last of each row
        self.places = SparseCategorical(indptr, prior, mask)
        self.families[PLACES] = self.places

    @cached_property
    def _order(self) -> IntArray:
        """Cells lie by source position, the family's rows by target position: where each is."""
        parts = [
            begin + np.arange((l + 1) * m).reshape(m, l + 1).T.reshape(-1)
            for l, m, begin in zip(*self.shapes[:2], self.shapes.begins, strict=False)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        uniform = np.repeat(1.0 / np.maximum(shapes.heights + self.null, 1), np.diff(shapes.begins))
        return shapes.take(self.shapes, np.asarray(params[PLACES])[self._order], uniform)

    def family_counts(self, cells: FloatArray) -> FloatArray:
        counts = np.empty_like(cells)
        counts[self._order] = cells
        return counts

    def carry_over(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        def recast(cells: FloatArray) -> FloatArray:
            return self.family_counts(self.shapes.take(old.shapes, cells))

        learned = recast(np.asarray(params[PLACES])[old._order])
        known = recast(np.ones(old.shapes.n_cells)) > 0.0
        start = np.where(known, learned, self.places.uniform())
        return {PLACES: start}, {PLACES: recast(counts[PLACES][old._order])}


class DiagonalCore(PositionCore):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); the empty word has p₀ (Dyer et al. 2013)."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, p_null: float
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes, self.p_null = SentenceShapes.of(*self.sizes), float(p_null) if null else 0.0
        self.families[PLACES] = DiagonalTension(self.shapes)

    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        return kernels.fill_diagonal(shapes, float(params[PLACES][0]), self.p_null)

    def family_counts(self, cells: FloatArray) -> FloatArray:
        return cells

    def fixed_log(self, shapes: SentenceShapes, sums: FloatArray) -> float:
        """The empty word has p₀, all others 1 − p₀ together."""
        sizes = np.diff(shapes.begins)
        cell = np.arange(shapes.n_cells) - np.repeat(shapes.begins[:-1], sizes)
        empty = cell >= np.repeat(shapes.heights * shapes.widths, sizes)
        words, none = float(sums[~empty].sum()), float(sums[empty].sum())
        return float(xlogy(none, self.p_null) + xlogy(words, 1.0 - self.p_null))

    def carry_over(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        seen = self.shapes.take(old.shapes, counts[PLACES])
        return {PLACES: np.array(params[PLACES])}, {PLACES: seen}


# Positions form a chain: p(a | l, m) = Π_j p(a_j | a_{j−1}, l)

LANES, FEW_LANES = 32, 8
"""The number of pairs that go through a kernel in lockstep, one in each lane."""
WASTE = 1.5
"""A group of pairs is broken up if going in lockstep would cost so much more than going alone."""
PIECES = 8
"""The number of pieces that groups are cut into, whatever the threads: sums have one order."""


def group_pairs(l: IntArray, m: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of these lengths in groups of about one size: see `PairGroups`."""
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
    return np.array(begins), order


class HMMAlignmentCore(AlignmentCore):
    """p(a | l, m) = Π_j p(a_j | a_{j−1}, l): a chain of jumps (Vogel, Ney & Tillmann 1996).

    A jump from position h to position k has the probability w(k − h) / Z(h), Z the sum over all
    positions of the sentence; a target word comes from the empty word with probability p₀, and the
    chain goes on from where it was (Och & Ney 2003).

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

    def jump_weights(
        self, params: Params, lengths: IntArray, links: FloatArray, temper: float = 1.0
    ) -> JumpWeights:
        """What the kernels need to know of jumps in sentences of these lengths.

        The numbers are of the same kind as the links.
        """
        family, weights = JumpTable(self.reach, lengths), np.asarray(params[JUMPS])
        ahead, start = family.spread_weights(weights)
        z = family.totals(weights)
        z = np.divide(1.0 - self.p_null, z, where=z > 0.0, out=np.zeros_like(z))
        begins = np.zeros(family.longest + 1, np.int64)
        begins[family.rows.lengths] = family.rows.begins[:-1]
        ahead, start, z = ahead**temper, np.append(start, 0.0) ** temper, z**temper
        ahead, start, z = (numbers.astype(links.dtype) for numbers in (ahead, start, z))
        p0 = links.dtype.type(self.p_null**temper)
        return JumpWeights(ahead, ahead[::-1].copy(), start, family.longest, z, begins, p0)

    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        (l, m), params, how = block.sizes, step.params, step.how
        weights = self.jump_weights(params, l, links)
        jumps = None if how.score_only else _no_jumps(weights)
        if how.fill == "soft" and how.temper == 1.0:
            logs = _forward_backward(block, weights, links, how.threads, jumps)
            step.logs[block.span] = step.scores[block.span] = logs
        else:
            step.logs[block.span] = _forward_backward(block, weights, links.copy(), how.threads)
            step.scores[block.span] = self._fill_in(step, block, links, jumps)
        if jumps is None:
            return
        own, here = self.jumps, JumpTable(self.reach, l)
        by_weight = here.collect_weights(jumps.widths, jumps.starts)
        left = own.rows.take(here.rows, jumps.left)  # new text may have other lengths
        step.counts[JUMPS] += np.concatenate([by_weight, left])
        if not how.theory:
            return
        # the family does not count that the empty word has p₀ and jumps 1 − p₀,
        # nor the normalisers of lengths that are new to it
        jumped = float(jumps.left.sum())
        stayed = float(m.sum()) - jumped
        if self.p_null > 0.0:
            step.add_fixed(stayed * math.log(self.p_null) + jumped * math.log1p(-self.p_null))
        new = np.setdiff1d(l, own.rows.lengths)
        if len(new):
            family = JumpTable(self.reach, new)
            left = family.rows.take(here.rows, jumps.left)
            against = params if how.against is None else how.against
            step.expected -= float(xlogy(left, family.totals(np.asarray(params[JUMPS]))).sum())
            step.ahead -= float(xlogy(left, family.totals(np.asarray(against[JUMPS]))).sum())

    def _fill_in(
        self, step: ShardEStep, block: LinkBlock, links: FloatArray, jumps: JumpCounts | None
    ) -> FloatArray:
        """Tempered posteriors, best paths or sampled ones; returns the score of each pair."""
        (l, m), how = block.sizes, step.how
        temper = 1.0 if how.fill == "hard" else how.temper
        weights = self.jump_weights(step.params, l, links, temper)
        samples = how.samples if how.fill == "sample" else 1
        begins = cumulate(m) * samples
        paths = np.zeros(begins[-1], np.int32)
        if how.fill == "hard":
            scores = _viterbi(block, weights, links, how.threads, paths, begins)
        else:
            scores = np.zeros(len(l))
            columns = (m, block.offsets, links, scores)
            over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns)
            np.power(links, how.temper, out=links)  # of columns that sum to one: not as small
            soft = how.fill == "soft"
            own = links if soft else links.copy()
            logs = _forward_backward(block, weights, own, how.threads, jumps if soft else None)
            scores += logs / how.temper
        if how.fill == "soft":
            return scores
        if how.fill == "sample":
            draws = (block.numbers, np.uint64(how.stream), samples, paths, begins)
            pairs = (block.sizes, block.offsets, links, weights)
            over_rows(kernels.sample_paths, block.offsets, how.threads, *pairs, *draws)
        if jumps is not None:
            kernels.count_path_jumps(block.sizes, weights, paths, begins, samples, jumps)
        return scores

    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        l, m = block.sizes
        weights, begins = self.jump_weights(step.params, l, links), cumulate(m)
        paths = np.zeros(begins[-1], np.int32)
        _viterbi(block, weights, links, step.how.threads, paths, begins)

    def carry_over(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        if old.reach != self.reach:
            raise LearnerError(
                f"max_jump was {old.reach} when the model was fitted, and is {self.reach} now",
                "set it back, or fit again",
            )
        by_weight, left = np.split(counts[JUMPS], [old.jumps.n_weights])
        own = np.concatenate([by_weight, self.jumps.rows.take(old.jumps.rows, left)])
        return {JUMPS: np.array(params[JUMPS])}, {JUMPS: own}


def _no_jumps(weights: JumpWeights) -> JumpCounts:
    sizes = len(weights.ahead), len(weights.start) - 1, len(weights.z)
    return JumpCounts(*(np.zeros(size) for size in sizes))


def _viterbi(
    block: LinkBlock,
    weights: JumpWeights,
    links: FloatArray,
    threads: int,
    paths: IntArray,
    begins: IntArray,
) -> FloatArray:
    """The links of the best paths get 1, all others 0; returns log p(f, â) of each pair."""
    groups = PairGroups(*group_pairs(*block.sizes), *block.borders, block.offsets)
    logs = np.zeros(len(block.numbers))
    given = (groups, weights, links, paths, begins, logs)
    over_rows(kernels.viterbi, groups.begins, threads, *given)
    return logs


def _forward_backward(
    block: LinkBlock,
    weights: JumpWeights,
    links: FloatArray,
    threads: int,
    jumps: JumpCounts | None = None,
) -> FloatArray:
    """Emissions become posteriors, in place; adds expected jumps, returns log p of each pair."""
    groups = PairGroups(*group_pairs(*block.sizes), *block.borders, block.offsets)
    logs = np.zeros(len(block.numbers))
    cuts = np.unique(np.linspace(0, len(groups.begins) - 1, PIECES + 1).astype(np.int64))
    own = [_no_jumps(weights) for _ in cuts[1:]]

    def work(piece: int) -> None:
        given = (groups, weights, links, logs, own[piece], jumps is not None)
        kernels.forward_backward(cuts[piece], cuts[piece + 1], *given)

    in_turn(work, len(own), 1 if len(links) < FEW else threads)
    if jumps is not None:
        for part in own:
            for total, more in zip(jumps, part, strict=True):
                total += more
    return logs


# Both directions at once: the model of the target given the source and that of the source given the
# target learn together, each from links that both believe in (Liang, Taskar & Klein 2006)

FORWARD, BACKWARD = "forward.", "backward."
"""Tables of the target given the source, and of the source given the target, have such names."""

NO_BOUND = (
    "for two directions that agree count links by the product of two posteriors, which is the "
    "posterior of neither"
)


def split_directions(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, counts or arrays of either direction, under their own names."""
    forward, backward = (
        {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}
        for prefix in (FORWARD, BACKWARD)
    )
    return forward, backward


def join_directions(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Those of both directions, under the names that both together have."""
    return {
        prefix + name: value
        for prefix, own in zip((FORWARD, BACKWARD), values, strict=True)
        for name, value in own.items()
    }


class AgreementCore(Model):
    """Each direction counts links by the product of both directions' posteriors.

    Links that one direction alone believes in are not learned from (Liang, Taskar & Klein 2006).
    That is a heuristic E-step: the objective, log p(f | e) + log p(e | f), need not rise.

    ``agree``     False: both learn side by side, each for itself
    ``max_iter``  the steps of a warm-up; None: as many as are usual
    """

    threads_inside = True
    few_steps = True
    default_learner = EM(max_iter=5)

    def __init__(
        self,
        name: str,
        forward: AlignmentCore,
        backward: AlignmentCore,
        agree: bool = True,
        max_iter: int | None = None,
    ) -> None:
        if max_iter is not None:  # of a warm-up: all its steps, however little they change
            self.default_learner = EM(max_iter=max_iter, tol=0.0)
        self.name, self.agree = name, agree
        self.monotone = forward.monotone and backward.monotone and not agree
        self.no_bound = NO_BOUND if agree else ""
        self.forward, self.backward = forward, backward
        self.families: dict[str, Family] = join_directions([forward.families, backward.families])
        self.entropy_of = (FORWARD + TABLE, BACKWARD + TABLE)

    def estimate(self, corpus: BidirectionalCorpus) -> Estimate:
        """What both directions need."""
        found, more = self.forward.estimate(corpus.forward), self.backward.estimate(corpus.backward)
        return found.plus(more.work, **more.parts)

    def expect(
        self, params: Params, shard: BidirectionalShard, how: EStep, local: Any = None
    ) -> Stats:
        """Counts of both directions, and the sum of their log-likelihoods."""
        own, others = split_directions(params)
        if not self.agree:
            one = self.forward.expect(own, shard.forward, how)
            other = self.backward.expect(others, shard.backward, how)
        else:
            forward = ShardEStep(self.forward, own, shard.forward, how)
            backward = ShardEStep(self.backward, others, shard.backward, how)
            for here, there in zip(shard.forward.blocks(), shard.backward_blocks(), strict=True):
                links, back = forward.posteriors(here), backward.posteriors(there)
                if not how.score_only:
                    sizes = PairSizes(*here.sizes, here.offsets, there.offsets)
                    given = (sizes, links, back)
                    over_rows(kernels.multiply_directions, here.offsets, how.threads, *given)
                forward.count(here, links)
                backward.count(there, back)
            one, other = forward.stats(), backward.stats()
        return Stats(
            join_directions([one.counts, other.counts]),
            one.log_likelihood + other.log_likelihood,
            one.score + other.score,
            one.items,
            one.tokens + other.tokens,
            uncounted=one.uncounted + other.uncounted,
        )

    def totals(self, shard: BidirectionalShard) -> dict[str, float]:
        """Every word of either side has one source."""
        return join_directions(
            [self.forward.totals(shard.forward), self.backward.totals(shard.backward)]
        )
