"""The k best parses, and those of minimum Bayes risk, against all trees."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.grammar.core import SpanPosteriors
from softcount.grammar.parsing import UnaryRelations, make_tree, minimum_risk_brackets
from softcount.grammar.rules import parse_rules
from tests.grammar.cases import (
    SETS,
    RuleCase,
    all_trees,
    cases,
    core_of,
    random_case,
    random_rules,
    random_sets,
    shard_of,
)
from tests.oracles.trees import Grammar, Sentence, random_tables

# The k best trees, against all trees


some_k = st.sampled_from([1, 2, 7, 5000])
seeds = st.integers(0, 2**32 - 1)


def as_node(symbols: Any, words: Any, oracle: Grammar) -> Any:
    """A tree as the oracle has it: leaves have preterminals."""
    ahead, leaves = iter(symbols.tolist()), iter(words)

    def built() -> Any:
        symbol = next(ahead)
        return (symbol, next(leaves)) if symbol >= oracle.K else (symbol, built(), built())

    tree = built()
    assert [*ahead, *leaves] == []
    return tree


def check(found: list[Any], probabilities: dict[Any, float], k: int) -> None:
    """(log p, tree) are the k best, each once."""
    wanted = sorted(probabilities.values(), reverse=True)[:k]
    logs = [log_p for log_p, _ in found]
    assert logs == sorted(logs, reverse=True)
    np.testing.assert_allclose(logs, np.log(wanted), rtol=1e-10, atol=1e-10)
    assert len({tree for _, tree in found}) == len(found)
    for log_p, tree in found:
        assert math.log(probabilities[tree]) == pytest.approx(log_p, abs=1e-10)


# dense grammars
@settings(max_examples=40, deadline=None)
@given(case=cases(most=4), k=some_k)
def test_k_best_of_dense_grammars(case: Any, k: int) -> None:
    oracle, sentences = case
    shard = shard_of(sentences, oracle)
    every = core_of(oracle).infer(oracle.tables, shard, 1).k_best(k)
    for one, found in zip(sentences, every, strict=True):
        trees = [(log_p, as_node(symbols, one.words, oracle)) for log_p, symbols in found]
        check(trees, dict(oracle.derivations(one.words, one.allowed)) if one.words else {}, k)


def test_all_are_as_good() -> None:
    """Each of the 42 · 2⁵ trees of six words has the same probability; more are not to be had."""
    tables = {
        "root": np.full((1, 3), 1 / 3),
        "rules": np.full((2, 9), 1 / 9),
        "words": np.ones((1, 1)),
    }
    oracle = Grammar(tables, 2, 1)
    shard = shard_of([Sentence([0] * 6)], oracle)
    for k in (50, 10_000):
        (found,) = core_of(oracle).infer(tables, shard, 1).k_best(k)
        assert len(found) == min(k, 42 * 2**5)
        assert len({as_node(symbols, [0] * 6, oracle) for _, symbols in found}) == len(found)
        np.testing.assert_allclose([log_p for log_p, _ in found], -math.log(3) - 5 * math.log(9))


def test_what_cannot_be_has_no_trees() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    oracle.tables["words"][:, 2] = 0.0
    shard = shard_of([Sentence([0, 2, 1]), Sentence([]), Sentence([2])], oracle)
    assert core_of(oracle).infer(oracle.tables, shard, 1).k_best(3) == [[], [], []]


def test_sixty_words() -> None:
    rng = np.random.default_rng(8)
    oracle = Grammar(random_tables(rng, 20, 20, 50, 0.5), 20, 20)
    words = rng.integers(0, 50, 60).tolist()
    shard = shard_of([Sentence(words)], oracle)
    this = core_of(oracle).infer(oracle.tables, shard, 1)
    (found,) = this.k_best(10)
    trees = [as_node(symbols, words, oracle) for _, symbols in found]
    assert len(set(trees)) == 10
    for (log_p, _), tree in zip(found, trees, strict=True):
        steps = [oracle.tables[table][row, column] for table, row, column in oracle.events(tree)]
        assert np.log(steps).sum() == pytest.approx(log_p, abs=1e-9)
    assert found[0].log_p == pytest.approx(this.trace(viterbi=True)[1][0], abs=1e-9)


# grammars of rules
def parses(case: RuleCase, k: int, text: Any = None, allowed: Any = None) -> list[Any]:
    """(log p, tree) of each sentence."""
    every = case.infer(True, text, allowed).k_best(k)
    return [
        [(log_p, case.own.make_tree(codes, words, case.words)) for log_p, codes in found]
        for words, found in zip(case.sentences, every, strict=True)
    ]


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=some_k)
def test_k_best_of_rules(seed: int, k: int) -> None:
    case = random_case(random_rules(seed, cycles=False), seed, 3, 5)
    for words, found in zip(case.sentences, parses(case, k), strict=True):
        check(found, all_trees(case, words), k)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, k=some_k)
def test_rules_within_limits(seed: int, k: int) -> None:
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    sets, trees = random_sets(case, 0, np.random.default_rng(seed))
    text = case.text._replace(begins=np.array([0]), sets=sets)
    check(parses(case, k, text, SETS)[0], trees, k)


def test_unary_rules_that_go_round_have_trees_without_end() -> None:
    case = RuleCase(parse_rules("S -> S [0.5] | 'a'"), [["a"]])
    (found,) = parses(case, 40)
    assert [str(tree) for _, tree in found[:3]] == ["(S a)", "(S (S a))", "(S (S (S a)))"]
    assert [log_p for log_p, _ in found] == pytest.approx([math.log(0.5) * n for n in range(1, 41)])


def test_round_by_way_of_others() -> None:
    """Chains of eight or more unary rules have at most the chance 3e-4: none is among the best."""
    text = "S -> A [0.3] | S S [0.3] | 'a'\nA -> S [0.5] | B [0.2] | 'a' 'b'\nB -> A [0.4] | 'b'"
    case = RuleCase(parse_rules(text), [["a", "b"], ["b", "a"], ["a"]])
    for words, found in zip(case.sentences, parses(case, 5), strict=True):
        check(found, all_trees(case, words, 7), 5)
        assert all(log_p > math.log(3e-4) for log_p, _ in found)


def test_empty_and_impossible_sentences() -> None:
    case = RuleCase(parse_rules("S -> 'a' S 'b' | 'a' 'b'"), [[], ["a"], ["a", "a", "b", "b"]])
    none, impossible, one = parses(case, 5)
    assert none == impossible == []
    assert [str(tree) for _, tree in one] == ["(S a (S a b) b)"]


# Trees of the most expected brackets, against all bracketings


seeds = st.integers(0, 2**32 - 1)
costs = st.sampled_from([0.0, 0.2, 0.5])


@cache
def bracketings(i: int, j: int) -> list[frozenset[tuple[int, int]]]:
    """The spans of two words or more of all binary trees."""
    if j == i + 1:
        return [frozenset()]
    return [
        left | right | {(i, j)}
        for k in range(i + 1, j)
        for left in bracketings(i, k)
        for right in bracketings(k, j)
    ]


def most(n: int, gains: dict[tuple[int, int], float], cost: float) -> float:
    """The best of all trees, but for the whole."""
    return max(
        sum(max(gains.get(span, 0.0) - cost, 0.0) for span in tree - {(0, n)})
        for tree in bracketings(0, n)
    )


def is_inside(n: int, i: int, j: int) -> bool:
    return j - i > 1 and j - i < n


@settings(max_examples=20, deadline=None)
@given(case=cases(), labelled=st.booleans(), cost=costs)
def test_no_tree_is_expected_to_have_more(case: Any, labelled: bool, cost: float) -> None:
    oracle, sentences = case
    for one in sentences:
        n, shares = len(one.words), oracle.posterior_spans(one.words, one.allowed)
        where = np.nonzero(shares)
        found = minimum_risk_brackets(
            n, SpanPosteriors(*where, shares[where]), labelled=labelled, cost=cost
        )
        if not shares.any():
            assert found == []
            continue
        per_span = shares.max(axis=2) if labelled else shares.sum(axis=2)
        gains = {(int(i), int(j)): per_span[i, j] for i, j in np.argwhere(per_span > 0.0)}
        mine = sum(gains[i, j] - cost for _, i, j in found if is_inside(n, i, j))
        assert mine == pytest.approx(most(n, gains, cost), abs=1e-12)
        assert len({(i, j) for _, i, j in found}) == len(found)
        for a, i, j in found:
            assert shares[i, j, a] == shares[i, j].max()
        assert found[0][1:] == (0, n)
        assert [i for _, i, j in found if j == i + 1] == list(range(n))


def expected(case: RuleCase) -> Any:
    """By all trees."""
    trees = all_trees(case, case.sentences[0])
    shares: Counter[Any] = Counter()
    for tree, p in trees.items():
        for span in tree.spans():
            shares[span] += p / sum(trees.values())
    return trees, shares


def mine_of(case: RuleCase, **how: Any) -> list[Any]:
    spans = case.infer().span_posteriors(0)
    return minimum_risk_brackets(
        len(case.sentences[0]), spans, UnaryRelations.from_rules(case.rules), **how
    )


@settings(max_examples=40, deadline=None)
@given(seed=seeds, cost=costs)
def test_minimum_risk_trees_of_rules(seed: int, cost: float) -> None:
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    n, (trees, shares) = len(case.sentences[0]), expected(case)
    found = [(case.own.labels[a], i, j) for a, i, j in mine_of(case, cost=cost)]
    if not trees:
        assert found == []
        return
    best: Counter[Any] = Counter()
    for (_, i, j), share in shares.items():
        best[i, j] = max(best[i, j], share)
    inside = [span for span in found if is_inside(n, *span[1:])]
    assert sum(shares[span] - cost for span in inside) >= most(n, best, cost) - 1e-12
    assert all(shares[span] > max(cost, 1e-12) for span in inside)
    assert {(i, j) for _, i, j in inside} <= set().union(*bracketings(0, n))
    assert case.rules.root[found[0][0]] > 0.0
    tree = make_tree(mine_of(case, cost=cost), case.own.labels, case.sentences[0])
    assert tree is not None
    assert tree.spans() == found
    assert tree.words() == case.sentences[0]


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_the_only_tree_is_it(seed: int) -> None:
    """Flat rules, chains of unary rules, words without tags: all come back."""
    case = random_case(random_rules(seed, cycles=False), seed, 1, 4)
    trees, _ = expected(case)
    if len(trees) == 1:
        (only,) = trees
        for cost in (0.0, 0.5):
            mine = mine_of(case, cost=cost)
            assert make_tree(mine, case.own.labels, case.sentences[0]) == only


def test_more_brackets_than_any_tree_of_the_grammar() -> None:
    """Brackets that are likely each, and never together."""
    starts, ends = np.array([0, 0, 0, 0, 1, 2]), np.array([3, 3, 2, 1, 2, 3])
    symbols, shares = np.array([0, 1, 1, 2, 2, 2]), np.array([0.6, 0.4, 0.4, 1.0, 1.0, 1.0])
    spans = SpanPosteriors(starts, ends, symbols, shares)
    found = minimum_risk_brackets(3, spans)
    assert found == [(0, 0, 3), (1, 0, 2), (2, 0, 1), (2, 1, 2), (2, 2, 3)]
    flat = minimum_risk_brackets(3, spans, cost=0.5)
    assert flat == [(0, 0, 3), (2, 0, 1), (2, 1, 2), (2, 2, 3)]


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        # the noun phrase is sure and its tag is not: the word has the likeliest one
        (
            "S -> NP V\nNP -> D [0.4] | P [0.3] | N\nD -> 'it'\nP -> 'it'\nN -> 'it'\nV -> 'is'",
            "it is",
            "(S (NP (D it)) (V is))",
        ),
        # the likeliest symbol is no root, nor below the likeliest root
        (
            "S -> T [0.4] | U [0.3] | W\nT -> 'a'\nU -> A\nW -> A\nA -> 'a'",
            "a",
            "(S (A a))",
        ),
        # what goes round is taken once
        ("S -> S [0.6] | A A\nA -> B [0.5] | 'a'\nB -> A [0.5] | 'a'", "a a", None),
    ],
)
def test_several_symbols_over_the_same_words(text: str, words: str, wanted: str | None) -> None:
    case = RuleCase(parse_rules(text), [words.split()])
    tree = make_tree(mine_of(case), case.own.labels, case.sentences[0])
    assert tree is not None
    assert len(set(tree.spans())) == len(tree.spans())
    if wanted is not None:
        assert str(tree) == wanted


def test_nothing_is_expected_of_nothing() -> None:
    none = np.zeros(0, np.int64)
    nothing = SpanPosteriors(none, none, none, np.zeros(0))
    assert minimum_risk_brackets(0, nothing) == []
    assert minimum_risk_brackets(4, nothing) == []
    assert make_tree([], (), ()) is None


def test_two_hundred_words() -> None:
    rng = np.random.default_rng(5)
    starts, ends = np.triu_indices(200)
    shares = rng.random(len(starts)) / 10
    spans = SpanPosteriors(starts, ends + 1, np.zeros(len(starts), int), shares)
    found = minimum_risk_brackets(200, spans)
    assert len(found) == 399
    tree = make_tree(found, ("X",), ["w"] * 200)
    assert tree is not None
    assert [(i, j) for _, i, j in tree.spans()] == [(i, j) for _, i, j in found]


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_relations_of_labels_are_those_of_their_symbols(seed: int) -> None:
    rules = random_rules(seed)
    plain = np.random.default_rng(seed).integers(-1, 2, len(rules.symbols))
    plain[0] = 1
    every, found = UnaryRelations.from_rules(rules), UnaryRelations.from_rules(rules, plain)
    for a, b in np.ndindex(2, 2):
        assert found.above[a, b] == every.above[np.ix_(plain == a, plain == b)].any()
    for a in range(2):
        assert found.roots[a] == every.roots[plain == a].any()
        assert found.preterminals[a] == every.preterminals[plain == a].any()


def test_symbols_with_few_relations() -> None:
    """Of many symbols that have few labels, there is no table of all pairs."""
    n = 5000
    rules = parse_rules("\n".join(f"S -> A{k}\nA{k} -> B{k}\nB{k} -> 'w{k}'" for k in range(n)))
    labels = {"S": 0, "A": 1, "B": 2}
    tracemalloc.start()
    found = UnaryRelations.from_rules(
        rules, np.array([labels[symbol[0]] for symbol in rules.symbols])
    )
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.above.astype(int).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert most_bytes < (2 * n) ** 2 / 4
