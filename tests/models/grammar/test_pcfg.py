"""PCFG as users meet it: weights, what stays, priors, texts of rules."""

from __future__ import annotations

import math
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import softcount as sc
from softcount.corpus.trees import Tree, tree
from softcount.errors import DataError, ImpossibleItem
from softcount.grammar.rules import Rule, Rules
from tests import real
from tests.models.grammar.rule_cases import random_rules, sentences_of
from tests.models.grammar.text import (
    LEARNERS,
    PALINDROMES,
    SENTENCES,
    TOY,
    assert_same,
    estimator,
    kinds,
    learned,
)
from tests.oracles.trees import random_tables

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
        known = list(model.form_.vocabulary.words)
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
        assert "zebra" in model.form_.vocabulary.words
        assert np.isfinite(model.score_samples(more)).all()


@kinds
def test_weights_of_whole_trees(kind: str) -> None:
    trees = ["(S (NP she) (VP (V sleeps)))", "(S (NP she) (VP (V sees)))"]
    settings = {} if kind == "dense" else {"rules": TOY}
    model = sc.PCFG(**settings).fit(None, trees, sample_weight=[3.0, 1.0])
    found = {str(rule): p for rule, p in zip(*_pairs(model.grammar(0.0)), strict=True)}
    assert found["V -> 'sleeps'"] == pytest.approx(0.75)


def _pairs(rules: Any) -> tuple[Any, Any]:
    return rules.rules, rules.chances.tolist()


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
    rules = model.form_.own.rules
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
    own = model.form_.own.rules
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
    assert again.form_.own.rules.rules == model.form_.own.rules.rules


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
    rules = Rules((Rule("S", ("A", "A"), (False, False)),), np.ones(1), {"S": 1.0})
    for read in (lambda: sc.PCFG.from_rules(rules), lambda: sc.PCFG.from_rules(str(rules))):
        with pytest.raises(DataError, match=r"symbol A.* has no rules"):
            read()


@pytest.mark.slow
def test_a_real_treebank_written_and_read_again() -> None:
    model = sc.PCFG.from_treebank(sc.read_trees(real.lines("wsj_sample/wsj_sample.mrg.gz")))
    again = sc.PCFG.from_rules(str(model.grammar(0.0)))
    assert set(again.form_.own.rules.rules) == set(model.form_.own.rules.rules)


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
    with pytest.raises(ImpossibleItem, match="sentence 2 cannot come about") as caught:
        sc.PCFG.from_rules(TOY).fit(["she sleeps", "", "the the"])
    assert caught.value.item == 2


def test_without_any_structure_it_counts_words() -> None:
    """One preterminal, one nonterminal: words as often as they are."""
    model = sc.PCFG(1, 1).fit(PALINDROMES)
    words = [word for words in PALINDROMES for word in words]
    shares = [words.count(word) / len(words) for word in model.form_.vocabulary.words]
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
    search = GridSearchCV(model, {"n_nonterminals": [1, 2]}, cv=2, error_score="raise")
    search.fit(PALINDROMES)
    assert search.best_params_["n_nonterminals"] in (1, 2)
    assert math.isfinite(search.best_score_)
