"""Posteriors of spans of dense grammars, against all trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings

from softcount.grammar.parsing import one_sentence, spans
from tests.models.grammar.test_dense import EXACT, cases, core_of, long_text, shard_of
from tests.oracles.trees import Grammar, Sentence, random_tables


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_spans_of_all_trees(case: Any) -> None:
    oracle, sentences = case
    sentences = [one._replace(weight=0.0) for one in sentences[:1]] + sentences[1:]
    shard = shard_of(sentences, oracle)
    found = spans(shard, core_of(oracle).passing(oracle.tables, shard, 1))
    assert len(found.borders) == len(sentences) + 1
    for s, one in enumerate(sentences):
        starts, ends, symbols, shares = one_sentence(found, s)
        wanted = oracle.posterior_spans(one.words, one.allowed)
        mine = np.zeros_like(wanted)
        np.add.at(mine, (starts, ends, symbols), shares)
        np.testing.assert_allclose(mine, wanted, **EXACT)
        assert len(set(zip(starts, ends, symbols, strict=True))) == len(starts)
        assert (shares > 0.0).all()
        assert list(zip(starts, ends, strict=True)) == sorted(zip(starts, ends, strict=True))


def test_every_width_and_thread() -> None:
    """Several pieces and batches: leaves have one preterminal each, and n − 1 nodes are above."""
    lengths = np.arange(70) % 15
    oracle, shard = long_text(np.random.default_rng(1), lengths)
    core = core_of(oracle, "float32")
    one, four = (spans(shard, core.passing(oracle.tables, shard, n)) for n in (1, 4))
    for mine, other in zip(one, four, strict=True):
        assert np.array_equal(mine, other)
    for s, n in enumerate(lengths):
        starts, ends, symbols, shares = one_sentence(one, s)
        is_leaf = ends - starts == 1
        assert ((symbols >= oracle.K) == is_leaf).all()
        leaves = np.bincount(starts[is_leaf], shares[is_leaf], minlength=n)
        np.testing.assert_allclose(leaves, 1.0, rtol=1e-10)
        np.testing.assert_allclose(shares[~is_leaf].sum(), max(n - 1, 0), rtol=1e-10)


def test_what_cannot_be_has_no_spans() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    nowhere = {(0, 2): set(), (1, 3): set()}
    shard = shard_of([Sentence([0, 1, 2], 1.0, nowhere), Sentence([]), Sentence([1])], oracle)
    found = spans(shard, core_of(oracle).passing(oracle.tables, shard, 1))
    assert found.borders[1] == found.borders[2] == 0
    assert found.borders[3] > 0
    nothing = shard_of([], oracle)
    none = spans(nothing, core_of(oracle).passing(oracle.tables, nothing, 1))
    assert none.borders.tolist() == [0]
