"""Many shards: the same as one shard; what is sent; what is small; one after the other."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core.laws import check_model
from softcount.core.records import pack, unpack
from softcount.core.types import ColumnCounts, EStep, Params, Stats
from softcount.core.verdict import Verdict
from softcount.engines.blocks import tree_sum
from softcount.families import Categorical
from softcount.grammar import data as tree_data
from softcount.grammar.core import Grammar
from softcount.grammar.data import SpanConstraints, TreeCorpus, TreeShard
from softcount.grammar.dense import DenseGrammar, DenseSymbols
from softcount.hmm import data as word_data
from softcount.hmm.data import SentenceCorpus, SentenceShard, StateSets
from softcount.hmm.emissions import WordEmission
from softcount.text.vocabulary import Vocabulary
from tests.grammar.cases import LEARNERS, SENTENCES, TOY

MOST = 400
"""Sum of n³ of a shard here: one to four sentences."""
TEXT = [*SENTENCES, [], *SENTENCES[1:3], *SENTENCES[4:]]
KNOWN = [[(2, 7)], None, [(0, 5), (6, 10)], [(1, 7)], None, [(0, 2), (2, 8)]]
BRACKETS = [*KNOWN, None, *KNOWN[1:3], *KNOWN[4:]]
WEIGHTS = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(TEXT))
TREE = "(S (NP (D the) (N cat)) (VP (V sleeps)))"
TREES = [TREE if words == ["the", "cat", "sleeps"] else None for words in TEXT]
BANK = [
    TREE,
    "(S (NP she) (VP (V sees) (NP (D the) (N dog))))",
    "(S (NP (NP (D a) (N dog)) (PP (P near) (NP (D a) (N cat)))) (VP (V sleeps)))",
    "(S (S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N telescope)))) (C and)"
    " (S (NP she) (VP (VP (V sleeps)) (PP (P with) (NP (N dog))))))",
]

Make = Callable[..., Any]
CASES: dict[str, tuple[Make, Any, dict[str, Any]]] = {
    "dense": (lambda **o: sc.PCFG(2, 3, **o), TEXT, {}),
    "dense, float32": (lambda **o: sc.PCFG(2, 3, dtype="float32", **o), TEXT, {}),
    "dense, brackets": (lambda **o: sc.PCFG(2, 3, **o), TEXT, {"brackets": BRACKETS}),
    "dense, trees": (lambda **o: sc.PCFG(4, 5, **o), TEXT, {"trees": TREES}),
    "dense, weights": (lambda **o: sc.PCFG(2, 3, **o), TEXT, {"sample_weight": WEIGHTS}),
    "dense, frozen": (lambda **o: sc.PCFG(2, 3, frozen=["rules"], **o), TEXT, {}),
    "rules": (lambda **o: sc.PCFG.from_rules(TOY, **o), TEXT, {}),
    "rules, brackets": (
        lambda **o: sc.PCFG.from_rules(TOY, **o),
        TEXT,
        {"brackets": BRACKETS, "sample_weight": WEIGHTS},
    ),
    "rules, trees": (
        lambda **o: sc.PCFG.from_rules(TOY, **o),
        TEXT,
        {"trees": TREES},
    ),
    "rules, pruned": (lambda **o: sc.PCFG.from_rules(TOY, prune=1e-3, **o), TEXT, {}),
    "treebank": (
        lambda **o: sc.PCFG.from_treebank(BANK, **o),
        [*TEXT[1:3], ["the", "zebra", "sleeps"], *TEXT[4:5], ["she", "sees", "Zoe"], *TEXT[7:]],
        {},
    ),
}
HOWS = {
    "soft": EStep(theory=True),
    "hard": EStep(fill="hard"),
    "sampled": EStep(fill="sample", samples=3, stream=5),
    "tempered": EStep(temper=0.6),
    "hard, tempered": EStep(fill="hard", temper=0.6),
    "score": EStep(score_only=True),
}
cases = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def short_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_data, "SHARD_WORK", MOST)


@pytest.fixture(params=[False, True], ids=["all words", "own words"])
def own_words(request: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether shards that lack most of the words have tables of their own alone."""
    if request.param and "dense" not in request.node.callspec.params["name"]:
        pytest.skip("rules have no tables of words")
    monkeypatch.setattr(word_data, "MANY_WORDS", 0 if request.param else 1 << 12)
    return bool(request.param)


@dataclass(frozen=True)
class Bench:
    core: Grammar
    corpus: TreeCorpus
    params: Params

    def _bind(self, _: Any) -> tuple[Grammar, TreeCorpus]:
        """Return both, as estimators do."""
        return self.core, self.corpus

    def expect(self, shard: TreeShard, how: EStep) -> Stats:
        return self.core.expect(self.params, shard, how)


def bench_of(name: str, **options: Any) -> Bench:
    make, items, known = CASES[name]
    core, corpus = make(smoothing=0.1, **options)._bind(items, **known)
    rng = np.random.default_rng(3)
    return Bench(core, corpus, {n: family.random(rng) for n, family in core.families.items()})


def same(one: Stats, two: Stats, tolerance: float = 0.0) -> None:
    """To the bit or, with a tolerance, up to the order of sums."""
    for name, counts in one.counts.items():
        ours, theirs = np.asarray(counts), np.asarray(two.counts[name])
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=name)
        assert ours.tobytes() == theirs.tobytes() or tolerance
    for figure in ("log_likelihood", "score", "items", "tokens"):
        ours, theirs = getattr(one, figure), getattr(two, figure)
        assert ours == pytest.approx(theirs, rel=tolerance, abs=0), figure
    assert one.uncounted.expected == pytest.approx(two.uncounted.expected, rel=1e-12)


# the cut


@cases
def test_consecutive_sentences_as_views(name: str) -> None:
    corpus = bench_of(name).corpus
    shards, whole = corpus.shards(None), corpus.everything
    assert len(shards) > 3
    numbers = np.concatenate([shard.text.numbers for shard in shards])
    assert numbers.tolist() == list(range(len(whole)))
    assert corpus.shards(10**6, 0)[0].text.numbers.tolist() != numbers.tolist()
    spans = []
    for shard in shards:
        assert (np.diff(shard.text.indptr) ** 3).sum() <= MOST or len(shard) == 1
        assert np.shares_memory(shard.text.observed, whole.text.observed)
        assert (shard.constraints.sets is None) == (whole.constraints.sets is None)
        assert (shard.trees is None) == (whole.trees is None)
        if shard.constraints.sets is not None and len(shard.constraints.sets):
            assert np.shares_memory(shard.constraints.sets, whole.constraints.sets)
            spans += shard.constraints.sets.tolist()
            assert shard.first_sets[-1] == len(shard.constraints.sets)
        if shard.trees is not None and shard.trees.nnz:
            assert np.shares_memory(shard.trees.indices, whole.trees.indices)
    if whole.constraints.sets is not None:
        assert spans == whole.constraints.sets.tolist()


def test_what_is_small_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = bench_of("rules").corpus
    work = int((np.diff(corpus.everything.text.indptr) ** 3).sum())
    monkeypatch.setattr(tree_data, "SHARD_WORK", work)
    assert corpus.shards(None)[0] is corpus.everything
    monkeypatch.setattr(tree_data, "SHARD_WORK", work - 1)
    assert len(corpus.shards(None)) == 2


@cases
def test_put_together_again(name: str) -> None:
    corpus = bench_of(name).corpus
    again, whole = TreeShard.concatenate(corpus.shards(None)), corpus.everything
    pairs = [(again.text.indptr, whole.text.indptr), (again.text.observed, whole.text.observed)]
    if whole.constraints.sets is not None:
        pairs.append((again.constraints.sets, whole.constraints.sets))
        pairs.append((again.constraints.sizes, whole.constraints.sizes))
    if whole.trees is not None:
        pairs += [(getattr(again.trees, a), getattr(whole.trees, a)) for a in ("data", "indices")]
        assert again.trees.indptr.tolist() == whole.trees.indptr.tolist()
    for ours, theirs in pairs:
        assert ours.tobytes() == theirs.tobytes()


# the E-step


@cases
@pytest.mark.parametrize("how", HOWS)
def test_many_shards_are_as_one(name: str, how: str, own_words: bool) -> None:
    bench = bench_of(name)
    parts = [bench.expect(shard, HOWS[how]) for shard in bench.corpus.shards(None)]
    whole = bench.expect(bench.corpus.everything, HOWS[how])
    assert len(parts) > 3
    same(tree_sum(parts), whole, 1e-5 if "float32" in name else 1e-12)


@cases
def test_threads_do_not_matter(name: str) -> None:
    bench = bench_of(name)
    for shard in bench.corpus.shards(None):
        same(*(bench.expect(shard, EStep(threads=t)) for t in (1, 3)))


@pytest.mark.parametrize("name", ["dense", "dense, trees", "dense, weights"])
def test_few_words_leave_as_few_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers as of all words, to the bit."""
    bench = bench_of(name)
    for how in HOWS.values():
        if how.score_only:
            continue
        monkeypatch.setattr(word_data, "MANY_WORDS", 1 << 12)
        dense = [bench.expect(shard, how) for shard in bench.corpus.shards(None)]
        monkeypatch.setattr(word_data, "MANY_WORDS", 0)
        sparse = [bench.expect(shard, how) for shard in bench.corpus.shards(None)]
        assert ColumnCounts in {type(part.counts["words"]) for part in sparse}
        assert {type(part.counts["words"]) for part in dense} == {np.ndarray}
        for one, two in zip(sparse, dense, strict=True):
            same(one, two)


def test_memory_of_a_large_vocabulary() -> None:
    """A few sentences of a large vocabulary need much less than a table of it."""
    k, t, v = 2, 10, 400_000
    names = tuple(f"N{n}" for n in range(k)), tuple(f"P{n}" for n in range(t))
    symbols = DenseSymbols(*names, Vocabulary(["of", "no", "use"]), np.ones(3, np.int64))
    words = WordEmission(Categorical((t, v)), (t, v))
    root, rules = Categorical((1, k + t)), Categorical((k, (k + t) ** 2))
    core = DenseGrammar(symbols, root, rules, words)
    rng = np.random.default_rng(0)
    params = {name: family.random(rng) for name, family in core.families.items()}
    tokens, sets = rng.integers(0, v, 60).astype(np.int32), np.zeros(60, np.int32)
    states = StateSets.all_of(t)
    text = SentenceShard(
        np.arange(6), tokens, np.arange(0, 61, 10), sets, states, np.ones(6), n_words=v
    )
    corpus = TreeCorpus(SentenceCorpus(text), SpanConstraints.unconstrained(k))
    for how in (EStep(), EStep(fill="hard"), EStep(fill="sample"), EStep(score_only=True)):
        core.expect(params, corpus.everything, how)  # compiled
        tracemalloc.start()
        stats = core.expect(params, corpus.select(np.arange(6)), how)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < t * v * 8 / 4  # counting the words takes 8 bytes for each
        if not how.score_only:
            assert isinstance(stats.counts["words"], ColumnCounts)


# learning


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("dense, float32", "rules, pruned")])
def test_laws(name: str, own_words: bool) -> None:
    bench = bench_of(name)
    assert len(bench.corpus.shards(None)) > 3
    check_model(bench, None, params=bench.params).raise_if_failed()


@cases
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner(name: str, learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits go through, threads do not matter, and what cannot fall does not."""
    monkeypatch.setattr(word_data, "MANY_WORDS", 0)
    make, items, known = CASES[name]
    if learner == "CollapsedGibbs" and "sample_weight" in known:
        pytest.skip("a collapsed sampler takes every sentence once")
    start = {"init": "random"} if learner == "restarts" else {}
    options = {"learner": LEARNERS[learner], "random_state": 0, "smoothing": 0.1, **start}
    fits = [make(engine=sc.engines.Local(t), **options).fit(items, **known) for t in (1, 2)]
    for table, values in fits[0].raw_params_.items():
        assert np.asarray(values).tobytes() == np.asarray(fits[1].raw_params_[table]).tobytes()
    assert fits[0].trace_.objective.tobytes() == fits[1].trace_.objective.tobytes()
    assert fits[0].verdict_ is not Verdict.FELL


@pytest.mark.parametrize("name", [name for name in CASES if name != "rules, pruned"])
def test_incremental_em_never_falls(name: str, own_words: bool) -> None:
    """With an M-step after every shard of the corpus's own cut."""
    make, items, known = CASES[name]
    learner = sc.IncrementalEM(batch_size=None, max_iter=6, tol=0)
    model = make(learner=learner, random_state=1, smoothing=0.1).fit(items, **known)
    assert int(model.fit_.signature.split()[-2]) > 3  # shards
    objective = model.trace_.objective
    assert (np.diff(objective) >= -(1e-4 if "float32" in name else 1e-9)).all()
    assert objective[-1] > objective[1]


@pytest.mark.parametrize("name", ["dense", "dense, trees", "rules, trees", "treebank"])
def test_a_batch_fit_is_that_of_one_shard(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, items, known = CASES[name]
    options = {"learner": sc.EM(max_iter=4, tol=0), "random_state": 0, "smoothing": 0.1}
    many = make(**options).fit(items, **known)
    monkeypatch.setattr(tree_data, "SHARD_WORK", 1 << 25)
    one = make(**options).fit(items, **known)
    assert "1 shard" in one.fit_.signature
    assert "1 shard" not in many.fit_.signature
    np.testing.assert_allclose(many.trace_.objective, one.trace_.objective, rtol=1e-10)
    for table, values in one.params_.items():
        np.testing.assert_allclose(many.params_[table], values, rtol=1e-8, atol=1e-10)


# inference


@pytest.mark.parametrize("name", ["dense", "dense, trees", "rules", "treebank"])
def test_inference_does_not_depend_on_the_tables_of_words(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, items, known = CASES[name]
    model = make(learner=sc.EM(max_iter=2), random_state=0).fit(items, **known)
    some = [["the", "dog", "sleeps"], ["she", "sees", "zebra"][: 3 if name != "rules" else 2]]

    def answers() -> list[Any]:
        posterior = model.posterior(some, threshold=0.0)
        return [
            [str(tree) for tree in model.predict(some)],
            [str(tree) for tree in model.predict(some, method="labelled")],
            str(model.k_best(some, 3)),
            str(model.sample_trees(some, 2)),
            model.score_samples(some).tolist(),
            posterior.brackets,
            list(posterior.rules.items()),
            {name: table.tolist() for name, table in model.expected_counts(some).items()},
        ]

    monkeypatch.setattr(word_data, "MANY_WORDS", 0)
    few = answers()
    monkeypatch.setattr(word_data, "MANY_WORDS", 1 << 12)
    assert answers() == few


# what is sent


@cases
def test_what_is_sent_is_small_and_gives_the_same_bits(name: str, own_words: bool) -> None:
    bench = bench_of(name)
    before = [len(pickle.dumps(shard)) for shard in bench.corpus.shards(None)]
    of_core = len(pickle.dumps(bench.core))
    shards = bench.corpus.shards(None)
    core = pickle.loads(pickle.dumps(bench.core))
    for how in HOWS.values():
        for n, shard in enumerate(shards):
            here = bench.expect(shard, how)
            assert len(pickle.dumps(shard)) == before[n]  # without what the E-step kept in it
            there = core.expect(bench.params, pickle.loads(pickle.dumps(shard)), how)
            same(here, there)
            same(here, pickle.loads(pickle.dumps(here)))
            recorded = unpack(*pack(shard))
            assert isinstance(recorded, TreeShard)
            same(here, core.expect(bench.params, recorded, how))
    assert bench.core.vocabulary.numbers
    assert len(pickle.dumps(bench.core)) == of_core


@cases
def test_families_are_sent_too(name: str) -> None:
    """M-steps on another machine have the same bits."""
    bench = bench_of(name)
    core = pickle.loads(pickle.dumps(bench.core))
    assert list(core.families) == list(bench.core.families)
    stats = bench.expect(bench.corpus.everything, EStep())
    for table, family in bench.core.families.items():
        old, counts = np.asarray(bench.params[table]), stats.counts[table]
        for update in ("maximise", "mean_field", "draw"):
            results = [
                getattr(one, update)(counts, old, np.random.default_rng(0))
                for one in (family, core.families[table])
            ]
            assert results[0].tobytes() == results[1].tobytes()


# the collapsed sampler

sampled = pytest.mark.parametrize("name", [n for n in CASES if "sample_weight" not in CASES[n][2]])


@sampled
def test_the_collapsed_sampler_takes_all_shards(name: str, own_words: bool) -> None:
    bench = bench_of(name, learner=sc.CollapsedGibbs())
    one = bench.core.collapse([bench.corpus.everything], bench.params, 7)
    many = bench.core.collapse(bench.corpus.shards(None), bench.params, 7)
    for stream in range(3):
        for ours, theirs in zip(one.cells, many.cells, strict=True):
            assert ours.tolist() == theirs.tolist()
        assert one.log_joint() == many.log_joint()
        one.sweep(stream)
        many.sweep(stream)


def test_the_collapsed_sampler_numbers_words_by_the_vocabulary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_of("dense", learner=sc.CollapsedGibbs())
    samplers = []
    for many_words in (0, 1 << 12):
        monkeypatch.setattr(word_data, "MANY_WORDS", many_words)
        shards = [pickle.loads(pickle.dumps(shard)) for shard in bench.corpus.shards(None)]
        sampler = bench.core.collapse(shards, bench.params, 7)
        sampler.sweep(1)
        samplers.append(sampler)
    words = np.bincount(bench.corpus.everything.text.observed)
    assert samplers[0].counts()["words"].sum(axis=0).tolist() == words.tolist()
    assert samplers[0].log_joint() == samplers[1].log_joint()


@sampled
@pytest.mark.parametrize("temper", [1.0, 0.5])
def test_a_sampler_continues_from_its_state(name: str, temper: float) -> None:
    bench = bench_of(name, learner=sc.CollapsedGibbs())
    shards = bench.corpus.shards(None)
    sampler = bench.core.collapse(shards, bench.params, 7)
    for stream in range(3):
        sampler.sweep(stream, temper)
    state = unpack(*pack(dict(sampler.state())))
    other = bench.core.collapse(shards, bench.params, 8)
    other.sweep(99, temper)
    other.restore(state)
    assert other.acceptance == sampler.acceptance
    kept = state["cells"].tolist()
    for stream in range(3, 7):
        for ours, theirs in zip(sampler.cells, other.cells, strict=True):
            assert ours.tolist() == theirs.tolist()
        assert sampler.log_joint() == other.log_joint()
        for table, counts in sampler.counts().items():
            assert counts.tobytes() == other.counts()[table].tobytes()
        sampler.sweep(stream, temper)
        other.sweep(stream, temper)
    assert sampler.acceptance == other.acceptance
    assert state["cells"].tolist() == kept  # a copy
