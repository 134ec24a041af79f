"""What schedules and the loop say to each other: tables, steps, and the work to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from softcount.errors import LearnerError
from softcount.families.base import Family
from softcount.types import Array, Counts, Params, Stats


@dataclass(frozen=True)
class Tables:
    """Parameters, with what they cost and what made them.

    ``penalty``  the prior's part of the objective: Σ log p(θ) for parameters that are a point,
                 −Σ KL(q(θ) ‖ p(θ)) for a variational posterior (−inf at the start, where there is
                 no posterior yet)
    ``counts``   the counts they were made from; None at the start and after a jump
    ``priors``   priors that were learned beside them, if any were
    """

    params: Params
    penalty: float
    counts: Mapping[str, Counts] | None = None
    priors: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """Parameters, what an E-step found with them, and the objective they attain.

    ``held_out`` is the perplexity of held-out data, if the schedule looks at any.
    """

    tables: Tables
    stats: Stats
    objective: float
    held_out: float = float("nan")


class Pending(Mapping[str, Array]):
    """Parameters that are worked out when they are looked at, before the next step.

    For samplers whose tables would take longer to write down than a sweep takes.
    """

    def __init__(self, make: Callable[[], Params]) -> None:
        self._make: Callable[[], Params] | None = make
        self._made: Params | None = None

    def expire(self) -> None:
        """From now on they can be looked at only if they were before."""
        self._make = None

    def _params(self) -> Params:
        if self._made is None:
            if self._make is None:
                raise LearnerError(
                    "the parameters of this step are gone: the sampler has moved on",
                    "look at them in on_step, or keep them all by keep_params=True",
                )
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Array:
        return self._params()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params())

    def __len__(self) -> int:
        return len(self._params())


class Average(Protocol):
    """A running average of counts, for stepwise learning."""

    def blend(self, batch: Stats, eta: float, scale: float) -> None:
        """s ← (1 − η) s + η · scale · s_batch."""

    def params(self, old: Params) -> Params:
        """Parameters from the average; large tables may be lazy, and last until the next blend."""

    def tables(self, params: Params) -> Tables:
        """These parameters in full, with their penalty."""


class Sampler(Protocol):
    """Hidden values of all items, drawn one given all others, parameters integrated out."""

    def sweep(self, stream: int, temper: float) -> None:
        """Draw every hidden value anew; ``stream`` seeds the draws, ``temper`` is a power of p."""

    def log_joint(self) -> float:
        """log p(x, z)."""

    def counts(self) -> Mapping[str, Counts]:
        """What the data and the hidden values add up to, one entry a family."""


@runtime_checkable
class FreeSampler(Sampler, Protocol):
    """A sampler whose priors may be learned too, so that it alone knows what counts say."""

    def optimise(self) -> None:
        """Fit the priors to the hidden values: log p(x, z) cannot fall."""

    def priors(self) -> Mapping[str, Array]:
        """The priors, by name."""

    def means(self) -> Params:
        """E[θ | x, z], one table a family."""

    def stats(self) -> Stats:
        """How well the data fit; an E-step would cost more than a sweep."""


class Work(Protocol):
    """What a schedule may ask for. It never sees the model, the data or the engine."""

    @property
    def families(self) -> Mapping[str, Family]:
        """The families, by name."""

    @property
    def n_shards(self) -> int:
        """How many shards the data is cut into."""

    def expect(self, params: Params, shards: Sequence[int] | None = None) -> Stats:
        """An E-step over some shards (all, if None), summed in a fixed order."""

    def expect_each(self, params: Params, shards: Sequence[int]) -> list[Stats]:
        """An E-step over some shards, one answer each."""

    def score(self, params: Params) -> Stats:
        """How well all data fit (score, log-likelihood, items and tokens; counts may be empty)."""

    def update(self, stats: Stats, tables: Tables) -> Tables:
        """An M-step: new tables from the counts."""

    def point(self, params: Params) -> Tables:
        """Tables at parameters that no counts made."""

    def running(self) -> Average:
        """A fresh running average."""

    def foresee(self, params: Params) -> Stats:
        """How well the held-out data fit (log-likelihood and tokens), as the shards now stand."""

    @property
    def temper(self) -> float:
        """The power β of E-steps: the learner's at this step, unless it is set."""

    @temper.setter
    def temper(self, beta: float) -> None: ...

    def collapse(self, params: Params) -> Sampler:
        """The model's collapsed sampler; its hidden values begin as a draw given ``params``."""

    def snapshot(self) -> Any:
        """The state of all shards, to come back to with `restore`."""

    def restore(self, snapshot: Any) -> None:
        """Back to the state of the shards at `snapshot`."""

    def rng(self, purpose: str) -> np.random.Generator:
        """Fresh random numbers; the same for the same seed, whatever the threads do."""

    def stream(self, purpose: str) -> int:
        """As `rng`: a fresh number to seed a kernel with."""


class Schedule(Protocol):
    """When counts become parameters."""

    climbs: ClassVar[bool]
    """Whether the objective cannot fall (if the E- and M-steps each cannot lower it)."""

    shuffles: ClassVar[bool]
    """Whether the order of the data is random, so that two runs from one start differ."""

    @property
    def batch_size(self) -> int | None:
        """How many items a shard is to have; None leaves the cut to the corpus."""

    @property
    def held_out(self) -> float:
        """The share of the data kept from learning, by which the schedule itself ends; else 0."""

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        """The first at the start itself; without end, unless the schedule holds data out."""


def look(work: Work, tables: Tables) -> Step:
    """An E-step over all data at these tables."""
    stats = work.expect(tables.params)
    return Step(tables, stats, stats.score + tables.penalty)


def expected_log(
    families: Mapping[str, Family], counts: Mapping[str, Counts], params: Params
) -> float:
    """Q = Σ_f ⟨counts_f, log θ_f⟩: the expected complete-data log-likelihood (Dempster et al.)."""
    return sum(family.expected_log(counts[name], params[name]) for name, family in families.items())
