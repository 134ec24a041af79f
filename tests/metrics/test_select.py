"""Choosing the number of classes: the right counts, the right criteria, the right number."""

from __future__ import annotations

import builtins
import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture as TheirMixture

import softcount as sc
from softcount.core.errors import DataError, LearnerError, SoftcountError

TEXTS = ["a b a b", "b a b a", "c d d c", "d c c d", "e f f e", "f e e f"] * 5


def documents(seed: int, classes: int = 10, words: int = 200, n: int = 1000) -> csr_matrix:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(words, 0.3), size=classes)
    hidden = rng.integers(classes, size=n)
    lengths = rng.poisson(50, size=n)
    return csr_matrix([rng.multinomial(m, table[z]) for m, z in zip(lengths, hidden, strict=True)])


def points(seed: int, classes: int = 10, dims: int = 5, n: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 4.0 * rng.normal(size=(classes, dims))
    forms = rng.normal(size=(classes, dims, dims)) / math.sqrt(dims) + 0.5 * np.eye(dims)
    hidden = rng.integers(classes, size=n)
    return centres[hidden] + np.einsum("nij,nj->ni", forms[hidden], rng.normal(size=(n, dims)))


# the numbers of parameters, by the textbooks' formulas
@given(K=st.integers(1, 5), V=st.integers(2, 6))
@settings(max_examples=10, deadline=None)
def test_parameters_of_words(K: int, V: int) -> None:
    counts = np.random.default_rng(K + 10 * V).poisson(3.0, size=(12, V)) + 1.0
    multinomial = sc.MultinomialMixture(K, learner=sc.EM(max_iter=2)).fit(counts)
    assert multinomial.n_parameters_ == (K - 1) + K * (V - 1)
    bernoulli = sc.MultinomialMixture(K, bernoulli=True, learner=sc.EM(max_iter=2)).fit(counts)
    assert bernoulli.n_parameters_ == (K - 1) + K * V


@pytest.mark.parametrize(
    ("covariance", "of_covariances"),
    [
        ("full", lambda K, D: K * D * (D + 1) // 2),
        ("tied", lambda K, D: D * (D + 1) // 2),
        ("diag", lambda K, D: K * D),
        ("spherical", lambda K, D: K),
        ("identity", lambda K, D: 0),
    ],
)
@pytest.mark.parametrize(("K", "D"), [(1, 1), (3, 2), (4, 5)])
def test_parameters_of_points(covariance: Any, of_covariances: Any, K: int, D: int) -> None:
    x = np.random.default_rng(0).normal(size=(40, D))
    model = sc.GaussianMixture(K, covariance=covariance, learner=sc.EM(max_iter=2)).fit(x)
    assert model.n_parameters_ == (K - 1) + K * D + of_covariances(K, D)


@pytest.mark.parametrize("kind", [sc.KMeans, sc.SoftKMeans])
def test_kmeans_has_only_centres(kind: Any) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    assert kind(4).fit(x).n_parameters_ == 4 * 3


# the criteria, from the definitions
def test_criteria_of_words_by_hand() -> None:
    counts = documents(3, classes=3, words=8, n=60)
    model = sc.MultinomialMixture(5).fit(counts)  # too many: some documents are between classes
    joint = np.log(model.weights_) + counts @ np.log(model.words_).T
    log_likelihood = logsumexp(joint, axis=1).sum()
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    entropy = -sum(r * math.log(r) for r in shares.ravel() if r > 0)
    free = 4 + 5 * 7
    row = sc.select(sc.MultinomialMixture(), counts, k=[5]).table[0]
    assert row.parameters == free
    assert row.log_likelihood == pytest.approx(log_likelihood, rel=1e-10)
    assert row.aic == pytest.approx(2 * free - 2 * log_likelihood, rel=1e-10)
    assert row.bic == pytest.approx(free * math.log(60) - 2 * log_likelihood, rel=1e-10)
    assert row.icl == pytest.approx(row.bic + 2 * entropy, rel=1e-10)
    assert entropy > 1e-3


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_criteria_of_points_as_scikit_learn_has_them(covariance: Any) -> None:
    x = points(1, classes=3, dims=2, n=90)
    ours = sc.GaussianMixture(3, covariance=covariance).fit(x)
    theirs = TheirMixture(3, covariance_type=covariance)
    theirs.weights_, theirs.means_ = ours.weights_, ours.means_
    theirs.covariances_ = ours.covariances_[0] if covariance == "tied" else ours.covariances_
    from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

    theirs.precisions_cholesky_ = _compute_precision_cholesky(theirs.covariances_, covariance)
    assert ours.aic(x) == pytest.approx(theirs.aic(x), rel=1e-9)
    assert ours.bic(x) == pytest.approx(theirs.bic(x), rel=1e-9)


def test_held_out_is_what_the_rest_predicts() -> None:
    counts = documents(4, classes=3, words=20, n=100)
    order = np.random.default_rng(7).permutation(100)
    held, rest = counts[order[:30]], counts[order[30:]]
    model = sc.MultinomialMixture(3).fit(rest)
    joint = np.log(model.weights_) + held @ np.log(model.words_).T
    total = logsumexp(joint, axis=1).sum()
    found = sc.select(
        sc.MultinomialMixture(), counts, k=[3], by="heldout", share=0.3, random_state=7
    )
    assert found.table[0].heldout == pytest.approx(total / 30, rel=1e-9)
    assert found.table[0].perplexity == pytest.approx(math.exp(-total / held.sum()), rel=1e-9)
    assert found.best.labels_.shape == (100,)


# the right number
def winners(model: Any, data: Any) -> dict[str, int]:
    found = sc.select(model, data, k=(4, 6, 8, 9, 10, 11, 12, 14, 16), by="heldout")
    return {by: found.winner(by) for by in found.known}


@pytest.mark.slow
def test_ten_classes_of_documents_are_found() -> None:
    found = winners(sc.MultinomialMixture(learner=sc.EM(n_init=3)), documents(0))
    assert set(found) == {"aic", "bic", "icl", "heldout"}
    assert all(abs(k - 10) <= 2 for k in found.values()), found


@pytest.mark.slow
def test_ten_classes_of_points_are_found() -> None:
    found = winners(sc.GaussianMixture(learner=sc.EM(n_init=3)), points(0))
    assert all(abs(k - 10) <= 2 for k in found.values()), found


def test_texts_and_token_lists() -> None:
    for data in (TEXTS, [text.split() for text in TEXTS], tuple(TEXTS)):
        found = sc.select(sc.MultinomialMixture(), data, k=range(1, 6))
        assert found.best_k == 3
        assert found.best.predict(data[:1]).shape == (1,)


def test_held_out_texts_have_a_perplexity() -> None:
    found = sc.select(sc.MultinomialMixture(), TEXTS, k=[2, 3], by="heldout")
    assert found.best_k == 3
    # two words a class, three classes: about 2 · 3^(1/4) if all is learned
    assert found.table[1].perplexity == pytest.approx(2 * 3**0.25, rel=0.05)


# what is asked of a model, and what is not
def test_the_given_model_stays_as_it_is() -> None:
    model = sc.MultinomialMixture(5)
    found = sc.select(model, TEXTS, k=[2, 3])
    assert model.n_components == 5
    assert not hasattr(model, "raw_params_")
    assert found.best is not model


def test_a_stranger_with_fewer_criteria() -> None:
    found = sc.select(TheirMixture(random_state=0), points(2, classes=3, dims=2, n=150), k=(2, 3))
    assert found.known == ("aic", "bic")
    assert found.table[0].icl is None
    assert found.table[0].parameters is None
    assert "ICL" not in str(found)


def test_rows_come_in_order_and_as_they_are_done() -> None:
    seen: list[int] = []
    found = sc.select(
        sc.MultinomialMixture(), TEXTS, k=[4, 2, 2, 3], on_fit=lambda row: seen.append(row.k)
    )
    assert seen == [2, 3, 4] == [row.k for row in found.table]


def test_of_equals_the_smallest() -> None:
    class Flat(BaseEstimator):  # type: ignore[misc]
        def __init__(self, n_components: int = 1) -> None:
            self.n_components = n_components

        def fit(self, data: Any) -> Flat:
            return self

        def score_samples(self, data: Any) -> Any:
            return np.zeros(len(data))

        def aic(self, data: Any) -> float:
            return 1.0 if self.n_components > 2 else math.nan

    assert sc.select(Flat(), [0] * 9, k=range(1, 6), by="aic").best_k == 3
    with pytest.raises(LearnerError, match="Flat has no bic"):
        sc.select(Flat(), [0] * 9, k=[2])
    with pytest.raises(DataError, match="no finite aic"):
        sc.select(Flat(), [0] * 9, k=[2], by="aic")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": []}, "no numbers"),
        ({"k": 3}, "no numbers"),
        ({"k": range(0, 4)}, "k contains 0"),
        ({"k": [2.5]}, "k contains 2.5"),
        ({"by": "guess"}, "by='guess' is unknown"),
        ({"model": sc.Annotators()}, "Annotators has no n_components"),
        ({"model": "MultinomialMixture"}, "str has no n_components"),
        ({"data": TEXTS[:5], "k": [6]}, "5 items to learn from, too few for k=6"),
        ({"data": TEXTS[:6], "k": [6], "by": "heldout"}, "5 items to learn from"),
        ({"data": TEXTS[:1], "k": [1], "by": "heldout"}, "cannot split 1 items"),
        ({"share": 1.0, "by": "heldout"}, "share is 1.0"),
    ],
)
def test_what_cannot_be_done(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"model": sc.MultinomialMixture(), "data": TEXTS, "k": [2], **changes}
    with pytest.raises(SoftcountError, match=message):
        sc.select(given.pop("model"), given.pop("data"), **given)


def test_impossible_held_out_items_are_no_small_matter() -> None:
    counts = np.eye(6)[[0, 1, 2, 3, 4, 5]]  # every document has a word of its own
    with pytest.raises(DataError, match="has probability zero"):
        sc.select(sc.MultinomialMixture(smoothing=0.0), counts, k=[1, 2], by="heldout")


# what is shown
def test_table_as_text() -> None:
    found = sc.select(sc.MultinomialMixture(), TEXTS, k=range(1, 6))
    head, *rows = str(found).splitlines()[:6]
    assert head.split() == ["k", "log-likelihood", "parameters", "AIC", "BIC", "ICL"]
    assert len({len(row.rstrip(" *")) for row in rows}) <= 2  # aligned, but for the stars
    assert [row.startswith("→") for row in rows] == [False, False, True, False, False]
    assert rows[2].count("*") == 3
    assert "BIC chooses 3" in str(found)


def test_table_says_which_fits_did_not_converge() -> None:
    model = sc.MultinomialMixture(init="random", learner=sc.EM(max_iter=1))
    assert "k = 2, 3: ran out of steps" in str(sc.select(model, documents(0, n=50), k=[2, 3]))


def test_chart_has_a_curve_and_a_dot_for_each_criterion() -> None:
    found = sc.select(sc.MultinomialMixture(), TEXTS, k=[1, 2, 3, 5], by="heldout")
    root = ElementTree.fromstring(found.svg())
    paths = [element for element in root.iter() if element.tag.endswith("path")]
    assert len(paths) == 2 * 4
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"AIC: 3", "BIC: 3", "ICL: 3", "classes"} <= texts
    assert f"held-out: {found.best_k}" in texts
    assert [min(losses) for losses in found.losses().values()] == [0.0] * 4


def test_losses_are_nats_an_item() -> None:
    found = sc.select(sc.MultinomialMixture(), TEXTS, k=[1, 3])
    first, second = found.table
    assert first.aic is not None
    assert second.aic is not None
    assert found.losses()["aic"][0] == pytest.approx((first.aic - second.aic) / (2 * len(TEXTS)))


def test_plot() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    found = sc.select(sc.MultinomialMixture(), TEXTS, k=[2, 3])
    axes = found.plot()
    assert [line.get_label() for line in axes.lines] == ["AIC: 3", "BIC: 3", "ICL: 3"]
    assert found.plot(axes) is axes
    pyplot.close("all")


def test_plot_without_matplotlib_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return ordinary(name, *args, **kwargs)

    found = sc.select(sc.MultinomialMixture(), TEXTS, k=[2, 3])
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SoftcountError, match="softcount\\[plot\\]"):
        found.plot()
