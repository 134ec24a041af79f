"""Stories cut into shards: as many as the work asks for, the same sums, and shards that travel."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.laws import check_model
from softcount.core.records import pack, unpack
from softcount.core.types import EStep, SparseCounts, Stats
from softcount.engines.blocks import tree_sum
from softcount.families import LogLinear
from softcount.stories import data, tables
from softcount.stories.core import StoryCore
from softcount.stories.data import StoryCorpus
from softcount.stories.tables import TableSupport
from tests.oracles import stories

RNG = np.random.default_rng(2)
which, flip, say = sc.table("which"), sc.table("flip"), sc.table("say")
tag = sc.table("tag", features=lambda z, x: {f"{z}-{x}": 1.0, x: 1.0})


@sc.story
def coins(tosses):
    for z in "ABC":
        yield which[z], *(flip[z, x] for x in tosses)


@sc.story
def tagged(words):
    for z in "AB":
        yield which[z], *(tag[z, x] for x in words)


@sc.story
def inspects(words):  # so that every item has a graph of its own
    for z in "AB" if "a" in words else "ABC":
        yield which[z], *(say[z, x] for x in words)


def words(n: int, longest: int) -> list[list[str]]:
    return [list(RNG.choice(list("abcdefgh"), RNG.integers(1, longest))) for _ in range(n)]


CASES: dict[str, Any] = {
    "one shape": (coins, ["".join("HT"[x] for x in row) for row in RNG.integers(0, 2, (900, 4))]),
    "shapes": (stories.hmm(sc.table, sc.story), words(90, 9)),
    "log-linear": (tagged, words(90, 5)),
    "forest": (inspects, words(90, 9)),
    "trees": (stories.pcfg(sc.table, sc.story), words(40, 6)),
}

HOWS = {
    "soft": EStep(),
    "tempered": EStep(temper=0.6),
    "hard": EStep(fill="hard"),
    "sample": EStep(fill="sample", samples=3, stream=9),
    "score": EStep(score_only=True),
}


def bound(case: str) -> tuple[StoryCore, StoryCorpus, dict[str, Any]]:
    story, items = CASES[case]
    corpus = StoryCorpus(story, items)
    core = StoryCore(case, corpus.support, corpus.tables, 1.1)
    rng = np.random.default_rng(3)
    return core, corpus, {name: family.random(rng) for name, family in core.families.items()}


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_SHARD_COST", 500)
    monkeypatch.setattr(data, "_ENTRY_COST", 0)
    monkeypatch.setattr(data, "_FOREST", 60)
    monkeypatch.setattr(data, "_MAX_LANES", 8)


def figures(stats: Stats) -> dict[str, Any]:
    names = ("log_likelihood", "score", "items", "tokens")
    counts = {name: np.asarray(counts) for name, counts in stats.counts.items()}
    return counts | {name: getattr(stats, name) for name in names}


def bits(stats: Stats) -> dict[str, bytes]:
    return {name: np.asarray(figure).tobytes() for name, figure in figures(stats).items()}


@pytest.mark.usefixtures("small_shards")
def test_more_work_makes_more_shards() -> None:
    story, items = CASES["one shape"]
    shards = [len(StoryCorpus(story, items * times).shards()) for times in (1, 2, 4)]
    assert shards[0] > 16
    assert shards[1] == pytest.approx(2 * shards[0], rel=0.1)
    assert shards[2] == pytest.approx(4 * shards[0], rel=0.1)


def test_items_of_one_shape_share_a_circuit_within_a_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data, "_SHARD_COST", 4000)
    monkeypatch.setattr(data, "_ENTRY_COST", 0)
    shards = bound("one shape")[1].shards()
    assert len(shards) > 2
    for shard in shards:
        (block,) = shard.blocks
        assert sum(lanes.numbers.size for lanes in block.lanes) == shard.items
    assert len({id(shard.blocks[0].rows.kind) for shard in shards}) == 1  # not copied


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("case", CASES)
def test_many_shards_sum_to_one(case: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    core, corpus, params = bound(case)
    (whole,) = corpus.shards()
    one = figures(core.expect(params, whole, HOWS[how]))
    for name, value in {"_SHARD_COST": 100, "_ENTRY_COST": 0, "_MAX_LANES": 8}.items():
        monkeypatch.setattr(data, name, value)
    batches = corpus.shards(7, 1)
    monkeypatch.setattr(data, "_FOREST", 60)
    core, corpus, params = bound(case)
    for shards in (corpus.shards(), batches):
        assert len(shards) > 2
        many = figures(tree_sum(core.expect(params, shard, HOWS[how]) for shard in shards))
        for name, figure in one.items():
            assert many[name] == pytest.approx(figure, rel=1e-12, abs=1e-12), name


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("case", ["one shape", "shapes", "forest"])
def test_the_laws_hold_with_many_shards(case: str) -> None:
    story, items = CASES[case]
    report = check_model(sc.StoryModel(story), items[:60])
    report.raise_if_failed()
    assert {"many shards are one", "it can be pickled"} <= {law.name for law in report}


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("case", CASES)
def test_shards_and_cores_travel_without_the_story(case: str) -> None:
    core, corpus, params = bound(case)
    sent = pickle.loads(pickle.dumps(core))
    for shard in corpus.shards():
        for how in HOWS.values():
            before = bits(core.expect(params, shard, how))
            for copy in (pickle.loads(pickle.dumps(shard)), unpack(*pack(shard))):
                assert bits(sent.expect(params, copy, how)) == before
    rng = np.random.default_rng(0)
    for name, family in core.families.items():
        counts = np.random.default_rng(4).exponential(size=family.zeros().shape)
        made = [f.maximise(counts, params[name], rng) for f in (family, sent.families[name])]
        assert made[0].tobytes() == made[1].tobytes()
    shown = [c.view_params(params).to_dict() for c in (core, sent)]
    assert shown[0] == shown[1]


def test_counts_of_few_entries_are_sparse() -> None:
    items = [[f"{n}-{i}" for i in range(3)] for n in range(40)]
    core, corpus, params = bound_to(coins, items)
    shard = corpus.shards(1, 0)[0]
    counts = core.expect(params, shard, EStep()).counts["flip"]
    assert isinstance(counts, SparseCounts)
    assert len(counts.index) == 9


def bound_to(story: Any, items: Any) -> tuple[StoryCore, StoryCorpus, dict[str, Any]]:
    corpus = StoryCorpus(story, items)
    core = StoryCore("story", corpus.support, corpus.tables)
    return core, corpus, {name: family.uniform() for name, family in core.families.items()}


def test_supports_travel_without_what_they_can_compute_again() -> None:
    core, corpus, _ = bound("shapes")
    fresh = len(pickle.dumps(core))
    for support in core.support.tables.values():
        _ = support.codes, support.outcomes, support.indptr
        for level in support.levels:
            level.rank(np.zeros(1, int), np.zeros(1, int))
    assert len(pickle.dumps(core)) == fresh
    sent = pickle.loads(pickle.dumps(core.support))
    assert sent.lexicon.values == core.support.lexicon.values
    for name, support in core.support.tables.items():
        again: TableSupport = sent.tables[name]
        codes = list(support.codes.T)
        assert again.find(codes).tolist() == support.find(codes).tolist() == list(range(len(again)))
        assert again.lexicon is sent.lexicon
    frozen = pickle.loads(pickle.dumps(core.support.lexicon.freeze()))
    assert frozen.add(["never seen"]).tolist() == [-1]
    assert len(frozen) == len(core.support.lexicon)
    assert corpus.lexicon.add(["new"]).tolist() == [len(frozen)]


def test_ranks_of_too_many_keys_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = bound("shapes")[1].support
    monkeypatch.setattr(tables, "_DENSE", 2)
    searched = bound("shapes")[1].support
    for name, table in dense.tables.items():
        assert searched.tables[name].find(list(table.codes.T)).tolist() == list(range(len(table)))
        assert all(level._ranks is None for level in searched.tables[name].levels)


def test_features_travel_once() -> None:
    core, _, params = bound("log-linear")
    family = core.families["tag"]
    assert isinstance(family, LogLinear)
    size = len(pickle.dumps(family))
    family.maximise(np.ones(family.n_entries), params["tag"], RNG)  # needs the transpose
    assert len(pickle.dumps(family)) == size


@pytest.mark.parametrize(
    "learner",
    [
        sc.EM(max_iter=5, tol=0.0),
        sc.HardEM(max_iter=5),
        sc.MonteCarloEM(max_iter=4),
        sc.VariationalBayes(max_iter=5, tol=0.0),
        sc.Gibbs(max_iter=4),
        sc.OnlineEM(max_iter=2, tol=0.0, batch_size=9),
        sc.IncrementalEM(max_iter=2, tol=0.0, batch_size=9),
    ],
    ids=str,
)
def test_learning_from_many_shards(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    story, items = CASES["shapes"]

    def learn() -> Any:
        return sc.StoryModel(story, learner=learner, smoothing=0.3).fit(items)

    one = learn()
    for name, value in {"_SHARD_COST": 100, "_ENTRY_COST": 0, "_MAX_LANES": 8}.items():
        monkeypatch.setattr(data, name, value)
    many = learn()
    assert "1 shard" not in many.signature_.split(" · ")
    for name, table in one.raw_params_.items():
        assert many.raw_params_[name] == pytest.approx(table, rel=1e-8, abs=1e-10)
    assert many.score(items) == pytest.approx(one.score(items), rel=1e-8)
