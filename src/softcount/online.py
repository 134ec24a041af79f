"""Learning from data as they come, a batch at a time: what ``partial_fit`` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softcount import interrupt
from softcount._version import __version__
from softcount.engines.base import Engine
from softcount.errors import LearnerError
from softcount.fit import check_start
from softcount.job import Corpus, Job, Model, open_session
from softcount.learners.base import Learner
from softcount.learners.named import OnlineEM
from softcount.learners.schedules import Stepwise
from softcount.types import Array, Params, Stats, Update

MOST = 10.0
"""How much more than its share of all items a mini-batch may weigh: learning goes on with a few
items after many, and these must not be forgotten for them."""


@dataclass(frozen=True, eq=False)
class Progress:
    """How far learning has come.

    ``params``   the parameters
    ``counts``   a running average of the counts of one item, by family; empty at first
    ``items``    how many items were seen
    ``batches``  how many mini-batches
    """

    params: Params
    counts: Mapping[str, Array]
    items: float = 0.0
    batches: int = 0


def online(learner: Learner | None) -> tuple[Learner, Stepwise]:
    """The learner, if it learns by mini-batches, and its steps; `OnlineEM` if None is given."""
    chosen = OnlineEM() if learner is None else learner
    if not isinstance(chosen.schedule, Stepwise):
        raise LearnerError(
            f"{chosen} looks at all data in every step: none can come later",
            "use OnlineEM() or StochasticVB() with partial_fit",
        )
    return chosen, chosen.schedule


@interrupt.graceful()
def learn_more(
    model: Model,
    data: Corpus,
    progress: Progress,
    learner: Learner | None = None,
    engine: Engine | None = None,
    seed: int = 0,
) -> Progress:
    """Learn from some more data (Cappé & Moulines 2009).

    With s the average of an item's counts and s_t that of mini-batch t, s ← (1 − η_t) s + η_t s_t;
    parameters are made from N s, N being the number of items seen so far. At first s is that of all
    data given, as seen from the start. η_t is at most `MOST` times the mini-batch's share of N.
    After Ctrl-C the rest of the data is left out.
    """
    chosen, steps = online(learner)
    counts, seen, t = dict(progress.counts), progress.items, progress.batches
    params: Params = check_start(model.families, progress.params)
    with open_session(model, data, engine, steps.batch_size, seed + t) as session:
        job = Job(model, session, chosen, seed, run=t)
        counts = counts or _average(job.expect(params))
        rng = job.rng("update")
        if chosen.m == "mean_field" and seen:  # what was kept is the mean
            params = _made(model, chosen.m, counts, seen, params, rng)
        for shard in range(len(session)):
            batch = job.expect(params, [shard])
            seen, t, new = seen + batch.items, t + 1, _average(batch)
            eta = min(steps.step_size(t), MOST * batch.items / seen)
            counts = {name: (1.0 - eta) * counts[name] + eta * new[name] for name in counts}
            params = _made(model, chosen.m, counts, seen, params, rng)
            if interrupt.asked():
                interrupt.tell(f"after {shard + 1:,} of {len(session):,} mini-batches of this call")
                break
    if chosen.m == "mean_field":
        params = {
            name: family.mean(seen * counts[name], params[name])
            for name, family in model.families.items()
        }
    return Progress(params, counts, seen, t)


def _made(
    model: Model,
    word: Update,
    counts: Mapping[str, Array],
    seen: float,
    old: Params,
    rng: np.random.Generator,
) -> Params:
    """Parameters from the counts of so many items."""
    return {
        name: getattr(family, word)(seen * counts[name], old[name], rng)
        for name, family in model.families.items()
    }


def _average(stats: Stats) -> dict[str, Array]:
    """The counts of one item."""
    return {name: np.asarray(counts) / stats.items for name, counts in stats.counts.items()}


def signature(model: Model, progress: Progress, learner: Learner | None, seed: int) -> str:
    """One line that says how the parameters came about."""
    seen = f"{progress.items:.0f} items in {progress.batches} batches"
    chosen, _ = online(learner)
    return f"softcount {__version__} · {model.name} · partial_fit · {chosen} · seed {seed} · {seen}"
