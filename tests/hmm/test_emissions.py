"""Emissions by features of words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError
from softcount.hmm.emissions import WordFeatures, extract_features

TEXT = [
    [("Dogs", "N"), ("barked", "V")],
    [("Cats", "N"), ("walked", "V")],
    [("Birds", "N"), ("sing", "V")],
    [("Dogs", "N"), ("walked", "V")],
    [("Mice", "N"), ("talked", "V")],
] * 2
MODEL = sc.HMM(emissions="features", smoothing=0.1, learner=sc.EM(max_iter=20))


@pytest.mark.parametrize(
    ("word", "looks"),
    [
        ("walked", {"-d", "-ed", "-ked"}),
        ("U", {"-u", "A"}),
        ("USA", {"-a", "-sa", "-usa", "A", "AA"}),
        ("1,000", {"-0", "-00", "-000", "0"}),
        ("...", {"-.", "-..", "-...", "."}),
        ("e-mail", {"-l", "-il", "-ail", "-"}),
        ("日本", {"-本", "-日本"}),
    ],
)
def test_what_a_word_looks_like(word: str, looks: set[str]) -> None:
    assert set(extract_features(word)) == looks


def test_only_words_that_came_twice_have_a_feature_of_their_own() -> None:
    features = WordFeatures(["ab", "cb"], np.array([2, 1]))
    together = features.of_words.toarray()
    assert together.sum(axis=1).tolist() == [3.0, 2.0]  # -b, -ab, the word; -b, -cb
    assert features.of_new(["xb", "zz"]).toarray().sum(axis=1).tolist() == [1.0, 0.0]


def test_rows_are_what_the_weights_say() -> None:
    """softmax over the vocabulary, written out; new words over the same sum."""
    model = MODEL.fit(
        [[word for word, _ in one] for one in TEXT], [[t for _, t in o] for o in TEXT]
    )
    features = model.core_.emission.features
    n = len(model.words_)
    weights = model.raw_params_["emissions"][2 * n :].reshape(2, -1)
    scores = np.exp(weights @ features.of_words.toarray().T)
    np.testing.assert_allclose(model._emission_table(), scores / scores.sum(axis=1, keepdims=True))
    new = ["jumped", "Rats"]
    shard = model._read([new]).everything
    rows, _ = model.core_.emission.likelihoods(model.raw_params_["emissions"], shard)
    expected = np.exp(weights @ features.of_new(new).toarray().T) / scores.sum(axis=1)[:, None]
    np.testing.assert_allclose(rows[shard.rows, :2], expected.T)


def test_endings_tell_unseen_words_apart(tmp_path: Path) -> None:
    text = [[word for word, _ in one] for one in TEXT]
    tags = [[tag for _, tag in one] for one in TEXT]
    model = sc.HMM(emissions="features", smoothing=0.1, learner=sc.EM(max_iter=20)).fit(text, tags)
    proba = model.predict_proba([["Rats"], ["jumped"]])
    assert [int(one[0].argmax()) for one in proba] == [0, 1]
    model.save(tmp_path / "kept")
    again = sc.load(tmp_path / "kept")
    new = [["Rats", "jumped"], ["zzz"], []]
    assert again.predict(new) == model.predict(new)
    assert np.array_equal(again.score_samples(new), model.score_samples(new))


@pytest.mark.parametrize(
    "learner", [sc.EM(max_iter=3), sc.HardEM(max_iter=3), sc.Gibbs(max_iter=6)]
)
@pytest.mark.parametrize("order", [1, 2])
def test_learners(learner: sc.Learner, order: int) -> None:
    text = [[word for word, _ in one] for one in TEXT]
    model = sc.HMM(2, emissions="features", order=order, smoothing=0.1, learner=learner).fit(text)
    assert np.isfinite(model.trace_.log_likelihood).all()
    table = model._emission_table()
    np.testing.assert_allclose(table.sum(axis=1), 1.0)


def test_laws() -> None:
    text = [[word for word, _ in one] for one in TEXT[:5]]
    report = sc.check_model(sc.HMM(2, emissions="features", smoothing=0.1), text)
    assert report.passed, str(report)


@pytest.mark.parametrize("ascent", ["gradient", "converged"])
def test_every_m_step_climbs(ascent: str) -> None:
    text = [[word for word, _ in one] for one in TEXT]
    model = sc.HMM(2, emissions="features", ascent=ascent, smoothing=0.1, max_iter=15).fit(text)
    objective = model.trace_.objective
    assert (np.diff(objective) >= -1e-9 * abs(objective[0])).all()
    assert objective[-1] > objective[0] + 0.1
    assert model.verdict_ is not sc.Verdict.FELL


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"emissions": "letters"}, "table, features"),
        ({"l2": -1.0}, "l2"),
        ({"ascent": "newton"}, "ascent"),
        ({"frozen": "emissions"}, "weights of features"),
        ({"learner": sc.CollapsedGibbs(max_iter=2), "smoothing": 0.1}, "collapsed"),
    ],
)
def test_what_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(LearnerError, match=message):
        sc.HMM(2, **{"emissions": "features", **settings}).fit(["a b", "b a"])
