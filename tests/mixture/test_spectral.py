"""The tensor method against known truth, brute-force moments, and awkward data."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from softcount.core.errors import DataError, LearnerError
from softcount.mixture import starts
from softcount.mixture.starts import WordPairs, whiten
from tests.mixture.simulated import (
    assert_probabilities,
    distance,
    documents,
    em,
    random_start,
)

both = pytest.mark.parametrize(
    "method", [starts.estimate_from_moments, starts.estimate_from_anchors]
)


@pytest.mark.parametrize(("V", "overlap"), [(50, 0.05), (100, 0.3), (200, 1.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_em_from_the_estimate_reaches_what_em_from_the_truth_reaches(V, overlap, seed):
    counts, mix, words = documents(5, V, 2500, overlap, seed)
    start = starts.estimate_from_moments(counts, 5, np.random.default_rng(0))
    best = em(counts, mix, words, 60)
    assert em(counts, *start, 60) == pytest.approx(best, rel=1e-6)
    rng = np.random.default_rng(9)
    at_random = [em(counts, *random_start(5, V, rng), 0) for _ in range(5)]
    assert best - em(counts, *start, 0) < 0.05 * (best - max(at_random))


def test_estimates_converge_to_the_truth():
    errors = []
    for N in (500, 2000, 8000):
        counts, mix, words = documents(4, 60, N, 0.5, seed=3)
        found, estimate = starts.estimate_from_moments(counts, 4, np.random.default_rng(0))
        errors.append(distance(estimate, words))
        assert np.sort(found) == pytest.approx(np.sort(mix), abs=1.5 / np.sqrt(N))
    assert errors[0] > 1.5 * errors[1] > 1.5**2 * errors[2]  # N^−½ would be twice each time
    assert errors[2] < 0.03


def triples_of(document, map_):
    """M₃(W, W, W) of one document, token by token."""
    tokens = [word for word, count in enumerate(document) for _ in range(int(count))]
    positions = range(len(tokens))
    found = [
        (tokens[i], tokens[j], tokens[k])
        for i in positions
        for j in positions
        for k in positions
        if len({i, j, k}) == 3
    ]
    outer = [np.einsum("a,b,c", map_[i], map_[j], map_[k]) for i, j, k in found]
    return np.mean(outer, axis=0)


def test_moments_are_those_of_different_tokens():
    dense = np.array([1, 1, 1, 0]) + np.random.default_rng(4).poisson(1.2, (6, 4))
    white = whiten(csr_matrix(dense, dtype=float), 3, np.random.default_rng(0), np.ones(6))
    share = white.pairs.share
    map_ = white.whitener()
    second = np.zeros((4, 4))
    for document, part in zip(dense, share, strict=True):
        tokens = np.repeat(np.arange(4), document)
        pairs = [(a, b) for i, a in enumerate(tokens) for j, b in enumerate(tokens) if i != j]
        for a, b in pairs:
            second[a, b] += part / len(pairs)
    np.testing.assert_allclose(white.first, second.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(map_.T @ second @ map_, np.eye(len(white.values)), atol=1e-9)
    third = sum(part * triples_of(row, map_) for row, part in zip(dense, share, strict=True))
    np.testing.assert_allclose(starts.whitened_triples(white)[0], third, atol=1e-9)


def test_documents_weigh_by_tokens_and_not_at_all_without_a_pair():
    pairs = WordPairs.of(csr_matrix([[2.0, 2], [1, 0], [0, 2]]), np.array([1.0, 1.0, 3.0]))
    np.testing.assert_allclose(pairs.share, [0.4, 0.0, 0.6])


def test_the_sparse_operator_is_the_dense_one():
    counts, *_ = documents(3, 400, 60, 0.3, seed=0)
    scale = np.linspace(0.5, 2.0, 400)
    pairs = WordPairs.of(counts, np.ones(60))
    dense = counts.toarray()
    second = sum((np.outer(c, c) - np.diag(c)) / (30 * 29 * 60) for c in dense)
    x = np.random.default_rng(0).normal(size=400)
    np.testing.assert_allclose(pairs.operator(scale) @ x, scale * (second @ (scale * x)))
    large = whiten(counts, 3, np.random.default_rng(0), np.ones(60))  # iterative: 400 words
    expected = np.linalg.eigvalsh(large.scale[:, None] * second * large.scale)[::-1][:3]
    np.testing.assert_allclose(large.values, expected, rtol=1e-6)


def test_power_method_finds_orthogonal_components():
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    tensor = np.einsum("k,ka,kb,kc->abc", np.linspace(1, 5, 6), axes, axes, axes)
    found = starts.power_method(tensor, rng.normal(size=(10, 6)), rng)
    np.testing.assert_allclose(np.abs(found @ axes.T).max(axis=1), 1.0)
    np.testing.assert_allclose((found @ axes.T).max(axis=0), 1.0)  # signs too: λ > 0


def test_no_few_documents_make_up_a_direction():
    counts, _, words = documents(3, 60, 2000, 0.3, seed=5)
    dense = counts.toarray()
    dense[:4] = 0
    dense[:4, [7, 20, 33, 46]] = np.diag([10.0**6, 10**5, 5000, 5000])  # one word, over and over
    _, found = starts.estimate_from_moments(csr_matrix(dense), 3, np.random.default_rng(0))
    spoilt = [7, 20, 33, 46]
    clean, truth = np.delete(found, spoilt, 1), np.delete(words, spoilt, 1)
    clean, truth = (a / a.sum(axis=1, keepdims=True) for a in (clean, truth))
    assert distance(clean, truth) < 0.06


def test_whole_weights_are_copies():
    counts, *_ = documents(3, 30, 300, 0.3, seed=6)
    times = np.random.default_rng(0).integers(0, 4, 300)
    copies = counts[np.repeat(np.arange(300), times)]
    weighted = starts.estimate_from_moments(
        counts, 3, np.random.default_rng(0), times.astype(float)
    )
    repeated = starts.estimate_from_moments(copies, 3, np.random.default_rng(0))
    assert distance(weighted[1], repeated[1]) < 0.01
    assert np.sort(weighted[0]) == pytest.approx(np.sort(repeated[0]), abs=0.01)


@both
def test_more_classes_than_there_are_still_finds_those_there_are(method):
    counts, mix, words = documents(4, 80, 2500, 0.1, seed=7)
    found, estimate = method(counts, 6, np.random.default_rng(0))
    assert_probabilities(found, estimate, 6, 80)
    assert em(counts, found, estimate, 60) > em(counts, mix, words, 60)


@both
def test_the_same_generator_gives_the_same_numbers_and_leaves_the_data_alone(method):
    counts, *_ = documents(3, 350, 400, 0.2, seed=8)
    before = counts.copy()
    one, two = (method(counts, 3, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(one[1], two[1])
    assert (counts != before).nnz == 0


AWKWARD = {
    "one document": ([[2, 1, 1]], 3),
    "fewer words than classes": ([[2, 1], [1, 3], [0, 4]], 5),
    "one word": ([[3], [4], [5]], 2),
    "all the same": (np.tile([2, 1, 3, 0], (20, 1)), 4),
    "empty among others": ([[0, 0, 0], [3, 0, 1], [0, 3, 1], [0, 0, 0]], 2),
    "a word that never occurs": ([[3, 0, 1], [4, 0, 2], [1, 0, 3]], 2),
    "short ones": ([[1, 0, 0], [0, 1, 1], [2, 1, 0], [0, 0, 3]], 2),
    "not whole": ([[0.3, 0.2, 0.5], [0.1, 0.9, 0.0], [0.4, 0.4, 0.2]], 2),
    "one class": ([[3, 0, 1], [4, 0, 2], [0, 0, 0]], 1),
    "separate words": (np.kron(np.eye(3), np.full((4, 2), 3)), 3),
    "a million words": ([[10**6, 10**6, 0], [0, 2, 1], [1, 1, 2]], 2),
}


@both
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_data_give_probabilities(method, case):
    dense, K = AWKWARD[case]
    counts = csr_matrix(np.array(dense, dtype=float))
    mix, words = method(counts, K, np.random.default_rng(0))
    assert_probabilities(mix, words, K, counts.shape[1])
    occurs = counts.toarray().any(axis=0)
    assert ((words > 0) == occurs).all()


@both
@settings(max_examples=60, deadline=None)
@given(
    counts=arrays(float, (7, 5), elements=st.sampled_from([0, 0, 0, 1, 2, 7, 1e5])),
    weights=arrays(float, 7, elements=st.sampled_from([0.0, 1.0, 2.0, 1e-3])),
    K=st.integers(2, 8),
)
def test_counts_give_probabilities_if_any_document_is_long_enough(method, counts, weights, K):
    least = 3 if method is starts.estimate_from_moments else 2
    rng = np.random.default_rng(0)
    if (counts[weights > 0].sum(axis=1) >= least).any():
        mix, words = method(csr_matrix(counts), K, rng, weights)
        assert_probabilities(mix, words, K, 5)
    else:
        with pytest.raises(DataError, match="no document has"):
            method(csr_matrix(counts), K, rng, weights)


@both
@pytest.mark.parametrize(
    ("counts", "weights", "message"),
    [
        (np.zeros((3, 2)), None, "no document has any words"),
        (np.zeros((0, 2)), None, "no document has any words"),
        ([[2.0, 1.0]], np.zeros(1), "no document has any words"),
        (np.eye(3), None, "no document has two words"),
    ],
)
def test_what_cannot_be_used_is_said(method, counts, weights, message):
    with pytest.raises(DataError, match=message):
        method(csr_matrix(counts), 2, np.random.default_rng(0), weights)


def test_pairs_alone_are_not_enough_for_the_third_moment():
    pairs = csr_matrix([[1.0, 1, 0], [0, 1, 1], [0, 0, 2]])
    with pytest.raises(DataError, match="three words"):
        starts.estimate_from_moments(pairs, 2, np.random.default_rng(0))
    assert_probabilities(*starts.estimate_from_anchors(pairs, 2, np.random.default_rng(0)), 2, 3)


def test_too_many_classes_for_a_tensor():
    with pytest.raises(LearnerError, match="too large"):
        starts.estimate_from_moments(csr_matrix(np.eye(2) * 3), 257, np.random.default_rng(0))
