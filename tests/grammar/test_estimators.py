"""`PCFG`, as users call it: what it learns, what it says of sentences, what makes no sense."""

from __future__ import annotations

import math
import os
import pickle
import tracemalloc
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import softcount as sc
from softcount.core.errors import (
    DataError,
    ImpossibleItem,
    LearnerError,
    SoftcountError,
    StartError,
)
from softcount.grammar.rules import GrammarRule, GrammarRules, rule_at
from softcount.text.trees import Tree, tree
from tests import real
from tests.grammar.cases import (
    LEARNERS,
    PALINDROMES,
    SENTENCES,
    TOY,
    Known,
    assert_same,
    estimator,
    kinds,
    learned,
    random_rules,
    sentences_of,
)
from tests.oracles.chance import surprise
from tests.oracles.trees import random_tables

# PCFG as users meet it: weights, what stays, priors, texts of rules


WORDS = sorted({word for words in SENTENCES for word in words})
FEW = {"learner": sc.EM(max_iter=3, tol=0), "smoothing": 0.1}


def dense_start(k: int = 2, t: int = 3, words: Any = None) -> dict[str, Any]:
    """Tables whose columns are words in the order in which sentences have them."""
    found = random_tables(np.random.default_rng(1), k, t, len(WORDS))
    order = dict.fromkeys(word for some in words or SENTENCES for word in some)
    found["words"] = found["words"][:, [WORDS.index(word) for word in order]]
    found["words"] /= found["words"].sum(axis=1, keepdims=True)
    return found


def start_of(kind: str, words: Any = None) -> dict[str, Any]:
    return {"init": dense_start(words=words)} if kind == "dense" else {}


def by_name(model: Any) -> dict[str, Any]:
    """Tables whose columns of words are in the order of the alphabet."""
    found = model.params_
    if "words" in found:
        known = list(model.core_.vocabulary.words)
        found["words"] = found["words"][:, np.argsort(known)]
    return found


# weights
@kinds
def test_a_weight_of_two_is_the_sentence_twice(kind: str) -> None:
    weights = np.array([2, 1, 1, 0, 2, 1])
    twice = [s for s, n in zip(SENTENCES, weights, strict=True) for _ in range(n)]
    assert set(WORDS) == {word for words in twice for word in words}
    ours = estimator(kind, **FEW, **start_of(kind)).fit(SENTENCES, sample_weight=weights)
    theirs = estimator(kind, **FEW, **start_of(kind, twice)).fit(twice)
    for name, table in by_name(theirs).items():
        np.testing.assert_allclose(by_name(ours)[name], table, rtol=1e-9, atol=1e-15)
    logs = [one.trace_.log_likelihood[-1] for one in (ours, theirs)]
    assert logs[0] == pytest.approx(logs[1])


@kinds
def test_a_sentence_that_does_not_count(kind: str) -> None:
    """Its words stay known; whether any tree could have produced it is of no matter."""
    more = [*SENTENCES, ["telescope", "with"] if kind == "rules" else ["zebra"]]
    model = estimator(kind, **FEW).fit(more, sample_weight=[*[1.0] * len(SENTENCES), 0.0])
    if kind == "rules":
        assert_same(model.params_, estimator(kind, **FEW).fit(SENTENCES).params_)
        assert np.isneginf(model.score_samples(more[-1:])).all()
    else:
        assert "zebra" in model.core_.vocabulary.words
        assert np.isfinite(model.score_samples(more)).all()


@kinds
def test_weights_of_whole_trees(kind: str) -> None:
    trees = ["(S (NP she) (VP (V sleeps)))", "(S (NP she) (VP (V sees)))"]
    settings = {} if kind == "dense" else {"rules": TOY}
    model = sc.PCFG(**settings).fit(None, trees, sample_weight=[3.0, 1.0])
    found = {str(rule): p for rule, p in zip(*_pairs(model.grammar(0.0)), strict=True)}
    assert found["V -> 'sleeps'"] == pytest.approx(0.75)


def _pairs(rules: Any) -> tuple[Any, Any]:
    return rules.rules, rules.probabilities.tolist()


# what stays
STAY = ("EM", "HardEM", "OnlineEM", "IncrementalEM", "VariationalBayes", "Gibbs", "annealed")


@pytest.mark.parametrize("learner", STAY)
@pytest.mark.parametrize(
    "frozen", ["words", "rules", "root", ["root", "words"], "N1", ["P0", "N0"]]
)
def test_frozen_tables_and_symbols_of_dense_grammars(learner: str, frozen: Any) -> None:
    init, held = dense_start(), [frozen] if isinstance(frozen, str) else frozen
    how = {"init": init, "smoothing": 0.1, "learner": LEARNERS[learner]}
    found = sc.PCFG(2, 3, frozen=frozen, **how).fit(SENTENCES).params_
    symbols = {"root": ["-"], "rules": ["N0", "N1"], "words": ["P0", "P1", "P2"]}
    for name, table in found.items():
        same = (table == init[name]).all(axis=1)
        wanted = [name in held or symbol in held for symbol in symbols[name]]
        np.testing.assert_array_equal(same, wanted, err_msg=name)


def test_frozen_names_that_can_be_read_once() -> None:
    init = dense_start()
    model = sc.PCFG(2, 3, init=init, frozen=(name for name in ["words"]), **FEW).fit(SENTENCES)
    np.testing.assert_array_equal(model.params_["words"], init["words"])


@pytest.mark.parametrize("learner", STAY)
@pytest.mark.parametrize("frozen", ["rules", "NP", ["D", "VP"]])
def test_frozen_symbols_of_rules(learner: str, frozen: Any) -> None:
    model = sc.PCFG.from_rules(TOY, frozen=frozen, smoothing=0.1, learner=LEARNERS[learner])
    before = model.params_["rules"]
    after = model.fit(SENTENCES).params_["rules"]
    held = [frozen] if isinstance(frozen, str) else frozen
    rules = model.core_.rules
    for label, first, last in zip(rules.symbols, rules.indptr[:-1], rules.indptr[1:], strict=True):
        if last == first + 1:
            continue
        stays = "rules" in held or label in held
        assert np.array_equal(before[first:last], after[first:last]) == stays, label


# priors
@pytest.mark.parametrize("smoothing", [0.0, 0.5, {"rules": 1.0, "words": 0.25}])
def test_smoothing_is_added_to_counts(smoothing: Any) -> None:
    """All trees are known, so that counts are."""
    trees = ["(S (A a) (B b))", "(S (S (A a) (A a)) (B b))"]
    model = sc.PCFG(smoothing=smoothing).fit(None, trees)
    rules, words = (
        (smoothing[name] for name in ("rules", "words"))
        if isinstance(smoothing, dict)
        else (smoothing, smoothing)
    )
    assert model.labels_ == ("S", "A", "B")
    counts = {"root": np.zeros((1, 3)), "rules": np.zeros((1, 9)), "words": np.zeros((2, 2))}
    counts["root"][0, 0] = 2
    counts["rules"][0, [1 * 3 + 2, 0 * 3 + 2, 1 * 3 + 1]] = 1
    counts["words"][[0, 1], [0, 1]] = 3, 2
    for name, table in counts.items():
        table += words if name == "words" else rules
        wanted = table / table.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.params_[name], wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.5, {"rules": 1.0, "words": 0.25}])
def test_smoothing_of_rules(smoothing: Any) -> None:
    model = sc.PCFG.from_rules(TOY, smoothing=smoothing)
    model.fit(None, ["(S (NP she) (VP (V sees) (NP (D the) (N cat))))"])
    rules, words = (0.5, 0.5) if smoothing == 0.5 else (1.0, 0.25)
    counts = {"S -> NP VP": 1, "NP -> 'she'": 1, "NP -> D N": 1, "VP -> V NP": 1}
    counts |= {"V -> 'sees'": 1, "D -> 'the'": 1, "N -> 'cat'": 1}
    own = model.core_.rules
    every = [
        counts.get(str(rule), 0) + (words if rule.is_word == (True,) else rules)
        for rule in own.rules
    ]
    for first, last in zip(own.indptr[:-1], own.indptr[1:], strict=True):
        wanted = np.array(every[first:last]) / sum(every[first:last])
        np.testing.assert_allclose(model.params_["rules"][first:last], wanted, rtol=1e-9)


# rules as texts
@pytest.mark.parametrize("seed", range(5))
def test_rules_written_and_read_again(seed: int) -> None:
    rules = random_rules(seed)
    model = sc.PCFG.from_rules(rules)
    again = sc.PCFG.from_rules(str(model.grammar(0.0)))
    text = sentences_of(rules, seed, 12, 8)
    assert np.isfinite(model.score_samples(text)).sum() > 5
    np.testing.assert_allclose(
        again.score_samples(text), model.score_samples(text), rtol=1e-4, atol=1e-4
    )


@kinds
def test_what_was_learned_written_and_read_again(kind: str) -> None:
    """Trees of several roots, labels that are nonterminals and preterminals at once."""
    if kind == "dense":
        trees = [
            "(S (NP it) (VP rains))",
            "(NP (D the) (NP dog))",
            "(S (NP (D a) (N cat)) (VP ran))",
        ]
        model = sc.PCFG(smoothing=0.05).fit(None, trees)
        text = ["it rains", "the dog", "a cat ran", "the cat rains", "dog"]
    else:
        model, text = learned(kind), SENTENCES
    again = sc.PCFG.from_rules(str(model.grammar(0.0)))
    np.testing.assert_allclose(
        again.score_samples(text), model.score_samples(text), rtol=1e-4, atol=1e-4
    )
    same = sc.PCFG.from_rules(model.grammar(0.0))
    np.testing.assert_allclose(same.score_samples(text), model.score_samples(text), rtol=1e-9)


ODD = ["#", "''", '"', "'s", 'it\'s "so"', "[", "]", "a|b", "->", "x->y", "→", "\\", "a\\n", "é"]


def test_odd_words_and_labels_written_and_read_again() -> None:
    odd = [*ODD, "two words", "line\nend", "tab\tx", " ", "%", "NP-SBJ=1", "*"]
    trees = [Tree("S", tuple(Tree(label, (label,)) for label in some)) for some in (odd, odd[::-1])]
    model = sc.PCFG.from_treebank(trees)
    again = sc.PCFG.from_rules(str(model.grammar(0.0)))
    assert again.labels_ == model.labels_
    assert again.predict([odd, odd[::-1]]) == trees
    assert again.core_.rules.rules == model.core_.rules.rules


@pytest.mark.filterwarnings("ignore::softcount.grammar.rules.GrammarWarning")
def test_roots_of_a_text() -> None:
    text = "%start -> A [0.25] | S\nS -> A A\nA -> 'a'"
    model = sc.PCFG.from_rules(text)
    np.testing.assert_allclose(np.exp(model.score_samples(["a", "a a"])), [0.25, 0.75])
    assert str(model.grammar()) == "%start -> S [0.75] | A [0.25]\nS -> A A [1]\nA -> 'a' [1]"
    for rules in (text, model.grammar(0.0)):
        only = sc.PCFG.from_rules(rules, start="A")
        np.testing.assert_allclose(np.exp(only.score_samples(["a", "a a"])), [1.0, 0.0])
        with pytest.raises(DataError, match=r"B'? has no rules"):
            sc.PCFG.from_rules(rules, start="B")
    for bad, message in (
        ("%start -> A A\nA -> 'a'", "line 1 has a root that is not one symbol"),
        ("%start -> 'a'\nA -> 'a'", "line 1 has a root that is not one symbol"),
        ("%start -> B\nA -> 'a'", "line 1 has the symbol B"),
        ("A -> 'a' | %start\n%start -> A", "line 1 has the symbol %start"),
        ("%start -> A [0.4]\nA -> 'a'", r"%start \(line 1\) add up to 0.4"),
        ("%start -> A", "line 1 has the symbol A"),
    ):
        with pytest.raises(DataError, match=message):
            sc.PCFG.from_rules(bad)


def test_a_grammar_of_which_rules_were_left_out() -> None:
    model = sc.PCFG.from_rules("S -> A A [0.9] | 'x' [0.1]\nA -> 'a' | 'b' | 'c'")
    short = model.grammar(0.3)
    assert (
        str(short) == "S -> A A [1]\nA -> 'a' [0.333333]\nA -> 'b' [0.333333]\nA -> 'c' [0.333333]"
    )
    assert sc.PCFG.from_rules(short).predict(["a c", "x"]) == [tree("(S (A a) (A c))"), None]
    for least in (0.5, 2.0):  # S needs A, which has no rule that is so probable
        with pytest.raises(DataError, match="no rule of a root is left"):
            model.grammar(least)


def test_rules_with_symbols_that_have_none() -> None:
    rules = GrammarRules((GrammarRule("S", ("A", "A"), (False, False)),), np.ones(1), {"S": 1.0})
    for read in (lambda: sc.PCFG.from_rules(rules), lambda: sc.PCFG.from_rules(str(rules))):
        with pytest.raises(DataError, match=r"symbol A.* has no rules"):
            read()


@pytest.mark.slow
def test_a_real_treebank_written_and_read_again() -> None:
    model = sc.PCFG.from_treebank(sc.text.read_trees(real.lines("wsj_sample/wsj_sample.mrg.gz")))
    again = sc.PCFG.from_rules(str(model.grammar(0.0)))
    assert set(again.core_.rules.rules) == set(model.core_.rules.rules)


# words and labels
def test_labels_that_are_both() -> None:
    """NP is a nonterminal and a preterminal: two symbols, of one name in trees."""
    trees = ["(NP (D the) (NP dog))", "(NP (NP (D the) (NP dog)) (NP too))"]
    model = sc.PCFG().fit(None, trees)
    assert model.predict(["the dog", "the dog too"]) == [tree(one) for one in trees]
    used = model.posterior(["the dog too"]).rules
    assert {rule: round(n, 6) for rule, n in used.items()} == {
        "NP -> D NP=": 1.0,
        "NP -> NP NP=": 1.0,
        "D -> 'the'": 1.0,
        "NP= -> 'dog'": 1.0,
        "NP= -> 'too'": 1.0,
    }


def test_labels_that_are_called_as_others_would_be() -> None:
    model = sc.PCFG(3, 3, **FEW).fit(None, ["(P0 (N1 a) (N0 b))"])
    assert len(set(model.labels_)) == 6
    assert (model.labels_[0], *model.labels_[3:5]) == ("P0", "N0", "N1")


def test_words_to_learn_from_that_are_in_no_rule() -> None:
    with pytest.raises(DataError, match=r"2 word\(s\) are in no rule.*'gnu' \(sentence 2\)"):
        sc.PCFG.from_rules(TOY).fit([["she", "sleeps"], [], ["the", "gnu"], ["yak"]])


def test_a_sentence_that_cannot_be_is_named() -> None:
    with pytest.raises(ImpossibleItem, match="sentence 2 has probability zero") as caught:
        sc.PCFG.from_rules(TOY).fit(["she sleeps", "", "the the"])
    assert caught.value.item == 2


def test_without_any_structure_it_counts_words() -> None:
    """One preterminal, one nonterminal: words as often as they are."""
    model = sc.PCFG(1, 1).fit(PALINDROMES)
    words = [word for words in PALINDROMES for word in words]
    shares = [words.count(word) / len(words) for word in model.core_.vocabulary.words]
    np.testing.assert_allclose(model.params_["words"][0], shares)


# scikit-learn
@kinds
def test_copies_say_the_same(kind: str) -> None:
    model = learned(kind)
    for other in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert_same(other.params_, model.params_)
        assert other.predict(SENTENCES) == model.predict(SENTENCES)


@kinds
def test_clones_learn_the_same(kind: str) -> None:
    model = learned(kind)
    again = clone(model).fit(SENTENCES)
    assert_same(again.params_, model.params_)
    assert repr(clone(model)) == repr(model)
    if kind == "dense":
        other = clone(model).set_params(random_state=1).fit(SENTENCES)
        assert not np.array_equal(other.params_["words"], model.params_["words"])


def test_in_a_search() -> None:
    model = sc.PCFG(2, 2, smoothing=0.1, learner=sc.EM(max_iter=2))
    search = GridSearchCV(model, {"n_components": [1, 2]}, cv=2, error_score="raise")
    search.fit(PALINDROMES)
    assert search.best_params_["n_components"] in (1, 2)
    assert math.isfinite(search.best_score_)


# What a grammar says of sentences, one answer against the other


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
    probabilities = np.exp(logs - np.logaddexp.reduce(logs))
    return dict(zip((one for _, one in some), probabilities.tolist(), strict=True))


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
    probabilities = dict(zip(map(str, grammar.rules), grammar.probabilities.tolist(), strict=True))
    for some in every:
        for log_p, one in some[:50]:
            product = math.log(grammar.root[one.label])
            product += sum(math.log(probabilities[str(rule_at(node))]) for node in one.nodes())
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
    found = model.posterior(words, threshold=0.0)
    rules: Counter[str] = Counter()
    for spans, some in zip(found.brackets, every, strict=True):
        wanted: Counter[Any] = Counter()
        for one, share in shares(some).items():
            for span in one.spans():
                wanted[span] += share
            for node in one.nodes():
                rules[str(rule_at(node))] += share
        assert all(
            spans.get(span, 0.0) == pytest.approx(p, abs=EXACT) for span, p in wanted.items()
        )
        assert all(wanted[span] == pytest.approx(p, abs=EXACT) for span, p in spans.items())
    assert {rule: n for rule, n in found.rules.items() if n > 1e-12} == pytest.approx(
        {rule: n for rule, n in rules.items() if n > 1e-12}, abs=EXACT
    )
    few = model.posterior(words, threshold=0.3)
    assert all(n >= 0.3 for n in few.rules.values())
    for spans, some in zip(few.brackets, found.brackets, strict=True):
        assert spans == {span: p for span, p in some.items() if p >= 0.3}


def test_expected_counts_are_those_of_posteriors(case: Any) -> None:
    model, words, _ = case
    counts, rules = model.expected_counts(words), model.posterior(words, threshold=0.0).rules
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
    assert_same(one.expected_counts(SENTENCES), two.expected_counts(SENTENCES))


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
    assert not any(np.any(table) for table in model.expected_counts([[], []]).values())
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
        model.expected_counts(text)


def test_spans_of_many_sentences_are_not_kept() -> None:
    rng = np.random.default_rng(0)
    text = [[f"w{w}" for w in rng.integers(5, size=12)] for _ in range(600)]
    model = sc.PCFG(9, 9, learner=sc.EM(max_iter=1)).fit(text[:50])
    few, many = (_most_bytes(model, text[:n]) for n in (150, 600))
    assert many < 1.5 * few
    alone = [model.predict([words], method="labelled")[0] for words in text[60:70]]
    assert model.predict(text, method="labelled")[60:70] == alone


def _most_bytes(model: sc.PCFG, text: list[list[str]]) -> int:
    _, corpus = model._read_more(text)
    (shard,) = corpus.shards()
    tracemalloc.start()
    for _ in model.core_.span_posteriors(model.raw_params_, shard):
        pass
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


# What makes no sense is said, and changes nothing


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no nonterminals": ({"n_components": 0}, "n_components"),
    "half a nonterminal": ({"n_components": 2.5}, "n_components"),
    "nonterminals as text": ({"n_components": "3"}, "n_components"),
    "truth for nonterminals": ({"n_components": True}, "n_components"),
    "nothing said of nonterminals": ({"n_components": None}, "n_components"),
    "no preterminals": ({"n_preterminals": -1}, "n_preterminals"),
    "nothing said of preterminals": ({"n_preterminals": None}, "n_preterminals"),
    "too many": ({"n_components": 10**4}, "too many rules"),
    "endless": ({"n_components": 10**6, "n_preterminals": 10**6}, "too many rules"),
    "rules as well": ({"rules": TOY}, "n_components and rules"),
    "negative smoothing": ({"smoothing": -1.0}, "smoothing"),
    "smoothing of nothing": ({"smoothing": None}, "smoothing"),
    "endless smoothing": ({"smoothing": np.inf}, "smoothing"),
    "smoothing of a stranger": ({"smoothing": {"emissions": 1.0}}, "emissions"),
    "negative smoothing of a table": ({"smoothing": {"words": -1.0}}, "words"),
    "half floats": ({"dtype": "float16"}, "dtype"),
    "no dtype": ({"dtype": None}, "dtype"),
    "a list of dtypes": ({"dtype": ["float64"]}, "dtype"),
    "prune all": ({"prune": 1.0}, "prune"),
    "negative prune": ({"prune": -0.1}, "prune"),
    "prune as text": ({"prune": "little"}, "prune"),
    "unknown start": ({"init": "nonsense"}, "init"),
    "uniform start": ({"init": "uniform"}, "init"),
    "a number as start": ({"init": 5}, "init"),
    "an array as start": ({"init": np.ones(3)}, "init"),
    "no tables": ({"init": {}}, "root"),
    "a table of a stranger": ({"init": {"moves": [[0.5, 0.5]]}}, "moves"),
    "frozen stranger": ({"frozen": "emissions"}, "emissions"),
    "frozen symbol of no name": ({"frozen": ["N0", "NP"]}, "NP"),
    "frozen number": ({"frozen": 5}, "frozen"),
    "frozen numbers": ({"frozen": [0, 1]}, "frozen"),
    "no learner": ({"learner": "EM"}, "learner"),
    "no engine": ({"engine": 2}, "engine"),
    "unknown as text": ({"unknown": "yes"}, "unknown"),
    "lowercase as text": ({"lowercase": "yes"}, "lowercase"),
    "a seed as text": ({"random_state": "x"}, "random_state"),
    "a negative seed": ({"random_state": -1}, "random_state"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_settings_are_named(what: str) -> None:
    settings, named = BAD[what]
    with pytest.raises(SoftcountError, match=named):
        sc.PCFG(**{"n_components": 2, "n_preterminals": 3, **settings}).fit(SENTENCES)


OF_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "nonterminals": ({"n_components": 2}, "n_components and rules"),
    "frozen stranger": ({"frozen": "XX"}, "XX"),
    "frozen words": ({"frozen": "words"}, "words"),
    "negative smoothing": ({"smoothing": -1.0}, "smoothing"),
    "prune": ({"prune": 2.0}, "prune"),
    "no learner": ({"learner": "EM"}, "learner"),
    "a prior is missing": ({"learner": sc.Gibbs()}, "prior"),
}


@pytest.mark.parametrize("what", OF_RULES)
def test_bad_settings_of_rules(what: str) -> None:
    settings, named = OF_RULES[what]
    with pytest.raises(LearnerError, match=named):
        sc.PCFG.from_rules(TOY, **settings)


@pytest.mark.parametrize("rules", [5, ["S -> 'a'"], {"S": "a"}, b"S -> 'a'"])
def test_no_rules(rules: Any) -> None:
    for make in (lambda: sc.PCFG.from_rules(rules), lambda: sc.PCFG(rules=rules).fit(["a"])):
        with pytest.raises(SoftcountError, match="rules"):
            make()


def test_rules_that_are_none() -> None:
    for text, message in (
        ("", "no rules in the text"),
        ("S -> A 'a'", "line 1 has the symbol A"),
        ("S -> A\nA -> S", "form a cycle of probability one"),
        ("S -> S 'a'", "derives nothing"),
    ):
        with pytest.raises(DataError, match=message):
            sc.PCFG.from_rules(text)
        with pytest.raises(DataError, match=message):
            sc.PCFG(rules=text).fit(["a"])
    with pytest.raises(DataError, match="no trees"):
        sc.PCFG.from_treebank([None])
    with pytest.raises(DataError, match="weight"):
        sc.PCFG.from_treebank(["(S a)"], sample_weight=[1.0, 2.0])


@kinds
def test_a_start_of_a_wrong_shape(kind: str) -> None:
    init = learned(kind).params_
    for name in init:
        with pytest.raises(StartError, match=name):
            estimator(kind, init={**init, name: init[name][..., :-1]}).fit(SENTENCES)
        with pytest.raises(StartError):
            estimator(kind, init={n: t for n, t in init.items() if n != name}).fit(SENTENCES)
        for value in (np.nan, -1.0, np.inf):
            bad = np.array(init[name])
            bad.flat[0] = value
            with pytest.raises(StartError, match=name):
                estimator(kind, init={**init, name: bad}).fit(SENTENCES)


N = len(SENTENCES)
REST: list[Any] = [None] * (N - 1)
BRACKETS: dict[str, tuple[Any, str]] = {
    "a number": (5, "brackets=5"),
    "text": ("(0, 2)", "brackets="),
    "too few": ([None], "1 lists of brackets for 6 sentences"),
    "one for all": ([(0, 2)], "1 lists of brackets"),
    "a number for one": ([3, *REST], "sentence 0 has the brackets 3"),
    "text for one": (["(S a)", *REST], "sentence 0 has the brackets"),
    "no pair": ([[3], *REST], "sentence 0 has the bracket 3"),
    "one end": ([[(1,)], *REST], "sentence 0 has the bracket"),
    "four ends": ([[("S", 1, 2, 3)], *REST], "sentence 0 has the bracket"),
    "halves": ([[(0.5, 2)], *REST], "sentence 0 has the bracket"),
    "texts": ([[("0", "2")], *REST], "sentence 0 has the bracket"),
    "before it begins": ([[(-1, 2)], *REST], r"\(-1, 2\), but 7 words"),
    "behind its end": ([[(0, 8)], *REST], "but 7 words"),
    "empty": ([[(2, 2)], *REST], "but 7 words"),
    "backwards": ([[(3, 1)], *REST], "but 7 words"),
    "a label that is empty": ([[("", 0, 2)], *REST], "sentence 0 has the bracket"),
    "a label that is a number": ([[(1, 0, 2)], *REST], "sentence 0 has the bracket"),
    "crossing": (
        [None, [(0, 2), (1, 3)], *REST[1:]],
        r"sentence 1 .*\(0, 2\) and \(1, 3\).* cross",
    ),
    "a tree of other words": ([tree("(S a b)"), *REST], "sentence 0 has 7 words, its tree 2"),
}


@kinds
@pytest.mark.parametrize("what", BRACKETS)
def test_brackets_that_are_none(kind: str, what: str) -> None:
    brackets, message = BRACKETS[what]
    with pytest.raises(DataError, match=message):
        estimator(kind).fit(SENTENCES, brackets=brackets)
    with pytest.raises(DataError, match=message):
        learned(kind).score_samples(SENTENCES, brackets=brackets)


def test_labels_that_are_none() -> None:
    with pytest.raises(DataError, match="no symbol 'XX'"):
        sc.PCFG.from_rules(TOY).fit(SENTENCES, brackets=[[("XX", 0, 2)], *REST])
    some = [("X", 0, 2), ("Y", 2, 4), ("Z", 4, 6), ("W", 6, 7)]
    with pytest.raises(DataError, match="3 labels, but n_components=2"):
        sc.PCFG(2, 3).fit(SENTENCES, brackets=[some, *REST])
    with pytest.raises(DataError, match="no nonterminal 'XX'"):
        learned("dense").predict(SENTENCES, brackets=[[("XX", 0, 2)], *REST])


TREES: dict[str, tuple[Any, str]] = {
    "a number": (5, "the trees are 5"),
    "one text": ("(S a)", "the trees are"),
    "too few": (["(S a)"], "1 trees for 6 sentences"),
    "numbers": ([3] * N, "tree 0"),
    "no tree": (["(S a", *REST], "tree 0"),
    "other words": (["(S (NP it) (VP rains))", *REST], "differs from sentence 0"),
}


@kinds
@pytest.mark.parametrize("what", TREES)
def test_trees_that_are_none(kind: str, what: str) -> None:
    trees, message = TREES[what]
    with pytest.raises(DataError, match=message):
        estimator(kind).fit(SENTENCES, trees=trees)


def test_trees_that_the_rules_have_not() -> None:
    model = sc.PCFG.from_rules(TOY)
    with pytest.raises(DataError, match="sentence 0 has the rule S -> NP V, which"):
        model.fit(None, ["(S (NP she) (V sleeps))"])
    with pytest.raises(DataError, match="sentence 1 has the root NP, which is never a root"):
        model.fit(None, [None, "(NP she)"])


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "method": lambda model: model.predict(SENTENCES, method="best"),
    "methods": lambda model: model.predict(SENTENCES, method=["viterbi"]),
    "no trees": lambda model: model.k_best(SENTENCES, 0),
    "half a tree": lambda model: model.k_best(SENTENCES, 1.5),
    "no draws": lambda model: model.sample_trees(SENTENCES, 0),
    "negative seed": lambda model: model.sample_trees(SENTENCES, 1, random_state=-1),
    "seed as text": lambda model: model.sample_trees(SENTENCES, 1, random_state="x"),
    "fewer than none": lambda model: model.generate(-1),
    "one and a half": lambda model: model.generate(1.5),
    "least as text": lambda model: model.posterior(SENTENCES, threshold="all"),
    "least below zero": lambda model: model.grammar(-1.0),
    "one text": lambda model: model.predict("the dog"),
    "no sentences": lambda model: model.predict([]),
    "nothing": lambda model: model.predict(None),
    "a number": lambda model: model.predict(5),
    "numbers": lambda model: model.predict([5]),
    "no words to learn from": lambda model: model.fit([[], []]),
    "nothing to learn from": lambda model: model.fit([]),
    "neither text nor trees": lambda model: model.fit(None),
    "no tree at all": lambda model: model.fit(None, [None]),
    "one weight": lambda model: model.fit(SENTENCES, sample_weight=[1.0]),
    "negative weights": lambda model: model.fit(SENTENCES, sample_weight=[-1.0] * N),
    "weights as text": lambda model: model.fit(SENTENCES, sample_weight=["x"] * N),
}


@kinds
@pytest.mark.parametrize("what", QUESTIONS)
def test_questions_that_make_no_sense(kind: str, what: str) -> None:
    with pytest.raises(SoftcountError):
        QUESTIONS[what](learned(kind))


def test_nothing_before_fit() -> None:
    for model in (sc.PCFG(2, 3), sc.PCFG(rules=TOY)):
        for ask in (
            lambda model: model.predict(SENTENCES),
            lambda model: model.k_best(SENTENCES),
            lambda model: model.posterior(SENTENCES),
            lambda model: model.sample_trees(SENTENCES),
            lambda model: model.score(SENTENCES),
            lambda model: model.score_samples(SENTENCES),
            lambda model: model.perplexity(SENTENCES),
            lambda model: model.expected_counts(SENTENCES),
            lambda model: model.generate(),
            lambda model: model.grammar(),
            lambda model: model.params_,
            lambda model: model.labels_,
            lambda model: model.trace_,
            lambda model: model.save(os.devnull),
        ):
            with pytest.raises(NotFittedError):
                ask(model)


@kinds
def test_a_failed_fit_leaves_what_was(kind: str) -> None:
    model = learned(kind)
    text = [*SENTENCES, ["gnu"]]
    before = (model.labels_, model.score_samples(text).tolist(), model.predict(text))
    tables = model.params_
    for bad in (
        lambda: model.fit([[], []]),
        lambda: model.fit(["x y"], ["(S (A x))"]),
        lambda: model.fit(["x y"], brackets=[[(0, 9)]]),
        lambda: model.fit(["x y"], init="nonsense"),
        lambda: model.set_params(frozen="XX").fit(["x y"]),
    ):
        with pytest.raises(SoftcountError):
            bad()
    assert_same(model.params_, tables)
    assert (model.labels_, model.score_samples(text).tolist(), model.predict(text)) == before

    def stop(state: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(frozen=None).fit(SENTENCES[:2], on_step=stop)
    assert_same(model.params_, tables)
    assert (model.labels_, model.score_samples(text).tolist(), model.predict(text)) == before
    fresh = sc.PCFG(2, 3)
    with pytest.raises(DataError):
        fresh.fit([[]])
    with pytest.raises(NotFittedError):
        _ = fresh.labels_
