"""What a mixture learns from: observations, their weights, and what is known of their classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

import numpy as np

from softcount.corpus.cut import parts
from softcount.families.covariance import Form, Full
from softcount.types import Array


class Observations(Protocol):
    """Bags of words, or points."""

    def __len__(self) -> int: ...

    def take(self, items: Array) -> Self:
        """Some of them."""


@dataclass(frozen=True, eq=False)
class Points:
    """Vectors, one a row."""

    x: Array
    _outer: dict[type[Form], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    def outer(self, form: Form) -> Array | None:
        """x xᵀ in this form, worked out once; None where there would be too much to keep."""
        if isinstance(form, Full):
            return None
        if type(form) not in self._outer:
            self._outer[type(form)] = form.outer(self.x)
        return self._outer[type(form)]

    def take(self, items: Array) -> Self:
        return type(self)(self.x[items])


class Reading(NamedTuple):
    """Some items, each with the classes it may have (lower ≤ k < upper) and a weight."""

    rows: Array | slice
    lower: Array
    upper: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of each item's class: nothing, a range of classes, or shares of several.

    ``lower, upper``  the classes an item may have are lower ≤ k < upper
    ``weights``       how much an item counts
    ``shares``        (items, groups) or None: an item whose row is not NaN is read as so many
                      fractions of an item, one a group of classes
    ``groups``        borders of those groups
    """

    lower: Array
    upper: Array
    weights: Array
    shares: Array | None = None
    groups: Array | None = None

    @classmethod
    def nothing(cls, n_items: int, n_classes: int, weights: Array | None = None) -> Self:
        """Every class is possible for every item."""
        return cls(
            np.zeros(n_items, np.int64),
            np.full(n_items, n_classes, np.int64),
            np.ones(n_items) if weights is None else weights,
        )

    def take(self, items: Array) -> Self:
        shares = None if self.shares is None else self.shares[items]
        return type(self)(
            self.lower[items], self.upper[items], self.weights[items], shares, self.groups
        )

    def readings(self) -> Iterator[Reading]:
        """The items in parts, in each of which every item has one range of classes."""
        if self.shares is None or self.groups is None:
            yield Reading(slice(None), self.lower, self.upper, self.weights)
            return
        shared = ~np.isnan(self.shares[:, 0])
        plain = np.flatnonzero(~shared)
        if len(plain):
            yield Reading(plain, self.lower[plain], self.upper[plain], self.weights[plain])
        for group, (low, high) in enumerate(zip(self.groups, self.groups[1:], strict=False)):
            rows = np.flatnonzero(shared & (self.shares[:, group] > 0.0))
            if len(rows):
                same = np.ones(len(rows), np.int64)
                weights = self.weights[rows] * self.shares[rows, group]
                yield Reading(rows, same * low, same * high, weights)


@dataclass(frozen=True, eq=False)
class Shard:
    """Some items: their numbers in the corpus, what was observed, and what is known."""

    numbers: Array
    x: Observations
    known: Known
    _moments: dict[type[Form], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def second_moments(self, form: Form) -> Array | None:
        """Σ w x xᵀ of points in this form, worked out once; None where `Points.outer` is none."""
        assert isinstance(self.x, Points)
        if type(form) not in self._moments:
            outer = self.x.outer(form)
            if outer is None:
                return None
            self._moments[type(form)] = self.known.weights @ outer
        return self._moments[type(form)]


@dataclass(frozen=True, eq=False)
class Items:
    """A corpus of observations (`softcount.job.Corpus`); ``cut`` is its own shards' size."""

    x: Observations
    known: Known
    cut: int

    def __len__(self) -> int:
        return len(self.x)

    def name(self, number: int) -> str:
        return f"item {number}"

    def shards(self, batch_size: int | None = None, seed: int = 0) -> Sequence[Shard]:
        if batch_size is None and len(self) <= self.cut:
            return [Shard(np.arange(len(self)), self.x, self.known)]
        return [
            Shard(part, self.x.take(part), self.known.take(part))
            for part in parts(len(self), self.cut, batch_size, seed)
        ]
