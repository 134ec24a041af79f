"""Symbols that are left out of charts as improbable: what stays, and what that loses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.grammar.kernels.rules import (
    ChartInput,
    CoarseGrammar,
    make_cell_workspace,
    pruned_inside,
    sentence_probability,
)
from softcount.grammar.rule_based import (
    RuleInference,
    add_pruning_losses,
    make_coarse_grammar,
    measure_pruning_loss,
    project,
)
from softcount.grammar.rules import parse_rules
from tests.grammar.cases import RuleCase, all_trees, random_case, random_rules

seeds = st.integers(0, 2**32 - 1)
HIGH = 0.1  # leaves out much, and loses sentences now and then


# what stays
@given(seeds)
@settings(max_examples=40, deadline=None)
def test_a_chart_has_the_trees_of_what_stays_and_no_others(seed):
    rng = np.random.default_rng(seed)
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    n, own, grammar = len(case.sentences[0]), case.own, case.tables()
    n_cells, size = n * (n + 1) // 2, own.n_symbols
    shares = (rng.random((n_cells, size)) < 0.8).astype(float)
    shares[:, own.n_nonterminals :] = 1.0  # rests of rules are no labels of trees
    classes = np.arange(size, dtype=np.int32)  # each symbol is one
    coarse = CoarseGrammar(0.5, classes, np.ones(size), grammar, case.words)
    work = make_cell_workspace(0, 1, case.text.indptr, grammar)
    given = ChartInput(case.text, grammar, case.words)
    chart, made = pruned_inside(0, given, work, coarse, shares)
    cells = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    stays = {
        (own.labels[a], *cells[c])
        for c in range(n_cells)
        for a in chart.symbols[chart.begins[c] : chart.ends[c]]
        if a < own.n_nonterminals
    }
    assert made >= sum(chart.ends - chart.begins)
    # what was to stay does, where it can be made of what stays
    trees = all_trees(case, case.sentences[0])
    open_spans = {
        (label, i, j)
        for c, (i, j) in enumerate(cells)
        for a, label in enumerate(own.labels)
        if shares[c, a]
    }
    for one in trees:
        if all(span in open_spans for span in one.spans()):
            assert all(span in stays for span in one.spans())
    wanted = sum(p for one, p in trees.items() if all(span in stays for span in one.spans()))
    found = sentence_probability(n, grammar, chart) * 2.0 ** chart.exponents[n - 1]
    assert found == pytest.approx(wanted, rel=1e-11)
    assert not work.below.any()
    assert not work.closed.any()


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_pruned_passes(seed):
    case = random_case(random_rules(seed), seed)
    full, less = case.expected(), case.expected(prune=HIGH)
    assert (less.log_p <= full.log_p + 1e-12).all()
    assert ((less.log_p > -np.inf) == (full.log_p > -np.inf)).all()
    used = case.usage(less)
    n_possible = np.count_nonzero(full.log_p > -np.inf)
    assert used.root.sum() == pytest.approx(n_possible)
    assert less.lexical.sum() == pytest.approx(
        sum(len(s) for s, log in zip(case.sentences, full.log_p, strict=True) if log > -np.inf)
    )
    best, found = case.trace(viterbi=True), case.trace(viterbi=True, prune=HIGH)
    assert (found.log_p <= best.log_p + 1e-12).all()
    for s, words in enumerate(case.sentences):
        (mine,) = case.trees(found, s)
        assert (mine is None) == (full.log_p[s] == -np.inf)
        if mine is not None:
            assert mine.words() == words
            assert math.log(chance(case.rules, mine)) == pytest.approx(found.log_p[s], abs=1e-11)
    drawn = case.trace(samples=3, prune=HIGH)
    assert drawn.log_p == pytest.approx(less.log_p, abs=1e-12)
    for s, words in enumerate(case.sentences):
        for one in case.trees(drawn, s, 3):
            assert one is None or (one.words() == words and chance(case.rules, one) > 0.0)


def chance(rules, tree):
    p = rules.root[tree.label]
    own = {
        (r.lhs, r.rhs, r.is_word): c for r, c in zip(rules.rules, rules.probabilities, strict=True)
    }
    for node in tree.nodes():
        words = tuple(isinstance(child, str) for child in node.children)
        items = tuple(c if isinstance(c, str) else c.label for c in node.children)
        p *= own[node.label, items, words]
    return p


def test_counts_are_those_of_the_trees_that_stay():
    # the first x is a B, and the second an A, one time in a thousand
    rules = parse_rules("S -> A B [0.999] | B A [0.001]\nA -> 'x'\nB -> 'x'")
    case = RuleCase(rules, [["x", "x"]])
    counts = case.expected(prune=0.01)
    assert counts.log_p == pytest.approx([math.log(0.999)])
    assert case.usage(counts).rules == pytest.approx([1.0, 0.0, 1.0, 1.0])
    assert counts.pruned.tolist() == [5.0, 2.0, 0.0]
    assert case.expected().log_p == pytest.approx([0.0])
    assert case.expected().pruned.tolist() == [0.0, 0.0, 0.0]


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_threshold_that_nothing_is_under_changes_nothing(seed):
    case = random_case(random_rules(seed), seed)
    full, same = case.expected(), case.expected(prune=1e-250)
    for a, b in zip(full[:-1], same[:-1], strict=True):
        assert a == pytest.approx(b, rel=1e-12)
    assert same.pruned[2] == 0.0


# the coarse grammar
@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_grammar_whose_classes_are_its_symbols_is_the_same(seed):
    case = random_case(random_rules(seed), seed)
    classes = np.arange(case.own.n_symbols, dtype=np.int32)
    coarse = project(case.tables(), case.words, classes, 0.1)
    inference = RuleInference(case.own, coarse.grammar, coarse.lexical, case.text)
    found = inference.inside_outside()
    wanted = case.expected()
    assert found.log_p == pytest.approx(wanted.log_p, abs=1e-11)
    assert found.root == pytest.approx(wanted.root)
    assert found.binary.sum() == pytest.approx(wanted.binary.sum())


def test_symbols_that_are_alike_may_be_one_class():
    alike = "-> A A2 [0.2] | A2 A A [0.1] | S [0.2] | 'a' [0.3] | 'b' [0.2]"
    text = f"S -> A A2 [0.3] | A2 A2 [0.1] | A [0.2] | A2 A A2 [0.4]\nA {alike}\nA2 {alike}"
    case = RuleCase(parse_rules(text), [list(s) for s in ("a", "ab", "bab", "abba", "aabab")])
    labels = case.own.labels
    classes = np.arange(case.own.n_symbols, dtype=np.int32)
    classes[labels.index("A2")] = labels.index("A")
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    coarse = project(case.tables(), case.words, classes, 0.1)
    inference = RuleInference(case.own, coarse.grammar, coarse.lexical, case.text)
    found = inference.inside_outside()
    assert found.log_p == pytest.approx(case.expected().log_p, abs=1e-11)


def test_classes():
    case = RuleCase(parse_rules("S -> 'x' A B A\nA -> 'a'\nB -> C\nC -> A A | 'c'"), [["x"]])
    coarse = make_coarse_grammar(case.tables(), case.words, 0.1)
    names = dict(zip(case.own.labels, coarse.classes.tolist(), strict=False))
    assert names["S"] == names["B"] == names["C"] != names["A"]
    word, *rests = coarse.classes[case.own.n_nonterminals :].tolist()
    assert len(set(rests)) == 1
    assert {word, rests[0]} == {2, 3}
    assert np.bincount(coarse.classes, coarse.priors) == pytest.approx([1.0] * 4)


# what is lost
def test_a_sentence_that_pruning_loses_is_done_again():
    case = random_case(random_rules(7), 7, 40, 7)
    full, less = case.expected(), case.expected(prune=0.9)
    possible = full.log_p > -np.inf
    assert 0.0 < less.pruned[2] <= np.count_nonzero(possible)
    assert (less.log_p[possible] > -np.inf).all()
    found = case.trace(viterbi=True, prune=0.9)
    assert (found.log_p[possible] > -np.inf).all()


def lose_by_pruning(case):
    inference = (case.infer(viterbi, prune=HIGH) for viterbi in (False, True))
    return add_pruning_losses([measure_pruning_loss(*inference)])


def test_losses_of_parts_are_those_of_the_whole():
    case = random_case(random_rules(5), 5, 30, 7)
    halves = case.sentences[:11], case.sentences[11:]
    parts = [
        measure_pruning_loss(*(one.infer(viterbi, prune=HIGH) for viterbi in (False, True)))
        for one in (RuleCase(case.rules, half) for half in halves)
    ]
    assert add_pruning_losses(parts) == pytest.approx(lose_by_pruning(case))


def test_pruning_loss():
    case = random_case(random_rules(5), 5, 30, 7)
    case.sentences += [[], ["?"]]
    full, less = case.expected(), case.expected(prune=HIGH)
    best, found = case.trace(viterbi=True), case.trace(viterbi=True, prune=HIGH)
    loss = lose_by_pruning(case)
    gaps = [a - b for a, b in zip(full.log_p, less.log_p, strict=True) if a > -np.inf]
    assert loss.sentences == len(gaps) - 1  # but for the empty one
    assert loss.worst == pytest.approx(max(gaps))
    assert loss.worst > 0.01
    assert loss.mean == pytest.approx(sum(gaps) / (len(gaps) - 1))
    assert loss.worse_trees == sum(
        b < a - 1e-9 for a, b in zip(best.log_p, found.log_p, strict=True) if a > -np.inf
    )
    assert loss.pruned == pytest.approx(less.pruned[1] / less.pruned[0])
    assert loss.parsed_again == less.pruned[2]


def test_nothing_to_lose():
    case = RuleCase(parse_rules("S -> 'a'"), [])
    loss = lose_by_pruning(case)
    assert loss == (0, 0.0, 0, 0.0, 0.0, 0)


def test_same_bits_for_any_number_of_threads():
    case = random_case(random_rules(11), 11, 60, 9)
    one, three = (case.expected(threads=threads, prune=0.01) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()
    one, three = (
        case.trace(samples=2, stream=5, threads=threads, prune=0.01) for threads in (1, 3)
    )
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_what_is_known_holds_for_classes_too(seed):
    rng = np.random.default_rng(seed)
    case = random_case(random_rules(seed, cycles=False), seed, 2, 5)
    allowed = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]], bool)
    n = len(case.sentences[1])
    sets = rng.choice(3, size=n * (n + 1) // 2, p=[0.7, 0.1, 0.2])
    text = case.text._replace(begins=np.array([-1, 0]), sets=sets.astype(np.int64))
    full = case.expected(text=text, allowed=allowed)
    less = case.expected(text=text, allowed=allowed, prune=HIGH)
    assert (less.log_p <= full.log_p + 1e-12).all()
    assert ((less.log_p > -np.inf) == (full.log_p > -np.inf)).all()
    same = case.expected(text=text, allowed=allowed, prune=1e-250)
    assert same.log_p == pytest.approx(full.log_p, abs=1e-11)


@pytest.mark.parametrize("prune", [-0.1, 1.0, float("nan")])
def test_thresholds_are_probabilities(prune):
    with pytest.raises(LearnerError, match="prune"):
        sc.PCFG.from_rules("S -> 'a'", prune=prune)
