"""From texts and lists of words to counts, and vectorizers in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import softcount as sc
from softcount.core.errors import DataError, StoreError
from softcount.text.documents import (
    adopt_vectorizer,
    default_vectorizer,
    describe_vectorizer,
    find_texts,
    learn_words,
    restore_vectorizer,
    vocabulary_of,
)

TEXTS = ["The cat sat.", "the dog sat", "", "Dog's dinner: DOG"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (["a b", ""], ["a b", ""]),
        (np.array(["a", "b"], dtype=object), ["a", "b"]),
        ([[], ["a"]], [[], ["a"]]),
        ([(), ()], [(), ()]),
        ([[1, 2]], None),
        (np.zeros((2, 0)), None),
        ([1.0, 2.0], None),
        (3, None),
    ],
)
def test_what_is_text(data: Any, found: Any) -> None:
    assert find_texts(data) == found


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "no documents"),
        ("one text", "one text"),
        (b"one text", "one text"),
        ([b"a", b"b"], "bytes.*\n.*decode"),
        (["a", b"b"], "document 1 is b'b'"),
        (["a", None], "document 1 is None"),
        ([None, "a"], "document 0 is None"),
        ([["a"], "b"], "document 1 is 'b'"),
        (["a", ["b"]], "document 1 is"),
        ([["a"], ["b", 2]], "document 1 has 2 among its words"),
    ],
)
def test_what_is_not(data: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        sc.MultinomialMixture(1).fit(data)


def test_the_default_cuts_texts_and_leaves_lists_alone() -> None:
    vectorizer = default_vectorizer(TEXTS)
    assert learn_words(vectorizer, TEXTS).sum() == 9
    assert list(vocabulary_of(vectorizer)) == [
        "cat",
        "dinner",
        "dog",
        "dog's",
        "sat",
        "the",
    ]
    as_they_are = default_vectorizer([["The", "the"]])
    learn_words(as_they_are, [["The", "the", "."]])
    assert list(vocabulary_of(as_they_are)) == [".", "The", "the"]


@pytest.mark.parametrize("empty", [["", ""], [[], []], ["...", "!"]])
def test_no_words_at_all(empty: Any) -> None:
    with pytest.raises(DataError, match="no words are left"):
        sc.MultinomialMixture(1).fit(empty)


def test_a_model_of_lists_does_not_take_texts_letter_by_letter() -> None:
    model = sc.MultinomialMixture(2).fit([["a", "b"], ["c"]])
    with pytest.raises(DataError, match="fitted to lists of words"):
        model.predict(["abc"])
    assert model.predict([[], ["a"]]).shape == (2,)


def test_a_model_of_texts_does_not_take_lists() -> None:
    with pytest.raises(DataError, match="fitted to texts"):
        sc.MultinomialMixture(2).fit(["a b", "c"]).predict([["a"]])


def test_a_model_of_counts_does_not_take_texts() -> None:
    with pytest.raises(DataError, match="matrix of counts"):
        sc.MultinomialMixture(2).fit([[1, 0], [0, 1]]).predict(["a"])


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(stop_words="english", ngram_range=(1, 2)),
        CountVectorizer(min_df=2),
        TfidfVectorizer(),
        CountVectorizer(analyzer="char", lowercase=False),
    ],
)
def test_a_vectorizer_of_the_user_is_used_and_not_touched(vectorizer: Any) -> None:
    own = type(vectorizer)(**vectorizer.get_params())
    counts = own.fit_transform(TEXTS)
    model = sc.MultinomialMixture(2, vectorizer=vectorizer).fit(TEXTS)
    assert not hasattr(vectorizer, "vocabulary_")
    assert list(model.vocabulary_) == list(own.get_feature_names_out())
    bare = sc.MultinomialMixture(2).fit(counts)
    np.testing.assert_array_equal(model.words_, bare.words_)
    np.testing.assert_array_equal(model.predict_proba(TEXTS), bare.predict_proba(counts))


def test_a_hashing_vectorizer_has_no_words() -> None:
    hashing = HashingVectorizer(n_features=16, alternate_sign=False, norm=None)
    model = sc.MultinomialMixture(2, vectorizer=hashing).fit(TEXTS)
    assert model.vocabulary_ is None
    assert model.top_words(1)[0][0][0] in range(16)


PLAIN = [
    CountVectorizer(),
    CountVectorizer(stop_words="english", lowercase=False, ngram_range=(1, 2)),
    CountVectorizer(stop_words=["the"], strip_accents="unicode", binary=True),
    CountVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
    default_vectorizer(["a"]),
]


@pytest.mark.parametrize("vectorizer", PLAIN)
def test_what_is_described_can_be_restored(vectorizer: CountVectorizer) -> None:
    counts = vectorizer.fit_transform(TEXTS)
    again = restore_vectorizer(describe_vectorizer(vectorizer), vocabulary_of(vectorizer))
    assert (again.transform(TEXTS) != counts).nnz == 0


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        CountVectorizer(tokenizer=str.split),
        CountVectorizer(preprocessor=str.upper),
        CountVectorizer(analyzer=str.split),
        CountVectorizer(token_pattern=r"(a+)+$"),
        CountVectorizer(input="filename"),
    ],
)
def test_what_a_file_cannot_hold(vectorizer: Any) -> None:
    assert describe_vectorizer(vectorizer) == {"custom": True}
    with pytest.raises(StoreError, match="vectorizer=…"):
        restore_vectorizer({"custom": True}, ["a"])


GOOD = describe_vectorizer(CountVectorizer())


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {},
        {**GOOD, "tokenizer": "os.system"},
        {**GOOD, "input": "filename"},
        {**GOOD, "token_pattern": r"(a+)+$"},
        {**GOOD, "analyzer": "os.system"},
        {**GOOD, "analyzer": ["word"]},
        {**GOOD, "analyzer": "word", "ours": True},
        {**GOOD, "analyzer": "words"},
        {**GOOD, "ours": 1},
        {**GOOD, "stop_words": "klingon"},
        {**GOOD, "stop_words": [1]},
        {**GOOD, "ngram_range": [2, 1]},
        {**GOOD, "ngram_range": [0, 1]},
        {**GOOD, "ngram_range": "12"},
        {**GOOD, "ngram_range": [1]},
        {**GOOD, "strip_accents": "all"},
        {**GOOD, "lowercase": "yes"},
        {name: GOOD[name] for name in GOOD if name != "binary"},
    ],
)
def test_a_description_that_we_did_not_write(bad: Any) -> None:
    with pytest.raises(StoreError):
        restore_vectorizer(bad, ["a"])


def test_a_description_without_words() -> None:
    with pytest.raises(StoreError, match="no vocabulary"):
        restore_vectorizer(GOOD, None)


def test_a_vectorizer_that_is_handed_in_must_count_the_same_words() -> None:
    fitted = TfidfVectorizer().fit(["a1 b1"])
    assert adopt_vectorizer(fitted, ["a1", "b1"], 2) is fitted
    for words in (["a1", "c1"], ["a1", "b1", "c1"]):
        with pytest.raises(StoreError, match="differs from that of the model"):
            adopt_vectorizer(fitted, words, len(words))
    with pytest.raises(StoreError, match="has not been fitted"):
        adopt_vectorizer(TfidfVectorizer(), ["a1"], 1)
    given = CountVectorizer(tokenizer=str.split, token_pattern=None)
    assert adopt_vectorizer(given, ["x", "y"], 2).transform(["y y z"]).toarray().tolist() == [
        [0, 2]
    ]
    assert not hasattr(given, "vocabulary_")
