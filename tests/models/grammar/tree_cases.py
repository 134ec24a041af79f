"""Dense grammars with priors, their sentences, and all trees of these with log p(words, trees)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import gammaln

from softcount.families import Categorical
from softcount.grammar.core import PCFGCore
from softcount.grammar.data import Limits, Sentences
from softcount.grammar.gibbs import CollapsedTrees, Derivations
from softcount.grammar.inside_outside import Shape
from softcount.hmm.core import Words
from softcount.hmm.data import Sentences as Texts
from softcount.hmm.data import Shard as Text
from softcount.hmm.data import StateSets
from tests.oracles.trees import Grammar

NAMES = ("root", "rules", "words")


@dataclass
class Case:
    """K nonterminals, T preterminals; priors of all entries, by table."""

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
        words = Words(made["words"], self.priors["words"].shape)
        return PCFGCore("grammar", made["root"], made["rules"], words, Shape(self.K, self.T))

    @cached_property
    def corpus(self):
        lengths = [len(words) for words in self.sentences]
        tokens = np.array([w for words in self.sentences for w in words], np.int32)
        numbers, sets = np.arange(len(lengths)), np.zeros(len(tokens), np.int32)
        known = (StateSets.all_of(self.T), np.ones(len(lengths)))
        text = Text(numbers, tokens, np.cumsum([0, *lengths]), sets, *known)
        return Sentences(Texts(text), Limits.none(self.K))

    @property
    def shard(self):
        return self.corpus.everything

    @cached_property
    def oracle(self):
        """Even chances, so that all trees are possible."""
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
    return Case(sentences, K, T, priors)


def state_of(sampler):
    return tuple(tuple(cells.tolist()) for cells in sampler.cells)


def as_derivations(state):
    borders = np.cumsum([0, *(len(cells) for cells in state)])
    flat = np.array([cell for cells in state for cell in cells], np.int64)
    return Derivations(flat, borders, np.zeros(len(state)))


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
