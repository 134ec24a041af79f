"""Rule-based grammars: against sums over spans, over derivations, matrix inverses, and a peer."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.grammar.kernels.rules import unary_closure
from softcount.grammar.rule_based import RuleInference
from softcount.grammar.rules import GrammarRule, count_rules, parse_rules
from softcount.text.treebank import read_trees, remove_functions, remove_traces
from softcount.text.trees import Tree
from tests import real
from tests.grammar.cases import (
    SETS,
    SYMBOLS,
    RuleCase,
    all_trees,
    random_case,
    random_rules,
    random_sets,
)
from tests.oracles import trees as oracles

# Charts of any rules: against sums over spans, over derivations, matrix inverses, and a peer


seeds = st.integers(0, 2**32 - 1)


# sums
@given(seeds)
@settings(max_examples=12, deadline=None)
def test_likelihoods_and_counts(seed):
    case = random_case(random_rules(seed), seed)
    counts = case.expected(np.arange(1.0, 5.0))
    logs = [case.oracle.log_p(words) for words in case.sentences]
    assert counts.log_p == pytest.approx(logs, abs=1e-11)
    used = case.usage(counts)
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
    trees = all_trees(case, case.sentences[0])
    for one, p in trees.items():
        for label, start, end in one.spans():
            wanted[start, end, label] += p / sum(trees.values())
    for i, j, symbol, number in zip(*case.infer().span_posteriors(0), strict=True):
        found[i, j, case.own.labels[symbol]] += number
    assert found.keys() == wanted.keys()
    assert dict(found) == pytest.approx(dict(wanted), abs=1e-11)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_chains_are_the_inverse(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), size=5)[:, :5] * (rng.random((5, 5)) < 0.5)
    assert unary_closure(table) == pytest.approx(
        np.linalg.inv(np.eye(5) - table), rel=1e-9, abs=1e-12
    )
    powers = [np.linalg.matrix_power(table > 0.0, n) for n in range(6)]
    assert ((unary_closure(table) > 0.0) == (sum(p.astype(int) for p in powers) > 0)).all()


def test_chains_without_an_end_are_an_error():
    case = RuleCase(parse_rules("S -> S [0.5] | 'a'"), [["a"]])
    with pytest.raises(LearnerError, match="diverges"):
        case.own.make_tables(np.array([1.0, 0.0]), case.own.root)


# derivations
@given(seeds)
@settings(max_examples=25, deadline=None)
def test_best_trees(seed):
    case = random_case(random_rules(seed), seed)
    found = case.trace(viterbi=True)
    probabilities = dict(zip(case.rules.rules, case.rules.probabilities, strict=True))
    for s, words in enumerate(case.sentences):
        (mine,) = case.trees(found, s)
        wanted = largest(case.rules, words)
        assert found.log_p[s] == pytest.approx(oracles.log(wanted), abs=1e-11)
        assert (mine is None) == (wanted == 0.0)
        if mine is not None:
            steps = [probabilities[_rule(node)] for node in mine.nodes()]
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
            for rule, p in zip(rules.rules, rules.probabilities, strict=True):
                value = p * over(list(zip(rule.rhs, rule.is_word, strict=True)), i, j)
                best[rule.lhs, i, j] = max(best[rule.lhs, i, j], value)
    return max(p * best[symbol, 0, n] for symbol, p in rules.root.items())


def _width(span):
    return span[1] - span[0]


def _rule(node):
    is_word = tuple(isinstance(child, str) for child in node.children)
    items = tuple(c if isinstance(c, str) else c.label for c in node.children)
    return GrammarRule(node.label, items, is_word)


def check_draws(case, n, stream):
    found = case.trace(samples=n, stream=stream)
    assert found.log_p == pytest.approx(case.expected().log_p, abs=1e-12)
    for s, words in enumerate(case.sentences):
        trees = all_trees(case, words)
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
    check_draws(RuleCase(parse_rules(text), [["a"] * 4, ["a"] * 5]), 2000, 17)


def test_draws_depend_on_the_sentence_and_the_stream_alone():
    case = random_case(random_rules(3), 3, 6)
    first, again, other = (case.trace(samples=5, stream=s) for s in (1, 1, 2))
    assert (first.codes == again.codes).all()
    assert len(first.codes) != len(other.codes) or (first.codes != other.codes).any()
    alone = RuleCase(case.rules, case.sentences[2:3])
    words = case.words._replace(rows=alone.words.rows)
    inference = alone.infer(numbers=np.array([2]))._replace(lexical=words)
    found = inference.trace(samples=5, stream=1)
    begin, end = first.indptr[10], first.indptr[15]
    assert (found.codes == first.codes[begin:end]).all()


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_what_derivations_add_up_to(seed):
    case = random_case(random_rules(seed), seed)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    found = case.trace(samples=3, stream=seed)
    used = case.usage(case.infer(weights=weights).count_derivations(found))
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
    counts = case.expected(np.array([0.0, 1.0]), text, SETS)
    free = case.oracle.log_p(case.sentences[0])
    assert counts.log_p == pytest.approx([free, oracles.log(math.fsum(trees.values()))], abs=1e-11)
    wanted = Counter()
    for one, p in trees.items():
        for node in one.nodes():
            wanted[_rule(node)] += p / sum(trees.values())
    assert case.usage(counts).rules == pytest.approx(
        [wanted[r] for r in case.rules.rules], abs=1e-10
    )
    (mine,) = case.trees(case.trace(True, text, SETS), 1)
    assert (mine is None) == (not trees)
    if trees:
        assert trees[mine] == pytest.approx(max(trees.values()))


def test_a_flat_rule_crosses_nothing():
    case = RuleCase(parse_rules("S -> A A A [0.5] | A B\nA -> 'a'\nB -> A A"), [["a", "a", "a"]])
    cells = [(i, j) for i in range(3) for j in range(i + 1, 4)]
    sets = np.array([int(span == (1, 3)) for span in cells])
    text = case.text._replace(begins=np.array([0]), sets=sets)
    counts = case.expected(text=text, allowed=np.array([[True] * 3, [False] * 3]))
    assert counts.log_p == pytest.approx([math.log(0.5)])


def test_words_that_are_in_no_rule():
    case = RuleCase(
        parse_rules("S -> A B\nA -> 'a'\nB -> 'b' | A"), [["a", "?"], ["?", "?"], ["?", "b"]]
    )
    assert (case.expected().log_p == -np.inf).all()
    more = np.array([[0.0, 0.5, 0.25]])  # of S, A, B
    unknown = len(case.own.word_rows)
    rows = np.where(case.words.rows == unknown, unknown + 1, case.words.rows)
    words = case.own.make_lexical(case.rules.probabilities, rows, more)
    inference = RuleInference(case.own, case.tables(), words, case.text)
    counts = inference.inside_outside()
    assert np.exp(counts.log_p) == pytest.approx([0.5, 0.25, 0.25])
    # the second word is a B, half of the time by way of A
    assert words.symbols[case.own.n_lexical :].tolist() == [1, 2]
    assert counts.lexical[case.own.n_lexical :] == pytest.approx([3.0, 1.0])
    assert case.usage(counts).rules == pytest.approx([3.0, 1.0, 1.0, 1.0])
    found = inference.trace()
    assert str(case.own.make_tree(found.codes[: found.indptr[1]], ["a", "?"], words)).startswith(
        "(S (A a)"
    )


# Charts of any rules: sentences that are odd, long or impossible, and a peer


seeds = st.integers(0, 2**32 - 1)


def test_empty_and_impossible_sentences():
    case = RuleCase(parse_rules("S -> 'a' S | 'a'"), [[], ["a", "a"], ["b"], []])
    counts = case.expected()
    assert counts.log_p == pytest.approx([0.0, math.log(0.25), -np.inf, 0.0])
    assert case.usage(counts).rules == pytest.approx([1.0, 1.0])
    found = case.trace(viterbi=True)
    assert [next(case.trees(found, s)) for s in (0, 2, 3)] == [None] * 3
    for s in (0, 2):
        spans = case.infer().span_posteriors(s)
        assert [len(part) for part in spans] == [0] * 4


def test_no_sentences():
    case = RuleCase(parse_rules("S -> 'a' S | 'a'"), [])
    assert len(case.expected().log_p) == 0
    assert case.trace().indptr.tolist() == [0]


def test_long_sentences_neither_underflow_nor_overflow():
    # Catalan(n − 1) trees, each 0.5^(2n − 1) × 1e-12^n
    text = "S -> S S [0.5] | A [0.5]\nA -> 'a' [1e-12] | 'b'"
    n = 250
    case = RuleCase(parse_rules(text), [["a"] * n])
    catalan = math.lgamma(2 * n - 1) - math.lgamma(n) - math.lgamma(n + 1)
    wanted = catalan + (2 * n - 1) * math.log(0.5) + n * math.log(1e-12)
    counts = case.expected()
    assert counts.log_p == pytest.approx([wanted], rel=1e-12)
    assert case.usage(counts).rules == pytest.approx([n - 1, n, n, 0.0], rel=1e-9)
    assert case.trace(viterbi=True).log_p == pytest.approx([wanted - catalan], rel=1e-12)


def test_halves_of_very_different_chances():
    text = "S -> A B\nA -> 'a' A [1e-10] | 'a'\nB -> 'b' B [0.99999] | 'b'"
    n = 100
    case = RuleCase(parse_rules(text), [["a"] * n + ["b"] * n])
    wanted = (n - 1) * math.log(1e-10) + math.log1p(-1e-10)
    wanted += (n - 1) * math.log(0.99999) + math.log(1e-5)
    counts = case.expected()
    assert counts.log_p == pytest.approx([wanted], rel=1e-9)
    assert case.usage(counts).rules == pytest.approx([1, n - 1, 1, n - 1, 1], rel=1e-9)


def test_same_bits_for_any_number_of_threads():
    case = random_case(random_rules(11), 11, 60, 9)
    one, three = (case.expected(threads=threads) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()
    one, three = (case.trace(samples=2, stream=5, threads=threads) for threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert (a == b).all()


# a peer
def test_the_best_trees_of_a_treebank_grammar_are_those_of_nltk():
    from nltk.grammar import PCFG, Nonterminal, ProbabilisticProduction
    from nltk.parse import ViterbiParser

    lines = real.lines("wsj_sample/wsj_sample.mrg.gz")[:150]
    some = read_trees(lines).changed(remove_traces, remove_functions)
    rules = count_rules(some)
    case = RuleCase(rules, [words for words in some.words() if 2 <= len(words) <= 7][:3])
    productions = [
        ProbabilisticProduction(
            Nonterminal(rule.lhs),
            [i if word else Nonterminal(i) for i, word in zip(rule.rhs, rule.is_word, strict=True)],
            prob=float(p),
        )
        for rule, p in zip(rules.rules, rules.probabilities, strict=True)
    ]
    for symbol, p in rules.root.items():
        right = [Nonterminal(symbol)]
        productions.append(ProbabilisticProduction(Nonterminal("ROOT"), right, prob=p))
    parser = ViterbiParser(PCFG(Nonterminal("ROOT"), productions))
    found = case.trace(viterbi=True)
    for s, words in enumerate(case.sentences):
        (theirs,) = parser.parse(words)
        (mine,) = case.trees(found, s)
        assert found.log_p[s] == pytest.approx(math.log(theirs.prob()), abs=1e-9)
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
    case = RuleCase(parse_rules(text), [words])
    theirs = list(InsideChartParser(PCFG.fromstring(text)).parse(words))
    total = math.fsum(one.prob() for one in theirs)
    assert len(theirs) == 5
    assert case.expected().log_p == pytest.approx([math.log(total)], abs=1e-12)
    assert case.trace(viterbi=True).log_p == pytest.approx(
        [math.log(max(one.prob() for one in theirs))], abs=1e-12
    )


def test_chains_that_hardly_end():
    """They are summed, and have a best one; trees that go round for ever are not drawn."""
    text = "S -> A\nA -> S [{0!r}] | 'a' [{1!r}]"
    model = sc.PCFG.from_rules(text.format(1.0 - 2.0**-40, 2.0**-40))
    assert model.score_samples(["a"])[0] == pytest.approx(0.0, abs=1e-3)
    assert str(model.predict(["a"])[0]) == "(S (A a))"
    with pytest.raises(LearnerError, match="cycles of unary rules repeat some"):
        model.sample_trees(["a"])
    assert len(sc.PCFG.from_rules(text.format(0.999, 0.001)).sample_trees(["a"], 3)[0]) == 3
