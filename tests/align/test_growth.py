"""More text, later: what was counted stays, and what is new is added."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import softcount as sc
from tests.align.small import (
    AWKWARD,
    LEARNERS,
    MODELS,
    ONE_WAY,
    PAIRS,
    assert_alike,
    assert_same,
    directions,
    tables,
)

every = pytest.mark.parametrize("name", MODELS)
one_way = pytest.mark.parametrize("name", ONE_WAY)
LEARNED = [*ONE_WAY, "Aligner"]
OTHERS = [("U1 U2", "V1 V2"), ("U2 U3", "V2 V3"), ("U1 U3 U2", "V1 V3 V2"), ("U3", "V3")]
"""Not one word of the other pairs."""


def counts_of(model: Any) -> list[Any]:
    return (
        list(model._expected_counts()) if hasattr(model, "forward_") else [model._expected_counts()]
    )


@every
def test_it_begins_with_fit(name: str) -> None:
    first, plain = MODELS[name]().partial_fit(PAIRS), MODELS[name]().fit(PAIRS)
    assert_same(tables(first), tables(plain))
    assert first.align() == plain.align()


@every
def test_known_links_from_the_first_pairs_on(name: str) -> None:
    links: list[Any] = [[(0, len(target.split()) - 1)] for _, target in PAIRS]
    first, plain = (
        MODELS[name]().partial_fit(PAIRS, links=links),
        MODELS[name]().fit(PAIRS, links=links),
    )
    assert_same(tables(first), tables(plain))


@one_way
def test_the_same_pairs_again_count_twice(name: str) -> None:
    """Every target word has one source: totals are exact; tables hardly move."""
    model = MODELS[name](learner=sc.EM(max_iter=60, tol=0)).fit(PAIRS)
    once, before = model._expected_counts(), model.table().toarray()
    model.partial_fit(PAIRS)
    twice = model._expected_counts()
    tokens = sum(len(target.split()) for _, target in PAIRS)
    assert once["translation"].sum() == pytest.approx(tokens)
    assert twice["translation"].sum() == pytest.approx(2 * tokens)
    for key in set(once) - {"translation"}:
        assert twice[key].sum() == pytest.approx(2 * once[key].sum(), rel=0.02)
    assert np.abs(model.table().toarray() - before).max() < 0.1
    assert np.abs(model.table().toarray() - before).mean() < 0.005


@one_way
def test_words_that_do_not_come_again_have_the_counts_that_they_had(name: str) -> None:
    """(past + a) / Σ, by hand; the others have moved."""
    model = MODELS[name](learner=sc.EM(max_iter=1, tol=0), smoothing=0.1).fit(PAIRS)
    mass, indptr = model._expected_counts()["translation"] + 0.1, model._lexicon.indptr
    model.partial_fit(PAIRS[:2])
    assert np.array_equal(model._lexicon.indptr, indptr)  # the same pairs of words as before
    made, again = model.raw_params_["translation"], set(" ".join(s for s, _ in PAIRS[:2]).split())
    assert 1 < len(again) < 11
    for word, a, b in zip(model.source_words_, indptr, indptr[1:], strict=False):
        alike = np.allclose(made[a:b], mass[a:b] / mass[a:b].sum(), rtol=1e-12)
        assert alike == (word not in again)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", LEARNED)
def test_nothing_is_forgotten(name: str, learner: str) -> None:
    """Words that come no more keep their translations, however often there is more."""
    if learner == "Gibbs":
        return  # rows are drawn anew every time: see below
    rare = [("rare S1", "selten T1"), *PAIRS]
    model = MODELS[name](learner=LEARNERS[learner], smoothing=0.001).fit(rare)
    rows = [dict(model.translations("rare", 9))]
    for _ in range(5):
        model.partial_fit(OTHERS)
        rows.append(dict(model.translations("rare", 9)))
    for before, after in pairwise(rows[1:]):
        assert after == pytest.approx(before, abs=1e-6)
    assert rows[0]["selten"] == max(rows[0].values())
    assert abs(rows[-1]["selten"] - rows[0]["selten"]) < 0.15
    assert model.align([("rare U1", "selten V1")]) == [[(0, 0), (1, 1)]]


@pytest.mark.parametrize("name", ["IBM1", "HMMAligner", "GibbsAligner"])
def test_samplers_do_not_forget_either(name: str) -> None:
    settings = {"learner": LEARNERS["Gibbs"], "smoothing": 0.01} if name in ONE_WAY else {}
    model = MODELS[name](**settings).fit(PAIRS)
    best = {f"S{k}": model.translations(f"S{k}", 1)[0] for k in range(12)}
    sure = {word: f for word, (f, p) in best.items() if p > 0.9}
    assert len(sure) > 5
    for _ in range(5):
        model.partial_fit(OTHERS)
    assert {word: model.translations(word, 1)[0][0] for word in sure} == sure


def test_stems_do_not_wash_words_out() -> None:
    """What relatives lent is no count of a word's own, and is not lent twice."""
    pairs = [("haus", "house")] * 20 + [("hausa", "hausa")] * 2
    model = sc.align.IBM1(stem=4).fit(pairs)
    before = dict(model.translations("hausa"))
    for _ in range(6):
        model.partial_fit(OTHERS)
    assert dict(model.translations("hausa")) == pytest.approx(before, abs=1e-6)


@one_way
def test_it_goes_on_where_it_stopped(name: str) -> None:
    """All tables: the first figure of more is about the last one of before."""
    model = MODELS[name]().fit(PAIRS)
    before = model.trace_.perplexity[-1]
    start = model.partial_fit(PAIRS).trace_.perplexity[0]
    assert before < start < 1.6 * before


@every
def test_new_words(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    words, others = model.source_words_, model.target_words_
    model.partial_fit(OTHERS * 3)
    assert model.source_words_ == [*words, "U1", "U2", "U3"]
    assert model.target_words_ == [*others, "V1", "V2", "V3"]
    assert model.translations("U3", 1)[0][0] == "V3"
    assert model.translations("S1", 1)[0][0] == "T1"
    assert len(model.align()) == len(OTHERS) * 3
    assert model.align([("S1 U3", "T1 V3")]) == [[(0, 0), (1, 1)]]
    for way in directions(model):
        np.testing.assert_allclose(way.table().sum(axis=1), 1.0, atol=1e-9)
        assert way.table().shape == (len(way.source_words_) + 1, len(way.target_words_))


@every
def test_both_directions_number_words_alike(name: str) -> None:
    if name in ONE_WAY:
        return
    told = {"S1": "T1", "niemals": "nimmer", "jamais": ["nimmer", "T2"]}
    for dictionary in (None, told):
        model = MODELS[name](dictionary=dictionary, lowercase=True).fit(PAIRS)
        for _ in range(2):
            assert model.forward_.source_words_ == model.backward_.target_words_
            assert model.forward_.target_words_ == model.backward_.source_words_
            model.partial_fit([("neu S1", "T1 new"), *OTHERS])


@every
def test_new_lengths_and_empty_sides(name: str) -> None:
    model = MODELS[name]().fit(PAIRS)
    model.partial_fit(AWKWARD)
    found = model.align()
    assert len(found) == len(AWKWARD)
    assert [n for n, (s, t) in enumerate(AWKWARD) if not (s and t) and found[n]] == []
    for matrix in model.posteriors(PAIRS):
        assert np.isfinite(matrix).all()
        assert (matrix < 1.0 + 1e-6).all()


@one_way
def test_more_text_is_about_as_good_as_all_at_once(name: str) -> None:
    whole = MODELS[name]().fit(PAIRS)
    parts = MODELS[name]().fit(PAIRS[:20]).partial_fit(PAIRS[20:30]).partial_fit(PAIRS[30:])
    ours, theirs = parts.align(PAIRS), whole.align(PAIRS)
    same = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
    assert same > 0.7 * len(PAIRS)
    assert parts.perplexity(PAIRS) < 1.3 * whole.perplexity(PAIRS)


@pytest.mark.parametrize("name", ONE_WAY)
def test_the_objective_climbs(name: str) -> None:
    model = MODELS[name](learner=sc.EM(max_iter=8, tol=0)).fit(PAIRS[:20]).partial_fit(PAIRS[20:])
    assert (np.diff(model.trace_.objective) >= -1e-9).all()
    assert np.isfinite(model.trace_.entropy).all()
    assert model.n_iter_ == 8


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LEARNED)
def test_threads_and_bits(name: str, dtype: str) -> None:
    one, two = (
        MODELS[name](engine=sc.Local(threads=n), dtype=dtype).fit(PAIRS).partial_fit(OTHERS)
        for n in (1, 2)
    )
    assert_same(tables(one), tables(two))
    for way in directions(one):
        assert way.raw_params_["translation"].dtype == dtype
    assert_alike(one.posteriors(PAIRS), two.posteriors(PAIRS))


@every
def test_what_was_counted_is_not_counted_again(name: str) -> None:
    """Asking does not change anything."""
    model = MODELS[name]().fit(PAIRS).partial_fit(OTHERS)
    first = [counts["translation"].copy() for counts in counts_of(model)]
    model.align()
    model.posteriors(PAIRS)
    for before, after in zip(first, counts_of(model), strict=True):
        assert np.array_equal(before, after["translation"])
    if name in ONE_WAY:
        tokens = sum(len(target.split()) for _, target in [*PAIRS, *OTHERS])
        assert first[0].sum() == pytest.approx(tokens)
