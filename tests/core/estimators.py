"""Every estimator that takes a learner, on data as small as can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import softcount as sc

DOCUMENTS = ["a a b", "a b b", "c c d", "c d d e"]
PAIRS = [("three rabbits", "trois lapins"), ("rabbits of grenoble", "lapins de Grenoble")]
SENTENCES = ["the dog barks", "a cat sleeps", "the cat barks"]
POINTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [9.0, 9.0], [9.0, 8.0], [8.0, 9.5]])
VOTES = [(i, who, label) for i in range(4) for who, label in (("x", i % 2), ("y", 0), ("z", i % 2))]
GRAMMAR = """S -> NP VP [1.0]
NP -> 'the' N [.5] | 'a' N [.5]
N -> 'dog' [.5] | 'cat' [.5]
VP -> 'barks' [.5] | 'sleeps' [.5]"""

which, flip = sc.table("which"), sc.table("flip")


@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)


Made = tuple[Any, tuple[Any, ...]]
"""An estimator, and what to fit it with."""


def estimators(a: float) -> dict[str, Callable[[Any], Made]]:
    """By name: from a learner to an estimator whose priors are as small as ``a``, with data."""
    return {
        "MultinomialMixture": lambda l: (
            sc.MultinomialMixture(2, smoothing=a, learner=l),
            (DOCUMENTS,),
        ),
        "MultinomialMixture(bernoulli)": lambda l: (
            sc.MultinomialMixture(2, bernoulli=True, smoothing=a, learner=l),
            (DOCUMENTS,),
        ),
        "GaussianMixture": lambda l: (sc.GaussianMixture(2, learner=l), (POINTS,)),
        "KMeans": lambda l: (sc.KMeans(2, learner=l), (POINTS,)),
        "SoftKMeans": lambda l: (sc.SoftKMeans(2, learner=l), (POINTS,)),
        "DirichletProcessMixture": lambda l: (
            sc.DirichletProcessMixture(3, concentration=_process(a, l), smoothing=a, learner=l),
            (DOCUMENTS,),
        ),
        "DirichletProcessGaussianMixture": lambda l: (
            sc.DirichletProcessGaussianMixture(3, concentration=_process(a, l), learner=l),
            (POINTS,),
        ),
        "NaiveBayes": lambda l: (sc.NaiveBayes(smoothing=a, learner=l), (DOCUMENTS, [0, 1, 1, -1])),
        "Annotators": lambda l: (sc.Annotators(smoothing=a, learner=l), (VOTES,)),
        "SenseInducer": lambda l: (
            sc.SenseInducer(2, smoothing=a, min_count=1, learner=l),
            (DOCUMENTS, "a"),
        ),
        "LDA": lambda l: (sc.LDA(2, smoothing=a, learner=l), (DOCUMENTS,)),
        "PLSA": lambda l: (sc.PLSA(2, smoothing=a, learner=l), (DOCUMENTS,)),
        "IBM1": lambda l: (sc.align.IBM1(smoothing=a, learner=l), (PAIRS,)),
        "IBM1(float32)": lambda l: (
            sc.align.IBM1(smoothing=a, dtype="float32", learner=l),
            (PAIRS,),
        ),
        "IBM2": lambda l: (sc.align.IBM2(smoothing=a, learner=l), (PAIRS,)),
        "Diagonal": lambda l: (sc.align.Diagonal(smoothing=a, learner=l), (PAIRS,)),
        "HMMAligner": lambda l: (sc.align.HMMAligner(smoothing=a, learner=l), (PAIRS,)),
        "Aligner": lambda l: (sc.Aligner(smoothing=a, learner=l), (PAIRS,)),
        "HMM": lambda l: (sc.HMM(2, smoothing=a, learner=l), (SENTENCES,)),
        "HMM(order=2)": lambda l: (sc.HMM(2, order=2, smoothing=a, learner=l), (SENTENCES,)),
        "HMM(features)": lambda l: (
            sc.HMM(2, emissions="features", smoothing=a, learner=l),
            (SENTENCES,),
        ),
        "GaussianHMM": lambda l: (
            sc.GaussianHMM(2, smoothing=a, learner=l),
            ([POINTS, POINTS[::-1]],),
        ),
        "PCFG": lambda l: (sc.PCFG(2, 2, smoothing=a, learner=l), (SENTENCES,)),
        "PCFG(rules)": lambda l: (sc.PCFG(rules=GRAMMAR, smoothing=a, learner=l), (SENTENCES,)),
        "StoryModel": lambda l: (
            sc.StoryModel(coins, prior=_process(a, l, sc.EM()), learner=l),
            (["HHH", "TTT", "HHT"],),
        ),
        "StoryModel(smoothing)": lambda l: (
            sc.StoryModel(coins, smoothing=a, learner=l),
            (["HHH", "TTT", "HHT"],),
        ),
    }


def _process(a: float, learner: Any, usual: Any = None) -> float:
    """A prior that has a mode where one is looked for."""
    chosen = learner or usual
    return 1.0 + a if chosen is not None and chosen.m == "maximise" else max(a, 1e-6)


def every_learner(sweeps: int = 8) -> dict[str, Any]:
    """All learners that have a name, and some that have none, with few steps."""
    batches: dict[str, Any] = {"batch_size": 2, "max_iter": 2}
    chains: dict[str, Any] = {"max_iter": sweeps, "n_init": 2, "thin": 1}
    return {
        "usual": None,
        "EM": sc.EM(max_iter=3, tol=0),
        "Squarem": sc.EM(max_iter=3, schedule=sc.learners.Squarem()),
        "annealed": sc.EM(max_iter=3, temper=(0.3, 0.6, 1.0)),
        "HardEM": sc.HardEM(max_iter=3),
        "OnlineEM": sc.OnlineEM(**batches),
        "IncrementalEM": sc.IncrementalEM(**batches),
        "MonteCarloEM": sc.MonteCarloEM(samples=3, max_iter=3),
        "VariationalBayes": sc.VariationalBayes(max_iter=3),
        "StochasticVB": sc.StochasticVB(**batches),
        "Gibbs": sc.Gibbs(**chains),
        "CollapsedGibbs": sc.CollapsedGibbs(**chains),
        "TemperedEM": sc.TemperedEM(max_iter=3),
        "Spectral": sc.Spectral(),
        "drawn by mini-batches": sc.Learner(
            e="sample", m="draw", schedule=sc.learners.Stepwise(batch_size=2), max_iter=8
        ),
    }
