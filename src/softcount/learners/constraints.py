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
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from softcount.core.errors import DataError, LearnerError, brief
from softcount.core.parameters import as_float
from softcount.families import Categorical, SparseCategorical
from softcount.learners.projection import EventRow, ExpectationBounds, Plan, ValueSets, list_values


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


def _read_bounds(
    what: Any, at_least: float | None, at_most: float | None, strength: float, most: float = inf
) -> ExpectationBounds:
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
    return ExpectationBounds(low, high, as_float(strength))


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
        _bounds_of(self, most=1.0)

    @property
    def named_values(self) -> tuple[Any, ...]:
        return list_values(self.value)

    def __repr__(self) -> str:
        bounds = _bounds_of(self)
        among = "" if self.among is None else f", among={brief(self.among)}"
        return f"Share({self.value!r}{among}: {bounds})"

    def add_to(self, plan: Plan) -> None:
        bounds, sites = _bounds_of(self), plan.require_sites()
        group, size = plan.group_of(self.among)
        if size == 0.0:
            warnings.warn(
                f"{self} says nothing: there is no such {sites.site}",
                ConstraintWarning,
                stacklevel=2,
            )
            return
        plan.add_rows(np.array([group]), plan.mask(self, self.value), bounds, size, size)


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
        _bounds_of(self)

    @property
    def named_values(self) -> tuple[Any, ...]:
        return list_values(self.value)

    def __repr__(self) -> str:
        return f"EachItem({self.value!r}: {_bounds_of(self)})"

    def add_to(self, plan: Plan) -> None:
        bounds, sites = _bounds_of(self), plan.require_sites()
        lengths = np.diff(sites.indptr)
        items = np.flatnonzero(lengths)
        first = plan.add_groups(
            [(np.arange(sites.indptr[i], sites.indptr[i + 1]), np.ones(lengths[i])) for i in items]
        )
        weights = sites.weights[sites.indptr[items]]
        groups = first + np.arange(len(items))
        plan.add_rows(groups, plan.mask(self, self.value), bounds, weights, weights)


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
        self._bounds()

    def _bounds(self) -> ExpectationBounds:
        return _read_bounds("OneToOne()", None, self.at_most, self.strength)

    def __repr__(self) -> str:
        return f"OneToOne(at most {self.at_most:g})"

    def add_to(self, plan: Plan) -> None:
        sites = plan.require_sites()
        if not sites.links:
            raise LearnerError(
                "OneToOne() is about the links of word alignments, which this model has not",
                "to bound the number of sites with a hidden value, use EachItem()",
            )
        first = plan.add_each_site(np.arange(len(sites)))
        groups, ones = first + np.arange(len(sites)), np.ones(len(sites))
        plan.add_rows(groups, np.ones(1, bool), self._bounds(), ones, ones)


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
        sites = plan.require_sites()
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


def _bounds_of(constraint: Share | EachItem | Events, most: float = inf) -> ExpectationBounds:
    """Read the bounds of a constraint; ``most``: the largest sensible one."""
    what = type(constraint).__name__ + "()"
    given = constraint.at_least, constraint.at_most
    return _read_bounds(what, *given, constraint.strength, most)


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
