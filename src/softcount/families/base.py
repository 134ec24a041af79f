"""The base class of families of distributions.

A family turns sufficient statistics (counts) into parameters. Counts and parameters are each *one*
array, so that shards, learners, engines and files need not know what kind of family it is. Only the
family, and the models that use it, know what the entries mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from softcount.core.errors import StartError
from softcount.core.parameters import reshape_start
from softcount.core.types import (
    Array,
    BoolArray,
    ColumnCounts,
    Counts,
    Params,
    SparseCounts,
    Update,
)


class Family(ABC):
    """Rows of distributions of one kind, with a prior."""

    n_free: int
    """Number of free parameters (for AIC and BIC)."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without cached properties, which can be computed again."""
        every = [item for cls in type(self).__mro__ for item in vars(cls).items()]
        cached = {name for name, value in every if isinstance(value, cached_property)}
        return {name: value for name, value in vars(self).items() if name not in cached}

    @abstractmethod
    def zeros(self) -> Array:
        """Return counts of zero."""

    @abstractmethod
    def uniform(self) -> Array:
        """Return uniform (uninformative) parameters."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Array:
        """Draw initial parameters."""

    # how counts become parameters: one method for each `Update` of a learner
    def update(self, how: Update, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Compute new parameters from counts by the learner's kind of update."""
        if how == "maximise":
            return self.maximise(counts, old, rng)
        if how == "mean_field":
            return self.mean_field(counts, old, rng)
        return self.draw(counts, old, rng)

    def consume(self, how: Update, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Do what `update` does, with counts that nobody else needs: they may be overwritten."""
        return self.update(how, counts, old, rng)

    @abstractmethod
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Return the posterior mode given the counts (maximum likelihood under a flat prior)."""

    @abstractmethod
    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Return exp E[log θ] under the posterior given the counts (need not sum to one)."""

    @abstractmethod
    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """Draw from the posterior given the counts."""

    @abstractmethod
    def mean(self, counts: Counts, old: Array) -> Array:
        """Return the posterior mean given the counts: proper parameters, which VB reports."""

    # terms of the objective
    @abstractmethod
    def log_prior(self, params: Array) -> float:
        """Return log p(θ) up to a constant; exactly 0 under a flat prior."""

    @abstractmethod
    def divergence(self, counts: Counts, params: Array) -> float:
        """Return KL(q(θ | counts) ‖ p(θ)), the cost of the posterior in the ELBO.

        ``params`` is the result of `mean_field` for these counts: families whose posterior is a
        point estimate compute the cost of that point.
        """

    @abstractmethod
    def expected_log(self, counts: Counts, params: Array) -> float:
        """Return ⟨counts, log θ⟩, this family's part of Q; 0 log 0 is 0."""

    # geometry
    @abstractmethod
    def free(self, params: Array) -> Array:
        """Map parameters to unconstrained coordinates, a flat vector (zeros become -inf)."""

    @abstractmethod
    def bound(self, free: Array, like: Array) -> Array:
        """Map unconstrained coordinates to parameters; fixed ones are taken from ``like``."""

    @abstractmethod
    def alike(self, params: Array) -> bool | None:
        """Return whether all free rows are the same; None if there are fewer than two."""

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return self.uniform().shape

    @property
    def prior_size(self) -> float:
        """Number of pseudo-counts of the prior, for the rounding error of the objective.

        0 where the prior is flat, or not in terms of counts.
        """
        return 0.0

    def sound(self, values: Array) -> bool:
        """Return whether these are valid parameters, except that rows need not sum to one."""
        return not np.isnan(self.free(values)).any()

    def proper(self, values: Array) -> Array:
        """Scale down rows that sum to more than one.

        Rows that sum to less leave probability for outcomes that never occur, and are unchanged.
        """
        made = self.bound(self.free(values), values).astype(values.dtype)
        fitting = np.allclose(values, made, 1e-9, 1e-12) or (values <= made).all()
        return values if fitting else made

    def change(self, old: Array, new: Array) -> float:
        """Return the largest absolute change of any parameter."""
        return float(np.max(np.abs(new - old), initial=0.0))

    def entropy(self, params: Array, weights: bool = False) -> float:
        """Return the mean entropy of the rows in bits; NaN if the family does not define it.

        ``weights``  the parameters are weights from `mean_field`, whose row sums have no meaning
        """
        return float("nan")

    def average(self, draws: Sequence[Array]) -> Array:
        """Return the mean of some draws, which a sampler reports.

        Families whose parameters are not closed under averaging (a precision, a normaliser) average
        the underlying quantities and recompute the parameters.
        """
        total = np.zeros_like(draws[0])
        for params in draws:
            total += params
        return total / len(draws)

    def running(self) -> CountAverage:
        """Make a running average of counts for stepwise learning."""
        return CountAverage(self)


class CountAverage:
    """s ← (1 − η) s + η s_batch, dense. Families with large sparse tables scale lazily instead."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.sum = family.zeros()

    def blend(self, batch: Counts, eta: float) -> None:
        self.sum *= 1.0 - eta
        if isinstance(batch, SparseCounts):
            self.sum.reshape(-1)[batch.index] += eta * batch.value
        elif isinstance(batch, ColumnCounts):
            self.sum[:, batch.columns] += eta * batch.value.T
        else:
            self.sum += eta * batch

    def counts(self) -> Array:
        """Return the average itself."""
        return self.sum

    def params(self, update: Update, old: Array, rng: np.random.Generator) -> Array:
        """Compute parameters from the average by the learner's update."""
        return self.family.update(update, self.sum, old, rng)

    def state(self) -> Mapping[str, Any]:
        """Return all that `blend` and `params` change, for a checkpoint."""
        return {"sum": self.sum}

    def restore(self, state: Mapping[str, Any]) -> Array | None:
        """Continue from what `state` returned; return the parameters, if they are lazy."""
        self.sum = state["sum"]
        return None


# Initial parameters.


def start_tables(given: Mapping[str, Any], families: Mapping[str, Family]) -> dict[str, Array]:
    """Convert the initial values of all tables to arrays of the families' shapes."""
    if set(given) != set(families):
        raise StartError(f"start values are given for {sorted(given)}", f"give {sorted(families)}")
    return {
        name: reshape_start(name, given[name], family.uniform().shape)
        for name, family in families.items()
    }


def check_start(families: Mapping[str, Family], start: Params) -> dict[str, Array]:
    """Return the initial parameters as arrays; raise a `StartError` if they are invalid.

    Unnormalised weights are allowed: rows that sum to more than one are scaled down, since
    otherwise the objective might seem to fall at the first step. Rows that sum to less leave
    probability for outcomes that never occur, and are unchanged.
    """
    if set(start) != set(families):
        raise StartError(
            f"the start has tables for {sorted(start)}, the model for {sorted(families)}",
            "give one table for each of the model's families",
        )
    checked = {}
    for name, family in families.items():
        values = np.asarray(start[name])
        if values.dtype.kind != "f":
            values = values.astype(float)
        fault = ""
        if values.shape != family.param_shape:
            fault = f"has the shape {values.shape}, not {family.param_shape}"
        elif not np.isfinite(values).all():
            what = "NaN" if np.isnan(values).any() else "an infinite value"
            wrong = np.isnan(values) if what == "NaN" else np.isinf(values)
            fault = f"has {what} at index {_first(wrong)}"
        else:
            try:
                with np.errstate(all="ignore"):  # the log of what should not be negative
                    sound = family.sound(values)
                if not sound:
                    negative = values < 0
                    fault = (
                        f"has a negative value at index {_first(negative)}"
                        if negative.any()
                        else "is improper"
                    )
            except np.linalg.LinAlgError:
                fault = "has a covariance that is not positive definite"
        if fault:
            raise StartError(f"the start of {name!r} {fault}", "correct it, or start at random")
        checked[name] = family.proper(values)
    return checked


def _first(fault: BoolArray) -> tuple[int, ...]:
    """Return the index of the first True."""
    return tuple(int(i) for i in np.argwhere(fault)[0])
