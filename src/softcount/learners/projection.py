"""The E-step under constraints: what they ask for, in arrays, and the search for multipliers.

See `softcount.learners.constraints` for the mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.tilting import EXPECTED, SATISFIED, Sites, Tilt, make_groups
from softcount.core.types import Array, Counts, FloatArray, IntArray, Params, Stats
from softcount.families.base import Family
from softcount.kernels.simplex import project_columns
from softcount.learners.schedules import Batch, Saved, Step, Tables

if TYPE_CHECKING:
    from softcount.core.fit import Run
    from softcount.learners.constraints import Constraint, Events

MOST_NATS = 200.0
"""The largest weight of an event, as a log: events multiply, and so do their weights."""

SOLVED = 1e-7
"""The multipliers are found when no constraint is violated by more than this (shares of sites, or
counts per item), and none that could hold with less does more than it must."""

MOST_TRIALS = 150
"""The most E-steps in search of the multipliers, in one step of learning …"""
TRIALS_OF_SETS = 12
"""… and if there are penalties on sets of values (`FewValues`), whose multipliers are as many as
sites: those of the last step are a good start, and what is missing is in `Step.gap`."""
RELATIVE_GAP = 1e-5
"""Such multipliers are found when the duality gap is this fraction of the penalty."""


# What constraints ask for, in arrays


@dataclass(frozen=True)
class ExpectationBounds:
    """Bounds of an expectation, and how much a violation costs."""

    at_least: float
    at_most: float
    strength: float

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return f"{self.at_least:g}"
        if self.at_least == -inf:
            return f"at most {self.at_most:g}"
        if self.at_most == inf:
            return f"at least {self.at_least:g}"
        return f"{self.at_least:g} to {self.at_most:g}"


def list_values(value: Any) -> tuple[Any, ...]:
    """List the hidden values that a user names: one, or several."""
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)


@dataclass(frozen=True, eq=False)
class ValueSets:
    """The penalty of `FewValues`: strength · Σ over columns of blocks of their largest value.

    ``first``   the first of its groups, which are single sites
    ``blocks``  block w is the groups first + ``blocks[w]`` to first + ``blocks[w + 1]``
    """

    owner: Constraint
    first: int
    blocks: IntArray
    strength: float

    @property
    def span(self) -> slice:
        """Its groups."""
        return slice(self.first, self.first + int(self.blocks[-1]))

    def largest(self, expected: FloatArray) -> FloatArray:
        """Return the largest value of each column of each block, (blocks, values)."""
        tops: FloatArray = np.maximum.reduceat(expected[self.span], self.blocks[:-1])
        return tops


@dataclass(frozen=True, eq=False)
class EventRow:
    """Σ features · counts ≤ bound.

    ``whole``  features of what the user's bound is a share of; None: it is a number of events
    ``sign``   1 for an upper bound, −1 for a lower one, whose features are negative
    """

    owner: Events
    table: str
    features: FloatArray
    bound: float
    whole: FloatArray | None
    sign: float

    def expect(self, counts: Mapping[str, Counts]) -> tuple[float, float]:
        """Return Σ features · counts, and what a violation is to be divided by."""
        table = np.asarray(counts[self.table])
        size = max(abs(self.bound), 1.0)
        if self.whole is not None:
            size = max(float(np.vdot(self.whole, table)), 1e-300)
        return float(np.vdot(self.features, table)), size

    def attained(self, expected: float, size: float) -> float:
        """Return the expectation that the user's bounds are about."""
        if self.whole is None:
            return self.sign * expected
        bound = self.owner.at_most if self.sign > 0.0 else self.owner.at_least
        assert bound is not None
        return self.sign * expected / size + bound


@dataclass(frozen=True, eq=False)
class Rows:
    """Linear constraints Σ_k h_ck E[number of sites of group g_c with value k] ≤ b_c.

    ``owner``  which of the user's constraints each belongs to, (rows,)
    ``sizes``  what a violation is divided by, to be a share or a number per item, (rows,)
    """

    owner: IntArray
    group: IntArray
    h: FloatArray  # (rows, values)
    bound: FloatArray
    lower: FloatArray  # of the multipliers
    upper: FloatArray
    sizes: FloatArray


@dataclass(frozen=True)
class Attained:
    """What became of a constraint.

    ``value``       the expectation attained: a share, or the smallest or largest number per item;
                    of `FewValues` the mean number of values of a word
    ``slack``       by how much it is violated
    ``multiplier``  the largest of its multipliers λ, by size: the nats at which a site is priced
    """

    constraint: Constraint
    value: float
    slack: float
    multiplier: float

    def __str__(self) -> str:
        lacks = f", violated by {self.slack:.3g}" if self.slack > SATISFIED else ""
        return f"{self.constraint!r} is {self.value:.4g}{lacks} (λ = {self.multiplier:.3g})"


class Report(tuple[Attained, ...]):
    """What became of each constraint, in their order."""

    @property
    def slack(self) -> float:
        """The largest violation."""
        return max((each.slack for each in self), default=0.0)

    def __str__(self) -> str:
        return "\n".join(map(str, self))


class Plan:
    """Constraints on a corpus, as arrays: what `Constraint.add_to` builds.

    ``sites``          the hidden values that constraints speak of; None: the model names none
    ``read_features``  makes an array of a table's shape from what a user gives
    """

    def __init__(
        self,
        name: str,
        families: Mapping[str, Family],
        sites: Callable[[], Sites],
        read_features: Callable[[str, Any], FloatArray],
    ) -> None:
        self.name, self.families, self.read_features = name, families, read_features
        self._make_sites = sites
        self.sites: Sites | None = None
        self.events: list[EventRow] = []
        self.sets: list[ValueSets] = []
        self._rows: list[tuple[Any, ...]] = []
        self._groups: list[tuple[IntArray, FloatArray]] = []
        self._known: dict[Any, tuple[int, float]] = {}
        self._number = 0

    @classmethod
    def of(cls, constraints: Sequence[Constraint], *given: Any) -> Projected:
        """Make the schedule of learning under these constraints."""
        plan = cls(*given)
        for number, constraint in enumerate(constraints):
            plan._number = number
            constraint.add_to(plan)
        return plan._make_schedule(constraints)

    def require_sites(self) -> Sites:
        """Return the hidden values of the model."""
        if self.sites is None:
            self.sites = self._make_sites()
        return self.sites

    def mask(self, constraint: Constraint, value: Any) -> Array:
        """Return which hidden values a user means, (values,)."""
        assert self.sites is not None
        mask = np.zeros(self.sites.n_values, np.bool_)
        for name in list_values(value):
            numbers = self.sites.values.get(name)
            if numbers is None:
                known = list(self.sites.values)
                raise LearnerError(
                    f"{constraint}: {self.name} has no hidden value {brief(name)}",
                    f"its values are {brief(known)}",
                )
            mask[list(numbers)] = True
        return mask

    def group_of(self, among: Any) -> tuple[int, float]:
        """Return the number of the group of sites that a user means, and the sites' weight."""
        assert self.sites is not None
        key = among if isinstance(among, str | int | None) else id(among)
        if key in self._known:
            return self._known[key]
        n = len(self.sites)
        chosen: IntArray
        if among is None:
            chosen = np.arange(n)
        elif isinstance(among, str | int | np.integer):
            chosen = self.sites.find(among)
        else:
            chosen = np.asarray(among)
            if chosen.dtype == np.bool_ and chosen.shape == (n,):
                chosen = np.flatnonzero(chosen)
            if (
                chosen.ndim != 1
                or chosen.dtype.kind not in "iu"
                or np.any((chosen < 0) | (chosen >= n))
            ):
                raise DataError(
                    f"among={brief(among)} does not choose {self.sites.site}s",
                    f"give a word, a mask of {n} truth values, or indices",
                )
        found = self.add_groups([(chosen, np.ones(len(chosen)))])
        self._known[key] = found, float(self.sites.weights[chosen].sum())
        return self._known[key]

    def add_groups(self, groups: Sequence[tuple[IntArray, FloatArray]]) -> int:
        """Add groups of sites; return the number of the first."""
        first = len(self._groups)
        self._groups += groups
        return first

    def add_each_site(self, sites: IntArray) -> int:
        """Add each of these sites as a group of its own; return the number of the first."""
        return self.add_groups([(np.array([i]), np.ones(1)) for i in sites])

    def add_rows(
        self,
        groups: IntArray,
        mask: Array,
        bounds: ExpectationBounds,
        amount: Any,
        sizes: Any,
    ) -> None:
        """Add bounds on the expected number of sites of each group that have certain values.

        ``mask``    the values, (values,)
        ``amount``  what the bounds are multiplied by, one number or (groups,)
        ``sizes``   what violations are divided by
        """
        assert self.sites is not None
        n, cap = len(groups), min(bounds.strength, self.sites.limit)
        many = np.broadcast_to(np.asarray(amount, float), n)
        sizes = np.broadcast_to(np.asarray(sizes, float), n)
        if bounds.at_least == bounds.at_most:
            sides = [(1.0, bounds.at_most, -cap)]
        else:
            sides = [(1.0, bounds.at_most, 0.0), (-1.0, -bounds.at_least, 0.0)]
        for sign, bound, lower in sides:
            if np.isfinite(bound):
                h = np.broadcast_to(sign * mask, (n, len(mask)))
                row = (groups, h, bound * many, np.full(n, lower), np.full(n, cap), sizes)
                self._rows.append((np.full(n, self._number), *row))

    def _make_schedule(self, constraints: Sequence[Constraint]) -> Projected:
        n_values = 1 if self.sites is None else self.sites.n_values
        columns = [np.concatenate(column) for column in zip(*self._rows, strict=True)]
        if not columns:
            none, whole = np.empty(0), np.empty(0, np.int64)
            columns = [whole, whole, np.empty((0, n_values)), none, none, none, none]
        tilt = None
        if self.sites is not None:
            groups = make_groups(len(self.sites), self._groups)
            tilt = Tilt(self.sites.indptr, groups, np.zeros((len(self._groups), n_values)))
        return Projected(
            constraints=tuple(constraints),
            tilt=tilt,
            rows=Rows(*columns),
            events=tuple(self.events),
            sets=tuple(self.sets),
        )


# The E-step


@dataclass(frozen=True, eq=False)
class Trial:
    """An E-step at some multipliers.

    ``value``     the dual: log Σ_z p(x, z) exp(−λ · f(z)) + λ · b
    ``slope``     its gradient, b − E[f], as one vector
    ``expected``  expected numbers of sites, (groups, values)
    ``events``    Σ features · counts of each `EventRow`
    ``whole``     what violations of these are divided by
    """

    value: float
    slope: FloatArray
    expected: FloatArray
    events: FloatArray
    whole: FloatArray


@dataclass(frozen=True, eq=False)
class Projected(Batch):
    """Batch EM whose E-step finds the nearest distribution that satisfies constraints.

    ``constraints``  as the user gave them
    ``tilt``         the groups of sites; None: all constraints are about events
    ``rows``         linear constraints on groups of sites
    ``events``       linear constraints on events
    ``sets``         penalties on the number of values of words

    The vector of all multipliers has those of rows, of events, and of each site and value of each
    of the sets.
    """

    constraints: tuple[Constraint, ...] = ()
    tilt: Tilt | None = None
    rows: Rows | None = None
    events: tuple[EventRow, ...] = ()
    sets: tuple[ValueSets, ...] = ()
    monotone: ClassVar[bool] = True

    def __repr__(self) -> str:
        return "Projected()"

    @property
    def forgiving(self) -> bool:
        return all(getattr(each, "strength", inf) < inf for each in self.constraints)

    def steps(self, run: Run, tables: Tables, saved: Saved | None = None) -> Iterator[Step]:
        multipliers = self.no_multipliers()
        if saved is not None:
            tables, multipliers = saved["tables"], saved["multipliers"]
        while True:
            step, multipliers, _ = self.project(run, tables, multipliers)
            yield step
            tables = run.update(step)
            del step
            if run.due:
                run.mark(tables=tables, multipliers=multipliers)

    def no_multipliers(self) -> FloatArray:
        """Return multipliers of zero: the posterior itself."""
        assert self.rows is not None
        cells = sum(int(each.blocks[-1]) for each in self.sets)
        values = self.rows.h.shape[1]
        return np.zeros(len(self.rows.bound) + len(self.events) + cells * values)

    def project(
        self, run: Run, tables: Tables, start: FloatArray
    ) -> tuple[Step, FloatArray, Report]:
        """Find the multipliers at these tables, from those of the step before; do the E-step."""
        search = _Search(self, run, tables.params)
        multipliers, trial = search.solve(start)
        params, tilt = search.weigh(multipliers)
        stats = run.expect(params, tilt=tilt)
        if self.events:  # with other weights on events the log-likelihood is another one
            logs = run.try_tilt(tables.params, None).log_likelihood
            stats = replace(stats, log_likelihood=logs)
        counts = {name: table for name, table in stats.counts.items() if name != EXPECTED}
        stats = replace(stats, counts=counts, score=trial.value)
        report = search.report(multipliers, trial)
        gap = search.gap(multipliers, trial)
        step = Step(tables, stats, trial.value + tables.penalty, slack=report.slack, gap=gap)
        return step, multipliers, report


class _Search:
    """The search for multipliers at some parameters."""

    def __init__(self, plan: Projected, run: Run, params: Params) -> None:
        assert plan.rows is not None
        self.plan, self.run, self.params, self.rows = plan, run, params, plan.rows
        self.tilt = None if plan.tilt is None else replace(plan.tilt, memory={})
        n = len(self.rows.bound)
        self.of_rows, self.of_events = slice(0, n), slice(n, n + len(plan.events))
        self.begin_of_sets = n + len(plan.events)
        peaks = (max(float(np.abs(row.features).max(initial=0.0)), 1e-9) for row in plan.events)
        rows = zip(plan.events, peaks, strict=True)
        strengths = [min(row.owner.strength, MOST_NATS / peak) for row, peak in rows]
        size = len(plan.no_multipliers())
        self.lower, self.upper = np.zeros(size), np.full(size, inf)
        self.lower[self.of_rows], self.upper[self.of_rows] = self.rows.lower, self.rows.upper
        self.upper[self.of_events] = strengths
        self.sizes = np.ones(size)
        self.sizes[self.of_rows] = np.maximum(self.rows.sizes, 1e-300)

    def cells(self, vector: FloatArray) -> Iterator[tuple[ValueSets, FloatArray]]:
        """Yield the parts of a vector of multipliers that belong to sets, (sites, values) each."""
        begin, values = self.begin_of_sets, self.rows.h.shape[1]
        for each in self.plan.sets:
            n = int(each.blocks[-1])
            yield each, vector[begin : begin + n * values].reshape(n, values)
            begin += n * values

    def weigh(self, multipliers: FloatArray) -> tuple[Params, Tilt | None]:
        """Return tables with weights on events, and weights on hidden values."""
        params = dict(self.params)
        for row, by in zip(self.plan.events, multipliers[self.of_events], strict=True):
            if by:
                params[row.table] = np.asarray(params[row.table]) * np.exp(-by * row.features)
        if self.tilt is None:
            return params, None
        prices, rows = np.zeros_like(self.tilt.prices), self.rows
        np.add.at(prices, rows.group, multipliers[self.of_rows, None] * rows.h)
        for each, part in self.cells(multipliers):
            prices[each.span] += part
        return params, self.tilt.at(prices)

    def attempt(self, multipliers: FloatArray) -> Trial:
        """Do an E-step at these multipliers."""
        params, tilt = self.weigh(multipliers)
        stats = self.run.try_tilt(params, tilt, score_only=not self.plan.events)
        return self.judge(multipliers, stats)

    def judge(self, multipliers: FloatArray, stats: Stats) -> Trial:
        """Return the dual and its gradient, from an E-step at these multipliers."""
        rows, plan = self.rows, self.plan
        expected = np.zeros((0, rows.h.shape[1]))
        if self.tilt is not None:
            expected = np.asarray(stats.counts[EXPECTED])
        slope = np.empty(len(multipliers))
        slope[self.of_rows] = rows.bound - np.sum(rows.h * expected[rows.group], axis=1)
        counts = stats.counts
        found = np.array([row.expect(counts) for row in plan.events]).reshape(-1, 2)
        events, wholes = found.T
        bounds = np.array([row.bound for row in plan.events])
        slope[self.of_events] = bounds - events
        for each, part in self.cells(slope):
            part[...] = -expected[each.span]
        value = stats.score + float(multipliers[self.of_rows] @ rows.bound)
        value += float(multipliers[self.of_events] @ bounds)
        return Trial(value, slope, expected, events, wholes)

    # how good multipliers are
    def residual(self, multipliers: FloatArray, trial: Trial) -> float:
        """Return the largest violation, or slope of a multiplier that could be smaller."""
        n = self.begin_of_sets
        slope, at = trial.slope[:n], multipliers[:n]
        sizes = self.sizes[:n].copy()
        sizes[self.of_events] = trial.whole
        stuck = (at <= self.lower[:n]) & (slope > 0.0) | (at >= self.upper[:n]) & (slope < 0.0)
        return float(np.max(np.where(stuck, 0.0, np.abs(slope) / sizes), initial=0.0))

    def gap(self, multipliers: FloatArray, trial: Trial) -> float:
        """Return by how much the dual may be above its minimum."""
        n = self.begin_of_sets
        at, slope = multipliers[:n], trial.slope[:n]
        inner = (at < self.upper[:n]) & (at > self.lower[:n])
        gap = float(np.abs(at * slope)[inner].sum())
        return gap + self.gap_of_sets(multipliers, trial)

    def gap_of_sets(self, multipliers: FloatArray, trial: Trial) -> float:
        """Return strength · Σ max_i q_i(k) − λ · q, which is not negative, and 0 at the minimum."""
        gap = 0.0
        for each, part in self.cells(multipliers):
            penalty = each.strength * float(each.largest(trial.expected).sum())
            gap += penalty - float(np.vdot(part, trial.expected[each.span]))
        return gap

    def penalty(self, trial: Trial) -> float:
        """Return the penalties on sets."""
        sets = self.plan.sets
        return sum(each.strength * float(each.largest(trial.expected).sum()) for each in sets)

    # the search
    def solve(self, start: FloatArray) -> tuple[FloatArray, Trial]:
        """Return the multipliers that minimise the dual, and the E-step there."""
        here = self.attempt(start)
        if self.residual(start, here) <= SOLVED and not self.plan.sets:
            return start, here
        return self._by_gradient(start, here) if self.plan.sets else self._by_lbfgs(start, here)

    def _by_lbfgs(self, start: FloatArray, here: Trial) -> tuple[FloatArray, Trial]:
        """Minimise by L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995).

        A multiplier is measured in units of one over the root of the number of its sites: the
        curvature is of the order of that number.
        """
        from scipy.optimize import minimize  # slow to import, and seldom needed

        weights = self.sizes.copy()
        weights[self.of_events] = np.maximum(here.whole, 1.0)
        units = 1.0 / np.sqrt(weights)
        best, trials = [(start, here)], {start.tobytes(): here}

        def function(scaled: FloatArray) -> tuple[float, FloatArray]:
            at = np.clip(scaled * units, self.lower, self.upper)
            trial = trials.pop(at.tobytes(), None) or self.attempt(at)
            if trial.value <= best[0][1].value:
                best[0] = at, trial
            if self.residual(at, trial) <= SOLVED:
                best[0] = at, trial
                raise _FoundError
            return trial.value - here.value, trial.slope * units

        bounds = np.column_stack([self.lower / units, self.upper / units])
        options = {"maxfun": MOST_TRIALS, "maxiter": MOST_TRIALS, "ftol": 0.0, "gtol": 0.0}
        try:
            for _ in range(2):  # a line search that fails for rounding starts anew, without memory
                minimize(function, best[0][0] / units, (), "L-BFGS-B", True, bounds=bounds,
                         options={**options, "maxcor": 20})  # fmt: skip
        except _FoundError:
            pass
        return best[0]

    def _project(self, multipliers: FloatArray) -> FloatArray:
        """Return the nearest multipliers that are allowed."""
        n, nearest = self.begin_of_sets, multipliers.copy()
        nearest[:n] = np.clip(multipliers[:n], self.lower[:n], self.upper[:n])
        for each, part in self.cells(nearest):
            project_columns(part, each.blocks, each.strength)
        return nearest

    def _by_gradient(self, here: FloatArray, trial: Trial) -> tuple[FloatArray, Trial]:
        """Minimise by spectral projected gradients (Birgin, Martínez & Raydan 2000)."""
        recent, length, trials = [trial.value], 1.0, 1
        while trials < TRIALS_OF_SETS:
            enough = RELATIVE_GAP * max(self.penalty(trial), 1e-300)
            if self.gap_of_sets(here, trial) <= enough and self.residual(here, trial) <= SOLVED:
                break
            way = self._project(here - length * trial.slope) - here
            descent = float(way @ trial.slope)
            if not descent < 0.0:
                break
            step = 1.0
            while True:
                there = here + step * way
                ahead = self.attempt(there)
                trials += 1
                if ahead.value <= max(recent[-5:]) + 1e-4 * step * descent or trials > MOST_TRIALS:
                    break
                step *= 0.5
            moved, turned = there - here, ahead.slope - trial.slope
            bent = float(moved @ turned)
            length = min(max(float(moved @ moved) / bent, 1e-6), 1e6) if bent > 0.0 else 1e6
            here, trial = there, ahead
            recent.append(trial.value)
        return here, trial

    # what was attained
    def report(self, multipliers: FloatArray, trial: Trial) -> Report:
        """Return what became of each constraint."""
        rows, of_rows = self.rows, multipliers[self.of_rows]
        slack = np.maximum(-trial.slope[self.of_rows], 0.0)
        equal = rows.lower < 0.0
        slack[equal] = np.abs(trial.slope[self.of_rows][equal])
        slack = slack / self.sizes[self.of_rows]
        signs = np.where(np.any(rows.h < 0.0, axis=1), -1.0, 1.0)
        values = signs * np.sum(rows.h * trial.expected[rows.group], axis=1) if len(rows.h) else []
        values = np.asarray(values) / self.sizes[self.of_rows]
        attained = []
        for number, constraint in enumerate(self.plan.constraints):
            mine = np.flatnonzero(rows.owner == number)
            if len(mine):
                worst = mine[np.argmax(slack[mine] + 1e-9 * np.abs(of_rows[mine]))]
                top = of_rows[mine][np.argmax(np.abs(of_rows[mine]))]
                one = Attained(constraint, float(values[worst]), float(slack[worst]), float(top))
                attained.append(one)
            for row, value, whole, by in zip(
                self.plan.events,
                trial.events,
                trial.whole,
                multipliers[self.of_events],
                strict=True,
            ):
                if row.owner is constraint:
                    excess = max((value - row.bound) / whole, 0.0)
                    attained.append(
                        Attained(constraint, row.attained(value, whole), excess, float(by))
                    )
            for each, part in self.cells(multipliers):
                if each.owner is constraint:
                    tags = float(each.largest(trial.expected).sum()) / (len(each.blocks) - 1)
                    attained.append(Attained(constraint, tags, 0.0, float(part.max(initial=0.0))))
        return Report(attained)


def report(run: Run, schedule: Projected, params: Params) -> Report:
    """Return what becomes of constraints at these parameters."""
    _, _, found = schedule.project(run, Tables(params, 0.0), schedule.no_multipliers())
    return found


class _FoundError(Exception):
    """Raised to end a search whose result is good enough."""
