"""The collapsed sampler of trees against enumeration of all trees of all sentences."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import softcount as sc
from softcount.core.errors import ImpossibleItem, LearnerError
from softcount.core.fit import fit
from softcount.engines import Local
from softcount.families import Categorical, SparseCategorical
from softcount.grammar import gibbs as kernel
from softcount.grammar.data import TreeShard
from softcount.grammar.gibbs import CollapsedTrees
from softcount.grammar.rule_based import RuleInference, make_rule_text
from softcount.grammar.rules import GrammarRule, parse_rules
from tests.grammar.cases import (
    NAMES,
    PriorCase,
    RuleCase,
    all_trees,
    one_sweep_on,
    random_case,
    random_rules,
    sampler_of,
    small_case,
    state_of,
)
from tests.oracles.chance import surprise
from tests.oracles.trees import as_node

# Collapsed trees against enumeration of all trees of all sentences, and log-gammas


SMALL = small_case(1, 2, [[0, 1, 0], [], [1, 0]])
CASES = [SMALL, small_case(2, 2, [[0, 1], [1, 0]]), small_case(1, 2, [[0, 1, 1], [1, 0], [1]])]
SIZES = [1, 3]


@st.composite
def cases(draw):
    K, T = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2)]))
    sentence = st.lists(st.integers(0, 1), max_size=3)
    sentences = draw(st.lists(sentence, min_size=1, max_size=4))
    return small_case(K, T, sentences, draw(st.sampled_from([1e-8, 0.1, 3.0])))


# what is counted
@given(cases(), st.integers(0, 2**64 - 1), st.sampled_from([0.3, 1.0, 4.0]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_sweep_keeps_counts_and_possible_trees(case, stream, temper, size):
    sampler, again = sampler_of(case, size=size), sampler_of(case, size=size)
    for each in (sampler, again):
        each.sweep(stream, temper)
        each.sweep(stream ^ 1, temper)
    state = state_of(sampler)
    assert state == state_of(again)
    assert all(cells in some for cells, some in zip(state, case.choices, strict=True))
    assert sampler.log_joint() == pytest.approx(case.joint(state), rel=1e-10, abs=1e-10)
    recount = Counter(cell for cells in state for cell in cells)
    found = sampler.counts()
    assert tuple(found) == NAMES
    flat = np.concatenate([found[name].ravel() for name in NAMES])
    assert {cell: n for cell, n in enumerate(flat) if n} == recount
    for name, table in found.items():
        assert table.shape == case.priors[name].shape


def test_counts_are_no_window_into_the_sampler():
    sampler = sampler_of(SMALL)
    before = sampler.log_joint()
    sampler.counts()["rules"][:] = 7.0
    assert sampler.log_joint() == before


# the posterior
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=["two sentences", "two symbols", "three sentences"])
def test_a_sweep_leaves_the_posterior_alone(case, size):
    posterior = case.posterior()
    seen = one_sweep_on(case, posterior, size)
    assert surprise(seen, posterior) < 1
    for name in ("rules", "words"):  # the test can tell
        other = case.posterior(priors=case.priors | {name: 6 * case.priors[name]})
        assert surprise(seen, other) > 1


def test_a_sweep_leaves_a_power_of_the_posterior_alone():
    posterior = SMALL.posterior(temper=0.5)
    seen = one_sweep_on(SMALL, posterior, 3, temper=0.5)
    assert surprise(seen, posterior) < 1
    assert surprise(seen, SMALL.posterior()) > 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wrong", ["all are accepted", "Q is forgotten"])
def test_other_rules_of_acceptance_would_be_found_out(wrong, size, monkeypatch):
    accept_or_reject = kernel.accept_or_reject

    def otherwise(old, new, possible, probabilities, prior, tally, number, seed, temper, accepted):
        if wrong == "all are accepted":
            temper = 0.0  # to this power all are alike
        else:
            probabilities = np.ones_like(probabilities)
        given = (prior, tally, number, seed, temper, accepted)
        accept_or_reject(old, new, possible, probabilities, *given)

    monkeypatch.setattr(kernel, "accept_or_reject", otherwise)
    posterior = SMALL.posterior()
    assert surprise(one_sweep_on(SMALL, posterior, size), posterior) > 1


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=["two sentences", "two symbols", "three sentences"])
def test_a_long_run_finds_the_posterior(case, size):
    sampler, seen, n = sampler_of(case, size=size), Counter(), 10_000
    for stream in range(n):
        sampler.sweep(stream)
        seen[state_of(sampler)] += 1
    distance = sum(abs(seen[state] / n - p) for state, p in case.posterior().items()) / 2
    assert distance < 0.08  # if all were accepted: 0.11 to 0.63


def test_impossible_entries():
    mask = np.array([[True, True], [True, False]])
    families = {"words": Categorical((2, 2), prior=SMALL.priors["words"], mask=mask)}
    case = PriorCase(SMALL.sentences, 1, 2, SMALL.priors | {"words": SMALL.priors["words"] * mask})
    case.families = families
    posterior, without = case.posterior(), SMALL.posterior().keys() - case.posterior().keys()
    assert len(posterior) > 1
    assert surprise(one_sweep_on(case, posterior, 1, n=600), posterior) < 1
    with pytest.raises(LearnerError, match=r"sentence [02] begins with a tree"):
        sampler_of(case, without.pop())


def test_frozen_rows_keep_what_they_have():
    theta = np.array([[0.9, 0.1], [0.2, 0.8]])
    frozen = Categorical((2, 2), frozen=np.array([True, True]))
    case = replace(SMALL, families={"words": frozen})
    start = {name: family.uniform() for name, family in case.core.families.items()}
    start["words"] = theta
    surely = case.priors | {"words": 1e6 * theta}
    posterior = case.posterior(priors=surely)
    assert surprise(one_sweep_on(case, posterior, 1, n=600, start=start), posterior) < 1
    assert surprise(one_sweep_on(case, posterior, 1, n=600), posterior) > 1
    state = next(iter(posterior))
    found = sampler_of(case, state, start=start).log_joint()
    assert found == pytest.approx(case.joint(state, surely), abs=1e-4)


# blocks, threads and chance
def many(n=40):
    rng = np.random.default_rng(1)
    sentences = [rng.integers(0, 5, rng.integers(0, 9)).tolist() for _ in range(n)]
    return small_case(3, 3, sentences, n_words=5)


def begun(case, stream=3):
    start = {name: family.random(np.random.default_rng(0)) for name, family in families(case)}
    return case.core.collapse([case.shard], start, stream)


def families(case):
    return case.core.families.items()


@pytest.mark.parametrize("size", [1, 7, 40])
def test_threads_change_nothing(size):
    case = many()
    first = state_of(begun(case))
    each = [sampler_of(case, first, size, threads) for threads in (1, 2, 3)]
    for sampler in each:
        for stream in range(3):
            sampler.sweep(stream)
    assert state_of(each[0]) == state_of(each[1]) == state_of(each[2])
    assert each[0].acceptance == each[2].acceptance


def test_streams_differ():
    case = many()
    found = set()
    for stream in range(4):
        sampler = begun(case)
        sampler.sweep(stream)
        found.add(state_of(sampler))
    assert len(found) == 4
    assert state_of(begun(case)) != state_of(begun(case, stream=4))


def test_acceptance_is_the_share_of_new_trees():
    case = small_case(2, 2, [[0, 1, 1, 0, 1, 0]] * 30 + [[]] * 10)
    sampler = begun(case)
    assert math.isnan(sampler.acceptance)
    for stream in range(20):
        before = state_of(sampler)
        sampler.sweep(stream)
        changed = sum(a != b for a, b in zip(before, state_of(sampler), strict=True))
        assert changed / 30 <= sampler.acceptance <= 1.0
    assert sampler.acceptance > 0.0


def test_nothing_to_sample():
    sampler = begun(small_case(1, 1, [[], []]))
    sampler.sweep(0)
    assert state_of(sampler) == ((), ())
    assert sampler.log_joint() == 0.0
    assert math.isnan(sampler.acceptance)


def test_tiny_priors():
    case = small_case(2, 2, [[0, 1, 1, 0, 1, 0, 0, 1]] * 10, size=1e-40)
    sampler = begun(case)
    for stream in range(5):
        sampler.sweep(stream)
    assert math.isfinite(sampler.log_joint())
    assert sampler.counts()["words"].sum() == 80


# what cannot be
@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"tied": np.array([0, 0])}, "words have tied rows"),
        ({"prior": 1e-80}, "prior of the words"),
        ({"prior": 1e20}, "prior of the words"),
    ],
)
def test_tables_that_cannot_be_integrated_out(family, message):
    case = replace(SMALL, families={"words": Categorical((2, 2), **family)})
    with pytest.raises(LearnerError, match=message):
        begun(case)


def test_weights_cannot_be():
    text = replace(SMALL.shard.text, weights=np.array([1.0, 2.0, 1.0]))
    start = {name: family.uniform() for name, family in families(SMALL)}
    with pytest.raises(LearnerError, match="there can be no weights"):
        SMALL.core.collapse([TreeShard(text, SMALL.shard.constraints)], start, 0)


def test_a_sentence_that_cannot_be():
    start = {name: family.uniform() for name, family in families(SMALL)}
    start["words"] = np.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ImpossibleItem, match="item 0 has probability zero"):
        SMALL.core.collapse([SMALL.shard], start, 0)


# in the loop
def test_the_learner():
    patterns = [[0, 2, 1], [0, 2], [0, 0, 2, 1], [1, 0, 2]]
    case = small_case(2, 3, patterns * 8, size=0.1, n_words=3)

    def start(rng):
        return {name: family.random(rng) for name, family in families(case)}

    learner = sc.CollapsedGibbs(max_iter=15)
    found = [
        fit(case.core, case.corpus, learner, Local(threads), init=start, seed=1)
        for threads in (1, 2)
    ]
    for name, table in found[0].params.items():
        np.testing.assert_array_equal(table, found[1].params[name])
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    objectives = [step.log_likelihood for step in found[0].trace]
    assert objectives[-1] > objectives[0] + 0.2 * abs(objectives[0])


# The cells of derivations against the trees that these are


# dense grammars
@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (2, 1), (2, 3)]))
@settings(max_examples=30, deadline=None)
def test_cells_of_trees(seed, sizes):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, 4)
    case = small_case(*sizes, [rng.integers(0, 3, n).tolist() for n in lengths], n_words=3)
    start = {name: family.random(rng) for name, family in case.core.families.items()}
    found = case.core.sample_derivations(start, case.shard, seed)
    nodes, _ = case.core.infer(start, case.shard).trace(False, seed)
    for s, words in enumerate(case.sentences):
        begin = 2 * case.shard.text.indptr[s]
        rows = slice(begin, begin + 2 * len(words) - 1)
        own = found.cells[found.indptr[s] : found.indptr[s + 1]].tolist()
        if not words:
            assert own == []
            continue
        tree = as_node(nodes.symbols[0, rows], nodes.ends[0, rows], words)
        assert own == list(case.cells(tree))


def test_new_words_and_impossible_sentences_have_no_cells():
    case = small_case(1, 1, [[0, 1], [2, 0], [1, 1]], n_words=3)
    start = {name: family.uniform() for name, family in case.core.families.items()}
    start["words"] = np.array([[1.0, 0.0, 0.0]])
    found = case.core.sample_derivations(start, case.shard, 0)
    assert np.isneginf(found.log_p).all()
    assert found.indptr.tolist() == [0, 0, 0, 0]
    nodes, log_p = case.core.infer(case.oracle.tables, case.shard).trace(False)
    known = case.core.list_cells(case.shard, nodes, log_p, n_words=2)
    # roots 0 and 1, rules 2 to 5, words 6 and 7; word 2 is new
    assert np.split(known.cells, known.indptr[1:-1])[1].tolist() == [0, 5, 6]
    assert np.diff(known.indptr).tolist() == [4, 3, 4]


# grammars of rules
def rules_in(tree, rules):
    """The numbers of a tree's rules, top-down."""
    number = {rule: r for r, rule in enumerate(rules.rules)}
    return [number[_rule(node)] for node in tree.nodes()]


def _rule(node):
    labels = tuple(c if isinstance(c, str) else c.label for c in node.children)
    return GrammarRule(node.label, labels, tuple(isinstance(c, str) for c in node.children))


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_cells_of_rules(seed):
    rules = random_rules(seed)
    case = random_case(rules, seed)
    case.sentences.insert(1, [])
    derived = case.trace(stream=seed)
    found = case.infer().list_cells(derived)
    assert np.array_equal(found.log_p, derived.log_p)
    for s in range(len(case.sentences)):
        own = found.cells[found.indptr[s] : found.indptr[s + 1]].tolist()
        (tree,) = case.trees(derived, s)
        if tree is None:
            assert own == []
            continue
        n = len(rules.symbols)
        assert own == [rules.symbols.index(tree.label)] + [n + r for r in rules_in(tree, rules)]


def test_words_in_no_rule_have_no_cell():
    rules = parse_rules("S -> S S [0.5] | 'a' [0.5]")
    case = RuleCase(rules, [["a", "b"]])
    words = case.own.make_lexical(rules.probabilities, np.array([0, 2]), unknown=np.array([[0.1]]))
    inference = RuleInference(case.own, case.tables(), words, case.text)
    found = inference.list_cells(inference.trace())
    assert found.cells.tolist() == [0, 1, 2]  # root, S -> S S, S -> 'a'
    assert found.indptr.tolist() == [0, 3]


# the sampler of rules
@dataclass
class Drawn:
    """A grammar of rules that the sampler can draw derivations by."""

    case: RuleCase
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

    def sample_derivations(self, params, shard, stream, threads=1):
        own = self.case.own
        sentences = [self.case.sentences[s] for s in shard]
        words = own.make_lexical(
            params["rules"], own.find_rows(w for some in sentences for w in some)
        )
        lengths = np.array([len(some) for some in sentences], np.int64)
        text = make_rule_text(lengths, numbers=np.asarray(shard))
        grammar = own.make_tables(params["rules"], params["root"][0])
        inference = RuleInference(own, grammar, words, text, threads=threads)
        return inference.list_cells(inference.trace(stream=stream))


class OfRules:
    """What `one_sweep_on` asks for; all derivations are found by enumeration."""

    def __init__(self, text, sentences, size=0.3):
        rules = parse_rules(text)
        n = len(rules.symbols)
        case = RuleCase(replace(rules, root=dict.fromkeys(rules.symbols, 1.0 / n)), sentences)
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
                for tree in all_trees(self.case, words)
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
    core, start = (
        case.core,
        {"root": np.array([[0.5, 0.5]]), "rules": case.case.rules.probabilities},
    )
    first = core.sample_derivations(start, case.shard, 1)
    sampler = CollapsedTrees(core, case.shard, start, first, 4)
    for stream in range(10):  # chains of unary rules may be of any length
        sampler.sweep(stream)
        recount = Counter(c for own in state_of(sampler) for c in own)
        found = sampler.counts()
        flat = np.concatenate([found["root"][0], found["rules"]])
        assert {c: n for c, n in enumerate(flat) if n} == recount
    assert found["root"].sum() == 9
