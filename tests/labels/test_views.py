"""Views of items: columns, matrices, keys, functions, and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.feature_extraction.text import CountVectorizer

import softcount as sc
from softcount.labels.cotraining import Views, body, context, spelling, subject
from tests import real

POST = "From: a@b.c\nSubject: Re: Re^2: RE: old\n bikes\nLines: 1\n\nI sold mine.\n\nSubject: no"


def test_headers_end_at_the_first_blank_line() -> None:
    assert subject(POST) == "old bikes"
    assert body(POST) == "I sold mine.\n\nSubject: no"
    assert subject(POST.replace("\n", "\r\n")) == "old bikes"
    assert body(POST.replace("\n", "\r\n")).startswith("I sold mine.")


@pytest.mark.parametrize(
    ("post", "expected"),
    [
        ("", ("", "")),
        ("no headers here\n\nat all", ("", "no headers here\n\nat all")),
        (
            "Note: this\nis a letter\n\nnot a header",
            ("", "Note: this\nis a letter\n\nnot a header"),
        ),
        ("Subject: only headers", ("only headers", "")),
        ("From: me\n\nnothing", ("", "nothing")),
        ("Subject: regarding: it\n\nx", ("regarding: it", "x")),
        ("\n\nSubject: x\n\ny", ("x", "y")),
    ],
)
def test_odd_posts(post: str, expected: tuple[str, str]) -> None:
    assert (subject(post), body(post)) == expected


def test_words_in_their_sentence_have_one_form_or_the_other() -> None:
    listed = (["flights", "to"], ["New", "York"], ["were", "late"])
    text = "flights to ||| New York ||| were late"
    assert spelling(listed) == spelling(text) == spelling(("flights to", "New York", "were late"))
    assert context(listed) == context(text)
    assert context("||| IBM |||") == [] == spelling("left ||| ||| right")
    assert not set(spelling(text)) & set(context(text))
    for wrong in ("no marks", ("a", "b"), 7, "a ||| b ||| c ||| d"):
        with pytest.raises(sc.DataError, match="not a phrase in its context"):
            spelling(wrong)


def test_subjects_of_real_posts() -> None:
    """Nearly every post has a subject and a body, and neither begins with a header's name."""
    rows = [line.split("\t")[2] for line in real.lines("20news_bydate/test.tsv.gz")[::50]]
    posts = [row.replace("\\n", "\n").replace("\\t", "\t") for row in rows]
    subjects = [subject(post) for post in posts]
    assert np.mean([bool(text) for text in subjects]) > 0.99
    assert not any(text.lower().startswith(("re:", "subject:")) for text in subjects)
    assert not any(body(post).startswith("From:") for post in posts)


MATRIX = np.arange(24.0).reshape(4, 6)
LEFT, RIGHT = MATRIX[:, :2], MATRIX[:, 2:]


@pytest.mark.parametrize(
    ("views", "X"),
    [
        ([slice(0, 2), slice(2, None)], MATRIX),
        ([slice(0, 2), slice(2, None)], csr_matrix(MATRIX)),
        ([slice(0, 2), slice(2, None)], MATRIX.tolist()),
        ([[0, 1], np.array([2, 3, 4, 5])], MATRIX),
        ([np.arange(6) < 2, np.arange(6) >= 2], csr_matrix(MATRIX)),
        ({"a": slice(0, 2), "b": slice(2, 6)}, MATRIX),
        (["a", "b"], [LEFT, RIGHT]),
        (["a", "b"], (csr_matrix(LEFT), RIGHT)),
        (["b", "a"], {"a": RIGHT, "b": LEFT}),
        ({"one": "b", "two": "a"}, {"a": RIGHT, "b": csr_matrix(LEFT)}),
    ],
)
def test_all_ways_to_give_numbers_are_the_same(views: Any, X: Any) -> None:
    found = Views(views).learn(X)
    for matrix, expected in zip(found, (LEFT, RIGHT), strict=True):
        dense = matrix.toarray() if issparse(matrix) else matrix
        np.testing.assert_array_equal(dense, expected)


SUBJECTS, BODIES = ["old bikes", "", "ice"], ["I sold mine", "what a game", ""]
RAW = [f"Subject: {s}\n\n{b}" for s, b in zip(SUBJECTS, BODIES, strict=True)]
ITEMS = [{"subject": s, "body": b} for s, b in zip(SUBJECTS, BODIES, strict=True)]


@pytest.mark.parametrize(
    ("views", "X"),
    [
        (["subject", "body"], RAW),
        (["subject", "body"], np.array(RAW, dtype=object)),
        ([subject, body], RAW),
        (["subject", "body"], ITEMS),
        (["subject", "body"], [ITEMS[0], {"body": "what a game"}, {**ITEMS[2], "body": None}]),
        (["subject", "body"], {"subject": SUBJECTS, "body": BODIES}),
        (
            {"s": lambda one: one[0], "b": lambda one: one[1]},
            list(zip(SUBJECTS, BODIES, strict=True)),
        ),
    ],
)
def test_all_ways_to_give_texts_are_the_same(views: Any, X: Any) -> None:
    found = Views(views).learn(X)
    by_hand = [
        CountVectorizer(analyzer=lambda t: t.lower().split()).fit_transform(side)
        for side in (SUBJECTS, BODIES)
    ]
    for matrix, expected in zip(found, by_hand, strict=True):
        np.testing.assert_array_equal(matrix.toarray(), expected.toarray())


def test_columns_of_a_data_frame() -> None:
    pd = pytest.importorskip("pandas")
    texts = Views(["subject", "body"]).learn(pd.DataFrame(ITEMS))
    for matrix, expected in zip(texts, Views(["subject", "body"]).learn(ITEMS), strict=True):
        np.testing.assert_array_equal(matrix.toarray(), expected.toarray())
    left, right = Views([slice(0, 2), slice(2, 6)]).learn(pd.DataFrame(MATRIX))
    np.testing.assert_array_equal(np.hstack([left, right]), MATRIX)


def test_other_items_are_read_as_those_learned_from() -> None:
    views = Views(["subject", "body"], {"subject": CountVectorizer(binary=True), "body": None})
    views.learn(RAW)
    one, other = views.read(["Subject: bikes bikes unheard\n\nA Game"])
    assert one.toarray().tolist() == [[1, 0, 0]]  # bikes, ice, old
    assert other.sum() == 2


@pytest.mark.parametrize(
    ("views", "X", "message"),
    [
        (["subject", "body"], MATRIX, "the data are one matrix"),
        ([slice(0, 2), slice(2, 4)], RAW, "the data are not a matrix"),
        ([slice(0, 2), slice(6, 9)], MATRIX, "'view 2' has no columns"),
        ([[0], [6]], MATRIX, "'view 2'.*out of"),
        (["a", "b", "c"], [LEFT, RIGHT], "2 matrices"),
        (["a", "b"], {"a": LEFT}, "no 'b'"),
        (["a", "b"], {"a": LEFT, "b": RIGHT[:3]}, "inconsistent numbers of samples"),
        (["subject", "head"], RAW, "there is no view named 'head'"),
        (["subject", "head"], ITEMS, "no item has a 'head'"),
        (["subject", "body"], ["no headers"], "the view 'subject': no words are left"),
        (["subject", "body"], [7, 8], "is not a text"),
        (["subject", "body"], "one text", "the data are one text"),
        (["subject", "body"], [], "no items"),
    ],
)
def test_what_cannot_be_read_is_said(views: Any, X: Any, message: str) -> None:
    with pytest.raises(sc.DataError, match=message):
        Views(views).learn(X)


@pytest.mark.parametrize("views", [["one"], [], None, "subject", ["a", "a"], {"a": slice(0, 2)}, 3])
def test_there_must_be_two_views(views: Any) -> None:
    with pytest.raises(sc.LearnerError, match="views="):
        Views(views)


def test_new_items_must_be_like_the_old() -> None:
    views = Views([slice(0, 2), slice(2, None)])
    views.learn(MATRIX)
    with pytest.raises(sc.DataError, match="X has 5 features"):
        views.read(MATRIX[:, :5])
    separate = Views(["a", "b"])
    separate.learn([LEFT, RIGHT])
    with pytest.raises(sc.DataError, match="the view 'b': X has 2 features"):
        separate.read([LEFT, LEFT])
    with pytest.raises(sc.DataError, match="fitted to numbers"):
        separate.read({"a": ["x"], "b": ["y"]})
    with pytest.raises(sc.LearnerError, match="vectorizer is given for"):
        Views(["a", "b"], {"a": CountVectorizer()})


def test_one_column_by_its_number() -> None:
    for make in (np.asarray, csr_matrix):
        first, second = Views([0, 2]).learn(make(np.eye(3)))
        assert first.shape == second.shape == (3, 1)
        assert (second[2] != 0).sum() == 1


def test_columns_in_another_order_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = sc.labels.CoTraining([slice(0, 2), slice(2, 4)]).fit(frame, [0, 1, 0, -1])
    assert len(model.predict(frame)) == len(model.predict(frame.to_numpy())) == 4
    with pytest.raises(sc.DataError, match="feature names"):
        model.predict(frame[list("dcba")])
