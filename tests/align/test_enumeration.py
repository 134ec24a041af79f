"""The E-steps of alignment models against lists of all alignments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from softcount.align.data import BitextCorpus
from softcount.core.errors import ImpossibleItem
from softcount.core.types import EStep
from tests.align.cases import (
    KINDS,
    Case,
    all_listed,
    cases,
    core_of,
    matrices,
    place_keys,
    random_params,
    shapes,
    word_pairs,
)
from tests.oracles.alignments import AllAlignments, Events

EXACT = 1e-10
FAMILY = {"model 2": "places", "diagonal": "places", "chain": "jumps"}

every_model = pytest.mark.parametrize("kind", KINDS)


class Bench:
    """A case with a model of one kind, and what the oracle says of it."""

    def __init__(self, kind: str, case: Case) -> None:
        self.kind, self.case = kind, case
        self.corpus: BitextCorpus = case.corpus()
        self.core = core_of(kind, self.corpus, case)
        self.params = random_params(self.core, case)
        self.truth: dict[int, AllAlignments] = all_listed(kind, case, self.corpus, self.params)

    @property
    def impossible(self) -> list[int]:
        return [n for n, listed in self.truth.items() if listed.log_p == -np.inf]

    def expect(self, **how: Any) -> Any:
        return self.core.expect(self.params, self.corpus.everything, EStep(**how))

    def refused(self, **how: Any) -> bool:
        """Whether a pair is impossible, in which case the first of them must be named."""
        if not self.impossible:
            return False
        with pytest.raises(ImpossibleItem) as error:
            self.expect(**how)
        assert error.value.item == self.impossible[0]
        return True

    def check_counts(self, found: Mapping[str, Any], words: Events, places: Events) -> None:
        pairs = word_pairs(self.corpus)
        expected = [words[pair] for pair in pairs]
        np.testing.assert_allclose(np.asarray(found["translation"]), expected, 0, EXACT)
        if self.kind in FAMILY:
            keys = place_keys(self.kind, self.case)
            counts = np.asarray(found[FAMILY[self.kind]])
            np.testing.assert_allclose(counts, [places[key] for key in keys], 0, EXACT)
            assert sum(places.values()) == pytest.approx(sum(places[key] for key in keys))


def added(parts: list[tuple[Events, Events]]) -> tuple[Events, Events]:
    words: Counter[Any] = Counter()
    places: Counter[Any] = Counter()
    for more_words, more_places in parts:
        words.update(more_words)
        places.update(more_places)
    return words, places


@given(cases())
@settings(max_examples=100, deadline=None)
def test_the_lexicon_is_what_occurs_together(case: Case) -> None:
    together = {
        (e, f)
        for es, fs in case.data
        if es and fs
        for e in [*es, *([None] if case.null else [])]
        for f in fs
    }
    corpus = case.corpus()
    found = word_pairs(corpus)
    assert len(found) == len(set(found))
    assert set(found) == together
    borders = corpus.lexicon.indptr
    assert all(
        (np.diff(corpus.lexicon.targets[a:b].astype(int)) > 0).all() for a, b in pairwise(borders)
    )


@every_model
@given(case=cases())
@settings(max_examples=120, deadline=None)
def test_soft_counts(kind: str, case: Case) -> None:
    bench = Bench(kind, case)
    if bench.refused():
        return
    stats = bench.expect()
    total = sum(listed.log_p for listed in bench.truth.values())
    assert stats.log_likelihood == pytest.approx(total, abs=EXACT)
    assert stats.score == pytest.approx(total, abs=EXACT)
    assert stats.items == len(bench.truth)
    assert stats.tokens == sum(listed.m for listed in bench.truth.values())
    bench.check_counts(stats.counts, *added([listed.counts() for listed in bench.truth.values()]))
    score_only = bench.expect(score_only=True)
    assert score_only.log_likelihood == pytest.approx(total, abs=EXACT)


@every_model
@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_tempered_counts(kind: str, case: Case) -> None:
    bench = Bench(kind, case)
    for beta in (0.3, 2.0):
        if bench.refused(temper=beta):
            return
        stats = bench.expect(temper=beta)
        truth = bench.truth.values()
        total = sum(listed.log_p for listed in truth)
        assert stats.log_likelihood == pytest.approx(total, abs=EXACT)
        assert stats.score == pytest.approx(sum(listed.score(beta) for listed in truth), abs=EXACT)
        bench.check_counts(stats.counts, *added([listed.counts(beta) for listed in truth]))


@every_model
@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_posteriors(kind: str, case: Case) -> None:
    bench = Bench(kind, case)
    if bench.impossible:
        return
    for beta in (1.0, 0.5):
        found = matrices(bench.core, bench.params, bench.corpus.everything, EStep(temper=beta))
        for matrix, listed in zip(found, bench.truth.values(), strict=True):
            np.testing.assert_allclose(matrix, listed.posterior(beta), 0, EXACT)


@every_model
@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_the_best_alignment(kind: str, case: Case) -> None:
    """Among equals any may be found, but counts and score must be its own."""
    bench = Bench(kind, case)
    if bench.refused(fill="hard"):
        return
    how = EStep(fill="hard")
    stats = bench.core.expect(bench.params, bench.corpus.everything, how)
    parts = []
    found = matrices(bench.core, bench.params, bench.corpus.everything, how)
    for matrix, listed in zip(found, bench.truth.values(), strict=True):
        assert set(np.unique(matrix)) <= {0.0, 1.0}
        assert (matrix.sum(axis=0) == 1.0).all()
        chosen = [int(i) for i in matrix.argmax(axis=0)]
        one = listed.find(tuple(None if i == listed.l else i for i in chosen))
        assert one.log_p == pytest.approx(listed.best, abs=EXACT)
        parts.append((one.words, one.places))
    truth = bench.truth.values()
    assert stats.score == pytest.approx(sum(listed.best for listed in truth), abs=EXACT)
    assert stats.log_likelihood == pytest.approx(sum(listed.log_p for listed in truth), abs=EXACT)
    bench.check_counts(stats.counts, *added(parts))


@every_model
@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_drawn_alignments_are_possible(kind: str, case: Case) -> None:
    """A single draw is an alignment that can be, and the counts are its own."""
    bench = Bench(kind, case)
    if bench.refused(fill="sample"):
        return
    how = EStep(fill="sample", samples=1, stream=case.seed)
    stats = bench.core.expect(bench.params, bench.corpus.everything, how)
    parts = []
    found = matrices(bench.core, bench.params, bench.corpus.everything, how)
    for matrix, listed in zip(found, bench.truth.values(), strict=True):
        assert (np.sort(matrix, axis=0)[-1] == 1.0).all()
        assert (matrix.sum(axis=0) == 1.0).all()
        chosen = [int(i) for i in matrix.argmax(axis=0)]
        one = listed.find(tuple(None if i == listed.l else i for i in chosen))
        assert one.log_p > -np.inf
        parts.append((one.words, one.places))
    bench.check_counts(stats.counts, *added(parts))


FREQUENT = Case(
    [(["a", "b", "a"], ["X", "Y", "X"]), (["b"], ["Y", "X"]), (["a", "c"], ["Z"])],
    None,
    True,
    5,
    reach=1,
    p_null=0.3,
)


@every_model
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_draws_are_as_frequent_as_they_are_likely(kind: str, beta: float) -> None:
    """Whole alignments of the same pairs, many times over: χ² within what chance allows."""
    bench, copies = Bench(kind, FREQUENT), 4000
    many = FREQUENT._replace(data=[*FREQUENT.data] * copies).corpus()
    how = EStep(fill="sample", stream=1, temper=beta)
    found = matrices(bench.core, bench.params, many.everything, how)
    for n, listed in bench.truth.items():
        drawn = (matrix.argmax(axis=0).tolist() for matrix in found[n :: len(FREQUENT.data)])
        seen = Counter(tuple(None if i == listed.l else i for i in places) for places in drawn)
        expected = copies * np.array(listed.posteriors(beta))
        common = expected >= 5.0
        off = (np.array([seen[one.a] for one in listed.alignments]) - expected)[common]
        chi2, freedom = float((off**2 / expected[common]).sum()), int(common.sum())
        assert chi2 < freedom + 5.0 * np.sqrt(2.0 * freedom)
        assert abs(off.sum()) < 5.0 * np.sqrt(expected[~common].sum() + 1.0)


@every_model
def test_many_samples_are_means_of_draws(kind: str) -> None:
    """Counts by sampling: jumps and places as well as words, near the soft ones."""
    bench = Bench(kind, FREQUENT)
    samples = 40_000
    soft, drawn = bench.expect(), bench.expect(fill="sample", samples=samples, stream=3)
    for name in soft.counts:
        expected, found = np.asarray(soft.counts[name]), np.asarray(drawn.counts[name])
        assert found.sum() == pytest.approx(expected.sum(), rel=0.02)
        assert np.abs(found - expected).max() < 5.0 * np.sqrt(6.0 / samples)


def test_the_cases_are_what_they_should_be() -> None:
    """The cases cover impossible pairs, known links and pairs of several shapes."""
    found: Counter[str] = Counter()

    @given(cases())
    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    def look(case: Case) -> None:
        bench = Bench("chain", case)
        found["impossible"] += bool(bench.impossible)
        found["possible with zeros"] += bool(not bench.impossible and case.zeros)
        found["known"] += bool(case.known)
        found["shapes"] += len(shapes(case.data)) > 1

    look()
    assert min(found.values()) > 5, found
