"""What tests of hidden Markov models share: learners, and sentences made by a small grammar."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.core.learners import learners

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

LEARNERS = learners(batch_size=9, sweeps=8)
orders = pytest.mark.parametrize("order", [1, 2])
stops = pytest.mark.parametrize("stop", [True, False])


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for name, table in ours.items():
        np.testing.assert_array_equal(table, theirs[name], err_msg=name)
