"""`Grammar`: the interface of grammars, which has two implementations.

`softcount.grammar.dense` has grammars with every rule A → B C, `softcount.grammar.rule_based` those
with given rules, or the rules of a treebank. Both are models for the learning loop (families and an
E-step), and both implement the same inference on sentences, as `Grammar` declares.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from softcount.core import interrupt
from softcount.core.errors import DataError, LearnerError
from softcount.core.model import Model, check_possible
from softcount.core.types import (
    NOTHING_UNCOUNTED,
    Array,
    BoolArray,
    Counts,
    EStep,
    FloatArray,
    IntArray,
    Params,
    PosteriorRows,
    Stats,
    Uncounted,
)
from softcount.grammar.data import (
    Bracket,
    SpanConstraints,
    StoredTreeCorpus,
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
from softcount.hmm.data import (
    SentenceCorpus,
    SentenceShard,
    SetsOnDisk,
    StateSetBuilder,
    StateSets,
)
from softcount.kernels.threads import even_pieces, in_turn
from softcount.text.disk import ShardsOnAccess
from softcount.text.trees import Span, Tree
from softcount.text.vocabulary import Vocabulary

Part = TypeVar("Part")
ROOT, RULES, WORDS = "root", "rules", "words"
"""Names of the families of parameters."""
MAX_NODES, MAX_TRIES = 10_000, 1000
"""Maximum number of nodes of a generated tree, and of attempts to draw one."""
NEGLIGIBLE = 1e-9
"""Spans of smaller posteriors are not laid out."""
BATCH = 16
"""Number of sentences processed together by a kernel."""
IMPOSSIBLE = "has probability zero: no tree could have produced it"


def iterate_batches(first: int, last: int, size: int = BATCH) -> Iterator[tuple[int, int]]:
    """Yield the bounds of batches of sentences; raises if the user has interrupted."""
    for n in range(first, last, size):
        interrupt.check()
        yield n, min(n + size, last)


def map_pieces(
    run: Callable[[int, int], Part], lengths: IntArray, n_pieces: int, threads: int
) -> list[Part]:
    """Return the result of ``run(first, last)`` for each piece of the sentences, in order.

    Pieces have about equal work (a chart takes time cubic in the number of words), and do not
    depend on the number of threads, so neither do sums of counts.
    """
    bounds = even_pieces(lengths.astype(np.float64) ** 3, n_pieces).tolist()
    results: dict[int, Part] = {}

    def run_piece(piece: int) -> None:
        results[piece] = run(bounds[piece], bounds[piece + 1])

    in_turn(run_piece, len(bounds) - 1, threads)
    return [results[piece] for piece in range(len(bounds) - 1)]


class GrammarOptions(NamedTuple):
    """Options of learning and of chart parsing.

    ``rules``, ``words``  Dirichlet priors of the probabilities of rules, and of words
    ``frozen``            names of tables and of symbols whose probabilities are not learned
    ``dtype``             precision of the charts of dense grammars
    ``prune``             see `PCFG`
    """

    rules: float = 1.0
    words: float = 1.0
    frozen: Collection[str] = ()
    dtype: str = "float64"
    prune: float = 0.0

    def frozen_rows(self, table: str, symbols: Sequence[str]) -> BoolArray | None:
        """Return the mask of the frozen rows of a table; None: none of them."""
        frozen = np.array([table in self.frozen or symbol in self.frozen for symbol in symbols])
        return frozen if frozen.any() else None

    def check_frozen(self, tables: Collection[str], labels: Collection[str]) -> None:
        """Raise if a name in ``frozen`` is neither a table nor a symbol."""
        for name in self.frozen:
            if name not in tables and name not in labels:
                raise LearnerError(
                    f"frozen has {name!r}, which is neither a table nor a symbol",
                    f"tables are {', '.join(tables)}",
                )


class ExpectedBrackets(NamedTuple):
    """Expectations over the trees of a shard: see `softcount.grammar.estimators.GrammarPosterior`.

    ``brackets``  for each sentence
    ``rules``     in all sentences
    """

    brackets: list[dict[Span, float]]
    rules: dict[GrammarRule, float]


class Grammar(Model):
    """A grammar: p(tree, words) = p(root) Π p(right side | left side), over a tree's rules.

    For the learning loop it is a model: families of parameters by name, and `expect`, the E-step.
    For `PCFG` it also implements inference on sentences.
    """

    name = "PCFG"
    threads_inside = True
    remedy: ClassVar[str] = "look at its words and brackets"
    """Hint in errors about a sentence of probability zero."""
    labels: tuple[str, ...]
    """User-visible names of symbols, by number."""
    vocabulary: Vocabulary
    """Words known to the grammar."""
    n_nonterminals: int
    relations: UnaryRelations | None = None
    """Relations between symbols by unary rules; None: there are no unary rules."""
    bracket_cost: ClassVar[float] = 0.0
    """Minimum posterior of brackets in minimum Bayes risk trees."""

    # learning
    def make_corpus(
        self, given: SupervisedSentences, weights: FloatArray
    ) -> TreeCorpus | StoredTreeCorpus:
        """Make a corpus of sentences, with the known brackets and trees as constraints."""
        text, n_words = given.text, len(self.vocabulary.words)
        tokens: Any = text.tokens
        sets = SetsOnDisk(tokens) if given.is_on_disk else np.zeros(len(tokens), np.int32)
        known: Any = (sets, StateSets.all_of(1), weights, text.words[n_words:], n_words, False)
        plain = SentenceShard(np.arange(len(text)), tokens, text.indptr, *known)
        if given.is_on_disk:
            return StoredTreeCorpus(SentenceCorpus(plain, text.name), given, self.supervise)
        whole = self.supervise(plain, given)
        return TreeCorpus(SentenceCorpus(whole.text, text.name), whole.constraints, whole.trees)

    def supervise(self, text: SentenceShard, given: SupervisedSentences) -> TreeShard:
        """Make a shard of sentences in memory, with the known brackets and trees as constraints."""
        if given.knows_nothing:
            return TreeShard(text, SpanConstraints.unconstrained(self.n_nonterminals))
        sets, states = self._allowed_preterminals(given)
        constraints, trees = self._constrain_spans(given), self._count_known_entries(given)
        return TreeShard(replace(text, sets=sets, states=states), constraints, trees)

    def _allowed_preterminals(self, given: SupervisedSentences) -> tuple[IntArray, StateSets]:
        """Return the set of preterminals allowed at each token; by default, any."""
        return np.zeros(len(given.text.tokens), np.int32), StateSets.all_of(1)

    def _count_known_entries(self, given: SupervisedSentences) -> csr_matrix | None:
        """Count the entries of the tables that known trees use; None: trees only constrain."""
        return None

    def _constrain_spans(self, given: SupervisedSentences) -> SpanConstraints:
        """Return the constraints on spans that follow from known brackets and trees."""
        brackets = self._list_brackets(given)
        sets = StateSetBuilder(self.n_nonterminals)
        if not any(brackets):
            return SpanConstraints.unconstrained(self.n_nonterminals)
        numbers = []
        for n, known in zip(given.text.lengths.tolist(), brackets, strict=True):
            labels: dict[tuple[int, int], list[str]] = {}
            for label, start, end in known:
                if label is not None:
                    labels.setdefault((start, end), []).append(label)
            symbols = {
                (start, end): self._find_symbols(span_labels, one_word=end == start + 1)
                for (start, end), span_labels in labels.items()
            }
            numbers.append(span_sets(*self._list_spans(n, bool(known)), known, symbols, sets))
        sizes = np.array([len(sentence) for sentence in numbers])
        return SpanConstraints(np.concatenate(numbers), sets.build().allowed, sizes)

    def _list_brackets(self, given: SupervisedSentences) -> Sequence[Sequence[Bracket]]:
        """Return the brackets of each sentence that constrain its spans."""
        return given.brackets

    @abstractmethod
    def _list_spans(self, n: int, is_constrained: bool) -> tuple[IntArray, IntArray]:
        """Return starts and ends of the constrained spans of a sentence of n words."""

    @abstractmethod
    def _find_symbols(self, labels: Sequence[str], one_word: bool) -> Iterable[int]:
        """Return the symbols allowed over a span with these labels."""

    @abstractmethod
    def sample_derivations(
        self, params: Params, shard: TreeShard, stream: int, threads: int = 1
    ) -> DerivationCells:
        """Draw one derivation of each sentence from the posterior, as a list of cells.

        Draws depend only on the stream and the sentences' numbers.
        """

    # inference: functions of a shard, for engines
    @abstractmethod
    def log_probabilities(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> FloatArray:
        """Compute log p of each sentence."""

    @abstractmethod
    def trace_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> list[list[Tree]]:
        """Return trees of each sentence; an empty list if it has none.

        ``how``  fill="hard": the most probable tree; fill="sample": samples from the posterior
        """

    @abstractmethod
    def k_best_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None, *, k: int
    ) -> list[list[tuple[float, Tree]]]:
        """Return the k best trees of each sentence, each with log p(tree, sentence)."""

    @abstractmethod
    def span_posteriors(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> Iterator[SpanPosteriors]:
        """Yield the posteriors of symbols over spans, for each sentence."""

    def lay_out(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None
    ) -> PosteriorRows:
        """Return the posteriors of symbols over spans: a row per span that may be a constituent.

        They are soft in hard E-steps, too.
        """
        check_possible(
            shard.text.numbers, self.log_probabilities(params, shard, how), IMPOSSIBLE, self.remedy
        )
        parts = [np.zeros((0, len(self.labels)))]
        items, starts, ends = ([np.zeros(0, np.int64)] for _ in range(3))
        numbers = shard.text.numbers.tolist()
        found = self.span_posteriors(params, shard, how.threads)
        for number, spans in zip(numbers, found, strict=True):
            kept = spans.posteriors > NEGLIGIBLE
            pairs = np.stack([spans.starts[kept], spans.ends[kept]], axis=1)
            unique, row = np.unique(pairs, axis=0, return_inverse=True)
            table = np.zeros((len(unique), len(self.labels)))
            np.add.at(table, (row.reshape(-1), spans.symbols[kept]), spans.posteriors[kept])
            parts.append(table)
            items.append(np.full(len(unique), number))
            starts.append(unique[:, 0])
            ends.append(unique[:, 1])
        keys = {"start": np.concatenate(starts), "end": np.concatenate(ends)}
        return PosteriorRows(np.concatenate(parts), np.concatenate(items), keys)

    def minimum_risk_parses(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None, *, labelled: bool
    ) -> list[Tree | None]:
        """Return the minimum Bayes risk trees, by expected correct brackets (Goodman 1996)."""
        trees = []
        found = self.span_posteriors(params, shard, how.threads)
        for words, spans in zip(self.list_sentences(shard), found, strict=True):
            risk = (self.relations, labelled, self.bracket_cost)
            brackets = minimum_risk_brackets(len(words), spans, *risk)
            trees.append(make_tree(brackets, self.labels, words))
        return trees

    def expected_brackets(
        self, params: Params, shard: TreeShard, how: EStep, local: Any = None, *, threshold: float
    ) -> ExpectedBrackets:
        """Return the expected brackets of at least ``threshold``, and all expected rules."""
        labels, expected = self.labels, []
        for spans in self.span_posteriors(params, shard, how.threads):
            kept = spans.posteriors >= threshold
            places = zip(*(at[kept].tolist() for at in spans), strict=True)
            expected.append({(labels[a], i, j): posterior for i, j, a, posterior in places})
        return ExpectedBrackets(expected, self.expected_rules(params, shard, how.threads))

    @abstractmethod
    def expected_rules(
        self, params: Params, shard: TreeShard, threads: int = 1
    ) -> dict[GrammarRule, float]:
        """Return the expected number of uses of each rule in all sentences."""

    def list_sentences(self, shard: TreeShard) -> list[list[str]]:
        """Return the words of each sentence of a shard."""
        known, new = self.vocabulary.words, shard.text.new_words
        tokens, n = shard.text.observed.tolist(), len(known)
        words = [known[token] if token < n else new[token - n] for token in tokens]
        return [words[begin:end] for begin, end in pairwise(shard.text.indptr.tolist())]

    def name_params(self) -> dict[str, tuple[Sequence[Any], ...]]:
        """Return the names of rows and columns of tables."""
        return {}

    # rules and generation
    @abstractmethod
    def list_rules(self, params: Params, threshold: float) -> GrammarRules:
        """Return the rules of probability at least ``threshold``."""

    @abstractmethod
    def generate_once(self, params: Params, rng: np.random.Generator) -> Tree | None:
        """Draw a new tree; None if it grew beyond `MAX_NODES`."""

    def generate(self, params: Params, rng: np.random.Generator) -> Tree:
        """Draw a new tree of at most `MAX_NODES` nodes."""
        for _ in range(MAX_TRIES):
            tree = self.generate_once(params, rng)
            if tree is not None:
                return tree
        raise DataError(
            f"{MAX_TRIES} new trees had more than {MAX_NODES:,} nodes each: "
            "derivations of this grammar hardly ever terminate",
            "give rules that lead to words a higher probability",
        )

    @abstractmethod
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and metadata that a file must hold beside the tables."""

    # shared by both kinds
    def totals(self, shard: TreeShard) -> dict[str, float]:
        """Return known totals of counts: every non-empty sentence has one root."""
        text = shard.text
        return {ROOT: float(text.weights[np.diff(text.indptr) > 0].sum())}

    def blocks(self, shard: TreeShard, size: int) -> list[TreeShard]:
        """Split the sentences, in order, into blocks of ``size``."""
        whole = TreeCorpus(SentenceCorpus(shard.text), shard.constraints, shard.trees)
        return [whole.part(i, min(i + size, len(shard))) for i in range(0, len(shard), size)]

    def collapse(self, shards: Sequence[TreeShard], params: Params, stream: int) -> CollapsedTrees:
        """Make the collapsed sampler, starting from trees drawn given ``params``."""
        if isinstance(shards, ShardsOnAccess):
            raise LearnerError(
                "a collapsed sampler keeps a tree of every sentence, but the data are on disk",
                "use Gibbs() or VariationalBayes(), or give data in memory",
            )
        shard = TreeShard.concatenate(shards)
        check_collapsible(self.families, shard.text.weights)
        first = self.sample_derivations(params, shard, stream)
        check_possible(shard.text.numbers, first.log_p, IMPOSSIBLE, self.remedy)
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
        """Assemble the statistics of an E-step.

        ``log_p``     (sentences,): log p of each sentence
        ``attained``  (sentences,): the value attained by filling in the trees: log p of the best
                      tree, or of all trees, tempered
        """
        text = shard.text
        counted = text.weights > 0.0
        attained = log_p if how.fill == "sample" else attained / how.temper
        check_possible(text.numbers[counted], (log_p + attained)[counted], IMPOSSIBLE, self.remedy)
        weights = text.weights[counted]
        return Stats(
            counts,
            float(weights @ log_p[counted]),
            float(weights @ attained[counted]),
            float(weights.sum()),
            float(weights @ np.diff(text.indptr)[counted]),
            uncounted=uncounted,
        )
