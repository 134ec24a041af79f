"""Trees that know nothing: their shapes, and that random ones are all equally probable."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from softcount.errors import DataError
from softcount.metrics import balanced, left_branching, random_tree, right_branching


def drawn(words):
    return random_tree(words, np.random.default_rng(len(words)))


EVERY = [right_branching, left_branching, balanced, drawn]


def widths(tree):
    """(start, end) of what is wider than a word."""
    return {(start, end) for _, start, end in tree.spans() if end - start > 1}


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_spans_of_one_sided_trees(n):
    words = [f"w{i}" for i in range(n)]
    assert widths(right_branching(words)) == {(i, n) for i in range(n - 1)}
    assert widths(left_branching(words)) == {(0, i + 1) for i in range(1, n)}


def test_spans_of_balanced_trees():
    assert widths(balanced(list("abcdefg"))) == {(0, 7), (0, 4), (4, 7), (0, 2), (2, 4), (4, 6)}
    for n in range(2, 70):
        above_first = [end for start, end in widths(balanced(["w"] * n)) if start == 0]
        assert 2 ** (len(above_first) - 1) < n <= 2 ** len(above_first)


@pytest.mark.parametrize("branching", EVERY)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_trees_are_binary_and_keep_their_words(branching, words):
    tree = branching(words)
    assert tree.words() == words
    assert all(node.is_preterminal or len(node.children) == 2 for node in tree.nodes())
    assert {node.label for node in tree.nodes() if node.is_preterminal} == {"XX"}
    assert {node.label for node in tree.nodes() if not node.is_preterminal} <= {"X"}


@pytest.mark.parametrize(("n", "shapes"), [(3, 2), (4, 5), (5, 14), (6, 42)])
def test_random_trees_are_all_equally_probable(n, shapes):
    """Equal chances for every split would give a balanced tree of 4 words 1/3, not 1/5."""
    rng = np.random.default_rng(n)
    times = Counter(str(random_tree(["w"] * n, rng)) for _ in range(100 * shapes))
    assert len(times) == shapes
    assert chisquare(list(times.values())).pvalue > 1e-3


def test_the_same_generator_gives_another_tree_and_the_same_seed_the_same():
    words = list("abcdefghijklmnop")
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first, second = random_tree(words, one), random_tree(words, one)
    assert first != second
    assert [first, second] == [random_tree(words, other), random_tree(words, other)]


@pytest.mark.parametrize("branching", EVERY)
def test_long_sentences_do_no_harm(branching):
    words = ["w"] * 5000
    assert len(widths(branching(words))) == 4999


@pytest.mark.parametrize("branching", EVERY)
@pytest.mark.parametrize(("words", "message"), [([], "without words"), ("the dog", "'the dog'")])
def test_no_words_have_no_tree(branching, words, message):
    with pytest.raises(DataError, match=message) as caught:
        branching(words)
    assert caught.value.hint


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_a_seed_is_no_generator(rng):
    with pytest.raises(DataError, match="rng is") as caught:
        random_tree(["a", "b"], rng)
    assert "default_rng" in caught.value.hint
