"""Topics over time: how large a part each had in every period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from softcount.errors import DataError
from softcount.show.periods import Bins, periods
from softcount.types import Array


@dataclass(frozen=True, eq=False)
class OverTime:
    """A table of periods × topics.

    ``periods``    their names, in order; periods without documents are among them
    ``shares``     (periods, topics), rows add up to 1; NaN where a period has no words
    ``documents``  how many documents each period has
    ``skipped``    how many documents have no time
    """

    periods: tuple[str, ...]
    shares: Array
    documents: Array
    skipped: int


def topics_over_time(
    documents: Array,
    lengths: Array | Sequence[float] | None,
    times: Sequence[Any] | Array,
    bins: Bins | None = None,
) -> OverTime:
    """p(topic | period) = Σ_d n_d p(topic | d) / Σ_d n_d over the documents d of the period.

    ``documents``  p(topic | document), as a model's ``documents_``
    ``lengths``    n_d, words in each document; None: every document counts the same
    ``times``      ISO dates, datetimes or numbers; None where there is none
    ``bins``       how many periods, or 'year', 'month', 'day'; see `softcount.show.periods`

    >>> table = topics_over_time([[1, 0], [0.5, 0.5], [0, 1]], [6, 2, 9], [1990, 1990, 1991])
    >>> table.periods, table.shares.tolist()
    (('1990', '1991'), [[0.875, 0.125], [0.0, 1.0]])
    """
    theta = np.asarray(documents, dtype=np.float64)
    n = len(theta)
    weight = np.ones(n) if lengths is None else np.asarray(lengths, dtype=np.float64)
    for name, given in (("times", times), ("lengths", weight)):
        if len(given) != n:
            raise DataError(
                f"there are {n:,} documents but {len(given):,} {name}",
                f"give {name} for each document, in the same order",
            )
    found = periods(times, bins)
    known = np.flatnonzero(found.place >= 0)
    shape = (len(found.names), n)
    place = found.place[known]
    counted = sparse.csr_matrix((weight[known], (place, known)), shape=shape) @ theta
    words = np.bincount(place, weight[known], minlength=shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(words[:, None] > 0.0, counted / words[:, None], np.nan)
    sizes = np.bincount(place, minlength=shape[0])
    return OverTime(found.names, shares, sizes, n - len(known))
