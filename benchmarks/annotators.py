"""Simulated annotators: time beside crowd-kit and plain numpy, accuracy beside the majority.

Time: 250,000 votes (50,000 items, 5 votes each, 500 annotators, 5 labels), CPU seconds of a whole
fit, reading of three columns included; as many steps of EM from the same start for all, and the
largest difference of posteriors. The least of several runs, turn by turn. crowd-kit is left out
where it is not installed.

Accuracy: 2,000 items, 5 votes each, 40 annotators, 4 labels, mean of 5 draws, by the kind of
annotators and by how many true labels are known (accuracy of the others alone). Good ones are right
with .6 to .95; spammers say anything; adversaries are right with .1 to .3 and mostly say the one
label that follows the true one. "from known" begins with the known items (init="known") instead of
the majority; that start was added after a first run of these figures had been seen. Settings are
the usual ones, none was chosen by the figures.

    python benchmarks/annotators.py [--json]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _figures import report
from numpy.typing import NDArray
from scipy import sparse

import softcount as sc

STEPS, RUNS, DRAWS = 20, 3, 5
KNOWN = (0.0, 0.01, 0.05, 0.2)
CROWDS = {
    "good": (1.0, 0.0, 0.0),
    "half spammers": (0.5, 0.5, 0.0),
    "third adversaries": (2 / 3, 0.0, 1 / 3),
    "mostly adversaries": (0.4, 0.0, 0.6),
}
"""Parts of the annotators that are good, that say anything, and that mislead."""
Whole = NDArray[np.int64]
Real = NDArray[np.float64]


class Data(NamedTuple):
    """A vote is an entry of each of the three columns."""

    items: Whole
    annotators: Whole
    labels: Whole
    truth: Whole

    @property
    def columns(self) -> tuple[Whole, Whole, Whole]:
        return self.items, self.annotators, self.labels


def simulated(
    seed: int, n: int, A: int, K: int, each: int, crowd: tuple[float, float, float]
) -> Data:
    rng = np.random.default_rng(seed)
    confusion = np.array([_habits(rng, K, kind) for kind in rng.choice(3, size=A, p=crowd)])
    truth = rng.choice(K, size=n, p=rng.dirichlet(np.full(K, 10.0)))
    items = np.repeat(np.arange(n), each)
    # each item is seen by annotators in a row, from anywhere: all different
    annotators = (rng.integers(A, size=n)[:, None] + np.arange(each) * (A // each)).reshape(-1) % A
    ends = np.cumsum(confusion[annotators, truth[items]], axis=1)
    labels = (rng.random(len(items))[:, None] * ends[:, -1:] >= ends).sum(axis=1)
    return Data(items, annotators, labels, truth)


def _habits(rng: np.random.Generator, K: int, kind: int) -> Real:
    """What an annotator says of each true label."""
    if kind == 1:
        return np.tile(rng.dirichlet(np.ones(K)), (K, 1))
    right = rng.uniform(0.6, 0.95) if kind == 0 else rng.uniform(0.1, 0.3)
    rest = (1.0 - right) * rng.dirichlet(np.ones(K - 1), size=K)
    if kind == 2:
        rest = np.full((K, K - 1), 0.2 * (1.0 - right) / (K - 2))
        rest[:, 0] = 0.8 * (1.0 - right)
    table = np.zeros((K, K))
    for k in range(K):
        table[k, k] = right
        table[k, [(k + step) % K for step in range(1, K)]] = rest[k]
    return table


# the three that are compared
def ours(data: Data) -> Real:
    learner = sc.EM(max_iter=STEPS, tol=0)
    model = sc.Annotators(smoothing=1e-10, learner=learner, engine=sc.Local(threads=1))
    return model.fit(data.columns).proba_


def plain_numpy(data: Data) -> Real:
    """The same with a sparse matrix of items × (annotator, label), written as one would."""
    A, K, n = data.annotators.max() + 1, data.labels.max() + 1, len(data.truth)
    words = data.annotators * K + data.labels
    votes = sparse.csr_matrix((np.ones(len(words)), (data.items, words)), shape=(n, A * K))
    by_word = votes.T.tocsr()
    shares = np.zeros((n, K))
    np.add.at(shares, (data.items, data.labels), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    for _ in range(STEPS + 1):
        weights = shares.mean(axis=0)
        counts = (by_word @ shares).reshape(A, K, K) + 1e-10  # annotator, said, true
        logs = np.log(counts / counts.sum(axis=1, keepdims=True)).reshape(A * K, K)
        joint = votes @ logs + np.log(weights)
        shares = np.exp(joint - joint.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def crowd_kit(data: Data) -> Real:
    import pandas
    from crowdkit.aggregation import DawidSkene

    frame = pandas.DataFrame(dict(zip(("task", "worker", "label"), data.columns, strict=True)))
    # its last posteriors are those before its last M-step
    found = DawidSkene(n_iter=STEPS + 1, tol=-np.inf).fit(frame)
    return found.probas_.sort_index().sort_index(axis=1).to_numpy()  # type: ignore[no-any-return]


def times() -> dict[str, float]:
    data = simulated(0, 50_000, 500, 5, 5, CROWDS["good"])
    ways: dict[str, Callable[[Data], Real]] = {"softcount": ours, "numpy": plain_numpy}
    try:
        import crowdkit  # noqa: F401
    except ImportError:
        pass
    else:
        ways["crowd-kit"] = crowd_kit
    expected = ours(data)  # compiles
    spent: dict[str, list[float]] = {name: [] for name in ways}
    figures = {}
    for _ in range(RUNS):
        for name, way in ways.items():
            began = time.process_time()
            found = way(data)
            spent[name].append(time.process_time() - began)
            if name != "softcount":
                figures[f"{name}: posteriors differ by"] = float(np.abs(found - expected).max())
    least = {name: min(seconds) for name, seconds in spent.items()}
    usual, strings = [], []
    texts: Any = tuple(np.char.add("name ", column.astype(str)).tolist() for column in data.columns)
    for _ in range(RUNS):
        for kept, columns in ((usual, data.columns), (strings, texts)):
            began = time.process_time()
            sc.Annotators(engine=sc.Local(threads=1)).fit(columns)
            kept.append(time.process_time() - began)
    return {
        **{f"{name}: CPU s, {STEPS} steps": seconds for name, seconds in least.items()},
        **{f"{name}: times softcount's": s / least["softcount"] for name, s in least.items()},
        **figures,
        "softcount: CPU s until it converges": min(usual),
        "softcount: the same, names are strings": min(strings),
    }


def accuracies() -> dict[str, float]:
    figures: dict[str, list[float]] = {}
    for crowd, parts in CROWDS.items():
        for draw in range(DRAWS):
            data = simulated(draw, 2000, 40, 4, 5, parts)
            order = np.random.default_rng(draw).permutation(len(data.truth))
            majority = np.array(list(sc.annotators.majority_vote(data.columns).values()))
            figures.setdefault(f"{crowd}: majority", []).append((majority == data.truth).mean())
            for part in KNOWN:
                shown = order[: int(part * len(order))]
                y = np.full(len(order), -1)
                y[shown] = data.truth[shown]
                asked = y == -1
                for init, how in (("majority", ""), ("known", ", from known")):
                    if part or init == "majority":
                        found = sc.Annotators(init=init).fit(data.columns, y).labels_
                        name = f"{crowd}: {part:.0%} known{how}"
                        figures.setdefault(name, []).append((found == data.truth)[asked].mean())
    return {name: float(np.mean(values)) for name, values in figures.items()}


if __name__ == "__main__":
    report(str(__doc__), lambda: {**times(), **accuracies()})
