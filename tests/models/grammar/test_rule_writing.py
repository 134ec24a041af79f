"""Rules as texts: what is written is read again, whatever symbols and words are like."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.corpus.trees import Tree
from softcount.errors import DataError
from softcount.models.grammar.rule_text import from_text
from softcount.models.grammar.rule_writing import as_text
from softcount.models.grammar.rules import Rule, Rules, from_counts, from_trees, rule_of

NAMES = st.text(st.sampled_from("AB'\"#|[]-> →_é"), min_size=1, max_size=4)


def read(text: str) -> Rules:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return from_text(text)


def unwritable(word: str) -> bool:
    return "'" in word and '"' in word


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_any_tree_can_be_made_by_what_was_written(parts: list[tuple[str, str, str]]) -> None:
    trees = [Tree("S", (Tree(f"T{a}", (c,)), Tree(f"{b}T", (c, "end")))) for a, b, c in parts]
    rules = from_trees(trees)
    kept = [tree for tree in trees if not any(map(unwritable, tree.words()))]
    if not kept:
        with pytest.raises(DataError, match="no tree can be made"):
            as_text(rules)
        return
    written = as_text(rules)
    again = read(written.text)
    names = {**{symbol: symbol for symbol in rules.symbols}, **written.renamed}
    for node in (node for tree in kept for node in tree.nodes()):
        rule = rule_of(node)
        items = zip(rule.rhs, rule.is_word, strict=True)
        right = tuple(item if word else names[item] for item, word in items)
        assert Rule(names[node.label], right, rule.is_word) in again.rules
    assert len(again) == len(rules) - written.left_out
    assert len(set(names.values())) == len(names)


def test_probabilities_and_several_roots() -> None:
    rules = from_counts(
        {
            Rule("NP", ("it",), (True,)): 3.0,
            Rule("NP", ("TOP", "NP"), (False, False)): 1.0,
            Rule("TOP", ("so",), (True,)): 2.0,
        },
        {"TOP": 1.0, "NP": 3.0},
    )
    written = as_text(rules)
    assert written.text.splitlines()[0] == "TOP2 -> TOP [0.25]"
    again = read(written.text)
    assert dict(zip(map(str, again.rules), again.chances.tolist(), strict=True)) == {
        "TOP2 -> TOP": 0.25,
        "TOP2 -> NP": 0.75,
        "NP -> 'it'": 0.75,
        "NP -> TOP NP": 0.25,
        "TOP -> 'so'": 1.0,
    }
    assert written.left_out == 0


def test_one_root_comes_first() -> None:
    rules = from_counts(
        {Rule("A", ("x",), (True,)): 1.0, Rule("S", ("A",), (False,)): 1.0}, {"S": 1.0}
    )
    again = read(as_text(rules).text)
    assert dict(again.root) == {"S": 1.0}


def test_rules_with_symbols_that_lost_theirs_are_left_out() -> None:
    both = "'\""
    rules = from_counts(
        {
            Rule("S", ("A", "B"), (False, False)): 1.0,
            Rule("S", ("B",), (False,)): 3.0,
            Rule("A", ("C",), (False,)): 1.0,
            Rule("C", (both,), (True,)): 1.0,
            Rule("B", ("x",), (True,)): 1.0,
        },
        {"S": 1.0},
    )
    written = as_text(rules)
    assert written.text == "S -> B [1]\nB -> 'x' [1]"
    assert written.left_out == 3
    np.testing.assert_allclose(read(written.text).chances, 1.0)
