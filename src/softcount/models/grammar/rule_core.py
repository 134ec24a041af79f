"""The E-step of grammars of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.kernels.pool import usable_cpus
from softcount.kernels.rule_charts import Grammar, Tally, Text, Words
from softcount.models.grammar import cells, rule_passes
from softcount.models.grammar.binarised import Binarised, Used
from softcount.models.grammar.dense import ROOT, RULES
from softcount.models.grammar.pruning import Lost, lost
from softcount.models.grammar.shards import Sentences, Shard
from softcount.models.grammar.tree_core import TreeCore
from softcount.models.grammar.unknown import KNOWN, UnknownWords
from softcount.types import NOTHING_UNCOUNTED, Array, Counts, How, Params, Stats, Uncounted


class Ready(NamedTuple):
    """Sentences of a shard whose trees are not known, as kernels want them."""

    numbers: Array
    text: Text
    words: Words
    weights: Array


class RuleCore(TreeCore):
    """p(tree, words) = p(root) Π p(rule | its left side).

    Families: "root" (1, N) and "rules", one number a rule.

    ``unknown``  what words may be that are in no rule; None: nothing
    ``prune``    what a coarse grammar thinks less probable is left out: see `coarse`
    """

    remedy = "look at its words and brackets, or give the grammar more rules"

    def __init__(
        self,
        name: str,
        root: Family,
        rules: Family,
        own: Binarised,
        unknown: UnknownWords | None = None,
        prune: float = 0.0,
    ) -> None:
        self.name, self.own, self.unknown, self.prune = name, own, unknown, prune
        self.families: dict[str, Family] = {ROOT: root, RULES: rules}

    def estimate(self, corpus: Sentences) -> Estimate:
        """Charts of the longest sentences, one a thread; at the worst, all rules for each of n³ / 6
        cuts of spans."""
        lengths = np.diff(corpus.everything.text.indptr).astype(np.float64)
        entries, n_symbols = (n_entries(self.families[name]) for name in (RULES, ROOT))
        cuts, longest = float(np.sum(lengths**3) / 6.0), float(lengths.max(initial=0.0))
        return needing(
            len(corpus),
            float(lengths.sum()),
            2.0 * cuts * entries + 8.0 * entries,
            data=held(corpus),
            tables=(COPIES + rule_passes.PIECES) * NUMBER * (entries + n_symbols),
            charts=2.0 * NUMBER * usable_cpus() * longest**2 / 2.0 * n_symbols,
        )

    # sentences and tables as kernels want them
    def grammar(
        self, params: Params, shard: Shard, best: bool = False, temper: float = 1.0
    ) -> Grammar:
        """Rules with their chances."""
        chances, root = (np.asarray(params[name]) ** temper for name in (RULES, ROOT))
        return self.own.grammar(chances, root[0], shard.limits.allowed, best)

    def ready(self, params: Params, shard: Shard, temper: float = 1.0, known: float = 0.0) -> Ready:
        """Sentences whose trees are not known, and chances of their words.

        ``known``  how often known words were seen elsewhere, as it were: see `UnknownWords`
        """
        free = np.ones(len(shard), np.bool_)
        if shard.trees is not None:
            free = np.diff(shard.trees.indptr) == 0
        lengths = np.diff(shard.text.indptr)
        sets, begins = shard.limits.sets, None
        if sets is not None:
            sizes = np.diff(shard.first_spans)
            begins = np.where(sizes > 0, shard.first_spans[:-1], -1)[free]
        tokens = shard.text.observed[np.repeat(free, lengths)]
        words = self._words(params, tokens, shard.text.new_words, temper, known)
        text = rule_passes.text(lengths[free], begins, sets)
        return Ready(np.flatnonzero(free), text, words, shard.text.weights[free])

    def _words(
        self, params: Params, tokens: Array, new: Sequence[str], temper: float, known: float
    ) -> Words:
        chances, n_rows = np.asarray(params[RULES]), len(self.own.word_rows)
        if self.unknown is None:  # the row after those of known words has nothing
            return self.own.words(chances**temper, np.minimum(tokens, n_rows).astype(np.int64))
        kinds, at = np.unique(tokens, return_inverse=True)
        texts = [*self.own.word_rows, *new]
        words = [texts[kind] for kind in kinds.tolist()]
        rows, more = self.unknown.placed(self.own, chances, words, known)
        return self.own.words(chances**temper, rows[at], more**temper)

    # learning
    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; a sentence of probability zero is an error."""
        counts, attained, logs, beside = self._filled(params, shard, how)
        if shard.trees is not None:
            known, own_logs = self._given(params, shard)
            logs, attained = logs + own_logs, attained + own_logs * how.temper
            if counts:
                counts = {name: np.asarray(counts[name]) + known[name] for name in counts}
        return replace(self.stats(shard, counts, logs, attained, how), uncounted=beside)

    def _filled(
        self, params: Params, shard: Shard, how: How
    ) -> tuple[dict[str, Counts], Array, Array, Uncounted]:
        """Counts, what trees attain, log p, and what is beside the counts.

        Of sentences whose trees are not known.
        """
        ready, best = self.ready(params, shard, how.temper), how.fill == "hard"
        grammar = self.grammar(params, shard, best, how.temper)
        words, text, logs = ready.words, ready.text, np.zeros((2, len(shard)))
        if how.fill == "soft" or how.score_only:
            given = (ready.weights, how.threads, not how.score_only, self.prune)
            tally = rule_passes.expected(self.own, grammar, words, text, *given)
        else:
            numbers = shard.text.numbers[ready.numbers]
            drawn = (how.samples, how.stream, how.threads, self.prune)
            found = rule_passes.derived(grammar, words, text, numbers, *drawn)
            tally = rule_passes.counted(self.own, words, found, ready.weights)
        logs[:, ready.numbers] = tally.logs
        if best or how.temper != 1.0:
            logs[1] = self.logs(params, shard, how.threads)
        used = self.own.used(tally, ready.words)
        counts: dict[str, Counts] = {ROOT: used.root[None], RULES: used.rules}
        beside = NOTHING_UNCOUNTED
        if how.theory and not how.score_only:  # words in no rule: their chances do not move
            new = self.own.n_of_rules
            unknown = xlogy(tally.words[new:], words.chances[new:]).sum() / how.temper
            beside = Uncounted(float(unknown), float(unknown))
        return {} if how.score_only else counts, logs[0], logs[1], beside

    def logs(self, params: Params, shard: Shard, threads: int) -> Array:
        """log p of each sentence whose tree is not known; 0 of others."""
        ready, tally = self._gone_through(params, shard, threads, counting=False)
        logs = np.zeros(len(shard))
        logs[ready.numbers] = tally.logs
        return logs

    def used(self, params: Params, shard: Shard, threads: int) -> Used:
        """What sentences are expected to use; those that cannot be use nothing."""
        ready, tally = self._gone_through(params, shard, threads, counting=True)
        return self.own.used(tally, ready.words)

    def _gone_through(
        self, params: Params, shard: Shard, threads: int, counting: bool
    ) -> tuple[Ready, Tally]:
        ready, grammar = self.ready(params, shard), self.grammar(params, shard)
        some = (ready.words, ready.text, ready.weights, threads, counting, self.prune)
        return ready, rule_passes.expected(self.own, grammar, *some)

    def lost(self, params: Params, shard: Shard, threads: int) -> Lost:
        """What sentences lose by what is left out."""
        ready = self.ready(params, shard, known=KNOWN)
        tables = (np.asarray(params[RULES]), np.asarray(params[ROOT])[0])
        return lost(self.own, *tables, ready.words, ready.text, self.prune, threads)

    def _given(self, params: Params, shard: Shard) -> tuple[dict[str, Array], Array]:
        """What trees that are known count, and log p of them."""
        assert shard.trees is not None
        n = self.own.n_known
        sums = shard.trees.T @ shard.text.weights
        every = np.concatenate([np.asarray(params[ROOT])[0], np.asarray(params[RULES])])
        with np.errstate(divide="ignore"):
            logs = np.where(every > 0.0, np.log(every), -1e300)  # 0 · log 0 is none of these
        found = shard.trees @ logs
        return {ROOT: sums[None, :n], RULES: sums[n:]}, np.where(found > -1e290, found, -np.inf)

    def derivations(
        self, params: Params, shard: Shard, stream: int, threads: int = 1
    ) -> cells.Derivations:
        """One tree of each sentence, drawn from their posterior, as a list of cells."""
        ready, grammar = self.ready(params, shard), self.grammar(params, shard)
        drawn = (shard.text.numbers[ready.numbers], 1, stream, threads)
        found = rule_passes.derived(grammar, ready.words, ready.text, *drawn)
        own = cells.of_rules(self.own, ready.words, found)
        return own if shard.trees is None else cells.with_known(own, ready.numbers, shard.trees)
