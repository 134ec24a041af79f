"""Labels on graphs: the closed form, how far off it can be, what no label reaches.

Worked example G is in tests/examples/test_propagation_examples.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from softcount import DataError, LearnerError, Verdict
from softcount.errors import UnreachedWarning
from softcount.labels import LabelPropagation
from softcount.labels.history import Event
from tests.sklearn_checks import checks

TEXTS = ["good fine", "bad awful", "fine great", "awful dreadful", "great film", ""]
LABELS = ["+", "-", None, None, None, None]


def on_graph(W, y, **settings):
    settings = {"class_mass": False, "tol": 1e-10, **settings}
    return LabelPropagation(weights="precomputed", **settings).fit(W, y)


def closed_form(W, shares, known):
    """(I − T_uu)⁻¹ T_ul Y_l, in dense numpy."""
    T = W / W.sum(axis=1, keepdims=True)
    u, l = np.flatnonzero(~known), np.flatnonzero(known)
    inverse = np.linalg.inv(np.eye(len(u)) - T[np.ix_(u, u)])
    found = shares.copy()
    found[u] = inverse @ T[np.ix_(u, l)] @ shares[l]
    return found, inverse.sum(axis=1)


def random_graph(rng, n, density):
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    upper[np.arange(n - 1), np.arange(1, n)] += 0.01  # in one piece
    return upper + upper.T


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 60),
    density=st.floats(0.0, 0.5),
    classes=st.integers(2, 4),
)
def test_it_is_the_closed_form(seed, n, density, classes):
    rng = np.random.default_rng(seed)
    W = random_graph(rng, n, density)
    shares = np.full((n, classes), np.nan)
    known = rng.random(n) < 0.2
    known[:2] = [True, False]
    known = rng.permutation(known)
    shares[known] = rng.dirichlet(np.ones(classes), known.sum())
    model = on_graph(sparse.csr_matrix(W), shares)
    wanted, steps = closed_form(W, np.nan_to_num(shares), known)
    assert np.abs(model.label_distributions_ - wanted).max() < 1e-8
    assert np.allclose(model.steps_to_label_[~known], steps, rtol=1e-5)
    assert np.abs(model.label_distributions_ - wanted).max() <= model.error_ + 1e-13


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 30),
    free=st.integers(2, 20),
    classes=st.sampled_from([2, 5, 20]),
    max_iter=st.integers(2, 30),
    tol=st.sampled_from([1e-1, 1e-3, 1e-5]),
)
@example(seed=41, n=9, free=4, classes=20, max_iter=3, tol=1e-5)
@example(seed=57, n=9, free=4, classes=20, max_iter=4, tol=1e-5)  # on the way some are below 0
def test_no_share_is_farther_off_than_it_is_told(seed, n, free, classes, max_iter, tol):
    """Also where it stops early, and many classes are made to add up to one."""
    rng = np.random.default_rng(seed)
    W = random_graph(rng, n, 0.3)
    known = rng.permutation(np.arange(n) < max(n - free, 1))
    shares = np.full((n, classes), np.nan)
    shares[known] = rng.dirichlet(np.full(classes, 0.05), known.sum())
    model = on_graph(W, shares, max_iter=max_iter, tol=tol)
    wanted, _ = closed_form(W, np.nan_to_num(shares), known)
    off = np.abs(model.label_distributions_ - wanted).max()
    assert off <= model.error_ + 1e-13
    assert (model.verdict_ is Verdict.CONVERGED) == (model.error_ <= tol)
    assert np.allclose(model.label_distributions_.sum(axis=1), 1.0)
    assert model.label_distributions_.min() >= 0.0


def test_more_than_rounding_allows_is_told_to_be_unfinished():
    W = random_graph(np.random.default_rng(0), 40, 0.2)
    model = on_graph(W, [0, 1, *[-1] * 38], tol=1e-30)
    assert model.verdict_ is Verdict.OUT_OF_STEPS
    assert model.n_iter_ < 1000  # it does not go on for what cannot be
    assert 0.0 < model.error_ < 1e-10


def test_a_long_chain_is_told_to_be_unfinished():
    chain = sparse.diags([np.ones(399)], [1]).tocsr()
    y = np.full(400, -1)
    y[0], y[-1] = 0, 1
    short = on_graph(chain, y, max_iter=50, tol=1e-6)
    assert short.verdict_ is Verdict.OUT_OF_STEPS
    assert not short.verdict_.good
    assert short.n_iter_ == 50
    assert short.label_distributions_[100:300] == pytest.approx(np.full((200, 2), 0.5))  # the prior
    long = on_graph(chain, y, max_iter=5000, tol=1e-6)
    assert long.verdict_ is Verdict.CONVERGED
    wanted = np.linspace(0, 1, 400)
    assert np.abs(long.label_distributions_[:, 1] - wanted).max() < 1e-6


def test_the_graph_is_made_symmetric_and_loses_its_loops():
    W = np.array([[9.0, 2.0, 0.0], [1.0, 9.0, 0.0], [0.0, 3.0, 9.0]])
    graph = on_graph(W, [0, -1, 1]).graph_.toarray()
    assert graph.tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]


# what no label reaches
def test_islands_and_empty_texts_get_the_prior_and_one_warning():
    with pytest.warns(UnreachedWarning, match="1 item got the prior") as caught:
        model = LabelPropagation().fit(TEXTS, LABELS)
    assert len(caught) == 1
    assert model.label_distributions_[5] == pytest.approx(model.prior_)
    assert not model.reached_[5]
    assert np.isfinite(model.label_distributions_).all()
    assert np.allclose(model.label_distributions_.sum(axis=1), 1.0)
    island = np.zeros((5, 5))
    island[0, 1] = island[2, 3] = 1.0
    with pytest.warns(UnreachedWarning, match="3 items"):
        model = on_graph(island, [0, -1, -1, -1, -1])
    assert model.reached_.tolist() == [True, True, False, False, False]
    assert np.isinf(model.steps_to_label_[2:]).all()


@pytest.mark.parametrize("weights", ["cosine", "gaussian"])
@pytest.mark.parametrize("svd", [None, 2])
def test_empty_rows_change_nothing_for_others(weights, svd):
    X = TfidfVectorizer().fit_transform(TEXTS[:5])
    model = LabelPropagation(weights=weights, svd=svd, n_neighbors=2)
    alone = clone(model).fit(X, LABELS[:5])
    with pytest.warns(UnreachedWarning):
        more = clone(model).fit(sparse.vstack([X, X[:4] * 0.0]).tocsr(), [*LABELS[:5], *[None] * 4])
    assert np.allclose(more.label_distributions_[:5], alone.label_distributions_, atol=1e-6)


def test_new_items_without_neighbours_get_the_prior():
    model = LabelPropagation().fit(TEXTS[:5], LABELS[:5])
    with pytest.warns(UnreachedWarning, match="2 new items"):
        shares = model.predict_proba(["", "awful", "unseen"])
    assert np.allclose(shares[[0, 2]], model.prior_)
    assert model.classes_[shares[1].argmax()] == "-"


# classes and their masses
def test_masses_match_what_is_wanted():
    rng = np.random.default_rng(0)
    W = random_graph(rng, 40, 0.2)
    y = np.full(40, -1)
    y[:3] = [0, 0, 1]
    raw = on_graph(W, y)
    free = y == -1
    for wanted, prior in (({0: 3.0, 1: 1.0}, [0.75, 0.25]), (True, [3 / 5, 2 / 5])):
        model = on_graph(W, y, class_mass=wanted)
        assert model.prior_ == pytest.approx(prior)
        mass = raw.label_distributions_[free]
        scaled = mass * prior / mass.sum(axis=0)
        scaled /= scaled.sum(axis=1, keepdims=True)
        assert np.allclose(model.label_distributions_[free], scaled, atol=1e-8)
        assert model.transduction_[:3].tolist() == [0, 0, 1]


@pytest.mark.parametrize("wrong", [{"+": 1.0}, {"+": 1, "-": 0}, {"+": 1, "-": "a"}, {"?": 1}])
def test_wrong_shares_are_told(wrong):
    with pytest.raises(LearnerError, match="class_mass"):
        LabelPropagation(class_mass=wrong).fit(TEXTS[:5], LABELS[:5])


# the estimator
def test_history_says_when_labels_arrived():
    chain = np.diag(np.ones(8), 1)
    model = LabelPropagation(weights="precomputed", class_mass=False)
    model.fit(chain, [0, *[-1] * 7, 1], gold=[0, 0, 0, 0, 0, 1, 1, 1, 1])
    assert model.history_.first_rounds().tolist() == [0, 1, 2, 3, 4, 3, 2, 1, 0]
    assert model.history_.of(1)[0] == Event(1, 0, 1.0, "graph")  # all that has reached it says so
    assert model.history_.of(3)[0] == Event(3, 0, 1.0, "graph")
    assert model.history_.of(4)[0].confidence == pytest.approx(0.5)
    assert model.history_.accuracy[1] == 1.0
    assert model.history_.accuracy[-1] >= 6 / 7


def test_history_counts_masses_as_the_last_round():
    chain = np.diag(np.ones(3), 1)
    model = on_graph(chain, [0, -1, -1, 1], class_mass={0: 1.0, 1: 3.0}, tol=1e-5)
    last = model.history_.of(1)[-1]
    assert (last.label, last.view, last.round) == (1, "class mass", len(model.history_) - 1)
    assert last.confidence == pytest.approx(0.6)


def test_gaussian_weights_are_those_of_distances():
    points = np.array([[0.0], [1.0], [3.0], [3.5]])
    model = LabelPropagation(weights="gaussian", alpha=0.3, n_neighbors=3, class_mass=False)
    model.fit(points, [0, -1, -1, 1])
    wanted = np.exp(-0.3 * (points - points.T) ** 2)
    np.fill_diagonal(wanted, 0.0)
    assert np.allclose(model.graph_.toarray(), wanted)
    assert model.predict([[-5.0], [9.0]]).tolist() == [0, 1]
    far = model.predict_proba([[1e3]])  # weights that underflow still have ratios
    assert far[0, 1] == pytest.approx(1.0)


def test_new_items_are_weighed_means_of_their_neighbours():
    X = TfidfVectorizer().fit_transform(TEXTS[:5])
    model = LabelPropagation(n_neighbors=2, class_mass=False).fit(X, LABELS[:5])
    cosines = np.sort((X[2] @ X.T).toarray()[0])
    others = np.argsort((X[2] @ X.T).toarray()[0])[-2:]
    shares = cosines[-2:] @ model.label_distributions_[others] / cosines[-2:].sum()
    assert model.predict_proba(X[2]) == pytest.approx(shares[None])


def test_new_items_are_weighed_by_their_distances():
    """Of two neighbours, by exp(−α d²): what the items learned from have before any masses."""
    points = np.array([[0.0], [1.0], [3.0], [4.0]])
    model = LabelPropagation(weights="gaussian", alpha=0.3, n_neighbors=2, class_mass=False)
    shares = model.fit(points, [0, -1, -1, 1]).label_distributions_
    weights = np.exp(-0.3 * np.array([0.7, 1.3]) ** 2)
    wanted = weights @ shares[1:3] / weights.sum()
    assert model.predict_proba([[1.7]])[0] == pytest.approx(wanted)
    scaled = model.set_params(class_mass={0: 1.0, 1: 9.0}).fit(points, [0, -1, -1, 1])
    masses = shares[1:3].sum(axis=0)
    wanted = wanted * [1.0, 9.0] / masses
    assert scaled.predict_proba([[1.7]])[0] == pytest.approx(wanted / wanted.sum(), abs=1e-5)


def test_the_usual_alpha_is_one_over_the_mean_squared_distance():
    points = np.array([[0.0], [1.0], [3.0]])
    model = LabelPropagation(weights="gaussian", n_neighbors=1).fit(points, [0, -1, 1])
    assert model.alpha_ == pytest.approx(1.0 / np.mean([1.0, 1.0, 4.0]))


def test_of_new_items_only_neighbours_that_a_label_reaches_have_a_say():
    texts = ["good fine", "bad awful", "fine great", "awful mud", "reed boat", "boat oar"]
    with pytest.warns(UnreachedWarning):
        model = LabelPropagation(class_mass=False).fit(texts, ["+", "-", None, None, None, None])
    assert model.reached_.tolist() == [True] * 4 + [False] * 2
    assert model.predict_proba(["good boat reed"])[0] == pytest.approx([1.0, 0.0])


def test_cosines_do_not_know_how_long_a_row_is():
    rng = np.random.default_rng(2)
    X = rng.poisson(0.5, size=(30, 12)) * 1.0
    X[:, 0] = 1.0
    y = [0, 1, *[-1] * 28]
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    cosines = (X / lengths) @ (X / lengths).T
    np.fill_diagonal(cosines, 0.0)
    for rows in (X, sparse.csr_matrix(X)):
        model = LabelPropagation(n_neighbors=29).fit(rows, y)
        assert np.allclose(model.graph_.toarray(), cosines)
        assert np.allclose(model.predict_proba(rows[3:5] * 7.0), model.predict_proba(rows[3:5]))


def test_texts_are_weighed_by_logarithms_of_their_counts():
    texts = ["a b b b", "a c", "b c c"]
    model = LabelPropagation().fit(texts, [0, 1, -1])
    counts = np.array([[1.0, 3, 0], [1, 0, 1], [0, 1, 2]])
    there = counts > 0
    rows = np.where(there, 1.0 + np.log(np.where(there, counts, 1.0)), 0.0)
    rows *= 1.0 + np.log(4.0 / (1.0 + there.sum(axis=0)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = rows @ rows.T
    np.fill_diagonal(wanted, 0.0)
    assert np.allclose(model.graph_.toarray(), wanted)


def test_a_class_that_reaches_nothing_scales_nothing():
    pairs = np.zeros((5, 5))
    pairs[0, 1] = pairs[1, 2] = pairs[3, 4] = 1.0
    model = on_graph(pairs, [0, -1, 1, 2, 2], class_mass=True)
    assert model.factors_.tolist() == [1.0, 1.0, 1.0]
    assert model.label_distributions_[1] == pytest.approx([0.5, 0.5, 0.0])


def test_threads_change_nothing():
    rng = np.random.default_rng(1)
    X = sparse.random(900, 200, 0.05, random_state=1, format="csr")
    y = np.where(rng.random(900) < 0.1, rng.integers(0, 3, 900), -1)
    for svd in (None, 10):
        one, two = (
            LabelPropagation(svd=svd, n_jobs=jobs).fit(X, y).label_distributions_ for jobs in (1, 2)
        )
        assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": "euclid"}, "weights"),
        ({"alpha": -1.0}, "alpha"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"svd": 0}, "svd"),
        ({"tol": 0.0}, "tol"),
        ({"vectorizer": 3}, "vectorizer"),
    ],
)
def test_wrong_settings_are_told(wrong, message):
    with pytest.raises(LearnerError, match=message):
        LabelPropagation(**wrong).fit(TEXTS, LABELS)


def test_wrong_graphs_are_told():
    with pytest.raises(DataError, match="shape"):
        on_graph(np.ones((2, 3)), [0, 1])
    with pytest.raises(DataError, match="Negative"):
        on_graph(-np.ones((2, 2)), [0, 1])
    with pytest.raises(DataError, match="needs a graph"):
        on_graph(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        LabelPropagation().predict(TEXTS)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = LabelPropagation().fit(TEXTS[:5], LABELS[:5])
    before = model.transduction_
    with pytest.raises(DataError):
        model.fit(TEXTS, [None] * 6)
    assert model.transduction_ is before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@checks([LabelPropagation()], [LabelPropagation(weights="gaussian")])
def test_scikit_learn_finds_nothing(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# numbers at the ends of what there is
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("weights", ["cosine", "gaussian"])
def test_nothing_but_empty_rows(make, weights):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LabelPropagation(weights=weights).fit(make(np.zeros((4, 3))), [0, 1, -1, -1])
        assert np.isfinite(model.predict_proba(make(np.eye(3)))).all()
    assert {warning.category for warning in caught} <= {UnreachedWarning}


@pytest.mark.parametrize("svd", [None, 3])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_how_long_rows_are_is_nothing_to_a_cosine(make, svd):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 5)), [0, 1, *[-1] * 28]
    lengths = 10.0 ** rng.integers(-300, 300, (30, 1))
    plain = LabelPropagation(svd=svd).fit(make(X), y)
    with warnings.catch_warnings(action="error"):
        scaled = LabelPropagation(svd=svd).fit(make(X * lengths), y)
    assert scaled.verdict_ is Verdict.CONVERGED
    assert scaled.label_distributions_ == pytest.approx(plain.label_distributions_, abs=1e-4)
    assert scaled.predict_proba(make(X * 1e-200)) == pytest.approx(plain.predict_proba(make(X)))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_points_too_far_apart_to_measure_are_refused(make):
    X, y = np.random.default_rng(0).random((9, 2)), [0, 1, *[-1] * 7]
    with pytest.raises(DataError, match="distances overflow"):
        LabelPropagation(weights="gaussian").fit(make(X * 1e200), y)
    model = LabelPropagation(weights="gaussian").fit(make(X), y)
    with pytest.raises(DataError, match="distances overflow"):
        model.predict(make(X * 1e200))


@pytest.mark.parametrize("small", [1e-320, 1e-200, 1e-40])
@pytest.mark.parametrize("large", [1e300, 1e100])
def test_weights_that_are_far_apart_come_to_an_end(small, large):
    W = np.zeros((4, 4))
    W[0, 2], W[2, 3], W[1, 3] = small, large, small
    with warnings.catch_warnings(action="error"):
        model = on_graph(W, [0, 1, -1, -1], max_iter=50)
    assert np.isfinite(model.label_distributions_).all()
    assert model.n_iter_ <= 50


def test_weights_that_add_up_to_infinity_are_refused():
    with pytest.raises(DataError, match="sum of the edge weights overflows"):
        on_graph(np.full((4, 4), 1e308), [0, 1, -1, -1])


def test_a_warning_knows_its_items():
    with pytest.warns(UnreachedWarning, match="no label reaches it") as caught:
        LabelPropagation().fit(TEXTS, LABELS)
    assert caught[0].message.items == [5]
