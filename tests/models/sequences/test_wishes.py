"""What users ask a model that has learned: words of states, names, figures; and how it answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.metrics import confusion, induction_scores, tag_scores
from tests.models.sequences.text import SENTENCES, TAGS, WORDS

WALKS = [np.random.default_rng(n).normal([[0.0]] * 3 + [[9.0]] * 3) for n in range(4)]


# p(word | state)
@pytest.mark.parametrize("emissions", ["table", "features"])
def test_emissions_are_those_that_sentences_are_scored_by(emissions: str) -> None:
    how: dict[str, Any] = {"smoothing": 0.1, "stop": False, "emissions": emissions}
    model = sc.HMM(3, learner=sc.EM(max_iter=3), **how).fit([*SENTENCES, ["once"], ["Twice"]])
    words = ["the", "zebra", "fish", "sleeping", "zebra"]
    start = model.params_["start"][0]
    found = model.emission_proba(words)
    assert found.shape == (3, 5)
    for w, word in enumerate(words):  # p(k | w) p(w) / p(k)
        shares, total = model.predict_proba([[word]])[0][0], model.score_samples([[word]])[0]
        np.testing.assert_allclose(found[:, w], shares * np.exp(total) / start, rtol=1e-9)
    every = model.emission_proba()
    np.testing.assert_allclose(every.sum(axis=1), 1.0)
    np.testing.assert_allclose(every, model.emission_proba(model.words_))
    if emissions == "table":
        assert (every == model.params_["emissions"]).all()


def test_words_to_ask_for() -> None:
    model = sc.HMM(2, lowercase=True).fit(["the dog", "the cat"])
    assert (model.emission_proba(["THE", "dog"]) == model.emission_proba()[:, :2]).all()
    assert model.emission_proba([]).shape == (2, 0)
    with pytest.raises(DataError, match="one text"):
        model.emission_proba("dog")
    model.emission_proba()[:] = 0.0
    assert model.params_["emissions"].any()


def test_top_words_are_words_that_a_state_has() -> None:
    for smoothing in (0.0, 0.1, 1.0):
        model = sc.HMM(smoothing=smoothing).fit(SENTENCES, TAGS)
        tops = model.top_words(20, with_proba=True)
        for k, (tag, top) in enumerate(zip(model.states_, tops, strict=True)):
            assert {word for word, _ in top} == {w for w, tags in WORDS.items() if tag in tags}
            chances = [p for _, p in top]
            assert chances == sorted(chances, reverse=True)
            columns = [model.words_.index(word) for word, _ in top]
            assert chances == model.params_["emissions"][k, columns].tolist()
        assert model.top_words(20) == [[word for word, _ in top] for top in tops]
        assert model.top_words(1) == [[top[0][0]] for top in tops]


# unseen words
def test_perplexity_of_unseen_words() -> None:
    model = sc.HMM(1).fit(["a dog", "a cat"])  # words seen once are half of all words
    ways = {"a dog": 0.5 * 0.25, "a zebra": 0.5 * 0.5, "zebra gnu": 0.5 * 0.5}
    for sentence, words in ways.items():  # going on and ending are one half each
        assert model.perplexity([sentence]) == pytest.approx((words * 0.25) ** -0.5)
    often = sc.HMM(1).fit(["a dog", "a dog"])
    assert often.perplexity(["a zebra"]) == pytest.approx((0.5 * 1e-9 * 0.25) ** -0.5)
    assert sc.HMM(1, zero={"transitions": [[True, False]]}).fit(["a"]).perplexity(["a a"]) == np.inf


# vectors
def test_vectors_have_states_and_no_perplexity() -> None:
    walker = sc.GaussianHMM(2).fit(WALKS)
    assert walker.states_ == [0, 1]
    assert not hasattr(walker, "perplexity")
    tags = [["low"] * 3 + ["up"] * 3, *[None] * 3]
    assert sc.GaussianHMM(3).fit(WALKS, tags).states_ == ["low", "up", 2]


@pytest.mark.parametrize(
    "tags",
    [
        [None] * 3,
        [["a"] * 5, None, None, None],
        [["a"] * 5 + [set()], None, None, None],
        [["a"] * 5 + [{""}], None, None, None],
        [["a"] * 5 + [2.5], None, None, None],
        [5, None, None, None],
        5,
    ],
)
def test_vectors_are_not_called_words(tags: Any) -> None:
    with pytest.raises(DataError) as caught:
        sc.GaussianHMM(2).fit(WALKS, tags)
    assert not any(word in str(caught.value) for word in ("sentence", "word"))


# sentences that cannot be
def test_sentences_without_states_are_wrong() -> None:
    """Other taggers may have none; `HMM` always has some."""
    tagger = sc.HMM(dictionary={"a": ["D"], "dog": ["N"], "barks": ["V"]}).fit(["a dog barks"])
    sentences, gold = ["a dog barks", "dog a"], [["D", "N", "V"], ["N", "D"]]
    with pytest.warns(sc.ImpossibleWarning):
        assert tagger.predict(sentences) == gold
    found = [["D", "N", "V"], None]
    scores = tag_scores(found, gold, tagger.words_, [s.split() for s in sentences])
    assert (scores.tokens, scores.accuracy, scores.sentence_accuracy) == (5, 0.6, 0.5)
    assert (scores.known, scores.known_accuracy) == (5, 0.6)
    table = confusion(found, gold)
    assert table.most_confused() == [("D", None, 1), ("N", None, 1)]
    assert "(none)" in str(table).split("\n")[0]
    assert tag_scores([None, None], gold).accuracy == 0.0
    assert tag_scores([None, [0, 1]], [["0"], [0, 2]]).accuracy == pytest.approx(1 / 3)


def test_gaps_hide_no_mistake() -> None:
    for found, named in (
        ([None, [0, 1]], "one side has names"),
        ([None], "1 sentences"),
        ([None, None, None], "None"),
        ([None, ["N"]], "sentence 1"),
    ):
        with pytest.raises(DataError, match=named):
            tag_scores(found, [["D"], ["N", "V"]])
    for flat in (["D", None], [None, None]):
        assert tag_scores(flat, ["D", "N"]).accuracy == (0.5 if "D" in flat else 0.0)
    with pytest.raises(DataError, match="None"):
        induction_scores([None, [0, 1]], [["D"], ["N", "V"]])


# what there is, in a line
def test_short_reprs(tmp_path: Any) -> None:
    row = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n"
    path = tmp_path / "some.conllu"
    path.write_text((row.format(1, "it", "PRON") + row.format(2, "rains", "_") + "\n") * 1000)
    file = sc.read_conllu(path)
    told = f"1,000 sentences, 2,000 words from {path}"
    assert repr(file) == f"<ConlluFile: {told}>"
    assert repr(file.sequences()) == f"<Sequences: {told}>"
    assert repr(file.tagged()) == f"<Tagged: {told}; 1 tag of 1,000 words>"
    assert repr(sc.read_conllu(row.format(1, "a", "X").splitlines())) == (
        "<ConlluFile: 1 sentence, 1 word>"
    )
