"""Counting words, beside scikit-learn's `CountVectorizer`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from softcount.core.errors import DataError, LearnerError
from softcount.text.counter import WordCounter, as_it_is
from softcount.text.tokenise import words

TEXTS = st.lists(st.text("abcä Ç.", max_size=12), max_size=6)


def same(ours: Any, theirs: Any) -> bool:
    theirs.sort_indices()
    parts = ("indptr", "indices", "data")
    equal = all(np.array_equal(getattr(ours, one), getattr(theirs, one)) for one in parts)
    return equal and ours.shape == theirs.shape


@given(TEXTS, TEXTS)
def test_counts_are_those_of_scikit_learn(texts: list[str], others: list[str]) -> None:
    texts = [*texts, "a b a"]
    ours, theirs = WordCounter(), CountVectorizer(analyzer=words)
    assert same(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert same(ours.transform(others), theirs.transform(others))


@given(st.lists(st.lists(st.sampled_from("abcd"))))
def test_a_given_vocabulary_keeps_its_order(lists: list[list[str]]) -> None:
    ours = WordCounter(as_it_is, ["c", "a"])
    theirs = CountVectorizer(analyzer=as_it_is, vocabulary=["c", "a"])
    assert same(ours.transform(lists), theirs.transform(lists))
    assert ours.get_feature_names_out().tolist() == ["c", "a"]


def test_what_cannot_be_counted() -> None:
    with pytest.raises(DataError, match="no words are left"):
        WordCounter().fit(["", " . "])
    with pytest.raises(NotFittedError):
        WordCounter().transform(["a"])
    with pytest.raises(LearnerError, match="'a' is twice"):
        WordCounter(vocabulary=["a", "b", "a"]).transform(["a"])
    with pytest.raises(LearnerError, match="a single text"):
        WordCounter(vocabulary="abc").fit(["a"])
    with pytest.raises(LearnerError, match="has no words"):
        WordCounter(vocabulary=[]).fit(["a"])
