"""Short runs: many starts tried quickly, the best gone on with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.fit import fit

Array = np.ndarray


def documents() -> Array:
    """Four clear classes of documents, whose number from a random start is often missed."""
    rng = np.random.default_rng(0)
    words = np.repeat(np.eye(4) * 0.9 + 0.025, 3, axis=1) / 3
    return np.array([rng.multinomial(15, words[d % 4] / words[d % 4].sum()) for d in range(120)])


X = documents()


def mixture(**options: Any) -> sc.MultinomialMixture:
    return sc.MultinomialMixture(4, init="random", learner=sc.EM(max_iter=100), **options)


def test_the_start_is_the_best_of_the_scouted() -> None:
    """Two passes from each of the starts, by hand: the run goes on from the best of them."""
    model = mixture()
    core, corpus = model._bind(X)
    begun: list[Any] = []

    def init(rng: np.random.Generator) -> Any:
        begun.append(model.starts()["random"](core, corpus, rng))
        return begun[-1]

    found = fit(core, corpus, sc.EM(max_iter=5), init=init, short_runs=6, seed=3, keep_params=True)
    assert len(begun) == 6
    first = found.trace[0]
    at_starts = [fit(core, corpus, sc.EM(max_iter=1), init=p).trace[0].objective for p in begun]
    assert first.objective > max(at_starts)  # it went on from after the short runs' passes
    apart = [np.abs(first.params["words"] - p["words"]).max() for p in begun]
    assert min(apart) > 0.01


def test_scouts_find_better_optima() -> None:
    plain = [mixture(random_state=seed).fit(X).trace_.objective[-1] for seed in range(8)]
    best_start = [
        mixture(random_state=s, short_runs=8).fit(X).trace_.objective[-1] for s in range(8)
    ]
    assert np.mean(best_start) > np.mean(plain) + 10.0
    assert min(best_start) >= max(plain) - 1.0  # every best_start run found the best there is


def test_each_of_several_runs_has_scouts_of_its_own() -> None:
    model = mixture(short_runs=3).set_params(learner=sc.EM(n_init=3, max_iter=2, tol=0))
    starts = [trace[0].objective for trace in model.fit(X).fit_.traces]
    assert len(set(starts)) == 3


@pytest.mark.parametrize("threads", [2, 4])
def test_scouts_are_reproducible(threads: int) -> None:
    one = mixture(short_runs=4, engine=sc.Local(threads=1)).fit(X)
    many = mixture(short_runs=4, engine=sc.Local(threads=threads)).fit(X)
    assert one.words_.tobytes() == many.words_.tobytes()
    other = mixture(short_runs=4, random_state=1).fit(X)
    assert one.trace_.objective[0] != other.trace_.objective[0]


def begun(learner: sc.Learner, short_runs: int, init: Any = None) -> tuple[Any, list[Any]]:
    """A fit that keeps its parameters, and the random starts that it asked for."""
    model = mixture()
    core, corpus = model._bind(X)
    asked: list[Any] = []

    def random(rng: np.random.Generator) -> Any:
        asked.append(model.starts()["random"](core, corpus, rng))
        return asked[-1]

    options: dict[str, Any] = {"short_runs": short_runs, "seed": 3, "keep_params": True}
    return fit(core, corpus, learner, init=random if init is None else init, **options), asked


def test_no_scouts_begin_at_the_start() -> None:
    found, asked = begun(sc.EM(max_iter=2), 0)
    assert len(asked) == 1
    assert np.array_equal(found.trace[0].params["words"], asked[0]["words"])


@pytest.mark.parametrize(
    "learner", [sc.EM(max_iter=2), sc.VariationalBayes(max_iter=2)], ids=["EM", "VB"]
)
def test_one_scout_is_a_warm_up(learner: sc.Learner) -> None:
    """The run goes on from two quick passes over its own start."""
    found, asked = begun(learner, 1)
    assert len(asked) == 1
    core, corpus = mixture()._bind(X)
    stepwise = sc.OnlineEM if learner.m == "maximise" else sc.StochasticVB
    dials = {"max_iter": 2, "tol": 0.0, "batch_size": len(X) // 4}
    at_start = fit(core, corpus, sc.EM(max_iter=1), init=asked[0]).trace.log_likelihood[0]
    assert found.trace[0].log_likelihood > at_start + 1.0
    # the passes themselves, whose seed is drawn: some seed leads where the run begins
    ways = [
        fit(core, corpus, stepwise(**dials), init=asked[0], seed=s).params["words"]
        for s in range(4)
    ]
    first = found.trace[0].params["words"]
    assert min(np.abs(first - way).max() for way in ways) < 0.1
    assert np.abs(first - asked[0]["words"]).max() > 0.01


def test_one_scout_does_not_touch_a_start_that_is_given() -> None:
    start = {name: np.array(table) for name, table in mixture().fit(X).params_.items()}
    found, _ = begun(sc.EM(max_iter=2), 1, start)
    for name, table in start.items():
        assert np.asarray(found.trace[0].params[name]) == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("kind", [sc.OnlineEM, sc.StochasticVB])
def test_mini_batches_need_no_warm_up(kind: Any) -> None:
    learner = kind(max_iter=2, batch_size=16)
    (none, _), (one, asked) = begun(learner, 0), begun(learner, 1)
    assert len(asked) == 1
    assert none.params["words"].tobytes() == one.params["words"].tobytes()
    several, more = begun(learner, 3)  # but several starts are tried for them too
    assert len(more) == 3
    assert several.params["words"].tobytes() != one.params["words"].tobytes()


def test_every_run_warms_up_by_itself() -> None:
    found, asked = begun(sc.EM(max_iter=1, n_init=3), 1)
    assert len(asked) == 3
    assert len({trace[0].objective for trace in found.traces}) == 3


@pytest.mark.parametrize(
    "learner",
    [sc.HardEM(), sc.VariationalBayes(), sc.OnlineEM(max_iter=3), sc.Gibbs(max_iter=4, n_init=1)],
    ids=lambda learner: type(learner).__name__,
)
def test_scouts_for_other_learners(learner: Any) -> None:
    model = sc.MultinomialMixture(4, init="random", learner=learner, short_runs=3).fit(X)
    assert np.isfinite(model.words_).all()


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_scouts_for_few_items(n: int) -> None:
    model = mixture(short_runs=3).fit(X[:n])
    assert model.words_.sum(axis=1) == pytest.approx(np.ones(4))


def test_scouts_for_points() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(80, 2)) + 8.0 * rng.integers(0, 3, (80, 1))
    model = sc.GaussianMixture(3, init="random", short_runs=6, covariance="spherical").fit(points)
    assert sorted(np.round(model.means_[:, 0] / 8.0).tolist()) == [0.0, 1.0, 2.0]


def test_scouts_need_different_starts() -> None:
    start = mixture().fit(X).params_
    with pytest.raises(sc.LearnerError, match="5 short runs would start from the same parameters"):
        mixture(short_runs=5).fit(X, init=start)
