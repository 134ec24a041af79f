"""Hidden Markov models against all paths, one after the other; bits, threads and hard numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.errors import ImpossibleItem
from softcount.core.types import EStep
from softcount.hmm import data as shards
from softcount.hmm import forward_backward
from softcount.hmm.data import SentenceShard, StateSets
from softcount.text.sequences import sequences
from softcount.text.tagged import tagged
from tests.hmm.text import LEARNERS, assert_same, made
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
    def shard(self) -> SentenceShard:
        """As cores take it."""
        k = self.chain.n_states
        every = tuple(range(k))
        sets = [every, *sorted({s for one in self.sentences for s in map(tuple, one.allowed)})]
        allowed = np.array([[state in some for state in every] for some in sets])
        numbers = {some: n for n, some in reversed(list(enumerate(sets)))}
        lengths = [len(one.words) for one in self.sentences]
        return SentenceShard(
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
        core, _ = self.estimator._bind(self.words)
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

    ``segment``  numbers of a matrix, as `forward_backward.SEGMENT`
    """
    with ExitStack() as held:
        held.enter_context(patch.object(shards, "SPARSE", np.inf if "packs" in way else 0.0))
        if way == "small packs":
            held.enter_context(patch.object(forward_backward, "SEGMENT", segment))
            held.enter_context(patch.object(shards, "LANES", 3))
            held.enter_context(patch.object(forward_backward, "MANY", 1))
        yield


WAYS = [("packs", 1), ("small packs", 1), ("few states", 1), ("lists", 2)]
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
        found = core.expect(case.chain.tables, case.shard, EStep())
        scored = core.expect(case.chain.tables, case.shard, EStep(score_only=True))
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
        found = core.expect(case.chain.tables, case.shard, EStep(temper=temper))
        scored = core.expect(case.chain.tables, case.shard, EStep(temper=temper, score_only=True))
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
        found = case.core.expect(chain.tables, case.shard, EStep(fill="hard"))
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
        counts = model.expected_counts(case.texts, **given_)
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
                    core.expect(tables, own, EStep())
                assert caught.value.item == impossible[0]
                weights = np.where(np.isneginf(logs), 0.0, 1.0)
                own = SentenceShard(
                    own.numbers, own.observed, own.indptr, own.sets, own.states, weights
                )
            found = core.expect(tables, own, EStep())
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
    core, how = case.core, EStep(fill="sample", samples=n, stream=11)
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


# Bits, threads, precision, and numbers that are very small or sentences that are very long.


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("learner", ["EM", "HardEM", "MonteCarloEM", "Gibbs"])
def test_threads_change_no_bit(learner: str, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward_backward, "MANY", 1)
    monkeypatch.setattr(shards, "LANES", 8)
    text, _ = made(200, seed=4)
    found = []
    for threads in (1, 2, 4):
        engine = sc.Local(threads=threads)
        it = sc.HMM(4, order=order, smoothing=0.1, learner=LEARNERS[learner], engine=engine)
        model = it.fit(text)
        shares = np.concatenate(model.predict_proba(text))
        drawn = model.posterior_sample(text[:20], 3)
        found.append((model.params_, model.score_samples(text), shares, drawn, model.predict(text)))
    for params, logs, shares, drawn, paths in found[1:]:
        assert_same(params, found[0][0])
        np.testing.assert_array_equal(logs, found[0][1])
        np.testing.assert_array_equal(shares, found[0][2])
        assert (drawn, paths) == found[0][3:]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_change_no_bit_of_much_text(dtype: str) -> None:
    """So much that work is shared out as it is: K × tokens ≥ 2²²."""
    k, rng = 64, np.random.default_rng(0)
    text = [[f"w{w}" for w in rng.integers(0, 90, n)] for n in rng.integers(1, 60, 2300)]
    it = sc.HMM(k, smoothing=0.1, dtype=dtype, learner=sc.EM(max_iter=1, tol=0))
    model = it.fit(text[:30])
    shard = model._read(text).everything
    assert shard.n_tokens * k >= forward_backward.MANY
    assert len(shard.packs.sentences) > 8
    found = [model.core_.expect(model.raw_params_, shard, EStep(threads=n)) for n in (1, 2, 4)]
    for stats in found[1:]:
        assert stats.log_likelihood == found[0].log_likelihood
        assert_same(stats.counts, found[0].counts)


def test_pieces_of_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sparse kernel in pieces, by several threads, as in one."""
    text, tags = made(200, seed=4)
    known = tagged(text, tags).dictionary()
    names = [f"T{n}" for n in range(20)] + sorted({tag for some in tags for tag in some})

    def learned(threads: int) -> Any:
        engine = sc.Local(threads=threads)
        it = sc.HMM(dictionary=known, open_tags=names, engine=engine, smoothing=0.1)
        return it.set_params(learner=sc.EM(max_iter=3, tol=0)).fit(text)

    whole = learned(1)
    assert whole._read(text).everything.is_sparse
    monkeypatch.setattr(forward_backward, "MANY", 1)
    one, four = learned(1), learned(4)
    assert_same(one.params_, four.params_)
    for name, table in whole.params_.items():
        np.testing.assert_allclose(one.params_[name], table, atol=1e-12)


def test_float32_is_close() -> None:
    text, _ = made(300, seed=2)
    init = sc.HMM(5, smoothing=0.01, learner=sc.EM(max_iter=1)).fit(text).params_
    usual, coarse = (
        sc.HMM(5, smoothing=0.01, dtype=dtype, init=init, learner=sc.EM(max_iter=5, tol=0)).fit(
            text
        )
        for dtype in ("float64", "float32")
    )
    for name, table in usual.params_.items():
        np.testing.assert_allclose(coarse.params_[name], table, atol=1e-4)
    logs = usual.score_samples(text)
    np.testing.assert_allclose(coarse.score_samples(text), logs, rtol=1e-3, atol=1e-4)
    assert not np.array_equal(coarse.params_["emissions"], usual.params_["emissions"])


# very small, very long
def alike(p: float, **settings: Any) -> Any:
    """Two states that are one: "a" of 1 − p, "b" of p."""
    order = settings.get("order", 1)
    init = {
        "start": [[0.5, 0.5]],
        "transitions": np.full((2**order, 2), 0.5),
        "emissions": [[1.0 - p, p]] * 2,
    }
    if order == 2:
        init["second"] = np.full((2, 2), 0.5)
    it = sc.HMM(2, stop=False, init=init, frozen=list(init), **settings)
    return it.set_params(learner=sc.EM(max_iter=1)).fit(["a b"])


@pytest.mark.parametrize("p", [1e-30, 1e-120, 1e-180, 1e-199, 1e-250, 1e-300])
@pytest.mark.parametrize("way", ["packs", "few states", "order 2"])
def test_chances_next_to_nothing(way: str, p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SPARSE", 0.0 if way == "few states" else np.inf)
    model = alike(p, order=2 if way == "order 2" else 1)
    texts = [["b"] * n for n in (1, 2, 3, 10)] + [["b", "a"] * 5]
    wanted = [sum(np.log(p) for word in text if word == "b") for text in texts]
    np.testing.assert_allclose(model.score_samples(texts), wanted, rtol=1e-12)
    for share in model.predict_proba(texts):
        np.testing.assert_allclose(share, 0.5)
    found = model.expected_counts(texts)
    assert sum(found["emissions"].sum(axis=1)) == pytest.approx(sum(map(len, texts)))


@pytest.mark.filterwarnings("ignore::softcount.errors.ImpossibleWarning")
@pytest.mark.parametrize("way", ["packs", "few states", "order 2"])
def test_chances_that_floats_hardly_have(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below 10⁻³⁰⁸ numbers lose their digits: such a sentence is possible or not, never NaN."""
    monkeypatch.setattr(shards, "SPARSE", 0.0 if way == "few states" else np.inf)
    model = alike(1e-300, order=2 if way == "order 2" else 1)
    for p in (1e-307, 3e-308, 1e-308, 1e-310, 5e-324, 0.0):
        model.raw_params_ = {**model.raw_params_, "emissions": np.array([[1.0, p]] * 2)}
        for text in (["b"], ["b", "b"], ["a", "b", "a", "a"]):
            (log_p,), (shares,) = model.score_samples([text]), model.predict_proba([text])
            times = text.count("b")
            assert log_p == -np.inf or log_p == pytest.approx(times * np.log(p), rel=1e-3), p
            np.testing.assert_allclose(shares, 0.5)
            (best,), (drawn,) = model.predict([text]), model.posterior_sample([text])
            assert len(best) == len(text)
            assert [len(path) for path in drawn] == [len(text)]


def test_float32_holds_nothing_impossible_that_is_not() -> None:
    """p of the second word is 10⁻⁵⁰, which float32 does not have; it can be all the same."""
    init = {
        "start": [[1.0, 0.0]],
        "transitions": [[1.0, 1e-25], [0.5, 0.5]],
        "emissions": [[1.0, 0.0], [1.0, 1e-25]],
    }
    usual, coarse = (
        sc.HMM(2, stop=False, dtype=dtype, init=init, frozen=list(init))
        .set_params(learner=sc.EM(max_iter=1))
        .fit(["a b"])
        .score_samples(["a b"])
        for dtype in ("float64", "float32")
    )
    np.testing.assert_allclose(usual, 50 * np.log(0.1), rtol=1e-9)
    np.testing.assert_allclose(coarse, usual, rtol=1e-5)


def memory(which: str) -> int:
    """Bytes in use now ("VmRSS"), which begins a new peak; or at the peak ("VmHWM")."""
    try:
        if which == "VmRSS":
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        pytest.skip("this system does not tell")
    (line,) = (line for line in lines if line.startswith(which))
    return 1024 * int(line.split()[1])


def long_text(n: int, seed: int = 0) -> list[str]:
    numbers = np.random.default_rng(seed).integers(0, 50, n)
    return [f"w{w}" for w in numbers.tolist()]


@pytest.mark.parametrize("counted", [True, False])
def test_segments_change_nothing(counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [long_text(20000), long_text(7, 1), [], long_text(300, 2)]
    model = sc.HMM(6, smoothing=0.1, learner=sc.EM(max_iter=2)).fit(texts)

    def found() -> dict[str, Any]:
        if counted:
            return {
                **model.expected_counts(texts),
                "shares": np.concatenate(model.predict_proba(texts)),
            }
        return {"logs": model.score_samples(texts)}

    whole = found()
    monkeypatch.setattr(forward_backward, "SEGMENT", 6 * 97)
    for name, table in found().items():
        np.testing.assert_allclose(table, whole[name], rtol=1e-10, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_million_words_in_one_sentence(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is finite, and posteriors of all words are never in memory at once."""
    k, n = 8, 10**6
    monkeypatch.setattr(forward_backward, "SEGMENT", 1 << 16)
    model = sc.HMM(k, dtype=dtype, smoothing=0.1, learner=sc.EM(max_iter=2)).fit([long_text(5000)])
    text = sequences([long_text(n)])
    _ = model.score_samples([long_text(50)]), model.expected_counts([long_text(50)])  # compiled now
    shard = model._read(text).everything
    assert not shard.is_sparse
    before = memory("VmRSS")
    stats = model.core_.expect(model.raw_params_, shard, EStep())
    matrix = n * k * np.dtype(dtype).itemsize  # of which there are three, if nothing is cut
    assert memory("VmHWM") - before < matrix + 20 * n
    assert np.isfinite(stats.log_likelihood)
    assert -5.0 < stats.log_likelihood / n < -3.0  # log 50 is 3.9
    close = 1e-9 if dtype == "float64" else 1e-4
    for name, total in {"start": 1.0, "transitions": float(n), "emissions": float(n)}.items():
        counts = np.asarray(stats.counts[name])
        assert (counts >= 0.0).all()
        assert counts.sum() == pytest.approx(total, rel=close), name
    assert len(model.predict(text)[0]) == n


def test_chances_that_grow_with_each_word() -> None:
    """Powers of chances add up to more than one: many words must not make infinity of it."""
    n, few = 3000, slice(0, 3)
    text = [["a"] * n]
    model = sc.HMM(12, stop=False, random_state=0, learner=sc.EM(max_iter=1)).fit(text)
    shard = model._read(text, [[{0, 1, 2}] * n]).everything
    assert shard.is_sparse
    heated = model.core_.expect(model.raw_params_, shard, EStep(temper=0.25))
    start, moves, words = (
        np.asarray(model.raw_params_[name]) ** 0.25
        for name in ("start", "transitions", "emissions")
    )
    alpha, total = start[0, few] * words[few, 0], 0.0
    for _ in range(n - 1):
        total += np.log(alpha.sum())
        alpha = (alpha / alpha.sum()) @ moves[few, few] * words[few, 0]
    total += np.log(alpha.sum())
    assert total > 710.0  # more than a double has room for
    np.testing.assert_allclose(heated.score, total / 0.25, rtol=1e-10)
