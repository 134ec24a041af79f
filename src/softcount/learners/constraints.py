"""Constraints on expectations of hidden values: posterior regularisation.

What is known of hidden values is often known of many at once: nine of ten documents with the word
"puck" are about hockey; every sentence has a verb; most words have few tags. With such constraints
E_q[f] ≤ b, the E-step does not use the posterior p(z | x) but the distribution q nearest to it that
satisfies them (Ganchev, Graça, Gillenwater & Taskar 2010),

    min_q KL(q ‖ p(z | x))   such that   E_q[f] ≤ b.

It is q(z) ∝ p(x, z) exp(−λ · f(z)): a posterior with weights on hidden values, which the model's
own inference computes (`softcount.core.tilting`). The multipliers λ ≥ 0 minimise the dual

    log Σ_z p(x, z) exp(−λ · f(z)) + λ · b,

whose gradient is b − E_q[f], and whose minimum is the objective: log p(x) − KL(q ‖ p(z | x)), which
no step of EM can lower. What cannot be satisfied is slack ξ: with ``strength`` C, E_q[f] ≤ b + ξ,
each unit of it costs C nats, and λ ≤ C.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import as_float
from softcount.core.tilting import EXPECTED, Sites, Tilt, make_groups
from softcount.core.types import Array, Counts, FloatArray, IntArray, Params, Stats
from softcount.families import Categorical, SparseCategorical
from softcount.families.base import Family
from softcount.kernels.simplex import project_columns
from softcount.learners.schedules import Batch, Saved, Step, Tables

if TYPE_CHECKING:
    from softcount.core.fit import Run

MOST_NATS = 200.0
"""The largest weight of an event, as a log: events multiply, and so do their weights."""

SOLVED = 1e-8
"""The multipliers are found when no constraint is violated by more than this (shares of sites, or
counts per item), and none that could hold with less does more than it must."""

MOST_TRIALS = 150
"""The most E-steps in search of the multipliers, in one step of learning …"""
TRIALS_OF_SETS = 12
"""… and if there are penalties on sets of values (`FewValues`), whose multipliers are as many as
sites: those of the last step are a good start, and what is missing is in `Step.gap`."""
RELATIVE_GAP = 1e-5
"""Such multipliers are found when the duality gap is this fraction of the penalty."""


class ConstraintWarning(UserWarning):
    """A constraint says nothing about these data: what it speaks of does not occur."""


# The language of constraints


@dataclass(frozen=True)
class Constraint(ABC):
    """The base class of constraints on expectations."""

    @abstractmethod
    def add_to(self, plan: Plan) -> None:
        """Add what it asks for to a plan."""

    @property
    def named_values(self) -> tuple[Any, ...]:
        """The hidden values that it names."""
        return ()


@dataclass(frozen=True)
class Bounds:
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


def _read_bounds(
    what: Any, at_least: float | None, at_most: float | None, strength: float, most: float = inf
) -> Bounds:
    """Check bounds as users give them; ``most``: the largest sensible one."""
    low = -inf if at_least is None else as_float(at_least)
    high = inf if at_most is None else as_float(at_most)
    given = [bound for bound in (low, high) if np.isfinite(bound)]
    if not given or np.isnan(low + high) or low > high or min(given) < 0.0 or max(given) > most:
        raise LearnerError(
            f"{what}: at_least={brief(at_least)}, at_most={brief(at_most)}",
            f"give one of them or both, from 0 to {most:g}, the smaller one as at_least",
        )
    if not as_float(strength) > 0.0:
        raise LearnerError(
            f"{what}: strength={brief(strength)} must be positive",
            "it is the cost of a violation, in nats; leave it out for constraints that must hold",
        )
    return Bounds(low, high, as_float(strength))


@dataclass(frozen=True)
class Share(Constraint):
    """The share of a hidden value among all sites, or among those with an observation.

    ``value``     the hidden value: a class, a state, a tag; or a list of several
    ``at_least``  lower bound of its share; None: there is none
    ``at_most``   upper bound
    ``among``     a word: of the items (the words of an HMM) that have it; or a function, a mask or
                  indices that choose sites. None: of all
    ``strength``  the cost, in nats, of a site too many or too few; infinite: it must hold

    >>> Share("hockey", at_least=0.9, among="puck")
    Share('hockey', among='puck': at least 0.9)
    """

    value: Any
    at_least: float | None = None
    at_most: float | None = None
    among: Any = field(default=None, compare=False)
    strength: float = inf

    def __post_init__(self) -> None:
        _read_bounds(self, self.at_least, self.at_most, self.strength, most=1.0)

    @property
    def named_values(self) -> tuple[Any, ...]:
        return _list_values(self.value)

    def __repr__(self) -> str:
        bounds = Bounds(
            -inf if self.at_least is None else self.at_least,
            inf if self.at_most is None else self.at_most,
            self.strength,
        )
        among = "" if self.among is None else f", among={brief(self.among)}"
        return f"Share({self.value!r}{among}: {bounds})"

    def add_to(self, plan: Plan) -> None:
        bounds = _read_bounds(self, self.at_least, self.at_most, self.strength, most=1.0)
        sites = plan.require_sites(self)
        group, size = plan.group_of(self.among)
        if size == 0.0:
            warnings.warn(
                f"{self} says nothing: there is no such {sites.site}",
                ConstraintWarning,
                stacklevel=2,
            )
            return
        plan.add_rows(self, np.array([group]), plan.mask(self, self.value), bounds, size, size)


@dataclass(frozen=True)
class EachItem(Constraint):
    """The expected number of sites of *each* item that have a hidden value.

    For instance, that every sentence has at least one verb.

    ``value``     the hidden value, or a list of several
    ``at_least``  lower bound of the number in each item; None: there is none
    ``at_most``   upper bound
    ``strength``  the cost, in nats, of a site too many or too few; infinite: it must hold. An item
                  that has too few sites is left as it is as far as possible

    >>> EachItem("VERB", at_least=1)
    EachItem('VERB': at least 1)
    """

    value: Any
    at_least: float | None = None
    at_most: float | None = None
    strength: float = inf

    def __post_init__(self) -> None:
        _read_bounds(self, self.at_least, self.at_most, self.strength)

    @property
    def named_values(self) -> tuple[Any, ...]:
        return _list_values(self.value)

    def __repr__(self) -> str:
        bounds = _bounds_of(self)
        return f"EachItem({self.value!r}: {bounds})"

    def add_to(self, plan: Plan) -> None:
        bounds, sites = _bounds_of(self), plan.require_sites(self)
        lengths = np.diff(sites.indptr)
        items = np.flatnonzero(lengths)
        first = plan.add_groups(
            [(np.arange(sites.indptr[i], sites.indptr[i + 1]), np.ones(lengths[i])) for i in items]
        )
        weights = sites.weights[sites.indptr[items]]
        groups = first + np.arange(len(items))
        plan.add_rows(self, groups, plan.mask(self, self.value), bounds, weights, weights)


@dataclass(frozen=True)
class OneToOne(Constraint):
    """Word alignments in which each source word has at most one link in expectation.

    Target words have one each by definition (Graça, Ganchev & Taskar 2008, *Expectation
    maximization and posterior constraints*).

    ``at_most``   upper bound of the expected number of links
    ``strength``  the cost, in nats, of a link too many; infinite: it must hold

    >>> OneToOne()
    OneToOne(at most 1)
    """

    at_most: float = 1.0
    strength: float = inf

    def __post_init__(self) -> None:
        _read_bounds("OneToOne()", None, self.at_most, self.strength)

    def __repr__(self) -> str:
        return f"OneToOne(at most {self.at_most:g})"

    def add_to(self, plan: Plan) -> None:
        sites = plan.require_sites(self)
        if not sites.links:
            raise LearnerError(
                "OneToOne() is about the links of word alignments, which this model has not",
                "to bound the number of sites with a hidden value, use EachItem()",
            )
        first = plan.add_each_site(np.arange(len(sites)))
        groups, ones = first + np.arange(len(sites)), np.ones(len(sites))
        bounds = _read_bounds(self, None, self.at_most, self.strength)
        plan.add_rows(self, groups, np.ones(1, bool), bounds, ones, ones)


@dataclass(frozen=True)
class FewValues(Constraint):
    """Few different hidden values for each word: a penalty on Σ_w Σ_k max_i q_i(k).

    i are the occurrences of word w; the sum is the number of values a word has, if each occurrence
    has one (Graça, Ganchev, Taskar & Pereira 2009, *Posterior vs. parameter sparsity in latent
    variable models*).

    ``strength``   the cost of a word's further value, in nats
    ``min_count``  words that occur less often are left free

    >>> FewValues(strength=10)
    FewValues(strength=10, min_count=10)
    """

    strength: float = 30.0
    min_count: int = 10

    def __post_init__(self) -> None:
        if not 0.0 < as_float(self.strength) < inf or not 1 <= as_float(self.min_count) < inf:
            raise LearnerError(
                f"strength={brief(self.strength)}, min_count={brief(self.min_count)}: must be "
                "positive and finite",
                "FewValues(strength=30, min_count=10) is a common choice",
            )

    def add_to(self, plan: Plan) -> None:
        sites = plan.require_sites(self)
        if sites.words is None:
            raise LearnerError(
                f"{self} is about the hidden values of a word's occurrences, which here have none",
                "use it with hidden Markov models of words",
            )
        often = np.flatnonzero(np.bincount(sites.words) >= self.min_count)
        chosen = np.flatnonzero(np.isin(sites.words, often) & (sites.weights > 0.0))
        order = chosen[np.argsort(sites.words[chosen], kind="stable")]
        if not len(order):
            warnings.warn(
                f"{self} says nothing: no word occurs so often", ConstraintWarning, stacklevel=2
            )
            return
        _, begins = np.unique(sites.words[order], return_index=True)
        first = plan.add_each_site(order)
        plan.sets.append(ValueSets(self, first, np.append(begins, len(order)), self.strength))


@dataclass(frozen=True)
class Events(Constraint):
    """The expected number of events, entries of a model's tables: for any model and story.

    ``table``     the name of the table (``params_`` has their names)
    ``features``  f of each entry: an array of the table's shape; for a story a mapping from keys to
                  numbers, or a function of a key's parts
    ``at_least``  lower bound of Σ f(event) over all events; None: there is none
    ``at_most``   upper bound
    ``of``        features like ``features``: the bounds are shares of their sum. True: all events
                  of the table. None: the bounds are numbers of events
    ``strength``  the cost, in nats, of an event too many or too few; infinite: it must hold

    >>> Events("which", {"A": 1}, at_most=0.4, of=True)
    Events('which': at most 0.4)
    """

    table: str
    features: Any = field(compare=False)
    at_least: float | None = None
    at_most: float | None = None
    of: Any = field(default=None, compare=False)
    strength: float = inf

    def __post_init__(self) -> None:
        _bounds_of(self)

    def __repr__(self) -> str:
        return f"Events({self.table!r}: {_bounds_of(self)})"

    def add_to(self, plan: Plan) -> None:
        family = plan.families.get(self.table)
        if not isinstance(family, Categorical | SparseCategorical):
            named = [
                n
                for n, f in plan.families.items()
                if isinstance(f, Categorical | SparseCategorical)
            ]
            raise LearnerError(
                f"there is no table {self.table!r} of probabilities",
                f"this model's tables are {', '.join(named)}",
            )
        bounds, features = _bounds_of(self), plan.read_features(self.table, self.features)
        whole = None
        if self.of is not None:
            whole = np.ones_like(features) if self.of is True else None
            whole = plan.read_features(self.table, self.of) if whole is None else whole
        for sign, bound in ((1.0, bounds.at_most), (-1.0, -bounds.at_least)):
            if not np.isfinite(bound):
                continue
            if whole is None:
                row = EventRow(self, self.table, sign * features, bound, None, sign)
            else:  # Σ f ≤ b Σ g
                row = EventRow(self, self.table, sign * features - bound * whole, 0.0, whole, sign)
            plan.events.append(row)


def _bounds_of(constraint: EachItem | Events) -> Bounds:
    """Read the bounds of a constraint."""
    what = type(constraint).__name__ + "()"
    given = constraint.at_least, constraint.at_most
    return _read_bounds(what, *given, constraint.strength)


def _list_values(value: Any) -> tuple[Any, ...]:
    """List the hidden values that a user names: one, or several."""
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)


def read_constraints(path: str | PathLike[str] | Iterable[str]) -> list[Share]:
    """Read constraints from a file in MALLET's format: a word, and shares of classes.

    A line says ``puck hockey:0.9 baseball:0.1``: nine tenths of the documents with "puck" are
    about hockey. A range of shares is ``puck hockey:0.9,1``. A class alone, ``puck hockey``, is
    a labelled word: the class has 0.9 at least. In place of a word, ``*`` stands for all documents.
    A class may also be followed by ``=`` instead of a colon; ``#`` begins a comment.

    ``path``  the file, or its lines

    >>> read_constraints(["puck hockey:0.9 baseball:0.1", "* hockey:0.3,0.7"])[1:]
    [Share('baseball', among='puck': 0.1), Share('hockey': 0.3 to 0.7)]
    """
    name, lines = "line", []
    if isinstance(path, str | PathLike):
        name, lines = str(path), Path(path).read_text(encoding="utf-8").splitlines()
    else:
        lines = list(path)
    constraints = []
    for number, line in enumerate(lines, 1):
        parts = str(line).split()
        if not parts or parts[0] == "#":
            continue
        word, *shares = parts
        if not shares:
            raise DataError(
                f"{name}:{number}: {brief(word)} has no class",
                "write lines such as: puck hockey:0.9 baseball:0.1",
            )
        among = None if word == "*" else word
        for share in shares:
            if share.startswith("#"):
                break
            constraints.append(_read_share(share, among, f"{name}:{number}"))
    return constraints


LABELLED = 0.9
"""The least share of a class among documents that have a word which the class is given for."""


def _read_share(share: str, among: str | None, where: str) -> Share:
    """Read the share of a class, "hockey:0.9"."""
    at = max(share.rfind(":"), share.rfind("="))
    if at < 0:
        return Share(share, at_least=LABELLED, among=among)
    try:
        bounds = [float(bound) for bound in share[at + 1 :].split(",")]
        if not share[:at] or not 1 <= len(bounds) <= 2 or not 0.0 <= bounds[0] <= bounds[-1] <= 1.0:
            raise ValueError
    except ValueError:
        raise DataError(
            f"{where}: {brief(share)} is not a share of a class",
            "write hockey:0.9, or hockey:0.9,1 for a range, with numbers from 0 to 1",
        ) from None
    low, high = bounds[0], bounds[-1]
    if len(bounds) == 1:
        return Share(share[:at], at_least=low, at_most=high, among=among)
    least, most = (low if low > 0.0 else None), (high if high < 1.0 else None)
    if least is None and most is None:
        least = 0.0
    return Share(share[:at], at_least=least, at_most=most, among=among)


# What constraints ask for, in arrays


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
        lacks = f", violated by {self.slack:.3g}" if self.slack > SOLVED * 100 else ""
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
        self._make_sites, self.sites = sites, None
        self.events: list[EventRow] = []
        self.sets: list[ValueSets] = []
        self._rows: list[tuple[Any, ...]] = []
        self._groups: list[tuple[IntArray, FloatArray]] = []
        self._known: dict[Any, tuple[int, float]] = {}
        self._number = 0

    sites: Sites | None

    @classmethod
    def of(cls, constraints: Sequence[Constraint], *given: Any) -> Projected:
        """Make the schedule of learning under these constraints."""
        plan = cls(*given)
        for number, constraint in enumerate(constraints):
            plan._number = number
            constraint.add_to(plan)
        return plan._make_schedule(constraints)

    def require_sites(self, constraint: Constraint) -> Sites:
        """Return the hidden values of the model."""
        if self.sites is None:
            self.sites = self._make_sites()
        return self.sites

    def mask(self, constraint: Constraint, value: Any) -> Array:
        """Return which hidden values a user means, (values,)."""
        assert self.sites is not None
        mask = np.zeros(self.sites.n_values, np.bool_)
        for name in _list_values(value):
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
            if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any(chosen >= n):
                raise DataError(
                    f"among={brief(among)} does not choose {self.sites.site}s",
                    f"give a word, a mask of {n} truth values, or indices",
                )
        found = self.add_groups([(chosen, np.ones(len(chosen)))])
        self._known[key] = found, float(self.sites.weights[chosen].sum())
        return self._known[key]

    def add_groups(self, groups: Sequence[tuple[IntArray, FloatArray]]) -> int:
        """Add groups of sites; return the number of the first."""
        first = self._n_groups
        self._groups += groups
        return first

    def add_each_site(self, sites: IntArray) -> int:
        """Add each of these sites as a group of its own; return the number of the first."""
        return self.add_groups([(np.array([i]), np.ones(1)) for i in sites])

    @property
    def _n_groups(self) -> int:
        return len(self._groups)

    def add_rows(
        self,
        owner: Share | EachItem | OneToOne,
        groups: IntArray,
        mask: Array,
        bounds: Bounds,
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
            tilt = Tilt(self.sites.indptr, groups, np.zeros((self._n_groups, n_values)))
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
        strengths = [
            min(row.owner.strength, MOST_NATS / peak)
            for row, peak in zip(plan.events, peaks, strict=True)
        ]
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
