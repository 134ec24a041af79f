"""Odd data: no words, words never seen, sentences that cannot be; and sentences that are made."""

from __future__ import annotations

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataError, ImpossibleItem, SoftcountError
from tests.models.sequences.text import SENTENCES, TAGS, assert_same, made, orders, stops
from tests.oracles.sequences import random_tables


@stops
@orders
def test_one_state(order: int, stop: bool) -> None:
    """A unigram model, and the lengths of sentences."""
    model = sc.HMM(1, order=order, stop=stop).fit(SENTENCES)
    words = [word for sentence in SENTENCES for word in sentence]
    total = len(words)
    often = np.array([words.count(word) for word in model.words_])
    np.testing.assert_allclose(model.params_["emissions"][0], often / total)
    assert all(set(path) <= {0} for path in model.predict(SENTENCES))
    if order == 1:
        logs = float(often @ np.log(often / total))
        n = sum(1 for sentence in SENTENCES if sentence)
        if stop:
            ends = n / total
            logs += n * np.log(ends) + (total - n) * np.log(1.0 - ends)
        assert model.score_samples(SENTENCES).sum() == pytest.approx(logs)


@orders
def test_a_state_nobody_uses(order: int) -> None:
    rng = np.random.default_rng(0)
    init = random_tables(rng, 3, 8, order, True)
    init["start"][0, 2] = 0.0
    for name in ("transitions", "second"):
        if name in init:
            init[name][:, 2] = 0.0
    init = {name: table / table.sum(axis=1, keepdims=True) for name, table in init.items()}
    model = sc.HMM(3, order=order, init=init, learner=sc.EM(max_iter=5, tol=0)).fit(SENTENCES)
    assert model.params_["start"][0, 2] == 0.0
    assert not model.params_["transitions"][:, 2].any()
    for table in model.params_.values():
        assert np.isfinite(table).all()
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert {state for path in model.predict(SENTENCES) for state in path} == {0, 1}
    assert np.isfinite(model.score_samples([["never", "seen"], ["the", "zebra"]])).all()
    assert 2 not in model.predict([["the", "zebra", "sleeps"]])[0]


def test_empty_sentences_keep_their_place() -> None:
    text = [[], ["the", "dog"], [], [], ["a", "cat", "sleeps"], []]
    model = sc.HMM(2, smoothing=0.1).fit(text)
    full = [sentence for sentence in text if sentence]
    for method in ("viterbi", "posterior"):
        paths = model.predict(text, method=method)
        assert [len(path) for path in paths] == [0, 2, 0, 0, 3, 0]
        assert [path for path in paths if path] == model.predict(full, method=method)
    logs = model.score_samples(text)
    assert logs[[0, 2, 3, 5]].tolist() == [0.0] * 4
    np.testing.assert_array_equal(logs[[1, 4]], model.score_samples(full))
    assert [share.shape for share in model.predict_proba(text)] == [
        (n, 2) for n in (0, 2, 0, 0, 3, 0)
    ]
    assert [[len(path) for path in some] for some in model.posterior_sample(text, 2)] == [
        [n, n] for n in (0, 2, 0, 0, 3, 0)
    ]
    assert_same(model.params_, sc.HMM(2, smoothing=0.1).fit(full).params_)


@orders
def test_sentences_that_are_all_empty(order: int) -> None:
    model = sc.HMM(2, order=order, smoothing=0.1).fit(SENTENCES)
    assert model.predict([[], []]) == model.predict([[], []], method="posterior") == [[], []]
    assert model.score_samples([[], []]).tolist() == [0.0, 0.0]
    assert [share.shape for share in model.predict_proba([[]])] == [(0, 2)]
    assert model.posterior_sample([[]], 2) == [[[], []]]
    assert model.perplexity([[]]) == 1.0
    assert not any(np.any(table) for table in model.expected([[]]).values())


def test_words_never_seen() -> None:
    text, _ = made(40)
    model = sc.HMM(3, smoothing=0.1).fit([*text, ["a", "zebra"], ["the", "yak"]])
    shares = model.predict_proba([["the", "gnu", "sleeps"], ["gnu"]])
    for share in shares:
        np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples([["gnu"] * 50])).all()
    # a gnu after "the" is as zebras are: a noun, as "the" and "sleeps" tell
    (gnu,), (dog,) = (model.predict([["the", word, "sleeps"]]) for word in ("gnu", "dog"))
    assert gnu == dog
    assert model.words_ == sc.HMM(3).fit([*text, ["a", "zebra"], ["the", "yak"]]).words_


def test_odd_words() -> None:
    odd = ["é", "e\u0301", "日本", "\u202e", "🙂", '"\\', "|", "</w>", "a b", "ﷺ", "İ", "ß"]
    model = sc.HMM(2, smoothing=0.1, learner=sc.EM(max_iter=3)).fit([odd, odd[::-1]])
    assert model.words_ == odd
    assert len(model.predict([odd])[0]) == len(odd)
    assert {word for row in model.top_words(99) for word in row} == set(odd)
    low = sc.HMM(2, lowercase=True, learner=sc.EM(max_iter=2)).fit([["É", "é", "ÉE"]])
    assert low.words_ == ["é", "ée"]


@pytest.mark.parametrize("order", [1, 2])
def test_an_impossible_sentence_is_named(order: int) -> None:
    zero = {"start": [[False, True]]}
    told = {"the": ["D"], "dog": ["N"]}
    text = [["the", "dog"], [], ["the"], ["dog", "the"], ["dog"]]
    it = sc.HMM(order=order, dictionary=told, zero=zero)
    with pytest.raises(ImpossibleItem, match="sentence 3 ") as caught:
        it.fit(text)
    assert caught.value.item == 3
    model = it.fit(text[:3])
    logs = model.score_samples(text)
    assert np.isneginf(logs).tolist() == [False, False, False, True, True]
    with pytest.raises(ImpossibleItem):
        model.expected(text)
    assert not np.isnan(np.concatenate(model.predict_proba(text))).any()
    assert it.fit(text, sample_weight=[1, 1, 1, 0, 0]).params_["start"].tolist() == [[1.0, 0.0]]


# new sentences
def test_sentences_that_are_made() -> None:
    model = sc.HMM(3, smoothing=0.1, learner=sc.EM(max_iter=5)).fit(SENTENCES)
    n = 4000
    new = model.generate(n, random_state=3)
    assert len(new) == n
    assert model.generate(5, random_state=3) == new[:5]
    assert model.generate(5, random_state=4) != new[:5]
    first = np.bincount([sentence[0][1] for sentence in new], minlength=3) / n
    np.testing.assert_allclose(first, model.params_["start"][0], atol=5 * 0.5 / n**0.5)
    moves, words = np.zeros((3, 4)), np.zeros((3, len(model.words_)))
    for sentence in new:
        for i, (word, state) in enumerate(sentence):
            words[state, model.words_.index(word)] += 1
            moves[state, sentence[i + 1][1] if i + 1 < len(sentence) else 3] += 1
    for name, counts in (("transitions", moves), ("emissions", words)):
        seen = counts.sum(axis=1, keepdims=True)
        assert (abs(counts / seen - model.params_[name]) <= 5 * 0.5 / seen**0.5).all(), name


@orders
def test_sentences_of_a_length(order: int) -> None:
    model = sc.HMM(2, order=order, stop=False, smoothing=0.1).fit(SENTENCES)
    assert [len(one) for one in model.generate(3, length=7)] == [7, 7, 7]
    with pytest.raises(DataError, match="length"):
        model.generate()
    ending = sc.HMM(2, order=order, smoothing=0.1).fit(SENTENCES)
    assert [len(one) for one in ending.generate(3, length=7)] == [7, 7, 7]


def test_a_length_that_cannot_be() -> None:
    """The second state always ends the sentence: five words cannot be."""
    init = {"start": [[1, 0]], "transitions": [[0, 1, 0], [0, 0, 1]], "emissions": [[1, 0], [0, 1]]}
    model = sc.HMM(2, init=init, learner=sc.EM(max_iter=1)).fit(["a b"])
    assert model.generate() == [[("a", 0), ("b", 1)]]
    with pytest.raises(SoftcountError):
        model.generate(1, length=5)


@pytest.mark.parametrize("order", [1, 2])
def test_names_of_states_in_what_is_made(order: int) -> None:
    model = sc.HMM(order=order, learner=sc.EM(max_iter=2)).fit(SENTENCES, TAGS)
    made_up = model.generate(20)
    assert {state for one in made_up for _, state in one} <= {"DT", "NN", "VB"}
    assert all(one[0][1] == "DT" for one in made_up)


@pytest.mark.parametrize("method", ["viterbi", "posterior"])
def test_a_sentence_that_cannot_be_has_states_all_the_same(method: str) -> None:
    """The others have theirs."""
    model = sc.HMM(dictionary={"a": ["A"], "b": ["B"]}, learner=sc.EM(max_iter=5))
    model.fit(["a b", "a b a b"], init=None)
    with pytest.warns(sc.ImpossibleWarning, match="1 of 4 sentences .* sentence 1"):
        found = model.predict(["a b", "b a a", "", "a b a b"], method=method)
    assert found == [["A", "B"], ["B", "A", "A"], [], ["A", "B", "A", "B"]]
    with pytest.warns(sc.ImpossibleWarning):
        assert model.posterior_sample(["b a a"], 3) == [[["B", "A", "A"]] * 3]
    with pytest.warns(sc.ImpossibleWarning):
        np.testing.assert_array_equal(model.predict_proba(["b a a"])[0], np.eye(2)[[1, 0, 0]])
