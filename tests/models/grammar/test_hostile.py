"""Files that were written by hand: the checksum is right, and the content is not."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount import store
from softcount.errors import StoreError
from tests.damage import EVERY, Damage, array, first, meta, refused, settings, without
from tests.models.grammar.text import TOY, kinds, learned

KINDS = {
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
    "negative nonterminals": settings(n_nonterminals=-1),
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
    "rules beside tables": settings(rules=TOY, n_nonterminals=None, n_preterminals=None),
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
    "nonterminals": settings(n_nonterminals=3),
    "other rules as a text": settings(rules="S -> 'a'"),
    "no rules as a text": settings(rules="S -> "),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, store.Stored]:
    path = tmp_path_factory.mktemp("models") / "m"
    found = {}
    for kind, made in KINDS.items():
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
