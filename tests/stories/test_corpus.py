"""Lanes, forests and symbols are ways to compute, not to mean: all must agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.core.types import EStep
from softcount.stories.core import StoryCore
from softcount.stories.data import StoryCorpus
from tests.oracles import stories


def everything(core, params, shards, fill="soft"):
    total = None
    for shard in shards:
        stats = core.expect(params, shard, EStep(fill=fill, stream=7))
        total = stats if total is None else total + stats
    return total


def bound(story, items):
    corpus = StoryCorpus(story, items)
    core = StoryCore(story.__name__, corpus.support, corpus.tables)
    return core, corpus, {n: f.random(np.random.default_rng(3)) for n, f in core.families.items()}


def nosy(table, story):
    """The HMM of the oracles, but it looks at every value."""
    inner = stories.hmm(table, story)

    @story
    def sentence(words):
        if "".join(words) is not None:
            yield inner(words)

    return sentence


def sentences(rng, n, vocabulary="abcdefgh", longest=9):
    return [list(rng.choice(list(vocabulary), rng.integers(1, longest))) for _ in range(n)]


def same_counts(core, one, two):
    for name in core.families:
        np.testing.assert_allclose(
            np.asarray(one.counts[name]), np.asarray(two.counts[name]), atol=1e-10
        )


@pytest.mark.parametrize("fill", ["soft", "hard"])
def test_symbols_and_values_agree(fill):
    items = [[str(w) for w in s] for s in sentences(np.random.default_rng(0), 90)]
    core, corpus, params = bound(stories.hmm(sc.table, sc.story), items)
    nosy_core, nosy_corpus, _ = bound(nosy(sc.table, sc.story), items)
    assert not corpus.inspected
    assert nosy_corpus.inspected
    readable = core.view_params(params).to_dict()
    other = nosy_core.params(readable)
    one = everything(core, params, corpus.shards(), fill)
    two = everything(nosy_core, other, nosy_corpus.shards(), fill)
    assert one.log_likelihood == pytest.approx(two.log_likelihood, abs=1e-9)
    assert one.score == pytest.approx(two.score, abs=1e-9)
    one_counts, two_counts = core.counts_by_key(one), nosy_core.counts_by_key(two)
    for table in one_counts:
        for key in one_counts[table] | two_counts[table]:
            left, right = one_counts[table].get(key, 0.0), two_counts[table].get(key, 0.0)
            assert left == pytest.approx(right, abs=1e-9)


def test_traces_once_a_shape():
    calls = []

    @sc.story
    def counting(words):
        calls.append(words)
        yield tuple(emit[w] for w in words)

    emit = sc.table("emit")
    StoryCorpus(counting, [["a", "b"]] * 50 + [["c"]] * 50)
    assert len(calls) == 3  # two shapes, and the shortest once more with its values


@pytest.mark.parametrize(
    "look",
    [
        lambda w: w == "a",
        lambda w: w in {"a", "b"},
        lambda w: {"a": 1}.get(w, 2) == 1,
        lambda w: isinstance(w, str) and len(w) > 1,
        lambda w: str(w) == "a",
        lambda w: f"{w}" == "a",
        lambda w: w.startswith("a"),
        lambda w: w + "x" == "ax",
        lambda w: w < "b",
        lambda w: bool(w) and w[0] == "a",
        lambda w: [w] == ["a"],
        lambda w: hash(w) == hash("a"),
        lambda w: any(c == "a" for c in w),
    ],
)
def test_every_way_of_looking_is_noticed(look):
    kind, emit = sc.table("kind"), sc.table("emit")

    @sc.story
    def looking(words):
        yield tuple(p for w in words for p in (kind["yes" if look(w) else "no"], emit[w]))

    corpus = StoryCorpus(looking, [["a", "bb"], ["b", "c"], ["a", "a"]])
    assert corpus.inspected


def test_a_story_that_catches_exceptions_cannot_hide_a_look():
    kind = sc.table("kind")

    @sc.story
    def looking(words):
        try:
            same = words[0] == "a"
        except Exception:
            same = False
        yield kind["yes" if same else "no"]

    model = sc.StoryModel(looking).fit([["a"], ["b"], ["a"]])
    assert model.params_["kind"]["yes"] == pytest.approx(2 / 3)


def test_looking_at_the_type_is_caught_by_comparison():
    kind = sc.table("kind")

    @sc.story
    def looking(words):
        yield kind["word" if type(words[0]) is str else "other"], kind["end"]

    corpus = StoryCorpus(looking, [["a"], ["b"]])
    assert corpus.inspected
    assert set(corpus.support.tables["kind"].entry_keys()) == {("word",), ("end",)}


def test_missing_values_stay_what_they_are():
    known, unknown = sc.table("known"), sc.table("unknown")

    @sc.story
    def some(words):
        yield tuple(unknown["?"] if w is None else known[w] for w in words)

    model = sc.StoryModel(some).fit([["a", None], ["b", None], ["a", "b"], [None, None]])
    assert model.params_["known"]["a"] == pytest.approx(0.5)
    assert model.params_["unknown"]["?"] == 1.0


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 10_000))
def test_any_cut_into_batches_adds_up(batch_size, n_items, seed):
    items = [[str(w) for w in s] for s in sentences(np.random.default_rng(seed), n_items)]
    core, corpus, params = bound(stories.hmm(sc.table, sc.story), items)
    whole = everything(core, params, corpus.shards())
    parts = everything(core, params, corpus.shards(batch_size, seed))
    assert parts.items == whole.items == n_items
    assert parts.tokens == whole.tokens == sum(map(len, items))
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood)
    same_counts(core, whole, parts)


def test_batches_of_forests_add_up():
    rng = np.random.default_rng(1)
    items = [
        [(str(w), "XY"[rng.integers(2)] if rng.random() < 0.4 else None) for w in s]
        for s in sentences(rng, 60)
    ]
    core, corpus, params = bound(stories.partly_tagged(sc.table, sc.story), items)
    assert corpus.singles  # some items have no company
    whole = everything(core, params, corpus.shards())
    parts = everything(core, params, corpus.shards(7, 0))
    assert parts.items == 60
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood)
    same_counts(core, whole, parts)


def test_lanes_that_differ_by_hundreds_of_powers_are_run_alone():
    emit, kind = sc.table("emit"), sc.table("kind")

    @sc.story
    def bag(words):
        for z in "AB":
            yield kind[z], *(emit[z, w] for w in words)

    items = [["a"] * 40, ["b"] * 40, ["c"] * 40]
    core, corpus, _ = bound(bag, items)
    tiny = {"a": 1 - 1e-12 - 1e-200, "b": 1e-12, "c": 1e-200}
    params = core.params({"kind": {"A": 0.25, "B": 0.75}, "emit": {"A": tiny, "B": tiny}})
    numbers, logs = core.logs(params, corpus.shards()[0])
    expected = [40 * np.log(p) for p in (1.0, 1e-12, 1e-200)]
    np.testing.assert_allclose(logs[np.argsort(numbers)], expected, rtol=1e-9, atol=1e-9)
    stats = everything(core, params, corpus.shards())
    counts = core.counts_by_key(stats)["emit"]
    assert counts["A", "c"] == pytest.approx(10.0)
    assert counts["B", "b"] == pytest.approx(30.0)


def test_a_sequence_of_a_hundred_thousand_words():
    rng = np.random.default_rng(0)
    words = [str(w) for w in rng.integers(0, 20, 100_000)]
    core, corpus, params = bound(stories.hmm(sc.table, sc.story), [words])
    stats = everything(core, params, corpus.shards())
    assert stats.log_likelihood == pytest.approx(
        _forward(core.view_params(params), words), rel=1e-12
    )
    emitted = sum(core.counts_by_key(stats)["emit"].values())
    assert emitted == pytest.approx(100_000)


def _forward(tables, words):
    """The forward algorithm, scaled, in plain Python."""
    tags = "XY"
    alpha = {t: tables["first"][t] * tables["emit"][t][words[0]] for t in tags}
    trans = {(a, b): tables["stop"][a]["go"] * tables["trans"][a][b] for a in tags for b in tags}
    emit = {t: tables["emit"][t].to_dict() for t in tags}
    log = 0.0
    for word in words[1:]:
        total = sum(alpha.values())
        log += np.log(total)
        alpha = {b: sum(alpha[a] / total * trans[a, b] for a in tags) * emit[b][word] for b in tags}
    return log + np.log(sum(alpha[t] * tables["stop"][t]["end"] for t in tags))


def test_odd_unicode_empty_items_and_huge_numbers_of_lanes():
    which, char = sc.table("which"), sc.table("char")

    @sc.story
    def text(chars):
        for z in "AB":
            yield which[z], *(char[z, c] for c in chars)

    items = ["", "a\u0301", "\U0001f600", "\ud800", "\x00", "  "] * 40
    model = sc.StoryModel(text, learner=sc.EM(max_iter=5)).fit(items)
    logs = model.score(items)
    assert logs[0] == pytest.approx(0.0)
    assert np.isfinite(logs).all()


def test_small_circuits_in_one_stack_do_not_touch_one_another():
    """Shapes with few items each, some lanes far below their neighbours."""
    emit, kind = sc.table("emit"), sc.table("kind")

    @sc.story
    def bag(words):
        for z in "AB":
            yield kind[z], *(emit[z, w] for w in words)

    items = [["a"] * 40, ["b"] * 40, ["a"] * 30, ["c"] * 20, ["a"] * 20, ["c"] * 3, ["b"], []]
    core, corpus, _ = bound(bag, items)
    (shard,) = corpus.shards()
    assert len(shard.blocks) == 1
    assert len(corpus.bundles) == 6
    tiny = {"a": 1 - 1e-12 - 1e-200, "b": 1e-12, "c": 1e-200}
    params = core.params({"kind": {"A": 0.25, "B": 0.75}, "emit": {"A": tiny, "B": tiny}})
    numbers, logs = core.logs(params, shard)
    assert sorted(numbers) == list(range(len(items)))
    expected = [len(words) * np.log(tiny[words[0]]) if words else 0.0 for words in items]
    np.testing.assert_allclose(logs[np.argsort(numbers)], expected, rtol=1e-9, atol=1e-9)
    for fill in ("soft", "hard", "sample"):
        counts = core.counts_by_key(everything(core, params, corpus.shards(), fill))
        assert sum(counts["kind"].values()) == pytest.approx(len(items))
        assert sum(counts["emit"].values()) == pytest.approx(sum(map(len, items)))
    drawn = core.expect(params, shard, EStep(fill="sample", samples=4000, stream=5))
    assert core.counts_by_key(drawn)["kind"]["A",] == pytest.approx(2.0, abs=0.1)
