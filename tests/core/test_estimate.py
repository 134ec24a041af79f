"""What a fit will need is told beforehand, and is about what it takes."""

from __future__ import annotations

import inspect
import os
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from softcount.core import estimate as estimates
from softcount.core import pages
from softcount.core.estimate import Estimate, count_bytes, make_estimate, readable_bytes
from tests.commands import done, run
from tests.core.extremes import COUNTS, FEW, PAIRS, POINTS, SENTENCES, TEXTS
from tests.core.sized import SIZED, bags
from tests.oracles.toy import Coins, ThrowsCorpus

FACTOR = 4.0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SIZED)
def test_bytes_are_about_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the largest amount that Python and numpy had at one time."""
    monkeypatch.setattr(pages, "SMALL", sys.maxsize)  # what has pages of its own is not traced
    model, data = SIZED[name]()
    told = model.estimate(*data)
    model.fit(*data)  # whatever is compiled or imported is there from now on
    model, data = SIZED[name]()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model.fit(*data)
        used = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert used / FACTOR < told.bytes < FACTOR * used
    assert told.bytes == sum(told.parts.values())
    assert told.work > 0.0
    assert told.items > 0


NAMESPACES = [one for name in dir(sc) if inspect.ismodule(one := getattr(sc, name))]
ESTIMATORS = sorted(
    {
        kind
        for space in [sc, *NAMESPACES]
        for name in dir(space)
        if inspect.isclass(kind := getattr(space, name))
        and hasattr(kind, "fit")
        and name != "FeatureCopies"
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_estimator_has_one(kind: Any) -> None:
    assert callable(kind.estimate)


def test_estimating_changes_nothing() -> None:
    for model, data in (
        (sc.MultinomialMixture(2), (TEXTS,)),
        (sc.GaussianMixture(2), (POINTS,)),
        (sc.LDA(2), (COUNTS,)),
        (sc.HMM(2), (SENTENCES,)),
        (sc.PCFG(2, 2), (SENTENCES,)),
        (sc.Aligner(), (PAIRS,)),
        (sc.labels.LabelPropagation(), (COUNTS, FEW)),
        (sc.adapt.EasyAdapt(), (COUNTS, FEW)),
    ):
        before = dict(vars(model))
        assert isinstance(model.estimate(*data), Estimate)
        assert vars(model) == before


def test_it_grows_as_it_should() -> None:
    """Twice the classes, twice the tables; twice the sentence, four times the chart."""
    small, large = (sc.MultinomialMixture(k, init="random").estimate(COUNTS) for k in (2, 4))
    assert large.parts["tables"] == 2 * small.parts["tables"]
    short, long = (sc.PCFG(3, 3).estimate([["a"] * n]) for n in (200, 400))
    assert long.parts["charts"] == pytest.approx(4 * short.parts["charts"], rel=0.01)
    assert 7.0 < long.work / short.work < 8.0


def test_jobs_that_are_hopeless_are_foreseen() -> None:
    one = sc.PCFG(5, 5).estimate([["a"] * 6000])
    assert one.bytes > 1e9
    assert one.seconds > 600.0
    assert "hours" in str(one) or "minutes" in str(one)
    many = sc.MultinomialMixture(8, init="random").estimate(bags(200, 1_000_000, 5))
    assert 2e8 < many.bytes < 1e9


def test_learners_keep_things() -> None:
    """Draws, counts of shards, leaps: all of the tables' size."""

    def parts(learner: Any) -> Any:
        return sc.MultinomialMixture(2, learner=learner).estimate(COUNTS).parts

    table = 8 * (2 * 4 + 2)
    assert parts(sc.Gibbs(max_iter=100, n_init=3))["draws"] == 3 * 51 * table
    assert parts(sc.IncrementalEM(batch_size=2))["shards"] == 2 * 3 * table
    assert "leaps" in parts(sc.EM(schedule=sc.learners.Squarem()))
    assert parts(sc.EM()) == parts(None)


def test_a_model_of_ones_own_is_judged_by_its_tables() -> None:
    told = estimates.estimate(Coins(), ThrowsCorpus(["HHT", "TTT"]))
    assert told.items == 2
    assert told.bytes >= told.parts["tables"] > 0


def test_a_model_of_ones_own_may_know_better() -> None:
    class Knowing(Coins):
        def estimate(self, corpus: Any) -> Estimate:
            return make_estimate(len(corpus), 6, 1e3, tables=1234)

    assert estimates.estimate(Knowing(), ThrowsCorpus(["HHT", "TTT"])).bytes == 1234


# what is said
def test_a_warning_when_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "find_memory", lambda: (100, None))
    with pytest.warns(sc.errors.HeavyWarning, match="while 100 bytes are free"):
        sc.MultinomialMixture(2).fit(COUNTS)
    with pytest.warns(sc.errors.HeavyWarning):
        sc.labels.LabelPropagation().fit(COUNTS, FEW)
    with pytest.warns(sc.errors.HeavyWarning):
        sc.adapt.EasyAdapt().fit(COUNTS, FEW)
    with pytest.warns(sc.errors.HeavyWarning):
        sc.align.GibbsAligner(n_init=1, max_iter=2).fit(PAIRS)


def test_no_warning_when_there_is_enough() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sc.errors.HeavyWarning)
        sc.MultinomialMixture(2).fit(COUNTS)


def test_what_cannot_be_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "find_memory", lambda: (None, 10))
    model = sc.MultinomialMixture(2)
    with pytest.raises(sc.errors.HopelessFit, match="this machine has only 10 bytes in total"):
        model.fit(COUNTS)
    assert not hasattr(model, "fit_")


def test_a_million_classes_of_a_million_words() -> None:
    with pytest.raises(sc.errors.HopelessFit, match="TB of memory"):
        sc.MultinomialMixture(10**6, init="random").fit(bags(10, 10**6, 5))


@pytest.mark.parametrize("command", ["cluster", "topics", "tag", "grammar", "align", "propagate"])
def test_commands_warn_before_they_begin(
    command: str, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "find_memory", lambda: (10, None))
    file, more = texts, ["-k", "2"]
    if command == "align":
        file = tmp_path / "pairs"
        file.write_text("das haus ||| the house\ndas buch ||| the book\n")
        more = []
    elif command == "propagate":
        file, more = tmp_path / "lines.tsv", []
        file.write_text("a\tApple iPod\nb\tcat dog\n\tApple iPhone\n\tdog mouse\n")
    args = ["-i", file] if command == "align" else [file]
    said = done(command, *args, *more).stderr
    assert said.count("softcount: warning: this fit needs about") == 1
    assert said.index("while 10 bytes are free") < 200


def test_the_progress_line_begins_with_it(
    texts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from softcount.cli.frame import FitProgress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = FitProgress(6)
    sc.MultinomialMixture(2).fit(COUNTS, on_step=progress)
    progress.end()
    said = capsys.readouterr().err
    assert 0 <= said.index("operations a step") < said.index("0/100")


def test_verbose_alignment_says_it(tmp_path: Path) -> None:
    file = tmp_path / "pairs"
    file.write_text("das haus ||| the house\ndas buch ||| the book\n")
    result = run("align", "-i", file, "--verbose")
    assert "\n# about " in result.stderr


# what the machine has
def test_memory_of_the_machine() -> None:
    free, most = estimates.find_memory()
    if sys.platform.startswith("linux"):
        assert free is not None
        assert most is not None
        assert 0 < free <= most


@pytest.mark.parametrize("version", [0, 1])
def test_limits_of_control_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    limit, used = tmp_path / "limit", tmp_path / "used"
    pairs = [("/nowhere", "/nowhere")] * 2
    pairs[version] = (str(limit), str(used))
    monkeypatch.setattr(estimates, "GROUPS", tuple(pairs))
    used.write_text("3000\n")
    limit.write_text("5000\n")
    assert estimates.find_memory() == (2000, 5000)
    limit.write_text("max\n")
    without, _ = estimates.find_memory()
    assert without is None or without > 10_000


def test_without_any_word_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "GROUPS", ())
    monkeypatch.setattr(estimates, "MEMINFO", "/nowhere")
    monkeypatch.delattr(os, "sysconf")
    assert estimates.find_memory() == (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimates.announce(make_estimate(1, 1, 1.0, tables=1e30), ())


# small parts
def test_what_something_holds() -> None:
    whole = np.zeros(100)
    assert count_bytes([whole, whole, whole[:3]]) == 800
    assert count_bytes({"x": (bags(10, 10),)}) > 0
    assert count_bytes(["words", b"bytes", len, None, 3]) == 0


def test_figures_can_be_read() -> None:
    assert [readable_bytes(n) for n in (1, 999, 2.84e9, 1.2e8, 5e13)] == [
        "1 bytes",
        "999 bytes",
        "2.8 GB",
        "120 MB",
        "50 TB",
    ]


# a start for many words
def test_a_start_by_kmeans_looks_at_words_that_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    from softcount.mixture import starts

    # two kinds of documents, told apart by four words; every document has words of its own, too
    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    shared = np.zeros((40, 4))
    shared[kind == 0, :2] = rng.integers(1, 4, (20, 2))
    shared[kind == 1, 2:] = rng.integers(1, 4, (20, 2))
    X = np.hstack([np.eye(40) * 3, shared])
    monkeypatch.setattr(starts, "SVD_WORDS", 10)
    labels = sc.MultinomialMixture(2).fit(X).labels_
    assert sc.metrics.agreement(kind, labels).adjusted_rand == 1.0
