"""Scores of topics and of rankings, by hand and by their definitions."""

from __future__ import annotations

from itertools import combinations
from math import log
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from softcount.core.errors import DataError
from softcount.metrics import (
    average_precision,
    completion,
    completion_perplexity,
    diversity,
    document_completion,
    mean_average_precision,
    npmi,
    umass,
)

cases = settings(max_examples=30, deadline=None)
DOCUMENTS = np.array([[2, 1, 0, 0], [1, 0, 1, 0], [3, 1, 1, 0], [0, 0, 1, 0]])
TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.7, 0.0]])


@st.composite
def worlds(draw):
    """Topics in which every topic has two words at least, and documents with some tokens."""
    K, V, D = draw(st.integers(1, 10)), draw(st.integers(2, 6)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    topics = rng.random((K, V)) * (rng.random((K, V)) < draw(st.sampled_from([0.5, 1.0])))
    topics[:, :2] += 0.01
    documents = rng.poisson(draw(st.sampled_from([0.3, 3.0])), (D, V))
    documents[0] += 20
    return topics, documents


def spread(documents, *words):
    """How many documents have all the words, counted one by one."""
    return sum(all(row[w] > 0 for w in words) for row in documents)


def heaviest(row, top):
    return [w for w in sorted(range(len(row)), key=lambda w: (-row[w], w)) if row[w] > 0][:top]


def npmi_by_definition(row, documents, top):
    figures = []
    for i, j in combinations(heaviest(row, top), 2):
        p_i, p_j, p_ij = (spread(documents, *w) / len(documents) for w in ([i], [j], [i, j]))
        if p_ij in (0, 1):
            figures.append(2 * p_ij - 1)
        else:
            figures.append(log(p_ij / (p_i * p_j)) / -log(p_ij))
    return sum(figures) / len(figures)


def folded_in(row, phi, smoothing, max_iter):
    """θ of one document by EM with every posterior in full."""
    theta = np.full(len(phi), 1 / len(phi))
    for _ in range(max_iter):
        counts = np.full(len(phi), smoothing)
        for w, n in enumerate(row):
            posterior = theta * phi[:, w]
            if posterior.sum() > 0:
                counts += n * posterior / posterior.sum()
        theta = counts / counts.sum()
    return theta


def completion_by_definition(topics, documents, smoothing=0.1, share=0.5, max_iter=100, seed=0):
    phi = topics / topics.sum(axis=1, keepdims=True)
    seen, unseen = (half.toarray() for half in document_completion(documents, share, seed))
    total = tokens = lost = 0
    for looked, hidden in zip(seen, unseen, strict=True):
        theta = folded_in(looked, phi, smoothing, max_iter)
        for w, n in enumerate(hidden):
            p = float(theta @ phi[:, w])
            lost += 0 if p else n
            if p and n:
                total, tokens = total + n * log(p), tokens + n
    return np.exp(-total / tokens), tokens, lost


def test_npmi_by_hand():
    # words 0, 1, 2 are in 3, 2, 3 of 4 documents; the pairs 01, 02, 12 in 2, 2, 1
    pairs = [
        log((2 / 4) / (3 / 4 * 2 / 4)) / log(4 / 2),
        log((2 / 4) / (3 / 4 * 3 / 4)) / log(4 / 2),
        log((1 / 4) / (2 / 4 * 3 / 4)) / log(4 / 1),
    ]
    found = npmi(TOPICS, DOCUMENTS, top=3)
    assert found.topics == pytest.approx([np.mean(pairs)] * 2)
    assert npmi(TOPICS, DOCUMENTS, top=2).topics == pytest.approx([pairs[0], pairs[2]])
    assert npmi(TOPICS, DOCUMENTS, top=2).mean == pytest.approx((pairs[0] + pairs[2]) / 2)


def test_umass_by_hand():
    # in the order of the weights: 0 1 2, and 2 1 0
    first = log((2 + 1) / 3) + log((2 + 1) / 3) + log((1 + 1) / 2)
    second = log((1 + 1) / 3) + log((2 + 1) / 3) + log((2 + 1) / 2)
    assert umass(TOPICS, DOCUMENTS, top=3).topics == pytest.approx([first, second])
    assert umass(TOPICS, DOCUMENTS, top=2).topics == pytest.approx([log(3 / 3), log(2 / 3)])


def test_npmi_at_its_ends():
    never = np.array([[1, 0], [0, 1]])
    only_together = np.array([[1, 1], [0, 0], [2, 5]])
    independent = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    assert npmi([[1, 1]], never).mean == -1.0
    assert npmi([[1, 1]], only_together).mean == 1.0
    assert npmi([[1, 1]], independent).mean == pytest.approx(0.0, abs=1e-15)
    assert npmi([[1, 1]], [[1, 1], [3, 2]]).mean == 1.0  # in every document, both of them
    assert npmi([[1, 1]], [[1, 0], [3, 0]]).mean == -1.0  # one of them in none


@cases
@given(worlds(), st.integers(2, 6))
def test_npmi_is_what_its_definition_says_and_keeps_its_bounds(world, top):
    topics, documents = world
    found = npmi(topics, documents, top)
    assert found.topics == pytest.approx([npmi_by_definition(r, documents, top) for r in topics])
    assert all(-1.0 <= figure <= 1.0 for figure in found.topics)


@cases
@given(worlds(), st.integers(2, 6))
def test_umass_is_what_its_definition_says(world, top):
    topics, documents = world
    expected = [
        sum(
            log((spread(documents, i, j) + 1) / spread(documents, i))
            for i, j in combinations(heaviest(row, top), 2)
        )
        for row in topics
    ]
    assert umass(topics, documents, top).topics == pytest.approx(expected)


@cases
@given(worlds(), st.integers(1, 6))
def test_diversity_counts_different_words(world, top):
    topics, _ = world
    words = [w for row in topics for w in heaviest(row, top)]
    assert diversity(topics, top) == len(set(words)) / len(words)
    assert 1 / len(topics) <= diversity(topics, top) <= 1


def test_diversity_at_its_ends():
    assert diversity(np.eye(5), top=1) == 1.0
    assert diversity(np.tile([3, 2, 1], (4, 1)), top=3) == 0.25
    assert diversity([[3, 2, 0], [3, 0, 2]], top=25) == 0.75  # words of weight zero are no words


def test_equals_come_in_the_order_of_the_columns():
    counts = [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]]
    assert npmi([[1, 1, 1, 1]], counts, top=2) == npmi([[2, 1, 0, 0]], counts, top=2)


@cases
@given(worlds(), st.randoms())
def test_the_order_of_topics_does_not_matter(world, random):
    topics, documents = world
    order = random.sample(range(len(topics)), len(topics))
    for figure in (npmi, umass):
        ours, theirs = figure(topics, documents), figure(topics[order], documents)
        assert [ours.topics[k] for k in order] == list(theirs.topics)
        assert ours.mean == pytest.approx(theirs.mean)
    assert diversity(topics) == diversity(topics[order])
    perplexities = [completion(t, documents).perplexity for t in (topics, topics[order])]
    assert perplexities[0] == pytest.approx(perplexities[1])


@cases
@given(worlds(), st.sampled_from([0.01, 0.1, 2.0]), st.sampled_from([0.3, 0.5]), st.integers(1, 30))
def test_completion_is_what_its_protocol_says(world, smoothing, share, max_iter):
    topics, documents = world
    found = completion(topics, documents, smoothing, share, max_iter, random_state=3)
    expected = completion_by_definition(topics, documents, smoothing, share, max_iter, seed=3)
    assert (found.perplexity, found.tokens, found.impossible) == pytest.approx(expected)


def test_completion_over_more_documents_than_are_folded_in_together():
    rng = np.random.default_rng(0)
    topics, documents = rng.random((3, 5)), rng.poisson(2.0, (2500, 5))
    found = completion(topics, documents, max_iter=5)
    perplexity, tokens, _ = completion_by_definition(topics, documents, max_iter=5)
    assert (found.perplexity, found.tokens) == (pytest.approx(perplexity), tokens)
    unseen = document_completion(documents)[1]
    assert found.documents == np.count_nonzero(unseen.sum(axis=1))


def test_one_topic_is_the_unigram_model():
    rng = np.random.default_rng(1)
    words, documents = rng.random(30), rng.poisson(1.0, (40, 30))
    unseen = document_completion(documents)[1].sum(axis=0)
    expected = np.exp(-(unseen @ np.log(words / words.sum())) / unseen.sum())
    assert completion_perplexity(words[None], documents) == pytest.approx(expected)


def test_topics_that_share_no_word_are_recognised():
    topics = np.kron(np.eye(2), np.full(5, 0.2))  # ten words, two topics of five
    documents = np.kron(np.eye(2, dtype=int), np.full((10, 5), 100))
    seen, unseen = (half.toarray().sum(axis=1) for half in document_completion(documents))
    own = np.log(0.2 * (seen + 0.1) / (seen + 0.2))  # the words say which topic every token has
    found = completion(topics, documents)
    assert found.perplexity == pytest.approx(np.exp(-(unseen @ own) / unseen.sum()))
    assert 5.0 < found.perplexity < 5.01


def test_words_that_no_topic_has_are_counted_apart():
    documents = np.array([[6, 6, 0], [6, 6, 40]])
    lost = document_completion(documents)[1].toarray()[:, 2].sum()
    found = completion([[1, 1, 0]], documents)
    assert found.impossible == lost > 0
    assert found.perplexity == pytest.approx(2.0)
    assert completion_perplexity([[1, 1, 0]], documents) == np.inf
    assert f"not counted: {lost}" in str(found)


def test_a_probability_of_next_to_nothing_is_none():
    assert completion([[1, 1, 1e-150]], [[6, 6, 40]]).impossible > 0
    assert completion([[1, 1, 1e-50]], [[6, 6, 40]]).impossible == 0


def test_a_document_of_which_nothing_is_seen_has_all_topics():
    documents = np.eye(2, dtype=int)  # one token each: seen or unseen, never both
    assert completion(np.eye(2), documents, random_state=0).perplexity == pytest.approx(2.0)


def test_the_scale_of_weights_does_not_matter():
    plain = completion(TOPICS, DOCUMENTS).perplexity
    scales = np.array([[1e-200], [1e300]])
    assert completion(TOPICS * scales, DOCUMENTS).perplexity == pytest.approx(plain)


def test_a_model_and_sparse_matrices_are_welcome():
    model, counts = SimpleNamespace(topics_=TOPICS), sparse.csr_matrix(DOCUMENTS)
    thin = sparse.csr_array(TOPICS)
    assert npmi(model, counts) == npmi(thin, counts) == npmi(TOPICS, DOCUMENTS)
    assert umass(model, counts) == umass(thin, counts) == umass(TOPICS, DOCUMENTS)
    assert diversity(model) == diversity(thin) == diversity(TOPICS)
    assert completion(model, counts) == completion(thin, counts) == completion(TOPICS, DOCUMENTS)


def test_the_same_seed_gives_the_same_figure_and_another_one_another():
    documents = np.random.default_rng(2).poisson(3.0, (20, 4))
    first = completion(TOPICS + 0.1, documents, random_state=5)
    assert first == completion(TOPICS + 0.1, documents, random_state=5)
    assert first != completion(TOPICS + 0.1, documents, random_state=6)


def test_what_is_given_stays_as_it_was():
    topics, counts = TOPICS.copy(), sparse.csr_matrix(DOCUMENTS)
    completion(topics, counts)
    npmi(topics, counts)
    assert (topics == TOPICS).all()
    assert (counts.toarray() == DOCUMENTS).all()


@pytest.mark.parametrize("topics", ["words", [1, 2], [[1, 2], [3]], [[1, -1]], [[1, np.nan]], []])
def test_topics_that_are_none_are_refused(topics):
    with pytest.raises(DataError, match="topics"):
        diversity(topics)


def test_a_topic_without_words_is_named():
    dead = [[1, 1, 1, 1], [0, 0, 0, 0]]
    for figure in (npmi, umass, completion):
        with pytest.raises(DataError, match="topic 1 is zero for every word"):
            figure(dead, DOCUMENTS)


def test_coherence_needs_pairs():
    with pytest.raises(DataError, match="topic 1 has 1 top word"):
        npmi([[1, 1, 0, 0], [0, 0, 1, 0]], DOCUMENTS)
    with pytest.raises(DataError, match="topic 0 has 1 top word"):
        npmi(TOPICS, DOCUMENTS, top=1)
    with pytest.raises(DataError, match="top=0"):
        diversity(TOPICS, top=0)


def test_umass_of_a_word_that_the_documents_do_not_have_is_refused():
    with pytest.raises(DataError, match="word 3, a top word of topic 0, is in no document"):
        umass([[1, 0, 0, 2]], DOCUMENTS)


def test_other_columns_are_refused():
    for figure in (npmi, umass, completion):
        with pytest.raises(DataError, match="3 columns, and the topics have 4 words"):
            figure(TOPICS, DOCUMENTS[:, :3])


@pytest.mark.parametrize("reference", [["some", "texts"], [[]], [[1, -1, 0, 0]], (4, 4)])
def test_references_that_are_no_counts_are_refused(reference):
    with pytest.raises(DataError, match="reference"):
        npmi(TOPICS, reference)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smoothing": 0.0}, "smoothing is 0.0"),
        ({"smoothing": np.inf}, "smoothing is inf"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"share": 1.0}, "share is 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        completion(TOPICS, DOCUMENTS, **settings)


@pytest.mark.parametrize("documents", [np.zeros((3, 4), int), [[0, 0, 0, 9]]])
def test_documents_without_a_token_to_foresee_are_refused(documents):
    with pytest.raises(DataError, match="no token to predict"):
        completion(TOPICS, documents)


# Average precision, by hand and by its definition.


ranking_cases = settings(max_examples=40, deadline=None)


def test_by_hand():
    assert average_precision([3, 1, 4, 2], {3, 4}) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision([1, 2, 3], [3]) == pytest.approx(1 / 3)
    assert average_precision("abcd", "ba") == 1.0
    assert average_precision(np.array([5, 6]), {6}) == 0.5


def test_what_is_not_ranked_counts_nothing():
    assert average_precision([1], {1, 2}) == 0.5
    assert average_precision([], {1}) == 0.0
    assert average_precision([3], {1}) == 0.0


@ranking_cases
@given(st.permutations(range(8)), st.sets(st.integers(0, 10), min_size=1))
def test_is_the_mean_precision_at_relevant_ranks(ranking, relevant):
    total = 0.0
    for r, document in enumerate(ranking, 1):
        if document in relevant:
            total += sum(other in relevant for other in ranking[:r]) / r
    assert average_precision(ranking, relevant) == pytest.approx(total / len(relevant))


@ranking_cases
@given(st.permutations(range(6)), st.sets(st.integers(0, 5), min_size=1), st.integers(0, 4))
def test_moving_a_relevant_document_up_never_harms(ranking, relevant, place):
    moved = list(ranking)
    if moved[place + 1] in relevant:
        moved[place], moved[place + 1] = moved[place + 1], moved[place]
    assert average_precision(moved, relevant) >= average_precision(ranking, relevant) - 1e-15


def test_mean_over_queries():
    rankings, relevant = [[0, 1, 2], [2, 1, 0]], [{0, 2}, {0}]
    assert mean_average_precision(rankings, relevant) == pytest.approx(
        ((1 + 2 / 3) / 2 + 1 / 3) / 2
    )
    assert mean_average_precision(np.array(rankings), relevant) == pytest.approx(7 / 12)


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(DataError, match="no document is relevant"):
        average_precision([1, 2], [])
    with pytest.raises(DataError, match="has 2 twice"):
        average_precision([1, 2, 2], [1])
    with pytest.raises(DataError, match="2 rankings for 1 sets"):
        mean_average_precision([[1], [2]], [[1]])
    with pytest.raises(DataError, match="at least one query"):
        mean_average_precision([], [])
