"""Denoising layers against every way to drop words, and plain arrays against what is learned."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB

from softcount import DataError, LearnerError
from softcount.adapt import DenoisingProjection, SourceOnly
from softcount.adapt.denoising import learn_layer, solve_additive, solve_denoising
from softcount.core.types import Array
from tests.adapt.problems import real_reviews

RIDGE = 1e-5


def words(seed: int, n: int = 30, width: int = 11, share: float = 0.3) -> Array:
    """Numbers of words in items, most of them 0."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 4, (n, width)) * (rng.random((n, width)) < share) * 1.0


def halves(seed: int, width: int = 11) -> tuple[Array, Array, Array]:
    """Items, labels and domains; what is of the target has no labels."""
    X, n = words(seed, 40, width), 40
    domain = np.repeat([1, -1], n // 2)
    y = np.where(domain > 0, np.arange(n) % 2, -1)
    return X, y, domain


def closed_form(X: Array, Y: Array, p: float) -> Array:
    """(columns + 1, outputs): written with loops, from the equations of the paper."""
    with_one = np.column_stack([X, np.ones(len(X))])
    q = [1.0 - p] * X.shape[1] + [1.0]
    Q = np.zeros((len(q), len(q)))
    P = np.zeros((len(q), Y.shape[1]))
    for i in range(len(q)):
        for j in range(len(q)):
            Q[i, j] = with_one[:, i] @ with_one[:, j] * q[i] * (1.0 if i == j else q[j])
        for j in range(Y.shape[1]):
            P[i, j] = with_one[:, i] @ Y[:, j] * q[i]
    return np.linalg.solve(Q + RIDGE * np.trace(Q) / len(q) * np.eye(len(q)), P)


def expected_layer(X: Array, outputs: Any, p: float, blocks: list[list[int]]) -> Array:
    """tanh of the mean of what all blocks restore."""
    restored = []
    for block in blocks:
        W = closed_form(X[:, block], X[:, outputs], p)
        restored.append(X[:, block] @ W[:-1] + W[-1])
    return np.tanh(np.mean(restored, axis=0))


# one layer
def test_added_noise() -> None:
    """Against least squares on many noisy copies, and against ridge regression."""
    rng = np.random.default_rng(2)
    X, sigma, copies = rng.normal(size=(6, 3)) + 0.5, 0.7, 100_000
    noisy = np.tile(X, (copies, 1)) + sigma * rng.normal(size=(6 * copies, 3))
    noisy = np.column_stack([noisy, np.ones(len(noisy))])
    wanted = np.linalg.lstsq(noisy, np.tile(X[:, [1]], (copies, 1)), rcond=None)[0]
    with_one = np.column_stack([X, np.ones(6)])
    scatter = with_one.T @ with_one
    found = solve_additive(scatter.copy(), scatter[:, [1]], 6 * sigma**2)
    np.testing.assert_allclose(found, wanted, atol=0.01)
    ridge = 6 * sigma**2 * np.diag([1.0, 1.0, 1.0, 0.0])
    exact = np.linalg.solve(scatter + ridge, scatter[:, [1]])
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-4)


def test_the_share_of_noise() -> None:
    """With corruption c, a fraction c of the mean square of what the layer reads is noise."""
    X, c = words(4, 40, 5), 0.3
    variance = np.square(X).mean() * c / (1 - c)
    assert variance / (variance + np.square(X).mean()) == pytest.approx(c)
    with_one = np.column_stack([X, np.ones(40)])
    scatter = with_one.T @ with_one
    W = solve_additive(scatter.copy(), scatter[:, [0, 2]], 40 * variance)
    for form in (np.asarray, sparse.csr_matrix):
        layer = learn_layer(form(X), c, np.array([0, 2]), noise="additive")
        np.testing.assert_allclose(layer(form(X)), np.tanh(with_one @ W), atol=1e-5)


def test_additive_noise_adapts() -> None:
    texts = ["good lovely plot", "bad dull plot", "lovely sharp", "dull blunt"] * 2
    model = DenoisingProjection(noise="additive").fit(texts, [1, 0, -1, -1] * 2)
    assert model.predict(["sharp", "blunt"]).tolist() == [1, 0]
    with pytest.raises(LearnerError, match="noise"):
        DenoisingProjection(noise="salt").fit(texts, [1, 0, -1, -1] * 2)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_every_way_to_drop_words(p: float) -> None:
    X = np.random.default_rng(0).normal(size=(7, 4)) + 0.5
    outputs = [2, 0]
    Q, P, total = np.zeros((5, 5)), np.zeros((5, 2)), 0.0
    for mask in itertools.product([0.0, 1.0], repeat=4):
        chance = np.prod([1.0 - p if kept else p for kept in mask])
        left = np.column_stack([X * mask, np.ones(7)])
        Q += chance * left.T @ left
        P += chance * left.T @ X[:, outputs]
        total += chance
    assert total == pytest.approx(1.0)
    expected = np.linalg.lstsq(Q + RIDGE * np.diag(Q).mean() * np.eye(5), P, rcond=None)[0]
    with_one = np.column_stack([X, np.ones(7)])
    scatter = with_one.T @ with_one
    found = solve_denoising(scatter.copy(), scatter[:, outputs], p)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_no_other_map_restores_better() -> None:
    X, p, rng = words(1, 8, 3), 0.4, np.random.default_rng(1)

    def loss(W: Array) -> float:
        parts = []
        for mask in itertools.product([0.0, 1.0], repeat=3):
            chance = np.prod([1.0 - p if kept else p for kept in mask])
            parts.append(chance * np.sum((X - (X * mask) @ W[:-1] - W[-1]) ** 2))
        return float(np.sum(parts))

    layer = learn_layer(X, p, np.arange(3))
    best = np.vstack([layer.weights[0], layer.bias])
    assert all(loss(best) < loss(best + 0.01 * rng.normal(size=best.shape)) for _ in range(50))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_blocks_restore_alone_and_are_averaged(form: Any) -> None:
    X, outputs = words(2), [9, 3, 4]
    order = sorted(range(11), key=lambda j: (-np.count_nonzero(X[:, j]), j))
    blocks = [sorted(order[start::3]) for start in range(3)]
    layer = learn_layer(form(X), 0.6, np.array(outputs), most=4)
    assert [list(block) for block in layer.blocks] == blocks
    expected = expected_layer(X, outputs, 0.6, blocks)
    np.testing.assert_allclose(layer(form(X)), expected, rtol=1e-5, atol=1e-6)
    new = words(3)
    one = expected_layer(X, outputs, 0.6, [list(range(11))])
    np.testing.assert_allclose(learn_layer(form(X), 0.6, np.array(outputs))(X), one, rtol=1e-5)
    assert np.abs(expected - one).max() > 0.01
    np.testing.assert_allclose(layer(form(new)), layer(new), rtol=1e-5, atol=1e-6)


def test_slopes_through_blocks() -> None:
    X = words(17)
    layer = learn_layer(X, 0.6, np.arange(3), most=4)
    found = layer.back(np.eye(3))
    step = np.arctanh(layer(np.eye(11)).astype(float)) - np.arctanh(layer(np.zeros((1, 11))))
    np.testing.assert_allclose(found, step, rtol=1e-3, atol=1e-5)


def test_without_corruption_items_are_restored_as_they_are() -> None:
    X = words(4, 50, 6)
    np.testing.assert_allclose(learn_layer(X, 0.0, np.arange(6))(X), np.tanh(X), atol=1e-4)
    few = words(5, 4, 20)  # more columns than items: no single solution, but all of them do
    np.testing.assert_allclose(learn_layer(few, 0.0, np.arange(20))(few), np.tanh(few), atol=1e-3)


# what the classifier sees
@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("presence", [True, False])
def test_layers_on_layers(n_layers: int, presence: bool) -> None:
    X, y, domain = halves(6)
    model = DenoisingProjection(
        corruption=0.4, n_layers=n_layers, n_outputs=5, presence=presence, scale=2.0
    ).fit(X, y, domain)
    read = (X != 0) * 1.0 if presence else X
    in_both = np.minimum((X[domain > 0] != 0).sum(axis=0), (X[domain < 0] != 0).sum(axis=0))
    outputs = sorted(sorted(range(11), key=lambda j: (-in_both[j], j))[:5])
    assert model.outputs_.tolist() == outputs
    hidden, h = [], read
    for _ in range(n_layers):
        h = expected_layer(h, outputs, 0.4, [list(range(h.shape[1]))])
        hidden.append(h)
        outputs = list(range(5))
    new = [h - h.mean(axis=0) for h in hidden]
    length = 2.0 * np.sqrt((X**2).sum() / n_layers)
    seen = np.hstack([X, *(one * length / np.sqrt((one**2).sum()) for one in new)])
    np.testing.assert_allclose(model.transform(X), seen, rtol=1e-3, atol=1e-4)
    plain = LogisticRegression(C=3.0, max_iter=1000).fit(seen[domain > 0], y[domain > 0])
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(seen), atol=1e-3)


def test_sparse_and_dense_are_the_same() -> None:
    X, y, domain = halves(7)
    for presence in (True, False):
        model = DenoisingProjection(n_outputs=4, n_layers=2, presence=presence)
        dense = model.fit(X, y, domain).predict_proba(X)
        found = model.fit(sparse.csr_matrix(X), y, domain).predict_proba(sparse.csr_matrix(X))
        np.testing.assert_allclose(found, dense, atol=1e-4)
        assert sparse.issparse(model.transform(sparse.csr_matrix(X)))


def test_layers_read_presence_where_most_numbers_are_zero() -> None:
    X, y, domain = halves(8)
    usual = DenoisingProjection().fit(X, y, domain)
    assert usual.presence_
    same = DenoisingProjection(presence=True).fit(X, y, domain)
    np.testing.assert_array_equal(usual.transform(X), same.transform(X))
    full = X + 1.0
    assert not DenoisingProjection().fit(full, y, domain).presence_
    constant = DenoisingProjection(presence=True).fit(full, y, domain)  # nothing to learn from
    np.testing.assert_array_equal(constant.transform(full)[:, 11:], 0.0)


def test_same_bits() -> None:
    X, y, domain = halves(9)
    model = DenoisingProjection(n_layers=2)
    first = model.fit(X, y, domain).predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, y, domain).predict_proba(X), first)
    many = np.tile(X, (60, 1))  # more rows than are projected at a time
    np.testing.assert_allclose(model.predict_proba(many), np.tile(first, (60, 1)), atol=1e-6)


def test_scale_of_the_words_does_not_matter_to_new_features() -> None:
    X, y, domain = halves(10)
    one = DenoisingProjection().fit(X, y, domain).transform(X)
    ten = DenoisingProjection().fit(10.0 * X, y, domain).transform(10.0 * X)
    np.testing.assert_allclose(ten, 10.0 * one, rtol=1e-6)


def test_columns_that_never_occur_and_empty_items() -> None:
    X, y, domain = halves(11)
    X[[3, 25]] = 0.0
    unused = np.insert(X, [2, 7], 0.0, axis=1)
    plain = DenoisingProjection(corruption=0.5, n_outputs=6).fit(X, y, domain)
    model = DenoisingProjection(corruption=0.5, n_outputs=6).fit(unused, y, domain)
    found = model.predict_proba(unused)
    np.testing.assert_allclose(found, plain.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(model.layers_[0].weights[0][[2, 8]], 0.0, atol=1e-12)
    np.testing.assert_allclose(model.word_weights()[:, [2, 8]], 0.0, atol=1e-12)
    assert np.isfinite(model.predict_proba(np.zeros((2, 13)))).all()
    nothing = DenoisingProjection().fit(np.zeros((4, 3)), [0, 1, -1, -1])
    assert np.isfinite(nothing.predict_proba(np.zeros((2, 3)))).all()


# from one domain to another
def reviews(
    rng: np.random.Generator, of: dict[int, list[str]], n: int, shares: float = 0.6
) -> tuple[list[str], Array]:
    """Texts of two classes: words of a class in this domain, or in all, and words of none."""
    shared = {0: ["awful", "poor"], 1: ["excellent", "great"]}
    truth = np.arange(n) % 2
    texts = []
    for label in truth.tolist():
        said = rng.choice(["the", "it", "was", "and", "we", "had"], 4).tolist()
        said += rng.choice(of[label], 2).tolist()
        if rng.random() < shares:
            said.append(rng.choice(shared[label]))
        texts.append(" ".join(said))
    return texts, truth


def test_words_of_the_target_by_the_company_they_keep() -> None:
    rng = np.random.default_rng(12)
    books, y = reviews(rng, {0: ["boring", "tedious"], 1: ["gripping", "moving"]}, 200)
    knives = {0: ["blunt", "rusty"], 1: ["sharp", "sturdy"]}
    unlabelled, _ = reviews(rng, knives, 200)
    labels = [*y.tolist(), *[-1] * 200]
    new, truth = reviews(rng, knives, 200, shares=0.0)
    direct = SourceOnly().fit(books + unlabelled, labels)
    model = DenoisingProjection().fit(books + unlabelled, labels)
    # nothing in the source says what words of knives mean; what stands beside them does
    assert (direct.predict(new) == truth).mean() < 0.7
    assert (model.predict(new) == truth).mean() > 0.9
    weights = dict(zip(model.feature_names(), model.word_weights()[0], strict=True))
    assert min(weights["sharp"], weights["sturdy"]) > 0.3
    assert max(weights["blunt"], weights["rusty"]) < -0.3
    moved = {one.word: one.source for one in model.explain(8).moved}
    assert all(moved[word] == 0.0 for word in ("blunt", "rusty", "sharp", "sturdy"))


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("presence", [True, False])
def test_word_weights_are_mean_slopes(n_layers: int, presence: bool) -> None:
    X, _, domain = halves(13, 7)
    y = np.where(domain > 0, np.arange(40) % 3, -1)
    model = DenoisingProjection(
        corruption=0.5, n_layers=n_layers, n_outputs=4, presence=presence
    ).fit(X, y, domain)
    coef = model.classifier_.coef_
    hidden = DenoisingProjection._hidden
    read = (X != 0) * 1.0 if presence else X
    usual = X.sum(axis=0) / (X != 0).sum(axis=0) if presence else np.ones(7)

    def scores(at: Array) -> Array:
        new = np.hstack(hidden(model, at)).astype(np.float64)
        return (new * model._factor) @ coef[:, 7:].T

    for asked, rows in ((None, domain < 0), (1, domain > 0), (2, domain != 0)):
        found = model.word_weights(asked)
        for j in range(7):
            step = 0.01 * np.eye(7)[j]
            slope = (scores(read[rows] + step) - scores(read[rows] - step)).mean(axis=0) / 0.02
            np.testing.assert_allclose(found[:, j], coef[:, j] + slope / usual[j], atol=2e-3)


def test_a_classifier_that_is_not_linear_has_no_weights() -> None:
    X, y, domain = halves(14)
    model = DenoisingProjection(BernoulliNB()).fit(X, y, domain)
    assert model.predict(X).shape == (40,)
    with pytest.raises(DataError, match="no weights of words"):
        model.word_weights()


# limits
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"corruption": 1.0}, "corruption=1.0: must be below 1"),
        ({"corruption": -0.1}, "corruption=-0.1"),
        ({"corruption": "much"}, "corruption='much'"),
        ({"corruption": float("nan")}, "corruption=nan"),
        ({"n_layers": 0}, "n_layers=0"),
        ({"n_layers": 1.5}, r"n_layers=1\.5"),
        ({"n_outputs": 0}, "n_outputs=0"),
        ({"scale": 0.0}, r"scale=0\.0"),
        ({"classifier": "svm"}, "is not a classifier"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], says: str) -> None:
    X, y, domain = halves(15)
    with pytest.raises(LearnerError, match=says):
        DenoisingProjection(**settings).fit(X, y, domain)


@pytest.mark.slow
def test_many_columns_in_bounded_memory() -> None:
    X = sparse.random(60, 10_200, density=0.01, format="csr", rng=np.random.default_rng(16))
    y = [0, 1] * 15 + [-1] * 30
    tracemalloc.start()
    try:
        model = DenoisingProjection(n_outputs=50).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(block) for block in model.layers_[0].blocks] == [3400] * 3
    assert peak < 0.4e9  # all columns in one system of equations: 0.83e9 and more
    assert model.predict(X).shape == (60,)


@pytest.mark.slow
def test_from_books_to_kitchens() -> None:
    X, y, new, truth = real_reviews("books", "kitchen")
    direct = SourceOnly().fit(X, y).score(new, truth)
    model = DenoisingProjection(n_layers=1, n_outputs=500).fit(X, y)  # quicker than usual
    assert model.score(new, truth) > direct + 0.005
