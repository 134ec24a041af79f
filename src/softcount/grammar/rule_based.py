"""Rule-based grammars: given rules, or rules counted in a treebank, of any length.

Treebank rules are too coarse (an NP below S differs from one below VP) and too specific (a right
side of nine items was seen once). So labels may be annotated with their ancestors, and right sides
Markovised (Johnson 1998; Klein & Manning 2003), by the transformations of `softcount.text.trees`.
Users still see plain labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import xlogy

from softcount.core import store
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.estimate import COPIES, NUMBER, Estimate, count_bytes, make_estimate, n_entries
from softcount.core.store import AGAIN, TABLE, numbers
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
from softcount.families import Categorical, SparseCategorical
from softcount.families.base import Family
from softcount.grammar.core import (
    MAX_NODES,
    ROOT,
    RULES,
    Grammar,
    GrammarOptions,
    iterate_batches,
    map_pieces,
)
from softcount.grammar.data import (
    StoredTreeCorpus,
    SupervisedSentences,
    TreeCorpus,
    TreeShard,
)
from softcount.grammar.gibbs import DerivationCells
from softcount.grammar.kernels import rules as kernels
from softcount.grammar.kernels.rules import (
    BinaryRules,
    ChartInput,
    CoarseGrammar,
    LexicalRules,
    RuleCounts,
    RuleTables,
    RuleText,
    UnaryRules,
    make_cell_workspace,
)
from softcount.grammar.parsing import (
    RuleForest,
    RulesByParent,
    ScoredDerivation,
    SpanPosteriors,
    UnaryRelations,
    k_best_derivations,
)
from softcount.grammar.rule_tables import CERTAIN, KNOWN, BinarisedRules, UnknownWords
from softcount.grammar.rules import (
    GrammarRule,
    GrammarRules,
    check_defined,
    check_rules,
    make_indptr,
    normalise_rules,
    rule_at,
)
from softcount.kernels.threads import usable_cpus
from softcount.text.trees import Tree, binarise_right, plain_label, undo_binarising
from softcount.text.vocabulary import Vocabulary

PIECES = 16
"""Number of pieces that work is divided into, whatever the number of threads: each piece has its
own counts, which are added in a fixed order."""
DEPTH = 50
"""Maximum depth of trees considered in the expected number of uses of symbols."""
RARE = 1e-9
"""Expected number of uses of symbols below that depth."""
SLACK = 1e-9
"""Log-probabilities that differ by less are treated as equal."""
MAX_CHAIN = 1e5
"""Maximum expected length of sampled chains of unary rules: each step is a node."""

# Annotated symbols


def annotate(tree: Tree, horizontal: int | None, vertical: int) -> Tree:
    """Annotate the labels of a tree with their context; None and 1 leave it unchanged."""
    if horizontal is None and vertical == 1:
        return tree
    return binarise_right(tree, horizontal, vertical, tags=vertical > 1)


class Annotation:
    """The plain labels of annotated symbols.

    ``labels``    the plain labels
    ``of``        index of the plain label of each symbol; −1 if binarising added the symbol
    ``is_plain``  whether the symbols are themselves plain labels

    >>> known = Annotation(("S", "NP^S", "@NP^S/DT", "NP^VP", "DT^NP"), {4}, vertical=2)
    >>> known.labels, known.of.tolist()
    (('S', 'NP', 'DT'), [0, 1, -1, 1, 2])
    """

    def __init__(
        self,
        symbols: tuple[str, ...],
        preterminals: set[int],
        vertical: int,
        is_plain: bool = False,
    ) -> None:
        self._tags, self._is_plain = vertical > 1, is_plain
        if is_plain:
            self.labels, self.of = symbols, np.arange(len(symbols))
            return
        plain = [
            plain_label(symbol, is_tag=a in preterminals, tags=self._tags)
            for a, symbol in enumerate(symbols)
        ]
        self.labels = tuple(dict.fromkeys(label for label in plain if label is not None))
        number = {label: n for n, label in enumerate(self.labels)}
        self.of = np.array([-1 if label is None else number[label] for label in plain])

    def symbols(self, label: str) -> set[int]:
        """Return the symbols that have a plain label."""
        if label not in self.labels:
            return set()
        return set(np.flatnonzero(self.of == self.labels.index(label)).tolist())

    def strip_tree(self, tree: Tree) -> Tree:
        """Convert a tree to plain labels."""
        return tree if self._is_plain else undo_binarising(tree, tags=self._tags)

    def strip_spans(self, spans: SpanPosteriors) -> SpanPosteriors:
        """Sum the posteriors of spans by plain label."""
        if self._is_plain:
            return spans
        plain = self.of[spans.symbols]
        kept = plain >= 0
        keys = np.stack([spans.starts[kept], spans.ends[kept], plain[kept]])
        places, at = np.unique(keys, axis=1, return_inverse=True)
        sums: Array = np.bincount(at.reshape(-1), spans.posteriors[kept], minlength=places.shape[1])
        starts, ends, symbols = places
        return SpanPosteriors(starts, ends, symbols, sums)


# Coarse-to-fine pruning: a grammar of classes of symbols, and the loss due to pruning.
#
# A class a stands for its symbols A with p(A | a), in proportion to their expected numbers of uses:
#
#     p(a → x r) = Σ_{A in a} p(A | a) Σ_{X in x, R in r} p(A → X R)
#
# and likewise for chains of unary rules and for words (Charniak et al. 2006, "Multilevel coarse-
# to-fine PCFG parsing"). Symbols that span only single words (tags) are a class each; all symbols
# that may span several words are one class, and so are the rests of rules, such as ⟨Y Z⟩: finer
# classes prune little more and cost far more than they save.
#
# Classes with the maximum of their symbols' probabilities, which would make p(class | sentence) a
# bound, are of no use: for each of six clusterings, the bound on p(sentence) was on average e^48 to
# e^94 times too large (60 sentences of 25 to 40 words, WSJ sample). So pruning relies on an
# estimate, and `measure_pruning_loss` measures its cost.


def make_coarse_grammar(
    grammar: RuleTables, lexical: LexicalRules, threshold: float
) -> CoarseGrammar:
    """Make the coarse grammar that prunes posteriors below ``threshold``; 0: no pruning."""
    if threshold == 0.0:
        return CoarseGrammar(0.0, np.zeros(0, np.int32), np.zeros(0), grammar, lexical)
    return project(grammar, lexical, _make_classes(grammar), threshold)


def project(
    grammar: RuleTables, lexical: LexicalRules, classes: IntArray, threshold: float
) -> CoarseGrammar:
    """Project a grammar to a grammar of classes.

    ``classes``  (symbols,): class of each symbol; classes of nonterminals come first, and those of
                 rests, such as ⟨Y Z⟩, last
    """
    binary, unary = grammar.binary, grammar.unary
    n, n_rows = int(classes.max()) + 1, len(lexical.indptr) - 1
    uses = _expected_uses(grammar)
    priors = uses / np.bincount(classes, uses)[classes]

    rights = _row_numbers(binary.indptr)
    may_be_wide = np.zeros(n, np.bool_)
    may_be_wide[classes[binary.left[np.arange(len(rights)) < binary.wide[rights]]]] = True
    one_word = ~may_be_wide[classes[binary.left]]
    (right, one_word, left, parent), probability = _sum_by_key(
        (classes[rights], one_word, classes[binary.left], classes[binary.parent]),
        (n, 2, n, n),
        priors[binary.parent] * binary.probability,
    )
    indptr = make_indptr(right, n)
    wide = indptr[:-1] + np.bincount(right[one_word == 0], minlength=n)
    children = (left.astype(np.int32), parent.astype(np.int32))
    coarse_binary = BinaryRules(indptr, wide, *children, probability)

    # only the closure of chains, since counts of single unary rules are not needed
    nonterminals = classes[: len(grammar.root)]
    n_high, bottoms = int(nonterminals.max()) + 1, _row_numbers(unary.closure_indptr)
    sets, bottoms = np.divmod(bottoms, len(nonterminals))
    n_sets, tops = (len(unary.closure_indptr) - 1) // len(nonterminals), unary.closure_parents
    (sets, bottoms, tops), weights = _sum_by_key(
        (sets, nonterminals[bottoms], nonterminals[tops]),
        (n_sets, n_high, n_high),
        priors[tops] * unary.closure_weights,
    )
    none = (np.zeros(n_high + 1, unary.indptr.dtype), np.zeros(0, unary.child.dtype), np.zeros(0))
    begins = make_indptr(sets * n_high + bottoms, n_sets * n_high)
    coarse_unary = UnaryRules(*none, begins, tops.astype(unary.closure_parents.dtype), weights)

    (rows, symbols), sums = _sum_by_key(
        (_row_numbers(lexical.indptr), classes[lexical.symbols]),
        (n_rows, n),
        priors[lexical.symbols] * lexical.probabilities,
    )
    words = LexicalRules(lexical.rows, make_indptr(rows, n_rows), symbols.astype(np.int32), sums)

    root = np.bincount(nonterminals, grammar.root).astype(np.float64, copy=False)
    n_left = int(classes[: grammar.n_left].max()) + 1
    coarse = RuleTables(root, n_left, coarse_binary, coarse_unary, False)
    return CoarseGrammar(threshold, classes, priors, coarse, words)


def _make_classes(grammar: RuleTables) -> IntArray:
    binary, unary, n_nonterminals = grammar.binary, grammar.unary, len(grammar.root)
    found = np.arange(len(binary.wide))
    found[n_nonterminals : grammar.n_left] = n_nonterminals + 1
    found[grammar.n_left :] = n_nonterminals + 2
    is_wide = np.zeros(len(binary.wide), np.bool_)
    is_wide[binary.parent] = True
    bottoms = _row_numbers(unary.closure_indptr) % n_nonterminals
    is_wide[unary.closure_parents[is_wide[bottoms]]] = True
    found[:n_nonterminals][is_wide[:n_nonterminals]] = n_nonterminals
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


def _expected_uses(grammar: RuleTables) -> FloatArray:
    """Compute the expected number of uses of each symbol in a tree, down to `DEPTH`."""
    binary, unary, n = grammar.binary, grammar.unary, len(grammar.binary.wide)
    rights, parents = _row_numbers(binary.indptr), _row_numbers(unary.indptr)
    first = np.concatenate([grammar.root, np.zeros(n - len(grammar.root))])
    found = first
    for _ in range(DEPTH):
        pairs, below = found[binary.parent] * binary.probability, found[parents] * unary.probability
        found = first + np.bincount(unary.child, below, n)
        found += np.bincount(binary.left, pairs, n) + np.bincount(rights, pairs, n)
    return found + RARE


def _sum_by_key(
    parts: tuple[Array, ...], shape: tuple[int, ...], values: FloatArray
) -> tuple[tuple[Array, ...], Array]:
    """Sum values by key, in the order of keys; ``parts`` are the components of the keys."""
    wide = tuple(part.astype(np.int64) for part in parts)
    keys, at = np.unique(np.ravel_multi_index(wide, shape), return_inverse=True)
    return np.unravel_index(keys, shape), np.bincount(at, values, len(keys))


def _row_numbers(indptr: IntArray) -> IntArray:
    """Return the row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


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
        """Return the codes of one derivation; samples of a sentence are consecutive."""
        codes: IntArray = self.codes[self.indptr[number] : self.indptr[number + 1]]
        return codes


def make_rule_text(
    lengths: IntArray,
    begins: IntArray | None = None,
    sets: IntArray | None = None,
    weights: FloatArray | None = None,
    numbers: IntArray | None = None,
) -> RuleText:
    """Make the kernels' text of sentences of these lengths.

    Without ``begins``, their spans may have any symbol; by default, weights are 1, and sentences
    are numbered from 0.
    """
    n = len(lengths)
    return RuleText(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.full(n, -1, np.int64) if begins is None else begins,
        np.zeros(0, np.int64) if sets is None else sets,
        np.ones(n) if weights is None else weights,
        np.arange(n) if numbers is None else numbers,
    )


class RuleInference(NamedTuple):
    """Inference on a set of sentences.

    ``tables``  rules with probabilities, for sums or for Viterbi
    ``prune``   symbols with a posterior below this under a coarse grammar are pruned
    """

    binarised: BinarisedRules
    tables: RuleTables
    lexical: LexicalRules
    text: RuleText
    threads: int = 1
    prune: float = 0.0

    def inside_outside(self, with_counts: bool = True) -> RuleCounts:
        """Compute log p of each sentence and, optionally, the expected counts of all."""
        lengths, given = np.diff(self.text.indptr), self._make_input()
        log_p = np.zeros(len(lengths))
        coarse = make_coarse_grammar(self.tables, self.lexical, self.prune)

        def run(begin: int, end: int) -> RuleCounts:
            counts = self.binarised.make_counts(log_p, self.lexical)
            for first, last in iterate_batches(begin, end):
                kernels.inside_outside(first, last, given, counts, with_counts, coarse)
            return counts

        total, *others = map_pieces(run, lengths, PIECES, self.threads)
        for counts in others:
            for into, more in zip(total[1:], counts[1:], strict=True):
                into += more
        return total

    def trace(self, samples: int = 1, stream: int = 0) -> Derivations:
        """Return the best derivations (with Viterbi tables), or samples from the posterior.

        Samples depend only on the sentences' numbers and the stream.
        """
        chain = self.tables.unary.closure_weights.max(initial=1.0)
        if not self.tables.viterbi and chain > MAX_CHAIN:  # sums over such chains are fine
            raise LearnerError(
                f"cycles of unary rules repeat some {chain:.3g} times: no tree can be drawn",
                "give less probability to unary rules in cycles, or use the best trees",
            )
        lengths, given = np.diff(self.text.indptr), self._make_input()
        log_p = np.zeros(len(lengths))
        coarse = make_coarse_grammar(self.tables, self.lexical, self.prune)

        def run(first: int, last: int) -> tuple[IntArray, IntArray, FloatArray]:
            pruned = np.zeros(3)
            codes, borders = kernels.trace_derivations(
                first, last, samples, given, np.uint64(stream), log_p, coarse, pruned
            )
            return codes, borders, pruned

        pieces = map_pieces(run, lengths, PIECES, self.threads)
        codes, borders, pruned = zip(*pieces, strict=True)
        sizes = np.concatenate([np.diff(some) for some in borders])
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return Derivations(np.concatenate(codes), indptr, log_p, np.sum(pruned, axis=0))

    def _make_input(self) -> ChartInput:
        return ChartInput(self.text, self.tables, self.lexical)

    def count_derivations(self, found: Derivations) -> RuleCounts:
        """Count the rules of derivations; those of one sentence share its weight equally."""
        counts, weights = self.binarised.make_counts(found.log_p, self.lexical), self.text.weights
        sizes = np.diff(found.indptr)
        samples = len(sizes) // max(len(weights), 1)
        shares = np.repeat(weights / max(samples, 1), samples)
        cuts = np.cumsum([len(counts.binary), len(counts.unary), len(counts.lexical)])
        sums = np.bincount(found.codes, np.repeat(shares, sizes), minlength=cuts[-1])
        binary, unary, lexical = np.split(sums.astype(float), cuts[:-1])
        first = found.codes[found.indptr[:-1][sizes > 0]]
        roots = self.binarised.code_symbols(self.lexical)[first]
        np.add.at(counts.root, roots, shares[sizes > 0])
        return counts._replace(binary=binary, unary=unary, lexical=lexical)

    def list_cells(self, found: Derivations) -> DerivationCells:
        """List the cells of one derivation of each sentence: its root, then its rules.

        Rules of probability one have no cell, nor do words that are in no rule.

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
        """Compute the expected number of each nonterminal over each span of sentence s."""
        counts = self.binarised.make_counts(np.zeros(1), self.lexical)
        found = kernels.span_posteriors(s, self._make_input(), counts)
        cells, symbols, posteriors = found
        starts, ends = np.triu_indices(self.text.indptr[s + 1] - self.text.indptr[s])
        return SpanPosteriors(starts[cells], ends[cells] + 1, symbols, posteriors)

    def k_best(self, k: int) -> list[list[ScoredDerivation]]:
        """Return the k best derivations of each sentence (or all, if fewer); needs Viterbi tables.

        `BinarisedRules.make_tree` converts their codes to trees.
        """
        rules = RulesByParent.sort(self.tables, self.lexical)
        found: list[list[ScoredDerivation]] = []
        for s, (begin, end) in enumerate(pairwise(self.text.indptr.tolist())):
            found.append([])
            if begin < end:
                work = make_cell_workspace(s, s + 1, self.text.indptr, self.tables)
                chart = kernels.inside(s, self._make_input(), work)
                forest = RuleForest(rules, self.lexical.rows[begin:end], chart, k)
                found[-1] = k_best_derivations(forest, k)
        return found


class PruningLoss(NamedTuple):
    """The loss due to pruning on a set of sentences.

    ``sentences``      number of sentences that have a derivation
    ``pruned``         proportion of the symbols of cells that were pruned
    ``parsed_again``   number of sentences that had to be parsed again without pruning
    ``mean``, ``worst``  mean and maximum loss of log p(sentence)
    ``worse_trees``    number of best trees that are less probable than those without pruning
    """

    sentences: int
    pruned: float
    parsed_again: int
    mean: float
    worst: float
    worse_trees: int


class PruningSums(NamedTuple):
    """What `PruningLoss` is made of, for some sentences.

    ``lost``          the loss of log p of each sentence that has a derivation
    ``worse_trees``   number of best trees that are less probable
    ``before, left_out, again``  numbers of symbols of cells, of those that were pruned, and of
                      sentences that were parsed again
    """

    lost: FloatArray
    worse_trees: int
    before: float
    left_out: float
    again: float


def measure_pruning_loss(sums: RuleInference, best: RuleInference) -> PruningSums:
    """Measure the loss due to pruning, by parsing with and without it.

    ``sums``, ``best``  inference on the same sentences, with tables for sums and for Viterbi

    >>> from softcount.grammar.rules import parse_rules
    >>> rules = parse_rules("S -> S S [0.4] | 'a'")
    >>> own, text = BinarisedRules(rules), make_rule_text(np.array([4]))
    >>> words = own.make_lexical(rules.probabilities, own.find_rows("aaaa"))
    >>> tables = [own.make_tables(rules.probabilities, own.root, viterbi=v) for v in (False, True)]
    >>> some = measure_pruning_loss(*(RuleInference(own, t, words, text, 1, 1e-4) for t in tables))
    >>> add_pruning_losses([some]).worse_trees
    0
    """
    full = sums._replace(prune=0.0).inside_outside(with_counts=False)
    pruned = sums.inside_outside(with_counts=False)
    best_full, best_pruned = best._replace(prune=0.0).trace(), best.trace()
    possible = np.isfinite(full.log_p) & (np.diff(sums.text.indptr) > 0)
    return PruningSums(
        full.log_p[possible] - pruned.log_p[possible],
        int(np.count_nonzero(best_full.log_p[possible] - best_pruned.log_p[possible] > SLACK)),
        *pruned.pruned.tolist(),
    )


def add_pruning_losses(parts: Iterable[PruningSums]) -> PruningLoss:
    """Return the loss on all sentences."""
    losses, worse, before, left_out, again = zip(*parts, strict=True)
    lost = np.concatenate(losses)
    return PruningLoss(
        len(lost),
        float(sum(left_out) / max(sum(before), 1.0)),
        int(sum(again)),
        float(lost.mean()) if len(lost) else 0.0,
        float(lost.max(initial=0.0)),
        sum(worse),
    )


# The grammar


class RuleGrammar(Grammar):
    """A rule-based grammar: p(tree, words) = p(root) Π p(rule | its left side).

    Families: "root" (1, N) and "rules" (rules,), one number for each rule.

    ``rules``                     with their initial probabilities
    ``unknown``                   whether to parse words that are in no rule, by their form; needs
                                  rules that were counted in trees
    ``horizontal``, ``vertical``  annotation of symbols: see `annotate`
    """

    remedy = "look at its words and brackets, or give the grammar more rules"
    bracket_cost = 0.5
    """Trees need not be binary, so brackets more likely to be wrong than right are left out."""

    def __init__(
        self,
        rules: GrammarRules,
        options: GrammarOptions,
        unknown: bool = True,
        horizontal: int | None = None,
        vertical: int = 1,
    ) -> None:
        options.check_frozen((ROOT, RULES), rules.symbols)
        self.rules, self.binarised, self.prune = rules, BinarisedRules(rules), options.prune
        self._options = options
        self.n_nonterminals = self.binarised.n_nonterminals
        self.unknown = UnknownWords(rules) if unknown and rules.counts is not None else None
        self.horizontal, self.vertical = horizontal, vertical
        # symbols that have lexical rules
        self._preterminals = {rules.index[rule.lhs] for rule in rules.rules if rule.is_lexical}
        is_plain = horizontal is None and vertical == 1
        self._annotation = Annotation(rules.symbols, self._preterminals, vertical, is_plain)
        self.labels = self._annotation.labels
        self.vocabulary = Vocabulary(list(self.binarised.word_rows))
        possible = (self.binarised.root > 0.0)[None]
        frozen = options.frozen_rows(ROOT, ["the only row"])
        root = Categorical(possible.shape, options.rules, possible, frozen)
        is_lexical = np.array([rule.is_lexical for rule in rules.rules])
        prior = np.where(is_lexical, options.words, options.rules)
        frozen = options.frozen_rows(RULES, rules.symbols)
        rule_family = SparseCategorical(rules.indptr, prior, frozen=frozen)
        self.families: dict[str, Family] = {ROOT: root, RULES: rule_family}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what it is made of: the rules, which are binarised again."""
        known = (self.unknown is not None, self.horizontal, self.vertical)
        return type(self), (self.rules, self._options, *known)

    @cached_property
    def relations(self) -> UnaryRelations:  # type: ignore[override]
        return UnaryRelations.from_rules(self.rules, self._annotation.of)

    @cached_property
    def _rule_numbers(self) -> dict[GrammarRule, int]:
        return {rule: number for number, rule in enumerate(self.rules.rules)}

    def start(self) -> dict[str, Array]:
        """Return the rules' own probabilities, as initial parameters."""
        return {ROOT: self.binarised.root[None], RULES: self.rules.probabilities}

    # learning
    def estimate(self, corpus: TreeCorpus | StoredTreeCorpus) -> Estimate:
        """Estimate memory and operations.

        Charts of the longest sentences, one in each thread; at worst, all rules for each of n³ / 6
        pairs of spans.
        """
        lengths = corpus.lengths.astype(np.float64)
        entries, n_symbols = (n_entries(self.families[name]) for name in (RULES, ROOT))
        pairs, longest = float(np.sum(lengths**3) / 6.0), float(lengths.max(initial=0.0))
        return make_estimate(
            len(corpus),
            float(lengths.sum()),
            2.0 * pairs * entries + 8.0 * entries,
            data=count_bytes(corpus),
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
        """Return the indices of sentences with unknown trees, and inference on these.

        ``known``  pseudo-count of further occurrences of known words: see `UnknownWords`
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
        own, plain = self.binarised, np.asarray(params[RULES])
        if self.unknown is None:  # the row after those of known words is empty
            known_rows = np.minimum(tokens, len(own.word_rows)).astype(np.int64)
            lexical = own.make_lexical(rules, known_rows)
        else:
            kinds, at = np.unique(tokens, return_inverse=True)
            texts = [*own.word_rows, *shard.text.new_words]
            words = [texts[kind] for kind in kinds.tolist()]
            rows, unknown = self.unknown.place_tokens(own, plain, words, known)
            lexical = own.make_lexical(rules, rows[at], unknown**temper)
        return np.flatnonzero(free), RuleInference(
            self.binarised,
            tables,
            lexical,
            make_rule_text(
                lengths[free], begins, sets, shard.text.weights[free], shard.text.numbers[free]
            ),
            threads,
            self.prune,
        )

    def expect(self, params: Params, shard: TreeShard, how: EStep, local: Any = None) -> Stats:
        """Run the E-step on a shard; a sentence of probability zero is an error."""
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
            counts = {ROOT: found.root[None], RULES: self.binarised.rule_counts(found)}
            if how.theory:  # words in no rule: their probabilities do not change
                new = self.binarised.n_lexical
                logs = xlogy(found.lexical[new:], inference.lexical.probabilities[new:])
                unknown = float(logs.sum() / how.temper)
                unknown_words = Uncounted(unknown, unknown)
        if shard.trees is not None:
            every = np.concatenate([np.asarray(params[ROOT])[0], np.asarray(params[RULES])])
            with np.errstate(divide="ignore"):
                logs = np.where(every > 0.0, np.log(every), -1e300)  # 0 · log 0 is none of these
            known_log_p = shard.trees @ logs
            known_log_p = np.where(known_log_p > -1e290, known_log_p, -np.inf)
            root, rules = np.split(shard.trees.T @ shard.text.weights, [self.n_nonterminals])
            known_counts = {ROOT: root[None], RULES: rules}
            log_p, attained = log_p + known_log_p, attained + known_log_p * how.temper
            counts = {name: np.asarray(counts[name]) + known_counts[name] for name in counts}
        return self._make_stats(shard, counts, log_p, attained, how, unknown_words)

    def _log_p(self, params: Params, shard: TreeShard, threads: int) -> FloatArray:
        """Compute log p of each sentence whose tree is unknown; 0 for the others."""
        free, inference = self.infer(params, shard, threads)
        log_p = np.zeros(len(shard))
        log_p[free] = inference.inside_outside(with_counts=False).log_p
        return log_p

    def sample_derivations(
        self, params: Params, shard: TreeShard, stream: int, threads: int = 1
    ) -> DerivationCells:
        free, inference = self.infer(params, shard, threads)
        inference = inference._replace(prune=0.0)
        found = inference.list_cells(inference.trace(stream=stream))
        if shard.trees is None:
            return found
        # merge sampled derivations with those of known trees, given as counts of cells
        sizes = np.asarray(shard.trees.sum(axis=1)).reshape(-1).astype(np.int64)
        sizes[free] = np.diff(found.indptr)
        is_sampled = np.repeat(np.isin(np.arange(len(sizes)), free), sizes)
        cells, log_p = np.empty(sizes.sum(), np.int64), np.zeros(len(sizes))
        cells[is_sampled], log_p[free] = found.cells, found.log_p
        cells[~is_sampled] = np.repeat(shard.trees.indices, shard.trees.data.astype(np.int64))
        return DerivationCells(cells, np.concatenate([[0], np.cumsum(sizes)]), log_p)

    # supervision
    def _count_known_entries(self, given: SupervisedSentences) -> csr_matrix | None:
        """Count the uses of each root and rule in known trees."""
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

    def _list_entries(self, tree: Tree, where: str) -> Iterator[int]:
        """Yield the root and the rules of a tree, by their index among all parameters."""
        tree = annotate(tree, self.horizontal, self.vertical)
        root = self.rules.index.get(tree.label)
        if root is None or self.binarised.root[root] == 0.0:
            raise DataError(
                f"the tree of {where} has the root {tree.label}, which is never a root",
                f"roots are {', '.join(self.rules.root)}",
            )
        yield root
        for node in tree.nodes():
            rule = rule_at(node)
            if rule not in self._rule_numbers:
                raise DataError(
                    f"the tree of {where} has the rule {rule}, which the grammar does not have",
                    "PCFG.from_treebank makes a grammar of all rules of trees",
                )
            yield self.n_nonterminals + self._rule_numbers[rule]

    def _list_spans(self, n: int, is_constrained: bool) -> tuple[IntArray, IntArray]:
        """Return all spans, by start, then by end; none for an unconstrained sentence."""
        firsts, lasts = np.triu_indices(n if is_constrained else 0)
        return firsts, lasts + 1

    def _find_symbols(self, labels: Sequence[str], one_word: bool) -> Iterable[int]:
        found: set[int] = set()
        for label in labels:
            symbols = self._annotation.symbols(label)
            if not symbols:
                raise DataError(
                    f"there is no symbol {label!r} in the rules", "look at the brackets"
                )
            found |= symbols
        if one_word and not found & self._preterminals:
            found |= self._preterminals  # the label is above the tag, which stays unknown
        return found

    # inference
    def _infer(
        self, params: Params, shard: TreeShard, threads: int, *, viterbi: bool = False
    ) -> RuleInference:
        """Make the inference for parsing, in which known words may have new symbols."""
        return self.infer(params, shard, threads, viterbi=viterbi, known=KNOWN)[1]

    def log_probabilities(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> FloatArray:
        return self._log_p(params, shard, how.threads)

    def trace_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> list[list[Tree]]:
        inference = self._infer(params, shard, how.threads, viterbi=how.fill == "hard")
        found = inference.trace(how.samples, how.stream)
        trees: list[list[Tree]] = []
        for n, words in enumerate(self.list_sentences(shard)):
            own = range(n * how.samples, (n + 1) * how.samples)
            some = (self._make_tree(found.select(m), words, inference.lexical) for m in own)
            trees.append([tree for tree in some if tree is not None])
        return trees

    def _make_tree(
        self, codes: IntArray, sentence: Sequence[str], lexical: LexicalRules
    ) -> Tree | None:
        """Make the tree of a derivation, with plain labels; None if there is no derivation."""
        tree = self.binarised.make_tree(codes, sentence, lexical)
        return None if tree is None else self._annotation.strip_tree(tree)

    def span_posteriors(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> Iterator[SpanPosteriors]:
        inference = self._infer(params, shard, threads)
        found = (inference.span_posteriors(n) for n in range(len(shard)))
        return (self._annotation.strip_spans(one) for one in found)

    def k_best_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None, *, k: int
    ) -> list[list[tuple[float, Tree]]]:
        inference = self._infer(params, shard, how.threads, viterbi=True)
        trees: list[list[tuple[float, Tree]]] = []
        for words, some in zip(self.list_sentences(shard), inference.k_best(k), strict=True):
            made = (
                (log_p, self._make_tree(codes, words, inference.lexical)) for log_p, codes in some
            )
            trees.append([(log_p, tree) for log_p, tree in made if tree is not None])
        return trees

    def expected_rules(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> dict[GrammarRule, float]:
        _, inference = self.infer(params, shard, threads)
        found = self.binarised.rule_counts(inference.inside_outside())
        return dict(zip(self.rules.rules, found.tolist(), strict=True))

    def pruning_loss(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> PruningSums:
        """Measure the loss due to pruning."""
        given = (params, shard, how.threads)
        return measure_pruning_loss(self._infer(*given), self._infer(*given, viterbi=True))

    # rules and generation
    def name_params(self) -> dict[str, tuple[Sequence[Any], ...]]:
        return {ROOT: ([""], self.rules.symbols), RULES: (list(map(str, self.rules.rules)),)}

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


# Rules in model files


SYMBOL, WORD = "s", "w"
"""Codes of symbols and of words in right sides."""
COUNTS = "counts"
MAX_SUM = 1.0 + 1e-6
"""Tolerance for sums of rounded probabilities."""


def read_stored_rules(stored: store.Stored) -> GrammarRules:
    """Read rules from a file, with their learned probabilities."""
    meta = stored.meta
    read: list[GrammarRule] = []
    for left, right, kinds in zip(meta["left"], meta["right"], meta["kinds"], strict=True):
        texts = [left, *right] if isinstance(right, list) and right else [None]
        if not all(isinstance(text, str) and text for text in texts):
            raise StoreError(f"{left!r} -> {right!r} is not a rule", AGAIN)
        if not isinstance(kinds, str) or len(kinds) != len(right) or set(kinds) - {SYMBOL, WORD}:
            raise StoreError(f"{kinds!r} is not a valid code of words and symbols", AGAIN)
        read.append(GrammarRule(left, tuple(right), tuple(kind == WORD for kind in kinds)))
    found = tuple(read)
    order = list(dict.fromkeys(rule.lhs for rule in found))
    place = {symbol: n for n, symbol in enumerate(order)}
    places = [place[rule.lhs] for rule in found]
    probabilities = numbers(stored, TABLE + RULES, (len(found),))
    root = numbers(stored, TABLE + ROOT, (1, len(order)))[0]
    roots = meta["roots"]
    if not isinstance(roots, list) or len(set(roots)) != len(roots):
        raise StoreError("the stored roots are invalid", AGAIN)
    if len(set(found)) != len(found) or places != sorted(places):
        raise StoreError("the stored rules are invalid", AGAIN)
    if (probabilities < 0.0).any() or (root < 0.0).any():
        raise StoreError("some probabilities are negative", AGAIN)
    counts = numbers(stored, COUNTS, (len(found),)) if COUNTS in stored.arrays else None
    if counts is not None and not (counts > 0.0).all():
        raise StoreError("some counts of rules are not positive", AGAIN)
    tops = {symbol: float(root[place[symbol]]) for symbol in roots}
    rules = GrammarRules(found, probabilities, tops, counts)
    check_defined(rules)
    check_rules(rules)
    sums = np.add.reduceat(probabilities, rules.indptr[:-1])
    if (sums == 0.0).any() or (sums > MAX_SUM).any():
        raise StoreError("rules of a left side do not add up to one", AGAIN)
    own = BinarisedRules(rules)
    own.make_tables(probabilities, own.root)  # raises if the sum over unary chains diverges
    return rules
