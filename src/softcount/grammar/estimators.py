"""`PCFG`: the estimator of probabilistic context-free grammars."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self, TypeVar, Unpack

import numpy as np

from softcount._version import __version__
from softcount.core import store
from softcount.core.display import NamedTables
from softcount.core.errors import LearnerError, StoreError, brief
from softcount.core.estimator import (
    Estimator,
    FitOptions,
    all_or_nothing,
    name_impossible_items,
)
from softcount.core.fit import open_session
from softcount.core.folder import resumable
from softcount.core.parameters import (
    check_number,
    check_whole,
    generator,
    not_smoothed,
    require_prior,
    smoothings,
)
from softcount.core.store import AGAIN
from softcount.core.types import Array, EStep, FloatArray, Params, PosteriorRows
from softcount.core.warnings import warn_of_impossible
from softcount.grammar.core import RULES, WORDS, Grammar, GrammarOptions
from softcount.grammar.data import StoredTreeCorpus, SupervisedSentences, TreeCorpus
from softcount.grammar.dense import DenseGrammar, DenseSymbols
from softcount.grammar.parameters import PCFGParameters
from softcount.grammar.rule_based import (
    PruningLoss,
    RuleGrammar,
    add_pruning_losses,
    annotate,
    read_stored_rules,
)
from softcount.grammar.rules import (
    GrammarRule,
    GrammarRules,
    check_defined,
    count_rules,
    parse_rules,
)
from softcount.hmm.data import sentence_weights
from softcount.text.sequences import Sequences
from softcount.text.treebank import lowercase
from softcount.text.treebank import trees as as_trees
from softcount.text.trees import Span, Tree

T = TypeVar("T")
AnyCorpus = TreeCorpus | StoredTreeCorpus
TREEBANK = "treebank"
"""Value of ``rules`` that stands for the rules of the training trees."""
METHODS = ("viterbi", "brackets", "labelled")
NO_TREE = (
    "Such sentences get no tree: no rules derive them, or one of their words is in no rule. Try "
    "more rules, smoothing, or unknown=True"
)
UNSEEN, JITTER = 0.1, 0.1
"""When initialising from labels: fraction of a row reserved for unseen outcomes, and relative size
of the random noise."""


class GrammarPosterior(NamedTuple):
    """Posterior expectations over the trees of sentences.

    ``brackets``  for each sentence, (label, start, end) → expected number of such brackets,
                  including those of a single word
    ``rules``     rule, as text → expected number of uses in all sentences
    """

    brackets: list[dict[Span, float]]
    rules: dict[str, float]


class PCFG(PCFGParameters, store.SaveableTables, Estimator):
    """A probabilistic context-free grammar: p(tree) is the product of its rule probabilities.

    p(tree, words) = p(root) Π p(right side | left side), over all rules of the tree. Probabilities
    are learned by the inside–outside algorithm (Baker 1979; Lari & Young 1990).

    There are two kinds of grammar. A dense grammar, ``PCFG(n_components, n_preterminals)``, has
    every rule A → B C and every rule preterminal → word (Chomsky normal form): it is for grammar
    induction. A rule-based grammar, from `PCFG.from_rules` or `PCFG.from_treebank`, has given rules
    of any length. Both learn from sentences, from partly bracketed sentences, and from trees.

    ``n_components``    number of nonterminals, the symbols of constituents; None: the number of
                        given labels
    ``n_preterminals``  number of preterminals, the symbols of words; None: the number in the trees
    ``rules``           the grammar as text or `GrammarRules`; "treebank": all rules of the trees
                        given to `fit`; None: a dense grammar of the sizes above
    ``smoothing``       pseudo-count added to every count; for learners with a prior, the Dirichlet
                        parameter. A mapping gives "rules" and "words" separate values
    ``frozen``          names of tables ("root", "rules", "words") or of symbols whose probabilities
                        are kept at their initial values
    ``unknown``         whether to parse unseen words, modelled by words seen once. Not available
                        for grammars given as text, which have no counts
    ``horizontal``, ``vertical``  for treebanks: see `PCFG.from_treebank`
    ``prune``           rule-based grammars only: chart symbols with a posterior below this under a
                        coarse grammar are pruned; a sentence that is left without a tree is parsed
                        again in full. `pruning_loss` measures the loss
    ``lowercase``       whether to lower-case all words
    ``dtype``           precision of E-steps of dense grammars; "float32" is less exact and faster
    ``init``            "random"; or tables in the format of ``params_``; for rule-based grammars
                        also "uniform". None: the rules' own probabilities, or for dense grammars,
                        from given labels, else random

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
        """Make a grammar from the text of its rules: see `softcount.grammar.rules`.

        ``start``     the root symbol; None: that given in the rules, else the first left side
        ``settings``  see `PCFG`

        It can be used as it is, and `fit` starts from its probabilities.
        """
        read = parse_rules(rules, start) if isinstance(rules, str) else rules
        if isinstance(read, GrammarRules) and start is not None:
            read = replace(read, root={start: 1.0})
        return cls(rules=read, **settings)._use_as_given()

    @classmethod
    def from_treebank(cls, trees: Any, sample_weight: Any = None, **settings: Any) -> Self:
        """Make a treebank grammar: all rules of the trees, by relative frequency.

        ``trees``          trees, strings in Penn brackets, or None, which is skipped; may be on
                           disk (`softcount.text.treebank.build_trees`), and is read once
        ``sample_weight``  weight of each tree
        ``horizontal``     order of horizontal Markovisation: number of left siblings that a part of
                           a binarised right side is conditioned on; None: all, rules stay whole
        ``vertical``       order of vertical Markovisation: number of labels in a symbol. 1: its
                           own; 2: also its parent's (NP below S is not NP below VP). See
                           `softcount.text.trees`; predicted trees have plain labels
        ``settings``       these and others: see `PCFG`

        >>> model = PCFG.from_treebank(["(S (NP it) (VP rains))", "(S (NP he) (VP (VB snores)))"])
        >>> print(model.predict(["he rains"])[0])
        (S (NP he) (VP rains))
        """
        model = cls(rules=TREEBANK, **settings)
        model.rules = model._count_rules(trees, sample_weight)
        return model._use_as_given()

    def _count_rules(self, trees: Any, sample_weight: Any) -> GrammarRules:
        """Count the rules of trees, annotated according to ``horizontal`` and ``vertical``."""
        self._check_settings()
        bank = as_trees([] if trees is None else trees)
        weights = None
        if sample_weight is not None:  # may be tiny: count_rules scales them by the largest
            weights = sentence_weights(sample_weight, len(bank), least=0.0)
        if self.lowercase:
            bank = bank.changed(lowercase)
        bank = bank.changed(lambda tree: annotate(tree, self.horizontal, self.vertical))
        return count_rules(bank, weights)

    def _use_as_given(self) -> Self:
        """Make the model ready for use without `fit`, with the rules' own probabilities."""
        self._check_settings()
        grammar = self._make_rule_grammar(self.rules)
        self.core_, self.raw_params_ = grammar, grammar.start()
        self.signature_ = f"softcount {__version__}: PCFG, rules as they were given"
        self.n_features_in_ = max(len(grammar.vocabulary.words), 1)
        return self

    def _make_rule_grammar(self, given: Any) -> RuleGrammar:
        rules = parse_rules(given) if isinstance(given, str) else given
        if not isinstance(rules, GrammarRules):
            raise LearnerError(
                f"rules={brief(self.rules)} is not a grammar",
                "give the rules as text, or use PCFG.from_rules",
            )
        check_defined(rules)
        annotation = (self.horizontal, self.vertical)
        return RuleGrammar(rules, self._options(), self.unknown, *annotation)

    # learning
    @resumable
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
        """Fit the grammar to sentences.

        ``sentences``      lists of words, strings (split at white space), or None: the leaves of
                           the trees
        ``trees``          for each sentence its tree, or None. In a dense grammar, constituents of
                           more than two children are binarised with any nonterminals, and a unary
                           chain over one span becomes one nonterminal: any of the chain's
        ``brackets``       for each sentence None, or constituents that no other may cross: (start,
                           end) or (label, start, end), with exclusive end; or a tree, whose labels
                           are ignored. A span given with labels can have no others; in a dense
                           grammar, brackets around one word have no effect (Pereira & Schabes 1992)
        ``sample_weight``  weight of each sentence

        Sentences and trees may be on disk (`softcount.text.corpora`): they are then read shard by
        shard, trees in every step, and the result has the bits of the same data in memory.

        For the other options see `softcount.core.estimator.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self._bind(sentences, trees, brackets, sample_weight)
            return self._learn(core, corpus, init, **options)

    def _bind(
        self, sentences: Any, trees: Any = None, brackets: Any = None, sample_weight: Any = None
    ) -> tuple[Grammar, AnyCorpus]:
        """Make the grammar and the training corpus."""
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

    def _bind_more(self, core: Grammar, data: Any) -> AnyCorpus:
        return self._read(core, data)[1]

    def _read(
        self, grammar: Grammar, sentences: Any, brackets: Any = None
    ) -> tuple[SupervisedSentences, AnyCorpus]:
        """Read further sentences with the vocabulary of the grammar."""
        known = (grammar.vocabulary, self.lowercase)
        given = SupervisedSentences.read(sentences, None, brackets, *known)
        return given, grammar.make_corpus(given, sentence_weights(None, len(given.text)))

    def _options(self) -> GrammarOptions:
        rules, words = smoothings(self.smoothing, RULES, WORDS)
        # adding a to every count gives the mode under Dirichlet(1 + a), the mean under Dirichlet(a)
        shift = float(require_prior(self._learner, min(rules, words)))
        frozen: Any = () if self.frozen is None else self.frozen
        is_single = isinstance(frozen, str) or not isinstance(frozen, Iterable)
        names = [frozen] if is_single else list(frozen)
        if not all(isinstance(name, str) for name in names):
            raise LearnerError(
                f"frozen={brief(self.frozen)} has items that are not names",
                "give names of tables or symbols",
            )
        return GrammarOptions(rules + shift, words + shift, names, self.dtype, self.prune)

    def _lacks_sampler(self) -> str:
        return ""

    def _lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, RULES, WORDS)

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("n_components", "n_preterminals"):
            if getattr(self, name) is not None and self.rules is not None:
                raise LearnerError(f"both {name} and rules are given", "omit one of them")
        if self.rules is None and (self.horizontal is not None or self.vertical != 1):
            raise LearnerError(
                "horizontal and vertical apply to treebank grammars only",
                "use PCFG.from_treebank",
            )

    def _start_values(self, core: Grammar, corpus: AnyCorpus, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(init)
        if init is None and isinstance(core, RuleGrammar):
            return core.start()
        if init is None and corpus.has_labels:
            even = {name: family.uniform() for name, family in core.families.items()}
            counts = self._count(core, corpus, even)
            return lambda rng: _start_from_labels(core, counts, rng)
        families = core.families
        method = "random" if init is None else init
        if isinstance(method, str) and method == "random":
            return lambda rng: {name: family.random(rng) for name, family in families.items()}
        if isinstance(method, str) and method == "uniform" and isinstance(core, RuleGrammar):
            return {name: family.uniform() for name, family in families.items()}
        hint = "use 'random' (for rules also 'uniform'), or tables in the format of params_"
        raise LearnerError(f"init={brief(init)} is not known here", hint)

    def _count(self, core: Grammar, corpus: AnyCorpus, params: Params) -> dict[str, Array]:
        """Return the expected counts of all tables, as an E-step does."""
        if len(corpus):
            with name_impossible_items(corpus), open_session(core, corpus, self.engine) as session:
                counts = session.expect(core.expect, params, EStep()).counts
        else:
            counts = core.expect(params, corpus.shards()[0], EStep()).counts
        return {name: np.asarray(table) for name, table in counts.items()}

    def _after_fit(self, corpus: AnyCorpus) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self._set_unseen_words()

    def _set_unseen_words(self) -> None:
        if isinstance(self.core_, DenseGrammar):
            self.core_.set_unseen_words(np.asarray(self.raw_params_[WORDS]), self.unknown)

    # step by step
    def _name_hidden(self, core: Grammar, corpus: AnyCorpus, rows: PosteriorRows) -> dict[str, Any]:
        words: dict[int, list[str]] = {}
        for shard in corpus.shards(None, 0):
            words |= zip(shard.text.numbers.tolist(), core.list_sentences(shard), strict=True)
        items, starts, ends = (
            each.tolist() for each in (rows.items, rows.keys["start"], rows.keys["end"])
        )
        spans = [" ".join(words[n][i:j]) for n, i, j in zip(items, starts, ends, strict=True)]
        index = {"sentence": items, "start": starts, "end": ends, "words": spans}
        return {"columns": core.labels, "index": index, "of": "symbol", "independent": False}

    # inference
    def _read_more(self, sentences: Any, brackets: Any = None) -> tuple[Sequences, AnyCorpus]:
        self._require_fit()
        given, corpus = self._read(self.core_, sentences, brackets)
        return given.text, corpus

    def _each(
        self, function: Callable[..., T], corpus: AnyCorpus, how: EStep | None = None
    ) -> Iterator[T]:
        """Yield what a function returns for each shard: see `Estimator._map`."""
        if len(corpus):
            yield from self._map(function, corpus, how)
        else:  # of no sentences there are answers, too, though nothing for an engine to do
            yield function(self.raw_params_, corpus.shards()[0], how or EStep())

    def _list(
        self, function: Callable[..., list[T]], corpus: AnyCorpus, how: EStep | None = None
    ) -> list[T]:
        """Return what a function returns for each sentence."""
        return list(chain.from_iterable(self._each(function, corpus, how)))

    def predict(
        self, sentences: Any, *, brackets: Any = None, method: str = "viterbi"
    ) -> list[Tree | None]:
        """Parse each sentence: return its tree, or None if it is empty or cannot be parsed.

        ``brackets``  known brackets, see `PCFG.fit`; trees agree with them
        ``method``    "viterbi": the most probable tree; or a minimum Bayes risk tree (Goodman
                      1996): "brackets": the tree with the most expected correct brackets, whatever
                      their labels; "labelled": the same for labelled brackets

        An `ImpossibleWarning` counts the sentences that cannot be parsed.
        """
        if method not in METHODS:
            raise LearnerError(f"method={brief(method)} is unknown", f"choose {METHODS}")
        text, corpus = self._read_more(sentences, brackets)
        if method == "viterbi":
            parses = self._list(self.core_.trace_parses, corpus, EStep(fill="hard"))
            trees = [some[0] if some else None for some in parses]
        else:
            parse = partial(self.core_.minimum_risk_parses, labelled=method == "labelled")
            trees = self._list(parse, corpus)
        _warn_of_missing(text, [tree is None for tree in trees])
        return trees

    def k_best(
        self, sentences: Any, k: int = 10, *, brackets: Any = None
    ) -> list[list[tuple[float, Tree]]]:
        """Return the k most probable trees of each sentence (or all, if fewer), best first.

        Each comes with log p(tree, sentence). In parsing, treebank grammars allow words new
        preterminals (see `softcount.grammar.rule_tables`), which `score` does not: so a tree may be
        more probable than its sentence.
        """
        check_whole("k", k)
        text, corpus = self._read_more(sentences, brackets)
        parses = self._list(partial(self.core_.k_best_parses, k=k), corpus)
        _warn_of_missing(text, [not trees for trees in parses])
        return parses

    def sample_trees(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, brackets: Any = None
    ) -> list[list[Tree]]:
        """Draw n trees for each sentence from the posterior; an empty list if it has no tree."""
        check_whole("n", n)
        stream = int(generator(random_state).integers(2**63))
        text, corpus = self._read_more(sentences, brackets)
        how = EStep(fill="sample", samples=n, stream=stream)
        samples = self._list(self.core_.trace_parses, corpus, how)
        _warn_of_missing(text, [not trees for trees in samples])
        return samples

    def posterior(
        self, sentences: Any, *, brackets: Any = None, threshold: float = 1e-6
    ) -> GrammarPosterior:
        """Compute the expected brackets of each sentence, and the expected rules of all.

        Only expectations of at least ``threshold`` are returned. Sentences of probability zero have
        no brackets, and contribute to no rule.
        """
        check_number("threshold", threshold)
        _, corpus = self._read_more(sentences, brackets)
        brackets_of: list[dict[Span, float]] = []
        counts: dict[GrammarRule, float] = defaultdict(float)
        for found in self._each(partial(self.core_.expected_brackets, threshold=threshold), corpus):
            brackets_of += found.brackets
            for rule, n in found.rules.items():
                counts[rule] += n
        rules = {str(rule): n for rule, n in counts.items() if n >= threshold}
        return GrammarPosterior(brackets_of, rules)

    def score_samples(self, sentences: Any, *, brackets: Any = None) -> FloatArray:
        """Compute log p of each sentence (over trees that agree with the brackets); may be −inf."""
        return self._log_probabilities(self._read_more(sentences, brackets)[1])

    def _log_probabilities(self, corpus: AnyCorpus) -> FloatArray:
        return np.concatenate(list(self._each(self.core_.log_probabilities, corpus)))

    def score(self, sentences: Any, y: Any = None) -> float:
        """Compute the mean log p per sentence; ``y`` is ignored."""
        return float(self.score_samples(sentences).mean())

    def perplexity(self, sentences: Any) -> float:
        """Compute exp(−log p / words); infinite if any sentence has probability zero."""
        text, corpus = self._read_more(sentences)
        return float(np.exp(-self._log_probabilities(corpus).sum() / max(len(text.tokens), 1)))

    def expected_counts(self, sentences: Any, *, brackets: Any = None) -> dict[str, Any]:
        """Compute the expected counts of all tables, as an E-step does."""
        _, corpus = self._read_more(sentences, brackets)
        return self._count(self.core_, corpus, self.raw_params_)

    def pruning_loss(self, sentences: Any) -> PruningLoss:
        """Measure what ``prune`` costs, by parsing these sentences with and without it."""
        _, corpus = self._read_more(sentences)
        if not isinstance(self.core_, RuleGrammar):
            raise LearnerError("dense grammars are never pruned", "use a rule-based grammar")
        return add_pruning_losses(self._each(self.core_.pruning_loss, corpus))

    # fitted attributes
    @property
    def params_(self) -> dict[str, Array]:
        """The fitted tables by name, in the format that ``init`` accepts."""
        self._require_fit()
        tables = {name: np.array(table) for name, table in self.raw_params_.items()}
        return NamedTables(tables, self.core_.name_params())

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels of trees: nonterminals, then preterminals, if these are distinguished."""
        self._require_fit()
        return self.core_.labels

    def grammar(self, threshold: float = 1e-4) -> GrammarRules:
        """Return the rules of probability at least ``threshold``, renormalised.

        Converted to text, they can be read again by `PCFG.from_rules`.
        """
        self._require_fit()
        check_number("threshold", threshold)
        return self.core_.list_rules(self.raw_params_, threshold)

    def generate(self, n: int = 1, random_state: Any = 0) -> list[Tree]:
        """Draw n new trees from the grammar."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = generator(random_state)
        return [self.core_.generate(self.raw_params_, rng) for _ in range(n)]

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        return self.core_.stored()

    def unpack(self, stored: store.Stored, given: Mapping[str, Any]) -> None:
        super().unpack(stored, given)
        self._set_unseen_words()

    def rebuild(self, stored: store.Stored, given: Mapping[str, Any]) -> Grammar:
        symbols = DenseSymbols.from_stored(stored)
        if symbols is not None:
            self._check_settings()
            if self.rules is not None:
                raise StoreError("the file has both tables of a dense grammar and rules", AGAIN)
            return DenseGrammar.create(symbols, self._options())
        learned = read_stored_rules(stored)
        if not isinstance(self.rules, str):  # rules given as text remain the start of learning
            self.rules = learned
        self._check_settings()
        grammar = self._make_rule_grammar(learned if self.rules == TREEBANK else self.rules)
        rules = grammar.rules
        if rules.rules != learned.rules or set(rules.root) != set(learned.root):
            raise StoreError("the stored rules differ from those of the settings", AGAIN)
        return grammar


def _warn_of_missing(text: Sequences, missing: Sequence[bool]) -> None:
    """Warn of non-empty sentences without a tree."""
    pairs = zip(missing, text.lengths.tolist(), strict=True)
    items = [n for n, (is_missing, length) in enumerate(pairs) if is_missing and length]
    first = text.name(items[0]) if items else ""
    warn_of_impossible(items, len(text), "sentences", first, NO_TREE, stacklevel=3)


def _start_from_labels(
    core: Grammar, counts: Mapping[str, Array], rng: np.random.Generator
) -> dict[str, Array]:
    """Initialise from labels.

    ``counts``  expected counts, all trees that agree with the labels being equally likely
    """
    tables = {}
    for name, family in core.families.items():
        seen = np.asarray(counts[name], dtype=float)
        unseen = (UNSEEN * seen.sum(axis=1, keepdims=True) + 1.0) * family.uniform()
        rows = (seen + unseen) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
        tables[name] = rows / rows.sum(axis=1, keepdims=True)
    return tables
