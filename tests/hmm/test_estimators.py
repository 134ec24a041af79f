"""HMM as users meet it: learners, settings, what it says of words and sentences, odd data."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import softcount as sc
from softcount.core.errors import DataError, ImpossibleItem, LearnerError, SoftcountError
from softcount.metrics import confusion, induction_scores, tag_scores
from tests.hmm.text import LEARNERS, SENTENCES, TAGS, WORDS, assert_same, made, orders, stops
from tests.oracles.sequences import random_tables


# learners
@stops
@orders
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(learner: str, order: int, stop: bool) -> None:
    model = sc.HMM(3, order=order, stop=stop, smoothing=0.1, learner=LEARNERS[learner])
    model.fit(SENTENCES)
    shapes = {name: table.shape for name, table in model.params_.items()}
    v = len(model.words_)
    wanted = {"start": (1, 3), "transitions": (3**order, 3 + stop), "emissions": (3, v)}
    assert shapes == wanted | ({"second": (3, 3 + stop)} if order == 2 else {})
    for table in model.params_.values():
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert (table > 0.0).all()
    assert [len(path) for path in model.predict(SENTENCES)] == [len(s) for s in SENTENCES]
    assert np.isfinite(model.score_samples(SENTENCES)).all()
    again = clone(model).fit(SENTENCES)
    assert_same(again.params_, model.params_)
    other = clone(model).set_params(random_state=1).fit(SENTENCES)
    assert not np.array_equal(other.params_["emissions"], model.params_["emissions"])


@stops
@orders
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_em_never_falls(order: int, stop: bool, smoothing: float) -> None:
    learner = sc.EM(max_iter=40, tol=0)
    model = sc.HMM(3, order=order, stop=stop, smoothing=smoothing, learner=learner)
    trace = np.asarray(model.fit(SENTENCES).trace_.objective)
    assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all()
    assert trace[-1] > trace[0] + 10.0


def test_hard_em_and_vb_never_fall() -> None:
    for learner in (sc.HardEM(max_iter=20, tol=0), sc.VariationalBayes(max_iter=40, tol=0)):
        model = sc.HMM(3, smoothing=0.2, learner=learner).fit(SENTENCES)
        trace = np.asarray(model.trace_.objective)
        trace = trace[np.isfinite(trace)]
        assert len(trace) > 2
        assert (np.diff(trace) >= -1e-9 * abs(trace[0])).all(), learner


@stops
@orders
def test_laws(order: int, stop: bool) -> None:
    model = sc.HMM(2, order=order, stop=stop, smoothing=0.5, learner=sc.EM(max_iter=3))
    report = sc.check_model(model.fit(SENTENCES), SENTENCES)
    assert report.passed, report


def test_learners_that_need_a_prior() -> None:
    with pytest.raises(LearnerError, match="prior"):
        sc.HMM(2, learner=sc.VariationalBayes()).fit(SENTENCES)


def test_it_finds_the_grammar() -> None:
    """The best of some starts is the grammar that the sentences were made by."""
    model = sc.HMM(3, learner=sc.EM(n_init=10, max_iter=100)).fit(SENTENCES)
    found: dict[str, set[int]] = {}
    for tags, path in zip(TAGS, model.predict(SENTENCES), strict=True):
        for tag, state in zip(tags, path, strict=True):
            found.setdefault(tag, set()).add(state)
    assert sorted(map(len, found.values())) == [1, 1, 1]


# what stays
@orders
def test_zeros_stay(order: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"start": (1, 3), "transitions": (3**order, 4), "emissions": (3, 8)}
    if order == 2:
        shapes["second"] = (3, 4)
    zero = {name: rng.random(shape) < 0.12 for name, shape in shapes.items()}
    zero["start"][0, 0] = False
    for name in shapes:
        zero[name][:, -1] = False
    for learner in (sc.EM(max_iter=4), sc.HardEM(max_iter=3), sc.VariationalBayes(max_iter=3)):
        it = sc.HMM(3, order=order, zero=zero, smoothing=0.1, learner=learner)
        found = it.fit(SENTENCES).params_
        for name, where in zero.items():
            assert where.any() == (found[name] == 0.0).any()
            np.testing.assert_array_equal(found[name] == 0.0, where, err_msg=f"{name} {learner}")
            np.testing.assert_allclose(found[name].sum(axis=1), 1.0)


@orders
def test_frozen_rows_stay_to_the_bit(order: int) -> None:
    init = random_tables(np.random.default_rng(1), 3, 8, order, True)
    rows = {"transitions": np.arange(3**order) % 2 == 0, "emissions": [False, True, False]}
    for learner in ("EM", "HardEM", "OnlineEM", "VariationalBayes", "Gibbs"):
        how = {"order": order, "init": init, "smoothing": 0.1, "learner": LEARNERS[learner]}
        found = sc.HMM(3, frozen=rows, **how).fit(SENTENCES).params_
        for name, which in rows.items():
            same = (found[name] == init[name]).all(axis=1)
            np.testing.assert_array_equal(same, which, err_msg=f"{name} {learner}")
        assert not np.array_equal(found["start"], init["start"])
        for frozen in ("emissions", ["emissions"], {"emissions": True}):
            found = sc.HMM(3, frozen=frozen, **how).fit(SENTENCES).params_
            np.testing.assert_array_equal(found["emissions"], init["emissions"])
            assert not np.array_equal(found["transitions"], init["transitions"])


def test_tied_rows_are_one() -> None:
    tied = {"transitions": [0, 1, 0], "emissions": [5, 7, 7]}
    for learner in ("EM", "HardEM", "VariationalBayes", "Gibbs"):
        it = sc.HMM(3, tied=tied, smoothing=0.1, learner=LEARNERS[learner])
        found = it.fit(SENTENCES).params_
        np.testing.assert_array_equal(found["transitions"][0], found["transitions"][2])
        np.testing.assert_array_equal(found["emissions"][1], found["emissions"][2])
        assert not np.array_equal(found["transitions"][0], found["transitions"][1])
        assert not np.array_equal(found["emissions"][0], found["emissions"][1])


def test_tied_rows_are_counted_together() -> None:
    """All tags are known: rows that are one have the sum of their counts."""
    numbers = [[{"DT": 0, "NN": 1, "VB": 2}[tag] for tag in some] for some in TAGS]
    it = sc.HMM(3, tied={"emissions": [0, 1, 1]}, learner=sc.EM(max_iter=2))
    model = it.fit(SENTENCES, numbers)
    pairs = zip(chain.from_iterable(SENTENCES), chain.from_iterable(numbers), strict=True)
    both = [word for word, tag in pairs if tag in (1, 2)]
    wanted = [both.count(word) / len(both) for word in model.words_]
    np.testing.assert_allclose(model.params_["emissions"][1], wanted)


@orders
def test_a_weight_of_two_is_the_sentence_twice(order: int) -> None:
    init = random_tables(np.random.default_rng(1), 2, 8, order, True)
    how = {"order": order, "init": init, "smoothing": 0.1, "learner": sc.EM(max_iter=4, tol=0)}
    weights = np.array([n % 3 for n in range(len(SENTENCES))])
    twice = [s for s, n in zip(SENTENCES, weights, strict=True) for _ in range(n)]
    for word in {w for s in SENTENCES for w in s}:  # both number words alike
        assert word in {w for s in twice for w in s}
    ours = sc.HMM(2, **how).fit(SENTENCES, sample_weight=weights)
    order_of = [ours.words_.index(word) for word in sc.HMM(2, **how).fit(twice).words_]
    there = {**init, "emissions": init["emissions"][:, order_of]}
    theirs = sc.HMM(2, **{**how, "init": there}).fit(twice)
    for name, table in theirs.params_.items():
        own = ours.params_[name]
        np.testing.assert_allclose(own[:, order_of] if name == "emissions" else own, table)
    assert ours.trace_.log_likelihood[-1] == pytest.approx(theirs.trace_.log_likelihood[-1])


# What users ask a model that has learned: words of states, names, figures; and how it answers.


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
    with pytest.raises(DataError, match="a single string"):
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
    with pytest.warns(sc.errors.ImpossibleWarning):
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
    file = sc.text.read_conllu(path)
    told = f"1,000 sentences, 2,000 words from {path}"
    assert repr(file) == f"<ConlluFile: {told}>"
    assert repr(file.sequences()) == f"<Sequences: {told}>"
    assert repr(file.tagged()) == f"<Tagged: {told}; 1 tag of 1,000 words>"
    assert repr(sc.text.read_conllu(row.format(1, "a", "X").splitlines())) == (
        "<ConlluFile: 1 sentence, 1 word>"
    )


# Odd data: no words, words never seen, sentences that cannot be; and sentences that are made.


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
    assert not any(np.any(table) for table in model.expected_counts([[]]).values())


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
        model.expected_counts(text)
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
    with pytest.warns(sc.errors.ImpossibleWarning, match="1 of 4 sentences .* sentence 1"):
        found = model.predict(["a b", "b a a", "", "a b a b"], method=method)
    assert found == [["A", "B"], ["B", "A", "A"], [], ["A", "B", "A", "B"]]
    with pytest.warns(sc.errors.ImpossibleWarning):
        assert model.posterior_sample(["b a a"], 3) == [[["B", "A", "A"]] * 3]
    with pytest.warns(sc.errors.ImpossibleWarning):
        np.testing.assert_array_equal(model.predict_proba(["b a a"])[0], np.eye(2)[[1, 0, 0]])
