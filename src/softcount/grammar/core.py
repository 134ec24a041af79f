"""The E-steps of grammars, dense and of rules, and what pruning loses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from softcount.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.families.base import Family
from softcount.grammar import gibbs as cells
from softcount.grammar import inside_outside as passes
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.binarised import KNOWN, Binarised, UnknownWords, Used
from softcount.grammar.data import Sentences, Shard
from softcount.grammar.gibbs import CollapsedTrees, Derivations, demand_collapsible
from softcount.grammar.inside_outside import ROOT, RULES, WORDS, Shape, derived, expected
from softcount.grammar.kernels.dense import Nodes, Tally, count_trees
from softcount.grammar.kernels.rules import RuleCounts, RuleTables, RuleText, Words
from softcount.hmm.core import Emitting, uncounted
from softcount.hmm.data import Sentences as Texts
from softcount.kernels.pool import usable_cpus
from softcount.models.possible import demand_possible
from softcount.models.settings import start_tables
from softcount.types import NOTHING_UNCOUNTED, Array, Counts, How, Params, Stats, Uncounted

SLACK = 1e-9
"""Logs that differ by less are the same."""


class Lost(NamedTuple):
    """What some sentences lost.

    ``sentences``  that have a derivation
    ``share``      of symbols of cells that were left out, of those made of what had stayed
    ``again``      sentences that had to be gone through again with nothing left out
    ``mean``       log p(sentence) that was lost, in the mean
    ``worst``      the most that one sentence lost
    ``trees``      best trees that are less probable than those found with nothing left out
    """

    sentences: int
    share: float
    again: int
    mean: float
    worst: float
    trees: int


def lost(
    own: Binarised,
    chances: Array,
    root: Array,
    words: Words,
    some: RuleText,
    prune: float,
    threads: int = 1,
) -> Lost:
    """What sentences lose by ``prune``: goes through all of them with it and without it.

    >>> from softcount.grammar.inside_outside import rule_text
    >>> from softcount.grammar.rules import from_text
    >>> rules = from_text("S -> S S [0.4] | 'a'")
    >>> own = Binarised(rules)
    >>> words = own.words(rules.chances, own.rows("aaaa"))
    >>> lost(own, rules.chances, own.root, words, rule_text(np.array([4])), 1e-4).trees
    0
    """
    n = len(some.indptr) - 1
    grammar = own.grammar(chances, root)
    full, less = (
        expected(own, grammar, words, some, np.ones(n), threads, False, p) for p in (0.0, prune)
    )
    grammar = own.grammar(chances, root, best=True)
    best, found = (
        derived(grammar, words, some, np.arange(n), threads=threads, prune=p) for p in (0.0, prune)
    )
    has = np.isfinite(full.logs) & (np.diff(some.indptr) > 0)
    gap = full.logs[has] - less.logs[has]
    made, left_out, again = less.left_out
    return Lost(
        len(gap),
        float(left_out / max(made, 1.0)),
        int(again),
        float(gap.mean()) if len(gap) else 0.0,
        float(gap.max(initial=0.0)),
        int(np.count_nonzero(best.logs[has] - found.logs[has] > SLACK)),
    )


# What the cores of both kinds of grammars have in common.


IMPOSSIBLE = "cannot come about: no tree could have produced it"


class TreeCore:
    """Sentences, each with a hidden tree."""

    name: str
    families: dict[str, Family]
    threads_inside = True
    remedy = "look at its words and brackets"
    """What to do about a sentence that cannot be."""

    @abstractmethod
    def derivations(
        self, params: Params, shard: Shard, stream: int, threads: int = 1
    ) -> Derivations:
        """One tree of each sentence, drawn from their posterior, as a list of cells."""

    def stats(
        self, shard: Shard, counts: dict[str, Counts], logs: Array, attained: Array, how: How
    ) -> Stats:
        """What an E-step finds: log p of sentences, and of what filled in the trees."""
        text = shard.text
        counted = text.weights > 0.0
        sampled = how.fill == "sample"
        attained = logs if sampled else attained / how.temper
        demand_possible(text.numbers[counted], (logs + attained)[counted], IMPOSSIBLE, self.remedy)
        weights = text.weights[counted]
        return Stats(
            counts,
            float(weights @ logs[counted]),
            float(weights @ attained[counted]),
            float(weights.sum()),
            float(weights @ np.diff(text.indptr)[counted]),
        )

    # trees with the tables integrated out
    def blocks(self, shard: Shard, size: int) -> list[Shard]:
        """The sentences in their order, so many at a time."""
        whole, n = Sentences(Texts(shard.text), shard.limits, shard.trees), len(shard)
        return [whole.select(np.arange(i, min(i + size, n))) for i in range(0, n, size)]

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> CollapsedTrees:
        """The sampler with all tables integrated out, trees drawn at ``params`` to begin with."""
        (shard,) = shards
        demand_collapsible(self.families, shard.text.weights)
        first = self.derivations(params, shard, stream)
        demand_possible(shard.text.numbers, first.logs, IMPOSSIBLE, self.remedy)
        return CollapsedTrees(self, shard, params, first)

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every sentence that is not empty has a root."""
        text = shard.text
        return {ROOT: float(text.weights[np.diff(text.indptr) > 0].sum())}

    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the families' shapes."""
        return start_tables(given, self.families)


# The E-step of dense grammars.


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
            nodes, attained = passes.trace_trees(shard, this, best, how.stream, how.samples)
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
        nodes, logs = passes.trace_trees(shard, self.passing(params, shard, threads), False, stream)
        return cells.of_trees(self.shape, np.shape(params[WORDS])[1], shard, nodes, logs)


# The E-step of grammars of rules.


class Ready(NamedTuple):
    """Sentences of a shard whose trees are not known, as kernels want them."""

    numbers: Array
    text: RuleText
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
            tables=(COPIES + rule_passes.RULE_PIECES) * NUMBER * (entries + n_symbols),
            charts=2.0 * NUMBER * usable_cpus() * longest**2 / 2.0 * n_symbols,
        )

    # sentences and tables as kernels want them
    def grammar(
        self, params: Params, shard: Shard, best: bool = False, temper: float = 1.0
    ) -> RuleTables:
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
        text = rule_passes.rule_text(lengths[free], begins, sets)
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
    ) -> tuple[Ready, RuleCounts]:
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
