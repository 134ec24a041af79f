"""Rules as texts and from trees: what is read, what is refused, and what is put back together."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from softcount.core.errors import DataError
from softcount.grammar.rule_tables import BinarisedRules
from softcount.grammar.rules import GrammarRule, GrammarWarning, count_rules, parse_rules
from softcount.text.trees import Tree, tree

REST = "\nNP -> 'she'\nVP -> 'sleeps'"


def told(rules):
    return {
        str(rule): chance for rule, chance in zip(rules.rules, rules.probabilities, strict=True)
    }


# texts
def test_all_that_a_text_may_have():
    rules = parse_rules(
        """
        # a small one
        S -> NP VP [0.75]|VP[.25]     # two rules
        NP→"don't"   'a # b' NP' | 'NP' [1e-1] | '-->'

        NP' -> 'x'
        VP->'give' NP  NP\r
        """
    )
    assert told(rules) == pytest.approx(
        {
            "S -> NP VP": 0.75,
            "S -> VP": 0.25,
            "NP -> \"don't\" 'a # b' NP'": 0.45,
            "NP -> 'NP'": 0.1,
            "NP -> '-->'": 0.45,
            "NP' -> 'x'": 1.0,
            "VP -> 'give' NP NP": 1.0,
        }
    )
    assert rules.rules[2] == GrammarRule("NP", ("don't", "a # b", "NP'"), (True, True, False))
    assert rules.root == {"S": 1.0}
    assert rules.symbols == ("S", "NP", "NP'", "VP")
    assert rules.indptr.tolist() == [0, 2, 5, 6, 7]


def test_rules_of_one_symbol_may_be_apart():
    rules = parse_rules("S -> S S [0.5]\nA -> 'a'\nS -> A")
    assert [str(rule) for rule in rules.rules] == ["S -> S S", "S -> A", "A -> 'a'"]
    assert rules.probabilities.tolist() == [0.5, 0.5, 1.0]


def test_rounded_probabilities_are_rescaled():
    rules = parse_rules("S -> 'a' [0.33] | 'b' [0.33] | 'c' [0.33]")
    assert rules.probabilities == pytest.approx([1 / 3] * 3, abs=1e-15)


def test_what_is_written_can_be_read():
    rules = parse_rules("S -> 'a' S \"b'\" [0.25] | S S [0.25] | 'c' [0.5]")
    assert told(parse_rules(str(rules))) == told(rules)


def test_another_start():
    with pytest.warns(GrammarWarning, match="1 symbol.* cannot be reached.*: S$"):
        assert parse_rules("S -> NP" + REST + " NP", start="VP").root == {"VP": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rules"),
        ("# nothing\n\n", "no rules"),
        ("S -> NP VP\nNP VP" + REST, "line 2 has no arrow: 'NP VP'"),
        ("S -> NP VP\n'x' -> NP" + REST, "line 2 does not begin with one symbol"),
        ("S NP -> VP" + REST, "line 1 does not begin with one symbol"),
        ("-> VP" + REST, "line 1 does not begin with one symbol"),
        ("S -> NP -> VP" + REST, "line 1 has two arrows"),
        ("S -> " + REST, "line 1 has an empty right side of S"),
        ("S -> NP VP | " + REST, "line 1 has an empty right side of S"),
        ("S -> [0.5] | NP VP" + REST, "line 1 has an empty right side of S"),
        ("S -> NP [0.5] VP" + REST, r"line 1 has \[0.5\] before the end"),
        ("S -> NP VP [0]" + REST, r"line 1 has the probability \[0\]"),
        ("S -> NP VP [1.5]" + REST, r"line 1 has the probability \[1.5\]"),
        ("S -> NP VP [-.5]" + REST, r"line 1 has the probability \[-.5\]"),
        ("S -> NP VP [nan]" + REST, r"line 1 has the probability \[nan\]"),
        ("S -> NP VP [half]" + REST, r"line 1 has the probability \[half\]"),
        ("S -> NP 'sleeps" + REST, 'line 1 cannot be read from "\'sleeps" on'),
        ("S -> NP VP [0.5" + REST, r"line 1 cannot be read from '\[0.5' on"),
        ("S -> NP '' VP" + REST, "line 1 has an empty word"),
        ("\nS -> NP VP [.7] | VP [.7]" + REST, r"of S \(line 2\) add up to 1.4"),
        ("S -> NP VP [.7] | VP [.1]" + REST, r"of S \(line 1\) add up to 0.8"),
        ("S -> NP VP [1] | VP" + REST, "nothing is left for rules that have none"),
        ("S -> NP VP\nNP -> DT 'x'", "line 1 has the symbol VP, which has no rules"),
        ("S -> NP VP" + REST + "\nS -> NP VP", "line 4 has the rule S -> NP VP again, after line"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(DataError, match=message):
        parse_rules(text)


def test_a_start_that_is_no_symbol():
    with pytest.raises(DataError, match="start symbol 'X' has no rules"):
        parse_rules("S -> 'a'", start="X")


def test_no_text():
    with pytest.raises(DataError, match="the rules are 3"):
        parse_rules(3)


# soundness
@pytest.mark.parametrize(
    ("text", "cycle"),
    [
        ("S -> S", "S -> S"),
        ("S -> A | 'a'\nA -> B\nB -> A", "A -> B -> A"),
        ("S -> A | 'a'\nA -> A [0.5] | B [0.5]\nB -> A", "A -> A"),
        ("S -> 'x'\nD -> C\nA -> B\nB -> C\nC -> A", "C -> A -> B -> C"),
    ],
)
def test_unary_rules_without_an_end(text, cycle):
    with pytest.raises(DataError, match=f"the unary rules {cycle} form a cycle of probability one"):
        parse_rules(text)


def test_unary_cycles_with_an_end_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_rules("S -> A [0.999] | 'a'\nA -> S | A 'a'")


@pytest.mark.parametrize("text", ["S -> S S", "S -> A 'x'\nA -> S | S A", "S -> A\nA -> 'a' A"])
def test_a_grammar_that_derives_nothing(text):
    with pytest.raises(DataError, match="the grammar derives nothing: S"):
        parse_rules(text)


def test_symbols_of_no_use_are_warned_of():
    with pytest.warns(GrammarWarning, match="derive no words.*: A$"):
        parse_rules("S -> 'a' | A\nA -> A 'x'")
    with pytest.warns(GrammarWarning, match="cannot be reached.*: A, B$"):
        parse_rules("S -> 'a' S | 'a'\nA -> B\nB -> 'x'")


# trees
def test_rules_of_trees_are_counted():
    some = [tree("(S (NP she) (VP (V sees) (NP him)))"), None, tree("(FRAG (NP she) now)")]
    rules = count_rules(some, [3.0, 5.0, 1.0])
    assert rules.root == {"S": 0.75, "FRAG": 0.25}
    assert told(rules) == pytest.approx(
        {
            "S -> NP VP": 1.0,
            "NP -> 'she'": 4 / 7,
            "NP -> 'him'": 3 / 7,
            "VP -> V NP": 1.0,
            "V -> 'sees'": 1.0,
            "FRAG -> NP 'now'": 1.0,
        }
    )


def test_a_tree_that_counts_nothing_has_no_rules():
    rules = count_rules([tree("(S a)"), tree("(S b)")], [1, 0])
    assert told(rules) == {"S -> 'a'": 1.0}


@pytest.mark.parametrize(
    ("trees", "weights", "message"),
    [
        ([], None, "no trees"),
        ([None], None, "no trees"),
        ([tree("(S a)")], [0.0], "no trees"),
        ([tree("(S a)")], [1.0, 2.0], "2 weights for 1 trees"),
        ([None, tree("(S a)")], [1.0, -1.0], "tree 1 has the weight -1.0"),
        ([tree("(S a)")], [np.inf], "tree 0 has the weight inf"),
    ],
)
def test_trees_that_are_refused(trees, weights, message):
    with pytest.raises(DataError, match=message):
        count_rules(trees, weights)


# binarised
def test_rules_that_end_alike_share_their_symbols():
    own = BinarisedRules(
        parse_rules("S -> A B C | B B C | A S B C [0.2] | C B\nA -> 'a'\nB -> 'b'\nC -> 'c'")
    )
    assert (own.n_nonterminals, own.n_left, own.n_symbols) == (4, 4, 6)  # ⟨B C⟩ and ⟨S B C⟩
    binary = own.make_tables(own.rules.probabilities, own.root).binary
    assert sorted(binary.probability) == pytest.approx([0.2, 0.8 / 3, 0.8 / 3, 0.8 / 3, 1.0, 1.0])


def test_very_wide_and_very_deep_trees():
    wide = Tree("S", tuple("ab" * 3000))
    assert BinarisedRules(count_rules([wide])).n_symbols == 1 + 2 + 5998
    deep = Tree("S", ("a",))
    for _ in range(20_000):
        deep = Tree("S", (deep, "b"))
    assert told(count_rules([deep])) == pytest.approx(
        {"S -> S 'b'": 20_000 / 20_001, "S -> 'a'": 1 / 20_001}
    )
