"""Interpolated Kneser-Ney smoothing (Kneser & Ney 1995; modified: Chen & Goodman 1998)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from softcount.errors import LearnerError, shown
from softcount.kernels.ngrams import Automaton
from softcount.models.language.ngrams import NGrams
from softcount.models.language.words import MARKS, START
from softcount.types import Array

HALF = 0.5
"""The discount where the counts say nothing: halfway between none and all of a count of one."""


def given_discounts(discount: Any, order: int) -> Array:
    """Discounts as they were asked for, one row a level: a number, or three for 1, 2 and ≥ 3."""
    try:
        values = np.asarray(discount, dtype=float)
        rows = np.array(np.broadcast_to(values, (order, 3)))
    except (TypeError, ValueError, OverflowError):
        rows = np.full((order, 3), np.nan)
    if not usable(rows):
        raise LearnerError(
            f"discount={shown(discount)}: cannot be taken from counts of 1, 2 and more",
            "give a number above 0, at most 1; or three, at most 1, 2 and 3; or None",
        )
    return rows


def usable(discounts: Array) -> bool:
    """Whether no count of 1, 2 or more falls below zero, and something is left for new words."""
    return bool(np.all((discounts > 0) & (discounts <= [1, 2, 3])))


def discounts_of(counts: Array) -> Array:
    """D_1, D_2 and D_3+ for the n-grams of one level, from how many have a count of 1, 2, 3, 4.

    Y = n_1 / (n_1 + 2 n_2) and D_c = c - (c + 1) Y n_{c+1} / n_c (Chen & Goodman 1998, eq. 26).
    Where these are undefined, out of (0, c], or would leave less of a larger count, as in tiny
    corpora, all three are Y (Ney, Essen & Kneser 1994); where that is no discount below one
    either, all three are one half.

    >>> discounts_of(np.repeat([1, 2, 3, 4], [40, 12, 6, 4])).round(3).tolist()
    [0.625, 1.062, 1.333]
    >>> discounts_of(np.array([1, 1, 2])).tolist(), discounts_of(np.array([1, 7])).tolist()
    ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    """
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    single = n[0] / (n[0] + 2 * n[1]) if n[0] > 0 and n[1] > 0 else HALF
    if n[:3].all():
        c = np.arange(1, 4)
        modified: Array = c - (c + 1) * single * n[1:] / n[:3]
        if usable(modified) and np.all(np.diff(modified) <= 1):
            return modified
    return np.full(3, single)


def discounts_by_level(ngrams: NGrams, order: int) -> Array:
    """The discounts that the counts suggest, one row a level."""
    rows = np.full((order, 3), HALF)
    for row, (low, high) in zip(rows, pairwise(ngrams.levels[1:]), strict=False):
        row[:] = discounts_of(ngrams.counts[low:high])
    return rows


def smoothed(ngrams: NGrams, discounts: Array) -> Automaton:
    """All probabilities, from counts and discounts.

    p(w | h) = (c(hw) - D(c(hw))) / Σ_v c(hv) + γ(h) p(w | h'), h' being h without its first word,
    and γ(h) = Σ_v D(c(hv)) / Σ_v c(hv). Below the unigrams all words, <unk> and </s> are equal.
    """
    words, first, suffix, counts = ngrams
    size, parents = len(counts), ngrams.parents
    levels = list(pairwise(ngrams.levels))[1:]
    less = np.zeros(size)
    for (low, high), row in zip(levels, discounts, strict=False):  # there may be no long n-grams
        less[low:high] = np.r_[0.0, row][np.minimum(counts[low:high], 3)]
    totals = np.bincount(parents[1:], counts[1:], size)
    left = np.bincount(parents[1:], less[1:], size)
    inner = totals > 0
    gamma = np.divide(left, totals, out=np.ones(size), where=inner)
    p = np.ones(size)
    p[0] = 1.0 / (ngrams.levels[2] - 2)  # all unigrams but <s>, which is never foretold
    p[1:] = (counts[1:] - less[1:]) / totals[parents[1:]]
    state = np.arange(size)
    for low, high in levels:
        p[low:high] += gamma[parents[low:high]] * p[suffix[low:high]]
        state[low:high] = np.where(inner[low:high], state[low:high], state[suffix[low:high]])
    p[[0, 1 + MARKS.index(START)]] = 1.0, 0.0
    with np.errstate(divide="ignore"):
        return Automaton(words, first, suffix, state, np.log(p), np.log(gamma))
