"""Agreement: counts are products of both directions' posteriors, by lists of all alignments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc
from softcount.align.core import AgreementCore
from softcount.align.data import BidirectionalCorpus
from softcount.core.errors import LearnerError
from softcount.core.types import EStep
from tests.align.cases import (
    KINDS,
    Case,
    all_listed,
    cases,
    core_of,
    random_params,
    word_pairs,
)
from tests.align.small import PAIRS, assert_same, tables
from tests.oracles.alignments import AllAlignments

EXACT = 1e-10


class Bench:
    """A case from either side, and what the oracle says of both."""

    def __init__(self, kind: str, case: Case, agree: bool = True) -> None:
        known = case.known and [[(j, i) for i, j in links or ()] for links in case.known]
        back = case._replace(
            data=[(fs, es) for es, fs in case.data], known=known, seed=case.seed + 1
        )
        self.sides = (case, back)
        self.corpora = tuple(side.corpus() for side in self.sides)
        cores = [core_of(kind, c, s) for c, s in zip(self.corpora, self.sides, strict=True)]
        each = [random_params(core, side) for core, side in zip(cores, self.sides, strict=True)]
        self.truth: list[dict[int, AllAlignments]] = [
            all_listed(kind, side, corpus, params)
            for side, corpus, params in zip(self.sides, self.corpora, each, strict=True)
        ]
        self.core = AgreementCore("both", cores[0], cores[1], agree)
        self.params = {
            direction + name: table
            for direction, params in zip(("forward.", "backward."), each, strict=True)
            for name, table in params.items()
        }
        (self.shard,) = BidirectionalCorpus(*self.corpora).shards()

    @property
    def impossible(self) -> bool:
        return any(listed.log_p == -np.inf for side in self.truth for listed in side.values())

    def products(self) -> list[Counter[Any]]:
        """Expected uses of words: p · q of each link, and what is left for the empty word."""
        found: list[Counter[Any]] = [Counter(), Counter()]
        for n, there in self.truth[0].items():
            es, fs = self.sides[0].data[n]
            both = there.posterior()[:-1] * self.truth[1][n].posterior()[:-1].T
            for i, e in enumerate(es):
                for j, f in enumerate(fs):
                    found[0][e, f] += both[i, j]
                    found[1][f, e] += both[i, j]
            for j, f in enumerate(fs):
                found[0][None, f] += 1.0 - both[:, j].sum()
            for i, e in enumerate(es):
                found[1][None, e] += 1.0 - both[i].sum()
        return found


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_counts_are_products(kind: str, case: Case) -> None:
    bench = Bench(kind, case)
    if bench.impossible:
        with pytest.raises(sc.errors.ImpossibleItem):
            bench.core.expect(bench.params, bench.shard, EStep())
        return
    stats = bench.core.expect(bench.params, bench.shard, EStep())
    directions = ("forward.", "backward.")
    for direction, corpus, words in zip(directions, bench.corpora, bench.products(), strict=True):
        expected = [words[pair] for pair in word_pairs(corpus)]
        found = np.asarray(stats.counts[direction + "translation"])
        np.testing.assert_allclose(found, expected, 0, EXACT)
    total = sum(listed.log_p for side in bench.truth for listed in side.values())
    assert stats.log_likelihood == pytest.approx(total, abs=EXACT)
    lengths = [len(es) + len(fs) for es, fs in case.data if es and fs]
    assert stats.tokens == sum(lengths)
    assert stats.items == len(lengths)
    alone = bench.core.expect(bench.params, bench.shard, EStep(score_only=True))
    assert alone.log_likelihood == pytest.approx(total, abs=EXACT)


@pytest.mark.parametrize("kind", KINDS)
@given(case=cases())
@settings(max_examples=30, deadline=None)
def test_side_by_side_counts_are_each_ones_own(kind: str, case: Case) -> None:
    bench = Bench(kind, case, agree=False)
    if bench.impossible:
        return
    stats = bench.core.expect(bench.params, bench.shard, EStep())
    directions = ("forward.", "backward.")
    for direction, corpus, truth in zip(directions, bench.corpora, bench.truth, strict=True):
        words: Counter[Any] = Counter()
        for listed in truth.values():
            words.update(listed.counts()[0])
        found = np.asarray(stats.counts[direction + "translation"])
        np.testing.assert_allclose(found, [words[p] for p in word_pairs(corpus)], 0, EXACT)


@given(case=cases(), threads=st.sampled_from([1, 2]))
@settings(max_examples=30, deadline=None)
def test_the_empty_word_gets_no_less_than_nothing(case: Case, threads: int) -> None:
    bench = Bench("chain", case)
    if bench.impossible:
        return
    counts = bench.core.expect(bench.params, bench.shard, EStep(threads=threads)).counts
    assert all((np.asarray(each) >= 0.0).all() for each in counts.values())


# the aligner
@pytest.mark.parametrize("model", ["ibm1", "ibm2", "diagonal", "hmm"])
@pytest.mark.parametrize("agree", [True, False])
def test_all_models(model: str, agree: bool) -> None:
    aligner = sc.Aligner(model, agree=agree).fit(PAIRS)
    assert np.isfinite(aligner.trace_.perplexity).all()
    assert np.isfinite(aligner.trace_.entropy).all()
    links = aligner.align()
    right = sum(len({*one} & {(k, k) for k in range(6)}) for one in links)
    assert right > 50
    kind = {
        "ibm1": sc.align.IBM1,
        "ibm2": sc.align.IBM2,
        "diagonal": sc.align.Diagonal,
        "hmm": sc.align.HMMAligner,
    }
    assert type(aligner.forward_) is type(aligner.backward_) is kind[model]


def test_agreement_changes_what_is_learned() -> None:
    together, apart = (sc.Aligner(agree=agree).fit(PAIRS) for agree in (True, False))
    assert together.core_.monotone is apart.core_.monotone is False  # stems may go down as well
    assert sc.Aligner(agree=False, stem=None).fit(PAIRS).core_.monotone
    key = "forward.translation"
    assert not np.allclose(together.raw_params_[key], apart.raw_params_[key])


def test_rare_words_collect_less() -> None:
    """A word seen once, beside words that are known, explains nothing but its own."""
    pairs = [*PAIRS, ("rare S1 S2 S3", "T1 T2 T3")]
    counts = []
    for agree in (True, False):
        model = sc.Aligner(agree=agree, stem=None).fit(pairs)
        row = model.forward_.source_words_.index("rare")
        table, borders = model._expected_counts()[0]["translation"], model.forward_._lexicon.indptr
        counts.append(table[borders[row] : borders[row + 1]].sum())
    assert counts[0] < 0.8 * counts[1]


def test_directions_are_the_same_when_the_pairs_are_turned() -> None:
    there = sc.Aligner().fit(PAIRS)
    back = sc.Aligner().fit([(target, source) for source, target in PAIRS])
    links_reversed = [sorted((j, i) for i, j in links) for links in back.align()]
    assert there.align() == links_reversed
    for ours, theirs in zip(there.posteriors(), back.posteriors(), strict=True):
        np.testing.assert_allclose(ours, theirs.T, atol=1e-9)
    np.testing.assert_allclose(
        there.raw_params_["forward.translation"],
        back.raw_params_["backward.translation"],
        atol=1e-9,
    )


def test_settings_of_the_directions() -> None:
    aligner = sc.Aligner("hmm", settings={"p_null": 0.3, "null": True}, smoothing=0.02).fit(PAIRS)
    for way in (aligner.forward_, aligner.backward_):
        assert way.p_null == 0.3
        assert way.smoothing == 0.02
    with pytest.raises(sc.LearnerError, match="no setting 'nonsense'"):
        sc.Aligner(settings={"nonsense": 1}).fit(PAIRS)
    with pytest.raises(LearnerError, match="random"):
        sc.Aligner(init="random").fit(PAIRS)


def test_without_the_empty_word() -> None:
    aligner = sc.Aligner("ibm1", settings={"null": False}, smoothing=0.01).fit(PAIRS)
    for way in (aligner.forward_, aligner.backward_):
        assert way._lexicon.indptr[-1] == way._lexicon.indptr[-2]
    assert sum(map(len, aligner.align())) > 50


def test_warm_up() -> None:
    cold = sc.Aligner(warm_up=0).fit(PAIRS)
    even = sc.Aligner(init="uniform").fit(PAIRS)
    warm = sc.Aligner(warm_up=1).fit(PAIRS)
    assert_same(tables(cold), tables(even))
    assert not np.allclose(tables(warm)["forward.translation"], tables(cold)["forward.translation"])
    # what comes first is Model 1, which need not agree with itself yet
    once = sc.align.IBM1(learner=sc.EM(max_iter=1, tol=0), smoothing=0.0003).fit(PAIRS)
    start = sc.Aligner(warm_up=1, stem=None).fit(PAIRS, keep_params=True).trace_.params[0]
    np.testing.assert_allclose(start["forward.translation"], once.raw_params_["translation"])


def test_the_table_is_the_forward_one() -> None:
    aligner = sc.Aligner().fit(PAIRS)
    assert (aligner.table() != aligner.forward_.table()).nnz == 0
    assert aligner.translations("S1", 3) == aligner.forward_.translations("S1", 3)
    assert aligner.translations(None, 3) == aligner.forward_.translations(None, 3)
    row = aligner.source_words_.index("S1")
    best = aligner.target_words_[aligner.table()[row].toarray().argmax()]
    assert best == aligner.translations("S1", 1)[0][0] == "T1"
    assert aligner.backward_.translations("T1", 1)[0][0] == "S1"
