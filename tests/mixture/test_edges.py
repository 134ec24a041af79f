"""What happens at the edges: long, empty, strange and impossible documents, and dead classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from softcount.core.types import ColumnCounts
from softcount.families import Categorical
from softcount.mixture.core import WordProbabilities

RNG = np.random.default_rng(4)
COUNTS = RNG.poisson(1.0, (8, 5))
STARTS = ["kmeans", "random", "uniform", "spectral", "anchor"]


def demand_sound(model: Any, X: Any) -> None:
    """Parameters are proper, and every figure is a number."""
    assert np.isfinite(model.weights_).all()
    assert model.weights_.sum() == pytest.approx(1.0)
    assert np.isfinite(model.words_).all()
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(X)).all()


# documents


@pytest.mark.parametrize("init", ["kmeans", "random"])
def test_a_document_of_a_million_words(init: str) -> None:
    """Sums of a million logarithms neither overflow nor underflow, and compare as they should."""
    rng = np.random.default_rng(0)
    giant = rng.multinomial(10**6, rng.dirichlet(np.ones(5)))
    X = np.vstack([giant, giant[::-1], COUNTS])
    model = sc.MultinomialMixture(2, init=init).fit(X)
    demand_sound(model, X)
    joint = [
        math.log(p) + sum(int(n) * math.log(t) for n, t in zip(giant, row, strict=True))
        for p, row in zip(model.weights_, model.words_, strict=True)
    ]
    assert model.predict(X[:1])[0] == int(np.argmax(joint))
    assert model.score_samples(X[:1])[0] == pytest.approx(np.logaddexp(*joint), rel=1e-12)
    odds = math.exp(min(joint) - max(joint))
    assert model.predict_proba(X[:1]).min() == pytest.approx(odds / (1 + odds), abs=1e-12)


def test_a_word_a_million_times_in_nearly_equal_classes() -> None:
    """log-odds of 10⁶ · log(.5000005 / .4999995) = 2: a difference of two numbers near −7·10⁵."""
    a = 0.5000005
    init = {"weights": [0.5, 0.5], "words": [[a, 1 - a], [1 - a, a]]}
    learner = sc.EM(max_iter=1)
    model = sc.MultinomialMixture(2, smoothing=0, learner=learner).fit([[1, 0]], init=init)
    model.raw_params_ = model.core_.params(init)
    found = model.predict_proba([[10**6, 0]])[0, 0]
    assert found == pytest.approx(1 / (1 + math.exp(-(10**6) * math.log(a / (1 - a)))), abs=1e-8)


def test_an_empty_document_is_of_any_class() -> None:
    model = sc.MultinomialMixture(3).fit(np.vstack([COUNTS, np.zeros(5)]))
    empty = np.zeros((1, 5))
    np.testing.assert_allclose(model.predict_proba(empty)[0], model.weights_, atol=1e-12)
    assert model.score_samples(empty)[0] == pytest.approx(0.0, abs=1e-12)
    bayes = sc.NaiveBayes().fit(np.vstack([COUNTS, np.zeros(5)]), [0, 1, 1, -1, 0, 1, -1, 1, -1])
    np.testing.assert_allclose(bayes.predict_proba(empty)[0], bayes.weights_, atol=1e-12)


def test_an_empty_document_tells_a_bernoulli_mixture_that_words_are_absent() -> None:
    model = sc.MultinomialMixture(2, bernoulli=True).fit(COUNTS)
    joint = np.log(model.weights_) + np.log(1 - model.words_).sum(axis=1)
    shares = np.exp(joint) / np.exp(joint).sum()
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 5)))[0], shares, atol=1e-12)


@pytest.mark.parametrize("bernoulli", [False, True])
def test_a_class_may_die_out(bernoulli: bool) -> None:
    """Nothing speaks for the third class: its weight is zero, and the others are as without it."""
    X = np.array([[4, 0, 0], [3, 1, 0], [0, 1, 5], [0, 0, 4]])
    two = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    words = {
        k: np.stack([1 - t, t], axis=2) if bernoulli else t
        for k, t in ((2, two), (3, np.vstack([two, [0.3, 0.3, 0.4]])))
    }
    make = sc.MultinomialMixture
    settings = {"bernoulli": bernoulli, "smoothing": 0.1, "learner": sc.EM(max_iter=9, tol=0)}
    dead = make(3, **settings).fit(X, init={"weights": [0.5, 0.5, 0.0], "words": words[3]})
    alive = make(2, **settings).fit(X, init={"weights": [0.5, 0.5], "words": words[2]})
    assert dead.weights_[2] == 0.0
    demand_sound(dead, X)
    np.testing.assert_allclose(dead.weights_[:2], alive.weights_, atol=1e-12)
    np.testing.assert_allclose(dead.words_[:2], alive.words_, atol=1e-12)
    assert dead.score(X) == pytest.approx(alive.score(X), rel=1e-12)
    assert dead.generate(50).shape == (50, 3)
    assert set(dead.predict(X)) == {0, 1}


def test_a_class_of_naive_bayes_whose_documents_are_empty() -> None:
    model = sc.NaiveBayes().fit([[2, 1], [0, 0]], ["full", "empty"])
    np.testing.assert_allclose(model.words_, [[0.5, 0.5], [2.1 / 3.2, 1.1 / 3.2]])
    demand_sound(model, [[2, 1], [0, 0]])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_unseen_words_in_a_matrix(smoothing: float) -> None:
    X = np.array([[3, 1, 0], [4, 0, 0], [0, 3, 0], [1, 4, 0]])
    model = sc.MultinomialMixture(2, smoothing=smoothing, init="kmeans").fit(X)
    new, without = np.array([[2, 0, 3], [0, 0, 1]]), np.array([[2, 0, 0], [0, 0, 0]])
    assert np.isneginf(model.score_samples(new)).all() == (smoothing == 0.0)
    if smoothing == 0.0:
        assert model.score(new) == -math.inf
        np.testing.assert_allclose(model.predict_proba(new), model.predict_proba(without))
        assert model.predict(new).tolist() == model.predict(without).tolist()


def test_a_word_that_only_one_class_can_have_decides() -> None:
    start = {"weights": [0.5, 0.5], "words": [[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]]}
    X = np.array([[3, 1, 0], [0, 1, 3]])
    model = sc.MultinomialMixture(2, smoothing=0).fit(X, init=start)
    np.testing.assert_allclose(model.predict_proba([[1, 0, 0], [0, 0, 1]]), np.eye(2), atol=1e-12)
    assert model.predict([[1, 0, 2], [2, 0, 1]]).tolist() == [1, 0]  # fewest impossible words
    assert np.isneginf(model.score_samples([[1, 0, 2]])[0])


def test_unseen_words_in_texts_are_not_looked_at() -> None:
    model = sc.MultinomialMixture(2).fit(["a a b", "c d", "a b", "d d c"])
    np.testing.assert_array_equal(model.predict_proba(["a zebra"]), model.predict_proba(["a"]))
    np.testing.assert_allclose(model.predict_proba(["zebra"])[0], model.weights_)
    assert model.score_samples(["zebra", ""]).tolist() == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("init", ["kmeans", "random", "uniform"])
def test_a_matrix_of_zeros_has_nothing_to_say(init: str, smoothing: float) -> None:
    X = np.zeros((4, 3))
    model = sc.MultinomialMixture(2, init=init, smoothing=smoothing).fit(X)
    assert model.verdict_ is sc.Verdict.STUCK
    demand_sound(model, X)
    np.testing.assert_allclose(model.words_, 1 / 3)
    assert model.score(X) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("init", ["spectral", "anchor"])
def test_a_matrix_of_zeros_has_no_moments(init: str) -> None:
    with pytest.raises(sc.DataError, match="no document has any words"):
        sc.MultinomialMixture(2, init=init).fit(np.zeros((4, 3)))


@pytest.mark.parametrize(
    ("init", "bernoulli"),
    [(init, False) for init in STARTS] + [(init, True) for init in STARTS[:3]],  # no moments
)
@pytest.mark.parametrize(
    ("n_classes", "X"),
    [
        (1, COUNTS[:1]),
        (3, COUNTS[:1]),
        (2, COUNTS[:, :1]),
        (20, COUNTS),
        (3, np.repeat(COUNTS[:1], 7, axis=0)),
    ],
    ids=["one document", "one document, three classes", "one word", "many classes", "duplicates"],
)
def test_few_documents(n_classes: int, X: Any, init: str, bernoulli: bool) -> None:
    for smoothing in (0.0, 0.1):
        model = sc.MultinomialMixture(
            n_classes, init=init, bernoulli=bernoulli, smoothing=smoothing
        ).fit(X)
        demand_sound(model, X)
        assert model.verdict_ is not sc.Verdict.FELL
        assert model.labels_.shape == (len(X),)


@pytest.mark.parametrize("init", STARTS)
def test_documents_that_weigh_nothing_do_not_matter(init: str) -> None:
    """The start may look at them, but what is learned does not depend on them."""
    start = sc.MultinomialMixture(2, init=init).fit(COUNTS[:5]).params_
    weights = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 0.0, 0.0, 0.0])
    impossible = COUNTS.copy()
    impossible[5:] = 1000
    some = sc.MultinomialMixture(2).fit(COUNTS[:5], sample_weight=weights[:5], init=start)
    more = sc.MultinomialMixture(2).fit(impossible, sample_weight=weights, init=start)
    np.testing.assert_allclose(some.words_, more.words_, atol=1e-12)
    demand_sound(sc.MultinomialMixture(2, init=init).fit(COUNTS, sample_weight=weights), COUNTS)


def test_impossible_documents_that_weigh_nothing_are_no_error() -> None:
    start = {"weights": [0.5, 0.5], "words": [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]]}
    X = np.array([[3, 1, 0], [1, 3, 0], [0, 0, 2]])
    model = sc.MultinomialMixture(2, smoothing=0)
    model.fit(X, sample_weight=[1, 1, 0], init=start)
    assert np.isfinite(model.trace_.log_likelihood).all()
    with pytest.raises(sc.errors.ImpossibleItem, match="item 2"):
        model.fit(X, init=start)


# data of other forms


FORMS: dict[str, Any] = {
    "float32": COUNTS.astype(np.float32),
    "int64": COUNTS.astype(np.int64),
    "uint8": COUNTS.astype(np.uint8),
    "lists": COUNTS.tolist(),
    "fortran": np.asfortranarray(COUNTS),
    "csr": sparse.csr_matrix(COUNTS),
    "csc": sparse.csc_matrix(COUNTS),
    "coo": sparse.coo_matrix(COUNTS),
    "lil": sparse.lil_matrix(COUNTS),
    "csr array": sparse.csr_array(COUNTS),
    "coo array": sparse.coo_array(COUNTS),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_holds_the_counts(form: str) -> None:
    expected = sc.MultinomialMixture(2).fit(COUNTS)
    found = sc.MultinomialMixture(2).fit(FORMS[form])
    np.testing.assert_array_equal(found.words_, expected.words_)
    np.testing.assert_array_equal(found.predict_proba(FORMS[form]), expected.predict_proba(COUNTS))


def test_truth_values_are_counts_of_one() -> None:
    found = sc.MultinomialMixture(2).fit(COUNTS > 0)
    expected = sc.MultinomialMixture(2).fit((COUNTS > 0).astype(int))
    np.testing.assert_array_equal(found.words_, expected.words_)


def test_repeated_entries_of_a_sparse_matrix_add_up() -> None:
    once = sparse.coo_matrix(COUNTS)
    half = np.concatenate([once.data / 2, once.data / 2])
    both = (np.tile(once.row, 2), np.tile(once.col, 2))
    twice = sparse.coo_matrix((half, both), shape=once.shape)
    found = sc.MultinomialMixture(2).fit(twice)
    np.testing.assert_array_equal(found.words_, sc.MultinomialMixture(2).fit(once).words_)


def test_fractions_are_welcome() -> None:
    X = COUNTS * 0.37
    model = sc.MultinomialMixture(2).fit(X)
    demand_sound(model, X)
    joint = np.log(model.weights_) + X @ np.log(model.words_).T
    np.testing.assert_allclose(model.score_samples(X), np.logaddexp.reduce(joint, axis=1))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_numpys_matrices_are_refused() -> None:
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        sc.MultinomialMixture(2).fit(np.matrix(COUNTS))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_negative_counts_name_the_document(container: Any) -> None:
    X = COUNTS.astype(float)
    X[6, 2] = -0.5
    with pytest.raises(sc.DataError, match=r"document 6 has a count of -0\.5"):
        sc.MultinomialMixture(2).fit(container(X))
    with pytest.raises(sc.DataError, match="document 6"):
        sc.NaiveBayes().fit(container(X), [0, 1] * 4)
    model = sc.MultinomialMixture(2).fit(COUNTS)
    with pytest.raises(sc.DataError, match="document 6"):
        model.predict(container(X))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_what_is_no_number_is_refused(container: Any, bad: float) -> None:
    X = COUNTS.astype(float)
    X[1, 1] = bad
    what = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=what):
        sc.MultinomialMixture(2).fit(container(X))
    with pytest.raises(ValueError, match=what):
        sc.MultinomialMixture(2).fit(COUNTS).predict(container(X))
    if container is np.asarray:
        with pytest.raises(ValueError, match=what):
            sc.GaussianMixture(2).fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([-1.0] + [1.0] * 7, "negative"),
        ([0.0] * 8, "zero"),
        ([np.nan] * 8, "NaN"),
        ([1.0] * 5, "expected"),
    ],
)
def test_weights_that_make_no_sense(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sc.MultinomialMixture(2).fit(COUNTS, sample_weight=weights)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 2, 2)])
def test_matrices_without_documents_or_words(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"2D|0 sample|0 feature|dim 3"):
        sc.MultinomialMixture(2).fit(np.ones(shape))


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_impossible_numbers_of_classes(n: Any) -> None:
    for model in (sc.MultinomialMixture(n), sc.GaussianMixture(n), sc.KMeans(n)):
        with pytest.raises(sc.LearnerError, match="n_components"):
            model.fit(COUNTS)


@pytest.mark.parametrize("smoothing", [-0.5, np.nan, np.inf])
def test_impossible_smoothing(smoothing: float) -> None:
    with pytest.raises(sc.LearnerError):
        sc.MultinomialMixture(2, smoothing=smoothing).fit(COUNTS)


def test_starts_of_the_wrong_shape_or_name() -> None:
    with pytest.raises(sc.errors.StartError, match="tables"):
        sc.MultinomialMixture(2).fit(COUNTS, init={"weights": [0.5, 0.5]})
    wrong = {"weights": [0.5, 0.5], "words": np.full((3, 5), 0.2)}
    with pytest.raises(sc.errors.StartError, match=r"'words' has the shape \(3, 5\)"):
        sc.MultinomialMixture(2).fit(COUNTS, init=wrong)
    turned = {"weights": [0.5, 0.5], "words": np.full((5, 2), 0.2)}
    with pytest.raises(sc.errors.StartError, match=r"'words' has the shape \(5, 2\)"):
        sc.MultinomialMixture(2).fit(COUNTS, init=turned)
    with pytest.raises(sc.errors.StartError, match="means"):
        sc.GaussianMixture(2).fit(COUNTS, init={"means": np.ones((3, 5))})
    with pytest.raises(sc.errors.StartError, match="covariances"):
        sc.GaussianMixture(2).fit(
            COUNTS, init={"means": np.ones((2, 5)), "covariances": np.ones((2, 5))}
        )
    with pytest.raises(sc.LearnerError, match="kmeans"):
        sc.MultinomialMixture(2, init="clever").fit(COUNTS)


# texts


def test_texts_in_any_container() -> None:
    texts = ["a b a", "", "c d", "?!", "d c c"]
    expected = sc.MultinomialMixture(2).fit(texts)
    assert expected.vocabulary_.tolist() == ["a", "b", "c", "d"]
    containers = (
        tuple(texts),
        (text for text in texts),
        np.array(texts),
        np.array(texts, dtype=object),
        [["a", "b", "a"], [], ["c", "d"], [], ["d", "c", "c"]],
        [("a", "b", "a"), (), ("c", "d"), (), ("d", "c", "c")],
    )
    for container in containers:
        found = sc.MultinomialMixture(2).fit(container)
        np.testing.assert_array_equal(found.words_, expected.words_)
        assert found.labels_.tolist() == expected.labels_.tolist()


@pytest.mark.parametrize("texts", [["...", "?!"], ["", ""], [[], ["x"], []]])
def test_texts_without_words(texts: list[Any]) -> None:
    if texts[1] == ["x"]:
        assert sc.MultinomialMixture(1).fit(texts).vocabulary_.tolist() == ["x"]
        return
    with pytest.raises(sc.DataError, match="no words are left"):
        sc.MultinomialMixture(2).fit(texts)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("one text", "one text"),
        (b"one text", "one text"),
        ([b"bytes", b"more"], "bytes"),
        ([], "no documents"),
        (["a", 3], "document 1 is 3"),
        (["a", None], "document 1 is None"),
        (["a", ["b"]], "document 1"),
        ([["a"], "b"], "lists of words"),
        ([["a"], ["b", 3]], "document 1 has 3"),
    ],
)
def test_what_is_no_list_of_texts(data: Any, message: str) -> None:
    with pytest.raises(sc.DataError, match=message):
        sc.MultinomialMixture(2).fit(data)


def test_odd_unicode() -> None:
    texts = ["हिन्दी 😀 \x00 ﬁne", "a\u0301 Straße \u200b", "\ud800 naïve"]
    model = sc.MultinomialMixture(2).fit(texts)
    assert "हिन्दी" in model.vocabulary_
    assert "strasse" in model.vocabulary_
    assert "naïve" in model.vocabulary_
    demand_sound(model, texts)
    assert len(model.generate(3)) == 3


def test_texts_for_a_model_of_matrices() -> None:
    with pytest.raises(sc.DataError, match="fitted to a matrix"):
        sc.MultinomialMixture(2).fit(COUNTS).predict(["some text"])


# large tables


@pytest.mark.parametrize("prior", [1.0, 1.5])
def test_counts_of_words_become_parameters_in_place(prior: float) -> None:
    counts = RNG.poisson(1.0, (3, 40)).astype(float)
    counts[1] = 0.0
    table, plain = WordProbabilities((3, 40), prior), Categorical((3, 40), prior)
    old = plain.random(RNG)
    wanted = plain.maximise(counts, old, RNG)
    columns = ColumnCounts(np.arange(40), np.ascontiguousarray(counts.T), 40)
    assert table.consume("maximise", columns, old, RNG).tobytes() == wanted.tobytes()
    found = table.consume("maximise", counts, old, RNG)
    assert np.shares_memory(found, counts)
    assert found.tobytes() == wanted.tobytes()
