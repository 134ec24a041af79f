"""The E-step of a mixture: each item has one hidden class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.errors import StartError
from softcount.estimate import NUMBER, Estimate, held, needing
from softcount.families.base import Family
from softcount.kernels import posterior
from softcount.models.mixture.emissions import Emission
from softcount.models.mixture.items import Items, Reading, Shard
from softcount.models.possible import demand_possible
from softcount.models.settings import shaped
from softcount.types import Array, How, Params, Stats

IMPOSSIBLE = "has probability zero in every class"
REMEDY = "smooth the model (smoothing=0.1), or leave the item out"


class MixtureCore:
    """p(x) = Σ_k π_k p(x | k): a family of class weights, and an emission.

    Items that are known to be of some class are restricted to it, and weigh what they weigh: there
    is nothing else to semi-supervised learning.
    """

    def __init__(
        self,
        name: str,
        weights: Family,
        emission: Emission,
        usual: str = "EM",
        averages: bool = False,
    ) -> None:
        self.name, self.emission, self.usual_learner = name, emission, usual
        self.averages = averages
        self.threads_inside = emission.threads_inside
        self.families: dict[str, Family] = {"weights": weights, emission.table: emission.family}
        self.n_classes: int = weights.zeros().size

    # the E-step
    def joint(self, params: Params, x: Any, threads: int = 1, floor: float = 0.0) -> Array:
        """log π_k + log p(x_d | k), (items, classes); no probability below ``floor``."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.maximum(params["weights"].reshape(-1), floor))
        table = params[self.emission.table]
        return self.emission.joint(table, x, log_weights, threads, floor)

    def expect(self, params: Params, shard: Shard, how: How, local: Any = None) -> Stats:
        """Counts and log-likelihood of a shard; an item of probability zero is an error."""
        joint = self.joint(params, shard.x, how.threads)
        log_likelihood = score = items = 0.0
        shares = None
        for reading in shard.known.readings():
            numbers = shard.numbers[reading.rows]
            found, logs, attained = fill(joint[reading.rows], reading, numbers, how)
            counted = reading.weights > 0.0
            demand_possible(numbers[counted], logs[counted], IMPOSSIBLE, REMEDY)
            log_likelihood += float(reading.weights[counted] @ logs[counted])
            score += float(reading.weights[counted] @ attained[counted])
            items += float(reading.weights.sum())
            shares = _added(shares, found, reading, len(joint))
        tokens = self.emission.tokens(shard.x, shard.known.weights)
        counts = (
            {} if how.score_only or shares is None else self.counts(shard.x, shares, how.threads)
        )
        magnitude = self.emission.magnitude(params[self.emission.table], shard)
        return Stats(counts, log_likelihood, score, items, tokens, magnitude=magnitude)

    def counts(self, x: Any, shares: Array, threads: int = 1) -> dict[str, Array]:
        """Sufficient statistics of items that belong to classes by ``shares``."""
        return {
            "weights": np.ones((1, len(shares))) @ shares,
            self.emission.table: self.emission.counts(x, shares, threads),
        }

    def totals(self, shard: Shard) -> dict[str, float]:
        """Every item has one class."""
        return {"weights": float(sum(r.weights.sum() for r in shard.known.readings()))}

    def estimate(self, corpus: Items) -> Estimate:
        """Tables and posteriors; a start by k-means is the start's own affair."""
        n, K, x = len(corpus), self.n_classes, corpus.x
        work, parts = self.emission.needs(x)
        # posteriors of the shards that are at work, and those of all items when all is done
        together = min(n, 3 * self.emission.cut)
        posteriors = NUMBER * K * (3.0 * together + n)
        tokens = self.emission.tokens(x, corpus.known.weights)
        found = needing(n, tokens, work + 4.0 * n * K, data=held(corpus))
        return found.plus(posteriors=posteriors, **parts)

    # parameters from outside
    def params(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """Start values as arrays of the families' shapes."""
        strange = set(given) ^ set(self.families)
        if strange:
            raise StartError(
                f"start values are given for {sorted(given)}",
                f"this model has the tables {sorted(self.families)}",
            )
        return {
            name: shaped(name, given[name], family.uniform().shape)
            for name, family in self.families.items()
        }

    def from_shares(self, x: Any, shares: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Parameters that fit items which belong to classes by ``shares``.

        The mode, or the mean for learners that average and for priors that have no mode: it leaves
        nothing impossible.
        """
        counts = self.counts(x, shares)
        return {
            name: family.mean(counts[name], family.uniform())
            if self.averages or not getattr(family, "has_mode", True)
            else family.maximise(counts[name], family.uniform(), rng)
            for name, family in self.families.items()
        }


def _added(shares: Array | None, found: Array, reading: Reading, n_items: int) -> Array:
    """Shares of all items, with those of a reading added, by their weights."""
    if np.any(reading.weights != 1.0):
        found *= reading.weights[:, None]
    if isinstance(reading.rows, slice):
        return found
    if shares is None:
        shares = np.zeros((n_items, found.shape[1]))
    shares[reading.rows] += found
    return shares


def fill(joint: Array, reading: Reading, numbers: Array, how: How) -> tuple[Array, Array, Array]:
    """Shares of classes, log-likelihoods, and what was attained, for the items of a reading."""
    shares = np.empty_like(joint)
    lower, upper = reading.lower, reading.upper
    if how.fill == "hard":
        best, logs = posterior.hard(joint, lower, upper, shares)
        return shares, logs, best
    tempered = posterior.soft(joint, lower, upper, how.temper, shares)
    logs = tempered if how.temper == 1.0 else posterior.totals(joint, lower, upper)
    if how.fill == "soft":
        return shares, logs, tempered / how.temper
    drawn = np.empty_like(joint)
    posterior.draw(shares, numbers, np.uint64(how.stream), how.samples, drawn)
    return drawn, logs, logs
