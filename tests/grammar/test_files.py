"""Grammars in files, and files that are no grammars."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.core import store
from softcount.core.errors import StoreError
from softcount.text.trees import Tree
from tests.core.damage import EVERY, Damage, array, first, meta, refused, settings, without
from tests.grammar.cases import LEARNERS, SENTENCES, TOY, assert_same, kinds, learned, learning

# Grammars in files: the same model comes back


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
    assert after.get_params(deep=False).keys() == before.get_params(deep=False).keys()


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


# Files that were written by hand: the checksum is right, and the content is not


BROKEN_KINDS = {
    "dense": lambda: learned("dense"),
    "rules": lambda: sc.PCFG.from_rules(TOY),
}


TABLES: dict[str, Any] = {
    "twice": lambda table: table * 2.0,
    "zeros": np.zeros_like,
    "more than one": first(1.5),
}


def entry(name: str, at: int, value: Any) -> Damage:
    """Another item of a list."""
    return lambda arrays, facts: facts[name].__setitem__(at, value)


OF_ALL: dict[str, Damage] = {
    "no settings": without("settings"),
    "settings as a list": meta(settings=[]),
    "no columns": meta(n_features=0),
    "columns as text": meta(n_features="5"),
    "surprise": settings(surprise=1),
    "class": settings(__class__="os.system"),
    "a learner": settings(learner="EM()"),
    "an engine": settings(engine="os.system"),
    "numbers of no kind": settings(dtype="float16"),
    "smoothing": settings(smoothing="much"),
    "negative smoothing": settings(smoothing=-1.0),
    "smoothing of a stranger": settings(smoothing={"words": 0.1, "emissions": 1}),
    "frozen": settings(frozen=["moves"]),
    "frozen numbers": settings(frozen=[3]),
    "prune": settings(prune=2.0),
    "prune as text": settings(prune="a little"),
    "negative nonterminals": settings(n_components=-1),
    "half a preterminal": settings(n_preterminals=2.5),
}
OF_DENSE: dict[str, Damage] = {
    "no words": without("words"),
    "words as text": meta(words="abcdefghijk"),
    "words as numbers": meta(words=list(range(11))),
    "words of nothing": meta(words=None),
    "one word": meta(words=["a"]),
    "endless words": meta(words=["a"] * 10**5),
    "a word twice": lambda arrays, facts: facts["words"].__setitem__(1, facts["words"][0]),
    "an empty word": entry("words", 1, ""),
    "no nonterminals": without("nonterminals"),
    "nonterminals of nothing": meta(nonterminals=None),
    "none of them": meta(nonterminals=[]),
    "nonterminals as a number": meta(nonterminals=2),
    "nonterminals as text": meta(nonterminals="NM"),
    "a label twice": meta(nonterminals=["N0", "N0"]),
    "endless nonterminals": meta(nonterminals=[f"N{n}" for n in range(10**5)]),
    "a preterminal twice": meta(preterminals=["P0", "P1", "P0"]),
    "more preterminals": meta(preterminals=["P0", "P1", "P2", "P3"]),
    "preterminals as numbers": meta(preterminals=[1, 2, 3]),
    "rules beside tables": settings(rules=TOY, n_components=None, n_preterminals=None),
    "rules and numbers": settings(rules=TOY),
}
OF_RULES: dict[str, Damage] = {
    "no left sides": without("left"),
    "no right sides": without("right"),
    "no kinds": without("kinds"),
    "no roots": without("roots"),
    "left sides as text": meta(left="SSSNNNVVV"),
    "fewer left sides": lambda arrays, facts: facts["left"].pop(),
    "a left side as a number": entry("left", 0, 3),
    "an empty left side": entry("left", 0, ""),
    "left sides in disorder": lambda arrays, facts: facts["left"].reverse(),
    "another left side": entry("left", 0, "NP"),
    "a right side as text": entry("right", 0, "NP"),
    "an empty right side": entry("right", 0, []),
    "an empty word": entry("right", 0, ["NP", ""]),
    "a right side of numbers": entry("right", 0, [1, 2]),
    "a symbol without rules": entry("right", 0, ["NP", "XX"]),
    "a right side of lists": entry("right", 0, [["NP"], ["VP"]]),
    "strange kinds": entry("kinds", 0, "sx"),
    "kinds of another length": entry("kinds", 0, "sss"),
    "kinds as a list": entry("kinds", 0, ["s", "s"]),
    "no kind": entry("kinds", 0, ""),
    "a rule twice": lambda arrays, facts: (
        facts["right"].__setitem__(1, facts["right"][0])
        or facts["kinds"].__setitem__(1, facts["kinds"][0])
    ),
    "roots of nothing": meta(roots=[]),
    "roots as text": meta(roots="S"),
    "a root without rules": meta(roots=["XX"]),
    "a root that is none": meta(roots=["D"]),
    "roots as numbers": meta(roots=[1]),
    "roots as lists": meta(roots=[["S"]]),
    "a root twice": meta(roots=["S", "S"]),
    "nonterminals": settings(n_components=3),
    "other rules as a text": settings(rules="S -> 'a'"),
    "no rules as a text": settings(rules="S -> "),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, store.Stored]:
    path = tmp_path_factory.mktemp("models") / "m"
    found = {}
    for kind, made in BROKEN_KINDS.items():
        made().save(path)
        found[kind] = store.read(path)
    return found


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("dense", name) for name in ("root", "rules", "words", "often"))]
    + [("rules", name) for name in ("root", "rules")],
)
def test_arrays_that_are_none(kind: str, name: str, good: Any, tmp_path: Path) -> None:
    changes = {"missing": array(name, None)}
    changes |= {what: array(name, change) for what, change in EVERY.items()}
    if name != "often":
        changes |= {what: array(name, change) for what, change in TABLES.items()}
    else:
        changes["fractions"] = array(name, lambda often: often + 0.5)
        changes["never seen"] = array(name, np.zeros_like)
    bad = tmp_path / "bad"
    assert [what for what, change in changes.items() if not refused(good[kind], change, bad)] == []


@kinds
@pytest.mark.parametrize("what", OF_ALL)
def test_facts_that_are_none(kind: str, what: str, good: Any, tmp_path: Path) -> None:
    assert refused(good[kind], OF_ALL[what], tmp_path / "bad")


@pytest.mark.parametrize("what", OF_DENSE)
def test_facts_of_dense_grammars(what: str, good: Any, tmp_path: Path) -> None:
    tracemalloc.start()
    assert refused(good["dense"], OF_DENSE[what], tmp_path / "bad")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 300e6  # no table of a size that is merely claimed


@pytest.mark.filterwarnings("ignore::softcount.grammar.rules.GrammarWarning")
@pytest.mark.parametrize("what", OF_RULES)
def test_facts_of_rules(what: str, good: Any, tmp_path: Path) -> None:
    assert refused(good["rules"], OF_RULES[what], tmp_path / "bad")


@pytest.mark.filterwarnings("ignore::softcount.grammar.rules.GrammarWarning")
def test_chains_without_an_end(tmp_path: Path) -> None:
    """Certain by the rules there are, or by their probabilities."""
    model = sc.PCFG.from_rules("S -> A\nA -> B [0.5] | 'a' [0.5]\nB -> A [0.5] | 'b' [0.5]")
    model.save(tmp_path / "m")
    good = store.read(tmp_path / "m")
    certain = array("rules", [1.0, 1.0, 0.0, 1.0, 0.0])
    assert refused(good, certain, tmp_path / "bad")

    def no_words(arrays: Any, facts: Any) -> None:
        for name in ("left", "right", "kinds"):
            facts[name] = [facts[name][n] for n in (0, 1, 3)]
        arrays["table.rules"] = np.ones(3)

    assert refused(good, no_words, tmp_path / "bad")
    assert not refused(good, array("rules", [1.0, 1.0, 0.0, 0.5, 0.5]), tmp_path / "well")
    assert not refused(good, lambda arrays, facts: None, tmp_path / "well")


@kinds
def test_the_file_that_was_not_damaged(kind: str, good: Any, tmp_path: Path) -> None:
    assert not refused(good[kind], lambda arrays, facts: None, tmp_path / "m")
    assert sc.load(tmp_path / "m").predict([["she", "sleeps"]])[0].words() == ["she", "sleeps"]


@kinds
def test_a_model_of_another_kind(kind: str, good: Any, tmp_path: Path) -> None:
    own = good[kind]
    for other in ("LDA", "HMM", "IBM1", "os.system"):
        store.write(tmp_path / "n", other, own.arrays, own.meta, own.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / "n")
    store.write(tmp_path / "m", own.kind, own.arrays, own.meta, own.signature)
    with pytest.raises(StoreError, match="PCFG"):
        sc.HMM.load(tmp_path / "m")
