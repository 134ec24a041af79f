"""Dense grammars: every rule A → B C, and every rule preterminal → word.

They are in Chomsky normal form, with K nonterminals and T preterminals, numbered in this order, and
are for grammar induction from raw text (Lari & Young 1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.estimate import COPIES, NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.store import AGAIN, TABLE, numbers, strings
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    BoolArray,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    Stats,
)
from softcount.families import Categorical
from softcount.families.base import Family
from softcount.grammar.core import (
    BATCH,
    MAX_NODES,
    ROOT,
    RULES,
    WORDS,
    Grammar,
    GrammarOptions,
    Part,
    iterate_batches,
    map_pieces,
)
from softcount.grammar.data import (
    Bracket,
    StoredTreeCorpus,
    SupervisedSentences,
    TreeCorpus,
    TreeShard,
)
from softcount.grammar.gibbs import DerivationCells
from softcount.grammar.kernels import dense as kernels
from softcount.grammar.kernels.dense import (
    DenseCounts,
    DenseTables,
    DenseText,
    RulePanels,
    TreeNodes,
    padded_rows,
)
from softcount.grammar.parsing import (
    DenseForest,
    ScoredDerivation,
    SpanPosteriors,
    k_best_derivations,
)
from softcount.grammar.rules import GrammarRule, GrammarRules, normalise_rules
from softcount.hmm.data import StateSetBuilder, StateSets
from softcount.hmm.emissions import StateEmission, WordEmission, estimate_unseen, expect_uncounted
from softcount.hmm.kernels.packs import pad
from softcount.kernels.threads import usable_cpus
from softcount.kernels.vectors import padded_width, panels, table_pitch
from softcount.text.trees import Tree
from softcount.text.vocabulary import Vocabulary

MAX_RULES = 1 << 28
"""Maximum number of entries in a table of rules: 2 GB."""
PIECES = 4
"""Number of pieces that work is divided into, whatever the number of threads: each piece has its
own counts, which are added in a fixed order."""
MIN_POSTERIOR = 1e-12
"""Posteriors of spans up to this are omitted: they are hardly more than rounding errors."""
MIXTURE_STEPS = 30
"""Number of EM steps that estimate the proportions of preterminals among tokens."""


# Symbols


@dataclass(frozen=True, eq=False)
class DenseSymbols(PickledWithoutCaches):
    """The symbols and words of a dense grammar.

    ``word_counts``  int64 (words,): training counts
    """

    nonterminals: tuple[str, ...]
    preterminals: tuple[str, ...]
    vocabulary: Vocabulary
    word_counts: IntArray

    @classmethod
    def choose(
        cls, given: SupervisedSentences, n_components: int | None, n_preterminals: int | None
    ) -> DenseSymbols:
        """Choose symbols: the labels of known brackets and trees, then further numbered ones."""
        _check_memory(n_components or 1, n_preterminals or 1)
        labels, tags = set[str](), set[str]()
        for part in given.parts():
            phrases = (phrase for some in _list_phrases(part) for phrase in some)
            labels |= {label for label, *_ in phrases if label is not None}
            known = (tree for tree in part.trees if tree is not None)
            tags |= {node.label for tree in known for node in tree.nodes() if node.is_preterminal}
        words, taken = given.text.words, labels | tags
        nonterminals = _name_symbols(labels, taken, n_components, "N", "n_components")
        preterminals = _name_symbols(tags, taken, n_preterminals, "P", "n_preterminals")
        _check_memory(len(nonterminals), len(preterminals))
        word_counts = given.text.count_words()
        return cls(nonterminals, preterminals, Vocabulary(words), word_counts)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of symbols, by number."""
        return self.nonterminals + self.preterminals

    @cached_property
    def rule_names(self) -> tuple[str, ...]:
        """Names in rules: a preterminal with the name of a nonterminal gets a final =."""
        taken = set(self.labels)
        found = list(self.nonterminals)
        for name in self.preterminals:
            apart = name
            while name in self.nonterminals and apart in taken:
                apart += "="
            taken.add(apart)
            found.append(apart)
        return tuple(found)

    @classmethod
    def from_stored(cls, stored: store.Stored) -> DenseSymbols | None:
        """Read symbols and words from a file, and check that its tables fit them.

        None if the file holds a rule-based grammar, which has no list of words.
        """
        if _STORED_LISTS[-1] not in stored.meta:
            return None
        for name in _STORED_LISTS:
            given: list[str] = stored.meta[name]
            strings(given, len(given), name)
            if not given or "" in given or len(set(given)) != len(given):
                raise StoreError(f"the stored {name} are invalid", AGAIN)
        nonterminals, preterminals, words = (stored.meta[name] for name in _STORED_LISTS)
        k, t, v = len(nonterminals), len(preterminals), len(words)
        for table, shape in ((RULES, (k, (k + t) ** 2)), (WORDS, (t, v))):
            numbers(stored, TABLE + table, shape)
        word_counts = numbers(stored, _STORED_COUNTS, (v,))
        if word_counts.min() < 1 or (word_counts % 1).any():
            raise StoreError("the stored counts of words are invalid", AGAIN)
        names = tuple(nonterminals), tuple(preterminals)
        return cls(*names, Vocabulary(words), word_counts.astype(np.int64))


_STORED_LISTS = ("nonterminals", "preterminals", "words")
_STORED_COUNTS = "often"


def _check_memory(k: int, t: int) -> None:
    if k * (k + t) ** 2 > MAX_RULES:
        raise LearnerError(
            f"{k:,} nonterminals and {t:,} preterminals have too many rules",
            "use fewer of them: 100 and 200 are many",
        )


def _name_symbols(
    given: Iterable[str], taken: Collection[str], n: int | None, letter: str, setting: str
) -> tuple[str, ...]:
    """Make n names: the given ones, then a letter with numbers, skipping names in use."""
    names = sorted(given)
    if n is None and not names:
        raise DataError(f"how many symbols? {setting} is missing", f"give {setting}, or trees")
    if n is not None and n < len(names):
        raise DataError(
            f"there are {len(names)} labels, but {setting}={n}",
            f"omit it, or give at least {len(names)}",
        )
    free = (name for name in (f"{letter}{m}" for m in count()) if name not in taken)
    return (*names, *islice(free, (n or len(names)) - len(names)))


def _list_phrases(given: SupervisedSentences) -> list[list[Bracket]]:
    """List the known constituents of two words or more of each sentence."""
    return [
        [span for span in (*some, *(tree.spans() if tree else ())) if span[2] > span[1] + 1]
        for some, tree in zip(given.brackets, given.trees, strict=True)
    ]


# Inference: inside–outside, Viterbi, samples, posteriors of spans, k best


class DenseShape:
    """The numbers of nonterminals K and preterminals T, and layouts that follow from these.

    ``kinds``  the symbols of the four kinds of pairs: two leaves, a leaf and a span, a span and a
               leaf, two spans
    """

    def __init__(self, n_nonterminals: int, n_preterminals: int) -> None:
        self.k, self.t = n_nonterminals, n_preterminals
        self.n_symbols = self.k + self.t
        high, low = slice(0, self.k), slice(self.k, self.k + self.t)
        self.kinds = ((low, low), (low, high), (high, low), (high, high))

    def make_tables(self, params: Params, dtype: DTypeLike, temper: float = 1.0) -> DenseTables:
        """Make the tables of chart parsing, with probabilities to the power of ``temper``."""
        root = np.asarray(params[ROOT])[0] ** temper
        rules = (np.asarray(params[RULES]) ** temper).reshape(self.k, *[self.n_symbols] * 2)
        leaves, leaf_first, leaf_last, spans = (rules[:, b, c] for b, c in self.kinds)
        return DenseTables(
            pad(root[: self.k], dtype),
            pad(root[self.k :], dtype),
            _pair_rules(leaves, dtype),
            _leaf_rules(leaf_first.transpose(1, 2, 0), dtype),
            _leaf_rules(leaf_last.T, dtype),
            _pair_rules(spans, dtype),
            rules.astype(dtype),
        )

    def make_counts(self, log_p: FloatArray, n_rows: int, word_rows: IntArray) -> DenseCounts:
        """Make zero counts."""
        (k, high), (t, low) = ((padded_rows(n), padded_width(n)) for n in (self.k, self.t))
        beside = (t, table_pitch(k, high))
        rules = ((k, table_pitch(t, low)), beside, beside, (k, table_pitch(k, high)))
        sizes: tuple[Any, ...] = (high, low, (n_rows, low), *rules)
        return DenseCounts(log_p, word_rows, *(np.zeros(size) for size in sizes))

    def fold_counts(
        self, counts: DenseCounts, rules: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute expected counts of roots (1, K + T), rules (K, (K + T)²), and words (rows, T).

        ``rules``  (K, (K + T)²): their probabilities
        """
        root = np.concatenate([counts.root[: self.k], counts.root_preterminals[: self.t]])[None]
        found = np.zeros((self.k, self.n_symbols, self.n_symbols))
        high, low = padded_width(self.k), padded_width(self.t)
        parts = (
            _unfold(counts.leaves, low),
            _unfold(counts.leaf_first, high).transpose(2, 0, 1),
            _unfold(counts.leaf_last, high).T,
            _unfold(counts.spans, high),
        )
        for (b, c), part in zip(self.kinds, parts, strict=True):
            found[:, b, c] = part[: self.k, : b.stop - b.start, : c.stop - c.start]
        return root, found.reshape(self.k, -1) * rules, counts.words[:, : self.t]

    def spread(self, leaves: FloatArray, spans: FloatArray, fill: float) -> FloatArray:
        """Arrange the chart of a sentence of n words by start and end, (n, n + 1, K + T).

        ``leaves``  (n, T)
        ``spans``   (spans, K), in the order of `list_spans`
        ``fill``    value of all other entries
        """
        n = len(leaves)
        found = np.full((n, n + 1, self.n_symbols), fill)
        found[np.arange(n), np.arange(1, n + 1), self.k :] = leaves[:, : self.t]
        found[(*list_spans(n), slice(self.k))] = spans[:, : self.k]
        return found


def list_spans(n: int) -> tuple[IntArray, IntArray]:
    """Return starts and ends of the spans of two words or more, short ones first.

    >>> [some.tolist() for some in list_spans(3)]
    [[0, 1, 0], [2, 3, 3]]
    """
    starts, lasts = np.triu_indices(n, 1)
    order = np.argsort(lasts - starts, kind="stable")
    return starts[order], lasts[order] + 1


def _unfold(flat: Array, wide: int) -> Array:
    """Reshape counts (rows, tables) to (rows, tables, columns), without the final padding."""
    n = flat.shape[1] // wide * wide
    return flat[:, :n].reshape(len(flat), -1, wide)


def _pair_rules(rules: FloatArray, dtype: DTypeLike) -> RulePanels:
    """Make the panels of rules (K, left, right)."""
    k, left, right = rules.shape
    full = np.zeros((padded_width(k), padded_rows(left), padded_width(right)), dtype)
    full[:k, :left, :right] = rules
    bottom_up = full[:, :left].reshape(len(full), -1).T
    return RulePanels(panels(bottom_up), panels(full[:k].reshape(k, -1)))


def _leaf_rules(rules: FloatArray, dtype: DTypeLike) -> RulePanels:
    """Make the panels of rules (leaf, span, K)."""
    t, k, _ = rules.shape
    full = np.zeros((padded_width(t), padded_rows(k), padded_width(k)), dtype)
    full[:t, :k, :k] = rules
    flat = full.reshape(len(full), -1)
    return RulePanels(panels(flat[:t]), panels(flat.T))


class DenseInference(NamedTuple):
    """Inference on the sentences of a shard.

    ``emissions``  (rows, preterminals), padded: p(word | preterminal)
    ``temper``     exponent applied to all probabilities
    """

    shape: DenseShape
    params: Params
    emissions: FloatArray
    shard: TreeShard
    dtype: DTypeLike = np.float64
    temper: float = 1.0
    threads: int = 1

    def inside_outside(self, with_counts: bool = True) -> DenseCounts:
        """Compute log p of each sentence and, optionally, expected counts."""
        text, tables = self._prepare()
        log_p, n_rows = np.zeros(len(self.shard)), len(self.emissions) if with_counts else 0

        def run(begin: int, end: int) -> DenseCounts:
            counts = self.shape.make_counts(log_p, n_rows, self.shard.text.rows)
            for first, last in iterate_batches(begin, end):
                kernels.inside_outside(first, last, text, tables, counts, with_counts)
            return counts

        total, *others = self._map_pieces(run)
        for counts in others:
            for into, more in zip(total[2:], counts[2:], strict=True):
                into += more
        finite = all(np.isfinite(array).all() for array in total)
        if np.dtype(self.dtype).itemsize < 8 and not finite:  # under- or overflow in float32
            return self._replace(dtype=np.float64).inside_outside(with_counts)
        return total

    def trace(
        self, viterbi: bool, stream: int = 0, samples: int = 1
    ) -> tuple[TreeNodes, FloatArray]:
        """Return Viterbi trees and log p(tree, sentence); or samples and log p(sentence)."""
        text, tables = self._replace(dtype=np.float64)._prepare(viterbi)
        log_p, size = np.zeros(len(self.shard)), (samples, 2 * self.shard.text.n_tokens)
        nodes = TreeNodes(np.zeros(size, np.int32), np.zeros(size, np.int32))

        def run(begin: int, end: int) -> None:
            for first, last in iterate_batches(begin, end):
                kernels.trace_trees(first, last, text, tables, np.uint64(stream), log_p, nodes)

        self._map_pieces(run)
        return nodes, log_p

    def span_posteriors(self) -> list[SpanPosteriors]:
        """Compute p(symbol spans i to j | sentence); none if it is impossible or empty."""
        shard = self.shard
        text, tables = self._replace(dtype=np.float64)._prepare()
        text = text._replace(weights=np.ones(len(shard)))
        nothing = np.zeros(0, np.int64)
        found = [SpanPosteriors(nothing, nothing, nothing, np.zeros(0))] * len(shard)

        def run(begin: int, end: int) -> None:
            n_rows = len(self.emissions)
            counts = self.shape.make_counts(np.zeros(len(shard)), n_rows, shard.text.rows)
            for first, last in iterate_batches(begin, end):
                c, out = kernels.inside_outside(first, last, text, tables, counts, True)
                for n, s in enumerate(shard.order[first:last].tolist()):
                    words = slice(c.first_leaf[n], c.first_leaf[n] + c.lengths[n])
                    n_spans = c.lengths[n] * (c.lengths[n] - 1) // 2
                    spans = slice(c.first_span[n], c.first_span[n] + n_spans)
                    leaves = c.leaves[words] * out.leaves[words]
                    chart = self.shape.spread(leaves, c.spans[spans] * out.spans[spans], 0.0)
                    starts, ends, symbols = at = np.nonzero(chart > MIN_POSTERIOR)
                    found[s] = SpanPosteriors(starts, ends, symbols, chart[at])

        self._map_pieces(run)
        return found

    def k_best(self, k: int) -> list[list[ScoredDerivation]]:
        """The k best trees of each sentence, or all if there are fewer; codes are symbols."""
        text, tables = self._replace(dtype=np.float64)._prepare(viterbi=True)
        n_high, n_symbols = self.shape.k, self.shape.n_symbols
        with np.errstate(divide="ignore"):
            root, rules = (self.temper * np.log(np.asarray(self.params[t])) for t in (ROOT, RULES))
        rules = rules.reshape(n_high, n_symbols, n_symbols)
        found: list[list[ScoredDerivation]] = [[] for _ in range(len(self.shard))]
        for number, s in enumerate(text.order.tolist()):
            log_p = np.zeros(len(self.shard))  # of what words were divided by
            c, _ = kernels.inside(number, number + 1, text, tables, log_p)
            n = len(c.leaves)
            starts, ends = list_spans(n)
            with np.errstate(divide="ignore"):
                leaves, spans = np.log(c.leaves), np.log(c.spans)
            leaves += log_p[s] / n
            spans -= c.exponents[:, None] * math.log(2.0)
            spans += (log_p[s] * (ends - starts) / n)[:, None]
            best = self.shape.spread(leaves, spans, -np.inf)  # the Viterbi chart, as logarithms
            found[s] = k_best_derivations(DenseForest(self.shape.kinds, root[0], rules, best, k), k)
        return found

    def _prepare(self, viterbi: bool = False) -> tuple[DenseText, DenseTables]:
        """Convert sentences and parameters to the layout of the kernels.

        Constraints on the preterminals of words are applied to the emissions.
        """
        shard, emissions = self.shard, self.emissions
        words, constraints, rows = shard.text, shard.constraints, shard.text.rows
        if self.temper != 1.0:
            emissions = emissions**self.temper
        if words.sets.any():
            kinds = words.kinds
            emissions, rows = emissions[kinds.rows], kinds.of_tokens
            emissions[:, : self.shape.t] *= words.states.allowed[kinds.sets]
        text = DenseText(
            shard.order,
            words.indptr,
            rows,
            emissions.astype(self.dtype, copy=False),
            words.weights,
            words.numbers,
            shard.first_sets,
            np.zeros(0, np.int64) if constraints.sets is None else constraints.sets,
            pad(constraints.allowed.astype(self.dtype), self.dtype),
        )
        tables = self.shape.make_tables(self.params, self.dtype, self.temper)
        return text, tables._replace(viterbi=viterbi)

    def _map_pieces(self, run: Callable[[int, int], Part]) -> list[Part]:
        """Return the result of ``run`` for each piece of `TreeShard.order`."""
        lengths = np.diff(self.shard.text.indptr)[self.shard.order]
        return map_pieces(run, lengths, PIECES, self.threads)


# The grammar


class DenseGrammar(Grammar):
    """A dense grammar: p(tree, words) = p(root) Π p(A → B C) Π p(preterminal → word).

    Families: "root" (1, K + T), "rules" (K, (K + T)²) and "words" (T, words).
    """

    remedy = "add smoothing, or look at its brackets"

    def __init__(
        self,
        symbols: DenseSymbols,
        root: Family,
        rules: Family,
        emission: StateEmission,
        dtype: str = "float64",
    ) -> None:
        self.symbols, self.emission, self.dtype = symbols, emission, np.dtype(dtype)
        self.shape = DenseShape(len(symbols.nonterminals), len(symbols.preterminals))
        self.labels, self.vocabulary = symbols.labels, symbols.vocabulary
        self.n_nonterminals = self.shape.k
        self._nonterminals = _index_names(symbols.nonterminals)
        self.families: dict[str, Family] = {ROOT: root, RULES: rules, WORDS: emission.family}

    @classmethod
    def create(cls, symbols: DenseSymbols, options: GrammarOptions) -> DenseGrammar:
        """Make a grammar whose tables have Dirichlet priors."""
        options.check_frozen((ROOT, RULES, WORDS), symbols.labels)
        k, t = len(symbols.nonterminals), len(symbols.preterminals)
        v = len(symbols.vocabulary.words)
        frozen = options.frozen_rows(ROOT, ["the only row"])
        root = Categorical((1, k + t), options.rules, frozen=frozen)
        frozen = options.frozen_rows(RULES, symbols.nonterminals)
        rules = Categorical((k, (k + t) ** 2), options.rules, frozen=frozen)
        frozen = options.frozen_rows(WORDS, symbols.preterminals)
        words = WordEmission(Categorical((t, v), options.words, frozen=frozen), (t, v))
        return cls(symbols, root, rules, words, options.dtype)

    def name_params(self) -> dict[str, tuple[Sequence[Any], ...]]:
        nonterminals, preterminals = self.symbols.nonterminals, self.symbols.preterminals
        every = [*nonterminals, *preterminals]
        pairs = [f"{left} {right}" for left in every for right in every]
        return {
            ROOT: ([""], every),
            RULES: (nonterminals, pairs),
            WORDS: (preterminals, self.vocabulary.words),
        }

    def set_unseen_words(self, table: FloatArray, unknown: bool) -> None:
        """Estimate p(unseen word | preterminal) from words seen once; 0 unless ``unknown``.

        ``table``  (T, words): p(word | preterminal)
        """
        assert isinstance(self.emission, WordEmission)
        self.emission.unseen = np.zeros(len(table))
        if not unknown:
            return
        # the proportion of each preterminal among tokens, from the words alone: EM of a mixture
        mixing, counts = np.full(len(table), 1.0 / len(table)), self.symbols.word_counts
        for _ in range(MIXTURE_STEPS):
            joint = table * mixing[:, None]
            joint *= counts / np.maximum(joint.sum(axis=0), 1e-300)
            mixing = joint.sum(axis=1) / max(joint.sum(), 1e-300)
        self.emission.unseen = estimate_unseen(table, mixing, counts)

    # learning
    def estimate(self, corpus: TreeCorpus | StoredTreeCorpus) -> Estimate:
        """Estimate memory and operations.

        Memory: n² / 2 chart cells, inside and outside, for sentences that are parsed together.
        Operations: n³ / 6 pairs of spans, and a product with all rules for each of n² / 2 spans.
        """
        k, n_symbols = self.shape.k, self.shape.n_symbols
        lengths = np.sort(corpus.lengths.astype(np.float64))[::-1]
        rules = n_entries(self.families[RULES])
        entries = sum(map(n_entries, self.families.values()))
        spans, pairs = float(np.sum(lengths**2) / 2.0), float(np.sum(lengths**3) / 6.0)
        # the longest come first, a batch of them in each thread
        together = float(np.sum(lengths[: BATCH * usable_cpus()] ** 2) / 2.0)
        itemsize = self.dtype.itemsize
        return make_estimate(
            len(corpus),
            float(lengths.sum()),
            pairs * n_symbols**2 + 0.5 * spans * rules + 8.0 * entries,
            data=count_bytes(corpus),
            tables=(COPIES + 2 * PIECES) * NUMBER * entries,
            charts=together * itemsize * (2.5 * n_symbols + 2.0 * k),
        )

    def infer(
        self, params: Params, shard: TreeShard, threads: int = 1, temper: float = 1.0
    ) -> DenseInference:
        """Make the inference on the sentences of a shard."""
        emissions, _ = self.emission.likelihoods(np.asarray(params[WORDS]), shard.text)
        return DenseInference(self.shape, params, emissions, shard, self.dtype, temper, threads)

    def expect(self, params: Params, shard: TreeShard, how: EStep, local: Any = None) -> Stats:
        """Run the E-step on a shard; a sentence of probability zero is an error."""
        inference = self.infer(params, shard, how.threads, how.temper)
        counts: dict[str, Counts] = {}
        new_words = NOTHING_UNCOUNTED
        if how.fill == "soft" or how.score_only:
            found = inference.inside_outside(with_counts=not how.score_only)
            attained = found.log_p
            if not how.score_only:
                tempered = np.asarray(params[RULES]) ** how.temper
                root, rules, words = self.shape.fold_counts(found, tempered)
                counts = {ROOT: root, RULES: rules, WORDS: self.emission.counts(shard.text, words)}
                if how.theory:
                    against = None if how.against is None else np.asarray(how.against[WORDS])
                    given = (np.asarray(params[WORDS]), against, shard.text, words)
                    new_words = expect_uncounted(self.emission, *given)
        else:
            nodes, attained = inference.trace(how.fill == "hard", how.stream, how.samples)
            n_rows = len(inference.emissions)
            counts = self._count_trees(shard, nodes, np.isfinite(attained), n_rows)
        log_p = attained
        if how.fill == "hard" or how.temper != 1.0:
            log_p = inference._replace(temper=1.0).inside_outside(with_counts=False).log_p
        return self._make_stats(shard, counts, log_p, attained, how, new_words)

    def _count_trees(
        self, shard: TreeShard, nodes: TreeNodes, possible: BoolArray, n_rows: int
    ) -> dict[str, Counts]:
        """Count the events of trees; samples of one sentence share its weight equally."""
        text, (k, t, n) = shard.text, (self.shape.k, self.shape.t, self.shape.n_symbols)
        cells, borders = kernels.list_cells(nodes, text.indptr, text.rows, possible, k, n, n_rows)
        samples = len(nodes.symbols)
        shares = np.repeat(np.repeat(text.weights / samples, samples), np.diff(borders))
        sums: Array = np.bincount(cells, shares, minlength=n + k * n * n + t * n_rows)
        root, rules, words = np.split(sums, [n, n + k * n * n])
        by_preterminal = self.emission.counts(text, words.reshape(t, n_rows).T)
        return {ROOT: root[None], RULES: rules.reshape(k, -1), WORDS: by_preterminal}

    def sample_derivations(
        self, params: Params, shard: TreeShard, stream: int, threads: int = 1
    ) -> DerivationCells:
        nodes, log_p = self.infer(params, shard, threads).trace(False, stream)
        n_words = np.shape(params[WORDS])[1]
        return self.list_cells(shard, nodes, log_p, n_words)

    def list_cells(
        self, shard: TreeShard, nodes: TreeNodes, log_p: FloatArray, n_words: int
    ) -> DerivationCells:
        """List the cells of each sentence's first tree; words from ``n_words`` on have none."""
        first = TreeNodes(nodes.symbols[:1], nodes.ends[:1])
        words = shard.text.observed.astype(np.int64)
        given = (shard.text.indptr, words, np.isfinite(log_p))
        sizes = (self.shape.k, self.shape.n_symbols, n_words)
        found = kernels.list_cells(first, *given, *sizes)
        return DerivationCells(*found, log_p)

    # supervision
    def _allowed_preterminals(self, given: SupervisedSentences) -> tuple[IntArray, StateSets]:
        sets, index = StateSetBuilder(self.shape.t), _index_names(self.symbols.preterminals)
        found = np.zeros(len(given.text.tokens), np.int32)
        for begin, tree in zip(given.text.indptr.tolist(), given.trees, strict=False):
            if tree is None:
                continue
            for node, (label, start, _) in zip(tree.nodes(), tree.spans(), strict=True):
                if node.is_preterminal:
                    found[begin + start] = sets.number([_look_up(index, label, "preterminal")])
        return found, sets.build()

    def _list_brackets(self, given: SupervisedSentences) -> Sequence[Sequence[Bracket]]:
        return _list_phrases(given)

    def _list_spans(self, n: int, is_constrained: bool) -> tuple[IntArray, IntArray]:
        return list_spans(n)

    def _find_symbols(self, labels: Sequence[str], one_word: bool) -> Iterable[int]:
        return {_look_up(self._nonterminals, label, "nonterminal") for label in labels}

    # inference
    def log_probabilities(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> FloatArray:
        return self.infer(params, shard, how.threads).inside_outside(with_counts=False).log_p

    def trace_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> list[list[Tree]]:
        inference = self.infer(params, shard, how.threads)
        nodes, log_p = inference.trace(how.fill == "hard", how.stream, how.samples)
        trees: list[list[Tree]] = []
        begins = 2 * shard.text.indptr[:-1]
        for words, begin, log in zip(self.list_sentences(shard), begins, log_p, strict=True):
            is_parsed = words and np.isfinite(log)
            own = nodes.symbols[:, begin : begin + 2 * len(words) - 1] if is_parsed else ()
            trees.append([self.make_tree(symbols, words) for symbols in own])
        return trees

    def make_tree(self, symbols: IntArray, words: Sequence[str]) -> Tree:
        """Make a tree from its symbols in preorder."""
        done: list[Tree] = []
        ahead = len(words)
        for symbol in symbols[::-1].tolist():
            if symbol >= self.shape.k:
                ahead -= 1
                done.append(Tree(self.labels[symbol], (words[ahead],)))
            else:
                done.append(Tree(self.labels[symbol], (done.pop(), done.pop())))
        return done.pop()

    def k_best_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None, *, k: int
    ) -> list[list[tuple[float, Tree]]]:
        found = self.infer(params, shard, how.threads).k_best(k)
        return [
            [(log_p, self.make_tree(symbols, words)) for log_p, symbols in some]
            for words, some in zip(self.list_sentences(shard), found, strict=True)
        ]

    def span_posteriors(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> Iterator[SpanPosteriors]:
        # block by block, since those of all sentences might not fit into memory
        for block in self.blocks(shard, PIECES * BATCH):
            yield from self.infer(params, block, threads).span_posteriors()

    def expected_rules(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> dict[GrammarRule, float]:
        counts = self.infer(params, shard, threads).inside_outside()
        _, rules, words = self.shape.fold_counts(counts, np.asarray(params[RULES]))
        text, known = shard.text, self.vocabulary.words
        if text.own_words is not None:  # then there are rows of these alone
            known = [known[word] for word in text.own_words.tolist()]
        seen = [*known, *text.new_words]
        return self._name_rules(rules, words[: len(seen)].T, seen, 0.0)

    # rules and generation
    def list_rules(self, params: Params, threshold: float) -> GrammarRules:
        rules, words = (np.asarray(params[name]) for name in (RULES, WORDS))
        root = zip(self.symbols.rule_names, np.asarray(params[ROOT])[0].tolist(), strict=True)
        return normalise_rules(
            self._name_rules(rules, words, self.vocabulary.words, threshold),
            {label: p for label, p in root if p >= threshold and p > 0.0},
        )

    def _name_rules(
        self, rules: FloatArray, words: FloatArray, texts: Sequence[str], threshold: float
    ) -> dict[GrammarRule, float]:
        """Return the rules whose value is positive and at least ``threshold``."""
        found: dict[GrammarRule, float] = {}
        labels, n = self.symbols.rule_names, self.shape.n_symbols
        for a, column in np.argwhere((rules >= threshold) & (rules > 0.0)).tolist():
            pair = labels[column // n], labels[column % n]
            found[GrammarRule(labels[a], pair, (False, False))] = float(rules[a, column])
        for t, w in np.argwhere((words >= threshold) & (words > 0.0)).tolist():
            rule = GrammarRule(labels[self.shape.k + t], (texts[w],), (True,))
            found[rule] = float(words[t, w])
        return found

    def generate_once(self, params: Params, rng: np.random.Generator) -> Tree | None:
        root, rules, words = (np.asarray(params[name]) for name in (ROOT, RULES, WORDS))

        def draw(weights: FloatArray) -> int:
            return int(rng.choice(len(weights), p=weights / weights.sum()))

        symbols: list[int] = []
        texts: list[str] = []
        ahead = [draw(root[0])]
        while ahead:
            symbol = ahead.pop()
            symbols.append(symbol)
            if len(symbols) > MAX_NODES:
                return None
            if symbol < self.shape.k:
                left, right = divmod(draw(rules[symbol]), self.shape.n_symbols)
                ahead += (right, left)
            else:
                texts.append(self.vocabulary.words[draw(words[symbol - self.shape.k])])
        return self.make_tree(np.array(symbols), texts)

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        own = self.symbols
        lists = (own.nonterminals, own.preterminals, own.vocabulary.words)
        facts = {name: list(some) for name, some in zip(_STORED_LISTS, lists, strict=True)}
        return {_STORED_COUNTS: own.word_counts}, facts


def _index_names(names: Sequence[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


def _look_up(index: dict[str, int], label: str, what: str) -> int:
    if label not in index:
        raise DataError(f"there is no {what} {label!r}", "use labels that occur in training")
    return index[label]
