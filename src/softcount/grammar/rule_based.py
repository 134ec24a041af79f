"""Rule-based grammars: rules that are given, or counted in a treebank, of any length.

Rules of a treebank know too little (an NP below S is not one below VP) and too much (a right side
of nine parts was seen once). So labels may be annotated with those above them, and right sides be
taken apart, their parts knowing some of their neighbours (Johnson 1998; Klein & Manning 2003): what
`softcount.text.trees` does. Users see plain labels all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import xlogy

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.estimate import COPIES, NUMBER, Estimate, held, n_entries, needing
from softcount.core.store import AGAIN, TABLE, numbers
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
    Uncounted,
)
from softcount.families import Categorical, SparseCategorical
from softcount.families.base import Family
from softcount.grammar.binarise import CERTAIN, BinarisedRules
from softcount.grammar.core import (
    MAX_NODES,
    ROOT,
    RULES,
    Grammar,
    GrammarOptions,
    Query,
    SpanPosteriors,
    iterate_batches,
)
from softcount.grammar.data import (
    Bracket,
    SpanConstraints,
    SupervisedSentences,
    TreeCorpus,
    TreeShard,
    label_sets,
    span_sets,
)
from softcount.grammar.gibbs import DerivationCells
from softcount.grammar.kernels import rules as kernels
from softcount.grammar.kernels.rules import (
    LexicalRules,
    RuleChart,
    RuleCounts,
    RuleTables,
    RuleText,
    cell_index,
    make_cell_workspace,
)
from softcount.grammar.parsing import (
    NONE,
    Hyperedges,
    ScoredDerivation,
    SymbolSpan,
    UnaryRelations,
    k_best_derivations,
    k_largest,
    make_tree,
    minimum_risk_brackets,
    rank_edges,
)
from softcount.grammar.pruning import PruningLoss, make_coarse_grammar, measure_pruning_loss
from softcount.grammar.rules import (
    GrammarRule,
    GrammarRules,
    check_rules,
    demand_defined,
    make_indptr,
    normalise_rules,
    rule_at,
)
from softcount.grammar.unknown_words import KNOWN, UnknownWords
from softcount.hmm.data import StateSetBuilder
from softcount.kernels.threads import even_pieces, in_turn, usable_cpus
from softcount.text.trees import Tree, binarise_right, plain_label, undo_binarising
from softcount.text.vocabulary import Vocabulary

PIECES = 16
"""Work is divided into so many pieces, whatever the threads: each has counts of its own, which are
added up in one order."""
MAX_CHAIN = 1e5
"""Chains of unary rules that are sampled may go round so often, on average: each time is a node."""
BRACKET_COST = 0.5
"""What brackets of minimum risk trees must be expected at least: trees of any shape need not have
one that is more likely to be wrong than right."""


# Annotated symbols


def annotate(tree: Tree, horizontal: int | None, vertical: int) -> Tree:
    """A tree whose symbols tell what is around them; with None and 1 they tell nothing."""
    if horizontal is None and vertical == 1:
        return tree
    return binarise_right(tree, horizontal, vertical, tags=vertical > 1)


class Annotation:
    """The plain labels of annotated symbols.

    ``labels``  plain ones, by their numbers
    ``of``      the plain label of each symbol; −1 of those that users do not know

    >>> known = Annotation(("S", "NP^S", "@NP^S/DT", "NP^VP", "DT^NP"), {4}, vertical=2)
    >>> known.labels, known.of.tolist()
    (('S', 'NP', 'DT'), [0, 1, -1, 1, 2])
    """

    def __init__(self, symbols: tuple[str, ...], preterminals: set[int], vertical: int) -> None:
        self._above = vertical > 1
        plain = [
            plain_label(symbol, is_tag=a in preterminals, tags=self._above)
            for a, symbol in enumerate(symbols)
        ]
        self.labels = tuple(dict.fromkeys(label for label in plain if label is not None))
        number = {label: n for n, label in enumerate(self.labels)}
        self.of = np.array([-1 if label is None else number[label] for label in plain])

    def symbols(self, label: str) -> set[int]:
        """The symbols that have a plain label."""
        if label not in self.labels:
            return set()
        return set(np.flatnonzero(self.of == self.labels.index(label)).tolist())

    def strip_tree(self, tree: Tree) -> Tree:
        """A tree with plain labels."""
        return undo_binarising(tree, tags=self._above)

    def strip_spans(self, spans: SpanPosteriors) -> SpanPosteriors:
        """Expected spans by plain labels."""
        plain = self.of[spans.symbols]
        kept = plain >= 0
        keys = np.stack([spans.starts[kept], spans.ends[kept], plain[kept]])
        places, at = np.unique(keys, axis=1, return_inverse=True)
        sums: Array = np.bincount(at.reshape(-1), spans.posteriors[kept], minlength=places.shape[1])
        starts, ends, symbols = places
        return SpanPosteriors(starts, ends, symbols, sums)


class NoAnnotation(Annotation):
    """Symbols that are plain labels themselves."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self.labels, self.of = symbols, np.arange(len(symbols))

    def strip_tree(self, tree: Tree) -> Tree:
        return tree

    def strip_spans(self, spans: SpanPosteriors) -> SpanPosteriors:
        return spans


# Inference: inside–outside, Viterbi, samples, posteriors of spans, k best


class Derivations(NamedTuple):
    """Derivations as lists of codes: see `softcount.grammar.kernels.rules`.

    Sample m of sentence s is ``codes[indptr[s * samples + m]:indptr[s * samples + m + 1]]``.

    ``codes``   int64
    ``indptr``  int64 (sentences · samples + 1,)
    ``log_p``   float64 (sentences,)
    ``pruned``  as in `RuleCounts`
    """

    codes: IntArray
    indptr: IntArray
    log_p: FloatArray
    pruned: FloatArray

    def select(self, number: int) -> IntArray:
        """The codes of one derivation; samples of a sentence follow each other."""
        own: IntArray = self.codes[self.indptr[number] : self.indptr[number + 1]]
        return own


def make_rule_text(
    lengths: IntArray, begins: IntArray | None = None, sets: IntArray | None = None
) -> RuleText:
    """Sentences of these lengths; without ``begins``, their spans may have any symbol."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    free = np.full(len(lengths), -1, np.int64)
    none = np.zeros(0, np.int64)
    return RuleText(indptr, free if begins is None else begins, none if sets is None else sets)


class RuleInference(NamedTuple):
    """Inference over some sentences.

    ``tables``   rules with probabilities, for sums or for Viterbi
    ``weights``  (sentences,): how often each counts; None: once
    ``numbers``  (sentences,): their numbers, which samples depend on; None: 0, 1, …
    ``prune``    what a coarse grammar finds less probable is left out
    """

    binarised: BinarisedRules
    tables: RuleTables
    lexical: LexicalRules
    text: RuleText
    weights: FloatArray | None = None
    numbers: IntArray | None = None
    threads: int = 1
    prune: float = 0.0

    def inside_outside(self, with_counts: bool = True) -> RuleCounts:
        """log p of each sentence and, if wanted, the expected counts of all."""
        log_p, bounds = np.zeros(self._n_sentences), self._bounds()
        weights = np.ones(self._n_sentences) if self.weights is None else self.weights
        coarse = make_coarse_grammar(self.tables, self.lexical, self.prune)
        found: dict[int, RuleCounts] = {}

        def run(piece: int) -> None:
            found[piece] = self.binarised.make_counts(log_p, self.lexical)
            how = (weights, found[piece], with_counts, coarse)
            for first, last in iterate_batches(bounds[piece], bounds[piece + 1]):
                kernels.inside_outside(first, last, self.text, self.tables, self.lexical, *how)

        in_turn(run, len(bounds) - 1, self.threads)
        total = found[0]
        for piece in range(1, len(bounds) - 1):  # in one order, whoever was done first
            for into, more in zip(total[1:], found.pop(piece)[1:], strict=True):
                into += more
        return total

    def trace(self, samples: int = 1, stream: int = 0) -> Derivations:
        """The best derivations, if the tables are for Viterbi; or samples from the posterior.

        Samples depend on the sentences' numbers and on the stream alone.
        """
        if not self.tables.viterbi:
            self._demand_short_chains()
        log_p, bounds = np.zeros(self._n_sentences), self._bounds()
        numbers = np.arange(self._n_sentences) if self.numbers is None else self.numbers
        coarse = make_coarse_grammar(self.tables, self.lexical, self.prune)
        pruned = np.zeros((len(bounds) - 1, 3))
        found: dict[int, tuple[IntArray, IntArray]] = {}

        def run(piece: int) -> None:
            found[piece] = kernels.trace_derivations(
                bounds[piece],
                bounds[piece + 1],
                samples,
                self.text,
                self.tables,
                self.lexical,
                numbers,
                np.uint64(stream),
                log_p,
                coarse,
                pruned[piece],
            )

        in_turn(run, len(bounds) - 1, self.threads)
        codes, borders = zip(*(found[piece] for piece in range(len(bounds) - 1)), strict=True)
        ends = np.cumsum(np.concatenate([np.diff(some) for some in borders]))
        indptr = np.concatenate([[0], ends])
        return Derivations(np.concatenate(codes), indptr, log_p, pruned.sum(axis=0))

    def _demand_short_chains(self) -> None:
        """Complain of chains too long to be sampled, though sums over them are fine."""
        length = self.tables.unary.closure_weights.max(initial=1.0)
        if length > MAX_CHAIN:
            raise LearnerError(
                f"unary rules go round some {length:.3g} times: no tree can be drawn",
                "give less probability to unary rules that lead back, or take best trees",
            )

    def count_derivations(self, found: Derivations) -> RuleCounts:
        """How often derivations use rules; those of one sentence share its weight."""
        weights = np.ones(self._n_sentences) if self.weights is None else self.weights
        counts = self.binarised.make_counts(found.log_p, self.lexical)
        sizes = np.diff(found.indptr)
        samples = len(sizes) // max(len(weights), 1)
        shares = np.repeat(weights / max(samples, 1), samples)
        self.binarised.add_codes(found.codes, np.repeat(shares, sizes), self.lexical, counts)
        first = found.codes[found.indptr[:-1][sizes > 0]]
        roots = self.binarised.code_symbols(self.lexical)[first]
        np.add.at(counts.root, roots, shares[sizes > 0])
        return counts

    def list_cells(self, found: Derivations) -> DerivationCells:
        """The cells of one derivation of each sentence: its root, then its rules.

        Rules of probability one have no cell, nor have words that are in no rule.

        >>> from softcount.grammar.rules import parse_rules
        >>> rules = parse_rules("S -> 'a' S 'b' [0.4] | 'a' 'b' [0.6]")
        >>> own, text = BinarisedRules(rules), make_rule_text(np.array([4, 2]))
        >>> words = own.make_lexical(rules.probabilities, own.find_rows("aabbab"))
        >>> tables = own.make_tables(rules.probabilities, own.root)
        >>> inference = RuleInference(own, tables, words, text)
        >>> cells, indptr, log_p = inference.list_cells(inference.trace())
        >>> cells.tolist(), indptr.tolist()  # root S; rules from 1 on
        ([0, 1, 2, 0, 2], [0, 3, 5])
        """
        rules = self.binarised.code_rules(self.lexical)[found.codes]
        begins = found.indptr[:-1][np.diff(found.indptr) > 0]
        roots = self.binarised.code_symbols(self.lexical)[found.codes[begins]]
        kept = np.insert(rules != CERTAIN, begins, True)
        first_rule = self.binarised.n_nonterminals
        cells = np.insert(first_rule + rules.astype(np.int64), begins, roots)[kept]
        n_roots = np.searchsorted(begins, found.indptr)  # those of sentences before
        n_kept = np.concatenate([[0], np.cumsum(kept)])
        return DerivationCells(cells, n_kept[found.indptr + n_roots], found.log_p)

    def span_posteriors(self, s: int) -> SpanPosteriors:
        """How often each nonterminal is expected over each span of sentence s."""
        counts = self.binarised.make_counts(np.zeros(1), self.lexical)
        found = kernels.span_posteriors(s, self.text, self.tables, self.lexical, counts)
        cells, symbols, posteriors = found
        starts, ends = np.triu_indices(self.text.indptr[s + 1] - self.text.indptr[s])
        return SpanPosteriors(starts[cells], ends[cells] + 1, symbols, posteriors)

    def k_best(self, k: int) -> list[list[ScoredDerivation]]:
        """The k best derivations of each sentence, or all if there are fewer, by Viterbi tables.

        `BinarisedRules.make_tree` makes trees of their codes.
        """
        rules = RulesByParent.sort(self.tables, self.lexical)
        found: list[list[ScoredDerivation]] = []
        for s in range(self._n_sentences):
            begin, end = int(self.text.indptr[s]), int(self.text.indptr[s + 1])
            if begin == end:
                found.append([])
                continue
            work = make_cell_workspace(s, s + 1, self.text.indptr, self.tables)
            chart = kernels.inside(s, self.text, self.tables, self.lexical, work)
            cells, rows = ChartCells(chart, end - begin), self.lexical.rows[begin:end]
            forest = RuleForest(self.tables, rules, self.lexical, rows, cells, k)
            found.append(k_best_derivations(forest, k))
        return found

    @property
    def _n_sentences(self) -> int:
        return len(self.text.indptr) - 1

    def _bounds(self) -> IntArray:
        """Where pieces begin, and the end: a chart takes the cube of the words."""
        return even_pieces(np.diff(self.text.indptr).astype(np.float64) ** 3, PIECES)


# The k best derivations


class RulesByParent(NamedTuple):
    """Logarithms of probabilities, and binary rules by left side.

    ``indptr``           symbol A has the binary rules from indptr[A] to indptr[A + 1]
    ``codes``            int64: their codes
    ``lefts``, ``rights``  int: their children
    ``binary``, ``unary``, ``lexical``, ``root``  float64: log p
    """

    indptr: IntArray
    codes: IntArray
    lefts: IntArray
    rights: IntArray
    binary: FloatArray
    unary: FloatArray
    lexical: FloatArray
    root: FloatArray

    @classmethod
    def sort(cls, tables: RuleTables, lexical: LexicalRules) -> RulesByParent:
        own, n_symbols = tables.binary, len(tables.binary.indptr) - 1
        order = np.argsort(own.parent, kind="stable")
        rights = np.repeat(np.arange(n_symbols), np.diff(own.indptr))
        with np.errstate(divide="ignore"):
            binary, unary = np.log(own.probability[order]), np.log(tables.unary.probability)
            words, root = np.log(lexical.probabilities), np.log(tables.root)
        children = (own.left[order], rights[order])
        return cls(make_indptr(own.parent, n_symbols), order, *children, binary, unary, words, root)


class ChartCells:
    """Entries of a chart by the cells' starts, and by their ends."""

    def __init__(self, chart: RuleChart, n: int) -> None:
        self.n, sizes = n, chart.ends - chart.begins
        starts, ends = np.triu_indices(n)
        self.by_start = _SortedEntries(np.arange(len(sizes)), ends + 1, chart, sizes)
        self.by_end = _SortedEntries(np.lexsort((starts, ends)), starts, chart, sizes)

    def at(self, i: int, j: int) -> tuple[IntArray, FloatArray]:
        """The symbols of a cell, and log p of the best derivation of each."""
        own = self.by_start
        begin, end = own.indptr[cell_index(i, j, self.n) :][:2]
        return own.symbols[begin:end], own.log_p[begin:end]

    def lefts(self, i: int, j: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Of all cells that begin at i and end before j: their ends, symbols, logarithms."""
        own, n = self.by_start, self.n
        return own.slice(own.indptr[cell_index(i, i + 1, n)], own.indptr[cell_index(i, j, n)])

    def rights(self, i: int, j: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Of all cells that begin after i and end at j: their starts, symbols, logarithms."""
        own, first = self.by_end, j * (j - 1) // 2
        return own.slice(own.indptr[first + i + 1], own.indptr[first + j])


class _SortedEntries:
    """Entries of cells in some order, each with the place of its cell."""

    def __init__(
        self, order: IntArray, places: IntArray, chart: RuleChart, sizes: IntArray
    ) -> None:
        self.indptr = np.concatenate([[0], np.cumsum(sizes[order])])
        cells = np.repeat(order, sizes[order])
        begins = np.repeat(self.indptr[:-1], sizes[order])
        at = chart.begins[cells] + np.arange(len(cells)) - begins
        self.symbols, self.places = chart.symbols[at], places[cells]
        self.log_p = np.log(chart.values[at]) + chart.exponents[cells] * math.log(2.0)

    def slice(self, begin: int, end: int) -> tuple[IntArray, IntArray, FloatArray]:
        return self.places[begin:end], self.symbols[begin:end], self.log_p[begin:end]


EdgeParts = tuple[Array, Array, Array, Array, Array]
"""The fields of `Hyperedges`, in any order."""


class RuleForest:
    """All derivations of one sentence, whose tokens have ``rows`` of lexical rules."""

    def __init__(
        self,
        tables: RuleTables,
        rules: RulesByParent,
        lexical: LexicalRules,
        rows: IntArray,
        cells: ChartCells,
        k: int,
    ) -> None:
        self.tables, self.rules, self.lexical = tables, rules, lexical
        self.rows, self.cells, self.k = rows, cells, k
        self.n_words = len(rows)
        size = self.n_words, len(rules.indptr) - 1
        self._left, self._right = np.full(size, -np.inf), np.full(size, -np.inf)

    def roots(self) -> Hyperedges:
        """Symbols over the sentence."""
        symbols, log_p = self.cells.at(0, self.n_words)
        known = symbols < len(self.rules.root)
        symbols, log_p = symbols[known], log_p[known]
        scores = self.rules.root[symbols] + log_p
        kept = k_largest(scores, self.k)
        nothing = np.full(len(kept), NONE)
        return Hyperedges(scores[kept], symbols[kept], symbols[kept], nothing, nothing)

    def edges(self, vertex: SymbolSpan) -> Hyperedges:
        """Lexical or binary rules, and unary ones; of equals, these come last, so that derivations
        that always take the first of them come to an end."""
        _, i, j = vertex
        first = self._lexical_edges(vertex) if j == i + 1 else self._binary_edges(vertex)
        parts = zip(first, self._unary_edges(vertex), strict=True)
        scores, codes, lefts, rights, middles = (np.concatenate(some) for some in parts)
        return rank_edges(scores, codes, lefts, rights, middles, self.k)

    def _lexical_edges(self, vertex: SymbolSpan) -> EdgeParts:
        symbol, i, _ = vertex
        begin, end = self.lexical.indptr[self.rows[i] :][:2]
        own = begin + np.flatnonzero(self.lexical.symbols[begin:end] == symbol)
        first_code = len(self.rules.codes) + len(self.rules.unary)
        nothing = np.full(len(own), NONE)
        return self.rules.lexical[own], first_code + own, nothing, nothing, nothing

    def _binary_edges(self, vertex: SymbolSpan) -> EdgeParts:
        symbol, i, j = vertex
        own = slice(*self.rules.indptr[symbol : symbol + 2])
        left, right = self.rules.lefts[own], self.rules.rights[own]
        scores = (
            _look_up(self._left, left, i + 1, j, *self.cells.lefts(i, j))
            + _look_up(self._right, right, i + 1, j, *self.cells.rights(i, j))
            + self.rules.binary[own]
        )
        kept = k_largest(scores.ravel(), self.k)
        middles, rules = np.unravel_index(kept, scores.shape)
        codes = self.rules.codes[own][rules]
        return scores.ravel()[kept], codes, left[rules], right[rules], i + 1 + middles

    def _unary_edges(self, vertex: SymbolSpan) -> EdgeParts:
        symbol, i, j = vertex
        unary = self.tables.unary
        known = symbol < len(self.rules.root)
        begin, end = unary.indptr[symbol : symbol + 2] if known else (0, 0)
        children, (symbols, log_p) = unary.child[begin:end], self.cells.at(i, j)
        below = _look_up(self._left, children, 0, 1, np.zeros(len(log_p), int), symbols, log_p)[0]
        nothing = np.full(len(children), NONE)
        codes = len(self.rules.codes) + np.arange(begin, end)
        return self.rules.unary[begin:end] + below, codes, children, nothing, nothing


def _look_up(
    work: FloatArray,
    wanted: IntArray,
    first: int,
    last: int,
    places: IntArray,
    symbols: IntArray,
    log_p: FloatArray,
) -> FloatArray:
    """log p (places from first to last, wanted symbols), −inf where there is none.

    ``work`` is all −inf before and after.
    """
    work[places - first, symbols] = log_p
    found: FloatArray = work[: last - first, wanted]
    work[places - first, symbols] = -np.inf
    return found


# The grammar


class RuleGrammar(Grammar):
    """p(tree, words) = p(root) Π p(rule | its left side).

    Families: "root" (1, N) and "rules" (rules,), one number for each rule.

    ``rules``                     with the probabilities that learning begins with
    ``unknown``                   whether words that are in no rule may be parsed, by their looks;
                                  only rules that were counted in trees can say how
    ``horizontal``, ``vertical``  how symbols are annotated: see `annotate`
    """

    remedy = "look at its words and brackets, or give the grammar more rules"

    def __init__(
        self,
        rules: GrammarRules,
        options: GrammarOptions,
        unknown: bool = True,
        horizontal: int | None = None,
        vertical: int = 1,
    ) -> None:
        options.demand_known((ROOT, RULES), rules.symbols)
        self.rules, self.binarised, self.prune = rules, BinarisedRules(rules), options.prune
        self.unknown = UnknownWords(rules) if unknown and rules.counts is not None else None
        self.horizontal, self.vertical = horizontal, vertical
        possible = (self.binarised.root > 0.0)[None]
        frozen = options.frozen_rows(ROOT, ["the only row"])
        root = Categorical(possible.shape, options.rules, possible, frozen)
        is_lexical = np.array([rule.is_lexical for rule in rules.rules])
        prior = np.where(is_lexical, options.words, options.rules)
        frozen = options.frozen_rows(RULES, rules.symbols)
        rule_family = SparseCategorical(rules.indptr, prior, frozen=frozen)
        self.families: dict[str, Family] = {ROOT: root, RULES: rule_family}

    @property
    def labels(self) -> tuple[str, ...]:
        return self._annotation.labels

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(list(self.binarised.word_rows))

    @cached_property
    def _annotation(self) -> Annotation:
        if self.horizontal is None and self.vertical == 1:
            return NoAnnotation(self.rules.symbols)
        return Annotation(self.rules.symbols, self._preterminals, self.vertical)

    @cached_property
    def _rule_numbers(self) -> dict[GrammarRule, int]:
        return {rule: number for number, rule in enumerate(self.rules.rules)}

    @cached_property
    def _preterminals(self) -> set[int]:
        """Symbols that have lexical rules."""
        return {self.rules.index[rule.lhs] for rule in self.rules.rules if rule.is_lexical}

    @cached_property
    def _relations(self) -> UnaryRelations:
        return UnaryRelations.from_rules(self.rules, self._annotation.of)

    def start(self) -> dict[str, Array]:
        """The rules' own probabilities."""
        return {ROOT: self.binarised.root[None], RULES: self.rules.probabilities}

    # learning
    def estimate(self, corpus: TreeCorpus) -> Estimate:
        """Charts of the longest sentences, one in each thread; at worst, all rules for each of
        n³ / 6 pairs of spans."""
        lengths = np.diff(corpus.everything.text.indptr).astype(np.float64)
        entries, n_symbols = (n_entries(self.families[name]) for name in (RULES, ROOT))
        pairs, longest = float(np.sum(lengths**3) / 6.0), float(lengths.max(initial=0.0))
        return needing(
            len(corpus),
            float(lengths.sum()),
            2.0 * pairs * entries + 8.0 * entries,
            data=held(corpus),
            tables=(COPIES + PIECES) * NUMBER * (entries + n_symbols),
            charts=2.0 * NUMBER * usable_cpus() * longest**2 / 2.0 * n_symbols,
        )

    def infer(
        self,
        params: Params,
        shard: TreeShard,
        threads: int = 1,
        *,
        viterbi: bool = False,
        temper: float = 1.0,
        known: float = 0.0,
    ) -> tuple[IntArray, RuleInference]:
        """The places of sentences whose trees are not known, and inference over these.

        ``known``  how often known words count as having been seen elsewhere: see `UnknownWords`
        """
        rules, root = (np.asarray(params[name]) ** temper for name in (RULES, ROOT))
        tables = self.binarised.make_tables(rules, root[0], shard.constraints.allowed, viterbi)
        free = np.ones(len(shard), np.bool_)
        if shard.trees is not None:
            free = np.diff(shard.trees.indptr) == 0
        lengths = np.diff(shard.text.indptr)
        sets, begins = shard.constraints.sets, None
        if sets is not None:
            sizes = np.diff(shard.first_sets)
            begins = np.where(sizes > 0, shard.first_sets[:-1], -1)[free]
        tokens = shard.text.observed[np.repeat(free, lengths)]
        return np.flatnonzero(free), RuleInference(
            self.binarised,
            tables,
            self._make_lexical(params, tokens, shard.text.new_words, temper, known),
            make_rule_text(lengths[free], begins, sets),
            shard.text.weights[free],
            shard.text.numbers[free],
            threads,
            self.prune,
        )

    def _make_lexical(
        self, params: Params, tokens: IntArray, new: Sequence[str], temper: float, known: float
    ) -> LexicalRules:
        own, rules = self.binarised, np.asarray(params[RULES])
        if self.unknown is None:  # the row after those of known words has nothing
            known_rows = np.minimum(tokens, len(own.word_rows)).astype(np.int64)
            return own.make_lexical(rules**temper, known_rows)
        kinds, at = np.unique(tokens, return_inverse=True)
        texts = [*own.word_rows, *new]
        words = [texts[kind] for kind in kinds.tolist()]
        rows, unknown = self.unknown.place_tokens(own, rules, words, known)
        return own.make_lexical(rules**temper, rows[at], unknown**temper)

    def expect(self, params: Params, shard: TreeShard, how: EStep, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; a sentence of probability zero is an error."""
        viterbi = how.fill == "hard"
        free, inference = self.infer(params, shard, how.threads, viterbi=viterbi, temper=how.temper)
        if how.fill == "soft" or how.score_only:
            found = inference.inside_outside(with_counts=not how.score_only)
        else:
            found = inference.count_derivations(inference.trace(how.samples, how.stream))
        log_p: FloatArray = np.zeros(len(shard))
        log_p[free] = found.log_p
        attained = log_p
        if viterbi or how.temper != 1.0:
            log_p = self._log_p(params, shard, how.threads)
        counts: dict[str, Counts] = {}
        unknown_words = NOTHING_UNCOUNTED
        if not how.score_only:
            usage = self.binarised.usage(found, inference.lexical)
            counts = {ROOT: usage.root[None], RULES: usage.rules}
            if how.theory:  # words in no rule: their probabilities do not change
                new = self.binarised.n_lexical
                logs = xlogy(found.lexical[new:], inference.lexical.probabilities[new:])
                unknown = float(logs.sum() / how.temper)
                unknown_words = Uncounted(unknown, unknown)
        if shard.trees is not None:
            known_counts, known_log_p = self._count_known_trees(params, shard)
            log_p, attained = log_p + known_log_p, attained + known_log_p * how.temper
            counts = {name: np.asarray(counts[name]) + known_counts[name] for name in counts}
        return self._make_stats(shard, counts, log_p, attained, how, unknown_words)

    def _log_p(self, params: Params, shard: TreeShard, threads: int) -> FloatArray:
        """log p of each sentence whose tree is not known; 0 of others."""
        free, inference = self.infer(params, shard, threads)
        log_p = np.zeros(len(shard))
        log_p[free] = inference.inside_outside(with_counts=False).log_p
        return log_p

    def _count_known_trees(
        self, params: Params, shard: TreeShard
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """Counts of known trees, and log p of each."""
        assert shard.trees is not None
        n = self.binarised.n_nonterminals
        sums = shard.trees.T @ shard.text.weights
        every = np.concatenate([np.asarray(params[ROOT])[0], np.asarray(params[RULES])])
        with np.errstate(divide="ignore"):
            logs = np.where(every > 0.0, np.log(every), -1e300)  # 0 · log 0 is none of these
        found = shard.trees @ logs
        return {ROOT: sums[None, :n], RULES: sums[n:]}, np.where(found > -1e290, found, -np.inf)

    def sample_derivations(
        self, params: Params, shard: TreeShard, stream: int, threads: int = 1
    ) -> DerivationCells:
        free, inference = self.infer(params, shard, threads)
        inference = inference._replace(prune=0.0)
        found = inference.list_cells(inference.trace(stream=stream))
        return found if shard.trees is None else _add_known_trees(found, free, shard.trees)

    # what is known
    def _count_known_entries(self, given: SupervisedSentences) -> csr_matrix | None:
        """How often known trees use each root and rule."""
        if not any(tree is not None for tree in given.trees):
            return None
        entries: list[int] = []
        borders = [0]
        for n, tree in enumerate(given.trees):
            if tree is not None:
                entries += self._list_entries(tree, given.text.name(n))
            borders.append(len(entries))
        shape = (len(given.trees), self.binarised.n_nonterminals + len(self.rules))
        found = csr_matrix((np.ones(len(entries)), np.array(entries), np.array(borders)), shape)
        found.sum_duplicates()
        return found

    def _list_entries(self, tree: Tree, where: str) -> list[int]:
        """The root and the rules of a tree, by their number among all parameters."""
        tree = annotate(tree, self.horizontal, self.vertical)
        root = self.rules.index.get(tree.label)
        if root is None or self.binarised.root[root] == 0.0:
            raise DataError(
                f"the tree of {where} is of {tree.label}, which is never a root",
                f"roots are {', '.join(self.rules.root)}",
            )
        found = [root]
        for node in tree.nodes():
            number = self._rule_numbers.get(rule_at(node))
            if number is None:
                raise DataError(
                    f"the tree of {where} has the rule {rule_at(node)}, "
                    "which the grammar does not have",
                    "PCFG.from_treebank makes a grammar of all rules that trees have",
                )
            found.append(self.binarised.n_nonterminals + number)
        return found

    def _constrain_spans(self, given: SupervisedSentences) -> SpanConstraints:
        n_nonterminals = self.binarised.n_nonterminals
        if not any(given.brackets):
            return SpanConstraints.unconstrained(n_nonterminals)
        sets = StateSetBuilder(n_nonterminals)
        found = [
            self._allowed_sets(n, some, sets)
            for n, some in zip(given.text.lengths.tolist(), given.brackets, strict=True)
        ]
        sizes = np.array([len(some) for some in found])
        return SpanConstraints(np.concatenate(found), sets.build().allowed, sizes)

    def _allowed_sets(self, n: int, some: Sequence[Bracket], sets: StateSetBuilder) -> IntArray:
        """The sets of symbols of all spans of a sentence of n words; empty if all are allowed."""
        if not some:
            return np.zeros(0, np.int64)
        own = label_sets(some, self._find_symbols)
        for (start, end), symbols in own.items():
            if end == start + 1 and not symbols & self._preterminals:
                symbols |= self._preterminals  # what is above the word is known, not its tag
        firsts, lasts = np.triu_indices(n)
        return span_sets(firsts, lasts + 1, some, own, sets)

    def _find_symbols(self, label: str) -> set[int]:
        found = self._annotation.symbols(label)
        if not found:
            raise DataError(f"there is no symbol {label!r} in the rules", "look at the brackets")
        return found

    # what it says of sentences
    def _infer(self, query: Query, *, viterbi: bool = False) -> RuleInference:
        """Inference for answers about trees, in which known words may have new symbols."""
        given = (query.params, query.shard, query.threads)
        return self.infer(*given, viterbi=viterbi, known=KNOWN)[1]

    def log_probabilities(self, query: Query) -> FloatArray:
        return self._log_p(query.params, query.shard, query.threads)

    def viterbi_parses(self, query: Query) -> list[Tree | None]:
        inference = self._infer(query, viterbi=True)
        found = inference.trace()
        return [
            self._make_tree(found.select(n), query.text.sentence(n), inference.lexical)
            for n in range(len(query.shard))
        ]

    def sample_parses(self, query: Query, stream: int, samples: int) -> list[list[Tree]]:
        inference = self._infer(query)
        found = inference.trace(samples, stream)
        trees: list[list[Tree]] = []
        for n in range(len(query.shard)):
            words, own = query.text.sentence(n), range(n * samples, (n + 1) * samples)
            some = (self._make_tree(found.select(m), words, inference.lexical) for m in own)
            trees.append([tree for tree in some if tree is not None])
        return trees

    def _make_tree(
        self, codes: IntArray, sentence: Sequence[str], lexical: LexicalRules
    ) -> Tree | None:
        """The tree of a derivation, with plain labels; None if there is no derivation."""
        tree = self.binarised.make_tree(codes, sentence, lexical)
        return None if tree is None else self._annotation.strip_tree(tree)

    def span_posteriors(self, query: Query) -> Iterator[SpanPosteriors]:
        inference = self._infer(query)
        found = (inference.span_posteriors(n) for n in range(len(query.shard)))
        return (self._annotation.strip_spans(one) for one in found)

    def k_best_parses(self, query: Query, k: int) -> list[list[tuple[float, Tree]]]:
        inference = self._infer(query, viterbi=True)
        trees: list[list[tuple[float, Tree]]] = []
        for n, some in enumerate(inference.k_best(k)):
            words = query.text.sentence(n)
            made = (
                (log_p, self._make_tree(codes, words, inference.lexical)) for log_p, codes in some
            )
            trees.append([(log_p, tree) for log_p, tree in made if tree is not None])
        return trees

    def minimum_risk_parse(
        self, spans: SpanPosteriors, sentence: Sequence[str], labelled: bool
    ) -> Tree | None:
        given = (self._relations, labelled, BRACKET_COST)
        found = minimum_risk_brackets(len(sentence), spans, *given)
        return make_tree(found, self.labels, sentence)

    def expected_rules(self, query: Query) -> dict[GrammarRule, float]:
        _, inference = self.infer(query.params, query.shard, query.threads)
        found = self.binarised.usage(inference.inside_outside(), inference.lexical)
        return dict(zip(self.rules.rules, found.rules.tolist(), strict=True))

    def pruning_loss(self, query: Query) -> PruningLoss:
        """What sentences lose by pruning."""
        return measure_pruning_loss(self._infer(query), self._infer(query, viterbi=True))

    # what was learned
    def list_rules(self, params: Params, threshold: float) -> GrammarRules:
        probabilities, root = np.asarray(params[RULES]), np.asarray(params[ROOT])[0]
        pairs = zip(self.rules.rules, probabilities.tolist(), strict=True)
        tops = zip(self.rules.symbols, root.tolist(), strict=True)
        return normalise_rules(
            {rule: p for rule, p in pairs if p >= threshold and p > 0.0},
            {label: p for label, p in tops if p >= threshold and p > 0.0},
        )

    def generate_once(self, params: Params, rng: np.random.Generator) -> Tree | None:
        probabilities, indptr = np.asarray(params[RULES]), self.rules.indptr
        root = np.asarray(params[ROOT])[0]
        used: list[GrammarRule] = []
        ahead = [int(rng.choice(len(root), p=root / root.sum()))]
        while ahead:
            first, last = indptr[ahead.pop() :][:2]
            own = probabilities[first:last] / probabilities[first:last].sum()
            rule = self.rules.rules[first + rng.choice(last - first, p=own)]
            used.append(rule)
            if len(used) > MAX_NODES:
                return None
            ahead += [self.rules.index[symbol] for symbol in reversed(rule.symbols)]
        done: list[Tree] = []
        for rule in reversed(used):
            parts = zip(rule.rhs, rule.is_word, strict=True)
            done.append(Tree(rule.lhs, tuple(x if word else done.pop() for x, word in parts)))
        return self._annotation.strip_tree(done.pop())

    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        rules = self.rules
        kinds = ["".join(WORD if word else SYMBOL for word in rule.is_word) for rule in rules.rules]
        facts = {
            "left": [rule.lhs for rule in rules.rules],
            "right": [list(rule.rhs) for rule in rules.rules],
            "kinds": kinds,
            "roots": list(rules.root),
        }
        return {} if rules.counts is None else {COUNTS: rules.counts}, facts


def _add_known_trees(found: DerivationCells, free: IntArray, trees: csr_matrix) -> DerivationCells:
    """Derivations of all sentences: those that were sampled, and those of known trees.

    ``free``   the places of sentences whose trees are not known
    ``trees``  how often each sentence's tree has each cell; rows of free sentences are empty
    """
    sizes = np.asarray(trees.sum(axis=1)).reshape(-1).astype(np.int64)
    sizes[free] = np.diff(found.indptr)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    is_free = np.zeros(len(sizes), np.bool_)
    is_free[free] = True
    here: BoolArray = np.repeat(is_free, sizes)
    cells, log_p = np.empty(indptr[-1], np.int64), np.zeros(len(sizes))
    cells[here], log_p[free] = found.cells, found.log_p
    cells[~here] = np.repeat(trees.indices, trees.data.astype(np.int64))
    return DerivationCells(cells, indptr, log_p)


# Rules in model files


SYMBOL, WORD = "s", "w"
"""Which items of a right side are symbols, and which are words."""
COUNTS = "counts"
MAX_SUM = 1.0 + 1e-6
"""Sums of probabilities may be above one by so little, having been rounded."""


def read_stored_rules(stored: store.Stored) -> GrammarRules:
    """Rules from a file, with the probabilities that were learned."""
    meta = stored.meta
    each = zip(meta["left"], meta["right"], meta["kinds"], strict=True)
    found = tuple(_read_stored_rule(*parts) for parts in each)
    order = list(dict.fromkeys(rule.lhs for rule in found))
    place = {symbol: n for n, symbol in enumerate(order)}
    places = [place[rule.lhs] for rule in found]
    probabilities = numbers(stored, TABLE + RULES, (len(found),))
    root = numbers(stored, TABLE + ROOT, (1, len(order)))[0]
    roots = meta["roots"]
    if not isinstance(roots, list) or len(set(roots)) != len(roots):
        raise StoreError("the roots make no sense", AGAIN)
    if len(set(found)) != len(found) or places != sorted(places):
        raise StoreError("the rules make no sense", AGAIN)
    if (probabilities < 0.0).any() or (root < 0.0).any():
        raise StoreError("some probabilities are negative", AGAIN)
    counts = numbers(stored, COUNTS, (len(found),)) if COUNTS in stored.arrays else None
    if counts is not None and not (counts > 0.0).all():
        raise StoreError("rules were used less than never", AGAIN)
    tops = {symbol: float(root[place[symbol]]) for symbol in roots}
    rules = GrammarRules(found, probabilities, tops, counts)
    demand_defined(rules)
    check_rules(rules)
    sums = np.add.reduceat(probabilities, rules.indptr[:-1])
    if (sums == 0.0).any() or (sums > MAX_SUM).any():
        raise StoreError("rules of a left side do not add up to one", AGAIN)
    own = BinarisedRules(rules)
    own.make_tables(probabilities, own.root)  # complains if chains have no finite sum
    return rules


def _read_stored_rule(left: Any, right: Any, kinds: Any) -> GrammarRule:
    texts = [left, *right] if isinstance(right, list) and right else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise StoreError(f"{left!r} -> {right!r} is no rule", AGAIN)
    if not isinstance(kinds, str) or len(kinds) != len(right) or set(kinds) - {SYMBOL, WORD}:
        raise StoreError(f"{kinds!r} does not say what is a word in a rule", AGAIN)
    return GrammarRule(left, tuple(right), tuple(kind == WORD for kind in kinds))
