"""20 Newsgroups with few labels: Naive Bayes that also learns from unlabelled posts.

Test accuracy, mean over draws of as many labelled posts of every group; all other training posts
are unlabelled. Ready-made counts with 20, 100, 500 and 3,000 labels, and raw posts without headers
with 300. Beside supervised Naive Bayes and scikit-learn's self-training, both on counts as they are
and on documents scaled to 100 words, as ours are. λ is chosen by cross-validation on the labelled
posts alone; with one label a group there is nothing to hide, and λ = 1 is taken.

    python benchmarks/few_labels.py [--json] [--svg FILE]
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from _corpora import Counts, newsgroups_counts, newsgroups_texts, without_common_and_rare
from _figures import report
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

import softcount as sc

NUMBERS = [20, 100, 500, 3000]
DRAWS, LENGTH, SMOOTHING, UNKNOWN = 5, 100.0, 0.1, -1
Labels = NDArray[np.int64]


def raw_posts() -> Counts:
    """Posts without headers, counted; words in two posts or more, stop words left out."""
    texts = newsgroups_texts(("headers",))
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    train = vectorizer.fit_transform(texts.train).tocsr().astype(np.float64)
    test = vectorizer.transform(texts.test).tocsr().astype(np.float64)
    words = list(vectorizer.get_feature_names_out())
    return Counts(train, test, texts.train_labels, texts.test_labels, words)


def scaled(counts: csr_matrix) -> csr_matrix:
    lengths = np.maximum(counts.sum(axis=1).A1, 1.0)
    return csr_matrix(diags(LENGTH / lengths) @ counts)


def some_labels(labels: Labels, n: int, draw: int) -> Labels:
    """Labels of n posts, as many of every class; the others unknown."""
    rng, classes = np.random.default_rng(draw), np.unique(labels)
    shown = np.full(len(labels), UNKNOWN)
    for k in classes:
        chosen = rng.choice(np.flatnonzero(labels == k), n // len(classes), replace=False)
        shown[chosen] = k
    return shown


def supervised(train: csr_matrix, shown: Labels) -> Any:
    known = shown != UNKNOWN
    return MultinomialNB(alpha=SMOOTHING).fit(train[known], shown[known])


def self_training(train: csr_matrix, shown: Labels) -> Any:
    return SelfTrainingClassifier(MultinomialNB(alpha=SMOOTHING), threshold=0.95).fit(train, shown)


def ours(train: csr_matrix, shown: Labels) -> Any:
    model = sc.NaiveBayesCV(smoothing=SMOOTHING, length=LENGTH, cv=3, learner=sc.EM(max_iter=20))
    return model.fit(train, shown)


def lambda_one(train: csr_matrix, shown: Labels) -> Any:
    model = sc.NaiveBayes(smoothing=SMOOTHING, length=LENGTH, learner=sc.EM(max_iter=20))
    return model.fit(train, shown)


METHODS: Mapping[str, tuple[Callable[[csr_matrix, Labels], Any], bool]] = {
    "NB": (supervised, False),
    "NB, length 100": (supervised, True),
    "self-training": (self_training, False),
    "self-training, length 100": (self_training, True),
    "ours, λ = 1": (lambda_one, False),
    "ours, λ tuned": (ours, False),
}


def accuracies(data: Counts, n: int) -> dict[str, float]:
    """Mean accuracy of every method with n labels; λ as cross-validation chose it."""
    stretched = data._replace(train=scaled(data.train), test=scaled(data.test))
    found: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        shown = some_labels(data.train_labels, n, draw)
        for name, (method, stretch) in METHODS.items():
            of = stretched if stretch else data
            model = method(of.train, shown)
            right = model.predict(of.test) == data.test_labels
            found.setdefault(name, []).append(float(right.mean()))
            if method is ours:
                found.setdefault("mean λ", []).append(model.unlabelled_weight_)
    return {name: float(np.mean(values)) for name, values in found.items()}


def measure() -> dict[str, float]:
    counts = without_common_and_rare(newsgroups_counts())
    runs = [("counts", counts, n) for n in NUMBERS]
    runs.append(("raw posts", raw_posts(), 300))
    return {
        f"{where}, {n} labels, {name}": value
        for where, data, n in runs
        for name, value in accuracies(data, n).items()
    }


def draw(figures: Mapping[str, float]) -> str:
    """Accuracy against the number of labels, as SVG."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "few labels", "svg.fonttype": "none"})
    shown = ("ours, λ tuned", "self-training, length 100", "NB, length 100")
    _, ax = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
    for name in shown:
        ax.plot(
            NUMBERS, [figures[f"counts, {n} labels, {name}"] for n in NUMBERS], "o-", label=name
        )
    ax.set(xscale="log", xticks=NUMBERS, xticklabels=NUMBERS, xlabel="labels", ylabel="accuracy")
    ax.minorticks_off()
    ax.grid(axis="y", alpha=0.4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    buffer = io.StringIO()
    plt.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


if __name__ == "__main__":
    report(__doc__, measure, draw)
