"""Where learning begins if tags or a dictionary say something."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.hmm import starts
from tests.models.sequences.text import orders, stops

SENTENCES = [["x", "y", "z"], ["y", "x"], ["z"], []]
STATES = range(3)
KNOWN: list[Any] = [[{"0", "1"}, "2", None], None, [{"1", "2"}], None]
"""Of the first sentence and the third something is known, of the second nothing."""
ALLOWED = {0: [{0, 1}, {2}, {0, 1, 2}], 2: [{1, 2}]}


class NoNoise:
    """Random numbers that are none: every factor is one."""

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> Any:
        assert (low, high) == (0.9, 1.1)
        return np.ones(shape)


def counted(order: int, stop: bool) -> dict[str, Any]:
    """Counts of all sequences of states that are possible, each of them as likely as the others."""
    counts = {
        "start": np.zeros((1, 3)),
        "second": np.zeros((3, 3 + stop)),
        "transitions": np.zeros((3**order, 3 + stop)),
        "emissions": np.zeros((3, 3)),
    }
    for number, allowed in ALLOWED.items():
        paths = list(product(*allowed))
        for path in paths:
            one = 1.0 / len(paths)
            counts["start"][0, path[0]] += one
            for word, state in zip(SENTENCES[number], path, strict=True):
                counts["emissions"][state, "xyz".index(word)] += one
            for i, after in enumerate([*path[1:], 3]):
                if after == 3 and not stop:
                    continue
                if order == 1:
                    counts["transitions"][path[i], after] += one
                elif i == 0:
                    counts["second"][path[0], after] += one
                else:
                    counts["transitions"][3 * path[i - 1] + path[i], after] += one
    return counts if order == 2 else {n: c for n, c in counts.items() if n != "second"}


def loosened(name: str, counts: Any) -> Any:
    """A tenth of each row, and one, for what was not seen: words by their frequency."""
    often = np.array([2.0, 2.0, 2.0]) if name == "emissions" else np.ones(counts.shape[1])
    extra = 0.1 * counts.sum(axis=1, keepdims=True) + 1.0
    rows = counts + extra * often / often.sum()
    shares = rows / rows.sum(axis=1, keepdims=True)
    return (1e6 * shares + 1.0) / (1e6 + shares.shape[1])  # a flat prior beside a million


@orders
@stops
def test_what_is_known_is_counted(order: int, stop: bool) -> None:
    core, corpus = sc.HMM(3, order=order, stop=stop).bind(SENTENCES, KNOWN)
    often = np.array([2, 2, 2])
    found = starts.informed(core, corpus, often, NoNoise())  # type: ignore[arg-type]
    expected = counted(order, stop)
    assert found.keys() == expected.keys()
    for name, counts in expected.items():
        np.testing.assert_allclose(found[name], loosened(name, counts), rtol=1e-12, err_msg=name)


def test_words_that_nothing_is_known_of_begin_by_their_frequency() -> None:
    sentences = [["x"], ["y", "y", "y", "z"]]
    core, corpus = sc.HMM(2).bind(sentences, [["0"], None])
    found = starts.informed(core, corpus, np.array([1, 3, 1]), NoNoise())  # type: ignore[arg-type]
    # of state 1 there is nothing, of state 0 one x: 1.1 is shared by frequency
    expected = [np.array([1 + 1.1 * 0.2, 1.1 * 0.6, 1.1 * 0.2]) / 2.1, np.array([0.2, 0.6, 0.2])]
    np.testing.assert_allclose(found["emissions"], expected, rtol=1e-5)


def test_random_numbers_move_a_start_by_a_tenth() -> None:
    core, corpus = sc.HMM(3).bind(SENTENCES, KNOWN)
    often = np.array([2, 2, 2])
    still = starts.informed(core, corpus, often, NoNoise())  # type: ignore[arg-type]
    moved = [starts.informed(core, corpus, often, np.random.default_rng(n)) for n in range(20)]
    for name, table in still.items():
        ratios = np.array([one[name] / table for one in moved])
        assert 0.9 / 1.1 - 1e-4 < ratios.min() < 0.95 < 1.05 < ratios.max() < 1.1 / 0.9 + 1e-4
        np.testing.assert_allclose([one[name].sum(axis=1) for one in moved], 1.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_fit_begins_there(seed: int) -> None:
    model = sc.HMM(3, random_state=seed, learner=sc.EM(max_iter=1))
    begun = model.fit(SENTENCES, KNOWN, keep_params=True).trace_[0].params
    for name, counts in counted(1, True).items():
        ratios = begun[name] / loosened(name, counts)
        assert 0.8 < ratios.min() < 1.0 < ratios.max() < 1.25
