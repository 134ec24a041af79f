"""Corpora with two views: course pages and the links to them, posts, names in their contexts."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from _corpora import lines, newsgroups_texts
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from softcount.labels.cotraining import body, subject

CONTEXT = ("X01_", "X11_", "X3_")
NOISE = "?"


class Pages(NamedTuple):
    """Web pages in two views: what they say, and what links to them say."""

    page: list[str]
    links: list[str]
    labels: NDArray[np.str_]


class Posts(NamedTuple):
    """Posts in two views, as counts of words: subjects and bodies."""

    train: dict[str, csr_matrix]
    test: dict[str, csr_matrix]
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]


class Names(NamedTuple):
    """Names in two views, spelling and context; labels of a few by seed rules; a test set."""

    train: dict[str, csr_matrix]
    seeded: list[str | None]
    test: dict[str, csr_matrix]
    test_labels: NDArray[np.str_]


@cache
def course_pages() -> Pages:
    """1,051 pages of four universities, of which 230 are about a course (Blum & Mitchell 1998)."""
    rows = [line.split("\t") for line in lines("webkb_course_cotrain/course.tsv.gz")]
    labels, _, page, links = zip(*rows, strict=True)
    return Pages(list(page), list(links), np.array(labels))


def posts_in_two_views() -> Posts:
    """20 Newsgroups by date: subjects without Re:, bodies without headers; no stop words, and of
    bodies only words in two posts or more.
    """
    texts = newsgroups_texts(())
    train, test = {}, {}
    for view, of, least in (("subject", subject, 1), ("body", body, 2)):
        counter = CountVectorizer(stop_words="english", min_df=least, dtype=np.float64)
        train[view] = counter.fit_transform([of(post) for post in texts.train]).tocsr()
        test[view] = counter.transform([of(post) for post in texts.test]).tocsr()
    return Posts(train, test, texts.train_labels, texts.test_labels)


def names_in_context() -> Names:
    """Names of people, places and organisations (Collins & Singer 1999), with 7 seed rules."""
    train = [line.split() for line in lines("collins_singer_ne/train.ex.gz")]
    seeds = [line.split()[:2] for line in lines("collins_singer_ne/seed.rules") if line.strip()]
    tested = [line.split("\t") for line in lines("collins_singer_ne/test.exy")]
    rules = {feature: label for label, feature in seeds}
    seeded = [next((rules[f] for f in item if f in rules), None) for item in train]
    labels = np.array([label for label, _ in tested])
    sides = {"spelling": False, "context": True}
    known, new = {}, {}
    for view, in_context in sides.items():
        counter = CountVectorizer(analyzer=_side(in_context), dtype=np.float64)
        known[view] = counter.fit_transform(train).tocsr()
        new[view] = counter.transform([item.split() for _, item in tested]).tocsr()
    return Names(known, seeded, new, labels)


def _side(in_context: bool):  # type: ignore[no-untyped-def]
    return lambda item: [f for f in item if f.startswith(CONTEXT) == in_context]
