"""One answer from several views, of which some may have nothing to say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from softcount.types import Array
from softcount.weak.confidence import log_shares


def product(shares: Sequence[Array], speaks: Sequence[Array], prior: Array) -> Array:
    """Π_v p_v(class | item), renormalised, over the views that can say something of the item.

    ``shares`` has an array (items, classes) for each view, ``speaks`` whether each item has
    something in that view. Where none has, the answer is the ``prior``.

    >>> both = [np.array([[0.5, 0.5]]), np.array([[0.2, 0.8]])]
    >>> product(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    logs = np.zeros_like(shares[0])
    for one, heard in zip(shares, speaks, strict=True):
        logs += np.where(heard[:, None], log_shares(one), 0.0)
    return _or_prior(softmax(logs, axis=1), speaks, prior)


def agreement(shares: Sequence[Array], speaks: Sequence[Array], prior: Array) -> Array:
    """The class that all views agree on, with the mean of their probabilities; where they do not
    agree, what the most confident of them says. For the arguments see `product`.

    >>> both = [np.array([[0.6, 0.4]]), np.array([[0.2, 0.8]])]
    >>> agreement(both, [np.array([True])] * 2, np.array([0.5, 0.5])).round(6)
    array([[0.2, 0.8]])
    """
    stacked, heard = np.stack(shares), np.stack(speaks)
    rows = np.arange(stacked.shape[1])
    surest = np.where(heard, stacked.max(axis=2), -1.0).argmax(axis=0)
    best = stacked.argmax(axis=2)
    agreed = ((best == best[surest, rows]) | ~heard).all(axis=0)
    weights = heard / np.maximum(heard.sum(axis=0), 1)
    mean = np.einsum("vi,vik->ik", weights, stacked)
    answer: Array = np.where(agreed[:, None], mean, stacked[surest, rows])
    return _or_prior(answer, speaks, prior)


def _or_prior(answer: Array, speaks: Sequence[Array], prior: Array) -> Array:
    anyone = np.logical_or.reduce(list(speaks))
    found: Array = np.where(anyone[:, None], answer, prior)
    return found


PREDICTIONS = {"product": product, "agreement": agreement}
"""How views are taken together."""
