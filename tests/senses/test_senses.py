"""`SenseInducer`: which occurrences, which features, which senses, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import softcount as sc
from softcount.senses.estimators import find_marking_words
from softcount.text import contexts
from softcount.text.semantic_space import SemanticSpace
from tests import real

MONEY = ["money", "loan", "interest", "account", "cash"]
WATER = ["river", "mud", "reeds", "flood", "fish"]


def simulated(n: int = 120, seed: int = 0) -> tuple[list[list[str]], list[int]]:
    """Sentences about one of two things, in each of which the word 'bank' stands somewhere."""
    rng = np.random.default_rng(seed)
    sentences, gold = [], []
    for i in range(n):
        theme = (MONEY, WATER)[i % 2]
        tokens = [*rng.choice(theme, 4), *rng.choice(["the", "a", "was", "old"], 3)]
        tokens = rng.permutation(tokens).tolist()
        tokens.insert(int(rng.integers(len(tokens) + 1)), "bank")
        sentences.append(tokens)
        gold.append(i % 2)
    return sentences, gold


SENTENCES, GOLD = simulated()


@pytest.fixture(scope="module", params=[None, 5], ids=["multinomial", "svd"])
def fitted(request: pytest.FixtureRequest) -> sc.SenseInducer:
    return sc.SenseInducer(2, svd=request.param).fit(SENTENCES, "bank")


# occurrences
def test_forms_are_found_in_any_case_and_wherever_they_are() -> None:
    texts = ["Bank? The bank!", "no such word", "BANKS, embankment"]
    found = contexts.find_occurrences(
        contexts.split_sentences(texts), contexts.list_forms(["bank", "Banks"])
    )
    assert found == [(0, 0), (0, 2), (2, 0)]


@given(st.lists(st.lists(st.sampled_from("abcX"), max_size=6), min_size=1, max_size=5))
def test_find_is_what_a_plain_loop_finds(sentences: list[list[str]]) -> None:
    lowered = [[t.lower() for t in tokens] for tokens in sentences]
    expected = [(i, j) for i, ts in enumerate(lowered) for j in range(len(ts)) if ts[j] == "x"]
    assert contexts.find_occurrences(lowered, {"x"}) == expected


@pytest.mark.parametrize(
    ("sentences", "target", "positions", "message"),
    [
        (SENTENCES, "bnk", None, "did you mean bank"),
        (SENTENCES, "zebra", None, "zebra never occurs in 120 sentences"),
        (["ice cream is cold"], "ice cream", None, "is several words"),
        (SENTENCES, None, None, "give exactly one of target and positions"),
        (SENTENCES, "bank", [0] * 120, "give exactly one of target and positions"),
        (SENTENCES, "", None, "the target is ''"),
        (SENTENCES, [], None, r"the target is \[\]"),
        (SENTENCES, None, [0], "1 positions for 120 sentences"),
        ([["a", "b"]], None, [2], "sentence 0 has 2 words, none at 2"),
        ([["a", "b"]], None, [-1], "none at -1"),
        (["a b"], None, [0], "not tokenised"),
        ("the bank", "bank", None, "the data are one text"),
        ([[1, 2]], "bank", None, "no sentences"),
        ([["bank"]], "bank", None, "no word occurs in at least 2 of the 1 contexts"),
    ],
)
def test_bad_data_are_named(sentences, target, positions, message) -> None:
    with pytest.raises(sc.DataError, match=message):
        sc.SenseInducer().fit(sentences, target, positions=positions)


@pytest.mark.parametrize(
    "dials", [{"window": 0}, {"near": -1}, {"min_count": 0}, {"svd": 0}, {"stop_words": "the"}]
)
def test_bad_settings_are_named(dials) -> None:
    with pytest.raises(sc.LearnerError, match=next(iter(dials))):
        sc.SenseInducer(**dials).fit(SENTENCES, "bank")


# features
def test_features_by_hand() -> None:
    tokens = ["on", "the", "phone", ",", "his", "line", "was", "on", "the", "blink"]
    near = contexts.context_features(tokens, 5, 3, 2, {"the"})
    assert near == ["phone", "his", "was", "on", "his_", "phone·_", "_was", "_·on"]
    everything = contexts.context_features(tokens, 5, None, 0, ())
    assert everything == ["on", "the", "phone", "his", "was", "on", "the", "blink"]


def test_the_word_itself_is_no_feature() -> None:
    assert contexts.context_features(["bank", "to", "bank"], 0, 5, 1, ()) == ["to", "_to"]


@given(
    st.lists(st.sampled_from(["a", "b", ",", "T"]), min_size=1, max_size=12),
    st.data(),
    st.integers(1, 6),
)
def test_never_more_words_than_the_window_has(tokens, data, window) -> None:
    position = data.draw(st.integers(0, len(tokens) - 1))
    found = contexts.context_features(tokens, position, window, 0, ())
    before = [t for t in tokens[:position] if t != ","][-window:]
    after = [t for t in tokens[position + 1 :] if t != ","][:window]
    assert found == [t for t in before + after if t != tokens[position]]


def test_space_is_what_scikit_learn_computes() -> None:
    texts = [" ".join(tokens) for tokens in SENTENCES]
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    weighted = vectorizer.fit_transform(texts)
    svd = TruncatedSVD(4, random_state=3)
    expected = normalize(svd.fit_transform(weighted))
    words = vectorizer.get_feature_names_out()
    counts = csr_matrix([[tokens.count(word) for word in words] for tokens in SENTENCES])
    space = SemanticSpace.of(counts, 4, 3)
    np.testing.assert_allclose(space.points(counts), expected, atol=1e-8)
    assert not space.points(csr_matrix((1, len(words)))).any()


# senses
def test_two_themes_are_told_apart(fitted: sc.SenseInducer) -> None:
    assert sc.metrics.agreement(fitted.labels_, GOLD).v_measure > 0.9
    money = int(fitted.labels_[0])
    marks = [{word for word, _ in sense.words[:5]} for sense in fitted.senses_]
    assert marks[money] == set(MONEY)
    assert marks[1 - money] == set(WATER)
    assert all("[bank]" in example for sense in fitted.senses_ for example in sense.examples)
    assert sum(sense.share for sense in fitted.senses_) == pytest.approx(1.0)


def test_marks_are_shares_of_contexts() -> None:
    counts = csr_matrix([[1, 0, 1], [3, 0, 1], [0, 2, 1], [0, 1, 1]])
    shares = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    first, second = find_marking_words(counts, shares, np.array(["a", "b", "c"]))
    # two contexts with it, and half a context of the average one that is added to each sense
    assert first == (("a", pytest.approx(2.5 / 3)),)
    assert second == (("b", pytest.approx(2.5 / 3)),)


def test_predictions_keep_their_places(fitted: sc.SenseInducer) -> None:
    new = [["river", "bank", "mud", "fish"], ["nothing"], [], ["Bank", "money", "loan", "BANK"]]
    assert fitted.occurrences(new) == [(0, 1), (3, 0), (3, 3)]
    water, money = int(fitted.labels_[1]), int(fitted.labels_[0])
    assert fitted.predict(new).tolist() == [water, money, money]
    assert fitted.predict_proba(new).shape == (3, 2)
    assert fitted.predict_proba(new).sum(axis=1) == pytest.approx(1.0)
    assert len(fitted.score_samples(new)) == 3


def test_training_sentences_get_their_own_senses_again(fitted: sc.SenseInducer) -> None:
    assert fitted.predict(SENTENCES).tolist() == fitted.labels_.tolist()
    assert fitted.occurrences(SENTENCES) == fitted.occurrences_


def test_sentences_without_the_word(fitted: sc.SenseInducer) -> None:
    assert fitted.predict([["nothing"]]).shape == (0,)
    assert fitted.predict_proba([["nothing"]]).shape == (0, 2)
    with pytest.raises(sc.DataError, match="does not occur"):
        fitted.score([["nothing"]])


def test_a_context_of_unknown_words_gets_the_commonest_sense() -> None:
    sentences, _ = simulated(90)
    model = sc.SenseInducer(2).fit(sentences + [s for s in sentences if "river" in s], "bank")
    assert model.predict([["zzz", "bank"]])[0] == model.weights_.argmax()


def test_positions_and_targets_say_the_same() -> None:
    places = [tokens.index("bank") for tokens in SENTENCES]
    by_place = sc.SenseInducer(2).fit(SENTENCES, positions=places)
    by_word = sc.SenseInducer(2).fit(SENTENCES, "bank")
    assert by_place.labels_.tolist() == by_word.labels_.tolist()
    assert by_place.predict(SENTENCES[:3], positions=[[p] for p in places[:3]]).shape == (3,)
    with pytest.raises(sc.DataError, match="fitted with positions"):
        by_place.predict(SENTENCES)


def test_texts_and_token_lists_say_the_same() -> None:
    texts = [" ".join(tokens).capitalize() + "." for tokens in SENTENCES]
    one, other = (sc.SenseInducer(2).fit(data, "bank") for data in (texts, SENTENCES))
    assert one.labels_.tolist() == other.labels_.tolist()


def test_stop_words_count_only_with_their_place() -> None:
    model = sc.SenseInducer(2, stop_words=["The"]).fit(SENTENCES, "bank")
    assert "the" not in model.vocabulary_
    assert {"the_", "_the"} <= set(model.vocabulary_)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_same_seed_same_senses(seed: int) -> None:
    one, other = (
        sc.SenseInducer(2, random_state=seed).fit(SENTENCES[:30], "bank") for _ in range(2)
    )
    assert one.params_["words"].tobytes() == other.params_["words"].tobytes()


@pytest.mark.parametrize(
    "learner",
    [
        sc.HardEM(),
        sc.VariationalBayes(),
        sc.OnlineEM(batch_size=32),
        sc.CollapsedGibbs(max_iter=20),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_other_learners(learner) -> None:
    model = sc.SenseInducer(2, learner=learner).fit(SENTENCES, "bank")
    assert sc.metrics.agreement(model.labels_, GOLD).v_measure > 0.8


def test_generated_contexts_are_of_known_words(fitted: sc.SenseInducer) -> None:
    drawn = fitted.generate(5, random_state=1)
    assert len(drawn) == 5
    if fitted.svd is None:
        assert {word for bag in drawn for word in bag} <= set(fitted.vocabulary_)


# the rest of the contract
def test_laws(fitted: sc.SenseInducer) -> None:
    sc.check_model(fitted, SENTENCES[:40]).raise_if_failed()


def test_files(fitted: sc.SenseInducer, tmp_path: Path) -> None:
    path = tmp_path / "bank.softcount"
    fitted.save(path)
    again = sc.load(path)
    assert again.senses_ == fitted.senses_
    assert again.forms_ == fitted.forms_
    before, after = fitted.predict_proba(SENTENCES), again.predict_proba(SENTENCES)
    assert before.tobytes() == after.tobytes()
    with pytest.raises(sc.errors.StoreError, match="of kind 'SenseInducer'"):
        sc.MultinomialMixture.load(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocabulary", ["too", "few"]),
        ("vocabulary", 3),
        ("senses", [[1]]),
        ("forms", [1]),
        ("settings", {"nonsense": 1}),
        ("settings", {"n_components": 3}),
        ("mixture", {}),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, key: str, value: object) -> None:
    from softcount.core import store

    path = tmp_path / "bank.softcount"
    sc.SenseInducer(2).fit(SENTENCES[:20], "bank").save(path)
    held = store.read(path)
    store.write(path, held.kind, held.arrays, {**held.meta, key: value}, held.signature)
    with pytest.raises(sc.errors.StoreError):
        sc.load(path)


def test_unfitted_says_so() -> None:
    for ask in (
        lambda m: m.predict(SENTENCES),
        lambda m: m.labels_,
        lambda m: m.save("x"),
        lambda m: m.occurrences(SENTENCES),
    ):
        with pytest.raises(NotFittedError):
            ask(sc.SenseInducer())


def test_clone_and_development() -> None:
    model = clone(sc.SenseInducer(3, window=7))
    assert (model.n_components, model.window) == (3, 7)
    model = sc.SenseInducer(2, learner=sc.EM(n_init=2))
    model.fit(SENTENCES[:80], "bank", development=SENTENCES[80:])
    assert model.verdict_.good


@pytest.mark.slow
def test_interest_beats_the_peers() -> None:
    rows = [line.split("\t") for line in real.lines("senseval2_lex/interest.tsv.gz")]
    gold = [row[1] for row in rows]
    tokens, positions = [row[3].split(" ") for row in rows], [int(row[2]) for row in rows]
    model = sc.SenseInducer(6).fit(tokens, positions=positions)
    figures = sc.metrics.agreement(model.labels_, gold)
    assert figures.v_measure > 0.22  # of k-means, the better of two others
    assert figures.many_to_one > figures.majority + 0.05
