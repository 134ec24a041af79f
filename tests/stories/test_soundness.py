"""Ways to get a story wrong that were found by trying to: each must be right, or be an error."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import LearnerError, StartError, StoryError
from softcount.core.types import EStep
from softcount.stories.data import StoryCorpus
from tests.oracles import stories


def chain_of_words():
    """Naive Bayes, but word by word: a lane can fall far below its neighbour and come back."""
    word, kind = sc.table("word"), sc.table("kind")

    @sc.story
    def rest(words, i, z):
        if i == len(words):
            yield ()
        else:
            yield word[z, words[i]], rest(words, i + 1, z)

    @sc.story
    def document(words):
        for z in "AB":
            yield kind[z], rest(words, 0, z)

    return document


@pytest.mark.parametrize("half", [50, 150, 200, 400])
@pytest.mark.parametrize("rare", [1e-2, 1e-4, 1e-9])
def test_lanes_that_fall_and_recover_lose_nothing(half, rare):
    items = [["e"] * half + ["f"] * half, ["f"] * half + ["e"] * half]
    core, corpus = sc.StoryModel(chain_of_words())._bind(items)
    tables = {
        "kind": {"A": 0.25, "B": 0.75},
        "word": {"A": {"e": 1 - rare, "f": rare}, "B": {"e": rare, "f": 1 - rare}},
    }
    params = core.params(tables)
    each = half * (np.log(rare) + np.log1p(-rare))
    for fill in ("soft", "hard", "sample"):
        (shard,) = corpus.shards()
        stats = core.expect(params, shard, EStep(fill=fill, samples=4))
        assert stats.log_likelihood == pytest.approx(2 * each, rel=1e-12)
        counts = core.counts_by_key(stats)
        if fill == "soft":
            assert counts["kind"]["A",] == pytest.approx(0.5)
            assert counts["word"]["B", "e"] == pytest.approx(1.5 * half)
        assert sum(counts["kind"].values()) == pytest.approx(2.0)


@pytest.mark.parametrize("tiny", [1e-200, 1e-280, 1e-300, 1e-307, 1e-310, 5e-324])
def test_the_smallest_numbers_are_numbers(tiny):
    core, corpus = sc.StoryModel(stories.hmm(sc.table, sc.story))._bind([["a", "b", "a"]] * 3)
    tables = core.view_params({n: f.uniform() for n, f in core.families.items()}).to_dict()
    tables["emit"] = {"X": {"a": 1.0, "b": tiny}, "Y": {"a": 1.0, "b": tiny}}
    (shard,) = corpus.shards()
    stats = core.expect(core.params(tables), shard, EStep())
    counts = core.counts_by_key(stats)["emit"]
    assert counts["X", "b"] == pytest.approx(1.5)
    assert counts["Y", "a"] == pytest.approx(3.0)


def test_true_is_not_one():
    kind, emit = sc.table("kind"), sc.table("emit")

    @sc.story
    def told(words):
        yield tuple(kind["flag"] if w is True else emit[w] for w in words)

    model = sc.StoryModel(told).fit([["a", True], ["b", 1], ["b"], ["a", False, 1]])
    assert model.params_["kind"].to_dict() == {"flag": 1.0}
    assert model.params_["emit"][1] == pytest.approx(2 / 7)


@pytest.mark.parametrize("extra", [[], [{"x": 1}]])
def test_tuples_of_the_data_are_found_in_dictionaries(extra):
    known, kind = {("a", "b"): "yes"}, sc.table("kind")

    @sc.story
    def told(pairs):
        yield tuple(kind[known.get(pair, "no")] for pair in pairs if not isinstance(pair, dict))

    model = sc.StoryModel(told).fit([[("a", "b"), ("b", "a")], [("a", "b"), *extra]])
    assert model.params_["kind"]["yes"] == pytest.approx(2 / 3)


def test_tuples_of_the_data_inside_keys():
    table = sc.table("t")

    @sc.story
    def told(pairs):
        if "x" not in pairs:  # a look, so that values are traced
            yield tuple(table[(pair, 0), "w"] for pair in pairs)

    items = [[("a", "b")], [("a", "b")], [("c", "d")]]
    model = sc.StoryModel(told).fit(items)
    assert len(model.params_["t"]) == 2
    assert np.isfinite(model.score([[("a", "b")]])).all()


def test_symbols_inside_tuples_of_keys():
    bigram = sc.table("bigram")

    @sc.story
    def told(words):
        yield tuple(bigram[(words[i], words[i + 1]), words[i + 2]] for i in range(len(words) - 2))

    model = sc.StoryModel(told).fit([["a", "b", "c"], ["a", "b", "d"], ["c", "d", "a", "b"]])
    assert model.params_["bigram"][("a", "b"),]["c"] == 0.5


def test_a_look_that_the_story_hides_is_still_a_look():
    kind = sc.table("kind")

    @sc.story
    def told(words):
        for word in words:
            try:
                number = int(word)
            except:  # noqa: E722
                number = -1
            yield kind["number" if number >= 0 else "word"]

    items = [["a"]] * 3 + [["1", "b"]] * 2
    corpus = StoryCorpus(told, items)
    assert corpus.inspected
    assert set(corpus.support.tables["kind"].entry_keys()) == {("number",), ("word",)}


def test_entries_kept_from_one_item_to_the_next_are_an_error():
    which, flip = sc.table("which"), sc.table("flip")
    coin = functools.cache(lambda z: which[z])

    @sc.story
    def told(tosses):
        for z in "AB":
            yield coin(z), *(flip[z, x] for x in tosses)

    with pytest.raises(StoryError, match="made for another item"):
        sc.StoryModel(told).fit(["H", "HT", "TT"])


def test_arguments_that_can_only_be_named_are_refused():
    with pytest.raises(StoryError, match="only be given by name"):

        @sc.story
        def told(words, *, k=2):
            yield ()


def test_log_linear_tables_have_no_dirichlet_prior():
    emit = sc.table("emit", features=lambda w: [w[0]])

    @sc.story
    def told(words):
        yield tuple(emit[w] for w in words)

    items = [["ab", "b"], ["b", "ab"]]
    with pytest.raises(LearnerError, match="log-linear"):
        sc.StoryModel(told, frozen=["emit"]).fit(items)
    with pytest.raises(LearnerError, match="log-linear"):
        sc.StoryModel(told, prior={"emit": 2.0}).fit(items)
    with pytest.raises(StartError, match="log-linear"):
        sc.StoryModel(told).fit(items, init={"emit": {"ab": 0.5, "b": 0.5}})


def test_two_tables_of_one_name():
    one, two = sc.table("t", outcomes="ab"), sc.table("t")

    @sc.story
    def told(words):
        yield one[words[0]], two[words[0]]

    with pytest.raises(StoryError, match="two different tables are called 't'"):
        sc.StoryModel(told).fit([["a"]])


def test_a_model_inside_a_story():
    inner = sc.StoryModel(stories.coins(sc.table, sc.story)).fit(["HT", "TT"])
    table = sc.table("t")

    @sc.story
    def told(words):
        inner.score(["HT"])
        yield tuple(table[w] for w in words)

    with pytest.raises(StoryError, match="used inside a story"):
        sc.StoryModel(told).fit([["a"]])
    assert np.isfinite(inner.score(["HT"])).all()


def test_development_data_that_a_run_cannot_explain():
    model = sc.StoryModel(stories.coins(sc.table, sc.story), learner=sc.EM(max_iter=2, n_init=2))
    model.fit(["HT", "TT", "HH"], development=["HX"])
    assert len(model.fit_.traces) == 2


def test_scoring_leaves_a_fitted_model_as_it_was(tmp_path):
    story = stories.coins(sc.table, sc.story)
    model = sc.StoryModel(story).fit(["HT", "TT", "HH"])
    model.save(tmp_path / "before")
    model.score(["HX", "QQ", "HTT"])
    model.posterior("HTH")
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert model.score([]).shape == (0,)


def test_long_derivations_print_in_reasonable_space():
    words = ["a", "b"] * 1000
    best = sc.StoryModel(stories.hmm(sc.table, sc.story)).fit([words]).best(words)
    assert len(repr(best)) < 100
    assert len(str(best)) < 300 * len(words)


def test_numpy_words_are_words():
    story = stories.hmm(sc.table, sc.story)
    plain = [["a", "b"], ["b", "a", "a"], ["a"]]
    arrays = [np.array(words) for words in plain]
    mixed = [[np.str_(w) for w in plain[0]], *plain[1:]]
    expected = sc.StoryModel(story).fit(plain).score(plain)
    for items in (arrays, mixed):
        corpus = StoryCorpus(story, items)
        assert not corpus.inspected
        np.testing.assert_allclose(sc.StoryModel(story).fit(items).score(items), expected)


def test_one_odd_item_does_not_slow_the_others():
    kind = sc.table("kind")

    @sc.story
    def told(words):
        yield tuple(kind[w] for w in words)

    corpus = StoryCorpus(told, [["a", "b"], {"c": 1}, ["b", "a"]])
    assert corpus.traced_alternatives == 2
    with pytest.raises(StoryError, match="inspects"):
        sc.StoryModel(told).fit([{"c": 1}]).generate(1)


@pytest.mark.parametrize("seed", range(6))
def test_words_that_are_all_but_impossible_in_a_class_spoil_nothing(seed: int) -> None:
    """Items that run side by side may lie far apart: what one has no use for must stay 0, though
    the powers of two between them are beyond any float."""
    z, w = sc.table("z"), sc.table("w")

    @sc.story
    def mix(words):
        for k in range(3):
            yield z[k], *(w[k, x] for x in words)

    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 25, 40)
    data = [[f"w{n}" for n in np.minimum(rng.zipf(1.3, size), 400)] for size in sizes]
    model = sc.StoryModel(mix, learner=sc.EM(max_iter=40, tol=0)).fit(data)
    assert np.isfinite(model.trace_.objective).all()
    assert (np.diff(model.trace_.objective) > -1e-9 * abs(model.trace_.objective[-1])).all()
