"""Many shards: the same as one shard; what is sent; what is small; one after the other."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.laws import check_model
from softcount.core.records import pack, unpack
from softcount.core.types import ColumnCounts, EStep, Params, SparseCounts, Stats
from softcount.core.verdict import Verdict
from softcount.engines.blocks import tree_sum
from softcount.families import Categorical
from softcount.hmm import data, forward_backward
from softcount.hmm.core import HMMCore, TableConstraints, make_chain_families
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSets, TagConstraints
from softcount.hmm.emissions import WordEmission
from tests.hmm.text import LEARNERS, SENTENCES, TAGS, WORDS

MOST = 13
"""Tokens of a shard here: some twelve shards."""
RNG = np.random.default_rng(0)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 3.0], len(SENTENCES))
SOME_TAGS = [own if n % 3 else None for n, own in enumerate(TAGS)]
SETS = [[{tag, "NN"} if i % 2 else None for i, tag in enumerate(own)] for own in TAGS]
WALKS = [RNG.normal(3.0 * len(own), size=(len(own), 2)) for own in SENTENCES]
ZERO = {"transitions": np.eye(3, 4, dtype=bool)}

Make = Callable[..., Any]
CASES: dict[str, tuple[Make, Any, dict[str, Any]]] = {
    "plain": (lambda **o: sc.HMM(3, **o), SENTENCES, {}),
    "order 2": (lambda **o: sc.HMM(3, order=2, **o), SENTENCES, {}),
    "no ends": (lambda **o: sc.HMM(3, stop=False, **o), SENTENCES, {}),
    "float32": (lambda **o: sc.HMM(3, dtype="float32", **o), SENTENCES, {}),
    "some tags": (lambda **o: sc.HMM(**o), SENTENCES, {"tags": SOME_TAGS}),
    "some tags, order 2": (lambda **o: sc.HMM(order=2, **o), SENTENCES, {"tags": SOME_TAGS}),
    "sets of tags": (lambda **o: sc.HMM(4, **o), SENTENCES, {"tags": SETS}),
    "dictionary": (lambda **o: sc.HMM(dictionary=WORDS, **o), SENTENCES, {}),
    "features": (lambda **o: sc.HMM(3, emissions="features", **o), SENTENCES, {}),
    "weights": (lambda **o: sc.HMM(3, **o), SENTENCES, {"sample_weight": WEIGHTS}),
    "zeros, ties, frozen rows": (
        lambda **o: sc.HMM(
            3, zero=ZERO, tied={"emissions": [0, 1, 0]}, frozen={"transitions": [1]}, **o
        ),
        SENTENCES,
        {},
    ),
    "vectors": (lambda **o: sc.GaussianHMM(3, **o), WALKS, {}),
    "vectors, diagonal": (
        lambda **o: sc.GaussianHMM(3, covariance="diag", **o),
        WALKS,
        {"tags": SOME_TAGS, "sample_weight": WEIGHTS},
    ),
    "vectors, tied": (lambda **o: sc.GaussianHMM(2, covariance="tied", **o), WALKS, {}),
}
HOWS = {
    "soft": EStep(theory=True),
    "hard": EStep(fill="hard"),
    "sampled": EStep(fill="sample", samples=3, stream=5),
    "tempered": EStep(temper=0.6),
    "hard, tempered": EStep(fill="hard", temper=0.6),
    "score": EStep(score_only=True),
}
COLLAPSIBLE = [
    *("plain", "order 2", "no ends", "float32", "some tags", "some tags, order 2"),
    *("sets of tags", "dictionary"),
]
cases = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "SHARD_TOKENS", MOST)
    monkeypatch.setattr(data, "USUAL_DIMENSIONS", 2)


@pytest.fixture(params=[False, True], ids=["all words", "own words"])
def own_words(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether shards that lack most of the words have tables of their own alone."""
    monkeypatch.setattr(data, "MANY_WORDS", 0 if request.param else 1 << 12)
    return bool(request.param)


@dataclass(frozen=True)
class Bench:
    model: Any
    core: HMMCore
    corpus: SentenceCorpus
    params: Params


def bench_of(name: str, **options: Any) -> Bench:
    make, items, known = CASES[name]
    model = make(smoothing=0.1, **options)
    core, corpus = model._bind(items, **known)
    rng = np.random.default_rng(3)
    params = {n: family.random(rng) for n, family in core.families.items()}
    if "vectors" not in name:
        return Bench(model, core, corpus, params)
    family: Any = core.emission.family  # means amid the vectors, and wide enough for all of them
    covariances = family.covariances(params["emissions"])
    is_full = covariances.ndim == 3 or name == "vectors, tied"
    spread = np.broadcast_to(50.0 * np.eye(2) if is_full else 50.0, covariances.shape)
    centres = rng.normal(size=(family.n_rows, 2)) * 5.0
    return Bench(model, core, corpus, {**params, "emissions": family.make_params(centres, spread)})


def same(one: Stats, two: Stats, tolerance: float = 0.0) -> None:
    """To the bit or, with a tolerance, up to the order of sums."""
    for name, counts in one.counts.items():
        ours, theirs = np.asarray(counts), np.asarray(two.counts[name])
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=name)
        assert ours.tobytes() == theirs.tobytes() or tolerance
    for figure in ("log_likelihood", "score", "items", "tokens", "magnitude"):
        ours, theirs = getattr(one, figure), getattr(two, figure)
        assert ours == pytest.approx(theirs, rel=tolerance, abs=0), figure
    assert one.uncounted.expected == pytest.approx(two.uncounted.expected, rel=1e-12)


def parts_of(bench: Bench, how: EStep) -> list[Stats]:
    return [bench.core.expect(bench.params, shard, how) for shard in bench.corpus.shards(None)]


# the cut


@cases
def test_consecutive_sentences_as_views(name: str) -> None:
    corpus = bench_of(name).corpus
    shards, whole = corpus.shards(None), corpus.everything
    assert len(shards) > 3
    assert np.concatenate([shard.numbers for shard in shards]).tolist() == list(range(len(whole)))
    begin = 0
    for shard in shards:
        assert shard.n_tokens <= MOST or len(shard) == 1
        assert shard.states is whole.states
        for attribute in ("observed", "sets", "weights", "numbers"):
            assert np.shares_memory(getattr(shard, attribute), getattr(whole, attribute))
        assert np.array_equal(shard.observed, whole.observed[begin : begin + shard.n_tokens])
        begin += shard.n_tokens


def test_what_is_small_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = bench_of("plain").corpus
    monkeypatch.setattr(data, "SHARD_TOKENS", corpus.everything.n_tokens)
    assert corpus.shards(None)[0] is corpus.everything
    monkeypatch.setattr(data, "SHARD_TOKENS", corpus.everything.n_tokens - 1)
    assert len(corpus.shards(None)) == 2


def test_wide_vectors_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = bench_of("vectors").corpus
    usual = len(corpus.shards(None))
    monkeypatch.setattr(data, "USUAL_DIMENSIONS", 1)
    assert len(corpus.shards(None)) > usual
    monkeypatch.setattr(data, "USUAL_DIMENSIONS", 100)
    assert len(corpus.shards(None)) == usual


def test_the_cut_ignores_the_states() -> None:
    numbers = [
        [shard.numbers.tolist() for shard in sc.HMM(k)._bind(SENTENCES)[1].shards(None)]
        for k in (1, 20)
    ]
    assert numbers[0] == numbers[1]


@cases
def test_put_together_again(name: str) -> None:
    corpus = bench_of(name).corpus
    again = SentenceShard.concatenate(corpus.shards(None))
    for field in fields(SentenceShard):
        ours, theirs = getattr(again, field.name), getattr(corpus.everything, field.name)
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype
            assert ours.tobytes() == theirs.tobytes()


# the E-step


@cases
@pytest.mark.parametrize("how", HOWS)
def test_many_shards_are_as_one(name: str, how: str, own_words: bool) -> None:
    bench = bench_of(name)
    parts = parts_of(bench, HOWS[how])
    whole = bench.core.expect(bench.params, bench.corpus.everything, HOWS[how])
    assert len(parts) > 3
    same(tree_sum(parts), whole, 1e-5 if name == "float32" else 1e-12)


@cases
def test_threads_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward_backward, "MANY", 3)  # several pieces in each shard
    bench = bench_of(name)
    for shard in bench.corpus.shards(None):
        one, two = (bench.core.expect(bench.params, shard, EStep(threads=t)) for t in (1, 3))
        same(one, two)


@pytest.mark.parametrize("name", ["plain", "some tags", "features"])
def test_few_words_leave_as_few_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers as of all words, to the bit."""
    bench = bench_of(name)
    for how in HOWS.values():
        if how.score_only:
            continue
        monkeypatch.setattr(data, "MANY_WORDS", 1 << 12)
        dense = parts_of(bench, how)
        monkeypatch.setattr(data, "MANY_WORDS", 0)
        sparse = parts_of(bench, how)
        kinds = {type(part.counts["emissions"]) for part in sparse}
        assert {type(part.counts["emissions"]) for part in dense} == {np.ndarray}
        assert kinds & {SparseCounts if name == "features" else ColumnCounts}
        for one, two in zip(sparse, dense, strict=True):
            same(one, two)


def test_memory_of_a_large_vocabulary() -> None:
    """A few sentences of a large vocabulary need much less than a table of it."""
    k, v = 10, 400_000
    nothing = TagConstraints([], k)
    chain = make_chain_families(TableConstraints({}, {}, {}, nothing), k, 1, True, 1.1)
    table = Categorical((k, v), 1.1)
    core = HMMCore("HMM", chain, WordEmission(table, (k, v)), k)
    rng = np.random.default_rng(0)
    params = {name: family.random(rng) for name, family in core.families.items()}
    words, sets = rng.integers(0, v, 60).astype(np.int32), np.zeros(60, np.int32)
    states = StateSets.all_of(k)
    shard = SentenceShard(
        np.arange(6), words, np.arange(0, 61, 10), sets, states, np.ones(6), n_words=v
    )
    for how in (EStep(), EStep(fill="hard"), EStep(fill="sample"), EStep(score_only=True)):
        core.expect(params, shard, how)  # compiled
        tracemalloc.start()
        stats = core.expect(params, SentenceCorpus(shard).select(np.arange(6)), how)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < k * v * 8 / 4  # counting the words takes 8 bytes for each
        if not how.score_only:
            assert isinstance(stats.counts["emissions"], ColumnCounts)


# learning


@cases
def test_laws(name: str, own_words: bool) -> None:
    if name == "float32":
        pytest.skip("laws are for float64")
    bench = bench_of(name)
    assert len(bench.corpus.shards(None)) > 3
    check_model(_Bound(bench), None, params=bench.params).raise_if_failed()


@dataclass(frozen=True)
class _Bound:
    """An estimator whose data are bound already, tags and weights included."""

    bench: Bench

    def _bind(self, _: Any) -> tuple[Any, Any]:
        return self.bench.core, self.bench.corpus


@cases
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(name: str, learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits go through, threads do not matter, and what cannot fall does not."""
    monkeypatch.setattr(data, "MANY_WORDS", 0)
    make, items, known = CASES[name]
    if learner == "CollapsedGibbs" and name not in COLLAPSIBLE:
        pytest.skip("it has no collapsed sampler")
    options = {"learner": LEARNERS[learner], "random_state": 0, "smoothing": 0.1}
    fits = [make(engine=sc.engines.Local(t), **options).fit(items, **known) for t in (1, 2)]
    assert fits[0].raw_params_.keys() == fits[1].raw_params_.keys()
    for table, values in fits[0].raw_params_.items():
        assert np.asarray(values).tobytes() == np.asarray(fits[1].raw_params_[table]).tobytes()
    assert fits[0].trace_.objective.tobytes() == fits[1].trace_.objective.tobytes()
    assert fits[0].verdict_ is not Verdict.FELL


@cases
def test_incremental_em_never_falls(name: str, own_words: bool) -> None:
    """With an M-step after every shard of the corpus's own cut."""
    make, items, known = CASES[name]
    learner = sc.IncrementalEM(batch_size=None, max_iter=6, tol=0)
    model = make(learner=learner, random_state=1, smoothing=0.1).fit(items, **known)
    assert int(model.fit_.signature.split()[-2]) > 3  # shards
    objective = model.trace_.objective
    assert (np.diff(objective) >= -(1e-5 if name == "float32" else 1e-9)).all()
    assert objective[-1] > objective[1]


@pytest.mark.parametrize("name", ["plain", "order 2", "some tags", "dictionary", "vectors"])
def test_a_batch_fit_is_that_of_one_shard(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, items, known = CASES[name]
    options = {"learner": sc.EM(max_iter=4, tol=0), "random_state": 0, "smoothing": 0.1}
    many = make(**options).fit(items, **known)
    monkeypatch.setattr(data, "SHARD_TOKENS", 1 << 21)
    one = make(**options).fit(items, **known)
    assert "1 shard" in one.fit_.signature
    assert "1 shard" not in many.fit_.signature
    np.testing.assert_allclose(many.trace_.objective, one.trace_.objective, rtol=1e-10)
    for table, values in one.params_.items():
        np.testing.assert_allclose(many.params_[table], values, rtol=1e-8, atol=1e-10)


# inference


def fitted(name: str) -> tuple[Any, Any, dict[str, Any]]:
    make, items, known = CASES[name]
    model = make(learner=sc.EM(max_iter=2), random_state=0).fit(items, **known)
    strange = [*SENTENCES, ["the", "zebra", "barks"], ["barks", "the", "the"]]
    new = items if "vectors" in name else strange
    tags = known.get("tags")
    return model, new, {"tags": [*tags, None, None][: len(new)]} if tags else {}


@cases
@pytest.mark.filterwarnings("ignore:.*probability zero")
def test_predictions_are_those_of_one_shard(
    name: str, own_words: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, new, known = fitted(name)

    def answers() -> Iterator[Any]:
        yield model.predict(new, **known)
        yield model.predict(new, method="posterior", **known)
        yield [table.tobytes() for table in model.predict_proba(new, **known)]
        yield model.posterior_sample(new, 3, **known)
        yield model.score_samples(new, **known).tobytes()
        if hasattr(model, "perplexity"):
            yield model.perplexity(new)

    monkeypatch.setattr(data, "SHARD_TOKENS", MOST)
    many = list(answers())
    monkeypatch.setattr(data, "SHARD_TOKENS", 1 << 21)
    monkeypatch.setattr(data, "MANY_WORDS", 1 << 12)
    assert list(answers()) == many


@pytest.mark.filterwarnings("ignore:.*probability zero")
@pytest.mark.parametrize("name", ["plain", "dictionary"])
def test_segments_of_predictions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long sentences that are cut into segments, beside others or alone."""
    model, _, _ = fitted(name)
    rng = np.random.default_rng(0)
    new = [rng.choice(list(WORDS), n).tolist() for n in (40, 3, 25, 7, 60, 1)]
    monkeypatch.setattr(forward_backward, "SEGMENT", 30)
    many = [table.tobytes() for table in model.predict_proba(new)]
    monkeypatch.setattr(data, "SHARD_TOKENS", 1 << 21)
    assert [table.tobytes() for table in model.predict_proba(new)] == many


@pytest.mark.parametrize("name", ["plain", "features"])
def test_expected_counts_are_arrays(name: str, own_words: bool) -> None:
    model, _, _ = fitted(name)
    some = [["the", "dog"]]
    counts = model.expected_counts(some)
    assert all(type(table) is np.ndarray for table in counts.values())
    assert counts["emissions"].sum() == pytest.approx(2.0)


def test_probabilities_of_words(own_words: bool) -> None:
    model = sc.HMM(2, random_state=0).fit(SENTENCES)
    every = model.emission_proba()
    numbers = [model.words_.index(word) for word in ("fish", "a")]
    assert model.emission_proba(["fish", "a"]).tolist() == every[:, numbers].tolist()


# what is sent


@cases
def test_what_is_sent_is_small_and_gives_the_same_bits(name: str, own_words: bool) -> None:
    bench = bench_of(name)
    before = [len(pickle.dumps(shard)) for shard in bench.corpus.shards(None)]
    shards = bench.corpus.shards(None)
    core = pickle.loads(pickle.dumps(bench.core))
    for how in HOWS.values():
        for n, shard in enumerate(shards):
            here = bench.core.expect(bench.params, shard, how)
            assert len(pickle.dumps(shard)) == before[n]  # without what the E-step kept in it
            there = core.expect(bench.params, pickle.loads(pickle.dumps(shard)), how)
            same(here, there)
            same(here, pickle.loads(pickle.dumps(here)))
            recorded = unpack(*pack(shard))
            assert isinstance(recorded, SentenceShard)
            same(here, core.expect(bench.params, recorded, how))


@cases
def test_families_are_sent_too(name: str) -> None:
    """M-steps on another machine have the same bits."""
    bench = bench_of(name)
    stats = tree_sum(parts_of(bench, EStep()))
    for table, family in bench.core.families.items():
        again = pickle.loads(pickle.dumps(family))
        old, counts = np.asarray(bench.params[table]), stats.counts[table]
        for update in ("maximise", "mean_field", "draw"):
            results = [
                getattr(one, update)(counts, old, np.random.default_rng(0))
                for one in (family, again)
            ]
            assert results[0].tobytes() == results[1].tobytes()
    core = pickle.loads(pickle.dumps(bench.core))
    assert list(core.families) == list(bench.core.families)
    assert core.families["emissions"] is core.emission.family


def test_features_are_sent_once() -> None:
    """Not once more for each state, nor with their transpose."""
    sizes = [
        len(pickle.dumps(sc.HMM(k, emissions="features")._bind(SENTENCES)[0])) for k in (2, 40)
    ]
    assert sizes[1] < 2 * sizes[0]


# the collapsed sampler


@pytest.mark.parametrize("name", COLLAPSIBLE)
def test_the_collapsed_sampler_takes_all_shards(name: str) -> None:
    bench = bench_of(name, learner=sc.CollapsedGibbs())
    one = bench.core.collapse([bench.corpus.everything], bench.params, 7)
    many = bench.core.collapse(bench.corpus.shards(None), bench.params, 7)
    for stream in range(3):
        assert one.states.tolist() == many.states.tolist()
        assert one.log_joint() == many.log_joint()
        one.sweep(stream)
        many.sweep(stream)


@pytest.mark.parametrize("name", ["plain", "order 2", "no ends", "some tags"])
@pytest.mark.parametrize("temper", [1.0, 0.5])
def test_a_sampler_continues_from_its_state(name: str, temper: float) -> None:
    bench = bench_of(name, learner=sc.CollapsedGibbs())
    shards = bench.corpus.shards(None)
    sampler = bench.core.collapse(shards, bench.params, 7)
    for stream in range(4):
        sampler.sweep(stream, temper)
    state = unpack(*pack(dict(sampler.state())))
    other = bench.core.collapse(shards, bench.params, 8)
    other.sweep(99, temper)
    other.restore(state)
    kept = sampler.states.tolist()
    for stream in range(4, 8):
        assert sampler.states.tolist() == other.states.tolist()
        assert sampler.log_joint() == other.log_joint()
        for table, counts in sampler.counts().items():
            assert counts.tobytes() == other.counts()[table].tobytes()
        sampler.sweep(stream, temper)
        other.sweep(stream, temper)
    assert sampler.states.tolist() == other.states.tolist()
    assert sampler.states.tolist() != kept or name == "some tags"
    assert state["states"].tolist() == kept  # a copy
