"""Anchor words against known truth; awkward data are in test_spectral.py for both methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from softcount.mixture import starts as anchors
from softcount.mixture.starts import whiten
from softcount.topics.anchors import find_corners
from tests.mixture.simulated import distance, documents, em, random_start


@pytest.mark.parametrize(("V", "overlap"), [(50, 0.05), (100, 0.1), (100, 0.3)])
def test_em_from_the_estimate_reaches_what_em_from_the_truth_reaches(V, overlap):
    counts, mix, words = documents(5, V, 2500, overlap, seed=0)
    start = anchors.estimate_from_anchors(counts, 5, np.random.default_rng(0))
    best = em(counts, mix, words, 60)
    assert em(counts, *start, 60) == pytest.approx(best, rel=1e-6)
    rng = np.random.default_rng(9)
    at_random = [em(counts, *random_start(5, V, rng), 0) for _ in range(5)]
    assert best - em(counts, *start, 0) < 0.05 * (best - max(at_random))


def with_anchors(N, seed):
    """Four classes that share 40 words; words 0–3 are used by one class each."""
    rng = np.random.default_rng(seed)
    words = np.hstack([np.eye(4) * 0.1, 0.9 * rng.dirichlet(np.ones(40), 4)])
    counts = np.array([rng.multinomial(25, words[z]) for z in rng.integers(4, size=N)])
    return csr_matrix(counts, dtype=float), words


def test_anchor_words_are_found_and_the_estimate_converges_to_the_truth():
    errors = []
    for N in (500, 2000, 8000):
        counts, words = with_anchors(N, seed=1)
        white = whiten(counts, 4, np.random.default_rng(0), np.ones(N))
        found = find_corners(anchors.neighbours(white), np.arange(44), 4)
        assert sorted(found) == [0, 1, 2, 3]
        errors.append(
            distance(anchors.estimate_from_anchors(counts, 4, np.random.default_rng(0))[1], words)
        )
    assert errors[0] > 1.5 * errors[1] > 1.5**2 * errors[2]
    assert errors[2] < 0.03


def test_rare_words_are_no_anchors():
    counts, words = with_anchors(2000, seed=2)
    odd = np.zeros((2000, 60))
    odd[range(60), range(60)] = 30  # each in one document only
    wide = csr_matrix(np.hstack([counts.toarray(), odd]))
    _, found = anchors.estimate_from_anchors(wide, 4, np.random.default_rng(0))
    assert distance(found[:, :44] / found[:, :44].sum(axis=1, keepdims=True), words) < 0.05
