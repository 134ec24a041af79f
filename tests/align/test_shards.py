"""The laws of every model, and: neither threads nor blocks nor shards nor their order matter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import softcount as sc
from softcount.align import data as lexicon
from softcount.align import data as shards
from softcount.align.data import BitextCorpus
from softcount.core.fit import fit
from softcount.core.laws import LAWS, check_model
from softcount.core.types import EStep, Stats
from softcount.text.bitext import as_bitext
from tests.align.cases import (
    KINDS,
    Case,
    cases,
    core_of,
    matrices,
    random_params,
    word_pairs,
)

every_model = pytest.mark.parametrize("kind", KINDS)
FILLS = ("soft", "hard", "sample")


def text(n: int, seed: int = 0, null: bool = True, longest: int = 9, known: bool = False) -> Case:
    """Random sentences, among them some with an empty side."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, (n, 2))
    data = [([*rng.choice([*"abcdef"], l)], [*rng.choice([*"ABCDEF"], m)]) for l, m in lengths]
    links = [
        [(int(rng.integers(len(es))), int(rng.integers(len(fs))))] if es and fs else None
        for es, fs in data
    ]
    return Case(data, links if known else None, null, seed, reach=2)


class Bench:
    def __init__(self, kind: str, case: Case, **options: Any) -> None:
        self.case, self.corpus = case, case.corpus()
        self.core = core_of(kind, self.corpus, case, **options)
        self.params = random_params(self.core, case)

    def expect(self, shard: Any = None, **how: Any) -> Stats:
        chosen = self.corpus.everything if shard is None else shard
        return self.core.expect(self.params, chosen, EStep(stream=5, **how))


def arrays(stats: Stats) -> dict[str, np.ndarray]:
    return {name: np.array(np.asarray(counts)) for name, counts in stats.counts.items()}


def assert_same(left: Stats, right: Stats, tolerance: float) -> None:
    for name, counts in arrays(left).items():
        np.testing.assert_allclose(np.asarray(right.counts[name]), counts, tolerance, tolerance)
    for name in ("log_likelihood", "score", "items", "tokens"):
        assert getattr(right, name) == pytest.approx(getattr(left, name), rel=1e-12, abs=1e-12)


# the laws


class Bound:
    """The least that ``check_model`` asks for."""

    def __init__(self, kind: str, prior: float) -> None:
        self.kind, self.prior = kind, prior

    def _bind(self, case: Case) -> tuple[Any, BitextCorpus]:
        corpus = case.corpus()
        return core_of(self.kind, corpus, case, self.prior), corpus


@every_model
@pytest.mark.parametrize(("null", "known", "prior"), [(True, False, 1.0), (False, True, 1.7)])
def test_every_model_obeys_the_laws(kind: str, null: bool, known: bool, prior: float) -> None:
    report = check_model(Bound(kind, prior), text(7, 1, null, 5, known))
    report.raise_if_failed()
    assert [law.name for law in report] == list(LAWS)


@every_model
@pytest.mark.parametrize("prior", [1.0, 1.3])
@given(case=cases(most_pairs=4, longest=4))
@settings(max_examples=25, deadline=None)
def test_em_never_falls(kind: str, prior: float, case: Case) -> None:
    corpus = case.corpus()
    core = core_of(kind, corpus, case, prior)
    start = random_params(core, case._replace(zeros=0.0))
    trace = fit(core, corpus, sc.EM(max_iter=8, tol=0.0), init=start).trace
    assert (np.diff(trace.objective) >= -1e-9 * np.abs(trace.objective[1:]) - 1e-12).all()


@every_model
def test_every_learner_runs(kind: str) -> None:
    bench = Bench(kind, text(12, 2))
    learners = (
        sc.EM(max_iter=3, temper=(0.5, 1.0)),
        sc.HardEM(max_iter=3),
        sc.MonteCarloEM(max_iter=3, samples=3),
        sc.OnlineEM(max_iter=2, batch_size=4),
        sc.IncrementalEM(max_iter=2, batch_size=4),
        sc.VariationalBayes(max_iter=3),
        sc.Gibbs(max_iter=4, n_init=1),
    )
    for learner in learners:
        result = fit(bench.core, bench.corpus, learner, init=bench.params)
        assert np.isfinite(result.trace.log_likelihood[1:]).all(), learner
        assert all(np.isfinite(values).all() for values in result.params.values()), learner


# threads, blocks, shards


@every_model
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("fill", FILLS)
def test_threads_give_the_same_bits(kind: str, fill: str, known: bool) -> None:
    bench = Bench(kind, text(60, 3, known=known))
    first = bench.expect(fill=fill)
    counts = arrays(first)
    for threads in (2, 3, 4):
        again = bench.expect(fill=fill, threads=threads)
        for name, values in arrays(again).items():
            assert values.tobytes() == counts[name].tobytes(), (name, threads)
        assert (again.log_likelihood, again.score) == (first.log_likelihood, first.score)


@every_model
@pytest.mark.parametrize("block", [1, 37, 400])
@pytest.mark.parametrize("fill", FILLS)
def test_blocks_do_not_matter(
    kind: str, fill: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(kind, text(40, 4, known=True))
    whole = bench.expect(fill=fill)
    counts = arrays(whole)
    monkeypatch.setattr(shards, "BLOCK", block)
    cut = [(b.first, b.last) for b in bench.corpus.everything.blocks()]
    assert len(cut) > 1
    assert [first for first, _ in cut[1:]] == [last for _, last in cut[:-1]]
    assert_same(Stats(counts, *_figures(whole)), bench.expect(fill=fill), 1e-12)


def _figures(stats: Stats) -> tuple[float, float, float, float]:
    return stats.log_likelihood, stats.score, stats.items, stats.tokens


@every_model
@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("fill", FILLS)
def test_mini_batches_add_up(kind: str, fill: str, size: int) -> None:
    """Draws included: what is drawn for a pair depends on its number alone."""
    bench = Bench(kind, text(40, 5, known=True))
    batches = bench.corpus.shards(size, seed=1)
    assert sorted(n for b in batches for n in b.numbers) == bench.corpus.numbers.tolist()
    total = reduce(add, [bench.expect(batch, fill=fill) for batch in batches])
    assert_same(bench.expect(fill=fill), total, 1e-12)


@every_model
@pytest.mark.parametrize("fill", FILLS)
def test_half_the_bits(kind: str, fill: str) -> None:
    """In 32 bits all is nearly the same."""
    case = text(40, 6)
    bench, short = Bench(kind, case), Bench(kind, case, dtype="float32")
    short.params = {
        name: values.astype(np.float32) if name == "translation" else values
        for name, values in bench.params.items()
    }
    left, right = bench.expect(fill=fill), short.expect(fill=fill)
    assert right.log_likelihood == pytest.approx(left.log_likelihood, rel=1e-6)
    if fill == "soft":  # one draw, or one of two good links, may fall otherwise
        for name, counts in arrays(left).items():
            np.testing.assert_allclose(np.asarray(right.counts[name]), counts, 1e-4, 1e-5)
    table = short.core.table
    again = table.maximise(right.counts["translation"], short.params["translation"], None)
    assert again.dtype == np.float32


@given(cases(most_pairs=6, longest=5))
@settings(max_examples=50, deadline=None)
def test_the_lexicon_is_the_same_in_pieces(case: Case) -> None:
    whole = case.corpus()
    place = whole.everything.occurrences
    target, n = whole.everything.target, whole.lexicon.n_targets
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "PIECE", 2)
        for threads in (1, 3):
            cut = lexicon.make_lexicon(place, target, n, threads)
            assert np.array_equal(cut.indptr, whole.lexicon.indptr)
            assert np.array_equal(cut.targets, whole.lexicon.targets)


@given(cases(most_pairs=4), cases(most_pairs=4))
@settings(max_examples=50, deadline=None)
def test_a_lexicon_grows(old: Case, more: Case) -> None:
    """Entries of two corpora together, with the words numbered on."""
    first = old._replace(null=True).corpus()
    like = (first.pairs.source.words, first.pairs.target.words)
    second = BitextCorpus(as_bitext(more.data, like=like), True)
    rows, columns = first.lexicon.rows(), first.lexicon.targets
    rows[rows == first.lexicon.n_sources] = second.lexicon.n_sources  # the empty word stays last
    grown = second.lexicon.with_pairs(rows, columns)
    sources = [*second.pairs.source.words, None]
    found = {
        (sources[row], second.pairs.target.words[f])
        for row, f in zip(grown.rows(), grown.targets, strict=True)
    }
    assert len(found) == len(grown)
    assert found == {*word_pairs(first), *word_pairs(second)}
    at = grown.find(rows, columns.astype(np.int64))
    assert np.array_equal(grown.targets[at], columns)
    assert np.array_equal(grown.rows()[at], rows)


# new text


def new_pairs(bench: Bench, data: Any) -> BitextCorpus:
    words = (bench.corpus.pairs.source.words, bench.corpus.pairs.target.words)
    return BitextCorpus(as_bitext(data, like=words), bench.case.null, lexicon=bench.corpus.lexicon)


@every_model
def test_old_pairs_read_anew_are_as_they_were(kind: str) -> None:
    bench = Bench(kind, text(30, 8))
    again = new_pairs(bench, bench.case.data)
    assert_same(bench.expect(), bench.expect(again.everything), 1e-12)
    for old, new in zip(_posteriors(bench, bench.corpus), _posteriors(bench, again), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-13)


def _posteriors(bench: Bench, corpus: BitextCorpus) -> list[np.ndarray]:
    return matrices(bench.core, bench.params, corpus.everything, EStep())


@every_model
@pytest.mark.parametrize("null", [True, False])
def test_new_words_and_lengths(kind: str, null: bool) -> None:
    """What was never seen has its small chance; lengths between old ones, and beyond them."""
    bench = Bench(kind, Case([(["a"], ["X"]), (["a", "b"] * 3, ["X", "Y"])], None, null, 1))
    data = [(["a", "new"], ["Y", "neu", "X"]), (["b"] * 4, ["X"]), (["b"] * 9, ["neu"] * 11)]
    new = new_pairs(bench, data)
    for fill in FILLS:
        how = EStep(fill=fill)
        found = matrices(bench.core, bench.params, new.everything, how)
        for (es, fs), matrix in zip(data, found, strict=True):
            assert matrix.shape == (len(es) + 1, len(fs))
            np.testing.assert_allclose(matrix.sum(axis=0), 1.0, atol=1e-12)
        stats = bench.core.expect(bench.params, new.everything, how)
        assert np.isfinite(stats.log_likelihood)
        for name, counts in arrays(stats).items():
            assert counts.shape == bench.core.families[name].zeros().shape


@every_model
def test_company_does_not_change_a_pair(kind: str) -> None:
    """A new pair is aligned alone as it is beside pairs with words that are new."""
    bench = Bench(kind, text(20, 9))
    rows = np.array([e is not None for e, _ in word_pairs(bench.corpus)])
    bench.params["translation"][rows] = 0.0
    data = [(es, fs) for es, fs in bench.case.data if es and fs][:3]
    alone = _posteriors(bench, new_pairs(bench, data))
    beside = _posteriors(bench, new_pairs(bench, [*data, (["new"], ["neu"])]))
    for left, right in zip(alone, beside, strict=False):
        np.testing.assert_allclose(right, left, atol=1e-12)


def test_every_case_has_empty_sides() -> None:
    """What is tested above includes pairs that are left out."""
    case: Mapping[str, Any] = text(40, 4)._asdict()
    assert any(not es or not fs for es, fs in case["data"])
