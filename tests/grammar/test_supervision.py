"""What is known of sentences: all trees that agree with it, and no others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import DataError
from softcount.text.trees import Tree, tree
from tests.grammar.cases import (
    TOY,
    Known,
    RuleCase,
    all_trees,
    assert_same,
    random_brackets,
    random_rules,
    sentences_of,
)
from tests.oracles.trees import log, not_crossing

EXACT = 1e-10
seeds = pytest.mark.parametrize("seed", range(4))


def labels_of(brackets: Any) -> dict[tuple[int, int], set[str]]:
    found: dict[tuple[int, int], set[str]] = {}
    for *label, start, end in brackets:
        if label:
            found.setdefault((start, end), set()).add(label[0])
    return found


def agrees(one: Tree, brackets: Any, tags: set[str]) -> bool:
    """By the spans of the tree, and nothing else."""
    known = labels_of(brackets)
    for label, i, j in one.spans():
        if any(a < i < b < j or i < a < j < b for *_, a, b in brackets):
            return False
        own = known.get((i, j))
        if own is not None and j == i + 1 and not own & tags:
            own = own | tags
        if own is not None and label not in own:
            return False
    return True


# dense grammars
@seeds
@pytest.mark.parametrize("labelled", [False, True])
def test_dense_grammars(seed: int, labelled: bool) -> None:
    known = Known(2, 2, "abc", seed)
    rng, model = np.random.default_rng(seed), known.model
    sentences = [[str(w) for w in rng.choice(list("abc"), n)] for n in (2, 3, 4, 4, 5)]
    labels = model.labels_[:2] if labelled else ()
    brackets = [random_brackets(rng, len(words), labels) for words in sentences]
    logs = model.score_samples(sentences, brackets=brackets)
    found = model.posterior(sentences, brackets=brackets, threshold=0.0).brackets
    for words, some, log_p, spans in zip(sentences, brackets, logs, found, strict=True):
        allowed = dict(not_crossing(len(words), [one[-2:] for one in some]))
        for (i, j), own in labels_of(some).items():
            if j > i + 1:  # of one word it says nothing
                allowed[i, j] = frozenset(model.labels_.index(label) for label in own)
        numbers = known.numbers(words)
        assert log_p == pytest.approx(known.oracle.log_p(numbers, allowed), abs=EXACT)
        wanted = known.oracle.posterior_spans(numbers, allowed)
        assert len(spans) >= np.count_nonzero(wanted)
        for (label, i, j), share in spans.items():
            symbols = [a for a, name in enumerate(model.labels_) if name == label]
            assert share == pytest.approx(wanted[i, j, symbols].sum(), abs=EXACT)
    for best, some in zip(model.predict(sentences, brackets=brackets), brackets, strict=True):
        assert best is not None
        wide = [one for one in some if one[-1] > one[-2] + 1]
        assert agrees(best, wide, set())
        spans = {(i, j) for _, i, j in best.spans()}
        assert {one[-2:] for one in wide} <= spans  # binary trees have all that they do not cross


@seeds
def test_whole_trees_as_brackets(seed: int) -> None:
    """Their labels are not looked at."""
    known = Known(2, 2, "abc", seed)
    given = tree("(X (X (X a) (X b)) (X (X c) (X (X a) (X b))))")
    words = given.words()
    shapes = {(i, j) for _, i, j in given.spans()}
    wanted = (
        p for one, p in known.trees(words).items() if {(i, j) for _, i, j in one.spans()} == shapes
    )
    (log_p,) = known.model.score_samples([words], brackets=[given])
    assert log_p == pytest.approx(log(math.fsum(wanted)), abs=EXACT)


@seeds
@pytest.mark.parametrize("method", ["brackets", "labelled"])
def test_trees_of_least_risk_cross_nothing(seed: int, method: str) -> None:
    known = Known(2, 2, "abc", seed)
    rng = np.random.default_rng(seed)
    sentences = [[str(w) for w in rng.choice(list("abc"), n)] for n in (3, 5, 7, 9)]
    brackets = [random_brackets(rng, len(words)) for words in sentences]
    found = known.model.predict(sentences, brackets=brackets, method=method)
    assert all(agrees(one, some, set()) for one, some in zip(found, brackets, strict=True))
    assert [one.words() for one in found] == sentences


def test_one_word_says_nothing_in_dense_grammars() -> None:
    model = sc.PCFG(1, 1).fit(["a b"], brackets=[[("NN", 0, 1), (1, 2)]])
    assert model.labels_ == ("N0", "P0")


def test_labels_of_a_span_are_any_of_those_given() -> None:
    known = Known(3, 2, "ab")
    both = [("N0", 0, 2), ("N2", 0, 2)]
    logs = [
        known.model.score_samples(["a b a"], brackets=[some])[0]
        for some in (both, both[:1], both[1:], [("N1", 0, 2)], [(0, 2)])
    ]
    one, two, other = np.exp(logs[1]), np.exp(logs[2]), np.exp(logs[3])
    # what begins with the second word is left out by all brackets
    flat = np.exp(logs[4]) - one - two - other
    assert flat == pytest.approx(0.0, abs=1e-15)
    assert np.exp(logs[0]) == pytest.approx(one + two)


# grammars of rules
@seeds
@pytest.mark.parametrize("labelled", [False, True])
def test_grammars_of_rules(seed: int, labelled: bool) -> None:
    """A bracket need not be there, but is not crossed."""
    rules = random_rules(seed, cycles=False)
    rng, model = np.random.default_rng(seed), sc.PCFG.from_rules(rules)
    tags = {rule.lhs for rule in rules.rules if rule.is_word == (True,)}
    sentences = sentences_of(rules, seed, 5, 5)
    labels = rules.symbols if labelled else ()
    brackets = [random_brackets(rng, len(words), labels) for words in sentences]
    logs = model.score_samples(sentences, brackets=brackets)
    found = model.posterior(sentences, brackets=brackets, threshold=0.0).brackets
    best = model.predict(sentences, brackets=brackets)
    every = [all_trees(RuleCase(rules, [words]), words) for words in sentences]
    for trees, some, log_p, spans, top in zip(every, brackets, logs, found, best, strict=True):
        trees = {one: p for one, p in trees.items() if agrees(one, some, tags)}
        total = math.fsum(trees.values())
        assert log_p == pytest.approx(log(total), abs=EXACT)
        assert (top is None) == (not trees)
        if trees:
            assert trees[top] == pytest.approx(max(trees.values()))
        for (label, i, j), share in spans.items():
            pairs = ((one.spans().count((label, i, j)), p) for one, p in trees.items())
            wanted = math.fsum(n * p for n, p in pairs)
            assert share == pytest.approx(wanted / total, abs=EXACT)


def test_flat_rules_need_no_brackets() -> None:
    model = sc.PCFG.from_rules("S -> 'a' 'b' 'c' [0.6] | X 'c' [0.4]\nX -> 'a' 'b'")
    p = lambda some: np.exp(model.score_samples(["a b c"], brackets=[some])[0])  # noqa: E731
    assert p([(0, 2)]) == pytest.approx(1.0)
    assert p([(1, 3)]) == pytest.approx(0.6)
    assert p([("X", 0, 2)]) == pytest.approx(1.0)
    assert p([("S", 0, 2)]) == pytest.approx(0.6)
    assert p([("X", 0, 3)]) == 0.0
    assert p([(1, 3), ("X", 0, 3)]) == 0.0
    assert model.predict(["a b c"], brackets=[[(1, 3)]]) == [tree("(S a b c)")]


def test_chains_under_labels() -> None:
    """Above a word, tags stay possible; if the label is a tag, it is the only one."""
    model = sc.PCFG.from_rules(
        "S -> X Y\nX -> N [0.5] | M [0.25] | 'a' [0.25]\nN -> 'a'\nM -> 'a'\nY -> Z\nZ -> 'b'"
    )
    p = lambda some: np.exp(model.score_samples(["a b"], brackets=[some])[0])  # noqa: E731
    assert p([("Y", 1, 2)]) == pytest.approx(1.0)
    assert p([("X", 0, 1)]) == pytest.approx(0.25)  # no N and no M
    assert p([("X", 0, 1), ("N", 0, 1)]) == pytest.approx(0.75)
    assert p([("N", 0, 1)]) == 0.0
    assert p([("Z", 1, 2)]) == 0.0


# whole trees are counted
EXACTLY = {
    "EM": sc.EM(max_iter=2),
    "HardEM": sc.HardEM(max_iter=2),
    "IncrementalEM": sc.IncrementalEM(batch_size=1, max_iter=2),
    "MonteCarloEM": sc.MonteCarloEM(samples=2, max_iter=2),
    "annealed": sc.EM(max_iter=4, temper=(0.3, 0.6, 1.0)),
}


@pytest.mark.parametrize("learner", EXACTLY)
@pytest.mark.parametrize("kind", ["dense", "rules"])
def test_all_learners_count_whole_trees(learner: str, kind: str) -> None:
    trees = ["(S (A a) (B b))", "(S (S (A a) (A c)) (B b))", "(S (A a) (S (A c) (B a)))"]
    rules = "S -> A B | S B | A A | A S\nA -> 'a' | 'c'\nB -> 'a' | 'b'"
    settings = {"rules": rules} if kind == "rules" else {}
    model = sc.PCFG(**settings, learner=EXACTLY[learner]).fit(None, trees)
    pairs = zip(*_pairs(model.grammar(0.0)), strict=True)
    found = {str(rule): p for rule, p in pairs if p > 1e-12}
    wanted = {"S -> A B": 2 / 5, "S -> S B": 1 / 5, "S -> A A": 1 / 5, "S -> A S": 1 / 5}
    wanted |= {"A -> 'a'": 3 / 5, "A -> 'c'": 2 / 5, "B -> 'b'": 2 / 3, "B -> 'a'": 1 / 3}
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("learner", [None, sc.EM(max_iter=1), sc.HardEM(max_iter=2)])
def test_trees_are_counted(learner: Any) -> None:
    trees = [
        "(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat))))",
        "(S (NP she) (VP (V sees) (NP (D the) (N cat))))",
        "(S (NP she) (VP sleeps))",
    ]
    model = sc.PCFG(learner=learner).fit(None, trees)
    assert model.labels_ == ("NP", "S", "VP", "D", "N", "NP", "V", "VP")
    found = {str(rule): p for rule, p in zip(*_pairs(model.grammar(0.0)), strict=True) if p > 1e-12}
    wanted = {
        "S -> NP VP": 1 / 3,
        "S -> NP= VP": 1 / 3,
        "S -> NP= VP=": 1 / 3,
        "NP -> D N": 1.0,
        "VP -> V NP": 1.0,
        "D -> 'the'": 2 / 3,
        "D -> 'a'": 1 / 3,
        "N -> 'dog'": 1 / 3,
        "N -> 'cat'": 2 / 3,
        "NP= -> 'she'": 1.0,
        "V -> 'sees'": 1.0,
        "VP= -> 'sleeps'": 1.0,
    }
    assert found == pytest.approx(wanted)
    assert dict(model.grammar(0.0).root) == pytest.approx({"S": 1.0})
    assert model.predict([tree(one).words() for one in trees]) == [tree(one) for one in trees]


def _pairs(rules: Any) -> tuple[Any, Any]:
    return rules.rules, rules.probabilities.tolist()


@pytest.mark.parametrize("weights", [None, [2.0, 0.5, 0.0]])
def test_trees_of_rules_are_counted(weights: Any) -> None:
    trees = [
        "(S (NP (D the) (N dog)) (VP (V sees) (NP she)))",
        "(S (S (VP (V sleeps))) and (S (NP she) (VP (VP (V sleeps)) (PP (P near) (NP she)))))",
        "(S (NP she) (VP (V sees) (NP (N dog)) (PP (P with) (NP (N cat)))))",
    ]
    model = sc.PCFG.from_rules(TOY).fit(None, trees, sample_weight=weights)
    counts: dict[str, dict[str, float]] = {}
    for text, weight in zip(trees, weights or [1.0] * 3, strict=True):
        for node in tree(text).nodes():
            right = " ".join(
                repr(part) if isinstance(part, str) else part.label for part in node.children
            )
            own = counts.setdefault(node.label, {})
            own[right] = own.get(right, 0.0) + weight
    for rule, p in zip(*_pairs(model.grammar(0.0)), strict=True):
        left, right = str(rule).split(" -> ")
        own = counts.get(left, {})
        if sum(own.values()):
            assert p == pytest.approx(own.get(right, 0.0) / sum(own.values())), rule
    there = {str(rule) for rule in model.grammar(0.0).rules}
    assert all(
        f"{left} -> {right}" in there for left, own in counts.items() for right in own if own[right]
    )


def test_a_treebank_learned_again_is_the_same() -> None:
    trees = ["(S (NP it) (VP rains))", "(S (VP (VB go)))", "(NP (DT the) (NN end))"]
    model = sc.PCFG.from_treebank(trees)
    before = model.params_
    again = model.fit(None, trees)
    for name, table in again.params_.items():
        np.testing.assert_allclose(table, before[name], rtol=1e-12)


def test_some_trees_and_some_brackets_and_nothing() -> None:
    """Each sentence with what is known of it: the counts are those of each."""
    text = ["she sees the dog with a cat", "she sees the dog with a cat", "she sleeps"]
    phrases = "(NP (D the) (N dog)) (PP (P with) (NP (D a) (N cat)))"
    given = tree(f"(S (NP she) (VP (V sees) {phrases}))")
    model = sc.PCFG.from_rules(TOY, learner=sc.EM(max_iter=1, tol=0))
    model.fit(text, trees=[None, given, None], brackets=[[(2, 7)], None, None])
    own = sc.PCFG.from_rules(TOY)
    counts = own.expected_counts([text[0], text[2]], brackets=[[(2, 7)], None])["rules"]
    rules = own.core_.rules
    for node in given.nodes():
        parts = " ".join(repr(c) if isinstance(c, str) else c.label for c in node.children)
        counts[[str(rule) for rule in rules.rules].index(f"{node.label} -> {parts}")] += 1.0
    for first, last in zip(rules.indptr[:-1], rules.indptr[1:], strict=True):
        share = counts[first:last] / counts[first:last].sum()
        np.testing.assert_allclose(model.params_["rules"][first:last], share, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "rules"])
def test_lower_case(kind: str) -> None:
    rules = {"rules": "S -> N V\nN -> 'she' | 'it'\nV -> 'rains'"} if kind == "rules" else {}
    trees = ["(S (N It) (V rains))", None]
    model = sc.PCFG(lowercase=True, **rules).fit(["it RAINS", "She Rains"], trees)
    low = ["(S (N it) (V rains))", None]
    same = sc.PCFG(**rules).fit(["it rains", "she rains"], low)
    assert_same(model.params_, same.params_)
    (best,) = model.predict(["IT Rains"])
    assert str(best) == "(S (N it) (V rains))"


def test_trees_with_other_words() -> None:
    message = "differs from sentence 1: word 1 is 'b' in the tree, and 'c' in the sentence"
    with pytest.raises(DataError, match=message):
        sc.PCFG().fit(["a b", "a c"], ["(S (A a) (B b))", "(S (A a) (B b))"])
    with pytest.raises(DataError, match="2 words in the tree, and 3 in the sentence"):
        sc.PCFG().fit(["a b c"], ["(S (A a) (B b))"])


def test_brackets_in_sentences_are_those_of_trees() -> None:
    model = sc.PCFG().fit(["( b"], ["(S (A -LRB-) (B b))"])
    assert model.core_.vocabulary.words == ["(", "b"]
    assert model.predict(["( b"])[0].words() == ["(", "b"]
