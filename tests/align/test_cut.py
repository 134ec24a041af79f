"""A corpus is cut into shards by its links: all that is learned from several is that of one."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import softcount as sc
from softcount.align import data
from softcount.align import kernels as shapes
from softcount.align.core import AgreementCore
from softcount.align.data import BidirectionalCorpus, BidirectionalShard, BitextCorpus, BitextShard
from softcount.core.fit import WarmStart, fit
from softcount.core.laws import LAWS, check_model
from softcount.core.records import pack, unpack
from softcount.core.types import EStep, SparseCounts, Stats
from softcount.engines import Local
from softcount.text.bitext import as_bitext
from tests.align.cases import KINDS, Case, cases, core_of, random_params
from tests.align.small import AWKWARD, BOTH, LEARNERS, MODELS, ONE_WAY, directions
from tests.align.small import many as many_pairs
from tests.align.test_shards import FILLS, Bound, text

every_model = pytest.mark.parametrize("kind", KINDS)
every_fill = pytest.mark.parametrize("fill", FILLS)
FEW_LINKS = 150


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the maximum number of links of a shard."""
    return lambda most: monkeypatch.setattr(data, "CUT", most)


@pytest.fixture
def is_cut(cut: Callable[[float], None]) -> None:
    cut(FEW_LINKS)


def sides(case: Case) -> BidirectionalCorpus:
    there = case.corpus()
    known = there.constraints and there.constraints.reversed()
    back = BitextCorpus(there.pairs.flipped(), case.null, known)
    return BidirectionalCorpus(there, back, mirrored=True)


def as_sent(shard: BitextShard) -> BitextShard:
    """The shard as a worker gets it: with the part of the lexicon that it needs."""
    sent: BitextShard = pickle.loads(pickle.dumps(shard))
    return sent


def agreeing(case: Case, kind: str, agree: bool) -> tuple[Any, BidirectionalCorpus, Any]:
    corpus = sides(case)
    cores = [core_of(kind, side, case) for side in (corpus.forward, corpus.backward)]
    core = AgreementCore("both", cores[0], cores[1], agree)
    return core, corpus, random_params(core, case)


def assert_same(left: Stats, right: Stats, tolerance: float = 1e-12) -> None:
    assert left.counts.keys() == right.counts.keys()
    for name, counts in left.counts.items():
        found = np.asarray(right.counts[name])
        np.testing.assert_allclose(found, np.asarray(counts), tolerance, tolerance, err_msg=name)
    for name in ("log_likelihood", "score", "items", "tokens"):
        assert getattr(right, name) == pytest.approx(getattr(left, name), rel=tolerance)
    for name in ("expected", "ahead"):
        figures = getattr(left.uncounted, name), getattr(right.uncounted, name)
        assert figures[1] == pytest.approx(figures[0], rel=tolerance, abs=tolerance)


def assert_same_bits(left: Stats, right: Stats) -> None:
    for name, counts in left.counts.items():
        assert np.asarray(right.counts[name]).tobytes() == np.asarray(counts).tobytes(), name
    assert (right.log_likelihood, right.score) == (left.log_likelihood, left.score)


# the cut


def test_few_links_are_one_shard_without_copies() -> None:
    corpus = Case([(["a", "b"], ["X"]), (["b"], ["Y", "X"])], None, True, 0).corpus()
    (shard,) = corpus.shards()
    assert shard is corpus.everything
    assert shard.lexicon is corpus.lexicon
    assert shard.entries is None
    assert np.shares_memory(shard.source.tokens, corpus.pairs.source.tokens)


@pytest.mark.parametrize("known", [False, True])
def test_shards_are_views_of_consecutive_pairs(known: bool, is_cut: None) -> None:
    corpus = text(60, 1, known=known).corpus()
    parts = corpus.shards()
    assert len(parts) > 4
    assert [n for part in parts for n in part.numbers.tolist()] == corpus.numbers.tolist()
    kept = corpus.everything
    for part in parts:
        l, m = part.sizes
        assert np.sum((l + 1) * m) <= FEW_LINKS or len(part) == 1
        for side, whole in ((part.source, kept.source), (part.target, kept.target)):
            assert np.shares_memory(side.tokens, whole.tokens)
        assert part.lexicon is corpus.lexicon
        assert part.entries is None
        sent = as_sent(part)
        assert np.array_equal(sent.entries, np.unique(sent.entries))
        assert len(sent.entries) == len(sent.lexicon) < len(corpus.lexicon)
    l, m = corpus.sizes
    assert np.array_equal(np.concatenate([part.sizes[0] for part in parts]), l)
    assert np.array_equal(np.concatenate([part.sizes[1] for part in parts]), m)


def test_the_cut_follows_the_links(cut: Callable[[float], None]) -> None:
    """A pair with more links than a shard may have is a shard alone."""
    cut(13)  # 4 of the first pair and 9 of the second, in the direction that has more
    words = [*"abcdefgh"]
    pairs = [(words[:1], words[:2]), (words[:2], words[:3]), (words, words), (["a"], ["b"])]
    parts = Case(pairs, None, True, 0).corpus().shards()
    assert [part.numbers.tolist() for part in parts] == [[0, 1], [2], [3]]


def test_both_directions_are_cut_at_the_same_pairs(cut: Callable[[float], None]) -> None:
    """Also where one direction has many more links than the other: l · m + m beside l · m + l."""
    cut(40)
    rng = np.random.default_rng(0)
    lengths = np.stack([rng.integers(1, 3, 60), rng.integers(1, 12, 60)], axis=1)
    lengths[30:] = lengths[30:, ::-1]
    pairs = [([*"abc" * 9][:l], [*"XYZ" * 9][:m]) for l, m in lengths]
    corpus = sides(Case(pairs, None, True, 0))
    parts = corpus.shards()
    assert len(parts) > 10
    for part in parts:
        assert np.array_equal(part.forward.numbers, part.backward.numbers)
        for side in (part.forward, part.backward):
            assert side.arrays.offsets[-1] <= 40 or len(side) == 1


@given(cases(most_pairs=6, longest=5))
@settings(max_examples=60, deadline=None)
def test_the_lexicon_is_that_of_one_shard(case: Case) -> None:
    whole = case.corpus()
    with pytest.MonkeyPatch.context() as patch:
        for most in (1, 20, 60):
            patch.setattr(data, "CUT", most)
            parts = case.corpus()
            assert np.array_equal(parts.lexicon.indptr, whole.lexicon.indptr)
            assert np.array_equal(parts.lexicon.targets, whole.lexicon.targets)
            assert parts.lexicon.targets.dtype == whole.lexicon.targets.dtype
            for part in map(as_sent, parts.shards()):
                chosen = slice(None) if part.entries is None else part.entries
                assert np.array_equal(parts.lexicon.rows()[chosen], part.lexicon.rows())
                assert np.array_equal(parts.lexicon.targets[chosen], part.lexicon.targets)


def test_further_entries_are_in_the_lexicon_of_all_shards(is_cut: None) -> None:
    case = text(40, 2)
    corpus = BitextCorpus(as_bitext(case.data), True, more=(np.array([0, 3]), np.array([5, 1])))
    assert len(corpus.shards()) > 2
    assert (corpus.lexicon.find(np.array([0, 3]), np.array([5, 1])) >= 0).all()
    for part in map(as_sent, corpus.shards()):
        assert np.array_equal(corpus.lexicon.targets[part.entries], part.lexicon.targets)


# E-steps


@every_model
@every_fill
@pytest.mark.parametrize("known", [False, True])
def test_shards_add_up(kind: str, fill: str, known: bool, is_cut: None) -> None:
    """Draws included: what is drawn for a pair depends on its number alone."""
    case = text(60, 3, known=known)
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params = random_params(core, case)
    for temper in (1.0, 0.5):
        how = EStep(fill=fill, stream=5, temper=temper, theory=fill == "soft")
        parts = corpus.shards()
        assert len(parts) > 4
        each = [core.expect(params, part, how) for part in parts]
        sent = [core.expect(params, as_sent(part), how) for part in parts]
        assert all(isinstance(stats.counts["translation"], SparseCounts) for stats in sent)
        assert_same(core.expect(params, corpus.everything, how), reduce(add, each))
        assert_same_bits(reduce(add, each), reduce(add, sent))


@every_model
@every_fill
def test_the_counts_of_translations_do_not_depend_on_the_order(
    kind: str, fill: str, is_cut: None
) -> None:
    """In any order, in any groups, in one array or in many: the same bits."""
    case = text(60, 3)
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params, how = random_params(core, case), EStep(fill=fill, stream=5)
    parts = corpus.shards()
    each = [np.asarray(core.expect(params, part, how).counts["translation"]) for part in parts]
    rng = np.random.default_rng(0)
    wanted = sum(each[1:], each[0])
    for _ in range(5):
        order = rng.permutation(len(each))
        middle = int(rng.integers(1, len(each)))
        groups = (sum(each[n] for n in some) for some in (order[:middle], order[middle:]))
        assert sum(groups).tobytes() == wanted.tobytes()
    with Local(1).open(parts, threads_inside=True) as session:
        found = session.expect(core.expect, params, how).counts["translation"]
    assert isinstance(found, np.ndarray)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("kind", ["model 1", "chain"])
@pytest.mark.parametrize("agree", [False, True])
def test_shards_of_both_directions_add_up(kind: str, agree: bool, is_cut: None) -> None:
    core, corpus, params = agreeing(text(60, 4), kind, agree)
    whole = BidirectionalShard(corpus.forward.everything, corpus.backward.everything)
    parts = corpus.shards()
    each = [core.expect(params, part, EStep()) for part in parts]
    assert len(each) > 4
    # counted in each direction by itself, and in one for both
    assert not whole.mirrored
    assert all(part.mirrored for part in parts)
    wanted = reduce(add, each)
    assert_same(core.expect(params, whole, EStep()), wanted)
    with Local(1).open(parts, threads_inside=True) as session:
        found = session.expect(core.expect, params, EStep()).counts
    for name in ("forward.translation", "backward.translation"):
        assert np.asarray(found[name]).tobytes() == np.asarray(wanted.counts[name]).tobytes()


@every_model
def test_places_that_a_shard_does_not_touch_are_left_out(
    kind: str, is_cut: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = text(60, 5, longest=12)
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params, parts = random_params(core, case), corpus.shards()
    dense = [core.expect(params, part, EStep()).counts for part in parts]
    monkeypatch.setattr(shapes, "LARGE", 1)
    sparse = [core.expect(params, as_sent(part), EStep()).counts for part in parts]
    for left, right in zip(dense, sparse, strict=True):
        for name, counts in left.items():
            assert isinstance(right[name], SparseCounts) == (name in ("translation", "places"))
            assert np.asarray(right[name]).tobytes() == np.asarray(counts).tobytes()
            if isinstance(right[name], SparseCounts):
                assert np.array_equal(right[name].index, np.unique(right[name].index))


@every_model
@pytest.mark.parametrize(("null", "known", "prior"), [(True, False, 1.0), (False, True, 1.7)])
def test_every_model_obeys_the_laws(
    kind: str, null: bool, known: bool, prior: float, cut: Callable[[float], None]
) -> None:
    cut(20)
    case = text(7, 1, null, 5, known)
    assert len(case.corpus().shards()) > 2
    report = check_model(Bound(kind, prior), case)
    report.raise_if_failed()
    assert [law.name for law in report] == list(LAWS)


@every_model
def test_threads_do_not_matter(kind: str, is_cut: None) -> None:
    case = text(80, 6)
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    params = random_params(core, case)
    results = []
    for threads in (1, 2, 4):
        with Local(threads).open(corpus.shards(), threads_inside=True) as session:
            results.append(session.expect(core.expect, params, EStep()))
    for other in results[1:]:
        assert_same_bits(results[0], other)


# what is sent to workers


def bench(kind: str) -> tuple[Any, Any, Any]:
    case = text(60, 7, known=True)
    if kind.startswith("both"):
        return agreeing(case, "chain", kind == "both, agree")
    corpus = case.corpus()
    core = core_of(kind, corpus, case)
    return core, corpus, random_params(core, case)


SENT = (*KINDS, "both", "both, agree")


@pytest.mark.parametrize("kind", SENT)
@pytest.mark.parametrize("most", [np.inf, FEW_LINKS])
def test_cores_and_shards_are_pickled_without_what_is_computed(
    kind: str, most: float, cut: Callable[[float], None]
) -> None:
    cut(most)
    core, corpus, params = bench(kind)
    before = [pickle.dumps(part) for part in (core, *corpus.shards())]
    results = [core.expect(params, part, EStep()) for part in corpus.shards()]
    for family in core.families.values():
        family.update("mean_field", family.zeros(), family.uniform(), np.random.default_rng(0))
        family.divergence(family.zeros(), family.uniform())
    assert [pickle.dumps(part) for part in (core, *corpus.shards())] == before
    again, *parts = (pickle.loads(part) for part in before)
    for part, stats in zip(parts, results, strict=True):
        assert_same_bits(stats, again.expect(params, part, EStep()))
    arrays = [array for part in corpus.shards() for array in pack(part)[1].values()]
    assert sum(map(len, before[1:])) < sum(array.nbytes for array in arrays) + 4000 * len(parts)


@pytest.mark.parametrize("kind", SENT)
def test_shards_are_records(kind: str, is_cut: None) -> None:
    core, corpus, params = bench(kind)
    mini_batches = corpus.shards(7, 1)
    for part in (*corpus.shards(), *mini_batches[:2]):
        structure, kept = pack(part)
        again = unpack(structure, kept)
        assert_same_bits(core.expect(params, part, EStep()), core.expect(params, again, EStep()))


def test_a_corpus_is_pickled_as_what_it_was_made_from(is_cut: None) -> None:
    corpus = text(60, 7, known=True).corpus()
    before = len(pickle.dumps(corpus))
    lexicon = corpus.lexicon
    assert len(pickle.dumps(corpus)) == before
    again = pickle.loads(pickle.dumps(corpus))
    assert np.array_equal(again.lexicon.targets, lexicon.targets)
    assert len(again.shards()) == len(corpus.shards())


# estimators


def without_repeats(n: int, **settings: Any) -> list[tuple[str, str]]:
    """Pairs in which no word comes twice: two words alike would be a tie, for rounding to break."""
    pairs = [(e.split(), f.split()) for e, f in many_pairs(n, **settings)]
    return [(" ".join(dict.fromkeys(e)), " ".join(dict.fromkeys(f))) for e, f in pairs]


PAIRS = [*without_repeats(60), ("", "T1 T2"), ("S1", ""), *without_repeats(20, seed=6)]


def fitted(make: Callable[..., Any], patch: pytest.MonkeyPatch, most: float, **more: Any) -> Any:
    patch.setattr(data, "CUT", most)
    return make(**more).fit(PAIRS)


def assert_alike_models(one: Any, several: Any) -> None:
    for name, values in one.raw_params_.items():
        found = np.asarray(several.raw_params_[name])
        np.testing.assert_allclose(found, np.asarray(values), 1e-9, 1e-12, err_msg=name)
    assert one.trace_.objective == pytest.approx(several.trace_.objective, rel=1e-9, nan_ok=True)
    assert one.align() == several.align()
    for mine, other in zip(one.posteriors(), several.posteriors(), strict=True):
        np.testing.assert_allclose(other, mine, 1e-6, 1e-9)
    np.testing.assert_allclose(several.score_samples(), one.score_samples(), 1e-9, 1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_every_aligner_learns_the_same_from_several_shards(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = fitted(MODELS[name], monkeypatch, np.inf)
    several = fitted(MODELS[name], monkeypatch, 1000)
    assert one.signature_.endswith("1 shard")
    assert not several.signature_.endswith("1 shard")
    warm = [len(trace) for trace in one.trace_.warm_up]
    assert [len(trace) for trace in several.trace_.warm_up] == warm
    assert_alike_models(one, several)
    if name != "GibbsAligner":
        assert several.align(AWKWARD) == one.align(AWKWARD)


@pytest.mark.parametrize("settings", [{"agree": False}, {"model": "ibm1"}, {"dtype": "float32"}])
def test_both_directions_learn_the_same_from_several_shards(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [fitted(sc.Aligner, monkeypatch, most, **settings) for most in (np.inf, 1000)]
    assert models[0].align() == models[1].align()
    for one, several in zip(*map(directions, models), strict=True):
        for name, values in one.raw_params_.items():
            np.testing.assert_allclose(
                np.asarray(several.raw_params_[name]), np.asarray(values), 1e-4, 1e-6
            )


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns_from_several_shards(
    learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_ = {"learner": LEARNERS[learner], "smoothing": 0.1, "random_state": 1}
    models = [fitted(ONE_WAY["IBM2"], monkeypatch, most, **given_) for most in (np.inf, 1000)]
    if learner != "Gibbs":  # whose parameters are drawn from counts that round otherwise
        assert_alike_models(*models)
    assert np.isfinite(models[1].trace_.log_likelihood).all()


@pytest.mark.parametrize("name", MODELS)
def test_more_pairs_in_several_shards(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what is saved: the expected counts of all pairs."""
    more = [*without_repeats(30, words=70, seed=9), *AWKWARD]
    models = []
    for most in (np.inf, 1000):
        models.append(fitted(MODELS[name], monkeypatch, most).partial_fit(more))
    one, several = models
    for name_, values in one.raw_params_.items():
        found = np.asarray(several.raw_params_[name_])
        np.testing.assert_allclose(found, np.asarray(values), 1e-9, 1e-12, err_msg=name_)
    assert one.align() == several.align()
    (left, _), (right, _) = one.stored(), several.stored()
    assert left.keys() == right.keys()
    for key, values in left.items():
        np.testing.assert_allclose(right[key], values, 1e-8, 1e-10, err_msg=key)


@pytest.mark.parametrize("name", BOTH)
def test_decoding_by_every_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, several = (fitted(BOTH[name], monkeypatch, most) for most in (np.inf, 1000))
    for method in ("product", "soft-union", "forward", "backward", "grow-diag-final-and"):
        assert one.align(method=method) == several.align(method=method), method
        left, right = (
            model.links(method=method, probabilities=True)[1] for model in (one, several)
        )
        np.testing.assert_allclose(right, left, 1e-6, 1e-9)


def test_a_sampled_direction_that_learns_more_forgets_the_samples() -> None:
    """The marginals are those of the pairs that were sampled, and of no others."""
    model = MODELS["GibbsAligner"]().fit(PAIRS)
    side = model.forward_.partial_fit(PAIRS[9:18])
    assert [matrix.shape for matrix in side.posteriors()] == [
        (len(e.split()), len(f.split())) for e, f in PAIRS[9:18]
    ]


def test_a_warm_start_takes_the_same_shards(is_cut: None) -> None:
    case = text(60, 8)
    corpus = case.corpus()
    simple, core = (core_of(kind, corpus, case) for kind in ("model 1", "chain"))
    start = WarmStart(random_params(core, case), [simple])
    result = fit(core, corpus, sc.EM(max_iter=3, tol=0.0), init=start)
    (warm,) = result.trace.warm_up
    assert (np.diff(warm.objective) >= 0).all()
    assert (np.diff(result.trace.objective) >= 0).all()
    assert result.signature.endswith(f"{len(corpus.shards())} shards")


def test_development_pairs_and_new_ones_are_cut_as_well(is_cut: None) -> None:
    model = ONE_WAY["IBM1"]().fit(PAIRS)
    corpus = model._bind_more(model.core_, [*PAIRS[::-1], *AWKWARD])
    parts = corpus.shards()
    assert len(parts) > 4
    assert all(part.new for part in parts)
    each = [model.core_.expect(model.raw_params_, part, EStep()) for part in parts]
    whole = model.core_.expect(model.raw_params_, corpus.everything, EStep())
    assert_same(whole, reduce(add, each))


def test_everything_and_its_parts_decode_alike(is_cut: None) -> None:
    model = ONE_WAY["HMMAligner"]().fit(PAIRS)
    corpus = model._corpus
    whole = [
        matrix[:-1].copy()
        for block, links in model.core_.posterior_blocks(
            model.raw_params_, corpus.everything, threads=1
        )
        for matrix in block.matrices(links)
    ]
    parts = [matrix for matrix in model.posteriors() if matrix.size]
    for ours, theirs in zip(whole, parts, strict=True):
        np.testing.assert_allclose(theirs, ours, 1e-12, 1e-15)
