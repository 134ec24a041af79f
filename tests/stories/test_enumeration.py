"""Stories against brute force: every derivation listed, every figure summed over the list."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.types import EStep
from tests.oracles import enumeration, stories
from tests.oracles.told import Told, flat, furthest, log_likelihood, nested

CLOSE = 1e-10
MANY = 3000  # derivations of an item that are still listed in a moment

cases = settings(max_examples=200, deadline=None)
seeds = st.integers(0, 2**32 - 1)
zeros = st.sampled_from([0.0, 0.0, 0.2])


def texts(letters: str, most: int, least: int = 1) -> st.SearchStrategy[str]:
    return st.text(letters, min_size=least, max_size=most)


def corpora(item: st.SearchStrategy[Any], most: int = 4) -> st.SearchStrategy[list[Any]]:
    return st.lists(item, min_size=1, max_size=most)


def agrees(told: Told, seed: int, zeros: float = 0.0) -> None:
    """Every kind of E-step agrees with the list of derivations."""
    assume(told.possible)
    weights = told.random(seed, zeros)
    assume(all(enumeration.log_likelihood(item, weights) > -math.inf for item in told.corpus))
    expected = log_likelihood(told.corpus, weights)
    soft = told.expect(weights)
    assert soft.log_likelihood == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
    assert soft.score == soft.log_likelihood
    assert soft.items == len(told.corpus)
    counts = enumeration.corpus_counts(told.corpus, weights)
    assert furthest(told.counts(soft), counts) <= CLOSE
    agrees_in_batches(told, weights)
    agrees_hard(told, weights)
    for beta in (0.3, 2.5):
        agrees_tempered(told, weights, beta)
    agrees_sampled(told, weights, seed)


def agrees_in_batches(told: Told, weights: enumeration.Weights) -> None:
    """Every item is in one batch, and in no other."""
    core, corpus = told.bound
    params = told.params(weights)
    for size in (1, 2):
        batches = [core.expect(params, shard, EStep()) for shard in corpus.shards(size, seed=size)]
        assert len(batches) == -(-len(told.corpus) // size)
        assert sum(batch.items for batch in batches) == len(told.corpus)
        whole = reduce(add, batches)
        assert (
            furthest(told.counts(whole), enumeration.corpus_counts(told.corpus, weights)) <= CLOSE
        )
        expected = log_likelihood(told.corpus, weights)
        assert whole.log_likelihood == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


def agrees_hard(told: Told, weights: enumeration.Weights) -> None:
    hard = told.expect(weights, EStep(fill="hard"))
    best = sum(enumeration.best_score(item, weights) for item in told.corpus)
    assert hard.score == pytest.approx(best, rel=CLOSE, abs=CLOSE)
    assert hard.log_likelihood == pytest.approx(log_likelihood(told.corpus, weights), rel=CLOSE)
    # the counts are those of a derivation as good as the best
    counts = told.counts(hard)
    attained = sum(n * math.log(weights[event]) for event, n in counts.items())
    assert attained == pytest.approx(best, rel=CLOSE, abs=CLOSE)
    assert is_joint_derivation(told, counts)


def agrees_tempered(told: Told, weights: enumeration.Weights, beta: float) -> None:
    tempered = told.expect(weights, EStep(temper=beta))
    score = sum(enumeration.tempered_score(item, weights, beta) for item in told.corpus)
    assert tempered.score == pytest.approx(score, rel=CLOSE, abs=CLOSE)
    assert tempered.log_likelihood == pytest.approx(log_likelihood(told.corpus, weights), rel=CLOSE)
    counts = enumeration.corpus_counts(told.corpus, weights, beta)
    assert furthest(told.counts(tempered), counts) <= CLOSE


def agrees_sampled(told: Told, weights: enumeration.Weights, seed: int) -> None:
    """What is drawn is a derivation, and one that is possible."""
    counts = told.counts(told.expect(weights, EStep(fill="sample", stream=seed)))
    assert all(weights[event] > 0.0 for event in counts)
    assert is_joint_derivation(told, counts)


def is_joint_derivation(told: Told, counts: Any) -> bool:
    """Whether the counts are those of one derivation for each item."""
    whole = Counter({event: round(n) for event, n in counts.items()})
    if any(abs(n - whole[event]) > CLOSE for event, n in counts.items()):
        return False
    left = {frozenset(whole.items())}
    for item in told.corpus:
        left = {
            frozenset((Counter(dict(rest)) - derivation).items())
            for rest in left
            for derivation in map(Counter, map(dict, enumeration.merged(item)))
            if derivation <= Counter(dict(rest))
        }
    return frozenset() in left


# the four that every learner is tried on


@cases
@given(items=corpora(texts("HT", 5, least=0)), seed=seeds, zeros=zeros)
def test_coins(items: list[str], seed: int, zeros: float) -> None:
    agrees(Told(stories.coins, [(item,) for item in items]), seed, zeros)


@cases
@given(
    items=corpora(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), 3),
    tags=st.sampled_from(["XY", "XYZ", "X"]),
    seed=seeds,
    zeros=zeros,
)
def test_hmm(items: list[list[str]], tags: str, seed: int, zeros: float) -> None:
    told = Told(lambda t, s: stories.hmm(t, s, tags), [(item,) for item in items])
    agrees(told, seed, zeros)


sentence_pairs = st.tuples(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
)


@cases
@given(
    items=corpora(sentence_pairs, 3),
    factory=st.sampled_from([stories.ibm1, stories.ibm1_null]),
    seed=seeds,
    zeros=zeros,
)
def test_ibm1(items: list[Any], factory: Callable[..., Any], seed: int, zeros: float) -> None:
    agrees(Told(factory, items), seed, zeros)


branches = st.lists(
    st.sampled_from(["SSS", "SSA", "SAS", "SAA", "ASS", "ASA", "AAS", "AAA"]),
    min_size=1,
    max_size=3,
    unique=True,
)


@cases
@given(items=corpora(texts("ab", 6), 2), branches=branches, seed=seeds, zeros=zeros)
def test_pcfg(items: list[str], branches: list[str], seed: int, zeros: float) -> None:
    told = Told(lambda t, s: stories.pcfg(t, s, branches), [(tuple(item),) for item in items])
    assume(all(len(item) <= MANY for item in told.corpus))
    agrees(told, seed, zeros)


# others


@settings(max_examples=100, deadline=None)
@given(items=corpora(texts("ab", 4)), seed=seeds, zeros=zeros)
def test_documents(items: list[str], seed: int, zeros: float) -> None:
    agrees(Told(stories.documents, [(list(item),) for item in items]), seed, zeros)


@settings(max_examples=100, deadline=None)
@given(
    items=corpora(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from([None, "X", "Y"])),
            min_size=1,
            max_size=4,
        ),
        6,
    ),
    seed=seeds,
    zeros=zeros,
)
def test_a_story_that_looks_at_what_it_is_given(items: list[Any], seed: int, zeros: float) -> None:
    agrees(Told(stories.partly_tagged, [(item,) for item in items]), seed, zeros)


@settings(max_examples=100, deadline=None)
@given(items=corpora(st.sampled_from("HTX"), 3), seed=seeds, zeros=zeros)
def test_the_same_call_twice(items: list[str], seed: int, zeros: float) -> None:
    agrees(Told(stories.twice, [(item,) for item in items]), seed, zeros)


@settings(max_examples=100, deadline=None)
@given(
    items=corpora(st.lists(st.sampled_from(["a", "ab", "bab"]), max_size=4).map("".join), 4),
    seed=seeds,
    zeros=zeros,
)
def test_dead_ends(items: list[str], seed: int, zeros: float) -> None:
    agrees(Told(stories.segmentation, [(item,) for item in items]), seed, zeros)


# what a fitted model says of single items

SPOKEN: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "coins": (stories.coins, [("HHT",), ("T",), ("HH",)]),
    "hmm": (stories.hmm, [(list("abca"),), (list("b"),), (list("cab"),)]),
    "ibm1": (stories.ibm1_null, [(["a", "b"], ["x", "y"]), (["b"], ["x", "x", "z"])]),
    "pcfg": (stories.pcfg, [("abab",), ("b",), ("aabb",)]),
    "partly_tagged": (stories.partly_tagged, [([("a", None), ("b", "X")],), ([("b", None)],)]),
    "twice": (stories.twice, [("H",), ("T",)]),
    "segmentation": (stories.segmentation, [("aab",), ("ababab",), ("",)]),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_score_posterior_best_and_draws_of_single_items(name: str) -> None:
    told = Told(*SPOKEN[name])
    for seed in range(5):
        weights = told.random(seed)
        tables = nested(weights)
        model = told.model(frozen=tuple(tables), learner=sc.EM(max_iter=1))
        model.fit(told.items, init=tables)
        expected = [enumeration.log_likelihood(item, weights) for item in told.corpus]
        assert model.score(told.items) == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
        for item, listed in zip(told.items, told.corpus, strict=True):
            counts = enumeration.expected_counts(listed, weights)
            assert furthest(flat(model.posterior(item)), counts) <= CLOSE
            best = model.best(item)
            score = enumeration.best_score(listed, weights)
            assert best.log_probability == pytest.approx(score, rel=CLOSE, abs=CLOSE)
            drawn = model.sample_hidden(item, random_state=seed)
            for derivation in (best, drawn):
                events = Counter((entry.table, entry.key) for entry in derivation.events)
                assert events in listed
                log_joint = enumeration.log_joint(events, weights)
                assert derivation.log_probability == pytest.approx(log_joint, rel=CLOSE, abs=CLOSE)


def test_hidden_values_are_drawn_with_the_chances_of_the_posterior() -> None:
    told = Told(stories.twice, [("H",)])
    weights = told.random(1)
    tables = nested(weights)
    model = told.model(frozen=tuple(tables), learner=sc.EM(max_iter=1)).fit(told.items, init=tables)
    n = 1000
    seen = Counter(e for k in range(n) for e in map(tuple, model.sample_hidden("H", k).events))
    (listed,) = told.corpus
    chances = enumeration.posterior(listed, weights)
    for event in enumeration.events(told.corpus):
        mean = sum(p * z[event] for p, z in zip(chances, listed, strict=True))
        square = sum(p * z[event] ** 2 for p, z in zip(chances, listed, strict=True))
        error = math.sqrt((square - mean**2) / n)
        assert abs(seen[event] / n - mean) <= 5 * error, event


def test_an_item_that_nothing_explains_is_named() -> None:
    told = Told(stories.segmentation, [("ab",), ("bb",), ("a",)])
    assert not told.possible
    with pytest.raises(sc.errors.ImpossibleItem, match="item 1"):
        _ = told.bound


def test_what_is_drawn_has_the_chances_of_the_posterior() -> None:
    """Draws of one item, derivation by derivation, against the listed posterior (χ²)."""
    told = Told(stories.hmm, [(list("aba"),)])
    weights = told.random(5)
    (item,) = told.corpus
    chances = dict(
        zip(
            (frozenset(derivation.items()) for derivation in item),
            enumeration.posterior(item, weights),
            strict=True,
        )
    )
    core, corpus = told.bound
    (shard,) = corpus.shards(None, 0)
    params = told.params(weights)
    n = 2000
    seen: Counter[Any] = Counter()
    for stream in range(n):
        counts = told.counts(core.expect(params, shard, EStep(fill="sample", stream=stream)))
        seen[frozenset((event, round(k)) for event, k in counts.items())] += 1
    assert set(seen) <= set(chances)
    statistic = sum((seen[z] - n * p) ** 2 / (n * p) for z, p in chances.items())
    assert statistic < 7 + 5 * np.sqrt(2 * 7)  # seven degrees of freedom
