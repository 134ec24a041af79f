"""Co-training and self-training from a handful of labels.

Course pages (Blum & Mitchell 1998): 12 labelled pages, 25 % held out; the error of each view's
classifier and of both, before and after, with their settings (1 course and 3 other pages a view and
round, 30 rounds, a pool of 75) and with ours. They published 11.1 % before and 5.0 % after.

20 Newsgroups by date, subjects and bodies: test accuracy and CPU seconds of learning, mean over
draws, beside supervised Naive Bayes, scikit-learn's self-training, EM and hard EM on both views
together.

Names of people, places and organisations (Collins & Singer 1999): spelling and context, from the
items that 7 seed rules label; accuracy on the test names that are no noise.

Settings of the default classifier (smoothing, longest text, items a round) were chosen on other
draws of labels of the newsgroups, by the accuracy on their unlabelled *training* posts. That
numbers are cut from letters on the course pages (cs415: cs 0) was chosen on other draws of these.

    python benchmarks/cotraining.py [--json]
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from _figures import report
from _views import NOISE, Posts, course_pages, names_in_context, posts_in_two_views
from few_labels import some_labels
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, hstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import SelfTrainingClassifier

import softcount as sc

TRIALS, DRAWS, LABELS = 20, 5, (100, 300, 1000)
HELD_OUT, GIVEN = 0.25, {"course": 3, "non-course": 9}
AS_PUBLISHED: dict[str, Any] = {
    "per_class": {"course": 1, "non-course": 3},
    "rounds": 30,
    "pool": 75,
}
LENGTH, SMOOTHING, THRESHOLD, STEPS = 100.0, 0.1, 0.95, 20
Figures = dict[str, float]


def words_and_numbers(text: str) -> list[str]:
    """Words in lower case; whatever number there is, is 0."""
    return [
        "0" if found[0].isdigit() else found for found in re.findall(r"[^\W\d_]+|\d+", text.lower())
    ]


def course_errors(draw: int) -> Figures:
    """One trial: pages held out, twelve labelled, the others not."""
    pages, rng = course_pages(), np.random.default_rng(draw)
    order = rng.permutation(len(pages.labels))
    test, train = np.split(order, [int(HELD_OUT * len(order))])
    shown: list[str | None] = [None] * len(train)
    for label, n in GIVEN.items():
        for i in rng.choice(np.flatnonzero(pages.labels[train] == label), n, replace=False):
            shown[i] = label
    views = {"page": pages.page, "links": pages.links}
    X, new = ({v: [texts[i] for i in part] for v, texts in views.items()} for part in (train, test))
    found: Figures = {}
    runs = {"12 labels": {"rounds": 0}, "their settings": AS_PUBLISHED, "defaults": {}}
    for name, settings in runs.items():
        counter = CountVectorizer(analyzer=words_and_numbers)
        model = sc.labels.CoTraining(list(views), vectorizer=counter, random_state=draw, **settings)
        model.fit(X, shown)
        for view, shares in model.view_proba(new).items():
            wrong = model.classes_[shares.argmax(axis=1)] != pages.labels[test]
            found[f"{name}, {view}"] = float(wrong.mean())
        found[f"{name}, both"] = 1.0 - model.score(new, pages.labels[test])
    return found


def together(views: Mapping[str, csr_matrix]) -> csr_matrix:
    return csr_matrix(hstack(list(views.values())))


def scaled(counts: csr_matrix) -> csr_matrix:
    lengths = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    return csr_matrix(diags(LENGTH / lengths) @ counts)


def supervised(X: csr_matrix, y: NDArray[np.int64]) -> Any:
    return MultinomialNB(alpha=SMOOTHING).fit(X[y != -1], y[y != -1])


def bayes(learner: Any) -> Any:
    return sc.NaiveBayes(smoothing=SMOOTHING, length=LENGTH, learner=learner)


ONE_VIEW: Mapping[str, Callable[[csr_matrix, NDArray[np.int64]], Any]] = {
    "Naive Bayes": supervised,
    "scikit-learn, .95": lambda X, y: SelfTrainingClassifier(
        MultinomialNB(alpha=SMOOTHING), threshold=THRESHOLD
    ).fit(X, y),
    "SelfTraining, .95 kept": lambda X, y: sc.labels.SelfTraining(
        MultinomialNB(alpha=SMOOTHING), threshold=THRESHOLD, keep=True
    ).fit(X, y),
    "SelfTraining": lambda X, y: sc.labels.SelfTraining().fit(X, y),
    "hard EM": lambda X, y: bayes(sc.HardEM()).fit(X, y),
    "EM": lambda X, y: bayes(sc.EM(max_iter=STEPS)).fit(X, y),
    "EM, λ chosen": lambda X, y: sc.NaiveBayesCV(
        smoothing=SMOOTHING, length=LENGTH, cv=3, learner=sc.EM(max_iter=STEPS)
    ).fit(X, y),
}
TWO_VIEWS: Mapping[str, dict[str, Any]] = {
    "two views, no co-training": {"rounds": 0},
    "co-training": {},
    "co-training, agreement": {"prediction": "agreement"},
}


def post_figures(data: Posts, n: int, draw: int) -> Figures:
    """Accuracies and CPU seconds of all methods, with n labels."""
    shown = some_labels(data.train_labels, n, draw)
    X, new = scaled(together(data.train)), scaled(together(data.test))
    found: Figures = {}

    def measured(name: str, learn: Callable[[], Any], test: Any) -> None:
        begun = time.process_time()
        model = learn()
        found[f"{name}, CPU s"] = time.process_time() - begun
        found[f"{name}, accuracy"] = float(np.mean(model.predict(test) == data.test_labels))

    for name, method in ONE_VIEW.items():
        measured(name, lambda method=method: method(X, shown), new)
    for name, settings in TWO_VIEWS.items():
        model = sc.labels.CoTraining(list(data.train), **settings)
        measured(name, lambda model=model: model.fit(data.train, shown), data.test)
    return found


def name_figures() -> Figures:
    data = names_in_context()
    clean = data.test_labels != NOISE
    new = {view: matrix[clean] for view, matrix in data.test.items()}
    found = {"labelled by seeds": float(sum(label is not None for label in data.seeded))}
    for name, settings in {"seeds alone": {"rounds": 0}, "co-training": {}}.items():
        begun = time.process_time()
        model = sc.labels.CoTraining(list(data.train), **settings).fit(data.train, data.seeded)
        found[f"{name}, CPU s"] = time.process_time() - begun
        found[f"{name}, accuracy"] = model.score(new, data.test_labels[clean])
    return found


def means(figures: list[Figures]) -> Figures:
    return {name: float(np.mean([one[name] for one in figures])) for name in figures[0]}


def measure() -> Figures:
    pages = means([course_errors(draw) for draw in range(TRIALS)])
    found = {f"courses, {name}": value for name, value in pages.items()}
    posts = posts_in_two_views()
    post_figures(posts, LABELS[0], 0)  # so that nothing is compiled while the clock runs
    for n in LABELS:
        figures = means([post_figures(posts, n, draw) for draw in range(DRAWS)])
        found |= {f"posts, {n} labels, {name}": value for name, value in figures.items()}
    return found | {f"names, {name}": value for name, value in name_figures().items()}


if __name__ == "__main__":
    report(__doc__, measure)
