"""`PCFG`: probabilistic context-free grammars as users call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from softcount._version import __version__
from softcount.core import store
from softcount.core.errors import LearnerError, StoreError, brief
from softcount.core.estimator import Estimator, FitOptions, all_or_nothing
from softcount.core.parameters import (
    check_number,
    check_whole,
    demand_prior,
    generator,
    not_smoothed,
    smoothings,
)
from softcount.core.store import AGAIN
from softcount.core.types import Array, EStep, FloatArray, Params
from softcount.core.warnings import warn_of_impossible
from softcount.grammar.core import RULES, WORDS, Grammar, GrammarOptions, Query
from softcount.grammar.data import SupervisedSentences, TreeCorpus
from softcount.grammar.dense import DenseGrammar, DenseSymbols
from softcount.grammar.parameters import PCFGParameters
from softcount.grammar.rule_based import PruningLoss, RuleGrammar, annotate, read_stored_rules
from softcount.grammar.rules import GrammarRules, check_defined, count_rules, parse_rules
from softcount.hmm.data import sentence_weights
from softcount.text.treebank import lowercase
from softcount.text.treebank import trees as as_trees
from softcount.text.trees import Span, Tree

TREEBANK = "treebank"
"""Instead of rules: those of the trees that are learned from."""
METHODS = ("viterbi", "brackets", "labelled")
NO_TREE = (
    "Such sentences have no tree: no rules derive them, or one of their words is in no rule. More "
    "rules, smoothing, or unknown=True allow more"
)
UNSEEN, JITTER = 0.1, 0.1
"""Where labels say how to begin: how much of a row is left to what was not seen, and by how much
rows differ at random."""


class GrammarPosterior(NamedTuple):
    """What is expected of sentences.

    ``brackets``  for each sentence (label, start, end) → how many are expected there; those of
                  one word included
    ``rules``     rule, as a text → how often all sentences are expected to use it
    """

    brackets: list[dict[Span, float]]
    rules: dict[str, float]


class PCFG(PCFGParameters, store.Saveable, Estimator):
    """A probabilistic context-free grammar: p(tree) is the product of its rules' probabilities.

    p(tree, words) = p(root) Π p(right side | left side), over all rules of the tree. Probabilities
    are learned by the inside–outside algorithm (Baker 1979; Lari & Young 1990).

    There are two ways to say the grammar. ``PCFG(n_components, n_preterminals)`` has every rule
    A → B C and every preterminal may be every word (Chomsky normal form): it is for finding
    structure. `PCFG.from_rules` and `PCFG.from_treebank` have the rules that they are given, of any
    length. Both learn from sentences, from partly bracketed ones, and from trees.

    ``n_components``    how many nonterminals, the symbols of constituents; None: as many as labels
                        are given
    ``n_preterminals``  how many preterminals, the symbols of words; None: as many as trees have
    ``rules``           the grammar as a text, or `GrammarRules`; "treebank": all that the trees
                        have which `fit` is given; None: all rules, by the numbers above
    ``smoothing``       added to every count, and to the prior of learners that have one; a mapping
                        tells "rules" from "words"
    ``frozen``          what stays as it begins: names of tables ("root", "rules", "words"), or of
                        symbols, whose rules stay
    ``unknown``         whether words that were never seen may be parsed: by how words are used
                        that were seen once. Grammars given as texts know no such words
    ``horizontal``, ``vertical``  of treebanks: see `PCFG.from_treebank`
    ``prune``           rule-based grammars only: symbols that a coarse grammar finds less probable
                        than this are left out of charts; a sentence that is left without a tree is
                        parsed again in full. `pruning_loss` says what is lost
    ``lowercase``       whether words are turned into lower case
    ``dtype``           "float32": less exact E-steps of dense grammars, in less time
    ``init``            "random"; tables as ``params_`` has them; rule-based grammars begin with
                        their own probabilities, if nothing else is said ("random", "uniform")

    >>> toy = PCFG.from_rules("S -> NP VP\\nNP -> 'she' | 'fish'\\nVP -> 'eats' NP | 'sleeps'")
    >>> print(toy.predict(["she eats fish"])[0])
    (S (NP she) (VP eats (NP fish)))
    >>> model = PCFG(2, 3, random_state=1).fit(["a dog barks", "the dog sleeps", "a cat sleeps"])
    >>> len(model.predict(["the cat barks"])[0].words())
    3
    """

    core_: Grammar
    raw_params_: Params

    # rule-based grammars
    @classmethod
    def from_rules(
        cls, rules: str | GrammarRules, start: str | None = None, **settings: Any
    ) -> Self:
        """A grammar from a text of rules: see `softcount.grammar.rules`.

        ``start``     the root; None: what the rules say, or the left side of the first
        ``settings``  see `PCFG`

        It can be used as it is, and `fit` begins with its probabilities.
        """
        read = parse_rules(rules, start) if isinstance(rules, str) else rules
        if isinstance(read, GrammarRules) and start is not None:
            read = replace(read, root={start: 1.0})
        return cls(rules=read, **settings)._use_as_given()

    @classmethod
    def from_treebank(cls, trees: Any, sample_weight: Any = None, **settings: Any) -> Self:
        """A grammar of all rules that trees have, by how often they have them.

        ``trees``          trees, texts in Penn brackets, or None, which is skipped
        ``sample_weight``  how often each tree counts
        ``horizontal``     how many neighbours to the left a part of a long right side knows; None:
                           all, right sides stay whole
        ``vertical``       how many labels a symbol consists of: 1: its own; 2: that of the
                           constituent above, too (NP below S is not NP below VP). See
                           `softcount.text.trees`; users see plain labels
        ``settings``       these and others: see `PCFG`

        >>> model = PCFG.from_treebank(["(S (NP it) (VP rains))", "(S (NP he) (VP (VB snores)))"])
        >>> print(model.predict(["he rains"])[0])
        (S (NP he) (VP rains))
        """
        model = cls(rules=TREEBANK, **settings)
        model.rules = model._count_rules(trees, sample_weight)
        return model._use_as_given()

    def _count_rules(self, trees: Any, sample_weight: Any) -> GrammarRules:
        """The rules of trees, annotated as the parameters say."""
        self._check_settings()
        some = as_trees([] if trees is None else trees)
        weights = None  # however small they are: those of rules are scaled by the largest
        if sample_weight is not None:
            weights = sentence_weights(sample_weight, len(some), least=0.0)
        if self.lowercase:
            some = some.changed(lowercase)
        some = some.changed(lambda tree: annotate(tree, self.horizontal, self.vertical))
        return count_rules(some, weights)

    def _use_as_given(self) -> Self:
        """Be ready for use, with the rules' own probabilities."""
        self._check_settings()
        grammar = self._make_rule_grammar(self.rules)
        self.core_, self.raw_params_ = grammar, grammar.start()
        self.signature_ = f"softcount {__version__}: PCFG, rules as they were given"
        self.n_features_in_ = max(len(grammar.vocabulary.words), 1)
        return self

    def _make_rule_grammar(self, given: Any) -> RuleGrammar:
        rules = parse_rules(given) if isinstance(given, str) else given
        if not isinstance(rules, GrammarRules):
            raise LearnerError(f"rules={brief(self.rules)}", "give a text, or use PCFG.from_rules")
        check_defined(rules)
        around = (self.horizontal, self.vertical)
        return RuleGrammar(rules, self._options(), self.unknown, *around)

    # learning
    def fit(  # type: ignore[override]  # trees come with the sentences
        self,
        sentences: Any,
        trees: Any = None,
        brackets: Any = None,
        sample_weight: Any = None,
        *,
        init: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn from sentences.

        ``sentences``      lists of words, texts (cut at white space), or None: those of the trees
        ``trees``          for each sentence its tree, or None. In a dense grammar, constituents of
                           more than two parts are filled in by any nonterminals, and chains over
                           one span are one nonterminal: any of the chain's
        ``brackets``       for each sentence None, or constituents that no other may cross: (start,
                           end) or (label, start, end), end being the first word after it; or a
                           tree, whose labels are not looked at. A span that is given with labels
                           can have no others; in a dense grammar, one word says nothing
                           (Pereira & Schabes 1992)
        ``sample_weight``  how often each sentence counts

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(sentences, trees, brackets, sample_weight)
            return self._learn(core, corpus, init, **options)

    def _bind(
        self, sentences: Any, trees: Any = None, brackets: Any = None, sample_weight: Any = None
    ) -> tuple[Grammar, TreeCorpus]:
        """The grammar and the corpus."""
        self._check_settings()
        grammar: Grammar
        if self.rules is None:
            given = SupervisedSentences.read(sentences, trees, brackets, None, self.lowercase)
            symbols = DenseSymbols.choose(given, self.n_components, self.n_preterminals)
            given.check_not_empty()
            grammar = DenseGrammar.create(symbols, self._options())
        else:
            counted = isinstance(self.rules, str) and self.rules == TREEBANK
            rules = self._count_rules(trees, sample_weight) if counted else self.rules
            grammar = self._make_rule_grammar(rules)
            known = (grammar.vocabulary, self.lowercase)
            given = SupervisedSentences.read(sentences, trees, brackets, *known)
            if grammar.unknown is None:
                given.check_words_known(grammar.vocabulary.words)
            given.check_not_empty()
        self.n_features_in_ = max(len(grammar.vocabulary.words), 1)
        weights = sentence_weights(sample_weight, len(given.text))
        return grammar, grammar.make_corpus(given, weights)

    def _bind_more(self, core: Grammar, data: Any) -> TreeCorpus:
        return self._read(core, data)[1]

    def _read(
        self, grammar: Grammar, sentences: Any, brackets: Any = None
    ) -> tuple[SupervisedSentences, TreeCorpus]:
        """More sentences, in the words that the grammar knows."""
        known = (grammar.vocabulary, self.lowercase)
        given = SupervisedSentences.read(sentences, None, brackets, *known)
        return given, grammar.make_corpus(given, sentence_weights(None, len(given.text)))

    def _options(self) -> GrammarOptions:
        rules, words = smoothings(self.smoothing, RULES, WORDS)
        # adding a to every count gives the mode under 1 + a, and the mean under a
        shift = float(demand_prior(self._learner, min(rules, words)))
        frozen: Any = () if self.frozen is None else self.frozen
        one = isinstance(frozen, str) or not isinstance(frozen, Iterable)
        names = [frozen] if one else list(frozen)
        if not all(isinstance(name, str) for name in names):
            raise LearnerError(f"frozen={brief(self.frozen)}", "give names of tables or symbols")
        return GrammarOptions(rules + shift, words + shift, names, self.dtype, self.prune)

    def _lacks_sampler(self) -> str:
        return ""

    def _lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, RULES, WORDS)

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("n_components", "n_preterminals"):
            if getattr(self, name) is not None and self.rules is not None:
                raise LearnerError(f"{name} and rules are given", "leave one of them out")
        if self.rules is None and (self.horizontal is not None or self.vertical != 1):
            raise LearnerError(
                "horizontal and vertical are about rules of trees", "use PCFG.from_treebank"
            )

    def _start_values(self, core: Grammar, corpus: TreeCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(init)
        if init is None and isinstance(core, RuleGrammar):
            return core.start()
        if init is None and corpus.has_labels:
            return lambda rng: _start_from_labels(core, corpus, rng)
        families = core.families
        way = "random" if init is None else init
        if isinstance(way, str) and way == "random":
            return lambda rng: {name: family.random(rng) for name, family in families.items()}
        if isinstance(way, str) and way == "uniform" and isinstance(core, RuleGrammar):
            return {name: family.uniform() for name, family in families.items()}
        hint = "random (rules: also uniform), or tables as params_ has them"
        raise LearnerError(f"init={brief(init)} is not known here", hint)

    def _after_fit(self, corpus: TreeCorpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self._set_unseen_words()

    def _set_unseen_words(self) -> None:
        if isinstance(self.core_, DenseGrammar):
            self.core_.set_unseen_words(np.asarray(self.raw_params_[WORDS]), self.unknown)

    # trees of sentences
    def _query(self, sentences: Any, brackets: Any = None) -> Query:
        self._require_fit()
        given, corpus = self._read(self.core_, sentences, brackets)
        return Query(self.raw_params_, corpus.everything, given.text, self._threads)

    def predict(
        self, sentences: Any, *, brackets: Any = None, method: str = "viterbi"
    ) -> list[Tree | None]:
        """The tree of each sentence; None if it is empty, or no tree could have produced it, which
        an `ImpossibleWarning` counts.

        ``brackets``  what is known of the trees already; see `PCFG.fit`
        ``method``    "viterbi": the most probable tree; or the minimum Bayes risk tree (Goodman
                      1996): "brackets": that of the most expected brackets, whatever their labels;
                      "labelled": of the most expected labelled ones
        """
        if method not in METHODS:
            raise LearnerError(f"method={brief(method)} is unknown", f"choose {METHODS}")
        query = self._query(sentences, brackets)
        if method == "viterbi":
            trees = [some[0] if some else None for some in self.core_.trace_parses(query)]
        else:
            trees = self.core_.minimum_risk_parses(query, labelled=method == "labelled")
        _warn_of_missing(query, [tree is None for tree in trees])
        return trees

    def k_best(
        self, sentences: Any, k: int = 10, *, brackets: Any = None
    ) -> list[list[tuple[float, Tree]]]:
        """For each sentence the k most probable trees (fewer, if there are), the best first.

        Each comes with log p(tree, sentence). In parsing, words of treebank grammars may be what
        they never were (see `softcount.grammar.rule_tables`), which `score` knows nothing of: a
        tree may be more probable than the sentence that it says.
        """
        check_whole("k", k)
        query = self._query(sentences, brackets)
        found = self.core_.k_best_parses(query, k)
        _warn_of_missing(query, [not some for some in found])
        return found

    def sample_trees(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, brackets: Any = None
    ) -> list[list[Tree]]:
        """n trees for each sentence, drawn from their posterior; none, if there is no tree."""
        check_whole("n", n)
        stream = int(generator(random_state).integers(2**63))
        query = self._query(sentences, brackets)
        found = self.core_.trace_parses(query, n, stream)
        _warn_of_missing(query, [not some for some in found])
        return found

    def posterior(
        self, sentences: Any, *, brackets: Any = None, threshold: float = 1e-6
    ) -> GrammarPosterior:
        """Expected brackets of each sentence, and expected rules of all; from ``threshold`` on.

        Sentences that no tree could have produced have no brackets, and count no rules.
        """
        check_number("threshold", threshold)
        query = self._query(sentences, brackets)
        labels = self.core_.labels
        found: list[dict[Span, float]] = []
        for spans in self.core_.span_posteriors(query):
            kept = spans.posteriors >= threshold
            places = zip(*(at[kept].tolist() for at in spans), strict=True)
            found.append({(labels[a], i, j): posterior for i, j, a, posterior in places})
        counts = self.core_.expected_rules(query)
        rules = {str(rule): n for rule, n in counts.items() if n >= threshold}
        return GrammarPosterior(found, rules)

    def score_samples(self, sentences: Any, *, brackets: Any = None) -> FloatArray:
        """log p of each sentence (in trees that agree with the brackets); −inf if it cannot be."""
        query = self._query(sentences, brackets)
        return self.core_.log_probabilities(query)

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean log p of a sentence."""
        return float(self.score_samples(sentences).mean())

    def perplexity(self, sentences: Any) -> float:
        """exp of the negative log-likelihood per word; infinite if a sentence cannot come about."""
        query = self._query(sentences)
        log_p = self.core_.log_probabilities(query)
        return float(np.exp(-log_p.sum() / max(query.shard.text.n_tokens, 1)))

    def expected_counts(self, sentences: Any, *, brackets: Any = None) -> dict[str, Any]:
        """Expected counts of all tables: what an E-step finds."""
        query = self._query(sentences, brackets)
        how = EStep(threads=query.threads)
        return dict(self.core_.expect(query.params, query.shard, how).counts)

    def pruning_loss(self, sentences: Any) -> PruningLoss:
        """What these sentences lose by ``prune``: they are parsed with it and without it."""
        query = self._query(sentences)
        if not isinstance(self.core_, RuleGrammar):
            raise LearnerError(
                "nothing is ever left out of a dense grammar", "ask a grammar of rules"
            )
        return self.core_.pruning_loss(query)

    # what was learned
    @property
    def params_(self) -> dict[str, Array]:
        """The learned tables, by name; they may be given back as ``init``."""
        self._require_fit()
        return {name: np.array(table) for name, table in self.raw_params_.items()}

    @property
    def labels_(self) -> tuple[str, ...]:
        """The symbols of trees: nonterminals, then preterminals, if these are told apart."""
        self._require_fit()
        return self.core_.labels

    def grammar(self, threshold: float = 1e-4) -> GrammarRules:
        """The rules whose probability is at least ``threshold``, scaled to add up to one.

        Written as a text, `PCFG.from_rules` reads them again.
        """
        self._require_fit()
        check_number("threshold", threshold)
        return self.core_.list_rules(self.raw_params_, threshold)

    def generate(self, n: int = 1, random_state: Any = 0) -> list[Tree]:
        """New trees."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = generator(random_state)
        return [self.core_.generate(self.raw_params_, rng) for _ in range(n)]

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return self.core_.stored()

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        model = super().restore(stored, **given)
        model._set_unseen_words()
        return model

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> Grammar:
        symbols = DenseSymbols.from_stored(stored)
        if symbols is not None:
            self._check_settings()
            if self.rules is not None:
                raise StoreError("there are tables of a dense grammar, and rules", AGAIN)
            return DenseGrammar.create(symbols, self._options())
        learned = read_stored_rules(stored)
        if not isinstance(self.rules, str):  # a text of rules stays what learning begins with
            self.rules = learned
        self._check_settings()
        grammar = self._make_rule_grammar(learned if self.rules == TREEBANK else self.rules)
        own = grammar.rules
        if own.rules != learned.rules or set(own.root) != set(learned.root):
            raise StoreError("the rules are not those of the settings", AGAIN)
        return grammar


def _warn_of_missing(query: Query, missing: Sequence[bool]) -> None:
    """Warn of sentences that have words, but no tree."""
    text = query.text
    both = zip(missing, text.lengths.tolist(), strict=True)
    items = [n for n, (is_missing, length) in enumerate(both) if is_missing and length]
    first = text.name(items[0]) if items else ""
    warn_of_impossible(items, len(text), "sentences", first, NO_TREE, stacklevel=3)


def _start_from_labels(
    core: Grammar, corpus: TreeCorpus, rng: np.random.Generator
) -> dict[str, Array]:
    """What labels say: counts of all sentences, all trees that agree with them being as likely."""
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, corpus.everything, EStep()).counts
    tables = {}
    for name, family in core.families.items():
        seen = np.asarray(counts[name], dtype=float)
        unseen = (UNSEEN * seen.sum(axis=1, keepdims=True) + 1.0) * family.uniform()
        rows = (seen + unseen) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
        tables[name] = rows / rows.sum(axis=1, keepdims=True)
    return tables
