"""Where hidden Markov models of vectors begin: each vector is given a state, and all is counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import StartError, shown
from softcount.families import Gaussian
from softcount.kernels.listed_paths import count_paths
from softcount.kernels.packs import Tally
from softcount.models.mixture.items import Points
from softcount.models.mixture.lloyd import cluster
from softcount.models.sequences.core import HMMCore
from softcount.models.sequences.emissions import TABLE
from softcount.models.sequences.shards import Shard
from softcount.types import Array

MEANS, SPREADS = "means", "covariances"


def clustered(core: HMMCore, shard: Shard, rng: np.random.Generator) -> dict[str, Array]:
    """Tables of states that are clusters of vectors, as far as these may have them."""
    labels = cluster(shard.observed, core.n_states, shard.token_weights, rng)
    allowed = shard.states.allowed[shard.sets]
    first = allowed.argmax(axis=1)
    return counted(core, shard, np.where(allowed[np.arange(len(labels)), labels], labels, first))


def likeliest(core: HMMCore, shard: Shard, gaussians: Array) -> Array:
    """The state of each vector that has it most likely, among those that it may have."""
    family, points = _family(core), Points(shard.observed)
    return _best(shard, family.log_density(gaussians, points.x, points.outer(family.form)))


def about(
    core: HMMCore, shard: Shard, offset: Array, means: Any, covariances: Any = None
) -> tuple[Array, Array]:
    """The state of each vector whose centre is nearest; and Gaussians about these centres.

    Without covariances all are as wide as vectors are about the nearest centre.
    """
    family = _family(core)
    usual = family.uniform()
    centres = _numbers(MEANS, means, family.means(usual).shape) - offset
    away = shard.observed @ centres.T - 0.5 * (centres**2).sum(axis=1)
    labels = _best(shard, away)
    if covariances is None:
        every = np.repeat(shard.token_weights[:, None], core.n_states, axis=1)
        whole = family.statistics(shard.observed - centres[labels], every)
        rng = np.random.default_rng(0)  # not drawn from
        return labels, family.moved(family.maximise(whole, usual, rng), centres)
    wide = _numbers(SPREADS, covariances, family.covariances(usual).shape)
    try:
        return labels, family.made(centres, wide)
    except np.linalg.LinAlgError:
        raise StartError(
            f"the start of {SPREADS!r} has one that is not positive definite", "correct it"
        ) from None


def counted(core: HMMCore, shard: Shard, labels: Array) -> dict[str, Array]:
    """Tables that fit vectors of these states."""
    k = core.n_states
    rows = k**core.order + (k if core.order == 2 else 0)
    into = np.arange(len(labels))
    sums = (np.zeros(k), np.zeros((rows, k)), np.zeros(rows))
    tally = Tally(np.zeros((len(labels), k)), into, np.zeros(len(shard)), *sums)
    count_paths(labels[None].astype(np.int32), shard.indptr, shard.weights, k, core.order, tally)
    counts = core.counts(shard, tally)
    families = dict(core.families)
    emissions = families.pop(TABLE)
    start = {n: f.mean(counts[n], f.uniform()) for n, f in families.items()}  # all is possible
    rng = np.random.default_rng(0)  # not drawn from
    return {**start, TABLE: emissions.maximise(counts[TABLE], emissions.uniform(), rng)}


def _family(core: HMMCore) -> Gaussian:
    family = core.emission.family
    assert isinstance(family, Gaussian)
    return family


def _best(shard: Shard, scores: Array) -> Array:
    """The state of the highest score, among those that a vector may have."""
    possible = np.where(shard.states.allowed[shard.sets], scores, -np.inf)
    best: Array = possible.argmax(axis=1)
    return best


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Start values of a shape."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != shape or not np.isfinite(values).all():
        raise StartError(
            f"the start of {name!r} is {shown(given)}", f"give finite numbers of the shape {shape}"
        )
    return values
