"""What a family of distributions must offer.

A family turns sufficient statistics (counts) into parameters. Counts and parameters are each *one*
array, so that shards, learners, engines and files need not know what kind of family it is. What the
entries mean is known to the family, and to the models that use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.core.errors import StartError
from softcount.core.parameters import shaped
from softcount.core.types import Array, BoolArray, Counts, Params, SparseCounts, Update


class Family(ABC):
    """Rows of distributions of one kind, with a prior."""

    n_free: int
    """How many parameters are free to move (for AIC and BIC)."""

    @abstractmethod
    def zeros(self) -> Array:
        """Counts of nothing."""

    @abstractmethod
    def uniform(self) -> Array:
        """Parameters that prefer nothing."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Array:
        """Random start parameters."""

    # how counts become parameters: one method for each `Update` of a learner
    def update(self, how: Update, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """New parameters from counts, as the learner asks."""
        if how == "maximise":
            return self.maximise(counts, old, rng)
        if how == "mean_field":
            return self.mean_field(counts, old, rng)
        return self.draw(counts, old, rng)

    @abstractmethod
    def maximise(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """The parameters' mode given the counts (maximum likelihood under a flat prior)."""

    @abstractmethod
    def mean_field(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """exp E[log θ] under the posterior given the counts (need not sum to one)."""

    @abstractmethod
    def draw(self, counts: Counts, old: Array, rng: np.random.Generator) -> Array:
        """A draw from the posterior given the counts."""

    @abstractmethod
    def mean(self, counts: Counts, old: Array) -> Array:
        """The posterior mean given the counts: proper parameters, which VB reports in the end."""

    # terms of the objective
    @abstractmethod
    def log_prior(self, params: Array) -> float:
        """log p(θ) up to a constant; exactly 0 under a flat prior."""

    @abstractmethod
    def divergence(self, counts: Counts, params: Array) -> float:
        """KL(q(θ | counts) ‖ p(θ)), the price of the posterior in the variational bound.

        ``params`` is what `mean_field` made of these counts: families whose posterior is a point
        estimate price that point.
        """

    @abstractmethod
    def expected_log(self, counts: Counts, params: Array) -> float:
        """⟨counts, log θ⟩: this family's part of Q; zero counts cost nothing even where θ is 0."""

    # geometry
    @abstractmethod
    def free(self, params: Array) -> Array:
        """Unconstrained coordinates of the parameters, as a flat vector (zeros become -inf)."""

    @abstractmethod
    def bound(self, free: Array, like: Array) -> Array:
        """Parameters from unconstrained coordinates; what cannot move is taken from ``like``."""

    @abstractmethod
    def alike(self, params: Array) -> bool | None:
        """Whether all free rows are the same distribution; None if there is nothing to compare."""

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameters."""
        return self.uniform().shape

    @property
    def prior_size(self) -> float:
        """How many counts its prior stands for: rounding of terms of the objective is judged by
        it, as it is by the number of observations. 0 where the prior is flat, or not of counts."""
        return 0.0

    def sound(self, values: Array) -> bool:
        """Whether these can be parameters at all; rows need not sum to one."""
        return not np.isnan(self.free(values)).any()

    def proper(self, values: Array) -> Array:
        """The values, with rows scaled down that sum to more than one.

        Rows that sum to less leave room for what never occurs, and stay.
        """
        made = self.bound(self.free(values), values).astype(values.dtype)
        fitting = np.allclose(values, made, 1e-9, 1e-12) or (values <= made).all()
        return values if fitting else made

    def change(self, old: Array, new: Array) -> float:
        """The largest change of any parameter."""
        return float(np.max(np.abs(new - old), initial=0.0))

    def entropy(self, params: Array, weights: bool = False) -> float:
        """The mean entropy of its rows in bits, if it can tell.

        ``weights``  these are weights, as `mean_field` makes them: their sums say nothing
        """
        return float("nan")

    def average(self, draws: Sequence[Array]) -> Array:
        """The mean of some draws, which a sampler reports.

        Families whose parameters are not closed under averaging (a precision, a normaliser) make
        proper parameters of the means of what they stand for.
        """
        total = np.zeros_like(draws[0])
        for params in draws:
            total += params
        return total / len(draws)

    def running(self) -> CountAverage:
        """An average of counts for stepwise learning, to which batches can be blended."""
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
        else:
            self.sum += eta * batch

    def counts(self) -> Array:
        """The average itself."""
        return self.sum

    def params(self, update: Update, old: Array, rng: np.random.Generator) -> Array:
        """Parameters from the average, by the learner's update."""
        return self.family.update(update, self.sum, old, rng)


# Start values.


def start_tables(given: Mapping[str, Any], families: Mapping[str, Family]) -> dict[str, Array]:
    """Start values of all tables, as arrays of the families' shapes."""
    if set(given) != set(families):
        raise StartError(f"start values are given for {sorted(given)}", f"give {sorted(families)}")
    return {
        name: shaped(name, given[name], family.uniform().shape) for name, family in families.items()
    }


def check_start(families: Mapping[str, Family], start: Params) -> dict[str, Array]:
    """The start parameters as arrays; raises a `StartError` if a family cannot begin with them.

    Weights are welcome: rows that sum to more than one are made proper, for otherwise the first
    step might seem to fall. Rows that sum to less leave room for what never occurs, and stay.
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
    """Where the first fault is."""
    return tuple(int(i) for i in np.argwhere(fault)[0])
