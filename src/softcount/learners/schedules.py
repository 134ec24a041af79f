"""Schedules: when parameters are updated: after all data, after each shard or mini-batch, …"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import ceil
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from softcount.core.bounds import MAX_NUMBER, MAX_WHOLE, MIN_TEMPER
from softcount.core.errors import ImpossibleItem, LearnerError, brief
from softcount.core.estimate import COPIES, NUMBER
from softcount.core.interrupt import Responsive
from softcount.core.parameters import as_float
from softcount.core.types import Array, Counts, Params, Stats
from softcount.core.verdict import Verdict
from softcount.families.base import Family

if TYPE_CHECKING:
    from softcount.core.fit import Run

# The interface between schedules and the loop: tables and steps.


@dataclass(frozen=True)
class Tables:
    """Parameters, with their penalty and the counts they were made from.

    ``penalty``  the prior's part of the objective: Σ log p(θ) for a point estimate,
                 −Σ KL(q(θ) ‖ p(θ)) for a variational posterior (−inf at the start, where there is
                 no posterior yet)
    ``counts``   the counts they were made from; None at the start and after an extrapolation
    ``priors``   priors that were learned along with them, if any
    ``change``   the largest change of a parameter since the step before, if that step is forgotten
    """

    params: Params
    penalty: float
    counts: Mapping[str, Counts] | None = None
    priors: Mapping[str, Array] = field(default_factory=dict)
    change: float | None = None


@dataclass(frozen=True)
class Step:
    """Parameters, the result of an E-step at them, and the objective they attain.

    ``held_out`` is the perplexity of held-out data, if the schedule uses any.
    ``slack`` is the largest violation of a constraint on expectations, if there are any, and
    ``gap`` bounds the error of the objective, if the E-step is only approximately the best one.
    """

    tables: Tables
    stats: Stats
    objective: float
    held_out: float = float("nan")
    slack: float = float("nan")
    gap: float = 0.0


Saved = Mapping[str, Any]
"""What a schedule passed to `Run.mark`, read from a checkpoint."""


class Pending(Mapping[str, Array]):
    """Parameters that are computed on first access, which must be before the next step.

    For samplers whose tables would take longer to compute than a sweep takes.
    """

    def __init__(self, make: Callable[[], Params]) -> None:
        self._make: Callable[[], Params] | None = make
        self._made: Params | None = None

    def expire(self) -> None:
        """Forbid computing them from now on; if they were accessed before, they stay readable."""
        self._make = None

    def _params(self) -> Params:
        if self._made is None:
            if self._make is None:
                raise LearnerError(
                    "the parameters of this step are no longer available: the sampler has moved on",
                    "read them in on_step, or keep them all with keep_params=True",
                )
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Array:
        return self._params()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params())

    def __len__(self) -> int:
        return len(self._params())


class Sampler(Protocol):
    """A collapsed sampler: draws each hidden value given all others, parameters integrated out."""

    def sweep(self, stream: int, temper: float) -> None:
        """Draw every hidden value anew, with p^temper; ``stream`` seeds the draws."""

    def log_joint(self) -> float:
        """Return log p(x, z)."""

    def counts(self) -> Mapping[str, Counts]:
        """Return the counts of data and hidden values, one array per family."""

    def state(self) -> Mapping[str, Array]:
        """Return copies of all that a sweep changes, for a checkpoint."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Continue from what `state` returned."""


@runtime_checkable
class FreeSampler(Sampler, Protocol):
    """A sampler that may learn its priors too, so that it computes means and figures itself."""

    def optimise(self) -> None:
        """Fit the priors to the hidden values: log p(x, z) cannot fall."""

    def priors(self) -> Mapping[str, Array]:
        """Return the priors, by name."""

    def means(self) -> Params:
        """Return E[θ | x, z], one table per family."""

    def stats(self) -> Stats:
        """Return log-likelihood and score, without the E-step, which costs more than a sweep."""


class Schedule(ABC):
    """Base class of schedules: when counts become parameters."""

    monotone: ClassVar[bool] = False
    """Whether the objective cannot fall (if the E- and M-steps each cannot lower it)."""
    shuffles: ClassVar[bool] = False
    """Whether the order of the data is random, so that two runs from one start differ."""
    collapses: ClassVar[bool] = False
    """Whether it uses the model's collapsed sampler."""
    streams: ClassVar[bool] = False
    """Whether data are seen once, so that a step's figures are those of its mini-batch alone."""
    ending: ClassVar[Verdict | None] = None
    """The verdict when the schedule ends a run; None: judged by the parameters."""

    batch_size: int | None = None
    """Number of items per shard; None leaves the cut to the corpus."""
    held_out: float = 0.0
    """Fraction of the data held out, if the schedule decides by them when to stop; else 0."""
    optimise: int = 0
    """Number of sweeps between fits of the priors by a collapsed sampler; 0: never."""
    repeats: ClassVar[int] = 1
    """Number of E-steps over all data per step."""

    @property
    def forgiving(self) -> bool:
        """Whether all constraints on expectations may be violated, at a price."""
        return False

    @abstractmethod
    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        """Yield steps, the first at the start itself; endless unless data are held out.

        Wherever `Run.due` is true it may call `Run.mark` with all that it needs to go on from
        there. A run that is resumed passes that as ``saved``: the next step is the one after.
        """

    def where(self, step: int, n_shards: int) -> str:
        """Say where a run was stopped, for the warning after Ctrl-C."""
        return f"after {step:,} step{'s' * (step != 1)}: the parameters of the last one are kept"

    def memory(self, tables: float, n_items: int, tokens: float) -> Mapping[str, float]:
        """Return the additional bytes that the schedule needs, by purpose (see `Estimate`).

        ``tables``  bytes of one copy of all tables
        """
        return {}


def expected_log(
    families: Mapping[str, Family], counts: Mapping[str, Counts], params: Params
) -> float:
    """Compute Q = Σ_f ⟨counts_f, log θ_f⟩, the expected complete-data log-likelihood."""
    return sum(family.expected_log(counts[name], params[name]) for name, family in families.items())


def at_least(name: str, value: int, least: int = 1, most: int = MAX_WHOLE) -> None:
    """Raise a `LearnerError` unless ``value`` is a whole number from ``least`` to ``most``.

    For max_iter 10.0 is as good as 10; other values are passed to `range` and must be integers.
    """
    if name != "max_iter" and not isinstance(value, Integral):
        raise LearnerError(f"{name}={brief(value)}: must be a whole number, at least {least}")
    if not least <= as_float(value) < float("inf") or value != int(value):
        raise LearnerError(f"{name}={brief(value)}: must be a whole number, at least {least}")
    if value > most:
        raise LearnerError(f"{name}={brief(value)}: must be a whole number, at most {most}")


@dataclass(frozen=True)
class Batch(Schedule):
    """All data, then one update (Dempster, Laird & Rubin 1977)."""

    monotone: ClassVar[bool] = True

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        if saved is not None:
            tables = saved["tables"]
        while True:
            step = run.e_step(tables)
            del tables
            yield step
            tables = run.update(step)
            del step
            if run.due:
                run.mark(tables=tables)


@dataclass(frozen=True, kw_only=True)
class Stepwise(Schedule):
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
    shuffles: ClassVar[bool] = True

    def memory(self, tables: float, n_items: int, tokens: float) -> Mapping[str, float]:
        return {"averages": 2.0 * tables}

    def __post_init__(self) -> None:
        _check_batch_size(self.batch_size)
        if not 0.5 < self.kappa <= 1:
            raise LearnerError(
                f"kappa={self.kappa}: step sizes (t + t0)^-kappa converge only for 0.5 < kappa ≤ 1",
                "0.7 is a good first choice",
            )
        if not 0 <= self.t0 <= MAX_NUMBER:
            raise LearnerError(
                f"t0={brief(self.t0)} must be finite and not negative, at most {MAX_NUMBER:g}",
                "try t0=2",
            )

    def step_size(self, t: int) -> float:
        """η_t of batch t = 1, 2, …

        >>> Stepwise(kappa=1.0, t0=2.0).step_size(2)
        0.25
        """
        return float((t + self.t0) ** -self.kappa)

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        averages = {name: family.running() for name, family in run.families.items()}

        def blend(batch: Stats, eta: float, scale: float, old: Params) -> Params:
            """Blend a batch into the averages and return the parameters, maybe as lazy tables."""
            for name, average in averages.items():
                average.blend(batch.counts[name] * scale, eta)
            rng = run.rng("update")
            return {
                name: average.params(run.learner.m, old[name], rng)
                for name, average in averages.items()
            }

        def mark(order: Sequence[int] | None = None, first: int = 0) -> None:
            """Mark that the shards of this pass from the one at ``first`` are still to come."""
            if run.due:
                own = {n: p if isinstance(p, np.ndarray) else None for n, p in params.items()}
                parts = {"averages": averages, "params": own, "items": items, "t": t}
                run.mark(**parts, order=order, first=first)

        order: Sequence[int] | None = None
        first = 0
        if saved is None:
            start = run.e_step(tables)
            yield start
            items, t = start.stats.items, 1
            params = blend(start.stats, 1.0, 1.0, tables.params)
        else:
            items, t, order, first = (saved[name] for name in ("items", "t", "order", "first"))
            params = dict(saved["params"])
            for name, average in averages.items():
                lazy = average.restore(saved["averages"][name])
                params[name] = params[name] if lazy is None or params[name] is not None else lazy
        while True:
            if order is None:
                mark()
                order = run.rng("order").permutation(len(run.session)).tolist()
            for at in range(first, len(order)):
                batch = run.expect(params, [order[at]])
                if batch.items > 0:  # skip a batch whose items all have weight zero
                    params = blend(batch, self.step_size(t), items / batch.items, params)
                    t += 1
                mark(order, at + 1)
            order, first = None, 0
            counts = {name: average.counts() for name, average in averages.items()}
            params = {name: np.asarray(table) for name, table in params.items()}
            tables = run.tables(params, counts)
            stats = run.score(params)
            yield Step(tables, stats, stats.score + tables.penalty)


@dataclass(frozen=True)
class Incremental(Schedule):
    """Each shard's old counts are replaced by its new ones, with an update after each.

    Neal & Hinton (1998): every E-step and every M-step climbs the same function,
    F = Σ_i [E_{q_i} log p(x_i, z_i | θ) + H(q_i)] (+ log p(θ)), where q_i is shard i's posterior
    when it was last visited. So the objective is F, which cannot fall; it is at most the
    log-likelihood (which is reported as well, exactly) and meets it at a fixed point. What belongs
    to a shard alone (the topics of its documents) is in F as that E-step took it, before it moved.
    One step is one pass over the data.
    """

    batch_size: int | None = None
    monotone: ClassVar[bool] = True

    def memory(self, tables: float, n_items: int, tokens: float) -> Mapping[str, float]:
        if self.batch_size is None:
            return {}
        return {"shards": 2.0 * ceil(n_items / self.batch_size) * tables}

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            _check_batch_size(self.batch_size)

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        everything, first = range(len(run.session)), 0
        if saved is None:
            start = run.expect_each(tables.params, everything)
            kept = SumTree([_with_entropy(run, stats, tables) for stats in start])
            stats = SumTree(start).total
            yield Step(tables, stats, stats.score + tables.penalty)
            tables = run.m_step(kept.total, tables)
        else:
            kept, tables, first = SumTree(saved["parts"]), saved["tables"], saved["first"]
        while True:
            for shard in everything[first:]:
                if run.due:
                    run.mark(parts=kept.parts, tables=tables, first=shard)
                (stats,) = run.expect_each(tables.params, [shard])
                kept.replace(shard, _with_entropy(run, stats, tables))
                tables = run.m_step(kept.total, tables)
            first = 0
            q = expected_log(run.families, kept.total.counts, tables.params)
            yield Step(tables, run.score(tables.params), q + kept.total.score + tables.penalty)


def _with_entropy(run: Run, stats: Stats, tables: Tables) -> Stats:
    """Replace the score by the entropy of the posterior, H = log p(x | θ) − Q(θ, θ).

    Unlike the log-likelihood, the entropy of a shard's posterior stays valid when the parameters
    change.
    """
    q = expected_log(run.families, stats.counts, tables.params)
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
    def parts(self) -> list[Stats]:
        return self._nodes[self._n :]

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
            f"batch_size={brief(batch_size)}: a batch has at least one item, and at most "
            f"{MAX_WHOLE}",
            "256 is a good first choice",
        )


# Squarem: two EM steps give direction and curvature for an extrapolation.

GROWTH = 4.0
"""Factor by which the longest step grows after a full-length success (Varadhan & Roland's)."""


@dataclass(frozen=True)
class Squarem(Schedule):
    """Squared extrapolation, scheme SqS3 (Varadhan & Roland 2008), made monotone.

    From θ0, two EM steps lead to θ1 and θ2; with r = θ1 − θ0 and v = (θ2 − θ1) − r, all in the
    families' unconstrained coordinates, the leap is θ' = θ0 − 2a r + a² v, a = −‖r‖ / ‖v‖ ≤ −1
    (a = −1 gives θ2). θ' is kept only if the objective there is at least that of θ1; otherwise
    θ2 is taken, which EM guarantees. Coordinates that are infinite (zeros) follow plain EM.
    One step is one such cycle: two E-steps if the leap is kept, three if not.
    """

    monotone: ClassVar[bool] = True
    repeats: ClassVar[int] = 2

    def memory(self, tables: float, n_items: int, tokens: float) -> Mapping[str, float]:
        return {"leaps": COPIES * tables}

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        if saved is None:
            here, longest = run.e_step(tables), 1.0
            yield here
        else:
            here, longest = saved["here"], saved["longest"]
        while True:
            if run.due:
                run.mark(here=here, longest=longest)
            first = run.e_step(run.m_step(here.stats, here.tables))
            second = run.m_step(first.stats, first.tables)
            landing, length = _leap(run, here.tables.params, first.tables.params, second, longest)
            leapt = None
            if length > 1:  # an E-step where EM might never have gone
                shards = run.session.snapshot()
                with suppress(ImpossibleItem):
                    leapt = run.e_step(landing)
                if leapt is None or not leapt.objective >= first.objective:
                    leapt = None
                    run.session.restore(shards)
            here = leapt or run.e_step(second)
            if length == longest:
                worked = here.tables is landing
                longest = longest * GROWTH if worked else max(1.0, longest / GROWTH)
            yield here


def _leap(
    run: Run, zero: Params, one: Params, second: Tables, longest: float
) -> tuple[Tables, float]:
    """Return the extrapolated tables, and the step length −a (1: the plain EM step)."""
    r: dict[str, Array] = {}
    v: dict[str, Array] = {}
    for name, family in run.families.items():
        f0, f1, f2 = (family.free(p[name]) for p in (zero, one, second.params))
        movable = np.isfinite(f0) & np.isfinite(f1) & np.isfinite(f2)
        r[name] = np.subtract(f1, f0, out=np.zeros_like(f0), where=movable)
        v[name] = np.subtract(f2, f1, out=np.zeros_like(f0), where=movable) - r[name]
    norm_r, norm_v = (
        float(np.sqrt(sum(np.vdot(part, part) for part in parts.values()))) for parts in (r, v)
    )
    if norm_r == 0:
        length = 1.0
    else:
        length = min(max(norm_r / norm_v, 1.0), longest) if norm_v > 0 else longest
    if length == 1:
        return second, length
    params = {}
    for name, family in run.families.items():
        # relative to θ2, so that coordinates that cannot move stay where EM put them
        shift = 2 * (length - 1) * r[name] + (length**2 - 1) * v[name]
        params[name] = family.bound(family.free(second.params[name]) + shift, second.params[name])
    return run.tables(params), length


# Tempered: posteriors are flattened as far as that improves the prediction of held-out words.


@dataclass(frozen=True, kw_only=True)
class Tempered(Schedule):
    """Steps at one power β while held-out perplexity falls, then at lower ones (Hofmann 1999).

    A step at β is tried; while held-out perplexity does not fall by more than ``tol`` of its size,
    it is tried again from the same state with a lower β ← rate · β; when β would fall below
    ``least``, the schedule ends. So every step predicts held-out words better than the one before,
    and the last one does best; only the first step is taken in any case. Parameters that belong to
    the shards (topic proportions of documents) are judged together with their tables.
    """

    held_out: float = 0.1
    rate: float = 0.9
    least: float = 0.3
    tol: float = 1e-4
    monotone: ClassVar[bool] = False  # objectives under different powers cannot be compared

    def __post_init__(self) -> None:
        for name, hint in (
            ("held_out", "0.1 keeps a tenth of the words from learning"),
            ("rate", "0.9 lowers the power by a tenth at a time"),
        ):
            if not 0 < getattr(self, name) < 1:
                raise LearnerError(
                    f"{name}={brief(getattr(self, name))} must be above 0 and below 1", hint
                )
        if not MIN_TEMPER <= self.least <= 1:
            raise LearnerError(
                f"least={brief(self.least)}: the lowest power is above 0 ({MIN_TEMPER:g} at "
                "least) and at most 1",
                "least=1 never lowers it: plain EM that stops early",
            )

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        def held_out(tables: Tables) -> float:
            return run.held_out_log_likelihood(tables.params).perplexity

        if saved is None:
            figure = held_out(tables)
            run.temper = beta = run.temper  # from now on this schedule sets the temper
            bar = float("inf")  # the first step is accepted even if it predicts worse than it
        while True:
            if saved is None:
                # a checkpoint needs the states themselves, not a handle to where they are
                session = run.session
                shards = session.states() if run.keeper is not None else session.snapshot()
                step = run.e_step(tables)
                yield replace(step, held_out=figure)
            else:
                step, shards, beta, bar = (saved[n] for n in ("step", "shards", "beta", "bar"))
                run.temper, run.before, tables, saved = beta, shards, step.tables, None
            if run.due:
                run.mark(step=step, shards=shards, beta=beta, bar=bar)
            ahead = run.m_step(step.stats, tables)
            while not (lower := held_out(ahead)) < bar:
                beta *= self.rate
                if beta < self.least:
                    return
                run.temper = beta
                run.session.restore(shards)
                ahead = run.m_step(run.e_step(tables).stats, tables)
            tables, figure, bar = ahead, lower, (1.0 - self.tol) * lower


# Collapsed: hidden values are sampled, the parameters integrated out.


@dataclass(frozen=True)
class Collapsed(Schedule):
    """One sweep of the model's own sampler, which draws every item's hidden value given all others.

    The parameters of a step are their posterior mean given all hidden values, E[θ | x, z], and the
    objective is log p(x, z), in which they are integrated out.

    ``optimise``  number of sweeps between fits of the priors to the hidden values; 0: never
    """

    optimise: int = 0
    collapses: ClassVar[bool] = True  # whether a model has such a sampler is checked elsewhere
    shuffles: ClassVar[bool] = True

    def memory(self, tables: float, n_items: int, tokens: float) -> Mapping[str, float]:
        return {"sampler": COPIES * tables + 2 * NUMBER * tokens}

    def __post_init__(self) -> None:
        at_least("optimise", self.optimise, 0)

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        sampler, done = run.collapse(tables.params), 0
        if self.optimise and not isinstance(sampler, FreeSampler):
            raise LearnerError(
                f"optimise={self.optimise}: this model's priors cannot be learned", "leave it at 0"
            )
        if saved is None:
            yield _sampler_step(run, sampler, tables)
        else:
            sampler.restore(saved["sampler"])
            tables, done = saved["tables"] or tables, saved["done"]
        responsive = Responsive()
        for sweep in count(done + 1):
            if run.due:
                of_free = isinstance(sampler, FreeSampler)  # whose tables are its own means
                run.mark(sampler=sampler, tables=None if of_free else tables, done=sweep - 1)
            if isinstance(tables.params, Pending):
                tables.params.expire()
            responsive(sampler.sweep, run.stream("sweep"), run.temper)
            if self.optimise and sweep % self.optimise == 0:
                assert isinstance(sampler, FreeSampler)
                sampler.optimise()
            if isinstance(sampler, FreeSampler):
                tables = Tables(Pending(sampler.means), penalty=0.0, priors=sampler.priors())
            else:  # E[θ | x, z]; log p(x, z) has the prior inside, so that there is no penalty
                counts, old = sampler.counts(), tables.params
                families = run.families.items()
                params = {name: family.mean(counts[name], old[name]) for name, family in families}
                tables = Tables(params, penalty=0.0, counts=counts)
            yield _sampler_step(run, sampler, tables)


def _sampler_step(run: Run, sampler: Sampler, tables: Tables) -> Step:
    if isinstance(sampler, FreeSampler):
        stats = sampler.stats()
        return Step(tables, stats, stats.score)
    return Step(tables, run.score(tables.params), sampler.log_joint())
