"""When counts become parameters: after all data, after each shard, or after each mini-batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar

from softcount.bounds import MAX_NUMBER, MAX_WHOLE
from softcount.errors import LearnerError, shown
from softcount.learners.steps import Step, Tables, Work, expected_log, look
from softcount.types import Stats


@dataclass(frozen=True)
class Batch:
    """All data, then one update (Dempster, Laird & Rubin 1977)."""

    climbs: ClassVar[bool] = True
    shuffles: ClassVar[bool] = False
    held_out: ClassVar[float] = 0.0
    batch_size: ClassVar[None] = None

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        while True:
            step = look(work, tables)
            yield step
            tables = work.update(step.stats, tables)


@dataclass(frozen=True, kw_only=True)
class Stepwise:
    """Mini-batches in random order, with a decaying step size (Cappé & Moulines 2009).

    After batch t the average of counts moves by η_t = (t + t0)^−κ towards the batch's own counts,
    scaled up to the whole data: s ← (1 − η_t) s + η_t (N / n) s_batch. ½ < κ ≤ 1 makes it
    converge; a smaller κ forgets the past sooner (Liang & Klein 2009 compare values).
    The average begins with the counts of all data at the start: were it to begin with the first
    batch, whatever that batch lacks would be impossible in the second. One step is one pass.
    """

    batch_size: int = 256
    kappa: float = 0.7
    t0: float = 2.0
    climbs: ClassVar[bool] = False
    shuffles: ClassVar[bool] = True
    held_out: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _check_batch_size(self.batch_size)
        if not 0.5 < self.kappa <= 1:
            raise LearnerError(
                f"kappa={self.kappa}: step sizes (t + t0)^-kappa converge only for 0.5 < kappa ≤ 1",
                "0.7 is a good first choice",
            )
        if not 0 <= self.t0 <= MAX_NUMBER:
            raise LearnerError(
                f"t0={shown(self.t0)} must be finite and not negative, at most {MAX_NUMBER:g}",
                "try t0=2",
            )

    def step_size(self, t: int) -> float:
        """η_t of batch t = 1, 2, …

        >>> Stepwise(kappa=1.0, t0=2.0).step_size(2)
        0.25
        """
        return float((t + self.t0) ** -self.kappa)

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        start = look(work, tables)
        yield start
        items, t = start.stats.items, 1
        average = work.running()
        average.blend(start.stats, 1.0, 1.0)
        params = average.params(tables.params)
        while True:
            for shard in work.rng("order").permutation(work.n_shards).tolist():
                batch = work.expect(params, [shard])
                if batch.items > 0:  # a batch whose items all weigh nothing says nothing
                    average.blend(batch, self.step_size(t), items / batch.items)
                    params, t = average.params(params), t + 1
            tables = average.tables(params)
            params, stats = tables.params, work.score(tables.params)
            yield Step(tables, stats, stats.score + tables.penalty)


@dataclass(frozen=True)
class Incremental:
    """Each shard's old counts are replaced by its new ones, with an update after each.

    Neal & Hinton (1998): every E-step and every M-step climbs the same function,
    F = Σ_i [E_{q_i} log p(x_i, z_i | θ) + H(q_i)] (+ log p(θ)), where q_i is shard i's posterior
    when it was last visited. So the objective is F, which cannot fall; it is at most the
    log-likelihood (which is reported as well, exactly) and meets it at a fixed point. What belongs
    to a shard alone (the topics of its documents) is in F as that E-step took it, before it moved.
    One step is one pass over the data.
    """

    batch_size: int | None = None
    climbs: ClassVar[bool] = True
    shuffles: ClassVar[bool] = False
    held_out: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            _check_batch_size(self.batch_size)

    def steps(self, work: Work, tables: Tables) -> Iterator[Step]:
        everything = range(work.n_shards)
        start = work.expect_each(tables.params, everything)
        kept = SumTree([_with_entropy(work, stats, tables) for stats in start])
        stats = SumTree(start).total
        yield Step(tables, stats, stats.score + tables.penalty)
        tables = work.update(kept.total, tables)
        while True:
            for shard in everything:
                (stats,) = work.expect_each(tables.params, [shard])
                kept.replace(shard, _with_entropy(work, stats, tables))
                tables = work.update(kept.total, tables)
            q = expected_log(work.families, kept.total.counts, tables.params)
            yield Step(tables, work.score(tables.params), q + kept.total.score + tables.penalty)


def _with_entropy(work: Work, stats: Stats, tables: Tables) -> Stats:
    """Stats whose score is the entropy of the posterior, H = log p(x | θ) − Q(θ, θ).

    The entropy is what stays true of a shard's counts when the parameters move on.
    """
    q = expected_log(work.families, stats.counts, tables.params)
    return replace(stats, score=stats.score - q)


class SumTree:
    """A sum whose parts can be replaced in O(log n) additions.

    Nothing is ever subtracted, so there is no drift, and counts of zero stay exactly zero.
    """

    def __init__(self, parts: Sequence[Stats]) -> None:
        self._n = len(parts)
        self._nodes = [*parts, *parts]  # node i has the children 2i and 2i+1; the root is node 1
        for i in range(self._n - 1, 0, -1):
            self._add_up(i)

    @property
    def total(self) -> Stats:
        return self._nodes[1]

    def replace(self, part: int, stats: Stats) -> None:
        i = part + self._n
        self._nodes[i] = stats
        while i > 1:
            i //= 2
            self._add_up(i)

    def _add_up(self, i: int) -> None:
        self._nodes[i] = self._nodes[2 * i] + self._nodes[2 * i + 1]


def _check_batch_size(batch_size: int) -> None:
    if not isinstance(batch_size, Integral) or not 1 <= batch_size <= MAX_WHOLE:
        raise LearnerError(
            f"batch_size={shown(batch_size)}: a batch has at least one item, and at most "
            f"{MAX_WHOLE}",
            "256 is a good first choice",
        )
