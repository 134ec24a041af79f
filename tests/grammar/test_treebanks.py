"""Treebank grammars as users meet them: new words, what is around, what is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.grammar.rule_based import Annotation
from softcount.metrics import bracket_scores
from softcount.text.treebank import remove_functions, remove_traces
from softcount.text.trees import tree
from tests import real

BANK = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))",
    "(S (NP (PRP it)) (VP (VBZ is) (VP (VBG sleeping))))",
    "(S (NP (DT a) (NN cat)) (VP (VBZ is) (ADVP (RB often)) (RB now) (VP (VBG running))))",
]
AROUND = {"horizontal": 1, "vertical": 2}


def test_new_words_are_what_they_look_like() -> None:
    (found,) = sc.PCFG.from_treebank(BANK).predict(["the cat is barking"])
    assert found == tree("(S (NP (DT the) (NN cat)) (VP (VBZ is) (VP (VBG barking))))")
    assert sc.PCFG.from_treebank(BANK, unknown=False).predict(["the cat is barking"]) == [None]


def test_brackets_are_what_they_are_in_trees() -> None:
    model = sc.PCFG.from_treebank([*BANK, "(X (-LRB- -LRB-) (NN dog) (-RRB- -RRB-))"])
    (found,) = model.predict(["( cat )"])
    assert str(found) == "(X (-LRB- -LRB-) (NN cat) (-RRB- -RRB-))"
    assert found.words() == ["(", "cat", ")"]
    shares = model.core_.unknown.symbol_posteriors("(")
    assert shares[model.labels_.index("-LRB-")] == shares.sum() == 1.0


def test_sentences_of_trees() -> None:
    model = sc.PCFG.from_treebank(BANK)
    words = [text.words() for text in map(tree, BANK)]
    assert model.predict([*map(tree, BANK), None]) == [*model.predict(words), None]


# rules of the trees that are learned from
@pytest.mark.parametrize("around", [{}, AROUND])
def test_rules_of_the_trees(around: dict[str, int], tmp_path: Path) -> None:
    weights = [1.0, 2.0, 0.5]
    model = sc.PCFG(rules="treebank", **around).fit(None, BANK, sample_weight=weights)
    same = sc.PCFG.from_treebank(BANK, weights, **around)
    assert str(model.grammar(0)) == str(same.grammar(0))
    model.save(tmp_path / "kept")
    kept = sc.load(tmp_path / "kept")
    assert kept.rules == "treebank"
    assert kept.predict(["the cat is barking"]) == same.predict(["the cat is barking"])
    assert kept.fit(None, BANK[:1]).labels_ == sc.PCFG.from_treebank(BANK[:1], **around).labels_


def test_rules_of_some_trees_are_learned_from_sentences() -> None:
    text = [tree(one).words() for one in BANK]
    new = ["a", "dog", "sees", "a", "cat"]
    model = sc.PCFG(rules="treebank").fit([*text, new], [*BANK, None])
    counted = sc.PCFG.from_treebank(BANK)
    assert model.labels_ == counted.labels_
    assert model.score([new]) > counted.score([new])


@pytest.mark.parametrize("given", [None, [None, None]])
def test_no_trees_to_take_rules_from(given: list[None] | None) -> None:
    with pytest.raises(DataError, match="no trees to take rules from"):
        sc.PCFG(rules="treebank").fit(["a b", "c"], given)


def test_settings_of_treebanks_are_searched() -> None:
    bank = [tree(text) for text in BANK] * 2

    tried = {"horizontal": [None, 0], "vertical": [1, 2], "smoothing": [0.0, 5.0]}
    found = GridSearchCV(sc.PCFG(rules="treebank"), tried, cv=2, error_score="raise")
    found.fit([one.words() for one in bank], bank)
    for settings, score in zip(
        found.cv_results_["params"], found.cv_results_["split0_test_score"], strict=True
    ):
        model = sc.PCFG(rules="treebank", **settings).fit(None, BANK)
        assert score == pytest.approx(model.score(bank[:3]))
    assert found.best_params_["smoothing"] == 0.0


def test_known_words_may_be_something_else_in_parsing_alone() -> None:
    model = sc.PCFG.from_treebank(BANK)
    strict = sc.PCFG.from_treebank(BANK, unknown=False)
    sentence = ["it is dog"]  # never a VP
    assert strict.predict(sentence) == [None]
    assert model.predict(sentence)[0] is not None
    assert model.score(sentence) == strict.score(sentence) == -np.inf
    text = ["the dog sees a cat", "it is sleeping"]
    np.testing.assert_array_equal(model.score_samples(text), strict.score_samples(text))


def test_users_see_plain_labels() -> None:
    model = sc.PCFG.from_treebank(BANK, **AROUND)
    plain = {"S", "NP", "DT", "NN", "VP", "VBZ", "PRP", "VBG", "ADVP", "RB"}
    assert set(model.labels_) == plain
    sentence = ["a cat is often now running"]
    (best,) = model.predict(sentence)
    assert best == tree(BANK[2])
    assert model.k_best(sentence, 1)[0][0][1] == best
    assert model.predict(sentence, method="labelled") == [best]
    assert model.predict(sentence, method="brackets") == [best]
    brackets = model.posterior(sentence).brackets[0]
    assert {label for label, _, _ in brackets} <= plain
    assert brackets["VP", 2, 6] == pytest.approx(1.0)
    for made in [*model.generate(20, 1), *model.sample_trees(sentence, 5)[0]]:
        assert {node.label for node in made.nodes()} <= plain
    assert any("^" in rule.lhs for rule in model.grammar(0.0).rules)


def test_shares_of_plain_labels_are_sums() -> None:
    model = sc.PCFG.from_treebank(BANK, horizontal=0, vertical=2)
    words = ["the dog sees it"]
    found = model.posterior(words, threshold=0.0).brackets[0]
    trees = model.k_best(words, 1000)[0]
    weights = np.exp([log_p for log_p, _ in trees])
    for span, share in found.items():
        has = [any(span == one for one in t.spans()) for _, t in trees]
        # chains of one label count as often as it is there: here there are none
        assert share == pytest.approx(weights[has].sum() / weights.sum(), abs=1e-9)


def test_plain_labels_are_known_of_brackets() -> None:
    model = sc.PCFG.from_treebank(BANK, **AROUND)
    words = ["the dog sees a cat"]
    free, told = model.score(words), model.score_samples(words, brackets=[[("NP", 3, 5)]])[0]
    assert told == pytest.approx(free)
    assert model.score_samples(words, brackets=[[("PRP", 3, 5)]])[0] == -np.inf
    with pytest.raises(DataError, match="no symbol 'XP'"):
        model.predict(words, brackets=[[("XP", 3, 5)]])


def test_counting_again_changes_nothing() -> None:
    model = sc.PCFG.from_treebank(BANK, **AROUND)
    again = sc.PCFG.from_rules(model.rules, **AROUND).fit(None, BANK)
    for name, table in model.params_.items():
        np.testing.assert_allclose(again.params_[name], table)


def test_files_keep_what_is_around_and_new_words(tmp_path: Path) -> None:
    model = sc.PCFG.from_treebank(BANK, **AROUND)
    model.save(tmp_path / "bank")
    again = sc.load(tmp_path / "bank")
    some = ["the cat is barking", "it is often now running"]
    assert again.predict(some) == model.predict(some)
    np.testing.assert_array_equal(again.score_samples(some), model.score_samples(some))


def test_plain_labels_of_symbols() -> None:
    known = Annotation(("S", "NP^S", "@NP^S/DT", "NP^VP", "^", "@"), {4, 5}, vertical=2)
    assert known.labels == ("S", "NP", "^", "@")
    assert known.symbols("NP") == {1, 3}
    assert known.symbols("DT") == set()


def test_what_is_left_out_is_told() -> None:
    rules = "S -> S S [0.3] | A S [0.2] | 'x' [0.5]\nA -> 'x' [0.999] | 'y' [0.001]"
    model = sc.PCFG.from_rules(rules, prune=0.2)
    lost = model.pruning_loss(["x x x x x", "y x x"])
    assert lost.sentences == 2
    assert lost.worst >= lost.mean >= 0.0
    full = sc.PCFG.from_rules(rules)
    assert full.pruning_loss(["x x x x x"]).worst == 0.0
    gap = full.score_samples(["x x x x x", "y x x"]) - model.score_samples(["x x x x x", "y x x"])
    assert lost.worst == pytest.approx(gap.max())
    with pytest.raises(LearnerError, match="dense grammars are never pruned"):
        sc.PCFG(2, 2).fit(["a b"]).pruning_loss(["a b"])


@pytest.mark.slow
def test_new_sentences_of_a_real_treebank() -> None:
    trees = sc.text.read_trees(real.lines("wsj_sample/wsj_sample.mrg.gz"))
    some = [t for t in trees.changed(remove_traces, remove_functions) if t is not None]
    gold = [t for t in some[3500:] if len(t.words()) <= 15]
    plain, context = (
        sc.PCFG.from_treebank(some[:3500], **around).predict([t.words() for t in gold])
        for around in ({}, AROUND)
    )
    for found in (plain, context):
        scores = bracket_scores(found, gold, labelled=True)
        assert scores.unparsed == 0
        assert scores.f1 > 0.8
