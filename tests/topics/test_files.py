"""Topic models in files: the same model comes back, and nothing but a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import softcount as sc
from softcount.core import store
from softcount.core.errors import DataError, StoreError
from softcount.text.archive import Archive
from tests.core.damage import Damage, array, first, meta, settings, without
from tests.oracles import plain_topics
from tests.topics.common import LEARNERS

X, TOPICS = plain_topics.documents()
V = X.shape[1]
TEXTS = ["Cup goal team", "goal team match!", "oil price", "", "market price of oil"] * 4
FROZEN = np.random.default_rng(0).dirichlet(np.ones(V), 1)

MODELS: list[tuple[Any, Any, Any]] = [
    *((sc.LDA(3, learner=learner), X, None) for learner in LEARNERS),
    (sc.PLSA(3), X, None),
    (sc.PLSA(np.int64(2), smoothing=np.float32(0.5), dtype="float32"), sparse.csr_matrix(X), None),
    (sc.LDA(2), TEXTS, [0, -1, [0, 1], -1, 1] * 4),
    (sc.LDA(2), [text.split() for text in TEXTS], None),
    (sc.LDA(2, seed_words={0: ["goal"], 1: {"oil", "price"}}, seed_strength=0.5), TEXTS, None),
    (sc.LDA(2, seed_words=[["goal"], ["oil"]]), TEXTS, None),
    (sc.LDA(2, frozen_topics=[{"goal": 2, "cup": 1}]), TEXTS, None),
    (sc.LDA(3, frozen_topics=FROZEN, seed_words={2: [4]}), X, None),
    (sc.LDA(3, init={"topics": TOPICS}), X, None),
    (sc.LDA(3, init="anchors", short_runs=0), X, None),
]


def fitted(model: Any, data: Any, y: Any) -> Any:
    return clone(model).fit(data, labels=y)


def same(before: Any, after: Any, data: Any, query: Any) -> None:
    """Everything that a model says, to the bit."""
    assert type(after) is type(before)
    assert after.signature_ == before.signature_
    assert after.n_features_in_ == before.n_features_in_
    for name in ("topics_", "documents_", "weights_", "document_smoothing_", "temper_"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_array_equal(after.transform(data), before.transform(data))
    np.testing.assert_array_equal(after.score_samples(data), before.score_samples(data))
    assert after.word_names().tolist() == before.word_names().tolist()
    assert after.top_words(4) == before.top_words(4)
    for words in (0.0, 0.4):
        assert after.similar(query, 7, words) == before.similar(query, 7, words)
    old, new = before.generate(5, 1), after.generate(5, 1)
    assert old == new if isinstance(old, list) else abs(old - new).sum() == 0


@pytest.mark.parametrize(("model", "data", "y"), MODELS, ids=range(len(MODELS)))
def test_the_same_model_comes_back(model: Any, data: Any, y: Any, tmp_path: Path) -> None:
    before = fitted(model, data, y)
    before.save(tmp_path / "m")
    query = data[1] if isinstance(data, list) else np.asarray(X[1])
    for after in (sc.load(tmp_path / "m"), type(model).load(tmp_path / "m")):
        same(before, after, data, query)
        with pytest.raises(AttributeError, match="loaded"):
            _ = after.trace_
    after.save(tmp_path / "again")
    same(before, sc.load(tmp_path / "again"), data, query)


AGAIN = [one for one in MODELS if one[0].learner is None and isinstance(one[0].init, str)]


@pytest.mark.parametrize(("model", "data", "y"), AGAIN, ids=range(len(AGAIN)))
def test_it_learns_again_as_it_did(model: Any, data: Any, y: Any, tmp_path: Path) -> None:
    before = fitted(model, data, y)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m").fit(data, labels=y)
    np.testing.assert_allclose(after.topics_, before.topics_, rtol=1e-12)


@pytest.mark.parametrize("learner", [None, sc.StochasticVB(batch_size=16)])
def test_after_partial_fit(learner: Any, tmp_path: Path) -> None:
    before = sc.LDA(3, learner=learner).partial_fit(X[:30]).partial_fit(X[30:])
    before.save(tmp_path / "m")
    same(before, sc.load(tmp_path / "m"), X, X[1])


def test_after_learning_from_an_archive(tmp_path: Path) -> None:
    archive = Archive.build(TEXTS, tmp_path / "a")
    before = sc.LDA(2).fit(archive)
    before.save(tmp_path / "m")
    after = sc.load(tmp_path / "m")
    np.testing.assert_array_equal(after.transform(TEXTS), before.transform(TEXTS))
    np.testing.assert_array_equal(after.transform(archive), before.transform(archive))
    with pytest.raises(DataError, match=r"model\.index"):
        after.similar("goal")
    same(before.index(TEXTS), after.index(TEXTS), TEXTS, "goal")
    before.save(tmp_path / "with index")
    same(before, sc.load(tmp_path / "with index"), TEXTS, "goal")


def test_the_documents_to_be_found_are_kept(tmp_path: Path) -> None:
    model = sc.LDA(2).fit(TEXTS).index(["oil oil", "team"])
    model.save(tmp_path / "m")
    found = sc.load(tmp_path / "m").similar("price of oil", 5)
    assert found[0][0] == 0
    assert len(found) == 2


def test_names_of_columns(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :5] + 1, columns=list("abcde"))
    sc.LDA(2, seed_words={0: ["c"]}).fit(frame).save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert list(again.feature_names_in_) == again.word_names().tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"a": "x"}))


def test_odd_words(tmp_path: Path) -> None:
    odd = ["é", "e\u0301", "日本", "\ud800", "a\x00b", "\u202e", "", " ", "🙂", '"\\']
    model = sc.LDA(2).fit([odd, odd[:3]])
    model.save(tmp_path / "m")
    assert list(sc.load(tmp_path / "m").vocabulary_) == list(model.vocabulary_) == sorted(odd)


def test_a_vectorizer_of_the_user(tmp_path: Path) -> None:
    own = CountVectorizer(stop_words=["of"], ngram_range=(1, 2))
    model = sc.LDA(2, vectorizer=own).fit(TEXTS)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(sc.load(tmp_path / "m").transform(TEXTS), model.transform(TEXTS))
    model = sc.LDA(2, vectorizer=TfidfVectorizer()).fit(TEXTS)
    model.save(tmp_path / "m")
    with pytest.raises(StoreError, match="vectorizer=…"):
        sc.load(tmp_path / "m")
    again = sc.load(tmp_path / "m", vectorizer=model.vectorizer_)
    np.testing.assert_array_equal(again.transform(TEXTS), model.transform(TEXTS))


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        sc.LDA(2).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# files that were written by hand
def twice(table: Any) -> Any:
    return np.asarray(table, float) * 2.0


def shorter(table: Any) -> Any:
    return table[..., :-1].copy()


def flat(table: Any) -> Any:
    return table.reshape(1, 1, -1)


def of_bytes(table: Any) -> Any:
    return np.frombuffer(b"no numbers", np.uint8).copy()


def no_rows(table: Any) -> Any:
    return table[:0].copy()


TABLES = ["table.topics", "documents", "weights", "prior", "lengths", "seeds", "online"]
HARMLESS = [("lengths", shorter), ("lengths", of_bytes), ("seeds", shorter)]
EVERY = [shorter, flat, first(np.nan), first(np.inf), first(-1.0), of_bytes]
DAMAGES: dict[str, Damage] = dict(
    [
        *((f"no {name}", array(name, None)) for name in TABLES[:5]),
        *(
            (f"{name} {number}", array(name, change))
            for name in TABLES
            for number, change in enumerate(EVERY)
            if (name, change) not in HARMLESS
        ),
        ("topics twice", array("table.topics", twice)),
        ("a topic of zeros", array("table.topics", lambda t: t * (np.arange(len(t)) > 0)[:, None])),
        ("documents twice", array("documents", twice)),
        ("not one document", array("documents", no_rows)),
        ("weights twice", array("weights", twice)),
        ("a prior of zero", array("prior", np.zeros_like)),
        ("a prior below its mode", array("prior", lambda p: p * 0.0 + 0.5)),
        ("not one length", array("lengths", no_rows)),
        ("endless documents", array("lengths", lambda n: n + 2.0**41)),
        ("seeds for a topic that is not", array("seeds", [[9], [0], [1]])),
        ("seeds of a word that is not", array("seeds", [[0], [10**6], [1]])),
        ("seeds before the first word", array("seeds", [[0], [-1], [1]])),
        ("seeds without counts", array("seeds", [[0], [0], [0]])),
        ("seeds beyond counting", array("seeds", [[0.0], [0.0], [1e300]])),
        ("many topics", settings(n_components=10**12)),
        ("topics as text", settings(n_components="3")),
        ("topics as truth", settings(n_components=True)),
        ("no topics", settings(n_components=0)),
        ("other topics", settings(n_components=4)),
        ("half a topic", settings(n_components=2.5)),
        ("prior as text", settings(smoothing={"documents": "much"})),
        ("negative prior", settings(smoothing=-1.0)),
        ("unknown numbers", settings(dtype="float16")),
        ("numbers of no kind", settings(dtype=["float64"])),
        ("short_runs", settings(short_runs="many")),
        ("a learner", settings(learner="EM()")),
        ("an engine", settings(engine="os.system")),
        ("a vectorizer", settings(vectorizer="CountVectorizer()")),
        ("surprise", settings(surprise=1)),
        ("class", settings(__class__="os.system")),
        ("no settings", meta(settings=None)),
        ("a list of settings", meta(settings=[])),
        ("many columns", meta(n_features=10**12)),
        ("no columns", meta(n_features=0)),
        ("columns as text", meta(n_features="30")),
        ("other columns", meta(n_features=V + 1)),
        ("one name", meta(feature_names=["a"])),
        ("names as number", meta(feature_names=7)),
        ("another way to learn", meta(rows="guess")),
        ("a way that is no word", meta(rows=["draw"])),
        ("temper 0", meta(temper=0.0)),
        ("temper nan", meta(temper="nan")),
        ("temper inf", meta(temper="inf")),
        ("temper", meta(temper="warm")),
        ("temper none", meta(temper=None)),
        ("frozen", meta(frozen="one")),
        ("all frozen", meta(frozen=3)),
        ("less than frozen", meta(frozen=-1)),
        ("half frozen", meta(frozen=0.5)),
        ("words", meta(vocabulary=["a"])),
        ("words as numbers", meta(vocabulary=list(range(V)))),
        ("words as text", meta(vocabulary="a" * V)),
        ("vectorizer", meta(vectorizer={})),
        ("vectorizer by name", meta(vectorizer="CountVectorizer")),
        *(
            (f"without {name}", without(name))
            for name in ("settings", "n_features", "feature_names")
        ),
        *(
            (f"without {name}", without(name))
            for name in ("rows", "temper", "frozen", "vocabulary")
        ),
        ("without vectorizer", without("vectorizer")),
    ]
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> store.Stored:
    path = tmp_path_factory.mktemp("models") / "good"
    model = sc.LDA(3, seed_words={0: [1, 2]}, learner=sc.OnlineEM(batch_size=20)).partial_fit(X)
    model.save(path)
    return store.read(path)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_describes_no_model(name: str, good: store.Stored, tmp_path: Path) -> None:
    tables, facts = dict(good.arrays), {**good.meta, "settings": dict(good.meta["settings"])}
    DAMAGES[name](tables, facts)
    store.write(tmp_path / "bad", good.kind, tables, facts, good.signature)
    with pytest.raises(StoreError):
        sc.load(tmp_path / "bad")


@pytest.mark.parametrize("change", EVERY, ids=range(len(EVERY)))
def test_a_damaged_index(change: Any, good: store.Stored, tmp_path: Path) -> None:
    names = [name for name in good.arrays if name.startswith("index")]
    assert len(names) == 5
    for name in names:
        tables = {**good.arrays, name: change(good.arrays[name])}
        store.write(tmp_path / name, good.kind, tables, good.meta, good.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / name)


def test_the_file_that_was_not_damaged_is_read(good: store.Stored, tmp_path: Path) -> None:
    store.write(tmp_path / "m", good.kind, good.arrays, good.meta, good.signature)
    assert sc.load(tmp_path / "m").partial_fit(X).topics_.shape == (3, V)


def test_a_model_of_another_kind(good: store.Stored, tmp_path: Path) -> None:
    for kind in ("PLSA", "MultinomialMixture", "KMeans", "TopicModel", "os.system"):
        store.write(tmp_path / "m", kind, good.arrays, good.meta, good.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / "m")
