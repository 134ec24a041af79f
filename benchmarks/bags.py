"""Labels of bags: which instances are positive, beside Naive Bayes that ignores the question.

Posts of 20 Newsgroups without headers, footers and quotes, eight to a bag. A bag is positive if at
least one of its posts is from sci.space; positive bags have one such post, or three. Half of the
bags are positive. Test bags are made in the same way of the test posts. Five draws of bags.

"whole bags": Naive Bayes of each bag as one document. "inherited": Naive Bayes of posts that have
the labels of their bags; a bag is as positive as its most positive post. "bags": `MultipleInstance`
as it is; "bags, length 20": every post is rescaled to 20 words; "noisy or": the same with noise.
"true labels": Naive Bayes of posts whose true labels are known, combined as in `MultipleInstance`.

Course pages: a page about a course is positive; its instances are pieces of 30 words. The label of
each page is known, none of a piece; accuracy on test pages alone.

Accuracy of bags at a threshold of .5, and average precision of bags and of single posts, where a
threshold does not matter.

    python benchmarks/bags.py [--json]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _corpora import lines, newsgroups_texts
from _figures import report
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import MultinomialNB

import softcount as sc

DRAWS = 5
SIZE, TARGET = 8, "sci.space"
TEST_BAGS = 200
NUMBERS = (50, 200, 800)


class Bags(NamedTuple):
    """Instances, the bags they are in, whether each is positive, and whether each bag is."""

    X: Any
    bags: np.ndarray
    positive: np.ndarray
    labels: np.ndarray


def draw_bags(X: Any, is_target: np.ndarray, n: int, n_positive: int, seed: int) -> Bags:
    """Every second bag has so many positive instances."""
    rng = np.random.default_rng(seed)
    rows, labels = [], np.arange(n) % 2
    for label in labels:
        k = n_positive * label
        rows.append(rng.choice(np.flatnonzero(is_target), k))
        rows.append(rng.choice(np.flatnonzero(~is_target), SIZE - k))
    order = np.concatenate(rows)
    return Bags(X[order], np.repeat(np.arange(n), SIZE), is_target[order], labels)


def add_up(bags: Bags) -> Any:
    """The words of whole bags."""
    n = len(bags.labels)
    ones = np.ones(len(bags.bags))
    return sparse.csr_matrix((ones, (bags.bags, np.arange(len(ones)))), (n, len(ones))) @ bags.X


def most(values: np.ndarray, bags: Bags) -> np.ndarray:
    found = np.zeros(len(bags.labels))
    np.maximum.at(found, bags.bags, values)
    return found


Answer = tuple[np.ndarray, np.ndarray | None]


def whole_bags(train: Bags, test: Bags) -> Answer:
    model = MultinomialNB(alpha=0.1).fit(add_up(train), train.labels)
    return model.predict_proba(add_up(test))[:, 1], None


def inherited(train: Bags, test: Bags) -> Answer:
    model = MultinomialNB(alpha=0.1).fit(train.X, train.labels[train.bags])
    p = model.predict_proba(test.X)[:, 1]
    return most(p, test), p


def in_bags(**settings: Any) -> Callable[[Bags, Bags], Answer]:
    def answer(train: Bags, test: Bags) -> Answer:
        model = sc.labels.MultipleInstance(**settings)
        model.fit(train.X, train.labels[train.bags], train.bags)
        return model.predict_proba(test.X, test.bags)[:, 1], model.predict_instances(test.X)

    return answer


def true_labels(train: Bags, test: Bags) -> Answer:
    model = MultinomialNB(alpha=0.1).fit(train.X, train.positive)
    p = model.predict_proba(test.X)[:, 1]
    return most(p, test), p


METHODS: dict[str, Callable[[Bags, Bags], Answer]] = {
    "whole bags": whole_bags,
    "inherited": inherited,
    "bags": in_bags(),
    "bags, length 20": in_bags(length=20),
    "noisy or, length 20": in_bags(length=20, noisy=True),
    "true labels": true_labels,
}


def newsgroups() -> dict[str, float]:
    texts = newsgroups_texts()
    vectorizer = CountVectorizer(min_df=5, stop_words="english")
    X, new = vectorizer.fit_transform(texts.train), vectorizer.transform(texts.test)
    target = texts.names.index(TARGET)
    figures: dict[str, list[float]] = {}
    for n_positive in (1, 3):
        for n in NUMBERS:
            for seed in range(DRAWS):
                train = draw_bags(X, texts.train_labels == target, n, n_positive, seed)
                test = draw_bags(new, texts.test_labels == target, TEST_BAGS, n_positive, seed)
                for name, answer in METHODS.items():
                    bags, posts = answer(train, test)
                    key = f"{n_positive} of {SIZE}, {n} bags, {name}"
                    right = float(np.mean((bags > 0.5) == test.labels))
                    figures.setdefault(f"{key}: accuracy of bags", []).append(right)
                    precision = float(average_precision_score(test.labels, bags))
                    figures.setdefault(f"{key}: precision of bags", []).append(precision)
                    if posts is not None:
                        precision = float(average_precision_score(test.positive, posts))
                        figures.setdefault(f"{key}: precision of posts", []).append(precision)
    return {name: float(np.mean(values)) for name, values in figures.items()}


def course_pages() -> dict[str, float]:
    rows = [line.split("\t") for line in lines("webkb_course_cotrain/course.tsv.gz")]
    is_course = np.array([row[0] == "course" for row in rows]).astype(int)
    vectorizer = CountVectorizer(min_df=3, stop_words="english")
    vectorizer.fit(row[2] for row in rows)
    pieces, owners = [], []
    for number, row in enumerate(rows):
        words = row[2].split() or ["nothing"]
        for start in range(0, len(words), 30):
            pieces.append(" ".join(words[start : start + 30]))
            owners.append(number)
    X, owner = vectorizer.transform(pieces), np.array(owners)
    figures: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(rows))
        parts = []
        for chosen in (order[: len(rows) // 2], order[len(rows) // 2 :]):
            place = np.full(len(rows), -1)
            place[chosen] = np.arange(len(chosen))
            kept = np.flatnonzero(place[owner] >= 0)
            bags = place[owner[kept]]
            sorted_ = np.argsort(bags, kind="stable")
            kept, bags = kept[sorted_], bags[sorted_]
            parts.append(Bags(X[kept], bags, np.zeros(len(kept), bool), is_course[chosen]))
        for name, answer in METHODS.items():
            if name == "true labels":
                continue
            bags = answer(*parts)[0]
            right = float(np.mean((bags > 0.5) == parts[1].labels))
            figures.setdefault(f"course pages, {name}: accuracy", []).append(right)
            precision = float(average_precision_score(parts[1].labels, bags))
            figures.setdefault(f"course pages, {name}: precision", []).append(precision)
    return {name: float(np.mean(values)) for name, values in figures.items()}


def measure() -> dict[str, float]:
    return course_pages() | newsgroups()


if __name__ == "__main__":
    report(__doc__ or "", measure)
