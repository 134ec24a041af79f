"""Hidden Markov models against all paths, one after the other, whichever kernel does the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.errors import ImpossibleItem
from softcount.hmm import data as shards
from softcount.hmm import forward_backward as ways
from softcount.hmm.data import Shard, StateSets
from softcount.types import How
from tests.oracles.sequences import Chain, Sentence, random_tables

EXACT = {"rtol": 1e-10, "atol": 1e-10}
FEW = [set(), {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}]
"""Of these the states that a model has; none of them: all states."""


@dataclass(frozen=True)
class Case:
    chain: Chain
    sentences: list[Sentence]
    hidden: list[list[set[int]]]

    @property
    def order(self) -> int:
        return self.chain.order

    @property
    def shard(self) -> Shard:
        """As cores take it."""
        k = self.chain.n_states
        every = tuple(range(k))
        sets = [every, *sorted({s for one in self.sentences for s in map(tuple, one.allowed)})]
        allowed = np.array([[state in some for state in every] for some in sets])
        numbers = {some: n for n, some in reversed(list(enumerate(sets)))}
        lengths = [len(one.words) for one in self.sentences]
        return Shard(
            np.arange(len(self.sentences)),
            np.array([w for one in self.sentences for w in one.words], np.int32),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.array([numbers[tuple(s)] for one in self.sentences for s in one.allowed], np.int32),
            StateSets(allowed),
            np.array([one.weight for one in self.sentences]),
        )

    @property
    def estimator(self) -> Any:
        """An estimator that keeps to these tables."""
        names = ("start", "transitions", "emissions", *(("second",) if self.order == 2 else ()))
        return sc.HMM(
            self.chain.n_states,
            order=self.order,
            stop=self.chain.stop,
            init=self.chain.tables,
            frozen=names,
            learner=sc.EM(max_iter=1),
        )

    @property
    def core(self) -> Any:
        core, _ = self.estimator.bind(self.words)
        return core

    @property
    def model(self) -> Any:
        return self.estimator.fit(self.words)

    @property
    def words(self) -> list[list[str]]:
        """A sentence that has all words, in their order."""
        return [[f"w{w}" for w in range(len(self.chain.tables["emissions"][0]))]]

    @property
    def texts(self) -> list[list[str]]:
        return [[f"w{w}" for w in one.words] for one in self.sentences]

    @property
    def tags(self) -> list[list[Any]]:
        return [[some or None for some in own] for own in self.hidden]


@st.composite
def cases(draw: Any, order: int, most: int = 4, weighted: bool = True) -> Case:
    k, v = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    stop = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    tables = random_tables(rng, k, v, order, stop, draw(st.sampled_from([1.0, 0.3])))
    texts = draw(st.lists(st.lists(st.integers(0, v - 1), max_size=most), min_size=1, max_size=5))
    hidden = [[draw(st.sampled_from(FEW)) & set(range(k)) for _ in text] for text in texts]
    weights = [draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])) if weighted else 1.0 for _ in texts]
    sentences = [
        Sentence(text, [tuple(sorted(some)) or tuple(range(k)) for some in own], weight)
        for text, own, weight in zip(texts, hidden, weights, strict=True)
    ]
    return Case(Chain(tables, k, order, stop), sentences, hidden)


@contextmanager
def working(way: str, segment: int = 1 << 22) -> Iterator[None]:
    """The E-steps of a kernel, whatever would have been chosen.

    ``segment``  numbers of a matrix, as `ways.SEGMENT`
    """
    with ExitStack() as held:
        held.enter_context(patch.object(shards, "SPARSE", np.inf if "packs" in way else 0.0))
        if way == "small packs":
            held.enter_context(patch.object(ways, "SEGMENT", segment))
            held.enter_context(patch.object(shards, "LANES", 3))
            held.enter_context(patch.object(ways, "MANY", 1))
        if way == "lists":
            held.enter_context(patch.object(ways, "FewStates", ways.Listed))
        yield


WAYS = [("packs", 1), ("small packs", 1), ("few states", 1), ("lists", 1), ("lists", 2)]
every_way = pytest.mark.parametrize(("way", "order"), WAYS)


def assert_counts(found: Any, wanted: Any) -> None:
    assert set(found) == set(wanted)
    for name, table in wanted.items():
        np.testing.assert_allclose(np.asarray(found[name]), table, err_msg=name, **EXACT)


def weighed(case: Case, each: Any) -> float:
    return float(sum(one.weight * each(one) for one in case.sentences))


@every_way
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_expected_counts(way: str, order: int, data: Any) -> None:
    case = data.draw(cases(order))
    segment = case.chain.n_states * data.draw(st.integers(1, 5))
    core = case.core
    with working(way, segment):
        found = core.expect(case.chain.tables, case.shard, How())
        scored = core.expect(case.chain.tables, case.shard, How(score_only=True))
    assert_counts(found.counts, case.chain.expected(case.sentences))
    logs = weighed(case, case.chain.log_p)
    for stats in (found, scored):
        np.testing.assert_allclose((stats.log_likelihood, stats.score), logs, **EXACT)
    assert scored.counts == {}
    assert found.items == pytest.approx(weighed(case, lambda one: 1.0))
    assert found.tokens == pytest.approx(weighed(case, lambda one: len(one.words)))


@every_way
@settings(max_examples=30, deadline=None)
@given(data=st.data(), temper=st.sampled_from([0.25, 0.7, 1.5]))
def test_tempered_counts(way: str, order: int, data: Any, temper: float) -> None:
    case = data.draw(cases(order))
    core = case.core
    with working(way, case.chain.n_states):
        found = core.expect(case.chain.tables, case.shard, How(temper=temper))
        scored = core.expect(case.chain.tables, case.shard, How(temper=temper, score_only=True))
    assert_counts(found.counts, case.chain.expected(case.sentences, temper))
    attained = weighed(case, lambda one: case.chain.log_tempered(one, temper))
    for stats in (found, scored):
        np.testing.assert_allclose(stats.log_likelihood, weighed(case, case.chain.log_p), **EXACT)
        np.testing.assert_allclose(stats.score, attained, **EXACT)


@every_way
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_best_paths(way: str, order: int, data: Any) -> None:
    case = data.draw(cases(order))
    chain = case.chain
    with working(way, case.chain.n_states * data.draw(st.integers(1, 9))):
        found = case.core.expect(chain.tables, case.shard, How(fill="hard"))
        paths = case.model.predict(case.texts, tags=case.tags)
    counts = chain.no_counts()
    for one, path in zip(case.sentences, paths, strict=True):
        chain.add(counts, one, path, 1.0)
        p = dict(chain.paths(one))[tuple(path)]  # which of two equal ones it is may differ
        np.testing.assert_allclose(np.log(p), chain.best(one)[1], **EXACT)
    assert_counts(found.counts, counts)
    np.testing.assert_allclose(found.log_likelihood, weighed(case, chain.log_p), **EXACT)
    np.testing.assert_allclose(found.score, weighed(case, lambda s: chain.best(s)[1]), **EXACT)


@every_way
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_it_says_of_sentences(way: str, order: int, data: Any) -> None:
    case = data.draw(cases(order).filter(lambda case: any(one.words for one in case.sentences)))
    model, given_ = case.model, {"tags": case.tags}
    with working(way, case.chain.n_states):
        shares = model.predict_proba(case.texts, **given_)
        decoded = model.predict(case.texts, method="posterior", **given_)
        logs = model.score_samples(case.texts, **given_)
        counts = model.expected(case.texts, **given_)
    wanted = [case.chain.posteriors(one) for one in case.sentences]
    assert len(shares) == len(wanted)
    for ours, theirs, states in zip(shares, wanted, decoded, strict=True):
        np.testing.assert_allclose(ours, theirs, **EXACT)
        assert np.allclose(theirs[np.arange(len(states)), states], theirs.max(axis=1, initial=0.0))
    np.testing.assert_allclose(logs, [case.chain.log_p(one) for one in case.sentences], **EXACT)
    alike = [Sentence(one.words, one.allowed) for one in case.sentences]
    assert_counts(counts, case.chain.expected(alike))


@every_way
def test_sparse_tables(way: str, order: int) -> None:
    """Entries that are zero: paths that cannot be add nothing, and NaN is nowhere."""
    done = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        k, v, stop = 3, 3, bool(seed % 2)
        tables = random_tables(rng, k, v, order, stop)
        for table in tables.values():
            table[rng.random(table.shape) < 0.35] = 0.0
            table /= np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
        chain = Chain(tables, k, order, stop)
        texts = [rng.integers(0, v, size=n).tolist() for n in (3, 0, 4, 1, 2)]
        sentences = [Sentence(text, [(0, 1, 2)] * len(text)) for text in texts]
        core = Case(chain, [], []).core
        logs = np.array([chain.log_p(one) for one in sentences])
        possible = [one for one, log_p in zip(sentences, logs, strict=True) if log_p > -np.inf]
        impossible = np.flatnonzero(np.isneginf(logs))
        own = Case(chain, sentences, []).shard
        with working(way, k):
            if len(impossible):
                with pytest.raises(ImpossibleItem) as caught:
                    core.expect(tables, own, How())
                assert caught.value.item == impossible[0]
                weights = np.where(np.isneginf(logs), 0.0, 1.0)
                own = Shard(own.numbers, own.observed, own.indptr, own.sets, own.states, weights)
            found = core.expect(tables, own, How())
        assert_counts(found.counts, chain.expected(possible))
        np.testing.assert_allclose(found.log_likelihood, logs[~np.isneginf(logs)].sum(), **EXACT)
        done += bool(len(impossible))
    assert 5 < done < 60  # both kinds were there


@pytest.mark.parametrize("stop", [True, False])
@every_way
def test_draws_have_the_posterior_s_frequencies(way: str, order: int, stop: bool) -> None:
    chain = Chain(random_tables(np.random.default_rng(5), 2, 3, order, stop), 2, order, stop)
    hidden: list[list[set[int]]] = [[set(), {1}, set(), set()], [], [set()]]
    both = [[tuple(some) or (0, 1) for some in own] for own in hidden]
    sentences = [Sentence(w, own) for w, own in zip([[0, 1, 2, 0], [], [1]], both, strict=True)]
    case, n = Case(chain, sentences, hidden), 20000
    with working(way, 2 * case.chain.n_states):
        drawn = case.model.posterior_sample(case.texts, n, random_state=3, tags=case.tags)
    assert [len(some) for some in drawn] == [n, n, n]
    assert drawn[1] == [[]] * n
    for one, some in zip(sentences, drawn, strict=True):
        paths = [tuple(path) for path in some]
        shares = dict(chain.shares(one))
        assert set(paths) <= set(shares)
        for path, share in shares.items():
            spread = np.sqrt(share * (1.0 - share) / n)
            assert abs(paths.count(path) / n - share) <= 5.0 * spread
    core, how = case.core, How(fill="sample", samples=n, stream=11)
    stats = core.expect(chain.tables, case.shard, how)
    for name, table in chain.expected(sentences).items():
        np.testing.assert_allclose(np.asarray(stats.counts[name]), table, atol=5.0 * 1.5 / n**0.5)
    np.testing.assert_allclose(stats.log_likelihood, weighed(case, chain.log_p), **EXACT)
    np.testing.assert_allclose(stats.score, weighed(case, chain.log_p), **EXACT)


def test_draws_that_do_not_depend_on_company() -> None:
    """A sentence's draws are those of its number, whoever is beside it; samples differ."""
    chain = Chain(random_tables(np.random.default_rng(1), 3, 3, 1, True), 3, 1, True)
    case = Case(chain, [], [])
    model, texts = case.model, [["w0", "w1", "w2", "w0"]] * 4
    alone, together = model.posterior_sample(texts[:1], 5), model.posterior_sample(texts, 5)
    assert alone[0] == together[0]
    assert any(together[0] != other for other in together[1:])
    assert model.posterior_sample(texts, 5, random_state=9) != together


@pytest.mark.parametrize("order", [1, 2])
def test_steps_of_em(order: int) -> None:
    """Three steps: counts of all paths, made probabilities by hand."""
    rng = np.random.default_rng(order)
    tables = random_tables(rng, 2, 3, order, True)
    texts = [[0, 1, 2], [], [2, 2], [1], [0, 2, 1, 1]]
    sentences = [Sentence(text, [(0, 1)] * len(text)) for text in texts]
    words = [[f"w{w}" for w in text] for text in texts]
    learner = sc.EM(max_iter=3, tol=0.0)
    model = sc.HMM(2, order=order, init=tables, smoothing=0.25, learner=learner).fit(words)
    for _ in range(3):
        counts = Chain(tables, 2, order, True).expected(sentences)
        tables = {
            name: (table + 0.25) / (table + 0.25).sum(axis=1, keepdims=True)
            for name, table in counts.items()
        }
    assert_counts(model.params_, tables)
