"""Symbols that are left out of charts as improbable: what stays, and what that loses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import LearnerError
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.core import lost
from softcount.grammar.inside_outside import coarse_of, projected
from softcount.grammar.kernels.rules import Sieve, room_for, sifted_inside, whole
from softcount.grammar.rules import from_text
from tests.models.grammar.rule_cases import Case, random_case, random_rules, trees_of

seeds = st.integers(0, 2**32 - 1)
HIGH = 0.1  # leaves out much, and loses sentences now and then


# what stays
@given(seeds)
@settings(max_examples=40, deadline=None)
def test_a_chart_has_the_trees_of_what_stays_and_no_others(seed):
    rng = np.random.default_rng(seed)
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    n, own, grammar = len(case.sentences[0]), case.own, case.grammar()
    n_cells, size = n * (n + 1) // 2, own.n_symbols
    shares = (rng.random((n_cells, size)) < 0.8).astype(float)
    shares[:, own.n_known :] = 1.0  # rests of rules are no labels of trees
    sieve = Sieve(
        0.5, np.arange(size, dtype=np.int32), np.ones(size), shares.ravel(), np.zeros(size)
    )
    room = room_for(0, 1, case.text.indptr, grammar)
    chart, made = sifted_inside(0, case.text, grammar, case.words, room, sieve)
    cells = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    stays = {
        (own.labels[a], *cells[c])
        for c in range(n_cells)
        for a in chart.symbols[chart.begins[c] : chart.ends[c]]
        if a < own.n_known
    }
    assert made >= sum(chart.ends - chart.begins)
    # what was to stay does, where it can be made of what stays
    trees = trees_of(case, case.sentences[0])
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
    found = whole(n, grammar.root, False, chart) * 2.0 ** chart.powers[n - 1]
    assert found == pytest.approx(wanted, rel=1e-11)
    assert not room.base.any()
    assert not room.risen.any()
    assert not sieve.sums.any()


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_pruned_passes(seed):
    case = random_case(random_rules(seed), seed)
    full, less = case.expected(), case.expected(prune=HIGH)
    assert (less.logs <= full.logs + 1e-12).all()
    assert ((less.logs > -np.inf) == (full.logs > -np.inf)).all()
    used = case.used(less)
    n_possible = np.count_nonzero(full.logs > -np.inf)
    assert used.root.sum() == pytest.approx(n_possible)
    assert less.words.sum() == pytest.approx(
        sum(len(s) for s, log in zip(case.sentences, full.logs, strict=True) if log > -np.inf)
    )
    best, found = case.derived(best=True), case.derived(best=True, prune=HIGH)
    assert (found.logs <= best.logs + 1e-12).all()
    for s, words in enumerate(case.sentences):
        (mine,) = case.trees(found, s)
        assert (mine is None) == (full.logs[s] == -np.inf)
        if mine is not None:
            assert mine.words() == words
            assert math.log(chance(case.rules, mine)) == pytest.approx(found.logs[s], abs=1e-11)
    drawn = case.derived(samples=3, prune=HIGH)
    assert drawn.logs == pytest.approx(less.logs, abs=1e-12)
    for s, words in enumerate(case.sentences):
        for one in case.trees(drawn, s, 3):
            assert one is None or (one.words() == words and chance(case.rules, one) > 0.0)


def chance(rules, tree):
    p = rules.root[tree.label]
    own = {(r.lhs, r.rhs, r.is_word): c for r, c in zip(rules.rules, rules.chances, strict=True)}
    for node in tree.nodes():
        words = tuple(isinstance(child, str) for child in node.children)
        items = tuple(c if isinstance(c, str) else c.label for c in node.children)
        p *= own[node.label, items, words]
    return p


def test_counts_are_those_of_the_trees_that_stay():
    # the first x is a B, and the second an A, one time in a thousand
    rules = from_text("S -> A B [0.999] | B A [0.001]\nA -> 'x'\nB -> 'x'")
    case = Case(rules, [["x", "x"]])
    tally = case.expected(prune=0.01)
    assert tally.logs == pytest.approx([math.log(0.999)])
    assert case.used(tally).rules == pytest.approx([1.0, 0.0, 1.0, 1.0])
    assert tally.left_out.tolist() == [5.0, 2.0, 0.0]
    assert case.expected().logs == pytest.approx([0.0])
    assert case.expected().left_out.tolist() == [0.0, 0.0, 0.0]


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_threshold_that_nothing_is_under_changes_nothing(seed):
    case = random_case(random_rules(seed), seed)
    full, same = case.expected(), case.expected(prune=1e-250)
    for a, b in zip(full[:-1], same[:-1], strict=True):
        assert a == pytest.approx(b, rel=1e-12)
    assert same.left_out[2] == 0.0


# the coarse grammar
@given(seeds)
@settings(max_examples=10, deadline=None)
def test_a_grammar_whose_classes_are_its_symbols_is_the_same(seed):
    case = random_case(random_rules(seed), seed)
    classes = np.arange(case.own.n_symbols, dtype=np.int32)
    coarse = projected(case.grammar(), case.words, classes, 0.1)
    about = (coarse.grammar, coarse.words, case.text, np.ones(4))
    found = rule_passes.expected(case.own, *about)
    wanted = case.expected()
    assert found.logs == pytest.approx(wanted.logs, abs=1e-11)
    assert found.root == pytest.approx(wanted.root)
    assert found.joins.sum() == pytest.approx(wanted.joins.sum())


def test_symbols_that_are_alike_may_be_one_class():
    alike = "-> A A2 [0.2] | A2 A A [0.1] | S [0.2] | 'a' [0.3] | 'b' [0.2]"
    text = f"S -> A A2 [0.3] | A2 A2 [0.1] | A [0.2] | A2 A A2 [0.4]\nA {alike}\nA2 {alike}"
    case = Case(from_text(text), [list(s) for s in ("a", "ab", "bab", "abba", "aabab")])
    labels = case.own.labels
    classes = np.arange(case.own.n_symbols, dtype=np.int32)
    classes[labels.index("A2")] = labels.index("A")
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    coarse = projected(case.grammar(), case.words, classes, 0.1)
    found = rule_passes.expected(case.own, coarse.grammar, coarse.words, case.text, np.ones(5))
    assert found.logs == pytest.approx(case.expected().logs, abs=1e-11)


def test_classes():
    case = Case(from_text("S -> 'x' A B A\nA -> 'a'\nB -> C\nC -> A A | 'c'"), [["x"]])
    coarse = coarse_of(case.grammar(), case.words, 0.1)
    names = dict(zip(case.own.labels, coarse.classes.tolist(), strict=False))
    assert names["S"] == names["B"] == names["C"] != names["A"]
    word, *rests = coarse.classes[case.own.n_known :].tolist()
    assert len(set(rests)) == 1
    assert {word, rests[0]} == {2, 3}
    assert np.bincount(coarse.classes, coarse.priors) == pytest.approx([1.0] * 4)


# what is lost
def test_a_sentence_that_pruning_loses_is_done_again():
    case = random_case(random_rules(7), 7, 40, 7)
    full, less = case.expected(), case.expected(prune=0.9)
    possible = full.logs > -np.inf
    assert 0.0 < less.left_out[2] <= np.count_nonzero(possible)
    assert (less.logs[possible] > -np.inf).all()
    found = case.derived(best=True, prune=0.9)
    assert (found.logs[possible] > -np.inf).all()


def test_lost():
    case = random_case(random_rules(5), 5, 30, 7)
    case.sentences += [[], ["?"]]
    full, less = case.expected(), case.expected(prune=HIGH)
    best, found = case.derived(best=True), case.derived(best=True, prune=HIGH)
    own = case.own
    told = lost(own, case.rules.chances, own.root, case.words, case.text, HIGH)
    gaps = [a - b for a, b in zip(full.logs, less.logs, strict=True) if a > -np.inf]
    assert told.sentences == len(gaps) - 1  # but for the empty one
    assert told.worst == pytest.approx(max(gaps))
    assert told.worst > 0.01
    assert told.mean == pytest.approx(sum(gaps) / (len(gaps) - 1))
    assert told.trees == sum(
        b < a - 1e-9 for a, b in zip(best.logs, found.logs, strict=True) if a > -np.inf
    )
    assert told.share == pytest.approx(less.left_out[1] / less.left_out[0])
    assert told.again == less.left_out[2]


def test_nothing_to_lose():
    case = Case(from_text("S -> 'a'"), [])
    told = lost(case.own, case.rules.chances, case.own.root, case.words, case.text, HIGH)
    assert told == (0, 0.0, 0, 0.0, 0.0, 0)


def test_same_bits_for_any_number_of_threads():
    case = random_case(random_rules(11), 11, 60, 9)
    one, three = (case.expected(threads=threads, prune=0.01) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()
    one, three = (
        case.derived(samples=2, stream=5, threads=threads, prune=0.01) for threads in (1, 3)
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
    assert (less.logs <= full.logs + 1e-12).all()
    assert ((less.logs > -np.inf) == (full.logs > -np.inf)).all()
    same = case.expected(text=text, allowed=allowed, prune=1e-250)
    assert same.logs == pytest.approx(full.logs, abs=1e-11)


@pytest.mark.parametrize("prune", [-0.1, 1.0, float("nan")])
def test_thresholds_are_probabilities(prune):
    case = Case(from_text("S -> 'a'"), [["a"]])
    with pytest.raises(LearnerError, match="prune"):
        case.expected(prune=prune)
