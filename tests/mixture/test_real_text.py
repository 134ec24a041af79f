"""20 Newsgroups: what the mixtures are for."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from tests import real

pytestmark = pytest.mark.slow


@cache
def counts(part: str) -> tuple[Any, Any]:
    """Counts and groups of some posts; words of many posts and of few left out."""
    n_words = len(real.lines("20news_bow/vocab.txt.gz"))
    rows, columns, values, groups = [], [], [], []
    for d, line in enumerate(real.lines(f"20news_bow/{part}.txt.gz")):
        group, *pairs = line.split()
        groups.append(int(group) - 1)
        for pair in pairs:
            word, count = pair.split(":")
            rows.append(d)
            columns.append(int(word))
            values.append(int(count))
    shape = (len(groups), n_words)
    return sparse.csr_matrix((values, (rows, columns)), shape=shape, dtype=float), np.array(groups)


@cache
def posts() -> tuple[Any, Any, Any, Any]:
    """Training and test posts, of words that say something, and their groups."""
    (train, y), (test, z) = counts("train"), counts("test")
    often = np.bincount(train.indices, minlength=train.shape[1])
    kept = np.flatnonzero((often >= 5) & (often <= 0.1 * train.shape[0]))
    order = np.random.default_rng(0).permutation(len(y))  # the files are sorted by group
    return train[order][:, kept], y[order], test[:, kept], z


def some_labels(y: Any, n: int) -> Any:
    rng = np.random.default_rng(1)
    shown = np.full(len(y), -1)
    for k in np.unique(y):
        shown[rng.choice(np.flatnonzero(y == k), n // 20, replace=False)] = k
    return shown


def test_unlabelled_posts_help_where_labels_are_few() -> None:
    train, y, test, z = posts()
    shown = some_labels(y, 300)
    known = shown >= 0
    alone = sc.NaiveBayes(length=100).fit(train[known], shown[known]).score(test, z)
    helped = sc.NaiveBayes(length=100, learner=sc.EM(max_iter=20)).fit(train, shown).score(test, z)
    assert helped > 0.67
    assert helped > alone + 0.1


def test_a_collapse_is_not_silent() -> None:
    train, y, test, z = posts()
    with pytest.warns(sc.errors.CollapseWarning, match="collapsed"):
        model = sc.NaiveBayes(
            smoothing=1.0, unlabelled_weight=0.1, length=100, learner=sc.EM(max_iter=30)
        ).fit(train, some_labels(y, 300))
    assert model.score(test, z) < 0.3


def test_groups_are_found_without_labels() -> None:
    train, y, _, _ = posts()
    learner = sc.CollapsedGibbs(max_iter=10)
    found = sc.MultinomialMixture(20, learner=learner).fit(train).labels_
    assert sc.metrics.agreement(found, y).v_measure > 0.55
