"""Mixtures of what is on disk: the bits of the same data in memory, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import softcount as sc
from softcount.core.errors import DataError, LearnerError, StoreError
from softcount.core.folder import FitFolder
from softcount.engines import Processes
from softcount.mixture import data, starts
from softcount.text import bags
from softcount.text.archive import Archive
from softcount.text.corpora import build_corpus, in_parts, open_corpus
from softcount.text.vectors import build_vectors

RNG = np.random.default_rng(4)
CHANCES = RNG.dirichlet(np.full(12, 0.3), 3)
X = np.array([RNG.multinomial(RNG.integers(1, 15), CHANCES[n % 3]) for n in range(60)])
X[5] = 0  # an empty document
POINTS = RNG.normal(size=(60, 3)) + 4.0 * RNG.integers(0, 3, (60, 1)) + 100.0
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], 60)
LABELS = np.where(np.arange(60) % 3 == 0, RNG.integers(2, size=60), -1)
SOFT = np.where((np.arange(60) % 2 == 0)[:, None], RNG.dirichlet([1.0, 1.0], 60), np.nan)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MOST_POINTS", 7)
    monkeypatch.setattr(bags, "MOST_DOCUMENTS", 7)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("documents") / "corpus"
    return Archive.build([sparse.csr_matrix(X[:25]), sparse.csr_matrix(X[25:])], folder)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return build_vectors({"p.txt": POINTS}, tmp_path_factory.mktemp("points") / "corpus")


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    engine = Processes(2)
    yield engine
    engine.close()


def figures(model: Any, x: Any) -> dict[str, Any]:
    """All that was learned, and all that is predicted, to the bit."""
    found: dict[str, Any] = {name: table.tobytes() for name, table in model.params_.items()}
    found["objective"] = model.trace_.objective.tobytes()
    for name in ("labels_", "transduction_", "inertia_", "n_classes_", "_lengths", "offset_"):
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)).tobytes()
    for name in ("predict", "predict_proba", "score_samples", "transform"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(x).tobytes()
    for name in ("aic", "bic", "icl"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(x)
    return found


WORDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "kmeans start": (sc.MultinomialMixture(3, max_iter=4), {}),
    "random start": (sc.MultinomialMixture(3, init="random", max_iter=4), {}),
    "anchors": (sc.MultinomialMixture(3, init="anchor", max_iter=2), {}),
    "moments": (sc.MultinomialMixture(2, init="spectral", max_iter=2), {}),
    "weights": (sc.MultinomialMixture(3, max_iter=4), {"sample_weight": WEIGHTS}),
    "bernoulli": (sc.MultinomialMixture(3, bernoulli=True, max_iter=4), {}),
    "stepwise": (sc.MultinomialMixture(3, learner=sc.OnlineEM(max_iter=2, batch_size=8)), {}),
    "short runs": (sc.MultinomialMixture(3, init="random", short_runs=2, max_iter=3), {}),
    "vb": (sc.MultinomialMixture(3, learner=sc.VariationalBayes(max_iter=4)), {}),
    "stochastic vb": (sc.MultinomialMixture(3, learner=sc.StochasticVB(max_iter=2)), {}),
    "gibbs": (sc.MultinomialMixture(3, learner=sc.Gibbs(max_iter=4)), {}),
    "process": (sc.DirichletProcessMixture(8), {}),
    "process, weights": (sc.DirichletProcessMixture(8), {"sample_weight": WEIGHTS}),
    "labels": (sc.NaiveBayes(max_iter=4), {"y": LABELS}),
    "components": (sc.NaiveBayes(n_components=2, length=10, max_iter=4), {"y": LABELS}),
    "soft labels": (sc.NaiveBayes(unlabelled_weight=0.5, max_iter=3), {"y": SOFT}),
    "choice of λ": (
        sc.NaiveBayesCV(unlabelled_weights=(0.1, 1.0), cv=2, length=8, max_iter=2),
        {"y": LABELS},
    ),
}

OF_POINTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "full": (sc.GaussianMixture(3, max_iter=4), {}),
    "full, weights": (sc.GaussianMixture(3, max_iter=4), {"sample_weight": WEIGHTS}),
    "diag": (sc.GaussianMixture(3, covariance="diag", init="k-means++", max_iter=4), {}),
    "tied": (sc.GaussianMixture(3, covariance="tied", init="random", max_iter=4), {}),
    "means": (
        sc.GaussianMixture(3, covariance="spherical", init={"means": POINTS[:3]}, max_iter=4),
        {},
    ),
    "stepwise": (sc.GaussianMixture(3, learner=sc.OnlineEM(max_iter=2, batch_size=8)), {}),
    "vb": (sc.GaussianMixture(3, learner=sc.VariationalBayes(max_iter=4)), {}),
    "gibbs": (sc.GaussianMixture(3, learner=sc.Gibbs(max_iter=4)), {}),
    "process": (sc.DirichletProcessGaussianMixture(6), {}),
    "k-means": (sc.KMeans(3), {}),
    "k-means, weights": (sc.KMeans(3, init="random"), {"sample_weight": WEIGHTS}),
    "soft k-means": (sc.SoftKMeans(3, max_iter=4), {}),
}


def both(model: Any, given: dict[str, Any], on_disk: Any, in_memory: Any) -> list[dict[str, Any]]:
    return [figures(model.fit(each, **given), each) for each in (in_memory, on_disk)]


@pytest.mark.filterwarnings("ignore::softcount.mixture.CollapseWarning")
@pytest.mark.parametrize("case", WORDS)
def test_documents_on_disk_are_those_in_memory(case: str, documents: Archive) -> None:
    model, given = WORDS[case]
    in_memory, on_disk = both(model, given, documents, X)
    assert on_disk == in_memory
    assert len(model._bind(documents, **given)[1].shards()) == 9


@pytest.mark.parametrize("case", OF_POINTS)
def test_points_on_disk_are_those_in_memory(case: str, points: Any) -> None:
    model, given = OF_POINTS[case]
    in_memory, on_disk = both(model, given, points, POINTS)
    assert on_disk == in_memory
    assert len(model._bind(points, **given)[1].shards()) == 9


def test_single_precision(tmp_path: Path) -> None:
    single = POINTS.astype(np.float32)
    stored = build_vectors(single, tmp_path / "corpus", dtype="float32")
    in_memory, on_disk = both(sc.GaussianMixture(2, max_iter=3), {}, stored, single)
    assert on_disk == in_memory


def test_a_shuffled_archive_has_the_order_that_it_is_stored_in(tmp_path: Path) -> None:
    stored = Archive.build(sparse.csr_matrix(X), tmp_path / "corpus", shuffle=3)
    model = sc.MultinomialMixture(3, max_iter=4)
    in_memory, on_disk = both(model, {}, stored, X[stored.origin])
    assert on_disk == in_memory


@pytest.mark.parametrize("kind", ["words", "points"])
def test_engines_give_the_same_bits(
    kind: str, documents: Archive, points: Any, processes: Processes
) -> None:
    model: Any = sc.MultinomialMixture(3, max_iter=3)
    x: Any = documents
    if kind == "points":
        model, x = sc.GaussianMixture(3, max_iter=3), points
    expected = figures(model.fit(x), x)
    for engine in (sc.Local(1), sc.Local(2), processes):
        model.set_params(engine=engine)
        assert figures(model.fit(x), x) == expected


def test_predictions_of_memory_are_made_on_the_engine(processes: Processes) -> None:
    for model, x in ((sc.NaiveBayes(), X), (sc.KMeans(3), POINTS)):
        model.fit(x, *([LABELS] if isinstance(model, sc.NaiveBayes) else []))
        expected = figures(model, x)
        model.set_params(engine=processes)
        assert figures(model, x) == expected


def test_answers_come_in_parts(documents: Archive, points: Any) -> None:
    model = sc.MultinomialMixture(3, max_iter=3).fit(documents)
    parts = [model.predict(part) for part in in_parts(documents, 11)]
    assert np.concatenate(parts).tolist() == model.labels_.tolist()
    clusters = sc.KMeans(3).fit(points)
    parts = [clusters.predict(part) for part in in_parts(points, 11)]
    assert np.concatenate(parts).tolist() == clusters.labels_.tolist()


def test_a_fit_in_a_folder_goes_on(documents: Archive, points: Any, tmp_path: Path) -> None:
    for name, kind, x in (
        ("words", sc.MultinomialMixture, documents),
        ("points", sc.GaussianMixture, points),
    ):
        expected = figures(kind(3, max_iter=8, tol=0.0).fit(x), x)
        folder = FitFolder(tmp_path / name, steps=1)

        def stop(state: Any) -> None:
            if state.step == 4:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            kind(3, max_iter=8, tol=0.0).fit(x, folder=folder, on_step=stop)
        assert figures(sc.resume(tmp_path / name), x) == expected


# starts from a sample


def test_starts_take_a_sample_of_what_is_on_disk(
    documents: Archive, points: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "SAMPLE", 1)
    monkeypatch.setattr(starts, "SAMPLED_PER_CLASS", 7)
    _, items = sc.GaussianMixture(3)._bind(points)
    some = starts.sample(items, 3)
    assert len(some) == 21
    rows = (some.x.x + items.x.offset).round(9).tolist()  # type: ignore[attr-defined]
    places = [POINTS.round(9).tolist().index(row) for row in rows]
    assert places == sorted(set(places))
    assert places[-1] > 40
    for init in ("kmeans", "k-means++", "random"):
        assert sc.GaussianMixture(3, init=init).fit(points).verdict_.good
    for init in ("kmeans", "anchor", "random"):
        assert sc.MultinomialMixture(3, init=init).fit(documents).verdict_.good


# what is refused


def test_sequences_are_no_points(tmp_path: Path) -> None:
    stored = build_vectors({"p.txt": [POINTS[0], POINTS[:2]]}, tmp_path / "corpus")
    with pytest.raises(DataError, match=r"p.txt:2 is a sequence of 2 vectors, not a point"):
        sc.KMeans(1).fit(stored)


def test_other_columns_are_refused(documents: Archive, points: Any, tmp_path: Path) -> None:
    other = build_vectors(POINTS[:, :2], tmp_path / "points")
    with pytest.raises(ValueError, match="2 features"):
        sc.KMeans(2).fit(points).predict(other)
    words = Archive.build(sparse.csr_matrix(X[:, :7]), tmp_path / "words")
    with pytest.raises(DataError, match="different vocabulary"):
        sc.MultinomialMixture(2, max_iter=1).fit(documents).predict(words)


def test_collapsed_samplers_need_memory(documents: Archive) -> None:
    with pytest.raises(LearnerError, match="on disk") as caught:
        sc.MultinomialMixture(3, learner=sc.CollapsedGibbs(max_iter=3)).fit(documents)
    assert "VariationalBayes" in caught.value.hint


def test_impossible_documents_are_named(tmp_path: Path) -> None:
    stored = Archive.build({"a.txt": ["x x", "y", "x"]}, tmp_path / "corpus")
    tables = {"weights": [[0.5, 0.5]], "words": [[1.0, 0.0], [1.0, 0.0]]}
    model = sc.MultinomialMixture(2, smoothing=0.0, init=tables)
    with pytest.raises(sc.SoftcountError, match=r"a.txt:2 has probability zero"):
        model.fit(stored)


def test_damage_is_noticed(tmp_path: Path) -> None:
    stored = build_vectors(POINTS, tmp_path / "points")
    shard = tmp_path / "points" / "shard-00000.safetensors"
    raw = bytearray(shard.read_bytes())
    place = raw.index(POINTS[30].tobytes())
    for bad in (np.inf, 1e60):
        raw[place : place + 8] = np.float64(bad).tobytes()
        shard.write_bytes(raw)
        with pytest.raises(StoreError, match="out of range"):
            sc.GaussianMixture(2).fit(stored)
    words = Archive.build(sparse.csr_matrix(X), tmp_path / "words")
    model = sc.MultinomialMixture(2, max_iter=1).fit(words)
    file = tmp_path / "words" / "indptr.bin"
    good = file.read_bytes()
    for bad_offset in (-8, 2**40):
        file.write_bytes(good[:80] + np.int64(bad_offset).tobytes() + good[88:])
        with pytest.raises(StoreError, match="out of order"):
            model.predict(words)


def test_the_estimate_does_not_count_what_is_on_disk(
    documents: Archive, points: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, stored, x in (
        (sc.MultinomialMixture(3, init="random"), documents, X),
        (sc.GaussianMixture(3), points, POINTS),
    ):
        here, there = model.estimate(x), model.estimate(stored)
        assert there.parts["steps"] <= here.parts["steps"] * 4
        assert there.items == here.items
        assert there.tokens == here.tokens
        assert there.work == here.work
    assert sc.GaussianMixture(3).estimate(points).parts["data"] < POINTS.nbytes


# documents as a kind of corpus


def test_an_archive_is_a_kind_of_corpus(tmp_path: Path) -> None:
    seen: list[int] = []
    made = build_corpus(
        ["a dog", "", "a cat a"], tmp_path / "a", "documents", on_progress=seen.append, min_count=2
    )
    opened = open_corpus(tmp_path / "a")
    assert seen[-1] == 3
    assert made.vocabulary.tolist() == opened.vocabulary.tolist() == ["a"]
    assert [part.toarray().tolist() for part in in_parts(opened, 2)] == [[[1.0], [0.0]], [[2.0]]]
    assert opened.select([2, 0]).toarray().tolist() == [[2.0], [1.0]]


def test_other_kinds_are_opened_without_scikit_learn(points: Any) -> None:
    folder = str(points.rows.corpus.folder)
    code = (
        "import sys; from softcount.text.corpora import open_corpus; "
        f"open_corpus({folder!r}); print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# memory

MEASURE = """
import json, sys, tracemalloc
import softcount as sc
from softcount.text import bags
from softcount.text.corpora import open_corpus

bags.MOST_DOCUMENTS = 1 << 13
kind, folders = sys.argv[1], sys.argv[2:]
peaks = []
for folder in folders:  # the first one compiles and loads
    if kind == "points":
        model = sc.GaussianMixture(4, covariance="diag", init="random", max_iter=2)
    else:
        model = sc.MultinomialMixture(4, init="random", max_iter=2)
    corpus = open_corpus(folder)
    tracemalloc.start()
    model.set_params(engine=sc.Local(1)).fit(corpus)
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
print(json.dumps(peaks))
"""


@pytest.mark.parametrize("kind", ["points", "words"])
def test_memory_is_bounded(kind: str, tmp_path: Path) -> None:
    """15 MB of points, or 12 MB of counts; 1 MB is 8 bytes an item."""
    rng = np.random.default_rng(0)
    for name, n in (("small", 100), ("large", 120_000)):
        if kind == "points":
            blocks = (rng.normal(size=(1000, 16)) for _ in range(n // 1000 + 1))
            build_vectors((row for block in blocks for row in block), tmp_path / name)
        else:
            counts = (
                sparse.csr_matrix(
                    (np.ones(4000), (np.repeat(np.arange(500), 8), rng.integers(0, 999, 4000))),
                    (500, 999),
                )
                for _ in range(n // 500 + 1)
            )
            Archive.build(counts, tmp_path / name)
    folders = [str(tmp_path / name) for name in ("small", "large")]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind, *folders], capture_output=True, text=True, check=True
    )
    most = json.loads(done.stdout)[1]
    assert most < 9e6
