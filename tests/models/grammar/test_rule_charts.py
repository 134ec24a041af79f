"""Charts of any rules: against sums over spans, over derivations, matrix inverses, and a peer."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import LearnerError
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.kernels.rules import closure
from softcount.grammar.rules import Rule, from_text
from tests.models.grammar.rule_cases import (
    SETS,
    SYMBOLS,
    Case,
    random_case,
    random_rules,
    random_sets,
    trees_of,
)
from tests.oracles import trees as oracles

seeds = st.integers(0, 2**32 - 1)


# sums
@given(seeds)
@settings(max_examples=12, deadline=None)
def test_likelihoods_and_counts(seed):
    case = random_case(random_rules(seed), seed)
    tally = case.expected(np.arange(1.0, 5.0))
    logs = [case.oracle.log_p(words) for words in case.sentences]
    assert tally.logs == pytest.approx(logs, abs=1e-11)
    used = case.used(tally)
    wanted = np.zeros(len(case.oracle.rules))
    for weight, words, log in zip(range(1, 5), case.sentences, logs, strict=True):
        if log > -np.inf:
            wanted += weight * np.array(case.oracle.counts(words))
    n = len(case.rules)
    assert used.rules == pytest.approx(wanted[:n], abs=1e-10)
    numbers = [case.own.labels.index(symbol) for symbol in case.rules.root]
    assert used.root[numbers] == pytest.approx(wanted[n:], abs=1e-10)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_spans(seed):
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    wanted, found = Counter(), Counter()
    trees = trees_of(case, case.sentences[0])
    for one, p in trees.items():
        for label, start, end in one.spans():
            wanted[start, end, label] += p / sum(trees.values())
    for i, j, symbol, number in zip(
        *rule_passes.spans(case.own, case.grammar(), case.words, case.text, 0), strict=True
    ):
        found[i, j, case.own.labels[symbol]] += number
    assert found.keys() == wanted.keys()
    assert dict(found) == pytest.approx(dict(wanted), abs=1e-11)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_chains_are_the_inverse(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), size=5)[:, :5] * (rng.random((5, 5)) < 0.5)
    assert closure(table) == pytest.approx(np.linalg.inv(np.eye(5) - table), rel=1e-9, abs=1e-12)
    powers = [np.linalg.matrix_power(table > 0.0, n) for n in range(6)]
    assert ((closure(table) > 0.0) == (sum(p.astype(int) for p in powers) > 0)).all()


def test_chains_without_an_end_are_an_error():
    case = Case(from_text("S -> S [0.5] | 'a'"), [["a"]])
    with pytest.raises(LearnerError, match="no finite sum"):
        case.own.grammar(np.array([1.0, 0.0]), case.own.root)


# derivations
@given(seeds)
@settings(max_examples=25, deadline=None)
def test_best_trees(seed):
    case = random_case(random_rules(seed), seed)
    found = case.derived(best=True)
    chances = dict(zip(case.rules.rules, case.rules.chances, strict=True))
    for s, words in enumerate(case.sentences):
        (mine,) = case.trees(found, s)
        wanted = largest(case.rules, words)
        assert found.logs[s] == pytest.approx(oracles.log(wanted), abs=1e-11)
        assert (mine is None) == (wanted == 0.0)
        if mine is not None:
            steps = [chances[_rule(node)] for node in mine.nodes()]
            assert math.prod(steps, start=case.rules.root[mine.label]) == pytest.approx(wanted)
            assert mine.words() == words


def largest(rules, words):
    """p of the best tree: that of each span and symbol, again and again until nothing changes."""
    n, best = len(words), Counter()

    def over(items, i, j):
        (item, is_word), rest = items[0], items[1:]
        if rest:
            return max(
                (over(items[:1], i, k) * over(rest, k, j) for k in range(i + 1, j)), default=0
            )
        return float(words[i:j] == [item]) if is_word else best[item, i, j]

    for i, j in sorted(combinations(range(n + 1), 2), key=_width):
        for _ in SYMBOLS:
            for rule, p in zip(rules.rules, rules.chances, strict=True):
                value = p * over(list(zip(rule.rhs, rule.is_word, strict=True)), i, j)
                best[rule.lhs, i, j] = max(best[rule.lhs, i, j], value)
    return max(p * best[symbol, 0, n] for symbol, p in rules.root.items())


def _width(span):
    return span[1] - span[0]


def _rule(node):
    is_word = tuple(isinstance(child, str) for child in node.children)
    items = tuple(c if isinstance(c, str) else c.label for c in node.children)
    return Rule(node.label, items, is_word)


def check_draws(case, n, stream):
    found = case.derived(samples=n, stream=stream)
    assert found.logs == pytest.approx(case.expected().logs, abs=1e-12)
    for s, words in enumerate(case.sentences):
        trees = trees_of(case, words)
        total = sum(trees.values())
        drawn = Counter(case.trees(found, s, n))
        for one, p in trees.items():
            share = p / total
            slack = 6.0 * math.sqrt(share * (1.0 - share) / n) + 1.0 / n
            assert drawn[one] / n == pytest.approx(share, abs=slack)
        assert sum(drawn[one] for one in trees) == (n if trees else 0)


@given(seeds)
@settings(max_examples=5, deadline=None)
def test_drawn_trees(seed):
    check_draws(random_case(random_rules(seed, cycles=False), seed, 2, 4), 2000, seed)


@pytest.mark.parametrize(
    "text",
    [
        "S -> S S [0.5] | 'a'",
        "S -> S S [0.3] | S S S [0.2] | A | 'a'\nA -> 'a' S [0.7] | 'a'",
    ],
)
def test_drawn_trees_of_many_shapes(text):
    check_draws(Case(from_text(text), [["a"] * 4, ["a"] * 5]), 2000, 17)


def test_draws_depend_on_the_sentence_and_the_stream_alone():
    case = random_case(random_rules(3), 3, 6)
    first, again, other = (case.derived(samples=5, stream=s) for s in (1, 1, 2))
    assert (first.codes == again.codes).all()
    assert len(first.codes) != len(other.codes) or (first.codes != other.codes).any()
    alone = Case(case.rules, case.sentences[2:3])
    about = (alone.grammar(), case.words._replace(rows=alone.words.rows), alone.text)
    found = rule_passes.derived(*about, np.array([2]), samples=5, stream=1)
    begin, end = first.borders[10], first.borders[15]
    assert (found.codes == first.codes[begin:end]).all()


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_what_derivations_add_up_to(seed):
    case = random_case(random_rules(seed), seed)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    found = case.derived(samples=3, stream=seed)
    used = case.used(rule_passes.counted(case.own, case.words, found, weights))
    wanted, roots = Counter(), Counter()
    for s in range(4):
        for one in case.trees(found, s, 3):
            for node in one.nodes() if one else []:
                wanted[_rule(node)] += weights[s] / 3
            if one:
                roots[one.label] += weights[s] / 3
    assert used.rules == pytest.approx([wanted[rule] for rule in case.rules.rules])
    assert used.root == pytest.approx([roots[label] for label in case.own.labels])


# what is known
@given(seeds)
@settings(max_examples=25, deadline=None)
def test_sets_of_symbols(seed):
    case = random_case(random_rules(seed, cycles=False), seed, 2, 5)
    sets, trees = random_sets(case, 1, np.random.default_rng(seed))
    text = case.text._replace(begins=np.array([-1, 0]), sets=sets)
    tally = case.expected(np.array([0.0, 1.0]), text, SETS)
    free = case.oracle.log_p(case.sentences[0])
    assert tally.logs == pytest.approx([free, oracles.log(math.fsum(trees.values()))], abs=1e-11)
    wanted = Counter()
    for one, p in trees.items():
        for node in one.nodes():
            wanted[_rule(node)] += p / sum(trees.values())
    assert case.used(tally).rules == pytest.approx([wanted[r] for r in case.rules.rules], abs=1e-10)
    (mine,) = case.trees(case.derived(True, text, SETS), 1)
    assert (mine is None) == (not trees)
    if trees:
        assert trees[mine] == pytest.approx(max(trees.values()))


def test_a_flat_rule_crosses_nothing():
    case = Case(from_text("S -> A A A [0.5] | A B\nA -> 'a'\nB -> A A"), [["a", "a", "a"]])
    cells = [(i, j) for i in range(3) for j in range(i + 1, 4)]
    sets = np.array([int(span == (1, 3)) for span in cells])
    text = case.text._replace(begins=np.array([0]), sets=sets)
    tally = case.expected(text=text, allowed=np.array([[True] * 3, [False] * 3]))
    assert tally.logs == pytest.approx([math.log(0.5)])


def test_words_that_are_in_no_rule():
    case = Case(from_text("S -> A B\nA -> 'a'\nB -> 'b' | A"), [["a", "?"], ["?", "?"], ["?", "b"]])
    assert (case.expected().logs == -np.inf).all()
    more = np.array([[0.0, 0.5, 0.25]])  # of S, A, B
    unknown = len(case.own.word_rows)
    rows = np.where(case.words.rows == unknown, unknown + 1, case.words.rows)
    words = case.own.words(case.rules.chances, rows, more)
    about = (case.grammar(), words, case.text, np.ones(3))
    tally = rule_passes.expected(case.own, *about)
    assert np.exp(tally.logs) == pytest.approx([0.5, 0.25, 0.25])
    used = case.own.used(tally, words)
    # the second word is a B, half of the time by way of A
    assert used.more == pytest.approx(np.array([[0.0, 3.0, 1.0]]))
    assert used.rules == pytest.approx([3.0, 1.0, 1.0, 1.0])
    found = rule_passes.derived(case.grammar(), words, case.text, np.arange(3))
    assert str(case.own.tree(found.codes[: found.borders[1]], ["a", "?"], words)).startswith(
        "(S (A a)"
    )
