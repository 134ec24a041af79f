"""Corners of a cloud of points, and points as mixtures of corners."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from softcount.models.anchors import common_words, find_corners, mixtures, word_scale


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
    found = mixtures(rows, corners)
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
