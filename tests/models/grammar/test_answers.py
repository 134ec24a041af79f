"""What a grammar says of sentences, one answer against the other."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.corpus.trees import Tree, tree
from softcount.errors import ImpossibleItem
from softcount.grammar.rules import rule_of
from tests.models.grammar.text import SENTENCES, TOY, Known, assert_same, kinds, learned
from tests.oracles.chance import surprise

EXACT = 1e-10
MANY = 200_000
SHORT = ["she sees the dog with a cat", "the cat sleeps", "she sleeps", "sees dog"]


def grammars() -> dict[str, Any]:
    known = Known(2, 2, "abc", 5)
    return {
        "dense": (known.model, ["ab", "c", "cab", "bbab"]),
        "rules": (sc.PCFG.from_rules(TOY), SHORT),
    }


@pytest.fixture(scope="module", params=["dense", "rules"])
def case(request: Any) -> Any:
    """A model, sentences, and all trees of each with log p."""
    model, sentences = grammars()[request.param]
    words = [list(s) if request.param == "dense" else s.split() for s in sentences]
    return model, words, model.k_best(words, MANY)


def shares(some: Any) -> dict[Tree, float]:
    logs = np.array([log_p for log_p, _ in some])
    chances = np.exp(logs - np.logaddexp.reduce(logs))
    return dict(zip((one for _, one in some), chances.tolist(), strict=True))


def test_all_trees_are_the_sentence(case: Any) -> None:
    model, words, every = case
    sums = [np.logaddexp.reduce([log_p for log_p, _ in some]) for some in every]
    np.testing.assert_allclose(model.score_samples(words), sums, atol=EXACT)
    assert model.score(words) == pytest.approx(np.mean(sums), abs=EXACT)
    n = sum(map(len, words))
    assert model.perplexity(words) == pytest.approx(math.exp(-sum(sums) / n), rel=EXACT)
    for sentence, some in zip(words, every, strict=True):
        assert len({one for _, one in some}) == len(some)
        assert all(one.words() == sentence for _, one in some)
        logs = [log_p for log_p, _ in some]
        assert logs == sorted(logs, reverse=True)


def test_trees_have_the_probability_of_their_rules(case: Any) -> None:
    model, _, every = case
    grammar = model.grammar(0.0)
    chances = dict(zip(map(str, grammar.rules), grammar.chances.tolist(), strict=True))
    for some in every:
        for log_p, one in some[:50]:
            product = math.log(grammar.root[one.label])
            product += sum(math.log(chances[str(rule_of(node))]) for node in one.nodes())
            assert log_p == pytest.approx(product, abs=EXACT)


def test_the_best_tree_is_the_first_of_the_best(case: Any) -> None:
    model, words, every = case
    for best, some in zip(model.predict(words), every, strict=True):
        found = {one: log_p for log_p, one in some}
        assert found[best] == pytest.approx(some[0][0], abs=EXACT)
    for some, first in zip(every, model.k_best(words, 3), strict=True):
        assert len(first) == min(3, len(some))
        np.testing.assert_allclose(
            [log_p for log_p, _ in first], [log_p for log_p, _ in some[:3]], atol=EXACT
        )


def test_posteriors_are_sums_over_trees(case: Any) -> None:
    model, words, every = case
    found = model.posterior(words, least=0.0)
    rules: Counter[str] = Counter()
    for spans, some in zip(found.brackets, every, strict=True):
        wanted: Counter[Any] = Counter()
        for one, share in shares(some).items():
            for span in one.spans():
                wanted[span] += share
            for node in one.nodes():
                rules[str(rule_of(node))] += share
        assert all(
            spans.get(span, 0.0) == pytest.approx(p, abs=EXACT) for span, p in wanted.items()
        )
        assert all(wanted[span] == pytest.approx(p, abs=EXACT) for span, p in spans.items())
    assert {rule: n for rule, n in found.rules.items() if n > 1e-12} == pytest.approx(
        {rule: n for rule, n in rules.items() if n > 1e-12}, abs=EXACT
    )
    few = model.posterior(words, least=0.3)
    assert all(n >= 0.3 for n in few.rules.values())
    for spans, some in zip(few.brackets, found.brackets, strict=True):
        assert spans == {span: p for span, p in some.items() if p >= 0.3}


def test_expected_counts_are_those_of_posteriors(case: Any) -> None:
    model, words, _ = case
    counts, rules = model.expected(words), model.posterior(words, least=0.0).rules
    assert np.sum(counts["root"]) == pytest.approx(len(words))
    n = np.sum(counts["rules"]) + np.sum(counts.get("words", 0.0))
    assert n == pytest.approx(sum(rules.values()))


def test_drawn_trees_come_as_often_as_they_should(case: Any) -> None:
    model, words, every = case
    drawn = model.sample_trees(words, 2000, random_state=1)
    for some, trees in zip(every, drawn, strict=True):
        assert len(trees) == 2000
        if len(some) > 1:
            assert surprise(Counter(trees), shares(some)) < 1.0
    assert model.sample_trees(words, 5, random_state=1) == model.sample_trees(words, 5, 1)
    assert model.sample_trees(words, 50, 2) != model.sample_trees(words, 50, 1)


def brackets_of(one: Tree, labelled: bool) -> set[Any]:
    return {span if labelled else span[1:] for span in one.spans()}


@pytest.mark.parametrize("labelled", [False, True])
def test_trees_of_least_risk(case: Any, labelled: bool) -> None:
    """No tree of the grammar has more brackets that are expected to be right.

    In grammars of rules, one that is likelier to be wrong is no gain.
    """
    model, words, every = case
    dense = "words" in model.params_
    found = model.predict(words, method="labelled" if labelled else "brackets")
    for one, some in zip(found, every, strict=True):
        expected: Counter[Any] = Counter()
        for other, share in shares(some).items():
            for bracket in brackets_of(other, labelled):
                expected[bracket] += share
        price = 0.0 if dense else 0.5

        def gain(a_tree: Tree, of: Any = expected, price: float = price) -> float:
            return sum(of[bracket] - price for bracket in brackets_of(a_tree, labelled))

        assert one is not None
        assert gain(one) >= max(gain(other) for _, other in some) - 1e-9


# new trees
def test_new_trees_come_as_often_as_they_should() -> None:
    model = sc.PCFG.from_rules("S -> A S [0.3] | A [0.7]\nA -> 'a' [0.6] | 'b' [0.4]")
    made = model.generate(3000, random_state=2)
    expected = {one: math.exp(model.k_best([one.words()], 1)[0][0][0]) for one in set(made)}
    expected[tree("(REST x)")] = 1.0 - sum(expected.values())
    assert surprise(Counter(made), expected) < 1.0
    assert made[:5] == model.generate(5, random_state=2)


@kinds
def test_new_trees_are_trees_of_the_grammar(kind: str) -> None:
    model = learned(kind)
    if kind == "dense":  # less of nonterminals: random tables come to no end
        tables = model.params_
        tables["rules"][:, [n for n in range(25) if n // 5 < 2 or n % 5 < 2]] *= 0.2
        tables["rules"] /= tables["rules"].sum(axis=1, keepdims=True)
        model.raw_params_ = tables
    made = [one for one in model.generate(40, random_state=1) if len(one.words()) < 12]
    assert len(made) > 5
    for one, some in zip(made, model.k_best([one.words() for one in made], 1), strict=True):
        (best,) = some
        assert best[0] <= model.score_samples([one.words()])[0] + 1e-9
    assert model.generate(0) == []


# any number of threads, any order, any precision
@kinds
def test_threads_change_no_bit(kind: str) -> None:
    one, two = (learned(kind, engine=sc.Local(threads=n)) for n in (1, 2))
    assert_same(one.params_, two.params_)
    np.testing.assert_array_equal(one.score_samples(SENTENCES), two.score_samples(SENTENCES))
    assert one.predict(SENTENCES) == two.predict(SENTENCES)
    assert one.sample_trees(SENTENCES, 3) == two.sample_trees(SENTENCES, 3)
    assert one.posterior(SENTENCES) == two.posterior(SENTENCES)
    assert_same(one.expected(SENTENCES), two.expected(SENTENCES))


@kinds
def test_the_order_of_sentences_is_of_no_matter(kind: str) -> None:
    model, back = learned(kind), SENTENCES[::-1]
    np.testing.assert_allclose(
        model.score_samples(back), model.score_samples(SENTENCES)[::-1], rtol=1e-12
    )
    assert model.predict(back) == model.predict(SENTENCES)[::-1]
    brackets = [[(0, 2)], None, [(2, 5)], [("VP" if kind == "rules" else "N0", 0, 7)], [], None]
    np.testing.assert_allclose(
        model.score_samples(back, brackets=brackets[::-1]),
        model.score_samples(SENTENCES, brackets=brackets)[::-1],
        rtol=1e-12,
    )
    for ours, theirs in zip(
        model.posterior(SENTENCES, brackets=brackets).brackets,
        model.posterior(back, brackets=brackets[::-1]).brackets[::-1],
        strict=True,
    ):
        assert ours == pytest.approx(theirs, abs=1e-12)


@kinds
def test_single_precision_is_near(kind: str) -> None:
    exact, rough = learned(kind), learned(kind, dtype="float32")
    for name, table in exact.params_.items():
        np.testing.assert_allclose(rough.params_[name], table, atol=1e-4)
    np.testing.assert_allclose(
        rough.score_samples(SENTENCES), exact.score_samples(SENTENCES), rtol=1e-4
    )


# odd sentences
@kinds
def test_sentences_without_words(kind: str) -> None:
    model = learned(kind)
    text = [[], ["she", "sleeps"], [], ["sees"]]
    full = [words for words in text if words]
    assert [one is None for one in model.predict(text)] == [True, False, True, False]
    for method in ("viterbi", "brackets", "labelled"):
        found = model.predict(text, method=method)
        assert [one for one in found if one is not None] == model.predict(full, method=method)
    assert model.score_samples(text)[[0, 2]].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(model.score_samples(text)[[1, 3]], model.score_samples(full))
    assert [len(some) for some in model.k_best(text, 1)] == [0, 1, 0, 1]
    assert [len(some) for some in model.sample_trees(text, 2)] == [0, 2, 0, 2]
    assert [bool(some) for some in model.posterior(text).brackets] == [False, True, False, True]
    assert model.perplexity([[]]) == 1.0
    assert model.score_samples([[], []]).tolist() == [0.0, 0.0]
    assert model.predict([[]]) == model.predict([[]], method="labelled") == [None]
    assert model.k_best([[]]) == model.sample_trees([[]]) == [[]]
    assert not any(np.any(table) for table in model.expected([[], []]).values())
    again = learned(kind)
    again.fit([[], *SENTENCES, []])
    for name, table in again.params_.items():
        np.testing.assert_allclose(table, model.params_[name], rtol=1e-9, atol=1e-15)


def test_sentences_of_one_word() -> None:
    known = Known(2, 2, "abc", 1)
    root, words = known.oracle.tables["root"][0, 2:], known.oracle.tables["words"]
    np.testing.assert_allclose(known.model.score_samples(["a", "c"]), np.log(root @ words)[[0, 2]])
    (best,) = known.model.predict(["a"])
    assert best == Tree(f"P{np.argmax(root * words[:, 0])}", ("a",))


@pytest.mark.parametrize("unknown", [True, False])
def test_words_never_seen_by_dense_grammars(unknown: bool) -> None:
    model = sc.PCFG(2, 3, smoothing=0.1, unknown=unknown).fit([*SENTENCES, ["a", "zebra"]])
    text = [["a", "gnu", "sleeps"], ["gnu"], ["the", "dog"]]
    logs, trees = model.score_samples(text), model.predict(text)
    assert np.isfinite(logs).tolist() == [unknown, unknown, True]
    assert [one is not None for one in trees] == [unknown, unknown, True]
    assert not unknown or trees[0].words() == text[0]
    assert [len(some) for some in model.k_best(text, 2)] == [2 * unknown, 2 * unknown, 2]
    assert [bool(some) for some in model.posterior(text).brackets] == [unknown, unknown, True]
    assert model.predict(text[:1], method="brackets") == [None] or unknown


def test_words_in_no_rule() -> None:
    model = sc.PCFG.from_rules(TOY)
    text = [["she", "sleeps"], ["a", "gnu", "sleeps"], ["gnu"], []]
    assert [one is None for one in model.predict(text)] == [False, True, True, True]
    for method in ("brackets", "labelled"):
        assert [one is None for one in model.predict(text, method=method)][1:] == [True] * 3
    assert np.isneginf(model.score_samples(text)).tolist() == [False, True, True, False]
    assert [len(some) for some in model.k_best(text)] == [1, 0, 0, 0]
    assert [len(some) for some in model.sample_trees(text, 2)] == [2, 0, 0, 0]
    found = model.posterior(text)
    assert [bool(some) for some in found.brackets] == [True, False, False, False]
    assert found.rules == pytest.approx(model.posterior(text[:1]).rules)
    assert model.perplexity(text) == math.inf
    assert model.score(text) == -math.inf
    with pytest.raises(ImpossibleItem):
        model.expected(text)


def test_spans_of_many_sentences_are_not_kept() -> None:
    rng = np.random.default_rng(0)
    text = [[f"w{w}" for w in rng.integers(5, size=12)] for _ in range(600)]
    model = sc.PCFG(9, 9, learner=sc.EM(max_iter=1)).fit(text[:50])
    few, many = (_most_bytes(model, text[:n]) for n in (150, 600))
    assert many < 1.5 * few
    alone = [model.predict([words], method="labelled")[0] for words in text[60:70]]
    assert model.predict(text, method="labelled")[60:70] == alone


def _most_bytes(model: sc.PCFG, text: list[list[str]]) -> int:
    tracemalloc.start()
    for _ in model.form_.spans(model._asked(text)):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most
