"""Hidden Markov models in files: the same model comes back, and nothing but a model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.core import store
from softcount.core.errors import StoreError
from tests.core.damage import EVERY, Damage, array, meta, refused, settings, without
from tests.hmm.text import LEARNERS, SENTENCES, TAGS, WORDS, assert_same

TEXT = [*SENTENCES, ["a", "zebra"], ["the", "yak", "sleeps"]]
NEW = [["the", "gnu", "sleeps"], [], ["never"], ["a", "dog", "sees", "a", "zebra"]]
QUICK = sc.EM(max_iter=3, tol=0)

KINDS: dict[str, tuple[Any, Any]] = {
    "usual": (sc.HMM(3), None),
    "order 2": (sc.HMM(3, order=2), None),
    "without stop": (sc.HMM(3, stop=False), None),
    "smoothed": (sc.HMM(3, smoothing=0.1), None),
    "smoothed apart": (sc.HMM(3, smoothing={"transitions": 0.1, "emissions": 0.01}), None),
    "float32": (sc.HMM(3, dtype="float32", smoothing=0.1), None),
    "lower case": (sc.HMM(3, lowercase=True), None),
    "tags": (sc.HMM(smoothing=0.1), TAGS),
    "more states than tags": (sc.HMM(5, smoothing=0.1), TAGS),
    "numbers": (sc.HMM(3, smoothing=0.1), [[i % 3 for i in range(len(s))] for s in SENTENCES]),
    "dictionary": (sc.HMM(dictionary=WORDS, smoothing=0.1), None),
    "open tags": (sc.HMM(dictionary=WORDS, open_tags=("NN", "VB"), smoothing=0.1), None),
    "open set": (sc.HMM(dictionary=WORDS, open_tags={"NN", "XX"}, smoothing=0.1), None),
    "frozen": (sc.HMM(3, frozen=["emissions"], smoothing=0.1), None),
    "frozen rows": (sc.HMM(3, frozen={"emissions": [True, False, True]}), None),
    "tied": (sc.HMM(3, tied={"emissions": [0, 1, 1]}, smoothing=0.1), None),
    "zero as lists": (sc.HMM(3, zero={"start": [[False, True, False]]}, smoothing=0.1), None),
    "n_components of numpy": (sc.HMM(np.int64(3), smoothing=np.float32(0.5)), None),
}


def fitted(name: str) -> Any:
    kind, tags = KINDS[name]
    known = None if tags is None else [*tags, None, None]
    return clone(kind).set_params(learner=QUICK).fit(TEXT, known)


def same(before: Any, after: Any) -> None:
    """Everything that a model says of new sentences, to the bit."""
    assert type(after) is type(before)
    assert after.signature_ == before.signature_
    assert (after.words_, after.states_) == (before.words_, before.states_)
    assert_same(after.params_, before.params_)
    for text in (TEXT, NEW):
        np.testing.assert_array_equal(after.score_samples(text), before.score_samples(text))
        assert after.predict(text) == before.predict(text)
        assert after.predict(text, method="posterior") == before.predict(text, method="posterior")
        assert after.posterior_sample(text, 3) == before.posterior_sample(text, 3)
        for ours, theirs in zip(after.predict_proba(text), before.predict_proba(text), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert after.top_words() == before.top_words()
    assert after.generate(3, length=5) == before.generate(3, length=5)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_model_comes_back(name: str, tmp_path: Path) -> None:
    before = fitted(name)
    before.save(tmp_path / "m")
    for after in (sc.load(tmp_path / "m"), sc.HMM.load(tmp_path / "m", learner=QUICK)):
        same(before, after)
        with pytest.raises(AttributeError, match="loaded"):
            _ = after.trace_
    after.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "usual"])
def test_whatever_the_learner(name: str, tmp_path: Path) -> None:
    """The learner is no part of a file, and may be given again."""
    before = sc.HMM(3, smoothing=0.1, learner=LEARNERS[name]).fit(TEXT)
    before.save(tmp_path / "m")
    same(before, sc.load(tmp_path / "m"))
    after = sc.load(tmp_path / "m", learner=LEARNERS[name])
    same(before, after)
    assert_same(after.fit(TEXT).params_, before.params_)


def test_odd_words_and_tags(tmp_path: Path) -> None:
    odd = ["é", "e\u0301", "日本", "\u202e", "🙂", '"\\', "|", "</w>", "a b"]
    before = sc.HMM(smoothing=0.1, learner=QUICK).fit([odd], [[f"<{word}>" for word in odd]])
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    assert after.words_ == odd
    assert after.predict([odd]) == before.predict([odd]) == [[f"<{word}>" for word in odd]]


def test_tags_of_a_loaded_model(tmp_path: Path) -> None:
    before = fitted("more states than tags")
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    tags = [[None, {"NN", "VB"}, "VB"]]
    one = [["the", "gnu", "sleeps"]]
    assert after.predict(one, tags=tags) == before.predict(one, tags=tags)
    assert after.predict(one, tags=tags)[0][2] == "VB"


def test_arrays_among_the_settings_are_kept(tmp_path: Path) -> None:
    """Zeros that a file forgot would come back to life in the next fit."""
    where = np.array([[False, True, False]])
    before = sc.HMM(3, zero={"start": where}, smoothing=0.1, learner=QUICK).fit(TEXT)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m", learner=QUICK)
    same(before, after)
    assert_same(after.fit(TEXT).params_, before.params_)


# files that were written by hand
OF_FACTS: dict[str, Damage] = {
    "no settings": without("settings"),
    "settings as a list": meta(settings=[]),
    "no words": without("words"),
    "words as text": meta(words="abcdefghij"),
    "words as numbers": meta(words=list(range(10))),
    "one word": meta(words=["a"]),
    "a word twice": lambda arrays, facts: facts["words"].__setitem__(1, facts["words"][0]),
    "an empty word": lambda arrays, facts: facts["words"].__setitem__(1, ""),
    "no tags": without("tags"),
    "tags as a number": meta(tags=3),
    "tags as text": meta(tags="DNV"),
    "tags as numbers": meta(tags=[1, 2, 3]),
    "a tag twice": meta(tags=["DT", "DT", "VB"]),
    "tags in disorder": meta(tags=["VB", "NN", "DT"]),
    "more tags than states": meta(tags=["DT", "NN", "VB", "XX"]),
    "no states": without("n_states"),
    "states as text": meta(n_states="3"),
    "other states": meta(n_states=4),
    "zero states": meta(n_states=0),
    "fewer than no states": meta(n_states=-3),
    "endless states": meta(n_states=10**12),
    "half a state": meta(n_states=2.5),
    "truth for states": meta(n_states=True),
    "no columns": meta(n_features=0),
    "other columns": meta(n_features=3),
    "surprise": settings(surprise=1),
    "class": settings(__class__="os.system"),
    "a learner": settings(learner="EM()"),
    "an engine": settings(engine="os.system"),
    "numbers of no kind": settings(dtype="float16"),
    "smoothing": settings(smoothing="much"),
    "negative smoothing": settings(smoothing=-1.0),
    "order": settings(order=2),
    "order 3": settings(order=3),
    "endless order": settings(order=10**9),
    "no stop": settings(stop=False),
    "stop as text": settings(stop="no"),
    "states as settings": settings(n_components=-1),
    "a dictionary of nothing": settings(dictionary={"the": []}),
    "a dictionary of strangers": settings(dictionary={"the": ["XX"]}),
    "a dictionary as text": settings(dictionary="the DT"),
    "strange open tags": settings(open_tags=["XX"]),
    "open tags as numbers": settings(open_tags=[1]),
    "zero of a stranger": settings(zero={"moves": []}),
    "zero of a wrong shape": settings(zero={"start": [[True]]}),
    "zero where there is something": settings(zero={"start": [[True, True, False]]}),
    "frozen": settings(frozen=["moves"]),
    "frozen rows": settings(frozen={"emissions": [True, False]}),
    "tied": settings(tied={"emissions": [0]}),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> store.Stored:
    path = tmp_path_factory.mktemp("models") / "m"
    fitted("tags").save(path)
    return store.read(path)


@pytest.mark.parametrize("name", ["start", "transitions", "emissions", "often"])
def test_arrays_that_are_none(name: str, good: store.Stored, tmp_path: Path) -> None:
    changes = {"missing": array(name, None)}
    changes |= {what: array(name, change) for what, change in EVERY.items()}
    if name != "often":
        changes["twice"] = array(name, lambda table: table * 2.0)
        changes["zeros"] = array(name, np.zeros_like)
    else:
        changes["fractions"] = array(name, lambda often: often + 0.5)
        changes["never seen"] = array(name, np.zeros_like)
        del changes["of bytes"]  # the same numbers
    bad = tmp_path / "bad"
    assert [what for what, change in changes.items() if not refused(good, change, bad)] == []


@pytest.mark.parametrize("what", OF_FACTS)
def test_facts_that_are_none(what: str, good: store.Stored, tmp_path: Path) -> None:
    assert refused(good, OF_FACTS[what], tmp_path / "bad")


def test_the_file_that_was_not_damaged(good: store.Stored, tmp_path: Path) -> None:
    assert not refused(good, lambda arrays, facts: None, tmp_path / "m")
    assert sc.load(tmp_path / "m").predict([["the", "dog"]]) == [["DT", "NN"]]


def test_a_model_of_another_kind(good: store.Stored, tmp_path: Path) -> None:
    for kind in ("LDA", "IBM1", "MarkovModel", "os.system"):
        store.write(tmp_path / "n", kind, good.arrays, good.meta, good.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / "n")
    store.write(tmp_path / "m", good.kind, good.arrays, good.meta, good.signature)
    with pytest.raises(StoreError, match="HMM"):
        sc.LDA.load(tmp_path / "m")
