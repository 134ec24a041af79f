"""Class-mass normalisation: how much of everything each class should have.

Zhu, Ghahramani & Lafferty (2003): with the mass m_c = Σ_i F_ic that class c has of the items
without a label, and the share q_c that it should have, items are judged by q_c F_ic / m_c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.bounds import MAX_WEIGHT, MIN_WEIGHT
from softcount.errors import LearnerError, shown
from softcount.models.mixture.labels import Labels
from softcount.types import Array


def given_shares(labels: Labels) -> Array:
    """(items, classes): what the labels say; rows of zeros where they say nothing."""
    shares = np.zeros((len(labels.numbers), len(labels.classes)))
    hard = np.flatnonzero(labels.numbers >= 0)
    shares[hard, labels.numbers[hard]] = 1.0
    return shares if labels.shares is None else shares + np.nan_to_num(labels.shares)


def class_prior(wanted: bool | Mapping[Any, float], classes: Array, shares: Array) -> Array:
    """The share of each class: as a mapping says, or (its labels + 1) / (labels + classes).

    >>> class_prior(True, np.array(["a", "b"]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    array([0.75, 0.25])
    """
    if not isinstance(wanted, Mapping):
        counts = shares.sum(axis=0) + 1.0
        smoothed: Array = counts / counts.sum()
        return smoothed
    names = classes.tolist()
    by_name = {str(name): share for name, share in wanted.items()}  # as a model file has them
    strange = set(by_name) ^ set(map(str, names))
    if strange:
        raise LearnerError(
            f"class_mass and the labels do not agree on {shown(sorted(strange)[0])}",
            "give a share for every label there is, and no other",
        )
    given = [by_name[str(name)] for name in names]
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.full(len(names), np.nan)
    if not (found.min() >= MIN_WEIGHT and found.max() <= MAX_WEIGHT):
        raise LearnerError(
            f"class_mass={shown(dict(wanted))}",
            f"give shares above 0, from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}",
        )
    normalised: Array = found / found.sum()
    return normalised


def factors_for(shares: Array, prior: Array, wanted: bool) -> Array:
    """What each class is multiplied by; 1 for a class that has nothing to be multiplied."""
    mass = shares.sum(axis=0)
    if not wanted or not mass.all():
        return np.ones(len(prior))
    factors: Array = prior * mass.sum() / mass
    return factors


def scaled(shares: Array, factors: Array) -> Array:
    """Shares with the classes multiplied, each row adding up to one; rows of zeros stay."""
    moved = shares * factors
    totals = moved.sum(axis=1, keepdims=True)
    found: Array = moved / np.where(totals > 0.0, totals, 1.0)
    return found
