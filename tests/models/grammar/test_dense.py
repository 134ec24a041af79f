"""Dense grammars against all derivations, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.errors import ImpossibleItem
from softcount.families import Categorical
from softcount.grammar import inside_outside as passes
from softcount.grammar.core import PCFGCore
from softcount.grammar.data import Limits, Sentences, Shard
from softcount.grammar.inside_outside import Shape
from softcount.hmm.core import Words
from softcount.hmm.data import Sentences as Texts
from softcount.hmm.data import Shard as Text
from softcount.hmm.data import StateSets
from softcount.types import How
from tests.oracles.trees import Grammar, Sentence, as_node, not_crossing, random_tables

EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
ALL, NONE, FIRST = 0, 1, 2
DTYPES = ("float64", "float32")


def core_of(oracle: Grammar, dtype: str = "float64") -> PCFGCore:
    k, t = oracle.K, oracle.T
    n_words = np.asarray(oracle.tables["words"]).shape[1]
    words = Words(Categorical((t, n_words)), (t, n_words))
    root, rules = Categorical((1, k + t)), Categorical((k, (k + t) ** 2))
    return PCFGCore("grammar", root, rules, words, Shape(k, t), dtype)


def shard_of(sentences: Sequence[Sentence], oracle: Grammar) -> Shard:
    """Spans may be anything, nothing, or the first nonterminal."""
    indptr = np.cumsum([0] + [len(one.words) for one in sentences])
    tokens = np.array([w for one in sentences for w in one.words], np.int32)
    weights = np.array([one.weight for one in sentences])
    states, sets = StateSets.all_of(oracle.T), np.zeros(len(tokens), np.int32)
    text = Text(np.arange(len(sentences)), tokens, indptr, sets, states, weights)
    if all(one.allowed is None for one in sentences):
        return Shard(text, Limits.none(oracle.K))
    known: list[int] = []
    for one in sentences:
        n, allowed = len(one.words), one.allowed or {}
        for w in range(2, n + 1):
            for i in range(n - w + 1):
                some = allowed.get((i, i + w))
                known.append(ALL if some is None else FIRST if some else NONE)
    every = np.ones((3, oracle.K), np.bool_)
    every[NONE], every[FIRST, 1:] = False, False
    return Shard(text, Limits(np.array(known, np.int64), every))


@st.composite
def cases(draw: Any, most: int = 5) -> tuple[Grammar, list[Sentence]]:
    k, t = draw(st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    oracle = Grammar(random_tables(rng, k, t, 3, draw(st.sampled_from([0.3, 1.0]))), k, t)
    sentences = []
    for words in draw(st.lists(st.lists(st.integers(0, 2), max_size=most), min_size=1, max_size=4)):
        n, allowed = len(words), None
        if n > 2 and draw(st.booleans()):
            i = draw(st.integers(0, n - 2))
            j = draw(st.integers(i + 2, n))
            allowed = dict(not_crossing(n, [(i, j)]))
            if draw(st.booleans()):
                allowed[i, j] = {0}
        sentences.append(Sentence(words, draw(st.sampled_from([1.0, 0.5, 3.0])), allowed))
    return oracle, sentences


def weighed(sentences: Sequence[Sentence], value: Any) -> float:
    return sum(one.weight * value(one) for one in sentences if one.words)


def log_p(oracle: Grammar, one: Sentence) -> float:
    return oracle.log_p(one.words, one.allowed)


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_expected_counts(case: Any) -> None:
    oracle, sentences = case
    found = core_of(oracle).expect(oracle.tables, shard_of(sentences, oracle), How())
    wanted = oracle.expected([one for one in sentences if one.words])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(found.counts[name]), table, err_msg=name, **EXACT)
    total = weighed(sentences, lambda one: log_p(oracle, one))
    np.testing.assert_allclose(found.log_likelihood, total, **EXACT)


def trees_of(shard: Shard, nodes: Any, s: int) -> list[Any]:
    """Trees of a sentence as the oracle has them."""
    first, n = shard.text.indptr[s], shard.text.indptr[s + 1] - shard.text.indptr[s]
    words, found = shard.text.observed[first : first + n].tolist(), []
    for symbols, ends in zip(nodes.symbols, nodes.ends, strict=True):
        own = slice(2 * first, 2 * first + 2 * n - 1)
        found.append(as_node(symbols[own], ends[own], words))
    return found


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_best_trees(case: Any) -> None:
    oracle, sentences = case
    core, shard = core_of(oracle), shard_of(sentences, oracle)
    nodes, logs = passes.trace_trees(shard, core.passing(oracle.tables, shard, 1), best=True)
    for s, one in enumerate(sentences):
        if one.words:
            (tree,) = trees_of(shard, nodes, s)
            p = dict(oracle.derivations(one.words, one.allowed))[tree]
            wanted = oracle.best(one.words, one.allowed)[1]
            np.testing.assert_allclose([np.log(p), logs[s]], wanted, **EXACT)
    found = core.expect(oracle.tables, shard, How(fill="hard"))
    best = weighed(sentences, lambda one: oracle.best(one.words, one.allowed)[1])
    np.testing.assert_allclose(found.score, best, **EXACT)
    np.testing.assert_allclose(
        found.log_likelihood, weighed(sentences, lambda one: log_p(oracle, one)), **EXACT
    )
    for name in ("root", "rules", "words"):
        counts = np.asarray(found.counts[name])
        logs_of = np.log(np.where(counts > 0.0, np.asarray(oracle.tables[name]), 1.0))
        best -= float((counts * logs_of).sum())
    assert abs(best) < 1e-9  # the counts are those of trees that are as good


def test_draws_have_the_posterior_s_frequencies() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(2), 2, 2, 3, 1.0), 2, 2)
    allowed = not_crossing(4, [(1, 3)])
    sentences = [
        Sentence([0, 1, 2, 1], 1.0, allowed),
        Sentence([]),
        Sentence([2, 0, 1]),
        Sentence([1]),
    ]
    core, shard, n = core_of(oracle), shard_of(sentences, oracle), 20000
    nodes, logs = passes.trace_trees(shard, core.passing(oracle.tables, shard, 1), False, 7, n)
    for s, one in enumerate(sentences):
        if not one.words:
            continue
        np.testing.assert_allclose(logs[s], log_p(oracle, one), **EXACT)
        drawn = trees_of(shard, nodes, s)
        shares = dict(oracle.shares(one.words, one.allowed))
        assert set(drawn) <= set(shares)
        for tree, share in shares.items():
            spread = np.sqrt(share * (1.0 - share) / n)
            assert abs(drawn.count(tree) / n - share) <= 5.0 * spread + 1e-9
    stats = core.expect(oracle.tables, shard, How(fill="sample", samples=n, stream=3))
    wanted = oracle.expected([one for one in sentences if one.words])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(stats.counts[name]), table, atol=5.0 * 2.0 / n**0.5)


def long_text(rng: Any, lengths: Sequence[int]) -> tuple[Grammar, Shard]:
    oracle = Grammar(random_tables(rng, 5, 7, 20, 0.5), 5, 7)
    sentences = [Sentence(rng.integers(0, 20, n).tolist()) for n in lengths]
    return oracle, shard_of(sentences, oracle)


def test_two_hundred_words_are_finite() -> None:
    oracle, shard = long_text(np.random.default_rng(0), [200, 3])
    core = core_of(oracle)
    stats = core.expect(oracle.tables, shard, How())
    assert np.isfinite(stats.log_likelihood)
    assert np.asarray(stats.counts["rules"]).sum() == pytest.approx(199 + 2)
    assert np.asarray(stats.counts["words"]).sum() == pytest.approx(203)
    _, logs = passes.trace_trees(shard, core.passing(oracle.tables, shard, 1), best=True)
    assert np.isfinite(logs).all()


def test_threads_change_no_bit() -> None:
    oracle, shard = long_text(np.random.default_rng(1), np.arange(60) % 14)
    core = core_of(oracle)
    one, four = (core.expect(oracle.tables, shard, How(threads=n)) for n in (1, 4))
    assert one.log_likelihood == four.log_likelihood
    for name, table in one.counts.items():
        assert np.array_equal(np.asarray(table), np.asarray(four.counts[name]))


def test_float32_is_near() -> None:
    oracle, shard = long_text(np.random.default_rng(3), [12, 30, 1, 2, 7])
    exact = core_of(oracle).expect(oracle.tables, shard, How())
    near = core_of(oracle, "float32").expect(oracle.tables, shard, How())
    assert near.log_likelihood == pytest.approx(exact.log_likelihood, rel=1e-5)
    for name, table in exact.counts.items():
        np.testing.assert_allclose(near.counts[name], table, rtol=1e-3, atol=1e-4)


def test_float32_is_given_up_where_it_falls_short() -> None:
    """Words that are 1e-60 as probable as others, in the one preterminal that may be."""
    oracle = Grammar(random_tables(np.random.default_rng(6), 2, 2, 3, 1.0), 2, 2)
    tables = {name: np.array(table) for name, table in oracle.tables.items()}
    tables["words"] = np.array([[1.0 - 1e-60, 1e-60, 0.0], [0.0, 0.5, 0.5]])
    tables["rules"].reshape(2, 4, 4)[:, 3] = tables["rules"].reshape(2, 4, 4)[:, :, 3] = 0.0
    tables["root"][0, 3] = 0.0
    oracle = Grammar(tables, 2, 2)
    shard = shard_of([Sentence([1, 0, 1, 1])], oracle)
    exact, near = (core_of(oracle, kind).expect(tables, shard, How()) for kind in DTYPES)
    assert near.log_likelihood == exact.log_likelihood
    assert exact.log_likelihood == pytest.approx(oracle.log_p([1, 0, 1, 1]))


def test_an_impossible_sentence_is_named() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    nowhere = {(0, 2): set(), (1, 3): set()}
    shard = shard_of([Sentence([0, 1]), Sentence([0, 1, 2], 1.0, nowhere)], oracle)
    with pytest.raises(ImpossibleItem, match="1"):
        core_of(oracle).expect(oracle.tables, shard, How())


def test_some_sentences_keep_their_limits() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(5), 2, 2, 3, 1.0), 2, 2)
    sentences = [
        Sentence([0, 1, 2], 1.0, not_crossing(3, [(0, 2)])),
        Sentence([1, 1]),
        Sentence([2, 0, 1, 1], 2.0, not_crossing(4, [(1, 3)])),
    ]
    whole = shard_of(sentences, oracle)
    some = Sentences(Texts(whole.text), whole.limits).select(np.array([2, 0]))
    found = core_of(oracle).expect(oracle.tables, some, How())
    wanted = oracle.expected([sentences[2], sentences[0]])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(found.counts[name]), table, **EXACT)
