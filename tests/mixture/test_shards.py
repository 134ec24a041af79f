"""Mixtures cut into shards: by the data alone, sums as of one shard, and shards that travel."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from softcount.core.errors import StoreError
from softcount.core.laws import check_model
from softcount.core.records import pack, unpack
from softcount.core.types import ColumnCounts, EStep, Stats
from softcount.engines.blocks import tree_sum
from softcount.families import Categorical
from softcount.mixture import data
from softcount.mixture.core import BagEmission, WordCore, WordPresence
from softcount.mixture.data import MixtureCorpus, Points
from softcount.mixture.gibbs import CollapsedMixture, Restaurant
from softcount.text import bags
from softcount.text.bags import Bags

RNG = np.random.default_rng(4)
X = RNG.poisson(0.6, (60, 12))
X[5] = 0  # an empty document
POINTS = RNG.normal(size=(60, 3)) + 3.0 * RNG.integers(0, 3, (60, 1))
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], 60)
HARD = np.where(np.arange(60) % 3 == 0, RNG.integers(2, size=60), -1)
SOFT = np.where((np.arange(60) % 2 == 0)[:, None], RNG.dirichlet([1.0, 1.0], 60), np.nan)

Bind = Callable[[], tuple[Any, MixtureCorpus]]


def words(model: Any, *given: Any) -> Bind:
    return lambda: model._bind(X, *given)


def points(model: Any, *given: Any) -> Bind:
    return lambda: model._bind(POINTS, *given)


CASES: dict[str, Bind] = {
    "multinomial": words(sc.MultinomialMixture(3)),
    "multinomial, weights": words(sc.MultinomialMixture(3), WEIGHTS),
    "bernoulli": words(sc.MultinomialMixture(3, bernoulli=True)),
    "labels": words(sc.NaiveBayes(n_components=2), HARD),
    "labels, weights": words(sc.NaiveBayes(unlabelled_weight=0.5), HARD, WEIGHTS),
    "soft labels": words(sc.NaiveBayes(n_components=2), SOFT),
    "soft labels, bernoulli": words(sc.NaiveBayes(bernoulli=True), SOFT, WEIGHTS),
    "dirichlet process": words(sc.DirichletProcessMixture(6)),
    "full": points(sc.GaussianMixture(3)),
    "full, weights": points(sc.GaussianMixture(3), WEIGHTS),
    "tied": points(sc.GaussianMixture(3, covariance="tied")),
    "diag": points(sc.GaussianMixture(3, covariance="diag")),
    "spherical": points(sc.GaussianMixture(3, covariance="spherical")),
    "identity": points(sc.GaussianMixture(3, covariance="identity")),
    "k-means": points(sc.KMeans(3)),
    "dirichlet process, points": points(sc.DirichletProcessGaussianMixture(5)),
}

HOWS = {
    "soft": EStep(),
    "tempered": EStep(temper=0.6),
    "hard": EStep(fill="hard"),
    "sample": EStep(fill="sample", samples=3, stream=9),
    "score": EStep(score_only=True),
}


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MOST_POINTS", 7)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)


def figures(stats: Stats) -> dict[str, Any]:
    names = ("log_likelihood", "score", "items", "tokens", "magnitude")
    counts = {name: np.asarray(counts) for name, counts in stats.counts.items()}
    return counts | {name: getattr(stats, name) for name in names}


def bits(stats: Stats) -> dict[str, bytes]:
    return {name: np.asarray(figure).tobytes() for name, figure in figures(stats).items()}


def start(core: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {name: family.random(rng) for name, family in core.families.items()}


# the cut


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("case", CASES)
def test_many_shards_sum_to_one(case: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    core, corpus = CASES[case]()
    (whole,), params = corpus.shards(), start(core)
    monkeypatch.setattr(data, "MOST_POINTS", 7)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)
    shards = corpus.shards()
    assert [len(shard) for shard in shards] == [7] * 8 + [4]
    one = figures(core.expect(params, whole, HOWS[how]))
    many = figures(tree_sum(core.expect(params, shard, HOWS[how]) for shard in shards))
    assert one.keys() == many.keys()
    for name, figure in one.items():
        assert many[name] == pytest.approx(figure, rel=1e-12, abs=1e-12), name


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("case", ["multinomial", "bernoulli", "diag"])
def test_the_laws_hold_with_many_shards(case: str) -> None:
    core, corpus = CASES[case]()
    assert len(corpus.shards()) > 8

    class Bound:
        def _bind(self, _: Any) -> Any:
            return core, corpus

    report = check_model(Bound(), None)
    report.raise_if_failed()
    assert "many shards are one" in [law.name for law in report]


@pytest.mark.parametrize("cut", [False, True])
def test_shards_of_consecutive_items_are_views(cut: bool, request: pytest.FixtureRequest) -> None:
    if cut:
        request.getfixturevalue("small_shards")
    for case in ("labels, weights", "soft labels", "full, weights"):
        corpus = CASES[case]()[1]
        for shard in corpus.shards():
            pairs = [
                (getattr(shard.known, name), getattr(corpus.known, name))
                for name in ("lower", "upper", "weights", "soft_labels")
            ]
            if isinstance(corpus.x, Points):
                pairs.append((shard.x.x, corpus.x.x))
            else:
                pairs.append((shard.x.by_document.columns, corpus.x.by_document.columns))
                pairs.append((shard.x.by_document.value, corpus.x.by_document.value))
            for mine, whole in pairs:
                assert whole is None or np.shares_memory(mine, whole)


def test_a_full_shard_has_many_entries_for_each_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bags, "ENTRIES_PER_WORD", 2)
    monkeypatch.setattr(bags, "LEAST_ENTRIES", 10)
    monkeypatch.setattr(bags, "MOST_ENTRIES", 60)
    for n_words, most in ((3, 10), (10, 20), (50, 60)):
        matrix = sparse.random(200, n_words, 0.5, random_state=0)
        x = Bags.of(matrix)
        entries = np.diff(x.by_document.indptr[[first for first, _ in x.cut()] + [200]])
        assert entries.max() <= most
        following = x.by_document.indptr[[last + 1 for _, last in x.cut()[:-1]]]
        begun = x.by_document.indptr[[first for first, _ in x.cut()[:-1]]]
        assert (following - begun > most).all()  # one document more would be too many


@pytest.mark.parametrize(
    ("n_dims", "n_points"), [(1, 8192), (8, 8192), (64, 8192), (256, 2048), (512, 4096)]
)
def test_points_of_many_dimensions_have_smaller_shards(n_dims: int, n_points: int) -> None:
    x = Points(np.broadcast_to(0.0, (20_000, n_dims)))
    assert x.cut()[0] == (0, n_points)
    assert x.cut()[-1][1] == 20_000


def test_no_items_are_one_empty_shard() -> None:
    assert Bags.of(sparse.csr_matrix((0, 4))).cut() == [(0, 0)]
    assert Points(np.zeros((0, 4))).cut() == [(0, 0)]


# what is learned

LEARNERS = {
    "em": sc.EM(max_iter=6, tol=0.0),
    "squarem": sc.EM(max_iter=4, tol=0.0, schedule=sc.learners.Squarem()),
    "hard": sc.HardEM(max_iter=6),
    "sampled": sc.MonteCarloEM(max_iter=5, samples=2),
    "tempered": sc.EM(max_iter=6, tol=0.0, temper=(0.5, 0.8, 1.0)),
    "vb": sc.VariationalBayes(max_iter=6, tol=0.0),
    "gibbs": sc.Gibbs(max_iter=6),
    "stepwise": sc.OnlineEM(max_iter=3, tol=0.0, batch_size=8),
    "incremental": sc.IncrementalEM(max_iter=3, tol=0.0, batch_size=8),
    "collapsed": sc.CollapsedGibbs(max_iter=6),
}


def learn(kind: str, learner: Any) -> Any:
    if kind == "words":
        return sc.NaiveBayes(n_components=2, learner=learner, smoothing=0.5).fit(X, HARD)
    model = sc.GaussianMixture(3, init="random", learner=learner, covariance="diag")
    return model.fit(POINTS, sample_weight=WEIGHTS + 0.5)


@pytest.mark.parametrize(
    ("kind", "learner"),
    [("words", name) for name in LEARNERS]
    + [("points", name) for name in LEARNERS if name != "collapsed"],
)
def test_learning_from_many_shards(
    kind: str, learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = learn(kind, LEARNERS[learner])
    monkeypatch.setattr(data, "MOST_POINTS", 7)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)
    many = learn(kind, LEARNERS[learner])
    if learner == "collapsed":  # draws in turn, from all shards at once
        assert many.raw_params_["words"].tobytes() == one.raw_params_["words"].tobytes()
    for name, table in one.raw_params_.items():
        assert many.raw_params_[name] == pytest.approx(table, rel=1e-8, abs=1e-10)
    assert many.trace_.objective == pytest.approx(one.trace_.objective, rel=1e-9)


@pytest.mark.parametrize("case", ["multinomial", "bernoulli", "full", "spherical"])
def test_predictions_do_not_depend_on_the_cut(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[str, Any] = {
        "multinomial": (sc.MultinomialMixture(3, max_iter=3), X),
        "bernoulli": (sc.MultinomialMixture(3, bernoulli=True, max_iter=3), X),
        "full": (sc.GaussianMixture(3, max_iter=3), POINTS),
        "spherical": (sc.GaussianMixture(3, covariance="spherical", max_iter=3), POINTS),
    }
    model, x = kinds[case]
    model.fit(x)
    proba, scores, classes = model.predict_proba(x), model.score_samples(x), model.predict(x)
    monkeypatch.setattr(data, "MOST_POINTS", 7)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)
    assert model.predict_proba(x) == pytest.approx(proba, rel=1e-12, abs=1e-12)
    assert model.score_samples(x) == pytest.approx(scores, rel=1e-12)
    assert model.predict(x).tolist() == classes.tolist()


# shards that touch few words


def few_words() -> tuple[WordCore, MixtureCorpus]:
    """Documents of which the first half has other words than the second, out of many."""
    x = np.zeros((20, 90))
    x[:10, 3:15] = RNG.poisson(1.0, (10, 12))
    x[10:, 20:50] = RNG.poisson(1.0, (10, 30))
    weights = Categorical((1, 3))
    core = WordCore("mixture", weights, BagEmission(3, 90, 1.5))
    return core, MixtureCorpus(Bags.of(x), data.ClassConstraints.nothing(20, 3))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["soft", "hard", "sample", "tempered"])
def test_counts_of_few_words_are_sparse(
    how: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.kernels.threads.FEW", 1)
    core, corpus = few_words()
    params = start(core)
    step = EStep(HOWS[how].fill, HOWS[how].temper, HOWS[how].samples, 9, threads)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 10)
    sparse_ones = [core.expect(params, shard, step) for shard in corpus.shards()]
    for stats in sparse_ones:
        assert isinstance(stats.counts["words"], ColumnCounts)
        assert stats.counts["words"].value.shape[0] <= 30
    total = tree_sum(sparse_ones)
    assert isinstance(total.counts["words"], ColumnCounts)  # 42 of 90 words
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 20)
    (whole,) = corpus.shards()
    for name, figure in figures(core.expect(params, whole, step)).items():
        assert figures(total)[name] == pytest.approx(figure, rel=1e-12, abs=1e-12)


def test_sparse_counts_are_those_of_all_words() -> None:
    core, corpus = few_words()
    other = Bags(corpus.x.by_document, 90)  # type: ignore[attr-defined]
    vars(other)["own_words"] = None
    params = start(core)
    (few,), (all_,) = corpus.shards(), MixtureCorpus(other, corpus.known).shards()
    for how in HOWS.values():
        assert bits(core.expect(params, few, how)) == bits(core.expect(params, all_, how))
    assert isinstance(core.expect(params, few, EStep()).counts["words"], ColumnCounts)
    assert isinstance(core.expect(params, all_, EStep()).counts["words"], np.ndarray)


def test_other_words_than_the_models_are_refused() -> None:
    core, _ = few_words()
    for n_words in (3, 89, 200):
        x = Bags.of(sparse.csr_matrix(([1.0], ([0], [n_words - 1])), (1, n_words)))
        known = data.ClassConstraints.nothing(1, 3)
        with pytest.raises(sc.DataError, match=f"have {n_words} words, the model 90"):
            core.expect(start(core), MixtureCorpus(x, known).shards()[0], EStep())


# shards that travel


def travels(value: Any) -> list[Any]:
    """Copies by pickle and, for what is a record, by way of JSON and arrays."""
    return [pickle.loads(pickle.dumps(value)), unpack(*pack(value))]


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("case", CASES)
def test_shards_travel_without_caches(case: str) -> None:
    core, corpus = CASES[case]()
    params = start(core)
    sent = pickle.loads(pickle.dumps(core))
    shard = corpus.shards()[2]
    size = len(pickle.dumps(shard))
    for how in HOWS.values():
        before = core.expect(params, shard, how)
        assert all(bits(sent.expect(params, s, how)) == bits(before) for s in travels(shard))
    if isinstance(shard.x, Bags):
        _ = shard.x.matrix, shard.x.by_word, shard.x.lengths, shard.x.word_counts, shard.x.own
    assert len(pickle.dumps(shard)) == size  # the caches are full now
    assert len(pickle.dumps(corpus.shards()[2].x)) < 1300  # of its own items alone


def test_families_of_many_rows_travel_as_their_settings() -> None:
    for prior in (1.5, RNG.uniform(1.0, 2.0, (6000, 2))):
        family = WordPresence(3, 2000, prior)
        sent = pickle.loads(pickle.dumps(family))
        assert len(pickle.dumps(family)) < 300 + np.size(prior) * 8
        counts = RNG.exponential(size=(6000, 2))
        for each in ("maximise", "mean_field"):
            made = (getattr(f, each)(counts, family.uniform(), RNG) for f in (family, sent))
            assert len({table.tobytes() for table in made}) == 1
        assert sent.n_classes == 3
        assert sent.alike(family.uniform())


# the collapsed sampler


def sampler(kind: str) -> CollapsedMixture:
    rng = np.random.default_rng(7)
    alpha: Any = Restaurant(1.5, 6) if kind == "restaurant" else np.full(6, 0.4)
    known = {"allowed": (np.where(np.arange(60) % 4, 0, 2), np.where(np.arange(60) % 4, 6, 4))}
    return CollapsedMixture(
        *Bags.of(X).by_document,
        12,
        alpha=alpha,
        beta=0.3,
        assignments=2 + rng.integers(2, size=60),
        **(known if kind == "labels" else {}),  # type: ignore[arg-type]
    )


def trajectory(one: CollapsedMixture, sweeps: range) -> list[Any]:
    found: list[Any] = []
    for sweep in sweeps:
        one.sweep(sweep, temper=0.9 if sweep % 3 == 0 else 1.0)
        counts = {name: table.tobytes() for name, table in one.counts().items()}
        found.append((one.assignments.tolist(), one.log_joint(), one.full, counts))
    return found


@pytest.mark.parametrize("kind", ["dirichlet", "restaurant", "labels"])
def test_a_sampler_continues_from_its_state(kind: str) -> None:
    one = sampler(kind)
    trajectory(one, range(5))
    state = unpack(*pack(one.state()))
    expected = trajectory(one, range(5, 12))
    again = sampler(kind)
    trajectory(again, range(20, 23))
    again.restore(state)
    assert trajectory(again, range(5, 12)) == expected
    one.restore(state)  # the state is a copy
    assert trajectory(one, range(5, 12)) == expected


def test_a_full_restaurant_is_still_full_when_it_is_restored() -> None:
    one = sampler("restaurant")
    one.full = True
    again = sampler("restaurant")
    again.restore(one.state())
    assert again.full


def test_states_of_other_samplers_are_refused() -> None:
    one = sampler("labels")
    for classes in (np.zeros(59, np.int64), np.full(60, 6), np.full(60, -1), np.zeros(60, int)):
        with pytest.raises(StoreError, match="other documents"):
            one.restore({"classes": classes, "full": np.array([False])})


@pytest.mark.parametrize("model", [sc.MultinomialMixture(3), sc.DirichletProcessMixture(5)])
def test_a_sampler_of_many_shards_is_that_of_one(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, corpus = model._bind(X)
    params = start(core)
    one = core.collapse(corpus.shards(), params, 3)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)
    assert len(corpus.shards()) == 9
    many = core.collapse(corpus.shards(), params, 3)
    assert many.assignments.tolist() == one.assignments.tolist()
    assert trajectory(many, range(4)) == trajectory(one, range(4))
