"""PLSA and LDA as estimators: worked examples, faults, documents' rows, scikit-learn's contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union

import softcount as sc
from softcount.core.errors import DataError, LearnerError
from softcount.metrics import completion
from softcount.text import archive as building
from softcount.topics import LDA, PLSA
from tests.oracles import plain_topics
from tests.sklearn_checks import checks
from tests.topics.common import LEARNERS

NOTES = [
    "World_Cup Russia host",
    "World_Cup boost Russia economy",
    "Russia bid World_Cup",
    "Russia economy growing oil",
    "Russia economy recover continue",
    "Russia oil dependence",
]


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_worked_example_e() -> None:
    learner = sc.EM(max_iter=500, n_init=60, tol=1e-10)
    model = PLSA(2, short_runs=0, learner=learner).fit(NOTES)
    of = model.transform(NOTES)
    assert cosine(of[0], of[2]) > cosine(of[1], of[4])
    assert cosine(of[3], of[4]) > cosine(of[1], of[4])


def test_the_objective_is_that_of_nmf_with_kullback_leibler() -> None:
    """KL(X ‖ WH) = Σ x log x − x − [log-likelihood + Σ x log n_d] + Σ WH at the same point."""
    x = np.random.default_rng(0).poisson(2.0, (12, 9)).astype(float)
    model = PLSA(3, short_runs=0, learner=sc.EM(max_iter=40, tol=0)).fit(x)
    lengths = x.sum(axis=1)
    theta, phi = model.documents_, model.topics_
    approximation = (lengths[:, None] * theta) @ phi
    nmf = NMF(3, solver="mu", beta_loss="kullback-leibler", init="custom", max_iter=1, tol=0)
    w, h = lengths[:, None] * theta, np.array(phi)
    found = nmf.fit_transform(x, W=np.array(w), H=np.array(h))
    divergence = np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / approximation), 0))
    divergence += approximation.sum() - x.sum()
    likelihood = model.trace_.log_likelihood[-1] + lengths @ np.log(lengths)
    entropy = np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0))
    assert entropy - likelihood == pytest.approx(divergence, abs=1e-6)
    # and a further step of theirs, from our fixed point, finds next to nothing to improve
    again = found @ nmf.components_
    after = np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / again), 0)) + again.sum()
    assert after - x.sum() <= divergence + 1e-6


def test_one_topic_is_the_unigram_model() -> None:
    x = np.array([[3, 1, 0], [1, 2, 1]])
    assert PLSA(1, short_runs=0).fit(x).topics_[0] == pytest.approx([0.5, 0.375, 0.125])


@pytest.mark.parametrize(
    "learner",
    [
        None,
        sc.OnlineEM(max_iter=4, batch_size=16),
        sc.VariationalBayes(max_iter=60),
        sc.StochasticVB(max_iter=4, batch_size=16),
        sc.Gibbs(max_iter=60, n_init=1),
    ],
    ids=str,
)
def test_topics_of_simulated_documents_are_found(learner: Any) -> None:
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.full(40, 0.1), 4)
    theta = rng.dirichlet(np.full(4, 0.2), 300)
    x = np.array([rng.multinomial(60, row) for row in theta @ truth])
    model = LDA(4, learner=learner, random_state=1).fit(x)
    closest = np.array([[np.abs(a - b).sum() for b in model.topics_] for a in truth])
    assert sorted(closest.argmin(axis=1)) == [0, 1, 2, 3]
    assert closest.min(axis=1).max() < 0.4


def test_documents_without_words_and_words_without_topics() -> None:
    model = LDA(2).fit(["a b a", "c d", "", "b a", "d d c"])
    shares = model.transform(["", "unheard of", "a b"])
    assert shares[:2] == pytest.approx(0.5)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert model.score_samples([""]).tolist() == [0.0]
    assert (
        PLSA(2, short_runs=0).fit([[1, 1, 0], [1, 2, 0]]).score_samples([[0, 0, 1]])[0] == -np.inf
    )


def test_similar_documents_and_new_ones() -> None:
    texts = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5
    model = LDA(2).fit(texts)
    assert {number % 4 for number, _ in model.similar("team cup", 5)} <= {0, 1}
    assert len(model.generate(3)) == 3
    assert set(" ".join(model.generate(20)).split()) <= set(model.vocabulary_)
    assert len(model.top_words(3)) == 2


def test_many_threads_give_the_same_bits() -> None:
    x = np.random.default_rng(0).poisson(0.7, (60, 30))
    one, two = (
        LDA(5, engine=sc.Local(threads), learner=sc.EM(max_iter=10)).fit(x) for threads in (1, 2)
    )
    assert one.topics_.tobytes() == two.topics_.tobytes()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_components": 0}, "n_components"),
        ({"smoothing": {"documents": -1}}, "documents"),
        ({"init": "guess"}, "guess"),
        ({"learner": sc.VariationalBayes(), "smoothing": {"documents": 0.0}}, "prior"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings: Any, said: str) -> None:
    with pytest.raises(sc.LearnerError, match=said):
        LDA(**settings).fit(NOTES)


# Faults that a hostile reader of topic models found.


X, TOPICS = plain_topics.documents()
TEXTS = ["cup goal team", "goal team match", "oil price", "market price oil", ""] * 4


@pytest.fixture(scope="module")
def model() -> sc.LDA:
    return sc.LDA(3).fit(sparse.csr_matrix(X))


@pytest.mark.parametrize(
    "row",
    [sparse.csr_matrix(X)[4], sparse.csr_array(X)[4], sparse.csr_array(X)[[4]], X[[4]], list(X[4])],
    ids=["sparse matrix", "sparse vector", "sparse array", "table of one row", "list"],
)
def test_a_query_is_one_row_of_counts_in_any_form(model: sc.LDA, row: Any) -> None:
    assert model.similar(row, 3, 0.5) == model.similar(X[4], 3, 0.5)
    assert model.similar(row, 1, 0.5)[0][0] == 4


def test_several_rows_are_no_query(model: sc.LDA) -> None:
    with pytest.raises(DataError, match="2 rows"):
        model.similar(sparse.csr_matrix(X)[:2])


@pytest.mark.filterwarnings("error")
def test_a_query_that_is_a_row_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{w}" for w in range(X.shape[1])])
    own = sc.LDA(3).fit(frame)
    assert own.similar(frame.iloc[4], 1)[0][0] == own.similar(frame.iloc[[4]], 1)[0][0] == 4


@pytest.mark.parametrize("n", [0, -1, 2.5, "two"])
def test_documents_are_generated_in_whole_numbers(model: sc.LDA, n: Any) -> None:
    with pytest.raises(LearnerError, match="n="):
        model.generate(n)


@pytest.mark.parametrize("kind", ["plsa", "lda"])
@pytest.mark.parametrize("learner", [sc.VariationalBayes(), sc.Gibbs(), sc.CollapsedGibbs()])
def test_learners_of_a_posterior_say_which_priors_they_need(kind: str, learner: Any) -> None:
    without = sc.PLSA(2, learner=learner) if kind == "plsa" else sc.LDA(2, smoothing={"words": 0})
    with pytest.raises(LearnerError, match="smoothing"):
        without.set_params(learner=learner).fit(X)


def test_seeds_that_are_lists_of_lists() -> None:
    with pytest.raises(DataError, match="seed word"):
        sc.LDA(2, seed_words={0: [["oil", "price"]]}).fit(TEXTS)


@pytest.mark.parametrize("strength", [1e9, 1e30])
@pytest.mark.parametrize("learner", [None, sc.CollapsedGibbs(max_iter=2)])
def test_seeds_beyond_counting(strength: float, learner: Any) -> None:
    with pytest.raises(LearnerError, match="seed_strength"):
        sc.LDA(2, seed_words={0: ["oil"]}, seed_strength=strength, learner=learner).fit(TEXTS)


def test_a_fitted_model_keeps_its_topics_whatever_is_set_for_the_next_fit() -> None:
    own = sc.LDA(3).fit(X)
    before = own.transform(X)
    own.set_params(n_components=4)
    np.testing.assert_array_equal(own.transform(X), before)
    assert len(own.get_feature_names_out()) == 3
    assert own.fit(X).transform(X).shape == (len(X), 4)


def test_columns_have_no_names_before_learning() -> None:
    with pytest.raises(NotFittedError):
        sc.LDA(3).get_feature_names_out()


def test_a_page_of_columns_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    own, index = sc.LDA(2).fit(TEXTS), range(7, 7 + len(TEXTS))
    texts, names = pd.Series(TEXTS, index=index), pd.Series(map(str, index), index=index)
    times = pd.Series(pd.date_range("2020-01-01", periods=len(TEXTS)), index=index)
    page = sc.topics.topic_report(own, texts=texts, names=names, dates=times)
    plain = {"texts": TEXTS, "names": names.tolist(), "dates": times.tolist()}
    assert page == sc.topics.topic_report(own, **plain)
    assert page == sc.topics.topic_report(own, **{**plain, "texts": iter(TEXTS)})


def test_empty_documents_have_no_largest_topic_on_the_page() -> None:
    own = sc.LDA(1).fit(TEXTS)
    assert "the largest in 16 documents" in sc.topics.topic_report(own, texts=TEXTS)
    lengths = [len(text.split()) for text in TEXTS]
    assert "the largest in 16 documents" in sc.topics.topic_report(own, lengths=lengths)


@pytest.mark.parametrize("prior", ["much", np.array([0.1, 0.2, 0.3]), None, np.nan])
def test_completion_has_one_prior(model: sc.LDA, prior: Any) -> None:
    with pytest.raises(DataError, match="smoothing"):
        completion(model, X, smoothing=prior)


def test_what_is_generated_from_lists_of_words_can_be_read_again() -> None:
    own = sc.LDA(2).fit([text.split() for text in TEXTS])
    made = own.generate(9, 1)
    assert own.transform(made).shape == (9, 2)
    assert {word for words in made for word in words} <= set(own.vocabulary_)
    assert [" ".join(words) for words in made] == sc.LDA(2).fit(TEXTS).generate(9, 1)


def test_words_without_names_are_generated_as_counts() -> None:
    counter = HashingVectorizer(n_features=16, alternate_sign=False, norm=None)
    assert sc.LDA(2, vectorizer=counter).fit(TEXTS).generate(3).shape == (3, 16)


def test_top_words_are_for_models_that_have_learned(model: sc.LDA) -> None:
    with pytest.raises(NotFittedError):
        sc.LDA(2).top_words()
    with pytest.raises(LearnerError, match="n=-1"):
        model.top_words(-1)


BATCH_LEARNERS = [None, sc.OnlineEM(batch_size=7), sc.StochasticVB(batch_size=7)]


@pytest.mark.parametrize("learner", BATCH_LEARNERS)
@pytest.mark.parametrize("known", [{}, {"seed_words": {1: [3, 4]}}, {"frozen_topics": X[:1] + 1.0}])
def test_a_model_from_a_file_learns_on_as_if_it_had_never_been_there(
    learner: Any, known: dict[str, Any], tmp_path: Path
) -> None:
    own = sc.LDA(3, learner=learner, smoothing={"words": 0.3}, **known).partial_fit(X[:30])
    own.save(tmp_path / "m")
    again = sc.load(tmp_path / "m", learner=learner).partial_fit(X[30:])
    own.partial_fit(X[30:])
    np.testing.assert_allclose(again.topics_, own.topics_, rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(again.weights_, own.weights_, rtol=1e-8)


def test_seeds_count_once_when_learning_goes_on() -> None:
    """The same documents once more: twice as many words, and as many seeds as before."""
    own = sc.LDA(3, seed_words={1: [3]}, seed_strength=2.0, smoothing={"words": 0.0}).fit(X)
    seeds, words = 2.0 * X[:, 3].sum(), own.weights_[1] * X.sum()
    seen = own.topics_[1, 3] * (words + seeds) - seeds
    own.partial_fit(X)
    assert own.topics_[1, 3] == pytest.approx((2 * seen + seeds) / (2 * words + seeds), rel=0.05)


def test_a_model_that_is_to_become_another_is_not_saved(tmp_path: Path) -> None:
    """The file would speak of topics that it does not have."""
    model = sc.LDA(3).fit(X).set_params(n_components=4)
    with pytest.raises(sc.LearnerError, match="3 topics"):
        model.save(tmp_path / "m")
    model.set_params(n_components=3).save(tmp_path / "m")
    assert sc.load(tmp_path / "m").n_components == 3


# The topics of documents are those of the state that topics and trace are of.


SMALL_X, _ = plain_topics.documents(n=40, V=12, length=15)
K, SMALL_V = 3, SMALL_X.shape[1]
START = np.random.default_rng(5).dirichlet(np.ones(SMALL_V), K)
BATCH = [
    learner
    for learner in LEARNERS
    if learner is None
    or not (
        learner.m == "draw" or isinstance(learner, sc.TemperedEM | sc.OnlineEM | sc.StochasticVB)
    )
]
FOLDED = [learner for learner in LEARNERS if learner not in BATCH]


def plain_states(steps: int, of_documents: float = 0.0, of_words: float = 0.0) -> list[Any]:
    """(θ, φ) at the start and after each step of EM, written out."""
    theta, phi = plain_topics.even(len(SMALL_X), K), START
    states = [(theta, phi)]
    for _ in range(steps):
        n_dk, n_kw, _ = plain_topics.expected(SMALL_X, theta, phi)
        theta = plain_topics.normal(n_dk + of_documents)
        phi = plain_topics.normal(n_kw + of_words)
        states.append((theta, phi))
    return states


def likelihood(x: Any, theta: Any, phi: Any) -> float:
    chances = np.where(x > 0, theta @ phi, 1.0)
    return float((x * np.log(chances)).sum())


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize(
    ("model", "added"), [(sc.PLSA(K), (0.0, 0.0)), (sc.LDA(K), (0.1, 0.01))], ids=["PLSA", "LDA"]
)
def test_documents_are_those_of_the_last_m_step(model: Any, added: Any, steps: int) -> None:
    model.set_params(learner=sc.EM(max_iter=steps, tol=0), short_runs=0)
    model.fit(SMALL_X, init={"topics": START}, keep_params=True)
    states = plain_states(steps, *added)
    np.testing.assert_allclose(model.documents_, states[-1][0], rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.topics_, states[-1][1], rtol=1e-9, atol=1e-14)
    for params, (theta, phi) in zip(model.trace_.params, states, strict=True):
        np.testing.assert_allclose(params["documents"], theta, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(params["topics"], phi, rtol=1e-9, atol=1e-14)
    logs = [likelihood(SMALL_X, *state) for state in states]
    np.testing.assert_allclose(model.trace_.log_likelihood, logs, rtol=1e-12)


def test_one_step_leaves_documents_near_where_they_began() -> None:
    """Folded in to the end, they would be as good as all of one topic."""
    counts = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 1]])
    topics = np.array([[0.26, 0.25, 0.25, 0.24], [0.24, 0.25, 0.25, 0.26]])
    model = sc.PLSA(2, short_runs=0, learner=sc.EM(max_iter=1, tol=0))
    model.fit(counts, init={"topics": topics})
    first = (2 * 0.26 / 0.5 + 0.25 / 0.5) / 3
    assert model.documents_[0] == pytest.approx([first, 1 - first])
    assert model.transform(counts)[0].max() > 0.95


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("learner", BATCH, ids=str)
def test_tables_and_trace_belong_together(learner: Any, on_disk: bool, tmp_path: Path) -> None:
    """Whatever learner, however the documents are cut, of the best of several runs."""
    data: Any = SMALL_X
    if on_disk:
        with patch.multiple(building, SHARD_DOCUMENTS=9):
            data = sc.text.Archive.build(SMALL_X, tmp_path / "a")
    labels = [0, -1, [1, 2], -1] * 10
    model = sc.LDA(K, learner=learner, init="random", short_runs=0).fit(data, labels=labels)
    if learner is not None and learner.m == "mean_field":
        model.fit(data, labels=labels, keep_params=True)
        theta, phi = (model.trace_.params[-1][name] for name in ("documents", "topics"))
    else:
        theta, phi = model.documents_, model.topics_
    last = model.trace_.log_likelihood[-1]
    assert likelihood(SMALL_X, theta, phi) == pytest.approx(last, rel=1e-10)
    assert not model.documents_[0::4, 1:].any()
    assert not model.documents_[2::4, 0].any()
    np.testing.assert_allclose(model.documents_.sum(axis=1), 1.0)
    words = SMALL_X.sum(axis=1)
    np.testing.assert_allclose(model.weights_, words @ model.documents_ / words.sum())


def test_of_several_runs_the_best_ones_are_kept() -> None:
    learner = sc.EM(max_iter=3, tol=0, n_init=5)
    model = sc.PLSA(K, learner=learner, init="random", short_runs=0).fit(SMALL_X)
    finals = [trace.objective[-1] for trace in model.fit_.traces]
    assert model.trace_.objective[-1] == max(finals) > min(finals)
    assert likelihood(SMALL_X, model.documents_, model.topics_) == pytest.approx(
        max(finals), rel=1e-12
    )


def test_of_several_runs_those_that_development_chooses_are_kept() -> None:
    learner = sc.EM(max_iter=3, tol=0, n_init=5)
    model = sc.PLSA(K, learner=learner, init="random", short_runs=0).fit(
        SMALL_X, development=SMALL_X[:3]
    )
    last = model.trace_.log_likelihood[-1]
    assert likelihood(SMALL_X, model.documents_, model.topics_) == pytest.approx(last, rel=1e-12)


def test_under_mean_field_they_are_the_posteriors_mean() -> None:
    alpha, beta = 0.3, 0.2
    learner = sc.VariationalBayes(max_iter=4, tol=0)
    model = sc.LDA(K, smoothing={"documents": alpha, "words": beta}, learner=learner, short_runs=0)
    model.fit(SMALL_X, init={"topics": START})
    gamma, phi = SMALL_X.sum(axis=1, keepdims=True) / K + alpha + np.zeros((len(SMALL_X), K)), START
    for _ in range(4):
        theta = np.exp(digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True)))
        n_dk, n_kw, _ = plain_topics.expected(SMALL_X, theta, phi)
        gamma, lam = n_dk + alpha, n_kw + beta
        phi = np.exp(digamma(lam) - digamma(lam.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(model.documents_, plain_topics.normal(gamma), rtol=1e-9)
    np.testing.assert_allclose(model.topics_, plain_topics.normal(lam), rtol=1e-9)


@pytest.mark.parametrize("learner", FOLDED, ids=str)
def test_rows_that_are_no_part_of_learning_are_folded_in(learner: Any) -> None:
    model = sc.LDA(K, learner=learner).fit(SMALL_X)
    np.testing.assert_array_equal(model.documents_, model.fold_in_training_documents())
    np.testing.assert_array_equal(model.documents_, model.transform(SMALL_X))


def test_folding_in_stays_what_it_was(tmp_path: Path) -> None:
    labels = [0, -1, [1, 2], -1] * 10
    model = sc.LDA(K, learner=sc.EM(max_iter=3, tol=0)).fit(SMALL_X, labels=labels)
    folded = model.fold_in_training_documents()
    assert not folded[0::4, 1:].any()
    np.testing.assert_array_equal(folded[1::2], model.transform(SMALL_X)[1::2])
    again = sc.LDA(K, learner=sc.EM(max_iter=3, tol=0)).fit_transform(SMALL_X, labels=labels)
    np.testing.assert_array_equal(again, folded)
    model.save(tmp_path / "m")
    loaded = sc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.documents_, model.documents_)
    with pytest.raises(DataError, match="transform"):
        loaded.fold_in_training_documents()


def test_the_same_bits_on_one_thread_and_on_many(tmp_path: Path) -> None:
    with patch.multiple(building, SHARD_DOCUMENTS=9):
        archive = sc.text.Archive.build(SMALL_X, tmp_path / "a")
    for data in (SMALL_X, archive):
        one, two = (
            sc.LDA(K, engine=sc.Local(threads), learner=sc.EM(max_iter=4, tol=0)).fit(data)
            for threads in (1, 2)
        )
        assert one.documents_.tobytes() == two.documents_.tobytes()


def test_params_may_be_given_back_as_a_start() -> None:
    """The topics are; the rows of documents are begun anew, as they always were."""
    model = sc.PLSA(K, short_runs=0, learner=sc.EM(max_iter=2, tol=0)).fit(SMALL_X)
    assert set(model.params_) == {"topics", "documents"}
    again, plain = (
        sc.PLSA(K, short_runs=0, init=init, learner=sc.EM(max_iter=2, tol=0)).fit(SMALL_X)
        for init in (model.params_, {"topics": model.topics_})
    )
    np.testing.assert_array_equal(again.topics_, plain.topics_)


# scikit-learn's own checks of estimators.


MODELS = [sc.PLSA(3), sc.LDA(3), sc.LDA(3, learner=sc.StochasticVB(max_iter=5))]
REPEATED_TEXTS = ["cup goal team", "goal team match", "oil price", "market price oil"] * 5


@pytest.mark.filterwarnings(
    "ignore::softcount.errors.IgnoredLabelsWarning"
)  # checks give y to everyone
@checks([MODELS[1]], [MODELS[0], MODELS[2]])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_columns_that_come_out_are_topics() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"w{w}" for w in range(X.shape[1])])
    out = sc.LDA(3).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["lda0", "lda1", "lda2"]
    both = make_union(sc.LDA(3), sc.PLSA(2)).fit(frame)
    assert both.transform(frame).shape == (len(X), 5)


def test_a_pipeline_from_texts() -> None:
    found = make_pipeline(sc.LDA(2), sc.KMeans(2)).fit(REPEATED_TEXTS).predict(REPEATED_TEXTS)
    assert len({*found[0::4], *found[1::4]}) == len({*found[2::4], *found[3::4]}) == 1
    assert found[0] != found[2]


def test_a_grid_search_over_the_number_of_topics() -> None:
    search = GridSearchCV(
        sc.LDA(2, learner=sc.EM(max_iter=10)), {"n_components": [1, 3]}, cv=2
    ).fit(X)
    assert search.best_params_ == {"n_components": 3}


def test_fit_transform_is_what_transform_gives_after_it() -> None:
    for model in MODELS:
        found = clone(model).fit_transform(X)
        np.testing.assert_allclose(found, clone(model).fit(X).transform(X), atol=1e-12)
