"""Words that no rule has: laws of their probabilities, and what they do for real text."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.grammar.rule_based import RuleInference, make_rule_text
from softcount.grammar.rule_tables import ALIKE, RARELY, BinarisedRules, UnknownWords
from softcount.grammar.rules import count_rules, parse_rules
from softcount.text.treebank import (
    binarise_right,
    read_trees,
    remove_functions,
    remove_traces,
    trees,
)
from tests import real

BANK = [
    "(S (NP (DT the) (NN dog)) (VP (VBD barked)))",
    "(S (NP (DT the) (NN king)) (VP (VBD walked)))",
    "(S (NP (DT the) (NN cat)) (VP (VBG singing)))",
    "(S (NP (DT the) (NN cow)) (VP (VBG dancing)))",
    "(S (NP (CD 12) (NN trees)) (VP (VBG burning)))",
    "(S (NP (CD 3.5) (NN men)) (VP (VBD came) (NP here)))",
    "(S (NP (NNP Mary)) (VP (VBD saw) (NP (NNP IBM))))",
    "(S (NP (NNP Peter)) (VP (VBD saw) (NP (DT the) (NN king))))",
]


FOX = ["the", "fox", "barked"]


@pytest.fixture(scope="module")
def rules():
    return count_rules(trees(BANK))


@pytest.fixture(scope="module")
def unknown(rules):
    return UnknownWords(rules)


def best(rules, unknown, word):
    return rules.symbols[unknown.symbol_posteriors(word).argmax()]


# what words look like
@pytest.mark.parametrize(
    ("word", "tag"),
    [("running", "VBG"), ("talked", "VBD"), ("1987", "CD"), ("Anna", "NNP"), ("UN", "NNP")],
)
def test_looks_tell_the_tag(rules, unknown, word, tag):
    assert best(rules, unknown, word) == tag


def test_exact_looks_say_more_than_others(rules, unknown):
    at = rules.symbols.index("VBG")
    shares = [unknown.symbol_posteriors(word)[at] for word in ("xing", "xyng", "xxyg", "xxxy")]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[1]
    assert shares[2] > shares[3]


def test_shares_by_hand():
    """Of 'a' (twice A), 'bx' and 'cx' (A) and 'dx' (B), the last three were seen once."""
    rules = count_rules(trees(["(S (A a) (A bx))", "(S (A a) (B dx))", "(S (A cx))"]))
    above = np.array([2.5, 1.5]) / 4.0  # and half a word each
    marked = (np.array([2.0, 1.0]) + above) / 4.0
    ending = (np.array([2.0, 1.0]) + marked) / 4.0
    found = UnknownWords(rules)
    assert found.symbol_posteriors("yx") == pytest.approx([0.0, *ending])
    assert found.symbol_posteriors("yy") == pytest.approx([0.0, *marked])
    assert found.symbol_posteriors("Yy") == pytest.approx([0.0, *above])
    assert found.probabilities(["yx"])[0] == pytest.approx([0.0, ending[0] / 4.0, ending[1]])
    lower = np.array([1.0, 0.0])  # as a is
    assert found.symbol_posteriors("A") == pytest.approx(
        [0.0, *(above + ALIKE * lower) / (1.0 + ALIKE)]
    )


@given(words=st.lists(st.text(max_size=8), max_size=6))
@settings(max_examples=50, deadline=None)
def test_shares_sum_to_one_and_only_preterminals_have_words(rules, unknown, words):
    found = unknown.probabilities(words)
    assert found.shape == (len(words), len(rules.symbols))
    assert ((found >= 0.0) & (found <= 1.0)).all()
    has_words = {rule.lhs for rule in rules.rules if rule.is_word == (True,)}
    for a, symbol in enumerate(rules.symbols):
        assert (found[:, a] > 0.0).all() == (symbol in has_words) or not words
    for word in words:
        assert unknown.symbol_posteriors(word).sum() == pytest.approx(1.0)


def test_as_many_new_words_as_were_seen_once_have_their_mass(rules, unknown):
    """n₁(A) / n(A), of each symbol but for what is shared with others."""
    of_word = Counter()
    n_once = np.zeros(len(rules.symbols))
    for rule, count in zip(rules.rules, rules.counts, strict=True):
        if rule.is_word == (True,):
            of_word[rule.rhs[0]] += count
    for rule in rules.rules:
        if rule.is_word == (True,) and of_word[rule.rhs[0]] == 1:
            n_once[rules.symbols.index(rule.lhs)] += 1
    once = [word for word, count in of_word.items() if count == 1]
    often = np.add.reduceat(rules.counts, rules.indptr[:-1])
    mass = unknown.probabilities(once).sum(axis=0)
    assert n_once.sum() == len(once) > 10
    np.testing.assert_allclose(mass * often, n_once, atol=0.75)


def test_a_symbol_of_words_and_more_has_new_words_as_often_as_its_own(rules, unknown):
    """NP is here once, and six times something else."""
    at = rules.symbols.index("NP")
    n = sum(rules.counts[rules.indptr[at] : rules.indptr[at + 1]])
    assert unknown.probabilities(["xyz"])[0, at] == pytest.approx(
        unknown.symbol_posteriors("xyz")[at] / n
    )


def test_where_no_word_was_seen_once_the_rarest_stand_for_new_ones():
    bank = trees(BANK)
    once, thrice = (UnknownWords(count_rules(bank, [w] * len(bank))) for w in (1.0, 3.0))
    assert (
        thrice.symbol_posteriors("running").argmax() == once.symbol_posteriors("running").argmax()
    )


def test_rules_that_nobody_counted_know_nothing_of_new_words():
    with pytest.raises(LearnerError, match="no counts"):
        UnknownWords(parse_rules("S -> 'a'"))


def test_trees_without_tags_have_no_new_words():
    unknown = UnknownWords(count_rules(trees(["(S a b)"])))
    assert unknown.probabilities(["c"]).tolist() == [[0.0]]


# among the words of sentences
def test_rows_of_known_and_new_words(rules, unknown):
    own = BinarisedRules(rules)
    tokens = ["the", "fox", "barked", "fox", "THE"]
    rows, more = unknown.place_tokens(own, rules.probabilities, tokens, known=0.0)
    assert rows[[0, 2]].tolist() == own.find_rows(["the", "barked"]).tolist()
    assert rows[1] == rows[3] == len(own.word_rows) + 1
    assert more == pytest.approx(unknown.probabilities(["fox", "THE"]))


def test_known_words_get_symbols_that_they_never_had(rules, unknown):
    own = BinarisedRules(rules)
    _, more = unknown.place_tokens(own, rules.probabilities, ["king"], known=0.5)
    shares = unknown.symbol_posteriors("king")
    assert best(rules, unknown, "king") == "VBG"
    assert (shares < RARELY).any()
    added = np.where(shares < RARELY, 0.0, 0.5 * unknown.probabilities(["king"])[0])
    added[rules.symbols.index("NN")] += 2.0 / 7.0
    assert more[0] == pytest.approx(added)


def test_words_among_several_items_stay_what_they_are():
    rules = count_rules(trees(["(S a (B b))", "(S (A a) b)"]))
    own = BinarisedRules(rules)
    rows, more = UnknownWords(rules).place_tokens(own, rules.probabilities, ["a", "c", "b"])
    assert rows[[0, 2]].tolist() == own.find_rows(["a", "b"]).tolist()
    assert more[rows[1] - len(own.word_rows) - 1].sum() > 0.0


def logs(rules, sentences, known):
    own, unknown = BinarisedRules(rules), UnknownWords(rules)
    tokens = [word for sentence in sentences for word in sentence]
    rows, more = unknown.place_tokens(own, rules.probabilities, tokens, known)
    words = own.make_lexical(rules.probabilities, rows, more)
    text = make_rule_text(np.array([len(sentence) for sentence in sentences]))
    grammar = own.make_tables(rules.probabilities, own.root)
    inference = RuleInference(own, grammar, words, text)
    return inference.inside_outside(with_counts=False).log_p


def test_sentences_of_new_words_are_possible(rules, unknown):
    """By rules alone, the first has one tree, and the second one none."""
    free, strict = (logs(rules, [FOX, ["the", "barked", "king"]], known) for known in (0.3, 0.0))
    fox = unknown.probabilities(["fox"])[0, rules.symbols.index("NN")]
    assert strict == pytest.approx([np.log(5 / 11 * fox * 2 / 8 * 1 / 5), -np.inf])
    assert free[0] > strict[0]
    assert np.isfinite(free[1])


@pytest.mark.slow
def test_nearly_all_sentences_of_real_text_can_be_parsed():
    lines = real.lines("wsj_sample/wsj_sample.mrg.gz")
    some = read_trees(lines[:2000]).changed(remove_traces, remove_functions)
    bank = [binarise_right(tree, 2, 2) for tree in some if tree is not None]
    held_out = [tree.words() for tree in bank[-200:] if len(tree.words()) <= 15]
    rules = count_rules(bank[:-200])
    seen = set(BinarisedRules(rules).word_rows)
    assert sum(seen.issuperset(words) for words in held_out) < 0.5 * len(held_out)
    assert np.isfinite(logs(rules, held_out, 0.3)).mean() > 0.95


@pytest.mark.parametrize("weight", [0.5, 1e-3, 1e-300, 5e-324])
def test_trees_that_count_less_than_once(weight):
    """Weights that sum to one, say: a new word is as probable as if they all counted once."""
    given = ["(S (DT the) (NN dog))", "(S (DT the) (NN cat))"]
    whole = sc.PCFG.from_treebank(given)
    less = sc.PCFG.from_treebank(given, sample_weight=[weight, weight])
    text = ["the dog", "the emu", "an emu"]
    np.testing.assert_allclose(less.score_samples(text), whole.score_samples(text))
    mixed = sc.PCFG.from_treebank(given, sample_weight=[1.0, weight])
    assert (mixed.score_samples(text) <= 0.0).all()
    one = sc.PCFG.from_treebank([*given, "(S (UH oh))"], sample_weight=[1.0, 1.0, weight])
    assert (one.score_samples([*text, "ah"]) <= 0.0).all()
