"""Gradients against differences, and what the adversary does to problems that are made for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from softcount.adapt import adversarial
from softcount.adapt.adversarial import (
    RIDGE,
    AdversarialNetwork,
    AdversarialWeights,
    GradientSteps,
    compute_gradients,
    covariance_distance,
    draw_network,
    find_bandwidth,
    mean_discrepancy,
)
from softcount.core.errors import DataError, LearnerError
from softcount.core.types import Array
from softcount.core.verdict import Verdict
from tests.adapt.problems import real_reviews

FORMS = [np.asarray, sparse.csr_matrix]
NAMES = ["W", "b", "V", "c", "u", "d"]


# gradients
def losses(net: AdversarialWeights, X: Array, y: Array, in_target: Array) -> tuple[float, float]:
    """L_y and L_d, item by item."""
    label, domain = [], []
    for x, k, there in zip(X, y, in_target, strict=True):
        h = np.tanh(x @ net.W + net.b)
        if k >= 0:
            scores = np.exp(h @ net.V + net.c)
            label.append(-np.log(scores[k] / scores.sum()))
        p = 1.0 / (1.0 + np.exp(-(h @ net.u + net.d[0])))
        domain.append(-np.log(p if there else 1.0 - p))
    return float(np.mean(label)), float(np.mean(domain))


def differences(net: AdversarialWeights, name: str, *batch: Array) -> tuple[Array, Array]:
    """∂L_y and ∂L_d by one array of parameters, by central differences."""
    array, step = getattr(net, name), 1e-5
    found = np.zeros((2, array.size))
    for at in range(array.size):
        ends = []
        for sign in (1.0, -1.0):
            moved = net.copy()
            getattr(moved, name).flat[at] += sign * step
            ends.append(np.array(losses(moved, *batch)))
        found[:, at] = (ends[0] - ends[1]) / (2.0 * step)
    return found[0].reshape(array.shape), found[1].reshape(array.shape)


def batch(K: int) -> tuple[AdversarialWeights, Array, Array, Array]:
    """A network with weights of all sizes, and a batch with unlabelled items and an empty row."""
    rng = np.random.default_rng(K)
    net = draw_network(rng, 6, 4, K)
    for name in NAMES:
        getattr(net, name)[...] = rng.normal(size=getattr(net, name).shape)
    X = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.6)
    X[3], X[:, 2] = 0.0, 0.0  # an empty row, and a word that this batch has not
    y = np.array([0, 1, -1, K - 1, 0, -1, 1, -1, -1])
    return net, X, y, np.arange(9) >= 5


def full(net: AdversarialWeights, found: Any) -> dict[str, Array]:
    """All gradients, with zeros for columns that were left out."""
    W = np.zeros_like(net.W)
    W[found.columns] = found.gradients["W"]
    return {**found.gradients, "W": W}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("reversal", [0.0, 0.7])
def test_gradients_are_differences(form: Any, K: int, reversal: float) -> None:
    net, X, y, there = batch(K)
    found = full(net, compute_gradients(net, form(X), y, there, reversal))
    for name in NAMES:
        label, domain = differences(net, name, X, y, there)
        if name in ("V", "c"):
            wanted = label
        elif name in ("u", "d"):
            wanted = domain + (RIDGE * net.u if name == "u" else 0.0)
        else:
            wanted = label - reversal * domain
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_without_labels_only_the_reversed_domain_loss_arrives(K: int) -> None:
    net, X, y, there = batch(K)
    found = full(net, compute_gradients(net, X, np.full(9, -1), there, 1.0))
    for name in ("W", "b"):
        domain = differences(net, name, X, y, there)[1]
        np.testing.assert_allclose(found[name], -domain, rtol=1e-6, atol=1e-9)
    assert not found["V"].any()
    assert not found["c"].any()


@pytest.mark.parametrize("distance", ["mmd", "coral"])
def test_gradients_of_distances_are_differences(distance: str) -> None:
    h = np.random.default_rng(3).normal(size=(9, 4))
    there = np.arange(9) >= 5
    measure = {
        "mmd": lambda x: mean_discrepancy(x, there, 2.5),
        "coral": lambda x: covariance_distance(x, there),
    }[distance]
    value, gradient = measure(h)
    assert value > 0.0
    wanted = np.zeros_like(h)
    for place in np.ndindex(*h.shape):
        step = np.zeros_like(h)
        step[place] = 1e-6
        wanted[place] = (measure(h + step)[0] - measure(h - step)[0]) / 2e-6
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-9)


def test_distances_by_their_definitions() -> None:
    h = np.random.default_rng(3).normal(size=(7, 3))
    there = np.array([True, False, True, False, False, True, False])
    widths = [0.25 * 2.0**k * 1.7 for k in range(5)]

    def k(x: Array, y: Array) -> float:
        return float(np.mean([np.exp(-np.sum((x - y) ** 2) / width) for width in widths]))

    def mean_of(some: Array, others: Array) -> float:
        return float(np.mean([[k(x, y) for y in others] for x in some]))

    wanted = mean_of(h[there], h[there]) + mean_of(h[~there], h[~there])
    wanted -= 2.0 * mean_of(h[there], h[~there])
    assert mean_discrepancy(h, there, 1.7)[0] == pytest.approx(wanted)
    gap = np.cov(h[~there].T) - np.cov(h[there].T)
    assert covariance_distance(h, there)[0] == pytest.approx(np.sum(gap**2) / 36)
    same = np.vstack([h, h])
    assert mean_discrepancy(same, np.arange(14) >= 7, 1.7)[0] == pytest.approx(0.0, abs=1e-12)
    assert covariance_distance(same, np.arange(14) >= 7)[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("distance", ["mmd", "coral"])
def test_distances_reach_the_features_with_their_weight(distance: str) -> None:
    net, X, y, there = batch(2)
    plain = full(net, compute_gradients(net, X, y, there, 0.0, distance))
    found = full(net, compute_gradients(net, X, y, there, 0.6, distance))
    h = np.tanh(X @ net.W + net.b)
    by_h = {
        "mmd": lambda: mean_discrepancy(h, there, find_bandwidth(h)),
        "coral": lambda: covariance_distance(h, there),
    }[distance]()[1]
    wanted = X.T @ (0.6 * by_h * (1.0 - h * h))
    np.testing.assert_allclose(found["W"] - plain["W"], wanted, rtol=1e-9, atol=1e-12)
    for name in ("u", "d"):
        assert not np.any(found[name] - (RIDGE * net.u if name == "u" else 0.0))


@pytest.mark.parametrize("distance", ["mmd", "coral"])
def test_networks_with_distances_learn(distance: str) -> None:
    texts = ["good plot", "bad plot", "fine read", "awful read", "good blender", "bad blender"]
    model = AdversarialNetwork(validation=0, domain_loss=distance).fit(
        texts, [1, 0, 1, 0, None, None], sample_domain=[1, 1, 1, 1, -1, -1]
    )
    assert model.predict(["good knife", "bad knife"]).tolist() == [1, 0]
    assert np.isnan(model.history_[-1].domain_accuracy)
    assert model.history_[-1].domain_loss >= 0.0


def test_sums_of_losses() -> None:
    net, X, y, there = batch(3)
    found = compute_gradients(net, X, y, there, 1.0)
    label, domain = losses(net, X, y, there)
    assert found.label_loss / 5 == pytest.approx(label)
    assert found.domain_loss / 9 == pytest.approx(domain)
    assert found.n_labelled == 5
    margins = np.tanh(X @ net.W + net.b) @ net.u + net.d
    assert found.n_right == ((margins > 0) == there).sum()
    known = y >= 0
    assert net.label_loss(X[known], y[known]) == pytest.approx(label)


def test_steps_are_scaled_by_all_gradients_so_far() -> None:
    net, X, y, there = batch(2)
    optimiser, squares = GradientSteps(net, 0.1), 0.0
    for number in range(1, 4):
        found, before = compute_gradients(net, sparse.csr_matrix(X), y, there, 0.5), net.W.copy()
        gradient = full(net, found)["W"]
        squares += np.sum(gradient**2)
        optimiser.step(found)
        expected = before - 0.1 * gradient / np.sqrt(squares / number)
        np.testing.assert_allclose(net.W, expected, rtol=1e-12)


# training
def spurious(seed: int, n: int = 300) -> tuple[Array, Array, Array, Array]:
    """Columns 0–3 tell the class everywhere; column 4 in the source only, and better; in the
    target it lies elsewhere and tells nothing. X, y (−1 in the target), domains, all labels."""
    rng = np.random.default_rng(seed)
    truth, domain = rng.integers(0, 2, 2 * n), np.repeat([1, -1], n)
    sign = 2.0 * truth - 1.0
    X = rng.normal(size=(2 * n, 5))
    X[:, :4] += 0.7 * sign[:, None]
    X[:, 4] = np.where(domain > 0, 2.0 * sign, -3.0) + 0.5 * rng.normal(size=2 * n)
    return X, np.where(domain > 0, truth, -1), domain, truth


def accuracy(model: AdversarialNetwork, X: Array, domain: Array, truth: Array) -> float:
    there = domain < 0
    return float((model.predict(X[there]) == truth[there]).mean())


def test_the_adversary_helps_where_a_column_gives_the_domain_away() -> None:
    plain, adapted = [], []
    for seed in range(3):
        X, y, domain, truth = spurious(seed)
        for reversal, found in ((0.0, plain), (1.0, adapted)):
            model = AdversarialNetwork(reversal=reversal, validation=0.0, max_iter=10).fit(
                X, y, domain
            )
            found.append(accuracy(model, X, domain, truth))
    assert np.mean(adapted) > np.mean(plain) + 0.1


def test_without_reversal_there_might_be_no_domain_head(monkeypatch: Any) -> None:
    X, y, domain, _ = spurious(0)
    whole = AdversarialNetwork(reversal=0.0, max_iter=3).fit(X, y, domain)
    monkeypatch.setattr("softcount.adapt.adversarial.HEAD_RATE", 0.0)
    headless = AdversarialNetwork(reversal=0.0, max_iter=3).fit(X, y, domain)
    assert not headless.network_.u.any()
    assert whole.network_.u.any()
    for name in ("W", "b", "V", "c"):
        one, other = getattr(whole.network_, name), getattr(headless.network_, name)
        np.testing.assert_array_equal(one, other)


def test_sparse_is_dense() -> None:
    X, y, domain, _ = spurious(1)
    X[np.abs(X) < 0.5] = 0.0
    dense, thin = (AdversarialNetwork(max_iter=3).fit(form(X), y, domain) for form in FORMS)
    np.testing.assert_allclose(dense.predict_proba(X), thin.predict_proba(X), rtol=1e-7)
    np.testing.assert_allclose(dense.word_weights(), thin.word_weights(), rtol=1e-7, atol=1e-9)


def test_same_seed_same_bits_and_any_units() -> None:
    X, y, domain, _ = spurious(2)
    first, again, other = (
        AdversarialNetwork(max_iter=3, random_state=seed).fit(X, y, domain).predict_proba(X)
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    scaled = AdversarialNetwork(max_iter=3, random_state=5).fit(1000.0 * X, y, domain)
    np.testing.assert_allclose(scaled.predict_proba(1000.0 * X), first, rtol=1e-7)


def test_it_stops_early_and_goes_back_to_the_best() -> None:
    rng = np.random.default_rng(0)  # labels by chance: soon, nothing more is to be learned
    X, domain = rng.normal(size=(200, 30)), np.repeat([1, -1], 100)
    y = np.where(domain > 0, rng.integers(0, 2, 200), -1)
    model = AdversarialNetwork(validation=0.3, patience=2, learning_rate=0.1).fit(X, y, domain)
    history = model.history_
    found = [epoch.validation_loss for epoch in history]
    assert model.verdict_ is Verdict.CONVERGED
    assert model.n_iter_ == len(history) == history.best + 2 < 30
    assert int(np.argmin(found)) + 1 == history.best
    held = adversarial._hold_out(task_of(X, y, domain), 0.3, np.random.default_rng(0))
    loss = model.network_.label_loss(X[held], y[held])
    assert loss == pytest.approx(min(found))
    assert loss < found[-1]


def task_of(X: Array, y: Array, domain: Array) -> Any:
    return adversarial.Task(X, y, np.array([0, 1]), domain)


def test_verdicts_of_full_courses() -> None:
    X, y, domain, _ = spurious(3)
    assert AdversarialNetwork(max_iter=1).fit(X, y, domain).verdict_ is Verdict.OUT_OF_STEPS
    course = AdversarialNetwork(max_iter=2, validation=0.0).fit(X, y, domain)
    assert course.verdict_ is Verdict.ENOUGH
    assert course.history_.best == course.n_iter_ == 2
    assert np.isnan(course.history_[-1].validation_loss)


def test_held_out_are_labels_of_the_source_and_training_does_not_see_them() -> None:
    X, _, domain, truth = spurious(4)
    held = adversarial._hold_out(task_of(X, truth, domain), 0.4, np.random.default_rng(0))
    assert (domain[held] > 0).all()
    seen = adversarial._hide_labels(task_of(X, truth, domain), held)
    assert (np.flatnonzero(seen == -1) == held).all()
    for k in (0, 1):
        assert (truth[held] == k).sum() == int(0.4 * ((truth == k) & (domain > 0)).sum())


def test_batches_are_half_source_half_target_and_leave_nobody_out() -> None:
    in_target = np.arange(40) >= 30
    batches = adversarial._Batches(in_target, 8, np.random.default_rng(0))
    drawn = np.array(list(batches.epoch()))
    assert drawn.shape == (50, 8)
    assert (in_target[drawn] == ([False] * 4 + [True] * 4)).all()
    for half in (drawn[:, :4], drawn[:, 4:]):
        counts = np.bincount(half.ravel(), minlength=40)[np.unique(half)]
        assert counts.max() - counts.min() <= 1
    assert set(drawn.ravel()) == set(range(40))
    wide = adversarial._Batches(in_target, 10_000, np.random.default_rng(0))
    assert len(next(wide.epoch())) == 60
    many = adversarial._Batches(np.arange(1000) >= 900, 8, np.random.default_rng(0))
    assert many.n_batches == 225


def test_the_schedule_of_the_reversal() -> None:
    X, y, domain, _ = spurious(5)
    model = AdversarialNetwork(reversal=3.0, max_iter=4, validation=0.0).fit(X, y, domain)
    for epoch in model.history_:  # as of the last of 50 batches
        t = (epoch.number - 1 / 50) / 4
        assert epoch.reversal == pytest.approx(3.0 * (2.0 / (1.0 + np.exp(-10.0 * t)) - 1.0))
    assert str(model.history_).count("\n") == 4
    assert "4*" in str(model.history_)


def test_labels_of_the_target_are_used() -> None:
    X, y, domain, truth = spurious(6)
    some = y.copy()
    labelled = np.flatnonzero(domain < 0)[::2]
    some[labelled] = truth[labelled]
    told, untold = (
        AdversarialNetwork(reversal=0.0, max_iter=8).fit(X, labels, domain) for labels in (some, y)
    )
    assert accuracy(told, X, domain, truth) > accuracy(untold, X, domain, truth) + 0.1


def test_unlabelled_items_of_the_source_shape_the_features_only_by_their_domain() -> None:
    X, y, domain, truth = spurious(7)
    y[:200] = -1
    plain = AdversarialNetwork(reversal=0.0).fit(X, y, domain)
    adapted = AdversarialNetwork().fit(X, y, domain)
    assert accuracy(adapted, X, domain, truth) > accuracy(plain, X, domain, truth)


# looking inside
@pytest.mark.parametrize("K", [2, 3])
def test_weights_of_words_are_mean_derivatives(K: int) -> None:
    rng = np.random.default_rng(K)
    truth, domain = rng.integers(0, K, 150), np.repeat([1, -1, -2], [50, 80, 20])
    X = rng.normal(size=(150, 4)) + rng.normal(size=(K, 4))[truth]
    model = AdversarialNetwork(max_iter=4).fit(X, np.where(domain > 0, truth, -1), domain)
    for wanted, rows in ((None, domain < 0), (1, domain == 1), (-2, domain == -2)):
        found = np.zeros((K, 4))
        for j in range(4):
            ends = [np.log(model.predict_proba(X[rows] + s * np.eye(4)[j])) for s in (1e-5, -1e-5)]
            found[:, j] = ((ends[0] - ends[1]) / 2e-5).mean(axis=0)
        expected = found[1:] - found[:1] if K == 2 else found - found.mean(axis=0)
        np.testing.assert_allclose(model.word_weights(wanted), expected, rtol=1e-5, atol=1e-7)
    with pytest.raises(DataError, match="no training item is of the domain 7"):
        model.word_weights(7)


# edges
@pytest.mark.parametrize("form", FORMS)
def test_small_and_strange_data(form: Any) -> None:
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0]])
    y, domain = np.array([0, 1, -1, -1, -1]), np.array([1, 1, 1, -1, -1])
    for size in (2, 10_000):  # batches smaller and larger than the data
        model = AdversarialNetwork(batch_size=size, max_iter=6).fit(form(X), y, domain)
        assert model.predict(form(X[:2])).tolist() == [0, 1]
        assert np.isfinite(model.predict_proba(form(X))).all()
    one = AdversarialNetwork(max_iter=6).fit(
        form(X[:4]), y[:4], domain[:4]
    )  # one item of the target
    assert one.predict(form(X[:2])).tolist() == [0, 1]
    empty = AdversarialNetwork(max_iter=1).fit(form(0.0 * X), y, domain)
    assert np.isfinite(empty.predict_proba(form(X))).all()


def test_a_class_that_only_the_target_has() -> None:
    X = np.tile(np.eye(3), (20, 1))
    y, domain = np.tile([0, 1, 2], 20), np.tile([1, 1, -1], 20)
    model = AdversarialNetwork(reversal=0.0, max_iter=6).fit(X, y, domain)
    assert model.predict(np.eye(3)).tolist() == [0, 1, 2]


def test_data_it_cannot_learn_from() -> None:
    X = np.eye(4)
    with pytest.raises(DataError, match="no item of the target"):
        AdversarialNetwork().fit(X, [0, 1, 0, 1], [1, 1, 1, 1])
    with pytest.raises(DataError, match="no item of the source"):
        AdversarialNetwork().fit(X, [0, 1, 0, 1], [-1, -1, -1, -1])
    with pytest.raises(DataError, match="all labels are 0"):
        AdversarialNetwork().fit(X, [0, 0, 1, -1], [1, 1, -1, -1])


@pytest.mark.parametrize(
    "setting",
    [
        {"reversal": -1.0},
        {"reversal": "1"},
        {"learning_rate": 0.0},
        {"validation": 1.0},
        {"validation": -0.1},
        {"n_units": 0},
        {"batch_size": 1},
        {"max_iter": 0},
        {"patience": 0},
        {"random_state": -1},
    ],
)
def test_settings_are_checked(setting: dict[str, Any]) -> None:
    X, y, domain, _ = spurious(0, n=5)
    with pytest.raises(LearnerError, match=next(iter(setting))):
        AdversarialNetwork(**setting).fit(X, y, domain)


def test_from_electronics_to_kitchen() -> None:
    X, y, new, truth = real_reviews("electronics", "kitchen")
    model = AdversarialNetwork().fit(X, y)
    assert model.score(new, truth) > 0.82
    best = model.history_[model.history_.best - 1]
    assert best.domain_loss == pytest.approx(np.log(2.0), abs=0.05)
