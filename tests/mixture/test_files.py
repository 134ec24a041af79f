"""Mixtures in files: the same model comes back, and nothing but a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import softcount as sc
from softcount.core import store
from softcount.core.errors import StoreError
from tests.core.damage import Damage, array, meta, settings, without

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(1.0, (30, 5))
POINTS = RNG.normal(size=(40, 2)) * [1.0, 5.0] + 100.0
LABELS = np.where(np.arange(30) < 20, np.arange(30) % 3, -1)
TEXTS = ["good fine", "bad awful", "good good great", "awful bad dreadful"] * 3
SIGNS = ["+", "-", None, None] * 3
COVARIANCES = ("full", "diag", "spherical", "tied", "identity")

MODELS: list[tuple[Any, Any, Any]] = [
    (sc.MultinomialMixture(2), COUNTS, None),
    (sc.MultinomialMixture(np.int64(3), bernoulli=True, smoothing=np.float32(0.5)), COUNTS, None),
    (sc.MultinomialMixture(2, prior={"weights": 2.0, "words": 1.5}), TEXTS, None),
    (sc.MultinomialMixture(2), [["A", "b c"], ["b c", "d"]], None),
    *((sc.GaussianMixture(2, covariance=form), POINTS, None) for form in COVARIANCES),
    (sc.KMeans(2), POINTS, None),
    (sc.SoftKMeans(2, variance=2.0), POINTS, None),
    (sc.DirichletProcessMixture(4), COUNTS, None),
    (sc.DirichletProcessMixture(4, bernoulli=True), COUNTS, None),
    (sc.DirichletProcessGaussianMixture(4), POINTS, None),
    (sc.NaiveBayes(), TEXTS, SIGNS),
    (sc.NaiveBayes(n_components=2, length=10), COUNTS, LABELS.astype(np.int16)),
    (sc.NaiveBayes(bernoulli=True), COUNTS, LABELS == 0),
    (sc.NaiveBayes(), COUNTS, LABELS.astype(float)),
    (sc.NaiveBayesCV(unlabelled_weights=[0.1, 1.0], cv=2), COUNTS, LABELS),
]


def fitted(model: Any, data: Any, y: Any) -> Any:
    from sklearn.base import clone

    return clone(model).fit(data, y)


@pytest.mark.parametrize(("model", "data", "y"), MODELS, ids=lambda part: type(part).__name__)
def test_the_same_model_comes_back(model: Any, data: Any, y: Any, tmp_path: Path) -> None:
    before = fitted(model, data, y)
    before.save(tmp_path / "m")
    for after in (sc.load(tmp_path / "m"), type(model).load(tmp_path / "m")):
        assert type(after) is type(before)
        assert after.signature_ == before.signature_
        np.testing.assert_array_equal(after.predict_proba(data), before.predict_proba(data))
        np.testing.assert_array_equal(after.score_samples(data), before.score_samples(data))
        predicted = after.predict(data)
        np.testing.assert_array_equal(predicted, before.predict(data))
        assert predicted.dtype == before.predict(data).dtype
        for name, table in before.params_.items():
            np.testing.assert_array_equal(after.params_[name], table)
        old, new = before.generate(5, 1), after.generate(5, 1)
        assert old == new if isinstance(old, list) else abs(old - new).sum() == 0
        assert after.get_params() == before.get_params()
        after.fit(data, y)  # it can learn again
    after.save(tmp_path / "again")


def test_the_choice_of_a_weight_is_kept(tmp_path: Path) -> None:
    model = fitted(*MODELS[-1])
    model.save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert again.cv_scores_ == model.cv_scores_ != {}
    assert again.unlabelled_weight_ == model.unlabelled_weight_


def test_odd_words(tmp_path: Path) -> None:
    odd = ["é", "e\u0301", "日本", "\ud800", "a\x00b", "\u202e", "", " ", "🙂", '"\\']
    model = sc.MultinomialMixture(2).fit([odd, odd[:3]])
    model.save(tmp_path / "m")
    assert list(sc.load(tmp_path / "m").vocabulary_) == list(model.vocabulary_) == sorted(odd)


def test_names_of_columns(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(COUNTS, columns=list("abcde"))
    for model in (sc.MultinomialMixture(2), sc.KMeans(2)):
        model.fit(frame).save(tmp_path / "m")
        again = sc.load(tmp_path / "m")
        assert list(again.feature_names_in_) == list("abcde")
        with pytest.raises(ValueError, match="feature names"):
            again.predict(frame.rename(columns={"a": "x"}))


def test_a_vectorizer_of_the_user_must_be_given(tmp_path: Path) -> None:
    model = sc.NaiveBayes(vectorizer=TfidfVectorizer()).fit(TEXTS, SIGNS)
    model.save(tmp_path / "m")
    with pytest.raises(StoreError, match="vectorizer=…"):
        sc.load(tmp_path / "m")
    with pytest.raises(StoreError, match="not been fitted"):
        sc.load(tmp_path / "m", vectorizer=TfidfVectorizer())
    again = sc.load(tmp_path / "m", vectorizer=model.vectorizer_)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_a_pattern_of_the_user_must_be_given(tmp_path: Path) -> None:
    own = CountVectorizer(token_pattern=r"\w\w\w")
    model = sc.MultinomialMixture(2, vectorizer=own).fit(TEXTS)
    model.save(tmp_path / "m")
    with pytest.raises(StoreError, match="vectorizer=…"):
        sc.load(tmp_path / "m")
    again = sc.MultinomialMixture.load(tmp_path / "m", vectorizer=own)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))


def test_a_setting_that_does_not_exist_is_the_callers_mistake(tmp_path: Path) -> None:
    fitted(*MODELS[0]).save(tmp_path / "m")
    with pytest.raises(TypeError, match="no setting 'story'"):
        sc.load(tmp_path / "m", story=None)


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        sc.KMeans(2).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# files that were written by hand
def arrays(**changed: Any) -> Damage:
    """Several arrays, as `array` does one."""
    return lambda there, facts: [array(*one)(there, facts) for one in changed.items()]


def nan_first(table: Any) -> Any:
    table = table.copy()
    table.flat[0] = np.nan
    return table


def negative_first(table: Any) -> Any:
    table = table.copy()
    table.flat[0] = -0.1
    return table


ANY: list[Damage] = [
    arrays(weights=None),
    arrays(weights=nan_first),
    arrays(weights=negative_first),
    arrays(weights=lambda w: w * 2.0),
    arrays(weights=lambda w: w[:, :1]),
    arrays(weights=lambda w: w.reshape(-1)),
    settings(n_components=10**12, components=10**12),
    settings(n_components="2", components="2"),
    settings(n_components=-1, components=-1),
    settings(surprise=1),
    settings(__class__="os.system"),
    meta(settings=None),
    meta(settings=[]),
    meta(n_features=10**12),
    meta(n_features=0),
    meta(n_features="5"),
    meta(feature_names=["a"]),
    meta(feature_names=7),
    without("settings"),
    without("n_features"),
    without("feature_names"),
]
OF_WORDS: list[Damage] = [
    arrays(words=None),
    arrays(words=nan_first),
    arrays(words=negative_first),
    arrays(words=lambda t: t + 1.0),
    arrays(words=lambda t: t[:, :-1]),
    arrays(lengths=None),
    arrays(lengths=[]),
    arrays(lengths=[-1.0]),
    arrays(lengths=[np.inf]),
    arrays(lengths=[[1.0]]),
    settings(bernoulli=True),
    settings(smoothing="much"),
    settings(smoothing=-7.0),
    settings(prior=-1.0),
    settings(prior={"wings": 2.0}),
    meta(vocabulary=["a"]),
    meta(vocabulary=[1, 2, 3, 4, 5, 6]),
    meta(vocabulary=["a"] * 6),
    meta(vocabulary="abcdef"),
    meta(vocabulary=None),
    meta(vectorizer={}),
    meta(vectorizer="CountVectorizer"),
    without("vocabulary"),
    without("vectorizer"),
]
OF_LABELS: list[Damage] = [
    *ANY,
    *OF_WORDS,
    meta(classes=[]),
    meta(classes=["+"]),
    meta(classes=["-", "+"]),
    meta(classes=["+", "+"]),
    meta(classes=["+", 1]),
    meta(classes=[None, None]),
    meta(classes=[["+"], ["-"]]),
    meta(classes={"+": 1, "-": 2}),
    meta(kind_of_classes="object"),
    meta(kind_of_classes="V8"),
    meta(kind_of_classes="<U0, i4"),
    meta(kind_of_classes="no such"),
    meta(kind_of_classes=None),
    without("classes"),
    settings(length=-1.0),
    settings(length="long"),
    settings(unlabelled_weight="x"),
]
OF_POINTS: list[Damage] = [
    *ANY,
    arrays(points=None),
    arrays(points=nan_first),
    arrays(points=lambda t: t[:, :-1]),
    arrays(points=lambda t: np.where(np.arange(t.shape[1]) == 2, -t, t)),
    arrays(offset=None),
    arrays(offset=[1.0]),
    arrays(offset=[np.nan, 0.0]),
    settings(covariance="diag"),
    settings(covariance="round"),
    settings(covariance=["full"]),
    settings(floor="low"),
]
CASES = [
    *((MODELS[14], damage) for damage in OF_LABELS),
    *((MODELS[4], damage) for damage in OF_POINTS),
    (MODELS[10], settings(variance=-1.0)),
    (MODELS[10], settings(variance="wide")),
    (MODELS[11], settings(concentration=0.0)),
    (MODELS[11], settings(concentration="strong")),
    (MODELS[18], arrays(cv_scores=None)),
    (MODELS[18], arrays(cv_scores=[1.0])),
    (MODELS[18], meta(chosen="most")),
    (MODELS[18], meta(chosen=-1.0)),
    (MODELS[18], without("chosen")),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_file_that_describes_no_model(case: int, tmp_path: Path) -> None:
    of, damage = CASES[case]
    fitted(*of).save(tmp_path / "good")
    good = store.read(tmp_path / "good")
    tables, facts = dict(good.arrays), {**good.meta, "settings": dict(good.meta["settings"])}
    damage(tables, facts)
    store.write(tmp_path / "bad", good.kind, tables, facts, good.signature)
    with pytest.raises(StoreError):
        sc.load(tmp_path / "bad")


def test_a_model_of_another_kind(tmp_path: Path) -> None:
    fitted(*MODELS[0]).save(tmp_path / "m")
    with pytest.raises(StoreError, match="'MultinomialMixture', not 'KMeans'"):
        sc.KMeans.load(tmp_path / "m")
    good = store.read(tmp_path / "m")
    for kind in ("KMeans", "GaussianMixture", "NaiveBayes", "NaiveBayesCV", "os.system"):
        store.write(tmp_path / "bad", kind, good.arrays, good.meta, good.signature)
        with pytest.raises(StoreError):
            sc.load(tmp_path / "bad")
