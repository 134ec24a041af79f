"""The k best trees, against all trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.grammar import inside_outside as passes
from softcount.grammar.parsing import best_parses, best_trees
from softcount.grammar.rules import from_text
from tests.models.grammar.rule_cases import (
    SETS,
    Case,
    random_case,
    random_rules,
    random_sets,
    trees_of,
)
from tests.models.grammar.test_dense import cases, core_of, shard_of
from tests.oracles.trees import Grammar, Sentence, random_tables

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


def check(found: list[Any], chances: dict[Any, float], k: int) -> None:
    """(log p, tree) are the k best, each once."""
    wanted = sorted(chances.values(), reverse=True)[:k]
    logs = [log_p for log_p, _ in found]
    assert logs == sorted(logs, reverse=True)
    np.testing.assert_allclose(logs, np.log(wanted), rtol=1e-10, atol=1e-10)
    assert len({tree for _, tree in found}) == len(found)
    for log_p, tree in found:
        assert math.log(chances[tree]) == pytest.approx(log_p, abs=1e-10)


# dense grammars
@settings(max_examples=40, deadline=None)
@given(case=cases(most=4), k=some_k)
def test_dense_ones(case: Any, k: int) -> None:
    oracle, sentences = case
    shard = shard_of(sentences, oracle)
    every = best_trees(shard, core_of(oracle).passing(oracle.tables, shard, 1), k)
    for one, found in zip(sentences, every, strict=True):
        trees = [(log_p, as_node(symbols, one.words, oracle)) for log_p, symbols in found]
        check(trees, dict(oracle.derivations(one.words, one.allowed)) if one.words else {}, k)


def test_all_are_as_good() -> None:
    """Each of the 42 · 2⁵ trees of six words has the same chance; more are not to be had."""
    tables = {
        "root": np.full((1, 3), 1 / 3),
        "rules": np.full((2, 9), 1 / 9),
        "words": np.ones((1, 1)),
    }
    oracle = Grammar(tables, 2, 1)
    shard = shard_of([Sentence([0] * 6)], oracle)
    for k in (50, 10_000):
        (found,) = best_trees(shard, core_of(oracle).passing(tables, shard, 1), k)
        assert len(found) == min(k, 42 * 2**5)
        assert len({as_node(symbols, [0] * 6, oracle) for _, symbols in found}) == len(found)
        np.testing.assert_allclose([log_p for log_p, _ in found], -math.log(3) - 5 * math.log(9))


def test_what_cannot_be_has_no_trees() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    oracle.tables["words"][:, 2] = 0.0
    shard = shard_of([Sentence([0, 2, 1]), Sentence([]), Sentence([2])], oracle)
    assert best_trees(shard, core_of(oracle).passing(oracle.tables, shard, 1), 3) == [[], [], []]


def test_sixty_words() -> None:
    rng = np.random.default_rng(8)
    oracle = Grammar(random_tables(rng, 20, 20, 50, 0.5), 20, 20)
    words = rng.integers(0, 50, 60).tolist()
    shard = shard_of([Sentence(words)], oracle)
    this = core_of(oracle).passing(oracle.tables, shard, 1)
    (found,) = best_trees(shard, this, 10)
    trees = [as_node(symbols, words, oracle) for _, symbols in found]
    assert len(set(trees)) == 10
    for (log_p, _), tree in zip(found, trees, strict=True):
        steps = [oracle.tables[table][row, column] for table, row, column in oracle.events(tree)]
        assert np.log(steps).sum() == pytest.approx(log_p, abs=1e-9)
    assert found[0].log_p == pytest.approx(
        passes.trace_trees(shard, this, best=True)[1][0], abs=1e-9
    )


# grammars of rules
def parses(case: Case, k: int, text: Any = None, allowed: Any = None) -> list[Any]:
    """(log p, tree) of each sentence."""
    grammar = case.grammar(best=True, allowed=allowed)
    every = best_parses(grammar, case.words, text or case.text, k)
    return [
        [(log_p, case.own.tree(codes, words, case.words)) for log_p, codes in found]
        for words, found in zip(case.sentences, every, strict=True)
    ]


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=some_k)
def test_rules(seed: int, k: int) -> None:
    case = random_case(random_rules(seed, cycles=False), seed, 3, 5)
    for words, found in zip(case.sentences, parses(case, k), strict=True):
        check(found, trees_of(case, words), k)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, k=some_k)
def test_rules_within_limits(seed: int, k: int) -> None:
    case = random_case(random_rules(seed, cycles=False), seed, 1, 5)
    sets, trees = random_sets(case, 0, np.random.default_rng(seed))
    text = case.text._replace(begins=np.array([0]), sets=sets)
    check(parses(case, k, text, SETS)[0], trees, k)


def test_unary_rules_that_go_round_have_trees_without_end() -> None:
    case = Case(from_text("S -> S [0.5] | 'a'"), [["a"]])
    (found,) = parses(case, 40)
    assert [str(tree) for _, tree in found[:3]] == ["(S a)", "(S (S a))", "(S (S (S a)))"]
    assert [log_p for log_p, _ in found] == pytest.approx([math.log(0.5) * n for n in range(1, 41)])


def test_round_by_way_of_others() -> None:
    """Chains of eight or more unary rules have at most the chance 3e-4: none is among the best."""
    text = "S -> A [0.3] | S S [0.3] | 'a'\nA -> S [0.5] | B [0.2] | 'a' 'b'\nB -> A [0.4] | 'b'"
    case = Case(from_text(text), [["a", "b"], ["b", "a"], ["a"]])
    for words, found in zip(case.sentences, parses(case, 5), strict=True):
        check(found, trees_of(case, words, 7), 5)
        assert all(log_p > math.log(3e-4) for log_p, _ in found)


def test_empty_and_impossible_sentences() -> None:
    case = Case(from_text("S -> 'a' S 'b' | 'a' 'b'"), [[], ["a"], ["a", "a", "b", "b"]])
    none, impossible, one = parses(case, 5)
    assert none == impossible == []
    assert [str(tree) for _, tree in one] == ["(S a (S a b) b)"]
