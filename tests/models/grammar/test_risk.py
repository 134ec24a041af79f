"""Trees of the most expected brackets, against all bracketings."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.parsing import Links, most_expected, tree_of
from softcount.grammar.rules import from_text
from tests.models.grammar.rule_cases import Case, random_case, random_rules, trees_of
from tests.models.grammar.test_dense import cases

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
        found = most_expected(n, *where, shares[where], labelled=labelled, cost=cost)
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


def expected(case: Case) -> Any:
    """By all trees."""
    trees = trees_of(case, case.sentences[0])
    shares: Counter[Any] = Counter()
    for tree, p in trees.items():
        for span in tree.spans():
            shares[span] += p / sum(trees.values())
    return trees, shares


def mine_of(case: Case, **how: Any) -> list[Any]:
    arrays = rule_passes.spans(case.own, case.grammar(), case.words, case.text, 0)
    return most_expected(len(case.sentences[0]), *arrays, Links.of(case.rules), **how)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, cost=costs)
def test_rules(seed: int, cost: float) -> None:
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
    tree = tree_of(mine_of(case, cost=cost), case.own.labels, case.sentences[0])
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
            assert tree_of(mine, case.own.labels, case.sentences[0]) == only


def test_more_brackets_than_any_tree_of_the_grammar() -> None:
    """Brackets that are likely each, and never together."""
    starts, ends = np.array([0, 0, 0, 0, 1, 2]), np.array([3, 3, 2, 1, 2, 3])
    symbols, shares = np.array([0, 1, 1, 2, 2, 2]), np.array([0.6, 0.4, 0.4, 1.0, 1.0, 1.0])
    found = most_expected(3, starts, ends, symbols, shares)
    assert found == [(0, 0, 3), (1, 0, 2), (2, 0, 1), (2, 1, 2), (2, 2, 3)]
    flat = most_expected(3, starts, ends, symbols, shares, cost=0.5)
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
    case = Case(from_text(text), [words.split()])
    tree = tree_of(mine_of(case), case.own.labels, case.sentences[0])
    assert tree is not None
    assert len(set(tree.spans())) == len(tree.spans())
    if wanted is not None:
        assert str(tree) == wanted


def test_nothing_is_expected_of_nothing() -> None:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    assert most_expected(0, none, none, none, nothing) == []
    assert most_expected(4, none, none, none, nothing) == []
    assert tree_of([], (), ()) is None


def test_two_hundred_words() -> None:
    rng = np.random.default_rng(5)
    starts, ends = np.triu_indices(200)
    shares = rng.random(len(starts)) / 10
    found = most_expected(200, starts, ends + 1, np.zeros(len(starts), int), shares)
    assert len(found) == 399
    tree = tree_of(found, ("X",), ["w"] * 200)
    assert tree is not None
    assert [(i, j) for _, i, j in tree.spans()] == [(i, j) for _, i, j in found]


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_links_of_labels_are_those_of_their_symbols(seed: int) -> None:
    rules = random_rules(seed)
    plain = np.random.default_rng(seed).integers(-1, 2, len(rules.symbols))
    plain[0] = 1
    every, found = Links.of(rules), Links.of(rules, plain)
    for a, b in np.ndindex(2, 2):
        assert found.above[a, b] == every.above[np.ix_(plain == a, plain == b)].any()
    for a in range(2):
        assert found.roots[a] == every.roots[plain == a].any()
        assert found.tags[a] == every.tags[plain == a].any()


def test_symbols_with_few_links() -> None:
    """Of many symbols that have few labels, there is no table of all pairs."""
    n = 5000
    rules = from_text("\n".join(f"S -> A{k}\nA{k} -> B{k}\nB{k} -> 'w{k}'" for k in range(n)))
    labels = {"S": 0, "A": 1, "B": 2}
    tracemalloc.start()
    found = Links.of(rules, np.array([labels[symbol[0]] for symbol in rules.symbols]))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.above.astype(int).tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert most_bytes < (2 * n) ** 2 / 4
