"""The E-step of dense grammars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.kernels.chart_trees import Nodes
from softcount.kernels.inside_outside import Tally
from softcount.kernels.pool import usable_cpus
from softcount.kernels.tree_counts import count_trees
from softcount.models.grammar import cells, passes
from softcount.models.grammar.dense import ROOT, RULES, WORDS, Shape
from softcount.models.grammar.shards import Sentences, Shard
from softcount.models.grammar.tree_core import TreeCore
from softcount.models.sequences.emissions import Emitting, uncounted
from softcount.types import NOTHING_UNCOUNTED, Array, Counts, How, Params, Stats, Uncounted


class PCFGCore(TreeCore):
    """p(tree, words) = p(root) Π p(A → B C) Π p(preterminal → word).

    Families: "root" (1, K + T), "rules" (K, (K + T)²) and "words"; symbols are K nonterminals,
    then T preterminals.
    """

    remedy = "add smoothing, or look at its brackets"

    def __init__(
        self,
        name: str,
        root: Family,
        rules: Family,
        emission: Emitting,
        shape: Shape,
        dtype: str = "float64",
    ) -> None:
        self.name, self.emission, self.shape = name, emission, shape
        self.dtype = np.dtype(dtype)
        self.families: dict[str, Family] = {ROOT: root, RULES: rules, WORDS: emission.family}

    def estimate(self, corpus: Sentences) -> Estimate:
        """n² / 2 cells of charts, inside and outside, for sentences that are gone through together;
        n³ / 6 ways to cut spans, and a product with all rules for each of n² / 2 spans."""
        k, n_symbols = self.shape.k, self.shape.n_symbols
        lengths = np.sort(np.diff(corpus.everything.text.indptr).astype(np.float64))[::-1]
        rules = n_entries(self.families[RULES])
        entries = sum(map(n_entries, self.families.values()))
        spans, cuts = float(np.sum(lengths**2) / 2.0), float(np.sum(lengths**3) / 6.0)
        # the longest are gone through first, some by each thread, side by side
        together = float(np.sum(lengths[: passes.TOGETHER * usable_cpus()] ** 2) / 2.0)
        itemsize = self.dtype.itemsize
        return needing(
            len(corpus),
            float(lengths.sum()),
            cuts * n_symbols**2 + 0.5 * spans * rules + 8.0 * entries,
            data=held(corpus),
            tables=(COPIES + 2 * passes.PIECES) * NUMBER * entries,
            charts=together * itemsize * (2.5 * n_symbols + 2.0 * k),
        )

    def passing(
        self, params: Params, shard: Shard, threads: int, temper: float = 1.0
    ) -> passes.Pass:
        """What a pass over a shard needs."""
        table, _ = self.emission.likelihoods(np.asarray(params[WORDS]), shard.text)
        return passes.Pass(self.shape, params, table, self.dtype, temper, threads)

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; a sentence of probability zero is an error."""
        this = self.passing(params, shard, how.threads, how.temper)
        counts: dict[str, Counts] = {}
        beside = NOTHING_UNCOUNTED
        if how.fill == "soft" or how.score_only:
            tally = passes.posteriors(shard, this, counting=not how.score_only)
            attained = tally.logs
            if not how.score_only:
                counts = self._expected(shard, tally, this)
                if how.theory:
                    beside = self._uncounted(params, shard, tally, how)
        else:
            best = how.fill == "hard"
            nodes, attained = passes.trees(shard, this, best, how.stream, how.samples)
            counts = self._counted(shard, nodes, np.isfinite(attained), len(this.table))
        logs = attained
        if how.fill == "hard" or how.temper != 1.0:
            logs = passes.posteriors(shard, this._replace(temper=1.0), counting=False).logs
        return replace(self.stats(shard, counts, logs, attained, how), uncounted=beside)

    def _uncounted(self, params: Params, shard: Shard, tally: Tally, how: How) -> Uncounted:
        """What new words add to E[log p]."""
        against = None if how.against is None else np.asarray(how.against[WORDS])
        words = tally.words[:, : self.shape.t]
        return uncounted(self.emission, np.asarray(params[WORDS]), against, shard.text, words)

    def _expected(self, shard: Shard, tally: Tally, this: passes.Pass) -> dict[str, Counts]:
        heated = {RULES: np.asarray(this.params[RULES]) ** this.temper}
        root, rules, words = self.shape.counts(tally, heated)
        return {ROOT: root, RULES: rules, WORDS: self.emission.counts(shard.text, words)}

    def _counted(
        self, shard: Shard, nodes: Nodes, possible: Array, n_rows: int
    ) -> dict[str, Counts]:
        """What trees add up to."""
        text, n = shard.text, self.shape.n_symbols
        root, rules = np.zeros(n), np.zeros((self.shape.k, n, n))
        words = np.zeros((n_rows, self.shape.t))
        known = (text.indptr, text.weights, possible, text.rows)
        count_trees(nodes.symbols, nodes.ends, *known, root, rules, words)
        return {
            ROOT: root[None],
            RULES: rules.reshape(self.shape.k, -1),
            WORDS: self.emission.counts(text, words),
        }

    # trees with the tables integrated out
    def derivations(
        self, params: Params, shard: Shard, stream: int, threads: int = 1
    ) -> cells.Derivations:
        """One tree of each sentence, drawn from their posterior, as a list of cells."""
        nodes, logs = passes.trees(shard, self.passing(params, shard, threads), False, stream)
        return cells.of_trees(self.shape, np.shape(params[WORDS])[1], shard, nodes, logs)
