"""The same parameters in hmmlearn, which has no stop distribution, give the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from tests.oracles.sequences import random_tables

hmmlearn = pytest.importorskip("hmmlearn.hmm")

K, V = 5, 12
BOTH = pytest.mark.parametrize("way", ["scaling", "log"])


def sentences(seed: int = 0, n: int = 30) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [list(range(V)), *(rng.integers(0, V, rng.integers(1, 30)).tolist() for _ in range(n))]


def texts(numbers: list[list[int]]) -> list[list[str]]:
    return [[f"w{w}" for w in one] for one in numbers]


def peer(tables: Any, way: str) -> Any:
    it = hmmlearn.CategoricalHMM(K, implementation=way, init_params="", n_iter=1, tol=-np.inf)
    it.startprob_, it.transmat_ = tables["start"][0], tables["transitions"]
    it.emissionprob_, it.n_features = tables["emissions"], V
    return it


def flat(numbers: list[list[int]]) -> tuple[Any, list[int]]:
    return np.concatenate(numbers)[:, None], [len(one) for one in numbers]


def ours(tables: Any, numbers: list[list[int]], **settings: Any) -> Any:
    learner = sc.EM(max_iter=1, tol=0.0)
    it = sc.HMM(K, stop=False, init=tables, learner=learner, **settings)
    return it.fit(texts(numbers))


@pytest.fixture(params=[1.0, 0.1], ids=["even", "sharp"])
def tables(request: pytest.FixtureRequest) -> Any:
    found = random_tables(np.random.default_rng(3), K, V, 1, False, request.param)
    return {name: (t + 1e-9) / (t + 1e-9).sum(axis=1, keepdims=True) for name, t in found.items()}


@BOTH
def test_likelihoods_posteriors_and_paths(tables: Any, way: str) -> None:
    numbers = sentences()
    model, other = ours(tables, numbers, frozen=list(tables)), peer(tables, way)
    found = model.score_samples(texts(numbers))
    wanted = [other.score(np.array(one)[:, None]) for one in numbers]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert other.score(*flat(numbers)) == pytest.approx(found.sum(), rel=1e-9)
    shares = np.concatenate(model.predict_proba(texts(numbers)))
    np.testing.assert_allclose(shares, other.predict_proba(*flat(numbers)), atol=1e-9)
    assert np.concatenate(model.predict(texts(numbers))).tolist() == (
        other.predict(*flat(numbers)).tolist()
    )


@BOTH
def test_a_long_sentence(tables: Any, way: str) -> None:
    numbers = [list(range(V)), np.random.default_rng(1).integers(0, V, 20000).tolist()]
    model = ours(tables, numbers[:1], frozen=list(tables))
    found = model.score_samples(texts(numbers))
    assert found[1] == pytest.approx(
        peer(tables, way).score(np.array(numbers[1])[:, None]), rel=1e-9
    )


@BOTH
def test_one_step_of_em(tables: Any, way: str) -> None:
    numbers = sentences(seed=1)
    other = peer(tables, way)
    other.fit(*flat(numbers))
    found = ours(tables, numbers).params_
    np.testing.assert_allclose(found["start"][0], other.startprob_, atol=1e-9)
    np.testing.assert_allclose(found["transitions"], other.transmat_, atol=1e-9)
    np.testing.assert_allclose(found["emissions"], other.emissionprob_, atol=1e-9)
