"""The cells of derivations against the trees that these are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from softcount.families import Categorical, SparseCategorical
from softcount.grammar import gibbs as cells
from softcount.grammar import inside_outside as passes
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.gibbs import CollapsedTrees
from softcount.grammar.rules import Rule, from_text
from tests.models.grammar.rule_cases import Case, random_case, random_rules, trees_of
from tests.models.grammar.tree_cases import one_sweep_on, small_case, state_of
from tests.oracles.chance import surprise
from tests.oracles.trees import as_node


# dense grammars
@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (2, 1), (2, 3)]))
@settings(max_examples=30, deadline=None)
def test_cells_of_trees(seed, sizes):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, 4)
    case = small_case(*sizes, [rng.integers(0, 3, n).tolist() for n in lengths], n_words=3)
    start = {name: family.random(rng) for name, family in case.core.families.items()}
    found = case.core.derivations(start, case.shard, seed)
    nodes, _ = passes.trace_trees(case.shard, case.core.passing(start, case.shard, 1), False, seed)
    for s, words in enumerate(case.sentences):
        begin = 2 * case.shard.text.indptr[s]
        rows = slice(begin, begin + 2 * len(words) - 1)
        own = found.cells[found.borders[s] : found.borders[s + 1]].tolist()
        if not words:
            assert own == []
            continue
        tree = as_node(nodes.symbols[0, rows], nodes.ends[0, rows], words)
        assert own == list(case.cells(tree))


def test_new_words_and_impossible_sentences_have_no_cells():
    case = small_case(1, 1, [[0, 1], [2, 0], [1, 1]], n_words=3)
    start = {name: family.uniform() for name, family in case.core.families.items()}
    start["words"] = np.array([[1.0, 0.0, 0.0]])
    found = case.core.derivations(start, case.shard, 0)
    assert np.isneginf(found.logs).all()
    assert found.borders.tolist() == [0, 0, 0, 0]
    nodes, logs = passes.trace_trees(
        case.shard, case.core.passing(case.oracle.tables, case.shard, 1), False
    )
    known = cells.of_trees(case.core.shape, 2, case.shard, nodes, logs)
    # roots 0 and 1, rules 2 to 5, words 6 and 7; word 2 is new
    assert np.split(known.cells, known.borders[1:-1])[1].tolist() == [0, 5, 6]
    assert np.diff(known.borders).tolist() == [4, 3, 4]


# grammars of rules
def rules_in(tree, rules):
    """The numbers of a tree's rules, top-down."""
    number = {rule: r for r, rule in enumerate(rules.rules)}
    return [number[_rule(node)] for node in tree.nodes()]


def _rule(node):
    labels = tuple(c if isinstance(c, str) else c.label for c in node.children)
    return Rule(node.label, labels, tuple(isinstance(c, str) for c in node.children))


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_cells_of_rules(seed):
    rules = random_rules(seed)
    case = random_case(rules, seed)
    case.sentences.insert(1, [])
    derived = case.derived(stream=seed)
    found = cells.of_rules(case.own, case.words, derived)
    assert np.array_equal(found.logs, derived.logs)
    for s in range(len(case.sentences)):
        own = found.cells[found.borders[s] : found.borders[s + 1]].tolist()
        (tree,) = case.trees(derived, s)
        if tree is None:
            assert own == []
            continue
        n = len(rules.symbols)
        assert own == [rules.symbols.index(tree.label)] + [n + r for r in rules_in(tree, rules)]


def test_words_in_no_rule_have_no_cell():
    rules = from_text("S -> S S [0.5] | 'a' [0.5]")
    case = Case(rules, [["a", "b"]])
    words = case.own.words(rules.chances, np.array([0, 2]), more=np.array([[0.1]]))
    derived = rule_passes.derived(case.grammar(), words, case.text, np.arange(1))
    found = cells.of_rules(case.own, words, derived)
    assert found.cells.tolist() == [0, 1, 2]  # root, S -> S S, S -> 'a'
    assert found.borders.tolist() == [0, 3]


# the sampler of rules
@dataclass
class Drawn:
    """A grammar of rules that the sampler can draw derivations by."""

    case: Case
    alpha: np.ndarray

    def __post_init__(self):
        rules = self.case.rules
        n = len(rules.symbols)
        self.families = {
            "root": Categorical((1, n), prior=self.alpha[:n][None]),
            "rules": SparseCategorical(rules.indptr, prior=self.alpha[n:]),
        }

    def blocks(self, shard, size):
        return [shard[i : i + size] for i in range(0, len(shard), size)]

    def derivations(self, params, shard, stream, threads=1):
        own = self.case.own
        sentences = [self.case.sentences[s] for s in shard]
        words = own.words(params["rules"], own.rows(w for some in sentences for w in some))
        text = rule_passes.rule_text(np.array([len(some) for some in sentences], np.int64))
        grammar = own.grammar(params["rules"], params["root"][0])
        how = {"stream": stream, "threads": threads}
        return cells.of_rules(own, words, rule_passes.derived(grammar, words, text, shard, **how))


class OfRules:
    """What `one_sweep_on` asks for; all derivations are found by enumeration."""

    def __init__(self, text, sentences, size=0.3):
        rules = from_text(text)
        n = len(rules.symbols)
        case = Case(replace(rules, root=dict.fromkeys(rules.symbols, 1.0 / n)), sentences)
        alpha = size * np.random.default_rng(1).uniform(0.5, 2.0, n + len(case.rules))
        self.case, self.core, self.shard = case, Drawn(case, alpha), np.arange(len(sentences))
        self.row = np.concatenate([np.zeros(n, int), 1 + np.repeat(np.arange(n), self.sizes)])

    @property
    def sizes(self):
        return np.diff(self.case.rules.indptr)

    @property
    def choices(self):
        rules = self.case.rules
        n = len(rules.symbols)
        return [
            [
                (rules.symbols.index(tree.label), *(n + r for r in rules_in(tree, rules)))
                for tree in trees_of(self.case, words)
            ]
            for words in self.case.sentences
        ]

    def posterior(self, scale=1.0):
        alpha = scale * self.core.alpha
        totals = np.bincount(self.row, alpha)
        logs = {}
        for state in product(*self.choices):
            n = np.bincount([c for own in state for c in own], minlength=len(alpha))
            log = np.sum(gammaln(alpha + n) - gammaln(alpha))
            logs[state] = log - np.sum(gammaln(totals + np.bincount(self.row, n)) - gammaln(totals))
        total = np.logaddexp.reduce(list(logs.values()))
        return {state: np.exp(log - total) for state, log in logs.items()}


GRAMMAR = """
S -> A S [0.3] | A [0.3] | A 'b' A [0.4]
A -> 'a' [0.4] | 'b' [0.3] | B [0.2] | A A [0.1]
B -> 'a' [0.5] | 'b' [0.5]
"""


@pytest.mark.parametrize("size", [1, 2])
def test_a_sweep_over_rules_leaves_the_posterior_alone(size):
    case = OfRules(GRAMMAR, [["a", "b", "a"], ["b", "a"]])
    posterior = case.posterior()
    assert len(posterior) > 100
    seen = one_sweep_on(case, posterior, size, n=1000)
    assert surprise(seen, posterior) < 1
    assert surprise(seen, case.posterior(scale=6.0)) > 1


def test_the_sampler_of_rules_counts_what_it_has():
    case = OfRules(
        "S -> S S [0.3] | A [0.3] | 'b' [0.4]\nA -> S [0.5] | 'a' [0.5]", [["a", "b"]] * 9
    )
    core, start = case.core, {"root": np.array([[0.5, 0.5]]), "rules": case.case.rules.chances}
    first = core.derivations(start, case.shard, 1)
    sampler = CollapsedTrees(core, case.shard, start, first, 4)
    for stream in range(10):  # chains of unary rules may be of any length
        sampler.sweep(stream)
        recount = Counter(c for own in state_of(sampler) for c in own)
        found = sampler.counts()
        flat = np.concatenate([found["root"][0], found["rules"]])
        assert {c: n for c, n in enumerate(flat) if n} == recount
    assert found["root"].sum() == 9
