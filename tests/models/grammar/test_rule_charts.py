"""Charts of any rules: against sums over spans, over derivations, matrix inverses, and a peer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.corpus.treebank import read_trees, without_functions, without_traces
from softcount.corpus.trees import Tree
from softcount.errors import LearnerError
from softcount.kernels.unary_chains import closure
from softcount.models.grammar import rule_passes
from softcount.models.grammar.binarised import Binarised
from softcount.models.grammar.rule_text import from_text
from softcount.models.grammar.rules import Rule, from_counts, from_trees
from tests import real
from tests.oracles import trees as oracles

seeds = st.integers(0, 2**32 - 1)
SYMBOLS, WORDS = ("S", "A", "B", "C"), ("a", "b", "c")


def random_rules(seed, cycles=True):
    """Rules of all kinds, one word a symbol at least; S, A or B is the root."""
    rng = np.random.default_rng(seed)
    counts = {}
    for n, symbol in enumerate(SYMBOLS):
        counts[Rule(symbol, (str(rng.choice(WORDS)),), (True,))] = 1.0
        for _ in range(rng.integers(2, 5)):
            size = rng.choice([1, 2, 2, 3, 4])
            is_word = tuple(rng.random(size) < 0.3)
            items = tuple(str(rng.choice(WORDS if word else SYMBOLS)) for word in is_word)
            is_forward = cycles or items[0] in SYMBOLS[n + 1 :]
            if is_word != (False,) or is_forward:
                counts[Rule(symbol, items, tuple(map(bool, is_word)))] = rng.random() + 0.1
    return from_counts(counts, {s: rng.random() + 0.1 for s in SYMBOLS[:3]})


@dataclass
class Case:
    """A grammar, sentences, and all that is needed to go through them."""

    rules: object
    sentences: list

    @cached_property
    def own(self):
        return Binarised(self.rules)

    @cached_property
    def text(self):
        return rule_passes.text(np.array([len(s) for s in self.sentences], np.int64))

    @cached_property
    def words(self):
        rows = self.own.rows(word for sentence in self.sentences for word in sentence)
        return self.own.words(self.rules.chances, rows)

    def grammar(self, **how):
        return self.own.grammar(self.rules.chances, self.own.root, **how)

    def expected(self, weights=None, text=None, allowed=None, **how):
        weights = np.ones(len(self.sentences)) if weights is None else weights
        about = (self.grammar(allowed=allowed), self.words, text or self.text, weights)
        return rule_passes.expected(self.own, *about, **how)

    def used(self, tally):
        return self.own.used(tally, self.words)

    def derived(self, best=False, text=None, allowed=None, **how):
        numbers = np.arange(len(self.sentences))
        grammar = self.grammar(best=best, allowed=allowed)
        return rule_passes.derived(grammar, self.words, text or self.text, numbers, **how)

    def trees(self, found, s, samples=1):
        for d in range(s * samples, (s + 1) * samples):
            codes = found.codes[found.borders[d] : found.borders[d + 1]]
            yield self.own.tree(codes, self.sentences[s], self.words)

    @cached_property
    def oracle(self):
        """The root is a rule more: how often it is used is 1, and then what rules it has."""
        pairs = zip(self.rules.rules, self.rules.chances, strict=True)
        roots = [("ROOT", (symbol,), p) for symbol, p in self.rules.root.items()]
        return oracles.Rules([(rule.lhs, rule.rhs, p) for rule, p in pairs] + roots, "ROOT")


def sentences_of(rules, seed, n=4, most=6):
    """Sentences of the grammar that are not too long, and some that are drawn word by word."""
    rng = np.random.default_rng(seed)
    drawn = (_drawn(rules, rng, most) if rng.random() < 0.9 else None for _ in range(n))
    return [
        words or [str(rng.choice(WORDS)) for _ in range(rng.integers(1, most + 1))]
        for words in drawn
    ]


def _drawn(rules, rng, most):
    """The longest of some sentences that are not too long."""
    found = []
    for _ in range(20):
        ahead, words = [str(rng.choice(list(rules.root)))], []
        while ahead and len(ahead) + len(words) <= most:
            symbol = ahead.pop()
            at = [r for r, rule in enumerate(rules.rules) if rule.lhs == symbol]
            rule = rules.rules[rng.choice(at, p=rules.chances[at])]
            ahead += reversed(rule.rhs)
            while ahead and ahead[-1] in WORDS:
                words.append(ahead.pop())
        if not ahead and len(found) < len(words) <= most:
            found = words
    return found


def random_case(rules, seed, *sizes):
    return Case(rules, sentences_of(rules, seed, *sizes))


def as_tree(node):
    return Tree(node[0], tuple(as_tree(c) if isinstance(c, tuple) else c for c in node[1:]))


def trees_of(case, words, most_unary=5):
    """All trees, below the root that the oracle has, and their p."""
    found = Counter()
    for node, p in case.oracle.derivations(tuple(words), most_unary):
        found[as_tree(node[1])] += p
    return found


# sums
@given(seeds)
@settings(max_examples=12, deadline=None)
def test_likelihoods_and_counts(seed):
    case = random_case(random_rules(seed), seed)
    tally = case.expected(np.arange(1.0, 5.0))
    logs = [case.oracle.log_p(words) for words in case.sentences]
    assert tally.logs == pytest.approx(logs, abs=1e-11)
    used = case.used(tally)
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
    trees = trees_of(case, case.sentences[0])
    for one, p in trees.items():
        for label, start, end in one.spans():
            wanted[start, end, label] += p / sum(trees.values())
    for i, j, symbol, number in zip(
        *rule_passes.spans(case.own, case.grammar(), case.words, case.text, 0), strict=True
    ):
        found[i, j, case.own.labels[symbol]] += number
    assert found.keys() == wanted.keys()
    assert dict(found) == pytest.approx(dict(wanted), abs=1e-11)


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_chains_are_the_inverse(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), size=5)[:, :5] * (rng.random((5, 5)) < 0.5)
    assert closure(table) == pytest.approx(np.linalg.inv(np.eye(5) - table), rel=1e-9, abs=1e-12)
    powers = [np.linalg.matrix_power(table > 0.0, n) for n in range(6)]
    assert ((closure(table) > 0.0) == (sum(p.astype(int) for p in powers) > 0)).all()


def test_chains_without_an_end_are_an_error():
    case = Case(from_text("S -> S [0.5] | 'a'"), [["a"]])
    with pytest.raises(LearnerError, match="no finite sum"):
        case.own.grammar(np.array([1.0, 0.0]), case.own.root)


# derivations
@given(seeds)
@settings(max_examples=25, deadline=None)
def test_best_trees(seed):
    case = random_case(random_rules(seed), seed)
    found = case.derived(best=True)
    chances = dict(zip(case.rules.rules, case.rules.chances, strict=True))
    for s, words in enumerate(case.sentences):
        (mine,) = case.trees(found, s)
        wanted = largest(case.rules, words)
        assert found.logs[s] == pytest.approx(oracles.log(wanted), abs=1e-11)
        assert (mine is None) == (wanted == 0.0)
        if mine is not None:
            steps = [chances[_rule(node)] for node in mine.nodes()]
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
            for rule, p in zip(rules.rules, rules.chances, strict=True):
                value = p * over(list(zip(rule.rhs, rule.is_word, strict=True)), i, j)
                best[rule.lhs, i, j] = max(best[rule.lhs, i, j], value)
    return max(p * best[symbol, 0, n] for symbol, p in rules.root.items())


def _width(span):
    return span[1] - span[0]


def _rule(node):
    is_word = tuple(isinstance(child, str) for child in node.children)
    items = tuple(c if isinstance(c, str) else c.label for c in node.children)
    return Rule(node.label, items, is_word)


def check_draws(case, n, stream):
    found = case.derived(samples=n, stream=stream)
    assert found.logs == pytest.approx(case.expected().logs, abs=1e-12)
    for s, words in enumerate(case.sentences):
        trees = trees_of(case, words)
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
    check_draws(Case(from_text(text), [["a"] * 4, ["a"] * 5]), 2000, 17)


def test_draws_depend_on_the_sentence_and_the_stream_alone():
    case = random_case(random_rules(3), 3, 6)
    first, again, other = (case.derived(samples=5, stream=s) for s in (1, 1, 2))
    assert (first.codes == again.codes).all()
    assert len(first.codes) != len(other.codes) or (first.codes != other.codes).any()
    alone = Case(case.rules, case.sentences[2:3])
    about = (alone.grammar(), case.words._replace(rows=alone.words.rows), alone.text)
    found = rule_passes.derived(*about, np.array([2]), samples=5, stream=1)
    begin, end = first.borders[10], first.borders[15]
    assert (found.codes == first.codes[begin:end]).all()


@given(seeds)
@settings(max_examples=10, deadline=None)
def test_what_derivations_add_up_to(seed):
    case = random_case(random_rules(seed), seed)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    found = case.derived(samples=3, stream=seed)
    used = case.used(rule_passes.counted(case.own, case.words, found, weights))
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
    rng = np.random.default_rng(seed)
    case = random_case(random_rules(seed, cycles=False), seed, 2, 5)
    allowed = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]], bool)
    n = len(case.sentences[1])
    sets = rng.choice(4, size=n * (n + 1) // 2, p=[0.6, 0.1, 0.15, 0.15])
    cells = dict(zip([(i, j) for i in range(n) for j in range(i + 1, n + 1)], sets, strict=True))
    numbers = {label: a for a, label in enumerate(case.own.labels)}
    text = case.text._replace(begins=np.array([-1, 0]), sets=sets.astype(np.int64))

    def fits(one):
        return all(allowed[cells[i, j], numbers[label]] for label, i, j in one.spans())

    trees = {t: p for t, p in trees_of(case, case.sentences[1]).items() if fits(t)}
    tally = case.expected(np.array([0.0, 1.0]), text, allowed)
    free = case.oracle.log_p(case.sentences[0])
    assert tally.logs == pytest.approx([free, oracles.log(math.fsum(trees.values()))], abs=1e-11)
    wanted = Counter()
    for one, p in trees.items():
        for node in one.nodes():
            wanted[_rule(node)] += p / sum(trees.values())
    assert case.used(tally).rules == pytest.approx([wanted[r] for r in case.rules.rules], abs=1e-10)
    (mine,) = case.trees(case.derived(True, text, allowed), 1)
    assert (mine is None) == (not trees)
    if trees:
        assert trees[mine] == pytest.approx(max(trees.values()))


def test_a_flat_rule_crosses_nothing():
    case = Case(from_text("S -> A A A [0.5] | A B\nA -> 'a'\nB -> A A"), [["a", "a", "a"]])
    cells = [(i, j) for i in range(3) for j in range(i + 1, 4)]
    sets = np.array([int(span == (1, 3)) for span in cells])
    text = case.text._replace(begins=np.array([0]), sets=sets)
    tally = case.expected(text=text, allowed=np.array([[True] * 3, [False] * 3]))
    assert tally.logs == pytest.approx([math.log(0.5)])


def test_words_that_are_in_no_rule():
    case = Case(from_text("S -> A B\nA -> 'a'\nB -> 'b' | A"), [["a", "?"], ["?", "?"], ["?", "b"]])
    assert (case.expected().logs == -np.inf).all()
    more = np.array([[0.0, 0.5, 0.25]])  # of S, A, B
    unknown = len(case.own.word_rows)
    rows = np.where(case.words.rows == unknown, unknown + 1, case.words.rows)
    words = case.own.words(case.rules.chances, rows, more)
    about = (case.grammar(), words, case.text, np.ones(3))
    tally = rule_passes.expected(case.own, *about)
    assert np.exp(tally.logs) == pytest.approx([0.5, 0.25, 0.25])
    used = case.own.used(tally, words)
    # the second word is a B, half of the time by way of A
    assert used.more == pytest.approx(np.array([[0.0, 3.0, 1.0]]))
    assert used.rules == pytest.approx([3.0, 1.0, 1.0, 1.0])
    found = rule_passes.derived(case.grammar(), words, case.text, np.arange(3))
    assert str(case.own.tree(found.codes[: found.borders[1]], ["a", "?"], words)).startswith(
        "(S (A a)"
    )


# edges
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
