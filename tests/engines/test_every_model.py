"""Every model has the same bits on every engine, in memory and in a folder, by every schedule.

Corpora are cut into several shards, as large ones are. Predictions are asked for as well, and
computed on the engine, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.folder import FitFolder
from tests.engines.shards import SMALL_CUTS, bits
from tests.every_estimator import (
    ESTIMATORS,
    POINTS,
    SENTENCES,
    SEQUENCES,
    TEXTS,
    TOSSES,
    VOTES,
    coins,
)

pytest.importorskip("distributed")

TEXTS, POINTS, SENTENCES, SEQUENCES = TEXTS[:90], POINTS[:300], SENTENCES[:60], SEQUENCES[:12]
VOTES, TOSSES = VOTES[:400], TOSSES[:200]
LABELS = np.array([k % 3 if k < 30 else -1 for k in range(len(TEXTS))])
PAIRS = [(text.replace(" ", "o ") + "o", " ".join(text.split()[::-1])) for text in SENTENCES]

WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
ANY = " | ".join(f"'{word}'" for word in WORDS)
RULES = f"""
S -> NP VP
NP -> D N [0.6] | D M [0.4]
M -> A N
VP -> V NP
D -> 'the' | 'a'
A -> {ANY}
N -> {ANY}
V -> {ANY}
"""

STEPS = {"max_iter": 3, "tol": 0.0}
BATCH = sc.EM(**STEPS)
STEPWISE = sc.OnlineEM(**STEPS, batch_size=7)
BAYES = sc.VariationalBayes(**STEPS)


def ask_classes(model: Any, X: Any) -> list[Any]:
    return [model.predict(X), model.predict_proba(X), model.score_samples(X)]


def ask_states(model: Any, X: Any) -> list[Any]:
    return [
        *model.predict(X),
        *model.predict(X, method="posterior"),
        *model.predict_proba(X),
        model.score_samples(X),
        *map(str, model.posterior_sample(X, 2)),
    ]


def ask_topics(model: Any, X: Any) -> list[Any]:
    return [model.documents_, model.transform(X), model.score_samples(X)]


def ask_links(model: Any, pairs: Any) -> list[Any]:
    return [str(model.align(pairs)), *model.posteriors(pairs), model.score_samples(pairs)]


def ask_trees(model: Any, sentences: Any) -> list[Any]:
    return [
        *map(str, model.predict(sentences)),
        *map(str, model.sample_trees(sentences, 2)),
        str(model.posterior(sentences)),
        model.score_samples(sentences),
    ]


def ask_story(model: Any, items: Any) -> list[Any]:
    return [model.score(items), str(model.posterior(items[0]))]


BAGS = [number // 3 for number in range(len(TEXTS))]
OF_BAGS = {bag: ("no", "yes", None)[bag % 3] for bag in BAGS}
Ask = Callable[[Any, Any], list[Any]]
MODELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Ask, tuple[Any, ...]]] = {
    "multinomial": (
        lambda **more: sc.MultinomialMixture(3, smoothing=0.5, **more),
        (TEXTS,),
        ask_classes,
        (BATCH, STEPWISE, BAYES),
    ),
    "bernoulli": (
        lambda **more: sc.MultinomialMixture(3, smoothing=0.5, bernoulli=True, **more),
        (TEXTS,),
        ask_classes,
        (BATCH, STEPWISE),
    ),
    "process": (
        lambda **more: sc.DirichletProcessMixture(4, **more),
        (TEXTS,),
        ask_classes,
        (BAYES, sc.StochasticVB(**STEPS, batch_size=7)),
    ),
    "naive bayes, cross-validated": (
        lambda **more: sc.NaiveBayesCV(unlabelled_weights=(0.0, 1.0), cv=2, **more),
        (TEXTS, LABELS),
        lambda model, X: [model.predict(X), model.predict_proba(X)],
        (BATCH,),
    ),
    "senses": (
        lambda **more: sc.SenseInducer(2, min_count=1, **more),
        (TEXTS * 3, "ball"),
        lambda model, X: [model.predict(X), model.predict_proba(X)],
        (BATCH, STEPWISE),
    ),
    "naive bayes": (
        lambda **more: sc.NaiveBayes(**more),
        (TEXTS, LABELS),
        lambda model, X: [model.predict(X), model.predict_proba(X)],
        (BATCH, STEPWISE),
    ),
    "bags": (
        lambda **more: sc.labels.MultipleInstance(**more),
        (TEXTS, OF_BAGS, BAGS),
        lambda model, X: [model.predict_proba(X, BAGS), model.predict(X, BAGS)],
        (BATCH, STEPWISE),
    ),
    "gaussians": (
        lambda **more: sc.GaussianMixture(3, **more),
        (POINTS,),
        ask_classes,
        (BATCH, STEPWISE, BAYES),
    ),
    "process of gaussians": (
        lambda **more: sc.DirichletProcessGaussianMixture(4, **more),
        (POINTS,),
        ask_classes,
        (BAYES, sc.StochasticVB(**STEPS, batch_size=7)),
    ),
    "k-means": (
        lambda **more: sc.KMeans(3, **more),
        (POINTS,),
        lambda model, X: [model.predict(X), model.transform(X)],
        (sc.HardEM(**STEPS),),
    ),
    "soft k-means": (
        lambda **more: sc.SoftKMeans(3, **more),
        (POINTS,),
        lambda model, X: [model.predict(X), model.predict_proba(X)],
        (BATCH,),
    ),
    "annotators": (
        lambda **more: sc.Annotators(**more),
        (VOTES,),
        lambda model, X: [model.labels_, model.predict_proba(X)],
        (BATCH, STEPWISE),
    ),
    "lda": (lambda **more: sc.LDA(3, **more), (TEXTS,), ask_topics, (BATCH, STEPWISE, BAYES)),
    "plsa": (lambda **more: sc.PLSA(3, **more), (TEXTS,), ask_topics, (BATCH, STEPWISE)),
    "hmm": (
        lambda **more: sc.HMM(3, smoothing=0.1, **more),
        (SENTENCES,),
        ask_states,
        (BATCH, STEPWISE, BAYES),
    ),
    "hmm of order 2": (
        lambda **more: sc.HMM(2, order=2, smoothing=0.1, **more),
        (SENTENCES,),
        ask_states,
        (BATCH,),
    ),
    "gaussian hmm": (
        lambda **more: sc.GaussianHMM(2, smoothing=0.1, **more),
        (SEQUENCES,),
        ask_states,
        (BATCH, sc.OnlineEM(**STEPS, batch_size=3)),
    ),
    "pcfg": (
        lambda **more: sc.PCFG(3, 4, smoothing=0.1, **more),
        (SENTENCES[:24],),
        ask_trees,
        (BATCH, STEPWISE),
    ),
    "pcfg of rules": (
        lambda **more: sc.PCFG.from_rules(RULES, smoothing=0.1, **more),
        (SENTENCES[:24],),
        ask_trees,
        (BATCH, STEPWISE),
    ),
    "ibm1": (lambda **more: sc.align.IBM1(**more), (PAIRS,), ask_links, (BATCH, STEPWISE)),
    "ibm2": (lambda **more: sc.align.IBM2(**more), (PAIRS,), ask_links, (BATCH, STEPWISE)),
    "diagonal": (lambda **more: sc.align.Diagonal(**more), (PAIRS,), ask_links, (BATCH, STEPWISE)),
    "hmm aligner": (
        lambda **more: sc.align.HMMAligner(**more),
        (PAIRS,),
        ask_links,
        (BATCH, STEPWISE),
    ),
    "both directions": (
        lambda **more: sc.Aligner(**more),
        (PAIRS,),
        lambda model, pairs: [str(model.align(pairs)), *model.posteriors(pairs)],
        (BATCH, STEPWISE),
    ),
    "story": (
        lambda **more: sc.StoryModel(coins, **more),
        (TOSSES,),
        ask_story,
        (BATCH, STEPWISE),
    ),
}
CASES = [
    pytest.param(name, learner, id=f"{name}, {type(learner).__name__}")
    for name, (_, _, _, learners) in MODELS.items()
    for learner in learners
]


ELSEWHERE = {"GibbsAligner"}
"""Estimators with an engine that sample in one process: `test_same_bits` has collapsed samplers."""


def learn(name: str, learner: Any, engine: Any, folder: Path | None = None) -> Any:
    """Return all that a fit says, as bytes, and the number of its shards."""
    make, data, ask, _ = MODELS[name]
    options = {} if folder is None else {"folder": FitFolder(folder, steps=0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make(learner=learner, engine=engine, random_state=3).fit(*data, **options)
        opened = len(OPENED)
        answers = ask(model, data[0])
        assert len(OPENED) > opened or not isinstance(engine, sc.Dask), "who has answered?"
    model = getattr(model, "mixture_", model)
    said = bits(dict(model.raw_params_)), bits(model.trace_.objective), str(model.verdict_)
    return (*said, [bits(answer) for answer in answers]), model.signature_


OPENED: list[int] = []
"""The number of shards of each session of a cluster that was opened."""


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = sc.Dask.open

    def open_and_note(engine: sc.Dask, shards: Any, **more: Any) -> Any:
        OPENED.append(len(shards))
        return usual(engine, shards, **more)

    monkeypatch.setattr(sc.Dask, "open", open_and_note)


def test_no_model_is_forgotten() -> None:
    places = (sc, sc.align, sc.labels, sc.adapt, sc.translate)
    names = {name.partition(",")[0] for name in ESTIMATORS}
    kinds = [next(getattr(p, name) for p in places if hasattr(p, name)) for name in names]
    with_engine = {kind.__name__ for kind in kinds if "engine" in signature(kind).parameters}
    assert {type(make()).__name__ for make, *_ in MODELS.values()} | ELSEWHERE == with_engine
    assert len(with_engine) > 20


@pytest.fixture
def small_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in SMALL_CUTS.items():
        monkeypatch.setattr(limit, value)


@pytest.mark.parametrize(("name", "learner"), CASES)
def test_same_bits(
    name: str,
    learner: Any,
    small_cuts: None,
    noted: None,
    processes: sc.Processes,
    cluster: sc.Dask,
    tmp_path: Path,
):
    expected, signature = learn(name, learner, sc.Local(1))
    assert int(signature.split()[-2]) >= 4
    engines = {"2": sc.Local(2), "4": sc.Local(4), "processes": processes, "cluster": cluster}
    for which, engine in engines.items():
        assert learn(name, learner, engine)[0] == expected, which
    for which in ("2", "processes", "cluster"):
        assert learn(name, learner, engines[which], tmp_path / which)[0] == expected, which
    # what has ended is read back, by another engine too
    assert learn(name, learner, sc.Local(1), tmp_path / "cluster")[0] == expected
