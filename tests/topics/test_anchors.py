"""Topics from anchor words: corners, known truth, in parts, in bounded memory, awkward data."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize
from scipy.spatial.distance import cdist

import softcount as sc
from softcount.core.errors import DataError
from softcount.metrics import completion_perplexity
from softcount.text import archive as building
from softcount.text.archive import Archive
from softcount.text.bags import Bags
from softcount.topics import LDA, anchors
from softcount.topics.anchors import (
    anchor_topics,
    common_words,
    find_corners,
    mixture_weights,
    word_scale,
)
from tests import real


def whole(counts: Any) -> list[Any]:
    return [SimpleNamespace(bags=Bags.of(counts))]


def found(counts: Any, n_topics: int, seed: int = 0) -> Any:
    return anchor_topics(whole(counts), n_topics, np.random.default_rng(seed))


def variation(found: Any, truth: Any) -> float:
    """Mean total variation under the best matching."""
    table = cdist(found, truth, "cityblock") / 2
    return float(table[linear_sum_assignment(table)].mean())


def unblended(topics: Any, counts: Any) -> Any:
    """What anchors gave before the frequencies of all words were mixed in."""
    words, n = np.asarray(counts.sum(axis=0)).ravel(), (np.asarray(counts.sum(axis=1)) > 0).sum()
    blend = 1 / np.sqrt(1 + n)
    return (topics - blend * words / words.sum()) / (1 - blend)


def simulated(
    n: int, n_words: int, n_topics: int, length: float, seed: int, word_prior: float = 0.05
) -> tuple[Any, Any]:
    """Documents of a latent Dirichlet allocation, and its topics."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_words, word_prior), n_topics)
    theta = rng.dirichlet(np.full(n_topics, 0.2), n)
    chances = theta @ truth
    lengths = rng.poisson(length, n)
    counts = [rng.multinomial(m, p / p.sum()) for m, p in zip(lengths, chances, strict=True)]
    return sparse.csr_matrix(np.array(counts, float)), truth


def with_anchors(n: int, length: int, seed: int) -> tuple[Any, Any]:
    """Four topics, two of them often together, that share 30 words; words 0–3 are anchors."""
    rng = np.random.default_rng(seed)
    truth = np.hstack([np.eye(4) * 0.15, 0.85 * rng.dirichlet(np.full(30, 0.3), 4)])
    theta = rng.dirichlet([0.3, 0.3, 0.3, 0.3], n)
    theta[:, 1] = (theta[:, 0] + theta[:, 1]) / 2
    theta /= theta.sum(axis=1, keepdims=True)
    counts = [rng.multinomial(length, row) for row in theta @ truth]
    return sparse.csr_matrix(np.array(counts, float)), truth


# known truth
def test_without_noise_the_truth_comes_out() -> None:
    counts, truth = with_anchors(300, 10**9, seed=0)
    assert variation(unblended(found(counts, 4), counts), truth) < 2e-3


def test_documents_of_three_words_are_enough_if_they_are_many() -> None:
    """Only so if a token is not paired with itself: a third of all pairs would be of those."""
    errors = []
    for n in (10_000, 50_000):
        counts, truth = with_anchors(n, 3, seed=1)
        errors.append(variation(unblended(found(counts, 4), counts), truth))
    assert errors[1] < 0.045  # with such pairs .07, and no less for more documents
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize(("n_words", "n_topics"), [(300, 5), (1000, 10)])
def test_topics_of_simulated_documents_are_found(n_words: int, n_topics: int) -> None:
    counts, truth = simulated(1500, n_words, n_topics, 80, seed=3)
    rng = np.random.default_rng(0)
    often = np.asarray(counts.sum(axis=0)).ravel() * rng.uniform(0.5, 1.5, (n_topics, n_words))
    at_random = variation(often / often.sum(axis=1, keepdims=True), truth)
    assert variation(found(counts, n_topics), truth) < 0.25 * at_random


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ap_blei/ap.dat.gz", "kos_uci/kos.ldac.gz"])
def test_em_on_real_text_gets_further_than_from_random_starts(name: str) -> None:
    rows = [line.split(" ")[1:] for line in real.lines(name)[:1200]]
    entries = [(d, *map(int, one.split(":"))) for d, row in enumerate(rows) for one in row]
    d, w, n = np.array(entries).T
    counts = sparse.csr_matrix((n.astype(float), (d, w)))
    counts = counts[np.random.default_rng(0).permutation(counts.shape[0])]
    counts = counts[:, np.asarray(counts[:1000].sum(axis=0)).ravel() > 0]
    train, test = counts[:1000], counts[1000:]

    def after_em(**start: Any) -> float:
        model = LDA(10, short_runs=0, learner=sc.EM(max_iter=25, tol=0), **start).fit(train)
        return completion_perplexity(model.topics_, test)

    begun = found(train, 10)
    at_random = [after_em(init="random", random_state=seed) for seed in range(3)]
    assert after_em(init={"topics": begun}) < 0.99 * min(at_random)
    unigram = completion_perplexity(np.asarray(train.sum(axis=0)) + 0.01, test)
    assert completion_perplexity(begun, test) < 0.8 * unigram


# parts
def cut(counts: Any, borders: list[int]) -> list[Any]:
    ends = [0, *sorted(borders), counts.shape[0]]
    return [SimpleNamespace(bags=Bags.of(counts[a:b])) for a, b in pairwise(ends)]


@settings(deadline=None, max_examples=10)
@given(borders=st.lists(st.integers(0, 400), max_size=6), block=st.integers(20, 500))
def test_parts_give_what_the_whole_gives(borders: list[int], block: int) -> None:
    counts, _ = simulated(400, 60, 4, 30, seed=5)
    with patch.object(anchors, "_DOCUMENTS", block):
        topics = anchor_topics(cut(counts, borders), 4, np.random.default_rng(7))
    np.testing.assert_allclose(topics, found(counts, 4, seed=7), rtol=1e-6, atol=1e-9)


def test_missing_topics_do_not_depend_on_the_parts_either() -> None:
    two, three = [[2, 1], [1, 2], [3, 3]], [[2, 1, 1], [1, 2, 3], [3, 3, 2]]
    counts = sparse.csr_matrix(sparse.block_diag([two, three]), dtype=float)
    topics = found(counts, 6)
    assert topics == pytest.approx(anchor_topics(cut(counts, [1, 4]), 6, np.random.default_rng(0)))


def test_an_archive_is_read_in_its_shards(tmp_path: Path) -> None:
    counts, _ = simulated(300, 50, 4, 30, seed=6)
    with patch.multiple(building, SHARD_DOCUMENTS=70):
        archive = Archive.build(counts, tmp_path / "a")
    assert len(archive.shards()) == 5
    topics = anchor_topics(archive.shards(), 4, np.random.default_rng(0))
    np.testing.assert_allclose(topics, found(counts, 4), rtol=1e-6, atol=1e-9)


class Endless:
    """The same documents again and again, made when they are asked for."""

    def __init__(self, counts: Any, n: int) -> None:
        self.counts, self.n = counts, n

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.n):
            yield SimpleNamespace(bags=Bags.of(self.counts))


def test_memory_is_bounded() -> None:
    """Beside a part: 40 V (2K + 20) bytes, however many parts there are."""
    n_words, n_topics = 4000, 20
    rng = np.random.default_rng(0)
    counts = sparse.random(200, n_words, 0.01, format="csr", rng=rng)
    counts.data = np.ceil(3 * counts.data)
    peaks = []
    for n in (2, 10):
        tracemalloc.start()
        anchor_topics(Endless(counts, n), n_topics, np.random.default_rng(0))  # type: ignore[arg-type]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    part = 5 * counts.data.nbytes + 200 * (2 * n_topics + 20) * 8 * 2
    assert max(peaks) < 40 * n_words * (2 * n_topics + 20) + part
    assert peaks[1] < 1.02 * peaks[0]


# awkward data
def demand_topics(topics: Any, counts: Any, n_topics: int) -> None:
    words = np.asarray(sparse.csr_matrix(counts).sum(axis=0)).ravel()
    assert topics.shape == (n_topics, len(words))
    assert np.isfinite(topics).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1.0)
    assert (topics[:, words > 0] > 0).all()
    assert (topics[:, words == 0] == 0).all()


AWKWARD = {
    "all the same": np.tile([2, 1, 0, 3], (9, 1)),
    "all the same, large": np.tile([700, 200, 100], (50, 1)),
    "one word": np.array([[3], [5], [1]]),
    "one word, once": np.array([[1]]),
    "one document": np.array([[1, 2, 3, 0, 1]]),
    "one token a document": np.eye(6),
    "no word shared": np.eye(6) * 4,
    "two words": np.array([[1, 1], [1, 1]]),
    "empty documents": np.array([[0, 0, 0], [2, 1, 0], [0, 0, 0], [0, 1, 2]]),
    "words that never occur": np.array([[0, 2, 0, 1, 0], [0, 1, 0, 2, 0]]),
    "fractions": np.array([[0.3, 0.2, 0.1], [0.01, 0.5, 0.0], [0.2, 0, 0]]),
    "one fraction a document": np.eye(4) * 0.25,
    "a document of a million": np.array([[10**6, 1, 0, 0], [0, 1, 1, 1], [0, 0, 2, 1]]),
    "huge": np.array([[1e15, 1, 0], [0, 1, 1], [1e-99, 1, 2]]),
}


@pytest.mark.parametrize("n_topics", [1, 2, 3, 7])
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_data_give_topics(case: str, n_topics: int) -> None:
    counts = AWKWARD[case]
    with np.errstate(all="raise", under="ignore"):
        topics = found(counts, n_topics)
    demand_topics(topics, counts, n_topics)


@settings(deadline=None, max_examples=60)
@given(
    counts=arrays(
        np.int64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(0, 3)
    ),
    n_topics=st.integers(1, 12),
)
def test_any_counts_give_topics(counts: Any, n_topics: int) -> None:
    if not counts.any():
        with pytest.raises(DataError, match="no document has a word"):
            found(counts, n_topics)
        return
    demand_topics(found(counts, n_topics), counts, n_topics)


def test_documents_without_pairs_change_nothing_but_frequencies() -> None:
    counts, _ = with_anchors(500, 20, seed=4)
    short = sparse.csr_matrix((np.ones(40), (np.arange(40), np.arange(40) % 9)), (40, 34))
    more = sparse.vstack([counts, short], format="csr")
    before, after = unblended(found(counts, 4), counts), unblended(found(more, 4), more)
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-9)


def test_missing_topics_begin_at_different_documents() -> None:
    counts = np.kron(np.eye(2), np.array([[2.0, 1], [1, 2], [3, 3]]))
    assert len(np.unique(found(counts, 6).round(9), axis=0)) == 6


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match="read only once"):
        anchor_topics(iter(whole(np.eye(2))), 2, np.random.default_rng(0))  # type: ignore[arg-type]
    for nothing in ([], whole(np.zeros((3, 2)))):
        with pytest.raises(DataError, match="no document has a word"):
            anchor_topics(nothing, 2, np.random.default_rng(0))


# Corners of a cloud of points, and points as mixtures of corners.


def test_anchor_words_are_in_enough_documents() -> None:
    within = np.array([0, 500, 9, 10, 90])
    assert common_words(within, 1000, 2).tolist() == [1, 4, 3]
    assert common_words(within, 1000, 4).tolist() == [1, 4, 3, 2]  # else too few
    assert common_words(within, 1000, 9).tolist() == [1, 4, 3, 2]  # but none that is nowhere


def test_rare_words_have_no_scale_unless_all_are_rare() -> None:
    first, within = np.array([0.25, 0.25, 0.5, 0.0]), np.array([20, 1, 40, 0])
    assert word_scale(first, within, 100) == pytest.approx([2.0, 0.0, 2**0.5, 0.0])
    assert word_scale(first, within // 40, 10**4) == pytest.approx([2.0, 2.0, 2**0.5, 0.0])


def test_rounding_errors_are_no_corners() -> None:
    points = np.array([1.0, 3.0, 2.0]) + 1e-15 * np.random.default_rng(0).normal(size=(9, 3))
    assert len(find_corners(points, np.arange(9), 4)) == 1


def test_corners_of_a_flat_cloud_are_fewer() -> None:
    line = np.outer(np.linspace(0, 1, 7), [1.0, 2.0, 0.5])
    assert sorted(find_corners(line, np.arange(7), 4)) == [0, 6]
    assert len(find_corners(np.ones((5, 3)), np.arange(5), 3)) == 1


def test_mixtures_are_the_nearest_points_of_the_simplex() -> None:
    rng = np.random.default_rng(0)
    corners, rows = rng.normal(size=(4, 6)), rng.normal(size=(12, 6))
    found = mixture_weights(rows, corners)
    for row, weights in zip(rows, found, strict=True):
        best = minimize(
            lambda w, row=row: ((w @ corners - row) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-12},
        )
        assert ((weights @ corners - row) ** 2).sum() == pytest.approx(best.fun, abs=1e-4)
        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()
