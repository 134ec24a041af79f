"""Worked example G: labels on a chain and on a star, as the limits are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc

CHAIN = np.diag(np.ones(3), 1)
STAR = np.array([[0.0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def spread(graph: np.ndarray, labels: list[int], **settings: Any) -> sc.labels.LabelPropagation:
    settings = {"class_mass": False, **settings}
    return sc.labels.LabelPropagation(weights="precomputed", **settings).fit(graph, labels)


@pytest.mark.parametrize("tol", [1e-5, 1e-12])  # the usual one, and nearly all digits
def test_a_chain_between_two_labels_tends_to_thirds(tol: float) -> None:
    model = spread(CHAIN, [0, -1, -1, 1], tol=tol)
    shares = model.label_distributions_
    assert shares[:, 1] == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=tol)
    assert shares[:, 0] == pytest.approx([1, 2 / 3, 1 / 3, 0], abs=tol)
    assert model.transduction_.tolist() == [0, 0, 1, 1]
    assert model.steps_to_label_ == pytest.approx([0, 2, 2, 0])
    assert model.verdict_ is sc.Verdict.CONVERGED


@pytest.mark.parametrize("tol", [1e-5, 1e-12])
def test_the_centre_of_a_star_is_the_mean_of_its_neighbours(tol: float) -> None:
    model = spread(STAR, [-1, 1, 1, 0], tol=tol)
    assert model.label_distributions_[0] == pytest.approx([1 / 3, 2 / 3], abs=tol)
    assert model.transduction_.tolist() == [1, 1, 1, 0]


def test_masses_of_classes_are_those_of_the_unlabelled() -> None:
    """Both middle nodes together have one of each class, and should have a quarter of 0."""
    model = spread(CHAIN, [0, -1, -1, 1], class_mass={0: 1.0, 1: 3.0}, tol=1e-12)
    middle = [[2 / 3 * 1, 1 / 3 * 3], [1 / 3 * 1, 2 / 3 * 3]]
    expected = np.array(middle) / np.sum(middle, axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_[1:3], expected, atol=1e-10)
    assert model.transduction_.tolist() == [0, 1, 1, 1]
    np.testing.assert_allclose(model.predict_proba([[0.0, 5, 0, 0]]), expected[:1], atol=1e-10)
