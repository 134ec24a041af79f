"""The alignment models: their families, and their E-steps.

    p(f | e) = Σ_a p(a | l, m) Π_j t(f_j | e_{a_j})

for a source sentence e of l words, a target sentence f of m words, and an alignment a that maps
each target position j to the source position a_j that generates its word (Brown, Della Pietra,
Della Pietra & Mercer 1993, *The mathematics of statistical machine translation*). The models differ
only in p(a | l, m): uniform (IBM Model 1), a table d(i | j, l, m) (IBM Model 2), concentrated near
the diagonal (Dyer, Chahuneau & Smith 2013), or a Markov chain of jumps (Vogel, Ney & Tillmann
1996).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
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
from softcount.align.decoding import HALF, ChosenLinks, select_links, symmetrise_all
from softcount.align.families import DiagonalTension, JumpTable, StemTable
from softcount.align.kernels import (
    JumpCounts,
    JumpWeights,
    PairGroups,
    PairSizes,
    SentenceShapes,
)
from softcount.core import pages, spill
from softcount.core.errors import LearnerError
from softcount.core.estimate import NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.model import Model, check_possible
from softcount.core.tilting import EXPECTED
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    Counts,
    DerivedCounts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
    Uncounted,
)
from softcount.families.base import Family
from softcount.families.categorical import SparseCategorical
from softcount.families.large import LargeTable
from softcount.kernels import sparse
from softcount.kernels.threads import FEW, even_pieces, in_turn, over_rows
from softcount.learners.named import EM

IMPOSSIBLE = "has a target word that no source word can generate"
REMEDY = "add smoothing, allow the empty word (null=True), or check the dictionary and the links"

TABLE = "translation"
"""The name of t(f | e), one number per entry of the lexicon."""
PLACES = "places"
"""The name of the positional parameters: d(i | j, l, m), or [λ]."""
JUMPS = "jumps"
"""The name of the jump weights."""

Sizes = tuple[IntArray, IntArray]
"""Source lengths and target lengths."""

LinkMatrices = Iterator[tuple[LinkBlock, FloatArray]]
"""Blocks of pairs, and a value for each of their links; valid until the next block is requested."""


class AlignmentCore(Model):
    """Base class of the alignment models: the table t(f | e) and the loop over blocks of links.

    The last row of the table is that of the empty word.

    ``name``      the model's name in signatures
    ``table``     the family of t(f | e)
    ``null``      whether target words can be aligned to the empty word
    ``sizes``     source and target lengths of the training pairs
    ``max_iter``  the number of steps of a warm-up; None: the default
    """

    threads_inside = True
    few_steps = True
    default_learner = EM(max_iter=5)
    """More steps raise the likelihood, but lower the quality of the alignments."""
    entropy_of = (TABLE,)
    operations_per_link = 8.0
    """Operations of an E-step for each possible link."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, max_iter: int | None = None
    ) -> None:
        if max_iter is not None:  # a warm-up takes all its steps, even after convergence
            self.default_learner = EM(max_iter=max_iter, tol=0.0)
        self.name, self.table, self.null = name, table, null
        self.sizes: Sizes = SentenceShapes.of(*sizes)[:2]
        self.monotone = not isinstance(table, StemTable)
        self.families: dict[str, Family] = {TABLE: table}

    @abstractmethod
    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        """Replace t(f | e) of a block's links by posteriors, in place.

        Log-likelihoods, and counts of the other families, are added to ``step``.
        """

    @abstractmethod
    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        """Replace t(f | e) of a block's links by 1 in the best alignment and 0 elsewhere."""

    def estimate(self, corpus: BitextCorpus) -> Estimate:
        """Estimate memory and work: the table and its counts, and the links of a block of pairs.

        The table has an entry for each pair of words that co-occur.
        """
        l, m = corpus.sizes
        links = float(np.sum((l + 1.0) * m))
        entries = sum(map(n_entries, self.families.values()))
        return make_estimate(
            len(corpus),
            float(np.sum(m)),
            self.operations_per_link * links + 8.0 * entries,
            data=count_bytes(corpus),
            tables=4.0 * NUMBER * entries,
            links=2.0 * NUMBER * min(links / len(corpus.cuts), BLOCK),
        )

    def expect(self, params: Params, shard: BitextShard, how: EStep, local: Any = None) -> Stats:
        """Compute the expected counts and the log-likelihood of a shard."""
        if how.tilt is not None:
            return self._expect_tilted(params, shard, how)
        shard = shard.load(how.threads)
        step = ShardEStep(self, params, shard, how)
        for block in shard.blocks():
            step.count(block, step.posteriors(block))
        return step.stats()

    def _expect_tilted(self, params: Params, shard: BitextShard, how: EStep) -> Stats:
        """Compute the same with weights on source words: each link to one has its weight."""
        shard, tilt = shard.load(how.threads), how.tilt
        assert tilt is not None
        step = ShardEStep(self, params, shard, how)
        sums = []
        for block in shard.blocks():
            links = step.posteriors(block)
            step.count(block, links)
            sums.append(block.sum_rows(links))
        stats = step.stats()
        expected = {EXPECTED: tilt.expect(shard.numbers, np.concatenate(sums)[:, None])}
        logs = stats.log_likelihood
        if not how.score_only:
            plain = replace(how, tilt=None, score_only=True, into=None)
            logs = self.expect(params, shard, plain).log_likelihood
        return replace(stats, counts={**stats.counts, **expected}, log_likelihood=logs)

    # predictions: functions of a shard for an engine, as `expect` is
    def log_likelihoods(
        self, params: Params, shard: BitextShard, how: EStep, local: Any = None
    ) -> tuple[IntArray, FloatArray]:
        """Compute log p(f | e) of every pair; return the pairs' numbers, too."""
        shard = shard.load(how.threads)
        step = ShardEStep(self, params, shard, replace(how, score_only=True))
        for block in shard.blocks():
            step.posteriors(block)
        return shard.numbers, step.logs

    def posteriors(
        self, params: Params, shard: BitextShard, how: EStep, local: Any = None
    ) -> tuple[IntArray, list[FloatArray]]:
        """Compute the link posteriors of every pair, (l, m); return the pairs' numbers, too."""
        return copy_matrices(self.posterior_blocks(params, shard.load(how.threads), how.threads))

    # step by step
    def lay_out(
        self,
        params: Params,
        shard: BitextShard,
        how: EStep,
        local: Any = None,
        over_targets: bool = False,
    ) -> PosteriorRows:
        """Return p(a_j = i | pair): a row per target position, a column per source position.

        The first column is the empty word, if there is one.

        ``over_targets``  instead of that, t(f_j | e_i) / Σ_x t(f_x | e_i): each source word spreads
                          over the target words. This is not the posterior of any model here
        """
        shard = shard.load(how.threads)
        step = ShardEStep(self, params, shard, replace(how, score_only=True))
        parts, items, positions = [], [], []
        longest = int(shard.sizes[0].max(initial=0)) + 1
        for block in shard.blocks():
            if over_targets:
                links = np.zeros(int(block.offsets[-1]), step.table.dtype)
                block.gather(step.table, links, how.threads)
            else:
                links = step.posteriors(block)
            for number, matrix in zip(block.numbers.tolist(), block.matrices(links), strict=True):
                table = matrix.astype(float)
                if over_targets:
                    table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
                l, m = len(table) - 1, table.shape[1]
                rows = np.full((m, longest), np.nan)
                rows[:, 1 : l + 1], rows[:, 0] = table[:-1].T, table[-1]
                parts.append(rows)
                items.append(np.full(m, number))
                positions.append(np.arange(m))
        check_possible(shard.numbers, step.logs, IMPOSSIBLE, REMEDY)
        values = np.concatenate(parts)[:, 0 if self.null else 1 :]
        return PosteriorRows(values, np.concatenate(items), {"position": np.concatenate(positions)})

    def select(
        self,
        params: Params,
        shard: BitextShard,
        how: EStep,
        local: Any = None,
        level: float | None = None,
        probabilities: bool = False,
    ) -> list[ChosenLinks]:
        """Predict links: those with a posterior above a level; None: of the best alignments."""
        shard = shard.load(how.threads)
        if level is not None:
            blocks = self.posterior_blocks(params, shard, how.threads)
            return [select_links(*block, level) for block in blocks]
        posteriors = self.posterior_blocks(params, shard, how.threads) if probabilities else None
        found = []
        for block, links in self.posterior_blocks(params, shard, how.threads, best=True):
            values = None if posteriors is None else next(posteriors)[1]
            found.append(select_links(block, links, HALF).with_values(block, values))
        return found

    def posterior_blocks(
        self,
        params: Params,
        shard: BitextShard,
        threads: int,
        blocks: Iterable[LinkBlock] | None = None,
        best: bool = False,
    ) -> LinkMatrices:
        """Yield link posteriors; with ``best``, 1 for links of the best alignment, else 0."""
        step = ShardEStep(self, params, shard, EStep(threads=threads, score_only=True))
        for block in blocks or shard.blocks():
            yield block, step.posteriors(block, best)

    def carry_over(
        self, old: AlignmentCore, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Convert parameters and counts of an old core, which knew fewer sentence lengths.

        The translation table is not among them.
        """
        return {}, {}

    def name_params(self) -> dict[str, tuple[list[Any], ...]]:
        """Return the names of the entries of all tables but the translations."""
        return {}

    def zero_counts(self, shard: BitextShard) -> dict[str, Array]:
        """Return counts of zero of all families but the translation table, to add a shard's to."""
        others = (item for item in self.families.items() if item[0] != TABLE)
        return {name: family.zeros() for name, family in others}

    def model_counts(self, shard: BitextShard, counts: Mapping[str, Array]) -> dict[str, Counts]:
        """Map what was added to `zero_counts` to counts as the families expect them."""
        return dict(counts)

    def totals(self, shard: BitextShard) -> dict[str, float]:
        """Return the total counts: every target word is aligned to one source word or NULL."""
        return {TABLE: float(len(shard.load().target.tokens))}


def copy_matrices(blocks: LinkMatrices) -> tuple[IntArray, list[FloatArray]]:
    """Return the numbers of pairs, and their matrices (l, m), without the empty word's row."""
    matrices: list[FloatArray] = []
    numbers: list[IntArray] = [np.zeros(0, np.int64)]
    for block, links in blocks:
        numbers.append(block.numbers)
        matrices += [matrix[:-1].astype(float) for matrix in block.matrices(links)]
    return np.concatenate(numbers), matrices


class ShardEStep:
    """One E-step of a core over a shard, one block of links at a time.

    ``table``         (entries,) t(f | e) of the shard's entries
    ``table_counts``  (entries,) their expected counts; None: not requested
    ``total``         (entries of the model,) the array that all shards add them to, if there is one
    ``counts``        expected counts of the other families, see `AlignmentCore.zero_counts`
    ``logs``          (pairs,) log p(f | e) of each pair
    ``scores``        (pairs,) the objective attained for each pair: see `Stats.score`
    ``expected``      the terms of E[log p(f, a)] that the counts do not cover: see `Uncounted`
    ``ahead``         the same terms at the parameters of `EStep.against`
    """

    def __init__(
        self,
        core: AlignmentCore,
        params: Params,
        shard: BitextShard,
        how: EStep,
        narrow: bool = False,
        null_alone: bool = False,
    ) -> None:
        """Prepare the E-step.

        ``narrow``      counts have the dtype of the table, unless shards are to be added up
        ``null_alone``  of translations, only those of the empty word are counted
        """
        self.core, self.params, self.shard, self.how = core, params, shard, how
        self.table = shard.take_entries(params[TABLE], how.theory)
        self.logs, self.scores = np.zeros(len(shard)), np.zeros(len(shard))
        self.expected = self.ahead = 0.0
        self.table_counts: FloatArray | None = None
        self.total: FloatArray | None = None
        self.counts: dict[str, Array] = {}
        self._null_alone = null_alone
        if null_alone:
            self.table_counts = np.zeros(int(np.diff(shard.lexicon.indptr[-2:])[0]))
            self.counts = core.zero_counts(shard)
        elif not how.score_only:
            if how.into is not None and shard.grid is not None:
                size = core.table.n_entries
                self.total = how.into(TABLE, lambda: spill.zeros(size))
            if self.total is not None and shard.entries is None:
                self.table_counts = self.total
            else:
                dtype = self.table.dtype if narrow and shard.grid is None else np.float64
                self.table_counts = spill.zeros(len(shard.lexicon), dtype)
            self.counts = core.zero_counts(shard)
        self._memory = np.empty(0, self.table.dtype)

    def posteriors(self, block: LinkBlock, best: bool = False) -> FloatArray:
        """Compute the link posteriors of a block; valid until the next block is requested.

        ``best``  instead, 1 for the links of the best alignments and 0 for others
        """
        size = int(block.offsets[-1])
        if len(self._memory) < size:  # one for all blocks: of another, views may be in use
            most = min(int(self.shard.arrays.offsets[-1]), BLOCK)
            self._memory = pages.zeros(max(size, most), self.table.dtype)
        links = self._memory[:size]
        if not self.shard.null:  # otherwise each link is set
            links[:] = 0.0
        block.gather(self.table, links, self.how.threads)
        if self.how.tilt is not None:
            block.scale_rows(links, np.exp(self.how.tilt.log_weights(block.numbers)[:, 0]))
        make = self.core.decode if best else self.core.infer
        make(self, block, links)
        return links

    def count(self, block: LinkBlock, links: FloatArray) -> None:
        """Add a block's posteriors to the counts of translations, if requested."""
        if self.table_counts is None:
            return
        if self._null_alone:
            block.scatter_null(links, self.table_counts)
        else:
            block.scatter(links, self.table_counts, self.how.threads)

    def add_fixed(self, logs: float) -> None:
        """Add the expected log of factors that depend on no parameter."""
        self.expected += logs
        self.ahead += logs

    def stats(self) -> Stats:
        """Return the statistics of the E-step; raise if a pair has probability 0."""
        shard, table = self.shard, self.table_counts
        check_possible(shard.numbers, self.logs, IMPOSSIBLE, REMEDY)
        counts: dict[str, Counts] = {}
        if table is not None:
            counts = self.core.model_counts(shard, self.counts)
            if self._null_alone:
                return self._stats(counts)
            if self.total is None:
                counts = {TABLE: shard.model_counts(table, self.core.table.n_entries), **counts}
            elif shard.entries is not None:
                sparse.add_at(self.total, shard.entries, table)
            if self.how.theory and shard.entries is not None:
                # entries that are not in the model's lexicon have the fixed probability UNSEEN
                unseen = float(table[shard.entries < 0].sum())
                self.add_fixed(unseen * math.log(UNSEEN))
        return self._stats(counts)

    def _stats(self, counts: dict[str, Counts]) -> Stats:
        theory = self.how.theory
        return Stats(
            counts,
            log_likelihood=float(self.logs.sum()),
            score=float(self.scores.sum()),
            items=float(len(self.shard)),
            tokens=float(len(self.shard.target.tokens)),
            uncounted=Uncounted(self.expected, self.ahead) if theory else NOTHING_UNCOUNTED,
        )


# Models in which target words are aligned independently: each column of links is a distribution


def fill_in_columns(
    block: LinkBlock, links: FloatArray, how: EStep
) -> tuple[FloatArray, FloatArray]:
    """Replace joint probabilities of links by posteriors, best links or draws, in place.

    Returns log p(f | e) and the score of each pair.
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
    # powers of posteriors are proportional to powers of joint probabilities, and do not underflow
    over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, links, logs)
    np.power(links, how.temper, out=links)
    over_rows(kernels.normalise_columns, block.offsets, how.threads, *columns, links, scores)
    if how.fill == "sample":
        draws = (block.numbers, np.uint64(how.stream), how.samples)
        over_rows(kernels.draw_columns, block.offsets, how.threads, *columns, links, *draws)
    return logs, logs + scores / how.temper


def decode_columns(block: LinkBlock, links: FloatArray, threads: int) -> None:
    """Replace joint probabilities by 1 at each target word's best position and 0 elsewhere."""
    scores = np.zeros(len(block.numbers))
    columns = (block.sizes[1], block.offsets, links, scores)
    over_rows(kernels.choose_best, block.offsets, threads, *columns)


class IBM1Core(AlignmentCore):
    """IBM Model 1: all alignments are equally likely, p(a | l, m) = (l + 1)^−m.

    See Brown et al. (1993).
    """

    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        decode_columns(block, links, step.how.threads)

    def infer(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        logs, scores = fill_in_columns(block, links, step.how)
        uniform = self._log_uniform(*block.sizes)
        step.logs[block.span] = logs + uniform
        step.scores[block.span] = scores + uniform
        step.add_fixed(float(uniform.sum()))

    def count_posteriors(
        self, params: Params, shard: BitextShard, posteriors: FloatArray, how: EStep
    ) -> Stats:
        shard = shard.load(how.threads)
        step, done = ShardEStep(self, params, shard, how), 0
        for block in shard.blocks():
            links = np.zeros(int(block.offsets[-1]), step.table.dtype)
            for matrix in block.matrices(links):
                l, m = len(matrix) - 1, matrix.shape[1]
                rows = posteriors[done : done + m]
                matrix[:-1] = rows[:, int(self.null) : int(self.null) + l].T
                matrix[-1] = rows[:, 0] if self.null else 0.0
                done += m
            step.count(block, links)
        return step.stats()

    def _log_uniform(self, l: IntArray, m: IntArray) -> FloatArray:
        """Compute log p(a | l, m) = −m log(l + 1)."""
        uniform: FloatArray = -m * np.log(l + float(self.null))
        return uniform

    def expect(self, params: Params, shard: BitextShard, how: EStep, local: Any = None) -> Stats:
        """Compute the expected counts and the log-likelihood of a shard.

        Plain EM needs no memory for links: c(f | e) = t(f | e) Σ 1 / Σ_{e'} t(f | e'), the first
        sum over all co-occurrences of e and f: see `softcount.align.kernels`.
        """
        shard = shard.load(how.threads)
        plain = how.fill == "soft" and how.temper == 1.0 and how.tilt is None
        if not (plain and shard.constraints is None):
            return super().expect(params, shard, how, local)
        step = ShardEStep(self, params, shard, how, narrow=True)
        table, arrays, borders = step.table, shard.arrays, shard.target.indptr
        # Σ_e t(f_j | e) of every target token, then 1 / Σ_e t(f_j | e)
        sums = pages.zeros(len(shard.target.tokens), table.dtype)
        # each piece reads the rows of all words that occur in it, so there are as few as possible
        n = 1 if len(sums) < FEW else how.threads
        cuts = even_pieces(np.diff(arrays.offsets), n).tolist()

        def add_up(piece: int) -> None:
            kernels.denominators(cuts[piece], cuts[piece + 1], table, arrays, sums)

        in_turn(add_up, len(cuts) - 1, how.threads)
        over_rows(kernels.invert, borders, how.threads, borders, sums, step.logs)
        uniform = self._log_uniform(*shard.sizes)
        step.logs += uniform
        step.scores = step.logs
        step.add_fixed(float(uniform.sum()))
        if not how.score_only:
            arguments = (table, arrays, sums, shard.rounding, step.table_counts)
            over_rows(kernels.expected_counts, arrays.occurs, how.threads, *arguments)
        return step.stats()


# Source positions depend on the target position and the sentence lengths: d(i | j, l, m)


class PositionCore(AlignmentCore):
    """Models with p(f, a | e) = Π_j t(f_j | e_{a_j}) d(a_j | j, l, m).

    The empty word's position is the last. A shape is a pair of lengths (l, m); a cell is one
    position (i, j) of a shape.
    """

    shapes: SentenceShapes

    @abstractmethod
    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        """Compute d for these shapes, which may be new: (l + 1, m) numbers for each."""

    def family_order(self, shapes: SentenceShapes) -> IntArray | None:
        """Return where each cell of these shapes is in the family's layout; None: it is the same.

        In both layouts the cells of each shape come together.
        """
        return None

    def zero_counts(self, shard: BitextShard) -> dict[str, Array]:
        # in the layout of the shard's own shapes, which may be few of all
        return {PLACES: np.zeros(shard.shapes.n_cells)}

    def model_counts(self, shard: BitextShard, counts: Mapping[str, Array]) -> dict[str, Counts]:
        cells, order = counts[PLACES], self.family_order(shard.shapes)
        if order is not None:
            cells = np.empty_like(cells)
            cells[order] = counts[PLACES]
        return {PLACES: self.shapes.scatter(shard.shapes, cells)}

    def decode(self, step: ShardEStep, block: LinkBlock, links: FloatArray) -> None:
        self._multiply(step, block, links)
        decode_columns(block, links, step.how.threads)

    def _multiply(
        self, step: ShardEStep, block: LinkBlock, links: FloatArray
    ) -> tuple[SentenceShapes, IntArray]:
        """Multiply t by d, in place; return the block's shapes, and the shape of each pair."""
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
        step.shard.shapes.add(step.counts[PLACES], shapes, sums)
        if how.theory:
            against = params if how.against is None else how.against
            step.expected += self._uncounted(params, shapes, sums)
            step.ahead += self._uncounted(against, shapes, sums)

    def _uncounted(self, params: Params, shapes: SentenceShapes, sums: FloatArray) -> float:
        """Compute Σ c log d of what the family does not count: new shapes, and fixed factors."""
        new = self.shapes.numbers(shapes.heights, shapes.widths) < 0
        uncounted = np.repeat(new, np.diff(shapes.begins))
        total = self.fixed_log(shapes, np.where(uncounted, 0.0, sums))
        if new.any():
            total += float(xlogy(sums[uncounted], self.cells(params, shapes)[uncounted]).sum())
        return total

    def fixed_log(self, shapes: SentenceShapes, sums: FloatArray) -> float:
        """Compute Σ c log of the factors of d that do not depend on parameters."""
        return 0.0


class IBM2Core(PositionCore):
    """IBM Model 2: d(i | j, l, m) is a table (Brown et al. 1993).

    For lengths that were not in the training pairs, d = 1 / (l + 1).
    """

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, prior: float = 1.0
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes = shapes = SentenceShapes.of(*self.sizes)
        indptr = cumulate(np.repeat(shapes.heights + 1, shapes.widths))
        mask = None
        if not null:
            mask = np.ones(shapes.n_cells, bool)
            mask[indptr[1:] - 1] = False  # the empty word is the last of each row
        self.places = SparseCategorical(indptr, prior, mask)
        self.families[PLACES] = self.places

    def name_params(self) -> dict[str, tuple[list[Any], ...]]:
        """Name each d(i | j, l, m), in the family's order: by target position."""
        names = [
            f"d({'NULL' if i == l else i} | {j}, l={l}, m={m})"
            for l, m in zip(self.shapes.heights.tolist(), self.shapes.widths.tolist(), strict=True)
            for j in range(m)
            for i in range(l + 1)
        ]
        return {PLACES: (names,)}

    def family_order(self, shapes: SentenceShapes) -> IntArray:
        # cells are by source position, the family's rows by target position
        parts = [
            begin + np.arange((l + 1) * m).reshape(m, l + 1).T.reshape(-1)
            for l, m, begin in zip(*shapes[:2], shapes.begins, strict=False)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        uniform = np.repeat(1.0 / np.maximum(shapes.heights + self.null, 1), np.diff(shapes.begins))
        places = shapes.take(self.shapes, np.asarray(params[PLACES]), uniform)
        return places[self.family_order(shapes)]

    def carry_over(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        start = self.shapes.take(old.shapes, np.asarray(params[PLACES]), self.places.uniform())
        return {PLACES: start}, {PLACES: self.shapes.take(old.shapes, counts[PLACES])}


class DiagonalCore(PositionCore):
    """d(i | j, l, m) ∝ exp(−λ |i/l − j/m|); p₀ for the empty word (Dyer et al. 2013)."""

    def __init__(
        self, name: str, table: LargeTable, null: bool, sizes: Sizes, p_null: float
    ) -> None:
        super().__init__(name, table, null, sizes)
        self.shapes, self.p_null = SentenceShapes.of(*self.sizes), float(p_null) if null else 0.0
        self.families[PLACES] = DiagonalTension(self.shapes)

    def name_params(self) -> dict[str, tuple[list[Any], ...]]:
        return {PLACES: (["tension"],)}

    def cells(self, params: Params, shapes: SentenceShapes) -> FloatArray:
        return kernels.fill_diagonal(shapes, float(params[PLACES][0]), self.p_null)

    def fixed_log(self, shapes: SentenceShapes, sums: FloatArray) -> float:
        """Compute Σ c log of p₀ for the empty word, and of 1 − p₀ for all other positions."""
        sizes = np.diff(shapes.begins)
        cell = np.arange(shapes.n_cells) - np.repeat(shapes.begins[:-1], sizes)
        empty = cell >= np.repeat(shapes.heights * shapes.widths, sizes)
        n_words, n_null = float(sums[~empty].sum()), float(sums[empty].sum())
        return float(xlogy(n_null, self.p_null) + xlogy(n_words, 1.0 - self.p_null))

    def carry_over(
        self, old: Any, params: Params, counts: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        seen = self.shapes.take(old.shapes, counts[PLACES])
        return {PLACES: np.array(params[PLACES])}, {PLACES: seen}


# Source positions form a Markov chain: p(a | l, m) = Π_j p(a_j | a_{j−1}, l)

LANES, FEW_LANES = 32, 8
"""The number of pairs that a kernel processes in lockstep, one in each lane."""
WASTE = 1.5
"""A group of pairs is split if lockstep would cost more than this factor of separate processing."""
PIECES = 8
"""The groups are cut into this many pieces, however many threads there are, so that floating-point
sums are always in the same order."""


def group_pairs(l: IntArray, m: IntArray) -> tuple[IntArray, IntArray]:
    """Group pairs of similar lengths: return the group borders and the order, see `PairGroups`."""
    length_class = np.floor(np.log(l) / np.log(1.03)).astype(np.int64)
    order = np.lexsort((m, length_class))
    work = l[order].astype(float) ** 2 * m[order]

    def lane_cost(group: IntArray) -> float:
        return float(l[group].max()) ** 2 * float(m[group].max())

    begins = [0]
    for first in range(0, len(order), LANES):
        last = min(first + LANES, len(order))
        if lane_cost(order[first:last]) * LANES <= WASTE * work[first:last].sum():
            begins.append(last)
            continue
        for begin in range(first, last, FEW_LANES):
            end = min(begin + FEW_LANES, last)
            together = lane_cost(order[begin:end]) <= WASTE * work[begin:end].sum()
            begins.extend([end] if together else range(begin + 1, end + 1))
    return np.array(begins), order


class HMMAlignmentCore(AlignmentCore):
    """p(a | l, m) = Π_j p(a_j | a_{j−1}, l): a chain of jumps (Vogel, Ney & Tillmann 1996).

    A jump from position h to position k has probability w(k − h) / Z(h), where Z sums over all
    positions of the sentence; a target word is aligned to the empty word with probability p₀, and
    the chain then continues from its previous position (Och & Ney 2003).

    ``p_null``  p₀, the probability that a target word is aligned to the empty word
    ``reach``   all wider jumps are as likely as one of this width
    ``prior``   Dirichlet prior of the jump weights
    """

    lays_out_draws = True

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
        # plain Python numbers: other types would make numba compile the kernels again
        self.p_null, self.reach = float(p_null) if null else 0.0, int(reach)
        self.jumps = JumpTable(self.reach, self.sizes[0], prior)
        self.families[JUMPS] = self.jumps

    def name_params(self) -> dict[str, tuple[list[Any], ...]]:
        widths = [f"jump {width:+d}" for width in range(-self.reach, self.reach + 1)]
        return {JUMPS: ([*widths, *(f"start at {n}" for n in range(self.reach))],)}

    def jump_weights(
        self, params: Params, lengths: IntArray, links: FloatArray, temper: float = 1.0
    ) -> JumpWeights:
        """Compute the jump weights of sentences of these lengths, for the kernels.

        They have the dtype of the links; ``temper`` is a power of all probabilities.
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
        jumps = None if how.score_only else _zero_jump_counts(weights)
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
        left = own.rows.take(here.rows, jumps.left)  # new text may have other sentence lengths
        step.counts[JUMPS] += np.concatenate([by_weight, left])
        if not how.theory:
            return
        # not counted by the family: the factors p₀ of the empty word and 1 − p₀ of jumps,
        # and the normalisers of sentence lengths that are new to it
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
        """Compute tempered posteriors, best paths or sampled paths; return each pair's score."""
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
            # columns that sum to one do not underflow when raised to a power
            np.power(links, how.temper, out=links)
            soft = how.fill == "soft"
            emissions = links if soft else links.copy()
            soft_jumps = jumps if soft else None
            logs = _forward_backward(block, weights, emissions, how.threads, soft_jumps)
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
                f"max_jump was {old.reach} when the model was fitted, but is {self.reach} now",
                "set it back, or fit again",
            )
        by_weight, left = np.split(counts[JUMPS], [old.jumps.n_weights])
        jump_counts = np.concatenate([by_weight, self.jumps.rows.take(old.jumps.rows, left)])
        return {JUMPS: np.array(params[JUMPS])}, {JUMPS: jump_counts}


def _zero_jump_counts(weights: JumpWeights) -> JumpCounts:
    """Allocate jump counts of zero."""
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
    """Set the links of the best paths to 1, all others to 0; return log p(f, â) of each pair."""
    groups = PairGroups(*group_pairs(*block.sizes), *block.borders, block.offsets)
    logs = np.zeros(len(block.numbers))
    arguments = (groups, weights, links, paths, begins, logs)
    over_rows(kernels.viterbi, groups.begins, threads, *arguments)
    return logs


def _forward_backward(
    block: LinkBlock,
    weights: JumpWeights,
    links: FloatArray,
    threads: int,
    jumps: JumpCounts | None = None,
) -> FloatArray:
    """Replace emissions by posteriors, in place; return log p of each pair.

    ``jumps``  the expected jumps are added to it, unless it is None
    """
    groups = PairGroups(*group_pairs(*block.sizes), *block.borders, block.offsets)
    logs = np.zeros(len(block.numbers))
    cuts = np.unique(np.linspace(0, len(groups.begins) - 1, PIECES + 1).astype(np.int64))
    partial_counts = [_zero_jump_counts(weights) for _ in cuts[1:]]

    def process(piece: int) -> None:
        arguments = (groups, weights, links, logs, partial_counts[piece], jumps is not None)
        kernels.forward_backward(cuts[piece], cuts[piece + 1], *arguments)

    in_turn(process, len(partial_counts), 1 if len(links) < FEW else threads)
    if jumps is not None:
        for part in partial_counts:
            for total, more in zip(jumps, part, strict=True):
                total += more
    return logs


# Both directions at once: the models of the target given the source and of the source given the
# target are trained jointly, each on links that both consider likely (Liang, Taskar & Klein 2006)

FORWARD, BACKWARD = "forward.", "backward."
"""Prefixes of the names of tables of the target given the source, and of the reverse direction."""

# the end of an error message of `softcount.core.model`
NO_BOUND = (
    "for two directions that agree count links by the product of two posteriors, which is the "
    "posterior of neither"
)


def split_directions(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters, counts or arrays by direction, and remove the prefixes of their names."""
    forward, backward = (
        {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}
        for prefix in (FORWARD, BACKWARD)
    )
    return forward, backward


def join_directions(values: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the values of both directions, with the prefixes of `FORWARD` and `BACKWARD`."""
    return {
        prefix + name: value
        for prefix, direction in zip((FORWARD, BACKWARD), values, strict=True)
        for name, value in direction.items()
    }


def _of_direction(how: EStep, prefix: str) -> EStep:
    """Return the options of an E-step for one direction, whose families have no prefix."""
    into = how.into
    if into is None:
        return how
    return replace(how, into=lambda name, make: into(prefix + name, make))


class TransposedCounts(DerivedCounts):
    """Translations of the backward direction, counted by the links that both directions agree on.

    Each of them is a link of the forward direction, too: they are counted there, and here again
    only those of the empty word. To be read as an array.

    ``forward``  (entries,) the counts of the forward table
    ``null``     (target entries of the empty word,) the counts of the backward table's last row
    """

    def __init__(self, forward: FloatArray, there: LargeTable, back: LargeTable) -> None:
        self.forward, self._there, self._back = forward, there, back
        self.null = np.zeros(int(np.diff(back.indptr[-2:])[0]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        there, back = self._there, self._back
        counts = spill.zeros(back.n_entries, dtype or np.float64)
        rows = there.indptr[:-1], there.outcomes
        kernels.transpose_counts(*rows, self.forward, back.indptr[:-1].copy(), counts)
        counts[back.indptr[-2] :] = self.null
        return counts


class AgreementCore(Model):
    """Two directional models whose expected counts are products of both posteriors.

    Links that only one direction considers likely are hardly counted (Liang, Taskar & Klein 2006).
    This E-step is a heuristic: the objective, log p(f | e) + log p(e | f), need not increase.

    ``agree``     False: the directions are trained side by side, independently
    ``max_iter``  the number of steps of a warm-up; None: the default
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
        if max_iter is not None:  # a warm-up takes all its steps, even after convergence
            self.default_learner = EM(max_iter=max_iter, tol=0.0)
        self.name, self.agree = name, agree
        self.monotone = forward.monotone and backward.monotone and not agree
        self.no_bound = NO_BOUND if agree else ""
        self.forward, self.backward = forward, backward
        self.families: dict[str, Family] = join_directions([forward.families, backward.families])
        self.entropy_of = (FORWARD + TABLE, BACKWARD + TABLE)

    def estimate(self, corpus: BidirectionalCorpus) -> Estimate:
        """Estimate memory and work of both directions."""
        forward = self.forward.estimate(corpus.forward)
        backward = self.backward.estimate(corpus.backward)
        return forward.plus(backward.work, **backward.parts)

    def expect(
        self, params: Params, shard: BidirectionalShard, how: EStep, local: Any = None
    ) -> Stats:
        """Compute the expected counts of both directions, and the sum of their log-likelihoods."""
        shard = shard.load(how.threads)
        forward_params, backward_params = split_directions(params)
        forward_step, backward_step = (_of_direction(how, d) for d in (FORWARD, BACKWARD))
        if not self.agree:
            there = self.forward.expect(forward_params, shard.forward, forward_step)
            back = self.backward.expect(backward_params, shard.backward, backward_step)
        else:
            forward = ShardEStep(self.forward, forward_params, shard.forward, forward_step)
            mirrored = shard.mirrored and not how.score_only
            settings: Any = {"null_alone": mirrored}
            backward = ShardEStep(
                self.backward, backward_params, shard.backward, backward_step, **settings
            )
            for block, other in zip(shard.forward.blocks(), shard.backward_blocks(), strict=True):
                links, reverse = forward.posteriors(block), backward.posteriors(other)
                if not how.score_only:
                    sizes = PairSizes(*block.sizes, block.offsets, other.offsets)
                    arguments = (sizes, links, reverse)
                    over_rows(kernels.multiply_directions, block.offsets, how.threads, *arguments)
                forward.count(block, links)
                backward.count(other, reverse)
            there, back = forward.stats(), backward.stats()
            if mirrored:
                counts = self._count_backward(forward, backward, backward_step)
                back = replace(back, counts={**back.counts, **counts})
        return Stats(
            join_directions([there.counts, back.counts]),
            there.log_likelihood + back.log_likelihood,
            there.score + back.score,
            there.items,
            there.tokens + back.tokens,
            uncounted=there.uncounted + back.uncounted,
        )

    def _count_backward(
        self, forward: ShardEStep, backward: ShardEStep, how: EStep
    ) -> dict[str, Counts]:
        """Return the counts of the backward table, which has the forward table's pairs of words.

        They are none if they are in what all shards share.
        """
        assert forward.table_counts is not None
        assert backward.table_counts is not None
        shard, null = backward.shard, backward.table_counts
        tables = self.forward.table, self.backward.table
        if how.into is not None and (total := forward.total) is not None:
            shared = how.into(TABLE, lambda: TransposedCounts(total, *tables))
            first = tables[1].indptr[-2]
            own = slice(None)
            if shard.entries is not None:
                own = shard.entries[shard.lexicon.indptr[-2] :] - first
            shared.null[own] += null
            return {}
        if how.into is not None and shard.entries is None:
            counts = TransposedCounts(forward.table_counts, *tables)
            counts.null += null
            return {TABLE: counts}
        rows = forward.shard.lexicon.indptr[:-1], forward.shard.lexicon.targets
        indptr = shard.lexicon.indptr
        own_counts = spill.zeros(len(shard.lexicon))
        kernels.transpose_counts(*rows, forward.table_counts, indptr[:-1].copy(), own_counts)
        own_counts[indptr[-2] :] = null
        return {TABLE: shard.model_counts(own_counts, tables[1].n_entries)}

    def totals(self, shard: BidirectionalShard) -> dict[str, float]:
        """Return the total counts: every word of either side is aligned to one word or NULL."""
        shard = shard.load()
        return join_directions(
            [self.forward.totals(shard.forward), self.backward.totals(shard.backward)]
        )

    # predictions: functions of a shard for an engine, as `expect` is
    def posteriors(
        self,
        params: Params,
        shard: BidirectionalShard,
        how: EStep,
        local: Any = None,
        mean: str = "product",
    ) -> tuple[IntArray, list[FloatArray]]:
        """Compute the mean posteriors of every pair, (l, m); return the pairs' numbers, too."""
        shard = shard.load(how.threads)
        return copy_matrices(self.posterior_blocks(params, shard, how.threads, mean))

    def select(
        self,
        params: Params,
        shard: BidirectionalShard,
        how: EStep,
        local: Any = None,
        method: Any = None,
        level: float | None = None,
        mean: str = "product",
        probabilities: bool = False,
    ) -> list[ChosenLinks]:
        """Predict links: those with a mean posterior above a level, or of the best alignments.

        ``method``  how the best alignments of both directions are combined, if ``level`` is None
        ``mean``    the mean of both posteriors: "product" or "soft-union"
        """
        shard = shard.load(how.threads)
        if level is not None:
            blocks = self.posterior_blocks(params, shard, how.threads, mean)
            return [select_links(*block, level) for block in blocks]
        posteriors = None
        if probabilities:
            posteriors = self.posterior_blocks(params, shard, how.threads, mean)
        found = []
        for (block, there), (other, back) in self._both(params, shard, how.threads, best=True):
            links = select_links(block, there, HALF).links
            reverse, _ = select_links(other, back, HALF).links.flipped(np.zeros(0))
            if method == "backward":
                links = reverse
            elif method != "forward":
                links = symmetrise_all(links, reverse, method)
            chosen = ChosenLinks(block.numbers, links, np.zeros(0))
            values = None if posteriors is None else next(posteriors)[1]
            found.append(chosen.with_values(block, values))
        return found

    def posterior_blocks(
        self, params: Params, shard: BidirectionalShard, threads: int, mean: str = "product"
    ) -> LinkMatrices:
        """Yield the means of both directions' posteriors, block by block."""
        for (block, links), (other, back) in self._both(params, shard, threads):
            sizes = PairSizes(*block.sizes, block.offsets, other.offsets)
            arguments = (sizes, links, back, mean == "product")
            over_rows(kernels.average_directions, block.offsets, threads, *arguments)
            yield block, links

    def _both(
        self, params: Params, shard: BidirectionalShard, threads: int, best: bool = False
    ) -> Iterator[tuple[tuple[LinkBlock, FloatArray], tuple[LinkBlock, FloatArray]]]:
        """Yield `AlignmentCore.posterior_blocks` of both directions, for the same pairs."""
        forward, backward = split_directions(params)
        there = self.forward.posterior_blocks(forward, shard.forward, threads, best=best)
        blocks = shard.backward_blocks()
        back = self.backward.posterior_blocks(backward, shard.backward, threads, blocks, best)
        yield from zip(there, back, strict=True)
