"""How many labels a classifier needs if it may ask for them.

Learning begins with two labelled items of every class. Then, round by round, as many items are
labelled as there are labels already (at most 100), those that `softcount.labels.ask` chooses, or
random ones. Test accuracy after so many labels, mean and standard error over draws of the first
labels; and with how many labels (between measurements: by a straight line) a method reaches the
accuracy that random labels reach in the end.

    random            EM from labelled and unlabelled items, whose weight is chosen by
                      cross-validation on the labels, none (0) among the choices; labels at random
    margin, entropy, committee, information, density   the same, asking by that criterion
                      (density: margin × mean cosine)
    labels only       Naive Bayes without unlabelled items, by margin
    scikit-learn      logistic regression on tf-idf, labels at random, and by margin

    python benchmarks/active_learning.py [--draws 5] [--only questions,newsgroups] [--json]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _corpora import lines, newsgroups_clusters
from _reviews import domain
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

import softcount as sc
from softcount.labels import ask

UNKNOWN = -1
FIRST, LARGEST_ROUND = 2, 100
Labels = NDArray[np.int64]


class Data(NamedTuple):
    """Counts of words and classes, and the last number of labels."""

    train: csr_matrix
    train_labels: Labels
    test: csr_matrix
    test_labels: Labels
    most: int


def questions() -> Data:
    """TREC questions, six classes."""
    parts = []
    for part in ("train", "test"):
        rows = [line.split("\t") for line in lines(f"qc_trec/{part}.tsv.gz")]
        parts.append(([row[-1] for row in rows], [row[0].split(":")[0] for row in rows]))
    vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2)
    (train, y), (test, true) = parts
    names = sorted({*y})
    return Data(
        vectorizer.fit_transform(train).astype(float),
        np.array([names.index(one) for one in y]),
        vectorizer.transform(test).astype(float),
        np.array([names.index(one) for one in true]),
        400,
    )


def reviews() -> Data:
    """Reviews of kitchenware, positive or not."""
    kitchen = domain("kitchen")
    X, y, test, true = kitchen
    return Data(csr_matrix(X), np.asarray(y), csr_matrix(test), np.asarray(true), 400)


def newsgroups() -> Data:
    """4,000 posts of 20 newsgroups, without headers, quotes, signatures and stop words."""
    found = newsgroups_clusters()
    some = np.random.default_rng(0).permutation(found.train.shape[0])[:4000]
    return Data(
        found.train[some].astype(float),
        found.train_labels[some],
        found.test.astype(float),
        found.test_labels,
        500,
    )


CORPORA: dict[str, Callable[[], Data]] = {
    "questions": questions,
    "reviews": reviews,
    "newsgroups": newsgroups,
}

Choose = Callable[[Any, Data, Labels, int, int], Any]


def by_asking(model: Any, data: Data, y: Labels, n: int, seed: int, **how: Any) -> Any:
    return list(ask(model, data.train, y, n=n, random_state=seed, **how))


def naive_bayes(data: Data, y: Labels) -> Any:
    """Naive Bayes whose weight of unlabelled items is chosen on the labels."""
    model = sc.NaiveBayesCV(
        smoothing=0.1, unlabelled_weights=(0.0, 0.1, 1.0), cv=3, max_iter=8, random_state=0
    )
    return model.fit(data.train, y)


def labelled_only(data: Data, y: Labels) -> Any:
    return sc.NaiveBayes(smoothing=0.1, unlabelled_weight=0.0, max_iter=1).fit(data.train, y)


class Logistic:
    """Logistic regression on tf-idf; it takes counts, as the others do."""

    def __init__(self, data: Data, y: Labels) -> None:
        self.weigher = TfidfTransformer(sublinear_tf=True).fit(data.train)
        known = y != UNKNOWN
        rows = self.weigher.transform(data.train[known])
        self.model = LogisticRegression(C=10.0, max_iter=1000).fit(rows, y[known])

    def predict_proba(self, X: csr_matrix) -> Any:
        return self.model.predict_proba(self.weigher.transform(X))

    def predict(self, X: csr_matrix) -> Any:
        return self.model.predict(self.weigher.transform(X))


METHODS: dict[str, tuple[Callable[[Data, Labels], Any], Choose]] = {
    "random": (naive_bayes, partial(by_asking, by="random")),
    "margin": (naive_bayes, partial(by_asking, by="margin")),
    "entropy": (naive_bayes, partial(by_asking, by="entropy")),
    "committee": (naive_bayes, partial(by_asking, by="committee")),
    "information": (naive_bayes, partial(by_asking, by="information")),
    "density": (naive_bayes, partial(by_asking, by="margin", density=1.0)),
    "labels only, margin": (labelled_only, partial(by_asking, by="margin")),
    "scikit-learn, random": (Logistic, partial(by_asking, by="random")),
    "scikit-learn, margin": (Logistic, partial(by_asking, by="margin")),
}


def curve(data: Data, method: str, draw: int) -> dict[int, float]:
    """Accuracy by number of labels."""
    learn, choose = METHODS[method]
    rng = np.random.default_rng(draw)
    y = np.full(len(data.train_labels), UNKNOWN)
    for k in np.unique(data.train_labels):
        some = rng.choice(np.flatnonzero(data.train_labels == k), FIRST, replace=False)
        y[some] = k
    found = {}
    while True:
        n = int((y != UNKNOWN).sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sc.mixture.CollapseWarning)
            model = learn(data, y)
        found[n] = float((model.predict(data.test) == data.test_labels).mean())
        if n >= data.most:
            return found
        chosen = choose(model, data, y, min(n, LARGEST_ROUND, data.most - n), draw)
        y[chosen] = data.train_labels[chosen]


def labels_needed(curve: dict[int, float], accuracy: float) -> float:
    """The number of labels from which on the accuracy is reached; inf if it is not."""
    numbers, reached = list(curve), list(curve.values())
    for place, value in enumerate(reached):
        if value >= accuracy:
            if place == 0:
                return numbers[0]
            share = (accuracy - reached[place - 1]) / (value - reached[place - 1])
            return numbers[place - 1] + share * (numbers[place] - numbers[place - 1])
    return float("inf")


def study(name: str, draws: int) -> dict[str, Any]:
    data = CORPORA[name]()
    curves = {method: [curve(data, method, draw) for draw in range(draws)] for method in METHODS}
    goals = [one[data.most] for one in curves["random"]]
    print(f"\n{name}: {data.train.shape[0]} items, {len(np.unique(data.train_labels))} classes")
    columns = list(curves["random"][0])
    print("| |", " | ".join(map(str, columns)), "| labels for what random ones reach |")
    print("|---" * (len(columns) + 2) + "|")
    rows = {}
    for method, some in curves.items():
        table = np.array([[one[n] for n in columns] for one in some])
        error = table.std(axis=0, ddof=1) / np.sqrt(draws) if draws > 1 else 0.0 * table[0]
        needed = float(np.median([labels_needed(*pair) for pair in zip(some, goals, strict=True)]))
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(table.mean(axis=0), error, strict=True)]
        print(f"| {method} | {' | '.join(cells)} | {needed:.0f} |", flush=True)
        rows[method] = {"mean": table.mean(axis=0).tolist(), "needed": needed}
    return {"labels": columns, "methods": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", default=",".join(CORPORA))
    parser.add_argument("--json", action="store_true", help="print the figures as JSON as well")
    options = parser.parse_args()
    figures = {name: study(name, options.draws) for name in options.only.split(",")}
    if options.json:
        print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
