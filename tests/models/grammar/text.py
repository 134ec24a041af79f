"""What tests of `PCFG` share: small grammars, sentences, learners."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.trees import Tree
from tests.models.learners import learners
from tests.oracles.trees import Allowed, Grammar, random_tables

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
        assert list(self.model.form_.vocabulary.words) == self.words
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
