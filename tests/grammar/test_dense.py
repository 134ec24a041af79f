"""Dense grammars against all derivations, one after the other; in single precision, too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import softcount as sc
from softcount.core.errors import ImpossibleItem
from softcount.core.types import EStep
from softcount.grammar.data import TreeCorpus, TreeShard
from softcount.hmm.data import SentenceCorpus
from tests.grammar.cases import DTYPES, EXACT, cases, core_of, long_text, random_brackets, shard_of
from tests.oracles.trees import Grammar, Sentence, as_node, not_crossing, random_tables

# Dense grammars against all derivations, one after the other


def weighed(sentences: Sequence[Sentence], value: Any) -> float:
    return sum(one.weight * value(one) for one in sentences if one.words)


def log_p(oracle: Grammar, one: Sentence) -> float:
    return oracle.log_p(one.words, one.allowed)


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_expected_counts(case: Any) -> None:
    oracle, sentences = case
    found = core_of(oracle).expect(oracle.tables, shard_of(sentences, oracle), EStep())
    wanted = oracle.expected([one for one in sentences if one.words])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(found.counts[name]), table, err_msg=name, **EXACT)
    total = weighed(sentences, lambda one: log_p(oracle, one))
    np.testing.assert_allclose(found.log_likelihood, total, **EXACT)


def trees_of(shard: TreeShard, nodes: Any, s: int) -> list[Any]:
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
    nodes, logs = core.infer(oracle.tables, shard).trace(viterbi=True)
    for s, one in enumerate(sentences):
        if one.words:
            (tree,) = trees_of(shard, nodes, s)
            p = dict(oracle.derivations(one.words, one.allowed))[tree]
            wanted = oracle.best(one.words, one.allowed)[1]
            np.testing.assert_allclose([np.log(p), logs[s]], wanted, **EXACT)
    found = core.expect(oracle.tables, shard, EStep(fill="hard"))
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
    nodes, logs = core.infer(oracle.tables, shard).trace(False, 7, n)
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
    stats = core.expect(oracle.tables, shard, EStep(fill="sample", samples=n, stream=3))
    wanted = oracle.expected([one for one in sentences if one.words])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(stats.counts[name]), table, atol=5.0 * 2.0 / n**0.5)


def test_two_hundred_words_are_finite() -> None:
    oracle, shard = long_text(np.random.default_rng(0), [200, 3])
    core = core_of(oracle)
    stats = core.expect(oracle.tables, shard, EStep())
    assert np.isfinite(stats.log_likelihood)
    assert np.asarray(stats.counts["rules"]).sum() == pytest.approx(199 + 2)
    assert np.asarray(stats.counts["words"]).sum() == pytest.approx(203)
    _, logs = core.infer(oracle.tables, shard).trace(viterbi=True)
    assert np.isfinite(logs).all()


def test_threads_change_no_bit() -> None:
    oracle, shard = long_text(np.random.default_rng(1), np.arange(60) % 14)
    core = core_of(oracle)
    one, four = (core.expect(oracle.tables, shard, EStep(threads=n)) for n in (1, 4))
    assert one.log_likelihood == four.log_likelihood
    for name, table in one.counts.items():
        assert np.array_equal(np.asarray(table), np.asarray(four.counts[name]))


def test_float32_is_near() -> None:
    oracle, shard = long_text(np.random.default_rng(3), [12, 30, 1, 2, 7])
    exact = core_of(oracle).expect(oracle.tables, shard, EStep())
    near = core_of(oracle, "float32").expect(oracle.tables, shard, EStep())
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
    exact, near = (core_of(oracle, kind).expect(tables, shard, EStep()) for kind in DTYPES)
    assert near.log_likelihood == exact.log_likelihood
    assert exact.log_likelihood == pytest.approx(oracle.log_p([1, 0, 1, 1]))


def test_an_impossible_sentence_is_named() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    nowhere = {(0, 2): set(), (1, 3): set()}
    shard = shard_of([Sentence([0, 1]), Sentence([0, 1, 2], 1.0, nowhere)], oracle)
    with pytest.raises(ImpossibleItem, match="1"):
        core_of(oracle).expect(oracle.tables, shard, EStep())


def test_some_sentences_keep_their_constraints() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(5), 2, 2, 3, 1.0), 2, 2)
    sentences = [
        Sentence([0, 1, 2], 1.0, not_crossing(3, [(0, 2)])),
        Sentence([1, 1]),
        Sentence([2, 0, 1, 1], 2.0, not_crossing(4, [(1, 3)])),
    ]
    whole = shard_of(sentences, oracle)
    some = TreeCorpus(SentenceCorpus(whole.text), whole.constraints).select(np.array([2, 0]))
    found = core_of(oracle).expect(oracle.tables, some, EStep())
    wanted = oracle.expected([sentences[2], sentences[0]])
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(found.counts[name]), table, **EXACT)


# Posteriors of spans of dense grammars, against all trees


@settings(max_examples=50, deadline=None)
@given(case=cases())
def test_spans_of_all_trees(case: Any) -> None:
    oracle, sentences = case
    sentences = [one._replace(weight=0.0) for one in sentences[:1]] + sentences[1:]
    shard = shard_of(sentences, oracle)
    found = core_of(oracle).infer(oracle.tables, shard, 1).span_posteriors()
    assert len(found) == len(sentences)
    for s, one in enumerate(sentences):
        starts, ends, symbols, shares = found[s]
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
    one, four = (core.infer(oracle.tables, shard, n).span_posteriors() for n in (1, 4))
    for mine, other in zip(one, four, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, other, strict=True))
    for s, n in enumerate(lengths):
        starts, ends, symbols, shares = one[s]
        is_leaf = ends - starts == 1
        assert ((symbols >= oracle.K) == is_leaf).all()
        leaves = np.bincount(starts[is_leaf], shares[is_leaf], minlength=n)
        np.testing.assert_allclose(leaves, 1.0, rtol=1e-10)
        np.testing.assert_allclose(shares[~is_leaf].sum(), max(n - 1, 0), rtol=1e-10)


def test_what_cannot_be_has_no_spans() -> None:
    oracle = Grammar(random_tables(np.random.default_rng(4), 2, 2, 3, 1.0), 2, 2)
    nowhere = {(0, 2): set(), (1, 3): set()}
    shard = shard_of([Sentence([0, 1, 2], 1.0, nowhere), Sentence([]), Sentence([1])], oracle)
    found = core_of(oracle).infer(oracle.tables, shard, 1).span_posteriors()
    assert [len(spans.symbols) > 0 for spans in found] == [False, False, True]
    nothing = shard_of([], oracle)
    none = core_of(oracle).infer(oracle.tables, nothing, 1).span_posteriors()
    assert none == []


# Long sentences under very uneven tables: whatever is possible is found to be


K, T, V = 2, 2, 3


def logs_of(tables: Any) -> dict[str, Any]:
    with np.errstate(divide="ignore"):
        return {name: np.log(table) for name, table in tables.items()}


def inside(tables: Any, words: Any, brackets: Any) -> float:
    """log p by plain recursion, each number being a logarithm."""
    logs, n = logs_of(tables), len(words)
    rules = logs["rules"].reshape(K, K + T, K + T)
    crossed = not_crossing(n, [one[-2:] for one in brackets])
    over: dict[tuple[int, int], Any] = {}
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            own = np.full(K + T, -np.inf)
            if width == 1:
                own[K:] = logs["words"][:, words[i]]
            elif (i, i + width) not in crossed:
                pairs = [
                    over[i, k][:, None] + over[k, i + width][None] for k in range(i + 1, i + width)
                ]
                own[:K] = np.logaddexp.reduce(rules + np.logaddexp.reduce(pairs), axis=(1, 2))
            over[i, i + width] = own
    return float(np.logaddexp.reduce(logs["root"][0] + over[0, n]))


def uneven(rng: Any, least: float, zeros: float) -> dict[str, Any]:
    """Rows of which one entry is nearly all, others go down to ``least``, and some are none."""
    shapes = {"root": (1, K + T), "rules": (K, (K + T) ** 2), "words": (T, V)}
    found = {}
    for name, shape in shapes.items():
        table = 10.0 ** rng.uniform(np.log10(least), 0.0, shape)
        table[rng.random(shape) < zeros] = 0.0
        table[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 1.0
        found[name] = table / table.sum(axis=1, keepdims=True)
    return found


def model_of(tables: Any) -> sc.PCFG:
    model = sc.PCFG(K, T, learner=sc.EM(max_iter=1), unknown=False).fit(["a", "b", "c"])
    model.raw_params_ = tables
    return model


def bracketed(seed: int) -> tuple[list[list[int]], list[Any]]:
    """Words by number; brackets of which many leave whole widths without a span."""
    rng = np.random.default_rng(seed)
    numbers = [rng.integers(V, size=n).tolist() for n in (17, 18, 20, 23)]
    right = [(i, 20) for i in range(19)]
    left = [(0, j) for j in range(2, 24)]
    return numbers, [random_brackets(rng, 17), [(0, 9), (9, 18)], right, left]


def as_text(numbers: Any) -> list[list[str]]:
    return [["abc"[w] for w in words] for words in numbers]


seeds = pytest.mark.parametrize("seed", range(6))


@seeds
@pytest.mark.parametrize(
    ("least", "zeros"), [(1e-10, 0.0), (1e-10, 0.4), (1e-100, 0.0), (1e-90, 0.4), (1e-300, 0.0)]
)
def test_what_is_possible(least: float, zeros: float, seed: int) -> None:
    tables = uneven(np.random.default_rng(seed), least, zeros)
    model, (numbers, brackets) = model_of(tables), bracketed(seed)
    text = as_text(numbers)
    wanted = [inside(tables, *both) for both in zip(numbers, brackets, strict=True)]
    found = model.score_samples(text, brackets=brackets)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    for best, log_p in zip(model.predict(text, brackets=brackets), found, strict=True):
        assert (best is None) == np.isneginf(log_p)
    may = np.isfinite(found)
    assert [len(some) for some in model.sample_trees(text, 2, brackets=brackets)] == (
        2 * may
    ).tolist()
    text, known = (
        [one for one, m in zip(some, may, strict=True) if m] for some in (text, brackets)
    )
    counts = model.expected_counts(text, brackets=known) if text else {}
    sizes = {
        "root": len(text),
        "rules": sum(len(s) - 1 for s in text),
        "words": sum(map(len, text)),
    }
    for name, table in counts.items():
        assert table.sum() == pytest.approx(sizes[name], rel=1e-6), name


@seeds
@pytest.mark.parametrize(("least", "zeros"), [(1e-90, 0.4), (1e-300, 0.0)])
def test_grammars_of_rules(least: float, zeros: float, seed: int) -> None:
    """The same as rules."""
    tables = uneven(np.random.default_rng(seed), least, zeros)
    numbers, brackets = bracketed(seed)
    text, model = as_text(numbers), sc.PCFG.from_rules(model_of(tables).grammar(0.0))
    wanted = [inside(tables, *both) for both in zip(numbers, brackets, strict=True)]
    found = model.score_samples(text, brackets=brackets)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    for best, log_p in zip(model.predict(text, brackets=brackets), found, strict=True):
        assert (best is None) == np.isneginf(log_p)


@seeds
def test_chances_that_are_out_of_reach(seed: int) -> None:
    """Two entries of 1e-300 in one step, and no other way: that is taken for nothing."""
    tables = uneven(np.random.default_rng(seed), 1e-300, 0.4)
    model, (numbers, brackets) = model_of(tables), bracketed(seed)
    found = model.score_samples(as_text(numbers), brackets=brackets)
    for words, some, log_p in zip(numbers, brackets, found, strict=True):
        assert log_p <= inside(tables, words, some) + 1e-6


@pytest.mark.parametrize("n", [100, 200])
@pytest.mark.parametrize("branching", ["left", "right", "none"])
def test_sentences_of_many_words(n: int, branching: str) -> None:
    rng = np.random.default_rng(n)
    tables = uneven(rng, 1e-3, 0.0)
    model = model_of(tables)
    words = rng.integers(V, size=n).tolist()
    some = {"left": [(0, j) for j in range(2, n)], "right": [(i, n) for i in range(n - 1)]}
    brackets = some.get(branching, [])
    (log_p,) = model.score_samples([["abc"[w] for w in words]], brackets=[brackets])
    assert np.isfinite(log_p)
    if branching != "none":  # a chain: one sum a word
        logs = logs_of(tables)
        rules = logs["rules"].reshape(K, K + T, K + T)
        order = words if branching == "left" else words[::-1]
        chain = np.full(K + T, -np.inf)
        chain[K:] = logs["words"][:, order[0]]
        for word in order[1:]:
            tags = np.full(K + T, -np.inf)
            tags[K:] = logs["words"][:, word]
            pair = (chain, tags) if branching == "left" else (tags, chain)
            new = np.full(K + T, -np.inf)
            new[:K] = np.logaddexp.reduce(rules + pair[0][:, None] + pair[1], axis=(1, 2))
            chain = new
        assert log_p == pytest.approx(np.logaddexp.reduce(logs["root"][0] + chain), rel=1e-9)


def test_the_recursion_is_that_of_all_trees() -> None:
    tables = uneven(np.random.default_rng(0), 1e-3, 0.2)
    for words in product(range(V), repeat=4):
        wanted = Grammar(tables, K, T).log_p(words, not_crossing(4, [(1, 3)]))
        assert inside(tables, words, [(1, 3)]) == pytest.approx(wanted)


# Chances that float32 has not: counts are those of float64, or the pass is made again in it


def agree(oracle: Grammar, words: list[int]) -> None:
    """All counts, and log p, are those of all trees."""
    shard = shard_of([Sentence(words)], oracle)
    found = core_of(oracle, "float32").expect(oracle.tables, shard, EStep())
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
    this = core_of(oracle, "float32").infer(tables, shard, 1)
    double = this._replace(dtype=np.float64).inside_outside()
    assert this.inside_outside().log_p[0] != double.log_p[0]
