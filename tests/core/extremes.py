"""Every estimator with every number that it may be told, for the tests of extreme numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import softcount as sc

VALUES: tuple[Any, ...] = (
    0,
    -0.0,
    5e-324,
    1e-300,
    1e12,
    1e15,
    1e50,
    1e100,
    1e155,
    1e300,
    float("inf"),
    float("nan"),
    2**63,
    10**400,
    -1,
)

WHOLE = (*VALUES, 10**12, 10**15, 10**30)
"""The same for settings: some of them count something."""

COUNTS = np.array(
    [[3, 1, 0, 0], [2, 2, 0, 1], [0, 0, 4, 1], [0, 1, 2, 3], [1, 3, 0, 0], [0, 0, 1, 2.0]]
)
POINTS = np.array([[0.0, 0.1], [0.3, 0.0], [0.1, 0.4], [5.0, 5.1], [5.2, 4.7], [4.9, 5.3]])
TEXTS = ["a b a", "b a b c", "c d d", "d c c", "a b", "d d c"]
PAIRS = [("das haus", "the house"), ("das buch", "the book"), ("ein buch", "a book")]
SENTENCES = [["a", "b", "a"], ["b", "a"], ["a", "b", "c"], ["c", "b"]]
VECTORS = [POINTS[:3], POINTS[3:], POINTS[1:5]]
VOTES = [("i", "x", "1"), ("i", "y", "1"), ("j", "x", "0"), ("j", "y", "1"), ("k", "x", "0")]
FEW = [0, -1, 1, -1, 0, -1]
BANKS = ["the river bank was wet", "a bank gave money", "money in the bank", "wet bank of a river"]


def _domains() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(16) % 2
    X = rng.poisson(1.0, size=(16, 5)) + 2.0 * y[:, None] * np.arange(5) / 5
    domain = np.repeat([1, -1], 8)
    return X, np.where(np.arange(16) >= 12, -1, y), domain


DOMAINS = _domains()


@dataclass(frozen=True)
class Case:
    """How an estimator is made, what it learns from, and which of that are numbers."""

    make: Callable[..., Any]
    fit: Callable[..., Any]
    inputs: tuple[str, ...] = ()
    usual: tuple[tuple[str, Any], ...] = ()
    kind: Any = None

    def learned(self, settings: dict[str, Any] | None = None, **given: Any) -> Any:
        """Fitted; ``given`` are numbers of the data."""
        model = self.make(**{**dict(self.usual), **(settings or {})})
        return self.fit(model, **given)


def _weighted(data: Any) -> Callable[..., Any]:
    def fit(model: Any, weight: Any = None, every: Any = None) -> Any:
        n = len(data)
        if every is not None:
            return model.fit(data, sample_weight=[every] * n)
        weights = None if weight is None else [weight, *([1] * (n - 1))]
        return model.fit(data, sample_weight=weights)

    return fit


def _counted(model: Any, count: Any = None, weight: Any = None, all_counts: Any = None) -> Any:
    X: Any = COUNTS
    if count is not None:
        X = COUNTS.astype(object)
        X[0, 0] = count
        if isinstance(count, float):  # of whole numbers a sparse matrix makes what it likes
            X = sparse.csr_matrix(X.astype(float))
    if all_counts is not None:
        X = COUNTS.astype(int).astype(object) * all_counts
    if weight is not None:
        return model.fit(X, sample_weight=[weight, 1, 1, 1, 1, 1])
    return model.fit(X)


def _labelled(model: Any, count: Any = None, weight: Any = None, share: Any = None) -> Any:
    X = COUNTS.astype(object) if count is not None else COUNTS
    if count is not None:
        X = X.copy()
        X[0, 0] = count
    y: Any = FEW
    if share is not None:
        y = np.full((6, 2), np.nan, dtype=object)
        y[0], y[2] = [share, 0], [0, 1]
    weights = None if weight is None else [weight, 1, 1, 1, 1, 1]
    return model.fit(X, y, sample_weight=weights)


def _placed(model: Any, value: Any = None, weight: Any = None, scale: Any = None) -> Any:
    X: Any = POINTS
    if value is not None:
        X = POINTS.astype(object)
        X[0, 0] = value
    if scale is not None:
        X = (10 * POINTS).astype(int).astype(object) * scale
    return model.fit(X, sample_weight=None if weight is None else [weight, 1, 1, 1, 1, 1])


def _vectors(model: Any, value: Any = None, weight: Any = None) -> Any:
    data: Any = VECTORS
    if value is not None:
        first = VECTORS[0].astype(object)
        first[0, 0] = value
        data = [first, *VECTORS[1:]]
    return model.fit(data, sample_weight=None if weight is None else [weight, 1, 1])


def _graphed(model: Any, value: Any = None, mass: Any = None) -> Any:
    X = COUNTS.astype(object)
    if value is not None:
        X[0, 0] = value
    if mass is not None:
        model.set_params(class_mass={0: mass, 1: 1})
    return model.fit(X if value is not None else COUNTS, FEW)


def _adapted(model: Any, value: Any = None) -> Any:
    X, y, domain = DOMAINS
    if value is not None:
        X = X.astype(object)
        X[0, 0] = value
    return model.fit(X, y, sample_domain=domain)


def _translator(**settings: Any) -> Any:
    aligner = sc.align.IBM1(learner=sc.EM(max_iter=3)).fit(PAIRS)
    language = sc.translate.LanguageModel(2).fit([source for source, _ in PAIRS])
    return sc.Translator(aligner, language, **settings)


def _translated(model: Any) -> Any:
    model.explain("the book")
    return model


def _views(**settings: Any) -> Any:
    return sc.labels.CoTraining([[0, 1], [2, 3]], **settings)


def _tosses(prior: Any = 1.0, smoothing: Any = None, start: Any = None, **settings: Any) -> Any:
    which, flip = sc.table("which"), sc.table("flip")

    @sc.story
    def coins(tosses: str) -> Iterator[Any]:
        for z in "AB":
            yield which[z], *(flip[z, x] for x in tosses)

    if start is not None:
        settings["init"] = {"which": {"A": start, "B": 1}}
    return sc.StoryModel(coins, prior=prior, smoothing=smoothing, **settings)


def _grammar(rule: Any = None, **settings: Any) -> Any:
    if rule is not None:
        text = f"S -> A S [{rule}] | A A\nA -> 'a' [{rule}] | 'b' | 'c'"
        return sc.PCFG.from_rules(text, **settings)
    return sc.PCFG(**settings)


def _just(data: Any) -> Callable[..., Any]:
    return lambda model: model.fit(data)


def _of_topics(model: Any, count: Any = None, all_counts: Any = None) -> Any:
    return _counted(model, count, None, all_counts)


ADAPTED = {
    name: Case(getattr(sc.adapt, name), _adapted, ("value",))
    for name in (
        "SourceOnly",
        "TargetOnly",
        "Merge",
        "Weighted",
        "Interpolation",
        "PredictionFeature",
        "SourcePrior",
        "EasyAdapt",
        "PivotProjection",
        "DenoisingProjection",
        "AdversarialNetwork",
    )
}
POINTED = {
    name: Case(getattr(sc, name), _placed, ("value", "weight", "scale"), (("n_components", 2),))
    for name in ("GaussianMixture", "KMeans", "SoftKMeans", "DirichletProcessGaussianMixture")
}
COUNTED = {
    name: Case(
        getattr(sc, name), _counted, ("count", "weight", "all_counts"), (("n_components", 2),)
    )
    for name in ("MultinomialMixture", "DirichletProcessMixture")
}
ALIGNED = {
    name: Case(getattr(sc.align, name), _just(PAIRS))
    for name in ("IBM1", "IBM2", "Diagonal", "HMMAligner", "Aligner", "GibbsAligner")
}
CASES: dict[str, Case] = {
    **COUNTED,
    **POINTED,
    **ALIGNED,
    **ADAPTED,
    "Bernoulli": Case(
        sc.MultinomialMixture,
        _counted,
        ("count", "weight"),
        (("n_components", 2), ("bernoulli", True)),
    ),
    "NaiveBayes": Case(sc.NaiveBayes, _labelled, ("count", "weight", "share")),
    "NaiveBayesCV": Case(sc.NaiveBayesCV, _labelled, ("count", "weight"), (("cv", 2),)),
    "LDA": Case(sc.LDA, _of_topics, ("count", "all_counts"), (("n_components", 2),)),
    "PLSA": Case(sc.PLSA, _of_topics, ("count", "all_counts"), (("n_components", 2),)),
    "HMM": Case(sc.HMM, _weighted(SENTENCES), ("weight", "every"), (("n_components", 2),)),
    "HMM of features": Case(
        sc.HMM,
        _weighted(SENTENCES),
        ("weight", "every"),
        (("n_components", 2), ("emissions", "features")),
    ),
    "GaussianHMM": Case(sc.GaussianHMM, _vectors, ("value", "weight"), (("n_components", 2),)),
    "PCFG": Case(
        _grammar,
        _weighted(SENTENCES),
        ("weight", "every"),
        (("n_components", 2), ("n_preterminals", 2)),
        sc.PCFG,
    ),
    "PCFG of rules": Case(
        _grammar, _weighted(SENTENCES), ("weight", "every"), (("rule", ".5"),), sc.PCFG
    ),
    "Annotators": Case(sc.Annotators, _just(VOTES)),
    "SenseInducer": Case(
        sc.SenseInducer,
        lambda model: model.fit(BANKS, "bank"),
        (),
        (("min_count", 1), ("short_runs", 0)),
    ),
    "StoryModel": Case(_tosses, _just(["HHH", "TTT", "HTH"]), (), (), sc.StoryModel),
    "LanguageModel": Case(sc.translate.LanguageModel, _just([t for _, t in PAIRS])),
    "Translator": Case(_translator, _translated, (), (), sc.Translator),
    "LabelPropagation": Case(sc.labels.LabelPropagation, _graphed, ("value", "mass")),
    "SelfTraining": Case(sc.labels.SelfTraining, lambda m: m.fit(COUNTS, FEW)),
    "CoTraining": Case(_views, lambda m: m.fit(COUNTS, FEW), (), (), sc.labels.CoTraining),
    "Yarowsky": Case(sc.labels.Yarowsky, lambda m: m.fit(TEXTS, FEW)),
}
MORE = {"PCFG of rules": ("rule",), "StoryModel": ("start", "smoothing")}
"""Numbers that are told to an estimator inside something else."""


LEARNERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "EM": (sc.EM, ("max_iter", "tol", "temper", "n_init", "samples")),
    "OnlineEM": (sc.OnlineEM, ("batch_size", "kappa", "t0")),
    "IncrementalEM": (sc.IncrementalEM, ("batch_size",)),
    "VariationalBayes": (sc.VariationalBayes, ("temper", "tol")),
    "Gibbs": (
        lambda **dials: sc.Gibbs(**{"max_iter": 4, "n_init": 2, **dials}),
        ("n_init", "burn_in", "thin", "samples", "temper"),
    ),
    "CollapsedGibbs": (
        lambda **dials: sc.CollapsedGibbs(**{"max_iter": 4, **dials}),
        ("optimise", "thin", "temper"),
    ),
    "TemperedEM": (sc.TemperedEM, ("held_out", "rate", "least", "tol", "temper")),
    "Spectral": (sc.Spectral, ("max_iter", "tol")),
    "anneal": (lambda **dials: sc.EM(temper=sc.learners.anneal(**dials)), ("start", "steps")),
}
"""Ways to learn, with their numbers."""


def merge_settings(name: str) -> list[str]:
    """The estimator's settings that are numbers, by what its signature says."""
    case = CASES[name]
    kind = case.kind or case.make
    parameters = inspect.signature(kind.__init__).parameters.values()
    numeric = [p.name for p in parameters if re.search(r"\b(int|float)\b", str(p.annotation))]
    return [*numeric, *MORE.get(name, ()), "random_state"] if _draws(kind) else numeric


def _draws(kind: Any) -> bool:
    return "random_state" in inspect.signature(kind.__init__).parameters
