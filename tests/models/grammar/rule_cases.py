"""Random grammars of rules, and sentences of theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softcount.corpus.trees import Tree
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.binarised import Binarised
from softcount.grammar.rules import Rule, from_counts
from tests.oracles import trees as oracles

SYMBOLS, WORDS = ("S", "A", "B", "C"), ("a", "b", "c")
SETS = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]], bool)
"""Some sets of symbols; the first has all."""


def random_rules(seed, cycles=True):
    """Rules of all kinds, one word a symbol at least; S, A or B is the root."""
    rng = np.random.default_rng(seed)
    counts = {}
    for n, symbol in enumerate(SYMBOLS):
        counts[Rule(symbol, (str(rng.choice(WORDS)),), (True,))] = 1.0
        for _ in range(rng.integers(2, 5)):
            size = rng.choice([1, 2, 2, 3, 4])
            is_word = tuple(rng.random(size) < 0.3)
            items = tuple(str(rng.choice(WORDS if word else SYMBOLS)) for word in is_word)
            is_forward = cycles or items[0] in SYMBOLS[n + 1 :]
            if is_word != (False,) or is_forward:
                counts[Rule(symbol, items, tuple(map(bool, is_word)))] = rng.random() + 0.1
    return from_counts(counts, {s: rng.random() + 0.1 for s in SYMBOLS[:3]})


@dataclass
class Case:
    """A grammar, sentences, and all that is needed to go through them."""

    rules: object
    sentences: list

    @cached_property
    def own(self):
        return Binarised(self.rules)

    @cached_property
    def text(self):
        return rule_passes.rule_text(np.array([len(s) for s in self.sentences], np.int64))

    @cached_property
    def words(self):
        rows = self.own.rows(word for sentence in self.sentences for word in sentence)
        return self.own.words(self.rules.chances, rows)

    def grammar(self, **how):
        return self.own.grammar(self.rules.chances, self.own.root, **how)

    def expected(self, weights=None, text=None, allowed=None, **how):
        weights = np.ones(len(self.sentences)) if weights is None else weights
        about = (self.grammar(allowed=allowed), self.words, text or self.text, weights)
        return rule_passes.expected(self.own, *about, **how)

    def used(self, tally):
        return self.own.used(tally, self.words)

    def derived(self, best=False, text=None, allowed=None, **how):
        numbers = np.arange(len(self.sentences))
        grammar = self.grammar(best=best, allowed=allowed)
        return rule_passes.derived(grammar, self.words, text or self.text, numbers, **how)

    def trees(self, found, s, samples=1):
        for d in range(s * samples, (s + 1) * samples):
            codes = found.codes[found.borders[d] : found.borders[d + 1]]
            yield self.own.tree(codes, self.sentences[s], self.words)

    @cached_property
    def oracle(self):
        """The root is a rule more: how often it is used is 1, and then what rules it has."""
        pairs = zip(self.rules.rules, self.rules.chances, strict=True)
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
            rule = rules.rules[rng.choice(at, p=rules.chances[at])]
            ahead += reversed(rule.rhs)
            while ahead and ahead[-1] in WORDS:
                words.append(ahead.pop())
        if not ahead and len(found) < len(words) <= most:
            found = words
    return found


def random_case(rules, seed, *sizes):
    return Case(rules, sentences_of(rules, seed, *sizes))


def as_tree(node):
    return Tree(node[0], tuple(as_tree(c) if isinstance(c, tuple) else c for c in node[1:]))


def trees_of(case, words, most_unary=5):
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

    trees = {one: p for one, p in trees_of(case, case.sentences[s]).items() if fits(one)}
    return sets.astype(np.int64), trees
