"""Grammars in files: the same model comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.corpus.trees import Tree
from tests.models.grammar.text import LEARNERS, SENTENCES, TOY, assert_same, kinds, learning

QUICK = sc.EM(max_iter=3, tol=0)
TREES = ["(S (NP she) (VP (V sees)))", *[None] * (len(SENTENCES) - 1)]
TEXT = [["she", "sees"], *SENTENCES[1:]]
NEW = [["she", "sees", "a", "gnu"], [], ["never"], ["the", "dog", "sleeps", "near", "a", "cat"]]

KINDS: dict[str, tuple[Any, Any]] = {
    "dense": (sc.PCFG(2, 3), None),
    "trees": (sc.PCFG(5, 5), TREES),
    "smoothed": (sc.PCFG(2, 3, smoothing=0.1), None),
    "smoothed apart": (sc.PCFG(2, 3, smoothing={"rules": 0.1, "words": 0.01}), None),
    "float32": (sc.PCFG(2, 3, dtype="float32", smoothing=0.1), None),
    "lower case": (sc.PCFG(2, 3, lowercase=True), None),
    "no unknown words": (sc.PCFG(2, 3, unknown=False), None),
    "frozen": (sc.PCFG(2, 3, frozen=["root", "N1"], smoothing=0.1), None),
    "numbers of numpy": (sc.PCFG(np.int64(2), np.int32(3), smoothing=np.float32(0.5)), None),
    "rules": (sc.PCFG.from_rules(TOY), None),
    "rules as a text": (sc.PCFG(rules=TOY), None),
    "rules, smoothed": (sc.PCFG.from_rules(TOY, smoothing=0.1), None),
    "rules, some trees": (sc.PCFG.from_rules(TOY), TREES),
    "rules, frozen": (sc.PCFG.from_rules(TOY, frozen=("NP", "V"), smoothing=0.1), None),
    "rules, pruned": (sc.PCFG.from_rules(TOY, prune=1e-9), None),
}


def fitted(name: str) -> Any:
    kind, trees = KINDS[name]
    return clone(kind).set_params(learner=QUICK).fit(TEXT, trees)


def same(before: Any, after: Any) -> None:
    """Everything that a model says of new sentences, to the bit."""
    assert type(after) is type(before)
    assert after.signature_ == before.signature_
    assert after.labels_ == before.labels_
    assert_same(after.params_, before.params_)
    for text in (TEXT, NEW):
        np.testing.assert_array_equal(after.score_samples(text), before.score_samples(text))
        for method in ("viterbi", "brackets", "labelled"):
            assert after.predict(text, method=method) == before.predict(text, method=method)
        assert after.k_best(text, 3) == before.k_best(text, 3)
        assert after.sample_trees(text, 3) == before.sample_trees(text, 3)
        assert after.posterior(text) == before.posterior(text)
    assert str(after.grammar()) == str(before.grammar())
    assert after.get_params().keys() == before.get_params().keys()


@pytest.mark.parametrize("name", KINDS)
def test_the_same_model_comes_back(name: str, tmp_path: Path) -> None:
    before = fitted(name)
    before.save(tmp_path / "m")
    for after in (sc.load(tmp_path / "m"), sc.PCFG.load(tmp_path / "m", learner=QUICK)):
        same(before, after)
        with pytest.raises(AttributeError, match="loaded"):
            _ = after.trace_
    after.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    clone(after).fit(TEXT)
    after.fit(TEXT)
    assert after.predict(TEXT)[0] is not None


@pytest.mark.parametrize("name", ["from text", "treebank", "unused root"])
def test_grammars_that_learned_nothing(name: str, tmp_path: Path) -> None:
    trees = ["(S (NP she) (VP (V sees)))", "(NP (D the) (N cat))"]
    before = sc.PCFG.from_rules(TOY) if name == "from text" else sc.PCFG.from_treebank(trees)
    if name == "unused root":
        before.fit(None, trees[:1])
        assert before.params_["root"].min() == 0.0
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    same(before, after)
    assert_same(after.fit(None, trees[:1]).params_, before.fit(None, trees[:1]).params_)


@kinds
@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "usual"])
def test_whatever_the_learner(kind: str, name: str, tmp_path: Path) -> None:
    """The learner is no part of a file, and may be given again."""
    before = learning(kind, name).fit(SENTENCES)
    before.save(tmp_path / "m")
    same(before, sc.load(tmp_path / "m"))
    after = sc.load(tmp_path / "m", learner=LEARNERS[name])
    same(before, after)
    if kind == "dense":  # rules begin with what was learned
        assert_same(after.fit(SENTENCES).params_, before.params_)


@kinds
def test_brackets_of_a_loaded_model(kind: str, tmp_path: Path) -> None:
    before = fitted("trees" if kind == "dense" else "rules")
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    known = {"brackets": [[("VP" if kind == "rules" else "S", 1, 4), (2, 4)]]}
    one = [["she", "sees", "the", "cat"]]
    assert after.predict(one, **known) == before.predict(one, **known)
    np.testing.assert_array_equal(
        after.score_samples(one, **known), before.score_samples(one, **known)
    )


def test_odd_words_and_labels(tmp_path: Path) -> None:
    odd = ["é", "e\u0301", "日本", "\u202e", "🙂", '"\\', "|", "</w>", "a b", "'"]
    rules = "S -> " + " ".join(f"X{n}" for n in range(len(odd))) + "\n"
    rules += "\n".join(
        str(sc.PCFG.from_treebank([Tree(f"X{n}", (w,))]).grammar()) for n, w in enumerate(odd)
    )
    before = sc.PCFG.from_rules(rules)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    assert after.predict([odd]) == before.predict([odd])
    assert after.predict([odd])[0].words() == odd
    dense = sc.PCFG(2, 2, smoothing=0.1, learner=QUICK).fit([odd])
    dense.save(tmp_path / "m")
    assert sc.load(tmp_path / "m").predict([odd]) == dense.predict([odd])
