"""The oracles of grammars: against Catalan numbers, sums that are known, and each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.trees import (
    Grammar,
    Rules,
    Sentence,
    as_rules,
    nodes,
    not_crossing,
    random_tables,
    spans,
)

seeds = given(seed=st.integers(0, 2**32 - 1))
few = settings(max_examples=5, deadline=None)

CHAINS = Rules(
    [
        ("S", ("NP", "VP"), 0.8),
        ("S", ("VP",), 0.2),
        ("NP", ("dogs",), 0.5),
        ("NP", ("NP", "and", "NP"), 0.1),
        ("NP", ("S",), 0.3),
        ("NP", ("NP",), 0.1),
        ("VP", ("bark",), 0.4),
        ("VP", ("VP", "NP"), 0.3),
        ("VP", ("NP",), 0.3),
    ],
    "S",
)
"""S → VP → NP → S is a cycle, and so is NP → NP."""


def grammar(seed: int, K: int = 2, T: int = 2, V: int = 3, sharp: float = 1.0) -> Grammar:
    return Grammar(random_tables(np.random.default_rng(seed), K, T, V, sharp), K, T)


def numbered(tree):
    """A tree of `as_rules` with the numbers of a `Grammar` instead of names, without its root."""

    def inner(node):
        return (int(node[0]), *(inner(c) if isinstance(c, tuple) else c for c in node[1:]))

    return inner(tree[1])


# all derivations


@pytest.mark.parametrize(
    ("n", "catalan"), [(1, 1), (2, 1), (3, 2), (4, 5), (5, 14), (6, 42), (7, 132)]
)
def test_there_are_catalan_many_shapes(n, catalan):
    """One nonterminal and one preterminal: a derivation is a shape."""
    one = Grammar(
        {"root": np.array([[0.7, 0.3]]), "rules": np.full((1, 4), 0.25), "words": [[1.0]]}, 1, 1
    )
    found = one.derivations([0] * n)
    assert len(found) == len(dict(found)) == catalan
    chance = 0.3 if n == 1 else 0.7 * 0.25 ** (n - 1)
    assert one.log_p([0] * n) == pytest.approx(math.log(catalan * chance), abs=1e-12)


def test_derivations_carry_every_labelling():
    """Two shapes over three words, two inner nodes of K labels each, three words of T."""
    assert len(grammar(0, K=3, T=2).derivations([0, 1, 2])) == 2 * 3**2 * 2**3


@few
@seeds
def test_probability_is_the_product_of_the_events(seed):
    one = grammar(seed)
    for tree, p in one.derivations([0, 2, 1]):
        chances = [one.tables[table][row][column] for table, row, column in one.events(tree)]
        assert len(chances) == 1 + 2 + 3
        assert p == pytest.approx(math.prod(chances), rel=1e-12)


@few
@seeds
def test_sentences_of_a_length_have_the_probability_of_this_length(seed):
    """The words summed out, only lengths are left: p(A, n) = Σ p(A → B C) p(B, k) p(C, n − k)."""
    one = grammar(seed, V=2)
    size, longest = one.K + one.T, 4
    of = np.zeros((longest + 1, size))
    of[1, one.K :] = 1.0
    rules = one.tables["rules"].reshape(one.K, size, size)
    for n in range(2, longest + 1):
        of[n, : one.K] = sum(np.einsum("abc,b,c->a", rules, of[k], of[n - k]) for k in range(1, n))
    lengths = of @ one.tables["root"][0]
    sums = [
        math.fsum(math.exp(one.log_p(words)) for words in itertools.product(range(2), repeat=n))
        for n in range(1, longest + 1)
    ]
    np.testing.assert_allclose(sums, lengths[1:], rtol=1e-12)
    assert sum(sums) < 1.0


@few
@seeds
def test_counts_add_up(seed):
    one = grammar(seed)
    sentences = [Sentence([0, 1, 2, 0], 2.0), Sentence([1]), Sentence([2, 2], 0.5)]
    counts = one.expected(sentences)
    assert counts["root"].sum() == pytest.approx(3.5)
    assert counts["rules"].sum() == pytest.approx(2.0 * 3 + 0.5)
    np.testing.assert_allclose(counts["words"].sum(axis=0), [4.0, 3.0, 3.0])
    rules = counts["rules"].reshape(2, 4, 4)
    uses = counts["root"][0] + rules.sum(axis=(0, 2)) + rules.sum(axis=(0, 1))
    np.testing.assert_allclose(
        uses, [*counts["rules"].sum(axis=1), *counts["words"].sum(axis=1)], rtol=1e-12
    )


@few
@seeds
def test_shares_spans_and_the_best_tree_fit_together(seed):
    one, words = grammar(seed), [0, 1, 1, 2]
    shares = one.shares(words)
    assert math.fsum(shares.values()) == pytest.approx(1.0)
    tree, log_p = one.best(words)
    assert shares[tree] == max(shares.values())
    assert log_p == pytest.approx(math.log(shares[tree]) + one.log_p(words))
    found = one.posterior_spans(words)
    assert found[0, 4].sum() == pytest.approx(1.0)
    np.testing.assert_allclose([found[i, i + 1].sum() for i in range(4)], 1.0)
    assert found.sum() == pytest.approx(4 + 3)
    assert all(found[i, j, symbol] >= shares[tree] - 1e-12 for symbol, i, j in spans(tree))


def test_spans_of_a_tree():
    tree = (0, (1, (2, 9), (3, 8)), (2, 7))
    assert spans(tree) == [(0, 0, 3), (1, 0, 2), (2, 0, 1), (3, 1, 2), (2, 2, 3)]
    assert [node[0] for node in nodes(tree)] == [0, 1, 2, 3, 2]


@few
@seeds
def test_what_is_not_allowed_is_left_out_and_nothing_else(seed):
    one, words = grammar(seed), [0, 1, 2, 1]
    allowed = {**not_crossing(4, [(1, 3)]), (1, 3): {1}, (0, 4): {0}, (2, 3): {3}}

    def fits(tree):
        labels = {(i, j): symbol for symbol, i, j in spans(tree)}
        return (
            labels.keys().isdisjoint({(0, 2), (2, 4)})
            and labels.get((1, 3), 1) == 1
            and labels[0, 4] == 0
            and labels[2, 3] == 3
        )

    every = one.derivations(words)
    some = one.derivations(words, allowed)
    assert some == [(tree, p) for tree, p in every if fits(tree)]
    assert 0 < len(some) < len(every)
    assert one.expected([Sentence(words, 1.0, allowed)])["words"][0, 2] == 0.0


def test_what_crosses_a_bracket():
    assert set(not_crossing(4, [(1, 3)])) == {(0, 2), (2, 4)}
    assert set(not_crossing(4, [(0, 3), (2, 3)])) == {(1, 4), (2, 4)}
    assert not_crossing(4, [(0, 4), (0, 1)]) == {}


# any rules


@few
@seeds
def test_both_oracles_agree_on_a_dense_grammar(seed):
    one = grammar(seed)
    rules = as_rules(one)
    sentences = [Sentence([0, 2, 1, 1], 2.0), Sentence([1], 0.5)]
    for words, _, _ in sentences:
        assert rules.log_p(words) == pytest.approx(one.log_p(words), abs=1e-12)
        found = {numbered(tree): p for tree, p in rules.derivations(words)}
        assert found == pytest.approx(dict(one.derivations(words)))
        tree, log_p = rules.best(words)  # others with the same rules are as good
        assert log_p == pytest.approx(one.best(words)[1])
        assert np.log(found[numbered(tree)]) == pytest.approx(log_p)
    counts = one.expected(sentences)
    every = np.concatenate([counts[name].ravel() for name in ("root", "rules", "words")])
    np.testing.assert_allclose(rules.expected(sentences), every, atol=1e-12)


def test_a_loop_by_hand():
    """A → A [q] before A → a [1 − q]: p(a) = 1, and the loop is used q / (1 − q) times."""
    loop = Rules([("A", ("A",), 0.75), ("A", ("a",), 0.25)], "A")
    assert loop.inside(["a"]) == pytest.approx(1.0, rel=1e-14)
    assert loop.counts(["a"]) == pytest.approx([3.0, 1.0], rel=1e-12)
    assert loop.best(["a"]) == (("A", "a"), math.log(0.25))
    assert loop.inside(["b"]) == loop.inside([]) == 0.0


def test_long_right_sides_by_hand():
    rules = Rules(
        [
            ("S", ("A", "and", "A"), 0.5),
            ("S", ("A", "A", "A"), 0.5),
            ("A", ("and",), 0.25),
            ("A", ("x",), 0.25),
            ("A", ("A", "x"), 0.5),
        ],
        "S",
    )
    assert rules.inside(["x", "and", "x"]) == 0.25**2 * 0.5 + 0.25**3 * 0.5
    assert rules.counts(["x", "and", "x"])[0] == pytest.approx(0.8)
    assert dict(rules.derivations("xxxx")) == {
        ("S", ("A", "x"), ("A", "x"), ("A", ("A", "x"), "x")): 0.5**2 * 0.25**3,
        ("S", ("A", "x"), ("A", ("A", "x"), "x"), ("A", "x")): 0.5**2 * 0.25**3,
        ("S", ("A", ("A", "x"), "x"), ("A", "x"), ("A", "x")): 0.5**2 * 0.25**3,
    }


SENTENCES = ["dogs", "bark", "dogs bark", "dogs and dogs bark", "dogs bark dogs"]


@pytest.mark.parametrize("words", [line.split() for line in SENTENCES])
def test_chains_are_the_limit_of_what_can_be_enumerated(words):
    """Sums over chains of bounded length rise to the sum over all of them."""
    whole = CHAINS.inside(words)
    bounds = (1, 2, 3, 4) if len(words) > 2 else (1, 3, 5, 7)
    sums = [math.fsum(p for _, p in CHAINS.derivations(words, most)) for most in bounds]
    assert sums == sorted(sums)
    assert 0.0 < whole - sums[-1] < 0.006 * whole
    assert CHAINS.best(words, 3) == CHAINS.best(words, 4)


@pytest.mark.parametrize("words", [line.split() for line in SENTENCES])
def test_counts_are_derivatives(words):
    counts = CHAINS.counts(words)
    assert counts == pytest.approx(CHAINS.counts_by_differences(words), abs=1e-5)
    left = dict.fromkeys(["S", "NP", "VP"], 0.0)
    right = {**left, "S": 1.0}
    for (symbol, children, _), count in zip(CHAINS.rules, counts, strict=True):
        left[symbol] += count
        for child in children:
            right[child] = right.get(child, 0.0) + count
    for word in set(words):
        assert right.pop(word) == pytest.approx(words.count(word))
    assert {symbol: right[symbol] for symbol in left} == pytest.approx(left)


def test_counts_are_means_over_derivations():
    words = ["dogs", "bark"]
    found = list(CHAINS.derivations(words, most_unary=6))
    total = math.fsum(p for _, p in found)
    uses = []
    for symbol, children, _ in CHAINS.rules:
        times = [
            sum(
                node[0] == symbol
                and tuple(c[0] if isinstance(c, tuple) else c for c in node[1:]) == children
                for node in nodes(tree)
            )
            for tree, _ in found
        ]
        uses.append(math.fsum(k * p for k, (_, p) in zip(times, found, strict=True)) / total)
    assert CHAINS.counts(words) == pytest.approx(uses, abs=5e-3)


def test_a_sum_without_end_is_refused():
    with pytest.raises(ArithmeticError, match="no finite sum"):
        Rules([("A", ("A",), 1.0), ("A", ("a",), 1.0)], "A").inside(["a"])
