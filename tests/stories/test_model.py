"""What a fitted story can do."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import ImpossibleItem, LearnerError, StoreError, StoryError
from tests.oracles import stories

COINS = stories.coins(sc.table, sc.story)
HMM = stories.hmm(sc.table, sc.story)
IBM1 = stories.ibm1(sc.table, sc.story)
TOSSES = ["HHH", "TTT", "HHT", "TTT", "HHH"]
START = {
    "which": {"A": 0.3, "B": 0.7},
    "flip": {"A": {"H": 0.3, "T": 0.7}, "B": {"H": 0.6, "T": 0.4}},
}


@pytest.fixture(scope="module")
def coins():
    return sc.StoryModel(COINS, learner=sc.EM(max_iter=2, tol=0)).fit(TOSSES, init=START)


def test_best_is_the_larger_of_the_two(coins):
    best = coins.best("HHT")
    tables = coins.params_
    joint = {z: tables["which"][z] * np.prod([tables["flip"][z][x] for x in "HHT"]) for z in "AB"}
    coin = max(joint, key=joint.get)
    assert best.events[0].key == (coin,)
    assert best.log_probability == pytest.approx(np.log(joint[coin]))
    assert f"which[{coin}]" in str(best)


def test_hidden_values_are_drawn_by_their_posterior(coins):
    share = coins.posterior("HHT")["which"]["A",]
    drawn = Counter(coins.sample_hidden("HHT", seed).events[0].key[0] for seed in range(2000))
    assert drawn["A"] / 2000 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2000))


def test_deep_derivations_are_read_without_recursion():
    words = ["a", "b"] * 5000
    model = sc.StoryModel(HMM, learner=sc.EM(max_iter=1)).fit([words])
    best = model.best(words)
    assert sum(entry.table == "emit" for entry in best.events) == len(words)
    assert np.isfinite(best.log_probability)


def test_what_cannot_be_explained(coins):
    assert coins.score(["HXH"])[0] == -np.inf
    with pytest.raises(ImpossibleItem, match=r"flip\[A, X\] is zero"):
        coins.best("HXH")
    with pytest.raises(ImpossibleItem, match=r"item 0 \('HXH'\)"):
        coins.posterior("HXH")


def test_generate_follows_the_tables():
    model = sc.StoryModel(COINS, learner=sc.EM(max_iter=30)).fit(["HHHH", "TTTT", "HHHT"] * 5)
    drawn = model.generate(3000, random_state=1)
    assert {len(item) for item in drawn} == {4}
    observed = np.mean([item.count("H") / 4 for item in drawn])
    tables = model.params_
    expected = sum(tables["which"][z] * tables["flip"][z]["H"] for z in "AB")
    assert observed == pytest.approx(expected, abs=0.03)


def test_generate_conditions_on_the_length():
    """The chance of the first tag, given the length, differs from the start table."""
    items = [["a", "b", "a"]] * 3 + [["b"]] * 2
    model = sc.StoryModel(HMM, learner=sc.EM(max_iter=3)).fit(items)
    drawn = Counter(tuple(item) for item in model.generate(4000, random_state=2) if len(item) == 3)
    keys = sorted(drawn)
    logs = model.score([list(key) for key in keys])
    every = model.score([[x, y, z] for x in "ab" for y in "ab" for z in "ab"])
    expected = np.exp(logs - np.logaddexp.reduce(every))
    share = np.array([drawn[key] for key in keys]) / sum(drawn.values())
    np.testing.assert_allclose(share, expected, atol=0.04)


def test_generate_keeps_conditions_from_the_data():
    pairs = [(["the", "house"], ["das", "haus"]), (["the", "book"], ["das", "buch"])]
    model = sc.StoryModel(IBM1, learner=sc.EM(max_iter=20), init="uniform").fit(pairs)
    sources = [tuple(es) for es, _ in pairs]
    for es, fs in model.generate(20, random_state=3):
        assert tuple(es) in sources
        assert len(fs) == 2
        assert set(fs) <= {"das", "haus", "buch"}


def test_generate_says_when_it_cannot():
    looking = sc.StoryModel(stories.partly_tagged(sc.table, sc.story), learner=sc.EM(max_iter=1))
    looking.fit([[("a", "X"), ("b", None)]])
    with pytest.raises(StoryError, match="inspects the observed values"):
        looking.generate(1)
    bigram = sc.table("bigram")

    @sc.story
    def chain(words):
        yield tuple(bigram[a, b] for a, b in pairwise(words))

    with pytest.raises(StoryError, match="cannot be run forward"):
        sc.StoryModel(chain).fit([["a", "b", "c"]]).generate(1)
    twice = sc.table("twice")

    @sc.story
    def double(words):
        yield twice["x", words[0]], twice["y", words[0]]

    with pytest.raises(StoryError, match="explains one observed value twice"):
        sc.StoryModel(double).fit([["a"]]).generate(1)


def test_tables_read_as_mappings_print_and_show(coins):
    tables = coins.params_
    assert set(tables) == {"which", "flip"}
    assert sum(tables["flip"]["A"].values()) == pytest.approx(1.0)
    assert tables["flip"]["A", "H"] == tables["flip"]["A"]["H"]
    assert list(tables["flip"]["B"]) == sorted(
        tables["flip"]["B"], key=tables["flip"]["B"].get, reverse=True
    )
    assert repr(tables["flip"]).splitlines()[1].split() == ["H", "T"]  # one order for all rows
    assert "<table>" in tables._repr_html_()
    assert tables.to_dict()["which"].keys() == {"A", "B"}


def test_save_and_load_give_the_same_bits(coins, tmp_path):
    path = tmp_path / "coins.softcount"
    coins.save(path)
    again = sc.load(path, story=COINS)
    assert again.params_.to_dict() == coins.params_.to_dict()
    np.testing.assert_array_equal(again.score(TOSSES), coins.score(TOSSES))
    again.save(tmp_path / "again.softcount")
    assert (tmp_path / "again.softcount").read_bytes() == path.read_bytes()
    with pytest.raises(StoreError, match="not its code"):
        sc.load(path)


def test_keys_of_all_kinds_survive_a_file(tmp_path):
    kind = sc.table("kind")
    parts = [1, 2.5, None, True, "é\n", ("a", (3, "b")), ""]

    @sc.story
    def told(number):
        yield tuple(kind[part, number] for part in parts if part is not True)

    model = sc.StoryModel(told).fit([4, 5])
    model.save(tmp_path / "model")
    again = sc.StoryModel.load(tmp_path / "model", told)
    assert again.params_.to_dict() == model.params_.to_dict()
    strange = object()

    @sc.story
    def odd(number):
        yield kind[strange, number]

    with pytest.raises(StoreError, match="cannot be written"):
        sc.StoryModel(odd).fit([1]).save(tmp_path / "odd")


def test_frozen_tables_stay_and_others_move():
    model = sc.StoryModel(COINS, frozen=["flip"]).fit(TOSSES, init=START)
    assert model.params_["flip"].to_dict() == START["flip"]
    assert model.params_["which"]["A"] != pytest.approx(0.3)
    with pytest.raises(LearnerError, match="this story has no such table"):
        sc.StoryModel(COINS, frozen=["flap"]).fit(TOSSES)


def test_smoothing_is_a_prior_by_another_name():
    smoothed = sc.StoryModel(COINS, smoothing=0.5).fit(TOSSES, init=START)
    prior = sc.StoryModel(COINS, prior=1.5).fit(TOSSES, init=START)
    assert smoothed.params_.to_dict() == prior.params_.to_dict()
    with pytest.raises(LearnerError, match="both given"):
        sc.StoryModel(COINS, prior=2.0, smoothing=0.5).fit(TOSSES)
    with pytest.raises(LearnerError, match="prior"):
        sc.StoryModel(COINS, prior=0.5).fit(TOSSES)


@pytest.mark.parametrize("ascent", ["gradient", "converged"])
def test_m_steps_of_log_linear_tables(ascent):
    kind = sc.table("kind")
    spell = sc.table("spell", features=lambda k, w: [(k, w[-1])], l2=0.1, ascent=ascent)

    @sc.story
    def words(line):
        for k in "AB":
            yield kind[k], *(spell[k, w] for w in line)

    model = sc.StoryModel(words, max_iter=20).fit([["as", "bs"], ["at", "bt"], ["as", "cs"]])
    assert (np.diff(model.trace_.objective) >= -1e-12).all()
    assert model.core_.families["spell"].ascent == ascent


def test_log_linear_tables_learn_from_features():
    words = ["walk", "walked", "walks", "talk", "talked", "talks"]

    def suffix(tag, word):
        return [f"{tag}:{word[-1]}", f"{tag}:{word[0]}"]

    emit, kind = sc.table("emit", outcomes=words, features=suffix, l2=0.1), sc.table("kind")

    @sc.story
    def word(text):
        for tag in "XY":
            yield kind[tag], emit[tag, text[0]]

    items = [["walk"], ["walked"], ["talk"], ["talks"]] * 4
    model = sc.StoryModel(word, learner=sc.EM(max_iter=30)).fit(items)
    assert (np.diff(model.trace_.objective) > -1e-9).all()
    for tag in "XY":
        assert sum(model.params_["emit"][tag].values()) == pytest.approx(1.0)
    assert model.score([["talked"]])[0] > np.log(0.01)  # never seen, but its features were


def test_decompose_at_readable_tables():
    model = sc.StoryModel(COINS, learner=sc.EM(max_iter=1, tol=0)).fit(TOSSES, init=START)
    parts = model.decompose(TOSSES, model.params_, at=START)
    assert parts.log_likelihood == pytest.approx(model.trace_.log_likelihood[1])
    assert parts.bound + parts.kl == pytest.approx(parts.log_likelihood)
    assert parts.kl > 0
    still = model.decompose(TOSSES, START)
    assert still.kl == pytest.approx(0.0, abs=1e-12)


def test_development_data_choose_the_run():
    rng = np.random.default_rng(0)
    items = ["".join(rng.choice(["H", "T"], 5)) for _ in range(30)]
    apart = ["HTHTH", "THTHT"]
    model = sc.StoryModel(COINS, learner=sc.EM(max_iter=3, n_init=5))
    model.fit(items, development=apart, keep_params=True)
    (shard,) = model._bind_more(model.core_, apart).shards()
    ends = [trace.params[-1] for trace in model.fit_.traces]
    scores = [model.core_.logs(params, shard)[1].sum() for params in ends]
    objectives = [trace.objective[-1] for trace in model.fit_.traces]
    assert np.argmax(scores) != np.argmax(objectives)  # else the choice would show nothing
    assert model.score(apart).sum() == pytest.approx(max(scores))


def test_not_fitted():
    with pytest.raises(Exception, match="has not been fitted"):
        sc.StoryModel(COINS).score(["H"])


def test_totals_are_known_only_where_all_derivations_agree():
    a, b = sc.table("a"), sc.table("b")

    @sc.story
    def unsure(words):
        yield tuple(a[w] for w in words)
        yield a[words[0]], b["rest"]

    core, corpus = sc.StoryModel(unsure)._bind([["x", "y"], ["z", "z"]])
    assert core.totals(corpus.shards()[0]) == {}
    core, corpus = sc.StoryModel(unsure)._bind([["x"], ["z"]])
    assert core.totals(corpus.shards()[0]) == {"a": 2.0}
