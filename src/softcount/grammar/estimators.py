"""`PCFG`, as users call it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import numpy as np

from softcount import store
from softcount._version import __version__
from softcount.bounds import MAX_CLASSES
from softcount.corpus.treebank import lowercase
from softcount.corpus.treebank import trees as as_trees
from softcount.corpus.trees import Span, Tree
from softcount.errors import LearnerError, StoreError, shown
from softcount.grammar import dense as dense_files
from softcount.grammar import rule_grammar as rule_files
from softcount.grammar.binarised import Binarised
from softcount.grammar.core import Lost, PCFGCore, RuleCore
from softcount.grammar.data import Sentences, Told
from softcount.grammar.dense import DenseForm
from softcount.grammar.form import Asked, Choices, Form, generated
from softcount.grammar.inside_outside import RULES, WORDS
from softcount.grammar.rule_grammar import RuleForm, annotated
from softcount.grammar.rules import Rules, demand_defined, from_text, from_trees
from softcount.hmm.data import sentence_weights
from softcount.kernels.pool import usable_cpus
from softcount.models import files
from softcount.models.learnable import FitOptions, Learnable, all_or_nothing
from softcount.models.possible import warn_of_impossible
from softcount.models.settings import (
    check_number,
    check_whole,
    demand_prior,
    generator,
    not_smoothed,
    smoothings,
)
from softcount.models.stored import AGAIN
from softcount.types import Array, How, Params

if TYPE_CHECKING:
    from softcount.engines.base import Engine
    from softcount.learners.base import Learner


LOOSE, JITTER = 0.1, 0.1
"""So much of a row is left to what was not seen; and rows differ by so much at random."""


def informed(core: PCFGCore, corpus: Sentences, rng: np.random.Generator) -> dict[str, Array]:
    """What labels say: counts of all sentences, any tree that agrees with them being as likely."""
    even = {name: family.uniform() for name, family in core.families.items()}
    counts = core.expect(even, corpus.everything, How()).counts
    tables = {}
    for name, family in core.families.items():
        seen = np.asarray(counts[name], dtype=float)
        loose = (LOOSE * seen.sum(axis=1, keepdims=True) + 1.0) * family.uniform()
        rows = (seen + loose) * rng.uniform(1.0 - JITTER, 1.0 + JITTER, seen.shape)
        tables[name] = rows / rows.sum(axis=1, keepdims=True)
    return tables


# What grammars say of sentences once they have learned.


NO_TREE = (
    "There is no tree for such a one: no rules lead to it, or a word is in none. More rules, "
    "smoothing, or unknown=True allow more"
)
METHODS = ("viterbi", "brackets", "labelled")


class Posterior(NamedTuple):
    """What is expected of sentences.

    ``brackets``  for each sentence (label, start, end) → how many are expected there; those of
                  one word included
    ``rules``     rule, as a text → how often all sentences are expected to use it
    """

    brackets: list[dict[Span, float]]
    rules: dict[str, float]


def _warn_of_none(asked: Asked, lacks: Sequence[bool]) -> None:
    """Warn of sentences that have words, and lack a tree."""
    text = asked.text
    lengths = text.lengths.tolist()
    both = zip(lacks, lengths, strict=True)
    items = [n for n, (lacking, length) in enumerate(both) if lacking and length]
    first = text.name(items[0]) if items else ""
    warn_of_impossible(items, len(lengths), "sentences", first, NO_TREE, stacklevel=3)


class GrammarModel(Learnable):
    """A grammar as an estimator; a subclass says how it learns."""

    form_: Form
    raw_params_: Params
    lowercase: bool
    dtype: str

    @property
    def threads(self) -> int:
        """How many threads may be used: the engine's, if it says."""
        threads = getattr(self.engine, "threads", None)
        return usable_cpus() if threads is None else int(threads)

    def _asked(self, sentences: Any, brackets: Any = None) -> Asked:
        self._require_fit()
        told, corpus = self._told(sentences, brackets)
        return Asked(self.core_, self.raw_params_, corpus.everything, told.text, self.threads)

    def _told(self, sentences: Any, brackets: Any = None) -> tuple[Told, Sentences]:
        """More sentences, in the words that the grammar knows."""
        told = Told.of(sentences, None, brackets, self.form_.vocabulary, self.lowercase)
        return told, self.form_.corpus(told, sentence_weights(None, len(told.text)))

    # trees of sentences
    def predict(
        self, sentences: Any, *, brackets: Any = None, method: str = "viterbi"
    ) -> list[Tree | None]:
        """The tree of each sentence; None if it is empty, or no tree could have produced it, which
        an `ImpossibleWarning` counts.

        ``brackets``  what is known of the trees already; see `PCFG.fit`
        ``method``    "viterbi": the most probable tree; "brackets": that of the most expected
                      brackets, whatever their labels; "labelled": of the most expected labelled
                      ones (Goodman 1996)
        """
        if method not in METHODS:
            raise LearnerError(f"method={shown(method)} is unknown", f"choose {METHODS}")
        asked = self._asked(sentences, brackets)
        if method == "viterbi":
            trees = self.form_.best(asked)[0]
        else:
            labelled = method == "labelled"
            trees = [
                self.form_.least_risk(spans, asked.text.sentence(n), labelled)
                for n, spans in enumerate(self.form_.spans(asked))
            ]
        _warn_of_none(asked, [tree is None for tree in trees])
        return trees

    def k_best(
        self, sentences: Any, k: int = 10, *, brackets: Any = None
    ) -> list[list[tuple[float, Tree]]]:
        """For each sentence the k most probable trees (fewer, if there are), the best first.

        Each comes with log p(tree, sentence). In parsing, words of treebank grammars may be what
        they never were (see `softcount.grammar.binarised`), which `score` knows nothing of: a
        tree may be more probable than the sentence that it says.
        """
        check_whole("k", k)
        asked = self._asked(sentences, brackets)
        found = self.form_.some_best(asked, k)
        _warn_of_none(asked, [not some for some in found])
        return found

    def sample_trees(
        self, sentences: Any, n: int = 1, random_state: Any = 0, *, brackets: Any = None
    ) -> list[list[Tree]]:
        """n trees for each sentence, drawn from their posterior; none, if there is no tree."""
        check_whole("n", n)
        stream = int(generator(random_state).integers(2**63))
        asked = self._asked(sentences, brackets)
        found = self.form_.drawn(asked, stream, n)
        _warn_of_none(asked, [not some for some in found])
        return found

    def posterior(self, sentences: Any, *, brackets: Any = None, least: float = 1e-6) -> Posterior:
        """Expected brackets of each sentence, and expected rules of all; from ``least`` on.

        Sentences that no tree could have produced have no brackets, and count no rules.
        """
        check_number("least", least)
        asked = self._asked(sentences, brackets)
        labels = self.form_.labels
        found: list[dict[Span, float]] = []
        for spans in self.form_.spans(asked):
            kept = spans.shares >= least
            places = zip(*(at[kept].tolist() for at in spans), strict=True)
            found.append({(labels[a], i, j): share for i, j, a, share in places})
        counts = self.form_.expected_rules(asked)
        return Posterior(found, {str(rule): n for rule, n in counts.items() if n >= least})

    def score_samples(self, sentences: Any, *, brackets: Any = None) -> Array:
        """log p of each sentence (in trees that agree with the brackets); −inf if it cannot be."""
        asked = self._asked(sentences, brackets)
        return self.form_.logs(asked)

    def score(self, sentences: Any, y: Any = None) -> float:
        """The mean log p of a sentence."""
        return float(self.score_samples(sentences).mean())

    def perplexity(self, sentences: Any) -> float:
        """exp of the negative log-likelihood a word; infinite if a sentence cannot come about."""
        asked = self._asked(sentences)
        logs = self.form_.logs(asked)
        return float(np.exp(-logs.sum() / max(asked.shard.text.n_tokens, 1)))

    def expected(self, sentences: Any, *, brackets: Any = None) -> dict[str, Any]:
        """Expected counts of all tables: what an E-step finds."""
        asked = self._asked(sentences, brackets)
        return dict(self.core_.expect(asked.params, asked.shard, How(threads=asked.threads)).counts)

    def pruning_loss(self, sentences: Any) -> Lost:
        """What these sentences lose by ``prune``: they are gone through with it and without it."""
        asked = self._asked(sentences)
        if not isinstance(asked.core, RuleCore):
            raise LearnerError(
                "nothing is ever left out of a dense grammar", "ask a grammar of rules"
            )
        return asked.core.lost(asked.params, asked.shard, asked.threads)

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
        return self.form_.labels

    def grammar(self, least: float = 1e-4) -> Rules:
        """The rules whose probability is at least ``least``, scaled to add up to one.

        Written as a text, `PCFG.from_rules` reads them again.
        """
        self._require_fit()
        check_number("least", least)
        return self.form_.rules(self.raw_params_, least)

    def generate(self, n: int = 1, random_state: Any = 0) -> list[Tree]:
        """New trees."""
        self._require_fit()
        check_whole("n", n, 0)
        rng = generator(random_state)
        return [generated(self.form_, self.raw_params_, rng) for _ in range(n)]


# Probabilistic context-free grammars.


TREEBANK = "treebank"
"""Instead of rules: those of the trees that are learned from."""


@dataclass(eq=False, repr=False)
class PCFG(files.Stored, GrammarModel):
    """A probabilistic context-free grammar: p(tree) is the product of its rules' probabilities.

    There are two ways to say the grammar. ``PCFG(n_nonterminals, n_preterminals)`` has every rule
    A → B C and every preterminal may be every word (Chomsky normal form): it is for finding
    structure. `PCFG.from_rules` and `PCFG.from_treebank` have the rules that they are given, of any
    length. Both learn from sentences, from partly bracketed ones, and from trees.

    ``n_nonterminals``  how many symbols trees have inside; None: as many as labels are given
    ``n_preterminals``  how many symbols words may be; None: as many as trees have
    ``rules``           the grammar as a text, or `Rules`; "treebank": all that the trees have which
                        `fit` is given; None: all rules, by the numbers above
    ``smoothing``       added to all counts, and to the prior of learners that have one; a mapping
                        tells "rules" from "words"
    ``frozen``          what stays as it begins: names of tables ("root", "rules", "words"), or of
                        symbols, whose rules stay
    ``unknown``         whether words that were never seen may be parsed: by how words are used
                        that were seen once. Grammars given as texts know no such words
    ``horizontal``, ``vertical``  of treebanks: see `PCFG.from_treebank`
    ``prune``           grammars of rules only: symbols that a coarse grammar takes to be less
                        probable than this are left out of charts; a sentence that is left without
                        a tree is gone through again in full. `pruning_loss` says what is lost
    ``lowercase``       words in lower case
    ``dtype``           "float32": less exact E-steps of dense grammars, in less time
    ``init``            "random"; tables as ``params_`` has them; grammars of rules begin with their
                        own probabilities, if nothing else is said ("random", "uniform")

    >>> toy = PCFG.from_rules("S -> NP VP\\nNP -> 'she' | 'fish'\\nVP -> 'eats' NP | 'sleeps'")
    >>> print(toy.predict(["she eats fish"])[0])
    (S (NP she) (VP eats (NP fish)))
    >>> model = PCFG(2, 3, random_state=1).fit(["a dog barks", "the dog sleeps", "a cat sleeps"])
    >>> len(model.predict(["the cat barks"])[0].words())
    3
    """

    n_nonterminals: int | None = None
    n_preterminals: int | None = None
    _: KW_ONLY
    rules: Any = None
    smoothing: float | Mapping[str, float] = 0.0
    frozen: Any = None
    unknown: bool = True
    horizontal: int | None = None
    vertical: int = 1
    prune: float = 0.0
    lowercase: bool = False
    dtype: str = "float64"
    init: Any = None
    learner: Learner | None = None
    engine: Engine | None = None
    random_state: Any = 0

    # grammars of rules
    @classmethod
    def from_rules(cls, rules: str | Rules, start: str | None = None, **settings: Any) -> Self:
        """A grammar from a text of rules: see `softcount.grammar.rules`.

        ``start``     the root; None: what the rules say, or the left side of the first
        ``settings``  see `PCFG`

        It can be used as it is, and `fit` begins with its probabilities.
        """
        read = from_text(rules, start) if isinstance(rules, str) else rules
        if isinstance(read, Rules) and start is not None:
            read = replace(read, root={start: 1.0})
        return cls(rules=read, **settings)._as_given()

    @classmethod
    def from_treebank(
        cls,
        trees: Any,
        sample_weight: Any = None,
        *,
        horizontal: int | None = None,
        vertical: int = 1,
        **settings: Any,
    ) -> Self:
        """A grammar of all rules that trees have, by how often they have them.

        ``trees``          trees, texts in Penn brackets, or None, which is passed over
        ``sample_weight``  how often each tree counts
        ``horizontal``     how many neighbours to the left a part of a long right side knows; None:
                           all, right sides stay whole
        ``vertical``       how many labels a symbol consists of: 1: its own; 2: that of the
                           constituent above, too (NP below S is not NP below VP). See
                           `softcount.corpus.binarising`; users see plain labels
        ``settings``       see `PCFG`

        >>> model = PCFG.from_treebank(["(S (NP it) (VP rains))", "(S (NP he) (VP (VB snores)))"])
        >>> print(model.predict(["he rains"])[0])
        (S (NP he) (VP rains))
        """
        around: dict[str, Any] = {"horizontal": horizontal, "vertical": vertical}
        model = cls(rules=TREEBANK, **around, **settings)
        model.rules = model._counted(trees, sample_weight)
        return model._as_given()

    def _counted(self, trees: Any, sample_weight: Any) -> Rules:
        """The rules of trees, which tell what is around them if they are to."""
        self._check_settings()
        some = as_trees([] if trees is None else trees)
        weights = None  # however small they are: those of rules are scaled by the largest
        if sample_weight is not None:
            weights = sentence_weights(sample_weight, len(some), least=0.0)
        if self.lowercase:
            some = some.changed(lowercase)
        some = some.changed(lambda tree: annotated(tree, self.horizontal, self.vertical))
        return from_trees(some, weights)

    def _as_given(self) -> Self:
        """With the rules' own probabilities."""
        self._check_settings()
        form = self._rule_form(self.rules)
        self.form_, self.core_, self.raw_params_ = form, form.core(self._choices()), form.start()
        self.signature_ = f"softcount {__version__}: PCFG, rules as they were given"
        self.n_features_in_ = max(len(form.vocabulary.words), 1)
        return self

    def _rule_form(self, given: Any) -> RuleForm:
        rules = from_text(given) if isinstance(given, str) else given
        if not isinstance(rules, Rules):
            raise LearnerError(f"rules={shown(self.rules)}", "give a text, or use PCFG.from_rules")
        demand_defined(rules)
        return RuleForm.of(rules, self.unknown, self.horizontal, self.vertical)

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
                           end) or (label, start, end), end being the first word behind; or a tree,
                           whose labels are not looked at. A span that is given with labels can
                           have no others; in a dense grammar, one word says nothing
        ``sample_weight``  how often each sentence counts

        For the other options see `softcount.models.learnable.FitOptions`.
        """
        with all_or_nothing(self):
            core, corpus = self.bind(sentences, trees, brackets, sample_weight)
            return self.learn(core, corpus, init, **options)

    def bind(
        self, sentences: Any, trees: Any = None, brackets: Any = None, sample_weight: Any = None
    ) -> tuple[PCFGCore | RuleCore, Sentences]:
        """The core and the corpus."""
        self._check_settings()
        form: DenseForm | RuleForm
        if self.rules is None:
            told = Told.of(sentences, trees, brackets, None, self.lowercase)
            form = DenseForm.of(told, self.n_nonterminals, self.n_preterminals)
        else:
            counted = isinstance(self.rules, str) and self.rules == TREEBANK
            form = self._rule_form(self._counted(trees, sample_weight) if counted else self.rules)
            told = Told.of(sentences, trees, brackets, form.vocabulary, self.lowercase)
            if form.unknown is None:
                told.demand_no_new_words(form.vocabulary.words)
        told.demand_words()
        self.form_, self.n_features_in_ = form, max(len(form.vocabulary.words), 1)
        weights = sentence_weights(sample_weight, len(told.text))
        return form.core(self._choices()), form.corpus(told, weights)

    def bind_more(self, core: Any, data: Any) -> Sentences:
        return self._told(data)[1]

    def _choices(self) -> Choices:
        rules, words = smoothings(self.smoothing, RULES, WORDS)
        maximises = demand_prior(self.learner, min(rules, words))
        return Choices(rules + maximises, words + maximises, self._held(), self.dtype, self.prune)

    def _held(self) -> Sequence[str]:
        frozen = () if self.frozen is None else self.frozen
        held = [frozen] if isinstance(frozen, str) or not isinstance(frozen, Iterable) else frozen
        names = list(held)
        if not all(isinstance(name, str) for name in names):
            raise LearnerError(f"frozen={shown(self.frozen)}", "give names of tables or symbols")
        return names

    def lacks_sampler(self) -> str:
        return ""

    def lacks_prior(self) -> str:
        return not_smoothed(self.smoothing, RULES, WORDS)

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("n_nonterminals", "n_preterminals"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), most=MAX_CLASSES)
                if self.rules is not None:
                    raise LearnerError(f"{name} and rules are given", "leave one of them out")
        for name in ("unknown", "lowercase"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise LearnerError(f"{name}={shown(getattr(self, name))}", "give True or False")
        if self.dtype not in ("float64", "float32"):
            raise LearnerError(f"dtype={shown(self.dtype)} is unknown", "float64 or float32")
        check_whole("vertical", self.vertical, 1, "1: labels know nothing of those above")
        if self.horizontal is not None:
            check_whole("horizontal", self.horizontal, 0, "None: rules as they are")
        if self.rules is None and (self.horizontal is not None or self.vertical != 1):
            raise LearnerError(
                "horizontal and vertical are about rules of trees", "use PCFG.from_treebank"
            )
        check_number("prune", self.prune, "0: nothing is left out; 1e-6 is a little")
        if not self.prune < 1.0:
            raise LearnerError(f"prune={shown(self.prune)}", "give a number from 0 to 1")

    def start_values(self, core: Any, corpus: Sentences, init: Any) -> Any:
        if isinstance(init, Mapping):
            return core.params(init)
        if init is None and isinstance(self.form_, RuleForm):
            return self.form_.start()
        if init is None and corpus.tells_labels:
            return lambda rng: informed(core, corpus, rng)
        families = core.families
        way = "random" if init is None else init
        if isinstance(way, str) and way == "random":
            return lambda rng: {name: family.random(rng) for name, family in families.items()}
        if isinstance(way, str) and way == "uniform" and isinstance(self.form_, RuleForm):
            return {name: family.uniform() for name, family in families.items()}
        hint = "random (rules: also uniform), or tables as params_ has them"
        raise LearnerError(f"init={shown(init)} is not known here", hint)

    def remember(self, corpus: Sentences) -> None:
        self.n_iter_ = len(self.fit_.trace) - 1
        self._see_rare_words()

    def _see_rare_words(self) -> None:
        if isinstance(self.form_, DenseForm):
            table = np.asarray(self.raw_params_[WORDS])
            self.form_.see_rare_words(self.core_, table, self.unknown)

    # files
    def stored(self) -> tuple[dict[str, Array], dict[str, Any]]:
        form = self.form_
        if isinstance(form, RuleForm):
            return rule_files.arrays(form.own.rules), rule_files.facts(form.own.rules)
        assert isinstance(form, DenseForm)
        return dense_files.arrays(form), dense_files.facts(form)

    @classmethod
    def restore(cls, stored: store.Stored, **given: Any) -> Self:
        model = super().restore(stored, **given)
        model._see_rare_words()
        return model

    def rebuilt(self, stored: store.Stored, given: Mapping[str, Any]) -> PCFGCore | RuleCore:
        form: DenseForm | RuleForm
        if dense_files.is_dense(stored):
            self._check_settings()
            if self.rules is not None:
                raise StoreError("there are tables of a dense grammar, and rules", AGAIN)
            form = dense_files.form(stored)
        else:
            form = self._stored_rules(rule_files.rules(stored))
        self.form_ = form
        return form.core(self._choices())

    def _stored_rules(self, learned: Rules) -> RuleForm:
        """A grammar of the rules in a file; a text of rules stays what learning begins with."""
        found = Binarised(learned)
        found.grammar(learned.chances, found.root)  # complains if chains have no finite sum
        if not isinstance(self.rules, str):
            self.rules = learned
        self._check_settings()
        form = self._rule_form(learned if self.rules == TREEBANK else self.rules)
        own = form.own.rules
        if own.rules != learned.rules or set(own.root) != set(learned.root):
            raise StoreError("the rules are not those of the settings", AGAIN)
        return form
