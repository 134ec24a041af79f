"""The interfaces of models and corpora, and one run's work on them: where the three words meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from softcount.engines.base import Engine, Expect, Session, Shard
from softcount.engines.local import Local
from softcount.errors import DataError, LearnerError
from softcount.families.base import Family
from softcount.learners.base import Learner
from softcount.learners.steps import Sampler, Tables
from softcount.types import Counts, How, Params, Stats


class Model(Protocol):
    """What is hidden: families of distributions, and an E-step."""

    @property
    def name(self) -> str:
        """What to call it in signatures."""

    @property
    def families(self) -> Mapping[str, Family]:
        """Its distributions, by name. Those that belong to shards are not among them."""

    @property
    def threads_inside(self) -> bool:
        """Whether one shard's E-step uses many threads (else: one thread a shard)."""

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; pure.

        ``local`` is what the last E-step on this shard left in `Stats.local` (None at first).
        """


@runtime_checkable
class Collapsible(Protocol):
    """A model that can be sampled with its parameters integrated out."""

    def collapse(self, shards: Sequence[Shard], params: Params, stream: int) -> Sampler:
        """The sampler for all shards, hidden values drawn from their posterior at ``params``."""


@runtime_checkable
class Foreseeing(Protocol):
    """A model that can tell how well it foresees data held out within each shard."""

    def foresee(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Log-likelihood and number of the shard's held-out tokens; pure."""


@runtime_checkable
class HasLocal(Protocol):
    """A model with parameters that belong to items and stay with their shards."""

    local_name: str
    """What their table is called."""

    def rows_used(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """The items' "rows" as an E-step takes them, and the items' "numbers", as counts; pure."""

    def rows_reported(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """The same as users see them: proper rows."""


class Corpus(Protocol):
    """Data that can be cut into shards."""

    def __len__(self) -> int:
        """How many items there are."""

    def shards(self, batch_size: int | None, seed: int) -> Sequence[Shard]:
        """The data in shards.

        None: the corpus's own cut, which depends on the data alone. A number: items shuffled by
        the seed, so many a shard.
        """


def demand_bound(model: Model) -> None:
    """Complain of a model whose counts are no posterior's: there is no bound, nor an entropy.

    Such a model says why, as ``no_bound``.
    """
    reason = getattr(model, "no_bound", "")
    if reason:
        raise LearnerError(
            f"{model.name}: the log-likelihood cannot be taken apart, {reason}",
            "ask a model whose E-step is that of EM",
        )


def open_session(
    model: Model, data: Corpus, engine: Engine | None, batch_size: int | None = None, seed: int = 0
) -> Session:
    """The data's shards, opened on the engine (`Local` if None)."""
    if len(data) == 0:
        raise DataError("there is nothing to learn from: the data set is empty", "pass some items")
    shards = data.shards(batch_size, seed)
    return (engine or Local()).open(shards, threads_inside=model.threads_inside)


PURPOSES = ("start", "expect", "update", "order", "collapse", "sweep")
"""What random numbers are for; each purpose has its own streams."""


class Job:
    """One run's work: the model's E-step on the engine, the learner's word on the families.

    Implements `softcount.learners.steps.Work`. ``step`` is set by the loop.
    """

    def __init__(
        self, model: Model, session: Session, learner: Learner, seed: int, run: int
    ) -> None:
        self.model = model
        self.families = model.families
        self.session = session
        self.learner = learner
        self.step = 0
        self.theory = False
        self.keeps_local = False
        self.before: Any = None
        """What the shards had of their own when the last E-step over all data began, if wanted."""
        self.looked = False
        self._temper: float | None = None
        self._seed = seed
        self._run = run
        self._used: Counter[str] = Counter()

    @property
    def n_shards(self) -> int:
        return len(self.session)

    # E-steps

    def expect(self, params: Params, shards: Sequence[int] | None = None) -> Stats:
        if shards is None:
            self._remember_local(moving=True)
        return self.session.expect(self.model.expect, params, self._how(), shards)

    def expect_each(self, params: Params, shards: Sequence[int]) -> list[Stats]:
        self._remember_local(moving=True)
        return self.session.each(self.model.expect, params, self._how(), shards)

    def score(self, params: Params) -> Stats:
        self._remember_local(moving=False)
        return self.session.expect(self.model.expect, params, self._how(score_only=True))

    def _remember_local(self, *, moving: bool) -> None:
        """A step's figures are those of what the shards have *before* its E-step moves it.

        (But for what a mini-batch moves before it counts: its E-step is asked in the same way.)
        """
        if self.keeps_local:
            self.before, self.looked = self.session.snapshot(), self._mini_batches and moving

    @property
    def _mini_batches(self) -> bool:
        return self.learner.schedule.batch_size is not None

    def rows(self, function: Expect, params: Params) -> list[Stats]:
        """What a function finds in each shard as it was when the last E-step began."""
        now = self.session.snapshot()
        self.session.restore(self.before)
        how = How(score_only=True, update=self.learner.m, mini_batch=self.looked)
        try:
            return self.session.each(function, params, how)
        finally:
            self.session.restore(now)

    def _how(self, score_only: bool = False) -> How:
        learner = self.learner
        return How(
            fill=learner.e,
            temper=self.temper,
            samples=learner.samples,
            stream=self.stream("expect"),
            score_only=score_only,
            update=learner.m,
            mini_batch=self._mini_batches,
            theory=self.theory,
        )

    @property
    def temper(self) -> float:
        return self.learner.temper_at(self.step) if self._temper is None else self._temper

    @temper.setter
    def temper(self, beta: float) -> None:
        self._temper = beta

    def foresee(self, params: Params) -> Stats:
        if not isinstance(self.model, Foreseeing):
            raise LearnerError(
                f"{self.model.name} has no held-out words, by which {self.learner} would end",
                "use EM(); the temper is chosen on held-out words for topic models alone",
            )
        return self.session.expect(self.model.foresee, params, How(score_only=True))

    def collapse(self, params: Params) -> Sampler:
        if not isinstance(self.model, Collapsible):
            raise LearnerError(
                f"{self.model.name} has no collapsed sampler",
                "use Gibbs(), which samples any model",
            )
        return self.model.collapse(self.session.shards, params, self.stream("collapse"))

    def snapshot(self) -> Any:
        return self.session.snapshot()

    def restore(self, snapshot: Any) -> None:
        self.session.restore(snapshot)

    # M-steps

    def update(self, stats: Stats, tables: Tables) -> Tables:
        rng = self.rng("update")
        params = {
            name: getattr(family, self.learner.m)(stats.counts[name], tables.params[name], rng)
            for name, family in self.families.items()
        }
        return self.made(params, stats.counts)

    def made(self, params: Params, counts: Mapping[str, Counts]) -> Tables:
        """Tables of parameters that these counts made."""
        if self.learner.m != "mean_field":
            return self.point(params)  # nobody asks a point for its counts: let go of them
        price = sum(f.divergence(counts[name], params[name]) for name, f in self.families.items())
        return Tables(params, -price, counts)

    def point(self, params: Params) -> Tables:
        return Tables(params, sum(f.log_prior(params[name]) for name, f in self.families.items()))

    def start(self, params: Params) -> Tables:
        """Tables at the start; a variational posterior does not exist yet, hence −inf."""
        return Tables(params, -np.inf) if self.learner.m == "mean_field" else self.point(params)

    def running(self) -> RunningAverage:
        return RunningAverage(self)

    # random numbers

    def rng(self, purpose: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(self._seeds(purpose)))

    def stream(self, purpose: str) -> int:
        return int(self._seeds(purpose).generate_state(1, np.uint64)[0])

    def _seeds(self, purpose: str) -> np.random.SeedSequence:
        """A new stream: by seed, run, purpose, and how often that purpose asked before."""
        key = (self._run, PURPOSES.index(purpose), self._used[purpose])
        self._used[purpose] += 1
        return np.random.SeedSequence(self._seed, spawn_key=key)


class RunningAverage:
    """A running average of the counts of all families (`softcount.learners.steps.Average`)."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._parts = {name: family.running() for name, family in job.families.items()}

    def blend(self, batch: Stats, eta: float, scale: float) -> None:
        for name, part in self._parts.items():
            part.blend(batch.counts[name] * scale, eta)

    def params(self, old: Params) -> Params:
        rng = self._job.rng("update")
        return {
            name: part.params(self._job.learner.m, old[name], rng)
            for name, part in self._parts.items()
        }

    def tables(self, params: Params) -> Tables:
        counts = {name: part.counts() for name, part in self._parts.items()}
        return self._job.made({name: np.asarray(table) for name, table in params.items()}, counts)
