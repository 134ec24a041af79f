"""Streaming: learning from data as they arrive, one mini-batch at a time (``partial_fit``).

It is the loop of `softcount.core.fit` with a schedule that visits every mini-batch once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from softcount._version import __version__
from softcount.core import interrupt
from softcount.core.bounds import MAX_STEPS
from softcount.core.errors import LearnerError
from softcount.core.fit import OnStep, Run, open_session
from softcount.core.model import Corpus, Model
from softcount.core.types import Array, Fit, Params, State, Stats, Trace, Update
from softcount.core.verdict import Verdict
from softcount.engines.base import Engine
from softcount.families.base import Family
from softcount.learners.base import Learner
from softcount.learners.named import OnlineEM
from softcount.learners.schedules import Saved, Schedule, Step, Stepwise, Tables

MOST = 10.0
"""A mini-batch may weigh at most this many times its share of all items. Learning may continue with
a few items after many, and those few must not make it forget the many."""


@dataclass(frozen=True, eq=False)
class StreamProgress:
    """The state of a stream between calls.

    ``params``   the parameters
    ``counts``   running average of the counts per item, by family; empty at first
    ``items``    number of items seen
    ``batches``  number of mini-batches seen
    ``states``   the trace so far
    """

    params: Params
    counts: Mapping[str, Array]
    items: float = 0.0
    batches: int = 0
    states: Sequence[State] = ()


class Streaming(Schedule):
    """Mini-batches as they arrive, each visited once (Cappé & Moulines 2009).

    With s the average counts per item and s_t those of mini-batch t, s ← (1 − η_t) s + η_t s_t;
    parameters are made from N s, where N is the number of items seen so far. Initially s is the
    average over all data of the first call, at the initial parameters. η_t is at most `MOST` times
    the mini-batch's share of N.

    A step's figures are those of a mini-batch before it was learned from, without the prior: how
    well the new data were predicted. Its parameters are those after the update.
    """

    shuffles: ClassVar[bool] = True
    streams: ClassVar[bool] = True
    ending: ClassVar[Verdict] = Verdict.STREAMED

    def __init__(self, stepwise: Stepwise, progress: StreamProgress) -> None:
        self.stepwise, self.progress = stepwise, progress
        self.before = progress.batches
        self.batch_size = stepwise.batch_size

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        def average(stats: Stats) -> dict[str, Array]:
            """Return the average counts per item."""
            return {name: np.asarray(counts) / stats.items for name, counts in stats.counts.items()}

        params, families, m, rng = tables.params, run.families, run.learner.m, run.rng("update")
        seen, t = self.progress.items, self.progress.batches
        counts = dict(self.progress.counts) or average(run.expect(params))
        if m == "mean_field" and seen:  # the previous call kept the posterior mean instead
            params = _update(families, m, counts, seen, params, rng)
        for shard in range(len(run.session)):
            batch = run.expect(params, [shard])
            seen, t, new = seen + batch.items, t + 1, average(batch)
            eta = min(self.stepwise.step_size(t), MOST * batch.items / seen)
            counts = {name: (1.0 - eta) * counts[name] + eta * new[name] for name in counts}
            params = _update(families, m, counts, seen, params, rng)
            self.progress = StreamProgress(params, counts, seen, t)
            yield Step(Tables(params, 0.0), batch, batch.score)

    def where(self, step: int, n_shards: int) -> str:
        return f"after {step - self.before:,} of {n_shards:,} mini-batches of this call"


def stream_learner(learner: Learner | None) -> tuple[Learner, Stepwise]:
    """Return a mini-batch learner (`OnlineEM` if None is given) and its schedule.

    Raises a `LearnerError` for any other learner.
    """
    chosen = OnlineEM() if learner is None else learner
    if not isinstance(chosen.schedule, Stepwise):
        raise LearnerError(
            f"{chosen} needs all data in every step: none can come later",
            "use OnlineEM() or StochasticVB() with partial_fit",
        )
    return chosen, chosen.schedule


@interrupt.graceful()
def fit_stream(
    model: Model,
    data: Corpus,
    progress: StreamProgress,
    learner: Learner | None = None,
    engine: Engine | None = None,
    *,
    seed: int = 0,
    on_step: Sequence[OnStep] = (),
) -> tuple[StreamProgress, Fit]:
    """Learn from more data (see `Streaming`); Ctrl-C skips the rest of them.

    The trace is that of all calls so far.
    """
    chosen, stepwise = stream_learner(learner)
    schedule = Streaming(stepwise, progress)
    once = Learner(
        e=chosen.e,
        m=chosen.m,
        schedule=schedule,
        max_iter=MAX_STEPS,
        tol=0.0,
        temper=chosen.temper_at(0),
        samples=chosen.samples,
    )
    first = progress.batches
    with open_session(model, data, engine, stepwise.batch_size, seed + first) as session:
        run = Run(model, session, once, seed, run=first, first_step=first + 1)
        result = run.drain(progress.params, on_step, keep_params=False)
    now = schedule.progress
    if chosen.m == "mean_field":
        params = {
            name: family.mean(now.items * now.counts[name], now.params[name])
            for name, family in model.families.items()
        }
        now = replace(now, params=params)
    now = replace(now, states=(*progress.states, *result.trace.states))
    trace = Trace(tuple(now.states), result.trace.verdict)
    seen = f"{now.items:.0f} items in {now.batches} batches"
    signature = (
        f"softcount {__version__} · {model.name} · partial_fit · {chosen} · seed {seed} · {seen}"
    )
    return now, Fit(now.params, trace, (trace,), signature)


def _update(
    families: Mapping[str, Family],
    m: Update,
    counts: Mapping[str, Array],
    seen: float,
    old: Params,
    rng: np.random.Generator,
) -> Params:
    """Update parameters from average counts per item, scaled up to the ``seen`` items."""
    return {
        name: family.update(m, seen * counts[name], old[name], rng)
        for name, family in families.items()
    }
