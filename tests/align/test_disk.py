"""Pairs on disk: what is learned and predicted from them has the bits of the same in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.align import data
from softcount.align.data import BitextCorpus, BitextShardOnDisk, unite_lexicons
from softcount.core.errors import DataError, StoreError
from softcount.engines import Local, Processes
from softcount.text.bitext import Bitext, as_bitext, build_pairs, open_pairs
from softcount.text.corpora import build_corpus, in_parts, open_corpus
from softcount.text.disk import ShardsOnAccess
from tests.align.small import AWKWARD, LEARNERS, MODELS, ONE_WAY, many
from tests.align.small import assert_alike as assert_same_matrices
from tests.align.small import assert_same as assert_same_tables
from tests.align.test_cut import as_sent

ALIGNERS = {**ONE_WAY, "Aligner": sc.Aligner}
PAIRS = [*many(60), ("", "T1 T2"), ("S1", ""), *many(30, seed=6)]
"""Among them two that are left out, in the middle."""


@pytest.fixture(autouse=True)
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards, and several pieces of the lexicon."""
    monkeypatch.setattr(data, "CUT", 1000)
    monkeypatch.setattr(data, "PIECE", 500)
    monkeypatch.setattr(data, "CHUNK", 17)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    engine = Processes(2)
    yield engine
    engine.close()


@pytest.fixture
def on_disk(tmp_path: Path) -> Bitext:
    return build_pairs(PAIRS, tmp_path / "corpus")


def assert_same_models(disk: Any, memory: Any) -> None:
    tables = [{n: np.asarray(v) for n, v in model.raw_params_.items()} for model in (disk, memory)]
    assert_same_tables(*tables)
    for figure in ("objective", "log_likelihood", "change", "entropy"):
        ours, theirs = (model.trace_.column(figure) for model in (disk, memory))
        np.testing.assert_array_equal(ours, theirs, err_msg=figure)
    assert disk.signature_ == memory.signature_
    assert disk.source_words_ == memory.source_words_
    assert disk.target_words_ == memory.target_words_


def assert_same_predictions(disk: Any, memory: Any, pairs: Any, same: Any) -> None:
    """Predictions of ``pairs``, on disk, by one model are those of ``same`` by the other."""
    assert disk.align(pairs) == memory.align(same)
    assert_same_matrices(disk.posteriors(pairs), memory.posteriors(same))
    assert disk.score_samples(pairs).tolist() == memory.score_samples(same).tolist()
    (ours, p), (theirs, q) = (
        model.links(given, probabilities=True) for model, given in ((disk, pairs), (memory, same))
    )
    assert ours.lists() == theirs.lists()
    np.testing.assert_array_equal(p, q)


def is_one_way(name: str) -> bool:
    return name in ONE_WAY


# fits


@pytest.mark.parametrize("name", ALIGNERS)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_aligner_has_the_same_bits(name: str, threads: int, on_disk: Bitext) -> None:
    make: Callable[..., Any] = ALIGNERS[name]
    memory = make().fit(PAIRS)
    assert not memory.signature_.endswith("1 shard")
    disk = make(engine=Local(threads)).fit(on_disk)
    assert_same_models(disk, memory)
    # the training pairs, by name and as None; and new ones, in memory and on disk
    assert_same_predictions(disk, memory, None, None)
    assert_same_predictions(disk, memory, on_disk, None)
    assert_same_predictions(disk, memory, AWKWARD, AWKWARD)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_has_the_same_bits(learner: str, on_disk: Bitext) -> None:
    for name, batches in (("IBM2", True), ("Aligner", learner in ("usual", "OnlineEM"))):
        if batches:
            settings = {"learner": LEARNERS[learner], "smoothing": 0.1, "random_state": 1}
            memory, disk = (ALIGNERS[name](**settings).fit(pairs) for pairs in (PAIRS, on_disk))
            assert_same_models(disk, memory)


@pytest.mark.parametrize(
    "settings",
    [
        {"null": False},
        {"dtype": "float32", "stem": 2, "smoothing": 0.01},
        {"lowercase": True},
        {"dictionary": {"S1": "T1", "other": ["sonst", "T2"]}},
        {"dictionary": {"S1": {"T1": 0.75, "T2": 0.25}}, "lowercase": False},
    ],
)
def test_settings(settings: dict[str, Any], on_disk: Bitext) -> None:
    memory, disk = (sc.align.HMMAligner(**settings).fit(pairs) for pairs in (PAIRS, on_disk))
    assert_same_models(disk, memory)
    assert_same_predictions(disk, memory, None, None)


@pytest.mark.parametrize("name", ["IBM1", "Aligner"])
def test_known_links(name: str, on_disk: Bitext) -> None:
    links = [[(0, 0)] if n % 3 == 0 and e and f else None for n, (e, f) in enumerate(PAIRS)]
    memory, disk = (ALIGNERS[name]().fit(pairs, links=links) for pairs in (PAIRS, on_disk))
    assert_same_models(disk, memory)
    assert not np.array_equal(memory.score_samples(), ALIGNERS[name]().fit(PAIRS).score_samples())


def test_a_corpus_of_one_shard(on_disk: Bitext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "CUT", np.inf)
    memory, disk = (sc.Aligner().fit(pairs) for pairs in (PAIRS, on_disk))
    assert memory.signature_.endswith("1 shard")
    assert_same_models(disk, memory)
    assert_same_predictions(disk, memory, None, None)


def test_processes_have_the_same_bits(on_disk: Bitext, processes: Processes) -> None:
    memory, disk = (
        sc.Aligner("ibm1", engine=e).fit(p) for e, p in ((None, PAIRS), (processes, on_disk))
    )
    assert_same_models(disk, memory)
    assert_same_predictions(disk, memory, on_disk, None)
    assert_same_predictions(disk, memory, PAIRS[20:70], PAIRS[20:70])


@pytest.mark.parametrize("name", ["IBM1", "Aligner"])
def test_more_pairs_on_disk(name: str, on_disk: Bitext, tmp_path: Path) -> None:
    more = [*many(30, words=70, seed=9), *AWKWARD]
    memory = ALIGNERS[name]().fit(PAIRS).partial_fit(more)
    disk = ALIGNERS[name]().fit(on_disk).partial_fit(build_pairs(more, tmp_path / "more"))
    assert_same_models(disk, memory)
    (ours, _), (theirs, _) = disk.stored(), memory.stored()
    for key, values in theirs.items():
        np.testing.assert_array_equal(ours[key], values, err_msg=key)


class Stopped(Exception):
    pass


def test_a_killed_fit_is_resumed(on_disk: Bitext, tmp_path: Path) -> None:
    def stop(state: Any) -> None:
        if state.step == 2:
            raise Stopped

    memory = sc.align.HMMAligner().fit(PAIRS)
    folder = sc.learners.FitFolder(tmp_path / "fit", seconds=0)
    with pytest.raises(Stopped):
        sc.align.HMMAligner().fit(on_disk, folder=folder, on_step=stop)
    size = sum(each.stat().st_size for each in (tmp_path / "fit").rglob("data*"))
    disk = sc.resume(tmp_path / "fit")
    assert_same_models(disk, memory)
    assert_same_predictions(disk, memory, on_disk, PAIRS)
    assert size < 20_000


# predictions


@pytest.mark.parametrize("name", ["HMMAligner", "Aligner"])
def test_other_pairs_on_disk_are_aligned(name: str, on_disk: Bitext, tmp_path: Path) -> None:
    model = ALIGNERS[name]().fit(PAIRS)
    new = [*AWKWARD, *many(50, words=70, seed=9)]
    stored = build_pairs(new, tmp_path / "new")
    assert_same_predictions(model, model, stored, new)
    in_pieces = [links for part in in_parts(stored, 17) for links in model.align(part)]
    assert in_pieces == model.align(new)
    if name == "Aligner":
        for method in ("soft-union", "forward", "backward", "grow-diag-final-and"):
            assert model.align(stored, method=method) == model.align(new, method=method)


def test_pairs_without_links_are_aligned() -> None:
    model = sc.align.IBM1().fit(PAIRS)
    nothing = [("", "T1"), ("S1", "")]
    assert model.align(nothing) == [[], []]
    assert model.score_samples(nothing).tolist() == [0.0, 0.0]
    assert [matrix.shape for matrix in model.posteriors(nothing)] == [(0, 1), (1, 0)]


def test_a_fitted_model_keeps_the_name_of_its_pairs_alone(on_disk: Bitext) -> None:
    model = sc.align.IBM1().fit(on_disk)
    assert model._corpus.pairs is on_disk
    assert isinstance(model._corpus.shards(), ShardsOnAccess)
    assert all(isinstance(shard, BitextShardOnDisk) for shard in model._corpus.shards())


# the lexicon


@pytest.mark.parametrize("n", range(1, 9))
def test_lexicons_are_united_few_at_a_time(n: int) -> None:
    parts = [BitextCorpus(as_bitext(many(5, seed=k), like=WORDS), True).lexicon for k in range(n)]
    union = unite_lexicons(iter(parts))
    entries = {
        (row, f)
        for part in parts
        for row, f in zip(part.rows().tolist(), part.targets.tolist(), strict=True)
    }
    found = list(zip(union.rows().tolist(), union.targets.tolist(), strict=True))
    assert found == sorted(entries)


WORDS = [f"S{n}" for n in range(60)], ["t", *(f"T{n}" for n in range(60))]


def test_shards_read_are_those_in_memory(on_disk: Bitext) -> None:
    """Words that are rare in a long row of the lexicon, and words that are frequent."""
    memory, disk = (BitextCorpus(pairs, True) for pairs in (as_bitext(PAIRS), on_disk))
    assert disk.cuts == memory.cuts
    for threads in (1, 3):
        for whole, other in zip(memory.shards(), disk.shards(), strict=True):
            one, read = as_sent(whole), other.load(threads)
            assert len(read.entries) < len(memory.lexicon)
            for field in ("numbers", "entries"):
                np.testing.assert_array_equal(getattr(read, field), getattr(one, field))
            for field in ("indptr", "targets"):
                ours, theirs = (getattr(shard.lexicon, field) for shard in (read, one))
                np.testing.assert_array_equal(ours, theirs)
                assert ours.dtype == theirs.dtype
            for side in ("source", "target"):
                ours, theirs = (getattr(shard, side) for shard in (read, one))
                np.testing.assert_array_equal(ours.tokens, theirs.tokens)
                np.testing.assert_array_equal(ours.indptr, theirs.indptr)


def test_rare_words_of_long_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of very many entries, of which a shard needs a few: they are searched for."""
    monkeypatch.setattr(data, "CUT", 200)
    pairs = [("a", " ".join(f"T{k * 90 + n}" for n in range(90))) for k in range(20)]
    pairs += [("a b", "T3 T700 T3 T44")] * 3
    memory, disk = (
        BitextCorpus(each, False) for each in (as_bitext(pairs), build_pairs(pairs, tmp_path / "c"))
    )
    for whole, other in zip(memory.shards(), disk.shards(), strict=True):
        one = as_sent(whole)
        np.testing.assert_array_equal(other.load().entries, one.entries)
        np.testing.assert_array_equal(other.load().lexicon.targets, one.lexicon.targets)


# files


@pytest.mark.parametrize(
    "items",
    [
        [f"{e} ||| {f}" for e, f in PAIRS],
        PAIRS,
        [(e.split(), f.split()) for e, f in PAIRS],
        {"one": PAIRS[:50], "two": PAIRS[50:]},
    ],
)
def test_pairs_are_numbered_as_in_memory(items: Any, tmp_path: Path) -> None:
    build_corpus(items, tmp_path / "corpus", "pairs")
    stored, memory = open_corpus(tmp_path / "corpus"), as_bitext(PAIRS)
    assert len(stored) == len(memory) == len(PAIRS)
    for side in ("source", "target"):
        ours, theirs = getattr(stored, side), getattr(memory, side)
        assert ours.words == theirs.words
        assert ours.tokens[:].tolist() == theirs.tokens.tolist()
        assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert stored.pair(3) == memory.pair(3)
    assert stored.flipped().pair(3) == memory.flipped().pair(3)
    assert stored.n_links == memory.n_links
    assert stored.name(51) == ("two:2" if isinstance(items, dict) else "pair 51")


def test_lower_case(tmp_path: Path) -> None:
    pairs = [("The House", "Das HAUS"), ("the house", "das haus")]
    small = build_pairs(pairs, tmp_path / "small", lowercase=True)
    later = as_bitext(build_pairs(pairs, tmp_path / "large"), lowercase=True)
    for stored in (small, later):
        assert (stored.source.words, stored.target.words) == (["the", "house"], ["das", "haus"])
        assert stored.source.tokens[:].tolist() == [0, 1, 0, 1]
        assert stored.target.tokens[:].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ({"a.txt": ["x ||| y", "x y"]}, "a.txt:2 has no |||"),
        (["x ||| y"] * 5000 + ["x ||| y ||| z"], "pair 5000 has ||| 2 times"),
        (["x ||| y", ("x", "y")], "pair 1 is"),
        ([("x", "y"), "x ||| y"], "pair 1 is"),
        ([("x", "y"), ("x",)], "pair 1 is"),
        ({"a.txt": [("x", "y"), ("x", 3)]}, "a.txt:2 has the sentence 3"),
        ("x ||| y", "the data are"),
        ([], "there are no pairs"),
    ],
)
def test_bad_pairs_are_named(items: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        build_pairs(items, tmp_path / "corpus")
    assert said in str(raised.value)
    assert not (tmp_path / "corpus").exists()


def test_impossible_pairs_are_named(tmp_path: Path) -> None:
    pairs = {"a.txt": PAIRS[:50], "b.txt": [("S1", "T1"), ("S1 S2", "T1 odd")]}
    stored = build_pairs(pairs, tmp_path / "corpus")
    dictionary = dict.fromkeys(stored.source.words, "T1")
    with pytest.raises(DataError, match=r"^a\.txt:1 has a target word that no source word"):
        sc.align.IBM1(null=False, dictionary=dictionary).fit(stored)


def test_damaged_files_are_refused(on_disk: Bitext, tmp_path: Path) -> None:
    model = sc.align.IBM1().fit(on_disk)
    path = tmp_path / "corpus" / "shard-00000.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw[:-400] + b"\xff" * 400)
    with pytest.raises(StoreError, match="target_tokens out of range"):
        sc.align.IBM1().fit(on_disk)
    with pytest.raises(StoreError, match="target_tokens out of range"):
        model.align()
    path.unlink()
    with pytest.raises(StoreError):
        open_corpus(tmp_path / "corpus")


def test_a_sampler_needs_memory(on_disk: Bitext) -> None:
    with pytest.raises(DataError, match="must be in memory") as raised:
        MODELS["GibbsAligner"]().fit(on_disk)
    assert "Aligner" in str(raised.value)
    fitted = MODELS["GibbsAligner"]().fit(on_disk.select(slice(40)))
    with pytest.raises(DataError, match="must be in memory"):
        fitted.partial_fit(on_disk)
    assert fitted.align(on_disk) == fitted.align(PAIRS)


# memory

SCRIPT = """
import sys, tracemalloc
import numpy as np
from softcount.align import IBM1, data
from softcount.engines import Local
from softcount.text.bitext import open_pairs
from softcount.text.disk import CorpusFolder

data.CUT = 1 << 18
pairs = open_pairs(CorpusFolder.open(sys.argv[1]))
few = pairs.select(slice(10))
IBM1(engine=Local(1), max_iter=2).fit(few).score_samples(few)  # what is imported and compiled once
tracemalloc.start()
model = IBM1(engine=Local(1), max_iter=2).fit(pairs)
score = model.score_samples().sum()
print(tracemalloc.get_traced_memory()[1], pairs.source.tokens.nbytes + pairs.target.tokens.nbytes)
print(model.estimate(pairs).bytes, score)
"""


def test_memory_does_not_grow_with_the_words(tmp_path: Path) -> None:
    """Words take 8 MB, their occurrences in memory twice as much; a shard of them 40 kB."""
    rng = np.random.default_rng(0)
    n, length = 20_000, 50
    from softcount.text.bitext import COLUMNS
    from softcount.text.disk import CorpusFolder, StoredColumn, new_corpus

    columns = {name: StoredColumn("<i4") for name in COLUMNS}
    with new_corpus(tmp_path / "corpus", "pairs", columns) as writer:
        rows = {name: rng.integers(0, 200, n * length) for name in COLUMNS[::2]}
        lengths = {name: np.full(n, length) for name in COLUMNS[1::2]}
        writer.append(n, **rows, **lengths)
        for name in ("source_words", "target_words"):
            writer.write_names(name, [f"{name}{k}" for k in range(200)])
    assert len(open_pairs(CorpusFolder.open(tmp_path / "corpus"))) == n
    arguments = [sys.executable, "-c", SCRIPT, str(tmp_path / "corpus")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    peak, size, estimated, _ = map(float, done.stdout.split())
    assert size == 8 * n * length
    assert peak < 0.8 * size
    assert estimated < 3 * peak
