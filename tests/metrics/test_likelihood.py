"""Held-out likelihood, perplexity and splits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from softcount.core.errors import DataError
from softcount.metrics import document_completion, held_out, perplexity, split

cases = settings(max_examples=40, deadline=None)


class Unigram:
    """Words drawn one by one; a word of probability zero makes a document impossible."""

    def __init__(self, *words):
        self.words = words

    def score_samples(self, counts):
        rows = counts.toarray() if sparse.issparse(counts) else counts
        return [
            sum(n * np.log(p) if p else -np.inf for n, p in zip(row, self.words, strict=True) if n)
            for row in rows
        ]


class Said:
    """A model whose scores are what they are said to be."""

    def __init__(self, *scores):
        self.scores = scores

    def score_samples(self, data):
        return np.array(self.scores)


matrices = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 9), min_size=width, max_size=width), min_size=1, max_size=8
    )
)


def test_perplexity_of_a_fair_choice_is_the_number_of_choices():
    assert perplexity(-50 * np.log(8), 50) == pytest.approx(8)
    assert perplexity(0.0, 3) == 1.0


def test_perplexity_of_the_impossible_is_infinite():
    assert perplexity(-np.inf, 10) == np.inf
    assert perplexity(-1e6, 1) == np.inf


@pytest.mark.parametrize(
    ("total", "tokens"), [(-1.0, 0), (-1.0, -2), (-1.0, np.nan), (-1.0, np.inf), (np.nan, 3)]
)
def test_perplexity_of_nonsense_is_refused(total, tokens):
    with pytest.raises(DataError):
        perplexity(total, tokens)


@pytest.mark.parametrize("form", [np.array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_counts_say_how_many_tokens_there_are(form):
    got = held_out(Unigram(0.5, 0.25, 0.25), form([[2, 1, 0], [0, 0, 1]]))
    total = 2 * np.log(0.5) + 2 * np.log(0.25)
    assert got.log_likelihood == pytest.approx(total / 2)
    assert (got.items, got.tokens, got.impossible) == (2, 4, 0)
    assert got.perplexity == pytest.approx(np.exp(-total / 4))


def test_impossible_items_are_counted_apart():
    """Neither their likelihood nor their tokens are in the figures of the others."""
    counts = np.array([[2, 1, 0], [0, 5, 7], [0, 1, 0], [0, 0, 1]])
    model = Unigram(0.5, 0.5, 0.0)
    got = held_out(model, counts)
    assert (got.items, got.tokens, got.impossible) == (2, 4, 2)
    assert got.log_likelihood == pytest.approx(-2 * np.log(2))
    assert got.perplexity == pytest.approx(2)
    assert got == held_out(model, counts, tokens=[3, 12, 1, 1])
    assert "impossible and not counted here: 2" in str(got)
    assert "impossible" not in str(held_out(model, counts[[0, 2]]))


def test_nothing_but_impossible_items():
    got = held_out(Unigram(1.0, 0.0), np.array([[0, 1], [3, 2]]))
    assert (got.log_likelihood, got.perplexity) == (-np.inf, np.inf)
    assert (got.items, got.tokens, got.impossible) == (0, 0, 2)


@pytest.mark.parametrize(
    "vectors", [np.array([[0.5, 2.0], [1.0, 1.0]]), np.array([[-1.0, 0.0], [1.0, 1.0]]), ["a", "b"]]
)
def test_what_is_not_counts_has_no_perplexity(vectors):
    got = held_out(Said(-1.0, -2.0), vectors)
    assert (got.log_likelihood, got.tokens, got.perplexity) == (-1.5, None, None)
    assert "perplexity" not in str(got)
    given = held_out(Said(-1.0, -2.0), vectors, tokens=6)
    assert given.perplexity == pytest.approx(np.exp(0.5))


def test_empty_documents_have_a_likelihood_but_no_perplexity():
    got = held_out(Unigram(0.5, 0.5), sparse.csr_array((3, 2), dtype=float))
    assert (got.log_likelihood, got.items, got.tokens, got.perplexity) == (0.0, 3, 0, None)


@pytest.mark.parametrize(
    ("scores", "tokens", "message"),
    [
        ((-1.0, np.nan), None, "item 1 is nan"),
        ((np.inf, -1.0), None, "item 0 is inf"),
        ((), None, r"shape \(0,\)"),
        (((-1.0, -2.0),), None, r"shape \(1, 2\)"),
        ((-1.0, -2.0), [1, 2, 3], "3 token counts for 2 items"),
        ((-1.0, -np.inf), 7, "unknown how many of the 7 tokens"),
        ((-1.0, -2.0), [1, -1], "negative"),
        ((-1.0, -2.0), np.nan, "not finite"),
    ],
)
def test_bad_scores_and_tokens_are_refused(scores, tokens, message):
    with pytest.raises(DataError, match=message) as caught:
        held_out(Said(*scores), ["a", "b"], tokens)
    assert caught.value.hint


def test_a_model_that_cannot_score_is_refused():
    with pytest.raises(DataError, match="int cannot score data"):
        held_out(3, [[1, 2]])


@cases
@given(n=st.integers(2, 200), share=st.floats(0.001, 0.999), seed=st.integers(0, 9))
def test_split_deals_out_every_item_once(n, share, seed):
    learn, held = split(range(n), share, seed)
    assert sorted([*learn, *held]) == list(range(n))
    assert min(len(learn), len(held)) >= 1
    assert abs(len(held) - n * share) <= 1
    again = split(np.zeros((n, 3)), share, seed)
    np.testing.assert_array_equal(again[0], learn)
    np.testing.assert_array_equal(again[1], held)


def test_split_shuffles_and_depends_on_the_seed():
    learn, held = split(sparse.csr_array((1000, 2)), 0.3)
    assert len(held) == 300
    assert not (np.diff(learn) > 0).all()
    assert set(held) != set(split(range(1000), 0.3, random_state=1)[1])
    assert 100 < np.isin(held, np.arange(500)).sum() < 200


@cases
@given(matrices, st.floats(0.01, 0.99), st.integers(0, 9))
def test_completion_loses_and_invents_nothing(rows, share, seed):
    whole = np.array(rows)
    seen, unseen = document_completion(rows, share, seed)
    np.testing.assert_array_equal(seen.toarray() + unseen.toarray(), whole)
    assert seen.data.size == 0 or seen.data.min() > 0
    assert unseen.data.size == 0 or unseen.data.min() > 0
    assert seen.shape == unseen.shape == whole.shape


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_completion_deals_out_the_share(share):
    """Mean and variance of a binomial draw, within five standard errors."""
    n, docs = 20, 20_000
    _, unseen = document_completion(np.full((docs, 1), n), share)
    drawn = unseen.toarray().ravel()
    variance = n * share * (1 - share)
    assert abs(drawn.mean() - n * share) < 5 * np.sqrt(variance / docs)
    assert abs(drawn.var() - variance) < 5 * variance * np.sqrt(2.2 / docs)


def test_completion_keeps_the_form_and_leaves_the_matrix_alone():
    whole = sparse.csr_matrix(np.array([[3.0, 0.0], [1.0, 8.0]]))
    before = whole.toarray()
    first, second = document_completion(whole), document_completion(whole)
    np.testing.assert_array_equal(whole.toarray(), before)
    for one, other in zip(first, second, strict=True):
        assert isinstance(one, sparse.csr_matrix)
        assert one.dtype == whole.dtype
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    other_seed = document_completion(np.full((9, 9), 100), random_state=1)[0]
    assert (other_seed != document_completion(np.full((9, 9), 100))[0]).nnz


def test_completion_adds_up_what_stands_twice():
    """Whether a count is whole is asked of the sum."""
    twice = sparse.csr_array(([2.5, 3.5], [1, 1], [0, 2]), shape=(1, 2))
    seen, unseen = document_completion(twice)
    assert (seen + unseen).toarray().tolist() == [[0, 6]]


@pytest.mark.parametrize("value", [0.5, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_matrix])
def test_completion_needs_whole_counts(value, form):
    matrix = form([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [4.0, 0.0, value]])
    with pytest.raises(DataError, match="row 2, column 2"):
        document_completion(matrix)


@pytest.mark.parametrize("matrix", [["some", "texts"], [["a"], ["b", "c"]], [1, 2], [["a", "b"]]])
def test_completion_needs_a_matrix(matrix):
    with pytest.raises(DataError, match="not a matrix of counts"):
        document_completion(matrix)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 3.0, np.nan])
def test_shares_lie_between_nothing_and_all(share):
    with pytest.raises(DataError, match="share is"):
        split([1, 2, 3], share)
    with pytest.raises(DataError, match="share is"):
        document_completion([[1]], share)


def test_one_item_cannot_be_split():
    with pytest.raises(DataError, match="cannot split 1 items"):
        split(["a"])
