"""An EM iteration of mixtures, beside other libraries, in one run.

Documents: 20 Newsgroups (headers, footers, quotes and stop words removed), 20 and 100 classes,
beside the same iteration in plain scipy.sparse; StepMix, which takes dense tables only, beside our
Bernoulli mixture on the 1,000 most frequent words. Points: 50,000 × 50 simulated from 20 Gaussians,
beside scikit-learn's GaussianMixture and KMeans. CPU seconds, one thread each, the best of several
rounds, the libraries taking turns; an iteration of a library is the difference between a long run
and a short one, divided by the difference in steps.

    python benchmarks/mixtures.py [--json]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _corpora import newsgroups_clusters
from _figures import report
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from stepmix.stepmix import StepMix
from threadpoolctl import threadpool_limits

import softcount as sc

ROUNDS = 5
FEW, MANY = 3, 13


def cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def an_iteration(fits: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """CPU seconds that one more iteration takes: each library by turns, the best of all rounds."""
    for fit in fits.values():
        fit(1)  # compile, load, warm up
    long = dict.fromkeys(fits, np.inf)
    short = dict.fromkeys(fits, np.inf)
    for _ in range(ROUNDS):
        for name, fit in fits.items():
            short[name] = min(short[name], cpu(lambda fit=fit: fit(FEW)))
            long[name] = min(long[name], cpu(lambda fit=fit: fit(MANY)))
    return {name: (long[name] - short[name]) / (MANY - FEW) for name in fits}


def plain(x: Any, words: Any, smoothing: float, steps: int) -> float:
    """EM of a multinomial mixture as one would write it with scipy.sparse."""
    weights = np.full(len(words), 1.0 / len(words))
    for _ in range(steps):
        joint = x @ np.log(words).T + np.log(weights)
        logs = logsumexp(joint, axis=1)
        shares = np.exp(joint - logs[:, None])
        weights = shares.mean(axis=0)
        words = (x.T @ shares).T + smoothing
        words /= words.sum(axis=1, keepdims=True)
    return float(logs.sum())


def documents(x: Any, n_classes: int) -> dict[str, float]:
    words = np.random.default_rng(0).dirichlet(np.ones(x.shape[1]), n_classes)
    start = {"weights": np.full(n_classes, 1.0 / n_classes), "words": words}

    def ours(steps: int) -> sc.MultinomialMixture:
        learner = sc.EM(max_iter=steps, tol=0.0)
        model = sc.MultinomialMixture(n_classes, learner=learner, engine=sc.Local(1))
        return model.fit(x, init=start)

    seconds = an_iteration({"softcount": ours, "plain": lambda n: plain(x, words, 0.1, n)})
    apart = ours(MANY).trace_.log_likelihood[MANY] - plain(x, words, 0.1, MANY + 1)
    return {
        f"K={n_classes} softcount, s": seconds["softcount"],
        f"K={n_classes} plain scipy.sparse, s": seconds["plain"],
        f"K={n_classes} times faster": seconds["plain"] / seconds["softcount"],
        f"K={n_classes} difference of log-likelihoods": float(apart),
    }


def presence(x: Any) -> dict[str, float]:
    often = np.argsort(-np.asarray((x > 0).sum(axis=0)).ravel(), kind="stable")[:1000]
    there = (x[:, np.sort(often)] > 0).astype(float)
    dense = there.toarray()

    def ours(steps: int) -> Any:
        learner = sc.EM(max_iter=steps, tol=0.0)
        model = sc.MultinomialMixture(
            20, bernoulli=True, init="random", learner=learner, engine=sc.Local(1)
        )
        return model.fit(there)

    def theirs(steps: int) -> Any:
        return StepMix(
            20,
            measurement="binary",
            max_iter=steps,
            abs_tol=0,
            rel_tol=0,
            progress_bar=0,
            random_state=0,
        ).fit(dense)

    seconds = an_iteration({"softcount": ours, "StepMix": theirs})
    return {
        "1,000 words there or not: softcount, s": seconds["softcount"],
        "StepMix, s": seconds["StepMix"],
        "times faster than StepMix": seconds["StepMix"] / seconds["softcount"],
    }


def simulated() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.normal(size=(20, 50))
    x = centres[rng.integers(20, size=50_000)] + rng.normal(size=(50_000, 50))
    return x, x[:20].copy()


SHAPES = {
    "full": (np.tile(np.eye(50), (20, 1, 1)), np.tile(np.eye(50), (20, 1, 1))),
    "tied": (np.tile(np.eye(50), (20, 1, 1)), np.eye(50)),
    "diag": (np.ones((20, 50)), np.ones((20, 50))),
    "spherical": (np.ones(20), np.ones(20)),
}


def points(x: Any, centres: Any, covariance: Any) -> dict[str, float]:
    ours_start, theirs_start = SHAPES[covariance]
    weights = np.full(20, 0.05)
    start = {"means": centres, "covariances": ours_start, "weights": weights}

    def ours(steps: int) -> Any:
        learner = sc.EM(max_iter=steps, tol=0.0)
        model = sc.GaussianMixture(20, covariance=covariance, learner=learner, engine=sc.Local(1))
        return model.fit(x, init=start)

    def theirs(steps: int) -> Any:
        return GaussianMixture(
            20,
            covariance_type=covariance,
            means_init=centres,
            weights_init=weights,
            precisions_init=theirs_start,
            max_iter=steps,
            tol=0.0,
            init_params="random_from_data",
        ).fit(x)

    seconds = an_iteration({"softcount": ours, "scikit-learn": theirs})
    return {
        f"gaussian {covariance}: softcount, s": seconds["softcount"],
        f"gaussian {covariance}: scikit-learn, s": seconds["scikit-learn"],
        f"gaussian {covariance}: times faster": seconds["scikit-learn"] / seconds["softcount"],
    }


def kmeans(x: Any, centres: Any) -> dict[str, float]:
    def ours(steps: int) -> Any:
        learner = sc.HardEM(max_iter=steps, tol=0.0)
        return sc.KMeans(20, learner=learner, engine=sc.Local(1)).fit(x, init={"means": centres})

    def theirs(steps: int) -> Any:
        return KMeans(20, init=centres, n_init=1, max_iter=steps, tol=0.0, algorithm="lloyd").fit(x)

    seconds = an_iteration({"softcount": ours, "scikit-learn": theirs})
    return {
        "k-means: softcount, s": seconds["softcount"],
        "k-means: scikit-learn, s": seconds["scikit-learn"],
        "k-means: times faster": seconds["scikit-learn"] / seconds["softcount"],
    }


def measure() -> dict[str, float]:
    warnings.simplefilter("ignore")  # none of the runs is to converge
    x = newsgroups_clusters().train
    figures = {"documents": x.shape[0], "words": x.shape[1], "counts": x.nnz}
    with threadpool_limits(1):
        for n_classes in (20, 100):
            figures |= documents(x, n_classes)
        figures |= presence(x)
        cloud, centres = simulated()
        for covariance in SHAPES:
            figures |= points(cloud, centres, covariance)
        figures |= kmeans(cloud, centres)
    return figures


if __name__ == "__main__":
    report(__doc__, measure)
