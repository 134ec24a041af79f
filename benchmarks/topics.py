"""Topic models: speed beside scikit-learn, tomotopy and gensim, in one run.

20 Newsgroups (headers, footers, quotes and stop words removed), one thread, CPU seconds.

    an iteration  EM of PLSA beside NMF by multiplicative updates (Kullback–Leibler)
    a sweep       of our collapsed sampler beside tomotopy's, same priors, after as many sweeps
    curves        held-out perplexity (`softcount.metrics.completion`) against seconds, one seed;
                  the best point of each, and how long softcount's LDA takes to be as good (no
                  figure where it never is)
    bytes         a token, of the documents in memory and of the sampler

Systems take turns, and figures of an iteration and of a sweep are medians. Libraries that are not
installed are left out, and said to be.

    python benchmarks/topics.py [--json] [--svg FILE]
"""

from __future__ import annotations

import io
import sys
import time
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from _corpora import newsgroups_clusters
from _figures import report
from _topic_systems import (
    ALPHA,
    BETA,
    ONE,
    System,
    absent,
    available,
    cpu,
    tomotopy_model,
    train,
)
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_limits

import softcount as sc
from softcount import PLSA
from softcount.metrics import completion_perplexity
from softcount.text.bags import Bags
from softcount.topics.gibbs import CollapsedTopics

ROUNDS = 3
FEW, MANY = 3, 13
WARM, SWEEPS = {20: 50, 100: 30, 1000: 20}, 3
CURVES = (20, 100)
SLOW = ("scikit-learn LDA, batch", "scikit-learn LDA, online", "gensim")
"""Systems whose curves are drawn for few topics only: with many they take a quarter of an hour."""
OURS = "softcount LDA"


@cache
def posts() -> Any:
    return newsgroups_clusters()


def em_iterations(n_topics: int, dtype: str) -> list[float]:
    """CPU seconds of each of some EM iterations of PLSA."""
    ticks: list[float] = []
    learner = sc.EM(max_iter=MANY, tol=0.0)
    model = PLSA(n_topics, init="random", short_runs=0, dtype=dtype, learner=learner, engine=ONE)
    model.fit(posts().train, on_step=lambda _: ticks.append(time.process_time()))
    return np.diff(ticks)[FEW:].tolist()


def nmf_iteration(n_topics: int, dtype: str) -> float:
    """CPU seconds of one more update: a long run less a short one."""
    counts = posts().train.astype(dtype)

    def run(steps: int) -> float:
        settings: dict[str, Any] = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0.0}
        model = NMF(n_topics, init="random", random_state=0, max_iter=steps, **settings)
        return cpu(lambda: model.fit(counts))[0]

    return (run(MANY) - run(FEW)) / (MANY - FEW)


def iterations(n_topics: int, dtype: str) -> dict[str, float]:
    em_iterations(n_topics, dtype)  # compile first
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours += em_iterations(n_topics, dtype)
        theirs.append(nmf_iteration(n_topics, dtype))
    one, other = float(np.median(ours)), float(np.median(theirs))
    return {
        f"K={n_topics} {dtype} PLSA, s an iteration": one,
        f"K={n_topics} {dtype} NMF, s an iteration": other,
        f"K={n_topics} {dtype} PLSA, times faster": other / one,
    }


def sampler(n_topics: int) -> CollapsedTopics:
    x = posts().train
    parts = (x.indptr, x.indices, x.data, x.shape[1])
    return CollapsedTopics(*parts, alpha=np.full(n_topics, ALPHA), beta=BETA)


def sweeps(n_topics: int) -> dict[str, float]:
    ours = sampler(n_topics)
    stream = iter(range(10**6))
    for _ in range(WARM[n_topics]):
        ours.sweep(next(stream))
    theirs = None
    if "tomotopy" not in absent():
        theirs = tomotopy_model(posts().train, posts().vocabulary, n_topics, 0)
        theirs.optim_interval = 0  # priors as given, as ours
        train(theirs, WARM[n_topics])
    seconds: dict[str, list[float]] = {"softcount": [], "tomotopy": []}
    for _ in range(ROUNDS):
        for _ in range(SWEEPS):
            seconds["softcount"].append(cpu(lambda: ours.sweep(next(stream)))[0])
        if theirs:
            seconds["tomotopy"].append(cpu(lambda: train(theirs, SWEEPS))[0] / SWEEPS)
    one = float(np.median(seconds["softcount"]))
    figures = {f"K={n_topics} Gibbs, s a sweep": one}
    if theirs:
        other = float(np.median(seconds["tomotopy"]))
        figures[f"K={n_topics} tomotopy, s a sweep"] = other
        figures[f"K={n_topics} Gibbs, times faster"] = other / one
    return figures


@cache
def curves(n_topics: int) -> dict[str, list[tuple[float, float]]]:
    """(CPU seconds, held-out perplexity) of every system, over the time it ran."""
    found = {}
    for name, system in available().items():
        beginning = name == "scikit-learn NMF, 20 steps"  # of the run of 100
        if beginning or (name in SLOW and n_topics > min(CURVES)):
            continue
        print(f"{name}, {n_topics} topics …", file=sys.stderr)
        if name.startswith("softcount"):  # compile first
            list(system(posts().train[:64], posts().vocabulary, n_topics, 0))
        found[name] = curve(system, n_topics)
    return found


def curve(system: System, n_topics: int) -> list[tuple[float, float]]:
    points = system(posts().train, posts().vocabulary, n_topics, 0)
    return [(s, completion_perplexity(topics, posts().test)) for s, topics in points]


def reached(points: list[tuple[float, float]], goal: float) -> float | None:
    """Seconds until a perplexity as low as this, if it ever was."""
    return min((seconds for seconds, value in points if value <= goal), default=None)


def races(n_topics: int) -> dict[str, float]:
    """The best point of each curve, and how long softcount's LDA takes to be as good, if it is."""
    found, figures = curves(n_topics), {}
    for name, points in found.items():
        perplexity, seconds = min((value, seconds) for seconds, value in points)
        what = f"K={n_topics} {name}"
        figures |= {f"{what}, s": seconds, f"{what}, perplexity": perplexity}
        ours = reached(found[OURS], perplexity)
        if ours is not None and not name.startswith("softcount"):
            figures[f"{what}, s of {OURS} to be as good"] = ours
            figures[f"{what}, times as long"] = seconds / ours
    return figures


def memory() -> dict[str, float]:
    """Bytes a token: documents as a fit holds them (by document and by word), and samplers."""
    bags = Bags.of(posts().train)
    tokens = float(bags.lengths.sum())
    figures = {
        "bytes a token, documents": sum(part.nbytes for part in bags.by_document) / tokens,
        "bytes a token, the same by word": sum(part.nbytes for part in bags.by_word) / tokens,
    }
    for n_topics in WARM:
        state = sampler(n_topics)
        own = sum(part.nbytes for part in state._state.tokens)
        table = sum(part.nbytes for part in state._state.table)
        figures[f"bytes a token, sampler, K={n_topics}, tokens"] = own / tokens
        figures[f"bytes a token, sampler, K={n_topics}, words' topics"] = table / tokens
    return figures


def measure() -> dict[str, float]:
    warnings.simplefilter("ignore")  # none of the runs is to converge
    for name in absent():
        print(f"left out: {name} is not installed (pip install {name})", file=sys.stderr)
    x = posts().train
    figures = {"documents": x.shape[0], "words": x.shape[1], "tokens": float(x.sum())}
    with threadpool_limits(1):
        for n_topics in CURVES:
            for dtype in ("float64", "float32"):
                figures |= iterations(n_topics, dtype)
        for n_topics in WARM:
            figures |= sweeps(n_topics)
        for n_topics in CURVES:
            figures |= races(n_topics)
    return figures | memory()


def draw(figures: Mapping[str, float]) -> str:
    """Held-out perplexity against CPU seconds, as SVG."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "topics", "svg.fonttype": "none"})
    _, axes = plt.subplots(1, len(CURVES), figsize=(10, 4.2), layout="constrained")
    for ax, n_topics in zip(axes, CURVES, strict=True):
        for number, (name, points) in enumerate(curves(n_topics).items()):
            line = "-" if name.startswith("softcount") else "--"
            ax.plot(*zip(*points, strict=True), f"{line}o", ms=3, color=f"C{number}", label=name)
        lowest = min(value for points in curves(n_topics).values() for _, value in points)
        ax.set(xscale="log", ylim=(0.98 * lowest, 1.5 * lowest), title=f"K = {n_topics}")
        ax.set(xlabel="CPU seconds", ylabel="held-out perplexity")
        ax.grid(alpha=0.4)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize="small")
    buffer = io.StringIO()
    plt.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


if __name__ == "__main__":
    report(__doc__, measure, draw)
