"""What is known of tags beforehand: all of them, some, sets of them, a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.errors import DataError
from softcount.text.tagged import tagged
from tests.hmm.text import SENTENCES, TAGS, WORDS, orders, stops

NAMES = ["DT", "NN", "VB"]
QUICK = sc.EM(max_iter=2, tol=0)


def counted(
    sentences: list[list[str]], tags: list[list[int]], words: list[str], order: int, stop: bool
) -> dict[str, Any]:
    """Counts of tagged sentences."""
    found = {
        "start": np.zeros((1, 3)),
        "second": np.zeros((3, 3 + stop)),
        "transitions": np.zeros((3**order, 3 + stop)),
        "emissions": np.zeros((3, len(words))),
    }
    for sentence, own in zip(sentences, tags, strict=True):
        for i, (word, tag) in enumerate(zip(sentence, own, strict=True)):
            found["emissions"][tag, words.index(word)] += 1
            if i == 0:
                found["start"][0, tag] += 1
            follows = own[i + 1] if i + 1 < len(own) else 3
            if follows == 3 and not stop:
                continue
            if order == 2 and i == 0:
                found["second"][tag, follows] += 1
            else:
                row = tag if order == 1 else 3 * own[i - 1] + tag
                found["transitions"][row, follows] += 1
    if order == 1:
        del found["second"]
    return found


def numbers(tags: list[list[str]]) -> list[list[int]]:
    return [[NAMES.index(tag) for tag in own] for own in tags]


@orders
@stops
@pytest.mark.parametrize("smoothing", [0.5, {"transitions": 0.25, "emissions": 2.0}])
def test_all_tags_known_is_counting(order: int, stop: bool, smoothing: Any) -> None:
    it = sc.HMM(order=order, stop=stop, smoothing=smoothing, learner=QUICK)
    model = it.fit(SENTENCES, TAGS)
    assert model.states_ == NAMES
    wanted = counted(SENTENCES, numbers(TAGS), model.words_, order, stop)
    assert set(model.params_) == set(wanted)
    for name, counts in wanted.items():
        apart = isinstance(smoothing, dict)
        added = smoothing["emissions" if name == "emissions" else "transitions"] if apart else 0.5
        table = (counts + added) / (counts + added).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.params_[name], table, atol=1e-12, err_msg=name)


def test_ways_of_giving_all_tags() -> None:
    """Names, numbers, arrays, sets of one, pairs: they all say the same."""
    by_name = sc.HMM(learner=QUICK, smoothing=0.1).fit(SENTENCES, TAGS)
    others = [
        numbers(TAGS),
        [np.array(own, int) for own in numbers(TAGS)],
        [tuple(own) for own in numbers(TAGS)],
        [[{tag} for tag in own] for own in TAGS],
        [[[tag] for tag in own] for own in TAGS],
    ]
    for tags in others:
        model = sc.HMM(learner=QUICK, smoothing=0.1).fit(SENTENCES, tags)
        for name, table in by_name.params_.items():
            np.testing.assert_array_equal(model.params_[name], table)
    pairs = [list(zip(s, t, strict=True)) for s, t in zip(SENTENCES, TAGS, strict=True)]
    model = sc.HMM(learner=QUICK, smoothing=0.1).fit(tagged(pairs))
    assert model.states_ == NAMES
    for name, table in by_name.params_.items():
        np.testing.assert_array_equal(model.params_[name], table)


def test_numbers_come_back_as_numbers() -> None:
    model = sc.HMM(learner=QUICK, smoothing=0.1).fit(SENTENCES, numbers(TAGS))
    assert model.states_ == [0, 1, 2]
    (path,) = model.predict([["the", "dog", "sleeps"]])
    assert path == [0, 1, 2]
    assert all(type(state) is int for state in path)


def test_some_tags() -> None:
    """Where tags are given they are kept to; where not, all states are possible."""
    some: list[Any] = [None if n % 3 else list(own) for n, own in enumerate(TAGS)]
    some[3] = [None, *TAGS[3][1:]]
    some[6] = [TAGS[6][0], *[None] * (len(TAGS[6]) - 1)]
    model = sc.HMM(5, smoothing=0.1).fit(SENTENCES, some)
    assert model.states_ == [*NAMES, 3, 4]
    for own, path in zip(some, model.predict(SENTENCES, tags=some), strict=True):
        assert all(tag in (None, state) for tag, state in zip(own or path, path, strict=True))
    shares = model.predict_proba(SENTENCES, tags=some)
    np.testing.assert_allclose(shares[0], np.eye(5)[numbers(TAGS)[0]])
    assert ((shares[1] > 0.0).all() and (shares[1] < 1.0).all()).all()


@pytest.mark.parametrize("unknown", [None, -1])
def test_numbers_and_nothing(unknown: Any) -> None:
    tags = [[unknown if i % 2 else tag for i, tag in enumerate(own)] for own in numbers(TAGS)]
    model = sc.HMM(3, smoothing=0.1, learner=QUICK).fit(SENTENCES, tags)
    for own, path in zip(tags, model.predict(SENTENCES, tags=tags), strict=True):
        assert all(tag in (unknown, state) for tag, state in zip(own, path, strict=True))
    for name, table in sc.HMM(3, smoothing=0.1, learner=QUICK).fit(SENTENCES).params_.items():
        assert not np.array_equal(table, model.params_[name]), name


def test_nothing_known_of_all_is_no_tags() -> None:
    plain = sc.HMM(3, smoothing=0.1, learner=QUICK).fit(SENTENCES)
    for tags in ([None] * len(SENTENCES), [[None] * len(s) for s in SENTENCES]):
        model = sc.HMM(3, smoothing=0.1, learner=QUICK).fit(SENTENCES, tags)
        for name, table in plain.params_.items():
            np.testing.assert_array_equal(model.params_[name], table)


def test_sets_of_tags() -> None:
    tags: list[Any] = [[{tag, "NN"} for tag in own] for own in TAGS]
    model = sc.HMM(smoothing=0.1).fit(SENTENCES, tags)
    assert model.states_ == NAMES
    shares = model.predict_proba(SENTENCES, tags=tags)
    for own, share in zip(TAGS, shares, strict=True):
        for tag, row in zip(own, share, strict=True):
            assert {NAMES[k] for k in np.flatnonzero(row)} == {tag, "NN"}
    drawn = model.posterior_sample(SENTENCES, 4, tags=tags)
    for own, some in zip(TAGS, drawn, strict=True):
        assert all(s in (t, "NN") for path in some for t, s in zip(own, path, strict=True))


# dictionaries
def test_a_dictionary_is_kept_to() -> None:
    model = sc.HMM(dictionary=WORDS, smoothing=0.1).fit(SENTENCES)
    assert model.states_ == NAMES
    for sentence, path in zip(SENTENCES, model.predict(SENTENCES), strict=True):
        assert all(tag in WORDS[word] for word, tag in zip(sentence, path, strict=True))
    # the grammar tells the rest: fish after "the" is a noun
    assert model.predict([["the", "fish", "sleeps"], ["the", "dog", "barks"]]) == [
        ["DT", "NN", "VB"],
        ["DT", "NN", "VB"],
    ]
    emissions = model.expected_counts(SENTENCES)["emissions"]
    for word, own in WORDS.items():
        column = emissions[:, model.words_.index(word)]
        assert {NAMES[k] for k in np.flatnonzero(column)} <= set(own)


def test_a_dictionary_is_sets_at_all_tokens() -> None:
    by_words = sc.HMM(dictionary=WORDS, smoothing=0.1, learner=QUICK).fit(SENTENCES)
    sets = [[set(WORDS[word]) for word in sentence] for sentence in SENTENCES]
    by_tokens = sc.HMM(smoothing=0.1, learner=QUICK).fit(SENTENCES, sets)
    for name, table in by_words.params_.items():
        np.testing.assert_array_equal(by_tokens.params_[name], table)


def test_words_that_are_in_no_dictionary() -> None:
    known = {word: WORDS[word] for word in ("the", "a", "sleeps", "sees")}
    free = sc.HMM(dictionary=known, smoothing=0.1, learner=QUICK).fit(
        SENTENCES, TAGS[:1] + [None] * (len(TAGS) - 1)
    )
    held = sc.HMM(dictionary=known, open_tags=["NN", "XX"], smoothing=0.1, learner=QUICK)
    held.fit(SENTENCES)
    assert held.states_ == ["DT", "NN", "VB", "XX"]
    for text in (["the", "dog"], ["a", "zebra"]):
        assert (free.predict_proba([text])[0][1] > 0.0).all()
        share = held.predict_proba([text])[0][1]
        assert {held.states_[k] for k in np.flatnonzero(share)} == {"NN", "XX"}


def test_words_of_the_dictionary_that_were_not_learned_from() -> None:
    told = {**WORDS, "gnu": ["NN"], "runs": ["VB"], "can": ["NN", "VB"]}
    model = sc.HMM(dictionary=told, open_tags=["NN"], smoothing=0.1).fit(SENTENCES)
    assert "gnu" not in model.words_
    assert model.predict([["gnu", "runs"], ["runs", "gnu"], ["quux", "the"]]) == [
        ["NN", "VB"],
        ["VB", "NN"],
        ["NN", "DT"],
    ]
    (shares,) = model.predict_proba([["the", "can"]])
    assert np.flatnonzero(shares[1]).tolist() == [1, 2]
    assert np.isfinite(model.score_samples([["gnu", "runs"]])).all()


def test_a_tag_that_the_dictionary_does_not_have_wins() -> None:
    told = {**WORDS, "dog": ["NN"]}
    tags: list[Any] = [None] * len(SENTENCES)
    n = next(n for n, sentence in enumerate(SENTENCES) if "dog" in sentence)
    i = SENTENCES[n].index("dog")
    tags[n] = [None] * len(SENTENCES[n])
    tags[n][i] = "VB"
    model = sc.HMM(dictionary=told, smoothing=0.1, learner=QUICK).fit(SENTENCES, tags)
    assert model.predict(SENTENCES, tags=tags)[n][i] == "VB"
    assert model.predict(SENTENCES)[n][i] == "NN"
    tags[n][i] = {"VB", "DT"}
    assert model.predict(SENTENCES, tags=tags)[n][i] in {"VB", "DT"}


def test_lower_case_words_are_in_the_dictionary_too() -> None:
    told = {"The": ["DT"], "Dog": ["NN"], "sleeps": ["VB"]}
    it = sc.HMM(dictionary=told, open_tags=["VB"], lowercase=True, smoothing=0.1, learner=QUICK)
    model = it.fit([["The", "Dog", "sleeps"], ["the", "dog"]])
    assert model.predict([["THE", "dog"]]) == [["DT", "NN"]]


# mistakes
def test_tags_that_are_not_known_at_predict() -> None:
    named = sc.HMM(smoothing=0.1, learner=QUICK).fit(SENTENCES, TAGS)
    numbered = sc.HMM(3, smoothing=0.1, learner=QUICK).fit(SENTENCES)
    for model, tag, told in ((named, "JJ", "JJ"), (numbered, "JJ", "JJ"), (numbered, 7, "7")):
        for one in (tag, {tag}):
            with pytest.raises(DataError, match=told):
                model.predict([["the"]], tags=[[one]])


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ([["DT"]], "sentence 0"),
        ([["DT", "NN", "VB"]], "sentence 0"),
        ([["DT", set()]], "empty set of possible tags"),
        (["DT NN"], "sentence 0"),
        ([["DT", 5.5]], "5.5"),
        ([["DT", ""]], "tag"),
        ([[0, -2]], "-2"),
        ([["DT", {None}]], "tag"),
        ([[0, {-1}]], "tag"),
        ([], "tags"),
        ("DT", "tags"),
    ],
)
def test_tags_that_are_none(tags: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        sc.HMM(3).fit([["the", "dog"]], tags)


def test_fewer_states_than_tags() -> None:
    with pytest.raises(DataError, match="n_components=2"):
        sc.HMM(2).fit(SENTENCES, TAGS)


@pytest.mark.parametrize("tags", [["1", "01"], ["٣", "3"], ["999999999999", "1"]])
def test_tags_that_look_like_numbers_are_names_all_the_same(tags: list[str]) -> None:
    model = sc.HMM(smoothing=0.1, learner=QUICK).fit([["a", "b"]], [tags])
    assert [str(tag) for tag in model.predict([["a", "b"]], tags=[tags])[0]] == tags


def test_open_tags_that_are_one_text() -> None:
    """NOUN is no list of the tags N, O and U."""
    one, same = (
        sc.HMM(dictionary=WORDS, open_tags=tags, learner=QUICK).fit(SENTENCES)
        for tags in ("NOUN", ["NOUN"])
    )
    assert one.states_ == same.states_
    assert "NOUN" in one.states_
    assert one.predict(SENTENCES) == same.predict(SENTENCES)


def test_odd_tags() -> None:
    odd = ["é", "日本", "🙂", "a b", "</x>", "-"]
    words = [f"w{n}" for n in range(len(odd))]
    model = sc.HMM(smoothing=0.1, learner=QUICK).fit([words], [odd])
    assert model.states_ == sorted(odd)
    assert model.predict([words]) == [odd]
