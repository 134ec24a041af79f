"""What tests of grammars share: small grammars, sentences, learners, and oracles beside models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.special import gammaln

import softcount as sc
from softcount.families import Categorical
from softcount.grammar.data import SpanConstraints, TreeCorpus, TreeShard
from softcount.grammar.dense import DenseGrammar, DenseSymbols
from softcount.grammar.gibbs import CollapsedTrees, DerivationCells
from softcount.grammar.rule_based import RuleInference, make_rule_text
from softcount.grammar.rule_tables import BinarisedRules
from softcount.grammar.rules import GrammarRule, estimate_rules
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSets
from softcount.hmm.emissions import WordEmission
from softcount.text.trees import Tree
from softcount.text.vocabulary import Vocabulary
from tests.core.learners import learners
from tests.oracles import trees as oracles
from tests.oracles.trees import Allowed, Grammar, Sentence, not_crossing, random_tables

TOY = """
S  -> NP VP [0.8] | VP [0.1] | S 'and' S [0.1]
NP -> D N [0.5] | 'she' [0.2] | N [0.1] | NP PP [0.2]
VP -> V NP [0.5] | V [0.2] | VP PP [0.2] | V NP PP [0.1]
PP -> P NP
D  -> 'the' [0.6] | 'a' [0.4]
N  -> 'dog' [0.4] | 'cat' [0.3] | 'telescope' [0.3]
V  -> 'sees' [0.7] | 'sleeps' [0.3]
P  -> 'with' [0.5] | 'near' [0.5]
"""
SENTENCES = [
    text.split()
    for text in (
        "she sees the dog with a telescope",
        "the cat sleeps",
        "a dog near the cat sleeps and she sees dog",
        "sees the dog with cat near telescope",
        "she sleeps",
        "the dog sees a cat with the telescope",
    )
]
PALINDROMES = [
    list(half + half[::-1]) for n in (1, 2, 3) for half in map("".join, product("ab", repeat=n))
]

LEARNERS = learners(batch_size=3, sweeps=6)
kinds = pytest.mark.parametrize("kind", ["dense", "rules"])


def estimator(kind: str, **settings: Any) -> sc.PCFG:
    """A model of one of both kinds."""
    if kind == "rules":
        return sc.PCFG.from_rules(TOY, **settings)
    return sc.PCFG(2, 3, **settings)


def learning(kind: str, learner: str, **settings: Any) -> sc.PCFG:
    """A model with one of the learners; of several runs, each begins elsewhere."""
    start = {"init": "random"} if learner == "restarts" else {}
    return estimator(kind, **{"smoothing": 0.1, "learner": LEARNERS[learner], **start, **settings})


def learned(kind: str, **settings: Any) -> sc.PCFG:
    """A model that has learned something of `SENTENCES`, in which all words are possible."""
    quick = {"smoothing": 0.1, "learner": sc.EM(max_iter=3, tol=0), **settings}
    return estimator(kind, **quick).fit(SENTENCES)


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for name, table in ours.items():
        np.testing.assert_array_equal(table, theirs[name], err_msg=name)


# dense grammars with the tables that the oracle has
class Known:
    """A dense grammar with random tables, as a model and as an oracle."""

    def __init__(self, K: int, T: int, words: str, seed: int = 0, sharp: float = 1.0) -> None:
        self.words = list(words)
        tables = random_tables(np.random.default_rng(seed), K, T, len(words), sharp)
        self.oracle = Grammar(tables, K, T)
        self.model = sc.PCFG(K, T, init=tables, learner=sc.EM(max_iter=1), unknown=False)
        self.model.fit([self.words])
        assert list(self.model.core_.vocabulary.words) == self.words
        self.model.raw_params_ = tables  # what is asked of it, it has not learned

    def numbers(self, sentence: Any) -> list[int]:
        return [self.words.index(word) for word in sentence]

    def tree(self, node: Any) -> Tree:
        """A tree of the oracle's as users know it."""
        label = self.model.labels_[node[0]]
        parts = (self.tree(n) if isinstance(n, tuple) else self.words[n] for n in node[1:])
        return Tree(label, tuple(parts))

    def trees(self, sentence: Any, allowed: Allowed | None = None) -> dict[Tree, float]:
        """All trees and p(tree, sentence)."""
        found = self.oracle.derivations(self.numbers(sentence), allowed)
        return {self.tree(node): p for node, p in found}


def random_brackets(rng: Any, n: int, labels: Any = ()) -> list[Any]:
    """Some that do not cross each other, with a label now and then."""
    found: list[Any] = []
    for _ in range(rng.integers(1, 4)):
        start, end = sorted(rng.choice(n + 1, 2, replace=False).tolist())
        if any(a < start < b < end or start < a < end < b for *_, a, b in found):
            continue
        label = str(rng.choice(labels)) if len(labels) and rng.random() < 0.6 else None
        found.append((start, end) if label is None else (label, start, end))
    return found


# dense grammars, their sentences, and what the oracle says of these
EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
ALL, NONE, FIRST = 0, 1, 2
DTYPES = ("float64", "float32")


def make_symbols(k: int, t: int, n_words: int) -> DenseSymbols:
    """Symbols and words that are called by their numbers."""
    names = (tuple(f"{letter}{n}" for n in range(size)) for letter, size in (("N", k), ("P", t)))
    words = [str(word) for word in range(n_words)]
    return DenseSymbols(*names, Vocabulary(words), np.ones(n_words, np.int64))


def core_of(oracle: Grammar, dtype: str = "float64") -> DenseGrammar:
    k, t = oracle.K, oracle.T
    n_words = np.asarray(oracle.tables["words"]).shape[1]
    words = WordEmission(Categorical((t, n_words)), (t, n_words))
    root, rules = Categorical((1, k + t)), Categorical((k, (k + t) ** 2))
    return DenseGrammar(make_symbols(k, t, n_words), root, rules, words, dtype)


def shard_of(sentences: Sequence[Sentence], oracle: Grammar) -> TreeShard:
    """Spans may be anything, nothing, or the first nonterminal."""
    indptr = np.cumsum([0] + [len(one.words) for one in sentences])
    tokens = np.array([w for one in sentences for w in one.words], np.int32)
    weights = np.array([one.weight for one in sentences])
    states, sets = StateSets.all_of(oracle.T), np.zeros(len(tokens), np.int32)
    text = SentenceShard(np.arange(len(sentences)), tokens, indptr, sets, states, weights)
    if all(one.allowed is None for one in sentences):
        return TreeShard(text, SpanConstraints.unconstrained(oracle.K))
    known: list[int] = []
    for one in sentences:
        n, allowed = len(one.words), one.allowed or {}
        for w in range(2, n + 1):
            for i in range(n - w + 1):
                some = allowed.get((i, i + w))
                known.append(ALL if some is None else FIRST if some else NONE)
    every = np.ones((3, oracle.K), np.bool_)
    every[NONE], every[FIRST, 1:] = False, False
    sizes = np.array([len(one.words) * (len(one.words) - 1) // 2 for one in sentences])
    return TreeShard(text, SpanConstraints(np.array(known, np.int64), every, sizes))


@st.composite
def cases(draw: Any, most: int = 5) -> tuple[Grammar, list[Sentence]]:
    k, t = draw(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    oracle = Grammar(random_tables(rng, k, t, 3, draw(st.sampled_from([0.3, 1.0]))), k, t)
    sentences = []
    for words in draw(st.lists(st.lists(st.integers(0, 2), max_size=most), min_size=1, max_size=4)):
        n, allowed = len(words), None
        if n > 2 and draw(st.booleans()):
            i = draw(st.integers(0, n - 2))
            j = draw(st.integers(i + 2, n))
            allowed = dict(not_crossing(n, [(i, j)]))
            if draw(st.booleans()):
                allowed[i, j] = {0}
        sentences.append(Sentence(words, draw(st.sampled_from([1.0, 0.5, 3.0])), allowed))
    return oracle, sentences


def long_text(rng: Any, lengths: Sequence[int]) -> tuple[Grammar, TreeShard]:
    oracle = Grammar(random_tables(rng, 5, 7, 20, 0.5), 5, 7)
    sentences = [Sentence(rng.integers(0, 20, n).tolist()) for n in lengths]
    return oracle, shard_of(sentences, oracle)


# dense grammars with priors, and all trees of sentences with log p(words, trees)
NAMES = ("root", "rules", "words")


@dataclass
class PriorCase:
    """A dense grammar of K nonterminals and T preterminals; priors of all entries, by table."""

    sentences: list
    K: int
    T: int
    priors: dict
    families: dict | None = None

    @cached_property
    def core(self):
        made = dict(self.families or {})
        for name, alpha in self.priors.items():
            if name not in made:
                made[name] = Categorical(alpha.shape, prior=alpha)
        words = WordEmission(made["words"], self.priors["words"].shape)
        symbols = make_symbols(self.K, self.T, self.priors["words"].shape[1])
        return DenseGrammar(symbols, made["root"], made["rules"], words)

    @cached_property
    def corpus(self):
        lengths = [len(words) for words in self.sentences]
        tokens = np.array([w for words in self.sentences for w in words], np.int32)
        numbers, sets = np.arange(len(lengths)), np.zeros(len(tokens), np.int32)
        known = (StateSets.all_of(self.T), np.ones(len(lengths)))
        text = SentenceShard(numbers, tokens, np.cumsum([0, *lengths]), sets, *known)
        return TreeCorpus(SentenceCorpus(text), SpanConstraints.unconstrained(self.K))

    @property
    def shard(self):
        return self.corpus.everything

    @cached_property
    def oracle(self):
        """Even probabilities, so that all trees are possible."""
        even = {name: np.full(a.shape, 1.0 / a.shape[1]) for name, a in self.priors.items()}
        return Grammar(even, self.K, self.T)

    def cells(self, tree):
        """Numbers of the entries of a derivation, tables being numbered through."""
        sizes = [self.priors[name].size for name in NAMES]
        begin = dict(zip(NAMES, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        return tuple(
            begin[table] + row * self.priors[table].shape[1] + column
            for table, row, column in self.oracle.events(tree)
        )

    @cached_property
    def choices(self):
        """The cells of all trees of each sentence."""
        return [
            [self.cells(tree) for tree, _ in self.oracle.derivations(words)] if words else [()]
            for words in self.sentences
        ]

    def joint(self, state, priors=None):
        """log p(words, trees) = Σ_rows log [Γ(A) / Γ(A + N) Π Γ(α + n) / Γ(α)], zeros left out."""
        priors = priors or self.priors
        flat = np.zeros(sum(a.size for a in priors.values()))
        np.add.at(flat, [cell for cells in state for cell in cells], 1.0)
        log_p, begin = 0.0, 0
        for name in NAMES:
            table = priors[name]
            counts = flat[begin : begin + table.size].reshape(table.shape)
            begin += table.size
            for alpha, n in zip(table, counts, strict=True):
                if n[alpha == 0].any():
                    return -math.inf
                a, n = alpha[alpha > 0], n[alpha > 0]
                log_p += np.sum(gammaln(a + n) - gammaln(a))
                log_p += gammaln(a.sum()) - gammaln((a + n).sum())
        return float(log_p)

    def posterior(self, temper=1.0, priors=None):
        """p(trees | words) of all of them."""
        logs = {state: temper * self.joint(state, priors) for state in product(*self.choices)}
        total = np.logaddexp.reduce(list(logs.values()))
        return {state: math.exp(log - total) for state, log in logs.items() if log > -math.inf}


def small_case(K, T, sentences, size=0.3, n_words=2):
    rng = np.random.default_rng(3)
    shapes = {"root": (1, K + T), "rules": (K, (K + T) ** 2), "words": (T, n_words)}
    priors = {name: size * np.exp(rng.uniform(-2.0, 1.0, shape)) for name, shape in shapes.items()}
    return PriorCase(sentences, K, T, priors)


def state_of(sampler):
    return tuple(tuple(cells.tolist()) for cells in sampler.cells)


def as_derivations(state):
    borders = np.cumsum([0, *(len(cells) for cells in state)])
    flat = np.array([cell for cells in state for cell in cells], np.int64)
    return DerivationCells(flat, borders, np.zeros(len(state)))


def sampler_of(case, state=None, size=None, threads=1, start=None):
    """A sampler that begins with the first of all trees."""
    start = start or {name: family.uniform() for name, family in case.core.families.items()}
    first = as_derivations(state or [some[0] for some in case.choices])
    return CollapsedTrees(case.core, case.shard, start, first, size, threads)


def one_sweep_on(case, posterior, size, n=1000, temper=1.0, start=None):
    """Where one sweep leads to from states that are drawn from the posterior."""
    states, shares = list(posterior), np.array(list(posterior.values()))
    seen, rng = Counter(), np.random.default_rng(0)
    for t, at in enumerate(rng.choice(len(states), n, p=shares / shares.sum())):
        sampler = sampler_of(case, states[at], size, start=start)
        sampler.sweep(t, temper)
        seen[state_of(sampler)] += 1
    return seen


# random rule-based grammars, and sentences of theirs
SYMBOLS, WORDS = ("S", "A", "B", "C"), ("a", "b", "c")
SETS = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]], bool)
"""Some sets of symbols; the first has all."""


def random_rules(seed, cycles=True):
    """Rules of all kinds, one word a symbol at least; S, A or B is the root."""
    rng = np.random.default_rng(seed)
    counts = {}
    for n, symbol in enumerate(SYMBOLS):
        counts[GrammarRule(symbol, (str(rng.choice(WORDS)),), (True,))] = 1.0
        for _ in range(rng.integers(2, 5)):
            size = rng.choice([1, 2, 2, 3, 4])
            is_word = tuple(rng.random(size) < 0.3)
            items = tuple(str(rng.choice(WORDS if word else SYMBOLS)) for word in is_word)
            is_forward = cycles or items[0] in SYMBOLS[n + 1 :]
            if is_word != (False,) or is_forward:
                counts[GrammarRule(symbol, items, tuple(map(bool, is_word)))] = rng.random() + 0.1
    return estimate_rules(counts, {s: rng.random() + 0.1 for s in SYMBOLS[:3]})


@dataclass
class RuleCase:
    """A rule-based grammar, sentences, and inference over them."""

    rules: object
    sentences: list

    @cached_property
    def own(self):
        return BinarisedRules(self.rules)

    @cached_property
    def text(self):
        return make_rule_text(np.array([len(s) for s in self.sentences], np.int64))

    @cached_property
    def words(self):
        rows = self.own.find_rows(word for sentence in self.sentences for word in sentence)
        return self.own.make_lexical(self.rules.probabilities, rows)

    def tables(self, **how):
        return self.own.make_tables(self.rules.probabilities, self.own.root, **how)

    def infer(self, viterbi=False, text=None, allowed=None, weights=None, numbers=None, **how):
        tables, text = self.tables(viterbi=viterbi, allowed=allowed), text or self.text
        if weights is not None:
            text = text._replace(weights=weights)
        if numbers is not None:
            text = text._replace(numbers=numbers)
        return RuleInference(self.own, tables, self.words, text, **how)

    def expected(self, weights=None, text=None, allowed=None, **how):
        return self.infer(text=text, allowed=allowed, weights=weights, **how).inside_outside()

    def usage(self, counts):
        return SimpleNamespace(root=counts.root, rules=self.own.rule_counts(counts))

    def trace(self, viterbi=False, text=None, allowed=None, samples=1, stream=0, **how):
        return self.infer(viterbi, text, allowed, **how).trace(samples, stream)

    def trees(self, found, s, samples=1):
        for d in range(s * samples, (s + 1) * samples):
            codes = found.select(d)
            yield self.own.make_tree(codes, self.sentences[s], self.words)

    @cached_property
    def oracle(self):
        """The root is a rule more: how often it is used is 1, and then what rules it has."""
        pairs = zip(self.rules.rules, self.rules.probabilities, strict=True)
        roots = [("ROOT", (symbol,), p) for symbol, p in self.rules.root.items()]
        return oracles.Rules([(rule.lhs, rule.rhs, p) for rule, p in pairs] + roots, "ROOT")


def sentences_of(rules, seed, n=4, most=6):
    """Sentences of the grammar that are not too long, and some that are drawn word by word."""
    rng = np.random.default_rng(seed)
    drawn = (_drawn(rules, rng, most) if rng.random() < 0.9 else None for _ in range(n))
    return [
        words or [str(rng.choice(WORDS)) for _ in range(rng.integers(1, most + 1))]
        for words in drawn
    ]


def _drawn(rules, rng, most):
    """The longest of some sentences that are not too long."""
    found = []
    for _ in range(20):
        ahead, words = [str(rng.choice(list(rules.root)))], []
        while ahead and len(ahead) + len(words) <= most:
            symbol = ahead.pop()
            at = [r for r, rule in enumerate(rules.rules) if rule.lhs == symbol]
            rule = rules.rules[rng.choice(at, p=rules.probabilities[at])]
            ahead += reversed(rule.rhs)
            while ahead and ahead[-1] in WORDS:
                words.append(ahead.pop())
        if not ahead and len(found) < len(words) <= most:
            found = words
    return found


def random_case(rules, seed, *sizes):
    return RuleCase(rules, sentences_of(rules, seed, *sizes))


def as_tree(node):
    return Tree(node[0], tuple(as_tree(c) if isinstance(c, tuple) else c for c in node[1:]))


def all_trees(case, words, most_unary=5):
    """All trees, below the root that the oracle has, and their p."""
    found = Counter()
    for node, p in case.oracle.derivations(tuple(words), most_unary):
        found[as_tree(node[1])] += p
    return found


def random_sets(case, s, rng):
    """One of the `SETS` for each cell of a sentence, and p of the trees that keep to them."""
    n = len(case.sentences[s])
    sets = rng.choice(len(SETS), size=n * (n + 1) // 2, p=[0.6, 0.1, 0.15, 0.15])
    cells = dict(zip([(i, j) for i in range(n) for j in range(i + 1, n + 1)], sets, strict=True))
    numbers = {label: a for a, label in enumerate(case.own.labels)}

    def fits(one):
        return all(SETS[cells[i, j], numbers[label]] for label, i, j in one.spans())

    trees = {one: p for one, p in all_trees(case, case.sentences[s]).items() if fits(one)}
    return sets.astype(np.int64), trees
