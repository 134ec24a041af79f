"""Fits have the same bits on every engine: every kind of learner, models with and without state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.core.fit import fit, trace
from softcount.engines import Dask, Local, Processes
from softcount.text.archive import Archive
from tests.engines.shards import Cut, bits, figures
from tests.oracles import toy

TEXTS = [
    " ".join(words)
    for words in np.random.default_rng(2).choice(list("abcdefghij"), (60, 12), p=np.arange(10) / 45)
]
COUNTS = np.random.default_rng(0).poisson(1.0, (40, 12)).astype(float)
SQUAREM = sc.EM(max_iter=3, tol=0.0, schedule=sc.learners.Squarem())


def coins() -> tuple[Any, Any]:
    """A mixture without state, in plain numpy, over 9 shards."""
    throws = toy.simulate(90, [0.3, 0.7], [0.2, 0.6], 10, 0)
    return toy.Coins(which=2.0, flip=1.5), toy.ThrowsCorpus(throws, n_shards=9)


def topics() -> tuple[Any, Any]:
    """Documents' topics as state of the shards, in plain numpy, over 7 shards."""
    return toy.Topics(3, 12), toy.DocumentCorpus(COUNTS, n_shards=7)


def mixture() -> tuple[Any, Any]:
    """softcount's mixture, cut small."""
    core, corpus = sc.MultinomialMixture(3, smoothing=0.5)._bind(TEXTS)
    return core, Cut(corpus, 8)


def lda(learner: str = "em") -> tuple[Any, Any]:
    """softcount's topic model, cut small; the documents' proportions are the shards' state."""
    core, corpus = sc.LDA(3, learner=learner)._bind(TEXTS)
    return core, Cut(corpus, 8)


def stats(max_iter: int = 3, **more: Any) -> dict[str, Any]:
    return {"max_iter": max_iter, "tol": 0.0, **more}


LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "batch": (sc.EM(**stats()), {"theory": True, "keep_local": True, "keep_params": True}),
    "hard": (sc.HardEM(**stats(), n_init=2), {}),
    "variational": (sc.VariationalBayes(**stats()), {"keep_local": True}),
    "draws": (sc.Gibbs(max_iter=4), {}),
    "Monte Carlo": (sc.MonteCarloEM(**stats(samples=3)), {}),
    "stepwise": (sc.OnlineEM(**stats(2, batch_size=16)), {"keep_local": True}),
    "stochastic variational": (sc.StochasticVB(**stats(2, batch_size=16)), {}),
    "incremental": (sc.IncrementalEM(**stats(2)), {}),
    "accelerated": (SQUAREM, {"keep_local": True}),
    "short runs": (sc.EM(**stats(2)), {"short_runs": 2}),
}
STATEFUL = {"topics", "lda"}
MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "coins": coins,
    "topics": topics,
    "mixture": mixture,
    "lda": lda,
}


def learn(name: str, learner: str, engine: Any) -> Any:
    core, corpus = MODELS[name]()
    how, options = LEARNERS[learner]
    if not core.local_name:
        options = {key: value for key, value in options.items() if key != "keep_local"}
    if core.no_bound or name == "topics":
        options = {key: value for key, value in options.items() if key != "theory"}
    start = toy.random_start(core)
    return fit(core, corpus, how, engine, init=start, seed=5, **options)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("model", MODELS)
def test_processes(model: str, learner: str, processes: Processes):
    assert figures(learn(model, learner, processes)) == figures(learn(model, learner, None))


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        *(("coins", learner) for learner in ("batch", "draws", "incremental")),
        *(("mixture", learner) for learner in ("hard", "stochastic variational")),
        *(("lda", learner) for learner in ("batch", "variational", "stepwise", "accelerated")),
        ("topics", "accelerated"),
    ],
)
def test_cluster(model: str, learner: str, cluster: Dask):
    assert figures(learn(model, learner, cluster)) == figures(learn(model, learner, None))


def test_the_cases_could_fail():
    """Figures differ between starts; and the sum of these shards depends on their order."""
    core, corpus = mixture()
    start = toy.random_start(core)
    one, other = (fit(core, corpus, sc.EM(max_iter=2), init=start, seed=seed) for seed in (1, 2))
    assert figures(one) != figures(other)
    params = one.params
    with Local(1).open(corpus.shards(None, 0)) as session:
        how = sc.core.types.EStep()
        forth = session.expect(core.expect, params, how)
        moved = session.expect(core.expect, params, how, [*range(1, len(session)), 0])
    assert bits(forth.counts["words"]) != bits(moved.counts["words"])


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_processes(workers: int):
    engine = Processes(workers)
    for model in ("coins", "topics"):
        assert figures(learn(model, "batch", engine)) == figures(learn(model, "batch", None))
    engine.close()


def test_tempered(engine: Any):
    def temper(engine: Any) -> Any:
        core, corpus = sc.PLSA(3, learner=sc.TemperedEM(max_iter=3))._bind(TEXTS)
        start = toy.random_start(core)
        learner = sc.TemperedEM(max_iter=3)
        return fit(core, Cut(corpus, 8), learner, engine, init=start, keep_local=True)

    assert figures(temper(engine)) == figures(temper(None))


def test_an_archive_is_read_by_the_workers(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("softcount.text.archive.SHARD_DOCUMENTS", 8)
    monkeypatch.chdir(tmp_path)
    archive = Archive.build(TEXTS, tmp_path / "archive", tokens=True, shuffle=1)
    assert len(archive.shards()) > 4

    def learn(engine: Any, learner: Any) -> Any:
        model = sc.LDA(3, engine=engine, learner=learner, random_state=1).fit(archive)
        return bits(model.topics_), bits(model.documents_), bits(model.transform(archive))

    for learner in (sc.EM(max_iter=3), sc.OnlineEM(max_iter=2, batch_size=16)):
        assert learn(engine, learner) == learn(None, learner)


def test_estimators_take_the_engine(engine: Any):
    """A small corpus is one shard; engines are parameters like others."""

    def learn(engine: Any) -> Any:
        model = sc.MultinomialMixture(2, engine=engine, random_state=1, max_iter=4)
        model = clone(model).fit(TEXTS)
        return bits(model.predict_proba(TEXTS)), bits(model.raw_params_), model.trace_.verdict

    assert learn(engine) == learn(None)


def test_steps_are_those_of_trace(engine: Any):
    core, corpus = coins()
    start = toy.params([0.4, 0.6], [0.3, 0.7])

    def steps(engine: Any) -> list[float]:
        states = trace(core, corpus, sc.EM(max_iter=4, tol=0.0), engine, start=start)
        return [state.objective for state in states]

    assert steps(engine) == steps(Local(2))


def test_collapsed_samplers_say_that_they_are_local(engine: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("softcount.text.bags.MOST_DOCUMENTS", 16)

    def learn(engine: Any) -> Any:
        model = sc.LDA(2, learner=sc.CollapsedGibbs(max_iter=3), engine=engine)
        return bits(model.fit(TEXTS).topics_)

    with pytest.warns(sc.errors.NotDistributedWarning, match="samples in this process"):
        found = learn(engine)
    assert found == learn(None)
