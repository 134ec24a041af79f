"""What makes no sense is said, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import softcount as sc
from softcount.corpus.trees import tree
from softcount.errors import DataError, LearnerError, SoftcountError, StartError
from tests.models.grammar.text import SENTENCES, TOY, assert_same, estimator, kinds, learned

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no nonterminals": ({"n_nonterminals": 0}, "n_nonterminals"),
    "half a nonterminal": ({"n_nonterminals": 2.5}, "n_nonterminals"),
    "nonterminals as text": ({"n_nonterminals": "3"}, "n_nonterminals"),
    "truth for nonterminals": ({"n_nonterminals": True}, "n_nonterminals"),
    "nothing said of nonterminals": ({"n_nonterminals": None}, "n_nonterminals"),
    "no preterminals": ({"n_preterminals": -1}, "n_preterminals"),
    "nothing said of preterminals": ({"n_preterminals": None}, "n_preterminals"),
    "too many": ({"n_nonterminals": 10**4}, "too many rules"),
    "endless": ({"n_nonterminals": 10**6, "n_preterminals": 10**6}, "too many rules"),
    "rules as well": ({"rules": TOY}, "n_nonterminals and rules"),
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
        sc.PCFG(**{"n_nonterminals": 2, "n_preterminals": 3, **settings}).fit(SENTENCES)


OF_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "nonterminals": ({"n_nonterminals": 2}, "n_nonterminals and rules"),
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
        ("S -> A\nA -> S", "go round for ever"),
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
    with pytest.raises(DataError, match="3 labels, but n_nonterminals=2"):
        sc.PCFG(2, 3).fit(SENTENCES, brackets=[some, *REST])
    with pytest.raises(DataError, match="no nonterminal 'XX'"):
        learned("dense").predict(SENTENCES, brackets=[[("XX", 0, 2)], *REST])


TREES: dict[str, tuple[Any, str]] = {
    "a number": (5, "the trees are 5"),
    "one text": ("(S a)", "the trees are"),
    "too few": (["(S a)"], "1 trees for 6 sentences"),
    "numbers": ([3] * N, "tree 0"),
    "no tree": (["(S a", *REST], "tree 0"),
    "other words": (["(S (NP it) (VP rains))", *REST], "other words than sentence 0"),
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
    with pytest.raises(DataError, match="sentence 1 is of NP, which is never a root"):
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
    "least as text": lambda model: model.posterior(SENTENCES, least="all"),
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
            lambda model: model.expected(SENTENCES),
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
