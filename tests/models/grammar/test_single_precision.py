"""Chances that float32 has not: counts are those of float64, or the pass is made again in it."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.grammar import inside_outside as passes
from softcount.types import How
from tests.models.grammar.test_dense import core_of, shard_of
from tests.models.grammar.test_uneven import K, T, V, uneven
from tests.oracles.trees import Grammar, Sentence


def agree(oracle: Grammar, words: list[int]) -> None:
    """All counts, and log p, are those of all trees."""
    shard = shard_of([Sentence(words)], oracle)
    found = core_of(oracle, "float32").expect(oracle.tables, shard, How())
    assert found.log_likelihood == pytest.approx(oracle.log_p(words), abs=1e-4)
    for name, table in oracle.expected([Sentence(words)]).items():
        np.testing.assert_allclose(found.counts[name], table, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("least", "zeros", "seed", "words"),
    [
        (1e-38, 0.4, 9, [0, 2, 2, 2]),
        (1e-60, 0.0, 27, [0, 0]),
        (1e-60, 0.4, 4, [2, 2, 2, 1, 1, 1]),
        (1e-100, 0.0, 4, [1, 1]),
        (1e-100, 0.4, 1, [2, 1]),
    ],
)
def test_counts_that_do_not_fit(least: float, zeros: float, seed: int, words: list[int]) -> None:
    """Chances as they come: these once had no digits left, or counts that were no numbers."""
    rng = np.random.default_rng(seed)
    agree(Grammar(uneven(rng, least, zeros), K, T), words)


@pytest.mark.parametrize("tiny", [1e-33, 1e-40, 1e-44])
@pytest.mark.parametrize("where", ["root", "rules", "words"])
def test_the_only_way_is_tiny(where: str, tiny: float) -> None:
    tables = {
        "root": np.array([[1.0 - tiny, 0.0, 0.0, tiny]]),
        "rules": np.zeros((K, (K + T) ** 2)),
        "words": np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    }
    tables["rules"][:, 2 * (K + T) + 3] = 1.0
    if where == "rules":
        tables["rules"][0, [11, 15]] = tiny, 1.0 - tiny
    if where == "words":
        tables["words"][1] = [1.0 - tiny, 0.0, tiny]
    words = {"root": [1], "rules": [0, 1], "words": [0, 2]}[where]
    assert tables["words"].shape == (T, V)
    agree(Grammar(tables, K, T), words)


def test_most_sentences_need_no_more() -> None:
    """Tiny chances beside others are no reason to begin again."""
    tables = uneven(np.random.default_rng(0), 1e-30, 0.0)
    oracle = Grammar(tables, K, T)
    shard = shard_of([Sentence([0, 1, 2, 0, 1])], oracle)
    this = core_of(oracle, "float32").passing(tables, shard, 1)
    double = passes.posteriors(shard, this._replace(dtype=np.float64))
    assert passes.posteriors(shard, this).logs[0] != double.logs[0]
