"""Bags of words against dense tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from softcount.core.errors import DataError
from softcount.text.bags import Bags

Array = np.ndarray


@st.composite
def tables(draw: Any) -> Array:
    n_documents, n_words = draw(st.integers(0, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    counts = rng.integers(0, 3, (n_documents, n_words)).astype(float)
    return counts * rng.choice([1.0, 0.25, 1e6], counts.shape)


def dense(bags: Bags) -> Array:
    """The counts, entry by entry."""
    found = np.zeros((len(bags), bags.n_words))
    indptr, words, value = bags.by_document
    for d in range(len(bags)):
        for i in range(indptr[d], indptr[d + 1]):
            found[d, words[i]] += value[i]
    return found


def dense_by_word(bags: Bags) -> Array:
    found = np.zeros((len(bags), bags.n_words))
    indptr, documents, value = bags.by_word
    for w in range(bags.n_words):
        for i in range(indptr[w], indptr[w + 1]):
            found[documents[i], w] += value[i]
    return found


@given(tables(), st.sampled_from(["asarray", "csr", "csc", "coo", "lil"]))
def test_both_orders_hold_the_counts(counts: Array, form: str) -> None:
    matrix = counts if form == "asarray" else getattr(sparse, f"{form}_matrix")(counts)
    bags = Bags.of(matrix)
    np.testing.assert_array_equal(dense(bags), counts)
    np.testing.assert_array_equal(dense_by_word(bags), counts)
    np.testing.assert_array_equal(bags.matrix.toarray(), counts)
    np.testing.assert_allclose(bags.lengths, counts.sum(axis=1))
    assert len(bags) == len(counts)
    assert (bags.by_document.value > 0).all()  # zeros are not kept


@given(tables(), st.data())
def test_taking_scaling_and_presence(counts: Array, data: Any) -> None:
    bags = Bags.of(counts)
    some = st.lists(st.integers(0, max(len(counts) - 1, 0)), max_size=5 if len(counts) else 0)
    chosen = np.array(data.draw(some), dtype=int)
    np.testing.assert_array_equal(dense(bags.take(chosen)), counts[chosen])
    np.testing.assert_array_equal(dense(bags.present()), counts > 0)
    lengths = counts.sum(axis=1, keepdims=True)
    expected = np.divide(7.5 * counts, lengths, out=np.zeros_like(counts), where=lengths > 0)
    np.testing.assert_allclose(dense(bags.scaled(7.5)), expected, rtol=1e-12)


def test_repeated_entries_are_one() -> None:
    twice = sparse.csr_matrix(([1.0, 2.0, 1.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    bags = Bags.of(twice)
    assert bags.by_document.columns.tolist() == [0, 1]
    assert bags.by_document.value.tolist() == [3.0, 1.0]


def test_entries_that_cancel_are_none() -> None:
    nothing = sparse.csr_matrix(([1.0, -1.0], [0, 0], [0, 2]), shape=(1, 2))
    assert len(Bags.of(nothing).by_document.value) == 0


def test_the_callers_matrix_is_left_alone() -> None:
    matrix = sparse.csr_matrix(([1.0, 2.0, 0.0], [1, 1, 0], [0, 3]), shape=(1, 2))
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    Bags.of(matrix).present()
    for part, kept in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(part, kept)


@pytest.mark.parametrize("document", [0, 2, 4])
def test_negative_counts_name_their_document(document: int) -> None:
    counts = np.array([[0, 1], [0, 0], [3, 0], [0, 0], [1, 1]], dtype=float)
    counts[document, 1] = -2.0
    with pytest.raises(DataError, match=f"document {document} has a count of -2"):
        Bags.of(counts)
