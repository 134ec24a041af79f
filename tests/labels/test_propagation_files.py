"""Propagated labels in files: the same answers afterwards, and no trust in strangers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import softcount as sc
from softcount.core import store
from tests.core import damage

TEXTS = ["good fine", "bad awful", "fine great", "awful dreadful", "great film", "dreadful plot"]
LABELS = ["+", "-", None, None, None, None]
NEW = ["fine plot", "awful awful film", "great good"]
COUNTS = CountVectorizer().fit_transform(TEXTS)
MODELS = {
    "texts": (sc.labels.LabelPropagation(), TEXTS, NEW),
    "lists of words": (
        sc.labels.LabelPropagation(),
        [t.split() for t in TEXTS],
        [["fine", "plot"]],
    ),
    "counted": (sc.labels.LabelPropagation(vectorizer=CountVectorizer()), TEXTS, NEW),
    "plain tf-idf": (sc.labels.LabelPropagation(vectorizer=TfidfVectorizer(norm=None)), TEXTS, NEW),
    "svd": (sc.labels.LabelPropagation(svd=3), TEXTS, NEW),
    "gaussian": (sc.labels.LabelPropagation(weights="gaussian", n_neighbors=3), TEXTS, NEW),
    "sparse": (sc.labels.LabelPropagation(n_neighbors=2), COUNTS, COUNTS[:2]),
    "points": (
        sc.labels.LabelPropagation(weights="gaussian", class_mass={"+": 0.3, "-": 0.7}),
        np.arange(12.0).reshape(6, 2),
        np.ones((2, 2)),
    ),
    "graph": (sc.labels.LabelPropagation(weights="precomputed"), np.ones((6, 6)), np.eye(6)[:3]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_from_a_file_says_the_same(name, tmp_path):
    model, X, new = MODELS[name]
    model.fit(X, LABELS).save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(new), model.predict_proba(new))
    assert again.predict(new).tolist() == model.predict(new).tolist()
    assert again.classes_.tolist() == ["+", "-"]
    again.save(tmp_path / "n")
    first, second = store.read(tmp_path / "m"), store.read(tmp_path / "n")
    assert first.arrays.keys() == second.arrays.keys()
    assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)


def test_numbers_as_labels_stay_numbers(tmp_path):
    model = sc.labels.LabelPropagation(class_mass={3: 0.5, 7: 0.5}).fit(
        COUNTS, [3, 7, -1, -1, -1, -1]
    )
    model.save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert again.predict(COUNTS[:2]).tolist() == [3, 7]
    assert again.fit(COUNTS, [3, 7, -1, -1, -1, -1]).prior_.tolist() == [0.5, 0.5]


def test_a_vectorizer_of_ones_own_is_asked_for(tmp_path):
    own = TfidfVectorizer(token_pattern=r"[a-z]+")
    model = sc.labels.LabelPropagation(vectorizer=own).fit(TEXTS, LABELS)
    model.save(tmp_path / "m")
    with pytest.raises(sc.errors.StoreError, match="vectorizer"):
        sc.load(tmp_path / "m")
    again = sc.load(tmp_path / "m", vectorizer=model.vectorizer_)
    assert again.predict(NEW).tolist() == model.predict(NEW).tolist()


DAMAGES = {
    "no settings": damage.without("settings"),
    "strange setting": damage.settings(kernel="rbf"),
    "wrong weights": damage.settings(weights="precomputed"),
    "distances": damage.settings(weights="gaussian"),
    "an svd": damage.settings(svd=2),
    "few neighbours": damage.settings(n_neighbors=0),
    "no classes": damage.without("classes"),
    "one class": damage.meta(classes=["+"]),
    "classes twice": damage.meta(classes=["+", "+"]),
    "alpha": damage.meta(alpha=-1.0),
    "no words": damage.meta(vocabulary=None),
    "fewer words": damage.meta(vocabulary=["a"]),
    "weighing": damage.meta(weighing={"norm": "l2"}),
    "norm": damage.meta(
        weighing={"sublinear_tf": True, "use_idf": True, "smooth_idf": True, "norm": "l7"}
    ),
    "dense rows": damage.meta(is_sparse=False),
    "no rows": damage.meta(has_rows=False),
    "columns": damage.meta(n_features=3),
    "columns as text": damage.meta(n_features="8"),
    "nothing reached": damage.array("reached", lambda it: it * 0),
    "row beyond": damage.array("says", lambda it: it + 5),
    "rows twice": damage.array("says", lambda it: it * 0),
    "word beyond": damage.array("rows.columns", lambda it: it + 3),
    "falling borders": damage.array("rows.indptr", lambda it: it[::-1].copy()),
    "no mass": damage.array("factors", lambda it: it * 0.0),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_files_made_by_hand_are_refused(name, tmp_path):
    sc.labels.LabelPropagation().fit(TEXTS, LABELS).save(tmp_path / "good")
    assert damage.refused(store.read(tmp_path / "good"), DAMAGES[name], tmp_path / "bad")


@pytest.mark.parametrize("how", damage.EVERY)
@pytest.mark.parametrize("svd", [None, 2])
def test_no_array_may_be_damaged(how, svd, tmp_path):
    sc.labels.LabelPropagation(svd=svd).fit(TEXTS, LABELS).save(tmp_path / "good")
    good = store.read(tmp_path / "good")
    can_be_negative = ("axes", "rows", "rows.values", "idf")
    for name in good.arrays:
        if (how == "negative" and name in can_be_negative) or (how, name) == ("nothing", "says"):
            continue
        hurt = damage.array(name, damage.EVERY[how])
        assert damage.refused(good, hurt, tmp_path / "bad"), (how, name)


def test_only_rows_that_say_something_are_kept(tmp_path):
    X = sparse.vstack([COUNTS, COUNTS[:2] * 0]).tocsr()
    with pytest.warns(sc.errors.UnreachedWarning):
        sc.labels.LabelPropagation().fit(X, [*LABELS, None, None]).save(tmp_path / "m")
    assert store.read(tmp_path / "m").arrays["says"].tolist() == list(range(6))


def test_rows_too_far_apart_to_measure_are_refused(tmp_path):
    sc.labels.LabelPropagation(weights="gaussian").fit(COUNTS, LABELS).save(tmp_path / "m")
    good = store.read(tmp_path / "m")
    larger = damage.array("rows.values", lambda values: np.full(values.shape, 1e300))
    assert damage.refused(good, larger, tmp_path / "n")
