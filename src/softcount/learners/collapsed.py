"""Gibbs sampling of hidden values alone, the parameters integrated out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

from softcount.errors import LearnerError
from softcount.interrupt import Responsive
from softcount.learners.base import at_least
from softcount.learners.named import Gibbs
from softcount.learners.steps import FreeSampler, Pending, Sampler, Schedule, Step, Tables, Work


@dataclass(frozen=True)
class Collapsed:
    """One sweep of the model's own sampler, which draws every item's hidden value given all others.

    The parameters of a step are their posterior mean given all hidden values, E[θ | x, z], and the
    objective is log p(x, z), in which they are integrated out.

    ``optimise``  fit the priors to the hidden values after every so many sweeps; 0: never
    """

    optimise: int = 0
    collapses: ClassVar[bool] = True  # models say whether they have such a sampler
    climbs: ClassVar[bool] = False
    shuffles: ClassVar[bool] = True
    batch_size: ClassVar[None] = None
    held_out: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        at_least("optimise", self.optimise, 0)

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        sampler = work.collapse(tables.params)
        if self.optimise and not isinstance(sampler, FreeSampler):
            raise LearnerError(
                f"optimise={self.optimise}: this model's priors cannot be learned", "leave it at 0"
            )
        yield _step(work, sampler, tables)
        responsive = Responsive()
        for sweep in count(1):
            if isinstance(tables.params, Pending):
                tables.params.expire()
            responsive(sampler.sweep, work.stream("sweep"), work.temper)
            if self.optimise and sweep % self.optimise == 0:
                assert isinstance(sampler, FreeSampler)
                sampler.optimise()
            tables = _tables(work, sampler, tables)
            yield _step(work, sampler, tables)


def _tables(work: Work, sampler: Sampler, old: Tables) -> Tables:
    """E[θ | x, z]; log p(x, z) has the prior inside, so that there is no penalty."""
    if isinstance(sampler, FreeSampler):
        return Tables(Pending(sampler.means), penalty=0.0, priors=sampler.priors())
    counts = sampler.counts()
    params = {
        name: family.mean(counts[name], old.params[name]) for name, family in work.families.items()
    }
    return Tables(params, penalty=0.0, counts=counts)


def _step(work: Work, sampler: Sampler, tables: Tables) -> Step:
    if isinstance(sampler, FreeSampler):
        stats = sampler.stats()
        return Step(tables, stats, stats.score)
    return Step(tables, work.score(tables.params), sampler.log_joint())


@dataclass(frozen=True, kw_only=True)
class CollapsedGibbs(Gibbs):
    """Gibbs sampling with the parameters integrated out: sample · draw · Collapsed (Liu 1994).

    Every hidden value is drawn given all other hidden values, so that a change is felt at once:
    far fewer steps than `Gibbs`, for models that have such a sampler (mixtures of multinomials,
    topics, hidden Markov models, grammars). Reports the mean over one chain's kept steps of
    E[θ | x, z], which varies less than draws of θ (Rao–Blackwell). As for `Gibbs`, that mean blurs
    classes that change names within the chain.

    ``optimise``  for topics: fit the priors to the hidden values after every so many sweeps

    >>> print(CollapsedGibbs(max_iter=50))
    CollapsedGibbs(max_iter=50, tol=1e-06)
    """

    schedule: Schedule = field(init=False)
    max_iter: int = 100
    n_chains: int = 1
    thin: int = 5  # neighbours differ little, and every draw is kept in memory
    optimise: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", Collapsed(self.optimise))
        super().__post_init__()
