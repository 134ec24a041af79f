"""What a grammar is to the rest: one interface, of which there are two implementations.

`softcount.grammar.dense` has grammars with every rule A → B C, `softcount.grammar.rule_based` those
of given rules, or of a treebank. Both are models for the loop (families and an E-step), and both
answer the same questions about sentences: `Grammar` says which.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError
from softcount.core.model import Model, demand_possible
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
from softcount.grammar.data import (
    Bracket,
    SpanConstraints,
    SupervisedSentences,
    TreeCorpus,
    TreeShard,
    span_sets,
)
from softcount.grammar.gibbs import CollapsedTrees, DerivationCells, check_collapsible
from softcount.grammar.parsing import (
    SpanPosteriors,
    UnaryRelations,
    make_tree,
    minimum_risk_brackets,
)
from softcount.grammar.rules import GrammarRule, GrammarRules
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSetBuilder, StateSets
from softcount.kernels.threads import even_pieces, in_turn
from softcount.text.sequences import Sequences
from softcount.text.trees import Tree
from softcount.text.vocabulary import Vocabulary

Part = TypeVar("Part")
ROOT, RULES, WORDS = "root", "rules", "words"
"""Names of families."""
MAX_NODES, MAX_TRIES = 10_000, 1000
"""The most nodes of a generated tree, and how often larger ones are drawn again."""
BATCH = 16
"""The number of sentences that go into a kernel together."""
IMPOSSIBLE = "cannot come about: no tree could have produced it"


def iterate_batches(first: int, last: int, size: int = BATCH) -> Iterator[tuple[int, int]]:
    """Of some sentences, those that go into a kernel together; ends if the user has interrupted."""
    for n in range(first, last, size):
        interrupt.check()
        yield n, min(n + size, last)


def map_pieces(
    run: Callable[[int, int], Part], lengths: IntArray, n_pieces: int, threads: int
) -> list[Part]:
    """What ``run(first, last)`` gives for each piece of the sentences, in their order.

    Pieces are of about the same work, a chart taking the cube of the words, and do not depend on
    the number of threads: sums of counts are the same for any of them.
    """
    bounds = even_pieces(lengths.astype(np.float64) ** 3, n_pieces).tolist()
    found: dict[int, Part] = {}

    def run_piece(piece: int) -> None:
        found[piece] = run(bounds[piece], bounds[piece + 1])

    in_turn(run_piece, len(bounds) - 1, threads)
    return [found[piece] for piece in range(len(bounds) - 1)]


class GrammarOptions(NamedTuple):
    """How the tables of a grammar are learned, and its charts filled.

    ``rules``, ``words``  Dirichlet priors of the probabilities of rules, and of words
    ``frozen``            names of tables, and of symbols, whose probabilities are not learned
    ``dtype``             of the charts of dense grammars
    ``prune``             see `PCFG`
    """

    rules: float = 1.0
    words: float = 1.0
    frozen: Collection[str] = ()
    dtype: str = "float64"
    prune: float = 0.0

    def frozen_rows(self, table: str, symbols: Sequence[str]) -> BoolArray | None:
        """Which rows of a table are frozen; None: none of them."""
        frozen = np.array([table in self.frozen or symbol in self.frozen for symbol in symbols])
        return frozen if frozen.any() else None

    def check_frozen(self, tables: Collection[str], labels: Collection[str]) -> None:
        """Raise an error if there is no table or symbol of a name that is to be frozen."""
        for name in self.frozen:
            if name not in tables and name not in labels:
                raise LearnerError(
                    f"there is neither a table nor a symbol {name!r} to be frozen",
                    f"tables are {', '.join(tables)}",
                )


class Query(NamedTuple):
    """Sentences, and the parameters that an answer about them is wanted for."""

    params: Params
    shard: TreeShard
    text: Sequences
    threads: int


class Grammar(Model):
    """p(tree, words) = p(root) Π p(right side | left side), over all rules of the tree.

    To the loop it is a model: families of parameters, by name, and `expect`, the E-step. To `PCFG`
    it is what says something about sentences.
    """

    name = "PCFG"
    threads_inside = True
    remedy: ClassVar[str] = "look at its words and brackets"
    """What to do about a sentence that is impossible."""
    labels: tuple[str, ...]
    """Names of symbols, by their numbers, as users see them."""
    vocabulary: Vocabulary
    """Words that have numbers."""
    n_nonterminals: int
    relations: UnaryRelations | None = None
    """What unary rules allow; None: there are none."""
    bracket_cost: ClassVar[float] = 0.0
    """What brackets of minimum risk trees must be expected at least."""

    # learning
    def make_corpus(self, given: SupervisedSentences, weights: FloatArray) -> TreeCorpus:
        """Sentences as a corpus, with what is known of their trees as constraints."""
        text = given.text
        new = text.words[len(self.vocabulary.words) :]
        known = (*self._allowed_preterminals(given), weights, new)
        shard = SentenceShard(np.arange(len(text)), text.tokens, text.indptr, *known)
        constraints, trees = self._constrain_spans(given), self._count_known_entries(given)
        return TreeCorpus(SentenceCorpus(shard, text.name), constraints, trees)

    def _allowed_preterminals(self, given: SupervisedSentences) -> tuple[IntArray, StateSets]:
        """For each token the set of preterminals that it may have; by default any."""
        return np.zeros(len(given.text.tokens), np.int32), StateSets.all_of(1)

    def _count_known_entries(self, given: SupervisedSentences) -> csr_matrix | None:
        """How often known trees use each entry of the tables; None: they are constraints alone."""
        return None

    def _constrain_spans(self, given: SupervisedSentences) -> SpanConstraints:
        """Which symbols spans may have, by what is known of the trees."""
        brackets = self._list_brackets(given)
        sets = StateSetBuilder(self.n_nonterminals)
        if not any(brackets):
            return SpanConstraints.unconstrained(self.n_nonterminals)
        found = []
        for n, some in zip(given.text.lengths.tolist(), brackets, strict=True):
            labels: dict[tuple[int, int], list[str]] = {}
            for label, start, end in some:
                if label is not None:
                    labels.setdefault((start, end), []).append(label)
            symbols = {
                (start, end): self._find_symbols(own, one_word=end == start + 1)
                for (start, end), own in labels.items()
            }
            found.append(span_sets(*self._list_spans(n, bool(some)), some, symbols, sets))
        sizes = np.array([len(own) for own in found])
        return SpanConstraints(np.concatenate(found), sets.build().allowed, sizes)

    def _list_brackets(self, given: SupervisedSentences) -> Sequence[Sequence[Bracket]]:
        """The brackets of each sentence that constrain its spans."""
        return given.brackets

    @abstractmethod
    def _list_spans(self, n: int, is_constrained: bool) -> tuple[IntArray, IntArray]:
        """Starts and ends of the spans of a sentence of n words that have a set of symbols."""

    @abstractmethod
    def _find_symbols(self, labels: Sequence[str], one_word: bool) -> Iterable[int]:
        """The symbols that a span with these labels may have."""

    @abstractmethod
    def sample_derivations(
        self, params: Params, shard: TreeShard, stream: int, threads: int = 1
    ) -> DerivationCells:
        """One derivation of each sentence, drawn from the posterior, as a list of cells.

        Draws depend on the stream and on the sentences' numbers alone.
        """

    # what it says of sentences
    @abstractmethod
    def log_probabilities(self, query: Query) -> FloatArray:
        """log p of each sentence."""

    @abstractmethod
    def trace_parses(self, query: Query, samples: int = 0, stream: int = 0) -> list[list[Tree]]:
        """Trees of each sentence, none if there is none: samples from their posterior.

        ``samples``  how many; 0: the most probable tree instead
        """

    @abstractmethod
    def k_best_parses(self, query: Query, k: int) -> list[list[tuple[float, Tree]]]:
        """The k best trees of each sentence, each with log p(tree, sentence)."""

    @abstractmethod
    def span_posteriors(self, query: Query) -> Iterator[SpanPosteriors]:
        """Those of each sentence."""

    def minimum_risk_parses(self, query: Query, labelled: bool) -> list[Tree | None]:
        """The minimum Bayes risk trees: those of the most expected brackets (Goodman 1996)."""
        trees = []
        for n, spans in enumerate(self.span_posteriors(query)):
            words = query.text.sentence(n)
            how = (self.relations, labelled, self.bracket_cost)
            brackets = minimum_risk_brackets(len(words), spans, *how)
            trees.append(make_tree(brackets, self.labels, words))
        return trees

    @abstractmethod
    def expected_rules(self, query: Query) -> dict[GrammarRule, float]:
        """How often all sentences together are expected to use each rule."""

    # what was learned
    @abstractmethod
    def list_rules(self, params: Params, threshold: float) -> GrammarRules:
        """Rules whose probability is at least ``threshold``."""

    @abstractmethod
    def generate_once(self, params: Params, rng: np.random.Generator) -> Tree | None:
        """A new tree; None if it grew beyond `MAX_NODES`."""

    def generate(self, params: Params, rng: np.random.Generator) -> Tree:
        """A new tree of at most `MAX_NODES` nodes."""
        for _ in range(MAX_TRIES):
            tree = self.generate_once(params, rng)
            if tree is not None:
                return tree
        raise DataError(
            f"{MAX_TRIES} new trees had more than {MAX_NODES:,} nodes each: "
            "the grammar does not come to an end",
            "give rules that lead to words a higher probability",
        )

    @abstractmethod
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and facts that a file must hold beside the tables."""

    # what both kinds share
    def totals(self, shard: TreeShard) -> dict[str, float]:
        """Every sentence that is not empty has a root."""
        text = shard.text
        return {ROOT: float(text.weights[np.diff(text.indptr) > 0].sum())}

    def blocks(self, shard: TreeShard, size: int) -> list[TreeShard]:
        """The sentences in their order, ``size`` at a time."""
        whole = TreeCorpus(SentenceCorpus(shard.text), shard.constraints, shard.trees)
        numbers = np.arange(len(shard))
        return [whole.select(numbers[i : i + size]) for i in range(0, len(shard), size)]

    def collapse(self, shards: Sequence[TreeShard], params: Params, stream: int) -> CollapsedTrees:
        """The sampler with all tables integrated out, beginning with trees drawn at ``params``."""
        (shard,) = shards
        check_collapsible(self.families, shard.text.weights)
        first = self.sample_derivations(params, shard, stream)
        demand_possible(shard.text.numbers, first.log_p, IMPOSSIBLE, self.remedy)
        return CollapsedTrees(self, shard, params, first)

    def _make_stats(
        self,
        shard: TreeShard,
        counts: dict[str, Counts],
        log_p: FloatArray,
        attained: FloatArray,
        how: EStep,
        uncounted: Uncounted = NOTHING_UNCOUNTED,
    ) -> Stats:
        """What an E-step found.

        ``log_p``     (sentences,): log p of each
        ``attained``  (sentences,): what filling in the trees attained: log p of the best tree, or
                      of all trees, tempered
        """
        text = shard.text
        counted = text.weights > 0.0
        attained = log_p if how.fill == "sample" else attained / how.temper
        demand_possible(text.numbers[counted], (log_p + attained)[counted], IMPOSSIBLE, self.remedy)
        weights = text.weights[counted]
        return Stats(
            counts,
            float(weights @ log_p[counted]),
            float(weights @ attained[counted]),
            float(weights.sum()),
            float(weights @ np.diff(text.indptr)[counted]),
            uncounted=uncounted,
        )
