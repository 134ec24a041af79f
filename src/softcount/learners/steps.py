"""What schedules and the loop say to each other: tables, steps, and the work to be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from softcount.families.base import Family
from softcount.types import Counts, Params, Stats


@dataclass(frozen=True)
class Tables:
    """Parameters, with what they cost and what made them.

    ``penalty``  the prior's part of the objective: Σ log p(θ) for parameters that are a point,
                 −Σ KL(q(θ) ‖ p(θ)) for a variational posterior (−inf at the start, where there is
                 no posterior yet)
    ``counts``   the counts they were made from; None at the start and after a jump
    """

    params: Params
    penalty: float
    counts: Mapping[str, Counts] | None = None


@dataclass(frozen=True)
class Step:
    """Parameters, what an E-step found with them, and the objective they attain."""

    tables: Tables
    stats: Stats
    objective: float


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

    @property
    def temper(self) -> float:
        """The power β of this step."""

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

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        """Steps without end, the first at the start itself."""


def look(work: Work, tables: Tables) -> Step:
    """An E-step over all data at these tables."""
    stats = work.expect(tables.params)
    return Step(tables, stats, stats.score + tables.penalty)


def expected_log(
    families: Mapping[str, Family], counts: Mapping[str, Counts], params: Params
) -> float:
    """Q = Σ_f ⟨counts_f, log θ_f⟩: the expected complete-data log-likelihood (Dempster et al.)."""
    return sum(family.expected_log(counts[name], params[name]) for name, family in families.items())
