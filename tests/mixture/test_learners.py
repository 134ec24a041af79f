"""Every learner on every mixture; Bayesian ones against posteriors that can be enumerated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal

import softcount as sc
from softcount.mixture import data
from softcount.text import bags

Array = np.ndarray


def documents(n: int = 40) -> tuple[Array, Array]:
    """Three classes of documents, and the class of each."""
    rng = np.random.default_rng(0)
    words, z = rng.dirichlet(np.full(8, 0.3), 3), rng.integers(3, size=n)
    return np.array([rng.multinomial(6, words[k]) for k in z]), z


X, TRUE = documents()
PARTLY = np.where(np.arange(40) % 4 == 0, TRUE, -1)
RNG = np.random.default_rng(1)
POINTS = RNG.normal(size=(40, 2)) + 4.0 * RNG.integers(0, 3, (40, 1))

Fit = Callable[[Any], Any]


def words(kind: Any, n: int, **options: Any) -> Fit:
    return lambda learner: kind(n, init="random", learner=learner, **options).fit(X)


def bayes(**options: Any) -> Fit:
    return lambda learner: sc.NaiveBayes(learner=learner, **options).fit(X, PARTLY)


def points(kind: Any, n: int, **options: Any) -> Fit:
    return lambda learner: kind(n, init="random", learner=learner, **options).fit(POINTS)


WORD_MODELS: dict[str, Fit] = {
    "multinomial": words(sc.MultinomialMixture, 3),
    "naive bayes": bayes(),
    "naive bayes, components": bayes(n_components=2),
    "dirichlet process": words(sc.DirichletProcessMixture, 6),
}
MODELS: dict[str, Fit] = {
    **WORD_MODELS,
    "bernoulli": words(sc.MultinomialMixture, 3, bernoulli=True),
    "bernoulli naive bayes": bayes(bernoulli=True),
    "naive bayes, scaled": bayes(length=4.0, unlabelled_weight=0.5),
    **{
        f"gaussian, {kind}": points(sc.GaussianMixture, 3, covariance=kind)
        for kind in ("full", "tied", "diag", "spherical", "identity")
    },
    "k-means": points(sc.KMeans, 3),
    "soft k-means": points(sc.SoftKMeans, 3),
    "dirichlet process, gaussian": points(sc.DirichletProcessGaussianMixture, 6),
}
LEARNERS: dict[str, Any] = {
    "EM": sc.EM(max_iter=15),
    "HardEM": sc.HardEM(max_iter=15),
    "OnlineEM": sc.OnlineEM(max_iter=4, batch_size=8),
    "IncrementalEM": sc.IncrementalEM(max_iter=8, batch_size=8),
    "VariationalBayes": sc.VariationalBayes(max_iter=15),
    "StochasticVB": sc.StochasticVB(max_iter=4, batch_size=8),
    "MonteCarloEM": sc.MonteCarloEM(max_iter=6),
    "Gibbs": sc.Gibbs(max_iter=8, n_init=2),
    "Squarem": sc.EM(max_iter=8, schedule=sc.learners.Squarem()),
    "anneal": sc.EM(max_iter=30, temper=sc.learners.anneal(0.3, 10)),
    "several starts": sc.EM(max_iter=5, n_init=3),
}


def demand_proper(model: Any) -> None:
    """Proper parameters, and figures at every step."""
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (model.weights_ >= 0.0).all()
    if hasattr(model, "words_"):
        assert np.isfinite(model.words_).all()
        assert (model.words_ >= 0.0).all()
        if not model.bernoulli:
            np.testing.assert_allclose(model.words_.sum(axis=1), 1.0)
    else:
        assert np.isfinite(model.means_).all()
        assert np.isfinite(model.covariances_).all()
    assert np.isfinite(model.trace_.log_likelihood[1:]).all()


def slips(model: Any) -> float:
    """The deepest fall of the objective within one step, as a part of its size."""
    falls = []
    for trace in model.fit_.traces:
        temper = np.array([state.temper for state in trace])
        objective = trace.objective
        for t in range(1, len(trace)):
            if trace[t].restarted:  # classes were merged, and what follows must make up for it
                continue
            if temper[t] == temper[t - 1] and np.isfinite(objective[t - 1]):
                size = max(1.0, abs(objective[t - 1]))
                falls.append((objective[t - 1] - objective[t]) / size)
    return max(falls, default=0.0)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("model", MODELS)
def test_every_learner_runs_on_every_model(model: str, learner: str) -> None:
    chosen = LEARNERS[learner]
    fitted = MODELS[model](chosen)
    demand_proper(fitted)
    assert fitted.verdict_ is not sc.Verdict.FELL
    if chosen.monotone:
        assert slips(fitted) <= 1e-9
        assert len(fitted.trace_) > 2  # it moved


@pytest.mark.parametrize("model", MODELS)
def test_collapsed_gibbs_is_for_words(model: str) -> None:
    learner = sc.CollapsedGibbs(max_iter=10, thin=1)
    if model in WORD_MODELS:
        demand_proper(MODELS[model](learner))
        return
    with pytest.raises((sc.LearnerError, sc.DataError)) as raised:
        MODELS[model](learner)
    assert raised.value.hint


@pytest.mark.parametrize("model", MODELS)
def test_the_number_of_threads_changes_no_bit(model: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(data, "MOST_POINTS", 7)  # some shards, also of so few items
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)
    learners: list[Any] = [sc.EM(max_iter=5), sc.VariationalBayes(max_iter=5)]
    learners += [sc.Gibbs(max_iter=4, n_init=2), sc.StochasticVB(max_iter=2, batch_size=8)]
    if model in WORD_MODELS:
        learners.append(sc.CollapsedGibbs(max_iter=6, thin=1))
    for learner in learners:
        found = [_with_engine(MODELS[model], learner, threads) for threads in (1, 2, 4)]
        assert found[0] == found[1] == found[2]
        assert found[0] == _with_engine(MODELS[model], learner, 1)


def _with_engine(make: Fit, learner: Any, threads: int) -> list[bytes]:
    """All tables, bit by bit, as learned with so many threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("softcount.engines.local.usable_cpus", lambda: threads)
        fitted = make(learner)
    return [table.tobytes() for table in fitted.raw_params_.values()]


# what can be enumerated

TINY = np.array([[2, 1, 0], [0, 1, 2], [1, 0, 1], [0, 2, 0]])
TINY_LABELS = np.array([0, 1, -1, -1])


def log_evidence_of(counts: Array, alpha: float) -> float:
    """log ∫ Π θ^n dDir(θ | α) of one row."""
    n = len(counts)
    total = gammaln(n * alpha) - gammaln(n * alpha + counts.sum())
    return float(total + (gammaln(alpha + counts) - gammaln(alpha)).sum())


def enumerated(
    ranges: Sequence[Sequence[int]], n_classes: int, of_classes: float, of_words: float
) -> list[tuple[float, Array, Array]]:
    """log p(x, z), documents a class and words a class, for every z there is."""
    found = []
    for z in product(*ranges):
        hot = np.eye(n_classes)[list(z)]
        sizes, in_class = hot.sum(axis=0), hot.T @ TINY
        log_p = log_evidence_of(sizes, of_classes)
        log_p += sum(log_evidence_of(row, of_words) for row in in_class)
        found.append((log_p, sizes, in_class))
    return found


def exact_means(
    every: list[tuple[float, Array, Array]], of_classes: float, of_words: float
) -> tuple[Array, Array]:
    """Posterior means of the weights and the words."""
    logs = np.array([log_p for log_p, _, _ in every])
    chances = np.exp(logs - logsumexp(logs))
    weights = sum(p * (n + of_classes) for p, (_, n, _) in zip(chances, every, strict=True))
    rows = [
        p * (c + of_words) / (c + of_words).sum(axis=1, keepdims=True)
        for p, (_, _, c) in zip(chances, every, strict=True)
    ]
    return weights / weights.sum(), sum(rows)


FREE = [(0, 1)] * 4
LABELLED = [(0,), (1,), (0, 1), (0, 1)]


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("labelled", [False, True])
def test_the_elbo_stays_below_the_evidence(labelled: bool, alpha: float) -> None:
    every = enumerated(LABELLED if labelled else FREE, 2, alpha, alpha)
    evidence = logsumexp([log_p for log_p, _, _ in every])
    prior = {"weights": alpha, "words": alpha}
    for seed in range(4):
        learner = sc.VariationalBayes(max_iter=80, tol=0)
        if labelled:
            rng = np.random.default_rng(seed)
            init = {"weights": [0.5, 0.5], "words": rng.dirichlet(np.ones(3), 2)}
            model = sc.NaiveBayes(prior=prior, learner=learner).fit(TINY, TINY_LABELS, init=init)
        else:
            model = sc.MultinomialMixture(
                2, prior=prior, learner=learner, init="random", random_state=seed
            ).fit(TINY)
        elbo = model.trace_.objective[1:]
        assert (np.diff(elbo) >= -1e-10).all()
        assert elbo[-1] <= evidence
        assert elbo[-1] >= evidence - 4.0  # a bound, and not an idle one


def test_the_elbo_is_the_evidence_where_nothing_is_hidden() -> None:
    """One class, or all labels known: the posterior is conjugate, and the bound is tight."""
    learner = sc.VariationalBayes(max_iter=3)
    one = sc.MultinomialMixture(1, prior=0.5, learner=learner, init="random").fit(TINY)
    expected = log_evidence_of(TINY.sum(axis=0), 0.5)
    assert one.trace_.objective[-1] == pytest.approx(expected, rel=1e-12)
    y = np.array([0, 1, 1, 0])
    all_known = sc.NaiveBayes(prior={"weights": 2.0, "words": 0.5}, learner=learner).fit(TINY, y)
    ((log_p, _, _),) = enumerated([(k,) for k in y], 2, 2.0, 0.5)
    assert all_known.trace_.objective[-1] == pytest.approx(log_p, rel=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical", "tied", "identity"])
def test_the_elbo_of_points_is_the_evidence_where_nothing_is_hidden(covariance: str) -> None:
    """Points of one class are jointly normal (known variance) or Student-t (unknown)."""
    x = np.array([[0.3], [-1.1], [2.0], [0.7]])
    x = x - x.mean()
    learner = sc.VariationalBayes(max_iter=3)
    model = sc.GaussianMixture(1, covariance=covariance, learner=learner).fit(x)
    family = model.core_.emission.family
    kappa, dof, scale = family.kappa, family.dof, float(np.ravel(family.scale)[0])
    if covariance == "identity":
        spread = np.eye(4) + np.ones((4, 4)) / kappa
        expected = multivariate_normal(np.zeros(4), spread).logpdf(x[:, 0])
    else:
        # x ~ multivariate t with dof degrees and shape (I + 11ᵀ/κ) scale / dof
        shape = (np.eye(4) + np.ones((4, 4)) / kappa) * scale / dof
        distance = x[:, 0] @ np.linalg.solve(shape, x[:, 0])
        expected = gammaln((dof + 4) / 2) - gammaln(dof / 2) - 2 * math.log(dof * math.pi)
        expected -= np.linalg.slogdet(shape)[1] / 2
        expected -= (dof + 4) / 2 * math.log1p(distance / dof)
    assert model.trace_.objective[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["Gibbs", "CollapsedGibbs"])
def test_samplers_have_the_exact_posterior_means(learner: str) -> None:
    """Two labelled documents break the symmetry, so that classes keep their names."""
    of_classes, of_words = 0.8, 0.6
    weights, in_class = exact_means(
        enumerated(LABELLED, 2, of_classes, of_words), of_classes, of_words
    )
    chosen = getattr(sc, learner)(n_init=10, max_iter=500, burn_in=0.1, thin=2)
    prior = {"weights": of_classes, "words": of_words}
    model = sc.NaiveBayes(prior=prior, learner=chosen).fit(TINY, TINY_LABELS)
    for name, exact in (("weights", weights[None]), ("words", in_class)):
        chains = np.array([np.mean([d[name] for d in c], axis=0) for c in model.fit_.draws])
        error = chains.std(axis=0, ddof=1) / math.sqrt(len(chains)) + 1e-4
        assert error.max() < 0.01  # else the test would prove nothing
        assert (np.abs(chains.mean(axis=0) - exact) <= 5 * error).all()


def test_joining_classes_comes_to_an_end() -> None:
    """Nearly empty classes fill up a little in every round: that must not go on for ever."""
    model = sc.DirichletProcessMixture(
        6, init="random", learner=sc.VariationalBayes(max_iter=15)
    ).fit(X)
    assert 1 <= model.n_classes_ <= 6


def partitions(n: int) -> list[tuple[int, ...]]:
    """Every way to put n things into classes without names."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*z, k) for z in found for k in range(max(z) + 2)]
    return found


@pytest.mark.slow
def test_a_restaurant_has_the_exact_posterior_of_partitions() -> None:
    """Each document has a word of its own, by which a draw of the words shows who sits where."""
    counts = np.hstack([np.array([[2, 0], [1, 1], [0, 2]]), np.eye(3, dtype=int)])
    concentration, beta = 0.7, 0.5
    exact = {}
    for z in partitions(3):
        hot = np.eye(3)[list(z)]
        sizes = hot.sum(axis=0)
        used = sizes[sizes > 0]
        log_p = len(used) * math.log(concentration) + gammaln(used).sum()
        exact[z] = log_p + sum(log_evidence_of(row, beta) for row in hot.T @ counts)
    total = logsumexp(list(exact.values()))
    learner = sc.CollapsedGibbs(max_iter=5000, burn_in=0.01, thin=2)
    model = sc.DirichletProcessMixture(
        5, concentration=concentration, prior=beta, learner=learner, init="random"
    ).fit(counts)
    seen: Counter[tuple[int, ...]] = Counter()
    for draw in model.fit_.draws[0]:
        seats = draw["words"][:, 2:].argmax(axis=0)
        first: dict[int, int] = {}
        seen[tuple(first.setdefault(int(k), len(first)) for k in seats)] += 1
    n = seen.total()
    for z, log_p in exact.items():
        p = math.exp(log_p - total)
        assert seen[z] / n == pytest.approx(p, abs=5 * math.sqrt(2 * p * (1 - p) / n)), z


@pytest.mark.parametrize("weights", [[1, 2, 1, 1], [0.5, 1, 1, 1]])
def test_collapsed_gibbs_takes_documents_once(weights: list[float]) -> None:
    model = sc.MultinomialMixture(2, learner=sc.CollapsedGibbs(max_iter=3))
    with pytest.raises(sc.LearnerError, match="weights"):
        model.fit(TINY, sample_weight=weights)


def test_smoothing_means_the_same_to_those_who_maximise_and_those_who_average() -> None:
    """Add a to every count: the mode under 1 + a, and the mean under a."""
    y = [0, 1, 1, 0]
    mode = sc.NaiveBayes(smoothing=0.3, learner=sc.EM()).fit(TINY, y)
    mean = sc.NaiveBayes(smoothing=0.3, learner=sc.VariationalBayes()).fit(TINY, y)
    np.testing.assert_allclose(mode.words_, mean.words_, rtol=1e-12)
    expected = TINY[[0, 3]].sum(axis=0) + 0.3
    np.testing.assert_allclose(mode.words_[0], expected / expected.sum(), rtol=1e-12)
