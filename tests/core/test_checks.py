"""The laws: a right model obeys them all, and each planted fault is caught by the law it breaks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.core.laws import LAWS, LawError, check_model
from softcount.core.model import Model
from softcount.core.pickling import PickledWithoutCaches
from softcount.core.types import EStep, Stats
from softcount.families import Categorical, Gaussian
from tests.oracles.bags_mixture import DATA, BagCorpus, Bags, Estimator, K, Mixture, V


def broken(core: Any, **options: Any) -> set[str]:
    return {law.name for law in check_model(Estimator(core), DATA, **options).failed}


def test_a_right_model_obeys_every_law() -> None:
    report = check_model(Estimator(Mixture()), DATA)
    report.raise_if_failed()
    assert [law.name for law in report] == list(LAWS)
    assert str(report).count("holds") == len(LAWS)


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_laws_hold_for_other_seeds(seed: int) -> None:
    assert check_model(Estimator(Mixture()), DATA, seed=seed).passed


def test_the_laws_hold_where_some_chances_are_zero() -> None:
    params = {
        "theme": np.array([[0.4, 0.6]]),
        "word": np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]),
    }
    check_model(Estimator(Mixture()), DATA, params=params).raise_if_failed()


# planted faults


class CountsADoubled(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        word = np.array(stats.counts["word"])
        word[0, 0] *= 2.0
        return replace(stats, counts={**stats.counts, "word": word})


class Negative(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, counts={**stats.counts, "theme": np.array([[-1.0, 13.0]])})


class NotANumber(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, counts={**stats.counts, "theme": np.array([[np.nan, 1.0]])})


class TurnedShape(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, counts={**stats.counts, "theme": np.array([6.0, 6.0])})


class WrongLikelihood(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, log_likelihood=1.01 * stats.log_likelihood)


class WrongScore(Mixture):
    """Forgets to divide by the power."""

    def expect(self, params: Any, shard: Bags, how: EStep, local: Any = None) -> Stats:
        stats = super().expect(params, shard, how, local)
        return replace(stats, score=stats.score * how.temper)


class NotNormalised(Mixture):
    """A hard count is given to every class."""

    def weights(self, joint: np.ndarray, shard: Bags, how: EStep) -> np.ndarray:
        weights = super().weights(joint, shard, how)
        return np.ones_like(weights) if how.fill == "hard" else weights


class Remembers(Mixture):
    """Blends in what it was asked before."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = itertools.count()

    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, log_likelihood=stats.log_likelihood + 1e-13 * (next(self.calls) + 1))


class WritesIntoItsInput(Mixture):
    def expect(self, params: Any, *args: Any, **options: Any) -> Stats:
        stats = super().expect(params, *args, **options)
        params["theme"][0, 0] *= 1.0 + 1e-12
        return stats


class ReusesItsBuffer(Mixture):
    """Gives out the same array every time."""

    def __init__(self) -> None:
        super().__init__()
        self.buffers: dict[int, np.ndarray] = {}

    def expect(self, params: Any, shard: Bags, *args: Any, **options: Any) -> Stats:
        stats = super().expect(params, shard, *args, **options)
        buffer = self.buffers.setdefault(len(shard.words), np.zeros((K, V)))
        buffer[:] = stats.counts["word"]
        return replace(stats, counts={**stats.counts, "word": buffer})


class OneShardOnly(Mixture):
    def bias(self, shard: Bags) -> float:
        return 1.0

    def expect(self, params: Any, shard: Bags, *args: Any, **options: Any) -> Stats:
        stats = super().expect(params, shard, *args, **options)
        return replace(stats, log_likelihood=stats.log_likelihood + self.bias(shard))


class HardAboveSoft(Mixture):
    def expect(self, params: Any, shard: Bags, how: EStep, local: Any = None) -> Stats:
        stats = super().expect(params, shard, how, local)
        return replace(stats, score=0.0) if how.fill == "hard" else stats


class SamplesTheBest(Mixture):
    def draws(self, chances: np.ndarray, number: int, how: EStep) -> np.ndarray:
        return np.eye(K)[chances.argmax()]


class SamplesByThread(Mixture):
    """Draws from one stream for all, so that the order of calls matters."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)

    def draws(self, chances: np.ndarray, number: int, how: EStep) -> np.ndarray:
        return self.rng.multinomial(how.samples, chances) / how.samples


class TemperIgnored(Mixture):
    def expect(self, params: Any, shard: Bags, how: EStep, local: Any = None) -> Stats:
        return super().expect(params, shard, replace(how, temper=1.0), local)


class TemperAlways(Mixture):
    """Counts from a posterior that is a little too flat."""

    def expect(self, params: Any, shard: Bags, how: EStep, local: Any = None) -> Stats:
        return super().expect(params, shard, replace(how, temper=0.9 * how.temper), local)


class SamplesByShard(Mixture):
    """Draws from one stream for each shard, so that they depend on the cut."""

    def weights(self, joint: np.ndarray, shard: Bags, how: EStep) -> np.ndarray:
        self.rng = np.random.default_rng((how.stream, int(shard.number[0])))
        return super().weights(joint, shard, how)

    def draws(self, chances: np.ndarray, number: int, how: EStep) -> np.ndarray:
        return self.rng.multinomial(how.samples, chances) / how.samples


class Pile(np.ndarray):
    """Counts that are added in place."""

    def __add__(self, other: Any) -> Any:
        self += other
        return self


class AddsInPlace(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, counts={n: c.view(Pile) for n, c in stats.counts.items()})


class Drifting(np.ndarray):
    """Counts whose sum depends on how often something was added."""

    ticks = itertools.count()

    def __add__(self, other: Any) -> Any:
        total = np.asarray(self) + np.asarray(other)
        return (total * (1.0 + 1e-14 * (next(self.ticks) % 5))).view(Drifting)


class DriftsInSums(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, counts={n: c.view(Drifting) for n, c in stats.counts.items()})


class HasALambda(Mixture):
    def __init__(self) -> None:
        super().__init__()
        self.settings = {"link": [np.log, lambda x: x]}


class HasALock(Mixture):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class CountsCannotBeSent(Mixture):
    def expect(self, *args: Any, **options: Any) -> Stats:
        return replace(super().expect(*args, **options), local=lambda: None)


class ForgetsWhatItNeeds(Mixture):
    """Its pickle leaves out a number that the E-step uses."""

    scale = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0 + 2**-50

    def __getstate__(self) -> dict[str, Any]:
        return {"families": self.families}

    def expect(self, *args: Any, **options: Any) -> Stats:
        stats = super().expect(*args, **options)
        return replace(stats, score=stats.score * self.scale)


class CannotBeRead(Mixture):
    def __reduce__(self) -> Any:
        return type(self), ("one argument too many",)


class Caches(PickledWithoutCaches, Mixture):
    @cached_property
    def lock(self) -> Any:
        return threading.Lock()

    def expect(self, *args: Any, **options: Any) -> Stats:
        with self.lock:
            return super().expect(*args, **options)


class BackwardsMaximise(Categorical):
    def maximise(self, counts: Any, old: Any, rng: Any) -> Any:
        return super().maximise(np.asarray(counts)[:, ::-1], old, rng)


class FallsInEM(Mixture):
    def __init__(self) -> None:
        super().__init__()
        self.families["word"] = BackwardsMaximise((K, V))


FAULTS = [
    (CountsADoubled, "Fisher's identity"),
    (CountsADoubled, "counts are derivatives"),
    (CountsADoubled, "posteriors are normalised"),
    (CountsADoubled, "L = F + KL"),
    (Negative, "counts are finite and not negative"),
    (NotANumber, "counts are finite and not negative"),
    (TurnedShape, "counts are finite and not negative"),
    (WrongLikelihood, "Fisher's identity"),
    (WrongScore, "counts are derivatives"),
    (NotNormalised, "posteriors are normalised"),
    (Remembers, "expect is pure"),
    (WritesIntoItsInput, "expect is pure"),
    (ReusesItsBuffer, "expect is pure"),
    (OneShardOnly, "shards add up"),
    (HardAboveSoft, "hard is below soft"),
    (SamplesTheBest, "samples agree with posteriors"),
    (SamplesByThread, "threads do not matter"),
    (SamplesByThread, "expect is pure"),
    (TemperIgnored, "tempering"),
    (TemperAlways, "Fisher's identity"),
    (FallsInEM, "soft EM never falls"),
    (SamplesByShard, "many shards are one"),
    (OneShardOnly, "many shards are one"),
    (Remembers, "many shards are one"),
    (AddsInPlace, "many shards are one"),
    (DriftsInSums, "many shards are one"),
    (HasALambda, "it can be pickled"),
    (HasALock, "it can be pickled"),
    (CountsCannotBeSent, "it can be pickled"),
    (ForgetsWhatItNeeds, "it can be pickled"),
    (CannotBeRead, "it can be pickled"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("fault", "law"), FAULTS, ids=lambda x: getattr(x, "__name__", x))
def test_a_fault_is_caught_by_its_law(fault: type[Mixture], law: str) -> None:
    assert law in broken(fault())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (SamplesByShard, "draws must be seeded by the stream and the item's number"),
        (AddsInPlace, "of a shard is changed when it is added to that of another"),
        (DriftsInSums, "depends on which shards are added first"),
        (Remembers, "of one shard depends on what was computed before"),
        (HasALambda, r"core\.settings\['link'\]\[1\] is a lambda, or a function defined inside"),
        (HasALock, r"core\.lock, a lock, cannot be pickled .* leave it out in __getstate__"),
        (CountsCannotBeSent, r"stats\.local is a lambda"),
        (ForgetsWhatItNeeds, "score .* differs after pickling: what a pickle leaves out"),
        (CannotBeRead, "core can be pickled, but not read again: TypeError"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_broken_is_said_in_words(fault: type[Mixture], words: str) -> None:
    with pytest.raises(LawError, match=words):
        check_model(Estimator(fault()), DATA).raise_if_failed()


def test_a_class_inside_a_function_cannot_be_sent() -> None:
    class Local(Mixture):
        pass

    (law,) = check_model(Estimator(Local()), DATA).failed
    assert law.name == "it can be pickled"
    assert "Local is defined inside a function; define it at the top level" in law.detail


class Shard(Bags):
    """A shard that holds on to an open file, like one that reads its items from it."""

    def __getattr__(self, name: str) -> Any:
        if name != "file":
            raise AttributeError(name)
        vars(self)["file"] = Path(__file__).open()  # noqa: SIM115 (it is meant to stay)
        return vars(self)["file"]


class ReadsFromAFile(Mixture):
    def expect(self, params: Any, shard: Any, *args: Any, **options: Any) -> Stats:
        assert shard.file
        return super().expect(params, shard, *args, **options)


class FileCorpus(BagCorpus):
    def shards(self, batch_size: int | None, seed: int) -> Any:
        return [Shard(each.words, each.number) for each in super().shards(batch_size, seed)]


class ReadsFiles(Estimator):
    def _bind(self, data: np.ndarray) -> Any:
        return self.core, FileCorpus(data)


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_shard_that_cannot_be_sent_is_named() -> None:
    (law,) = check_model(ReadsFiles(ReadsFromAFile()), DATA).failed
    assert law.name == "it can be pickled"
    assert law.detail.startswith("shards[0].file, a TextIOWrapper, cannot be pickled")


def test_caches_need_not_be_sent() -> None:
    report = check_model(Estimator(Caches()), DATA)
    report.raise_if_failed()
    assert "3 shards" in str(report)


def test_one_item_is_not_many_shards() -> None:
    report = check_model(Estimator(Mixture()), DATA[:1])
    report.raise_if_failed()
    assert "many shards are one" not in [law.name for law in report]


def test_order_of_adding_up_is_caught() -> None:
    """A sum that depends on what the machine does: numbers from a clock stand for a race."""

    class Race(Mixture):
        ticks = itertools.count()

        def expect(self, *args: Any, **options: Any) -> Stats:
            stats = super().expect(*args, **options)
            noise = 1e-14 * (next(self.ticks) % 7)
            word = np.asarray(stats.counts["word"]) * (1.0 + noise)
            return replace(stats, counts={**stats.counts, "word": word})

    assert broken(Race()) >= {"threads do not matter", "expect is pure"}


# what cannot be checked is left out


class Silent(Mixture):
    totals = Model.totals


def test_a_model_without_totals_is_not_asked_for_them() -> None:
    report = check_model(Estimator(Silent()), DATA)
    report.raise_if_failed()
    assert "posteriors are normalised" not in [law.name for law in report]


def test_a_prior_without_a_mode_has_no_em_to_check() -> None:
    core = Mixture()
    core.families["word"] = Categorical((K, V), prior=0.5)
    report = check_model(Estimator(core), DATA)
    report.raise_if_failed()
    assert "soft EM never falls" not in [law.name for law in report]


class Points(Mixture):
    """A mixture of two bells: its counts are moments, not numbers of events."""

    def __init__(self) -> None:
        self.bell = Gaussian(K, V, covariance="diag")
        self.families = {"theme": Categorical((1, K)), "bell": self.bell}

    def joint(self, params: Mapping[str, Any], shard: Bags) -> np.ndarray:
        density = self.bell.log_density(params["bell"], shard.words)
        return np.asarray(np.log(params["theme"][0]) + density)

    def expect(
        self, params: Mapping[str, Any], shard: Bags, how: EStep, local: Any = None
    ) -> Stats:
        stats = super().expect({**params, "word": np.ones((K, V))}, shard, how, local)
        weights = self.weights(self.joint(params, shard), shard, how)
        bell = self.bell.statistics(shard.words, weights)
        return replace(stats, counts={"theme": stats.counts["theme"], "bell": bell})

    def totals(self, shard: Bags) -> dict[str, float]:
        return {"theme": len(shard.words)}


def test_laws_for_families_that_are_not_tables() -> None:
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.normal(0, 1, (8, V)), rng.normal(1, 1, (8, V))])
    check_model(Estimator(Points()), data).raise_if_failed()


# estimators that can be saved


class Saved(Estimator):
    params_ = ()
    drift = 0.0

    def score(self, data: np.ndarray) -> np.ndarray:
        return data.sum(axis=1) + self.drift

    def save(self, path: Path) -> None:
        path.write_text("a model")

    @classmethod
    def load(cls, path: Path, core: Any) -> Saved:
        assert path.read_text() == "a model"
        return cls(core)


class Drifts(Saved):
    @classmethod
    def load(cls, path: Path, core: Any) -> Saved:
        again = cls(core)
        again.drift = 1e-9
        return again


def test_saving_is_checked_where_it_is_offered() -> None:
    assert "save and load" in [law.name for law in check_model(Saved(Mixture()), DATA)]
    assert check_model(Saved(Mixture()), DATA).passed
    failed = check_model(Drifts(Mixture()), DATA).failed
    assert [law.name for law in failed] == ["save and load"]


# the report


def test_the_report_raises_and_reads_well() -> None:
    report = check_model(Estimator(CountsADoubled()), DATA)
    assert not report.passed
    assert "BROKEN" in str(report)
    with pytest.raises(LawError, match="Fisher's identity") as caught:
        report.raise_if_failed()
    assert isinstance(caught.value, AssertionError)
    assert report[0] is report.laws[0]
