"""AER and its parts: by hand, by their definitions, and beside NLTK."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.core.errors import DataError
from softcount.metrics import AlignmentScores, aer, align_scores
from softcount.text.links import Links, read_links
from tests.real import lines

cases = settings(max_examples=100, deadline=None)
link = st.tuples(st.integers(0, 3), st.integers(0, 3))
links = st.frozensets(link, max_size=8)
corpus = st.lists(st.tuples(links, links, links), max_size=4)


def counted(pairs):
    """|A|, |S|, |A ∩ S|, |A ∩ P|, one possible link after the other."""
    totals = [0, 0, 0, 0]
    for found, sure, more in pairs:
        for i in range(4):
            for j in range(4):
                a, s = (i, j) in found, (i, j) in sure
                p = s or (i, j) in more
                totals = [x + y for x, y in zip(totals, (a, s, a and s, a and p), strict=True)]
    return totals


@cases
@given(corpus)
def test_by_definition(pairs):
    a, s, hits_s, hits_p = counted(pairs)
    scores = align_scores([x[0] for x in pairs], [Links(x[1], x[2]) for x in pairs])
    precision = Fraction(hits_p, a) if a else Fraction(1)
    recall = Fraction(hits_s, s) if s else Fraction(1)
    assert scores.n_links == a
    assert scores.precision == pytest.approx(float(precision))
    assert scores.recall == pytest.approx(float(recall))
    if precision and recall:
        assert scores.f1 == pytest.approx(float(2 / (1 / precision + 1 / recall)))
    else:
        assert scores.f1 == 0.0
    expected = 1 - Fraction(hits_s + hits_p, a + s) if a + s else Fraction(0)
    assert scores.aer == pytest.approx(float(expected))
    assert all(math.isfinite(x) and 0 <= x <= 1 for x in (scores.f1, scores.aer))


@cases
@given(corpus)
def test_where_all_links_are_sure_aer_is_the_rest_of_f1(pairs):
    scores = align_scores([x[0] for x in pairs], [x[1] for x in pairs])
    assert scores.aer == pytest.approx(1 - scores.f1)


@cases
@given(links, links, links)
def test_beside_nltk(found, sure, more):
    metrics = pytest.importorskip("nltk.translate.metrics")
    if found or sure:
        possible = set(sure | more)
        theirs = metrics.alignment_error_rate(set(sure), set(found), possible)
        assert aer([found], [Links(sure, more)]) == pytest.approx(theirs)


def test_counts_are_pooled():
    gold = [[(0, 0), (1, 1), (2, 2)], [(0, 0)]]
    assert aer([gold[0], []], gold) == pytest.approx(1 - 6 / 7)
    assert aer([gold[0], []], gold) != pytest.approx((0 + 1) / 2)


def test_nothing_found_and_nothing_sure():
    assert align_scores([[]], [[]]) == AlignmentScores(0, 1.0, 1.0, 1.0, 0.0)
    assert align_scores([], []) == AlignmentScores(0, 1.0, 1.0, 1.0, 0.0)
    assert align_scores([[]], [[(0, 0)]]) == AlignmentScores(0, 1.0, 0.0, 0.0, 1.0)
    assert align_scores([[(0, 0)]], [[]]) == AlignmentScores(1, 0.0, 1.0, 0.0, 1.0)
    assert align_scores([[(0, 0)]], [Links([], [(0, 0)])]) == AlignmentScores(1, 1.0, 1.0, 1.0, 0.0)


def test_a_link_found_twice_counts_once():
    assert align_scores([[(0, 0), (0, 0), [1, 1]]], [[(0, 0)]]).n_links == 2


def test_as_many_found_as_gold():
    with pytest.raises(DataError, match="links of 1 pairs for gold links of 2"):
        align_scores([[]], [[], []])


def test_shown_in_hundredths():
    brief = str(align_scores([[(0, 0), (1, 1)]], [[(0, 0)]]))
    assert brief == "AER 33.3, precision 50.0, recall 100.0, F1 66.7 (2 links)"


def test_hansards_gold_has_the_known_size():
    gold = read_links(lines("hansards_wpt03/test.align"))
    assert len(gold) == 447
    assert sum(len(one.sure) for one in gold) == 4038
    assert sum(len(one.possible - one.sure) for one in gold) == 13400
    scores = align_scores([one.sure for one in gold], gold)
    assert (scores.precision, scores.recall, scores.aer) == (1, 1, 0)
    scores = align_scores([one.possible for one in gold], gold)
    assert (scores.precision, scores.recall, scores.aer) == (1, 1, 0)
