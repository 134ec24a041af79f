"""Charts of any rules: sentences that are odd, long or impossible, and a peer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

import softcount as sc
from softcount.corpus.treebank import read_trees, without_functions, without_traces
from softcount.corpus.trees import Tree
from softcount.errors import LearnerError
from softcount.grammar import inside_outside as rule_passes
from softcount.grammar.rules import from_text, from_trees
from tests import real
from tests.models.grammar.rule_cases import (
    Case,
    random_case,
    random_rules,
)

seeds = st.integers(0, 2**32 - 1)


def test_empty_and_impossible_sentences():
    case = Case(from_text("S -> 'a' S | 'a'"), [[], ["a", "a"], ["b"], []])
    tally = case.expected()
    assert tally.logs == pytest.approx([0.0, math.log(0.25), -np.inf, 0.0])
    assert case.used(tally).rules == pytest.approx([1.0, 1.0])
    found = case.derived(best=True)
    assert [next(case.trees(found, s)) for s in (0, 2, 3)] == [None] * 3
    for s in (0, 2):
        spans = rule_passes.spans(case.own, case.grammar(), case.words, case.text, s)
        assert [len(part) for part in spans] == [0] * 4


def test_no_sentences():
    case = Case(from_text("S -> 'a' S | 'a'"), [])
    assert len(case.expected().logs) == 0
    assert case.derived().borders.tolist() == [0]


def test_long_sentences_neither_underflow_nor_overflow():
    # Catalan(n − 1) trees, each 0.5^(2n − 1) × 1e-12^n
    text = "S -> S S [0.5] | A [0.5]\nA -> 'a' [1e-12] | 'b'"
    n = 250
    case = Case(from_text(text), [["a"] * n])
    catalan = math.lgamma(2 * n - 1) - math.lgamma(n) - math.lgamma(n + 1)
    wanted = catalan + (2 * n - 1) * math.log(0.5) + n * math.log(1e-12)
    tally = case.expected()
    assert tally.logs == pytest.approx([wanted], rel=1e-12)
    assert case.used(tally).rules == pytest.approx([n - 1, n, n, 0.0], rel=1e-9)
    assert case.derived(best=True).logs == pytest.approx([wanted - catalan], rel=1e-12)


def test_halves_of_very_different_chances():
    text = "S -> A B\nA -> 'a' A [1e-10] | 'a'\nB -> 'b' B [0.99999] | 'b'"
    n = 100
    case = Case(from_text(text), [["a"] * n + ["b"] * n])
    wanted = (n - 1) * math.log(1e-10) + math.log1p(-1e-10)
    wanted += (n - 1) * math.log(0.99999) + math.log(1e-5)
    tally = case.expected()
    assert tally.logs == pytest.approx([wanted], rel=1e-9)
    assert case.used(tally).rules == pytest.approx([1, n - 1, 1, n - 1, 1], rel=1e-9)


def test_same_bits_for_any_number_of_threads():
    case = random_case(random_rules(11), 11, 60, 9)
    one, three = (case.expected(threads=threads) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()
    one, three = (case.derived(samples=2, stream=5, threads=threads) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()


# a peer
def test_the_best_trees_of_a_treebank_grammar_are_those_of_nltk():
    from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
    from nltk.parse import ViterbiParser

    lines = real.lines("wsj_sample/wsj_sample.mrg.gz")[:150]
    some = read_trees(lines).changed(without_traces, without_functions)
    rules = from_trees(some)
    case = Case(rules, [words for words in some.words() if 2 <= len(words) <= 7][:3])
    productions = [
        ProbabilisticProduction(
            Nonterminal(rule.lhs),
            [i if word else Nonterminal(i) for i, word in zip(rule.rhs, rule.is_word, strict=True)],
            prob=float(p),
        )
        for rule, p in zip(rules.rules, rules.chances, strict=True)
    ]
    for symbol, p in rules.root.items():
        right = [Nonterminal(symbol)]
        productions.append(ProbabilisticProduction(Nonterminal("ROOT"), right, prob=p))
    parser = ViterbiParser(PCFG(Nonterminal("ROOT"), productions))
    found = case.derived(best=True)
    for s, words in enumerate(case.sentences):
        (theirs,) = parser.parse(words)
        (mine,) = case.trees(found, s)
        assert found.logs[s] == pytest.approx(math.log(theirs.prob()), abs=1e-9)
        assert mine == _ours(theirs[0])
    assert len(case.sentences) == 3


def _ours(theirs):
    return Tree(theirs.label(), tuple(c if isinstance(c, str) else _ours(c) for c in theirs))


def test_all_trees_of_a_small_grammar_are_those_of_nltk():
    from nltk.grammar import PCFG
    from nltk.parse import InsideChartParser

    text = """
    S -> NP VP [1.0]
    NP -> NP PP [0.3] | 'she' [0.3] | 'stars' [0.2] | 'ears' [0.2]
    VP -> V NP [0.5] | VP PP [0.4] | V [0.1]
    PP -> 'with' NP [1.0]
    V -> 'saw' [1.0]
    """
    words = ["she", "saw", "stars", "with", "ears", "with", "stars"]
    case = Case(from_text(text), [words])
    theirs = list(InsideChartParser(PCFG.fromstring(text)).parse(words))
    total = math.fsum(one.prob() for one in theirs)
    assert len(theirs) == 5
    assert case.expected().logs == pytest.approx([math.log(total)], abs=1e-12)
    assert case.derived(best=True).logs == pytest.approx(
        [math.log(max(one.prob() for one in theirs))], abs=1e-12
    )


def test_chains_that_hardly_end():
    """They are summed, and have a best one; trees that go round for ever are not drawn."""
    text = "S -> A\nA -> S [{0!r}] | 'a' [{1!r}]"
    model = sc.PCFG.from_rules(text.format(1.0 - 2.0**-40, 2.0**-40))
    assert model.score_samples(["a"])[0] == pytest.approx(0.0, abs=1e-3)
    assert str(model.predict(["a"])[0]) == "(S (A a))"
    with pytest.raises(LearnerError, match="go round some"):
        model.sample_trees(["a"])
    assert len(sc.PCFG.from_rules(text.format(0.999, 0.001)).sample_trees(["a"], 3)[0]) == 3
