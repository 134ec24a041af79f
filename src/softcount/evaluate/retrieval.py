"""How well a ranking puts relevant documents first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from softcount.errors import DataError, shown


def average_precision(ranking: Iterable[Hashable], relevant: Iterable[Hashable]) -> float:
    """The mean, over the relevant documents, of the precision at the rank of each.

    Σ_{r : document r is relevant} (relevant documents among the first r) / r, divided by the number
    of relevant documents (Buckley & Voorhees 2000). Those that the ranking leaves out count 0.

    ``ranking``   documents, best first, by number or name
    ``relevant``  those that should come first

    >>> average_precision(["a", "b", "c", "d"], {"a", "c"})  # (1/1 + 2/3) / 2
    0.833...
    """
    ranked, wanted = list(ranking), set(relevant)
    if not wanted:
        raise DataError(
            "no document is relevant, so no ranking is better than another",
            "leave out queries without relevant documents",
        )
    if len(set(ranked)) < len(ranked):
        twice = next(x for i, x in enumerate(ranked) if x in ranked[:i])
        raise DataError(f"the ranking has {shown(twice)} twice", "rank every document once")
    ranks = 1 + np.flatnonzero([document in wanted for document in ranked])
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / len(wanted))


def mean_average_precision(
    rankings: Iterable[Iterable[Hashable]], relevant: Iterable[Iterable[Hashable]]
) -> float:
    """The mean of `average_precision` over queries: a ranking and the relevant documents of each.

    >>> mean_average_precision([[0, 1, 2], [2, 1, 0]], [{0}, {1}])  # (1 + 1/2) / 2
    0.75
    """
    ours, theirs = list(rankings), list(relevant)
    if len(ours) != len(theirs) or not ours:
        raise DataError(
            f"{len(ours)} rankings for {len(theirs)} sets of relevant documents",
            "give one of each for every query, and at least one query",
        )
    return float(np.mean([average_precision(*query) for query in zip(ours, theirs, strict=True)]))
