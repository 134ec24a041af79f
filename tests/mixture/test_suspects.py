"""Labels that are probably wrong: judged by models that do not know them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.mixture.suspects import Suspect

RNG = np.random.default_rng(4)
X = RNG.poisson(1.0, (24, 8)).astype(float)
Y = np.array([k % 3 for k in range(24)])
NAMES = np.array(["a", "b", "c"])


def leave_out(d: int, settings: dict[str, Any], X: Any, y: Any) -> dict[Any, float]:
    """The posterior of a document under a model fitted to all others."""
    rest = np.delete(np.arange(len(y)), d)
    model = sc.NaiveBayes(**settings).fit(X[rest], y[rest])
    return dict(zip(model.classes_.tolist(), model.predict_proba(X[d : d + 1])[0], strict=True))


@pytest.mark.parametrize(
    "settings", [{}, {"bernoulli": True}, {"length": 10}, {"smoothing": 2.0}, {"prior": 1.5}]
)
def test_naive_bayes_without_a_document_is_fitted_to_the_others(settings: dict[str, Any]) -> None:
    found = sc.NaiveBayes(**settings).suspects(X, Y)
    assert len(found) == 24
    assert [one.probability for one in found] == sorted(one.probability for one in found)
    for one in found:
        expected = leave_out(one.item, settings, X, Y)
        assert one.given == Y[one.item]
        assert one.probability == pytest.approx(expected[one.given], abs=1e-9)
        assert one.certainty == pytest.approx(max(expected.values()), abs=1e-9)
        assert expected[one.likely] == pytest.approx(one.certainty, abs=1e-9)


def test_documents_without_weight_do_not_matter() -> None:
    y = np.where(np.arange(24) < 15, Y, -1)
    settings = {"unlabelled_weight": 0.0}
    found = sc.NaiveBayes(**settings).suspects(X, y)
    assert {one.item for one in found} == set(range(15))
    for one in found:
        expected = leave_out(one.item, settings, X, y)
        assert one.probability == pytest.approx(expected[one.given], abs=1e-9)


def test_several_components_share_a_document() -> None:
    """Leaving a document out makes its label less probable, however many components there are."""
    model = sc.NaiveBayes(n_components=2, random_state=3)
    with_it = model.fit(X, NAMES[Y])
    proba = with_it.predict_proba(X)
    for one in sc.NaiveBayes(n_components=2, random_state=3).suspects(X, NAMES[Y]):
        assert one.probability < proba[one.item, "abc".index(one.given)]


THEMES = ("ball goal team match player", "stock bank money price trade")


def planted(n: int = 60) -> tuple[list[str], list[str], set[int]]:
    """Texts, labels of which some are wrong, and the numbers of those."""
    rng = np.random.default_rng(1)
    texts, y = [], []
    for i in range(n):
        texts.append(" ".join(rng.choice(THEMES[i % 2].split(), 4)))
        y.append(("sport", "money")[i % 2])
    wrong = {5, 20, 33}
    for i in wrong:
        y[i] = "sport" if y[i] == "money" else "money"
    return texts, y, wrong


CLASSIFIERS = {
    "naive bayes": (sc.NaiveBayes(), {}),
    "naive bayes, in parts": (sc.NaiveBayes(), {"cv": 5}),
    "naive bayes, weight chosen": (sc.NaiveBayesCV(), {}),
    "propagation": (sc.labels.LabelPropagation(), {}),
    "self-training": (sc.labels.SelfTraining(), {}),
    "bootstrapping": (sc.labels.Yarowsky(), {}),
    "co-training": (
        sc.labels.CoTraining(
            {
                "first": lambda text: " ".join(text.split()[:2]),
                "last": lambda text: " ".join(text.split()[2:]),
            }
        ),
        {},
    ),
    "adaptation": (sc.adapt.Merge(), {"sample_domain": [1, 1, -1] * 20}),
    "source alone": (sc.adapt.SourceOnly(), {"sample_domain": [1] * 50 + [-1] * 10}),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_finds_planted_labels(name: str) -> None:
    texts, y, wrong = planted()
    model, more = CLASSIFIERS[name]
    if name != "source alone":
        y[2] = None  # type: ignore[call-overload]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = model.suspects(texts, y, **more)
    assert {one.item for one in found[:3]} == wrong
    assert all(one.probability < 0.5 < one.certainty for one in found[:3])
    assert all(one.likely != one.given for one in found[:3])
    assert not hasattr(model, "classes_")  # it was not fitted itself
    assert len(found) == len(texts) - y.count(None)  # type: ignore[arg-type]
    assert found == model.suspects(texts, y, **more)


def test_known_labels_of_annotators() -> None:
    rng = np.random.default_rng(0)
    truth = {f"i{i}": "ab"[i % 2] for i in range(40)}
    votes = [
        (item, f"w{w}", label if rng.random() < 0.9 else "ab"[rng.integers(2)])
        for item, label in truth.items()
        for w in range(4)
    ]
    known = {**truth, "i7": "a"}
    first = sc.Annotators().suspects(votes, known)[0]
    assert isinstance(first, Suspect)
    assert (first.item, first.given, first.likely) == ("i7", "a", "b")


def test_what_cannot_be_judged() -> None:
    texts = ["good fine", "bad awful", "good"]
    with pytest.raises(sc.DataError, match="no class has two labels"):
        sc.NaiveBayes().suspects(texts, ["+", "-", None])
    found = sc.NaiveBayes().suspects(texts, ["+", "-", "+"])
    assert {one.item for one in found} == {0, 2}  # the only "-" is not judged
    with pytest.raises(sc.DataError, match="distributions"):
        sc.NaiveBayes().suspects(texts, [[0.5, 0.5], [1, 0], [0, 1]])
    with pytest.raises(sc.LearnerError, match="cv"):
        sc.labels.SelfTraining().suspects(texts, ["+", "-", "+"], cv=1)
