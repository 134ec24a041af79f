"""Every estimator with data that take it some megabytes, for the tests of what fits need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import softcount as sc


def bags(n: int, n_words: int, each: int = 20, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), each), rng.integers(0, n_words, n * each)
    return sparse.csr_matrix((np.ones(n * each), (rows, columns)), shape=(n, n_words))


def points(n: int, n_dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, n_dims))


def sentences(n: int, length: int, n_words: int, seed: int = 0) -> list[list[str]]:
    drawn = np.random.default_rng(seed).integers(0, n_words, (n, length))
    return [[f"w{word}" for word in row] for row in drawn.tolist()]


def pairs(n: int, length: int, n_words: int) -> list[tuple[list[str], list[str]]]:
    both = sentences(n, length, n_words), sentences(n, length, n_words, 1)
    return list(zip(*both, strict=True))


def votes(n: int, annotators: int) -> list[tuple[str, str, str]]:
    drawn = np.random.default_rng(0).integers(0, 4, (n, annotators)).tolist()
    return [(f"i{i}", f"a{a}", str(v)) for i, row in enumerate(drawn) for a, v in enumerate(row)]


def labelled(n: int) -> Any:
    y = np.random.default_rng(0).integers(0, 3, n)
    y[n // 2 :] = -1
    return y


def _coins() -> Any:
    which, flip = sc.table("which"), sc.table("flip")

    @sc.story
    def coins(tosses: Any) -> Iterator[Any]:
        for z in range(8):
            yield which[z], *(flip[z, x] for x in tosses)

    return sc.StoryModel(coins, learner=sc.EM(max_iter=2, tol=0))


FEW = sc.EM(max_iter=2, tol=0)
Made = Callable[[], tuple[Any, tuple[Any, ...]]]


def _two_domains(n: int, n_words: int) -> tuple[Any, Any]:
    y = np.random.default_rng(1).integers(0, 2, n)
    y[n // 2 :] = -1
    return bags(n, n_words), y


SIZED: dict[str, Made] = {
    "MultinomialMixture": lambda: (
        sc.MultinomialMixture(8, init="random", learner=FEW),
        (bags(5000, 50_000),),
    ),
    "MultinomialMixture by k-means": lambda: (
        sc.MultinomialMixture(4, learner=FEW),
        (bags(3000, 10_000),),
    ),
    "Bernoulli mixture": lambda: (
        sc.MultinomialMixture(4, bernoulli=True, init="random", learner=FEW),
        (bags(2000, 50_000),),
    ),
    "DirichletProcessMixture": lambda: (
        sc.DirichletProcessMixture(
            20, init="random", learner=sc.VariationalBayes(max_iter=2, tol=0)
        ),
        (bags(1000, 20_000),),
    ),
    "NaiveBayes": lambda: (sc.NaiveBayes(learner=FEW), (bags(4000, 60_000), labelled(4000))),
    "GaussianMixture": lambda: (sc.GaussianMixture(10, learner=FEW), (points(40_000, 20),)),
    "GaussianMixture of many dimensions": lambda: (
        sc.GaussianMixture(8, init="random", learner=FEW),
        (points(2000, 200),),
    ),
    "GaussianMixture, diagonal": lambda: (
        sc.GaussianMixture(10, covariance="diag", init="random", learner=FEW),
        (points(40_000, 20),),
    ),
    "KMeans": lambda: (sc.KMeans(20, learner=sc.HardEM(max_iter=2)), (points(60_000, 10),)),
    "LDA": lambda: (sc.LDA(40, learner=FEW), (bags(5000, 20_000),)),
    "PLSA": lambda: (sc.PLSA(40, learner=FEW), (bags(5000, 20_000),)),
    "LDA by sampling": lambda: (
        sc.LDA(40, learner=sc.CollapsedGibbs(max_iter=10)),
        (bags(5000, 20_000),),
    ),
    "HMM": lambda: (
        sc.HMM(20, smoothing=0.1, learner=FEW),
        (sentences(4000, 20, 20_000),),
    ),
    "HMM of order 2": lambda: (
        sc.HMM(12, order=2, smoothing=0.1, learner=FEW),
        (sentences(2000, 20, 5000),),
    ),
    "GaussianHMM": lambda: (
        sc.GaussianHMM(8, init="random", learner=FEW),
        ([points(20, 20, seed) for seed in range(1000)],),
    ),
    "PCFG": lambda: (
        sc.PCFG(20, 20, smoothing=0.1, learner=FEW),
        (sentences(60, 40, 2000),),
    ),
    "PCFG, long": lambda: (sc.PCFG(4, 4, smoothing=0.1, learner=FEW), (sentences(2, 300, 50),)),
    "IBM1": lambda: (sc.align.IBM1(learner=FEW), (pairs(5000, 15, 20_000),)),
    "IBM2": lambda: (sc.align.IBM2(learner=FEW, warm_up=1), (pairs(4000, 15, 20_000),)),
    "Diagonal": lambda: (sc.align.Diagonal(learner=FEW), (pairs(4000, 15, 20_000),)),
    "HMMAligner": lambda: (sc.align.HMMAligner(learner=FEW, warm_up=1), (pairs(4000, 15, 20_000),)),
    "Aligner": lambda: (sc.Aligner(learner=FEW, warm_up=1), (pairs(3000, 15, 20_000),)),
    "GibbsAligner": lambda: (
        sc.align.GibbsAligner(n_init=2, max_iter=2, warm_up=1),
        (pairs(3000, 15, 20_000),),
    ),
    "Annotators": lambda: (sc.Annotators(learner=FEW), (votes(20_000, 5),)),
    "StoryModel": lambda: (
        _coins(),
        ([tuple(row) for row in np.random.default_rng(0).integers(0, 500, (4000, 12)).tolist()],),
    ),
    "SenseInducer": lambda: (
        sc.SenseInducer(4, min_count=1, short_runs=0, init="random", learner=FEW),
        ([" ".join(["bank", *words]) for words in sentences(5000, 12, 20_000)], "bank"),
    ),
    "LanguageModel": lambda: (sc.translate.LanguageModel(3), (sentences(5000, 20, 5000),)),
    "LabelPropagation": lambda: (
        sc.labels.LabelPropagation(),
        (bags(6000, 5000), labelled(6000)),
    ),
    "LabelPropagation of points": lambda: (
        sc.labels.LabelPropagation(weights="gaussian"),
        (points(6000, 30), labelled(6000)),
    ),
    "DenoisingProjection": lambda: (
        sc.adapt.DenoisingProjection(n_layers=1, n_outputs=1000),
        _two_domains(800, 3000),
    ),
    "PivotProjection": lambda: (
        sc.adapt.PivotProjection(n_pivots=200, min_share=0.0),
        _two_domains(800, 4000),
    ),
    "AdversarialNetwork": lambda: (
        sc.adapt.AdversarialNetwork(n_units=50, max_iter=1),
        _two_domains(2000, 10_000),
    ),
    "EasyAdapt": lambda: (sc.adapt.EasyAdapt(), _two_domains(10_000, 5000)),
    "Merge": lambda: (sc.adapt.Merge(), _two_domains(20_000, 5000)),
    "SelfTraining": lambda: (
        sc.labels.SelfTraining(max_rounds=1),
        (bags(10_000, 5000), labelled(10_000)),
    ),
    "CoTraining": lambda: (
        sc.labels.CoTraining([slice(0, 2500), slice(2500, 5000)], rounds=1),
        (bags(10_000, 5000), labelled(10_000)),
    ),
    "Yarowsky": lambda: (sc.labels.Yarowsky(max_rounds=1), (bags(10_000, 5000), labelled(10_000))),
}
"""Makers of an estimator and of what its `fit` is given."""
