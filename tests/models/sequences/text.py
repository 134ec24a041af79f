"""What tests of hidden Markov models share: learners, and sentences made by a small grammar."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import softcount as sc

WORDS = {
    "the": ["DT"],
    "a": ["DT"],
    "dog": ["NN"],
    "cat": ["NN"],
    "fish": ["NN", "VB"],
    "sleeps": ["VB"],
    "barks": ["VB", "NN"],
    "sees": ["VB"],
}
AFTER = {None: ["DT"], "DT": ["NN"], "NN": ["VB", None], "VB": ["DT", None]}


def made(n: int = 40, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences, and their tags; the third has no word."""
    rng = random.Random(seed)
    sentences: list[list[str]] = []
    tags: list[list[str]] = []
    for number in range(n):
        words: list[str] = []
        own: list[str] = []
        tag = None
        while number != 2:
            tag = rng.choice(AFTER[tag])
            if tag is None:
                break
            own.append(tag)
            words.append(rng.choice([word for word, some in WORDS.items() if tag in some]))
        sentences.append(words)
        tags.append(own)
    return sentences, tags


SENTENCES, TAGS = made()

LEARNERS: dict[str, Any] = {
    "usual": None,
    "EM": sc.EM(max_iter=4, tol=0),
    "restarts": sc.EM(max_iter=3, tol=0, n_init=3),
    "Squarem": sc.EM(max_iter=4, schedule=sc.Squarem()),
    "annealed": sc.EM(max_iter=4, temper=(0.3, 0.6, 1.0)),
    "HardEM": sc.HardEM(max_iter=3),
    "OnlineEM": sc.OnlineEM(batch_size=9, max_iter=2),
    "IncrementalEM": sc.IncrementalEM(batch_size=9, max_iter=2),
    "MonteCarloEM": sc.MonteCarloEM(samples=3, max_iter=3),
    "VariationalBayes": sc.VariationalBayes(max_iter=4),
    "StochasticVB": sc.StochasticVB(batch_size=9, max_iter=2),
    "Gibbs": sc.Gibbs(max_iter=8, n_chains=2),
    "CollapsedGibbs": sc.CollapsedGibbs(max_iter=8, n_chains=2),
}
orders = pytest.mark.parametrize("order", [1, 2])
stops = pytest.mark.parametrize("stop", [True, False])


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for name, table in ours.items():
        np.testing.assert_array_equal(table, theirs[name], err_msg=name)
