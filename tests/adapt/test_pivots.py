"""Pivots against plain Python, and all that follows from them against one step at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from softcount import DataError, LearnerError
from softcount.adapt import PivotProjection, SourceOnly
from softcount.adapt import pivots as pivot_predictors
from softcount.adapt.pivots import mark_occurrences
from softcount.core.types import Array
from tests.adapt.problems import real_reviews


def one_by_one(X: Array, R: Array, penalty: float) -> tuple[Array, Array]:
    """W and centred scores: a ridge regression for each response."""
    models = [Ridge(alpha=penalty, solver="svd").fit(X, column) for column in R.T]
    scores = np.column_stack([model.predict(X) for model in models])
    return np.column_stack([model.coef_ for model in models]), scores - scores.mean(axis=0)


# choosing pivots
def three_domains(seed: int, K: int = 3) -> tuple[Any, Array, Array]:
    """Two sources, of which some items have no label, and a target; not all of one size."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, (90, 40)) * (rng.random((90, 40)) < rng.random(40) * 0.6) * 1.0
    domain = np.repeat([1, 2, -1], [30, 40, 20])
    y = np.where((domain > 0) & (rng.random(90) < 0.8), rng.integers(0, K, 90), -1)
    X[:, 5] = np.where(domain > 0, y == 1, rng.random(90) < 0.5)  # tells much
    X[domain < 0, 7] = X[domain > 0, 8] = 0.0  # of one side only
    return X, y, domain


def document_shares(X: Array, domain: Array, column: int) -> tuple[float, float]:
    sides = [[row[column] != 0 for row, d in zip(X, domain, strict=True) if d * s > 0]
             for s in (1, -1)]  # fmt: skip
    return sum(sides[0]) / len(sides[0]), sum(sides[1]) / len(sides[1])


def mutual_information(has: list[bool], labels: list[int]) -> float:
    n, total = len(has), 0.0
    for label in set(labels):
        for value in (True, False):
            both = sum(h == value and k == label for h, k in zip(has, labels, strict=True)) / n
            apart = has.count(value) / n * labels.count(label) / n
            total += both * math.log(both / apart) if both else 0.0
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("min_share", [0.0, 0.2])
def test_pivots_by_frequency(seed: int, min_share: float) -> None:
    X, y, domain = three_domains(seed)
    rarer = [min(document_shares(X, domain, column)) for column in range(40)]
    wanted = sorted((c for c in range(40) if rarer[c] > 0 and rarer[c] >= min_share),
                    key=lambda c: (-rarer[c], c))[:10]  # fmt: skip
    for items in (X, sparse.csr_matrix(X)):
        model = PivotProjection(n_pivots=10, min_share=min_share).fit(items, y, domain)
        assert model.pivots_ == [f"x{c}" for c in wanted]


def test_zeros_that_are_stored_are_zeros() -> None:
    X, y, domain = three_domains(0)
    stored = sparse.csr_matrix(X)
    stored.data[::3] = 0.0
    expected = PivotProjection(n_pivots=10).fit(stored.toarray(), y, domain)
    model = PivotProjection(n_pivots=10).fit(stored, y, domain)
    assert (
        model.pivots_ == expected.pivots_ != PivotProjection(n_pivots=10).fit(X, y, domain).pivots_
    )
    np.testing.assert_allclose(model.directions_, expected.directions_, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("K", [2, 4])
def test_pivots_by_information(seed: int, K: int) -> None:
    X, y, domain = three_domains(seed, K)
    known = [i for i in range(90) if domain[i] > 0 and y[i] >= 0]
    y[-15:] = np.arange(15) % K  # labels of the target have no say
    labels = [int(y[i]) for i in known]
    told = {}
    for column in range(40):
        if min(document_shares(X, domain, column)) >= 0.1:
            told[column] = mutual_information([X[i, column] != 0 for i in known], labels)
    wanted = sorted(told, key=lambda c: (-told[c], c))[:8]
    model = PivotProjection(n_pivots=8, choose="information", min_share=0.1).fit(X, y, domain)
    assert model.pivots_ == [f"x{c}" for c in wanted]
    assert "x5" in model.pivots_


def test_a_word_of_all_items_tells_nothing() -> None:
    X, y, domain = three_domains(4)
    X[:, 0] = 1.0
    assert "x0" not in PivotProjection().fit(X, y, domain).pivots_
    for choose in ("frequency", "information"):  # ten in each class: 1 − Σ 1/3 is not 0
        model = PivotProjection(choose=choose, n_pivots=3).fit(X, y, domain)
        assert len(model.pivots_) == 3


def test_measurements_occur_above_their_median() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    X[:, 3:] += X[:, :3]
    y, domain = np.where(np.arange(60) < 30, np.arange(60) % 2, -1), np.repeat([1, -1], 30)
    model = PivotProjection(n_pivots=2).fit(X, y, domain)
    high = (np.median(X, axis=0) < X) * 1.0
    rarer = np.minimum(high[:30].mean(axis=0), high[30:].mean(axis=0))
    pivots = np.argsort(-rarer, kind="stable")[:2]
    assert model.pivots_ == [f"x{c}" for c in pivots]
    np.testing.assert_allclose(np.abs(expected_directions(X, high, pivots, 0.01)),
                               np.abs(model.directions_), atol=1e-8)  # fmt: skip


def test_what_occurs_where() -> None:
    rows = [[3.0, 0.0, 1.0, -1.0, 2.0], [5.0, 1.0, 0.0, -2.0, 2.0], [4.0, -1.0, 0.0, -3.0, 2.0]]
    X = np.array(rows)
    expected = [[0, 0, 1, 1, 0], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0]]
    for items in (X, sparse.csr_matrix(X)):
        assert mark_occurrences(items).toarray().tolist() == expected


# the whole
def expected_directions(X: Array, present: Array, pivots: Array, share: float) -> Array:
    """By one regression at a time and the SVD of all weights."""
    others = [c for c in range(X.shape[1]) if c not in pivots]
    P, rest = present[:, pivots], X[:, others]
    W, _ = one_by_one(rest, P, share * (rest**2).sum())
    U, values, _ = np.linalg.svd(W / P.std(axis=0), full_matrices=False)
    found = np.zeros((X.shape[1], len(values)))
    found[others] = U
    return found


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_what_the_classifier_sees(scale: float) -> None:
    X, y, domain = three_domains(1)
    X[3] = 0.0  # an empty item
    X[10:20] *= -1.0
    model = PivotProjection(n_pivots=7, l2=0.03, scale=scale).fit(X, y, domain)
    pivots = np.array([int(name[1:]) for name in model.pivots_])
    directions = expected_directions(X, (X != 0.0) * 1.0, pivots, 0.03)
    np.testing.assert_allclose(np.abs(directions), np.abs(model.directions_), atol=1e-7)
    assert not model.directions_[pivots].any()
    new = X @ model.directions_
    new -= new.mean(axis=0)
    new *= scale * np.sqrt((X**2).sum() / (new**2).sum())
    np.testing.assert_allclose(model.transform(X), np.hstack([X, new]), atol=1e-9)
    known = y >= 0
    plain = LogisticRegression(C=3.0, max_iter=1000).fit(np.hstack([X, new])[known], y[known])
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(np.hstack([X, new])),
                               atol=1e-4)  # fmt: skip


def test_logistic_predictors_of_pivots() -> None:
    X, y, domain = three_domains(2)
    model = PivotProjection(n_pivots=7, loss="logistic").fit(X, y, domain)
    pivots = [int(name[1:]) for name in model.pivots_]
    rest = np.delete(X, pivots, axis=1)
    plain = LogisticRegression(C=4.0 / (0.01 * (rest**2).sum()), tol=1e-10, max_iter=10_000)
    present = (X[:, pivots] != 0.0) * 1.0
    W = np.column_stack([plain.fit(rest, column).coef_[0] for column in present.T])
    expected = np.linalg.svd(W / present.std(axis=0), full_matrices=False)[1]
    np.testing.assert_allclose(model.singular_values_, expected, rtol=1e-4)


@pytest.mark.parametrize("loss", ["ridge", "logistic"])
def test_sparse_is_dense_and_every_run_is_the_same(loss: str) -> None:
    X, y, domain = three_domains(3)
    model = PivotProjection(loss=loss, n_pivots=9, n_components=6)
    dense = model.fit(X, y, domain).predict_proba(X)
    found = model.fit(sparse.csr_matrix(X), y, domain)
    directions, shares = found.directions_, found.predict_proba(sparse.csr_matrix(X))
    np.testing.assert_allclose(shares, dense, atol=1e-5)
    again = PivotProjection(loss=loss, n_pivots=9, n_components=6)
    again.fit(sparse.csr_matrix(X), y, domain)
    assert again.directions_.tobytes() == directions.tobytes()
    assert again.predict_proba(sparse.csr_matrix(X)).tobytes() == shares.tobytes()


def test_the_size_of_numbers_does_not_matter_to_directions() -> None:
    X, y, domain = three_domains(5)
    one, other = (PivotProjection(n_pivots=9).fit(c * X, y, domain) for c in (1.0, 100.0))
    np.testing.assert_allclose(one.directions_, other.directions_, atol=1e-9)
    np.testing.assert_allclose(100.0 * one.transform(X), other.transform(100.0 * X), atol=1e-7)


def test_weights_of_words_are_what_a_word_adds() -> None:
    X, y, domain = three_domains(6)
    for K in (3, 2):
        labels = np.where(y >= K, -1, y)
        model = PivotProjection(n_pivots=9).fit(X, labels, domain)
        scores = model.classifier_.decision_function(
            model.transform(np.vstack([X * 0.0, np.eye(40)])[89:])
        )
        added = np.atleast_2d((scores[1:] - scores[0]).T)
        np.testing.assert_allclose(model.word_weights(), added, atol=1e-9)
        np.testing.assert_array_equal(model.word_weights(1), model.word_weights(-1))
    with pytest.raises(DataError, match="no weights of words"):
        PivotProjection(GaussianNB()).fit(X, y, domain).word_weights()


# words of one domain only
BOOKS = ["gripping", "moving", "dull", "tedious"]
FILLERS = ["the", "this", "that"]
OVENS = ["sturdy", "sharp", "leaking", "broken"]


def reviews() -> tuple[list[str], list[int], list[int]]:
    """Books with labels, ovens without; they share "great", "fine", "poor", "awful" and fillers."""
    texts, labels, domains = [], [], []
    pivots = [("great", "fine"), ("poor", "awful")]
    for domain, own in ((1, BOOKS), (-1, OVENS)):
        for i in range(24):
            bad = i % 2
            said = own[2 * bad + i // 2 % 2]
            heard = pivots[bad][i // 4 % 2] if i % 5 else ""  # not all alike
            texts.append(f"{said} {heard} {FILLERS[i % 3]}")
            labels.append(1 - bad if domain > 0 else -1)
            domains.append(domain)
    return texts, labels, domains


@pytest.mark.parametrize("loss", ["ridge", "logistic"])
def test_words_that_no_label_explains(loss: str) -> None:
    texts, labels, domains = reviews()
    new, truth = OVENS, [1, 1, 0, 0]
    direct = SourceOnly().fit(texts, labels, domains)
    assert direct.predict(new).tolist() != truth
    assert np.ptp(direct.predict_proba(new)[:, 1]) < 1e-9  # it cannot tell them apart
    model = PivotProjection(loss=loss, n_pivots=7).fit(texts, labels, domains)
    assert {"great", "fine", "poor", "awful"} <= set(model.pivots_)
    assert model.predict(new).tolist() == truth
    assert model.predict(BOOKS).tolist() == truth


def test_neighbours_and_correspondences() -> None:
    texts, labels, domains = reviews()
    model = PivotProjection(n_pivots=7, n_components=3).fit(texts, labels, domains)
    names = model.feature_names()
    rows = {name: model.directions_[names.index(name)] for name in BOOKS + OVENS}

    def cosine(a: str, b: str) -> float:
        return float(rows[a] @ rows[b] / math.sqrt((rows[a] @ rows[a]) * (rows[b] @ rows[b])))

    for word in OVENS:
        found = model.neighbours(word, among="source")
        assert {name for name, _ in found} == set(BOOKS)
        np.testing.assert_allclose(
            [one for _, one in found], [cosine(word, name) for name, _ in found], atol=1e-12
        )
        assert (np.diff([one for _, one in found]) <= 0.0).all()
        everywhere = model.neighbours(word, n=100)
        assert {name for name, _ in everywhere} == set(BOOKS + OVENS) - {word}
        assert model.neighbours(word, n=2) == everywhere[:2]
        assert {name for name, _ in model.neighbours(word, among="target")} == set(OVENS) - {word}
    told = model.correspondences(3, nearest=2)
    assert len(told) == 3
    for word, nearest in told:
        assert word in OVENS
        assert nearest == model.neighbours(word, 2, among="source")
        assert nearest[0][0] in (BOOKS[:2] if word in OVENS[:2] else BOOKS[2:])
    weights = model.word_weights()[0] - model.classifier_.coef_[0, : len(names)]
    effect = sorted(OVENS, key=lambda word: -abs(weights[names.index(word)]))
    assert [word for word, _ in told] == effect[:3]
    assert len(model.correspondences(100)) == 4


def test_words_typical_of_a_side() -> None:
    """Of 18 items each, one more with the word and one more without: 4 / 20 is 4 times 1 / 20."""
    X = np.zeros((36, 6))
    X[::2, 0] = X[1::2, 1] = 1.0
    X[:3, 2] = X[18:21, 3] = 1.0  # three there and none here: just typical
    X[:2, 4] = 1.0  # two and none: not yet
    X[:9, 5] = X[18:25, 5] = 1.0
    model = PivotProjection(n_pivots=2).fit(X, [0, 1] * 9 + [-1] * 18)
    assert model.pivots_ == ["x0", "x1"]
    assert [word for word, _ in model.neighbours("x5", among="source")] == ["x2"]
    assert [word for word, _ in model.neighbours("x5", among="target")] == ["x3"]
    assert {word for word, _ in model.neighbours("x5")} == {"x2", "x3", "x4"}


def test_pivots_correspond_to_nothing() -> None:
    X, y, domain = three_domains(0)
    X[:, 9] = np.where(domain > 0, np.arange(90) % 5 == 0, np.arange(90) % 20 > 0)
    X[::2, 10:] = 0.0  # others are rarer
    model = PivotProjection().fit(X, y, domain)
    assert "x9" in model.pivots_  # though it is typical of the target
    told = dict(model.correspondences(100))
    assert "x8" in told
    assert not set(told) & set(model.pivots_)


def test_words_without_neighbours() -> None:
    texts, labels, domains = reviews()
    model = PivotProjection(n_pivots=7).fit(texts, labels, domains)
    with pytest.raises(DataError, match="'great' has no neighbours: it is a pivot"):
        model.neighbours("great")
    with pytest.raises(DataError, match="'oven' does not occur in any item"):
        model.neighbours("oven")
    with pytest.raises(LearnerError, match="among='both'"):
        model.neighbours("sharp", among="both")
    with pytest.raises(LearnerError, match="n=0"):
        model.neighbours("sharp", 0)
    X, y, domain = three_domains(0)
    X[:, 39] = 0.0
    with pytest.raises(DataError, match="'x39' has no neighbours: it predicts no pivot"):
        PivotProjection().fit(X, y, domain).neighbours("x39")


# edges
def test_a_large_system_is_not_factorised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, domain = three_domains(2)
    expected = PivotProjection(n_pivots=6).fit(X, y, domain).directions_
    monkeypatch.setattr(pivot_predictors, "MAX_FACTORISED", 5)
    monkeypatch.setattr(pivot_predictors, "cho_factor", None)  # whoever calls it fails
    found = PivotProjection(n_pivots=6).fit(X, y, domain).directions_
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_fewer_pivots_and_directions_than_asked_for() -> None:
    X, y, domain = three_domains(7)
    model = PivotProjection(n_pivots=10_000, n_components=10_000).fit(X, y, domain)
    assert len(model.pivots_) == X.any(axis=0).sum() // 2
    assert model.directions_.shape == (40, len(model.singular_values_))
    assert 0 < model.directions_.shape[1] <= 20
    few = PivotProjection(min_share=0.3).fit(X, y, domain)
    assert 0 < len(few.pivots_) < 20


def test_no_pivots() -> None:
    X, y, domain = three_domains(8)
    X[domain > 0, :20] = X[domain < 0, 20:] = 0.0
    with pytest.raises(DataError, match="frequent in both the source and the target") as error:
        PivotProjection().fit(X, y, domain)
    assert "min_share=0.01" in error.value.hint
    with pytest.raises(DataError, match="frequent in both the source and the target"):
        PivotProjection(min_share=0).fit(X, y, domain)
    with pytest.raises(DataError, match="that distinguishes items"):
        PivotProjection().fit(np.ones_like(X), y, domain)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("others", [[], [0.0], [1.0], [0.0, 0.3]])
def test_no_word_but_pivots(form: Any, others: list[float]) -> None:
    X = np.array([[number, *others] for number in (1.0, 0.0, 1.0, 0.0)])
    model = PivotProjection().fit(form(X), [1, 0, -1, -1], [1, 1, -1, -1])
    assert model.directions_.shape == (X.shape[1], 0)
    assert model.predict(form(X)).tolist() == [1, 0, 1, 0]
    assert model.correspondences() == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_pivots": 0}, "n_pivots=0"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"choose": "chance"}, "choose='chance'"),
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"min_share": -0.1}, "min_share=-0.1"),
        ({"l2": 0.0}, "l2=0.0"),
        ({"scale": math.nan}, "scale=nan"),
    ],
)
def test_settings(settings: dict[str, Any], says: str) -> None:
    X, y, domain = three_domains(0)
    with pytest.raises(LearnerError, match=says):
        PivotProjection(**settings).fit(X, y, domain)


@pytest.mark.slow
def test_from_electronics_to_books() -> None:
    """Direct transfer: 0.7286; with pivots: 0.7669."""
    X, y, new, truth = real_reviews("electronics", "books")
    direct = SourceOnly().fit(X, y).score(new, truth)
    model = PivotProjection().fit(X, y)
    assert len(model.pivots_) == 500
    assert model.score(new, truth) > direct + 0.02
