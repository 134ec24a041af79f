"""Wrong labels, planted and looked for: `suspects` beside in-sample posteriors and scikit-learn.

2,000 TREC questions (six coarse classes), of whose labels 10 % are exchanged for another one at
random. Five draws. "precision": the share of planted labels among the first 200 suspects; "average
precision" is that over the whole list. Labels that were wrong before count as errors.

"in sample": posteriors of a model that knows the label. "logistic regression": posteriors out of
ten folds, of tf-idf rows with C = 3, as confident learning uses them.

    python benchmarks/suspects.py [--json]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _corpora import lines
from _figures import report
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict

import softcount as sc

DRAWS, N, SHARE = 5, 2000, 0.1


def counter() -> CountVectorizer:
    return CountVectorizer(min_df=2)


def by_suspects(make: Callable[[], Any]) -> Callable[[list[str], np.ndarray], np.ndarray]:
    """The probability of each given label; 1 where it is not judged."""

    def judge(texts: list[str], y: np.ndarray) -> np.ndarray:
        found = np.ones(len(y))
        for one in make().suspects(texts, y):
            found[one.item] = one.probability
        return found

    return judge


def in_sample(texts: list[str], y: np.ndarray) -> np.ndarray:
    model = sc.NaiveBayes(vectorizer=counter()).fit(texts, y)
    proba = model.predict_proba(texts)
    return np.asarray(proba[np.arange(len(y)), np.searchsorted(model.classes_, y)])


def logistic(texts: list[str], y: np.ndarray) -> np.ndarray:
    X = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(texts)
    proba = cross_val_predict(
        LogisticRegression(C=3, max_iter=500), X, y, cv=10, method="predict_proba"
    )
    return np.asarray(proba[np.arange(len(y)), np.searchsorted(np.unique(y), y)])


METHODS: dict[str, Callable[[list[str], np.ndarray], np.ndarray]] = {
    "in sample, naive Bayes": in_sample,
    "naive Bayes": by_suspects(lambda: sc.NaiveBayes(vectorizer=counter())),
    "naive Bayes, length 10": by_suspects(lambda: sc.NaiveBayes(vectorizer=counter(), length=10)),
    "logistic regression": logistic,
}


def trec() -> tuple[list[str], np.ndarray]:
    rows = [line.split("\t") for line in lines("qc_trec/train.tsv.gz")]
    return [text for _, text in rows], np.array([label.split(":")[0] for label, _ in rows])


def measure() -> dict[str, float]:
    warnings.simplefilter("ignore")
    figures: dict[str, list[float]] = {}
    for name, read in {"TREC": trec}.items():
        texts, truth = read()
        classes = np.unique(truth)
        for seed in range(DRAWS):
            rng = np.random.default_rng(seed)
            rows = rng.permutation(len(texts))[:N]
            y = truth[rows].copy()
            wrong = rng.permutation(N)[: int(SHARE * N)]
            shift = rng.integers(1, len(classes), len(wrong))
            y[wrong] = classes[(np.searchsorted(classes, y[wrong]) + shift) % len(classes)]
            planted = np.isin(np.arange(N), wrong)
            for method, judge in METHODS.items():
                p = judge([texts[i] for i in rows], y)
                first = np.argsort(p, kind="stable")[: len(wrong)]
                figures.setdefault(f"{name}, {method}: precision", []).append(
                    float(planted[first].mean())
                )
                figures.setdefault(f"{name}, {method}: average precision", []).append(
                    float(average_precision_score(planted, -p))
                )
    return {name: float(np.mean(values)) for name, values in figures.items()}


if __name__ == "__main__":
    report(__doc__ or "", measure)
