"""Aligners in files: the same model comes back, goes on learning, and nothing but a model does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.core import store
from softcount.core.errors import DataError, StoreError
from tests.align.small import (
    AWKWARD,
    LEARNERS,
    MODELS,
    ONE_WAY,
    PAIRS,
    assert_alike,
    assert_same,
    directions,
    tables,
)
from tests.core.damage import Damage, array, first, meta, refused, settings, without

every = pytest.mark.parametrize("name", MODELS)
LEARNED = [*ONE_WAY, "Aligner"]
TOLD = {"S1": "T9", "S2": ["T3", "T2"], "niemals": "nimmer", "jamais": ["T4", "nimmer"]}
MORE = [("S1 neu", "T1 new"), ("neu neu S3 S4 S5 S6 S7", "new T3")]

KINDS: list[Any] = [
    *(make() for make in MODELS.values()),
    *(MODELS[name](dtype="float32") for name in LEARNED),
    *(MODELS[name](null=False) for name in ONE_WAY),
    *(MODELS[name](dictionary=TOLD) for name in MODELS),
    *(MODELS[name](dictionary=TOLD, dictionary_strength=2.0) for name in MODELS),
    *(sc.Aligner(model) for model in ("ibm1", "ibm2", "diagonal")),
    sc.Aligner(agree=False, stem=None, threshold=0.3, settings={"p_null": 0.3, "max_jump": 3}),
    sc.align.IBM1(stem=2, smoothing=0.1, lowercase=True),
    sc.align.IBM1(dictionary=[("S1", "T9"), ("S2", "T2")]),
    sc.align.HMMAligner(max_jump=np.int64(4), p_null=np.float32(0.25)),
    sc.align.Diagonal(tension=2, init="uniform"),
    sc.align.GibbsAligner(n_init=2, max_iter=3, kept=1, threshold=0.4, random_state=5),
]
IDS = [f"{n} {type(kind).__name__}" for n, kind in enumerate(KINDS)]


def same(before: Any, after: Any) -> None:
    """Everything that a model says of new pairs, to the bit."""
    assert type(after) is type(before)
    assert after.signature_ == before.signature_
    assert after.source_words_ == before.source_words_
    assert after.target_words_ == before.target_words_
    assert_same(tables(after), tables(before))
    text = [*PAIRS, *AWKWARD]
    assert_alike(after.posteriors(text), before.posteriors(text))
    assert after.align(text) == before.align(text)
    assert after.align(text, threshold=0.2) == before.align(text, threshold=0.2)
    word = "s1" if before.lowercase else "S1"
    assert after.translations(word) == before.translations(word)
    assert (after.table() != before.table()).nnz == 0
    for ours, theirs in zip(directions(after), directions(before), strict=True):
        np.testing.assert_array_equal(ours.score_samples(text), theirs.score_samples(text))
        assert ours.source_words_ == theirs.source_words_


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_the_same_model_comes_back(kind: Any, tmp_path: Path) -> None:
    before = clone(kind).fit(PAIRS)
    before.save(tmp_path / "m")
    for after in (sc.load(tmp_path / "m"), type(kind).load(tmp_path / "m")):
        same(before, after)
        with pytest.raises(AttributeError, match="loaded"):
            _ = after.trace_
        with pytest.raises(DataError, match="give pairs"):
            after.align()
    after.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_it_goes_on_learning_as_the_other_does(kind: Any, tmp_path: Path) -> None:
    before = clone(kind).fit(PAIRS)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    for more in (MORE, AWKWARD):
        same(before.partial_fit(more), after.partial_fit(more))
    before.save(tmp_path / "m")
    same(before, sc.load(tmp_path / "m"))
    after.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert before.align() == after.align()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LEARNED)
def test_whatever_the_learner(name: str, learner: str, dtype: str, tmp_path: Path) -> None:
    """The learner is no part of a file, and is given again."""
    how = LEARNERS[learner]
    before = MODELS[name](learner=how, smoothing=0.01, dtype=dtype).fit(PAIRS)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m", learner=how)
    same(before, after)
    same(before.partial_fit(MORE), after.partial_fit(MORE))


@every
def test_a_refit_begins_anew(name: str, tmp_path: Path) -> None:
    before = MODELS[name]().fit(PAIRS)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m").fit(PAIRS[:20])
    assert_same(tables(after), tables(MODELS[name]().fit(PAIRS[:20])))
    assert len(after.trace_)


@every
def test_odd_words(name: str, tmp_path: Path) -> None:
    odd = ["é", "e\u0301", "日本", "\u202e", "🙂", '"\\', "|", "</w>", " "]
    before = MODELS[name]().fit([([word], [word * 2]) for word in odd] * 3)
    before.save(tmp_path / "m")
    assert sc.load(tmp_path / "m").source_words_ == odd


def test_settings_that_are_given(tmp_path: Path) -> None:
    sc.align.IBM1().fit(PAIRS).save(tmp_path / "m")
    engine = sc.Local(threads=1)
    assert sc.load(tmp_path / "m", engine=engine).engine is engine
    with pytest.raises(TypeError, match="nonsense"):
        sc.load(tmp_path / "m", nonsense=1)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_another_kind(name: str, tmp_path: Path) -> None:
    MODELS[name]().fit(PAIRS).save(tmp_path / "m")
    good = store.read(tmp_path / "m")
    for kind in ("LDA", "DirectionalAligner", "SampledHMM", "os.system", *MODELS):
        if kind == name:
            continue
        store.write(tmp_path / "n", kind, good.arrays, good.meta, good.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / "n")
    other = sc.align.IBM2 if name == "IBM1" else sc.align.IBM1
    with pytest.raises(StoreError, match=name):
        other.load(tmp_path / "m")


# files that were written by hand
def shorter(table: Any) -> Any:
    return table[..., :-1].copy()


def longer(table: Any) -> Any:
    return np.concatenate([table, table[..., -1:]], axis=-1)


def flat(table: Any) -> Any:
    return table.reshape(1, 1, -1)


def of_bytes(table: Any) -> Any:
    return np.frombuffer(b"no numbers", np.uint8).copy()


def nothing(table: Any) -> Any:
    return table[..., :0].copy()


def fractions(table: Any) -> Any:
    return table + 0.5


def down(table: Any) -> Any:
    return table - 1


def reverse(table: Any) -> Any:
    return table[::-1].copy()


NAMES = ("translation", "past.translation", "lexicon.indptr", "lexicon.targets", "sizes", "often")
OWN = {
    "HMMAligner": ("jumps", "past.jumps"),
    "IBM2": ("places", "past.places"),
    "Diagonal": ("places", "past.places"),
    "IBM1": (),
}
EVERY: dict[str, Any] = {
    "shorter": shorter,
    "longer": longer,
    "flat": flat,
    "nan": first(np.nan),
    "inf": first(np.inf),
    "negative": first(-1.0),
    "of bytes": of_bytes,
    "nothing": nothing,
}
HARMLESS = {("sizes", "shorter"), ("sizes", "longer"), ("sizes", "of bytes")}

OF_ARRAYS: dict[str, Damage] = {
    "tables twice": array("translation", lambda t: t * 2.0),
    "fractions of words": array("lexicon.targets", fractions),
    "words before the first": array("lexicon.targets", down),
    "words beyond the last": array("lexicon.targets", lambda t: t + 1000),
    "words in disorder": array("lexicon.targets", reverse),
    "rows in disorder": array("lexicon.indptr", reverse),
    "rows that overlap": array(
        "lexicon.indptr", lambda t: np.sort(t)[[0, 2, 1, *range(3, len(t))]]
    ),
    "lengths of nothing": array("sizes", np.zeros_like),
    "endless sentences": array("sizes", lambda t: t + (1 << 40)),
    "fractions of lengths": array("sizes", fractions),
    "words less than never": array("often", lambda t: t - 1000),
}
OF_FACTS: dict[str, Damage] = {
    "no settings": without("settings"),
    "settings as a list": meta(settings=[]),
    "no words": without("words"),
    "words as text": meta(words="ab"),
    "one side": meta(words=[["a"]]),
    "words as numbers": meta(words=[[1], [2]]),
    "other words": meta(words=[["a"], ["b"]]),
    "a word twice": lambda arrays, facts: facts["words"][0].__setitem__(1, facts["words"][0][0]),
    "no list of words": lambda arrays, facts: facts["words"].__setitem__(0, None),
    "surprise": settings(surprise=1),
    "class": settings(__class__="os.system"),
    "a learner": settings(learner="EM()"),
    "an engine": settings(engine="os.system"),
    "numbers of no kind": settings(dtype="float16"),
    "numbers of a list": settings(dtype=["float64"]),
    "smoothing": settings(smoothing="much"),
    "negative smoothing": settings(smoothing=-1.0),
    "warm-up": settings(warm_up=-1),
    "stem": settings(stem="four"),
    "a dictionary of nothing": settings(dictionary={"S1": []}),
    "a dictionary of strangers": settings(dictionary={"stranger": "fremd"}),
    "a dictionary as text": settings(dictionary="S1 T1"),
    "weights as text": settings(dictionary={"S1": {"T1": "much"}}),
    "strength": settings(dictionary_strength=-1.0),
    "p_null": settings(p_null=2.0),
    "jumps": settings(max_jump=0),
    "wide jumps": settings(max_jump=7),
    "endless jumps": settings(max_jump=10**12),
    "tension": settings(tension="high"),
    "threshold": settings(threshold=2.0),
    "model": settings(model="ibm9"),
    "another model": settings(model="ibm2"),
    "model as a list": settings(model=["hmm"]),
    "settings of directions": settings(settings={"surprise": 1}),
    "settings of directions as text": settings(settings="null"),
    "n_init": settings(n_init=0),
    "prior": settings(prior=-1.0),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, store.Stored]:
    folder = tmp_path_factory.mktemp("aligners")
    for name, make in MODELS.items():
        make().fit(PAIRS).partial_fit(MORE).save(folder / name)
    return {name: store.read(folder / name) for name in MODELS}


def prefixes(name: str) -> tuple[str, ...]:
    return ("",) if name in ONE_WAY else ("forward.", "backward.")


def of_one(prefix: str, damage: Damage) -> Damage:
    """The same damage in one direction."""

    def changed(arrays: dict[str, Any], facts: dict[str, Any]) -> None:
        own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        damage(own, facts)
        for name in [name for name in arrays if name.startswith(prefix)]:
            del arrays[name]
        arrays |= {prefix + name: a for name, a in own.items()}

    return changed


@every
def test_arrays_that_are_none(name: str, good: dict[str, store.Stored], tmp_path: Path) -> None:
    own = OWN["HMMAligner" if name not in OWN else name]
    changes: dict[str, Damage] = dict(OF_ARRAYS)
    for key in (*NAMES, *own):
        changes[f"no {key}"] = array(key, None)
        for how, change in EVERY.items():
            if (key, how) not in HARMLESS:
                changes[f"{key} {how}"] = array(key, change)
    accepted = [
        f"{prefix}{what}"
        for prefix in prefixes(name)
        for what, change in changes.items()
        if not refused(good[name], of_one(prefix, change), tmp_path / "bad")
    ]
    assert accepted == []


@every
def test_facts_that_are_none(name: str, good: dict[str, store.Stored], tmp_path: Path) -> None:
    known = {*MODELS[name]().get_params(), "surprise", "__class__", "learner"}
    accepted = []
    for what, change in OF_FACTS.items():
        facts: dict[str, Any] = {"settings": {}, "words": [["a", "b"], ["c"]]}
        change({}, facts)
        if not set(facts.get("settings") or {}) <= known:
            continue
        if what == "another model" and name == "GibbsAligner":
            continue
        if not refused(good[name], change, tmp_path / "bad"):
            accepted.append(what)
    assert accepted == []


@every
def test_the_file_that_was_not_refused(
    name: str, good: dict[str, store.Stored], tmp_path: Path
) -> None:
    assert not refused(good[name], lambda arrays, facts: None, tmp_path / "m")
    assert len(sc.load(tmp_path / "m").partial_fit(PAIRS).align()) == len(PAIRS)


@pytest.mark.parametrize("name", ["HMMAligner", "IBM2", "Diagonal"])
def test_claims_of_endless_size_take_no_memory(
    name: str, good: dict[str, store.Stored], tmp_path: Path
) -> None:
    """Sentences of 10⁹ words: refused before room for them is made."""
    huge = array("sizes", lambda sizes: np.full_like(sizes, 10**9))
    assert refused(good[name], huge, tmp_path / "bad")
